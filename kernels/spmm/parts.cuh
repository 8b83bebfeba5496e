// Addition of the partial sums of row blocks that are cut into parts (src/format/window.rs has the
// rules): the part that arrives last adds them in the order of the parts.
#pragma once

#include "common/types.cuh"
#include "format/window.cuh"

namespace tarsia::parts {

// Memory for partial sums, with `part_count` parts per tile of columns; counters are zero between
// launches.
struct Join {
    void *sums;
    unsigned *counters;
    int64_t part_count, counter_count;
};

__device__ __forceinline__ Item load_item(const Item *from) {
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));
    return {v.x, v.y, v.z, v.w};
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
// Form of is_last for a part whose sums are in one warp.
__device__ __forceinline__ bool is_last(const Join &j, const Part &own, int64_t column_tile) {
    return is_last(
        j, own, column_tile, threadIdx.x & 31, [] { __syncwarp(); },
        [](bool last) { return __shfl_sync(~0u, int(last), 0) != 0; });
}

// Stores a part's sums, COUNT per lane. Returns true in the last part of its row block to arrive,
// which then has the sums of all parts. Called by a whole warp.
template <int COUNT, class Acc>
__device__ __forceinline__ bool join(const Part *parts, const Join &j, uint32_t part,
                                     int64_t column_tile, Acc (&sums)[COUNT]) {
    const int lane = threadIdx.x & 31;
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(parts + part));
    const Part own = {v.x, v.y, v.z, v.w};
    Acc *const all =
        static_cast<Acc *>(j.sums) + column_tile * j.part_count * (int64_t(COUNT) * 32) + lane;
    const auto at = [&](uint32_t number) { return all + int64_t(number) * (COUNT * 32); };
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        at(part)[i * 32] = sums[i];
    if (!is_last(j, own, column_tile))
        return false;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        sums[i] = 0;
    // Loads as many parts at one time as registers hold: one by one, a row block of 100 parts would
    // take 100 times the latency of L2.
    constexpr int U = COUNT * sizeof(Acc) <= 16 ? 8 : 2;
    const uint32_t end = own.first + own.count;
#pragma unroll 1
    for (uint32_t number = own.first; number < end; number += U) {
        Acc loaded[U][COUNT];
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) {
                loaded[u][i] = 0;
                if (number + u < end)
                    loaded[u][i] = __ldcg(at(number + u) + i * 32);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                sums[i] += loaded[u][i];
        }
    }
    return true;
}

} // namespace tarsia::parts
