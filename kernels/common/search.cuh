// Binary searches in [low, high) for the number from which on a predicate `f` no longer holds.
#pragma once

#include "ptx/warp.cuh"

namespace tarsia {

// First number for which `f` does not hold; `high` if it holds for all.
template <class F>
__device__ __forceinline__ int64_t first_where_not(int64_t low, int64_t high, F f) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (f(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Last number for which `f` holds; it must hold for `low`.
template <class F> __device__ __forceinline__ int64_t last_where(int64_t low, int64_t high, F f) {
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (f(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// Last number below `count` for which `f` holds, found by all lanes of a warp; it must hold for 0.
// Each step costs a memory latency, so the lanes test as many numbers as lie in a few lines of L1.
template <class F> __device__ __forceinline__ int last_where_by_warp(int count, F f) {
    constexpr int TRIES = 4;
    const int lane = threadIdx.x % WARP;
    int last = 0;
    // The number is less than `step` above `last`.
    for (int step = count, finer; step > 1; step = finer) {
        finer = (step + TRIES * WARP - 1) / (TRIES * WARP);
        bool holds[TRIES];
#pragma unroll
        for (int i = 0; i < TRIES; ++i) {
            const int ahead = (i * WARP + lane + 1) * finer;
            holds[i] = ahead < step && last + ahead < count && f(last + ahead);
        }
        int steps = 0;
#pragma unroll
        for (int i = 0; i < TRIES; ++i)
            steps += __popc(__ballot_sync(ALL_LANES, holds[i]));
        last += steps * finer;
    }
    return last;
}

// Number of the range that holds `at`, of `count` ranges that begin at `starts`: the last one that
// begins at or before it.
__device__ __forceinline__ int64_t range_of(const int64_t *starts, int64_t count, int64_t at) {
    return last_where(0, count, [&](int64_t number) { return starts[number] <= at; });
}

} // namespace tarsia
