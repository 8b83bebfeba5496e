// Binary searches of numbers [low, high) of which `f` holds up to some number and not from there
// on.
#pragma once

#include <cstdint>

namespace tarsia {

// The first that it does not hold of; `high` where it holds of all.
template <class F>
__device__ __forceinline__ int64_t first_where_not(int64_t low, int64_t high, F f) {
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

// The last that it holds of, as it does of the first.
template <class F> __device__ __forceinline__ int64_t last_where(int64_t low, int64_t high, F f) {
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

} // namespace tarsia
