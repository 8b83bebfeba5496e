//! Rates of machines, as `select::spmm::fit` prints them; what it finds to be next to nothing
//! is left out.

use super::{Kernel, Rates};

/// An H100. Per class of values, for few and for many columns of C.
pub const H100: Rates = Rates {
    row: [
        [
            // Off by 22 % over 106.
            Kernel {
                start: 1.117e-5,
                serial: 0.0,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                work: 7.954e-12,
                unit: 1.125e-10,
            },
            // Off by 13 % over 78.
            Kernel {
                start: 1.153e-5,
                serial: 3.482e-11,
                memory: 2.29e+12,
                fetch: 5.26e+14,
                work: 5.213e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 18 % over 212.
            Kernel {
                start: 9.827e-6,
                serial: 1.785e-11,
                memory: 3.78e+12,
                fetch: 2.19e+13,
                work: 2.108e-12,
                unit: 4.916e-11,
            },
            // Off by 16 % over 131.
            Kernel {
                start: 8.646e-6,
                serial: 1.448e-10,
                memory: 2.76e+12,
                fetch: 3.66e+13,
                work: 3.074e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 18 % over 106.
            Kernel {
                start: 1.029e-5,
                serial: 2.598e-11,
                memory: 4.18e+12,
                fetch: 1.59e+13,
                work: 0.0,
                unit: 6.447e-11,
            },
            // Off by 18 % over 78.
            Kernel {
                start: 8.361e-6,
                serial: 2.407e-10,
                memory: 2.42e+12,
                fetch: 4.60e+13,
                work: 7.313e-12,
                unit: 0.0,
            },
        ],
    ],
    sell: [
        [
            // Off by 20 % over 106.
            Kernel {
                start: 7.318e-6,
                serial: 1.443e-11,
                memory: 3.92e+12,
                fetch: 9.24e+12,
                work: 0.0,
                unit: 1.639e-12,
            },
            // Off by 18 % over 53.
            Kernel {
                start: 8.085e-6,
                serial: 1.857e-10,
                memory: 3.28e+12,
                fetch: 2.60e+13,
                work: 5.798e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 17 % over 212.
            Kernel {
                start: 7.120e-6,
                serial: 8.844e-11,
                memory: 3.53e+12,
                fetch: 1.46e+13,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 18 % over 106.
            Kernel {
                start: 8.173e-6,
                serial: 2.178e-10,
                memory: 3.20e+12,
                fetch: 1.39e+13,
                work: 9.785e-13,
                unit: 0.0,
            },
        ],
        [
            // Off by 18 % over 106.
            Kernel {
                start: 7.336e-6,
                serial: 4.997e-11,
                memory: 3.39e+12,
                fetch: 9.88e+12,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.122e-5,
                serial: 2.730e-10,
                memory: 2.61e+12,
                fetch: 9.59e+12,
                work: 4.274e-13,
                unit: 0.0,
            },
        ],
    ],
    window: [
        [
            // Off by 16 % over 106.
            Kernel {
                start: 8.162e-6,
                serial: 9.080e-11,
                memory: 4.18e+12,
                fetch: f64::INFINITY,
                work: 5.684e-11,
                unit: 2.515e-10,
            },
            // Off by 22 % over 78.
            Kernel {
                start: 1.241e-5,
                serial: 2.502e-10,
                memory: 5.46e+12,
                fetch: 9.02e+12,
                work: 0.0,
                unit: 1.072e-10,
            },
        ],
        [
            // Off by 20 % over 106.
            Kernel {
                start: 1.279e-5,
                serial: 1.747e-10,
                memory: 1.29e+13,
                fetch: 1.05e+13,
                work: 9.303e-11,
                unit: 1.698e-10,
            },
            // Off by 23 % over 53.
            Kernel {
                start: 1.735e-5,
                serial: 4.982e-10,
                memory: 5.97e+12,
                fetch: 1.33e+13,
                work: 4.758e-11,
                unit: 9.558e-11,
            },
        ],
        [
            // Off by 20 % over 106.
            Kernel {
                start: 1.364e-5,
                serial: 1.301e-10,
                memory: 1.91e+13,
                fetch: 5.81e+12,
                work: 1.126e-10,
                unit: 1.925e-10,
            },
            // Off by 20 % over 78.
            Kernel {
                start: 2.083e-5,
                serial: 5.417e-10,
                memory: 5.90e+12,
                fetch: 5.08e+12,
                work: 0.0,
                unit: 2.606e-10,
            },
        ],
        [
            // Off by 19 % over 106.
            Kernel {
                start: 1.391e-5,
                serial: 9.664e-11,
                memory: 4.74e+12,
                fetch: 8.42e+12,
                work: 1.931e-11,
                unit: 1.608e-10,
            },
            // Off by 22 % over 78.
            Kernel {
                start: 2.394e-5,
                serial: 2.789e-10,
                memory: 4.92e+12,
                fetch: 7.40e+12,
                work: 0.0,
                unit: 0.0,
            },
        ],
    ],
    smat: [
        [
            // Off by 18 % over 106.
            Kernel {
                start: 8.783e-6,
                serial: 1.205e-10,
                memory: 1.56e+13,
                fetch: 1.19e+13,
                work: 0.0,
                unit: 6.898e-10,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.207e-5,
                serial: 2.067e-10,
                memory: 2.21e+12,
                fetch: 3.65e+14,
                work: 1.251e-11,
                unit: 0.0,
            },
        ],
        [
            // Off by 16 % over 106.
            Kernel {
                start: 8.777e-6,
                serial: 1.679e-10,
                memory: 4.42e+12,
                fetch: 1.27e+13,
                work: 0.0,
                unit: 2.815e-10,
            },
            // Off by 18 % over 53.
            Kernel {
                start: 1.246e-5,
                serial: 0.0,
                memory: 8.90e+12,
                fetch: f64::INFINITY,
                work: 1.266e-10,
                unit: 9.504e-10,
            },
        ],
        [
            // Off by 17 % over 106.
            Kernel {
                start: 9.539e-6,
                serial: 3.791e-10,
                memory: 4.29e+12,
                fetch: 1.31e+13,
                work: 0.0,
                unit: 6.575e-10,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.169e-5,
                serial: 0.0,
                memory: 3.85e+12,
                fetch: 1.09e+13,
                work: 7.276e-11,
                unit: 0.0,
            },
        ],
    ],
    dense: [
        [
            // Off by 22 % over 40.
            Kernel {
                start: 7.661e-6,
                serial: 8.895e-13,
                memory: 2.39e+12,
                fetch: f64::INFINITY,
                work: 0.0,
                unit: 2.549e+6,
            },
            // Off by 30 % over 26.
            Kernel {
                start: 7.318e-6,
                serial: 5.517e-13,
                memory: 2.57e+12,
                fetch: 6.97e+13,
                work: 3.241e-12,
                unit: 1.166e-8,
            },
        ],
        [
            // Off by 9 % over 32.
            Kernel {
                start: 7.622e-6,
                serial: 4.639e-13,
                memory: 9.59e+12,
                fetch: f64::INFINITY,
                work: 3.036e-10,
                unit: 0.0,
            },
            // Off by 21 % over 16.
            Kernel {
                start: 1.096e-5,
                serial: 1.421e-13,
                memory: 2.69e+12,
                fetch: f64::INFINITY,
                work: 0.0,
                unit: 0.0,
            },
        ],
        [
            // Off by 18 % over 32.
            Kernel {
                start: 8.966e-6,
                serial: 9.635e-13,
                memory: f64::INFINITY,
                fetch: 8.48e+12,
                work: 4.876e-10,
                unit: 0.0,
            },
            // Off by 8 % over 22.
            Kernel {
                start: 1.179e-5,
                serial: 8.811e-13,
                memory: f64::INFINITY,
                fetch: 9.98e+11,
                work: 7.739e-11,
                unit: 6.753e-2,
            },
        ],
        [
            // Off by 10 % over 32.
            Kernel {
                start: 8.352e-6,
                serial: 2.499e-13,
                memory: 3.20e+12,
                fetch: 1.48e+14,
                work: 9.175e-11,
                unit: 5.944e-10,
            },
            // Off by 12 % over 22.
            Kernel {
                start: 1.008e-5,
                serial: 5.678e-13,
                memory: 2.14e+13,
                fetch: 1.86e+12,
                work: 6.681e-12,
                unit: 2.256e-8,
            },
        ],
    ],
};
