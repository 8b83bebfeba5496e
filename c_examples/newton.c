// SPDX-License-Identifier: MIT OR Apache-2.0
/* Newton's method for the Bratu problem -Laplace(u) = lambda e^u on the unit square, u = 0 on its
 * boundary, with N x N inner points at distance h:
 *
 *   F(u) = L u - h^2 lambda e^u,      L: the 5-point stencil (4, -1)
 *   J(u) = L - h^2 lambda diag(e^u)
 *
 * Each step solves J(u) d = -F(u) by conjugate gradients, preconditioned by the diagonal, and adds
 * d to u: below the critical lambda of 6.808 and from u = 0, J stays positive definite.
 *
 * Only values of the Jacobian change. Its plan is made with tarsiaPlan_setValuesInPlace: analysis
 * reads the pattern alone, before there is a Jacobian, and every product reads the values that the
 * array has then, so that overwriting them needs no further call. (A plan without that setting
 * needs tarsiaPlan_updateValues in every step, else it may multiply by an old Jacobian; residuals
 * then fall slowly or not at all, and this program ends with 1.) L has the same pattern and a plan
 * of its own, with which tarsiaSpMV_into adds -h^2 lambda e^u and writes F into a vector of its
 * own.
 *
 * Vector operations are plain loops on host copies, as in cg.c. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { N = 40, ROWS = N * N, MOST_STEPS = 7, MOST_ITERATIONS = 10 * N };

static const double lambda = 6.0, h = 1.0 / (N + 1), tolerance = 1e-9;

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

/* The pattern of both matrices in CSR, base 0; the values of L and of J; where the diagonal is. */
static int32_t offsets[ROWS + 1], columns[5 * ROWS], diagonal[ROWS];
static double stencil[5 * ROWS], jacobian[5 * ROWS];

/* Fills the pattern and L; returns the number of stored entries. */
static int32_t laplacian(void) {
    int32_t nnz = 0;

    for (int32_t row = 0; row < ROWS; row++) {
        const int32_t i = row % N, j = row / N;
        const int32_t neighbor[5] = {row - N, row - 1, row, row + 1, row + N};
        const int inside[5] = {j > 0, i > 0, 1, i < N - 1, j < N - 1};

        for (int k = 0; k < 5; k++) {
            if (inside[k]) {
                if (k == 2)
                    diagonal[row] = nnz;
                columns[nnz] = neighbor[k];
                stencil[nnz++] = k == 2 ? 4.0 : -1.0;
            }
        }
        offsets[row + 1] = nnz;
    }
    return nnz;
}

static double dot(const double *x, const double *y) {
    double sum = 0;

    for (int i = 0; i < ROWS; i++)
        sum += x[i] * y[i];
    return sum;
}

/* The largest |F| at u with plain loops, and the size of its terms. */
static double residual_by_loops(const double *u, double *size) {
    double worst = 0;

    *size = 0;
    for (int32_t row = 0; row < ROWS; row++) {
        double sum = -h * h * lambda * exp(u[row]), terms = -sum;

        for (int32_t p = offsets[row]; p < offsets[row + 1]; p++) {
            sum += stencil[p] * u[columns[p]];
            terms += fabs(stencil[p] * u[columns[p]]);
        }
        worst = fmax(worst, fabs(sum));
        *size = fmax(*size, terms);
    }
    return worst;
}

/* One matrix with its plan. */
typedef struct {
    void *values;
    tarsiaSpMatDescr_t matrix;
    tarsiaPlan_t plan;
} Product;

/* executes: about how often the plan will be executed, so that analysis does not cost more than it
 * gains. */
static Product product(tarsiaHandle_t handle, void *dOffsets, void *dColumns, const double *values,
                       int32_t nnz, int in_place, int64_t executes) {
    Product made;

    made.values = upload(handle, values, (size_t)nnz * sizeof *values);
    CHECK(tarsiaCreateCsr(&made.matrix, ROWS, ROWS, nnz, dOffsets, dColumns, made.values,
                          TARSIA_INDEX_32I, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO,
                          TARSIA_R_64F));
    CHECK(tarsiaSpMV_createPlan(handle, &made.plan, TARSIA_OPERATION_NON_TRANSPOSE, made.matrix,
                                TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_setValuesInPlace(made.plan, in_place));
    CHECK(tarsiaPlan_setExpectedExecutes(made.plan, executes));
    CHECK(tarsiaPlan_analyze(handle, made.plan));
    return made;
}

static void destroy(tarsiaHandle_t handle, Product gone) {
    CHECK(tarsiaPlan_destroy(gone.plan));
    CHECK(tarsiaDestroySpMat(gone.matrix));
    CHECK(tarsiaFree(handle, gone.values));
}

int main(void) {
    static double u[ROWS], f[ROWS], source[ROWS], d[ROWS], r[ROWS], z[ROWS], p[ROWS], Jp[ROWS];
    const double one = 1, zero = 0;
    const int32_t nnz = laplacian();
    tarsiaHandle_t handle;
    tarsiaDnVecDescr_t vecU, vecSource, vecF, vecP, vecJp;

    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, (size_t)nnz * sizeof *columns);
    void *dU = upload(handle, u, sizeof u), *dSource = upload(handle, source, sizeof source);
    void *dF = upload(handle, f, sizeof f);
    void *dP = upload(handle, p, sizeof p), *dJp = upload(handle, Jp, sizeof Jp);
    CHECK(tarsiaCreateDnVec(&vecU, ROWS, dU, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecSource, ROWS, dSource, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecF, ROWS, dF, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecP, ROWS, dP, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecJp, ROWS, dJp, TARSIA_R_64F));
    const Product L = product(handle, dOffsets, dColumns, stencil, nnz, 0, MOST_STEPS);
    /* Analyzed while all of its values are 0. */
    const Product J = product(handle, dOffsets, dColumns, jacobian, nnz, 1, MOST_STEPS * 3 * N);

    printf("%d unknowns, %d stored entries, lambda %g\n", ROWS, (int)nnz, lambda);
    printf("step  |F| / |F(0)|   over the last one's square   iterations\n");
    double first = 0, last = 0;
    int steps = 0, iterations = 0, converged = 0;
    for (;; steps++) {
        /* F = L u + source */
        for (int i = 0; i < ROWS; i++)
            source[i] = -h * h * lambda * exp(u[i]);
        CHECK(tarsiaMemcpyToDevice(handle, dU, u, sizeof u));
        CHECK(tarsiaMemcpyToDevice(handle, dSource, source, sizeof source));
        CHECK(tarsiaSpMV_into(handle, L.plan, &one, vecU, &one, vecSource, vecF));
        CHECK(tarsiaMemcpyToHost(handle, f, dF, sizeof f));
        const double norm = sqrt(dot(f, f));
        if (steps == 0) {
            first = norm;
            printf("%4d  %.3e\n", steps, 1.0);
        } else {
            const double now = norm / first;
            printf("%4d  %.3e      %8.3f                     %10d\n", steps, now,
                   now / (last * last), iterations);
        }
        last = norm / first;
        converged = last <= tolerance;
        if (converged || steps == MOST_STEPS || !isfinite(norm))
            break;

        /* The Jacobian at u, into the array that its plan reads. */
        for (int32_t at = 0; at < nnz; at++)
            jacobian[at] = stencil[at];
        for (int i = 0; i < ROWS; i++)
            jacobian[diagonal[i]] += source[i];
        CHECK(tarsiaMemcpyToDevice(handle, J.values, jacobian, (size_t)nnz * sizeof *jacobian));

        /* J d = -F, from d = 0; far enough that what is left does not show in the next F. */
        for (int i = 0; i < ROWS; i++) {
            d[i] = 0;
            r[i] = -f[i];
            p[i] = z[i] = r[i] / jacobian[diagonal[i]];
        }
        double rz = dot(r, z);
        for (iterations = 0; iterations < MOST_ITERATIONS; iterations++) {
            if (sqrt(dot(r, r)) <= 1e-3 * fmin(1, last) * norm)
                break;
            CHECK(tarsiaMemcpyToDevice(handle, dP, p, sizeof p));
            CHECK(tarsiaSpMV(handle, J.plan, &one, vecP, &zero, vecJp));
            CHECK(tarsiaMemcpyToHost(handle, Jp, dJp, sizeof Jp));
            const double step = rz / dot(p, Jp);
            for (int i = 0; i < ROWS; i++) {
                d[i] += step * p[i];
                r[i] -= step * Jp[i];
                z[i] = r[i] / jacobian[diagonal[i]];
            }
            const double next = dot(r, z), turn = next / rz;
            for (int i = 0; i < ROWS; i++)
                p[i] = z[i] + turn * p[i];
            rz = next;
        }
        for (int i = 0; i < ROWS; i++)
            u[i] += d[i];
    }

    double size, highest = 0;
    const double worst = residual_by_loops(u, &size);
    for (int i = 0; i < ROWS; i++)
        highest = fmax(highest, u[i]);
    printf("largest u %.6f, largest |F| by plain loops %.2e\n", highest, worst);
    if (!converged) {
        fprintf(stderr, "no convergence to %g in %d steps\n", tolerance, MOST_STEPS);
        return 1;
    }
    /* No element is above the norm, and both ways to add a row round a few times. */
    if (!(worst <= tolerance * first + 1e-15 * size)) {
        fprintf(stderr, "plain loops find another residual\n");
        return 1;
    }

    destroy(handle, J);
    destroy(handle, L);
    tarsiaDnVecDescr_t vectors[] = {vecU, vecSource, vecF, vecP, vecJp};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        CHECK(tarsiaDestroyDnVec(vectors[i]));
    void *arrays[] = {dOffsets, dColumns, dU, dSource, dF, dP, dJp};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(tarsiaFree(handle, arrays[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
