// Makes the blocks of src/layout/bcsr.rs, which describes the arrays and has the same
// rules as a program for the CPU.
//
// A warp has a row block, and a lane one of its rows, whose entries it takes in their
// order: a block is the least next block column of all rows, and each row gives it the
// entries that it has there. The first launch counts blocks, the second one fills them.

#include <cstdint>

namespace tarsia::convert {

constexpr int THREADS = 256;
constexpr int ROWS = 16;
constexpr uint32_t HOLE = ~0u, NONE = ~0u;

// Rows of op(A), and which of them stand where (`order` NULL: place p has row p).
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows;
    const uint32_t *order;

    __device__ __forceinline__ int64_t row_at(int64_t place) const {
        if (!order)
            return place < rows ? place : -1;
        const uint32_t row = order[place];
        return row == HOLE ? -1 : int64_t(row);
    }
};

// Place of row `row` and column `k` in a block of values of so many bytes.
template <int BYTES> __device__ __forceinline__ int place(int width, int row, int k) {
    if (BYTES == 2) {
        const int slot = k / 8 * 4 + row / 8 * 2 + k % 2;
        return (row % 8 * 4 + k % 8 / 2) * (width / 2) + slot;
    }
    return (row % 8 * 4 + k % 4) * 4 + k / 4 * 2 + row / 8;
}

// Goes through the row block of this warp: entry(block, lane's row, column, entry), and
// close(block, block column) after each block, by all lanes. Returns how many blocks.
// width = 1 << shift.
template <class O, class J, class Entry, class Close>
__device__ __forceinline__ int64_t sweep(const Pattern<O, J> &a, int64_t row_block, int shift,
                                         Entry entry, Close close) {
    const int lane = threadIdx.x & 31;
    int64_t at = 0, end = 0;
    if (lane < ROWS) {
        const int64_t row = a.row_at(row_block * ROWS + lane);
        if (row >= 0) {
            at = int64_t(a.offsets[row]) - a.base;
            end = int64_t(a.offsets[row + 1]) - a.base;
        }
    }
    // Columns are less than 2^31.
    uint32_t next = at < end ? uint32_t(int64_t(a.indices[at]) - a.base) : NONE;
    int64_t blocks = 0;
    for (;;) {
        const uint32_t first = __reduce_min_sync(~0u, next == NONE ? NONE : next >> shift);
        if (first == NONE)
            return blocks;
        uint32_t last = NONE;
        // A place that is taken: the entry is for the next block.
        while (next != NONE && next >> shift == first && next != last) {
            entry(blocks, lane, next, at);
            last = next;
            ++at;
            next = at < end ? uint32_t(int64_t(a.indices[at]) - a.base) : NONE;
        }
        __syncwarp();
        close(blocks, first);
        ++blocks;
    }
}

__device__ __forceinline__ int64_t own_row_block() {
    return int64_t(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
}

// counts[row_blocks] = 0.
template <class O, class J>
__device__ void count(Pattern<O, J> a, int64_t row_blocks, int shift, int64_t *counts) {
    const int64_t own = own_row_block();
    if (own > row_blocks)
        return;
    int64_t blocks = 0;
    if (own < row_blocks) {
        blocks = sweep(
            a, own, shift, [](int64_t, int, uint32_t, int64_t) {}, [](int64_t, uint32_t) {});
    }
    if ((threadIdx.x & 31) == 0)
        counts[own] = blocks;
}

// `starts`: blocks before each row block. `out` is zero before; `slots` NULL: not wanted;
// `from` NULL: values are the user's.
template <class V, class O, class J>
__device__ void fill(Pattern<O, J> a, const V *values, int64_t row_blocks, int shift,
                     const int64_t *starts, uint32_t *columns, V *out, uint8_t *masks,
                     const uint64_t *from, uint64_t *slots) {
    const int64_t own = own_row_block();
    if (own >= row_blocks)
        return;
    const int lane = threadIdx.x & 31, width = 1 << shift;
    const int64_t first = starts[own];
    uint32_t mask = 0;
    sweep(
        a, own, shift,
        [&](int64_t block, int row, uint32_t column, int64_t entry) {
            const int k = int(column) & (width - 1);
            const int64_t to =
                ((first + block) * ROWS << shift) + place<int(sizeof(V))>(width, row, k);
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

// New values in the order of the user's array. A thread a value, several times.
template <class V>
__device__ void refill(const V *values, const uint64_t *slots, int64_t count, V *out) {
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += int64_t(gridDim.x) * blockDim.x)
        out[slots[i]] = values[i];
}

} // namespace tarsia::convert

using namespace tarsia::convert;

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

#define FILL(bits, name, O, J)                                                                     \
    KERNEL bcsr_fill_##bits##_##name(                                                              \
        const O *offsets, const J *indices, const uint##bits##_t *values, int64_t base,            \
        int64_t rows, const uint32_t *order, int64_t row_blocks, int32_t shift,                    \
        const int64_t *starts, uint32_t *columns, uint##bits##_t *out, uint8_t *masks,             \
        const uint64_t *from, uint64_t *slots) {                                                   \
        fill(Pattern<O, J>{offsets, indices, base, rows, order}, values, row_blocks, shift,        \
             starts, columns, out, masks, from, slots);                                            \
    }
#define BY_WIDTHS(name, O, J)                                                                      \
    KERNEL bcsr_count_##name(const O *offsets, const J *indices, int64_t base, int64_t rows,       \
                             const uint32_t *order, int64_t row_blocks, int32_t shift,             \
                             int64_t *counts) {                                                    \
        count(Pattern<O, J>{offsets, indices, base, rows, order}, row_blocks, shift, counts);      \
    }                                                                                              \
    FILL(16, name, O, J)                                                                           \
    FILL(32, name, O, J)                                                                           \
    FILL(64, name, O, J)
BY_WIDTHS(32_32, int32_t, int32_t)
BY_WIDTHS(64_32, int64_t, int32_t)
BY_WIDTHS(64_64, int64_t, int64_t)

#define REFILL(bits)                                                                               \
    KERNEL bcsr_refill_##bits(const uint##bits##_t *values, const uint64_t *slots, int64_t count,  \
                              uint##bits##_t *out) {                                               \
        refill(values, slots, count, out);                                                         \
    }
REFILL(16)
REFILL(32)
REFILL(64)
