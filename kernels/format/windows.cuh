// Functions shared by kernels that sort rows, most of them a window of rows per thread block.
#pragma once

#include "common/block.cuh"
#include "common/grid.cuh"

namespace tarsia::convert {

constexpr int THREADS = 256;
// Largest number of rows of a window, which are sorted together, and how many of them a thread has.
constexpr int MOST_ITEMS = 1024, OF_THREAD = MOST_ITEMS / THREADS;

template <class O> __device__ __forceinline__ int64_t length_of(const O *offsets, int64_t row) {
    return int64_t(offsets[row + 1]) - int64_t(offsets[row]);
}

// Returns the maximum of `latest` over the threads before this one, or 0 in the first thread. All
// threads of a block call it.
__device__ __forceinline__ int latest_before(int latest) {
    __shared__ int upto[THREADS];
    int all;
    upto[threadIdx.x] = scan_of_block(
        latest, [](int a, int b) { return max(a, b); }, all);
    __syncthreads();
    return threadIdx.x > 0 ? upto[threadIdx.x - 1] : 0;
}

// One step of a bitonic sort of the block's keys, of which each thread has OF_THREAD neighbours:
// compares keys at this distance, in the order that runs of `size` keys have. Keys of a thread and
// of a warp meet in registers, others in `keys`.
__device__ __forceinline__ void compare_keys(uint32_t (&own)[OF_THREAD], uint32_t *keys, int size,
                                             int distance) {
    const int first = int(threadIdx.x) * OF_THREAD;
    if (distance < OF_THREAD) {
#pragma unroll
        for (int i = 0; i < OF_THREAD; ++i) {
            const int other = i ^ distance;
            if (other < i)
                continue;
            const bool ascends = ((first + i) & size) == 0;
            const uint32_t low = min(own[i], own[other]), high = max(own[i], own[other]);
            own[i] = ascends ? low : high;
            own[other] = ascends ? high : low;
        }
        return;
    }
    uint32_t others[OF_THREAD];
    if (distance < OF_THREAD * WARP) {
#pragma unroll
        for (int i = 0; i < OF_THREAD; ++i)
            others[i] = __shfl_xor_sync(ALL_LANES, own[i], distance / OF_THREAD);
    } else {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < OF_THREAD; ++i)
            keys[first + i] = own[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < OF_THREAD; ++i)
            others[i] = keys[(first + i) ^ distance];
    }
    const bool takes_least = ((first & distance) == 0) == ((first & size) == 0);
#pragma unroll
    for (int i = 0; i < OF_THREAD; ++i)
        own[i] = takes_least ? min(own[i], others[i]) : max(own[i], others[i]);
}

// Sorts 1,024 keys in ascending order; called by all threads of a block.
__device__ __forceinline__ void sort_keys(uint32_t *keys) {
    __syncthreads();
    const int first = int(threadIdx.x) * OF_THREAD;
    uint32_t own[OF_THREAD];
    bool ascend = true;
#pragma unroll
    for (int i = 0; i < OF_THREAD; ++i) {
        own[i] = keys[first + i];
        ascend &= first + i == 0 || keys[first + i - 1] <= own[i];
    }
    // Keys are sorted already if all rows have the same length.
    if (__syncthreads_and(ascend))
        return;
#pragma unroll
    for (int size = 2; size <= MOST_ITEMS; size *= 2) {
#pragma unroll
        for (int distance = size / 2; distance > 0; distance /= 2)
            compare_keys(own, keys, size, distance);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < OF_THREAD; ++i)
        keys[first + i] = own[i];
    __syncthreads();
}

} // namespace tarsia::convert
