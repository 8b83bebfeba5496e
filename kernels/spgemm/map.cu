// SpGEMM with a known pattern, by a map of the product: every entry of C has a list of its
// products, in the order of the left factor's row, each as the positions of its two factors. A warp
// takes 32 entries of C at a time: it computes their products in the order of the lists, one per
// lane, and stores them in shared memory, where each lane adds up the products of its entry. So no
// two threads add to one sum, nothing is searched, and loads are balanced across lanes however
// different the lists' lengths are. The map is worth its memory where entries have few products.
//
// Rows of the left factor that kernels/spgemm/dense_windows.cu cuts into parts have one sum per
// part here, too, so that results have the same bits.
//
// ends[i] is the end of the list of entry i, which is the begin of that of entry i + 1.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Number of products of a row from which on a block builds its lists instead of a warp.
constexpr int64_t LONG_ROW = 8192;
constexpr int BLOCK = 512;
constexpr int THREADS = 256;
// Flag of a product that is the first of another part than the product before it.
constexpr uint32_t NEXT_PART = 0x80000000u;

// Position in the left factor, with the flag NEXT_PART, and in the right factor.
struct __align__(8) Pair {
    uint32_t left, right;
};

// Returns the position of `column` among the entries [from, to) of C, whose columns ascend, or `to`
// if it is not there, which happens only if the pattern changed after analysis.
__device__ __forceinline__ int64_t find(const Ints &kept, int64_t from, int64_t to,
                                        int64_t column) {
    from = first_where_not(from, to, [&](int64_t at) { return kept[at] < column; });
    return from < to && kept[from] == column ? from : to;
}

// Builds the lists of a row, from position `first_place` on, by all warps of a block or by a single
// team of `lanes` threads (a power of two up to 32). The row is cut into parts of `part` entries,
// or is whole if that is 0.
template <bool WHOLE_BLOCK>
__device__ __forceinline__ void make_row(const Factor &left, const Factor &right, int64_t row,
                                         const int64_t *offsets, const Ints &kept,
                                         uint32_t first_place, int64_t part, int lanes,
                                         uint32_t *ends, Pair *pairs, unsigned *of_warps) {
    const int warps = WHOLE_BLOCK ? blockDim.x / 32 : 1, warp = WHOLE_BLOCK ? threadIdx.x / 32 : 0;
    const int width = WHOLE_BLOCK ? 32 : lanes, inner = threadIdx.x & (width - 1);
    const int threads = width * warps, thread = warp * width + inner;
    const unsigned mine = (width == 32 ? ALL_LANES : (1u << width) - 1)
                          << (lane_id() & ~(width - 1));
    const auto wait = [mine] {
        if (WHOLE_BLOCK) {
            __syncthreads();
        } else {
            __syncwarp(mine);
        }
    };
    const int64_t begin = left.start(row), end = left.start(row + 1);
    const int64_t place = offsets[row], last = offsets[row + 1];
    for (int64_t at = place + thread; at < last; at += threads)
        ends[at] = 0;
    wait();
    for (int64_t at = begin + warp; at < end; at += warps) {
        const int64_t k = left.column(at), to = right.start(k + 1);
        for (int64_t i = right.start(k) + inner; i < to; i += width) {
            const int64_t entry = find(kept, place, last, right.column(i));
            if (entry < last)
                atomicAdd(ends + entry, 1u);
        }
    }
    wait();
    // Turns the counts into the positions where lists begin.
    uint32_t before = first_place;
    for (int64_t first = place; first < last; first += threads) {
        const int64_t at = first + thread;
        const unsigned own = at < last ? ends[at] : 0;
        unsigned sum, all;
        if (WHOLE_BLOCK) {
            sum = block_prefix_sum(own, of_warps, all);
        } else {
            sum = own;
            for (int delta = 1; delta < width; delta *= 2) {
                const unsigned other = __shfl_up_sync(mine, sum, delta, width);
                if (inner >= delta)
                    sum += other;
            }
            all = __shfl_sync(mine, sum, width - 1, width);
        }
        if (at < last)
            ends[at] = before + sum - own;
        before += all;
    }
    wait();
    // All warps look up their first entries together; then they take turns to append, in the order
    // of the left factor's row.
    for (int64_t first = begin; first < end; first += warps) {
        const int64_t at = first + warp;
        int64_t from = 0, to = 0, entry = last;
        if (at < end) {
            const int64_t k = left.column(at);
            from = right.start(k);
            to = right.start(k + 1);
        }
        if (from + inner < to)
            entry = find(kept, place, last, right.column(from + inner));
        const int turns = static_cast<int>(min(int64_t(warps), end - first));
        for (int turn = 0; turn < turns; ++turn) {
            if (turn == warp) {
                for (int64_t i = from + inner; i < to; i += width) {
                    if (i >= from + width)
                        entry = find(kept, place, last, right.column(i));
                    if (entry < last) {
                        // The columns of a row of `right` are distinct, so no two lanes have the
                        // same entry.
                        const uint32_t to_place = ends[entry];
                        ends[entry] = to_place + 1;
                        pairs[to_place] = {static_cast<uint32_t>(at), static_cast<uint32_t>(i)};
                    }
                }
            }
            wait();
        }
    }
    for (int64_t at = place + thread; part > 0 && at < last; at += threads) {
        const uint32_t first = at == place ? first_place : ends[at - 1];
        int64_t boundary = 0;
        for (uint32_t product = first; product < ends[at]; ++product) {
            const int64_t own = pairs[product].left;
            if (own >= boundary) {
                boundary = begin + ((own - begin) / part + 1) * part;
                if (product > first)
                    pairs[product].left |= NEXT_PART;
            }
        }
    }
}

// Computes columns and values of all entries; each lane holds HELD products at a time. `has_parts`:
// there are rows that are cut into parts.
template <int HELD, class A, class B, class T>
__device__ __forceinline__ void
multiply(const A *left_values, const B *right_values, const Scalar<T> &scale, const uint32_t *ends,
         const Pair *pairs, bool has_parts, const Ints &kept, int64_t count, const Output &out) {
    __shared__ __align__(16) unsigned char memory[THREADS / 32][32 * HELD * sizeof(T)];
    __shared__ unsigned marks[THREADS / 32][HELD];
    T *products = reinterpret_cast<T *>(memory[threadIdx.x >> 5]);
    unsigned *next_part = marks[threadIdx.x >> 5];
    const Scale<T> alpha(scale);
    T *values = static_cast<T *>(out.values);
    for (int64_t entry = first_item() - lane_id(); entry < count; entry += grid_stride()) {
        const int64_t at = entry + lane_id();
        // Lanes without an entry get an empty list at the end of the last one.
        const uint32_t end = ends[min(at, count - 1)];
        uint32_t begin = __shfl_up_sync(ALL_LANES, end, 1);
        if (lane_id() == 0)
            begin = entry == 0 ? 0 : ends[entry - 1];
        const uint32_t last = __shfl_sync(ALL_LANES, end, 31);
        T total = zero<T>(), sum = zero<T>();
        uint32_t first = alpha.vanishes ? last : __shfl_sync(ALL_LANES, begin, 0);
        for (; first < last; first += 32 * HELD) {
            Pair pair[HELD];
            T product[HELD];
            unsigned any = 0;
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const uint32_t place = first + 32 * h + lane_id();
                pair[h] = place < last ? pairs[place] : Pair{0, 0};
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (first + 32 * h < last)
                    product[h] = times(widen<T>(left_values[pair[h].left & ~NEXT_PART]),
                                       widen<T>(right_values[pair[h].right]));
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (first + 32 * h < last)
                    products[32 * h + lane_id()] = product[h];
            }
            if (has_parts) {
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    const unsigned marked =
                        __ballot_sync(ALL_LANES, (pair[h].left & NEXT_PART) != 0);
                    any |= marked;
                    if (lane_id() == h)
                        next_part[h] = marked;
                }
            }
            __syncwarp();
            const uint32_t from = max(begin, first), to = min(end, first + 32 * HELD);
            if (any != 0) {
                for (uint32_t i = from; i < to; ++i) {
                    const uint32_t own = i - first;
                    if (next_part[own / 32] >> (own % 32) & 1) {
                        total = plus(total, sum);
                        sum = zero<T>();
                    }
                    sum = plus(sum, products[own]);
                }
            } else {
                for (uint32_t i = from; i < to; ++i)
                    sum = plus(sum, products[i - first]);
            }
            __syncwarp();
        }
        if (at < count) {
            // Both sums begin with +0, and +0 plus a number never rounds to −0: adding the zero
            // `total` of a list without parts changes no bit.
            values[at] = alpha.of(plus(total, sum));
            if (out.columns != nullptr)
                out.store_column(at, kept[at]);
        }
    }
}

} // namespace

// Marks those rows of a list that are cut into parts.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_map_rows_in_parts(Factor left, const uint32_t *list, int64_t count, Cut cut,
                             uint8_t *in_parts) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const int64_t row = list[i];
        in_parts[row] = cut.parts(left.start(row + 1) - left.start(row)) > 1;
    }
}

// list[0 … *count) = rows whose lists a block builds, in any order.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_map_long_rows(const int64_t *products, int64_t rows, uint32_t *list,
                         unsigned long long *count) {
    for (int64_t row = first_item(); row < rows; row += grid_stride()) {
        if (products[row] >= LONG_ROW)
            list[atomicAdd(count, 1ull)] = static_cast<uint32_t>(row);
    }
}

// Compilers use more registers for compute capability 12.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define MAKE_BLOCKS 5
#else
#define MAKE_BLOCKS 6
#endif
// Builds the lists of the other rows, with a team of `lanes` threads per row. before[row] = number
// of products of the rows before it. Rows with in_parts[row] ≠ 0 are cut into parts of `part`
// entries; `in_parts` may be NULL.
extern "C" __global__ void __launch_bounds__(256, MAKE_BLOCKS)
    spgemm_map_make(Factor left, Factor right, const int64_t *products, int64_t rows,
                    const int64_t *before, const uint8_t *in_parts, int64_t part,
                    const int64_t *offsets, Ints kept, int32_t lanes, uint32_t *ends, Pair *pairs) {
    const unsigned teams = blockDim.x / lanes;
    const int64_t row = static_cast<int64_t>(blockIdx.x) * teams + threadIdx.x / lanes;
    if (row < rows && products[row] > 0 && products[row] < LONG_ROW)
        make_row<false>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]),
                        in_parts != nullptr && in_parts[row] ? part : 0, lanes, ends, pairs,
                        nullptr);
}

// Builds the lists of the rows in a list, one block per row.
extern "C" __global__ void __launch_bounds__(BLOCK, 2)
    spgemm_map_make_long(Factor left, Factor right, const uint32_t *list, const int64_t *before,
                         const uint8_t *in_parts, int64_t part, const int64_t *offsets, Ints kept,
                         uint32_t *ends, Pair *pairs) {
    __shared__ unsigned of_warps[32];
    const int64_t row = list[blockIdx.x];
    make_row<true>(left, right, row, offsets, kept, static_cast<uint32_t>(before[row]),
                   in_parts != nullptr && in_parts[row] ? part : 0, 32, ends, pairs, of_warps);
}

// CUDA 12's compiler, if left to choose, uses few registers and spills; CUDA 13's spills if it is
// given a number of blocks. CUDA 12's uses more for compute capability 8.
#if __CUDACC_VER_MAJOR__ < 13 && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define BOUNDS(T) __launch_bounds__(THREADS, sizeof(T) > 8 ? 2 : 4)
#elif __CUDACC_VER_MAJOR__ < 13
#define BOUNDS(T) __launch_bounds__(THREADS, sizeof(T) > 8 ? 3 : 4)
#else
#define BOUNDS(T) __launch_bounds__(THREADS)
#endif
#define ARGUMENTS(A, B, T)                                                                         \
    const A *left_values, const B *right_values, Scalar<T> alpha, const uint32_t *ends,            \
        const Pair *pairs, int32_t has_parts, Ints kept, int64_t count, Output out
#define KERNEL_multiply(name, types) KERNEL_OF(MULTIPLY, name, TYPES_##types)
#define MULTIPLY(name, A, B, C, T)                                                                 \
    extern "C" __global__ void BOUNDS(T) name(ARGUMENTS(A, B, T)) {                                \
        multiply<4, A, B, T>(left_values, right_values, alpha, ends, pairs, has_parts != 0, kept,  \
                             count, out);                                                          \
    }
KERNELS(multiply, (), (spgemm_map_multiply_f64, f64), (spgemm_map_multiply_f32, f32),
        (spgemm_map_multiply_f16f32, f16f32), (spgemm_map_multiply_bf16f32, bf16f32),
        (spgemm_map_multiply_c32, c32), (spgemm_map_multiply_c64, c64))

// Variant for entries of few products, in rows that are whole: it takes 0.9 of the time there, with
// fewer registers and without instructions for slots that stay empty.
#define KERNEL_multiply_few(name, types) KERNEL_OF(MULTIPLY_FEW, name, TYPES_##types)
#define MULTIPLY_FEW(name, A, B, C, T)                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS) name(ARGUMENTS(A, B, T)) {               \
        multiply<2, A, B, T>(left_values, right_values, alpha, ends, pairs, false, kept, count,    \
                             out);                                                                 \
    }
KERNELS(multiply_few, (), (spgemm_map_multiply_few_f64, f64), (spgemm_map_multiply_few_f32, f32),
        (spgemm_map_multiply_few_f16f32, f16f32), (spgemm_map_multiply_few_bf16f32, bf16f32),
        (spgemm_map_multiply_few_c32, c32), (spgemm_map_multiply_few_c64, c64))
