// SPDX-License-Identifier: MIT OR Apache-2.0
/* Conjugate gradients for A x = b with the 7-point Laplacian of an N x N x N grid: one SpMV plan,
 * analyzed once, executed in every iteration, and once more for the residual b - A x at the end,
 * which tarsiaSpMV_into writes into a vector of its own.
 *
 * Tarsia multiplies sparse matrices; dot products and vector updates are not its work. Here they
 * are plain loops on host copies, so that the example needs no other library and runs unchanged on
 * every backend. On a GPU a real solver keeps all vectors there and takes the loops from a BLAS. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { N = 16, ROWS = N * N * N };

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

/* The matrix in CSR, base 0. */
static int32_t offsets[ROWS + 1], columns[7 * ROWS];
static double values[7 * ROWS];

/* Fills the matrix; returns the number of stored entries. */
static int32_t laplacian(void) {
    int32_t nnz = 0, row = 0;

    for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++, row++) {
                const int step[7] = {-N * N, -N, -1, 0, 1, N, N * N};
                const int inside[7] = {k > 0, j > 0, i > 0, 1, i < N - 1, j < N - 1, k < N - 1};
                for (int s = 0; s < 7; s++)
                    if (inside[s]) {
                        columns[nnz] = row + step[s];
                        values[nnz++] = s == 3 ? 6.0 : -1.0;
                    }
                offsets[row + 1] = nnz;
            }
    return nnz;
}

/* y = A x with a plain loop. */
static void multiply(const double *x, double *y) {
    for (int i = 0; i < ROWS; i++) {
        y[i] = 0;
        for (int32_t p = offsets[i]; p < offsets[i + 1]; p++)
            y[i] += values[p] * x[columns[p]];
    }
}

static double dot(const double *x, const double *y) {
    double sum = 0;

    for (int i = 0; i < ROWS; i++)
        sum += x[i] * y[i];
    return sum;
}

int main(void) {
    static double solution[ROWS], b[ROWS], x[ROWS], r[ROWS], p[ROWS], Ap[ROWS];
    const double one = 1, zero = 0, minus_one = -1, tolerance = 1e-10;
    const int32_t nnz = laplacian();

    for (int i = 0; i < ROWS; i++)
        solution[i] = sin(0.9 * i) + 0.3;
    multiply(solution, b);
    for (int i = 0; i < ROWS; i++)
        r[i] = p[i] = b[i]; /* x = 0: the first residual and direction are b */

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, (size_t)nnz * sizeof *columns);
    void *dValues = upload(handle, values, (size_t)nnz * sizeof *values);
    void *dP = upload(handle, p, sizeof p), *dAp = upload(handle, Ap, sizeof Ap);
    void *dB = upload(handle, b, sizeof b), *dX = upload(handle, x, sizeof x);
    void *dR = upload(handle, r, sizeof r);
    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t vecP, vecAp, vecX, vecR;
    tarsiaConstDnVecDescr_t vecB;
    tarsiaPlan_t plan;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, nnz, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecP, ROWS, dP, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecAp, ROWS, dAp, TARSIA_R_64F));
    CHECK(tarsiaCreateConstDnVec(&vecB, ROWS, dB, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecX, ROWS, dX, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecR, ROWS, dR, TARSIA_R_64F));
    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_R_64F,
                                TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_analyze(handle, plan));

    double rr = dot(r, r);
    const double size_b = sqrt(rr);
    int iterations = 0;
    while (sqrt(rr) > tolerance * size_b && iterations < 20 * N + 50) {
        CHECK(tarsiaMemcpyToDevice(handle, dP, p, sizeof p));
        CHECK(tarsiaSpMV(handle, plan, &one, vecP, &zero, vecAp));
        CHECK(tarsiaMemcpyToHost(handle, Ap, dAp, sizeof Ap));
        const double step = rr / dot(p, Ap);
        for (int i = 0; i < ROWS; i++) {
            x[i] += step * p[i];
            r[i] -= step * Ap[i];
        }
        const double next = dot(r, r), turn = next / rr;
        for (int i = 0; i < ROWS; i++)
            p[i] = r[i] + turn * p[i];
        rr = next;
        iterations++;
    }

    /* The residual that the iteration carries along may drift. Anew: r = b - A x, b stays. */
    double error = 0;
    CHECK(tarsiaMemcpyToDevice(handle, dX, x, sizeof x));
    CHECK(tarsiaSpMV_into(handle, plan, &minus_one, vecX, &one, vecB, vecR));
    CHECK(tarsiaMemcpyToHost(handle, r, dR, sizeof r));
    for (int i = 0; i < ROWS; i++)
        error = fmax(error, fabs(x[i] - solution[i]));
    const double residual = sqrt(dot(r, r)) / size_b;
    printf("%d unknowns, %d stored entries: %d iterations\n", ROWS, (int)nnz, iterations);
    printf("relative residual %.2e, largest error of x %.2e\n", residual, error);
    if (!(residual <= 10 * tolerance)) {
        fprintf(stderr, "no convergence to %g\n", tolerance);
        return 1;
    }
    /* b was made by a plain loop. The least eigenvalue of A, 12 sin^2(pi / (2 N + 2)), is above
     * 0.1, so that no element of x is off by more than 10 |r|, and what rounding adds to b. */
    if (!(error <= 10 * sqrt(dot(r, r)) + 1e-12)) {
        fprintf(stderr, "the solution is another one\n");
        return 1;
    }

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroyDnVec(vecR));
    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroyDnVec(vecB));
    CHECK(tarsiaDestroyDnVec(vecAp));
    CHECK(tarsiaDestroyDnVec(vecP));
    CHECK(tarsiaDestroySpMat(A));
    void *arrays[] = {dOffsets, dColumns, dValues, dP, dAp, dB, dX, dR};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(tarsiaFree(handle, arrays[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
