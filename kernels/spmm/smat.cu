// SpMM `smat`, see spmm/smat.cuh.

#include "spmm/smat.cuh"

using namespace tarsia;
using namespace tarsia::smat;

// Blocks of W columns, tiles of NT columns of C, `blocks` of threads a multiprocessor.
#define TILE(name, T, Y, W, NT, stages, blocks)                                                    \
    extern "C" __global__ void __launch_bounds__(32 * kWarps, blocks)                              \
        spmm_smat_##name##_##W##_##NT(Matrix matrix, Dense<T, Y> dense, Scalar<Sum<T>> alpha,      \
                                      Scalar<Sum<T>> beta, Join joined, int32_t tiles) {           \
        product<T, Y, W, NT, stages>(matrix, dense, alpha, beta, joined, tiles);                   \
    }
#define HALF(name, T, Y, W)                                                                        \
    TILE(name, T, Y, W, 8, 4, 8)                                                                   \
    TILE(name, T, Y, W, 32, 3, 6)                                                                  \
    TILE(name, T, Y, W, 64, 2, 5)
#define HALVES(name, T, Y) HALF(name, T, Y, 16) HALF(name, T, Y, 8)
HALVES(f16, f16, f16)
HALVES(f16f32, f16, float)
HALVES(bf16, bf16, bf16)
HALVES(bf16f32, bf16, float)

// Of fp32 matrices; TF32 products.
TILE(f32, float, float, 8, 8, 4, 8)
TILE(f32, float, float, 8, 32, 3, 6)
TILE(f32, float, float, 8, 64, 2, 4)

TILE(f64, double, double, 8, 8, 3, 6)
TILE(f64, double, double, 8, 32, 2, 4)
