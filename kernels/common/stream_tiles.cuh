// Constants and heads of the layout in src/format/stream.rs, for the kernels that build it and
// multiply by it.
#pragma once

#include "ptx/warp.cuh"

namespace tarsia::stream {

// Tiles per block, one for each warp.
constexpr int WARPS = 4;

// Number of entry slots of a tile with values of this many bytes.
constexpr __device__ __host__ int tile_slots(int value_bytes) {
    return value_bytes <= 4 ? 512 : 256;
}
// Number of slots behind the end of its block up to which a row may reach without being split.
constexpr __device__ __host__ int overhang(int slots_of_tile) { return slots_of_tile / 4; }

// Head of a tile.
struct alignas(16) Tile {
    // Row of the first slot, plus JOINS if that row has slots in tiles before.
    uint32_t row;
    // The smallest column; 0 if there is no entry.
    uint32_t base;
    // Number of the tile among those with high halves, or NARROW.
    uint32_t high;
    // The way in which the tile's block shares rows with other blocks; 0 if it does not. In the
    // block's first tile, for the row that it continues: TAKEN if the block before adds that up,
    // else 1 + the number of the row's split. In its last tile, for the row that goes on in the
    // next block: OVER plus the number of the row's slots there if this block adds them; else, if
    // the row starts in this block, 1 + the number of its split.
    uint32_t link;

    // Flag of `row`.
    static constexpr uint32_t JOINS = 1u << 31;
    // Value of `high` for a tile without high halves.
    static constexpr uint32_t NARROW = ~0u;
    // Value of `link`, and flag of `link`.
    static constexpr uint32_t TAKEN = ~0u, OVER = 1u << 31;
};

// Row with partial sums from several blocks.
struct alignas(16) Split {
    // Number of the row; the block in which it starts.
    uint32_t row, first_block;
    // Index of its first partial sum among those of all split rows, and number of its partial sums.
    uint32_t first_part, parts;
};

} // namespace tarsia::stream
