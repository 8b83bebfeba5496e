// Loads from and stores to shared memory at 32-bit addresses (shared_address of ptx/copies.cuh),
// which take one register where a pointer takes two.
#pragma once

#include "ptx/copies.cuh"

namespace tarsia {

template <class T> __device__ __forceinline__ T load_shared(uint32_t from);
template <> __device__ __forceinline__ float load_shared<float>(uint32_t from) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}
template <> __device__ __forceinline__ double load_shared<double>(uint32_t from) {
    double v;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(from) : "memory");
    return v;
}
template <> __device__ __forceinline__ uint32_t load_shared<uint32_t>(uint32_t from) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
    return v;
}
template <> __device__ __forceinline__ uint64_t load_shared<uint64_t>(uint32_t from) {
    uint64_t v;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(v) : "r"(from) : "memory");
    return v;
}
template <> __device__ __forceinline__ double2 load_shared<double2>(uint32_t from) {
    double2 v;
    asm volatile("ld.shared.v2.f64 {%0,%1}, [%2];" : "=d"(v.x), "=d"(v.y) : "r"(from) : "memory");
    return v;
}
template <> __device__ __forceinline__ float4 load_shared<float4>(uint32_t from) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}
template <> __device__ __forceinline__ uint4 load_shared<uint4>(uint32_t from) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}

__device__ __forceinline__ void store_shared(uint32_t to, uint32_t v) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t to, uint4 v) {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

} // namespace tarsia
