// SpMV on DASP's classes of rows (src/layout/dasp.rs describes the arrays; Lu, Liu
// 2023, section 3.3), all classes in one launch: long rows have the first blocks
// of the grid, one for each task, then come medium rows, the three pieced parts,
// single entries and empty rows with a warp for each unit.
//
// A warp holds a block of 8 rows and 4 places as one element a lane, lane 4r + k
// place k of row r, which is how an m8n8k4 fragment of A is spread. B's column r
// holds the elements of x that row r needs, so the product's diagonal has the sums
// of the rows. What is off the diagonal is row i's values times row j's elements of
// x: it may be anything, Inf and NaN included, and nothing reads it. Each diagonal
// element is a sum over its own row's 4 products alone, so an Inf or NaN reaches
// only the rows that store an entry there. Padding multiplies 0 by 0: x is loaded
// for entries only. Where two rows are pieced together, the other row's values
// *and* elements of x are both replaced by 0, since a stored value may be Inf too.
#pragma once

#include "spmv/dot.cuh"

namespace tarsia::dasp {

constexpr int WARP = 32, WARPS = 4, THREADS = WARP * WARPS;
// src/layout/dasp.rs has the reasons of these.
constexpr int ROWS = 8, PLACES = 4, BLOCK = ROWS * PLACES, GROUP = 2 * BLOCK, UNIT = 2 * GROUP,
              RUN = 32;
// Groups of a task for each warp.
constexpr int TASK_STEPS = 4;

// An element of each of two blocks that are stored together.
template <class T> struct Two { T first, second; };

// Of a long row; `row` of a split one is −1 − its number.
struct Task {
    int64_t first;
    int32_t groups, row;
};

// `before`: tasks of split rows before this one's.
struct Split {
    int64_t first, before;
    int32_t tasks, row;
};

// The layout, as src/backend/cuda/spmv/dasp.rs passes it.
template <class A> struct Layout {
    const A *values;
    const int32_t *columns, *order, *runs;
    const Task *tasks;
    const Split *splits;
    const int64_t *regular, *irregular;
    const uint16_t *ends;
    // Rows of op(A).
    int64_t rows;
    // Where the parts' slots start; long ones start at 0.
    int64_t one_three, two_two, four, regular_slots, single, irregular_slots;
    // Where the parts' places of `order` start; pieced 1 & 3 start at 0.
    int64_t two_two_rows, four_rows, single_rows, medium_rows, empty_rows, order_end;
    int64_t row_blocks, split_count;
    // Row-blocks of a warp (1, 2 or 4), and split rows that share a counter.
    int32_t loops, splits_per_counter;
    // The first block behind those of the long, medium, pieced 1 & 3, pieced 2 & 2,
    // four, single and empty rows.
    uint32_t ends_of_parts[7];
    int32_t stream;
};
static_assert(sizeof(Layout<double>) == 232, "src/backend/cuda/spmv/dasp.rs has the same");

namespace detail {

template <int bytes> struct Words;
template <> struct Words<4> {
    static __device__ __forceinline__ void load(void *out, const void *p, uint64_t policy) {
        uint32_t bits;
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;"
                     : "=r"(bits)
                     : "l"(p), "l"(policy));
        memcpy(out, &bits, 4);
    }
};
template <> struct Words<8> {
    static __device__ __forceinline__ void load(void *out, const void *p, uint64_t policy) {
        uint64_t bits;
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b64 %0, [%1], %2;"
                     : "=l"(bits)
                     : "l"(p), "l"(policy));
        memcpy(out, &bits, 8);
    }
};
template <> struct Words<16> {
    static __device__ __forceinline__ void load(void *out, const void *p, uint64_t policy) {
        uint64_t bits[2];
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.b64 {%0, %1}, [%2], %3;"
                     : "=l"(bits[0]), "=l"(bits[1])
                     : "l"(p), "l"(policy));
        memcpy(out, bits, 16);
    }
};
template <> struct Words<32> {
    static __device__ __forceinline__ void load(void *out, const void *p, uint64_t policy) {
        Words<16>::load(out, p, policy);
        Words<16>::load(static_cast<char *>(out) + 16, static_cast<const char *>(p) + 16, policy);
    }
};

} // namespace detail

// Two neighbours, the first at a multiple of two: one load of up to 16 bytes.
template <class T> __device__ __forceinline__ Two<T> load_two(const T *p, uint64_t policy) {
    Two<T> out;
    detail::Words<sizeof(out)>::load(&out, p, policy);
    return out;
}

// The elements of x at these columns, 0 for padding.
template <class X> __device__ __forceinline__ X gather(const X *x, int32_t column) {
    return column >= 0 ? load_cached(x + column) : zero<X>();
}
template <class X> __device__ __forceinline__ Two<X> gather(const X *x, Two<int32_t> columns) {
    return {gather(x, columns.first), gather(x, columns.second)};
}

// The sums of 8 rows, of which a warp adds a block or two at one time.
//   add      an element of each of two blocks and its elements of x
//   add_one  the same of one block
//   row      the sum of row r, each lane may ask for another
//   all      the sum over the rows, on all lanes
// This one, by multiply-adds on each lane, serves where no matrix unit has the
// type: fp32 (TF32 would drop 13 bits of the factors) and complex numbers.
template <class A, class X, class Acc> struct Sums {
    Acc sum = zero<Acc>();

    __device__ __forceinline__ void add_one(A a, X x) {
        sum = fma(widen<Acc>(a), widen<Acc>(x), sum);
    }
    __device__ __forceinline__ void add(Two<A> a, Two<X> x) {
        add_one(a.first, x.first);
        add_one(a.second, x.second);
    }
    __device__ __forceinline__ Acc row(int r) const {
        Acc out = tarsia::add(sum, shuffle_xor(sum, 1));
        out = tarsia::add(out, shuffle_xor(out, 2));
        return shuffle_index<WARP>(out, PLACES * r);
    }
    __device__ __forceinline__ Acc all() const {
        Acc out = sum;
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2)
            out = tarsia::add(out, shuffle_xor(out, delta));
        return out;
    }
};

// Sums on the diagonal of 8 × 8 products. Lane 4r + t has (r, 2t) and (r, 2t + 1).
template <class Acc> struct Diagonal {
    Acc c[2] = {zero<Acc>(), zero<Acc>()};

    static __device__ __forceinline__ int lane() { return threadIdx.x % WARP; }
    // Of the lane's row, where the lane has it.
    __device__ __forceinline__ Acc own() const { return lane() / PLACES % 2 ? c[1] : c[0]; }
    __device__ __forceinline__ Acc row(int r) const {
        return shuffle_index<WARP>(own(), PLACES * r + r / 2);
    }
    __device__ __forceinline__ Acc all() const {
        Acc out = lane() % PLACES == lane() / PLACES / 2 ? own() : zero<Acc>();
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2)
            out += shuffle_xor(out, delta);
        return out;
    }
};

// fp64 by DMMA, rounded once a product as by DFMA.
template <class A, class X> struct Sums<A, X, double> : Diagonal<double> {
    __device__ __forceinline__ void add_one(A a, X x) {
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(c[0]), "+d"(c[1])
            : "d"(widen<double>(a)), "d"(widen<double>(x)));
    }
    __device__ __forceinline__ void add(Two<A> a, Two<X> x) {
        add_one(a.first, x.first);
        add_one(a.second, x.second);
    }
};

// Half types by m16n8k8 with sums in fp32: products are exact. The paper's
// m8n8k4 of fp16 is emulated after sm_70. Place k of the first block of two is
// k' = 2k of the instruction, that of the second k' = 2k + 1, which is how it
// spreads pairs over lanes; rows 8 to 15 of A are 0 and those of C are not read.
template <class T> struct HalfSums : Diagonal<float> {
    static __device__ __forceinline__ uint32_t pack(T low, T high) {
        uint16_t bits[2];
        memcpy(&bits[0], &low, 2);
        memcpy(&bits[1], &high, 2);
        return uint32_t(bits[1]) << 16 | bits[0];
    }
    __device__ __forceinline__ void multiply(uint32_t a, uint32_t x) {
        float unused[2];
        if constexpr (__is_same(T, f16)) {
            asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, "
                "{%6}, "
                "{%7, %8, %9, %9};"
                : "=f"(c[0]), "=f"(c[1]), "=f"(unused[0]), "=f"(unused[1])
                : "r"(a), "r"(0), "r"(x), "f"(c[0]), "f"(c[1]), "f"(0.0f));
        } else {
            asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, "
                "{%6}, {%7, %8, %9, %9};"
                : "=f"(c[0]), "=f"(c[1]), "=f"(unused[0]), "=f"(unused[1])
                : "r"(a), "r"(0), "r"(x), "f"(c[0]), "f"(c[1]), "f"(0.0f));
        }
    }
    __device__ __forceinline__ void add(Two<T> a, Two<T> x) {
        multiply(pack(a.first, a.second), pack(x.first, x.second));
    }
    __device__ __forceinline__ void add_one(T a, T x) {
        multiply(pack(a, zero<T>()), pack(x, zero<T>()));
    }
};
template <> struct Sums<f16, f16, float> : HalfSums<f16> {};
template <> struct Sums<bf16, bf16, float> : HalfSums<bf16> {};

// What every part of the kernel needs.
template <class A, class X, class Y, class Acc> struct Product {
    const Layout<A> &layout;
    const X *x;
    Y *y;
    // Read again where they are used: values would hold registers all the time.
    Scalar<Acc> alpha, beta;
    uint64_t policy;
    // Sums of tasks of split rows, and arrivals: zero between launches.
    Acc *parts;
    uint32_t *arrivals;

    static __device__ __forceinline__ int lane() { return threadIdx.x % WARP; }
    static __device__ __forceinline__ int warp() { return threadIdx.x / WARP; }

    __device__ __forceinline__ void put(int32_t row, Acc sum) const {
        if (row >= 0)
            store(y + row, alpha.get(), sum, beta.get());
    }
    // The row of a place of `order`: mostly known from the run it is in.
    __device__ __forceinline__ int32_t row_at(int64_t place) const {
        const int32_t run = load_cached(layout.runs + place / RUN);
        return run >= 0 ? run + int32_t(place % RUN) : load_cached(layout.order + place);
    }
    __device__ __forceinline__ Two<int32_t> columns(int64_t slot) const {
        return load_two(layout.columns + slot, policy);
    }
    __device__ __forceinline__ Two<A> values(int64_t slot) const {
        return load_two(layout.values + slot, policy);
    }

    // One block of threads for a task (section 3.3.1).
    __device__ __forceinline__ void task() const {
        __shared__ Acc sums[WARPS];
        // Groups of a warp under way at one time.
        constexpr int U = sizeof(A) > 8 ? 2 : TASK_STEPS;
        const Task task = layout.tasks[blockIdx.x];
        Sums<A, X, Acc> sum;
#pragma unroll
        for (int first = 0; first < TASK_STEPS; first += U) {
            Two<int32_t> column[U];
            Two<A> value[U];
            Two<X> factor[U];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const int group = (first + u) * WARPS + warp();
                column[u] = {-1, -1};
                value[u] = {zero<A>(), zero<A>()};
                if (group < task.groups) {
                    const int64_t slot = (task.first + group) * GROUP + 2 * lane();
                    column[u] = columns(slot);
                    value[u] = values(slot);
                }
            }
#pragma unroll
            for (int u = 0; u < U; ++u)
                factor[u] = gather(x, column[u]);
#pragma unroll
            for (int u = 0; u < U; ++u)
                sum.add(value[u], factor[u]);
        }
        const Acc mine = sum.all();
        if (lane() == 0)
            sums[warp()] = mine;
        __syncthreads();
        const Acc total = add(add(sums[0], sums[1]), add(sums[2], sums[3]));
        if (task.row < 0) {
            join(-1 - int64_t(task.row), total);
        } else if (threadIdx.x == 0) {
            put(task.row, total);
        }
    }

    // Leaves a task's sum of split row `split`. Neighbouring split rows share a
    // counter where there are more of them than counters; the last block to
    // arrive at it adds the sums of each of its rows in the order of the tasks.
    __device__ __forceinline__ void join(int64_t split, Acc sum) const {
        __shared__ bool is_last;
        const int64_t counter = split / layout.splits_per_counter;
        const int64_t first = counter * layout.splits_per_counter;
        const int64_t end = min(first + layout.splits_per_counter, layout.split_count);
        if (threadIdx.x == 0) {
            const Split mine = layout.splits[split], last = layout.splits[end - 1];
            const int64_t expected = last.before + last.tasks - layout.splits[first].before;
            parts[mine.before + blockIdx.x - mine.first] = sum;
            __threadfence();
            is_last = atomicAdd(arrivals + counter, 1) == uint32_t(expected - 1);
        }
        __syncthreads();
        if (!is_last)
            return;
        __threadfence();
        for (int64_t s = first + warp(); s < end; s += WARPS) {
            const Split row = layout.splits[s];
            Acc total = zero<Acc>();
            for (int32_t task = lane(); task < row.tasks; task += WARP)
                total = add(total, load_l2(parts + row.before + task));
            __syncwarp();
#pragma unroll
            for (int delta = 1; delta < WARP; delta *= 2)
                total = add(total, shuffle_xor(total, delta));
            if (lane() == 0)
                put(row.row, total);
        }
        if (threadIdx.x == 0)
            arrivals[counter] = 0;
    }

    // Two blocks of a row-block, or its last one, and which of the warp's
    // row-blocks that is; −1 behind the last.
    struct Step {
        Two<int32_t> column;
        Two<A> value;
        int row_block;
    };

    // The warp's row-blocks first, first + 1, … (section 3.3.2).
    __device__ __forceinline__ void row_blocks(int64_t unit) const {
        const int64_t first = unit * layout.loops;
        if (first >= layout.row_blocks)
            return;
        const int count = int(min(int64_t(layout.loops), layout.row_blocks - first));
        const int64_t head = first + min(lane(), count);
        const int64_t block = load_cached(layout.regular + head);
        const int64_t rest = load_cached(layout.irregular + head);
        // 4, 2 or 1 lanes a row: the paper gives each row one, and leaves the
        // others idle where a warp has fewer than four row-blocks.
        const int lanes = PLACES / layout.loops;
        const int row_of_lane = lane() / lanes, my_row_block = row_of_lane / ROWS;
        const bool exists = my_row_block < count;
        int32_t row = -1;
        int entry = 0, end = 0;
        if (exists) {
            const int64_t at = first * ROWS + row_of_lane;
            row = row_at(layout.medium_rows + at);
            end = load_cached(layout.ends + at);
            if (row_of_lane % ROWS != 0)
                entry = load_cached(layout.ends + at - 1);
        }
        const int64_t rest_of_mine = __shfl_sync(~0u, rest, my_row_block);

        // The regular part is one stream over the row-blocks, so that the loads
        // of the next are under way while one is summed. A row-block has 64 blocks
        // at the most: from the first one on, 32 bits count.
        const int64_t first_block = __shfl_sync(~0u, block, 0);
        const int until_of_lane = int(block - first_block);
        const int64_t first_slot = layout.regular_slots + first_block * BLOCK;
        const int32_t *stream_columns = layout.columns + first_slot;
        const A *stream_values = layout.values + first_slot;
        int at = 0, until = __shfl_sync(~0u, until_of_lane, 1), current = 0;
        const auto next = [&]() {
            Step step = {{-1, -1}, {zero<A>(), zero<A>()}, -1};
            // At most `loops` turns: the same on all lanes.
            while (at == until && current < count) {
                ++current;
                until = __shfl_sync(~0u, until_of_lane, min(current + 1, count));
            }
            if (at == until)
                return step;
            const int slot = at * BLOCK;
            if (until - at > 1) {
                step.column = load_two(stream_columns + slot + 2 * lane(), policy);
                step.value = load_two(stream_values + slot + 2 * lane(), policy);
                at += 2;
            } else {
                step.column.first = load_once(stream_columns + slot + lane(), policy);
                step.value.first = load_once(stream_values + slot + lane(), policy);
                at += 1;
            }
            step.row_block = current;
            return step;
        };
        Step step = next(), following = next();

        Acc sum = irregular(rest_of_mine, entry + lane() % lanes, end, lanes);
        __syncwarp();
        if (lanes > 1)
            sum = add(sum, shuffle_xor(sum, 1));
        if (lanes > 2)
            sum = add(sum, shuffle_xor(sum, 2));

        Sums<A, X, Acc> sums;
        Acc found = zero<Acc>();
        int summed = 0;
        const auto finish = [&]() {
            const Acc of_row = sums.row(row_of_lane % ROWS);
            if (my_row_block == summed)
                found = of_row;
            sums = {};
        };
        Two<X> factor = gather(x, step.column);
        while (step.row_block >= 0) {
            const Step after = next();
            const Two<X> next_factor = gather(x, following.column);
            if (step.row_block != summed) {
                finish();
                summed = step.row_block;
            }
            sums.add(step.value, factor);
            step = following;
            following = after;
            factor = next_factor;
        }
        finish();
        if (exists && lane() % lanes == 0)
            put(row, add(found, sum));
    }

    // Entries first, first + stride, … before end of a row-block's in the irregular
    // part, which start at `origin`.
    __device__ __forceinline__ Acc irregular(int64_t origin, int first, int end, int stride) const {
        constexpr int U = 2;
        const A *values = layout.values + layout.irregular_slots + origin;
        const int32_t *columns = layout.columns + layout.irregular_slots + origin;
        Acc sum = zero<Acc>();
        for (int k = first; k < end; k += U * stride) {
            int32_t column[U];
            A value[U];
            X factor[U];
            // Where there is no entry the first is read again, and not multiplied.
#pragma unroll
            for (int u = 0; u < U; ++u) {
                const int at = k + u * stride < end ? k + u * stride : k;
                column[u] = load_line(columns + at, policy);
                value[u] = load_line(values + at, policy);
            }
#pragma unroll
            for (int u = 0; u < U; ++u)
                factor[u] = load_cached(x + column[u]);
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (k + u * stride < end)
                    sum = fma(widen<Acc>(value[u]), widen<Acc>(factor[u]), sum);
            }
        }
        return sum;
    }

    // Four blocks of a short part (section 3.3.3). `cut`: in each row of 4 places
    // the first row of the matrix has that many of them, the second the others; 0
    // where all belong to one.
    template <int cut>
    __device__ __forceinline__ void pieces(int64_t part, int64_t end, int64_t order,
                                           int64_t unit) const {
        const int64_t slot = part + unit * UNIT + 2 * lane();
        if (part + unit * UNIT >= end)
            return;
        constexpr int PAIRS = UNIT / GROUP;
        // Results of a pair of blocks, and of all.
        constexpr int RESULTS = cut == 0 ? 2 * ROWS : 4 * ROWS, STORES = PAIRS * RESULTS / WARP;
        Two<int32_t> column[PAIRS];
        Two<A> value[PAIRS];
        Two<X> factor[PAIRS];
        int32_t row[STORES];
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            column[p] = columns(slot + p * GROUP);
            value[p] = values(slot + p * GROUP);
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            factor[p] = gather(x, column[p]);
            // Rows of 1 and of 3 take turns in `order`: those are no runs.
#pragma unroll
        for (int s = 0; s < STORES; ++s) {
            const int64_t place = order + (unit * STORES + s) * WARP + lane();
            row[s] = cut == 1 ? load_cached(layout.order + place) : row_at(place);
        }
        Acc found = zero<Acc>();
#pragma unroll
        for (int i = 0; i < PAIRS * RESULTS / ROWS; ++i) {
            // 8 results: pair, block of the pair, part of the cut rows.
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
                put(row[i / (WARP / ROWS)], found);
        }
    }

    // Rows of one entry: four a lane.
    __device__ __forceinline__ void singles(int64_t unit) const {
        const int64_t first = unit * UNIT + 2 * lane();
        if (layout.single + unit * UNIT >= layout.irregular_slots)
            return;
        constexpr int PAIRS = UNIT / GROUP;
        Two<int32_t> column[PAIRS], row[PAIRS];
        Two<A> value[PAIRS];
        Two<X> factor[PAIRS];
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            column[p] = columns(layout.single + first + p * GROUP);
            value[p] = values(layout.single + first + p * GROUP);
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p)
            factor[p] = gather(x, column[p]);
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            const int64_t place = layout.single_rows + first + p * GROUP;
            row[p] = {row_at(place), row_at(place + 1)};
        }
#pragma unroll
        for (int p = 0; p < PAIRS; ++p) {
            put(row[p].first, mul(widen<Acc>(value[p].first), widen<Acc>(factor[p].first)));
            put(row[p].second, mul(widen<Acc>(value[p].second), widen<Acc>(factor[p].second)));
        }
    }

    // Rows without entries: y = beta · y.
    __device__ __forceinline__ void empties(int64_t unit) const {
#pragma unroll
        for (int i = 0; i < UNIT / WARP; ++i) {
            const int64_t at = layout.empty_rows + unit * UNIT + i * WARP + lane();
            if (at < layout.order_end)
                put(row_at(at), zero<Acc>());
        }
    }

    __device__ __forceinline__ void run() const {
        const uint32_t *ends = layout.ends_of_parts;
        const uint32_t block = blockIdx.x;
        // Of part `part`, for this warp.
        const auto unit = [&](int part) {
            return int64_t(block - ends[part - 1]) * WARPS + warp();
        };
        if (block < ends[0]) {
            task();
        } else if (block < ends[1]) {
            row_blocks(unit(1));
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
