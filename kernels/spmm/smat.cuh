// SpMM `smat`: C = alpha · A · B + beta · C on the blocks of src/format/bcsr.rs, by tensor cores:
// fp16 or bf16 with fp32 sums, TF32, and fp64. After P. Okanovic et al., SMaT (SC 2024): a warp
// takes a row of blocks and a tile of columns of C, and copies the rows of B that its blocks
// multiply into shared memory while it computes.
//
// Differences from the paper: a row of many blocks is shared by several warps, sums are fp32 for
// halves, rows of A may be in any order, and B may hold Inf or NaN: a block multiplies rows of B by
// zeros where nothing is stored; results that this makes wrong are not finite, and are computed
// again from the stored entries.
#pragma once

#include "ptx/arithmetic.cuh"
#include "ptx/copies.cuh"
#include "ptx/mma.cuh"
#include "ptx/packs.cuh"
#include "ptx/shared.cuh"
#include "ptx/warp.cuh"
#include "spmm/parts.cuh"

namespace tarsia::smat {

using namespace tarsia::parts;

// Number of rows of a block.
constexpr int ROWS = 16;
// Number of warps of a thread block.
constexpr int WARPS = 4;
// Value in `order` of a position without a row.
constexpr uint32_t NONE = ~0u;

struct Matrix {
    const WorkItem *items;
    const Part *parts;
    // First column of each block divided by the block's width.
    const uint32_t *columns;
    // Values of blocks, in the order in which lanes hold them.
    const void *values;
    // Bit mask of the stored elements, for each row of a block.
    const uint8_t *masks;
    // Row of A at each position, NONE if there is none; NULL if rows are in order.
    const uint32_t *order;
    int64_t item_count, rows, cols;
};

// B, stored by rows that are less than 2^31 bytes apart or by columns, and C, whose element (i, j)
// is at i · c_row + j · c_col. Bits of `flags`: 1, rows or columns of B are aligned to 16 bytes
// (columns always are); 2, rows of C are (with c_col = 1); 4, memory behind a row of B is readable
// up to the next multiple of 16 bytes.
template <class T, class Y> struct Dense {
    const T *b;
    int64_t ldb;
    Y *c;
    int64_t c_row, c_col;
    int64_t n, flags;
};

template <class T> struct SumOf { using Type = float; };
template <> struct SumOf<double> { using Type = double; };
template <class T> using Sum = typename SumOf<T>::Type;

// Constants of the product of blocks of WIDTH columns with a tile of COLUMNS columns. BY_COLUMNS: B
// is stored by columns, and so are its stages.
template <class T, int WIDTH, int COLUMNS, bool BY_COLUMNS> struct Tile {
    using Acc = Sum<T>;
    // Number of columns of A that an MMA takes, and of blocks that these are.
    static constexpr int K = sizeof(T) == 2 ? 16 : 8, JOINED = K / WIDTH;
    // Number of rows of B in a stage, and of its blocks.
    static constexpr int DEPTH = 2 * K, BLOCKS = DEPTH / WIDTH;
    static constexpr int LINES = BY_COLUMNS ? COLUMNS : DEPTH, ALONG = BY_COLUMNS ? DEPTH : COLUMNS;
    static constexpr int LINE = ALONG * int(sizeof(T)), CHUNKS = LINE / 16;
    static constexpr int B_BYTES = LINES * LINE;
    static constexpr int A_BYTES = DEPTH * ROWS * int(sizeof(T));
    // Number of lines that a warp copies at one time.
    static constexpr int STEP = 32 / CHUNKS < LINES ? 32 / CHUNKS : LINES;
    static constexpr int COPIES = LINES / STEP;
    // Number of MMAs along the columns. A lane loads TOGETHER neighbouring elements of B at one
    // time, which belong to as many different MMAs.
    static constexpr int MMAS = COLUMNS / 8, MOST = 16 / int(sizeof(T));
    static constexpr int TOGETHER = sizeof(T) == 2 || BY_COLUMNS ? 1 : MMAS < MOST ? MMAS : MOST;
    // Leading dimension of the tile of sums in shared memory.
    static constexpr int SUMS_LD = COLUMNS + 32 / int(sizeof(Acc));
    static_assert(K % WIDTH == 0 && CHUNKS >= 1 && CHUNKS <= 32 && MMAS % TOGETHER == 0);

    // Chunk c of line r is stored at c ^ swizzle(r), so that lanes that read at the same time have
    // no bank conflicts.
    static __device__ __forceinline__ int swizzle(int r) {
        if constexpr (CHUNKS <= 2) {
            return 0;
        } else if constexpr (sizeof(T) == 2 || (BY_COLUMNS && sizeof(T) == 4)) {
            return CHUNKS == 4 ? r >> 1 & 3 : r & 7;
        } else {
            return CHUNKS == 4 ? (r >> 1 & 1) << 1 : (r & 3) << 1;
        }
    }
    // Column of sum j of MMA i in lane t of a quad.
    static __device__ __forceinline__ int column(int i, int j, int t) {
        return i / TOGETHER * (8 * TOGETHER) + (2 * t + j % 2) * TOGETHER + i % TOGETHER;
    }
};

// Loads `count` elements of B from any address, and fills 16 bytes with zeros.
template <class T> __device__ __forceinline__ uint4 gather16(const char *from, int count) {
    constexpr int ELEMENTS = 16 / int(sizeof(T));
    T out[ELEMENTS];
#pragma unroll
    for (int i = 0; i < ELEMENTS; ++i)
        out[i] = i < count ? __ldg(reinterpret_cast<const T *>(from) + i) : T(0.0f);
    uint4 v;
    memcpy(&v, out, 16);
    return v;
}

// Position in a block of the element (row, k), by lane and slot of the MMA's operand A.
template <class T, int WIDTH> __device__ __forceinline__ int place(int row, int k) {
    if constexpr (sizeof(T) == 2) {
        const int slot = k / 8 * 4 + row / 8 * 2 + k % 2;
        return (row % 8 * 4 + k % 8 / 2) * (WIDTH / 2) + slot;
    } else {
        return (row % 8 * 4 + k % 4) * 4 + k / 4 * 2 + row / 8;
    }
}

// Returns the row of A at this position, or -1.
__device__ __forceinline__ int64_t row_at(const Matrix &m, int64_t place) {
    if (!m.order)
        return place < m.rows ? place : -1;
    const uint32_t row = __ldg(m.order + place);
    return row == NONE ? -1 : int64_t(row);
}

// Computes a row block's rows of C in columns [at, at + width) from what is stored in the blocks
// [first, end). Called by a warp.
template <class T, class Y, int WIDTH, bool BY_COLUMNS>
__device__ __forceinline__ void exact(const Matrix &m, const Dense<T, Y> &d, uint32_t first,
                                      uint32_t end, int64_t row0, int64_t at, int width,
                                      Sum<T> alpha, Sum<T> beta) {
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
        const int64_t row = row_at(m, row0 + r);
        if (row < 0)
            continue;
#pragma unroll 1
        for (int64_t j = at + lane; j < d.n && j < at + width; j += 32) {
            Sum<T> sum = 0;
#pragma unroll 1
            for (int64_t b = first; b < end; ++b) {
                uint32_t mask = m.masks[(b * ROWS + r) * (WIDTH / 8)];
                if constexpr (WIDTH == 16)
                    mask |= uint32_t(m.masks[(b * ROWS + r) * 2 + 1]) << 8;
                const int64_t column = int64_t(m.columns[b]) * WIDTH;
#pragma unroll 1
                for (; mask != 0; mask &= mask - 1) {
                    const int k = __ffs(int(mask)) - 1;
                    const T value = static_cast<const T *>(
                        m.values)[b * (ROWS * WIDTH) + place<T, WIDTH>(r, k)];
                    const int64_t at =
                        BY_COLUMNS ? column + k + j * d.ldb : (column + k) * d.ldb + j;
                    sum = fma(widen<Sum<T>>(value), widen<Sum<T>>(d.b[at]), sum);
                }
            }
            store(d.c + row * d.c_row + j * d.c_col, alpha, sum, beta);
        }
    }
}

// Adds the products of a stage of halves: rows or columns of B are at `b`, blocks of A at `a`.
template <class T, int WIDTH, int COLUMNS, bool BY_COLUMNS>
__device__ __forceinline__ void multiply_halves(Sum<T> *sums, uint32_t b, const char *a) {
    using Layout = Tile<T, WIDTH, COLUMNS, BY_COLUMNS>;
    const int lane = threadIdx.x & 31;
    __align__(16) uint32_t left[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if constexpr (WIDTH == 16) {
            *reinterpret_cast<uint4 *>(left[half]) =
                reinterpret_cast<const uint4 *>(a + half * 512)[lane];
        } else {
            // Two blocks side by side are one operand.
#pragma unroll
            for (int side = 0; side < 2; ++side)
                *reinterpret_cast<uint2 *>(left[half] + 2 * side) =
                    reinterpret_cast<const uint2 *>(a + half * 512 + side * 256)[lane];
        }
    }
    uint32_t x[4];
    if constexpr (BY_COLUMNS) {
        // Columns are in the form that the MMA takes: 8 columns with all rows of the stage at
        // one time.
        const int r = lane % 8;
#pragma unroll
        for (int i = 0; i < Layout::MMAS; ++i) {
            load_matrices<false>(x, b + (i * 8 + r) * Layout::LINE +
                                        ((lane / 8) ^ Layout::swizzle(r)) * 16);
            mma16<T>(sums + i * 4, left[0], x[0], x[1]);
            mma16<T>(sums + i * 4, left[1], x[2], x[3]);
        }
    } else if constexpr (COLUMNS == 8) {
        load_matrices<true>(x, b + lane * 16);
        mma16<T>(sums, left[0], x[0], x[1]);
        mma16<T>(sums, left[1], x[2], x[3]);
    } else {
        const int r = lane % 16;
        const uint32_t own = b + r * Layout::LINE;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = 0; i < Layout::MMAS / 2; ++i) {
                load_matrices<true>(x, own + half * 16 * Layout::LINE +
                                           ((2 * i + lane / 16) ^ Layout::swizzle(r)) * 16);
                mma16<T>(sums + i * 8, left[half], x[0], x[1]);
                mma16<T>(sums + i * 8 + 4, left[half], x[2], x[3]);
            }
        }
    }
}

// Adds the products of a stage of floats (in TF32) or doubles.
template <class T, int WIDTH, int COLUMNS, bool BY_COLUMNS>
__device__ __forceinline__ void multiply_floats(Sum<T> *sums, uint32_t b, const char *a) {
    using Layout = Tile<T, WIDTH, COLUMNS, BY_COLUMNS>;
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    const auto *const lines = static_cast<const char *>(__cvta_shared_to_generic(b));
#pragma unroll
    for (int block = 0; block < 2; ++block) {
        using Lane = Pack<T, 4>;
        const Lane left = reinterpret_cast<const Lane *>(a + block * 32 * sizeof(Lane))[lane];
        uint32_t bits[4];
        if constexpr (sizeof(T) == 4) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                bits[i] = to_tf32(left.v[i]);
        }
#pragma unroll
        for (int i = 0; i < Layout::MMAS; i += Layout::TOGETHER) {
            using Right = Pack<T, Layout::TOGETHER>;
            Right x[2];
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                constexpr int BYTES = sizeof(Right);
                const int row = block * 8 + k * 4 + t;
                const int r = BY_COLUMNS ? i * 8 + g : row;
                const int at = BY_COLUMNS ? row * BYTES : i * 8 * int(sizeof(T)) + g * BYTES;
                x[k] = *reinterpret_cast<const Right *>(
                    lines + r * Layout::LINE + (at / 16 ^ Layout::swizzle(r)) * 16 + at % 16);
            }
#pragma unroll
            for (int v = 0; v < Layout::TOGETHER; ++v) {
                if constexpr (sizeof(T) == 4) {
                    mma8(sums + (i + v) * 4, bits, to_tf32(x[0].v[v]), to_tf32(x[1].v[v]));
                } else {
                    mma8(sums + (i + v) * 4, left.v, x[0].v[v], x[1].v[v]);
                }
            }
        }
    }
}

// Shared memory of a warp, which takes an item and a tile of COLUMNS columns. 1, 2 or 4 tiles of an
// item (`tiles`) are neighbours in a thread block.
template <class T, int WIDTH, int COLUMNS, int STAGES>
constexpr int SHARED_BYTES = STAGES *(Tile<T, WIDTH, COLUMNS, false>::A_BYTES +
                                      Tile<T, WIDTH, COLUMNS, false>::B_BYTES);

// Copies of a lane to the stages of its warp in shared memory.
template <class T, class Y, int WIDTH, int COLUMNS, bool BY_COLUMNS> struct Stages {
    using Layout = Tile<T, WIDTH, COLUMNS, BY_COLUMNS>;
    // Number of elements in a chunk.
    static constexpr int ELEMENTS = 16 / int(sizeof(T));

    const Matrix &m;
    const Dense<T, Y> &d;
    int64_t n0;          // first column of the tile
    uint32_t first, end; // blocks of the item
    int count;           // stages of the item
    bool fast;           // whole chunks of B can be read
    uint32_t b_at, a_at; // lines of B and blocks of A in shared memory
    int chunk, line;     // this lane's chunk, and its first line
    int32_t stride;
    int64_t left; // columns from this lane's chunk on
    const char *from;
    // For the next stage: the row of B that is row `lane` of the stage or, with BY_COLUMNS, the
    // first row of this lane's chunks of columns.
    uint32_t b_row = NONE;

    __device__ __forceinline__ Stages(const Matrix &matrix, const Dense<T, Y> &dense,
                                      uint32_t begin, uint32_t upto, int64_t column,
                                      uint32_t lines_at, uint32_t blocks_at)
        : m(matrix), d(dense), n0(column), first(begin), end(upto),
          count(int((end - first + Layout::BLOCKS - 1) / Layout::BLOCKS)),
          fast(BY_COLUMNS ||
               (d.flags & 1) && (d.n % ELEMENTS == 0 || n0 + COLUMNS <= d.n || (d.flags & 4))),
          b_at(lines_at), a_at(blocks_at) {
        const int lane = threadIdx.x & 31;
        chunk = lane % Layout::CHUNKS, line = lane / Layout::CHUNKS;
        stride = int32_t(d.ldb * int64_t(sizeof(T)));
        // Chunks beyond the last column are copies of the first one, which are not used.
        left = d.n - (n0 + chunk * ELEMENTS);
        from = reinterpret_cast<const char *>(d.b + (left > 0 ? d.n - left : 0));
    }

    // Loads which rows of B a stage takes.
    __device__ __forceinline__ void fetch(int stage) {
        const int at = BY_COLUMNS ? chunk * ELEMENTS : int(threadIdx.x & 31);
        const uint32_t block = first + uint32_t(stage) * Layout::BLOCKS + at / WIDTH;
        b_row = NONE;
        if (at < Layout::DEPTH && block < end) {
            // Nothing is stored beyond A's last column, so any row of B will do.
            const uint32_t row = __ldg(m.columns + block) * WIDTH + at % WIDTH;
            b_row = row < m.cols ? row : BY_COLUMNS ? NONE : uint32_t(m.cols - 1);
        }
    }
    // Copies this lane's chunks of columns of B, from line r on.
    __device__ __forceinline__ void copy_column(int r, uint32_t to) const {
        const bool exists = b_row != NONE && n0 + r < d.n;
        const int64_t at = exists ? (n0 + r) * d.ldb + b_row : 0;
        const int rows = exists ? int(min(m.cols - b_row, int64_t(ELEMENTS))) : 0;
        copy16(to, d.b + at, rows * int(sizeof(T)));
    }
    // Copies this lane's chunk of the row of B that is line r.
    __device__ __forceinline__ void copy_row(int r, uint32_t to) const {
        const uint32_t row = __shfl_sync(ALL_LANES, b_row, r);
        if (Layout::STEP * Layout::CHUNKS < 32 &&
            int(threadIdx.x & 31) >= Layout::STEP * Layout::CHUNKS)
            return;
        const char *at = from + multiply_wide(row == NONE ? 0 : int32_t(row), stride);
        if (fast) {
            copy16(to, at, row == NONE ? 0 : 16);
        } else {
            store_shared(to, gather16<T>(at, row == NONE       ? 0
                                             : left < ELEMENTS ? int(left)
                                                               : ELEMENTS));
        }
    }
    __device__ __forceinline__ void issue(int stage, int buffer) const {
        if (stage < count) {
            const int lane = threadIdx.x & 31;
#pragma unroll
            for (int i = 0; i < Layout::COPIES; ++i) {
                const int r = line + i * Layout::STEP;
                const uint32_t to = b_at + buffer * Layout::B_BYTES + r * Layout::LINE +
                                    (chunk ^ Layout::swizzle(r)) * 16;
                if constexpr (BY_COLUMNS) {
                    copy_column(r, to);
                } else {
                    copy_row(r, to);
                }
            }
            const uint32_t block = first + uint32_t(stage) * Layout::BLOCKS;
            constexpr int BYTES = ROWS * WIDTH * int(sizeof(T));
            const int there = int(min(end - block, uint32_t(Layout::BLOCKS))) * BYTES;
            const char *values = static_cast<const char *>(m.values) + int64_t(block) * BYTES;
#pragma unroll
            for (int i = 0; i < Layout::A_BYTES; i += 512)
                copy16(a_at + buffer * Layout::A_BYTES + i + lane * 16, values + i + lane * 16,
                       i + lane * 16 < there ? 16 : 0);
        }
        close_copies();
    }
};

// Returns whether all sums of the warp are finite; those of columns beyond the last one are left
// out.
template <class Layout, class Acc, int COUNT>
__device__ __forceinline__ bool all_finite(const Acc (&sums)[COUNT], int64_t n0, int64_t n) {
    const int t = threadIdx.x % 4;
    // 0 · x is 0 for all finite x only.
    Acc zeros = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        if (n0 + Layout::column(i / 4, i % 4, t) < n)
            zeros = fma(sums[i], Acc(0), zeros);
    }
    return __all_sync(ALL_LANES, zeros == Acc(0));
}

// Puts the warp's sums into shared memory, row by row.
template <class Layout, class Acc, int COUNT>
__device__ __forceinline__ void spread_sums(const Acc (&sums)[COUNT], Acc *tile) {
    const int lane = threadIdx.x & 31, g = lane / 4, t = lane % 4;
    if constexpr (Layout::TOGETHER == 1) {
#pragma unroll
        for (int i = 0; i < Layout::MMAS; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                *reinterpret_cast<Pack<Acc, 2> *>(tile + (g + 8 * half) * Layout::SUMS_LD + i * 8 +
                                                  2 * t) = {sums[i * 4 + 2 * half],
                                                            sums[i * 4 + 2 * half + 1]};
        }
    } else {
#pragma unroll
        for (int i = 0; i < Layout::MMAS; i += Layout::TOGETHER) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                Pack<Acc, Layout::TOGETHER> out;
#pragma unroll
                for (int v = 0; v < Layout::TOGETHER; ++v)
                    out.v[v] = sums[(i + v) * 4 + k];
                *reinterpret_cast<Pack<Acc, Layout::TOGETHER> *>(
                    tile + (g + k / 2 * 8) * Layout::SUMS_LD + Layout::column(i, k, t)) = out;
            }
        }
    }
}

// Stores a tile of sums to C, whose rows are contiguous, in packs where they are aligned.
template <class Layout, int COLUMNS, class T, class Y, class Acc>
__device__ __forceinline__ void store_rows(const Matrix &m, const Dense<T, Y> &d, int64_t row0,
                                           int64_t n0, const Acc *tile, Acc alpha, Acc beta) {
    constexpr int ELEMENTS = 16 / int(sizeof(Y)), PACKS = COLUMNS / ELEMENTS;
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < ROWS * PACKS; i += 32) {
        const int r = (i + lane) / PACKS, at = (i + lane) % PACKS * ELEMENTS;
        if (ROWS * PACKS < 32 && r >= ROWS)
            continue;
        const int64_t row = row_at(m, row0 + r);
        if (row < 0 || n0 + at >= d.n)
            continue;
        Y *const to = d.c + row * d.c_row + n0 + at;
        const Acc *sum = tile + r * Layout::SUMS_LD + at;
        if ((d.flags & 2) && n0 + at + ELEMENTS <= d.n) {
            Pack<Y, ELEMENTS> out;
            if (!is_zero(beta))
                out = *reinterpret_cast<const Pack<Y, ELEMENTS> *>(to);
#pragma unroll
            for (int k = 0; k < ELEMENTS; ++k)
                store(out.v + k, alpha, sum[k], beta);
            // C is not read again, so it should not evict B from L2.
            uint4 bits;
            memcpy(&bits, &out, 16);
            __stcs(reinterpret_cast<uint4 *>(to), bits);
        } else {
#pragma unroll 1
            for (int k = 0; k < ELEMENTS && n0 + at + k < d.n; ++k)
                store(to + k, alpha, sum[k], beta);
        }
    }
}

// Stores a tile of sums to C with any strides; lanes lie along the rows.
template <class Layout, int COLUMNS, class T, class Y, class Acc>
__device__ __forceinline__ void store_columns(const Matrix &m, const Dense<T, Y> &d, int64_t row0,
                                              int64_t n0, const Acc *tile, Acc alpha, Acc beta) {
    const int lane = threadIdx.x & 31, r = lane % ROWS;
    const int64_t row = row_at(m, row0 + r);
    if (row < 0)
        return;
    Y *const to = d.c + row * d.c_row;
#pragma unroll 1
    for (int k = lane / ROWS; k < COLUMNS && n0 + k < d.n; k += 2)
        store(to + (n0 + k) * d.c_col, alpha, tile[r * Layout::SUMS_LD + k], beta);
}

template <class T, class Y, int WIDTH, int COLUMNS, int STAGES, bool BY_COLUMNS = false>
__device__ __forceinline__ void product(const Matrix &m, const Dense<T, Y> &d,
                                        const Scalar<Sum<T>> &alpha_, const Scalar<Sum<T>> &beta_,
                                        const Join &j, int tiles) {
    using Layout = Tile<T, WIDTH, COLUMNS, BY_COLUMNS>;
    using Acc = Sum<T>;
    static_assert(16 * Layout::SUMS_LD * sizeof(Acc) <= SHARED_BYTES<T, WIDTH, COLUMNS, STAGES>);
    extern __shared__ __align__(1024) char staging[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t number = int64_t(blockIdx.x) * (WARPS / tiles) + warp / tiles;
    const int64_t tile = int64_t(blockIdx.y) * tiles + warp % tiles, n0 = tile * COLUMNS;
    // Returning early is safe, since warps never wait for each other.
    if (number >= m.item_count || n0 >= d.n)
        return;
    const WorkItem item = load_item(m.items + number);
    const Acc alpha = alpha_.get();
    char *const own = staging + warp * SHARED_BYTES<T, WIDTH, COLUMNS, STAGES>;
    const uint32_t b_at = shared_address(own);
    Stages<T, Y, WIDTH, COLUMNS, BY_COLUMNS> stages(m, d, item.first,
                                                    is_zero(alpha) ? item.first : item.end, n0,
                                                    b_at, b_at + STAGES * Layout::B_BYTES);
    Acc sums[Layout::MMAS * 4];
    set_zero(sums);

    stages.fetch(0);
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        stages.issue(s, s);
        stages.fetch(s + 1);
    }
    int buffer = 0, free_buffer = STAGES - 1;
#pragma unroll 1
    for (int s = 0; s < stages.count; ++s) {
        wait_copies<STAGES - 2>();
        __syncwarp();
        stages.issue(s + STAGES - 1, free_buffer);
        stages.fetch(s + STAGES);
        const uint32_t b = b_at + buffer * Layout::B_BYTES;
        const char *const a = own + STAGES * Layout::B_BYTES + buffer * Layout::A_BYTES;
        free_buffer = buffer;
        buffer = buffer + 1 == STAGES ? 0 : buffer + 1;
        if constexpr (sizeof(T) == 2) {
            multiply_halves<T, WIDTH, COLUMNS, BY_COLUMNS>(sums, b, a);
        } else {
            multiply_floats<T, WIDTH, COLUMNS, BY_COLUMNS>(sums, b, a);
        }
    }

    auto &of_mmas = reinterpret_cast<Acc(&)[Layout::MMAS][4]>(sums);
    constexpr int AT_ONCE = sizeof(sums) <= 16 ? 8 : 2;
    if (!has_whole_sums<WARP, AT_ONCE>(m, j, item, tile, of_mmas, lane))
        return;
    const Acc beta = beta_.get();
    const int64_t row0 = int64_t(item.window) * ROWS;
    if (!all_finite<Layout>(sums, n0, d.n)) {
        const WorkItem whole = whole_of(m, item);
        exact<T, Y, WIDTH, BY_COLUMNS>(m, d, whole.first, whole.end, row0, n0, COLUMNS, alpha,
                                       beta);
        return;
    }
    // Sums go through shared memory, so that rows of C are stored in packs.
    __syncwarp();
    Acc *const tile_sums = reinterpret_cast<Acc *>(own);
    spread_sums<Layout>(sums, tile_sums);
    __syncwarp();
    if (d.c_col == 1) {
        store_rows<Layout, COLUMNS>(m, d, row0, n0, tile_sums, alpha, beta);
    } else {
        store_columns<Layout, COLUMNS>(m, d, row0, n0, tile_sums, alpha, beta);
    }
}

} // namespace tarsia::smat
