// SPDX-License-Identifier: MIT OR Apache-2.0
/* One matrix in four formats: CSR, CSC, COO and BSR, in the order in which a program may have made
 * them: offsets of 64 bits, base 1, entries in any order, blocks by columns. tarsiaCheckSpMat says
 * whether the pattern is right, sorted and free of duplicates, and tarsiaSpMV_once multiplies by
 * each without a plan, since each is used once. All four results are the same vector.
 *
 * The matrix has 2 x 2 blocks, those of a chain of N nodes with two unknowns each:
 *
 *     [ D  U       ]        D = [ 4 1 ]   U = [ -1  0.5 ]
 *     [ U' D  U    ]            [ 1 5 ]       [  0 -2   ]      U' the transpose of U
 *     [    U' D  U ]   */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { N = 40, BLOCKS = 3 * N - 2, ROWS = 2 * N, NNZ = 4 * BLOCKS };

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
#define UPLOAD(array) upload(handle, (array), sizeof(array))

/* The matrix as the text above has it: entry (i, j). */
static double entry(int i, int j) {
    static const double D[2][2] = {{4, 1}, {1, 5}}, U[2][2] = {{-1, 0.5}, {0, -2}};
    const int block = j / 2 - i / 2;

    if (block == 0)
        return D[i % 2][j % 2];
    return block == 1 ? U[i % 2][j % 2] : U[j % 2][i % 2];
}

/* Block rows of BSR: 32-bit offsets and columns of blocks, base 0; inside a block by columns. */
static int32_t bsrOffsets[N + 1], bsrColumns[BLOCKS];
static double bsrValues[NNZ];
/* CSR with 64-bit offsets and 32-bit columns, base 1. */
static int64_t csrOffsets[ROWS + 1];
static int32_t csrColumns[NNZ];
static double csrValues[NNZ];
/* CSC with 32-bit offsets and rows, base 0. */
static int32_t cscOffsets[ROWS + 1], cscRows[NNZ];
static double cscValues[NNZ];
/* COO with 64-bit indices, base 0, last entry first. */
static int64_t cooRows[NNZ], cooColumns[NNZ];
static double cooValues[NNZ];

static void fill(void) {
    int blocks = 0, entries = 0;

    for (int i = 0; i < N; i++) {
        bsrOffsets[i] = blocks;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++, blocks++) {
            bsrColumns[blocks] = j;
            for (int c = 0; c < 2; c++)
                for (int r = 0; r < 2; r++)
                    bsrValues[4 * blocks + 2 * c + r] = entry(2 * i + r, 2 * j + c);
        }
    }
    bsrOffsets[N] = blocks;

    for (int i = 0; i < ROWS; i++) {
        csrOffsets[i] = entries + 1;
        /* The pattern of blocks is symmetric: the rows of column i are the columns of row i. */
        cscOffsets[i] = entries;
        for (int j = 0; j < ROWS; j++) {
            if (abs(j / 2 - i / 2) > 1)
                continue;
            csrColumns[entries] = j + 1;
            csrValues[entries] = entry(i, j);
            cscRows[entries] = j;
            cscValues[entries] = entry(j, i);
            cooRows[NNZ - 1 - entries] = i;
            cooColumns[NNZ - 1 - entries] = j;
            cooValues[NNZ - 1 - entries] = entry(i, j);
            entries++;
        }
    }
    csrOffsets[ROWS] = entries + 1;
    cscOffsets[ROWS] = entries;
}

int main(void) {
    double x[ROWS], y[ROWS];
    const double alpha = 1, beta = 0;

    fill();
    for (int i = 0; i < ROWS; i++)
        x[i] = sin(0.3 * i + 0.2);

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dX = UPLOAD(x), *dY;
    CHECK(tarsiaMalloc(handle, &dY, sizeof y));
    tarsiaConstDnVecDescr_t vecX;
    tarsiaDnVecDescr_t vecY;
    CHECK(tarsiaCreateConstDnVec(&vecX, ROWS, dX, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecY, ROWS, dY, TARSIA_R_64F));

    /* A descriptor says where the arrays are and what they hold, and copies nothing. */
    void *arrays[] = {UPLOAD(csrOffsets), UPLOAD(csrColumns), UPLOAD(csrValues),
                      UPLOAD(cscOffsets), UPLOAD(cscRows),    UPLOAD(cscValues),
                      UPLOAD(cooRows),    UPLOAD(cooColumns), UPLOAD(cooValues),
                      UPLOAD(bsrOffsets), UPLOAD(bsrColumns), UPLOAD(bsrValues)};
    tarsiaSpMatDescr_t csr, csc, coo, bsr;
    CHECK(tarsiaCreateCsr(&csr, ROWS, ROWS, NNZ, arrays[0], arrays[1], arrays[2], TARSIA_INDEX_64I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ONE, TARSIA_R_64F));
    CHECK(tarsiaCreateCsc(&csc, ROWS, ROWS, NNZ, arrays[3], arrays[4], arrays[5], TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateCoo(&coo, ROWS, ROWS, NNZ, arrays[6], arrays[7], arrays[8], TARSIA_INDEX_64I,
                          TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateBsr(&bsr, N, N, BLOCKS, 2, 2, arrays[9], arrays[10], arrays[11],
                          TARSIA_INDEX_32I, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F,
                          TARSIA_ORDER_COL));

    const tarsiaSpMatDescr_t matrices[4] = {csr, csc, coo, bsr};
    const char *names[4] = {"CSR", "CSC", "COO", "BSR"};
    for (int m = 0; m < 4; m++) {
        /* Worth a call where the arrays come from elsewhere: on a GPU, tarsiaSpMV_once does not
         * check the pattern of CSR. Order and duplicates are no errors; they only cost time. */
        int sorted, unique, known;
        CHECK(tarsiaCheckSpMat(handle, matrices[m], &sorted, &unique));
        CHECK(tarsiaSpMatGetSorted(matrices[m], &known));
        if (sorted != (m != 2) || known != sorted || unique != sorted) {
            fprintf(stderr, "%s: sorted %d, unique %d\n", names[m], sorted, unique);
            return 1;
        }

        CHECK(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, &alpha, matrices[m], vecX,
                              &beta, vecY, TARSIA_COMPUTE_64F));
        CHECK(tarsiaMemcpyToHost(handle, y, dY, sizeof y));
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int j = 0; j < ROWS; j++)
                sum += abs(j / 2 - i / 2) > 1 ? 0 : entry(i, j) * x[j];
            if (!(fabs(y[i] - sum) <= 1e-14)) { /* six terms of at most 5 each */
                fprintf(stderr, "%s, row %d: %.17g instead of %.17g\n", names[m], i, y[i], sum);
                return 1;
            }
        }
        printf("%s, %s: correct\n", names[m], sorted ? "sorted" : "not sorted");
    }

    for (int m = 0; m < 4; m++)
        CHECK(tarsiaDestroySpMat(matrices[m]));
    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroyDnVec(vecY));
    for (int i = 0; i < 12; i++)
        CHECK(tarsiaFree(handle, arrays[i]));
    CHECK(tarsiaFree(handle, dX));
    CHECK(tarsiaFree(handle, dY));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
