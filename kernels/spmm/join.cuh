// Operands of SpMM `row` and `csr`, and functions that add the partial sums of a row over lanes,
// groups of lanes, and blocks.
#pragma once

#include "common/types.cuh"
#include "ptx/loads.cuh"
#include "ptx/warp.cuh"
#include "spmm/tasks.cuh"

namespace tarsia {

// Row offsets of 32 or 64 bits. They are read only twice per row, so their type is resolved at run
// time.
struct Offsets {
    const void *pointer;
    int64_t wide;

    __device__ __forceinline__ int64_t at(int64_t i) const {
        return wide ? static_cast<const int64_t *>(pointer)[i]
                    : int64_t(static_cast<const int32_t *>(pointer)[i]);
    }
};

// Dense matrix: element (i, j) is at i · row_stride + j · col_stride.
template <class T> struct Dense {
    T *data;
    int64_t row_stride, col_stride;
};

__device__ __forceinline__ Part load_part(const Part *from) {
    Part part;
    *reinterpret_cast<uint4 *>(&part) = __ldg(reinterpret_cast<const uint4 *>(from));
    *(reinterpret_cast<uint4 *>(&part) + 1) = __ldg(reinterpret_cast<const uint4 *>(from) + 1);
    return part;
}

// Adds the sums of the groups that share a row, pairwise in a fixed order; each group gets the
// result.
template <int GROUP, class Acc, int COUNT>
__device__ __forceinline__ void add_groups(Acc (&sums)[COUNT], int groups) {
    // All groups of a warp share rows in the same number.
    for (int lanes = GROUP; lanes < GROUP * groups; lanes *= 2) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            sums[i] = add(sums[i], shuffle_xor(sums[i], lanes));
    }
}

// Adds COLUMNS sums over LANES lanes: each lane gets the sums of COLUMNS / LANES columns, or of one
// column that it shares with LANES / COLUMNS - 1 neighbouring lanes. Returns the lane's first
// column. Each step passes half as many sums as the step before.
template <int LANES, class Acc, int COLUMNS>
__device__ __forceinline__ int scatter_sums(Acc (&sums)[COLUMNS], int lane) {
    int first = 0;
#pragma unroll
    for (int lanes = LANES / 2, count = COLUMNS / 2; lanes > 0; lanes /= 2, count /= 2) {
        if (count == 0) {
            sums[0] = add(sums[0], shuffle_xor(sums[0], lanes));
            continue;
        }
        const bool upper = lane & lanes;
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const Acc theirs = upper ? sums[i] : sums[i + count];
            const Acc ours = upper ? sums[i + count] : sums[i];
            sums[i] = add(ours, shuffle_xor(theirs, lanes));
        }
        first += upper ? count : 0;
    }
    return first;
}

// Adds the partial sums that blocks have of a split row, which the first warp of each block holds
// in all its groups of GROUP lanes. The warp that comes last of JOINED parts adds their sums, and
// the results of these are added in the same way. column: position of the lane's sums in a row of
// sums; negative for none. Returns whether this warp has the row's sums. STORED: the
// lanes of the warp's first group have stored its partial sums in slot part.first + part.index
// already, and `sums` need not have them; any warp may then have a part.
template <int GROUP, bool STORED = false, class Acc, int COUNT, class Column>
__device__ __forceinline__ bool join_parts(Acc (&sums)[COUNT], const Part &part, Acc *partial,
                                           int64_t stride, unsigned *counters, Column column) {
    // Number of sums that a group loads together: the more groups there are, the fewer each loads.
    // More would cost registers.
    constexpr int FITS = 2 * GROUP / int(sizeof(Acc) * COUNT);
    constexpr int DEPTH = FITS < 1 || COUNT > 4 ? 1 : FITS > 4 ? 4 : FITS;
    const int lane = threadIdx.x % 32, group = lane / GROUP;
    const auto is_last = [&](Acc *to, unsigned *counter, int all, bool stores) {
        if (stores && group == 0) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (column(i) >= 0)
                    to[column(i)] = sums[i];
            }
        }
        __threadfence();
        __syncwarp();
        unsigned before = 0;
        if (lane == 0)
            before = atomicAdd(counter, 1u);
        if (int(__shfl_sync(ALL_LANES, before, 0)) != all - 1)
            return false;
        if (lane == 0)
            *counter = 0;
        __threadfence();
        return true;
    };
    const auto add_all = [&](const Acc *from, int64_t step, int count) {
        set_zero(sums);
#pragma unroll(DEPTH)
        for (int at = group; at < count; at += 32 / GROUP) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                if (column(i) >= 0)
                    sums[i] = add(sums[i], load_l2(from + at * step + column(i)));
            }
        }
        __syncwarp();
        add_groups<GROUP>(sums, 32 / GROUP);
    };
    const int joined = part.index / JOINED, all = (part.count + JOINED - 1) / JOINED;
    const int others = min(JOINED, part.count - joined * JOINED);
    Acc *const first = partial + part.first * stride;
    Acc *const of_joined = first + int64_t(joined) * JOINED * stride;
    counters += part.counter;
    if (!is_last(first + part.index * stride, counters + joined, others, !STORED))
        return false;
    add_all(of_joined, stride, others);
    if (all == 1)
        return true;
    // Replaces the first part's sums, which no other warp reads.
    __syncwarp();
    if (!is_last(of_joined, counters + all, all, true))
        return false;
    add_all(first, JOINED * stride, all);
    return true;
}

} // namespace tarsia
