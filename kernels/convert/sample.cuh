// Which parts of a matrix are looked at: one of each of equal parts.
#pragma once

#include <cstdint>

namespace tarsia::convert {

// Which of `runs` is sample k of `samples`, as src/select/survey.rs has it; fewer than 2^31 runs
// times 2^10.
__device__ inline int64_t run_of(uint64_t k, uint64_t samples, uint64_t runs) {
    const uint64_t first = k * runs / samples, next = (k + 1) * runs / samples;
    return int64_t(first + (k * 0x9E3779B97F4A7C15ull >> 33) % (next - first));
}

// Which of `all` is number k of `drawn`, as src/select/features.rs has it (`is_drawn`).
__device__ inline int64_t drawn_of(uint64_t k, uint64_t drawn, uint64_t all) {
    constexpr uint64_t SEED = 0x5EEDB10C, INCREMENT = 0x9E3779B97F4A7C15ull;
    const uint64_t first = (k * all + drawn - 1) / drawn;
    const uint64_t next = ((k + 1) * all + drawn - 1) / drawn;
    // splitmix64 after k draws.
    uint64_t z = SEED + (k + 1) * INCREMENT;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return int64_t(first + __umul64hi(z, next - first));
}

} // namespace tarsia::convert
