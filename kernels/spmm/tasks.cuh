// Work items of SpMM `row`.
#pragma once

#include <cstdint>

namespace tarsia {

// Largest number of rows of a run.
constexpr int MOST_ROWS = 8;

// Run of neighbouring rows, which have `length` entries from `begin` on.
struct alignas(16) Run {
    int64_t begin;
    int32_t row;
    uint16_t rows, length;
};

// Part of a row, or the whole row, which a block takes. If there are several, the sums of part
// `index` of `count` go to slot `first` + index, and arrivals are counted from `counter` on.
struct alignas(16) Part {
    int64_t begin;
    int32_t length, row;
    int32_t first, count, index, counter;
};

// Number of parts whose sums are added at once; the results are then added in the same way.
constexpr int JOINED = 16;

// Number of counters of a row of so many parts.
__host__ __device__ constexpr int counters_of(int64_t parts) {
    return int((parts + JOINED - 1) / JOINED) + 1;
}

} // namespace tarsia
