// Arithmetic that compilers do not always find in plain C++.
#pragma once

#include <cstdint>

namespace tarsia {

// Product of 32-bit numbers as a 64-bit number, by one instruction: where one factor does not
// change in a loop, compilers widen it before the loop and multiply two 64-bit numbers inside.
__device__ __forceinline__ int64_t multiply_wide(int32_t a, int32_t b) {
    int64_t out;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(out) : "r"(a), "r"(b));
    return out;
}

} // namespace tarsia
