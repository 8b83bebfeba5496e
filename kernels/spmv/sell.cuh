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
template <int V, Columns FORM> struct ColumnGroup {
    static constexpr int COUNT = FORM == Columns::ADJACENT ? 1 : V;
    static constexpr int WORDS = FORM == Columns::WIDE ? V : (COUNT + 1) / 2;
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

template <bool VALUE> struct Is { static constexpr bool value = VALUE; };

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

// Adds to `sums`, one for each of the item's rows, the products of one lane in all steps of a
// slice; take(column) gives the element that values in that column are multiplied by. The slice's
// values and columns start at `values` and `columns`. The lane's columns begin `columns_lane`
// groups further on; columns of successive full steps are `stride` apart, and those of a half step
// take the `half_stride` elements before. U steps are in flight besides the next ones. Values of
// HALF_BYTES or more have half steps.
template <int V, int K, int U, Columns FORM, int HALF_BYTES = 8, class A, class J, class Sum,
          class Take>
__device__ __forceinline__ void sum_lane(Sum (&sums)[K], const A *values, const J *columns,
                                         int lane, int columns_lane, int half_stride, int stride,
                                         Take take, Steps steps, LaneItem &item) {
    using X = decltype(take(0u));
    constexpr int H = V / 2, STEP = WARP * V;
    constexpr int WORDS = (V * sizeof(A) + 3) / 4, HALF_WORDS = (H * sizeof(A) + 3) / 4;
    constexpr bool ONE = FORM == Columns::ADJACENT;
    constexpr bool HALVES = V == 2 && sizeof(A) >= HALF_BYTES;
    uint32_t half[K][HALF_WORDS];
    ColumnGroup<H, FORM> half_at;
    const bool has_half = HALVES && steps.half;
    if (has_half) {
#pragma unroll
        for (int k = 0; k < K; ++k)
            load_elements<H>(half[k], values + (k * WARP + lane) * H);
        half_at.load(columns + columns_lane * (ONE ? 1 : H));
        values += K * WARP * H;
        columns += half_stride;
    }
    values += lane * V;
    columns += columns_lane * (ONE ? 1 : V);
    // Number of full steps from the next groups on.
    int left = steps.full;
    const auto fetch = [&](uint32_t(&out)[U][K][WORDS], ColumnGroup<V, FORM>(&group)[U]) {
#pragma unroll
        for (int u = 0; u < U; ++u) {
            if (u < left) {
#pragma unroll
                for (int k = 0; k < K; ++k)
                    load_elements<V>(out[u][k], values + (u * K + k) * STEP);
                group[u].load(columns + u * stride);
            }
        }
        values += U * STEP * K;
        columns += U * stride;
        left -= U;
    };
    const auto add = [&](const auto &words, int v, X factor) {
        const auto wide = widened(sums[0], factor);
#pragma unroll
        for (int k = 0; k < K; ++k)
            add_product(sums[k], element<A>(words[k], v), wide);
    };
    // Two sets of registers alternate: a move from one to the other would wait for its loads.
    uint32_t even[U][K][WORDS], odd[U][K][WORDS];
    ColumnGroup<V, FORM> even_at[U], odd_at[U];
    fetch(even, even_at);
    // Number of the item's columns from the lane's next one on, for full steps and for the half
    // step.
    const int length = item.begin(), rest_of_half = has_half ? length - steps.rank * H : 0;
    int rest = length - (has_half ? H << steps.lanes_log2 : 0) - steps.rank * V;
    const auto add_steps = [&](const uint32_t(&now)[U][K][WORDS],
                               const ColumnGroup<V, FORM>(&now_at)[U], uint32_t(&next)[U][K][WORDS],
                               ColumnGroup<V, FORM>(&next_at)[U], auto is_first) {
        X factor[U][V], factor_of_half[H];
        if constexpr (is_first.value && HALVES) {
#pragma unroll
            for (int v = 0; v < H; ++v) {
                if (v < rest_of_half)
                    factor_of_half[v] = take(half_at[v]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if ((u << steps.lanes_log2) * V + v < rest)
                    factor[u][v] = take(now_at[u][v]);
            }
        }
        fetch(next, next_at);
        if constexpr (is_first.value && HALVES) {
#pragma unroll
            for (int v = 0; v < H; ++v) {
                if (v < rest_of_half)
                    add(half, v, factor_of_half[v]);
            }
        }
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
                if ((u << steps.lanes_log2) * V + v < rest)
                    add(now[u], v, factor[u][v]);
            }
        }
        rest -= (U << steps.lanes_log2) * V;
    };
    if constexpr (HALVES) {
        add_steps(even, even_at, odd, odd_at, Is<true>{});
#pragma unroll 1
        while (left > -U) {
            add_steps(odd, odd_at, even, even_at, Is<false>{});
            if (left <= -U)
                break;
            add_steps(even, even_at, odd, odd_at, Is<false>{});
        }
    } else {
#pragma unroll 1
        while (left > -U) {
            add_steps(even, even_at, odd, odd_at, Is<false>{});
            if (left <= -U)
                break;
            add_steps(odd, odd_at, even, even_at, Is<false>{});
        }
    }
    __syncwarp();
}

template <class A> __device__ __forceinline__ SliceHead load_head(const Sell<A> &a, int64_t slice) {
    SliceHead head;
    const uint4 *from = reinterpret_cast<const uint4 *>(a.heads + slice);
    const uint4 bits[2] = {__ldg(from), __ldg(from + 1)};
    memcpy(&head, bits, sizeof head);
    return head;
}

} // namespace tarsia::spmv
