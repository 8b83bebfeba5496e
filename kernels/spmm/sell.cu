// SpMM `sell`: C = alpha · A · B + beta · C on the slices of src/format/warp_sell.rs, for few
// columns, in one launch.
//
// A lane reads ELEMENTS neighbours of a row of B, 32 bytes if there are so many columns: loads of
// whole sectors by one lane were faster than lanes that load 16 bytes each and the same entries of
// A, or hand these to each other by shuffles (docs/algorithms/sell.md). For more columns, a group
// of up to four lanes takes the place of a lane in SpMV: a warp has 32 / GROUP_LANES of a slice's
// lanes, a slice takes GROUP_LANES warps of a block, and those that share an item add their sums
// through shared memory. Columns beyond those of a group are further tiles, along y of the grid.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "common/target.cuh"
#include "ptx/prefetch.cuh"
#include "spmv/sell.cuh"

namespace tarsia::spmm {

using namespace tarsia::spmv;

// Number of entries in a lane's group; and size in bytes from which on values have half steps: no
// values do here, since rows of B need the registers.
constexpr int GROUP_ENTRIES = 2, NO_HALVES = 1 << 10;
// Warps of a block, which takes 4 / GROUP_LANES slices.
constexpr int BLOCK_WARPS = 4, BLOCK_THREADS = BLOCK_WARPS * WARP;
// Largest number of lanes of a group.
constexpr int MOST_GROUP = 4;

// Operands B and C. Rows of B are less than 2^31 bytes apart. Element (i, j) of C is at i · c_row +
// j · c_col, and its old value, in C or in an array of its own, at i · old_row + j · old_col.
template <class X, class Y> struct Dense {
    const X *b;
    int64_t b_row_bytes;
    Y *c;
    int64_t c_row, c_col;
    const Y *old;
    int64_t old_row, old_col;
    int64_t n;
    // log2 of the number of lanes of a group.
    int32_t group_log2;
    // True if rows of C and of the old values are aligned to 16 bytes, or to a lane's elements of a
    // row if these are less, and n is a multiple of ELEMENTS.
    int32_t packs;
};

// Partial sums of the blocks of long rows, `columns` per block, and a counter for each of these
// rows, zero between launches; one set of both per tile.
template <class Acc> struct Join {
    Acc *sums;
    unsigned *counters;
    int64_t block_count, counter_count;
};

// Sums that a lane has of a row.
template <class Acc, int ELEMENTS> struct Sums { Acc v[ELEMENTS]; };

// Elements that a lane holds of a row of B.
template <class X, int ELEMENTS> struct Factors {
    static constexpr int WORDS = ELEMENTS * sizeof(X) / 4;
    uint32_t words[WORDS];

    static __device__ __forceinline__ Factors load(const char *from) {
        Factors out;
        if constexpr (WORDS == 1) {
            out.words[0] = __ldg(reinterpret_cast<const uint32_t *>(from));
        } else if constexpr (WORDS == 2) {
            const uint2 bits = __ldg(reinterpret_cast<const uint2 *>(from));
            out.words[0] = bits.x, out.words[1] = bits.y;
        } else {
#pragma unroll
            for (int i = 0; i < WORDS; i += 4) {
                const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from) + i / 4);
                out.words[i] = bits.x, out.words[i + 1] = bits.y;
                out.words[i + 2] = bits.z, out.words[i + 3] = bits.w;
            }
        }
        return out;
    }
};

template <class Acc, class X, int ELEMENTS>
__device__ __forceinline__ Sums<Acc, ELEMENTS> widened(const Sums<Acc, ELEMENTS> &,
                                                       const Factors<X, ELEMENTS> &from) {
    Sums<Acc, ELEMENTS> out;
#pragma unroll
    for (int e = 0; e < ELEMENTS; ++e)
        out.v[e] = widen<Acc>(element<X>(from.words, e));
    return out;
}
template <class Acc, int ELEMENTS, class A>
__device__ __forceinline__ void add_product(Sums<Acc, ELEMENTS> &sum, A value,
                                            const Sums<Acc, ELEMENTS> &factors) {
    const Acc wide = widen<Acc>(value);
#pragma unroll
    for (int e = 0; e < ELEMENTS; ++e)
        sum.v[e] = fma(wide, factors.v[e], sum.v[e]);
}

// Position of a lane in its group, warp and slice.
struct LanePosition {
    // Number of lanes of a group, and rank of this one.
    int group, rank;
    // Number of groups of the warp, number of this one in the warp, and its lane in the slice.
    int groups, number, lane;
    // Number of this warp among the slice's warps.
    int part;
};

// Sums of the block's warps in shared memory, by warp, row of an item and column.
template <class Acc, int ELEMENTS, int ITEM_ROWS> struct Shared {
    Acc v[BLOCK_WARPS][ITEM_ROWS][MOST_GROUP * ELEMENTS];
};

// Stores the lane's columns of a row of C.
template <class X, class Y, class Acc, int ELEMENTS>
__device__ __forceinline__ void store_row(const Dense<X, Y> &d, int64_t row, int64_t col,
                                          const Sums<Acc, ELEMENTS> &sums, Acc alpha, Acc beta) {
    Y *c = d.c + row * d.c_row + col * d.c_col;
    const Y *old = d.old + row * d.old_row + col * d.old_col;
    if (d.packs) {
        constexpr int BYTES = ELEMENTS * sizeof(Y), PART = BYTES < 16 ? BYTES : 16;
        struct alignas(PART) Pack {
            Y v[PART / sizeof(Y)];
        };
#pragma unroll
        for (int i = 0; i < BYTES / PART; ++i) {
            Pack *const at = reinterpret_cast<Pack *>(c) + i;
            Pack pack;
            if (!is_zero(beta))
                pack = reinterpret_cast<const Pack *>(old)[i];
#pragma unroll
            for (int j = 0; j < PART / int(sizeof(Y)); ++j)
                store(&pack.v[j], alpha, sums.v[i * (PART / sizeof(Y)) + j], beta);
            *at = pack;
        }
    } else {
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e) {
            if (col + e < d.n)
                store(c + e * d.c_col, old + e * d.old_col, alpha, sums.v[e], beta);
        }
    }
}

// Adds the sums of a block's parts of a row in their order; the row's last block also adds those of
// the row's other blocks, which begin with block `first`.
template <class X, class Y, class Acc, int ELEMENTS, int ITEM_ROWS>
__device__ __forceinline__ void
join_parts(const Dense<X, Y> &d, const Join<Acc> &j, const SliceHead &head, const LanePosition &at,
           bool is_some, int64_t col, Sums<Acc, ELEMENTS> &sums,
           Shared<Acc, ELEMENTS, ITEM_ROWS> &shared, Acc alpha, Acc beta) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (at.number == 0) {
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e)
            shared.v[warp][0][at.rank * ELEMENTS + e] = sums.v[e];
    }
    __syncthreads();
    if (warp > 0)
        return;
#pragma unroll 1
    for (int w = 1; w < BLOCK_WARPS; ++w) {
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e)
            sums.v[e] = add(sums.v[e], shared.v[w][0][at.rank * ELEMENTS + e]);
    }
    // The head counts blocks of four slices, each of which is GROUP_LANES blocks of this launch.
    const int64_t first = int64_t(head.place) * at.group, block = blockIdx.x;
    const bool is_last = (head.flags & LAST) && int(block % at.group) == at.group - 1;
    Acc *const of_tile =
        j.sums + blockIdx.y * j.block_count * (at.group * ELEMENTS) + at.rank * ELEMENTS;
    unsigned *const counter = j.counters + blockIdx.y * j.counter_count + head.place;
    if (!is_last) {
        if (at.number == 0) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                of_tile[block * (at.group * ELEMENTS) + e] = sums.v[e];
        }
        __threadfence();
        __syncwarp();
        if (lane == 0)
            atomicAdd(counter, 1);
        return;
    }
    if (first < block) {
        // The other blocks have lower numbers, so they are already running.
        if (lane == 0) {
            while (int64_t(*reinterpret_cast<volatile unsigned *>(counter)) < block - first) {
            }
            *counter = 0;
        }
        __threadfence();
        __syncwarp();
        Sums<Acc, ELEMENTS> others;
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e)
            others.v[e] = zero<Acc>();
        for (int64_t b = first + at.number; b < block; b += at.groups) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                others.v[e] = add(others.v[e], load_l2(of_tile + b * (at.group * ELEMENTS) + e));
        }
        __syncwarp();
        for (int delta = at.group; delta < WARP; delta *= 2) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                others.v[e] = add(others.v[e], shuffle_xor(others.v[e], delta));
        }
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e)
            sums.v[e] = add(others.v[e], sums.v[e]);
    }
    if (at.number == 0 && is_some)
        store_row(d, int64_t(head.row), col, sums, alpha, beta);
}

// Number of steps in flight besides the next one. More of them cost registers, and with them warps
// (0.96 of the speed in fp32), but in fp64 groups have fewer entries each (1.18).
template <int ITEM_ROWS, class Acc>
constexpr int UNDER_WAY = ITEM_ROWS == 1 && sizeof(Acc) == 8 ? 2 : 1;

// Computes the sums of the rows of an item; all lanes of group 0 of its first warp get them.
template <int ITEM_ROWS, int IN_FLIGHT, class A, class X, class Y, class Acc, int ELEMENTS,
          int MOST_ITEM_ROWS>
__device__ __forceinline__ void sum_items(const Sell<A> &a, const SliceHead &head,
                                          const Dense<X, Y> &d, int64_t col, const LanePosition &at,
                                          LaneItem &item, Sums<Acc, ELEMENTS> (&sums)[ITEM_ROWS],
                                          Shared<Acc, ELEMENTS, MOST_ITEM_ROWS> &shared) {
#pragma unroll
    for (int k = 0; k < ITEM_ROWS; ++k) {
#pragma unroll
        for (int e = 0; e < ELEMENTS; ++e)
            sums[k].v[e] = zero<Acc>();
    }
    const int lanes = 1 << head.lanes_log2, lane = at.lane;
    const Steps steps = {head.steps, false, head.lanes_log2, lane & (lanes - 1)};
    const A *values = a.values + int64_t(head.first) * WARP;
    const int64_t first = int64_t(head.columns) * WARP;
    const int32_t stride = int32_t(d.b_row_bytes);
    const char *const b = reinterpret_cast<const char *>(d.b + col);
    const auto from = [stride](const char *row) {
        return [row, stride](uint32_t column) {
            return Factors<X, ELEMENTS>::load(row + int64_t(int32_t(column)) * stride);
        };
    };
    if (head.flags & WIDE) {
        sum_lane<GROUP_ENTRIES, ITEM_ROWS, IN_FLIGHT, Columns::WIDE, NO_HALVES>(
            sums, values, a.wide + first, lane, lane, WARP * GROUP_ENTRIES / 2,
            WARP * GROUP_ENTRIES, from(b), steps, item);
    } else if (head.flags & ADJACENT) {
        sum_lane<GROUP_ENTRIES, ITEM_ROWS, IN_FLIGHT, Columns::ADJACENT, NO_HALVES>(
            sums, values, a.narrow + first, lane, lane, WARP, WARP,
            from(b + int64_t(head.base) * stride), steps, item);
    } else {
        const bool runs = ITEM_ROWS == 1 && head.flags & RUNS;
        const int64_t base = int64_t(head.base) + (runs ? lane : 0);
        sum_lane<GROUP_ENTRIES, ITEM_ROWS, IN_FLIGHT, Columns::NARROW, NO_HALVES>(
            sums, values, a.narrow + first, lane, runs ? 0 : lane,
            runs ? GROUP_ENTRIES : WARP * GROUP_ENTRIES / 2,
            runs ? GROUP_ENTRIES : WARP * GROUP_ENTRIES, from(b + base * stride), steps, item);
    }
    const int upto = at.group * min(lanes, at.groups);
    for (int delta = at.group; delta < upto; delta *= 2) {
#pragma unroll
        for (int k = 0; k < ITEM_ROWS; ++k) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                sums[k].v[e] = add(sums[k].v[e], shuffle_xor(sums[k].v[e], delta));
        }
    }
    // The sums of parts are added by join_parts.
    if (lanes <= at.groups || (head.flags & PART))
        return;
    const int warp = threadIdx.x / WARP, sharing = lanes / at.groups;
    if (at.number == 0) {
#pragma unroll
        for (int k = 0; k < ITEM_ROWS; ++k) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                shared.v[warp][k][at.rank * ELEMENTS + e] = sums[k].v[e];
        }
    }
    // Barrier of the slice's warps: all warps of the block, or one half.
    if (at.group == BLOCK_WARPS) {
        __syncthreads();
    } else if (warp < 2) {
        sync_two_warps<1>();
    } else {
        sync_two_warps<2>();
    }
    if (at.part % sharing != 0)
        return;
#pragma unroll 1
    for (int w = 1; w < sharing; ++w) {
#pragma unroll
        for (int k = 0; k < ITEM_ROWS; ++k) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e)
                sums[k].v[e] = add(sums[k].v[e], shared.v[warp + w][k][at.rank * ELEMENTS + e]);
        }
    }
}

// Computes C = beta · C by the whole grid.
template <class X, class Y, class Acc>
__device__ __forceinline__ void scale(const Dense<X, Y> &d, int64_t rows, Acc beta) {
    const int64_t thread =
        (int64_t(blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t threads = int64_t(gridDim.y) * gridDim.x * blockDim.x;
#pragma unroll 1
    for (int64_t i = thread; i < rows * d.n; i += threads) {
        const int64_t row = i / d.n, col = i - row * d.n;
        store(d.c + row * d.c_row + col * d.c_col, d.old + row * d.old_row + col * d.old_col,
              zero<Acc>(), zero<Acc>(), beta);
    }
}

template <int ITEM_ROWS, int ELEMENTS, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sell(const Sell<A> &a, const Dense<X, Y> &d, Scalar<Acc> alpha,
                                     Scalar<Acc> beta, const Join<Acc> &joined) {
    __shared__ Shared<Acc, ELEMENTS, ITEM_ROWS> shared;
    if (is_zero(alpha.get())) {
        scale(d, a.rows, beta.get());
        return;
    }
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int group = 1 << d.group_log2;
    LanePosition at;
    at.group = group;
    at.rank = lane & (group - 1);
    at.groups = WARP >> d.group_log2;
    at.number = lane >> d.group_log2;
    at.part = warp & (group - 1);
    at.lane = at.part * at.groups + at.number;
    const int64_t slice = (int64_t(blockIdx.x) * BLOCK_WARPS + warp) >> d.group_log2;
    // Either all warps of a slice return here or none; blocks of parts are full.
    if (slice >= a.slices)
        return;
    const SliceHead head = load_head(a, slice);
    // Memory behind a row of B is readable up to the next multiple of ELEMENTS columns. Lanes
    // beyond the last column read the first ones, and store nothing.
    const int64_t tile_col = (int64_t(blockIdx.y) << d.group_log2) * ELEMENTS + at.rank * ELEMENTS;
    const bool is_some = tile_col < d.n;
    const int64_t col = is_some ? tile_col : 0;
    const int lanes = 1 << head.lanes_log2, number = at.lane >> head.lanes_log2;
    LaneItem item = {0, head.length, NO_ROW};
    if (head.flags & EVEN) {
        item.row = head.row + at.lane;
    } else if (head.flags & PART) {
        item.row = head.row;
    } else if (number < head.items) {
        item.found = __ldg(a.order + head.place + number);
        item.row = head.row;
    }
    const bool is_first = (at.lane & (lanes - 1)) == 0 && is_some;
    if constexpr (ITEM_ROWS > 1) {
        if (head.flags & ROWS) {
            Sums<Acc, ELEMENTS> sums[ITEM_ROWS];
            sum_items<ITEM_ROWS, UNDER_WAY<ITEM_ROWS, Acc>>(a, head, d, col, at, item, sums,
                                                            shared);
            if (is_first && item.row != NO_ROW) {
#pragma unroll
                for (int k = 0; k < ITEM_ROWS; ++k)
                    store_row(d, int64_t(item.row) + k, col, sums[k], alpha.get(), beta.get());
            }
            return;
        }
    }
    Sums<Acc, ELEMENTS> sums[1];
    sum_items<1, UNDER_WAY<ITEM_ROWS, Acc>>(a, head, d, col, at, item, sums, shared);
    if (head.flags & PART) {
        join_parts(d, joined, head, at, is_some, col, sums[0], shared, alpha.get(), beta.get());
    } else if (is_first && item.row != NO_ROW) {
        store_row(d, int64_t(item.row), col, sums[0], alpha.get(), beta.get());
    }
}

// Number of blocks per multiprocessor for which registers must suffice without spills.
template <int ITEM_ROWS, int ELEMENTS, class A, class X, class Acc> constexpr int blocks() {
    constexpr int IN_FLIGHT = UNDER_WAY<ITEM_ROWS, Acc>;
    constexpr int WORDS = sizeof(Acc) / 4;
    // Registers for two steps of entries, one step of rows of B, sums, and addresses.
    constexpr int ENTRIES =
        2 * IN_FLIGHT * (ITEM_ROWS * (GROUP_ENTRIES * int(sizeof(A)) + 3) / 4 + GROUP_ENTRIES);
// Compilers use more registers for architectures other than 9.0.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1000)
    // From compute capability 10.0 on, four floats or doubles of one row take a few more.
    constexpr bool TAKES_MORE = __CUDA_ARCH__ >= 1000 && ITEM_ROWS == 1 && ELEMENTS == 4 &&
                                sizeof(X) >= 4 && sizeof(A) == sizeof(X);
    constexpr int MORE = (IN_FLIGHT > 1                    ? 60
                          : sizeof(X) == 2 && ELEMENTS > 2 ? 48
                                                           : 44) +
                         (TAKES_MORE ? 8 : 0);
#else
    constexpr bool FITS = IN_FLIGHT > 1 || (sizeof(X) == 4 && ELEMENTS == 8);
    // CUDA 12's compiler uses a few more for four floats of one row.
    constexpr bool TAKES_MORE =
        __CUDACC_VER_MAJOR__ < 13 && ITEM_ROWS == 1 && ELEMENTS == 4 && sizeof(X) == 4;
    constexpr int MORE = FITS ? 30 : (sizeof(X) == 2 && ELEMENTS > 2) || TAKES_MORE ? 44 : 36;
#endif
    constexpr int REGISTERS = ENTRIES + IN_FLIGHT * GROUP_ENTRIES * ELEMENTS * int(sizeof(X)) / 4 +
                              ITEM_ROWS * ELEMENTS * WORDS + MORE;
    constexpr int FIT = 65536 / (BLOCK_WARPS * WARP) / ((REGISTERS + 7) / 8 * 8);
    return FIT < 10 ? FIT : 10;
}

} // namespace tarsia::spmm

using namespace tarsia;

// Grid: ceil(slices · GROUP_LANES / 4) by tiles, blocks of 128 threads. All kernels have
// GROUP_ENTRIES = 2.
#define KERNEL_product(name, types, ITEM_ROWS, ELEMENTS)                                           \
    KERNEL_OF(SELL, name, ITEM_ROWS, ELEMENTS, TYPES_##types)
#define SELL(name, ITEM_ROWS, ELEMENTS, A, X, Y, Acc)                                              \
    extern "C" __global__ void __launch_bounds__(spmm::BLOCK_THREADS,                              \
                                                 spmm::blocks<ITEM_ROWS, ELEMENTS, A, X, Acc>())   \
        name(int64_t slices, int64_t rows, const spmv::SliceHead *heads, const uint32_t *order,    \
             const A *values, const uint16_t *narrow, const uint32_t *wide,                        \
             spmm::Dense<X, Y> dense, Scalar<Acc> alpha, Scalar<Acc> beta, spmm::Join<Acc> joined, \
             Prefetch prefetched) {                                                                \
        begin_product(prefetched, dense.b, values, narrow, wide);                                  \
        const spmv::Sell<A> a = {slices, rows, heads, order, values, narrow, wide};                \
        spmm::sell<ITEM_ROWS, ELEMENTS>(a, dense, alpha, beta, joined);                            \
    }
KERNELS(product, (f64), (spmm_sell_1_2_f64, 1, 2), (spmm_sell_2_2_f64, 2, 2),
        (spmm_sell_3_2_f64, 3, 2), (spmm_sell_1_4_f64, 1, 4), (spmm_sell_2_4_f64, 2, 4),
        (spmm_sell_3_4_f64, 3, 4))
KERNELS(product, (f32f64), (spmm_sell_1_2_f32f64, 1, 2), (spmm_sell_2_2_f32f64, 2, 2),
        (spmm_sell_3_2_f32f64, 3, 2), (spmm_sell_1_4_f32f64, 1, 4), (spmm_sell_2_4_f32f64, 2, 4),
        (spmm_sell_3_4_f32f64, 3, 4))
KERNELS(product, (f32), (spmm_sell_1_2_f32, 1, 2), (spmm_sell_2_2_f32, 2, 2),
        (spmm_sell_3_2_f32, 3, 2), (spmm_sell_1_4_f32, 1, 4), (spmm_sell_2_4_f32, 2, 4),
        (spmm_sell_3_4_f32, 3, 4), (spmm_sell_1_8_f32, 1, 8), (spmm_sell_2_8_f32, 2, 8),
        (spmm_sell_3_8_f32, 3, 8))
KERNELS(product, (f16), (spmm_sell_1_2_f16, 1, 2), (spmm_sell_2_2_f16, 2, 2),
        (spmm_sell_3_2_f16, 3, 2), (spmm_sell_1_4_f16, 1, 4), (spmm_sell_2_4_f16, 2, 4),
        (spmm_sell_3_4_f16, 3, 4), (spmm_sell_1_8_f16, 1, 8), (spmm_sell_2_8_f16, 2, 8),
        (spmm_sell_3_8_f16, 3, 8), (spmm_sell_1_16_f16, 1, 16), (spmm_sell_2_16_f16, 2, 16),
        (spmm_sell_3_16_f16, 3, 16))
KERNELS(product, (f16f32), (spmm_sell_1_2_f16f32, 1, 2), (spmm_sell_2_2_f16f32, 2, 2),
        (spmm_sell_3_2_f16f32, 3, 2), (spmm_sell_1_4_f16f32, 1, 4), (spmm_sell_2_4_f16f32, 2, 4),
        (spmm_sell_3_4_f16f32, 3, 4), (spmm_sell_1_8_f16f32, 1, 8), (spmm_sell_2_8_f16f32, 2, 8),
        (spmm_sell_3_8_f16f32, 3, 8), (spmm_sell_1_16_f16f32, 1, 16),
        (spmm_sell_2_16_f16f32, 2, 16), (spmm_sell_3_16_f16f32, 3, 16))
KERNELS(product, (bf16), (spmm_sell_1_2_bf16, 1, 2), (spmm_sell_2_2_bf16, 2, 2),
        (spmm_sell_3_2_bf16, 3, 2), (spmm_sell_1_4_bf16, 1, 4), (spmm_sell_2_4_bf16, 2, 4),
        (spmm_sell_3_4_bf16, 3, 4), (spmm_sell_1_8_bf16, 1, 8), (spmm_sell_2_8_bf16, 2, 8),
        (spmm_sell_3_8_bf16, 3, 8), (spmm_sell_1_16_bf16, 1, 16), (spmm_sell_2_16_bf16, 2, 16),
        (spmm_sell_3_16_bf16, 3, 16))
KERNELS(product, (bf16f32), (spmm_sell_1_2_bf16f32, 1, 2), (spmm_sell_2_2_bf16f32, 2, 2),
        (spmm_sell_3_2_bf16f32, 3, 2), (spmm_sell_1_4_bf16f32, 1, 4), (spmm_sell_2_4_bf16f32, 2, 4),
        (spmm_sell_3_4_bf16f32, 3, 4), (spmm_sell_1_8_bf16f32, 1, 8), (spmm_sell_2_8_bf16f32, 2, 8),
        (spmm_sell_3_8_bf16f32, 3, 8), (spmm_sell_1_16_bf16f32, 1, 16),
        (spmm_sell_2_16_bf16f32, 2, 16), (spmm_sell_3_16_bf16f32, 3, 16))
