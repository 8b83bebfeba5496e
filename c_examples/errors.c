// SPDX-License-Identifier: MIT OR Apache-2.0
/* What goes wrong, and what the library says: every call below is a mistake on purpose. A status
 * says what kind of mistake it is, tarsiaGetLastErrorMessage which argument, what was found and
 * what was expected. No mistake breaks an object. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tarsia.h>

static int failures;

/* The call must return this status; after a failure, prints what the library says. */
static void expect(tarsiaStatus_t expected, tarsiaStatus_t status, const char *what) {
    char message[512] = "";

    if (status != TARSIA_STATUS_SUCCESS) {
        tarsiaGetLastErrorMessage(message, sizeof message);
        printf("%s\n    %s\n    %s\n", what, tarsiaGetErrorName(status), message);
    }
    if (status != expected) {
        fprintf(stderr, "%s: %s, expected %s\n", what, tarsiaGetErrorName(status),
                tarsiaGetErrorName(expected));
        failures++;
    } else if (status != TARSIA_STATUS_SUCCESS && strlen(message) == 0) {
        fprintf(stderr, "%s: no message\n", what);
        failures++;
    }
}

static void fine(tarsiaStatus_t status, const char *what) {
    expect(TARSIA_STATUS_SUCCESS, status, what);
}

static tarsiaStatus_t make_plan(tarsiaHandle_t handle, tarsiaPlan_t *plan, tarsiaSpMatDescr_t A,
                                tarsiaDataType_t x) {
    return tarsiaSpMV_createPlan(handle, plan, TARSIA_OPERATION_NON_TRANSPOSE, A, x, TARSIA_R_64F,
                                 TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT);
}

int main(void) {
    /* Column 7 of a matrix with 3 columns. */
    const int32_t offsets[4] = {0, 2, 3, 4}, columns[4] = {0, 7, 1, 2}, corrected = 2;
    const double values[4] = {1.5, 2.5, 3.5, 4.5}, ones[3] = {1, 1, 1}, one = 1, zero = 0;
    double y[3];
    tarsiaHandle_t handle = NULL;
    tarsiaSpMatDescr_t A = NULL, none = NULL;
    tarsiaDnVecDescr_t x3 = NULL, x2 = NULL, y3 = NULL;
    tarsiaPlan_t plan = NULL, unused = NULL;
    void *dOffsets = NULL, *dColumns = NULL, *dValues = NULL, *dX = NULL, *dY = NULL;

    expect(TARSIA_STATUS_NOT_INITIALIZED, tarsiaSynchronize(NULL), "A handle that is NULL");

    fine(tarsiaCreate(&handle), "create");
    fine(tarsiaMalloc(handle, &dOffsets, sizeof offsets), "malloc");
    fine(tarsiaMalloc(handle, &dColumns, sizeof columns), "malloc");
    fine(tarsiaMalloc(handle, &dValues, sizeof values), "malloc");
    fine(tarsiaMalloc(handle, &dX, sizeof ones), "malloc");
    fine(tarsiaMalloc(handle, &dY, sizeof y), "malloc");
    if (failures)
        return 1;
    fine(tarsiaMemcpyToDevice(handle, dOffsets, offsets, sizeof offsets), "copy");
    fine(tarsiaMemcpyToDevice(handle, dColumns, columns, sizeof columns), "copy");
    fine(tarsiaMemcpyToDevice(handle, dValues, values, sizeof values), "copy");
    fine(tarsiaMemcpyToDevice(handle, dX, ones, sizeof ones), "copy");
    fine(tarsiaCreateDnVec(&x3, 3, dX, TARSIA_R_64F), "x");
    fine(tarsiaCreateDnVec(&x2, 2, dX, TARSIA_R_64F), "a shorter x");
    fine(tarsiaCreateDnVec(&y3, 3, dY, TARSIA_R_64F), "y");

    /* Wrong arguments. */
    expect(TARSIA_STATUS_INVALID_VALUE,
           tarsiaCreateCsr(&none, -3, 3, 4, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                           TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F),
           "A negative number of rows");
    expect(TARSIA_STATUS_INVALID_VALUE,
           tarsiaCreateCsr(&none, 3, 3, 4, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                           TARSIA_INDEX_32I, (tarsiaIndexBase_t)2, TARSIA_R_64F),
           "An integer that is not a value of an enum");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaSetWorkspace(handle, dX, 0),
           "A workspace of 0 bytes");

    /* Types that are not supported. */
    expect(TARSIA_STATUS_NOT_SUPPORTED,
           tarsiaCreateCsr(&none, 3, 3, 4, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                           TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_8I),
           "A value type that no operation takes");
    fine(tarsiaCreateCsr(&A, 3, 3, 4, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                         TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F),
         "A");
    expect(TARSIA_STATUS_NOT_SUPPORTED, make_plan(handle, &unused, A, TARSIA_R_16F),
           "A combination of types that is not in the support table");
    if (none || unused) {
        fprintf(stderr, "a call that failed wrote an answer\n");
        failures++;
    }

    /* Wrong order of calls, and a pattern that is wrong; the plan survives all of it. */
    fine(make_plan(handle, &plan, A, TARSIA_R_64F), "plan");
    expect(TARSIA_STATUS_INVALID_STATE, tarsiaSpMV(handle, plan, &one, x3, &zero, y3),
           "Execute before analyze");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaPlan_analyze(handle, plan), "A column out of range");
    fine(tarsiaMemcpyToDevice(handle, (char *)dColumns + sizeof corrected, &corrected,
                              sizeof corrected),
         "corrected column");
    fine(tarsiaPlan_analyze(handle, plan), "analyze again");
    expect(TARSIA_STATUS_INVALID_STATE, tarsiaPlan_setValueUpdates(plan, 1),
           "A setting after analyze");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaSpMV(handle, plan, &one, x2, &zero, y3),
           "A vector of the wrong length");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaSpMV(handle, plan, &one, y3, &zero, y3),
           "x and y in the same memory");
    fine(tarsiaSpMV(handle, plan, &one, x3, &zero, y3), "execute");
    fine(tarsiaMemcpyToHost(handle, y, dY, sizeof y), "copy");
    printf("A correct call: y = %.1f %.1f %.1f\n", y[0], y[1], y[2]);
    if (y[0] != 4.0 || y[1] != 3.5 || y[2] != 4.5) { /* exact: few bits, few terms */
        fprintf(stderr, "y is wrong\n");
        failures++;
    }

    /* Objects that are gone are recognised. */
    fine(tarsiaPlan_destroy(plan), "destroy");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaSpMV(handle, plan, &one, x3, &zero, y3),
           "A plan that is destroyed");
    expect(TARSIA_STATUS_INVALID_VALUE, tarsiaPlan_destroy(plan), "Destroyed twice");

    fine(tarsiaDestroyDnVec(x3), "destroy");
    fine(tarsiaDestroyDnVec(x2), "destroy");
    fine(tarsiaDestroyDnVec(y3), "destroy");
    fine(tarsiaDestroySpMat(A), "destroy");
    void *arrays[] = {dOffsets, dColumns, dValues, dX, dY};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        fine(tarsiaFree(handle, arrays[i]), "free");
    fine(tarsiaDestroy(handle), "destroy");
    expect(TARSIA_STATUS_NOT_INITIALIZED, tarsiaDestroy(handle), "A handle that is destroyed");
    printf(failures ? "%d calls were not as expected\n" : "all as expected\n", failures);
    return failures ? 1 : 0;
}
