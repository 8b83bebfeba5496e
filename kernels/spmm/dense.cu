// SpMM `dense`, see spmm/dense.cuh. Kernels have tile sizes for few, some and many rows and
// columns.

#include "ptx/launch.cuh"
#include "spmm/dense_terms.cuh"

using namespace tarsia;
using namespace tarsia::dense;

#define KERNEL_halves(name, types, size)                                                           \
    KERNEL_OF(UNITS, name, TYPES_##types, AsTheyAre, HALVES_##size)
#define HALVES_small 32, 32, 64, 6, 16, 16, 4
#define HALVES_medium 64, 64, 64, 4, 32, 32, 3
#define HALVES_large 128, 128, 64, 3, 64, 32, 2
#define KERNEL_tf32(name, size) KERNEL_OF(UNITS, name, TYPES_f32, Tf32, TF32_##size)
#define TF32_small 32, 32, 32, 5, 16, 16, 4
#define TF32_medium 64, 64, 32, 4, 32, 32, 3
#define TF32_large 128, 128, 32, 3, 64, 64, 2
#define KERNEL_f64(name, size) KERNEL_OF(UNITS, name, TYPES_f64, AsTheyAre, F64_##size)
#define F64_small 32, 32, 16, 5, 16, 16, 4
#define F64_medium 64, 64, 16, 4, 32, 32, 2
#define F64_large 128, 64, 16, 3, 64, 32, 2
#define UNITS(name, T, X, Y, Acc, factors, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, stages,         \
              WARP_ROWS, WARP_COLUMNS, blocks)                                                     \
    extern "C" __global__ void __launch_bounds__(                                                  \
        (BLOCK_ROWS / WARP_ROWS) * (BLOCK_COLUMNS / WARP_COLUMNS) * 32, blocks)                    \
        name(Operands<T> in, Target<Y> out, Scalar<Acc> alpha) {                                   \
        begin_product();                                                                           \
        by_matrix_units<T, Y, Acc, Factors::factors, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH,       \
                        stages, WARP_ROWS, WARP_COLUMNS>(in, out, alpha);                          \
    }
KERNELS(halves, (f16), (spmm_dense_f16_small, small), (spmm_dense_f16_medium, medium),
        (spmm_dense_f16_large, large))
KERNELS(halves, (f16f32), (spmm_dense_f16f32_small, small), (spmm_dense_f16f32_medium, medium),
        (spmm_dense_f16f32_large, large))
KERNELS(halves, (bf16), (spmm_dense_bf16_small, small), (spmm_dense_bf16_medium, medium),
        (spmm_dense_bf16_large, large))
KERNELS(halves, (bf16f32), (spmm_dense_bf16f32_small, small), (spmm_dense_bf16f32_medium, medium),
        (spmm_dense_bf16f32_large, large))
KERNELS(tf32, (), (spmm_dense_tf32_small, small), (spmm_dense_tf32_medium, medium),
        (spmm_dense_tf32_large, large))
KERNELS(f64, (), (spmm_dense_f64_small, small), (spmm_dense_f64_medium, medium),
        (spmm_dense_f64_large, large))

#define KERNEL_terms(name, size) KERNEL_OF(TERMS, name, TERMS_##size)
#define TERMS_small 32, 2
#define TERMS_medium 64, 2
#define TERMS_large 128, 1
#define TERMS(name, columns, blocks)                                                               \
    extern "C" __global__ void __launch_bounds__(256, blocks)                                      \
        name(Operands<float> in, Target<float> out, Scalar<float> alpha) {                         \
        begin_product();                                                                           \
        in_terms<columns>(in, out, alpha);                                                         \
    }
KERNELS(terms, (), (spmm_dense_terms_small, small), (spmm_dense_terms_medium, medium),
        (spmm_dense_terms_large, large))

#define KERNEL_f32(name, size) KERNEL_OF(FMA, name, FMA_##size)
#define FMA(name, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, stages, THREAD_ROWS, THREAD_COLUMNS,     \
            unroll, blocks)                                                                        \
    extern "C" __global__ void __launch_bounds__(                                                  \
        (BLOCK_ROWS / THREAD_ROWS) * (BLOCK_COLUMNS / THREAD_COLUMNS), blocks)                     \
        name(Operands<float> in, Target<float> out, Scalar<float> alpha) {                         \
        begin_product();                                                                           \
        by_fma<BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, stages, THREAD_ROWS, THREAD_COLUMNS,        \
               unroll>(in, out, alpha);                                                            \
    }
#define FMA_small 32, 32, 32, 4, 4, 4, 2, 6
#define FMA_medium 64, 64, 16, 4, 8, 4, 2, 4
// Compilers use more than the 128 registers of two blocks for compute capability 8.6 and 8.9.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900
#define FMA_large 128, 128, 16, 3, 8, 8, 1, 1
#else
#define FMA_large 128, 128, 16, 3, 8, 8, 1, 2
#endif
KERNELS(f32, (), (spmm_dense_f32_small, small), (spmm_dense_f32_medium, medium),
        (spmm_dense_f32_large, large))
