// SpMM `window` in fp32, see spmm/masked_f32.cuh.

#include "ptx/launch.cuh"
#include "spmm/masked_f32.cuh"

using namespace tarsia;
using namespace tarsia::masked;

// `warps`: warps that fit a multiprocessor; four more would leave each thread 20 to 40 registers
// fewer.
#define KERNEL_product(name, kind, height, columns)                                                \
    KERNEL_OF(MASKED, name, columns, MASKED_##kind##_##columns)
#define MASKED(name, columns, Kind, steps, warps)                                                  \
    extern "C" __global__ void __launch_bounds__(32, warps)                                        \
        name(Matrix matrix, DenseF32 dense, Scalar<float> alpha, Scalar<float> beta, Join joined,  \
             int32_t tiles) {                                                                      \
        begin_product();                                                                           \
        run<Kind, columns, steps>(matrix, dense, alpha, beta, joined, tiles);                      \
    }
#define MASKED_f32_8 InTerms, 3, 32
#define MASKED_f32_32 InTerms, 3, 20
#define MASKED_f32_64 InTerms, 3, 12
#define MASKED_f32_128 InTerms, 3, 8
#define MASKED_tf32_8 Rounded, 3, 32
#define MASKED_tf32_32 Rounded, 3, 20
#define MASKED_tf32_64 Rounded, 3, 12
#define MASKED_tf32_128 Rounded, 2, 11
KERNELS(product, (f32), (spmm_masked_f32_16x8, 16, 8), (spmm_masked_f32_16x32, 16, 32),
        (spmm_masked_f32_16x64, 16, 64), (spmm_masked_f32_16x128, 16, 128))
KERNELS(product, (tf32), (spmm_masked_tf32_16x8, 16, 8), (spmm_masked_tf32_16x32, 16, 32),
        (spmm_masked_tf32_16x64, 16, 64), (spmm_masked_tf32_16x128, 16, 128))
