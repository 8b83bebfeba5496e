// Counts how often columns come again in a few drawn groups of rows:
// src/select/features/distinct.rs says what is counted, and its twin on the CPU gives the same
// numbers. The pattern is valid, and 32 bits number its columns. A thread block has a group, and a
// hash table in shared memory.

#include <cstdint>

#include "convert/sample.cuh"

namespace tarsia::convert {
namespace {

using u64 = unsigned long long;

constexpr int THREADS = 1024, WARP = 32;
constexpr int64_t WINDOW = 128;
// As the CPU's.
constexpr u64 MOST_KEPT = 2048, MOST_LOOKED = 1 << 20;
constexpr int64_t MOST_PICKED = 1 << 13;
constexpr unsigned MOST_DISTINCT = 3072;
// Less MOST_DISTINCT more than a column of each thread: the table is never full.
constexpr unsigned PLACES = 4096;
static_assert(MOST_DISTINCT + THREADS <= PLACES);

// Words of a report, of groups of one kind.
enum Word { GROUPS, KEPT, DISTINCT, WORDS };

// Columns that are kept.
struct Table {
    uint32_t keys[PLACES];
    unsigned distinct;
    u64 kept;

    __device__ void clear() {
        for (int i = threadIdx.x; i < PLACES; i += THREADS)
            keys[i] = 0;
        if (threadIdx.x == 0)
            distinct = 0, kept = 0;
        __syncthreads();
    }
    __device__ __forceinline__ bool is_over() const {
        return *const_cast<const volatile unsigned *>(&distinct) > MOST_DISTINCT;
    }
    __device__ __forceinline__ void add(uint32_t column) {
        // Not the hash by which columns are kept: of these its upper bits are all 0.
        uint32_t hash = column ^ column >> 16;
        hash *= 0x85EBCA6B;
        hash ^= hash >> 13;
        hash *= 0xC2B2AE35;
        for (unsigned place = hash >> 20; !is_over(); place = (place + 1) % PLACES) {
            uint32_t found = *const_cast<volatile uint32_t *>(keys + place);
            if (found == 0)
                found = atomicCAS(keys + place, 0u, column + 1);
            if (found == 0)
                atomicAdd(&distinct, 1u);
            if (found == 0 || found == column + 1)
                return;
        }
    }
    // All threads.
    __device__ void report(u64 own_kept, u64 *words) {
        for (int delta = 16; delta > 0; delta /= 2)
            own_kept += __shfl_xor_sync(~0u, own_kept, delta);
        if (threadIdx.x % WARP == 0)
            atomicAdd(&kept, own_kept);
        __syncthreads();
        if (threadIdx.x == 0 && distinct <= MOST_DISTINCT) {
            atomicAdd(words + GROUPS, u64(1));
            atomicAdd(words + KEPT, kept);
            atomicAdd(words + DISTINCT, u64(distinct));
        }
    }
};

__device__ __forceinline__ int one_in_log2(u64 count) {
    const u64 parts = (count + MOST_KEPT - 1) / MOST_KEPT;
    return parts <= 1 ? 0 : 64 - __clzll(parts - 1);
}
__device__ __forceinline__ bool is_kept(uint32_t column, int one_in_log2) {
    return one_in_log2 == 0 || column * 0x9E3779B97F4A7C15ull >> (64 - one_in_log2) == 0;
}

template <class O, class J> struct Rows {
    const O *offsets;
    const J *indices;
    int64_t base, rows;

    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(__ldg(offsets + row)) - base;
    }
    __device__ __forceinline__ uint32_t column(int64_t entry) const {
        return uint32_t(int64_t(__ldg(indices + entry)) - base);
    }
};

template <class O, class J>
__device__ void in_window(const Rows<O, J> &a, int64_t window, Table &table, u64 *words) {
    const int64_t from = a.start(window * WINDOW),
                  upto = a.start(min((window + 1) * WINDOW, a.rows));
    const u64 count = u64(upto - from);
    if (count == 0 || count > MOST_LOOKED)
        return;
    const int log2 = one_in_log2(count);
    u64 kept = 0;
#pragma unroll 4
    for (int64_t at = from + threadIdx.x; at < upto; at += THREADS) {
        const uint32_t column = a.column(at);
        if (is_kept(column, log2)) {
            ++kept;
            table.add(column);
        }
    }
    table.report(kept, words);
}

// Warps take 32 entries of the row each, and go through the rows that these lead to as one list.
template <class O, class J>
__device__ void in_product(const Rows<O, J> &a, int64_t row, Table &table, u64 *words) {
    __shared__ u64 all;
    if (threadIdx.x == 0)
        all = 0;
    __syncthreads();
    const int lane = threadIdx.x % WARP;
    const int64_t from = a.start(row), upto = a.start(row + 1);
    if (upto == from || upto - from > MOST_PICKED)
        return;
    u64 own = 0;
    for (int64_t at = from + threadIdx.x; at < upto; at += THREADS) {
        const int64_t picked = a.column(at);
        own += u64(a.start(picked + 1) - a.start(picked));
    }
    for (int delta = 16; delta > 0; delta /= 2)
        own += __shfl_xor_sync(~0u, own, delta);
    if (lane == 0)
        atomicAdd(&all, own);
    __syncthreads();
    const u64 count = all;
    if (count == 0 || count > MOST_LOOKED)
        return;
    const int log2 = one_in_log2(count);
    u64 kept = 0;
    for (int64_t first = from + threadIdx.x / WARP * WARP; first < upto; first += THREADS) {
        int64_t start = 0;
        int length = 0;
        if (first + lane < upto) {
            const int64_t picked = a.column(first + lane);
            start = a.start(picked);
            length = int(a.start(picked + 1) - start);
        }
        int end = length;
        for (int delta = 1; delta < WARP; delta *= 2) {
            const int left = __shfl_up_sync(~0u, end, delta);
            end += lane >= delta ? left : 0;
        }
        const int total = __shfl_sync(~0u, end, WARP - 1);
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
                if (item < total && is_kept(columns[turn], log2)) {
                    ++kept;
                    table.add(columns[turn]);
                }
            }
            __syncwarp();
        }
    }
    table.report(kept, words);
}

// Blocks: the windows that are looked at, then the rows of the product (none if the matrix is not
// square).
template <class O, class J>
__device__ void distinct(Rows<O, J> a, int64_t windows, int64_t products, u64 *words) {
    __shared__ Table table;
    table.clear();
    const int64_t k = blockIdx.x;
    if (k < windows) {
        const int64_t all = (a.rows + WINDOW - 1) / WINDOW;
        in_window(a, run_of(k, windows, all), table, words);
    } else {
        in_product(a, run_of(k - windows, products, a.rows), table, words + WORDS);
    }
}

} // namespace
} // namespace tarsia::convert

#define COUNT(name, O, J)                                                                          \
    extern "C" __global__ void __launch_bounds__(tarsia::convert::THREADS)                         \
        distinct_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,            \
                        int64_t windows, int64_t products, unsigned long long *words) {            \
        tarsia::convert::distinct(tarsia::convert::Rows<O, J>{offsets, indices, base, rows},       \
                                  windows, products, words);                                       \
    }
COUNT(32_32, int32_t, int32_t)
COUNT(64_32, int64_t, int32_t)
COUNT(64_64, int64_t, int64_t)
