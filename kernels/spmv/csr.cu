// SpMV `csr`: y = alpha · A · x + beta · y on rows of A as they are stored, in one launch, without
// analysis. balanced.cuh, long_rows.cuh and rows.cuh have the three forms.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "ptx/launch.cuh"
#include "spmv/balanced.cuh"
#include "spmv/long_rows.cuh"
#include "spmv/narrow.cuh"
#include "spmv/rows.cuh"

namespace tarsia::spmv {

// Number of blocks of `balanced` per multiprocessor for which registers must suffice, which is how
// many a launch starts (by the same rule as in the executor): one more would run alone after the
// others. The entries that they have in flight are three times what the memory's latency takes.
template <class Acc> constexpr int BALANCED_BLOCKS = sizeof(Acc) <= 4 ? 4 : 3;

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(rows · 2^lanes_log2 / THREADS). O and J: bits of offsets and of columns. `rows_of`:
// the row of y of each row or, for columns of 16 bits, the origin of each row (or NULL).
#define KERNEL_rows(name, types, O, J) KERNEL_OF(ROWS, name, int##O##_t, int##J##_t, TYPES_##types)
#define ROWS(name, I, J, A, X, Y, Acc)                                                             \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS)                                    \
        name(int64_t rows, int64_t nnz, const I *offsets, const J *indices, const A *values,       \
             const X *x, Y *y, const Y *old, const uint32_t *rows_of, Scalar<Acc> alpha,           \
             Scalar<Acc> beta, int32_t base, int32_t stream, int32_t lanes_log2) {                 \
        begin_product();                                                                           \
        const auto a = spmv::csr(rows, nnz, offsets, indices, values, base,                        \
                                 stream_policy(stream != 0), rows_of);                             \
        spmv::rows(a, x, Target<Y>{y, old}, alpha.get(), beta.get(), lanes_log2);                  \
    }
KERNELS(rows, (f64), (spmv_csr_rows_f64_32_32, 32, 32), (spmv_csr_rows_f64_64_32, 64, 32),
        (spmv_csr_rows_f64_64_64, 64, 64))
KERNELS(rows, (f32), (spmv_csr_rows_f32_32_32, 32, 32), (spmv_csr_rows_f32_64_32, 64, 32),
        (spmv_csr_rows_f32_64_64, 64, 64))
KERNELS(rows, (f32f64), (spmv_csr_rows_f32f64_32_32, 32, 32), (spmv_csr_rows_f32f64_64_32, 64, 32),
        (spmv_csr_rows_f32f64_64_64, 64, 64))
KERNELS(rows, (f16), (spmv_csr_rows_f16_32_32, 32, 32), (spmv_csr_rows_f16_64_32, 64, 32),
        (spmv_csr_rows_f16_64_64, 64, 64))
KERNELS(rows, (f16f32), (spmv_csr_rows_f16f32_32_32, 32, 32), (spmv_csr_rows_f16f32_64_32, 64, 32),
        (spmv_csr_rows_f16f32_64_64, 64, 64))
KERNELS(rows, (bf16), (spmv_csr_rows_bf16_32_32, 32, 32), (spmv_csr_rows_bf16_64_32, 64, 32),
        (spmv_csr_rows_bf16_64_64, 64, 64))
KERNELS(rows, (bf16f32), (spmv_csr_rows_bf16f32_32_32, 32, 32),
        (spmv_csr_rows_bf16f32_64_32, 64, 32), (spmv_csr_rows_bf16f32_64_64, 64, 64))
KERNELS(rows, (c32), (spmv_csr_rows_c32_32_32, 32, 32), (spmv_csr_rows_c32_64_32, 64, 32),
        (spmv_csr_rows_c32_64_64, 64, 64))
KERNELS(rows, (c64), (spmv_csr_rows_c64_32_32, 32, 32), (spmv_csr_rows_c64_64_32, 64, 32),
        (spmv_csr_rows_c64_64_64, 64, 64))

// Variants for columns of 16 bits.
#define KERNEL_rows_16(name, types, O) KERNEL_OF(ROWS, name, int##O##_t, uint16_t, TYPES_##types)
KERNELS(rows_16, (f64), (spmv_csr_rows_16_f64_32, 32), (spmv_csr_rows_16_f64_64, 64))
KERNELS(rows_16, (f32), (spmv_csr_rows_16_f32_32, 32), (spmv_csr_rows_16_f32_64, 64))
KERNELS(rows_16, (f32f64), (spmv_csr_rows_16_f32f64_32, 32), (spmv_csr_rows_16_f32f64_64, 64))
KERNELS(rows_16, (f16), (spmv_csr_rows_16_f16_32, 32), (spmv_csr_rows_16_f16_64, 64))
KERNELS(rows_16, (f16f32), (spmv_csr_rows_16_f16f32_32, 32), (spmv_csr_rows_16_f16f32_64, 64))
KERNELS(rows_16, (bf16), (spmv_csr_rows_16_bf16_32, 32), (spmv_csr_rows_16_bf16_64, 64))
KERNELS(rows_16, (bf16f32), (spmv_csr_rows_16_bf16f32_32, 32), (spmv_csr_rows_16_bf16f32_64, 64))
KERNELS(rows_16, (c32), (spmv_csr_rows_16_c32_32, 32), (spmv_csr_rows_16_c32_64, 64))
KERNELS(rows_16, (c64), (spmv_csr_rows_16_c64_32, 32), (spmv_csr_rows_16_c64_64, 64))

// Grid: a group of threads for each row and for each cut, ceil(nnz / piece) − 1, or for each row
// alone if no row has more than `most` entries. Blocks have WARPS_OF_ROWS groups if lanes is 32,
// else one. `rows_of` as for `rows`.
#define KERNEL_long_rows(name, types, O, J)                                                        \
    KERNEL_OF(LONG_ROWS, name, int##O##_t, int##J##_t, TYPES_##types)
#define LONG_ROWS(name, I, J, A, X, Y, Acc)                                                        \
    extern "C" __global__ void __launch_bounds__(spmv::MOST_LANES, spmv::LONG_ROW_BLOCKS<Acc>)     \
        name(int64_t rows, int64_t nnz, const I *offsets, const J *indices, const A *values,       \
             const X *x, Y *y, const Y *old, const uint32_t *rows_of, Scalar<Acc> alpha,           \
             Scalar<Acc> beta, int32_t base, int32_t stream, int32_t lanes, int64_t piece,         \
             int64_t most, Acc *parts, uint32_t *arrivals) {                                       \
        begin_product();                                                                           \
        const auto a = spmv::csr(rows, nnz, offsets, indices, values, base,                        \
                                 stream_policy(stream != 0), rows_of);                             \
        spmv::long_rows(a, x, Target<Y>{y, old}, alpha.get(), beta.get(), lanes, piece, most,      \
                        parts, arrivals);                                                          \
    }
KERNELS(long_rows, (f64), (spmv_csr_long_rows_f64_32_32, 32, 32),
        (spmv_csr_long_rows_f64_64_32, 64, 32), (spmv_csr_long_rows_f64_64_64, 64, 64))
KERNELS(long_rows, (f32), (spmv_csr_long_rows_f32_32_32, 32, 32),
        (spmv_csr_long_rows_f32_64_32, 64, 32), (spmv_csr_long_rows_f32_64_64, 64, 64))
KERNELS(long_rows, (f32f64), (spmv_csr_long_rows_f32f64_32_32, 32, 32),
        (spmv_csr_long_rows_f32f64_64_32, 64, 32), (spmv_csr_long_rows_f32f64_64_64, 64, 64))
KERNELS(long_rows, (f16), (spmv_csr_long_rows_f16_32_32, 32, 32),
        (spmv_csr_long_rows_f16_64_32, 64, 32), (spmv_csr_long_rows_f16_64_64, 64, 64))
KERNELS(long_rows, (f16f32), (spmv_csr_long_rows_f16f32_32_32, 32, 32),
        (spmv_csr_long_rows_f16f32_64_32, 64, 32), (spmv_csr_long_rows_f16f32_64_64, 64, 64))
KERNELS(long_rows, (bf16), (spmv_csr_long_rows_bf16_32_32, 32, 32),
        (spmv_csr_long_rows_bf16_64_32, 64, 32), (spmv_csr_long_rows_bf16_64_64, 64, 64))
KERNELS(long_rows, (bf16f32), (spmv_csr_long_rows_bf16f32_32_32, 32, 32),
        (spmv_csr_long_rows_bf16f32_64_32, 64, 32), (spmv_csr_long_rows_bf16f32_64_64, 64, 64))
KERNELS(long_rows, (c32), (spmv_csr_long_rows_c32_32_32, 32, 32),
        (spmv_csr_long_rows_c32_64_32, 64, 32), (spmv_csr_long_rows_c32_64_64, 64, 64))
KERNELS(long_rows, (c64), (spmv_csr_long_rows_c64_32_32, 32, 32),
        (spmv_csr_long_rows_c64_64_32, 64, 32), (spmv_csr_long_rows_c64_64_64, 64, 64))

// Variants for columns of 16 bits.
#define KERNEL_long_rows_16(name, types, O)                                                        \
    KERNEL_OF(LONG_ROWS, name, int##O##_t, uint16_t, TYPES_##types)
KERNELS(long_rows_16, (f64), (spmv_csr_long_rows_16_f64_32, 32), (spmv_csr_long_rows_16_f64_64, 64))
KERNELS(long_rows_16, (f32), (spmv_csr_long_rows_16_f32_32, 32), (spmv_csr_long_rows_16_f32_64, 64))
KERNELS(long_rows_16, (f32f64), (spmv_csr_long_rows_16_f32f64_32, 32),
        (spmv_csr_long_rows_16_f32f64_64, 64))
KERNELS(long_rows_16, (f16), (spmv_csr_long_rows_16_f16_32, 32), (spmv_csr_long_rows_16_f16_64, 64))
KERNELS(long_rows_16, (f16f32), (spmv_csr_long_rows_16_f16f32_32, 32),
        (spmv_csr_long_rows_16_f16f32_64, 64))
KERNELS(long_rows_16, (bf16), (spmv_csr_long_rows_16_bf16_32, 32),
        (spmv_csr_long_rows_16_bf16_64, 64))
KERNELS(long_rows_16, (bf16f32), (spmv_csr_long_rows_16_bf16f32_32, 32),
        (spmv_csr_long_rows_16_bf16f32_64, 64))
KERNELS(long_rows_16, (c32), (spmv_csr_long_rows_16_c32_32, 32), (spmv_csr_long_rows_16_c32_64, 64))
KERNELS(long_rows_16, (c64), (spmv_csr_long_rows_16_c64_32, 32), (spmv_csr_long_rows_16_c64_64, 64))

// Grid: at least (rows + nnz) / (WARPS · share) blocks; `parts` has two elements per block,
// `arrivals` one. share > 0. `rows_of` as above, with an origin for each chunk.
#define KERNEL_balanced(name, types, O, J)                                                         \
    KERNEL_OF(BALANCED, name, int##O##_t, int##J##_t, TYPES_##types)
#define BALANCED(name, I, J, A, X, Y, Acc)                                                         \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS, spmv::BALANCED_BLOCKS<Acc>)        \
        name(int64_t rows, int64_t nnz, const I *offsets, const J *indices, const A *values,       \
             const X *x, Y *y, const Y *old, const uint32_t *rows_of, Scalar<Acc> alpha,           \
             Scalar<Acc> beta, int32_t base, int32_t stream, int64_t share, int64_t overhang,      \
             const spmv::MergePoint *merge_points, Acc *parts, uint32_t *arrivals) {               \
        begin_product();                                                                           \
        const auto a = spmv::csr(rows, nnz, offsets, indices, values, base,                        \
                                 stream_policy(stream != 0), rows_of);                             \
        spmv::balanced(a, x, Target<Y>{y, old}, alpha.get(), beta.get(),                           \
                       spmv::Deal{share, overhang}, merge_points, parts, arrivals);                \
    }
KERNELS(balanced, (f64), (spmv_csr_balanced_f64_32_32, 32, 32),
        (spmv_csr_balanced_f64_64_32, 64, 32), (spmv_csr_balanced_f64_64_64, 64, 64))
KERNELS(balanced, (f32), (spmv_csr_balanced_f32_32_32, 32, 32),
        (spmv_csr_balanced_f32_64_32, 64, 32), (spmv_csr_balanced_f32_64_64, 64, 64))
KERNELS(balanced, (f32f64), (spmv_csr_balanced_f32f64_32_32, 32, 32),
        (spmv_csr_balanced_f32f64_64_32, 64, 32), (spmv_csr_balanced_f32f64_64_64, 64, 64))
KERNELS(balanced, (f16), (spmv_csr_balanced_f16_32_32, 32, 32),
        (spmv_csr_balanced_f16_64_32, 64, 32), (spmv_csr_balanced_f16_64_64, 64, 64))
KERNELS(balanced, (f16f32), (spmv_csr_balanced_f16f32_32_32, 32, 32),
        (spmv_csr_balanced_f16f32_64_32, 64, 32), (spmv_csr_balanced_f16f32_64_64, 64, 64))
KERNELS(balanced, (bf16), (spmv_csr_balanced_bf16_32_32, 32, 32),
        (spmv_csr_balanced_bf16_64_32, 64, 32), (spmv_csr_balanced_bf16_64_64, 64, 64))
KERNELS(balanced, (bf16f32), (spmv_csr_balanced_bf16f32_32_32, 32, 32),
        (spmv_csr_balanced_bf16f32_64_32, 64, 32), (spmv_csr_balanced_bf16f32_64_64, 64, 64))
KERNELS(balanced, (c32), (spmv_csr_balanced_c32_32_32, 32, 32),
        (spmv_csr_balanced_c32_64_32, 64, 32), (spmv_csr_balanced_c32_64_64, 64, 64))
KERNELS(balanced, (c64), (spmv_csr_balanced_c64_32_32, 32, 32),
        (spmv_csr_balanced_c64_64_32, 64, 32), (spmv_csr_balanced_c64_64_64, 64, 64))

// Variants for columns of 16 bits.
#define KERNEL_balanced_16(name, types, O)                                                         \
    KERNEL_OF(BALANCED, name, int##O##_t, uint16_t, TYPES_##types)
KERNELS(balanced_16, (f64), (spmv_csr_balanced_16_f64_32, 32), (spmv_csr_balanced_16_f64_64, 64))
KERNELS(balanced_16, (f32), (spmv_csr_balanced_16_f32_32, 32), (spmv_csr_balanced_16_f32_64, 64))
KERNELS(balanced_16, (f32f64), (spmv_csr_balanced_16_f32f64_32, 32),
        (spmv_csr_balanced_16_f32f64_64, 64))
KERNELS(balanced_16, (f16), (spmv_csr_balanced_16_f16_32, 32), (spmv_csr_balanced_16_f16_64, 64))
KERNELS(balanced_16, (f16f32), (spmv_csr_balanced_16_f16f32_32, 32),
        (spmv_csr_balanced_16_f16f32_64, 64))
KERNELS(balanced_16, (bf16), (spmv_csr_balanced_16_bf16_32, 32), (spmv_csr_balanced_16_bf16_64, 64))
KERNELS(balanced_16, (bf16f32), (spmv_csr_balanced_16_bf16f32_32, 32),
        (spmv_csr_balanced_16_bf16f32_64, 64))
KERNELS(balanced_16, (c32), (spmv_csr_balanced_16_c32_32, 32), (spmv_csr_balanced_16_c32_64, 64))
KERNELS(balanced_16, (c64), (spmv_csr_balanced_16_c64_32, 32), (spmv_csr_balanced_16_c64_64, 64))

// Computes the points of the merge that a plan may keep for `balanced`: t = 0 … count − 1, one
// thread each.
#define KERNEL_merge_points(name, O)                                                               \
    extern "C" __global__ void name(int64_t rows, int64_t nnz, const int##O##_t *offsets,          \
                                    int32_t base, int64_t share, int64_t overhang, int64_t count,  \
                                    spmv::MergePoint *merge_points) {                              \
        const int64_t t = first_item();                                                            \
        if (t >= count)                                                                            \
            return;                                                                                \
        merge_points[t] =                                                                          \
            spmv::find_merge_point(offsets, rows, nnz, base, spmv::Deal{share, overhang}, t);      \
    }
KERNELS(merge_points, (), (spmv_csr_merge_points_32, 32), (spmv_csr_merge_points_64, 64))

// Conversion to columns of 16 bits. Grid: narrow_rows as `rows`; narrow_chunks any number of blocks
// of THREADS.
#define KERNEL_narrow_rows(name, O, J)                                                             \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS)                                    \
        name(int64_t rows, const int##O##_t *offsets, const int##J##_t *indices, int32_t base,     \
             int32_t lanes_log2, uint16_t *columns, uint32_t *origins, unsigned long long *far) {  \
        spmv::narrow_rows(rows, offsets, indices, base, lanes_log2, columns, origins, far);        \
    }
KERNELS(narrow_rows, (), (spmv_csr_narrow_rows_32_32, 32, 32), (spmv_csr_narrow_rows_64_32, 64, 32),
        (spmv_csr_narrow_rows_64_64, 64, 64))
#define KERNEL_narrow_chunks(name, J)                                                              \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS)                                    \
        name(int64_t nnz, const int##J##_t *indices, int32_t base, uint16_t *columns,              \
             uint32_t *origins, unsigned long long *far) {                                         \
        spmv::narrow_chunks(nnz, indices, base, columns, origins, far);                            \
    }
KERNELS(narrow_chunks, (), (spmv_csr_narrow_chunks_32, 32), (spmv_csr_narrow_chunks_64, 64))
