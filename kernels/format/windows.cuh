// Functions shared by kernels that sort rows, most of them a window of rows per thread block.
#pragma once

#include "common/grid.cuh"

namespace tarsia::convert {

constexpr int WARP = 32;
constexpr int THREADS = 256;
// Largest number of rows of a window, and the number of them per thread.
constexpr int MOST_ITEMS = 1024, OF_THREAD = MOST_ITEMS / THREADS;

template <class O> __device__ __forceinline__ int64_t length_of(const O *offsets, int64_t row) {
    return int64_t(offsets[row + 1]) - int64_t(offsets[row]);
}

template <class T, class F> __device__ __forceinline__ T scan_of_warp(T v, F join) {
    for (int delta = 1; delta < WARP; delta *= 2) {
        const T before = __shfl_up_sync(~0u, v, delta);
        if (int(threadIdx.x) % WARP >= delta)
            v = join(before, v);
    }
    return v;
}
// Inclusive scan with `join` over the threads of a block of up to 1,024; `all` is the total. Called
// by all threads.
template <class T, class F> __device__ T scan_of_block(T v, F join, T &all) {
    __shared__ T of_warp[WARP];
    const int warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    v = scan_of_warp(v, join);
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
__device__ __forceinline__ int64_t sum_before(int64_t v, int64_t &all) {
    return scan_of_block(
               v, [](int64_t a, int64_t b) { return a + b; }, all) -
           v;
}

// Maximum of `latest` over the threads before this one, or 0 for the first. Called by all threads
// of a block.
__device__ __forceinline__ int latest_before(int latest) {
    __shared__ int upto[THREADS];
    int all;
    upto[threadIdx.x] = scan_of_block(
        latest, [](int a, int b) { return max(a, b); }, all);
    __syncthreads();
    return threadIdx.x > 0 ? upto[threadIdx.x - 1] : 0;
}

} // namespace tarsia::convert
