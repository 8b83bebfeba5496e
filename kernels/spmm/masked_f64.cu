// SpMM `window` in doubles, see spmm/masked_f64.cuh.

#include "spmm/masked_f64.cuh"

using namespace tarsia;
using namespace tarsia::masked;

#define PARAMETERS                                                                                 \
    Matrix matrix, DenseF64 dense, Scalar<double> alpha, Scalar<double> beta, Join<double> joined, \
        int32_t tiles, int32_t span, int32_t sharing

// 4 warps; U blocks of columns under way at one time.
#define DIRECT(name, V, H, columns, U, once, blocks)                                               \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                      \
        spmm_masked_##name##_direct##H##_##columns(PARAMETERS) {                                   \
        direct<V, H, columns, U, once>(matrix, dense, alpha, beta, joined, tiles, span, sharing);  \
    }
#define STAGED(name, V, H, columns, depth, stages, WM, WN, blocks)                                 \
    extern "C" __global__ void __launch_bounds__(32 * WM * WN, blocks)                             \
        spmm_masked_##name##_staged##H##_##columns(PARAMETERS) {                                   \
        staged<V, H, columns, depth, stages, WM, WN>(matrix, dense, alpha, beta, joined, tiles);   \
    }
#define COMBO(name, V)                                                                             \
    DIRECT(name, V, 16, 8, 2, true, 6)                                                             \
    DIRECT(name, V, 8, 32, 2, true, 5)                                                             \
    DIRECT(name, V, 16, 32, 2, true, 4)                                                            \
    STAGED(name, V, 16, 64, 16, 3, 1, 2, 8)                                                        \
    STAGED(name, V, 32, 32, 32, 2, 2, 1, 8)                                                        \
    STAGED(name, V, 32, 64, 16, 2, 2, 1, 8)                                                        \
    STAGED(name, V, 64, 64, 16, 3, 4, 1, 4)
COMBO(f64, double)
COMBO(f32f64, float)
