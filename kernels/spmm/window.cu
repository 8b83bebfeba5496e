// SpMM `window`, see spmm/window.cuh.

#include "spmm/window.cuh"

using namespace tarsia;
using namespace tarsia::window;

#define PARAMETERS(T, Y)                                                                           \
    Matrix matrix, Dense<T, Y> dense, Scalar<float> alpha, Scalar<float> beta, Join joined,        \
        int32_t sharing

// Blocks of 4 warps with an item each, or of 8 warps that share one; `flight` blocks of columns are
// in flight at one time.
#define KERNEL_direct(name, types, height, columns)                                                \
    KERNEL_OF(DIRECT, name, height, columns, DIRECT_##height##_##columns, TYPES_##types)
#define DIRECT(name, height, columns, flight, blocks, T, X, Y, Acc)                                \
    extern "C" __global__ void __launch_bounds__(256, blocks) name(PARAMETERS(T, Y)) {             \
        begin(matrix, dense);                                                                      \
        direct<T, Y, height, columns / 32, flight>(matrix, dense, alpha, beta, joined, sharing);   \
    }
#define DIRECT_8_32 2, 4
#define DIRECT_8_64 1, 4
#define DIRECT_16_32 2, 3
#define DIRECT_16_64 2, 2
KERNELS(direct, (f16), (spmm_window_f16_direct8_32, 8, 32), (spmm_window_f16_direct8_64, 8, 64),
        (spmm_window_f16_direct16_32, 16, 32), (spmm_window_f16_direct16_64, 16, 64))
KERNELS(direct, (f16f32), (spmm_window_f16f32_direct8_32, 8, 32),
        (spmm_window_f16f32_direct8_64, 8, 64), (spmm_window_f16f32_direct16_32, 16, 32),
        (spmm_window_f16f32_direct16_64, 16, 64))
KERNELS(direct, (bf16), (spmm_window_bf16_direct8_32, 8, 32), (spmm_window_bf16_direct8_64, 8, 64),
        (spmm_window_bf16_direct16_32, 16, 32), (spmm_window_bf16_direct16_64, 16, 64))
KERNELS(direct, (bf16f32), (spmm_window_bf16f32_direct8_32, 8, 32),
        (spmm_window_bf16f32_direct8_64, 8, 64), (spmm_window_bf16f32_direct16_32, 16, 32),
        (spmm_window_bf16f32_direct16_64, 16, 64))

// Warps of `down` times 16 rows, `across` of them side by side; `blocks` of threads per
// multiprocessor, fewer in the variants for windows that are cut into parts.
#define KERNEL_staged(name, types, height, columns)                                                \
    KERNEL_OF(STAGED, name, height, columns, STAGED_##height##_##columns, TYPES_##types)
#define KERNEL_staged_parts(name, types, height, columns)                                          \
    KERNEL_OF(STAGED, name, height, columns, STAGED_PARTS_##height##_##columns, TYPES_##types)
#define STAGED(name, height, columns, stages, across, down, blocks, T, X, Y, Acc)                  \
    extern "C" __global__ void __launch_bounds__(2 * height / down * across, blocks)               \
        name(PARAMETERS(T, Y)) {                                                                   \
        begin(matrix, dense);                                                                      \
        staged<T, Y, height, columns, stages, across, down>(matrix, dense, alpha, beta, joined);   \
    }
// Compute capability 8.0 has shared memory for 8 of the small blocks.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define SMALL 8
#else
#define SMALL 12
#endif
#define STAGED_16_128 2, 2, 1, SMALL
#define STAGED_16_256 2, 4, 1, SMALL / 2
#define STAGED_32_128 3, 2, 1, 5
#define STAGED_32_256 2, 4, 2, 4
#define STAGED_64_128 2, 1, 1, 4
#define STAGED_PARTS_16_128 2, 2, 1, 10
#define STAGED_PARTS_16_256 2, 4, 1, 5
KERNELS(staged, (f16), (spmm_window_f16_staged16_128, 16, 128),
        (spmm_window_f16_staged16_256, 16, 256), (spmm_window_f16_staged32_128, 32, 128),
        (spmm_window_f16_staged32_256, 32, 256), (spmm_window_f16_staged64_128, 64, 128))
KERNELS(staged, (f16f32), (spmm_window_f16f32_staged16_128, 16, 128),
        (spmm_window_f16f32_staged16_256, 16, 256), (spmm_window_f16f32_staged32_128, 32, 128),
        (spmm_window_f16f32_staged32_256, 32, 256), (spmm_window_f16f32_staged64_128, 64, 128))
KERNELS(staged, (bf16), (spmm_window_bf16_staged16_128, 16, 128),
        (spmm_window_bf16_staged16_256, 16, 256), (spmm_window_bf16_staged32_128, 32, 128),
        (spmm_window_bf16_staged32_256, 32, 256), (spmm_window_bf16_staged64_128, 64, 128))
KERNELS(staged, (bf16f32), (spmm_window_bf16f32_staged16_128, 16, 128),
        (spmm_window_bf16f32_staged16_256, 16, 256), (spmm_window_bf16f32_staged32_128, 32, 128),
        (spmm_window_bf16f32_staged32_256, 32, 256), (spmm_window_bf16f32_staged64_128, 64, 128))
KERNELS(staged_parts, (f16), (spmm_window_f16_staged16_128_parts, 16, 128),
        (spmm_window_f16_staged16_256_parts, 16, 256))
KERNELS(staged_parts, (f16f32), (spmm_window_f16f32_staged16_128_parts, 16, 128),
        (spmm_window_f16f32_staged16_256_parts, 16, 256))
KERNELS(staged_parts, (bf16), (spmm_window_bf16_staged16_128_parts, 16, 128),
        (spmm_window_bf16_staged16_256_parts, 16, 256))
KERNELS(staged_parts, (bf16f32), (spmm_window_bf16f32_staged16_128_parts, 16, 128),
        (spmm_window_bf16f32_staged16_256_parts, 16, 256))
