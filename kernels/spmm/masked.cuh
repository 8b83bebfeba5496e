// Code shared by the kernels that multiply the windows of src/format/masked_window.rs: their
// parameters, a lane's values of a tile, the computation of rows from stored entries alone, and the
// stores to C.
#pragma once

#include "ptx/launch.cuh"
#include "spmm/windows.cuh"

namespace tarsia::masked {

using namespace windows;

// Number of columns of a block, and of rows of a tile.
constexpr int BLOCK = 8;

// Windows of A. `values` can be read up to a multiple of 16 bytes.
struct Matrix {
    const WorkItem *items;
    const Part *parts;
    // Columns of A, 8 per block.
    const uint32_t *columns;
    // Mask and first value of each tile, that is, of 8 rows of a block.
    const uint64_t *masks;
    const uint32_t *starts;
    const void *values;
    int64_t item_count, rows;
    // Row of C that each row belongs to, or HOLE; NULL if rows are in order.
    const uint32_t *order;
};

// Vector type of BYTES bytes of T.
template <int BYTES, class T> struct PackOf;
template <> struct PackOf<8, float> { using Type = float2; };
template <> struct PackOf<16, float> { using Type = float4; };
template <> struct PackOf<16, double> { using Type = double2; };

// Position of a block of threads in C. `tiles` tiles of columns of C of one item are neighbours in
// the grid's x, so that they read A and rows of B at about the same time; further groups of such
// tiles follow in y.
struct Position {
    int64_t item, tile;

    // A Position that is made again after a loop is computed again, and takes no registers in it.
    __device__ __forceinline__ explicit Position(int32_t tiles) {
        const uint2 block = block_again();
        item = block.x / uint32_t(tiles);
        tile = int64_t(block.y) * tiles + block.x % uint32_t(tiles);
    }
};

// Gets a lane's two elements of a tile: columns lane % 4 and lane % 4 + 4 of row lane / 4, or 0 if
// they are not stored. `load` gets a value by its number.
template <class T, class Load>
__device__ __forceinline__ void tile_values(uint64_t mask, uint32_t start, int lane, Load load,
                                            T (&out)[2]) {
    const uint32_t low = uint32_t(mask), high = uint32_t(mask >> 32), below = (1u << lane) - 1;
    out[0] = out[1] = T(0);
    if (low >> lane & 1)
        out[0] = widen<T>(load(start + __popc(low & below)));
    if (high >> lane & 1)
        out[1] = widen<T>(load(start + __popc(low) + __popc(high & below)));
}

// Computes rows of C from stored entries alone: the groups [group, group + groups) of a window with
// the blocks of `whole`, whose rows begin at `row`, in columns [at, at + width). Called by a warp.
template <class Value, class Acc, class X, class Y>
__device__ __forceinline__ void exact(const Matrix &m, const Dense<X, Y> &d, const WorkItem &whole,
                                      int64_t row, int height, int group, int groups, int64_t at,
                                      int width, const Scaling<Acc> &scaling) {
    const int of_block = height / BLOCK;
    const auto each_entry = [&](uint32_t b, int r, auto add) {
        const int64_t tile = int64_t(b) * of_block + group + r / BLOCK;
        const uint64_t mask = m.masks[tile];
#pragma unroll 1
        for (int k = 0; k < BLOCK; ++k) {
            const int bit = k / 4 * 32 + r % BLOCK * 4 + k % 4;
            if ((mask >> bit & 1) == 0)
                continue;
            const int64_t number = m.starts[tile] + __popcll(mask & ((uint64_t(1) << bit) - 1));
            add(static_cast<const Value *>(m.values)[number], m.columns[int64_t(b) * BLOCK + k]);
        }
    };
    exact_rows(m, d, whole, row, groups * BLOCK, at, width, scaling, each_entry);
}

// Stores COUNT neighbouring sums of a row of C, which together are at most 16 bytes, except those
// from column n on.
template <int COUNT, class T>
__device__ __forceinline__ void store_sums(const Dense<T, T> &d, int64_t row, int64_t at,
                                           const T (&sums)[COUNT], const Scaling<T> &scaling) {
    T *const to = d.c + row * d.ldc + at;
    if ((d.flags & C_ALIGNED) && at + COUNT <= d.n) {
        using Pack = typename PackOf<COUNT * sizeof(T), T>::Type;
        T out[COUNT];
        Pack pack;
        if (!is_zero(scaling.beta)) {
            pack = *reinterpret_cast<const Pack *>(to);
            memcpy(out, &pack, sizeof out);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            store(out + i, scaling.alpha, sums[i], scaling.beta);
        memcpy(&pack, out, sizeof out);
        // C is not read again, so it should not evict B from L2.
        __stcs(reinterpret_cast<Pack *>(to), pack);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (at + i < d.n)
                store(to + i, scaling.alpha, sums[i], scaling.beta);
        }
    }
}

} // namespace tarsia::masked
