// SpMV `csr`, form `balanced`: every warp takes the same number of rows and entries together,
// whatever the lengths of the rows.
//
// The work is a list of positions (Merrill and Garland's merge path): each row's entries and then
// its end, so that row i has the positions from start(i) + i to start(i + 1) + i. Warp t of the
// grid takes `share` positions from t · share on. If that cuts a row, the partial sums are added in
// the order of the warps:
// - inside a block through shared memory;
// - a row that reaches over the end of its block by no more than `overhang` positions belongs as a
//   whole to the block in which it starts;
// - any other row is *split*: each of its blocks stores a partial sum in the workspace, and the
//   last block to arrive adds them. The counters of arrivals are zero between launches.
//
// So only blocks of very long rows ever depend on each other's memory.
#pragma once

#include "common/search.cuh"
#include "spmv/dot.cuh"
#include "spmv/narrow.cuh"

namespace tarsia::spmv {

// Division of the positions among warps.
struct Deal {
    // Number of positions of a warp; a block has WARPS times as many.
    int64_t share;
    // Less than the positions of a block.
    int64_t overhang;

    __device__ __forceinline__ int64_t block_of(int64_t position) const {
        return position / (share * WARPS);
    }
};

// Position in the list: before this entry of this row. The rows before it are complete.
struct MergePoint {
    int64_t row, entry;
};

// Returns the point of the merge where warp t of the grid starts and warp t − 1 ends; `row` is the
// row that has the position.
template <class A, class I, class J>
__device__ __forceinline__ MergePoint merge_point(const Csr<A, I, J> &a, Deal deal, int64_t t,
                                                  int64_t row) {
    if (row >= a.rows)
        return {a.rows, a.nnz};
    const int64_t position = t * deal.share, span = deal.share * WARPS;
    const int64_t first_of_block = t / WARPS * span;
    const int64_t begin = a.start(row) + row, end = a.start(row + 1) + row;
    // True for a row that is not split although it crosses the border: it starts in the block
    // before and ends soon in this one.
    const bool reaches_over = begin < first_of_block && begin >= first_of_block - span &&
                              end <= first_of_block + deal.overhang;
    if (reaches_over)
        return {row + 1, end - row};
    return {row, position - row};
}

// Shared memory that find_rows needs.
struct Search {
    int64_t keys[THREADS];
    // For each border between the block's warps: a row at or before it.
    int64_t rows[WARPS + 1];
};

// Finds the rows that have the positions where this warp starts and ends (`rows` if the list ends
// before): the last rows that start at or before them. Each step costs a memory latency, so it
// tests many rows: the block's threads together for all borders while candidates are far apart,
// then each warp for its own.
template <class A, class I, class J>
__device__ __forceinline__ void find_rows(const Csr<A, I, J> &a, Deal deal, Search &search,
                                          int64_t (&found)[2]) {
    // Number of rows that a warp tests in one step: as many as lie in a few lines of L1.
    constexpr int TRIES = 4, NEAR = TRIES * WARP;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t first = int64_t(blockIdx.x) * WARPS * deal.share;
    // The borders' rows are in [from, to), less than `step` rows after search.rows.
    int64_t from = 0, to = a.rows, step = 0;
    for (int round = 0; round < 2 && (round == 0 || step > NEAR); ++round) {
        step = (to - from + THREADS - 1) / THREADS;
        const int64_t row = from + threadIdx.x * step;
        const int64_t key = row < to ? a.start(row) + row : INT64_MAX;
        search.keys[threadIdx.x] = key;
        __syncthreads();
        const int64_t next = threadIdx.x + 1 < THREADS ? search.keys[threadIdx.x + 1] : INT64_MAX;
        for (int w = 0; w <= WARPS; ++w) {
            const int64_t position = first + w * deal.share;
            if (key <= position && position < next)
                search.rows[w] = row;
        }
        __syncthreads();
        from = search.rows[0];
        to = min(to, search.rows[WARPS] + step);
    }
#pragma unroll
    for (int side = 0; side < 2; ++side)
        found[side] = search.rows[warp + side];
    // Row `found` starts at or before the position, row found + step after it.
    while (step > 1) {
        const int64_t finer = (step + NEAR - 1) / NEAR;
        bool before[2][TRIES];
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const int64_t position = first + (warp + side) * deal.share;
#pragma unroll
            for (int i = 0; i < TRIES; ++i) {
                const int64_t ahead = (i * WARP + lane + 1) * finer, row = found[side] + ahead;
                before[side][i] = ahead < step && row < a.rows && a.start(row) + row <= position;
            }
        }
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            int steps = 0;
#pragma unroll
            for (int i = 0; i < TRIES; ++i)
                steps += __popc(__ballot_sync(ALL_LANES, before[side][i]));
            found[side] += steps * finer;
        }
        step = finer;
    }
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        if (first + (warp + side) * deal.share >= a.rows + a.nnz)
            found[side] = a.rows;
    }
}

// Finds one point of the merge by one thread, for a plan that keeps them.
template <class I>
__device__ __forceinline__ MergePoint find_merge_point(const I *offsets, int64_t rows, int64_t nnz,
                                                       int64_t base, Deal deal, int64_t t) {
    const Csr<char, I, char> a = {rows, nnz, offsets, nullptr, nullptr, base, 0, nullptr};
    const int64_t position = t * deal.share;
    int64_t row = rows;
    if (position < rows + nnz)
        row = last_where(0, rows, [&](int64_t row) { return a.start(row) + row <= position; });
    return merge_point(a, deal, t, row);
}

// Number of entries of a tile that one lane sums; all loads of a tile are in flight together.
template <class Acc> constexpr int LANE_ENTRIES = sizeof(Acc) <= 8 ? 8 : 4;

// Shared memory of a warp. Lane l sums the products from l · STRIP on, with one element of padding
// after every STRIP products to avoid bank conflicts.
template <class Acc> struct Slice {
    static constexpr int STRIP = LANE_ENTRIES<Acc>;
    static constexpr int TILE = WARP * STRIP;
    Acc products[TILE + WARP];
    // Not 0 if the entry is the last of its row.
    alignas(STRIP) uint8_t ends[TILE];

    static __device__ __forceinline__ int slot(int entry) { return entry + entry / STRIP; }
};

// Replaces the product at each row's end by the row's sum; `carry` is added to the first row.
// Returns the sum of what follows the last row's end.
template <class Acc> __device__ __forceinline__ Acc sum_segments(Slice<Acc> &slice, Acc carry) {
    constexpr int STRIP = Slice<Acc>::STRIP;
    const int lane = threadIdx.x % WARP;
    uint32_t ends[STRIP / 4];
    Acc *products = slice.products + lane * (STRIP + 1);
    memcpy(ends, __builtin_assume_aligned(slice.ends + lane * STRIP, STRIP), STRIP);
    memset(__builtin_assume_aligned(slice.ends + lane * STRIP, STRIP), 0, STRIP);
    // The lane's first row may have begun in an earlier lane.
    int first = -1;
    Acc head = zero<Acc>(), open = lane == 0 ? carry : zero<Acc>();
#pragma unroll
    for (int v = 0; v < STRIP; ++v) {
        open = add(open, products[v]);
        if ((ends[v / 4] >> (v % 4 * 8) & 0xff) != 0) {
            if (first < 0) {
                first = v;
                head = open;
            } else {
                products[v] = open;
            }
            open = zero<Acc>();
        }
    }
    // Inclusive scan of the open sums, which starts anew at each lane that ends a row.
    const unsigned until_me = ~0u >> (WARP - 1 - lane);
    const unsigned enders = __ballot_sync(ALL_LANES, first >= 0) & until_me;
    const int from = enders != 0 ? WARP - 1 - __clz(enders) : 0;
#pragma unroll
    for (int delta = 1; delta < WARP; delta *= 2) {
        const Acc before = shuffle_up(open, delta);
        if (lane - delta >= from)
            open = add(before, open);
    }
    const Acc before = shuffle_up(open, 1);
    if (first >= 0)
        products[first] = lane == 0 ? head : add(before, head);
    return shuffle_index<WARP>(open, WARP - 1);
}

// Results of a warp's region for its block.
template <class Acc> struct Piece {
    // Rows [first, last) end in the region.
    int64_t first, last;
    // If row `first` has entries before the region and ends in it: its sum in the region. The rest
    // of y is already written.
    Acc head;
    // Sum of row `last` in the region, 0 if it has no entries there.
    Acc tail;
    // joins: row `first` has entries before the region. leaves: row `last` has entries up to its
    // end.
    bool joins, leaves;
};

// Entries of a region, from the multiple of 32 entries before its first one on: such positions are
// whole sectors in most arrays. A region has less than 2^31 rows and entries, so that positions
// inside it have 32 bits.
template <class A, class X, class I, class J> struct Region {
    const Csr<A, I, J> &a;
    int64_t origin;
    int rows, entries;
    const J *indices;
    const A *values;
    // End of the row that the lane takes of the region's first 32, and the offset of `origin`.
    const I *ends;
    I ends_origin;
    const X *x;

    __device__ __forceinline__ Region(const Csr<A, I, J> &a, const X *x, MergePoint from,
                                      MergePoint to)
        : a(a), origin(from.entry - from.entry % WARP), rows(int(to.row - from.row)),
          entries(int(to.entry - origin)), indices(a.indices + origin), values(a.values + origin),
          ends(a.offsets + from.row + 1 + threadIdx.x % WARP), ends_origin(I(origin + a.base)),
          x(a.IS_NARROW ? x : x - a.base) {}

    // End of the lane's row, counted from `tile` on, where lanes take 32 rows from `row` on; LIMIT
    // for a row that does not end before.
    template <int LIMIT> __device__ __forceinline__ int end_of(int row, int tile) const {
        if (row + int(threadIdx.x % WARP) >= rows)
            return LIMIT;
        return int(min(load_cached(ends + row) - ends_origin - tile, I(LIMIT)));
    }

    // Elements of x for columns that a lane has loaded, the v-th from the v-th chunk of the tile.
    template <int STRIP>
    __device__ __forceinline__ void gather(const J (&column)[STRIP], int tile, int count,
                                           X (&factor)[STRIP]) const {
        if constexpr (Csr<A, I, J>::IS_NARROW) {
            // The entries of one load belong to one chunk, except that lanes without an entry
            // behind the last one load an entry of the last chunk.
            static_assert(CHUNK == WARP);
            const int last = (count - 1) / CHUNK;
            uint32_t start[STRIP];
#pragma unroll
            for (int v = 0; v < STRIP; ++v)
                start[v] = a.origin((origin + tile) / CHUNK + min(v, last));
#pragma unroll
            for (int v = 0; v < STRIP; ++v)
                factor[v] = load_cached(x + (start[v] + column[v]));
        } else {
#pragma unroll
            for (int v = 0; v < STRIP; ++v)
                factor[v] = load_cached(x + column[v]);
        }
    }

    // Stores the products of a tile's entries [skip, count), and zeros in its other slots.
    template <class Acc>
    __device__ __forceinline__ void multiply(int tile, int skip, int count,
                                             Slice<Acc> &slice) const {
        constexpr int STRIP = Slice<Acc>::STRIP;
        const int lane = threadIdx.x % WARP;
        if (count <= skip) {
            for (int k = lane; k < Slice<Acc>::TILE; k += WARP)
                slice.products[Slice<Acc>::slot(k)] = zero<Acc>();
            return;
        }
        // Lanes without an entry load a neighbour's, so that there are no branches between loads;
        // they do not multiply it, since x may hold Inf.
        J column[STRIP];
        A value[STRIP];
#pragma unroll
        for (int v = 0; v < STRIP; ++v) {
            const int k = min(max(v * WARP + lane, skip), count - 1);
            column[v] = load_once(indices + tile + k, a.policy);
            value[v] = load_once(values + tile + k, a.policy);
        }
        X factor[STRIP];
        gather(column, tile, count, factor);
#pragma unroll
        for (int v = 0; v < STRIP; ++v) {
            const int k = v * WARP + lane;
            const bool exists = k >= skip && k < count;
            slice.products[Slice<Acc>::slot(k)] =
                exists ? mul(widen<Acc>(value[v]), widen<Acc>(factor[v])) : zero<Acc>();
        }
    }
};

// Sums the entries of [from, to) and writes y for the rows that start and end there.
template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void sum_region(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                           Acc alpha, Acc beta, MergePoint from, MergePoint to,
                                           Slice<Acc> &slice, Piece<Acc> &piece) {
    constexpr int TILE = Slice<Acc>::TILE;
    const int lane = threadIdx.x % WARP;
    int skip = int(from.entry % WARP);
    const bool joins = from.row < a.rows && from.entry > a.start(from.row);
    const Region<A, X, I, J> region(a, x, from, to);
    Acc carry = zero<Acc>();
    int row = 0, tile = 0;
    for (bool more = region.rows > 0 || region.entries > skip; more; more = tile < region.entries) {
        const int count = min(region.entries - tile, TILE);
        // Ends of 32 rows as entries of the tile; TILE + 1 for rows that do not end in it.
        const auto ends_of = [&](int first_row) {
            return region.template end_of<TILE + 1>(first_row, tile);
        };
        const int first_ends = ends_of(row);
        region.multiply(tile, skip, count, slice);
        // Calls f(first row, end, start) for this lane's rows that end in the tile, 32 rows at a
        // time; returns the first row that does not.
        const auto for_rows = [&](auto f) {
            int first_row = row, start = skip, end = first_ends;
            while (true) {
                int before = __shfl_up_sync(ALL_LANES, end, 1);
                if (lane == 0)
                    before = start;
                const bool here = end <= count;
                if (here)
                    f(first_row, end, before);
                const int ended = __popc(__ballot_sync(ALL_LANES, here));
                first_row += ended;
                if (ended < WARP)
                    return first_row;
                start = __shfl_sync(ALL_LANES, end, WARP - 1);
                end = ends_of(first_row);
            }
        };
        for_rows([&](int, int end, int start) {
            if (end > start)
                slice.ends[end - 1] = 1;
        });
        __syncwarp();
        carry = sum_segments(slice, carry);
        __syncwarp();
        row = for_rows([&](int first_row, int end, int start) {
            Acc sum = zero<Acc>();
            if (end > start)
                sum = slice.products[Slice<Acc>::slot(end - 1)];
            if (joins && first_row + lane == 0) {
                piece.head = sum;
            } else {
                y.store(a.row_of_y(from.row + lane + first_row), alpha, sum, beta);
            }
        });
        skip = 0;
        tile += TILE;
        __syncwarp();
    }
    if (lane == 0) {
        piece.first = from.row;
        piece.last = to.row;
        piece.tail = carry;
        piece.joins = joins;
        piece.leaves = to.row < a.rows && to.entry > a.start(to.row);
    }
}

// Partial sum that a block has of a split row.
template <class Acc> struct Part {
    int64_t row = -1;
    Acc sum = zero<Acc>();
};

// Stores the partial sum; the last of the row's blocks to arrive adds all of them in the order of
// the blocks. Called by one warp; lane 0 has the part.
template <class A, class Y, class Acc, class I, class J>
__device__ __forceinline__ void join(const Csr<A, I, J> &a, const Target<Y> &y, Acc alpha, Acc beta,
                                     Deal deal, Part<Acc> part, Acc *parts, uint32_t *arrivals) {
    const int lane = threadIdx.x % WARP;
    const int64_t row = __shfl_sync(ALL_LANES, part.row, 0);
    if (row < 0)
        return;
    const int64_t first = deal.block_of(a.start(row) + row);
    const int64_t last = deal.block_of(a.start(row + 1) + row);
    // A block has partial sums of at most one row that starts in it and one that starts before it.
    const auto part_of = [&](int64_t block) { return parts + 2 * block + (block == first); };
    if (lane == 0)
        *part_of(blockIdx.x) = part.sum;
    if (!is_last_to_arrive(arrivals + first, uint32_t(last - first + 1)))
        return;
    const Acc sum =
        sum_of_parts<Acc>(first, last + 1, [&](int64_t block) { return load_l2(part_of(block)); });
    if (lane == 0) {
        y.store(a.row_of_y(row), alpha, sum, beta);
        arrivals[first] = 0;
    }
}

// Computes y. `merge_points` has the start of every warp and the end, or is NULL: then they
// are searched for. Per block, `parts` has two sums and `arrivals` one counter.
template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void
balanced(const Csr<A, I, J> &a, const X *x, const Target<Y> &y, Acc alpha, Acc beta, Deal deal,
         const MergePoint *merge_points, Acc *parts, uint32_t *arrivals) {
    __shared__ Slice<Acc> slices[WARPS];
    __shared__ Piece<Acc> pieces[WARPS];
    if (is_zero(alpha)) {
        scale_rows(y, a.rows, beta);
        return;
    }
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int64_t t = int64_t(blockIdx.x) * WARPS + warp;
    for (int k = lane; k < Slice<Acc>::TILE; k += WARP)
        slices[warp].ends[k] = 0;
    MergePoint from, to;
    if (merge_points != nullptr) {
        from = {load_cached(&merge_points[t].row), load_cached(&merge_points[t].entry)};
        to = {load_cached(&merge_points[t + 1].row), load_cached(&merge_points[t + 1].entry)};
    } else {
        __shared__ Search search;
        int64_t found[2];
        find_rows(a, deal, search, found);
        from = merge_point(a, deal, t, found[0]);
        to = merge_point(a, deal, t + 1, found[1]);
    }
    __syncwarp();
    sum_region(a, x, y, alpha, beta, from, to, slices[warp], pieces[warp]);
    __syncthreads();
    if (warp != 0)
        return;

    // Adds the sums of rows that borders between warps cut, in the order of the warps.
    Part<Acc> head, tail;
    if (lane == 0) {
        const int64_t first_of_block = int64_t(blockIdx.x) * WARPS * deal.share;
        const auto comes_in = [&](int64_t row) { return a.start(row) + row < first_of_block; };
        Acc open = zero<Acc>();
        for (int w = 0; w < WARPS; ++w) {
            const Piece<Acc> &piece = pieces[w];
            if (piece.last == piece.first) {
                open = add(open, piece.tail);
                continue;
            }
            if (piece.joins) {
                const Acc sum = add(open, piece.head);
                if (comes_in(piece.first)) {
                    head = {piece.first, sum};
                } else {
                    y.store(a.row_of_y(piece.first), alpha, sum, beta);
                }
            }
            open = piece.tail;
        }
        // A row that is open at the end of the block is split.
        const Piece<Acc> &end = pieces[WARPS - 1];
        if (end.leaves) {
            if (comes_in(end.last)) {
                head = {end.last, open};
            } else {
                tail = {end.last, open};
            }
        }
    }
    join(a, y, alpha, beta, deal, head, parts, arrivals);
    join(a, y, alpha, beta, deal, tail, parts, arrivals);
}

} // namespace tarsia::spmv
