// Rows of the product with few entries, where a row of `right` may contain a column twice (team.cu
// takes the others); one warp per row. Up to 32 products are compared in registers; more go through
// a hash table in shared memory whose slots hold the sums (after nsparse: Nagasaka, Nukada and
// Matsuoka 2017; spECK: Parger et al. 2020), followed by a bitonic sort of the columns.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

constexpr int THREADS = 128;

// counts[row] = number of distinct columns of the row, which has less than `size` products. Shared
// memory: a table of `size` keys per warp.
template <class J>
__device__ __forceinline__ void count_row(const Factor &left, const Factor &right,
                                          const uint32_t *list, int64_t count, int size,
                                          int64_t *counts) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    KeyType *table = reinterpret_cast<KeyType *>(memory) + (threadIdx.x >> 5) * size;
    int64_t row;
    if (!take_item(list, count, row))
        return;
    const J *columns = static_cast<const J *>(right.indices.data);
    clear(table, size, lane_id(), 32);
    __syncwarp();
    int added = 0;
    for_products(left, right, row, [&](bool active, int64_t, int64_t at) {
        if (active)
            insert(table, size, static_cast<KeyType>(columns[at] - static_cast<J>(right.base)),
                   added);
    });
    const unsigned found = __reduce_add_sync(ALL_LANES, static_cast<unsigned>(added));
    if (lane_id() == 0)
        counts[row] = found;
}

// Sorts one key per lane in ascending order.
template <class KeyType> __device__ __forceinline__ KeyType sort_lanes(KeyType key) {
#pragma unroll
    for (int span = 2; span <= 32; span *= 2) {
#pragma unroll
        for (int step = span / 2; step > 0; step /= 2) {
            const KeyType other = __shfl_xor_sync(ALL_LANES, key, step);
            const bool least = ((lane_id() & step) == 0) == ((lane_id() & span) == 0);
            if (least == (other < key))
                key = other;
        }
    }
    return key;
}

// Computes columns and values of a row with up to `most` entries (a power of two, less than `size`,
// the size of the table). Shared memory per warp: `size` sums, `size` keys, `most` keys.
template <class A, class B, class T, class J>
__device__ __forceinline__ void multiply_row(const Factor &left, const Factor &right,
                                             const A *left_values, const B *right_values,
                                             const Scalar<T> &scale, const uint32_t *list,
                                             int64_t count, int size, int most, const Output &out) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    const int bytes = size * (sizeof(T) + sizeof(KeyType)) + most * sizeof(KeyType);
    unsigned char *part = memory + (threadIdx.x >> 5) * bytes;
    T *sums = reinterpret_cast<T *>(part);
    KeyType *table = reinterpret_cast<KeyType *>(sums + size);
    KeyType *sorted = table + size;
    int64_t row;
    if (!take_item(list, count, row))
        return;

    const J *columns = static_cast<const J *>(right.indices.data);
    const J *kept = static_cast<const J *>(out.kept);
    T *values = static_cast<T *>(out.values);
    const int64_t start = out.offsets[row];
    const int entries = static_cast<int>(out.offsets[row + 1] - start);
    const Scale<T> alpha(scale);
    int added = 0;

    clear(table, size, lane_id(), 32);
    for (int i = lane_id(); i < size; i += 32)
        sums[i] = zero<T>();
    __syncwarp();
    if (out.known) {
        for (int i = lane_id(); i < entries; i += 32) {
            insert(table, size, static_cast<KeyType>(kept[start + i]), added);
        }
        __syncwarp();
    }
    if (!out.known || !alpha.vanishes) {
        for_products(left, right, row, [&](bool active, int64_t left_at, int64_t at) {
            int slot = 0;
            if (active) {
                slot =
                    insert(table, size,
                           static_cast<KeyType>(columns[at] - static_cast<J>(right.base)), added);
            }
            if (alpha.vanishes)
                return;
            T product = zero<T>();
            if (active)
                product = times(widen<T>(left_values[left_at]), widen<T>(right_values[at]));
            int rounds;
            const int rank = rank_in_slot(active, slot, rounds);
            add_in_order(sums, active, slot, product, rank, rounds);
        });
        __syncwarp();
    }
    if (!out.known) {
        const int found = collect_keys(table, size, sorted, most);
        if (most == 32) {
            __syncwarp();
            const KeyType key = lane_id() < found ? sorted[lane_id()] : empty<KeyType>();
            sorted[lane_id()] = sort_lanes(key);
            __syncwarp();
        } else {
            int padded = 64;
            while (padded < entries)
                padded *= 2;
            for (int i = found + lane_id(); i < padded; i += 32)
                sorted[i] = empty<KeyType>();
            __syncwarp();
            sort_shared(sorted, padded, lane_id(), 32, [](int, int) { __syncwarp(); });
        }
    }
    for (int i = lane_id(); i < entries; i += 32) {
        const KeyType key = out.known ? static_cast<KeyType>(kept[start + i]) : sorted[i];
        const int slot = insert(table, size, key, added);
        values[start + i] = alpha.of(sums[slot]);
        out.store_new_column(start + i, static_cast<J>(key));
    }
}

// Row of up to 32 products, one per lane, and the columns of its products: the first lane with a
// column, which `leads`, stands for it; `peers` are all lanes with the column.
template <class J> struct TinyRow {
    int64_t row, left_at = 0, right_at = 0;
    bool mine, leads;
    Key<J> key;
    unsigned peers;

    // Returns false if there is no row left for this warp.
    __device__ __forceinline__ bool load(const Factor &left, const Factor &right,
                                         const uint32_t *list, int64_t count) {
        if (!take_item(list, count, row))
            return false;
        mine = take_products(left, right, row, left_at, right_at);
        const J *columns = static_cast<const J *>(right.indices.data);
        key = mine ? static_cast<Key<J>>(columns[right_at] - static_cast<J>(right.base))
                   : empty<Key<J>>();
        peers = __match_any_sync(ALL_LANES, key);
        leads = mine && (peers & lanes_before()) == 0;
        return true;
    }
};

// counts[row] = number of distinct columns of a row of up to 32 products.
template <class J>
__device__ __forceinline__ void count_tiny_row(const Factor &left, const Factor &right,
                                               const uint32_t *list, int64_t count,
                                               int64_t *counts) {
    TinyRow<J> tiny;
    if (!tiny.load(left, right, list, count))
        return;
    const unsigned leaders = __ballot_sync(ALL_LANES, tiny.leads);
    if (lane_id() == 0)
        counts[tiny.row] = __popc(leaders);
}

// Computes columns and values of a row of up to 32 products, without a table: the first lane with a
// column adds its products, and ranks its column among those of the other first lanes.
template <class A, class B, class T, class J>
__device__ __forceinline__ void multiply_tiny_row(const Factor &left, const Factor &right,
                                                  const A *left_values, const B *right_values,
                                                  const Scalar<T> &scale, const uint32_t *list,
                                                  int64_t count, const Output &out) {
    TinyRow<J> tiny;
    if (!tiny.load(left, right, list, count))
        return;
    const Scale<T> alpha(scale);
    const auto &[row, left_at, at, mine, leads, key, peers] = tiny;
    T product = zero<T>();
    if (mine && !alpha.vanishes)
        product = times(widen<T>(left_values[left_at]), widen<T>(right_values[at]));
    // Sums start from zero, as everywhere: the sum of −0 alone is 0.
    T sum = plus(zero<T>(), product);
    unsigned rest = leads ? peers & (peers - 1) : 0;
    while (__any_sync(ALL_LANES, rest != 0)) {
        const T more = from_lane(product, rest != 0 ? __ffs(rest) - 1 : 0);
        if (rest != 0)
            sum = plus(sum, more);
        rest &= rest - 1;
    }
    int rank = 0;
    for (unsigned leaders = __ballot_sync(ALL_LANES, leads); leaders != 0; leaders &= leaders - 1) {
        rank += __shfl_sync(ALL_LANES, key, __ffs(leaders) - 1) < key;
    }
    const int64_t place = out.offsets[row] + rank;
    // The second condition fails only if the pattern changed after analysis.
    if (leads && place < out.offsets[row + 1]) {
        static_cast<T *>(out.values)[place] = alpha.of(sum);
        out.store_new_column(place, static_cast<J>(key));
    }
}

} // namespace

#define KERNEL_tiny_count(name, J)                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(Factor left, Factor right, const uint32_t *list, int64_t count, int64_t *counts) {    \
        count_tiny_row<int##J##_t>(left, right, list, count, counts);                              \
    }
KERNELS(tiny_count, (), (spgemm_tiny_count_32, 32), (spgemm_tiny_count_64, 64))

#define KERNEL_tiny_multiply(name, types, J) KERNEL_OF(TINY, name, int##J##_t, TYPES_##types)
#define TINY(name, J, A, B, C, T)                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, 4)                                       \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, const uint32_t *list, int64_t count, Output out) {                   \
        multiply_tiny_row<A, B, T, J>(left, right, left_values, right_values, alpha, list, count,  \
                                      out);                                                        \
    }
KERNELS(tiny_multiply, (), (spgemm_tiny_multiply_f64_32, f64, 32),
        (spgemm_tiny_multiply_f32_32, f32, 32), (spgemm_tiny_multiply_f16f32_32, f16f32, 32),
        (spgemm_tiny_multiply_bf16f32_32, bf16f32, 32), (spgemm_tiny_multiply_c32_32, c32, 32),
        (spgemm_tiny_multiply_c64_32, c64, 32), (spgemm_tiny_multiply_f64_64, f64, 64),
        (spgemm_tiny_multiply_f32_64, f32, 64), (spgemm_tiny_multiply_f16f32_64, f16f32, 64),
        (spgemm_tiny_multiply_bf16f32_64, bf16f32, 64), (spgemm_tiny_multiply_c32_64, c32, 64),
        (spgemm_tiny_multiply_c64_64, c64, 64))

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        name(Factor left, Factor right, const uint32_t *list, int64_t count, int32_t size,         \
             int64_t *counts) {                                                                    \
        count_row<int##J##_t>(left, right, list, count, size, counts);                             \
    }
KERNELS(count, (), (spgemm_hash_count_32, 32), (spgemm_hash_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) name(                                    \
        Factor left, Factor right, const A *left_values, const B *right_values, Scalar<T> alpha,   \
        const uint32_t *list, int64_t count, int32_t size, int32_t most, Output out) {             \
        multiply_row<A, B, T, J>(left, right, left_values, right_values, alpha, list, count, size, \
                                 most, out);                                                       \
    }
KERNELS(multiply, (), (spgemm_hash_multiply_f64_32, f64, 32),
        (spgemm_hash_multiply_f32_32, f32, 32), (spgemm_hash_multiply_f16f32_32, f16f32, 32),
        (spgemm_hash_multiply_bf16f32_32, bf16f32, 32), (spgemm_hash_multiply_c32_32, c32, 32),
        (spgemm_hash_multiply_c64_32, c64, 32), (spgemm_hash_multiply_f64_64, f64, 64),
        (spgemm_hash_multiply_f32_64, f32, 64), (spgemm_hash_multiply_f16f32_64, f16f32, 64),
        (spgemm_hash_multiply_bf16f32_64, bf16f32, 64), (spgemm_hash_multiply_c32_64, c32, 64),
        (spgemm_hash_multiply_c64_64, c64, 64))
