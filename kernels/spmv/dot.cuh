// Sparse matrix in CSR, and sums of the products of one row's entries.
#pragma once

#include "common/grid.cuh"
#include "common/target.cuh"
#include "ptx/loads.cuh"
#include "ptx/warp.cuh"

namespace tarsia::spmv {

// Threads of a block of the kernels in this directory, unless they define their own.
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / WARP;

// Loads a T, whose size is a multiple of 16 bytes, by loads of 16 bytes.
template <class T> __device__ __forceinline__ T load_head(const T *p) {
    static_assert(sizeof(T) % 16 == 0);
    uint4 bits[sizeof(T) / 16];
#pragma unroll
    for (int i = 0; i < int(sizeof(T) / 16); ++i)
        bits[i] = __ldg(reinterpret_cast<const uint4 *>(p) + i);
    T out;
    memcpy(&out, bits, sizeof out);
    return out;
}

// Sum over each group of `lanes` neighbouring lanes (a power of two); all lanes of a group get it.
template <class Acc> __device__ __forceinline__ Acc sum_of_lanes(Acc sum, int lanes = WARP) {
    for (int delta = lanes / 2; delta > 0; delta /= 2)
        sum = add(sum, shuffle_xor(sum, delta));
    return sum;
}

// Sum of part(begin) … part(end − 1): each lane of a warp adds every 32nd part in order, then the
// lanes' sums are added. All lanes get it.
template <class Acc, class Number, class Part>
__device__ __forceinline__ Acc sum_of_parts(Number begin, Number end, Part part) {
    Acc sum = zero<Acc>();
    for (Number i = begin + threadIdx.x % WARP; i < end; i += WARP)
        sum = add(sum, part(i));
    __syncwarp();
    return sum_of_lanes(sum);
}

// Counts a warp whose lane 0 has stored a partial sum, and returns whether it is the last of
// `expected` to arrive, which then sees the sums of the others.
__device__ __forceinline__ bool is_last_to_arrive(uint32_t *arrivals, uint32_t expected) {
    uint32_t before = 0;
    if (threadIdx.x % WARP == 0) {
        __threadfence();
        before = atomicAdd(arrivals, 1);
    }
    if (__shfl_sync(ALL_LANES, before, 0) != expected - 1)
        return false;
    __threadfence();
    return true;
}

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

// A matrix as a kernel gets it: `rows_of` is `order`, or `origins` for columns of 16 bits.
template <class A, class I, class J>
__device__ __forceinline__ Csr<A, I, J> csr(int64_t rows, int64_t nnz, const I *offsets,
                                            const J *indices, const A *values, int64_t base,
                                            uint64_t policy, const uint32_t *rows_of) {
    constexpr bool IS_NARROW = Csr<A, I, J>::IS_NARROW;
    return {rows,
            nnz,
            offsets,
            indices,
            values,
            base,
            policy,
            IS_NARROW ? nullptr : rows_of,
            IS_NARROW ? rows_of : nullptr};
}

// Sum of value · x[column] over the entries first, first + stride, … before `end`; x is the row's
// (Csr::x_of). IN_FLIGHT entries are in flight at one time.
template <int IN_FLIGHT, class Acc, class A, class X, class I, class J>
__device__ __forceinline__ Acc dot(const Csr<A, I, J> &a, const X *x, int64_t first, int64_t end,
                                   int stride) {
    Acc sum = zero<Acc>();
    for (int64_t k = first; k < end; k += int64_t(IN_FLIGHT) * stride) {
        J column[IN_FLIGHT];
        A value[IN_FLIGHT];
        X factor[IN_FLIGHT];
        // Strides are far below 2^31 / IN_FLIGHT, so the rest is compared in 32 bits.
        const int left = int(min(end - k, int64_t(IN_FLIGHT) * stride));
        // Beyond the end the first entry is loaded again, so that there are no branches between
        // loads; it is not multiplied, since its x may be Inf.
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
            const int64_t at = k + (u * stride < left ? u * stride : 0);
            column[u] = load_line(a.indices + at, a.policy);
            value[u] = load_line(a.values + at, a.policy);
        }
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u)
            factor[u] = load_cached(x + column[u]);
#pragma unroll
        for (int u = 0; u < IN_FLIGHT; ++u) {
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
