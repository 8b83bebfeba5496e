//! Rates of machines, as `select::spmm::fit` prints them, with the error of each kernel over the number of
//! its cases; negligible terms are 0 or infinite. `row` and `sell` are fitted to sampled products on an H200, whose
//! memory is faster by a ratio that the fit takes out, the others to 53 matrices on an H100 and earlier kernels.

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
            kernel([6.765e-6, 2.436e-9, 1.40e+13, INFINITY, 8.13e+12, 9.747e-12, 7.235e-11]), // 15 % over 3776
            kernel([7.150e-6, 7.994e-9, 8.76e+12, 1.60e+15, 3.73e+13, 6.431e-12, 2.910e-11]), // 13 % over 1565
        ],
        [
            kernel([7.089e-6, 2.496e-9, 9.81e+12, 2.23e+13, 1.20e+13, 5.696e-12, 2.561e-11]), // 15 % over 3920
            kernel([3.040e-6, 2.147e-8, 2.45e+13, 3.33e+13, 1.57e+13, 3.247e-12, 0.0]),       // 17 % over 682
        ],
        [
            kernel([7.365e-6, 2.777e-9, 7.47e+12, 1.19e+13, 1.21e+13, 2.444e-13, 4.538e-11]), // 14 % over 4771
            kernel([7.311e-6, 9.470e-9, 9.42e+12, 1.86e+13, 1.61e+13, 8.286e-13, 6.487e-11]), // 14 % over 1966
        ],
    ],
    row_groups: [
        [
            kernel([5.897e-6, 2.934e-9, 1.07e+13, 1.89e+14, 2.19e+13, 5.811e-12, 3.199e-11]), // 12 % over 5953
            kernel([5.899e-6, 4.853e-9, 4.09e+12, 8.34e+13, 3.26e+13, 3.490e-12, 1.647e-11]), // 10 % over 5487
        ],
        [
            kernel([5.662e-6, 3.013e-9, 1.40e+13, 2.08e+13, 3.10e+13, 1.463e-12, 5.603e-11]), // 10 % over 9341
            kernel([5.540e-6, 5.202e-9, 1.14e+13, 8.04e+14, 1.97e+13, 5.069e-12, 2.771e-11]), // 11 % over 11023
        ],
        [
            kernel([5.760e-6, 2.960e-9, 2.63e+13, 1.84e+13, 2.51e+13, 2.034e-12, 8.921e-11]), // 11 % over 4860
            kernel([5.914e-6, 3.968e-9, 6.44e+12, INFINITY, 1.88e+13, 1.134e-11, 4.031e-11]), // 12 % over 5099
        ],
    ],
    sell: [
        [
            kernel([6.173e-6, 1.890e-9, 3.14e+12, 1.04e+13, 1.52e+13, 0.0, 2.825e-12]), // 12 % over 9849
            kernel([6.141e-6, 2.428e-9, 9.73e+12, 2.46e+13, INFINITY, 6.996e-12, 2.378e-11]), // 11 % over 6812
        ],
        [
            kernel([5.819e-6, 2.067e-9, 4.07e+12, 1.66e+13, 2.99e+13, 2.053e-12, 7.776e-12]), // 12 % over 13283
            kernel([5.735e-6, 2.415e-9, 9.69e+12, 1.12e+13, 1.13e+14, 8.207e-13, 3.717e-11]), // 12 % over 11598
        ],
        [
            kernel([5.713e-6, 2.011e-9, 3.82e+12, 8.56e+12, 6.47e+13, 0.0, 2.166e-11]), // 13 % over 9843
            kernel([5.436e-6, 2.903e-9, 1.26e+13, 1.07e+15, INFINITY, 3.362e-11, 1.098e-10]), // 14 % over 6796
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
