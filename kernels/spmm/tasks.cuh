// The lists that SpMM `row` works from.
#pragma once

#include <cstdint>

namespace tarsia {

// A row that a warp or a group takes: `length` entries from `begin` on.
struct alignas(16) Run {
    int64_t begin;
    int32_t row, length;
};

// A part of a row, or all of it, which a block takes. The sums of part `index` of `count` go to
// slot `first` + index, if there are several, and are counted from `counter` on.
struct alignas(16) Part {
    int64_t begin;
    int32_t length, row;
    int32_t first, count, index, counter;
};

// Parts that are added at once; then such sums are.
constexpr int kJoined = 16;

// Counters of a row of so many parts.
__host__ __device__ constexpr int counters_of(int64_t parts) {
    return int((parts + kJoined - 1) / kJoined) + 1;
}

} // namespace tarsia
