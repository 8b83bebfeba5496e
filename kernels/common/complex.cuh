// Access to complex numbers in user arrays. Users need to align them only to their real and
// imaginary parts (a Fortran array may begin at an odd multiple of 8 bytes, say); a single access
// to an unaligned number would be a fault that destroys the context.
#pragma once

#include "common/types.cuh"

namespace tarsia {

namespace detail {

// Vector type that holds both parts of a complex number, aligned to its size.
template <class T> struct Parts;
template <> struct Parts<float> { using Type = float2; };
template <> struct Parts<double> { using Type = double2; };

} // namespace detail

template <class T> constexpr bool IS_COMPLEX = false;
template <class T> constexpr bool IS_COMPLEX<Complex<T>> = true;

// Returns whether the elements of an array are aligned to their size; the answer is the same for
// all threads of a launch.
template <class T> __device__ __forceinline__ bool is_whole(const T *array) {
    return reinterpret_cast<uintptr_t>(array) % sizeof(T) == 0;
}

// Loads a number that is aligned only to its parts and that nothing writes while the kernel runs.
template <class T> __device__ __forceinline__ T load_parts(const T *from) { return *from; }
template <class T> __device__ __forceinline__ Complex<T> load_parts(const Complex<T> *from) {
    return {__ldg(&from->re), __ldg(&from->im)};
}

// Loads a number that is aligned to its size.
template <class T> __device__ __forceinline__ T load_whole(const T *from) { return *from; }
template <class T> __device__ __forceinline__ Complex<T> load_whole(const Complex<T> *from) {
    const auto both = *reinterpret_cast<const typename detail::Parts<T>::Type *>(from);
    return {both.x, both.y};
}

// Stores a number: by one access if `whole` (see is_whole), otherwise by one access per part.
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
