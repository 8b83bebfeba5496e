// SpMM `row` where rows of B and C are aligned to 16 bytes: C = alpha · A · B + beta · C on the
// lists of rows that analysis makes (spmm/tasks.cuh), by CUDA cores.
//
// A group of LANES lanes, which lie along the columns of C, takes a row of A. Rows of middle length
// are shared by two or four groups of a block, and parts of long rows by all groups of a block. Of
// LANES entries each lane loads one, and shuffles hand it to the others, which load their columns
// of its row of B, FLIGHT rows at a time, while the next LANES entries are in flight. Only the
// final sums of a shared row go through shared memory. Entries are added in the order in which they
// are stored, shares in their order, those of the groups of a warp in a part by shuffles first, and
// parts of a row by the last block to arrive: there are no floating-point atomics, and results have
// the same bits from run to run.
#pragma once

#include "spmm/row.cuh"

namespace tarsia {

// Lists of rows. The blocks of a launch take first the parts, one each, then rows that four groups
// share, then rows that two share, and then all others.
struct GroupTasks {
    const Part *parts;
    const Run *quads, *pairs, *rows;
    int64_t quad_count, pair_count, row_count;
    // First block of the quads, of the pairs, and of the other rows.
    uint32_t quads_from, pairs_from, rows_from;
    // One set per tile of a launch; zero before the launch and after it.
    uint32_t counter_count;
    unsigned *counters;
};

// Share of a group: `length` entries from `begin` on of row `row`, or -1 for none. 2^sharing_log2
// groups share the row, and this one is number `which` of them.
struct GroupShare {
    int64_t begin;
    int row, length, sharing_log2, which;
    bool is_part;
};

// Base-2 logarithm of a power of two.
template <int N> constexpr int LOG2 = 1 + LOG2<N / 2>;
template <> constexpr int LOG2<1> = 0;

// Finds the group's share of the work of a block.
template <int LANES>
__device__ __forceinline__ GroupShare share_of_group(const GroupTasks &tasks, uint32_t block) {
    constexpr int GROUPS = BLOCK / LANES;
    const int group = threadIdx.x / LANES;
    GroupShare own = {0, -1, 0, 0, 0, block < tasks.quads_from};
    if (own.is_part) {
        const Part part = load_part(tasks.parts + block);
        own.begin = part.begin;
        own.row = part.row;
        own.length = part.length;
        own.sharing_log2 = LOG2<GROUPS>;
    } else {
        const Run *list = tasks.rows;
        int64_t count = tasks.row_count;
        uint32_t from = tasks.rows_from;
        if (block < tasks.pairs_from) {
            list = tasks.quads;
            count = tasks.quad_count;
            from = tasks.quads_from;
            own.sharing_log2 = 2;
        } else if (block < tasks.rows_from) {
            list = tasks.pairs;
            count = tasks.pair_count;
            from = tasks.pairs_from;
            own.sharing_log2 = 1;
        }
        const int64_t place = (int64_t(block - from) * GROUPS + group) >> own.sharing_log2;
        if (place < count) {
            const Share run = load_run(list + place);
            own.begin = run.begin;
            own.row = int(run.row);
            own.length = run.length;
        }
    }
    own.which = group & ((1 << own.sharing_log2) - 1);
    if (own.sharing_log2 > 0) {
        const int each = (own.length + (1 << own.sharing_log2) - 1) >> own.sharing_log2;
        const int before = min(own.which * each, own.length);
        own.begin += before;
        own.length = min(each, own.length - before);
    }
    return own;
}

// Entries of A: the lane's next ones, LANES from each other, and where the ones after them are.
template <class J, class Value, class Factor, int LANES, int COUNT> struct EntryStream {
    const J *next_index;
    const Value *next_value;
    // Columns are kept as they are stored, so that nothing waits for the loads before they are
    // used.
    J index[COUNT];
    Factor factor[COUNT];

    // Loads the group's entries from number `entry` on, which is this lane's next one.
    __device__ __forceinline__ void fetch(int entry, int length) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (entry + i * LANES < length) {
                index[i] = load(next_index + i * LANES);
                factor[i] = widen<Factor>(load(next_value + i * LANES));
            }
        }
        next_index += COUNT * LANES;
        next_value += COUNT * LANES;
    }
};

// Adds the products of NOW entries from number `turn` of the group's on, of which `left` are there.
// whole: all are. columns: the lane's first column of B; at, factor: each lane's entries, as
// offsets in packs and values.
template <bool whole, int LANES, int NOW, class X, int WIDTH, int PACKS, int OF_LANE, class Acc,
          class Factor>
__device__ __forceinline__ void add_entries(Acc (&sums)[PACKS * WIDTH], const char *columns,
                                            const uint32_t (&at)[OF_LANE],
                                            const Factor (&factor)[OF_LANE], int turn, int left) {
    Pack<X, WIDTH> packs[NOW][PACKS];
#pragma unroll
    for (int u = 0; u < NOW; ++u) {
        const uint32_t of_all =
            __shfl_sync(ALL_LANES, at[(turn + u) / LANES], (turn + u) % LANES, LANES);
        const char *from = columns + uint64_t(of_all) * 16;
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (whole || u < left)
                packs[u][p] = load(reinterpret_cast<const Pack<X, WIDTH> *>(from) + p * LANES);
        }
    }
#pragma unroll
    for (int u = 0; u < NOW; ++u) {
        const Factor of_all =
            __shfl_sync(ALL_LANES, factor[(turn + u) / LANES], (turn + u) % LANES, LANES);
#pragma unroll
        for (int p = 0; p < PACKS; ++p) {
            if (whole || u < left)
                add_pack(sums + p * WIDTH, widen<Acc>(of_all), packs[u][p]);
        }
    }
}

// Adds the products of a group's `length` entries, the first of which are at `indices` and
// `values`. columns: the lane's first column of B; b_packs: packs of 16 bytes between rows of B;
// OF_LANE: entries that a lane loads at a time. The groups of a warp loop together; a group that is
// done idles.
template <int LANES, class X, int WIDTH, int PACKS, int OF_LANE, class J, class Value, class Acc>
__device__ __forceinline__ void add_group_entries(Acc (&sums)[PACKS * WIDTH], const char *columns,
                                                  uint32_t b_packs, const J *indices,
                                                  const Value *values, int32_t base, int length) {
    constexpr int OF_GROUP = LANES * OF_LANE, NOW = OF_GROUP < FLIGHT ? OF_GROUP : FLIGHT;
    using Factor = typename Either<sizeof(Value) == 2, Acc, Value>::type;
    const int lane = threadIdx.x % LANES;
    EntryStream<J, Value, Factor, LANES, OF_LANE> entries;
    entries.next_index = indices + lane;
    entries.next_value = values + lane;
#pragma unroll
    for (int i = 0; i < OF_LANE; ++i) {
        entries.index[i] = J(base);
        entries.factor[i] = zero<Factor>();
    }
    const int longest = __reduce_max_sync(ALL_LANES, length),
              shortest = __reduce_min_sync(ALL_LANES, length);
    entries.fetch(lane, length);
    for (int first = 0; first < longest; first += OF_GROUP) {
        // Offsets of their rows of B, in packs.
        uint32_t at[OF_LANE];
        Factor factor[OF_LANE];
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i) {
            at[i] = uint32_t(entries.index[i] - base) * b_packs;
            factor[i] = entries.factor[i];
        }
        if (first + OF_GROUP < longest)
            entries.fetch(first + OF_GROUP + lane, length);
#pragma unroll
        for (int turn = 0; turn < OF_GROUP; turn += NOW) {
            if (first + turn + NOW <= shortest) {
                add_entries<true, LANES, NOW, X, WIDTH, PACKS>(sums, columns, at, factor, turn,
                                                               NOW);
            } else if (first + turn < longest) {
                add_entries<false, LANES, NOW, X, WIDTH, PACKS>(sums, columns, at, factor, turn,
                                                                length - first - turn);
            }
        }
    }
}

// Adds the sums of the groups that share a row, through shared memory with a tile for each group;
// the first of them gets the result. Groups of a warp that share a part first add theirs by
// shuffles.
template <int LANES, int WIDTH, class Acc, int COUNT>
__device__ __forceinline__ void add_shares(Acc (&sums)[COUNT], Acc *shares,
                                           const GroupShare &share) {
    constexpr int OF_WARP = WARP / LANES;
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    Acc *const own = shares + group * (COUNT * LANES) + lane * WIDTH;
    const auto at = [](int i) { return i / WIDTH * (WIDTH * LANES) + i % WIDTH; };
    int step = 1;
    if (share.is_part) {
        add_groups<LANES>(sums, OF_WARP);
        step = OF_WARP;
    }
    if (share.which > 0 && share.which % step == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            own[at(i)] = sums[i];
    }
    __syncthreads();
    if (share.which > 0)
        return;
#pragma unroll 1
    for (int other = step; other < 1 << share.sharing_log2; other += step) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            sums[i] = add(sums[i], own[other * (COUNT * LANES) + at(i)]);
    }
}

// Computes a tile of C with PACKS times WIDTH elements per lane, WIDTH contiguous ones in 16 bytes
// and the next WIDTH a further WIDTH · LANES columns on: a tile has PACKS · WIDTH · LANES columns,
// and a group computes it. n is a multiple of WIDTH and, if PACKS > 1, of tiles. b_packs: packs of
// 16 bytes between rows of B; cols · b_packs is less than 2^32. together: log2 of the tiles that
// are neighbours in the grid.
template <class Value, class X, class Y, class Acc, int LANES, int WIDTH, int PACKS>
__device__ __forceinline__ void
row_groups(const int32_t *indices, const Value *values, int32_t base, const GroupTasks &tasks,
           const X *b, uint32_t b_packs, Y *c, int64_t c_row, int32_t n, const Scalar<Acc> &alpha_,
           const Scalar<Acc> &beta_, const Partial<Acc> &partial, int32_t together) {
    constexpr int GROUPS = BLOCK / LANES, COUNT = PACKS * WIDTH, TILE = COUNT * LANES;
    __shared__ alignas(16) Acc shares[GROUPS * TILE];

    const int lane = threadIdx.x % LANES;
    const uint32_t tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    const uint32_t block = blockIdx.x >> together;
    if (int(tile) * TILE >= n)
        return;
    const GroupShare share = share_of_group<LANES>(tasks, block);
    const int length = is_zero(alpha_.get()) ? 0 : share.length;

    const int col = int(tile) * TILE + lane * WIDTH;
    const bool has_columns = col < n;
    // Lanes beyond the last column read the first ones, and store nothing.
    const char *columns = reinterpret_cast<const char *>(b + (has_columns ? col : 0));
    keep_address(columns);
    Acc sums[COUNT];
    set_zero(sums);

    // With four lanes eight entries at a time are 2 % faster for 16-bit types than four.
    constexpr int OF_LANE = LANES == 4 ? 2 : 1;
    add_group_entries<LANES, X, WIDTH, PACKS, OF_LANE>(
        sums, columns, b_packs, indices + share.begin, values + share.begin, base, length);

    if (share.sharing_log2 > 0) {
        add_shares<LANES, WIDTH>(sums, shares, share);
        if (share.is_part) {
            if (threadIdx.x >= WARP)
                return;
            const Part part = load_part(tasks.parts + block);
            // All columns of a lane exist, or none: n is a multiple of WIDTH, and of tiles if a
            // lane has several packs.
            const auto column = [&](int i) {
                return has_columns && share.which == 0
                           ? col + i / WIDTH * (WIDTH * LANES) + i % WIDTH
                           : -1;
            };
            if (part.count > 1 &&
                !join_parts<32>(sums, part, partial.sums, partial.stride,
                                tasks.counters + tile * tasks.counter_count, column))
                return;
        }
    }
    if (share.which > 0 || share.row < 0 || !has_columns)
        return;
    const Acc alpha = alpha_.get(), beta = beta_.get();
#pragma unroll
    for (int p = 0; p < PACKS; ++p)
        store_packs<WIDTH>(c + share.row * c_row + col + p * (WIDTH * LANES), sums + p * WIDTH,
                           alpha, beta);
}

} // namespace tarsia
