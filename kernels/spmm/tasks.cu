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

// order[i]: the row of place i; −1 where that row has more than `most` entries:
// it becomes pieces of at most `cut` entries. counts (zero before): pieces, cut
// rows, sums of pieces; where in the lists a row's pieces stand differs from
// run to run, but they are next to each other.
extern "C" __global__ void __launch_bounds__(kWindow)
    spmm_tasks(const void *offsets, int64_t wide, int64_t base, int64_t rows, int64_t most,
               int64_t cut, int64_t sort, int32_t *order, Piece *pieces, Cut *cuts,
               unsigned long long *counts) {
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
    if (length > most) {
        entry[0] = -1;
        const int64_t count = (length + cut - 1) / cut;
        const int64_t first = atomicAdd(&counts[0], static_cast<unsigned long long>(count));
        int64_t slot = -1;
        if (count > 1) {
            slot = atomicAdd(&counts[2], static_cast<unsigned long long>(count));
            cuts[atomicAdd(&counts[1], 1ull)] = {row, slot, count};
        }
        // Pieces of equal length and not a short last one.
        for (int64_t i = 0; i < count; ++i) {
            pieces[first + i] = {begin + length * i / count, begin + length * (i + 1) / count, row,
                                 count > 1 ? slot + i : -1};
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

// Adds to counts[b] the entries of every `step`-th row that are some distance d from where the
// diagonal would be, b the whole part of 4 log2(1 + d), which is taken to be linear between
// powers of two: 1 + d as a float has 2 bits of its mantissa beside its exponent.
template <class J>
__device__ __forceinline__ void reach(const void *offsets, int64_t wide, const J *indices,
                                      int64_t base, int64_t rows, int64_t cols, int64_t step,
                                      unsigned long long *counts) {
    __shared__ unsigned bins[kWindow];
    bins[threadIdx.x] = 0;
    __syncthreads();
    const int64_t row = (int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32) * step;
    if (row < rows) {
        auto at = [&](int64_t i) {
            return (wide ? static_cast<const int64_t *>(offsets)[i]
                         : int64_t(static_cast<const int32_t *>(offsets)[i])) -
                   base;
        };
        const int64_t begin = at(row), end = at(row + 1);
        const int64_t diagonal = int64_t(double(row) / double(rows) * double(cols));
        for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
            const float distance = float(1 + abs(int64_t(indices[i]) - base - diagonal));
            atomicAdd(&bins[(__float_as_uint(distance) >> 21) - (127 << 2)], 1u);
        }
    }
    __syncthreads();
    if (bins[threadIdx.x] > 0)
        atomicAdd(&counts[threadIdx.x], static_cast<unsigned long long>(bins[threadIdx.x]));
}

#define REACH(width, J)                                                                            \
    extern "C" __global__ void __launch_bounds__(kWindow)                                          \
        spmm_reach_##width(const void *offsets, int64_t wide, const J *indices, int64_t base,      \
                           int64_t rows, int64_t cols, int64_t step, unsigned long long *counts) { \
        reach<J>(offsets, wide, indices, base, rows, cols, step, counts);                          \
    }
REACH(32, int32_t)
REACH(64, int64_t)
