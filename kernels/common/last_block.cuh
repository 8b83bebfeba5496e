// Finds the last block of a grid to finish, and tells the host of results.
#pragma once

#include <cstdint>

namespace tarsia {

// Returns true in all threads of one block of the grid: the last one that calls this, which then
// sees what all blocks have written before. `*arrived` is zero before the launch and after it.
// Every thread of every block must call this exactly once.
__device__ __forceinline__ bool is_last_block(unsigned *arrived) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        // The last increment makes the counter zero again.
        is_last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

// Tells the host that a page of its memory is complete: `*arrived` becomes `ticket`, for which the
// host watches, so that it needs no call of the driver.
struct Arrival {
    volatile uint64_t *arrived;
    uint64_t ticket;

    // Called by all threads of the one block that writes last.
    __device__ __forceinline__ void tell_host() const {
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0)
            *arrived = ticket;
    }
};

} // namespace tarsia
