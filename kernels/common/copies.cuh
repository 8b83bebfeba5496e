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
// Waits until at most the last N groups are incomplete.
template <int N> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
// Waits for all of the thread's copies.
__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}

} // namespace tarsia
