// What kernels of SpMM on rows of A share: loads, stores, and where things are.
#pragma once

#include "common/types.cuh"

namespace tarsia::rows {

// Offsets are read twice a row, so their type is decided at run time.
struct Offsets {
    const void *pointer;
    int64_t wide;

    __device__ __forceinline__ int64_t at(int64_t i) const {
        return wide ? static_cast<const int64_t *>(pointer)[i]
                    : int64_t(static_cast<const int32_t *>(pointer)[i]);
    }
};

// A dense matrix: element (i, j) at i · row_stride + j · col_stride.
template <class T> struct Dense {
    T *data;
    int64_t row_stride, col_stride;
};

template <class A, class J> struct Matrix {
    Offsets offsets;
    const J *indices;
    const A *values;
    int64_t base;
};

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };

// Elements of 16 bytes.
template <class T> constexpr int PACK = sizeof(T) < 16 ? int(16 / sizeof(T)) : 1;

// Loads of what nothing writes while the kernel runs, of 2 to 16 bytes.
template <class T> __device__ __forceinline__ T load(const T *from) {
    T out;
    if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
        *reinterpret_cast<uint4 *>(&out) = __ldg(reinterpret_cast<const uint4 *>(from));
    } else if constexpr (sizeof(T) == 2) {
        *reinterpret_cast<unsigned short *>(&out) =
            __ldg(reinterpret_cast<const unsigned short *>(from));
    } else if constexpr (sizeof(T) == 4) {
        *reinterpret_cast<unsigned *>(&out) = __ldg(reinterpret_cast<const unsigned *>(from));
    } else if constexpr (__is_same(T, double)) {
        out = __ldg(from);
    } else {
        out = *from;
    }
    return out;
}

// 16 bytes if `is`, else anything. A plain condition may become a branch around each load, and
// then one load waits for the other (fp64, N = 32 on a grid of 160³ points: 1,344 µs and not
// 1,125).
template <class T> __device__ __forceinline__ T load_if(const T *from, bool is) {
    static_assert(sizeof(T) == 16);
    T out;
    uint4 &v = *reinterpret_cast<uint4 *>(&out);
    asm("{\n\t.reg .pred p;\n\t"
        "setp.ne.u32 p, %5, 0;\n\t"
        "@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from), "r"(uint32_t(is)));
    return out;
}

// Of what is not read again: it should not push other things out of L2.
template <class T> __device__ __forceinline__ void store_once(T *to, const T &v) {
    if constexpr (sizeof(T) == 16) {
        __stcs(reinterpret_cast<uint4 *>(to), *reinterpret_cast<const uint4 *>(&v));
    } else {
        *to = v;
    }
}

// Where in a column of B a row is. stride: bytes between rows.
template <class J>
__device__ __forceinline__ const char *row_at(const char *columns, J row, int64_t stride) {
    // The host says so only of strides of 32 bits.
    if constexpr (sizeof(J) == 4)
        return columns + int64_t(row) * int32_t(stride);
    return columns + row * stride;
}

template <class Acc, class X, int V>
__device__ __forceinline__ void add_pack(Acc *sums, Acc factor, const Pack<X, V> &pack) {
#pragma unroll
    for (int i = 0; i < V; ++i)
        sums[i] = fma(factor, widen<Acc>(pack.v[i]), sums[i]);
}

} // namespace tarsia::rows
