// SpMV `sell`: y = alpha · A · x + beta · y on the slices of src/format/warp_sell.rs, one warp per
// slice, or per two slices with PAIRS, in one launch.
//
// A lane loads groups of GROUP columns and the values of ITEM_ROWS rows there, and those of the
// next steps before it waits for x of the current ones: a short launch is limited by the number of
// bytes in flight. Many small blocks that end and make room are faster here than resident ones that
// loop, and loads into registers are faster than bulk copies to shared memory
// (docs/algorithms/sell.md).

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "common/slots.cuh"
#include "ptx/launch.cuh"
#include "spmv/sell.cuh"

namespace tarsia::spmv {

// Threads of a block, with one slice per warp, or two with PAIRS. Blocks are small, since blocks of
// few slices spread better over multiprocessors and end one by one.
constexpr int SELL_THREADS = 128;

// Adds the sums of a block's parts of a row in their order; the row's last block also adds those of
// the row's other blocks, from `first` on. All lanes have the sum of their warp.
template <class Y, class Acc>
__device__ __forceinline__ void join_parts(int64_t first, bool is_last, Acc sum, const Target<Y> &y,
                                           int64_t row, Acc alpha, Acc beta, SlotWord *slots) {
    constexpr int WARPS = SELL_THREADS / WARP;
    __shared__ Acc sums[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    if (warp > 0)
        return;
    Acc total = sums[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w)
        total = add(total, sums[w]);
    const int64_t block = blockIdx.x;
    if (!is_last) {
        if (lane == 0)
            fill_slot(slots, block, total);
        return;
    }
    if (first < block) {
        const Acc others =
            sum_of_parts<Acc>(first, block, [&](int64_t b) { return await_slot<Acc>(slots, b); });
        total = add(others, total);
    }
    if (lane == 0)
        y.store(row, alpha, total, beta);
}

// Computes the sums of a slice's items of ITEM_ROWS rows; all lanes of an item get them.
template <int GROUP, int ITEM_ROWS, int AHEAD, class A, class X, class Acc>
__device__ __forceinline__ void sum_slice(const Sell<A> &a, const SliceHead &head, const X *x,
                                          const Steps &steps, LaneItem &item,
                                          Acc (&sums)[ITEM_ROWS]) {
#pragma unroll
    for (int k = 0; k < ITEM_ROWS; ++k)
        sums[k] = zero<Acc>();
    const int lane = threadIdx.x % WARP;
    const A *values = a.values + int64_t(head.first) * WARP;
    const int64_t first = int64_t(head.columns) * WARP;
    const auto from = [](const X *x) {
        return [x](uint32_t column) { return load_cached(x + column); };
    };
    if (head.flags & WIDE) {
        sum_lane<GROUP, ITEM_ROWS, AHEAD, Columns::WIDE>(sums, values, a.wide + first, lane, lane,
                                                         WARP * GROUP / 2, WARP * GROUP, from(x),
                                                         steps, item);
    } else if (head.flags & ADJACENT) {
        sum_lane<GROUP, ITEM_ROWS, AHEAD, Columns::ADJACENT>(sums, values, a.narrow + first, lane,
                                                             lane, WARP, WARP, from(x + head.base),
                                                             steps, item);
    } else {
        // Runs store only lane 0's columns, with those of all steps side by side.
        const bool runs = ITEM_ROWS == 1 && head.flags & RUNS;
        sum_lane<GROUP, ITEM_ROWS, AHEAD, Columns::NARROW>(
            sums, values, a.narrow + first, lane, runs ? 0 : lane, runs ? GROUP : WARP * GROUP / 2,
            runs ? GROUP : WARP * GROUP, from(x + head.base + (runs ? lane : 0)), steps, item);
    }
    for (int delta = 1 << head.lanes_log2 >> 1; delta > 0; delta /= 2) {
#pragma unroll
        for (int k = 0; k < ITEM_ROWS; ++k)
            sums[k] = add(sums[k], shuffle_xor(sums[k], delta));
    }
}

// Number of steps in flight besides the next ones, as registers allow for eight blocks.
template <int GROUP, int ITEM_ROWS, class A>
constexpr int STEPS_UNDER_WAY = (ITEM_ROWS > 1 || GROUP > 2) && sizeof(A) > 4 ? 1 : 2;

// Computes y for the rows of a slice.
template <int GROUP, int ITEM_ROWS, int AHEAD, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sell_slice(const Sell<A> &a, int64_t slice, const X *x,
                                           const Target<Y> &y, Scalar<Acc> alpha, Scalar<Acc> beta,
                                           SlotWord *slots) {
    const int lane = threadIdx.x % WARP;
    const SliceHead head = load_head(a, slice);
    const int rank = lane & ((1 << head.lanes_log2) - 1);
    const Steps steps = {head.steps, (head.flags & HALF) != 0, head.lanes_log2, rank};
    LaneItem item = find_item(a, head, lane);
    if constexpr (ITEM_ROWS > 1) {
        if (head.flags & ROWS) {
            Acc sums[ITEM_ROWS];
            sum_slice<GROUP, ITEM_ROWS, AHEAD>(a, head, x, steps, item, sums);
            if (item.row == NO_ROW)
                return;
#pragma unroll
            for (int k = 0; k < ITEM_ROWS; ++k) {
                if (rank == (k & ((1 << head.lanes_log2) - 1)))
                    y.store_by_distance(int64_t(item.row) + k, alpha.get(), sums[k], beta.get());
            }
            return;
        }
    }
    Acc sum[1];
    sum_slice<GROUP, 1, AHEAD>(a, head, x, steps, item, sum);
    if (head.flags & PART) {
        join_parts(head.place, head.flags & LAST, sum[0], y, item.row, alpha.get(), beta.get(),
                   slots);
    } else if (rank == 0 && item.row != NO_ROW) {
        y.store(item.row, alpha.get(), sum[0], beta.get());
    }
}

template <int GROUP, int ITEM_ROWS, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sell(const Sell<A> &a, const X *x, const Target<Y> &y,
                                     Scalar<Acc> alpha, Scalar<Acc> beta, SlotWord *slots) {
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    const int64_t slice = (int64_t(blockIdx.x) * SELL_THREADS + threadIdx.x) / WARP;
    if (slice < a.slices)
        sell_slice<GROUP, ITEM_ROWS, STEPS_UNDER_WAY<GROUP, ITEM_ROWS, A>>(a, slice, x, y, alpha,
                                                                           beta, slots);
}

// Entries of the longest row in a matrix whose slices are taken in pairs, as in
// src/format/warp_sell.rs.
constexpr int PAIR_LENGTH = 8;

// Slice of single rows of at most PAIR_LENGTH entries, with narrow columns, no half step and one
// lane per row: all of a lane's loads from it are in flight at one time.
template <int GROUP, class A, class X, class Acc> struct ShortSlice {
    static constexpr int STEPS = PAIR_LENGTH / GROUP;
    Groups<A, GROUP, 1, STEPS, Columns::NARROW> groups;
    X factors[STEPS][GROUP];
    LaneItem item;
    int length;

    static __device__ __forceinline__ bool fits(const SliceHead &head) {
        return !(head.flags & (WIDE | ADJACENT | HALF)) && head.lanes_log2 == 0;
    }
    __device__ __forceinline__ void load(const Sell<A> &a, const SliceHead &head) {
        const int lane = threadIdx.x % WARP;
        item = find_item(a, head, lane);
        const bool runs = head.flags & RUNS;
        groups.load(a.values + int64_t(head.first) * WARP + lane * GROUP,
                    a.narrow + int64_t(head.columns) * WARP + (runs ? 0 : lane * GROUP),
                    runs ? GROUP : WARP * GROUP, head.steps);
    }
    __device__ __forceinline__ void gather(const SliceHead &head, const X *x) {
        length = item.begin();
        x += head.base + (head.flags & RUNS ? threadIdx.x % WARP : 0);
        groups.load_factors(
            factors, [x](uint32_t column) { return load_cached(x + column); }, 0, length);
    }
    template <class Y>
    __device__ __forceinline__ void finish(const Target<Y> &y, Acc alpha, Acc beta) const {
        Acc sum[1] = {zero<Acc>()};
        groups.add(sum, factors, 0, length);
        if (item.row != NO_ROW)
            y.store(item.row, alpha, sum[0], beta);
    }
};

// Computes two slices per warp, for a matrix without longer rows. One slice of narrow values is
// half a KB behind three dependent loads: too little to keep memory busy.
template <int GROUP, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sell_pairs(const Sell<A> &a, const X *x, const Target<Y> &y,
                                           Scalar<Acc> alpha, Scalar<Acc> beta, SlotWord *slots) {
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    const int64_t first = (int64_t(blockIdx.x) * SELL_THREADS + threadIdx.x) / WARP * 2;
    if (first >= a.slices)
        return;
    const bool both = first + 1 < a.slices;
    SliceHead heads[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
        heads[i] = load_head(a, first + (both ? i : 0));
    using Part = ShortSlice<GROUP, A, X, Acc>;
    if (both && Part::fits(heads[0]) && Part::fits(heads[1])) {
        Part parts[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            parts[i].load(a, heads[i]);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            parts[i].gather(heads[i], x);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            parts[i].finish(y, alpha.get(), beta.get());
        return;
    }
#pragma unroll 1
    for (int64_t slice = first; slice < first + (both ? 2 : 1); ++slice)
        sell_slice<GROUP, 1, 1>(a, slice, x, y, alpha, beta, slots);
}

// Number of blocks per multiprocessor for which registers must suffice without spills. Eight blocks
// are 1,024 lanes, the number for which rows are divided: dnn90 has 7.8 blocks per multiprocessor
// and took 11.8 µs if eight fit, 13.3 if seven did.
template <int GROUP, int ITEM_ROWS, class A, class Acc> constexpr int sell_blocks() {
// Compilers use more registers for architectures other than 9.0, most for 10.0 and 12.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    if (sizeof(A) == 16)
        return 4;
    if (GROUP == 4)
        return sizeof(Acc) == 8 && sizeof(A) < 8 ? 5 : sizeof(A) == 4 ? 6 : 7;
    if (sizeof(Acc) == 8 && sizeof(A) == (ITEM_ROWS == 3 ? 2 : 4))
        return 7;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    if (GROUP == 4)
        return sizeof(Acc) == 8 && sizeof(A) == 4 ? 6 : 7;
#endif
    if (sizeof(A) == 16)
        return 5;
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1000)
    if (sizeof(A) == 8 && (ITEM_ROWS == 3 || sizeof(Acc) == 8))
        return 7;
#endif
    return sizeof(Acc) == 8 && sizeof(A) == 4 && (GROUP == 4 || ITEM_ROWS == 3) ? 6 : 8;
}

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(slices / (SELL_THREADS / WARP)) blocks.
#define KERNEL_product(name, types, GROUP, ITEM_ROWS)                                              \
    KERNEL_OF(SELL, name, GROUP, ITEM_ROWS, TYPES_##types)
#define SELL(name, GROUP, ITEM_ROWS, A, X, Y, Acc)                                                 \
    extern "C" __global__ void __launch_bounds__(spmv::SELL_THREADS,                               \
                                                 spmv::sell_blocks<GROUP, ITEM_ROWS, A, Acc>())    \
        name(int64_t slices, int64_t rows, const spmv::SliceHead *heads, const uint32_t *order,    \
             const A *values, const uint16_t *narrow, const uint32_t *wide, const X *x, Y *y,      \
             const Y *old, Scalar<Acc> alpha, Scalar<Acc> beta, SlotWord *slots) {                 \
        begin_product();                                                                           \
        const spmv::Sell<A> a = {slices, rows, heads, order, values, narrow, wide};                \
        spmv::sell<GROUP, ITEM_ROWS>(a, x, Target<Y>{y, old}, alpha, beta, slots);                 \
    }
// Complex values have little to gain from fewer columns, so they have only ITEM_ROWS = 1. GROUP = 4
// is for values of which four are 16 bytes at most, and for doubles.
KERNELS(product, (f64), (spmv_sell_2_1_f64, 2, 1), (spmv_sell_2_2_f64, 2, 2),
        (spmv_sell_2_3_f64, 2, 3), (spmv_sell_4_1_f64, 4, 1))
KERNELS(product, (f32), (spmv_sell_2_1_f32, 2, 1), (spmv_sell_2_2_f32, 2, 2),
        (spmv_sell_2_3_f32, 2, 3), (spmv_sell_4_1_f32, 4, 1))
KERNELS(product, (f32f64), (spmv_sell_2_1_f32f64, 2, 1), (spmv_sell_2_2_f32f64, 2, 2),
        (spmv_sell_2_3_f32f64, 2, 3), (spmv_sell_4_1_f32f64, 4, 1))
KERNELS(product, (f16), (spmv_sell_2_1_f16, 2, 1), (spmv_sell_2_2_f16, 2, 2),
        (spmv_sell_2_3_f16, 2, 3), (spmv_sell_4_1_f16, 4, 1))
KERNELS(product, (f16f32), (spmv_sell_2_1_f16f32, 2, 1), (spmv_sell_2_2_f16f32, 2, 2),
        (spmv_sell_2_3_f16f32, 2, 3), (spmv_sell_4_1_f16f32, 4, 1))
KERNELS(product, (bf16), (spmv_sell_2_1_bf16, 2, 1), (spmv_sell_2_2_bf16, 2, 2),
        (spmv_sell_2_3_bf16, 2, 3), (spmv_sell_4_1_bf16, 4, 1))
KERNELS(product, (bf16f32), (spmv_sell_2_1_bf16f32, 2, 1), (spmv_sell_2_2_bf16f32, 2, 2),
        (spmv_sell_2_3_bf16f32, 2, 3), (spmv_sell_4_1_bf16f32, 4, 1))
KERNELS(product, (c32), (spmv_sell_2_1_c32, 2, 1))
KERNELS(product, (c64), (spmv_sell_2_1_c64, 2, 1))
KERNELS(product, (half_f64), (spmv_sell_2_1_half_f64, 2, 1), (spmv_sell_2_2_half_f64, 2, 2),
        (spmv_sell_2_3_half_f64, 2, 3), (spmv_sell_4_1_half_f64, 4, 1))
KERNELS(product, (half_f32), (spmv_sell_2_1_half_f32, 2, 1), (spmv_sell_2_2_half_f32, 2, 2),
        (spmv_sell_2_3_half_f32, 2, 3), (spmv_sell_4_1_half_f32, 4, 1))
KERNELS(product, (ones_f64), (spmv_sell_2_1_ones_f64, 2, 1), (spmv_sell_2_2_ones_f64, 2, 2),
        (spmv_sell_2_3_ones_f64, 2, 3), (spmv_sell_4_1_ones_f64, 4, 1))
KERNELS(product, (ones_f32), (spmv_sell_2_1_ones_f32, 2, 1), (spmv_sell_2_2_ones_f32, 2, 2),
        (spmv_sell_2_3_ones_f32, 2, 3), (spmv_sell_4_1_ones_f32, 4, 1))
KERNELS(product, (ones_f16), (spmv_sell_2_1_ones_f16, 2, 1), (spmv_sell_2_2_ones_f16, 2, 2),
        (spmv_sell_2_3_ones_f16, 2, 3), (spmv_sell_4_1_ones_f16, 4, 1))
KERNELS(product, (ones_f16f32), (spmv_sell_2_1_ones_f16f32, 2, 1),
        (spmv_sell_2_2_ones_f16f32, 2, 2), (spmv_sell_2_3_ones_f16f32, 2, 3),
        (spmv_sell_4_1_ones_f16f32, 4, 1))
KERNELS(product, (ones_bf16), (spmv_sell_2_1_ones_bf16, 2, 1), (spmv_sell_2_2_ones_bf16, 2, 2),
        (spmv_sell_2_3_ones_bf16, 2, 3), (spmv_sell_4_1_ones_bf16, 4, 1))
KERNELS(product, (ones_bf16f32), (spmv_sell_2_1_ones_bf16f32, 2, 1),
        (spmv_sell_2_2_ones_bf16f32, 2, 2), (spmv_sell_2_3_ones_bf16f32, 2, 3),
        (spmv_sell_4_1_ones_bf16f32, 4, 1))

// Blocks per multiprocessor of the kernels whose warps take two slices.
template <class A> constexpr int pairs_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
    return 7;
#else
    return sizeof(A) == 1 ? 7 : 8;
#endif
}
// Pairs of slices, for rows of a few narrow values. Grid: ceil(slices / (2 · SELL_THREADS / WARP)).
#define KERNEL_pairs(name, types) KERNEL_OF(PAIRS, name, TYPES_##types)
#define PAIRS(name, A, X, Y, Acc)                                                                  \
    extern "C" __global__ void __launch_bounds__(spmv::SELL_THREADS, pairs_blocks<A>())            \
        name(int64_t slices, int64_t rows, const spmv::SliceHead *heads, const uint32_t *order,    \
             const A *values, const uint16_t *narrow, const uint32_t *wide, const X *x, Y *y,      \
             const Y *old, Scalar<Acc> alpha, Scalar<Acc> beta, SlotWord *slots) {                 \
        begin_product();                                                                           \
        const spmv::Sell<A> a = {slices, rows, heads, order, values, narrow, wide};                \
        spmv::sell_pairs<2>(a, x, Target<Y>{y, old}, alpha, beta, slots);                          \
    }
KERNELS(pairs, (), (spmv_sell_pairs_f16, f16), (spmv_sell_pairs_f16f32, f16f32),
        (spmv_sell_pairs_bf16, bf16), (spmv_sell_pairs_bf16f32, bf16f32),
        (spmv_sell_pairs_half_f32, half_f32), (spmv_sell_pairs_ones_f32, ones_f32),
        (spmv_sell_pairs_ones_f16, ones_f16), (spmv_sell_pairs_ones_f16f32, ones_f16f32),
        (spmv_sell_pairs_ones_bf16, ones_bf16), (spmv_sell_pairs_ones_bf16f32, ones_bf16f32))
