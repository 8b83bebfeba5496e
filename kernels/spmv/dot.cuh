// Sums of products of one row's entries.
#pragma once

#include "common/grid.cuh"
#include "common/loads.cuh"
#include "common/target.cuh"

namespace tarsia::spmv {

constexpr int WARP = 32;
// Threads of a block of every kernel here.
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;

// A matrix by rows. An offset counts from base, and so does a column, unless it has 16 bits: such
// columns are the plan's own (narrow.cuh) and count from the origin of their row or chunk.
template <class A, class I, class J> struct Csr {
    static constexpr bool IS_NARROW = sizeof(J) == 2;
    int64_t rows, nnz;
    const I *offsets;
    const J *indices;
    const A *values;
    int64_t base;
    // L2's policy for indices and values.
    uint64_t policy;
    // The row of y of each row, or NULL: its own.
    const uint32_t *order;
    // Of columns of 16 bits: the first column of each row or chunk, or NULL: 0.
    const uint32_t *origins = nullptr;

    __device__ __forceinline__ int64_t row_of_y(int64_t row) const {
        // Rows in another order are a copy, which has these types; to others it would cost
        // registers.
        if constexpr (sizeof(I) == 8 && sizeof(J) == 4) {
            if (order != nullptr)
                return load_cached(order + row);
        }
        return row;
    }

    // Position of the first entry of a row, and of what follows the last row.
    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(load_cached(offsets + row)) - base;
    }

    // What the columns of a row, or of a chunk, that have 16 bits count from.
    __device__ __forceinline__ uint32_t origin(int64_t part) const {
        return origins != nullptr ? load_cached(origins + part) : 0;
    }

    // Where the element of x is that column 0 of a row has, as columns are stored.
    template <class X> __device__ __forceinline__ const X *x_of(const X *x, int64_t row) const {
        if constexpr (IS_NARROW) {
            return x + origin(row);
        } else {
            return x - base;
        }
    }
};

// Adds value · x[column] of the entries first, first + stride, … before end, x being the row's
// (Csr::x_of). U of them are under way at one time.
template <int U, class Acc, class A, class X, class I, class J>
__device__ __forceinline__ Acc dot(const Csr<A, I, J> &a, const X *x, int64_t first, int64_t end,
                                   int stride) {
    Acc sum = zero<Acc>();
    for (int64_t k = first; k < end; k += int64_t(U) * stride) {
        J column[U];
        A value[U];
        X factor[U];
        // Strides are far below 2^31 / U, so what is left is compared in 32 bits.
        const int left = int(min(end - k, int64_t(U) * stride));
        // Where there is no entry the first is read again, so that nothing
        // branches between loads; it is not multiplied: its x may be Inf.
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int64_t at = k + (u * stride < left ? u * stride : 0);
            column[u] = load_line(a.indices + at, a.policy);
            value[u] = load_line(a.values + at, a.policy);
        }
#pragma unroll
        for (int u = 0; u < U; ++u)
            factor[u] = load_cached(x + column[u]);
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u * stride < left)
                sum = fma(widen<Acc>(value[u]), widen<Acc>(factor[u]), sum);
        }
    }
    return sum;
}

// y = beta · y for all rows, by the whole grid: what is left of the product
// where alpha is 0.
template <class Y, class Acc>
__device__ __forceinline__ void scale_rows(const Target<Y> &y, int64_t rows, Acc beta) {
    const int64_t stride = grid_stride();
#pragma unroll 1
    for (int64_t row = first_item(); row < rows; row += stride) {
        y.store(row, zero<Acc>(), zero<Acc>(), beta);
    }
}
template <class Y, class Acc>
__device__ __forceinline__ void scale_rows(Y *y, int64_t rows, Acc beta) {
    scale_rows(Target<Y>{y, y}, rows, beta);
}

} // namespace tarsia::spmv
