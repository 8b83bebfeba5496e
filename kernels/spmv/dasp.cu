// SpMV `dasp`: y = alpha · op(A) · x + beta · y in one launch; see spmv/dasp.cuh.

#include "ptx/launch.cuh"
#include "spmv/dasp.cuh"

namespace tarsia::dasp {

// Number of blocks per multiprocessor for which registers must suffice: as many as possible without
// spilling, since loads in flight hide the memory's latency. Compilers use more registers for
// compute capability 8.6 and 8.9, and from 10.0 on.
template <class Acc> constexpr int RESIDENT = sizeof(Acc) == 8 ? 7 : 5;
#if defined(__CUDA_ARCH__) &&                                                                      \
    ((__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1200)
template <> constexpr int RESIDENT<float> = 9;
#else
template <> constexpr int RESIDENT<float> = 10;
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
template <> constexpr int RESIDENT<double> = 7;
#else
template <> constexpr int RESIDENT<double> = 8;
#endif

} // namespace tarsia::dasp

using namespace tarsia;

// Grid: the last of layout.ends_of_parts. `parts` has one sum per task of split rows, `arrivals`
// one counter for every splits_per_counter split rows.
#define KERNEL_product(name, types) KERNEL_OF(DASP, name, TYPES_##types)
#define DASP(name, A, X, Y, Acc)                                                                   \
    extern "C" __global__ void __launch_bounds__(dasp::THREADS, dasp::RESIDENT<Acc>)               \
        name(const __grid_constant__ dasp::Layout<A> layout, const X *x, Y *y, Scalar<Acc> alpha,  \
             Scalar<Acc> beta, Acc *parts, uint32_t *arrivals) {                                   \
        begin_product();                                                                           \
        const dasp::Product<A, X, Y, Acc> product = {                                              \
            layout, x, y, alpha, beta, stream_policy(layout.stream != 0), parts, arrivals};        \
        if (is_zero(alpha.get())) {                                                                \
            spmv::scale_rows(y, layout.rows, beta.get());                                          \
        } else {                                                                                   \
            product.run();                                                                         \
        }                                                                                          \
    }
KERNELS(product, (), (spmv_dasp_f64, f64), (spmv_dasp_f32, f32), (spmv_dasp_f32f64, f32f64),
        (spmv_dasp_f16, f16), (spmv_dasp_f16f32, f16f32), (spmv_dasp_bf16, bf16),
        (spmv_dasp_bf16f32, bf16f32), (spmv_dasp_c32, c32), (spmv_dasp_c64, c64))
