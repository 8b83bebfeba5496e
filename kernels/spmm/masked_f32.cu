// SpMM `window` in fp32, see spmm/masked_f32.cuh.

#include "spmm/masked_f32.cuh"

using namespace tarsia;
using namespace tarsia::masked;

// `warps`: a multiprocessor should have so many; four more cost 20 to 40 registers.
#define FORM(name, Kind, columns, steps, warps)                                                    \
    extern "C" __global__ void __launch_bounds__(32, warps)                                        \
        spmm_masked_##name##_16x##columns(Matrix matrix, DenseF32 dense, Scalar<float> alpha,      \
                                          Scalar<float> beta, Join<float> joined, int32_t tiles) { \
        run<Kind, columns, steps>(matrix, dense, alpha, beta, joined, tiles);                      \
    }
FORM(f32, InParts, 8, 3, 32)
FORM(f32, InParts, 32, 3, 20)
FORM(f32, InParts, 64, 3, 12)
FORM(f32, InParts, 128, 3, 8)
FORM(tf32, Rounded, 8, 3, 32)
FORM(tf32, Rounded, 32, 3, 20)
FORM(tf32, Rounded, 64, 3, 12)
FORM(tf32, Rounded, 128, 2, 11)
