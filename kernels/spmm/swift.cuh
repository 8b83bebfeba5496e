// SpMM `swift`: C = alpha · A · B + beta · C on the blocks of src/format/swift.rs, after Hu et al.,
// Swift: regular blocks with segmented sums, irregular columns by warps.
//
// The paper's kernel has B by columns and one lane per column of A, and adds the segment sums in
// shared memory to C one element at a time. Here B and C are stored by rows, so that lanes along
// the columns of C load and add whole sectors: a group of GROUP lanes walks through the entries of
// a thread block's group of blocks in the order of their rows, which positionIdx gives in shared
// memory, sums a segment in registers, and adds it to C by one atomic operation of WIDTH elements
// per lane. With floating-point atomics, the bits of C differ from run to run.
//
// If alpha is 1, the sums are added to C, which `scale` has multiplied by beta. Otherwise they are
// added to the workspace, which holds zeros, and `finish` multiplies by alpha: alpha times a
// partial sum may overflow where alpha times the sum does not.
#pragma once

#include "common/types.cuh"
#include "ptx/loads.cuh"
#include "ptx/packs.cuh"
#include "ptx/stores.cuh"

namespace tarsia::swift {

// Constants and types of src/format/swift.rs.
constexpr int LANES = 32, TOGETHER = 8, ENTRIES = LANES * TOGETHER;
constexpr uint32_t IS_PIECE = 1u << 31;
struct Piece {
    uint64_t start, stop;
    uint32_t column, zero;
};

template <class T> struct Matrix {
    const uint32_t *order;   // sorted columns
    const uint32_t *columns; // per block: its first column in `order`
    const T *values;         // regular and irregular
    const uint32_t *rows;    // regular and irregular
    const uint8_t *positions;
    const int16_t *offsets;
    const Piece *pieces;
    int64_t blocks, piece_count, cols;
};

// B and C, stored by rows with leading dimensions ldb and ldc.
template <class T> struct Dense {
    const T *b;
    int64_t ldb;
    T *c;
    int64_t ldc, n;
};

// Entry at its position in the order of segments; the sign bit of `row` marks the first entry of a
// segment.
template <class T> struct alignas(16) Entry {
    T value;
    uint32_t column, row;
};
constexpr uint32_t BEGINS = 1u << 31;

// Adds WIDTH elements atomically; `to` is aligned to their total size, unless WIDTH is 1.
template <class T, int WIDTH> __device__ __forceinline__ void add_to(T *to, const T (&v)[WIDTH]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (WIDTH == 4 && sizeof(T) == 4) {
        add_four(to, v);
    } else
#endif
    {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            atomicAdd(to + i, v[i]);
    }
}

// Sums of the current segment. Lanes beyond the last column have none.
template <class T, int WIDTH> struct Sums {
    T v[WIDTH];
    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            v[i] = 0;
    }
    __device__ __forceinline__ void add(T value, const Pack<T, WIDTH> &b) {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            v[i] = fma(value, b.v[i], v[i]);
    }
    __device__ __forceinline__ void flush(const Dense<T> &d, uint32_t row, int64_t j) {
        add_to<T, WIDTH>(d.c + row * d.ldc + j, v);
        clear();
    }
};

template <class T, int WIDTH>
__device__ __forceinline__ Pack<T, WIDTH> load_b(const Dense<T> &d, uint32_t column, int64_t j) {
    const T *const from = d.b + column * d.ldb + j;
    Pack<T, WIDTH> out;
    if constexpr (WIDTH == 1) {
        out.v[0] = __ldg(from);
    } else {
        const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from));
        memcpy(&out, &bits, sizeof out);
    }
    return out;
}

// Number of rows of B in flight at one time.
constexpr int FLIGHT = 4;

// Threads of a block, which give each group of GROUP lanes LANES entries.
template <int GROUP> constexpr int THREADS = ENTRIES / LANES *GROUP;

// Multiplies one group of regular blocks, in WIDTH columns of C per lane from j on.
template <class T, int WIDTH, int GROUP>
__device__ __forceinline__ void regular(const Matrix<T> &m, const Dense<T> &d, int64_t number,
                                        int64_t j) {
    __shared__ Entry<T> entries[ENTRIES];
    const int64_t first_block = number * TOGETHER;
    const int blocks = int(min(int64_t(TOGETHER), m.blocks - first_block));
    const int count = blocks * LANES;
    for (int i = threadIdx.x; i < count; i += THREADS<GROUP>) {
        const int64_t at = first_block * LANES + i;
        const uint32_t sorted = __ldg(m.columns + first_block + i / LANES) + i % LANES;
        Entry<T> &entry = entries[__ldg(m.positions + at)];
        entry.value = load_once(m.values + at);
        entry.column = __ldg(m.order + sorted);
        entries[i].row = load_once(m.rows + at) | (__ldg(m.offsets + at) != 0 ? BEGINS : 0);
    }
    __syncthreads();
    const int begin = int(threadIdx.x) / GROUP * LANES;
    if (begin >= count || j >= d.n)
        return;
    Sums<T, WIDTH> sums;
    sums.clear();
    uint32_t row = entries[begin].row & ~BEGINS;
#pragma unroll 1
    for (int at = begin; at < begin + LANES; at += FLIGHT) {
        Entry<T> now[FLIGHT];
        Pack<T, WIDTH> b[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            now[u] = entries[at + u];
            b[u] = load_b<T, WIDTH>(d, now[u].column, j);
        }
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            if ((now[u].row & BEGINS) && at + u != begin) {
                sums.flush(d, row, j);
                row = now[u].row & ~BEGINS;
            }
            sums.add(now[u].value, b[u]);
        }
    }
    sums.flush(d, row, j);
}

// Multiplies a piece of an irregular column per group of lanes, with one row of B.
template <class T, int WIDTH, int GROUP>
__device__ __forceinline__ void irregular(const Matrix<T> &m, const Dense<T> &d, int64_t number,
                                          int64_t j) {
    const int64_t own = number * (THREADS<GROUP> / GROUP) + threadIdx.x / GROUP;
    if (own >= m.piece_count || j >= d.n)
        return;
    const Piece piece = m.pieces[own];
    const uint32_t column = m.order[m.cols - 1 - (piece.column & ~IS_PIECE)];
    const Pack<T, WIDTH> b = load_b<T, WIDTH>(d, column, j);
    const int64_t regular = m.blocks * LANES;
    const T *const values = m.values + regular;
    const uint32_t *const rows = m.rows + regular;
#pragma unroll 4
    for (uint64_t at = piece.start; at < piece.stop; ++at) {
        Sums<T, WIDTH> sums;
        sums.clear();
        sums.add(__ldg(values + at), b);
        sums.flush(d, __ldg(rows + at), j);
    }
}

// Thread blocks take first one group of blocks each, then the pieces.
template <class T, int WIDTH, int GROUP>
__device__ __forceinline__ void product(const Matrix<T> &m, const Dense<T> &d,
                                        const Scalar<T> &alpha, int64_t groups) {
    // If alpha is 0, A and B may hold anything and are not used.
    if (alpha.get() == 0)
        return;
    const int64_t j = (int64_t(blockIdx.y) * GROUP + threadIdx.x % GROUP) * WIDTH;
    if (blockIdx.x < groups) {
        regular<T, WIDTH, GROUP>(m, d, blockIdx.x, j);
    } else {
        irregular<T, WIDTH, GROUP>(m, d, blockIdx.x - groups, j);
    }
}

// Computes C = beta · C for rows × n elements with leading dimension ldc. vector: C and its rows
// are aligned to 16 bytes, and n is a multiple of as many elements.
template <class T>
__device__ __forceinline__ void scale(T *c, int64_t ldc, int64_t rows, int64_t n,
                                      const Scalar<T> &beta_, int32_t vector) {
    const T beta = beta_.get();
    if (beta == 1)
        return;
    constexpr int WIDTH = 16 / sizeof(T);
    const int64_t each = vector ? n / WIDTH : n, step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * each; i += step) {
        const int64_t row = rows == 1 ? 0 : i / each, column = i - row * each;
        if (vector) {
            Pack<T, WIDTH> *const at = reinterpret_cast<Pack<T, WIDTH> *>(c + row * ldc) + column;
            Pack<T, WIDTH> v = {};
            if (beta != 0) {
                v = *at;
#pragma unroll
                for (int k = 0; k < WIDTH; ++k)
                    v.v[k] *= beta;
            }
            *at = v;
        } else {
            T *const at = c + row * ldc + column;
            *at = beta == 0 ? T(0) : beta * *at;
        }
    }
}

// Computes C = alpha · sums + beta · C for rows × n elements, stored by rows; C has leading
// dimension ldc, and the sums have no gaps.
template <class T>
__device__ __forceinline__ void finish(const T *sums, T *c, int64_t ldc, int64_t rows, int64_t n,
                                       const Scalar<T> &alpha_, const Scalar<T> &beta_) {
    const T alpha = alpha_.get(), beta = beta_.get();
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += step) {
        const int64_t row = i / n;
        store(c + row * ldc + (i - row * n), alpha, sums[i], beta);
    }
}

} // namespace tarsia::swift
