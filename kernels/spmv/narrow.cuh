// Columns of 16 bits that a plan keeps for a matrix whose offsets and values stay where they are.
// They count from an origin, which is one of
//
// - each row's least column, for the forms `rows` and `long_rows`, whose lanes know their row;
// - each chunk's least column, for the form `balanced`, whose warps load one chunk at a time;
// - 0 for all, if every column fits 16 bits: no origins are kept.
//
// *far becomes 1 if a column is too far from its origin; the columns are then not used.
#pragma once

#include "spmv/dot.cuh"

namespace tarsia::spmv {

// Number of entries that share an origin.
constexpr int CHUNK = WARP;
constexpr uint32_t MOST_DISTANCE = 0xffff;

__device__ __forceinline__ void report_far(bool is_far, unsigned long long *far) {
    if (__any_sync(ALL_LANES, is_far) && threadIdx.x % WARP == 0)
        atomicOr(far, 1ull);
}

// Computes columns relative to each row's least one, with 2^lanes_log2 lanes per row, in a grid as
// for the form `rows` with as many. Columns need not be sorted.
template <class I, class J>
__device__ __forceinline__ void narrow_rows(int64_t rows, const I *offsets, const J *indices,
                                            int32_t base, int32_t lanes_log2, uint16_t *columns,
                                            uint32_t *origins, unsigned long long *far) {
    const int lanes = 1 << lanes_log2, lane = threadIdx.x & (lanes - 1);
    const int64_t row = first_item() >> lanes_log2;
    int64_t begin = 0, end = 0;
    if (row < rows) {
        begin = int64_t(offsets[row]) - base;
        end = int64_t(offsets[row + 1]) - base;
    }
    uint32_t least = ~0u, most = 0;
    for (int64_t k = begin + lane; k < end; k += lanes) {
        const uint32_t column = uint32_t(indices[k] - base);
        least = min(least, column);
        most = max(most, column);
    }
    __syncwarp();
    for (int delta = lanes / 2; delta > 0; delta /= 2) {
        least = min(least, __shfl_xor_sync(ALL_LANES, least, delta));
        most = max(most, __shfl_xor_sync(ALL_LANES, most, delta));
    }
    const bool is_empty = begin == end;
    report_far(!is_empty && most - least > MOST_DISTANCE, far);
    if (lane == 0 && row < rows)
        origins[row] = is_empty ? 0 : least;
    for (int64_t k = begin + lane; k < end; k += lanes)
        columns[k] = uint16_t(uint32_t(indices[k] - base) - least);
}

// Computes columns relative to each chunk's least one, with a warp per chunk, in turns. If
// `origins` is NULL, columns are relative to 0.
template <class J>
__device__ __forceinline__ void narrow_chunks(int64_t nnz, const J *indices, int32_t base,
                                              uint16_t *columns, uint32_t *origins,
                                              unsigned long long *far) {
    const int lane = threadIdx.x % WARP;
    const int64_t stride = grid_stride();
    bool is_far = false;
    for (int64_t first = first_item() - lane; first < nnz; first += stride) {
        const int64_t k = first + lane;
        const uint32_t column = k < nnz ? uint32_t(indices[k] - base) : ~0u;
        uint32_t origin = 0;
        if (origins != nullptr) {
            origin = __reduce_min_sync(ALL_LANES, column);
            if (lane == 0)
                origins[first / CHUNK] = origin;
        }
        if (k < nnz) {
            is_far = is_far || column - origin > MOST_DISTANCE;
            columns[k] = uint16_t(column - origin);
        }
        __syncwarp();
    }
    report_far(is_far, far);
}

} // namespace tarsia::spmv
