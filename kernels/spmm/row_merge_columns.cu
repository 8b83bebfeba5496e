// SpMM `row` without a plan where columns of B and of C are contiguous, see spmm/row_merge.cuh.
//
// The lanes of a group lie along the entries of a row of A. For each of its entries a lane reads
// COLUMNS elements of B, one of each column: lanes that meet neighbouring rows of B read the same
// sectors. Then the lanes hand their sums to each other, so that each has those of one or two
// columns, which it stores; where there are more lanes than columns, neighbours have the same
// column, and one of them stores it. Nothing is copied to rows, which would take launches of its
// own.

#include "common/kernels.cuh"
#include "spmm/row_merge.cuh"

using namespace tarsia;

namespace {

// Blocks per multiprocessor: as many as registers allow without spills for tiles of eight columns.
// Compilers use more registers for architectures other than 9.0.
template <class Acc> constexpr int blocks(int lanes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
    return sizeof(Acc) == 8 ? 8 : lanes == 8 ? 10 : 9;
#else
    return sizeof(Acc) == 8 ? 7 : 8;
#endif
}

} // namespace

// Tile of COLUMNS columns of C; n is at least COLUMNS, or 3 with tiles of 4. The last tile of an n
// that is no multiple of COLUMNS begins before its first own column, so that it has as many, and
// stores only its own. Of three columns the last is read twice. What a thread can compute again is
// not a member, since registers are few.
template <class Value, class J, class X, class Y, class Acc, int LANES_, int COLUMNS>
struct ColumnTile {
    static constexpr int LANES = LANES_, COUNT = COLUMNS > LANES ? COLUMNS / LANES : 1;
    static constexpr bool has_columns = true;
    const J *indices;
    const Value *values;
    int64_t base;
    // b_col, c_col: elements between columns of B and of C.
    const X *b;
    int64_t b_col;
    Y *c;
    int64_t c_col;
    int n;
    bool has_entries;

    __device__ __forceinline__ static int first_own() { return int(blockIdx.y) * COLUMNS; }
    __device__ __forceinline__ int first() const { return min(first_own(), max(n - COLUMNS, 0)); }

    // Number of the lane's sum i among those of the tile, as scatter_sums deals them out.
    __device__ __forceinline__ static int in_tile(int i) {
#pragma unroll
        for (int lanes = LANES / 2, count = COLUMNS / 2; lanes > 0 && count > 0;
             lanes /= 2, count /= 2)
            i += threadIdx.x & lanes ? count : 0;
        return i;
    }

    // Position of the lane's sum i in a row of sums in the workspace, where no tiles overlap.
    __device__ __forceinline__ int place(int i) const { return first_own() + in_tile(i); }

    // Computes the sums of a row, of which this group is number `which` of 2^sharing_log2.
    __device__ __forceinline__ void multiply(Acc (&sums)[COUNT], const RowTurn &turn,
                                             int which) const {
        const int lane = threadIdx.x % LANES, step = LANES << turn.sharing_log2;
        const int end = has_entries ? turn.length : 0;
        const X *const columns = b + (first() * b_col - base);
        const int last = COLUMNS == 4 ? min(COLUMNS, n) - 1 : COLUMNS - 1;
        Acc of_entries[COLUMNS];
        set_zero(of_entries);
        for (int e = which * LANES + lane; e < end; e += step) {
            const X *const from = columns + load(indices + (turn.begin + e));
            const Acc factor = widen<Acc>(load(values + (turn.begin + e)));
            X elements[COLUMNS];
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                elements[i] = load(from + (i < COLUMNS - 1 ? i : last) * b_col);
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                of_entries[i] = tarsia::fma(factor, widen<Acc>(elements[i]), of_entries[i]);
        }
        __syncwarp();
        scatter_sums<LANES>(of_entries, lane);
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            sums[i] = of_entries[i];
        add_groups<LANES>(sums, 1 << turn.sharing_log2);
    }

    __device__ __forceinline__ void store(int row, const Acc (&sums)[COUNT], Acc alpha,
                                          Acc beta) const {
        constexpr int SAME = LANES > COLUMNS ? LANES / COLUMNS : 1; // lanes with the same column
        if (threadIdx.x % SAME != 0)
            return;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int column = first() + in_tile(i);
            if (column >= first_own() && (COLUMNS != 4 || column < n))
                tarsia::store(c + row + column * c_col, alpha, sums[i], beta);
        }
    }
};

#define KERNEL_mergecolumns(name, types, J, lanes, columns)                                        \
    KERNEL_OF(MERGE_COLUMNS, name, J, lanes, columns, TYPES_##types)
#define MERGE_COLUMNS(name, J, lanes, columns, A, X, Y, Acc)                                       \
    extern "C" __global__ void __launch_bounds__(BLOCK, blocks<Acc>(lanes)) name(                  \
        Offsets offsets, const int##J##_t *indices, const A *values, int64_t base, MergePath path, \
        const X *b, int64_t b_col, Y *c, int64_t c_col, int32_t n, Scalar<Acc> alpha,              \
        Scalar<Acc> beta, Acc *partial, int64_t partial_stride, Prefetch lines) {                  \
        begin_product(lines, static_cast<const char *>(offsets.pointer), indices, values, b);      \
        using Tile = ColumnTile<A, int##J##_t, X, Y, Acc, lanes, columns>;                         \
        const Tile tile = {indices, values, base, b, b_col, c, c_col, n, !is_zero(alpha.get())};   \
        row_merge<Tile, Acc>({offsets, base}, path, tile, alpha, beta, {partial, partial_stride}); \
    }
KERNELS(mergecolumns, (f64, 32), (spmm_row_merge_columns_f64_32_4_8, 4, 8),
        (spmm_row_merge_columns_f64_32_8_8, 8, 8), (spmm_row_merge_columns_f64_32_16_8, 16, 8),
        (spmm_row_merge_columns_f64_32_4_4, 4, 4), (spmm_row_merge_columns_f64_32_8_4, 8, 4),
        (spmm_row_merge_columns_f64_32_4_2, 4, 2), (spmm_row_merge_columns_f64_32_8_2, 8, 2))
KERNELS(mergecolumns, (f64, 64), (spmm_row_merge_columns_f64_64_4_8, 4, 8),
        (spmm_row_merge_columns_f64_64_8_8, 8, 8), (spmm_row_merge_columns_f64_64_16_8, 16, 8),
        (spmm_row_merge_columns_f64_64_4_4, 4, 4), (spmm_row_merge_columns_f64_64_8_4, 8, 4),
        (spmm_row_merge_columns_f64_64_4_2, 4, 2), (spmm_row_merge_columns_f64_64_8_2, 8, 2))
KERNELS(mergecolumns, (f32f64, 32), (spmm_row_merge_columns_f32f64_32_4_8, 4, 8),
        (spmm_row_merge_columns_f32f64_32_8_8, 8, 8),
        (spmm_row_merge_columns_f32f64_32_16_8, 16, 8),
        (spmm_row_merge_columns_f32f64_32_4_4, 4, 4), (spmm_row_merge_columns_f32f64_32_8_4, 8, 4),
        (spmm_row_merge_columns_f32f64_32_4_2, 4, 2), (spmm_row_merge_columns_f32f64_32_8_2, 8, 2))
KERNELS(mergecolumns, (f32f64, 64), (spmm_row_merge_columns_f32f64_64_4_8, 4, 8),
        (spmm_row_merge_columns_f32f64_64_8_8, 8, 8),
        (spmm_row_merge_columns_f32f64_64_16_8, 16, 8),
        (spmm_row_merge_columns_f32f64_64_4_4, 4, 4), (spmm_row_merge_columns_f32f64_64_8_4, 8, 4),
        (spmm_row_merge_columns_f32f64_64_4_2, 4, 2), (spmm_row_merge_columns_f32f64_64_8_2, 8, 2))
KERNELS(mergecolumns, (f32, 32), (spmm_row_merge_columns_f32_32_4_8, 4, 8),
        (spmm_row_merge_columns_f32_32_8_8, 8, 8), (spmm_row_merge_columns_f32_32_16_8, 16, 8),
        (spmm_row_merge_columns_f32_32_4_4, 4, 4), (spmm_row_merge_columns_f32_32_8_4, 8, 4),
        (spmm_row_merge_columns_f32_32_4_2, 4, 2), (spmm_row_merge_columns_f32_32_8_2, 8, 2))
KERNELS(mergecolumns, (f32, 64), (spmm_row_merge_columns_f32_64_4_8, 4, 8),
        (spmm_row_merge_columns_f32_64_8_8, 8, 8), (spmm_row_merge_columns_f32_64_16_8, 16, 8),
        (spmm_row_merge_columns_f32_64_4_4, 4, 4), (spmm_row_merge_columns_f32_64_8_4, 8, 4),
        (spmm_row_merge_columns_f32_64_4_2, 4, 2), (spmm_row_merge_columns_f32_64_8_2, 8, 2))
KERNELS(mergecolumns, (f16, 32), (spmm_row_merge_columns_f16_32_4_8, 4, 8),
        (spmm_row_merge_columns_f16_32_8_8, 8, 8), (spmm_row_merge_columns_f16_32_16_8, 16, 8),
        (spmm_row_merge_columns_f16_32_4_4, 4, 4), (spmm_row_merge_columns_f16_32_8_4, 8, 4),
        (spmm_row_merge_columns_f16_32_4_2, 4, 2), (spmm_row_merge_columns_f16_32_8_2, 8, 2))
KERNELS(mergecolumns, (f16, 64), (spmm_row_merge_columns_f16_64_4_8, 4, 8),
        (spmm_row_merge_columns_f16_64_8_8, 8, 8), (spmm_row_merge_columns_f16_64_16_8, 16, 8),
        (spmm_row_merge_columns_f16_64_4_4, 4, 4), (spmm_row_merge_columns_f16_64_8_4, 8, 4),
        (spmm_row_merge_columns_f16_64_4_2, 4, 2), (spmm_row_merge_columns_f16_64_8_2, 8, 2))
KERNELS(mergecolumns, (f16f32, 32), (spmm_row_merge_columns_f16f32_32_4_8, 4, 8),
        (spmm_row_merge_columns_f16f32_32_8_8, 8, 8),
        (spmm_row_merge_columns_f16f32_32_16_8, 16, 8),
        (spmm_row_merge_columns_f16f32_32_4_4, 4, 4), (spmm_row_merge_columns_f16f32_32_8_4, 8, 4),
        (spmm_row_merge_columns_f16f32_32_4_2, 4, 2), (spmm_row_merge_columns_f16f32_32_8_2, 8, 2))
KERNELS(mergecolumns, (f16f32, 64), (spmm_row_merge_columns_f16f32_64_4_8, 4, 8),
        (spmm_row_merge_columns_f16f32_64_8_8, 8, 8),
        (spmm_row_merge_columns_f16f32_64_16_8, 16, 8),
        (spmm_row_merge_columns_f16f32_64_4_4, 4, 4), (spmm_row_merge_columns_f16f32_64_8_4, 8, 4),
        (spmm_row_merge_columns_f16f32_64_4_2, 4, 2), (spmm_row_merge_columns_f16f32_64_8_2, 8, 2))
KERNELS(mergecolumns, (bf16, 32), (spmm_row_merge_columns_bf16_32_4_8, 4, 8),
        (spmm_row_merge_columns_bf16_32_8_8, 8, 8), (spmm_row_merge_columns_bf16_32_16_8, 16, 8),
        (spmm_row_merge_columns_bf16_32_4_4, 4, 4), (spmm_row_merge_columns_bf16_32_8_4, 8, 4),
        (spmm_row_merge_columns_bf16_32_4_2, 4, 2), (spmm_row_merge_columns_bf16_32_8_2, 8, 2))
KERNELS(mergecolumns, (bf16, 64), (spmm_row_merge_columns_bf16_64_4_8, 4, 8),
        (spmm_row_merge_columns_bf16_64_8_8, 8, 8), (spmm_row_merge_columns_bf16_64_16_8, 16, 8),
        (spmm_row_merge_columns_bf16_64_4_4, 4, 4), (spmm_row_merge_columns_bf16_64_8_4, 8, 4),
        (spmm_row_merge_columns_bf16_64_4_2, 4, 2), (spmm_row_merge_columns_bf16_64_8_2, 8, 2))
KERNELS(mergecolumns, (bf16f32, 32), (spmm_row_merge_columns_bf16f32_32_4_8, 4, 8),
        (spmm_row_merge_columns_bf16f32_32_8_8, 8, 8),
        (spmm_row_merge_columns_bf16f32_32_16_8, 16, 8),
        (spmm_row_merge_columns_bf16f32_32_4_4, 4, 4),
        (spmm_row_merge_columns_bf16f32_32_8_4, 8, 4),
        (spmm_row_merge_columns_bf16f32_32_4_2, 4, 2),
        (spmm_row_merge_columns_bf16f32_32_8_2, 8, 2))
KERNELS(mergecolumns, (bf16f32, 64), (spmm_row_merge_columns_bf16f32_64_4_8, 4, 8),
        (spmm_row_merge_columns_bf16f32_64_8_8, 8, 8),
        (spmm_row_merge_columns_bf16f32_64_16_8, 16, 8),
        (spmm_row_merge_columns_bf16f32_64_4_4, 4, 4),
        (spmm_row_merge_columns_bf16f32_64_8_4, 8, 4),
        (spmm_row_merge_columns_bf16f32_64_4_2, 4, 2),
        (spmm_row_merge_columns_bf16f32_64_8_2, 8, 2))
