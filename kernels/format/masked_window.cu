// Builds the windows of src/format/masked_window.rs, which describes the arrays and has a CPU
// implementation of the same rules, from the column ranks that format/window_ranks.cuh computes.

#include "common/kernels.cuh"
#include "format/window_fill.cuh"

namespace tarsia::convert {

// Number of columns of a block, and of rows of a tile.
constexpr int BLOCK = 8;

// Arrays of the layout, and positions of the user's values (`slots` is NULL if they are not wanted;
// `from` is NULL if the values are in the user's order). `masks` are zero before.
template <class Value> struct Arrays {
    uint32_t *columns;
    unsigned long long *masks;
    uint32_t *starts;
    Value *values;
    const uint64_t *from;
    uint64_t *slots;
};

// Fills one window per thread block. Masks are set by atomics and read from L2, since L1 may hold
// stale lines that are shared with neighbouring windows.
template <class Value, class O, class J>
__device__ void fill(Pattern<O, J> a, const Value *values, int64_t windows, int height,
                     const Numbers &numbers, const Arrays<Value> &out) {
    __shared__ Starts starts;
    const int64_t window = blockIdx.x;
    const int groups = height / BLOCK;
    const int64_t first = starts.load(a, window * height, height);
    const int64_t block = numbers.starts[window], end = numbers.starts[window + 1];
    // End of the last tile's values.
    if (window + 1 == windows && threadIdx.x == 0)
        out.starts[end * groups] = uint32_t(a.nnz);
    __syncthreads();
    const uint32_t entries = starts.at[height], distinct = numbers.distinct[window];
    if (entries == 0 || distinct == 0)
        return;
    write_columns<BLOCK>(numbers, window, first, out.columns);

    const int lane = threadIdx.x % WARP;
    // Tile of an entry, and its bit in the tile's mask.
    const auto place = [&](uint32_t at, int &bit) {
        const uint32_t rank = numbers.ranks[first + at];
        const int row = starts.row_of(at, height), k = int(rank % BLOCK);
        bit = k / 4 * 32 + row % BLOCK * 4 + k % 4;
        return (block + rank / BLOCK) * groups + row / BLOCK;
    };
    for (uint32_t base = threadIdx.x - lane; base < entries; base += blockDim.x) {
        const uint32_t at = base + lane;
        int64_t row = -1;
        uint64_t mask = 0;
        if (at < entries) {
            int bit;
            row = place(at, bit) * BLOCK;
            row += bit % 32 / 4;
            mask = uint64_t(1) << bit;
        }
        // The entries of one row in one tile follow each other.
        if (gather_bits<BLOCK>(row, mask) && at < entries)
            atomicOr(out.masks + row / BLOCK, static_cast<unsigned long long>(mask));
    }
    __threadfence();
    __syncthreads();

    // Values are stored tile by tile and window by window.
    uint32_t next = uint32_t(first);
    for (int64_t from = block * groups; from < end * groups; from += blockDim.x) {
        const int64_t tile = from + threadIdx.x;
        const uint32_t own = tile < end * groups ? __popcll(__ldcg(out.masks + tile)) : 0;
        uint32_t all;
        const uint32_t before = next + sum_before(own, all);
        next += all;
        if (tile < end * groups)
            __stcg(out.starts + tile, before);
    }
    __threadfence();
    __syncthreads();
    for (uint32_t at = threadIdx.x; at < entries; at += blockDim.x) {
        int bit;
        const int64_t tile = place(at, bit);
        const uint64_t below = __ldcg(out.masks + tile) & ((uint64_t(1) << bit) - 1);
        const uint32_t to = __ldcg(out.starts + tile) + __popcll(below);
        // Always true if rows are sorted; unsorted rows give wrong numbers but no access out of
        // bounds.
        if (to < a.nnz) {
            out.values[to] = values[first + at];
            if (out.slots)
                out.slots[out.from ? out.from[first + at] : uint64_t(first + at)] = to;
        }
    }
}

} // namespace tarsia::convert

using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void __launch_bounds__(THREADS, 4)

#define KERNEL_fill(name, bits, O, J)                                                              \
    GLOBAL name(const int##O##_t *offsets, const int##J##_t *indices,                              \
                const uint##bits##_t *values, int64_t base, int64_t rows, int64_t nnz,             \
                int64_t windows, int32_t height, Numbers numbers, Arrays<uint##bits##_t> arrays) { \
        fill(Pattern<int##O##_t, int##J##_t>{offsets, indices, base, rows, nnz}, values, windows,  \
             height, numbers, arrays);                                                             \
    }
KERNELS(fill, (), (masked_fill_32_32_32, 32, 32, 32), (masked_fill_64_32_32, 64, 32, 32),
        (masked_fill_32_64_32, 32, 64, 32), (masked_fill_64_64_32, 64, 64, 32),
        (masked_fill_32_64_64, 32, 64, 64), (masked_fill_64_64_64, 64, 64, 64))
