// Bins of rows of a product, each for a launch: which kernel takes a row depends on what it is
// like. The library's build reads the list, too (build/kernel_names.rs,
// src/backend/cuda/spgemm/bins.rs).
#pragma once

namespace tarsia::spgemm {

// Bins of one kind are numbered from its name on.
enum RowBin {
#define ROW_BIN(name, bins) name, name##_LAST = name + bins - 1,
    // A table for the row in shared memory, by the size of the table (team.cu, hash.cu).
    ROW_BIN(TABLE, 6)
    // A block with a bitmap of the columns: with few threads, with many (window.cu).
    ROW_BIN(BITMAP, 2)
    // Rows of one pattern in a short range of columns, by the size of that (group.cu).
    ROW_BIN(SAME_PATTERN, 5)
    // A sum for each column of a window (wide.cu).
    ROW_BIN(DENSE_WINDOWS, 1)
    // Rows with the columns of the one before, one further, by their entries (slide.cu).
    ROW_BIN(SHIFTED_PATTERN, 5)
    // A block with one table (block.cu).
    ROW_BIN(BLOCK_TABLE, 2)
    // A row of the right factor times a number: short rows, long ones (single.cu).
    ROW_BIN(SCALED_ROW, 2)
#undef ROW_BIN
        ROW_BINS
};

} // namespace tarsia::spgemm
