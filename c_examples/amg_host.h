// SPDX-License-Identifier: MIT OR Apache-2.0
/* The part of amg_setup.c that needs no library: the two problems, aggregation, and the tentative
 * prolongator, all in host memory. */

#ifndef AMG_HOST_H
#define AMG_HOST_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 6, CORNERS = 8 };

static void fail(const char *message) {
    fprintf(stderr, "%s\n", message);
    exit(1);
}

/* count elements of size bytes, zero. */
static void *allocate(size_t count, size_t size) {
    void *array = calloc(count ? count : 1, size);
    if (!array)
        fail("out of memory");
    return array;
}

/* CSR, base 0. */
typedef struct {
    int32_t rows, cols, nnz;
    int32_t *offsets, *columns;
    double *values;
} Csr;

static size_t offset_bytes(const Csr *M) { return ((size_t)M->rows + 1) * sizeof(int32_t); }
static size_t column_bytes(const Csr *M) { return (size_t)M->nnz * sizeof(int32_t); }
static size_t value_bytes(const Csr *M) { return (size_t)M->nnz * sizeof(double); }

/* A matrix with room for nnz entries. */
static Csr new_csr(int32_t rows, int32_t cols, int32_t nnz) {
    Csr M = {.rows = rows, .cols = cols, .nnz = nnz};
    M.offsets = allocate((size_t)rows + 1, sizeof *M.offsets);
    M.columns = allocate((size_t)nnz, sizeof *M.columns);
    M.values = allocate((size_t)nnz, sizeof *M.values);
    return M;
}

static void free_csr(Csr *M) {
    free(M->offsets);
    free(M->columns);
    free(M->values);
}

/* ---- The problems ---------------------------------------------------------------------------- */

/* Vectors that A takes to (almost) nothing, by rows. */
typedef struct {
    int block, modes; /* unknowns of a node, number of vectors */
    double *vectors;
} NearNull;

typedef struct {
    const char *name;
    void (*assemble)(int n, int round, Csr *A); /* values of round 0 or 1 into A */
    Csr A;                                      /* with those of round 0 */
    NearNull near_null;
} Problem;

/* The material at a point of the unit cube; other values of the same pattern in round 1. */
static double coefficient(double x, double y, double z, int round) {
    return round == 0 ? 1 : 1 + 0.6 * sin(5 * x + 1) * cos(4 * y) * sin(3 * z + 2);
}

/* -div(c grad u) with u = 0 around the cube: differences over 7 points. */
static void assemble_poisson(int n, int round, Csr *A) {
    const double h = 1.0 / (n + 1);
    int32_t row = 0, nnz = 0;

    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++, row++) {
                const double x = (i + 1) * h, y = (j + 1) * h, z = (k + 1) * h, f = h / 2;
                const int step[7] = {-n * n, -n, -1, 0, 1, n, n * n};
                const int inside[7] = {k > 0, j > 0, i > 0, 1, i < n - 1, j < n - 1, k < n - 1};
                double entry[7] = {coefficient(x, y, z - f, round), coefficient(x, y - f, z, round),
                                   coefficient(x - f, y, z, round), 0,
                                   coefficient(x + f, y, z, round), coefficient(x, y + f, z, round),
                                   coefficient(x, y, z + f, round)};
                for (int s = 0; s < 7; s++)
                    entry[3] -= s == 3 ? 0 : entry[s];
                for (int s = 0; s < 7; s++)
                    if (inside[s]) {
                        A->columns[nnz] = row + step[s];
                        A->values[nnz++] = -entry[s];
                    }
                A->offsets[row + 1] = nnz;
            }
    A->nnz = nnz;
}

static Problem poisson(int n) {
    const int32_t rows = n * n * n;
    Problem p = {.name = "Poisson", .assemble = assemble_poisson, .near_null = {1, 1, NULL}};

    p.A = new_csr(rows, rows, 7 * rows);
    assemble_poisson(n, 0, &p.A);
    p.near_null.vectors = allocate((size_t)rows, sizeof(double));
    for (int32_t i = 0; i < rows; i++)
        p.near_null.vectors[i] = 1; /* constants */
    return p;
}

/* Stiffness of a cube of side h with Young's modulus 1 and Poisson's ratio 0.3: trilinear functions
 * (corner c at (c & 1, c >> 1 & 1, c >> 2) h), two Gauss points in each direction. */
static void element_stiffness(double h, double K[3 * CORNERS][3 * CORNERS]) {
    const double nu = 0.3, mu = 1 / (2 * (1 + nu)), lambda = nu / ((1 + nu) * (1 - 2 * nu));
    const double gauss[2] = {0.5 - sqrt(3) / 6, 0.5 + sqrt(3) / 6};

    memset(K, 0, 3 * CORNERS * sizeof *K);
    for (int point = 0; point < 8; point++) {
        double gradient[CORNERS][3];
        for (int c = 0; c < CORNERS; c++) {
            double f[3], df[3];
            for (int d = 0; d < 3; d++) {
                const double at = gauss[point >> d & 1];
                f[d] = c >> d & 1 ? at : 1 - at;
                df[d] = (c >> d & 1 ? 1 : -1) / h;
            }
            gradient[c][0] = df[0] * f[1] * f[2];
            gradient[c][1] = f[0] * df[1] * f[2];
            gradient[c][2] = f[0] * f[1] * df[2];
        }
        const double weight = h * h * h / 8;
        for (int a = 0; a < CORNERS; a++)
            for (int b = 0; b < CORNERS; b++) {
                const double *ga = gradient[a], *gb = gradient[b];
                const double inner = ga[0] * gb[0] + ga[1] * gb[1] + ga[2] * gb[2];
                for (int d = 0; d < 3; d++)
                    for (int e = 0; e < 3; e++)
                        K[3 * a + d][3 * b + e] +=
                            weight * (lambda * ga[d] * gb[e] + mu * ga[e] * gb[d] +
                                      (d == e ? mu * inner : 0));
            }
    }
}

/* Values of the elasticity problem into the pattern of A. Nodes are numbered with i fastest; the
 * side i = -1, which has no unknowns, is clamped. */
static void assemble_elasticity(int n, int round, Csr *A) {
    const double h = 1.0 / n;
    double K[3 * CORNERS][3 * CORNERS];

    element_stiffness(h, K);
    memset(A->values, 0, value_bytes(A));
    for (int k = 0; k < n - 1; k++)
        for (int j = 0; j < n - 1; j++)
            for (int i = -1; i < n - 1; i++) {
                const double E = coefficient((i + 1.5) * h, (j + 0.5) * h, (k + 0.5) * h, round);
                for (int a = 0; a < 3 * CORNERS; a++)
                    for (int b = 0; b < 3 * CORNERS; b++) {
                        const int ca = a / 3, cb = b / 3;
                        if (i + (ca & 1) < 0 || i + (cb & 1) < 0)
                            continue;
                        const int node =
                            ((k + (ca >> 2)) * n + j + (ca >> 1 & 1)) * n + i + (ca & 1);
                        const int other =
                            ((k + (cb >> 2)) * n + j + (cb >> 1 & 1)) * n + i + (cb & 1);
                        int32_t p = A->offsets[3 * node + a % 3];
                        while (A->columns[p] != 3 * other + b % 3)
                            p++;
                        A->values[p] += E * K[a][b];
                    }
            }
}

static Problem elasticity(int n) {
    const int32_t rows = 3 * n * n * n;
    Problem p = {.name = "Elasticity", .assemble = assemble_elasticity};
    int32_t nnz = 0, row = 0;

    p.A = new_csr(rows, rows, 81 * rows);
    p.near_null = (NearNull){3, MODES, allocate((size_t)rows * MODES, sizeof(double))};
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                for (int d = 0; d < 3; d++, row++) {
                    for (int32_t s = 0; s < 27; s++) {
                        const int I = i + s % 3 - 1, J = j + s / 3 % 3 - 1, K = k + s / 9 - 1;
                        if (I < 0 || J < 0 || K < 0 || I >= n || J >= n || K >= n)
                            continue;
                        for (int e = 0; e < 3; e++)
                            p.A.columns[nnz++] = 3 * ((K * n + J) * n + I) + e;
                    }
                    p.A.offsets[row + 1] = nnz;
                    /* Three translations, and rotations about the middle of the cube. */
                    const double x[3] = {(double)i / n - 0.5, (double)j / n - 0.5,
                                         (double)k / n - 0.5};
                    double *mode = p.near_null.vectors + (size_t)row * MODES;
                    mode[d] = 1;
                    mode[3 + (d + 1) % 3] = x[(d + 2) % 3];
                    mode[3 + (d + 2) % 3] = -x[(d + 1) % 3];
                }
    p.A.nnz = nnz;
    assemble_elasticity(n, 0, &p.A);
    return p;
}

/* ---- Aggregation ----------------------------------------------------------------------------- */

/* Which nodes are connected strongly: |A_ij|^2 > theta^2 |A_ii| |A_jj|, in the norms of Frobenius
 * of the blocks of the nodes. */
typedef struct {
    int32_t nodes, *offsets, *neighbours;
    double *weights;
} Graph;

static Graph strong_connections(const Csr *A, int block, double theta) {
    const int32_t nodes = A->rows / block;
    Graph graph = {.nodes = nodes};
    double *diagonal = allocate((size_t)nodes, sizeof *diagonal);
    double *squares = allocate((size_t)nodes, sizeof *squares);
    int32_t count = 0;

    graph.offsets = allocate((size_t)nodes + 1, sizeof *graph.offsets);
    graph.neighbours = allocate((size_t)A->nnz, sizeof *graph.neighbours);
    graph.weights = allocate((size_t)A->nnz, sizeof *graph.weights);
    for (int32_t p = 0, row = 0; p < A->nnz; p++) {
        while (p >= A->offsets[row + 1])
            row++;
        if (A->columns[p] / block == row / block)
            diagonal[row / block] += A->values[p] * A->values[p];
    }
    for (int32_t node = 0; node < nodes; node++) {
        const int32_t first = A->offsets[node * block], end = A->offsets[(node + 1) * block];
        for (int32_t p = first; p < end; p++)
            squares[A->columns[p] / block] += A->values[p] * A->values[p];
        /* The rows of a node name a neighbour several times: the first takes it. */
        for (int32_t p = first; p < end; p++) {
            const int32_t other = A->columns[p] / block;
            const double square = squares[other];
            squares[other] = 0;
            if (other != node && square > theta * theta * sqrt(diagonal[node] * diagonal[other])) {
                graph.neighbours[count] = other;
                graph.weights[count++] = square;
            }
        }
        graph.offsets[node + 1] = count;
    }
    free(squares);
    free(diagonal);
    return graph;
}

static void free_graph(Graph *graph) {
    free(graph->offsets);
    free(graph->neighbours);
    free(graph->weights);
}

/* Number of aggregates; aggregate[i] is that of node i. */
static int32_t aggregate_nodes(const Graph *graph, int32_t *aggregate) {
    int32_t count = 0;

    for (int32_t i = 0; i < graph->nodes; i++)
        aggregate[i] = -1;
    /* A node whose strong neighbours are all free makes an aggregate with them. */
    for (int32_t i = 0; i < graph->nodes; i++) {
        int taken = aggregate[i] >= 0;
        for (int32_t p = graph->offsets[i]; p < graph->offsets[i + 1] && !taken; p++)
            taken = aggregate[graph->neighbours[p]] >= 0;
        if (taken || graph->offsets[i] == graph->offsets[i + 1])
            continue;
        for (int32_t p = graph->offsets[i]; p < graph->offsets[i + 1]; p++)
            aggregate[graph->neighbours[p]] = count;
        aggregate[i] = count++;
    }
    /* The others join the aggregate of the neighbour that they are connected to most; only those of
     * the pass before count, or an aggregate would grow into a chain: they are marked first. */
    const int32_t first_pass = count;
    for (int32_t i = 0; i < graph->nodes; i++) {
        double most = 0;
        if (aggregate[i] >= 0)
            continue;
        for (int32_t p = graph->offsets[i]; p < graph->offsets[i + 1]; p++) {
            const int32_t other = aggregate[graph->neighbours[p]];
            if (other >= 0 && other < first_pass && graph->weights[p] > most) {
                most = graph->weights[p];
                aggregate[i] = first_pass + other;
            }
        }
    }
    for (int32_t i = 0; i < graph->nodes; i++)
        if (aggregate[i] >= first_pass)
            aggregate[i] -= first_pass;
    /* What has no strong neighbour in any goes with those that are left. */
    for (int32_t i = 0; i < graph->nodes; i++) {
        if (aggregate[i] >= 0)
            continue;
        for (int32_t p = graph->offsets[i]; p < graph->offsets[i + 1]; p++)
            if (aggregate[graph->neighbours[p]] < 0)
                aggregate[graph->neighbours[p]] = count;
        aggregate[i] = count++;
    }
    return count;
}

/* P0: in the columns of an aggregate, an orthonormal basis of the near-null space on its rows, by
 * Gram and Schmidt (twice, which is enough). coarse gets the triangular factors. */
static Csr tentative_prolongator(int32_t rows, const NearNull *space, const int32_t *aggregate,
                                 int32_t count, double *coarse) {
    const int block = space->block, modes = space->modes;
    const int32_t nodes = rows / block;
    Csr P = new_csr(rows, count * modes, rows * modes);
    int32_t *starts = allocate((size_t)count + 2, sizeof *starts);
    int32_t *members = allocate((size_t)nodes, sizeof *members);

    /* Nodes by aggregates. */
    for (int32_t i = 0; i < nodes; i++)
        starts[aggregate[i] + 2]++;
    for (int32_t a = 0; a < count; a++)
        starts[a + 2] += starts[a + 1];
    for (int32_t i = 0; i < nodes; i++)
        members[starts[aggregate[i] + 1]++] = i;
    for (int32_t i = 0; i < rows; i++) {
        P.offsets[i + 1] = (i + 1) * modes;
        for (int m = 0; m < modes; m++)
            P.columns[i * modes + m] = aggregate[i / block] * modes + m;
    }
    memcpy(P.values, space->vectors, value_bytes(&P));

    for (int32_t a = 0; a < count; a++) {
        const int32_t size = (starts[a + 1] - starts[a]) * block;
        double *R = coarse + (size_t)a * (size_t)(modes * modes);
/* Row r of the aggregate, of its member nodes one after the other. */
#define Q(r, m) P.values[(members[starts[a] + (r) / block] * block + (r) % block) * modes + (m)]
        for (int m = 0; m < modes; m++) {
            double before = 0, norm = 0;
            for (int32_t r = 0; r < size; r++)
                before += Q(r, m) * Q(r, m);
            for (int pass = 0; pass < 2; pass++)
                for (int l = 0; l < m; l++) {
                    double dot = 0;
                    for (int32_t r = 0; r < size; r++)
                        dot += Q(r, l) * Q(r, m);
                    for (int32_t r = 0; r < size; r++)
                        Q(r, m) -= dot * Q(r, l);
                    R[l * modes + m] += dot;
                }
            for (int32_t r = 0; r < size; r++)
                norm += Q(r, m) * Q(r, m);
            if (!(norm > 1e-20 * before))
                fail("an aggregate has too few nodes for the near-null space");
            R[m * modes + m] = norm = sqrt(norm);
            for (int32_t r = 0; r < size; r++)
                Q(r, m) /= norm;
        }
#undef Q
    }
    free(members);
    free(starts);
    return P;
}

#endif
