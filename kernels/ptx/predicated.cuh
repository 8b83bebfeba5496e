// Loads that a predicate switches off. A compiler makes branches of conditional loads that not all
// lanes need, and branches keep loads from being combined and from being in flight together.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// Loads BYTES bytes that nothing in this launch reads again into words if `on` is not 0. If it is
// 0, the words stay as they are.
template <int BYTES>
__device__ __forceinline__ void load_words_if(uint32_t *out, const void *p, int on) {
    if constexpr (BYTES == 4) {
        asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0; "
                     "@q ld.global.nc.L1::no_allocate.b32 %0, [%1]; }"
                     : "+r"(out[0])
                     : "l"(p), "r"(on));
    } else if constexpr (BYTES == 8) {
        asm volatile("{ .reg .pred q; setp.ne.s32 q, %3, 0; "
                     "@q ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2]; }"
                     : "+r"(out[0]), "+r"(out[1])
                     : "l"(p), "r"(on));
    } else {
        asm volatile("{ .reg .pred q; setp.ne.s32 q, %5, 0; "
                     "@q ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4]; }"
                     : "+r"(out[0]), "+r"(out[1]), "+r"(out[2]), "+r"(out[3])
                     : "l"(p), "r"(on));
        if constexpr (BYTES > 16)
            load_words_if<BYTES - 16>(out + 4, static_cast<const char *>(p) + 16, on);
    }
}

namespace detail {

// Bits of SIZE bytes, from shared memory at `shared` if the top bit of `word` is set, otherwise
// from `global`; and from shared memory at `shared` if `on` is not 0.
template <int SIZE> struct PredicatedBits;
#define PREDICATED_BITS(SIZE, Type, type, constraint)                                              \
    template <> struct PredicatedBits<SIZE> {                                                      \
        Type v;                                                                                    \
        __device__ __forceinline__ void load_either(uint32_t word, uint32_t shared,                \
                                                    const void *global) {                          \
            asm volatile("{ .reg .pred q; setp.lt.s32 q, %1, 0; @q ld.shared." type " %0, [%2]; "  \
                         "@!q ld.global.nc." type " %0, [%3]; }"                                   \
                         : "=" constraint(v)                                                       \
                         : "r"(word), "r"(shared), "l"(global));                                   \
        }                                                                                          \
        __device__ __forceinline__ void load_shared_if(uint32_t shared, uint32_t on) {             \
            asm volatile("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.shared." type " %0, [%1]; }" \
                         : "=" constraint(v)                                                       \
                         : "r"(shared), "r"(on)                                                    \
                         : "memory");                                                              \
        }                                                                                          \
    };
PREDICATED_BITS(2, uint16_t, "b16", "h")
PREDICATED_BITS(4, uint32_t, "b32", "r")
PREDICATED_BITS(8, uint64_t, "b64", "l")
#undef PREDICATED_BITS
template <> struct PredicatedBits<16> {
    ulonglong2 v;
    __device__ __forceinline__ void load_shared_if(uint32_t shared, uint32_t on) {
        asm volatile("{ .reg .pred q; setp.ne.u32 q, %3, 0; @q ld.shared.v2.b64 {%0, %1}, [%2]; }"
                     : "=l"(v.x), "=l"(v.y)
                     : "r"(shared), "r"(on)
                     : "memory");
    }
};

} // namespace detail

// Loads a T from shared memory at `shared` if the top bit of `word` is set, otherwise from
// `global`, which nothing writes during the launch.
template <class T>
__device__ __forceinline__ T load_either(uint32_t word, uint32_t shared, const T *global) {
    detail::PredicatedBits<sizeof(T)> bits;
    bits.load_either(word, shared, global);
    T out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

// Loads a T from shared memory if `on` is not 0; otherwise it is undefined.
template <class T> __device__ __forceinline__ T load_shared_if(uint32_t shared, uint32_t on) {
    detail::PredicatedBits<sizeof(T)> bits;
    bits.load_shared_if(shared, on);
    T out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

} // namespace tarsia
