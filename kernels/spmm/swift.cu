// SpMM `swift`: kernels of both precisions (see spmm/swift.cuh).

#include "spmm/swift_bands.cuh"

using namespace tarsia;

// Each lane has `width` columns, and a group of `group` lanes a part of a row. There is no atomic
// addition of two doubles; lanes that are neighbours, with one double each, take half the time.
#define KERNEL_product(name, types, width, group)                                                  \
    KERNEL_OF(PRODUCT, name, width, group, TYPES_##types)
#define PRODUCT(name, width, group, T, X, Y, Acc)                                                  \
    extern "C" __global__ void __launch_bounds__(swift::THREADS<group>)                            \
        name(swift::Matrix<T> m, swift::Dense<T> d, Scalar<T> alpha, int64_t groups) {             \
        swift::product<T, width, group>(m, d, alpha, groups);                                      \
    }
KERNELS(product, (f32), (spmm_swift_f32_1_4, 1, 4), (spmm_swift_f32_1_32, 1, 32),
        (spmm_swift_f32_4_8, 4, 8), (spmm_swift_f32_4_16, 4, 16), (spmm_swift_f32_4_32, 4, 32))
KERNELS(product, (f64), (spmm_swift_f64_1_4, 1, 4), (spmm_swift_f64_1_8, 1, 8),
        (spmm_swift_f64_1_16, 1, 16), (spmm_swift_f64_1_32, 1, 32))

#define KERNEL_finish(name, types) KERNEL_OF(FINISH, name, TYPES_##types)
#define FINISH(name, T, X, Y, Acc)                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const T *sums, T *c, int64_t ldc, int64_t rows, int64_t n, Scalar<T> alpha,           \
             Scalar<T> beta) {                                                                     \
        swift::finish<T>(sums, c, ldc, rows, n, alpha, beta);                                      \
    }
KERNELS(finish, (), (spmm_swift_f32_finish, f32), (spmm_swift_f64_finish, f64))

#define KERNEL_scale(name, types) KERNEL_OF(SCALE, name, TYPES_##types)
#define SCALE(name, T, X, Y, Acc)                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(T *c, int64_t ldc, int64_t rows, int64_t n, Scalar<T> beta, int32_t vector) {         \
        swift::scale<T>(c, ldc, rows, n, beta, vector);                                            \
    }
KERNELS(scale, (), (spmm_swift_f32_scale, f32), (spmm_swift_f64_scale, f64))

#define KERNEL_bands(name, types, width) KERNEL_OF(BANDS, name, width, TYPES_##types)
#define BANDS(name, width, T, X, Y, Acc)                                                           \
    extern "C" __global__ void __launch_bounds__(swift::WARPS * 32)                                \
        name(swift::Bands<T> m, swift::Dense<T> d, swift::Out<T> out, Scalar<T> alpha,             \
             Scalar<T> beta, parts::Join join) {                                                   \
        swift::bands<T, width>(m, d, out, alpha, beta, join);                                      \
    }
KERNELS(bands, (), (spmm_swift_f32_bands_1, f32, 1), (spmm_swift_f32_bands_4, f32, 4),
        (spmm_swift_f64_bands_1, f64, 1), (spmm_swift_f64_bands_2, f64, 2))
