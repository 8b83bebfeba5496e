// Heads of the shares and parts of src/format/mask_block.rs, which describes them; the
// conversion makes them and the product reads them.
#pragma once

#include <cstdint>

namespace tarsia::mask_block {

struct alignas(16) BlockHead {
    // First value and block; what narrow columns count from, or the first wide one;
    // blocks; values.
    uint64_t first;
    uint32_t block, base, count, values, flags, unused;
};
// Flags of a head: its columns have 32 bits; its slab is cut into parts.
constexpr uint32_t WIDE = 1, CUT = 2;

struct alignas(16) PartHead {
    // The slab, its first part and how many it has, and its counter.
    uint32_t slab, first, count, counter;
};

} // namespace tarsia::mask_block
