// Heads of the shares and parts of src/format/mask_block.rs, which describes them. Shared by the
// conversion, which builds them, and the product, which reads them.
#pragma once

#include <cstdint>

namespace tarsia::mask_block {

struct alignas(16) BlockHead {
    // First value.
    uint64_t first;
    // First block; column / 4 that 16-bit numbers are relative to or, for WIDE, first index in
    // `wide`; number of blocks and of values; flags; padding, 0.
    uint32_t block, base, count, values, flags, unused;
};
// Flags of a head: the numbers of its columns have 32 bits; it is a share of a slab that is cut
// into parts, and has no blocks.
constexpr uint32_t WIDE = 1, CUT = 2;

struct alignas(16) PartHead {
    // Slab, its first part, its number of parts, and number of the slab among the split ones, which
    // is that of its counter.
    uint32_t slab, first, count, counter;
};

} // namespace tarsia::mask_block
