// SpMM `row` without a plan, C = alpha · A · B + beta · C, where the columns of B and of C are
// contiguous and neighbouring rows of A read neighbouring rows of B, as in grids and meshes.
//
// A thread takes a row of A. The lanes of a warp take neighbouring rows, so that they read a column
// of B side by side and write a column of C side by side, and neither is copied to rows first. This
// is fast only if the columns of A that the lanes read together are near each other, and if no row
// is long. The kernel `decide` finds out, from the lengths of all rows and from a sample of their
// columns, and leaves its decision in device memory. All kernels of both ways are launched, since
// the host does not wait for it; those of the way that is not taken end at once.

#include "common/kernels.cuh"
#include "ptx/packs.cuh"
#include "spmm/join.cuh"

using namespace tarsia;

// Conditions for taking B and C by columns.
struct ColumnLimits {
    // Largest number of entries of a row.
    int64_t longest;
    // Largest mean number of sectors of 32 bytes of B that a warp reads for an entry and a column
    // of B, times 1024.
    int64_t sectors;
};

namespace {

// Threads of a block. Large blocks, since neighbouring rows find each other's elements of B in L1.
constexpr int ROWS = 512;
// Number of columns of C that a thread computes at a time.
constexpr int COLUMNS = 8;
// Threads of a block of `decide`, how many of its warps sample rows, and entries of each row that
// the sample has at the most.
constexpr int DECIDING = 256, SAMPLING = 2, SAMPLED = 16;
// Words of the handle's counters: 0 is the ticket, here and in spmm_tasks_unanalyzed, which counts
// in words 1 to 4; `decide` counts in these.
constexpr int SECTORS = 5, ENTRIES = 6, LONGEST = 7;
// Largest length of a warp's longest row, for which its lanes wait, over the mean of its rows,
// above which the warp counts as irregular. finan512, 2.6 in the mean, gains; 6 was not tuned.
constexpr int IDLE = 6;
// Index of the decision in `lengths`, behind the lengths of the two lists of spmm_tasks_unanalyzed.
constexpr int DECISION = 2;

} // namespace

// Adds the products of COUNT entries from number `first` on with the elements of COLUMNS columns of
// B, or with `whole` false of the first `here` of them. b_col: elements between columns of B.
template <bool whole, int COUNT, class A, class X, class Acc, class J>
__device__ __forceinline__ void add_entries(Acc (&sums)[COLUMNS], const J *indices, const A *values,
                                            J base, int64_t first, const X *b, int64_t b_col,
                                            int here) {
    X elements[COUNT][COLUMNS];
    A factors[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
        const X *from = b + (load(indices + first + u) - base);
        factors[u] = load(values + first + u);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (whole || i < here)
                elements[u][i] = load(from + i * b_col);
        }
    }
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (whole || i < here)
                sums[i] = tarsia::fma(widen<Acc>(factors[u]), widen<Acc>(elements[u][i]), sums[i]);
        }
    }
}

// Computes a row of C in groups of COLUMNS columns: group blockIdx.y and each gridDim.y-th one
// after it.
template <class A, class X, class Y, class Acc, class J>
__device__ __forceinline__ void
multiply_columns(const Offsets &offsets, const J *indices, const A *values, int64_t base,
                 int64_t rows, const X *b, int64_t b_col, Y *c, int64_t c_col, int64_t n,
                 const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    // Entries whose elements of B are in flight at one time: doubles take twice the registers.
    constexpr int FLIGHT = sizeof(Acc) > 4 ? 1 : 2;
    const int64_t row = int64_t(blockIdx.x) * ROWS + threadIdx.x;
    if (row >= rows)
        return;
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const int64_t begin = offsets.at(row) - base;
    const int64_t end = is_zero(alpha) ? begin : offsets.at(row + 1) - base;
    for (int64_t first = int64_t(blockIdx.y) * COLUMNS; first < n;
         first += int64_t(gridDim.y) * COLUMNS) {
        const int here = int(min(int64_t(COLUMNS), n - first));
        const X *const from = b + first * b_col;
        Acc sums[COLUMNS];
        set_zero(sums);
        int64_t entry = begin;
        if (here == COLUMNS) {
            for (; entry + FLIGHT <= end; entry += FLIGHT)
                add_entries<true, FLIGHT>(sums, indices, values, J(base), entry, from, b_col, here);
        }
        for (; entry < end; ++entry)
            add_entries<false, 1>(sums, indices, values, J(base), entry, from, b_col, here);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            if (i < here)
                store(c + row + (first + i) * c_col, alpha, sums[i], beta);
        }
    }
}

// decision: as `decide` leaves it. b_col, c_col: elements between the columns of B and of C.
#define KERNEL_columns(name, types, J) KERNEL_OF(BY_COLUMNS, name, int##J##_t, TYPES_##types)
#define BY_COLUMNS(name, J, A, X, Y, Acc)                                                          \
    extern "C" __global__ void __launch_bounds__(ROWS)                                             \
        name(Offsets offsets, const J *indices, const A *values, int64_t base, int64_t rows,       \
             const X *b, int64_t b_col, Y *c, int64_t c_col, int64_t n, Scalar<Acc> alpha,         \
             Scalar<Acc> beta, const int64_t *decision) {                                          \
        if (*decision != 0) {                                                                      \
            multiply_columns<A, X, Y, Acc, J>(offsets, indices, values, base, rows, b, b_col, c,   \
                                              c_col, n, alpha, beta);                              \
        }                                                                                          \
    }
KERNELS(columns, (), (spmm_columns_f64_32, f64, 32), (spmm_columns_f64_64, f64, 64),
        (spmm_columns_f32_32, f32, 32), (spmm_columns_f32_64, f32, 64),
        (spmm_columns_f32f64_32, f32f64, 32), (spmm_columns_f32f64_64, f32f64, 64),
        (spmm_columns_f16_32, f16, 32), (spmm_columns_f16_64, f16, 64),
        (spmm_columns_f16f32_32, f16f32, 32), (spmm_columns_f16f32_64, f16f32, 64),
        (spmm_columns_bf16_32, bf16, 32), (spmm_columns_bf16_64, bf16, 64),
        (spmm_columns_bf16f32_32, bf16f32, 32), (spmm_columns_bf16f32_64, bf16f32, 64))

// Decides for a B with elements of `size` bytes. Some warps sample 32 neighbouring rows each.
// `state` is zero before and after; lengths[DECISION] becomes 1 or 0, and if it is 1, the lists are
// empty.
template <class J>
__device__ __forceinline__ void decide(const Offsets &offsets, const J *indices, int64_t base,
                                       int64_t rows, int64_t size, const ColumnLimits &limits,
                                       unsigned *state, int64_t *lengths) {
    __shared__ unsigned of_block[3]; // sectors, entries, longest row
    if (threadIdx.x < 3)
        of_block[threadIdx.x] = 0;
    __syncthreads();
    const int64_t threads = int64_t(gridDim.x) * DECIDING,
                  thread = int64_t(blockIdx.x) * DECIDING + threadIdx.x;
    int64_t longest = 0;
    for (int64_t row = thread; row < rows; row += threads)
        longest = max(longest, offsets.at(row + 1) - offsets.at(row));

    unsigned sectors = 0, entries = 0;
    if (threadIdx.x / WARP < SAMPLING) {
        // Samples lie at equal distances.
        const int64_t groups = (rows + WARP - 1) / WARP, samples = int64_t(gridDim.x) * SAMPLING,
                      sample = int64_t(blockIdx.x) * SAMPLING + threadIdx.x / WARP;
        const int64_t group =
            groups < samples ? sample : int64_t(double(sample) / double(samples) * double(groups));
        const int64_t row = group * WARP + threadIdx.x % WARP;
        int64_t begin = 0, all = 0;
        if (row < rows) {
            begin = offsets.at(row) - base;
            all = offsets.at(row + 1) - base - begin;
        }
        const unsigned own = unsigned(min(all, int64_t(1) << 24)),
                       most = __reduce_max_sync(ALL_LANES, own),
                       sum = __reduce_add_sync(ALL_LANES, own);
        const bool is_uneven = uint64_t(most) * WARP > uint64_t(sum) * IDLE;
        // Entries that lanes read together: at the beginning, in the middle or at the end of rows.
        const int64_t skipped =
            most > SAMPLED ? min(int64_t(most - SAMPLED) * (sample % 3) / 2, all) : 0;
        begin += skipped;
        const int length = int(min(all - skipped, int64_t(SAMPLED)));
        J columns[SAMPLED];
#pragma unroll
        for (int i = 0; i < SAMPLED; ++i)
            columns[i] = i < length ? load(indices + begin + i) - J(base) : J(0);
#pragma unroll
        for (int i = 0; i < SAMPLED; ++i) {
            const bool has = i < length;
            const J sector = has ? J(uint64_t(columns[i]) * uint64_t(size) / 32) : J(-1);
            const unsigned same = __match_any_sync(ALL_LANES, sector);
            // Where most lanes wait, the others' sectors count as if each were read alone.
            sectors += has && (is_uneven || (same & ((1u << threadIdx.x % WARP) - 1)) == 0);
            entries += has;
        }
    }
    const unsigned found[3] = {
        __reduce_add_sync(ALL_LANES, sectors), __reduce_add_sync(ALL_LANES, entries),
        __reduce_max_sync(ALL_LANES, unsigned(min(longest, int64_t(INT32_MAX))))};
    if (threadIdx.x % WARP == 0) {
        atomicAdd(of_block, found[0]);
        atomicAdd(of_block + 1, found[1]);
        atomicMax(of_block + 2, found[2]);
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    atomicAdd(state + SECTORS, of_block[0]);
    atomicAdd(state + ENTRIES, of_block[1]);
    atomicMax(state + LONGEST, of_block[2]);
    __threadfence();
    if (atomicInc(state, gridDim.x - 1) != gridDim.x - 1)
        return;
    const uint64_t all_sectors = atomicExch(state + SECTORS, 0u),
                   all_entries = atomicExch(state + ENTRIES, 0u),
                   the_longest = atomicExch(state + LONGEST, 0u);
    const bool by_columns = the_longest <= uint64_t(limits.longest) &&
                            all_sectors * 1024 <= uint64_t(limits.sectors) * all_entries;
    lengths[DECISION] = by_columns;
    if (by_columns)
        lengths[0] = lengths[1] = 0;
}

#define KERNEL_decide(name, J)                                                                     \
    extern "C" __global__ void __launch_bounds__(DECIDING)                                         \
        name(Offsets offsets, const int##J##_t *indices, int64_t base, int64_t rows, int64_t size, \
             ColumnLimits limits, unsigned *state, int64_t *lengths) {                             \
        decide<int##J##_t>(offsets, indices, base, rows, size, limits, state, lengths);            \
    }
KERNELS(decide, (), (spmm_columns_decide_32, 32), (spmm_columns_decide_64, 64))
