/* Stand-in for libcusparse.so.12: it computes nothing, but writes every call with its arguments to
 * the file that STAND_IN_LOG names. Each function returns a status of its own, except that the
 * bufferSize and preprocess functions, SpMVOp_create… and SpGEMM_workEstimation succeed if
 * STAND_IN_SIZES is set, and SpGEMM's later steps are refused if the earlier ones have not come.
 * Functions that create and describe objects are in objects.h. If STAND_IN_WAITS is set,
 * SpMV_bufferSize sets the size to 1 and waits until another thread has set it to 2.
 *
 * The macros MAJOR, MINOR and PATCH are its version.
 */
#define _GNU_SOURCE
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef MAJOR
#define MAJOR 12
#define MINOR 9
#define PATCH 4
#endif

static FILE *begin(const char *function) {
    const char *path = getenv("STAND_IN_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log)
        fprintf(log, "%s", function);
    return log;
}

static int end(FILE *log, int status) {
    if (log) {
        fprintf(log, "\n");
        fclose(log);
    }
    return status;
}

static void integer(FILE *log, long long value) {
    if (log)
        fprintf(log, " %lld", value);
}

static void number(FILE *log, double value) {
    if (log)
        fprintf(log, " %g", value);
}

static void pointer(FILE *log, const void *value) {
    if (log)
        fprintf(log, " %p", value);
}

/* Results: each is changed in a way that the client can see. */
static void answer_size(FILE *log, size_t *out) {
    (void)log;
    if (out)
        *out += 1000;
}

static void answer_products(FILE *log, int64_t *out) {
    (void)log;
    *out += 1LL << 40;
}

static void answer_object(FILE *log, Object *out) {
    (void)log;
    *out = (const char *)*out + 2000;
}

/* Writes an argument to the log, or changes the result that it points to. */
#define A(value)                                                                                   \
    _Generic((value),                                                                              \
        int: integer,                                                                              \
        float: number,                                                                             \
        size_t: integer,                                                                           \
        size_t *: answer_size,                                                                     \
        int64_t *: answer_products,                                                                \
        Object *: answer_object,                                                                   \
        default: pointer)(log, value)

/* Returns the status of a function that answers a size. */
static int sized(int status) { return getenv("STAND_IN_SIZES") ? 0 : status; }

/* Body of a function that logs its arguments and returns a status. */
#define CALLED(status, arguments)                                                                  \
    FILE *log = begin(__func__);                                                                   \
    arguments;                                                                                     \
    return end(log, status)

int cusparseCreate(Object *handle) { CALLED(0, A(handle)); }

int cusparseGetProperty(int which, int *value) {
    *value = which == 0 ? MAJOR : which == 1 ? MINOR : PATCH;
    return 0;
}

int cusparseDestroy(Object handle) { CALLED(101, A(handle)); }

int cusparseDestroySpMat(Object matrix) {
    end_object(matrix);
    CALLED(102, A(matrix));
}

static void set_pointers(Object matrix, void *offsets, void *indices, void *values) {
    Described *m = object_of(matrix);
    if (m)
        m->offsets = offsets, m->indices = indices, m->values = values;
}

int cusparseCscSetPointers(Object matrix, void *offsets, void *rows, void *values) {
    set_pointers(matrix, offsets, rows, values);
    CALLED(129, (A(matrix), A(offsets), A(rows), A(values)));
}

int cusparseCsrSetPointers(Object matrix, void *offsets, void *columns, void *values) {
    set_pointers(matrix, offsets, columns, values);
    CALLED(103, (A(matrix), A(offsets), A(columns), A(values)));
}

int cusparseSpMatSetValues(Object matrix, void *values) {
    Described *m = object_of(matrix);
    if (m)
        m->values = values;
    CALLED(104, (A(matrix), A(values)));
}

int cusparseSpMV(Object handle, int op, const void *alpha, Object a, Object x, const void *beta,
                 Object y, int type, int algorithm, void *buffer) {
    CALLED(105, (A(handle), A(op), A(alpha), A(a), A(x), A(beta), A(y), A(type), A(algorithm),
                 A(buffer)));
}

int cusparseSpMV_bufferSize(Object handle, int op, const void *alpha, Object a, Object x,
                            const void *beta, Object y, int type, int algorithm, size_t *bytes) {
    volatile size_t *gate = bytes;
    if (getenv("STAND_IN_WAITS")) {
        *gate = 1;
        while (*gate != 2)
            usleep(1000);
    }
    CALLED(sized(106), (A(handle), A(op), A(alpha), A(a), A(x), A(beta), A(y), A(type),
                        A(algorithm), A(bytes)));
}

int cusparseSpMV_preprocess(Object handle, int op, const void *alpha, Object a, Object x,
                            const void *beta, Object y, int type, int algorithm, void *buffer) {
    CALLED(sized(107), (A(handle), A(op), A(alpha), A(a), A(x), A(beta), A(y), A(type),
                        A(algorithm), A(buffer)));
}

#if SPMVOP
int cusparseSpMVOp(Object handle, Object plan, const void *alpha, const void *beta, Object x,
                   Object y, Object z) {
    CALLED(108, (A(handle), A(plan), A(alpha), A(beta), A(x), A(y), A(z)));
}

#if SPMVOP == 1270
int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type) {
    CALLED(sized(109), (A(handle), A(description), A(op), A(a), A(x), A(y), A(z), A(type)));
}
#elif SPMVOP == 1271
int cusparseSpMVOp_bufferSize(Object handle, int op, Object a, Object x, Object y, Object z,
                              int type, size_t *bytes) {
    CALLED(110, (A(handle), A(op), A(a), A(x), A(y), A(z), A(type), A(bytes)));
}

int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type, void *buffer) {
    CALLED(sized(109),
           (A(handle), A(description), A(op), A(a), A(x), A(y), A(z), A(type), A(buffer)));
}
#else
int cusparseSpMVOp_bufferSize(Object handle, int op, Object a, Object x, Object y, Object z,
                              int type, int algorithm, size_t *bytes) {
    CALLED(110, (A(handle), A(op), A(a), A(x), A(y), A(z), A(type), A(algorithm), A(bytes)));
}

int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type, int algorithm, void *buffer) {
    CALLED(sized(109), (A(handle), A(description), A(op), A(a), A(x), A(y), A(z), A(type),
                        A(algorithm), A(buffer)));
}
#endif

int cusparseSpMVOp_createPlan(Object handle, Object description, Object *plan, const void *code,
                              size_t bytes) {
    CALLED(sized(111), (A(handle), A(description), A(plan), A(code), A(bytes)));
}

int cusparseSpMVOp_destroyDescr(Object description) { CALLED(112, A(description)); }

int cusparseSpMVOp_destroyPlan(Object plan) { CALLED(113, A(plan)); }

int cusparseSpMVOp_setGlobalUserData(Object handle, Object plan, const char *name, void *data,
                                     size_t bytes) {
    CALLED(114, (A(handle), A(plan), A((const void *)name), A(data), A(bytes)));
}
#endif

int cusparseSpMM(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                 const void *beta, Object c, int type, int algorithm, void *buffer) {
    CALLED(115, (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                 A(algorithm), A(buffer)));
}

int cusparseSpMM_bufferSize(Object handle, int op_a, int op_b, const void *alpha, Object a,
                            Object b, const void *beta, Object c, int type, int algorithm,
                            size_t *bytes) {
    CALLED(sized(116), (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                        A(algorithm), A(bytes)));
}

/* Calls an exported function of the library, as the real cuSPARSE does. */
int cusparseSpMM_preprocess(Object handle, int op_a, int op_b, const void *alpha, Object a,
                            Object b, const void *beta, Object c, int type, int algorithm,
                            void *buffer) {
    size_t bytes = 0;
    cusparseSpMM_bufferSize(handle, op_a, op_b, alpha, a, b, beta, c, type, algorithm, &bytes);
    CALLED(sized(117), (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                        A(algorithm), A(buffer)));
}

/* How many steps of SpGEMM the description has had: 1 after _workEstimation without a buffer, 2
 * after the one with a buffer of the size that was answered, 3 after _compute with a buffer. There
 * is one description at a time. */
static int steps;

int cusparseSpGEMM_createDescr(Object *description) { CALLED(118, A(description)); }

int cusparseSpGEMM_destroyDescr(Object description) { CALLED(119, A(description)); }

int cusparseSpGEMM_workEstimation(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                  Object b, const void *beta, Object c, int type, int algorithm,
                                  Object description, size_t *bytes, void *buffer) {
    if (getenv("STAND_IN_SIZES")) {
        if (buffer && (!steps || *bytes < 1000))
            return 3;
        steps = buffer ? 2 : 1;
    }
    CALLED(sized(120), (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                        A(algorithm), A(description), A(bytes), A(buffer)));
}

int cusparseSpGEMM_getNumProducts(Object description, int64_t *products) {
    CALLED(121, (A(description), A(products)));
}

int cusparseSpGEMM_estimateMemory(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                  Object b, const void *beta, Object c, int type, int algorithm,
                                  Object description, float fraction, size_t *bytes3, void *buffer3,
                                  size_t *bytes2) {
    if (getenv("STAND_IN_SIZES") && steps < 2)
        return 3;
    CALLED(122, (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                 A(algorithm), A(description), A(fraction), A(bytes3), A(buffer3), A(bytes2)));
}

int cusparseSpGEMM_compute(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                           const void *beta, Object c, int type, int algorithm, Object description,
                           size_t *bytes, void *buffer) {
    if (getenv("STAND_IN_SIZES")) {
        if (steps < 2)
            return 3;
        steps = buffer ? 3 : steps;
    }
    CALLED(123, (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                 A(algorithm), A(description), A(bytes), A(buffer)));
}

int cusparseSpGEMM_copy(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                        const void *beta, Object c, int type, int algorithm, Object description) {
    if (getenv("STAND_IN_SIZES") && steps < 3)
        return 3;
    CALLED(124, (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                 A(algorithm), A(description)));
}

int cusparseSpGEMMreuse_workEstimation(Object handle, int op_a, int op_b, Object a, Object b,
                                       Object c, int algorithm, Object description, size_t *bytes,
                                       void *buffer) {
    CALLED(125, (A(handle), A(op_a), A(op_b), A(a), A(b), A(c), A(algorithm), A(description),
                 A(bytes), A(buffer)));
}

int cusparseSpGEMMreuse_nnz(Object handle, int op_a, int op_b, Object a, Object b, Object c,
                            int algorithm, Object description, size_t *bytes2, void *buffer2,
                            size_t *bytes3, void *buffer3, size_t *bytes4, void *buffer4) {
    CALLED(126, (A(handle), A(op_a), A(op_b), A(a), A(b), A(c), A(algorithm), A(description),
                 A(bytes2), A(buffer2), A(bytes3), A(buffer3), A(bytes4), A(buffer4)));
}

int cusparseSpGEMMreuse_copy(Object handle, int op_a, int op_b, Object a, Object b, Object c,
                             int algorithm, Object description, size_t *bytes, void *buffer) {
    CALLED(127, (A(handle), A(op_a), A(op_b), A(a), A(b), A(c), A(algorithm), A(description),
                 A(bytes), A(buffer)));
}

int cusparseSpGEMMreuse_compute(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                Object b, const void *beta, Object c, int type, int algorithm,
                                Object description) {
    CALLED(128, (A(handle), A(op_a), A(op_b), A(alpha), A(a), A(b), A(beta), A(c), A(type),
                 A(algorithm), A(description)));
}
