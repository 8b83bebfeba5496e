// Bins of the rows of a product. Each bin is one launch: a row's properties decide which kernel
// takes it. The library's build reads this list, too (build/kernel_names.rs,
// src/backend/cuda/spgemm/bins.rs).
#pragma once

namespace tarsia::spgemm {

// Bins of one kind have consecutive numbers, which begin at the kind's name.
enum RowBin {
#define ROW_BIN(name, bins) name, name##_LAST = name + bins - 1,
    // Hash table per row in shared memory; bins by the size of the table (team.cu, hash.cu).
    ROW_BIN(TABLE, 6)
    // Block with a bitmap of the columns: one bin with few threads, one with many (bitmap.cu).
    ROW_BIN(BITMAP, 2)
    // Rows of one pattern in a short range of columns; bins by the size of the range
    // (same_pattern.cu).
    ROW_BIN(SAME_PATTERN, 5)
    // Dense windows, with a sum for each column (dense_windows.cu).
    ROW_BIN(DENSE_WINDOWS, 1)
    // Shifted runs, rows with the previous row's columns shifted by one; bins by their entries
    // (shifted_pattern.cu).
    ROW_BIN(SHIFTED_PATTERN, 5)
    // Block with one hash table (block.cu).
    ROW_BIN(BLOCK_TABLE, 2)
    // Scaled row of the right factor: one bin for short rows, one for long ones (scaled_row.cu).
    ROW_BIN(SCALED_ROW, 2)
#undef ROW_BIN
        ROW_BINS
};

} // namespace tarsia::spgemm
