// SPDX-License-Identifier: MIT OR Apache-2.0
/* Smoothed aggregation multigrid (Vanek, Mandel, Brezina 1996) with the library's products: the
 * set-up of three levels by SpGEMM, then conjugate gradients with a V-cycle that is SpMV alone.
 *
 *   amg_setup [n]    n nodes in each direction of a cube (default 10)
 *
 * for the Poisson problem (7 points) and for linear elasticity (trilinear hexahedra, clamped on one
 * side, the six rigid-body modes as near-null space). On each level
 *
 *   1. nodes with strong connections are put into aggregates, greedily;
 *   2. P0 = the near-null space, cut into aggregates and made orthonormal in each (QR); what is
 * left of it (R) is the near-null space of the next level;
 *   3. S = I - w D^-1 A, and P = S P0                 SpGEMM
 *   4. next A = P^T (A P)                             SpGEMM twice, once with op(A) = A^T
 *
 * Then A gets new values, as it does in every time step of a simulation. Aggregates and P0 depend
 * on the pattern and on the near-null space and are kept; the plans keep the patterns of S P0, A P
 * and P^T (A P), so that the second set-up is only updateValues and numeric.
 *
 * One sweep of damped Jacobi before and after the coarse correction needs no kernel of its own.
 * With M = w D^-1 and A = A^T the first sweep from x = 0 gives x = M b with the residual
 * b - A M b = S^T b, and the last is x := S x + M b. Dot products and vector updates of the
 * conjugate gradients are plain loops on host copies, as in cg.c. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tarsia.h>

#include "amg_host.h"

enum { LEVELS = 3 };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

static double seconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Matrices, products and vectors in the library's memory ---------------------------------- */

/* A matrix in host memory, for what this program does itself, and the library's copy of it. */
typedef struct {
    Csr host;
    void *offsets, *columns, *values;
    tarsiaSpMatDescr_t descr;
} Matrix;

/* The library's arrays for a matrix of this size, not yet filled. */
static Matrix describe(tarsiaHandle_t handle, Csr host) {
    Matrix M = {.host = host};

    CHECK(tarsiaMalloc(handle, &M.offsets, offset_bytes(&host)));
    CHECK(tarsiaMalloc(handle, &M.columns, column_bytes(&host)));
    CHECK(tarsiaMalloc(handle, &M.values, value_bytes(&host)));
    CHECK(tarsiaCreateCsr(&M.descr, host.rows, host.cols, host.nnz, M.offsets, M.columns, M.values,
                          TARSIA_INDEX_32I, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO,
                          TARSIA_R_64F));
    return M;
}

static void upload_values(tarsiaHandle_t handle, const Matrix *M) {
    CHECK(tarsiaMemcpyToDevice(handle, M->values, M->host.values, value_bytes(&M->host)));
}

static void download_values(tarsiaHandle_t handle, const Matrix *M) {
    CHECK(tarsiaMemcpyToHost(handle, M->host.values, M->values, value_bytes(&M->host)));
}

/* Gives the library a matrix that was made on the host. */
static Matrix upload(tarsiaHandle_t handle, Csr host) {
    const Matrix M = describe(handle, host);

    CHECK(tarsiaMemcpyToDevice(handle, M.offsets, host.offsets, offset_bytes(&host)));
    CHECK(tarsiaMemcpyToDevice(handle, M.columns, host.columns, column_bytes(&host)));
    upload_values(handle, &M);
    return M;
}

static void free_matrix(tarsiaHandle_t handle, Matrix *M) {
    CHECK(tarsiaDestroySpMat(M->descr));
    CHECK(tarsiaFree(handle, M->offsets));
    CHECK(tarsiaFree(handle, M->columns));
    CHECK(tarsiaFree(handle, M->values));
    free_csr(&M->host);
}

/* C = op(A) B. */
typedef struct {
    tarsiaPlan_t plan;
    Matrix C;
} Product;

/* Plans C = op(A) B, allocates C and computes it. */
static Product multiply(tarsiaHandle_t handle, tarsiaOperation_t op, const Matrix *A,
                        const Matrix *B) {
    const double one = 1;
    int64_t nnz;
    Product product;

    CHECK(tarsiaSpGEMM_createPlan(handle, &product.plan, op, TARSIA_OPERATION_NON_TRANSPOSE,
                                  A->descr, B->descr, TARSIA_COMPUTE_64F,
                                  TARSIA_SPGEMM_ALG_DEFAULT));
    /* Values will change: the first numeric phase keeps what later ones need. */
    CHECK(tarsiaPlan_setValueUpdates(product.plan, 1));
    CHECK(tarsiaPlan_analyze(handle, product.plan));
    /* Only now is the size of C known. */
    CHECK(tarsiaSpGEMM_symbolic(handle, product.plan, &nnz));
    if (nnz > INT32_MAX)
        fail("a product has more entries than 32 bits number");
    const int32_t rows = op == TARSIA_OPERATION_NON_TRANSPOSE ? A->host.rows : A->host.cols;
    const Csr host = new_csr(rows, B->host.cols, (int32_t)nnz);
    const Matrix C = product.C = describe(handle, host);
    CHECK(tarsiaSpGEMM_numeric(handle, product.plan, &one, C.descr));
    CHECK(tarsiaMemcpyToHost(handle, host.offsets, C.offsets, offset_bytes(&host)));
    CHECK(tarsiaMemcpyToHost(handle, host.columns, C.columns, column_bytes(&host)));
    download_values(handle, &C);
    return product;
}

/* The same product of new values of A and B. */
static void multiply_again(tarsiaHandle_t handle, const Product *product, const Matrix *A,
                           const Matrix *B) {
    const double one = 1;

    CHECK(tarsiaSpGEMM_updateValues(handle, product->plan, A->values, B->values));
    CHECK(tarsiaSpGEMM_numeric(handle, product->plan, &one, product->C.descr));
    download_values(handle, &product->C);
}

static void free_product(tarsiaHandle_t handle, Product *product) {
    CHECK(tarsiaPlan_destroy(product->plan));
    free_matrix(handle, &product->C);
}

typedef struct {
    size_t bytes;
    void *values;
    tarsiaDnVecDescr_t descr;
} Vector;

static Vector new_vector(tarsiaHandle_t handle, int32_t size) {
    Vector x = {.bytes = (size_t)size * sizeof(double)};
    CHECK(tarsiaMalloc(handle, &x.values, x.bytes));
    CHECK(tarsiaCreateDnVec(&x.descr, size, x.values, TARSIA_R_64F));
    return x;
}

static void free_vector(tarsiaHandle_t handle, Vector *x) {
    CHECK(tarsiaDestroyDnVec(x->descr));
    CHECK(tarsiaFree(handle, x->values));
}

static void put(tarsiaHandle_t handle, const Vector *x, const double *host) {
    CHECK(tarsiaMemcpyToDevice(handle, x->values, host, x->bytes));
}

static void get(tarsiaHandle_t handle, const Vector *x, double *host) {
    CHECK(tarsiaMemcpyToHost(handle, host, x->values, x->bytes));
}

/* A plan for y = op(M) x + beta y. */
static tarsiaPlan_t new_operator(tarsiaHandle_t handle, tarsiaOperation_t op, const Matrix *M) {
    tarsiaPlan_t plan;

    CHECK(tarsiaSpMV_createPlan(handle, &plan, op, M->descr, TARSIA_R_64F, TARSIA_R_64F,
                                TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_setValueUpdates(plan, 1));
    CHECK(tarsiaPlan_analyze(handle, plan));
    return plan;
}

static void apply(tarsiaHandle_t handle, tarsiaPlan_t plan, const Vector *x, double beta,
                  const Vector *y) {
    const double one = 1;
    CHECK(tarsiaSpMV(handle, plan, &one, x->descr, &beta, y->descr));
}

/* ---- The hierarchy --------------------------------------------------------------------------- */

/* A level, and the way to the next one. Of the last level only A, opA, b and x are there. */
typedef struct {
    Matrix A; /* from the second level on the product PtAP of the level above, which owns it */
    NearNull near_null;
    Matrix S, M, P0; /* I - w D^-1 A, w D^-1, tentative prolongator */
    Product P, AP, PtAP;
    tarsiaPlan_t opA, opS, opSt, opM, opP, opPt;
    Vector b, x, y; /* right hand side, solution, and one more */
} Level;

typedef struct {
    Level level[LEVELS];
    double *factor, *solution; /* of Cholesky, of the last A; dense */
} Hierarchy;

/* Largest eigenvalue of D^-1 A, a little more than a few steps of the power method say. */
static double spectral_radius(tarsiaHandle_t handle, const Level *level, const double *diagonal) {
    const int32_t rows = level->A.host.rows;
    double *x = allocate((size_t)rows, sizeof *x), radius = 0;

    for (int32_t i = 0; i < rows; i++)
        x[i] = sin(1.7 * i + 0.3);
    for (int step = 0; step < 15; step++) {
        put(handle, &level->x, x);
        apply(handle, level->opA, &level->x, 0, &level->y);
        get(handle, &level->y, x);
        radius = 0; /* from the second step on the largest element of x was 1 */
        for (int32_t i = 0; i < rows; i++) {
            x[i] /= diagonal[i];
            radius = fmax(radius, fabs(x[i]));
        }
        for (int32_t i = 0; i < rows; i++)
            x[i] /= radius;
    }
    free(x);
    return 1.1 * radius;
}

/* Host values of S and M. */
static void smoother_values(tarsiaHandle_t handle, const Level *level, Csr *S, Csr *M) {
    const Csr *A = &level->A.host;
    double *diagonal = allocate((size_t)A->rows, sizeof *diagonal);

    for (int32_t i = 0; i < A->rows; i++) {
        for (int32_t p = A->offsets[i]; p < A->offsets[i + 1]; p++)
            if (A->columns[p] == i)
                diagonal[i] += A->values[p];
        if (!(diagonal[i] > 0))
            fail("a diagonal entry is not positive");
    }
    const double damping = 4 / (3 * spectral_radius(handle, level, diagonal));
    for (int32_t i = 0; i < A->rows; i++) {
        M->values[i] = damping / diagonal[i];
        for (int32_t p = A->offsets[i]; p < A->offsets[i + 1]; p++)
            S->values[p] = (A->columns[p] == i) - M->values[i] * A->values[p];
    }
    free(diagonal);
}

/* S has the pattern of A, M that of the diagonal. */
static void make_smoother(tarsiaHandle_t handle, Level *level) {
    const Csr *A = &level->A.host;
    Csr S = new_csr(A->rows, A->rows, A->nnz), M = new_csr(A->rows, A->rows, A->rows);

    memcpy(S.offsets, A->offsets, offset_bytes(A));
    memcpy(S.columns, A->columns, column_bytes(A));
    for (int32_t i = 0; i < A->rows; i++) {
        M.columns[i] = i;
        M.offsets[i + 1] = i + 1;
    }
    smoother_values(handle, level, &S, &M);
    level->S = upload(handle, S);
    level->M = upload(handle, M);
}

/* P0 of a level; coarse becomes the near-null space of the next. */
static void make_tentative_prolongator(tarsiaHandle_t handle, Level *level, double theta,
                                       NearNull *coarse) {
    const Csr *A = &level->A.host;
    const NearNull *space = &level->near_null;
    Graph graph = strong_connections(A, space->block, theta);
    int32_t *aggregate = allocate((size_t)graph.nodes, sizeof *aggregate);
    const int32_t count = aggregate_nodes(&graph, aggregate);

    coarse->block = coarse->modes = space->modes;
    coarse->vectors =
        allocate((size_t)count * (size_t)(space->modes * space->modes), sizeof *coarse->vectors);
    level->P0 =
        upload(handle, tentative_prolongator(A->rows, space, aggregate, count, coarse->vectors));
    free(aggregate);
    free_graph(&graph);
}

/* A = L L^T on the last level, which is small, and positive definite. */
static void factorize(Hierarchy *hierarchy) {
    const Csr *A = &hierarchy->level[LEVELS - 1].A.host;
    const size_t n = (size_t)A->rows;
    double *L = hierarchy->factor;

    memset(L, 0, n * n * sizeof *L);
    for (size_t i = 0; i < n; i++)
        for (int32_t p = A->offsets[i]; p < A->offsets[i + 1]; p++)
            L[i * n + (size_t)A->columns[p]] = A->values[p];
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double sum = L[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= L[i * n + k] * L[j * n + k];
            if (i == j && !(sum > 0))
                fail("the last level is not positive definite");
            L[i * n + j] = i == j ? sqrt(sum) : sum / L[j * n + j];
        }
}

/* The first set-up, of patterns and values. The hierarchy takes the arrays of the problem. */
static void set_up(tarsiaHandle_t handle, Hierarchy *hierarchy, const Problem *problem) {
    const tarsiaOperation_t N = TARSIA_OPERATION_NON_TRANSPOSE, T = TARSIA_OPERATION_TRANSPOSE;

    hierarchy->level[0].A = upload(handle, problem->A);
    hierarchy->level[0].near_null = problem->near_null;
    for (int l = 0; l < LEVELS; l++) {
        Level *level = &hierarchy->level[l], *next = level + 1;
        const size_t rows = (size_t)level->A.host.rows;

        level->b = new_vector(handle, level->A.host.rows);
        level->x = new_vector(handle, level->A.host.rows);
        level->opA = new_operator(handle, N, &level->A);
        if (l == LEVELS - 1) {
            hierarchy->factor = allocate(rows * rows, sizeof *hierarchy->factor);
            hierarchy->solution = allocate(rows, sizeof *hierarchy->solution);
            break;
        }
        level->y = new_vector(handle, level->A.host.rows);
        make_smoother(handle, level);
        /* The threshold halves from level to level, as in the paper. */
        make_tentative_prolongator(handle, level, 0.08 / (1 << l), &next->near_null);
        level->P = multiply(handle, N, &level->S, &level->P0);
        level->AP = multiply(handle, N, &level->A, &level->P.C);
        level->PtAP = multiply(handle, T, &level->P.C, &level->AP.C);
        next->A = level->PtAP.C;
        level->opS = new_operator(handle, N, &level->S);
        level->opSt = new_operator(handle, T, &level->S);
        level->opM = new_operator(handle, N, &level->M);
        level->opP = new_operator(handle, N, &level->P.C);
        level->opPt = new_operator(handle, T, &level->P.C);
    }
    factorize(hierarchy);
}

/* The next set-ups, for new values of A on the first level, which are in the host's array. No
 * pattern is looked at, no plan is made, nothing is allocated in the library's memory. */
static void set_up_again(tarsiaHandle_t handle, Hierarchy *hierarchy) {
    upload_values(handle, &hierarchy->level[0].A);
    for (int l = 0; l < LEVELS; l++) {
        Level *level = &hierarchy->level[l];

        CHECK(tarsiaPlan_updateValues(handle, level->opA, level->A.values));
        if (l == LEVELS - 1)
            break;
        smoother_values(handle, level, &level->S.host, &level->M.host);
        upload_values(handle, &level->S);
        upload_values(handle, &level->M);
        multiply_again(handle, &level->P, &level->S, &level->P0);
        multiply_again(handle, &level->AP, &level->A, &level->P.C);
        multiply_again(handle, &level->PtAP, &level->P.C, &level->AP.C);
        CHECK(tarsiaPlan_updateValues(handle, level->opS, level->S.values));
        CHECK(tarsiaPlan_updateValues(handle, level->opSt, level->S.values));
        CHECK(tarsiaPlan_updateValues(handle, level->opM, level->M.values));
        CHECK(tarsiaPlan_updateValues(handle, level->opP, level->P.C.values));
        CHECK(tarsiaPlan_updateValues(handle, level->opPt, level->P.C.values));
    }
    factorize(hierarchy);
}

static void free_hierarchy(tarsiaHandle_t handle, Hierarchy *hierarchy) {
    for (int l = 0; l < LEVELS; l++) {
        Level *level = &hierarchy->level[l];

        CHECK(tarsiaPlan_destroy(level->opA));
        free_vector(handle, &level->b);
        free_vector(handle, &level->x);
        free(level->near_null.vectors);
        if (l == LEVELS - 1)
            break;
        tarsiaPlan_t plans[] = {level->opS, level->opSt, level->opM, level->opP, level->opPt};
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
            CHECK(tarsiaPlan_destroy(plans[i]));
        free_vector(handle, &level->y);
        free_product(handle, &level->PtAP);
        free_product(handle, &level->AP);
        free_product(handle, &level->P);
        free_matrix(handle, &level->P0);
        free_matrix(handle, &level->M);
        free_matrix(handle, &level->S);
    }
    free_matrix(handle, &hierarchy->level[0].A);
    free(hierarchy->factor);
    free(hierarchy->solution);
}

/* ---- The solver ------------------------------------------------------------------------------ */

/* x = V-cycle(b) on a level. */
static void v_cycle(tarsiaHandle_t handle, Hierarchy *hierarchy, int l) {
    Level *level = &hierarchy->level[l];

    if (l == LEVELS - 1) {
        const size_t n = (size_t)level->A.host.rows;
        const double *L = hierarchy->factor;
        double *x = hierarchy->solution;
        get(handle, &level->b, x);
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < i; k++)
                x[i] -= L[i * n + k] * x[k];
            x[i] /= L[i * n + i];
        }
        for (size_t i = n; i-- > 0;) {
            for (size_t k = i + 1; k < n; k++)
                x[i] -= L[k * n + i] * x[k];
            x[i] /= L[i * n + i];
        }
        put(handle, &level->x, x);
        return;
    }
    const Level *next = &hierarchy->level[l + 1];
    apply(handle, level->opSt, &level->b, 0, &level->y); /* residual after the first sweep */
    apply(handle, level->opPt, &level->y, 0, &next->b);
    v_cycle(handle, hierarchy, l + 1);
    apply(handle, level->opM, &level->b, 0, &level->y); /* y = M b + P x of the next level */
    apply(handle, level->opP, &next->x, 1, &level->y);
    apply(handle, level->opM, &level->b, 0, &level->x); /* x = M b + S y */
    apply(handle, level->opS, &level->y, 1, &level->x);
}

static double dot(int32_t n, const double *x, const double *y) {
    double sum = 0;

    for (int32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* y = A x with a plain loop. */
static void multiply_on_host(const Csr *A, const double *x, double *y) {
    for (int32_t i = 0; i < A->rows; i++) {
        y[i] = 0;
        for (int32_t p = A->offsets[i]; p < A->offsets[i + 1]; p++)
            y[i] += A->values[p] * x[A->columns[p]];
    }
}

/* Conjugate gradients with the V-cycle, from x = 0. Prints how it went; returns 1 if the residual,
 * computed anew, is small. */
static int solve(tarsiaHandle_t handle, Hierarchy *hierarchy) {
    const double tolerance = 1e-8;
    const Level *level = &hierarchy->level[0];
    const Csr *A = &level->A.host;
    const int32_t n = A->rows;
    double *work = allocate(6 * (size_t)n, sizeof *work);
    double *b = work, *x = b + n, *r = x + n, *z = r + n, *p = z + n, *Ap = p + n, rz = 1;
    int iterations = 0;

    for (int32_t i = 0; i < n; i++)
        r[i] = b[i] = 1 + sin(0.9 * i);
    const double size_b = sqrt(dot(n, b, b));
    while (sqrt(dot(n, r, r)) > tolerance * size_b && iterations < 60) {
        put(handle, &level->b, r);
        v_cycle(handle, hierarchy, 0);
        get(handle, &level->x, z);
        const double next = dot(n, r, z), turn = iterations ? next / rz : 0;
        rz = next;
        for (int32_t i = 0; i < n; i++)
            p[i] = z[i] + turn * p[i];
        put(handle, &level->x, p);
        apply(handle, level->opA, &level->x, 0, &level->y);
        get(handle, &level->y, Ap);
        const double step = rz / dot(n, p, Ap);
        for (int32_t i = 0; i < n; i++) {
            x[i] += step * p[i];
            r[i] -= step * Ap[i];
        }
        iterations++;
    }
    multiply_on_host(A, x, Ap);
    for (int32_t i = 0; i < n; i++)
        r[i] = b[i] - Ap[i];
    const double residual = sqrt(dot(n, r, r)) / size_b;
    free(work);
    printf("%d iterations, relative residual %.2e\n", iterations, residual);
    return residual <= 10 * tolerance;
}

/* Sets up and solves, twice; returns 1 if both solves converge. */
static int run(tarsiaHandle_t handle, Problem problem, int n) {
    Hierarchy hierarchy = {0};
    int64_t entries = 0;

    double start = seconds();
    set_up(handle, &hierarchy, &problem);
    double time = seconds() - start;
    printf("%s, %d x %d x %d nodes\n", problem.name, n, n, n);
    for (int l = 0; l < LEVELS; l++) {
        const Csr *A = &hierarchy.level[l].A.host;
        entries += A->nnz;
        printf("  level %d: %8d rows, %9d entries\n", l, (int)A->rows, (int)A->nnz);
    }
    printf("  operator complexity %.2f\n", (double)entries / problem.A.nnz);
    printf("  set-up in %.1f ms, ", 1e3 * time);
    const int first = solve(handle, &hierarchy);

    problem.assemble(n, 1, &hierarchy.level[0].A.host);
    start = seconds();
    set_up_again(handle, &hierarchy);
    time = seconds() - start;
    printf("  new values in %.1f ms, ", 1e3 * time);
    const int second = solve(handle, &hierarchy);
    free_hierarchy(handle, &hierarchy);
    return first && second;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 10;
    tarsiaHandle_t handle;

    /* 32 bits number the 81 entries in each of 3 n^3 rows. */
    if (n < 6 || n > 200) {
        fprintf(stderr, "usage: amg_setup [nodes in each direction, 6 to 200]\n");
        return 1;
    }
    CHECK(tarsiaCreate(&handle));
    const int first = run(handle, poisson(n), n);
    const int second = run(handle, elasticity(n), n);
    CHECK(tarsiaDestroy(handle));
    if (!first || !second)
        fail("no convergence");
    return 0;
}
