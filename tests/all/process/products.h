/* Products of one matrix with every operation and effort, on any backend, and a hash of their bits.
 * The programs of this folder run them before and after an event in their process. */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarsia.h"

/* Large enough for the host backend to share the work among threads. */
enum { ROWS = 20000, PER_ROW = 9, NNZ = ROWS * PER_ROW, COLUMNS = 8 };

static char last_message[1024];

/* Ends the program, with the library's text, if a call has failed. */
static void check(tarsiaStatus_t status, const char *call) {
    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(last_message, sizeof last_message);
    fprintf(stderr, "%s: %s: %s\n", call, tarsiaGetErrorName(status), last_message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* Returns the FNV-1a hash (Fowler, Noll, Vo) of 64 bits. */
static uint64_t hash_of(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    while (count--)
        hash = (hash ^ *byte++) * 0x100000001b3u;
    return hash;
}
#define HASH_START 0xcbf29ce484222325u

/* A matrix and dense arrays in a backend's memory. */
typedef struct {
    tarsiaHandle_t handle;
    int32_t *offsets, *columns;
    double *values, *x, *y, *B, *C;
    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t x_descr, y_descr;
    tarsiaDnMatDescr_t B_descr, C_descr;
} World;

static void *array(tarsiaHandle_t handle, const void *host, size_t bytes) {
    void *device;
    CHECK(tarsiaMalloc(handle, &device, bytes));
    CHECK(tarsiaMemcpyToDevice(handle, device, host, bytes));
    return device;
}

/* Returns a number with a full mantissa in (-1, 1), times a power of 2 between 2^-exponents and 1,
 * made of the seed by splitmix64. Large exponents make subnormals and products that underflow. */
static double number(uint64_t seed, int exponents) {
    uint64_t z = seed * 0x9e3779b97f4a7c15u + 0x123456789u;
    double value;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    value = (double)(int64_t)(z >> 10) / 9007199254740992.0 - 1;
    for (int halvings = exponents ? (int)(z % (unsigned)exponents) : 0; halvings > 0; halvings--)
        value /= 2;
    return value;
}

static World open_world(tarsiaHandle_t handle, int exponents) {
    World w;
    int32_t *offsets = malloc((ROWS + 1) * sizeof *offsets),
            *columns = malloc(NNZ * sizeof *columns);
    double *values = malloc(NNZ * sizeof *values),
           *dense = malloc((size_t)ROWS * COLUMNS * sizeof *dense);
    if (!offsets || !columns || !values || !dense)
        exit(2);
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = i * PER_ROW;
    for (int p = 0; p < NNZ; p++) {
        /* Columns of a row ascend: there is one in each of nine ranges of 2000 columns. */
        int first = p / PER_ROW * 7 % 2000;
        columns[p] = first + p % PER_ROW * 2000 + (int)((unsigned)p * 2654435761u % 1999u);
        if (columns[p] >= ROWS)
            columns[p] = ROWS - 1;
        values[p] = number((uint64_t)p, exponents);
    }
    for (int i = 0; i < ROWS * COLUMNS; i++)
        dense[i] = number((uint64_t)i + NNZ, exponents);
    memset(&w, 0, sizeof w);
    w.handle = handle;
    w.offsets = array(handle, offsets, (ROWS + 1) * sizeof *offsets);
    w.columns = array(handle, columns, NNZ * sizeof *columns);
    w.values = array(handle, values, NNZ * sizeof *values);
    w.x = array(handle, dense, ROWS * sizeof *dense);
    w.y = array(handle, dense, ROWS * sizeof *dense);
    w.B = array(handle, dense, (size_t)ROWS * COLUMNS * sizeof *dense);
    w.C = array(handle, dense, (size_t)ROWS * COLUMNS * sizeof *dense);
    CHECK(tarsiaCreateCsr(&w.A, ROWS, ROWS, NNZ, w.offsets, w.columns, w.values, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&w.x_descr, ROWS, w.x, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&w.y_descr, ROWS, w.y, TARSIA_R_64F));
    CHECK(
        tarsiaCreateDnMat(&w.B_descr, ROWS, COLUMNS, COLUMNS, w.B, TARSIA_R_64F, TARSIA_ORDER_ROW));
    CHECK(
        tarsiaCreateDnMat(&w.C_descr, ROWS, COLUMNS, COLUMNS, w.C, TARSIA_R_64F, TARSIA_ORDER_ROW));
    free(offsets);
    free(columns);
    free(values);
    free(dense);
    return w;
}

static void close_world(World *w) {
    void *arrays[] = {w->offsets, w->columns, w->values, w->x, w->y, w->B, w->C};
    CHECK(tarsiaDestroySpMat(w->A));
    CHECK(tarsiaDestroyDnVec(w->x_descr));
    CHECK(tarsiaDestroyDnVec(w->y_descr));
    CHECK(tarsiaDestroyDnMat(w->B_descr));
    CHECK(tarsiaDestroyDnMat(w->C_descr));
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        CHECK(tarsiaFree(w->handle, arrays[i]));
}

/* Adds the bits of a backend's array to a hash. */
static uint64_t hash_array(const World *w, uint64_t hash, const void *device, size_t bytes) {
    void *host = malloc(bytes ? bytes : 1);
    if (!host)
        exit(2);
    CHECK(tarsiaMemcpyToHost(w->handle, host, device, bytes));
    hash = hash_of(hash, host, bytes);
    free(host);
    return hash;
}

static tarsiaPlan_t spmv_plan(const World *w, tarsiaEffort_t effort, tarsiaSpMVAlg_t algorithm) {
    tarsiaPlan_t plan;
    CHECK(tarsiaSpMV_createPlan(w->handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, w->A,
                                TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F, algorithm));
    CHECK(tarsiaPlan_setEffort(plan, effort));
    CHECK(tarsiaPlan_analyze(w->handle, plan));
    return plan;
}

/* Computes y = A x by an analyzed plan, and returns a hash of the bits of y. */
static uint64_t spmv(const World *w, tarsiaPlan_t plan) {
    const double one = 1, zero = 0;
    CHECK(tarsiaSpMV(w->handle, plan, &one, w->x_descr, &zero, w->y_descr));
    return hash_array(w, HASH_START, w->y, ROWS * sizeof *w->y);
}

/* Computes C = A B by a new plan, and returns a hash of the bits of C. */
static uint64_t spmm(const World *w, tarsiaSpMMAlg_t algorithm) {
    const double one = 1, zero = 0;
    tarsiaPlan_t plan;
    CHECK(tarsiaSpMM_createPlan(w->handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                TARSIA_OPERATION_NON_TRANSPOSE, w->A, TARSIA_ORDER_ROW,
                                TARSIA_ORDER_ROW, COLUMNS, TARSIA_R_64F, TARSIA_R_64F,
                                TARSIA_COMPUTE_64F, algorithm));
    CHECK(tarsiaPlan_analyze(w->handle, plan));
    CHECK(tarsiaSpMM(w->handle, plan, &one, w->B_descr, &zero, w->C_descr));
    CHECK(tarsiaPlan_destroy(plan));
    return hash_array(w, HASH_START, w->C, (size_t)ROWS * COLUMNS * sizeof *w->C);
}

/* Computes C = A A by a new plan, and returns a hash of the bits of C. */
static uint64_t spgemm(const World *w, tarsiaSpGEMMAlg_t algorithm) {
    const double one = 1;
    uint64_t hash = HASH_START;
    tarsiaPlan_t plan;
    tarsiaSpMatDescr_t C;
    int64_t nnz;
    void *offsets, *columns, *values;
    CHECK(tarsiaSpGEMM_createPlan(w->handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                  TARSIA_OPERATION_NON_TRANSPOSE, w->A, w->A, TARSIA_COMPUTE_64F,
                                  algorithm));
    CHECK(tarsiaPlan_analyze(w->handle, plan));
    CHECK(tarsiaSpGEMM_symbolic(w->handle, plan, &nnz));
    CHECK(tarsiaMalloc(w->handle, &offsets, (ROWS + 1) * sizeof(int32_t)));
    CHECK(tarsiaMalloc(w->handle, &columns, (size_t)nnz * sizeof(int32_t)));
    CHECK(tarsiaMalloc(w->handle, &values, (size_t)nnz * sizeof(double)));
    CHECK(tarsiaCreateCsr(&C, ROWS, ROWS, nnz, offsets, columns, values, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaSpGEMM_numeric(w->handle, plan, &one, C));
    hash = hash_array(w, hash, offsets, (ROWS + 1) * sizeof(int32_t));
    hash = hash_array(w, hash, columns, (size_t)nnz * sizeof(int32_t));
    hash = hash_array(w, hash, values, (size_t)nnz * sizeof(double));
    CHECK(tarsiaDestroySpMat(C));
    CHECK(tarsiaFree(w->handle, offsets));
    CHECK(tarsiaFree(w->handle, columns));
    CHECK(tarsiaFree(w->handle, values));
    CHECK(tarsiaPlan_destroy(plan));
    return hash;
}

/* Runs every operation by each algorithm for the type, and returns a hash of all results. */
static inline uint64_t all_products(const World *w) {
    const tarsiaSpMVAlg_t spmv_algs[] = {TARSIA_SPMV_ALG_DEFAULT, TARSIA_SPMV_ALG_CSR,
                                         TARSIA_SPMV_ALG_SELL,    TARSIA_SPMV_ALG_STREAM,
                                         TARSIA_SPMV_ALG_DASP,    TARSIA_SPMV_ALG_MASK_BLOCK};
    const tarsiaSpMMAlg_t spmm_algs[] = {TARSIA_SPMM_ALG_DEFAULT, TARSIA_SPMM_ALG_ROW,
                                         TARSIA_SPMM_ALG_WINDOW,  TARSIA_SPMM_ALG_SMAT,
                                         TARSIA_SPMM_ALG_SELL,    TARSIA_SPMM_ALG_CSR};
    const tarsiaSpGEMMAlg_t spgemm_algs[] = {TARSIA_SPGEMM_ALG_HASH, TARSIA_SPGEMM_ALG_TILE};
    uint64_t hash = HASH_START, one;
    for (size_t i = 0; i < sizeof spmv_algs / sizeof *spmv_algs; i++) {
        tarsiaPlan_t plan = spmv_plan(w, TARSIA_EFFORT_DEFAULT, spmv_algs[i]);
        one = spmv(w, plan);
        hash = hash_of(hash, &one, sizeof one);
        CHECK(tarsiaPlan_destroy(plan));
    }
    for (size_t i = 0; i < sizeof spmm_algs / sizeof *spmm_algs; i++) {
        one = spmm(w, spmm_algs[i]);
        hash = hash_of(hash, &one, sizeof one);
    }
    for (size_t i = 0; i < sizeof spgemm_algs / sizeof *spgemm_algs; i++) {
        one = spgemm(w, spgemm_algs[i]);
        hash = hash_of(hash, &one, sizeof one);
    }
    return hash;
}

#endif
