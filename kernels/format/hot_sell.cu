// Builds the slices of src/format/hot_sell.rs, which describes the arrays and has a CPU
// implementation of the same rules. Hot columns are the few columns that have most of the entries.
// Rows are sorted by length. An item is a row that is not split, and 1, 2, … 32 lanes of a warp,
// which is its class, take it side by side; long rows are split into parts of `limit` entries, each
// a slice of its own.
//
// Order of the kernels: hot_count, hot_histogram; the host chooses the limit; hot_flags, a scan,
// hot_codes; hot_keys, a sort, hot_classes; the host derives the classes; hot_parts, a scan,
// hot_heads, a scan; the host then knows all sizes, and hot_fill comes last.

#include "common/search.cuh"
#include "format/bits.cuh"
#include "format/hot_sell.cuh"
#include "format/windows.cuh"

namespace tarsia::convert {

using namespace hot_sell;

// Number of buckets by entries per column; columns of BUCKETS − 1 entries or more are in the last
// one.
constexpr uint32_t BUCKETS = 4096;
// Number of classes: an item has 2^0 to 2^5 lanes.
constexpr int CLASSES = 6;

// Boundaries between kinds of rows in the order of rows.
struct Classes {
    // Number of split rows, which come first, and of rows with entries.
    int64_t cut, filled;
    // First row of the slices whose items have 32, 16, … 1 lanes.
    int64_t first[CLASSES];
    // Number of slices before those, not counting the parts of split rows.
    int64_t before[CLASSES];
};

// Counts the entries of each column among every stride-th entry. The count of a column of 2^32
// entries overflows, which costs time only.
template <class J>
__device__ void count_columns(const J *indices, int64_t base, int64_t nnz, int64_t stride,
                              uint32_t *counts) {
    for (int64_t k = first_item() * stride; k < nnz; k += grid_stride() * stride)
        atomicAdd(counts + (int64_t(indices[k]) - base), 1);
}

__device__ __forceinline__ uint32_t bucket_of(uint32_t count) { return min(count, BUCKETS - 1); }

// Counts the columns of each bucket.
__device__ void count_buckets(const uint32_t *counts, int64_t cols, uint32_t *buckets) {
    __shared__ uint32_t of_block[BUCKETS];
    for (uint32_t i = threadIdx.x; i < BUCKETS; i += THREADS)
        of_block[i] = 0;
    __syncthreads();
    for (int64_t c = first_item(); c < cols; c += grid_stride())
        atomicAdd(of_block + bucket_of(counts[c]), 1);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < BUCKETS; i += THREADS) {
        if (of_block[i] != 0)
            atomicAdd(buckets + i, of_block[i]);
    }
}

// Sort keys: the longest row's length minus that of each row.
template <class O>
__device__ void make_keys(const O *offsets, int64_t rows, int64_t longest, uint32_t *keys,
                          uint32_t *numbers) {
    for (int64_t row = first_item(); row < rows; row += grid_stride()) {
        keys[row] = uint32_t(longest - length_of(offsets, row));
        numbers[row] = uint32_t(row);
    }
}

// Counts the parts of at most `limit` entries of each split row.
template <class O>
__device__ void count_parts(const O *offsets, const uint32_t *order, int64_t cut, int32_t limit,
                            int64_t *parts) {
    for (int64_t i = first_item(); i < cut; i += grid_stride())
        parts[i] = (length_of(offsets, order[i]) + limit - 1) / limit;
}

// Writes slice heads, except where their values start, and the number of steps of each slice.
// `parts_before` holds the number of parts before each split row, and their total at the end.
template <class O>
__device__ void make_heads(const O *offsets, const uint32_t *order, const Classes &classes,
                           int32_t limit, const int64_t *parts_before, int64_t slices,
                           SliceHead *heads, LongRow *long_rows, int64_t *steps) {
    const int64_t parts = parts_before[classes.cut];
    for (int64_t slice = first_item(); slice < slices; slice += grid_stride()) {
        SliceHead head = {};
        int64_t entries;
        if (slice < parts) {
            const int64_t number = range_of(parts_before, classes.cut, slice);
            const uint32_t row = order[number];
            const int64_t part = slice - parts_before[number];
            entries = min(length_of(offsets, row) - part * limit, int64_t(limit));
            head.place = uint32_t(number);
            head.lanes_log2 = CLASSES - 1;
            if (part == 0) {
                long_rows[number] = {row, uint32_t(slice),
                                     uint32_t(parts_before[number + 1] - parts_before[number]), 0};
            }
        } else {
            const int64_t at = slice - parts;
            int c = 0;
            while (c + 1 < CLASSES && classes.before[c + 1] <= at)
                ++c;
            const int lanes_log2 = CLASSES - 1 - c;
            const int64_t full = WARP >> lanes_log2;
            const int64_t place = classes.first[c] + (at - classes.before[c]) * full;
            entries = length_of(offsets, order[place]);
            head.place = uint32_t(place);
            head.lanes_log2 = uint8_t(lanes_log2);
            head.items = uint8_t(min(full, classes.filled - place));
        }
        const int64_t of_step = int64_t(GROUP) << head.lanes_log2;
        head.steps = uint16_t((entries + of_step - 1) / of_step);
        heads[slice] = head;
        steps[slice] = head.steps;
    }
}

// Fills values and columns, completes the heads, and writes the position in the user's array of
// each value (−1 for padding). `positions` is NULL if it is not wanted; `from` is NULL if values
// are in the order of entries. `values` and `out_values` are NULL if no values are stored. One warp
// per slice.
template <class Value, class O, class J, class Position>
__device__ void fill_slices(const O *offsets, const J *indices, const Value *values, int64_t base,
                            const uint32_t *order, int32_t limit, int64_t slices,
                            const int64_t *steps_before, const LongRow *long_rows,
                            const uint32_t *codes, SliceHead *heads, Value *out_values,
                            uint32_t *columns, const uint64_t *from, Position *positions) {
    const int64_t slice = first_item() / WARP;
    if (slice >= slices)
        return;
    const SliceHead head = heads[slice];
    const int lane = threadIdx.x % WARP;
    const int item = lane >> head.lanes_log2, rank = lane & ((1 << head.lanes_log2) - 1);
    int64_t start = 0, length = 0;
    if (head.items == 0) {
        const LongRow row = long_rows[head.place];
        const int64_t before = (slice - row.first) * limit;
        start = int64_t(offsets[row.row]) - base + before;
        length = min(length_of(offsets, row.row) - before, int64_t(limit));
    } else if (item < head.items) {
        const uint32_t row = order[int64_t(head.place) + item];
        start = int64_t(offsets[row]) - base;
        length = length_of(offsets, row);
    }
    const int64_t first = steps_before[slice];
    __syncwarp();
    if (lane == 0)
        heads[slice].first = uint64_t(first);
#pragma unroll 4
    for (int step = 0; step < head.steps; ++step) {
        for (int v = 0; v < GROUP; ++v) {
            const int64_t entry = int64_t((step << head.lanes_log2) + rank) * GROUP + v;
            const int64_t to = ((first + step) * WARP + lane) * GROUP + v;
            const bool exists = entry < length;
            const int64_t source = start + entry;
            columns[to] = codes[exists ? 1 + int64_t(indices[source]) - base : 0];
            if (out_values) {
                Value value{};
                if (exists)
                    value = values[source];
                out_values[to] = value;
            }
            if (positions)
                positions[to] =
                    exists ? Position(from ? from[source] : uint64_t(source)) : ~Position(0);
        }
    }
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

// Without the explicit minimum of blocks, ptxas spills in some of these kernels to fit more warps.
#define GLOBAL extern "C" __global__ void __launch_bounds__(convert::THREADS, 2)

// Unless stated otherwise, kernels work with any number of blocks.
#define KERNEL_count(name, J)                                                                      \
    GLOBAL name(const int##J##_t *indices, int64_t base, int64_t nnz, int64_t stride,              \
                uint32_t *counts) {                                                                \
        count_columns(indices, base, nnz, stride, counts);                                         \
    }
KERNELS(count, (), (hot_count_32, 32), (hot_count_64, 64))

GLOBAL hot_histogram(const uint32_t *counts, int64_t cols, uint32_t *buckets) {
    count_buckets(counts, cols, buckets);
}

// Flags of each column for a scan. Here `limit` is a bucket: columns of those above it are hot, and
// of its own as many as there is room for. The flag is 2^32 for a bucket above it and 1 for its
// own, so that one scan of 64 bits counts both kinds.
GLOBAL hot_flags(const uint32_t *counts, int64_t cols, uint32_t limit, int64_t *flags) {
    for (int64_t c = first_item(); c < cols; c += grid_stride()) {
        const uint32_t bucket = bucket_of(counts[c]);
        flags[c] = bucket > limit ? int64_t(1) << 32 : int64_t(bucket == limit);
    }
}

// Numbers the hot columns: those in buckets above the limit and the first `ties` in bucket `limit`,
// in ascending order. Writes `hot`, the columns, and `codes`, the column words for padding
// (codes[0]) and for each column. `before` holds the sums of the flags before each column.
GLOBAL hot_codes(const uint32_t *counts, int64_t cols, uint32_t limit, uint32_t ties,
                 uint32_t count, const int64_t *before, uint32_t *hot, uint32_t *codes) {
    if (first_item() == 0)
        codes[0] = HOT | count;
    for (int64_t c = first_item(); c < cols; c += grid_stride()) {
        const uint32_t bucket = bucket_of(counts[c]);
        const uint32_t above = uint32_t(before[c] >> 32), at = uint32_t(before[c]);
        uint32_t code = uint32_t(c);
        if (bucket > limit || (bucket == limit && at < ties)) {
            const uint32_t number = above + min(at, ties);
            hot[number] = uint32_t(c);
            code = HOT | number;
        }
        codes[1 + c] = code;
    }
}

// counts[i]: number of keys, which ascend, that are less than bounds[i]. One thread per bound.
GLOBAL hot_classes(const uint32_t *keys, int64_t rows, const int64_t *bounds, int64_t *counts) {
    const int64_t bound = bounds[threadIdx.x];
    const auto is_less = [&](int64_t at) { return int64_t(keys[at]) < bound; };
    counts[threadIdx.x] = first_where_not(0, rows, is_less);
}

#define KERNEL_keys(name, O)                                                                       \
    GLOBAL name(const int##O##_t *offsets, int64_t rows, int64_t longest, uint32_t *keys,          \
                uint32_t *numbers) {                                                               \
        make_keys(offsets, rows, longest, keys, numbers);                                          \
    }
KERNELS(keys, (), (hot_keys_32, 32), (hot_keys_64, 64))
#define KERNEL_parts(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint32_t *order, int64_t cut, int32_t limit,      \
                int64_t *parts) {                                                                  \
        count_parts(offsets, order, cut, limit, parts);                                            \
    }
KERNELS(parts, (), (hot_parts_32, 32), (hot_parts_64, 64))
#define KERNEL_heads(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint32_t *order, const Classes *classes,          \
                int32_t limit, const int64_t *parts_before, int64_t slices, SliceHead *heads,      \
                LongRow *long_rows, int64_t *steps) {                                              \
        make_heads(offsets, order, *classes, limit, parts_before, slices, heads, long_rows,        \
                   steps);                                                                         \
    }
KERNELS(heads, (), (hot_heads_32, 32), (hot_heads_64, 64))

// Grid: ceil(slices · WARP / THREADS) blocks.
#define KERNEL_fill(name, bits, O, J, P)                                                           \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, const BITS_##bits *values,   \
                int64_t base, const uint32_t *order, int32_t limit, int64_t slices,                \
                const int64_t *steps_before, const LongRow *long_rows, const uint32_t *codes,      \
                SliceHead *heads, BITS_##bits *out_values, uint32_t *columns,                      \
                const uint64_t *from, uint##P##_t *positions) {                                    \
        fill_slices(offsets, indices, values, base, order, limit, slices, steps_before, long_rows, \
                    codes, heads, out_values, columns, from, positions);                           \
    }
KERNELS(fill, (16), (hot_fill_16_32_32_u32, 32, 32, 32), (hot_fill_16_64_32_u32, 64, 32, 32),
        (hot_fill_16_64_32_u64, 64, 32, 64), (hot_fill_16_64_64_u32, 64, 64, 32),
        (hot_fill_16_64_64_u64, 64, 64, 64))
KERNELS(fill, (32), (hot_fill_32_32_32_u32, 32, 32, 32), (hot_fill_32_64_32_u32, 64, 32, 32),
        (hot_fill_32_64_32_u64, 64, 32, 64), (hot_fill_32_64_64_u32, 64, 64, 32),
        (hot_fill_32_64_64_u64, 64, 64, 64))
KERNELS(fill, (64), (hot_fill_64_32_32_u32, 32, 32, 32), (hot_fill_64_64_32_u32, 64, 32, 32),
        (hot_fill_64_64_32_u64, 64, 32, 64), (hot_fill_64_64_64_u32, 64, 64, 32),
        (hot_fill_64_64_64_u64, 64, 64, 64))
KERNELS(fill, (32x2), (hot_fill_32x2_32_32_u32, 32, 32, 32), (hot_fill_32x2_64_32_u32, 64, 32, 32),
        (hot_fill_32x2_64_32_u64, 64, 32, 64), (hot_fill_32x2_64_64_u32, 64, 64, 32),
        (hot_fill_32x2_64_64_u64, 64, 64, 64))
KERNELS(fill, (64x2), (hot_fill_64x2_32_32_u32, 32, 32, 32), (hot_fill_64x2_64_32_u32, 64, 32, 32),
        (hot_fill_64x2_64_32_u64, 64, 32, 64), (hot_fill_64x2_64_64_u32, 64, 64, 32),
        (hot_fill_64x2_64_64_u64, 64, 64, 64))
