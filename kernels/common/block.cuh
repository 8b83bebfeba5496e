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

// Returns the inclusive prefix sum over the block, and the total in `all`; `of_warps` is shared
// memory of 32 elements. All threads call it; it ends with a barrier.
template <class T> __device__ __forceinline__ T block_prefix_sum(T value, T *of_warps, T &all) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    value = prefix_sum(value);
    if (lane == 31)
        of_warps[warp] = value;
    __syncthreads();
    if (warp == 0) {
        T sum = lane < warps ? of_warps[lane] : T(0);
        sum = prefix_sum(sum);
        __syncwarp();
        of_warps[lane] = sum;
    }
    __syncthreads();
    if (warp > 0)
        value += of_warps[warp - 1];
    all = of_warps[31];
    __syncthreads();
    return value;
}

// out[i] = number(0) + … + number(i − 1) for i < count; number(count − 1) is not asked for. Called
// by all threads of a block of 1,024. `number` may read out[i].
template <class Function>
__device__ __forceinline__ void scan_in_block(int64_t count, int64_t *out, Function number) {
    constexpr int EACH = 4;
    constexpr int64_t STEP = EACH * 1024;
    __shared__ int64_t of_warps[32];
    int64_t first = EACH * static_cast<int64_t>(threadIdx.x), carried = 0;
    int64_t next[EACH];
    const auto load = [&](int64_t at) {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            next[i] = at + i + 1 < count ? number(at + i) : 0;
    };
    load(first);
    for (int64_t begin = 0; begin < count; begin += STEP, first += STEP) {
        int64_t own[EACH], sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            own[i] = next[i];
            sum += own[i];
        }
        // The next numbers are on their way while the block adds up these.
        load(first + STEP);
        int64_t all;
        int64_t before = carried + block_prefix_sum(sum, of_warps, all) - sum;
        carried += all;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            if (first + i < count)
                out[first + i] = before;
            before += own[i];
        }
    }
}

} // namespace tarsia
