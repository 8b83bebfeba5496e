// Asynchronous copies to shared memory (cp.async), in groups that a thread closes and waits for.
#pragma once

#include <cstdint>

namespace tarsia {

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return uint32_t(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(uint32_t to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
// Copies the first `bytes` of 16 bytes and fills the rest with zeros.
__device__ __forceinline__ void copy16(uint32_t to, const void *from, uint32_t bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
}
// Copies the first `bytes` of SIZE bytes (4 or 8) and fills the rest with zeros.
template <int SIZE>
__device__ __forceinline__ void copy_bytes(uint32_t to, const void *from, uint32_t bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(SIZE),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void close_copies() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most the last GROUPS groups of copies are incomplete.
template <int GROUPS> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
// Waits for all of the thread's copies.
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
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
