// Last launch of SpMM `dense`: computes C from products of the dense op(A) and op(B), in which
// elements of op(A) that are not stored have been multiplied as zeros. If such a product is not
// finite, op(B) may have an infinity or NaN that no stored entry meets: the product is computed
// again from the stored entries of the row, in their order.
//
// C is stored as `outer` lines of `inner` contiguous elements; lines are its rows or its columns. A
// thread takes packs of 16 bytes of C in `deep` lines: `across` threads of a block (a power of two)
// lie along a line, the others in different lines.

#include "common/grid.cuh"
#include "common/types.cuh"
#include "ptx/launch.cuh"

namespace tarsia {

// Rows of op(A). They are read only if products must be computed again, so their types are resolved
// at run time.
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
    int64_t wide;   // C is accessed by 16 bytes, like the products, whose ld is in whole packs
    int64_t across; // log2 of the threads along a line
    int64_t deep;   // lines per thread
};

// op(B): element (i, j) at i · row + j · col.
template <class X> struct Right {
    const X *data;
    int64_t row, col;
};

// Partial products in the order in which they are added, stored like C except for ld.
template <class Acc> struct Products {
    const Acc *data;
    int64_t ld, parts, stride; // parts = 0: C = beta · C; -1: compute from stored entries
};

template <class T> __device__ __forceinline__ bool is_finite(T v) {
    if constexpr (sizeof(T) == 8) {
        return (__double2hiint(v) & 0x7ff00000) != 0x7ff00000;
    } else {
        const float f = widen<float>(v);
        return (__float_as_uint(f) & 0x7f800000u) != 0x7f800000u;
    }
}

// Returns whether an element in these words is not finite.
template <class T> __device__ __forceinline__ bool has_special(const uint4 &v) {
    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
    bool found = false;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (same<T, f16>) {
            found |= (words[i] & 0x7c00u) == 0x7c00u || (words[i] & 0x7c000000u) == 0x7c000000u;
        } else if constexpr (same<T, bf16>) {
            found |= (words[i] & 0x7f80u) == 0x7f80u || (words[i] & 0x7f800000u) == 0x7f800000u;
        } else if constexpr (same<T, float>) {
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
#pragma unroll 1
    for (int64_t at = a.offset(row); at < end; ++at)
        sum = fma(widen<Acc>(values[at]), widen<Acc>(b.data[a.column(at) * b.row + col * b.col]),
                  sum);
    return sum;
}

// Start of a thread; its lines are `lines` apart and its packs `step` elements.
template <int ELEMENTS> struct Walk {
    int64_t line, first, lines, step;

    __device__ Walk(const Shape &shape) {
        const int x = threadIdx.x & ((1 << shape.across) - 1), y = threadIdx.x >> shape.across;
        lines = 256 >> shape.across;
        line = int64_t(blockIdx.x) * (shape.deep * lines) + y;
        first = ((int64_t(blockIdx.y) << shape.across) + x) * ELEMENTS;
        step = (int64_t(gridDim.y) << shape.across) * ELEMENTS;
    }
};

template <class Y>
__device__ __forceinline__ bool has_special(const Y *line, int64_t first, const Shape &shape) {
    constexpr int ELEMENTS = 16 / sizeof(Y);
    if (shape.wide && first + ELEMENTS <= shape.inner)
        return has_special<Y>(*reinterpret_cast<const uint4 *>(line + first));
    bool found = false;
#pragma unroll 1
    for (int64_t i = first; i < first + ELEMENTS && i < shape.inner; ++i)
        found |= !is_finite(line[i]);
    return found;
}

// Recomputes what is not finite in a line; all threads of a block share the line.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void repair_line(const Entries &a, const Right<X> &b, Y *c, int64_t line,
                                            const Shape &shape, Acc alpha) {
    constexpr int ELEMENTS = 16 / sizeof(Y);
    Y *at = c + line * shape.ldc;
    for (int64_t first = threadIdx.x * ELEMENTS; first < shape.inner;
         first += blockDim.x * ELEMENTS) {
        if (!has_special(at, first, shape))
            continue;
#pragma unroll 1
        for (int64_t i = first; i < first + ELEMENTS && i < shape.inner; ++i) {
            if (is_finite(at[i]))
                continue;
            const int64_t row = shape.rows_are_outer ? line : i;
            const int64_t col = shape.rows_are_outer ? i : line;
            store(at + i, alpha, stored_product<A, X, Acc>(a, b, row, col), Acc(0));
        }
    }
}

// Repairs C, which holds alpha · products (beta is 0). An infinity or NaN in a column of op(B)
// makes the products in that column special in every row, since each row multiplies it by
// something. So any row shows whether there is one, unless rows of A are special themselves (`all`
// is 1). A block checks only elements that it repairs itself, since other blocks write at the same
// time: one row, or one element of each of its columns.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void repair(const Entries &a, const Right<X> &b, Y *c,
                                       const Shape &shape, const Scalar<Acc> &alpha,
                                       const uint32_t *all) {
    constexpr int ELEMENTS = 16 / sizeof(Y);
    wait_for_previous();
    bool special = all && *all;
    // The code must be fetched from memory if other kernels ran in between, so the usual path is
    // short and contiguous.
    if (shape.rows_are_outer && shape.wide && shape.inner % ELEMENTS == 0) {
        constexpr int AT_ONCE = 2;
        // Takes the last of the block's rows, which is probably still in L2.
        const int64_t line = shape.outer - 1 - (shape.outer - 1 - blockIdx.x) % gridDim.x;
        const uint4 *row = reinterpret_cast<const uint4 *>(c + line * shape.ldc);
        const int64_t packs = shape.inner / ELEMENTS;
#pragma unroll 1
        for (int64_t first = threadIdx.x; first < packs; first += AT_ONCE * 256) {
            uint4 words[AT_ONCE] = {};
#pragma unroll
            for (int u = 0; u < AT_ONCE; ++u)
                if (first + u * 256 < packs)
                    words[u] = __ldcg(row + first + u * 256);
#pragma unroll
            for (int u = 0; u < AT_ONCE; ++u)
                special |= has_special<Y>(words[u]);
        }
        if (!__syncthreads_or(special))
            return;
    } else {
        if (shape.rows_are_outer) {
#pragma unroll 1
            for (int64_t first = threadIdx.x * ELEMENTS; first < shape.inner;
                 first += blockDim.x * ELEMENTS)
                special |= has_special(c + blockIdx.x * shape.ldc, first, shape);
        } else {
#pragma unroll 1
            for (int64_t line = blockIdx.x + int64_t(threadIdx.x) * gridDim.x; line < shape.outer;
                 line += int64_t(blockDim.x) * gridDim.x)
                special |= !is_finite(c[line * shape.ldc]);
        }
        if (!__syncthreads_or(special))
            return;
    }
#pragma unroll 1
    for (int64_t line = blockIdx.x; line < shape.outer; line += gridDim.x)
        repair_line<A, X, Y, Acc>(a, b, c, line, shape, alpha.get());
}

// Copies rows of B to whole packs, padded with zeros. One pack per thread.
template <class T>
__device__ __forceinline__ void pack_rows(const T *from, int64_t row_stride, T *to, int64_t rows,
                                          int64_t cols, int64_t ld) {
    constexpr int ELEMENTS = 16 / sizeof(T);
    const int64_t packs = ld / ELEMENTS, at = first_item();
    if (at >= rows * packs)
        return;
    const int64_t row = at / packs, first = at % packs * ELEMENTS;
    from += row * row_stride + first;
    alignas(16) T out[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        out[i] = first + i < cols ? from[i] : T(0);
    uint4 words;
    memcpy(&words, out, 16);
    *reinterpret_cast<uint4 *>(to + row * ld + first) = words;
}

// Loads a pack of partial products: the first `count` of its elements. The address is aligned.
template <class Acc, int ELEMENTS>
__device__ __forceinline__ void load_sums(Acc (&out)[ELEMENTS], const Acc *from, int count) {
    constexpr int PACKS = ELEMENTS * sizeof(Acc) / 16;
    if (count == ELEMENTS) {
        uint4 words[PACKS];
#pragma unroll
        for (int i = 0; i < PACKS; ++i)
            words[i] = __ldcg(reinterpret_cast<const uint4 *>(from) + i);
        memcpy(out, words, sizeof out);
        return;
    }
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        out[i] = i < count ? __ldcg(from + i) : Acc(0);
}

// Adds the partial sums of a pack in their order, with AT_ONCE loads in flight.
template <class Acc, int ELEMENTS>
__device__ __forceinline__ void add_parts(Acc (&sums)[ELEMENTS], const Products<Acc> &products,
                                          const Acc *from, int count) {
    constexpr int AT_ONCE = ELEMENTS * sizeof(Acc) > 16 ? 2 : 4;
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        sums[i] = Acc(0);
    for (int64_t part = 0; part < products.parts; part += AT_ONCE) {
        Acc more[AT_ONCE][ELEMENTS];
#pragma unroll
        for (int p = 0; p < AT_ONCE; ++p)
            if (part + p < products.parts)
                load_sums(more[p], from + (part + p) * products.stride, count);
#pragma unroll
        for (int p = 0; p < AT_ONCE; ++p)
            if (part + p < products.parts)
#pragma unroll
                for (int i = 0; i < ELEMENTS; ++i)
                    sums[i] = add(sums[i], more[p][i]);
    }
}

// Computes C = alpha · products + beta · C.
template <class A, class X, class Y, class Acc>
__device__ __forceinline__ void finish(const Entries &a, const Right<X> &b,
                                       const Products<Acc> &products, Y *c, const Shape &shape,
                                       const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    constexpr int ELEMENTS = 16 / sizeof(Y);
    wait_for_previous();
    const Acc alpha = alpha_.get(), beta = beta_.get();
    // If alpha is 0, B may hold anything and is not used.
    const bool none = products.parts == 0 || is_zero(alpha);
    const Walk<ELEMENTS> walk(shape);
    for (int64_t first = walk.first; first < shape.inner; first += walk.step) {
        const int count = shape.inner - first < ELEMENTS ? int(shape.inner - first) : ELEMENTS;
#pragma unroll 1
        for (int64_t u = 0; u < shape.deep; ++u) {
            const int64_t line = walk.line + u * walk.lines;
            if (line >= shape.outer)
                break;
            Y *to = c + line * shape.ldc + first;
            const Acc *from = products.data + line * products.ld + first;
            Acc sums[ELEMENTS] = {};
            bool special = products.parts < 0;
            if (!none && !special) {
                add_parts(sums, products, from, count);
#pragma unroll
                for (int i = 0; i < ELEMENTS; ++i)
                    special |= !is_finite(sums[i]);
            }
            if (none || !special) {
                if (shape.wide && count == ELEMENTS) {
                    alignas(16) Y out[ELEMENTS] = {};
                    if (!is_zero(beta)) {
                        const uint4 old = *reinterpret_cast<const uint4 *>(to);
                        memcpy(out, &old, 16);
                    }
#pragma unroll
                    for (int i = 0; i < ELEMENTS; ++i)
                        store(&out[i], alpha, sums[i], beta);
                    uint4 words;
                    memcpy(&words, out, 16);
                    *reinterpret_cast<uint4 *>(to) = words;
                } else {
#pragma unroll
                    for (int i = 0; i < ELEMENTS; ++i)
                        if (i < count)
                            store(to + i, alpha, sums[i], beta);
                }
                continue;
            }
#pragma unroll 1
            for (int i = 0; i < count; ++i) {
                Acc sum = Acc(0);
                for (int64_t part = 0; part < products.parts; ++part)
                    sum = add(sum, __ldcg(from + i + part * products.stride));
                if (products.parts < 0 || !is_finite(sum)) {
                    const int64_t at = first + i;
                    const int64_t row = shape.rows_are_outer ? line : at;
                    const int64_t col = shape.rows_are_outer ? at : line;
                    sum = stored_product<A, X, Acc>(a, b, row, col);
                }
                store(to + i, alpha, sum, beta);
            }
        }
    }
}

} // namespace tarsia

using namespace tarsia;

#define KERNEL_repair(name, types) KERNEL_OF(REPAIR, name, TYPES_##types)
#define REPAIR(name, A, X, Y, Acc)                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(Entries a, Right<X> b, Y *c, Shape shape, Scalar<Acc> alpha, const uint32_t *all) {   \
        repair<A, X, Y, Acc>(a, b, c, shape, alpha, all);                                          \
    }
KERNELS(repair, (), (spmm_dense_f64_repair, f64), (spmm_dense_f32_repair, f32),
        (spmm_dense_f16_repair, f16), (spmm_dense_f16f32_repair, f16f32),
        (spmm_dense_bf16_repair, bf16), (spmm_dense_bf16f32_repair, bf16f32))

#define KERNEL_finish(name, types) KERNEL_OF(FINISH, name, TYPES_##types)
#define FINISH(name, A, X, Y, Acc)                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 3)                                           \
        name(Entries a, Right<X> b, Products<Acc> products, Y *c, Shape shape, Scalar<Acc> alpha,  \
             Scalar<Acc> beta) {                                                                   \
        finish<A, X, Y, Acc>(a, b, products, c, shape, alpha, beta);                               \
    }
KERNELS(finish, (), (spmm_dense_f64_finish, f64), (spmm_dense_f32_finish, f32),
        (spmm_dense_f16_finish, f16), (spmm_dense_f16f32_finish, f16f32),
        (spmm_dense_bf16_finish, bf16), (spmm_dense_bf16f32_finish, bf16f32))

#define KERNEL_pack(name, bits)                                                                    \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        name(const uint##bits##_t *from, int64_t row_stride, uint##bits##_t *to, int64_t rows,     \
             int64_t cols, int64_t ld) {                                                           \
        pack_rows<uint##bits##_t>(from, row_stride, to, rows, cols, ld);                           \
    }
KERNELS(pack, (), (spmm_dense_pack_2, 16), (spmm_dense_pack_4, 32), (spmm_dense_pack_8, 64))
