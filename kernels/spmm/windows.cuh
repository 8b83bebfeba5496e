// Code shared by the kernels on windows of rows, with dense tiles (spmm/window.cuh) and with masked
// ones (spmm/masked.cuh).
#pragma once

#include "spmm/parts.cuh"

namespace tarsia::windows {

using namespace parts;

constexpr unsigned kWarp = 0xffffffffu;

// B and C, stored by rows; those of B are less than 2^31 bytes apart. Bits of `flags`: 1, rows of B
// are aligned to 16 bytes; 2, rows of C are; 4, sums are stored to C unscaled, and alpha and beta
// are applied later; 8, memory behind a row of B is readable up to the next multiple of 8 elements.
template <class T, class Y> struct Dense {
    const T *b;
    int64_t ldb;
    Y *c;
    int64_t ldc;
    int64_t n, flags;
};

template <bool is> struct Flag { static constexpr bool yes = is; };

// Address in row `column` of B (column `column` of A), if `from` is the address in row 0.
// Multiplies two 32-bit numbers.
__device__ __forceinline__ const char *row_at(const char *from, uint32_t column, int32_t stride) {
    return from + int64_t(int32_t(column)) * stride;
}

// Value in `order` of a row of a window that is no row of A.
constexpr uint32_t kHole = ~0u;

// Returns the row of C that a row of a window belongs to, or -1 if there is none. m.order: row of C
// for each of m.rows rows, or kHole; NULL if rows are in order.
template <class Matrix> __device__ __forceinline__ int64_t row_of_c(const Matrix &m, int64_t row) {
    if (row >= m.rows)
        return -1;
    if (!m.order)
        return row;
    const uint32_t own = __ldg(m.order + row);
    return own == kHole ? -1 : int64_t(own);
}

} // namespace tarsia::windows
