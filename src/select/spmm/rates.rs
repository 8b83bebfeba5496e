//! Rates of machines, as `select::spmm::fit` prints them; what it finds to be next to nothing
//! is left out.

use super::{Kernel, Rates};

/// An H100. Per class of values, for few and for many columns of C.
pub const H100: Rates = Rates {
    row: [
        [
            // Off by 20 % over 106.
            Kernel {
                start: 1.051e-05,
                serial: 8.365e-11,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                work: 8.842e-12,
                unit: 7.102e-11,
            },
            // Off by 14 % over 78.
            Kernel {
                start: 1.268e-05,
                serial: 1.111e-10,
                memory: 2.50e+12,
                fetch: 1.53e+13,
                work: 1.217e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 18 % over 212.
            Kernel {
                start: 1.018e-05,
                serial: 9.190e-11,
                memory: 3.29e+12,
                fetch: 2.15e+13,
                work: 2.052e-12,
                unit: 3.109e-11,
            },
            // Off by 17 % over 131.
            Kernel {
                start: 1.142e-05,
                serial: 2.417e-10,
                memory: 2.68e+12,
                fetch: 1.21e+14,
                work: 5.417e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 17 % over 106.
            Kernel {
                start: 1.041e-05,
                serial: 2.604e-10,
                memory: 3.67e+12,
                fetch: 1.61e+13,
                work: 0.0,
                unit: 3.621e-11,
            },
            // Off by 18 % over 78.
            Kernel {
                start: 1.038e-05,
                serial: 5.885e-10,
                memory: 2.41e+12,
                fetch: 3.06e+13,
                work: 4.488e-12,
                unit: 0.0,
            },
        ],
    ],
    sell: [
        [
            // Off by 20 % over 106.
            Kernel {
                start: 7.318e-06,
                serial: 1.443e-11,
                memory: 3.92e+12,
                fetch: 9.24e+12,
                work: 0.0,
                unit: 1.639e-12,
            },
            // Off by 18 % over 53.
            Kernel {
                start: 8.085e-06,
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
                start: 7.120e-06,
                serial: 8.844e-11,
                memory: 3.53e+12,
                fetch: 1.46e+13,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 18 % over 106.
            Kernel {
                start: 8.173e-06,
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
                start: 7.336e-06,
                serial: 4.997e-11,
                memory: 3.39e+12,
                fetch: 9.88e+12,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.122e-05,
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
                start: 8.162e-06,
                serial: 9.080e-11,
                memory: 4.18e+12,
                fetch: f64::INFINITY,
                work: 5.684e-11,
                unit: 2.515e-10,
            },
            // Off by 22 % over 78.
            Kernel {
                start: 1.304e-05,
                serial: 2.549e-10,
                memory: 7.52e+12,
                fetch: 8.90e+12,
                work: 0.0,
                unit: 2.257e-10,
            },
        ],
        [
            // Off by 20 % over 106.
            Kernel {
                start: 1.279e-05,
                serial: 1.747e-10,
                memory: 1.29e+13,
                fetch: 1.05e+13,
                work: 9.303e-11,
                unit: 1.698e-10,
            },
            // Off by 23 % over 53.
            Kernel {
                start: 1.735e-05,
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
                start: 1.364e-05,
                serial: 1.301e-10,
                memory: 1.91e+13,
                fetch: 5.81e+12,
                work: 1.126e-10,
                unit: 1.925e-10,
            },
            // Off by 20 % over 78.
            Kernel {
                start: 2.083e-05,
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
                start: 1.391e-05,
                serial: 9.664e-11,
                memory: 4.74e+12,
                fetch: 8.42e+12,
                work: 1.931e-11,
                unit: 1.608e-10,
            },
            // Off by 22 % over 78.
            Kernel {
                start: 2.394e-05,
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
                start: 8.783e-06,
                serial: 1.205e-10,
                memory: 1.56e+13,
                fetch: 1.19e+13,
                work: 0.0,
                unit: 6.898e-10,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.207e-05,
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
                start: 8.777e-06,
                serial: 1.679e-10,
                memory: 4.42e+12,
                fetch: 1.27e+13,
                work: 0.0,
                unit: 2.815e-10,
            },
            // Off by 18 % over 53.
            Kernel {
                start: 1.246e-05,
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
                start: 9.539e-06,
                serial: 3.791e-10,
                memory: 4.29e+12,
                fetch: 1.31e+13,
                work: 0.0,
                unit: 6.575e-10,
            },
            // Off by 19 % over 53.
            Kernel {
                start: 1.169e-05,
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
            // Off by 26 % over 40.
            Kernel {
                start: 7.297e-06,
                serial: 8.591e-13,
                memory: 2.34e+12,
                fetch: f64::INFINITY,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 38 % over 26.
            Kernel {
                start: 7.180e-06,
                serial: 1.006e-12,
                memory: 2.57e+12,
                fetch: 5.30e+13,
                work: 2.696e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 33 % over 32.
            Kernel {
                start: 1.103e-05,
                serial: 8.859e-13,
                memory: 2.70e+12,
                fetch: 1.79e+13,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 38 % over 16.
            Kernel {
                start: 1.287e-05,
                serial: 6.592e-13,
                memory: 2.76e+12,
                fetch: f64::INFINITY,
                work: 0.0,
                unit: 0.0,
            },
        ],
        [
            // Off by 24 % over 32.
            Kernel {
                start: 1.804e-05,
                serial: 2.040e-12,
                memory: f64::INFINITY,
                fetch: f64::INFINITY,
                work: 5.106e-10,
                unit: 0.0,
            },
            // Off by 25 % over 22.
            Kernel {
                start: 1.495e-05,
                serial: 1.956e-12,
                memory: 1.42e+13,
                fetch: 8.02e+11,
                work: 6.457e-12,
                unit: 0.0,
            },
        ],
        [
            // Off by 27 % over 32.
            Kernel {
                start: 8.867e-06,
                serial: 1.462e-10,
                memory: 2.85e+12,
                fetch: f64::INFINITY,
                work: 0.0,
                unit: 0.0,
            },
            // Off by 22 % over 22.
            Kernel {
                start: 9.767e-06,
                serial: 1.454e-10,
                memory: 2.77e+13,
                fetch: 1.81e+12,
                work: 1.025e-12,
                unit: 0.0,
            },
        ],
    ],
};
