// What SpMM `row` does in analysis: long rows are cut into pieces, and the rest
// is ordered by length inside windows, so that the groups of a warp finish
// together while neighbouring rows stay neighbours.

#include <cub/block/block_radix_sort.cuh>

#include "spmm/tasks.cuh"

using namespace tarsia;

namespace {

// Rows of a window: as many as a block has threads.
constexpr int kWindow = 256;

// Lengths above this sort alike; pieces are not longer.
constexpr int kLengthBits = 13;

} // namespace

// order[i]: the row of place i; −1 where the row there was cut. A row of more
// than `cut` entries becomes pieces of at most `cut` entries. counts[0] and
// counts[1] (zero before): pieces and cut rows; where in the lists a row's
// pieces stand differs from run to run, but they are next to each other.
extern "C" __global__ void __launch_bounds__(kWindow)
    spmm_tasks(const void *offsets, int64_t wide, int64_t base, int64_t rows, int64_t cut,
               int64_t sort, int32_t *order, Piece *pieces, Cut *cuts, unsigned long long *counts) {
    using Sort = cub::BlockRadixSort<uint16_t, kWindow, 1, int32_t>;
    __shared__ typename Sort::TempStorage storage;
    const int64_t row = int64_t(blockIdx.x) * kWindow + threadIdx.x;
    int64_t begin = 0, length = -1;
    if (row < rows) {
        auto at = [&](int64_t i) {
            return wide ? static_cast<const int64_t *>(offsets)[i]
                        : int64_t(static_cast<const int32_t *>(offsets)[i]);
        };
        begin = at(row) - base;
        length = at(row + 1) - base - begin;
    }
    int32_t entry[1] = {row < rows ? int32_t(row) : -1};
    if (length > cut) {
        entry[0] = -1;
        const int64_t slots = (length + cut - 1) / cut;
        const int64_t first = atomicAdd(&counts[0], static_cast<unsigned long long>(slots));
        const int64_t which = atomicAdd(&counts[1], 1ull);
        cuts[which] = {row, first, slots};
        // Pieces of equal length and not a short last one.
        for (int64_t i = 0; i < slots; ++i) {
            pieces[first + i] = {begin + length * i / slots, begin + length * (i + 1) / slots, row,
                                 first + i};
        }
    }
    if (sort) {
        // Longest first; rows that were cut and places past the last row come last.
        uint16_t key[1] = {uint16_t(entry[0] < 0 ? 0 : length + 1)};
        Sort(storage).SortDescending(key, entry, 0, kLengthBits + 1);
    }
    if (row < rows)
        order[row] = entry[0];
}
