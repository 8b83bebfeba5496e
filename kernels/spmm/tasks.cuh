// The lists that SpMM `row` works from.
#pragma once

#include <cstdint>

namespace tarsia {

// A piece of a long row.
struct Piece {
    int64_t begin, end; // entries
    int64_t row;
    int64_t slot; // where its sums go
};

// A row that was cut into pieces.
struct Cut {
    int64_t row, first_slot, slots;
};

} // namespace tarsia
