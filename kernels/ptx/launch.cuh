// Launches, blocks and barriers: programmatic dependent launch, the position of a block, barriers
// of some of its warps, and values that the compiler shall keep.
#pragma once

#include <cstdint>

namespace tarsia {

// Programmatic dependent launch: a kernel may begin while the previous one of the stream is still
// running. Before compute capability 9.0 nothing begins early, and nothing waits.

// Lets the next launch begin; its blocks take the place of those of this launch that have ended.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
// Waits until the previous launch has ended and its results are visible.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Overlap of kernels that are independent of each other but need everything before the first. Each
// lets the next one begin when all its blocks have begun (let_next_begin), and ends after the
// previous one, so that what follows the last kernel follows all of them. (`Overlap` in
// src/backend/cuda/launch.rs.)
__device__ __forceinline__ void end_after_previous() {
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        wait_for_previous();
}

// First statement of a kernel that computes a product. The host launches such kernels early: the
// launch overlaps with the end of the kernel before it, whose results are waited for here. The next
// launch is not let begin earlier than that: its waiting blocks made products slower
// (docs/algorithms/memory-and-streams.md).
__device__ __forceinline__ void begin_product() { wait_for_previous(); }

// Position of the block in the grid, read anew by each call: an index that is computed again after
// a loop takes no register in the loop.
__device__ __forceinline__ uint2 block_again() {
    uint2 at;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(at.x));
    asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(at.y));
    return at;
}

// Barrier number BARRIER of the block, for two of its warps.
template <int BARRIER> __device__ __forceinline__ void sync_two_warps() {
    asm volatile("bar.sync %0, 64;" ::"n"(BARRIER) : "memory");
}

// Keeps the compiler from computing an address again for each use.
template <class T> __device__ __forceinline__ void keep_address(T *&address) {
    asm("" : "+l"(address));
}

} // namespace tarsia
