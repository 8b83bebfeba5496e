// Builds the arrays of src/format/swift.rs and src/format/swift/bands.rs, which describe them and
// have CPU implementations of the same rules, from the sorted columns of op(A), that is, from the
// rows of its transpose, with 64-bit offsets and 32-bit indices that count from 0.

#include "common/kernels.cuh"
#include "common/search.cuh"
#include "format/windows.cuh"

namespace tarsia::convert {

constexpr int LANES = 32, ENTRIES = 256, BAND_ROWS = 16;

// Set of blocks and run of irregular entries, as src/format/swift.rs defines them.
struct Set {
    uint64_t first;
    uint32_t column, height, taken, zero;
};
struct Run {
    uint64_t first;
    uint32_t column, taken;
};

struct Columns {
    const int64_t *offsets;
    const int32_t *indices;
    int64_t count, nnz;
};

// Positions in the layout of the user's values, for updates. `to` is NULL if they are not wanted;
// `from` is NULL if values are in the user's order.
struct Slots {
    const uint64_t *from;
    uint64_t *to;

    __device__ __forceinline__ void note(int64_t entry, int64_t place) const {
        if (to)
            to[from ? from[entry] : uint64_t(entry)] = uint64_t(place);
    }
};

// Last of `count` items that begins at or before `at`.
template <class T>
__device__ __forceinline__ int64_t last_from(const T *list, int64_t count, uint64_t at) {
    return last_where(0, count, [&](int64_t number) { return list[number].first <= at; });
}

// Fills a group of eight blocks per thread block, one entry per thread.
template <class Value>
__device__ __forceinline__ void
fill(Columns a, const Value *values, const uint32_t *order, const Set *sets, int64_t set_count,
     int64_t blocks, uint32_t *columns, Value *out, uint32_t *rows, uint8_t *positions,
     int16_t *offsets, unsigned long long *segments, Slots slots) {
    __shared__ __align__(16) uint32_t given[ENTRIES];
    __shared__ uint32_t sorted[ENTRIES];
    const int own = threadIdx.x, lane = own % LANES;
    const int64_t first = int64_t(blockIdx.x) * ENTRIES;
    const int64_t block = first / LANES + own / LANES;
    const int count = int(min(int64_t(ENTRIES), blocks * LANES - first));
    uint32_t row = ~0u;
    if (own < count) {
        const Set set = sets[last_from(sets, set_count, uint64_t(block))];
        const uint64_t number = uint64_t(block) - set.first;
        const uint32_t column = set.column + uint32_t(number / set.height) * LANES;
        const int64_t entry =
            a.offsets[order[column + lane]] + set.taken + int64_t(number % set.height);
        row = uint32_t(a.indices[entry]);
        out[first + own] = values[entry];
        slots.note(entry, first + own);
        if (lane == 0)
            columns[block] = column;
    }
    given[own] = row;
    __syncthreads();
    // Number of entries before this one by row. Rows are less than 2^31, so that the ~0 beyond the
    // end sort last.
    int position = 0;
#pragma unroll 4
    for (int i = 0; i < ENTRIES; i += 4) {
        const uint4 others = *reinterpret_cast<const uint4 *>(given + i);
        position += (others.x < row) + (others.x == row && i < own);
        position += (others.y < row) + (others.y == row && i + 1 < own);
        position += (others.z < row) + (others.z == row && i + 2 < own);
        position += (others.w < row) + (others.w == row && i + 3 < own);
    }
    sorted[position] = row;
    __syncthreads();
    const bool begins = own < count && (own == 0 || sorted[own - 1] != sorted[own]);
    const int found = __syncthreads_count(begins);
    if (own == 0)
        atomicAdd(segments, (unsigned long long)found);
    if (own >= count)
        return;
    positions[first + own] = uint8_t(position);
    rows[first + own] = sorted[own];
    int more = 0;
    if (begins) {
        while (own + more + 1 < count && sorted[own + more + 1] == sorted[own])
            ++more;
    }
    offsets[first + own] = int16_t(begins && more == 0 ? -1 : more);
}

// Fills the irregular entries, which are stored behind the `regular` ones.
template <class Value>
__device__ __forceinline__ void fill_irregular(Columns a, const Value *values,
                                               const uint32_t *order, const Run *runs,
                                               int64_t run_count, int64_t regular, int64_t count,
                                               Value *out, uint32_t *rows, Slots slots) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const Run run = runs[last_from(runs, run_count, uint64_t(i))];
        const int64_t entry =
            a.offsets[order[a.count - 1 - run.column]] + run.taken + (i - int64_t(run.first));
        out[regular + i] = values[entry];
        rows[regular + i] = uint32_t(a.indices[entry]);
        slots.note(entry, regular + i);
    }
}

// Fills the entries in the order of bands, which `numbers` gives.
template <class Value>
__device__ __forceinline__ void fill_bands(Columns a, const Value *values, const uint32_t *numbers,
                                           uint32_t *columns, Value *out, uint8_t *rows,
                                           Slots slots) {
    for (int64_t i = first_item(); i < a.nnz; i += grid_stride()) {
        const int64_t entry = numbers[i];
        columns[i] = uint32_t(range_of(a.offsets, a.count, entry));
        rows[i] = uint8_t(a.indices[entry] % BAND_ROWS);
        out[i] = values[entry];
        slots.note(entry, i);
    }
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS)

// Writes the length and the number of each column, to be sorted.
GLOBAL swift_lengths(const int64_t *offsets, int64_t cols, uint32_t *lengths, uint32_t *order) {
    for (int64_t i = first_item(); i < cols; i += grid_stride()) {
        lengths[i] = uint32_t(offsets[i + 1] - offsets[i]);
        order[i] = uint32_t(i);
    }
}

// Writes the band and the number of each entry, to be sorted.
GLOBAL swift_band_keys(const int32_t *indices, int64_t nnz, uint32_t *bands, uint32_t *numbers) {
    for (int64_t i = first_item(); i < nnz; i += grid_stride()) {
        bands[i] = uint32_t(indices[i]) / BAND_ROWS;
        numbers[i] = uint32_t(i);
    }
}

// Finds where each of `count` bands begins in the sorted array, and where the last one ends.
GLOBAL swift_band_starts(const uint32_t *bands, int64_t nnz, int64_t count, int64_t *starts) {
    for (int64_t band = first_item(); band <= count; band += grid_stride()) {
        starts[band] = first_where_not(0, nnz, [&](int64_t at) { return bands[at] < band; });
    }
}

#define KERNEL_fill(name, bits)                                                                    \
    GLOBAL name(Columns a, const uint##bits##_t *values, const uint32_t *order, const Set *sets,   \
                int64_t set_count, int64_t blocks, uint32_t *columns, uint##bits##_t *out,         \
                uint32_t *rows, uint8_t *positions, int16_t *offsets,                              \
                unsigned long long *segments, Slots slots) {                                       \
        fill(a, values, order, sets, set_count, blocks, columns, out, rows, positions, offsets,    \
             segments, slots);                                                                     \
    }
KERNELS(fill, (), (swift_fill_32, 32), (swift_fill_64, 64))
#define KERNEL_irregular(name, bits)                                                               \
    GLOBAL name(Columns a, const uint##bits##_t *values, const uint32_t *order, const Run *runs,   \
                int64_t run_count, int64_t regular, int64_t count, uint##bits##_t *out,            \
                uint32_t *rows, Slots slots) {                                                     \
        fill_irregular(a, values, order, runs, run_count, regular, count, out, rows, slots);       \
    }
KERNELS(irregular, (), (swift_irregular_32, 32), (swift_irregular_64, 64))
#define KERNEL_bands(name, bits)                                                                   \
    GLOBAL name(Columns a, const uint##bits##_t *values, const uint32_t *numbers,                  \
                uint32_t *columns, uint##bits##_t *out, uint8_t *rows, Slots slots) {              \
        fill_bands(a, values, numbers, columns, out, rows, slots);                                 \
    }
KERNELS(bands, (), (swift_bands_32, 32), (swift_bands_64, 64))
