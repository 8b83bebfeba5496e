// Validates a sparse pattern in one launch: offsets and indices in range, order of the indices
// inside rows, statistics of the row lengths.
//
// The pattern may hold anything: no kernel uses a number of the pattern as an array position before
// comparing it with the array's length.
//
// The test whether indices ascend inside rows needs no row number per entry: it counts the
// positions in the whole index array at which they do not ascend, and subtracts those at which a
// row begins.

#include <cstdint>

#include "common/kernels.cuh"
#include "common/last_block.cuh"
#include "common/unchecked.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"

using namespace tarsia;

namespace {

using u64 = unsigned long long;

// Words of the report, in the order that src/backend/cuda/check.rs reads.
enum Word {
    BAD_OFFSET,     // ~(first row whose end is before its start or beyond nnz)
    FIRST_OFFSET,   // offsets[0]
    LAST_OFFSET,    // offsets[major]
    LONGEST,        // entries of the longest row
    EMPTY,          // rows without entries
    LONGER,         // rows longer than each of LENGTHS (4 words)
    BREAKS = 9,     // DESCENTS that are at the start of a row
    REPEATS,        // PLATEAUS that are at the start of a row
    OUTSIDE,        // ~(first position of an index out of range)
    OUTSIDE_SECOND, // OUTSIDE for the second array of coordinates
    DESCENTS,       // positions whose index is less than the one before
    PLATEAUS,       // positions whose index is not more than the one before
    MINOR_DESCENTS, // DESCENTS of the second array alone
    WORDS,
    ARRIVED = WORDS // counter of finished blocks, behind the report
};

__device__ constexpr int64_t LENGTHS[4] = {4, 32, 256, 2048};

// A block's own counts in shared memory, which `write` merges into the report.
struct Tally {
    u64 *words; // shared memory, WORDS long

    __device__ explicit Tally(u64 *shared) : words(shared) {
        for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
    }

    // `add` and `max` are called by all lanes of a warp.
    __device__ void add(int word, u64 v) const {
        v = warp_sum(v);
        if (threadIdx.x % 32 == 0 && v != 0)
            atomicAdd(&words[word], v);
    }

    __device__ void max(int word, u64 v) const {
        v = warp_max(v);
        if (threadIdx.x % 32 == 0 && v != 0)
            atomicMax(&words[word], v);
    }

    // Merges the counts into the report; all threads of the block call it once, at the end.
    __device__ void write(u64 *report) const {
        __syncthreads();
        for (int i = threadIdx.x; i < WORDS; i += blockDim.x) {
            const bool is_max =
                i == BAD_OFFSET || i == LONGEST || i == OUTSIDE || i == OUTSIDE_SECOND;
            // First and last offset are written by the thread that reads them.
            if (words[i] == 0 || i == FIRST_OFFSET || i == LAST_OFFSET)
                continue;
            if (is_max) {
                atomicMax(&report[i], words[i]);
            } else {
                atomicAdd(&report[i], words[i]);
            }
        }
    }
};

// Blocks [first, first + count) of the grid, which share one array's items.
struct Team {
    uint32_t first, count;

    __device__ int64_t first_item() const {
        return int64_t(blockIdx.x - first) * blockDim.x + threadIdx.x;
    }
    __device__ int64_t stride() const { return int64_t(count) * blockDim.x; }
};

// Called once by each block at its end: the last block to arrive moves the report to `out`, host
// memory that the device can write, zeroes it, and tells the host. Before that it calls `read` in
// one thread, with the report.
template <class Read>
__device__ void finish(u64 *report, u64 *out, const Arrival &arrival, const Read &read) {
    if (!is_last_block(reinterpret_cast<unsigned *>(&report[ARRIVED])))
        return;
    if (threadIdx.x == 0)
        read(report);
    __syncthreads();
    if (threadIdx.x < WORDS) {
        out[threadIdx.x] = __ldcg(&report[threadIdx.x]);
        report[threadIdx.x] = 0;
    }
    arrival.tell_host();
}

// Distance from the base; numbers below the base wrap round to very large ones.
__device__ u64 from_base(int64_t v, int64_t base) { return u64(less_base(v, base)); }

// Checks offsets and, unless `indices` is NULL, the order of indices across row starts. major > 0.
template <class O, class J>
__device__ void check_offsets(Team team, const Tally &tally, const O *offsets, const J *indices,
                              int64_t base, int64_t major, int64_t nnz, u64 *report) {
    u64 bad = 0, longest = 0, empty = 0, longer[4] = {0, 0, 0, 0}, breaks = 0, repeats = 0;
    for (int64_t r = team.first_item(); r < major; r += team.stride()) {
        const int64_t start = offsets[r], end = offsets[r + 1];
        if (r == 0)
            report[FIRST_OFFSET] = u64(start);
        if (r == major - 1)
            report[LAST_OFFSET] = u64(end);
        if (end < start || end > nnz + base) {
            const u64 found = ~u64(r);
            bad = bad > found ? bad : found;
            continue;
        }
        const u64 length = u64(end) - u64(start);
        longest = longest > length ? longest : length;
        empty += length == 0;
        for (int i = 0; i < 4; i++)
            longer[i] += length > u64(LENGTHS[i]);
        const u64 at = from_base(start, base);
        if (indices && length > 0 && at > 0 && at < u64(nnz)) {
            const J before = indices[at - 1], here = indices[at];
            breaks += here < before;
            repeats += here <= before;
        }
    }
    tally.max(BAD_OFFSET, bad);
    tally.max(LONGEST, longest);
    tally.add(EMPTY, empty);
    for (int i = 0; i < 4; i++)
        tally.add(LONGER + i, longer[i]);
    tally.add(BREAKS, breaks);
    tally.add(REPEATS, repeats);
    tally.write(report);
}

// Checks that indices are in [base, base + extent) and counts where they do not ascend.
template <class J>
__device__ void check_indices(Team team, const Tally &tally, const J *indices, int64_t base,
                              int64_t extent, int64_t nnz, u64 *report) {
    u64 outside = 0, descents = 0, plateaus = 0;
#pragma unroll 4
    for (int64_t p = team.first_item(); p < nnz; p += team.stride()) {
        const J here = indices[p], before = indices[p > 0 ? p - 1 : 0];
        if (from_base(here, base) >= u64(extent)) {
            const u64 found = ~u64(p);
            outside = outside > found ? outside : found;
        }
        descents += p > 0 && here < before;
        plateaus += p > 0 && here <= before;
    }
    tally.max(OUTSIDE, outside);
    tally.add(DESCENTS, descents);
    tally.add(PLATEAUS, plateaus);
    tally.write(report);
}

// Returns whether the finished report is of valid rows whose indices ascend; an index may repeat.
__device__ bool is_sorted(const u64 *report, int64_t base, int64_t nnz) {
    const auto at = [&](Word word) { return __ldcg(&report[word]); };
    return at(BAD_OFFSET) == 0 && at(FIRST_OFFSET) == u64(base) &&
           at(LAST_OFFSET) == u64(nnz) + u64(base) && at(OUTSIDE) == 0 &&
           at(DESCENTS) == at(BREAKS);
}

// Checks coordinates, which are sorted by (first, second).
template <class J>
__device__ void check_pairs(Team team, const Tally &tally, const J *first, const J *second,
                            int64_t base, int64_t first_extent, int64_t second_extent, int64_t nnz,
                            u64 *report) {
    u64 outside = 0, outside_second = 0, descents = 0, plateaus = 0, minor_descents = 0;
    for (int64_t p = team.first_item(); p < nnz; p += team.stride()) {
        const int64_t last = p > 0 ? p - 1 : 0;
        const J a = first[p], b = second[p], a_before = first[last], b_before = second[last];
        const u64 found = ~u64(p);
        if (from_base(a, base) >= u64(first_extent))
            outside = outside > found ? outside : found;
        if (from_base(b, base) >= u64(second_extent)) {
            outside_second = outside_second > found ? outside_second : found;
        }
        descents += a < a_before || (a == a_before && b < b_before);
        plateaus += p > 0 && (a < a_before || (a == a_before && b <= b_before));
        minor_descents += b < b_before;
    }
    tally.max(OUTSIDE, outside);
    tally.max(OUTSIDE_SECOND, outside_second);
    tally.add(DESCENTS, descents);
    tally.add(PLATEAUS, plateaus);
    tally.add(MINOR_DESCENTS, minor_descents);
    tally.write(report);
}

} // namespace

// For all kernels: `report` has WORDS + 1 words, which are zero before and after; `out` has WORDS
// words. `arrival` is that of the page (src/backend/cuda/memory/readback.rs).

// The first `offset_blocks` blocks check offsets, the others indices. With lengths_only the rows
// are known to be valid, and no blocks for indices are launched. `sorted`, unless it is NULL, is a
// word of the device that becomes 1 if the pattern is valid and indices ascend in each row, for
// kernels that follow.
#define KERNEL_compressed(name, O, J)                                                              \
    extern "C" __global__ void name(const int##O##_t *offsets, const int##J##_t *indices,          \
                                    int64_t base, int64_t major, int64_t minor, int64_t nnz,       \
                                    int32_t lengths_only, uint32_t offset_blocks, u64 *sorted,     \
                                    u64 *report, u64 *out, Arrival arrival) {                      \
        let_next_begin();                                                                          \
        __shared__ u64 words[WORDS];                                                               \
        const Tally tally(words);                                                                  \
        if (blockIdx.x < offset_blocks) {                                                          \
            check_offsets({0, offset_blocks}, tally, offsets, lengths_only ? nullptr : indices,    \
                          base, major, nnz, report);                                               \
        } else {                                                                                   \
            check_indices({offset_blocks, gridDim.x - offset_blocks}, tally, indices, base, minor, \
                          nnz, report);                                                            \
        }                                                                                          \
        finish(report, out, arrival, [&](const u64 *found) {                                       \
            if (sorted != nullptr && is_sorted(found, base, nnz))                                  \
                *sorted = 1;                                                                       \
        });                                                                                        \
        end_after_previous();                                                                      \
    }
KERNELS(compressed, (), (check_compressed_32_32, 32, 32), (check_compressed_64_32, 64, 32),
        (check_compressed_64_64, 64, 64))

#define KERNEL_pairs(name, J)                                                                      \
    extern "C" __global__ void name(const int##J##_t *first, const int##J##_t *second,             \
                                    int64_t base, int64_t first_extent, int64_t second_extent,     \
                                    int64_t nnz, u64 *report, u64 *out, Arrival arrival) {         \
        __shared__ u64 words[WORDS];                                                               \
        const Tally tally(words);                                                                  \
        check_pairs({0, gridDim.x}, tally, first, second, base, first_extent, second_extent, nnz,  \
                    report);                                                                       \
        finish(report, out, arrival, [](const u64 *) {});                                          \
    }
KERNELS(pairs, (), (check_pairs_32, 32), (check_pairs_64, 64))

// Brings counts to the host: out[i] = page[i] for i < count, then the numbers at `first` and
// `second`, where these are not NULL. `out` is page-locked memory of the host. All PAGE_WORDS words
// of the page become zero for its next user. One block of PAGE_WORDS threads. A copy by the
// driver's copy engine begins 6 to 7 microseconds after the kernel before it (H100), this kernel
// about one.
constexpr int PAGE_WORDS = 512;
extern "C" __global__ void __launch_bounds__(PAGE_WORDS)
    read_back(u64 *page, volatile u64 *out, int64_t count, const u64 *first, const u64 *second,
              Arrival arrival) {
    wait_for_previous();
    const int at = threadIdx.x;
    const u64 word = page[at];
    if (at < count)
        out[at] = word;
    if (word != 0)
        page[at] = 0;
    if (at == 0 && first != nullptr)
        out[count] = *first;
    if (at == 0 && second != nullptr)
        out[count + 1] = *second;
    arrival.tell_host();
}
