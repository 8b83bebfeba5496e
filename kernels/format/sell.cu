// Builds the slices of src/format/warp_sell.rs, which describes the arrays and has a CPU
// implementation of the same rules.
//
// Order of the kernels: those of shared.cu (only if rows may share columns), sell_order,
// scan_windows, sell_heads, sell_measure, sell_columns, scan_windows; then the host knows all
// sizes, and sell_fill comes last. The kernels of this file begin early, and wait for the one
// before them in their first statement.

#include "format/bits.cuh"
#include "format/warp_sell.cuh"
#include "format/windows.cuh"
#include "ptx/launch.cuh"
#include "ptx/stores.cuh"
#include "ptx/warp.cuh"

#include <cstring>
#include <type_traits>

namespace tarsia::convert {

using namespace warp_sell;

// log2 of the largest number of lanes of an item.
constexpr int MOST_LANES_LOG2 = 5;
// Largest length that `order` stores; longer rows are cut into parts.
constexpr int MOST_LENGTH = 0xffff;

// Number of parts of a long row that a thread block multiplies.
constexpr int BLOCK_PARTS = 4;

struct Rules {
    int64_t rows;
    // σ (rows of a window), K (rows of an item with shared columns), and the number of entries per
    // lane above which an item takes more lanes.
    int32_t window, item_rows, entries;
    // log2 of the columns of a lane in one step.
    int32_t group_log2;
    // log2 of the most entries of a row that is not cut into parts, and of a part.
    int32_t limit_log2;
    // True if slices may end with half a step.
    int32_t halves;

    __device__ __forceinline__ int group() const { return 1 << group_log2; }
    __device__ __forceinline__ int limit() const { return 1 << limit_log2; }
    __device__ __forceinline__ int64_t windows() const { return (rows + window - 1) / window; }
};

// Counts of each window, later their exclusive sums; the totals are behind the last window.
struct Counts {
    // Slices other than parts, thread blocks of long rows, and units of 32 values.
    int64_t *slices, *blocks, *values;
    // Items of K rows (in the high half), and all items.
    int64_t *several;
};

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

struct Steps {
    int full;
    bool half;

    __device__ __forceinline__ int slots(int group) const {
        return full * group + (half ? group / 2 : 0);
    }
};
__device__ __forceinline__ Steps steps_of(const Rules &rules, int64_t length, int lanes_log2) {
    const int log2 = rules.group_log2 + lanes_log2;
    const int full = int(length >> log2), rest = int(length & ((1 << log2) - 1));
    if (rest == 0)
        return {full, false};
    if (rules.halves && rest <= 1 << (log2 - 1))
        return {full, true};
    return {full + 1, false};
}

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

// Sorts the window's items and counts the slices, long-row blocks and values that they make. One
// block per window.
template <class O>
__device__ void order_items(const O *offsets, const uint8_t *same, Rules rules, uint32_t *order,
                            Counts counts) {
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
}

// Writes slice heads except for their columns. `counts` holds exclusive sums by now. One block per
// window.
template <class O>
__device__ void make_heads(const O *offsets, const uint32_t *order, Rules rules, Counts counts,
                           SliceHead *heads) {
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
    int64_t slice = counts.blocks[rules.windows()] * BLOCK_PARTS + counts.slices[number];
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

// Entries of a lane's item: its first row, the position of that row's (or part's) first entry,
// their number, and the lane's rank in the item.
struct Lane {
    int64_t row, start;
    int length, rank;
};

template <class O>
__device__ __forceinline__ Lane lane_of(const O *offsets, int64_t base, const uint32_t *order,
                                        const SliceHead *heads, int64_t slice,
                                        const SliceHead &head) {
    const int lane = threadIdx.x % WARP, item = lane >> head.lanes_log2;
    Lane out = {0, 0, 0, lane & ((1 << head.lanes_log2) - 1)};
    if (item >= head.items)
        return out;
    int64_t before = 0;
    if (head.flags & EVEN) {
        out.row = int64_t(head.row) + item;
        out.length = head.length;
    } else if (head.flags & PART) {
        // All parts before this one are as long as the first.
        const int64_t first = int64_t(head.place) * BLOCK_PARTS;
        out.row = head.row;
        before = (slice - first) * heads[first].length;
        out.length = head.length;
    } else {
        const uint32_t word = order[int64_t(head.place) + item];
        out.row = int64_t(head.row) + (word & 0xffff);
        out.length = int(word >> 16);
    }
    out.start = int64_t(offsets[out.row]) - base + before;
    return out;
}

// Number of column slots that a lane has in flight.
constexpr int FOUR = 4;

// Calls f(slot, count, width, columns) for the lane's column slots, up to four at a time. Slot + i,
// i < count, holds entry columns[i] of the item, or padding if that is −1. The half step comes
// first, as slot −1 with width 1; other slots count from behind it. All lanes of the warp call
// this.
template <class Function>
__device__ __forceinline__ void for_each_four(const Rules &rules, const SliceHead &head,
                                              const Lane &lane, Function f) {
    const bool half = head.flags & HALF;
    if (half) {
        const int columns[FOUR] = {lane.rank < lane.length ? lane.rank : -1, -1, -1, -1};
        f(-1, 1, 1, columns);
    }
    const int before = half ? 1 << head.lanes_log2 : 0, slots = head.steps << rules.group_log2;
    for (int slot = 0; slot < slots; slot += FOUR) {
        int columns[FOUR];
#pragma unroll
        for (int i = 0; i < FOUR; ++i) {
            const int step = (slot + i) >> rules.group_log2, v = i & (rules.group() - 1);
            const int column =
                before + (((step << head.lanes_log2) + lane.rank) << rules.group_log2) + v;
            columns[i] = slot + i < slots && column < lane.length ? column : -1;
        }
        f(slot, min(FOUR, slots - slot), rules.group(), columns);
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
                               const uint32_t *order, Rules rules, const int64_t *slices,
                               const int64_t *blocks, SliceHead *heads) {
    const int64_t slice = first_item() / WARP;
    if (slice >= *slices + *blocks * BLOCK_PARTS)
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
__device__ void place_columns(Rules rules, const int64_t *slices, const int64_t *blocks,
                              SliceHead *heads, int64_t *narrow, int64_t *wide) {
    const int lane = threadIdx.x % WARP;
    const int64_t all_parts = blocks[rules.windows()] * BLOCK_PARTS;
    for (int64_t number = first_item() / WARP; number < rules.windows();
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
            narrow[number] = before[0];
            wide[number] = before[1];
        }
    }
}

// Stores `first`, and if `both` also `second` behind it. Pairs are aligned to their size, but to 16
// bytes at most, since allocators promise no more.
template <class T> __device__ __forceinline__ void store_pair(T *to, T first, T second, bool both) {
    if (!both) {
        *to = first;
    } else if constexpr (sizeof(T) == 2) {
        *reinterpret_cast<uint32_t *>(to) = uint32_t(first) | uint32_t(second) << 16;
    } else if constexpr (sizeof(T) <= 8) {
        std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> a, b;
        memcpy(&a, &first, sizeof(T));
        memcpy(&b, &second, sizeof(T));
        store_two(to, a, b);
    } else {
        to[0] = first;
        to[1] = second;
    }
}

// Writes values, columns, and the position in the user's array of each value (−1 for padding).
// `positions` is NULL if it is not wanted; `from` is NULL if values are in the order of entries.
// `values` and `out_values` are NULL if no values are stored. One warp per slice.
template <class Value, class O, class J, class Position>
__device__ void fill_slices(const O *offsets, const J *indices, const Value *values, int64_t base,
                            const uint32_t *order, Rules rules, int64_t slices,
                            const int64_t *narrow_before, const int64_t *wide_before,
                            SliceHead *heads, Value *out_values, uint16_t *narrow, uint32_t *wide,
                            const uint64_t *from, Position *positions) {
    const int64_t slice = first_item() / WARP;
    if (slice >= slices)
        return;
    SliceHead head = heads[slice];
    const int number = threadIdx.x % WARP, rows = head.flags & ROWS ? rules.item_rows : 1;
    const Lane lane = lane_of(offsets, base, order, heads, slice, head);
    const bool is_wide = head.flags & WIDE;
    const int64_t unit = (is_wide ? wide_before : narrow_before)[head.window] + head.columns;
    __syncwarp();
    if (number == 0)
        heads[slice].columns = uint32_t(unit);
    const int64_t at = int64_t(head.first) * WARP, columns = unit * WARP;
    // Distance between the rows of an item, which follow each other and have the same length.
    const int64_t stride = lane.length;
    // Number of half steps, which are stored before the full ones.
    const int half = head.flags & HALF ? 1 : 0;
    for_each_four(
        rules, head, lane, [&](int slot, int count, int width, const int(&entries)[FOUR]) {
            uint32_t column[FOUR];
#pragma unroll
            for (int i = 0; i < FOUR; ++i) {
                column[i] = 0;
                if (entries[i] >= 0)
                    column[i] =
                        uint32_t(int64_t(indices[lane.start + entries[i]]) - base - head.base);
            }
            // Number of a lane's slots before the group of slot i.
            const auto before = [&](int i) { return slot < 0 ? 0 : half + ((slot + i) & -width); };
            for (int k = 0; k < rows; ++k) {
                const int64_t start = lane.start + k * stride;
                const auto place = [&](int i) {
                    return at + int64_t(before(i)) * rows * WARP + (k * WARP + number) * width +
                           (i & (width - 1));
                };
                if (out_values) {
                    Value value[FOUR];
#pragma unroll
                    for (int i = 0; i < FOUR; ++i) {
                        value[i] = Value{};
                        if (entries[i] >= 0)
                            value[i] = values[start + entries[i]];
                    }
#pragma unroll
                    for (int i = 0; i < FOUR; i += 2) {
                        if (i < count)
                            store_pair(out_values + place(i), value[i], value[i + 1], slot >= 0);
                    }
                }
                if (positions) {
                    Position position[FOUR];
#pragma unroll
                    for (int i = 0; i < FOUR; ++i) {
                        const int64_t source = start + entries[i];
                        position[i] = ~Position(0);
                        if (entries[i] >= 0)
                            position[i] = Position(from ? from[source] : uint64_t(source));
                    }
#pragma unroll
                    for (int i = 0; i < FOUR; i += 2) {
                        if (i < count)
                            store_pair(positions + place(i), position[i], position[i + 1],
                                       slot >= 0);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < FOUR; i += 2) {
                if (i >= count)
                    break;
                const int v = i & (width - 1);
                const int64_t to = columns + int64_t(before(i)) * WARP + number * width + v;
                if (is_wide) {
                    store_pair(wide + to, column[i], column[i + 1], slot >= 0);
                } else if (head.flags & RUNS) {
                    // A half step stores one column with a 0 behind it.
                    const int64_t run =
                        columns + (slot < 0 ? 0 : (half << rules.group_log2) + slot + i);
                    if (number == 0)
                        store_pair(narrow + run, uint16_t(column[i]), uint16_t(column[i + 1]),
                                   true);
                } else if (head.flags & ADJACENT) {
                    const int step = slot < 0 ? 0 : half + ((slot + i) >> rules.group_log2);
                    if (v == 0)
                        narrow[columns + int64_t(step) * WARP + number] = uint16_t(column[i]);
                } else {
                    store_pair(narrow + to, uint16_t(column[i]), uint16_t(column[i + 1]),
                               slot >= 0);
                }
            }
        });
    const int last = ((head.steps + half) << rules.group_log2) - 1;
    // Zeros behind the last run, up to a multiple of 32.
    if (head.flags & RUNS && last + 1 + number < (last / WARP + 1) * WARP)
        narrow[columns + last + 1 + number] = 0;
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

// Without the explicit minimum of blocks, ptxas spills in some of these kernels to fit more warps.
// Fill kernels are bound by memory latency and get more blocks.
#define GLOBAL extern "C" __global__ void __launch_bounds__(convert::THREADS, 2)
#define FILLS extern "C" __global__ void __launch_bounds__(convert::THREADS, 4)
#define RULES                                                                                      \
    int64_t rows, int32_t window, int32_t item_rows, int32_t entries, int32_t group_log2,          \
        int32_t limit_log2, int32_t halves
#define GIVEN                                                                                      \
    Rules { rows, window, item_rows, entries, group_log2, limit_log2, halves }
// Grid: one block per window.
#define KERNEL_order(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint8_t *same, RULES, uint32_t *order,            \
                int64_t *slices, int64_t *blocks, int64_t *values, int64_t *several) {             \
        wait_for_previous();                                                                       \
        order_items(offsets, same, GIVEN, order, {slices, blocks, values, several});               \
    }
KERNELS(order, (), (sell_order_32, 32), (sell_order_64, 64))
#define KERNEL_heads(name, O)                                                                      \
    GLOBAL name(const int##O##_t *offsets, const uint32_t *order, RULES, int64_t *slices,          \
                int64_t *blocks, int64_t *values, int64_t *several, SliceHead *heads) {            \
        wait_for_previous();                                                                       \
        make_heads(offsets, order, GIVEN, {slices, blocks, values, several}, heads);               \
    }
KERNELS(heads, (), (sell_heads_32, 32), (sell_heads_64, 64))
// Grid: one block of 1,024 threads per array.
extern "C" __global__ void __launch_bounds__(1024)
    scan_windows(int64_t *arrays, int64_t windows, int64_t *sums) {
    wait_for_previous();
    scan_array(arrays + int64_t(blockIdx.x) * (windows + 1), windows, sums + blockIdx.x);
}
// Grid: any number of blocks.
GLOBAL sell_columns(RULES, const int64_t *slices, const int64_t *blocks, SliceHead *heads,
                    int64_t *narrow, int64_t *wide) {
    wait_for_previous();
    place_columns(GIVEN, slices, blocks, heads, narrow, wide);
}
// Grid: at least ceil(slices · WARP / THREADS) blocks.
#define KERNEL_measure(name, O, J)                                                                 \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base,                \
                const uint32_t *order, RULES, const int64_t *slices, const int64_t *blocks,        \
                SliceHead *heads) {                                                                \
        wait_for_previous();                                                                       \
        measure_slices(offsets, indices, base, order, GIVEN, slices, blocks, heads);               \
    }
KERNELS(measure, (), (sell_measure_32_32, 32, 32), (sell_measure_64_32, 64, 32),
        (sell_measure_64_64, 64, 64))
#define KERNEL_fill(name, bits, O, J, P)                                                           \
    FILLS name(const int##O##_t *offsets, const int##J##_t *indices, const BITS_##bits *values,    \
               int64_t base, const uint32_t *order, RULES, int64_t slices,                         \
               const int64_t *narrow_before, const int64_t *wide_before, SliceHead *heads,         \
               BITS_##bits *out_values, uint16_t *narrow, uint32_t *wide, const uint64_t *from,    \
               uint##P##_t *positions) {                                                           \
        wait_for_previous();                                                                       \
        fill_slices(offsets, indices, values, base, order, GIVEN, slices, narrow_before,           \
                    wide_before, heads, out_values, narrow, wide, from, positions);                \
    }
KERNELS(fill, (16), (sell_fill_16_32_32_u32, 32, 32, 32), (sell_fill_16_64_32_u32, 64, 32, 32),
        (sell_fill_16_64_32_u64, 64, 32, 64), (sell_fill_16_64_64_u32, 64, 64, 32),
        (sell_fill_16_64_64_u64, 64, 64, 64))
KERNELS(fill, (32), (sell_fill_32_32_32_u32, 32, 32, 32), (sell_fill_32_64_32_u32, 64, 32, 32),
        (sell_fill_32_64_32_u64, 64, 32, 64), (sell_fill_32_64_64_u32, 64, 64, 32),
        (sell_fill_32_64_64_u64, 64, 64, 64))
KERNELS(fill, (64), (sell_fill_64_32_32_u32, 32, 32, 32), (sell_fill_64_64_32_u32, 64, 32, 32),
        (sell_fill_64_64_32_u64, 64, 32, 64), (sell_fill_64_64_64_u32, 64, 64, 32),
        (sell_fill_64_64_64_u64, 64, 64, 64))
KERNELS(fill, (32x2), (sell_fill_32x2_32_32_u32, 32, 32, 32),
        (sell_fill_32x2_64_32_u32, 64, 32, 32), (sell_fill_32x2_64_32_u64, 64, 32, 64),
        (sell_fill_32x2_64_64_u32, 64, 64, 32), (sell_fill_32x2_64_64_u64, 64, 64, 64))
KERNELS(fill, (64x2), (sell_fill_64x2_32_32_u32, 32, 32, 32),
        (sell_fill_64x2_64_32_u32, 64, 32, 32), (sell_fill_64x2_64_32_u64, 64, 32, 64),
        (sell_fill_64x2_64_64_u32, 64, 64, 32), (sell_fill_64x2_64_64_u64, 64, 64, 64))
