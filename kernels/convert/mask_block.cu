// Makes the blocks of src/layout/mask_block.rs, which describes the arrays and has
// the same rules as a program for the CPU.
//
// A warp walks over a slab block by block. Four lanes have a row's next four
// entries: what a block can take of it, since its columns ascend.

#include "convert/bits.cuh"

namespace tarsia::convert {

constexpr int WARP = 32;
constexpr int THREADS = 256;
constexpr int ROWS = 8, COLUMNS = 4;
constexpr int UNIT = 8;
// The number of the columns of no block: columns are less than 2^31.
constexpr uint32_t NO_COLUMN = ~0u, NO_BLOCK = NO_COLUMN / COLUMNS;

// As src/layout/mask_block.rs has them.
struct alignas(16) BlockHead {
    uint32_t first, block, base;
    uint16_t count;
    uint8_t high, flags;
};
constexpr int WIDE = 1, CUT = 2;
struct alignas(16) PartHead {
    uint32_t slab, first, count, counter;
};

__device__ __forceinline__ int64_t first_item() {
    return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Rows of op(A).
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows;

    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(offsets[min(row, rows)]) - base;
    }
};

// What a warp has taken for a block.
struct Block {
    // First column / 4, and which entries exist.
    uint32_t number, mask;
    // Whether this lane has an entry of it: where, and its bit.
    bool mine;
    int64_t entry;
    uint32_t bit;
};

// A slab, and how far it has been walked.
template <class O, class J> struct Walk {
    const J *indices;
    int64_t base;
    // The next entry of the lane's row, and what follows the last one.
    int64_t next, end;
    // Column of the lane's entry, which is one of the row's next four.
    uint32_t column;

    __device__ __forceinline__ Walk(const Pattern<O, J> &pattern, int64_t slab)
        : indices(pattern.indices), base(pattern.base) {
        const int64_t row = slab * ROWS + threadIdx.x % WARP / COLUMNS;
        next = pattern.start(row);
        end = row < pattern.rows ? pattern.start(row + 1) : next;
        read();
    }

    __device__ __forceinline__ void read() {
        const int64_t entry = next + threadIdx.x % COLUMNS;
        column = entry < end ? uint32_t(int64_t(indices[entry]) - base) : NO_COLUMN;
    }

    // Takes the next block, if there is one. All lanes call it.
    __device__ __forceinline__ bool take(Block &out) {
        const int rank = threadIdx.x % COLUMNS, first_lane = threadIdx.x % WARP - rank;
        const uint32_t number = column / COLUMNS;
        // Only the rows' next entries count, so that each block takes one.
        out.number = __reduce_min_sync(~0u, rank == 0 ? number : NO_BLOCK);
        if (out.number == NO_BLOCK)
            return false;
        const uint32_t before = __shfl_up_sync(~0u, column, 1);
        const bool fits = number == out.number && (rank == 0 || column > before);
        // Bits of the row's lanes: the run of ones at the low end is taken.
        const uint32_t row_fits = __ballot_sync(~0u, fits) >> first_lane & 0xf;
        const int count = __ffs(~row_fits) - 1;
        out.mine = rank < count;
        out.entry = next + rank;
        out.bit = 1u << (first_lane + column % COLUMNS);
        out.mask = __reduce_or_sync(~0u, out.mine ? out.bit : 0);
        if (count > 0) {
            next += count;
            read();
        }
        return true;
    }
};

// counts[s]: blocks of slab s; `longest` becomes the most of one. A warp a slab.
template <class O, class J>
__device__ void count_blocks(Pattern<O, J> pattern, int64_t slabs, int64_t *counts,
                             unsigned long long *longest) {
    const int64_t slab = first_item() / WARP;
    if (slab >= slabs)
        return;
    Walk<O, J> walk(pattern, slab);
    int64_t count = 0;
    for (Block block; walk.take(block);)
        ++count;
    if (threadIdx.x % WARP == 0) {
        counts[slab] = count;
        // Nearly always somebody else has as many already.
        if (*const_cast<volatile unsigned long long *>(longest) < count)
            atomicMax(longest, static_cast<unsigned long long>(count));
    }
}

// totals: blocks and entries of the slabs 0, stride, 2 · stride, …, of each at
// most the first `most` blocks. A warp a slab.
template <class O, class J>
__device__ void sample_blocks(Pattern<O, J> pattern, int64_t samples, int64_t stride, int64_t most,
                              unsigned long long *totals) {
    const int64_t sample = first_item() / WARP;
    if (sample >= samples)
        return;
    Walk<O, J> walk(pattern, sample * stride);
    unsigned long long blocks = 0, entries = 0;
    for (Block block; blocks < most && walk.take(block);) {
        ++blocks;
        entries += __popc(block.mask);
    }
    if (threadIdx.x % WARP == 0) {
        atomicAdd(totals, blocks);
        atomicAdd(totals + 1, entries);
    }
}

// Parts of a slab, 0 where it is not cut, and blocks of each but the last.
struct Cut {
    uint32_t parts, size;
};
__device__ __forceinline__ Cut cut_of(uint32_t blocks, int limit_log2) {
    if (blocks <= 1u << limit_log2)
        return {0, blocks};
    // Not rounded up by an addition, which could overflow.
    const uint32_t parts = ((blocks - 1) >> limit_log2) + 1;
    const uint32_t size = (blocks - 1) / parts + 1;
    return {parts, (size + UNIT - 1) / UNIT * UNIT};
}

// A walk again: masks, values, columns as numbers of 32 bits, heads but for their
// columns, and where in the user's array each value comes from (`positions` NULL:
// not wanted; `from` NULL: from the entry's own place). `parts` and `cuts` have
// what comes before each slab, or are NULL where none is cut. A warp a slab.
template <class V, class O, class J, class P>
__device__ void fill_blocks(Pattern<O, J> pattern, const V *values, int64_t slabs, int limit_log2,
                            const int64_t *starts, const int64_t *parts, const int64_t *cuts,
                            BlockHead *heads, PartHead *part_heads, uint32_t *masks,
                            uint32_t *columns, V *out_values, const uint64_t *from, P *positions) {
    const int64_t slab = first_item() / WARP;
    if (slab >= slabs)
        return;
    const int lane = threadIdx.x % WARP;
    const uint32_t first_block = uint32_t(starts[slab]);
    const uint32_t count = uint32_t(starts[slab + 1]) - first_block;
    const Cut cut = cut_of(count, limit_log2);
    const auto head_of = [&](int64_t value, uint32_t inside, uint32_t blocks) {
        return BlockHead{uint32_t(value),  first_block + inside, 0,
                         uint16_t(blocks), uint8_t(value >> 32), 0};
    };
    // Values lie as the slabs do.
    int64_t at = pattern.start(slab * ROWS);
    if (lane == 0) {
        heads[slab] = cut.parts ? BlockHead{0, 0, 0, 0, 0, CUT} : head_of(at, 0, count);
    }
    const uint32_t first_part = cut.parts ? uint32_t(parts[slab]) : 0;
    for (uint32_t part = lane; part < cut.parts; part += WARP)
        part_heads[first_part + part] = {uint32_t(slab), first_part, cut.parts,
                                         uint32_t(cuts[slab])};

    Walk<O, J> walk(pattern, slab);
    uint32_t part = 0, next_part = 0;
    Block block;
    for (uint32_t inside = 0; walk.take(block); ++inside) {
        if (block.mine) {
            const int64_t to = at + __popc(block.mask & (block.bit - 1));
            out_values[to] = values[block.entry];
            if (positions)
                positions[to] = P(from ? from[block.entry] : uint64_t(block.entry));
        }
        if (lane == 0) {
            if (cut.parts && inside == next_part) {
                heads[slabs + first_part + part] =
                    head_of(at, inside, min(cut.size, count - inside));
            }
            masks[first_block + inside] = block.mask;
            columns[first_block + inside] = block.number;
        }
        if (inside == next_part) {
            next_part += cut.size;
            ++part;
        }
        at += __popc(block.mask);
    }
}

// What the columns of each head count from and their width; counts[h]: those of
// 32 bits.
__device__ void measure_columns(int64_t count, const uint32_t *columns, BlockHead *heads,
                                int64_t *counts) {
    const int64_t number = first_item();
    if (number >= count)
        return;
    BlockHead head = heads[number];
    if (head.count == 0)
        return;
    const uint32_t low = columns[head.block], high = columns[head.block + head.count - 1];
    const bool is_wide = high - low > 0xffff;
    heads[number].base = low;
    heads[number].flags = is_wide ? WIDE : 0;
    counts[number] = is_wide ? head.count : 0;
}

// The columns of each head; starts[h]: where those of 32 bits begin. A warp a head.
__device__ void write_columns(int64_t count, const uint32_t *columns, const int64_t *starts,
                              BlockHead *heads, uint16_t *narrow, uint32_t *wide) {
    const int64_t number = first_item() / WARP;
    if (number >= count)
        return;
    const int lane = threadIdx.x % WARP;
    const BlockHead head = heads[number];
    const int64_t start = starts[number];
    for (int i = lane; i < head.count; i += WARP) {
        const uint32_t column = columns[head.block + i];
        if (head.flags & WIDE) {
            wide[start + i] = column;
            narrow[head.block + i] = 0;
        } else {
            narrow[head.block + i] = uint16_t(column - head.base);
        }
    }
    __syncwarp();
    if (lane == 0 && head.flags & WIDE)
        heads[number].base = uint32_t(start);
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

#define KERNEL extern "C" __global__ void __launch_bounds__(convert::THREADS)

// Grid: ceil(slabs · WARP / THREADS), or samples, or heads for slabs.
#define COUNT(name, O, J)                                                                          \
    KERNEL mask_block_count_##name(const O *offsets, const J *indices, int64_t base, int64_t rows, \
                                   int64_t slabs, int64_t *counts, unsigned long long *longest) {  \
        count_blocks(Pattern<O, J>{offsets, indices, base, rows}, slabs, counts, longest);         \
    }                                                                                              \
    KERNEL mask_block_sample_##name(const O *offsets, const J *indices, int64_t base,              \
                                    int64_t rows, int64_t samples, int64_t stride, int64_t most,   \
                                    unsigned long long *totals) {                                  \
        sample_blocks(Pattern<O, J>{offsets, indices, base, rows}, samples, stride, most, totals); \
    }
#define FILL(bits, V, name, O, J, position, P)                                                     \
    KERNEL mask_block_fill_##bits##_##name##_##position(                                           \
        const O *offsets, const J *indices, const V *values, int64_t base, int64_t rows,           \
        int64_t slabs, int32_t limit_log2, const int64_t *starts, const int64_t *parts,            \
        const int64_t *cuts, BlockHead *heads, PartHead *part_heads, uint32_t *masks,              \
        uint32_t *columns, V *out_values, const uint64_t *from, P *positions) {                    \
        fill_blocks(Pattern<O, J>{offsets, indices, base, rows}, values, slabs, limit_log2,        \
                    starts, parts, cuts, heads, part_heads, masks, columns, out_values, from,      \
                    positions);                                                                    \
    }
#define BY_WIDTH(name, O, J)                                                                       \
    COUNT(name, O, J)                                                                              \
    TARSIA_FOR_EACH_BITS(FILL, name, O, J, u32, uint32_t)                                          \
    TARSIA_FOR_EACH_BITS(FILL, name, O, J, u64, uint64_t)
BY_WIDTH(32_32, int32_t, int32_t)
BY_WIDTH(64_32, int64_t, int32_t)
BY_WIDTH(64_64, int64_t, int64_t)

// Numbers of parts of each slab, and whether it has any; a thread a slab.
KERNEL mask_block_parts(const int64_t *starts, int64_t slabs, int32_t limit_log2, int64_t *parts,
                        int64_t *cuts) {
    const int64_t slab = first_item();
    if (slab >= slabs)
        return;
    const Cut cut = cut_of(uint32_t(starts[slab + 1] - starts[slab]), limit_log2);
    parts[slab] = cut.parts;
    cuts[slab] = cut.parts > 0;
}

// A thread a head.
KERNEL mask_block_measure(int64_t count, const uint32_t *columns, BlockHead *heads,
                          int64_t *counts) {
    measure_columns(count, columns, heads, counts);
}

KERNEL mask_block_columns(int64_t count, const uint32_t *columns, const int64_t *starts,
                          BlockHead *heads, uint16_t *narrow, uint32_t *wide) {
    write_columns(count, columns, starts, heads, narrow, wide);
}
