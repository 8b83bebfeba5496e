// Row statistics of a product: the number of multiplications of each row, bins of similar rows, and
// the offsets of C. Nothing here depends on the types of values.
#include "spgemm/common.cuh"
#include "spgemm/row_bins.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Sums saturate at this, so that the sum of two does not wrap around.
constexpr unsigned long long MOST = 0x7fffffffffffffffull;
// Number of steps of a row's lanes above which the whole warp takes the row. Lanes per row follow
// the mean number of entries, so the longest row would determine the time.
constexpr int64_t LONG_ROW = 16;

// Restricts [begin, end), the entries of a row, to the slice of this row of the grid.
__device__ __forceinline__ void take_slice(int64_t &begin, int64_t &end) {
    if (gridDim.y == 1)
        return;
    const int64_t slice = (end - begin + gridDim.y - 1) / gridDim.y;
    begin = min(end, begin + slice * blockIdx.y);
    end = min(end, begin + slice);
}

// Combines what the lanes of a row, `lanes` of them, find in its entries [begin, end): look(at,
// stop, step) goes through the entries at, at + step, … before `stop`, and merge(found, lanes)
// combines what groups of so many neighbouring lanes have found, in all of them. The whole warp
// takes rows that are long for their lanes.
template <class Look, class Merge>
__device__ __forceinline__ auto find_in_row(int lanes, int64_t begin, int64_t end, Look look,
                                            Merge merge) {
    const int inner = threadIdx.x % lanes;
    const bool is_long = end - begin > LONG_ROW * lanes;
    auto found = look(begin + inner, is_long ? begin : end, lanes);
    for (unsigned rest = __ballot_sync(ALL_LANES, is_long && inner == 0); rest != 0;
         rest &= rest - 1) {
        const int owner = __ffs(rest) - 1;
        const int64_t from = __shfl_sync(ALL_LANES, begin, owner),
                      to = __shfl_sync(ALL_LANES, end, owner);
        auto all = look(from + lane_id(), to, 32);
        merge(all, 32);
        if (owner == lane_id())
            found = all;
    }
    merge(found, lanes);
    return found;
}

// Least and largest column of a row.
struct Extent {
    int64_t low = INT64_MAX, high = -1;
};

// Bins of a small product's rows, by their number of products alone: up to limits[0], up to
// limits[1] and so on; the last bin has no limit. `list` has `stride` elements for each bin.
// (`SmallBins` in src/backend/cuda/spgemm/small.rs.)
constexpr int SMALL_BINS = 6;
struct SmallBins {
    int64_t limits[5];
    unsigned long long *counts;
    uint32_t *list;
    int64_t stride;
};

// Returns the position of the thread's row among the block's rows of the same bin (−1: no bin),
// which `mine` counts from zero. All threads of the warp call it: one lane counts for all lanes
// with its bin, since atomics to one address are serialized.
__device__ __forceinline__ unsigned position_in_bin(int bin, unsigned *mine) {
    const unsigned peers = __match_any_sync(ALL_LANES, bin);
    unsigned place = 0;
    if (bin >= 0 && (peers & lanes_before()) == 0)
        place = atomicAdd(mine + bin, static_cast<unsigned>(__popc(peers)));
    return __shfl_sync(ALL_LANES, place, __ffs(peers) - 1) + __popc(peers & lanes_before());
}

// Appends the thread's row to the bin for `work` products, or to none if it has no products. All
// threads of the block call it; `mine` and `start` are SMALL_BINS words of shared memory. Ends with
// a barrier.
__device__ __forceinline__ void append_to_bin(const SmallBins &bins, int64_t row, int64_t work,
                                              unsigned *mine, unsigned long long *start) {
    if (threadIdx.x < SMALL_BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    int bin = -1;
    if (work > 0) {
        bin = SMALL_BINS - 1;
#pragma unroll
        for (int i = SMALL_BINS - 2; i >= 0; --i) {
            if (work <= bins.limits[i])
                bin = i;
        }
    }
    const unsigned place = position_in_bin(bin, mine);
    __syncthreads();
    if (threadIdx.x < SMALL_BINS && mine[threadIdx.x] > 0) {
        start[threadIdx.x] = atomicAdd(bins.counts + threadIdx.x,
                                       static_cast<unsigned long long>(mine[threadIdx.x]));
    }
    __syncthreads();
    if (bin >= 0)
        bins.list[bin * bins.stride + start[bin] + place] = static_cast<uint32_t>(row);
    __syncthreads();
}

} // namespace

// products[i] = sum over row i of `left` of the lengths of `right`'s rows, at most 2^63 − 1; the
// sums of their low and high 32 bits are added to totals[0] and [1]. `lanes` threads (a power of
// two up to 32) per row; any grid. If gridDim.y > 1, each row of blocks takes a slice of every row,
// and `products` must be zero before; otherwise rows are also put into `bins`, if these have a
// list, and the rows + 1 numbers `entries` become zero, unless that is NULL.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_products(Factor left, Factor right, int64_t rows, int32_t lanes, int64_t *products,
                    unsigned long long *totals, SmallBins bins, int64_t *entries) {
    __shared__ unsigned long long of_warps[32];
    __shared__ unsigned in_bin[SMALL_BINS];
    __shared__ unsigned long long bin_start[SMALL_BINS];
    const int64_t rows_a_block = blockDim.x / lanes;
    const int inner = threadIdx.x % lanes;
    unsigned long long low = 0, high = 0;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / lanes;
        int64_t begin = row < rows ? left.start(row) : 0;
        int64_t end = row < rows ? left.start(row + 1) : 0;
        take_slice(begin, end);
        const auto look = [&](int64_t at, int64_t stop, int step) {
            unsigned long long sum = 0;
            // Four at a time, so that their loads overlap.
            for (; at + 3 * static_cast<int64_t>(step) < stop; at += 4 * step) {
                int64_t k[4];
#pragma unroll
                for (int h = 0; h < 4; ++h)
                    k[h] = left.column(at + h * step);
                int64_t length[4];
#pragma unroll
                for (int h = 0; h < 4; ++h)
                    length[h] = right.start(k[h] + 1) - right.start(k[h]);
#pragma unroll
                for (int h = 0; h < 4; ++h)
                    sum = min(sum + length[h], MOST);
            }
            for (; at < stop; at += step) {
                const int64_t k = left.column(at);
                sum = min(sum + (right.start(k + 1) - right.start(k)), MOST);
            }
            return sum;
        };
        const auto merge = [](unsigned long long &sum, int lanes) {
            sum = reduce_lanes(sum, lanes, [](unsigned long long a, unsigned long long b) {
                return min(a + b, MOST);
            });
        };
        const unsigned long long sum = find_in_row(lanes, begin, end, look, merge);
        if (row < rows && inner == 0) {
            if (entries != nullptr)
                entries[row] = 0;
            // Rows whose sums might exceed MOST are not cut into slices.
            if (gridDim.y == 1) {
                products[row] = static_cast<int64_t>(sum);
            } else if (sum > 0) {
                atomicAdd(reinterpret_cast<unsigned long long *>(products + row), sum);
            }
            low += sum & 0xffffffffu;
            high += sum >> 32;
        }
        if (bins.list != nullptr) {
            const bool owns = row < rows && inner == 0;
            append_to_bin(bins, row, owns ? static_cast<int64_t>(sum) : 0, in_bin, bin_start);
        }
    }
    if (entries != nullptr && first_item() == 0)
        entries[rows] = 0;
    add_halves(low, high, of_warps, totals);
}

// Computes lows[i] and spans[i]: the columns of row i of the product are in [low, low + span), for
// rows that have at least `least` products and are in no shifted run (`shifted_runs` may be NULL);
// for others, spans[i] = 0. Columns of `right` ascend. `lanes` threads per row, as above. If
// gridDim.y > 1, lows must be large and spans −1 before, and spans[i] becomes the last column.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_extents(Factor left, Factor right, int64_t rows, int32_t lanes, const int64_t *products,
                   int64_t least, const uint8_t *shifted_runs, int64_t *lows, int64_t *spans) {
    const int64_t rows_a_block = blockDim.x / lanes;
    const int inner = threadIdx.x % lanes;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / lanes;
        const bool wanted = row < rows && products[row] >= least &&
                            (shifted_runs == nullptr || shifted_runs[row] == 1);
        int64_t begin = wanted ? left.start(row) : 0;
        int64_t end = wanted ? left.start(row + 1) : 0;
        take_slice(begin, end);
        const auto look = [&](int64_t at, int64_t stop, int step) {
            Extent found;
            // Four at a time, so that their loads overlap.
            constexpr int HELD = 4;
            for (; at < stop; at += HELD * step) {
                int64_t start[HELD], last[HELD];
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    const int64_t own = at + h * step;
                    const int64_t k = left.column(own < stop ? own : at);
                    start[h] = right.start(k);
                    last[h] = right.start(k + 1) - 1;
                }
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    if (start[h] <= last[h]) {
                        found.low = min(found.low, right.column(start[h]));
                        found.high = max(found.high, right.column(last[h]));
                    }
                }
            }
            return found;
        };
        const auto merge = [](Extent &found, int lanes) {
            for (int step = lanes / 2; step > 0; step /= 2) {
                found.low = min(found.low, __shfl_xor_sync(ALL_LANES, found.low, step));
                found.high = max(found.high, __shfl_xor_sync(ALL_LANES, found.high, step));
            }
        };
        const auto [low, high] = find_in_row(lanes, begin, end, look, merge);
        if (row < rows && inner == 0) {
            if (gridDim.y == 1) {
                lows[row] = wanted ? low : 0;
                spans[row] = wanted ? high - low + 1 : 0;
            } else if (low <= high) {
                atomicMin(reinterpret_cast<long long *>(lows + row), low);
                atomicMax(reinterpret_cast<long long *>(spans + row), high);
            }
        }
    }
}

// Runs after the slices of spgemm_extents: computes spans from last columns.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_spans(int64_t rows, int64_t *lows, int64_t *spans) {
    const int64_t row = first_item();
    if (row >= rows)
        return;
    const int64_t high = spans[row];
    spans[row] = high >= 0 ? high - lows[row] + 1 : 0;
    if (high < 0)
        lows[row] = 0;
}

// flags[0] |= 1 if the columns of some row descend, |= 2 if some row has a column twice in
// succession. If it stays 0, the columns of every row ascend strictly.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_order(Factor right, int64_t rows, int32_t lanes, unsigned *flags) {
    const int64_t rows_a_block = blockDim.x / lanes;
    const int inner = threadIdx.x % lanes;
    unsigned found = 0;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / lanes;
        if (row >= rows)
            continue;
        const int64_t start = right.start(row), end = right.start(row + 1);
        for (int64_t at = start + 1 + inner; at < end; at += lanes) {
            const int64_t before = right.column(at - 1), here = right.column(at);
            found |= here < before ? 1 : here == before ? 2 : 0;
        }
    }
    const unsigned descends = __syncthreads_or(found & 1), twice = __syncthreads_or(found & 2);
    const unsigned all = (descends ? 1 : 0) | (twice ? 2 : 0);
    if (threadIdx.x == 0 && all != 0)
        atomicOr(flags, all);
}

namespace {

// Rules that determine a row's bin (row_bins.cuh). Rows of up to `tiny` products are in the first
// bin of TABLE. The others are distributed by their properties:
// - DENSE_WINDOWS: rows with many products for the range of their columns.
// - SAME_PATTERN: groups of up to `group_work` products per row, and single rows of up to
//   `alone_work` products, go to the first of `groups` bins whose limit holds them. The limit is
//   for their range of columns in the symbolic phase (`value` = 0), and for their bytes of shared
//   memory if the entries, of `value` bytes, are known. Only the first row of a group is listed.
// - SHIFTED_PATTERN: in the symbolic phase, the first row of a shifted run goes by the rules below
// and
//   stands for all its rows. If entries are known, the first row goes to the first of
//   `shifted_runs` bins whose limit holds the entries of one row; if none does, each row goes by
//   the rules below.
// - SCALED_ROW: rows of `left` with one entry are in none of these bins; if entries are known, they
//   go to the last two bins, long ones to the last.
// - Of the rest, rows of up to `few` products go by size to the first of `count` bins of TABLE
//   whose limit holds them. Others go to the first of `blocks` bins of BLOCK_TABLE whose limit
//   holds them, if they have few products per entry, otherwise to BITMAP: first those of up to
//   `medium` products, then all others.
// (`Bins` in src/select/spgemm/bins.rs.)
struct Bins {
    int64_t limits[6];
    int64_t count;
    int64_t few;
    int64_t medium;
    int64_t group_limits[5];
    int64_t groups;
    int64_t value;
    int64_t tiny;
    int64_t shifted_run_limits[5];
    int64_t shifted_runs;
    int64_t block_limits[2];
    int64_t blocks;
};

// Number of warps that take rows alone at one time, twice as many as an H100 has room for: a row
// with more than this share of all products would determine the time.
// (src/select/spgemm/row_structures.rs has the same constant.)
constexpr int64_t ALONE_SHARE = 4096;

// Properties of rows besides their products. `spans` may be NULL; so may `groups` and
// `shifted_runs`, if each row is by itself. `left` holds the offsets of the left factor if rows
// with one entry are handled apart. A warp takes a row by itself if it has up to `alone_work`
// products or, if `totals` is not NULL, up to its share of the total there. (`RowStatistics` in
// src/backend/cuda/spgemm/bins.rs.)
struct RowStatistics {
    const int64_t *products;
    const int64_t *lows;
    const int64_t *spans;
    const uint8_t *groups;
    const uint8_t *shifted_runs;
    int64_t group_work;
    int64_t alone_work;
    const unsigned long long *totals;
    int64_t wide;
    Ints left;
    Cut cut;

    // Returns the statistics with `alone_work` computed from the totals, once per thread for all of
    // its rows.
    __device__ __forceinline__ RowStatistics shared_out() const {
        RowStatistics statistics = *this;
        if (totals != nullptr) {
            // Sums of low and high halves; larger totals are rejected later.
            const unsigned long long high = min(totals[1], 1ull << 30);
            statistics.alone_work =
                max(alone_work, static_cast<int64_t>((high << 32) + totals[0]) / ALONE_SHARE);
            statistics.totals = nullptr;
        }
        return statistics;
    }

    // Number of entries of the left factor's row, or 0 if that is not known.
    __device__ __forceinline__ int64_t left_entries(int64_t row) const {
        return left.data != nullptr ? left[row + 1] - left[row] : 0;
    }

    // Returns whether the row of C is a scaled row of `right`.
    __device__ __forceinline__ bool is_scaled_row(int64_t row) const {
        return left_entries(row) == 1;
    }

    __device__ __forceinline__ bool has_shifted_pattern(int64_t row) const {
        return shifted_runs != nullptr && shifted_runs[row] != 1;
    }
};

// Same constants as in kernels/spgemm/same_pattern.cu and dense_windows.cu.
constexpr int GROUP_ROWS = 3;
constexpr int64_t GROUP_SPAN = 65536, DENSE_WINDOW = 1024;
// Largest number of columns in a group's range for each product of its rows: a word of the bitmap,
// for 32 columns, costs about as much as two products.
constexpr int64_t GROUP_RANGE = 16;
// Number of entries of the left factor's row above which a row is no group by itself: a warp takes
// them one after the other, and the longest row would determine the time.
constexpr int64_t GROUP_ALONE = 256;
// Number of entries of C that each entry of the left factor's row counts for at least, where the
// row's lanes are chosen by its entries of C: lanes take as many entries of the left factor at a
// time as they are, each with a memory latency.
constexpr int64_t ENTRIES_PER_LEFT = 4;
// Number of products per entry up to which a block takes a row whose entries are known.
constexpr int64_t BLOCK_WORK = 4;
// Number of products per column of a row's range from which on the row is wide in any case, and
// number of columns per product up to which it is wide if it is no group: beyond, nearly all lanes
// that search a window find nothing.
constexpr int64_t DENSE_ALWAYS = 16, DENSE_RANGE = 4;
// Number of entries of a scaled row of `right` up to which a warp takes 32 such rows, as in
// kernels/spgemm/scaled_row.cu.
constexpr int64_t SCALED_SHORT = 64;

// Returns the number of windows of a wide row, 0 for other rows.
__device__ __forceinline__ int64_t dense_windows(const RowStatistics &statistics, int64_t row) {
    if (statistics.spans == nullptr || !statistics.wide || statistics.has_shifted_pattern(row) ||
        statistics.is_scaled_row(row))
        return 0;
    const int64_t span = statistics.spans[row], work = statistics.products[row];
    const bool alone = span > GROUP_SPAN || work > statistics.group_work ||
                       statistics.left_entries(row) > GROUP_ALONE ||
                       (work > statistics.alone_work &&
                        (statistics.groups == nullptr || statistics.groups[row] == 1));
    if (span == 0 || (alone ? work * DENSE_RANGE < span : work < DENSE_ALWAYS * span))
        return 0;
    const int64_t low = statistics.lows[row];
    return (low + span - 1) / DENSE_WINDOW - low / DENSE_WINDOW + 1;
}

// Returns the bin of a row, or −1 if the row has no products, if the first row of its group or
// shifted run stands for it, or if its number of entries is known without counting.
__device__ __forceinline__ int bin_of(const Bins &bins, const RowStatistics &statistics,
                                      const int64_t *offsets, int64_t row, int64_t windows) {
    const int64_t work = statistics.products[row];
    if (work == 0)
        return -1;
    if (work <= bins.tiny)
        return TABLE;
    if (statistics.is_scaled_row(row))
        return offsets == nullptr ? -1 : SCALED_ROW + (work > SCALED_SHORT);
    if (windows > 0)
        return DENSE_WINDOWS;
    const int64_t entries = offsets != nullptr ? offsets[row + 1] - offsets[row] : work;
    const bool shifted_runs = statistics.has_shifted_pattern(row);
    if (shifted_runs && offsets == nullptr && statistics.shifted_runs[row] == 0)
        return -1;
    if (shifted_runs && offsets != nullptr) {
#pragma unroll
        for (int bin = 0; bin < 5; ++bin) {
            if (bin < bins.shifted_runs && entries <= bins.shifted_run_limits[bin])
                return statistics.shifted_runs[row] != 0 ? SHIFTED_PATTERN + bin : -1;
        }
    }
    const int64_t span = statistics.spans != nullptr && !shifted_runs ? statistics.spans[row] : 0;
    if (span > 0 && span <= GROUP_SPAN && work <= statistics.group_work) {
        int64_t first = row;
        int rows = 1;
        if (statistics.groups != nullptr) {
            while (statistics.groups[first] == 0)
                --first;
            rows = statistics.groups[first];
        }
        const bool is_group = rows > 1 || (statistics.left_entries(row) <= GROUP_ALONE &&
                                           work <= statistics.alone_work);
        int64_t size = span;
        if (bins.value > 0) {
            const int passes = (rows + GROUP_ROWS - 1) / GROUP_ROWS;
            const int64_t sums = (rows + passes - 1) / passes * entries;
            size = (sums + 1) / 2 * 2 * bins.value + (span + 31) / 32 * 8 + 2 * entries;
        }
        // Unrolled, since a kernel parameter that is indexed at run time is copied to local memory.
#pragma unroll
        for (int bin = 0; bin < 5; ++bin) {
            if (is_group && bin < bins.groups && size <= bins.group_limits[bin] &&
                span <= GROUP_RANGE * rows * work)
                return first == row ? SAME_PATTERN + bin : -1;
        }
    }
    if (work <= min(bins.few, statistics.alone_work)) {
        // A row of many entries of `left` goes to a bin with more lanes, as long as there are
        // larger bins.
        const int64_t size = max(entries, ENTRIES_PER_LEFT * statistics.left_entries(row));
#pragma unroll
        for (int bin = 0; bin < 6; ++bin) {
            const bool fits =
                bin + 1 < bins.count ? size <= bins.limits[bin] : entries <= bins.limits[bin];
            if (bin < bins.count && fits)
                return TABLE + bin;
        }
    }
    if (offsets == nullptr || work <= BLOCK_WORK * entries) {
#pragma unroll
        for (int bin = 0; bin < 2; ++bin) {
            if (bin < bins.blocks && entries <= bins.block_limits[bin])
                return BLOCK_TABLE + bin;
        }
    }
    return BITMAP + (work > bins.medium);
}

} // namespace

// counts[bin] += number of rows of the bin; counts[ROW_BINS] += number of windows of wide rows,
// times the parts of each.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_count_bins(Bins bins, RowStatistics given, const int64_t *offsets, int64_t rows,
                      unsigned long long *counts) {
    const RowStatistics statistics = given.shared_out();
    // 32 bits, for which shared memory has native atomics.
    __shared__ unsigned mine[ROW_BINS];
    __shared__ unsigned long long of_warps[32];
    if (threadIdx.x < ROW_BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    unsigned long long windows = 0;
    for (int64_t row = first_item(); row < rows; row += grid_stride()) {
        const int64_t own = dense_windows(statistics, row);
        const int bin = bin_of(bins, statistics, offsets, row, own);
        if (bin >= 0)
            atomicAdd(mine + bin, 1u);
        windows += own * statistics.cut.parts(statistics.left_entries(row));
    }
    unsigned long long all;
    block_prefix_sum(windows, of_warps, all);
    if (threadIdx.x < ROW_BINS && mine[threadIdx.x] > 0) {
        atomicAdd(counts + threadIdx.x, static_cast<unsigned long long>(mine[threadIdx.x]));
    }
    if (threadIdx.x == 0 && all > 0)
        atomicAdd(counts + ROW_BINS, all);
}

// Writes the rows of each bin to `list`, one bin after the other according to `counts`; `cursors`
// are zero before. With a `stride`, each bin has that many elements, and `counts`, zero before,
// become the same as after spgemm_count_bins. The order inside a bin is that in which blocks
// arrive; results do not depend on it.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_fill_bins(Bins bins, RowStatistics given, const int64_t *offsets, int64_t rows,
                     unsigned long long *counts, unsigned long long *cursors, int64_t stride,
                     uint32_t *list) {
    const RowStatistics statistics = given.shared_out();
    __shared__ unsigned mine[ROW_BINS];
    __shared__ unsigned long long start[ROW_BINS];
    __shared__ unsigned long long of_warps[32];
    unsigned long long windows = 0;
    for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x; first < rows;
         first += grid_stride()) {
        if (threadIdx.x < ROW_BINS)
            mine[threadIdx.x] = 0;
        __syncthreads();
        const int64_t row = first + threadIdx.x;
        const int64_t own = row < rows ? dense_windows(statistics, row) : 0;
        const int bin = row < rows ? bin_of(bins, statistics, offsets, row, own) : -1;
        if (own > 0)
            windows += own * statistics.cut.parts(statistics.left_entries(row));
        const unsigned place = position_in_bin(bin, mine);
        __syncthreads();
        if (threadIdx.x < ROW_BINS && mine[threadIdx.x] > 0) {
            const unsigned long long here = mine[threadIdx.x];
            if (stride > 0) {
                start[threadIdx.x] = threadIdx.x * stride + atomicAdd(counts + threadIdx.x, here);
            } else {
                unsigned long long before = 0;
                for (int i = 0; i < static_cast<int>(threadIdx.x); ++i)
                    before += counts[i];
                start[threadIdx.x] = before + atomicAdd(cursors + threadIdx.x, here);
            }
        }
        __syncthreads();
        if (bin >= 0)
            list[start[bin] + place] = static_cast<uint32_t>(row);
        __syncthreads();
    }
    if (stride > 0) {
        unsigned long long all;
        block_prefix_sum(windows, of_warps, all);
        if (threadIdx.x == 0 && all > 0)
            atomicAdd(counts + ROW_BINS, all);
    }
}

// out[i] = from[i] + base, in 32 or 64 bits.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_write_offsets(const int64_t *from, int64_t count, void *out, int64_t wide,
                         int64_t base) {
    let_next_begin();
    for (int64_t i = first_item(); i < count; i += grid_stride())
        store_int(out, i, from[i] + base, wide);
    end_after_previous();
}

// counts[columns[i]] += 1
extern "C" __global__ void __launch_bounds__(256)
    spgemm_column_counts(Ints columns, int64_t count, unsigned long long *counts) {
    for (int64_t i = first_item(); i < count; i += grid_stride())
        atomicAdd(counts + columns[i], 1ull);
}

// next[c] += starts[c + 1] − starts[c]
extern "C" __global__ void __launch_bounds__(256)
    spgemm_advance(const int64_t *starts, int64_t cols, int64_t *next) {
    for (int64_t c = first_item(); c < cols; c += grid_stride())
        next[c] += starts[c + 1] - starts[c];
}

// The following kernels convert C to columns (CSC) from rows in the plan's memory: a stable sort of
// positions by column gives `from`, and the row of each position is found in the row offsets.

// keys[i] = columns[i] and positions[i] = i, each of 32 or 64 bits.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_sort_input(Ints columns, int64_t count, void *keys, int64_t wide_keys, void *positions,
                      int64_t wide_positions) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        store_int(keys, i, columns[i], wide_keys);
        store_int(positions, i, i, wide_positions);
    }
}

// offsets[c] = number of keys less than c, for c in [0, cols]; the keys ascend.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_column_offsets(Ints keys, int64_t count, int64_t cols, int64_t *offsets) {
    for (int64_t c = first_item(); c <= cols; c += grid_stride()) {
        offsets[c] = first_where_not(0, count, [&](int64_t at) { return keys[at] < c; });
    }
}

namespace {

// Stores entry `from` of C by rows as entry `to` of C by columns. Values consist of `words` 32-bit
// words.
__device__ __forceinline__ void move_entry(int64_t from, int64_t to, int64_t row,
                                           const uint32_t *values, int32_t words, void *out_rows,
                                           int64_t wide, int64_t base, uint32_t *out_values) {
    store_int(out_rows, to, row + base, wide);
    for (int word = 0; word < words; ++word)
        out_values[to * words + word] = values[from * words + word];
}

} // namespace

// Appends a batch of rows of C to its columns. Entry i of the sorted batch, in column keys[i], is
// entry from[i] of those rows. starts[c] is the number of the batch's entries in columns before c,
// and next[c] is the position at which C's column c continues. In `offsets`, the batch's entries
// are numbered from `before` on; rows are numbered from 0.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_transpose_part(const uint32_t *from, Ints keys, int64_t count, const int64_t *starts,
                          const int64_t *next, const int64_t *offsets, int64_t rows, int64_t before,
                          const uint32_t *values, int32_t words, void *out_rows, int64_t wide,
                          int64_t base, uint32_t *out_values) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const int64_t position = from[i], column = keys[i];
        const int64_t row = range_of(offsets, rows, before + position);
        const int64_t to = next[column] + (i - starts[column]);
        move_entry(position, to, row, values, words, out_rows, wide, base, out_values);
    }
}

// Entry i of C by columns is entry from[i] of the rows; values consist of `words` 32-bit words.
// `from` has unsigned 32-bit numbers, or 64-bit ones if `wide_from`.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_transpose(const void *from, int64_t wide_from, int64_t count, const int64_t *offsets,
                     int64_t rows, const uint32_t *values, int32_t words, void *out_rows,
                     int64_t wide, int64_t base, uint32_t *out_values) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const int64_t position = wide_from
                                     ? static_cast<const int64_t *>(from)[i]
                                     : static_cast<int64_t>(static_cast<const uint32_t *>(from)[i]);
        const int64_t row = range_of(offsets, rows, position);
        move_entry(position, i, row, values, words, out_rows, wide, base, out_values);
    }
}
