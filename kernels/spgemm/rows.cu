// Rows of a product: multiplications of each, bins of rows of like size, and
// the offsets of C. Nothing here depends on value types.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Sums stay below this, so that no sum of two wraps around.
constexpr unsigned long long MOST = 0x7fffffffffffffffull;

} // namespace

// products[i] = sum over row i of `left` of the lengths of `right`'s rows, at
// most 2^63 − 1; totals[0] and [1] gain the sums of their low and high 32 bits.
// `lanes` (a power of two up to 32) threads a row; any grid.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_products(Factor left, Factor right, int64_t rows, int32_t lanes, int64_t *products,
                    unsigned long long *totals) {
    __shared__ unsigned long long parts[32];
    const int64_t rows_a_block = blockDim.x / lanes;
    const int inner = threadIdx.x % lanes;
    unsigned long long low = 0, high = 0;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / lanes;
        unsigned long long sum = 0;
        if (row < rows) {
            const int64_t end = left.start(row + 1);
            for (int64_t at = left.start(row) + inner; at < end; at += lanes) {
                const int64_t k = left.column(at);
                sum += right.start(k + 1) - right.start(k);
                if (sum > MOST)
                    sum = MOST;
            }
        }
        for (int step = lanes / 2; step > 0; step /= 2) {
            sum += __shfl_xor_sync(ALL, sum, step);
            if (sum > MOST)
                sum = MOST;
        }
        if (row < rows && inner == 0) {
            products[row] = static_cast<int64_t>(sum);
            low += sum & 0xffffffffu;
            high += sum >> 32;
        }
    }
    block_sums(low, parts, low);
    block_sums(high, parts, high);
    if (threadIdx.x == 0) {
        if (low > 0)
            atomicAdd(totals, low);
        if (high > 0)
            atomicAdd(totals + 1, high);
    }
}

// flags[0] |= 1: columns of some row descend; |= 2: some row has a column twice
// in succession. Columns of `right` ascend strictly where it stays 0.
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

constexpr int MOST_BINS = 8;
// Products of a row that a warp has in its lanes at once.
constexpr int64_t TINY = 32;

// Rows of up to TINY products are bin 0. Others of up to `few` go by size to the
// first bin whose limit holds them; then come those of up to `medium` products,
// and the rest. (`Bins` in src/backend/cuda/spgemm.)
struct Bins {
    int64_t limits[MOST_BINS - 2];
    int64_t count;
    int64_t few;
    int64_t medium;
};

// Size of a row: its entries in C where `offsets` are known, else its products.
// −1: it has none.
__device__ __forceinline__ int bin_of(const Bins &bins, const int64_t *products,
                                      const int64_t *offsets, int64_t row) {
    const int64_t work = products[row];
    if (work == 0)
        return -1;
    if (work <= TINY)
        return 0;
    if (work <= bins.few) {
        const int64_t size = offsets != nullptr ? offsets[row + 1] - offsets[row] : work;
        // Unrolled: a parameter that is indexed at run time is copied first.
#pragma unroll
        for (int bin = 0; bin < MOST_BINS - 2; ++bin) {
            if (bin < bins.count && size <= bins.limits[bin])
                return bin;
        }
    }
    return static_cast<int>(bins.count) + (work > bins.medium);
}

} // namespace

// counts[bin] += rows of the bin.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_count_bins(Bins bins, const int64_t *products, const int64_t *offsets, int64_t rows,
                      unsigned long long *counts) {
    // 32 bits: shared memory adds no wider numbers by itself.
    __shared__ unsigned mine[MOST_BINS];
    if (threadIdx.x < MOST_BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < rows;
         row += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int bin = bin_of(bins, products, offsets, row);
        if (bin >= 0)
            atomicAdd(mine + bin, 1u);
    }
    __syncthreads();
    if (threadIdx.x < MOST_BINS && mine[threadIdx.x] > 0) {
        atomicAdd(counts + threadIdx.x, static_cast<unsigned long long>(mine[threadIdx.x]));
    }
}

// Writes the rows of each bin to `list` from cursors[bin] on, which moves. The
// order inside a bin is that of the blocks' arrival: rows do not depend on it.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_fill_bins(Bins bins, const int64_t *products, const int64_t *offsets, int64_t rows,
                     unsigned long long *cursors, uint32_t *list) {
    __shared__ unsigned mine[MOST_BINS];
    __shared__ unsigned long long start[MOST_BINS];
    for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x; first < rows;
         first += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        if (threadIdx.x < MOST_BINS)
            mine[threadIdx.x] = 0;
        __syncthreads();
        const int64_t row = first + threadIdx.x;
        const int bin = row < rows ? bin_of(bins, products, offsets, row) : -1;
        const unsigned place = bin >= 0 ? atomicAdd(mine + bin, 1u) : 0;
        __syncthreads();
        if (threadIdx.x < MOST_BINS && mine[threadIdx.x] > 0) {
            start[threadIdx.x] = atomicAdd(cursors + threadIdx.x,
                                           static_cast<unsigned long long>(mine[threadIdx.x]));
        }
        __syncthreads();
        if (bin >= 0)
            list[start[bin] + place] = static_cast<uint32_t>(row);
        __syncthreads();
    }
}

// out[i] = from[i] + base, in 32 or 64 bits.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_write_offsets(const int64_t *from, int64_t count, void *out, int64_t wide,
                         int64_t base) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        if (wide) {
            static_cast<int64_t *>(out)[i] = from[i] + base;
        } else {
            static_cast<int32_t *>(out)[i] = static_cast<int32_t>(from[i] + base);
        }
    }
}

// C by columns, from rows in the plan's memory: a stable sort of positions by
// column gives `from`, and each position's row is found in the rows' offsets.

// keys[i] = columns[i] and positions[i] = i, each of 32 or 64 bits.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_sort_input(Ints columns, int64_t count, void *keys, int64_t wide_keys, void *positions,
                      int64_t wide_positions) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        if (wide_keys) {
            static_cast<int64_t *>(keys)[i] = columns[i];
        } else {
            static_cast<int32_t *>(keys)[i] = static_cast<int32_t>(columns[i]);
        }
        if (wide_positions) {
            static_cast<int64_t *>(positions)[i] = i;
        } else {
            static_cast<uint32_t *>(positions)[i] = static_cast<uint32_t>(i);
        }
    }
}

// offsets[c] = keys less than c, for c in [0, cols]; the keys ascend.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_column_offsets(Ints keys, int64_t count, int64_t cols, int64_t *offsets) {
    for (int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; c <= cols;
         c += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        int64_t from = 0, to = count;
        while (from < to) {
            const int64_t middle = from + (to - from) / 2;
            if (keys[middle] < c) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        offsets[c] = from;
    }
}

// Entry i of C by columns is entry from[i] of the rows; values are of `words`
// 32-bit words. from has unsigned 32 bits, or 64 if `wide_from`.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_transpose(const void *from, int64_t wide_from, int64_t count, const int64_t *offsets,
                     int64_t rows, const uint32_t *values, int32_t words, void *out_rows,
                     int64_t wide, int64_t base, uint32_t *out_values) {
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
        const int64_t position = wide_from
                                     ? static_cast<const int64_t *>(from)[i]
                                     : static_cast<int64_t>(static_cast<const uint32_t *>(from)[i]);
        // The last row that starts at or before the position.
        int64_t row = 0, after = rows;
        while (after - row > 1) {
            const int64_t middle = row + (after - row) / 2;
            if (offsets[middle] <= position) {
                row = middle;
            } else {
                after = middle;
            }
        }
        if (wide) {
            static_cast<int64_t *>(out_rows)[i] = row + base;
        } else {
            static_cast<int32_t *>(out_rows)[i] = static_cast<int32_t>(row + base);
        }
        for (int word = 0; word < words; ++word)
            out_values[i * words + word] = values[position * words + word];
    }
}
