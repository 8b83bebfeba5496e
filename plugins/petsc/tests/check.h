// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the test programs share: matrices to test with, comparisons, and the count of tests. */

#ifndef PETSCTARSIA_CHECK_H
#define PETSCTARSIA_CHECK_H

#include <petscksp.h>

#include <petsctarsia.h>

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

/* Rounding of sums of some hundred products, in units of the norm. */
#define TOLERANCE (1000 * PETSC_MACHINE_EPSILON)

static int tests_run = 0;

/* Names the test that follows. */
#define Test(...)                                                                                  \
    do {                                                                                           \
        tests_run++;                                                                               \
        PetscCall(PetscInfo(NULL, __VA_ARGS__));                                                   \
    } while (0)

/* Ends the program unless the condition holds on this rank. */
#define Check(condition, ...)                                                                      \
    PetscCheck(condition, PETSC_COMM_SELF, PETSC_ERR_PLIB, "test %d, line %d: %s", tests_run,      \
               __LINE__, PetscStringOf(__VA_ARGS__))

static inline const char *PetscStringOf(const char *text) { return text; }

/* A value with a full mantissa in [-1, 1) that follows from two numbers. */
static inline PetscReal Uniform(PetscInt a, PetscInt b) {
    uint64_t bits = (uint64_t)a * 0x9E3779B97F4A7C15u + (uint64_t)b * 0xC2B2AE3D27D4EB4Fu + 1;

    bits ^= bits >> 31;
    bits *= 0xD6E8FEB86659FD93u;
    bits ^= bits >> 32;
    bits *= 0xD6E8FEB86659FD93u;
    bits ^= bits >> 32;
    return (PetscReal)(2 * ((double)(bits >> 11) / 9007199254740992.0) - 1);
}

static inline PetscScalar Value(PetscInt a, PetscInt b) {
#if defined(PETSC_USE_COMPLEX)
    return PetscCMPLX(Uniform(a, b), Uniform(b + 7, a));
#else
    return Uniform(a, b);
#endif
}

/* A rows x cols matrix of a type. Row i has (5 i) mod 8 entries, so that every eighth is empty, and
 * one long row. Other seeds are other patterns and values. */
static inline PetscErrorCode RandomMatrix(MatType type, PetscInt rows, PetscInt cols, PetscInt seed,
                                          Mat *A) {
    PetscInt first, last;

    PetscFunctionBeginUser;
    PetscCall(MatCreate(PETSC_COMM_WORLD, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, rows, cols));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatSeqAIJSetPreallocation(*A, 60, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 60, NULL, 60, NULL));
    PetscCall(MatGetOwnershipRange(*A, &first, &last));
    for (PetscInt i = first; cols && i < last; i++) {
        const PetscInt entries = i == rows / 2 ? 50 : (5 * i) % 8;

        for (PetscInt k = 0; k < entries; k++) {
            const PetscInt j =
                PetscMin(cols - 1, (PetscInt)((Uniform(i + seed, k) + 1) / 2 * (PetscReal)cols));

            PetscCall(MatSetValue(*A, i, j, Value(i + 3 * seed, k), INSERT_VALUES));
        }
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode FillVector(Vec x, PetscInt seed) {
    PetscInt first, last;
    PetscScalar *values;

    PetscFunctionBeginUser;
    PetscCall(VecGetOwnershipRange(x, &first, &last));
    PetscCall(VecGetArrayWrite(x, &values));
    for (PetscInt i = first; i < last; i++)
        values[i - first] = Value(i, seed);
    PetscCall(VecRestoreArrayWrite(x, &values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static inline PetscErrorCode SameVectors(Vec x, Vec y, const char *what) {
    PetscReal norm, difference;
    Vec d;

    PetscFunctionBeginUser;
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCall(VecDuplicate(x, &d));
    PetscCall(VecWAXPY(d, -1, x, y));
    PetscCall(VecNorm(d, NORM_2, &difference));
    PetscCall(VecDestroy(&d));
    PetscCheck(difference <= TOLERANCE * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
               "test %d: %s: vectors of norm %g differ by %g", tests_run, what, (double)norm,
               (double)difference);
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares all products with vectors of two matrices. */
static inline PetscErrorCode SameProducts(Mat A, Mat B, const char *what) {
    Vec x, xt, y, yt, z, zt, expected, expected_t;

    PetscFunctionBeginUser;
    PetscCall(MatCreateVecs(A, &x, &xt));
    PetscCall(MatCreateVecs(A, &yt, &y));
    PetscCall(MatCreateVecs(A, &zt, &z));
    PetscCall(MatCreateVecs(A, &expected_t, &expected));
    PetscCall(FillVector(x, 1));
    PetscCall(FillVector(xt, 2));
    PetscCall(FillVector(y, 3));
    PetscCall(FillVector(yt, 4));
    /* What z holds is never read. */
    PetscCall(VecSet(z, PETSC_INFINITY));
    PetscCall(VecSet(zt, PETSC_INFINITY));

    PetscCall(MatMult(A, x, expected));
    PetscCall(MatMult(B, x, z));
    PetscCall(SameVectors(expected, z, what));
    PetscCall(MatMultTranspose(A, xt, expected_t));
    PetscCall(MatMultTranspose(B, xt, zt));
    PetscCall(SameVectors(expected_t, zt, what));
    PetscCall(MatMultHermitianTranspose(A, xt, expected_t));
    PetscCall(MatMultHermitianTranspose(B, xt, zt));
    PetscCall(SameVectors(expected_t, zt, what));
    PetscCall(MatMultAdd(A, x, y, expected));
    PetscCall(MatMultAdd(B, x, y, z));
    PetscCall(SameVectors(expected, z, what));
    PetscCall(MatMultTransposeAdd(A, xt, yt, expected_t));
    PetscCall(MatMultTransposeAdd(B, xt, yt, zt));
    PetscCall(SameVectors(expected_t, zt, what));
    /* In place. */
    PetscCall(VecCopy(y, z));
    PetscCall(MatMultAdd(B, x, z, z));
    PetscCall(SameVectors(expected, z, what));
    PetscCall(VecCopy(yt, zt));
    PetscCall(MatMultTransposeAdd(B, xt, zt, zt));
    PetscCall(SameVectors(expected_t, zt, what));

    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&xt));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&yt));
    PetscCall(VecDestroy(&z));
    PetscCall(VecDestroy(&zt));
    PetscCall(VecDestroy(&expected));
    PetscCall(VecDestroy(&expected_t));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Compares the entries of two sparse or two dense matrices. */
static inline PetscErrorCode SameMatrices(Mat A, Mat B, const char *what) {
    PetscReal norm, difference;
    PetscBool dense;
    MatInfo expected, found;
    Mat D;

    PetscFunctionBeginUser;
    PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &dense, MATSEQDENSE, MATMPIDENSE, ""));
    PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
    PetscCall(MatConvert(B, dense ? MATSAME : MATAIJ, MAT_INITIAL_MATRIX, &D));
    if (!dense) {
        PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &expected));
        PetscCall(MatGetInfo(D, MAT_GLOBAL_SUM, &found));
        PetscCheck(expected.nz_used == found.nz_used, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
                   "test %d: %s: %g entries, expected %g", tests_run, what, found.nz_used,
                   expected.nz_used);
    }
    PetscCall(MatAXPY(D, -1, A, dense ? SAME_NONZERO_PATTERN : DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatNorm(D, NORM_FROBENIUS, &difference));
    PetscCall(MatDestroy(&D));
    PetscCheck(difference <= TOLERANCE * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB,
               "test %d: %s: matrices of norm %g differ by %g", tests_run, what, (double)norm,
               (double)difference);
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* How often this rank has begun an event of -log_view. */
static inline PetscErrorCode EventCount(const char *name, int *count) {
    PetscEventPerfInfo info;
    PetscLogEvent event;

    PetscFunctionBeginUser;
    PetscCall(PetscLogEventGetId(name, &event));
    PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
    *count = (int)info.count;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last line of a program, which .ci/petsc adds up. */
static inline PetscErrorCode Report(void) {
    PetscMPIInt ranks;

    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d tests passed on %d ranks\n", tests_run, ranks));
    PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
