// Heads of the slices of src/format/warp_sell.rs, which describes them. Shared by the conversion,
// which builds them, and the products, which read them.
#pragma once

#include <cstdint>

namespace tarsia::warp_sell {

struct alignas(16) SliceHead {
    // First value and first column, in units of 32.
    uint32_t first, columns;
    // Column to which narrow columns are relative.
    uint32_t base;
    // Position of the first item in `order`; for parts, number of the row's first thread block.
    uint32_t place;
    // First row of the window; for even slices, first row of the slice; for parts, the row. Then
    // the window.
    uint32_t row, window;
    // Number of full steps; length of each item of an even slice, or of a part.
    uint16_t steps, length;
    uint8_t lanes_log2, items;
    uint16_t flags;
};
// Flags of a head, as in src/format/warp_sell.rs.
constexpr int WIDE = 1, RUNS = 2, EVEN = 4, PART = 8, HALF = 16, ADJACENT = 32, ROWS = 64,
              LAST = 128;
} // namespace tarsia::warp_sell
