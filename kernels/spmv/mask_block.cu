// SpMV `mask_block`: y = alpha · A · x + beta · y on the blocks of src/format/mask_block.rs, in one
// launch.
//
// A warp takes a share or a part of a slab. Its values are one stream, which goes through a ring
// buffer in shared memory by asynchronous copies of 16 bytes per lane: the copies depend only on
// the head, so they are in flight before the masks are known, and do not wait for x. A lane takes
// one row of a block, and a warp's step is 4 blocks of 8 rows, or 8 blocks of 4. It reads the masks
// and columns of 32 blocks at one time, one block per lane; a prefix sum of the masks' popcounts
// gives the position of each block's values.
//
// For narrow values it is limited by instructions, so a block's column and position share one
// shuffle if columns have 16 bits.

#include <type_traits>

#include "format/mask_block.cuh"
#include "ptx/copies.cuh"
#include "ptx/launch.cuh"
#include "ptx/loads.cuh"
#include "ptx/predicated.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

using namespace mask_block;

constexpr int MASK_THREADS = 128, MASK_WARPS = MASK_THREADS / WARP;
constexpr int BLOCK_COLUMNS = 4;

// Bytes of a warp's ring buffer, and of a copy by all of its lanes.
constexpr uint32_t RING = 4096, COPY = WARP * 16, RING_COPIES = RING / COPY;

// Position of a block's column in a word; the bits below hold the position of the block's first
// value among those of the lanes' 32 blocks: 31 blocks have at most 992 values.
constexpr int COLUMN_SHIFT = 10;

// Type of the mask of a block.
template <int ROWS> struct Masks { using Type = uint32_t; };
template <> struct Masks<4> { using Type = uint16_t; };

// Arrays of the layout.
template <int ROWS, class A> struct MaskBlock {
    int64_t rows, cols;
    // Number of heads of shares, and of all heads.
    int64_t shares, heads;
    const BlockHead *head;
    const PartHead *parts;
    const typename Masks<ROWS>::Type *masks;
    const A *values;
    const uint16_t *narrow;
    const uint32_t *wide;
    int shares_log2;
};

// Stream of a warp's values through its ring buffer. AHEAD copies are in flight behind those that
// have arrived.
template <int AHEAD> struct Stream {
    // from: the lane's bytes of the stream's first copy; ring: address of the ring buffer; end:
    // length of the stream in bytes; come: number of copies that have arrived.
    const char *from;
    uint32_t ring, end, come;

    __device__ __forceinline__ void start(uint32_t copy) const {
        const uint32_t at = copy * COPY + threadIdx.x % WARP * 16;
        if (at < end)
            copy16(ring | (at & (RING - 1)), from + copy * COPY);
        close_copies();
    }
    // Stream of `end` bytes from `values` on, which is aligned to 16 bytes.
    __device__ __forceinline__ Stream(const char *values, uint32_t end, uint32_t ring)
        : from(values + threadIdx.x % WARP * 16), ring(ring), end(end), come(0) {
#pragma unroll
        for (int copy = 0; copy < AHEAD; ++copy)
            start(copy);
    }
    // Waits until all lanes' bytes before `to` have arrived, and starts as many new copies. All
    // lanes must be done with what is RING_COPIES - AHEAD copies before `to`.
    __device__ __forceinline__ void wait(uint32_t to) {
        __syncwarp();
#pragma unroll 1
        while (come * COPY < to) {
            wait_copies<AHEAD - 1>();
            start(come + AHEAD);
            ++come;
        }
        __syncwarp();
    }
};

// Loads the elements of x that a row of a block needs, according to the bits of its mask.
template <bool IS_VECTOR, class X>
__device__ __forceinline__ void load_x(X (&out)[BLOCK_COLUMNS], const X *x, bool is_whole,
                                       uint32_t bits) {
    if constexpr (IS_VECTOR) {
        using Vector = std::conditional_t<sizeof(X) == 2, uint2, uint4>;
        static_assert(sizeof(Vector) == sizeof out);
        if (is_whole) {
            if (bits) {
                const Vector all = __ldg(reinterpret_cast<const Vector *>(x));
                memcpy(out, &all, sizeof all);
            }
            return;
        }
    }
#pragma unroll
    for (int j = 0; j < BLOCK_COLUMNS; ++j)
        out[j] = load_cached_if(x + j, bits & 1u << j);
}

// Columns and masks of the blocks of a head, one block per lane for 32 blocks at a time.
template <int ROWS, bool IS_WIDE> struct Blocks {
    const typename Masks<ROWS>::Type *masks;
    const uint16_t *narrow;
    const uint32_t *wide;
    int count;
    // Those of the current 32 blocks. Lanes without a block get one without entries.
    uint32_t mask, column;

    template <class A>
    __device__ __forceinline__ Blocks(const MaskBlock<ROWS, A> &a, const BlockHead &head)
        : masks(a.masks + head.block), narrow(a.narrow + head.block), wide(a.wide + head.base),
          count(__shfl_sync(ALL_LANES, int(head.count), 0)) {}
    __device__ __forceinline__ void fetch(int first, uint32_t &mask, uint32_t &column) const {
        const int lane = threadIdx.x % WARP;
        mask = column = 0;
        if (first + lane < count) {
            mask = load_once(masks + first + lane);
            if constexpr (IS_WIDE) {
                column = load_once(wide + first + lane);
            } else {
                column = load_once(narrow + first + lane);
            }
        }
    }
};

// Steps of a warp that are in flight together: of each, a lane has one row of a block.
template <int ROWS, bool IS_WIDE, class A, class X> struct Steps {
    // Number of blocks in a step, and of steps, as registers allow.
    static constexpr int BLOCKS = WARP / ROWS, STEPS = sizeof(A) == 16 ? 1 : 2;
    // Wider elements would take as many wavefronts with vector loads, and more instructions.
    static constexpr bool IS_VECTOR = sizeof(X) <= 4;
    static constexpr uint32_t SIZE = sizeof(A);
    // Bits of the row's entries, and the position of its first value in the stream.
    uint32_t bits[STEPS], at[STEPS];
    X factor[STEPS][BLOCK_COLUMNS];

    // Loads x for the blocks from number `first` of the lanes' 32 on. `word` has a block's column,
    // and unless these are wide its values' position, which is `place` otherwise, relative to
    // `before`. x of the first `vectors` columns can be loaded as vectors.
    __device__ __forceinline__ void load(int first, uint32_t mask, uint32_t word, uint32_t place,
                                         uint32_t before, const X *x, uint32_t vectors) {
        const int row = threadIdx.x % WARP % ROWS, rank = threadIdx.x % WARP / ROWS;
        const uint32_t below = (1u << row * BLOCK_COLUMNS) - 1;
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
            const int from = first + u * BLOCKS + rank;
            const uint32_t its_mask = __shfl_sync(ALL_LANES, mask, from);
            const uint32_t its_word = __shfl_sync(ALL_LANES, word, from);
            uint32_t its_column = its_word, its_position;
            if constexpr (IS_WIDE) {
                its_position = __shfl_sync(ALL_LANES, place, from);
            } else {
                its_position = its_word & ((1u << COLUMN_SHIFT) - 1);
                its_column >>= COLUMN_SHIFT;
            }
            bits[u] = its_mask >> row * BLOCK_COLUMNS & 0xf;
            at[u] = before + (its_position + __popc(its_mask & below)) * SIZE;
            load_x<IS_VECTOR>(factor[u], x + int64_t(its_column) * BLOCK_COLUMNS,
                              its_column < vectors, bits[u]);
        }
    }
    // Adds the products, whose values have arrived in the ring buffer.
    template <class Acc> __device__ __forceinline__ void add(uint32_t ring, Acc &sum) {
        A value[STEPS][BLOCK_COLUMNS];
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
#pragma unroll
            for (int j = 0; j < BLOCK_COLUMNS; ++j) {
                const uint32_t exists = bits[u] & 1u << j;
                value[u][j] = load_shared_if<A>(ring | (at[u] & (RING - 1)), exists);
                at[u] += exists ? SIZE : 0;
            }
        }
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
#pragma unroll
            for (int j = 0; j < BLOCK_COLUMNS; ++j) {
                if (bits[u] & 1u << j)
                    sum = fma(widen<Acc>(value[u][j]), widen<Acc>(factor[u][j]), sum);
            }
        }
    }
};

// Inclusive sum over the lanes of a warp.
__device__ __forceinline__ uint32_t sums_through(uint32_t value) {
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int delta = 1; delta < WARP; delta *= 2) {
        const uint32_t lower = __shfl_up_sync(ALL_LANES, value, delta);
        if (lane >= delta)
            value += lower;
    }
    return value;
}

// Sum of a lane over all blocks of a head.
template <int ROWS, bool IS_WIDE, class Acc, class A, class X>
__device__ __forceinline__ Acc sum_lane(const MaskBlock<ROWS, A> &a, const BlockHead &head,
                                        const X *x, uint32_t ring) {
    using Now = Steps<ROWS, IS_WIDE, A, X>;
    constexpr int STEPS = Now::STEPS, BLOCKS = Now::BLOCKS;
    constexpr uint32_t SIZE = Now::SIZE;
    // Number of copies over which the values of the steps in flight may be spread.
    constexpr int SPAN = (STEPS * WARP * BLOCK_COLUMNS * SIZE + COPY - 1) / COPY;
    constexpr int AHEAD = RING_COPIES - SPAN - 1;
    static_assert(AHEAD >= 1);
    Blocks<ROWS, IS_WIDE> blocks(a, head);
    const uint32_t skipped = uint32_t(head.first * SIZE) % 16;
    Stream<AHEAD> stream(reinterpret_cast<const char *>(a.values + head.first) - skipped,
                         skipped + head.values * SIZE, ring);

    // Number of block columns whose x can be loaded as a vector: all full ones, or none if x is not
    // aligned.
    const X *own_x = x + (IS_WIDE ? 0 : int64_t(head.base) * BLOCK_COLUMNS);
    const bool is_aligned = reinterpret_cast<uintptr_t>(x) % (BLOCK_COLUMNS * sizeof(X)) == 0;
    const uint32_t vectors =
        is_aligned ? uint32_t(a.cols / BLOCK_COLUMNS) - (IS_WIDE ? 0 : head.base) : 0;
    // Keeps the compiler from computing this address anew for each block.
    asm("" : "+l"(own_x));

    blocks.fetch(0, blocks.mask, blocks.column);
    Acc sum = zero<Acc>();
    // Bytes of the stream before the values of the current 32 blocks.
    uint32_t before = skipped;
#pragma unroll 1
    for (int first = 0; first < blocks.count; first += WARP) {
        uint32_t next_mask, next_column;
        blocks.fetch(first + WARP, next_mask, next_column);
        const uint32_t mask = blocks.mask, column = blocks.column;
        const uint32_t ones = __popc(mask), through = sums_through(ones), place = through - ones;
        const uint32_t word = IS_WIDE ? column : column << COLUMN_SHIFT | place;
        const int here = min(blocks.count - first, WARP);
#pragma unroll 1
        for (int b = 0; b < here; b += STEPS * BLOCKS) {
            Now now;
            now.load(b, mask, word, place, before, own_x, vectors);
            const int last = min(b + STEPS * BLOCKS, WARP) - 1;
            stream.wait(before + __shfl_sync(ALL_LANES, through, last) * SIZE);
            now.add(ring, sum);
        }
        before += __shfl_sync(ALL_LANES, through, WARP - 1) * SIZE;
        blocks.mask = next_mask;
        blocks.column = next_column;
    }
    return sum;
}

// Sum over the lanes that have the same row of a block of ROWS rows.
template <int ROWS, class Acc> __device__ __forceinline__ Acc sum_of_ranks(Acc sum) {
#pragma unroll
    for (int delta = ROWS; delta < WARP; delta *= 2)
        sum = add(sum, shuffle_xor(sum, delta));
    return sum;
}

// Stores the sums of a part's rows; the last of the slab's parts to arrive adds them: each lane of
// a row adds every (32 / ROWS)-th part in order, and then the lanes' sums are added. All lanes have
// their row's sum.
template <int ROWS, class A, class Y, class Acc>
__device__ __forceinline__ void join_slab(const MaskBlock<ROWS, A> &a, int64_t number, Acc sum,
                                          Y *y, Acc alpha, Acc beta, Acc *sums,
                                          uint32_t *arrivals) {
    const int lane = threadIdx.x % WARP;
    const int row = lane % ROWS, rank = lane / ROWS;
    const PartHead part = load_head(a.parts + number);
    if (rank == 0) {
        sums[number * ROWS + row] = sum;
        __threadfence();
    }
    __syncwarp();
    if (!is_last_to_arrive(arrivals + part.counter, part.count))
        return;
    Acc total = zero<Acc>();
    const Acc *first = sums + int64_t(part.first) * ROWS + row;
    for (uint32_t i = rank; i < part.count; i += WARP / ROWS)
        total = add(total, load_l2(first + int64_t(i) * ROWS));
    __syncwarp();
    total = sum_of_ranks<ROWS>(total);
    const int64_t y_row = int64_t(part.slab) * ROWS + row;
    if (rank == 0 && y_row < a.rows)
        store(y + y_row, alpha, total, beta);
    if (lane == 0)
        arrivals[part.counter] = 0;
}

template <int ROWS, class A, class X, class Y, class Acc>
__device__ __forceinline__ void mask_block(const MaskBlock<ROWS, A> &a, const X *x, Y *y,
                                           Scalar<Acc> alpha, Scalar<Acc> beta, Acc *sums,
                                           uint32_t *arrivals) {
    // One ring more, so that the rings can begin at a multiple of their size.
    __shared__ alignas(16) char rings[(MASK_WARPS + 1) * RING];
    __shared__ Acc shares[MASK_WARPS][ROWS];
    if (is_zero(alpha.get())) {
        scale_rows(y, a.rows, beta.get());
        return;
    }
    // The shuffle tells the compiler that the result is uniform across the warp.
    const int lane = threadIdx.x % WARP, warp = __shfl_sync(ALL_LANES, threadIdx.x / WARP, 0);
    const int row = lane % ROWS, rank = lane / ROWS;
    const int64_t number = int64_t(blockIdx.x) * MASK_WARPS + warp;
    BlockHead head = {0, 0, 0, 0, 0, CUT, 0};
    if (number < a.heads)
        head = load_head(a.head + number);
    const uint32_t flags = __shfl_sync(ALL_LANES, head.flags, 0);
    uint32_t ring = shared_address(rings) + RING - 1 & ~(RING - 1);
    ring += warp * RING;
    // Keeps the compiler from computing the address of shared memory before each access.
    asm("" : "+r"(ring));
    Acc sum;
    if (flags & WIDE) {
        sum = sum_lane<ROWS, true, Acc>(a, head, x, ring);
    } else {
        sum = sum_lane<ROWS, false, Acc>(a, head, x, ring);
    }
    sum = sum_of_ranks<ROWS>(sum);
    const int share = warp & ((1 << a.shares_log2) - 1);
    if (a.shares_log2 > 0) {
        if (rank == 0)
            shares[warp][row] = sum;
        __syncthreads();
        if (number < a.shares) {
            if (share != 0)
                return;
            for (int other = 1; other < 1 << a.shares_log2; ++other)
                sum = add(sum, shares[warp + other][row]);
        }
    }
    if (flags & CUT)
        return;
    if (number >= a.shares) {
        join_slab(a, number - a.shares, sum, y, alpha.get(), beta.get(), sums, arrivals);
        return;
    }
    const int64_t y_row = (number >> a.shares_log2) * ROWS + row;
    if (rank == 0 && y_row < a.rows)
        store(y + y_row, alpha.get(), sum, beta.get());
}

// Number of blocks per multiprocessor for which registers must suffice.
template <class A, class Acc> constexpr int mask_blocks() {
    constexpr bool IS_COMPLEX = same<A, Complex<float>>;
// Compilers use more registers for compute capability 10.0 and 12.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    if (same<A, double>)
        return 6;
#endif
    return sizeof(A) == 16 ? 5 : IS_COMPLEX ? 6 : sizeof(Acc) == 4 ? 8 : 7;
}

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(heads / MASK_WARPS) blocks.
#define KERNEL_product(name, H, types) KERNEL_OF(MASK_BLOCK, name, H, TYPES_##types)
#define MASK_BLOCK(name, rows_of_block, A, X, Y, Acc)                                              \
    extern "C" __global__ void __launch_bounds__(spmv::MASK_THREADS, spmv::mask_blocks<A, Acc>())  \
        name(int64_t rows, int64_t cols, int64_t shares, int64_t heads,                            \
             const spmv::BlockHead *head, const spmv::PartHead *parts,                             \
             const spmv::Masks<rows_of_block>::Type *masks, const A *values,                       \
             const uint16_t *narrow, const uint32_t *wide, const X *x, Y *y, Scalar<Acc> alpha,    \
             Scalar<Acc> beta, int32_t shares_log2, Acc *sums, uint32_t *arrivals) {               \
        begin_product();                                                                           \
        const spmv::MaskBlock<rows_of_block, A> a = {                                              \
            rows, cols, shares, heads, head, parts, masks, values, narrow, wide, shares_log2};     \
        spmv::mask_block(a, x, y, alpha, beta, sums, arrivals);                                    \
    }
KERNELS(product, (8), (spmv_mask_block_8_f64, f64), (spmv_mask_block_8_f32, f32),
        (spmv_mask_block_8_f32f64, f32f64), (spmv_mask_block_8_f16, f16),
        (spmv_mask_block_8_f16f32, f16f32), (spmv_mask_block_8_bf16, bf16),
        (spmv_mask_block_8_bf16f32, bf16f32), (spmv_mask_block_8_c32, c32),
        (spmv_mask_block_8_c64, c64))
KERNELS(product, (4), (spmv_mask_block_4_f64, f64), (spmv_mask_block_4_f32, f32),
        (spmv_mask_block_4_f32f64, f32f64), (spmv_mask_block_4_f16, f16),
        (spmv_mask_block_4_f16f32, f16f32), (spmv_mask_block_4_bf16, bf16),
        (spmv_mask_block_4_bf16f32, bf16f32), (spmv_mask_block_4_c32, c32),
        (spmv_mask_block_4_c64, c64))
