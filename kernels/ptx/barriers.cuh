// Barriers that only some warps of a block wait at, and loads that acquire what other blocks have
// stored.
#pragma once

#include <cstdint>

namespace tarsia {

// Chain of warps that take turns, each of which waits for one other warp alone, by a barrier of its
// own: a warp waits in await_turn until another one calls give_turn with its number, which does not
// wait. A block has 16 barriers, of which this uses 1 + warp.
__device__ __forceinline__ void await_turn(int warp) {
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp) : "memory");
}
__device__ __forceinline__ void give_turn(int warp) {
    asm volatile("bar.arrive %0, 64;" ::"r"(1 + warp) : "memory");
}

__device__ __forceinline__ uint32_t load_acquire(const uint32_t *p) {
    uint32_t out;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(out) : "l"(p) : "memory");
    return out;
}

} // namespace tarsia
