// Packs: neighbouring elements that are loaded and stored together, 16 bytes at a time.
#pragma once

#include "common/types.cuh"

namespace tarsia {

template <class T, int COUNT> struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack {
    T v[COUNT];
};

// Loads 2 to 16 bytes that nothing writes while the kernel reads them.
template <class T> __device__ __forceinline__ T load(const T *from) {
    T out;
    if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
        *reinterpret_cast<uint4 *>(&out) = __ldg(reinterpret_cast<const uint4 *>(from));
    } else if constexpr (sizeof(T) == 2) {
        *reinterpret_cast<unsigned short *>(&out) =
            __ldg(reinterpret_cast<const unsigned short *>(from));
    } else {
        out = *from;
    }
    return out;
}

// Loads 2 to 16 bytes of data that are read once and need not stay in L1.
template <class T> __device__ __forceinline__ T load_past_l1(const T *from) {
    T out;
    if constexpr (sizeof(T) == 4) {
        asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];"
            : "=r"(*reinterpret_cast<uint32_t *>(&out))
            : "l"(from));
    } else if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
        asm("ld.global.nc.L1::no_allocate.b64 %0, [%1];"
            : "=l"(*reinterpret_cast<uint64_t *>(&out))
            : "l"(from));
    } else {
        out = load(from);
    }
    return out;
}

// Stores data that are not read again, so that they do not evict others from L2.
template <class T> __device__ __forceinline__ void store_once(T *to, const T &v) {
    if constexpr (sizeof(T) == 16) {
        __stcs(reinterpret_cast<uint4 *>(to), *reinterpret_cast<const uint4 *>(&v));
    } else {
        *to = v;
    }
}

// Stores alpha · sums + beta · old for COUNT neighbours, in packs of at most 16 bytes, for which
// `to` is aligned.
template <int COUNT, class S, class Acc>
__device__ __forceinline__ void store_packs(S *to, const Acc *sums, Acc alpha, Acc beta) {
    constexpr int WIDTH = 16 / sizeof(S) < COUNT ? 16 / sizeof(S) : COUNT;
#pragma unroll
    for (int i = 0; i < COUNT; i += WIDTH) {
        Pack<S, WIDTH> pack;
        if (!is_zero(beta))
            pack = *reinterpret_cast<const Pack<S, WIDTH> *>(to + i);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            store(&pack.v[j], alpha, sums[i + j], beta);
        store_once(reinterpret_cast<Pack<S, WIDTH> *>(to + i), pack);
    }
}

} // namespace tarsia
