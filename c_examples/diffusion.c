// SPDX-License-Identifier: MIT OR Apache-2.0
/* C = alpha A B + beta C with dense B and C: eight quantities on the nodes of a ring spread to
 * their neighbours, X' = (1 - r) X + r A X, step by step between two arrays. Three ways to
 * multiply: tarsiaSpMM overwrites C, tarsiaSpMM_into has a separate result, and tarsiaSpMM_once
 * needs no plan. At the end a plan with an algorithm and blocks by name gives the same as the
 * library's choice. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tarsia.h>

enum { NODES = 500, QUANTITIES = 8, NNZ = 2 * NODES, SIZE = NODES * QUANTITIES, STEPS = 6 };

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

/* Each node's neighbours on the ring, a half each. */
static int32_t offsets[NODES + 1], columns[NNZ];
static double values[NNZ];
static double X[SIZE], expected[SIZE], next[SIZE], result[SIZE];

static void ring(void) {
    for (int i = 0; i < NODES; i++) {
        const int left = (i + NODES - 1) % NODES, right = (i + 1) % NODES;

        offsets[i] = 2 * i;
        columns[2 * i] = left < right ? left : right;
        columns[2 * i + 1] = left < right ? right : left;
        values[2 * i] = values[2 * i + 1] = 0.5;
    }
    offsets[NODES] = NNZ;
}

/* One step on the host: next = keep * expected + r * A * expected. */
static void step_on_host(double keep, double r) {
    for (int i = 0; i < NODES; i++)
        for (int q = 0; q < QUANTITIES; q++) {
            double sum = 0;
            for (int p = offsets[i]; p < offsets[i + 1]; p++)
                sum += values[p] * expected[columns[p] * QUANTITIES + q];
            next[i * QUANTITIES + q] = keep * expected[i * QUANTITIES + q] + r * sum;
        }
    memcpy(expected, next, sizeof next);
}

/* Compares an array on the device with what the host has computed. */
static void compare(tarsiaHandle_t handle, const void *device, const char *what) {
    CHECK(tarsiaMemcpyToHost(handle, result, device, sizeof result));
    for (int i = 0; i < SIZE; i++)
        /* Values of at most 1 and weights that add up to 1; a few roundings in every step. */
        if (!(fabs(result[i] - expected[i]) <= 1e-14)) {
            fprintf(stderr, "%s: element %d is %.17g, not %.17g\n", what, i, result[i],
                    expected[i]);
            exit(1);
        }
    printf("%s: correct\n", what);
}

int main(void) {
    const tarsiaOperation_t none = TARSIA_OPERATION_NON_TRANSPOSE;
    const double r = 0.3, keep = 0.7, one = 1, zero = 0;

    ring();
    for (int i = 0; i < SIZE; i++)
        expected[i] = X[i] = sin(0.01 * i * (1 + i % QUANTITIES));

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof columns);
    void *dValues = upload(handle, values, sizeof values);
    void *arrays[2] = {upload(handle, X, sizeof X), upload(handle, X, sizeof X)};
    tarsiaSpMatDescr_t A;
    CHECK(tarsiaCreateCsr(&A, NODES, NODES, NNZ, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    /* Stored by rows, which is the fast order on a GPU: the quantities of a node are neighbours. */
    tarsiaDnMatDescr_t now, then;
    CHECK(tarsiaCreateDnMat(&now, NODES, QUANTITIES, QUANTITIES, arrays[0], TARSIA_R_64F,
                            TARSIA_ORDER_ROW));
    CHECK(tarsiaCreateDnMat(&then, NODES, QUANTITIES, QUANTITIES, arrays[1], TARSIA_R_64F,
                            TARSIA_ORDER_ROW));

    /* The plan is told the orders and the usual number of columns. */
    tarsiaPlan_t plan;
    CHECK(tarsiaSpMM_createPlan(handle, &plan, none, none, A, TARSIA_ORDER_ROW, TARSIA_ORDER_ROW,
                                QUANTITIES, TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                TARSIA_SPMM_ALG_DEFAULT));
    CHECK(tarsiaPlan_analyze(handle, plan));

    /* D = r A B + keep C, where C is B: the result goes into the other array. */
    for (int s = 0; s < STEPS; s++) {
        void *from = arrays[s % 2], *to = arrays[(s + 1) % 2];
        CHECK(tarsiaDnMatSetValues(now, from));
        CHECK(tarsiaDnMatSetValues(then, to));
        CHECK(tarsiaSpMM_into(handle, plan, &r, now, &keep, now, then));
        step_on_host(keep, r);
    }
    compare(handle, arrays[STEPS % 2], "tarsiaSpMM_into, 6 steps");

    /* C = A B: beta is 0, and C is not read. */
    CHECK(tarsiaDnMatSetValues(now, arrays[0]));
    CHECK(tarsiaDnMatSetValues(then, arrays[1]));
    CHECK(tarsiaSpMM(handle, plan, &one, now, &zero, then));
    step_on_host(0, 1);
    compare(handle, arrays[1], "tarsiaSpMM");
    CHECK(tarsiaPlan_destroy(plan));

    /* For a matrix that is used once. */
    CHECK(tarsiaSpMM_once(handle, none, none, &one, A, then, &zero, now, TARSIA_COMPUTE_64F));
    step_on_host(0, 1);
    compare(handle, arrays[0], "tarsiaSpMM_once");

    /* By name: dense blocks of 16 x 8 for matrix units, with the rows in the user's order. */
    tarsiaPlanInfo_t info = {.structSize = sizeof info};
    CHECK(tarsiaSpMM_createPlan(handle, &plan, none, none, A, TARSIA_ORDER_ROW, TARSIA_ORDER_ROW,
                                QUANTITIES, TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                TARSIA_SPMM_ALG_SMAT));
    CHECK(tarsiaPlan_setBlockDims(plan, 16, 8));
    CHECK(tarsiaPlan_setReorder(plan, TARSIA_REORDER_NONE));
    CHECK(tarsiaPlan_analyze(handle, plan));
    CHECK(tarsiaPlan_getInfo(plan, &info));
    printf("%s: %.1f slots for each entry\n", info.algorithmName, info.fill);
    if (info.algorithm != TARSIA_SPMM_ALG_SMAT || info.reorder != TARSIA_REORDER_NONE)
        return 1;
    CHECK(tarsiaSpMM(handle, plan, &one, now, &zero, then));
    step_on_host(0, 1);
    compare(handle, arrays[1], "tarsiaSpMM by smat");

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroyDnMat(now));
    CHECK(tarsiaDestroyDnMat(then));
    CHECK(tarsiaDestroySpMat(A));
    void *all[] = {dOffsets, dColumns, dValues, arrays[0], arrays[1]};
    for (int i = 0; i < 5; i++)
        CHECK(tarsiaFree(handle, all[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
