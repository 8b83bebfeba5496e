// Complex numbers in arrays of the user, who aligns them to their real and imaginary parts and
// perhaps no further (a Fortran array that begins at an odd multiple of 8 bytes, say). An access of
// the whole number would end the launch there, and with it the context.
#pragma once

#include "common/types.cuh"

namespace tarsia {

namespace detail {

// Both parts of a complex number, aligned to its size.
template <class T> struct Parts;
template <> struct Parts<float> { using Type = float2; };
template <> struct Parts<double> { using Type = double2; };

} // namespace detail

template <class T> constexpr bool IS_COMPLEX = false;
template <class T> constexpr bool IS_COMPLEX<Complex<T>> = true;

// Whether the elements of an array are aligned to their size: the same for all threads of a launch.
template <class T> __device__ __forceinline__ bool is_whole(const T *array) {
    return reinterpret_cast<uintptr_t>(array) % sizeof(T) == 0;
}

// A number that is aligned to its parts only, and that nothing writes while the kernel runs.
template <class T> __device__ __forceinline__ T load_parts(const T *from) { return *from; }
template <class T> __device__ __forceinline__ Complex<T> load_parts(const Complex<T> *from) {
    return {__ldg(&from->re), __ldg(&from->im)};
}

// A number that is aligned to its size.
template <class T> __device__ __forceinline__ T load_whole(const T *from) { return *from; }
template <class T> __device__ __forceinline__ Complex<T> load_whole(const Complex<T> *from) {
    const auto both = *reinterpret_cast<const typename detail::Parts<T>::Type *>(from);
    return {both.x, both.y};
}

// Writes a number by one access where its array is_whole, else by one a part.
template <class T> __device__ __forceinline__ void store_element(T *to, T v, bool) { *to = v; }
template <class T>
__device__ __forceinline__ void store_element(Complex<T> *to, Complex<T> v, bool whole) {
    if (whole) {
        typename detail::Parts<T>::Type both;
        both.x = v.re;
        both.y = v.im;
        *reinterpret_cast<typename detail::Parts<T>::Type *>(to) = both;
    } else {
        *to = v;
    }
}

} // namespace tarsia
