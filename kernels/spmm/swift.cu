// SpMM `swift`: kernels of both precisions (spmm/swift.cuh).

#include "spmm/swift_bands.cuh"

using namespace tarsia;

#define PRODUCT(name, T, V, G)                                                                     \
    extern "C" __global__ void __launch_bounds__(swift::kThreads<G>)                               \
        spmm_swift_##name##_##V##_##G(swift::Matrix<T> m, swift::Dense<T> d, Scalar<T> alpha,      \
                                      int64_t groups) {                                            \
        swift::product<T, V, G>(m, d, alpha, groups);                                              \
    }
#define FINISH(name, T)                                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        spmm_swift_##name##_finish(const T *sums, T *c, int64_t ldc, int64_t rows, int64_t n,      \
                                   Scalar<T> alpha, Scalar<T> beta) {                              \
        swift::finish<T>(sums, c, ldc, rows, n, alpha, beta);                                      \
    }
#define SCALE(name, T)                                                                             \
    extern "C" __global__ void __launch_bounds__(256) spmm_swift_##name##_scale(                   \
        T *c, int64_t ldc, int64_t rows, int64_t n, Scalar<T> beta, int32_t vector) {              \
        swift::scale<T>(c, ldc, rows, n, beta, vector);                                            \
    }
PRODUCT(f32, float, 1, 4)
PRODUCT(f32, float, 1, 32)
PRODUCT(f32, float, 4, 8)
PRODUCT(f32, float, 4, 16)
PRODUCT(f32, float, 4, 32)
SCALE(f32, float)
FINISH(f32, float)
// There is no addition of two doubles to memory; lanes that are neighbours take half the time.
PRODUCT(f64, double, 1, 4)
PRODUCT(f64, double, 1, 8)
PRODUCT(f64, double, 1, 16)
PRODUCT(f64, double, 1, 32)
SCALE(f64, double)
FINISH(f64, double)

#define BANDS(name, T, V)                                                                          \
    extern "C" __global__ void __launch_bounds__(swift::kWarps * 32)                               \
        spmm_swift_##name##_bands_##V(swift::Bands<T> m, swift::Dense<T> d, swift::Out<T> out,     \
                                      Scalar<T> alpha, Scalar<T> beta, parts::Join join) {         \
        swift::bands<T, V>(m, d, out, alpha, beta, join);                                          \
    }
BANDS(f32, float, 1)
BANDS(f32, float, 4)
BANDS(f64, double, 1)
BANDS(f64, double, 2)
