// Code shared by the kernels that multiply the windows of src/format/masked_window.rs: their
// parameters, a lane's values of a tile, the addition of partial sums, and the computation of rows
// from stored entries alone.
#pragma once

#include "spmm/windows.cuh"

namespace tarsia::masked {

using namespace windows;

// Number of columns of a block, and of rows of a tile.
constexpr int kBlock = 8;

// Windows of A. `values` can be read up to a multiple of 16 bytes.
struct Matrix {
    const Item *items;
    const Part *parts;
    // Columns of A, 8 per block.
    const uint32_t *columns;
    // Mask and first value of each tile, that is, of 8 rows of a block.
    const uint64_t *masks;
    const uint32_t *starts;
    const void *values;
    int64_t item_count, rows;
    // Row of C that each row belongs to, or kHole; NULL if rows are in order.
    const uint32_t *order;
};

// Position of a block of threads in C. `tiles` tiles of columns of C of one item are neighbours in
// the grid's x, so that they read A and rows of B at about the same time; further groups of such
// tiles follow in y.
struct Place {
    int64_t item, tile;

    // Volatile reads, so that a Place made again after a loop is computed again and takes no
    // registers in the loop.
    __device__ __forceinline__ explicit Place(int32_t tiles) {
        uint32_t x, y;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
        asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(y));
        item = x / uint32_t(tiles);
        tile = int64_t(y) * tiles + x % uint32_t(tiles);
    }
};

// Loads an item, by a volatile read for the same reason as in Place.
__device__ __forceinline__ Item item_of(const Matrix &m, int64_t at) {
    Item item;
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(item.window), "=r"(item.first), "=r"(item.end), "=r"(item.part)
                 : "l"(m.items + at));
    return item;
}

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
// the blocks [first, end), whose rows begin at `row`, in columns [at, at + width). Called by a
// warp.
template <class V, class T, class X, class Y>
__device__ __forceinline__ void exact(const Matrix &m, const Dense<X, Y> &d, uint32_t first,
                                      uint32_t end, int64_t row, int height, int group, int groups,
                                      int64_t at, int width, T alpha, T beta) {
    const int lane = threadIdx.x & 31, of_block = height / kBlock;
#pragma unroll 1
    for (int r = 0; r < groups * kBlock; ++r) {
        const int64_t own = row_of_c(m, row + r);
        if (own < 0)
            continue;
#pragma unroll 1
        for (int64_t j = at + lane; j < d.n && j < at + width; j += 32) {
            T sum = 0;
#pragma unroll 1
            for (uint32_t b = first; b < end; ++b) {
                const int64_t tile = int64_t(b) * of_block + group + r / kBlock;
                const uint64_t mask = m.masks[tile];
#pragma unroll 1
                for (int k = 0; k < kBlock; ++k) {
                    const int bit = k / 4 * 32 + r % kBlock * 4 + k % 4;
                    if ((mask >> bit & 1) == 0)
                        continue;
                    const int64_t number =
                        m.starts[tile] + __popcll(mask & ((uint64_t(1) << bit) - 1));
                    const V value = static_cast<const V *>(m.values)[number];
                    const int64_t column = m.columns[int64_t(b) * kBlock + k];
                    sum = fma(widen<T>(value), widen<T>(d.b[column * d.ldb + j]), sum);
                }
            }
            store(d.c + own * d.ldc + j, alpha, sum, beta);
        }
    }
}

// Returns the item with the blocks of its whole window.
__device__ __forceinline__ Item whole_of(const Matrix &m, Item item) {
    if (item.part != kWhole) {
        const Part own = m.parts[item.part];
        item.first = m.items[own.first].first;
        item.end = m.items[own.first + own.count - 1].end;
    }
    return item;
}

// Stores a part's sums. Returns true in the last part of a window to arrive, which then has the
// sums of all parts, added in the order of the parts. Called by all threads that have sums of the
// item: `threads` of them, this one with number `thread`. They synchronize by `wait`, and `share`
// broadcasts the result.
template <int N, class T, class Wait, class Share>
__device__ __forceinline__ bool join(const Matrix &m, const Join &j, uint32_t part,
                                     int64_t column_tile, T (&sums)[N][4], int thread, int threads,
                                     Wait wait, Share share) {
    const Part own = m.parts[part];
    T *all =
        static_cast<T *>(j.sums) + column_tile * j.part_count * (int64_t(N) * 4 * threads) + thread;
    const auto at = [&](uint32_t number) { return all + int64_t(number) * (N * 4) * threads; };
#pragma unroll
    for (int i = 0; i < N * 4; ++i)
        at(part)[int64_t(i) * threads] = sums[i / 4][i % 4];
    if (!is_last(j, own, column_tile, thread, wait, share))
        return false;
#pragma unroll
    for (int i = 0; i < N * 4; ++i)
        sums[i / 4][i % 4] = 0;
    // Loads of several parts are in flight at one time: one part after the other, a row of 114,000
    // entries (dc2, N = 32) took 80 µs.
    constexpr int AT_ONCE = N * 4 >= 32 ? 1 : 32 / (N * 4);
#pragma unroll AT_ONCE
    for (uint32_t number = own.first; number < own.first + own.count; ++number) {
#pragma unroll
        for (int i = 0; i < N * 4; ++i)
            sums[i / 4][i % 4] += __ldcg(at(number) + int64_t(i) * threads);
    }
    return true;
}

} // namespace tarsia::masked
