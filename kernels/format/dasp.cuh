// Tasks of the long rows of src/format/dasp.rs, which describes them; the conversion
// makes them and the product reads them.
#pragma once

#include <cstdint>

namespace tarsia::dasp {

// Groups of a long row that are one task; `row` of a split one is −1 − its number.
struct Task {
    int64_t first;
    int32_t groups, row;
};

// A long row of several tasks. `before`: tasks of split rows before this one's.
struct Split {
    int64_t first, before;
    int32_t tasks, row;
};

} // namespace tarsia::dasp
