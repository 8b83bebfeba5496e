// SpMM `dense` in fp32 by tensor cores: factors are sums of three bf16 (ptx/mma.cuh,
// bf16_terms), and six of the nine products of these terms are added.
//
// A block of 256 threads computes 128 rows and COLUMNS columns of the product, each of its two warp
// groups 64 of the rows. Threads load blocks of 32 columns of A and rows of B one step ahead into
// registers, and write their bf16 terms to shared memory while the tensor cores multiply those of
// the step before (wgmma, sm_90a). Other devices use mma.sync, with factors in shared memory that
// are split in registers (by_matrix_units in spmm/dense.cuh).
//
// Error of a sum of n products, with Staging = sum |a b| and eps = 2^-23, under the assumptions of
// spmm/masked_f32.cuh about tensor cores: addends are truncated toward zero at no more than eps of
// the largest one, and so is the sum. The sums of a step of 32 columns begin at 0. Let s be the
// step's part of Staging and m the number of its products that are not 0. Ten sums of small
// products lose 0.1 (m + 2) eps s in all, and the two sums of large products, m1 and m2 of them, at
// most (m1 + 1) eps s and (m2 + 2) eps s, or nothing where there are none. The three omitted
// products are at most 0.5 eps s, and adding the sums of at most n steps and ranges of K takes n
// roundings of eps / 2 · Staging. In all this is below 3 n eps Staging, and alpha and beta add a
// rounding each: 3 n eps Staging + 2 eps |alpha Staging|, as in window.
#pragma once

#include "ptx/wgmma.cuh"
#include "spmm/dense.cuh"

namespace tarsia::dense {

constexpr int TILE_ROWS = 128, TILE_DEPTH = 32;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Layout in shared memory of the bf16 terms of a step, in bytes: blocks of 8 × 8 elements, 128
// bytes, whose lines of 16 bytes are rows of A or of B. Blocks of A that are neighbours along its
// columns are DEEP_A apart, and along its rows 128; blocks of B are DEEP_B apart along its rows,
// and WIDE_B along its columns. The padding between blocks puts the stores of a warp into different
// banks.
template <int COLUMNS> struct TermStage {
    static constexpr int DEPTH = TILE_DEPTH / 8;
    static constexpr int DEEP_A = TILE_ROWS / 8 * 128 + 32, TERM_A = DEPTH * DEEP_A;
    static constexpr int WIDE_B = 128 + 16, DEEP_B = COLUMNS / 8 * WIDE_B, TERM_B = DEPTH * DEEP_B;
    static constexpr int B = 3 * TERM_A;
    static constexpr int BYTES = 3 * (TERM_A + TERM_B);
};

// Loads of one thread in a step: packs of four columns of A and of B.
template <int COLUMNS> struct TermLoader {
    using Staging = TermStage<COLUMNS>;
    static constexpr int PACKS_A = TILE_DEPTH / 4, STEP_A = 256 / PACKS_A,
                         OF_A = TILE_ROWS / STEP_A;
    static constexpr int PACKS_B = COLUMNS / 4, STEP_B = 256 / PACKS_B, OF_B = TILE_DEPTH / STEP_B;
    static_assert(STEP_B % 8 == 0, "a thread's rows of B are the same lines of their blocks");

    const float *a, *b;
    int64_t lda, ldb;
    int64_t left;      // columns of A from this thread's first one on
    int ahead;         // that column minus this thread's first row of B
    int rows, columns; // rows of A and columns of B, from this thread's first ones on
    uint32_t to_a, to_b;
    float4 of_a[OF_A], of_b[OF_B];

    __device__ __forceinline__ TermLoader(const Operands<float> &in, int64_t i0, int64_t j0,
                                          int64_t k_begin, int64_t k_end) {
        const int row_a = threadIdx.x / PACKS_A, col_a = threadIdx.x % PACKS_A * 4;
        const int row_b = threadIdx.x / PACKS_B, col_b = threadIdx.x % PACKS_B * 4;
        lda = in.lda, ldb = in.ldb;
        a = in.a + (i0 + row_a) * lda + k_begin + col_a;
        b = in.b + (k_begin + row_b) * ldb + j0 + col_b;
        left = k_end - k_begin - col_a;
        ahead = col_a - row_b;
        const int64_t below = in.m - i0 - row_a, beside = in.n - j0 - col_b;
        rows = below < TILE_ROWS ? int(below) : TILE_ROWS;
        columns = beside < 4 ? int(beside) : 4;
        to_a = col_a / 8 * Staging::DEEP_A + row_a * 16 + col_a % 8 * 2;
        to_b = Staging::B + row_b / 8 * Staging::DEEP_B + row_b % 8 * 16 +
               col_b / 8 * Staging::WIDE_B + col_b % 8 * 2;
    }

    // Loads the packs of the next step.
    __device__ __forceinline__ void load() {
#pragma unroll
        for (int i = 0; i < OF_A; ++i) {
            of_a[i] = make_float4(0.f, 0.f, 0.f, 0.f);
            // Rows of A are padded with zeros to whole packs.
            if (i * STEP_A < rows && left > 0)
                of_a[i] = __ldg(reinterpret_cast<const float4 *>(a + i * STEP_A * lda));
        }
        const int64_t left_b = left + ahead;
#pragma unroll
        for (int i = 0; i < OF_B; ++i) {
            of_b[i] = make_float4(0.f, 0.f, 0.f, 0.f);
            if (i * STEP_B >= left_b)
                continue;
            const float *of = b + i * STEP_B * ldb;
            if (columns == 4) {
                of_b[i] = __ldg(reinterpret_cast<const float4 *>(of));
            } else {
                of_b[i].x = columns > 0 ? __ldg(of) : 0.f;
                of_b[i].y = columns > 1 ? __ldg(of + 1) : 0.f;
                of_b[i].z = columns > 2 ? __ldg(of + 2) : 0.f;
            }
        }
        a += TILE_DEPTH, b += TILE_DEPTH * ldb, left -= TILE_DEPTH;
    }

    // Stores the bf16 terms of the packs to a stage.
    __device__ __forceinline__ void store(unsigned char *stage) const {
#pragma unroll
        for (int i = 0; i < OF_A; ++i)
            store_terms(stage + to_a + i * STEP_A * 16, Staging::TERM_A, of_a[i]);
#pragma unroll
        for (int i = 0; i < OF_B; ++i)
            store_terms(stage + to_b + i * (STEP_B / 8) * Staging::DEEP_B, Staging::TERM_B,
                        of_b[i]);
    }

    __device__ static __forceinline__ void store_terms(unsigned char *to, int apart, float4 pack) {
        uint2 terms[3];
        bf16_terms(pack.x, pack.y, terms[0].x, terms[1].x, terms[2].x);
        bf16_terms(pack.z, pack.w, terms[0].y, terms[1].y, terms[2].y);
#pragma unroll
        for (int term = 0; term < 3; ++term)
            *reinterpret_cast<uint2 *>(to + term * apart) = terms[term];
    }
};

template <int COLUMNS>
__device__ __forceinline__ void in_terms(const Operands<float> &in, const Target<float> &out,
                                         const Scalar<float> &alpha_) {
    using Staging = TermStage<COLUMNS>;
    extern __shared__ __align__(128) unsigned char shared[];
    const Range range(in, TILE_ROWS, COLUMNS, TILE_DEPTH);
    const int64_t steps = range.steps;
    TermLoader<COLUMNS> loader(in, range.i0, range.j0, range.begin, range.end);

    float sums[COLUMNS / 2], of_step[COLUMNS / 2];
    set_zero(sums);
    const int group = threadIdx.x / 128;
    // A group's rows of A begin 8 blocks after those of the group before.
    const uint32_t base = shared_address(shared), of_group = group * 8 * 128;
    if (steps > 0) {
        loader.load();
        loader.store(shared);
        loader.load();
    }
    show_to_products();
    __syncthreads();
    for (int64_t step = 0; step < steps; ++step) {
        const uint32_t from = base + (step & 1) * Staging::BYTES;
        const auto a = [&](int term, int deep) {
            return factor_at(from + term * Staging::TERM_A + deep * Staging::DEEP_A + of_group,
                             Staging::DEEP_A, 128);
        };
        const auto b = [&](int term, int deep) {
            return factor_at(from + Staging::B + term * Staging::TERM_B + deep * Staging::DEEP_B,
                             Staging::DEEP_B, Staging::WIDE_B);
        };
        // Small products are added first, so that little of them is cut off.
        begin_products();
        add_product<false>(of_step, a(2, 0), b(0, 0));
#pragma unroll
        for (int deep = 0; deep < Staging::DEPTH; deep += 2) {
            if (deep > 0)
                add_product<true>(of_step, a(2, deep), b(0, deep));
            add_product<true>(of_step, a(0, deep), b(2, deep));
            add_product<true>(of_step, a(1, deep), b(1, deep));
            add_product<true>(of_step, a(1, deep), b(0, deep));
            add_product<true>(of_step, a(0, deep), b(1, deep));
        }
#pragma unroll
        for (int deep = 0; deep < Staging::DEPTH; deep += 2)
            add_product<true>(of_step, a(0, deep), b(0, deep));
        close_products();
        if (step + 1 < steps)
            loader.store(shared + ((step + 1) & 1) * Staging::BYTES);
        if (step + 2 < steps)
            loader.load();
        await_products(of_step);
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; ++i)
            sums[i] += of_step[i];
        show_to_products();
        __syncthreads();
    }
    const float alpha = alpha_.get();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t row = range.i0 + warp * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        const int64_t col = range.j0 + j * 8 + lane % 4 * 2;
        const float *sum = sums + 4 * j;
        store_neighbours(out, in.m, in.n, row, col, alpha * sum[0], alpha * sum[1]);
        store_neighbours(out, in.m, in.n, row + 8, col, alpha * sum[2], alpha * sum[3]);
    }
}

#else

template <int COLUMNS>
__device__ __forceinline__ void in_terms(const Operands<float> &in, const Target<float> &out,
                                         const Scalar<float> &alpha) {
    constexpr int WARP_ROWS = COLUMNS / 2, WARP_COLUMNS = 32;
    static_assert(TILE_ROWS / WARP_ROWS * (COLUMNS / WARP_COLUMNS) == 8);
    by_matrix_units<float, float, float, Factors::InTerms, TILE_ROWS, COLUMNS, TILE_DEPTH, 2,
                    WARP_ROWS, WARP_COLUMNS>(in, out, alpha);
}

#endif

} // namespace tarsia::dense
