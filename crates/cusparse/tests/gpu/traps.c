/* Tests of uses of cuSPARSE that a library in front of it might get wrong ("traps"). It prints one
 * line a trap and exits with 1 if one has failed. Lines with "right" or "other" are about behavior
 * that cuSPARSE does not promise: they fail nothing, but should be the same with and without the
 * drop-in. All traps hold with cuSPARSE alone, too: run the program with and without the drop-in
 * preloaded, and with TARSIA_CUSPARSE=force. The last line but one is a hash of the results of
 * `repeated`, whose bits are the same in every run, to compare runs of the same library.
 *
 * With the argument `views` it computes products of descriptors that describe only a part of the
 * arrays, which may end the program.
 *
 * cc -std=c11 -O1 traps.c -I$CUDA/include -L$CUDA/lib64 -lcusparse -lcudart -lm -lpthread -ldl
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));       \
            fflush(stdout);                                                                        \
            _Exit(1); /* Other threads may be in calls. */                                         \
        }                                                                                          \
    } while (0)
#define SPARSE(call)                                                                               \
    do {                                                                                           \
        cusparseStatus_t status = (call);                                                          \
        if (status != CUSPARSE_STATUS_SUCCESS) {                                                   \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cusparseGetErrorString(status));  \
            fflush(stdout);                                                                        \
            _Exit(1); /* Other threads may be in calls. */                                         \
        }                                                                                          \
    } while (0)

/* Sizes with which rows do not get a warp each, and one row is split among many blocks. */
enum { ROWS = 30000, COLS = 20000, MOST = 600000, N = 33 };
#define NON_TRANSPOSE CUSPARSE_OPERATION_NON_TRANSPOSE
#define TRANSPOSE CUSPARSE_OPERATION_TRANSPOSE
#define GUARD ((size_t)1 << 16)

static int failures;
/* Hash of the results of `repeated`; only those, since other sums may be added in another order
 * each time. */
static uint64_t bits = 1469598103934665603u;

static void trap(const char *name, int is_right) {
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = cudaGetLastError();
    if (error != cudaSuccess) {
        printf("FAILED %s: %s\n", name, cudaGetErrorString(error));
        exit(1);
    }
    printf("%s %s\n", is_right ? "ok    " : "FAILED", name);
    fflush(stdout);
    failures += !is_right;
}

/* Reports behavior that cuSPARSE does not promise, to compare with cuSPARSE alone. Fails nothing,
 * except by an error of CUDA. */
static void note(const char *name, int is_right) {
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        printf("FAILED %s: %s\n", name, cudaGetErrorString(error));
        exit(1);
    }
    printf("%s %s\n", is_right ? "right " : "other ", name);
    fflush(stdout);
}

static double drawn(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 12) / (double)(1ll << 51) - 1;
}

/* A matrix on the host and on the device. */
typedef struct {
    int rows, cols, nnz, *offsets, *columns, *row_of;
    double *values;
    int *d_offsets, *d_columns, *d_row_of;
    double *d_values;
} Matrix;

static void upload(Matrix *m) {
    size_t nnz = (size_t)m->nnz;
    CUDA(cudaMemcpy(m->d_offsets, m->offsets, ((size_t)m->rows + 1) * sizeof(int),
                    cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(m->d_columns, m->columns, nnz * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(m->d_row_of, m->row_of, nnz * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(m->d_values, m->values, nnz * sizeof(double), cudaMemcpyHostToDevice));
}

static void allocate(Matrix *m) {
    CUDA(cudaMalloc((void **)&m->d_offsets, (ROWS + 1) * sizeof(int)));
    CUDA(cudaMalloc((void **)&m->d_columns, MOST * sizeof(int)));
    CUDA(cudaMalloc((void **)&m->d_row_of, MOST * sizeof(int)));
    CUDA(cudaMalloc((void **)&m->d_values, MOST * sizeof(double)));
}

static void release(Matrix *m) {
    CUDA(cudaFree(m->d_offsets));
    CUDA(cudaFree(m->d_columns));
    CUDA(cudaFree(m->d_row_of));
    CUDA(cudaFree(m->d_values));
}

/* Draws row lengths, columns and values on the host, which depend on the seed. */
static void draw(Matrix *m, uint64_t seed) {
    uint64_t state = seed * 77777 + 1;
    int nnz = 0;
    for (int row = 0; row < m->rows; ++row) {
        m->offsets[row] = nnz;
        int length = (int)((drawn(&state) + 1) * 9);
        if (row % 1000 == (int)(seed % 1000))
            length = m->cols / 4;
        for (int at = 0; at < length && nnz < MOST; ++at) {
            m->row_of[nnz] = row;
            m->columns[nnz] = (int)((int64_t)at * m->cols / length);
            m->values[nnz++] = drawn(&state);
        }
    }
    m->offsets[m->rows] = m->nnz = nnz;
}

/* Makes a matrix of at most ROWS rows. */
static Matrix make_of(int rows, int cols, uint64_t seed) {
    Matrix m = {.rows = rows, .cols = cols};
    m.offsets = malloc((ROWS + 1) * sizeof(int));
    m.columns = malloc(MOST * sizeof(int));
    m.row_of = malloc(MOST * sizeof(int));
    m.values = malloc(MOST * sizeof(double));
    draw(&m, seed);
    allocate(&m);
    upload(&m);
    return m;
}

static Matrix make(uint64_t seed) { return make_of(ROWS, COLS, seed); }

static cusparseSpMatDescr_t csr_of(const Matrix *m) {
    cusparseSpMatDescr_t a;
    SPARSE(cusparseCreateCsr(&a, m->rows, m->cols, m->nnz, m->d_offsets, m->d_columns, m->d_values,
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                             CUDA_R_64F));
    return a;
}

/* Values of a dense operand, on the host and on the device. */
typedef struct {
    double *host, *device;
    size_t count;
} Dense;

static Dense dense(size_t count, uint64_t seed) {
    Dense d = {malloc(count * sizeof(double)), NULL, count};
    for (size_t at = 0; at < count; ++at)
        d.host[at] = drawn(&seed);
    CUDA(cudaMalloc((void **)&d.device, count * sizeof(double)));
    CUDA(cudaMemcpy(d.device, d.host, count * sizeof(double), cudaMemcpyHostToDevice));
    return d;
}

static void put(const Dense *d) {
    CUDA(cudaMemcpy(d->device, d->host, d->count * sizeof(double), cudaMemcpyHostToDevice));
}

static void end(Dense *d) {
    free(d->host);
    CUDA(cudaFree(d->device));
}

/* Defined in the middle of this file: it uses the functions above. */
#include "spgemm_traps.h"

static uint64_t hash_of(const double *values, size_t count) {
    uint64_t hash = 1469598103934665603u;
    for (size_t at = 0; at < count; ++at) {
        uint64_t word;
        memcpy(&word, &values[at], 8);
        hash = (hash ^ word) * 1099511628211u;
    }
    return hash;
}

/* Returns whether y on the device is alpha * A * x + beta * y, with A, x and y of the host. */
static int is_spmv(const Matrix *m, double alpha, const Dense *x, double beta, const Dense *y) {
    double *found = malloc(y->count * sizeof(double));
    CUDA(cudaMemcpy(found, y->device, y->count * sizeof(double), cudaMemcpyDeviceToHost));
    int is_right = 1;
    for (int row = 0; row < m->rows; ++row) {
        double sum = 0, size = 1;
        for (int at = m->offsets[row]; at < m->offsets[row + 1]; ++at) {
            sum += m->values[at] * x->host[m->columns[at]];
            size += fabs(m->values[at] * x->host[m->columns[at]]);
        }
        double expected = alpha * sum + (beta == 0 ? 0 : beta * y->host[row]);
        is_right &= fabs(found[row] - expected) <= 1e-12 * size;
    }
    free(found);
    return is_right;
}

/* Returns whether C on the device is alpha * A * op(B) + beta * C, with A, B and C of the host. B
 * and C have no gaps. */
static int is_spmm(const Matrix *m, cusparseOperation_t op, cusparseOrder_t b_order,
                   cusparseOrder_t c_order, int n, double alpha, const Dense *b, double beta,
                   const Dense *c) {
    double *found = malloc(c->count * sizeof(double));
    CUDA(cudaMemcpy(found, c->device, c->count * sizeof(double), cudaMemcpyDeviceToHost));
    int is_right = 1;
    /* True if op(B) is stored by rows. */
    int by_rows = (b_order == CUSPARSE_ORDER_ROW) != (op == TRANSPOSE);
    for (int row = 0; row < m->rows; ++row) {
        for (int j = 0; j < n; ++j) {
            double sum = 0, size = 1;
            for (int at = m->offsets[row]; at < m->offsets[row + 1]; ++at) {
                size_t k = (size_t)m->columns[at];
                double of_b =
                    b->host[by_rows ? k * (size_t)n + (size_t)j : k + (size_t)j * (size_t)m->cols];
                sum += m->values[at] * of_b;
                size += fabs(m->values[at] * of_b);
            }
            size_t at = c_order == CUSPARSE_ORDER_ROW ? (size_t)row * (size_t)n + (size_t)j
                                                      : (size_t)row + (size_t)j * (size_t)m->rows;
            double expected = alpha * sum + (beta == 0 ? 0 : beta * c->host[at]);
            is_right &= fabs(found[at] - expected) <= 1e-12 * size;
        }
    }
    free(found);
    return is_right;
}

/* Descriptors and buffer of a product. Nothing may be written behind the end of the buffer. */
typedef struct {
    cusparseSpMatDescr_t a;
    cusparseDnVecDescr_t x, y;
    cusparseDnMatDescr_t b, c;
    cusparseOperation_t op;
    cusparseSpMVAlg_t spmv;
    cusparseSpMMAlg_t spmm;
    char *buffer;
    size_t bytes;
} Product;

static void guard(Product *p) {
    CUDA(cudaMalloc((void **)&p->buffer, p->bytes + GUARD));
    CUDA(cudaMemset(p->buffer, 0xa5, p->bytes + GUARD));
}

static int is_guarded(const Product *p) {
    unsigned char *found = malloc(GUARD);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(found, p->buffer + p->bytes, GUARD, cudaMemcpyDeviceToHost));
    int is_right = 1;
    for (size_t at = 0; at < GUARD; ++at)
        is_right &= found[at] == 0xa5;
    free(found);
    return is_right;
}

static Product spmv_of(cusparseHandle_t handle, const Matrix *m, const Dense *x, const Dense *y) {
    Product p = {.a = csr_of(m), .spmv = CUSPARSE_SPMV_ALG_DEFAULT};
    double one = 1;
    SPARSE(cusparseCreateDnVec(&p.x, m->cols, x->device, CUDA_R_64F));
    SPARSE(cusparseCreateDnVec(&p.y, m->rows, y->device, CUDA_R_64F));
    SPARSE(cusparseSpMV_bufferSize(handle, NON_TRANSPOSE, &one, p.a, p.x, &one, p.y, CUDA_R_64F,
                                   p.spmv, &p.bytes));
    guard(&p);
    return p;
}

static cusparseStatus_t spmv(cusparseHandle_t handle, const Product *p, const double *alpha,
                             const double *beta) {
    return cusparseSpMV(handle, NON_TRANSPOSE, alpha, p->a, p->x, beta, p->y, CUDA_R_64F, p->spmv,
                        p->buffer);
}

static Product spmm_of(cusparseHandle_t handle, const Matrix *m, int n, cusparseSpMatDescr_t a,
                       cusparseOperation_t op, cusparseOrder_t b_order, cusparseOrder_t c_order,
                       const Dense *b, const Dense *c) {
    Product p = {.a = a, .op = op, .spmm = CUSPARSE_SPMM_ALG_DEFAULT};
    double one = 1;
    int b_rows = op == NON_TRANSPOSE ? m->cols : n, b_cols = op == NON_TRANSPOSE ? n : m->cols;
    SPARSE(cusparseCreateDnMat(&p.b, b_rows, b_cols,
                               b_order == CUSPARSE_ORDER_COL ? b_rows : b_cols, b->device,
                               CUDA_R_64F, b_order));
    SPARSE(cusparseCreateDnMat(&p.c, m->rows, n, c_order == CUSPARSE_ORDER_COL ? m->rows : n,
                               c->device, CUDA_R_64F, c_order));
    SPARSE(cusparseSpMM_bufferSize(handle, NON_TRANSPOSE, op, &one, p.a, p.b, &one, p.c, CUDA_R_64F,
                                   p.spmm, &p.bytes));
    guard(&p);
    return p;
}

static cusparseStatus_t spmm(cusparseHandle_t handle, const Product *p, const double *alpha,
                             const double *beta) {
    return cusparseSpMM(handle, NON_TRANSPOSE, p->op, alpha, p->a, p->b, beta, p->c, CUDA_R_64F,
                        p->spmm, p->buffer);
}

static void end_product(Product *p) {
    SPARSE(cusparseDestroySpMat(p->a));
    if (p->x) {
        SPARSE(cusparseDestroyDnVec(p->x));
        SPARSE(cusparseDestroyDnVec(p->y));
    } else {
        SPARSE(cusparseDestroyDnMat(p->b));
        SPARSE(cusparseDestroyDnMat(p->c));
    }
    CUDA(cudaFree(p->buffer));
}

static void scalars(cusparseHandle_t handle, const Matrix *m, const Dense *x, Dense *y) {
    double alpha = 1.25, beta = -0.5, zero = 0, *device;
    Product p = spmv_of(handle, m, x, y);
    put(y);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, alpha and beta on the host", is_spmv(m, alpha, x, beta, y) && is_guarded(&p));

    CUDA(cudaMalloc((void **)&device, 2 * sizeof(double)));
    CUDA(cudaMemcpy(&device[0], &alpha, sizeof alpha, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(&device[1], &beta, sizeof beta, cudaMemcpyHostToDevice));
    put(y);
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
    SPARSE(spmv(handle, &p, &device[0], &device[1]));
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
    trap("SpMV, alpha and beta on the device", is_spmv(m, alpha, x, beta, y));

    Dense nan = dense(ROWS, 3);
    for (int at = 0; at < ROWS; ++at)
        nan.host[at] = NAN;
    put(&nan);
    Product over_nan = spmv_of(handle, m, x, &nan);
    SPARSE(spmv(handle, &over_nan, &alpha, &zero));
    trap("SpMV, beta = 0 and y = NaN", is_spmv(m, alpha, x, 0, &nan));
    end_product(&over_nan);
    end(&nan);

    put(y);
    int is_refused = spmv(handle, &p, NULL, &beta) != CUSPARSE_STATUS_SUCCESS;
    trap("SpMV, NULL alpha is refused and y as it was", is_refused && is_spmv(m, 0, x, 1, y));

    char *buffer = p.buffer;
    p.buffer = NULL;
    int is_done = spmv(handle, &p, &alpha, &beta) == CUSPARSE_STATUS_SUCCESS;
    trap("SpMV, NULL buffer", is_done ? is_spmv(m, alpha, x, beta, y) : is_spmv(m, 0, x, 1, y));
    p.buffer = buffer;

    /* A call with another algorithm after an error, as CuPy makes it. */
    put(y);
    Product wrong = p;
    wrong.spmv = CUSPARSE_SPMV_COO_ALG1;
    wrong.x = p.y;
    int is_error = spmv(handle, &wrong, &alpha, &beta) != CUSPARSE_STATUS_SUCCESS;
    p.spmv = CUSPARSE_SPMV_CSR_ALG2;
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, ALG2 after an error", is_error && is_spmv(m, alpha, x, beta, y));
    p.spmv = CUSPARSE_SPMV_ALG_DEFAULT;
    end_product(&p);
    CUDA(cudaFree(device));
}

/* Products with matrices without rows, columns or entries. */
static void empty(cusparseHandle_t handle, const Dense *x, Dense *y) {
    const int shapes[][2] = {{0, 0}, {0, COLS}, {ROWS, 0}, {ROWS, COLS}};
    for (int shape = 0; shape < 4; ++shape) {
        Matrix m = {.rows = shapes[shape][0], .cols = shapes[shape][1]};
        m.offsets = calloc(ROWS + 1, sizeof(int));
        allocate(&m);
        CUDA(cudaMemset(m.d_offsets, 0, (ROWS + 1) * sizeof(int)));
        for (int has_arrays = 0; has_arrays < 2; ++has_arrays) {
            Matrix given = m;
            if (!has_arrays)
                given.d_columns = NULL, given.d_values = NULL;
            double alpha = 2, beta = -3;
            put(y);
            cusparseSpMatDescr_t a;
            cusparseDnVecDescr_t vx = NULL, vy = NULL;
            int is_made =
                !cusparseCreateCsr(&a, given.rows, given.cols, 0, given.d_offsets, given.d_columns,
                                   given.d_values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                   CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F) &&
                !cusparseCreateDnVec(&vx, given.cols, x->device, CUDA_R_64F) &&
                !cusparseCreateDnVec(&vy, given.rows, y->device, CUDA_R_64F);
            int is_done =
                is_made && cusparseSpMV(handle, NON_TRANSPOSE, &alpha, a, vx, &beta, vy, CUDA_R_64F,
                                        CUSPARSE_SPMV_ALG_DEFAULT, NULL) == CUSPARSE_STATUS_SUCCESS;
            Dense of_rows = *y;
            of_rows.count = (size_t)given.rows;
            char name[100];
            snprintf(name, sizeof name, "SpMV, empty, %d x %d, %s%s", given.rows, given.cols,
                     has_arrays ? "with arrays" : "NULL arrays",
                     is_done ? "" : " (refused, by cuSPARSE)");
            trap(name, is_spmv(&m, 0, x, is_done ? beta : 1, &of_rows));
            if (is_made) {
                SPARSE(cusparseDestroySpMat(a));
                SPARSE(cusparseDestroyDnVec(vx));
                SPARSE(cusparseDestroyDnVec(vy));
            }
        }
        release(&m);
        free(m.offsets);
    }
}

static void changes(cusparseHandle_t handle, const Dense *x, Dense *y) {
    double alpha = 1, beta = 0;
    Matrix m = make(11);
    Product p = spmv_of(handle, &m, x, y);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    int is_right = is_spmv(&m, alpha, x, beta, y);
    for (int at = 0; at < m.nnz; ++at)
        m.values[at] *= -1.5;
    upload(&m);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, values changed in place", is_right && is_spmv(&m, alpha, x, beta, y));

    /* The same number of entries, in other columns and rows. */
    for (int row = 0, at = 0; row < m.rows; ++row) {
        m.offsets[row + 1] = (int)((int64_t)m.nnz * (row + 1) / m.rows);
        for (; at < m.offsets[row + 1]; ++at) {
            m.row_of[at] = row;
            m.columns[at] = (int)(((int64_t)m.columns[at] * 7 + 3) % m.cols);
        }
    }
    upload(&m);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, pattern changed in place", is_spmv(&m, alpha, x, beta, y));

    /* The descriptor is destroyed and made again for the same arrays with another pattern. */
    SPARSE(cusparseDestroySpMat(p.a));
    draw(&m, 12);
    upload(&m);
    p.a = csr_of(&m);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, descriptor destroyed and made again", is_spmv(&m, alpha, x, beta, y));

    /* The arrays are freed, and new ones most likely get the same addresses. */
    SPARSE(cusparseDestroySpMat(p.a));
    release(&m);
    draw(&m, 13);
    allocate(&m);
    upload(&m);
    p.a = csr_of(&m);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, arrays freed and used again with another pattern", is_spmv(&m, alpha, x, beta, y));

    Matrix other = make(14);
    SPARSE(cusparseDestroySpMat(p.a));
    m.nnz = other.nnz;
    p.a = csr_of(&m);
    SPARSE(cusparseCsrSetPointers(p.a, other.d_offsets, other.d_columns, other.d_values));
    SPARSE(spmv(handle, &p, &alpha, &beta));
    trap("SpMV, cusparseCsrSetPointers", is_spmv(&other, alpha, x, beta, y));
    release(&other);
    release(&m);
    end_product(&p);
}

/* SpMV and SpMM of a matrix that is preprocessed, whose pattern then stays until it is preprocessed
 * again, and whose values change. */
static void preprocessed(cusparseHandle_t handle, const Dense *x, Dense *y, const Dense *b,
                         Dense *c) {
    double alpha = 1.5, beta = 0;
    Matrix m = make(31);
    Product p = spmv_of(handle, &m, x, y);
    Product q = spmm_of(handle, &m, N, csr_of(&m), NON_TRANSPOSE, CUSPARSE_ORDER_ROW,
                        CUSPARSE_ORDER_ROW, b, c);
    const cusparseOrder_t by = CUSPARSE_ORDER_ROW;
    double *values = m.d_values, *others;
    CUDA(cudaMalloc((void **)&others, MOST * sizeof(double)));
    int are_right = 1, are_changed = 1, are_others = 1;
    for (int round = 0; round < 2; ++round) {
        SPARSE(cusparseSpMV_preprocess(handle, NON_TRANSPOSE, &alpha, p.a, p.x, &beta, p.y,
                                       CUDA_R_64F, p.spmv, p.buffer));
        SPARSE(cusparseSpMM_preprocess(handle, NON_TRANSPOSE, NON_TRANSPOSE, &alpha, q.a, q.b,
                                       &beta, q.c, CUDA_R_64F, q.spmm, q.buffer));
        for (int step = 0; step < 4; ++step) {
            if (step == 2) {
                for (int at = 0; at < m.nnz; ++at)
                    m.values[at] = 0.25 - m.values[at];
                upload(&m);
            } else if (step == 3) {
                for (int at = 0; at < m.nnz; ++at)
                    m.values[at] *= 3;
                CUDA(cudaMemcpy(others, m.values, (size_t)m.nnz * sizeof(double),
                                cudaMemcpyHostToDevice));
                SPARSE(cusparseSpMatSetValues(p.a, others));
                SPARSE(cusparseSpMatSetValues(q.a, others));
            }
            CUDA(cudaMemset(y->device, 0xff, y->count * sizeof(double)));
            CUDA(cudaMemset(c->device, 0xff, c->count * sizeof(double)));
            SPARSE(spmv(handle, &p, &alpha, &beta));
            SPARSE(spmm(handle, &q, &alpha, &beta));
            int is_right = is_spmv(&m, alpha, x, beta, y) &&
                           is_spmm(&m, NON_TRANSPOSE, by, by, N, alpha, b, beta, c);
            *(step < 2 ? &are_right : step == 2 ? &are_changed : &are_others) &= is_right;
        }
        /* As many entries in other places, in the same arrays, which are set again. */
        for (int at = 0; at < m.nnz; ++at)
            m.columns[at] = (int)(((int64_t)m.columns[at] * 7 + 3) % m.cols);
        upload(&m);
        SPARSE(cusparseCsrSetPointers(p.a, m.d_offsets, m.d_columns, values));
        SPARSE(cusparseCsrSetPointers(q.a, m.d_offsets, m.d_columns, values));
    }
    trap("SpMV and SpMM, after preprocess", are_right);
    trap("SpMV and SpMM, after preprocess, values changed in place", are_changed);
    trap("SpMV and SpMM, after preprocess, cusparseSpMatSetValues", are_others);
    SPARSE(cusparseDestroySpMat(p.a));
    SPARSE(cusparseDestroySpMat(q.a));
    p.a = csr_of(&m), q.a = csr_of(&m);
    SPARSE(spmv(handle, &p, &alpha, &beta));
    SPARSE(spmm(handle, &q, &alpha, &beta));
    int is_new =
        is_spmv(&m, alpha, x, beta, y) && is_spmm(&m, NON_TRANSPOSE, by, by, N, alpha, b, beta, c);
    trap("SpMV and SpMM, after preprocess, descriptor made again with another pattern", is_new);

    /* A graph of products of a preprocessed matrix, beside other products. */
    cudaStream_t stream, other;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    SPARSE(cusparseSetStream(handle, stream));
    SPARSE(cusparseSpMV_preprocess(handle, NON_TRANSPOSE, &alpha, p.a, p.x, &beta, p.y, CUDA_R_64F,
                                   p.spmv, p.buffer));
    for (int at = 0; at < 2; ++at)
        SPARSE(spmv(handle, &p, &alpha, &beta));
    CUDA(cudaDeviceSynchronize());
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    int status = spmv(handle, &p, &alpha, &beta);
    CUDA(cudaStreamEndCapture(stream, &captured));
    CUDA(cudaGraphInstantiateWithFlags(&exec, captured, 0));
    Dense z = dense(ROWS, 33);
    cusparseDnVecDescr_t to_y = p.y;
    SPARSE(cusparseCreateDnVec(&p.y, ROWS, z.device, CUDA_R_64F));
    SPARSE(cusparseSetStream(handle, other));
    CUDA(cudaMemset(y->device, 0xff, y->count * sizeof(double)));
    char *buffer = p.buffer;
    cusparseSpMatDescr_t in_graph = p.a;
    p.a = csr_of(&m);
    CUDA(cudaMalloc((void **)&p.buffer, p.bytes));
    SPARSE(cusparseSpMV_preprocess(handle, NON_TRANSPOSE, &alpha, p.a, p.x, &beta, p.y, CUDA_R_64F,
                                   p.spmv, p.buffer));
    for (int at = 0; at < 100; ++at) {
        CUDA(cudaGraphLaunch(exec, stream));
        SPARSE(spmv(handle, &p, &alpha, &beta));
    }
    CUDA(cudaDeviceSynchronize());
    trap("SpMV, after preprocess, captured",
         !status && is_spmv(&m, alpha, x, beta, y) && is_spmv(&m, alpha, x, beta, &z));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(captured));
    SPARSE(cusparseSetStream(handle, NULL));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(other));
    CUDA(cudaFree(buffer));
    SPARSE(cusparseDestroySpMat(in_graph));
    SPARSE(cusparseDestroyDnVec(to_y));
    CUDA(cudaFree(others));
    end_product(&p), end_product(&q);
    end(&z);
    release(&m);
}

/* Products with one handle on two streams by turns, and on streams that come and go. */
static void streams(cusparseHandle_t handle, const Matrix *m, const Dense *x) {
    cudaStream_t stream[2];
    Dense y[2] = {dense(ROWS, 5), dense(ROWS, 6)};
    Product p[2] = {spmv_of(handle, m, x, &y[0]), spmv_of(handle, m, x, &y[1])};
    double one = 1, half = 0.5, zero = 0;
    for (int at = 0; at < 2; ++at)
        CUDA(cudaStreamCreateWithFlags(&stream[at], cudaStreamNonBlocking));
    for (int at = 0; at < 200; ++at) {
        SPARSE(cusparseSetStream(handle, stream[at % 2]));
        SPARSE(spmv(handle, &p[at % 2], at % 2 ? &one : &half, &zero));
    }
    CUDA(cudaDeviceSynchronize());
    trap("SpMV, two streams", is_spmv(m, half, x, 0, &y[0]) && is_spmv(m, one, x, 0, &y[1]));
    int is_right = 1;
    for (int at = 0; at < 20; ++at) {
        cudaStream_t passing;
        CUDA(cudaStreamCreate(&passing));
        SPARSE(cusparseSetStream(handle, passing));
        for (int times = 0; times < 5; ++times)
            SPARSE(spmv(handle, &p[0], &one, &zero));
        CUDA(cudaStreamDestroy(passing));
        CUDA(cudaDeviceSynchronize());
        is_right &= is_spmv(m, one, x, 0, &y[0]);
    }
    SPARSE(cusparseSetStream(handle, NULL));
    trap("SpMV, streams that are destroyed while work is on them", is_right);
    for (int at = 0; at < 2; ++at) {
        CUDA(cudaStreamDestroy(stream[at]));
        end_product(&p[at]);
        end(&y[at]);
    }
}

/* A graph of an SpMV and an SpMM, replayed while the same handle is used on another stream. */
static void graph(const Matrix *m, const Dense *x, const Dense *b, int is_first) {
    cusparseHandle_t handle;
    SPARSE(cusparseCreate(&handle));
    cudaStream_t stream, other;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    Dense y = dense(ROWS, 7), z = dense(ROWS, 8), c = dense((size_t)ROWS * N, 9);
    double one = 1, zero = 0;
    /* If `is_first`, sizes are asked for with another handle, so that this handle's first call is
     * in the capture. */
    cusparseHandle_t asking = handle;
    if (is_first)
        SPARSE(cusparseCreate(&asking));
    Product p = spmv_of(asking, m, x, &y), q = spmv_of(asking, m, x, &z);
    Product r = spmm_of(asking, m, N, csr_of(m), NON_TRANSPOSE, CUSPARSE_ORDER_COL,
                        CUSPARSE_ORDER_COL, b, &c);
    SPARSE(cusparseSetStream(handle, stream));
    if (!is_first) {
        SPARSE(spmv(handle, &p, &one, &zero));
        SPARSE(spmm(handle, &r, &one, &zero));
        CUDA(cudaDeviceSynchronize());
    }
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    int status = spmv(handle, &p, &one, &zero);
    int of_spmm = spmm(handle, &r, &one, &zero);
    cudaError_t end_of_capture = cudaStreamEndCapture(stream, &captured);
    if (is_first && (status || of_spmm || end_of_capture != cudaSuccess)) {
        /* cuSPARSE has refused the calls, which the drop-in forwards. */
        (void)cudaGetLastError();
        trap("a handle first used in a capture (refused, by cuSPARSE)", 1);
        return;
    }
    CUDA(end_of_capture);
    CUDA(cudaGraphInstantiateWithFlags(&exec, captured, 0));
    const char *name = is_first ? "a handle first used in a capture" : "capture and 1000 replays";
    int is_right = status == 0 && of_spmm == 0;
    CUDA(cudaMemset(y.device, 0xff, ROWS * sizeof(double)));
    CUDA(cudaMemset(c.device, 0xff, (size_t)ROWS * N * sizeof(double)));
    /* Calls on another stream run beside the graph. */
    SPARSE(cusparseSetStream(handle, other));
    for (int at = 0; is_right && at < 1000; ++at) {
        CUDA(cudaGraphLaunch(exec, stream));
        SPARSE(spmv(handle, &q, &one, &zero));
    }
    CUDA(cudaDeviceSynchronize());
    trap(name,
         is_right && is_spmv(m, 1, x, 0, &y) && is_spmv(m, 1, x, 0, &z) &&
             is_spmm(m, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL, N, 1, b, 0, &c));
    trap("    no byte behind the buffers of the graph is written",
         is_guarded(&p) && is_guarded(&r));
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(captured));
    end_product(&p), end_product(&q), end_product(&r);
    end(&y), end(&z), end(&c);
    if (is_first)
        SPARSE(cusparseDestroy(asking));
    SPARSE(cusparseDestroy(handle));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaStreamDestroy(other));
}

typedef struct {
    const Matrix *m;
    const Dense *x, *b;
    cusparseHandle_t shared;
    int number, is_right;
} Thread;

/* Uses handles that come and go, and one that all threads share. */
static void *run_thread(void *argument) {
    Thread *thread = argument;
    Dense y = dense(ROWS, 20 + (uint64_t)thread->number);
    Dense c = dense((size_t)ROWS * 8, 40 + (uint64_t)thread->number);
    double alpha = 1 + thread->number, zero = 0;
    thread->is_right = 1;
    for (int round = 0; round < 5; ++round) {
        cusparseHandle_t handle = thread->shared;
        cudaStream_t stream;
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        if (round < 4) {
            SPARSE(cusparseCreate(&handle));
            SPARSE(cusparseSetStream(handle, stream));
        }
        Product p = spmv_of(handle, thread->m, thread->x, &y);
        Product q = spmm_of(handle, thread->m, 8, csr_of(thread->m), NON_TRANSPOSE,
                            CUSPARSE_ORDER_ROW, CUSPARSE_ORDER_ROW, thread->b, &c);
        for (int at = 0; at < 50; ++at) {
            SPARSE(spmv(handle, &p, &alpha, &zero));
            SPARSE(spmm(handle, &q, &alpha, &zero));
        }
        CUDA(cudaDeviceSynchronize());
        thread->is_right &= is_spmv(thread->m, alpha, thread->x, 0, &y) && is_guarded(&q) &&
                            is_spmm(thread->m, NON_TRANSPOSE, CUSPARSE_ORDER_ROW,
                                    CUSPARSE_ORDER_ROW, 8, alpha, thread->b, 0, &c);
        end_product(&p), end_product(&q);
        if (round < 4)
            SPARSE(cusparseDestroy(handle));
        CUDA(cudaStreamDestroy(stream));
    }
    end(&y), end(&c);
    return NULL;
}

static void threads(cusparseHandle_t handle, const Matrix *m, const Dense *x, const Dense *b) {
    pthread_t ids[8];
    Thread all[8];
    int is_right = 1;
    for (int at = 0; at < 8; ++at) {
        all[at] = (Thread){m, x, b, handle, at, 0};
        pthread_create(&ids[at], NULL, run_thread, &all[at]);
    }
    for (int at = 0; at < 8; ++at) {
        pthread_join(ids[at], NULL);
        is_right &= all[at].is_right;
    }
    trap("8 threads with handles of their own, and one that they share", is_right);
}

/* SpMM in all orders, with buffers of exactly the size that was answered. */
static void matrices(cusparseHandle_t handle, const Matrix *m, const Dense *b, Dense *c) {
    const double alpha = -0.75;
    for (int form = 0; form < 16; ++form) {
        cusparseOrder_t b_order = form & 1 ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
        cusparseOrder_t c_order = form & 2 ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
        cusparseOperation_t op = form & 4 ? TRANSPOSE : NON_TRANSPOSE;
        int is_coo = form & 8, n = form % 3 == 0 ? N : form % 3 == 1 ? 8 : 1;
        double beta = form % 3 ? 0.25 : 0;
        cusparseSpMatDescr_t a;
        if (is_coo)
            SPARSE(cusparseCreateCoo(&a, m->rows, m->cols, m->nnz, m->d_row_of, m->d_columns,
                                     m->d_values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                     CUDA_R_64F));
        else
            a = csr_of(m);
        Dense part_b = *b, part_c = *c;
        part_b.count = (size_t)COLS * (size_t)n;
        part_c.count = (size_t)ROWS * (size_t)n;
        put(&part_c);
        Product p = spmm_of(handle, m, n, a, op, b_order, c_order, &part_b, &part_c);
        SPARSE(spmm(handle, &p, &alpha, &beta));
        int is_right = is_spmm(m, op, b_order, c_order, n, alpha, &part_b, beta, &part_c);
        char name[120];
        snprintf(name, sizeof name, "SpMM, %s, B by %s%s, C by %s, N = %d", is_coo ? "COO" : "CSR",
                 form & 1 ? "rows" : "columns", form & 4 ? " transposed" : "",
                 form & 2 ? "rows" : "columns", n);
        trap(name, is_right && is_guarded(&p));
        end_product(&p);
    }
    /* After preprocess the buffer holds data of cuSPARSE. */
    double one = 1, zero = 0;
    Product p = spmm_of(handle, m, N, csr_of(m), NON_TRANSPOSE, CUSPARSE_ORDER_COL,
                        CUSPARSE_ORDER_COL, b, c);
    p.spmm = CUSPARSE_SPMM_CSR_ALG3;
    size_t bytes = 0;
    SPARSE(cusparseSpMM_bufferSize(handle, NON_TRANSPOSE, NON_TRANSPOSE, &one, p.a, p.b, &zero, p.c,
                                   CUDA_R_64F, p.spmm, &bytes));
    CUDA(cudaFree(p.buffer));
    p.bytes = bytes;
    guard(&p);
    SPARSE(cusparseSpMM_preprocess(handle, NON_TRANSPOSE, NON_TRANSPOSE, &one, p.a, p.b, &zero, p.c,
                                   CUDA_R_64F, p.spmm, p.buffer));
    int is_right = 1;
    for (int at = 0; at < 3; ++at) {
        SPARSE(spmm(handle, &p, &one, &zero));
        is_right &=
            is_spmm(m, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL, N, 1, b, 0, c);
    }
    trap("SpMM, after preprocess", is_right && is_guarded(&p));
    /* The same buffer with a new descriptor, as in hypre. */
    SPARSE(cusparseDestroySpMat(p.a));
    p.a = csr_of(m);
    SPARSE(spmm(handle, &p, &one, &zero));
    is_right = is_spmm(m, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL, N, 1, b, 0, c);
    trap("SpMM, after preprocess of a descriptor that was destroyed", is_right && is_guarded(&p));

    double *device;
    CUDA(cudaMalloc((void **)&device, 2 * sizeof(double)));
    CUDA(cudaMemcpy(&device[0], &one, sizeof one, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(&device[1], &one, sizeof one, cudaMemcpyHostToDevice));
    put(c);
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
    SPARSE(spmm(handle, &p, &device[0], &device[1]));
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
    trap("SpMM, alpha and beta on the device",
         is_spmm(m, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL, N, 1, b, 1, c));
    CUDA(cudaFree(device));

    end_product(&p);
}

/* COO whose entries are in no order, and a buffer that was asked for with fewer columns. */
static void orders_and_buffers(cusparseHandle_t handle, const Matrix *m, const Dense *b, Dense *c) {
    const double one = 1, zero = 0;
    Matrix mixed = *m;
    size_t bytes = (size_t)m->nnz * sizeof(int);
    mixed.row_of = malloc(bytes), mixed.columns = malloc(bytes);
    mixed.values = malloc((size_t)m->nnz * sizeof(double));
    /* 7919 is prime and does not divide nnz, so that this is a permutation of the entries. */
    for (int at = 0; at < m->nnz; ++at) {
        int to = (int)((int64_t)at * 7919 % m->nnz);
        mixed.row_of[to] = m->row_of[at], mixed.columns[to] = m->columns[at];
        mixed.values[to] = m->values[at];
    }
    allocate(&mixed);
    upload(&mixed);
    for (int n = 1; n <= N; n += N - 1) {
        cusparseSpMatDescr_t a;
        SPARSE(cusparseCreateCoo(&a, m->rows, m->cols, m->nnz, mixed.d_row_of, mixed.d_columns,
                                 mixed.d_values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                 CUDA_R_64F));
        Dense part_b = *b, part_c = *c;
        part_b.count = (size_t)COLS * (size_t)n;
        part_c.count = (size_t)ROWS * (size_t)n;
        Product p = spmm_of(handle, m, n, a, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL,
                            &part_b, &part_c);
        SPARSE(spmm(handle, &p, &one, &zero));
        note(n == 1 ? "SpMM, COO in no order, N = 1" : "SpMM, COO in no order, N = 33",
             is_spmm(m, NON_TRANSPOSE, CUSPARSE_ORDER_COL, CUSPARSE_ORDER_COL, n, 1, &part_b, 0,
                     &part_c));
        end_product(&p);
    }
    release(&mixed);
    free(mixed.row_of), free(mixed.columns), free(mixed.values);

    for (int order = 0; order < 2; ++order) {
        cusparseOrder_t by = order ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
        Product p = spmm_of(handle, m, 2, csr_of(m), NON_TRANSPOSE, by, by, b, c);
        Product wide = spmm_of(handle, m, N, csr_of(m), NON_TRANSPOSE, by, by, b, c);
        /* The size for a larger product must not count: this buffer is for two columns. */
        char *buffer = wide.buffer;
        wide.buffer = p.buffer;
        Product other = wide;
        SPARSE(cusparseDestroyDnMat(wide.c));
        SPARSE(cusparseDestroyDnMat(wide.b));
        int n = N - 1;
        SPARSE(cusparseCreateDnMat(&other.b, m->cols, n, order ? n : m->cols, b->device, CUDA_R_64F,
                                   by));
        SPARSE(cusparseCreateDnMat(&other.c, m->rows, n, order ? n : m->rows, c->device, CUDA_R_64F,
                                   by));
        Dense part_b = *b, part_c = *c;
        part_b.count = (size_t)COLS * (size_t)n;
        part_c.count = (size_t)ROWS * (size_t)n;
        SPARSE(spmm(handle, &other, &one, &zero));
        trap(order ? "SpMM by rows, a buffer that was asked for with fewer columns"
                   : "SpMM by columns, a buffer that was asked for with fewer columns",
             is_spmm(m, NON_TRANSPOSE, by, by, n, 1, &part_b, 0, &part_c) && is_guarded(&p));
        other.buffer = buffer;
        end_product(&other);
        end_product(&p);
    }
}

/* Descriptors that describe only a part of the arrays, although cuSPARSE requires offsets that
 * begin at the base and end at nnz. */
static void views(cusparseHandle_t handle, const Matrix *m, const Dense *x, Dense *y) {
    const double one = 1, zero = 0;
    Matrix part = *m;
    part.rows = ROWS / 2;
    Dense half = *y;
    half.count = ROWS / 2;
    Product p = spmv_of(handle, &part, x, &half);
    SPARSE(spmv(handle, &p, &one, &zero));
    note("SpMV, nnz is more than the last offset", is_spmv(&part, 1, x, 0, &half));
    end_product(&p);
    part.offsets += ROWS / 2, part.d_offsets += ROWS / 2;
    part.nnz = m->nnz - part.offsets[0];
    p = spmv_of(handle, &part, x, &half);
    SPARSE(spmv(handle, &p, &one, &zero));
    note("SpMV, offsets that begin behind the base", is_spmv(&part, 1, x, 0, &half));
    end_product(&p);
}

/* Checks that results have the same bits in every call. */
static void repeated(cusparseHandle_t handle, const Matrix *m, const Dense *x, const Dense *b,
                     const Dense *y, const Dense *c) {
    double one = 1, zero = 0;
    Product p = spmv_of(handle, m, x, y);
    Product q = spmm_of(handle, m, N, csr_of(m), NON_TRANSPOSE, CUSPARSE_ORDER_ROW,
                        CUSPARSE_ORDER_ROW, b, c);
    p.spmv = CUSPARSE_SPMV_CSR_ALG2;
    q.spmm = CUSPARSE_SPMM_CSR_ALG2;
    double *found = malloc(c->count * sizeof(double));
    uint64_t first[2] = {0, 0};
    int is_same[2] = {1, 1};
    for (int at = 0; at < 100; ++at) {
        SPARSE(spmv(handle, &p, &one, &zero));
        SPARSE(spmm(handle, &q, &one, &zero));
        const Dense *of[2] = {y, c};
        for (int which = 0; which < 2; ++which) {
            CUDA(cudaMemcpy(found, of[which]->device, of[which]->count * sizeof(double),
                            cudaMemcpyDeviceToHost));
            uint64_t hash = hash_of(found, of[which]->count);
            first[which] = at ? first[which] : hash;
            is_same[which] &= hash == first[which];
        }
    }
    for (int which = 0; which < 2; ++which)
        bits = (bits ^ first[which]) * 1099511628211u;
    trap("SpMV, the same bits in 100 calls", is_same[0]);
    trap("SpMM, the same bits in 100 calls", is_same[1]);
    free(found);
    end_product(&p), end_product(&q);
}

int main(int count, char **arguments) {
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, "cusparseSpMV");
    if (function && dladdr(function, &info))
        printf("cusparseSpMV is in %s\n", info.dli_fname);
    Matrix m = make(1);
    Dense x = dense(COLS, 2), y = dense(ROWS, 3);
    Dense b = dense((size_t)COLS * N, 4), c = dense((size_t)ROWS * N, 5);
    if (count > 1 && strcmp(arguments[1], "views") == 0) {
        cusparseHandle_t handle;
        SPARSE(cusparseCreate(&handle));
        views(handle, &m, &x, &y);
        SPARSE(cusparseDestroy(handle));
        return 0;
    }
    /* The first graph comes before any other handle has been used. */
    graph(&m, &x, &b, 1);
    graph(&m, &x, &b, 0);
    cusparseHandle_t handle;
    SPARSE(cusparseCreate(&handle));
    scalars(handle, &m, &x, &y);
    empty(handle, &x, &y);
    changes(handle, &x, &y);
    preprocessed(handle, &x, &y, &b, &c);
    streams(handle, &m, &x);
    threads(handle, &m, &x, &b);
    matrices(handle, &m, &b, &c);
    repeated(handle, &m, &x, &b, &y, &c);
    orders_and_buffers(handle, &m, &b, &c);
    sparse_products(handle);
    SPARSE(cusparseDestroy(handle));
    printf("bits %016llx\n", (unsigned long long)bits);
    printf("%d failures\n", failures);
    return failures > 0;
}
