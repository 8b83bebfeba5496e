// Products of DASP's blocks (spmv/dasp.cuh) with elements of x, summed by rows.
//
// A warp holds a block of 8 rows and 4 slots as one element per lane, with slot k of row r in lane
// 4r + k, which is how an m8n8k4 fragment of A is distributed. Column r of B holds the elements of
// x that row r needs, so the product's diagonal has the sums of the rows. Off the diagonal are row
// i's values times row j's elements of x: these may be anything, Inf and NaN included, and are
// never read. Each diagonal element is a sum over the 4 products of its own row alone, so an Inf or
// NaN reaches only the rows that store an entry there. Padding multiplies 0 by 0: x is loaded only
// for entries. If two rows are pieced together, the other row's values *and* elements of x are both
// replaced by 0, since a stored value may be Inf, too.
#pragma once

#include "common/types.cuh"
#include "ptx/warp.cuh"

namespace tarsia::dasp {

// Rows and slots per row of a block.
constexpr int ROWS = 8, PLACES = 4;

// One element of each of two blocks that are stored together.
template <class T> struct Two { T first, second; };

// Sums of 8 rows, to which a warp adds one or two blocks at one time.
//
//   add      adds an element of each of two blocks, times its element of x
//   add_one  adds an element of one block, times its element of x
//   row      sum of row r; each lane may ask for another row
//   all      sum over all rows, in all lanes
//
// This general version, by multiply-adds in each lane, is for types that no matrix unit has: fp32
// (TF32 would drop 13 bits of the factors) and complex numbers.
template <class A, class X, class Acc> struct Sums {
    Acc sum = zero<Acc>();

    __device__ __forceinline__ void add_one(A a, X x) {
        sum = fma(widen<Acc>(a), widen<Acc>(x), sum);
    }
    __device__ __forceinline__ void add(Two<A> a, Two<X> x) {
        add_one(a.first, x.first);
        add_one(a.second, x.second);
    }
    __device__ __forceinline__ Acc row(int r) const {
        Acc out = tarsia::add(sum, shuffle_xor(sum, 1));
        out = tarsia::add(out, shuffle_xor(out, 2));
        return shuffle_index<WARP>(out, PLACES * r);
    }
    __device__ __forceinline__ Acc all() const {
        Acc out = sum;
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2)
            out = tarsia::add(out, shuffle_xor(out, delta));
        return out;
    }
};

// Sums on the diagonal of 8 × 8 products. Lane 4r + t has (r, 2t) and (r, 2t + 1).
template <class Acc> struct Diagonal {
    Acc c[2] = {zero<Acc>(), zero<Acc>()};

    static __device__ __forceinline__ int lane() { return threadIdx.x % WARP; }
    // Sum of row lane / 4, valid in the lane that holds it.
    __device__ __forceinline__ Acc own() const { return lane() / PLACES % 2 ? c[1] : c[0]; }
    __device__ __forceinline__ Acc row(int r) const {
        return shuffle_index<WARP>(own(), PLACES * r + r / 2);
    }
    __device__ __forceinline__ Acc all() const {
        Acc out = lane() % PLACES == lane() / PLACES / 2 ? own() : zero<Acc>();
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2)
            out += shuffle_xor(out, delta);
        return out;
    }
};

// fp64 by DMMA, which rounds once per product, as DFMA does.
template <class A, class X> struct Sums<A, X, double> : Diagonal<double> {
    __device__ __forceinline__ void add_one(A a, X x) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c[0]), "+d"(c[1])
            : "d"(widen<double>(a)), "d"(widen<double>(x)));
    }
    __device__ __forceinline__ void add(Two<A> a, Two<X> x) {
        add_one(a.first, x.first);
        add_one(a.second, x.second);
    }
};

// Half types by m16n8k8 with fp32 sums: products are exact. The paper's m8n8k4 of fp16 is emulated
// after sm_70. Slot k of the first of two blocks is k' = 2k of the instruction, that of the second
// is k' = 2k + 1, which is how it distributes pairs over lanes; rows 8 to 15 of A are 0, and those
// of C are not read.
template <class T> struct HalfSums : Diagonal<float> {
    static __device__ __forceinline__ uint32_t pack(T low, T high) {
        uint16_t bits[2];
        memcpy(&bits[0], &low, 2);
        memcpy(&bits[1], &high, 2);
        return uint32_t(bits[1]) << 16 | bits[0];
    }
    __device__ __forceinline__ void multiply(uint32_t a, uint32_t x) {
        float unused[2];
        if constexpr (same<T, f16>) {
            asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, "
                "{%6}, "
                "{%7, %8, %9, %9};"
                : "=f"(c[0]), "=f"(c[1]), "=f"(unused[0]), "=f"(unused[1])
                : "r"(a), "r"(0), "r"(x), "f"(c[0]), "f"(c[1]), "f"(0.0f));
        } else {
            asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, "
                "{%6}, {%7, %8, %9, %9};"
                : "=f"(c[0]), "=f"(c[1]), "=f"(unused[0]), "=f"(unused[1])
                : "r"(a), "r"(0), "r"(x), "f"(c[0]), "f"(c[1]), "f"(0.0f));
        }
    }
    __device__ __forceinline__ void add(Two<T> a, Two<T> x) {
        multiply(pack(a.first, a.second), pack(x.first, x.second));
    }
    __device__ __forceinline__ void add_one(T a, T x) {
        multiply(pack(a, zero<T>()), pack(x, zero<T>()));
    }
};
template <> struct Sums<f16, f16, float> : HalfSums<f16> {};
template <> struct Sums<bf16, bf16, float> : HalfSums<bf16> {};

} // namespace tarsia::dasp
