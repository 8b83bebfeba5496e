// Counts the pattern statistics by which an SpMV layout is chosen: src/select/spmv/statistics.rs
// defines each word, and its CPU implementation gives the same numbers.
//
// One launch: all threads count row lengths into their block's histogram, and the first warps
// examine a sample run of 32 rows each. The pattern has not been validated: rows are clamped to the
// array's length, and a column is never used as an array position. The results are sums of integers
// and do not depend on the order of the blocks.

#include <cstdint>
#include <type_traits>

#include "common/kernels.cuh"
#include "common/unchecked.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"

using namespace tarsia;

namespace {

using u64 = unsigned long long;

constexpr int THREADS = 256;
constexpr int EXACT = 257;
constexpr int BUCKETS = EXACT + 4 * (31 - 8);
// Words of the report, all 0 before the launch; shared.cu counts entries of rows with equal
// columns.
enum Word {
    LONGEST = BUCKETS,
    LONG_ENTRIES,
    LONG_GROUPS,
    ENTRIES,
    NARROW,
    SHIFTED,
    ALONG,
    ALONG_SECTORS,
    ACROSS,
    ACROSS_SECTORS,
    BLOCK_ENTRIES,
    BLOCKS_8,
    BLOCKS_4,
    WORDS
};
constexpr int MOST_BLOCKS = 16;
constexpr int BLOCK_LOG2 = 2;
constexpr u64 GROUP = 64;
constexpr int64_t NARROW_SPAN = 1 << 16;

__device__ int bucket(u64 length) {
    if (length < EXACT)
        return int(length);
    const int octave = 63 - __clzll(length);
    const int found = EXACT + 4 * (octave - 8) + int(length >> (octave - 2) & 3);
    return found < BUCKETS ? found : BUCKETS - 1;
}

// Run number of sample k out of `samples`, as in src/select/spmv/statistics.rs. Exact for fewer
// than 2^31 runs times 2^10 samples.
__device__ int64_t run_of(u64 k, u64 samples, u64 runs) {
    const u64 first = k * runs / samples, next = (k + 1) * runs / samples;
    return int64_t(first + (k * 0x9E3779B97F4A7C15ull >> 33) % (next - first));
}

// Range of a row's entries, clamped to the array's length.
template <class O>
__device__ void range(const O *offsets, int64_t base, int64_t nnz, int64_t row, int64_t &start,
                      int64_t &end) {
    start = clamped_offset(offsets[row], base, nnz);
    end = clamped_offset(offsets[row + 1], base, nnz, start);
}

template <class J> __device__ int64_t column(const J *indices, int64_t base, int64_t at) {
    return less_base(indices[at], base);
}

// Number of different keys among the lanes that are `present`.
__device__ int distinct(int64_t key, bool present) {
    const unsigned members = __ballot_sync(ALL_LANES, present);
    bool is_first = false;
    if (present) {
        const unsigned same = __match_any_sync(members, key);
        is_first = (same & -same) == 1u << threadIdx.x % 32;
    }
    return __popc(__ballot_sync(ALL_LANES, is_first));
}

// Adds the statistics of one run of 32 rows; called by a whole warp.
template <class O, class J>
__device__ void sample_run(const O *offsets, const J *indices, int64_t base, int64_t rows,
                           int64_t nnz, int64_t run, int sector_log2, u64 *words) {
    constexpr int64_t MOST = INT64_MAX;
    const int lane = threadIdx.x % 32;
    const auto count = [&](int word, u64 found) {
        if (lane == 0 && found != 0)
            atomicAdd(&words[word - BUCKETS], found);
    };
    const int64_t row = run * 32 + lane;
    int64_t start = 0, end = 0;
    if (row < rows)
        range(offsets, base, nnz, row, start, end);
    const bool filled = start < end;
    int64_t first = 0, last = 0, middle = 0;
    if (filled) {
        first = column(indices, base, start);
        last = column(indices, base, end - 1);
        middle = column(indices, base, start + (end - start) / 2);
    }
    // Loads in advance, all at one time, the sectors that the loop at the end may read; without
    // this, some lane would wait for memory at nearly every turn of that loop.
    constexpr int OF_SECTOR = 32 / sizeof(J);
    unsigned touched = 0;
#pragma unroll
    for (int i = 0; i < (MOST_BLOCKS << BLOCK_LOG2) / OF_SECTOR; i++) {
        if (start + i * OF_SECTOR < end)
            touched ^= unsigned(indices[start + i * OF_SECTOR]);
    }
    const u64 entries = warp_sum(u64(end - start));
    count(ENTRIES, entries);
    const int64_t low = warp_min(filled ? (first < last ? first : last) : MOST);
    const int64_t high = warp_max(filled ? (first < last ? last : first) : -MOST - 1);
    // If no row has an entry, `entries` is 0, so the comparison does not matter.
    if (int64_t(u64(high) - u64(low)) < NARROW_SPAN)
        count(NARROW, entries);
    const u64 first_of_run = u64(__shfl_sync(ALL_LANES, first, 0)) + lane;
    const u64 last_of_run = u64(__shfl_sync(ALL_LANES, last, 0)) + lane;
    const int64_t length_of_run = __shfl_sync(ALL_LANES, end - start, 0);
    const bool shifted = filled && end - start == length_of_run && u64(first) == first_of_run &&
                         u64(last) == last_of_run;
    if (__all_sync(ALL_LANES, shifted))
        count(SHIFTED, entries);

    const int64_t here = __shfl_sync(ALL_LANES, start, 0) + lane;
    const bool is_along = here < nnz;
    const int64_t sector = is_along ? column(indices, base, here) >> sector_log2 : 0;
    count(ALONG, __popc(__ballot_sync(ALL_LANES, is_along)));
    count(ALONG_SECTORS, distinct(sector, is_along));
    count(ACROSS, __popc(__ballot_sync(ALL_LANES, filled)));
    count(ACROSS_SECTORS, distinct(middle >> sector_log2, filled));

    // Four slabs of eight rows, one lane per row. 32-bit columns have 32-bit block numbers.
    using Block = std::conditional_t<sizeof(J) == 4, int32_t, int64_t>;
    constexpr Block NONE = Block(sizeof(J) == 4 ? INT32_MAX : INT64_MAX);
    u64 taken = 0, blocks = 0, halves = 0;
    // Block columns of the row's next entries.
    Block next[1 << BLOCK_LOG2];
    const auto load = [&] {
#pragma unroll
        for (int i = 0; i < 1 << BLOCK_LOG2; i++)
            next[i] =
                start + i < end ? Block(column(indices, base, start + i) >> BLOCK_LOG2) : NONE;
    };
    // Uses `touched`, or the compiler would drop the loads above.
    if (touched == 0x9E3779B9)
        __nanosleep(0);
    load();
    for (int turn = 0; turn < MOST_BLOCKS; turn++) {
        const Block block =
            reduce_lanes(next[0], 8, [](Block a, Block b) { return b < a ? b : a; });
        if (__all_sync(ALL_LANES, block == NONE))
            break;
        const bool mine = next[0] == block && block != NONE;
        const unsigned members = __ballot_sync(ALL_LANES, mine);
        if (mine) {
            int found = 0;
            bool goes_on = true;
#pragma unroll
            for (int i = 0; i < 1 << BLOCK_LOG2; i++) {
                goes_on &= next[i] == block;
                found += goes_on;
            }
            taken += found;
            start += found;
            load();
        }
        blocks += block != NONE && lane % 8 == 0;
        halves += lane % 4 == 0 && (members >> (lane & ~3) & 0xf) != 0;
    }
    count(BLOCK_ENTRIES, warp_sum(taken));
    count(BLOCKS_8, warp_sum(blocks));
    count(BLOCKS_4, warp_sum(halves));
}

// Requires rows > 0 and at most as many samples as the grid has warps; `samples` of `runs` as
// src/select/spmv/statistics.rs counts them.
template <class O, class J>
__device__ void statistics(const O *offsets, const J *indices, int64_t base, int64_t rows,
                           int64_t nnz, int64_t runs, int64_t samples, int sector_log2,
                           u64 *report) {
    // 32 bits are enough for the rows of one block, but not for their entries.
    __shared__ unsigned histogram[BUCKETS];
    __shared__ u64 words[WORDS - BUCKETS];
    for (int i = threadIdx.x; i < BUCKETS; i += THREADS)
        histogram[i] = 0;
    for (int i = threadIdx.x; i < WORDS - BUCKETS; i += THREADS)
        words[i] = 0;
    __syncthreads();

    u64 longest = 0, long_entries = 0, long_groups = 0;
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += step) {
        int64_t start, end;
        range(offsets, base, nnz, row, start, end);
        const u64 length = u64(end - start);
        longest = longest > length ? longest : length;
        if (length >= EXACT) {
            long_entries += length;
            long_groups += (length + GROUP - 1) / GROUP;
        }
        atomicAdd(&histogram[bucket(length)], 1u);
    }
    longest = warp_max(longest);
    long_entries = warp_sum(long_entries);
    long_groups = warp_sum(long_groups);
    if (threadIdx.x % 32 == 0 && longest != 0) {
        atomicMax(&words[LONGEST - BUCKETS], longest);
        atomicAdd(&words[LONG_ENTRIES - BUCKETS], long_entries);
        atomicAdd(&words[LONG_GROUPS - BUCKETS], long_groups);
    }

    // Consecutive samples go to different blocks, so that no multiprocessor has all of them.
    const int64_t sample = int64_t(threadIdx.x / 32) * gridDim.x + blockIdx.x;
    if (sample < samples) {
        const int64_t run = run_of(u64(sample), u64(samples), u64(runs));
        sample_run(offsets, indices, base, rows, nnz, run, sector_log2, words);
    }

    __syncthreads();
    for (int i = threadIdx.x; i < BUCKETS; i += THREADS) {
        if (histogram[i] != 0)
            atomicAdd(&report[i], u64(histogram[i]));
    }
    for (int i = threadIdx.x; i < WORDS - BUCKETS; i += THREADS) {
        if (words[i] == 0)
            continue;
        if (i == LONGEST - BUCKETS) {
            atomicMax(&report[LONGEST], words[i]);
        } else {
            atomicAdd(&report[BUCKETS + i], words[i]);
        }
    }
}

} // namespace

#define KERNEL_statistics(name, O, J)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,     \
             int64_t nnz, int64_t runs, int64_t samples, int32_t sector_log2, u64 *report) {       \
        let_next_begin();                                                                          \
        statistics(offsets, indices, base, rows, nnz, runs, samples, sector_log2, report);         \
        end_after_previous();                                                                      \
    }
KERNELS(statistics, (), (statistics_32_32, 32, 32), (statistics_64_32, 64, 32),
        (statistics_64_64, 64, 64))
