// Finds rows that have the same columns as the row before, and counts the entries in groups of such
// rows, which src/format/warp_sell.rs stores as one item. Runs before the pattern has been
// validated, for the choice of a layout (src/select/spmv/statistics.rs) and for `sell`.

#include "common/kernels.cuh"
#include "common/unchecked.cuh"
#include "format/windows.cuh"
#include "ptx/launch.cuh"

namespace tarsia::convert {

// Sets same[row] to 1 where the row has 1 to `limit` entries and the same columns as the row
// before. A warp takes 2^rows_log2 rows: each lane compares the length and both end columns of its
// row, in which few rows agree with the one before; the warp then compares the rows that do agree
// as a whole.
template <class O, class J>
__device__ void find_same(const O *offsets, const J *indices, int64_t base, int64_t rows,
                          int64_t nnz, int64_t limit, int32_t rows_log2, uint8_t *same) {
    const int lane = threadIdx.x % WARP;
    const auto at = [&](int64_t row) { return clamped_offset(offsets[row], base, nnz); };
    const int64_t step = (grid_stride() / WARP) << rows_log2;
    for (int64_t first = (first_item() / WARP) << rows_log2; first < rows; first += step) {
        const int64_t row = first + lane;
        const bool mine = lane < 1 << rows_log2 && row < rows;
        int64_t start = 0, length = 0;
        bool equal = mine && row > 0;
        if (equal) {
            const int64_t before = at(row - 1);
            start = at(row);
            length = at(row + 1) - start;
            equal = length > 0 && length <= limit && start - before == length;
        }
        if (equal) {
            const J here[2] = {indices[start], indices[start + length - 1]};
            const J there[2] = {indices[start - length], indices[start - 1]};
            equal = here[0] == there[0] && here[1] == there[1];
        }
        for (unsigned left = __ballot_sync(ALL_LANES, equal && length > 2); left != 0;
             left &= left - 1) {
            const int leader = __ffs(left) - 1;
            const int64_t count = __shfl_sync(ALL_LANES, length, leader);
            const J *here = indices + __shfl_sync(ALL_LANES, start, leader), *there = here - count;
            bool all = true;
            for (int64_t k = 0; all && k < count; k += 4 * WARP) {
                bool differs = false;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int64_t place = k + i * WARP + lane;
                    if (place < count)
                        differs |= here[place] != there[place];
                }
                all = !__any_sync(ALL_LANES, differs);
            }
            if (lane == leader)
                equal = all;
        }
        if (mine)
            same[row] = equal;
    }
}

// Counts the entries in items of k rows with the same columns, in one window per block.
template <class O>
__device__ void count_shared(const O *offsets, const uint8_t *same, int64_t base, int64_t rows,
                             int64_t nnz, int32_t k, int32_t window, unsigned long long *entries) {
    const int64_t first = int64_t(blockIdx.x) * window;
    const int count = int(min(int64_t(window), rows - first));
    const auto follows = [&](int row) { return row > 0 && row < count && same[first + row]; };
    // First row of the run of equal rows that each of the thread's rows belongs to.
    int start[OF_THREAD], latest = -1;
    bool goes_on[OF_THREAD];
    const int mine = int(threadIdx.x) * OF_THREAD;
    for (int i = 0; i < OF_THREAD; ++i) {
        const bool joins = i > 0 ? goes_on[i - 1] : follows(mine);
        goes_on[i] = follows(mine + i + 1);
        if (!joins)
            latest = mine + i;
        start[i] = latest;
    }
    const int before = latest_before(latest);
    int64_t sum = 0;
    for (int i = 0; i < OF_THREAD; ++i) {
        // Number of whole items in the run that ends at this row.
        const int items = (mine + i - max(start[i], before) + 1) / k;
        const int64_t row = first + mine + i;
        if (mine + i < count && !goes_on[i] && items > 0)
            sum += items * k *
                   (clamped_offset(offsets[row + 1], base, nnz) -
                    clamped_offset(offsets[row], base, nnz));
    }
    int64_t sums;
    sum_before(sum, sums);
    if (threadIdx.x == 0 && sums != 0)
        atomicAdd(entries, static_cast<unsigned long long>(sums));
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS, 2)

// same_rows: works with any number of blocks.
#define KERNEL_same_rows(name, O, J)                                                               \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices, int64_t base, int64_t rows,  \
                int64_t nnz, int64_t limit, int32_t rows_log2, uint8_t *same) {                    \
        let_next_begin();                                                                          \
        find_same(offsets, indices, base, rows, nnz, limit, rows_log2, same);                      \
        end_after_previous();                                                                      \
    }
KERNELS(same_rows, (), (same_rows_32_32, 32, 32), (same_rows_64_32, 64, 32),
        (same_rows_64_64, 64, 64))

// shared_entries: one block per window; grid.y is 2, for items of K = 2 and 3 rows.
#define KERNEL_shared_entries(name, O)                                                             \
    GLOBAL name(const int##O##_t *offsets, const uint8_t *same, int64_t base, int64_t rows,        \
                int64_t nnz, int32_t most, unsigned long long *entries) {                          \
        const int k = 2 + int(blockIdx.y), window = most / k * k;                                  \
        /* For one of the two K there may be one window less. */                                   \
        if (int64_t(blockIdx.x) * window < rows)                                                   \
            count_shared(offsets, same, base, rows, nnz, k, window, entries + blockIdx.y);         \
    }
KERNELS(shared_entries, (), (shared_entries_32, 32), (shared_entries_64, 64))
