// Builds the blocks of src/format/bcsr.rs, which describes the arrays and has a CPU implementation
// of the same rules.
//
// A warp takes one segment of a row block, that is, a range of its block columns, and each lane
// takes one row. The next block is the least next block column of all rows, and each row adds its
// entries in that block, in their order. One launch counts blocks, another one fills them. A row
// block has one segment per SEGMENT entries of its longest row, whose columns also give the
// segments' bounds: a lane takes some 0.1 µs per entry, so that rows of 100,000 entries in one
// piece would take 10 ms.

#include <cstdint>

#include "common/kernels.cuh"
#include "common/search.cuh"
#include "format/pattern.cuh"
#include "ptx/warp.cuh"

namespace tarsia::convert {

constexpr int THREADS = 256;
// Number of rows of a row block.
constexpr int ROWS = 16;
// Element of `order` for a position without a row, and next column of a lane that has none left.
constexpr uint32_t HOLE = ~0u, NONE = ~0u;
// Number of entries of the longest row per segment of a row block.
constexpr int64_t SEGMENT = 128;

// Rows of op(A) and their order (if `order` is NULL, position p holds row p).
template <class O, class J> struct Rows : Pattern<O, J> {
    const uint32_t *order;

    __device__ __forceinline__ int64_t row_at(int64_t place) const {
        if (!order)
            return place < this->rows ? place : -1;
        const uint32_t row = order[place];
        return row == HOLE ? -1 : int64_t(row);
    }
};

__device__ __forceinline__ int64_t segments_of(int64_t longest) {
    return max(int64_t(1), (longest + SEGMENT - 1) / SEGMENT);
}

// Counts the segments of each row block, one thread per row block; counts[row_blocks] = 0.
template <class O, class J>
__device__ void count_segments(const Rows<O, J> &a, int64_t row_blocks, int64_t *counts) {
    const int64_t own = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (own > row_blocks)
        return;
    int64_t longest = 0;
    for (int i = 0; own < row_blocks && i < ROWS; ++i) {
        const int64_t row = a.row_at(own * ROWS + i);
        if (row >= 0)
            longest = max(longest, a.start(row + 1) - a.start(row));
    }
    counts[own] = own < row_blocks ? segments_of(longest) : 0;
}

// Position of row `row` and column `k` in a block of values of BYTES bytes.
template <int BYTES> __device__ __forceinline__ int place(int width, int row, int k) {
    if (BYTES == 2) {
        const int slot = k / 8 * 4 + row / 8 * 2 + k % 2;
        return (row % 8 * 4 + k % 8 / 2) * (width / 2) + slot;
    }
    return (row % 8 * 4 + k % 4) * 4 + k / 4 * 2 + row / 8;
}

// Goes through segment `number` of a row block. Calls entry(block, lane's row, column, entry) for
// each entry, and close(block, block column) by all lanes after each block. Returns the number of
// blocks. width = 1 << shift.
template <class O, class J, class Entry, class Close>
__device__ __forceinline__ int64_t sweep(const Rows<O, J> &a, int64_t row_block, int64_t number,
                                         int shift, Entry entry, Close close) {
    const int lane = threadIdx.x & 31;
    int64_t at = 0, end = 0;
    if (lane < ROWS) {
        const int64_t row = a.row_at(row_block * ROWS + lane);
        if (row >= 0)
            at = a.start(row), end = a.start(row + 1);
    }
    // Owner of the longest row, the first one if there are several.
    int64_t longest = end - at;
    int owner = lane;
    for (int delta = ROWS / 2; delta > 0; delta /= 2) {
        const int64_t other = __shfl_xor_sync(ALL_LANES, longest, delta);
        const int other_owner = __shfl_xor_sync(ALL_LANES, owner, delta);
        if (other > longest || (other == longest && other_owner < owner))
            longest = other, owner = other_owner;
    }
    longest = __shfl_sync(ALL_LANES, longest, 0);
    const int64_t first_of_longest = __shfl_sync(ALL_LANES, at, __shfl_sync(ALL_LANES, owner, 0));
    const int64_t segments = segments_of(longest);
    if (segments > 1) {
        const auto bound = [&](int64_t before) {
            const int64_t pivot = first_of_longest + longest * before / segments;
            return a.column(pivot) >> shift << shift;
        };
        if (number > 0)
            at = a.find(at, end, bound(number));
        if (number + 1 < segments)
            end = a.find(at, end, bound(number + 1));
    }
    uint32_t next = at < end ? a.column(at) : NONE;
    int64_t blocks = 0;
    for (;;) {
        const uint32_t first = __reduce_min_sync(ALL_LANES, next == NONE ? NONE : next >> shift);
        if (first == NONE)
            return blocks;
        uint32_t last = NONE;
        // A repeated column, whose position in the block is taken, goes into the next block.
        while (next != NONE && next >> shift == first && next != last) {
            entry(blocks, lane, next, at);
            last = next;
            ++at;
            next = at < end ? a.column(at) : NONE;
        }
        __syncwarp();
        close(blocks, first);
        ++blocks;
    }
}

// Number of segments before each row block, and in total.
struct Segments {
    const int64_t *before;
    int64_t row_blocks, count;
};

__device__ __forceinline__ int64_t own_segment() {
    return int64_t(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
}

// Counts the blocks of each segment; counts[segments] = 0.
template <class O, class J>
__device__ void count(Rows<O, J> a, Segments segments, int shift, int64_t *counts) {
    const int64_t own = own_segment();
    if (own > segments.count)
        return;
    int64_t blocks = 0;
    if (own < segments.count) {
        const int64_t row_block = range_of(segments.before, segments.row_blocks, own);
        blocks = sweep(
            a, row_block, own - segments.before[row_block], shift,
            [](int64_t, int, uint32_t, int64_t) {}, [](int64_t, uint32_t) {});
    }
    if ((threadIdx.x & 31) == 0)
        counts[own] = blocks;
}

// Computes the blocks before each row block from those before each segment; one thread per row
// block.
__device__ void starts_of_row_blocks(Segments segments, const int64_t *starts, int64_t *out) {
    const int64_t own = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (own <= segments.row_blocks)
        out[own] = starts[segments.before[own]];
}

// Fills columns, values and masks of the blocks. `starts`: blocks before each segment. `out` is
// zero before. `slots` is NULL if value positions are not wanted; `from` is NULL if the values are
// in the user's order.
template <class Value, class O, class J>
__device__ void fill(Rows<O, J> a, const Value *values, Segments segments, int shift,
                     const int64_t *starts, uint32_t *columns, Value *out, uint8_t *masks,
                     const uint64_t *from, uint64_t *slots) {
    const int64_t own = own_segment();
    if (own >= segments.count)
        return;
    const int64_t row_block = range_of(segments.before, segments.row_blocks, own);
    const int lane = threadIdx.x & 31, width = 1 << shift;
    const int64_t first = starts[own];
    uint32_t mask = 0;
    sweep(
        a, row_block, own - segments.before[row_block], shift,
        [&](int64_t block, int row, uint32_t column, int64_t entry) {
            const int k = int(column) & (width - 1);
            const int64_t to =
                ((first + block) * ROWS << shift) + place<int(sizeof(Value))>(width, row, k);
            out[to] = values[entry];
            mask |= 1u << k;
            if (slots)
                slots[from ? from[entry] : uint64_t(entry)] = uint64_t(to);
        },
        [&](int64_t block, uint32_t column) {
            const int64_t to = first + block;
            if (lane == 0)
                columns[to] = column;
            if (lane < ROWS) {
                if (width == 16) {
                    reinterpret_cast<uint16_t *>(masks)[to * ROWS + lane] = uint16_t(mask);
                } else {
                    masks[to * ROWS + lane] = uint8_t(mask);
                }
            }
            mask = 0;
        });
}

} // namespace tarsia::convert

using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS)

#define KERNEL_fill(name, bits, O, J)                                                              \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices,                              \
                const uint##bits##_t *values, int64_t base, int64_t rows, const uint32_t *order,   \
                Segments segments, int32_t shift, const int64_t *starts, uint32_t *columns,        \
                uint##bits##_t *out, uint8_t *masks, const uint64_t *from, uint64_t *slots) {      \
        fill(Rows<int##O##_t, int##J##_t>{offsets, indices, base, rows, order}, values, segments,  \
             shift, starts, columns, out, masks, from, slots);                                     \
    }
KERNELS(fill, (), (bcsr_fill_16_32_32, 16, 32, 32), (bcsr_fill_32_32_32, 32, 32, 32),
        (bcsr_fill_64_32_32, 64, 32, 32), (bcsr_fill_16_64_32, 16, 64, 32),
        (bcsr_fill_32_64_32, 32, 64, 32), (bcsr_fill_64_64_32, 64, 64, 32),
        (bcsr_fill_16_64_64, 16, 64, 64), (bcsr_fill_32_64_64, 32, 64, 64),
        (bcsr_fill_64_64_64, 64, 64, 64))

#define KERNEL_count(name, O, J)                                                                   \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                const uint32_t *order, Segments segments, int32_t shift, int64_t *counts) {        \
        count(Rows<int##O##_t, int##J##_t>{offsets, indices, base, rows, order}, segments, shift,  \
              counts);                                                                             \
    }
KERNELS(count, (), (bcsr_count_32_32, 32, 32), (bcsr_count_64_32, 64, 32),
        (bcsr_count_64_64, 64, 64))

#define KERNEL_segments(name, O, J)                                                                \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                const uint32_t *order, int64_t row_blocks, int64_t *counts) {                      \
        count_segments(Rows<int##O##_t, int##J##_t>{offsets, indices, base, rows, order},          \
                       row_blocks, counts);                                                        \
    }
KERNELS(segments, (), (bcsr_segments_32_32, 32, 32), (bcsr_segments_64_32, 64, 32),
        (bcsr_segments_64_64, 64, 64))

GLOBAL bcsr_starts(Segments segments, const int64_t *starts, int64_t *out) {
    starts_of_row_blocks(segments, starts, out);
}
