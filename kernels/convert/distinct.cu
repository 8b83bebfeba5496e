// Counts how often columns come again in a few drawn groups of rows:
// src/select/features/distinct.rs says what is counted, and its twin on the CPU gives the same
// numbers. Rows are sorted, and 32 bits number their columns; of a pattern that is not so nothing
// outside its arrays is read, and the numbers are wrong. A thread block has a group, and a hash
// table in shared memory.

#include <cstdint>

#include "convert/any_rows.cuh"
#include "convert/sample.cuh"

namespace tarsia::convert {
namespace {

using u64 = unsigned long long;

constexpr int THREADS = 512, WARP = 32;
// As the CPU's.
constexpr int WINDOW = 128, HEIGHTS = 5, ROWS_OF_BIT = 8;
constexpr u64 MOST_READ = 1 << 14, MOST_LOOKED = 1 << 16, MOST_KEPT = 2048, ALIGNED = 16;
constexpr int64_t MOST_PICKED = 1 << 13;
constexpr unsigned MOST_DISTINCT = 3072;
// Less MOST_DISTINCT more than a column of each thread: the table is never full.
constexpr unsigned PLACES = 4096;
static_assert(MOST_DISTINCT + THREADS <= PLACES);
static_assert(WINDOW / ROWS_OF_BIT == 16 && WINDOW % WARP == 0 && WINDOW <= THREADS);

// Kinds of groups. Words of each: groups, what is kept, and what is different; of COLUMNS that is
// five numbers, of windows of 8 to 128 rows.
enum Kind { COLUMNS, SPANS_8, SPANS_16, PRODUCTS };
constexpr int WINDOW_KINDS = 3;

__device__ __forceinline__ int first_word(int kind) {
    return kind == COLUMNS ? 0 : 2 + HEIGHTS + 3 * (kind - 1);
}
// log2 of the columns of a key.
__device__ __forceinline__ int unit_log2(int kind) {
    return kind == SPANS_8 ? 3 : kind == SPANS_16 ? 4 : 0;
}

__device__ __forceinline__ u64 sum_of_warp(u64 v) {
    for (int delta = 16; delta > 0; delta /= 2)
        v += __shfl_xor_sync(~0u, v, delta);
    return v;
}
// log2 of the parts, a power of 2, that have at most `most` of so many.
__device__ __forceinline__ int parts_of(u64 count, u64 most) {
    const u64 parts = (count + most - 1) / most;
    return parts <= 1 ? 0 : 64 - __clzll(parts - 1);
}
constexpr u64 GOLDEN = 0x9E3779B97F4A7C15;

// A group that a block has, and the keys that it has kept.
struct Group {
    uint32_t keys[PLACES];
    // Of each key, a bit for 8 rows of a window.
    uint32_t rows[PLACES];
    unsigned distinct, low, high;
    u64 entries, looked, kept, found[HEIGHTS];

    __device__ void clear() {
        for (int i = threadIdx.x; i < PLACES; i += THREADS)
            keys[i] = rows[i] = 0;
        if (threadIdx.x < HEIGHTS)
            found[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            distinct = high = 0, low = ~0u, entries = looked = kept = 0;
        __syncthreads();
    }
    __device__ __forceinline__ bool is_over() const {
        return *const_cast<const volatile unsigned *>(&distinct) > MOST_DISTINCT;
    }
    __device__ __forceinline__ void add(uint32_t key, uint32_t bit) {
        // Not the hash by which keys are kept: of these its upper bits are all 0.
        uint32_t hash = key ^ key >> 16;
        hash *= 0x85EBCA6B;
        hash ^= hash >> 13;
        hash *= 0xC2B2AE35;
        for (unsigned place = hash >> 20; !is_over(); place = (place + 1) % PLACES) {
            uint32_t old = *const_cast<volatile uint32_t *>(keys + place);
            if (old == 0)
                old = atomicCAS(keys + place, 0u, key + 1);
            if (old == 0)
                atomicAdd(&distinct, 1u);
            if (old == 0 || old == key + 1) {
                if ((*const_cast<volatile uint32_t *>(rows + place) & bit) == 0)
                    atomicOr(rows + place, bit);
                return;
            }
        }
    }
    // First and last columns of rows that are not empty; whole warps.
    __device__ __forceinline__ void widen(uint32_t first, uint32_t last) {
        first = __reduce_min_sync(~0u, first);
        last = __reduce_max_sync(~0u, last);
        if (threadIdx.x % WARP == 0) {
            atomicMin(&low, first);
            atomicMax(&high, last);
        }
    }
    // What one of 2^parts_log2 parts has kept; all threads, which have waited for `looked`.
    __device__ void report(u64 own_kept, int kind, int parts_log2, u64 *words) {
        own_kept = sum_of_warp(own_kept);
        if (threadIdx.x % WARP == 0 && own_kept > 0)
            atomicAdd(&kept, own_kept);
        __syncthreads();
        if (looked == 0 || looked > MOST_LOOKED || distinct > MOST_DISTINCT)
            return;
        unsigned own[HEIGHTS] = {0, 0, 0, 0, 0};
        for (int i = threadIdx.x; i < PLACES; i += THREADS) {
            const uint32_t of_8 = rows[i], of_16 = (of_8 | of_8 >> 1) & 0x5555,
                           of_32 = (of_16 | of_16 >> 2) & 0x1111,
                           of_64 = (of_32 | of_32 >> 4) & 0x0101;
            own[0] += __popc(of_8);
            own[1] += __popc(of_16);
            own[2] += __popc(of_32);
            own[3] += __popc(of_64);
            own[4] += of_8 != 0;
        }
#pragma unroll
        for (int i = 0; i < HEIGHTS; ++i) {
            own[i] = __reduce_add_sync(~0u, own[i]);
            if (threadIdx.x % WARP == 0)
                atomicAdd(&found[i], u64(own[i]));
        }
        __syncthreads();
        words += first_word(kind);
        if (threadIdx.x == 0) {
            atomicAdd(words, u64(1));
            atomicAdd(words + 1, kept << parts_log2);
        }
        if (kind == COLUMNS) {
            if (threadIdx.x < HEIGHTS)
                atomicAdd(words + 2 + threadIdx.x, found[threadIdx.x] << parts_log2);
        } else if (threadIdx.x == 0) {
            // Of 16 rows, or of all.
            atomicAdd(words + 2, found[kind == PRODUCTS ? 4 : 1] << parts_log2);
        }
    }
};

// Which entries of a group are read, and which keys are kept.
struct Cut {
    int cut_log2, one_in_log2;
    u64 from, upto;

    __device__ explicit Cut(u64 count)
        : cut_log2(parts_of(count, MOST_READ)), one_in_log2(parts_of(count >> cut_log2, MOST_KEPT)),
          from(0), upto(~u64(0)) {}

    __device__ __forceinline__ int parts_log2() const { return cut_log2 + one_in_log2; }
    // A part of the columns; only where the group is cut.
    __device__ void draw(u64 k, uint32_t low, uint32_t high) {
        const u64 part = k * GOLDEN >> (64 - cut_log2), span = u64(high) + 1 - low;
        const auto edge = [&](u64 part) {
            return (low + (span * part >> cut_log2)) / ALIGNED * ALIGNED;
        };
        from = edge(part);
        upto = part + 1 == u64(1) << cut_log2 ? u64(high) + 1 : edge(part + 1);
    }
    __device__ __forceinline__ bool keeps(uint32_t key) const {
        return one_in_log2 == 0 || key * GOLDEN >> (64 - one_in_log2) == 0;
    }
};

// The first entry from `from` to `upto` whose column is not before this one.
template <class O, class J>
__device__ __forceinline__ int64_t first_from(const AnyRows<O, J> &a, int64_t from, int64_t upto,
                                              u64 column) {
    while (from < upto) {
        const int64_t middle = from + (upto - from) / 2;
        if (a.column(middle) < column) {
            from = middle + 1;
        } else {
            upto = middle;
        }
    }
    return from;
}

template <class O, class J>
__device__ void in_window(const AnyRows<O, J> &a, u64 k, int64_t window, int kind, Group &group,
                          u64 *words) {
    // Entries before each row, and what leads from an entry's number to its place.
    __shared__ uint32_t before[WINDOW + 1];
    __shared__ int64_t shift[WINDOW];
    __shared__ uint32_t of_warp[WINDOW / WARP];
    const int thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    int64_t start = 0, end = 0;
    if (thread < WINDOW) {
        const int64_t row = window * WINDOW + thread;
        start = a.start(row);
        end = a.end(row, start);
        const u64 own = sum_of_warp(u64(end - start));
        if (lane == 0)
            atomicAdd(&group.entries, own);
    }
    __syncthreads();
    if (group.entries == 0)
        return;
    Cut cut(group.entries);
    if (cut.cut_log2 > 0) {
        if (thread < WINDOW) {
            const bool is_filled = start < end;
            group.widen(is_filled ? a.column(start) : ~0u, is_filled ? a.column(end - 1) : 0);
        }
        __syncthreads();
        cut.draw(k, group.low, group.high);
        if (thread < WINDOW) {
            start = first_from(a, start, end, cut.from);
            end = first_from(a, start, end, cut.upto);
        }
    }
    if (thread < WINDOW) {
        const u64 own = sum_of_warp(u64(end - start));
        if (lane == 0)
            atomicAdd(&group.looked, own);
        // More than MOST_LOOKED are not used.
        const uint32_t length = uint32_t(min(end - start, int64_t(MOST_LOOKED)));
        uint32_t upto = length;
        for (int delta = 1; delta < WARP; delta *= 2) {
            const uint32_t left = __shfl_up_sync(~0u, upto, delta);
            upto += lane >= delta ? left : 0;
        }
        if (lane == WARP - 1)
            of_warp[warp] = upto;
        before[thread] = upto - length;
    }
    __syncthreads();
    const uint32_t all = uint32_t(min(group.looked, MOST_LOOKED + 1));
    if (all > MOST_LOOKED)
        return;
    if (thread < WINDOW) {
        uint32_t left = before[thread];
        for (int w = 0; w < warp; ++w)
            left += of_warp[w];
        before[thread] = left;
        shift[thread] = start - left;
    }
    if (thread == 0)
        before[WINDOW] = all;
    __syncthreads();
    const int log2 = unit_log2(kind);
    u64 kept = 0;
    for (uint32_t first = thread; first < all; first += 4 * THREADS) {
        uint32_t columns[4];
        int rows[4];
#pragma unroll
        for (int turn = 0; turn < 4; ++turn) {
            const uint32_t item = first + turn * THREADS;
            int row = 0;
#pragma unroll
            for (int step = WINDOW / 2; step > 0; step /= 2)
                row += before[row + step] <= item ? step : 0;
            rows[turn] = row;
            columns[turn] = item < all ? a.column(shift[row] + item) : 0;
        }
#pragma unroll
        for (int turn = 0; turn < 4; ++turn) {
            const uint32_t key = columns[turn] >> log2;
            if (first + turn * THREADS < all && cut.keeps(key)) {
                ++kept;
                group.add(key, 1u << rows[turn] / ROWS_OF_BIT);
            }
        }
    }
    group.report(kept, kind, cut.parts_log2(), words);
}

// Warps take 32 entries of the row each, and go through the rows that these lead to as one list.
template <class O, class J>
__device__ void in_product(const AnyRows<O, J> &a, u64 k, int64_t row, Group &group, u64 *words) {
    const int lane = threadIdx.x % WARP;
    const int64_t from = a.start(row), upto = a.end(row, from);
    if (upto == from || upto - from > MOST_PICKED)
        return;
    u64 own = 0;
#pragma unroll 4
    for (int64_t at = from + threadIdx.x; at < upto; at += THREADS) {
        const int64_t picked = a.column(at), start = a.start(picked);
        own += u64(a.end(picked, start) - start);
    }
    own = sum_of_warp(own);
    if (lane == 0 && own > 0)
        atomicAdd(&group.entries, own);
    __syncthreads();
    if (group.entries == 0)
        return;
    Cut cut(group.entries);
    const bool is_cut = cut.cut_log2 > 0;
    if (is_cut) {
        uint32_t low = ~0u, high = 0;
#pragma unroll 4
        for (int64_t at = from + threadIdx.x; at < upto; at += THREADS) {
            const int64_t picked = a.column(at), start = a.start(picked);
            const int64_t end = a.end(picked, start);
            if (start < end) {
                low = min(low, a.column(start));
                high = max(high, a.column(end - 1));
            }
        }
        group.widen(low, high);
        __syncthreads();
        cut.draw(k, group.low, group.high);
    }
    u64 kept = 0;
    for (int64_t first = from + threadIdx.x / WARP * WARP; first < upto; first += THREADS) {
        int64_t start = 0;
        int length = 0;
        if (first + lane < upto) {
            const int64_t picked = a.column(first + lane);
            start = a.start(picked);
            int64_t end = a.end(picked, start);
            if (is_cut) {
                start = first_from(a, start, end, cut.from);
                end = first_from(a, start, end, cut.upto);
            }
            // One more than MOST_LOOKED says as much as all.
            length = int(min(end - start, int64_t(MOST_LOOKED + 1)));
        }
        int end = length;
        for (int delta = 1; delta < WARP; delta *= 2) {
            const int left = __shfl_up_sync(~0u, end, delta);
            end += lane >= delta ? left : 0;
        }
        const int total = __shfl_sync(~0u, end, WARP - 1);
        u64 looked = 0;
        if (lane == 0)
            looked = atomicAdd(&group.looked, u64(total));
        // Not counted then, whatever comes.
        if (__shfl_sync(~0u, looked, 0) + total > MOST_LOOKED)
            break;
        // Of item i: the entry of the first lane that ends behind it.
        const int64_t shift = start - (end - length);
        for (int i = 0; i < total; i += 4 * WARP) {
            uint32_t columns[4];
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                const int item = i + turn * WARP + lane;
                int owner = 0;
#pragma unroll
                for (int step = WARP / 2; step > 0; step /= 2)
                    owner += __shfl_sync(~0u, end, owner + step - 1) <= item ? step : 0;
                const int64_t of_owner = __shfl_sync(~0u, shift, owner);
                columns[turn] = item < total ? a.column(of_owner + item) : ~0u;
            }
#pragma unroll
            for (int turn = 0; turn < 4; ++turn) {
                const int item = i + turn * WARP + lane;
                if (item < total && cut.keeps(columns[turn])) {
                    ++kept;
                    group.add(columns[turn], 1);
                }
            }
            __syncwarp();
        }
    }
    __syncthreads();
    group.report(kept, PRODUCTS, cut.parts_log2(), words);
}

// Blocks: the rows of the product that are looked at (none if the matrix is not square), then of
// each kind the windows.
template <class O, class J>
__device__ void distinct(AnyRows<O, J> a, int64_t windows, int64_t products, u64 *words) {
    __shared__ Group group;
    group.clear();
    int64_t block = blockIdx.x;
    if (block < products) {
        in_product(a, u64(block), run_of(block, products, a.rows), group, words);
    } else {
        block -= products;
        const int64_t all = (a.rows + WINDOW - 1) / WINDOW, k = block / WINDOW_KINDS;
        in_window(a, u64(k), run_of(k, windows, all), int(block % WINDOW_KINDS), group, words);
    }
}

} // namespace
} // namespace tarsia::convert

// 42 registers at most: three blocks a multiprocessor, of which nearly all run at one time.
#define COUNT(name, O, J)                                                                          \
    extern "C" __global__ void __launch_bounds__(tarsia::convert::THREADS, 3) distinct_##name(     \
        const O *offsets, const J *indices, int64_t base, int64_t rows, int64_t nnz,               \
        int64_t windows, int64_t products, unsigned long long *words) {                            \
        tarsia::convert::distinct(                                                                 \
            tarsia::convert::AnyRows<O, J>{offsets, indices, base, rows, nnz}, windows, products,  \
            words);                                                                                \
    }
COUNT(32_32, int32_t, int32_t)
COUNT(64_32, int64_t, int32_t)
COUNT(64_64, int64_t, int64_t)
