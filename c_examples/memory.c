// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where memory comes from. All memory of a plan is taken from functions of the program
 * (tarsiaSetAllocator), which here only count; a program with a memory pool would hand out parts of
 * it. The workspace of the products is an array of the program's, too (tarsiaSetWorkspace), and the
 * plan is self-contained, so that A's arrays are freed before the first product. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { ROWS = 2000, N = 40, NNZ = 3 * ROWS - 2 };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

static void *upload(tarsiaHandle_t handle, const void *host, size_t bytes) {
    void *device;

    CHECK(tarsiaMalloc(handle, &device, bytes));
    CHECK(tarsiaMemcpyToDevice(handle, device, host, bytes));
    return device;
}

/* A second handle gives the memory, which is then of the right kind on a GPU and on a CPU. */
typedef struct {
    tarsiaHandle_t source;
    size_t now, peak, calls;
} Pool;

static void *pool_alloc(void *context, size_t bytes, void *stream) {
    Pool *pool = context;
    void *memory = NULL;

    (void)stream; /* a pool that is ordered by streams would need it */
    if (tarsiaMalloc(pool->source, &memory, bytes) != TARSIA_STATUS_SUCCESS)
        return NULL; /* the call that needed it returns ALLOC_FAILED */
    pool->now += bytes;
    pool->peak = pool->now > pool->peak ? pool->now : pool->peak;
    pool->calls++;
    return memory;
}

static void pool_free(void *context, void *memory, size_t bytes, void *stream) {
    Pool *pool = context;

    (void)stream;
    pool->now -= bytes;
    tarsiaFree(pool->source, memory);
}

static int32_t offsets[ROWS + 1], columns[NNZ];
static double values[NNZ], B[ROWS * N], C[ROWS * N];

int main(void) {
    const double alpha = 1, beta = 0;
    int32_t nnz = 0;

    for (int i = 0; i < ROWS; i++) { /* -1, 2, -1 */
        offsets[i] = nnz;
        for (int j = i - 1; j <= i + 1; j++)
            if (j >= 0 && j < ROWS) {
                columns[nnz] = j;
                values[nnz++] = j == i ? 2 : -1;
            }
    }
    offsets[ROWS] = nnz;
    for (int i = 0; i < ROWS * N; i++)
        B[i] = cos(0.01 * i);

    Pool pool = {0};
    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&pool.source));
    CHECK(tarsiaCreate(&handle));
    /* Before the first plan. NULL for both functions would go back to the library's own. */
    CHECK(tarsiaSetAllocator(handle, pool_alloc, pool_free, &pool));

    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof columns);
    void *dValues = upload(handle, values, sizeof values);
    void *dB = upload(handle, B, sizeof B), *dC;
    CHECK(tarsiaMalloc(handle, &dC, sizeof C));
    tarsiaSpMatDescr_t A;
    tarsiaDnMatDescr_t matB, matC;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, nnz, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnMat(&matB, ROWS, N, ROWS, dB, TARSIA_R_64F, TARSIA_ORDER_COL));
    CHECK(tarsiaCreateDnMat(&matC, ROWS, N, ROWS, dC, TARSIA_R_64F, TARSIA_ORDER_COL));

    tarsiaPlan_t plan;
    CHECK(tarsiaSpMM_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_ORDER_COL,
                                TARSIA_ORDER_COL, N, TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                TARSIA_SPMM_ALG_DEFAULT));
    CHECK(tarsiaPlan_setSelfContained(plan, 1));
    CHECK(tarsiaPlan_analyze(handle, plan));
    printf("analysis: %zu bytes at the most, %zu now, %zu allocations\n", pool.peak, pool.now,
           pool.calls);
    if (pool.calls == 0)
        return 1;

    /* The plan has a copy of all that it needs. */
    CHECK(tarsiaDestroySpMat(A));
    CHECK(tarsiaFree(handle, dOffsets));
    CHECK(tarsiaFree(handle, dColumns));
    CHECK(tarsiaFree(handle, dValues));

    /* Another handle, with a stream of its own on a GPU, executes the same plan. Its workspace is
     * memory of the program; without tarsiaSetWorkspace, tarsiaPlan_prepare would allocate it. */
    size_t needed;
    void *workspace = NULL;
    tarsiaHandle_t other;
    CHECK(tarsiaCreate(&other));
    CHECK(tarsiaPlan_workspaceSize(plan, N, &needed));
    printf("a product with %d columns needs %zu bytes of workspace\n", N, needed);
    if (needed > 0) {
        CHECK(tarsiaMalloc(other, &workspace, needed));
        CHECK(tarsiaSetWorkspace(other, workspace, needed));
    }
    CHECK(tarsiaPlan_prepare(other, plan));

    const size_t calls = pool.calls;
    CHECK(tarsiaSpMM(other, plan, &alpha, matB, &beta, matC));
    CHECK(tarsiaMemcpyToHost(other, C, dC, sizeof C));
    for (int j = 0; j < N; j++)
        for (int i = 0; i < ROWS; i++) {
            const double *b = B + j * ROWS;
            const double left = i > 0 ? b[i - 1] : 0, right = i + 1 < ROWS ? b[i + 1] : 0;
            if (!(fabs(C[i + j * ROWS] - (2 * b[i] - left - right)) <= 1e-14)) {
                fprintf(stderr, "element (%d, %d) is wrong\n", i, j);
                return 1;
            }
        }
    if (pool.calls != calls) {
        fprintf(stderr, "executing has allocated\n");
        return 1;
    }
    printf("executing has allocated nothing, and is correct\n");

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroyDnMat(matB));
    CHECK(tarsiaDestroyDnMat(matC));
    CHECK(tarsiaFree(handle, dB));
    CHECK(tarsiaFree(handle, dC));
    CHECK(tarsiaSetWorkspace(other, NULL, 0));
    CHECK(tarsiaFree(other, workspace)); /* NULL does nothing */
    CHECK(tarsiaDestroy(other));
    CHECK(tarsiaDestroy(handle));
    if (pool.now != 0) { /* all has come back */
        fprintf(stderr, "%zu bytes are lost\n", pool.now);
        return 1;
    }
    CHECK(tarsiaDestroy(pool.source)); /* last: its memory was in use till now */
    return 0;
}
