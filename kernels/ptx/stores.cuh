// Stores that compilers do not make of plain C++.
#pragma once

#include <cstdint>

namespace tarsia {

// Stores two neighbours by one instruction, which the compiler splits into two; `to` is aligned to
// their total size.
__device__ __forceinline__ void store_two(void *to, uint32_t first, uint32_t second) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(first), "r"(second) : "memory");
}
__device__ __forceinline__ void store_two(void *to, uint64_t first, uint64_t second) {
    asm volatile("st.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(first), "l"(second) : "memory");
}

// Adds four neighbours atomically; `to` is aligned to 16 bytes. From compute capability 9.0 on.
__device__ __forceinline__ void add_four(float *to, const float (&v)[4]) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v[0]),
                 "f"(v[1]), "f"(v[2]), "f"(v[3])
                 : "memory");
}

} // namespace tarsia
