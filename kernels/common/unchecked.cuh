// Offsets and columns of a pattern that has not been checked yet, which may be any numbers. Kernels
// that analysis enqueues before it knows the check's report read them in this way, so that they
// stay inside the arrays.
#pragma once

#include <cstdint>

namespace tarsia {

// An offset or index less the base, in unsigned arithmetic, in which no number overflows: numbers
// below the base become negative.
__device__ __forceinline__ int64_t less_base(int64_t number, int64_t base) {
    return int64_t(uint64_t(number) - uint64_t(base));
}

// Position at which the entries of a row begin or end, clamped to [least, nnz]. Of one row the
// beginning may serve as `least` of the end, so that its length is not negative.
// (src/select/spmv/statistics.rs clamps in the same way.)
__device__ __forceinline__ int64_t clamped_offset(int64_t offset, int64_t base, int64_t nnz,
                                                  int64_t least = 0) {
    const int64_t at = less_base(offset, base);
    return at < least ? least : at < nnz ? at : nnz;
}

} // namespace tarsia
