// Builds the windows of src/format/window.rs, which describes the arrays and has a CPU
// implementation of the same rules, and computes the statistics by which their height is chosen.
//
// A thread block takes one window: it ranks the window's columns (format/window_ranks.cuh) and,
// when scans over the windows have given the first block and tile of each, fills these.

#include "common/grid.cuh"
#include "common/kernels.cuh"
#include "format/window_fill.cuh"

namespace tarsia::convert {

using parts::Part;
using parts::WorkItem;

constexpr int BLOCK = 16;
constexpr int LANES = 32;
// Words of the statistics for each height; behind these is the number of entries in the sample.
constexpr int STATISTICS_STEP = 16, SAMPLED_NNZ = 4 * STATISTICS_STEP;
// Most entries of a sampled window of 64 rows; a longer one is left out, since it would outlast all
// others.
constexpr int64_t MOST_WINDOW_ENTRIES = 1 << 17;

// Returns which window of 64 rows sample k is. The matrix is cut into 2^samples_log2 equal parts,
// each with one sample; with samples_log2 < 0, sample k is window k.
__device__ int64_t window_of(int64_t k, int samples_log2, int64_t windows) {
    if (samples_log2 < 0)
        return k;
    const auto first = [&](int64_t k) { return k * windows >> samples_log2; };
    const uint64_t others = first(k + 1) - first(k), random = uint64_t(k) * 0x9E3779B97F4A7C15ull;
    return first(k) + int64_t((random >> 32) * others >> 32);
}

// Counts columns, blocks and tiles of one window in the 64 rows of sample blockIdx.x. blockIdx.y
// numbers the windows: one of 64 rows, two of 32, four of 16, eight of 8. Does nothing if `*sorted`
// is 0, where `sorted` is not NULL: the pattern may not be what this needs.
template <class O, class J>
__device__ void statistics(Pattern<O, J> a, int32_t samples_log2, int64_t windows, Shape shape,
                           const unsigned long long *sorted, unsigned long long *words) {
    extern __shared__ __align__(16) uint32_t room[];
    if (sorted != nullptr && *sorted == 0)
        return;
    const int64_t row = window_of(blockIdx.x, samples_log2, windows) * MOST_ROWS;
    const int64_t end = min(row + MOST_ROWS, a.rows);
    const int64_t entries = a.start(end) - a.start(row);
    const int halvings = 31 - __clz(int(blockIdx.y) + 1);
    shape.height = MOST_ROWS >> halvings;
    const int64_t at = row + int64_t(int(blockIdx.y) + 1 - (1 << halvings)) * shape.height;
    if (entries <= 0 || entries > MOST_WINDOW_ENTRIES || at >= end)
        return;
    const Found found = number<false>(a, at, shape, room, nullptr, nullptr, nullptr);
    if (threadIdx.x == 0) {
        // Words are stored by height, beginning with 8 rows.
        unsigned long long *const own = words + (3 - halvings) * STATISTICS_STEP;
        atomicAdd(own, static_cast<unsigned long long>(found.columns));
        atomicAdd(own + 1, static_cast<unsigned long long>(shape.blocks(found.columns)));
        atomicAdd(own + 2, static_cast<unsigned long long>(found.tiles));
        atomicAdd(own + 3, static_cast<unsigned long long>(found.of_16));
        atomicAdd(own + 4, static_cast<unsigned long long>(found.of_8));
        if (blockIdx.y == 0)
            atomicAdd(words + SAMPLED_NNZ, static_cast<unsigned long long>(entries));
    }
}

// Start of the block masks of a window whose first entry is `first`; the ranges of windows do not
// overlap.
__device__ __forceinline__ int64_t masks_at(int64_t first, int64_t window, int block_log2) {
    return (first >> block_log2) + window;
}

// Ranks the columns of all windows, one thread block per window. counts: number of blocks of each
// window, then 0, and if windows have masks their numbers of tiles, then 0.
template <class O, class J>
__device__ void rank_windows(Pattern<O, J> a, int64_t windows, Shape shape, uint32_t *ranks,
                             uint32_t *list, uint8_t *masks, uint32_t *distinct, int64_t *counts) {
    extern __shared__ __align__(16) uint32_t room[];
    const int64_t window = blockIdx.x, row = window * shape.height;
    if (shape.has_masks())
        masks += masks_at(a.start(row), window, shape.block_log2);
    const Found found = number<true>(a, row, shape, room, ranks, list, masks);
    if (threadIdx.x != 0)
        return;
    const bool is_last = window + 1 == windows;
    distinct[window] = found.columns;
    counts[window] = shape.blocks(found.columns);
    if (is_last)
        counts[windows] = 0;
    if (shape.has_masks()) {
        counts[windows + 1 + window] = found.tiles;
        if (is_last)
            counts[2 * windows + 1] = 0;
    }
}

// Number of parts of a window (0 if it is whole), and of blocks of each part but the last.
struct Division {
    int64_t parts, size;
};
// Rules by which windows are split into parts, from the layout's totals.
struct SplitRules {
    int64_t limit, long_from;

    __device__ SplitRules(int64_t blocks, int64_t windows, int64_t most, int64_t most_split)
        : limit((max(most, (blocks + most_split - 1) / most_split) + 1) / 2 * 2),
          long_from(max(4 * blocks / max(windows, int64_t(1)), int64_t(16))) {}

    __device__ Division division(int64_t blocks) const {
        if (blocks <= limit)
            return {0, blocks};
        const int64_t wanted = (blocks + limit - 1) / limit;
        const int64_t size = ((blocks + wanted - 1) / wanted + 1) / 2 * 2;
        return {(blocks + size - 1) / size, size};
    }
};

// Computes for each window its number of parts, whether it is split, and whether it is whole and
// long, in three consecutive arrays of windows + 1 numbers that end with a 0. Adds the numbers of
// distinct columns to `columns`, unless `distinct` is NULL.
__device__ void count_items(int64_t windows, const int64_t *starts, const uint32_t *distinct,
                            int64_t most, int64_t most_split, int64_t *counts,
                            unsigned long long *columns) {
    const int64_t window = first_item();
    const SplitRules rules(starts[windows], windows, most, most_split);
    unsigned long long own = 0;
    if (window <= windows) {
        Division division = {0, 0};
        if (window < windows) {
            division = rules.division(starts[window + 1] - starts[window]);
            own = distinct ? distinct[window] : 0;
        }
        counts[window] = division.parts;
        counts[windows + 1 + window] = division.parts > 0;
        counts[2 * (windows + 1) + window] = division.parts == 0 && division.size > rules.long_from;
    }
    own = warp_sum(own);
    if (threadIdx.x % 32 == 0 && own > 0)
        atomicAdd(columns, own);
}

// Writes the total numbers of blocks, tiles, parts and split windows.
__device__ void totals(int64_t windows, const int64_t *starts, bool has_masks,
                       const int64_t *before, unsigned long long *out) {
    const int64_t *const ends[] = {starts + windows, before + windows, before + 2 * windows + 1};
    out[0] = *ends[0];
    out[1] = has_masks ? starts[2 * windows + 1] - *ends[0] : *ends[0];
    out[2] = *ends[1];
    out[3] = *ends[2] - *ends[1];
}

// Writes the work items and parts from the exclusive sums of count_items' numbers, which run
// through all three arrays.
__device__ void write_items(int64_t windows, const int64_t *starts, int64_t most,
                            int64_t most_split, const int64_t *before, WorkItem *items,
                            Part *parts) {
    const int64_t window = first_item();
    if (window >= windows)
        return;
    const SplitRules rules(starts[windows], windows, most, most_split);
    const int64_t part_count = before[windows];
    const int64_t splits_before = before[windows + 1 + window] - part_count;
    const int64_t *const longs = before + 2 * (windows + 1);
    const int64_t long_before = longs[window] - longs[0], long_count = longs[windows] - longs[0];
    const int64_t first = starts[window], end = starts[window + 1];
    const Division division = rules.division(end - first);
    const uint32_t name = uint32_t(window);
    if (division.parts > 0) {
        const uint32_t own = uint32_t(before[window]);
        for (int64_t number = 0; number < division.parts; ++number) {
            const int64_t from = first + number * division.size;
            parts[own + number] = {name, own, uint32_t(division.parts), uint32_t(splits_before)};
            items[own + number] = {name, uint32_t(from), uint32_t(min(end, from + division.size)),
                                   uint32_t(own + number)};
        }
        return;
    }
    const bool is_long = end - first > rules.long_from;
    const int64_t at =
        part_count + (is_long ? long_before : long_count + window - splits_before - long_before);
    items[at] = {name, uint32_t(first), uint32_t(end), parts::WHOLE};
}

// Writes the words of a window's tiles, one per block: number of the block's first tile << 4 | mask
// of the groups of rows that have a tile. All threads of a block.
__device__ __forceinline__ void write_tiles(const Numbers &numbers, int64_t windows, int64_t window,
                                            int64_t first, uint32_t *tiles) {
    const int64_t block = numbers.starts[window], end = numbers.starts[window + 1];
    const int64_t *const starts = numbers.starts + windows + 1;
    uint32_t next = uint32_t(starts[window] - starts[0]);
    const uint8_t *const masks = numbers.masks + masks_at(first, window, 4);
    for (int64_t from = 0; from < end - block; from += blockDim.x) {
        const int64_t at = from + threadIdx.x;
        const uint32_t mask = at < end - block ? masks[at] : 0;
        uint32_t all;
        const uint32_t before = next + sum_before(uint32_t(__popc(mask)), all);
        next += all;
        if (at < end - block)
            tiles[block + at] = before << 4 | mask;
    }
    __syncthreads();
}

// Fills one window per thread block: columns of its blocks, words of its tiles (if height > 16),
// values, the bits of stored slots (`out` and `stored` are zero before), and the positions of the
// user's values. `slots` is NULL if these are not wanted; `from` is NULL if values are in the
// user's order.
template <class Value, class O, class J>
__device__ void fill(Pattern<O, J> a, const Value *values, int64_t windows, int height,
                     const Numbers &numbers, uint32_t *columns, uint32_t *tiles, Value *out,
                     uint32_t *stored, const uint64_t *from, uint64_t *slots) {
    __shared__ Starts starts;
    const int64_t window = blockIdx.x;
    const int64_t first = starts.load(a, window * height, height);
    __syncthreads();
    const uint32_t entries = starts.at[height];
    if (entries == 0)
        return;
    write_columns<BLOCK>(numbers, window, first, columns);
    if (height > 16)
        write_tiles(numbers, windows, window, first, tiles);
    const uint32_t block = uint32_t(numbers.starts[window]);
    const int lane_of_warp = threadIdx.x % 32;
    for (uint32_t base = threadIdx.x - lane_of_warp; base < entries; base += blockDim.x) {
        const uint32_t at = base + lane_of_warp;
        uint32_t word = ~0u, mask = 0;
        if (at < entries) {
            const uint32_t rank = numbers.ranks[first + at];
            const int row = starts.row_of(at, height), inside = row % 16;
            uint32_t tile = block + rank / BLOCK;
            if (height > 16) {
                const uint32_t own = tiles[tile];
                tile = (own >> 4) + __popc(own & ((1u << row / 16) - 1));
            }
            const int k = int(rank % BLOCK);
            const int lane = inside % 8 * 4 + k % 8 / 2;
            const int slot = height == 8 ? k / 8 * 2 + k % 2 : k / 8 * 4 + inside / 8 * 2 + k % 2;
            const int64_t to = (int64_t(tile) * LANES + lane) * (height == 8 ? 4 : 8) + slot;
            out[to] = values[first + at];
            if (slots)
                slots[from ? from[first + at] : uint64_t(first + at)] = uint64_t(to);
            // `stored` has one byte per lane.
            word = tile * (LANES / 4) + lane / 4;
            mask = 1u << (lane % 4 * 8 + slot);
        }
        // The entries of one row in one tile follow each other.
        if (gather_bits<BLOCK>(word, mask) && at < entries)
            atomicOr(stored + word, mask);
    }
}

} // namespace tarsia::convert

using namespace tarsia::convert;

// Limits kernels to 64 registers; without the minimum of blocks, ptxas limits some to 40 and
// spills.
#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS, 4)

#define KERNEL_statistics(name, O, J)                                                              \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int64_t nnz, int32_t samples_log2, int64_t windows, Shape shape,                   \
                const unsigned long long *sorted, unsigned long long *words) {                     \
        statistics(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, nnz},             \
                   samples_log2, windows, shape, sorted, words);                                   \
    }
KERNELS(statistics, (), (window_statistics_32_32, 32, 32), (window_statistics_64_32, 64, 32),
        (window_statistics_64_64, 64, 64))
#define KERNEL_ranks(name, O, J)                                                                   \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int64_t nnz, int64_t windows, Shape shape, uint32_t *ranks, uint32_t *list,        \
                uint8_t *masks, uint32_t *distinct, int64_t *counts) {                             \
        rank_windows(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, nnz}, windows,  \
                     shape, ranks, list, masks, distinct, counts);                                 \
    }
KERNELS(ranks, (), (window_ranks_32_32, 32, 32), (window_ranks_64_32, 64, 32),
        (window_ranks_64_64, 64, 64))
#define KERNEL_fill(name, O, J)                                                                    \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, const uint16_t *values,      \
                int64_t base, int64_t rows, int64_t nnz, int64_t windows, int32_t height,          \
                Numbers numbers, uint32_t *columns, uint32_t *tiles, uint16_t *out,                \
                uint32_t *stored, const uint64_t *from, uint64_t *slots) {                         \
        fill(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, nnz}, values, windows,  \
             height, numbers, columns, tiles, out, stored, from, slots);                           \
    }
KERNELS(fill, (), (window_fill_16_32_32, 32, 32), (window_fill_16_64_32, 64, 32),
        (window_fill_16_64_64, 64, 64))

GLOBAL window_count_items(int64_t windows, const int64_t *starts, const uint32_t *distinct,
                          int64_t most, int64_t most_split, int64_t *counts,
                          unsigned long long *columns) {
    count_items(windows, starts, distinct, most, most_split, counts, columns);
}
GLOBAL window_totals(int64_t windows, const int64_t *starts, int32_t has_masks,
                     const int64_t *before, unsigned long long *out) {
    totals(windows, starts, has_masks != 0, before, out);
}
GLOBAL window_items(int64_t windows, const int64_t *starts, int64_t most, int64_t most_split,
                    const int64_t *before, WorkItem *items, Part *parts) {
    write_items(windows, starts, most, most_split, before, items, parts);
}
