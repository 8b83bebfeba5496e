//! Rates of machines, as `select::spmm::fit` prints them; what it finds to be next to nothing
//! is left out.

use super::{Kernel, Rates};

/// An H100. Per class of values, for few and for many columns of C.
pub const H100: Rates = Rates {
    row: [
        [
            Kernel {
                start: 1.117e-5,
                serial: 1.153e-54,
                memory: 5.223e25,
                fetch: 1.155e40,
                work: 7.954e-12,
                unit: 1.125e-10,
            }, // 0.220 over 106
            Kernel {
                start: 1.153e-5,
                serial: 3.482e-11,
                memory: 2.293e12,
                fetch: 5.257e14,
                work: 5.213e-12,
                unit: 4.728e-24,
            }, // 0.133 over 78
        ],
        [
            Kernel {
                start: 9.827e-6,
                serial: 1.785e-11,
                memory: 3.778e12,
                fetch: 2.188e13,
                work: 2.108e-12,
                unit: 4.916e-11,
            }, // 0.176 over 212
            Kernel {
                start: 8.646e-6,
                serial: 1.448e-10,
                memory: 2.757e12,
                fetch: 3.657e13,
                work: 3.074e-12,
                unit: 3.828e-24,
            }, // 0.155 over 131
        ],
        [
            Kernel {
                start: 1.029e-5,
                serial: 2.598e-11,
                memory: 4.185e12,
                fetch: 1.588e13,
                work: 8.965e-26,
                unit: 6.447e-11,
            }, // 0.177 over 106
            Kernel {
                start: 8.361e-6,
                serial: 2.407e-10,
                memory: 2.416e12,
                fetch: 4.604e13,
                work: 7.313e-12,
                unit: 1.123e-23,
            }, // 0.178 over 78
        ],
    ],
    sell: [
        [
            Kernel {
                start: 7.318e-6,
                serial: 1.443e-11,
                memory: 3.916e12,
                fetch: 9.243e12,
                work: 1.316e-26,
                unit: 1.639e-12,
            }, // 0.199 over 106
            Kernel {
                start: 8.085e-6,
                serial: 1.857e-10,
                memory: 3.282e12,
                fetch: 2.598e13,
                work: 5.798e-12,
                unit: 1.749e-24,
            }, // 0.182 over 53
        ],
        [
            Kernel {
                start: 7.120e-6,
                serial: 8.844e-11,
                memory: 3.530e12,
                fetch: 1.457e13,
                work: 2.189e-34,
                unit: 1.072e-24,
            }, // 0.172 over 212
            Kernel {
                start: 8.173e-6,
                serial: 2.178e-10,
                memory: 3.201e12,
                fetch: 1.388e13,
                work: 9.785e-13,
                unit: 6.530e-24,
            }, // 0.178 over 106
        ],
        [
            Kernel {
                start: 7.336e-6,
                serial: 4.997e-11,
                memory: 3.388e12,
                fetch: 9.884e12,
                work: 3.225e-25,
                unit: 2.884e-24,
            }, // 0.178 over 106
            Kernel {
                start: 1.122e-5,
                serial: 2.730e-10,
                memory: 2.614e12,
                fetch: 9.593e12,
                work: 4.274e-13,
                unit: 4.235e-24,
            }, // 0.190 over 53
        ],
    ],
    window: [
        [
            Kernel {
                start: 8.162e-6,
                serial: 9.080e-11,
                memory: 4.184e12,
                fetch: 1.208e26,
                work: 5.684e-11,
                unit: 2.515e-10,
            }, // 0.156 over 106
            Kernel {
                start: 1.241e-5,
                serial: 2.502e-10,
                memory: 5.457e12,
                fetch: 9.022e12,
                work: 8.280e-23,
                unit: 1.072e-10,
            }, // 0.218 over 78
        ],
        [
            Kernel {
                start: 1.279e-5,
                serial: 1.747e-10,
                memory: 1.292e13,
                fetch: 1.048e13,
                work: 9.303e-11,
                unit: 1.698e-10,
            }, // 0.198 over 106
            Kernel {
                start: 1.735e-5,
                serial: 4.982e-10,
                memory: 5.966e12,
                fetch: 1.331e13,
                work: 4.758e-11,
                unit: 9.558e-11,
            }, // 0.229 over 53
        ],
        [
            Kernel {
                start: 1.364e-5,
                serial: 1.301e-10,
                memory: 1.910e13,
                fetch: 5.811e12,
                work: 1.126e-10,
                unit: 1.925e-10,
            }, // 0.195 over 106
            Kernel {
                start: 2.083e-5,
                serial: 5.417e-10,
                memory: 5.904e12,
                fetch: 5.085e12,
                work: 2.274e-22,
                unit: 2.606e-10,
            }, // 0.204 over 78
        ],
        [
            Kernel {
                start: 1.391e-5,
                serial: 9.664e-11,
                memory: 4.736e12,
                fetch: 8.422e12,
                work: 1.931e-11,
                unit: 1.608e-10,
            }, // 0.192 over 106
            Kernel {
                start: 2.394e-5,
                serial: 2.789e-10,
                memory: 4.918e12,
                fetch: 7.395e12,
                work: 1.127e-22,
                unit: 3.950e-25,
            }, // 0.225 over 78
        ],
    ],
    smat: [
        [
            Kernel {
                start: 8.783e-6,
                serial: 1.205e-10,
                memory: 1.558e13,
                fetch: 1.192e13,
                work: 4.256e-24,
                unit: 6.898e-10,
            }, // 0.182 over 106
            Kernel {
                start: 1.207e-5,
                serial: 2.067e-10,
                memory: 2.210e12,
                fetch: 3.650e14,
                work: 1.251e-11,
                unit: 5.399e-22,
            }, // 0.192 over 53
        ],
        [
            Kernel {
                start: 8.777e-6,
                serial: 1.679e-10,
                memory: 4.421e12,
                fetch: 1.272e13,
                work: 3.555e-24,
                unit: 2.815e-10,
            }, // 0.165 over 106
            Kernel {
                start: 1.246e-5,
                serial: 8.397e-243,
                memory: 8.901e12,
                fetch: 1.482e17,
                work: 1.266e-10,
                unit: 9.504e-10,
            }, // 0.184 over 53
        ],
        [
            Kernel {
                start: 9.539e-6,
                serial: 3.791e-10,
                memory: 4.291e12,
                fetch: 1.308e13,
                work: 6.260e-24,
                unit: 6.575e-10,
            }, // 0.173 over 106
            Kernel {
                start: 1.169e-5,
                serial: 2.563e-27,
                memory: 3.853e12,
                fetch: 1.086e13,
                work: 7.276e-11,
                unit: 2.796e-21,
            }, // 0.194 over 53
        ],
    ],
    dense: [
        [
            Kernel {
                start: 7.661e-6,
                serial: 8.895e-13,
                memory: 2.389e12,
                fetch: 1.032e27,
                work: 3.007e-23,
                unit: 2.549e6,
            }, // 0.223 over 40
            Kernel {
                start: 7.318e-6,
                serial: 5.517e-13,
                memory: 2.566e12,
                fetch: 6.973e13,
                work: 3.241e-12,
                unit: 1.166e-8,
            }, // 0.301 over 26
        ],
        [
            Kernel {
                start: 7.622e-6,
                serial: 4.639e-13,
                memory: 9.586e12,
                fetch: 1.137e23,
                work: 3.036e-10,
                unit: 7.125e-19,
            }, // 0.093 over 32
            Kernel {
                start: 1.096e-5,
                serial: 1.421e-13,
                memory: 2.693e12,
                fetch: 1.367e26,
                work: 2.737e-25,
                unit: 1.927e-23,
            }, // 0.214 over 16
        ],
        [
            Kernel {
                start: 8.966e-6,
                serial: 9.635e-13,
                memory: 1.095e25,
                fetch: 8.484e12,
                work: 4.876e-10,
                unit: 4.065e-19,
            }, // 0.185 over 32
            Kernel {
                start: 1.179e-5,
                serial: 8.811e-13,
                memory: 1.334e26,
                fetch: 9.985e11,
                work: 7.739e-11,
                unit: 6.753e-2,
            }, // 0.084 over 22
        ],
        [
            Kernel {
                start: 8.352e-6,
                serial: 2.499e-13,
                memory: 3.197e12,
                fetch: 1.484e14,
                work: 9.175e-11,
                unit: 5.944e-10,
            }, // 0.095 over 32
            Kernel {
                start: 1.008e-5,
                serial: 5.678e-13,
                memory: 2.141e13,
                fetch: 1.862e12,
                work: 6.681e-12,
                unit: 2.256e-8,
            }, // 0.118 over 22
        ],
    ],
};
