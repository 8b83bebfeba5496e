// Slices of src/format/warp_sell.rs, and the loop of a lane over its entries of a slice.
#pragma once

#include "format/warp_sell.cuh"
#include "ptx/loads.cuh"
#include "spmv/dot.cuh"

namespace tarsia::spmv {

using namespace warp_sell;

// Row number of a lane without a row.
constexpr uint32_t NO_ROW = ~0u;

// Arrays of the layout.
template <class A> struct Sell {
    int64_t slices, rows;
    const SliceHead *heads;
    const uint32_t *order;
    const A *values;
    const uint16_t *narrow;
    const uint32_t *wide;
};

// Forms in which columns are stored.
enum class Columns { NARROW, WIDE, ADJACENT };

// Columns of a lane's group. Two narrow ones share a word. Columns are loaded as words, which
// compilers keep in registers.
template <int GROUP, Columns FORM> struct ColumnGroup {
    static constexpr int COUNT = FORM == Columns::ADJACENT ? 1 : GROUP;
    static constexpr int WORDS = FORM == Columns::WIDE ? GROUP : (COUNT + 1) / 2;
    uint32_t words[WORDS];

    template <class J> __device__ __forceinline__ void load(const J *p) {
        load_words<COUNT * sizeof(J)>(words, p);
    }
    __device__ __forceinline__ uint32_t operator[](int v) const {
        if constexpr (FORM == Columns::WIDE) {
            return words[v];
        } else if constexpr (FORM == Columns::ADJACENT) {
            return words[0] + v;
        } else {
            return v % 2 == 0 ? words[v / 2] & 0xffff : words[v / 2] >> 16;
        }
    }
};

// Item of a lane. Its word of `order` is not used before the first values and columns are in
// flight, so that these loads do not wait for it.
struct LaneItem {
    // The item's word in `order`; 0 if the lane has no entry, or if row and length are known
    // without it.
    uint32_t found;
    // The length, if the head gives it; otherwise 0.
    int fixed;
    // Row from which `found` counts, or the row itself; NO_ROW if the lane has none.
    uint32_t row;

    // Returns the length, and makes `row` the item's first row.
    __device__ __forceinline__ int begin() {
        row += found & 0xffff;
        return fixed + int(found >> 16);
    }
};

// Converts an element of x to the type of the sum to which its products are added.
template <class Acc, class X> __device__ __forceinline__ Acc widened(const Acc &, X factor) {
    return widen<Acc>(factor);
}
template <class Acc, class A>
__device__ __forceinline__ void add_product(Acc &sum, A value, const Acc &factor) {
    sum = fma(widen<Acc>(value), factor, sum);
}

// Number of a slice's steps, and a lane's rank in its item.
struct Steps {
    int full;
    // True if a half step comes before the full ones.
    bool half;
    int lanes_log2, rank;
};

// Columns of a lane's group in a number of steps, and the values of ITEM_ROWS rows there.
template <class A, int GROUP, int ITEM_ROWS, int STEPS, Columns FORM> struct Groups {
    static constexpr int WORDS = (GROUP * sizeof(A) + 3) / 4;
    uint32_t words[STEPS][ITEM_ROWS][WORDS];
    ColumnGroup<GROUP, FORM> columns[STEPS];

    // Loads the first `count` steps; columns of successive ones are `stride` apart.
    template <class J>
    __device__ __forceinline__ void load(const A *values, const J *from, int stride, int count) {
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
            if (u < count) {
#pragma unroll
                for (int k = 0; k < ITEM_ROWS; ++k)
                    load_elements<GROUP>(words[u][k], values + (u * ITEM_ROWS + k) * WARP * GROUP);
                columns[u].load(from + u * stride);
            }
        }
    }
    // Loads what the values are multiplied by; the item has `rest` columns from the lane's first
    // one on.
    template <class X, class FactorAt>
    __device__ __forceinline__ void load_factors(X (&factor)[STEPS][GROUP], FactorAt factor_at,
                                                 int lanes_log2, int rest) const {
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
#pragma unroll
            for (int v = 0; v < GROUP; ++v) {
                if ((u << lanes_log2) * GROUP + v < rest)
                    factor[u][v] = factor_at(columns[u][v]);
            }
        }
    }
    template <class Sum, class X>
    __device__ __forceinline__ void add(Sum (&sums)[ITEM_ROWS], const X (&factor)[STEPS][GROUP],
                                        int lanes_log2, int rest) const {
#pragma unroll
        for (int u = 0; u < STEPS; ++u) {
#pragma unroll
            for (int v = 0; v < GROUP; ++v) {
                if ((u << lanes_log2) * GROUP + v < rest) {
                    const auto wide = widened(sums[0], factor[u][v]);
#pragma unroll
                    for (int k = 0; k < ITEM_ROWS; ++k)
                        add_product(sums[k], element<A>(words[u][k], v), wide);
                }
            }
        }
    }
};

// Adds to `sums`, one for each of the item's rows, the products of one lane in all steps of a
// slice; factor_at(column) gives the element that values in that column are multiplied by. The
// slice's values and columns start at `values` and `columns`. The lane's columns begin
// `columns_lane` groups further on; columns of successive full steps are `stride` apart, and those
// of a half step take the `half_stride` elements before. AHEAD steps are in flight besides the next
// ones. Values of HALF_BYTES or more have half steps.
template <int GROUP, int ITEM_ROWS, int AHEAD, Columns FORM, int HALF_BYTES = 8, class A, class J,
          class Sum, class FactorAt>
__device__ __forceinline__ void sum_lane(Sum (&sums)[ITEM_ROWS], const A *values, const J *columns,
                                         int lane, int columns_lane, int half_stride, int stride,
                                         FactorAt factor_at, Steps steps, LaneItem &item) {
    using X = decltype(factor_at(0u));
    constexpr int HALF_GROUP = GROUP / 2, COLUMNS = FORM == Columns::ADJACENT ? 1 : GROUP;
    constexpr bool HALVES = GROUP == 2 && sizeof(A) >= HALF_BYTES;
    using Batch = Groups<A, GROUP, ITEM_ROWS, AHEAD, FORM>;
    Groups<A, HALF_GROUP, ITEM_ROWS, 1, FORM> half;
    const bool has_half = HALVES && steps.half;
    if (has_half) {
        half.load(values + lane * HALF_GROUP,
                  columns + columns_lane * (COLUMNS == 1 ? 1 : HALF_GROUP), 0, 1);
        values += ITEM_ROWS * WARP * HALF_GROUP;
        columns += half_stride;
    }
    values += lane * GROUP;
    columns += columns_lane * COLUMNS;
    // Number of full steps from the next groups on.
    int left = steps.full;
    const auto fetch = [&](Batch &out) {
        out.load(values, columns, stride, left);
        values += AHEAD * WARP * GROUP * ITEM_ROWS;
        columns += AHEAD * stride;
        left -= AHEAD;
    };
    // Two sets of registers alternate: a move from one to the other would wait for its loads.
    Batch even, odd;
    fetch(even);
    // Number of the item's columns from the lane's next one on, for full steps and for the half
    // step.
    const int length = item.begin(), rest_of_half = has_half ? length - steps.rank * HALF_GROUP : 0;
    int rest = length - (has_half ? HALF_GROUP << steps.lanes_log2 : 0) - steps.rank * GROUP;
    const auto add_steps = [&](const Batch &now, Batch &next) {
        X factor[AHEAD][GROUP];
        now.load_factors(factor, factor_at, steps.lanes_log2, rest);
        fetch(next);
        now.add(sums, factor, steps.lanes_log2, rest);
        rest -= (AHEAD << steps.lanes_log2) * GROUP;
    };
    if constexpr (HALVES) {
        X factor_of_half[1][HALF_GROUP], factor[AHEAD][GROUP];
        half.load_factors(factor_of_half, factor_at, 0, rest_of_half);
        even.load_factors(factor, factor_at, steps.lanes_log2, rest);
        fetch(odd);
        half.add(sums, factor_of_half, 0, rest_of_half);
        even.add(sums, factor, steps.lanes_log2, rest);
        rest -= (AHEAD << steps.lanes_log2) * GROUP;
#pragma unroll 1
        while (left > -AHEAD) {
            add_steps(odd, even);
            if (left <= -AHEAD)
                break;
            add_steps(even, odd);
        }
    } else {
#pragma unroll 1
        while (left > -AHEAD) {
            add_steps(even, odd);
            if (left <= -AHEAD)
                break;
            add_steps(odd, even);
        }
    }
    __syncwarp();
}

template <class A> __device__ __forceinline__ SliceHead load_head(const Sell<A> &a, int64_t slice) {
    return load_head(a.heads + slice);
}

// Item of a lane of a slice.
template <class A>
__device__ __forceinline__ LaneItem find_item(const Sell<A> &a, const SliceHead &head, int lane) {
    const int number = lane >> head.lanes_log2;
    LaneItem item = {0, head.length, NO_ROW};
    if (head.flags & EVEN) {
        item.row = head.row + lane;
    } else if (head.flags & PART) {
        item.row = head.row;
    } else if (number < head.items) {
        // Positions are less than 2^31, so this does not overflow.
        item.found = __ldg(a.order + head.place + number);
        item.row = head.row;
    }
    return item;
}

} // namespace tarsia::spmv
