// Sparse tiles of 16 × 16 (src/format/tile.rs), as kernels read them, and sets of tile columns.
#pragma once

#include "spgemm/common.cuh"

namespace tarsia::tile {

using spgemm::lane_id;

constexpr int SIDE = 16;
// Threads of a block that takes a row of tiles.
constexpr int BLOCK = 128;

// Tiles of a matrix, one row of tiles after the other. (`Tiles` in src/backend/cuda/spgemm/tile.)
struct Tiles {
    // First tile of each row of tiles, and the number of tiles.
    const int64_t *rows;
    // Tile column of each tile.
    const uint32_t *columns;
    // First entry of each tile, and the number of entries.
    const int64_t *starts;
    // 16 per tile: number of entries of the tile before the row; bit mask of the row's columns.
    const uint8_t *row_ptr;
    const uint16_t *masks;
    // Bits of the rows (low half) and columns (high half) of the tile that have an entry.
    const uint32_t *used;
};

// Column-wise list of the same tiles: start of each column of tiles, and row and number of each of
// its tiles.
struct TileColumns {
    const int64_t *starts;
    const uint32_t *rows;
    const uint32_t *tiles;
};

// Set of tile columns in a contiguous range, in shared memory: one bit per column, and for each
// 64-bit word the number of elements in the words before.
struct Set {
    unsigned long long *words;
    unsigned *ranks;

    __device__ __forceinline__ void clear(int used) const {
        for (int i = threadIdx.x; i < used; i += blockDim.x)
            words[i] = 0;
    }
    __device__ __forceinline__ void insert(int at) const {
        spgemm::set_bit(reinterpret_cast<unsigned *>(words), at);
    }
    // Returns the number of elements in `used` words, and fills the ranks. Needs a barrier before
    // it, after the elements are inserted; ends with one.
    __device__ __forceinline__ int number(int used, int *of_warps) const {
        int count = 0;
        for (int first = 0; first < used; first += blockDim.x) {
            const int i = first + threadIdx.x;
            const int own = i < used ? __popcll(words[i]) : 0;
            int all;
            const int sum = block_prefix_sum(own, of_warps, all);
            if (i < used)
                ranks[i] = count + sum - own;
            count += all;
        }
        __syncthreads();
        return count;
    }
    // Returns the number of elements that are less than `at`.
    __device__ __forceinline__ int rank(int at) const {
        const unsigned long long below = (1ull << (at & 63)) - 1;
        return static_cast<int>(ranks[at >> 6]) + __popcll(words[at >> 6] & below);
    }
    // Calls f(rank, element) for this thread's elements.
    template <class Function> __device__ __forceinline__ void each(int used, Function f) const {
        for (int i = threadIdx.x; i < used; i += blockDim.x) {
            int at = static_cast<int>(ranks[i]);
            for (unsigned long long word = words[i]; word != 0; word &= word - 1, ++at)
                f(at, 64 * i + __ffsll(word) - 1);
        }
    }
};

// Computes the minimum and the maximum over the block; `of_warps` is shared memory of 32 elements.
__device__ __forceinline__ void block_extent(int64_t &least, int64_t &largest, int64_t *of_warps) {
    least = spgemm::block_least(least, of_warps);
    largest = -spgemm::block_least(-largest, of_warps);
}

// counts[blockIdx.x] = number of tile columns from `low` to `last`; collect(low, width, set)
// inserts those of a range of at most `bits` into the set. Dynamic shared memory: `bits` / 64
// words. Called by all threads of a block.
template <class Collect>
__device__ __forceinline__ void count_columns(int64_t low, int64_t last, int32_t bits,
                                              int64_t *of_warps, int64_t *counts, Collect collect) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Set set{reinterpret_cast<unsigned long long *>(memory), nullptr};
    int64_t found = 0;
    for (; low <= last; low += bits) {
        const int64_t width = min(int64_t(bits), last - low + 1);
        collect(low, width, set);
        for (int i = threadIdx.x; i < (width + 63) / 64; i += blockDim.x)
            found += __popcll(set.words[i]);
        __syncthreads();
    }
    int64_t all;
    block_prefix_sum(found, of_warps, all);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = all;
}

} // namespace tarsia::tile
