// What the kernels on windows of rows have in common, of dense tiles (spmm/window.cuh) and of
// masked ones (spmm/masked.cuh).
#pragma once

#include "spmm/parts.cuh"

namespace tarsia::windows {

using namespace parts;

constexpr unsigned kWarp = 0xffffffffu;

// B and C by rows, of B less than 2^31 bytes apart; flags: 1, rows of B are aligned to 16 bytes; 2,
// those of C; 4, sums go to C as they are, alpha and beta come later; 8, there is memory behind a
// row of B up to the next multiple of 8 elements.
template <class T, class Y> struct Dense {
    const T *b;
    int64_t ldb;
    Y *c;
    int64_t ldc;
    int64_t n, flags;
};

template <bool is> struct Flag { static constexpr bool yes = is; };

// Where the row of B is whose column 0 is at `from`. 32 bits times 32 bits.
__device__ __forceinline__ const char *row_at(const char *from, uint32_t column, int32_t stride) {
    return from + int64_t(int32_t(column)) * stride;
}

// Of a row of a window that is none of A's.
constexpr uint32_t kHole = ~0u;

// The row of C of a row of a window; -1 where there is none. m.order: the row of C of each of
// m.rows rows, or kHole; NULL: they are in order.
template <class Matrix> __device__ __forceinline__ int64_t row_of_c(const Matrix &m, int64_t row) {
    if (row >= m.rows)
        return -1;
    if (!m.order)
        return row;
    const uint32_t own = __ldg(m.order + row);
    return own == kHole ? -1 : int64_t(own);
}

} // namespace tarsia::windows
