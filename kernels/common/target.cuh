// Where a product's result goes, and where the old values are that beta multiplies.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// As store of common/types.cuh, with the old value in another place than the result goes, or there.
template <class S, class Acc>
__device__ __forceinline__ void store(S *to, const S *old, Acc alpha, Acc sum, Acc beta) {
    Acc out = mul(alpha, sum);
    if (!is_zero(beta))
        out = fma(beta, widen<Acc>(*old), out);
    *to = narrow<S>(out);
}

// Element i of the result and its old value, in one array or in two that share no memory. The old
// values' address is used only where beta is not 0, and only when the sum is stored: both
// addresses are the kernel's parameters, which take no registers before.
template <class Y> struct Target {
    Y *to;
    const Y *old;

    template <class Acc>
    __device__ __forceinline__ void store(int64_t i, Acc alpha, Acc sum, Acc beta) const {
        tarsia::store(to + i, old + i, alpha, sum, beta);
    }

    // The same by one address and the distance of the two arrays, which is the same for all
    // threads: fewer registers where a thread stores several elements.
    template <class Acc>
    __device__ __forceinline__ void store_by_distance(int64_t i, Acc alpha, Acc sum,
                                                      Acc beta) const {
        const auto bytes = [](const void *at) { return static_cast<const char *>(at); };
        const int64_t distance = bytes(old) - bytes(to);
        const void *was = bytes(to + i) + distance;
        tarsia::store(to + i, static_cast<const Y *>(was), alpha, sum, beta);
    }
};

} // namespace tarsia
