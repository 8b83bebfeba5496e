// SpMM `row`: C = alpha · A · B + beta · C on rows of A, with a dense B, by CUDA cores.
//
// A warp consists of 32 / G groups of G lanes, which lie along N. A group takes a run of
// neighbouring rows, or shares one row with other groups of its warp, or all groups of a block
// share a part of a long row. A group walks through the entries of its run as if they were one row,
// G at a time: each lane loads one entry, and shared memory hands it to the others, while the next
// G entries are in flight. So a short row costs no chain of dependent loads of its own, and rows of
// B are always loaded kFlight at a time. Entries are added in the order in which they are stored;
// the sums of groups that share a row are added in a fixed order, and so are those of parts of a
// row, by the last block to arrive: there are no floating-point atomics, results have the same bits
// from run to run, and one launch is enough.

#pragma once

#include "common/complex.cuh"
#include "common/types.cuh"
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
    const Run *warps; // rows that take a whole warp each
    int64_t warp_count;
    const Run *runs; // rows of a group; NULL: runs of `rows_a_run` neighbours of all `rows`
    int64_t count;   // number of runs
    int64_t spread;  // groups that share a run, which is then a single row
    // One set per tile of a launch; zero before the launch and after it.
    unsigned *counters;
    int64_t counter_count;
    int64_t rows, rows_a_run;
    // Without analysis, runs of more than `run_limit` entries are in the lists of parts and warps
    // that spmm_tasks_unanalyzed makes; `lengths` are the lengths of the list of warps and of the
    // list of parts.
    int64_t run_limit;
    const int64_t *lengths;
};

// Programmatic dependent launch: a kernel may begin while the previous one is still running.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Loads 2 to 16 bytes that nothing writes while the kernel reads them. (Lists that are made without
// analysis are written by the previous kernel. They are read only after their lengths, which are
// read after wait_for_previous.)
template <class T> __device__ __forceinline__ T load(const T *from) {
    T out;
    if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
        *reinterpret_cast<uint4 *>(&out) = __ldg(reinterpret_cast<const uint4 *>(from));
    } else if constexpr (sizeof(T) == 2) {
        *reinterpret_cast<unsigned short *>(&out) =
            __ldg(reinterpret_cast<const unsigned short *>(from));
    } else {
        out = *from;
    }
    return out;
}

template <class A, class J> struct Matrix {
    Offsets offsets;
    const J *indices;
    const A *values;
    int64_t base;
};

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };

// Like load, for data that are read once and need not stay in L1.
template <class T> __device__ __forceinline__ T load_past_l1(const T *from) {
    T out;
    if constexpr (sizeof(T) == 4) {
        asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];"
            : "=r"(*reinterpret_cast<uint32_t *>(&out))
            : "l"(from));
    } else if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
        asm("ld.global.nc.L1::no_allocate.b64 %0, [%1];"
            : "=l"(*reinterpret_cast<uint64_t *>(&out))
            : "l"(from));
    } else {
        out = load(from);
    }
    return out;
}

template <class T> __device__ __forceinline__ void store_once(T *to, const T &v) {
    if constexpr (sizeof(T) == 16) {
        __stcs(reinterpret_cast<uint4 *>(to), *reinterpret_cast<const uint4 *>(&v));
    } else {
        *to = v;
    }
}

// Work of a group: neighbouring rows, one row, or a part of one; `length` entries from `begin` on.
struct Share {
    int64_t begin, row;
    int length, rows; // rows = 0: nothing to store
};

// Loads a run from the list.
__device__ __forceinline__ Share take(const Run *from) {
    const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from));
    return {int64_t(bits.y) << 32 | bits.x, int(bits.z), int(bits.w >> 16), int(bits.w & 0xffff)};
}

__device__ __forceinline__ Share take_run(const Offsets &offsets, int64_t base, const Tasks &tasks,
                                          int64_t place) {
    if (place >= tasks.count)
        return {0, 0, 0, 0};
    if (tasks.runs)
        return take(tasks.runs + place);
    const int64_t row = place * tasks.rows_a_run;
    const int64_t rows = min(tasks.rows_a_run, tasks.rows - row);
    const int64_t begin = offsets.at(row), length = offsets.at(row + rows) - begin;
    if (length > tasks.run_limit)
        return {0, 0, 0, 0};
    return {begin - base, row, int(length), int(rows)};
}

__device__ __forceinline__ Part load_part(const Part *from) {
    Part part;
    *reinterpret_cast<uint4 *>(&part) = __ldg(reinterpret_cast<const uint4 *>(from));
    *(reinterpret_cast<uint4 *>(&part) + 1) = __ldg(reinterpret_cast<const uint4 *>(from) + 1);
    return part;
}

// Rows of B that a group has in flight at one time. More cost registers, and with them warps that
// hide the same latency: 2 and 8 were measured slower.
constexpr int kFlight = 4;

// Threads of a block of a wide kernel: a block keeps its registers until its longest warp is done,
// so blocks are small.
constexpr int kBlock = 128;

template <bool first, class T, class U> struct Either { using type = T; };
template <class T, class U> struct Either<false, T, U> { using type = U; };

// Address of a row of B in the lane's columns. stride: bytes between rows.
template <class J>
__device__ __forceinline__ const char *row_at(const char *columns, J row, int64_t stride) {
    // With 32-bit columns the host uses this only for strides that fit 32 bits.
    if constexpr (sizeof(J) == 4)
        return columns + int64_t(row) * int32_t(stride);
    return columns + row * stride;
}

template <class Acc, class X, int V>
__device__ __forceinline__ void add_pack(Acc *sums, Acc factor, const Pack<X, V> &pack) {
#pragma unroll
    for (int i = 0; i < V; ++i)
        sums[i] = fma(factor, widen<Acc>(pack.v[i]), sums[i]);
}

// Entries that the lanes of a warp hand to each other through shared memory: 32 at a time, with the
// row of the group's run that each belongs to.
template <class J, class Factor, int G> struct alignas(16) Stage {
    alignas(16) J k[32];
    alignas(16) Factor value[32];
    // Number of entries up to the end of each row of the run; the total beyond the last row.
    alignas(16) int upto[32 / G][kMostRows];
    uint8_t row[2][32]; // for this turn and the next
    // First row, first entry, and number of rows of each group.
    int64_t first_row[32 / G], begin[32 / G];
    int rows[32 / G];
};

template <bool is> struct Flag { static constexpr bool yes = is; };

// Computes a tile of C with P times V elements per lane, V contiguous ones and the next V a further
// V · G columns on: P · V · G columns per group. n is a multiple of V. B's columns are contiguous,
// and row_stride is in bytes. B_PACKS: B's rows are aligned to 16 bytes; otherwise V is 1, and a
// complex B may be aligned only to its parts. With V > 1, B is loaded by 16 bytes, and C, too, if
// `c_packs` says that its rows are aligned. raw: sums are stored to C unscaled, in the
// accumulator's type. With kLists, the block takes one turn of the lists that were made without
// analysis, and nothing else; otherwise it takes the other rows or, with analysis, all rows.
template <bool kLists, class A, class X, class Y, class Acc, class J, int G, int V, int P,
          bool B_PACKS>
__device__ __forceinline__ void
row_wide(const Matrix<A, J> &a, const Tasks &tasks, const Dense<const X> &b, const Output<Y> &c,
         int64_t n, const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_, Acc *partial,
         int64_t partial_stride, int64_t flags, int turn) {
    constexpr unsigned kWarp = 0xffffffffu;
    constexpr int kWarps = kBlock / 32, kGroups = 32 / G;
    // Half types are widened once, when staged, and not by each lane that reads them.
    using Factor = typename Either<sizeof(A) == 2, Acc, A>::type;
    using Entries = Stage<J, Factor, G>;
    // Entries, and later the sums of a part.
    union alignas(16) Shared {
        char entries[sizeof(Entries)], sums[sizeof(Acc) * P * V * G];
    };
    __shared__ Shared shared[kWarps];
    Entries &stage = *reinterpret_cast<Entries *>(&shared[threadIdx.x / 32]);

    const bool c_packs = flags & 1, raw = flags & 2;
    const int together = int(flags >> 8);
    const unsigned tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    if (int64_t(tile) * (P * V * G) >= n)
        return;
    const int lane = threadIdx.x & 31, in_group = lane % G, group = lane / G;
    int64_t block = int64_t(blockIdx.x >> together);
    const int64_t part_count = kLists ? tasks.lengths[1] : tasks.part_count;
    if (kLists)
        block += turn * int64_t(gridDim.x >> together);
    const bool is_part = block < part_count;

    Share own;
    int sharing, which; // number of groups that share it, and which of them this one is
    if (is_part) {
        const Part part = load_part(tasks.parts + block);
        own = {part.begin, part.row, part.length, 1};
        sharing = kWarps * kGroups;
        which = threadIdx.x / G;
    } else {
        int64_t warp = (block - part_count) * kWarps + threadIdx.x / 32;
        const int64_t warp_count = kLists ? tasks.lengths[0] : tasks.warp_count;
        if (warp < warp_count) {
            own = take(tasks.warps + warp);
            sharing = kGroups;
            which = group;
        } else if (kLists) {
            return;
        } else {
            warp -= warp_count;
            sharing = int(tasks.spread);
            which = group % sharing;
            own = take_run(a.offsets, a.base, tasks, warp * (kGroups / sharing) + group / sharing);
        }
    }
    const bool nothing = is_zero(alpha_.get());
    int total = nothing ? 0 : own.length; // entries of the group
    if (sharing > 1) {
        // Groups take turns of G entries.
        const int begin = which * G, rest = total % (sharing * G) - begin;
        own.begin += begin;
        total = total / (sharing * G) * G + (rest < 0 ? 0 : rest < G ? rest : G);
    }

    // Kept in shared memory to save registers.
    stage.first_row[group] = own.row;
    stage.begin[group] = own.begin;
    stage.rows[group] = own.rows;
    __syncwarp();

    const bool several = !kLists && own.rows > 1;
#pragma unroll
    for (int j = in_group; j < kMostRows; j += G) {
        stage.upto[group][j] = j + 1 < own.rows && !nothing
                                   ? int(a.offsets.at(own.row + j + 1) - a.base - own.begin)
                                   : total;
    }

    const int col = int(tile) * (P * V * G) + in_group * V;
    // Lanes of a group beyond the last column read the first one, and store nothing.
    const char *columns = reinterpret_cast<const char *>(b.data + (col < n ? col : 0));
    // B's stride is a multiple of the element size, so all elements are aligned like the first.
    // Elements of 16 bytes that are aligned are loaded as packs.
    const bool b_is_whole = sizeof(X) < 16 && is_whole(b.data);
    const int further = P > 1 && col + V * G < n ? V * G * int(sizeof(X)) : 0;
    Acc sums[P * V];
#pragma unroll
    for (int i = 0; i < P * V; ++i)
        sums[i] = zero<Acc>();

    auto put = [&](int64_t row_of_a) {
        const int64_t target = c.template row<J>(row_of_a);
        // Loaded here to save registers.
        const Acc alpha = alpha_.get(), beta = beta_.get();
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const int at = col + p * (V * G);
            Acc *sum = sums + p * V;
            if (at >= n) {
            } else if (raw) {
                Acc *out = reinterpret_cast<Acc *>(c.data) + target * c.row_stride + at;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    out[i] = sum[i];
            } else if (V > 1 && c_packs) {
                Y *out = c.data + target * c.row_stride + at;
                // Packs of at most 16 bytes: Y may be wider than X.
                constexpr int kPack = 16 / sizeof(Y) < V ? 16 / sizeof(Y) : V;
#pragma unroll
                for (int i = 0; i < V; i += kPack) {
                    Pack<Y, kPack> pack;
                    if (!is_zero(beta))
                        pack = *reinterpret_cast<const Pack<Y, kPack> *>(out + i);
#pragma unroll
                    for (int j = 0; j < kPack; ++j)
                        store(&pack.v[j], alpha, sum[i + j], beta);
                    // C is not read again, so it should not evict B from L2.
                    store_once(reinterpret_cast<Pack<Y, kPack> *>(out + i), pack);
                }
            } else {
                Y *out = c.data + target * c.row_stride + at * c.col_stride;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    store(out + i * c.col_stride, alpha, sum[i], beta);
            }
        }
#pragma unroll
        for (int i = 0; i < P * V; ++i)
            sums[i] = zero<Acc>();
    };

    // Adds kNow staged entries of a turn, of which `here` belong to the group. whole: all of them
    // do, and none is the last of its row.
    constexpr int kNow = G < kFlight ? G : kFlight;
    auto add_entries = [&](auto whole, int half, int at, int here, unsigned ended) {
        const int place = group * G + at;
        const auto factors_at = *reinterpret_cast<const Pack<J, kNow> *>(stage.k + place);
        Pack<X, V> packs[kNow][P];
        const auto load_rows = [&](auto by_parts) {
#pragma unroll
            for (int u = 0; u < kNow; ++u) {
                const char *from = row_at(columns, factors_at.v[u], b.row_stride);
#pragma unroll
                for (int p = 0; p < P; ++p) {
                    if (whole.yes || u < here) {
                        if constexpr (by_parts.yes) {
                            packs[u][p].v[0] = load_parts(reinterpret_cast<const X *>(from));
                        } else {
                            packs[u][p] =
                                load(reinterpret_cast<const Pack<X, V> *>(from + p * further));
                        }
                    }
                }
            }
        };
        if constexpr (IS_COMPLEX<X> && !B_PACKS) {
            // A single branch, so that all of these rows are in flight at the same time.
            if (b_is_whole) {
                load_rows(Flag<false>{});
            } else {
                load_rows(Flag<true>{});
            }
        } else {
            load_rows(Flag<false>{});
        }
        // Factors are read 16 bytes at a time: all at once would cost registers.
        constexpr int kFactors = sizeof(Factor) >= 16         ? 1
                                 : 16 / sizeof(Factor) < kNow ? 16 / sizeof(Factor)
                                                              : kNow;
        Pack<Factor, kFactors> factors;
#pragma unroll
        for (int u = 0; u < kNow; ++u) {
            if (u % kFactors == 0)
                factors =
                    *reinterpret_cast<const Pack<Factor, kFactors> *>(stage.value + place + u);
            if (whole.yes || u < here) {
#pragma unroll
                for (int p = 0; p < P; ++p)
                    add_pack(sums + p * V, widen<Acc>(factors.v[u % kFactors]), packs[u][p]);
            }
            if (!kLists && !whole.yes && ended >> (place + u) & 1)
                put(stage.first_row[group] + stage.row[half][place + u]);
        }
    };

    // Next entry of each lane, and the mask of the lanes of the warp whose entries end a row.
    J k = 0;
    A value = zero<A>();
    unsigned last = 0;
    auto fetch = [&](int first) {
        const int e = first + in_group;
        if (e < total) {
            const int64_t from = stage.begin[group] + (first * sharing + in_group);
            // If few lanes read from A, that is less than a sector, whose rest the next turn reads
            // from L1.
            k = G < 16 ? load(a.indices + from) : load_past_l1(a.indices + from);
            value = G < 16 ? load(a.values + from) : load_past_l1(a.values + from);
        }
    };
    auto place = [&](int first) {
        const int e = first + in_group;
        int end = total, row = 0;
        if (several) {
            const auto uptos = *reinterpret_cast<const Pack<int, kMostRows> *>(stage.upto[group]);
#pragma unroll
            for (int i = 0; i < kMostRows; ++i)
                row += uptos.v[i] <= e;
            if (e < total)
                end = stage.upto[group][row];
        }
        stage.row[first / G & 1][lane] = uint8_t(row);
        if (!kLists)
            last = __ballot_sync(kWarp, sharing == 1 && e < total && e + 1 == end);
    };

    // The groups of a warp loop together; a group that is done idles.
    const int longest = __reduce_max_sync(kWarp, total);
    const int shortest = __reduce_min_sync(kWarp, total);
    // Mask of the first kNow lanes of each group.
    constexpr unsigned kGroup = G < 32 ? (1u << (G % 32)) - 1 : kWarp;
    constexpr unsigned kPlaces = kWarp / kGroup * ((1u << kNow) - 1);
    fetch(0);
    __syncwarp();
    place(0);
    for (int first = 0; first < longest; first += G) {
        __syncwarp();
        stage.k[lane] = k - J(a.base);
        stage.value[lane] = widen<Factor>(value);
        const unsigned ended = last;
        __syncwarp();
        // The next entries are loaded while the rows of B for these are in flight.
        if (first + G < longest) {
            fetch(first + G);
            place(first + G);
        }
// Not unrolled, since the compiler would then hold all G rows of B at a time.
#pragma unroll 1
        for (int at = 0; at < G && first + at < longest; at += kNow) {
            if (first + at + kNow <= shortest && (ended & kPlaces << at) == 0) {
                add_entries(Flag<true>{}, 0, at, kNow, ended);
            } else {
                add_entries(Flag<false>{}, first / G & 1, at, total - first - at, ended);
            }
        }
    }
    if (!kLists && sharing == 1) {
        // Stores the empty rows of the run.
        int before = 0;
        for (int j = 0; j < stage.rows[group]; ++j) {
            const int upto = stage.upto[group][j];
            if (upto == before)
                put(stage.first_row[group] + j);
            before = upto;
        }
        return;
    }
    add_groups<G>(sums, is_part ? kGroups : sharing);
    const int64_t row = stage.first_row[group];
    const bool some = stage.rows[group] > 0;
    if (is_part) {
        // All lanes have read the entries whose memory the sums now take.
        __syncwarp();
        Acc *const of_warp = reinterpret_cast<Acc *>(&shared[threadIdx.x / 32]);
        if (group == 0) {
#pragma unroll
            for (int i = 0; i < P * V; ++i)
                of_warp[i * G + in_group] = sums[i];
        }
        __syncthreads();
        if (threadIdx.x >= 32)
            return;
#pragma unroll 1
        for (int w = 1; w < kWarps; ++w) {
            const Acc *from = reinterpret_cast<const Acc *>(&shared[w]);
#pragma unroll
            for (int i = 0; i < P * V; ++i)
                sums[i] = add(sums[i], from[i * G + in_group]);
        }
        const Part part = load_part(tasks.parts + block);
        const auto column = [&](int i) {
            const int at = col + i / V * (V * G) + i % V;
            return at < n ? at : -1;
        };
        if (part.count > 1 && !join_parts<G>(sums, part, partial, partial_stride,
                                             tasks.counters + tile * tasks.counter_count, column))
            return;
    }
    // One of the groups that share the row stores it.
    if (group % sharing == 0 && some)
        put(row);
}

// Computes at most V columns with lanes along the entries of a row, as in SpMV, for any strides.
// Each lane holds V sums while it goes through its entries.
template <bool kLists, class A, class X, class Y, class Acc, class J, int L, int V>
__device__ __forceinline__ void
row_narrow(const Matrix<A, J> &a, const Tasks &tasks, const Dense<const X> &b, const Output<Y> &c,
           int64_t n, const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_, Acc *partial,
           int64_t partial_stride, int64_t flags, int turn) {
    // Number of elements of B in one load, if B is aligned for it.
    constexpr int kPack = __is_class(X) ? 1 : 16 / sizeof(X) >= V ? V : int(16 / sizeof(X));
    constexpr int kOwn = V > L ? V / L : 1;    // columns of a lane at the end
    constexpr int kCopies = L > V ? L / V : 1; // lanes that then hold the same sum
    const bool conjugated = flags & 4, b_packs = flags & 8;
    constexpr int kWarps = kBlock / 32, kGroups = 32 / L;
    __shared__ Acc of_warps[kWarps][kOwn * L];
    const int lane = threadIdx.x & 31, group = lane / L, in_group = lane % L;
    int64_t block = blockIdx.x;
    const int64_t part_count = kLists ? tasks.lengths[1] : tasks.part_count;
    if (kLists)
        block += turn * int64_t(gridDim.x);
    const bool is_part = block < part_count;
    Part part;
    Share own;
    int sharing = 1, which = 0; // number of groups that share a row, and which of them this one is
    if (is_part) {
        part = load_part(tasks.parts + block);
        own = {part.begin, part.row, part.length, 1};
        sharing = kWarps * kGroups;
        which = threadIdx.x / L;
    } else {
        const int64_t warp = (block - part_count) * kWarps + threadIdx.x / 32;
        const int64_t warp_count = kLists ? tasks.lengths[0] : tasks.warp_count;
        if (warp < warp_count) {
            own = take(tasks.warps + warp);
            sharing = kGroups;
            which = group;
        } else if (kLists) {
            return;
        } else {
            own = take_run(a.offsets, a.base, tasks, (warp - warp_count) * kGroups + group);
        }
    }
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const bool raw = flags & 2;
    const int most = __reduce_max_sync(0xffffffffu, own.rows);
    int64_t row = own.row, begin = own.begin;
    int length = own.length;
    if (own.rows > 1)
        length = int(a.offsets.at(row + 1) - a.base - begin);
    for (int round = 0; round < most; ++round) {
        // The next row's offset is loaded while this row's entries are.
        int next = 0;
        if (round + 1 < own.rows)
            next = int(a.offsets.at(row + 2) - a.base - begin) - length;
        const J *indices = a.indices + begin;
        const A *values = a.values + begin;
        const int count = is_zero(alpha) ? 0 : length;
        Acc sums[V];
#pragma unroll
        for (int i = 0; i < V; ++i)
            sums[i] = zero<Acc>();
#pragma unroll 2
        for (int p = which * L + in_group; p < count; p += sharing * L) {
            const X *from = b.data + (int64_t(load_past_l1(indices + p)) - a.base) * b.row_stride;
            const Acc value = widen<Acc>(load_past_l1(values + p));
            X row[V];
            if (kPack > 1 && b_packs) {
#pragma unroll
                for (int i = 0; i < V; i += kPack) {
                    Pack<X, kPack> pack;
                    if (i + kPack <= n) {
                        pack = load(reinterpret_cast<const Pack<X, kPack> *>(from + i));
                    } else {
#pragma unroll
                        for (int j = 0; j < kPack; ++j)
                            pack.v[j] = i + j < n ? from[i + j] : zero<X>();
                    }
#pragma unroll
                    for (int j = 0; j < kPack; ++j)
                        row[i + j] = pack.v[j];
                }
            } else {
#pragma unroll
                for (int i = 0; i < V; ++i)
                    row[i] = i < n ? from[i * b.col_stride] : zero<X>();
            }
            if constexpr (__is_class(Acc)) {
#pragma unroll
                for (int i = 0; i < V; ++i)
                    row[i] = conjugated ? conjugate(row[i]) : row[i];
            }
#pragma unroll
            for (int i = 0; i < V; ++i)
                sums[i] = fma(value, widen<Acc>(row[i]), sums[i]);
        }
        __syncwarp();
        const int first = scatter_sums<L>(sums, lane);
        // The sums that remain after scattering; all groups that share a row get the same.
        auto &of_lane = reinterpret_cast<Acc(&)[kOwn]>(sums);
        if (sharing > 1)
            add_groups<L>(of_lane, kGroups);
        if (is_part) {
            if (group == 0) {
#pragma unroll
                for (int i = 0; i < kOwn; ++i)
                    of_warps[threadIdx.x / 32][i * L + in_group] = of_lane[i];
            }
            __syncthreads();
            if (threadIdx.x >= 32)
                return;
#pragma unroll 1
            for (int w = 1; w < kWarps; ++w) {
#pragma unroll
                for (int i = 0; i < kOwn; ++i)
                    of_lane[i] = add(of_lane[i], of_warps[w][i * L + in_group]);
            }
            const auto column = [&](int i) { return first + i < n ? first + i : -1; };
            if (part.count > 1 &&
                !join_parts<L>(of_lane, part, partial, partial_stride, tasks.counters, column))
                return;
            which = group;
        }
        if (round < own.rows && which == 0 && in_group % kCopies == 0) {
            const int64_t target = c.template row<J>(row);
#pragma unroll
            for (int i = 0; i < kOwn; ++i) {
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

// Computes C = alpha · sums + beta · C for a C whose columns are contiguous; sums are m × n,
// row-major. Blocks of 32 × 8 threads, tiles of 32 × 32.
template <class Y, class Acc>
__device__ __forceinline__ void row_finish(const Acc *sums, const Dense<Y> &c, int64_t m, int64_t n,
                                           const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    __shared__ Acc tile[32][33];
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const int64_t i0 = int64_t(blockIdx.x) * 32;
    for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < n; j0 += int64_t(gridDim.y) * 32) {
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + r < m && j0 + x < n)
                tile[r][x] = sums[(i0 + r) * n + j0 + x];
        }
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + x < m && j0 + r < n) {
                store(c.data + (i0 + x) * c.row_stride + (j0 + r) * c.col_stride, alpha, tile[x][r],
                      beta);
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
    __shared__ T tile[32][33];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const int64_t i0 = int64_t(blockIdx.x) * 32;
    if (col_stride == 1) {
        for (int64_t j = int64_t(blockIdx.y) * 32 + x; j < cols; j += int64_t(gridDim.y) * 32) {
#pragma unroll
            for (int r = 0; r < 32; r += 8) {
                const int64_t i = i0 + r + y;
                if (i < rows) {
                    T v = from[i * row_stride + j];
                    if constexpr (__is_class(T)) {
                        if (conjugated)
                            v = conjugate(v);
                    }
                    to[i * ld + j] = v;
                }
            }
        }
        return;
    }
    for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < cols; j0 += int64_t(gridDim.y) * 32) {
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + x < rows && j0 + r < cols) {
                T v = from[(i0 + x) * row_stride + (j0 + r) * col_stride];
                if constexpr (__is_class(T)) {
                    if (conjugated)
                        v = conjugate(v);
                }
                tile[r][x] = v;
            }
        }
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + r < rows && j0 + x < cols)
                to[(i0 + r) * ld + j0 + x] = tile[x][r];
        }
    }
}

} // namespace tarsia
