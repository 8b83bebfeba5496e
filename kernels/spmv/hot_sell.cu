// SpMV `sell` with hot columns: y = alpha · A · x + beta · y on the slices of
// src/format/hot_sell.rs, in one cooperative launch.
//
// If x is large and a few columns have most of the entries, an ordinary kernel is limited by the
// rate at which L2 delivers single sectors. Here one block stays on each multiprocessor and keeps x
// of the hot columns in shared memory: all blocks together collect these elements from x; after a
// barrier of the grid each block copies them and then processes slices, of which each of its warps
// draws the next one. Loads in flight live in the part of L1 that shared memory leaves, so the hot
// columns must not take all of it (docs/algorithms/sell.md).

#include "format/hot_sell.cuh"
#include "ptx/barriers.cuh"
#include "ptx/copies.cuh"
#include "ptx/loads.cuh"
#include "ptx/predicated.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

using hot_sell::HOT;
using hot_sell::LongRow;
using hot_sell::SliceHead;

// Threads of a block, of which each multiprocessor has one.
constexpr int HOT_THREADS = 1024;
using hot_sell::GROUP;
// Number of steps in flight besides the next ones, as registers allow.
template <class A> constexpr int STEPS_UNDER_WAY = sizeof(A) > 8 ? 1 : 2;
constexpr int STEP = WARP * GROUP;
constexpr uint32_t NO_ROW = ~0u;

// Arrays of the layout.
template <class A> struct HotSell {
    uint32_t slices, rows, filled, hot_count;
    const SliceHead *heads;
    const LongRow *long_rows;
    const uint32_t *order;
    const A *values;
    const uint32_t *columns;
    const uint32_t *hot;
};

// State that the launch's blocks share in the handle's counters; zero between launches.
struct Shared {
    // Number of blocks that have arrived at the barrier, and that have left it.
    uint32_t arrived, departed, unused[2];

    // Number of pieces of each long row that have arrived; stored behind this struct.
    __device__ uint32_t *parts() { return reinterpret_cast<uint32_t *>(this + 1); }
};

// Element of x for a column word. In the offset into shared memory, number · size drops the top
// bit, since sizes are even.
template <class X> __device__ __forceinline__ X factor_of(uint32_t word, uint32_t hot, const X *x) {
    return load_either(word, hot + word * uint32_t(sizeof(X)), x + word);
}
template <class T>
__device__ __forceinline__ Complex<T> factor_of(uint32_t word, uint32_t hot, const Complex<T> *x) {
    const uint32_t at = hot + word * uint32_t(sizeof(Complex<T>));
    return {load_either(word, at, &x[word].re),
            load_either(word, at + uint32_t(sizeof(T)), &x[word].im)};
}

// Sum of a lane over a slice's steps.
template <class A, class X, class Acc>
__device__ __forceinline__ Acc sum_lane(const A *values, const uint32_t *columns, int left,
                                        uint32_t padding, uint32_t hot, const X *x) {
    constexpr int AHEAD = STEPS_UNDER_WAY<A>;
    constexpr bool STORED = !same<A, One>;
    constexpr int WORDS = STORED ? GROUP * int(sizeof(A)) / 4 : 1;
    const auto fetch = [&](uint32_t(&out)[AHEAD][WORDS], uint32_t(&at)[AHEAD][GROUP]) {
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            // Steps beyond the end are padding.
#pragma unroll
            for (int v = 0; v < GROUP; ++v)
                at[u][v] = padding;
            load_words_if<GROUP * sizeof(uint32_t)>(at[u], columns + u * STEP, u < left);
            if constexpr (STORED) {
#pragma unroll
                for (int w = 0; w < WORDS; ++w)
                    out[u][w] = 0;
                load_words_if<GROUP * sizeof(A)>(out[u], values + u * STEP, u < left);
            }
        }
        if constexpr (STORED)
            values += AHEAD * STEP;
        columns += AHEAD * STEP;
        left -= AHEAD;
    };
    Acc sum = zero<Acc>();
    const auto add_steps = [&](const uint32_t(&now)[AHEAD][WORDS],
                               const uint32_t(&at)[AHEAD][GROUP], uint32_t(&next)[AHEAD][WORDS],
                               uint32_t(&next_at)[AHEAD][GROUP]) {
        X factor[AHEAD][GROUP];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
#pragma unroll
            for (int v = 0; v < GROUP; ++v)
                factor[u][v] = factor_of(at[u][v], hot, x);
        }
        fetch(next, next_at);
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
#pragma unroll
            for (int v = 0; v < GROUP; ++v)
                sum = fma(widen<Acc>(element<A>(now[u], v)), widen<Acc>(factor[u][v]), sum);
        }
    };
    // Two sets of registers alternate: a move from one to the other would wait for its loads.
    uint32_t even[AHEAD][WORDS], odd[AHEAD][WORDS], even_at[AHEAD][GROUP], odd_at[AHEAD][GROUP];
    fetch(even, even_at);
#pragma unroll 1
    while (left > -AHEAD) {
        add_steps(even, even_at, odd, odd_at);
        if (left <= -AHEAD)
            break;
        add_steps(odd, odd_at, even, even_at);
    }
    __syncwarp();
    return sum;
}

// Stores the sum of a piece of a split row; the last piece to arrive adds all of them in their
// order. Blocks loop over slices here, so none waits for another block's piece.
template <class Y, class Acc>
__device__ __forceinline__ void join_parts(const LongRow *long_rows, const SliceHead &part,
                                           uint32_t slice, Acc sum, const Target<Y> &y, Acc alpha,
                                           Acc beta, Acc *sums, Shared *shared) {
    const int lane = threadIdx.x % WARP;
    const LongRow row = load_head(long_rows + part.place);
    if (lane == 0)
        sums[slice] = sum;
    if (!is_last_to_arrive(shared->parts() + part.place, row.count))
        return;
    const Acc total =
        sum_of_parts<Acc>(0u, row.count, [&](uint32_t i) { return load_l2(sums + row.first + i); });
    if (lane == 0) {
        y.store(row.row, alpha, total, beta);
        shared->parts()[part.place] = 0;
    }
}

// Barrier of the grid. f, which does not depend on the barrier, runs between arrival and wait.
template <class Function> __device__ __forceinline__ void meet(Shared *shared, Function f) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&shared->arrived, 1);
    }
    f();
    if (threadIdx.x == 0) {
        while (load_acquire(&shared->arrived) != gridDim.x) {
        }
        // All blocks have arrived; the last one to see this clears both counters.
        if (atomicAdd(&shared->departed, 1) == gridDim.x - 1) {
            shared->arrived = 0;
            shared->departed = 0;
        }
        __threadfence();
    }
    __syncthreads();
}

template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void hot_sell(const HotSell<A> &a, const X *x, const Target<Y> &y,
                                         Scalar<Acc> alpha, Scalar<Acc> beta, X *collected,
                                         Acc *sums, Shared *shared) {
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    extern __shared__ uint4 hot_words[];
    __shared__ uint32_t drawn;
    constexpr uint32_t WARPS_OF_BLOCK = HOT_THREADS / WARP;
    const int lane = threadIdx.x % WARP;
    const uint32_t me = blockIdx.x * HOT_THREADS + threadIdx.x, all = gridDim.x * HOT_THREADS;
    // Followed by zeros: one for padding, the others up to a multiple of 16 bytes.
    for (uint32_t i = me; i < a.hot_count + 16; i += all)
        collected[i] = i < a.hot_count ? load_cached(x + __ldg(a.hot + i)) : zero<X>();
    if (threadIdx.x == 0)
        drawn = WARPS_OF_BLOCK;
    // A block takes every gridDim.x-th slice.
    uint32_t slice = blockIdx.x + threadIdx.x / WARP * gridDim.x;
    SliceHead next = {};
    if (slice < a.slices)
        next = load_head(a.heads + slice);
    meet(shared, [&] {
        for (uint32_t i = a.filled + me; i < a.rows; i += all)
            y.store(a.order[i], zero<Acc>(), zero<Acc>(), beta.get());
    });
    const uint32_t hot = shared_address(hot_words);
    const uint32_t bytes = (a.hot_count + 1) * uint32_t(sizeof(X));
    for (uint32_t i = threadIdx.x * 16; i < bytes; i += HOT_THREADS * 16)
        copy16(hot + i, reinterpret_cast<const char *>(collected) + i);
    wait_for_copies();
    __syncthreads();
    while (slice < a.slices) {
        uint32_t ticket = 0;
        if (lane == 0)
            ticket = atomicAdd(&drawn, 1);
        const uint32_t following = blockIdx.x + __shfl_sync(ALL_LANES, ticket, 0) * gridDim.x;
        const SliceHead now = next;
        const uint32_t item = lane >> now.lanes_log2, rank = lane & ((1 << now.lanes_log2) - 1);
        uint32_t row = NO_ROW;
        if (rank == 0 && item < now.items)
            row = __ldg(a.order + now.place + item);
        const int64_t at = int64_t(now.first) * STEP + lane * GROUP;
        next = load_head(a.heads + min(following, a.slices - 1));
        Acc sum = sum_lane<A, X, Acc>(a.values + (same<A, One> ? 0 : at), a.columns + at, now.steps,
                                      HOT | a.hot_count, hot, x);
        sum = sum_of_lanes(sum, 1 << now.lanes_log2);
        if (now.items == 0) {
            join_parts(a.long_rows, now, slice, sum, y, alpha.get(), beta.get(), sums, shared);
        } else if (row != NO_ROW) {
            y.store(row, alpha.get(), sum, beta.get());
        }
        __syncwarp();
        slice = following;
    }
}

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: one block per multiprocessor, all resident at one time, with shared memory for hot_count +
// 1 elements of x, rounded up to 16 bytes. `collected` has hot_count + 16 elements, `sums` one per
// piece of a split row.
#define KERNEL_product(name, types) KERNEL_OF(HOT_SELL, name, TYPES_##types)
#define HOT_SELL(name, A, X, Y, Acc)                                                               \
    extern "C" __global__ void __launch_bounds__(spmv::HOT_THREADS, 1)                             \
        name(uint32_t slices, uint32_t rows, uint32_t filled, uint32_t hot_count,                  \
             const spmv::SliceHead *heads, const spmv::LongRow *long_rows, const uint32_t *order,  \
             const A *values, const uint32_t *columns, const uint32_t *hot, const X *x, Y *y,      \
             const Y *old, Scalar<Acc> alpha, Scalar<Acc> beta, X *collected, Acc *sums,           \
             spmv::Shared *shared) {                                                               \
        const spmv::HotSell<A> a = {slices,    rows,  filled, hot_count, heads,                    \
                                    long_rows, order, values, columns,   hot};                     \
        spmv::hot_sell(a, x, Target<Y>{y, old}, alpha, beta, collected, sums, shared);             \
    }
KERNELS(product, (), (spmv_hot_sell_f64, f64), (spmv_hot_sell_f32, f32),
        (spmv_hot_sell_f32f64, f32f64), (spmv_hot_sell_f16, f16), (spmv_hot_sell_f16f32, f16f32),
        (spmv_hot_sell_bf16, bf16), (spmv_hot_sell_bf16f32, bf16f32), (spmv_hot_sell_c32, c32),
        (spmv_hot_sell_c64, c64), (spmv_hot_sell_half_f64, half_f64),
        (spmv_hot_sell_half_f32, half_f32), (spmv_hot_sell_ones_f64, ones_f64),
        (spmv_hot_sell_ones_f32, ones_f32), (spmv_hot_sell_ones_f16, ones_f16),
        (spmv_hot_sell_ones_f16f32, ones_f16f32), (spmv_hot_sell_ones_bf16, ones_bf16),
        (spmv_hot_sell_ones_bf16f32, ones_bf16f32))
