// Functions shared by the kernels that fill windows from the ranks of their columns
// (format/window_ranks.cuh): with dense tiles (format/window.cu) and with masked ones
// (format/masked_window.cu).
#pragma once

#include "common/block.cuh"
#include "format/window.cuh"
#include "format/window_ranks.cuh"

namespace tarsia::convert {

// Threads of a block.
constexpr int THREADS = 256;

// Arrays in which the conversion has stored the ranks and columns of windows. `masks`: of the tiles
// that exist, in windows with dense tiles of more than 16 rows.
struct Numbers {
    const uint32_t *ranks, *list, *distinct;
    const uint8_t *masks;
    // Number of blocks before each window; behind them, where there are masks, exclusive sums of
    // the windows' tiles that count on from the number of blocks.
    const int64_t *starts;
};

// Writes the columns of a window's blocks of WIDTH columns, with padding in the last block. `first`
// is the window's first entry.
template <int WIDTH>
__device__ __forceinline__ void write_columns(const Numbers &numbers, int64_t window, int64_t first,
                                              uint32_t *columns) {
    const uint32_t distinct = numbers.distinct[window];
    const int64_t block = numbers.starts[window], end = numbers.starts[window + 1];
    const uint32_t *const list = numbers.list + first;
    for (int64_t i = threadIdx.x; i < (end - block) * WIDTH; i += blockDim.x)
        columns[block * WIDTH + i] = i < distinct ? list[i] : list[distinct - 1] | parts::PADDING;
}

// Neighbouring lanes with equal keys, at most MOST of them, set bits of one word: the first of
// these lanes gets the bits of all. Returns whether this lane is the first. Called by whole warps.
template <int MOST, class Key, class Bits>
__device__ __forceinline__ bool gather_bits(Key key, Bits &bits) {
    const int lane = threadIdx.x % WARP;
    const Key left = __shfl_up_sync(ALL_LANES, key, 1);
    for (int delta = 1; delta < MOST; delta *= 2) {
        const Key other = __shfl_down_sync(ALL_LANES, key, delta);
        const Bits theirs = __shfl_down_sync(ALL_LANES, bits, delta);
        if (lane + delta < WARP && other == key)
            bits |= theirs;
    }
    return lane == 0 || left != key;
}

} // namespace tarsia::convert
