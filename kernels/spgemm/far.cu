// Wide rows whose rows of `right` are scattered, so that few of their entries are in
// a window of wide.cu: a warp takes a window of WINDOW columns of one row, where a
// bitmap with ranks gives each column the place of its sum. Else as there.
#include "spgemm/wide.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;
// Columns of a window: its bits and ranks take 4 KiB, its bits alone 2.
constexpr int WINDOW = 16384, WORDS = WINDOW / 32;
// Sums that a warp has room for: with the ranks a multiprocessor of an H100 holds 16
// warps of 64-bit sums. Windows of more entries are summed part by part.
constexpr int ROOM = 1216;
// Entries of a row of `right` that a lane has in hand.
constexpr int HELD = 4;

// What a lane holds of a row of `right`.
template <class B, class T> struct Hand {
    unsigned column[HELD];
    B value[HELD];
    T factor;
    unsigned length;
};

// Calls add(hand) for the parts of a task's rows of `right`, in the order of the
// row's factors; the next is under way meanwhile. Without VALUES only columns are
// read. Column numbers are in the window; others are no less than WINDOW.
template <bool VALUES, class A, class B, class T, class J, class F>
__device__ __forceinline__ void for_hands(const Factor &left, const Factor &right,
                                          const A *left_values, const B *right_values,
                                          const Starts &starts, const Task &task, F add) {
    const J *columns = static_cast<const J *>(right.indices.data);
    const int64_t low = static_cast<int64_t>(task.window) * WINDOW + right.base;
    const int64_t end = left.start(task.row + 1);
    int64_t first = left.start(task.row), from = 0, position = 0;
    unsigned length = 0, rest = 0, left_over = 0;
    T own = zero<T>(), factor = zero<T>();
    auto take = [&](Hand<B, T> &hand) -> bool {
        if (left_over == 0) {
            while (rest == 0) {
                if (first >= end)
                    return false;
                length = 0;
                if (first + lane_id() < end) {
                    const int64_t k = left.column(first + lane_id());
                    const uint32_t *at = starts.at(k, task.window);
                    from = right.start(k) + at[0];
                    length = at[1] - at[0];
                    if constexpr (VALUES)
                        own = widen<T>(left_values[first + lane_id()]);
                }
                rest = __ballot_sync(ALL, length > 0);
                first += 32;
            }
            const int owner = __ffs(rest) - 1;
            rest &= rest - 1;
            position = __shfl_sync(ALL, from, owner) + lane_id();
            left_over = __shfl_sync(ALL, length, owner);
            if constexpr (VALUES)
                factor = from_lane(own, owner);
        }
        hand.length = min(left_over, 32u * HELD);
        hand.factor = factor;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            // Uniform but for the last.
            if (32 * h < hand.length) {
                hand.column[h] = WINDOW;
                if (32 * h + lane_id() < hand.length) {
                    hand.column[h] = static_cast<unsigned>(columns[position + 32 * h] - low);
                    if constexpr (VALUES)
                        hand.value[h] = right_values[position + 32 * h];
                }
            }
        }
        left_over -= hand.length;
        position += hand.length;
        return true;
    };
    Hand<B, T> here, next;
    bool more = take(here);
    while (more) {
        more = take(next);
        add(here);
        if (!more)
            break;
        more = take(here);
        add(next);
    }
}

__device__ __forceinline__ void set_bit(uint32_t *word, uint32_t bit) {
    // Looked at first: most products meet a column that is there already.
    if ((*const_cast<volatile uint32_t *>(word) & bit) == 0)
        atomicOr(word, bit);
}

// Sets the bits of the task's columns: `stride` words between words of bits.
template <class J>
__device__ __forceinline__ void mark(const Factor &left, const Factor &right, const Starts &starts,
                                     const Task &task, uint32_t *words, int stride) {
    const int *none = nullptr;
    for_hands<false, int, int, int, J>(
        left, right, none, none, starts, task, [&](const Hand<int, int> &hand) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (32 * h < hand.length && hand.column[h] < WINDOW)
                    set_bit(words + stride * (hand.column[h] >> 5), 1u << (hand.column[h] & 31));
            }
        });
    __syncwarp();
}

// counts[task] = distinct columns of the task.
template <class J>
__device__ __forceinline__ void count_task(const Factor &left, const Factor &right,
                                           const Starts &starts, const Task *tasks, int64_t count,
                                           uint32_t *counts) {
    __shared__ uint32_t bits[THREADS / 32][WORDS];
    int64_t number;
    Task task;
    if (!take_task(tasks, count, number, task))
        return;
    uint32_t *words = bits[threadIdx.x >> 5];
    for (int i = lane_id(); i < WORDS; i += 32)
        words[i] = 0;
    __syncwarp();
    mark<J>(left, right, starts, task, words, 1);
    unsigned found = 0;
    for (int i = lane_id(); i < WORDS; i += 32)
        found += __popc(words[i]);
    found = __reduce_add_sync(ALL, found);
    if (lane_id() == 0)
        counts[number] = found;
}

// Values (and columns) of the task's part of its row, from before[task] on. Shared
// memory a warp: WORDS words of bits, each with its rank, and ROOM sums.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_task(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
              const Scalar<T> &scale, const Starts &starts, const Task *tasks, int64_t count,
              const uint32_t *before, const Output &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int BYTES = WORDS * sizeof(uint2) + ROOM * sizeof(T);
    uint2 *words = reinterpret_cast<uint2 *>(memory + (threadIdx.x >> 5) * BYTES);
    T *sums = reinterpret_cast<T *>(words + WORDS);
    int64_t number;
    Task task;
    if (!take_task(tasks, count, number, task))
        return;
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    const int64_t base = static_cast<int64_t>(task.window) * WINDOW;
    const int64_t place = out.offsets[task.row] + before[number];
    const int64_t last = out.offsets[task.row + 1];
    J *kept = static_cast<J *>(out.kept);
    for (int i = lane_id(); i < WORDS; i += 32)
        words[i] = make_uint2(0, 0);
    __syncwarp();
    if (out.known) {
        for (int64_t i = place + lane_id(); i < last; i += 32) {
            const int64_t column = static_cast<int64_t>(kept[i]) - base;
            if (column < 0 || column >= WINDOW)
                break;
            set_bit(&words[column >> 5].x, 1u << (column & 31));
        }
        __syncwarp();
    } else {
        mark<J>(left, right, starts, task, &words[0].x, 2);
    }
    int entries = 0;
    for (int first = 0; first < WORDS; first += 32) {
        uint2 word = words[first + lane_id()];
        const int own = __popc(word.x), sum = warp_sums(own);
        word.y = entries + sum - own;
        words[first + lane_id()] = word;
        entries += __shfl_sync(ALL, sum, 31);
        // Lanes of words with few columns write near each other.
        for (int64_t at = place + word.y; word.x != 0 && at < last; word.x &= word.x - 1, ++at) {
            const int64_t column = base + 32 * (first + lane_id()) + __ffs(word.x) - 1;
            out.put_column(at, column);
            if (!out.known && kept != nullptr)
                kept[at] = static_cast<J>(column);
        }
    }
    // Only where the pattern changed after analysis.
    if (place + entries > last)
        return;
    __syncwarp();
    T *values = static_cast<T *>(out.values) + place;
    for (int first = 0; first < entries; first += ROOM) {
        const int now = min(ROOM, entries - first);
        for (int i = lane_id(); i < now; i += 32)
            sums[i] = zero<T>();
        __syncwarp();
        if (!vanishes) {
            for_hands<true, A, B, T, J>(
                left, right, left_values, right_values, starts, task, [&](const Hand<B, T> &hand) {
                    unsigned slot[HELD];
#pragma unroll
                    for (int h = 0; h < HELD; ++h) {
                        slot[h] = ROOM;
                        if (32 * h < hand.length && hand.column[h] < WINDOW) {
                            const uint2 word = words[hand.column[h] >> 5];
                            slot[h] = word.y - first +
                                      __popc(word.x & ((1u << (hand.column[h] & 31)) - 1));
                        }
                    }
#pragma unroll
                    for (int h = 0; h < HELD; ++h) {
                        if (slot[h] < now) {
                            sums[slot[h]] =
                                plus(sums[slot[h]], times(hand.factor, widen<T>(hand.value[h])));
                        }
                    }
                    // The next row of `right` may have the columns in other lanes.
                    __syncwarp();
                });
        }
        __syncwarp();
        for (int i = lane_id(); i < now; i += 32)
            values[first + i] = vanishes ? zero<T>() : times(alpha, sums[i]);
        __syncwarp();
    }
}

} // namespace

#define COUNT(name, J)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS, 10)                                      \
        spgemm_far_count_##name(Factor left, Factor right, Starts starts, const Task *tasks,       \
                                int64_t count, uint32_t *counts) {                                 \
        count_task<J>(left, right, starts, tasks, count, counts);                                  \
    }
COUNT(32, int32_t)
COUNT(64, int64_t)

#define MULTIPLY(combo, A, B, T, name, J)                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) spgemm_far_multiply_##combo##_##name( \
        Factor left, Factor right, const A *left_values, const B *right_values, Scalar<T> alpha,   \
        Starts starts, const Task *tasks, int64_t count, const uint32_t *before, Output out) {     \
        let_next_begin();                                                                          \
        multiply_task<A, B, T, J>(left, right, left_values, right_values, alpha, starts, tasks,    \
                                  count, before, out);                                             \
        end_after_previous();                                                                      \
    }
TARSIA_FOR_EACH_SPGEMM(MULTIPLY, 32, int32_t)
TARSIA_FOR_EACH_SPGEMM(MULTIPLY, 64, int64_t)
