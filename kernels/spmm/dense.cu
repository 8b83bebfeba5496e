// SpMM `dense`, see spmm/dense.cuh. Tiles for few, some and many rows and columns.

#include "spmm/dense.cuh"

using namespace tarsia;
using namespace tarsia::dense;

#define UNITS(name, T, Y, Acc, tf32, size, BM, BN, BK, stages, WM, WN, blocks)                     \
    extern "C" __global__ void __launch_bounds__((BM / WM) * (BN / WN) * 32, blocks)               \
        spmm_dense_##name##_##size(Operands<T> in, Target<Y> out, Scalar<Acc> alpha) {             \
        by_matrix_units<T, Y, Acc, tf32, BM, BN, BK, stages, WM, WN>(in, out, alpha);              \
    }
#define HALVES(name, T, Y)                                                                         \
    UNITS(name, T, Y, float, false, small, 32, 32, 64, 6, 16, 16, 4)                               \
    UNITS(name, T, Y, float, false, medium, 64, 64, 64, 4, 32, 32, 3)                              \
    UNITS(name, T, Y, float, false, large, 128, 128, 64, 3, 64, 32, 2)
HALVES(f16, f16, f16)
HALVES(f16f32, f16, float)
HALVES(bf16, bf16, bf16)
HALVES(bf16f32, bf16, float)
UNITS(tf32, float, float, float, true, small, 32, 32, 32, 5, 16, 16, 4)
UNITS(tf32, float, float, float, true, medium, 64, 64, 32, 4, 32, 32, 3)
UNITS(tf32, float, float, float, true, large, 128, 128, 32, 3, 64, 64, 2)
UNITS(f64, double, double, double, false, small, 32, 32, 16, 5, 16, 16, 4)
UNITS(f64, double, double, double, false, medium, 64, 64, 16, 4, 32, 32, 2)
UNITS(f64, double, double, double, false, large, 128, 64, 16, 3, 64, 32, 2)

#define FMA(size, BM, BN, BK, stages, TM, TN, unroll, blocks)                                      \
    extern "C" __global__ void __launch_bounds__((BM / TM) * (BN / TN), blocks)                    \
        spmm_dense_f32_##size(Operands<float> in, Target<float> out, Scalar<float> alpha) {        \
        by_fma<BM, BN, BK, stages, TM, TN, unroll>(in, out, alpha);                                \
    }
FMA(small, 32, 32, 32, 4, 4, 4, 2, 6)
FMA(medium, 64, 64, 16, 4, 8, 4, 2, 4)
FMA(large, 128, 128, 16, 3, 8, 8, 1, 2)
