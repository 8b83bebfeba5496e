//! Rates of machines, as `select::spmm::fit` prints them, with the error of each kernel over the number of
//! its cases; negligible terms are 0 or infinite.

use super::{Kernel, Rates};

/// A rate at which a term takes no time.
const INFINITY: f64 = f64::INFINITY;

/// A kernel's line of the tables below, in the order of the fields of [`Kernel`].
const fn kernel([start, serial, memory, fetch, near, work, unit]: [f64; 7]) -> Kernel {
    Kernel { start, serial, memory, fetch, near, work, unit }
}

/// Rates of an H100, by class of values, for few and for many columns of C.
pub const H100: Rates = Rates {
    row: [
        [
            kernel([7.670e-6, 2.502e-9, INFINITY, INFINITY, 5.49e+12, 7.877e-12, 9.670e-11]), // 18 % over 124
            kernel([8.684e-6, 0.0, 1.38e+13, 8.72e+13, 7.26e+12, 5.100e-12, 2.023e-11]),      // 16 % over 132
        ],
        [
            kernel([8.482e-6, 2.304e-9, 4.20e+13, 3.11e+13, 7.43e+12, 4.107e-12, 6.477e-11]), // 16 % over 230
            kernel([7.800e-6, 7.982e-10, 7.26e+12, 2.04e+14, 1.51e+13, 6.867e-12, 1.006e-11]), // 16 % over 185
        ],
        [
            kernel([6.887e-6, 0.0, INFINITY, 2.07e+13, 7.68e+12, 2.173e-12, 3.115e-10]), // 24 % over 106
            kernel([9.331e-6, 0.0, 3.92e+12, 3.63e+13, 1.46e+13, 6.765e-12, 0.0]),       // 15 % over 78
        ],
    ],
    sell: [
        [
            kernel([5.965e-6, 7.259e-10, INFINITY, 7.27e+12, 6.91e+12, 0.0, 0.0]), // 21 % over 124
            kernel([5.865e-6, 2.347e-8, INFINITY, 4.25e+13, INFINITY, 7.784e-12, 3.667e-11]), // 23 % over 117
        ],
        [
            kernel([6.652e-6, 1.343e-9, 8.00e+12, 1.21e+13, 5.82e+13, 0.0, 6.417e-12]), // 18 % over 230
            kernel([1.123e-5, 8.168e-9, 4.78e+12, 1.76e+13, INFINITY, 4.108e-12, 2.519e-11]), // 22 % over 170
        ],
        [
            kernel([6.451e-6, 0.0, 3.74e+12, 9.00e+12, INFINITY, 2.753e-12, 0.0]), // 20 % over 106
            kernel([9.294e-6, 3.829e-8, 3.43e+12, 1.10e+13, INFINITY, 0.0, 9.256e-11]), // 20 % over 63
        ],
    ],
    window: [
        [
            kernel([7.573e-6, 6.159e-12, 3.33e+12, INFINITY, INFINITY, 5.410e-11, 1.074e-9]), // 25 % over 124
            kernel([1.349e-5, 1.198e-9, 2.09e+13, 1.09e+14, 7.19e+12, 2.346e-11, 0.0]),       // 24 % over 132
        ],
        [
            kernel([1.156e-5, 1.330e-10, 1.84e+13, 1.07e+13, 4.11e+13, 1.154e-10, 0.0]), // 20 % over 106
            kernel([1.260e-5, 1.560e-9, 8.96e+12, 9.34e+12, 2.04e+13, 0.0, 0.0]),        // 25 % over 53
        ],
        [
            kernel([1.192e-5, 0.0, INFINITY, 7.20e+12, INFINITY, 1.607e-10, 5.497e-10]), // 22 % over 124
            kernel([2.401e-5, 3.529e-10, 7.13e+12, 5.87e+12, 6.48e+13, 2.204e-11, 0.0]), // 21 % over 132
        ],
        [
            kernel([1.109e-5, 1.758e-10, 9.77e+12, INFINITY, 7.67e+12, 8.953e-11, 3.153e-10]), // 22 % over 106
            kernel([1.754e-5, 3.226e-9, 1.04e+13, 1.86e+13, 7.91e+12, 0.0, 0.0]),              // 26 % over 78
        ],
    ],
    smat: [
        [
            kernel([7.636e-6, 9.421e-11, 2.41e+13, 3.99e+13, 1.24e+12, 2.191e-11, 0.0]), // 21 % over 124
            kernel([1.136e-5, 7.889e-11, INFINITY, 1.73e+13, 3.31e+12, 2.890e-12, 4.442e-10]), // 18 % over 107
        ],
        [
            kernel([7.750e-6, 5.738e-10, 4.28e+12, 1.58e+13, 1.24e+13, 0.0, 4.249e-10]), // 18 % over 106
            kernel([1.362e-5, 2.394e-10, 7.15e+12, 1.13e+13, 3.02e+13, 0.0, 1.306e-9]),  // 19 % over 53
        ],
        [
            kernel([8.498e-6, 3.470e-10, 8.78e+12, 8.35e+12, INFINITY, 0.0, 4.721e-9]), // 21 % over 106
            kernel([9.505e-6, 0.0, 3.86e+12, 1.01e+13, INFINITY, 6.090e-11, 5.939e-10]), // 20 % over 53
        ],
    ],
    dense: [
        [
            kernel([6.916e-6, 9.240e-13, INFINITY, INFINITY, INFINITY, 1.653e-10, 4.973e+21]), // 24 % over 58
            kernel([7.191e-6, 6.901e-13, 4.06e+12, 3.23e+13, 2.80e+11, 9.558e-12, 1.465e-8]),  // 20 % over 80
        ],
        [
            kernel([6.459e-6, 4.915e-13, 1.67e+13, INFINITY, INFINITY, 3.234e-10, 0.0]), // 13 % over 32
            kernel([8.596e-6, 1.901e-13, 3.01e+12, INFINITY, 8.38e+1, 5.244e-12, 0.0]),  // 24 % over 16
        ],
        [
            kernel([6.709e-6, 9.830e-13, INFINITY, INFINITY, INFINITY, 5.911e-10, 5.536e+17]), // 14 % over 50
            kernel([8.227e-6, 8.274e-13, 7.21e+12, 8.71e+11, 1.22e+7, 1.880e-11, 8.842e+15]),  // 11 % over 76
        ],
        [
            kernel([5.700e-6, 1.509e-13, 4.02e+12, INFINITY, 9.78e+12, 3.006e-10, 1.058e-5]), // 16 % over 32
            kernel([1.037e-5, 5.586e-13, 1.26e+13, 3.61e+12, 1.78e+11, 8.010e-12, 1.527e-9]), // 31 % over 22
        ],
    ],
    multiprocessors: 132,
    doubles: [0.0; 2],
    clusters: super::CLUSTERS,
};
