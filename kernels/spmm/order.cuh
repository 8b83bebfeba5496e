// Windows whose rows are not in the order of C's rows (src/reorder).
#pragma once

#include <cstdint>

namespace tarsia {

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

} // namespace tarsia
