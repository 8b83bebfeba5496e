// Rows of many entries in a bounded range of columns. A task is one window of WINDOW columns of one
// row; a warp takes it and keeps a sum for each column in shared memory, addressed by column. The
// warp takes the entries of the row of `left` one after the other, and the columns of one row of
// `right` are distinct, so that no two lanes add to one sum at a time. Where rows of `right` are
// very short, lanes take products of several rows, and those of one sum take turns. So each sum is
// in the order of the row's entries of `left`.
//
// Rows of very many entries of `left` are cut into parts, with one task per part and window. A part
// has the column bits and the sums of its own entries; those of all parts of a window are combined
// in the order of the parts.
#include "spgemm/common.cuh"
#include "spgemm/tasks.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;
// Number of entries of a row of `right` that a lane holds at a time.
constexpr int HELD = 4;

// Sums of the later parts of split rows. Those of row number `index` of the list begin at
// before[index]: one for each entry of the row for part 1, then as many for part 2, and so on.
struct Partial {
    const int64_t *before;
    void *sums;
};

// Start of each window in the rows of `right`: row k has `windows` + 1 numbers, counted from the
// start of the row. NULL if there is only one window.
struct Starts {
    const uint32_t *data;
    int64_t windows;
};

// Finds the entries of row k of `right` that are in a window.
__device__ __forceinline__ void find_entries(const Factor &right, const Starts &starts, int64_t k,
                                             int64_t window, int64_t &from, unsigned &length) {
    from = right.start(k);
    if (starts.data != nullptr) {
        const uint32_t *at = starts.data + k * (starts.windows + 1) + window;
        length = at[1] - at[0];
        from += at[0];
    } else {
        length = static_cast<unsigned>(right.start(k + 1) - from);
    }
}

// Finds the entries of `left` that a task takes; returns the number of parts of its row.
__device__ __forceinline__ int64_t find_left_entries(const Factor &left, const Cut &cut,
                                                     const Task &task, int64_t &begin,
                                                     int64_t &end) {
    begin = left.start(task.row);
    end = left.start(task.row + 1);
    const int64_t parts = cut.parts(end - begin);
    if (parts > 1) {
        begin += task.part * cut.part;
        end = min(end, begin + cut.part);
    }
    return parts;
}

// Returns the lane's word of the mask of a task's columns, from `bits`: such words for all rows and
// windows of `right`.
__device__ __forceinline__ uint32_t mask_of_bits(const Factor &left, const Factor &right,
                                                 const Starts &starts, const uint32_t *bits,
                                                 int64_t window, int64_t begin, int64_t end) {
    uint32_t word = 0;
    const auto range = [&](int64_t, int64_t k, int64_t &from, unsigned &length) {
        find_entries(right, starts, k, window, from, length);
        from = (k * starts.windows + window) * 32;
    };
    for_rows_ahead(left, begin, end, range, [&](int64_t, int64_t from, unsigned length) {
        unsigned rest = __ballot_sync(ALL_LANES, length > 0);
        while (rest != 0) {
            uint32_t found[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const int owner = rest != 0 ? __ffs(rest) - 1 : 0;
                const int64_t at = __shfl_sync(ALL_LANES, from, owner);
                found[h] = rest != 0 ? bits[at + lane_id()] : 0;
                rest &= rest - 1;
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h)
                word |= found[h];
        }
    });
    return word;
}

// Returns the same from the columns of `right`; `marks` has a byte for each column of the window.
template <class J>
__device__ __forceinline__ uint32_t mask_of_columns(const Factor &left, const Factor &right,
                                                    const Starts &starts, int64_t window,
                                                    int64_t begin, int64_t end, uint8_t *marks) {
    for (int i = 0; i < WINDOW / 512; ++i)
        reinterpret_cast<uint4 *>(marks)[i * 32 + lane_id()] = make_uint4(0, 0, 0, 0);
    __syncwarp();
    const J *columns = static_cast<const J *>(right.indices.data);
    const int64_t low = window * WINDOW + right.base;
    const auto range = [&](int64_t, int64_t k, int64_t &from, unsigned &length) {
        find_entries(right, starts, k, window, from, length);
    };
    for_rows_ahead(left, begin, end, range, [&](int64_t, int64_t from, unsigned length) {
        unsigned column[HELD];
        for_products_ahead<HELD>(
            from, length,
            [&](int h, bool active, int, int64_t at) {
                column[h] = active ? static_cast<unsigned>(columns[at] - low) : WINDOW;
            },
            [&](int h, bool) {
                if (column[h] < WINDOW)
                    marks[column[h]] = 1;
            });
    });
    __syncwarp();
    uint32_t word = 0;
    const uint4 *own = reinterpret_cast<const uint4 *>(marks + 32 * lane_id());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const uint4 four = own[half];
        const uint32_t words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Packs the lowest bits of four bytes.
            word |= ((words[i] * 0x10204080u) >> 28) << (16 * half + 4 * i);
        }
    }
    return word;
}

// masks[32 · task + i] = bits of the columns 32 · i … of the window that the row has;
// entry_counts[task] = their number. `bits` may be NULL.
template <class J>
__device__ __forceinline__ void count_task(const Factor &left, const Factor &right, const Cut &cut,
                                           const Starts &starts, const uint32_t *bits,
                                           const Task *tasks, int64_t count, uint32_t *masks,
                                           uint32_t *entry_counts) {
    __shared__ __align__(16) uint8_t marks[THREADS / 32][WINDOW];
    int64_t number;
    Task task;
    if (!take_item(tasks, count, number, task))
        return;
    int64_t begin, end;
    find_left_entries(left, cut, task, begin, end);
    const uint32_t word = bits != nullptr
                              ? mask_of_bits(left, right, starts, bits, task.window, begin, end)
                              : mask_of_columns<J>(left, right, starts, task.window, begin, end,
                                                   marks[threadIdx.x >> 5]);
    masks[number * 32 + lane_id()] = word;
    const unsigned all = __reduce_add_sync(ALL_LANES, static_cast<unsigned>(__popc(word)));
    if (lane_id() == 0)
        entry_counts[number] = all;
}

// Entries of a row of `right` that a lane holds, with the value of `left` that multiplies them.
template <class B, class T> struct Hand {
    unsigned column[HELD];
    B value[HELD];
    T multiplier;
    unsigned length;

    // Adds the products to the sums of the window.
    __device__ __forceinline__ void add(T *sums) const {
        if (length > 32) {
            T sum[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (32 * h < length && column[h] < WINDOW)
                    sum[h] = sums[column[h]];
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (32 * h < length && column[h] < WINDOW)
                    sums[column[h]] = plus(sum[h], times(multiplier, widen<T>(value[h])));
            }
        } else if (column[0] < WINDOW) {
            sums[column[0]] = plus(sums[column[0]], times(multiplier, widen<T>(value[0])));
        }
        // Another lane may have the same columns in the next row of `right`.
        __syncwarp();
    }
};

// Entries of a task's rows of `right` in the window, row after row, which a warp takes 32 · HELD at
// a time.
template <class A, class B, class T, class J> struct Entries {
    const Factor &left, &right;
    const A *left_values;
    const B *right_values;
    const Starts &starts;
    int64_t window, low, end;
    // First entry of `left` that no lane has taken.
    int64_t first;
    // Value of the lane's entry of `left`, and the entries of the row of `right` that it meets.
    T own = zero<T>();
    int64_t from = 0;
    unsigned length = 0;
    // Lanes whose rows are yet to be taken; position, length and multiplier of the row in hand.
    unsigned rest = 0;
    int64_t position = 0;
    unsigned left_over = 0;
    T multiplier = zero<T>();

    // Goes to the next row; returns false if there is none.
    __device__ __forceinline__ bool next_row() {
        while (rest == 0) {
            if (first >= end)
                return false;
            length = 0;
            if (first + lane_id() < end) {
                find_entries(right, starts, left.column(first + lane_id()), window, from, length);
                own = widen<T>(left_values[first + lane_id()]);
            }
            rest = __ballot_sync(ALL_LANES, length > 0);
            first += 32;
        }
        const int owner = __ffs(rest) - 1;
        rest &= rest - 1;
        position = __shfl_sync(ALL_LANES, from, owner) + lane_id();
        left_over = __shfl_sync(ALL_LANES, length, owner);
        multiplier = from_lane(own, owner);
        return true;
    }

    // Loads the next entries of the row in hand, or of the next one; returns false after the last.
    __device__ __forceinline__ bool load(Hand<B, T> &hand) {
        if (left_over == 0 && !next_row())
            return false;
        const J *columns = static_cast<const J *>(right.indices.data);
        hand.length = min(left_over, 32u * HELD);
        hand.multiplier = multiplier;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            // This condition is uniform across the warp; the next one is not for the last entries.
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
    }

    // Adds all products to the sums of the window; entries are loaded one step ahead.
    __device__ __forceinline__ void add_all(T *sums) {
        Hand<B, T> here, next;
        bool more = load(here);
        while (more) {
            more = load(next);
            here.add(sums);
            if (!more)
                break;
            more = load(here);
            next.add(sums);
        }
    }
};

// Stores the sums of task `number`, whose row has `parts` parts: those of the first part in C, with
// the columns, and those of the others in `partial`. entry_starts[number - task.part] is the number
// of entries that the row has before the window.
template <class T, class J>
__device__ __forceinline__ void store_window(const Task &task, int64_t number, int64_t parts,
                                             const T *sums, const Scale<T> &alpha,
                                             const uint32_t *masks, const uint32_t *entry_starts,
                                             const Partial &partial, const Output &out) {
    // Mask and position of a window are stored with its first part.
    const int64_t whole = number - task.part;
    const uint32_t word = masks[whole * 32 + lane_id()];
    const int64_t base = static_cast<int64_t>(task.window) * WINDOW;
    int64_t place = out.offsets[task.row] + entry_starts[whole];
    T *values = static_cast<T *>(out.values);
    if (task.part > 0) {
        if (alpha.vanishes)
            return;
        const int64_t entries = out.offsets[task.row + 1] - out.offsets[task.row];
        values = static_cast<T *>(partial.sums);
        place = partial.before[task.index] + (task.part - 1) * entries + entry_starts[whole];
    }
    for (int i = 0; i < WINDOW / 32; ++i) {
        const uint32_t mask = __shfl_sync(ALL_LANES, word, i);
        if (mask >> lane_id() & 1) {
            const int64_t at = place + __popc(mask & lanes_before());
            const T sum = sums[32 * i + lane_id()];
            // Sums of parts are scaled when they have been added.
            values[at] = alpha.vanishes || parts == 1 ? alpha.of(sum) : sum;
            if (task.part == 0)
                out.store_new_column(at, static_cast<J>(base + 32 * i + lane_id()));
        }
        place += __popc(mask);
    }
}

// Computes values (and columns) of the task's part of its row.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_task(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
              const Scalar<T> &scale, const Cut &cut, const Starts &starts, bool right_is_short,
              const Task *tasks, int64_t count, const uint32_t *masks, const uint32_t *entry_starts,
              const Partial &partial, const Output &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    T *sums = reinterpret_cast<T *>(memory) + (threadIdx.x >> 5) * WINDOW;
    int64_t number;
    Task task;
    if (!take_item(tasks, count, number, task))
        return;
    const int64_t low = static_cast<int64_t>(task.window) * WINDOW + right.base;
    int64_t begin, end;
    const int64_t parts = find_left_entries(left, cut, task, begin, end);
    const Scale<T> alpha(scale);
    for (int i = lane_id(); i < WINDOW; i += 32)
        sums[i] = zero<T>();
    __syncwarp();
    if (!alpha.vanishes && right_is_short) {
        add_products_of_short_rows<HELD, A, B, T, J>(
            left, right, left_values, right_values, begin, end, low, WINDOW, sums,
            [&](int64_t, int64_t k, int64_t &from, unsigned &length) {
                find_entries(right, starts, k, task.window, from, length);
            },
            [](unsigned column) { return column; });
    } else if (!alpha.vanishes) {
        Entries<A, B, T, J> entries{left,        right, left_values, right_values, starts,
                                    task.window, low,   end,         begin};
        entries.add_all(sums);
    }
    store_window<T, J>(task, number, parts, sums, alpha, masks, entry_starts, partial, out);
}

// Adds the sums of a window's other parts to those of the first, in order, and scales them. The
// warps of the window's parts divide its entries, 32 at a time.
template <class T>
__device__ __forceinline__ void add_parts(const Ints &offsets, const Scalar<T> &scale,
                                          const Cut &cut, const Task *tasks, int64_t count,
                                          const uint32_t *masks, const uint32_t *entry_starts,
                                          const Partial &partial, const Output &out) {
    int64_t number;
    Task task;
    if (!take_item(tasks, count, number, task))
        return;
    const int64_t parts = cut.parts(offsets[task.row + 1] - offsets[task.row]);
    const T alpha = scale.get();
    if (parts == 1 || is_zero(alpha))
        return;
    const int64_t whole = number - task.part;
    const int found = static_cast<int>(
        __reduce_add_sync(ALL_LANES, static_cast<unsigned>(__popc(masks[whole * 32 + lane_id()]))));
    const int64_t entries = out.offsets[task.row + 1] - out.offsets[task.row];
    T *values = static_cast<T *>(out.values) + out.offsets[task.row] + entry_starts[whole];
    const T *others =
        static_cast<const T *>(partial.sums) + partial.before[task.index] + entry_starts[whole];
    for (int64_t i = 32 * task.part + lane_id(); i < found; i += 32 * parts) {
        T sum = values[i];
        constexpr int AHEAD = 16;
        for (int64_t part = 0; part < parts - 1; part += AHEAD) {
            T own[AHEAD];
#pragma unroll
            for (int h = 0; h < AHEAD; ++h)
                own[h] = part + h < parts - 1 ? others[(part + h) * entries + i] : zero<T>();
#pragma unroll
            for (int h = 0; h < AHEAD; ++h) {
                if (part + h < parts - 1)
                    sum = plus(sum, own[h]);
            }
        }
        values[i] = times(alpha, sum);
    }
}

} // namespace

// Computes the starts of windows in the rows of `right`, whose columns ascend. One thread per
// start.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_dense_windows_starts(Factor right, int64_t rows, int64_t windows, uint32_t *starts) {
    for (int64_t i = first_item(); i < rows * (windows + 1); i += grid_stride()) {
        const int64_t row = i / (windows + 1), begin = right.start(row);
        const int64_t wanted = (i - row * (windows + 1)) * WINDOW;
        const int64_t from = first_where_not(begin, right.start(row + 1),
                                             [&](int64_t at) { return right.column(at) < wanted; });
        starts[i] = static_cast<uint32_t>(from - begin);
    }
}

// Sets in `bits`, which is zero before, the bit of each entry of `right`. One warp per row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_dense_windows_bits(Factor right, int64_t rows, int64_t windows, uint32_t *bits) {
    const int64_t warps = grid_stride() / 32;
    for (int64_t row = first_item() / 32; row < rows; row += warps) {
        const int64_t begin = right.start(row), end = right.start(row + 1);
        for (int64_t at = begin + lane_id(); at - lane_id() < end; at += 32) {
            const int64_t column = at < end ? right.column(at) : 0;
            // One write for all lanes with the same word.
            const int64_t word = at < end ? column / 32 : -1 - lane_id();
            const unsigned peers = __match_any_sync(ALL_LANES, static_cast<int>(word));
            const unsigned mask = __reduce_or_sync(peers, at < end ? 1u << (column & 31) : 0u);
            if (at < end && (peers & lanes_before()) == 0)
                atomicOr(bits + row * windows * 32 + word, mask);
        }
    }
}

// out[i] = number of tasks of row list[i], whose columns are in [low, low + span); `offsets` are
// those of `left`. With `few`, in one block of 1,024 threads, out[i] = number of tasks of the rows
// before it, and out[count] is the total (the host does so below NUMBERED_BY_A_BLOCK rows, see
// src/backend/cuda/spgemm/wide.rs).
extern "C" __global__ void __launch_bounds__(1024)
    spgemm_dense_windows_task_counts(Ints offsets, Cut cut, const uint32_t *list, int64_t count,
                                     const int64_t *lows, const int64_t *spans, int32_t few,
                                     int64_t *out) {
    const auto tasks = [&](int64_t i) {
        const uint32_t row = list[i];
        const int64_t low = lows[row];
        return ((low + spans[row] - 1) / WINDOW - low / WINDOW + 1) *
               cut.parts(offsets[row + 1] - offsets[row]);
    };
    if (!few) {
        const int64_t i = first_item();
        if (i < count)
            out[i] = tasks(i);
        return;
    }
    scan_in_block(count + 1, out, tasks);
}

// tasks[begin[i] …] = windows of row list[i], each in parts. One warp per row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_dense_windows_tasks(Ints offsets, Cut cut, const uint32_t *list, int64_t count,
                               const int64_t *lows, const int64_t *begin, Task *tasks) {
    const int64_t i = first_item() / 32;
    if (i >= count)
        return;
    const uint32_t row = list[i];
    const uint32_t window = static_cast<uint32_t>(lows[row] / WINDOW);
    const int64_t parts = cut.parts(offsets[row + 1] - offsets[row]);
    for (int64_t at = begin[i] + lane_id(); at < begin[i + 1]; at += 32) {
        const int64_t number = at - begin[i];
        tasks[at] = {row, window + static_cast<uint32_t>(number / parts),
                     static_cast<uint32_t>(number % parts), static_cast<uint32_t>(i)};
    }
}

// Merges the masks of a window's parts into that of the first, whose count becomes that of all; the
// counts of the others become 0. One warp per task.
extern "C" __global__ void __launch_bounds__(THREADS)
    spgemm_dense_windows_merge(Ints offsets, Cut cut, const Task *tasks, int64_t count,
                               uint32_t *masks, uint32_t *entry_counts) {
    int64_t number;
    Task task;
    if (!take_item(tasks, count, number, task))
        return;
    if (task.part > 0) {
        if (lane_id() == 0)
            entry_counts[number] = 0;
        return;
    }
    const int64_t parts = cut.parts(offsets[task.row + 1] - offsets[task.row]);
    if (parts == 1)
        return;
    uint32_t word = 0;
#pragma unroll 16
    for (int64_t part = 0; part < parts; ++part)
        word |= masks[(number + part) * 32 + lane_id()];
    masks[number * 32 + lane_id()] = word;
    const unsigned all = __reduce_add_sync(ALL_LANES, static_cast<unsigned>(__popc(word)));
    if (lane_id() == 0)
        entry_counts[number] = all;
}

// counts[list[i]] = sum of the entry counts of the row's tasks, which the kernel turns into entry
// starts, their exclusive sums; extra[i] = number of sums that the row's parts after the first
// store (`Partial`). Rows have less than 2^32 entries. `counts` and `extra` may be NULL. One warp
// per row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_dense_windows_sums(Ints offsets, Cut cut, const uint32_t *list, int64_t count,
                              const int64_t *begin, uint32_t *entry_counts, int64_t *counts,
                              int64_t *extra) {
    const int64_t i = first_item() / 32;
    if (i >= count)
        return;
    uint32_t before = 0;
    for (int64_t at = begin[i]; at < begin[i + 1]; at += 32) {
        const bool mine = at + lane_id() < begin[i + 1];
        const uint32_t own = mine ? entry_counts[at + lane_id()] : 0;
        const uint32_t sum = prefix_sum(own);
        if (mine)
            entry_counts[at + lane_id()] = before + sum - own;
        before += __shfl_sync(ALL_LANES, sum, 31);
    }
    if (lane_id() > 0)
        return;
    const uint32_t row = list[i];
    if (counts != nullptr)
        counts[row] = before;
    if (extra != nullptr)
        extra[i] = (cut.parts(offsets[row + 1] - offsets[row]) - 1) * before;
}

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS, 10)                                      \
        name(Factor left, Factor right, Cut cut, Starts starts, const uint32_t *bits,              \
             const Task *tasks, int64_t count, uint32_t *masks, uint32_t *entry_counts) {          \
        let_next_begin();                                                                          \
        count_task<int##J##_t>(left, right, cut, starts, bits, tasks, count, masks, entry_counts); \
        end_after_previous();                                                                      \
    }
KERNELS(count, (), (spgemm_dense_windows_count_32, 32), (spgemm_dense_windows_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, sizeof(T) > 8 ? 3 : 6) name(             \
        Factor left, Factor right, const A *left_values, const B *right_values, Scalar<T> alpha,   \
        Cut cut, Starts starts, int32_t right_is_short, const Task *tasks, int64_t count,          \
        const uint32_t *masks, const uint32_t *entry_starts, Partial partial, Output out) {        \
        let_next_begin();                                                                          \
        multiply_task<A, B, T, J>(left, right, left_values, right_values, alpha, cut, starts,      \
                                  right_is_short != 0, tasks, count, masks, entry_starts, partial, \
                                  out);                                                            \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_dense_windows_multiply_f64_32, f64, 32),
        (spgemm_dense_windows_multiply_f32_32, f32, 32),
        (spgemm_dense_windows_multiply_f16f32_32, f16f32, 32),
        (spgemm_dense_windows_multiply_bf16f32_32, bf16f32, 32),
        (spgemm_dense_windows_multiply_c32_32, c32, 32),
        (spgemm_dense_windows_multiply_c64_32, c64, 32),
        (spgemm_dense_windows_multiply_f64_64, f64, 64),
        (spgemm_dense_windows_multiply_f32_64, f32, 64),
        (spgemm_dense_windows_multiply_f16f32_64, f16f32, 64),
        (spgemm_dense_windows_multiply_bf16f32_64, bf16f32, 64),
        (spgemm_dense_windows_multiply_c32_64, c32, 64),
        (spgemm_dense_windows_multiply_c64_64, c64, 64))

#define KERNEL_parts(name, types) KERNEL_OF(PARTS, name, TYPES_##types)
#define PARTS(name, A, B, C, T)                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(Ints offsets, Scalar<T> alpha, Cut cut, const Task *tasks, int64_t count,             \
             const uint32_t *masks, const uint32_t *entry_starts, Partial partial, Output out) {   \
        add_parts<T>(offsets, alpha, cut, tasks, count, masks, entry_starts, partial, out);        \
    }
KERNELS(parts, (), (spgemm_dense_windows_parts_f64, f64), (spgemm_dense_windows_parts_f32, f32),
        (spgemm_dense_windows_parts_f16f32, f16f32), (spgemm_dense_windows_parts_bf16f32, bf16f32),
        (spgemm_dense_windows_parts_c32, c32), (spgemm_dense_windows_parts_c64, c64))
