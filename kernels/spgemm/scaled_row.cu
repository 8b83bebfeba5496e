// Rows of `left` with one entry, where the columns of each row of `right` ascend and are distinct:
// such a row of the product is a scaled row of `right`, and needs neither hash table nor sort.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Number of entries that a lane holds at a time.
constexpr int HELD = 2;

// Copy of scaled rows of `right` to rows of the product.
template <class A, class B, class T, class J> struct Copy {
    const Factor &left, &right;
    const A *left_values;
    const B *right_values;
    Scale<T> alpha;
    const Output &out;

    // Finds the begin of the row of `right`, its destination and its multiplier; returns the number
    // of entries.
    __device__ __forceinline__ int64_t find(int64_t row, int64_t &from, int64_t &to,
                                            T &multiplier) const {
        const int64_t at = left.start(row), k = left.column(at);
        from = right.start(k);
        to = out.offsets[row];
        multiplier = alpha.vanishes ? zero<T>() : widen<T>(left_values[at]);
        // The second is less only if the pattern changed after analysis.
        return min(right.start(k + 1) - from, out.offsets[row + 1] - to);
    }

    __device__ __forceinline__ J column(int64_t at) const {
        return static_cast<const J *>(right.indices.data)[at] - static_cast<J>(right.base);
    }

    __device__ __forceinline__ T value(int64_t at) const {
        return alpha.vanishes ? zero<T>() : widen<T>(right_values[at]);
    }

    __device__ __forceinline__ void store(int64_t to, J column, T multiplier, T value) const {
        // Every sum begins with +0, which turns a product of −0 into +0.
        const T sum = plus(zero<T>(), times(multiplier, value));
        static_cast<T *>(out.values)[to] = alpha.of(sum);
        out.store_new_column(to, column);
    }
};

// Copies rows of at most 64 entries: a warp takes 32 of them, whose entries, one after the other,
// are distributed over the lanes.
template <class A, class B, class T, class J>
__device__ __forceinline__ void copy_short(const Copy<A, B, T, J> &copy, const uint32_t *list,
                                           int64_t count) {
    // By way of the warp's number, which takes fewer registers than first_item() alone.
    const int64_t warp = first_item() / 32;
    const int64_t mine = warp * 32 + lane_id();
    int64_t from = 0, to = 0;
    T multiplier = zero<T>();
    int length = 0;
    if (mine < count)
        length = static_cast<int>(copy.find(list[mine], from, to, multiplier));
    const int sum = prefix_sum(length);
    const int total = __shfl_sync(ALL_LANES, sum, 31);
    from -= sum - length;
    to -= sum - length;
    for (int base = 0; base < total; base += 32 * HELD) {
        // Destination and column of each entry, its value in `right`, and the row's multiplier.
        int64_t target[HELD];
        J column[HELD];
        T value[HELD], left[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            const int entry = base + 32 * h + lane_id();
            // The entry's row is in the first lane whose sum exceeds the entry's number.
            const int owner = owner_of(sum, entry);
            const int64_t position = __shfl_sync(ALL_LANES, from, owner) + entry;
            target[h] = __shfl_sync(ALL_LANES, to, owner) + entry;
            left[h] = from_lane(multiplier, owner);
            const bool active = entry < total;
            column[h] = active ? copy.column(position) : J(0);
            value[h] = active ? copy.value(position) : zero<T>();
        }
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (base + 32 * h + lane_id() < total)
                copy.store(target[h], column[h], left[h], value[h]);
        }
    }
}

// Copies one row per block.
template <class A, class B, class T, class J>
__device__ __forceinline__ void copy_long(const Copy<A, B, T, J> &copy, const uint32_t *list) {
    int64_t from, to;
    T multiplier;
    const int64_t length = copy.find(list[blockIdx.x], from, to, multiplier);
    for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
        copy.store(to + i, copy.column(from + i), multiplier, copy.value(from + i));
}

} // namespace

// counts[row] = number of products of the row if its row of `left` has one entry, else zero;
// counts[rows] = 0.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_scaled_row_counts(Factor left, const int64_t *products, int64_t rows, int64_t *counts) {
    const int64_t row = first_item();
    if (row < rows)
        counts[row] = left.start(row + 1) - left.start(row) == 1 ? products[row] : 0;
    if (row == rows)
        counts[rows] = 0;
}

// With `together`, rows of the list are short, at most 64 entries (SCALED_SHORT in rows.cu), and a
// warp takes 32 rows together; otherwise each block takes one row.
#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, const uint32_t *list, int64_t count, int32_t together, Output out) { \
        let_next_begin();                                                                          \
        const Copy<A, B, T, J> copy{left, right, left_values, right_values, Scale<T>(alpha), out}; \
        if (together) {                                                                            \
            copy_short(copy, list, count);                                                         \
        } else {                                                                                   \
            copy_long(copy, list);                                                                 \
        }                                                                                          \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_scaled_row_multiply_f64_32, f64, 32),
        (spgemm_scaled_row_multiply_f32_32, f32, 32),
        (spgemm_scaled_row_multiply_f16f32_32, f16f32, 32),
        (spgemm_scaled_row_multiply_bf16f32_32, bf16f32, 32),
        (spgemm_scaled_row_multiply_c32_32, c32, 32), (spgemm_scaled_row_multiply_c64_32, c64, 32),
        (spgemm_scaled_row_multiply_f64_64, f64, 64), (spgemm_scaled_row_multiply_f32_64, f32, 64),
        (spgemm_scaled_row_multiply_f16f32_64, f16f32, 64),
        (spgemm_scaled_row_multiply_bf16f32_64, bf16f32, 64),
        (spgemm_scaled_row_multiply_c32_64, c32, 64), (spgemm_scaled_row_multiply_c64_64, c64, 64))
