// Builds the blocks of src/format/mask_block.rs, which describes the arrays and has a CPU
// implementation of the same rules.
//
// A warp walks over eight rows block by block. They form a slab of 8 rows, or two slabs of 4 rows
// whose blocks are the non-empty halves of the 8-row blocks. Four lanes hold a row's next four
// entries, which is as many as one block can take, since columns ascend. Where rows are long,
// several warps share eight rows, each in a range of columns.

#include "common/grid.cuh"
#include "format/bits.cuh"
#include "format/mask_block.cuh"
#include "format/pattern.cuh"
#include "ptx/warp.cuh"

namespace tarsia::convert {

using namespace mask_block;

constexpr int THREADS = 256;
constexpr int ROWS = 8, COLUMNS = 4;
constexpr int UNIT = 8;
// Number of entries of eight rows per warp, where several warps share them (log2): a walk takes 0.8
// µs per block.
constexpr int PIECE_LOG2 = 10;
// Column and block number where there is no entry: real columns are less than 2^31.
constexpr uint32_t NO_COLUMN = ~0u, NO_BLOCK = NO_COLUMN / COLUMNS;

// One piece, a range of columns, of a group of eight rows.
struct Piece {
    int64_t group;
    int64_t number, count;
};

// `starts` holds the number of pieces before each group of eight rows, or is NULL if each group is
// one piece.
__device__ __forceinline__ Piece piece_of(const int64_t *starts, int64_t groups, int64_t item) {
    if (!starts)
        return {item, 0, 1};
    const int64_t group = range_of(starts, groups, item);
    return {group, item - starts[group], starts[group + 1] - starts[group]};
}

// Block that a warp has taken from its walk.
struct Block {
    // First column / 4, and bit mask of the entries that exist.
    uint32_t number, mask;
    // True if this lane has an entry of the block; then the entry's position and its mask bit.
    bool mine;
    int64_t entry;
    uint32_t bit;
};

// Walk over a piece of eight rows, with its current position.
template <class O, class J> struct Walk {
    Pattern<O, J> pattern;
    // Next entry of the lane's row, and end of the row in this piece.
    int64_t next, end;
    // Entries of the row that belong to earlier pieces.
    int64_t skipped;
    // Column of the lane's entry, which is one of the row's next four.
    uint32_t column;

    __device__ __forceinline__ Walk(const Pattern<O, J> &pattern, const Piece &piece)
        : pattern(pattern), skipped(0) {
        const int64_t row = piece.group * ROWS + threadIdx.x % WARP / COLUMNS;
        next = pattern.start(row);
        end = row < pattern.rows ? pattern.start(row + 1) : next;
        if (piece.count > 1)
            cut(piece);
        read();
    }

    // Restricts the walk to one piece. The longest row's entries are divided evenly; the other rows
    // are cut at the same columns.
    __device__ void cut(const Piece &piece) {
        const int64_t length = end - next, longest = warp_max(length);
        const int lane = __ffs(__ballot_sync(ALL_LANES, length == longest)) - 1;
        const int64_t start = __shfl_sync(ALL_LANES, next, lane);
        // This does not overflow as long as the entries fit 500 GB.
        const auto bound = [&](int64_t number) {
            return pattern.column(start + longest * number / piece.count) / COLUMNS * COLUMNS;
        };
        const int64_t first = next, last = end;
        if (piece.number > 0)
            next = pattern.find(first, last, bound(piece.number));
        if (piece.number + 1 < piece.count)
            end = pattern.find(first, last, bound(piece.number + 1));
        skipped = next - first;
    }

    __device__ __forceinline__ void read() {
        const int64_t entry = next + threadIdx.x % COLUMNS;
        column = entry < end ? pattern.column(entry) : NO_COLUMN;
    }

    // Takes the next block, if there is one, and returns whether there was. All lanes call it.
    __device__ __forceinline__ bool load_block(Block &out) {
        const int rank = threadIdx.x % COLUMNS, first_lane = threadIdx.x % WARP - rank;
        const uint32_t number = column / COLUMNS;
        // The block is the least one of the rows' next entries, so each row starts at its first
        // lane.
        out.number = __reduce_min_sync(ALL_LANES, rank == 0 ? number : NO_BLOCK);
        if (out.number == NO_BLOCK)
            return false;
        const uint32_t before = __shfl_up_sync(ALL_LANES, column, 1);
        const bool fits = number == out.number && (rank == 0 || column > before);
        // Bits of the row's lanes; the lanes of the run of ones at the low end are taken.
        const uint32_t row_fits = __ballot_sync(ALL_LANES, fits) >> first_lane & 0xf;
        const int count = __ffs(~row_fits) - 1;
        out.mine = rank < count;
        out.entry = next + rank;
        out.bit = 1u << (first_lane + column % COLUMNS);
        out.mask = __reduce_or_sync(ALL_LANES, out.mine ? out.bit : 0);
        if (count > 0) {
            next += count;
            read();
        }
        return true;
    }
};

// These return whether the low or the high half (four rows) of a block has an entry.
__device__ __forceinline__ bool has_low(uint32_t mask) { return mask & 0xffff; }
__device__ __forceinline__ bool has_high(uint32_t mask) { return mask >> 16; }

// Counts the pieces of each group of eight rows; one thread per group.
template <class O, class J>
__device__ void count_pieces(Pattern<O, J> pattern, int64_t groups, int64_t *counts) {
    const int64_t group = first_item();
    if (group >= groups)
        return;
    const int64_t entries = pattern.start((group + 1) * ROWS) - pattern.start(group * ROWS);
    counts[group] = max(int64_t(1), (entries + (1 << PIECE_LOG2) - 1) >> PIECE_LOG2);
}

// Counts the 8 × 4 blocks of each piece, and the 4 × 4 blocks; in `fours` the pieces of the first
// four of eight rows come before those of the other four. `longest` becomes the maximum of each
// count. One warp per piece.
template <class O, class J>
__device__ void count_blocks(Pattern<O, J> pattern, const int64_t *pieces, int64_t groups,
                             int64_t items, int64_t *eights, int64_t *fours,
                             unsigned long long *longest) {
    const int64_t item = first_item() / WARP;
    if (item >= items)
        return;
    const Piece piece = piece_of(pieces, groups, item);
    Walk<O, J> walk(pattern, piece);
    int64_t count = 0, low = 0, high = 0;
    for (Block block; walk.load_block(block);) {
        ++count;
        low += has_low(block.mask);
        high += has_high(block.mask);
    }
    if (threadIdx.x % WARP != 0)
        return;
    int64_t *own_fours = fours + 2 * (item - piece.number) + piece.number;
    eights[item] = count;
    own_fours[0] = low;
    own_fours[piece.count] = high;
    // Reads first, since nearly always another warp has stored at least as much already.
    const unsigned long long most[] = {static_cast<unsigned long long>(count),
                                       static_cast<unsigned long long>(max(low, high))};
    for (int size = 0; size < 2; ++size) {
        if (const_cast<volatile unsigned long long *>(longest)[size] < most[size])
            atomicMax(longest + size, most[size]);
    }
}

// Rules by which slabs are divided into shares or parts.
struct Rules {
    int shares_log2, limit_log2;
};
// Number of parts of a slab (0 if it has shares), and blocks of each part or share but the last.
struct Division {
    uint32_t parts, size;
};
__device__ __forceinline__ Division division_of(uint32_t blocks, const Rules &rules) {
    // Rounds up without an addition to `a`, which could overflow.
    const auto ceil = [](uint32_t a, uint32_t b) { return a == 0 ? 0 : (a - 1) / b + 1; };
    const bool is_split = blocks > uint64_t(1) << (rules.limit_log2 + rules.shares_log2);
    const uint32_t parts = is_split ? ceil(blocks, 1u << rules.limit_log2) : 0;
    const uint32_t size = ceil(blocks, is_split ? parts : 1u << rules.shares_log2);
    return {parts, (size + UNIT - 1) / UNIT * UNIT};
}

// Positions of the blocks of each slab. `fours`: slabs have 4 rows.
struct Slabs {
    const int64_t *pieces, *starts;
    bool fours;

    // Index in `starts` of a slab's first piece.
    __device__ __forceinline__ int64_t first_piece(int64_t slab) const {
        if (!pieces)
            return slab;
        if (!fours)
            return pieces[slab];
        return pieces[slab / 2] + pieces[(slab + 1) / 2];
    }
    __device__ __forceinline__ uint32_t first_block(int64_t slab) const {
        return uint32_t(starts[first_piece(slab)]);
    }
    __device__ __forceinline__ uint32_t count(int64_t slab) const {
        return uint32_t(starts[first_piece(slab + 1)]) - first_block(slab);
    }
};

// Arrays of the layout that fill_blocks writes.
struct Out {
    BlockHead *heads;
    PartHead *parts;
    uint16_t *masks;
    uint32_t *columns;
};

// Walks again and writes masks, values, columns (as 32-bit numbers), heads (which are zero before)
// without their base and number of values, and the position in the user's array of each value.
// `positions` is NULL if that is not wanted; `from` is NULL if values are in the order of entries.
// `parts` and `cuts` hold the parts and cut slabs before each slab, or are NULL if no slab is cut.
// One warp per piece; where slabs have 4 rows, each half of the warp fills one.
template <class Value, class O, class J, class Position>
__device__ void fill_blocks(Pattern<O, J> pattern, const Value *values, int64_t groups,
                            int64_t items, const Slabs &slabs, const Rules &rules,
                            const int64_t *parts, const int64_t *cuts, const Out &out,
                            Value *out_values, const uint64_t *from, Position *positions) {
    const int64_t item = first_item() / WARP;
    if (item >= items)
        return;
    const Piece piece = piece_of(slabs.pieces, groups, item);
    Walk<O, J> walk(pattern, piece);
    const int lane = threadIdx.x % WARP;
    // The lane's slab: its rows and lanes, the lane's number in it, and the mask bits that it owns.
    const int rows = slabs.fours ? ROWS / 2 : ROWS, lanes = rows * COLUMNS;
    const int rank = lane % lanes, shift = lane - rank;
    const uint32_t own_bits = (slabs.fours ? 0xffffu : ~0u) << shift;
    const int64_t slab = piece.group * (ROWS / rows) + shift / lanes;
    const int64_t slab_count = (pattern.rows + rows - 1) / rows;
    const bool exists = slab < slab_count;
    const uint32_t first_block = exists ? slabs.first_block(slab) : 0;
    const uint32_t count = exists ? slabs.count(slab) : 0;
    const Division division = division_of(count, rules);
    const uint32_t first_part = division.parts ? uint32_t(parts[slab]) : 0;
    BlockHead *own_heads =
        out.heads + (division.parts ? (slab_count << rules.shares_log2) + first_part
                                    : slab << rules.shares_log2);
    // Values are stored slab by slab: a piece's values follow those of the slab's earlier pieces.
    int64_t at = lane % COLUMNS == 0 ? walk.skipped : 0;
    at = reduce_lanes(at, lanes, [](int64_t a, int64_t b) { return a + b; });
    at += pattern.start(slab * rows);
    uint32_t inside = 0;
    if (exists && piece.number == 0 && division.parts > 0) {
        if (rank < 1 << rules.shares_log2)
            out.heads[(slab << rules.shares_log2) + rank].flags = CUT;
        for (uint32_t part = rank; part < division.parts; part += lanes)
            out.parts[first_part + part] = {uint32_t(slab), first_part, division.parts,
                                            uint32_t(cuts[slab])};
    } else if (exists && piece.number > 0) {
        inside = uint32_t(slabs.starts[slabs.first_piece(slab) + piece.number]) - first_block;
    }
    // Next share or part to begin, and its first block.
    uint32_t next = 0, next_block = 0;
    if (inside > 0 && division.size > 0) {
        next = (inside - 1) / division.size + 1;
        next_block = next * division.size;
    }
    for (Block block; walk.load_block(block);) {
        const uint32_t own = block.mask & own_bits;
        if (own == 0)
            continue;
        if (block.mine) {
            const int64_t to = at + __popc(own & (block.bit - 1));
            out_values[to] = values[block.entry];
            if (positions)
                positions[to] = Position(from ? from[block.entry] : uint64_t(block.entry));
        }
        if (rank == 0) {
            if (inside == next_block) {
                own_heads[next] = {uint64_t(at),
                                   first_block + inside,
                                   0,
                                   min(division.size, count - inside),
                                   0,
                                   0,
                                   0};
            }
            const int64_t to = first_block + inside;
            if (slabs.fours) {
                out.masks[to] = uint16_t(own >> shift);
            } else {
                reinterpret_cast<uint32_t *>(out.masks)[to] = own;
            }
            out.columns[to] = block.number;
        }
        if (inside == next_block) {
            next_block += division.size;
            ++next;
        }
        ++inside;
        at += __popc(own);
    }
}

// Computes the base and the width of the columns of each head; counts[h] is the number of its
// 32-bit columns. One thread per head.
__device__ void measure_columns(int64_t count, const uint32_t *columns, BlockHead *heads,
                                int64_t *counts) {
    const int64_t number = first_item();
    if (number >= count)
        return;
    const BlockHead head = heads[number];
    if (head.count == 0)
        return;
    const uint32_t low = columns[head.block], high = columns[head.block + head.count - 1];
    const bool is_wide = high - low > 0xffff;
    heads[number].base = low;
    heads[number].flags = is_wide ? WIDE : 0;
    counts[number] = is_wide ? head.count : 0;
}

// Writes the columns of each head and its number of values; starts[h] is the position of its 32-bit
// columns. One warp per head.
__device__ void write_columns(int64_t count, const uint32_t *columns, const uint16_t *masks,
                              bool fours, const int64_t *starts, BlockHead *heads, uint16_t *narrow,
                              uint32_t *wide) {
    const int64_t number = first_item() / WARP;
    if (number >= count)
        return;
    const int lane = threadIdx.x % WARP;
    const BlockHead head = heads[number];
    if (head.count == 0)
        return;
    const int64_t start = starts[number];
    uint32_t values = 0;
    for (uint32_t i = lane; i < head.count; i += WARP) {
        const int64_t block = int64_t(head.block) + i;
        values += __popc(fours ? masks[block] : reinterpret_cast<const uint32_t *>(masks)[block]);
        const uint32_t column = columns[block];
        if (head.flags & WIDE) {
            wide[start + i] = column;
            narrow[block] = 0;
        } else {
            narrow[block] = uint16_t(column - head.base);
        }
    }
    values = __reduce_add_sync(ALL_LANES, values);
    if (lane != 0)
        return;
    heads[number].values = values;
    if (head.flags & WIDE)
        heads[number].base = uint32_t(start);
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void __launch_bounds__(convert::THREADS)

// Grids: ceil(pieces · WARP / THREADS) blocks; this kernel has one thread per group of eight rows.
#define KERNEL_pieces(name, O, J)                                                                  \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int64_t groups, int64_t *counts) {                                                 \
        count_pieces(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows}, groups,        \
                     counts);                                                                      \
    }
KERNELS(pieces, (), (mask_block_pieces_32_32, 32, 32), (mask_block_pieces_64_32, 64, 32),
        (mask_block_pieces_64_64, 64, 64))

#define KERNEL_count(name, O, J)                                                                   \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                const int64_t *pieces, int64_t groups, int64_t items, int64_t *eights,             \
                int64_t *fours, unsigned long long *longest) {                                     \
        count_blocks(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows}, pieces,        \
                     groups, items, eights, fours, longest);                                       \
    }
KERNELS(count, (), (mask_block_count_32_32, 32, 32), (mask_block_count_64_32, 64, 32),
        (mask_block_count_64_64, 64, 64))

#define KERNEL_fill(name, bits, O, J, P)                                                           \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, const BITS_##bits *values,   \
                int64_t base, int64_t rows, const int64_t *pieces, int64_t groups, int64_t items,  \
                const int64_t *starts, int32_t fours, int32_t shares_log2, int32_t limit_log2,     \
                const int64_t *parts, const int64_t *cuts, BlockHead *heads, PartHead *part_heads, \
                uint16_t *masks, uint32_t *columns, BITS_##bits *out_values, const uint64_t *from, \
                uint##P##_t *positions) {                                                          \
        fill_blocks(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows}, values, groups, \
                    items, Slabs{pieces, starts, fours != 0}, Rules{shares_log2, limit_log2},      \
                    parts, cuts, Out{heads, part_heads, masks, columns}, out_values, from,         \
                    positions);                                                                    \
    }
KERNELS(fill, (16), (mask_block_fill_16_32_32_u32, 32, 32, 32),
        (mask_block_fill_16_64_32_u32, 64, 32, 32), (mask_block_fill_16_64_32_u64, 64, 32, 64),
        (mask_block_fill_16_64_64_u32, 64, 64, 32), (mask_block_fill_16_64_64_u64, 64, 64, 64))
KERNELS(fill, (32), (mask_block_fill_32_32_32_u32, 32, 32, 32),
        (mask_block_fill_32_64_32_u32, 64, 32, 32), (mask_block_fill_32_64_32_u64, 64, 32, 64),
        (mask_block_fill_32_64_64_u32, 64, 64, 32), (mask_block_fill_32_64_64_u64, 64, 64, 64))
KERNELS(fill, (64), (mask_block_fill_64_32_32_u32, 32, 32, 32),
        (mask_block_fill_64_64_32_u32, 64, 32, 32), (mask_block_fill_64_64_32_u64, 64, 32, 64),
        (mask_block_fill_64_64_64_u32, 64, 64, 32), (mask_block_fill_64_64_64_u64, 64, 64, 64))
KERNELS(fill, (32x2), (mask_block_fill_32x2_32_32_u32, 32, 32, 32),
        (mask_block_fill_32x2_64_32_u32, 64, 32, 32), (mask_block_fill_32x2_64_32_u64, 64, 32, 64),
        (mask_block_fill_32x2_64_64_u32, 64, 64, 32), (mask_block_fill_32x2_64_64_u64, 64, 64, 64))
KERNELS(fill, (64x2), (mask_block_fill_64x2_32_32_u32, 32, 32, 32),
        (mask_block_fill_64x2_64_32_u32, 64, 32, 32), (mask_block_fill_64x2_64_32_u64, 64, 32, 64),
        (mask_block_fill_64x2_64_64_u32, 64, 64, 32), (mask_block_fill_64x2_64_64_u64, 64, 64, 64))

// Computes the number of parts of each slab, and whether it is cut; one thread per slab.
GLOBAL mask_block_parts(const int64_t *pieces, const int64_t *starts, int32_t fours,
                        int64_t slab_count, int32_t shares_log2, int32_t limit_log2, int64_t *parts,
                        int64_t *cuts) {
    const int64_t slab = first_item();
    if (slab >= slab_count)
        return;
    const Slabs slabs = {pieces, starts, fours != 0};
    const Division division = division_of(slabs.count(slab), Rules{shares_log2, limit_log2});
    parts[slab] = division.parts;
    cuts[slab] = division.parts > 0;
}

// One thread per head.
GLOBAL mask_block_measure(int64_t count, const uint32_t *columns, BlockHead *heads,
                          int64_t *counts) {
    measure_columns(count, columns, heads, counts);
}

GLOBAL mask_block_columns(int64_t count, const uint32_t *columns, const uint16_t *masks,
                          int32_t fours, const int64_t *starts, BlockHead *heads, uint16_t *narrow,
                          uint32_t *wide) {
    write_columns(count, columns, masks, fours != 0, starts, heads, narrow, wide);
}
