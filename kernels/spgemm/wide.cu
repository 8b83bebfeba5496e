// Rows of many entries in a bounded range of columns: a warp takes one window of
// WINDOW columns of one row, a task, and keeps a sum for each of them in shared
// memory, addressed by column. No two lanes add to one sum at a time: the warp
// takes the factors of the row one after the other, and the columns of one row
// of `right` are distinct. So a sum's order is that of the row's factors, with
// neither atomics nor turns.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;
// Columns of a window: 8 KiB of 64-bit sums leave a multiprocessor of an H100 24
// warps, and a bit for each is a 32-bit word for each lane.
constexpr int WINDOW = 1024;
// Entries of a row of `right` that a lane has in hand.
constexpr int HELD = 4;

struct Task {
    uint32_t row;
    uint32_t window;
};

// Where the entries of a row of `right` that fall into a window begin: row k has
// `windows` + 1 numbers, counted from the row's start.
struct Starts {
    const uint32_t *data;
    int64_t windows;

    __device__ __forceinline__ const uint32_t *at(int64_t k, int64_t window) const {
        return data + k * (windows + 1) + window;
    }
};

__device__ __forceinline__ bool take_task(const Task *tasks, int64_t count, int64_t &number,
                                          Task &task) {
    number = (first_item()) >> 5;
    if (number >= count)
        return false;
    task = tasks[number];
    return true;
}

// masks[32 · task + i] has the bits of columns 32 · i … of the window that the
// row has, counts[task] their number. `bits` are such words of all rows and
// windows of `right`, or NULL.
template <class J>
__device__ __forceinline__ void
count_task(const Factor &left, const Factor &right, const Starts &starts, const uint32_t *bits,
           const Task *tasks, int64_t count, uint32_t *masks, uint32_t *counts) {
    __shared__ __align__(16) uint8_t marks[THREADS / 32][WINDOW];
    int64_t number;
    Task task;
    if (!take_task(tasks, count, number, task))
        return;
    const J *columns = static_cast<const J *>(right.indices.data);
    const int64_t low = static_cast<int64_t>(task.window) * WINDOW + right.base;
    const int64_t end = left.start(task.row + 1);
    uint8_t *mine = marks[threadIdx.x >> 5];
    uint32_t word = 0;
    if (bits == nullptr) {
        for (int i = 0; i < WINDOW / 512; ++i)
            reinterpret_cast<uint4 *>(mine)[i * 32 + lane_id()] = make_uint4(0, 0, 0, 0);
        __syncwarp();
    }
    for (int64_t first = left.start(task.row); first < end; first += 32) {
        int64_t k = 0, from = 0;
        unsigned length = 0;
        if (first + lane_id() < end) {
            k = left.column(first + lane_id());
            const uint32_t *at = starts.at(k, task.window);
            length = at[1] - at[0];
            if (bits != nullptr) {
                from = (k * starts.windows + task.window) * 32;
            } else {
                from = right.start(k) + at[0];
            }
        }
        unsigned rest = __ballot_sync(ALL, length > 0);
        if (bits != nullptr) {
            while (rest != 0) {
                uint32_t found[HELD];
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    const int owner = rest != 0 ? __ffs(rest) - 1 : 0;
                    const int64_t at = __shfl_sync(ALL, from, owner);
                    found[h] = rest != 0 ? bits[at + lane_id()] : 0;
                    rest &= rest - 1;
                }
#pragma unroll
                for (int h = 0; h < HELD; ++h)
                    word |= found[h];
            }
        } else {
            for (; rest != 0; rest &= rest - 1) {
                const int owner = __ffs(rest) - 1;
                const int64_t at = __shfl_sync(ALL, from, owner) + lane_id();
                const unsigned all = __shfl_sync(ALL, length, owner);
                for (unsigned i = lane_id(); i < all; i += 32) {
                    const unsigned column =
                        static_cast<unsigned>(columns[at - lane_id() + i] - low);
                    if (column < WINDOW)
                        mine[column] = 1;
                }
            }
        }
    }
    if (bits == nullptr) {
        __syncwarp();
        const uint4 *own = reinterpret_cast<const uint4 *>(mine + 32 * lane_id());
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint4 four = own[half];
            const uint32_t parts[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                // The lowest bits of four bytes, side by side.
                word |= ((parts[i] * 0x10204080u) >> 28) << (16 * half + 4 * i);
            }
        }
    }
    masks[number * 32 + lane_id()] = word;
    const unsigned all = __reduce_add_sync(ALL, static_cast<unsigned>(__popc(word)));
    if (lane_id() == 0)
        counts[number] = all;
}

// What a lane holds of a row of `right`.
template <class B, class T> struct Hand {
    unsigned column[HELD];
    B value[HELD];
    T factor;
    unsigned length;
};

// Values (and columns) of the task's part of its row, from before[task] on.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_task(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
              const Scalar<T> &scale, const Starts &starts, const Task *tasks, int64_t count,
              const uint32_t *masks, const uint32_t *before, const Output &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    T *sums = reinterpret_cast<T *>(memory) + (threadIdx.x >> 5) * WINDOW;
    int64_t number;
    Task task;
    if (!take_task(tasks, count, number, task))
        return;
    const J *columns = static_cast<const J *>(right.indices.data);
    const int64_t low = static_cast<int64_t>(task.window) * WINDOW + right.base;
    const int64_t end = left.start(task.row + 1);
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    for (int i = lane_id(); i < WINDOW; i += 32)
        sums[i] = zero<T>();
    __syncwarp();

    int64_t first = left.start(task.row);
    int64_t from = 0, position = 0;
    unsigned length = 0, rest = 0, left_over = 0;
    T own = zero<T>(), factor = zero<T>();
    // The next entries of the row of `right` in hand, or of the next one.
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
                    own = widen<T>(left_values[first + lane_id()]);
                }
                rest = __ballot_sync(ALL, length > 0);
                first += 32;
            }
            const int owner = __ffs(rest) - 1;
            rest &= rest - 1;
            position = __shfl_sync(ALL, from, owner) + lane_id();
            left_over = __shfl_sync(ALL, length, owner);
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
                    hand.value[h] = right_values[position + 32 * h];
                }
            }
        }
        left_over -= hand.length;
        position += hand.length;
        return true;
    };
    auto add = [&](const Hand<B, T> &hand) {
        if (hand.length > 32) {
            T sum[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (32 * h < hand.length && hand.column[h] < WINDOW)
                    sum[h] = sums[hand.column[h]];
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (32 * h < hand.length && hand.column[h] < WINDOW)
                    sums[hand.column[h]] =
                        plus(sum[h], times(hand.factor, widen<T>(hand.value[h])));
            }
        } else if (hand.column[0] < WINDOW) {
            sums[hand.column[0]] =
                plus(sums[hand.column[0]], times(hand.factor, widen<T>(hand.value[0])));
        }
        // The next row of `right` may have the columns in other lanes.
        __syncwarp();
    };
    if (!vanishes) {
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
    const uint32_t word = masks[number * 32 + lane_id()];
    const int64_t base = static_cast<int64_t>(task.window) * WINDOW;
    int64_t place = out.offsets[task.row] + before[number];
    T *values = static_cast<T *>(out.values);
    J *kept = static_cast<J *>(out.kept);
    for (int i = 0; i < WINDOW / 32; ++i) {
        const uint32_t mask = __shfl_sync(ALL, word, i);
        if (mask >> lane_id() & 1) {
            const int64_t at = place + __popc(mask & lanes_before());
            const int64_t column = base + 32 * i + lane_id();
            values[at] = vanishes ? zero<T>() : times(alpha, sums[32 * i + lane_id()]);
            out.put_column(at, column);
            if (kept != nullptr && !out.known)
                kept[at] = static_cast<J>(column);
        }
        place += __popc(mask);
    }
}

} // namespace

// The starts of windows in the rows of `right`, whose columns ascend; `bits`
// (zeroed, or NULL) gains the bit of each entry. A warp a row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_wide_starts(Factor right, int64_t rows, int64_t windows, uint32_t *starts,
                       uint32_t *bits) {
    const int64_t warps = grid_stride() / 32;
    for (int64_t row = (first_item()) / 32; row < rows; row += warps) {
        const int64_t begin = right.start(row), end = right.start(row + 1);
        uint32_t *own = starts + row * (windows + 1);
        for (int64_t at = begin + lane_id(); at - lane_id() < end; at += 32) {
            int64_t column = 0, window = windows;
            if (at < end) {
                column = right.column(at);
                window = column / WINDOW;
                int64_t w = at == begin ? 0 : right.column(at - 1) / WINDOW + 1;
                for (; w <= window; ++w)
                    own[w] = static_cast<uint32_t>(at - begin);
            }
            if (bits != nullptr) {
                // One write for the lanes of a word: they are neighbours.
                const int64_t word = at < end ? column / 32 : -1 - lane_id();
                const unsigned peers = __match_any_sync(ALL, static_cast<int>(word));
                const unsigned mask = __reduce_or_sync(peers, at < end ? 1u << (column & 31) : 0u);
                if (at < end && (peers & lanes_before()) == 0)
                    atomicOr(bits + row * windows * 32 + word, mask);
            }
        }
        // Windows after the last entry's; an empty row has all its here.
        const int64_t last = begin < end ? right.column(end - 1) / WINDOW + 1 : 0;
        for (int64_t w = last + lane_id(); w <= windows; w += 32)
            own[w] = static_cast<uint32_t>(end - begin);
    }
}

// out[i] = windows of row list[i], whose columns are in [low, low + span).
extern "C" __global__ void __launch_bounds__(256)
    spgemm_wide_windows(const uint32_t *list, int64_t count, const int64_t *lows,
                        const int64_t *spans, int64_t *out) {
    const int64_t i = first_item();
    if (i >= count)
        return;
    const int64_t low = lows[list[i]];
    out[i] = (low + spans[list[i]] - 1) / WINDOW - low / WINDOW + 1;
}

// tasks[begin[i] …] = the windows of row list[i].
extern "C" __global__ void __launch_bounds__(256)
    spgemm_wide_tasks(const uint32_t *list, int64_t count, const int64_t *lows,
                      const int64_t *begin, Task *tasks) {
    const int64_t i = first_item();
    if (i >= count)
        return;
    uint32_t window = static_cast<uint32_t>(lows[list[i]] / WINDOW);
    for (int64_t at = begin[i]; at < begin[i + 1]; ++at)
        tasks[at] = {list[i], window++};
}

// counts[list[i]] = sum of the entries of the row's tasks, whose numbers become
// the sums of those before them. Rows have less than 2^32 entries. `counts` may be NULL.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_wide_sums(const uint32_t *list, int64_t count, const int64_t *begin, uint32_t *entries,
                     int64_t *counts) {
    const int64_t i = first_item();
    if (i >= count)
        return;
    uint32_t sum = 0;
    for (int64_t at = begin[i]; at < begin[i + 1]; ++at) {
        const uint32_t own = entries[at];
        entries[at] = sum;
        sum += own;
    }
    if (counts != nullptr)
        counts[list[i]] = sum;
}

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(Factor left, Factor right, Starts starts, const uint32_t *bits, const Task *tasks,    \
             int64_t count, uint32_t *masks, uint32_t *counts) {                                   \
        count_task<int##J##_t>(left, right, starts, bits, tasks, count, masks, counts);            \
    }
KERNELS(count, (), (spgemm_wide_count_32, 32), (spgemm_wide_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 4)                                       \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, Starts starts, const Task *tasks, int64_t count,                     \
             const uint32_t *masks, const uint32_t *before, Output out) {                          \
        let_next_begin();                                                                          \
        multiply_task<A, B, T, J>(left, right, left_values, right_values, alpha, starts, tasks,    \
                                  count, masks, before, out);                                      \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_wide_multiply_f64_32, f64, 32),
        (spgemm_wide_multiply_f32_32, f32, 32), (spgemm_wide_multiply_f16f32_32, f16f32, 32),
        (spgemm_wide_multiply_bf16f32_32, bf16f32, 32), (spgemm_wide_multiply_c32_32, c32, 32),
        (spgemm_wide_multiply_c64_32, c64, 32), (spgemm_wide_multiply_f64_64, f64, 64),
        (spgemm_wide_multiply_f32_64, f32, 64), (spgemm_wide_multiply_f16f32_64, f16f32, 64),
        (spgemm_wide_multiply_bf16f32_64, bf16f32, 64), (spgemm_wide_multiply_c32_64, c32, 64),
        (spgemm_wide_multiply_c64_64, c64, 64))
