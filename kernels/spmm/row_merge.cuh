// SpMM `row` without a plan where rows of B and C are aligned to 16 bytes (spmm/row_merge.cu), or
// where both are by columns (spmm/row_merge_columns.cu): C = alpha · A · B + beta · C in one
// launch, by CUDA cores.
//
// Rows and entries together are a path: row r is at r + offsets[r], and its entries follow it. Each
// warp has `work` consecutive places of the path. It finds the row at its first one by a search of
// the offsets, so that warps have about equal work without any list, whatever the lengths of the
// rows are. A row is multiplied by the warp that has its start: a group of lanes takes a row, as in
// spmm/row_groups.cuh, or all groups of the warp share one that is longer than its neighbours. Only
// rows of more than `longest_unsplit_row` entries are split at the borders of warps. Their partial
// sums go to memory, and the last warp of a row to end adds them in the order of the path, so that
// results have the same bits from run to run.
//
// Source: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication" (SC
// 2016); C. Yang, A. Buluç, J. D. Owens, "Design principles for sparse matrix multiplication on the
// GPU" (Euro-Par 2018), who divide SpMM so. There rows are split at every border; that only long
// ones are is the library's own.
#pragma once

#include "ptx/prefetch.cuh"
#include "spmm/row_groups.cuh"

namespace tarsia {

// Division of the path among the warps of a launch. Its length is less than 2^31.
struct MergePath {
    int32_t rows, length;
    // Rows and entries of a warp together, and number of warps.
    int32_t work, warps;
    // At least 2 · work: a row that is split is longer, so that the next row starts at least two
    // warps behind the warp in which it starts.
    int32_t longest_unsplit_row;
    // 1 if sums are stored to C unscaled.
    int32_t is_raw;
    // Warps / 2 + 1 for each tile of columns; zero before the launch and after it.
    unsigned *counters;
};

// Row offsets of a matrix, counted from 0: the first is 0, and the last the number of entries.
struct RowStarts {
    Offsets offsets;
    int64_t base;

    __device__ __forceinline__ int at(int row) const { return int(offsets.at(row) - base); }
};

// Returns the first row at place `place` of the path or behind it, by all lanes of a warp.
__device__ __forceinline__ int row_of_path(const RowStarts &starts, int rows, int place) {
    const int lane = threadIdx.x % WARP;
    int first = 0, others = rows; // the row is one of first..first + others
    while (others > 0) {
        const int step = (others + WARP - 1) / WARP;
        const int sample = lane * step;
        const bool is_before =
            sample < others && first + sample + starts.at(first + sample) < place;
        const int before = __popc(__ballot_sync(ALL_LANES, is_before));
        if (before == 0)
            break;
        const int skipped = (before - 1) * step + 1;
        first += skipped;
        others = min(step - 1, others - skipped);
    }
    return first;
}

// Rows that a warp multiplies at one time: `count` of them, each by 2^sharing_log2 groups. This
// lane's group has `length` entries of its row from `begin` on. A part of a split row stands alone.
struct RowTurn {
    int begin, length, count, sharing_log2;
    bool is_part;
};

// The next 31 rows: lane i has the start of row `first` + i.
struct RowsAhead {
    int first, begin;
    // Lane of the row that comes next.
    int next;

    __device__ __forceinline__ void load(const RowStarts &starts, int rows) {
        begin = starts.at(max(0, min(first + int(threadIdx.x % WARP), rows)));
    }
    __device__ __forceinline__ int length() const {
        return __shfl_down_sync(ALL_LANES, begin, 1) - begin;
    }
};

// Finds the rows of the next turn of a warp whose part of the path ends before `end`; none if their
// count is 0. Rows that are not much longer than their neighbours take a group each, or several if
// groups are left over; a longer one takes all groups.
template <int LANES>
__device__ __forceinline__ RowTurn next_turn(const MergePath &path, const RowsAhead &ahead,
                                             int end) {
    constexpr int GROUPS = WARP / LANES, LEAST = 16;
    const int lane = threadIdx.x % WARP, group = lane / LANES;
    const int row = ahead.first + lane, length = ahead.length();
    const bool is_here = lane < WARP - 1 && row < path.rows && row + ahead.begin < end;
    const unsigned here = __ballot_sync(ALL_LANES, is_here) >> ahead.next;
    RowTurn turn = {0, 0, 0, LOG2<GROUPS>, false};
    if (here == 0)
        return turn;
    int limit = path.longest_unsplit_row;
    if (GROUPS > 1) {
        // One and a half times the mean of as many rows as there are groups.
        const bool is_near = is_here && lane >= ahead.next && lane < ahead.next + GROUPS;
        const int entries = __reduce_add_sync(ALL_LANES, is_near ? min(length, 1 << 20) : 0);
        limit = min(limit, max(LEAST, 3 * entries / (2 * GROUPS)));
    }
    const unsigned alike = __ballot_sync(ALL_LANES, is_here && length <= limit) >> ahead.next;
    // The last lane has only the end of a row, so that it is not among them.
    const int count = min(GROUPS, __ffs(~alike) - 1);
    turn.count = max(count, 1);
    if (count > 1)
        turn.sharing_log2 = 31 - __clz(GROUPS / count);
    const int which = group >> turn.sharing_log2, from = (ahead.next + which) % WARP;
    turn.begin = __shfl_sync(ALL_LANES, ahead.begin, from);
    turn.length = __shfl_sync(ALL_LANES, length, from);
    if (which >= turn.count)
        turn.length = 0;
    if (count == 0 && turn.length > path.longest_unsplit_row) {
        turn.is_part = true;
        turn.length = min(turn.length, end - (ahead.first + ahead.next) - 1 - turn.begin);
    }
    return turn;
}

// Part of a split row that warp `warp` has. The next split row starts in a warp next >= last, and
// next >= first + 2. So slots first + first / 2 + i for part i end before those of the next row
// begin, which is at next + next / 2, and so do counters: one from first / 2 on, or, for more than
// JOINED parts, count / JOINED rounded up and one more, which are no more than next / 2 - first
// / 2.
__device__ __forceinline__ Part part_of_row(const MergePath &path, const RowStarts &starts, int row,
                                            int warp) {
    const int first = (row + starts.at(row)) / path.work,
              last = (row + starts.at(row + 1)) / path.work;
    Part part;
    part.first = first + first / 2;
    part.count = last - first + 1;
    part.index = warp - first;
    part.counter = first / 2;
    return part;
}

// Tile of columns of a C whose rows are aligned to 16 bytes, as row_groups computes it: the lanes
// of a group lie along the columns. n is a multiple of WIDTH and, if PACKS > 1, of tiles.
template <class Value, class J, class X, class Y, class Acc, int LANES_, int WIDTH, int PACKS>
struct RowTile {
    static constexpr int LANES = LANES_, COUNT = PACKS * WIDTH;
    static constexpr int COLUMNS = COUNT * LANES;
    const J *indices;
    const Value *values;
    int32_t base;
    // The lane's first column of B.
    const char *b;
    uint32_t b_packs;
    Y *c;
    int64_t c_row;
    int col;
    bool has_columns, has_entries;

    __device__ __forceinline__ RowTile(const J *indices, const Value *values, int64_t base,
                                       const X *b, uint32_t b_packs, Y *c, int64_t c_row, int32_t n,
                                       bool has_entries)
        : indices(indices), values(values), base(int32_t(base)), b_packs(b_packs), c(c),
          c_row(c_row), has_entries(has_entries) {
        col = int(blockIdx.y) * COLUMNS + int(threadIdx.x % LANES) * WIDTH;
        has_columns = col < n;
        // Lanes beyond the last column read the first ones, and store nothing.
        this->b = reinterpret_cast<const char *>(b + (has_columns ? col : 0));
        keep_address(this->b);
    }

    // Position of the lane's sum number i in a row of sums in the workspace: its column.
    __device__ __forceinline__ int place(int i) const {
        return col + i / WIDTH * (WIDTH * LANES) + i % WIDTH;
    }

    // Computes the sums of a row, of which this group is number `which` of 2^sharing_log2.
    __device__ __forceinline__ void multiply(Acc (&sums)[COUNT], const RowTurn &turn,
                                             int which) const {
        const int each = (turn.length + (1 << turn.sharing_log2) - 1) >> turn.sharing_log2;
        const int before = min(which * each, turn.length), at = turn.begin + before;
        set_zero(sums);
        add_group_entries<LANES, X, WIDTH, PACKS, 1>(
            sums, b, b_packs, indices + at, values + at, base,
            has_entries ? min(each, turn.length - before) : 0);
        add_groups<LANES>(sums, 1 << turn.sharing_log2);
    }

    __device__ __forceinline__ void store(int row, const Acc (&sums)[COUNT], Acc alpha,
                                          Acc beta) const {
#pragma unroll
        for (int p = 0; p < PACKS; ++p)
            store_packs<WIDTH>(c + int64_t(row) * c_row + col + p * (WIDTH * LANES),
                               sums + p * WIDTH, alpha, beta);
    }
};

// Computes a tile of C.
template <class Tile, class Acc>
__device__ __forceinline__ void row_merge(const RowStarts &starts, const MergePath &path,
                                          const Tile &tile, const Scalar<Acc> &alpha_,
                                          const Scalar<Acc> &beta_, const Partial<Acc> &partial) {
    constexpr int LANES = Tile::LANES, GROUPS = WARP / LANES, COUNT = Tile::COUNT;
    const int warp = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP;
    if (warp >= path.warps)
        return;
    const int begin = warp * path.work, end = min(begin + path.work, path.length);
    const int group = threadIdx.x % WARP / LANES;
    const auto store_row = [&](int row, const Acc(&sums)[COUNT]) {
        const Acc alpha = path.is_raw ? Acc(1) : alpha_.get();
        const Acc beta = path.is_raw ? zero<Acc>() : beta_.get();
        tile.store(row, sums, alpha, beta);
    };

    const int first_row = row_of_path(starts, path.rows, begin);
    // The row before may have entries here.
    RowsAhead ahead = {first_row - 1, 0, 1};
    ahead.load(starts, path.rows);
    const int start_before = __shfl_sync(ALL_LANES, ahead.begin, 0),
              length_before = __shfl_sync(ALL_LANES, ahead.length(), 0);
    // Entry e of the row before is at place first_row + e.
    bool continues = first_row > 0 && length_before > path.longest_unsplit_row &&
                     start_before + length_before > begin - first_row;
    const bool has_earlier = continues;
    int later = -1; // split row that begins here
    for (;; continues = false) {
        RowTurn turn;
        if (continues) {
            ahead.next = 0;
            const int from = begin - first_row;
            turn = {from, min(end - first_row, start_before + length_before) - from, 1,
                    LOG2<GROUPS>, true};
        } else {
            if (ahead.next >= WARP - 1) {
                ahead.first += ahead.next;
                ahead.next = 0;
                ahead.load(starts, path.rows);
            }
            turn = next_turn<LANES>(path, ahead, end);
            if (turn.count == 0)
                break;
        }
        const int which = group & ((1 << turn.sharing_log2) - 1);
        Acc sums[COUNT];
        tile.multiply(sums, turn, which);
        const int row_of_turn = group >> turn.sharing_log2, row = ahead.first + ahead.next;
        if (turn.is_part) {
            const Part part = part_of_row(path, starts, row, warp);
            Acc *const to = partial.sums + int64_t(part.first + part.index) * partial.stride;
            if (group == 0 && tile.has_columns) {
#pragma unroll
                for (int i = 0; i < COUNT; ++i)
                    to[tile.place(i)] = sums[i];
            }
            if (!continues)
                later = row;
        } else if (row_of_turn < turn.count && which == 0 && tile.has_columns) {
            store_row(row + row_of_turn, sums);
        }
        ahead.next += turn.count;
    }
    // All parts of this warp are stored before it asks for the first of the others.
    unsigned *const counters = path.counters + int64_t(blockIdx.y) * (path.warps / 2 + 1);
#pragma unroll 1
    for (int side = has_earlier ? 0 : 1; side < (later < 0 ? 1 : 2); ++side) {
        const int row = side == 0 ? first_row - 1 : later;
        const auto place = [&](int i) { return tile.has_columns ? tile.place(i) : -1; };
        Acc sums[COUNT];
        const bool has_row = join_parts<LANES, true>(sums, part_of_row(path, starts, row, warp),
                                                     partial.sums, partial.stride, counters, place);
        if (has_row && group == 0 && tile.has_columns)
            store_row(row, sums);
    }
}

} // namespace tarsia
