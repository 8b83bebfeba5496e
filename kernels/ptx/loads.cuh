// Loads with cache hints, and loads of several neighbouring elements.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// Returns an L2 cache policy for data that a launch reads once. With evict_first they leave L2
// before other data, which is right where they do not fit L2 anyway.
__device__ __forceinline__ uint64_t stream_policy(bool evict_first) {
    uint64_t policy;
    if (evict_first) {
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    }
    return policy;
}

namespace detail {

// Defines a function that loads T's bits by one instruction `load` with an L2 policy.
#define LOAD_BITS(name, load)                                                                      \
    template <class T> __device__ __forceinline__ T name(const T *p, uint64_t policy) {            \
        T out;                                                                                     \
        if constexpr (sizeof(T) == 2) {                                                            \
            uint16_t bits;                                                                         \
            asm volatile(load ".b16 %0, [%1], %2;" : "=h"(bits) : "l"(p), "l"(policy));            \
            memcpy(&out, &bits, 2);                                                                \
        } else if constexpr (sizeof(T) == 4) {                                                     \
            uint32_t bits;                                                                         \
            asm volatile(load ".b32 %0, [%1], %2;" : "=r"(bits) : "l"(p), "l"(policy));            \
            memcpy(&out, &bits, 4);                                                                \
        } else {                                                                                   \
            static_assert(sizeof(T) == 8);                                                         \
            uint64_t bits;                                                                         \
            asm volatile(load ".b64 %0, [%1], %2;" : "=l"(bits) : "l"(p), "l"(policy));            \
            memcpy(&out, &bits, 8);                                                                \
        }                                                                                          \
        return out;                                                                                \
    }
// Allocates no line in L1.
LOAD_BITS(load_once_bits, "ld.global.nc.L1::no_allocate.L2::cache_hint")
// Goes through L1, for lines of which another instruction reads other elements.
LOAD_BITS(load_shared_line_bits, "ld.global.nc.L2::cache_hint")
#undef LOAD_BITS

} // namespace detail

// Loads one of a warp's consecutive elements, which nothing in this launch reads again. The two
// parts of a complex number are two loads from the same line, so these go through L1.
template <class T> __device__ __forceinline__ T load_once(const T *p, uint64_t policy) {
    return detail::load_once_bits(p, policy);
}
template <class T>
__device__ __forceinline__ Complex<T> load_once(const Complex<T> *p, uint64_t policy) {
    return {detail::load_shared_line_bits(&p->re, policy),
            detail::load_shared_line_bits(&p->im, policy)};
}

namespace detail {

// BYTES bytes, aligned to their number, and their load by one instruction that allocates no line in
// L1.
template <int BYTES> struct Bits;
template <> struct Bits<2> { uint16_t v; };
template <> struct Bits<4> { uint32_t v; };
template <> struct Bits<8> { uint64_t v; };
template <> struct Bits<16> { ulonglong2 v; };
__device__ __forceinline__ void load_bits_once(Bits<2> &out, const void *p) {
    asm volatile("ld.global.nc.L1::no_allocate.b16 %0, [%1];" : "=h"(out.v) : "l"(p));
}
__device__ __forceinline__ void load_bits_once(Bits<4> &out, const void *p) {
    asm volatile("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(out.v) : "l"(p));
}
__device__ __forceinline__ void load_bits_once(Bits<8> &out, const void *p) {
    asm volatile("ld.global.nc.L1::no_allocate.b64 %0, [%1];" : "=l"(out.v) : "l"(p));
}
__device__ __forceinline__ void load_bits_once(Bits<16> &out, const void *p) {
    asm volatile("ld.global.nc.L1::no_allocate.v2.b64 {%0, %1}, [%2];"
                 : "=l"(out.v.x), "=l"(out.v.y)
                 : "l"(p));
}

} // namespace detail

// Loads COUNT elements that nothing in this launch reads again. Their address is a multiple of
// their total size, or of 16 bytes if that is less. There is no L2 hint: evict-first, or any other
// hint, made every kernel that was tried with it slower.
template <class T, int COUNT>
__device__ __forceinline__ void load_group(T (&out)[COUNT], const T *p) {
    constexpr int BYTES = COUNT * sizeof(T), PART = BYTES < 16 ? BYTES : 16;
    detail::Bits<PART> bits[BYTES / PART];
#pragma unroll
    for (int i = 0; i < BYTES / PART; ++i)
        detail::load_bits_once(bits[i], reinterpret_cast<const char *>(p) + i * PART);
    memcpy(out, bits, BYTES);
}

// Loads BYTES bytes into 32-bit words like load_group; 2 bytes fill the low half of a word.
template <int BYTES> __device__ __forceinline__ void load_words(uint32_t *out, const void *p) {
    static_assert(BYTES == 2 || BYTES % 4 == 0);
    if constexpr (BYTES == 2) {
        detail::Bits<2> bits;
        detail::load_bits_once(bits, p);
        out[0] = bits.v;
    } else if constexpr (BYTES == 4) {
        detail::Bits<4> bits;
        detail::load_bits_once(bits, p);
        out[0] = bits.v;
    } else if constexpr (BYTES == 8) {
        asm volatile("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];"
                     : "=r"(out[0]), "=r"(out[1])
                     : "l"(p));
    } else {
        asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "l"(p));
        if constexpr (BYTES > 16)
            load_words<BYTES - 16>(out + 4, static_cast<const char *>(p) + 16);
    }
}

// Loads COUNT elements into 32-bit words like load_group.
template <int COUNT, class T>
__device__ __forceinline__ void load_elements(uint32_t *out, const T *p) {
    load_words<COUNT * sizeof(T)>(out, p);
}
// Implicit ones are not stored, so nothing is loaded.
template <int COUNT> __device__ __forceinline__ void load_elements(uint32_t *, const One *) {}

// Element i of a packed array that is held in 32-bit words.
template <class T> __device__ __forceinline__ T element(const uint32_t *words, int i) {
    T out;
    if constexpr (same<T, One>) {
        return out;
    } else if constexpr (sizeof(T) == 2) {
        const uint16_t bits = i % 2 == 0 ? words[i / 2] & 0xffff : words[i / 2] >> 16;
        memcpy(&out, &bits, 2);
    } else {
        constexpr int WORDS = sizeof(T) / 4;
        uint32_t bits[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            bits[w] = words[i * WORDS + w];
        memcpy(&out, bits, sizeof out);
    }
    return out;
}

// Loads one element like load_group.
template <class T> __device__ __forceinline__ T load_once(const T *p) {
    T out[1];
    load_group(out, p);
    return out[0];
}

// Loads an element of a line that this launch reads by several instructions.
template <class T> __device__ __forceinline__ T load_line(const T *p, uint64_t policy) {
    return detail::load_shared_line_bits(p, policy);
}
template <class T>
__device__ __forceinline__ Complex<T> load_line(const Complex<T> *p, uint64_t policy) {
    return load_once(p, policy);
}

// Loads an element that is read often and never written during the launch, through L1.
template <class T> __device__ __forceinline__ T load_cached(const T *p) { return __ldg(p); }
template <class T> __device__ __forceinline__ Complex<T> load_cached(const Complex<T> *p) {
    return {__ldg(&p->re), __ldg(&p->im)};
}

namespace detail {

// Predicated load: compilers would branch around a conditional one that not all lanes need.
__device__ __forceinline__ void load_bits_if(uint16_t &out, const void *p, uint32_t exists) {
    asm volatile("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.b16 %0, [%1]; }"
                 : "=h"(out)
                 : "l"(p), "r"(exists));
}
__device__ __forceinline__ void load_bits_if(uint32_t &out, const void *p, uint32_t exists) {
    asm volatile("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.b32 %0, [%1]; }"
                 : "=r"(out)
                 : "l"(p), "r"(exists));
}
__device__ __forceinline__ void load_bits_if(uint64_t &out, const void *p, uint32_t exists) {
    asm volatile("{ .reg .pred q; setp.ne.u32 q, %2, 0; @q ld.global.nc.b64 %0, [%1]; }"
                 : "=l"(out)
                 : "l"(p), "r"(exists));
}
template <int BYTES> struct Unsigned;
template <> struct Unsigned<2> { using Type = uint16_t; };
template <> struct Unsigned<4> { using Type = uint32_t; };
template <> struct Unsigned<8> { using Type = uint64_t; };

} // namespace detail

// Loads an element as load_cached does where `exists` is not 0; otherwise nothing is read and the
// result is undefined.
template <class T> __device__ __forceinline__ T load_cached_if(const T *p, uint32_t exists) {
    typename detail::Unsigned<sizeof(T)>::Type bits;
    detail::load_bits_if(bits, p, exists);
    T out;
    memcpy(&out, &bits, sizeof out);
    return out;
}
template <class T>
__device__ __forceinline__ Complex<T> load_cached_if(const Complex<T> *p, uint32_t exists) {
    return {load_cached_if(&p->re, exists), load_cached_if(&p->im, exists)};
}

// Loads from L2 an element that other blocks of this launch may have written.
template <class T> __device__ __forceinline__ T load_l2(const T *p) { return __ldcg(p); }
template <class T> __device__ __forceinline__ Complex<T> load_l2(const Complex<T> *p) {
    return {__ldcg(&p->re), __ldcg(&p->im)};
}

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

// Loads of 16 bytes, through L1 for data that this block or another one reads again, and of 16 or 8
// bytes that nothing in this launch reads again. They are volatile: a load that stands behind a
// loop is done there, and takes no registers in the loop.
__device__ __forceinline__ uint4 load16(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
__device__ __forceinline__ uint4 load16_once(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
__device__ __forceinline__ uint2 load8_once(const void *p) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(p));
    return v;
}

} // namespace tarsia
