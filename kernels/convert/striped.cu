// Counts how rows that are dealt to 32 warps in turn share lines of a dense B:
// src/select/striped.rs says what each word is, and its twin on the CPU gives the same numbers.
// Rows are sorted, and 32 bits number their columns; of a pattern that is not so nothing outside
// the arrays is read or written, no more is done than for one that is, and the numbers are wrong.
//
// Strips of 32 rows that are looked at belong to a warp. Where no row is long each lane has a row,
// which is the row of its own warp of the kernel that the numbers are about; each step takes the
// next block of columns of all rows, and lanes with the same one add to its line together. A strip
// with a longer row is put in a queue and cut into pieces of 256 entries, which the warps of the
// second kernel share: a row of 100,000 entries is not one warp's. The third adds up lines, and
// rows of the queue.
//
// All sums are of integers: they do not depend on the order of the blocks.

#include <cstdint>

#include "convert/any_rows.cuh"
#include "convert/sample.cuh"

namespace tarsia::convert {
namespace {

using u64 = unsigned long long;

constexpr int THREADS = 256, WARP = 32, WARPS = THREADS / WARP;
// Columns of a line.
constexpr int LINE_LOG2 = 5;
// A strip is a warp's if no row of it, nor the row before, is longer.
constexpr int64_t MOST_SHORT = 64;
// Entries of a piece.
constexpr int64_t PIECE = 256;
constexpr uint32_t NONE = ~0u;

// Words of the report, all 0 before. Of LEAST_… the complement of the least is kept: 0 says that
// there is none.
enum Word {
    LEAST_ENTRIES,
    MOST_ENTRIES,
    SQUARES,
    SAMPLED_ENTRIES,
    PRODUCTS,
    LEAST_BLOCKS,
    SUM_BLOCKS,
    MOST_BLOCKS,
    LEAST_DISTANCE,
    SUM_DISTANCE,
    MOST_DISTANCE,
    LEAST_LINE,
    MOST_LINE,
    LINES,
    // Strips in the queue, and their pieces times 2^QUEUE_BITS.
    QUEUE,
    // Lines that found no place.
    LOST,
    LOAD,
    REQUESTS = LOAD + WARP,
    WARP_LINES = REQUESTS + WARP,
    WORDS = WARP_LINES + WARP
};
constexpr int QUEUE_BITS = 28;

__device__ __forceinline__ u64 sum_of_warp(u64 v) {
    for (int delta = 16; delta > 0; delta /= 2)
        v += __shfl_xor_sync(~0u, v, delta);
    return v;
}
__device__ __forceinline__ u64 most_of_warp(u64 v) {
    for (int delta = 16; delta > 0; delta /= 2)
        v = max(v, u64(__shfl_xor_sync(~0u, v, delta)));
    return v;
}

// Least, sum and most of a thread's counts.
struct Spread {
    u64 inverse_least = 0, sum = 0, most = 0;

    __device__ __forceinline__ void add(u64 count) {
        inverse_least = max(inverse_least, ~count);
        sum += count;
        most = max(most, count);
    }
    // Three words from `first` on. Whole warps.
    __device__ __forceinline__ void report(u64 *words, int first) const {
        const u64 all[3] = {most_of_warp(inverse_least), sum_of_warp(sum), most_of_warp(most)};
        if (threadIdx.x % WARP == 0 && all[0] != 0) {
            atomicMax(words + first, all[0]);
            atomicAdd(words + first + 1, all[1]);
            atomicMax(words + first + 2, all[2]);
        }
    }
};

// The words of a block, which become the grid's. Words that are a maximum are so here, too.
struct Own {
    u64 at[WORDS];

    __device__ void clear() {
        for (int i = threadIdx.x; i < WORDS; i += THREADS)
            at[i] = 0;
        __syncthreads();
    }
    __device__ void report(u64 *words) {
        __syncthreads();
        for (int i = threadIdx.x; i < WORDS; i += THREADS) {
            const bool is_most = i == LEAST_ENTRIES || i == MOST_ENTRIES || i == LEAST_BLOCKS ||
                                 i == MOST_BLOCKS || i == LEAST_DISTANCE || i == MOST_DISTANCE ||
                                 i == LEAST_LINE || i == MOST_LINE;
            if (at[i] == 0)
                continue;
            if (is_most) {
                atomicMax(words + i, at[i]);
            } else {
                atomicAdd(words + i, at[i]);
            }
        }
    }
};

// Rows of a pattern, in which lines are looked at.
template <class O, class J> struct Rows : AnyRows<O, J> {
    __device__ __forceinline__ uint32_t line(int64_t entry) const {
        return this->column(entry) >> LINE_LOG2;
    }
    // Entries of the row that an entry leads to.
    __device__ __forceinline__ u64 products(int64_t entry) const {
        const int64_t row = this->column(entry), start = this->start(row);
        return u64(this->end(row, start) - start);
    }
};

// A line: rows that request it, and of which warps they are.
struct Line {
    uint32_t count, warps;
};
// Lines, each at its number; or with keys (their number plus 1, 0: nobody's) at a place that they
// find, where numbers are too many. A power of 2 of places then.
struct Lines {
    Line *at;
    uint32_t *keys;
    int64_t places;

    __device__ __forceinline__ int64_t place_of(uint32_t line) const {
        if (keys == nullptr)
            return line < places ? int64_t(line) : -1;
        constexpr int MOST_STEPS = 256;
        int64_t place = line * 0x9E3779B97F4A7C15ull >> 32 & (places - 1);
        for (int step = 0; step < MOST_STEPS; ++step) {
            const uint32_t old = atomicCAS(keys + place, 0u, line + 1);
            if (old == 0 || old == line + 1)
                return place;
            place = place + 1 & (places - 1);
        }
        return -1;
    }
    // So many rows of these warps request it.
    __device__ __forceinline__ void add(uint32_t line, uint32_t rows, uint32_t warps,
                                        u64 *words) const {
        const int64_t place = place_of(line);
        if (place < 0) {
            atomicAdd(words + LOST, u64(1));
            return;
        }
        Line *const own = at + place;
        atomicAdd(&own->count, rows);
        // Lines that many rows request have all bits soon: a load is cheaper than an atomic.
        if ((*const_cast<volatile uint32_t *>(&own->warps) & warps) != warps)
            atomicOr(&own->warps, warps);
    }
};

// Strips with long rows: which, pieces of those before, and for each 1 + 32 counts of blocks, of
// the row before and its own, and 32 of blocks that a row and the one before have both.
struct Queue {
    u64 *before;
    uint32_t *strips, *counts;
    // Strips that there is room for, and pieces that they have at the most in a valid pattern.
    int64_t slots, pieces;

    // Of these there are so many, by the word.
    __device__ __forceinline__ int64_t slots_of(u64 word) const {
        return min(int64_t(word & (u64(1) << QUEUE_BITS) - 1), slots);
    }
};
constexpr int COUNTS = 1 + 2 * WARP;

__device__ __forceinline__ int64_t pieces_of(int64_t entries) {
    return (entries + PIECE - 1) / PIECE;
}
__device__ __forceinline__ int64_t warp_of_grid() {
    return int64_t(blockIdx.x) * WARPS + threadIdx.x / WARP;
}
__device__ __forceinline__ int64_t warps_of_grid() { return int64_t(gridDim.x) * WARPS; }

// A row's blocks, one after the other, beside those of the row before; a lane a row. Counts blocks,
// and those that the row before has not or that it has alone. All lanes of a warp.
template <class O, class J>
__device__ void short_rows(const Rows<O, J> &a, const Lines &lines, int64_t before, int64_t start,
                           int64_t end, u64 &blocks, u64 &alone, u64 *words) {
    const int lane = threadIdx.x % WARP;
    int64_t p = start, q = before;
    uint32_t next = p < end ? a.line(p) : NONE, other = q < start ? a.line(q) : NONE;
    const auto skip = [&](int64_t &at, int64_t upto, uint32_t line) {
        uint32_t found = line;
        while (found == line)
            found = ++at < upto ? a.line(at) : NONE;
        return found;
    };
    while (__any_sync(~0u, next != NONE)) {
        const uint32_t line = next;
        const unsigned peers = __match_any_sync(~0u, line);
        if (line != NONE && lane == __ffs(peers) - 1)
            lines.add(line, __popc(peers), peers, words);
        if (line != NONE) {
            ++blocks;
            next = skip(p, end, line);
            while (other < line) {
                ++alone;
                other = skip(q, start, other);
            }
            if (other == line) {
                other = skip(q, start, other);
            } else {
                ++alone;
            }
        }
    }
    while (other != NONE) {
        ++alone;
        other = skip(q, start, other);
    }
}

template <class O, class J>
__device__ void rows_of_strips(Rows<O, J> a, bool square, int64_t strips, int64_t drawn,
                               Lines lines, Queue queue, u64 *words) {
    __shared__ Own own;
    own.clear();
    const int lane = threadIdx.x % WARP;
    {
        Spread lengths;
        u64 squares = 0;
        const int64_t step = int64_t(gridDim.x) * THREADS;
        for (int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x; row < a.rows; row += step) {
            const int64_t start = a.start(row);
            const u64 length = u64(a.end(row, start) - start);
            lengths.add(length);
            squares += length * length;
        }
        const u64 least = most_of_warp(lengths.inverse_least), most = most_of_warp(lengths.most);
        squares = sum_of_warp(squares);
        if (lane == 0) {
            atomicMax(&own.at[LEAST_ENTRIES], least);
            atomicMax(&own.at[MOST_ENTRIES], most);
            atomicAdd(&own.at[SQUARES], squares);
        }
    }
    Spread of_blocks, of_distance;
    u64 load = 0, requests = 0, entries = 0, products = 0;
    for (int64_t k = warp_of_grid(); k < drawn; k += warps_of_grid()) {
        const int64_t strip = drawn_of(u64(k), u64(drawn), u64(strips));
        const int64_t row = strip * WARP + lane;
        const int64_t start = a.start(row), end = a.end(row, start);
        int64_t before = __shfl_up_sync(~0u, start, 1);
        if (lane == 0)
            before = strip > 0 ? a.start(row - 1) : start;
        before = min(before, start);
        entries += u64(end - start);
        load += u64(end - start + WARP - 1) / WARP;
        if (!__any_sync(~0u, max(end - start, start - before) > MOST_SHORT)) {
            if (square) {
                const int64_t last = __shfl_sync(~0u, end, WARP - 1);
                for (int64_t at = __shfl_sync(~0u, start, 0) + lane; at < last; at += WARP)
                    products += a.products(at);
            }
            u64 blocks = 0, alone = 0;
            short_rows(a, lines, before, start, end, blocks, alone, words);
            requests += blocks;
            if (row < a.rows) {
                of_blocks.add(blocks);
                if (row > 0)
                    of_distance.add(alone);
            }
            continue;
        }
        const int64_t pieces = pieces_of(end - start) + (lane == 0 ? pieces_of(start - before) : 0);
        const u64 all = sum_of_warp(u64(pieces));
        u64 place = 0;
        if (lane == 0)
            place = atomicAdd(words + QUEUE, 1 | all << QUEUE_BITS);
        place = __shfl_sync(~0u, place, 0);
        const int64_t slot = int64_t(place & (u64(1) << QUEUE_BITS) - 1);
        if (slot >= queue.slots)
            continue;
        if (lane == 0) {
            queue.strips[slot] = uint32_t(strip);
            queue.before[slot] = place >> QUEUE_BITS;
        }
        for (int i = lane; i < COUNTS; i += WARP)
            queue.counts[slot * COUNTS + i] = 0;
    }
    of_blocks.report(own.at, LEAST_BLOCKS);
    of_distance.report(own.at, LEAST_DISTANCE);
    atomicAdd(&own.at[LOAD + lane], load);
    atomicAdd(&own.at[REQUESTS + lane], requests);
    entries = sum_of_warp(entries);
    products = sum_of_warp(products);
    if (lane == 0) {
        atomicAdd(&own.at[SAMPLED_ENTRIES], entries);
        atomicAdd(&own.at[PRODUCTS], products);
    }
    own.report(words);
}

// The first entry from `from` to `upto` whose line is not before this one; a warp looks for it.
template <class O, class J>
__device__ int64_t first_from(const Rows<O, J> &a, int64_t from, int64_t upto, uint32_t line) {
    const int lane = threadIdx.x % WARP;
    while (upto - from > WARP) {
        // 32 places that cut the range in 33 parts; each is inside.
        const int64_t part = (upto - from) / (WARP + 1);
        const unsigned less = __ballot_sync(~0u, a.line(from + (lane + 1) * part) < line);
        const int count = __popc(less);
        const int64_t low = count == 0 ? from : from + count * part + 1;
        upto = count == WARP ? upto : from + (count + 1) * part;
        from = low;
    }
    const bool is_less = from + lane < upto && a.line(from + lane) < line;
    return from + __popc(__ballot_sync(~0u, is_less));
}

template <class O, class J>
__device__ void pieces_of_rows(Rows<O, J> a, bool square, Lines lines, Queue queue, u64 *words) {
    __shared__ u64 of_block;
    if (threadIdx.x == 0)
        of_block = 0;
    __syncthreads();
    const int lane = threadIdx.x % WARP;
    const u64 queued = words[QUEUE];
    const int64_t slots = queue.slots_of(queued);
    const int64_t all = min(int64_t(queued >> QUEUE_BITS), queue.pieces);
    u64 products = 0;
    for (int64_t piece = warp_of_grid(); piece < all; piece += warps_of_grid()) {
        // The last strip that begins at this piece or before.
        int64_t slot = 0, beyond = slots;
        while (beyond - slot > 1) {
            const int64_t middle = (slot + beyond) / 2;
            if (int64_t(queue.before[middle]) <= piece) {
                slot = middle;
            } else {
                beyond = middle;
            }
        }
        int64_t part = piece - int64_t(queue.before[slot]);
        const int64_t first = int64_t(queue.strips[slot]) * WARP;
        // The row before the strip, then the strip's.
        int64_t start = a.start(first + lane), end = a.end(first + lane, start);
        int64_t before = __shfl_up_sync(~0u, start, 1);
        if (lane == 0)
            before = first > 0 ? a.start(first - 1) : start;
        before = min(before, start);
        const int64_t of_before = __shfl_sync(~0u, pieces_of(start - before), 0);
        const bool is_before = part < of_before;
        int row = 0;
        if (is_before) {
            end = __shfl_sync(~0u, start, 0);
            start = before = __shfl_sync(~0u, before, 0);
        } else {
            part -= of_before;
            int64_t upto = pieces_of(end - start);
            const int64_t own = upto;
            for (int delta = 1; delta < WARP; delta *= 2) {
                const int64_t left = __shfl_up_sync(~0u, upto, delta);
                upto += lane >= delta ? left : 0;
            }
            row = __ffs(__ballot_sync(~0u, upto > part)) - 1;
            // Never of a valid pattern.
            if (row < 0)
                continue;
            part -= __shfl_sync(~0u, upto - own, row);
            start = __shfl_sync(~0u, start, row);
            end = __shfl_sync(~0u, end, row);
            before = __shfl_sync(~0u, before, row);
        }
        const int64_t from = start + part * PIECE, upto = min(end, from + PIECE);
        // Alike.
        if (part < 0 || from >= upto)
            continue;
        // Of the row before the piece's row only what can be in the piece.
        int64_t low = start, high = start;
        if (before < start) {
            low = first_from(a, before, start, a.line(from));
            high = first_from(a, low, start, a.line(upto - 1) + 1);
        }
        uint32_t blocks = 0, both = 0;
        for (int64_t at = from + lane; at < upto; at += WARP) {
            const uint32_t line = a.line(at);
            if (square && !is_before)
                products += a.products(at);
            if (at > start && a.line(at - 1) == line)
                continue;
            ++blocks;
            if (is_before)
                continue;
            lines.add(line, 1, 1u << row, words);
            int64_t less = low, rest = high;
            while (less < rest) {
                const int64_t middle = less + (rest - less) / 2;
                if (a.line(middle) < line) {
                    less = middle + 1;
                } else {
                    rest = middle;
                }
            }
            both += less < high && a.line(less) == line;
        }
        __syncwarp();
        blocks = __reduce_add_sync(~0u, blocks);
        both = __reduce_add_sync(~0u, both);
        if (lane == 0) {
            uint32_t *const counts = queue.counts + slot * COUNTS;
            atomicAdd(counts + (is_before ? 0 : 1 + row), blocks);
            if (both > 0)
                atomicAdd(counts + 1 + WARP + row, both);
        }
    }
    products = sum_of_warp(products);
    if (lane == 0 && products > 0)
        atomicAdd(&of_block, products);
    __syncthreads();
    if (threadIdx.x == 0 && of_block > 0)
        atomicAdd(words + PRODUCTS, of_block);
}

__device__ void totals(int64_t rows, Lines lines, Queue queue, u64 *words) {
    __shared__ Own own;
    own.clear();
    const int lane = threadIdx.x % WARP;
    const int64_t slots = queue.slots_of(words[QUEUE]);
    Spread of_blocks, of_distance, of_lines;
    u64 requests = 0, present = 0, warp_lines = 0;
    for (int64_t slot = warp_of_grid(); slot < slots; slot += warps_of_grid()) {
        const int64_t row = int64_t(queue.strips[slot]) * WARP + lane;
        const uint32_t *const counts = queue.counts + slot * COUNTS;
        const u64 before = counts[lane], blocks = counts[1 + lane], both = counts[1 + WARP + lane];
        requests += blocks;
        if (row < rows) {
            of_blocks.add(blocks);
            if (row > 0)
                of_distance.add(before + blocks - 2 * both);
        }
    }
    const int64_t step = warps_of_grid() * WARP;
    for (int64_t first = warp_of_grid() * WARP; first < lines.places; first += step) {
        const int64_t at = first + lane;
        const Line line = at < lines.places ? lines.at[at] : Line{0, 0};
        if (line.count > 0) {
            of_lines.add(line.count);
            ++present;
        }
        if (!__any_sync(~0u, line.count > 0))
            continue;
#pragma unroll
        for (int warp = 0; warp < WARP; ++warp) {
            const unsigned found = __ballot_sync(~0u, line.warps >> warp & 1);
            warp_lines += lane == warp ? __popc(found) : 0;
        }
    }
    of_blocks.report(own.at, LEAST_BLOCKS);
    of_distance.report(own.at, LEAST_DISTANCE);
    const u64 least = most_of_warp(of_lines.inverse_least), most = most_of_warp(of_lines.most);
    present = sum_of_warp(present);
    if (lane == 0) {
        atomicMax(&own.at[LEAST_LINE], least);
        atomicMax(&own.at[MOST_LINE], most);
        atomicAdd(&own.at[LINES], present);
    }
    atomicAdd(&own.at[REQUESTS + lane], requests);
    atomicAdd(&own.at[WARP_LINES + lane], warp_lines);
    own.report(words);
}

} // namespace
} // namespace tarsia::convert

#define STRIPED(name, O, J)                                                                        \
    extern "C" __global__ void __launch_bounds__(tarsia::convert::THREADS) striped_rows_##name(    \
        const O *offsets, const J *indices, int64_t base, int64_t rows, int64_t nnz,               \
        int32_t square, int64_t strips, int64_t drawn, tarsia::convert::Lines lines,               \
        tarsia::convert::Queue queue, unsigned long long *words) {                                 \
        tarsia::convert::rows_of_strips(                                                           \
            tarsia::convert::Rows<O, J>{{offsets, indices, base, rows, nnz}}, square != 0, strips, \
            drawn, lines, queue, words);                                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(tarsia::convert::THREADS)                         \
        striped_pieces_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,      \
                              int64_t nnz, int32_t square, tarsia::convert::Lines lines,           \
                              tarsia::convert::Queue queue, unsigned long long *words) {           \
        tarsia::convert::pieces_of_rows(                                                           \
            tarsia::convert::Rows<O, J>{{offsets, indices, base, rows, nnz}}, square != 0, lines,  \
            queue, words);                                                                         \
    }
STRIPED(32_32, int32_t, int32_t)
STRIPED(64_32, int64_t, int32_t)
STRIPED(64_64, int64_t, int64_t)

extern "C" __global__ void __launch_bounds__(tarsia::convert::THREADS)
    striped_totals(int64_t rows, tarsia::convert::Lines lines, tarsia::convert::Queue queue,
                   unsigned long long *words) {
    tarsia::convert::totals(rows, lines, queue, words);
}
