// Rows of a pattern that need not be valid: whatever it holds, nothing outside its arrays is read.
#pragma once

#include <cstdint>

namespace tarsia::convert {

// 32 bits number the columns of a valid one.
template <class O, class J> struct AnyRows {
    const O *offsets;
    const J *indices;
    int64_t base, rows, nnz;

    // From 0 to nnz; may descend. Unsigned: an offset that is wrong may be any number.
    __device__ __forceinline__ int64_t start(int64_t row) const {
        const int64_t at =
            int64_t(uint64_t(int64_t(__ldg(offsets + min(row, rows)))) - uint64_t(base));
        return max(int64_t(0), min(at, nnz));
    }
    // Where a row that begins there ends.
    __device__ __forceinline__ int64_t end(int64_t row, int64_t start) const {
        return max(start, this->start(row + 1));
    }
    __device__ __forceinline__ uint32_t column(int64_t entry) const {
        return uint32_t(uint64_t(int64_t(__ldg(indices + entry))) - uint64_t(base));
    }
};

} // namespace tarsia::convert
