// The size of a warp, and reductions and scans over the lanes of one. All lanes take part.
#pragma once

#include <cstdint>

namespace tarsia {

constexpr int WARP = 32;
// Mask of all lanes.
constexpr unsigned ALL_LANES = 0xffffffffu;

// Combines v with the values of the other lanes of each group of `lanes` neighbours, pairwise in a
// fixed order; every lane of a group gets the same result if `combine` is commutative.
template <class T, class Combine>
__device__ __forceinline__ T reduce_lanes(T v, int lanes, Combine combine) {
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        v = combine(v, T(__shfl_xor_sync(ALL_LANES, v, distance)));
    return v;
}
template <class T> __device__ __forceinline__ T warp_sum(T v) {
    return reduce_lanes(v, WARP, [](T a, T b) { return a + b; });
}
template <class T> __device__ __forceinline__ T warp_min(T v) {
    return reduce_lanes(v, WARP, [](T a, T b) { return b < a ? b : a; });
}
template <class T> __device__ __forceinline__ T warp_max(T v) {
    return reduce_lanes(v, WARP, [](T a, T b) { return b > a ? b : a; });
}

// Inclusive scan over the lanes: combine(values of the lanes before, own).
template <class T, class Combine> __device__ __forceinline__ T scan_lanes(T v, Combine combine) {
    const int lane = threadIdx.x % WARP;
    for (int distance = 1; distance < WARP; distance *= 2) {
        const T before = __shfl_up_sync(ALL_LANES, v, distance);
        if (lane >= distance)
            v = combine(before, v);
    }
    return v;
}
template <class T> __device__ __forceinline__ T prefix_sum(T v) {
    return scan_lanes(v, [](T a, T b) { return a + b; });
}

// Inclusive prefix sum over the lanes of a warp.
__device__ __forceinline__ int inclusive_sum(int v) {
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
        // The shuffle sets a predicate if there is a lane `delta` before.
        asm volatile("{\n"
                     ".reg .pred exists;\n"
                     ".reg .s32 before;\n"
                     "shfl.sync.up.b32 before|exists, %0, %1, 0, 0xffffffff;\n"
                     "@exists add.s32 %0, %0, before;\n"
                     "}"
                     : "+r"(v)
                     : "r"(delta));
    }
    return v;
}

} // namespace tarsia
