// SpMM `window` in doubles, see spmm/masked_f64.cuh.

#include "ptx/launch.cuh"
#include "spmm/masked_f64.cuh"

using namespace tarsia;
using namespace tarsia::masked;

// Windows of `height` rows, `columns` columns of C, stages of `depth` columns of A, `down` ×
// `across` warps, and `blocks` blocks of threads per multiprocessor.
#define KERNEL_product(name, types, height, columns)                                               \
    KERNEL_OF(MASKED, name, height, columns, MASKED_##height##_##columns, TYPES_##types)
#define MASKED(name, height, columns, depth, down, across, blocks, Value, X, Y, Acc)               \
    extern "C" __global__ void __launch_bounds__(32 * down * across, blocks)                       \
        name(Matrix matrix, DenseF64 dense, Scalar<double> alpha, Scalar<double> beta,             \
             Join joined, int32_t tiles) {                                                         \
        begin_product();                                                                           \
        multiply<Value, height, columns, depth, down, across>(matrix, dense, alpha, beta, joined,  \
                                                              tiles);                              \
    }
#define MASKED_16_8 32, 1, 1, 16
#define MASKED_32_8 16, 1, 1, 16
#define MASKED_64_8 16, 2, 1, 8
#define MASKED_16_32 16, 1, 1, 16
#define MASKED_32_32 32, 2, 1, 6
#define MASKED_64_32 32, 4, 1, 4
#define MASKED_16_64 16, 1, 2, 10
#define MASKED_32_128 16, 2, 2, 4
#define MASKED_64_64 16, 4, 1, 4
KERNELS(product, (f64), (spmm_masked_f64_16x8, 16, 8), (spmm_masked_f64_32x8, 32, 8),
        (spmm_masked_f64_64x8, 64, 8), (spmm_masked_f64_16x32, 16, 32),
        (spmm_masked_f64_32x32, 32, 32), (spmm_masked_f64_64x32, 64, 32),
        (spmm_masked_f64_16x64, 16, 64), (spmm_masked_f64_32x128, 32, 128),
        (spmm_masked_f64_64x64, 64, 64))
KERNELS(product, (f32f64), (spmm_masked_f32f64_16x8, 16, 8), (spmm_masked_f32f64_32x8, 32, 8),
        (spmm_masked_f32f64_64x8, 64, 8), (spmm_masked_f32f64_16x32, 16, 32),
        (spmm_masked_f32f64_32x32, 32, 32), (spmm_masked_f32f64_64x32, 64, 32),
        (spmm_masked_f32f64_16x64, 16, 64), (spmm_masked_f32f64_32x128, 32, 128),
        (spmm_masked_f32f64_64x64, 64, 64))
