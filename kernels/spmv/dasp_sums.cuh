// Blocks of DASP (spmv/dasp.cuh) times elements of x, summed by rows.
//
// A warp holds a block of 8 rows and 4 places as one element a lane, lane 4r + k
// place k of row r, which is how an m8n8k4 fragment of A is spread. B's column r
// holds the elements of x that row r needs, so the product's diagonal has the sums
// of the rows. What is off the diagonal is row i's values times row j's elements of
// x: it may be anything, Inf and NaN included, and nothing reads it. Each diagonal
// element is a sum over its own row's 4 products alone, so an Inf or NaN reaches
// only the rows that store an entry there. Padding multiplies 0 by 0: x is loaded
// for entries only. Where two rows are pieced together, the other row's values
// *and* elements of x are both replaced by 0, since a stored value may be Inf too.
#pragma once

#include "common/types.cuh"

namespace tarsia::dasp {

constexpr int WARP = 32;
// Rows and places of a block.
constexpr int ROWS = 8, PLACES = 4;

// An element of each of two blocks that are stored together.
template <class T> struct Two { T first, second; };

// The sums of 8 rows, of which a warp adds a block or two at one time.
//   add      an element of each of two blocks and its elements of x
//   add_one  the same of one block
//   row      the sum of row r, each lane may ask for another
//   all      the sum over the rows, on all lanes
// This one, by multiply-adds on each lane, serves where no matrix unit has the
// type: fp32 (TF32 would drop 13 bits of the factors) and complex numbers.
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
    // Of the lane's row, where the lane has it.
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

// fp64 by DMMA, rounded once a product as by DFMA.
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

// Half types by m16n8k8 with sums in fp32: products are exact. The paper's
// m8n8k4 of fp16 is emulated after sm_70. Place k of the first block of two is
// k' = 2k of the instruction, that of the second k' = 2k + 1, which is how it
// spreads pairs over lanes; rows 8 to 15 of A are 0 and those of C are not read.
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
