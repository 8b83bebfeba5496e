// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whole solves with aijtarsia and aij: the same iterations, residuals and solutions. */

#include <petscdmda.h>
#include <petscsnes.h>

#include "check.h"

/* Types of functions, and no longer of their addresses. */
#if PETSC_VERSION_GE(3, 25, 0)
#define DMDASNESFunction DMDASNESFunctionFn *
#define DMDASNESJacobian DMDASNESJacobianFn *
#endif

enum { HISTORY = 1000 };

typedef struct {
    PetscInt iterations;
    PetscReal residuals[HISTORY], norm;
} Outcome;

/* Rounding grows along an iteration; residuals are compared in units of the first. */
static PetscErrorCode SameOutcome(const Outcome *plain, const Outcome *tarsia, const char *what) {
    const PetscReal tolerance = PETSC_SQRT_MACHINE_EPSILON;

    PetscFunctionBeginUser;
    PetscCheck(plain->iterations == tarsia->iterations && plain->iterations > 1, PETSC_COMM_WORLD,
               PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, expected %" PetscInt_FMT, what,
               tarsia->iterations, plain->iterations);
    for (PetscInt i = 0; i <= plain->iterations && i < HISTORY; i++)
        PetscCheck(PetscAbsReal(plain->residuals[i] - tarsia->residuals[i]) <=
                       tolerance * plain->residuals[0],
                   PETSC_COMM_WORLD, PETSC_ERR_PLIB,
                   "%s: residual %" PetscInt_FMT " is %.17g, expected %.17g", what, i,
                   (double)tarsia->residuals[i], (double)plain->residuals[i]);
    PetscCheck(PetscAbsReal(plain->norm - tarsia->norm) <= tolerance * plain->norm,
               PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the solution's norm is %.17g, expected %.17g",
               what, (double)tarsia->norm, (double)plain->norm);
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "  %s: %" PetscInt_FMT " iterations, norm %.10g\n",
                          what, plain->iterations, (double)plain->norm));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The 5-point Laplacian of an n x n grid, with a diffusion coefficient that differs from cell to
 * cell. */
static PetscErrorCode Laplacian(MatType type, PetscInt n, Mat *A) {
    PetscInt first, last;

    PetscFunctionBeginUser;
    PetscCall(MatCreate(PETSC_COMM_WORLD, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 5, NULL));
    PetscCall(MatGetOwnershipRange(*A, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        const PetscInt i = row / n, j = row % n;
        const PetscInt neighbours[4] = {i ? row - n : -1, j ? row - 1 : -1,
                                        j < n - 1 ? row + 1 : -1, i < n - 1 ? row + n : -1};
        PetscScalar diagonal = 0.01;

        for (int k = 0; k < 4; k++) {
            const PetscInt low = PetscMin(row, neighbours[k]), high = PetscMax(row, neighbours[k]);
            const PetscReal coefficient = 1.5 + 0.5 * Uniform(low, high - low);

            diagonal += coefficient;
            if (neighbours[k] >= 0)
                PetscCall(MatSetValue(*A, row, neighbours[k], -coefficient, INSERT_VALUES));
        }
        PetscCall(MatSetValue(*A, row, row, diagonal, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, PetscInt seed, Outcome *outcome) {
    Mat A;
    Vec x, b;
    KSPConvergedReason reason;

    PetscFunctionBeginUser;
    PetscCall(KSPGetOperators(ksp, &A, NULL));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(FillVector(b, seed));
    PetscCall(KSPSetResidualHistory(ksp, outcome->residuals, HISTORY, PETSC_TRUE));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the solve failed: %s",
               KSPConvergedReasons[reason]);
    PetscCall(KSPGetIterationNumber(ksp, &outcome->iterations));
    PetscCall(VecNorm(x, NORM_2, &outcome->norm));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks that all levels of a multigrid preconditioner multiply by Tarsia. */
static PetscErrorCode CheckLevels(KSP ksp) {
    PC pc;
    PetscInt levels;

    PetscFunctionBeginUser;
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCMGGetLevels(pc, &levels));
    Check(levels > 1, "multigrid has one level");
    for (PetscInt level = 0; level < levels; level++) {
        KSP smoother;
        Mat A;
        MatType type;
        PetscBool is;

        PetscCall(PCMGGetSmoother(pc, level, &smoother));
        PetscCall(KSPGetOperators(smoother, &A, NULL));
        PetscCall(
            PetscObjectTypeCompareAny((PetscObject)A, &is, MATSEQAIJTARSIA, MATMPIAIJTARSIA, ""));
        PetscCall(MatGetType(A, &type));
        PetscCheck(is, PETSC_COMM_SELF, PETSC_ERR_PLIB, "level %" PetscInt_FMT " has type %s",
                   level, type);
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* A Krylov method with a preconditioner, twice: the second time with other values in the same
 * pattern, for which multigrid keeps its interpolation (PtAP with MAT_REUSE_MATRIX). */
static PetscErrorCode TestKSP(const char *method, const char *preconditioner, PetscInt n) {
    Outcome first[2], second[2];
    char what[64];

    PetscFunctionBeginUser;
    PetscCall(PetscSNPrintf(what, sizeof what, "%s with %s", method, preconditioner));
    for (int i = 0; i < 2; i++) {
        Mat A;
        KSP ksp;
        PC pc;
        Vec scale;
        PetscBool gamg;

        PetscCall(Laplacian(i ? MATAIJTARSIA : MATAIJ, n, &A));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
        PetscCall(KSPSetOperators(ksp, A, A));
        PetscCall(KSPSetType(ksp, method));
        PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
        PetscCall(KSPGetPC(ksp, &pc));
        PetscCall(PCSetType(pc, preconditioner));
        PetscCall(PetscStrcmp(preconditioner, PCGAMG, &gamg));
        if (gamg) {
            PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
            PetscCall(PCGAMGSetCoarseEqLim(pc, 20));
        }
        PetscCall(KSPSetFromOptions(ksp));
        PetscCall(Solve(ksp, 1, &first[i]));
        if (gamg && i)
            PetscCall(CheckLevels(ksp));
        PetscCall(MatCreateVecs(A, &scale, NULL));
        PetscCall(FillVector(scale, 5));
        PetscCall(VecRealPart(scale));
        PetscCall(VecShift(scale, 3));
        PetscCall(MatDiagonalScale(A, scale, scale));
        PetscCall(VecDestroy(&scale));
        PetscCall(KSPSetOperators(ksp, A, A));
        PetscCall(Solve(ksp, 2, &second[i]));
        PetscCall(KSPDestroy(&ksp));
        PetscCall(MatDestroy(&A));
    }
    Test("a Krylov method");
    PetscCall(SameOutcome(&first[0], &first[1], what));
    Test("a Krylov method with new values");
    PetscCall(SameOutcome(&second[0], &second[1], what));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- The Poisson problem in 3-D on a grid of PETSc's, with geometric multigrid ------------------
 */

static PetscErrorCode PoissonMatrix(KSP ksp, Mat J, Mat A, void *context) {
    DM da;
    PetscInt nx, ny, nz, xs, ys, zs, xm, ym, zm;

    PetscFunctionBeginUser;
    (void)J, (void)context;
    PetscCall(KSPGetDM(ksp, &da));
    PetscCall(
        DMDAGetInfo(da, NULL, &nx, &ny, &nz, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    PetscCall(DMDAGetCorners(da, &xs, &ys, &zs, &xm, &ym, &zm));
    for (PetscInt k = zs; k < zs + zm; k++)
        for (PetscInt j = ys; j < ys + ym; j++)
            for (PetscInt i = xs; i < xs + xm; i++) {
                MatStencil row = {k, j, i, 0}, columns[7];
                PetscScalar values[7];
                PetscInt count = 0;
                const PetscReal h[3] = {1.0 / (nx - 1), 1.0 / (ny - 1), 1.0 / (nz - 1)};
                const PetscReal weights[3] = {h[1] * h[2] / h[0], h[0] * h[2] / h[1],
                                              h[0] * h[1] / h[2]};
                const PetscBool boundary =
                    (PetscBool)(!i || !j || !k || i == nx - 1 || j == ny - 1 || k == nz - 1);

                if (!boundary)
                    for (int axis = 0; axis < 3; axis++)
                        for (PetscInt step = -1; step <= 1; step += 2) {
                            columns[count] = row;
                            columns[count].i += axis == 0 ? step : 0;
                            columns[count].j += axis == 1 ? step : 0;
                            columns[count].k += axis == 2 ? step : 0;
                            values[count++] = -weights[axis];
                        }
                columns[count] = row;
                values[count++] = 2 * (weights[0] + weights[1] + weights[2]);
                PetscCall(MatSetValuesStencil(A, 1, &row, count, columns, values, INSERT_VALUES));
            }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PoissonRightHandSide(KSP ksp, Vec b, void *context) {
    PetscFunctionBeginUser;
    (void)ksp, (void)context;
    PetscCall(FillVector(b, 3));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestPoisson3d(PetscInt n) {
    Outcome outcomes[2];

    PetscFunctionBeginUser;
    Test("geometric multigrid in 3-D");
    for (int i = 0; i < 2; i++) {
        KSP ksp;
        PC pc;
        DM da;
        Vec x;
        KSPConvergedReason reason;

        PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                               DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, n, n, n, PETSC_DECIDE,
                               PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &da));
        PetscCall(DMSetMatType(da, i ? MATAIJTARSIA : MATAIJ));
        PetscCall(DMSetUp(da));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
        PetscCall(KSPSetDM(ksp, da));
        PetscCall(KSPSetComputeOperators(ksp, PoissonMatrix, NULL));
        PetscCall(KSPSetComputeRHS(ksp, PoissonRightHandSide, NULL));
        PetscCall(KSPSetType(ksp, KSPFGMRES));
        PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
        PetscCall(KSPGetPC(ksp, &pc));
        PetscCall(PCSetType(pc, PCMG));
        PetscCall(PCMGSetLevels(pc, 2, NULL));
        PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_PMAT));
        PetscCall(KSPSetResidualHistory(ksp, outcomes[i].residuals, HISTORY, PETSC_TRUE));
        PetscCall(KSPSetFromOptions(ksp));
        PetscCall(KSPSolve(ksp, NULL, NULL));
        PetscCall(KSPGetConvergedReason(ksp, &reason));
        Check(reason > 0, "the solve failed");
        PetscCall(KSPGetIterationNumber(ksp, &outcomes[i].iterations));
        PetscCall(KSPGetSolution(ksp, &x));
        PetscCall(VecNorm(x, NORM_2, &outcomes[i].norm));
        PetscCall(KSPDestroy(&ksp));
        PetscCall(DMDestroy(&da));
    }
    PetscCall(SameOutcome(&outcomes[0], &outcomes[1], "Poisson in 3-D, geometric multigrid"));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- A nonlinear problem (Bratu): the Jacobian's values change in every step
 * --------------------- */

static const PetscReal lambda = 6;

static PetscErrorCode BratuFunction(DMDALocalInfo *info, PetscScalar **u, PetscScalar **f,
                                    void *context) {
    const PetscReal hx = 1.0 / (info->mx - 1), hy = 1.0 / (info->my - 1);

    PetscFunctionBeginUser;
    (void)context;
    for (PetscInt j = info->ys; j < info->ys + info->ym; j++)
        for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
            if (!i || !j || i == info->mx - 1 || j == info->my - 1)
                f[j][i] = 2 * (hy / hx + hx / hy) * u[j][i];
            else
                f[j][i] = hy / hx * (2.0 * u[j][i] - u[j][i - 1] - u[j][i + 1]) +
                          hx / hy * (2.0 * u[j][i] - u[j - 1][i] - u[j + 1][i]) -
                          lambda * hx * hy * PetscExpScalar(u[j][i]);
        }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BratuJacobian(DMDALocalInfo *info, PetscScalar **u, Mat J, Mat A,
                                    void *context) {
    const PetscReal hx = 1.0 / (info->mx - 1), hy = 1.0 / (info->my - 1);

    PetscFunctionBeginUser;
    (void)J, (void)context;
    for (PetscInt j = info->ys; j < info->ys + info->ym; j++)
        for (PetscInt i = info->xs; i < info->xs + info->xm; i++) {
            const MatStencil row = {0, j, i, 0};
            MatStencil columns[5] = {row, row, row, row, row};
            PetscScalar values[5] = {2 * (hy / hx + hx / hy), -hy / hx, -hy / hx, -hx / hy,
                                     -hx / hy};
            PetscInt count = 1;

            if (i && j && i < info->mx - 1 && j < info->my - 1) {
                values[0] -= lambda * hx * hy * PetscExpScalar(u[j][i]);
                columns[1].i--, columns[2].i++, columns[3].j--, columns[4].j++;
                count = 5;
            }
            PetscCall(MatSetValuesStencil(A, 1, &row, count, columns, values, INSERT_VALUES));
        }
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNonlinear(const char *preconditioner, PetscInt n) {
    Outcome outcomes[2];
    PetscInt linear[2];

    PetscFunctionBeginUser;
    Test("a nonlinear solve");
    for (int i = 0; i < 2; i++) {
        SNES snes;
        KSP ksp;
        PC pc;
        DM da;
        Vec x;
        SNESConvergedReason reason;

        PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
                               DMDA_STENCIL_STAR, n, n, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL,
                               NULL, &da));
        PetscCall(DMSetMatType(da, i ? MATAIJTARSIA : MATAIJ));
        PetscCall(DMSetUp(da));
        PetscCall(
            DMDASNESSetFunctionLocal(da, INSERT_VALUES, (DMDASNESFunction)BratuFunction, NULL));
        PetscCall(DMDASNESSetJacobianLocal(da, (DMDASNESJacobian)BratuJacobian, NULL));
        PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
        PetscCall(SNESSetDM(snes, da));
        PetscCall(SNESSetTolerances(snes, PETSC_DEFAULT, 1e-10, PETSC_DEFAULT, 20, PETSC_DEFAULT));
        PetscCall(SNESGetKSP(snes, &ksp));
        PetscCall(KSPSetType(ksp, KSPGMRES));
        PetscCall(KSPGetPC(ksp, &pc));
        PetscCall(PCSetType(pc, preconditioner));
        PetscCall(
            SNESSetConvergenceHistory(snes, outcomes[i].residuals, NULL, HISTORY, PETSC_TRUE));
        PetscCall(SNESSetFromOptions(snes));
        PetscCall(DMCreateGlobalVector(da, &x));
        PetscCall(VecSet(x, 0));
        PetscCall(SNESSolve(snes, NULL, x));
        PetscCall(SNESGetConvergedReason(snes, &reason));
        Check(reason > 0, "the nonlinear solve failed");
        PetscCall(SNESGetIterationNumber(snes, &outcomes[i].iterations));
        PetscCall(SNESGetLinearSolveIterations(snes, &linear[i]));
        PetscCall(VecNorm(x, NORM_2, &outcomes[i].norm));
        PetscCall(VecDestroy(&x));
        PetscCall(SNESDestroy(&snes));
        PetscCall(DMDestroy(&da));
    }
    Check(linear[0] == linear[1], "the numbers of linear iterations differ");
    PetscCall(SameOutcome(&outcomes[0], &outcomes[1], preconditioner));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    PetscInt n = 40, m = 17;

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Compares solves with aijtarsia and aij."));
    PetscCall(MatTarsiaRegister());
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
    PetscCall(TestKSP(KSPCG, PCJACOBI, n));
    PetscCall(TestKSP(KSPGMRES, PCBJACOBI, n));
    PetscCall(TestKSP(KSPGMRES, PCSOR, n));
    PetscCall(TestKSP(KSPBICG, PCJACOBI, n));
    PetscCall(TestKSP(KSPCG, PCGAMG, n));
    PetscCall(TestPoisson3d(m));
    PetscCall(TestNonlinear(PCBJACOBI, n));
    PetscCall(TestNonlinear(PCGAMG, n));
    PetscCall(Report());
    PetscCall(PetscFinalize());
    return 0;
}
