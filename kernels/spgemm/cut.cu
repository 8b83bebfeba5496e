// Long rows of the left factor cut into parts, so that warps take their factors side by side.
//
// The parts of all long rows, in order, are the rows of a matrix L. The rows of L · R stand behind
// those of a copy of the right factor R. A short row of the left factor's copy is as it was, and a
// long one has a one for each of its parts, in the column of the part's row: the product of both
// copies is C.
// src/backend/cuda/spgemm/cut.rs has the arrays.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Three lists of rows + 1 numbers, one after the other and summed up as one: entries of the rows of
// the left factor's copy, parts of the long rows, entries of the long rows. What comes before row
// `row` in list `list`.
struct Places {
    const int64_t *sums;
    int64_t rows;

    __device__ __forceinline__ int64_t operator()(int list, int64_t row) const {
        const int64_t *own = sums + list * (rows + 1);
        return own[row] - own[0];
    }
};

// How values become those of sums. (`Values` in src/backend/cuda/spgemm/cut.rs.)
enum Conversion { COPY, FROM_HALF, FROM_BF16 };

// Values of the user's type, which become values of sums.
struct Values {
    const void *data;
    int32_t conversion;
    // Words of a value, and of the real numbers in it.
    int32_t words;
    int32_t real;
    // The last word of a real 1, whose others are 0.
    uint32_t one;

    __device__ __forceinline__ void put(int64_t from, int64_t to, uint32_t *out) const {
        if (conversion == FROM_HALF) {
            out[to] = __float_as_uint(__half2float(static_cast<const __half *>(data)[from]));
        } else if (conversion == FROM_BF16) {
            out[to] =
                __float_as_uint(__bfloat162float(static_cast<const __nv_bfloat16 *>(data)[from]));
        } else {
            const auto *own = static_cast<const uint32_t *>(data) + from * words;
            for (int word = 0; word < words; ++word)
                out[to * words + word] = own[word];
        }
    }
};

// Columns of either width, of base 0.
struct Columns {
    void *data;
    int64_t wide;

    __device__ __forceinline__ void put(int64_t at, int64_t column) const {
        if (data == nullptr)
            return;
        if (wide) {
            static_cast<int64_t *>(data)[at] = column;
        } else {
            static_cast<int32_t *>(data)[at] = static_cast<int32_t>(column);
        }
    }
};

// Whether alpha, on the device, is zero: real numbers of `real` words, whose sign is in the last.
// NULL: it is not.
__device__ __forceinline__ bool is_zero(const uint32_t *alpha, int32_t words, int32_t real) {
    if (alpha == nullptr)
        return false;
    bool found = true;
    for (int word = 0; word < words; ++word)
        found = found && (alpha[word] & ((word + 1) % real == 0 ? 0x7fffffffu : ~0u)) == 0;
    return found;
}

__device__ __forceinline__ int64_t first_thread() {
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t all_threads() {
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

} // namespace

// The lists of `Places`, not yet summed up; counts are zeros. Rows of more than `longest` entries
// are cut into parts of `part`.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_counts(Ints offsets, int64_t rows, int64_t longest, int64_t part, int64_t *counts) {
    for (int64_t row = first_thread(); row < rows; row += all_threads()) {
        const int64_t entries = offsets[row + 1] - offsets[row];
        const bool is_long = entries > longest;
        const int64_t parts = is_long ? (entries + part - 1) / part : 0;
        counts[row] = is_long ? parts : entries;
        counts[rows + 1 + row] = parts;
        counts[2 * (rows + 1) + row] = is_long ? entries : 0;
    }
}

// Rows of the left factor's copy (a warp a row): columns, unless there is nowhere to put them, and
// values, unless alpha is zero. `inner`: rows of R. A one has its last word in `one`, the last of
// its first `real` words.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_left(Factor left, Values from, Places places, int64_t inner, Columns columns,
                    uint32_t *values, const uint32_t *alpha) {
    const int64_t warps = all_threads() / 32;
    const bool copies = !is_zero(alpha, from.words, from.real);
    for (int64_t row = first_thread() / 32; row < places.rows; row += warps) {
        const int64_t begin = left.start(row), to = places(0, row);
        const int64_t count = places(0, row + 1) - to, part = places(1, row);
        const bool is_long = places(1, row + 1) > part;
        for (int64_t at = lane_id(); at < count; at += 32) {
            columns.put(to + at, is_long ? inner + part + at : left.column(begin + at));
            if (is_long) {
                for (int word = 0; word < from.words; ++word)
                    values[(to + at) * from.words + word] = word + 1 == from.real ? from.one : 0u;
            } else if (copies) {
                from.put(begin + at, to + at, values);
            }
        }
    }
}

// Rows of L, a warp each, and where they begin; the offsets have one more.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_parts(Factor left, Values from, Places places, int64_t part, int64_t *offsets,
                     Columns columns, uint32_t *values, const uint32_t *alpha) {
    const int64_t warps = all_threads() / 32, parts = places(1, places.rows);
    const bool copies = !is_zero(alpha, from.words, from.real);
    for (int64_t number = first_thread() / 32; number < parts; number += warps) {
        // The last row with so many parts before it, or fewer: that of the part.
        int64_t row = 0, after = places.rows;
        while (after - row > 1) {
            const int64_t middle = row + (after - row) / 2;
            if (places(1, middle) <= number) {
                row = middle;
            } else {
                after = middle;
            }
        }
        const int64_t first = (number - places(1, row)) * part;
        const int64_t begin = left.start(row) + first, end = left.start(row + 1);
        const int64_t to = places(2, row) + first;
        for (int64_t at = lane_id(); at < part && begin + at < end; at += 32) {
            columns.put(to + at, left.column(begin + at));
            if (copies)
                from.put(begin + at, to + at, values);
        }
        if (lane_id() == 0 && offsets != nullptr) {
            offsets[number] = to;
            if (number == parts - 1)
                offsets[parts] = places(2, places.rows);
        }
    }
}

// The copy of R: offsets, unless there is nowhere to put them, columns and values, as above.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_right(Factor right, Values from, int64_t rows, int64_t entries, int64_t *offsets,
                     Columns columns, uint32_t *values, const uint32_t *alpha) {
    if (offsets != nullptr) {
        for (int64_t row = first_thread(); row <= rows; row += all_threads())
            offsets[row] = right.start(row);
    }
    const bool copies = !is_zero(alpha, from.words, from.real);
    for (int64_t at = first_thread(); at < entries; at += all_threads()) {
        columns.put(at, right.column(at));
        if (copies)
            from.put(at, at, values);
    }
}

// The offsets of rows that stand behind `entries` entries of others.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_behind(const int64_t *from, int64_t rows, int64_t entries, int64_t *to) {
    for (int64_t row = first_thread(); row <= rows; row += all_threads())
        to[row] = from[row] + entries;
}
