// Makes the windows of src/layout/window.rs, which describes the arrays and has the
// same rules as a program for the CPU.
//
// Entries are sorted by (window, column, how often their row has had the column
// before), equal ones by row: what CUB's radix sort does with keys of as many bits as
// these take. An entry's first of its kind is a column of its window; a scan numbers
// them. The entries of a window are where they are in A, only in another order.

#include <cstdint>

namespace tarsia::convert {

constexpr int THREADS = 256;
constexpr int BLOCK = 16;
constexpr int LANES = 32;
constexpr uint32_t PADDING = 1u << 31;
constexpr uint32_t WHOLE = ~0u;
// The most rows of a window.
constexpr int MOST_ROWS = 64;

// As src/layout/window.rs has them.
struct alignas(16) Item {
    uint32_t window, first, end, part;
};
struct alignas(16) Part {
    uint32_t window, first, count, counter;
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
    __device__ __forceinline__ int64_t column(int64_t entry) const {
        return int64_t(indices[entry]) - base;
    }
    // The last row of [low, high) that starts at `entry` or before, where low does.
    __device__ __forceinline__ int64_t row_of(int64_t entry, int64_t low, int64_t high) const {
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (start(middle) <= entry) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return low;
    }
};

// Bits of a key, from the lowest: repeats, column, window.
struct Bits {
    int repeats, column;

    __device__ __forceinline__ int window_shift() const { return repeats + column; }
};

// How often the entry's row has had its column before, if the entry before has the
// same one.
template <class O, class J>
__device__ __forceinline__ uint64_t repeats_of(const Pattern<O, J> &a, int64_t entry, int64_t row) {
    const int64_t column = a.column(entry);
    int64_t from = a.start(row);
    if (entry == from || a.column(entry - 1) != column)
        return 0;
    // Rows are sorted: the column's first entry.
    int64_t upto = entry - 1;
    while (from < upto) {
        const int64_t middle = from + (upto - from) / 2;
        if (a.column(middle) < column) {
            from = middle + 1;
        } else {
            upto = middle;
        }
    }
    return uint64_t(entry - upto);
}

// The most repeats. A thread an entry.
template <class O, class J>
__device__ void most_repeats(Pattern<O, J> a, int64_t nnz, unsigned long long *most) {
    const int64_t entry = first_item();
    // Rare, so that only then a row is looked for.
    if (entry == 0 || entry >= nnz || a.column(entry - 1) != a.column(entry))
        return;
    const unsigned long long repeats = repeats_of(a, entry, a.row_of(entry, 0, a.rows));
    if (repeats > *const_cast<volatile unsigned long long *>(most))
        atomicMax(most, repeats);
}

// Keys and numbers of the entries. A thread an entry.
template <class O, class J, class K>
__device__ void write_keys(Pattern<O, J> a, int64_t nnz, int height, Bits bits, K *keys,
                           uint32_t *entries) {
    const int64_t entry = first_item();
    // The warp's first and last entries are looked for in all rows, the others between.
    const int lane = threadIdx.x & 31;
    const int64_t warp_first = entry - lane;
    if (warp_first >= nnz)
        return;
    int64_t bound = 0;
    if (lane == 0 || lane == 31)
        bound = a.row_of(lane == 0 ? warp_first : min(warp_first + 31, nnz - 1), 0, a.rows);
    const int64_t low = __shfl_sync(~0u, bound, 0), high = __shfl_sync(~0u, bound, 31) + 1;
    if (entry >= nnz)
        return;
    const int64_t row = a.row_of(entry, low, high);
    keys[entry] = K(row / height) << bits.window_shift() | K(a.column(entry)) << bits.repeats |
                  K(repeats_of(a, entry, row));
    entries[entry] = uint32_t(entry);
}

// From keys of windows of 64 rows: columns of all windows of 8, 16, 32 and 64 rows.
template <class O, class J, class K>
__device__ void count_columns(Pattern<O, J> a, int64_t nnz, Bits bits, const K *keys,
                              const uint32_t *entries, unsigned long long *counts) {
    __shared__ unsigned sums[4];
    if (threadIdx.x < 4)
        sums[threadIdx.x] = 0;
    __syncthreads();
    const int64_t at = first_item();
    bool fresh[4] = {false, false, false, false};
    if (at < nnz) {
        const K key = keys[at];
        const int64_t low = int64_t(key >> bits.window_shift()) * MOST_ROWS;
        const int64_t high = min(low + MOST_ROWS, a.rows);
        const bool is_first = at == 0 || keys[at - 1] != key;
        // The highest bit in which the two rows differ says which windows do.
        int64_t differs = ~int64_t(0);
        if (!is_first)
            differs = a.row_of(entries[at], low, high) ^ a.row_of(entries[at - 1], low, high);
        for (int i = 0; i < 4; ++i)
            fresh[i] = is_first || differs >> (3 + i) != 0;
    }
    for (int i = 0; i < 4; ++i) {
        const unsigned found = __popc(__ballot_sync(~0u, fresh[i]));
        if ((threadIdx.x & 31) == 0 && found > 0)
            atomicAdd(sums + i, found);
    }
    __syncthreads();
    if (threadIdx.x < 4 && sums[threadIdx.x] > 0)
        atomicAdd(counts + threadIdx.x, sums[threadIdx.x]);
}

// 1 where an entry is the first of its column in its window; numbers[nnz] = 0.
template <class K> __device__ void mark_columns(int64_t nnz, const K *keys, int64_t *numbers) {
    const int64_t at = first_item();
    if (at > nnz)
        return;
    numbers[at] = at < nnz && (at == 0 || keys[at - 1] != keys[at]);
}

// numbers[i]: columns before that of sorted entry i, if it is a new one.
__device__ __forceinline__ int64_t number_of(const int64_t *numbers, int64_t at) {
    return numbers[at + 1] - 1;
}

// Blocks of each window; counts[windows] = 0.
template <class O, class J>
__device__ void count_blocks(Pattern<O, J> a, int64_t windows, int height, const int64_t *numbers,
                             int64_t *counts) {
    const int64_t window = first_item();
    if (window > windows)
        return;
    int64_t columns = 0;
    if (window < windows)
        columns = numbers[a.start((window + 1) * height)] - numbers[a.start(window * height)];
    counts[window] = (columns + BLOCK - 1) / BLOCK;
}

// Where an entry is.
struct Place {
    int64_t block;
    int k, row;
};
template <class O, class J>
__device__ __forceinline__ Place place_of(const Pattern<O, J> &a, int64_t window, int height,
                                          const int64_t *numbers, const int64_t *starts, int64_t at,
                                          uint32_t entry) {
    const int64_t low = window * height, high = min(low + height, a.rows);
    const int64_t number = number_of(numbers, at) - numbers[a.start(low)];
    return {starts[window] + number / BLOCK, int(number % BLOCK),
            int(a.row_of(entry, low, high) - low)};
}

// Columns of the blocks, and which groups of 16 rows have an entry in them (`tiles`,
// zero before; NULL where there is one group).
template <class O, class J, class K>
__device__ void write_columns(Pattern<O, J> a, int64_t nnz, int height, Bits bits, const K *keys,
                              const uint32_t *entries, const int64_t *numbers,
                              const int64_t *starts, uint32_t *columns, uint32_t *tiles) {
    const int64_t at = first_item();
    if (at >= nnz)
        return;
    const K key = keys[at];
    const Place place =
        place_of(a, int64_t(key >> bits.window_shift()), height, numbers, starts, at, entries[at]);
    const uint32_t column =
        uint32_t(uint64_t(key) >> bits.repeats & ((uint64_t(1) << bits.column) - 1));
    // The last of the window pads its last block; the first of its kind writes.
    if (numbers[at + 1] != numbers[at])
        columns[place.block * BLOCK + place.k] = column;
    if (tiles)
        atomicOr(tiles + place.block, 1u << (place.row / 16));
}

// Pads the last block of each window. A thread a window.
template <class O, class J>
__device__ void pad_columns(Pattern<O, J> a, int64_t windows, int height, const int64_t *numbers,
                            const int64_t *starts, uint32_t *columns) {
    const int64_t window = first_item();
    if (window >= windows)
        return;
    const int64_t count =
        numbers[a.start((window + 1) * height)] - numbers[a.start(window * height)];
    if (count == 0)
        return;
    uint32_t *own = columns + starts[window] * BLOCK;
    const uint32_t last = own[count - 1] | PADDING;
    for (int64_t i = count; i % BLOCK != 0; ++i)
        own[i] = last;
}

// Tiles of each block; counts[blocks] = 0.
__device__ void count_tiles(int64_t blocks, const uint32_t *tiles, int64_t *counts) {
    const int64_t block = first_item();
    if (block <= blocks)
        counts[block] = block < blocks ? __popc(tiles[block]) : 0;
}
__device__ void number_tiles(int64_t blocks, const int64_t *firsts, uint32_t *tiles) {
    const int64_t block = first_item();
    if (block < blocks)
        tiles[block] |= uint32_t(firsts[block]) << 4;
}

// Values, which of them are stored (`values` and `stored` zero before), and where the
// user's values go (`slots` NULL: not wanted; `from` NULL: values are the user's).
template <class V, class O, class J, class K>
__device__ void fill(Pattern<O, J> a, const V *values, int64_t nnz, int height, Bits bits,
                     const K *keys, const uint32_t *entries, const int64_t *numbers,
                     const int64_t *starts, const uint32_t *tiles, V *out, uint32_t *stored,
                     const uint64_t *from, uint64_t *slots) {
    const int64_t at = first_item();
    if (at >= nnz)
        return;
    const uint32_t entry = entries[at];
    const Place place =
        place_of(a, int64_t(keys[at] >> bits.window_shift()), height, numbers, starts, at, entry);
    int64_t tile = place.block;
    if (height > 16) {
        const uint32_t word = tiles[place.block];
        tile = (word >> 4) + __popc(word & ((1u << (place.row / 16)) - 1));
    }
    const int row = place.row % 16, k = place.k;
    const int lane = row % 8 * 4 + k % 8 / 2;
    const int slot = height == 8 ? k / 8 * 2 + k % 2 : k / 8 * 4 + row / 8 * 2 + k % 2;
    const int64_t to = (tile * LANES + lane) * (height == 8 ? 4 : 8) + slot;
    out[to] = values[entry];
    // A byte a lane.
    atomicOr(stored + tile * (LANES / 4) + lane / 4, 1u << (lane % 4 * 8 + slot));
    if (slots)
        slots[from ? from[entry] : entry] = uint64_t(to);
}

struct Deal {
    int64_t parts, size;
};
__device__ __forceinline__ Deal deal_of(int64_t blocks, int64_t limit) {
    if (blocks <= limit)
        return {0, blocks};
    const int64_t wanted = (blocks + limit - 1) / limit;
    const int64_t size = ((blocks + wanted - 1) / wanted + 1) / 2 * 2;
    return {(blocks + size - 1) / size, size};
}

// Of each window: parts, whether it is cut, whether it is whole and long; one array
// after the other, of windows + 1 numbers with 0 for the last.
__device__ void count_items(int64_t windows, const int64_t *starts, int64_t limit,
                            int64_t long_from, int64_t *counts) {
    const int64_t window = first_item();
    if (window > windows)
        return;
    Deal deal = {0, 0};
    if (window < windows)
        deal = deal_of(starts[window + 1] - starts[window], limit);
    counts[window] = deal.parts;
    counts[windows + 1 + window] = deal.parts > 0;
    counts[2 * (windows + 1) + window] = deal.parts == 0 && deal.size > long_from;
}

// The same numbers, summed up before each window; their totals are behind the last.
__device__ void write_items(int64_t windows, const int64_t *starts, int64_t limit,
                            int64_t long_from, const int64_t *before, Item *items, Part *parts) {
    const int64_t window = first_item();
    if (window >= windows)
        return;
    const int64_t *cuts = before + windows + 1, *longs = cuts + windows + 1;
    const int64_t first = starts[window], end = starts[window + 1];
    const Deal deal = deal_of(end - first, limit);
    const uint32_t name = uint32_t(window);
    if (deal.parts > 0) {
        const uint32_t own = uint32_t(before[window]);
        for (int64_t number = 0; number < deal.parts; ++number) {
            const int64_t from = first + number * deal.size;
            parts[own + number] = {name, own, uint32_t(deal.parts), uint32_t(cuts[window])};
            items[own + number] = {name, uint32_t(from), uint32_t(min(end, from + deal.size)),
                                   uint32_t(own + number)};
        }
        return;
    }
    const bool is_long = end - first > long_from;
    const int64_t at =
        before[windows] +
        (is_long ? longs[window] : longs[windows] + window - cuts[window] - longs[window]);
    items[at] = {name, uint32_t(first), uint32_t(end), WHOLE};
}

// New values in the order of the user's array. A thread a value, several times.
template <class V>
__device__ void refill(const V *values, const uint64_t *slots, int64_t count, V *out) {
    for (int64_t i = first_item(); i < count; i += int64_t(gridDim.x) * blockDim.x)
        out[slots[i]] = values[i];
}

} // namespace tarsia::convert

using namespace tarsia::convert;

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

#define BY_KEY(key, K, name, O, J)                                                                 \
    KERNEL window_keys_##name##_##key(const O *offsets, const J *indices, int64_t base,            \
                                      int64_t rows, int64_t nnz, int32_t height, int32_t repeats,  \
                                      int32_t column, K *keys, uint32_t *entries) {                \
        write_keys(Pattern<O, J>{offsets, indices, base, rows}, nnz, height,                       \
                   Bits{repeats, column}, keys, entries);                                          \
    }                                                                                              \
    KERNEL window_count_##name##_##key(const O *offsets, const J *indices, int64_t base,           \
                                       int64_t rows, int64_t nnz, int32_t repeats, int32_t column, \
                                       const K *keys, const uint32_t *entries,                     \
                                       unsigned long long *counts) {                               \
        count_columns(Pattern<O, J>{offsets, indices, base, rows}, nnz, Bits{repeats, column},     \
                      keys, entries, counts);                                                      \
    }                                                                                              \
    KERNEL window_columns_##name##_##key(                                                          \
        const O *offsets, const J *indices, int64_t base, int64_t rows, int64_t nnz,               \
        int32_t height, int32_t repeats, int32_t column, const K *keys, const uint32_t *entries,   \
        const int64_t *numbers, const int64_t *starts, uint32_t *columns, uint32_t *tiles) {       \
        write_columns(Pattern<O, J>{offsets, indices, base, rows}, nnz, height,                    \
                      Bits{repeats, column}, keys, entries, numbers, starts, columns, tiles);      \
    }                                                                                              \
    KERNEL window_fill_16_##name##_##key(                                                          \
        const O *offsets, const J *indices, const uint16_t *values, int64_t base, int64_t rows,    \
        int64_t nnz, int32_t height, int32_t repeats, int32_t column, const K *keys,               \
        const uint32_t *entries, const int64_t *numbers, const int64_t *starts,                    \
        const uint32_t *tiles, uint16_t *out, uint32_t *stored, const uint64_t *from,              \
        uint64_t *slots) {                                                                         \
        fill(Pattern<O, J>{offsets, indices, base, rows}, values, nnz, height,                     \
             Bits{repeats, column}, keys, entries, numbers, starts, tiles, out, stored, from,      \
             slots);                                                                               \
    }
#define BY_WIDTH(name, O, J)                                                                       \
    BY_KEY(u32, uint32_t, name, O, J)                                                              \
    BY_KEY(u64, uint64_t, name, O, J)                                                              \
    KERNEL window_repeats_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,   \
                                 int64_t nnz, unsigned long long *most) {                          \
        most_repeats(Pattern<O, J>{offsets, indices, base, rows}, nnz, most);                      \
    }                                                                                              \
    KERNEL window_blocks_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,    \
                                int64_t windows, int32_t height, const int64_t *numbers,           \
                                int64_t *counts) {                                                 \
        count_blocks(Pattern<O, J>{offsets, indices, base, rows}, windows, height, numbers,        \
                     counts);                                                                      \
    }                                                                                              \
    KERNEL window_pad_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,       \
                             int64_t windows, int32_t height, const int64_t *numbers,              \
                             const int64_t *starts, uint32_t *columns) {                           \
        pad_columns(Pattern<O, J>{offsets, indices, base, rows}, windows, height, numbers, starts, \
                    columns);                                                                      \
    }
BY_WIDTH(32_32, int32_t, int32_t)
BY_WIDTH(64_32, int64_t, int32_t)
BY_WIDTH(64_64, int64_t, int64_t)

KERNEL window_mark_u32(int64_t nnz, const uint32_t *keys, int64_t *numbers) {
    mark_columns(nnz, keys, numbers);
}
KERNEL window_mark_u64(int64_t nnz, const uint64_t *keys, int64_t *numbers) {
    mark_columns(nnz, keys, numbers);
}
KERNEL window_count_tiles(int64_t blocks, const uint32_t *tiles, int64_t *counts) {
    count_tiles(blocks, tiles, counts);
}
KERNEL window_number_tiles(int64_t blocks, const int64_t *firsts, uint32_t *tiles) {
    number_tiles(blocks, firsts, tiles);
}
KERNEL window_count_items(int64_t windows, const int64_t *starts, int64_t limit, int64_t long_from,
                          int64_t *counts) {
    count_items(windows, starts, limit, long_from, counts);
}
KERNEL window_items(int64_t windows, const int64_t *starts, int64_t limit, int64_t long_from,
                    const int64_t *before, Item *items, Part *parts) {
    write_items(windows, starts, limit, long_from, before, items, parts);
}
KERNEL window_refill_16(const uint16_t *values, const uint64_t *slots, int64_t count,
                        uint16_t *out) {
    refill(values, slots, count, out);
}
