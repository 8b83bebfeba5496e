// SPDX-License-Identifier: MIT OR Apache-2.0
/* y = alpha A x + beta y for the 5-point Laplacian of a grid, in CSR: the plan is analyzed once and
 * executed several times. Every result is checked against a plain loop. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { NX = 60, NY = 50, ROWS = NX * NY };

/* Every call returns a status; the text says which argument was wrong and why. */
static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* A copy of a host array in the backend's memory (on a CPU backend that is host memory too). */
static void *upload(tarsiaHandle_t handle, const void *host, size_t bytes) {
    void *device;

    CHECK(tarsiaMalloc(handle, &device, bytes));
    CHECK(tarsiaMemcpyToDevice(handle, device, host, bytes));
    return device;
}

/* The matrix in CSR, base 0, 32-bit offsets and columns; returns the number of stored entries. */
static int32_t poisson(int32_t *offsets, int32_t *columns, double *values) {
    int32_t nnz = 0;

    for (int32_t row = 0; row < ROWS; row++) {
        const int32_t i = row % NX, j = row / NX;
        const int32_t neighbor[5] = {row - NX, row - 1, row, row + 1, row + NX};
        const int inside[5] = {j > 0, i > 0, 1, i < NX - 1, j < NY - 1};

        offsets[row] = nnz;
        for (int k = 0; k < 5; k++) {
            if (inside[k]) {
                columns[nnz] = neighbor[k];
                values[nnz++] = k == 2 ? 4.0 : -1.0;
            }
        }
    }
    offsets[ROWS] = nnz;
    return nnz;
}

int main(void) {
    static int32_t offsets[ROWS + 1], columns[5 * ROWS];
    static double values[5 * ROWS], x[ROWS], y[ROWS], before[ROWS];
    static const double scalars[3][2] = {{1.0, 0.0}, {0.7, 1.0}, {-1.3, 0.4}}; /* alpha, beta */
    const int32_t nnz = poisson(offsets, columns, values);
    double worst = 0;

    for (int32_t i = 0; i < ROWS; i++) {
        x[i] = sin(0.37 * i + 0.1);
        y[i] = NAN; /* the first execute has beta == 0: y is not read */
    }

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));

    /* Descriptors borrow arrays: these must live as long as they are used. */
    void *dOffsets = upload(handle, offsets, sizeof *offsets * (ROWS + 1));
    void *dColumns = upload(handle, columns, sizeof *columns * (size_t)nnz);
    void *dValues = upload(handle, values, sizeof *values * (size_t)nnz);
    void *dX = upload(handle, x, sizeof x), *dY = upload(handle, y, sizeof y);
    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t vecX, vecY;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, nnz, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecX, ROWS, dX, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecY, ROWS, dY, TARSIA_R_64F));

    /* Once per matrix: validates the pattern, chooses an algorithm, converts if that pays. */
    tarsiaPlan_t plan;
    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_R_64F,
                                TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_analyze(handle, plan));

    tarsiaPlanInfo_t info;
    info.structSize = sizeof info; /* always first */
    CHECK(tarsiaPlan_getInfo(plan, &info));
    printf("A: %d x %d, %d stored entries\n", ROWS, ROWS, (int)nnz);
    printf("algorithm %s, %s, %zu bytes in the plan, %.1f us of analysis\n", info.algorithmName,
           info.inPlace ? "A's arrays in place" : "a copy of A", info.planBytes,
           1e6 * info.analysisSeconds);
    printf("reason: %s\n", info.reason);

    for (int step = 0; step < 3; step++) {
        const double alpha = scalars[step][0], beta = scalars[step][1];

        /* Asynchronous on a GPU. alpha and beta have the compute type. */
        CHECK(tarsiaSpMV(handle, plan, &alpha, vecX, &beta, vecY));
        for (int32_t i = 0; i < ROWS; i++)
            before[i] = y[i];
        CHECK(tarsiaMemcpyToHost(handle, y, dY, sizeof y)); /* waits for the product */

        for (int32_t i = 0; i < ROWS; i++) {
            const double old = beta == 0 ? 0 : beta * before[i];
            double sum = 0, size = 0;
            for (int32_t p = offsets[i]; p < offsets[i + 1]; p++) {
                sum += values[p] * x[columns[p]];
                size += fabs(values[p] * x[columns[p]]);
            }
            /* A row of n entries rounds at most n + 2 times, here and in the library. */
            const double bound = 2 * (offsets[i + 1] - offsets[i] + 2) * DBL_EPSILON *
                                 (fabs(alpha) * size + fabs(old));
            const double error = fabs(y[i] - (alpha * sum + old));
            if (!(error <= bound)) { /* written so that a NaN fails too */
                fprintf(stderr, "row %d: error %g, allowed %g\n", (int)i, error, bound);
                return 1;
            }
            worst = fmax(worst, error);
        }
        printf("y = %4.1f A x + %.1f y: correct\n", alpha, beta);
    }
    printf("largest error %.2g\n", worst);

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroyDnVec(vecY));
    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroySpMat(A));
    void *arrays[] = {dOffsets, dColumns, dValues, dX, dY};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(tarsiaFree(handle, arrays[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
