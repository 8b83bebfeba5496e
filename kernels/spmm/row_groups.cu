// SpMM `row` on aligned rows of B and C, see spmm/row_groups.cuh.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "common/kernels.cuh"
#include "ptx/launch.cuh"
#include "spmm/row_groups.cuh"

using namespace tarsia;

// Blocks per multiprocessor: registers for 20 to 40 warps. Compilers use more registers for
// architectures other than 9.0.
template <class A, class X> constexpr int blocks(int lanes, int packs) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    if (sizeof(X) == 8)
        return packs > 1 ? 5 : lanes < 8 ? 6 : 7;
    if (same<X, bf16>)
        return 5;
    if (sizeof(X) == 4)
        return packs > 1 ? 6 : 8;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    if (sizeof(A) == 8 && packs > 1)
        return 5;
#endif
    if (packs > 1)
        return sizeof(X) == 8 ? 6 : 8;
    if (same<X, bf16>)
        return 6;
    return sizeof(X) != 4 ? 8 : lanes == 32 ? 9 : 10;
}

#define KERNEL_groups(name, types, lanes, packs)                                                   \
    KERNEL_OF(GROUPS, name, lanes, packs, TYPES_##types)
#define GROUPS(name, lanes, packs, A, X, Y, Acc)                                                   \
    extern "C" __global__ void __launch_bounds__(BLOCK, blocks<A, X>(lanes, packs))                \
        name(const int32_t *indices, const A *values, int32_t base, GroupTasks tasks, const X *b,  \
             uint32_t b_packs, Y *c, int64_t c_row, int32_t n, Scalar<Acc> alpha,                  \
             Scalar<Acc> beta, Acc *partial, int64_t partial_stride, int32_t together) {           \
        begin_product();                                                                           \
        row_groups<A, X, Y, Acc, lanes, int(16 / sizeof(X)), packs>(                               \
            indices, values, base, tasks, b, b_packs, c, c_row, n, alpha, beta,                    \
            {partial, partial_stride}, together);                                                  \
    }
KERNELS(groups, (f64), (spmm_row_groups_f64_8_1, 8, 1), (spmm_row_groups_f64_16_1, 16, 1),
        (spmm_row_groups_f64_32_1, 32, 1), (spmm_row_groups_f64_8_2, 8, 2),
        (spmm_row_groups_f64_16_2, 16, 2), (spmm_row_groups_f64_32_2, 32, 2),
        (spmm_row_groups_f64_4_1, 4, 1))
KERNELS(groups, (f32f64), (spmm_row_groups_f32f64_8_1, 8, 1), (spmm_row_groups_f32f64_16_1, 16, 1),
        (spmm_row_groups_f32f64_32_1, 32, 1), (spmm_row_groups_f32f64_8_2, 8, 2),
        (spmm_row_groups_f32f64_16_2, 16, 2), (spmm_row_groups_f32f64_32_2, 32, 2),
        (spmm_row_groups_f32f64_4_1, 4, 1))
KERNELS(groups, (f32), (spmm_row_groups_f32_4_1, 4, 1), (spmm_row_groups_f32_8_1, 8, 1),
        (spmm_row_groups_f32_16_1, 16, 1), (spmm_row_groups_f32_32_1, 32, 1),
        (spmm_row_groups_f32_8_2, 8, 2), (spmm_row_groups_f32_16_2, 16, 2),
        (spmm_row_groups_f32_2_1, 2, 1))
KERNELS(groups, (f16), (spmm_row_groups_f16_4_1, 4, 1), (spmm_row_groups_f16_8_1, 8, 1),
        (spmm_row_groups_f16_16_1, 16, 1), (spmm_row_groups_f16_32_1, 32, 1))
KERNELS(groups, (f16f32), (spmm_row_groups_f16f32_4_1, 4, 1), (spmm_row_groups_f16f32_8_1, 8, 1),
        (spmm_row_groups_f16f32_16_1, 16, 1), (spmm_row_groups_f16f32_32_1, 32, 1))
KERNELS(groups, (bf16), (spmm_row_groups_bf16_4_1, 4, 1), (spmm_row_groups_bf16_8_1, 8, 1),
        (spmm_row_groups_bf16_16_1, 16, 1), (spmm_row_groups_bf16_32_1, 32, 1))
KERNELS(groups, (bf16f32), (spmm_row_groups_bf16f32_4_1, 4, 1), (spmm_row_groups_bf16f32_8_1, 8, 1),
        (spmm_row_groups_bf16f32_16_1, 16, 1), (spmm_row_groups_bf16f32_32_1, 32, 1))
