// Heads of the slices and long rows of src/format/hot_sell.rs, which describes them. Shared by the
// conversion, which builds them, and the product, which reads them.
#pragma once

#include <cstdint>

namespace tarsia::hot_sell {

// Entries of a lane in one step.
constexpr int GROUP = 2;
// Flag in a column word: the other bits are the number of a hot column, or of the zero stored
// behind the hot columns, which padding refers to.
constexpr uint32_t HOT = 1u << 31;

struct alignas(16) SliceHead {
    uint64_t first;
    uint32_t place;
    uint16_t steps;
    uint8_t lanes_log2, items;
};
struct alignas(16) LongRow {
    uint32_t row, first, count, unused;
};

} // namespace tarsia::hot_sell
