// Shifted runs: consecutive rows of `left`, each of which has the previous row's columns
// shifted by one, as have the rows of `right` that they meet (the inner points of a grid). Their
// rows of C are shifted by one as well. A warp takes up to 32 such rows: the position of each
// product in the first row of C holds for all of them, so hashing and sorting is needed only once.
// Where rows of `right` and of C are short, one or two lanes compute a row (not of complex
// doubles); otherwise the lanes are divided into teams of at least as many as the longest row of
// `right` has entries, which take a row each.
// No two lanes add to one sum at a time, and each sum is in the order of the row's entries of
// `left`.
#include "common/search.cuh"
#include "ptx/copies.cuh"
#include "spgemm/team.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;
// Fewest rows of a shifted run, whose positions are found once for all of them.
constexpr int LEAST = 6;
// Most entries of `left` in a row of a shifted run, whose rows of `right` are stored in shared
// memory; and most products, whose positions are stored there.
constexpr int LEFT_ENTRIES = 64, PRODUCTS = 1024;
// Number of products of a lane that are in flight at a time.
constexpr int HELD = 4;
// Longest row of `right` for which one or two lanes compute a row of C.
constexpr int LONGEST_BY_LANES = 9;
// Number of rows that a warp computes at a time then, and distance of neighbouring sums of a row:
// odd, so that lanes which read sums of one row use different banks.
template <class T> constexpr int ROWS_BY_LANES = sizeof(T) <= 4 ? 32 : 16;
template <class T> constexpr int SUM_DISTANCE = ROWS_BY_LANES<T> + 1;

// Position of a lane in a matrix with rows of `width` elements that the warp traverses 32 elements
// at a time.
struct Walk {
    int row, at, rows, rest, width;

    __device__ __forceinline__ explicit Walk(int width)
        : row(lane_id() / width), at(lane_id() % width), rows(32 / width), rest(32 % width),
          width(width) {}
    __device__ __forceinline__ void step() {
        row += rows;
        at += rest;
        if (at >= width) {
            at -= width;
            ++row;
        }
    }
};

// Sorts the columns of a table, up to `most`, in ascending order; returns their number.
template <int KEYS, class KeyType>
__device__ __forceinline__ int sort_table(const KeyType *table, int size, KeyType *sorted,
                                          int most) {
    const int found = collect_keys(table, size, sorted, most);
    __syncwarp();
    KeyType keys[KEYS];
#pragma unroll
    for (int e = 0; e < KEYS; ++e) {
        const int i = 32 * e + lane_id();
        keys[e] = i < min(found, most) ? sorted[i] : empty<KeyType>();
    }
    __syncwarp();
    sort<32>(keys);
#pragma unroll
    for (int e = 0; e < KEYS; ++e) {
        const int i = 32 * e + lane_id();
        if (i < most)
            sorted[i] = keys[e];
    }
    __syncwarp();
    return found;
}

// Row of `right` that an entry of `left` meets, for the first row of the shifted run.
struct Meeting {
    int64_t start;
    int32_t length;
    // First of its products' positions.
    int32_t first;
};

// Data that a warp keeps in shared memory for a shifted run with up to `most` entries per row (a
// power of two, at least 16).
template <class T, class J> struct Memory {
    using KeyType = Key<J>;
    Meeting *meetings;
    // `bytes` bytes of sums.
    T *sums;
    // Table of 2 · `most` columns, and the columns in ascending order.
    KeyType *table, *sorted;
    // For each slot of the table the column's number in the row of C; for each product the number
    // of its column.
    uint16_t *ranks, *slots;

    __device__ __forceinline__ Memory(int most, int bytes) {
        extern __shared__ __align__(16) unsigned char memory[];
        const int all = static_cast<int>(LEFT_ENTRIES * sizeof(Meeting) + bytes +
                                         most * (3 * sizeof(KeyType) + 4) + PRODUCTS * 2);
        meetings = reinterpret_cast<Meeting *>(memory + (threadIdx.x >> 5) * all);
        sums = reinterpret_cast<T *>(meetings + LEFT_ENTRIES);
        table = reinterpret_cast<KeyType *>(reinterpret_cast<unsigned char *>(sums) + bytes);
        sorted = table + 2 * most;
        ranks = reinterpret_cast<uint16_t *>(sorted + most);
        slots = ranks + 2 * most;
    }
};

// Loads the rows of `right` that the entries of a row of `left` meet; returns the number of
// products, and in `longest` the length of the longest row.
__device__ __forceinline__ int load_meetings(const Factor &left, const Factor &right, int64_t begin,
                                             int count, Meeting *meetings, int &longest) {
    int products = 0;
    longest = 0;
    for (int first = 0; first < count; first += 32) {
        const int at = first + lane_id();
        Meeting own{0, 0, 0};
        if (at < count) {
            const int64_t k = left.column(begin + at);
            own.start = right.start(k);
            own.length = static_cast<int>(right.start(k + 1) - own.start);
        }
        const int sum = prefix_sum(own.length);
        own.first = products + sum - own.length;
        if (at < count)
            meetings[at] = own;
        products += __shfl_sync(ALL_LANES, sum, 31);
        longest =
            max(longest, static_cast<int>(__reduce_max_sync(ALL_LANES, unsigned(own.length))));
    }
    __syncwarp();
    return products;
}

// Stores in `slots` the slot in the table of each product of the run's first row, whose column is
// inserted if it is new.
template <class T, class J>
__device__ __forceinline__ void find_slots(const Factor &right, int left_entries, int products,
                                           int size, const Memory<T, J> &memory) {
    const J *columns = static_cast<const J *>(right.indices.data);
    int added = 0;
    for (int p = lane_id(); p < products; p += 32) {
        const Meeting of = memory.meetings[last_where(
            0, left_entries, [&](int j) { return memory.meetings[j].first <= p; })];
        const J column = columns[of.start + (p - of.first)] - static_cast<J>(right.base);
        memory.slots[p] =
            static_cast<uint16_t>(insert(memory.table, size, static_cast<Key<J>>(column), added));
    }
    __syncwarp();
}

// Sorts the columns that are in the table, up to `most`, in ascending order; returns their number.
template <class T, class J>
__device__ __forceinline__ int sort_columns(int most, const Memory<T, J> &memory) {
    const int size = 2 * most;
    switch (most / 32) {
    case 0:
    case 1:
        return sort_table<1>(memory.table, size, memory.sorted, most);
    case 2:
        return sort_table<2>(memory.table, size, memory.sorted, most);
    case 4:
        return sort_table<4>(memory.table, size, memory.sorted, most);
    default:
        return sort_table<8>(memory.table, size, memory.sorted, most);
    }
}

// Finds the `entries` columns of the run's first row of C, in ascending order, and the number of
// the column of each product. Returns false if there are more or fewer columns, which is so only
// if the pattern changed after analysis, and is not noticed where the columns are kept.
template <class T, class J>
__device__ __forceinline__ bool find_positions(const Factor &right, int left_entries, int products,
                                               int most, const Output &out, int64_t place,
                                               int entries, const Memory<T, J> &memory) {
    const int size = 2 * most;
    if (out.known) {
        const J *kept = static_cast<const J *>(out.kept);
        for (int i = lane_id(); i < entries; i += 32)
            memory.sorted[i] = static_cast<Key<J>>(kept[place + i]);
        __syncwarp();
    } else {
        find_slots(right, left_entries, products, size, memory);
        if (sort_columns(most, memory) != entries)
            return false;
    }
    int added = 0;
    for (int i = lane_id(); i < entries; i += 32) {
        const int slot = insert(memory.table, size, memory.sorted[i], added);
        memory.ranks[slot] = static_cast<uint16_t>(i);
    }
    __syncwarp();
    if (out.known)
        find_slots(right, left_entries, products, size, memory);
    for (int p = lane_id(); p < products; p += 32)
        memory.slots[p] = memory.ranks[memory.slots[p]];
    __syncwarp();
    return true;
}

// Bytes of sums and of two buffers for values of `right` that add_by_lanes needs.
template <class B, class T> __device__ constexpr int bytes_by_lanes(int entries) {
    return SUM_DISTANCE<T> * entries * int(sizeof(T)) +
           2 * ROWS_BY_LANES<T> * LONGEST_BY_LANES * int(sizeof(B));
}

// Adds the products of `rows` rows of the run, from row `first` on, to sums[SUM_DISTANCE · number
// of the column + row], by one or two lanes a row, where no row of `right` is longer than
// LONGEST_BY_LANES. The rows of `right` that an entry of `left` meets follow one another; they are
// copied to a buffer while those of the entry before are multiplied.
template <class A, class B, class T>
__device__ __forceinline__ void add_by_lanes(const Meeting *meetings, const uint16_t *slots,
                                             const A *left_values, int count, const B *right_values,
                                             int first, int rows, T *sums, B *buffers) {
    constexpr int ROWS = ROWS_BY_LANES<T>, LANES = 32 / ROWS;
    const int lane = lane_id(), row = lane % ROWS, part = lane / ROWS;
    const bool has_row = row < rows;
    const A *own_left = left_values + static_cast<int64_t>(first + min(row, rows - 1)) * count;
    const auto buffer = [&](int j) { return buffers + j % 2 * (ROWS * LONGEST_BY_LANES); };
    // Rows are an odd number of values apart, so that lanes read them from different banks.
    const auto copy = [&](int j) {
        const Meeting of = meetings[j];
        const B *from = right_values + of.start + static_cast<int64_t>(first) * of.length;
        const auto copy_value = [&](B *to, int k) {
            // Asynchronous copies need values that are aligned to their size, which pairs of floats
            // need not be.
            if constexpr (alignof(B) == sizeof(B) && sizeof(B) >= 4) {
                copy_bytes<sizeof(B)>(shared_address(to), from + k, sizeof(B));
            } else {
                *to = from[k];
            }
        };
        if (of.length % 2 != 0) {
            for (int k = lane; k < rows * of.length; k += 32)
                copy_value(buffer(j) + k, k);
        } else if (of.length != 0) {
            Walk here(of.length);
            for (int k = lane; k < rows * of.length; k += 32, here.step())
                copy_value(buffer(j) + here.row * (of.length + 1) + here.at, k);
        }
    };
    copy(0);
    close_copies();
    A left = own_left[0];
    for (int j = 0; j < count; ++j) {
        const Meeting of = meetings[j];
        const T multiplier = widen<T>(left);
        if (j + 1 < count) {
            copy(j + 1);
            left = own_left[j + 1];
        }
        close_copies();
        wait_copies<1>();
        __syncwarp();
        const B *own = buffer(j) + row * (of.length | 1);
        // The lane's last product. Another lane of the row may write the sums of other products.
        const int last = of.length - 1 - (of.length - 1 - part) % LANES;
        for (int i = part; has_row && i < of.length; i += HELD * LANES) {
            T sum[HELD];
            int at[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const int product = of.first + min(i + h * LANES, last);
                at[h] = slots[product] * SUM_DISTANCE<T> + row;
                sum[h] = sums[at[h]];
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (i + h * LANES < of.length)
                    sums[at[h]] = plus(sum[h], times(multiplier, widen<T>(own[i + h * LANES])));
            }
        }
        __syncwarp();
    }
}

// Adds the products of row `row` of the shifted run to `sums` by the lanes of a team, of which this
// is number `inner`, where no row of `right` is longer than the team; HELD products are in flight.
// Teams without a row only keep step.
template <class A, class B, class T>
__device__ __forceinline__ void add_short(const Meeting *meetings, const uint16_t *slots,
                                          const A *left_values, int count, const B *right_values,
                                          bool has_row, int row, int inner, T *sums) {
    for (int j = 0; j < count; j += HELD) {
        B values[HELD];
        A multiplier[HELD];
        int at[HELD];
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            at[h] = -1;
            if (j + h < count && has_row) {
                const Meeting of = meetings[j + h];
                if (inner < of.length) {
                    const int64_t from = of.start + static_cast<int64_t>(row) * of.length;
                    at[h] = slots[of.first + inner];
                    multiplier[h] = left_values[j + h];
                    values[h] = right_values[from + inner];
                }
            }
        }
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (at[h] >= 0) {
                sums[at[h]] =
                    plus(sums[at[h]], times(widen<T>(multiplier[h]), widen<T>(values[h])));
            }
            __syncwarp();
        }
    }
}

// Adds the products of a row as add_short does, for rows of `right` of any length and teams of
// `lanes` lanes.
template <class A, class B, class T>
__device__ __forceinline__ void add_long(const Meeting *meetings, const uint16_t *slots,
                                         const A *left_values, int count, const B *right_values,
                                         bool has_row, int row, int inner, int lanes, T *sums) {
    for (int j = 0; j < count; ++j) {
        const Meeting of = meetings[j];
        if (has_row) {
            const T multiplier = widen<T>(left_values[j]);
            const B *own = right_values + of.start + static_cast<int64_t>(row) * of.length;
            for (int i = inner; i < of.length; i += lanes) {
                T *sum = sums + slots[of.first + i];
                *sum = plus(*sum, times(multiplier, widen<T>(own[i])));
            }
        }
        __syncwarp();
    }
}

// Computes columns and values of the rows of a shifted run with up to `most` entries each. Shared
// memory per warp: LEFT_ENTRIES meetings, `sum_bytes` for sums and buffers, 3 · `most` keys,
// PRODUCTS and 2 · `most` 16-bit numbers.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_shifted_run(const Factor &left, const Factor &right, const A *left_values,
                     const B *right_values, const Scalar<T> &scale, const uint8_t *shifted_runs,
                     const uint32_t *list, int64_t count, int most, int sum_bytes,
                     const Output &out) {
    const Memory<T, J> memory(most, sum_bytes);
    const int size = 2 * most;
    int64_t row;
    if (!take_item(list, count, row))
        return;
    const int rows = shifted_runs[row];
    const int64_t begin = left.start(row), end = left.start(row + 1);
    const int left_entries = static_cast<int>(end - begin);
    const int64_t place = out.offsets[row];
    const int entries = static_cast<int>(out.offsets[row + 1] - place);
    const Scale<T> alpha(scale);
    // True only if the pattern changed after analysis.
    if (left_entries == 0 || left_entries > LEFT_ENTRIES || entries == 0)
        return;
    clear(Team{32, 32}, memory.table, size);
    for (int i = lane_id(); i < size; i += 32)
        memory.ranks[i] = 0;
    int longest;
    const int products = load_meetings(left, right, begin, left_entries, memory.meetings, longest);
    if (products > PRODUCTS ||
        !find_positions(right, left_entries, products, most, out, place, entries, memory))
        return;
    // Stores `now` rows of C, where neighbouring sums of a row are `distance` apart and those of
    // neighbouring rows `step`.
    const auto store = [&](int first, int now, int distance, int step) {
        const int64_t target = place + static_cast<int64_t>(first) * entries;
        T *values = static_cast<T *>(out.values) + target;
        Walk here(entries);
        for (int i = lane_id(); i < now * entries; i += 32, here.step()) {
            values[i] = alpha.of(memory.sums[here.at * distance + here.row * step]);
            const int64_t column = static_cast<int64_t>(memory.sorted[here.at]) + first + here.row;
            out.store_new_column(target + i, static_cast<J>(column));
        }
        __syncwarp();
    };
    if constexpr (sizeof(T) <= 8) {
        if (longest <= LONGEST_BY_LANES && bytes_by_lanes<B, T>(entries) <= sum_bytes) {
            B *buffers = reinterpret_cast<B *>(memory.sums + SUM_DISTANCE<T> * entries);
            for (int first = 0; first < rows; first += ROWS_BY_LANES<T>) {
                const int now = min(ROWS_BY_LANES<T>, rows - first);
                for (int i = lane_id(); i < SUM_DISTANCE<T> * entries; i += 32)
                    memory.sums[i] = zero<T>();
                __syncwarp();
                if (!alpha.vanishes)
                    add_by_lanes(memory.meetings, memory.slots, left_values + begin, left_entries,
                                 right_values, first, now, memory.sums, buffers);
                store(first, now, SUM_DISTANCE<T>, 1);
            }
            return;
        }
    }

    // Lanes per row: as many as the longest row of `right` has entries, and more if the sums of so
    // many rows at a time would not fit.
    int lanes = 4;
    while (lanes < 32 &&
           (lanes < longest || 32 / lanes * entries * static_cast<int>(sizeof(T)) > sum_bytes))
        lanes *= 2;
    const int together = 32 / lanes, inner = lane_id() & (lanes - 1), mine = lane_id() / lanes;
    for (int first = 0; first < rows; first += together) {
        const int now = min(together, rows - first), ahead = first + mine;
        for (int i = lane_id(); i < now * entries; i += 32)
            memory.sums[i] = zero<T>();
        __syncwarp();
        const bool has_row = mine < now && !alpha.vanishes;
        const A *own = left_values + begin + static_cast<int64_t>(ahead) * left_entries;
        T *sums = memory.sums + mine * entries;
        if (longest <= lanes) {
            add_short(memory.meetings, memory.slots, own, left_entries, right_values, has_row,
                      ahead, inner, sums);
        } else {
            add_long(memory.meetings, memory.slots, own, left_entries, right_values, has_row, ahead,
                     inner, lanes, sums);
        }
        store(first, now, 1, entries);
    }
}

} // namespace

// shifted_runs[row] = number of rows of the shifted run that the row begins, 1 for a row by itself,
// 0 if the row is in a shifted run that began before. Shifted runs consist of rows of up to `most`
// products that are groups of their own (`groups` may be NULL). `moved_left` and `moved_right` mark
// rows of the factors that have the previous row's columns shifted by one. One thread per row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_find_shifted_patterns(Factor left, int64_t rows, const int64_t *products, int64_t most,
                                 const uint8_t *moved_left, const uint8_t *moved_right,
                                 const uint8_t *groups, uint8_t *shifted_runs) {
    const int64_t row = first_item();
    bool is_fit = false, follows = false;
    if (row < rows) {
        const int64_t work = products[row];
        is_fit = work > 0 && work <= min(most, int64_t(PRODUCTS)) &&
                 left.start(row + 1) - left.start(row) <= LEFT_ENTRIES &&
                 (groups == nullptr || groups[row] == 1);
        follows = is_fit && moved_left[row];
    }
    if (follows) {
        const int64_t end = left.start(row + 1);
        // No early exit, so that the loads overlap.
        for (int64_t at = left.start(row); at < end; ++at)
            follows &= moved_right[left.column(at)] != 0;
    }
    const unsigned fit = __ballot_sync(ALL_LANES, is_fit);
    const unsigned joined = __ballot_sync(ALL_LANES, follows) & fit & (fit << 1);
    const unsigned until = (2u << lane_id()) - 1;
    const int start = 31 - __clz(~joined & until);
    const unsigned after = ~joined & ~until;
    const int own = (after != 0 ? __ffs(after) - 1 : 32) - lane_id();
    const int size = __shfl_sync(ALL_LANES, own, start);
    if (row < rows)
        shifted_runs[row] = static_cast<uint8_t>(size < LEAST ? 1 : lane_id() == start ? size : 0);
}

// counts[row] of every row of a shifted run = that of its first row. One thread per row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_shifted_pattern_counts(const uint8_t *shifted_runs, int64_t rows, int64_t *counts) {
    const int64_t row = first_item();
    const bool follows = row < rows && shifted_runs[row] == 0;
    const int64_t own = row < rows ? counts[row] : 0;
    const unsigned firsts = __ballot_sync(ALL_LANES, !follows);
    const int64_t first = __shfl_sync(ALL_LANES, own, 31 - __clz(firsts & ((2u << lane_id()) - 1)));
    if (follows)
        counts[row] = first;
}

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, sizeof(T) > 8 ? 4 : 6)                   \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, const uint8_t *shifted_runs, const uint32_t *list, int64_t count,    \
             int32_t most, int32_t sum_bytes, Output out) {                                        \
        let_next_begin();                                                                          \
        multiply_shifted_run<A, B, T, J>(left, right, left_values, right_values, alpha,            \
                                         shifted_runs, list, count, most, sum_bytes, out);         \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_shifted_pattern_multiply_f64_32, f64, 32),
        (spgemm_shifted_pattern_multiply_f32_32, f32, 32),
        (spgemm_shifted_pattern_multiply_f16f32_32, f16f32, 32),
        (spgemm_shifted_pattern_multiply_bf16f32_32, bf16f32, 32),
        (spgemm_shifted_pattern_multiply_c32_32, c32, 32),
        (spgemm_shifted_pattern_multiply_c64_32, c64, 32),
        (spgemm_shifted_pattern_multiply_f64_64, f64, 64),
        (spgemm_shifted_pattern_multiply_f32_64, f32, 64),
        (spgemm_shifted_pattern_multiply_f16f32_64, f16f32, 64),
        (spgemm_shifted_pattern_multiply_bf16f32_64, bf16f32, 64),
        (spgemm_shifted_pattern_multiply_c32_64, c32, 64),
        (spgemm_shifted_pattern_multiply_c64_64, c64, 64))
