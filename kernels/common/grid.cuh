// Position of a thread in a one-dimensional grid.
#pragma once

#include <cstdint>

namespace tarsia {

// Number of the thread in the grid: in a grid-stride loop its first item, and the distance to its
// next one.
__device__ __forceinline__ int64_t first_item() {
    return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_stride() { return int64_t(gridDim.x) * blockDim.x; }

} // namespace tarsia
