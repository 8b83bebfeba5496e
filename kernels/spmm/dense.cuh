// SpMM `dense` where cublasLt is not installed: alpha · A · B with dense, row-major A and B.
//
// A block of threads computes a tile of BLOCK_ROWS × BLOCK_COLUMNS of the product, and its warps
// parts of it. Blocks of BLOCK_DEPTH columns of A and rows of B are copied to shared memory by
// cp.async, with STAGES of them in flight. Halves, TF32 and doubles are multiplied by matrix units,
// fp32 by FMA or as sums of bf16 (spmm/dense_terms.cuh). If there are few tiles, several blocks
// share a tile, each with a range of K, and store their partial sums one behind the other for
// spmm/dense_finish.cu to add in order.
#pragma once

#include "ptx/copies.cuh"
#include "ptx/mma.cuh"

namespace tarsia::dense {

template <class T> struct Operands {
    const T *a; // lda in whole packs of 16 bytes, padded with zeros
    int64_t lda;
    const T *b; // aligned to 16 bytes, like ldb
    int64_t ldb;
    int64_t m, n, k;
    int64_t part; // length of a block's range of K: a multiple of BLOCK_DEPTH
};

template <class Y> struct Target {
    Y *data;
    int64_t row, col; // strides
    int64_t part;     // distance between the partial sums of ranges of K
    int64_t pairs;    // true if one instruction may store two neighbours in a row
};

// Positions of chunks of 16 bytes in shared memory: swizzled for ldmatrix, or in padded rows, so
// that the elements of a fragment lie in different banks.
template <class T, int BLOCK_ROWS, int BLOCK_COLUMNS, int BLOCK_DEPTH> struct Stage {
    static constexpr bool HALF = sizeof(T) == 2;
    static constexpr int ELEMENTS = 16 / sizeof(T);
    static constexpr int ROW_A = HALF ? BLOCK_DEPTH : BLOCK_DEPTH + 4;
    static constexpr int ROW_B = HALF ? BLOCK_COLUMNS : BLOCK_COLUMNS + (sizeof(T) == 4 ? 8 : 4);
    static constexpr int SIZE_A = BLOCK_ROWS * ROW_A, SIZE_B = BLOCK_DEPTH * ROW_B;
    static constexpr int BYTES = (SIZE_A + SIZE_B) * int(sizeof(T));

    template <int CHUNKS> __device__ static __forceinline__ int swizzle(int row, int chunk) {
        if constexpr (!HALF)
            return chunk;
        return CHUNKS >= 8 ? chunk ^ (row & 7) : chunk ^ (row >> 1 & 3);
    }
    __device__ static __forceinline__ int a(int row, int chunk) {
        return row * ROW_A + swizzle<BLOCK_DEPTH / ELEMENTS>(row, chunk) * ELEMENTS;
    }
    __device__ static __forceinline__ int b(int row, int chunk) {
        return SIZE_A + row * ROW_B + swizzle<BLOCK_COLUMNS / ELEMENTS>(row, chunk) * ELEMENTS;
    }
};

// Copies of one thread for the tile at (i0, j0): one chunk in each STEP_A-th row of A and in each
// STEP_B-th row of B.
template <class T, int BLOCK_ROWS, int BLOCK_COLUMNS, int BLOCK_DEPTH, int THREADS> struct Loader {
    using Staging = Stage<T, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH>;
    static constexpr int ELEMENTS = Staging::ELEMENTS, CHUNKS_A = BLOCK_DEPTH / ELEMENTS,
                         CHUNKS_B = BLOCK_COLUMNS / ELEMENTS;
    static constexpr int STEP_A = THREADS / CHUNKS_A, STEP_B = THREADS / CHUNKS_B;
    static_assert(!Staging::HALF || (STEP_A % 8 == 0 && STEP_B % 8 == 0), "the swizzle's period");

    const T *a, *b;
    int64_t lda, ldb, left; // left: columns of K from this thread's chunk of A on
    uint32_t to_a, to_b;    // offsets in a stage
    int rows;               // rows of A from this thread's first one on
    int bytes;              // bytes of a chunk of B
    int ahead;              // first column of this thread's chunk of A minus its row of B

    __device__ __forceinline__ Loader(const Operands<T> &in, int64_t i0, int64_t j0,
                                      int64_t k_begin, int64_t k_end) {
        const int row_a = threadIdx.x / CHUNKS_A, chunk_a = threadIdx.x % CHUNKS_A;
        const int row_b = threadIdx.x / CHUNKS_B, chunk_b = threadIdx.x % CHUNKS_B;
        lda = in.lda, ldb = in.ldb;
        a = in.a + (i0 + row_a) * lda + k_begin + chunk_a * ELEMENTS;
        b = in.b + (k_begin + row_b) * ldb + j0 + chunk_b * ELEMENTS;
        left = k_end - k_begin - chunk_a * ELEMENTS;
        ahead = chunk_a * ELEMENTS - row_b;
        const int64_t below = in.m - i0 - row_a, beside = in.n - j0 - chunk_b * ELEMENTS;
        rows = below < BLOCK_ROWS ? int(below) : BLOCK_ROWS;
        bytes = beside < ELEMENTS ? (beside < 0 ? 0 : int(beside) * int(sizeof(T))) : 16;
        to_a = Staging::a(row_a, chunk_a) * sizeof(T);
        to_b = Staging::b(row_b, chunk_b) * sizeof(T);
    }

    // Starts the copies of the next block.
    __device__ __forceinline__ void load(const Operands<T> &in, uint32_t stage) {
#pragma unroll
        for (int i = 0; i < BLOCK_ROWS / STEP_A; ++i) {
            const bool inside = i * STEP_A < rows && left > 0;
            copy16(stage + to_a + i * (STEP_A * Staging::ROW_A * sizeof(T)),
                   inside ? a + i * STEP_A * lda : in.a, inside ? 16 : 0);
        }
        const int64_t left_b = left + ahead;
#pragma unroll
        for (int i = 0; i < BLOCK_DEPTH / STEP_B; ++i) {
            const bool inside = i * STEP_B < left_b && bytes > 0;
            copy16(stage + to_b + i * (STEP_B * Staging::ROW_B * sizeof(T)),
                   inside ? b + i * STEP_B * ldb : in.b, inside ? bytes : 0);
        }
        a += BLOCK_DEPTH, b += BLOCK_DEPTH * ldb, left -= BLOCK_DEPTH;
    }
};

// Order of tiles: groups of 8 rows of tiles are processed column by column, so that they share B in
// L2.
__device__ __forceinline__ void tile_of_block(int64_t m, int64_t n, int bm, int bn, int64_t &i0,
                                              int64_t &j0) {
    const uint32_t tiles_m = uint32_t((m + bm - 1) / bm), tiles_n = uint32_t((n + bn - 1) / bn);
    const uint32_t group = 8 * tiles_n, first = blockIdx.x / group * 8;
    const uint32_t rows = tiles_m - first < 8 ? tiles_m - first : 8, within = blockIdx.x % group;
    i0 = int64_t(first + within % rows) * bm;
    j0 = int64_t(within / rows) * bn;
}

// Stores two neighbours of a row.
template <class Y, class Acc>
__device__ __forceinline__ void store_neighbours(const Target<Y> &out, int64_t m, int64_t n,
                                                 int64_t i, int64_t j, Acc first, Acc second) {
    if (i >= m || j >= n)
        return;
    Y *to = out.data + blockIdx.y * out.part + i * out.row + j * out.col;
    if (out.pairs && j + 1 < n) {
        struct alignas(2 * sizeof(Y)) Pair {
            Y v[2];
        };
        *reinterpret_cast<Pair *>(to) = {narrow<Y>(first), narrow<Y>(second)};
        return;
    }
    *to = narrow<Y>(first);
    if (j + 1 < n)
        to[out.col] = narrow<Y>(second);
}

// Treatment of factors before matrix units multiply them: unchanged, floats rounded to TF32, or
// floats as sums of three bf16, of whose nine products six are added (spmm/masked_f32.cuh has the
// bound of the error).
enum class Factors { AsTheyAre, Tf32, InTerms };

// Tile of a block, and its range of K.
struct Range {
    int64_t i0, j0, begin, end, steps;

    template <class T>
    __device__ __forceinline__ Range(const Operands<T> &in, int bm, int bn, int bk) {
        tile_of_block(in.m, in.n, bm, bn, i0, j0);
        begin = blockIdx.y * in.part;
        end = begin + in.part < in.k ? begin + in.part : in.k;
        steps = end > begin ? (end - begin + bk - 1) / bk : 0;
    }
};

// Blocks of K in shared memory, STAGES of them in flight.
template <class T, int BLOCK_ROWS, int BLOCK_COLUMNS, int BLOCK_DEPTH, int STAGES, int THREADS>
struct Pipeline {
    using Staging = Stage<T, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH>;

    const Operands<T> &in;
    int64_t steps;
    const T *stages;
    uint32_t base;
    Loader<T, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, THREADS> loader;
    int slot = 0, next = STAGES - 1;

    __device__ __forceinline__ Pipeline(const Operands<T> &operands, const Range &range,
                                        const void *shared)
        : in(operands), steps(range.steps), stages(static_cast<const T *>(shared)),
          base(shared_address(shared)), loader(in, range.i0, range.j0, range.begin, range.end) {}

    // Starts the copies of the first blocks.
    __device__ __forceinline__ void begin() {
#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            if (s < steps)
                loader.load(in, base + s * Staging::BYTES);
            close_copies();
        }
    }
    // Waits for the block of this step, and starts the copies of a later one.
    __device__ __forceinline__ const T *advance(int64_t step) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps)
            loader.load(in, base + next * Staging::BYTES);
        close_copies();
        const T *stage = stages + slot * (Staging::BYTES / int(sizeof(T)));
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
        return stage;
    }
};

// Adds the products of a stage of halves to a warp's sums; its rows begin at `wi` and its columns
// at `wj`.
template <class Staging, class T, int BLOCK_DEPTH, int MMAS_DOWN, int MMAS_ACROSS>
__device__ __forceinline__ void multiply_halves(float (&sums)[MMAS_DOWN][MMAS_ACROSS][4],
                                                const T *stage, int wi, int wj) {
    const int lane = threadIdx.x % 32;
    const uint32_t from = shared_address(stage);
#pragma unroll
    for (int kk = 0; kk < BLOCK_DEPTH; kk += 16) {
        uint32_t a[MMAS_DOWN][4], b[MMAS_ACROSS / 2][4];
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i)
            load_matrices<false>(
                a[i], from + 2 * Staging::a(wi + i * 16 + lane % 16, kk / 8 + lane / 16));
#pragma unroll
        for (int j = 0; j < MMAS_ACROSS / 2; ++j)
            load_matrices<true>(b[j],
                                from + 2 * Staging::b(kk + lane % 16, wj / 8 + 2 * j + lane / 16));
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i)
#pragma unroll
            for (int j = 0; j < MMAS_ACROSS; ++j)
                mma16<T>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

// Adds the products of a stage of floats as sums of three bf16.
template <class Staging, int BLOCK_DEPTH, int MMAS_DOWN, int MMAS_ACROSS>
__device__ __forceinline__ void multiply_in_terms(float (&sums)[MMAS_DOWN][MMAS_ACROSS][4],
                                                  const float *stage, int wi, int wj) {
    const int lane = threadIdx.x % 32;
    const uint32_t from = shared_address(stage);
    const float *pb = stage + Staging::SIZE_A + lane % 4 * Staging::ROW_B + wj + lane / 4;
#pragma unroll
    for (int kk = 0; kk < BLOCK_DEPTH; kk += 16) {
        // The order of K inside a fragment is permuted: a lane holds columns of A that lie 4 apart
        // as pairs, and the same rows of B.
        uint32_t a[MMAS_DOWN][3][4];
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                uint32_t f[4];
                load_matrices<false>(
                    f,
                    from + Staging::a(wi + i * 16 + lane % 16, kk / 4 + 2 * half + lane / 16) * 4);
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    bf16_terms(__uint_as_float(f[e]), __uint_as_float(f[e + 2]),
                               a[i][0][2 * half + e], a[i][1][2 * half + e], a[i][2][2 * half + e]);
            }
        }
#pragma unroll
        for (int j = 0; j < MMAS_ACROSS; ++j) {
            uint32_t b[3][2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float *of = pb + (kk + 8 * half) * Staging::ROW_B + j * 8;
                bf16_terms(of[0], of[4 * Staging::ROW_B], b[0][half], b[1][half], b[2][half]);
            }
            // Small products are added first, so that little of them is cut off.
#pragma unroll
            for (int i = 0; i < MMAS_DOWN; ++i) {
                float sum[4] = {0, 0, 0, 0};
                mma16<bf16>(sum, a[i][2], b[0][0], b[0][1]);
                mma16<bf16>(sum, a[i][0], b[2][0], b[2][1]);
                mma16<bf16>(sum, a[i][1], b[1][0], b[1][1]);
                mma16<bf16>(sum, a[i][1], b[0][0], b[0][1]);
                mma16<bf16>(sum, a[i][0], b[1][0], b[1][1]);
                mma16<bf16>(sum, a[i][0], b[0][0], b[0][1]);
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    sums[i][j][e] += sum[e];
            }
        }
    }
}

// Adds the products of a stage of floats in TF32.
template <class Staging, int BLOCK_DEPTH, int MMAS_DOWN, int MMAS_ACROSS>
__device__ __forceinline__ void multiply_tf32(float (&sums)[MMAS_DOWN][MMAS_ACROSS][4],
                                              const float *stage, int wi, int wj) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const uint32_t from = shared_address(stage);
    const float *pb = stage + Staging::SIZE_A + t * Staging::ROW_B + wj + g;
#pragma unroll
    for (int kk = 0; kk < BLOCK_DEPTH; kk += 8) {
        uint32_t a[MMAS_DOWN][4], b[MMAS_ACROSS][2];
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i) {
            // ldmatrix treats a float as a pair of halves.
            load_matrices<false>(
                a[i], from + Staging::a(wi + i * 16 + lane % 16, kk / 4 + lane / 16) * 4);
#pragma unroll
            for (int e = 0; e < 4; ++e)
                a[i][e] = to_tf32(__uint_as_float(a[i][e]));
        }
#pragma unroll
        for (int j = 0; j < MMAS_ACROSS; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                b[j][e] = to_tf32(pb[(kk + e * 4) * Staging::ROW_B + j * 8]);
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i)
#pragma unroll
            for (int j = 0; j < MMAS_ACROSS; ++j)
                mma8(sums[i][j], a[i], b[j][0], b[j][1]);
    }
}

// Adds the products of a stage of doubles.
template <class Staging, int BLOCK_DEPTH, int MMAS_DOWN, int MMAS_ACROSS>
__device__ __forceinline__ void multiply_doubles(double (&sums)[MMAS_DOWN][MMAS_ACROSS][4],
                                                 const double *stage, int wi, int wj) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const double *pa = stage + (wi + g) * Staging::ROW_A + t;
    const double *pb = stage + Staging::SIZE_A + t * Staging::ROW_B + wj + g;
#pragma unroll
    for (int kk = 0; kk < BLOCK_DEPTH; kk += 8) {
        double a[MMAS_DOWN][4], b[MMAS_ACROSS][2];
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                a[i][e] = pa[(i * 16 + e % 2 * 8) * Staging::ROW_A + kk + e / 2 * 4];
#pragma unroll
        for (int j = 0; j < MMAS_ACROSS; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                b[j][e] = pb[(kk + e * 4) * Staging::ROW_B + j * 8];
#pragma unroll
        for (int i = 0; i < MMAS_DOWN; ++i)
#pragma unroll
            for (int j = 0; j < MMAS_ACROSS; ++j)
                mma8(sums[i][j], a[i], b[j][0], b[j][1]);
    }
}

// Computes a tile by matrix units; each warp has WARP_ROWS × WARP_COLUMNS.
template <class T, class Y, class Acc, Factors FACTORS, int BLOCK_ROWS, int BLOCK_COLUMNS,
          int BLOCK_DEPTH, int STAGES, int WARP_ROWS, int WARP_COLUMNS>
__device__ __forceinline__ void by_matrix_units(const Operands<T> &in, const Target<Y> &out,
                                                const Scalar<Acc> &alpha_) {
    constexpr int THREADS = BLOCK_ROWS / WARP_ROWS * (BLOCK_COLUMNS / WARP_COLUMNS) * 32;
    constexpr int MMAS_DOWN = WARP_ROWS / 16, MMAS_ACROSS = WARP_COLUMNS / 8;
    using Staging = Stage<T, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH>;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wi = warp / (BLOCK_COLUMNS / WARP_COLUMNS) * WARP_ROWS,
              wj = warp % (BLOCK_COLUMNS / WARP_COLUMNS) * WARP_COLUMNS;
    extern __shared__ __align__(128) unsigned char shared[];
    const Range range(in, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH);
    Pipeline<T, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, STAGES, THREADS> pipeline(in, range,
                                                                                  shared);
    Acc sums[MMAS_DOWN][MMAS_ACROSS][4];
#pragma unroll
    for (int i = 0; i < MMAS_DOWN; ++i)
        set_zero(sums[i]);

    pipeline.begin();
    for (int64_t step = 0; step < range.steps; ++step) {
        const T *const stage = pipeline.advance(step);
        if constexpr (sizeof(T) == 2) {
            multiply_halves<Staging, T, BLOCK_DEPTH>(sums, stage, wi, wj);
        } else if constexpr (FACTORS == Factors::InTerms) {
            multiply_in_terms<Staging, BLOCK_DEPTH>(sums, stage, wi, wj);
        } else if constexpr (FACTORS == Factors::Tf32) {
            multiply_tf32<Staging, BLOCK_DEPTH>(sums, stage, wi, wj);
        } else {
            multiply_doubles<Staging, BLOCK_DEPTH>(sums, stage, wi, wj);
        }
    }

    const Acc alpha = alpha_.get();
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MMAS_DOWN; ++i) {
#pragma unroll
        for (int j = 0; j < MMAS_ACROSS; ++j) {
            const int64_t row = range.i0 + wi + i * 16 + g, col = range.j0 + wj + j * 8 + 2 * t;
            const Acc(&s)[4] = sums[i][j];
            store_neighbours(out, in.m, in.n, row, col, alpha * s[0], alpha * s[1]);
            store_neighbours(out, in.m, in.n, row + 8, col, alpha * s[2], alpha * s[3]);
        }
    }
}

// Computes a tile by FMA: a thread has rows ty, ty + BLOCK_ROWS / THREAD_ROWS, … and groups of 4
// columns.
template <int BLOCK_ROWS, int BLOCK_COLUMNS, int BLOCK_DEPTH, int STAGES, int THREAD_ROWS,
          int THREAD_COLUMNS, int UNROLL>
__device__ __forceinline__ void by_fma(const Operands<float> &in, const Target<float> &out,
                                       const Scalar<float> &alpha_) {
    constexpr int ROWS = BLOCK_ROWS / THREAD_ROWS, COLS = BLOCK_COLUMNS / THREAD_COLUMNS,
                  THREADS = ROWS * COLS, GROUPS = THREAD_COLUMNS / 4;
    using Staging = Stage<float, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH>;
    const int tx = threadIdx.x % COLS, ty = threadIdx.x / COLS;
    extern __shared__ __align__(128) unsigned char shared[];
    const Range range(in, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH);
    Pipeline<float, BLOCK_ROWS, BLOCK_COLUMNS, BLOCK_DEPTH, STAGES, THREADS> pipeline(in, range,
                                                                                      shared);
    float sums[THREAD_ROWS][THREAD_COLUMNS];
    set_zero(sums);

    pipeline.begin();
    for (int64_t step = 0; step < range.steps; ++step) {
        const float *const stage = pipeline.advance(step);
        const float *pa = stage + ty * Staging::ROW_A, *pb = stage + Staging::SIZE_A + tx * 4;
#pragma unroll UNROLL
        for (int kk = 0; kk < BLOCK_DEPTH; kk += 4) {
            float a[THREAD_ROWS][4];
#pragma unroll
            for (int i = 0; i < THREAD_ROWS; ++i) {
                const float4 v =
                    *reinterpret_cast<const float4 *>(pa + i * ROWS * Staging::ROW_A + kk);
                a[i][0] = v.x, a[i][1] = v.y, a[i][2] = v.z, a[i][3] = v.w;
            }
#pragma unroll
            for (int k = 0; k < 4; ++k) {
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) {
                    const float4 v = *reinterpret_cast<const float4 *>(
                        pb + (kk + k) * Staging::ROW_B + group * COLS * 4);
#pragma unroll
                    for (int i = 0; i < THREAD_ROWS; ++i) {
                        sums[i][group * 4] = fma(a[i][k], v.x, sums[i][group * 4]);
                        sums[i][group * 4 + 1] = fma(a[i][k], v.y, sums[i][group * 4 + 1]);
                        sums[i][group * 4 + 2] = fma(a[i][k], v.z, sums[i][group * 4 + 2]);
                        sums[i][group * 4 + 3] = fma(a[i][k], v.w, sums[i][group * 4 + 3]);
                    }
                }
            }
        }
    }

    const float alpha = alpha_.get();
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
        const int64_t row = range.i0 + ty + i * ROWS;
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; j += 2) {
            const int64_t col = range.j0 + j / 4 * COLS * 4 + tx * 4 + j % 4;
            store_neighbours(out, in.m, in.n, row, col, alpha * sums[i][j], alpha * sums[i][j + 1]);
        }
    }
}

} // namespace tarsia::dense
