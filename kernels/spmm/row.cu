// SpMM `row`: C = alpha · A · B + beta · C on rows of A, B dense, by CUDA cores.
//
// A warp is 32 / G groups of G lanes, which lie along N. A group takes a run of
// neighbouring rows of a list (`rounds` of them), or a share of a row, or of a
// piece of a long row, that others share with it. It walks through the entries
// of its run as if they were one row, G at a time: a lane loads one entry, and
// shared memory hands it to the others, while the entries of the next G are on
// their way. So a short row costs no chain of loads of its own, and rows of B
// are always kFlight at a time on their way.
// Entries are added in the order in which they are stored, groups that share a
// row and pieces of a row in a fixed order: no atomics, the same bits from run
// to run.

#include "common/types.cuh"
#include "spmm/tasks.cuh"

namespace tarsia {

// Offsets are read twice a row, so their type is decided at run time.
struct Offsets {
    const void *pointer;
    int64_t wide;

    __device__ __forceinline__ int64_t at(int64_t i) const {
        return wide ? static_cast<const int64_t *>(pointer)[i]
                    : int64_t(static_cast<const int32_t *>(pointer)[i]);
    }
};

// A dense matrix: element (i, j) at i · row_stride + j · col_stride.
template <class T> struct Dense {
    T *data;
    int64_t row_stride, col_stride;
};

struct Tasks {
    const Piece *pieces;
    int64_t piece_count;
    const int32_t *order; // rows in the order of tasks, or NULL: all, as they are
    int64_t row_count;    // places of `order`
    int64_t spread;       // groups that share a row
    // Rows that a group takes, 1 to 8 and no more than G; 1 where spread > 1.
    // More than 1 only where the rows of a run have less than 2^31 entries.
    int64_t rounds;
};

// Loads of what nothing writes while the kernel runs, of 2 to 16 bytes.
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

// As load, for what is read once: it need not stay in L1.
template <class T> __device__ __forceinline__ T load_once(const T *from) {
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

// A row, or a piece of one: `length` entries from `begin`.
struct Share {
    int64_t begin;
    int64_t target; // row of C; negative: ~slot of partial sums
    int length;     // of a row that is not cut, or of a piece: 32 bits
    bool some;      // false: nothing to store
};

// The row of this place of a list.
__device__ __forceinline__ Share take_row(const Offsets &offsets, int64_t base, const Tasks &tasks,
                                          int64_t place) {
    if (place >= tasks.row_count)
        return {0, 0, 0, false};
    const int64_t row = tasks.order ? int64_t(tasks.order[place]) : place;
    if (row < 0)
        return {0, 0, 0, false};
    const int64_t begin = offsets.at(row);
    return {begin - base, row, int(offsets.at(row + 1) - begin), true};
}

__device__ __forceinline__ Share take_piece(const Piece &p) {
    return {p.begin, p.slot < 0 ? p.row : ~p.slot, int(p.end - p.begin), true};
}

// Sums of the groups that share a row, added pairwise in a fixed order; each of
// them gets the result.
template <int G, class Acc, int N>
__device__ __forceinline__ void add_groups(Acc (&sums)[N], int groups) {
    // As many for the whole warp.
    for (int lanes = G; lanes < G * groups; lanes *= 2) {
#pragma unroll
        for (int i = 0; i < N; ++i)
            sums[i] = add(sums[i], shuffle_xor(sums[i], lanes));
    }
}

// Rows of B that are on their way at one time, a group: more cost registers,
// and with them warps that hide the same latency: 2 and 8 were measured slower.
constexpr int kFlight = 4;

// Threads of a block of a wide kernel: a block keeps its registers until its
// longest warp is done, so a block is small.
constexpr int kBlock = 128;

template <bool first, class T, class U> struct Either { using type = T; };
template <class T, class U> struct Either<false, T, U> { using type = U; };

// Where in a column of B a row is. stride: bytes between rows.
template <class J>
__device__ __forceinline__ const char *row_at(const char *columns, J row, int64_t stride) {
    // The host says so only of strides of 32 bits.
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

// Rows of a run at the most, if G is not less.
constexpr int kMostRounds = 8;

// What a warp's lanes hand each other: 32 entries, and the rows of its groups
// in the order in which they are stored.
template <class J, class Factor> struct alignas(16) Stage {
    alignas(16) J k[32];
    alignas(16) Factor value[32];
    int64_t target[32];
    // A lane's row: entry e of its group's run is at begin + e, if that is
    // less than upto and no less than upto of the row before.
    int64_t begin[32];
    alignas(16) int upto[32];
};

template <bool is> struct Whole { static constexpr bool yes = is; };

// P times V elements a lane, V of them next to each other, the next V · G
// columns further: P · V · G columns a group; n is a multiple of V. B's columns
// are next to each other, row_stride is in bytes. Loads and stores of 16 bytes
// where V > 1; `c_packs` says whether C's rows are aligned for that. raw: sums
// go to C in the accumulator's type.
template <class A, class X, class Y, class Acc, class J, int G, int V, int P>
__device__ __forceinline__ void row_wide(const Matrix<A, J> &a, const Tasks &tasks,
                                         const Dense<const X> &b, const Dense<Y> &c, int64_t n,
                                         const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_,
                                         Acc *partial, int64_t partial_stride, int64_t flags) {
    constexpr unsigned kWarp = 0xffffffffu;
    // Half types are widened once and not by each lane that gets them.
    using Factor = typename Either<sizeof(A) == 2, Acc, A>::type;
    __shared__ Stage<J, Factor> stages[kBlock / 32];
    Stage<J, Factor> &stage = stages[threadIdx.x / 32];

    const bool c_packs = flags & 1, raw = flags & 2;
    const int together = int(flags >> 8);
    const unsigned tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    if (int64_t(tile) * (P * V * G) >= n)
        return;
    const int lane = threadIdx.x & 31, in_group = lane % G, group = lane / G;
    const int64_t warp = int64_t(blockIdx.x >> together) * (blockDim.x / 32) + threadIdx.x / 32;
    // Whole warps take pieces, so that these are the same for all groups.
    const bool piece = warp < tasks.piece_count;
    const int sharing = piece ? 32 / G : int(tasks.spread);
    const int rounds = piece ? 1 : int(tasks.rounds);

    // Lane j of a group knows its row j.
    Share own{0, 0, 0, false};
    if (piece) {
        own = take_piece(tasks.pieces[warp]);
    } else if (in_group < rounds) {
        // Places of a list by turns, so that groups of a warp get rows of like
        // lengths; rows that are not listed one after another.
        const int groups = 32 / G / sharing, which = group / sharing;
        const int64_t first = (warp - tasks.piece_count) * (groups * rounds);
        own =
            take_row(a.offsets, a.base, tasks,
                     first + (tasks.order ? in_group * groups + which : which * rounds + in_group));
    }
    if (in_group >= rounds)
        own.some = false;
    int length = own.some && !is_zero(alpha_.get()) ? own.length : 0;
    if (sharing > 1) {
        // G entries by turns.
        const int begin = group % sharing * G, rest = length % (sharing * G) - begin;
        own.begin += begin;
        length = length / (sharing * G) * G + (rest < 0 ? 0 : rest < G ? rest : G);
        if (begin > 0)
            own.some = false;
    }
    int upto = length; // entries of this row and those before it in the group
#pragma unroll
    for (int lanes = 1; lanes < G; lanes *= 2) {
        const int before = __shfl_up_sync(kWarp, upto, lanes, G);
        if (in_group >= lanes)
            upto += before;
    }
    stage.begin[lane] = own.begin - (upto - length);
    stage.upto[lane] = upto;
    __syncwarp();
    const int total = __shfl_sync(kWarp, upto, G - 1, G);

    // Rows that end while the warp goes through the entries come first, in
    // order; then those that are stored at the end: empty ones and shared ones.
    constexpr unsigned kGroup = G < 32 ? (1u << (G % 32)) - 1 : kWarp;
    const bool ends = own.some && length > 0 && sharing == 1;
    const unsigned ending = __ballot_sync(kWarp, ends) >> (group * G) & kGroup;
    const unsigned open = __ballot_sync(kWarp, own.some && !ends) >> (group * G) & kGroup;
    const unsigned below = (1u << in_group) - 1;
    int64_t *const targets = stage.target + group * G;
    if (ends)
        targets[__popc(ending & below)] = own.target;
    if (own.some && !ends)
        targets[__popc(ending) + __popc(open & below)] = own.target;
    int stored = 0;

    const int col = int(tile) * (P * V * G) + in_group * V;
    // A group's lanes past the last column read another one, and store nothing.
    const char *columns = reinterpret_cast<const char *>(b.data + (col < n ? col : 0));
    const int further = P > 1 && col + V * G < n ? V * G * int(sizeof(X)) : 0;
    Acc sums[P * V];
#pragma unroll
    for (int i = 0; i < P * V; ++i)
        sums[i] = zero<Acc>();

    auto put = [&](int64_t target) {
        // Not held in registers all the time.
        const Acc alpha = alpha_.get(), beta = beta_.get();
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const int at = col + p * (V * G);
            Acc *sum = sums + p * V;
            if (at >= n) {
            } else if (target < 0 || raw) {
                Acc *out = target < 0
                               ? partial + ~target * partial_stride + at
                               : reinterpret_cast<Acc *>(c.data) + target * c.row_stride + at;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    out[i] = sum[i];
            } else if (V > 1 && c_packs) {
                Y *out = c.data + target * c.row_stride + at;
                // Of 16 bytes at the most: Y may be wider than X.
                constexpr int kPack = 16 / sizeof(Y) < V ? 16 / sizeof(Y) : V;
#pragma unroll
                for (int i = 0; i < V; i += kPack) {
                    Pack<Y, kPack> pack;
                    if (!is_zero(beta))
                        pack = *reinterpret_cast<const Pack<Y, kPack> *>(out + i);
#pragma unroll
                    for (int j = 0; j < kPack; ++j)
                        store(&pack.v[j], alpha, sum[i + j], beta);
                    // C is not read again: it should not push B out of L2.
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

    // The next entries of the group, one a lane, and which of the warp's end a row.
    constexpr int kRounds = G < kMostRounds ? G : kMostRounds;
    J k = 0;
    A value = zero<A>();
    unsigned last = 0;
    auto fetch = [&](int first) {
        const int e = first + in_group;
        int j = group * G;
        if (rounds > 1) {
            // Rows past the last one have upto = total.
            const auto uptos = *reinterpret_cast<const Pack<int, kRounds> *>(stage.upto + j);
#pragma unroll
            for (int i = 0; i < kRounds; ++i)
                j += uptos.v[i] <= e;
        }
        if (e < total) {
            const int64_t from = stage.begin[j] + int64_t(first) * sharing + in_group;
            // What few lanes read is less than a sector: the next turn reads the rest.
            k = G < 16 ? load(a.indices + from) : load_once(a.indices + from);
            value = G < 16 ? load(a.values + from) : load_once(a.values + from);
        }
        last = __ballot_sync(kWarp, sharing == 1 && e < total && e + 1 == stage.upto[j]);
    };

    // Adds kNow staged entries, of which `here` belong to the group. whole: all,
    // and no row ends with one of them.
    constexpr int kNow = G < kFlight ? G : kFlight;
    auto add_entries = [&](auto whole, int at, int here, unsigned ended) {
        const int place = group * G + at;
        const auto rows = *reinterpret_cast<const Pack<J, kNow> *>(stage.k + place);
        Pack<X, V> packs[kNow][P];
#pragma unroll
        for (int u = 0; u < kNow; ++u) {
            const char *from = row_at(columns, rows.v[u], b.row_stride);
#pragma unroll
            for (int p = 0; p < P; ++p) {
                if (whole.yes || u < here)
                    packs[u][p] = load(reinterpret_cast<const Pack<X, V> *>(from + p * further));
            }
        }
        // 16 bytes at a time: all would cost registers.
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
            if (!whole.yes && ended >> (place + u) & 1)
                put(targets[stored++]);
        }
    };

    // The warp goes round together; a group that is done idles.
    const int longest = __reduce_max_sync(kWarp, total);
    const int shortest = __reduce_min_sync(kWarp, total);
    // kNow places in each group.
    constexpr unsigned kPlaces = kWarp / kGroup * ((1u << kNow) - 1);
    if (longest > 0)
        fetch(0);
    for (int first = 0; first < longest; first += G) {
        __syncwarp();
        stage.k[lane] = k - J(a.base);
        stage.value[lane] = widen<Factor>(value);
        const unsigned ended = last;
        __syncwarp();
        // The next entries come while the rows of B of these do.
        if (first + G < longest)
            fetch(first + G);
// Unrolled, the compiler would hold all G rows of B at a time.
#pragma unroll 1
        for (int at = 0; at < G && first + at < longest; at += kNow) {
            if (first + at + kNow <= shortest && (ended & kPlaces << at) == 0) {
                add_entries(Whole<true>{}, at, kNow, ended);
            } else {
                add_entries(Whole<false>{}, at, total - first - at, ended);
            }
        }
    }
    if (sharing > 1)
        add_groups<G>(sums, sharing);
    __syncwarp();
    for (const int rows = __popc(ending) + __popc(open); stored < rows; ++stored)
        put(targets[stored]);
}

// The V sums of L lanes, added: a lane gets the sums of V / L columns, or of one
// column that it shares with L / V - 1 lanes next to it. Returns the first of
// its columns. Half as many sums are handed on at each step.
template <int L, class Acc, int V>
__device__ __forceinline__ int scatter_sums(Acc (&sums)[V], int lane) {
    int first = 0;
#pragma unroll
    for (int lanes = L / 2, count = V / 2; lanes > 0; lanes /= 2, count /= 2) {
        if (count == 0) {
            sums[0] = add(sums[0], shuffle_xor(sums[0], lanes));
            continue;
        }
        const bool upper = lane & lanes;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const Acc theirs = upper ? sums[i] : sums[i + count];
            const Acc ours = upper ? sums[i + count] : sums[i];
            sums[i] = add(ours, shuffle_xor(theirs, lanes));
        }
        first += upper ? count : 0;
    }
    return first;
}

// At most V columns, by lanes along the entries of a row, as SpMV does it: any
// strides. A lane holds V sums while it goes through its entries.
template <class A, class X, class Y, class Acc, class J, int L, int V>
__device__ __forceinline__ void row_narrow(const Matrix<A, J> &a, const Tasks &tasks,
                                           const Dense<const X> &b, const Dense<Y> &c, int64_t n,
                                           const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_,
                                           Acc *partial, int64_t partial_stride, int64_t flags) {
    // Elements of B of one load, where B is aligned for it.
    constexpr int kPack = __is_class(X) ? 1 : 16 / sizeof(X) >= V ? V : int(16 / sizeof(X));
    constexpr int kOwn = V > L ? V / L : 1;    // columns of a lane at the end
    constexpr int kCopies = L > V ? L / V : 1; // lanes that then have the same
    const bool conjugated = flags & 4, b_packs = flags & 8;
    const int lane = threadIdx.x & 31;
    const int64_t warp = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const bool piece = warp < tasks.piece_count;
    const int sharing = piece ? 32 / L : int(tasks.spread);
    const int rounds = piece ? 1 : int(tasks.rounds);
    const int groups = 32 / L / sharing;
    const int64_t place = (warp - tasks.piece_count) * (groups * rounds) + lane / L / sharing;
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const bool raw = flags & 2;
    Share share =
        piece ? take_piece(tasks.pieces[warp]) : take_row(a.offsets, a.base, tasks, place);
    for (int round = 0; round < rounds; ++round) {
        // The next row's offsets come while this one's entries do.
        Share next{0, 0, 0, false};
        if (round + 1 < rounds)
            next = take_row(a.offsets, a.base, tasks, place + (round + 1) * groups);
        const int length = is_zero(alpha) ? 0 : share.length;
        const J *indices = a.indices + share.begin;
        const A *values = a.values + share.begin;
        Acc sums[V];
#pragma unroll
        for (int i = 0; i < V; ++i)
            sums[i] = zero<Acc>();
#pragma unroll 2
        for (int p = lane % (L * sharing); p < length; p += sharing * L) {
            const X *from = b.data + (int64_t(load_once(indices + p)) - a.base) * b.row_stride;
            const Acc value = widen<Acc>(load_once(values + p));
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
        if (sharing > 1) {
            for (int lanes = L; lanes < L * sharing; lanes *= 2) {
#pragma unroll
                for (int i = 0; i < kOwn; ++i)
                    sums[i] = add(sums[i], shuffle_xor(sums[i], lanes));
            }
        }
        if (share.some && lane % (L * sharing) < L && lane % kCopies == 0) {
#pragma unroll
            for (int i = 0; i < kOwn; ++i) {
                const int col = first + i;
                if (col < n) {
                    if (share.target < 0) {
                        partial[~share.target * partial_stride + col] = sums[i];
                    } else if (raw) {
                        reinterpret_cast<Acc *>(c.data)[share.target * c.row_stride + col] =
                            sums[i];
                    } else {
                        store(c.data + share.target * c.row_stride + col * c.col_stride, alpha,
                              sums[i], beta);
                    }
                }
            }
        }
        share = next;
    }
}

// Adds the pieces of cut rows. A block has 32 columns of a row at a time; eight
// warps add an eighth of the pieces each, in order, and then their sums are
// added in order.
template <class Y, class Acc>
__device__ __forceinline__ void row_join(const Cut *cuts, const Acc *partial, const Dense<Y> &c,
                                         int64_t n, const Scalar<Acc> &alpha_,
                                         const Scalar<Acc> &beta_, int64_t flags) {
    __shared__ Acc parts[8][32];
    const bool raw = flags & 2;
    const Cut cut = cuts[blockIdx.x];
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const int lane = threadIdx.x % 32, part = threadIdx.x / 32;
    const int64_t begin = cut.slots * part / 8, end = cut.slots * (part + 1) / 8;
    for (int64_t first = int64_t(blockIdx.y) * 32; first < n; first += int64_t(gridDim.y) * 32) {
        const int64_t col = first + lane;
        Acc sum = zero<Acc>();
        if (col < n) {
            const Acc *from = partial + cut.first_slot * n + col;
#pragma unroll 8
            for (int64_t i = begin; i < end; ++i)
                sum = add(sum, from[i * n]);
        }
        parts[part][lane] = sum;
        __syncthreads();
        if (part == 0 && col < n) {
#pragma unroll
            for (int i = 1; i < 8; ++i)
                sum = add(sum, parts[i][lane]);
            if (raw) {
                reinterpret_cast<Acc *>(c.data)[cut.row * c.row_stride + col] = sum;
            } else {
                store(c.data + cut.row * c.row_stride + col * c.col_stride, alpha, sum, beta);
            }
        }
        __syncthreads();
    }
}

// C = alpha · sums + beta · C for a C whose columns are contiguous; sums are
// m × n by rows. Blocks of 32 × 8 threads, tiles of 32 × 32.
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

// B by rows (rows × cols, `ld` apart) from a B whose columns are contiguous, or
// that must be conjugated, or whose rows begin anywhere.
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

using namespace tarsia;

// flags: 1, C's rows are aligned for packs; 2, sums go to C as they are, in the
// accumulator's type; 4, B is conjugated (narrow); 8, B's rows are aligned for packs
// (narrow); from bit 8 on, log2 of the tiles that lie next to each other in the grid.
#define PARAMETERS(A, X, Y, Acc, J)                                                                \
    Offsets offsets, const J *indices, const A *values, int64_t base, Tasks tasks, const X *b,     \
        int64_t b_row, int64_t b_col, Y *c, int64_t c_row, int64_t c_col, int64_t n,               \
        Scalar<Acc> alpha, Scalar<Acc> beta, Acc *partial, int64_t partial_stride, int64_t flags

// Registers: 64 a thread for 32 warps of a multiprocessor, 80 for 24.
#define WIDE(name, A, X, Y, Acc, width, J, G, V, P, kind, warps)                                   \
    extern "C" __global__ void __launch_bounds__(kBlock, (warps)*32 / kBlock)                      \
        spmm_row_##name##_##width##_##kind##_##G(PARAMETERS(A, X, Y, Acc, J)) {                    \
        row_wide<A, X, Y, Acc, J, G, V, P>({offsets, indices, values, base}, tasks,                \
                                           {b, b_row, b_col}, {c, c_row, c_col}, n, alpha, beta,   \
                                           partial, partial_stride, flags);                        \
    }
#define NARROW(name, A, X, Y, Acc, width, J, L, V)                                                 \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
        spmm_row_##name##_##width##_narrow##V##_##L(PARAMETERS(A, X, Y, Acc, J)) {                 \
        row_narrow<A, X, Y, Acc, J, L, V>({offsets, indices, values, base}, tasks,                 \
                                          {b, b_row, b_col}, {c, c_row, c_col}, n, alpha, beta,    \
                                          partial, partial_stride, flags);                         \
    }
#define PACKS(X) int(sizeof(X) < 16 ? 16 / sizeof(X) : 1)
// Half types have twice the sums, complex ones more of everything.
#define WARPS(X, J)                                                                                \
    (__is_same(X, bf16) ? 20 : sizeof(X) == 2 || __is_class(X) ? 24 : sizeof(J) == 8 ? 28 : 32)
#define WIDTH(name, A, X, Y, Acc, width, J)                                                        \
    WIDE(name, A, X, Y, Acc, width, J, 4, PACKS(X), 1, packs, WARPS(X, J))                         \
    WIDE(name, A, X, Y, Acc, width, J, 8, PACKS(X), 1, packs, WARPS(X, J))                         \
    WIDE(name, A, X, Y, Acc, width, J, 16, PACKS(X), 1, packs, WARPS(X, J))                        \
    WIDE(name, A, X, Y, Acc, width, J, 32, PACKS(X), 1, packs, WARPS(X, J))                        \
    WIDE(name, A, X, Y, Acc, width, J, 32, 1, 1, single, WARPS(X, J))                              \
    NARROW(name, A, X, Y, Acc, width, J, 4, 4)                                                     \
    NARROW(name, A, X, Y, Acc, width, J, 16, 4)                                                    \
    NARROW(name, A, X, Y, Acc, width, J, 4, 8)                                                     \
    NARROW(name, A, X, Y, Acc, width, J, 16, 8)
#define COMBO(name, A, X, Y, Acc)                                                                  \
    WIDTH(name, A, X, Y, Acc, 32, int32_t)                                                         \
    WIDTH(name, A, X, Y, Acc, 64, int64_t)                                                         \
    extern "C" __global__ void __launch_bounds__(256) spmm_row_##name##_join(                      \
        const Cut *cuts, const Acc *partial, Y *c, int64_t c_row, int64_t c_col, int64_t n,        \
        Scalar<Acc> alpha, Scalar<Acc> beta, int64_t flags) {                                      \
        row_join<Y, Acc>(cuts, partial, {c, c_row, c_col}, n, alpha, beta, flags);                 \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, 4)                                           \
        spmm_row_##name##_finish(const Acc *sums, Y *c, int64_t c_row, int64_t c_col, int64_t m,   \
                                 int64_t n, Scalar<Acc> alpha, Scalar<Acc> beta) {                 \
        row_finish<Y, Acc>(sums, {c, c_row, c_col}, m, n, alpha, beta);                            \
    }
TARSIA_FOR_EACH_COMBO(COMBO)

// Two packs a lane, so that A is read once for 128 columns of doubles: a fifth
// faster there than two tiles; in fp32 they gained nothing.
#define TWINS(name, A, X, Y, Acc)                                                                  \
    WIDE(name, A, X, Y, Acc, 32, int32_t, 32, PACKS(X), 2, twins, 20)                              \
    WIDE(name, A, X, Y, Acc, 64, int64_t, 32, PACKS(X), 2, twins, 20)
TWINS(f64, double, double, double, double)
TWINS(f32f64, float, double, double, double)

#define PACK(name, T)                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        spmm_row_pack_##name(const T *from, int64_t row_stride, int64_t col_stride, T *to,         \
                             int64_t rows, int64_t cols, int64_t ld, int64_t conjugated) {         \
        row_pack<T>(from, row_stride, col_stride, to, rows, cols, ld, conjugated);                 \
    }
PACK(2, uint16_t)
PACK(4, float)
PACK(8, double)
PACK(c32, c32)
PACK(c64, c64)
