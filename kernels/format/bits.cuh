// Values as bit patterns, for kernels that move them without arithmetic: copies are exact, NaN
// payloads included.
#pragma once

#include <cstdint>

#include "common/kernels.cuh"

namespace tarsia {

// A complex number as two words, each as large as its alignment.
template <class T> struct Pair { T re, im; };
template <class T> __device__ T conjugate_bits(T v) { return v; }
template <class T> __device__ Pair<T> conjugate_bits(Pair<T> v) {
    return {v.re, v.im ^ (T(1) << (8 * sizeof(T) - 1))};
}

} // namespace tarsia

// Bit type of each data type.
#define BITS_16 uint16_t
#define BITS_32 uint32_t
#define BITS_64 uint64_t
#define BITS_32x2 tarsia::Pair<uint32_t>
#define BITS_64x2 tarsia::Pair<uint64_t>
