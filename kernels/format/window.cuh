// Work items of windows or row blocks, and their parts where they are split, by the rules of
// src/format/window.rs. Shared by the conversions, which build them, and the products, which read
// them.
#pragma once

#include <cstdint>

namespace tarsia::parts {

// Flag of a column that pads the last block of a window; the other bits are the window's last
// column.
constexpr uint32_t PADDING = 1u << 31;

// `part` of an item that is a whole row block.
constexpr uint32_t WHOLE = ~0u;

// Blocks [first, end) of a window or row block, for one warp or thread block; `part` is the number
// of the part, if the row block is split.
struct alignas(16) WorkItem {
    uint32_t window, first, end, part;
};
// Parts of the row block that a part belongs to: `count` parts from number `first` on, which are
// also numbers of items; `counter` is the number of the row block among those that are split.
struct alignas(16) Part {
    uint32_t window, first, count, counter;
};

} // namespace tarsia::parts
