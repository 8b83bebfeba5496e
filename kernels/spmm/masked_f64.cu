// SpMM `window` in doubles, see spmm/masked_f64.cuh.

#include "spmm/masked_f64.cuh"

using namespace tarsia;
using namespace tarsia::masked;

// Windows of H rows, `columns` columns of C, stages of `depth` columns of A, WM warps one below
// the other and WN side by side; `blocks` of threads a multiprocessor.
#define KERNEL(name, V, H, columns, depth, WM, WN, blocks)                                         \
    extern "C" __global__ void __launch_bounds__(32 * WM * WN, blocks)                             \
        spmm_masked_##name##_##H##x##columns(Matrix matrix, DenseF64 dense, Scalar<double> alpha,  \
                                             Scalar<double> beta, Join<double> joined,             \
                                             int32_t tiles) {                                      \
        multiply<V, H, columns, depth, WM, WN>(matrix, dense, alpha, beta, joined, tiles);         \
    }
#define COMBO(name, V)                                                                             \
    KERNEL(name, V, 16, 8, 32, 1, 1, 16)                                                           \
    KERNEL(name, V, 32, 8, 16, 1, 1, 16)                                                           \
    KERNEL(name, V, 64, 8, 16, 2, 1, 8)                                                            \
    KERNEL(name, V, 16, 32, 16, 1, 1, 16)                                                          \
    KERNEL(name, V, 32, 32, 32, 2, 1, 6)                                                           \
    KERNEL(name, V, 64, 32, 32, 4, 1, 4)                                                           \
    KERNEL(name, V, 16, 64, 16, 1, 2, 10)                                                          \
    KERNEL(name, V, 32, 128, 16, 2, 2, 4)                                                          \
    KERNEL(name, V, 64, 64, 16, 4, 1, 4)
COMBO(f64, double)
COMBO(f32f64, float)
