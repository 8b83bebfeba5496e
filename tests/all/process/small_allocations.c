/* Test of the library when the system has no memory: every allocation of a scenario with all
 * operations fails once, in a process of its own.
 *
 *   small_allocations once    the n-th allocation fails, for each n
 *   small_allocations from    the n-th and all after it fail, until a call has returned an error
 *
 * Two numbers behind it, STEP and FIRST: every STEP-th, from the FIRST on.
 *
 * A call may succeed, or return TARSIA_STATUS_ALLOC_FAILED with a text; then memory comes back, the
 * same call succeeds, and all results have the bits that they have without failures. Anything else
 * (the process ends, another status, other bits) is printed with the call's name, and is a
 * failure.
 *
 * malloc and the others are this program's own, in front of the C library's (glibc). */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tarsia.h"

enum { ROWS = 260, PER_ROW = 11, NNZ = ROWS * PER_ROW, COLUMNS = 5, MOST_CALLS = 400 };

/* Shared by the parent and its children. */
static struct {
    /* Allocations of the scenario, and while which call the one that failed was made. */
    long count;
    char call[80];
    size_t bytes;
    /* A call has returned the error. */
    int told;
} * shared;

/* Whether a call of the library is running; whether all allocations after the failing one fail. */
static volatile int inside, onward;
static volatile long allocation, fails = -1;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *pointer, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* Returns whether this allocation must fail. */
static int refused(size_t bytes) {
    long number;
    if (!__atomic_load_n(&inside, __ATOMIC_RELAXED))
        return 0;
    number = __atomic_add_fetch(&allocation, 1, __ATOMIC_RELAXED);
    if (fails < 0 || number < fails || (number > fails && !onward))
        return 0;
    if (number == fails)
        shared->bytes = bytes;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) { return refused(bytes) ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) {
    return refused(count * bytes) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *pointer, size_t bytes) {
    return refused(bytes) ? NULL : __libc_realloc(pointer, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    return refused(bytes) ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
    void *made = memalign(alignment, bytes);
    if (!made)
        return ENOMEM;
    *pointer = made;
    return 0;
}

/* Ends the process after an error of the library. */
static void wrong(const char *what, const char *text) {
    fprintf(stderr, "    %s: %s: %s\n", shared->call, what, text);
    _exit(1);
}

static void enter(const char *call) {
    if (allocation < fails || fails < 0)
        snprintf(shared->call, sizeof shared->call, "%.*s", (int)strcspn(call, "("), call);
    inside = 1;
}

/* Returns whether the call must be repeated. `expected` is its status when there is memory. */
static int leave(tarsiaStatus_t status, tarsiaStatus_t expected) {
    char text[1024] = "";
    inside = 0;
    if (status != TARSIA_STATUS_SUCCESS)
        tarsiaGetLastErrorMessage(text, sizeof text);
    if (status == expected) {
        if (status != TARSIA_STATUS_SUCCESS && !text[0])
            wrong("no text", "");
        return 0;
    }
    if (fails < 0 || allocation < fails || status != TARSIA_STATUS_ALLOC_FAILED || shared->told)
        wrong(tarsiaGetErrorName(status), text);
    if (!strstr(text, "alloc") && !strstr(text, "memory"))
        wrong("the text does not speak of memory", text);
    /* From now on no allocation fails. */
    shared->told = 1;
    fails = 0;
    onward = 0;
    return 1;
}

#define RETURNS(expected, call)                                                                    \
    do                                                                                             \
        enter(#call);                                                                              \
    while (leave((call), (expected)))
#define DO(call) RETURNS(TARSIA_STATUS_SUCCESS, call)

/* Returns the FNV-1a hash (Fowler, Noll, Vo) of 64 bits. */
static uint64_t hash_of(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    while (count--)
        hash = (hash ^ *byte++) * 0x100000001b3u;
    return hash;
}

static int lines;

static void log_line(void *context, tarsiaLogLevel_t level, const char *message) {
    (void)context;
    (void)level;
    lines += message[0] != 0;
}

static int32_t offsets[ROWS + 1], columns[NNZ];
static double values[NNZ], x[ROWS], y[ROWS], B[ROWS * COLUMNS], C[ROWS * COLUMNS];

static const tarsiaSpMVAlg_t spmv_algs[] = {TARSIA_SPMV_ALG_DEFAULT, TARSIA_SPMV_ALG_CSR,
                                            TARSIA_SPMV_ALG_SELL,    TARSIA_SPMV_ALG_STREAM,
                                            TARSIA_SPMV_ALG_DASP,    TARSIA_SPMV_ALG_MASK_BLOCK};
static const tarsiaSpMMAlg_t spmm_algs[] = {
    TARSIA_SPMM_ALG_DEFAULT, TARSIA_SPMM_ALG_ROW,   TARSIA_SPMM_ALG_WINDOW, TARSIA_SPMM_ALG_SMAT,
    TARSIA_SPMM_ALG_SELL,    TARSIA_SPMM_ALG_SWIFT, TARSIA_SPMM_ALG_CSR};
static const tarsiaSpGEMMAlg_t spgemm_algs[] = {TARSIA_SPGEMM_ALG_DEFAULT, TARSIA_SPGEMM_ALG_HASH,
                                                TARSIA_SPGEMM_ALG_TILE};

/* Runs all operations, and returns a hash of the bits of all results. */
static uint64_t scenario(void) {
    const tarsiaOperation_t N = TARSIA_OPERATION_NON_TRANSPOSE;
    const double one = 1, zero = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    tarsiaHandle_t handle;
    tarsiaSpMatDescr_t A, product, tiles;
    tarsiaDnVecDescr_t x_descr, y_descr;
    tarsiaDnMatDescr_t B_descr, C_descr;
    tarsiaPlanInfo_t info = {.structSize = sizeof info};
    size_t bytes;
    int64_t nnz;
    int sorted, unique;

    DO(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    DO(tarsiaSetLogger(handle, log_line, NULL));
    DO(tarsiaSetPointerMode(handle, TARSIA_POINTER_MODE_HOST));
    DO(tarsiaCreateCsr(&A, ROWS, ROWS, NNZ, offsets, columns, values, TARSIA_INDEX_32I,
                       TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    RETURNS(TARSIA_STATUS_INVALID_VALUE, tarsiaCreateDnVec(&x_descr, -1, x, TARSIA_R_64F));
    DO(tarsiaCreateDnVec(&x_descr, ROWS, x, TARSIA_R_64F));
    DO(tarsiaCreateDnVec(&y_descr, ROWS, y, TARSIA_R_64F));
    DO(tarsiaCreateDnMat(&B_descr, ROWS, COLUMNS, COLUMNS, B, TARSIA_R_64F, TARSIA_ORDER_ROW));
    DO(tarsiaCreateDnMat(&C_descr, ROWS, COLUMNS, COLUMNS, C, TARSIA_R_64F, TARSIA_ORDER_ROW));
    DO(tarsiaCheckSpMat(handle, A, &sorted, &unique));

    for (size_t i = 0; i < sizeof spmv_algs / sizeof *spmv_algs; i++) {
        tarsiaPlan_t plan, again;
        void *decisions;
        DO(tarsiaSpMV_createPlan(handle, &plan, N, A, TARSIA_R_64F, TARSIA_R_64F,
                                 TARSIA_COMPUTE_64F, spmv_algs[i]));
        DO(tarsiaPlan_setValueUpdates(plan, 1));
        RETURNS(TARSIA_STATUS_INVALID_STATE,
                tarsiaSpMV(handle, plan, &one, x_descr, &zero, y_descr));
        DO(tarsiaPlan_analyze(handle, plan));
        DO(tarsiaPlan_getInfo(plan, &info));
        DO(tarsiaPlan_workspaceSize(plan, 1, &bytes));
        DO(tarsiaPlan_updateValues(handle, plan, values));
        DO(tarsiaSpMV(handle, plan, &one, x_descr, &zero, y_descr));
        hash = hash_of(hash, y, sizeof y);
        DO(tarsiaPlan_getDecisions(handle, plan, NULL, 0, &bytes));
        decisions = malloc(bytes);
        DO(tarsiaPlan_getDecisions(handle, plan, decisions, bytes, &bytes));
        DO(tarsiaSpMV_createPlan(handle, &again, N, A, TARSIA_R_64F, TARSIA_R_64F,
                                 TARSIA_COMPUTE_64F, spmv_algs[i]));
        DO(tarsiaPlan_setValueUpdates(again, 1));
        DO(tarsiaPlan_setDecisions(handle, again, decisions, bytes));
        DO(tarsiaPlan_analyze(handle, again));
        DO(tarsiaSpMV(handle, again, &one, x_descr, &zero, y_descr));
        hash = hash_of(hash, y, sizeof y);
        free(decisions);
        DO(tarsiaPlan_destroy(plan));
        DO(tarsiaPlan_destroy(again));
    }
    DO(tarsiaSpMV_once(handle, N, &one, A, x_descr, &zero, y_descr, TARSIA_COMPUTE_64F));
    hash = hash_of(hash, y, sizeof y);

    for (size_t i = 0; i < sizeof spmm_algs / sizeof *spmm_algs; i++) {
        tarsiaPlan_t plan;
        DO(tarsiaSpMM_createPlan(handle, &plan, N, N, A, TARSIA_ORDER_ROW, TARSIA_ORDER_ROW,
                                 COLUMNS, TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                 spmm_algs[i]));
        DO(tarsiaPlan_analyze(handle, plan));
        DO(tarsiaSpMM(handle, plan, &one, B_descr, &zero, C_descr));
        hash = hash_of(hash, C, sizeof C);
        DO(tarsiaPlan_destroy(plan));
    }
    DO(tarsiaSpMM_once(handle, N, N, &one, A, B_descr, &zero, C_descr, TARSIA_COMPUTE_64F));
    hash = hash_of(hash, C, sizeof C);

    for (size_t i = 0; i < sizeof spgemm_algs / sizeof *spgemm_algs; i++) {
        static int32_t product_offsets[ROWS + 1];
        int32_t *product_columns;
        double *product_values;
        tarsiaPlan_t plan;
        DO(tarsiaSpGEMM_createPlan(handle, &plan, N, N, A, A, TARSIA_COMPUTE_64F, spgemm_algs[i]));
        DO(tarsiaPlan_analyze(handle, plan));
        DO(tarsiaSpGEMM_symbolic(handle, plan, &nnz));
        product_columns = malloc((size_t)nnz * sizeof *product_columns);
        product_values = malloc((size_t)nnz * sizeof *product_values);
        DO(tarsiaCreateCsr(&product, ROWS, ROWS, nnz, product_offsets, product_columns,
                           product_values, TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                           TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
        DO(tarsiaSpGEMM_numeric(handle, plan, &one, product));
        hash = hash_of(hash, product_offsets, sizeof product_offsets);
        hash = hash_of(hash, product_columns, (size_t)nnz * sizeof *product_columns);
        hash = hash_of(hash, product_values, (size_t)nnz * sizeof *product_values);
        DO(tarsiaDestroySpMat(product));
        DO(tarsiaPlan_destroy(plan));
        free(product_columns);
        free(product_values);
    }
    DO(tarsiaCreateTile(handle, &tiles, ROWS, ROWS, TARSIA_R_64F));
    DO(tarsiaSparseToTile(handle, A, tiles));
    memset(values, 0, sizeof values);
    DO(tarsiaTileToSparse(handle, tiles, A));
    hash = hash_of(hash, values, sizeof values);
    DO(tarsiaDestroySpMat(tiles));
    DO(tarsiaDestroySpMat(A));
    DO(tarsiaDestroyDnVec(x_descr));
    DO(tarsiaDestroyDnVec(y_descr));
    DO(tarsiaDestroyDnMat(B_descr));
    DO(tarsiaDestroyDnMat(C_descr));
    RETURNS(TARSIA_STATUS_NOT_INITIALIZED, tarsiaSetStream(NULL, NULL));
    DO(tarsiaDestroy(handle));
    shared->count = allocation;
    return hash;
}

/* Runs the scenario in a child; returns 0 if the library behaved correctly. */
static int run(long number, int all, uint64_t *hash) {
    int status, fields[2];
    uint64_t found = 0;
    pid_t child;
    shared->told = 0;
    shared->bytes = 0;
    fflush(NULL);
    if (pipe(fields) != 0 || (child = fork()) < 0)
        exit(2);
    if (child == 0) {
        alarm(120);
        fails = number;
        onward = all;
        found = scenario();
        _exit(write(fields[1], &found, sizeof found) != sizeof found);
    }
    close(fields[1]);
    status = read(fields[0], &found, sizeof found) == sizeof found;
    close(fields[0]);
    *hash = status ? found : 0;
    if (waitpid(child, &status, 0) != child)
        exit(2);
    return status;
}

int main(int count, char **arguments) {
    const int all = count > 1 && strcmp(arguments[1], "from") == 0;
    /* Number of failures, and the smallest and the largest allocation, by call. */
    static struct {
        char call[80];
        long served, told, failed;
        size_t least, most;
    } calls[MOST_CALLS];
    const long step = count > 2 ? atol(arguments[2]) : 1,
               first = count > 3 ? atol(arguments[3]) : 1;
    uint64_t expected, hash;
    long allocations, served = 0, told = 0, failed = 0;
    int found = 0;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = i * PER_ROW;
    for (int p = 0; p < NNZ; p++) {
        columns[p] = p % PER_ROW * (ROWS / PER_ROW) + p / PER_ROW * 7 % (ROWS / PER_ROW);
        values[p] = 1.0 / (1 + p % 97) - 0.3;
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        B[i] = 1.0 / (1 + i % 89) - 0.2;
        x[i % ROWS] = B[i];
    }
    if (run(-1, 0, &expected) != 0)
        return 3;
    allocations = shared->count;
    for (long number = first; number <= allocations; number += step) {
        int status = run(number, all, &hash), i = 0;
        while (i < found && strcmp(calls[i].call, shared->call) != 0)
            i++;
        if (i == found) {
            if (found == MOST_CALLS)
                return 4;
            memcpy(calls[found++].call, shared->call, sizeof shared->call);
        }
        if (status != 0 || hash != expected) {
            if (calls[i].failed++ == 0 || shared->bytes < calls[i].least)
                calls[i].least = shared->bytes;
            if (shared->bytes > calls[i].most)
                calls[i].most = shared->bytes;
            failed++;
        } else if (shared->told) {
            calls[i].told++;
            told++;
        } else {
            calls[i].served++;
            served++;
        }
    }
    printf("%-34s %9s %9s %9s   bytes\n", "call", "succeeds", "error", "fails");
    for (int i = 0; i < found; i++) {
        printf("%-34s %9ld %9ld %9ld", calls[i].call, calls[i].served, calls[i].told,
               calls[i].failed);
        if (calls[i].failed)
            printf("   %zu to %zu", calls[i].least, calls[i].most);
        putchar('\n');
    }
    printf("%-34s %9ld %9ld %9ld\n", "all", served, told, failed);
    printf("%ld allocations, %ld failures\n", allocations, failed);
    return 0;
}
