// SPDX-License-Identifier: MIT OR Apache-2.0
/* Times aijtarsia and aij in turns, in one process: MatMult, a whole solve (conjugate gradients
 * with Jacobi, analysis included), and P^T A P with MAT_REUSE_MATRIX.
 *
 *   -n N          points of the grid in each direction (96)
 *   -turns N      how often each is timed (9)
 *
 * A is the 7-point operator with coefficients that differ from edge to edge, P smoothed aggregation
 * of 2 x 2 x 2 points. */

#include <stdlib.h>

#include <petsctime.h>

#include "check.h"

static const MatType types[2] = {MATAIJ, MATAIJTARSIA};

static PetscErrorCode Operator(MatType type, PetscInt n, Mat *A) {
    PetscInt first, last;

    PetscFunctionBeginUser;
    PetscCall(MatCreate(PETSC_COMM_WORLD, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n * n * n, n * n * n));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
    PetscCall(MatGetOwnershipRange(*A, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        const PetscInt place[3] = {row % n, row / n % n, row / (n * n)}, steps[3] = {1, n, n * n};
        PetscScalar diagonal = 0;

        for (int k = 0; k < 6; k++) {
            const int axis = k / 2, up = k % 2;
            const PetscInt neighbour = row + (up ? steps[axis] : -steps[axis]);
            const PetscReal coefficient = 1.5 + 0.5 * Uniform(PetscMin(row, neighbour), axis);

            diagonal += coefficient;
            if (place[axis] != (up ? n - 1 : 0))
                PetscCall(MatSetValue(*A, row, neighbour, -coefficient, INSERT_VALUES));
        }
        PetscCall(MatSetValue(*A, row, row, diagonal, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* P = (I - w D^-1 A) P0. */
static PetscErrorCode Prolongator(Mat A, PetscInt n, Mat *P) {
    const PetscInt half = (n + 1) / 2;
    PetscInt first, last, rows;
    Mat P0, S;
    MatType type;
    Vec diagonal;

    PetscFunctionBeginUser;
    PetscCall(MatGetLocalSize(A, &rows, NULL));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &P0));
    PetscCall(MatSetSizes(P0, rows, PETSC_DECIDE, n * n * n, half * half * half));
    PetscCall(MatGetType(A, &type));
    PetscCall(MatSetType(P0, type));
    PetscCall(MatSeqAIJSetPreallocation(P0, 1, NULL));
    PetscCall(MatMPIAIJSetPreallocation(P0, 1, NULL, 1, NULL));
    PetscCall(MatGetOwnershipRange(P0, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        const PetscInt column =
            (row % n) / 2 + half * ((row / n % n) / 2) + half * half * (row / (n * n) / 2);

        PetscCall(MatSetValue(P0, row, column, 1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(P0, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(P0, MAT_FINAL_ASSEMBLY));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &S));
    PetscCall(MatCreateVecs(A, &diagonal, NULL));
    PetscCall(MatGetDiagonal(A, diagonal));
    PetscCall(VecReciprocal(diagonal));
    PetscCall(MatDiagonalScale(S, diagonal, NULL));
    PetscCall(MatScale(S, -2.0 / 3));
    PetscCall(MatShift(S, 1));
    PetscCall(MatMatMult(S, P0, MAT_INITIAL_MATRIX, PETSC_DEFAULT, P));
    PetscCall(VecDestroy(&diagonal));
    PetscCall(MatDestroy(&S));
    PetscCall(MatDestroy(&P0));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static int Ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* One line of the table: medians and the least of both, of the slowest rank. */
static PetscErrorCode Line(const char *name, PetscInt turns, double *seconds[2]) {
    double median[2];

    PetscFunctionBeginUser;
    for (int i = 0; i < 2; i++) {
        PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, seconds[i], (PetscMPIInt)turns, MPI_DOUBLE,
                                   MPI_MAX, PETSC_COMM_WORLD));
        qsort(seconds[i], (size_t)turns, sizeof(double), Ascending);
        median[i] = seconds[i][turns / 2];
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "| %s | %.3f (%.3f) | %.3f (%.3f) | %.2f (%.2f) |\n",
                          name, 1e3 * median[0], 1e3 * seconds[0][0], 1e3 * median[1],
                          1e3 * seconds[1][0], median[0] / median[1],
                          seconds[0][0] / seconds[1][0]));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Start(PetscLogDouble *start) {
    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(start));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimeMatMult(Mat A[2], PetscInt turns, double *seconds[2]) {
    enum { PRODUCTS = 10 };
    Vec x, y;
    PetscLogDouble start, end;

    PetscFunctionBeginUser;
    PetscCall(MatCreateVecs(A[0], &x, &y));
    PetscCall(FillVector(x, 1));
    for (PetscInt turn = -1; turn < turns; turn++)
        for (int i = 0; i < 2; i++) {
            PetscCall(Start(&start));
            for (int k = 0; k < PRODUCTS; k++)
                PetscCall(MatMult(A[i], x, y));
            PetscCall(PetscTime(&end));
            if (turn >= 0)
                seconds[i][turn] = (end - start) / PRODUCTS;
        }
    PetscCall(Line("MatMult", turns, seconds));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each turn has a new matrix, so that a solve contains the analysis. */
static PetscErrorCode TimeSolve(Mat A[2], PetscInt turns, double *seconds[2]) {
    PetscInt iterations[2];

    PetscFunctionBeginUser;
    for (PetscInt turn = 0; turn < turns; turn++)
        for (int i = 0; i < 2; i++) {
            Mat copy;
            KSP ksp;
            PC pc;
            Vec x, b;
            PetscLogDouble start, end;

            PetscCall(MatDuplicate(A[i], MAT_COPY_VALUES, &copy));
            PetscCall(MatCreateVecs(copy, &x, &b));
            PetscCall(FillVector(b, 2));
            PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
            PetscCall(KSPSetType(ksp, KSPCG));
            PetscCall(KSPGetPC(ksp, &pc));
            PetscCall(PCSetType(pc, PCJACOBI));
            PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 10000));
            PetscCall(KSPSetOperators(ksp, copy, copy));
            PetscCall(Start(&start));
            PetscCall(KSPSolve(ksp, b, x));
            PetscCall(PetscTime(&end));
            seconds[i][turn] = end - start;
            PetscCall(KSPGetIterationNumber(ksp, &iterations[i]));
            PetscCall(KSPDestroy(&ksp));
            PetscCall(VecDestroy(&x));
            PetscCall(VecDestroy(&b));
            PetscCall(MatDestroy(&copy));
        }
    PetscCheck(iterations[0] == iterations[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB,
               "iterations differ: %" PetscInt_FMT " and %" PetscInt_FMT, iterations[0],
               iterations[1]);
    PetscCall(Line("KSPSolve, CG and Jacobi", turns, seconds));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimePtAP(Mat A[2], PetscInt n, PetscInt turns, double *first[2],
                               double *again[2]) {
    Mat P[2], C[2];
    PetscLogDouble start, end;

    PetscFunctionBeginUser;
    for (int i = 0; i < 2; i++)
        PetscCall(Prolongator(A[i], n, &P[i]));
    for (PetscInt turn = 0; turn < turns; turn++)
        for (int i = 0; i < 2; i++) {
            PetscCall(Start(&start));
            PetscCall(MatPtAP(A[i], P[i], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[i]));
            PetscCall(PetscTime(&end));
            first[i][turn] = end - start;
            PetscCall(MatScale(A[i], 1.0625));
            PetscCall(Start(&start));
            PetscCall(MatPtAP(A[i], P[i], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[i]));
            PetscCall(PetscTime(&end));
            again[i][turn] = end - start;
            PetscCall(MatDestroy(&C[i]));
        }
    PetscCall(Line("MatPtAP, first", turns, first));
    PetscCall(Line("MatPtAP, MAT_REUSE_MATRIX", turns, again));
    for (int i = 0; i < 2; i++)
        PetscCall(MatDestroy(&P[i]));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    PetscInt n = 96, turns = 9;
    PetscMPIInt ranks;
    Mat A[2];
    double *seconds[4];

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Times aijtarsia and aij in turns."));
    PetscCall(MatTarsiaRegister());
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-turns", &turns, NULL));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    for (int i = 0; i < 2; i++)
        PetscCall(Operator(types[i], n, &A[i]));
    for (int i = 0; i < 4; i++)
        PetscCall(PetscMalloc1(turns, &seconds[i]));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "| %d ranks, %" PetscInt_FMT "^3, ms: median (least) of %" PetscInt_FMT
                          " | aij | aijtarsia | aij over aijtarsia |\n|---|---|---|---|\n",
                          ranks, n, turns));
    PetscCall(TimeMatMult(A, turns, seconds));
    PetscCall(TimeSolve(A, turns, seconds));
    PetscCall(TimePtAP(A, n, turns, seconds, seconds + 2));
    for (int i = 0; i < 4; i++)
        PetscCall(PetscFree(seconds[i]));
    for (int i = 0; i < 2; i++)
        PetscCall(MatDestroy(&A[i]));
    PetscCall(PetscFinalize());
    return 0;
}
