// SPDX-License-Identifier: MIT OR Apache-2.0
/* How many triangles has a graph? L is the lower triangle of its adjacency matrix; row i of C = L L
 * says how many paths lead from i over a smaller node to a still smaller one, and a path is a
 * triangle if its ends are neighbours. Nobody needs the rows of C sorted: the plan is told so. A
 * first plan is allowed too little memory and says how much it would need. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { NODES = 600, DEGREE = 24, MOST = NODES * DEGREE };

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

/* adjacent[i][j] for j < i, and the same in CSR. */
static char adjacent[NODES][NODES];
static int32_t offsets[NODES + 1], columns[MOST];
static double ones[MOST];

/* Every node gets edges to random smaller ones; returns their number. */
static int32_t graph(void) {
    uint32_t state = 7;
    int32_t edges = 0;

    for (int i = 0; i < NODES; i++) {
        for (int e = 0; i > 0 && e < DEGREE; e++) {
            state = 1664525u * state + 1013904223u;
            adjacent[i][(state >> 8) % (uint32_t)i] = 1;
        }
        offsets[i] = edges;
        for (int j = 0; j < i; j++)
            if (adjacent[i][j]) {
                columns[edges] = j;
                ones[edges++] = 1;
            }
    }
    offsets[NODES] = edges;
    return edges;
}

/* The slow and obvious way. */
static int64_t count_on_host(void) {
    int64_t triangles = 0;

    for (int i = 0; i < NODES; i++)
        for (int32_t p = offsets[i]; p < offsets[i + 1]; p++)
            for (int32_t q = offsets[columns[p]]; q < offsets[columns[p] + 1]; q++)
                triangles += adjacent[i][columns[q]];
    return triangles;
}

static tarsiaPlan_t make_plan(tarsiaHandle_t handle, tarsiaSpMatDescr_t L, size_t limit) {
    tarsiaPlan_t plan;

    CHECK(tarsiaSpGEMM_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                  TARSIA_OPERATION_NON_TRANSPOSE, L, L, TARSIA_COMPUTE_64F,
                                  TARSIA_SPGEMM_ALG_DEFAULT));
    CHECK(tarsiaPlan_setSortedOutput(plan, 0));
    CHECK(tarsiaPlan_setMemoryLimit(plan, limit)); /* 0: no limit */
    return plan;
}

int main(void) {
    const int32_t edges = graph();
    const int64_t expected = count_on_host();
    const double alpha = 1;

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof *columns * (size_t)edges);
    void *dOnes = upload(handle, ones, sizeof *ones * (size_t)edges);
    tarsiaSpMatDescr_t L, C;
    CHECK(tarsiaCreateCsr(&L, NODES, NODES, edges, dOffsets, dColumns, dOnes, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));

    /* A limit that cannot be kept: some call says so, and the plan can still be destroyed. */
    int64_t nnz = 0;
    tarsiaPlan_t plan = make_plan(handle, L, 64);
    tarsiaStatus_t status = tarsiaPlan_analyze(handle, plan);
    if (status == TARSIA_STATUS_SUCCESS)
        status = tarsiaSpGEMM_symbolic(handle, plan, &nnz);
    char message[512] = "";
    CHECK(tarsiaGetLastErrorMessage(message, sizeof message));
    if (status != TARSIA_STATUS_INSUFFICIENT_RESOURCES) {
        fprintf(stderr, "64 bytes were enough: %s\n", tarsiaGetErrorName(status));
        return 1;
    }
    printf("with 64 bytes: %s\n", message);
    CHECK(tarsiaPlan_destroy(plan));

    /* Analyze, count the entries of C, make room for them, compute. */
    plan = make_plan(handle, L, 0);
    CHECK(tarsiaPlan_analyze(handle, plan));
    CHECK(tarsiaSpGEMM_symbolic(handle, plan, &nnz));
    void *dOffsetsC, *dColumnsC, *dValuesC;
    CHECK(tarsiaMalloc(handle, &dOffsetsC, sizeof offsets));
    CHECK(tarsiaMalloc(handle, &dColumnsC, sizeof(int32_t) * (size_t)nnz));
    CHECK(tarsiaMalloc(handle, &dValuesC, sizeof(double) * (size_t)nnz));
    CHECK(tarsiaCreateCsr(&C, NODES, NODES, nnz, dOffsetsC, dColumnsC, dValuesC, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaSpGEMM_numeric(handle, plan, &alpha, C));

    /* Nothing is promised of the order, so the descriptor does not call the matrix sorted. */
    int sorted = 1;
    CHECK(tarsiaSpMatGetSorted(C, &sorted));
    if (sorted)
        return 1;

    int32_t *offsetsC = malloc(sizeof offsets), *columnsC = malloc(sizeof(int32_t) * (size_t)nnz);
    double *valuesC = malloc(sizeof(double) * (size_t)nnz);
    if (!offsetsC || !columnsC || !valuesC)
        return 1;
    CHECK(tarsiaMemcpyToHost(handle, offsetsC, dOffsetsC, sizeof offsets));
    CHECK(tarsiaMemcpyToHost(handle, columnsC, dColumnsC, sizeof(int32_t) * (size_t)nnz));
    CHECK(tarsiaMemcpyToHost(handle, valuesC, dValuesC, sizeof(double) * (size_t)nnz));
    double triangles = 0;
    for (int i = 0; i < NODES; i++)
        for (int32_t p = offsetsC[i]; p < offsetsC[i + 1]; p++)
            triangles += adjacent[i][columnsC[p]] ? valuesC[p] : 0;
    printf("%d edges, %.0f triangles\n", (int)edges, triangles);
    if (triangles != (double)expected || expected == 0) { /* whole numbers: exact */
        fprintf(stderr, "there are %lld\n", (long long)expected);
        return 1;
    }

    free(offsetsC);
    free(columnsC);
    free(valuesC);
    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroySpMat(C));
    CHECK(tarsiaDestroySpMat(L));
    void *all[] = {dOffsets, dColumns, dOnes, dOffsetsC, dColumnsC, dValuesC};
    for (int i = 0; i < 6; i++)
        CHECK(tarsiaFree(handle, all[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
