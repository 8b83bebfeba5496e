// SpMM `window`: C = alpha · A · B + beta · C on the windows of src/format/window.rs, by tensor
// cores: fp16 or bf16 with fp32 sums.
//
// A window is HEIGHT rows with the columns that any of them has, in blocks of 16 columns; values
// are stored as dense tiles of 16 × 16 (8 × 16 if HEIGHT = 8), in the order in which an MMA takes
// them. So a row of B is read once per window, and not once per entry.
//
// The result is exact if B has Inf or NaN: a tile multiplies rows of B by zeros for rows of A that
// do not store that column; results that this makes wrong are not finite, and are computed again
// from the stored entries.
#pragma once

#include "ptx/copies.cuh"
#include "ptx/mma.cuh"
#include "ptx/prefetch.cuh"
#include "ptx/shared.cuh"
#include "spmm/windows.cuh"

namespace tarsia::window {

using namespace windows;

// Number of columns of a block.
constexpr int BLOCK = 16;

struct Matrix {
    const WorkItem *items;
    const Part *parts;
    // Columns of A, 16 per block.
    const uint32_t *columns;
    // For each block: first tile · 16 | mask of the groups of 16 rows that have a tile. HEIGHT > 16
    // only.
    const uint32_t *tiles;
    const void *values;
    // One byte per lane and tile: mask of the lane's slots that are stored entries.
    const uint8_t *stored;
    int64_t item_count, rows;
    // Row of C that each row belongs to, or HOLE; NULL if rows are in order.
    const uint32_t *order;
    // Lines of B, `values` and `columns`.
    Prefetch prefetched;
};

// First statement of a kernel: waits for the previous one, with the operands on their way to L2.
template <class Dense> __device__ __forceinline__ void begin(const Matrix &m, const Dense &d) {
    begin_product(m.prefetched, d.b, m.values, m.columns);
}

// Number of slots per lane of a tile of 16 rows, or of 8.
template <int HEIGHT> constexpr int SLOTS = HEIGHT == 8 ? 4 : 8;

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
                                       const float (&sums)[8], const Scaling<float> &scaling) {
    Y *to = d.c + row * d.ldc + at;
    if ((d.flags & C_ALIGNED) && at + 8 <= d.n) {
        float out[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            out[i] = scaling.alpha * sums[i];
        constexpr int WORDS = sizeof(Y) * 2;
        uint32_t words[WORDS];
        if (!is_zero(scaling.beta)) {
#pragma unroll
            for (int i = 0; i < WORDS; i += 4) {
                const uint4 v = *reinterpret_cast<const uint4 *>(to + i * 4 / sizeof(Y));
                words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
            }
            Y old[8];
            memcpy(old, words, sizeof old);
#pragma unroll
            for (int i = 0; i < 8; ++i)
                out[i] = fma(scaling.beta, widen<float>(old[i]), out[i]);
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
                store(to + i, scaling.alpha, sums[i], scaling.beta);
        }
    }
}

// Computes rows of C from stored entries alone, in columns [at, at + width): those of group `group`
// of a window with the blocks of `whole`; `row` is the group's first row. Called by a warp.
template <int HEIGHT, class T, class Y>
__device__ __forceinline__ void exact(const Matrix &m, const Dense<T, Y> &d, const WorkItem &whole,
                                      int64_t row, int group, int64_t at, int width,
                                      const Scaling<float> &scaling) {
    const auto each_entry = [&](uint32_t b, int r, auto add) {
        int64_t tile = b;
        if constexpr (HEIGHT > 16) {
            const uint32_t word = m.tiles[b];
            if ((word >> group & 1) == 0)
                return;
            tile = (word >> 4) + __popc(word & ((1u << group) - 1));
        }
#pragma unroll 1
        for (int k = 0; k < BLOCK; ++k) {
            const int owner = r % 8 * 4 + k % 8 / 2;
            const int slot = HEIGHT == 8 ? k / 8 * 2 + k % 2 : k / 8 * 4 + r / 8 * 2 + k % 2;
            if ((m.stored[tile * 32 + owner] >> slot & 1) == 0)
                continue;
            const int64_t place = (tile * 32 + owner) * SLOTS<HEIGHT> + slot;
            add(static_cast<const T *>(m.values)[place], m.columns[int64_t(b) * BLOCK + k]);
        }
    };
    exact_rows(m, d, whole, row, HEIGHT == 8 ? 8 : 16, at, width, scaling, each_entry);
}

// Returns whether all sums of the whole warp are finite; sum (i, j) is in column column(i, j).
// partial: columns from n on exist, and are left out.
template <int COUNT, class Column>
__device__ __forceinline__ bool all_finite(const float (&sums)[COUNT][4], bool partial, int64_t n,
                                           Column column) {
    float zeros = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (!partial || column(i, j) < n)
                zeros = fma(sums[i][j], 0.0f, zeros);
        }
    }
    return __all_sync(ALL_LANES, zeros == 0.0f);
}

// Returns whether `columns` columns from n0 on can be read in packs of 8.
template <class T, class Y>
__device__ __forceinline__ bool reads_packs(const Dense<T, Y> &d, int64_t n0, int columns) {
    return (d.flags & B_ALIGNED) && (d.n % 8 == 0 || n0 + columns <= d.n || (d.flags & B_PADDED));
}

// Direct form: a warp, or `sharing` warps, take an item and 32 · QUADS columns, and load B directly
// into fragments: a quad of lanes loads 64 bytes of a row, which movmatrix transposes between
// lanes. FLIGHT blocks are in flight at one time.

// A lane's addresses in row 0 of B, one in each group of 32 columns, and the number of its columns
// that exist from there on.
template <int QUADS> struct DirectColumns {
    const char *from[QUADS];
    int count[QUADS];
    int32_t stride;

    // Lanes beyond the last column read column 0, and store nothing.
    template <class T, class Y>
    __device__ __forceinline__ DirectColumns(const Dense<T, Y> &d, int64_t n0)
        : stride(int32_t(d.ldb * sizeof(T))) {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const int64_t left = d.n - (n0 + i * 32 + t * 8);
            count[i] = left < 8 ? int(left) : 8;
            from[i] = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
        }
    }
};

// Adds the products of one block: `a` are a lane's values, `rows` its parts of two rows of B.
template <class T, int HEIGHT, int QUADS>
__device__ __forceinline__ void add_block(float (*sums)[4], const uint4 &a,
                                          const uint4 (&rows)[2][QUADS]) {
#pragma unroll
    for (int i = 0; i < QUADS; ++i) {
        const uint4 low = rows[0][i], high = rows[1][i];
        const uint32_t l0 = transpose(low.x), h0 = transpose(high.x);
        const uint32_t l1 = transpose(low.y), h1 = transpose(high.y);
        const uint32_t l2 = transpose(low.z), h2 = transpose(high.z);
        const uint32_t l3 = transpose(low.w), h3 = transpose(high.w);
        if constexpr (HEIGHT == 8) {
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

// Adds the products of the blocks [first, end). whole: packs of 16 bytes of B can be read.
template <bool whole, class T, int HEIGHT, int QUADS, int FLIGHT, int COUNT>
__device__ __forceinline__ void direct_sums(const Matrix &m, const DirectColumns<QUADS> &own,
                                            uint32_t first, uint32_t end, float (&sums)[COUNT][4]) {
    const int lane = threadIdx.x % WARP, g = lane / 4;
    uint32_t columns[FLIGHT][2];
    const auto fetch = [&](uint32_t b) {
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            columns[u][0] = columns[u][1] = 0;
            if (b + u < end) {
                const uint32_t *from = m.columns + int64_t(b + u) * BLOCK + g;
                columns[u][0] = __ldg(from) & ~PADDING;
                columns[u][1] = __ldg(from + 8) & ~PADDING;
            }
        }
    };
    fetch(first);
#pragma unroll 1
    for (uint32_t b = first; b < end; b += FLIGHT) {
        uint4 rows[FLIGHT][2][QUADS];
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            if (u == 0 || b + u < end) {
#pragma unroll
                for (int k = 0; k < 2; ++k) {
#pragma unroll
                    for (int i = 0; i < QUADS; ++i) {
                        const char *row = row_at(own.from[i], columns[u][k], own.stride);
                        rows[u][k][i] = whole ? load16(row) : gather8(row, own.count[i]);
                    }
                }
            }
        }
        uint4 values[FLIGHT];
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            if (u == 0 || b + u < end) {
                const int64_t at = int64_t(b + u) * 32 + lane;
                if constexpr (HEIGHT == 8) {
                    const uint2 v = load8_once(static_cast<const uint2 *>(m.values) + at);
                    values[u] = make_uint4(v.x, v.y, 0, 0);
                } else {
                    values[u] = load16_once(static_cast<const uint4 *>(m.values) + at);
                }
            }
        }
        fetch(b + FLIGHT);
#pragma unroll
        for (int u = 0; u < FLIGHT; ++u) {
            if (u == 0 || b + u < end)
                add_block<T, HEIGHT>(sums, values[u], rows[u]);
        }
    }
}

// Adds the sums of the warps that share an item, through shared memory. Returns whether this warp
// has the result.
template <int COUNT>
__device__ __forceinline__ bool add_shares(float (&sums)[COUNT][4], int share, int sharing) {
    extern __shared__ float shared[];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const auto at = [&](int w, int i) { return (int64_t(w) * (COUNT * 4) + i) * 32 + lane; };
    if (share > 0) {
#pragma unroll
        for (int i = 0; i < COUNT * 4; ++i)
            shared[at(warp, i)] = sums[i / 4][i % 4];
    }
    __syncthreads();
    if (share > 0)
        return false;
    for (int other = 1; other < sharing; ++other) {
#pragma unroll
        for (int i = 0; i < COUNT * 4; ++i)
            sums[i / 4][i % 4] += shared[at(warp + other, i)];
    }
    return true;
}

// Stores a warp's sums of the window that begins at row `row0`.
template <int HEIGHT, int QUADS, class T, class Y, int COUNT>
__device__ __forceinline__ void store_direct(const Matrix &m, const Dense<T, Y> &d, int64_t row0,
                                             int64_t n0, const float (&sums)[COUNT][4],
                                             const Scaling<float> &scaling) {
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < QUADS; ++i) {
        float out[8];
        if constexpr (HEIGHT == 8) {
            // Lanes g and g ^ 1 have alternate columns of 8 in two rows, and exchange them.
            const int odd = g & 1;
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const float *pair = &sums[2 * i + k / 2][k % 2 * 2];
                const float other = __shfl_xor_sync(ALL_LANES, odd ? pair[0] : pair[1], 4);
                out[2 * k] = odd ? other : pair[0];
                out[2 * k + 1] = odd ? pair[1] : other;
            }
            const int64_t row = row_of_c(m, row0 + 2 * t + odd), at = n0 + i * 32 + g / 2 * 8;
            if (row >= 0)
                store8(d, row, at, out, scaling);
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
                    store8(d, row, at, out, scaling);
            }
        }
    }
}

template <class T, class Y, int HEIGHT, int QUADS, int FLIGHT>
__device__ __forceinline__ void direct(const Matrix &m, const Dense<T, Y> &d,
                                       const Scalar<float> &alpha, const Scalar<float> &beta,
                                       const Join &j, int sharing) {
    constexpr int MMAS = HEIGHT == 8 ? 2 * QUADS : 4 * QUADS, WIDTH = 32 * QUADS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int share = warp % sharing;
    const int64_t number = int64_t(blockIdx.x) * (blockDim.x / 32 / sharing) + warp / sharing;
    const int64_t n0 = int64_t(blockIdx.y) * WIDTH;
    const bool exists = number < m.item_count;
    uint32_t first = 0, end = 0;
    if (exists) {
        const WorkItem item = item_of(m, number);
        first = item.first, end = is_zero(alpha.get()) ? item.first : item.end;
    }
    if (sharing > 1) {
        const uint64_t count = end - first;
        end = first + uint32_t(count * (share + 1) / sharing);
        first += uint32_t(count * share / sharing);
    }
    float sums[MMAS][4];
    set_zero(sums);
    const DirectColumns<QUADS> own(d, n0);
    if (reads_packs(d, n0, WIDTH)) {
        direct_sums<true, T, HEIGHT, QUADS, FLIGHT>(m, own, first, end, sums);
    } else {
        direct_sums<false, T, HEIGHT, QUADS, FLIGHT>(m, own, first, end, sums);
    }
    if (sharing > 1 && !add_shares(sums, share, sharing))
        return;
    if (!exists)
        return;
    const WorkItem item = item_of(m, number);
    if (!has_whole_sums<WARP, PARTS_AT_ONCE<MMAS>>(m, j, item, blockIdx.y, sums, lane))
        return;
    const Scaling<float> scaling(d, alpha, beta);
    const int64_t row0 = int64_t(item.window) * HEIGHT;
    const auto column = [&](int i, int k) {
        if constexpr (HEIGHT == 8)
            return n0 + i / 2 * 32 + g / 2 * 8 + i % 2 * 4 + k / 2 * 2 + g % 2;
        return n0 + i / 4 * 32 + t * 8 + i % 4 * 2 + k % 2;
    };
    if (all_finite(sums, n0 + WIDTH > d.n, d.n, column)) {
        store_direct<HEIGHT, QUADS>(m, d, row0, n0, sums, scaling);
    } else {
        exact<HEIGHT>(m, d, whole_of(m, item), row0, 0, n0, WIDTH, scaling);
    }
}

// Staged form: a block takes an item and COLUMNS columns of C, and copies rows of B to shared
// memory, DEPTH at a time, STAGES - 1 stages ahead. There are HEIGHT / 16 / OF_WARP times ACROSS
// warps: each has OF_WARP groups of 16 rows and COLUMNS / ACROSS columns.
constexpr int DEPTH = 32;

template <int HEIGHT, int COLUMNS, int STAGES, int ACROSS, int OF_WARP> struct Form {
    static_assert(HEIGHT >= 16 && HEIGHT % (16 * OF_WARP) == 0 && COLUMNS % (32 * ACROSS) == 0);
    static constexpr int GROUPS = HEIGHT / 16, THREADS = 32 * GROUPS / OF_WARP * ACROSS;
    // Chunks of 16 bytes in a row, rows that all threads copy at one time, and times.
    static constexpr int CHUNKS = COLUMNS / 8, STEP = THREADS / CHUNKS, COPIES = DEPTH / STEP;
    static_assert(THREADS % CHUNKS == 0 && STEP <= DEPTH && CHUNKS >= 8);
    static constexpr int ROW = COLUMNS * 2;
    static constexpr int B_BYTES = DEPTH * ROW, A_BYTES = HEIGHT * DEPTH * 2;
    // Columns of a warp, and of them the MMAs of a group of rows.
    static constexpr int OWN = COLUMNS / ACROSS, MMAS = OWN / 8;
    static_assert(OWN % 64 == 0, "chunks of a warp differ in the bits of an exclusive or");
};

template <int HEIGHT, int COLUMNS, int STAGES>
constexpr int SHARED_BYTES = STAGES *(DEPTH *COLUMNS * 2 + HEIGHT * DEPTH * 2);

// Copies of a thread to the stages in shared memory.
template <class T, class Y, int HEIGHT, int COLUMNS, int STAGES, int ACROSS, int OF_WARP>
struct Stages {
    using Sizes = Form<HEIGHT, COLUMNS, STAGES, ACROSS, OF_WARP>;

    const Matrix &m;
    const Dense<T, Y> &d;
    uint32_t first, end; // blocks of the item
    int count;           // stages of the item
    bool fast;           // packs of 16 bytes of B can be read
    uint32_t b_at, a_at; // rows of B and tiles of A in shared memory
    uint32_t own_b;      // this thread's first row of B there
    // For the next stage: the lane's column, and the tile words of its two blocks.
    uint32_t column = PADDING, words[2] = {0, 0};
    int row0;
    int32_t stride;
    int64_t left; // columns from this thread's chunk on
    const char *from;
    uint32_t swizzled;

    __device__ __forceinline__ Stages(const Matrix &matrix, const Dense<T, Y> &dense,
                                      const WorkItem &item, uint32_t upto, int64_t n0,
                                      const char *staging)
        : m(matrix), d(dense), first(item.first), end(upto), count(int((end - first + 1) / 2)),
          fast(reads_packs(d, n0, COLUMNS)), b_at(shared_address(staging)),
          a_at(b_at + STAGES * Sizes::B_BYTES) {
        const int thread = threadIdx.x, chunk = thread % Sizes::CHUNKS;
        row0 = thread / Sizes::CHUNKS;
        own_b = b_at + row0 * Sizes::ROW;
        stride = int32_t(d.ldb * sizeof(T));
        // Chunks beyond the last column are copies of the first one, which are not used.
        left = d.n - (n0 + chunk * 8);
        from = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
        // Chunk c of row r is stored at c ^ (r & 7), so that neither copies nor ldmatrix have bank
        // conflicts. STEP is a power of two and row0 < STEP, so that the position in a later row
        // differs by an exclusive or with a constant.
        swizzled = (chunk ^ (row0 & 7)) * 16;
    }

    // Loads what the copies of a stage need to know.
    __device__ __forceinline__ void fetch(int stage) {
        const int lane = threadIdx.x & 31;
        const uint32_t block = first + 2 * stage;
        if (block + lane / 16 < end) {
            column = __ldg(m.columns + int64_t(block) * BLOCK + lane);
        } else {
            column = PADDING;
        }
        if constexpr (HEIGHT > 16) {
            words[0] = block < end ? __ldg(m.tiles + block) : 0;
            words[1] = block + 1 < end ? __ldg(m.tiles + block + 1) : 0;
        }
    }
    // Mask of the tiles that exist in the stage that was fetched: bits of the first block's groups,
    // then of the second one's.
    __device__ __forceinline__ uint32_t mask(int stage) const {
        if constexpr (HEIGHT == 16)
            return first + 2 * stage + 1 < end ? 3 : 1;
        return (words[0] & 15) | (words[1] & 15) << Sizes::GROUPS;
    }
    // Copies rows of B. checked: they may be padding, or not readable in packs.
    template <bool checked> __device__ __forceinline__ void copy_rows(int buffer) const {
        const uint32_t to = own_b + buffer * Sizes::B_BYTES;
#pragma unroll
        for (int i = 0; i < Sizes::COPIES; ++i) {
            const uint32_t k = __shfl_sync(ALL_LANES, column, row0 + i * Sizes::STEP);
            const uint32_t where =
                to + i * Sizes::STEP * Sizes::ROW + (swizzled ^ (i * Sizes::STEP & 7) * 16);
            if constexpr (checked) {
                const char *row = row_at(from, k & ~PADDING, stride);
                if (fast) {
                    copy16(where, row, k & PADDING ? 0 : 16);
                } else {
                    const int there = k & PADDING ? 0 : left < 8 ? int(left) : 8;
                    store_shared(where, gather8(row, there));
                }
            } else {
                copy16(where, row_at(from, k, stride));
            }
        }
    }
    // Copies the tiles of A.
    __device__ __forceinline__ void copy_tiles(int stage, int buffer) const {
        const int thread = threadIdx.x;
        const uint32_t block = first + 2 * stage;
        int64_t tile = block;
        int tiles = block + 1 < end ? 2 : 1;
        if constexpr (HEIGHT > 16) {
            tile = words[0] >> 4;
            tiles = __popc(words[0] & 15) + __popc(words[1] & 15);
        }
        const char *values = static_cast<const char *>(m.values) + tile * 512;
#pragma unroll
        for (int i = 0; i < Sizes::A_BYTES; i += Sizes::THREADS * 16) {
            if (i + thread * 16 < tiles * 512)
                copy16(a_at + buffer * Sizes::A_BYTES + i + thread * 16, values + i + thread * 16);
        }
    }
    __device__ __forceinline__ void issue(int stage, int buffer) const {
        if (stage < count) {
            // Only a window's last block can be padded.
            if (fast && stage + 1 < count) {
                copy_rows<false>(buffer);
            } else {
                copy_rows<true>(buffer);
            }
            copy_tiles(stage, buffer);
        }
        close_copies();
    }
};

// Adds the products of a stage: rows of B at `b`, tiles of A at `a`, of which the mask says what
// exist; `group0` is the warp's first group.
template <class T, class Sizes, int OF_WARP, int COUNT>
__device__ __forceinline__ void add_stage(float (&sums)[COUNT][4], uint32_t b, uint32_t a_at,
                                          uint32_t mask, int group0) {
#pragma unroll
    for (int half = 0; half < DEPTH / BLOCK; ++half) {
        // Tiles of the warp's groups; existing tiles are stored in the order of their bits.
        uint4 a[OF_WARP];
        bool has[OF_WARP], any = false;
#pragma unroll
        for (int r = 0; r < OF_WARP; ++r) {
            const int bit = half * Sizes::GROUPS + group0 + r;
            has[r] = mask >> bit & 1;
            any |= has[r];
            if (has[r])
                a[r] = load_shared<uint4>(a_at + __popc(mask & ((1u << bit) - 1)) * 512);
        }
        if (!any)
            continue;
#pragma unroll
        for (int i = 0; i < Sizes::MMAS / 2; ++i) {
            uint32_t x[4];
            load_matrices<true>(x, (b ^ (i * 32)) + half * BLOCK * Sizes::ROW);
#pragma unroll
            for (int r = 0; r < OF_WARP; ++r) {
                if (OF_WARP > 1 && !has[r])
                    continue;
                float(*const own)[4] = sums + r * Sizes::MMAS + 2 * i;
                mma16<T>(own[0], a[r].x, a[r].y, a[r].z, a[r].w, x[0], x[1]);
                mma16<T>(own[1], a[r].x, a[r].y, a[r].z, a[r].w, x[2], x[3]);
            }
        }
    }
}

// Exchanges between the lanes of a quad, of which each has 2 columns of each of 4 chunks: lane t
// gets chunk t.
template <class Word> __device__ __forceinline__ void exchange_chunks(Word (&v)[4]) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (k & step)
                continue;
            const bool upper = t & step;
            const auto theirs = __shfl_xor_sync(ALL_LANES, upper ? v[k] : v[k | step], step);
            if (upper) {
                v[k] = theirs;
            } else {
                v[k | step] = theirs;
            }
        }
    }
}

// Stores 4 chunks of 8 columns of a row of C, of which each lane of a quad has pairs (low, high):
// lane t stores the chunk at column `to`. row: -1 for none.
template <class T, class Y>
__device__ __forceinline__ void store_chunks(const Dense<T, Y> &d, int64_t row, int64_t to,
                                             float (&low)[4], float (&high)[4],
                                             const Scaling<float> &scaling) {
    if constexpr (sizeof(Y) == 2) {
        if (is_zero(scaling.beta) && (d.flags & C_ALIGNED)) {
            // Results are packed first: half as much is exchanged.
            uint32_t words[4];
#pragma unroll
            for (int k = 0; k < 4; ++k)
                words[k] = pack<Y>(scaling.alpha * low[k], scaling.alpha * high[k]);
            exchange_chunks(words);
            if (to + 8 <= d.n) {
                if (row >= 0)
                    __stcs(reinterpret_cast<uint4 *>(d.c + row * d.ldc + to),
                           make_uint4(words[0], words[1], words[2], words[3]));
            } else if (row >= 0) {
                Y out[8];
                memcpy(out, words, sizeof out);
#pragma unroll
                for (int k = 0; k < 8; ++k) {
                    if (to + k < d.n)
                        d.c[row * d.ldc + to + k] = out[k];
                }
            }
            return;
        }
    }
    exchange_chunks(low);
    exchange_chunks(high);
    const float out[8] = {low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]};
    if (row >= 0)
        store8(d, row, to, out, scaling);
}

// Stores a warp's sums of 16 rows from `row` on, in COUNT chunks of columns from n0 on.
template <class T, class Y, int COUNT>
__device__ __forceinline__ void store_staged(const Matrix &m, const Dense<T, Y> &d, int64_t row,
                                             int64_t n0, const float (&sums)[COUNT][4],
                                             const Scaling<float> &scaling) {
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int64_t mine = row_of_c(m, row + g + 8 * half);
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            float low[4], high[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                low[k] = sums[i * 4 + k][2 * half];
                high[k] = sums[i * 4 + k][2 * half + 1];
            }
            store_chunks(d, mine, n0 + (i * 4 + t) * 8, low, high, scaling);
        }
    }
}

template <class T, class Y, int HEIGHT, int COLUMNS, int STAGES, int ACROSS, int OF_WARP>
__device__ __forceinline__ void staged(const Matrix &m, const Dense<T, Y> &d,
                                       const Scalar<float> &alpha, const Scalar<float> &beta,
                                       const Join &j) {
    using Sizes = Form<HEIGHT, COLUMNS, STAGES, ACROSS, OF_WARP>;
    constexpr int MMAS = Sizes::MMAS;
    extern __shared__ __align__(1024) char staging[];
    const int thread = threadIdx.x, lane = thread & 31, warp = thread / 32;
    const int t = lane % 4, group0 = warp / ACROSS * OF_WARP, side = warp % ACROSS;
    const int64_t n0 = int64_t(blockIdx.y) * COLUMNS;
    const WorkItem begin = item_of(m, blockIdx.x);
    Stages<T, Y, HEIGHT, COLUMNS, STAGES, ACROSS, OF_WARP> stages(
        m, d, begin, is_zero(alpha.get()) ? begin.first : begin.end, n0, staging);
    float sums[OF_WARP * MMAS][4];
    set_zero(sums);

    // Masks of the stages in flight.
    uint32_t masks[STAGES];
    stages.fetch(0);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        masks[s] = stages.mask(s);
        stages.issue(s, s);
        stages.fetch(s + 1);
    }
    const int k_row = lane % 16, k_side = lane / 16;
    const uint32_t own_rows =
        stages.b_at + k_row * Sizes::ROW + side * (Sizes::OWN * 2) + (k_side ^ (k_row & 7)) * 16;
    int buffer = 0, free_buffer = STAGES - 1;
    for (int s = 0; s < stages.count; ++s) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        uint32_t mask;
        if constexpr (HEIGHT == 16) {
            mask = stages.mask(s);
        } else {
            mask = masks[0];
#pragma unroll
            for (int i = 0; i + 2 < STAGES; ++i)
                masks[i] = masks[i + 1];
            masks[STAGES - 2] = stages.mask(s + STAGES - 1);
        }
        stages.issue(s + STAGES - 1, STAGES == 2 ? buffer ^ 1 : free_buffer);
        stages.fetch(s + STAGES);
        const uint32_t b = own_rows + buffer * Sizes::B_BYTES;
        const uint32_t a = stages.a_at + buffer * Sizes::A_BYTES + lane * 16;
        if constexpr (STAGES == 2) {
            buffer ^= 1;
        } else {
            free_buffer = buffer;
            buffer = buffer + 1 == STAGES ? 0 : buffer + 1;
        }
        add_stage<T, Sizes, OF_WARP>(sums, b, a, mask, group0);
    }

    const WorkItem item = item_of(m, blockIdx.x);
    if (!has_whole_sums<Sizes::THREADS, PARTS_AT_ONCE<OF_WARP * MMAS>>(m, j, item, blockIdx.y, sums,
                                                                       thread))
        return;
    const Scaling<float> scaling(d, alpha, beta);
    const int64_t own0 = n0 + side * Sizes::OWN;
    const auto column = [&](int i, int k) { return own0 + i * 8 + 2 * t + k % 2; };
    const bool partial = n0 + COLUMNS > d.n;
#pragma unroll
    for (int r = 0; r < OF_WARP; ++r) {
        const int group = group0 + r;
        const int64_t row = int64_t(item.window) * HEIGHT + group * 16;
        if (row >= m.rows)
            return;
        float(&own)[MMAS][4] = *reinterpret_cast<float(*)[MMAS][4]>(sums + r * MMAS);
        if (all_finite(own, partial, d.n, column)) {
            store_staged(m, d, row, own0, own, scaling);
        } else {
            exact<HEIGHT>(m, d, whole_of(m, item), row, group, own0, Sizes::OWN, scaling);
        }
    }
}

} // namespace tarsia::window
