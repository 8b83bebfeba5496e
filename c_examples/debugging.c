// SPDX-License-Identifier: MIT OR Apache-2.0
/* Help while a program is being written: which library and backend are these, a logger that hears
 * of failures and choices, checks that find a forgotten tarsiaPlan_updateValues, deterministic
 * mode, and the reference backend, which computes the same on one thread in the most obvious way.
 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { ROWS = 200, NNZ = 2 * ROWS };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s (%s): %s\n", call, tarsiaGetErrorName(status),
            tarsiaGetErrorString(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* Ends the program where something is not as this file says. */
static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(1);
    }
}
#define EXPECT(condition) expect((condition), #condition)

static void *upload(tarsiaHandle_t handle, const void *host, size_t bytes) {
    void *device;

    CHECK(tarsiaMalloc(handle, &device, bytes));
    CHECK(tarsiaMemcpyToDevice(handle, device, host, bytes));
    return device;
}

/* Counts lines by level, and prints them. No lock of the library is held here. */
static void log_line(void *context, tarsiaLogLevel_t level, const char *message) {
    static const char *names[] = {"", "error", "warning", "info"};
    int *lines = context;

    lines[level]++;
    printf("    log, %s: %s\n", names[level], message);
}

/* The library and the handle, as a bug report should have them. */
static void environment(tarsiaHandle_t handle) {
    static const char *backends[] = {"auto", "host", "cuda", "reference"};
    int version, major, minor, device, threads, flag;
    tarsiaBackend_t backend;
    tarsiaPointerMode_t mode;
    void *stream;

    CHECK(tarsiaGetVersion(&version));
    CHECK(tarsiaGetProperty(TARSIA_PROPERTY_MAJOR_VERSION, &major));
    CHECK(tarsiaGetProperty(TARSIA_PROPERTY_MINOR_VERSION, &minor));
    EXPECT(version / 100 == 100 * major + minor);
    EXPECT(version == TARSIA_VERSION); /* the header that this file was compiled with */
    CHECK(tarsiaGetBackend(handle, &backend));
    CHECK(tarsiaGetDevice(handle, &device));
    CHECK(tarsiaSetNumThreads(2)); /* of the host backend; 0 is the default again */
    CHECK(tarsiaGetNumThreads(&threads));
    EXPECT(threads >= 1 && threads <= 2);
    CHECK(tarsiaSetNumThreads(0));
    printf("tarsia %d.%d, backend %s, device %d\n", major, minor, backends[backend], device);

    /* Settings, and what they are after create. */
    CHECK(tarsiaGetStream(handle, &stream));
    CHECK(tarsiaGetPointerMode(handle, &mode));
    EXPECT(stream == NULL && mode == TARSIA_POINTER_MODE_HOST);
    CHECK(tarsiaGetDeterministic(handle, &flag));
    EXPECT(flag == 0);
    CHECK(tarsiaGetChecks(handle, &flag));
    EXPECT(flag == 0);
}

static tarsiaPlan_t make_plan(tarsiaHandle_t handle, tarsiaSpMatDescr_t A, tarsiaEffort_t effort) {
    tarsiaPlan_t plan;

    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_R_64F,
                                TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_setEffort(plan, effort));
    return plan;
}

int main(void) {
    static int32_t offsets[ROWS + 1], columns[NNZ];
    static double values[NNZ], x[ROWS], y[ROWS], reference[ROWS];
    const double alpha = 1, beta = 0;
    int lines[4] = {0};

    for (int i = 0; i < ROWS; i++) {
        offsets[i] = 2 * i;
        columns[2 * i] = i / 2;
        columns[2 * i + 1] = ROWS / 2 + i / 2;
        values[2 * i] = 0.1 * i;
        values[2 * i + 1] = 1 - 0.01 * i;
        x[i] = sin(0.7 * i);
    }
    offsets[ROWS] = NNZ;

    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    environment(handle);
    CHECK(tarsiaSetLogger(handle, log_line, lines));
    CHECK(tarsiaSetChecks(handle, 1)); /* slow, and for development alone */

    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof columns);
    void *dValues = upload(handle, values, sizeof values);
    void *dX = upload(handle, x, sizeof x), *dY;
    CHECK(tarsiaMalloc(handle, &dY, sizeof y));
    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t vecX, vecY;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, NNZ, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecX, ROWS, dX, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecY, ROWS, dY, TARSIA_R_64F));

    /* Analysis tells the logger what it has chosen, and why. */
    tarsiaPlan_t plan = make_plan(handle, A, TARSIA_EFFORT_DEFAULT);
    CHECK(tarsiaPlan_analyze(handle, plan));
    EXPECT(lines[TARSIA_LOG_INFO] >= 1 && lines[TARSIA_LOG_ERROR] == 0);

    /* New values in the array, and no tarsiaPlan_updateValues: with checks on, the product is
     * refused, and the text names the array and the call that is missing. */
    for (int p = 0; p < NNZ; p++)
        values[p] += 0.5;
    CHECK(tarsiaMemcpyToDevice(handle, dValues, values, sizeof values));
    EXPECT(tarsiaSpMV(handle, plan, &alpha, vecX, &beta, vecY) == TARSIA_STATUS_INVALID_STATE);
    EXPECT(lines[TARSIA_LOG_ERROR] == 1);
    CHECK(tarsiaPlan_updateValues(handle, plan, dValues));
    CHECK(tarsiaSpMV(handle, plan, &alpha, vecX, &beta, vecY));
    CHECK(tarsiaMemcpyToHost(handle, y, dY, sizeof y));
    CHECK(tarsiaPlan_destroy(plan));

    /* Deterministic mode refuses what could differ from run to run. */
    CHECK(tarsiaSetDeterministic(handle, 1));
    plan = make_plan(handle, A, TARSIA_EFFORT_TUNED);
    EXPECT(tarsiaPlan_analyze(handle, plan) == TARSIA_STATUS_NOT_SUPPORTED);
    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaSetLogger(handle, NULL, NULL));

    /* The same product by the reference backend, on the host's own arrays. */
    tarsiaHandle_t oracle;
    tarsiaConstSpMatDescr_t hostA;
    tarsiaConstDnVecDescr_t hostX;
    tarsiaDnVecDescr_t hostY;
    CHECK(tarsiaCreateWithBackend(&oracle, TARSIA_BACKEND_REFERENCE, 0));
    CHECK(tarsiaCreateConstCsr(&hostA, ROWS, ROWS, NNZ, offsets, columns, values, TARSIA_INDEX_32I,
                               TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateConstDnVec(&hostX, ROWS, x, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&hostY, ROWS, reference, TARSIA_R_64F));
    CHECK(tarsiaSpMV_once(oracle, TARSIA_OPERATION_NON_TRANSPOSE, &alpha, hostA, hostX, &beta,
                          hostY, TARSIA_COMPUTE_64F));
    for (int i = 0; i < ROWS; i++)
        /* Two products below 21 in magnitude, and their sum. */
        EXPECT(fabs(y[i] - reference[i]) <= 1e-14);
    printf("the reference backend agrees\n");

    CHECK(tarsiaDestroySpMat(hostA));
    CHECK(tarsiaDestroyDnVec(hostX));
    CHECK(tarsiaDestroyDnVec(hostY));
    CHECK(tarsiaDestroy(oracle));
    CHECK(tarsiaDestroySpMat(A));
    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroyDnVec(vecY));
    void *all[] = {dOffsets, dColumns, dValues, dX, dY};
    for (int i = 0; i < 5; i++)
        CHECK(tarsiaFree(handle, all[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
