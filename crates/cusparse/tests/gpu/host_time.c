/* Measures the host time of calls that the drop-in may take, in microseconds a call: the median of
 * 31 runs of 200 calls, none of which waits for the device. Run it without the drop-in, with it,
 * and with it and TARSIA_CUSPARSE_TAKE=spgemm, with which it forwards these calls.
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

/* The matrix with ROWS rows is so small that the device has almost nothing to do. That with
 * MANY_ROWS rows is divided evenly among blocks, which needs counters and a few microseconds of the
 * device. */
enum { ROWS = 256, MANY_ROWS = 100000, N = 32, RUNS = 31, CALLS = 200 };

static cusparseHandle_t handle;
static cusparseSpMatDescr_t a, many;
static cusparseDnVecDescr_t x, y, many_x, many_y;
static cusparseDnMatDescr_t b, c;
static void *buffer;
static const float one = 1, zero = 0;

static int spmv(void) {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, x, &zero, y, CUDA_R_32F,
                        CUSPARSE_SPMV_ALG_DEFAULT, buffer);
}

static int spmv_of_many(void) {
    return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, many, many_x, &zero, many_y,
                        CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer);
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

/* Creates a diagonal matrix on the device. */
static cusparseSpMatDescr_t diagonal(int rows) {
    cusparseSpMatDescr_t made;
    size_t count = (size_t)rows;
    int *offsets = malloc((count + 1) * sizeof(int)), *d_offsets, *d_columns;
    float *values = malloc(count * sizeof(float)), *d_values;
    for (int row = 0; row < rows; ++row)
        offsets[row] = row, values[row] = 1;
    offsets[rows] = rows;
    CHECK(cudaMalloc((void **)&d_offsets, (count + 1) * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_columns, count * sizeof(int)));
    CHECK(cudaMalloc((void **)&d_values, count * sizeof(float)));
    CHECK(cudaMemcpy(d_offsets, offsets, (count + 1) * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_columns, offsets, count * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_values, values, count * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cusparseCreateCsr(&made, rows, rows, rows, d_offsets, d_columns, d_values,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                            CUDA_R_32F));
    free(offsets), free(values);
    return made;
}

/* Allocates an array of zeros on the device. */
static float *zeros(size_t count) {
    float *made;
    CHECK(cudaMalloc((void **)&made, count * sizeof(float)));
    CHECK(cudaMemset(made, 0, count * sizeof(float)));
    return made;
}

int main(void) {
    float *dense = zeros(2 * ROWS * N), *vectors = zeros(2 * MANY_ROWS);
    CHECK(cusparseCreate(&handle));
    a = diagonal(ROWS);
    many = diagonal(MANY_ROWS);
    CHECK(cusparseCreateDnVec(&x, ROWS, dense, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&y, ROWS, dense + ROWS * N, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&many_x, MANY_ROWS, vectors, CUDA_R_32F));
    CHECK(cusparseCreateDnVec(&many_y, MANY_ROWS, vectors + MANY_ROWS, CUDA_R_32F));
    CHECK(cusparseCreateDnMat(&b, ROWS, N, N, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseCreateDnMat(&c, ROWS, N, N, dense + ROWS * N, CUDA_R_32F, CUSPARSE_ORDER_ROW));
    size_t of_spmv, of_many, of_spmm;
    CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, x, &zero, y,
                                  CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &of_spmv));
    CHECK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, many, many_x,
                                  &zero, many_y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &of_many));
    CHECK(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                  CUSPARSE_OPERATION_NON_TRANSPOSE, &one, a, b, &zero, c,
                                  CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &of_spmm));
    printf("buffers: SpMV %zu, SpMM %zu bytes\n", of_spmv, of_spmm);
    CHECK(cudaMalloc(&buffer, of_spmv + of_many + of_spmm + 1));
    measure("cusparseSpMV", spmv);
    measure("cusparseSpMV, 100,000", spmv_of_many);
    measure("cusparseSpMM, N = 32", spmm);
    CHECK(cusparseDestroy(handle));
    return 0;
}
