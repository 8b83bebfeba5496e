// SPDX-License-Identifier: MIT OR Apache-2.0
/* Choosing once, for many processes. The first plan below times its candidates (effort TUNED),
 * which takes a while. Its decisions are some hundred bytes, which a program may keep in a file; a
 * later plan of the same pattern gets them and builds the same layout at once. A folder that the
 * handle is told (tarsiaSetPlanCache) does the same without a line of code around each plan. */

#define _XOPEN_SOURCE 700 /* mkdtemp */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tarsia.h>

enum { ROWS = 3000, PER_ROW = 9, NNZ = ROWS * PER_ROW };
enum { LONGEST = 4096, LONGEST_NAME = 256 }; /* paths */

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

static int32_t offsets[ROWS + 1], columns[NNZ];
static double values[NNZ], x[ROWS], y[2][ROWS];

/* Nine entries in every row, a third of them near the diagonal. */
static void fill(void) {
    for (int i = 0; i < ROWS; i++) {
        offsets[i] = PER_ROW * i;
        for (int k = 0; k < PER_ROW; k++) {
            columns[PER_ROW * i + k] = k < 3 ? (i + k) % ROWS : (7 * i + 331 * k) % ROWS;
            values[PER_ROW * i + k] = 1.0 / (1 + (i + 3 * k) % 17);
        }
        x[i] = (i % 13) - 6;
    }
    offsets[ROWS] = NNZ;
}

static tarsiaPlan_t make_plan(tarsiaHandle_t handle, tarsiaSpMatDescr_t A) {
    tarsiaPlan_t plan;

    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_R_64F,
                                TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    return plan;
}

/* Prints what analysis did, and returns the algorithm. */
static int report(tarsiaPlan_t plan, const char *how) {
    tarsiaPlanInfo_t info = {.structSize = sizeof info};

    CHECK(tarsiaPlan_getInfo(plan, &info));
    printf("%s: %s after %.0f us (%s)\n", how, info.algorithmName, 1e6 * info.analysisSeconds,
           info.reason);
    return info.algorithm;
}

/* Removes a folder with the files in it, and returns how many there were. */
static int remove_folder(const char *folder) {
    int files = 0;
    char path[LONGEST + LONGEST_NAME];
    DIR *open = opendir(folder);

    if (!open)
        return -1;
    for (struct dirent *entry; (entry = readdir(open));)
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            files += remove(path) == 0;
        }
    closedir(open);
    rmdir(folder);
    return files;
}

int main(void) {
    const double alpha = 1, beta = 0;

    fill();
    tarsiaHandle_t handle;
    CHECK(tarsiaCreate(&handle));
    void *dOffsets = upload(handle, offsets, sizeof offsets);
    void *dColumns = upload(handle, columns, sizeof columns);
    void *dValues = upload(handle, values, sizeof values);
    void *dX = upload(handle, x, sizeof x), *dY;
    CHECK(tarsiaMalloc(handle, &dY, sizeof y[0]));
    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t vecX, vecY;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, NNZ, dOffsets, dColumns, dValues, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecX, ROWS, dX, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vecY, ROWS, dY, TARSIA_R_64F));

    /* The first process: the best candidates are built and timed. */
    tarsiaPlan_t tuned = make_plan(handle, A);
    CHECK(tarsiaPlan_setEffort(tuned, TARSIA_EFFORT_TUNED));
    CHECK(tarsiaPlan_analyze(handle, tuned));
    const int algorithm = report(tuned, "tuned");
    CHECK(tarsiaSpMV(handle, tuned, &alpha, vecX, &beta, vecY));
    CHECK(tarsiaMemcpyToHost(handle, y[0], dY, sizeof y[0]));

    /* How many bytes, then the bytes. */
    size_t bytes;
    CHECK(tarsiaPlan_getDecisions(handle, tuned, NULL, 0, &bytes));
    void *decisions = malloc(bytes);
    if (!decisions)
        return 1;
    CHECK(tarsiaPlan_getDecisions(handle, tuned, decisions, bytes, &bytes));
    CHECK(tarsiaPlan_destroy(tuned));
    printf("%zu bytes of decisions\n", bytes);

    /* A later process, with the same pattern: nothing is chosen or timed, and the product has the
     * same bits. */
    tarsiaPlan_t again = make_plan(handle, A);
    CHECK(tarsiaPlan_setDecisions(handle, again, decisions, bytes));
    CHECK(tarsiaPlan_analyze(handle, again));
    if (report(again, "from decisions") != algorithm)
        return 1;
    CHECK(tarsiaSpMV(handle, again, &alpha, vecX, &beta, vecY));
    CHECK(tarsiaMemcpyToHost(handle, y[1], dY, sizeof y[1]));
    if (memcmp(y[0], y[1], sizeof y[0]) != 0) {
        fprintf(stderr, "the products differ\n");
        return 1;
    }
    CHECK(tarsiaPlan_destroy(again));

    /* Decisions of another pattern are refused, and the text says why. */
    const int32_t other = (columns[NNZ - 1] + 1) % ROWS;
    CHECK(tarsiaMemcpyToDevice(handle, (int32_t *)dColumns + NNZ - 1, &other, sizeof other));
    tarsiaPlan_t changed = make_plan(handle, A);
    const tarsiaStatus_t status = tarsiaPlan_setDecisions(handle, changed, decisions, bytes);
    char message[512] = "";
    CHECK(tarsiaGetLastErrorMessage(message, sizeof message));
    printf("another pattern: %s\n", message);
    if (status != TARSIA_STATUS_INVALID_VALUE)
        return 1;
    CHECK(tarsiaPlan_destroy(changed));
    free(decisions);

    /* A folder: the first analysis stores its decisions there, the second one finds them. Only
     * users whom the program trusts should be able to write to it. */
    const char *temporary = getenv("TMPDIR");
    char folder[LONGEST];
    snprintf(folder, sizeof folder, "%s/tarsia-decisions-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    CHECK(tarsiaSetPlanCache(handle, folder));
    for (int run = 0; run < 2; run++) {
        tarsiaPlan_t plan = make_plan(handle, A);
        CHECK(tarsiaPlan_analyze(handle, plan));
        report(plan, run ? "from the folder" : "into the folder");
        CHECK(tarsiaPlan_destroy(plan));
    }
    CHECK(tarsiaSetPlanCache(handle, NULL));
    const int files = remove_folder(folder);
    if (files != 1) { /* one problem, one file */
        fprintf(stderr, "%d files in the folder\n", files);
        return 1;
    }

    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroyDnVec(vecY));
    CHECK(tarsiaDestroySpMat(A));
    void *all[] = {dOffsets, dColumns, dValues, dX, dY};
    for (int i = 0; i < 5; i++)
        CHECK(tarsiaFree(handle, all[i]));
    CHECK(tarsiaDestroy(handle));
    return 0;
}
