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

} // namespace tarsia::convert
