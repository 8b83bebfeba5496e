// Rows of the product that have few entries, where the columns of each row of `right` are distinct:
// a team of lanes takes one row, with a hash table in shared memory, and a sum for each slot in
// another array (after nsparse: Nagasaka, Nukada and Matsuoka 2017; spECK: Parger et al. 2020). A
// team is divided into parts. Where the rows of `right` in hand fit a part, each part takes one;
// else each lane takes one product, of whichever row. Either way, products of one row have one
// turn, in which no two lanes of the team add to one sum, and turns follow the order of the row of
// `left`; so each sum is in the order of the row's entries of `left`.

// The first argument, mostly the types, selects the image (common/kernels.cuh).
#define KERNELS_BY_FIRST

#include "spgemm/team.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;

// Gets the team's row among those that its block takes, from number `first` on. Returns false if
// there is none left for it; its lanes then work along with an empty row.
__device__ __forceinline__ bool take_row(const Team &team, const uint32_t *list, int64_t first,
                                         int64_t count, const Factor &left, int64_t &row,
                                         int64_t &begin, int64_t &end) {
    const int64_t number = first + team.in_block();
    row = number < count ? list[number] : 0;
    begin = number < count ? left.start(row) : 0;
    end = number < count ? left.start(row + 1) : 0;
    return number < count;
}

// counts[row] = number of distinct columns of each row, which has less than `size` products. Shared
// memory: a table of `size` keys per team. Teams get more than `lanes` lanes if a device that runs
// `threads` threads at one time has enough of them for all rows.
template <class J>
__device__ __forceinline__ void count_rows(int lanes, int64_t threads, int part, const Factor &left,
                                           const Factor &right, const Listed &list, int size,
                                           int64_t *counts) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    const int64_t count = list.size();
    while (lanes < 32 && 2 * lanes * count <= threads)
        lanes *= 2;
    const Team team{lanes, part};
    KeyType *table = reinterpret_cast<KeyType *>(memory) + team.in_block() * size;
    const int64_t teams = blockDim.x / team.lanes;
    for (int64_t first = blockIdx.x * teams; first < count; first += gridDim.x * teams) {
        int64_t row, begin, end;
        const bool mine = take_row(team, list.rows, first, count, left, row, begin, end);
        clear(team, table, size);
        __syncwarp();
        int added = 0;
        for_team_products<false, J>(
            team, left, right, begin, end, [](bool, int64_t) { return 0; },
            [](bool, int64_t) { return 0; },
            [&](bool active, J column, int, int, int, int) {
                if (active)
                    insert(table, size, static_cast<KeyType>(column), added);
            });
        __syncwarp();
        for (int step = team.lanes / 2; step > 0; step /= 2)
            added += __shfl_xor_sync(ALL_LANES, added, step);
        if (mine && team.inner() == 0)
            counts[row] = added;
    }
}

// Writes a row of `entries` whose slots are in `list`, sorted by column if C is sorted.
template <int LANES, int KEYS, class T, class J>
__device__ __forceinline__ void write_row(Key<J> *table, const T *sums, const uint16_t *list,
                                          int entries, int64_t place, const Scale<T> &alpha,
                                          const Output &out) {
    using KeyType = Key<J>;
    constexpr int SIZE = 2 * LANES * KEYS;
    const int inner = threadIdx.x & (LANES - 1);
    T *values = static_cast<T *>(out.values) + place;
    KeyType keys[KEYS];
    unsigned slots[KEYS];
    KeyType low = empty<KeyType>(), high = 0;
#pragma unroll
    for (int e = 0; e < KEYS; ++e) {
        const int i = e * LANES + inner;
        slots[e] = i < entries ? list[i] : 0;
        keys[e] = i < entries ? table[slots[e]] : empty<KeyType>();
        low = min(low, keys[e]);
        high = i < entries ? max(high, keys[e]) : high;
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        low = min(low, __shfl_xor_sync(ALL_LANES, low, step));
        high = max(high, __shfl_xor_sync(ALL_LANES, high, step));
    }
    // Column and slot are packed in one word if all teams of the warp can do so; then no column
    // needs to be looked up again. All ones stands for no entry.
    const bool packs = entries == 0 || high - low < empty<unsigned>() / SIZE - 1;
    const auto write = [&](int i, KeyType key, int slot) {
        if (i >= entries)
            return;
        values[i] = alpha.of(sums[slot]);
        out.store_new_column(place + i, static_cast<J>(key));
    };
    if (__all_sync(ALL_LANES, packs)) {
        unsigned words[KEYS];
#pragma unroll
        for (int e = 0; e < KEYS; ++e) {
            words[e] = e * LANES + inner < entries
                           ? static_cast<unsigned>(keys[e] - low) * SIZE + slots[e]
                           : ALL_LANES;
        }
        if (!out.known && out.sorted)
            sort<LANES>(words);
#pragma unroll
        for (int e = 0; e < KEYS; ++e)
            write(e * LANES + inner, low + words[e] / SIZE, words[e] % SIZE);
        return;
    }
    if (!out.known && out.sorted)
        sort<LANES>(keys);
    int added = 0;
#pragma unroll
    for (int e = 0; e < KEYS; ++e) {
        const int i = e * LANES + inner;
        write(i, keys[e], i < entries ? insert(table, SIZE, keys[e], added) : 0);
    }
}

// Computes columns and values of a row with up to LANES · KEYS entries. Shared memory per team:
// twice as many sums and keys, and as many 16-bit numbers.
template <int LANES, int KEYS, class A, class B, class T, class J>
__device__ __forceinline__ void multiply_row(int part, const Factor &left, const Factor &right,
                                             const A *left_values, const B *right_values,
                                             const Scalar<T> &scale, const uint32_t *rows,
                                             int64_t count, const Output &out) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int MOST = LANES * KEYS, SIZE = 2 * MOST;
    constexpr int BYTES = SIZE * (sizeof(T) + sizeof(KeyType)) + MOST * sizeof(uint16_t);
    const Team team{LANES, min(part, LANES)};
    T *sums = reinterpret_cast<T *>(memory + team.in_block() * BYTES);
    KeyType *table = reinterpret_cast<KeyType *>(sums + SIZE);
    uint16_t *list = reinterpret_cast<uint16_t *>(table + SIZE);
    int64_t row, begin, end;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * (blockDim.x / LANES);
    const bool mine = take_row(team, rows, first, count, left, row, begin, end);
    const int64_t place = mine ? out.offsets[row] : 0;
    const int entries = mine ? static_cast<int>(out.offsets[row + 1] - place) : 0;
    const Scale<T> alpha(scale);
    int listed = 0;

    clear(team, table, SIZE);
    for (int i = team.inner(); i < SIZE; i += LANES)
        sums[i] = zero<T>();
    __syncwarp();
    if (out.known) {
        const J *kept = static_cast<const J *>(out.kept);
        for (int i = team.inner(); i < entries; i += LANES) {
            int added = 0;
            list[i] = static_cast<uint16_t>(
                insert(table, SIZE, static_cast<KeyType>(kept[place + i]), added));
        }
        __syncwarp();
    }
    if (!out.known || !alpha.vanishes) {
        for_team_products<true, J>(
            team, left, right, begin, end,
            [&](bool active, int64_t at) {
                return active && !alpha.vanishes ? widen<T>(left_values[at]) : zero<T>();
            },
            [&](bool active, int64_t at) {
                return active && !alpha.vanishes ? widen<T>(right_values[at]) : zero<T>();
            },
            [&](bool active, J column, T value, T multiplier, int turn, int turns) {
                const T product = times(multiplier, value);
                int slot = 0, added = 0;
                if (active)
                    slot = insert(table, SIZE, static_cast<KeyType>(column), added);
                if (!out.known) {
                    bool lists = added != 0;
                    unsigned fresh = __ballot_sync(ALL_LANES, lists);
                    if (!out.sorted) {
                        // The order of the list is that of C: of several lanes with the same new
                        // column, the first one lists it, whichever of them inserted it.
                        const unsigned lanes =
                            LANES == 32 ? ALL_LANES : ((1u << LANES) - 1) << team.first_lane();
                        const unsigned peers =
                            __match_any_sync(ALL_LANES, static_cast<KeyType>(column)) &
                            __ballot_sync(ALL_LANES, active) & lanes;
                        lists = active && (peers & fresh) != 0 && (peers & lanes_before()) == 0;
                        fresh = __ballot_sync(ALL_LANES, lists);
                    }
                    fresh = team.own(fresh);
                    const int at = listed + __popc(fresh & ((1u << team.inner()) - 1));
                    if (lists && at < MOST)
                        list[at] = static_cast<uint16_t>(slot);
                    listed += __popc(fresh);
                }
                for (int now = 0; now < turns; ++now) {
                    if (active && turn == now)
                        sums[slot] = plus(sums[slot], product);
                    __syncwarp();
                }
            });
    }
    __syncwarp();
    // `listed` is less only if the pattern changed after analysis.
    const int written = out.known ? entries : min(entries, listed);
    write_row<LANES, KEYS, T, J>(table, sums, list, written, place, alpha, out);
}

} // namespace

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS, J == 32 ? 10 : 8)                        \
        name(Factor left, Factor right, int32_t lanes, int64_t threads, int32_t part, Listed list, \
             int32_t size, int64_t *counts) {                                                      \
        let_next_begin();                                                                          \
        count_rows<int##J##_t>(lanes, threads, part, left, right, list, size, counts);             \
        end_after_previous();                                                                      \
    }
KERNELS(count, (), (spgemm_team_count_32, 32), (spgemm_team_count_64, 64))

// `size`: number of slots of a team's table, twice the most entries of a row, a power of two from
// 32 to 1024. Together with `lanes` it selects the form that takes the rows.
#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY_ROW(lanes, held, A, B, T, J)                                                      \
    multiply_row<lanes, held, A, B, T, J>(part, left, right, left_values, right_values, alpha,     \
                                          list, count, out)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, 5)                                       \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, int32_t part, const uint32_t *list, int64_t count, int32_t lanes,    \
             int32_t size, Output out) {                                                           \
        let_next_begin();                                                                          \
        const bool whole = lanes == 32;                                                            \
        switch (size) {                                                                            \
        case 32:                                                                                   \
            MULTIPLY_ROW(4, 4, A, B, T, J);                                                        \
            break;                                                                                 \
        case 64:                                                                                   \
            if (whole) {                                                                           \
                MULTIPLY_ROW(32, 1, A, B, T, J);                                                   \
            } else {                                                                               \
                MULTIPLY_ROW(8, 4, A, B, T, J);                                                    \
            }                                                                                      \
            break;                                                                                 \
        case 128:                                                                                  \
            if (whole) {                                                                           \
                MULTIPLY_ROW(32, 2, A, B, T, J);                                                   \
            } else {                                                                               \
                MULTIPLY_ROW(8, 8, A, B, T, J);                                                    \
            }                                                                                      \
            break;                                                                                 \
        case 256:                                                                                  \
            if (whole) {                                                                           \
                MULTIPLY_ROW(32, 4, A, B, T, J);                                                   \
            } else {                                                                               \
                MULTIPLY_ROW(16, 8, A, B, T, J);                                                   \
            }                                                                                      \
            break;                                                                                 \
        case 512:                                                                                  \
            MULTIPLY_ROW(32, 8, A, B, T, J);                                                       \
            break;                                                                                 \
        default:                                                                                   \
            MULTIPLY_ROW(32, 16, A, B, T, J);                                                      \
        }                                                                                          \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_team_multiply_f64_32, f64, 32),
        (spgemm_team_multiply_f32_32, f32, 32), (spgemm_team_multiply_f16f32_32, f16f32, 32),
        (spgemm_team_multiply_bf16f32_32, bf16f32, 32), (spgemm_team_multiply_c32_32, c32, 32),
        (spgemm_team_multiply_c64_32, c64, 32), (spgemm_team_multiply_f64_64, f64, 64),
        (spgemm_team_multiply_f32_64, f32, 64), (spgemm_team_multiply_f16f32_64, f16f32, 64),
        (spgemm_team_multiply_bf16f32_64, bf16f32, 64), (spgemm_team_multiply_c32_64, c32, 64),
        (spgemm_team_multiply_c64_64, c64, 64))
