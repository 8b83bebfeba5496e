// SpMV `csr`, form `long_rows`: a warp, or a block of up to 512 threads, sums each row
// ("CSR-vector", Bell and Garland 2009). A row that is very long for them is *cut* at every
// multiple of `piece` entries of the matrix, and each piece is summed by threads of its own.
// Threads of a row load its first entries without a search, so this is the fastest form for small
// matrices with rows of about a dozen entries or more; only the row of a piece after the first is
// found by one.
//
// Groups of `lanes` threads are numbered through the grid. Group r < rows takes row r from its
// first entry to its end or, if it is cut, to the first cut. Group rows + c − 1 takes the piece
// that begins at entry c · piece, if it is inside of a row that is cut, and has nothing to do
// otherwise. If analysis knows that no row is cut, these groups are not launched, and `most` is
// INT64_MAX.
#pragma once

#include "common/complex.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

// Largest number of threads of a row; a block has as many, and WARPS_OF_ROWS rows if a warp is
// enough for a row. src/select/spmv/csr.rs has the same constants.
constexpr int MOST_LANES = 512;
constexpr int WARPS_OF_ROWS = 4;
// Number of entries of a lane in flight at one time.
constexpr int LONG_ROW_UNROLL = 4;

// Number of blocks per multiprocessor for which registers must suffice, so that enough entries are
// in flight.
template <class Acc>
constexpr int LONG_ROW_BLOCKS = sizeof(Acc) <= (IS_COMPLEX<Acc> ? 4 : 8) ? 3 : 2;

// Sum of value · x[column] over the entries begin + thread, begin + thread + stride, … before
// `end`, a lane's share of a piece. Unlike `dot`, full steps compare no single entries, so that all
// loads of a step are in flight together; all threads make the same number of full steps, and those
// with entries left make one more.
template <class Acc, class A, class X, class I, class J>
__device__ __forceinline__ Acc dot_of_piece(const Csr<A, I, J> &a, const X *x, int64_t begin,
                                            int64_t end, int thread, int stride) {
    constexpr int N = LONG_ROW_UNROLL;
    Acc sum = zero<Acc>();
    const J *columns = a.indices + begin + thread;
    const A *values = a.values + begin + thread;
    J column[N];
    A value[N];
    X factor[N];
    const int step = N * stride;
    int64_t left = end - begin;
    for (; left >= step; left -= step) {
#pragma unroll
        for (int u = 0; u < N; ++u) {
            column[u] = load_line(columns + u * stride, a.policy);
            value[u] = load_line(values + u * stride, a.policy);
        }
#pragma unroll
        for (int u = 0; u < N; ++u)
            factor[u] = load_cached(x + column[u]);
#pragma unroll
        for (int u = 0; u < N; ++u)
            sum = fma(widen<Acc>(value[u]), widen<Acc>(factor[u]), sum);
        columns += step;
        values += step;
    }
    if (thread < left) {
        // Beyond the end the first entry is loaded again, and not multiplied.
        const int rest = int(left) - thread;
#pragma unroll
        for (int u = 0; u < N; ++u) {
            const int at = u * stride < rest ? u * stride : 0;
            column[u] = load_line(columns + at, a.policy);
            value[u] = load_line(values + at, a.policy);
        }
#pragma unroll
        for (int u = 0; u < N; ++u)
            factor[u] = load_cached(x + column[u]);
#pragma unroll
        for (int u = 0; u < N; ++u) {
            if (u * stride < rest)
                sum = fma(widen<Acc>(value[u]), widen<Acc>(factor[u]), sum);
        }
    }
    return sum;
}

// Entries [begin, end) of a row. Pieces of one row have the numbers from `first_piece` on.
struct RowPiece {
    int64_t row, begin, end;
    // Number of the piece and of the row's first one; both 0 for a row that is not cut.
    int64_t piece, first_piece;
    // Number of the row's pieces: 1 if it is not cut, 0 if this group has nothing to do.
    int64_t count;
};

// Returns the last row that starts at or before entry `position`, found by a warp.
template <class A, class I, class J>
__device__ __forceinline__ int64_t row_of_entry(const Csr<A, I, J> &a, int64_t position) {
    int64_t from = 0, to = a.rows;
    while (to - from > 1) {
        const int64_t step = (to - from + WARP - 1) / WARP, row = from + threadIdx.x % WARP * step;
        const unsigned before = __ballot_sync(ALL_LANES, row < to && a.start(row) <= position);
        from += (WARP - 1 - __clz(before)) * step;
        to = min(to, from + step);
    }
    return from;
}

// Returns what group `group` sums; rows of more than `most` entries are cut.
template <class A, class I, class J>
__device__ __forceinline__ RowPiece row_piece(const Csr<A, I, J> &a, int64_t group, int64_t piece,
                                              int64_t most) {
    const bool is_first = group < a.rows;
    const int64_t cut = is_first ? 0 : (group - a.rows + 1) * piece;
    if (cut >= a.nnz && !is_first)
        return {};
    const int64_t row = is_first ? group : row_of_entry(a, cut);
    const int64_t begin = a.start(row), end = a.start(row + 1);
    if (end - begin <= most)
        return {row, begin, end, 0, 0, is_first};
    const int64_t first = begin / piece, count = (end - 1) / piece - first + 1;
    if (is_first)
        return {row, begin, (first + 1) * piece, first, first, count};
    // A row that starts at the cut has no piece before it.
    return {row, cut, min(end, cut + piece), cut / piece, first, cut > begin ? count : 0};
}

// Computes y. A block has one group of `lanes` threads, or WARPS_OF_ROWS warps. most ≥ piece.
// `parts` has two sums for each number of a piece, and `arrivals` one counter: the first piece of a
// row may have the same number as the last piece of an earlier row.
template <class A, class X, class Y, class Acc, class I, class J>
__device__ __forceinline__ void long_rows(const Csr<A, I, J> &a, const X *x, const Target<Y> &y,
                                          Acc alpha, Acc beta, int lanes, int64_t piece,
                                          int64_t most, Acc *parts, uint32_t *arrivals) {
    __shared__ Acc partial[MOST_LANES / WARP];
    if (is_zero(alpha)) {
        scale_rows(y, a.rows, beta);
        return;
    }
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const bool is_warp = lanes == WARP;
    const int64_t group = is_warp ? int64_t(blockIdx.x) * WARPS_OF_ROWS + warp : blockIdx.x;
    const RowPiece mine = row_piece(a, group, piece, most);
    if (mine.count == 0)
        return;
    const int thread = is_warp ? lane : int(threadIdx.x);
    const X *row_x = a.x_of(x, mine.row);
    Acc sum;
    // With sums of 4 bytes `dot`, too, has all loads in flight, and is 8 to 17 % faster.
    if constexpr (sizeof(Acc) <= 4) {
        sum = dot<LONG_ROW_UNROLL, Acc>(a, row_x, mine.begin + thread, mine.end, lanes);
    } else {
        sum = dot_of_piece<Acc>(a, row_x, mine.begin, mine.end, thread, lanes);
    }
    __syncwarp();
    sum = sum_of_lanes(sum);
    if (!is_warp) {
        if (lane == 0)
            partial[warp] = sum;
        __syncthreads();
        if (warp != 0)
            return;
        sum = sum_of_lanes(lane < lanes / WARP ? partial[lane] : zero<Acc>());
    }
    if (mine.count > 1) {
        const auto part_of = [&](int64_t number) {
            return parts + 2 * number + (number == mine.first_piece);
        };
        if (lane == 0)
            *part_of(mine.piece) = sum;
        uint32_t *arrived = arrivals + mine.first_piece;
        if (!is_last_to_arrive(arrived, uint32_t(mine.count)))
            return;
        sum = sum_of_parts<Acc>(mine.first_piece, mine.first_piece + mine.count,
                                [&](int64_t number) { return load_l2(part_of(number)); });
        if (lane == 0)
            *arrived = 0;
    }
    if (lane == 0)
        y.store(a.row_of_y(mine.row), alpha, sum, beta);
}

} // namespace tarsia::spmv
