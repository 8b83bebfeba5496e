// Wide rows of C where both factors are nearly dense: panels of the factors are expanded to dense
// matrices and multiplied by the kernels of spmm/dense.cuh; the results at the entries of C, which
// the masks of spgemm/dense_windows.cu give, become its values. A zero that is not stored times an
// infinity or NaN would give NaN, so results that are not finite are computed again from the stored
// entries.
#include "spgemm/common.cuh"
#include "spgemm/tasks.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Dense copy of the rows [first_row, first_row + rows) and columns [first_column, first_column +
// columns) of a matrix, with `ld` elements from row to row.
struct Panel {
    void *data;
    int64_t first_row;
    int64_t rows;
    int64_t first_column;
    int64_t columns;
    int64_t ld;
};

// Fills the panel, one row per warp: zeros first, then the entries. The columns of each row are
// distinct.
template <class T>
__device__ __forceinline__ void fill(const Factor &matrix, const T *values, const Panel &panel) {
    const int64_t step = grid_stride() / 32;
    for (int64_t row = first_item() / 32; row < panel.rows; row += step) {
        T *to = static_cast<T *>(panel.data) + row * panel.ld;
        for (int64_t i = lane_id(); i < panel.ld; i += 32)
            to[i] = T(0.f);
        __syncwarp();
        const int64_t number = panel.first_row + row;
        const int64_t begin = matrix.start(number), end = matrix.start(number + 1);
        for (int64_t at = begin + lane_id(); at < end; at += 32) {
            const int64_t column = matrix.column(at) - panel.first_column;
            if (column >= 0 && column < panel.columns)
                to[column] = values[at];
        }
    }
}

template <class T> __device__ __forceinline__ bool is_finite(T value) {
    return value - value == T(0);
}

// Computes one entry of C from the stored entries, in the order of the row's entries of `left`.
template <class A, class B, class T, class J>
__device__ __forceinline__ T entry(const Factor &left, const Factor &right, const A *left_values,
                                   const B *right_values, int64_t row, int64_t column) {
    const J *columns = static_cast<const J *>(right.indices.data);
    T sum = T(0);
    for (int64_t at = left.start(row); at < left.start(row + 1); ++at) {
        const int64_t k = left.column(at), end = right.start(k + 1);
        const int64_t found = first_where_not(right.start(k), end, [&](int64_t i) {
            return static_cast<int64_t>(columns[i]) - right.base < column;
        });
        if (found < end && static_cast<int64_t>(columns[found]) - right.base == column)
            sum = plus(sum, times(widen<T>(left_values[at]), widen<T>(right_values[found])));
    }
    return sum;
}

// Writes columns and values of the windows' entries that are in the panel of the product. One warp
// per task.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
take(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
     const Scalar<T> &scale, const Panel &panel, const Task *tasks, int64_t count,
     const uint32_t *masks, const uint32_t *before, const Output &out) {
    int64_t number;
    Task task;
    if (!take_item(tasks, count, number, task))
        return;
    const int64_t row = task.row - panel.first_row;
    const int64_t base = static_cast<int64_t>(task.window) * WINDOW;
    const int64_t end = panel.first_column + panel.columns;
    // Masks and positions of a window are stored with its first part.
    if (task.part > 0 || row < 0 || row >= panel.rows || base >= end ||
        base + WINDOW <= panel.first_column)
        return;
    const Scale<T> alpha(scale);
    const uint32_t word = masks[number * 32 + lane_id()];
    const T *products = static_cast<const T *>(panel.data) + row * panel.ld;
    T *values = static_cast<T *>(out.values);
    int64_t place = out.offsets[task.row] + before[number];
    for (int i = 0; i < WINDOW / 32; ++i) {
        const uint32_t mask = __shfl_sync(ALL_LANES, word, i);
        const int64_t column = base + 32 * i + lane_id();
        if ((mask >> lane_id() & 1) && column >= panel.first_column && column < end) {
            const int64_t at = place + __popc(mask & lanes_before());
            T sum = products[column - panel.first_column];
            if (!is_finite(sum)) {
                sum = entry<A, B, T, J>(left, right, left_values, right_values, task.row, column);
            }
            values[at] = alpha.of(sum);
            out.store_new_column(at, static_cast<J>(column));
        }
        place += __popc(mask);
    }
}

} // namespace

#define KERNEL_fill(name, types) KERNEL_OF(FILL, name, TYPES_##types)
#define FILL(name, A, B, C, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(Factor matrix, const A *values, Panel panel) {                                        \
        fill<A>(matrix, values, panel);                                                            \
    }
KERNELS(fill, (), (spgemm_dense_fill_f64, f64), (spgemm_dense_fill_f32, f32),
        (spgemm_dense_fill_f16f32, f16f32), (spgemm_dense_fill_bf16f32, bf16f32))

#define KERNEL_take(name, types, J) KERNEL_OF(TAKE, name, int##J##_t, TYPES_##types)
#define TAKE(name, J, A, B, C, T)                                                                  \
    extern "C" __global__ void __launch_bounds__(128, 8)                                           \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, Panel panel, const Task *tasks, int64_t count,                       \
             const uint32_t *masks, const uint32_t *before, Output out) {                          \
        take<A, B, T, J>(left, right, left_values, right_values, alpha, panel, tasks, count,       \
                         masks, before, out);                                                      \
    }
KERNELS(take, (), (spgemm_dense_take_f64_32, f64, 32), (spgemm_dense_take_f32_32, f32, 32),
        (spgemm_dense_take_f16f32_32, f16f32, 32), (spgemm_dense_take_bf16f32_32, bf16f32, 32),
        (spgemm_dense_take_f64_64, f64, 64), (spgemm_dense_take_f32_64, f32, 64),
        (spgemm_dense_take_f16f32_64, f16f32, 64), (spgemm_dense_take_bf16f32_64, bf16f32, 64))
