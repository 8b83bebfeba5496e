// Builds the arrays of values and columns of the slices whose heads sell.cu has made.

// The first argument is the bits of a value; each has an image of its own (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "format/bits.cuh"
#include "format/sell.cuh"
#include "ptx/stores.cuh"

#include <cstring>
#include <type_traits>

namespace tarsia::convert {

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
                            const uint32_t *order, const Rules &rules, int64_t slices,
                            const Counts &counts, SliceHead *heads, Value *out_values,
                            uint16_t *narrow, uint32_t *wide, const uint64_t *from,
                            Position *positions) {
    const int64_t slice = first_item() / WARP;
    if (slice >= slices)
        return;
    SliceHead head = heads[slice];
    const int number = threadIdx.x % WARP, rows = head.flags & ROWS ? rules.item_rows : 1;
    const Lane lane = lane_of(offsets, base, order, heads, slice, head);
    const bool is_wide = head.flags & WIDE;
    const int64_t unit = (is_wide ? counts.wide : counts.narrow)[head.window] + head.columns;
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

// The kernels are bound by memory latency: many blocks at one time.
#define FILLS extern "C" __global__ void __launch_bounds__(convert::THREADS, 4)
#define KERNEL_fill(name, bits, O, J, P)                                                           \
    FILLS name(const int##O##_t *offsets, const int##J##_t *indices, const BITS_##bits *values,    \
               int64_t base, const uint32_t *order, Rules rules, int64_t slices, int64_t *counts,  \
               SliceHead *heads, BITS_##bits *out_values, uint16_t *narrow, uint32_t *wide,        \
               const uint64_t *from, uint##P##_t *positions) {                                     \
        wait_for_previous();                                                                       \
        fill_slices(offsets, indices, values, base, order, rules, slices, {counts, rules.windows}, \
                    heads, out_values, narrow, wide, from, positions);                             \
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
