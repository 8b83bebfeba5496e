// Windows of columns of wide rows of C, which warps take (spgemm/wide.cu, spgemm/dense.cu).
#pragma once

#include <cstdint>

namespace tarsia::spgemm {

// Columns of a window: 8 KiB of 64-bit sums leave a multiprocessor of an H100 24
// warps, and a bit for each is a 32-bit word for each lane.
constexpr int WINDOW = 1024;

// `index` numbers the row in the list, and `part` the part of its factors; the parts of a window
// follow each other.
struct Task {
    uint32_t row;
    uint32_t window;
    uint32_t part;
    uint32_t index;
};

} // namespace tarsia::spgemm
