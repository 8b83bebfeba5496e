// Heads of the slices and long rows of src/format/hot_sell.rs, which describes them; the
// conversion makes them and the product reads them.
#pragma once

#include <cstdint>

namespace tarsia::hot_sell {

// Columns of a lane in a step.
constexpr int GROUP = 2;
// The top bit of a column's word: what follows is the number of a hot one, or of the zero
// behind them, which padding has.
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
