// SPDX-License-Identifier: MIT OR Apache-2.0
/* A chain of products, A A A, in sparse tiles of 16 x 16 in memory of the library: A is converted
 * once, the products take and give tiles, and only the last one is converted back to CSR. Nobody
 * has to allocate what lies between. The chain is checked with a vector: (A A A) v = A (A (A v)).
 */

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { NX = 24, NY = 20, ROWS = NX * NY };

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

/* The 5-point Laplacian of a grid. */
static int32_t offsets[ROWS + 1], columns[5 * ROWS];
static double values[5 * ROWS];

static int32_t poisson(void) {
    int32_t nnz = 0;

    for (int32_t row = 0; row < ROWS; row++) {
        const int32_t i = row % NX, j = row / NX;
        const int32_t neighbor[5] = {row - NX, row - 1, row, row + 1, row + NX};
        const int inside[5] = {j > 0, i > 0, 1, i < NX - 1, j < NY - 1};

        offsets[row] = nnz;
        for (int k = 0; k < 5; k++)
            if (inside[k]) {
                columns[nnz] = neighbor[k];
                values[nnz++] = k == 2 ? 4.0 : -1.0;
            }
    }
    offsets[ROWS] = nnz;
    return nnz;
}

static void multiply(const int32_t *o, const int32_t *c, const double *v, const double *x,
                     double *y) {
    for (int i = 0; i < ROWS; i++) {
        y[i] = 0;
        for (int32_t p = o[i]; p < o[i + 1]; p++)
            y[i] += v[p] * x[c[p]];
    }
}

/* C = A B, all three in tiles. */
static void product(tarsiaHandle_t handle, tarsiaSpMatDescr_t A, tarsiaSpMatDescr_t B,
                    tarsiaSpMatDescr_t C) {
    const double one = 1;
    int64_t nnz, entries, tiles;
    tarsiaPlan_t plan;

    CHECK(tarsiaSpGEMM_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                  TARSIA_OPERATION_NON_TRANSPOSE, A, B, TARSIA_COMPUTE_64F,
                                  TARSIA_SPGEMM_ALG_TILE));
    CHECK(tarsiaPlan_analyze(handle, plan));
    CHECK(tarsiaSpGEMM_symbolic(handle, plan, &nnz)); /* no array to allocate, but the same call */
    CHECK(tarsiaSpGEMM_numeric(handle, plan, &one, C));
    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaTileGet(C, NULL, NULL, &entries, &tiles, NULL));
    printf("%" PRId64 " entries in %" PRId64 " tiles\n", entries, tiles);
    if (entries != nnz)
        exit(1);
}

int main(void) {
    const int32_t nnz = poisson();
    int64_t entries, tiles;

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof *columns * (size_t)nnz);
    void *dValues = upload(handle, values, sizeof *values * (size_t)nnz);
    tarsiaSpMatDescr_t csr, A, A2, A3, result;
    CHECK(tarsiaCreateCsr(&csr, ROWS, ROWS, nnz, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateTile(handle, &A, ROWS, ROWS, TARSIA_R_64F));
    CHECK(tarsiaCreateTile(handle, &A2, ROWS, ROWS, TARSIA_R_64F));
    CHECK(tarsiaCreateTile(handle, &A3, ROWS, ROWS, TARSIA_R_64F));

    CHECK(tarsiaSparseToTile(handle, csr, A));
    CHECK(tarsiaTileGet(A, NULL, NULL, &entries, &tiles, NULL));
    printf("%" PRId64 " entries in %" PRId64 " tiles\n", entries, tiles);
    product(handle, A, A, A2);
    product(handle, A, A2, A3);

    /* Back to CSR, into arrays of the program. */
    CHECK(tarsiaTileGet(A3, NULL, NULL, &entries, NULL, NULL));
    const size_t bytes = sizeof(int32_t) * (size_t)entries;
    void *dOffsets3, *dColumns3, *dValues3;
    CHECK(tarsiaMalloc(handle, &dOffsets3, sizeof offsets));
    CHECK(tarsiaMalloc(handle, &dColumns3, bytes));
    CHECK(tarsiaMalloc(handle, &dValues3, 2 * bytes));
    CHECK(tarsiaCreateCsr(&result, ROWS, ROWS, entries, dOffsets3, dColumns3, dValues3,
                          TARSIA_INDEX_32I, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO,
                          TARSIA_R_64F));
    CHECK(tarsiaTileToSparse(handle, A3, result));

    int32_t *offsets3 = malloc(sizeof offsets), *columns3 = malloc(bytes);
    double *values3 = malloc(2 * bytes);
    if (!offsets3 || !columns3 || !values3)
        return 1;
    CHECK(tarsiaMemcpyToHost(handle, offsets3, dOffsets3, sizeof offsets));
    CHECK(tarsiaMemcpyToHost(handle, columns3, dColumns3, bytes));
    CHECK(tarsiaMemcpyToHost(handle, values3, dValues3, 2 * bytes));
    double v[ROWS], once[ROWS], twice[ROWS], expected[ROWS], found[ROWS];
    for (int i = 0; i < ROWS; i++)
        v[i] = sin(0.37 * i + 0.1);
    multiply(offsets, columns, values, v, once);
    multiply(offsets, columns, values, once, twice);
    multiply(offsets, columns, values, twice, expected);
    multiply(offsets3, columns3, values3, v, found);
    /* Entries of A A A are whole numbers and exact. Each row of A has absolute values that add up
     * to at most 8, so those of A A A to 512, in at most 25 terms. */
    for (int i = 0; i < ROWS; i++)
        if (!(fabs(found[i] - expected[i]) <= 32 * 512 * DBL_EPSILON)) {
            fprintf(stderr, "row %d: %.17g instead of %.17g\n", i, found[i], expected[i]);
            return 1;
        }
    printf("(A A A) v = A (A (A v)): correct\n");

    free(offsets3);
    free(columns3);
    free(values3);
    const tarsiaSpMatDescr_t matrices[] = {csr, A, A2, A3, result};
    for (int i = 0; i < 5; i++)
        CHECK(tarsiaDestroySpMat(matrices[i]));
    void *all[] = {dOffsets, dColumns, dValues, dOffsets3, dColumns3, dValues3};
    for (int i = 0; i < 6; i++)
        CHECK(tarsiaFree(handle, all[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
