// Rows of C = left · right of any size: one block per row or, if there are few rows, several
// blocks, one per window of columns. A bitmap in shared memory holds the columns of a window [low,
// high) that the row of C has; a column's position is the number of bits before its own, so that
// nothing is hashed or sorted. Rows wider than the bitmap take several windows, and ranges between
// windows in which the row has no column are skipped.
//
// A product here is one multiplication: an entry of a row of `left` times an entry of the row of
// `right` that it selects. The products of a row are numbered in the order in which one thread
// would meet them, and are added in that order.
#include "ptx/barriers.cuh"
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Number of warps of a block that can add in a chain, each as soon as the one before lets it. With
// more warps there are not enough barriers for each to have its own (a block has 16), and they take
// turns at a barrier of the whole block. compute-sanitizer's racecheck does not follow arrivals
// without waiting, and reports such sums as races.
constexpr int CHAINED = 8;

using Word = unsigned long long;

constexpr int64_t NONE = INT64_MAX;
// Number of products that a thread holds while the warps take turns at adding. More would share the
// cost of a turn's barrier, but do not fit the registers of 1024 threads (CUDA 12's compiler uses
// more of them, and so does code for GPUs before Hopper, most of all for 8.6 and 8.9). The sums
// have the same bits with any number.
#if __CUDA_ARCH__ >= 900
template <class T> constexpr int IN_HAND = sizeof(T) <= 8 ? 4 : __CUDACC_VER_MAJOR__ < 13 ? 2 : 3;
#elif __CUDA_ARCH__ == 800
template <class T> constexpr int IN_HAND = sizeof(T) <= 4 ? 2 : 1;
#else
template <class T> constexpr int IN_HAND = 1;
#endif
// Most threads of a block: complex64 with 64-bit columns fits the registers of only half as many
// (src/backend/cuda/spgemm/rows.rs has the same numbers).
template <class T, class J>
constexpr int MOST_THREADS = sizeof(T) > 8 && sizeof(J) > 4 ? 512 : 1024;

// Known properties of `right`: rows with ascending columns, rows without duplicates. (The flags of
// the kernel spgemm_order are the opposite: they say which property is missing.)
constexpr int32_t SORTED = 1, DISTINCT = 2;

// A row of `left`, whose products one or more blocks add up.
template <class J> struct Row {
    const Factor &left;
    const Factor &right;
    const J *columns;
    int64_t begin, end;
    int32_t order;
    // In shared memory, for each entry of `left` in the batch: number of products up to and with
    // it, and position of its first product in `right` minus the number of products before it.
    int64_t *sums;
    int64_t *starts;
    // In shared memory, for sums and minimums over the block.
    int64_t *of_warps;

    // `sums` has room for two numbers per thread.
    __device__ __forceinline__ Row(const Factor &left, const Factor &right, int64_t row,
                                   int32_t order, int64_t *sums, int64_t *of_warps)
        : left(left), right(right), columns(static_cast<const J *>(right.indices.data)),
          begin(left.start(row)), end(left.start(row + 1)), order(order), sums(sums),
          starts(sums + blockDim.x), of_warps(of_warps) {}

    __device__ __forceinline__ bool sorted() const { return order & SORTED; }

    __device__ __forceinline__ int64_t column(int64_t at) const {
        return static_cast<int64_t>(columns[at]) - right.base;
    }

    // Returns the first position in [from, to) whose column is at least `wanted`.
    __device__ __forceinline__ int64_t find(int64_t from, int64_t to, int64_t wanted) const {
        while (from < to) {
            const int64_t middle = from + (to - from) / 2;
            if (column(middle) < wanted) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from;
    }

    // Computes bounds of the row's columns; least > largest if there are none.
    __device__ __forceinline__ void extent(int64_t cols, int64_t &least, int64_t &largest) const {
        least = 0;
        largest = cols - 1;
        if (!sorted())
            return;
        int64_t low = NONE, high = 0;
        for (int64_t at = begin + threadIdx.x; at < end; at += blockDim.x) {
            const int64_t k = left.column(at), start = right.start(k), stop = right.start(k + 1);
            if (start == stop)
                continue;
            low = min(low, column(start));
            high = min(high, -column(stop - 1) - 1);
        }
        least = block_least(low, of_warps);
        largest = -block_least(high, of_warps) - 1;
    }

    // Returns the same as find, by a search outward from `from`, for positions that are probably
    // near.
    __device__ __forceinline__ int64_t find_near(int64_t from, int64_t to, int64_t wanted) const {
        int64_t step = 1;
        while (from + step <= to && column(from + step - 1) < wanted) {
            from += step;
            step *= 2;
        }
        return find(from, min(to, from + step - 1), wanted);
    }

    // Returns whether each entry of the row has a thread, which then continues where its previous
    // window ended.
    __device__ __forceinline__ bool fits() const { return sorted() && end - begin <= blockDim.x; }

    // Called before the first window of a row that `fits`.
    __device__ __forceinline__ void begin_windows() const {
        sums[threadIdx.x] = 0;
        if (begin + threadIdx.x < end)
            starts[threadIdx.x] = right.start(left.column(begin + threadIdx.x));
    }

    // Takes a batch of entries of `left` from `first` on, one per thread, with those of their
    // products that are in the window; returns the number of products. If `right` is not sorted,
    // all products are taken. `beyond` becomes the least column found after the window. Ends with a
    // barrier.
    __device__ __forceinline__ int64_t load_batch(int64_t first, int64_t low, int64_t high,
                                                  int64_t &beyond, bool goes_on) const {
        const int64_t at = first + threadIdx.x;
        int64_t start = 0, length = 0;
        if (at < end) {
            if (goes_on) {
                start = starts[threadIdx.x] + sums[threadIdx.x];
            } else {
                start = right.start(left.column(at));
            }
            int64_t stop = right.start(left.column(at) + 1);
            if (sorted() && start < stop) {
                if (column(start) < low)
                    start = find_near(start, stop, low);
                if (start < stop && column(stop - 1) >= high) {
                    stop = find_near(start, stop, high);
                    beyond = min(beyond, column(stop));
                }
            }
            length = stop - start;
        }
        int64_t all;
        const int64_t sum = block_prefix_sum(length, of_warps, all);
        sums[threadIdx.x] = sum;
        starts[threadIdx.x] = start - (sum - length);
        __syncthreads();
        return all;
    }

    // Returns the entry of the batch that a product belongs to: the first one, from `owner` on,
    // whose sum exceeds the product's number.
    __device__ __forceinline__ int owner_of(int64_t product, int owner) const {
        const int count = blockDim.x;
        int step = 1;
        while (owner + step <= count && sums[owner + step - 1] <= product) {
            owner += step;
            step *= 2;
        }
        while (step > 1) {
            step /= 2;
            if (owner + step <= count && sums[owner + step - 1] <= product)
                owner += step;
        }
        return owner;
    }
};

__device__ __forceinline__ void set_bit(Word *bits, int64_t at) {
    // Reads the word first, since most products meet a column that is already set.
    unsigned *word = reinterpret_cast<unsigned *>(bits) + (at >> 5);
    const unsigned bit = 1u << (at & 31);
    if ((*const_cast<volatile unsigned *>(word) & bit) == 0)
        atomicOr(word, bit);
}

// Sets the bits of the row's columns in the window, and returns the number of products of the last
// batch. The bits have been cleared, and a barrier inside precedes the first set bit; no barrier
// follows the last one.
template <class J>
__device__ __forceinline__ int64_t mark(const Row<J> &row, int64_t low, int64_t high, Word *bits,
                                        int64_t &beyond, bool goes_on) {
    int64_t total = 0;
    for (int64_t first = row.begin; first < row.end; first += blockDim.x) {
        total = row.load_batch(first, low, high, beyond, goes_on);
        int owner = 0;
        for (int64_t product = threadIdx.x; product < total; product += blockDim.x) {
            owner = row.owner_of(product, owner);
            const int64_t column = row.column(row.starts[owner] + product);
            if (column >= high)
                beyond = min(beyond, column);
            if (column < low || column >= high)
                continue;
            set_bit(bits, column - low);
        }
        // No barrier here: `load_batch` has two barriers before it overwrites what others may still
        // read.
    }
    return total;
}

// counts[number] = number of distinct columns of the row; each of the row's `slices` blocks adds
// that of its windows. Ends with a barrier. Dynamic shared memory: `bits` / 64 words, and two int64
// per thread.
template <class J>
__device__ __forceinline__ void count_row(const Factor &left, const Factor &right, int32_t order,
                                          int64_t cols, int64_t number, int32_t bits,
                                          int32_t slices, int64_t *counts) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int64_t of_warps[32];
    Word *words = reinterpret_cast<Word *>(memory);
    int64_t *sums = reinterpret_cast<int64_t *>(words + bits / 64);
    const int slice = blockIdx.x % slices;
    const Row<J> row(left, right, number, order, sums, of_warps);
    int64_t least, largest, found = 0;
    row.extent(cols, least, largest);
    const bool fits = row.fits();
    if (fits)
        row.begin_windows();
    // Windows are numbered from the least column on; this block takes every `slices`-th.
    int64_t window = slice;
    while (least <= largest && window <= (largest - least) / bits) {
        const int64_t low = least + window * bits;
        const int64_t high = largest - low < bits ? largest + 1 : low + bits;
        const int used = static_cast<int>((high - low + 63) / 64);
        // Each thread clears the same words that it has counted.
        for (int i = threadIdx.x; i < used; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
        int64_t beyond = NONE;
        mark(row, low, high, words, beyond, fits);
        const int64_t next = block_least(beyond, of_warps);
        for (int i = threadIdx.x; i < used; i += blockDim.x)
            found += __popcll(words[i]);
        if (next == NONE)
            break;
        // This block's first window that is not before the next column.
        window = (next - least) / bits;
        window += (slice + slices - static_cast<int>(window % slices)) % slices;
    }
    int64_t all;
    block_prefix_sum(found, of_warps, all);
    if (threadIdx.x == 0) {
        if (slices == 1) {
            counts[number] = all;
        } else {
            atomicAdd(reinterpret_cast<Word *>(counts + number), static_cast<Word>(all));
        }
    }
}

// Sets the bits of a row's columns in the window, which are stored from `place` to `last`, sorted.
template <class J>
__device__ __forceinline__ void mark_known(const J *known, int64_t place, int64_t last, int64_t low,
                                           int64_t high, Word *bits, int64_t &beyond) {
    for (int64_t i = place + threadIdx.x; i < last; i += blockDim.x) {
        const int64_t column = known[i];
        if (column >= high) {
            beyond = column;
            break;
        }
        if (column >= low)
            set_bit(bits, column - low);
    }
}

// ranks[i] = number of bits set in the words before word i; returns the number in all `used` words.
__device__ __forceinline__ int64_t rank_words(const Word *words, int used, int *ranks,
                                              int64_t *of_warps) {
    int64_t count = 0;
    for (int first = 0; first < used; first += blockDim.x) {
        const int i = first + threadIdx.x;
        const int64_t own = i < used ? __popcll(words[i]) : 0;
        int64_t all;
        const int64_t sum = block_prefix_sum(own, of_warps, all);
        if (i < used)
            ranks[i] = static_cast<int>(count + sum - own);
        count += all;
    }
    return count;
}

// Exchanges between the blocks of a cluster, through `found`, the number of entries of each one's
// window and the next column after it. On return, `place` is the first entry of this block's window
// and `next` the column at which the next round begins; returns the first entry of that round.
__device__ __forceinline__ int64_t share_windows(int64_t (&found)[2], int blocks, int block,
                                                 int64_t count, int64_t &place, int64_t &next) {
    if (threadIdx.x == 0) {
        found[0] = count;
        found[1] = next;
    }
    cluster_barrier();
    int64_t after = place;
    for (int i = 0; i < blocks; ++i) {
        const int64_t theirs = of_block(&found[0], i);
        after += theirs;
        place += i < block ? theirs : 0;
    }
    next = of_block(&found[1], blocks - 1);
    return after;
}

// Writes the columns of a window's entries, which begin at `place` in C: those whose bits are set
// in the `used` words. `kept` also receives them, if not NULL.
template <class J>
__device__ __forceinline__ void write_columns(const Word *words, const int *ranks, int used,
                                              int64_t low, int64_t place, const Output &out,
                                              J *kept) {
    for (int i = threadIdx.x; i < used; i += blockDim.x) {
        int64_t at = place + ranks[i];
        for (Word word = words[i]; word != 0; word &= word - 1, ++at) {
            const int64_t column = low + 64 * static_cast<int64_t>(i) + __ffsll(word) - 1;
            out.store_column(at, column);
            if (kept != nullptr)
                kept[at] = static_cast<J>(column);
        }
    }
}

// The columns [low, low + span) of a row, of which those whose bits are set have entries.
struct Window {
    const Word *words;
    const int *ranks;
    int64_t low;
    unsigned span;
};

// Products that a thread holds at a time: the sum that each belongs to, or -1 for none, and, where
// several products of a warp may belong to one sum, their order (see rank_in_slot).
template <class T> struct Held {
    static constexpr int COUNT = IN_HAND<T>;
    T product[COUNT];
    int slot[COUNT], rank[COUNT], rounds[COUNT];

    // Computes the thread's products `mine`, `mine` + 32, …, `held` of them, before product `stop`
    // of the batch, whose entries of `left` have the values at `left_values`.
    template <class A, class B, class J>
    __device__ __forceinline__ void load(const Row<J> &row, const A *left_values,
                                         const B *right_values, int64_t first, const Window &window,
                                         int owner, int64_t mine, int held, int64_t stop) {
#pragma unroll
        for (int h = 0; h < COUNT; ++h) {
            const int64_t at = mine + 32 * h;
            slot[h] = -1;
            product[h] = zero<T>();
            if (h >= held || at >= stop)
                continue;
            owner = row.owner_of(at, owner);
            const int64_t position = row.starts[owner] + at;
            const uint64_t bit = row.column(position) - window.low;
            if (bit >= window.span)
                continue;
            const unsigned word = static_cast<unsigned>(bit) >> 6;
            slot[h] =
                window.ranks[word] + __popcll(window.words[word] & ((Word(1) << (bit & 63)) - 1));
            product[h] =
                times(widen<T>(left_values[first + owner]), widen<T>(right_values[position]));
        }
    }

    // Finds the order of the warp's products that belong to one sum.
    __device__ __forceinline__ void rank_all(int held) {
#pragma unroll
        for (int h = 0; h < COUNT; ++h) {
            rounds[h] = 0;
            rank[h] = 0;
            if (h < held)
                rank[h] = rank_in_slot(slot[h] >= 0, slot[h], rounds[h]);
        }
    }

    // Adds products that all belong to different sums.
    __device__ __forceinline__ void add_apart(T *sums) const {
#pragma unroll
        for (int h = 0; h < COUNT; ++h) {
            if (slot[h] >= 0)
                sums[slot[h]] = plus(sums[slot[h]], product[h]);
        }
    }

    // Adds the products in their order, while no other warp adds.
    __device__ __forceinline__ void add_in_turn(T *sums, int held) const {
#pragma unroll
        for (int h = 0; h < COUNT; ++h) {
            if (h < held)
                add_in_order(sums, slot[h] >= 0, slot[h], product[h], rank[h], rounds[h]);
        }
    }
};

// Adds the `total` products of a batch of entries of `left`, which begins at entry `first`, to the
// sums of the window's columns. The sums have the same bits as if one thread added the products one
// after the other.
template <class A, class B, class T, class J>
__device__ __forceinline__ void add_batch(const Row<J> &row, const A *left_values,
                                          const B *right_values, int64_t first, int64_t total,
                                          const Window &window, T *sums, int warp, bool is_chain) {
    int lead = 0;
    for (int64_t base = 0; base < total;) {
        // The products of a step are divided among all warps, each with consecutive ones.
        const int64_t rest = total - base;
        const int held =
            static_cast<int>(min(int64_t(Held<T>::COUNT), (rest + blockDim.x - 1) / blockDim.x));
        const int64_t step = min(rest, held * static_cast<int64_t>(blockDim.x));
        lead = row.owner_of(base, lead);
        const int64_t mine = base + warp * 32 * held + lane_id();
        Held<T> products;
        products.load(row, left_values, right_values, first, window, lead, mine, held, base + step);
        // Products of a single row of `right` have distinct columns.
        const bool apart = (row.order & DISTINCT) && row.sums[lead] >= base + step;
        if (!apart)
            products.rank_all(held);
        if (apart) {
            // Before this barrier, warps may still be adding products of the previous step.
            __syncthreads();
            products.add_apart(sums);
        }
        const int share = 32 * held;
        if (is_chain) {
            if (warp * share < step) {
                if (base > 0 || warp > 0)
                    await_turn(warp);
                if (!apart)
                    products.add_in_turn(sums, held);
                if (base + (warp + 1) * share < total)
                    give_turn(warp + 1 < blockDim.x / 32 ? warp + 1 : 0);
            }
        } else if (apart) {
            __syncthreads();
        } else {
            const int turns = static_cast<int>((step + share - 1) / share);
            for (int turn = 0; turn < turns; ++turn) {
                if (warp == turn)
                    products.add_in_turn(sums, held);
                __syncthreads();
            }
        }
        base += step;
    }
    __syncthreads();
}

// Computes columns and values of a row. Dynamic shared memory: `bits` / 64 words, two int64 per
// thread, `room` sums, and `bits` / 64 ranks. A row of more than `room` entries takes windows of
// `dense` columns and as many sums (which fit the same memory). If `dense` is 0, because there
// would be many such windows, it takes windows of `bits` columns, and those with more than `room`
// columns are summed in C's array of values. The blocks of a cluster take successive windows at a
// time.
template <class A, class B, class T, class J>
__device__ __forceinline__ void
multiply_row(const Factor &left, const Factor &right, const A *left_values, const B *right_values,
             const Scalar<T> &scale, int32_t order, int64_t cols, const uint32_t *list,
             int32_t bits, int32_t room, int32_t dense, const Output &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int64_t of_warps[32];
    // Numbers of entries and next columns that share_windows exchanges. Two copies alternate, so
    // that one cluster barrier per round is enough.
    __shared__ int64_t found[2][2];
    // First entry of C and first column of the next window, kept here to save registers.
    __shared__ int64_t later[2];
    const int blocks = cluster_blocks(), block = cluster_rank();
    const int64_t number = list[blockIdx.x / blocks];
    int64_t place = out.offsets[number];
    const int64_t last = out.offsets[number + 1];
    if (dense > 0 && last - place > room)
        bits = room = dense;
    Word *words = reinterpret_cast<Word *>(memory);
    int64_t *sums = reinterpret_cast<int64_t *>(words + bits / 64);
    T *near = reinterpret_cast<T *>(sums + 2 * blockDim.x);
    int *ranks = reinterpret_cast<int *>(near + room);
    const Row<J> row(left, right, number, order, sums, of_warps);
    J *kept = static_cast<J *>(out.kept);
    const T alpha = scale.get();
    const bool vanishes = is_zero(alpha);
    const int warp = threadIdx.x >> 5;
    int64_t begin, largest;
    if (out.known) {
        begin = place < last ? static_cast<int64_t>(kept[place]) : NONE;
        largest = place < last ? static_cast<int64_t>(kept[last - 1]) : 0;
    } else {
        row.extent(cols, begin, largest);
    }
    const bool fits = row.fits();
    if (fits)
        row.begin_windows();
    const bool is_chain = blockDim.x <= 32 * CHAINED;
    for (int round = 0; begin <= largest; round ^= 1) {
        // A block without a window gets one of no columns.
        const int64_t ahead = block * static_cast<int64_t>(bits);
        const int64_t low = largest - begin < ahead ? largest + 1 : begin + ahead;
        const int64_t high = largest - low < bits ? largest + 1 : low + bits;
        const int used = static_cast<int>((high - low + 63) / 64);
        for (int i = threadIdx.x; i < used; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
        const unsigned span = static_cast<unsigned>(high - low);
        int64_t beyond = NONE, total = 0;
        if (out.known) {
            mark_known(kept, place, last, low, high, words, beyond);
        } else if (low < high) {
            total = mark(row, low, high, words, beyond, fits);
        }
        int64_t next = block_least(beyond, of_warps);
        const int64_t count = rank_words(words, used, ranks, of_warps);
        int64_t after = place + count;
        if (blocks > 1)
            after = share_windows(found[round], blocks, block, count, place, next);
        // True only if the pattern changed after analysis.
        if (after > last)
            break;
        if (threadIdx.x == 0) {
            later[0] = after;
            later[1] = next;
        }
        T *values = static_cast<T *>(out.values) + place;
        T *target = count <= room ? near : values;
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
            target[i] = zero<T>();
        __syncthreads();

        if (out.known) {
            for (int64_t i = place + threadIdx.x; i < place + count; i += blockDim.x)
                out.store_column(i, kept[i]);
        } else {
            write_columns(words, ranks, used, low, place, out, kept);
        }
        for (int64_t first = row.begin; first < row.end && !vanishes; first += blockDim.x) {
            int64_t ignored = NONE;
            if (!fits || out.known)
                total = row.load_batch(first, low, high, ignored, fits);
            add_batch(row, left_values, right_values, first, total, {words, ranks, low, span},
                      target, warp, is_chain);
        }
        for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
            values[i] = vanishes ? zero<T>() : times(alpha, target[i]);
        // No barrier is needed here: the words that the next window clears are no longer read,
        // after the barriers above, and its own barriers precede its writes to sums.
        place = later[0];
        begin = later[1];
    }
    // Other blocks may not have read this block's `found` yet.
    if (cluster_blocks() > 1)
        cluster_barrier();
}

} // namespace

#define KERNEL_count(name, J)                                                                      \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                          \
        name(Factor left, Factor right, int32_t order, int64_t cols, Listed list, int32_t bits,    \
             int32_t slices, int64_t *counts) {                                                    \
        let_next_begin();                                                                          \
        const int64_t count = list.size();                                                         \
        for (int64_t at = blockIdx.x / slices; at < count; at += gridDim.x / slices) {             \
            count_row<int##J##_t>(left, right, order, cols, list.rows[at], bits, slices, counts);  \
        }                                                                                          \
        end_after_previous();                                                                      \
    }
KERNELS(count, (), (spgemm_bitmap_count_32, 32), (spgemm_bitmap_count_64, 64))

#define KERNEL_multiply(name, types, J) KERNEL_OF(MULTIPLY, name, int##J##_t, TYPES_##types)
#define MULTIPLY(name, J, A, B, C, T)                                                              \
    extern "C" __global__ void __launch_bounds__(MOST_THREADS<T, J>, 1)                            \
        name(Factor left, Factor right, const A *left_values, const B *right_values,               \
             Scalar<T> alpha, int32_t order, int64_t cols, const uint32_t *list, int32_t bits,     \
             int32_t room, int32_t dense, Output out) {                                            \
        let_next_begin();                                                                          \
        multiply_row<A, B, T, J>(left, right, left_values, right_values, alpha, order, cols, list, \
                                 bits, room, dense, out);                                          \
        end_after_previous();                                                                      \
    }
KERNELS(multiply, (), (spgemm_bitmap_multiply_f64_32, f64, 32),
        (spgemm_bitmap_multiply_f32_32, f32, 32), (spgemm_bitmap_multiply_f16f32_32, f16f32, 32),
        (spgemm_bitmap_multiply_bf16f32_32, bf16f32, 32), (spgemm_bitmap_multiply_c32_32, c32, 32),
        (spgemm_bitmap_multiply_c64_32, c64, 32), (spgemm_bitmap_multiply_f64_64, f64, 64),
        (spgemm_bitmap_multiply_f32_64, f32, 64), (spgemm_bitmap_multiply_f16f32_64, f16f32, 64),
        (spgemm_bitmap_multiply_bf16f32_64, bf16f32, 64), (spgemm_bitmap_multiply_c32_64, c32, 64),
        (spgemm_bitmap_multiply_c64_64, c64, 64))
