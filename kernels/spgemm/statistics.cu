// Statistics by which `hash` or `tile` is chosen: number of 16 × 16 tiles of both factors, pairs of
// tiles that meet, and multiplications. For factors of up to 2^17 rows and columns, whose longest
// rows have up to 2^14 (left) and 2^17 (right) entries.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 256;
constexpr int SIDE = 16;
// Words of a bit set of tile columns: one word per thread.
constexpr int WORDS = (1 << 17) / SIDE / 32;
static_assert(WORDS == THREADS);
// Number of entries whose loads overlap.
constexpr int AT_ONCE = 4;

// Words of the result, as in src/backend/cuda/spgemm/factors.rs.
enum Word { RIGHT_TILES, TILES, MOST_TILES, PAIRS, PRODUCTS, MOST_PRODUCTS };

// Calls f(position, columns) for the thread's entries of [begin, end), AT_ONCE at a time; columns
// beyond the end are −1.
template <class Function>
__device__ __forceinline__ void for_entries(const Factor &m, int64_t begin, int64_t end,
                                            Function f) {
    for (int64_t at = begin + threadIdx.x; at < end; at += AT_ONCE * THREADS) {
        int columns[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int64_t here = at + i * THREADS;
            columns[i] = here < end ? static_cast<int>(m.column(here)) : -1;
        }
        f(at, columns);
    }
}

__device__ __forceinline__ void insert(unsigned *set, int column) { set_bit(set, column / SIDE); }

} // namespace

// counts[i] = number of tiles in row i of tiles; their sum is added to found[RIGHT_TILES]. Any
// grid.
extern "C" __global__ void __launch_bounds__(THREADS)
    spgemm_tile_statistics(Factor m, int64_t rows, uint32_t *counts, unsigned long long *found) {
    __shared__ unsigned set[WORDS];
    __shared__ unsigned long long of_warps[32];
    unsigned long long total = 0;
    const int64_t tile_rows = (rows + SIDE - 1) / SIDE;
    for (int64_t i = blockIdx.x; i < tile_rows; i += gridDim.x) {
        set[threadIdx.x] = 0;
        __syncthreads();
        for_entries(m, m.start(SIDE * i), m.start(min(SIDE * (i + 1), rows)),
                    [&](int64_t, const int *columns) {
#pragma unroll
                        for (int k = 0; k < AT_ONCE; ++k) {
                            if (columns[k] >= 0)
                                insert(set, columns[k]);
                        }
                    });
        __syncthreads();
        unsigned long long all;
        block_prefix_sum(static_cast<unsigned long long>(__popc(set[threadIdx.x])), of_warps, all);
        if (threadIdx.x == 0)
            counts[i] = static_cast<uint32_t>(all);
        total += all;
        __syncthreads();
    }
    if (threadIdx.x == 0 && total > 0)
        atomicAdd(found + RIGHT_TILES, total);
}

// Adds to `found` the statistics of the rows of `left`; right_tiles are the tile counts of the
// right factor's rows of tiles. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS)
    spgemm_pair_statistics(Factor left, Factor right, int64_t rows, const uint32_t *right_tiles,
                           unsigned long long *found) {
    __shared__ unsigned set[WORDS];
    __shared__ unsigned long long of_warps[32];
    __shared__ int64_t starts[SIDE + 1];
    __shared__ unsigned products[SIDE];
    unsigned long long tiles = 0, most_tiles = 0, pairs = 0;
    // Sum and maximum of the products of row threadIdx.x of each row of tiles.
    unsigned long long sum = 0, most = 0;
    const int64_t tile_rows = (rows + SIDE - 1) / SIDE;
    for (int64_t i = blockIdx.x; i < tile_rows; i += gridDim.x) {
        set[threadIdx.x] = 0;
        if (threadIdx.x < SIDE)
            products[threadIdx.x] = 0;
        if (threadIdx.x <= SIDE)
            starts[threadIdx.x] = left.start(min(SIDE * i + threadIdx.x, rows));
        __syncthreads();
        // Number of products of the thread's entries in its current row.
        int row = 0;
        unsigned own = 0;
        for_entries(left, starts[0], starts[SIDE], [&](int64_t at, const int *columns) {
            unsigned lengths[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                lengths[k] = columns[k] < 0 ? 0
                                            : static_cast<unsigned>(right.start(columns[k] + 1) -
                                                                    right.start(columns[k]));
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                if (columns[k] < 0)
                    continue;
                insert(set, columns[k]);
                if (at + k * THREADS >= starts[row + 1]) {
                    if (own > 0)
                        atomicAdd(products + row, own);
                    own = 0;
                    while (at + k * THREADS >= starts[row + 1])
                        ++row;
                }
                own += lengths[k];
            }
        });
        if (own > 0)
            atomicAdd(products + row, own);
        __syncthreads();
        // Tiles and pairs in one sum: there are less than 2^14 tiles, each with less than 2^14
        // pairs.
        unsigned long long here = 0;
        for (unsigned rest = set[threadIdx.x]; rest != 0; rest &= rest - 1)
            here += (1ull << 32) + right_tiles[32 * threadIdx.x + __ffs(rest) - 1];
        unsigned long long all;
        block_prefix_sum(here, of_warps, all);
        tiles += all >> 32;
        most_tiles = max(most_tiles, all >> 32);
        pairs += all & 0xffffffffull;
        if (threadIdx.x < SIDE) {
            const unsigned of_row = products[threadIdx.x];
            sum += of_row;
            most = max(most, static_cast<unsigned long long>(of_row));
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && tiles > 0) {
        atomicAdd(found + TILES, tiles);
        atomicMax(found + MOST_TILES, most_tiles);
        atomicAdd(found + PAIRS, pairs);
    }
    if (threadIdx.x < SIDE && sum > 0) {
        atomicAdd(found + PRODUCTS, sum);
        atomicMax(found + MOST_PRODUCTS, most);
    }
}
