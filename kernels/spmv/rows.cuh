// SpMV `csr`, form `rows`: 2 to 32 lanes, or a block, sum a row; a row that is long for the lanes
// is summed by its whole block. Without a limit there is no search and no workspace: it is the
// fastest form for a small matrix, and correct, but slow, if one row has most entries. With a
// limit, rows that are longer are cut into parts for blocks, which find them.
#pragma once

#include "common/search.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

// Number of entries of a lane in flight at one time. Lanes per row are chosen so that a row of mean
// length takes one step (src/backend/cuda/spmv/csr.rs).
constexpr int ROW_UNROLL = 4;
// Number of steps of a row's lanes beyond which the block takes the row: the block's two barriers
// and its reduction cost about as much as this many steps.
constexpr int LONG_STEPS = 8;

// Rows that are cut, in a matrix of less than 2^31 rows and entries: those of more than `limit`
// entries, or none if `items` is 0. Each holds a multiple of the limit, counted in entries; the
// item with the number of the first one has the row's first part, and the next items have the
// others. A part has at most twice the limit, so that a row has more multiples than parts, and the
// items number partial sums and counters of arrivals, too. The first blocks of the grid have an
// item each.
template <class Acc> struct Cuts {
    int32_t limit, items;
    Acc *parts;
    uint32_t *arrivals;
};

// Sums the entries [begin, end) of a row by the block; thread 0 gets the sum.
template <class Acc, class A, class X, class I, class J>
__device__ __forceinline__ Acc sum_by_block(const Csr<A, I, J> &a, const X *x, int64_t row,
                                            int64_t begin, int64_t end) {
    __shared__ Acc partial[WARPS];
    Acc sum = dot<ROW_UNROLL, Acc>(a, a.x_of(x, row), begin + threadIdx.x, end, THREADS);
    __syncwarp();
    sum = sum_of_lanes(sum);
    // The threads may still read the sums of another row.
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        partial[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = partial[0];
        for (int p = 1; p < WARPS; ++p)
            sum = add(sum, partial[p]);
    }
    return sum;
}

// Sums the part of a row that an item is; the last part of the row to arrive stores their sum.
template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void sum_part(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                         Acc alpha, Acc beta, int item, const Cuts<Acc> &cuts) {
    const int limit = cuts.limit;
    const auto start = [&](int row) { return int(a.start(row)); };
    const int row =
        last_where_by_warp(int(a.rows), [&](int r) { return start(r) <= item * limit; });
    const int begin = start(row), length = start(row + 1) - begin;
    const int first = (begin + limit - 1) / limit, index = item - first;
    const int count = (length + 2 * limit - 1) / (2 * limit);
    if (length <= limit || index >= count)
        return;
    // Parts have equal lengths.
    const auto upto = [&](int parts) { return begin + int(int64_t(length) * parts / count); };
    Acc sum = sum_by_block<Acc>(a, x, row, upto(index), upto(index + 1));
    if (threadIdx.x >= WARP)
        return;
    if (count > 1) {
        if (threadIdx.x == 0)
            cuts.parts[item] = sum;
        if (!is_last_to_arrive(cuts.arrivals + first, uint32_t(count)))
            return;
        sum = sum_of_parts<Acc>(first, first + count,
                                [&](int part) { return load_l2(cuts.parts + part); });
        if (threadIdx.x == 0)
            cuts.arrivals[first] = 0;
    }
    if (threadIdx.x == 0)
        y.store(a.row_of_y(row), alpha, sum, beta);
}

template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void rows(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                     Acc alpha, Acc beta, int lanes_log2, const Cuts<Acc> &cuts) {
    __shared__ unsigned long_rows[WARPS];
    if (is_zero(alpha)) {
        scale_rows(y, a.rows, beta);
        return;
    }
    const int64_t block = int64_t(blockIdx.x) - cuts.items;
    if (block < 0) {
        sum_part(a, x, y, alpha, beta, int(blockIdx.x), cuts);
        return;
    }
    const int lanes = 1 << lanes_log2;
    const int lane = threadIdx.x & (lanes - 1), warp = threadIdx.x / WARP;
    const int64_t first_thread = block * THREADS;
    const int64_t row = (first_thread + threadIdx.x) >> lanes_log2;
    int64_t begin = 0, end = 0;
    bool is_mine = row < a.rows;
    if (is_mine) {
        begin = a.start(row);
        end = a.start(row + 1);
        is_mine = cuts.items == 0 || end - begin <= cuts.limit;
    }
    // A row beyond the last has no entries, so it does not matter which x it takes.
    const X *row_x = a.x_of(x, min(row, a.rows - 1));
    const bool is_long =
        is_mine && (lanes > WARP || end - begin > int64_t(LONG_STEPS * ROW_UNROLL) << lanes_log2);
    const bool is_short = is_mine && !is_long;
    Acc sum = zero<Acc>();
    if (is_short)
        sum = dot<ROW_UNROLL, Acc>(a, row_x, begin + lane, end, lanes);
    __syncwarp();
    sum = sum_of_lanes(sum, min(lanes, WARP));
    if (lane == 0 && is_short)
        y.store(a.row_of_y(row), alpha, sum, beta);

    // Mask of the first lanes of long rows.
    const unsigned mine = __ballot_sync(~0u, is_long && lane == 0);
    if (threadIdx.x % WARP == 0)
        long_rows[warp] = mine;
    if (!__syncthreads_or(is_long))
        return;
    for (int w = 0; w < WARPS; ++w) {
        for (unsigned left = long_rows[w]; left != 0; left &= left - 1) {
            const int64_t r = (first_thread + w * WARP + __ffs(left) - 1) >> lanes_log2;
            const Acc sum = sum_by_block<Acc>(a, x, r, a.start(r), a.start(r + 1));
            if (threadIdx.x == 0)
                y.store(a.row_of_y(r), alpha, sum, beta);
        }
    }
}

} // namespace tarsia::spmv
