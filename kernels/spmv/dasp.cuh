// SpMV on DASP's classes of rows (src/format/dasp.rs describes the arrays; Lu, Liu 2023, section
// 3.3), all classes in one launch. Long rows take the first blocks of the grid; then come medium
// rows, the three pieced parts, single entries and empty rows, with a warp per unit. A task of long
// rows is taken by a block or, if there are many tasks, by a warp; a unit of medium rows by a warp
// or, if it has many times the blocks of other units, by a block.
//
// A warp first issues all loads that depend on nothing. Its blocks come in batches: while x of one
// batch is in flight, so are values and columns of the next.
#pragma once

#include "format/dasp.cuh"
#include "ptx/loads.cuh"
#include "spmv/dasp_sums.cuh"
#include "spmv/dot.cuh"

namespace tarsia::dasp {

constexpr int WARPS = 4, THREADS = WARP * WARPS;
// src/format/dasp.rs gives the reasons for these numbers.
constexpr int BLOCK = ROWS * PLACES, GROUP = 2 * BLOCK, UNIT = 2 * GROUP, RUN = 32;
// Number of irregular entries of a row, per lane that the row has, above which the whole warp adds
// them: 8 turns of two. With 4, the few such rows of a finite-element matrix cost 2 of 19 µs.
constexpr int HEAVY = 16;

// Layout of the matrix, as src/backend/cuda/spmv/dasp.rs passes it.
template <class A> struct Layout {
    const A *values;
    const int32_t *columns, *order, *runs;
    const Task *tasks;
    const Split *splits;
    const int64_t *regular, *irregular;
    const uint16_t *ends;
    // Number of rows of op(A).
    int64_t rows;
    // First slot of each part; long rows start at slot 0.
    int64_t one_three, two_two, four, regular_slots, single, irregular_slots;
    // First position of each part in `order`; pieced 1 & 3 starts at 0.
    int64_t two_two_rows, four_rows, single_rows, medium_rows, empty_rows, order_end;
    int64_t row_blocks, split_count;
    // Number of units of medium rows, the first ones, that take a block each.
    int64_t shared_units;
    // Row-blocks of a warp (1, 2 or 4), and number of split rows that share a counter.
    int32_t loops, splits_per_counter;
    // First block of the grid behind the long, medium, pieced 1 & 3, pieced 2 & 2, four, single and
    // empty rows.
    uint32_t ends_of_parts[7];
    int32_t stream;
    uint32_t task_count;
    // Warps per task: 1 or WARPS.
    int32_t warps_of_task;
};
static_assert(sizeof(Layout<double>) == 248, "src/backend/cuda/spmv/dasp.rs has the same");

// Loads two neighbours, the first at a multiple of two, by loads of up to 16 bytes.
template <class T> __device__ __forceinline__ Two<T> load_two(const T *p, uint64_t policy) {
    constexpr int BYTES = sizeof(Two<T>), LOAD = BYTES < 16 ? BYTES : 16;
    uint32_t words[BYTES / LOAD][LOAD / 4];
#pragma unroll
    for (int i = 0; i < BYTES / LOAD; ++i)
        load_words_once<LOAD>(reinterpret_cast<const char *>(p) + i * LOAD, policy, words[i]);
    Two<T> out;
    memcpy(&out, words, sizeof out);
    return out;
}

// Elements of x at these columns, 0 for padding.
template <class X> __device__ __forceinline__ X gather(const X *x, int32_t column) {
    return column >= 0 ? load_cached(x + column) : zero<X>();
}
template <class X> __device__ __forceinline__ Two<X> gather(const X *x, Two<int32_t> columns) {
    return {gather(x, columns.first), gather(x, columns.second)};
}

// Number of pairs of blocks that a warp loads together.
template <class A, class Acc> constexpr int BATCH = sizeof(A) + sizeof(Acc) > 16 ? 1 : 2;

// Operands of the product, and the functions for each part.
template <class A, class X, class Y, class Acc> struct Product {
    const Layout<A> &layout;
    const X *x;
    Y *y;
    // Loaded again where they are used: values would occupy registers all the time.
    Scalar<Acc> alpha, beta;
    uint64_t policy;
    // Partial sums of tasks of split rows, and counters of arrivals, which are zero between
    // launches.
    Acc *parts;
    uint32_t *arrivals;

    // Number of pairs of blocks in a batch.
    static constexpr int BATCH_PAIRS = BATCH<A, Acc>;
    struct Batch {
        Two<int32_t> column[BATCH_PAIRS];
        Two<A> value[BATCH_PAIRS];
    };

    // Blocks that follow each other in memory, of which this warp takes the pairs first, first +
    // stride, …; the last block may have no partner.
    struct Blocks {
        const int32_t *columns;
        const A *values;
        int count, first, stride;
    };

    static __device__ __forceinline__ int lane() { return threadIdx.x % WARP; }
    static __device__ __forceinline__ int warp() { return threadIdx.x / WARP; }

    __device__ __forceinline__ void store_row(int32_t row, Acc sum) const {
        if (row >= 0)
            store(y + row, alpha.get(), sum, beta.get());
    }
    __device__ __forceinline__ int32_t run_at(int64_t place) const {
        return load_cached(layout.runs + place / RUN);
    }
    // Row at a position of `order`, mostly computed from the run that the position is in.
    __device__ __forceinline__ int32_t row_at(int64_t place, int32_t run) const {
        return run >= 0 ? run + int32_t(place % RUN) : load_cached(layout.order + place);
    }
    __device__ __forceinline__ Two<int32_t> columns(int64_t slot) const {
        return load_two(layout.columns + slot, policy);
    }
    __device__ __forceinline__ Two<A> values(int64_t slot) const {
        return load_two(layout.values + slot, policy);
    }

    // Loads the batch that starts with this pair, with padding behind the last block.
    __device__ __forceinline__ void fetch(Batch &out, const Blocks &blocks, int pair) const {
        if (2 * (pair + (BATCH_PAIRS - 1) * blocks.stride) + 1 < blocks.count) {
#pragma unroll
            for (int u = 0; u < BATCH_PAIRS; ++u) {
                const int slot = (pair + u * blocks.stride) * GROUP + 2 * lane();
                out.column[u] = load_two(blocks.columns + slot, policy);
            }
#pragma unroll
            for (int u = 0; u < BATCH_PAIRS; ++u) {
                const int slot = (pair + u * blocks.stride) * GROUP + 2 * lane();
                out.value[u] = load_two(blocks.values + slot, policy);
            }
            return;
        }
#pragma unroll
        for (int u = 0; u < BATCH_PAIRS; ++u) {
            const int at = pair + u * blocks.stride, slot = at * GROUP;
            out.column[u] = {-1, -1};
            out.value[u] = {zero<A>(), zero<A>()};
            if (2 * at + 1 < blocks.count) {
                out.column[u] = load_two(blocks.columns + slot + 2 * lane(), policy);
                out.value[u] = load_two(blocks.values + slot + 2 * lane(), policy);
            } else if (2 * at < blocks.count) {
                out.column[u].first = load_once(blocks.columns + slot + lane(), policy);
                out.value[u].first = load_once(blocks.values + slot + lane(), policy);
            }
        }
    }
    __device__ __forceinline__ void gather_batch(Two<X> (&factor)[BATCH_PAIRS],
                                                 const Batch &batch) const {
#pragma unroll
        for (int u = 0; u < BATCH_PAIRS; ++u)
            factor[u] = gather(x, batch.column[u]);
    }
    // Calls consume(pair, values, elements of x) for the warp's pairs, and for padding behind them.
    // The first batch, its elements of x and the second batch have been requested by the caller.
    template <class Consume>
    __device__ __forceinline__ void sweep(Batch &now, Two<X> (&factor)[BATCH_PAIRS], Batch &next,
                                          const Blocks &blocks, const Consume &consume) const {
        int pair = blocks.first;
#pragma unroll 1
        for (;;) {
#pragma unroll
            for (int u = 0; u < BATCH_PAIRS; ++u)
                consume(pair + u * blocks.stride, now.value[u], factor[u]);
            pair += BATCH_PAIRS * blocks.stride;
            if (2 * pair >= blocks.count)
                return;
            now = next;
            gather_batch(factor, now);
            fetch(next, blocks, pair + BATCH_PAIRS * blocks.stride);
        }
    }

    // Multiplies a task of a long row (section 3.3.1), by this block or by this warp.
    __device__ __forceinline__ void task() const {
        __shared__ Acc sums[WARPS];
        const bool alone = layout.warps_of_task == 1;
        const uint32_t number = alone ? blockIdx.x * WARPS + warp() : blockIdx.x;
        if (number >= layout.task_count)
            return;
        const Task task = layout.tasks[number];
        const Blocks blocks = {layout.columns + task.first * GROUP,
                               layout.values + task.first * GROUP, 2 * task.groups,
                               alone ? 0 : warp(), alone ? 1 : WARPS};
        Sums<A, X, Acc> sum;
        Batch now, next;
        Two<X> factor[BATCH_PAIRS];
        fetch(now, blocks, blocks.first);
        gather_batch(factor, now);
        fetch(next, blocks, blocks.first + BATCH_PAIRS * blocks.stride);
        sweep(now, factor, next, blocks, [&](int, Two<A> a, Two<X> f) { sum.add(a, f); });
        Acc total = sum.all();
        if (!alone) {
            if (lane() == 0)
                sums[warp()] = total;
            __syncthreads();
            if (warp() != 0)
                return;
            total = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
        }
        if (task.row < 0) {
            join(number, -1 - int64_t(task.row), total);
        } else if (lane() == 0) {
            store_row(task.row, total);
        }
    }

    // Stores a task's sum of split row `split`; called by one warp. Neighbouring split rows share a
    // counter if there are more of them than counters; the last warp to arrive at it adds the sums
    // of each of its rows in the order of the tasks.
    __device__ __forceinline__ void join(uint32_t task, int64_t split, Acc sum) const {
        const int64_t counter = split / layout.splits_per_counter;
        const int64_t first = counter * layout.splits_per_counter;
        const int64_t end = min(first + layout.splits_per_counter, layout.split_count);
        bool is_last = false;
        if (lane() == 0) {
            const Split mine = layout.splits[split], last = layout.splits[end - 1];
            const int64_t expected = last.before + last.tasks - layout.splits[first].before;
            parts[mine.before + task - mine.first] = sum;
            __threadfence();
            is_last = atomicAdd(arrivals + counter, 1) == uint32_t(expected - 1);
        }
        if (!__shfl_sync(ALL_LANES, is_last, 0))
            return;
        __threadfence();
        for (int64_t s = first; s < end; ++s) {
            const Split row = layout.splits[s];
            Acc total = zero<Acc>();
            for (int32_t at = lane(); at < row.tasks; at += WARP)
                total = add(total, load_l2(parts + row.before + at));
            __syncwarp();
            total = sum_of_warp(total);
            if (lane() == 0)
                store_row(row.row, total);
        }
        if (lane() == 0)
            arrivals[counter] = 0;
    }
    static __device__ __forceinline__ Acc sum_of_warp(Acc sum) {
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2)
            sum = add(sum, shuffle_xor(sum, delta));
        return sum;
    }

    // Lanes of a unit of medium rows, 4, 2 or 1 per row, and the irregular entries of each row: the
    // first HELD of a lane are loaded with the first batch of the regular part. The paper gives
    // each row one lane, and leaves the others idle if a warp has fewer than four row-blocks.
    static constexpr int HELD = 2;
    struct Irregular {
        int lanes;
        int64_t origin;
        // Entries of the row, [entry, end), and of the lane, [at, stop); heavy rows are left to the
        // whole warp.
        int entry, end, at, stop;
        bool is_heavy;
        int32_t column[HELD];
        A value[HELD];
        X factor[HELD];
    };
    // Finds the lane's entries; `end`: end of its row in its row-block's entries, which begin at
    // slot `origin`.
    __device__ __forceinline__ void fetch(Irregular &rest, bool is_mine) const {
        const int lanes = rest.lanes;
        rest.is_heavy = is_mine && rest.end - rest.entry > HEAVY * lanes;
        rest.stop = is_mine && !rest.is_heavy ? rest.end : 0;
        rest.at = rest.entry + lane() % lanes;
#pragma unroll
        for (int v = 0; v < HELD; ++v) {
            const int at = rest.at + v * lanes;
            rest.column[v] = -1;
            rest.value[v] = zero<A>();
            if (at < rest.stop) {
                rest.column[v] = load_line(layout.columns + rest.origin + at, policy);
                rest.value[v] = load_line(layout.values + rest.origin + at, policy);
            }
        }
    }
    // Sum of the irregular entries of the lane's row.
    __device__ __forceinline__ Acc sum_of(const Irregular &rest) const {
        const int lanes = rest.lanes;
        Acc sum = zero<Acc>();
#pragma unroll
        for (int v = 0; v < HELD; ++v)
            sum = fma(widen<Acc>(rest.value[v]), widen<Acc>(rest.factor[v]), sum);
        const int more = rest.at + HELD * lanes;
        if (more < rest.stop)
            sum = add(sum, irregular<2>(rest.origin, more, rest.stop, lanes));
        __syncwarp();
        if (lanes > 1)
            sum = add(sum, shuffle_xor(sum, 1));
        if (lanes > 2)
            sum = add(sum, shuffle_xor(sum, 2));
        unsigned heavy = __ballot_sync(ALL_LANES, rest.is_heavy && lane() % lanes == 0);
        for (; heavy != 0; heavy &= heavy - 1) {
            const int leader = __ffs(heavy) - 1;
            const int from = __shfl_sync(ALL_LANES, rest.entry, leader);
            const int to = __shfl_sync(ALL_LANES, rest.end, leader);
            const int64_t its_origin = __shfl_sync(ALL_LANES, rest.origin, leader);
            const Acc part = irregular<4>(its_origin, from + lane(), to, WARP);
            __syncwarp();
            const Acc total = sum_of_warp(part);
            if (lane() / lanes == leader / lanes)
                sum = total;
        }
        return sum;
    }

    // Sum of the regular entries of row `row` of row-block `row_block` of `count`, which end before
    // block `until_of_lane` of lane row_block + 1. The first batches have been requested.
    __device__ __forceinline__ Acc sum_row(const Blocks &blocks, Batch &now,
                                           Two<X> (&factor)[BATCH_PAIRS], Batch &next, int row,
                                           int row_block, int count, int until_of_lane) const {
        Sums<A, X, Acc> sums;
        Acc found = zero<Acc>();
        int current = 0, until = __shfl_sync(ALL_LANES, until_of_lane, 1);
        const auto finish = [&]() {
            const Acc of_row = sums.row(row);
            if (row_block == current)
                found = of_row;
        };
        const auto advance = [&]() {
            finish();
            sums = {};
            ++current;
            until = __shfl_sync(ALL_LANES, until_of_lane, min(current + 1, count));
        };
        // The branches below are uniform across the warp.
        sweep(now, factor, next, blocks, [&](int pair, Two<A> a, Two<X> f) {
            const int b = 2 * pair;
            if (b >= blocks.count)
                return;
            while (b >= until)
                advance();
            if (b + 1 == until) {
                sums.add_one(a.first, f.first);
                if (b + 1 < blocks.count) {
                    advance();
                    sums.add_one(a.second, f.second);
                }
            } else {
                sums.add(a, f);
            }
        });
        finish();
        return found;
    }

    // Multiplies the row-blocks of a unit (section 3.3.2), `loops` of them, by one warp or by all
    // warps of this block, each of which has a share of each row.
    __device__ __forceinline__ void row_blocks(int64_t unit, int warps) const {
        __shared__ Acc shares[WARPS - 1][WARP];
        const int member = warps == 1 ? 0 : warp();
        const int64_t begin = unit * layout.loops;
        if (begin >= layout.row_blocks)
            return;
        const int count = int(min(int64_t(layout.loops), layout.row_blocks - begin));
        const int lanes = PLACES / layout.loops;
        const int row_of_lane = lane() / lanes, my_row_block = row_of_lane / ROWS;
        const bool exists = my_row_block < count;
        const int64_t head = begin + min(lane(), count);
        const int64_t place = layout.medium_rows + begin * ROWS + row_of_lane;
        const int64_t block = load_cached(layout.regular + head);
        const int64_t rest_begin = load_cached(layout.irregular + head);
        const int end = exists ? load_cached(layout.ends + begin * ROWS + row_of_lane) : 0;
        const int32_t run = exists ? run_at(place) : 0;

        // The regular part is one stream over the row-blocks. A row-block has 64 blocks at most, so
        // 32 bits are enough to count from the first one.
        const int64_t first_block = __shfl_sync(ALL_LANES, block, 0);
        const int until_of_lane = int(block - first_block);
        const int64_t first_slot = layout.regular_slots + first_block * BLOCK;
        const Blocks blocks = {layout.columns + first_slot, layout.values + first_slot,
                               __shfl_sync(ALL_LANES, until_of_lane, count), member, warps};
        Batch now, next;
        Two<X> factor[BATCH_PAIRS];
        fetch(now, blocks, member);
        const int32_t row = exists ? row_at(place, run) : -1;

        // The last member takes the irregular part.
        Irregular rest;
        rest.lanes = lanes;
        rest.end = end;
        rest.entry = __shfl_up_sync(ALL_LANES, end, lanes);
        if (row_of_lane % ROWS == 0)
            rest.entry = 0;
        rest.origin = layout.irregular_slots + __shfl_sync(ALL_LANES, rest_begin, my_row_block);
        fetch(rest, member == warps - 1);
        gather_batch(factor, now);
#pragma unroll
        for (int v = 0; v < HELD; ++v)
            rest.factor[v] = gather(x, rest.column[v]);
        fetch(next, blocks, member + BATCH_PAIRS * warps);

        const Acc sum = sum_of(rest);
        Acc found = sum_row(blocks, now, factor, next, row_of_lane % ROWS, my_row_block, count,
                            until_of_lane);
        found = add(found, sum);
        if (warps != 1) {
            if (member != 0)
                shares[member - 1][lane()] = found;
            __syncthreads();
            if (member != 0)
                return;
#pragma unroll
            for (int m = 0; m < WARPS - 1; ++m)
                found = add(found, shares[m][lane()]);
        }
        if (exists && lane() % lanes == 0)
            store_row(row, found);
    }

    // Sum over the entries first, first + stride, … before `end` of a row-block's irregular part,
    // which starts at slot `origin`.
    template <int COUNT>
    __device__ __forceinline__ Acc irregular(int64_t origin, int first, int end, int stride) const {
        const A *values = layout.values + origin;
        const int32_t *columns = layout.columns + origin;
        Acc sum = zero<Acc>();
#pragma unroll 1
        for (int k = first; k < end; k += COUNT * stride) {
            int32_t column[COUNT];
            A value[COUNT];
            X factor[COUNT];
            // Beyond the end the first entry is read again, but not multiplied.
#pragma unroll
            for (int v = 0; v < COUNT; ++v) {
                const int at = k + v * stride < end ? k + v * stride : k;
                column[v] = load_line(columns + at, policy);
                value[v] = load_line(values + at, policy);
            }
#pragma unroll
            for (int v = 0; v < COUNT; ++v)
                factor[v] = load_cached(x + column[v]);
#pragma unroll
            for (int v = 0; v < COUNT; ++v) {
                if (k + v * stride < end)
                    sum = fma(widen<Acc>(value[v]), widen<Acc>(factor[v]), sum);
            }
        }
        return sum;
    }

    // Multiplies four blocks of a short part (section 3.3.3). `cut`: number of the first matrix
    // row's slots among the 4 of each block row, the others being the second row's; 0 if all belong
    // to one row.
    template <int cut>
    __device__ __forceinline__ void pieces(int64_t part, int64_t end, int64_t order,
                                           int64_t unit) const {
        const int64_t slot = part + unit * UNIT + 2 * lane();
        if (part + unit * UNIT >= end)
            return;
        constexpr int PAIRS = UNIT / GROUP;
        // Number of results of a pair of blocks, and of stores per lane.
        constexpr int RESULTS = cut == 0 ? 2 * ROWS : 4 * ROWS, STORES = PAIRS * RESULTS / WARP;
        const int64_t place = order + unit * STORES * WARP + lane();
        Two<int32_t> column[PAIRS];
        Two<A> value[PAIRS];
        Two<X> factor[PAIRS];
        int32_t row[STORES];
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            column[p] = columns(slot + p * GROUP);
            // Rows of 1 and of 3 alternate in `order`, so these have no runs.
#pragma unroll
        for (int s = 0; s < STORES; ++s) {
            const int64_t at = place + s * WARP;
            row[s] = cut == 1 ? load_cached(layout.order + at) : run_at(at);
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            value[p] = values(slot + p * GROUP);
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            factor[p] = gather(x, column[p]);
        if (cut != 1) {
#pragma unroll
            for (int s = 0; s < STORES; ++s)
                row[s] = row_at(place + s * WARP, row[s]);
        }
        Acc found = zero<Acc>();
#pragma unroll
        for (int i = 0; i < PAIRS * RESULTS / ROWS; ++i) {
            // 8 results: of one pair, one block of the pair, one of the two pieced rows.
            const int p = i * ROWS / RESULTS, of_pair = i % (RESULTS / ROWS);
            const int block = cut == 0 ? of_pair : of_pair / 2;
            A a = block == 0 ? value[p].first : value[p].second;
            X f = block == 0 ? factor[p].first : factor[p].second;
            if (cut != 0 && (lane() % PLACES < cut) != (of_pair % 2 == 0)) {
                a = zero<A>();
                f = zero<X>();
            }
            Sums<A, X, Acc> sums;
            sums.add_one(a, f);
            const Acc of_row = sums.row(lane() % ROWS);
            if (lane() / ROWS == i % (WARP / ROWS))
                found = of_row;
            if (i % (WARP / ROWS) == WARP / ROWS - 1)
                store_row(row[i / (WARP / ROWS)], found);
        }
    }

    // Multiplies rows of one entry, four per lane.
    __device__ __forceinline__ void singles(int64_t unit) const {
        const int64_t first = unit * UNIT + 2 * lane();
        if (layout.single + unit * UNIT >= layout.irregular_slots)
            return;
        constexpr int PAIRS = UNIT / GROUP;
        Two<int32_t> column[PAIRS], row[PAIRS];
        Two<A> value[PAIRS];
        Two<X> factor[PAIRS];
        int32_t run[PAIRS];
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            column[p] = columns(layout.single + first + p * GROUP);
            run[p] = run_at(layout.single_rows + first + p * GROUP);
            value[p] = values(layout.single + first + p * GROUP);
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            factor[p] = gather(x, column[p]);
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            // The first is at an even position, so both are in the same run.
            const int64_t place = layout.single_rows + first + p * GROUP;
            row[p] = {row_at(place, run[p]), row_at(place + 1, run[p])};
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            store_row(row[p].first, mul(widen<Acc>(value[p].first), widen<Acc>(factor[p].first)));
            store_row(row[p].second,
                      mul(widen<Acc>(value[p].second), widen<Acc>(factor[p].second)));
        }
    }

    // Stores rows without entries: y = beta · y.
    __device__ __forceinline__ void empties(int64_t unit) const {
#pragma unroll
        for (int i = 0; i < UNIT / WARP; ++i) {
            const int64_t at = layout.empty_rows + unit * UNIT + i * WARP + lane();
            if (at < layout.order_end)
                store_row(row_at(at, run_at(at)), zero<Acc>());
        }
    }

    __device__ __forceinline__ void run() const {
        const uint32_t *ends = layout.ends_of_parts;
        const uint32_t block = blockIdx.x;
        // Returns this warp's unit in part `part`.
        const auto unit = [&](int part) {
            return int64_t(block - ends[part - 1]) * WARPS + warp();
        };
        if (block < ends[0]) {
            task();
        } else if (block < ends[1]) {
            const int64_t shared = layout.shared_units, at = block - ends[0];
            const bool is_shared = at < shared;
            row_blocks(is_shared ? at : shared + (at - shared) * WARPS + warp(),
                       is_shared ? WARPS : 1);
        } else if (block < ends[2]) {
            pieces<1>(layout.one_three, layout.two_two, 0, unit(2));
        } else if (block < ends[3]) {
            pieces<2>(layout.two_two, layout.four, layout.two_two_rows, unit(3));
        } else if (block < ends[4]) {
            pieces<0>(layout.four, layout.regular_slots, layout.four_rows, unit(4));
        } else if (block < ends[5]) {
            singles(unit(5));
        } else {
            empties(unit(6));
        }
    }
};

} // namespace tarsia::dasp
