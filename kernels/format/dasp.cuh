// Tasks of the long rows of src/format/dasp.rs, which describes them. Shared by the conversion,
// which builds them, and the product, which reads them.
#pragma once

#include <cstdint>

namespace tarsia::dasp {

// Groups of a long row that form one task; for a split row, `row` is −1 − its number.
struct Task {
    int64_t first;
    int32_t groups, row;
};

// Long row of several tasks. `before`: number of tasks of the split rows before this one.
struct Split {
    int64_t first, before;
    int32_t tasks, row;
};

} // namespace tarsia::dasp
