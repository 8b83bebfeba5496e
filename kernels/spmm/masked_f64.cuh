// SpMM `window` in doubles: C = alpha · A · B + beta · C on the windows of
// src/format/masked_window.rs, by tensor cores.
//
// A tile of 8 rows and 8 columns of A is operand B of mma.m16n8k8, whose rows are 16 columns of C:
// lane 4 · g + t holds columns 2g and 2g + 1 of rows t and t + 4 of B's eight rows, and these
// columns of C's rows 2t and 2t + 1, 16 bytes each. For up to 8 columns of C, two tiles of A are
// operand A instead.
//
// The result is exact if B has Inf or NaN: a tile multiplies rows of B by zeros for rows of A that
// do not store that column; results that this makes wrong are not finite, and are computed again
// from the stored entries.
#pragma once

#include "common/copies.cuh"
#include "common/mma.cuh"
#include "spmm/masked.cuh"

namespace tarsia::masked {

using DenseF64 = Dense<double, double>;

// Stores the sums of two neighbouring columns of a row of C, except those from column n on.
__device__ __forceinline__ void store2(const DenseF64 &d, int64_t row, int64_t at, double first,
                                       double second, double alpha, double beta) {
    double *to = d.c + row * d.ldc + at;
    if ((d.flags & 2) && at + 2 <= d.n) {
        double2 out = make_double2(alpha * first, alpha * second);
        if (!is_zero(beta)) {
            const double2 old = *reinterpret_cast<const double2 *>(to);
            out = make_double2(fma(beta, old.x, out.x), fma(beta, old.y, out.y));
        }
        // C is not read again, so it should not evict B from L2.
        __stcs(reinterpret_cast<double2 *>(to), out);
    } else {
        if (at < d.n)
            store(to, alpha, first, beta);
        if (at + 1 < d.n)
            store(to + 1, alpha, second, beta);
    }
}

// Returns whether all sums of a warp are finite: G groups of 8 rows by COLUMNS columns from `at`
// on. sums[i · CH + k][j] belongs to row 8i + 2t + j % 2 and column 16k + 2g + j / 2; with 8
// columns, sums[i][j] belongs to row 16i + g + j / 2 · 8 and column 2t + j % 2.
template <int G, int COLUMNS, int N>
__device__ __forceinline__ bool all_finite(const DenseF64 &d, const double (&sums)[N][4],
                                           int64_t at) {
    constexpr int CH = COLUMNS == 8 ? 1 : COLUMNS / 16;
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    double zeros = 0;
#pragma unroll
    for (int k = 0; k < CH; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (at + (COLUMNS == 8 ? 2 * t + j % 2 : 16 * k + 2 * g + j / 2) < d.n) {
#pragma unroll
                for (int i = 0; i < N / CH; ++i)
                    zeros = fma(sums[i * CH + k][j], 0.0, zeros);
            }
        }
    }
    return __all_sync(kWarp, zeros == 0.0);
}

// Stores these sums to C; `row` is the first of their rows.
template <int G, int COLUMNS, int N>
__device__ __forceinline__ void store_all(const Matrix &m, const DenseF64 &d,
                                          const double (&sums)[N][4], int64_t row, int64_t at,
                                          double alpha, double beta) {
    constexpr int CH = COLUMNS == 8 ? 1 : COLUMNS / 16;
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < N / CH; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if constexpr (COLUMNS == 8) {
                const int64_t own = row_of_c(m, row + i * 16 + h * 8 + g);
                if (own >= 0)
                    store2(d, own, at + 2 * t, sums[i][2 * h], sums[i][2 * h + 1], alpha, beta);
            } else {
                const int64_t own = row_of_c(m, row + i * 8 + 2 * t + h);
                if (own >= 0) {
#pragma unroll
                    for (int k = 0; k < CH; ++k)
                        store2(d, own, at + k * 16 + 2 * g, sums[i * CH + k][h],
                               sums[i * CH + k][2 + h], alpha, beta);
                }
            }
        }
    }
}

// Shared memory of one stage. A block takes an item and COLUMNS columns of C, and copies rows of B,
// masks and values to shared memory, DEPTH columns of A at a time: while one stage is multiplied,
// the next is in flight. There are WM · WN warps: each has H / WM rows and COLUMNS / WN columns.
template <class V, int H, int COLUMNS, int DEPTH> struct Stage {
    static constexpr int G = H / 8, BLOCKS = DEPTH / kBlock;
    static constexpr int ROW = COLUMNS * 8;
    // Offsets in the stage. Values begin at a multiple of 16 bytes of their array.
    static constexpr int VALUES = DEPTH * ROW;
    static constexpr int MASKS = VALUES + H * DEPTH * int(sizeof(V)) + 16;
    static constexpr int STARTS = MASKS + BLOCKS * G * 8;
    static constexpr int BYTES = (STARTS + BLOCKS * G * 4 + 127) / 128 * 128;
};

__device__ __forceinline__ double2 shared16(uint32_t from) {
    double2 v;
    asm volatile("ld.shared.v2.f64 {%0,%1}, [%2];" : "=d"(v.x), "=d"(v.y) : "r"(from) : "memory");
    return v;
}
__device__ __forceinline__ uint64_t shared_mask(uint32_t from) {
    uint64_t v;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(v) : "r"(from) : "memory");
    return v;
}
__device__ __forceinline__ uint32_t shared_start(uint32_t from) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
    return v;
}
template <class V> __device__ __forceinline__ V shared_value(uint32_t from) {
    if constexpr (sizeof(V) == 8) {
        double v;
        asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(from) : "memory");
        return v;
    } else {
        float v;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
        return v;
    }
}

template <class V, int H, int COLUMNS, int DEPTH, int WM, int WN>
__device__ __forceinline__ void multiply(const Matrix &m, const DenseF64 &d,
                                         const Scalar<double> &alpha_, const Scalar<double> &beta_,
                                         const Join &j, int32_t tiles) {
    using Own = Stage<V, H, COLUMNS, DEPTH>;
    constexpr int G = Own::G, BLOCKS = Own::BLOCKS, ROW = Own::ROW;
    constexpr bool NARROW = COLUMNS == 8;
    constexpr int OWN_G = G / WM, OWN = COLUMNS / WN, CH = NARROW ? 1 : OWN / 16;
    constexpr int N = NARROW ? OWN_G / 2 : OWN_G * CH;
    constexpr int THREADS = 32 * WM * WN;
    constexpr int CHUNKS = COLUMNS / 2;    // chunks of 16 bytes per row
    constexpr int STEP = THREADS / CHUNKS; // rows that all threads copy at one time
    constexpr int COPIES = DEPTH / STEP;
    static_assert((OWN % 16 == 0 || NARROW && WN == 1) && OWN_G * WM == G && G % 2 == 0);
    static_assert(OWN_G % 2 == 0 && DEPTH <= 32 && BLOCKS * G / 2 <= THREADS);
    static_assert(THREADS % CHUNKS == 0 && DEPTH % STEP == 0 && (STEP & (STEP - 1)) == 0);
    // If sums take half of the registers, there are none left for unrolling.
    constexpr int UNROLL = N * 4 >= 32 ? 1 : BLOCKS;
    // Number of values in 16 bytes.
    constexpr uint32_t PACK = 16 / sizeof(V);
    extern __shared__ __align__(128) char staging[];

    const uint32_t thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const uint32_t g = lane / 4, t = lane % 4, group = warp / WN * OWN_G, side = warp % WN;
    uint32_t first, end;
    int64_t left;
    {
        const Place place(tiles);
        left = d.n - place.tile * COLUMNS;
        if (left <= 0)
            return;
        const Item item = item_of(m, place.item);
        first = item.first;
        end = is_zero(alpha_.get()) ? first : item.end;
    }
    const uint32_t base = shared_address(staging);

    // For the next stage: the lane's column, the first value, and the end of the values.
    uint32_t column = kPadding, first_value = 0, end_value = 0;
    const auto fetch = [&](uint32_t block) {
        column = kPadding;
        first_value = end_value = 0;
        if (lane < DEPTH && block + lane / kBlock < end)
            column = __ldg(m.columns + int64_t(block) * kBlock + lane);
        if (block < end) {
            const uint32_t next = block + BLOCKS < end ? block + BLOCKS : end;
            first_value = __ldg(m.starts + int64_t(block) * G);
            end_value = __ldg(m.starts + int64_t(next) * G);
        }
    };
    const uint32_t chunk = thread % CHUNKS, row0 = thread / CHUNKS;
    const int32_t stride = int32_t(d.ldb * sizeof(double));
    const uint32_t chunk_bytes = left >= chunk * 2 + 2 ? 16 : left == chunk * 2 + 1 ? 8 : 0;
    const char *const from =
        reinterpret_cast<const char *>(d.b + (d.n - left) + (chunk_bytes > 0 ? chunk * 2 : 0));
    // Chunk c of row r is stored at c ^ 2 (r & 3), so that lanes (g, t) that load 16 bytes of rows
    // t have no bank conflicts; in rows of 64 bytes at c ^ (r & 2). STEP is a power of two and row0
    // < STEP, so that the position in a later row differs by an exclusive or with a constant.
    constexpr int SHIFT = NARROW ? 4 : 5;
    const uint32_t swizzled = chunk * 16 ^ (row0 & (NARROW ? 2 : 3)) << SHIFT;
    // Copies rows of B, by whole chunks if they are aligned.
    const auto copy_rows = [&](uint32_t to, auto aligned) {
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const uint32_t k = __shfl_sync(kWarp, column, row0 + i * STEP);
            const char *row = row_at(from, k & ~kPadding, stride);
            const uint32_t where =
                to + i * STEP * ROW + (swizzled ^ (i * STEP & (NARROW ? 2 : 3)) << SHIFT);
            const uint32_t bytes = k & kPadding ? 0 : chunk_bytes;
            if constexpr (decltype(aligned)::yes) {
                copy16(where, row, bytes);
            } else {
                copy_bytes<8>(where, row, bytes < 8 ? bytes : 8);
                copy_bytes<8>(where + 8, bytes > 8 ? row + 8 : row, bytes > 8 ? 8 : 0);
            }
        }
    };
    const auto copy = [&](uint32_t block, uint32_t to) {
        if (block < end) {
            if (d.flags & 1) {
                copy_rows(to + row0 * ROW, Flag<true>{});
            } else {
                copy_rows(to + row0 * ROW, Flag<false>{});
            }
            const V *const values = static_cast<const V *>(m.values) + (first_value & ~(PACK - 1));
            const uint32_t packs = (end_value - (first_value & ~(PACK - 1)) + PACK - 1) / PACK;
            for (uint32_t i = thread; i < packs; i += THREADS)
                copy16(to + Own::VALUES + i * 16, values + i * PACK);
            if (thread < BLOCKS * G / 2) {
                const int64_t tile = int64_t(block) * G + thread * 2;
                const bool exists = block + thread / (G / 2) < end;
                copy16(to + Own::MASKS + thread * 16, m.masks + (exists ? tile : 0),
                       exists ? 16 : 0);
                copy_bytes<8>(to + Own::STARTS + thread * 8, m.starts + (exists ? tile : 0),
                              exists ? 8 : 0);
            }
        }
        close_copies();
    };
    double sums[N][4];
#pragma unroll
    for (int i = 0; i < N; ++i)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;
    fetch(first);
    // Number of the first value that is copied for the next stage.
    uint32_t next_begin = first_value & ~(PACK - 1), stage = 0;
    copy(first, base);
    fetch(first + BLOCKS);
    const uint32_t own_rows = base + t * ROW +
                              (NARROW ? (g / 2 ^ t & 2) * 16 + g % 2 * 8 : (g ^ t << 1) * 16) +
                              side * (OWN * 8);
#pragma unroll 1
    for (uint32_t at = first; at < end; at += BLOCKS) {
        wait_copies<0>();
        __syncthreads();
        const uint32_t begin = next_begin;
        next_begin = first_value & ~(PACK - 1);
        copy(at + BLOCKS, base + Own::BYTES - stage);
        fetch(at + 2 * BLOCKS);
        const uint32_t values = base + stage + Own::VALUES;
        const uint32_t tiles_at = base + stage, rows = own_rows + stage;
        stage = Own::BYTES - stage;
        const auto load = [&](uint32_t number) {
            return shared_value<V>(values + number * uint32_t(sizeof(V)));
        };
#pragma unroll UNROLL
        for (int block = 0; block < BLOCKS; ++block) {
            double entries[OWN_G][2];
            bool live[OWN_G], any = false;
#pragma unroll
            for (int i = 0; i < OWN_G; ++i) {
                const uint32_t tile = block * G + group + i;
                const uint64_t mask = shared_mask(tiles_at + Own::MASKS + tile * 8);
                const uint32_t start = shared_start(tiles_at + Own::STARTS + tile * 4) - begin;
                tile_values(mask, start, lane, load, entries[i]);
                live[i] = mask != 0;
                any |= live[i];
            }
            if constexpr (NARROW) {
                if (any) {
                    const double low = shared_value<double>(rows + block * kBlock * ROW);
                    const double high = shared_value<double>(rows + (block * kBlock + 4) * ROW);
#pragma unroll
                    for (int i = 0; i < N; ++i)
                        mma8(sums[i],
                             {entries[2 * i][0], entries[2 * i + 1][0], entries[2 * i][1],
                              entries[2 * i + 1][1]},
                             low, high);
                }
            } else if (any) {
#pragma unroll
                for (int k = 0; k < CH; ++k) {
                    const double2 low = shared16(rows + block * kBlock * ROW + k * 128);
                    const double2 high = shared16(rows + (block * kBlock + 4) * ROW + k * 128);
#pragma unroll
                    for (int i = 0; i < OWN_G; ++i) {
                        if (live[i])
                            mma8(sums[i * CH + k], {low.x, low.y, high.x, high.y}, entries[i][0],
                                 entries[i][1]);
                    }
                }
            }
        }
    }
    const Place place(tiles);
    const Item item = item_of(m, place.item);
    if (item.part != kWhole) {
        const bool last = join(
            m, j, item.part, place.tile, sums, thread, THREADS, [] { __syncthreads(); },
            [](bool mine) { return __syncthreads_or(mine) != 0; });
        if (!last)
            return;
    }
    const double scale = d.flags & 4 ? 1.0 : alpha_.get();
    const double beta = d.flags & 4 ? 0.0 : beta_.get();
    const int64_t row = int64_t(item.window) * H + group * 8,
                  at = place.tile * COLUMNS + side * OWN;
    if (!all_finite<OWN_G, OWN>(d, sums, at)) {
        const Item whole = whole_of(m, item);
        exact<V>(m, d, whole.first, whole.end, row, H, group, OWN_G, at, OWN, scale, beta);
        return;
    }
    store_all<OWN_G, OWN>(m, d, sums, row, at, scale, beta);
}

} // namespace tarsia::masked
