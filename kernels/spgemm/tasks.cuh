// Windows of the columns of wide rows of C, one task for a warp each (spgemm/dense_windows.cu,
// spgemm/dense.cu).
#pragma once

#include <cstdint>

namespace tarsia::spgemm {

// Columns of a window: with 8 KiB of 64-bit sums, a multiprocessor of an H100 has room for 24
// warps, and a mask of the columns is one 32-bit word per lane.
constexpr int WINDOW = 1024;

// Window of a row, or of a part of its entries of the left factor. `index` is the number of the row
// in the list; the parts of a window have consecutive tasks.
struct Task {
    uint32_t row;
    uint32_t window;
    uint32_t part;
    uint32_t index;
};

} // namespace tarsia::spgemm
