// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program that knows nothing of Tarsia: it solves a 2-D Laplacian and prints iterations and norm.
 * .ci/petsc runs it with -mat_type aij, and with -dll_append and -mat_type aijtarsia. */

#include <petscksp.h>

int main(int argc, char **argv) {
    PetscInt n = 30, first, last, iterations;
    PetscReal norm;
    Mat A;
    Vec x, b;
    KSP ksp;
    MatType type;

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Solves a Laplacian."));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    PetscCall(MatGetOwnershipRange(A, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        if (row >= n)
            PetscCall(MatSetValue(A, row, row - n, -1, INSERT_VALUES));
        if (row % n)
            PetscCall(MatSetValue(A, row, row - 1, -1, INSERT_VALUES));
        if (row % n < n - 1)
            PetscCall(MatSetValue(A, row, row + 1, -1, INSERT_VALUES));
        if (row < n * n - n)
            PetscCall(MatSetValue(A, row, row + n, -1, INSERT_VALUES));
        PetscCall(MatSetValue(A, row, row, 4, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n%" PetscInt_FMT " iterations, norm %.8g\n", type,
                          iterations, (double)norm));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
}
