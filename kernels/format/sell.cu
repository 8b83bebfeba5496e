// Builds the heads of the slices of src/format/warp_sell.rs, which describes the arrays and has a
// CPU implementation of the same rules.
//
// Order of the kernels: those of shared.cu (only if rows may share columns), sell_order,
// sell_heads, sell_measure, sell_columns; then the host knows all sizes, and launches a kernel of
// sell_fill.cu. The kernels begin early, and wait for the one before them in their first statement.

#include "common/kernels.cuh"
#include "common/last_block.cuh"
#include "format/sell.cuh"

namespace tarsia::convert {

// Replaces the first n numbers of each array by their exclusive sums, and puts the total behind
// them. Called by all threads of one block, each of which takes ceil(n / THREADS) neighbouring
// numbers of each array.
template <int N> __device__ void scan_arrays(int64_t *const (&arrays)[N], int64_t n) {
    constexpr int WARPS = THREADS / WARP;
    __shared__ int64_t of_warps[N][WARPS];
    const int warp = threadIdx.x / WARP;
    const int64_t each = (n + THREADS - 1) / THREADS;
    const int64_t first = min(n, threadIdx.x * each), end = min(n, first + each);
    int64_t own[N] = {}, upto[N];
    for (int64_t at = first; at < end; ++at)
#pragma unroll
        for (int i = 0; i < N; ++i)
            own[i] += arrays[i][at];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        upto[i] = prefix_sum(own[i]);
        if (threadIdx.x % WARP == WARP - 1)
            of_warps[i][warp] = upto[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i) {
        int64_t before = upto[i] - own[i], all = 0;
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const int64_t of_warp = of_warps[i][w];
            before += w < warp ? of_warp : 0;
            all += of_warp;
        }
        for (int64_t at = first; at < end; ++at) {
            const int64_t count = each == 1 ? own[i] : arrays[i][at];
            arrays[i][at] = before;
            before += count;
        }
        if (threadIdx.x == 0)
            arrays[i][n] = all;
    }
}

// Range of a window's sorted items that are all of one kind: of K rows, or of a single row.
struct Kind {
    // Positions of the items in the window.
    int begin, end;
    int rows;
};

// Division of the items of one kind into slices.
struct Slices {
    int begin, end;
    // For 5, 4, … 0 as log2 of the lanes of an item: position of the first such item, and number of
    // slices before it.
    int place[MOST_LANES_LOG2 + 2], before[MOST_LANES_LOG2 + 2];
};

// Division of a long row into parts.
struct Cut {
    // Number of thread blocks and of full parts; entries of a full part, and of the part behind
    // them.
    int64_t blocks, full;
    int part, rest;

    // Number of units of 32 values before part i.
    __device__ __forceinline__ int64_t units_before(const Rules &rules, int64_t i) const {
        const int64_t whole = min(i, full) * (part / WARP);
        return i <= full ? whole
                         : whole + steps_of(rules, rest, MOST_LANES_LOG2).slots(rules.group());
    }
};
__device__ __forceinline__ Cut cut(const Rules &rules, int64_t length) {
    const int64_t most = int64_t(BLOCK_PARTS) << rules.limit_log2;
    const int64_t blocks = (length + most - 1) / most, parts = blocks * BLOCK_PARTS;
    const int64_t step = WARP << rules.group_log2;
    const int64_t part = ((length + parts - 1) / parts + step - 1) / step * step;
    return {blocks, length / part, int(part), int(length % part)};
}

// First position of [low, high) with at most this many entries; entries descend.
template <class Function>
__device__ __forceinline__ int first_at_most(int low, int high, int64_t entries,
                                             Function entries_at) {
    while (low < high) {
        const int middle = (low + high) / 2;
        if (entries_at(middle) > entries) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

template <class Function>
__device__ void slices_of(const Rules &rules, const Kind &kind, Function length_at, Slices &out) {
    out.begin = kind.begin;
    out.end = kind.end;
    int place = kind.begin, before = 0;
#pragma unroll 1
    for (int i = 0; i <= MOST_LANES_LOG2; ++i) {
        const int lanes_log2 = MOST_LANES_LOG2 - i;
        out.place[i] = place;
        out.before[i] = before;
        int stop = kind.end;
        if (lanes_log2 > 0)
            stop = first_at_most(place, kind.end, int64_t(rules.entries) << (lanes_log2 - 1),
                                 [&](int at) { return int64_t(length_at(at)) * kind.rows; });
        const int slices = (stop - place + (1 << i) - 1) >> i;
        before += slices;
        // The last slice may also take items for which fewer lanes would do.
        place = min(place + (slices << i), kind.end);
    }
    out.place[MOST_LANES_LOG2 + 1] = place;
    out.before[MOST_LANES_LOG2 + 1] = before;
}

// Slice of one kind of items: position of its first item, number of items, lanes of each, steps.
struct Slice {
    int place, items, lanes_log2;
    Steps steps;
};
template <class Function>
__device__ __forceinline__ Slice slice_at(const Rules &rules, const Slices &slices, int number,
                                          Function length_at) {
    int i = 0;
    while (number >= slices.before[i + 1])
        ++i;
    Slice out;
    out.place = slices.place[i] + ((number - slices.before[i]) << i);
    out.lanes_log2 = MOST_LANES_LOG2 - i;
    const int left = slices.end - out.place;
    const int longest = length_at(out.place);
    // The last items take more lanes as long as each lane has something to do.
    while (out.lanes_log2 < MOST_LANES_LOG2 && left <= WARP >> (out.lanes_log2 + 1) &&
           longest > rules.group() << out.lanes_log2) {
        ++out.lanes_log2;
    }
    out.items = min(left, WARP >> out.lanes_log2);
    out.steps = steps_of(rules, longest, out.lanes_log2);
    return out;
}

// Sort keys order single rows behind items of K rows, then lengths descending, then rows ascending.
constexpr int ROW_BITS = 10, SINGLE_BIT = 26;
constexpr uint32_t NO_ITEM = ~0u;
__device__ __forceinline__ int key_length(uint32_t key) {
    return MOST_LENGTH - int(key >> ROW_BITS & MOST_LENGTH);
}

// Slices of both kinds of items, and positions of long rows; in shared memory.
struct WindowSlices {
    Slices of[2];
    int long_begin, long_end;
};
// Computes the slices of a window with `several` items of K rows and `items` in all;
// length_at(position) reads shared memory.
template <class Function>
__device__ void find_slices(const Rules &rules, int several, int items, Function length_at,
                            WindowSlices &out) {
    if (threadIdx.x < 2) {
        const bool single = threadIdx.x == 1;
        int begin = single ? several : 0;
        if (single) {
            out.long_begin = begin;
            begin = first_at_most(begin, items, rules.limit(), length_at);
            out.long_end = begin;
        }
        const Kind kind = {begin, single ? items : several, single ? 1 : rules.item_rows};
        slices_of(rules, kind, length_at, out.of[threadIdx.x]);
    }
    __syncthreads();
}

// Sorts the window's items and counts the slices, long-row blocks and values that they make; the
// last block then turns the counts into exclusive sums. One block per window.
template <class O>
__device__ void order_items(const O *offsets, const uint8_t *same, const Rules &rules,
                            uint32_t *order, const Counts &counts, unsigned *arrived) {
    __shared__ uint32_t keys[MOST_ITEMS];
    __shared__ WindowSlices window_slices;
    const int64_t number = blockIdx.x, first = number * rules.window;
    const int rows = int(min(int64_t(rules.window), rules.rows - first));
    const int k = rules.item_rows;
    // First row of the run of equal rows that each of the thread's rows belongs to.
    int start[OF_THREAD], latest = -1;
    const auto follows = [&](int row) {
        return k > 1 && row > 0 && row < rows && same[first + row];
    };
    for (int i = 0; i < OF_THREAD; ++i) {
        const int row = int(threadIdx.x) * OF_THREAD + i;
        if (!follows(row))
            latest = row;
        start[i] = latest;
    }
    const int before = latest_before(latest);
    int several = 0, items = 0;
    for (int i = 0; i < OF_THREAD; ++i) {
        const int row = int(threadIdx.x) * OF_THREAD + i;
        uint32_t key = NO_ITEM;
        if (row < rows) {
            const int place = row - max(start[i], before), leader = row - place % k;
            bool is_one =
                k > 1 && leader + k <= rows && length_of(offsets, first + row) <= rules.limit();
            for (int j = 1; j < k && is_one; ++j)
                is_one = follows(leader + j);
            if (!is_one || row == leader) {
                const int length = int(min(length_of(offsets, first + row), int64_t(MOST_LENGTH)));
                key = uint32_t(!is_one) << SINGLE_BIT | uint32_t(MOST_LENGTH - length) << ROW_BITS |
                      uint32_t(row);
                ++items;
                several += is_one;
            }
        }
        keys[row] = key;
    }
    int64_t sums;
    sum_before(int64_t(several) << 32 | items, sums);
    several = int(sums >> 32);
    items = int(sums & 0xffffffff);
    sort_keys(keys);
    const auto length_at = [&](int place) { return key_length(keys[place]); };
    for (int place = threadIdx.x; place < rows; place += THREADS) {
        const uint32_t key = keys[place];
        const uint32_t row = key & ((1u << ROW_BITS) - 1);
        order[first + place] = place < items ? row | uint32_t(key_length(key)) << 16 : 0;
    }
    find_slices(rules, several, items, length_at, window_slices);
    int64_t blocks = 0, units = 0;
    for (int p = window_slices.long_begin + int(threadIdx.x); p < window_slices.long_end;
         p += THREADS) {
        const Cut of = cut(rules, length_of(offsets, first + (keys[p] & ((1u << ROW_BITS) - 1))));
        blocks += of.blocks;
        units += of.units_before(rules, of.blocks * BLOCK_PARTS);
    }
    int64_t slices = 0;
    for (int kind = 0; kind < 2; ++kind) {
        const Slices &of = window_slices.of[kind];
        const int count = of.before[MOST_LANES_LOG2 + 1];
        for (int i = threadIdx.x; i < count; i += THREADS) {
            const Slice slice = slice_at(rules, of, i, length_at);
            units += slice.steps.slots(rules.group()) * (kind == 0 ? k : 1);
        }
        slices += count;
    }
    int64_t all_blocks, all_units;
    sum_before(blocks, all_blocks);
    sum_before(units, all_units);
    if (threadIdx.x == 0) {
        counts.slices[number] = slices;
        counts.blocks[number] = all_blocks;
        counts.values[number] = all_units;
        counts.several[number] = int64_t(several) << 32 | items;
    }
    if (is_last_block(arrived))
        scan_arrays({counts.slices, counts.blocks, counts.values}, rules.windows);
}

// Writes slice heads except for their columns. `counts` holds exclusive sums by now. One block per
// window.
template <class O>
__device__ void make_heads(const O *offsets, const uint32_t *order, const Rules &rules,
                           const Counts &counts, SliceHead *heads) {
    __shared__ uint32_t words[MOST_ITEMS];
    __shared__ WindowSlices window_slices;
    const int64_t number = blockIdx.x, first = number * rules.window;
    const int several = int(counts.several[number] >> 32),
              items = int(counts.several[number] & 0xffffffff);
    for (int place = threadIdx.x; place < items; place += THREADS)
        words[place] = order[first + place];
    __syncthreads();
    const auto length_at = [&](int place) { return int(words[place] >> 16); };
    find_slices(rules, several, items, length_at, window_slices);
    int64_t block = counts.blocks[number], unit = counts.values[number];
    int64_t slice = counts.blocks[rules.windows] * BLOCK_PARTS + counts.slices[number];
    for (int p = window_slices.long_begin; p < window_slices.long_end; p += THREADS) {
        const int at = p + int(threadIdx.x);
        int64_t row = 0;
        Cut of = {0, 0, 1, 0};
        if (at < window_slices.long_end) {
            row = first + (words[at] & 0xffff);
            of = cut(rules, length_of(offsets, row));
        }
        const int64_t parts = of.blocks * BLOCK_PARTS;
        int64_t all_blocks, all_units;
        const int64_t before = block + sum_before(of.blocks, all_blocks);
        const int64_t units_before = unit + sum_before(of.units_before(rules, parts), all_units);
        for (int64_t i = 0; i < parts; ++i) {
            const int entries = i < of.full ? of.part : i == of.full ? of.rest : 0;
            const Steps steps = steps_of(rules, entries, MOST_LANES_LOG2);
            SliceHead head = {};
            head.first = uint32_t(units_before + of.units_before(rules, i));
            head.place = uint32_t(before);
            head.row = uint32_t(row);
            head.window = uint32_t(number);
            head.steps = uint16_t(steps.full);
            head.length = uint16_t(entries);
            head.lanes_log2 = MOST_LANES_LOG2;
            head.items = 1;
            head.flags =
                PART | (steps.half ? HALF : 0) | (i / BLOCK_PARTS + 1 == of.blocks ? LAST : 0);
            heads[before * BLOCK_PARTS + i] = head;
        }
        block += all_blocks;
        unit += all_units;
    }
    for (int kind = 0; kind < 2; ++kind) {
        const Slices &of = window_slices.of[kind];
        const int count = of.before[MOST_LANES_LOG2 + 1], rows = kind == 0 ? rules.item_rows : 1;
        for (int i = 0; i < count; i += THREADS) {
            const int at = i + int(threadIdx.x);
            Slice found = {};
            if (at < count)
                found = slice_at(rules, of, at, length_at);
            int64_t all;
            const int64_t before =
                unit + sum_before(int64_t(found.steps.slots(rules.group()) * rows), all);
            unit += all;
            if (at >= count)
                continue;
            SliceHead head = {};
            head.first = uint32_t(before);
            head.place = uint32_t(first + found.place);
            head.row = uint32_t(first);
            head.window = uint32_t(number);
            head.steps = uint16_t(found.steps.full);
            head.lanes_log2 = uint8_t(found.lanes_log2);
            head.items = uint8_t(found.items);
            head.flags = (kind == 0 ? ROWS : 0) | (found.steps.half ? HALF : 0);
            // Equal lengths keep their order, so these two words show that all 32 rows are
            // consecutive and equally long.
            const uint32_t word = words[found.place];
            if (kind == 1 && found.lanes_log2 == 0 && found.items == WARP &&
                words[found.place + WARP - 1] == word + (WARP - 1)) {
                head.row = uint32_t(first + (word & 0xffff));
                head.length = uint16_t(word >> 16);
                head.flags |= EVEN;
            }
            heads[slice + at] = head;
        }
        slice += count;
    }
}

__device__ __forceinline__ int64_t column_units(const Rules &rules, const SliceHead &head) {
    const Steps steps = {head.steps, (head.flags & HALF) != 0};
    const int all = steps.full + steps.half;
    if (head.flags & RUNS)
        return ((all << rules.group_log2) + WARP - 1) / WARP;
    return head.flags & ADJACENT ? all : steps.slots(rules.group());
}

// Chooses the form of each slice's columns and their base. One warp per slice.
template <class O, class J>
__device__ void measure_slices(const O *offsets, const J *indices, int64_t base,
                               const uint32_t *order, const Rules &rules, const Counts &counts,
                               SliceHead *heads) {
    const int64_t slice = first_item() / WARP, windows = rules.windows;
    if (slice >= counts.slices[windows] + counts.blocks[windows] * BLOCK_PARTS)
        return;
    SliceHead head = heads[slice];
    const Lane lane = lane_of(offsets, base, order, heads, slice, head);
    // Initial minimum and maximum; columns are less than 2^31.
    uint32_t low = ~0u, high = 0;
    const bool even = head.flags & EVEN;
    bool runs = even, adjacent = head.steps > 0;
    for_each_four(rules, head, lane, [&](int, int, int width, const int(&entries)[FOUR]) {
        uint32_t columns[FOUR];
#pragma unroll
        for (int i = 0; i < FOUR; ++i)
            columns[i] =
                entries[i] < 0 ? 0 : uint32_t(int64_t(indices[lane.start + entries[i]]) - base);
        // First column of the group that each slot is in.
        const uint32_t first[FOUR] = {columns[0], columns[width > 1 ? 0 : 1],
                                      columns[width > 2 ? 0 : 2],
                                      columns[width > 2   ? 0
                                              : width > 1 ? 2
                                                          : 3]};
#pragma unroll
        for (int i = 0; i < FOUR; ++i) {
            if (entries[i] >= 0) {
                low = min(low, columns[i]);
                high = max(high, columns[i]);
                adjacent &= columns[i] == first[i] + (i & (width - 1));
            }
            // All lanes of an even slice have the same number of entries, so all take part in the
            // shuffle.
            if (even) {
                const uint32_t of_lane_0 = __shfl_sync(ALL_LANES, columns[i], 0);
                runs &= entries[i] < 0 || columns[i] == of_lane_0 + threadIdx.x % WARP;
            }
        }
    });
    low = warp_min(low);
    high = warp_max(high);
    runs = __all_sync(ALL_LANES, runs);
    adjacent = __all_sync(ALL_LANES, adjacent);
    if (threadIdx.x % WARP != 0)
        return;
    if (low > high) {
        low = 0;
    } else if (high - low > 0xffff) {
        head.flags |= WIDE;
        low = 0;
    } else if (runs) {
        head.flags |= RUNS;
    } else if (adjacent) {
        head.flags |= ADJACENT;
    }
    head.base = low;
    heads[slice] = head;
}

// Computes where in its window each slice's columns start, and each window's units of narrow and of
// wide columns. One warp per window.
__device__ void place_columns(const Rules &rules, const Counts &counts, SliceHead *heads) {
    const int64_t *slices = counts.slices, *blocks = counts.blocks;
    const int lane = threadIdx.x % WARP;
    const int64_t all_parts = blocks[rules.windows] * BLOCK_PARTS;
    for (int64_t number = first_item() / WARP; number < rules.windows;
         number += grid_stride() / WARP) {
        int64_t before[2] = {0, 0};
        const auto place = [&](int64_t first, int64_t end) {
            for (; first < end; first += WARP) {
                const int64_t slice = first + lane;
                int64_t units[2] = {0, 0};
                bool is_wide = false;
                if (slice < end) {
                    const SliceHead head = heads[slice];
                    is_wide = head.flags & WIDE;
                    const int64_t count = column_units(rules, head);
                    units[0] = is_wide ? 0 : count;
                    units[1] = is_wide ? count : 0;
                }
#pragma unroll
                for (int w = 0; w < 2; ++w) {
                    const int64_t sum = before[w] + prefix_sum(units[w]);
                    if (slice < end && is_wide == (w == 1))
                        heads[slice].columns = uint32_t(sum - units[w]);
                    before[w] = __shfl_sync(ALL_LANES, sum, WARP - 1);
                }
            }
        };
        place(blocks[number] * BLOCK_PARTS, blocks[number + 1] * BLOCK_PARTS);
        place(all_parts + slices[number], all_parts + slices[number + 1]);
        if (lane == 0) {
            counts.narrow[number] = before[0];
            counts.wide[number] = before[1];
        }
    }
}

// Adds up the windows' units of columns, and brings all totals to the host. Called by one block
// after all blocks have written them.
__device__ void finish_counts(const Rules &rules, const Counts &counts, volatile uint64_t *out,
                              const Arrival &arrival) {
    const int64_t windows = rules.windows;
    scan_arrays({counts.narrow, counts.wide}, windows);
    __syncthreads();
    const int64_t *const totals[] = {counts.slices, counts.blocks, counts.values, counts.narrow,
                                     counts.wide};
    if (threadIdx.x == 0)
#pragma unroll
        for (int i = 0; i < 5; ++i)
            out[i] = uint64_t(totals[i][windows]);
    arrival.tell_host();
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

// Without the explicit minimum of blocks, ptxas spills in some of these kernels to fit more warps.
#define GLOBAL extern "C" __global__ void __launch_bounds__(convert::THREADS, 2)
// Grid: one block per window. `*arrived` is zero before and after the launch.
#define KERNEL_order(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint8_t *same, Rules rules, uint32_t *order,      \
                int64_t *counts, unsigned *arrived) {                                              \
        wait_for_previous();                                                                       \
        order_items(offsets, same, rules, order, {counts, rules.windows}, arrived);                \
    }
KERNELS(order, (), (sell_order_32, 32), (sell_order_64, 64))
// Grid: one block per window.
#define KERNEL_heads(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint32_t *order, Rules rules, int64_t *counts,    \
                SliceHead *heads) {                                                                \
        wait_for_previous();                                                                       \
        make_heads(offsets, order, rules, {counts, rules.windows}, heads);                         \
    }
KERNELS(heads, (), (sell_heads_32, 32), (sell_heads_64, 64))
// Grid: at least ceil(slices · WARP / THREADS) blocks.
#define KERNEL_measure(name, O, J)                                                                 \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base,                \
                const uint32_t *order, Rules rules, int64_t *counts, SliceHead *heads) {           \
        wait_for_previous();                                                                       \
        measure_slices(offsets, indices, base, order, rules, {counts, rules.windows}, heads);      \
    }
KERNELS(measure, (), (sell_measure_32_32, 32, 32), (sell_measure_64_32, 64, 32),
        (sell_measure_64_64, 64, 64))
// Grid: any number of blocks. `arrived` is as above; `out` is five words of the host's page, to
// which `arrival` belongs (src/backend/cuda/memory/readback.rs).
GLOBAL sell_columns(Rules rules, int64_t *counts, SliceHead *heads, unsigned *arrived,
                    volatile uint64_t *out, Arrival arrival) {
    wait_for_previous();
    const Counts of_windows(counts, rules.windows);
    place_columns(rules, of_windows, heads);
    if (is_last_block(arrived))
        finish_counts(rules, of_windows, out, arrival);
}
