// A product whose pattern is known, by a map of it: every entry of C has a list of its products, in
// the order of the left factor's row. A thread takes an entry and adds them up in a register, a
// warp one of a long list: no two threads add to one sum, whatever rows are like, and nothing is
// looked up. Worth its memory where entries have few products.
//
// A product takes 32 bits: where its factors are in their rows, the left one above the lowest
// Map::bits bits and the right one in them. Rows of the left factor that kernels/spgemm/wide.cu
// cuts into parts have sums of their own for each part here, too, so that all bits are the same.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Products of a row from which on a block makes its lists instead of a warp.
constexpr int64_t LONG_ROW = 8192;
constexpr int BLOCK = 512;
// Products of an entry from which on a warp adds them up.
constexpr uint32_t LONG_LIST = 64;
// Marks entries of rows in parts among their rows' beginnings.
constexpr uint32_t IN_PARTS = 0x80000000u;

// (`MapAt` in src/backend/cuda/spgemm/map.rs.)
struct Map {
    // Where the list of each entry of C ends, which is where that of the next one begins.
    uint32_t *ends;
    // Where the row of the left factor begins that the entry is of, and IN_PARTS.
    uint32_t *begins;
    // Where the row of the right factor begins that an entry of the left one meets.
    uint32_t *starts;
    // Where the factors of each product are in their rows.
    uint32_t *pairs;
    // Entries with long lists, in any order.
    uint32_t *long_lists;
    int32_t bits;
    // Entries of the left factor in a part.
    uint32_t part;
};

__device__ __forceinline__ uint32_t left_of(const Map &map, uint32_t pair) {
    return pair >> map.bits;
}
__device__ __forceinline__ uint32_t right_of(const Map &map, uint32_t pair) {
    return pair & ((1u << map.bits) - 1);
}

// Where `column` is among the entries [from, to) of C, which ascend; `to`: nowhere, which only a
// pattern that changed after analysis makes.
__device__ __forceinline__ int64_t find(const Ints &kept, int64_t from, int64_t to,
                                        int64_t column) {
    int64_t end = to;
    while (from < end) {
        const int64_t middle = from + (end - from) / 2;
        if (kept[middle] < column) {
            from = middle + 1;
        } else {
            end = middle;
        }
    }
    return from < to && kept[from] == column ? from : to;
}

// The lists of a row, from place `before` on, by all warps of a block, or by a team of `lanes` (a
// power of two up to 32) alone. `in_parts` is IN_PARTS or 0; `long_count` counts the long lists.
template <bool WHOLE_BLOCK>
__device__ __forceinline__ void make_row(const Factor &left, const Factor &right, int64_t row,
                                         const int64_t *offsets, const Ints &kept, uint32_t before,
                                         uint32_t in_parts, int lanes, const Map &map,
                                         unsigned long long *long_count, unsigned *parts) {
    const int warps = WHOLE_BLOCK ? blockDim.x / 32 : 1, warp = WHOLE_BLOCK ? threadIdx.x / 32 : 0;
    const int width = WHOLE_BLOCK ? 32 : lanes, inner = threadIdx.x & (width - 1);
    const int threads = width * warps, thread = warp * width + inner;
    const unsigned mine = (width == 32 ? ALL : (1u << width) - 1) << (lane_id() & ~(width - 1));
    const auto wait = [mine] {
        if (WHOLE_BLOCK) {
            __syncthreads();
        } else {
            __syncwarp(mine);
        }
    };
    const int64_t begin = left.start(row), end = left.start(row + 1);
    const int64_t place = offsets[row], last = offsets[row + 1];
    for (int64_t at = place + thread; at < last; at += threads)
        map.ends[at] = 0;
    wait();
    for (int64_t at = begin + warp; at < end; at += warps) {
        const int64_t k = left.column(at), from = right.start(k), to = right.start(k + 1);
        if (inner == 0)
            map.starts[at] = static_cast<uint32_t>(from);
        for (int64_t i = from + inner; i < to; i += width) {
            const int64_t entry = find(kept, place, last, right.column(i));
            if (entry < last)
                atomicAdd(map.ends + entry, 1u);
        }
    }
    wait();
    // Counts become the places where lists begin.
    for (int64_t first = place; first < last; first += threads) {
        const int64_t at = first + thread;
        const unsigned own = at < last ? map.ends[at] : 0;
        unsigned sum, all;
        if (WHOLE_BLOCK) {
            sum = block_sums(own, parts, all);
        } else {
            sum = own;
            for (int delta = 1; delta < width; delta *= 2) {
                const unsigned other = __shfl_up_sync(mine, sum, delta, width);
                if (inner >= delta)
                    sum += other;
            }
            all = __shfl_sync(mine, sum, width - 1, width);
        }
        if (at < last) {
            map.ends[at] = before + sum - own;
            map.begins[at] = static_cast<uint32_t>(begin) | in_parts;
            if (own >= LONG_LIST)
                map.long_lists[atomicAdd(long_count, 1ull)] = static_cast<uint32_t>(at);
        }
        before += all;
    }
    wait();
    // Every warp looks its own up, then they take turns, in the order of the left factor's row.
    for (int64_t first = begin; first < end; first += warps) {
        const int64_t at = first + warp;
        int64_t from = 0, to = 0, entry = last;
        if (at < end) {
            const int64_t k = left.column(at);
            from = right.start(k);
            to = right.start(k + 1);
        }
        if (from + inner < to)
            entry = find(kept, place, last, right.column(from + inner));
        const int turns = static_cast<int>(min(int64_t(warps), end - first));
        for (int turn = 0; turn < turns; ++turn) {
            if (turn == warp) {
                for (int64_t i = from + inner; i < to; i += width) {
                    if (i >= from + width)
                        entry = find(kept, place, last, right.column(i));
                    if (entry < last) {
                        // The columns of a row of `right` are distinct.
                        const uint32_t to_place = map.ends[entry];
                        map.ends[entry] = to_place + 1;
                        map.pairs[to_place] = static_cast<uint32_t>(at - begin) << map.bits |
                                              static_cast<uint32_t>(i - from);
                    }
                }
            }
            wait();
        }
    }
}

// The sum of an entry's products [first, end), by a warp: a lane a product, which all lanes add up
// in their order.
template <class A, class B, class T>
__device__ __forceinline__ T add_by_warp(const A *left_values, const B *right_values,
                                         const Map &map, uint32_t begin, uint32_t first,
                                         uint32_t end) {
    const bool in_parts = (begin & IN_PARTS) != 0;
    begin &= ~IN_PARTS;
    A left = {};
    B right = {};
    uint32_t offset = 0, last_part = 0;
    const auto load = [&](uint32_t place) {
        if (place < end) {
            const uint32_t pair = map.pairs[place];
            offset = left_of(map, pair);
            left = left_values[begin + offset];
            right = right_values[map.starts[begin + offset] + right_of(map, pair)];
        }
    };
    load(first + lane_id());
    T total = zero<T>(), sum = zero<T>();
    for (; first < end; first += 32) {
        const int count = static_cast<int>(min(32u, end - first));
        const T product = times(widen<T>(left), widen<T>(right));
        unsigned crossings = 0;
        if (in_parts) {
            const uint32_t part = offset / map.part, before = __shfl_up_sync(ALL, part, 1);
            crossings = __ballot_sync(ALL, part != (lane_id() == 0 ? last_part : before));
            last_part = __shfl_sync(ALL, part, count - 1);
        }
        // The next ones are on their way while these are added.
        load(first + 32 + lane_id());
#pragma unroll 8
        for (int i = 0; i < count; ++i) {
            if (crossings >> i & 1) {
                total = plus(total, sum);
                sum = zero<T>();
            }
            sum = plus(sum, from_lane(product, i));
        }
    }
    return plus(total, sum);
}

// The same by a thread.
template <class A, class B, class T>
__device__ __forceinline__ T add_by_thread(const A *left_values, const B *right_values,
                                           const Map &map, uint32_t begin, uint32_t first,
                                           uint32_t end) {
    // Where the next part begins.
    uint32_t boundary = (begin & IN_PARTS) != 0 ? map.part : ~0u;
    begin &= ~IN_PARTS;
    T total = zero<T>(), sum = zero<T>();
    // With two or four products in hand it took up to 1.3 times as long.
    for (; first < end; ++first) {
        const uint32_t pair = map.pairs[first], offset = left_of(map, pair);
        const uint32_t start = map.starts[begin + offset];
        if (offset >= boundary) {
            total = plus(total, sum);
            sum = zero<T>();
            boundary = (offset / map.part + 1) * map.part;
        }
        sum = plus(sum, times(widen<T>(left_values[begin + offset]),
                              widen<T>(right_values[start + right_of(map, pair)])));
    }
    // Neither is −0, so that this changes no bit of a row without parts.
    return plus(total, sum);
}

// Columns and values of all entries. The first blocks take the long lists.
template <class A, class B, class T>
__device__ __forceinline__ void
multiply(const A *left_values, const B *right_values, const Scalar<T> &scale, const Map &map,
         uint32_t long_lists, const Ints &kept, int64_t count, const Output &out) {
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    T *values = static_cast<T *>(out.values);
    const unsigned warps = blockDim.x / 32, long_blocks = (long_lists + warps - 1) / warps;
    if (blockIdx.x < long_blocks) {
        const unsigned number = blockIdx.x * warps + threadIdx.x / 32;
        if (vanishes || number >= long_lists)
            return;
        const uint32_t at = map.long_lists[number], first = at == 0 ? 0 : map.ends[at - 1];
        const T sum = add_by_warp<A, B, T>(left_values, right_values, map, map.begins[at], first,
                                           map.ends[at]);
        if (lane_id() == 0)
            values[at] = times(alpha, sum);
        return;
    }
    const int64_t stride = static_cast<int64_t>(gridDim.x - long_blocks) * blockDim.x;
    for (int64_t at = static_cast<int64_t>(blockIdx.x - long_blocks) * blockDim.x + threadIdx.x;
         at < count; at += stride) {
        const uint32_t first = at == 0 ? 0 : map.ends[at - 1], end = map.ends[at];
        if (vanishes) {
            values[at] = zero<T>();
        } else if (end - first < LONG_LIST) {
            values[at] = times(alpha, add_by_thread<A, B, T>(left_values, right_values, map,
                                                             map.begins[at], first, end));
        }
        if (out.columns != nullptr)
            out.put_column(at, kept[at]);
    }
}

} // namespace

// Marks the rows of a list that are cut into parts.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_map_rows_in_parts(Factor left, const uint32_t *list, int64_t count, Cut cut,
                             uint8_t *in_parts) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const int64_t row = list[i];
        in_parts[row] = cut.parts(left.start(row + 1) - left.start(row)) > 1;
    }
}

// list[0 … *count) = rows that blocks make the lists of, in any order.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_map_long_rows(const int64_t *products, int64_t rows, uint32_t *list,
                         unsigned long long *count) {
    for (int64_t row = first_item(); row < rows; row += grid_stride()) {
        if (products[row] >= LONG_ROW)
            list[atomicAdd(count, 1ull)] = static_cast<uint32_t>(row);
    }
}

// Lists of the other rows, a team of `lanes` each. before[row] = products of the rows before;
// in_parts[row]: it is cut into parts, NULL: none is.
extern "C" __global__ void __launch_bounds__(256, 6)
    spgemm_map_make(Factor left, Factor right, const int64_t *products, int64_t rows,
                    const int64_t *before, const uint8_t *in_parts, const int64_t *offsets,
                    Ints kept, int32_t lanes, Map map, unsigned long long *long_count) {
    const unsigned teams = blockDim.x / lanes;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * teams + threadIdx.x / lanes;
    if (row < rows && products[row] > 0 && products[row] < LONG_ROW)
        make_row<false>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]),
                        in_parts != nullptr && in_parts[row] ? IN_PARTS : 0, lanes, map, long_count,
                        nullptr);
}

// Lists of rows of a list, a block each.
extern "C" __global__ void __launch_bounds__(BLOCK, 2)
    spgemm_map_make_long(Factor left, Factor right, const uint32_t *list, const int64_t *before,
                         const uint8_t *in_parts, const int64_t *offsets, Ints kept, Map map,
                         unsigned long long *long_count) {
    __shared__ unsigned parts[32];
    const int64_t row = list[blockIdx.x];
    make_row<true>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]),
                   in_parts != nullptr && in_parts[row] ? IN_PARTS : 0, 32, map, long_count, parts);
}

#define KERNEL_multiply(name, types) KERNEL_OF(MULTIPLY, name, TYPES_##types)
#define MULTIPLY(name, A, B, C, T)                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const A *left_values, const B *right_values, Scalar<T> alpha, Map map,                \
             uint32_t long_lists, Ints kept, int64_t count, Output out) {                          \
        multiply<A, B, T>(left_values, right_values, alpha, map, long_lists, kept, count, out);    \
    }
KERNELS(multiply, (), (spgemm_map_multiply_f64, f64), (spgemm_map_multiply_f32, f32),
        (spgemm_map_multiply_f16f32, f16f32), (spgemm_map_multiply_bf16f32, bf16f32),
        (spgemm_map_multiply_c32, c32), (spgemm_map_multiply_c64, c64))
