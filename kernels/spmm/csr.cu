// SpMM `csr`: C = alpha · A · B + beta · C in the output-stationary form of Mehrabi et al.,
// "Learning sparse matrix row permutations for efficient SpMM on GPU architectures" (section II-B,
// algorithm 1), so that row orders (src/reorder/policy.rs) can be compared with its table I.
//
// A block of 32 warps takes a strip of COLUMNS columns of B and C and goes over all rows of A, so
// that it finds the strip of B in L1 again and again. Warp i mod 32 takes row i, with its lanes
// along the row's entries and sums in registers: there are no atomics, and results have the same
// bits from run to run. B is best stored by columns: then entries in 32 consecutive columns of A
// read one line of each column of B. If there are too few strips for the device, which the paper's
// square B and C never have, several blocks share one, each with a range of rows that is a multiple
// of 32.
//
// With an order, row i is row order[i] of C. Rows from `filled` on have no entries (DCSR) and take
// one thread each instead of a warp.

#include "common/types.cuh"
#include "ptx/launch.cuh"
#include "ptx/loads.cuh"
#include "ptx/warp.cuh"
#include "spmm/join.cuh"

namespace tarsia::csr {

constexpr int WARPS = 32, THREADS = WARP * WARPS;
// Number of entries that a lane has in flight.
constexpr int UNROLL = 2;

template <class A, class J> struct Matrix {
    Offsets offsets;
    const J *indices;
    const A *values;
    int64_t base;
    // Number of rows; number of rows with entries, if the empty ones come last; number of rows per
    // block.
    int64_t rows, filled, rows_of_block;
    // Row of C that each row belongs to, or NULL.
    const uint32_t *order;

    __device__ __forceinline__ int64_t row_of_c(int64_t row) const {
        // Reordered rows are in a copy of the matrix, which has 32-bit columns.
        if constexpr (sizeof(J) == 4) {
            if (order)
                return __ldg(order + row);
        }
        return row;
    }
};

// Computes a strip of C. `conjugated`: op(B) is B's conjugate transpose.
template <class A, class X, class Y, class Acc, class J, int COLUMNS>
__device__ __forceinline__ void product(const Matrix<A, J> &a, const Dense<const X> &b,
                                        const Dense<Y> &c, int64_t n, Acc alpha, Acc beta,
                                        int conjugated) {
    const int64_t strips = (n + COLUMNS - 1) / COLUMNS;
    const int64_t col = blockIdx.x % strips * COLUMNS, part = blockIdx.x / strips;
    const int count = int(min(int64_t(COLUMNS), n - col));
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const X *const columns = b.data + col * b.col_stride;
    Y *const out = c.data + col * c.col_stride;
    const int64_t first = part * a.rows_of_block;
    const int64_t end = min(first + a.rows_of_block, a.rows);
    const bool nothing = is_zero(alpha);

    for (int64_t row = first + warp; row < min(end, a.filled); row += WARPS) {
        int64_t begin = 0, stop = 0;
        if (!nothing) {
            begin = a.offsets.at(row) - a.base;
            stop = a.offsets.at(row + 1) - a.base;
        }
        Acc sums[COLUMNS];
        set_zero(sums);
#pragma unroll UNROLL
        for (int64_t k = begin + lane; k < stop; k += WARP) {
            const X *from = columns + (int64_t(__ldg(a.indices + k)) - a.base) * b.row_stride;
            const Acc value = widen<Acc>(a.values[k]);
#pragma unroll
            for (int w = 0; w < COLUMNS; ++w) {
                // Beyond the last column, the strip's first column is read again.
                X factor = from[(w < count ? w : 0) * b.col_stride];
                if constexpr (__is_class(X)) {
                    if (conjugated)
                        factor = conjugate(factor);
                }
                sums[w] = fma(value, widen<Acc>(factor), sums[w]);
            }
        }
        __syncwarp();
        // Groups of WARP / COLUMNS neighbouring lanes hold the sum of one column.
        const int w = scatter_sums<WARP>(sums, lane);
        if (lane % (WARP / COLUMNS) == 0 && w < count) {
            const int64_t to = a.row_of_c(row);
            store(out + to * c.row_stride + w * c.col_stride, alpha, sums[0], beta);
        }
    }
    for (int64_t row = max(first, a.filled) + threadIdx.x; row < end; row += THREADS) {
        const int64_t to = a.row_of_c(row);
        for (int w = 0; w < count; ++w)
            store(out + to * c.row_stride + w * c.col_stride, alpha, zero<Acc>(), beta);
    }
}

} // namespace tarsia::csr

using namespace tarsia;

// A multiprocessor has threads for two blocks, but with more than one sum per thread that would
// spill registers.
#define KERNEL_product(name, types, J, COLUMNS)                                                    \
    KERNEL_OF(CSR, name, int##J##_t, COLUMNS, TYPES_##types)
#define CSR(name, J, COLUMNS, A, X, Y, Acc)                                                        \
    extern "C" __global__ void __launch_bounds__(                                                  \
        csr::THREADS, COLUMNS > 1 || __is_class(Acc) || sizeof(J) > 4 ? 1 : 2)                     \
        name(Offsets offsets, const J *indices, const A *values, int64_t base, int64_t rows,       \
             int64_t filled, int64_t rows_of_block, const uint32_t *order, const X *b,             \
             int64_t b_row, int64_t b_col, Y *c, int64_t c_row, int64_t c_col, int64_t n,          \
             Scalar<Acc> alpha, Scalar<Acc> beta, int32_t conjugated) {                            \
        begin_product();                                                                           \
        const csr::Matrix<A, J> a = {offsets, indices, values,        base,                        \
                                     rows,    filled,  rows_of_block, order};                      \
        csr::product<A, X, Y, Acc, J, COLUMNS>(a, {b, b_row, b_col}, {c, c_row, c_col}, n,         \
                                               alpha.get(), beta.get(), conjugated);               \
    }
KERNELS(product, (f64), (spmm_csr_f64_32_1, 32, 1), (spmm_csr_f64_32_4, 32, 4),
        (spmm_csr_f64_64_1, 64, 1), (spmm_csr_f64_64_4, 64, 4))
KERNELS(product, (f32), (spmm_csr_f32_32_1, 32, 1), (spmm_csr_f32_32_4, 32, 4),
        (spmm_csr_f32_64_1, 64, 1), (spmm_csr_f32_64_4, 64, 4))
KERNELS(product, (f32f64), (spmm_csr_f32f64_32_1, 32, 1), (spmm_csr_f32f64_32_4, 32, 4),
        (spmm_csr_f32f64_64_1, 64, 1), (spmm_csr_f32f64_64_4, 64, 4))
KERNELS(product, (f16), (spmm_csr_f16_32_1, 32, 1), (spmm_csr_f16_32_4, 32, 4),
        (spmm_csr_f16_64_1, 64, 1), (spmm_csr_f16_64_4, 64, 4))
KERNELS(product, (f16f32), (spmm_csr_f16f32_32_1, 32, 1), (spmm_csr_f16f32_32_4, 32, 4),
        (spmm_csr_f16f32_64_1, 64, 1), (spmm_csr_f16f32_64_4, 64, 4))
KERNELS(product, (bf16), (spmm_csr_bf16_32_1, 32, 1), (spmm_csr_bf16_32_4, 32, 4),
        (spmm_csr_bf16_64_1, 64, 1), (spmm_csr_bf16_64_4, 64, 4))
KERNELS(product, (bf16f32), (spmm_csr_bf16f32_32_1, 32, 1), (spmm_csr_bf16f32_32_4, 32, 4),
        (spmm_csr_bf16f32_64_1, 64, 1), (spmm_csr_bf16f32_64_4, 64, 4))
KERNELS(product, (c32), (spmm_csr_c32_32_1, 32, 1), (spmm_csr_c32_32_4, 32, 4),
        (spmm_csr_c32_64_1, 64, 1), (spmm_csr_c32_64_4, 64, 4))
KERNELS(product, (c64), (spmm_csr_c64_32_1, 32, 1), (spmm_csr_c64_32_4, 32, 4),
        (spmm_csr_c64_64_1, 64, 1), (spmm_csr_c64_64_4, 64, 4))
