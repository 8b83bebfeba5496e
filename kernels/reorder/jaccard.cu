// Clusters similar rows into windows, by the method that src/reorder/jaccard.rs describes. Its CPU
// implementation gives the same windows bit for bit: all arithmetic is on integers, so the order of
// atomic additions does not matter.

#include "common/grid.cuh"
#include "common/kernels.cuh"
#include "common/search.cuh"
#include "ptx/warp.cuh"

namespace tarsia::reorder {

constexpr int THREADS = 256, WARPS = THREADS / WARP;
// Constants of src/reorder/jaccard.rs, and Windows::HOLE of src/reorder/permutation.rs.
constexpr int SLOTS = 32, WORDS = SLOTS / 2, TILE = 64;
constexpr uint32_t DRAW = 1u << 31, HOLE = ~0u;
// Bit of a key whose cluster has been merged into another one, or is full.
constexpr uint32_t RETIRED = 1u << 31;
// Longest row (in entries) whose signature a single warp computes, by 64 loads per lane.
constexpr int64_t LONG = 2048;

struct alignas(16) Signature {
    uint32_t words[WORDS];

    __device__ __forceinline__ uint32_t slot(int slot) const {
        return words[slot / 2] >> slot % 2 * 16 & 0xffff;
    }
};
static_assert(sizeof(Signature) == 2 * SLOTS);

__device__ __forceinline__ uint32_t mix(uint32_t bits) {
    bits ^= bits >> 16;
    bits *= 0x7feb352du;
    bits ^= bits >> 15;
    bits *= 0x846ca68bu;
    return bits ^ bits >> 16;
}

__device__ __forceinline__ uint32_t shorten(uint32_t bits) {
    const int first = 31 - __clz(bits | 1);
    const uint32_t next = first >= 11 ? bits >> (first - 11) : bits << (11 - first);
    return uint32_t(first) << 11 | (next & 0x7ff);
}

// Pattern of op(A), row by row; the columns of each row ascend.
template <class O, class J> struct Pattern {
    const O *offsets;
    const J *indices;
    int64_t base, rows;
    uint32_t width;

    __device__ __forceinline__ int64_t start(int64_t row) const {
        return int64_t(offsets[row]) - base;
    }
    // A 64-bit division takes four times as long as a 32-bit one.
    __device__ __forceinline__ int64_t block_column(int64_t entry) const {
        const J column = J(indices[entry] - J(base));
        if constexpr (sizeof(J) == 4)
            return uint32_t(column) / width;
        return uint64_t(column) / width;
    }
    // Last row of [low, high) that starts at or before `entry`; row `low` does.
    __device__ __forceinline__ int64_t row_of(int64_t entry, int64_t low, int64_t high) const {
        return last_where(low, high, [&](int64_t row) { return start(row) <= entry; });
    }
    __device__ __forceinline__ bool has(int64_t row, int64_t column) const {
        const int64_t end = start(row + 1);
        const auto is_before = [&](int64_t at) { return block_column(at) < column; };
        const int64_t found = first_where_not(start(row), end, is_before);
        return found < end && block_column(found) == column;
    }
};

// Least hash of slot `lane` over a part of the row [start, end): 32 entries from `from` on, then
// the 32 that are `step` further on, and so on. Called by all lanes of a warp.
template <class O, class J>
__device__ __forceinline__ uint32_t least_hash(const Pattern<O, J> &a, int64_t start, int64_t end,
                                               int64_t from, int64_t step) {
    const int lane = threadIdx.x % WARP;
    const uint32_t seed = mix(0x9e3779b9u * uint32_t(lane + 1));
    uint32_t least = ~0u;
    for (; from < end; from += step) {
        const int64_t entry = from + lane;
        uint32_t spread = 0;
        bool is_new = false;
        if (entry < end) {
            const int64_t column = a.block_column(entry);
            is_new = entry == start || a.block_column(entry - 1) != column;
            spread = mix(uint32_t(column));
        }
        for (unsigned left = __ballot_sync(ALL_LANES, is_new); left; left &= left - 1) {
            uint32_t bits = (__shfl_sync(ALL_LANES, spread, __ffs(left) - 1) ^ seed) * 0x9e3779b1u;
            bits ^= bits >> 15;
            bits *= 0x85ebca6bu;
            least = min(least, bits ^ bits >> 13);
        }
    }
    return least;
}

// Computes the rows' signatures and makes each row a cluster. One warp per row; long rows take the
// whole block.
template <class O, class J>
__device__ void compute_signatures(const Pattern<O, J> &a, uint16_t *signatures, uint8_t *sizes,
                                   uint32_t *parents, uint32_t *list) {
    __shared__ uint32_t least[SLOTS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t first = int64_t(blockIdx.x) * WARPS, row = first + warp;
    bool is_long = false;
    if (row < a.rows) {
        const int64_t start = a.start(row), end = a.start(row + 1);
        is_long = end - start > LONG;
        if (!is_long)
            signatures[row * SLOTS + lane] = shorten(least_hash(a, start, end, start, WARP));
        if (lane == 0) {
            sizes[row] = 1;
            parents[row] = list[row] = uint32_t(row);
        }
    }
    if (!__syncthreads_or(is_long))
        return;
    for (int64_t other = first; other < min(first + WARPS, a.rows); ++other) {
        const int64_t start = a.start(other), end = a.start(other + 1);
        if (end - start <= LONG)
            continue;
        if (threadIdx.x < SLOTS)
            least[threadIdx.x] = ~0u;
        __syncthreads();
        atomicMin(least + lane, least_hash(a, start, end, start + warp * WARP, THREADS));
        __syncthreads();
        if (threadIdx.x < SLOTS)
            signatures[other * SLOTS + lane] = shorten(least[lane]);
        __syncthreads();
    }
}

// Adds to `sum` the number of blocks with an entry in windows of `height` rows of `row_at`, or of
// `height` consecutive rows if `row_at` is NULL: it counts a row's first entry in a block if no row
// before it in the window has that block. One thread per entry.
template <class O, class J>
__device__ void count_blocks(const Pattern<O, J> &a, int64_t nnz, uint32_t height,
                             const uint32_t *row_at, const uint32_t *position_of,
                             unsigned long long *sum) {
    const int64_t entry = first_item();
    const int lane = threadIdx.x % WARP;
    const int64_t warp_first = entry - lane;
    bool is_new = false;
    if (warp_first < nnz) {
        // The first and last lane search all rows for their entries; the others search in between.
        int64_t bound = 0;
        if (lane == 0 || lane == WARP - 1)
            bound = a.row_of(lane == 0 ? warp_first : min(warp_first + WARP, nnz) - 1, 0, a.rows);
        const int64_t low = __shfl_sync(ALL_LANES, bound, 0),
                      high = __shfl_sync(ALL_LANES, bound, WARP - 1) + 1;
        if (entry < nnz) {
            const int64_t row = a.row_of(entry, low, high), column = a.block_column(entry);
            is_new = entry == a.start(row) || a.block_column(entry - 1) != column;
            const uint32_t index = position_of != nullptr ? position_of[row] : uint32_t(row);
            for (uint32_t before = index; is_new && before % height != 0;) {
                --before;
                is_new = !a.has(row_at != nullptr ? row_at[before] : before, column);
            }
        }
    }
    const int found = __syncthreads_count(is_new);
    if (threadIdx.x == 0 && found > 0)
        atomicAdd(sum, static_cast<unsigned long long>(found));
}

__device__ __forceinline__ bool is_active(uint32_t first, const uint8_t *sizes,
                                          const uint32_t *parents, int height) {
    return parents[first] == first && sizes[first] < height;
}

// Flags the clusters of the list that may still grow, with one 0 behind them. One thread per
// cluster.
__device__ void flag_active(int64_t count, const uint32_t *list, const uint8_t *sizes,
                            const uint32_t *parents, int height, int64_t *flags) {
    const int64_t at = first_item();
    if (at <= count)
        flags[at] = at < count && is_active(list[at], sizes, parents, height);
}

// Flags the rows that are drawn for the sample, one in `one_in` (a power of two), with one 0 behind
// them. One thread per row.
__device__ void flag_drawn(int64_t rows, const Signature *signatures, int slot, uint32_t one_in,
                           int64_t *flags) {
    const int64_t row = first_item();
    if (row <= rows)
        flags[row] = row < rows && (mix(signatures[row].slot(slot) | DRAW) & (one_in - 1)) == 0;
}

// Compacts the flagged elements of the list; `before` holds the exclusive sums of the flags. One
// thread per element.
__device__ void keep(int64_t count, const uint32_t *list, const int64_t *before, uint32_t *out) {
    const int64_t at = first_item();
    if (at < count && before[at + 1] > before[at])
        out[before[at]] = list[at];
}

// Writes the sort keys of the list and counts the clusters that may still grow. One thread per
// cluster.
__device__ void write_keys(int64_t count, const uint32_t *list, const Signature *signatures,
                           const uint8_t *sizes, const uint32_t *parents, int height, int slot,
                           int other_slot, uint32_t *keys, uint32_t *firsts,
                           unsigned long long *active_sum) {
    const int64_t at = first_item();
    bool active = false;
    if (at < count) {
        const uint32_t first = list[at];
        active = is_active(first, sizes, parents, height);
        uint32_t key = RETIRED;
        if (active) {
            const Signature &own = signatures[first];
            key = mix(own.slot(slot)) >> 12 << 11 | mix(own.slot(other_slot)) >> 21;
        }
        keys[at] = key;
        firsts[at] = first;
    }
    const int found = __syncthreads_count(active);
    if (threadIdx.x == 0 && found > 0)
        atomicAdd(active_sum, static_cast<unsigned long long>(found));
}

// Number of slots in which two signatures agree.
__device__ __forceinline__ uint32_t agreeing(const uint32_t (&a)[WORDS],
                                             const uint32_t (&b)[WORDS]) {
    uint32_t sums = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w)
        sums += __vseteq2(a[w], b[w]);
    return (sums & 0xffff) + (sums >> 16);
}

__device__ __forceinline__ void load(uint32_t (&words)[WORDS], const Signature *signature) {
    const uint4 *const from = reinterpret_cast<const uint4 *>(signature);
#pragma unroll
    for (int i = 0; i < WORDS / 4; ++i) {
        const uint4 four = from[i];
        words[4 * i] = four.x, words[4 * i + 1] = four.y;
        words[4 * i + 2] = four.z, words[4 * i + 3] = four.w;
    }
}

// Merges clusters greedily inside tiles of the list, which is sorted by keys (if `keys` is NULL,
// all clusters are active and sorted by first rows): joins clusters whose signatures agree in at
// least `needed` slots, up to `height` rows. One warp per tile, two clusters per lane; no other
// warp accesses the clusters of its tile.
__device__ void join(int64_t count, const uint32_t *list, const uint32_t *keys, uint32_t height,
                     uint32_t needed, Signature *signatures, uint8_t *sizes, uint32_t *parents,
                     unsigned long long *joined) {
    const int lane = threadIdx.x % WARP;
    const int64_t tile = first_item() / WARP * TILE;
    if (tile >= count)
        return;
    uint32_t first[2] = {}, size[2] = {}, words[2][WORDS] = {};
    uint64_t left = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int64_t at = tile + half * WARP + lane;
        const bool is_there = at < count && (keys == nullptr || (keys[at] & RETIRED) == 0);
        if (is_there) {
            first[half] = list[at];
            size[half] = sizes[first[half]];
            load(words[half], signatures + first[half]);
        }
        left |= uint64_t(__ballot_sync(ALL_LANES, is_there)) << half * WARP;
    }
    const auto behind = [&](int index) {
        return index == TILE - 1 ? 0 : left & ~uint64_t(0) << (index + 1);
    };
    const auto of = [&](int index, uint32_t low, uint32_t high) {
        return __shfl_sync(ALL_LANES, index < WARP ? low : high, index % WARP);
    };
    int taken = 0;
    for (int taker = 0; taker < TILE; ++taker) {
        if ((left >> taker & 1) == 0)
            continue;
        uint64_t later = behind(taker);
        if (later == 0)
            break;
        uint32_t all[WORDS];
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            all[w] = of(taker, words[0][w], words[1][w]);
        uint32_t rows = of(taker, size[0], size[1]), low = of(taker, first[0], first[1]);
        const int before = taken;
        while (later != 0) {
            bool fits[2];
#pragma unroll
            for (int half = 0; half < 2; ++half)
                fits[half] = (later >> half * WARP >> lane & 1) != 0 &&
                             rows + size[half] <= height && agreeing(all, words[half]) >= needed;
            const uint64_t fitting = __ballot_sync(ALL_LANES, fits[0]) |
                                     uint64_t(__ballot_sync(ALL_LANES, fits[1])) << WARP;
            if (fitting == 0)
                break;
            const int index = __ffsll(static_cast<long long>(fitting)) - 1;
#pragma unroll
            for (int w = 0; w < WORDS; ++w)
                all[w] = __vminu2(all[w], of(index, words[0][w], words[1][w]));
            rows += of(index, size[0], size[1]);
            const uint32_t other = of(index, first[0], first[1]);
            if (lane == 0)
                parents[max(low, other)] = min(low, other);
            low = min(low, other);
            left &= ~(uint64_t(1) << index);
            later = behind(index);
            ++taken;
        }
        if (taken > before && lane == 0) {
            uint4 *const to = reinterpret_cast<uint4 *>(signatures + low);
#pragma unroll
            for (int i = 0; i < WORDS / 4; ++i)
                to[i] = make_uint4(all[4 * i], all[4 * i + 1], all[4 * i + 2], all[4 * i + 3]);
            sizes[low] = uint8_t(rows);
        }
    }
    if (lane == 0 && taken > 0)
        atomicAdd(joined, static_cast<unsigned long long>(taken));
}

// Adds up the similarity of a sample: for each row of a tile, the slots in which it agrees with the
// height − 1 rows of the tile that are most similar (`near`), and with the other rows of its window
// (`now`, unless NULL). The tiles consist of the rows of the list or, if `list` is NULL, are one in
// `one_in` tiles of all rows. One block of TILE threads per tile.
__device__ void sample(int64_t count, const uint32_t *list, int64_t one_in, int height,
                       const Signature *signatures, unsigned long long *near,
                       unsigned long long *now) {
    __shared__ uint4 rows[WORDS / 4][TILE];
    __shared__ uint8_t counts[SLOTS + 1][TILE];
    const int index = threadIdx.x;
    const int64_t tile = int64_t(blockIdx.x) * TILE * (list != nullptr ? 1 : one_in);
    const int size = int(min(int64_t(TILE), count - tile));
    uint32_t words[WORDS] = {};
    if (index < size) {
        load(words, signatures + (list != nullptr ? list[tile + index] : tile + index));
#pragma unroll
        for (int i = 0; i < WORDS / 4; ++i)
            rows[i][index] =
                make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    for (int slots = 0; slots <= SLOTS; ++slots)
        counts[slots][index] = 0;
    __syncthreads();
    unsigned of_window = 0, of_best = 0;
    if (index < size) {
        for (int other = 0; other < size; ++other) {
            uint32_t others[WORDS];
#pragma unroll
            for (int i = 0; i < WORDS / 4; ++i) {
                const uint4 four = rows[i][other];
                others[4 * i] = four.x, others[4 * i + 1] = four.y;
                others[4 * i + 2] = four.z, others[4 * i + 3] = four.w;
            }
            const uint32_t slots = agreeing(words, others);
            ++counts[slots][index];
            if (other / height == index / height)
                of_window += slots;
        }
        // Takes off the row's agreement with itself.
        of_window -= SLOTS;
        --counts[SLOTS][index];
        int left = height - 1;
        for (int slots = SLOTS; slots > 0 && left > 0; --slots) {
            const int taken = min(left, int(counts[slots][index]));
            of_best += slots * taken;
            left -= taken;
        }
    }
    of_window = __reduce_add_sync(ALL_LANES, of_window);
    of_best = __reduce_add_sync(ALL_LANES, of_best);
    if (threadIdx.x % WARP == 0) {
        atomicAdd(near, static_cast<unsigned long long>(of_best));
        if (now != nullptr)
            atomicAdd(now, static_cast<unsigned long long>(of_window));
    }
}

// Writes the first row of each row's cluster as its sort key, sets out[row] = row, which is sorted
// with the keys, and flags the first rows, with one 0 behind them. One thread per row.
__device__ void find_roots(int64_t rows, const uint32_t *parents, uint32_t *keys, uint32_t *out,
                           int64_t *flags) {
    const int64_t row = first_item();
    if (row > rows)
        return;
    if (row == rows) {
        flags[row] = 0;
        return;
    }
    uint32_t root = uint32_t(row);
    for (uint32_t parent = parents[root]; parent != root; parent = parents[root])
        root = parent;
    keys[row] = root;
    out[row] = uint32_t(row);
    flags[row] = root == row;
}

// Marks all places of the windows as empty. One thread per place.
__device__ void clear_windows(int64_t count, uint32_t *row_at) {
    const int64_t at = first_item();
    if (at < count)
        row_at[at] = HOLE;
}

// Writes rows, which are sorted by the first row of their cluster, into their cluster's window,
// which has the number windows[first row]. One thread per row.
__device__ void position_rows(int64_t rows, const uint32_t *keys, const uint32_t *sorted,
                              const int64_t *windows, uint32_t height, uint32_t *row_at,
                              uint32_t *position_of) {
    const int64_t at = first_item();
    if (at >= rows)
        return;
    const uint32_t root = keys[at];
    int64_t head = at;
    // At most as many steps as a window has rows.
    while (head > 0 && keys[head - 1] == root)
        --head;
    const uint32_t index = uint32_t(windows[root]) * height + uint32_t(at - head);
    row_at[index] = sorted[at];
    position_of[sorted[at]] = index;
}

} // namespace tarsia::reorder

using namespace tarsia::reorder;

#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS)

#define KERNEL_compute_signatures(name, O, J)                                                      \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int32_t width, uint16_t *signatures, uint8_t *sizes, uint32_t *parents,            \
                uint32_t *list) {                                                                  \
        compute_signatures(                                                                        \
            Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, uint32_t(width)},        \
            signatures, sizes, parents, list);                                                     \
    }
KERNELS(compute_signatures, (), (jaccard_compute_signatures_32_32, 32, 32),
        (jaccard_compute_signatures_64_32, 64, 32), (jaccard_compute_signatures_64_64, 64, 64))
#define KERNEL_count_blocks(name, O, J)                                                            \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int32_t width, int64_t nnz, int32_t height, const uint32_t *row_at,                \
                const uint32_t *position_of, unsigned long long *sum) {                            \
        count_blocks(                                                                              \
            Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, uint32_t(width)}, nnz,   \
            uint32_t(height), row_at, position_of, sum);                                           \
    }
KERNELS(count_blocks, (), (jaccard_count_blocks_32_32, 32, 32),
        (jaccard_count_blocks_64_32, 64, 32), (jaccard_count_blocks_64_64, 64, 64))

GLOBAL jaccard_flag_active(int64_t count, const uint32_t *list, const uint8_t *sizes,
                           const uint32_t *parents, int32_t height, int64_t *flags) {
    flag_active(count, list, sizes, parents, height, flags);
}
GLOBAL jaccard_flag_drawn(int64_t rows, const Signature *signatures, int32_t slot, int64_t one_in,
                          int64_t *flags) {
    flag_drawn(rows, signatures, slot, uint32_t(one_in), flags);
}
GLOBAL jaccard_keep(int64_t count, const uint32_t *list, const int64_t *before, uint32_t *out) {
    keep(count, list, before, out);
}
GLOBAL jaccard_write_keys(int64_t count, const uint32_t *list, const Signature *signatures,
                          const uint8_t *sizes, const uint32_t *parents, int32_t height,
                          int32_t slot, int32_t other_slot, uint32_t *keys, uint32_t *firsts,
                          unsigned long long *active) {
    write_keys(count, list, signatures, sizes, parents, height, slot, other_slot, keys, firsts,
               active);
}
GLOBAL jaccard_join(int64_t count, const uint32_t *list, const uint32_t *keys, int32_t height,
                    int32_t needed, Signature *signatures, uint8_t *sizes, uint32_t *parents,
                    unsigned long long *joined) {
    join(count, list, keys, uint32_t(height), uint32_t(needed), signatures, sizes, parents, joined);
}
extern "C" __global__ void __launch_bounds__(TILE)
    jaccard_sample(int64_t count, const uint32_t *list, int64_t one_in, int32_t height,
                   const Signature *signatures, unsigned long long *near, unsigned long long *now) {
    sample(count, list, one_in, height, signatures, near, now);
}
GLOBAL jaccard_find_roots(int64_t rows, const uint32_t *parents, uint32_t *keys, uint32_t *out,
                          int64_t *flags) {
    find_roots(rows, parents, keys, out, flags);
}
GLOBAL jaccard_clear_windows(int64_t count, uint32_t *row_at) { clear_windows(count, row_at); }
GLOBAL jaccard_position_rows(int64_t rows, const uint32_t *keys, const uint32_t *sorted,
                             const int64_t *windows, int32_t height, uint32_t *row_at,
                             uint32_t *position_of) {
    position_rows(rows, keys, sorted, windows, uint32_t(height), row_at, position_of);
}
