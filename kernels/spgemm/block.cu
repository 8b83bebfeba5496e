// Rows of C with more entries than a warp sorts, where few products meet in one: a
// block takes a row, with one hash table in shared memory whatever the range of its
// columns. Products of as many factors as come are taken at once, one a thread, in
// their order; those that meet in a sum claim it, and the first of them adds and
// goes. So a sum's order is that of the row's factors, and what is rare costs turns.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Products that a thread has in hand.
constexpr int HELD = 2;

// A row of the product and the entries of `left` in hand, one a thread: how many
// products they and those before have, and where product 0 would be in `right`.
template <class J> struct Row {
    const Factor &left, &right;
    const J *columns;
    int64_t begin, end;
    int64_t *starts;
    int *sums;
    int *parts;

    __device__ __forceinline__ Row(const Factor &left, const Factor &right, int64_t row,
                                   int64_t *starts, int *sums, int *parts)
        : left(left), right(right), columns(static_cast<const J *>(right.indices.data)),
          begin(left.start(row)), end(left.start(row + 1)), starts(starts), sums(sums),
          parts(parts) {}

    // Takes the entries from `first` on in hand; returns how many products. Ends with
    // a barrier.
    __device__ __forceinline__ int take(int64_t first) const {
        int64_t start;
        const int length = products_of(left, right, first + threadIdx.x, end, start);
        int all;
        const int sum = block_sums(length, parts, all);
        sums[threadIdx.x] = sum;
        starts[threadIdx.x] = start - (sum - length);
        __syncthreads();
        return all;
    }

    // The first entry in hand whose sum is beyond the product: it owns it.
    __device__ __forceinline__ int owner_of(int product) const {
        int owner = 0;
        for (int step = blockDim.x / 2; step > 0; step /= 2) {
            if (sums[owner + step - 1] <= product)
                owner += step;
        }
        return owner;
    }
};

template <class K> __device__ __forceinline__ void clear(K *table, int size) {
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        table[i] = empty<K>();
}

// counts[row] = distinct columns of a row with at most `size` / 2 products. Shared
// memory: 12 bytes a thread, and `size` keys.
template <class J>
__device__ __forceinline__ void count_row(const Factor &left, const Factor &right,
                                          const uint32_t *list, int32_t size, int64_t *counts) {
    using K = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int parts[32];
    int64_t *starts = reinterpret_cast<int64_t *>(memory);
    K *table = reinterpret_cast<K *>(starts + blockDim.x);
    int *sums = reinterpret_cast<int *>(table + size);
    const int64_t number = list[blockIdx.x];
    const Row<J> row(left, right, number, starts, sums, parts);
    clear(table, size);
    int added = 0;
    for (int64_t first = row.begin; first < row.end; first += blockDim.x) {
        const int total = row.take(first);
        for (int product = threadIdx.x; product < total; product += blockDim.x) {
            const int64_t at = starts[row.owner_of(product)] + product;
            insert(table, size, static_cast<K>(row.columns[at] - right.base), added);
        }
        __syncthreads();
    }
    int all;
    block_sums(added, parts, all);
    if (threadIdx.x == 0)
        counts[number] = all;
}

// Ascending order of `count` words (a power of two, at least 64).
__device__ __forceinline__ void sort(uint64_t *words, int count) {
    for (int span = 2; span <= count; span *= 2) {
        for (int step = span / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
                const int low = 2 * i - (i & (step - 1)), high = low + step;
                const uint64_t a = words[low], b = words[high];
                if ((a > b) == ((low & span) == 0)) {
                    words[low] = b;
                    words[high] = a;
                }
            }
            // The pairs of a warp are of 64 neighbours up to a step of 32, and so are
            // those of the next steps.
            if (step > 32 || (step == 1 && span >= 64)) {
                __syncthreads();
            } else {
                __syncwarp();
            }
        }
    }
}

// Columns and values of a row of up to `size` / 2 entries, at most 2^15. Shared
// memory: `size` sums, keys and numbers of 32 bits (claims, then the columns in
// order), 12 bytes a thread.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_row(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
             const Scalar<T> &scale, const uint32_t *list, int32_t size, const Output &out) {
    using K = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int parts[32];
    __shared__ int found;
    T *target = reinterpret_cast<T *>(memory);
    uint64_t *words = reinterpret_cast<uint64_t *>(target + size);
    unsigned *claims = reinterpret_cast<unsigned *>(words);
    int64_t *starts = reinterpret_cast<int64_t *>(words + size / 2);
    K *table = reinterpret_cast<K *>(starts + blockDim.x);
    int *sums = reinterpret_cast<int *>(table + size);
    const int64_t number = list[blockIdx.x];
    const int64_t place = out.offsets[number];
    const int entries = static_cast<int>(out.offsets[number + 1] - place);
    const Row<J> row(left, right, number, starts, sums, parts);
    J *kept = static_cast<J *>(out.kept);
    T *values = static_cast<T *>(out.values) + place;
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    clear(table, size);
    clear(claims, size);
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        target[i] = zero<T>();
    if (threadIdx.x == 0)
        found = 0;
    __syncthreads();
    int added = 0;
    const int batch = HELD * blockDim.x;
    // Claims of later turns are less than all of earlier ones, so that none has to be
    // taken back; each turn adds a product, and there are fewer than turns.
    unsigned turn = 0xffffffffu / batch - 1;
    for (int64_t first = row.begin; first < row.end && !(out.known && vanishes);
         first += blockDim.x) {
        const int total = row.take(first);
        for (int base = 0; base < total; base += batch) {
            int slot[HELD];
            T product[HELD];
            bool waits[HELD];
#pragma unroll
            for (int h = 0; h < HELD; ++h) {
                const int at = base + h * static_cast<int>(blockDim.x) + threadIdx.x;
                waits[h] = at < total;
                if (waits[h]) {
                    const int owner = row.owner_of(at);
                    const int64_t position = starts[owner] + at;
                    const K key = static_cast<K>(row.columns[position] - right.base);
                    product[h] = vanishes ? zero<T>()
                                          : times(widen<T>(left_values[first + owner]),
                                                  widen<T>(right_values[position]));
                    slot[h] = insert(table, size, key, added);
                }
            }
            bool more;
            do {
                const unsigned claim = turn-- * batch + threadIdx.x;
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    if (waits[h])
                        atomicMin(claims + slot[h], claim + h * blockDim.x);
                }
                __syncthreads();
                more = false;
#pragma unroll
                for (int h = 0; h < HELD; ++h) {
                    if (waits[h] && claims[slot[h]] == claim + h * blockDim.x) {
                        target[slot[h]] = plus(target[slot[h]], product[h]);
                        waits[h] = false;
                    }
                    more |= waits[h];
                }
                more = __syncthreads_or(more);
            } while (more);
        }
    }
    // Nobody claims any more: the place is the columns'.
    int padded = 64;
    while (padded < entries)
        padded *= 2;
    for (int i = threadIdx.x; i < padded; i += blockDim.x)
        words[i] = ~uint64_t(0);
    __syncthreads();
    if (out.known) {
        for (int i = threadIdx.x; i < entries; i += blockDim.x) {
            const K key = static_cast<K>(kept[place + i]);
            words[i] = static_cast<uint64_t>(key) << 16 | insert(table, size, key, added);
        }
        __syncthreads();
    } else {
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            const K key = table[i];
            if (key != empty<K>()) {
                const int at = atomicAdd(&found, 1);
                if (at < entries)
                    words[at] = static_cast<uint64_t>(key) << 16 | i;
            }
        }
        __syncthreads();
        sort(words, padded);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < entries; i += blockDim.x) {
        const uint64_t word = words[i];
        // More only where the pattern changed after analysis.
        if (word == ~uint64_t(0))
            break;
        values[i] = vanishes ? zero<T>() : times(alpha, target[word & 0xffff]);
        const int64_t column = static_cast<int64_t>(word >> 16);
        out.put_column(place + i, column);
        if (!out.known && kept != nullptr)
            kept[place + i] = static_cast<J>(column);
    }
}

} // namespace

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        name(Factor left, Factor right, const uint32_t *list, int32_t size, int64_t *counts) {     \
        let_next_begin();                                                                          \
        count_row<int##J##_t>(left, right, list, size, counts);                                    \
        end_after_previous();                                                                      \
    }
KERNELS(count, (), (spgemm_block_count_32, 32), (spgemm_block_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, const uint32_t *list, int32_t size, Output out) {                    \
        let_next_begin();                                                                          \
        multiply_row<A, B, T, J>(left, right, left_values, right_values, alpha, list, size, out);  \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_block_multiply_f64_32, f64, 32),
        (spgemm_block_multiply_f32_32, f32, 32), (spgemm_block_multiply_f16f32_32, f16f32, 32),
        (spgemm_block_multiply_bf16f32_32, bf16f32, 32), (spgemm_block_multiply_c32_32, c32, 32),
        (spgemm_block_multiply_c64_32, c64, 32), (spgemm_block_multiply_f64_64, f64, 64),
        (spgemm_block_multiply_f32_64, f32, 64), (spgemm_block_multiply_f16f32_64, f16f32, 64),
        (spgemm_block_multiply_bf16f32_64, bf16f32, 64), (spgemm_block_multiply_c32_64, c32, 64),
        (spgemm_block_multiply_c64_64, c64, 64))
