// SpMV `csr`, form `rows`: 2 to 32 lanes sum a row; a row that is long for them is summed by its
// whole block. There is no search and no workspace: it is the fastest form for a small matrix, and
// correct, but slow, if one row has most entries.
#pragma once

#include "spmv/dot.cuh"

namespace tarsia::spmv {

// Number of entries of a lane in flight at one time. Lanes per row are chosen so that a row of mean
// length takes one step (src/backend/cuda/spmv/csr.rs).
constexpr int ROW_UNROLL = 4;
// Number of steps of a row's lanes beyond which the block takes the row: the block's two barriers
// and its reduction cost about as much as this many steps.
constexpr int LONG_STEPS = 8;

template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void rows(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                     Acc alpha, Acc beta, int lanes_log2) {
    __shared__ unsigned long_rows[WARPS];
    __shared__ Acc partial[WARPS];
    if (is_zero(alpha)) {
        scale_rows(y, a.rows, beta);
        return;
    }
    const int lanes = 1 << lanes_log2;
    const int lane = threadIdx.x & (lanes - 1), warp = threadIdx.x / WARP;
    const int64_t first_thread = int64_t(blockIdx.x) * THREADS;
    const int64_t row = (first_thread + threadIdx.x) >> lanes_log2;
    int64_t begin = 0, end = 0;
    if (row < a.rows) {
        begin = a.start(row);
        end = a.start(row + 1);
    }
    // A row beyond the last has no entries, so it does not matter which x it takes.
    const X *row_x = a.x_of(x, min(row, a.rows - 1));
    const bool is_long = end - begin > int64_t(LONG_STEPS * ROW_UNROLL) << lanes_log2;
    Acc sum = zero<Acc>();
    if (!is_long)
        sum = dot<ROW_UNROLL, Acc>(a, row_x, begin + lane, end, lanes);
    __syncwarp();
    sum = sum_of_lanes(sum, lanes);
    if (lane == 0 && row < a.rows && !is_long)
        y.store(a.row_of_y(row), alpha, sum, beta);

    // Mask of the first lanes of long rows.
    const unsigned mine = __ballot_sync(ALL_LANES, is_long && lane == 0);
    if (threadIdx.x % WARP == 0)
        long_rows[warp] = mine;
    if (!__syncthreads_or(is_long))
        return;
    for (int w = 0; w < WARPS; ++w) {
        for (unsigned left = long_rows[w]; left != 0; left &= left - 1) {
            const int64_t r = (first_thread + w * WARP + __ffs(left) - 1) >> lanes_log2;
            Acc part = dot<ROW_UNROLL, Acc>(a, a.x_of(x, r), a.start(r) + threadIdx.x,
                                            a.start(r + 1), THREADS);
            __syncwarp();
            part = sum_of_lanes(part);
            if (threadIdx.x % WARP == 0)
                partial[warp] = part;
            __syncthreads();
            if (threadIdx.x == 0) {
                Acc total = partial[0];
                for (int p = 1; p < WARPS; ++p)
                    total = add(total, partial[p]);
                y.store(a.row_of_y(r), alpha, total, beta);
            }
            __syncthreads();
        }
    }
}

} // namespace tarsia::spmv
