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

} // namespace tarsia
