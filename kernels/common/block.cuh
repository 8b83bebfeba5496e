// Scans over the threads of a block.
#pragma once

#include "ptx/warp.cuh"

namespace tarsia {

// Inclusive scan with `join` over the threads of a block of up to 1,024, in whole warps; `all` is
// the total. Called by all threads.
template <class T, class Combine> __device__ T scan_of_block(T v, Combine join, T &all) {
    __shared__ T of_warp[WARP];
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    v = scan_lanes(v, join);
    __syncthreads();
    if (threadIdx.x % WARP == WARP - 1)
        of_warp[warp] = v;
    __syncthreads();
    all = of_warp[0];
    for (int w = 1; w < warps; ++w) {
        if (w == warp)
            v = join(all, v);
        all = join(all, of_warp[w]);
    }
    return v;
}

// Sum over the threads before this one.
template <class T> __device__ __forceinline__ T sum_before(T v, T &all) {
    const T upto = scan_of_block(
        v, [](T a, T b) { return a + b; }, all);
    return upto - v;
}

// Replaces an array of n + 1 numbers by its exclusive sums; the total goes to array[n] and to
// *sums. One block per array.
__device__ __forceinline__ void scan_array(int64_t *array, int64_t n, int64_t *sums) {
    int64_t before = 0;
    for (int64_t first = 0; first < n; first += blockDim.x) {
        const int64_t at = first + threadIdx.x;
        const int64_t v = at < n ? array[at] : 0;
        int64_t all;
        const int64_t inside = sum_before(v, all);
        if (at < n)
            array[at] = before + inside;
        before += all;
    }
    if (threadIdx.x == 0) {
        array[n] = before;
        *sums = before;
    }
}

} // namespace tarsia
