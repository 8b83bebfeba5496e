// Code that the SpGEMM kernels share: the factors, sums over a block, hash tables in shared memory,
// and addition in a fixed order.
//
// C = A · B by rows (Gustavson 1978): row i of C is the sum of A(i, k) times row k of B over the
// entries of A's row. The products of one row are numbered in the order of A's row, then of B's,
// and every entry of C adds its products in that order, whichever thread computes them, but for the
// exceptions below. So results are bitwise equal from run to run, from device to device, and to the
// host's, since each product and each sum is rounded by itself, without fusing.
//
// Exceptions:
// - Rows that are cut along k (dense_windows.cu, map.cu): the products of each part are added in
//   that order, then the sums of the parts in theirs. The parts are the same on all devices; the
//   host has none.
// - Wide rows where both factors are nearly dense (dense.cu): matrix units or FMAs add. Whether
//   they do depends on the device, too.
// - Whether there is room for either of these depends on the memory that is free.
// - SpGEMM `tile` (tile.cu), which takes only helpers from here, adds in its own fixed order.
#pragma once

#include "common/block.cuh"
#include "common/grid.cuh"
#include "common/search.cuh"
#include "common/types.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"

namespace tarsia::spgemm {

// Offsets or columns of 32 or 64 bits. The left factor and offsets are read rarely enough that a
// uniform branch is cheap, and it saves three quarters of the kernel variants.
struct Ints {
    const void *data;
    int64_t wide;

    __device__ __forceinline__ int64_t operator[](int64_t at) const {
        return wide ? static_cast<const int64_t *>(data)[at]
                    : static_cast<const int32_t *>(data)[at];
    }
};

// Stores an integer in an array of 64-bit numbers if `wide`, else of 32-bit ones.
__device__ __forceinline__ void store_int(void *array, int64_t at, int64_t value, bool wide) {
    if (wide) {
        static_cast<int64_t *>(array)[at] = value;
    } else {
        static_cast<int32_t *>(array)[at] = static_cast<int32_t>(value);
    }
}

// Pattern of a factor. (`Factor` in src/backend/cuda/spgemm.)
struct Factor {
    Ints offsets;
    Ints indices;
    int64_t base;

    __device__ __forceinline__ int64_t start(int64_t row) const { return offsets[row] - base; }
    __device__ __forceinline__ int64_t column(int64_t at) const { return indices[at] - base; }
};

// Rule by which rows of more than `longest` entries of the left factor are cut into parts of `part`
// of them, where warps take windows of their columns. (`Cut` in src/select/spgemm/wide.rs.)
struct Cut {
    int64_t longest;
    int64_t part;

    __device__ __forceinline__ int64_t parts(int64_t entries) const {
        return entries > longest ? (entries + part - 1) / part : 1;
    }
};

// List of the rows of a bin. If earlier kernels count them, `counted` points to their number. The
// list is then taken as empty if these kernels have found more than `most` products, since rows are
// then binned differently. (`Listed` in src/backend/cuda/spgemm.)
struct Listed {
    const uint32_t *rows;
    int64_t count;
    const unsigned long long *counted;
    const unsigned long long *products;
    int64_t most;

    __device__ __forceinline__ int64_t size() const {
        if (counted == nullptr)
            return count;
        // products[0] and [1] are sums of low and high halves.
        const bool more = products[1] != 0 || products[0] > static_cast<unsigned long long>(most);
        return more ? 0 : static_cast<int64_t>(*counted);
    }
};

// Destination of columns and values. `columns` is the user's array (or NULL), of 64-bit numbers if
// `wide`; `kept` is the plan's array, with base 0, or NULL. With `known`, `kept` already has the
// columns: kernels may read them there and do not store them there again. Unless `sorted`, the
// columns of a row may be in another order than ascending, as long as it is always the same one.
struct Output {
    const int64_t *offsets;
    void *columns;
    void *kept;
    void *values;
    int64_t wide;
    int64_t base;
    int64_t known;
    int64_t sorted;

    __device__ __forceinline__ void store_column(int64_t at, int64_t column) const {
        if (columns != nullptr)
            store_int(columns, at, column + base, wide);
    }

    // Stores a column in the plan's array as well, unless it is there already.
    template <class J>
    __device__ __forceinline__ void store_new_column(int64_t at, J column) const {
        store_column(at, static_cast<int64_t>(column));
        if (!known && kept != nullptr)
            static_cast<J *>(kept)[at] = column;
    }
};

__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ unsigned lanes_before() { return (1u << lane_id()) - 1; }

// Products and sums that are rounded separately: the compiler may not fuse these.
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

// alpha, which scales every entry of C. If it is zero, entries become +0 and the factors' values
// are not read, so that NaN does not spread.
template <class T> struct Scale {
    T alpha;
    bool vanishes;

    __device__ __forceinline__ explicit Scale(const Scalar<T> &from)
        : alpha(from.get()), vanishes(is_zero(alpha)) {}
    __device__ __forceinline__ T of(T sum) const {
        return vanishes ? zero<T>() : times(alpha, sum);
    }
};

// Gives each warp of the grid one item of a list; returns false if there is none left for it.
template <class Item, class Taken>
__device__ __forceinline__ bool take_item(const Item *list, int64_t count, int64_t &number,
                                          Taken &item) {
    number = first_item() >> 5;
    if (number >= count)
        return false;
    item = list[number];
    return true;
}
template <class Item, class Taken>
__device__ __forceinline__ bool take_item(const Item *list, int64_t count, Taken &item) {
    int64_t number;
    return take_item(list, count, number, item);
}

// Sets the one bit of `bit` in a word in shared memory. Reads the word first, since most products
// meet a column that is already set, and atomics to one word are serialized.
__device__ __forceinline__ void set_one_bit(uint32_t *word, uint32_t bit) {
    if ((*const_cast<volatile uint32_t *>(word) & bit) == 0)
        atomicOr(word, bit);
}
template <class At> __device__ __forceinline__ void set_bit(uint32_t *words, At at) {
    set_one_bit(words + (at >> 5), 1u << (at & 31));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Number of blocks that take one row of the product together: those of a cluster if the launch has
// clusters (compute capability 9.0), otherwise one. Call it once and keep the result: if the
// compiler cannot see that a branch is uniform, it may split the lanes of a warp at a barrier.
__device__ __forceinline__ int cluster_blocks() {
    return static_cast<int>(__clusterSizeInBlocks());
}
__device__ __forceinline__ int cluster_rank() {
    return static_cast<int>(__clusterRelativeBlockRank());
}
// Barrier for all threads of the cluster; shared memory written before it can then be read by the
// other blocks.
__device__ __forceinline__ void cluster_barrier() {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
// Reads another block's copy of a variable in shared memory.
__device__ __forceinline__ int64_t of_block(const int64_t *mine, int rank) {
    return *static_cast<const volatile int64_t *>(__cluster_map_shared_rank(mine, rank));
}
#else
__device__ __forceinline__ int cluster_blocks() { return 1; }
__device__ __forceinline__ int cluster_rank() { return 0; }
__device__ __forceinline__ void cluster_barrier() { __syncthreads(); }
__device__ __forceinline__ int64_t of_block(const int64_t *mine, int) { return *mine; }
#endif

// Adds the block's sums of the low and of the high halves of numbers of products to totals[0] and
// totals[1]; `of_warps` is shared memory of 32 elements. All threads call it.
__device__ __forceinline__ void add_halves(unsigned long long low, unsigned long long high,
                                           unsigned long long *of_warps,
                                           unsigned long long *totals) {
    block_prefix_sum(low, of_warps, low);
    block_prefix_sum(high, of_warps, high);
    if (threadIdx.x == 0) {
        if (low > 0)
            atomicAdd(totals, low);
        if (high > 0)
            atomicAdd(totals + 1, high);
    }
}

// Returns the minimum over the block; `of_warps` is shared memory of 32 elements. Ends with a
// barrier.
__device__ __forceinline__ int64_t block_least(int64_t value, int64_t *of_warps) {
    const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    value = warp_min(value);
    if (lane_id() == 0)
        of_warps[warp] = value;
    __syncthreads();
    value = of_warps[0];
    for (int w = 1; w < warps; ++w)
        value = of_warps[w] < value ? of_warps[w] : value;
    __syncthreads();
    return value;
}

// Type of the unsigned keys of columns in hash tables; all ones marks an empty slot.
template <class J> struct KeyOf;
template <> struct KeyOf<int32_t> { using Type = uint32_t; };
template <> struct KeyOf<int64_t> { using Type = unsigned long long; };
template <class J> using Key = typename KeyOf<J>::Type;

template <class KeyType> __device__ constexpr KeyType empty() { return static_cast<KeyType>(-1); }

// Empties a table; `threads` threads call it together, this one with number `thread`.
template <class KeyType, class Threads>
__device__ __forceinline__ void clear(KeyType *table, int size, int thread, Threads threads) {
    for (int i = thread; i < size; i += threads)
        table[i] = empty<KeyType>();
}

// Returns the slot of `key` in a table of `size` slots (a power of two), and inserts the key if it
// is new. The search also ends if the table is full, which happens only if the pattern changed
// after analysis. `added` counts new keys.
template <class KeyType>
__device__ __forceinline__ int insert(KeyType *table, int size, KeyType key, int &added) {
    // Fibonacci hashing: the high bits of the product depend on all bits of the key.
    unsigned slot;
    if constexpr (sizeof(KeyType) == 8) {
        slot = static_cast<unsigned>((key * 0x9E3779B97F4A7C15ull) >> 32);
    } else {
        slot = key * 0x9E3779B1u;
    }
    slot = (slot >> 16) ^ slot;
    for (int probe = 0; probe < size; ++probe, ++slot) {
        slot &= size - 1;
        KeyType found = *const_cast<volatile KeyType *>(table + slot);
        if (found == empty<KeyType>()) {
            found = atomicCAS(table + slot, empty<KeyType>(), key);
            if (found == empty<KeyType>())
                ++added;
        }
        if (found == key || found == empty<KeyType>())
            return slot;
    }
    return slot & (size - 1);
}

// Collects the keys of a table in `list`, which has room for `most`; returns their number. Called
// by a whole warp.
template <class KeyType>
__device__ __forceinline__ int collect_keys(const KeyType *table, int size, KeyType *list,
                                            int most) {
    int found = 0;
    for (int i = lane_id(); i - lane_id() < size; i += 32) {
        const KeyType key = table[i];
        const unsigned mask = __ballot_sync(ALL_LANES, key != empty<KeyType>());
        const int at = found + __popc(mask & lanes_before());
        if (key != empty<KeyType>() && at < most)
            list[at] = key;
        found += __popc(mask);
    }
    return found;
}

// Sorts `count` keys in shared memory (a power of two) in ascending order by a bitonic network;
// `threads` threads call it together, this one with number `thread`. wait(step, span) makes the
// pairs that are `step` apart visible to the threads that take them next.
template <class KeyType, class Threads, class Wait>
__device__ __forceinline__ void sort_shared(KeyType *keys, int count, int thread, Threads threads,
                                            Wait wait) {
    for (int span = 2; span <= count; span *= 2) {
        for (int step = span / 2; step > 0; step /= 2) {
            for (int i = thread; i < count / 2; i += threads) {
                const int low = 2 * i - (i & (step - 1)), high = low + step;
                const KeyType a = keys[low], b = keys[high];
                if ((a > b) == ((low & span) == 0)) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
            wait(step, span);
        }
    }
}

// Returns the number of products of the entry `at` of `left` (0 from `end` on), and in `start` the
// position of the first one in `right`.
__device__ __forceinline__ int products_of(const Factor &left, const Factor &right, int64_t at,
                                           int64_t end, int64_t &start) {
    start = 0;
    if (at >= end)
        return 0;
    const int64_t k = left.column(at);
    start = right.start(k);
    return static_cast<int>(right.start(k + 1) - start);
}

// Returns the lane that a product belongs to: the first one whose sum exceeds its number.
__device__ __forceinline__ int owner_of(int sum, int product) {
    int owner = 0;
    for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(ALL_LANES, sum, owner + step - 1) <= product)
            owner += step;
    }
    return owner;
}

// Calls f(active, position in left, position in right) for the products of a row in their order, 32
// at a time, one per lane; all lanes call f together. The row has less than 2^31 products.
template <class Function>
__device__ __forceinline__ void for_products(const Factor &left, const Factor &right, int64_t row,
                                             Function f) {
    const int64_t end = left.start(row + 1);
    for (int64_t first = left.start(row); first < end; first += 32) {
        int64_t start;
        const int length = products_of(left, right, first + lane_id(), end, start);
        const int sum = prefix_sum(length);
        const int total = __shfl_sync(ALL_LANES, sum, 31);
        start -= sum - length;
        for (int base = 0; base < total; base += 32) {
            const int product = base + lane_id();
            const int owner = owner_of(sum, product);
            const int64_t position = __shfl_sync(ALL_LANES, start, owner) + product;
            f(product < total, first + owner, position);
        }
    }
}

// Calls use(first, from, length) for the entries [begin, end) of `left`, 32 at a time from `first`
// on, one per lane. `from` and `length` are set by range(position, k, from, length) for the row k
// of `right` that the entry meets; the length is 0 for a lane without an entry. Since each load
// depends on the one before, columns of `left` are loaded two steps ahead, and ranges one.
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

// Mean number of products per row of `right` below which the products of 32 rows are taken
// together, one per lane: row by row, short rows would leave lanes idle.
constexpr unsigned SHORT = 10;

// Takes the products of 32 rows of `right`, one row per lane, in their order, up to 32 · HELD at a
// time: load(h, active, owner, position) loads the products, all of whose loads are in flight
// together, and add(h, distinct) then adds them; with `distinct` they are of one row of `right`.
// Each lane's `length` is less than 2^26, so that an int holds the sum of all 32.
template <int HELD, class Load, class Add>
__device__ __forceinline__ void for_products_ahead(int64_t from, unsigned length, Load load,
                                                   Add add) {
    const int sum = prefix_sum(static_cast<int>(length));
    const int total = __shfl_sync(ALL_LANES, sum, 31);
    unsigned rest = __ballot_sync(ALL_LANES, length > 0);
    if (total < SHORT * __popc(rest)) {
        from -= sum - static_cast<int>(length);
        for (int base = 0; base < total; base += 32 * HELD) {
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const int product = base + 32 * h + lane_id();
                const int owner = owner_of(sum, product);
                load(h, product < total, owner, __shfl_sync(ALL_LANES, from, owner) + product);
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
                position = __shfl_sync(ALL_LANES, from, owner);
                left_over = __shfl_sync(ALL_LANES, length, owner);
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

// Finds the positions in `left` and `right` of a row's products, one product per lane, in their
// order; returns false in lanes without a product. The row has at most 32 products.
__device__ __forceinline__ bool take_products(const Factor &left, const Factor &right, int64_t row,
                                              int64_t &left_at, int64_t &right_at) {
    const int64_t end = left.start(row + 1);
    bool mine = false;
    int taken = 0;
    for (int64_t first = left.start(row); first < end; first += 32) {
        int64_t start;
        const int length = products_of(left, right, first + lane_id(), end, start);
        const int sum = prefix_sum(length);
        const int total = __shfl_sync(ALL_LANES, sum, 31);
        const int product = lane_id() - taken;
        const int owner = owner_of(sum, product);
        const int64_t position = __shfl_sync(ALL_LANES, start - (sum - length), owner) + product;
        if (product >= 0 && product < total) {
            mine = true;
            left_at = first + owner;
            right_at = position;
        }
        taken += total;
    }
    return mine;
}

// Returns the lane's rank among the lanes with the same slot, and in `rounds` the largest rank of
// the warp; inactive lanes share a slot with no other.
__device__ __forceinline__ int rank_in_slot(bool active, unsigned slot, int &rounds) {
    const unsigned peers = __match_any_sync(ALL_LANES, active ? slot : 0x80000000u + lane_id());
    const int rank = __popc(peers & lanes_before());
    rounds = __reduce_max_sync(ALL_LANES, static_cast<unsigned>(rank));
    return rank;
}

// Value of any type in another lane.
template <class T> __device__ __forceinline__ T from_lane(T value, int lane) {
    return shuffle_index<32>(value, lane);
}

// Adds one product per lane; products of one slot are added in the order of the lanes.
template <class T>
__device__ __forceinline__ void add_in_order(T *sums, bool active, unsigned slot, T product,
                                             int rank, int rounds) {
    for (int round = 0; round <= rounds; ++round) {
        if (active && rank == round)
            sums[slot] = plus(sums[slot], product);
        __syncwarp();
    }
}

// Adds one product per lane. If the lanes' slots are all `distinct`, all are added at once;
// otherwise products of one slot are added in the order of the lanes.
template <class T>
__device__ __forceinline__ void add_products(T *sums, bool active, unsigned slot, T product,
                                             bool distinct) {
    int rounds = 0, rank = 0;
    if (!distinct)
        rank = rank_in_slot(active, slot, rounds);
    add_in_order(sums, active, slot, product, rank, rounds);
}

// Adds the products of the entries [begin, end) of `left`, where these meet short rows of `right`:
// one product per lane, with HELD loaded ahead. `range` finds the entries of a row of `right` (see
// for_rows_ahead). A product of column c is added to sums[slot(c − low)], unless c − low is `span`
// or more.
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
        T multipliers[HELD];
        B values[HELD];
        for_products_ahead<HELD>(
            from, length,
            [&](int h, bool active, int owner, int64_t at) {
                multipliers[h] = from_lane(own, owner);
                column[h] = span;
                if (active) {
                    column[h] = static_cast<unsigned>(columns[at] - low);
                    values[h] = right_values[at];
                }
            },
            [&](int h, bool distinct) {
                const bool active = column[h] < span;
                const unsigned at = active ? slot(column[h]) : 0;
                const T product = active ? times(multipliers[h], widen<T>(values[h])) : zero<T>();
                add_products(sums, active, at, product, distinct);
            });
    });
}

} // namespace tarsia::spgemm
