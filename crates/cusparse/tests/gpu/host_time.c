/* Host time of calls that the drop-in may take: microseconds a call, the median of 31 runs of 200
 * calls, none of which waits for the device. Run it without the drop-in, with it, and with it and
 * TARSIA_CUSPARSE_TAKE=spgemm, where it forwards these calls.
 *
 * cc -std=c11 -O2 host_time.c -I$CUDA/include -L$CUDA/lib64 -lcusparse -lcudart
 */
#define _POSIX_C_SOURCE 200809L
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int status = (int)(call);                                                                  \
        if (status) {                                                                              \
            printf("%s: %d\n", #call, status);                                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Small, so that the device has nothing to do. */
enum { ROWS = 256, N = 32, RUNS = 31, CALLS = 200 };

static cusparseHandle_t handle;
static cusparseSpMatDescr_t a;
static cusparseDnVecDescr_t x, y;
static cusparseDnMatDescr_t b, c;
static void *buffer;
static const float one = 1, zero = 0;

static int spmv(void) {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, x, &zero, y, CUDA_R_32F,
                        CUSPARSE_SPMV_ALG_DEFAULT, buffer);
}

static int spmm(void) {
    return cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
                        &one, a, b, &zero, c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, buffer);
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return difference < 0 ? -1 : difference > 0;
}

static void measure(const char *name, int (*call)(void)) {
    double times[RUNS];
    for (int run = -3; run < RUNS; ++run) {
        struct timespec begin, end;
        CHECK(cudaDeviceSynchronize());
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int at = 0; at < CALLS; ++at)
            CHECK(call());
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (run >= 0)
            times[run] = ((double)(end.tv_sec - begin.tv_sec) * 1e6 +
                          (double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
                         CALLS;
    }
    CHECK(cudaDeviceSynchronize());
    qsort(times, RUNS, sizeof *times, compare);
    printf("%-24s %6.2f us\n", name, times[RUNS / 2]);
}

int main(void) {
    int offsets[ROWS + 1], columns[ROWS], *d_offsets, *d_columns;
    float values[ROWS], *d_values, *dense;
    for (int row = 0; row < ROWS; ++row)
        offsets[row] = columns[row] = row, values[row] = 1;
    offsets[ROWS] = ROWS;
    CHECK(cudaMalloc((void **)&d_offsets, sizeof offsets));
    CHECK(cudaMalloc((void **)&d_columns, sizeof columns));
    CHECK(cudaMalloc((void **)&d_values, sizeof values));
    CHECK(cudaMalloc((void **)&dense, 2 * ROWS * N * sizeof(float)));
    CHECK(cudaMemset(dense, 0, 2 * ROWS * N * sizeof(float)));
    CHECK(cudaMemcpy(d_offsets, offsets, sizeof offsets, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_columns, columns, sizeof columns, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_values, values, sizeof values, cudaMemcpyHostToDevice));
    CHECK(cusparseCreate(&handle));
    CHECK(cusparseCreateCsr(&a, ROWS, ROWS, ROWS, d_offsets, d_columns, d_values,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&x, ROWS, dense, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&y, ROWS, dense + ROWS * N, CUDA_R_32F));
    CHECK(cusparseCreateDnMat(&b, ROWS, N, N, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseCreateDnMat(&c, ROWS, N, N, dense + ROWS * N, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    size_t of_spmv, of_spmm;
    CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, x, &zero, y,
                                  CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &of_spmv));
    CHECK(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                  CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, b, &zero, c,
                                  CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &of_spmm));
    printf("buffers: SpMV %zu, SpMM %zu bytes\n", of_spmv, of_spmm);
    CHECK(cudaMalloc(&buffer, of_spmv + of_spmm + 1));
    measure("cusparseSpMV", spmv);
    measure("cusparseSpMM, N = 32", spmm);
    CHECK(cusparseDestroy(handle));
    return 0;
}
