// Destination of a product's result, and source of the old values that beta multiplies.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// Stores alpha · sum + beta · old as the store of common/types.cuh does, but with the old value at
// its own address, which may be `to`.
template <class S, class Acc>
__device__ __forceinline__ void store(S *to, const S *old, Acc alpha, Acc sum, Acc beta) {
    Acc out = mul(alpha, sum);
    if (!is_zero(beta))
        out = fma(beta, widen<Acc>(*old), out);
    *to = narrow<S>(out);
}

// Element i of the result and its old value, in one array or in two that do not overlap. The
// address of the old values is used only if beta is not 0, and only when the sum is stored; since
// both addresses are kernel parameters, they take no registers before that.
template <class Y> struct Target {
    Y *to;
    const Y *old;

    template <class Acc>
    __device__ __forceinline__ void store(int64_t i, Acc alpha, Acc sum, Acc beta) const {
        tarsia::store(to + i, old + i, alpha, sum, beta);
    }

    // Stores the same as store, but computes the old value's address from the distance of the two
    // arrays, which is uniform across threads: this takes fewer registers where a thread stores
    // several elements.
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
