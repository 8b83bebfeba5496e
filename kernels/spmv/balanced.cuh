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

// Shared memory that find_rows needs: what the threads have loaded in each of two rounds.
struct Search {
    int64_t keys[2][THREADS];
};

// Returns the index of the last of these sorted keys that is at most `position`; the first one is.
__device__ __forceinline__ int last_key(const int64_t (&keys)[THREADS], int64_t position) {
    constexpr int STRIDE = THREADS / WARP;
    const int lane = threadIdx.x % WARP;
    const auto last_of = [](bool is_before) {
        return WARP - 1 - __clz(__ballot_sync(ALL_LANES, is_before));
    };
    const int from = last_of(keys[lane * STRIDE] <= position) * STRIDE;
    return from + last_of(lane < STRIDE && keys[from + lane % STRIDE] <= position);
}

// Finds the rows that have the positions where this warp starts and ends (`rows` if the list ends
// before): the last rows that start at or before them. Each step costs a memory latency, so it
// tests many rows: the block's threads together for all borders while candidates are far apart,
// then each warp for its own.
template <class A, class I, class J>
__device__ __forceinline__ void find_rows(const Csr<A, I, J> &a, Deal deal, Search &search,
                                          int64_t (&found)[2]) {
    // NEAR: number of rows that a warp tests for each border in one step.
    constexpr int TRIES = 4, NEAR = TRIES * WARP, HALF = WARP / 2;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t first = int64_t(blockIdx.x) * WARPS * deal.share;
    const auto starts_before = [&](int64_t row, int64_t position) {
        return row < a.rows && a.start(row) + row <= position;
    };
    // The borders' rows are in [from, to), less than `step` rows after `found`.
    int64_t from = 0, to = a.rows, step = 0;
#pragma unroll
    for (int round = 0; round < 2; ++round) {
        step = (to - from + THREADS - 1) / THREADS;
        const int64_t row = from + threadIdx.x * step;
        search.keys[round][threadIdx.x] = row < to ? a.start(row) + row : INT64_MAX;
        __syncthreads();
        const bool is_last = round == 1 || step <= HALF;
        // Borders of the warp, or first those of the block.
        const int border[2] = {is_last ? warp : 0, is_last ? warp + 1 : WARPS};
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const int64_t position = first + border[side] * deal.share;
            found[side] = from + last_key(search.keys[round], position) * step;
        }
        if (is_last)
            break;
        from = found[0];
        to = min(a.rows, found[1] + step);
    }
    // Row `found` starts at or before the position, row found + step after it.
    while (step > HALF) {
        const int64_t finer = (step + NEAR - 1) / NEAR;
        bool before[2][TRIES];
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const int64_t position = first + (warp + side) * deal.share;
#pragma unroll
            for (int i = 0; i < TRIES; ++i) {
                const int64_t ahead = (i * WARP + lane + 1) * finer;
                before[side][i] = ahead < step && starts_before(found[side] + ahead, position);
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
    // The lower half of the lanes tests the rows that are left of the first border, the upper half
    // those of the second.
    const int is_end = lane / HALF, ahead = lane % HALF + 1;
    const int64_t position = first + (warp + is_end) * deal.share;
    const bool before =
        ahead < step && starts_before((is_end ? found[1] : found[0]) + ahead, position);
    const unsigned all = __ballot_sync(ALL_LANES, before);
    found[0] += __popc(all & ((1u << HALF) - 1));
    found[1] += __popc(all >> HALF);
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

// Number of entries of a tile that one lane loads and multiplies; all loads of a tile are in flight
// together.
template <class Acc> constexpr int LANE_ENTRIES = sizeof(Acc) <= 8 ? 8 : 4;

// Shared memory of a warp, for the products of a tile's entries. There is one element of padding
// after every 128 bytes: without it lanes with neighbouring rows of 8 or 16 entries, or with STRIP
// neighbouring products each, would meet in few banks.
template <class Acc> struct Slice {
    static constexpr int STRIP = LANE_ENTRIES<Acc>;
    static constexpr int TILE = WARP * STRIP;
    static constexpr int LINE = 128 / sizeof(Acc);
    static_assert(LINE % STRIP == 0);
    Acc products[TILE + TILE / LINE];
    // Not 0 if the entry is the last of its row.
    alignas(STRIP) uint8_t ends[TILE];

    static __device__ __forceinline__ constexpr int slot(int entry) { return entry + entry / LINE; }
};

// Replaces the product at each row's end by the row's sum; `carry` is added to the first row.
// Returns the sum of what follows the last row's end.
template <class Acc> __device__ __forceinline__ Acc sum_segments(Slice<Acc> &slice, Acc carry) {
    constexpr int STRIP = Slice<Acc>::STRIP;
    const int lane = threadIdx.x % WARP;
    uint32_t ends[STRIP / 4];
    Acc *products = slice.products + Slice<Acc>::slot(lane * STRIP);
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
    // joins: row `first` has entries before the region. leaves: row `last` has begun before the
    // region's end and goes on behind it.
    bool joins, leaves;
};

// Columns and values that a lane has loaded of a tile.
template <class A, class J, int STRIP> struct LaneEntries {
    J column[STRIP];
    A value[STRIP];
};

// Entries of a region, from the multiple of 32 entries before its first one on: such positions are
// whole sectors in most arrays. A region has less than 2^31 rows and entries, so that positions
// inside it have 32 bits.
//
// Of each 128 entries of a tile a lane takes four: every 32nd, or four neighbours (a *quad*), which
// are fewer and wider loads, of columns and of values.
template <class A, class X, class I, class J> struct Region {
    static constexpr int QUAD = 4;
    // Quads of wider elements are slower: a load of 16 bytes has less than a quad.
    static constexpr bool CAN_LOAD_QUADS = sizeof(A) <= 4 && sizeof(J) == 4;
    // Longest mean of a row for which lanes take quads: neighbours in a longer row often have
    // columns in one line, and are better loaded by neighbouring lanes.
    static constexpr int64_t MOST_MEAN_FOR_QUADS = 256;

    const Csr<A, I, J> &a;
    int64_t origin;
    int rows, entries;
    const J *indices;
    const A *values;
    // End of the row that the lane takes of the region's first 32, and the offset of `origin`.
    const I *ends;
    I ends_origin;
    const X *x;
    bool by_quads;
    // Position of the lane's first entry in a tile, and distance to its second.
    int first, distance;

    __device__ __forceinline__ Region(const Csr<A, I, J> &a, const X *x, MergePoint from,
                                      MergePoint to)
        : a(a), origin(from.entry - from.entry % WARP), rows(int(to.row - from.row)),
          entries(int(to.entry - origin)), indices(a.indices + origin), values(a.values + origin),
          ends(a.offsets + from.row + 1 + threadIdx.x % WARP), ends_origin(I(origin + a.base)),
          x(a.IS_NARROW ? x : x - a.base),
          by_quads(CAN_LOAD_QUADS && a.nnz / MOST_MEAN_FOR_QUADS <= a.rows &&
                   is_aligned(a.indices) && is_aligned(a.values)),
          first(by_quads ? threadIdx.x % WARP * QUAD : threadIdx.x % WARP),
          distance(by_quads ? 1 : WARP) {}

    // True if a quad at a multiple of four elements has the alignment that its load needs.
    template <class T> static __device__ __forceinline__ bool is_aligned(const T *p) {
        return reinterpret_cast<uintptr_t>(p) % (QUAD * sizeof(T)) == 0;
    }

    // Distance of the lane's v-th entry from its first, where its first two are `distance` apart
    // and groups of four are `group` apart.
    static __device__ __forceinline__ int ahead(int v, int distance, int group) {
        return v % QUAD * distance + v / QUAD * group;
    }

    // End of the lane's row, counted from `tile` on, where lanes take 32 rows from `row` on; LIMIT
    // for a row that does not end before.
    template <int LIMIT> __device__ __forceinline__ int end_of(int row, int tile) const {
        if (row + int(threadIdx.x % WARP) >= rows)
            return LIMIT;
        return int(min(load_cached(ends + row) - ends_origin - tile, I(LIMIT)));
    }

    // Loads the lane's entries of a tile that has `count` of them. In place of an entry behind
    // these a lane loads one of them again, so that there are no branches between loads; a quad
    // may have up to three entries of A that follow.
    template <int STRIP>
    __device__ __forceinline__ void load(LaneEntries<A, J, STRIP> &out, int tile, int count) const {
        if constexpr (CAN_LOAD_QUADS) {
            const int last = (count - 1) / QUAD;
            if (by_quads && origin + tile + QUAD * (last + 1) <= a.nnz) {
#pragma unroll
                for (int v = 0; v < STRIP; v += QUAD) {
                    const int k = min((first + v * WARP) / QUAD, last) * QUAD;
                    load_quad(out.column + v, indices + tile + k);
                    load_quad(out.value + v, values + tile + k);
                }
                return;
            }
        }
#pragma unroll
        for (int v = 0; v < STRIP; ++v) {
            const int k = min(first + ahead(v, distance, QUAD * WARP), count - 1);
            out.column[v] = load_once(indices + tile + k, a.policy);
            out.value[v] = load_once(values + tile + k, a.policy);
        }
    }

    template <class T> static __device__ __forceinline__ void load_quad(T *out, const T *p) {
        T loaded[QUAD];
        load_group(loaded, p);
#pragma unroll
        for (int i = 0; i < QUAD; ++i)
            out[i] = loaded[i];
    }

    // Elements of x for the lane's columns of a tile with `count` entries.
    template <int STRIP>
    __device__ __forceinline__ void gather(const J (&column)[STRIP], int tile, int count,
                                           X (&factor)[STRIP]) const {
        if constexpr (Csr<A, I, J>::IS_NARROW) {
            // The entries of one load belong to one chunk, except that lanes without an entry
            // behind the last one load an entry of the last chunk.
            static_assert(CHUNK == WARP && !CAN_LOAD_QUADS);
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

    // Stores the products of the lane's entries of a tile. Slots of entries that are not in the
    // region get products of other entries, which must not be added: they may be Inf or NaN.
    template <class Acc, int STRIP>
    __device__ __forceinline__ void multiply(const LaneEntries<A, J, STRIP> &loaded, int tile,
                                             int count, Slice<Acc> &slice) const {
        using S = Slice<Acc>;
        X factor[STRIP];
        gather(loaded.column, tile, count, factor);
        Acc *products = slice.products + S::slot(first);
        const int slots = by_quads ? 1 : S::slot(WARP);
#pragma unroll
        for (int v = 0; v < STRIP; ++v)
            products[ahead(v, slots, S::slot(QUAD * WARP))] =
                mul(widen<Acc>(loaded.value[v]), widen<Acc>(factor[v]));
    }
};

// Most entries of a row in a tile that a lane adds up in turn. From the first 32 rows on of which
// one has more, lanes add equal numbers of the tile's entries, whatever their rows.
constexpr int MOST_IN_TURN = 16;

// Sums the entries of [from, to) and writes y for the rows that start and end there.
template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void sum_region(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                           Acc alpha, Acc beta, MergePoint from, MergePoint to,
                                           Slice<Acc> &slice, Piece<Acc> &piece) {
    constexpr int TILE = Slice<Acc>::TILE;
    const int lane = threadIdx.x % WARP;
    // Entries of the tile that come before those of the region.
    int skip = int(from.entry % WARP);
    const bool joins = from.row < a.rows && from.entry > a.start(from.row);
    const Region<A, X, I, J> region(a, x, from, to);
    const auto count_of = [&](int tile) { return min(region.entries - tile, TILE); };
    const auto store = [&](int row, Acc sum) {
        if (joins && row == 0) {
            piece.head = sum;
        } else {
            y.store(a.row_of_y(from.row + row), alpha, sum, beta);
        }
    };
    Acc carry = zero<Acc>();
    int row = 0, tile = 0;
    LaneEntries<A, J, Slice<Acc>::STRIP> loaded;
    if (region.entries > skip)
        region.load(loaded, 0, count_of(0));
    for (bool more = region.rows > 0 || region.entries > skip; more; more = tile < region.entries) {
        const int count = count_of(tile);
        // Ends of 32 rows as entries of the tile; TILE + 1 for rows that do not end in it.
        const auto ends_of = [&](int first_row) {
            return region.template end_of<TILE + 1>(first_row, tile);
        };
        // The next 32 rows, a lane each: the first starts at entry `start`, the lane's ends before
        // entry `end`.
        int start = skip, end = ends_of(row);
        if (count > skip)
            region.multiply(loaded, tile, count, slice);
        // The next tile is on its way while this one is summed.
        if (tile + TILE < region.entries)
            region.load(loaded, tile + TILE, count_of(tile + TILE));
        __syncwarp();
        const auto start_of_lane = [&](int start, int end) {
            const int before = __shfl_up_sync(ALL_LANES, end, 1);
            return lane == 0 ? start : before;
        };
        // Sums short rows, a lane each, until there is a long one among 32.
        bool is_summed = false;
        while (!is_summed) {
            const int begin = start_of_lane(start, end), stop = min(end, count);
            if (__any_sync(ALL_LANES, stop - begin > MOST_IN_TURN))
                break;
            Acc sum = lane == 0 ? carry : zero<Acc>();
            for (int k = begin; k < stop; ++k)
                sum = add(sum, slice.products[Slice<Acc>::slot(k)]);
            __syncwarp();
            const bool ends_here = end <= count;
            if (ends_here)
                store(row + lane, sum);
            const int ended = __popc(__ballot_sync(ALL_LANES, ends_here));
            row += ended;
            if (ended < WARP) {
                carry = shuffle_index<WARP>(sum, ended);
                is_summed = true;
            } else {
                carry = zero<Acc>();
                start = __shfl_sync(ALL_LANES, end, WARP - 1);
                end = ends_of(row);
            }
        }
        if (!is_summed) {
            for (int k = lane; k < start; k += WARP)
                slice.products[Slice<Acc>::slot(k)] = zero<Acc>();
            for (int k = max(count, start) + lane; k < TILE; k += WARP)
                slice.products[Slice<Acc>::slot(k)] = zero<Acc>();
            // Calls f(row, end, start) for this lane's rows that end in the tile; returns the first
            // row that does not.
            const auto for_rows = [&](auto f) {
                int first_row = row, first_start = start, its_end = end;
                while (true) {
                    const int begin = start_of_lane(first_start, its_end);
                    const bool ends_here = its_end <= count;
                    if (ends_here)
                        f(first_row + lane, its_end, begin);
                    const int ended = __popc(__ballot_sync(ALL_LANES, ends_here));
                    first_row += ended;
                    if (ended < WARP)
                        return first_row;
                    first_start = __shfl_sync(ALL_LANES, its_end, WARP - 1);
                    its_end = ends_of(first_row);
                }
            };
            for_rows([&](int, int end, int start) {
                if (end > start)
                    slice.ends[end - 1] = 1;
            });
            __syncwarp();
            carry = sum_segments(slice, carry);
            __syncwarp();
            row = for_rows([&](int row, int end, int start) {
                const bool is_empty = end <= start;
                store(row, is_empty ? zero<Acc>() : slice.products[Slice<Acc>::slot(end - 1)]);
            });
        }
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
