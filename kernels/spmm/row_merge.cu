// SpMM `row` without a plan on aligned rows of B and C, see spmm/row_merge.cuh.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "common/kernels.cuh"
#include "spmm/row_merge.cuh"

using namespace tarsia;

// Blocks per multiprocessor: registers for 20 to 36 warps. Compilers use more registers for
// architectures other than 9.0.
template <class X> constexpr int blocks(int packs) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
    constexpr bool HOPPER = true;
#else
    constexpr bool HOPPER = false;
#endif
    if (sizeof(X) == 8)
        return packs > 1 ? 5 : 7;
    if (sizeof(X) == 2)
        return same<X, bf16> ? 5 : 6;
    if (packs > 1)
        return HOPPER ? 6 : 5;
    return HOPPER ? 9 : 7;
}

#define KERNEL_merge(name, types, J, lanes, packs)                                                 \
    KERNEL_OF(MERGE, name, J, lanes, packs, TYPES_##types)
#define MERGE(name, J, lanes, packs, A, X, Y, Acc)                                                 \
    extern "C" __global__ void __launch_bounds__(BLOCK, blocks<X>(packs)) name(                    \
        Offsets offsets, const int##J##_t *indices, const A *values, int64_t base, MergePath path, \
        const X *b, uint32_t b_packs, Y *c, int64_t c_row, int32_t n, Scalar<Acc> alpha,           \
        Scalar<Acc> beta, Acc *partial, int64_t partial_stride, Prefetch lines) {                  \
        begin_product(lines, static_cast<const char *>(offsets.pointer), indices, values, b);      \
        using Tile = RowTile<A, int##J##_t, X, Y, Acc, lanes, int(16 / sizeof(X)), packs>;         \
        const Tile tile(indices, values, base, b, b_packs, c, c_row, n, !is_zero(alpha.get()));    \
        row_merge<Tile, Acc>({offsets, base}, path, tile, alpha, beta, {partial, partial_stride}); \
    }
KERNELS(merge, (f64, 32), (spmm_row_merge_f64_32_4_1, 4, 1), (spmm_row_merge_f64_32_8_1, 8, 1),
        (spmm_row_merge_f64_32_16_1, 16, 1), (spmm_row_merge_f64_32_16_2, 16, 2))
KERNELS(merge, (f64, 64), (spmm_row_merge_f64_64_4_1, 4, 1), (spmm_row_merge_f64_64_8_1, 8, 1),
        (spmm_row_merge_f64_64_16_1, 16, 1), (spmm_row_merge_f64_64_16_2, 16, 2))
KERNELS(merge, (f32f64, 32), (spmm_row_merge_f32f64_32_4_1, 4, 1),
        (spmm_row_merge_f32f64_32_8_1, 8, 1), (spmm_row_merge_f32f64_32_16_1, 16, 1),
        (spmm_row_merge_f32f64_32_16_2, 16, 2))
KERNELS(merge, (f32f64, 64), (spmm_row_merge_f32f64_64_4_1, 4, 1),
        (spmm_row_merge_f32f64_64_8_1, 8, 1), (spmm_row_merge_f32f64_64_16_1, 16, 1),
        (spmm_row_merge_f32f64_64_16_2, 16, 2))
KERNELS(merge, (f32, 32), (spmm_row_merge_f32_32_2_1, 2, 1), (spmm_row_merge_f32_32_4_1, 4, 1),
        (spmm_row_merge_f32_32_8_1, 8, 1), (spmm_row_merge_f32_32_8_2, 8, 2))
KERNELS(merge, (f32, 64), (spmm_row_merge_f32_64_2_1, 2, 1), (spmm_row_merge_f32_64_4_1, 4, 1),
        (spmm_row_merge_f32_64_8_1, 8, 1), (spmm_row_merge_f32_64_8_2, 8, 2))
KERNELS(merge, (f16, 32), (spmm_row_merge_f16_32_4_1, 4, 1), (spmm_row_merge_f16_32_8_1, 8, 1),
        (spmm_row_merge_f16_32_16_1, 16, 1))
KERNELS(merge, (f16, 64), (spmm_row_merge_f16_64_4_1, 4, 1), (spmm_row_merge_f16_64_8_1, 8, 1),
        (spmm_row_merge_f16_64_16_1, 16, 1))
KERNELS(merge, (f16f32, 32), (spmm_row_merge_f16f32_32_4_1, 4, 1),
        (spmm_row_merge_f16f32_32_8_1, 8, 1), (spmm_row_merge_f16f32_32_16_1, 16, 1))
KERNELS(merge, (f16f32, 64), (spmm_row_merge_f16f32_64_4_1, 4, 1),
        (spmm_row_merge_f16f32_64_8_1, 8, 1), (spmm_row_merge_f16f32_64_16_1, 16, 1))
KERNELS(merge, (bf16, 32), (spmm_row_merge_bf16_32_4_1, 4, 1), (spmm_row_merge_bf16_32_8_1, 8, 1),
        (spmm_row_merge_bf16_32_16_1, 16, 1))
KERNELS(merge, (bf16, 64), (spmm_row_merge_bf16_64_4_1, 4, 1), (spmm_row_merge_bf16_64_8_1, 8, 1),
        (spmm_row_merge_bf16_64_16_1, 16, 1))
KERNELS(merge, (bf16f32, 32), (spmm_row_merge_bf16f32_32_4_1, 4, 1),
        (spmm_row_merge_bf16f32_32_8_1, 8, 1), (spmm_row_merge_bf16f32_32_16_1, 16, 1))
KERNELS(merge, (bf16f32, 64), (spmm_row_merge_bf16f32_64_4_1, 4, 1),
        (spmm_row_merge_bf16f32_64_8_1, 8, 1), (spmm_row_merge_bf16f32_64_16_1, 16, 1))
