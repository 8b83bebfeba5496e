// SpMM `dense`, the last launch: C from products of the dense op(A) and op(B), which have
// multiplied what is not stored by 0 as well. Where such a product is not finite, op(B)
// may have held an infinity or NaN that no stored entry meets: it is computed again from
// the stored entries of the row, in their order.
//
// C is `outer` lines of `inner` elements side by side, its rows or its columns. A thread
// has packs of 16 bytes of C: `across` threads of a block lie along a line (a power of
// two), the others along lines.

#include "common/types.cuh"

namespace tarsia {

// Rows of op(A). Read only where products must be computed again, so that their types are
// decided at run time.
struct Entries {
    const void *offsets, *indices, *values;
    int64_t wide_offsets, wide_indices, base;

    __device__ int64_t offset(int64_t row) const {
        return (wide_offsets ? static_cast<const int64_t *>(offsets)[row]
                             : int64_t(static_cast<const int32_t *>(offsets)[row])) -
               base;
    }
    __device__ int64_t column(int64_t at) const {
        return (wide_indices ? static_cast<const int64_t *>(indices)[at]
                             : int64_t(static_cast<const int32_t *>(indices)[at])) -
               base;
    }
};

struct Shape {
    int64_t outer, inner, ldc;
    int64_t rows_are_outer;
    int64_t wide;   // C (and the products, whose ld is in whole packs) by loads of 16 bytes
    int64_t across; // log2 of the threads along a line
};

// op(B): element (i, j) at i · row + j · col.
template <class X> struct Right {
    const X *data;
    int64_t row, col;
};

// Parts of the products, in the order in which they are added, as C lies but for ld.
template <class Acc> struct Products {
    const Acc *data;
    int64_t ld, parts, stride; // 0 parts: C = beta · C; -1: from the stored entries
};

template <class T> __device__ __forceinline__ bool is_finite(T v) {
    if constexpr (sizeof(T) == 8) {
        return (__double2hiint(v) & 0x7ff00000) != 0x7ff00000;
    } else {
        const float f = widen<float>(v);
        return (__float_as_uint(f) & 0x7f800000u) != 0x7f800000u;
    }
}

// Whether one of the elements in these words is not finite.
template <class T> __device__ __forceinline__ bool has_special(const uint4 &v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    bool found = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (__is_same(T, f16)) {
            found |= (words[i] & 0x7c00u) == 0x7c00u || (words[i] & 0x7c000000u) == 0x7c000000u;
        } else if constexpr (__is_same(T, bf16)) {
            found |= (words[i] & 0x7f80u) == 0x7f80u || (words[i] & 0x7f800000u) == 0x7f800000u;
        } else if constexpr (__is_same(T, float)) {
            found |= (words[i] & 0x7f800000u) == 0x7f800000u;
        } else if (i % 2 == 1) {
            found |= (words[i] & 0x7ff00000u) == 0x7ff00000u;
        }
    }
    return found;
}

template <class A, class X, class Acc>
__device__ __forceinline__ Acc stored_product(const Entries &a, const Right<X> &b, int64_t row,
                                              int64_t col) {
    const int64_t end = a.offset(row + 1);
    const A *values = static_cast<const A *>(a.values);
    Acc sum = Acc(0);
    for (int64_t at = a.offset(row); at < end; ++at)
        sum = fma(widen<Acc>(values[at]), widen<Acc>(b.data[a.column(at) * b.row + col * b.col]),
                  sum);
    return sum;
}

// Where a thread begins: lines lie `lines` apart, it has 4 of them; elements `step`.
template <int V> struct Walk {
    int64_t line, first, lines, step;

    __device__ Walk(const Shape &shape) {
        const int x = threadIdx.x & ((1 << shape.across) - 1), y = threadIdx.x >> shape.across;
        lines = 256 >> shape.across;
        line = int64_t(blockIdx.x) * (4 * lines) + y;
        first = ((int64_t(blockIdx.y) << shape.across) + x) * V;
        step = (int64_t(gridDim.y) << shape.across) * V;
    }
};

// What comes before on the stream is done and can be read: the launch may have begun earlier.
__device__ __forceinline__ void wait_for_products() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class Y>
__device__ __forceinline__ bool has_special(const Y *line, int64_t first, const Shape &shape) {
    constexpr int V = 16 / sizeof(Y);
    if (shape.wide && first + V <= shape.inner)
        return has_special<Y>(*reinterpret_cast<const uint4 *>(line + first));
    bool found = false;
    for (int64_t i = first; i < first + V && i < shape.inner; ++i)
        found |= !is_finite(line[i]);
    return found;
}

// What is not finite in a line, which the threads of a block share.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void repair_line(const Entries &a, const Right<X> &b, Y *c, int64_t line,
                                            const Shape &shape, Acc alpha) {
    constexpr int V = 16 / sizeof(Y);
    Y *at = c + line * shape.ldc;
    for (int64_t first = threadIdx.x * V; first < shape.inner; first += blockDim.x * V) {
        if (!has_special(at, first, shape))
            continue;
#pragma unroll 1
        for (int64_t i = first; i < first + V && i < shape.inner; ++i) {
            if (is_finite(at[i]))
                continue;
            const int64_t row = shape.rows_are_outer ? line : i;
            const int64_t col = shape.rows_are_outer ? i : line;
            store(at + i, alpha, stored_product<A, X, Acc>(a, b, row, col), Acc(0));
        }
    }
}

// C holds alpha · products (beta is 0). An infinity or NaN in a column of op(B) makes all of
// that column of the products special, since each row multiplies it by something: so any row
// says whether there is one, unless rows of A are special themselves (`all` is 1). A block looks at
// what is its own alone, since others write meanwhile: at a row, or at an element of each
// column.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void repair(const Entries &a, const Right<X> &b, Y *c,
                                       const Shape &shape, const Scalar<Acc> &alpha,
                                       const uint32_t *all) {
    constexpr int V = 16 / sizeof(Y);
    wait_for_products();
    bool special = all && *all;
    if (shape.rows_are_outer) {
        for (int64_t first = threadIdx.x * V; first < shape.inner; first += blockDim.x * V)
            special |= has_special(c + blockIdx.x * shape.ldc, first, shape);
    } else {
        for (int64_t line = blockIdx.x + int64_t(threadIdx.x) * gridDim.x; line < shape.outer;
             line += int64_t(blockDim.x) * gridDim.x)
            special |= !is_finite(c[line * shape.ldc]);
    }
    if (!__syncthreads_or(special))
        return;
    for (int64_t line = blockIdx.x; line < shape.outer; line += gridDim.x)
        repair_line<A, X, Y, Acc>(a, b, c, line, shape, alpha.get());
}

template <class Acc, int V>
__device__ __forceinline__ void load_sums(Acc (&out)[V], const Acc *from) {
    constexpr int N = V * sizeof(Acc) / 16;
    uint4 words[N];
#pragma unroll
    for (int i = 0; i < N; ++i)
        words[i] = __ldcg(reinterpret_cast<const uint4 *>(from) + i);
    memcpy(out, words, sizeof out);
}

// C = alpha · products + beta · C.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void finish(const Entries &a, const Right<X> &b,
                                       const Products<Acc> &products, Y *c, const Shape &shape,
                                       const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    constexpr int V = 16 / sizeof(Y);
    wait_for_products();
    const Acc alpha = alpha_.get(), beta = beta_.get();
    // alpha = 0: B may hold anything.
    const bool none = products.parts == 0 || is_zero(alpha);
    const Walk<V> walk(shape);
    for (int64_t first = walk.first; first < shape.inner; first += walk.step) {
        const bool whole = shape.wide && first + V <= shape.inner && products.parts >= 0;
        const int64_t end = first + V < shape.inner ? first + V : shape.inner;
#pragma unroll 1
        for (int u = 0; u < 4; ++u) {
            const int64_t line = walk.line + u * walk.lines;
            if (line >= shape.outer)
                break;
            Y *to = c + line * shape.ldc + first;
            const Acc *from = products.data + line * products.ld + first;
            if (whole) {
                Acc sums[V] = {};
                for (int64_t part = 0; !none && part < products.parts; ++part) {
                    Acc more[V];
                    load_sums(more, from + part * products.stride);
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        sums[i] = add(sums[i], more[i]);
                }
                bool special = false;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    special |= !is_finite(sums[i]);
                if (!special) {
                    alignas(16) Y out[V] = {};
                    if (!is_zero(beta)) {
                        const uint4 old = *reinterpret_cast<const uint4 *>(to);
                        memcpy(out, &old, 16);
                    }
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        store(&out[i], alpha, sums[i], beta);
                    uint4 words;
                    memcpy(&words, out, 16);
                    *reinterpret_cast<uint4 *>(to) = words;
                    continue;
                }
            }
#pragma unroll 1
            for (int64_t i = first; i < end; ++i, ++to, ++from) {
                Acc sum = Acc(0);
                for (int64_t part = 0; !none && part < products.parts; ++part)
                    sum = add(sum, __ldcg(from + part * products.stride));
                if (!none && (products.parts < 0 || !is_finite(sum))) {
                    const int64_t row = shape.rows_are_outer ? line : i;
                    const int64_t col = shape.rows_are_outer ? i : line;
                    sum = stored_product<A, X, Acc>(a, b, row, col);
                }
                store(to, alpha, sum, beta);
            }
        }
    }
}

} // namespace tarsia

using namespace tarsia;

#define COMBO(name, A, X, Y, Acc)                                                                  \
    extern "C" __global__ void __launch_bounds__(256) spmm_dense_##name##_repair(                  \
        Entries a, Right<X> b, Y *c, Shape shape, Scalar<Acc> alpha, const uint32_t *all) {        \
        repair<A, X, Y, Acc>(a, b, c, shape, alpha, all);                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        spmm_dense_##name##_finish(Entries a, Right<X> b, Products<Acc> products, Y *c,            \
                                   Shape shape, Scalar<Acc> alpha, Scalar<Acc> beta) {             \
        finish<A, X, Y, Acc>(a, b, products, c, shape, alpha, beta);                               \
    }
COMBO(f64, double, double, double, double)
COMBO(f32, float, float, float, float)
COMBO(f16, f16, f16, f16, float)
COMBO(f16f32, f16, f16, float, float)
COMBO(bf16, bf16, bf16, bf16, float)
COMBO(bf16f32, bf16, bf16, float, float)
