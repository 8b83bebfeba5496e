// Code shared by the kernels on windows of rows, with dense tiles (spmm/window.cuh) and with masked
// ones (spmm/masked.cuh).
#pragma once

#include "ptx/arithmetic.cuh"
#include "ptx/loads.cuh"
#include "ptx/warp.cuh"
#include "spmm/parts.cuh"

namespace tarsia::windows {

using namespace parts;

// Bits of Dense::flags: rows of B are aligned to 16 bytes; rows of C are; sums are stored to C
// unscaled, and alpha and beta are applied later; memory behind a row of B is readable up to the
// next multiple of 8 elements.
constexpr int B_ALIGNED = 1, C_ALIGNED = 2, UNSCALED = 4, B_PADDED = 8;

// B and C, stored by rows; those of B are less than 2^31 bytes apart.
template <class T, class Y> struct Dense {
    const T *b;
    int64_t ldb;
    Y *c;
    int64_t ldc;
    int64_t n, flags;
};

// Address in row `column` of B (column `column` of A), if `from` is the address in row 0.
__device__ __forceinline__ const char *row_at(const char *from, uint32_t column, int32_t stride) {
    return from + multiply_wide(int32_t(column), stride);
}

// Loads an item by a volatile read: kernels load their item again after the loop, since registers
// are short in it.
template <class Matrix>
__device__ __forceinline__ WorkItem item_of(const Matrix &m, int64_t number) {
    const uint4 v = load16(m.items + number);
    return {v.x, v.y, v.z, v.w};
}

// Value in `order` of a row of a window that is no row of A.
constexpr uint32_t HOLE = ~0u;

// Returns the row of C that a row of a window belongs to, or -1 if there is none. m.order: row of C
// for each of m.rows rows, or HOLE; NULL if rows are in order.
template <class Matrix> __device__ __forceinline__ int64_t row_of_c(const Matrix &m, int64_t row) {
    if (row >= m.rows)
        return -1;
    if (!m.order)
        return row;
    const uint32_t own = __ldg(m.order + row);
    return own == HOLE ? -1 : int64_t(own);
}

// Factors of the product and of the old C when a kernel stores its sums.
template <class Acc> struct Scaling {
    Acc alpha, beta;

    template <class T, class Y>
    __device__ __forceinline__ Scaling(const Dense<T, Y> &d, const Scalar<Acc> &of_product,
                                       const Scalar<Acc> &of_c)
        : alpha(d.flags & UNSCALED ? Acc(1) : of_product.get()),
          beta(d.flags & UNSCALED ? Acc(0) : of_c.get()) {}
};

// Computes `count` rows of C, from the window's row `row` on, in columns [at, at + width), from
// stored entries alone. each_entry(b, r, f) calls f(value, column of A) for the entries of the r-th
// of these rows in block b. Called by a warp.
template <class T, class Y, class Matrix, class Acc, class EachEntry>
__device__ __forceinline__ void
exact_rows(const Matrix &m, const Dense<T, Y> &d, const WorkItem &whole, int64_t row, int count,
           int64_t at, int width, const Scaling<Acc> &scaling, EachEntry each_entry) {
    const int lane = threadIdx.x % WARP;
#pragma unroll 1
    for (int r = 0; r < count; ++r) {
        const int64_t own = row_of_c(m, row + r);
        if (own < 0)
            continue;
#pragma unroll 1
        for (int64_t j = at + lane; j < d.n && j < at + width; j += WARP) {
            Acc sum = 0;
#pragma unroll 1
            for (uint32_t b = whole.first; b < whole.end; ++b) {
                each_entry(b, r, [&](auto value, int64_t column) {
                    sum = fma(widen<Acc>(value), widen<Acc>(d.b[column * d.ldb + j]), sum);
                });
            }
            store(d.c + own * d.ldc + j, scaling.alpha, sum, scaling.beta);
        }
    }
}

} // namespace tarsia::windows
