// SpMM `window`: C = alpha · A · B + beta · C on the windows of src/format/window.rs, by tensor
// cores: fp16 or bf16 with fp32 sums.
//
// A window is H rows with the columns that any of them has, in blocks of 16 columns; values are
// stored as dense tiles of 16 × 16 (8 × 16 if H = 8), in the order in which an MMA takes them. So a
// row of B is read once per window, and not once per entry.
//
// The result is exact if B has Inf or NaN: a tile multiplies rows of B by zeros for rows of A that
// do not store that column; results that this makes wrong are not finite, and are computed again
// from the stored entries.
#pragma once

#include "common/copies.cuh"
#include "common/mma.cuh"
#include "spmm/windows.cuh"

namespace tarsia::window {

using namespace windows;

// Number of columns of a block.
constexpr int kBlock = 16;

struct Matrix {
    const Item *items;
    const Part *parts;
    // Columns of A, 16 per block.
    const uint32_t *columns;
    // For each block: first tile · 16 | mask of the groups of 16 rows that have a tile. H > 16
    // only.
    const uint32_t *tiles;
    const void *values;
    // One byte per lane and tile: mask of the lane's slots that are stored entries.
    const uint8_t *stored;
    int64_t item_count, rows;
    // Row of C that each row belongs to, or kHole; NULL if rows are in order.
    const uint32_t *order;
};

// Number of slots per lane of a tile of 16 rows, or of 8.
template <int H> constexpr int kSlots = H == 8 ? 4 : 8;

__device__ __forceinline__ uint32_t transpose(uint32_t v) {
    uint32_t out;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(v));
    return out;
}

// Load through L1, for data that this block or another one reads again.
__device__ __forceinline__ uint4 load16(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
__device__ __forceinline__ uint4 load16_once(const void *p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
__device__ __forceinline__ uint2 load8_once(const void *p) {
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(p));
    return v;
}

// Kernels load their item again at the end, since registers are short in their loops.
__device__ __forceinline__ Item load_item(const Matrix &m, int64_t number) {
    const uint4 v = load16(m.items + number);
    return {v.x, v.y, v.z, v.w};
}

// Loads `count` elements of B from any address, and fills up to 8 with zeros.
__device__ __forceinline__ uint4 gather8(const char *from, int count) {
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        if (i < count)
            words[i / 2] |= uint32_t(__ldg(reinterpret_cast<const uint16_t *>(from) + i))
                            << (i % 2 * 16);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <class Y> __device__ __forceinline__ uint32_t pack(float low, float high) {
    uint32_t out;
    if constexpr (same<Y, f16>) {
        const __half2 both = __floats2half2_rn(low, high);
        memcpy(&out, &both, 4);
    } else {
        const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        memcpy(&out, &both, 4);
    }
    return out;
}

// Stores 8 sums of neighbouring columns of a row of C, except those from column n on.
template <class T, class Y>
__device__ __forceinline__ void store8(const Dense<T, Y> &d, int64_t row, int64_t at,
                                       const float (&sums)[8], float alpha, float beta) {
    Y *to = d.c + row * d.ldc + at;
    if ((d.flags & 2) && at + 8 <= d.n) {
        float out[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            out[i] = alpha * sums[i];
        constexpr int WORDS = sizeof(Y) * 2;
        uint32_t words[WORDS];
        if (!is_zero(beta)) {
#pragma unroll
            for (int i = 0; i < WORDS; i += 4) {
                const uint4 v = *reinterpret_cast<const uint4 *>(to + i * 4 / sizeof(Y));
                words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
            }
            Y old[8];
            memcpy(old, words, sizeof old);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                out[i] = fma(beta, widen<float>(old[i]), out[i]);
        }
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
            if constexpr (sizeof(Y) == 4) {
                words[i] = __float_as_uint(out[i]);
            } else {
                words[i] = pack<Y>(out[2 * i], out[2 * i + 1]);
            }
        }
        // C is not read again, so it should not evict B from L2.
#pragma unroll
        for (int i = 0; i < WORDS; i += 4)
            __stcs(reinterpret_cast<uint4 *>(to + i * 4 / sizeof(Y)),
                   make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]));
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (at + i < d.n)
                store(to + i, alpha, sums[i], beta);
        }
    }
}

// Computes rows of C from stored entries alone, in columns [at, at + width): those of group `group`
// of a window with the blocks [first, end); `row` is the group's first row. Called by a warp.
template <class T, class Y, int H>
__device__ __forceinline__ void exact(const Matrix &m, const Dense<T, Y> &d, uint32_t first,
                                      uint32_t end, int64_t row, int group, int64_t at, int width,
                                      float alpha, float beta) {
    const int lane = threadIdx.x & 31;
    constexpr int ROWS = H == 8 ? 8 : 16;
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
        const int64_t own = row_of_c(m, row + r);
        if (own < 0)
            continue;
#pragma unroll 1
        for (int64_t j = at + lane; j < d.n && j < at + width; j += 32) {
            float sum = 0;
#pragma unroll 1
            for (uint32_t b = first; b < end; ++b) {
                int64_t tile = b;
                if constexpr (H > 16) {
                    const uint32_t word = m.tiles[b];
                    if ((word >> group & 1) == 0)
                        continue;
                    tile = (word >> 4) + __popc(word & ((1u << group) - 1));
                }
#pragma unroll 1
                for (int k = 0; k < kBlock; ++k) {
                    const int owner = r % 8 * 4 + k % 8 / 2;
                    const int slot = H == 8 ? k / 8 * 2 + k % 2 : k / 8 * 4 + r / 8 * 2 + k % 2;
                    if ((m.stored[tile * 32 + owner] >> slot & 1) == 0)
                        continue;
                    const T value =
                        static_cast<const T *>(m.values)[(tile * 32 + owner) * kSlots<H> + slot];
                    const int64_t column = m.columns[int64_t(b) * kBlock + k];
                    sum = fma(widen<float>(value), widen<float>(d.b[column * d.ldb + j]), sum);
                }
            }
            store(d.c + own * d.ldc + j, alpha, sum, beta);
        }
    }
}

// Returns whether all sums of the whole warp are finite; sum (i, j) is in column column(i, j).
// partial: columns from n on exist, and are left out.
template <int N, class Column>
__device__ __forceinline__ bool all_finite(const float (&sums)[N][4], bool partial, int64_t n,
                                           Column column) {
    float zeros = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (!partial || column(i, j) < n)
                zeros = fma(sums[i][j], 0.0f, zeros);
        }
    }
    return __all_sync(kWarp, zeros == 0.0f);
}

// Returns whether `columns` columns from n0 on can be read in packs of 8.
template <class T, class Y>
__device__ __forceinline__ bool reads_packs(const Dense<T, Y> &d, int64_t n0, int columns) {
    return (d.flags & 1) && (d.n % 8 == 0 || n0 + columns <= d.n || (d.flags & 8));
}

// Stores a part's sums. Returns true in the last part of a window to arrive, which then has the
// sums of all parts, added in the order of the parts. Called by all threads that have sums of the
// item: `threads` of them, this one with number `thread`. They synchronize by `wait`, and `share`
// broadcasts the result.
template <int N, class Wait, class Share>
__device__ __forceinline__ bool join(const Matrix &m, const Join &j, uint32_t part,
                                     int64_t column_tile, float (&sums)[N][4], int thread,
                                     int threads, Wait wait, Share share) {
    const Part own = m.parts[part];
    float *all = static_cast<float *>(j.sums) +
                 column_tile * j.part_count * (int64_t(N) * 4 * threads) + thread;
    const auto at = [&](uint32_t number) { return all + int64_t(number) * (N * 4) * threads; };
#pragma unroll
    for (int i = 0; i < N * 4; ++i)
        at(part)[int64_t(i) * threads] = sums[i / 4][i % 4];
    if (!is_last(j, own, column_tile, thread, wait, share))
        return false;
#pragma unroll
    for (int i = 0; i < N * 4; ++i)
        sums[i / 4][i % 4] = 0;
    for (uint32_t number = own.first; number < own.first + own.count; ++number) {
#pragma unroll
        for (int i = 0; i < N * 4; ++i)
            sums[i / 4][i % 4] += __ldcg(at(number) + int64_t(i) * threads);
    }
    return true;
}

// Direct form: a warp, or `sharing` warps, take an item and 32 · G columns, and load B directly
// into fragments: a quad of lanes loads 64 bytes of a row, which movmatrix transposes between
// lanes. U blocks are in flight at one time.
template <class T, class Y, int H, int G, int U>
__device__ __forceinline__ void direct_sums(const Matrix &m, const Dense<T, Y> &d, uint32_t first,
                                            uint32_t end, int64_t n0,
                                            float (&sums)[H == 8 ? 2 * G : 4 * G][4], bool fast_) {
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    const int32_t stride = int32_t(d.ldb * sizeof(T));
    // Lanes beyond the last column read column 0, and store nothing.
    const char *from[G];
    int count[G];
#pragma unroll
    for (int i = 0; i < G; ++i) {
        const int64_t left = d.n - (n0 + i * 32 + t * 8);
        count[i] = left < 8 ? int(left) : 8;
        from[i] = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
    }
    const auto run = [&](auto fast) {
        uint32_t columns[U][2];
        const auto fetch = [&](uint32_t b) {
#pragma unroll
            for (int u = 0; u < U; ++u) {
                columns[u][0] = columns[u][1] = 0;
                if (b + u < end) {
                    const uint32_t *from = m.columns + int64_t(b + u) * kBlock + g;
                    columns[u][0] = __ldg(from) & ~kPadding;
                    columns[u][1] = __ldg(from + 8) & ~kPadding;
                }
            }
        };
        fetch(first);
#pragma unroll 1
        for (uint32_t b = first; b < end; b += U) {
            uint4 rows[U][2][G];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u == 0 || b + u < end) {
#pragma unroll
                    for (int k = 0; k < 2; ++k) {
#pragma unroll
                        for (int i = 0; i < G; ++i) {
                            const char *row = row_at(from[i], columns[u][k], stride);
                            if constexpr (decltype(fast)::yes) {
                                rows[u][k][i] = load16(row);
                            } else {
                                rows[u][k][i] = gather8(row, count[i]);
                            }
                        }
                    }
                }
            }
            uint4 values[U];
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u == 0 || b + u < end) {
                    const int64_t at = int64_t(b + u) * 32 + lane;
                    if constexpr (H == 8) {
                        const uint2 v = load8_once(static_cast<const uint2 *>(m.values) + at);
                        values[u] = make_uint4(v.x, v.y, 0, 0);
                    } else {
                        values[u] = load16_once(static_cast<const uint4 *>(m.values) + at);
                    }
                }
            }
            fetch(b + U);
#pragma unroll
            for (int u = 0; u < U; ++u) {
                if (u == 0 || b + u < end) {
                    const uint4 a = values[u];
#pragma unroll
                    for (int i = 0; i < G; ++i) {
                        const uint4 low = rows[u][0][i], high = rows[u][1][i];
                        const uint32_t l0 = transpose(low.x), h0 = transpose(high.x);
                        const uint32_t l1 = transpose(low.y), h1 = transpose(high.y);
                        const uint32_t l2 = transpose(low.z), h2 = transpose(high.z);
                        const uint32_t l3 = transpose(low.w), h3 = transpose(high.w);
                        if constexpr (H == 8) {
                            mma16<T>(sums[2 * i], l0, l1, h0, h1, a.x, a.y);
                            mma16<T>(sums[2 * i + 1], l2, l3, h2, h3, a.x, a.y);
                        } else {
                            mma16<T>(sums[4 * i], a.x, a.y, a.z, a.w, l0, h0);
                            mma16<T>(sums[4 * i + 1], a.x, a.y, a.z, a.w, l1, h1);
                            mma16<T>(sums[4 * i + 2], a.x, a.y, a.z, a.w, l2, h2);
                            mma16<T>(sums[4 * i + 3], a.x, a.y, a.z, a.w, l3, h3);
                        }
                    }
                }
            }
        }
    };
    if (fast_) {
        run(Flag<true>{});
    } else {
        run(Flag<false>{});
    }
}

template <class T, class Y, int H, int G, int U>
__device__ __forceinline__ void direct(const Matrix &m, const Dense<T, Y> &d,
                                       const Scalar<float> &alpha_, const Scalar<float> &beta_,
                                       const Join &j, int sharing) {
    constexpr int N = H == 8 ? 2 * G : 4 * G;
    extern __shared__ float shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int share = warp % sharing;
    const int64_t number = int64_t(blockIdx.x) * (blockDim.x / 32 / sharing) + warp / sharing;
    const int64_t n0 = int64_t(blockIdx.y) * (32 * G);
    const bool exists = number < m.item_count;
    uint32_t first = 0, end = 0;
    if (exists) {
        const Item item = load_item(m, number);
        first = item.first, end = is_zero(alpha_.get()) ? item.first : item.end;
    }
    if (sharing > 1) {
        const uint64_t count = end - first;
        end = first + uint32_t(count * (share + 1) / sharing);
        first += uint32_t(count * share / sharing);
    }
    float sums[N][4];
#pragma unroll
    for (int i = 0; i < N; ++i)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;
    direct_sums<T, Y, H, G, U>(m, d, first, end, n0, sums, reads_packs(d, n0, 32 * G));
    if (sharing > 1) {
        const auto at = [&](int w, int i) { return (int64_t(w) * (N * 4) + i) * 32 + lane; };
        if (share > 0) {
#pragma unroll
            for (int i = 0; i < N * 4; ++i)
                shared[at(warp, i)] = sums[i / 4][i % 4];
        }
        __syncthreads();
        if (share > 0)
            return;
        for (int other = 1; other < sharing; ++other) {
#pragma unroll
            for (int i = 0; i < N * 4; ++i)
                sums[i / 4][i % 4] += shared[at(warp + other, i)];
        }
    }
    if (!exists)
        return;
    const Item item = load_item(m, number);
    if (item.part != kWhole) {
        const bool last = join(
            m, j, item.part, blockIdx.y, sums, lane, 32, [] { __syncwarp(); },
            [](bool mine) { return __shfl_sync(kWarp, int(mine), 0) != 0; });
        if (!last)
            return;
    }
    const float scale = d.flags & 4 ? 1.0f : alpha_.get();
    const float beta = d.flags & 4 ? 0.0f : beta_.get();
    const int64_t row0 = int64_t(item.window) * H;
    const auto column = [&](int i, int k) {
        if constexpr (H == 8)
            return n0 + i / 2 * 32 + g / 2 * 8 + i % 2 * 4 + k / 2 * 2 + g % 2;
        return n0 + i / 4 * 32 + t * 8 + i % 4 * 2 + k % 2;
    };
    if (!all_finite(sums, n0 + 32 * G > d.n, d.n, column)) {
        uint32_t from = item.first, upto = item.end;
        if (item.part != kWhole) {
            const Part own = m.parts[item.part];
            from = m.items[own.first].first, upto = m.items[own.first + own.count - 1].end;
        }
        exact<T, Y, H>(m, d, from, upto, row0, 0, n0, 32 * G, scale, beta);
        return;
    }
#pragma unroll
    for (int i = 0; i < G; ++i) {
        float out[8];
        if constexpr (H == 8) {
            // Lanes g and g ^ 1 have alternate columns of 8 in two rows, and exchange them.
            const int odd = g & 1;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const float *pair = &sums[2 * i + k / 2][k % 2 * 2];
                const float other = __shfl_xor_sync(kWarp, odd ? pair[0] : pair[1], 4);
                out[2 * k] = odd ? other : pair[0];
                out[2 * k + 1] = odd ? pair[1] : other;
            }
            const int64_t row = row_of_c(m, row0 + 2 * t + odd), at = n0 + i * 32 + g / 2 * 8;
            if (row >= 0)
                store8(d, row, at, out, scale, beta);
        } else {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    out[2 * k] = sums[4 * i + k][2 * half];
                    out[2 * k + 1] = sums[4 * i + k][2 * half + 1];
                }
                const int64_t row = row_of_c(m, row0 + g + 8 * half), at = n0 + i * 32 + t * 8;
                if (row >= 0)
                    store8(d, row, at, out, scale, beta);
            }
        }
    }
}

// Staged form: a block takes an item and COLUMNS columns of C, and copies rows of B to shared
// memory, 32 at a time, STAGES - 1 stages ahead. There are H / 16 / R times WN warps: each has R
// groups of 16 rows and COLUMNS / WN columns.
constexpr int kDepth = 32;

template <int H, int COLUMNS, int STAGES>
constexpr int kSharedBytes = STAGES *(kDepth *COLUMNS * 2 + H * kDepth * 2);

template <class T, class Y, int H, int COLUMNS, int STAGES, int WN, int R>
__device__ __forceinline__ void staged(const Matrix &m, const Dense<T, Y> &d,
                                       const Scalar<float> &alpha_, const Scalar<float> &beta_,
                                       const Join &j) {
    static_assert(H >= 16 && H % (16 * R) == 0 && COLUMNS % (32 * WN) == 0);
    constexpr int GROUPS = H / 16, THREADS = 32 * GROUPS / R * WN;
    constexpr int CHUNKS = COLUMNS / 8;    // chunks of 16 bytes per row
    constexpr int STEP = THREADS / CHUNKS; // rows that all threads copy at one time
    constexpr int COPIES = kDepth / STEP;
    static_assert(THREADS % CHUNKS == 0 && STEP <= kDepth && CHUNKS >= 8);
    constexpr int ROW = COLUMNS * 2, B_BYTES = kDepth * ROW, A_BYTES = H * kDepth * 2;
    constexpr int OWN = COLUMNS / WN; // columns of a warp
    constexpr int N = OWN / 8;
    extern __shared__ __align__(1024) char staging[];

    const int thread = threadIdx.x, lane = thread & 31, warp = thread / 32;
    const int g = lane / 4, t = lane % 4, group0 = warp / WN * R, side = warp % WN;
    const int64_t n0 = int64_t(blockIdx.y) * COLUMNS;
    uint32_t first, end;
    {
        const Item item = load_item(m, blockIdx.x);
        first = item.first, end = is_zero(alpha_.get()) ? item.first : item.end;
    }
    const int stages = int((end - first + 1) / 2);
    const bool fast = reads_packs(d, n0, COLUMNS);
    const uint32_t b_at = shared_address(staging);
    const uint32_t a_at = b_at + STAGES * B_BYTES;

    float sums[R * N][4];
#pragma unroll
    for (int i = 0; i < R * N; ++i)
        sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0;

    // For the next stage: the lane's column, and the tile words of its two blocks.
    uint32_t column = kPadding, words[2] = {0, 0};
    const auto fetch = [&](int stage) {
        const uint32_t block = first + 2 * stage;
        if (block + lane / 16 < end) {
            column = __ldg(m.columns + int64_t(block) * kBlock + lane);
        } else {
            column = kPadding;
        }
        if constexpr (H > 16) {
            words[0] = block < end ? __ldg(m.tiles + block) : 0;
            words[1] = block + 1 < end ? __ldg(m.tiles + block + 1) : 0;
        }
    };
    const int chunk = thread % CHUNKS, row0 = thread / CHUNKS;
    const int32_t stride = int32_t(d.ldb * sizeof(T));
    // Chunks beyond the last column are copies of the first one, which are not used.
    const int64_t left = d.n - (n0 + chunk * 8);
    const char *const from = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
    // Chunk c of row r is stored at c ^ (r & 7), so that neither copies nor ldmatrix have bank
    // conflicts. STEP is a power of two and row0 < STEP, so that the position in a later row
    // differs by an exclusive or with a constant.
    const uint32_t swizzled = (chunk ^ (row0 & 7)) * 16;
    const uint32_t own_b = b_at + row0 * ROW;
    const auto copy = [&](int place, auto checked) {
        const uint32_t to = own_b + place * B_BYTES;
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const uint32_t k = __shfl_sync(kWarp, column, row0 + i * STEP);
            const uint32_t where = to + i * STEP * ROW + (swizzled ^ (i * STEP & 7) * 16);
            if constexpr (decltype(checked)::yes) {
                const char *row = row_at(from, k & ~kPadding, stride);
                if (fast) {
                    copy16(where, row, k & kPadding ? 0 : 16);
                } else {
                    const int count = k & kPadding ? 0 : left < 8 ? int(left) : 8;
                    const uint4 v = gather8(row, count);
                    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(where), "r"(v.x),
                                 "r"(v.y), "r"(v.z), "r"(v.w)
                                 : "memory");
                }
            } else {
                copy16(where, row_at(from, k, stride));
            }
        }
    };
    const auto issue = [&](int stage, int place) {
        if (stage < stages) {
            // Only a window's last block can be padded.
            if (fast && stage + 1 < stages) {
                copy(place, Flag<false>{});
            } else {
                copy(place, Flag<true>{});
            }
            const uint32_t block = first + 2 * stage;
            int64_t tile = block;
            int tiles = block + 1 < end ? 2 : 1;
            if constexpr (H > 16) {
                tile = words[0] >> 4;
                tiles = __popc(words[0] & 15) + __popc(words[1] & 15);
            }
            const char *values = static_cast<const char *>(m.values) + tile * 512;
#pragma unroll
            for (int i = 0; i < A_BYTES; i += THREADS * 16) {
                if (i + thread * 16 < tiles * 512)
                    copy16(a_at + place * A_BYTES + i + thread * 16, values + i + thread * 16);
            }
        }
        close_copies();
    };
    // Masks of the tiles that exist in each stage in flight: bits of the first block's groups, then
    // of the second one's.
    uint32_t masks[STAGES];
    const auto mask_of = [&](int stage) -> uint32_t {
        if constexpr (H == 16)
            return first + 2 * stage + 1 < end ? 3 : 1;
        return (words[0] & 15) | (words[1] & 15) << GROUPS;
    };
    fetch(0);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        masks[s] = mask_of(s);
        issue(s, s);
        fetch(s + 1);
    }
    const int k_row = lane % 16, k_side = lane / 16;
    const uint32_t own_rows = b_at + k_row * ROW + side * (OWN * 2) + (k_side ^ (k_row & 7)) * 16;
    static_assert(OWN % 64 == 0, "chunks of a warp differ in the bits of an exclusive or");
    int place = 0, free_place = STAGES - 1;
    for (int s = 0; s < stages; ++s) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        uint32_t mask;
        if constexpr (H == 16) {
            mask = mask_of(s);
        } else {
            mask = masks[0];
#pragma unroll
            for (int i = 0; i + 2 < STAGES; ++i)
                masks[i] = masks[i + 1];
            masks[STAGES - 2] = mask_of(s + STAGES - 1);
        }
        issue(s + STAGES - 1, STAGES == 2 ? place ^ 1 : free_place);
        fetch(s + STAGES);
        const uint32_t b = own_rows + place * B_BYTES;
        const uint32_t own_a = a_at + place * A_BYTES + lane * 16;
        if constexpr (STAGES == 2) {
            place ^= 1;
        } else {
            free_place = place;
            place = place + 1 == STAGES ? 0 : place + 1;
        }
#pragma unroll
        for (int half = 0; half < kDepth / kBlock; ++half) {
            // Tiles of the warp's groups; existing tiles are stored in the order of their bits.
            uint32_t a[R][4];
            bool has[R], any = false;
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int bit = half * GROUPS + group0 + r;
                has[r] = mask >> bit & 1;
                any |= has[r];
                if (has[r]) {
                    const int tile = __popc(mask & ((1u << bit) - 1));
                    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(a[r][0]), "=r"(a[r][1]), "=r"(a[r][2]), "=r"(a[r][3])
                                 : "r"(own_a + tile * 512)
                                 : "memory");
                }
            }
            if (!any)
                continue;
#pragma unroll
            for (int i = 0; i < N / 2; ++i) {
                uint32_t x0, x1, x2, x3;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3)
                             : "r"((b ^ (i * 32)) + half * kBlock * ROW)
                             : "memory");
#pragma unroll
                for (int r = 0; r < R; ++r) {
                    if (R > 1 && !has[r])
                        continue;
                    float(*const own)[4] = sums + r * N + 2 * i;
                    mma16<T>(own[0], a[r][0], a[r][1], a[r][2], a[r][3], x0, x1);
                    mma16<T>(own[1], a[r][0], a[r][1], a[r][2], a[r][3], x2, x3);
                }
            }
        }
    }
    const Item item = load_item(m, blockIdx.x);
    if (item.part != kWhole) {
        const bool last = join(
            m, j, item.part, blockIdx.y, sums, thread, THREADS, [] { __syncthreads(); },
            [](bool mine) { return __syncthreads_or(mine) != 0; });
        if (!last)
            return;
    }
    const float scale = d.flags & 4 ? 1.0f : alpha_.get();
    const float beta = d.flags & 4 ? 0.0f : beta_.get();
    const auto own_column = [&](int i, int k) { return n0 + side * OWN + i * 8 + 2 * t + k % 2; };
    const bool partial = n0 + COLUMNS > d.n;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int group = group0 + r;
        const int64_t row = int64_t(item.window) * H + group * 16;
        if (row >= m.rows)
            return;
        float(&own)[N][4] = *reinterpret_cast<float(*)[N][4]>(sums + r * N);
        if (!all_finite(own, partial, d.n, own_column)) {
            uint32_t start = item.first, stop = item.end;
            if (item.part != kWhole) {
                const Part part = m.parts[item.part];
                start = m.items[part.first].first, stop = m.items[part.first + part.count - 1].end;
            }
            exact<T, Y, H>(m, d, start, stop, row, group, n0 + side * OWN, OWN, scale, beta);
            continue;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int64_t mine = row_of_c(m, row + g + 8 * half);
#pragma unroll
            for (int i = 0; i < N / 4; ++i) {
                // Lane t of a quad has 2 columns of each of 4 chunks, and gets chunk t in exchange.
                const int64_t to = n0 + side * OWN + (i * 4 + t) * 8;
                const auto exchange = [&](auto(&v)[4]) {
#pragma unroll
                    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
                        for (int k = 0; k < 4; ++k) {
                            if (k & step)
                                continue;
                            const bool upper = t & step;
                            const auto theirs =
                                __shfl_xor_sync(kWarp, upper ? v[k] : v[k | step], step);
                            if (upper) {
                                v[k] = theirs;
                            } else {
                                v[k | step] = theirs;
                            }
                        }
                    }
                };
                bool stored = false;
                if constexpr (sizeof(Y) == 2) {
                    if (is_zero(beta) && (d.flags & 2)) {
                        uint32_t words[4];
#pragma unroll
                        for (int k = 0; k < 4; ++k)
                            words[k] = pack<Y>(scale * own[i * 4 + k][2 * half],
                                               scale * own[i * 4 + k][2 * half + 1]);
                        exchange(words);
                        if (to + 8 <= d.n) {
                            if (mine >= 0)
                                __stcs(reinterpret_cast<uint4 *>(d.c + mine * d.ldc + to),
                                       make_uint4(words[0], words[1], words[2], words[3]));
                        } else if (mine >= 0) {
                            Y out[8];
                            memcpy(out, words, sizeof out);
#pragma unroll
                            for (int k = 0; k < 8; ++k) {
                                if (to + k < d.n)
                                    d.c[mine * d.ldc + to + k] = out[k];
                            }
                        }
                        stored = true;
                    }
                }
                if (!stored) {
                    float low[4], high[4];
#pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        low[k] = own[i * 4 + k][2 * half];
                        high[k] = own[i * 4 + k][2 * half + 1];
                    }
                    exchange(low);
                    exchange(high);
                    const float out[8] = {low[0], high[0], low[1], high[1],
                                          low[2], high[2], low[3], high[3]};
                    if (mine >= 0)
                        store8(d, mine, to, out, scale, beta);
                }
            }
        }
    }
}

} // namespace tarsia::window
