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

#include "ptx/copies.cuh"
#include "ptx/mma.cuh"
#include "ptx/shared.cuh"
#include "spmm/masked.cuh"

namespace tarsia::masked {

using DenseF64 = Dense<double, double>;

// Numbers of a product: windows of HEIGHT rows, COLUMNS columns of C, stages of DEPTH columns of A,
// and DOWN · ACROSS warps: each has HEIGHT / DOWN rows and COLUMNS / ACROSS columns. A block takes
// an item and COLUMNS columns of C, and copies rows of B, masks and values to shared memory: while
// one stage is multiplied, the next is in flight.
template <class Value, int HEIGHT, int COLUMNS, int DEPTH, int DOWN, int ACROSS> struct Form {
    static constexpr int GROUPS = HEIGHT / BLOCK, BLOCKS = DEPTH / BLOCK;
    static constexpr int THREADS = WARP * DOWN * ACROSS;
    static constexpr bool NARROW = COLUMNS == 8;
    // Groups and columns of a warp, and its MMAs along the columns and in all.
    static constexpr int OWN_GROUPS = GROUPS / DOWN, OWN = COLUMNS / ACROSS;
    static constexpr int CHUNKS_OF_C = NARROW ? 1 : OWN / 16;
    static constexpr int SUMS = NARROW ? OWN_GROUPS / 2 : OWN_GROUPS * CHUNKS_OF_C;
    // Chunks of 16 bytes in a row of B, rows that all threads copy at one time, and times.
    static constexpr int CHUNKS = COLUMNS / 2, STEP = THREADS / CHUNKS, COPIES = DEPTH / STEP;
    // Offsets in a stage. Values begin at a multiple of 16 bytes of their array.
    static constexpr int ROW = COLUMNS * 8;
    static constexpr int VALUES = DEPTH * ROW;
    static constexpr int MASKS = VALUES + HEIGHT * DEPTH * int(sizeof(Value)) + 16;
    static constexpr int STARTS = MASKS + BLOCKS * GROUPS * 8;
    static constexpr int BYTES = (STARTS + BLOCKS * GROUPS * 4 + 127) / 128 * 128;
    // Number of values in 16 bytes.
    static constexpr uint32_t PACK = 16 / sizeof(Value);
    static_assert((OWN % 16 == 0 || NARROW && ACROSS == 1) && OWN_GROUPS * DOWN == GROUPS);
    static_assert(GROUPS % 2 == 0 && OWN_GROUPS % 2 == 0);
    static_assert(DEPTH <= 32 && BLOCKS * GROUPS / 2 <= THREADS);
    static_assert(THREADS % CHUNKS == 0 && DEPTH % STEP == 0 && (STEP & (STEP - 1)) == 0);

    // Chunk c of row r is stored at c ^ 2 (r & 3), so that lanes (g, t) that load 16 bytes of rows
    // t have no bank conflicts; in rows of 64 bytes at c ^ (r & 2). STEP is a power of two and the
    // first row of a thread is below it, so that the position in a later row differs by an
    // exclusive or with a constant.
    static __device__ __forceinline__ uint32_t swizzle(uint32_t row) {
        return (row & (NARROW ? 2 : 3)) << (NARROW ? 4 : 5);
    }
};

// Returns whether all sums of a warp, for columns from `at` on, are finite. sums[i · CHUNKS_OF_C +
// k][j] belongs to row 8i + 2t + j % 2 and column 16k + 2g + j / 2; with 8 columns, sums[i][j]
// belongs to row 16i + g + j / 2 · 8 and column 2t + j % 2.
template <class Sizes>
__device__ __forceinline__ bool all_finite(const DenseF64 &d, const double (&sums)[Sizes::SUMS][4],
                                           int64_t at) {
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    double zeros = 0;
#pragma unroll
    for (int k = 0; k < Sizes::CHUNKS_OF_C; ++k) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (at + (Sizes::NARROW ? 2 * t + j % 2 : 16 * k + 2 * g + j / 2) < d.n) {
#pragma unroll
                for (int i = 0; i < Sizes::SUMS / Sizes::CHUNKS_OF_C; ++i)
                    zeros = fma(sums[i * Sizes::CHUNKS_OF_C + k][j], 0.0, zeros);
            }
        }
    }
    return __all_sync(ALL_LANES, zeros == 0.0);
}

// Stores these sums to C; `row` is the first of their rows.
template <class Sizes>
__device__ __forceinline__ void store_all(const Matrix &m, const DenseF64 &d,
                                          const double (&sums)[Sizes::SUMS][4], int64_t row,
                                          int64_t at, const Scaling<double> &scaling) {
    const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < Sizes::SUMS / Sizes::CHUNKS_OF_C; ++i) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if constexpr (Sizes::NARROW) {
                const int64_t own = row_of_c(m, row + i * 16 + h * 8 + g);
                if (own >= 0)
                    store_sums<2>(d, own, at + 2 * t, {sums[i][2 * h], sums[i][2 * h + 1]},
                                  scaling);
            } else {
                const int64_t own = row_of_c(m, row + i * 8 + 2 * t + h);
                if (own < 0)
                    continue;
#pragma unroll
                for (int k = 0; k < Sizes::CHUNKS_OF_C; ++k) {
                    const double(&sum)[4] = sums[i * Sizes::CHUNKS_OF_C + k];
                    store_sums<2>(d, own, at + k * 16 + 2 * g, {sum[h], sum[2 + h]}, scaling);
                }
            }
        }
    }
}

// Copies of a thread to the stages in shared memory.
template <class Value, class Sizes> struct Stages {
    const Matrix &m;
    const DenseF64 &d;
    uint32_t end; // of the item's blocks
    // For the next stage: the lane's column, the first value, and the end of the values.
    uint32_t column = PADDING, first_value = 0, end_value = 0;
    uint32_t row0, chunk_bytes, swizzled;
    int32_t stride;
    const char *from;

    // left: number of columns from the tile's first one on.
    __device__ __forceinline__ Stages(const Matrix &matrix, const DenseF64 &dense, uint32_t upto,
                                      int64_t left)
        : m(matrix), d(dense), end(upto) {
        const uint32_t chunk = threadIdx.x % Sizes::CHUNKS;
        row0 = threadIdx.x / Sizes::CHUNKS;
        stride = int32_t(d.ldb * sizeof(double));
        chunk_bytes = left >= chunk * 2 + 2 ? 16 : left == chunk * 2 + 1 ? 8 : 0;
        from =
            reinterpret_cast<const char *>(d.b + (d.n - left) + (chunk_bytes > 0 ? chunk * 2 : 0));
        swizzled = chunk * 16 ^ Sizes::swizzle(row0);
    }

    // Loads what the copies of the stage that begins at `block` need to know.
    __device__ __forceinline__ void fetch(uint32_t block) {
        const uint32_t lane = threadIdx.x % WARP;
        column = PADDING;
        first_value = end_value = 0;
        if (lane < Sizes::BLOCKS * BLOCK && block + lane / BLOCK < end)
            column = __ldg(m.columns + int64_t(block) * BLOCK + lane);
        if (block < end) {
            const uint32_t next = block + Sizes::BLOCKS < end ? block + Sizes::BLOCKS : end;
            first_value = __ldg(m.starts + int64_t(block) * Sizes::GROUPS);
            end_value = __ldg(m.starts + int64_t(next) * Sizes::GROUPS);
        }
    }
    // Number of the first value that is copied.
    __device__ __forceinline__ uint32_t begin() const { return first_value & ~(Sizes::PACK - 1); }

    // Copies rows of B, by whole chunks if they are aligned.
    template <bool aligned> __device__ __forceinline__ void copy_rows(uint32_t to) const {
#pragma unroll
        for (int i = 0; i < Sizes::COPIES; ++i) {
            const uint32_t k = __shfl_sync(ALL_LANES, column, row0 + i * Sizes::STEP);
            const char *row = row_at(from, k & ~PADDING, stride);
            const uint32_t where =
                to + i * Sizes::STEP * Sizes::ROW + (swizzled ^ Sizes::swizzle(i * Sizes::STEP));
            const uint32_t bytes = k & PADDING ? 0 : chunk_bytes;
            if constexpr (aligned) {
                copy16(where, row, bytes);
            } else {
                copy_bytes<8>(where, row, bytes < 8 ? bytes : 8);
                copy_bytes<8>(where + 8, bytes > 8 ? row + 8 : row, bytes > 8 ? 8 : 0);
            }
        }
    }
    // Copies values, masks and first values of tiles.
    __device__ __forceinline__ void copy_tiles(uint32_t block, uint32_t to) const {
        const uint32_t thread = threadIdx.x;
        const Value *const values = static_cast<const Value *>(m.values) + begin();
        const uint32_t packs = (end_value - begin() + Sizes::PACK - 1) / Sizes::PACK;
        for (uint32_t i = thread; i < packs; i += Sizes::THREADS)
            copy16(to + Sizes::VALUES + i * 16, values + i * Sizes::PACK);
        if (thread < Sizes::BLOCKS * Sizes::GROUPS / 2) {
            const int64_t tile = int64_t(block) * Sizes::GROUPS + thread * 2;
            const bool exists = block + thread / (Sizes::GROUPS / 2) < end;
            copy16(to + Sizes::MASKS + thread * 16, m.masks + (exists ? tile : 0), exists ? 16 : 0);
            copy_bytes<8>(to + Sizes::STARTS + thread * 8, m.starts + (exists ? tile : 0),
                          exists ? 8 : 0);
        }
    }
    __device__ __forceinline__ void issue(uint32_t block, uint32_t to) const {
        if (block < end) {
            if (d.flags & B_ALIGNED) {
                copy_rows<true>(to + row0 * Sizes::ROW);
            } else {
                copy_rows<false>(to + row0 * Sizes::ROW);
            }
            copy_tiles(block, to);
        }
        close_copies();
    }
};

// Adds the products of the stage at `stage`, whose values begin with number `begin`. rows: the
// lane's elements of the rows of B; group: the warp's first group.
template <class Value, class Sizes>
__device__ __forceinline__ void add_stage(double (&sums)[Sizes::SUMS][4], uint32_t stage,
                                          uint32_t rows, uint32_t begin, uint32_t group) {
    // If sums take half of the registers, there are none left for unrolling.
    constexpr int UNROLL = Sizes::SUMS * 4 >= 32 ? 1 : Sizes::BLOCKS;
    const int lane = threadIdx.x % WARP;
    const auto load = [&](uint32_t number) {
        return load_shared<Value>(stage + Sizes::VALUES + number * uint32_t(sizeof(Value)));
    };
#pragma unroll UNROLL
    for (int block = 0; block < Sizes::BLOCKS; ++block) {
        double entries[Sizes::OWN_GROUPS][2];
        bool live[Sizes::OWN_GROUPS], any = false;
#pragma unroll
        for (int i = 0; i < Sizes::OWN_GROUPS; ++i) {
            const uint32_t tile = block * Sizes::GROUPS + group + i;
            const uint64_t mask = load_shared<uint64_t>(stage + Sizes::MASKS + tile * 8);
            const uint32_t start = load_shared<uint32_t>(stage + Sizes::STARTS + tile * 4) - begin;
            tile_values(mask, start, lane, load, entries[i]);
            live[i] = mask != 0;
            any |= live[i];
        }
        if (!any)
            continue;
        const uint32_t low_at = rows + block * BLOCK * Sizes::ROW;
        const uint32_t high_at = rows + (block * BLOCK + 4) * Sizes::ROW;
        if constexpr (Sizes::NARROW) {
            const double low = load_shared<double>(low_at), high = load_shared<double>(high_at);
#pragma unroll
            for (int i = 0; i < Sizes::SUMS; ++i)
                mma8(sums[i],
                     {entries[2 * i][0], entries[2 * i + 1][0], entries[2 * i][1],
                      entries[2 * i + 1][1]},
                     low, high);
        } else {
#pragma unroll
            for (int k = 0; k < Sizes::CHUNKS_OF_C; ++k) {
                const double2 low = load_shared<double2>(low_at + k * 128);
                const double2 high = load_shared<double2>(high_at + k * 128);
#pragma unroll
                for (int i = 0; i < Sizes::OWN_GROUPS; ++i) {
                    if (live[i])
                        mma8(sums[i * Sizes::CHUNKS_OF_C + k], {low.x, low.y, high.x, high.y},
                             entries[i][0], entries[i][1]);
                }
            }
        }
    }
}

template <class Value, int HEIGHT, int COLUMNS, int DEPTH, int DOWN, int ACROSS>
__device__ __forceinline__ void multiply(const Matrix &m, const DenseF64 &d,
                                         const Scalar<double> &alpha, const Scalar<double> &beta,
                                         const Join &j, int32_t tiles) {
    using Sizes = Form<Value, HEIGHT, COLUMNS, DEPTH, DOWN, ACROSS>;
    extern __shared__ __align__(128) char staging[];
    const uint32_t thread = threadIdx.x, lane = thread % WARP, warp = thread / WARP;
    const uint32_t g = lane / 4, t = lane % 4;
    const uint32_t group = warp / ACROSS * Sizes::OWN_GROUPS, side = warp % ACROSS;
    uint32_t first, end;
    int64_t left;
    {
        const Position place(tiles);
        left = d.n - place.tile * COLUMNS;
        if (left <= 0)
            return;
        const WorkItem item = item_of(m, place.item);
        first = item.first;
        end = is_zero(alpha.get()) ? first : item.end;
    }
    const uint32_t base = shared_address(staging);
    Stages<Value, Sizes> stages(m, d, end, left);
    double sums[Sizes::SUMS][4];
    set_zero(sums);
    stages.fetch(first);
    uint32_t next_begin = stages.begin(), stage = 0;
    stages.issue(first, base);
    stages.fetch(first + Sizes::BLOCKS);
    const uint32_t own_rows =
        base + t * Sizes::ROW +
        (Sizes::NARROW ? (g / 2 ^ t & 2) * 16 + g % 2 * 8 : (g ^ t << 1) * 16) +
        side * (Sizes::OWN * 8);
#pragma unroll 1
    for (uint32_t at = first; at < end; at += Sizes::BLOCKS) {
        wait_copies<0>();
        __syncthreads();
        const uint32_t begin = next_begin;
        next_begin = stages.begin();
        stages.issue(at + Sizes::BLOCKS, base + Sizes::BYTES - stage);
        stages.fetch(at + 2 * Sizes::BLOCKS);
        const uint32_t now = stage;
        stage = Sizes::BYTES - stage;
        add_stage<Value, Sizes>(sums, base + now, own_rows + now, begin, group);
    }

    const Position place(tiles);
    const WorkItem item = item_of(m, place.item);
    if (!has_whole_sums<Sizes::THREADS, PARTS_AT_ONCE<Sizes::SUMS>>(m, j, item, place.tile, sums,
                                                                    thread))
        return;
    const Scaling<double> scaling(d, alpha, beta);
    const int64_t row = int64_t(item.window) * HEIGHT + group * BLOCK;
    const int64_t at = place.tile * COLUMNS + side * Sizes::OWN;
    if (all_finite<Sizes>(d, sums, at)) {
        store_all<Sizes>(m, d, sums, row, at, scaling);
    } else {
        exact<Value>(m, d, whole_of(m, item), row, HEIGHT, group, Sizes::OWN_GROUPS, at, Sizes::OWN,
                     scaling);
    }
}

} // namespace tarsia::masked
