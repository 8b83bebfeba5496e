// Pattern of op(A) as the conversions read it. It has been validated.
#pragma once

#include "common/search.cuh"

namespace tarsia::convert {

// Rows in compressed form; offsets and indices count from `base`.
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows;

    // First entry of a row; rows beyond the last one are empty.
    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(offsets[min(row, rows)]) - base;
    }
    // Column of an entry, less than 2^31.
    __device__ __forceinline__ uint32_t column(int64_t entry) const {
        return uint32_t(int64_t(indices[entry]) - base);
    }
    // First entry of [from, to) whose column is at least `wanted`.
    __device__ __forceinline__ int64_t find(int64_t from, int64_t to, uint32_t wanted) const {
        return first_where_not(from, to, [&](int64_t at) { return column(at) < wanted; });
    }
};

} // namespace tarsia::convert
