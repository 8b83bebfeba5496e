// Loads and copies of several neighbouring elements by one instruction, and a prefix sum in a warp.
#pragma once

#include "common/copies.cuh"
#include "common/loads.cuh"

namespace tarsia {

// Loads BYTES bytes, aligned to BYTES or at most 16, into 32-bit words that nothing else in this
// launch reads. 32 bytes take two loads, whose lines L1 merges.
template <int BYTES>
__device__ __forceinline__ void load_words_once(const void *p, uint64_t policy,
                                                uint32_t (&out)[BYTES / 4]) {
    if constexpr (BYTES == 4) {
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;"
                     : "=r"(out[0])
                     : "l"(p), "l"(policy));
    } else if constexpr (BYTES == 8) {
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;"
                     : "=r"(out[0]), "=r"(out[1])
                     : "l"(p), "l"(policy));
    } else if constexpr (BYTES == 16) {
        asm volatile(
            "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
            : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
            : "l"(p), "l"(policy));
    } else {
        static_assert(BYTES == 32);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            asm volatile("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                         : "=r"(out[4 * half]), "=r"(out[4 * half + 1]), "=r"(out[4 * half + 2]),
                           "=r"(out[4 * half + 3])
                         : "l"(static_cast<const char *>(p) + 16 * half), "l"(policy));
        }
    }
}

// Inclusive prefix sum over the lanes of a warp.
__device__ __forceinline__ int inclusive_sum(int v) {
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
        // The shuffle sets a predicate if there is a lane `delta` before.
        asm volatile("{\n"
                     ".reg .pred exists;\n"
                     ".reg .s32 before;\n"
                     "shfl.sync.up.b32 before|exists, %0, %1, 0, 0xffffffff;\n"
                     "@exists add.s32 %0, %0, before;\n"
                     "}"
                     : "+r"(v)
                     : "r"(delta));
    }
    return v;
}

// Copies BYTES bytes asynchronously to shared memory; both addresses are multiples of BYTES.
template <int BYTES>
__device__ __forceinline__ void copy_once(void *shared, const void *global, uint64_t policy) {
    const uint32_t to = shared_address(shared);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(global), "l"(policy)
                     : "memory");
    } else {
        static_assert(BYTES == 8 || BYTES == 4);
        // cp.async can bypass L1 only with 16 bytes.
        asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(to),
                     "l"(global), "n"(BYTES), "l"(policy)
                     : "memory");
    }
}

} // namespace tarsia
