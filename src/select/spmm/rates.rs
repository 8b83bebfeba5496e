//! Rates of machines, as `select::spmm::fit` prints them, with the error of each kernel over the number of
//! its cases; negligible terms are left out.

use super::{Kernel, Rates};

/// Rates of an H100, by class of values, for few and for many columns of C.
pub const H100: Rates = Rates {
    row: [
        [
            // Off by 18 % over 124.
            Kernel {
                start: 7.670e-6,
                serial: 2.502e-9,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                near: 5.49e+12,
                work: 7.877e-12,
                unit: 9.670e-11,
            },
            // Off by 16 % over 132.
            Kernel {
                start: 8.684e-6,
                serial: 0.0,
                memory: 1.38e+13,
                fetch: 8.72e+13,
                near: 7.26e+12,
                work: 5.100e-12,
                unit: 2.023e-11,
            },
        ],
        [
            // Off by 16 % over 230.
            Kernel {
                start: 8.482e-6,
                serial: 2.304e-9,
                memory: 4.20e+13,
                fetch: 3.11e+13,
                near: 7.43e+12,
                work: 4.107e-12,
                unit: 6.477e-11,
            },
            // Off by 16 % over 185.
            Kernel {
                start: 7.800e-6,
                serial: 7.982e-10,
                memory: 7.26e+12,
                fetch: 2.04e+14,
                near: 1.51e+13,
                work: 6.867e-12,
                unit: 1.006e-11,
            },
        ],
        [
            // Off by 24 % over 106.
            Kernel {
                start: 6.887e-6,
                serial: 0.0,
                memory: f64::INFINITY,
                fetch: 2.07e+13,
                near: 7.68e+12,
                work: 2.173e-12,
                unit: 3.115e-10,
            },
            // Off by 15 % over 78.
            Kernel {
                start: 9.331e-6,
                serial: 0.0,
                memory: 3.92e+12,
                fetch: 3.63e+13,
                near: 1.46e+13,
                work: 6.765e-12,
                unit: 0.0,
            },
        ],
    ],
    sell: [
        [
            // Off by 21 % over 124.
            Kernel {
                start: 5.965e-6,
                serial: 7.259e-10,
                memory: f64::INFINITY,
                fetch: 7.27e+12,
                near: 6.91e+12,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 23 % over 117.
            Kernel {
                start: 5.865e-6,
                serial: 2.347e-8,
                memory: f64::INFINITY,
                fetch: 4.25e+13,
                near: f64::INFINITY,
                work: 7.784e-12,
                unit: 3.667e-11,
            },
        ],
        [
            // Off by 18 % over 230.
            Kernel {
                start: 6.652e-6,
                serial: 1.343e-9,
                memory: 8.00e+12,
                fetch: 1.21e+13,
                near: 5.82e+13,
                work: 0.0,
                unit: 6.417e-12,
            },
            // Off by 22 % over 170.
            Kernel {
                start: 1.123e-5,
                serial: 8.168e-9,
                memory: 4.78e+12,
                fetch: 1.76e+13,
                near: f64::INFINITY,
                work: 4.108e-12,
                unit: 2.519e-11,
            },
        ],
        [
            // Off by 20 % over 106.
            Kernel {
                start: 6.451e-6,
                serial: 0.0,
                memory: 3.74e+12,
                fetch: 9.00e+12,
                near: f64::INFINITY,
                work: 2.753e-12,
                unit: 0.0,
            },
            // Off by 20 % over 63.
            Kernel {
                start: 9.294e-6,
                serial: 3.829e-8,
                memory: 3.43e+12,
                fetch: 1.10e+13,
                near: f64::INFINITY,
                work: 0.0,
                unit: 9.256e-11,
            },
        ],
    ],
    window: [
        [
            // Off by 25 % over 124.
            Kernel {
                start: 7.573e-6,
                serial: 6.159e-12,
                memory: 3.33e+12,
                fetch: f64::INFINITY,
                near: f64::INFINITY,
                work: 5.410e-11,
                unit: 1.074e-9,
            },
            // Off by 24 % over 132.
            Kernel {
                start: 1.349e-5,
                serial: 1.198e-9,
                memory: 2.09e+13,
                fetch: 1.09e+14,
                near: 7.19e+12,
                work: 2.346e-11,
                unit: 0.0,
            },
        ],
        [
            // Off by 20 % over 106.
            Kernel {
                start: 1.156e-5,
                serial: 1.330e-10,
                memory: 1.84e+13,
                fetch: 1.07e+13,
                near: 4.11e+13,
                work: 1.154e-10,
                unit: 0.0,
            },
            // Off by 25 % over 53.
            Kernel {
                start: 1.260e-5,
                serial: 1.560e-9,
                memory: 8.96e+12,
                fetch: 9.34e+12,
                near: 2.04e+13,
                work: 0.0,
                unit: 0.0,
            },
        ],
        [
            // Off by 22 % over 124.
            Kernel {
                start: 1.192e-5,
                serial: 0.0,
                memory: f64::INFINITY,
                fetch: 7.20e+12,
                near: f64::INFINITY,
                work: 1.607e-10,
                unit: 5.497e-10,
            },
            // Off by 21 % over 132.
            Kernel {
                start: 2.401e-5,
                serial: 3.529e-10,
                memory: 7.13e+12,
                fetch: 5.87e+12,
                near: 6.48e+13,
                work: 2.204e-11,
                unit: 0.0,
            },
        ],
        [
            // Off by 22 % over 106.
            Kernel {
                start: 1.109e-5,
                serial: 1.758e-10,
                memory: 9.77e+12,
                fetch: f64::INFINITY,
                near: 7.67e+12,
                work: 8.953e-11,
                unit: 3.153e-10,
            },
            // Off by 26 % over 78.
            Kernel {
                start: 1.754e-5,
                serial: 3.226e-9,
                memory: 1.04e+13,
                fetch: 1.86e+13,
                near: 7.91e+12,
                work: 0.0,
                unit: 0.0,
            },
        ],
    ],
    smat: [
        [
            // Off by 21 % over 124.
            Kernel {
                start: 7.636e-6,
                serial: 9.421e-11,
                memory: 2.41e+13,
                fetch: 3.99e+13,
                near: 1.24e+12,
                work: 2.191e-11,
                unit: 0.0,
            },
            // Off by 18 % over 107.
            Kernel {
                start: 1.136e-5,
                serial: 7.889e-11,
                memory: f64::INFINITY,
                fetch: 1.73e+13,
                near: 3.31e+12,
                work: 2.890e-12,
                unit: 4.442e-10,
            },
        ],
        [
            // Off by 18 % over 106.
            Kernel {
                start: 7.750e-6,
                serial: 5.738e-10,
                memory: 4.28e+12,
                fetch: 1.58e+13,
                near: 1.24e+13,
                work: 0.0,
                unit: 4.249e-10,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.362e-5,
                serial: 2.394e-10,
                memory: 7.15e+12,
                fetch: 1.13e+13,
                near: 3.02e+13,
                work: 0.0,
                unit: 1.306e-9,
            },
        ],
        [
            // Off by 21 % over 106.
            Kernel {
                start: 8.498e-6,
                serial: 3.470e-10,
                memory: 8.78e+12,
                fetch: 8.35e+12,
                near: f64::INFINITY,
                work: 0.0,
                unit: 4.721e-9,
            },
            // Off by 20 % over 53.
            Kernel {
                start: 9.505e-6,
                serial: 0.0,
                memory: 3.86e+12,
                fetch: 1.01e+13,
                near: f64::INFINITY,
                work: 6.090e-11,
                unit: 5.939e-10,
            },
        ],
    ],
    dense: [
        [
            // Off by 24 % over 58.
            Kernel {
                start: 6.916e-6,
                serial: 9.240e-13,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                near: f64::INFINITY,
                work: 1.653e-10,
                unit: 4.973e+21,
            },
            // Off by 20 % over 80.
            Kernel {
                start: 7.191e-6,
                serial: 6.901e-13,
                memory: 4.06e+12,
                fetch: 3.23e+13,
                near: 2.80e+11,
                work: 9.558e-12,
                unit: 1.465e-8,
            },
        ],
        [
            // Off by 13 % over 32.
            Kernel {
                start: 6.459e-6,
                serial: 4.915e-13,
                memory: 1.67e+13,
                fetch: f64::INFINITY,
                near: f64::INFINITY,
                work: 3.234e-10,
                unit: 0.0,
            },
            // Off by 24 % over 16.
            Kernel {
                start: 8.596e-6,
                serial: 1.901e-13,
                memory: 3.01e+12,
                fetch: f64::INFINITY,
                near: 8.38e+1,
                work: 5.244e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 14 % over 50.
            Kernel {
                start: 6.709e-6,
                serial: 9.830e-13,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                near: f64::INFINITY,
                work: 5.911e-10,
                unit: 5.536e+17,
            },
            // Off by 11 % over 76.
            Kernel {
                start: 8.227e-6,
                serial: 8.274e-13,
                memory: 7.21e+12,
                fetch: 8.71e+11,
                near: 1.22e+7,
                work: 1.880e-11,
                unit: 8.842e+15,
            },
        ],
        [
            // Off by 16 % over 32.
            Kernel {
                start: 5.700e-6,
                serial: 1.509e-13,
                memory: 4.02e+12,
                fetch: f64::INFINITY,
                near: 9.78e+12,
                work: 3.006e-10,
                unit: 1.058e-5,
            },
            // Off by 31 % over 22.
            Kernel {
                start: 1.037e-5,
                serial: 5.586e-13,
                memory: 1.26e+13,
                fetch: 3.61e+12,
                near: 1.78e+11,
                work: 8.010e-12,
                unit: 1.527e-9,
            },
        ],
    ],
    multiprocessors: 132,
    doubles: [0.0; 2],
    clusters: super::CLUSTERS,
};
