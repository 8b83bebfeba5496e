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
// better by up to two bits; src/backend/cuda/spmm/masked/tests.rs checks the bound.) Addends that
// are 0 have no error: of a step only the row's own m entries count, with sum s.
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

#include "common/copies.cuh"
#include "common/mma.cuh"
#include "spmm/masked.cuh"

namespace tarsia::masked {

using DenseF32 = Dense<float, float>;

constexpr int kRows = 16;
constexpr int kGroups = kRows / kBlock;
// Number of columns of A in a step, and of its tiles.
constexpr int kDepth = 2 * kBlock;
constexpr int kTiles = 2 * kGroups;

// Layout of a step in shared memory: rows of B; values, from a multiple of 16 bytes of their array
// on; masks; for each tile, the offset in bytes of the value before its first one.
template <int COLUMNS> struct Step {
    static constexpr int ROW = COLUMNS * 4;
    static constexpr int VALUES = kDepth * ROW;
    static constexpr int MASKS = VALUES + kRows * kDepth * 4 + 16;
    static constexpr int STARTS = MASKS + kTiles * 8;
    static constexpr int BYTES = (STARTS + kTiles * 4 + 127) / 128 * 128;
};

__device__ __forceinline__ float shared_float(uint32_t from) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}
__device__ __forceinline__ float4 shared_floats(uint32_t from) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}
__device__ __forceinline__ uint4 shared_words(uint32_t from) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}

// Returns the lane's value of a mask word, or 0 if it has none. Shifting out the bits of later
// lanes leaves the lane's own bit as the sign, and as many ones as there are values up to it.
// `before`: address before the word's first value.
__device__ __forceinline__ float value_of(uint32_t word, uint32_t before, int lanes_after) {
    const uint32_t upto = word << lanes_after;
    float v = 0;
    if (int32_t(upto) < 0)
        v = shared_float(before + __popc(upto) * 4);
    return v;
}

// Factors that a lane holds in a step: for a row of a group (or a column of C), columns t and t + 4
// of two blocks.
struct Factors {
    float v[2][2];
};

// Factors as sums of three bf16, in pairs: [term][block].
struct InParts {
    struct Operand {
        uint32_t pairs[3][2];
    };

    static __device__ __forceinline__ Operand operand(const Factors &f) {
        Operand out;
#pragma unroll
        for (int block = 0; block < 2; ++block)
            bf16_parts(f.v[block][0], f.v[block][1], out.pairs[0][block], out.pairs[1][block],
                       out.pairs[2][block]);
        return out;
    }
    // c = before + …: the first MMA adds to constant zeros, which need no registers to be cleared.
    static __device__ __forceinline__ void mma(float (&c)[4], const float (&before)[4],
                                               const Operand &low, const Operand &high, int part,
                                               const Operand &b, int part_b) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
            : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
            : "r"(low.pairs[part][0]), "r"(high.pairs[part][0]), "r"(low.pairs[part][1]),
              "r"(high.pairs[part][1]), "r"(b.pairs[part_b][0]), "r"(b.pairs[part_b][1]),
              "f"(before[0]), "f"(before[1]), "f"(before[2]), "f"(before[3]));
    }
    // sums[i] += (a[i][0], a[i][1]) times *b[i], small products first. N products are interleaved,
    // since an MMA that waits for the sum of another one takes 27 cycles.
    template <int N>
    static __device__ __forceinline__ void multiply(float (*const (&sums)[N])[4],
                                                    const Operand *const (&a)[N],
                                                    const Operand *const (&b)[N]) {
        constexpr int OF_A[] = {0, 2, 1, 0, 1, 0}, OF_B[] = {2, 0, 1, 1, 0, 0};
        float own[N][4];
#pragma unroll
        for (int product = 0; product < 6; ++product) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                if (product == 0) {
                    mma(own[i], {0, 0, 0, 0}, a[i][0], a[i][1], OF_A[0], *b[i], OF_B[0]);
                } else {
                    mma(own[i], own[i], a[i][0], a[i][1], OF_A[product], *b[i], OF_B[product]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
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

    // Rounds to TF32 by adding half a unit, since MMAs ignore the lower 13 bits. Inf and NaN are
    // left alone: it would have no effect on Inf, and could change the sign of a NaN.
    static __device__ __forceinline__ uint32_t round(float x) {
        uint32_t bits = __float_as_uint(x);
        asm("{.reg .pred finite; .reg .f32 size;\n"
            "abs.f32 size, %1; setp.lt.f32 finite, size, 0f7f800000;\n"
            "@finite add.u32 %0, %0, 0x1000;}"
            : "+r"(bits)
            : "f"(x));
        return bits;
    }
    static __device__ __forceinline__ Operand operand(const Factors &f) {
        Operand out;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            out.v[i / 2][i % 2] = round(f.v[i / 2][i % 2]);
        return out;
    }
    template <int N>
    static __device__ __forceinline__ void multiply(float (*const (&sums)[N])[4],
                                                    const Operand *const (&a)[N],
                                                    const Operand *const (&b)[N]) {
#pragma unroll
        for (int block = 0; block < 2; ++block) {
#pragma unroll
            for (int i = 0; i < N; ++i) {
                float(&c)[4] = *sums[i];
                asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                    "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                    : "r"(a[i][0].v[block][0]), "r"(a[i][1].v[block][0]), "r"(a[i][0].v[block][1]),
                      "r"(a[i][1].v[block][1]), "r"(b[i]->v[block][0]), "r"(b[i]->v[block][1]));
            }
        }
    }
};

template <int COUNT> struct PackOfFloats { using Type = float4; };
template <> struct PackOfFloats<2> { using Type = float2; };

// Stores COUNT (2 or 4) sums of neighbouring columns of a row of C, except those from column n on.
template <int COUNT>
__device__ __forceinline__ void store_some(const DenseF32 &d, int64_t row, int64_t at,
                                           const float (&sums)[COUNT], float alpha, float beta) {
    using Pack = typename PackOfFloats<COUNT>::Type;
    float *to = d.c + row * d.ldc + at;
    if ((d.flags & 2) && at + COUNT <= d.n) {
        float out[COUNT], old[COUNT];
        Pack pack;
        if (!is_zero(beta)) {
            pack = *reinterpret_cast<const Pack *>(to);
            memcpy(old, &pack, sizeof old);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            out[i] = alpha * sums[i];
            if (!is_zero(beta))
                out[i] = fma(beta, old[i], out[i]);
        }
        memcpy(&pack, out, sizeof out);
        // C is not read again, so it should not evict B from L2.
        __stcs(reinterpret_cast<Pack *>(to), pack);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (at + i < d.n)
                store(to + i, alpha, sums[i], beta);
        }
    }
}

// Computes a window's tile of C by a block of one warp. COLUMNS: 8, or a multiple of 32. STEPS - 1
// steps are in flight while one is computed.
template <class Kind, int COLUMNS, int STEPS>
__device__ __forceinline__ void run(const Matrix &m, const DenseF32 &d, const Scalar<float> &alpha_,
                                    const Scalar<float> &beta_, const Join &j, int32_t tiles) {
    using Own = Step<COLUMNS>;
    using Operand = typename Kind::Operand;
    constexpr bool NARROW = COLUMNS == 8;
    static_assert(NARROW || COLUMNS % 32 == 0);
    constexpr int QUARTERS = NARROW ? 1 : COLUMNS / 32;
    // sums[i]: if NARROW, all 16 rows and 8 columns; otherwise group i % 2 and 16 columns.
    constexpr int N = NARROW ? 1 : QUARTERS * 2 * kGroups;
    constexpr int ROW = Own::ROW, CHUNKS = COLUMNS / 4; // chunks of 16 bytes per row
    constexpr int PASS = 32 / CHUNKS < 1 ? 1 : 32 / CHUNKS;
    static_assert(CHUNKS <= 32 && 32 % CHUNKS == 0 && kDepth % PASS == 0);
    extern __shared__ __align__(128) char staging[];

    const int lane = threadIdx.x, g = lane / 4, t = lane % 4, after = 31 - lane;
    const Place place(tiles);
    const int64_t n0 = place.tile * COLUMNS;
    if (n0 >= d.n)
        return;
    const Item item = item_of(m, place.item);
    const float alpha = alpha_.get();
    const uint32_t first = item.first, end = is_zero(alpha) ? item.first : item.end;
    const int steps = int((end - first + 1) / 2);
    const uint32_t base = shared_address(staging);
    float sums[N][4];
#pragma unroll
    for (int i = 0; i < N; ++i)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;

    // Chunk c of row r is stored at c ^ (2r & 7), so that neither copies nor loads have bank
    // conflicts.
    const int chunk = lane % CHUNKS, row0 = lane / CHUNKS;
    const uint32_t swizzled = (NARROW ? chunk : chunk ^ ((row0 & 3) << 1)) * 16;
    const int32_t stride = int32_t(d.ldb * sizeof(float));
    const int64_t left = d.n - (n0 + chunk * 4);
    const int bytes = left >= 4 ? 16 : left > 0 ? int(left) * 4 : 0;
    const char *const from = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
    const bool aligned = d.flags & 1, whole = aligned && n0 + COLUMNS <= d.n;
    const float *const values = static_cast<const float *>(m.values);

    // For two steps: the lane's column, and the first values of their tiles and of the next tile.
    uint32_t columns = 0, firsts = 0, next_columns = 0, next_firsts = 0;
    const auto fetch = [&](int step) {
        const uint32_t block = first + 2 * step;
        next_columns = kPadding;
        if (block + lane / kBlock < end)
            next_columns = __ldg(m.columns + int64_t(block) * kBlock + lane);
        const int64_t tile = int64_t(block) * kGroups + min(lane, 2 * kTiles);
        next_firsts = __ldg(m.starts + min(tile, int64_t(end) * kGroups));
    };
    const auto issue = [&](int step, int at) {
        if (step < steps) {
            const uint32_t to = base + at * Own::BYTES;
            const int half = step & 1;
            const auto column = [&](int r) {
                return __shfl_sync(kWarp, columns, half * kDepth + row0 + r);
            };
            const auto where = [&](int r) {
                return to + (row0 + r) * ROW + (NARROW ? swizzled : swizzled ^ ((r & 3) << 5));
            };
            if (whole && step + 1 < steps) {
#pragma unroll
                for (int r = 0; r < kDepth; r += PASS)
                    copy16(where(r), row_at(from, column(r), stride));
            } else if (aligned) {
                // Only the last block of a window can be padded or missing.
#pragma unroll
                for (int r = 0; r < kDepth; r += PASS) {
                    const uint32_t k = column(r);
                    copy16(where(r), row_at(from, k & ~kPadding, stride), k & kPadding ? 0 : bytes);
                }
            } else {
#pragma unroll 1
                for (int r = 0; r < kDepth; r += PASS) {
                    const uint32_t k = column(r);
                    const char *row = row_at(from, k & ~kPadding, stride);
                    const int there = k & kPadding ? 0 : bytes;
#pragma unroll
                    for (int i = 0; i < 16; i += 4)
                        copy_bytes<4>(where(r) + i, row + (i < there ? i : 0), i < there ? 4 : 0);
                }
            }
            const uint32_t low = __shfl_sync(kWarp, firsts, half * kTiles) & ~3u;
            const uint32_t high = __shfl_sync(kWarp, firsts, (half + 1) * kTiles);
#pragma unroll 1
            for (uint32_t i = lane * 4; i < high - low; i += 128)
                copy16(to + Own::VALUES + i * 4, values + low + i);
            const uint32_t block = first + 2 * step;
            if (lane < 2)
                copy16(to + Own::MASKS + lane * 16, m.masks + int64_t(block + lane) * kGroups,
                       block + lane < end ? 16 : 0);
            if (unsigned(lane - half * kTiles) < kTiles)
                asm volatile(
                    "st.shared.u32 [%0], %1;" ::"r"(to + Own::STARTS + (lane - half * kTiles) * 4),
                    "r"((firsts - low) * 4 - 4)
                    : "memory");
            if (half) {
                columns = next_columns, firsts = next_firsts;
                fetch(step + 3);
            }
        }
        close_copies();
    };
    fetch(0);
    columns = next_columns, firsts = next_firsts;
    fetch(2);
#pragma unroll 1
    for (int s = 0; s < STEPS - 1; ++s)
        issue(s, s);
    int at = 0, free_at = STEPS - 1;
    const uint32_t rows = base + t * ROW + (NARROW ? g * 4 : (g ^ (t << 1)) * 16);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        wait_copies<STEPS - 2>();
        // Here all lanes' copies are complete, and all lanes have finished with the slot of the
        // previous step.
        __syncwarp();
        issue(step + STEPS - 1, free_at);
        const uint32_t offset = at * Own::BYTES, own = base + offset;
        free_at = at;
        at = at + 1 == STEPS ? 0 : at + 1;

        Operand a[kGroups];
        {
            Factors f[kGroups];
            const uint4 starts = shared_words(own + Own::STARTS);
            const uint32_t before[2][kGroups] = {{starts.x, starts.y}, {starts.z, starts.w}};
#pragma unroll
            for (int block = 0; block < 2; ++block) {
                const uint4 v = shared_words(own + Own::MASKS + block * 16);
                const uint32_t words[kGroups][2] = {{v.x, v.y}, {v.z, v.w}};
#pragma unroll
                for (int i = 0; i < kGroups; ++i) {
                    const uint32_t list = own + Own::VALUES + before[block][i];
                    f[i].v[block][0] = value_of(words[i][0], list, after);
                    f[i].v[block][1] = value_of(words[i][1], list + __popc(words[i][0]) * 4, after);
                }
            }
#pragma unroll
            for (int i = 0; i < kGroups; ++i)
                a[i] = Kind::operand(f[i]);
        }
        if constexpr (NARROW) {
            float x[4];
#pragma unroll
            for (int r = 0; r < 4; ++r)
                x[r] = shared_float(rows + offset + r * 4 * ROW);
            const Operand b = Kind::operand(Factors{{{x[0], x[1]}, {x[2], x[3]}}});
            float(*const to[1])[4] = {&sums[0]};
            const Operand *const first_of[1] = {a}, *const second_of[1] = {&b};
            Kind::template multiply<1>(to, first_of, second_of);
        } else {
#pragma unroll
            for (int q = 0; q < QUARTERS; ++q) {
                float4 x[4];
#pragma unroll
                for (int r = 0; r < 4; ++r)
                    x[r] = shared_floats(rows + offset + r * 4 * ROW + q * 128);
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
    if (item.part != kWhole) {
        const bool last = join(
            m, j, item.part, place.tile, sums, lane, 32, [] { __syncwarp(); },
            [](bool mine) { return __shfl_sync(kWarp, int(mine), 0) != 0; });
        if (!last)
            return;
    }
    const float scale = d.flags & 4 ? 1.0f : alpha;
    const float beta = d.flags & 4 ? 0.0f : beta_.get();
    const int64_t row = int64_t(item.window) * kRows;
    // Sums of columns beyond the last one are 0.
    float zeros[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < N * 4; ++i)
        zeros[i % 4] = fma(sums[i / 4][i % 4], 0.0f, zeros[i % 4]);
    if (!__all_sync(kWarp, (zeros[0] + zeros[1]) + (zeros[2] + zeros[3]) == 0.0f)) {
        const Item all = whole_of(m, item);
        exact<float>(m, d, all.first, all.end, row, kRows, 0, kGroups, n0, COLUMNS, scale, beta);
        return;
    }
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
        if constexpr (NARROW) {
            const int64_t own = row_of_c(m, row + i * 8 + g);
            if (own >= 0)
                store_some<2>(d, own, n0 + 2 * t, {sums[0][2 * i], sums[0][2 * i + 1]}, scale,
                              beta);
        } else {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int64_t own = row_of_c(m, row + i * 8 + 2 * t + h);
                if (own < 0)
                    continue;
#pragma unroll
                for (int q = 0; q < QUARTERS; ++q) {
                    const float(&low)[4] = sums[4 * q + i], (&high)[4] = sums[4 * q + 2 + i];
                    store_some<4>(d, own, n0 + q * 32 + 4 * g,
                                  {low[h], low[2 + h], high[h], high[2 + h]}, scale, beta);
                }
            }
        }
    }
}

} // namespace tarsia::masked
