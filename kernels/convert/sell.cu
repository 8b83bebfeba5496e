// Makes the slices of src/layout/warp_sell.rs, which describes the arrays and
// has the same rules as a program for the CPU. Rows have been sorted inside
// their windows by descending length, with the keys that are made here.

#include "convert/bits.cuh"

namespace tarsia::convert {

constexpr int WARP = 32;
constexpr int THREADS = 256;
// A row can have this many lanes.
constexpr int MOST_LANES_LOG2 = 5;
// Lengths in `order` end here; longer rows are cut into parts.
constexpr int64_t MOST_LENGTH = 0xffff;

// As src/layout/warp_sell.rs has them.
struct alignas(16) SliceHead {
    uint32_t first, base, place;
    uint16_t steps;
    uint8_t detail, flags;
};
constexpr int WIDE = 1, RUNS = 2, EVEN = 4, PART = 8;
struct alignas(16) PartHead {
    uint32_t row, first, count, counter;
};

struct Rules {
    int64_t rows;
    // σ, and the entries that a lane may have before a row takes more lanes.
    int32_t window_log2, entries;
    // Entries of a lane in a step.
    int32_t group_log2;
    // Entries of the longest row that is no sum of parts, and of a part.
    int32_t limit_log2;

    // Slots of a step.
    __device__ __forceinline__ int64_t step() const { return int64_t(WARP) << group_log2; }
    __device__ __forceinline__ int64_t limit() const { return int64_t(1) << limit_log2; }
};

__device__ __forceinline__ int64_t first_item() {
    return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t grid_stride() { return int64_t(gridDim.x) * blockDim.x; }
// ⌈a / 2^log2⌉: divisions would be calls.
__device__ __forceinline__ int64_t ceil_shift(int64_t a, int log2) {
    return (a + (int64_t(1) << log2) - 1) >> log2;
}

template <class O> __device__ __forceinline__ int64_t length_of(const O *offsets, int64_t row) {
    return int64_t(offsets[row + 1]) - int64_t(offsets[row]);
}

// Ascending keys are windows in order and, inside, lengths descending.
template <class K, class O>
__device__ void make_keys(const O *offsets, Rules rules, int32_t length_bits, int64_t longest,
                          K *keys, uint32_t *numbers) {
    for (int64_t row = first_item(); row < rules.rows; row += grid_stride()) {
        const int64_t length = min(length_of(offsets, row), longest);
        keys[row] =
            K(uint64_t(row >> rules.window_log2) << length_bits | uint64_t(longest - length));
        numbers[row] = uint32_t(row);
    }
}

// order[p] = row in its window, and its length; `numbers` NULL: 0, 1, 2, ….
template <class O>
__device__ void make_order(const O *offsets, const uint32_t *numbers, Rules rules,
                           uint32_t *order) {
    for (int64_t p = first_item(); p < rules.rows; p += grid_stride()) {
        const int64_t row = numbers ? numbers[p] : p;
        const int64_t inside = row & ((int64_t(1) << rules.window_log2) - 1);
        order[p] = uint32_t(inside | min(length_of(offsets, row), MOST_LENGTH) << 16);
    }
}

struct Window {
    int64_t first, end;
};
__device__ __forceinline__ Window window_of(const Rules &rules, int64_t number) {
    const int64_t first = number << rules.window_log2;
    return {first, min(first + (int64_t(1) << rules.window_log2), rules.rows)};
}

// The first place of [low, high) whose length is at most `length`.
__device__ __forceinline__ int64_t first_at_most(const uint32_t *order, int64_t low, int64_t high,
                                                 int64_t length) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (order[middle] >> 16 > length) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Calls f(log2 of the lanes a row, first place, slices) for the window's slices
// of rows from `place` on, those of most lanes first.
template <class F>
__device__ __forceinline__ void for_each_class(const uint32_t *order, const Rules &rules,
                                               int64_t place, int64_t end, F f) {
    for (int lanes_log2 = MOST_LANES_LOG2; lanes_log2 >= 0; --lanes_log2) {
        int64_t stop = end;
        if (lanes_log2 > 0) {
            const int64_t fewer = int64_t(rules.entries) << (lanes_log2 - 1);
            stop = first_at_most(order, place, end, fewer);
        }
        const int rows_log2 = MOST_LANES_LOG2 - lanes_log2;
        const int64_t slices = ceil_shift(stop - place, rows_log2);
        f(lanes_log2, place, slices);
        // The last slice may take rows that would do with fewer lanes.
        place = min(place + (slices << rows_log2), end);
    }
}

template <class T> __device__ __forceinline__ T sum_of_warp(T v) {
    for (int delta = WARP / 2; delta > 0; delta /= 2)
        v += __shfl_xor_sync(~0u, v, delta);
    return v;
}
__device__ __forceinline__ int64_t sum_of_lanes_before(int64_t v) {
    int64_t sum = v;
    for (int delta = 1; delta < WARP; delta *= 2) {
        const int64_t before = __shfl_up_sync(~0u, sum, delta);
        if (int(threadIdx.x) % WARP >= delta)
            sum += before;
    }
    return sum - v;
}

__device__ __forceinline__ int64_t row_at(const uint32_t *order, const Window &window, int64_t p) {
    return window.first + (order[p] & 0xffff);
}

// Slices, parts and long rows of each window: three arrays of counts. A warp a
// window.
template <class O>
__device__ void count_slices(const O *offsets, const uint32_t *order, Rules rules, int64_t windows,
                             int64_t *slices, int64_t *parts, int64_t *long_rows) {
    const int lane = threadIdx.x % WARP;
    for (int64_t number = first_item() / WARP; number < windows; number += grid_stride() / WARP) {
        const Window window = window_of(rules, number);
        const int64_t rest = first_at_most(order, window.first, window.end, rules.limit());
        int64_t pieces = 0;
        for (int64_t p = window.first + lane; p < rest; p += WARP)
            pieces += ceil_shift(length_of(offsets, row_at(order, window, p)), rules.limit_log2);
        pieces = sum_of_warp(pieces);
        int64_t count = pieces;
        for_each_class(order, rules, rest, window.end,
                       [&](int, int64_t, int64_t more) { count += more; });
        if (lane == 0) {
            slices[number] = count;
            parts[number] = pieces;
            long_rows[number] = rest - window.first;
        }
    }
}

// Heads but for where values and columns are, and the steps of each slice. The
// arrays of the windows have what comes before each now. A warp a window.
template <class O>
__device__ void make_heads(const O *offsets, const uint32_t *order, Rules rules, int64_t windows,
                           const int64_t *slices, const int64_t *parts, const int64_t *long_rows,
                           SliceHead *heads, PartHead *part_heads, int64_t *steps) {
    const int lane = threadIdx.x % WARP;
    for (int64_t number = first_item() / WARP; number < windows; number += grid_stride() / WARP) {
        const Window window = window_of(rules, number);
        const int64_t rest = first_at_most(order, window.first, window.end, rules.limit());
        int64_t slice = slices[number], part = parts[number];
        for (int64_t p = window.first; p < rest; p += WARP) {
            int64_t row = 0, length = 0;
            if (p + lane < rest) {
                row = row_at(order, window, p + lane);
                length = length_of(offsets, row);
            }
            const int64_t pieces = ceil_shift(length, rules.limit_log2);
            const int64_t before = sum_of_lanes_before(pieces);
            for (int64_t i = 0; i < pieces; ++i) {
                const int64_t entries = min(rules.limit(), length - (i << rules.limit_log2));
                const int64_t count = ceil_shift(entries, MOST_LANES_LOG2 + rules.group_log2);
                part_heads[part + before + i] = {
                    uint32_t(row), uint32_t(part + before), uint32_t(pieces),
                    uint32_t(long_rows[number] + p - window.first + lane)};
                heads[slice + before + i] = {0,
                                             0,
                                             uint32_t(part + before + i),
                                             uint16_t(count),
                                             uint8_t(count * rules.step() - entries),
                                             PART};
                steps[slice + before + i] = count;
            }
            const int64_t all = __shfl_sync(~0u, before + pieces, WARP - 1);
            slice += all;
            part += all;
        }
        for_each_class(
            order, rules, rest, window.end, [&](int lanes_log2, int64_t place, int64_t count) {
                const int64_t rows = WARP >> lanes_log2;
                for (int64_t i = lane; i < count; i += WARP) {
                    const int64_t p = place + i * rows, length = order[p] >> 16;
                    SliceHead head = {0, 0, uint32_t(p), 0, uint8_t(lanes_log2), 0};
                    head.steps = uint16_t(ceil_shift(length, rules.group_log2 + lanes_log2));
                    // Equal lengths keep their order: rows that follow each other.
                    if (lanes_log2 == 0 && p + WARP <= window.end &&
                        order[p + WARP - 1] == order[p] + (WARP - 1)) {
                        head.place = uint32_t(row_at(order, window, p));
                        head.detail = uint8_t((int64_t(head.steps) << rules.group_log2) - length);
                        head.flags = EVEN;
                    }
                    heads[slice + i] = head;
                    steps[slice + i] = head.steps;
                }
                slice += count;
            });
    }
}

// What a lane has of the row that starts at `start` in the rows' arrays.
struct Lane {
    int64_t start;
    int length, rank, lanes_log2;
};

template <class O>
__device__ __forceinline__ Lane lane_of(const O *offsets, int64_t base, const uint32_t *order,
                                        const PartHead *parts, const Rules &rules,
                                        const SliceHead &head) {
    const int lane = threadIdx.x % WARP;
    if (head.flags & EVEN) {
        const int64_t row = int64_t(head.place) + lane;
        return {int64_t(offsets[row]) - base, (int(head.steps) << rules.group_log2) - head.detail,
                0, 0};
    }
    if (head.flags & PART) {
        const PartHead part = parts[head.place];
        const int64_t before = int64_t(head.place - part.first) << rules.limit_log2;
        return {int64_t(offsets[part.row]) - base + before,
                int(head.steps * rules.step()) - head.detail, lane, MOST_LANES_LOG2};
    }
    const int lanes_log2 = head.detail;
    const Window window = window_of(rules, int64_t(head.place) >> rules.window_log2);
    const int64_t place = int64_t(head.place) + (lane >> lanes_log2);
    Lane out = {0, 0, lane & ((1 << lanes_log2) - 1), lanes_log2};
    if (place < window.end) {
        out.start = int64_t(offsets[row_at(order, window, place)]) - base;
        out.length = int(order[place] >> 16);
    }
    return out;
}

// Calls f(step, v, entry) for each of the lane's slots in [0, steps); entry is
// −1 where it has none.
template <class F>
__device__ __forceinline__ void for_each_slot(const Rules &rules, const Lane &lane, int steps,
                                              F f) {
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
        const int k = ((step << lane.lanes_log2) + lane.rank) << rules.group_log2;
        for (int v = 0; v < 1 << rules.group_log2; ++v)
            f(step, v, k + v < lane.length ? lane.start + k + v : int64_t(-1));
    }
}

// Where each slice's values start, what its columns count from and their form,
// and the steps of wide ones. A warp a slice.
template <class O, class J>
__device__ void measure_slices(const O *offsets, const J *indices, int64_t base,
                               const uint32_t *order, const PartHead *parts, Rules rules,
                               int64_t slices, const int64_t *firsts, SliceHead *heads,
                               int64_t *wide_steps) {
    const int64_t slice = first_item() / WARP;
    if (slice >= slices)
        return;
    SliceHead head = heads[slice];
    const Lane lane = lane_of(offsets, base, order, parts, rules, head);
    // Columns are less than 2^31.
    uint32_t low = ~0u, high = 0;
    bool runs = head.flags & EVEN;
    for_each_slot(rules, lane, head.steps, [&](int, int, int64_t entry) {
        uint32_t column = 0;
        if (entry >= 0) {
            column = uint32_t(int64_t(indices[entry]) - base);
            low = min(low, column);
            high = max(high, column);
        }
        // Lanes of an even slice have the same number of entries.
        const uint32_t first = __shfl_sync(~0u, column, 0);
        runs &= entry < 0 || column == first + threadIdx.x % WARP;
    });
    for (int delta = WARP / 2; delta > 0; delta /= 2) {
        low = min(low, __shfl_xor_sync(~0u, low, delta));
        high = max(high, __shfl_xor_sync(~0u, high, delta));
    }
    runs = __all_sync(~0u, runs);
    if (threadIdx.x % WARP != 0)
        return;
    head.first = uint32_t(firsts[slice]);
    const bool is_empty = low > high;
    head.base = is_empty ? 0 : low;
    if (!is_empty && high - low > 0xffff) {
        head.flags |= WIDE;
        head.base = 0;
    } else if (runs && !is_empty) {
        head.flags |= RUNS;
    }
    heads[slice] = head;
    wide_steps[slice] = head.flags & WIDE ? head.steps : 0;
}

// Values, columns, and where in the user's array each value comes from
// (`positions` NULL: not wanted; `from` NULL: from the entry's own place), −1
// for padding. `values` and `out_values` NULL: none are stored. A warp a slice.
template <class V, class O, class J, class P>
__device__ void fill_slices(const O *offsets, const J *indices, const V *values, int64_t base,
                            const uint32_t *order, const PartHead *parts, Rules rules,
                            int64_t slices, const int64_t *wide_firsts, SliceHead *heads,
                            V *out_values, uint16_t *narrow, uint32_t *wide, const uint64_t *from,
                            P *positions) {
    const int64_t slice = first_item() / WARP;
    if (slice >= slices)
        return;
    SliceHead head = heads[slice];
    const int number = threadIdx.x % WARP;
    const Lane lane = lane_of(offsets, base, order, parts, rules, head);
    const int64_t at = head.first * rules.step(), wide_at = wide_firsts[slice] * rules.step();
    for_each_slot(rules, lane, head.steps, [&](int step, int v, int64_t entry) {
        const int64_t slot = step * rules.step() + (number << rules.group_log2) + v;
        V value{};
        int64_t column = 0;
        if (entry >= 0) {
            if (out_values)
                value = values[entry];
            column = int64_t(indices[entry]) - base;
        }
        if (out_values)
            out_values[at + slot] = value;
        if (head.flags & WIDE) {
            wide[wide_at + slot] = uint32_t(column);
        } else {
            const uint16_t relative = entry >= 0 ? uint16_t(column - int64_t(head.base)) : 0;
            if (!(head.flags & RUNS)) {
                narrow[at + slot] = relative;
            } else if (number == 0) {
                narrow[at + (step << rules.group_log2) + v] = relative;
            }
        }
        if (positions)
            positions[at + slot] = entry < 0 ? ~P(0) : P(from ? from[entry] : uint64_t(entry));
    });
    if (number == 0 && head.flags & WIDE)
        heads[slice].base = uint32_t(wide_firsts[slice]);
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

// Left to itself, ptxas spills some of them for more warps.
#define KERNEL extern "C" __global__ void __launch_bounds__(convert::THREADS, 2)

// Grid: any number of blocks.
#define BY_OFFSET(name, O)                                                                         \
    KERNEL sell_keys_u32_##name(const O *offsets, int64_t rows, int32_t window_log2,               \
                                int32_t length_bits, int64_t longest, uint32_t *keys,              \
                                uint32_t *numbers) {                                               \
        make_keys(offsets, Rules{rows, window_log2, 0, 0, 0}, length_bits, longest, keys,          \
                  numbers);                                                                        \
    }                                                                                              \
    KERNEL sell_keys_u64_##name(const O *offsets, int64_t rows, int32_t window_log2,               \
                                int32_t length_bits, int64_t longest, uint64_t *keys,              \
                                uint32_t *numbers) {                                               \
        make_keys(offsets, Rules{rows, window_log2, 0, 0, 0}, length_bits, longest, keys,          \
                  numbers);                                                                        \
    }                                                                                              \
    KERNEL sell_order_##name(const O *offsets, const uint32_t *numbers, int64_t rows,              \
                             int32_t window_log2, uint32_t *order) {                               \
        make_order(offsets, numbers, Rules{rows, window_log2, 0, 0, 0}, order);                    \
    }                                                                                              \
    KERNEL sell_count_##name(const O *offsets, const uint32_t *order, int64_t rows,                \
                             int32_t window_log2, int32_t entries, int32_t group_log2,             \
                             int32_t limit_log2, int64_t windows, int64_t *slices, int64_t *parts, \
                             int64_t *long_rows) {                                                 \
        count_slices(offsets, order, Rules{rows, window_log2, entries, group_log2, limit_log2},    \
                     windows, slices, parts, long_rows);                                           \
    }                                                                                              \
    KERNEL sell_heads_##name(const O *offsets, const uint32_t *order, int64_t rows,                \
                             int32_t window_log2, int32_t entries, int32_t group_log2,             \
                             int32_t limit_log2, int64_t windows, const int64_t *slices,           \
                             const int64_t *parts, const int64_t *long_rows, SliceHead *heads,     \
                             PartHead *part_heads, int64_t *steps) {                               \
        make_heads(offsets, order, Rules{rows, window_log2, entries, group_log2, limit_log2},      \
                   windows, slices, parts, long_rows, heads, part_heads, steps);                   \
    }
BY_OFFSET(32, int32_t)
BY_OFFSET(64, int64_t)

// Grid: ceil(slices · WARP / THREADS).
#define MEASURE(name, O, J)                                                                        \
    KERNEL sell_measure_##name(const O *offsets, const J *indices, int64_t base,                   \
                               const uint32_t *order, const PartHead *parts, int64_t rows,         \
                               int32_t window_log2, int32_t entries, int32_t group_log2,           \
                               int32_t limit_log2, int64_t slices, const int64_t *firsts,          \
                               SliceHead *heads, int64_t *wide_steps) {                            \
        measure_slices(offsets, indices, base, order, parts,                                       \
                       Rules{rows, window_log2, entries, group_log2, limit_log2}, slices, firsts,  \
                       heads, wide_steps);                                                         \
    }
#define FILL(bits, V, name, O, J, position, P)                                                     \
    KERNEL sell_fill_##bits##_##name##_##position(                                                 \
        const O *offsets, const J *indices, const V *values, int64_t base, const uint32_t *order,  \
        const PartHead *parts, int64_t rows, int32_t window_log2, int32_t entries,                 \
        int32_t group_log2, int32_t limit_log2, int64_t slices, const int64_t *wide_firsts,        \
        SliceHead *heads, V *out_values, uint16_t *narrow, uint32_t *wide, const uint64_t *from,   \
        P *positions) {                                                                            \
        fill_slices(offsets, indices, values, base, order, parts,                                  \
                    Rules{rows, window_log2, entries, group_log2, limit_log2}, slices,             \
                    wide_firsts, heads, out_values, narrow, wide, from, positions);                \
    }
#define BY_WIDTH(name, O, J)                                                                       \
    MEASURE(name, O, J)                                                                            \
    TARSIA_FOR_EACH_BITS(FILL, name, O, J, u32, uint32_t)                                          \
    TARSIA_FOR_EACH_BITS(FILL, name, O, J, u64, uint64_t)
BY_WIDTH(32_32, int32_t, int32_t)
BY_WIDTH(64_32, int64_t, int32_t)
BY_WIDTH(64_64, int64_t, int64_t)

// out[i] = values[positions[i]], conjugated where `conjugate` is not 0; padding
// keeps its zero.
#define REFILL(bits, V, position, P)                                                               \
    KERNEL refill_##bits##_##position(const V *values, const P *positions, int64_t slots,          \
                                      int32_t conjugate, V *out) {                                 \
        for (int64_t i = first_item(); i < slots; i += grid_stride()) {                            \
            const P position = positions[i];                                                       \
            if (position == ~P(0))                                                                 \
                continue;                                                                          \
            const V v = values[position];                                                          \
            out[i] = conjugate ? conjugate_bits(v) : v;                                            \
        }                                                                                          \
    }
TARSIA_FOR_EACH_BITS(REFILL, u32, uint32_t)
TARSIA_FOR_EACH_BITS(REFILL, u64, uint64_t)
