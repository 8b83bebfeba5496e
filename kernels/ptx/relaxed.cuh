// Accesses to two 64-bit words at once, which other blocks of the device see together.
#pragma once

#include <cstdint>

namespace tarsia {

// `p` is aligned to 16 bytes.
__device__ __forceinline__ void store_relaxed(void *p, uint64_t first, uint64_t second) {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; "
                 "st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(p),
                 "l"(first), "l"(second)
                 : "memory");
}
__device__ __forceinline__ void load_relaxed(const void *p, uint64_t &first, uint64_t &second) {
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; "
                 "mov.b128 {%0, %1}, both; }"
                 : "=l"(first), "=l"(second)
                 : "l"(p)
                 : "memory");
}

} // namespace tarsia
