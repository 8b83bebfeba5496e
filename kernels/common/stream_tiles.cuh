// The arrays of src/format/stream.rs, for the kernels that make and read them.
#pragma once

#include <cstdint>

namespace tarsia::stream {

constexpr int WARP = 32;
// Tiles of a block.
constexpr int WARPS = 4;

// Slots of a tile with values of this many bytes.
constexpr __device__ __host__ int tile_slots(int value_bytes) {
    return value_bytes <= 4 ? 512 : 256;
}
// How far behind the end of its block a row may end without being split.
constexpr __device__ __host__ int overhang(int tile) { return tile / 4; }

struct alignas(16) Tile {
    uint32_t row, base, high, link;

    static constexpr uint32_t JOINS = 1u << 31, NARROW = ~0u, TAKEN = ~0u, OVER = 1u << 31;
};

struct alignas(16) Split {
    uint32_t row, first_block, first_part, parts;
};

} // namespace tarsia::stream
