// SpMV `mask_block`: y = alpha · A · x + beta · y on the blocks of
// src/layout/mask_block.rs, in one launch.
//
// A warp takes a slab of 8 rows, or a part of one: a lane is a row and a column of
// the block. It reads the masks and columns of 32 blocks at one time, a block a
// lane; a sum over the lanes of the masks' ones says where each block's values are.
// Then several blocks are under way together. Where there are too few slabs for the
// device, 2 or 4 warps share one: each takes its part of every 32 blocks.
//
// What bounds it for narrow values is instructions, so that a block's column and
// place go through one shuffle where columns have 16 bits.
//
// Names: spmv_mask_block_<types>.

#include "common/loads.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

constexpr int MASK_THREADS = 128, MASK_WARPS = MASK_THREADS / WARP;
constexpr int SLAB_ROWS = 8, BLOCK_COLUMNS = 4;

// Blocks under way at one time, and where fewer than that are left.
constexpr int MANY = 8, FEW = 4;

// Where a word has a block's first value behind 18 bits of its first column: 31
// blocks have at most 992 values.
constexpr int PLACE_SHIFT = 18;

// As src/layout/mask_block.rs has them.
struct alignas(16) BlockHead {
    // First value, without bits 32 to 39; first block; what narrow columns count
    // from, or the first wide one.
    uint32_t first, block, base;
    uint16_t count;
    uint8_t high, flags;
};
constexpr int WIDE = 1, CUT = 2;

struct alignas(16) PartHead {
    // The slab, its first part and how many it has, and its counter.
    uint32_t slab, first, count, counter;
};

// The layout's arrays.
template <class A> struct MaskBlock {
    int64_t rows, heads;
    const BlockHead *head;
    const PartHead *parts;
    const uint32_t *masks;
    const A *values;
    const uint16_t *narrow;
    const uint32_t *wide;

    __device__ __forceinline__ int64_t slabs() const { return (rows + SLAB_ROWS - 1) / SLAB_ROWS; }
};

// T's 16 bytes.
template <class T> __device__ __forceinline__ T load_head(const T *p) {
    static_assert(sizeof(T) == 16);
    const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(p));
    T out;
    memcpy(&out, &bits, 16);
    return out;
}

// Adds the products of U blocks, from block b of those that the lanes hold.
template <int U, bool IS_WIDE, class Acc, class A, class X>
__device__ __forceinline__ Acc sum_blocks(const A *values, const X *x, uint32_t mask,
                                          uint32_t column, uint32_t place, int b, Acc sum) {
    const uint32_t bit = 1u << threadIdx.x % WARP;
    uint32_t masks[U];
    A value[U];
    X factor[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
        masks[u] = __shfl_sync(~0u, mask, b + u);
        uint32_t from = __shfl_sync(~0u, column, b + u), at;
        if constexpr (IS_WIDE) {
            at = __shfl_sync(~0u, place, b + u);
        } else {
            at = from >> PLACE_SHIFT;
            from &= (1u << PLACE_SHIFT) - 1;
        }
        // What is here where the lane has no entry is not multiplied; x may end.
        value[u] = load_once(values + (at + __popc(masks[u] & (bit - 1))));
        factor[u] = load_cached_if(x + from, masks[u] & bit);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
        if (masks[u] & bit)
            sum = fma(widen<Acc>(value[u]), widen<Acc>(factor[u]), sum);
    }
    return sum;
}

// The lane's sum over blocks [from, to) of each 32 of a slab's or part's `count`.
template <bool IS_WIDE, class Acc, class A, class X, class J>
__device__ __forceinline__ Acc sum_lane(const uint32_t *masks, const J *columns, const A *values,
                                        const X *x, int count, int from, int to) {
    const int lane = threadIdx.x % WARP;
    uint32_t mask;
    J column;
    // Lanes without a block have one of no entries.
    const auto fetch = [&](int first, uint32_t &mask, J &column) {
        mask = column = 0;
        if (first + lane < count) {
            mask = load_once(masks + first + lane);
            column = load_once(columns + first + lane);
        }
    };
    fetch(0, mask, column);
    Acc sum = zero<Acc>();
#pragma unroll 1
    for (int first = 0; first < count; first += WARP) {
        uint32_t next_mask;
        J next_column;
        fetch(first + WARP, next_mask, next_column);
        const uint32_t ones = __popc(mask);
        uint32_t place = ones;
#pragma unroll
        for (int delta = 1; delta < WARP; delta *= 2) {
            const uint32_t before = __shfl_up_sync(~0u, place, delta);
            if (lane >= delta)
                place += before;
        }
        const uint32_t all = __shfl_sync(~0u, place, WARP - 1);
        place -= ones;
        uint32_t word = uint32_t(column) * BLOCK_COLUMNS;
        if constexpr (!IS_WIDE)
            word |= place << PLACE_SHIFT;
        const int end = min(count - first, to);
        int b = from;
#pragma unroll 1
        for (; end - b > FEW; b += MANY)
            sum = sum_blocks<MANY, IS_WIDE>(values, x, mask, word, place, b, sum);
        if (b < end)
            sum = sum_blocks<FEW, IS_WIDE>(values, x, mask, word, place, b, sum);
        values += all;
        mask = next_mask;
        column = next_column;
    }
    return sum;
}

// Leaves the sums of a part's rows for the last of the slab's parts to arrive,
// which adds them: four lanes a row, each every fourth part in their order. Lanes
// 4 r to 4 r + 3 have the sum of row r.
template <class A, class Y, class Acc>
__device__ __forceinline__ void join_slab(const MaskBlock<A> &a, int64_t number, Acc sum, Y *y,
                                          Acc alpha, Acc beta, Acc *sums, uint32_t *arrivals) {
    const int lane = threadIdx.x % WARP;
    const int row = lane / BLOCK_COLUMNS, rank = lane % BLOCK_COLUMNS;
    const PartHead part = load_head(a.parts + number);
    if (rank == 0) {
        sums[number * SLAB_ROWS + row] = sum;
        __threadfence();
    }
    __syncwarp();
    uint32_t arrived = 0;
    if (lane == 0)
        arrived = atomicAdd(arrivals + part.counter, 1);
    arrived = __shfl_sync(~0u, arrived, 0);
    if (arrived != part.count - 1)
        return;
    __threadfence();
    Acc total = zero<Acc>();
    const Acc *first = sums + int64_t(part.first) * SLAB_ROWS + row;
    for (uint32_t i = rank; i < part.count; i += BLOCK_COLUMNS)
        total = add(total, load_l2(first + int64_t(i) * SLAB_ROWS));
    __syncwarp();
    total = add(total, shuffle_xor(total, 1));
    total = add(total, shuffle_xor(total, 2));
    const int64_t y_row = int64_t(part.slab) * SLAB_ROWS + row;
    if (rank == 0 && y_row < a.rows)
        store(y + y_row, alpha, total, beta);
    if (lane == 0)
        arrivals[part.counter] = 0;
}

// 2^warps_log2 warps a slab or part.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void mask_block(const MaskBlock<A> &a, const X *x, Y *y,
                                           Scalar<Acc> alpha, Scalar<Acc> beta, int warps_log2,
                                           Acc *sums, uint32_t *arrivals) {
    __shared__ Acc shares[MASK_WARPS][SLAB_ROWS];
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    // Shuffles tell the compiler what all lanes of a warp have in common.
    const int lane = threadIdx.x % WARP, warp = __shfl_sync(~0u, threadIdx.x / WARP, 0);
    const int row = lane / BLOCK_COLUMNS, rank = lane % BLOCK_COLUMNS;
    const int share = warp & ((1 << warps_log2) - 1);
    const int64_t number = (int64_t(blockIdx.x) * MASK_WARPS + warp) >> warps_log2;
    BlockHead head = {0, 0, 0, 0, 0, CUT};
    if (number < a.heads)
        head = load_head(a.head + number);
    const int count = __shfl_sync(~0u, int(head.count), 0);
    const int flags = __shfl_sync(~0u, int(head.flags), 0);
    const int from = (share * WARP) >> warps_log2, to = ((share + 1) * WARP) >> warps_log2;
    const uint32_t *masks = a.masks + head.block;
    const A *values = a.values + (int64_t(head.high) << 32 | head.first);
    const X *own_x = x + (flags & WIDE ? 0 : int64_t(head.base) * BLOCK_COLUMNS) + rank;
    // Else the compiler adds these up anew for each block.
    asm("" : "+l"(own_x));
    Acc sum;
    if (flags & WIDE) {
        sum = sum_lane<true, Acc>(masks, a.wide + head.base, values, own_x, count, from, to);
    } else {
        sum = sum_lane<false, Acc>(masks, a.narrow + head.block, values, own_x, count, from, to);
    }
    sum = add(sum, shuffle_xor(sum, 1));
    sum = add(sum, shuffle_xor(sum, 2));
    if (warps_log2 > 0) {
        if (rank == 0)
            shares[warp][row] = sum;
        __syncthreads();
        if (share != 0)
            return;
        for (int other = 1; other < 1 << warps_log2; ++other)
            sum = add(sum, shares[warp + other][row]);
    }
    if (flags & CUT)
        return;
    const int64_t slabs = a.slabs();
    if (number >= slabs) {
        join_slab(a, number - slabs, sum, y, alpha.get(), beta.get(), sums, arrivals);
    } else if (rank == 0 && number * SLAB_ROWS + row < a.rows) {
        store(y + number * SLAB_ROWS + row, alpha.get(), sum, beta.get());
    }
}

// Blocks of a multiprocessor that registers must leave room for: the most without
// a spill.
template <class A, class Acc> constexpr int mask_blocks() {
    constexpr bool IS_SMALL = sizeof(Acc) == 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return sizeof(A) == 16 ? 4 : IS_SMALL ? 8 : sizeof(A) == sizeof(Acc) ? 7 : 6;
#else
    return sizeof(A) == 16 ? 4 : IS_SMALL ? 8 : 5;
#endif
}

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(heads · 2^warps_log2 / MASK_WARPS).
#define MASK_BLOCK(types, A, X, Y, Acc)                                                            \
    extern "C" __global__ void __launch_bounds__(spmv::MASK_THREADS, spmv::mask_blocks<A, Acc>())  \
        spmv_mask_block_##types(int64_t rows, int64_t heads, const spmv::BlockHead *head,          \
                                const spmv::PartHead *parts, const uint32_t *masks,                \
                                const A *values, const uint16_t *narrow, const uint32_t *wide,     \
                                const X *x, Y *y, Scalar<Acc> alpha, Scalar<Acc> beta,             \
                                int32_t warps_log2, Acc *sums, uint32_t *arrivals) {               \
        const spmv::MaskBlock<A> a = {rows, heads, head, parts, masks, values, narrow, wide};      \
        spmv::mask_block(a, x, y, alpha, beta, warps_log2, sums, arrivals);                        \
    }
TARSIA_FOR_EACH_COMBO(MASK_BLOCK)
