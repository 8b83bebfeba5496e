// Arrays of the layout in src/format/stream.rs, for the kernels that build and multiply it.
#pragma once

#include <cstdint>

namespace tarsia::stream {

constexpr int WARP = 32;
// Tiles per block, one for each warp.
constexpr int WARPS = 4;

// Number of entry slots of a tile with values of this many bytes.
constexpr __device__ __host__ int tile_slots(int value_bytes) {
    return value_bytes <= 4 ? 512 : 256;
}
// Number of slots behind the end of its block up to which a row may reach without being split.
constexpr __device__ __host__ int overhang(int tile) { return tile / 4; }

struct alignas(16) Tile {
    uint32_t row, base, high, link;

    static constexpr uint32_t JOINS = 1u << 31, NARROW = ~0u, TAKEN = ~0u, OVER = 1u << 31;
};

struct alignas(16) Split {
    uint32_t row, first_block, first_part, parts;
};

} // namespace tarsia::stream
