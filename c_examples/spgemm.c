// SPDX-License-Identifier: MIT OR Apache-2.0
/* C = A A, all sparse: symbolic counts the entries of C, the caller allocates them, numeric
 * computes them. Then A gets new values in the same pattern, and numeric runs again without a new
 * analysis. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { SIDE = 40, ROWS = SIDE * SIDE, MOST = 5 * ROWS };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* bytes bytes of the backend's memory, with a copy of host if there is one. */
static void *device_array(tarsiaHandle_t handle, const void *host, size_t bytes) {
    void *device;
    CHECK(tarsiaMalloc(handle, &device, bytes));
    if (host)
        CHECK(tarsiaMemcpyToDevice(handle, device, host, bytes));
    return device;
}

/* A matrix in CSR, base 0, in host memory. */
typedef struct {
    int32_t offsets[ROWS + 1], *columns;
    double *values;
} Matrix;

/* y = M x; size_y = |M| size_x, to which rounding errors are in proportion. */
static void multiply(const Matrix *M, const double *x, double *y, const double *size_x,
                     double *size_y) {
    for (int32_t i = 0; i < ROWS; i++) {
        y[i] = size_y[i] = 0;
        for (int32_t p = M->offsets[i]; p < M->offsets[i + 1]; p++) {
            y[i] += M->values[p] * x[M->columns[p]];
            size_y[i] += fabs(M->values[p]) * size_x[M->columns[p]];
        }
    }
}

/* Sorted rows without duplicates, and C v == alpha A (A v). */
static int correct(const Matrix *A, const Matrix *C, double alpha) {
    static double v[ROWS], Av[ROWS], AAv[ROWS], Cv[ROWS];
    static double size0[ROWS], size1[ROWS], size2[ROWS], sizeC[ROWS];

    for (int32_t i = 0; i < ROWS; i++)
        size0[i] = fabs(v[i] = cos(0.61 * i));
    multiply(A, v, Av, size0, size1);
    multiply(A, Av, AAv, size1, size2);
    multiply(C, v, Cv, size0, sizeC);
    for (int32_t i = 0; i < ROWS; i++) {
        for (int32_t p = C->offsets[i], last = -1; p < C->offsets[i + 1]; last = C->columns[p++]) {
            if (C->columns[p] <= last || C->columns[p] >= ROWS) {
                fprintf(stderr, "row %d of C is not sorted, or out of range\n", (int)i);
                return 0;
            }
        }
        /* At most 5 products of 5 in a row of C: fewer than 40 roundings on either way. */
        if (!(fabs(Cv[i] - alpha * AAv[i]) <= 80 * DBL_EPSILON * fabs(alpha) * size2[i])) {
            fprintf(stderr, "row %d: C v and A (A v) differ\n", (int)i);
            return 0;
        }
    }
    return 1;
}

int main(void) {
    static int32_t columns[MOST];
    static double values[MOST];
    static Matrix A = {.columns = columns, .values = values}, C;
    const double alpha = 0.5;
    int64_t nnzC;
    int32_t nnz = 0;

    /* Five diagonals, no two values alike. */
    for (int32_t i = 0; i < ROWS; i++) {
        static const int32_t diagonals[5] = {-SIDE, -1, 0, 1, SIDE};
        for (int k = 0; k < 5; k++) {
            const int32_t column = i + diagonals[k];
            if (column < 0 || column >= ROWS)
                continue;
            columns[nnz] = column;
            values[nnz] = sin(1.3 * nnz);
            nnz++;
        }
        A.offsets[i + 1] = nnz;
    }

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    const size_t offsetBytes = sizeof A.offsets;
    void *dOffsets = device_array(handle, A.offsets, offsetBytes);
    void *dColumns = device_array(handle, columns, sizeof *columns * (size_t)nnz);
    void *dValues = device_array(handle, values, sizeof *values * (size_t)nnz);
    tarsiaSpMatDescr_t matA, matC;
    CHECK(tarsiaCreateCsr(&matA, ROWS, ROWS, nnz, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));

    tarsiaPlan_t plan;
    CHECK(tarsiaSpGEMM_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                  TARSIA_OPERATION_NON_TRANSPOSE, matA, matA, TARSIA_COMPUTE_64F,
                                  TARSIA_SPGEMM_ALG_DEFAULT));
    /* Values will change: keep C's pattern, so that only the first numeric phase computes it. */
    CHECK(tarsiaPlan_setValueUpdates(plan, 1));
    CHECK(tarsiaPlan_analyze(handle, plan));

    /* Only now is the size of C known. Its base and index types are the caller's choice. */
    CHECK(tarsiaSpGEMM_symbolic(handle, plan, &nnzC));
    const size_t columnBytes = sizeof(int32_t) * (size_t)nnzC;
    const size_t valueBytes = sizeof(double) * (size_t)nnzC;
    void *dOffsetsC = device_array(handle, NULL, offsetBytes);
    void *dColumnsC = device_array(handle, NULL, columnBytes);
    void *dValuesC = device_array(handle, NULL, valueBytes);
    CHECK(tarsiaCreateCsr(&matC, ROWS, ROWS, nnzC, dOffsetsC, dColumnsC, dValuesC, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    C.columns = malloc(columnBytes);
    C.values = malloc(valueBytes);
    if (!C.columns || !C.values) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    printf("A: %d x %d, %d entries; C = A A has %lld\n", ROWS, ROWS, (int)nnz, (long long)nnzC);

    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            /* New values of the same pattern. A is both factors here, so both get them. */
            for (int32_t p = 0; p < nnz; p++)
                values[p] = cos(0.7 * p);
            CHECK(tarsiaMemcpyToDevice(handle, dValues, values, sizeof *values * (size_t)nnz));
            CHECK(tarsiaSpGEMM_updateValues(handle, plan, dValues, dValues));
        }
        CHECK(tarsiaSpGEMM_numeric(handle, plan, &alpha, matC));
        CHECK(tarsiaMemcpyToHost(handle, C.offsets, dOffsetsC, offsetBytes));
        CHECK(tarsiaMemcpyToHost(handle, C.columns, dColumnsC, columnBytes));
        CHECK(tarsiaMemcpyToHost(handle, C.values, dValuesC, valueBytes));
        if (C.offsets[0] != 0 || C.offsets[ROWS] != nnzC || !correct(&A, &C, alpha))
            return 1;
        printf("numeric with %s values: correct\n", round == 0 ? "the first" : "new");
    }

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroySpMat(matC));
    CHECK(tarsiaDestroySpMat(matA));
    void *arrays[] = {dOffsets, dColumns, dValues, dOffsetsC, dColumnsC, dValuesC};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(tarsiaFree(handle, arrays[i]));
    CHECK(tarsiaDestroy(handle));
    free(C.columns);
    free(C.values);
    return 0;
}
