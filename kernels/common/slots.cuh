// Sums that thread blocks of a launch hand to another one, by slots of the handle's
// counters: 16 bytes with a flag that come and go together, so that no fence is needed
// between the sum and what says that it is there, nor an atomic that all wait for.
//
// Who reads a slot waits for it, so blocks that fill it must run: they have lower
// numbers, and blocks start in the order of their numbers. A read slot is zero again.
#pragma once

#include "common/types.cuh"

namespace tarsia {

// Slots of 8 bytes' payload that a T takes.
template <class T> constexpr int SLOT_WORDS = (sizeof(T) + 7) / 8;

struct alignas(16) SlotWord {
    uint64_t payload, flag;
};

namespace detail {

__device__ __forceinline__ void store_slot(SlotWord *p, uint64_t payload, uint64_t flag) {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; "
                 "st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(p),
                 "l"(payload), "l"(flag)
                 : "memory");
}
__device__ __forceinline__ SlotWord load_slot(const SlotWord *p) {
    SlotWord out;
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; "
                 "mov.b128 {%0, %1}, both; }"
                 : "=l"(out.payload), "=l"(out.flag)
                 : "l"(p)
                 : "memory");
    return out;
}

} // namespace detail

// Leaves v in slot `number`.
template <class T>
__device__ __forceinline__ void leave(SlotWord *slots, int64_t number, const T &v) {
    uint64_t words[SLOT_WORDS<T>] = {};
    memcpy(words, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < SLOT_WORDS<T>; ++i)
        detail::store_slot(slots + number * SLOT_WORDS<T> + i, words[i], 1);
}

// Waits for what a block of a lower number leaves in slot `number`, and takes it.
template <class T> __device__ __forceinline__ T take(SlotWord *slots, int64_t number) {
    uint64_t words[SLOT_WORDS<T>];
#pragma unroll
    for (int i = 0; i < SLOT_WORDS<T>; ++i) {
        SlotWord *const p = slots + number * SLOT_WORDS<T> + i;
        SlotWord found;
        do {
            found = detail::load_slot(p);
        } while (found.flag == 0);
        words[i] = found.payload;
        detail::store_slot(p, 0, 0);
    }
    T out;
    memcpy(&out, words, sizeof out);
    return out;
}

} // namespace tarsia
