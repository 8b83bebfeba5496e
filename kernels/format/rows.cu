// Builds canonical CSR (described in src/format/csr.rs) from the user's matrix: keys for the sort,
// row offsets from sorted keys, columns, and the expansion of blocks into scalars. format/values.cu
// gathers the values. The pattern has been validated.
//
// "Rows" are those of op(A); a "position" is an index into the user's value array. Positions are
// 32-bit if their number allows it, otherwise 64-bit; a NULL array of positions stands for 0, 1, 2,
// ….

#include "common/grid.cuh"
#include "common/kernels.cuh"
#include "common/search.cuh"

namespace tarsia {

// Threads of a block, and entries of its tile.
constexpr int THREADS = 256;
constexpr int TILE = 8 * THREADS;

// Returns the row of [low, high) that holds `position`, which is at least the start of row `low`
// and less than the end of row high − 1. Offsets ascend; row r starts at offsets[r] − base.
template <class O>
__device__ int64_t row_of(const O *offsets, int64_t base, int64_t low, int64_t high,
                          int64_t position) {
    const auto is_from_here = [&](int64_t row) { return int64_t(offsets[row]) - base <= position; };
    return last_where(low, high, is_from_here);
}

// Calls f(row, position) for each position of the block's tile. Each block searches all rows only
// twice, and each thread then searches a short range: the cost does not depend on the distribution
// of entries over rows.
template <class O, class Function>
__device__ void for_each_entry(const O *offsets, int64_t base, int64_t rows, int64_t nnz,
                               Function f) {
    __shared__ int64_t ends[2];
    const int64_t first = int64_t(blockIdx.x) * TILE;
    const int64_t last = (first + TILE < nnz ? first + TILE : nnz) - 1;
    if (threadIdx.x < 2) {
        ends[threadIdx.x] = row_of(offsets, base, 0, rows, threadIdx.x ? last : first);
    }
    __syncthreads();
    int64_t row = ends[0];
    const int64_t high = ends[1] + 1;
    for (int64_t p = first + threadIdx.x; p <= last; p += THREADS) {
        row = row_of(offsets, base, row, high, p);
        f(row, p);
    }
}

// keys[p] = major << shift | minor, positions[p] = p
template <class O, class J, class K, class Position>
__device__ void keys_of_compressed(const O *offsets, const J *indices, int64_t base, int64_t major,
                                   int64_t nnz, int shift, K *keys, Position *positions) {
    for_each_entry(offsets, base, major, nnz, [&](int64_t row, int64_t p) {
        keys[p] = K(uint64_t(row) << shift | uint64_t(int64_t(indices[p]) - base));
        positions[p] = Position(p);
    });
}

// keys[p] = first << shift | second, or first alone if second is NULL
template <class J, class K, class Position>
__device__ void keys_of_pairs(const J *first, const J *second, int64_t base, int64_t nnz, int shift,
                              K *keys, Position *positions) {
    for (int64_t p = first_item(); p < nnz; p += grid_stride()) {
        uint64_t key = uint64_t(int64_t(first[p]) - base);
        if (second)
            key = key << shift | uint64_t(int64_t(second[p]) - base);
        keys[p] = K(key);
        positions[p] = Position(p);
    }
}

// out[p] = row of entry p
template <class O>
__device__ void rows_of_entries(const O *offsets, int64_t base, int64_t rows, int64_t nnz,
                                int32_t *out) {
    for_each_entry(offsets, base, rows, nnz,
                   [&](int64_t row, int64_t p) { out[p] = int32_t(row); });
}

// out[r] = number of keys below (r + base) << shift, for r in [0, rows]. Keys ascend; `base` is not
// 0 if the keys are the user's own array of rows. One search per row and no atomics; neighbouring
// rows read the same keys.
template <class K>
__device__ void offsets_of_keys(const K *keys, int64_t nnz, int64_t rows, int shift, int64_t base,
                                int64_t *out) {
    for (int64_t r = first_item(); r <= rows; r += grid_stride()) {
        const uint64_t bound = uint64_t(r + base) << shift;
        const auto is_before = [&](int64_t at) { return uint64_t(keys[at]) < bound; };
        // The last row's bound may not fit 64 bits, and needs no search.
        out[r] = first_where_not(r < rows ? 0 : nnz, nnz, is_before);
    }
}

// out[e] = low bits of keys[e]
template <class K>
__device__ void columns_of_keys(const K *keys, int64_t nnz, int64_t mask, int32_t *out) {
    for (int64_t e = first_item(); e < nnz; e += grid_stride()) {
        out[e] = int32_t(uint64_t(keys[e]) & uint64_t(mask));
    }
}

template <class Position> __device__ int64_t position_of(const Position *positions, int64_t e) {
    return positions ? int64_t(positions[e]) : e;
}

// out[e] = from[positions[e]] − base
template <class J, class Position>
__device__ void gather_columns(const J *from, const Position *positions, int64_t base, int64_t nnz,
                               int32_t *out) {
    for (int64_t e = first_item(); e < nnz; e += grid_stride()) {
        out[e] = int32_t(int64_t(from[position_of(positions, e)]) - base);
    }
}

// out[r] = from[r] − base
template <class O>
__device__ void copy_offsets(const O *from, int64_t base, int64_t count, int64_t *out) {
    for (int64_t r = first_item(); r < count; r += grid_stride())
        out[r] = int64_t(from[r]) - base;
}

// Expands canonical CSR of blocks (offsets and indices count blocks, `positions` are those of
// blocks in the user's array) to canonical CSR of scalars. A block is height × width in op(A); its
// element (i, j) is stored at i · width + j, or with `by_columns` at j · height + i.
//
// Blocks with equal coordinates are neighbours. Each of their columns then appears once per block,
// in the order of the blocks.
template <class Position, class NewPosition>
__device__ void expand_blocks(const int64_t *offsets, const int32_t *indices,
                              const Position *positions, int64_t block_rows, int64_t nnz,
                              int64_t height, int64_t width, int by_columns, int32_t *out_indices,
                              NewPosition *out_positions) {
    const int64_t area = height * width;
    for (int64_t e = first_item(); e < nnz; e += grid_stride()) {
        // Numbers e in the order of block row, scalar row, block, column.
        const int64_t block_row = row_of(offsets, 0, 0, block_rows, e / area);
        const int64_t start = offsets[block_row], blocks = offsets[block_row + 1] - start;
        const int64_t inner = e - start * area, line = blocks * width;
        const int64_t i = inner / line, slot = inner % line / width, j = inner % width;
        const int64_t block = start + slot;
        const int32_t col = indices[block];
        // Run [run, run_end) of blocks with this column.
        int64_t run = block, run_end = block + 1;
        if (run > start && indices[run - 1] == col)
            run = first_where_not(start, run - 1, [&](int64_t at) { return indices[at] < col; });
        if (run_end < start + blocks && indices[run_end] == col) {
            const auto is_same = [&](int64_t at) { return indices[at] <= col; };
            run_end = first_where_not(run_end + 1, start + blocks, is_same);
        }
        const int64_t out =
            start * area + i * line + (run - start) * width + j * (run_end - run) + (block - run);
        out_indices[out] = int32_t(int64_t(col) * width + j);
        const int64_t inside = by_columns ? j * height + i : i * width + j;
        out_positions[out] = NewPosition(position_of(positions, block) * area + inside);
    }
}

// Lengths of the rows permutation[r], which are rows r of the permuted matrix, with one 0 behind
// them, for an exclusive scan.
template <class O>
__device__ void permuted_lengths(const O *offsets, const int32_t *permutation, int64_t rows,
                                 int64_t *out) {
    for (int64_t r = first_item(); r <= rows; r += grid_stride()) {
        const int64_t from = r < rows ? permutation[r] : -1;
        out[r] = from < 0 ? 0 : int64_t(offsets[from + 1]) - int64_t(offsets[from]);
    }
}

// positions[e] = position before the permutation of entry e of the permuted rows; `new_offsets` are
// the permuted rows' offsets, `offsets` the original ones.
template <class O, class Position>
__device__ void permuted_positions(const int64_t *new_offsets, const O *offsets,
                                   const int32_t *permutation, int64_t base, int64_t rows,
                                   int64_t nnz, Position *positions) {
    for_each_entry(new_offsets, 0, rows, nnz, [&](int64_t row, int64_t e) {
        positions[e] = Position(int64_t(offsets[permutation[row]]) - base + (e - new_offsets[row]));
    });
}

// positions[e] = from[through[e]]
__device__ void compose(const int64_t *from, const int64_t *through, int64_t nnz, int64_t *out) {
    for (int64_t e = first_item(); e < nnz; e += grid_stride())
        out[e] = from[through[e]];
}

} // namespace tarsia

using namespace tarsia;
using u32 = uint32_t;
using u64 = uint64_t;

#define GLOBAL extern "C" __global__ void

// K and P: bits of keys and of positions; with 32-bit offsets, positions have 32 bits.
#define KERNEL_keys_of_compressed(name, O, J, K, P)                                                \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t major, \
                int64_t nnz, int shift, uint##K##_t *keys, uint##P##_t *positions) {               \
        keys_of_compressed(offsets, indices, base, major, nnz, shift, keys, positions);            \
    }
KERNELS(keys_of_compressed, (), (keys_of_compressed_32_32_u32_u32, 32, 32, 32, 32),
        (keys_of_compressed_32_32_u64_u32, 32, 32, 64, 32),
        (keys_of_compressed_64_32_u32_u32, 64, 32, 32, 32),
        (keys_of_compressed_64_32_u64_u32, 64, 32, 64, 32),
        (keys_of_compressed_64_32_u64_u64, 64, 32, 64, 64),
        (keys_of_compressed_64_64_u32_u32, 64, 64, 32, 32),
        (keys_of_compressed_64_64_u64_u32, 64, 64, 64, 32),
        (keys_of_compressed_64_64_u64_u64, 64, 64, 64, 64))

#define KERNEL_keys_of_pairs(name, J, K, P)                                                        \
    GLOBAL name(const int##J##_t *first, const int##J##_t *second, int64_t base, int64_t nnz,      \
                int shift, uint##K##_t *keys, uint##P##_t *positions) {                            \
        keys_of_pairs(first, second, base, nnz, shift, keys, positions);                           \
    }
KERNELS(keys_of_pairs, (), (keys_of_pairs_32_u32_u32, 32, 32, 32),
        (keys_of_pairs_32_u64_u32, 32, 64, 32), (keys_of_pairs_32_u64_u64, 32, 64, 64),
        (keys_of_pairs_64_u32_u32, 64, 32, 32), (keys_of_pairs_64_u64_u32, 64, 64, 32),
        (keys_of_pairs_64_u64_u64, 64, 64, 64))

#define KERNEL_rows_of_entries(name, O)                                                            \
    GLOBAL name(const int##O##_t *offsets, int64_t base, int64_t rows, int64_t nnz,                \
                int32_t *out) {                                                                    \
        rows_of_entries(offsets, base, rows, nnz, out);                                            \
    }
KERNELS(rows_of_entries, (), (rows_of_entries_32, 32), (rows_of_entries_64, 64))

#define KERNEL_copy_offsets(name, O)                                                               \
    GLOBAL name(const int##O##_t *from, int64_t base, int64_t count, int64_t *out) {               \
        copy_offsets(from, base, count, out);                                                      \
    }
KERNELS(copy_offsets, (), (copy_offsets_32, 32), (copy_offsets_64, 64))

#define KERNEL_permuted_lengths(name, O)                                                           \
    GLOBAL name(const int##O##_t *offsets, const int32_t *permutation, int64_t rows,               \
                int64_t *out) {                                                                    \
        permuted_lengths(offsets, permutation, rows, out);                                         \
    }
KERNELS(permuted_lengths, (), (permuted_lengths_32, 32), (permuted_lengths_64, 64))

#define KERNEL_permuted_positions(name, O)                                                         \
    GLOBAL name(const int64_t *new_offsets, const int##O##_t *offsets, const int32_t *permutation, \
                int64_t base, int64_t rows, int64_t nnz, int64_t *positions) {                     \
        permuted_positions(new_offsets, offsets, permutation, base, rows, nnz, positions);         \
    }
KERNELS(permuted_positions, (), (permuted_positions_32, 32), (permuted_positions_64, 64))

#define KERNEL_offsets_of_keys(name, K)                                                            \
    GLOBAL name(const uint##K##_t *keys, int64_t nnz, int64_t rows, int shift, int64_t base,       \
                int64_t *out) {                                                                    \
        offsets_of_keys(keys, nnz, rows, shift, base, out);                                        \
    }
KERNELS(offsets_of_keys, (), (offsets_of_keys_u32, 32), (offsets_of_keys_u64, 64))

#define KERNEL_columns_of_keys(name, K)                                                            \
    GLOBAL name(const uint##K##_t *keys, int64_t nnz, int64_t mask, int32_t *out) {                \
        columns_of_keys(keys, nnz, mask, out);                                                     \
    }
KERNELS(columns_of_keys, (), (columns_of_keys_u32, 32), (columns_of_keys_u64, 64))

#define KERNEL_gather_columns(name, J, P)                                                          \
    GLOBAL name(const int##J##_t *from, const uint##P##_t *positions, int64_t base, int64_t nnz,   \
                int32_t *out) {                                                                    \
        gather_columns(from, positions, base, nnz, out);                                           \
    }
KERNELS(gather_columns, (), (gather_columns_32_u32, 32, 32), (gather_columns_64_u32, 64, 32),
        (gather_columns_32_u64, 32, 64), (gather_columns_64_u64, 64, 64))

// P and Q: bits of the positions before and after the expansion.
#define KERNEL_expand_blocks(name, P, Q)                                                           \
    GLOBAL name(const int64_t *offsets, const int32_t *indices, const uint##P##_t *positions,      \
                int64_t block_rows, int64_t nnz, int64_t height, int64_t width, int by_columns,    \
                int32_t *out_indices, uint##Q##_t *out_positions) {                                \
        expand_blocks(offsets, indices, positions, block_rows, nnz, height, width, by_columns,     \
                      out_indices, out_positions);                                                 \
    }
KERNELS(expand_blocks, (), (expand_blocks_u32_u32, 32, 32), (expand_blocks_u32_u64, 32, 64),
        (expand_blocks_u64_u64, 64, 64))

// Computes the offsets of scalar rows from those of block rows.
GLOBAL expand_offsets(const int64_t *offsets, int64_t rows, int64_t height, int64_t width,
                      int64_t *out) {
    for (int64_t r = first_item(); r <= rows; r += grid_stride()) {
        const int64_t start = offsets[r / height];
        // Row `rows` would be in a block row that does not exist.
        const int64_t blocks = r < rows ? offsets[r / height + 1] - start : 0;
        out[r] = (start * height + blocks * (r % height)) * width;
    }
}

GLOBAL widen_positions(const u32 *from, int64_t nnz, u64 *out) {
    for (int64_t e = first_item(); e < nnz; e += grid_stride())
        out[e] = from ? from[e] : u64(e);
}

GLOBAL compose_positions(const int64_t *from, const int64_t *through, int64_t nnz, int64_t *out) {
    compose(from, through, nnz, out);
}
