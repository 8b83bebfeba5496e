// SPDX-License-Identifier: MIT OR Apache-2.0
/* The Poisson equation on a cube (7-point stencil), solved by conjugate gradients.
 *
 *   mpirun -n 2 ./poisson -n 64 -mat_type aijtarsia -pc_type gamg
 *
 * -n is the number of points in each direction (32). Nothing in the program but MatTarsiaRegister
 * names Tarsia: -mat_type chooses the matrix type, and a program without that call has the type by
 * -dll_append with the path of libpetsctarsia.so. -mat_tarsia_view prints what was chosen,
 * -log_view the times.
 *
 * The program checks the residual b - A x that the solve has left. */

#include <petscksp.h>

#include <petsctarsia.h>

/* Adds the row of a point: 6 for itself, -1 for each neighbour inside the cube. */
static PetscErrorCode AddRow(Mat A, PetscInt row, PetscInt n) {
    const PetscInt place[3] = {row % n, row / n % n, row / (n * n)}, step[3] = {1, n, n * n};
    PetscInt columns[7] = {row}, count = 1;
    PetscScalar values[7] = {6};

    PetscFunctionBeginUser;
    for (int axis = 0; axis < 3; axis++) {
        if (place[axis] > 0) {
            columns[count] = row - step[axis];
            values[count++] = -1;
        }
        if (place[axis] < n - 1) {
            columns[count] = row + step[axis];
            values[count++] = -1;
        }
    }
    PetscCall(MatSetValues(A, 1, &row, count, columns, values, INSERT_VALUES));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
    PetscInt n = 32, first, last, iterations;
    PetscReal norm, residual;
    KSPConvergedReason reason;
    MatType type;
    Mat A;
    Vec x, b, r;
    KSP ksp;

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Solves the Poisson equation on a cube."));
    PetscCall(MatTarsiaRegister());
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));

    PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n * n * n, n * n * n));
    PetscCall(MatSetType(A, MATAIJTARSIA));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSeqAIJSetPreallocation(A, 7, NULL));
    PetscCall(MatMPIAIJSetPreallocation(A, 7, NULL, 6, NULL));
    PetscCall(MatGetOwnershipRange(A, &first, &last));
    for (PetscInt row = first; row < last; row++)
        PetscCall(AddRow(A, row, n));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));

    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecDuplicate(b, &r));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));

    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1, b));
    PetscCall(VecNorm(r, NORM_2, &residual));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                          "%s: %" PetscInt_FMT " unknowns, %" PetscInt_FMT
                          " iterations, residual %.3g\n",
                          type, n * n * n, iterations, (double)(residual / norm)));
    PetscCheck(reason > 0 && residual <= 1e-5 * norm, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED,
               "the solve failed: %s", KSPConvergedReasons[reason]);

    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&r));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
}
