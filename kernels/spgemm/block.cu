// Rows of C with more entries than a warp sorts and, where entries have been counted, few products
// per entry in the mean (BLOCK_WORK in spgemm/rows.cu): a thread block takes one row, with a hash
// table in shared memory, whatever the range of its columns. The products are taken in their order,
// one per thread, as many at a time as there are threads. Products that belong to one sum claim it;
// the first of them is added, and the others try again in the next turn. So each sum is added in
// the order of the row's entries of `left`, and only repeated columns cost extra turns.
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Number of products that a thread holds at a time.
constexpr int HELD = 2;

// Row of C, with a batch of entries of `left`, one per thread. `sums`: number of products of the
// batch up to and with each entry. Product p of the batch that belongs to entry e (sums[e - 1] <= p
// < sums[e]) is at starts[e] + p in `right`.
template <class J> struct Row {
    const Factor &left, &right;
    const J *columns;
    int64_t begin, end;
    int64_t *starts;
    int *sums;
    int *of_warps;

    __device__ __forceinline__ Row(const Factor &left, const Factor &right, int64_t row,
                                   int64_t *starts, int *sums, int *of_warps)
        : left(left), right(right), columns(static_cast<const J *>(right.indices.data)),
          begin(left.start(row)), end(left.start(row + 1)), starts(starts), sums(sums),
          of_warps(of_warps) {}

    // Takes the batch of entries that begins at `first` and returns its number of products. Ends
    // with a barrier.
    __device__ __forceinline__ int load_batch(int64_t first) const {
        int64_t start;
        const int length = products_of(left, right, first + threadIdx.x, end, start);
        int all;
        const int sum = block_prefix_sum(length, of_warps, all);
        sums[threadIdx.x] = sum;
        starts[threadIdx.x] = start - (sum - length);
        __syncthreads();
        return all;
    }

    // Returns the entry of the batch that a product belongs to: the first one whose sum exceeds the
    // product's number. blockDim.x is a power of two.
    __device__ __forceinline__ int entry_of(int product) const {
        int entry = 0;
        for (int step = blockDim.x / 2; step > 0; step /= 2) {
            if (sums[entry + step - 1] <= product)
                entry += step;
        }
        return entry;
    }
};

// counts[row] = number of distinct columns of a row with at most `size` / 2 products. Shared
// memory: 12 bytes per thread, and `size` keys.
template <class J>
__device__ __forceinline__ void count_row(const Factor &left, const Factor &right,
                                          const uint32_t *list, int32_t size, int64_t *counts) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int of_warps[32];
    int64_t *starts = reinterpret_cast<int64_t *>(memory);
    KeyType *table = reinterpret_cast<KeyType *>(starts + blockDim.x);
    int *sums = reinterpret_cast<int *>(table + size);
    const int64_t number = list[blockIdx.x];
    const Row<J> row(left, right, number, starts, sums, of_warps);
    clear(table, size, threadIdx.x, blockDim.x);
    int added = 0;
    for (int64_t first = row.begin; first < row.end; first += blockDim.x) {
        const int total = row.load_batch(first);
        for (int product = threadIdx.x; product < total; product += blockDim.x) {
            const int64_t at = starts[row.entry_of(product)] + product;
            insert(table, size, static_cast<KeyType>(row.columns[at] - right.base), added);
        }
        __syncthreads();
    }
    int all;
    block_prefix_sum(added, of_warps, all);
    if (threadIdx.x == 0)
        counts[number] = all;
}

// Products that a thread holds: their slots in the table, and whether they are yet to be added.
template <class T> struct Hand {
    int slot[HELD];
    T product[HELD];
    bool waits[HELD];
};

// Multiplies the thread's products of a batch that begins at entry `first` of `left`, from product
// `base` of `total` on, and inserts their columns in the table.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_and_insert(const Row<J> &row, const A *left_values, const B *right_values, bool vanishes,
                    int64_t first, int base, int total, Key<J> *table, int size, int &added,
                    Hand<T> &hand) {
#pragma unroll
    for (int h = 0; h < HELD; ++h) {
        const int at = base + h * static_cast<int>(blockDim.x) + threadIdx.x;
        hand.waits[h] = at < total;
        if (hand.waits[h]) {
            const int entry = row.entry_of(at);
            const int64_t position = row.starts[entry] + at;
            const Key<J> key = static_cast<Key<J>>(row.columns[position] - row.right.base);
            hand.product[h] = vanishes ? zero<T>()
                                       : times(widen<T>(left_values[first + entry]),
                                               widen<T>(right_values[position]));
            hand.slot[h] = insert(table, size, key, added);
        }
    }
}

// Adds the products in turns: in each, the first product of every sum claims it. Claims of later
// turns are less than all earlier ones, so that none needs to be reset.
template <class T>
__device__ __forceinline__ void add_in_turns(Hand<T> &hand, T *sums, unsigned *claims,
                                             unsigned &turn) {
    bool more;
    do {
        const unsigned claim = turn-- * (HELD * blockDim.x) + threadIdx.x;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (hand.waits[h])
                atomicMin(claims + hand.slot[h], claim + h * blockDim.x);
        }
        __syncthreads();
        more = false;
#pragma unroll
        for (int h = 0; h < HELD; ++h) {
            if (hand.waits[h] && claims[hand.slot[h]] == claim + h * blockDim.x) {
                sums[hand.slot[h]] = plus(sums[hand.slot[h]], hand.product[h]);
                hand.waits[h] = false;
            }
            more |= hand.waits[h];
        }
        more = __syncthreads_or(more);
    } while (more);
}

// A row's columns in ascending order, each with its slot in the low 16 bits: those that `out`
// knows, or those of the table, sorted. Ends with a barrier.
template <class J>
__device__ __forceinline__ void order_columns(const Output &out, int64_t place, int entries,
                                              Key<J> *table, int size, int &added, int *found,
                                              uint64_t *words) {
    using KeyType = Key<J>;
    if (out.known) {
        const J *kept = static_cast<const J *>(out.kept);
        for (int i = threadIdx.x; i < entries; i += blockDim.x) {
            const KeyType key = static_cast<KeyType>(kept[place + i]);
            words[i] = static_cast<uint64_t>(key) << 16 | insert(table, size, key, added);
        }
        __syncthreads();
        return;
    }
    int padded = 64;
    while (padded < entries)
        padded *= 2;
    for (int i = threadIdx.x; i < padded; i += blockDim.x)
        words[i] = ~uint64_t(0);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        const KeyType key = table[i];
        if (key != empty<KeyType>()) {
            const int at = atomicAdd(found, 1);
            if (at < entries)
                words[at] = static_cast<uint64_t>(key) << 16 | i;
        }
    }
    __syncthreads();
    sort_shared(words, padded, threadIdx.x, blockDim.x, [](int step, int span) {
        // Up to a step of 32, a warp's pairs lie within 64 neighbours, and so do those of its next
        // steps: then no other warp is waited for.
        if (step > 32 || (step == 1 && span >= 64)) {
            __syncthreads();
        } else {
            __syncwarp();
        }
    });
    __syncthreads();
}

// Computes columns and values of a row of up to `size` / 2 entries, at most 2^15. Shared memory:
// `size` sums, keys and 32-bit numbers (claims, later the sorted columns), and 12 bytes per thread.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_row(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
             const Scalar<T> &scale, const uint32_t *list, int32_t size, const Output &out) {
    using KeyType = Key<J>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int of_warps[32];
    __shared__ int found;
    T *target = reinterpret_cast<T *>(memory);
    uint64_t *words = reinterpret_cast<uint64_t *>(target + size);
    unsigned *claims = reinterpret_cast<unsigned *>(words);
    int64_t *starts = reinterpret_cast<int64_t *>(words + size / 2);
    KeyType *table = reinterpret_cast<KeyType *>(starts + blockDim.x);
    int *sums = reinterpret_cast<int *>(table + size);
    const int64_t number = list[blockIdx.x];
    const int64_t place = out.offsets[number];
    const int entries = static_cast<int>(out.offsets[number + 1] - place);
    const Row<J> row(left, right, number, starts, sums, of_warps);
    T *values = static_cast<T *>(out.values) + place;
    const Scale<T> alpha(scale);
    clear(table, size, threadIdx.x, blockDim.x);
    clear(claims, size, threadIdx.x, blockDim.x);
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        target[i] = zero<T>();
    if (threadIdx.x == 0)
        found = 0;
    __syncthreads();
    int added = 0;
    const int batch = HELD * blockDim.x;
    // Each turn adds at least one product, and a row has fewer products than there are turns.
    unsigned turn = 0xffffffffu / batch - 1;
    for (int64_t first = row.begin; first < row.end && !(out.known && alpha.vanishes);
         first += blockDim.x) {
        const int total = row.load_batch(first);
        for (int base = 0; base < total; base += batch) {
            Hand<T> hand;
            multiply_and_insert(row, left_values, right_values, alpha.vanishes, first, base, total,
                                table, size, added, hand);
            add_in_turns(hand, target, claims, turn);
        }
    }
    // Claims are no longer needed: their memory now holds the columns.
    order_columns<J>(out, place, entries, table, size, added, &found, words);
    for (int i = threadIdx.x; i < entries; i += blockDim.x) {
        const uint64_t word = words[i];
        // There are fewer columns than entries only if the pattern changed after analysis.
        if (word == ~uint64_t(0))
            break;
        values[i] = alpha.of(target[word & 0xffff]);
        out.store_new_column(place + i, static_cast<J>(word >> 16));
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
