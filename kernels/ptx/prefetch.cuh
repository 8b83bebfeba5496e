// Prefetches into L2 at the beginning of a product.
//
// A product of a small matrix is a chain of dependent loads: a list of rows, entries of A, rows of
// B. Where nothing is in L2, each of them waits for memory. So the threads of a launch together ask
// for A's columns and values and for B before they begin: later loads find them in L2, or on their
// way. This does not wait for the previous kernel, even if that writes B: nothing is read into
// registers or L1, and what the kernel writes replaces the lines in L2.
//
// src/select/spmm/prefetch.rs says which products gain (docs/algorithms/sell.md). The others skip
// the code, which still costs them 1 % in the mean where caches are flushed.
#pragma once

#include "ptx/launch.cuh"

namespace tarsia {

// Number of lines of each array that a launch prefetches. 0: none of it, or, for the first one,
// none at all.
struct Prefetch {
    uint32_t lines[4];
};

// Prefetches every `step`th of the array's lines, from line `first` on.
__device__ __forceinline__ void prefetch_lines(const void *from, uint32_t lines, uint32_t first,
                                               uint32_t step) {
#pragma unroll 1
    for (uint32_t line = first; line < lines; line += step) {
        const char *at = static_cast<const char *>(from) + uint64_t(line) * 128;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
    }
}

// Prefetches arrays by all threads of the grid, of which there are less than 2^32
// (src/select/spmm/prefetch.rs).
template <class... Arrays>
__device__ __forceinline__ void prefetch(const Prefetch &counts, const Arrays *...arrays) {
    // A launch that prefetches nothing reads no more of this code than it must.
    if (counts.lines[0] == 0)
        return;
    // Lines of a block are far apart, so that all blocks have some if there are few.
    const uint32_t line = (threadIdx.x * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const uint32_t step = blockDim.x * gridDim.y * gridDim.x;
    int i = 0;
    (prefetch_lines(arrays, counts.lines[i++], line, step), ...);
}

// First statement of a kernel that computes a product and prefetches its operands.
template <class... Arrays>
__device__ __forceinline__ void begin_product(const Prefetch &counts, const Arrays *...arrays) {
    prefetch(counts, arrays...);
    begin_product();
}

} // namespace tarsia
