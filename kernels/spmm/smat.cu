// SpMM `smat`, see spmm/smat.cuh.

#include "spmm/smat.cuh"

using namespace tarsia;
using namespace tarsia::smat;

// Blocks of W columns, tiles of NT columns of C, `blocks` of threads a multiprocessor.
#define KERNEL(suffix, name, T, Y, W, NT, stages, blocks, by_columns)                              \
    extern "C" __global__ void __launch_bounds__(32 * kWarps, blocks)                              \
        spmm_smat_##name##_##W##_##NT##suffix(Matrix matrix, Dense<T, Y> dense,                    \
                                              Scalar<Sum<T>> alpha, Scalar<Sum<T>> beta,           \
                                              Join joined, int32_t tiles) {                        \
        product<T, Y, W, NT, stages, by_columns>(matrix, dense, alpha, beta, joined, tiles);       \
    }
#define ROWS(...) KERNEL(, __VA_ARGS__, false)
#define BOTH(...) ROWS(__VA_ARGS__) KERNEL(_columns, __VA_ARGS__, true)

#define HALVES(name, T, Y)                                                                         \
    BOTH(name, T, Y, 16, 8, 4, 8)                                                                  \
    BOTH(name, T, Y, 16, 32, 3, 6)                                                                 \
    ROWS(name, T, Y, 16, 64, 2, 5)                                                                 \
    KERNEL(_columns, name, T, Y, 16, 64, 2, 4, true)                                               \
    BOTH(name, T, Y, 8, 8, 4, 8)                                                                   \
    ROWS(name, T, Y, 8, 32, 3, 6)                                                                  \
    ROWS(name, T, Y, 8, 64, 2, 5)
HALVES(f16, f16, f16)
HALVES(f16f32, f16, float)
HALVES(bf16, bf16, bf16)
HALVES(bf16f32, bf16, float)

// Of fp32 matrices; TF32 products.
BOTH(f32, float, float, 8, 8, 4, 8)
BOTH(f32, float, float, 8, 32, 3, 6)
BOTH(f32, float, float, 8, 64, 2, 4)

BOTH(f64, double, double, 8, 8, 3, 6)
BOTH(f64, double, double, 8, 32, 2, 4)
