// Where a thread is in a grid of one dimension.
#pragma once

#include <cstdint>

namespace tarsia {

// The first of the items that a thread takes, where all threads take turns, and how many items
// further its next one is.
__device__ __forceinline__ int64_t first_item() {
    return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_stride() { return int64_t(gridDim.x) * blockDim.x; }

} // namespace tarsia
