// Builds the layout `stream` (described in src/format/stream.rs) from rows of op(A): the first slot
// of each row, the first row of each tile, the arrays tile by tile, then the links between tiles
// and between blocks. The pattern has been validated.
//
// Row r starts at offsets[r] − base.

#include "common/grid.cuh"
#include "common/stream_tiles.cuh"
#include "format/bits.cuh"
#include "format/pattern.cuh"

namespace tarsia::stream {

constexpr int THREADS = 256;

// Counts the slots of each row, with one 0 behind them, for an exclusive scan.
template <class O> __device__ void row_slots(const O *offsets, int64_t rows, int64_t *out) {
    for (int64_t r = first_item(); r <= rows; r += grid_stride()) {
        const int64_t length = r < rows ? int64_t(offsets[r + 1]) - int64_t(offsets[r]) : -1;
        out[r] = length < 0 ? 0 : max(length, int64_t(1));
    }
}

// Writes the row of each tile's first slot. `starts` holds the first slot of each row, and the
// number of slots at the end.
__device__ void tile_rows(const int64_t *starts, int64_t rows, int64_t tile_slots, Tile *tiles) {
    // Largest number of tiles of a row that one thread writes by itself; longer ones take the warp.
    constexpr int64_t FEW = 4;
    const int lane = threadIdx.x % WARP;
    // Whole warps stay in the loop, for the ballots.
    for (int64_t first = first_item() - lane; first < rows; first += grid_stride()) {
        const int64_t row = first + lane;
        int64_t tile = 0, end = 0;
        uint32_t head = 0;
        if (row < rows) {
            const int64_t start = starts[row];
            tile = (start + tile_slots - 1) / tile_slots;
            end = (starts[row + 1] + tile_slots - 1) / tile_slots;
            if (tile < end) {
                const bool joins = tile * tile_slots > start;
                tiles[tile++].row = uint32_t(row) | (joins ? Tile::JOINS : 0);
            }
            head = uint32_t(row) | Tile::JOINS;
        }
        const bool is_long = end - tile > FEW;
        for (unsigned left = __ballot_sync(ALL_LANES, is_long); left != 0; left &= left - 1) {
            const int source = __ffs(left) - 1;
            const int64_t from = __shfl_sync(ALL_LANES, tile, source),
                          to = __shfl_sync(ALL_LANES, end, source);
            const uint32_t value = __shfl_sync(ALL_LANES, head, source);
            for (int64_t t = from + lane; t < to; t += WARP)
                tiles[t].row = value;
        }
        if (!is_long) {
            for (; tile < end; ++tile)
                tiles[tile].row = head;
        }
    }
}

// Map from COUNT slots, beginning at a tile's first one, to entries.
template <int COUNT> struct Slots {
    static constexpr int WORDS = COUNT / 32;
    // Entry of the first slot or, if that slot is void, the next entry.
    int64_t entry;
    // Number of slots that are not padding.
    int count;
    // Bits of void slots (those of empty rows), and the number of such slots before each word.
    uint32_t voids[WORDS];
    int before[WORDS];

    // Completes the map after `voids` has been set; has a barrier at its begin and end. `row` is
    // the row of slot `first` of the matrix.
    template <class O>
    __device__ void prepare(const O *offsets, int64_t base, const int64_t *starts, int64_t slots,
                            int64_t row, int64_t first) {
        __syncthreads();
        if (threadIdx.x < WORDS) {
            int sum = 0;
            for (int w = 0; w < int(threadIdx.x); ++w)
                sum += __popc(voids[w]);
            before[threadIdx.x] = sum;
        }
        if (threadIdx.x == 0) {
            entry = int64_t(offsets[row]) - base + (first - starts[row]);
            count = int(min(slots - first, int64_t(COUNT)));
        }
        __syncthreads();
    }
    __device__ bool has_entry(int slot) const {
        return slot < count && (voids[slot / 32] >> slot % 32 & 1) == 0;
    }
    __device__ int64_t entry_of(int slot) const {
        const uint32_t low = voids[slot / 32] & ((1u << slot % 32) - 1);
        return entry + slot - before[slot / 32] - __popc(low);
    }
};

template <class O, class J> struct Rows : convert::Pattern<O, J> {
    // First slot of each row, and the number of slots behind them.
    const int64_t *starts;
    int64_t slots;
};

// Number of tiles that a block of `fill` builds: all of them together wait for memory once.
constexpr int GROUP = 4;

// Fills the block's tiles, except for the links that depend on other tiles: `high` of a wide tile
// stays 0, and wide[t] says whether tile t is wide. `voids` is NULL if no row is empty.
template <int TILE, class O, class J, class T>
__device__ void fill(Rows<O, J> a, const T *values, int64_t tile_count, Tile *tiles, uint32_t *ends,
                     uint32_t *voids, uint16_t *lows, T *out, int64_t *wide) {
    // Number of threads of a tile, and of slots of each thread.
    constexpr int TEAM = THREADS / GROUP, EACH = TILE / TEAM;
    constexpr int WARPS_OF_TEAM = TEAM / WARP, WORDS = TILE / 32;
    __shared__ Slots<GROUP * TILE> slots;
    __shared__ uint32_t end_bits[GROUP * WORDS];
    __shared__ uint32_t lowest[THREADS / WARP], highest[THREADS / WARP];
    const int64_t first_tile = int64_t(blockIdx.x) * GROUP, first = first_tile * TILE;
    const int64_t next_tile = min(first_tile + GROUP, tile_count);
    const int64_t row = tiles[first_tile].row & ~Tile::JOINS;
    const int64_t last =
        next_tile < tile_count ? int64_t(tiles[next_tile].row & ~Tile::JOINS) : a.rows - 1;
    if (threadIdx.x < GROUP * WORDS) {
        slots.voids[threadIdx.x] = 0;
        end_bits[threadIdx.x] = 0;
    }
    __syncthreads();
    for (int64_t r = row + threadIdx.x; r <= last; r += THREADS) {
        const int64_t slot = a.starts[r + 1] - 1 - first;
        if (slot < 0 || slot >= GROUP * TILE)
            continue;
        const uint32_t bit = 1u << slot % 32;
        atomicOr(end_bits + slot / 32, bit);
        if (voids != nullptr && a.offsets[r] == a.offsets[r + 1])
            atomicOr(slots.voids + slot / 32, bit);
    }
    slots.prepare(a.offsets, a.base, a.starts, a.slots, row, first);

    const int team = threadIdx.x / TEAM, member = threadIdx.x % TEAM;
    const int64_t tile = first_tile + team;
    uint32_t columns[EACH];
    T value[EACH];
    uint32_t low = ~0u, high = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int slot = team * TILE + i * TEAM + member;
        value[i] = {};
        columns[i] = ~0u;
        if (slots.has_entry(slot)) {
            const int64_t entry = slots.entry_of(slot);
            columns[i] = a.column(entry);
            value[i] = values[entry];
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        if (columns[i] != ~0u) {
            low = min(low, columns[i]);
            high = max(high, columns[i]);
        }
    }
    low = __reduce_min_sync(ALL_LANES, low);
    high = __reduce_max_sync(ALL_LANES, high);
    if (threadIdx.x % WARP == 0) {
        lowest[threadIdx.x / WARP] = low;
        highest[threadIdx.x / WARP] = high;
    }
    __syncthreads();
    if (tile >= tile_count)
        return;
    for (int w = 0; w < WARPS_OF_TEAM; ++w) {
        low = min(low, lowest[team * WARPS_OF_TEAM + w]);
        high = max(high, highest[team * WARPS_OF_TEAM + w]);
    }
    const uint32_t base = low == ~0u ? 0 : low;
    const bool is_wide = high - base > 0xffff;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int64_t slot = tile * TILE + i * TEAM + member;
        lows[slot] = uint16_t(columns[i] == ~0u ? 0 : columns[i] - base);
        out[slot] = value[i];
    }
    if (member < WORDS) {
        ends[tile * WORDS + member] = end_bits[team * WORDS + member];
        if (voids != nullptr)
            voids[tile * WORDS + member] = slots.voids[team * WORDS + member];
    }
    if (member == 0) {
        tiles[tile].base = base;
        tiles[tile].high = is_wide ? 0 : Tile::NARROW;
        tiles[tile].link = 0;
        wide[tile] = is_wide;
        if (tile + 1 == tile_count)
            wide[tile_count] = 0;
    }
}

// Calls f(slot, entry) for the slots of a tile that has been filled; entry is −1 if the slot has
// none.
template <int TILE, class O, class J, class Function>
__device__ void for_each_slot(Rows<O, J> a, const Tile *tiles, const uint32_t *voids, Function f) {
    __shared__ Slots<TILE> slots;
    const int64_t tile = blockIdx.x;
    if (threadIdx.x < Slots<TILE>::WORDS) {
        slots.voids[threadIdx.x] =
            voids != nullptr ? voids[tile * Slots<TILE>::WORDS + threadIdx.x] : 0;
    }
    const int64_t row = tiles[tile].row & ~Tile::JOINS;
    slots.prepare(a.offsets, a.base, a.starts, a.slots, row, tile * TILE);
    for (int slot = threadIdx.x; slot < TILE; slot += THREADS)
        f(slot, slots.has_entry(slot) ? slots.entry_of(slot) : -1);
}

template <int TILE, class O, class J>
__device__ void fill_highs(Rows<O, J> a, const Tile *tiles, const uint32_t *voids,
                           uint16_t *highs) {
    const Tile tile = tiles[blockIdx.x];
    if (tile.high == Tile::NARROW)
        return;
    highs += int64_t(tile.high) * TILE;
    for_each_slot<TILE>(a, tiles, voids, [&](int slot, int64_t entry) {
        highs[slot] = entry < 0 ? 0 : uint16_t((a.column(entry) - tile.base) >> 16);
    });
}

// positions[slot] = position of its value in the user's array, or all ones. `from` holds the
// positions of entries, or is NULL if these are in the array's order.
template <int TILE, class O, class Position>
__device__ void fill_positions(Rows<O, int32_t> a, const Tile *tiles, const uint32_t *voids,
                               const uint64_t *from, Position *positions) {
    positions += int64_t(blockIdx.x) * TILE;
    for_each_slot<TILE>(a, tiles, voids, [&](int slot, int64_t entry) {
        positions[slot] = entry < 0 ? Position(~Position(0))
                                    : Position(from != nullptr ? from[entry] : uint64_t(entry));
    });
}

// Range of the blocks that sum a row with the slots from start to end.
struct Extent {
    int64_t first, last;

    __device__ Extent(int64_t start, int64_t end, int tile) {
        const int64_t block = int64_t(tile) * WARPS;
        first = start / block;
        last = (end - 1) / block;
        if (last > first && end - last * block <= overhang(tile))
            --last;
    }
    __device__ bool is_split() const { return first < last; }
};

// Row that continues beyond the end of block b, or −1.
__device__ inline int64_t open_row(const Tile *tiles, int64_t tile_count, int64_t b) {
    const int64_t next = (b + 1) * WARPS;
    if (next >= tile_count || (tiles[next].row & Tile::JOINS) == 0)
        return -1;
    return tiles[next].row & ~Tile::JOINS;
}

// out[b] = 1 + (number of partial sums << 32) if a split row starts in block b, otherwise 0; one 0
// behind them.
__device__ void count_splits(const Tile *tiles, int64_t tile_count, const int64_t *starts, int tile,
                             int64_t *out) {
    const int64_t blocks = (tile_count + WARPS - 1) / WARPS;
    for (int64_t b = first_item(); b <= blocks; b += grid_stride()) {
        const int64_t row = b < blocks ? open_row(tiles, tile_count, b) : -1;
        out[b] = 0;
        if (row >= 0) {
            const Extent extent(starts[row], starts[row + 1], tile);
            if (extent.is_split() && extent.first == b)
                out[b] = 1 + ((extent.last - extent.first + 1) << 32);
        }
    }
}

// Numbers the tiles with high halves of columns, and the split rows. `wide` and `counts` are
// exclusive sums of the results of fill and count_splits.
__device__ void link(Tile *tiles, int64_t tile_count, const int64_t *starts, int tile,
                     const int64_t *wide, const int64_t *counts, int all_high, Split *splits) {
    const auto number = [&](const Extent &extent) { return uint32_t(counts[extent.first]) + 1; };
    for (int64_t t = first_item(); t < tile_count; t += grid_stride()) {
        if (all_high || tiles[t].high != Tile::NARROW)
            tiles[t].high = uint32_t(all_high ? t : wide[t]);
        const int64_t b = t / WARPS;
        if (t % WARPS == 0 && (tiles[t].row & Tile::JOINS) != 0) {
            const int64_t row = tiles[t].row & ~Tile::JOINS;
            const Extent extent(starts[row], starts[row + 1], tile);
            tiles[t].link = b > extent.last ? Tile::TAKEN : number(extent);
        }
        const int64_t row = t % WARPS == WARPS - 1 ? open_row(tiles, tile_count, b) : -1;
        if (row < 0)
            continue;
        const Extent extent(starts[row], starts[row + 1], tile);
        if (b == extent.last) {
            const int64_t rest = starts[row + 1] - (b + 1) * WARPS * tile;
            tiles[t].link = Tile::OVER | uint32_t(rest);
        } else if (b == extent.first) {
            tiles[t].link = number(extent);
            splits[number(extent) - 1] = {uint32_t(row), uint32_t(b), uint32_t(counts[b] >> 32),
                                          uint32_t(extent.last - extent.first + 1)};
        }
    }
}

} // namespace tarsia::stream

using namespace tarsia::stream;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

#define GLOBAL extern "C" __global__ void

#define KERNEL_row_slots(name, O)                                                                  \
    GLOBAL name(const int##O##_t *offsets, int64_t rows, int64_t *out) {                           \
        row_slots(offsets, rows, out);                                                             \
    }
KERNELS(row_slots, (), (stream_row_slots_32, 32), (stream_row_slots_64, 64))

GLOBAL stream_tile_rows(const int64_t *starts, int64_t rows, int64_t tile_slots, Tile *tiles) {
    tile_rows(starts, rows, tile_slots, tiles);
}

// Grid: one block of THREADS threads per tile; for stream_fill_…, one per GROUP of tiles.
#define KERNEL_fill(name, O, J, bits)                                                              \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                const int64_t *starts, int64_t slots, const BITS_##bits *values,                   \
                int64_t tile_count, Tile *tiles, u32 *ends, u32 *voids, u16 *lows,                 \
                BITS_##bits *out, int64_t *wide) {                                                 \
        fill<tile_slots(sizeof(BITS_##bits))>(                                                     \
            Rows<int##O##_t, int##J##_t>{offsets, indices, base, rows, starts, slots}, values,     \
            tile_count, tiles, ends, voids, lows, out, wide);                                      \
    }
KERNELS(fill, (), (stream_fill_32_32_16, 32, 32, 16), (stream_fill_32_32_32, 32, 32, 32),
        (stream_fill_32_32_64, 32, 32, 64), (stream_fill_32_32_32x2, 32, 32, 32x2),
        (stream_fill_32_32_64x2, 32, 32, 64x2), (stream_fill_64_32_16, 64, 32, 16),
        (stream_fill_64_32_32, 64, 32, 32), (stream_fill_64_32_64, 64, 32, 64),
        (stream_fill_64_32_32x2, 64, 32, 32x2), (stream_fill_64_32_64x2, 64, 32, 64x2),
        (stream_fill_64_64_16, 64, 64, 16), (stream_fill_64_64_32, 64, 64, 32),
        (stream_fill_64_64_64, 64, 64, 64), (stream_fill_64_64_32x2, 64, 64, 32x2),
        (stream_fill_64_64_64x2, 64, 64, 64x2))
#define KERNEL_highs(name, O, J, tile)                                                             \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                const int64_t *starts, int64_t slots, const Tile *tiles, const u32 *voids,         \
                u16 *highs) {                                                                      \
        fill_highs<tile>(                                                                          \
            Rows<int##O##_t, int##J##_t>{offsets, indices, base, rows, starts, slots}, tiles,      \
            voids, highs);                                                                         \
    }
KERNELS(highs, (), (stream_highs_32_32_512, 32, 32, 512), (stream_highs_32_32_256, 32, 32, 256),
        (stream_highs_64_32_512, 64, 32, 512), (stream_highs_64_32_256, 64, 32, 256),
        (stream_highs_64_64_512, 64, 64, 512), (stream_highs_64_64_256, 64, 64, 256))
#define KERNEL_positions(name, O, tile, P)                                                         \
    GLOBAL name(const int##O##_t *offsets, int64_t base, int64_t rows, const int64_t *starts,      \
                int64_t slots, const Tile *tiles, const u32 *voids, const u64 *from,               \
                uint##P##_t *positions) {                                                          \
        fill_positions<tile>(                                                                      \
            Rows<int##O##_t, int32_t>{offsets, nullptr, base, rows, starts, slots}, tiles, voids,  \
            from, positions);                                                                      \
    }
KERNELS(positions, (), (stream_positions_32_512_u32, 32, 512, 32),
        (stream_positions_32_256_u32, 32, 256, 32), (stream_positions_64_512_u32, 64, 512, 32),
        (stream_positions_64_256_u32, 64, 256, 32), (stream_positions_64_512_u64, 64, 512, 64),
        (stream_positions_64_256_u64, 64, 256, 64))

GLOBAL stream_count_splits(const Tile *tiles, int64_t tile_count, const int64_t *starts,
                           int32_t tile, int64_t *out) {
    count_splits(tiles, tile_count, starts, tile, out);
}
GLOBAL stream_link(Tile *tiles, int64_t tile_count, const int64_t *starts, int32_t tile,
                   const int64_t *wide, const int64_t *counts, int32_t all_high, Split *splits) {
    link(tiles, tile_count, starts, tile, wide, counts, all_high, splits);
}
