// SpMM `smat`, see spmm/smat.cuh.

#include "ptx/launch.cuh"
#include "spmm/smat.cuh"

using namespace tarsia;
using namespace tarsia::smat;

// Number of stages in shared memory, and blocks of threads per multiprocessor for which they leave
// room.
template <class T, int COLUMNS>
constexpr int STAGES = 2 + (COLUMNS < 64) + (COLUMNS < 32) - (sizeof(T) == 8);
template <class T, int COLUMNS, bool by_columns>
constexpr int BLOCKS = COLUMNS == 64 ? (sizeof(T) == 4 || by_columns ? 4 : 5)
                                     : (COLUMNS == 8 ? 8 : 6) - (sizeof(T) == 8 ? 2 : 0);

// Blocks of WIDTH columns of A, tiles of COLUMNS columns of C, B and C stored by rows or by
// columns. fp32 matrices have TF32 products.
#define KERNEL_rows(name, types, WIDTH, COLUMNS)                                                   \
    KERNEL_OF(SMAT, name, WIDTH, COLUMNS, false, TYPES_##types)
#define KERNEL_columns(name, types, WIDTH, COLUMNS)                                                \
    KERNEL_OF(SMAT, name, WIDTH, COLUMNS, true, TYPES_##types)
#define SMAT(name, WIDTH, COLUMNS, by_columns, T, X, Y, Acc)                                       \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS<T, COLUMNS, by_columns>)       \
        name(Matrix matrix, Dense<T, Y> dense, Scalar<Sum<T>> alpha, Scalar<Sum<T>> beta,          \
             Join joined, int32_t tiles) {                                                         \
        begin_product();                                                                           \
        product<T, Y, WIDTH, COLUMNS, STAGES<T, COLUMNS>, by_columns>(matrix, dense, alpha, beta,  \
                                                                      joined, tiles);              \
    }
KERNELS(rows, (f16), (spmm_smat_f16_16_8, 16, 8), (spmm_smat_f16_16_32, 16, 32),
        (spmm_smat_f16_16_64, 16, 64), (spmm_smat_f16_8_8, 8, 8), (spmm_smat_f16_8_32, 8, 32),
        (spmm_smat_f16_8_64, 8, 64))
KERNELS(rows, (f16f32), (spmm_smat_f16f32_16_8, 16, 8), (spmm_smat_f16f32_16_32, 16, 32),
        (spmm_smat_f16f32_16_64, 16, 64), (spmm_smat_f16f32_8_8, 8, 8),
        (spmm_smat_f16f32_8_32, 8, 32), (spmm_smat_f16f32_8_64, 8, 64))
KERNELS(rows, (bf16), (spmm_smat_bf16_16_8, 16, 8), (spmm_smat_bf16_16_32, 16, 32),
        (spmm_smat_bf16_16_64, 16, 64), (spmm_smat_bf16_8_8, 8, 8), (spmm_smat_bf16_8_32, 8, 32),
        (spmm_smat_bf16_8_64, 8, 64))
KERNELS(rows, (bf16f32), (spmm_smat_bf16f32_16_8, 16, 8), (spmm_smat_bf16f32_16_32, 16, 32),
        (spmm_smat_bf16f32_16_64, 16, 64), (spmm_smat_bf16f32_8_8, 8, 8),
        (spmm_smat_bf16f32_8_32, 8, 32), (spmm_smat_bf16f32_8_64, 8, 64))
KERNELS(rows, (f32), (spmm_smat_f32_8_8, 8, 8), (spmm_smat_f32_8_32, 8, 32),
        (spmm_smat_f32_8_64, 8, 64))
KERNELS(rows, (f64), (spmm_smat_f64_8_8, 8, 8), (spmm_smat_f64_8_32, 8, 32))
KERNELS(columns, (f16), (spmm_smat_f16_16_8_columns, 16, 8), (spmm_smat_f16_16_32_columns, 16, 32),
        (spmm_smat_f16_16_64_columns, 16, 64), (spmm_smat_f16_8_8_columns, 8, 8))
KERNELS(columns, (f16f32), (spmm_smat_f16f32_16_8_columns, 16, 8),
        (spmm_smat_f16f32_16_32_columns, 16, 32), (spmm_smat_f16f32_16_64_columns, 16, 64),
        (spmm_smat_f16f32_8_8_columns, 8, 8))
KERNELS(columns, (bf16), (spmm_smat_bf16_16_8_columns, 16, 8),
        (spmm_smat_bf16_16_32_columns, 16, 32), (spmm_smat_bf16_16_64_columns, 16, 64),
        (spmm_smat_bf16_8_8_columns, 8, 8))
KERNELS(columns, (bf16f32), (spmm_smat_bf16f32_16_8_columns, 16, 8),
        (spmm_smat_bf16f32_16_32_columns, 16, 32), (spmm_smat_bf16f32_16_64_columns, 16, 64),
        (spmm_smat_bf16f32_8_8_columns, 8, 8))
KERNELS(columns, (f32), (spmm_smat_f32_8_8_columns, 8, 8), (spmm_smat_f32_8_32_columns, 8, 32),
        (spmm_smat_f32_8_64_columns, 8, 64))
KERNELS(columns, (f64), (spmm_smat_f64_8_8_columns, 8, 8), (spmm_smat_f64_8_32_columns, 8, 32))
