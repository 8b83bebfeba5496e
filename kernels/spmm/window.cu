// SpMM `window`, see spmm/window.cuh.

#include "spmm/window.cuh"

using namespace tarsia;
using namespace tarsia::window;

#define PARAMETERS(T, Y)                                                                           \
    Matrix matrix, Dense<T, Y> dense, Scalar<float> alpha, Scalar<float> beta, Join joined,        \
        int32_t sharing

// 4 warps, or 8 that share a window; U blocks of columns under way at one time.
#define DIRECT(name, T, Y, H, columns, U, blocks)                                                  \
    extern "C" __global__ void __launch_bounds__(256, blocks)                                      \
        spmm_window_##name##_direct##H##_##columns(PARAMETERS(T, Y)) {                             \
        direct<T, Y, H, columns / 32, U>(matrix, dense, alpha, beta, joined, sharing);             \
    }
// Warps of 16 rows: WN of them side by side; `blocks` of threads a multiprocessor.
#define STAGED(name, T, Y, H, stages, WN, blocks)                                                  \
    extern "C" __global__ void __launch_bounds__(2 * H * WN, blocks)                               \
        spmm_window_##name##_staged##H(PARAMETERS(T, Y)) {                                         \
        staged<T, Y, H, 128, stages, WN>(matrix, dense, alpha, beta, joined);                      \
    }
#define COMBO(name, T, Y)                                                                          \
    DIRECT(name, T, Y, 8, 32, 2, 4)                                                                \
    DIRECT(name, T, Y, 8, 64, 2, 3)                                                                \
    DIRECT(name, T, Y, 16, 32, 2, 3)                                                               \
    DIRECT(name, T, Y, 16, 64, 2, 2)                                                               \
    STAGED(name, T, Y, 16, 2, 2, 10)                                                               \
    STAGED(name, T, Y, 32, 3, 2, 5)                                                                \
    STAGED(name, T, Y, 64, 2, 1, 4)
COMBO(f16, f16, f16)
COMBO(f16f32, f16, float)
COMBO(bf16, bf16, bf16)
COMBO(bf16f32, bf16, float)
