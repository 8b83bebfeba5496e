// SPDX-License-Identifier: MIT OR Apache-2.0
/* Times several matrix types in turns, in one process: products with a vector, whole solves, and
 * P^T A P with MAT_REUSE_MATRIX. Prints a table with tabs between its columns; what took how long
 * before that goes to standard error.
 *
 *   -types A,B,…    the types; the first is the one that the others are compared with
 *                   (aij,aijtarsia)
 *   -problem NAME   poisson (7 points, coefficients that differ from edge to edge) or elasticity
 *                   (three displacements a node, trilinear cubes, clamped at the bottom)
 *   -n N            nodes of the grid in each direction (96)
 *   -weak           N x N x N nodes on each rank, stacked upwards
 *   -parts A,B,…    of mult, jacobi, gamg, ptap (all); jacobi and gamg are conjugate gradients with
 *                   that preconditioner, and take options with the prefix jacobi_ or gamg_
 *   -turns N        how often each is timed (9)
 *   -header         prints the names of the columns first
 *
 * Matrices and vectors are on the device before a clock starts, where the type has them there, and
 * a clock stops when the device is done. What a type derives from a new matrix (transposed or other
 * copies, analysis) is timed where it happens: in a solve. */

#include <stdlib.h>
#include <string.h>

#include <petscdevice.h>
#include <petsctime.h>

#include "check.h"

enum { MOST_TYPES = 4 };

typedef struct {
    const char *name;
    PetscBool elastic;
    PetscInt dofs, n[3];
} Problem;

typedef struct {
    int count;
    char *names[MOST_TYPES];
    Mat A[MOST_TYPES];
    PetscInt turns;
    double *seconds[MOST_TYPES];
    PetscInt iterations[MOST_TYPES];
} Types;

/* ---- Clocks and the table -------------------------------------------------------------------- */

/* What was given to the device, if there is one, is done. */
static PetscErrorCode Synchronize(void) {
    PetscFunctionBeginUser;
#if defined(PETSC_HAVE_CUDA)
    if (PetscDeviceInitialized(PETSC_DEVICE_CUDA)) {
        PetscDeviceContext context;

        PetscCall(PetscDeviceContextGetCurrentContext(&context));
        PetscCall(PetscDeviceContextSynchronize(context));
    }
#endif
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Start(PetscLogDouble *start) {
    PetscFunctionBeginUser;
    PetscCall(Synchronize());
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(start));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps the time since start, divided by the number of repetitions. */
static PetscErrorCode Stop(PetscLogDouble start, int repetitions, double *seconds) {
    PetscLogDouble end;

    PetscFunctionBeginUser;
    PetscCall(Synchronize());
    PetscCall(PetscTime(&end));
    *seconds = (end - start) / repetitions;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static int Ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Lines of the table, one for each type: median and least time of the slowest rank. */
static PetscErrorCode Lines(const Problem *problem, const char *what, PetscInt turns,
                            Types *types) {
    double first = 0;
    PetscMPIInt ranks;

    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    for (int i = 0; i < types->count; i++) {
        double *seconds = types->seconds[i], median;

        PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, seconds, (PetscMPIInt)turns, MPI_DOUBLE, MPI_MAX,
                                   PETSC_COMM_WORLD));
        qsort(seconds, (size_t)turns, sizeof(double), Ascending);
        median = (seconds[(turns - 1) / 2] + seconds[turns / 2]) / 2;
        first = i ? first : median;
        PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                              "%s\t%dx%dx%d\t%d\t%s\t%s\t%.4f\t%.4f\t%d\t%.3f\t%d\n", problem->name,
                              (int)problem->n[0], (int)problem->n[1], (int)problem->n[2], ranks,
                              what, types->names[i], 1e3 * median, 1e3 * seconds[0], (int)turns,
                              first / median, (int)types->iterations[i]));
        types->iterations[i] = 0;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Says on standard error how far the program is, and how long it has run. */
static PetscErrorCode Progress(const char *what, const char *type) {
    static PetscLogDouble begin = 0;
    PetscLogDouble now;

    PetscFunctionBeginUser;
    PetscCall(PetscTime(&now));
    if (!begin)
        begin = now;
    PetscCall(
        PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "%6.1f s  %s %s\n", now - begin, what, type));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fails where two numbers that every type must agree on are further apart than bound. */
static PetscErrorCode Agree(const char *what, const char *type, PetscReal expected, PetscReal found,
                            PetscReal bound) {
    PetscFunctionBeginUser;
    PetscCheck(PetscAbsReal(found - expected) <= bound * PetscAbsReal(expected), PETSC_COMM_WORLD,
               PETSC_ERR_PLIB, "%s: %s has norm %.15g, the first type %.15g", what, type,
               (double)found, (double)expected);
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- Matrices -------------------------------------------------------------------------------- */

/* Stiffness of a trilinear cube with sides 1, modulus 1 and Poisson's ratio 0.3: 8 nodes, 3
 * displacements each. Corner c is at (c & 1, c >> 1 & 1, c >> 2). */
static void CubeStiffness(double stiffness[24][24]) {
    const double nu = 0.3, lambda = nu / ((1 + nu) * (1 - 2 * nu)), mu = 0.5 / (1 + nu);
    const double points[2] = {0.5 - 0.5 / 1.7320508075688772, 0.5 + 0.5 / 1.7320508075688772};

    memset(stiffness, 0, 24 * 24 * sizeof(double));
    for (int point = 0; point < 8; point++) {
        double gradient[8][3];

        for (int c = 0; c < 8; c++) {
            double value[3], slope[3];

            for (int k = 0; k < 3; k++) {
                const double x = points[point >> k & 1];
                const int up = c >> k & 1;

                value[k] = up ? x : 1 - x;
                slope[k] = up ? 1 : -1;
            }
            for (int k = 0; k < 3; k++)
                gradient[c][k] = slope[k] * value[(k + 1) % 3] * value[(k + 2) % 3];
        }
        for (int a = 0; a < 8; a++)
            for (int b = 0; b < 8; b++)
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++) {
                        double sum = lambda * gradient[a][i] * gradient[b][j] +
                                     mu * gradient[a][j] * gradient[b][i];

                        for (int k = 0; i == j && k < 3; k++)
                            sum += mu * gradient[a][k] * gradient[b][k];
                        stiffness[3 * a + i][3 * b + j] += sum / 8;
                    }
    }
}

/* Sets the row of a node: of 7 points, with coefficients that the edge determines. */
static PetscErrorCode PoissonRows(Mat A, const Problem *problem, PetscInt node) {
    const PetscInt *n = problem->n, steps[3] = {1, n[0], n[0] * n[1]};
    const PetscInt place[3] = {node % n[0], node / n[0] % n[1], node / (n[0] * n[1])};
    PetscInt columns[7], count = 0;
    PetscScalar values[7], diagonal = 0;

    PetscFunctionBeginUser;
    for (int k = 0; k < 6; k++) {
        const int axis = k / 2, up = k % 2;
        const PetscInt neighbour = node + (up ? steps[axis] : -steps[axis]);
        const PetscReal coefficient = 1.5 + 0.5 * Uniform(PetscMin(node, neighbour), axis);

        diagonal += coefficient;
        if (place[axis] != (up ? n[axis] - 1 : 0)) {
            columns[count] = neighbour;
            values[count++] = -coefficient;
        }
    }
    columns[count] = node;
    values[count++] = diagonal;
    PetscCall(MatSetValues(A, 1, &node, count, columns, values, INSERT_VALUES));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the three rows of a node from the cubes that it is a corner of. Rows and columns of clamped
 * nodes are those of the unit matrix. */
static PetscErrorCode ElasticRows(Mat A, const Problem *problem, PetscInt node,
                                  double stiffness[24][24]) {
    const PetscInt *n = problem->n;
    const PetscInt place[3] = {node % n[0], node / n[0] % n[1], node / (n[0] * n[1])};
    PetscScalar blocks[27][3][3], values[3 * 81];
    PetscBool reached[27] = {PETSC_FALSE};
    PetscInt rows[3], columns[81], count = 0;

    PetscFunctionBeginUser;
    memset(blocks, 0, sizeof blocks);
    for (int a = 0; a < 8; a++) {
        /* The cube that has the node as its corner a. */
        const PetscInt cube[3] = {place[0] - (a & 1), place[1] - (a >> 1 & 1), place[2] - (a >> 2)};

        if (PetscMin(cube[0], PetscMin(cube[1], cube[2])) < 0 || cube[0] >= n[0] - 1 ||
            cube[1] >= n[1] - 1 || cube[2] >= n[2] - 1)
            continue;
        for (int b = 0; b < 8; b++) {
            const int at = ((b & 1) - (a & 1) + 1) + 3 * ((b >> 1 & 1) - (a >> 1 & 1) + 1) +
                           9 * ((b >> 2) - (a >> 2) + 1);

            reached[at] = PETSC_TRUE;
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    blocks[at][i][j] += stiffness[3 * a + i][3 * b + j];
        }
    }
    if (place[2] == 0) {
        memset(blocks, 0, sizeof blocks);
        for (int i = 0; i < 3; i++)
            blocks[13][i][i] = 1;
    }
    for (int at = 0; at < 27; at++)
        for (int j = 0; j < 3 && reached[at]; j++) {
            const PetscInt other =
                node + (at % 3 - 1) + n[0] * ((at / 3 % 3 - 1) + n[1] * (at / 9 - 1));

            /* A node below the second layer is clamped. */
            if (at != 13 && (place[2] == 0 || place[2] + at / 9 - 1 == 0))
                for (int i = 0; i < 3; i++)
                    blocks[at][i][j] = 0;
            columns[count++] = 3 * other + j;
        }
    for (int i = 0; i < 3; i++) {
        PetscInt k = 0;

        rows[i] = 3 * node + i;
        for (int at = 0; at < 27; at++)
            for (int j = 0; j < 3 && reached[at]; j++)
                values[i * count + k++] = blocks[at][i][j];
    }
    PetscCall(MatSetValues(A, 3, rows, count, columns, values, INSERT_VALUES));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rigid motions of the nodes, from which multigrid makes its coarse spaces. */
static PetscErrorCode RigidMotions(Mat A, const Problem *problem) {
    MatNullSpace motions;
    PetscScalar *values;
    PetscInt first, last;
    Vec places;

    PetscFunctionBeginUser;
    PetscCall(MatGetOwnershipRange(A, &first, &last));
    PetscCall(VecCreate(PETSC_COMM_WORLD, &places));
    PetscCall(VecSetBlockSize(places, 3));
    PetscCall(VecSetSizes(places, last - first, PETSC_DETERMINE));
    PetscCall(VecSetType(places, VECSTANDARD));
    PetscCall(VecGetArrayWrite(places, &values));
    for (PetscInt row = first; row < last; row += 3) {
        const PetscInt node = row / 3;

        values[row - first] = node % problem->n[0];
        values[row - first + 1] = node / problem->n[0] % problem->n[1];
        values[row - first + 2] = node / (problem->n[0] * problem->n[1]);
    }
    PetscCall(VecRestoreArrayWrite(places, &values));
    PetscCall(MatNullSpaceCreateRigidBody(places, &motions));
    PetscCall(MatSetNearNullSpace(A, motions));
    PetscCall(MatNullSpaceDestroy(&motions));
    PetscCall(VecDestroy(&places));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank has whole layers of nodes where it can. */
static PetscErrorCode LocalRows(const Problem *problem, PetscInt *rows) {
    PetscInt layers = PETSC_DECIDE, all = problem->n[2];

    PetscFunctionBeginUser;
    PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &layers, &all));
    *rows = problem->dofs * problem->n[0] * problem->n[1] * layers;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Operator(const Problem *problem, MatType type, Mat *A) {
    const PetscInt width = problem->elastic ? 81 : 7, below = problem->elastic ? 54 : 2;
    PetscInt first, last, rows = 0;
    double stiffness[24][24];

    PetscFunctionBeginUser;
    CubeStiffness(stiffness);
    PetscCall(LocalRows(problem, &rows));
    PetscCall(MatCreate(PETSC_COMM_WORLD, A));
    PetscCall(MatSetSizes(*A, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE));
    PetscCall(MatSetBlockSize(*A, problem->dofs));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatSeqAIJSetPreallocation(*A, width, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, width, NULL, below, NULL));
    PetscCall(MatGetOwnershipRange(*A, &first, &last));
    for (PetscInt node = first / problem->dofs; node < last / problem->dofs; node++)
        if (problem->elastic)
            PetscCall(ElasticRows(*A, problem, node, stiffness));
        else
            PetscCall(PoissonRows(*A, problem, node));
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    if (problem->elastic)
        PetscCall(RigidMotions(*A, problem));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Smoothed aggregation of 2 x 2 x 2 nodes: P = (I - w D^-1 A) P0. */
static PetscErrorCode Prolongator(Mat A, const Problem *problem, Mat *P) {
    const PetscInt *n = problem->n, dofs = problem->dofs;
    const PetscInt half[3] = {(n[0] + 1) / 2, (n[1] + 1) / 2, (n[2] + 1) / 2};
    PetscInt first, last, rows;
    Mat P0, S;
    MatType type;
    Vec diagonal;

    PetscFunctionBeginUser;
    PetscCall(MatGetLocalSize(A, &rows, NULL));
    PetscCall(MatCreate(PETSC_COMM_WORLD, &P0));
    PetscCall(
        MatSetSizes(P0, rows, PETSC_DECIDE, PETSC_DETERMINE, dofs * half[0] * half[1] * half[2]));
    PetscCall(MatGetType(A, &type));
    PetscCall(MatSetType(P0, type));
    PetscCall(MatSeqAIJSetPreallocation(P0, 1, NULL));
    PetscCall(MatMPIAIJSetPreallocation(P0, 1, NULL, 1, NULL));
    PetscCall(MatGetOwnershipRange(P0, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        const PetscInt node = row / dofs;
        const PetscInt column = dofs * ((node % n[0]) / 2 + half[0] * ((node / n[0] % n[1]) / 2) +
                                        half[0] * half[1] * (node / (n[0] * n[1]) / 2)) +
                                row % dofs;

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

/* Has the local blocks of a matrix where its products read them. */
static PetscErrorCode Upload(Mat A) {
    Mat blocks[2] = {A, NULL};
    const PetscInt *offsets, *columns;
    PetscScalar *values;
    PetscMemType where;
    PetscBool parallel;
    MatType type;

    PetscFunctionBeginUser;
    PetscCall(MatGetType(A, &type));
    PetscCall(PetscStrbeginswith(type, MATMPIAIJ, &parallel));
    if (parallel)
        PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (int i = 0; i < 2; i++)
        if (blocks[i])
            PetscCall(MatSeqAIJGetCSRAndMemType(blocks[i], &offsets, &columns, &values, &where));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector whose values are where the products read them. */
static PetscErrorCode CreateVectors(Mat A, Vec *x, Vec *b) {
    const PetscScalar *values;

    PetscFunctionBeginUser;
    PetscCall(MatCreateVecs(A, x, b));
    PetscCall(VecSet(*x, 0));
    PetscCall(FillVector(*b, 2));
    PetscCall(VecGetArrayReadAndMemType(*b, &values, NULL));
    PetscCall(VecRestoreArrayReadAndMemType(*b, &values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- What is timed --------------------------------------------------------------------------- */

static PetscErrorCode TimeMult(const Problem *problem, Types *types) {
    enum { PRODUCTS = 20 };
    PetscReal expected = 0, norm;
    PetscLogDouble start;
    Vec x[MOST_TYPES], y[MOST_TYPES];

    PetscFunctionBeginUser;
    for (int i = 0; i < types->count; i++) {
        PetscCall(CreateVectors(types->A[i], &y[i], &x[i]));
        PetscCall(MatMult(types->A[i], x[i], y[i]));
        PetscCall(VecNorm(y[i], NORM_2, &norm));
        expected = i ? expected : norm;
        PetscCall(Agree("MatMult", types->names[i], expected, norm, TOLERANCE));
    }
    for (PetscInt turn = -1; turn < types->turns; turn++)
        for (int i = 0; i < types->count; i++) {
            double seconds;

            PetscCall(Start(&start));
            for (int k = 0; k < PRODUCTS; k++)
                PetscCall(MatMult(types->A[i], x[i], y[i]));
            PetscCall(Stop(start, PRODUCTS, &seconds));
            if (turn >= 0)
                types->seconds[i][turn] = seconds;
        }
    PetscCall(Lines(problem, "MatMult", types->turns, types));
    for (int i = 0; i < types->count; i++) {
        PetscCall(VecDestroy(&x[i]));
        PetscCall(VecDestroy(&y[i]));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateSolver(PCType preconditioner, const char *prefix, Mat A, KSP *ksp) {
    PC pc;

    PetscFunctionBeginUser;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
    PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
    PetscCall(KSPSetType(*ksp, KSPCG));
    PetscCall(KSPGetPC(*ksp, &pc));
    PetscCall(PCSetType(pc, preconditioner));
    PetscCall(KSPSetTolerances(*ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 10000));
    PetscCall(KSPSetFromOptions(*ksp));
    PetscCall(KSPSetOperators(*ksp, A, A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, Vec x, double *seconds) {
    KSPConvergedReason reason;
    PetscLogDouble start;

    PetscFunctionBeginUser;
    PetscCall(VecSet(x, 0));
    PetscCall(Start(&start));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Stop(start, 1, seconds));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "the solve ended with %d",
               (int)reason);
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each turn has a new matrix, so that the first of its two solves contains what a type derives from
 * a matrix, and the second does not. */
static PetscErrorCode TimeJacobi(const Problem *problem, Types *types) {
    double *again[MOST_TYPES], *first[MOST_TYPES];
    PetscInt iterations[MOST_TYPES];
    PetscReal expected = 0, norm;

    PetscFunctionBeginUser;
    for (int i = 0; i < types->count; i++) {
        first[i] = types->seconds[i];
        PetscCall(PetscMalloc1(types->turns, &again[i]));
    }
    for (PetscInt turn = 0; turn < types->turns; turn++)
        for (int i = 0; i < types->count; i++) {
            Mat copy;
            KSP ksp;
            Vec x, b;

            PetscCall(MatDuplicate(types->A[i], MAT_COPY_VALUES, &copy));
            PetscCall(Upload(copy));
            PetscCall(CreateVectors(copy, &x, &b));
            PetscCall(CreateSolver(PCJACOBI, "jacobi_", copy, &ksp));
            PetscCall(Solve(ksp, b, x, &first[i][turn]));
            PetscCall(KSPGetIterationNumber(ksp, &iterations[i]));
            PetscCall(Solve(ksp, b, x, &again[i][turn]));
            PetscCall(VecNorm(x, NORM_2, &norm));
            expected = i ? expected : norm;
            PetscCall(Agree("CG and Jacobi", types->names[i], expected, norm, 1e-4));
            PetscCall(KSPDestroy(&ksp));
            PetscCall(VecDestroy(&x));
            PetscCall(VecDestroy(&b));
            PetscCall(MatDestroy(&copy));
        }
    memcpy(types->iterations, iterations, sizeof iterations);
    PetscCall(Lines(problem, "CG Jacobi, first", types->turns, types));
    memcpy(types->seconds, again, sizeof again);
    memcpy(types->iterations, iterations, sizeof iterations);
    PetscCall(Lines(problem, "CG Jacobi, again", types->turns, types));
    memcpy(types->seconds, first, sizeof first);
    for (int i = 0; i < types->count; i++)
        PetscCall(PetscFree(again[i]));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The interpolation is made once, the products of the hierarchy anew for the values of each turn.
 */
static PetscErrorCode TimeMultigrid(const Problem *problem, Types *types) {
    enum { FIRST, AGAIN, SOLVE, PHASES };
    static const char *const names[PHASES] = {"GAMG, setup", "GAMG, setup again", "CG GAMG, solve"};
    double *seconds[PHASES][MOST_TYPES], *before[MOST_TYPES];
    PetscInt iterations[MOST_TYPES];
    PetscReal expected = 0, norm;
    PetscLogDouble start;
    KSP ksp[MOST_TYPES];
    Vec x[MOST_TYPES], b[MOST_TYPES];

    PetscFunctionBeginUser;
    memcpy(before, types->seconds, sizeof before);
    for (int i = 0; i < types->count; i++) {
        PC pc;

        for (int phase = 0; phase < PHASES; phase++)
            PetscCall(PetscMalloc1(types->turns, &seconds[phase][i]));
        PetscCall(Upload(types->A[i]));
        PetscCall(CreateVectors(types->A[i], &x[i], &b[i]));
        PetscCall(CreateSolver(PCGAMG, "gamg_", types->A[i], &ksp[i]));
        PetscCall(KSPGetPC(ksp[i], &pc));
        PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
        PetscCall(Start(&start));
        PetscCall(KSPSetUp(ksp[i]));
        PetscCall(Stop(start, 1, &seconds[FIRST][i][0]));
        PetscCall(Progress("multigrid is set up:", types->names[i]));
        /* The first of both has what later ones keep. */
        PetscCall(Solve(ksp[i], b[i], x[i], &seconds[SOLVE][i][0]));
        PetscCall(Progress("a solve was done:", types->names[i]));
    }
    for (PetscInt turn = -1; turn < types->turns; turn++)
        for (int i = 0; i < types->count; i++) {
            const PetscInt at = PetscMax(turn, 0);

            /* A power of two: no digit of any result changes. */
            PetscCall(MatScale(types->A[i], turn % 2 ? 0.5 : 2));
            PetscCall(Upload(types->A[i]));
            PetscCall(KSPSetOperators(ksp[i], types->A[i], types->A[i]));
            PetscCall(Start(&start));
            PetscCall(KSPSetUp(ksp[i]));
            PetscCall(Stop(start, 1, &seconds[AGAIN][i][at]));
            PetscCall(Solve(ksp[i], b[i], x[i], &seconds[SOLVE][i][at]));
            PetscCall(VecNorm(x[i], NORM_2, &norm));
            expected = i ? expected : norm;
            PetscCall(Agree("CG and GAMG", types->names[i], expected, norm, 1e-4));
            PetscCall(KSPGetIterationNumber(ksp[i], &iterations[i]));
        }
    for (int phase = 0; phase < PHASES; phase++) {
        memcpy(types->seconds, seconds[phase], sizeof types->seconds);
        if (phase == SOLVE)
            memcpy(types->iterations, iterations, sizeof iterations);
        PetscCall(Lines(problem, names[phase], phase == FIRST ? 1 : types->turns, types));
    }
    memcpy(types->seconds, before, sizeof before);
    for (int i = 0; i < types->count; i++) {
        for (int phase = 0; phase < PHASES; phase++)
            PetscCall(PetscFree(seconds[phase][i]));
        PetscCall(KSPDestroy(&ksp[i]));
        PetscCall(VecDestroy(&x[i]));
        PetscCall(VecDestroy(&b[i]));
        /* Where an odd number of turns has left another factor. */
        if (types->turns % 2 == 0)
            PetscCall(MatScale(types->A[i], 2));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product by Tarsia makes a matrix of its types, whatever the other factor's type is: where
 * PETSc's own functions had computed it, the result would be of PETSc's type. */
static PetscErrorCode CheckResultType(const char *type, Mat product) {
    PetscErrorCode (*convert)(Mat, MatType, MatReuse, Mat *);
    PetscBool parallel, tarsia;
    MatType made;

    PetscFunctionBeginUser;
    PetscCall(PetscStrendswith(type, "tarsia", &tarsia));
    if (!tarsia)
        PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatGetType(product, &made));
    PetscCall(PetscStrbeginswith(made, "mpi", &parallel));
    PetscCall(PetscObjectQueryFunction((PetscObject)product,
                                       parallel ? "MatConvert_mpiaijtarsia_mpiaij_C"
                                                : "MatConvert_seqaijtarsia_seqaij_C",
                                       &convert));
    PetscCheck(convert, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatPtAP of %s was PETSc's own", type);
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TimePtAP(const Problem *problem, Types *types) {
    double *again[MOST_TYPES], *first[MOST_TYPES];
    PetscReal expected = 0, norm;
    PetscLogDouble start;
    Mat P[MOST_TYPES], C;

    PetscFunctionBeginUser;
    for (int i = 0; i < types->count; i++) {
        first[i] = types->seconds[i];
        PetscCall(PetscMalloc1(types->turns, &again[i]));
        PetscCall(Prolongator(types->A[i], problem, &P[i]));
        PetscCall(Upload(P[i]));
        PetscCall(Upload(types->A[i]));
        PetscCall(Progress("a prolongation was made:", types->names[i]));
    }
    for (PetscInt turn = 0; turn < types->turns; turn++)
        for (int i = 0; i < types->count; i++) {
            PetscCall(Start(&start));
            PetscCall(MatPtAP(types->A[i], P[i], MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
            PetscCall(Stop(start, 1, &first[i][turn]));
            PetscCall(CheckResultType(types->names[i], C));
            PetscCall(MatScale(types->A[i], 1.0625));
            PetscCall(Upload(types->A[i]));
            PetscCall(Start(&start));
            PetscCall(MatPtAP(types->A[i], P[i], MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
            PetscCall(Stop(start, 1, &again[i][turn]));
            PetscCall(MatNorm(C, NORM_FROBENIUS, &norm));
            expected = i ? expected : norm;
            PetscCall(Agree("MatPtAP", types->names[i], expected, norm, TOLERANCE));
            PetscCall(MatDestroy(&C));
        }
    PetscCall(Lines(problem, "MatPtAP, first", types->turns, types));
    memcpy(types->seconds, again, sizeof again);
    PetscCall(Lines(problem, "MatPtAP, MAT_REUSE_MATRIX", types->turns, types));
    memcpy(types->seconds, first, sizeof first);
    for (int i = 0; i < types->count; i++) {
        PetscCall(PetscFree(again[i]));
        PetscCall(MatDestroy(&P[i]));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- Options --------------------------------------------------------------------------------- */

/* The words of an option, or those that are there without it. */
static PetscErrorCode Words(const char *option, const char *otherwise, PetscInt most, char **words,
                            int *count) {
    PetscInt n = most;
    PetscBool given;

    PetscFunctionBeginUser;
    PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, words, &n, &given));
    if (!given) {
        char **parts;
        int found;

        PetscCall(PetscStrToArray(otherwise, ',', &found, &parts));
        n = found;
        for (int i = 0; i < found; i++)
            PetscCall(PetscStrallocpy(parts[i], &words[i]));
        PetscCall(PetscStrToArrayDestroy(found, parts));
    }
    PetscCheck(n > 0, PETSC_COMM_WORLD, PETSC_ERR_USER, "%s has no word", option);
    *count = (int)n;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReadProblem(Problem *problem) {
    char name[32] = "poisson";
    PetscBool weak = PETSC_FALSE;
    PetscInt n = 96;
    PetscMPIInt ranks;

    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-problem", name, sizeof name, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-weak", &weak, NULL));
    PetscCall(PetscStrcmp(name, "elasticity", &problem->elastic));
    PetscCheck(problem->elastic || !strcmp(name, "poisson"), PETSC_COMM_WORLD, PETSC_ERR_USER,
               "-problem is poisson or elasticity, not %s", name);
    problem->name = problem->elastic ? "elasticity" : "poisson";
    problem->dofs = problem->elastic ? 3 : 1;
    problem->n[0] = problem->n[1] = n;
    problem->n[2] = weak ? n * ranks : n;
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        PetscErrorCode (*time)(const Problem *, Types *);
    } parts[] = {
        {"mult", TimeMult}, {"jacobi", TimeJacobi}, {"gamg", TimeMultigrid}, {"ptap", TimePtAP}};
    Problem problem;
    Types types = {.turns = 9};
    PetscBool header = PETSC_FALSE;
    char *words[PETSC_STATIC_ARRAY_LENGTH(parts)];
    int count;

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Times matrix types in turns."));
    PetscCall(MatTarsiaRegister());
    PetscCall(ReadProblem(&problem));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-turns", &types.turns, NULL));
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-header", &header, NULL));
    PetscCall(Words("-types", "aij,aijtarsia", MOST_TYPES, types.names, &types.count));
    PetscCall(
        Words("-parts", "mult,jacobi,gamg,ptap", PETSC_STATIC_ARRAY_LENGTH(parts), words, &count));
    if (header)
        PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                              "problem\tnodes\tranks\twhat\ttype\tmedian ms\tleast "
                              "ms\tturns\tfaster than the first\titerations\n"));
    PetscCall(Progress("begin", ""));
    for (int i = 0; i < types.count; i++) {
        PetscCall(PetscMalloc1(types.turns, &types.seconds[i]));
        PetscCall(Operator(&problem, types.names[i], &types.A[i]));
        PetscCall(Upload(types.A[i]));
        PetscCall(Progress("a matrix was assembled:", types.names[i]));
    }
    for (int k = 0; k < count; k++) {
        size_t part = 0;

        while (part < PETSC_STATIC_ARRAY_LENGTH(parts) && strcmp(parts[part].name, words[k]))
            part++;
        PetscCheck(part < PETSC_STATIC_ARRAY_LENGTH(parts), PETSC_COMM_WORLD, PETSC_ERR_USER,
                   "-parts has no %s", words[k]);
        PetscCall((*parts[part].time)(&problem, &types));
        PetscCall(Progress("done:", words[k]));
        PetscCall(PetscFree(words[k]));
    }
    for (int i = 0; i < types.count; i++) {
        PetscCall(PetscFree(types.seconds[i]));
        PetscCall(PetscFree(types.names[i]));
        PetscCall(MatDestroy(&types.A[i]));
    }
    PetscCall(PetscFinalize());
    return 0;
}
