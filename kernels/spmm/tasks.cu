// Analysis of SpMM `row`: lists of work items of similar size. Long rows are split into parts,
// which blocks take; several groups of lanes (all of a warp, or two or four of a block) share each
// row of middle length. Of the rest, neighbours are packed into runs of about equally many entries.
// If rows are long on average, each row is a run, and runs are ordered by length inside windows, so
// that the groups of a warp finish together.

#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

#include "common/block.cuh"
#include "common/kernels.cuh"
#include "common/unchecked.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"
#include "spmm/join.cuh"

using namespace tarsia;

namespace {

// Number of rows of a window, and of threads of a block.
constexpr int WINDOW = 256;

// Number of bits of the lengths by which runs are sorted.
constexpr int LENGTH_BITS = 13;

} // namespace

// Lengths, in entries, that decide which list a row goes to (src/select/spmm/row.rs).
struct RowLimits {
    // Longer rows are split into parts of at most longest_part entries.
    int64_t longest_unsplit_row, longest_part;
    // Longer rows are shared by several groups. Others are packed into runs of about run_length
    // entries, or are runs by themselves if that is 0.
    int64_t longest_row_in_run, run_length;
    // Of the shared rows, two groups share those up to this length, which come last in the list.
    int64_t longest_row_of_pair;
};

// Lists and other numbers that are counted: SLOTS are slots for sums of parts, COUNTERS their
// counters. PAIRS is the last section of the list SHARED.
constexpr int RUNS = 0, SHARED = 1, PARTS = 2, SLOTS = 3, COUNTERS = 4, PAIRS = 5;

// Destinations of the lists, and the number of elements that each window has. The counts of a list
// are windows + 1 numbers: after the scan those are exclusive sums, with the length of the list
// behind its last window.
struct Lists {
    int64_t *counts;
    Run *runs, *shared_rows;
    Part *parts;
};

using Scan = cub::BlockScan<int, WINDOW>;

// Without `fill`, counts a window's `own` elements of a list; with `fill`, returns the position of
// the first of this thread's, from the exclusive sums. Called by all threads.
template <bool fill>
__device__ __forceinline__ int64_t position_of(const Lists &lists, Scan::TempStorage &storage,
                                               int list, int own) {
    int rank, count;
    __syncthreads();
    Scan(storage).ExclusiveSum(own, rank, count);
    const int64_t windows = gridDim.x;
    int64_t *const of_window = lists.counts + list * (windows + 1) + blockIdx.x;
    if constexpr (fill)
        return *of_window + rank;
    if (threadIdx.x == 0)
        *of_window = count;
    return 0;
}

// Makes runs of one row each, the longest of a window first.
template <bool fill>
__device__ __forceinline__ void make_single_runs(const Offsets &offsets, int64_t base,
                                                 const Lists &lists, Scan::TempStorage &scan,
                                                 bool is_short, int64_t length) {
    const int64_t rank = position_of<fill>(lists, scan, RUNS, is_short);
    if constexpr (fill) {
        using Sort = cub::BlockRadixSort<uint16_t, WINDOW, 1, int32_t>;
        __shared__ typename Sort::TempStorage sort;
        __shared__ int lengths[WINDOW];
        __shared__ int64_t first_run;
        const int here = threadIdx.x;
        // Rows of other lists come last.
        uint16_t key[1] = {uint16_t(is_short ? length + 1 : 0)};
        int32_t place[1] = {here};
        lengths[here] = int(is_short ? length : 0);
        if (here == 0)
            first_run = rank;
        __syncthreads();
        Sort(sort).SortDescending(key, place, 0, LENGTH_BITS + 1);
        if (key[0] > 0) {
            const int64_t row = int64_t(blockIdx.x) * WINDOW + place[0];
            lists.runs[first_run + here] = {offsets.at(row) - base, int32_t(row), 1,
                                            uint16_t(lengths[place[0]])};
        }
    }
}

// Makes runs of the rows that begin in the same quota, up to the next row of another list. Each row
// counts as at least an eighth of the quota, so that no run has more rows than it may.
template <bool fill>
__device__ __forceinline__ void make_packed_runs(const Lists &lists, Scan::TempStorage &scan,
                                                 int quota, bool is_short, int64_t begin,
                                                 int64_t row, int64_t length) {
    __shared__ int numbers[WINDOW + 1], lengths[WINDOW];
    const int here = threadIdx.x, least = (quota + MOST_ROWS - 1) / MOST_ROWS;
    const int weight = is_short ? max(int(length), least) : 0;
    int number;
    __syncthreads();
    Scan(scan).ExclusiveSum(weight, number);
    number = is_short ? number / quota : -1;
    numbers[here] = number;
    lengths[here] = int(is_short ? length : 0);
    if (here == 0)
        numbers[WINDOW] = -1;
    __syncthreads();
    const bool begins = is_short && (here == 0 || numbers[here - 1] != number);
    const int64_t place = position_of<fill>(lists, scan, RUNS, begins);
    if constexpr (fill) {
        if (begins) {
            int its_rows = 0, total = 0;
            do
                total += lengths[here + its_rows++];
            while (numbers[here + its_rows] == number);
            lists.runs[place] = {begin, int32_t(row), uint16_t(its_rows), uint16_t(total)};
        }
    }
}

// Without `fill`, counts a window's elements of each list. With `fill`, takes the exclusive sums
// over all of these counts and writes the window's elements, in the order of rows, so that
// neighbours stay neighbours.
template <bool fill>
__device__ __forceinline__ void make_tasks(const Offsets &offsets, int64_t base, int64_t rows,
                                           const RowLimits &limits, const Lists &lists) {
    __shared__ typename Scan::TempStorage scan;
    const int64_t windows = gridDim.x, row = int64_t(blockIdx.x) * WINDOW + threadIdx.x;
    int64_t begin = 0, length = -1;
    if (row < rows) {
        begin = offsets.at(row) - base;
        length = offsets.at(row + 1) - base - begin;
    }
    const bool is_short = length >= 0 && length <= limits.longest_row_in_run;
    const bool is_split = length > limits.longest_unsplit_row;
    const int count = is_split ? int((length + limits.longest_part - 1) / limits.longest_part) : 0;
    const bool is_shared = length > limits.longest_row_in_run && !is_split,
               is_of_pair = is_shared && length <= limits.longest_row_of_pair;
    const int64_t shared_at = position_of<fill>(lists, scan, SHARED, is_shared && !is_of_pair);
    const int64_t pair_at = position_of<fill>(lists, scan, PAIRS, is_of_pair);
    const int64_t first = position_of<fill>(lists, scan, PARTS, count);
    const int64_t slot = position_of<fill>(lists, scan, SLOTS, count > 1 ? count : 0);
    const int64_t counter =
        position_of<fill>(lists, scan, COUNTERS, count > 1 ? counters_of(count) : 0);
    if constexpr (fill) {
        if (is_shared) {
            const int64_t others = lists.counts[SHARED * (windows + 1) + windows];
            lists.shared_rows[is_of_pair ? others + pair_at : shared_at] = {begin, int32_t(row), 1,
                                                                            uint16_t(length)};
        }
        // Parts have equal lengths, without a short last one.
        for (int i = 0; i < count; ++i) {
            const int64_t from = length * i / count, upto = length * (i + 1) / count;
            lists.parts[first + i] = {
                begin + from,    int32_t(upto - from), int32_t(row), int32_t(slot), count, i,
                int32_t(counter)};
        }
    }
    if (limits.run_length == 0) {
        make_single_runs<fill>(offsets, base, lists, scan, is_short, length);
    } else {
        make_packed_runs<fill>(lists, scan, int(limits.run_length), is_short, begin, row, length);
    }
}

extern "C" __global__ void __launch_bounds__(WINDOW)
    spmm_tasks_count(const void *offsets, int64_t wide, int64_t base, int64_t rows,
                     RowLimits limits, int64_t *counts) {
    let_next_begin();
    make_tasks<false>({offsets, wide}, base, rows, limits, {counts, nullptr, nullptr, nullptr});
    end_after_previous();
}

extern "C" __global__ void __launch_bounds__(WINDOW)
    spmm_tasks_fill(const void *offsets, int64_t wide, int64_t base, int64_t rows, RowLimits limits,
                    int64_t *counts, Run *runs, Run *shared_rows, Part *parts) {
    make_tasks<true>({offsets, wide}, base, rows, limits, {counts, runs, shared_rows, parts});
}

namespace {

// Number of rows of a block that makes lists without a plan.
constexpr int LISTED = 1024;

// Number of list elements of a row, or their sum over several rows.
struct Listed {
    int shared_rows, parts, slots, counters;

    __device__ __forceinline__ Listed operator+(const Listed &other) const {
        return {shared_rows + other.shared_rows, parts + other.parts, slots + other.slots,
                counters + other.counters};
    }
    __device__ __forceinline__ Listed from(int lane) const {
        return {__shfl_sync(ALL_LANES, shared_rows, lane), __shfl_sync(ALL_LANES, parts, lane),
                __shfl_sync(ALL_LANES, slots, lane), __shfl_sync(ALL_LANES, counters, lane)};
    }
    __device__ __forceinline__ Listed before(int lanes) const {
        return {__shfl_up_sync(ALL_LANES, shared_rows, lanes),
                __shfl_up_sync(ALL_LANES, parts, lanes), __shfl_up_sync(ALL_LANES, slots, lanes),
                __shfl_up_sync(ALL_LANES, counters, lanes)};
    }
};

// Inclusive sum over the lanes of the warp.
__device__ __forceinline__ Listed scan(Listed sum) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const Listed other = sum.before(lanes);
        if (lane >= lanes)
            sum = sum + other;
    }
    return sum;
}

} // namespace

// Makes lists without a plan, in one launch and without a wait. Runs are `rows_a_run` (a power of
// two) neighbouring rows each. Rows of runs with more than limits.longest_row_in_run entries go to
// the list of shared rows or, if they are longer than limits.longest_unsplit_row, in parts to that
// of parts. Blocks reserve list elements in the order in which they arrive; sums do not depend on
// it. `state` (a ticket, and the lengths of lists as numbered by SHARED to COUNTERS) is zero before
// and after; lengths[0] and [1] become the lengths of the lists of shared rows and of parts.
// has_decision: lengths[2] is the decision of spmm/columns.cu, and if it is not zero, the lists are
// empty already.
extern "C" __global__ void __launch_bounds__(LISTED)
    spmm_tasks_unanalyzed(const void *offsets, int64_t wide, int64_t base, int64_t rows,
                          int64_t rows_a_run, RowLimits limits, Run *shared_rows, Part *parts,
                          unsigned *state, int64_t *lengths, int64_t has_decision) {
    const auto at = [&](int64_t i) { return Offsets{offsets, wide}.at(i) - base; };
    // The product's blocks start while the last blocks here are running; they wait for these.
    let_next_begin();
    if (has_decision && lengths[2] != 0)
        return;
    __shared__ Listed of_warps[LISTED / 32];
    __shared__ unsigned starts[4];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t row = int64_t(blockIdx.x) * LISTED + threadIdx.x;
    int64_t begin = 0, length = 0;
    Listed own{0, 0, 0, 0};
    if (row < rows) {
        const int64_t first = row & -rows_a_run;
        begin = at(row);
        length = at(row + 1) - begin;
        const int64_t of_run =
            rows_a_run == 1 ? length : at(min(first + rows_a_run, rows)) - at(first);
        if (of_run > limits.longest_row_in_run && length <= limits.longest_unsplit_row) {
            own.shared_rows = 1;
        } else if (of_run > limits.longest_row_in_run) {
            own.parts = int((length + limits.longest_part - 1) / limits.longest_part);
            own.slots = own.parts > 1 ? own.parts : 0;
            own.counters = own.parts > 1 ? counters_of(own.parts) : 0;
        }
    }
    if (__syncthreads_or(own.shared_rows + own.parts)) {
        Listed upto = scan(own);
        if (lane == 31)
            of_warps[warp] = upto;
        __syncthreads();
        if (warp == 0) {
            const Listed sum = scan(of_warps[lane]);
            of_warps[lane] = sum;
            const Listed all = sum.from(31);
            // One list per lane, so that the latencies of the atomics overlap.
            const int count = lane == 0   ? all.shared_rows
                              : lane == 1 ? all.parts
                              : lane == 2 ? all.slots
                                          : all.counters;
            if (lane < 4)
                starts[lane] = count > 0 ? atomicAdd(state + SHARED + lane, unsigned(count)) : 0;
        }
        __syncthreads();
        if (warp > 0)
            upto = upto + of_warps[warp - 1];
        if (own.shared_rows > 0)
            shared_rows[starts[0] + upto.shared_rows - 1] = {begin, int32_t(row), 1,
                                                             uint16_t(length)};
        // Each lane writes its few parts itself; the warp writes those of a row that has many.
        const auto write = [&](int64_t its_row, int64_t from, int64_t entries, const Listed &its,
                               const Listed &end, int i) {
            // Parts have equal lengths.
            const int64_t here = entries * i / its.parts, to = entries * (i + 1) / its.parts;
            parts[starts[1] + end.parts - its.parts + i] = {
                from + here,
                int32_t(to - here),
                int32_t(its_row),
                int32_t(starts[2] + end.slots - its.slots),
                its.parts,
                i,
                int32_t(starts[3] + end.counters - its.counters)};
        };
        constexpr int FEW = 4;
        for (int i = 0; i < own.parts && own.parts <= FEW; ++i)
            write(row, begin, length, own, upto, i);
        for (unsigned many = __ballot_sync(ALL_LANES, own.parts > FEW); many != 0;
             many &= many - 1) {
            const int owner = __ffs(many) - 1;
            const int64_t from = __shfl_sync(ALL_LANES, begin, owner);
            const int64_t entries = __shfl_sync(ALL_LANES, length, owner);
            const Listed end = upto.from(owner), its = own.from(owner);
            for (int i = lane; i < its.parts; i += 32)
                write(row - lane + owner, from, entries, its, end, i);
        }
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    __threadfence();
    if (atomicInc(state, gridDim.x - 1) != gridDim.x - 1)
        return;
    lengths[0] = atomicExch(state + SHARED, 0u);
    lengths[1] = atomicExch(state + PARTS, 0u);
    state[SLOTS] = state[COUNTERS] = 0;
}

// Turns the windows' counts into exclusive sums, and writes the length of each list to
// lengths[list]. Grid: one block of 1,024 threads per list.
extern "C" __global__ void __launch_bounds__(1024)
    spmm_tasks_scan(int64_t *counts, int64_t windows, int64_t *lengths) {
    scan_array(counts + int64_t(blockIdx.x) * (windows + 1), windows, lengths + blockIdx.x);
}

// Most entries of a row that are counted.
constexpr int64_t MOST_OF_ROW = 1 << 16;

// Adds to counts[b], for every `step`-th row, the number of entries that are at a distance d from
// the diagonal (scaled to the matrix's shape) with b = floor(4 log2(1 + d)). The logarithm is taken
// as linear between powers of two: b is the exponent and 2 bits of the mantissa of 1 + d as a
// float. The pattern may be invalid: columns outside of the matrix are not counted, and of each row
// only the first MOST_OF_ROW entries are, since a wrong offset may make a row as long as all.
template <class J>
__device__ __forceinline__ void reach(const void *offsets, int64_t wide, const J *indices,
                                      int64_t base, int64_t rows, int64_t cols, int64_t nnz,
                                      int64_t step, unsigned long long *counts) {
    __shared__ unsigned bins[WINDOW];
    bins[threadIdx.x] = 0;
    __syncthreads();
    const int64_t row = (int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32) * step;
    if (row < rows) {
        const auto at = [&](int64_t i) {
            return clamped_offset(Offsets{offsets, wide}.at(i), base, nnz);
        };
        const int64_t begin = at(row), end = min(at(row + 1), begin + MOST_OF_ROW);
        const int64_t diagonal = int64_t(double(row) / double(rows) * double(cols));
        for (int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
            const int64_t column = less_base(indices[i], base);
            if (column < 0 || column >= cols)
                continue;
            const float distance = float(1 + abs(column - diagonal));
            atomicAdd(&bins[(__float_as_uint(distance) >> 21) - (127 << 2)], 1u);
        }
    }
    __syncthreads();
    if (bins[threadIdx.x] > 0)
        atomicAdd(&counts[threadIdx.x], static_cast<unsigned long long>(bins[threadIdx.x]));
}

#define KERNEL_reach(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(WINDOW)                                           \
        name(const void *offsets, int64_t wide, const int##J##_t *indices, int64_t base,           \
             int64_t rows, int64_t cols, int64_t nnz, int64_t step, unsigned long long *counts) {  \
        let_next_begin();                                                                          \
        reach<int##J##_t>(offsets, wide, indices, base, rows, cols, nnz, step, counts);            \
        end_after_previous();                                                                      \
    }
KERNELS(reach, (), (spmm_reach_32, 32), (spmm_reach_64, 64))
