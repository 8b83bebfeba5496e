// SpMV `sell`: y = alpha · A · x + beta · y on the slices of
// src/layout/warp_sell.rs, a warp a slice, in one launch.
//
// A lane reads groups of V entries, those of the next two steps before it waits
// for these ones' x: what bounds a short launch is how many bytes are under way.
// Many small blocks that end and make room are faster here than resident ones
// that loop, and loads into registers than bulk copies to shared memory
// (benches/NOTES.md).
//
// Names: spmv_sell_<V>_<types>, or <V>_<form>_<types> where values are stored in a
// narrower form.

#include "common/loads.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

// Threads of a block, a slice a warp: small, since blocks of few slices spread
// better over multiprocessors and end one by one.
constexpr int SELL_THREADS = 128;

// Steps whose groups a lane has under way, beside the next ones.
constexpr int UNROLL = 2;

// As src/layout/warp_sell.rs has them.
struct alignas(16) SliceHead {
    // First step, in all slices' values.
    uint32_t first;
    // What narrow columns count from; wide slices: first step of their columns.
    uint32_t base;
    // First place in `order`; even slices: first row; parts: number of the part.
    uint32_t place;
    // Steps, then log2 of the lanes a row or the entries that the last step
    // lacks, then flags.
    uint16_t steps;
    uint8_t detail, flags;
};
constexpr int WIDE = 1, RUNS = 2, EVEN = 4, PART = 8;
// A lane without a row.
constexpr uint32_t NO_ROW = ~0u;

struct alignas(16) PartHead {
    // The row, its first part and how many it has, and its counter.
    uint32_t row, first, count, counter;
};

// The layout's arrays.
template <class A> struct Sell {
    int64_t slices, rows;
    const SliceHead *heads;
    const uint32_t *order;
    const A *values;
    const uint16_t *narrow;
    const uint32_t *wide;
    const PartHead *parts;
    int32_t window_log2;
};

// What a lane reads of U steps. Two narrow columns are one word.
template <int V, int U, class A, bool IS_WIDE> struct Chunk {
    A values[U][V];
    uint32_t columns[U][IS_WIDE ? V : V / 2];

    __device__ __forceinline__ uint32_t column(int u, int v) const {
        if constexpr (IS_WIDE) {
            return columns[u][v];
        } else {
            return v % 2 == 0 ? columns[u][v / 2] & 0xffff : columns[u][v / 2] >> 16;
        }
    }
};

// What a lane knows of its row. The place's word is not looked at before the
// first values and columns are under way, which need not wait for it.
struct LaneRow {
    // Its word in `order`; 0: no entry, or the length is known without.
    uint32_t found;
    // The length where the head has it.
    int fixed;

    __device__ __forceinline__ int length() const { return fixed + int(found >> 16); }
};

// The sum of a lane's entries in the slice's `steps`, which start at `values`
// and `columns`; the columns of two steps lie `stride` apart. Entry k of the
// row is in step k / (V · lanes), in lane k / V of the row's.
template <int V, int U, bool IS_WIDE, class Acc, class A, class X, class J>
__device__ __forceinline__ Acc sum_lane(const A *values, const J *columns, int stride, const X *x,
                                        int steps, int lanes_log2, int rank, LaneRow row) {
    constexpr int STEP = WARP * V;
    using Part = Chunk<V, U, A, IS_WIDE>;
    // Of the next groups; `left` steps from there on.
    int left = steps;
    const auto fetch = [&](Part &out) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u < left) {
                load_group(out.values[u], values + u * STEP);
                load_group(out.columns[u],
                           reinterpret_cast<const uint32_t *>(columns + u * stride));
            }
        }
        values += U * STEP;
        columns += U * stride;
        left -= U;
    };
    Part now;
    fetch(now);
    // Entries of the row from the lane's next on.
    int rest = row.length() - rank * V;
    Acc sum = zero<Acc>();
    while (left > -U) {
        X factor[U][V];
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if ((u << lanes_log2) * V + v < rest)
                    factor[u][v] = load_cached(x + now.column(u, v));
            }
        }
        Part next;
        fetch(next);
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if ((u << lanes_log2) * V + v < rest)
                    sum = fma(widen<Acc>(now.values[u][v]), widen<Acc>(factor[u][v]), sum);
            }
        }
        now = next;
        rest -= (U << lanes_log2) * V;
    }
    __syncwarp();
    return sum;
}

// Leaves a part's sum for the last of the row's parts to arrive, which adds them
// in their order. The sum is every lane's.
template <class Y, class Acc>
__device__ __forceinline__ void join_parts(const PartHead *parts, uint32_t number, Acc sum, Y *y,
                                           Acc alpha, Acc beta, Acc *sums, uint32_t *arrivals) {
    const int lane = threadIdx.x % WARP;
    const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(parts + number));
    PartHead part;
    memcpy(&part, &bits, sizeof part);
    uint32_t arrived = 0;
    if (lane == 0) {
        sums[number] = sum;
        __threadfence();
        arrived = atomicAdd(arrivals + part.counter, 1);
    }
    arrived = __shfl_sync(~0u, arrived, 0);
    if (arrived != part.count - 1)
        return;
    __threadfence();
    Acc total = zero<Acc>();
    for (uint32_t i = lane; i < part.count; i += WARP)
        total = add(total, load_l2(sums + part.first + i));
    __syncwarp();
    for (int delta = WARP / 2; delta > 0; delta /= 2)
        total = add(total, shuffle_xor(total, delta));
    if (lane == 0) {
        store(y + part.row, alpha, total, beta);
        arrivals[part.counter] = 0;
    }
}

template <int V, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sell(const Sell<A> &a, const X *x, Y *y, Scalar<Acc> alpha,
                                     Scalar<Acc> beta, Acc *sums, uint32_t *arrivals) {
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    constexpr int STEP = WARP * V;
    const int lane = threadIdx.x % WARP;
    const int64_t slice = (int64_t(blockIdx.x) * SELL_THREADS + threadIdx.x) / WARP;
    if (slice >= a.slices)
        return;
    SliceHead head;
    {
        const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(a.heads + slice));
        memcpy(&head, &bits, sizeof head);
    }
    const int steps = head.steps;
    int lanes_log2 = 0;
    LaneRow row = {0, 0};
    // What `found` counts rows from, or the row; NO_ROW: the lane has none.
    uint32_t first_row = NO_ROW;
    if (head.flags & EVEN) {
        row.fixed = steps * V - head.detail;
        first_row = head.place + lane;
    } else if (head.flags & PART) {
        lanes_log2 = 5;
        row.fixed = steps * STEP - head.detail;
    } else {
        lanes_log2 = head.detail;
        // Places are less than 2^31, so none of this overflows.
        const uint32_t place = head.place + (lane >> lanes_log2);
        const uint32_t window = head.place >> a.window_log2 << a.window_log2;
        if (place < min(window + (1u << a.window_log2), uint32_t(a.rows))) {
            row.found = __ldg(a.order + place);
            first_row = window;
        }
    }
    const int lanes = 1 << lanes_log2, rank = lane & (lanes - 1);
    const int64_t first = int64_t(head.first) * STEP;
    const A *values = a.values + first + lane * V;
    Acc sum;
    if (head.flags & WIDE) {
        const uint32_t *columns = a.wide + int64_t(head.base) * STEP + lane * V;
        sum =
            sum_lane<V, UNROLL, true, Acc>(values, columns, STEP, x, steps, lanes_log2, rank, row);
    } else {
        // Runs keep lane 0's columns only, all steps' side by side.
        const bool runs = head.flags & RUNS;
        const uint16_t *columns = a.narrow + first + (runs ? 0 : lane * V);
        sum = sum_lane<V, UNROLL, false, Acc>(values, columns, runs ? V : STEP,
                                              x + head.base + (runs ? lane : 0), steps, lanes_log2,
                                              rank, row);
    }
    for (int delta = lanes / 2; delta > 0; delta /= 2)
        sum = add(sum, shuffle_xor(sum, delta));
    if (head.flags & PART) {
        join_parts(a.parts, head.place, sum, y, alpha.get(), beta.get(), sums, arrivals);
    } else if (rank == 0 && first_row != NO_ROW) {
        store(y + first_row + (row.found & 0xffff), alpha.get(), sum, beta.get());
    }
}

// Blocks of a multiprocessor that registers must leave room for, without a spill.
// Eight make 1,024 lanes, for which rows are dealt out: dnn90 has 7.8 a
// multiprocessor and takes 11.8 µs where eight fit, 13.3 where seven do.
template <int V, class A, class Acc> constexpr int sell_blocks() {
    return sizeof(A) == 16 ? 5 : sizeof(Acc) == 8 || V == 4 ? 8 : 9;
}

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(slices / (SELL_THREADS / WARP)).
#define SELL(V, types, A, X, Y, Acc)                                                               \
    extern "C" __global__ void __launch_bounds__(spmv::SELL_THREADS,                               \
                                                 spmv::sell_blocks<V, A, Acc>())                   \
        spmv_sell_##V##_##types(int64_t slices, int64_t rows, const spmv::SliceHead *heads,        \
                                const uint32_t *order, const A *values, const uint16_t *narrow,    \
                                const uint32_t *wide, const spmv::PartHead *parts, const X *x,     \
                                Y *y, Scalar<Acc> alpha, Scalar<Acc> beta, int32_t window_log2,    \
                                Acc *sums, uint32_t *arrivals) {                                   \
        const spmv::Sell<A> a = {slices, rows, heads, order,      values,                          \
                                 narrow, wide, parts, window_log2};                                \
        spmv::sell<V>(a, x, y, alpha, beta, sums, arrivals);                                       \
    }
#define TWO(types, A, X, Y, Acc) SELL(2, types, A, X, Y, Acc)
TARSIA_FOR_EACH_COMBO(TWO)
// Values that four of are 16 bytes at the most.
SELL(4, f32, float, float, float, float)
SELL(4, f32f64, float, double, double, double)
SELL(4, f16, f16, f16, f16, float)
SELL(4, f16f32, f16, f16, float, float)
SELL(4, bf16, bf16, bf16, bf16, float)
SELL(4, bf16f32, bf16, bf16, float, float)
// Forms of src/layout/narrowing.rs, with the types of x and y. fp64 values that are
// kept as fp32 are f32f64's.
#define NARROWED(types, A, X, Y, Acc)                                                              \
    SELL(2, types, A, X, Y, Acc)                                                                   \
    SELL(4, types, A, X, Y, Acc)
NARROWED(half_f64, f16, double, double, double)
NARROWED(half_f32, f16, float, float, float)
NARROWED(ones_f64, One, double, double, double)
NARROWED(ones_f32, One, float, float, float)
NARROWED(ones_f16, One, f16, f16, float)
NARROWED(ones_f16f32, One, f16, float, float)
NARROWED(ones_bf16, One, bf16, bf16, float)
NARROWED(ones_bf16f32, One, bf16, float, float)
