// Sparse matrix in CSR, and sums of the products of one row's entries.
#pragma once

#include "common/grid.cuh"
#include "common/target.cuh"
#include "ptx/loads.cuh"

namespace tarsia::spmv {

constexpr int WARP = 32;
// Threads of a block of the kernels in this directory, unless they define their own.
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;

// CSR matrix. Offsets count from base, and so do columns, unless these have 16 bits: such columns
// are the plan's own (narrow.cuh) and count from the origin of their row or chunk.
template <class A, class I, class J> struct Csr {
    static constexpr bool IS_NARROW = sizeof(J) == 2;
    int64_t rows, nnz;
    const I *offsets;
    const J *indices;
    const A *values;
    int64_t base;
    // L2 cache policy for indices and values.
    uint64_t policy;
    // Row of y that each row belongs to; NULL if it is the same row.
    const uint32_t *order;
    // Origin of each row's or chunk's 16-bit columns, its first column; NULL if all are 0.
    const uint32_t *origins = nullptr;

    __device__ __forceinline__ int64_t row_of_y(int64_t row) const {
        // Reordered rows are in a copy of the matrix, which has these types; for other types this
        // would only cost registers.
        if constexpr (sizeof(I) == 8 && sizeof(J) == 4) {
            if (order != nullptr)
                return load_cached(order + row);
        }
        return row;
    }

    // Position of the first entry of a row; for `rows`, the end of the last row.
    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(load_cached(offsets + row)) - base;
    }

    // Column from which the 16-bit columns of a row or chunk count.
    __device__ __forceinline__ uint32_t origin(int64_t part) const {
        return origins != nullptr ? load_cached(origins + part) : 0;
    }

    // Address of the element of x to which the stored column 0 of a row refers.
    template <class X> __device__ __forceinline__ const X *x_of(const X *x, int64_t row) const {
        if constexpr (IS_NARROW) {
            return x + origin(row);
        } else {
            return x - base;
        }
    }
};

// Sum of value · x[column] over the entries first, first + stride, … before `end`; x is the row's
// (Csr::x_of). U entries are in flight at one time.
template <int U, class Acc, class A, class X, class I, class J>
__device__ __forceinline__ Acc dot(const Csr<A, I, J> &a, const X *x, int64_t first, int64_t end,
                                   int stride) {
    Acc sum = zero<Acc>();
    for (int64_t k = first; k < end; k += int64_t(U) * stride) {
        J column[U];
        A value[U];
        X factor[U];
        // Strides are far below 2^31 / U, so the rest is compared in 32 bits.
        const int left = int(min(end - k, int64_t(U) * stride));
        // Beyond the end the first entry is loaded again, so that there are no branches between
        // loads; it is not multiplied, since its x may be Inf.
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

// Computes y = beta · y for all rows by the whole grid, which is the product if alpha is 0.
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
