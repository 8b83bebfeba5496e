// What the SpGEMM kernels share: the factors, sums over a block, hash tables
// in shared memory, and addition in a fixed order.
//
// C = A · B by rows (Gustavson 1978): row i of C is the sum of A(i, k) times
// row k of B over the entries of A's row. The products of one row are numbered
// in the order of A's row, then of B's, and every entry of C adds its products
// in that order, whoever computes them: equal bits from run to run and device
// to device, and the host's bits, since products and sums are rounded one by
// one and not fused.
#pragma once

#include "common/grid.cuh"
#include "common/search.cuh"
#include "common/types.cuh"

namespace tarsia::spgemm {

constexpr unsigned ALL = 0xffffffffu;

// Offsets or columns of either width. Reads of the left factor and of offsets
// are few, and a uniform branch spares three quarters of the kernels.
struct Ints {
    const void *data;
    int64_t wide;

    __device__ __forceinline__ int64_t operator[](int64_t at) const {
        return wide ? static_cast<const int64_t *>(data)[at]
                    : static_cast<const int32_t *>(data)[at];
    }
};

// Rows of a factor, without its values. (`Factor` in src/backend/cuda/spgemm.)
struct Factor {
    Ints offsets;
    Ints indices;
    int64_t base;

    __device__ __forceinline__ int64_t start(int64_t row) const { return offsets[row] - base; }
    __device__ __forceinline__ int64_t column(int64_t at) const { return indices[at] - base; }
};

// Rows of more than `longest` factors are cut into parts of `part` where warps take windows of
// their columns. (`Cut` in src/select/spgemm/wide.rs.)
struct Cut {
    int64_t longest;
    int64_t part;

    __device__ __forceinline__ int64_t parts(int64_t factors) const {
        return factors > longest ? (factors + part - 1) / part : 1;
    }
};

// Rows of a bin. Where kernels before count them, `counted` is how many there are, and there are
// none if these kernels have found more than `most` products, so that rows are binned otherwise.
// (`Listed` in src/backend/cuda/spgemm.)
struct Listed {
    const uint32_t *rows;
    int64_t count;
    const unsigned long long *counted;
    const unsigned long long *products;
    int64_t most;

    __device__ __forceinline__ int64_t size() const {
        if (counted == nullptr)
            return count;
        // Sums of low and high halves.
        const bool more = products[1] != 0 || products[0] > static_cast<unsigned long long>(most);
        return more ? 0 : static_cast<int64_t>(*counted);
    }
};

// Where columns and values go. `columns` is the user's array (or NULL), of 64
// bits if `wide`; `kept` the plan's, of base 0, or NULL. With `known` the
// columns have been found before and are read from `kept`. Where not `sorted`, columns of a row may
// be in another order than ascending, if that is always the same.
struct Output {
    const int64_t *offsets;
    void *columns;
    void *kept;
    void *values;
    int64_t wide;
    int64_t base;
    int64_t known;
    int64_t sorted;

    __device__ __forceinline__ void put_column(int64_t at, int64_t column) const {
        if (columns == nullptr)
            return;
        if (wide) {
            static_cast<int64_t *>(columns)[at] = column + base;
        } else {
            static_cast<int32_t *>(columns)[at] = static_cast<int32_t>(column + base);
        }
    }
};

__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ unsigned lanes_before() { return (1u << lane_id()) - 1; }

// One rounding each: the compiler may not fuse these.
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
template <class T> __device__ __forceinline__ Complex<T> plus(Complex<T> a, Complex<T> b) {
    return {plus(a.re, b.re), plus(a.im, b.im)};
}
template <class T> __device__ __forceinline__ Complex<T> times(Complex<T> a, Complex<T> b) {
    return {plus(times(a.re, b.re), -times(a.im, b.im)),
            plus(times(a.re, b.im), times(a.im, b.re))};
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Kernels of one phase take rows of different bins and need nothing of each other, but
// all of what was before them. Each lets the next begin when its last block has begun,
// and ends after the one before, so that what comes after the last comes after all.
// (`Beside` in src/backend/cuda/spgemm.)
__device__ __forceinline__ void let_next_begin() {
    asm volatile("griddepcontrol.launch_dependents;");
}
__device__ __forceinline__ void end_after_previous() {
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
        asm volatile("griddepcontrol.wait;" ::: "memory");
}
// Blocks that take a row of the product together: a cluster, where the launch makes one
// (compute capability 9.0), else one block. Ask once: what the compiler does not see to be the same
// for all threads may leave the lanes of a warp apart at a barrier.
__device__ __forceinline__ int cluster_blocks() {
    return static_cast<int>(__clusterSizeInBlocks());
}
__device__ __forceinline__ int cluster_rank() {
    return static_cast<int>(__clusterRelativeBlockRank());
}
// All threads of the cluster; what they wrote to shared memory can be read by the others.
__device__ __forceinline__ void cluster_barrier() {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
// Another block's element of a variable in shared memory.
__device__ __forceinline__ int64_t of_block(const int64_t *mine, int rank) {
    return *static_cast<const volatile int64_t *>(__cluster_map_shared_rank(mine, rank));
}
#else
__device__ __forceinline__ void let_next_begin() {}
__device__ __forceinline__ void end_after_previous() {}
__device__ __forceinline__ int cluster_blocks() { return 1; }
__device__ __forceinline__ int cluster_rank() { return 0; }
__device__ __forceinline__ void cluster_barrier() { __syncthreads(); }
__device__ __forceinline__ int64_t of_block(const int64_t *mine, int) { return *mine; }
#endif

// Inclusive sum over the warp.
template <class T> __device__ __forceinline__ T warp_sums(T value) {
    for (int delta = 1; delta < 32; delta *= 2) {
        const T other = __shfl_up_sync(ALL, value, delta);
        if (lane_id() >= delta)
            value += other;
    }
    return value;
}

// Inclusive sum over the block and the sum of all; `parts` is shared memory of
// 32 elements. All threads call it; it ends with a barrier.
template <class T> __device__ __forceinline__ T block_sums(T value, T *parts, T &all) {
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    value = warp_sums(value);
    if (lane_id() == 31)
        parts[warp] = value;
    __syncthreads();
    if (warp == 0) {
        T part = lane_id() < warps ? parts[lane_id()] : T(0);
        part = warp_sums(part);
        __syncwarp();
        parts[lane_id()] = part;
    }
    __syncthreads();
    if (warp > 0)
        value += parts[warp - 1];
    all = parts[31];
    __syncthreads();
    return value;
}

// out[i] = number(0) + … + number(i − 1) for i < count, which is at most 4,096 (SCANNED_BY_A_BLOCK
// in src/backend/cuda/spgemm/rows.rs). A block of 1,024 threads; all of them call it. `out` may be
// what `number` reads.
template <class F>
__device__ __forceinline__ void scan_in_block(int64_t count, int64_t *out, F number) {
    constexpr int EACH = 4;
    __shared__ int64_t parts[32];
    const int64_t first = EACH * static_cast<int64_t>(threadIdx.x);
    int64_t own[EACH], sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        own[i] = first + i < count ? number(first + i) : 0;
        sum += own[i];
    }
    int64_t all;
    int64_t before = block_sums(sum, parts, all) - sum;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        if (first + i < count)
            out[first + i] = before;
        before += own[i];
    }
}

// Least value over the block; `parts` as above. It ends with a barrier.
__device__ __forceinline__ int64_t block_least(int64_t value, int64_t *parts) {
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const int64_t other = __shfl_xor_sync(ALL, value, lanes);
        value = other < value ? other : value;
    }
    if (lane_id() == 0)
        parts[warp] = value;
    __syncthreads();
    value = parts[0];
    for (int w = 1; w < warps; ++w)
        value = parts[w] < value ? parts[w] : value;
    __syncthreads();
    return value;
}

// Unsigned keys of columns; all ones is no column.
template <class J> struct KeyOf;
template <> struct KeyOf<int32_t> { using Type = uint32_t; };
template <> struct KeyOf<int64_t> { using Type = unsigned long long; };
template <class J> using Key = typename KeyOf<J>::Type;

template <class K> __device__ constexpr K empty() { return static_cast<K>(-1); }

// The slot of `key` in a table of `size` slots (a power of two), which is taken
// for it if it has none. The search ends even if the table is full, which only
// a pattern that changed after analysis makes it. `added` counts new keys.
template <class K> __device__ __forceinline__ int insert(K *table, int size, K key, int &added) {
    // Fibonacci hashing: the product's high bits depend on all of the key's.
    unsigned slot;
    if constexpr (sizeof(K) == 8) {
        slot = static_cast<unsigned>((key * 0x9E3779B97F4A7C15ull) >> 32);
    } else {
        slot = key * 0x9E3779B1u;
    }
    slot = (slot >> 16) ^ slot;
    for (int probe = 0; probe < size; ++probe, ++slot) {
        slot &= size - 1;
        K found = *const_cast<volatile K *>(table + slot);
        if (found == empty<K>()) {
            found = atomicCAS(table + slot, empty<K>(), key);
            if (found == empty<K>())
                ++added;
        }
        if (found == key || found == empty<K>())
            return slot;
    }
    return slot & (size - 1);
}

// How many products the entry `at` of `left` has, and where the first is in `right`; none from
// `end` on.
__device__ __forceinline__ int products_of(const Factor &left, const Factor &right, int64_t at,
                                           int64_t end, int64_t &start) {
    start = 0;
    if (at >= end)
        return 0;
    const int64_t k = left.column(at);
    start = right.start(k);
    return static_cast<int>(right.start(k + 1) - start);
}

// The first lane whose sum is beyond the product.
__device__ __forceinline__ int owner_of(int sum, int product) {
    int owner = 0;
    for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(ALL, sum, owner + step - 1) <= product)
            owner += step;
    }
    return owner;
}

// Calls f(active, position in left, position in right) for the products of a
// row in their order, 32 at a time, one a lane; all lanes call it together.
// The row has less than 2^31 products.
template <class F>
__device__ __forceinline__ void for_products(const Factor &left, const Factor &right, int64_t row,
                                             F f) {
    const int64_t end = left.start(row + 1);
    for (int64_t first = left.start(row); first < end; first += 32) {
        int64_t start;
        const int length = products_of(left, right, first + lane_id(), end, start);
        const int sum = warp_sums(length);
        const int total = __shfl_sync(ALL, sum, 31);
        start -= sum - length;
        for (int base = 0; base < total; base += 32) {
            const int product = base + lane_id();
            const int owner = owner_of(sum, product);
            const int64_t position = __shfl_sync(ALL, start, owner) + product;
            f(product < total, first + owner, position);
        }
    }
}

// Calls use(first, from, length) for the entries [begin, end) of `left`, 32 at a time from `first`
// on and one a lane, with what range(position, k, from, length) finds of the row k of `right` that
// the entry meets; the length is 0 where there is no entry. Each load waits for the one before, so
// that columns of `left` are read two steps ahead, and ranges one.
template <class Range, class Use>
__device__ __forceinline__ void for_rows_ahead(const Factor &left, int64_t begin, int64_t end,
                                               Range range, Use use) {
    const auto column = [&](int64_t at) { return at < end ? left.column(at) : -1; };
    int64_t at = begin + lane_id(), from = 0;
    unsigned length = 0;
    int64_t k = column(at);
    if (k >= 0)
        range(at, k, from, length);
    k = column(at + 32);
    for (int64_t first = begin; first < end; first += 32) {
        const int64_t from_now = from;
        const unsigned length_now = length;
        at += 32;
        length = 0;
        if (k >= 0)
            range(at, k, from, length);
        k = column(at + 32);
        use(first, from_now, length_now);
    }
}

// Rows of `right` with fewer products than this in the mean are taken together, a product a lane:
// in a row of their own they would leave lanes without one.
constexpr unsigned SHORT = 10;

// The products of 32 rows of `right`, one row a lane, in their order, up to HELD times 32 at a
// time: load(h, active, owner, position) reads them, for which all are under way together, and
// add(h, distinct) takes them then; `distinct`: they are of one row of `right`. Rows have less than
// 2^26 products.
template <int HELD, class Load, class Add>
__device__ __forceinline__ void for_products_ahead(int64_t from, unsigned length, Load load,
                                                   Add add) {
    const int sum = warp_sums(static_cast<int>(length));
    const int total = __shfl_sync(ALL, sum, 31);
    unsigned rest = __ballot_sync(ALL, length > 0);
    if (total < SHORT * __popc(rest)) {
        from -= sum - static_cast<int>(length);
        for (int base = 0; base < total; base += 32 * HELD) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const int product = base + 32 * h + lane_id();
                const int owner = owner_of(sum, product);
                load(h, product < total, owner, __shfl_sync(ALL, from, owner) + product);
            }
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                if (base + 32 * h < total)
                    add(h, false);
            }
        }
        return;
    }
    int64_t position = 0;
    unsigned left_over = 0;
    int owner = 0;
    while ((left_over | rest) != 0) {
        int held = 0;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (left_over == 0 && rest != 0) {
                owner = __ffs(rest) - 1;
                rest &= rest - 1;
                position = __shfl_sync(ALL, from, owner);
                left_over = __shfl_sync(ALL, length, owner);
            }
            load(h, lane_id() < left_over, owner, position + lane_id());
            held += left_over != 0;
            position += 32;
            left_over -= min(left_over, 32u);
        }
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (h < held)
                add(h, true);
        }
    }
}

// Where the factors of a row's products are, one product a lane in their order;
// false in lanes that have none. The row has at most 32 products.
__device__ __forceinline__ bool take_products(const Factor &left, const Factor &right, int64_t row,
                                              int64_t &left_at, int64_t &right_at) {
    const int64_t end = left.start(row + 1);
    bool mine = false;
    int taken = 0;
    for (int64_t first = left.start(row); first < end; first += 32) {
        int64_t start;
        const int length = products_of(left, right, first + lane_id(), end, start);
        const int sum = warp_sums(length);
        const int total = __shfl_sync(ALL, sum, 31);
        const int product = lane_id() - taken;
        const int owner = owner_of(sum, product);
        const int64_t position = __shfl_sync(ALL, start - (sum - length), owner) + product;
        if (product >= 0 && product < total) {
            mine = true;
            left_at = first + owner;
            right_at = position;
        }
        taken += total;
    }
    return mine;
}

// Which of the lanes with the same slot this is, and how many more rounds the
// warp needs for all of them; inactive lanes share with nobody.
__device__ __forceinline__ int rank_in_slot(bool active, unsigned slot, int &rounds) {
    const unsigned peers = __match_any_sync(ALL, active ? slot : 0x80000000u + lane_id());
    const int rank = __popc(peers & lanes_before());
    rounds = __reduce_max_sync(ALL, static_cast<unsigned>(rank));
    return rank;
}

// A shuffle of any type of values.
template <class T> __device__ __forceinline__ T from_lane(T value, int lane) {
    if constexpr (__is_class(T)) {
        return {__shfl_sync(ALL, value.re, lane), __shfl_sync(ALL, value.im, lane)};
    } else {
        return __shfl_sync(ALL, value, lane);
    }
}

// Adds one product a lane, those of one slot in the order of the lanes.
template <class T>
__device__ __forceinline__ void add_in_order(T *sums, bool active, unsigned slot, T product,
                                             int rank, int rounds) {
    for (int round = 0; round <= rounds; ++round) {
        if (active && rank == round)
            sums[slot] = plus(sums[slot], product);
        __syncwarp();
    }
}

// Adds one product a lane. Where the lanes' slots are all `distinct`, no lane waits for another;
// else products of one slot are added in the order of the lanes.
template <class T>
__device__ __forceinline__ void add_products(T *sums, bool active, unsigned slot, T product,
                                             bool distinct) {
    int rounds = 0, rank = 0;
    if (!distinct)
        rank = rank_in_slot(active, slot, rounds);
    add_in_order(sums, active, slot, product, rank, rounds);
}

// Adds the products of the factors [begin, end) of `left` where they meet few entries of `right`
// each: a product a lane, HELD of them loaded ahead. `range` finds the entries of a row of `right`
// (for_rows_ahead), and a product of column c is added to sums[slot(c − low)], unless c − low is
// `span` or more.
template <int HELD, class A, class B, class T, class J, class Range, class Slot>
__device__ __forceinline__ void
add_products_of_short_rows(const Factor &left, const Factor &right, const A *left_values,
                           const B *right_values, int64_t begin, int64_t end, int64_t low,
                           unsigned span, T *sums, Range range, Slot slot) {
    const J *columns = static_cast<const J *>(right.indices.data);
    for_rows_ahead(left, begin, end, range, [&](int64_t first, int64_t from, unsigned length) {
        const T own =
            first + lane_id() < end ? widen<T>(left_values[first + lane_id()]) : zero<T>();
        unsigned column[HELD];
        T factors[HELD];
        B values[HELD];
        for_products_ahead<HELD>(
            from, length,
            [&](int h, bool active, int owner, int64_t at) {
                factors[h] = from_lane(own, owner);
                column[h] = span;
                if (active) {
                    column[h] = static_cast<unsigned>(columns[at] - low);
                    values[h] = right_values[at];
                }
            },
            [&](int h, bool distinct) {
                const bool active = column[h] < span;
                const unsigned at = active ? slot(column[h]) : 0;
                const T product = active ? times(factors[h], widen<T>(values[h])) : zero<T>();
                add_products(sums, active, at, product, distinct);
            });
    });
}

} // namespace tarsia::spgemm
