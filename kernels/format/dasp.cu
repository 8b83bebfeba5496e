// Builds DASP's arrays (described in src/format/dasp.rs) from rows of op(A): the sort keys of rows,
// the tasks of long rows, the row-blocks of medium ones, the order of the results, and for each
// slot the position of the entry that it takes; columns and values follow from that map. The
// pattern has been validated. src/backend/cuda/spmv/dasp/build.rs calls the kernels in this order,
// with scans and a sort in between.
//
// `sorted` holds the rows in the order of their keys. A map holds positions of entries, all ones
// for padding, in 32 bits if the number of entries allows it, otherwise in 64.

#include "common/grid.cuh"
#include "common/kernels.cuh"
#include "common/search.cuh"
#include "format/dasp.cuh"
#include "ptx/warp.cuh"

namespace tarsia {

using dasp::Split;
using dasp::Task;

// src/format/dasp.rs has the same constants.
constexpr int MAX_LEN = 256, KEYS = MAX_LEN + 2, TASK_GROUPS = 16, THRESHOLD = 24;
constexpr int ROWS = 8, PLACES = 4, BLOCK = ROWS * PLACES, GROUP = 2 * BLOCK;

__device__ inline int64_t warp_stride() { return grid_stride() / WARP; }
__device__ inline int64_t first_warp() { return first_item() / WARP; }

template <class MapEntry> constexpr MapEntry NONE = MapEntry(-1);

template <class O> __device__ int64_t length_of(const O *offsets, int64_t row) {
    return int64_t(offsets[row + 1]) - int64_t(offsets[row]);
}

// Computes keys[r] and numbers[r] = r, and adds the number of rows of each key to `histogram`.
template <class O>
__device__ void keys_of_rows(const O *offsets, int64_t rows, uint32_t *keys, uint32_t *numbers,
                             unsigned long long *histogram) {
    __shared__ unsigned counts[KEYS];
    for (int k = threadIdx.x; k < KEYS; k += blockDim.x)
        counts[k] = 0;
    __syncthreads();
    for (int64_t r = first_item(); r < rows; r += grid_stride()) {
        const int64_t length = length_of(offsets, r);
        const unsigned key = unsigned(MAX_LEN + 1 - (length < MAX_LEN + 1 ? length : MAX_LEN + 1));
        keys[r] = key;
        numbers[r] = uint32_t(r);
        atomicAdd(counts + key, 1u);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < KEYS; k += blockDim.x) {
        if (counts[k] != 0)
            atomicAdd(histogram + k, (unsigned long long)counts[k]);
    }
}

// Counts groups, tasks and splits (1 for a split row) of each long row, with 0 behind the last row,
// for exclusive scans.
template <class O>
__device__ void count_long(const O *offsets, const uint32_t *sorted, int64_t count, int64_t *groups,
                           int64_t *tasks, int64_t *splits) {
    for (int64_t i = first_item(); i <= count; i += grid_stride()) {
        const int64_t length = i < count ? length_of(offsets, sorted[i]) : 0;
        groups[i] = (length + GROUP - 1) / GROUP;
        tasks[i] = (groups[i] + TASK_GROUPS - 1) / TASK_GROUPS;
        splits[i] = tasks[i] > 1;
    }
}

// Builds tasks and split rows from the scans of count_long's numbers.
__device__ inline void make_tasks(const uint32_t *sorted, int64_t count, const int64_t *groups,
                                  const int64_t *tasks, const int64_t *splits, int64_t task_count,
                                  Task *out_tasks, Split *out_splits) {
    for (int64_t t = first_item(); t < task_count; t += grid_stride()) {
        const int64_t i = range_of(tasks, count, t), number = t - tasks[i];
        const int64_t mine = tasks[i + 1] - tasks[i], all = groups[i + 1] - groups[i];
        const int64_t from = all * number / mine, to = all * (number + 1) / mine;
        const int32_t row = int32_t(sorted[i]);
        out_tasks[t] = {groups[i] + from, int32_t(to - from),
                        mine > 1 ? int32_t(-1 - splits[i]) : row};
        // The i − splits[i] rows before that are not split have one task each.
        if (mine > 1 && number == 0)
            out_splits[splits[i]] = {tasks[i], tasks[i] - (i - splits[i]), int32_t(mine), row};
    }
}

// Counts regular blocks and irregular entries of each row-block, with 0 behind the last one, for
// exclusive scans, and computes where each row's irregular entries end in its row-block.
template <class O>
__device__ void count_row_blocks(const O *offsets, const uint32_t *sorted, int64_t rows,
                                 int64_t row_blocks, int64_t *regular, int64_t *irregular,
                                 uint16_t *ends) {
    for (int64_t i = first_item(); i <= row_blocks; i += grid_stride()) {
        if (i == row_blocks) {
            regular[i] = irregular[i] = 0;
            return;
        }
        int length[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            length[r] = i * ROWS + r < rows ? int(length_of(offsets, sorted[i * ROWS + r])) : 0;
        int blocks = 0;
        while (true) {
            int taken = 0;
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                taken += min(max(length[r] - blocks * PLACES, 0), PLACES);
            if (taken < THRESHOLD)
                break;
            ++blocks;
        }
        int end = 0;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            end += max(length[r] - blocks * PLACES, 0);
            ends[i * ROWS + r] = uint16_t(end);
        }
        regular[i] = blocks;
        irregular[i] = end;
    }
}

// Rows of each part of the results, in this order: rows of 1 and 3 entries pieced together, rows of
// 2 and 2, rows of 4, rows of 1 alone, medium rows, empty rows.
struct Order {
    // End of each part in the results.
    int64_t ends[6];
    // First row of each part among the sorted ones, and its number of rows.
    int64_t first[6], count[6];
    // First sorted row of 3 entries in the first part, whose `first` is a row of 1.
    int64_t threes;
};

__device__ inline void order_rows(const uint32_t *sorted, const Order &order, int32_t *out) {
    for (int64_t at = first_item(); at < order.ends[5]; at += grid_stride()) {
        int64_t start = 0, first = order.first[0], count = order.count[0];
#pragma unroll
        for (int p = 1; p < 6; ++p) {
            if (at >= order.ends[p - 1]) {
                start = order.ends[p - 1];
                first = order.first[p];
                count = order.count[p];
            }
        }
        int64_t place = at - start;
        if (at < order.ends[0]) {
            first = place % (2 * ROWS) < ROWS ? first : order.threes;
            place = place / (2 * ROWS) * ROWS + place % ROWS;
        }
        out[at] = place < count ? int32_t(sorted[first + place]) : -1;
    }
}

// For every 32 elements of `order`: the first row if the 32 rows are consecutive, otherwise −1. One
// warp for each 32 elements; `ordered` is the length of `order`.
__device__ inline void find_runs(const int32_t *order, int64_t ordered, int32_t *runs) {
    const int lane = threadIdx.x % WARP;
    for (int64_t i = first_warp(); i * WARP < ordered; i += warp_stride()) {
        const int64_t at = i * WARP + lane;
        const int32_t row = at < ordered ? order[at] : -1;
        const int32_t first = __shfl_sync(ALL_LANES, row, 0);
        const bool follow = __all_sync(ALL_LANES, first >= 0 && row == first + lane);
        if (lane == 0)
            runs[i] = follow ? first : -1;
    }
}

// Fills the map of the long part, one warp per group.
template <class O, class MapEntry>
__device__ void map_long(const O *offsets, int64_t base, const uint32_t *sorted, int64_t count,
                         const int64_t *groups, int64_t group_count, MapEntry *map) {
    for (int64_t g = first_warp(); g < group_count; g += warp_stride()) {
        const int64_t i = range_of(groups, count, g), row = sorted[i];
        const int64_t start = int64_t(offsets[row]) - base, length = length_of(offsets, row);
#pragma unroll
        for (int k = threadIdx.x % WARP; k < GROUP; k += WARP) {
            const int64_t entry = (g - groups[i]) * GROUP + k;
            map[g * GROUP + k] = entry < length ? MapEntry(start + entry) : NONE<MapEntry>;
        }
    }
}

// Fills the maps of the regular and the irregular part, one warp per row-block. Two neighbouring
// regular blocks are stored interleaved, as a pair, if both belong to the `loops` row-blocks that
// one warp of the product multiplies; a block without a partner is stored by itself.
template <class O, class MapEntry>
__device__ void map_medium(const O *offsets, int64_t base, const uint32_t *sorted, int64_t rows,
                           int64_t row_blocks, int loops, const int64_t *regular,
                           const int64_t *irregular, MapEntry *map_regular,
                           MapEntry *map_irregular) {
    static_assert(BLOCK == WARP, "a lane for each place of a block");
    const int lane = threadIdx.x % WARP;
    for (int64_t i = first_warp(); i < row_blocks; i += warp_stride()) {
        int64_t start = 0;
        int length = 0;
        if (lane < ROWS && i * ROWS + lane < rows) {
            const int64_t row = sorted[i * ROWS + lane];
            start = int64_t(offsets[row]) - base;
            length = int(length_of(offsets, row));
        }
        const int64_t unit = i / loops * loops, origin = regular[unit];
        const int64_t unit_end = unit + loops < row_blocks ? unit + loops : row_blocks;
        const int blocks = int(regular[i + 1] - regular[i]), before = int(regular[i] - origin);
        const int of_unit = int(regular[unit_end] - origin);
        const int64_t from = __shfl_sync(ALL_LANES, start, lane / PLACES);
        const int end = __shfl_sync(ALL_LANES, length, lane / PLACES);
        for (int block = 0; block < blocks; ++block) {
            const int number = before + block, entry = block * PLACES + lane % PLACES;
            const int slot = (number | 1) < of_unit ? number / 2 * GROUP + 2 * lane + number % 2
                                                    : number * BLOCK + lane;
            map_regular[origin * BLOCK + slot] =
                entry < end ? MapEntry(from + entry) : NONE<MapEntry>;
        }
        int64_t out = irregular[i];
        for (int r = 0; r < ROWS; ++r) {
            const int64_t first = __shfl_sync(ALL_LANES, start, r) + blocks * PLACES;
            const int rest = __shfl_sync(ALL_LANES, length, r) - blocks * PLACES;
            for (int k = lane; k < rest; k += WARP)
                map_irregular[out + k] = MapEntry(first + k);
            out += max(rest, 0);
        }
    }
}

// Fills the map of a short part. `cut` is the number of entries of the first row if two rows are
// pieced together, 0 if a row has all 4 slots, −1 if rows have one entry and stand alone.
template <class O, class MapEntry>
__device__ void map_short(const O *offsets, int64_t base, const int32_t *order, int cut,
                          int64_t slots, MapEntry *map) {
    for (int64_t s = first_item(); s < slots; s += grid_stride()) {
        int64_t at = s;
        int entry = 0;
        if (cut >= 0) {
            const int in_pair = int(s % GROUP), place = in_pair / 2, r = place / PLACES;
            const int64_t block = s / GROUP * 2 + in_pair % 2;
            entry = place % PLACES;
            at = block * ROWS + r;
            if (cut > 0) {
                const bool second = entry >= cut;
                at = block * 2 * ROWS + second * ROWS + r;
                entry -= second ? cut : 0;
            }
        }
        const int32_t row = order[at];
        MapEntry out = NONE<MapEntry>;
        if (row >= 0 && entry < length_of(offsets, row))
            out = MapEntry(int64_t(offsets[row]) - base + entry);
        map[s] = out;
    }
}

// columns[s] = indices[map[s]] − base, or −1 for padding
template <class J, class MapEntry>
__device__ void columns_of_map(const J *indices, int64_t base, const MapEntry *map, int64_t slots,
                               int32_t *columns) {
    for (int64_t s = first_item(); s < slots; s += grid_stride())
        columns[s] = map[s] == NONE<MapEntry> ? -1 : int32_t(int64_t(indices[map[s]]) - base);
}

// map[s] = positions[map[s]], for matrices whose rows of op(A) are a converted copy: `positions`
// says where each entry of the copy is in the user's array.
template <class MapEntry>
__device__ void compose_map(const int64_t *positions, int64_t slots, MapEntry *map) {
    for (int64_t s = first_item(); s < slots; s += grid_stride()) {
        if (map[s] != NONE<MapEntry>)
            map[s] = MapEntry(positions[map[s]]);
    }
}

} // namespace tarsia

using namespace tarsia;
using u32 = uint32_t;
using u64 = uint64_t;

#define GLOBAL extern "C" __global__ void

GLOBAL dasp_tasks(const u32 *sorted, int64_t count, const int64_t *groups, const int64_t *tasks,
                  const int64_t *splits, int64_t task_count, Task *out_tasks, Split *out_splits) {
    make_tasks(sorted, count, groups, tasks, splits, task_count, out_tasks, out_splits);
}

GLOBAL dasp_order(const u32 *sorted, const __grid_constant__ Order order, int32_t *out) {
    order_rows(sorted, order, out);
}

GLOBAL dasp_runs(const int32_t *order, int64_t ordered, int32_t *runs) {
    find_runs(order, ordered, runs);
}

#define KERNEL_map_long(name, O, M)                                                                \
    GLOBAL name(const int##O##_t *offsets, int64_t base, const u32 *sorted, int64_t count,         \
                const int64_t *groups, int64_t group_count, uint##M##_t *map) {                    \
        map_long(offsets, base, sorted, count, groups, group_count, map);                          \
    }
KERNELS(map_long, (), (dasp_map_long_32_u32, 32, 32), (dasp_map_long_64_u32, 64, 32),
        (dasp_map_long_64_u64, 64, 64))
#define KERNEL_map_medium(name, O, M)                                                              \
    GLOBAL name(const int##O##_t *offsets, int64_t base, const u32 *sorted, int64_t rows,          \
                int64_t row_blocks, int loops, const int64_t *regular, const int64_t *irregular,   \
                uint##M##_t *map_regular, uint##M##_t *map_irregular) {                            \
        map_medium(offsets, base, sorted, rows, row_blocks, loops, regular, irregular,             \
                   map_regular, map_irregular);                                                    \
    }
KERNELS(map_medium, (), (dasp_map_medium_32_u32, 32, 32), (dasp_map_medium_64_u32, 64, 32),
        (dasp_map_medium_64_u64, 64, 64))
#define KERNEL_map_short(name, O, M)                                                               \
    GLOBAL name(const int##O##_t *offsets, int64_t base, const int32_t *order, int cut,            \
                int64_t slots, uint##M##_t *map) {                                                 \
        map_short(offsets, base, order, cut, slots, map);                                          \
    }
KERNELS(map_short, (), (dasp_map_short_32_u32, 32, 32), (dasp_map_short_64_u32, 64, 32),
        (dasp_map_short_64_u64, 64, 64))

#define KERNEL_keys(name, O)                                                                       \
    GLOBAL name(const int##O##_t *offsets, int64_t rows, u32 *keys, u32 *numbers,                  \
                unsigned long long *histogram) {                                                   \
        keys_of_rows(offsets, rows, keys, numbers, histogram);                                     \
    }
KERNELS(keys, (), (dasp_keys_32, 32), (dasp_keys_64, 64))
#define KERNEL_count_long(name, O)                                                                 \
    GLOBAL name(const int##O##_t *offsets, const u32 *sorted, int64_t count, int64_t *groups,      \
                int64_t *tasks, int64_t *splits) {                                                 \
        count_long(offsets, sorted, count, groups, tasks, splits);                                 \
    }
KERNELS(count_long, (), (dasp_count_long_32, 32), (dasp_count_long_64, 64))
#define KERNEL_count_row_blocks(name, O)                                                           \
    GLOBAL name(const int##O##_t *offsets, const u32 *sorted, int64_t rows, int64_t row_blocks,    \
                int64_t *regular, int64_t *irregular, uint16_t *ends) {                            \
        count_row_blocks(offsets, sorted, rows, row_blocks, regular, irregular, ends);             \
    }
KERNELS(count_row_blocks, (), (dasp_count_row_blocks_32, 32), (dasp_count_row_blocks_64, 64))

#define KERNEL_columns(name, J, M)                                                                 \
    GLOBAL name(const int##J##_t *indices, int64_t base, const uint##M##_t *map, int64_t slots,    \
                int32_t *columns) {                                                                \
        columns_of_map(indices, base, map, slots, columns);                                        \
    }
KERNELS(columns, (), (dasp_columns_32_u32, 32, 32), (dasp_columns_64_u32, 64, 32),
        (dasp_columns_32_u64, 32, 64), (dasp_columns_64_u64, 64, 64))
#define KERNEL_compose(name, M)                                                                    \
    GLOBAL name(const int64_t *positions, int64_t slots, uint##M##_t *map) {                       \
        compose_map(positions, slots, map);                                                        \
    }
KERNELS(compose, (), (dasp_compose_u32, 32), (dasp_compose_u64, 64))
