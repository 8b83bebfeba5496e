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

namespace tarsia::convert {

// Largest number of rows of a window.
constexpr int MOST_ROWS = 64;
// Number of keys of a word, and of a group of words whose bits are counted together.
constexpr uint32_t WORD = 32, GROUP = 4 * WORD;

// Pattern of op(A), row by row.
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows, nnz;

    // Clamped to the array. Unsigned arithmetic: an offset that is wrong may be any number.
    __device__ __forceinline__ int64_t start(int64_t row) const {
        const int64_t at = int64_t(uint64_t(int64_t(offsets[min(row, rows)])) - uint64_t(base));
        return max(int64_t(0), min(at, nnz));
    }
    __device__ __forceinline__ uint32_t column(int64_t entry) const {
        return uint32_t(uint64_t(int64_t(__ldg(indices + entry))) - uint64_t(base));
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
__device__ __forceinline__ uint32_t sum_of_warp(uint32_t v) {
    for (int delta = 16; delta > 0; delta /= 2)
        v += __shfl_xor_sync(~0u, v, delta);
    return v;
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
    __shared__ uint32_t low, high, most, of_warp[32], tile_count, spans_16, spans_8;
    __shared__ unsigned long long next;
    const uint32_t thread = threadIdx.x, threads = blockDim.x, lane = thread % 32;
    const uint32_t warp = thread / 32, warps = threads / 32;
    uint4 *const bits = reinterpret_cast<uint4 *>(room);
    uint32_t *const before = room + shape.words;
    uint32_t *const own_masks = before + shape.words / 4;

    // Threads may still read shared memory of the previous call.
    __syncthreads();
    if (thread == 0)
        low = ~0u, high = 0, most = 0, tile_count = 0, spans_16 = 0, spans_8 = 0;
    const int64_t first = starts.load(a, row, shape.height);
    __syncthreads();
    const uint32_t entries = starts.at[shape.height];
    for (int r = thread; r < shape.height; r += threads) {
        if (starts.at[r] < starts.at[r + 1] && starts.at[r + 1] <= entries) {
            atomicMin(&low, a.column(first + starts.at[r]));
            atomicMax(&high, a.column(first + starts.at[r + 1] - 1));
        }
    }
    __syncthreads();
    if (entries == 0 || low > high)
        return {0, 0, 0, 0};

    const bool has_masks = shape.has_masks();
    int repeat_bits = 0;
    const auto key_of = [&](uint32_t at) -> uint64_t {
        const uint64_t column = a.column(first + at);
        if (repeat_bits == 0)
            return column;
        const int64_t from = first + starts.at[starts.row_of(at, shape.height)];
        return column << repeat_bits | repeats_of(a, from, first + at);
    };
    uint64_t base = low, last = high;
    uint32_t done = 0, carried = 0, own_tiles = 0, own_16 = 0, own_8 = 0;
    while (true) {
        // Chunks begin at multiples of a group.
        base &= ~uint64_t(GROUP - 1);
        const uint64_t room_for = uint64_t(shape.words) * WORD;
        const uint32_t span = uint32_t(min(last - base + 1, room_for));
        const uint32_t groups = (span + GROUP - 1) / GROUP;
        for (uint32_t g = thread; g < groups; g += threads)
            bits[g] = make_uint4(0, 0, 0, 0);
        if (thread == 0)
            next = ~0ull;
        __syncthreads();
        bool repeated = false;
        uint64_t beyond = ~0ull;
#pragma unroll 4
        for (uint32_t at = thread; at < entries; at += threads) {
            const uint64_t key = key_of(at);
            if (repeat_bits == 0 && at > 0 && a.column(first + at - 1) == uint32_t(key))
                repeated |= starts.at[starts.row_of(at, shape.height)] != at;
            // Keys before the base wrap round to a large number.
            const uint64_t place = key - base;
            if (place < span) {
                uint32_t *const word = room + place / WORD;
                const uint32_t bit = 1u << place % WORD;
                // Reads the word first: rows that share columns find the bit set, and a load is
                // cheaper than an atomic.
                if ((*const_cast<volatile uint32_t *>(word) & bit) == 0)
                    atomicOr(word, bit);
            } else if (key > base && key <= last) {
                beyond = min(beyond, key);
            }
        }
        if (last - base >= span) {
            for (int delta = 16; delta > 0; delta /= 2)
                beyond = min(beyond, uint64_t(__shfl_xor_sync(~0u, beyond, delta)));
            if (lane == 0)
                atomicMin(&next, static_cast<unsigned long long>(beyond));
        }
        if (__syncthreads_or(repeated)) {
            // Happens once: with repeat bits in the keys, `repeated` stays false.
            uint32_t many = 0;
            for (uint32_t at = thread; at < entries; at += threads) {
                const int64_t from = first + starts.at[starts.row_of(at, shape.height)];
                many = max(many, repeats_of(a, from, first + at));
            }
            atomicMax(&most, many);
            __syncthreads();
            repeat_bits = 32 - __clz(most);
            base = uint64_t(low) << repeat_bits;
            last = (uint64_t(high) + 1 << repeat_bits) - 1;
            continue;
        }
        const uint64_t following = next;
        const bool is_last = following == ~0ull;

        // Number of bits before each group: each warp sums a range of the groups.
        const uint32_t each = (groups + threads - 1) / threads * 32;
        uint32_t sum = 0;
        for (uint32_t g = warp * each + lane; g < (warp + 1) * each; g += 32) {
            const uint4 v = g < groups ? bits[g] : make_uint4(0, 0, 0, 0);
            const uint32_t own = __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w);
            uint32_t upto = own;
            for (uint32_t delta = 1; delta < 32; delta *= 2) {
                const uint32_t left = __shfl_up_sync(~0u, upto, delta);
                upto += lane >= delta ? left : 0;
            }
            if (g < groups)
                before[g] = sum + upto - own;
            sum += __shfl_sync(~0u, upto, 31);
            if constexpr (!RANKS) {
                own_16 += halves_of(v.x) + halves_of(v.y) + halves_of(v.z) + halves_of(v.w);
                own_8 += bytes_of(v.x) + bytes_of(v.y) + bytes_of(v.z) + bytes_of(v.w);
            }
        }
        if (lane == 0)
            of_warp[warp] = sum;
        __syncthreads();
        uint32_t of_others = 0, count = 0;
        for (uint32_t w = 0; w < warps; ++w) {
            of_others += w < warp ? of_warp[w] : 0;
            count += of_warp[w];
        }
        // Masks of this chunk's blocks; the first block may have begun in the chunk before.
        const uint32_t first_mask = done >> shape.block_log2;
        const uint32_t mask_count = shape.blocks(done + count) - first_mask;
        if (RANKS || has_masks) {
            for (uint32_t g = warp * each + lane; g < min((warp + 1) * each, groups); g += 32) {
                uint32_t rank = before[g] + of_others;
                before[g] = rank;
                if constexpr (RANKS) {
                    const uint4 v = bits[g];
                    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                    for (int w = 0; w < 4; ++w) {
                        for (uint32_t rest = words[w]; rest != 0; rest &= rest - 1) {
                            const uint64_t key = base + g * GROUP + w * WORD + __ffs(rest) - 1;
                            list[first + done + rank++] = uint32_t(key >> repeat_bits);
                        }
                    }
                }
            }
            if (has_masks) {
                for (uint32_t m = thread; m <= mask_count / 4; m += threads)
                    own_masks[m] = m == 0 ? carried : 0;
            }
            __syncthreads();
#pragma unroll 4
            for (uint32_t at = thread; at < entries; at += threads) {
                const uint64_t place = key_of(at) - base;
                if (place >= span)
                    continue;
                const uint4 v = bits[place / GROUP];
                const uint32_t words[4] = {v.x, v.y, v.z, v.w};
                uint32_t rank = done + before[place / GROUP];
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    const int inside = int(place % GROUP) - w * int(WORD);
                    // Bits below the entry's key in this word.
                    const uint32_t below = inside >= int(WORD) ? ~0u
                                           : inside > 0        ? (1u << inside) - 1
                                                               : 0;
                    rank += __popc(words[w] & below);
                }
                if constexpr (RANKS)
                    ranks[first + at] = rank;
                if (has_masks) {
                    const uint32_t m = (rank >> shape.block_log2) - first_mask;
                    const int row_group = starts.row_of(at, shape.height) >> shape.group_log2;
                    const uint32_t bit = 1u << (m % 4 * 8 + row_group);
                    if ((*const_cast<volatile uint32_t *>(own_masks + m / 4) & bit) == 0)
                        atomicOr(own_masks + m / 4, bit);
                }
            }
            __syncthreads();
        }
        if (has_masks) {
            const auto mask_at = [&](uint32_t m) { return own_masks[m / 4] >> m % 4 * 8 & 255; };
            const uint32_t whole =
                is_last ? mask_count : (done + count >> shape.block_log2) - first_mask;
            for (uint32_t m = thread; m < whole; m += threads) {
                own_tiles += __popc(mask_at(m));
                if (RANKS && masks != nullptr)
                    masks[first_mask + m] = uint8_t(mask_at(m));
            }
            carried = whole < mask_count ? mask_at(whole) : 0;
        }
        done += count;
        if (is_last)
            break;
        base = following;
    }
    if (has_masks || !RANKS) {
        const uint32_t sums[3] = {sum_of_warp(own_tiles), sum_of_warp(own_16), sum_of_warp(own_8)};
        if (lane == 0) {
            atomicAdd(&tile_count, sums[0]);
            atomicAdd(&spans_16, sums[1]);
            atomicAdd(&spans_8, sums[2]);
        }
        __syncthreads();
    }
    const uint32_t tiles = has_masks ? tile_count : shape.blocks(done);
    if (repeat_bits > 0)
        return {done, tiles, done, done};
    return {done, tiles, spans_16, spans_8};
}

} // namespace tarsia::convert
