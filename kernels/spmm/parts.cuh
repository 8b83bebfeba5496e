// Addition of the partial sums of row blocks that are split into parts (src/format/window.rs has
// the rules): the part that arrives last adds them in the order of the parts.
#pragma once

#include "common/types.cuh"
#include "format/window.cuh"
#include "ptx/warp.cuh"

namespace tarsia::parts {

// Memory for partial sums, with `part_count` parts per tile of columns; counters are zero between
// launches.
struct Join {
    void *sums;
    unsigned *counters;
    int64_t part_count, counter_count;
};

__device__ __forceinline__ WorkItem load_item(const WorkItem *from) {
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));
    return {v.x, v.y, v.z, v.w};
}
__device__ __forceinline__ Part load_part(const Part *from) {
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));
    return {v.x, v.y, v.z, v.w};
}

// Returns the item with the blocks of its whole window or row block.
template <class Matrix>
__device__ __forceinline__ WorkItem whole_of(const Matrix &m, WorkItem item) {
    if (item.part != WHOLE) {
        const Part own = m.parts[item.part];
        item.first = m.items[own.first].first;
        item.end = m.items[own.first + own.count - 1].end;
    }
    return item;
}

// Returns whether this part, whose sums have been stored, is the last one of its row block to
// arrive; the sums of all parts can then be read. Called by all threads that have sums of the part,
// this one with number `thread`; they synchronize by `wait`, and `share` broadcasts the result.
template <class Wait, class Share>
__device__ __forceinline__ bool is_last(const Join &j, const Part &own, int64_t column_tile,
                                        int thread, Wait wait, Share share) {
    __threadfence();
    wait();
    unsigned *const counter = j.counters + column_tile * j.counter_count + own.counter;
    bool last = false;
    if (thread == 0) {
        last = atomicAdd(counter, 1) == own.count - 1;
        if (last)
            *counter = 0;
    }
    if (!share(last))
        return false;
    __threadfence();
    return true;
}
// Returns whether a part is the last one of its row to end, where one warp has the sums of the
// part.
__device__ __forceinline__ bool is_last(const Join &j, const Part &own, int64_t column_tile) {
    return is_last(
        j, own, column_tile, threadIdx.x & 31, [] { __syncwarp(); },
        [](bool last) { return __shfl_sync(ALL_LANES, int(last), 0) != 0; });
}

// Stores a part's sums. Returns true in the last part of a row block to arrive, which then has the
// sums of all parts, added in the order of the parts. Called by all threads that have sums of the
// part: `threads` of them, this one with number `thread`. They synchronize by `wait`, and `share`
// broadcasts the result. Loads of AT_ONCE parts are in flight at one time: one part after the
// other, a row of 114,000 entries (dc2, fp32, N = 32) took 80 µs.
template <int AT_ONCE, class Acc, int COUNT, class Wait, class Share>
__device__ __forceinline__ bool join(const Part *parts, const Join &j, uint32_t part,
                                     int64_t column_tile, Acc (&sums)[COUNT][4], int thread,
                                     int threads, Wait wait, Share share) {
    const Part own = load_part(parts + part);
    Acc *const all = static_cast<Acc *>(j.sums) +
                     column_tile * j.part_count * (int64_t(COUNT) * 4 * threads) + thread;
    const auto at = [&](uint32_t number) { return all + int64_t(number) * (COUNT * 4) * threads; };
#pragma unroll
    for (int i = 0; i < COUNT * 4; ++i)
        at(part)[int64_t(i) * threads] = sums[i / 4][i % 4];
    if (!is_last(j, own, column_tile, thread, wait, share))
        return false;
    set_zero(sums);
#pragma unroll AT_ONCE
    for (uint32_t number = own.first; number < own.first + own.count; ++number) {
#pragma unroll
        for (int i = 0; i < COUNT * 4; ++i)
            sums[i / 4][i % 4] += __ldcg(at(number) + int64_t(i) * threads);
    }
    return true;
}

// Joins the sums of an item that is a part, which the THREADS threads of a block or of a warp have.
// Returns whether these threads have the sums of the whole window or row block, and must store
// them.
template <int THREADS, int AT_ONCE, class Matrix, class Acc, int COUNT>
__device__ __forceinline__ bool has_whole_sums(const Matrix &m, const Join &j, const WorkItem &item,
                                               int64_t column_tile, Acc (&sums)[COUNT][4],
                                               int thread) {
    if (item.part == WHOLE)
        return true;
    if constexpr (THREADS == WARP) {
        return join<AT_ONCE>(
            m.parts, j, item.part, column_tile, sums, thread, THREADS, [] { __syncwarp(); },
            [](bool mine) { return __shfl_sync(ALL_LANES, int(mine), 0) != 0; });
    } else {
        return join<AT_ONCE>(
            m.parts, j, item.part, column_tile, sums, thread, THREADS, [] { __syncthreads(); },
            [](bool mine) { return __syncthreads_or(mine) != 0; });
    }
}
// Number of parts of COUNT · 4 sums per thread whose loads take at most 32 numbers.
template <int COUNT> constexpr int PARTS_AT_ONCE = COUNT * 4 >= 32 ? 1 : 32 / (COUNT * 4);

} // namespace tarsia::parts
