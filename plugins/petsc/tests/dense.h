// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products with dense matrices, for operations.c. */

#ifndef PETSCTARSIA_DENSE_H
#define PETSCTARSIA_DENSE_H

#include "check.h"

static PetscErrorCode MakeDense(Mat A, PetscBool left, PetscInt columns, PetscInt seed, Mat *B) {
    PetscInt local, global, first, last;

    PetscFunctionBeginUser;
    if (left)
        PetscCall(MatGetLocalSize(A, &local, NULL));
    else
        PetscCall(MatGetLocalSize(A, NULL, &local));
    if (left)
        PetscCall(MatGetSize(A, &global, NULL));
    else
        PetscCall(MatGetSize(A, NULL, &global));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, local, PETSC_DECIDE, global, columns, NULL, B));
    PetscCall(MatGetOwnershipRange(*B, &first, &last));
    for (PetscInt i = first; i < last; i++)
        for (PetscInt j = 0; j < columns; j++)
            PetscCall(MatSetValue(*B, i, j, Value(i + seed, j), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products with dense matrices, which are on a device, too, where `dense_on_device`. */
static PetscErrorCode TestDense(PetscInt n, PetscBool dense_on_device) {
    const PetscInt columns[] = {1, 7, 3, 20};
    Pair pair;
    Mat B[2], Bt[2], C[2], Ct[2];

    PetscFunctionBeginUser;
    (void)dense_on_device;
    PetscCall(MakePair(n, n / 2, 11, &pair));
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(columns); i++) {
        for (int j = 0; j < 2; j++) {
            PetscCall(MakeDense(pair.plain, PETSC_FALSE, columns[i], 1, &B[j]));
            PetscCall(MakeDense(pair.plain, PETSC_TRUE, columns[i], 2, &Bt[j]));
        }
#if defined(PETSC_HAVE_CUDA)
        if (dense_on_device) {
            PetscCall(MatConvert(B[1], MATDENSECUDA, MAT_INPLACE_MATRIX, &B[1]));
            PetscCall(MatConvert(Bt[1], MATDENSECUDA, MAT_INPLACE_MATRIX, &Bt[1]));
        }
#endif
        Test("MatMatMult with a dense matrix");
        PetscCall(MatMatMult(pair.plain, B[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
        PetscCall(MatMatMult(pair.tarsia, B[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
        PetscCall(SameMatrices(C[0], C[1], "A B"));
        Test("MatTransposeMatMult with a dense matrix");
        PetscCall(
            MatTransposeMatMult(pair.plain, Bt[0], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Ct[0]));
        PetscCall(
            MatTransposeMatMult(pair.tarsia, Bt[1], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Ct[1]));
        PetscCall(SameMatrices(Ct[0], Ct[1], "A^T B"));
        Test("both again with new values");
        PetscCall(MatScale(pair.plain, -1.5));
        PetscCall(MatScale(pair.tarsia, -1.5));
        for (int j = 0; j < 2; j++) {
            Mat A = j ? pair.tarsia : pair.plain;

            PetscCall(MatScale(B[j], 2));
            PetscCall(MatMatMult(A, B[j], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[j]));
            PetscCall(MatTransposeMatMult(A, Bt[j], MAT_REUSE_MATRIX, PETSC_DEFAULT, &Ct[j]));
        }
        PetscCall(SameMatrices(C[0], C[1], "A B again"));
        PetscCall(SameMatrices(Ct[0], Ct[1], "A^T B again"));
        for (int j = 0; j < 2; j++) {
            PetscCall(MatDestroy(&C[j]));
            PetscCall(MatDestroy(&Ct[j]));
            PetscCall(MatDestroy(&B[j]));
            PetscCall(MatDestroy(&Bt[j]));
        }
    }
    PetscCall(DestroyPair(&pair));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Dense factors on the left, the second of which is on a device, too, where `dense_on_device`. */
static PetscErrorCode TestDenseLeft(PetscInt n, PetscBool dense_on_device) {
    const PetscInt columns[] = {1, 7, 40};
    Pair P;
    PetscMPIInt ranks;

    PetscFunctionBeginUser;
    (void)dense_on_device;
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(MakePair(n, n / 2, 21, &P));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
        Mat D[2], C[2];

        for (int i = 0; i < 2; i++) {
            Mat transposed;

            PetscCall(MakeDense(P.plain, PETSC_TRUE, columns[k], 3, &transposed));
            PetscCall(MatTranspose(transposed, MAT_INITIAL_MATRIX, &D[i]));
            PetscCall(MatDestroy(&transposed));
        }
#if defined(PETSC_HAVE_CUDA)
        if (dense_on_device)
            PetscCall(MatConvert(D[1], MATDENSECUDA, MAT_INPLACE_MATRIX, &D[1]));
#endif
        Test("a dense matrix times a sparse one");
        for (int i = 0; i < 2; i++)
            PetscCall(
                MatMatMult(D[i], i ? P.tarsia : P.plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[i]));
        PetscCall(SameMatrices(C[0], C[1], "D P"));
        Test("again with new values");
        for (int i = 0; i < 2; i++) {
            Mat sparse = i ? P.tarsia : P.plain;

            PetscCall(MatScale(sparse, -1.5));
            PetscCall(MatScale(D[i], 2));
            PetscCall(MatMatMult(D[i], sparse, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[i]));
        }
        PetscCall(SameMatrices(C[0], C[1], "D P with new values"));
        for (int i = 0; i < 2; i++) {
            PetscCall(MatDestroy(&C[i]));
            PetscCall(MatDestroy(&D[i]));
        }
    }
    PetscCall(DestroyPair(&P));
    PetscCall(MakePair(n, n, 22, &P));
    for (int left = 0; left < 2 && ranks == 1; left++) {
        Mat D, E, C[2];

        PetscCall(MakeDense(P.plain, PETSC_TRUE, n, 5, &D));
        PetscCall(MakeDense(P.plain, PETSC_TRUE, left ? n : 3, 6, &E));
        Test("a product of dense matrices where one with a sparse matrix was");
        PetscCall(MatMatMult(D, E, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
        PetscCall(MatMatMult(left ? D : P.tarsia, left ? P.tarsia : E, MAT_INITIAL_MATRIX,
                             PETSC_DEFAULT, &C[1]));
        PetscCall(MatProductClear(C[1]));
        PetscCall(MatProductCreateWithMat(D, E, NULL, C[1]));
        PetscCall(MatProductSetType(C[1], MATPRODUCT_AB));
        PetscCall(MatProductSetFromOptions(C[1]));
        PetscCall(MatProductSymbolic(C[1]));
        PetscCall(MatProductNumeric(C[1]));
        PetscCall(SameMatrices(C[0], C[1], "D E"));
        for (int i = 0; i < 2; i++)
            PetscCall(MatDestroy(&C[i]));
        PetscCall(MatDestroy(&D));
        PetscCall(MatDestroy(&E));
    }
    PetscCall(DestroyPair(&P));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of three matrices of which one is dense. */
static PetscErrorCode TestDenseChains(PetscInt n) {
    Pair A, P;
    Mat D, B, C[2];
    PetscMPIInt ranks;

    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(MakePair(n, n, 19, &A));
    PetscCall(MakePair(n, n / 2, 20, &P));
    PetscCall(MakeDense(A.plain, PETSC_TRUE, n, 3, &D));
    PetscCall(MakeDense(P.plain, PETSC_FALSE, 9, 4, &B));
    if (ranks == 1) {
        Test("A P times a dense matrix");
        for (int i = 0; i < 2; i++) {
            PetscCall(MatMatMatMult(i ? A.tarsia : A.plain, i ? P.tarsia : P.plain, B,
                                    MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[i]));
            PetscCall(MatScale(B, 1.5));
            PetscCall(MatMatMatMult(i ? A.tarsia : A.plain, i ? P.tarsia : P.plain, B,
                                    MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[i]));
            PetscCall(MatScale(B, 1 / 1.5));
        }
        PetscCall(SameMatrices(C[0], C[1], "A P B"));
        for (int i = 0; i < 2; i++)
            PetscCall(MatDestroy(&C[i]));
        Test("P^T D P with a dense D");
        for (int i = 0; i < 2; i++)
            PetscCall(MatPtAP(D, i ? P.tarsia : P.plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[i]));
        PetscCall(SameMatrices(C[0], C[1], "P^T D P"));
        for (int i = 0; i < 2; i++)
            PetscCall(MatDestroy(&C[i]));
    }
    PetscCall(MatDestroy(&D));
    PetscCall(MatDestroy(&B));
    PetscCall(DestroyPair(&A));
    PetscCall(DestroyPair(&P));
    PetscFunctionReturn(PETSC_SUCCESS);
}

#endif
