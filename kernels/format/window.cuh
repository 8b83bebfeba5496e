// Windows, or row blocks, and their parts where they are cut: src/format/window.rs has the
// rules; the conversions make them and the products read them.
#pragma once

#include <cstdint>

namespace tarsia::parts {

// A column that pads the last block of a window: a copy of the window's last one.
constexpr uint32_t kPadding = 1u << 31;

// Of an item that is a whole row block.
constexpr uint32_t kWhole = ~0u;

// Blocks [first, end) of a row block; `part`: which part, where it is cut.
struct alignas(16) Item {
    uint32_t window, first, end, part;
};
// The parts of the row block that a part belongs to: `count` from `first`, which are
// the items of these numbers; `counter`: which of the cut row blocks that is.
struct alignas(16) Part {
    uint32_t window, first, count, counter;
};

} // namespace tarsia::parts
