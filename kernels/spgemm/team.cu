// Rows of the product that have few entries, where the columns of each row of
// `right` are distinct: a team of lanes a row, with a hash table in shared memory
// whose slots hold the sums (after nsparse: Nagasaka, Nukada and Matsuoka 2017;
// spECK: Parger et al. 2020). Each part of a team takes a row of `right`. No two
// lanes of a part add to one sum, and the parts of a team take turns, so that a
// sum's order is that of the row's factors.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;

// The lanes of a row: `lanes` and `part` are powers of two, part ≤ lanes ≤ 32.
struct Team {
    int lanes;
    int part;

    __device__ __forceinline__ int in_block() const { return threadIdx.x / lanes; }
    __device__ __forceinline__ int inner() const { return threadIdx.x & (lanes - 1); }
    __device__ __forceinline__ int first_lane() const { return lane_id() & ~(lanes - 1); }
    __device__ __forceinline__ int parts() const { return lanes / part; }
    // Of the lanes of a ballot, the team's, from bit 0 on.
    __device__ __forceinline__ unsigned own(unsigned ballot) const {
        return (ballot >> first_lane()) & (lanes == 32 ? ALL : (1u << lanes) - 1);
    }
};

// Calls f(active, column, position in right, factor, turn, turns) for the products
// of the team's row, one a lane: those with the same turn are of one row of
// `right`, and turns ascend with the row's factors. All lanes of the warp call it
// together. Lanes of a part that has no row of `right` left find its length 0.
template <class J, class T, class F>
__device__ __forceinline__ void for_factors(const Team &team, const Factor &left,
                                            const Factor &right, int64_t begin, int64_t end,
                                            T value_of, F f) {
    const J *columns = static_cast<const J *>(right.indices.data);
    const J base = static_cast<J>(right.base);
    const int most = static_cast<int>(
        __reduce_max_sync(ALL, static_cast<unsigned>(min(end - begin, int64_t(0x7fffffff)))));
    for (int done = 0; done < most; done += team.lanes) {
        const int64_t at = begin + done + team.inner();
        int64_t start = 0;
        unsigned length = 0;
        const auto own = value_of(at < end, at);
        if (at < end) {
            const int64_t k = left.column(at);
            start = right.start(k);
            length = static_cast<unsigned>(right.start(k + 1) - start);
        }
        const int held = min(team.lanes, most - done);
        for (int first = 0; first < held; first += team.parts()) {
            // A part each takes a row of `right` where all are that short; else
            // the team takes one after the other, which keeps the order.
            const int turn = team.inner() / team.part;
            const unsigned mine = __shfl_sync(ALL, length, team.first_lane() + first + turn);
            const bool together = __reduce_max_sync(ALL, mine) <= team.part;
            const int width = together ? team.part : team.lanes;
            const int inner = team.inner() & (width - 1);
            for (int now = 0; now < (together ? 1 : team.parts()); ++now) {
                const int owner = team.first_lane() + first + (together ? turn : now);
                const int64_t from = __shfl_sync(ALL, start, owner);
                const unsigned all = __shfl_sync(ALL, length, owner);
                const auto factor = from_lane(own, owner);
                const unsigned longest = __reduce_max_sync(ALL, all);
                for (unsigned base_i = 0; base_i < longest; base_i += width) {
                    const unsigned i = base_i + inner;
                    const bool active = i < all;
                    const int64_t position = from + i;
                    f(active, active ? static_cast<J>(columns[position] - base) : J(0), position,
                      factor, together ? turn : 0, together ? team.parts() : 1);
                }
            }
        }
    }
}

template <class K> __device__ __forceinline__ void clear(const Team &team, K *table, int size) {
    // Tables begin at multiples of 16 bytes and have at least as many.
    uint4 *words = reinterpret_cast<uint4 *>(table);
    for (int i = team.inner(); i < size * static_cast<int>(sizeof(K)) / 16; i += team.lanes)
        words[i] = make_uint4(ALL, ALL, ALL, ALL);
}

// The row of the team; false if there is none left for it, and the lanes work
// along with an empty one.
__device__ __forceinline__ bool take_row(const Team &team, const uint32_t *list, int64_t count,
                                         const Factor &left, int64_t &row, int64_t &begin,
                                         int64_t &end) {
    const int64_t number =
        static_cast<int64_t>(blockIdx.x) * (blockDim.x / team.lanes) + team.in_block();
    row = number < count ? list[number] : 0;
    begin = number < count ? left.start(row) : 0;
    end = number < count ? left.start(row + 1) : 0;
    return number < count;
}

// counts[row] = distinct columns of the row, which has less than `size`
// products. Shared memory: a table of `size` keys a team.
template <class J>
__device__ __forceinline__ void count_row(const Team &team, const Factor &left, const Factor &right,
                                          const uint32_t *list, int64_t count, int size,
                                          int64_t *counts) {
    using K = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    K *table = reinterpret_cast<K *>(memory) + team.in_block() * size;
    int64_t row, begin, end;
    const bool mine = take_row(team, list, count, left, row, begin, end);
    clear(team, table, size);
    __syncwarp();
    int added = 0;
    for_factors<J>(
        team, left, right, begin, end, [](bool, int64_t) { return 0; },
        [&](bool active, J column, int64_t, int, int, int) {
            if (active)
                insert(table, size, static_cast<K>(column), added);
        });
    __syncwarp();
    for (int step = team.lanes / 2; step > 0; step /= 2)
        added += __shfl_xor_sync(ALL, added, step);
    if (mine && team.inner() == 0)
        counts[row] = added;
}

// Ascending order of E keys a lane of the team: key e of lane i is number
// e · lanes + i.
template <int E, class K> __device__ __forceinline__ void sort(const Team &team, K (&keys)[E]) {
    const int inner = team.inner();
    for (int span = 2; span <= E * team.lanes; span *= 2) {
#pragma unroll
        for (int across = E / 2; across > 0; across /= 2) {
            if (2 * across * team.lanes > span)
                continue;
#pragma unroll
            for (int e = 0; e < E; ++e) {
                if (e & across)
                    continue;
                const K a = keys[e], b = keys[e + across];
                const bool ascends = ((e * team.lanes + inner) & span) == 0;
                if ((a > b) == ascends) {
                    keys[e] = b;
                    keys[e + across] = a;
                }
            }
        }
        for (int step = min(span, team.lanes) / 2; step > 0; step /= 2) {
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const K other = __shfl_xor_sync(ALL, keys[e], step);
                const bool least =
                    ((inner & step) == 0) == (((e * team.lanes + inner) & span) == 0);
                if (least == (other < keys[e]))
                    keys[e] = other;
            }
        }
    }
}

// Columns and values of a row of up to `most` entries, at most E · lanes and less
// than `size`. `list` has room for them.
template <int E, class A, class B, class T, class J>
__device__ __forceinline__ void write_row(const Team &team, Key<J> *table, const T *sums, int size,
                                          Key<J> *list, int most, int entries, int64_t place,
                                          T alpha, bool vanishes, const Output &out) {
    using K = Key<J>;
    const int inner = team.inner();
    J *kept = static_cast<J *>(out.kept);
    T *values = static_cast<T *>(out.values);
    K keys[E];
    if (out.known) {
#pragma unroll
        for (int e = 0; e < E; ++e) {
            const int i = e * team.lanes + inner;
            keys[e] = i < entries ? static_cast<K>(kept[place + i]) : empty<K>();
        }
    } else {
        int found = 0;
        for (int i = inner; i - inner < size; i += team.lanes) {
            const K key = table[i];
            const unsigned mask = team.own(__ballot_sync(ALL, key != empty<K>()));
            const int at = found + __popc(mask & ((1u << inner) - 1));
            if (key != empty<K>() && at < most)
                list[at] = key;
            found += __popc(mask);
        }
        __syncwarp();
#pragma unroll
        for (int e = 0; e < E; ++e) {
            const int i = e * team.lanes + inner;
            keys[e] = i < min(found, most) ? list[i] : empty<K>();
        }
        sort<E>(team, keys);
    }
    int added = 0;
#pragma unroll
    for (int e = 0; e < E; ++e) {
        const int i = e * team.lanes + inner;
        if (i >= entries)
            continue;
        const int slot = insert(table, size, keys[e], added);
        values[place + i] = vanishes ? zero<T>() : times(alpha, sums[slot]);
        out.put_column(place + i, static_cast<int64_t>(keys[e]));
        if (!out.known && kept != nullptr)
            kept[place + i] = static_cast<J>(keys[e]);
    }
}

// Columns and values of a row with up to `most` entries (a power of two, less
// than `size`, that of the table). Shared memory a team: `size` sums, `size`
// keys, `most` keys.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_row(const Team &team, const Factor &left, const Factor &right, const A *left_values,
             const B *right_values, const Scalar<T> &scale, const uint32_t *list, int64_t count,
             int size, int most, const Output &out) {
    using K = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    const int bytes = size * (sizeof(T) + sizeof(K)) + most * sizeof(K);
    unsigned char *part = memory + team.in_block() * bytes;
    T *sums = reinterpret_cast<T *>(part);
    K *table = reinterpret_cast<K *>(sums + size);
    K *sorted = table + size;
    int64_t row, begin, end;
    const bool mine = take_row(team, list, count, left, row, begin, end);
    const int64_t place = mine ? out.offsets[row] : 0;
    const int entries = mine ? static_cast<int>(out.offsets[row + 1] - place) : 0;
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    int added = 0;

    clear(team, table, size);
    for (int i = team.inner(); i < size; i += team.lanes)
        sums[i] = zero<T>();
    __syncwarp();
    if (out.known) {
        const J *kept = static_cast<const J *>(out.kept);
        for (int i = team.inner(); i < entries; i += team.lanes)
            insert(table, size, static_cast<K>(kept[place + i]), added);
        __syncwarp();
    }
    if (!out.known || !vanishes) {
        for_factors<J>(
            team, left, right, begin, end,
            [&](bool active, int64_t at) {
                return active && !vanishes ? widen<T>(left_values[at]) : zero<T>();
            },
            [&](bool active, J column, int64_t at, T factor, int turn, int turns) {
                T product = zero<T>();
                if (active && !vanishes)
                    product = times(factor, widen<T>(right_values[at]));
                int slot = 0;
                if (active)
                    slot = insert(table, size, static_cast<K>(column), added);
                for (int now = 0; now < turns; ++now) {
                    if (active && turn == now)
                        sums[slot] = plus(sums[slot], product);
                    __syncwarp();
                }
            });
    }
    __syncwarp();
    switch (most / team.lanes) {
    case 0:
    case 1:
        write_row<1, A, B, T, J>(team, table, sums, size, sorted, most, entries, place, alpha,
                                 vanishes, out);
        break;
    case 2:
        write_row<2, A, B, T, J>(team, table, sums, size, sorted, most, entries, place, alpha,
                                 vanishes, out);
        break;
    case 4:
        write_row<4, A, B, T, J>(team, table, sums, size, sorted, most, entries, place, alpha,
                                 vanishes, out);
        break;
    case 8:
        write_row<8, A, B, T, J>(team, table, sums, size, sorted, most, entries, place, alpha,
                                 vanishes, out);
        break;
    default:
        write_row<16, A, B, T, J>(team, table, sums, size, sorted, most, entries, place, alpha,
                                  vanishes, out);
    }
}

} // namespace

#define COUNT(name, J)                                                                             \
    extern "C" __global__ void __launch_bounds__(THREADS, 8) spgemm_team_count_##name(             \
        Factor left, Factor right, int32_t lanes, int32_t part, const uint32_t *list,              \
        int64_t count, int32_t size, int64_t *counts) {                                            \
        count_row<J>({lanes, part}, left, right, list, count, size, counts);                       \
    }
COUNT(32, int32_t)
COUNT(64, int64_t)

#define MULTIPLY(combo, A, B, T, name, J)                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 5)                                       \
        spgemm_team_multiply_##combo##_##name(                                                     \
            Factor left, Factor right, const A *left_values, const B *right_values,                \
            Scalar<T> alpha, int32_t lanes, int32_t part, const uint32_t *list, int64_t count,     \
            int32_t size, int32_t most, Output out) {                                              \
        multiply_row<A, B, T, J>({lanes, part}, left, right, left_values, right_values, alpha,     \
                                 list, count, size, most, out);                                    \
    }
TARSIA_FOR_EACH_SPGEMM(MULTIPLY, 32, int32_t)
TARSIA_FOR_EACH_SPGEMM(MULTIPLY, 64, int64_t)
