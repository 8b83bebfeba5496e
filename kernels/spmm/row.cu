// SpMM `row`, see spmm/row.cuh.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "ptx/launch.cuh"
#include "spmm/row.cuh"

using namespace tarsia;

// Bits of `flags`: 1, C's rows are aligned for packs; 2, sums are stored to C unscaled, in the
// accumulator's type; 4, B is conjugated (narrow); 8, B's rows are aligned for packs (narrow); 16,
// the kernel ends after the one before it (a product without a plan, which programmatic dependent
// launch allows to begin early); 32, it computes nothing where spmm/columns.cu has; from bit 8 on,
// log2 of the tiles that are neighbours in the grid.
#define PARAMETERS(A, X, Y, Acc, J)                                                                \
    Offsets offsets, const J *indices, const A *values, int64_t base, Tasks tasks, const X *b,     \
        int64_t b_row, int64_t b_col, Y *c, int64_t c_row, int64_t c_col, const uint32_t *order,   \
        int64_t n, Scalar<Acc> alpha, Scalar<Acc> beta, Acc *partial, int64_t partial_stride,      \
        int64_t flags

// Warps per multiprocessor, which determine the registers of a thread: 64 for 32 warps, 72 for 28,
// 80 for 24. Compilers use more registers for architectures other than 9.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define WARPS_OF_DOUBLES 28
#define WARPS_OF_COMPLEX_8 20
#define WARPS_OF_FLOATS_16 32
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define WARPS_OF_DOUBLES 28
#define WARPS_OF_COMPLEX_8 24
#define WARPS_OF_FLOATS_16 28
#else
#define WARPS_OF_DOUBLES 32
#define WARPS_OF_COMPLEX_8 24
#define WARPS_OF_FLOATS_16 32
#endif
// Half types have twice as many sums, complex types more of everything.
#define WARPS(A, X, J)                                                                             \
    (same<X, bf16>                       ? 20                                                      \
     : sizeof(X) == 16 && sizeof(J) == 8 ? 20                                                      \
     : sizeof(X) == 2 || __is_class(X)   ? 24                                                      \
     : sizeof(J) == 8                    ? (sizeof(X) == 8 ? 24 : 28)                              \
     : sizeof(X) == 8                    ? (sizeof(A) < 8 ? 28 : WARPS_OF_DOUBLES)                 \
                                         : 32)
// A product without a plan reads nothing that the kernel before it (which makes the lists)
// writes, so it does not wait at its beginning. But the kernel after it reads the lists, and waits
// only for this kernel to end: so this one must not end before the one that makes the lists. The
// decision of spmm/columns.cu can be read without a wait, too: the kernel that makes the lists
// begins after it, and this kernel after that one has begun.
#define BEGIN                                                                                      \
    if (!(flags & 16))                                                                             \
        begin_product();                                                                           \
    if ((flags & 32) && tasks.lengths[2] != 0) {                                                   \
        END_AFTER_PREVIOUS                                                                         \
        return;                                                                                    \
    }
#define END_AFTER_PREVIOUS                                                                         \
    if ((flags & 16) && blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)                           \
        wait_for_previous();
// The host does not know the lengths of the lists, so a block takes every `blocks`th item from item
// `block` on: a part of a long row, or four rows, one per warp. The barrier keeps a warp from
// writing shared memory that others still read.
#define BY_TURNS(blocks, block, turn)                                                              \
    let_next_begin();                                                                              \
    wait_for_previous();                                                                           \
    const int64_t items = tasks.lengths[1] + (tasks.lengths[0] + 3) / 4;                           \
    for (int turn = 0; turn * int64_t(blocks) + (block) < items; ++turn, __syncthreads())
#define WIDE_LISTS(name, A, X, Y, Acc, J, lanes, width, packs, b_packs, warps)                     \
    extern "C" __global__ void __launch_bounds__(BLOCK, (warps)*32 / BLOCK)                        \
        name(PARAMETERS(A, X, Y, Acc, J)) {                                                        \
        BY_TURNS(gridDim.x >> (flags >> 8), blockIdx.x >> (flags >> 8), turn)                      \
        row_wide<true, A, X, Y, Acc, J, lanes, width, packs, b_packs>(                             \
            {offsets, indices, values, base}, tasks, {b, b_row, b_col},                            \
            {{c, c_row, c_col}, order}, n, alpha, beta, {partial, partial_stride}, flags, turn);   \
    }
// The loop over turns takes registers of its own: four warps fewer than for 64-bit columns.
#define WARPS_OF_LISTS(A, X) (WARPS(A, X, int64_t) - 4)
#define WIDE(name, A, X, Y, Acc, J, lanes, width, packs, b_packs, warps)                           \
    extern "C" __global__ void __launch_bounds__(BLOCK, (warps)*32 / BLOCK)                        \
        name(PARAMETERS(A, X, Y, Acc, J)) {                                                        \
        BEGIN                                                                                      \
        row_wide<false, A, X, Y, Acc, J, lanes, width, packs, b_packs>(                            \
            {offsets, indices, values, base}, tasks, {b, b_row, b_col},                            \
            {{c, c_row, c_col}, order}, n, alpha, beta, {partial, partial_stride}, flags, 0);      \
        END_AFTER_PREVIOUS                                                                         \
    }
// Loads of B in packs of 16 bytes, with `lanes` lanes side by side.
#define KERNEL_packs(name, types, J, lanes) KERNEL_OF(PACKS, name, int##J##_t, lanes, TYPES_##types)
#define PACKS(name, J, lanes, A, X, Y, Acc)                                                        \
    WIDE(name, A, X, Y, Acc, J, lanes, PACK_OF(X), 1, true, WARPS_OF_PACKS(A, X, J, lanes))
// complex64 with eight lanes and floats with 16 take more registers than with others.
#define WARPS_OF_PACKS(A, X, J, lanes)                                                             \
    (sizeof(X) == 16 && sizeof(J) == 4 && (lanes) == 8   ? WARPS_OF_COMPLEX_8                      \
     : same<X, float> && sizeof(J) == 4 && (lanes) == 16 ? WARPS_OF_FLOATS_16                      \
                                                         : WARPS(A, X, J))
#define PACK_OF(X) int(sizeof(X) < 16 ? 16 / sizeof(X) : 1)
KERNELS(packs, (f64, 32), (spmm_row_f64_32_packs_4, 4), (spmm_row_f64_32_packs_8, 8),
        (spmm_row_f64_32_packs_16, 16), (spmm_row_f64_32_packs_32, 32))
KERNELS(packs, (f64, 64), (spmm_row_f64_64_packs_4, 4), (spmm_row_f64_64_packs_8, 8),
        (spmm_row_f64_64_packs_16, 16), (spmm_row_f64_64_packs_32, 32))
KERNELS(packs, (f32, 32), (spmm_row_f32_32_packs_4, 4), (spmm_row_f32_32_packs_8, 8),
        (spmm_row_f32_32_packs_16, 16), (spmm_row_f32_32_packs_32, 32))
KERNELS(packs, (f32, 64), (spmm_row_f32_64_packs_4, 4), (spmm_row_f32_64_packs_8, 8),
        (spmm_row_f32_64_packs_16, 16), (spmm_row_f32_64_packs_32, 32))
KERNELS(packs, (f32f64, 32), (spmm_row_f32f64_32_packs_4, 4), (spmm_row_f32f64_32_packs_8, 8),
        (spmm_row_f32f64_32_packs_16, 16), (spmm_row_f32f64_32_packs_32, 32))
KERNELS(packs, (f32f64, 64), (spmm_row_f32f64_64_packs_4, 4), (spmm_row_f32f64_64_packs_8, 8),
        (spmm_row_f32f64_64_packs_16, 16), (spmm_row_f32f64_64_packs_32, 32))
KERNELS(packs, (f16, 32), (spmm_row_f16_32_packs_4, 4), (spmm_row_f16_32_packs_8, 8),
        (spmm_row_f16_32_packs_16, 16), (spmm_row_f16_32_packs_32, 32))
KERNELS(packs, (f16, 64), (spmm_row_f16_64_packs_4, 4), (spmm_row_f16_64_packs_8, 8),
        (spmm_row_f16_64_packs_16, 16), (spmm_row_f16_64_packs_32, 32))
KERNELS(packs, (f16f32, 32), (spmm_row_f16f32_32_packs_4, 4), (spmm_row_f16f32_32_packs_8, 8),
        (spmm_row_f16f32_32_packs_16, 16), (spmm_row_f16f32_32_packs_32, 32))
KERNELS(packs, (f16f32, 64), (spmm_row_f16f32_64_packs_4, 4), (spmm_row_f16f32_64_packs_8, 8),
        (spmm_row_f16f32_64_packs_16, 16), (spmm_row_f16f32_64_packs_32, 32))
KERNELS(packs, (bf16, 32), (spmm_row_bf16_32_packs_4, 4), (spmm_row_bf16_32_packs_8, 8),
        (spmm_row_bf16_32_packs_16, 16), (spmm_row_bf16_32_packs_32, 32))
KERNELS(packs, (bf16, 64), (spmm_row_bf16_64_packs_4, 4), (spmm_row_bf16_64_packs_8, 8),
        (spmm_row_bf16_64_packs_16, 16), (spmm_row_bf16_64_packs_32, 32))
KERNELS(packs, (bf16f32, 32), (spmm_row_bf16f32_32_packs_4, 4), (spmm_row_bf16f32_32_packs_8, 8),
        (spmm_row_bf16f32_32_packs_16, 16), (spmm_row_bf16f32_32_packs_32, 32))
KERNELS(packs, (bf16f32, 64), (spmm_row_bf16f32_64_packs_4, 4), (spmm_row_bf16f32_64_packs_8, 8),
        (spmm_row_bf16f32_64_packs_16, 16), (spmm_row_bf16f32_64_packs_32, 32))
KERNELS(packs, (c32, 32), (spmm_row_c32_32_packs_4, 4), (spmm_row_c32_32_packs_8, 8),
        (spmm_row_c32_32_packs_16, 16), (spmm_row_c32_32_packs_32, 32))
KERNELS(packs, (c32, 64), (spmm_row_c32_64_packs_4, 4), (spmm_row_c32_64_packs_8, 8),
        (spmm_row_c32_64_packs_16, 16), (spmm_row_c32_64_packs_32, 32))
// Four lanes would cover four columns, which the narrow kernels take.
KERNELS(packs, (c64, 32), (spmm_row_c64_32_packs_8, 8), (spmm_row_c64_32_packs_16, 16),
        (spmm_row_c64_32_packs_32, 32))
KERNELS(packs, (c64, 64), (spmm_row_c64_64_packs_8, 8), (spmm_row_c64_64_packs_16, 16),
        (spmm_row_c64_64_packs_32, 32))
// Loads of single elements of B.
#define KERNEL_single(name, types, J) KERNEL_OF(SINGLE, name, int##J##_t, TYPES_##types)
#define SINGLE(name, J, A, X, Y, Acc) WIDE(name, A, X, Y, Acc, J, 32, 1, 1, false, WARPS(A, X, J))
KERNELS(single, (), (spmm_row_f64_32_single_32, f64, 32), (spmm_row_f64_64_single_32, f64, 64),
        (spmm_row_f32_32_single_32, f32, 32), (spmm_row_f32_64_single_32, f32, 64),
        (spmm_row_f32f64_32_single_32, f32f64, 32), (spmm_row_f32f64_64_single_32, f32f64, 64),
        (spmm_row_f16_32_single_32, f16, 32), (spmm_row_f16_64_single_32, f16, 64),
        (spmm_row_f16f32_32_single_32, f16f32, 32), (spmm_row_f16f32_64_single_32, f16f32, 64),
        (spmm_row_bf16_32_single_32, bf16, 32), (spmm_row_bf16_64_single_32, bf16, 64),
        (spmm_row_bf16f32_32_single_32, bf16f32, 32), (spmm_row_bf16f32_64_single_32, bf16f32, 64),
        (spmm_row_c32_32_single_32, c32, 32), (spmm_row_c32_64_single_32, c32, 64),
        (spmm_row_c64_32_single_32, c64, 32), (spmm_row_c64_64_single_32, c64, 64))
// Two packs per lane, so that A is read once for 128 columns of doubles: a fifth faster there than
// two tiles; in fp32 there was no gain.
#define KERNEL_twins(name, types, J) KERNEL_OF(TWINS, name, int##J##_t, TYPES_##types)
#define TWINS(name, J, A, X, Y, Acc) WIDE(name, A, X, Y, Acc, J, 32, PACK_OF(X), 2, true, 20)
KERNELS(twins, (), (spmm_row_f64_32_twins_32, f64, 32), (spmm_row_f64_64_twins_32, f64, 64),
        (spmm_row_f32f64_32_twins_32, f32f64, 32), (spmm_row_f32f64_64_twins_32, f32f64, 64))

// Kernels for `width` columns, with `lanes` lanes per row.
#define KERNEL_narrow(name, types, J, width, lanes)                                                \
    KERNEL_OF(NARROW, name, int##J##_t, width, lanes, TYPES_##types)
#define NARROW(name, J, width, lanes, A, X, Y, Acc)                                                \
    extern "C" __global__ void __launch_bounds__(BLOCK, sizeof(Acc) == 16 ? 3 : 4)                 \
        name(PARAMETERS(A, X, Y, Acc, J)) {                                                        \
        BEGIN                                                                                      \
        row_narrow<false, A, X, Y, Acc, J, lanes, width>(                                          \
            {offsets, indices, values, base}, tasks, {b, b_row, b_col},                            \
            {{c, c_row, c_col}, order}, n, alpha, beta, {partial, partial_stride}, flags, 0);      \
        END_AFTER_PREVIOUS                                                                         \
    }
#define NARROW_LISTS(name, J, width, A, X, Y, Acc)                                                 \
    extern "C" __global__ void __launch_bounds__(BLOCK, sizeof(Acc) == 16 ? 3 : 4)                 \
        name(PARAMETERS(A, X, Y, Acc, J)) {                                                        \
        BY_TURNS(gridDim.x, blockIdx.x, turn)                                                      \
        row_narrow<true, A, X, Y, Acc, J, 16, width>(                                              \
            {offsets, indices, values, base}, tasks, {b, b_row, b_col},                            \
            {{c, c_row, c_col}, order}, n, alpha, beta, {partial, partial_stride}, flags, turn);   \
    }
KERNELS(narrow, (f64, 32), (spmm_row_f64_32_narrow4_4, 4, 4), (spmm_row_f64_32_narrow4_16, 4, 16),
        (spmm_row_f64_32_narrow8_4, 8, 4), (spmm_row_f64_32_narrow8_16, 8, 16))
KERNELS(narrow, (f64, 64), (spmm_row_f64_64_narrow4_4, 4, 4), (spmm_row_f64_64_narrow4_16, 4, 16),
        (spmm_row_f64_64_narrow8_4, 8, 4), (spmm_row_f64_64_narrow8_16, 8, 16))
KERNELS(narrow, (f32, 32), (spmm_row_f32_32_narrow4_4, 4, 4), (spmm_row_f32_32_narrow4_16, 4, 16),
        (spmm_row_f32_32_narrow8_4, 8, 4), (spmm_row_f32_32_narrow8_16, 8, 16))
KERNELS(narrow, (f32, 64), (spmm_row_f32_64_narrow4_4, 4, 4), (spmm_row_f32_64_narrow4_16, 4, 16),
        (spmm_row_f32_64_narrow8_4, 8, 4), (spmm_row_f32_64_narrow8_16, 8, 16))
KERNELS(narrow, (f32f64, 32), (spmm_row_f32f64_32_narrow4_4, 4, 4),
        (spmm_row_f32f64_32_narrow4_16, 4, 16), (spmm_row_f32f64_32_narrow8_4, 8, 4),
        (spmm_row_f32f64_32_narrow8_16, 8, 16))
KERNELS(narrow, (f32f64, 64), (spmm_row_f32f64_64_narrow4_4, 4, 4),
        (spmm_row_f32f64_64_narrow4_16, 4, 16), (spmm_row_f32f64_64_narrow8_4, 8, 4),
        (spmm_row_f32f64_64_narrow8_16, 8, 16))
KERNELS(narrow, (f16, 32), (spmm_row_f16_32_narrow4_4, 4, 4), (spmm_row_f16_32_narrow4_16, 4, 16),
        (spmm_row_f16_32_narrow8_4, 8, 4), (spmm_row_f16_32_narrow8_16, 8, 16))
KERNELS(narrow, (f16, 64), (spmm_row_f16_64_narrow4_4, 4, 4), (spmm_row_f16_64_narrow4_16, 4, 16),
        (spmm_row_f16_64_narrow8_4, 8, 4), (spmm_row_f16_64_narrow8_16, 8, 16))
KERNELS(narrow, (f16f32, 32), (spmm_row_f16f32_32_narrow4_4, 4, 4),
        (spmm_row_f16f32_32_narrow4_16, 4, 16), (spmm_row_f16f32_32_narrow8_4, 8, 4),
        (spmm_row_f16f32_32_narrow8_16, 8, 16))
KERNELS(narrow, (f16f32, 64), (spmm_row_f16f32_64_narrow4_4, 4, 4),
        (spmm_row_f16f32_64_narrow4_16, 4, 16), (spmm_row_f16f32_64_narrow8_4, 8, 4),
        (spmm_row_f16f32_64_narrow8_16, 8, 16))
KERNELS(narrow, (bf16, 32), (spmm_row_bf16_32_narrow4_4, 4, 4),
        (spmm_row_bf16_32_narrow4_16, 4, 16), (spmm_row_bf16_32_narrow8_4, 8, 4),
        (spmm_row_bf16_32_narrow8_16, 8, 16))
KERNELS(narrow, (bf16, 64), (spmm_row_bf16_64_narrow4_4, 4, 4),
        (spmm_row_bf16_64_narrow4_16, 4, 16), (spmm_row_bf16_64_narrow8_4, 8, 4),
        (spmm_row_bf16_64_narrow8_16, 8, 16))
KERNELS(narrow, (bf16f32, 32), (spmm_row_bf16f32_32_narrow4_4, 4, 4),
        (spmm_row_bf16f32_32_narrow4_16, 4, 16), (spmm_row_bf16f32_32_narrow8_4, 8, 4),
        (spmm_row_bf16f32_32_narrow8_16, 8, 16))
KERNELS(narrow, (bf16f32, 64), (spmm_row_bf16f32_64_narrow4_4, 4, 4),
        (spmm_row_bf16f32_64_narrow4_16, 4, 16), (spmm_row_bf16f32_64_narrow8_4, 8, 4),
        (spmm_row_bf16f32_64_narrow8_16, 8, 16))
KERNELS(narrow, (c32, 32), (spmm_row_c32_32_narrow4_4, 4, 4), (spmm_row_c32_32_narrow4_16, 4, 16),
        (spmm_row_c32_32_narrow8_4, 8, 4), (spmm_row_c32_32_narrow8_16, 8, 16))
KERNELS(narrow, (c32, 64), (spmm_row_c32_64_narrow4_4, 4, 4), (spmm_row_c32_64_narrow4_16, 4, 16),
        (spmm_row_c32_64_narrow8_4, 8, 4), (spmm_row_c32_64_narrow8_16, 8, 16))
KERNELS(narrow, (c64, 32), (spmm_row_c64_32_narrow4_4, 4, 4), (spmm_row_c64_32_narrow4_16, 4, 16),
        (spmm_row_c64_32_narrow8_4, 8, 4), (spmm_row_c64_32_narrow8_16, 8, 16))
KERNELS(narrow, (c64, 64), (spmm_row_c64_64_narrow4_4, 4, 4), (spmm_row_c64_64_narrow4_16, 4, 16),
        (spmm_row_c64_64_narrow8_4, 8, 4), (spmm_row_c64_64_narrow8_16, 8, 16))

// Kernels of the same forms for the rows in lists that are made without a plan.
#define KERNEL_packlists(name, types, J, lanes)                                                    \
    KERNEL_OF(PACK_LISTS, name, int##J##_t, lanes, TYPES_##types)
#define PACK_LISTS(name, J, lanes, A, X, Y, Acc)                                                   \
    WIDE_LISTS(name, A, X, Y, Acc, J, lanes, PACK_OF(X), 1, true, WARPS_OF_LISTS(A, X))
KERNELS(packlists, (f64, 32), (spmm_row_f64_32_packlists_4, 4), (spmm_row_f64_32_packlists_8, 8),
        (spmm_row_f64_32_packlists_16, 16), (spmm_row_f64_32_packlists_32, 32))
KERNELS(packlists, (f64, 64), (spmm_row_f64_64_packlists_4, 4), (spmm_row_f64_64_packlists_8, 8),
        (spmm_row_f64_64_packlists_16, 16), (spmm_row_f64_64_packlists_32, 32))
KERNELS(packlists, (f32, 32), (spmm_row_f32_32_packlists_4, 4), (spmm_row_f32_32_packlists_8, 8),
        (spmm_row_f32_32_packlists_16, 16), (spmm_row_f32_32_packlists_32, 32))
KERNELS(packlists, (f32, 64), (spmm_row_f32_64_packlists_4, 4), (spmm_row_f32_64_packlists_8, 8),
        (spmm_row_f32_64_packlists_16, 16), (spmm_row_f32_64_packlists_32, 32))
KERNELS(packlists, (f32f64, 32), (spmm_row_f32f64_32_packlists_4, 4),
        (spmm_row_f32f64_32_packlists_8, 8), (spmm_row_f32f64_32_packlists_16, 16),
        (spmm_row_f32f64_32_packlists_32, 32))
KERNELS(packlists, (f32f64, 64), (spmm_row_f32f64_64_packlists_4, 4),
        (spmm_row_f32f64_64_packlists_8, 8), (spmm_row_f32f64_64_packlists_16, 16),
        (spmm_row_f32f64_64_packlists_32, 32))
KERNELS(packlists, (f16, 32), (spmm_row_f16_32_packlists_4, 4), (spmm_row_f16_32_packlists_8, 8),
        (spmm_row_f16_32_packlists_16, 16), (spmm_row_f16_32_packlists_32, 32))
KERNELS(packlists, (f16, 64), (spmm_row_f16_64_packlists_4, 4), (spmm_row_f16_64_packlists_8, 8),
        (spmm_row_f16_64_packlists_16, 16), (spmm_row_f16_64_packlists_32, 32))
KERNELS(packlists, (f16f32, 32), (spmm_row_f16f32_32_packlists_4, 4),
        (spmm_row_f16f32_32_packlists_8, 8), (spmm_row_f16f32_32_packlists_16, 16),
        (spmm_row_f16f32_32_packlists_32, 32))
KERNELS(packlists, (f16f32, 64), (spmm_row_f16f32_64_packlists_4, 4),
        (spmm_row_f16f32_64_packlists_8, 8), (spmm_row_f16f32_64_packlists_16, 16),
        (spmm_row_f16f32_64_packlists_32, 32))
KERNELS(packlists, (bf16, 32), (spmm_row_bf16_32_packlists_4, 4), (spmm_row_bf16_32_packlists_8, 8),
        (spmm_row_bf16_32_packlists_16, 16), (spmm_row_bf16_32_packlists_32, 32))
KERNELS(packlists, (bf16, 64), (spmm_row_bf16_64_packlists_4, 4), (spmm_row_bf16_64_packlists_8, 8),
        (spmm_row_bf16_64_packlists_16, 16), (spmm_row_bf16_64_packlists_32, 32))
KERNELS(packlists, (bf16f32, 32), (spmm_row_bf16f32_32_packlists_4, 4),
        (spmm_row_bf16f32_32_packlists_8, 8), (spmm_row_bf16f32_32_packlists_16, 16),
        (spmm_row_bf16f32_32_packlists_32, 32))
KERNELS(packlists, (bf16f32, 64), (spmm_row_bf16f32_64_packlists_4, 4),
        (spmm_row_bf16f32_64_packlists_8, 8), (spmm_row_bf16f32_64_packlists_16, 16),
        (spmm_row_bf16f32_64_packlists_32, 32))
KERNELS(packlists, (c32, 32), (spmm_row_c32_32_packlists_4, 4), (spmm_row_c32_32_packlists_8, 8),
        (spmm_row_c32_32_packlists_16, 16), (spmm_row_c32_32_packlists_32, 32))
KERNELS(packlists, (c32, 64), (spmm_row_c32_64_packlists_4, 4), (spmm_row_c32_64_packlists_8, 8),
        (spmm_row_c32_64_packlists_16, 16), (spmm_row_c32_64_packlists_32, 32))
KERNELS(packlists, (c64, 32), (spmm_row_c64_32_packlists_8, 8), (spmm_row_c64_32_packlists_16, 16),
        (spmm_row_c64_32_packlists_32, 32))
KERNELS(packlists, (c64, 64), (spmm_row_c64_64_packlists_8, 8), (spmm_row_c64_64_packlists_16, 16),
        (spmm_row_c64_64_packlists_32, 32))
#define KERNEL_singlelists(name, types, J) KERNEL_OF(SINGLE_LISTS, name, int##J##_t, TYPES_##types)
#define SINGLE_LISTS(name, J, A, X, Y, Acc)                                                        \
    WIDE_LISTS(name, A, X, Y, Acc, J, 32, 1, 1, false, WARPS_OF_LISTS(A, X))
KERNELS(singlelists, (), (spmm_row_f64_32_singlelists_32, f64, 32),
        (spmm_row_f64_64_singlelists_32, f64, 64), (spmm_row_f32_32_singlelists_32, f32, 32),
        (spmm_row_f32_64_singlelists_32, f32, 64), (spmm_row_f32f64_32_singlelists_32, f32f64, 32),
        (spmm_row_f32f64_64_singlelists_32, f32f64, 64), (spmm_row_f16_32_singlelists_32, f16, 32),
        (spmm_row_f16_64_singlelists_32, f16, 64), (spmm_row_f16f32_32_singlelists_32, f16f32, 32),
        (spmm_row_f16f32_64_singlelists_32, f16f32, 64),
        (spmm_row_bf16_32_singlelists_32, bf16, 32), (spmm_row_bf16_64_singlelists_32, bf16, 64),
        (spmm_row_bf16f32_32_singlelists_32, bf16f32, 32),
        (spmm_row_bf16f32_64_singlelists_32, bf16f32, 64),
        (spmm_row_c32_32_singlelists_32, c32, 32), (spmm_row_c32_64_singlelists_32, c32, 64),
        (spmm_row_c64_32_singlelists_32, c64, 32), (spmm_row_c64_64_singlelists_32, c64, 64))
#define KERNEL_twinlists(name, types, J) KERNEL_OF(TWIN_LISTS, name, int##J##_t, TYPES_##types)
#define TWIN_LISTS(name, J, A, X, Y, Acc)                                                          \
    WIDE_LISTS(name, A, X, Y, Acc, J, 32, PACK_OF(X), 2, true, 16)
KERNELS(twinlists, (), (spmm_row_f64_32_twinlists_32, f64, 32),
        (spmm_row_f64_64_twinlists_32, f64, 64), (spmm_row_f32f64_32_twinlists_32, f32f64, 32),
        (spmm_row_f32f64_64_twinlists_32, f32f64, 64))
#define KERNEL_narrowlists(name, types, J, width)                                                  \
    KERNEL_OF(NARROW_LISTS, name, int##J##_t, width, TYPES_##types)
KERNELS(narrowlists, (f64, 32), (spmm_row_f64_32_narrowlists4_16, 4),
        (spmm_row_f64_32_narrowlists8_16, 8))
KERNELS(narrowlists, (f64, 64), (spmm_row_f64_64_narrowlists4_16, 4),
        (spmm_row_f64_64_narrowlists8_16, 8))
KERNELS(narrowlists, (f32, 32), (spmm_row_f32_32_narrowlists4_16, 4),
        (spmm_row_f32_32_narrowlists8_16, 8))
KERNELS(narrowlists, (f32, 64), (spmm_row_f32_64_narrowlists4_16, 4),
        (spmm_row_f32_64_narrowlists8_16, 8))
KERNELS(narrowlists, (f32f64, 32), (spmm_row_f32f64_32_narrowlists4_16, 4),
        (spmm_row_f32f64_32_narrowlists8_16, 8))
KERNELS(narrowlists, (f32f64, 64), (spmm_row_f32f64_64_narrowlists4_16, 4),
        (spmm_row_f32f64_64_narrowlists8_16, 8))
KERNELS(narrowlists, (f16, 32), (spmm_row_f16_32_narrowlists4_16, 4),
        (spmm_row_f16_32_narrowlists8_16, 8))
KERNELS(narrowlists, (f16, 64), (spmm_row_f16_64_narrowlists4_16, 4),
        (spmm_row_f16_64_narrowlists8_16, 8))
KERNELS(narrowlists, (f16f32, 32), (spmm_row_f16f32_32_narrowlists4_16, 4),
        (spmm_row_f16f32_32_narrowlists8_16, 8))
KERNELS(narrowlists, (f16f32, 64), (spmm_row_f16f32_64_narrowlists4_16, 4),
        (spmm_row_f16f32_64_narrowlists8_16, 8))
KERNELS(narrowlists, (bf16, 32), (spmm_row_bf16_32_narrowlists4_16, 4),
        (spmm_row_bf16_32_narrowlists8_16, 8))
KERNELS(narrowlists, (bf16, 64), (spmm_row_bf16_64_narrowlists4_16, 4),
        (spmm_row_bf16_64_narrowlists8_16, 8))
KERNELS(narrowlists, (bf16f32, 32), (spmm_row_bf16f32_32_narrowlists4_16, 4),
        (spmm_row_bf16f32_32_narrowlists8_16, 8))
KERNELS(narrowlists, (bf16f32, 64), (spmm_row_bf16f32_64_narrowlists4_16, 4),
        (spmm_row_bf16f32_64_narrowlists8_16, 8))
KERNELS(narrowlists, (c32, 32), (spmm_row_c32_32_narrowlists4_16, 4),
        (spmm_row_c32_32_narrowlists8_16, 8))
KERNELS(narrowlists, (c32, 64), (spmm_row_c32_64_narrowlists4_16, 4),
        (spmm_row_c32_64_narrowlists8_16, 8))
KERNELS(narrowlists, (c64, 32), (spmm_row_c64_32_narrowlists4_16, 4),
        (spmm_row_c64_32_narrowlists8_16, 8))
KERNELS(narrowlists, (c64, 64), (spmm_row_c64_64_narrowlists4_16, 4),
        (spmm_row_c64_64_narrowlists8_16, 8))

// `decision` is NULL or that of spmm/columns.cu, with which these kernels do nothing if it is not
// zero. Variants by the types of C and of the sums.
#define KERNEL_finish(name, types) KERNEL_OF(FINISH, name, TYPES_##types)
#define FINISH(name, A, X, Y, Acc)                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 4)                                           \
        name(const Acc *sums, Y *c, int64_t c_row, int64_t c_col, int64_t m, int64_t n,            \
             Scalar<Acc> alpha, Scalar<Acc> beta, const int64_t *decision) {                       \
        if (decision && *decision != 0)                                                            \
            return;                                                                                \
        row_finish<Y, Acc>(sums, {c, c_row, c_col}, m, n, alpha, beta);                            \
    }
KERNELS(finish, (), (spmm_row_f64_finish, f64), (spmm_row_f32_finish, f32),
        (spmm_row_f16_finish, f16), (spmm_row_bf16_finish, bf16), (spmm_row_c32_finish, c32),
        (spmm_row_c64_finish, c64))

// Elements by their size in bytes.
#define ELEMENT_2 uint16_t
#define ELEMENT_4 float
#define ELEMENT_8 double
#define ELEMENT_c32 c32
#define ELEMENT_c64 c64
#define KERNEL_pack(name, element) KERNEL_OF(PACK, name, ELEMENT_##element)
#define PACK(name, T)                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const T *from, int64_t row_stride, int64_t col_stride, T *to, int64_t rows,           \
             int64_t cols, int64_t ld, int64_t conjugated, const int64_t *decision) {              \
        if (decision && *decision != 0)                                                            \
            return;                                                                                \
        row_pack<T>(from, row_stride, col_stride, to, rows, cols, ld, conjugated);                 \
    }
KERNELS(pack, (), (spmm_row_pack_2, 2), (spmm_row_pack_4, 4), (spmm_row_pack_8, 8),
        (spmm_row_pack_c32, c32), (spmm_row_pack_c64, c64))
