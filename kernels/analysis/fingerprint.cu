// Two 64-bit hash sums of a pattern's arrays; src/matrix/fingerprint.rs defines them.

#include <cstdint>

#include "ptx/warp.cuh"

using namespace tarsia;

namespace {

using u64 = unsigned long long;

// src/matrix/fingerprint.rs has the same constants.
__device__ constexpr u64 STEPS[2] = {0x9e3779b97f4a7c15, 0xd1342543de82ef95};

__device__ __forceinline__ u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

template <class J>
__device__ __forceinline__ void fingerprint(const J *words, int64_t count, u64 array, u64 *sums) {
    u64 first = 0, second = 0;
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        const u64 word = u64(int64_t(words[at])), place = 2 * u64(at) + array + 1;
        first += mix(word + place * STEPS[0]);
        second += mix(word + place * STEPS[1]);
    }
    first = warp_sum(first);
    second = warp_sum(second);
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], first);
        atomicAdd(&sums[1], second);
    }
}

} // namespace

// Adds the hashes of array 0 or 1 of a matrix to sums[0] and sums[1]. Blocks consist of whole
// warps.
extern "C" __global__ void fingerprint_16(const int16_t *words, int64_t count, u64 array,
                                          u64 *sums) {
    fingerprint(words, count, array, sums);
}
extern "C" __global__ void fingerprint_32(const int32_t *words, int64_t count, u64 array,
                                          u64 *sums) {
    fingerprint(words, count, array, sums);
}
extern "C" __global__ void fingerprint_64(const int64_t *words, int64_t count, u64 array,
                                          u64 *sums) {
    fingerprint(words, count, array, sums);
}
