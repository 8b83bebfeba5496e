// SpMV `csr`: y = alpha · A · x + beta · y on rows of A as they are stored, in
// one launch, without analysis. The headers have the two forms.
//
// Names: spmv_csr_rows_<types>_<offset>_<column>, spmv_csr_balanced_<…>, and
// spmv_csr_places_<offset>, which computes what a plan may keep for `balanced`.

#include "spmv/balanced.cuh"
#include "spmv/rows.cuh"

namespace tarsia::spmv {

// Blocks of `balanced` on a multiprocessor that registers must leave room for,
// which is how many a launch starts (the same rule as in the executor): one
// more would run alone after the others. The entries that these have under way
// are three times what the memory's latency takes.
template <class Acc> constexpr int BALANCED_BLOCKS = sizeof(Acc) <= 4 ? 4 : 3;

} // namespace tarsia::spmv

using namespace tarsia;

// Grid: ceil(rows · 2^lanes_log2 / THREADS).
#define ROWS(offset_index, I, J, types, A, X, Y, Acc)                                              \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS)                                    \
        spmv_csr_rows_##types##_##offset_index(                                                    \
            int64_t rows, int64_t nnz, const I *offsets, const J *indices, const A *values,        \
            const X *x, Y *y, const uint32_t *order, Scalar<Acc> alpha, Scalar<Acc> beta,          \
            int32_t base, int32_t stream, int32_t lanes_log2) {                                    \
        const spmv::Csr<A, I, J> a = {                                                             \
            rows, nnz, offsets, indices, values, base, stream_policy(stream != 0), order};         \
        spmv::rows(a, x, y, alpha.get(), beta.get(), lanes_log2);                                  \
    }

// Grid: at least (rows + nnz) / (WARPS · share), at most half of parts, all of
// arrivals. share > 0.
#define BALANCED(offset_index, I, J, types, A, X, Y, Acc)                                          \
    extern "C" __global__ void __launch_bounds__(spmv::THREADS, spmv::BALANCED_BLOCKS<Acc>)        \
        spmv_csr_balanced_##types##_##offset_index(                                                \
            int64_t rows, int64_t nnz, const I *offsets, const J *indices, const A *values,        \
            const X *x, Y *y, const uint32_t *order, Scalar<Acc> alpha, Scalar<Acc> beta,          \
            int32_t base, int32_t stream, int64_t share, int64_t overhang,                         \
            const spmv::Place *places, Acc *parts, uint32_t *arrivals) {                           \
        const spmv::Csr<A, I, J> a = {                                                             \
            rows, nnz, offsets, indices, values, base, stream_policy(stream != 0), order};         \
        spmv::balanced(a, x, y, alpha.get(), beta.get(), spmv::Deal{share, overhang}, places,      \
                       parts, arrivals);                                                           \
    }

#define BOTH(offset_index, I, J, types, A, X, Y, Acc)                                              \
    ROWS(offset_index, I, J, types, A, X, Y, Acc)                                                  \
    BALANCED(offset_index, I, J, types, A, X, Y, Acc)
#define EACH_WIDTH(types, A, X, Y, Acc) TARSIA_FOR_EACH_WIDTH(BOTH, types, A, X, Y, Acc)
#ifdef BENCH
EACH_WIDTH(f64, double, double, double, double)
EACH_WIDTH(f32, float, float, float, float)
#else
TARSIA_FOR_EACH_COMBO(EACH_WIDTH)
#endif

// Place t of count for t = 0 … count − 1: one thread each.
#define PLACES(offset, I)                                                                          \
    extern "C" __global__ void spmv_csr_places_##offset(                                           \
        int64_t rows, int64_t nnz, const I *offsets, int32_t base, int64_t share,                  \
        int64_t overhang, int64_t count, spmv::Place *places) {                                    \
        const int64_t t = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;                          \
        if (t >= count)                                                                            \
            return;                                                                                \
        places[t] = spmv::find_place(offsets, rows, nnz, base, spmv::Deal{share, overhang}, t);    \
    }
PLACES(32, int32_t)
PLACES(64, int64_t)
