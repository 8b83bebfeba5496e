// SpMM `window`, see spmm/window.cuh.

#include "spmm/window.cuh"

using namespace tarsia;
using namespace tarsia::window;

#define PARAMETERS(T, Y)                                                                           \
    Matrix matrix, Dense<T, Y> dense, Scalar<float> alpha, Scalar<float> beta, Join joined,        \
        int32_t sharing

// 4 warps, or 8 that share a window; U blocks of columns under way at one time.
#define DIRECT(name, T, Y, kind, H, columns, U, blocks)                                            \
    extern "C" __global__ void __launch_bounds__(256, blocks)                                      \
        spmm_window_##name##_##kind(PARAMETERS(T, Y)) {                                            \
        direct<T, Y, H, columns / 32, U>(matrix, dense, alpha, beta, joined, sharing);             \
    }
// Warps of R times 16 rows: WN of them side by side; `blocks` of threads a multiprocessor.
#define STAGED(name, T, Y, kind, H, columns, stages, WN, R, blocks)                                \
    extern "C" __global__ void __launch_bounds__(2 * H / R * WN, blocks)                           \
        spmm_window_##name##_##kind(PARAMETERS(T, Y)) {                                            \
        staged<T, Y, H, columns, stages, WN, R>(matrix, dense, alpha, beta, joined);               \
    }
// Shared memory of compute capability 8.0 has room for 8 of the small blocks.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SMALL 8
#else
#define SMALL 12
#endif
#define COMBO(name, T, Y)                                                                          \
    DIRECT(name, T, Y, direct8_32, 8, 32, 2, 4)                                                    \
    DIRECT(name, T, Y, direct8_64, 8, 64, 1, 4)                                                    \
    DIRECT(name, T, Y, direct16_32, 16, 32, 2, 3)                                                  \
    DIRECT(name, T, Y, direct16_64, 16, 64, 2, 2)                                                  \
    STAGED(name, T, Y, staged16_128, 16, 128, 2, 2, 1, SMALL)                                      \
    STAGED(name, T, Y, staged16_128_parts, 16, 128, 2, 2, 1, 10)                                   \
    STAGED(name, T, Y, staged16_256, 16, 256, 2, 4, 1, SMALL / 2)                                  \
    STAGED(name, T, Y, staged16_256_parts, 16, 256, 2, 4, 1, 5)                                    \
    STAGED(name, T, Y, staged32_128, 32, 128, 3, 2, 1, 5)                                          \
    STAGED(name, T, Y, staged32_256, 32, 256, 2, 4, 2, 4)                                          \
    STAGED(name, T, Y, staged64_128, 64, 128, 2, 1, 1, 4)
COMBO(f16, f16, f16)
COMBO(f16f32, f16, float)
COMBO(bf16, bf16, bf16)
COMBO(bf16f32, bf16, float)
