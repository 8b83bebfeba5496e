// SpMM `window` in fp32: C = alpha · A · B + beta · C on the windows of
// src/format/masked_window.rs, by tensor cores, with factors rounded to TF32 or split exactly into
// sums of three bf16.
//
// A warp computes a window of 16 rows and COLUMNS columns of C. A step is 16 columns of A, which
// are two blocks; their rows of B, masks, starts and values are copied to shared memory some steps
// ahead. B is operand A of the MMA (its rows are columns of C), and a tile of A is operand B; for
// up to 8 columns of C it is the other way round. Lane 4 · g + t holds columns 4g to 4g + 3 of B's
// rows t, t + 4, t + 8 and t + 12, and therefore these columns of C's rows 2t and 2t + 1.
//
// Three terms: x = x1 + x2 + x3, each of which is the remainder rounded to the nearest bf16 (8
// bits). With 2^e <= |x| < 2^(e + 1), x - x1 is a multiple of 2^(e - 23) of at most 2^(e - 8), so
// exact in fp32, |x2| <= 2^(e - 8), |x3| <= 2^(e - 17), and x3 is exactly the rest. Six of the nine
// products are added; a2 b3 + a3 b2 + a3 b3, at most 2^-23.99 |a b|, is omitted.
//
// Error of a row of n entries, with S = sum |a b| and eps = 2^-23. Assumptions about the MMA:
// products of two bf16 are exact; the addends are truncated toward zero at no more than eps of the
// largest one, and the sum, once more, at eps of itself. (What is known of V100, A100 and H100 is
// better by up to two bits; src/backend/cuda/spmm/window/masked_tiles/product_tests.rs checks the
// bound.) Addends that are 0 have no error: of a step only the row's own m entries count, with sum
// s.
// - Five MMAs of small products, onto a sum that begins at 0: at most (2 · 2^-8 + 2^-15) s in all,
//   so their errors are below 5 (m + 2) eps · 2^-6.9 s = 0.042 (m + 2) eps s.
// - The sixth adds the large products to that: (m + 1) eps s for the truncation of addends (m = 1:
//   eps s, since the only product is the largest), eps s for the sum.
// - A rounded addition to the sum of the steps before: eps / 2 · S, and none for the first step.
//
// At most n steps have entries: (1.05 n + 1.6 + (n - 1) / 2) eps S, and 0.5 eps S for the omitted
// products; alpha and beta add a rounding each. That is below 3 n eps S + 2 eps |alpha S|, at n =
// 1: 2.7. Sums in the MMAs' own accumulators would save 4 additions in 40 instructions, but would
// be truncated 6 times per step: up to 18 n eps S.
//
// TF32: each factor is rounded to 11 bits, to nearest with ties away from zero: 2^-11. Sums stay in
// the accumulators: (2^-10 + 2^-22 + 3 n eps) S.
//
// Tiny factors: the terms are multiples of 2^-133, the least bf16. Factors of 2^-110 or more keep
// all of their bits; smaller ones lose up to 2^-134, times the other factor.
//
// Inf and NaN: a tile multiplies rows of B by zeros for rows of A that do not store that column.
// Results that this makes wrong are not finite, and are computed again from the stored entries by
// CUDA cores. The same holds for factors without a finite bf16 (from 2^128 - 2^119 on) or TF32,
// whose other terms are infinite or NaN.
#pragma once

#include "ptx/copies.cuh"
#include "ptx/mma.cuh"
#include "ptx/shared.cuh"
#include "spmm/masked.cuh"

namespace tarsia::masked {

using DenseF32 = Dense<float, float>;

constexpr int ROWS = 16;
constexpr int GROUPS = ROWS / BLOCK;
// Number of columns of A in a step, and of its tiles.
constexpr int DEPTH = 2 * BLOCK;
constexpr int TILES = 2 * GROUPS;

// Numbers of a tile of COLUMNS columns of C: 8, or a multiple of 32.
template <int COLUMNS> struct Form {
    static constexpr bool NARROW = COLUMNS == 8;
    static_assert(NARROW || COLUMNS % 32 == 0);
    // Sums of 16 × 8: if NARROW, one of all 16 rows and 8 columns; otherwise, in each quarter of 32
    // columns, sum i is group i % 2 and 16 of the columns.
    static constexpr int QUARTERS = NARROW ? 1 : COLUMNS / 32;
    static constexpr int SUMS = NARROW ? 1 : QUARTERS * 2 * GROUPS;
    // Chunks of 16 bytes in a row of B, and rows that the warp copies at one time.
    static constexpr int CHUNKS = COLUMNS / 4, PASS = 32 / CHUNKS < 1 ? 1 : 32 / CHUNKS;
    static_assert(CHUNKS <= 32 && 32 % CHUNKS == 0 && DEPTH % PASS == 0);
    // Layout of a step in shared memory: rows of B; values, from a multiple of 16 bytes of their
    // array on; masks; for each tile, the offset in bytes of the value before its first one.
    static constexpr int ROW = COLUMNS * 4;
    static constexpr int VALUES = DEPTH * ROW;
    static constexpr int MASKS = VALUES + ROWS * DEPTH * 4 + 16;
    static constexpr int STARTS = MASKS + TILES * 8;
    static constexpr int BYTES = (STARTS + TILES * 4 + 127) / 128 * 128;
};

// Returns the lane's value of a mask word, or 0 if it has none. Shifting out the bits of later
// lanes leaves the lane's own bit as the sign, and as many ones as there are values up to it.
// `before`: address before the word's first value.
__device__ __forceinline__ float value_of(uint32_t word, uint32_t before, int lanes_after) {
    const uint32_t upto = word << lanes_after;
    float v = 0;
    if (int32_t(upto) < 0)
        v = load_shared<float>(before + __popc(upto) * 4);
    return v;
}

// Factors that a lane holds in a step: for a row of a group (or a column of C), columns t and t + 4
// of two blocks.
struct Factors {
    float v[2][2];
};

// Factors as sums of three bf16, in pairs: [term][block].
struct InTerms {
    struct Operand {
        uint32_t pairs[3][2];
    };

    static __device__ __forceinline__ Operand operand(const Factors &f) {
        Operand out;
#pragma unroll
        for (int block = 0; block < 2; ++block)
            bf16_terms(f.v[block][0], f.v[block][1], out.pairs[0][block], out.pairs[1][block],
                       out.pairs[2][block]);
        return out;
    }
    // c = before + a · b, for term `term` of a and term `term_b` of b.
    static __device__ __forceinline__ void mma(float (&c)[4], const float (&before)[4],
                                               const Operand &low, const Operand &high, int term,
                                               const Operand &b, int term_b) {
        mma16_onto(
            c, before,
            {low.pairs[term][0], high.pairs[term][0], low.pairs[term][1], high.pairs[term][1]},
            b.pairs[term_b][0], b.pairs[term_b][1]);
    }
    // sums[i] += (a[i][0], a[i][1]) times *b[i], small products first. PRODUCTS products are
    // interleaved, since an MMA that waits for the sum of another one takes 27 cycles.
    template <int PRODUCTS>
    static __device__ __forceinline__ void multiply(float (*const (&sums)[PRODUCTS])[4],
                                                    const Operand *const (&a)[PRODUCTS],
                                                    const Operand *const (&b)[PRODUCTS]) {
        constexpr int OF_A[] = {0, 2, 1, 0, 1, 0}, OF_B[] = {2, 0, 1, 1, 0, 0};
        float own[PRODUCTS][4];
#pragma unroll
        for (int product = 0; product < 6; ++product) {
#pragma unroll
            for (int i = 0; i < PRODUCTS; ++i) {
                if (product == 0) {
                    mma(own[i], {0, 0, 0, 0}, a[i][0], a[i][1], OF_A[0], *b[i], OF_B[0]);
                } else {
                    mma(own[i], own[i], a[i][0], a[i][1], OF_A[product], *b[i], OF_B[product]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < PRODUCTS; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j)
                (*sums[i])[j] += own[i][j];
        }
    }
};

// Factors in TF32: [block][column].
struct Rounded {
    struct Operand {
        uint32_t v[2][2];
    };

    static __device__ __forceinline__ Operand operand(const Factors &f) {
        Operand out;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            out.v[i / 2][i % 2] = round_to_tf32(f.v[i / 2][i % 2]);
        return out;
    }
    template <int PRODUCTS>
    static __device__ __forceinline__ void multiply(float (*const (&sums)[PRODUCTS])[4],
                                                    const Operand *const (&a)[PRODUCTS],
                                                    const Operand *const (&b)[PRODUCTS]) {
#pragma unroll
        for (int block = 0; block < 2; ++block) {
#pragma unroll
            for (int i = 0; i < PRODUCTS; ++i) {
                mma8_anywhere(*sums[i],
                              {a[i][0].v[block][0], a[i][1].v[block][0], a[i][0].v[block][1],
                               a[i][1].v[block][1]},
                              b[i]->v[block][0], b[i]->v[block][1]);
            }
        }
    }
};

// Loads the lane's factors of the tiles of the step at `own`, for each group of rows.
template <class Kind, class Sizes>
__device__ __forceinline__ void load_factors(uint32_t own, typename Kind::Operand (&a)[GROUPS]) {
    const int after = 31 - int(threadIdx.x);
    Factors f[GROUPS];
    const uint4 starts = load_shared<uint4>(own + Sizes::STARTS);
    const uint32_t before[2][GROUPS] = {{starts.x, starts.y}, {starts.z, starts.w}};
#pragma unroll
    for (int block = 0; block < 2; ++block) {
        const uint4 v = load_shared<uint4>(own + Sizes::MASKS + block * 16);
        const uint32_t words[GROUPS][2] = {{v.x, v.y}, {v.z, v.w}};
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            const uint32_t list = own + Sizes::VALUES + before[block][i];
            f[i].v[block][0] = value_of(words[i][0], list, after);
            f[i].v[block][1] = value_of(words[i][1], list + __popc(words[i][0]) * 4, after);
        }
    }
#pragma unroll
    for (int i = 0; i < GROUPS; ++i)
        a[i] = Kind::operand(f[i]);
}

// Adds the products of a step; rows: the lane's elements of the rows of B.
template <class Kind, class Sizes>
__device__ __forceinline__ void add_step(float (&sums)[Sizes::SUMS][4],
                                         const typename Kind::Operand (&a)[GROUPS], uint32_t rows) {
    using Operand = typename Kind::Operand;
    if constexpr (Sizes::NARROW) {
        float x[4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
            x[r] = load_shared<float>(rows + r * 4 * Sizes::ROW);
        const Operand b = Kind::operand(Factors{{{x[0], x[1]}, {x[2], x[3]}}});
        float(*const to[1])[4] = {&sums[0]};
        const Operand *const first_of[1] = {a}, *const second_of[1] = {&b};
        Kind::template multiply<1>(to, first_of, second_of);
    } else {
#pragma unroll
        for (int q = 0; q < Sizes::QUARTERS; ++q) {
            float4 x[4];
#pragma unroll
            for (int r = 0; r < 4; ++r)
                x[r] = load_shared<float4>(rows + r * 4 * Sizes::ROW + q * 128);
            // Each pair of the lane's columns is operand A of the MMAs of both groups.
            const float columns_of[4][4] = {{x[0].x, x[1].x, x[2].x, x[3].x},
                                            {x[0].y, x[1].y, x[2].y, x[3].y},
                                            {x[0].z, x[1].z, x[2].z, x[3].z},
                                            {x[0].w, x[1].w, x[2].w, x[3].w}};
            const auto operand = [&](int c) {
                const float(&v)[4] = columns_of[c];
                return Kind::operand(Factors{{{v[0], v[1]}, {v[2], v[3]}}});
            };
            float(*const to)[4] = &sums[4 * q];
            const Operand b[4] = {operand(0), operand(1), operand(2), operand(3)};
            float(*const all[4])[4] = {to, to + 1, to + 2, to + 3};
            const Operand *const first_of[4] = {b, b, b + 2, b + 2};
            const Operand *const second_of[4] = {a, a + 1, a, a + 1};
            Kind::template multiply<4>(all, first_of, second_of);
        }
    }
}

// Returns whether all sums of the warp are finite; those of columns beyond the last one are 0.
template <int COUNT> __device__ __forceinline__ bool all_finite(const float (&sums)[COUNT][4]) {
    float zeros[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < COUNT * 4; ++i)
        zeros[i % 4] = fma(sums[i / 4][i % 4], 0.0f, zeros[i % 4]);
    return __all_sync(ALL_LANES, (zeros[0] + zeros[1]) + (zeros[2] + zeros[3]) == 0.0f);
}

// Stores the sums of the window that begins at `row`, in columns from n0 on.
template <class Sizes>
__device__ __forceinline__ void store_all(const Matrix &m, const DenseF32 &d, int64_t row,
                                          int64_t n0, const float (&sums)[Sizes::SUMS][4],
                                          const Scaling<float> &scaling) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        if constexpr (Sizes::NARROW) {
            const int64_t own = row_of_c(m, row + i * 8 + g);
            if (own >= 0)
                store_sums<2>(d, own, n0 + 2 * t, {sums[0][2 * i], sums[0][2 * i + 1]}, scaling);
        } else {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int64_t own = row_of_c(m, row + i * 8 + 2 * t + h);
                if (own < 0)
                    continue;
#pragma unroll
                for (int q = 0; q < Sizes::QUARTERS; ++q) {
                    const float(&low)[4] = sums[4 * q + i], (&high)[4] = sums[4 * q + 2 + i];
                    store_sums<4>(d, own, n0 + q * 32 + 4 * g,
                                  {low[h], low[2 + h], high[h], high[2 + h]}, scaling);
                }
            }
        }
    }
}

// Copies the lane's chunks of the rows of B of a step to `to`; `bytes` of a chunk are in the
// matrix, and `from` is its address in row 0. column(r) is the column of A, or PADDING, of row row0
// + r, whose chunk goes to `swizzled`. `aligned`: rows of B are aligned. `whole`: all chunks of the
// tile are complete as well. `complete`: this is not a window's last step, whose second block can
// be padded or missing.
template <class Sizes, class Column>
__device__ __forceinline__ void copy_rows(uint32_t to, const char *from, int32_t stride, int bytes,
                                          bool aligned, bool whole, int row0, uint32_t swizzled,
                                          bool complete, Column column) {
    const auto where = [&](int r) {
        return to + (row0 + r) * Sizes::ROW +
               (Sizes::NARROW ? swizzled : swizzled ^ ((r & 3) << 5));
    };
    if (whole && complete) {
#pragma unroll
        for (int r = 0; r < DEPTH; r += Sizes::PASS)
            copy16(where(r), row_at(from, column(r), stride));
    } else if (aligned) {
#pragma unroll
        for (int r = 0; r < DEPTH; r += Sizes::PASS) {
            const uint32_t k = column(r);
            copy16(where(r), row_at(from, k & ~PADDING, stride), k & PADDING ? 0 : bytes);
        }
    } else {
#pragma unroll 1
        for (int r = 0; r < DEPTH; r += Sizes::PASS) {
            const uint32_t k = column(r);
            const char *row = row_at(from, k & ~PADDING, stride);
            const int there = k & PADDING ? 0 : bytes;
#pragma unroll
            for (int i = 0; i < 16; i += 4)
                copy_bytes<4>(where(r) + i, row + (i < there ? i : 0), i < there ? 4 : 0);
        }
    }
}

// Computes a window's tile of C by a block of one warp. STEPS - 1 steps are in flight while one is
// computed.
template <class Kind, int COLUMNS, int STEPS>
__device__ __forceinline__ void run(const Matrix &m, const DenseF32 &d, const Scalar<float> &alpha,
                                    const Scalar<float> &beta, const Join &j, int32_t tiles) {
    using Sizes = Form<COLUMNS>;
    extern __shared__ __align__(128) char staging[];
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    const Position place(tiles);
    const int64_t n0 = place.tile * COLUMNS;
    if (n0 >= d.n)
        return;
    const WorkItem item = item_of(m, place.item);
    const uint32_t first = item.first, end = is_zero(alpha.get()) ? item.first : item.end;
    const int steps = int((end - first + 1) / 2);
    const uint32_t base = shared_address(staging);
    float sums[Sizes::SUMS][4];
    set_zero(sums);

    // Chunk c of row r is stored at c ^ (2r & 7), so that neither copies nor loads have bank
    // conflicts.
    const int chunk = lane % Sizes::CHUNKS, row0 = lane / Sizes::CHUNKS;
    const uint32_t swizzled = (Sizes::NARROW ? chunk : chunk ^ ((row0 & 3) << 1)) * 16;
    const int32_t stride = int32_t(d.ldb * sizeof(float));
    const int64_t left = d.n - (n0 + chunk * 4);
    const int bytes = left >= 4 ? 16 : left > 0 ? int(left) * 4 : 0;
    const char *const from = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
    const bool aligned = d.flags & B_ALIGNED, whole = aligned && n0 + COLUMNS <= d.n;
    const float *const values = static_cast<const float *>(m.values);

    // For two steps: the lane's column, and the first values of their tiles and of the next tile.
    // Both are loaded without a condition, and a column beyond the last block becomes PADDING when
    // it is taken: ptxas copies the result of a conditional load right behind it, and so waits for
    // memory in every second step (0.90 to 0.96 of the speed).
    uint32_t columns, firsts, next_columns, next_firsts;
    const auto fetch = [&](int step) {
        const int64_t block = int64_t(first) + 2 * step;
        next_columns = __ldg(m.columns + min(block * BLOCK + lane, int64_t(end) * BLOCK - 1));
        const int64_t tile = block * GROUPS + min(lane, 2 * TILES);
        next_firsts = __ldg(m.starts + min(tile, int64_t(end) * GROUPS));
    };
    const auto take = [&](int step) {
        columns = first + 2 * step + lane / BLOCK < end ? next_columns : PADDING;
        firsts = next_firsts;
    };
    const auto issue = [&](int step, int at) {
        if (step < steps) {
            const uint32_t to = base + at * Sizes::BYTES;
            const int half = step & 1;
            copy_rows<Sizes>(
                to, from, stride, bytes, aligned, whole, row0, swizzled, step + 1 < steps,
                [&](int r) { return __shfl_sync(ALL_LANES, columns, half * DEPTH + row0 + r); });
            const uint32_t low = __shfl_sync(ALL_LANES, firsts, half * TILES) & ~3u;
            const uint32_t high = __shfl_sync(ALL_LANES, firsts, (half + 1) * TILES);
#pragma unroll 1
            for (uint32_t i = lane * 4; i < high - low; i += 128)
                copy16(to + Sizes::VALUES + i * 4, values + low + i);
            const uint32_t block = first + 2 * step;
            if (lane < 2)
                copy16(to + Sizes::MASKS + lane * 16, m.masks + int64_t(block + lane) * GROUPS,
                       block + lane < end ? 16 : 0);
            if (unsigned(lane - half * TILES) < TILES)
                store_shared(to + Sizes::STARTS + (lane - half * TILES) * 4,
                             (firsts - low) * 4 - 4);
            if (half) {
                take(step + 1);
                fetch(step + 3);
            }
        }
        close_copies();
    };
    if (steps > 0) {
        fetch(0);
        take(0);
        fetch(2);
    }
#pragma unroll 1
    for (int s = 0; s < STEPS - 1; ++s)
        issue(s, s);
    int at = 0, free_at = STEPS - 1;
    const uint32_t rows = base + t * Sizes::ROW + (Sizes::NARROW ? g * 4 : (g ^ (t << 1)) * 16);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait_copies<STEPS - 2>();
        // Here all lanes' copies are complete, and all lanes have finished with the slot of the
        // previous step.
        __syncwarp();
        issue(step + STEPS - 1, free_at);
        const uint32_t offset = at * Sizes::BYTES;
        free_at = at;
        at = at + 1 == STEPS ? 0 : at + 1;
        typename Kind::Operand a[GROUPS];
        load_factors<Kind, Sizes>(base + offset, a);
        add_step<Kind, Sizes>(sums, a, rows + offset);
    }

    if (!has_whole_sums<WARP, PARTS_AT_ONCE<Sizes::SUMS>>(m, j, item, place.tile, sums, lane))
        return;
    const Scaling<float> scaling(d, alpha, beta);
    const int64_t row = int64_t(item.window) * ROWS;
    if (all_finite(sums)) {
        store_all<Sizes>(m, d, row, n0, sums, scaling);
    } else {
        exact<float>(m, d, whole_of(m, item), row, ROWS, 0, GROUPS, n0, COLUMNS, scaling);
    }
}

} // namespace tarsia::masked
