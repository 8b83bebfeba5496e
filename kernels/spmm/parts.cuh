// Row blocks that are cut into parts, whose sums the last part to come adds in their
// order: src/format/window.rs has the rules.
#pragma once

#include "common/types.cuh"
#include "format/window.cuh"

namespace tarsia::parts {

// Sums of parts: `part_count` a tile of columns; counters are zero between launches.
struct Join {
    void *sums;
    unsigned *counters;
    int64_t part_count, counter_count;
};

__device__ __forceinline__ Item load_item(const Item *from) {
    const uint4 v = __ldg(reinterpret_cast<const uint4 *>(from));
    return {v.x, v.y, v.z, v.w};
}

// Whether this part, whose sums have been left, is the last one of its row block to come; then
// those of all can be read. All threads that have sums of the part call it, this one of number
// `thread`; they wait for each other by `wait` and hand `last` on by `share`.
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
// The same of a warp.
__device__ __forceinline__ bool is_last(const Join &j, const Part &own, int64_t column_tile) {
    return is_last(
        j, own, column_tile, threadIdx.x & 31, [] { __syncwarp(); },
        [](bool last) { return __shfl_sync(~0u, int(last), 0) != 0; });
}

// Leaves a part's sums, COUNT a lane; true for the last part of its row block that
// comes, which then has the sums of all. A whole warp calls it.
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
    // As many at one time as registers hold: a row block of 100 parts would take 100 times
    // the latency of L2.
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
