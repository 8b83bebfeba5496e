// Types of values and accumulators, arithmetic on them, and the combinations of types that kernels
// are compiled for (those of src/support.rs).
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "common/kernels.cuh"
#include "ptx/warp.cuh"

namespace tarsia {

using f16 = __half;
using bf16 = __nv_bfloat16;

// Complex number, aligned to its parts and not to its size, as the user's arrays are.
template <class T> struct Complex { T re, im; };
using c32 = Complex<float>;
using c64 = Complex<double>;

// True if two types are equal. CUDA 12's compiler lacks __is_same.
template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;

// Type of a value that is always 1 and is not stored.
struct One {};

// alpha or beta: a value, or a pointer to one in device memory.
template <class T> struct Scalar {
    T value;
    const T *pointer;

    __device__ T get() const { return pointer ? *pointer : value; }
};

template <class T> __device__ __host__ constexpr T zero() {
    if constexpr (__is_class(T)) {
        return T{};
    } else {
        return T(0);
    }
}

// Sets all numbers of an array to zero.
template <class T, int COUNT> __device__ __forceinline__ void set_zero(T (&numbers)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        numbers[i] = zero<T>();
}
template <class T, int COUNT, int INNER>
__device__ __forceinline__ void set_zero(T (&numbers)[COUNT][INNER]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        set_zero(numbers[i]);
}

// Exact conversion of a stored value to the accumulator's type.
template <class Acc, class S> __device__ __forceinline__ Acc widen(S v) {
    if constexpr (same<S, f16>) {
        return __half2float(v);
    } else if constexpr (same<S, One>) {
        return Acc(1);
    } else if constexpr (same<S, bf16>) {
        return __bfloat162float(v);
    } else {
        return v;
    }
}

// Conversion of an accumulator to a stored type, by one rounding to nearest even.
template <class S, class Acc> __device__ __forceinline__ S narrow(Acc v) {
    if constexpr (same<S, f16>) {
        return __float2half_rn(v);
    } else if constexpr (same<S, bf16>) {
        return __float2bfloat16_rn(v);
    } else {
        return v;
    }
}

// Products and sums that the compiler may fuse, unlike `times` and `plus` of SpGEMM.
__device__ __forceinline__ float mul(float a, float b) { return a * b; }
__device__ __forceinline__ double mul(double a, double b) { return a * b; }
template <class T> __device__ __forceinline__ Complex<T> mul(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ double add(double a, double b) { return a + b; }
template <class T> __device__ __forceinline__ Complex<T> add(Complex<T> a, Complex<T> b) {
    return {a.re + b.re, a.im + b.im};
}

// a · b + c
__device__ __forceinline__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
template <class T>
__device__ __forceinline__ Complex<T> fma(Complex<T> a, Complex<T> b, Complex<T> c) {
    return {fma(-a.im, b.im, fma(a.re, b.re, c.re)), fma(a.im, b.re, fma(a.re, b.im, c.im))};
}

template <class T> __device__ __forceinline__ bool is_zero(T v) { return v == T(0); }
template <class T> __device__ __forceinline__ bool is_zero(Complex<T> v) {
    return v.re == T(0) && v.im == T(0);
}

template <class T> __device__ __forceinline__ T conjugate(T v) { return v; }
template <class T> __device__ __forceinline__ Complex<T> conjugate(Complex<T> v) {
    return {v.re, -v.im};
}

// Shuffles of any type of 4, 8 or 16 bytes among the lanes of a warp.
template <class T> __device__ __forceinline__ T shuffle_xor(T v, int lanes) {
    if constexpr (__is_class(T)) {
        return {__shfl_xor_sync(ALL_LANES, v.re, lanes), __shfl_xor_sync(ALL_LANES, v.im, lanes)};
    } else {
        return __shfl_xor_sync(ALL_LANES, v, lanes);
    }
}

template <class T> __device__ __forceinline__ T shuffle_up(T v, int delta) {
    if constexpr (__is_class(T)) {
        return {__shfl_up_sync(ALL_LANES, v.re, delta), __shfl_up_sync(ALL_LANES, v.im, delta)};
    } else {
        return __shfl_up_sync(ALL_LANES, v, delta);
    }
}

// Value of lane `source` of each group of `width` lanes.
template <int width, class T> __device__ __forceinline__ T shuffle_index(T v, int source) {
    if constexpr (__is_class(T)) {
        return {__shfl_sync(ALL_LANES, v.re, source, width),
                __shfl_sync(ALL_LANES, v.im, source, width)};
    } else {
        return __shfl_sync(ALL_LANES, v, source, width);
    }
}

// Stores alpha · sum + beta · old. The old value is not read if beta is 0. A caller with alpha = 0
// must pass sum = 0, since the sum may be NaN.
template <class S, class Acc>
__device__ __forceinline__ void store(S *y, Acc alpha, Acc sum, Acc beta) {
    Acc out = mul(alpha, sum);
    if (!is_zero(beta))
        out = fma(beta, widen<Acc>(*y), out);
    *y = narrow<S>(out);
}

} // namespace tarsia

// Combinations of the types of the values of A, of x or B, of y or C, and of the accumulator.
#define TYPES_f64 double, double, double, double
#define TYPES_f32 float, float, float, float
#define TYPES_f32f64 float, double, double, double
#define TYPES_f16 f16, f16, f16, float
#define TYPES_f16f32 f16, f16, float, float
#define TYPES_bf16 bf16, bf16, bf16, float
#define TYPES_bf16f32 bf16, bf16, float, float
#define TYPES_c32 c32, c32, c32, c32
#define TYPES_c64 c64, c64, c64, c64
// Values of A that are stored in a narrower type than x and y without loss
// (src/format/narrowing.rs); fp64 values that are stored as fp32 use f32f64.
#define TYPES_half_f64 f16, double, double, double
#define TYPES_half_f32 f16, float, float, float
#define TYPES_ones_f64 One, double, double, double
#define TYPES_ones_f32 One, float, float, float
#define TYPES_ones_f16 One, f16, f16, float
#define TYPES_ones_f16f32 One, f16, float, float
#define TYPES_ones_bf16 One, bf16, bf16, float
#define TYPES_ones_bf16f32 One, bf16, float, float
