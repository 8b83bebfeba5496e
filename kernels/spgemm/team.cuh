// Teams of lanes, each of which takes a row of the product, and functions that a team executes
// together.
#pragma once

#include "spgemm/common.cuh"

namespace tarsia::spgemm {

// Lanes that take one row, in parts; `lanes` and `part` are powers of two, part ≤ lanes ≤ 32.
struct Team {
    int lanes;
    int part;

    __device__ __forceinline__ int in_block() const { return threadIdx.x / lanes; }
    __device__ __forceinline__ int inner() const { return threadIdx.x & (lanes - 1); }
    __device__ __forceinline__ int first_lane() const { return lane_id() & ~(lanes - 1); }
    __device__ __forceinline__ int parts() const { return lanes / part; }
    // Bits of a ballot that belong to the team's lanes, shifted to bit 0.
    __device__ __forceinline__ unsigned own(unsigned ballot) const {
        return (ballot >> first_lane()) & (lanes == 32 ? ALL_LANES : (1u << lanes) - 1);
    }
};

// Entries [begin, end) of a row of `left` in the hands of a team, one per lane: each with its value
// and the entries of the row of `right` that it meets. The next ones are loaded ahead, and the
// columns of those after them.
template <class LeftValueOf, class Value> struct LeftEntries {
    const Team &team;
    const Factor &left, &right;
    int64_t begin, end;
    LeftValueOf left_value_of;
    Value own;
    int64_t start = 0, k = -1;
    unsigned length = 0;

    __device__ __forceinline__ void fetch_column(int done) {
        const int64_t at = begin + done + team.inner();
        k = at < end ? left.column(at) : -1;
    }
    __device__ __forceinline__ void fetch(int done) {
        const int64_t at = begin + done + team.inner();
        length = 0;
        own = left_value_of(at < end, at);
        if (k >= 0) {
            start = right.start(k);
            length = static_cast<unsigned>(right.start(k + 1) - start);
        }
        fetch_column(done + team.lanes);
    }
};

// Entries of the rows of `right` that a team has in hand, one row per lane: position, length, and
// the value of `left` that multiplies it. `held` of the team's lanes have a row.
template <class J, class Value, class ValueOf> struct Rows {
    const Team &team;
    const J *columns;
    J base;
    ValueOf value_of;
    int64_t start;
    unsigned length;
    Value own;
    int held;

    __device__ __forceinline__ J column(bool active, int64_t at) const {
        return active ? static_cast<J>(columns[at] - base) : J(0);
    }

    // Each part takes one row at a time. The order of products does not matter.
    template <class Function> __device__ __forceinline__ void by_parts_unordered(Function f) const {
        const int parts = team.parts(), number = team.inner() / team.part;
        for (int first = 0; first < held; first += parts) {
            const int owner = team.first_lane() + first + number;
            const int64_t from = __shfl_sync(ALL_LANES, start, owner);
            const unsigned all = __shfl_sync(ALL_LANES, length, owner);
            const unsigned longest = __reduce_max_sync(ALL_LANES, all);
            const unsigned width = team.part;
            unsigned i = team.inner() & (width - 1);
            for (unsigned done = 0; done < longest; done += 2 * width, i += 2 * width) {
                const bool active = i < all, again = i + width < all;
                const J here = column(active, from + i), then = column(again, from + i + width);
                f(active, here, value_of(false, from), own, 0, 1);
                if (done + width < longest)
                    f(again, then, value_of(false, from), own, 0, 1);
            }
        }
    }

    // Each part takes one row, of up to `part` entries; two are loaded at a time.
    template <class Function> __device__ __forceinline__ void by_parts(Function f) const {
        const int parts = team.parts(), turn = team.inner() / team.part;
        const int inner = team.inner() & (team.part - 1);
        for (int first = 0; first < held; first += 2 * parts) {
            const bool more = first + parts < held;
            const int owner = team.first_lane() + first + turn;
            const int second = more ? owner + parts : owner;
            const int64_t from = __shfl_sync(ALL_LANES, start, owner) + inner;
            const int64_t then = __shfl_sync(ALL_LANES, start, second) + inner;
            const bool active = inner < __shfl_sync(ALL_LANES, length, owner);
            const bool again = inner < __shfl_sync(ALL_LANES, length, second) && more;
            const J here = column(active, from), column_then = column(again, then);
            const auto value = value_of(active, from);
            const auto value_then = value_of(again, then);
            const auto multiplier = from_lane(own, owner);
            const auto multiplier_then = from_lane(own, second);
            f(active, here, value, multiplier, turn, parts);
            if (more)
                f(again, column_then, value_then, multiplier_then, turn, parts);
        }
    }

    // One product per lane, from whichever row; products of one row share a turn. Two are loaded
    // at a time.
    template <bool ORDERED, class Function>
    __device__ __forceinline__ void by_products(Function f) const {
        int sum = static_cast<int>(length);
        for (int step = 1; step < team.lanes; step *= 2) {
            const int other = __shfl_up_sync(ALL_LANES, sum, step, team.lanes);
            if (team.inner() >= step)
                sum += other;
        }
        const int total = __shfl_sync(ALL_LANES, sum, team.lanes - 1, team.lanes);
        const int longest =
            static_cast<int>(__reduce_max_sync(ALL_LANES, static_cast<unsigned>(total)));
        const int64_t shifted = start - (sum - static_cast<int>(length));
        const auto take = [&](int product, int &owner) {
            owner = 0;
            for (int step = team.lanes / 2; step > 0; step /= 2) {
                if (__shfl_sync(ALL_LANES, sum, owner + step - 1, team.lanes) <= product)
                    owner += step;
            }
            return __shfl_sync(ALL_LANES, shifted, owner, team.lanes) + product;
        };
        const auto give = [&](bool active, J column, auto value, int owner) {
            if constexpr (ORDERED) {
                // Not the part's number here: rows are counted from the first lane's.
                const int turn = owner - __shfl_sync(ALL_LANES, owner, 0, team.lanes);
                const int turns = 1 + static_cast<int>(__reduce_max_sync(
                                          ALL_LANES, active ? static_cast<unsigned>(turn) : 0u));
                f(active, column, value, from_lane(own, team.first_lane() + owner), turn, turns);
            } else {
                f(active, column, value, own, 0, 1);
            }
        };
        for (int first = 0; first < longest; first += 2 * team.lanes) {
            const int product = first + team.inner(), second = product + team.lanes;
            int owner, owner_then;
            const int64_t from = take(product, owner), then = take(second, owner_then);
            const bool active = product < total, again = second < total;
            const J here = column(active, from), column_then = column(again, then);
            const auto value = value_of(active, from);
            const auto value_then = value_of(again, then);
            give(active, here, value, owner);
            if (first + team.lanes < longest)
                give(again, column_then, value_then, owner_then);
        }
    }
};

// Calls f(active, column, value, multiplier, turn, turns) for the products of the team's row, one
// per lane: for each of the row's entries of `left`, its products with the entries of a row of
// `right`. left_value_of(active, position) and value_of(active, position) load values of `left` and
// of `right`. All lanes of the warp call f together; a part that has no row of `right` left has one
// of length 0.
//
// If ORDERED, products with the same `turn` (less than `turns`) are of one row of `right`, and
// turns ascend with the row's entries of `left`. Rows of up to `part` entries are taken by one part
// each; if the warp has a longer one in hand, every lane takes a product of whichever row.
//
// Unless ORDERED, `turn`, `turns`, `value` and `multiplier` are meaningless (only columns are
// wanted). Rows of up to 4 · part entries are taken by one part each; if the warp has a longer one
// in hand, every lane takes a product of whichever row.
template <bool ORDERED, class J, class LeftValueOf, class ValueOf, class Function>
__device__ __forceinline__ void
for_team_products(const Team &team, const Factor &left, const Factor &right, int64_t begin,
                  int64_t end, LeftValueOf left_value_of, ValueOf value_of, Function f) {
    using Value = decltype(left_value_of(false, begin));
    const J *columns = static_cast<const J *>(right.indices.data);
    const J base = static_cast<J>(right.base);
    const int most = static_cast<int>(
        __reduce_max_sync(ALL_LANES, static_cast<unsigned>(min(end - begin, int64_t(0x7fffffff)))));
    LeftEntries<LeftValueOf, Value> next{
        team, left, right, begin, end, left_value_of, left_value_of(false, begin)};
    next.fetch_column(0);
    next.fetch(0);
    for (int done = 0; done < most; done += team.lanes) {
        const Rows<J, Value, ValueOf> rows{
            team,       columns,     base,     value_of,
            next.start, next.length, next.own, min(team.lanes, most - done)};
        if (done + team.lanes < most)
            next.fetch(done + team.lanes);
        // Whether all rows of `right` in hand, those of the warp's other teams included, are short
        // enough for one part each.
        const bool together =
            __reduce_max_sync(ALL_LANES, rows.length) <= (ORDERED ? 1 : 4) * team.part;
        if (!together) {
            rows.template by_products<ORDERED>(f);
        } else if constexpr (ORDERED) {
            rows.by_parts(f);
        } else {
            rows.by_parts_unordered(f);
        }
    }
}

template <class KeyType>
__device__ __forceinline__ void clear(const Team &team, KeyType *table, int size) {
    // Tables begin at multiples of 16 bytes and are at least 16 bytes long.
    uint4 *words = reinterpret_cast<uint4 *>(table);
    for (int i = team.inner(); i < size * static_cast<int>(sizeof(KeyType)) / 16; i += team.lanes)
        words[i] = make_uint4(ALL_LANES, ALL_LANES, ALL_LANES, ALL_LANES);
}

// Sorts KEYS keys per lane of a team of LANES in ascending order: key e of lane i is number e ·
// LANES + i. Everything is unrolled: a step across lanes is a shuffle and a minimum or maximum.
template <int LANES, int KEYS, class KeyType>
__device__ __forceinline__ void sort(KeyType (&keys)[KEYS]) {
    const int inner = threadIdx.x & (LANES - 1);
#pragma unroll
    for (int span = 2; span <= KEYS * LANES; span *= 2) {
#pragma unroll
        for (int across = KEYS / 2; across > 0; across /= 2) {
            if (2 * across * LANES > span)
                continue;
#pragma unroll
            for (int e = 0; e < KEYS; ++e) {
                if (e & across)
                    continue;
                const KeyType a = keys[e], b = keys[e + across];
                const bool ascends = (e * LANES & span) == 0;
                keys[e] = ascends ? min(a, b) : max(a, b);
                keys[e + across] = ascends ? max(a, b) : min(a, b);
            }
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            if (2 * step > span)
                continue;
            const bool low = (inner & step) == 0, ascends = (inner & span) == 0;
#pragma unroll
            for (int e = 0; e < KEYS; ++e) {
                const KeyType other = __shfl_xor_sync(ALL_LANES, keys[e], step);
                // In spans of less than the team's lanes, the direction depends only on the lane.
                const bool least = span < LANES ? low == ascends : low == ((e * LANES & span) == 0);
                keys[e] = least ? min(keys[e], other) : max(keys[e], other);
            }
        }
    }
}

} // namespace tarsia::spgemm
