// Ranks the columns of windows of rows without sorting: a thread block sets a bit for each column
// of its window in shared memory, and a column's rank is the number of bits below it.
//
// A column that a row stores m times counts m times: an entry's key consists of its column and, in
// the lowest bits, the number of times that the row has had the column before. Nearly all windows
// have no repeats, and then no such bits. If the keys span more than the bits in shared memory,
// they are ranked in chunks, each of which begins at an existing key.
//
// Rows must be sorted. If they are not, or if offsets are wrong, the ranks are wrong, but nothing
// outside the arrays is read.
#pragma once

#include "common/search.cuh"
#include "common/unchecked.cuh"
#include "ptx/warp.cuh"

namespace tarsia::convert {

// Largest number of rows of a window.
constexpr int MOST_ROWS = 64;
// Number of keys of a word, and of a group of words whose bits are counted together.
constexpr uint32_t WORD = 32, GROUP = 4 * WORD;

// Pattern of op(A), row by row; it may not have been checked.
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows, nnz;

    __device__ __forceinline__ int64_t start(int64_t row) const {
        return clamped_offset(offsets[min(row, rows)], base, nnz);
    }
    __device__ __forceinline__ uint32_t column(int64_t entry) const {
        return uint32_t(less_base(__ldg(indices + entry), base));
    }
};

// Rows of a window; log2 of the columns of a block and of the rows of a tile; number of words of
// key bits in shared memory.
struct Shape {
    int32_t height, block_log2, group_log2, words;

    // Returns whether windows have several groups of rows, and so masks of the tiles that exist.
    __device__ __forceinline__ bool has_masks() const { return height > 1 << group_log2; }
    __device__ __forceinline__ uint32_t blocks(uint32_t columns) const {
        return (columns + (1u << block_log2) - 1) >> block_log2;
    }
};

// Row starts of a window, relative to its first entry; in shared memory.
struct Starts {
    uint32_t at[MOST_ROWS + 1];

    // Row of an entry. The height is a power of 2; rows beyond the matrix are empty.
    __device__ __forceinline__ int row_of(uint32_t entry, int height) const {
        int row = 0;
        for (int step = height / 2; step > 0; step /= 2)
            row += at[row + step] <= entry ? step : 0;
        return row;
    }
    // Fills the row starts and returns the first entry. Called by all threads of a block, before a
    // barrier.
    template <class O, class J>
    __device__ __forceinline__ int64_t load(const Pattern<O, J> &a, int64_t row, int height) {
        const int64_t first = a.start(row);
        for (int r = threadIdx.x; r <= height; r += blockDim.x)
            at[r] = uint32_t(max(int64_t(0), a.start(row + r) - first));
        return first;
    }
};

// Number of times that the row which starts at `from` has had the entry's column before it.
template <class O, class J>
__device__ __forceinline__ uint32_t repeats_of(const Pattern<O, J> &a, int64_t from,
                                               int64_t entry) {
    const uint32_t column = a.column(entry);
    if (entry == from || a.column(entry - 1) != column)
        return 0;
    const auto is_before = [&](int64_t at) { return a.column(at) < column; };
    return uint32_t(entry - first_where_not(from, entry - 1, is_before));
}

// Number of columns and tiles of a window; without ranks, also the numbers of aligned spans of 16
// and of 8 columns that have an entry (repeated columns: each counts as a span).
struct Found {
    uint32_t columns, tiles, of_16, of_8;
};

// Number of bytes, and of 16-bit halves, of a word that are not 0.
__device__ __forceinline__ int bytes_of(uint32_t v) {
    return __popc(((v & 0x7f7f7f7fu) + 0x7f7f7f7fu | v) & 0x80808080u);
}
__device__ __forceinline__ int halves_of(uint32_t v) { return (v >> 16 != 0) + (v << 16 != 0); }

// Keys of the entries of a window, whose rows begin at `starts` from entry `first` on. A key is a
// column and, in the lowest `repeat_bits`, the number of times that the row has had it before.
template <class O, class J> struct Keys {
    const Pattern<O, J> &a;
    const Starts &starts;
    int64_t first;
    uint32_t entries;
    int height, repeat_bits;

    __device__ __forceinline__ uint32_t repeats(uint32_t at) const {
        return repeats_of(a, first + starts.at[starts.row_of(at, height)], first + at);
    }
    __device__ __forceinline__ uint64_t key(uint32_t at) const {
        const uint64_t column = a.column(first + at);
        if (repeat_bits == 0)
            return column;
        return column << repeat_bits | repeats(at);
    }
};

// Keys [base, base + span) that are ranked at a time, in `groups` groups; `last` is the window's
// last key.
struct Chunk {
    uint64_t base, last;
    uint32_t span, groups;

    // Chunks begin at multiples of a group.
    __device__ __forceinline__ Chunk(uint64_t from, uint64_t last, int words)
        : base(from & ~uint64_t(GROUP - 1)), last(last),
          span(uint32_t(min(last - base + 1, uint64_t(words) * WORD))),
          groups((span + GROUP - 1) / GROUP) {}
    // Groups of a warp: each takes a range of them.
    __device__ __forceinline__ uint32_t of_warp() const {
        return (groups + blockDim.x - 1) / blockDim.x * WARP;
    }
};

// Finds the smallest and the largest column of a window by the ends of its rows.
template <class O, class J>
__device__ __forceinline__ void find_ends(const Pattern<O, J> &a, const Starts &starts,
                                          int64_t first, int height, uint32_t &low,
                                          uint32_t &high) {
    const uint32_t entries = starts.at[height];
    for (int r = threadIdx.x; r < height; r += blockDim.x) {
        if (starts.at[r] < starts.at[r + 1] && starts.at[r + 1] <= entries) {
            atomicMin(&low, a.column(first + starts.at[r]));
            atomicMax(&high, a.column(first + starts.at[r + 1] - 1));
        }
    }
}

// Sets the bits of the chunk's keys, and finds the first key beyond the chunk. Returns whether a
// row has a column twice, which keys without repeat bits do not tell apart.
template <class O, class J>
__device__ __forceinline__ bool set_bits(const Keys<O, J> &keys, const Chunk &chunk, uint32_t *bits,
                                         unsigned long long &next) {
    bool repeated = false;
    uint64_t beyond = ~0ull;
#pragma unroll 4
    for (uint32_t at = threadIdx.x; at < keys.entries; at += blockDim.x) {
        const uint64_t key = keys.key(at);
        if (keys.repeat_bits == 0 && at > 0 && keys.a.column(keys.first + at - 1) == uint32_t(key))
            repeated |= keys.starts.at[keys.starts.row_of(at, keys.height)] != at;
        // Keys before the base wrap round to a large number.
        const uint64_t place = key - chunk.base;
        if (place < chunk.span) {
            uint32_t *const word = bits + place / WORD;
            const uint32_t bit = 1u << place % WORD;
            // Reads the word first: rows that share columns find the bit set, and a load is cheaper
            // than an atomic.
            if ((*const_cast<volatile uint32_t *>(word) & bit) == 0)
                atomicOr(word, bit);
        } else if (key > chunk.base && key <= chunk.last) {
            beyond = min(beyond, key);
        }
    }
    if (chunk.last - chunk.base >= chunk.span) {
        beyond = warp_min(beyond);
        if (threadIdx.x % WARP == 0)
            atomicMin(&next, static_cast<unsigned long long>(beyond));
    }
    return repeated;
}

// Returns the number of bits for the largest number of repeats of an entry.
template <class O, class J>
__device__ __forceinline__ int count_repeat_bits(const Keys<O, J> &keys, uint32_t &most) {
    uint32_t many = 0;
    for (uint32_t at = threadIdx.x; at < keys.entries; at += blockDim.x)
        many = max(many, keys.repeats(at));
    atomicMax(&most, many);
    __syncthreads();
    return 32 - __clz(most);
}

// Counts for each group of the warp the bits of the warp's groups before it. Returns the number of
// the warp's bits. SPANS: adds the spans of 16 and 8 columns with an entry to `found`.
template <bool SPANS>
__device__ __forceinline__ uint32_t count_bits(const Chunk &chunk, const uint4 *bits,
                                               uint32_t *before, Found &found) {
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t each = chunk.of_warp();
    uint32_t sum = 0;
    for (uint32_t g = warp * each + lane; g < (warp + 1) * each; g += WARP) {
        const uint4 v = g < chunk.groups ? bits[g] : make_uint4(0, 0, 0, 0);
        const uint32_t own = __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w);
        const uint32_t upto = prefix_sum(own);
        if (g < chunk.groups)
            before[g] = sum + upto - own;
        sum += __shfl_sync(ALL_LANES, upto, 31);
        if constexpr (SPANS) {
            found.of_16 += halves_of(v.x) + halves_of(v.y) + halves_of(v.z) + halves_of(v.w);
            found.of_8 += bytes_of(v.x) + bytes_of(v.y) + bytes_of(v.z) + bytes_of(v.w);
        }
    }
    return sum;
}

// Adds `of_others` to the numbers of bits before the warp's groups. RANKS: writes the columns of
// the groups' keys to `list` from their ranks on.
template <bool RANKS>
__device__ __forceinline__ void number_groups(const Chunk &chunk, const uint4 *bits,
                                              uint32_t *before, uint32_t of_others, int repeat_bits,
                                              uint32_t *list) {
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const uint32_t each = chunk.of_warp();
    for (uint32_t g = warp * each + lane; g < min((warp + 1) * each, chunk.groups); g += WARP) {
        uint32_t rank = before[g] + of_others;
        before[g] = rank;
        if constexpr (RANKS) {
            const uint4 v = bits[g];
            const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                for (uint32_t rest = words[w]; rest != 0; rest &= rest - 1) {
                    const uint64_t key = chunk.base + g * GROUP + w * WORD + __ffs(rest) - 1;
                    list[rank++] = uint32_t(key >> repeat_bits);
                }
            }
        }
    }
}

// Number of bits of the chunk below the key at `place`.
__device__ __forceinline__ uint32_t bits_below(const uint4 *bits, const uint32_t *before,
                                               uint64_t place) {
    const uint4 v = bits[place / GROUP];
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    uint32_t rank = before[place / GROUP];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        const int inside = int(place % GROUP) - w * int(WORD);
        const uint32_t below = inside >= int(WORD) ? ~0u : inside > 0 ? (1u << inside) - 1 : 0;
        rank += __popc(words[w] & below);
    }
    return rank;
}

// Masks of a chunk's blocks in shared memory, one byte each; block `first` is the chunk's first.
struct Masks {
    uint32_t *words;
    uint32_t first, count;

    // The first block may have begun in the chunk before, with the mask `carried`.
    __device__ __forceinline__ void clear(uint32_t carried) const {
        for (uint32_t m = threadIdx.x; m <= count / 4; m += blockDim.x)
            words[m] = m == 0 ? carried : 0;
    }
    __device__ __forceinline__ void set(uint32_t block, int group) const {
        const uint32_t m = block - first, bit = 1u << (m % 4 * 8 + group);
        if ((*const_cast<volatile uint32_t *>(words + m / 4) & bit) == 0)
            atomicOr(words + m / 4, bit);
    }
    __device__ __forceinline__ uint32_t at(uint32_t m) const {
        return words[m / 4] >> m % 4 * 8 & 255;
    }
};

// Finds the rank of each of the chunk's entries, of which `done` are ranked, and with masks sets
// the bit of its group of rows in its block's mask.
template <bool RANKS, class O, class J>
__device__ __forceinline__ void
rank_entries(const Keys<O, J> &keys, const Chunk &chunk, const Shape &shape, const uint4 *bits,
             const uint32_t *before, uint32_t done, uint32_t *ranks, const Masks &masks) {
#pragma unroll 4
    for (uint32_t at = threadIdx.x; at < keys.entries; at += blockDim.x) {
        const uint64_t place = keys.key(at) - chunk.base;
        if (place >= chunk.span)
            continue;
        const uint32_t rank = done + bits_below(bits, before, place);
        if constexpr (RANKS)
            ranks[keys.first + at] = rank;
        if (shape.has_masks())
            masks.set(rank >> shape.block_log2,
                      keys.starts.row_of(at, keys.height) >> shape.group_log2);
    }
}

// Ranks the columns of the window that begins at `row`. With RANKS, ranks[i] becomes the rank of
// entry i's column for all entries of the window, `list` the columns by rank (from the position of
// the window's first entry on), and `masks`, unless NULL, the row groups with an entry in each
// block. All threads of a block of whole warps. `room` in shared memory: shape.words words, a
// quarter as many again, and one byte per block's mask and one more.
template <bool RANKS, class O, class J>
__device__ Found number(const Pattern<O, J> &a, int64_t row, Shape shape, uint32_t *room,
                        uint32_t *ranks, uint32_t *list, uint8_t *masks) {
    __shared__ Starts starts;
    __shared__ uint32_t low, high, most, of_warp[32];
    __shared__ Found all;
    __shared__ unsigned long long next;
    const uint32_t thread = threadIdx.x, threads = blockDim.x, lane = thread % WARP;
    const uint32_t warp = thread / WARP, warps = threads / WARP;
    uint4 *const bits = reinterpret_cast<uint4 *>(room);
    uint32_t *const before = room + shape.words;

    // Threads may still read shared memory of the previous call.
    __syncthreads();
    if (thread == 0)
        low = ~0u, high = 0, most = 0, all = {0, 0, 0, 0};
    const int64_t first = starts.load(a, row, shape.height);
    __syncthreads();
    find_ends(a, starts, first, shape.height, low, high);
    __syncthreads();
    Keys<O, J> keys = {a, starts, first, starts.at[shape.height], shape.height, 0};
    if (keys.entries == 0 || low > high)
        return {0, 0, 0, 0};

    const bool has_masks = shape.has_masks();
    uint64_t base = low, last = high;
    uint32_t done = 0, carried = 0;
    Found own = {0, 0, 0, 0};
    while (true) {
        const Chunk chunk(base, last, shape.words);
        for (uint32_t g = thread; g < chunk.groups; g += threads)
            bits[g] = make_uint4(0, 0, 0, 0);
        if (thread == 0)
            next = ~0ull;
        __syncthreads();
        if (__syncthreads_or(set_bits(keys, chunk, room, next))) {
            // Happens once: with repeat bits in the keys, no row has a key twice.
            keys.repeat_bits = count_repeat_bits(keys, most);
            base = uint64_t(low) << keys.repeat_bits;
            last = (uint64_t(high) + 1 << keys.repeat_bits) - 1;
            continue;
        }
        const uint64_t following = next;
        const bool is_last = following == ~0ull;

        const uint32_t sum = count_bits<!RANKS>(chunk, bits, before, own);
        if (lane == 0)
            of_warp[warp] = sum;
        __syncthreads();
        uint32_t of_others = 0, count = 0;
        for (uint32_t w = 0; w < warps; ++w) {
            of_others += w < warp ? of_warp[w] : 0;
            count += of_warp[w];
        }
        const uint32_t first_mask = done >> shape.block_log2;
        const Masks of_chunk = {before + shape.words / 4, first_mask,
                                shape.blocks(done + count) - first_mask};
        if (RANKS || has_masks) {
            number_groups<RANKS>(chunk, bits, before, of_others, keys.repeat_bits,
                                 list + first + done);
            if (has_masks)
                of_chunk.clear(carried);
            __syncthreads();
            rank_entries<RANKS>(keys, chunk, shape, bits, before, done, ranks, of_chunk);
            __syncthreads();
        }
        done += count;
        if (has_masks) {
            const uint32_t whole =
                is_last ? of_chunk.count : (done >> shape.block_log2) - first_mask;
            for (uint32_t m = thread; m < whole; m += threads) {
                own.tiles += __popc(of_chunk.at(m));
                if (RANKS && masks != nullptr)
                    masks[first_mask + m] = uint8_t(of_chunk.at(m));
            }
            carried = whole < of_chunk.count ? of_chunk.at(whole) : 0;
        }
        if (is_last)
            break;
        base = following;
    }
    if (has_masks || !RANKS) {
        const uint32_t sums[3] = {warp_sum(own.tiles), warp_sum(own.of_16), warp_sum(own.of_8)};
        if (lane == 0) {
            atomicAdd(&all.tiles, sums[0]);
            atomicAdd(&all.of_16, sums[1]);
            atomicAdd(&all.of_8, sums[2]);
        }
        __syncthreads();
    }
    const uint32_t tiles = has_masks ? all.tiles : shape.blocks(done);
    if (keys.repeat_bits > 0)
        return {done, tiles, done, done};
    return {done, tiles, all.of_16, all.of_8};
}

} // namespace tarsia::convert
