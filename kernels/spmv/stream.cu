// SpMV `stream`: y = alpha · A · x + beta · y on equal tiles of nonzeros, in one
// launch; in two where more rows are split than there are counters.
//
// Names: spmv_stream_<high>_<types>, where <high> says which tiles have high halves,
// none, some or all, and spmv_stream_finish_<types>.

#include "spmv/stream.cuh"

using namespace tarsia;

// Grid: ceil(tiles / WARPS) blocks.
#define STREAM(high, HIGH, types, A, X, Y, Acc)                                                    \
    extern "C" __global__ void __launch_bounds__(stream::THREADS) spmv_stream_##high##_##types(    \
        int64_t rows, uint32_t tile_count, uint32_t last_slots, const stream::Tile *tiles,         \
        const stream::Bits<A> *ends, const stream::Bits<A> *voids, const uint16_t *lows,           \
        const uint16_t *highs, const A *values, const stream::Split *splits, const X *x, Y *y,     \
        Scalar<Acc> alpha, Scalar<Acc> beta, int32_t has_entries, int32_t evict_first, Acc *parts, \
        uint32_t *arrivals) {                                                                      \
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
#define EACH_HIGH(...)                                                                             \
    STREAM(none, stream::High::NONE, __VA_ARGS__)                                                  \
    STREAM(some, stream::High::SOME, __VA_ARGS__)                                                  \
    STREAM(all, stream::High::ALL, __VA_ARGS__)
TARSIA_FOR_EACH_COMBO(EACH_HIGH)

// Grid: as many blocks as split rows.
#define FINISH(types, A, X, Y, Acc)                                                                \
    extern "C" __global__ void __launch_bounds__(stream::THREADS)                                  \
        spmv_stream_finish_##types(const stream::Split *splits, const Acc *parts, Y *y,            \
                                   Scalar<Acc> alpha, Scalar<Acc> beta) {                          \
        __shared__ Acc sums[stream::WARPS];                                                        \
        const Acc factor = alpha.get();                                                            \
        if (is_zero(factor))                                                                       \
            return;                                                                                \
        const stream::Split split = splits[blockIdx.x];                                            \
        const Acc sum = stream::sum_parts(split, parts, sums);                                     \
        if (threadIdx.x == 0)                                                                      \
            store(y + split.row, factor, sum, beta.get());                                         \
    }
TARSIA_FOR_EACH_COMBO(FINISH)
