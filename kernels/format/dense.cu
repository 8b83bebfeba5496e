// Scatters stored entries into a dense matrix of op(A) that holds zeros: element (i, j) is at i ·
// row_stride + j · col_stride.

#include "common/types.cuh"
#include "ptx/warp.cuh"

namespace tarsia {

template <class T> __device__ __forceinline__ T not_a_number() {
    if constexpr (same<T, f16>) {
        return __ushort_as_half(0x7fff);
    } else if constexpr (same<T, bf16>) {
        return __ushort_as_bfloat16(0x7fff);
    } else {
        return T(__int_as_float(0x7fffffff));
    }
}

// Returns a + b. If a 16-bit type cannot hold the sum exactly (as rounded to fp32), the result is
// NaN and `special` becomes 1: that row of each product is then computed from the stored entries.
template <class T> __device__ __forceinline__ T sum_of_repeats(T a, T b, uint32_t *special) {
    if constexpr (sizeof(T) == 2) {
        const float sum = widen<float>(a) + widen<float>(b);
        const T out = narrow<T>(sum);
        if (widen<float>(out) == sum)
            return out;
        *special = 1;
        return not_a_number<T>();
    } else {
        return a + b;
    }
}

// Returns whether a float is infinite, NaN, or too large for a sum of three finite bf16.
template <class T> __device__ __forceinline__ bool is_too_large(T value) {
    if constexpr (same<T, float>) {
        return !(fabsf(value) < 0x1p127f);
    } else {
        return false;
    }
}

// Fills the rows, one warp per row. `special` becomes 1 if a row of the products may have to be
// computed again from the stored entries. With `repeats`, entries of the same column are added in
// the order in which they are stored: of each 32 entries first the first one of each column, then
// the second, …
template <class T, class I, class J>
__device__ __forceinline__ void dense_fill(const I *offsets, const J *indices, const T *values,
                                           int64_t base, int64_t rows, T *out, int64_t row_stride,
                                           int64_t col_stride, int32_t repeats, uint32_t *special) {
    const int lane = threadIdx.x % 32;
    const int64_t step = int64_t(gridDim.x) * (blockDim.x / 32);
    for (int64_t row = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; row < rows;
         row += step) {
        const int64_t begin = int64_t(offsets[row]) - base, end = int64_t(offsets[row + 1]) - base;
        T *to = out + row * row_stride - base * col_stride;
        if (!repeats) {
            for (int64_t at = begin + lane; at < end; at += 32) {
                const T value = values[at];
                to[indices[at] * col_stride] = value;
                if (special != nullptr && is_too_large(value))
                    *special = 1;
            }
            continue;
        }
        for (int64_t first = begin; first < end; first += 32) {
            const int64_t at = first + lane;
            const bool exists = at < end;
            // Lanes without an entry get unique keys: no column of the matrix is negative.
            const J column = exists ? indices[at] : J(-1 - lane);
            const unsigned same = __match_any_sync(ALL_LANES, column);
            const int rank = __popc(same & ((1u << lane) - 1));
            const int last = __reduce_max_sync(ALL_LANES, rank);
            for (int turn = 0; turn <= last; ++turn) {
                if (exists && rank == turn) {
                    T *sum = to + column * col_stride;
                    const T value = sum_of_repeats(*sum, values[at], special);
                    *sum = value;
                    if (special != nullptr && is_too_large(value))
                        *special = 1;
                }
                __syncwarp();
            }
        }
    }
}

} // namespace tarsia

using namespace tarsia;

#define KERNEL_fill(name, types, O, J) KERNEL_OF(FILL, name, int##O##_t, int##J##_t, TYPES_##types)
#define FILL(name, I, J, T, X, Y, Acc)                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const I *offsets, const J *indices, const T *values, int64_t base, int64_t rows,      \
             T *out, int64_t row_stride, int64_t col_stride, int32_t repeats, uint32_t *special) { \
        dense_fill<T, I, J>(offsets, indices, values, base, rows, out, row_stride, col_stride,     \
                            repeats, special);                                                     \
    }
KERNELS(fill, (), (dense_fill_f16_32_32, f16, 32, 32), (dense_fill_f16_64_32, f16, 64, 32),
        (dense_fill_f16_64_64, f16, 64, 64), (dense_fill_bf16_32_32, bf16, 32, 32),
        (dense_fill_bf16_64_32, bf16, 64, 32), (dense_fill_bf16_64_64, bf16, 64, 64),
        (dense_fill_f32_32_32, f32, 32, 32), (dense_fill_f32_64_32, f32, 64, 32),
        (dense_fill_f32_64_64, f32, 64, 64), (dense_fill_f64_32_32, f64, 32, 32),
        (dense_fill_f64_64_32, f64, 64, 32), (dense_fill_f64_64_64, f64, 64, 64))
