// A product whose pattern is known, by a map of it: every entry of C has a list of its products, in
// the order of the left factor's row, each as the positions of its two factors. A thread takes an
// entry and adds them up in a register: no two threads add to one sum, whatever rows are like, and
// nothing is looked up. Worth its memory where entries have few products.
//
// ends[i] is where the list of entry i ends, which is where that of entry i + 1 begins.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Products of a row from which on a block makes its lists instead of a warp.
constexpr int64_t LONG_ROW = 8192;
constexpr int BLOCK = 512;

// Positions in the left and the right factor.
struct __align__(8) Pair {
    uint32_t left, right;
};

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
// power of two up to 32) alone.
template <bool WHOLE_BLOCK>
__device__ __forceinline__ void make_row(const Factor &left, const Factor &right, int64_t row,
                                         const int64_t *offsets, const Ints &kept, uint32_t before,
                                         int lanes, uint32_t *ends, Pair *pairs, unsigned *parts) {
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
        ends[at] = 0;
    wait();
    for (int64_t at = begin + warp; at < end; at += warps) {
        const int64_t k = left.column(at), to = right.start(k + 1);
        for (int64_t i = right.start(k) + inner; i < to; i += width) {
            const int64_t entry = find(kept, place, last, right.column(i));
            if (entry < last)
                atomicAdd(ends + entry, 1u);
        }
    }
    wait();
    // Counts become the places where lists begin.
    for (int64_t first = place; first < last; first += threads) {
        const int64_t at = first + thread;
        const unsigned own = at < last ? ends[at] : 0;
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
        if (at < last)
            ends[at] = before + sum - own;
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
                        const uint32_t to_place = ends[entry];
                        ends[entry] = to_place + 1;
                        pairs[to_place] = {static_cast<uint32_t>(at), static_cast<uint32_t>(i)};
                    }
                }
            }
            wait();
        }
    }
}

// Columns and values of all entries.
template <class A, class B, class T>
__device__ __forceinline__ void
multiply(const A *left_values, const B *right_values, const Scalar<T> &scale, const uint32_t *ends,
         const Pair *pairs, const Ints &kept, int64_t count, const Output &out) {
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count;
         at += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        uint32_t first = at == 0 ? 0 : ends[at - 1];
        const uint32_t end = vanishes ? first : ends[at];
        T sum = zero<T>();
        // With two or four products in hand it took up to 1.3 times as long.
        for (; first < end; ++first) {
            const Pair pair = pairs[first];
            sum = plus(sum,
                       times(widen<T>(left_values[pair.left]), widen<T>(right_values[pair.right])));
        }
        static_cast<T *>(out.values)[at] = vanishes ? zero<T>() : times(alpha, sum);
        if (out.columns != nullptr)
            out.put_column(at, kept[at]);
    }
}

} // namespace

// list[0 … *count) = rows that blocks make the lists of, in any order.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_map_long_rows(const int64_t *products, int64_t rows, uint32_t *list,
                         unsigned long long *count) {
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < rows;
         row += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        if (products[row] >= LONG_ROW)
            list[atomicAdd(count, 1ull)] = static_cast<uint32_t>(row);
    }
}

// Lists of the other rows, a team of `lanes` each. before[row] = products of the rows before.
extern "C" __global__ void __launch_bounds__(256, 6)
    spgemm_map_make(Factor left, Factor right, const int64_t *products, int64_t rows,
                    const int64_t *before, const int64_t *offsets, Ints kept, int32_t lanes,
                    uint32_t *ends, Pair *pairs) {
    const unsigned teams = blockDim.x / lanes;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * teams + threadIdx.x / lanes;
    if (row < rows && products[row] > 0 && products[row] < LONG_ROW)
        make_row<false>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]), lanes,
                        ends, pairs, nullptr);
}

// Lists of rows of a list, a block each.
extern "C" __global__ void __launch_bounds__(BLOCK, 2)
    spgemm_map_make_long(Factor left, Factor right, const uint32_t *list, const int64_t *before,
                         const int64_t *offsets, Ints kept, uint32_t *ends, Pair *pairs) {
    __shared__ unsigned parts[32];
    const int64_t row = list[blockIdx.x];
    make_row<true>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]), 32, ends,
                   pairs, parts);
}

#define KERNEL_multiply(name, types) KERNEL_OF(MULTIPLY, name, TYPES_##types)
#define MULTIPLY(name, A, B, C, T)                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const A *left_values, const B *right_values, Scalar<T> alpha, const uint32_t *ends,   \
             const Pair *pairs, Ints kept, int64_t count, Output out) {                            \
        multiply<A, B, T>(left_values, right_values, alpha, ends, pairs, kept, count, out);        \
    }
KERNELS(multiply, (), (spgemm_map_multiply_f64, f64), (spgemm_map_multiply_f32, f32),
        (spgemm_map_multiply_f16f32, f16f32), (spgemm_map_multiply_bf16f32, bf16f32),
        (spgemm_map_multiply_c32, c32), (spgemm_map_multiply_c64, c64))
