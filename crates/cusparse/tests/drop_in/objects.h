/* Objects of the stand-in: descriptors, which keep the arguments that they were created with, and
 * one stream and pointer mode for all handles. Pointers that are no descriptors are never read.
 *
 * LAYOUT says how a descriptor keeps nnz: 0 as one number, 1 twice, 2 with other bits. */
#include "cusparse.h"

#include <pthread.h>
#include <stdlib.h>

#ifndef LAYOUT
#define LAYOUT 0
#endif

typedef struct {
    int format; /* value of cusparseFormat_t; 0 for dense vectors and matrices */
    int64_t rows, cols, nnz;
    const void *offsets, *indices, *values;
    int offset_type, index_type, base, value_type, order, batches;
} Described;

/* Turns nnz into what a descriptor keeps, and back. */
static int64_t kept(int64_t nnz) { return LAYOUT == 2 ? ~nnz : nnz; }

#define MOST 4096
static Described *objects[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *the_stream;
static int the_mode;

static int made(Object *out, Described described) {
    described.nnz = kept(described.nnz);
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < MOST && objects[at])
        ++at;
    Described *object = at < MOST ? malloc(sizeof *object + sizeof(int64_t)) : NULL;
    if (object) {
        *object = described;
        *(int64_t *)(object + 1) = LAYOUT == 1 ? object->nnz : 0;
        objects[at] = object;
        *out = object;
    }
    pthread_mutex_unlock(&lock);
    return object ? 0 : 2;
}

/* Returns the descriptor at an address; NULL if there is none. */
static Described *object_of(Object pointer) {
    Described *object = NULL;
    pthread_mutex_lock(&lock);
    for (int at = 0; pointer && at < MOST; ++at) {
        if (objects[at] == pointer)
            object = objects[at];
    }
    pthread_mutex_unlock(&lock);
    return object;
}

static void end_object(Object pointer) {
    pthread_mutex_lock(&lock);
    for (int at = 0; pointer && at < MOST; ++at) {
        if (objects[at] == pointer) {
            free(objects[at]);
            objects[at] = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
}

int cusparseSetStream(Object handle, void *stream) {
    (void)handle;
    the_stream = stream;
    return 0;
}

int cusparseGetStream(Object handle, void **stream) {
    (void)handle;
    *stream = the_stream;
    return 0;
}

int cusparseSetPointerMode(Object handle, int mode) {
    (void)handle;
    the_mode = mode;
    return 0;
}

int cusparseGetPointerMode(Object handle, int *mode) {
    (void)handle;
    *mode = the_mode;
    return 0;
}

int cusparseCreateCsr(Object *out, int64_t rows, int64_t cols, int64_t nnz, void *offsets,
                      void *indices, void *values, int offset_type, int index_type, int base,
                      int value_type) {
    return made(out, (Described){1, rows, cols, nnz, offsets, indices, values, offset_type,
                                 index_type, base, value_type, 0, 1});
}

int cusparseCreateCsc(Object *out, int64_t rows, int64_t cols, int64_t nnz, void *offsets,
                      void *indices, void *values, int offset_type, int index_type, int base,
                      int value_type) {
    return made(out, (Described){2, rows, cols, nnz, offsets, indices, values, offset_type,
                                 index_type, base, value_type, 0, 1});
}

int cusparseCreateCoo(Object *out, int64_t rows, int64_t cols, int64_t nnz, void *row_indices,
                      void *indices, void *values, int index_type, int base, int value_type) {
    return made(out, (Described){3, rows, cols, nnz, row_indices, indices, values, index_type,
                                 index_type, base, value_type, 0, 1});
}

int cusparseCreateDnVec(Object *out, int64_t size, void *values, int value_type) {
    return made(out, (Described){.rows = size, .values = values, .value_type = value_type});
}

int cusparseCreateDnMat(Object *out, int64_t rows, int64_t cols, int64_t ld, void *values,
                        int value_type, int order) {
    return made(out, (Described){.rows = rows,
                                 .cols = cols,
                                 .nnz = ld,
                                 .values = values,
                                 .value_type = value_type,
                                 .order = order,
                                 .batches = 1});
}

int cusparseDestroyDnVec(Object vector) {
    end_object(vector);
    return 0;
}

int cusparseDestroyDnMat(Object matrix) {
    end_object(matrix);
    return 0;
}

int cusparseDnMatSetStridedBatch(Object matrix, int batches, int64_t distance) {
    (void)distance;
    object_of(matrix)->batches = batches;
    return 0;
}

int cusparseSpMatGetFormat(Object matrix, int *format) {
    const Described *m = object_of(matrix);
    if (!m)
        return 3;
    *format = m->format;
    return 0;
}

static int get_compressed(int format, Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz,
                          const void **offsets, const void **indices, const void **values,
                          int *offset_type, int *index_type, int *base, int *value_type) {
    const Described *m = object_of(matrix);
    if (!m || m->format != format)
        return 3;
    *rows = m->rows, *cols = m->cols, *nnz = kept(m->nnz);
    *offsets = m->offsets, *indices = m->indices, *values = m->values;
    *offset_type = m->offset_type, *index_type = m->index_type;
    *base = m->base, *value_type = m->value_type;
    return 0;
}

int cusparseConstCsrGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz,
                        const void **offsets, const void **indices, const void **values,
                        int *offset_type, int *index_type, int *base, int *value_type) {
    return get_compressed(1, matrix, rows, cols, nnz, offsets, indices, values, offset_type,
                          index_type, base, value_type);
}

int cusparseCsrGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz, void **offsets,
                   void **indices, void **values, int *offset_type, int *index_type, int *base,
                   int *value_type) {
    return get_compressed(1, matrix, rows, cols, nnz, (const void **)offsets,
                          (const void **)indices, (const void **)values, offset_type, index_type,
                          base, value_type);
}

int cusparseSpMatGetSize(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz) {
    const Described *m = object_of(matrix);
    if (!m)
        return 3;
    *rows = m->rows, *cols = m->cols, *nnz = kept(m->nnz);
    return 0;
}

int cusparseConstCscGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz,
                        const void **offsets, const void **indices, const void **values,
                        int *offset_type, int *index_type, int *base, int *value_type) {
    return get_compressed(2, matrix, rows, cols, nnz, offsets, indices, values, offset_type,
                          index_type, base, value_type);
}

int cusparseConstCooGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz,
                        const void **row_indices, const void **indices, const void **values,
                        int *index_type, int *base, int *value_type) {
    int same;
    return get_compressed(3, matrix, rows, cols, nnz, row_indices, indices, values, &same,
                          index_type, base, value_type);
}

int cusparseConstDnVecGet(Object vector, int64_t *size, const void **values, int *value_type) {
    const Described *v = object_of(vector);
    if (!v)
        return 3;
    *size = v->rows, *values = v->values, *value_type = v->value_type;
    return 0;
}

int cusparseDnVecGet(Object vector, int64_t *size, void **values, int *value_type) {
    return cusparseConstDnVecGet(vector, size, (const void **)values, value_type);
}

int cusparseConstDnMatGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *ld,
                          const void **values, int *value_type, int *order) {
    const Described *m = object_of(matrix);
    if (!m)
        return 3;
    *rows = m->rows, *cols = m->cols, *ld = kept(m->nnz);
    *values = m->values, *value_type = m->value_type, *order = m->order;
    return 0;
}

int cusparseDnMatGet(Object matrix, int64_t *rows, int64_t *cols, int64_t *ld, void **values,
                     int *value_type, int *order) {
    return cusparseConstDnMatGet(matrix, rows, cols, ld, (const void **)values, value_type, order);
}

int cusparseSpMatGetStridedBatch(Object matrix, int *batches) {
    const Described *m = object_of(matrix);
    if (!m)
        return 3;
    *batches = m->batches;
    return 0;
}

int cusparseDnMatGetStridedBatch(Object matrix, int *batches, int64_t *distance) {
    *distance = 0;
    return cusparseSpMatGetStridedBatch(matrix, batches);
}
