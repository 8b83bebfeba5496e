// Tensor core multiplications c += a · b by one warp, with c of 16 rows and 8 columns. Lane 4g + t
// holds row g, columns 2t and 2t + 1 of c, then the same columns of row g + 8. Also loads and
// transposes of the operands, which are matrices of 8 × 8 halves.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// Multiplies 16 × 16 by 16 × 8 of fp16 or bf16.
template <class T>
__device__ __forceinline__ void mma16(float *c, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                      uint32_t b0, uint32_t b1) {
    if constexpr (same<T, f16>) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
}
template <class T>
__device__ __forceinline__ void mma16(float *c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    mma16<T>(c, a[0], a[1], a[2], a[3], b0, b1);
}

// Multiplies 16 × 8 by 8 × 8 in TF32.
__device__ __forceinline__ void mma8(float *c, const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t to_tf32(float v) {
    uint32_t out;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(v));
    return out;
}

// Rounds to TF32 like to_tf32, by adding half a unit, since MMAs ignore the lower 13 bits. Inf and
// NaN are left alone: it would have no effect on Inf, and could change the sign of a NaN.
__device__ __forceinline__ uint32_t round_to_tf32(float v) {
    uint32_t bits = __float_as_uint(v);
    asm("{.reg .pred finite; .reg .f32 size;\n"
        "abs.f32 size, %1; setp.lt.f32 finite, size, 0f7f800000;\n"
        "@finite add.u32 %0, %0, 0x1000;}"
        : "+r"(bits)
        : "f"(v));
    return bits;
}

// Forms that the compiler may move, for products that are interleaved. c = before + a · b of bf16:
// the first of several can add to constant zeros, which need no registers to be cleared.
__device__ __forceinline__ void mma16_onto(float (&c)[4], const float (&before)[4],
                                           const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(before[0]),
          "f"(before[1]), "f"(before[2]), "f"(before[3]));
}
// Adds a product in TF32.
__device__ __forceinline__ void mma8_anywhere(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                              uint32_t b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Splits two floats into sums of three bf16 each, with those of x in the low halves of the words:
// each term is the remainder rounded to nearest, and the third term has no rounding error.
__device__ __forceinline__ void bf16_terms(float x, float y, uint32_t &first, uint32_t &second,
                                           uint32_t &third) {
    uint32_t terms[3];
#pragma unroll
    for (int term = 0; term < 3; ++term) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(terms[term]) : "f"(y), "f"(x));
        x -= __uint_as_float(terms[term] << 16);
        y -= __uint_as_float(terms[term] & 0xffff0000u);
    }
    first = terms[0], second = terms[1], third = terms[2];
}

// Multiplies 16 × 8 by 8 × 8 of doubles.
__device__ __forceinline__ void mma8(double *c, const double (&a)[4], double b0, double b1) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
    // Before Hopper: four multiplications of 8 × 8 × 4 with the same fragments.
    const auto quarter = [](double &x, double &y, double a, double b) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(x), "+d"(y)
                     : "d"(a), "d"(b));
    };
    quarter(c[0], c[1], a[0], b0);
    quarter(c[2], c[3], a[1], b0);
    quarter(c[0], c[1], a[2], b1);
    quarter(c[2], c[3], a[3], b1);
#endif
}

// Loads four matrices of 8 × 8 halves from shared memory: lane 8i + r has the address of row r of
// matrix i. transposed: lanes get the elements of the transposed matrices.
template <bool transposed>
__device__ __forceinline__ void load_matrices(uint32_t (&out)[4], uint32_t from) {
    if constexpr (transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(from)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(from)
                     : "memory");
    }
}

// Transposes a matrix of 8 × 8 halves that the lanes hold, two neighbours of a row each.
__device__ __forceinline__ uint32_t transpose(uint32_t v) {
    uint32_t out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(v));
    return out;
}

} // namespace tarsia
