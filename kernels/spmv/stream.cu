// SpMV `stream`: y = alpha · A · x + beta · y on tiles of equally many stored entries, a warp for
// each tile. stream.cuh has the code, and src/format/stream.rs describes the arrays, of which
// `voids` marks the slots of empty rows.
//
// A row that several blocks add up is split: each of these blocks writes a partial sum to `parts`,
// and the last of them to finish, which it knows by the row's counter in `arrivals`, adds them. If
// more rows are split than there are counters, `arrivals` is NULL, and a launch of a `finish`
// kernel adds the partial sums instead.

#include "ptx/launch.cuh"
#include "spmv/stream.cuh"

using namespace tarsia;

// A column, relative to its tile's first one, has 16 low bits and, in tiles that span more than
// 2^16 columns, 16 high ones in another array. There is a kernel for each answer to the question
// which tiles have high halves, so that the usual one, none, does not look for them.
#define HIGH_none stream::High::NONE
#define HIGH_some stream::High::SOME
#define HIGH_all stream::High::ALL

// For compute capability 10.0 the compiler, if left to choose, keeps 8 bytes of a thread in local
// memory (fp32 with fp64 vectors); it does not if it is given a number of blocks.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
#define BOUNDS(A) __launch_bounds__(stream::THREADS, sizeof(A) > 8 ? 5 : 6)
#else
#define BOUNDS(A) __launch_bounds__(stream::THREADS)
#endif
// Computes y, but for split rows if `arrivals` is NULL. Grid: ceil(tiles / WARPS) blocks.
#define KERNEL_product(name, high, types) KERNEL_OF(STREAM, name, HIGH_##high, TYPES_##types)
#define STREAM(name, HIGH, A, X, Y, Acc)                                                           \
    extern "C" __global__ void BOUNDS(A)                                                           \
        name(int64_t rows, uint32_t tile_count, uint32_t last_slots, const stream::Tile *tiles,    \
             const stream::Bits<A> *ends, const stream::Bits<A> *voids, const uint16_t *lows,      \
             const uint16_t *highs, const A *values, const stream::Split *splits, const X *x,      \
             Y *y, Scalar<Acc> alpha, Scalar<Acc> beta, int32_t has_entries, int32_t evict_first,  \
             Acc *parts, uint32_t *arrivals) {                                                     \
        begin_product();                                                                           \
        const stream::Matrix<A> a = {rows,                                                         \
                                     tile_count,                                                   \
                                     last_slots,                                                   \
                                     tiles,                                                        \
                                     ends,                                                         \
                                     voids,                                                        \
                                     lows,                                                         \
                                     highs,                                                        \
                                     values,                                                       \
                                     splits,                                                       \
                                     stream_policy(evict_first != 0)};                             \
        stream::multiply<HIGH>(a, x, y, alpha, beta, has_entries != 0, parts, arrivals);           \
    }
KERNELS(product, (none), (spmv_stream_none_f64, f64), (spmv_stream_none_f32, f32),
        (spmv_stream_none_f32f64, f32f64), (spmv_stream_none_f16, f16),
        (spmv_stream_none_f16f32, f16f32), (spmv_stream_none_bf16, bf16),
        (spmv_stream_none_bf16f32, bf16f32), (spmv_stream_none_c32, c32),
        (spmv_stream_none_c64, c64))
KERNELS(product, (some), (spmv_stream_some_f64, f64), (spmv_stream_some_f32, f32),
        (spmv_stream_some_f32f64, f32f64), (spmv_stream_some_f16, f16),
        (spmv_stream_some_f16f32, f16f32), (spmv_stream_some_bf16, bf16),
        (spmv_stream_some_bf16f32, bf16f32), (spmv_stream_some_c32, c32),
        (spmv_stream_some_c64, c64))
KERNELS(product, (all), (spmv_stream_all_f64, f64), (spmv_stream_all_f32, f32),
        (spmv_stream_all_f32f64, f32f64), (spmv_stream_all_f16, f16),
        (spmv_stream_all_f16f32, f16f32), (spmv_stream_all_bf16, bf16),
        (spmv_stream_all_bf16f32, bf16f32), (spmv_stream_all_c32, c32), (spmv_stream_all_c64, c64))

// Adds the partial sums of split rows and stores them in y. Grid: one block per split row. Only the
// types of y and of the sums distinguish these kernels, so that there are fewer of them.
#define KERNEL_finish(name, types) KERNEL_OF(FINISH, name, TYPES_##types)
#define FINISH(name, A, X, Y, Acc)                                                                 \
    extern "C" __global__ void __launch_bounds__(stream::THREADS)                                  \
        name(const stream::Split *splits, const Acc *parts, Y *y, Scalar<Acc> alpha,               \
             Scalar<Acc> beta) {                                                                   \
        __shared__ Acc sums[stream::WARPS];                                                        \
        const Acc factor = alpha.get();                                                            \
        if (is_zero(factor))                                                                       \
            return;                                                                                \
        const stream::Split split = splits[blockIdx.x];                                            \
        const Acc sum = stream::sum_parts(split, parts, sums);                                     \
        if (threadIdx.x == 0)                                                                      \
            store(y + split.row, factor, sum, beta.get());                                         \
    }
KERNELS(finish, (), (spmv_stream_finish_f64, f64), (spmv_stream_finish_f32, f32),
        (spmv_stream_finish_f16, f16), (spmv_stream_finish_bf16, bf16),
        (spmv_stream_finish_c32, c32), (spmv_stream_finish_c64, c64))
