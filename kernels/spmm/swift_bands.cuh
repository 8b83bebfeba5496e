// SpMM `swift` without atomics: C = alpha · A · B + beta · C on bands of 16 rows whose entries are
// sorted by column (src/format/swift/bands.rs).
//
// A warp takes a band, or a part of a long one, and 32 · WIDTH columns of C. The sums of its rows
// are in shared memory, where each lane owns WIDTH columns of all rows. The warps of a block take
// neighbouring bands, so that they find each other's rows of B in L1. Sums of parts are added in
// their order by the part that arrives last, so results have the same bits from run to run.
#pragma once

#include "ptx/warp.cuh"
#include "spmm/parts.cuh"
#include "spmm/swift.cuh"

namespace tarsia::swift {

// Constants of src/format/swift/bands.rs.
constexpr int ROWS = 16, WARPS = 4;

template <class T> struct Bands {
    const parts::WorkItem *items;
    const parts::Part *parts;
    const uint32_t *columns;
    const T *values;
    const uint8_t *rows; // row of each entry in the band
    int64_t item_count, row_count;
};

// C with any strides.
template <class T> struct Out {
    T *c;
    int64_t row_stride, col_stride;
};

// Entry of a band that a lane holds.
template <class T> struct Batch {
    uint32_t column, row;
    T value;
};

template <class T>
__device__ __forceinline__ Batch<T> load_batch(const Bands<T> &m, uint32_t at, uint32_t end) {
    Batch<T> out = {0, 0, 0};
    if (at < end) {
        out.column = load_once(m.columns + at);
        out.row = __ldg(m.rows + at);
        out.value = load_once(m.values + at);
    }
    return out;
}

template <class Sum> __device__ __forceinline__ Sum load_sum(const Sum *from) {
    if constexpr (sizeof(Sum) == 16) {
        const uint4 bits = __ldcg(reinterpret_cast<const uint4 *>(from));
        Sum out;
        memcpy(&out, &bits, sizeof out);
        return out;
    } else {
        return {{__ldcg(from->v)}};
    }
}

// Adds the sums of the parts of a band as parts::join does, for sums in shared memory.
template <class Sum>
__device__ __forceinline__ bool join_tiles(const parts::Part *parts, const parts::Join &j,
                                           uint32_t part, Sum (&tile)[ROWS][LANES]) {
    const int lane = threadIdx.x % LANES;
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(parts + part));
    const parts::Part own = {v.x, v.y, v.z, v.w};
    constexpr int TILE = ROWS * LANES;
    Sum *const all = static_cast<Sum *>(j.sums) + blockIdx.y * j.part_count * TILE + lane;
#pragma unroll 4
    for (int row = 0; row < ROWS; ++row)
        all[int64_t(part) * TILE + row * LANES] = tile[row][lane];
    if (!parts::is_last(j, own, blockIdx.y))
        return false;
    const Sum *const from = all + int64_t(own.first) * TILE;
#pragma unroll 1
    for (int row = 0; row < ROWS; ++row) {
        Sum sum = {};
#pragma unroll 4
        for (uint32_t number = 0; number < own.count; ++number) {
            const Sum other = load_sum(from + int64_t(number) * TILE + row * LANES);
#pragma unroll
            for (int i = 0; i < int(sizeof(sum.v) / sizeof(*sum.v)); ++i)
                sum.v[i] += other.v[i];
        }
        tile[row][lane] = sum;
    }
    return true;
}

template <class T, int WIDTH>
__device__ __forceinline__ void bands(const Bands<T> &m, const Dense<T> &d, const Out<T> &out,
                                      const Scalar<T> &alpha_, const Scalar<T> &beta_,
                                      const parts::Join &join) {
    using Sum = Pack<T, WIDTH>;
    __shared__ Sum tiles[WARPS][ROWS][LANES];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    const int64_t number = int64_t(blockIdx.x) * WARPS + warp;
    if (number >= m.item_count)
        return;
    Sum(&tile)[ROWS][LANES] = tiles[warp];
    const parts::WorkItem item = parts::load_item(m.items + number);
    const T alpha = alpha_.get(), beta = beta_.get();
    const int64_t j = (int64_t(blockIdx.y) * LANES + lane) * WIDTH;
#pragma unroll
    for (int row = 0; row < ROWS; ++row)
        tile[row][lane] = Sum{};
    // If alpha is 0, A and B may hold anything and are not used.
    const uint32_t end = alpha == 0 ? item.first : item.end;
    Batch<T> next = load_batch(m, item.first + lane, end);
    for (uint32_t at = item.first; at < end; at += LANES) {
        const Batch<T> now = next;
        next = load_batch(m, at + LANES + lane, end);
        const int count = int(min(uint32_t(LANES), end - at));
        for (int k = 0; k < count; k += FLIGHT) {
            Sum b[FLIGHT];
            uint32_t rows[FLIGHT];
            T values[FLIGHT];
#pragma unroll
            for (int u = 0; u < FLIGHT; ++u) {
                const uint32_t column = __shfl_sync(ALL_LANES, now.column, k + u);
                rows[u] = __shfl_sync(ALL_LANES, now.row, k + u);
                values[u] = __shfl_sync(ALL_LANES, now.value, k + u);
                b[u] = Sum{};
                if (k + u < count && j < d.n)
                    b[u] = load_b<T, WIDTH>(d, column, j);
            }
#pragma unroll
            for (int u = 0; u < FLIGHT; ++u) {
                // Skipped beyond the end: adding 0 · 0 would turn a sum of -0 into 0.
                if (k + u < count) {
                    Sum sum = tile[rows[u]][lane];
#pragma unroll
                    for (int i = 0; i < WIDTH; ++i)
                        sum.v[i] = fma(values[u], b[u].v[i], sum.v[i]);
                    tile[rows[u]][lane] = sum;
                }
            }
        }
    }
    if (item.part != parts::WHOLE && !join_tiles(m.parts, join, item.part, tile))
        return;
    const int64_t first = int64_t(item.window) * ROWS;
    const int rows = int(min(int64_t(ROWS), m.row_count - first));
    if (out.col_stride == 1) {
        if (j >= d.n)
            return;
#pragma unroll 4
        for (int row = 0; row < rows; ++row) {
            T *const to = out.c + (first + row) * out.row_stride + j;
            const Sum sum = tile[row][lane];
            Sum result = {};
            if (beta != 0)
                result = *reinterpret_cast<const Sum *>(to);
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                const T product = alpha * sum.v[i];
                result.v[i] = beta == 0 ? product : fma(beta, result.v[i], product);
            }
            *reinterpret_cast<Sum *>(to) = result;
        }
        return;
    }
    // The columns of C are contiguous here, so that neighbouring lanes store neighbouring rows.
    __syncwarp();
    const int row = lane % ROWS;
    const int64_t columns = min(int64_t(LANES * WIDTH), d.n - int64_t(blockIdx.y) * LANES * WIDTH);
    if (row >= rows)
        return;
    for (int column = lane / ROWS; column < columns; column += LANES / ROWS) {
        T *const to = out.c + (first + row) * out.row_stride +
                      (int64_t(blockIdx.y) * LANES * WIDTH + column) * out.col_stride;
        store(to, alpha, tile[row][column / WIDTH].v[column % WIDTH], beta);
    }
}

} // namespace tarsia::swift
