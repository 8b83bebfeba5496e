// Partial sums that thread blocks of a launch hand to another block, through slots in the handle's
// counters. A slot is 16 bytes whose payload and flag are written by one access, so that neither a
// fence between the sum and its flag nor a contended atomic is needed.
//
// The reader of a slot spins until it is filled, so the blocks that fill it must be running: they
// have lower numbers, and blocks start in the order of their numbers. Reading a slot zeroes it.
#pragma once

#include "common/types.cuh"
#include "ptx/relaxed.cuh"

namespace tarsia {

// Number of 16-byte slot words, of 8 bytes' payload each, for a T.
template <class T> constexpr int SLOT_WORDS = (sizeof(T) + 7) / 8;

struct alignas(16) SlotWord {
    uint64_t payload, flag;
};

// Stores v in slot `number`.
template <class T>
__device__ __forceinline__ void fill_slot(SlotWord *slots, int64_t number, const T &v) {
    uint64_t words[SLOT_WORDS<T>] = {};
    memcpy(words, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < SLOT_WORDS<T>; ++i)
        store_relaxed(slots + number * SLOT_WORDS<T> + i, words[i], 1);
}

// Waits until a block of a lower number has filled slot `number`, then takes the value and zeroes
// the slot.
template <class T> __device__ __forceinline__ T await_slot(SlotWord *slots, int64_t number) {
    uint64_t words[SLOT_WORDS<T>];
#pragma unroll
    for (int i = 0; i < SLOT_WORDS<T>; ++i) {
        SlotWord *const p = slots + number * SLOT_WORDS<T> + i;
        SlotWord found;
        do {
            load_relaxed(p, found.payload, found.flag);
        } while (found.flag == 0);
        words[i] = found.payload;
        store_relaxed(p, 0, 0);
    }
    T out;
    memcpy(&out, words, sizeof out);
    return out;
}

} // namespace tarsia
