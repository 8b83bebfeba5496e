// Position of a thread in a one-dimensional grid.
#pragma once

#include <cstdint>

namespace tarsia {

// First item of a thread in a grid-stride loop, and the distance to its next one.
__device__ __forceinline__ int64_t first_item() {
    return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_stride() { return int64_t(gridDim.x) * blockDim.x; }

} // namespace tarsia
