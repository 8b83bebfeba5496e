// Products by a warp group of four warps with operands in shared memory (wgmma), which only sm_90a
// has: 64 rows, 16 columns of a, bf16 with fp32 sums.
#pragma once

#include <cstdint>

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace tarsia {

// Matrix descriptor of wgmma for a factor without swizzle: its address, and the distances of its
// blocks along K and across.
__device__ __forceinline__ uint64_t factor_at(uint32_t at, int deep, int wide) {
    return uint64_t((at & 0x3ffff) >> 4) | uint64_t(deep >> 4) << 16 | uint64_t(wide >> 4) << 32;
}

__device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void close_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int COUNT> __device__ __forceinline__ void await_products(float (&sums)[COUNT]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    // Keeps the compiler from using the sums before this point.
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(sums[i])::"memory");
}
// Makes the threads' writes to shared memory visible to the tensor cores.
__device__ __forceinline__ void show_to_products() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define TARSIA_SUM4(at) "+f"(c[at]), "+f"(c[at + 1]), "+f"(c[at + 2]), "+f"(c[at + 3])
#define TARSIA_SUM16(at)                                                                           \
    TARSIA_SUM4(at), TARSIA_SUM4(at + 4), TARSIA_SUM4(at + 8), TARSIA_SUM4(at + 12)
// Computes c += a · b, or c = a · b without ADDS, for 64 rows and 16 columns of a; b is row-major.
template <bool ADDS>
__device__ __forceinline__ void add_product(float (&c)[16], uint64_t a, uint64_t b) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %18, 0; "
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
                 "%16, %17, adds, 1, 1, 0, 1; }"
                 : TARSIA_SUM16(0)
                 : "l"(a), "l"(b), "n"(int(ADDS)));
}
template <bool ADDS>
__device__ __forceinline__ void add_product(float (&c)[32], uint64_t a, uint64_t b) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %34, 0; "
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, adds, 1, 1, 0, 1; }"
                 : TARSIA_SUM16(0), TARSIA_SUM16(16)
                 : "l"(a), "l"(b), "n"(int(ADDS)));
}
template <bool ADDS>
__device__ __forceinline__ void add_product(float (&c)[64], uint64_t a, uint64_t b) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %66, 0; "
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "%64, %65, adds, 1, 1, 0, 1; }"
                 : TARSIA_SUM16(0), TARSIA_SUM16(16), TARSIA_SUM16(32), TARSIA_SUM16(48)
                 : "l"(a), "l"(b), "n"(int(ADDS)));
}
#undef TARSIA_SUM16
#undef TARSIA_SUM4

} // namespace tarsia

#endif
