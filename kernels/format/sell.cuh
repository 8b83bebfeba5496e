// Rules, counts and lanes of the slices of src/format/warp_sell.rs, which describes the arrays and
// has a CPU implementation of the same rules. Shared by the kernels that make the heads (sell.cu)
// and those that make the other arrays (sell_fill.cu).
#pragma once

#include "format/warp_sell.cuh"
#include "format/windows.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"

namespace tarsia::convert {

using namespace warp_sell;

// log2 of the largest number of lanes of an item.
constexpr int MOST_LANES_LOG2 = 5;
// Largest length that `order` stores; longer rows are cut into parts.
constexpr int MOST_LENGTH = 0xffff;

// Number of parts of a long row that a thread block multiplies.
constexpr int BLOCK_PARTS = 4;

struct Rules {
    int64_t rows, windows;
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
};

// Arrays of a number per window: first a count, after scan_arrays the sum over the windows before,
// and the total behind the last window. The arrays are in the order of
// src/backend/cuda/spmv/sell.rs (`count`).
struct Counts {
    // Slices other than parts, thread blocks of long rows, units of 32 values, and units of 32
    // narrow and 32 wide columns.
    int64_t *slices, *blocks, *values, *narrow, *wide;
    // Items of K rows (in the high half), and all items; these are not replaced by sums.
    int64_t *several;

    __device__ Counts(int64_t *counts, int64_t windows)
        : slices(counts), blocks(slices + windows + 1), values(blocks + windows + 1),
          narrow(values + windows + 1), wide(narrow + windows + 1), several(wide + windows + 1) {}
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

} // namespace tarsia::convert
