// Values as bits, for kernels that move them and compute nothing: copies are
// exact, NaN payloads and all.
#pragma once

#include <cstdint>

namespace tarsia {

// A complex number is two words, as large as they are aligned.
template <class T> struct Pair { T re, im; };
template <class T> __device__ T conjugate_bits(T v) { return v; }
template <class T> __device__ Pair<T> conjugate_bits(Pair<T> v) {
    return {v.re, v.im ^ (T(1) << (8 * sizeof(T) - 1))};
}

} // namespace tarsia

// X(name, type, …) for the values of every data type.
#define TARSIA_FOR_EACH_BITS(X, ...)                                                               \
    X(16, uint16_t, __VA_ARGS__)                                                                   \
    X(32, uint32_t, __VA_ARGS__)                                                                   \
    X(64, uint64_t, __VA_ARGS__)                                                                   \
    X(32x2, Pair<uint32_t>, __VA_ARGS__)                                                           \
    X(64x2, Pair<uint64_t>, __VA_ARGS__)
