// Heads of the slices of src/format/warp_sell.rs, which describes them; the conversion
// makes them and the products read them.
#pragma once

#include <cstdint>

namespace tarsia::warp_sell {

struct alignas(16) SliceHead {
    // First value and column, in units of 32.
    uint32_t first, columns;
    // What narrow columns count from.
    uint32_t base;
    // First place in `order`; parts: the row's first block.
    uint32_t place;
    // First row of the window; even slices: of the slice; parts: the row.
    uint32_t row, window;
    // Full steps; length of each item of even slices and parts.
    uint16_t steps, length;
    uint8_t lanes_log2, items;
    uint16_t flags;
};
// Flags of a head.
constexpr int WIDE = 1, RUNS = 2, EVEN = 4, PART = 8, HALF = 16, ADJACENT = 32, ROWS = 64,
              LAST = 128;
} // namespace tarsia::warp_sell
