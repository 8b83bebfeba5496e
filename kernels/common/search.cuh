// Binary searches in [low, high) for the number from which on a predicate `f` no longer holds.
#pragma once

#include <cstdint>

namespace tarsia {

// First number for which `f` does not hold; `high` if it holds for all.
template <class Predicate>
__device__ __forceinline__ int64_t first_where_not(int64_t low, int64_t high, Predicate f) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (f(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Last number for which `f` holds; it must hold for `low`.
template <class Predicate>
__device__ __forceinline__ int64_t last_where(int64_t low, int64_t high, Predicate f) {
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (f(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Number of the range that holds `at`, of `count` ranges that begin at `starts`: the last one that
// begins at or before it.
__device__ __forceinline__ int64_t range_of(const int64_t *starts, int64_t count, int64_t at) {
    return last_where(0, count, [&](int64_t number) { return starts[number] <= at; });
}

} // namespace tarsia
