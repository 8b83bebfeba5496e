// SpMM `row`: C = alpha · A · B + beta · C on rows of A, with a dense B, by CUDA cores.
//
// A warp consists of 32 / LANES groups of LANES lanes, which lie along the columns of C. A group
// takes a run of neighbouring rows, or shares one row with other groups of its warp, or all groups
// of a block share a part of a long row. A group walks through the entries of its run as if they
// were one row, LANES at a time: each lane loads one entry, and shared memory hands it to the
// others, while the next LANES entries are in flight. So a short row costs no chain of dependent
// loads of its own, and rows of B are always loaded FLIGHT at a time. Entries are added in the
// order in which they are stored; the sums of groups that share a row are added in a fixed order,
// and so are those of parts of a row, by the last block to arrive: there are no floating-point
// atomics, results have the same bits from run to run, and one launch is enough.

#pragma once

#include "common/complex.cuh"
#include "common/types.cuh"
#include "ptx/launch.cuh"
#include "ptx/packs.cuh"
#include "ptx/warp.cuh"
#include "spmm/join.cuh"
#include "spmm/tasks.cuh"

namespace tarsia {

// Dense matrix C that is written: row i of A goes to its row order[i], or i if order is NULL.
template <class T> struct Output : Dense<T> {
    const uint32_t *order;

    template <class J> __device__ __forceinline__ int64_t row(int64_t i) const {
        if constexpr (sizeof(J) == 8) {
            // Reordered rows are in a copy of the matrix, which has 32-bit columns and fewer than
            // 2^31 rows. (The two steps below take two registers fewer than `order ? … : i`.)
            return i;
        } else {
            const uint32_t low = order ? __ldg(order + uint32_t(i)) : uint32_t(i);
            return order ? int64_t(low) : (i & ~int64_t(0xffffffff)) | low;
        }
    }
};

struct Tasks {
    const Part *parts; // parts of long rows, a block each
    int64_t part_count;
    const Run *shared_rows; // rows that all groups of a warp share
    int64_t shared_count;
    const Run *runs; // rows of a group; NULL: runs of `rows_a_run` neighbours of all `rows`
    int64_t count;   // number of runs
    int64_t spread;  // groups that share a run, which is then a single row
    // One set per tile of a launch; zero before the launch and after it.
    unsigned *counters;
    int64_t counter_count;
    int64_t rows, rows_a_run;
    // Without a plan, runs of more than `run_limit` entries are in the lists of parts and
    // shared rows that spmm_tasks_unanalyzed makes; `lengths` are the lengths of the list of shared
    // rows and of the list of parts, and behind them the decision of spmm/columns.cu.
    int64_t run_limit;
    const int64_t *lengths;
};

template <class A, class J> struct Matrix {
    Offsets offsets;
    const J *indices;
    const A *values;
    int64_t base;
};

// Work of a group: neighbouring rows, one row, or a part of one; `length` entries from `begin` on.
struct Share {
    int64_t begin, row;
    int length, rows; // rows = 0: nothing to store
};

// Loads a run from a list. (Lists that are made without a plan are written by the previous
// kernel. They are read only after their lengths, which are read after wait_for_previous.)
__device__ __forceinline__ Share load_run(const Run *from) {
    const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from));
    return {int64_t(bits.y) << 32 | bits.x, int(bits.z), int(bits.w >> 16), int(bits.w & 0xffff)};
}

__device__ __forceinline__ Share take_run(const Offsets &offsets, int64_t base, const Tasks &tasks,
                                          int64_t place) {
    if (place >= tasks.count)
        return {0, 0, 0, 0};
    if (tasks.runs)
        return load_run(tasks.runs + place);
    const int64_t row = place * tasks.rows_a_run;
    const int64_t rows = min(tasks.rows_a_run, tasks.rows - row);
    const int64_t begin = offsets.at(row), length = offsets.at(row + rows) - begin;
    if (length > tasks.run_limit)
        return {0, 0, 0, 0};
    return {begin - base, row, int(length), int(rows)};
}

// Rows of B that a group has in flight at one time. More cost registers, and with them warps that
// hide the same latency: 2 and 8 were measured slower.
constexpr int FLIGHT = 4;

// Threads of a block of a wide kernel: a block keeps its registers until its longest warp is done,
// so blocks are small.
constexpr int BLOCK = 128;

template <bool first, class First, class Second> struct Either { using type = First; };
template <class First, class Second> struct Either<false, First, Second> { using type = Second; };

// Address of a row of B in the lane's columns. stride: bytes between rows.
template <class J>
__device__ __forceinline__ const char *row_at(const char *columns, J row, int64_t stride) {
    // With 32-bit columns the host uses this only for strides that fit 32 bits.
    if constexpr (sizeof(J) == 4)
        return columns + int64_t(row) * int32_t(stride);
    return columns + row * stride;
}

template <class Acc, class X, int WIDTH>
__device__ __forceinline__ void add_pack(Acc *sums, Acc factor, const Pack<X, WIDTH> &pack) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i)
        sums[i] = fma(factor, widen<Acc>(pack.v[i]), sums[i]);
}

// Entries that the lanes of a warp hand to each other through shared memory: 32 at a time, with the
// row of the group's run that each belongs to.
template <class J, class Factor, int LANES> struct alignas(16) Stage {
    alignas(16) J k[32];
    alignas(16) Factor value[32];
    // Number of entries up to the end of each row of the run; the total beyond the last row.
    alignas(16) int upto[32 / LANES][MOST_ROWS];
    uint8_t row[2][32]; // for this turn and the next
    // First row, first entry, and number of rows of each group.
    int64_t first_row[32 / LANES], begin[32 / LANES];
    int rows[32 / LANES];
};

// Share of a block's work that a group of lanes takes: `sharing` groups share it, and this one is
// number `which` of them.
struct Work {
    Share own;
    int sharing, which;
};

// Number of the parts of long rows, which the first blocks take.
template <bool LISTS> __device__ __forceinline__ int64_t part_count(const Tasks &tasks) {
    return LISTS ? tasks.lengths[1] : tasks.part_count;
}

// Finds the group's work in a block that takes no part: a row of its warp, or a run of rows, which
// `spread` groups share. Returns whether there is any; all lanes of a warp get the same.
template <bool LISTS, int LANES, class Column, class Value>
__device__ __forceinline__ bool take_rows(const Matrix<Value, Column> &a, const Tasks &tasks,
                                          int64_t block, int spread, Work &work) {
    constexpr int WARPS = BLOCK / WARP, GROUPS = WARP / LANES;
    const int group = threadIdx.x % WARP / LANES;
    int64_t warp = (block - part_count<LISTS>(tasks)) * WARPS + threadIdx.x / WARP;
    const int64_t shared_count = LISTS ? tasks.lengths[0] : tasks.shared_count;
    if (warp < shared_count) {
        work.own = load_run(tasks.shared_rows + warp);
        work.sharing = GROUPS;
        work.which = group;
    } else if (LISTS) {
        return false;
    } else {
        warp -= shared_count;
        work.sharing = spread;
        work.which = group % spread;
        work.own = take_run(a.offsets, a.base, tasks, warp * (GROUPS / spread) + group / spread);
    }
    return true;
}

// Adds the sums that the warps of a block have of a part, each in all its groups, in the order of
// the warps. `own` is the warp's shared memory, `apart` the distance to the next warp's. Returns
// whether this is the first warp, which has the result.
template <int LANES, class Acc, int COUNT>
__device__ __forceinline__ bool add_warps(Acc (&sums)[COUNT], Acc *first, int apart) {
    const int lane = threadIdx.x % WARP, in_group = lane % LANES;
    if (lane < LANES) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            first[threadIdx.x / WARP * apart + i * LANES + in_group] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x >= WARP)
        return false;
#pragma unroll 1
    for (int w = 1; w < BLOCK / WARP; ++w) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            sums[i] = add(sums[i], first[w * apart + i * LANES + in_group]);
    }
    return true;
}

// Memory for partial sums of split rows.
template <class Acc> struct Partial {
    Acc *sums;
    int64_t stride;
};

// Computes a tile of C with PACKS times WIDTH elements per lane, WIDTH contiguous ones and the next
// WIDTH a further WIDTH · LANES columns on: PACKS · WIDTH · LANES columns per group. n is a
// multiple of WIDTH. B's columns are contiguous, and row_stride is in bytes. ALIGNED: B's rows are
// aligned to 16 bytes; otherwise WIDTH is 1, and a complex B may be aligned only to its parts. With
// WIDTH > 1, B is loaded by 16 bytes, and C, too, if `flags` (spmm/row.cu) say that its rows are
// aligned. With LISTS, the block takes one turn of the lists that were made without a plan, and
// nothing else; otherwise it takes the other rows or, with analysis, all rows. What few registers
// would hold is read again from shared memory or the parameters: some variants spilled.
template <bool LISTS, class Value, class X, class Y, class Acc, class Column, int LANES, int WIDTH,
          int PACKS, bool ALIGNED>
struct WideRows {
    static constexpr int GROUPS = WARP / LANES, COUNT = PACKS * WIDTH, TILE = COUNT * LANES;
    // Number of entries of a turn whose rows of B are in flight at one time.
    static constexpr int NOW = LANES < FLIGHT ? LANES : FLIGHT;
    // Half types are widened once, when staged, and not by each lane that reads them.
    using Factor = typename Either<sizeof(Value) == 2, Acc, Value>::type;
    using Entries = Stage<Column, Factor, LANES>;
    // Entries of a warp, and later the sums of a part.
    union alignas(16) Shared {
        char entries[sizeof(Entries)], sums[sizeof(Acc) * TILE];
    };

    const Matrix<Value, Column> &a;
    const Dense<const X> &b;
    const Output<Y> &c;
    int64_t n;
    const Scalar<Acc> &alpha_, &beta_;
    Entries &stage;
    int64_t flags;
    int lane, in_group, group;
    int sharing, total; // groups that share the work, and entries of this one
    int col;
    const char *columns; // the lane's first column of B
    bool b_is_whole;
    int further; // bytes to the lane's next pack
    Acc sums[COUNT];
    // Next entry of each lane, and the mask of the lanes of the warp whose entries end a row.
    Column k;
    Value value;
    unsigned last;

    __device__ __forceinline__ WideRows(const Matrix<Value, Column> &a, const Dense<const X> &b,
                                        const Output<Y> &c, int64_t n, const Scalar<Acc> &alpha,
                                        const Scalar<Acc> &beta, int64_t flags, Shared *shared)
        : a(a), b(b), c(c), n(n), alpha_(alpha), beta_(beta),
          stage(*reinterpret_cast<Entries *>(shared + threadIdx.x / WARP)), flags(flags),
          lane(threadIdx.x & 31), in_group(lane % LANES), group(lane / LANES), k(0),
          value(zero<Value>()), last(0) {}

    // Sets out on the group's work.
    __device__ __forceinline__ void begin(Work work, unsigned tile) {
        const bool nothing = is_zero(alpha_.get());
        Share &own = work.own;
        sharing = work.sharing;
        total = nothing ? 0 : own.length;
        if (sharing > 1) {
            // Groups take turns of LANES entries.
            const int begin = work.which * LANES, rest = total % (sharing * LANES) - begin;
            own.begin += begin;
            total = total / (sharing * LANES) * LANES + (rest < 0       ? 0
                                                         : rest < LANES ? rest
                                                                        : LANES);
        }
        // Kept in shared memory to save registers.
        stage.first_row[group] = own.row;
        stage.begin[group] = own.begin;
        stage.rows[group] = own.rows;
        __syncwarp();

#pragma unroll
        for (int j = in_group; j < MOST_ROWS; j += LANES) {
            stage.upto[group][j] = j + 1 < own.rows && !nothing
                                       ? int(a.offsets.at(own.row + j + 1) - a.base - own.begin)
                                       : total;
        }
        col = int(tile) * TILE + in_group * WIDTH;
        // Lanes of a group beyond the last column read the first one, and store nothing.
        columns = reinterpret_cast<const char *>(b.data + (col < n ? col : 0));
        // B's stride is a multiple of the element size, so all elements are aligned like the
        // first. Elements of 16 bytes that are aligned are loaded as packs.
        b_is_whole = sizeof(X) < 16 && is_whole(b.data);
        further = PACKS > 1 && col + WIDTH * LANES < n ? WIDTH * LANES * int(sizeof(X)) : 0;
        clear();
    }

    __device__ __forceinline__ void clear() { set_zero(sums); }

    // Stores the sums to C, and clears them.
    __device__ __forceinline__ void store_row(int64_t row_of_a) {
        const int64_t target = c.template row<Column>(row_of_a);
        // Loaded here to save registers.
        const Acc alpha = alpha_.get(), beta = beta_.get();
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            const int at = col + p * (WIDTH * LANES);
            Acc *sum = sums + p * WIDTH;
            if (at >= n) {
            } else if (flags & 2) {
                Acc *out = reinterpret_cast<Acc *>(c.data) + target * c.row_stride + at;
#pragma unroll
                for (int i = 0; i < WIDTH; ++i)
                    out[i] = sum[i];
            } else if (WIDTH > 1 && (flags & 1)) {
                store_packs<WIDTH>(c.data + target * c.row_stride + at, sum, alpha, beta);
            } else {
                Y *out = c.data + target * c.row_stride + at * c.col_stride;
#pragma unroll
                for (int i = 0; i < WIDTH; ++i)
                    store(out + i * c.col_stride, alpha, sum[i], beta);
            }
        }
        clear();
    }

    // Loads the next entry of the turn that begins with the group's entry `first`.
    __device__ __forceinline__ void fetch(int first) {
        const int e = first + in_group;
        if (e < total) {
            const int64_t from = stage.begin[group] + (first * sharing + in_group);
            // If few lanes read from A, that is less than a sector, whose rest the next turn reads
            // from L1.
            k = LANES < 16 ? load(a.indices + from) : load_past_l1(a.indices + from);
            value = LANES < 16 ? load(a.values + from) : load_past_l1(a.values + from);
        }
    }
    // Finds the row of that entry, and whether the entry ends it.
    __device__ __forceinline__ void place(int first) {
        const int e = first + in_group;
        int end = total, row = 0;
        if (!LISTS && stage.rows[group] > 1) {
            const auto uptos = *reinterpret_cast<const Pack<int, MOST_ROWS> *>(stage.upto[group]);
#pragma unroll
            for (int i = 0; i < MOST_ROWS; ++i)
                row += uptos.v[i] <= e;
            if (e < total)
                end = stage.upto[group][row];
        }
        stage.row[first / LANES & 1][lane] = uint8_t(row);
        if (!LISTS)
            last = __ballot_sync(ALL_LANES, sharing == 1 && e < total && e + 1 == end);
    }

    // Loads the lane's columns of the rows of B for NOW staged entries, of which `here` exist.
    template <bool whole, bool by_parts>
    __device__ __forceinline__ void load_rows(Pack<X, WIDTH> (&packs)[NOW][PACKS],
                                              const Pack<Column, NOW> &rows, int here) const {
#pragma unroll
        for (int u = 0; u < NOW; ++u) {
            const char *from = row_at(columns, rows.v[u], b.row_stride);
#pragma unroll
            for (int p = 0; p < PACKS; ++p) {
                if (whole || u < here) {
                    if constexpr (by_parts) {
                        packs[u][p].v[0] = load_parts(reinterpret_cast<const X *>(from));
                    } else {
                        packs[u][p] =
                            load(reinterpret_cast<const Pack<X, WIDTH> *>(from + p * further));
                    }
                }
            }
        }
    }
    // Adds NOW staged entries of a turn, of which `here` belong to the group. whole: all of them
    // do, and none is the last of its row.
    template <bool whole>
    __device__ __forceinline__ void add_entries(int half, int at, int here, unsigned ended) {
        const int place = group * LANES + at;
        const auto rows = *reinterpret_cast<const Pack<Column, NOW> *>(stage.k + place);
        Pack<X, WIDTH> packs[NOW][PACKS];
        if constexpr (IS_COMPLEX<X> && !ALIGNED) {
            // A single branch, so that all of these rows are in flight at the same time.
            if (b_is_whole) {
                load_rows<whole, false>(packs, rows, here);
            } else {
                load_rows<whole, true>(packs, rows, here);
            }
        } else {
            load_rows<whole, false>(packs, rows, here);
        }
        // Factors are read 16 bytes at a time: all at once would cost registers.
        constexpr int FACTORS = sizeof(Factor) >= 16        ? 1
                                : 16 / sizeof(Factor) < NOW ? 16 / sizeof(Factor)
                                                            : NOW;
        Pack<Factor, FACTORS> factors;
#pragma unroll
        for (int u = 0; u < NOW; ++u) {
            if (u % FACTORS == 0)
                factors = *reinterpret_cast<const Pack<Factor, FACTORS> *>(stage.value + place + u);
            if (whole || u < here) {
#pragma unroll
                for (int p = 0; p < PACKS; ++p)
                    add_pack(sums + p * WIDTH, widen<Acc>(factors.v[u % FACTORS]), packs[u][p]);
            }
            if (!LISTS && !whole && ended >> (place + u) & 1)
                store_row(stage.first_row[group] + stage.row[half][place + u]);
        }
    }

    // Adds all entries of the group, and stores the rows that end. The groups of a warp loop
    // together; a group that is done idles.
    __device__ __forceinline__ void add_all() {
        const int longest = __reduce_max_sync(ALL_LANES, total);
        const int shortest = __reduce_min_sync(ALL_LANES, total);
        // Mask of the first NOW lanes of each group.
        constexpr unsigned GROUP = LANES < 32 ? (1u << (LANES % 32)) - 1 : ALL_LANES;
        constexpr unsigned POSITIONS = ALL_LANES / GROUP * ((1u << NOW) - 1);
        fetch(0);
        __syncwarp();
        place(0);
        for (int first = 0; first < longest; first += LANES) {
            __syncwarp();
            stage.k[lane] = k - Column(a.base);
            stage.value[lane] = widen<Factor>(value);
            const unsigned ended = last;
            __syncwarp();
            // The next entries are loaded while the rows of B for these are in flight.
            if (first + LANES < longest) {
                fetch(first + LANES);
                place(first + LANES);
            }
// Not unrolled, since the compiler would then hold all rows of B of a turn at a time.
#pragma unroll 1
            for (int at = 0; at < LANES && first + at < longest; at += NOW) {
                if (first + at + NOW <= shortest && (ended & POSITIONS << at) == 0) {
                    add_entries<true>(0, at, NOW, ended);
                } else {
                    add_entries<false>(first / LANES & 1, at, total - first - at, ended);
                }
            }
        }
    }

    // Stores the empty rows of the run.
    __device__ __forceinline__ void store_empty_rows() {
        int before = 0;
        for (int j = 0; j < stage.rows[group]; ++j) {
            const int upto = stage.upto[group][j];
            if (upto == before)
                store_row(stage.first_row[group] + j);
            before = upto;
        }
    }
};

template <bool LISTS, class Value, class X, class Y, class Acc, class Column, int LANES, int WIDTH,
          int PACKS, bool ALIGNED>
__device__ __forceinline__ void row_wide(const Matrix<Value, Column> &a, const Tasks &tasks,
                                         const Dense<const X> &b, const Output<Y> &c, int64_t n,
                                         const Scalar<Acc> &alpha, const Scalar<Acc> &beta,
                                         const Partial<Acc> &partial, int64_t flags, int turn) {
    using Rows = WideRows<LISTS, Value, X, Y, Acc, Column, LANES, WIDTH, PACKS, ALIGNED>;
    constexpr int WARPS = BLOCK / WARP, GROUPS = Rows::GROUPS;
    __shared__ typename Rows::Shared shared[WARPS];
    Rows rows(a, b, c, n, alpha, beta, flags, shared);
    const int together = int(flags >> 8);
    const unsigned tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    if (int64_t(tile) * Rows::TILE >= n)
        return;
    int64_t block = int64_t(blockIdx.x >> together);
    if (LISTS)
        block += turn * int64_t(gridDim.x >> together);
    const bool is_part = block < part_count<LISTS>(tasks);
    Work work;
    if (is_part) {
        const Part part = load_part(tasks.parts + block);
        work = {{part.begin, part.row, part.length, 1}, WARPS * GROUPS, int(threadIdx.x) / LANES};
    } else if (!take_rows<LISTS, LANES>(a, tasks, block, int(tasks.spread), work)) {
        return;
    }
    rows.begin(work, tile);
    rows.add_all();
    if (!LISTS && rows.sharing == 1) {
        rows.store_empty_rows();
        return;
    }
    add_groups<LANES>(rows.sums, is_part ? GROUPS : rows.sharing);
    // One of the groups that share the row stores it.
    const bool stores = rows.group % rows.sharing == 0 && rows.stage.rows[rows.group] > 0;
    const int64_t row = stores ? rows.stage.first_row[rows.group] : -1;
    if (is_part) {
        // All lanes have read the entries whose memory the sums now take.
        __syncwarp();
        if (!add_warps<LANES>(rows.sums, reinterpret_cast<Acc *>(shared),
                              int(sizeof(*shared) / sizeof(Acc))))
            return;
        const Part part = load_part(tasks.parts + block);
        const auto column = [&](int i) {
            const int at = rows.col + i / WIDTH * (WIDTH * LANES) + i % WIDTH;
            return at < n ? at : -1;
        };
        if (part.count > 1 &&
            !join_parts<LANES>(rows.sums, part, partial.sums, partial.stride,
                               tasks.counters + tile * tasks.counter_count, column))
            return;
    }
    if (row >= 0)
        rows.store_row(row);
}

// Loads WIDTH elements of a row of B from `from` on, with zeros from column n on. packs: B is
// aligned for loads of several elements.
template <int WIDTH, class X>
__device__ __forceinline__ void load_narrow(X (&row)[WIDTH], const X *from, int64_t col_stride,
                                            int64_t n, bool packs) {
    constexpr int TOGETHER = __is_class(X)             ? 1
                             : 16 / sizeof(X) >= WIDTH ? WIDTH
                                                       : int(16 / sizeof(X));
    if (TOGETHER > 1 && packs) {
#pragma unroll
        for (int i = 0; i < WIDTH; i += TOGETHER) {
            Pack<X, TOGETHER> pack;
            if (i + TOGETHER <= n) {
                pack = load(reinterpret_cast<const Pack<X, TOGETHER> *>(from + i));
            } else {
#pragma unroll
                for (int j = 0; j < TOGETHER; ++j)
                    pack.v[j] = i + j < n ? from[i + j] : zero<X>();
            }
#pragma unroll
            for (int j = 0; j < TOGETHER; ++j)
                row[i + j] = pack.v[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            row[i] = i < n ? from[i * col_stride] : zero<X>();
    }
}

// Adds a lane's entries of a row: every `step`th one from entry `first` on, of `count`.
template <class Value, class X, class Acc, class Column, int WIDTH>
__device__ __forceinline__ void add_narrow(Acc (&sums)[WIDTH], const Matrix<Value, Column> &a,
                                           const Dense<const X> &b, int64_t n, int64_t begin,
                                           int first, int step, int count, int64_t flags) {
    const bool conjugated = flags & 4, b_packs = flags & 8;
    const Column *indices = a.indices + begin;
    const Value *values = a.values + begin;
    set_zero(sums);
#pragma unroll 2
    for (int p = first; p < count; p += step) {
        const X *from = b.data + (int64_t(load_past_l1(indices + p)) - a.base) * b.row_stride;
        const Acc value = widen<Acc>(load_past_l1(values + p));
        X row[WIDTH];
        load_narrow(row, from, b.col_stride, n, b_packs);
        if constexpr (__is_class(Acc)) {
#pragma unroll
            for (int i = 0; i < WIDTH; ++i)
                row[i] = conjugated ? conjugate(row[i]) : row[i];
        }
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            sums[i] = fma(value, widen<Acc>(row[i]), sums[i]);
    }
}

// Computes at most WIDTH columns with lanes along the entries of a row, as in SpMV, for any
// strides. Each lane holds WIDTH sums while it goes through its entries.
template <bool LISTS, class Value, class X, class Y, class Acc, class Column, int LANES, int WIDTH>
__device__ __forceinline__ void row_narrow(const Matrix<Value, Column> &a, const Tasks &tasks,
                                           const Dense<const X> &b, const Output<Y> &c, int64_t n,
                                           const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_,
                                           const Partial<Acc> &partial, int64_t flags, int turn) {
    // Columns of a lane at the end, and lanes that then hold the same sum.
    constexpr int OWN = WIDTH > LANES ? WIDTH / LANES : 1;
    constexpr int COPIES = LANES > WIDTH ? LANES / WIDTH : 1;
    constexpr int WARPS = BLOCK / WARP, GROUPS = WARP / LANES;
    __shared__ Acc of_warps[WARPS][OWN * LANES];
    const int lane = threadIdx.x & 31, group = lane / LANES, in_group = lane % LANES;
    int64_t block = blockIdx.x;
    if (LISTS)
        block += turn * int64_t(gridDim.x);
    const bool is_part = block < part_count<LISTS>(tasks);
    Work work;
    if (is_part) {
        const Part part = load_part(tasks.parts + block);
        work = {{part.begin, part.row, part.length, 1}, WARPS * GROUPS, int(threadIdx.x) / LANES};
    } else if (!take_rows<LISTS, LANES>(a, tasks, block, 1, work)) {
        return;
    }
    const Share own = work.own;
    const int sharing = work.sharing, which = work.which;
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const bool raw = flags & 2;
    const int most = __reduce_max_sync(ALL_LANES, own.rows);
    int64_t row = own.row, begin = own.begin;
    int length = own.length;
    if (own.rows > 1)
        length = int(a.offsets.at(row + 1) - a.base - begin);
    for (int round = 0; round < most; ++round) {
        // The next row's offset is loaded while this row's entries are.
        int next = 0;
        if (round + 1 < own.rows)
            next = int(a.offsets.at(row + 2) - a.base - begin) - length;
        Acc sums[WIDTH];
        add_narrow(sums, a, b, n, begin, which * LANES + in_group, sharing * LANES,
                   is_zero(alpha) ? 0 : length, flags);
        __syncwarp();
        const int first = scatter_sums<LANES>(sums, lane);
        // The sums that remain after scattering; all groups that share a row get the same.
        auto &of_lane = reinterpret_cast<Acc(&)[OWN]>(sums);
        if (sharing > 1)
            add_groups<LANES>(of_lane, GROUPS);
        bool stores = which == 0;
        if (is_part) {
            if (!add_warps<LANES>(of_lane, of_warps[0], OWN * LANES))
                return;
            // Loaded again to save registers.
            const Part part = load_part(tasks.parts + block);
            const auto column = [&](int i) { return first + i < n ? first + i : -1; };
            if (part.count > 1 && !join_parts<LANES>(of_lane, part, partial.sums, partial.stride,
                                                     tasks.counters, column))
                return;
            stores = group == 0;
        }
        if (round < own.rows && stores && in_group % COPIES == 0) {
            const int64_t target = c.template row<Column>(row);
#pragma unroll
            for (int i = 0; i < OWN; ++i) {
                const int col = first + i;
                if (col < n) {
                    if (raw) {
                        reinterpret_cast<Acc *>(c.data)[target * c.row_stride + col] = of_lane[i];
                    } else {
                        store(c.data + target * c.row_stride + col * c.col_stride, alpha,
                              of_lane[i], beta);
                    }
                }
            }
        }
        begin += length;
        length = next;
        ++row;
    }
}

// Number of tiles of 32 × 32 elements that a block of row_finish or row_pack moves at a time:
// enough bytes in flight need several of small elements. (rows_of_block in
// src/backend/cuda/spmm.rs.)
template <class T> constexpr int TILES = sizeof(T) < 8 ? 8 / sizeof(T) : 1;

// Computes C = alpha · sums + beta · C for a C whose columns are contiguous; sums are m × n,
// row-major. Blocks of 32 × 8 threads.
template <class Y, class Acc>
__device__ __forceinline__ void row_finish(const Acc *sums, const Dense<Y> &c, int64_t m, int64_t n,
                                           const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    constexpr int ROWS = 32 * TILES<Acc>;
    __shared__ Acc tile[ROWS][33];
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (int64_t i0 = int64_t(blockIdx.x) * ROWS; i0 < m; i0 += int64_t(gridDim.x) * ROWS) {
        for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < n; j0 += int64_t(gridDim.y) * 32) {
            Acc loaded[ROWS / 8];
#pragma unroll
            for (int r = 0; r < ROWS; r += 8) {
                if (i0 + y + r < m && j0 + x < n)
                    loaded[r / 8] = sums[(i0 + y + r) * n + j0 + x];
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < ROWS; r += 8)
                tile[y + r][x] = loaded[r / 8];
            __syncthreads();
#pragma unroll
            for (int r = 0; r < ROWS; r += 8) {
                const int row = r / 32 * 32 + x, column = r % 32 + y;
                if (i0 + row < m && j0 + column < n) {
                    store(c.data + (i0 + row) * c.row_stride + (j0 + column) * c.col_stride, alpha,
                          tile[row][column], beta);
                }
            }
        }
    }
}

// Copies B to a row-major array (rows × cols, with leading dimension `ld`) if its columns are
// contiguous, if it must be conjugated, or if its rows are not aligned.
template <class T>
__device__ __forceinline__ void row_pack(const T *from, int64_t row_stride, int64_t col_stride,
                                         T *to, int64_t rows, int64_t cols, int64_t ld,
                                         int64_t conjugated) {
    constexpr int ROWS = 32 * TILES<T>;
    __shared__ T tile[ROWS][33];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const auto load_element = [&](int64_t i, int64_t j) {
        T v = from[i * row_stride + j * col_stride];
        if constexpr (__is_class(T)) {
            if (conjugated)
                v = conjugate(v);
        }
        return v;
    };
    for (int64_t i0 = int64_t(blockIdx.x) * ROWS; i0 < rows; i0 += int64_t(gridDim.x) * ROWS) {
        if (col_stride == 1) {
            for (int64_t j = int64_t(blockIdx.y) * 32 + x; j < cols; j += int64_t(gridDim.y) * 32) {
#pragma unroll
                for (int r = 0; r < ROWS; r += 8) {
                    if (i0 + y + r < rows)
                        to[(i0 + y + r) * ld + j] = load_element(i0 + y + r, j);
                }
            }
            continue;
        }
        for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < cols; j0 += int64_t(gridDim.y) * 32) {
            T loaded[ROWS / 8];
#pragma unroll
            for (int r = 0; r < ROWS; r += 8) {
                const int row = r / 32 * 32 + x, column = r % 32 + y;
                if (i0 + row < rows && j0 + column < cols)
                    loaded[r / 8] = load_element(i0 + row, j0 + column);
            }
            __syncthreads();
#pragma unroll
            for (int r = 0; r < ROWS; r += 8)
                tile[r / 32 * 32 + x][r % 32 + y] = loaded[r / 8];
            __syncthreads();
#pragma unroll
            for (int r = 0; r < ROWS; r += 8) {
                if (i0 + y + r < rows && j0 + x < cols)
                    to[(i0 + y + r) * ld + j0 + x] = tile[y + r][x];
            }
        }
    }
}

} // namespace tarsia
