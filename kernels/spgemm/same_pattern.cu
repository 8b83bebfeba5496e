// Rows of C whose range of columns fits a bitmap in shared memory. A warp takes a group of rows of
// `left` that have the same columns (unknowns of one node), so that their products have the same
// columns of C. A column's position in the row is the number of bits before its own, so nothing is
// hashed or sorted. A position found serves all rows of the group, and all of a run of consecutive
// rows of `right` that belong to the group's columns and have the same pattern. No two lanes add to
// one sum at a time: they hold distinct columns of one row of `right`, and take those rows in
// order.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;
// Rows of `left` per pass, and rows of `right` that share a look-up: three unknowns per node. More
// would not fit the registers.
constexpr int ROWS = 3, RUN = 3;
// Most rows of a group: two passes, for six unknowns per node.
constexpr int GROUP = 6;
// Groups do not cross multiples of this, which limits how far back a row must search for its group.
constexpr int CUT = 48;
// Number of entries of a row of `right` that a lane holds.
constexpr int HELD = 3;

// Returns whether entry `at` of a row of `left` continues the run of the entry before it: their
// rows of `right` follow each other and have the same columns.
__device__ __forceinline__ bool joins(const Factor &left, const uint8_t *repeats, int64_t begin,
                                      int64_t at, int64_t k) {
    return repeats != nullptr && at > begin && repeats[k] && left.column(at - 1) == k - 1;
}

// Sets the bits of the row's columns; bit words are `STRIDE` words apart.
template <int STRIDE, class J>
__device__ __forceinline__ void mark(const Factor &left, const Factor &right,
                                     const uint8_t *repeats, int64_t begin, int64_t end,
                                     int64_t low, unsigned span, uint32_t *words) {
    const J *columns = static_cast<const J *>(right.indices.data);
    low += right.base;
    const auto range = [&](int64_t at, int64_t k, int64_t &from, unsigned &length) {
        if (!joins(left, repeats, begin, at, k)) {
            from = right.start(k);
            length = static_cast<unsigned>(right.start(k + 1) - from);
        }
    };
    for_rows_ahead(left, begin, end, range, [&](int64_t, int64_t from, unsigned length) {
        unsigned bits[HELD];
        for_products_ahead<HELD>(
            from, length,
            [&](int h, bool active, int, int64_t at) {
                bits[h] = active ? static_cast<unsigned>(columns[at] - low) : span;
            },
            [&](int h, bool) {
                if (bits[h] < span)
                    set_one_bit(words + STRIDE * (bits[h] >> 5), 1u << (bits[h] & 31));
            });
    });
    __syncwarp();
}

// counts[row …] = number of distinct columns of the rows of a group. Shared memory: `most` words
// per warp.
template <class J>
__device__ __forceinline__ void
count_group(const Factor &left, const Factor &right, const uint8_t *groups, const uint8_t *repeats,
            const int64_t *lows, const int64_t *spans, const uint32_t *list, int64_t count,
            int32_t most, int64_t *counts) {
    extern __shared__ __align__(16) unsigned char memory[];
    uint32_t *words = reinterpret_cast<uint32_t *>(memory) + (threadIdx.x >> 5) * most;
    int64_t row;
    if (!take_item(list, count, row))
        return;
    const unsigned span = static_cast<unsigned>(spans[row]);
    const int used = (span + 31) / 32;
    for (int i = lane_id(); i < used; i += 32)
        words[i] = 0;
    __syncwarp();
    mark<1, J>(left, right, repeats, left.start(row), left.start(row + 1), lows[row], span, words);
    unsigned found = 0;
    for (int i = lane_id(); i < used; i += 32)
        found += __popc(words[i]);
    found = __reduce_add_sync(ALL_LANES, found);
    const int rows = groups == nullptr ? 1 : groups[row];
    if (lane_id() < rows)
        counts[row + lane_id()] = found;
}

// Sets in each word's second half the number of bits in the words before it; returns the number in
// all `used` words.
__device__ __forceinline__ unsigned rank_words(uint2 *words, int used) {
    unsigned before = 0;
    for (int base = 0; base < used; base += 32) {
        const int i = base + lane_id();
        const unsigned own = i < used ? __popc(words[i].x) : 0;
        const unsigned sum = prefix_sum(own);
        if (i < used)
            words[i].y = before + sum - own;
        before += __shfl_sync(ALL_LANES, sum, 31);
    }
    return before;
}

// Position of a column's sum: the number of bits before its own.
__device__ __forceinline__ int slot_of(const uint2 *words, unsigned bit) {
    const uint2 word = words[bit >> 5];
    return word.y + __popc(word.x & ((1u << (bit & 31)) - 1));
}

// Adds the products of TOGETHER rows of `left` to their sums, which lie one row after the other in
// shared memory.
template <int TOGETHER, class A, class B, class T, class J>
__device__ __forceinline__ void
add_rows(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
         const uint8_t *repeats, int64_t begin, int64_t end, int64_t low, unsigned span,
         const uint2 *words, T *sums, int entries) {
    const J *columns = static_cast<const J *>(right.indices.data);
    const int64_t length_a = end - begin;
    for (int64_t first = begin; first < end; first += 32) {
        const int64_t at = first + lane_id();
        int64_t from = 0;
        unsigned length = 0;
        bool leads = false;
        T own[TOGETHER];
        if (at < end) {
            const int64_t k = left.column(at);
            from = right.start(k);
            length = static_cast<unsigned>(right.start(k + 1) - from);
            leads = lane_id() == 0 || !joins(left, repeats, begin, at, k);
        }
#pragma unroll
        for (int r = 0; r < TOGETHER; ++r)
            own[r] = at < end ? widen<T>(left_values[at + r * length_a]) : zero<T>();
        const int held = static_cast<int>(min(int64_t(32), end - first));
        const unsigned leaders = __ballot_sync(ALL_LANES, leads);
        for (int lane = 0; lane < held;) {
            // The run ends before the next leader.
            const unsigned after = leaders & ~((2u << lane) - 1);
            const int run = min(RUN, (after != 0 ? __ffs(after) - 1 : held) - lane);
            const int64_t start = __shfl_sync(ALL_LANES, from, lane);
            const unsigned all = __shfl_sync(ALL_LANES, length, lane);
            T multipliers[TOGETHER][RUN];
#pragma unroll
            for (int r = 0; r < TOGETHER; ++r) {
#pragma unroll
                for (int k = 0; k < RUN; ++k)
                    multipliers[r][k] = from_lane(own[r], (lane + k) & 31);
            }
            lane += run;
            for (unsigned base = 0; base < all; base += 32 * HELD) {
                unsigned bits[HELD];
                B values[HELD][RUN];
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    const unsigned i = base + 32 * h + lane_id();
                    bits[h] = span;
                    if (i < all) {
                        bits[h] = static_cast<unsigned>(columns[start + i] - low);
                        values[h][0] = right_values[start + i];
                        if (run > 1)
                            values[h][1] = right_values[start + all + i];
                        if (run > 2)
                            values[h][2] = right_values[start + 2 * int64_t(all) + i];
                    }
                }
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    if (bits[h] >= span)
                        continue;
                    const int slot = slot_of(words, bits[h]);
                    T sum[TOGETHER];
#pragma unroll
                    for (int r = 0; r < TOGETHER; ++r) {
                        sum[r] = plus(sums[slot + r * entries],
                                      times(multipliers[r][0], widen<T>(values[h][0])));
                    }
                    if (run > 1) {
#pragma unroll
                        for (int r = 0; r < TOGETHER; ++r)
                            sum[r] = plus(sum[r], times(multipliers[r][1], widen<T>(values[h][1])));
                    }
                    if (run > 2) {
#pragma unroll
                        for (int r = 0; r < TOGETHER; ++r)
                            sum[r] = plus(sum[r], times(multipliers[r][2], widen<T>(values[h][2])));
                    }
#pragma unroll
                    for (int r = 0; r < TOGETHER; ++r)
                        sums[slot + r * entries] = sum[r];
                }
            }
            __syncwarp();
        }
    }
}

// Adds the products of the rows of a pass, `rows` of them, by the add_rows of their number.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
add_pass(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
         const uint8_t *repeats, int64_t begin, int64_t end, int64_t low, unsigned span,
         const uint2 *words, T *sums, int entries, int rows, bool right_is_short) {
    if (rows == 1 && right_is_short) {
        add_products_of_short_rows<HELD, A, B, T, J>(
            left, right, left_values, right_values, begin, end, low, span, sums,
            [&](int64_t, int64_t k, int64_t &start, unsigned &count) {
                start = right.start(k);
                count = static_cast<unsigned>(right.start(k + 1) - start);
            },
            [&](unsigned bit) { return static_cast<unsigned>(slot_of(words, bit)); });
    } else if (rows == 1) {
        add_rows<1, A, B, T, J>(left, right, left_values, right_values, repeats, begin, end, low,
                                span, words, sums, entries);
    } else if (rows == 2) {
        add_rows<2, A, B, T, J>(left, right, left_values, right_values, repeats, begin, end, low,
                                span, words, sums, entries);
    } else {
        add_rows<3, A, B, T, J>(left, right, left_values, right_values, repeats, begin, end, low,
                                span, words, sums, entries);
    }
}

// Computes columns and values of the rows of a group. Shared memory: `bytes` per warp, for two
// words per 32 columns of the range, sums of up to ROWS rows, and 16-bit columns. `right_is_short`:
// rows of `right` are short in the mean.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_group(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
               const Scalar<T> &scale, const uint8_t *groups, const uint8_t *repeats,
               const int64_t *lows, const int64_t *spans, const uint32_t *list, int64_t count,
               int32_t bytes, bool right_is_short, const Output &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    unsigned char *part = memory + (threadIdx.x >> 5) * bytes;
    int64_t row;
    if (!take_item(list, count, row))
        return;
    const unsigned span = static_cast<unsigned>(spans[row]);
    const int64_t low = lows[row];
    const int used = (span + 31) / 32;
    const int64_t place = out.offsets[row];
    const int entries = static_cast<int>(out.offsets[row + 1] - place);
    const int rows = groups == nullptr ? 1 : groups[row];
    const int passes = (rows + ROWS - 1) / ROWS;
    const int most = (rows + passes - 1) / passes;
    T *sums = reinterpret_cast<T *>(part);
    uint2 *words = reinterpret_cast<uint2 *>(sums + (most * entries + 1) / 2 * 2);
    uint16_t *found = reinterpret_cast<uint16_t *>(words + used);
    const J *kept = static_cast<const J *>(out.kept);
    const int64_t begin = left.start(row), end = left.start(row + 1);
    const Scale<T> alpha(scale);

    for (int i = lane_id(); i < used; i += 32)
        words[i] = make_uint2(0, 0);
    __syncwarp();
    if (out.known) {
        for (int i = lane_id(); i < entries; i += 32) {
            const unsigned bit = static_cast<unsigned>(kept[place + i] - low);
            if (bit < span)
                set_one_bit(&words[bit >> 5].x, 1u << (bit & 31));
        }
        __syncwarp();
    } else {
        mark<2, J>(left, right, repeats, begin, end, low, span, &words[0].x);
    }
    // Differs only if the pattern changed after analysis.
    if (rank_words(words, used) != entries)
        return;
    __syncwarp();
    for (int i = lane_id(); i < used; i += 32) {
        int at = words[i].y;
        for (uint32_t word = words[i].x; word != 0; word &= word - 1)
            found[at++] = static_cast<uint16_t>(32 * i + __ffs(word) - 1);
    }
    __syncwarp();
    for (int row_done = 0; row_done < rows; row_done += most) {
        const int now = min(most, rows - row_done);
        for (int i = lane_id(); i < now * entries; i += 32)
            sums[i] = zero<T>();
        __syncwarp();
        const int64_t length = end - begin;
        const int64_t from = begin + row_done * length, to = from + length;
        if (!alpha.vanishes) {
            add_pass<A, B, T, J>(left, right, left_values, right_values, repeats, from, to,
                                 low + right.base, span, words, sums, entries, now, right_is_short);
        }
        for (int r = 0; r < now; ++r) {
            const int64_t target = place + static_cast<int64_t>(row_done + r) * entries;
            T *values = static_cast<T *>(out.values) + target;
            for (int i = lane_id(); i < entries; i += 32) {
                const int64_t column = low + found[i];
                values[i] = alpha.of(sums[r * entries + i]);
                out.store_new_column(target + i, static_cast<J>(column));
            }
        }
        __syncwarp();
    }
}

} // namespace

// repeats[row] = 1 if the row has the same columns as the one before; moved[row] = 1 if it has them
// shifted by one. Both are 0 for rows without entries. Either array may be NULL. `lanes` threads (a
// power of two up to 32) take one row; any grid.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_repeats(Factor matrix, int64_t rows, int32_t lanes, uint8_t *repeats, uint8_t *moved) {
    const int64_t rows_a_block = blockDim.x / lanes;
    const int inner = threadIdx.x % lanes;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / lanes;
        bool differs = true;
        int64_t by = 0;
        if (row > 0 && row < rows) {
            const int64_t before = matrix.start(row - 1), start = matrix.start(row);
            const int64_t length = matrix.start(row + 1) - start;
            differs = length != start - before || length == 0;
            // Most rows differ in the first column already.
            if (!differs) {
                by = matrix.column(start) - matrix.column(before);
                differs = by < 0 || by > 1;
            }
            for (int64_t i = inner; i < length && !differs; i += lanes)
                differs = matrix.column(start + i) != matrix.column(before + i) + by;
        }
        const unsigned any =
            reduce_lanes(unsigned(differs), lanes, [](unsigned a, unsigned b) { return a | b; });
        if (row < rows && inner == 0) {
            if (repeats != nullptr)
                repeats[row] = any == 0 && by == 0;
            if (moved != nullptr)
                moved[row] = any == 0 && by == 1;
        }
    }
}

// groups[row] = number of rows of the group that begins at the row, or 0 if the row is in a group
// that began before.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_find_same_patterns(const uint8_t *repeats, int64_t rows, uint8_t *groups) {
    const int64_t row = first_item();
    if (row >= rows)
        return;
    int64_t start = row;
    while (start % CUT != 0 && repeats[start])
        --start;
    int size = 0;
    if ((row - start) % GROUP == 0) {
        do {
            ++size;
        } while (size < GROUP && row + size < rows && (row + size) % CUT != 0 &&
                 repeats[row + size]);
    }
    groups[row] = static_cast<uint8_t>(size);
}

// For compute capability 8, CUDA 13's compiler keeps 8 bytes of a thread in local memory unless it
// is given a number of blocks, of which 8 do not limit the 40 registers that it uses.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define COUNT_BOUNDS __launch_bounds__(THREADS, 8)
#else
#define COUNT_BOUNDS __launch_bounds__(THREADS)
#endif
#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void COUNT_BOUNDS name(Factor left, Factor right, const uint8_t *groups, \
                                                 const uint8_t *repeats, const int64_t *lows,      \
                                                 const int64_t *spans, const uint32_t *list,       \
                                                 int64_t count, int32_t most, int64_t *counts) {   \
        let_next_begin();                                                                          \
        count_group<int##J##_t>(left, right, groups, repeats, lows, spans, list, count, most,      \
                                counts);                                                           \
        end_after_previous();                                                                      \
    }
KERNELS(count, (), (spgemm_same_pattern_count_32, 32), (spgemm_same_pattern_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) name(                                 \
        Factor left, Factor right, const A *left_values, const B *right_values, Scalar<T> alpha,   \
        const uint8_t *groups, const uint8_t *repeats, const int64_t *lows, const int64_t *spans,  \
        const uint32_t *list, int64_t count, int32_t bytes, int32_t right_is_short, Output out) {  \
        let_next_begin();                                                                          \
        multiply_group<A, B, T, J>(left, right, left_values, right_values, alpha, groups, repeats, \
                                   lows, spans, list, count, bytes, right_is_short != 0, out);     \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_same_pattern_multiply_f64_32, f64, 32),
        (spgemm_same_pattern_multiply_f32_32, f32, 32),
        (spgemm_same_pattern_multiply_f16f32_32, f16f32, 32),
        (spgemm_same_pattern_multiply_bf16f32_32, bf16f32, 32),
        (spgemm_same_pattern_multiply_c32_32, c32, 32),
        (spgemm_same_pattern_multiply_c64_32, c64, 32),
        (spgemm_same_pattern_multiply_f64_64, f64, 64),
        (spgemm_same_pattern_multiply_f32_64, f32, 64),
        (spgemm_same_pattern_multiply_f16f32_64, f16f32, 64),
        (spgemm_same_pattern_multiply_bf16f32_64, bf16f32, 64),
        (spgemm_same_pattern_multiply_c32_64, c32, 64),
        (spgemm_same_pattern_multiply_c64_64, c64, 64))
