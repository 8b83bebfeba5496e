// Heads of the shares and parts of src/format/mask_block.rs, which describes them. Shared by the
// conversion, which builds them, and the product, which reads them.
#pragma once

#include <cstdint>

namespace tarsia::mask_block {

struct alignas(16) BlockHead {
    // First value and first block; base of 16-bit columns, or position of the first 32-bit one;
    // number of blocks and of values.
    uint64_t first;
    uint32_t block, base, count, values, flags, unused;
};
// Flags of a head: its columns have 32 bits; its slab is cut into parts.
constexpr uint32_t WIDE = 1, CUT = 2;

struct alignas(16) PartHead {
    // Slab, its first part, its number of parts, and the number of its counter.
    uint32_t slab, first, count, counter;
};

} // namespace tarsia::mask_block
