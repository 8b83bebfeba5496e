/* A program that computes products by the functions that the drop-in may take, on host memory, for
 * all types, indices, formats and orders, and compares them with its own results. The status that
 * the stand-in returns shows that a call was forwarded. The argument is the expected behavior:
 *
 * - taken: every product succeeds and is right, except that COO is forwarded
 * - forwarded: every product is forwarded, and its result is unchanged
 * - rules: products that cuSPARSE computes faster are forwarded, others are taken
 * - prepared N: products after preprocess are taken, of N columns or (0) of a vector; a third
 * argument says that values do not change
 * - refused N: products after a preprocess that cuSPARSE refuses have no plan
 * - operations: products of SpMVOp are taken
 * - handles N: products after preprocess have no plan once the handle was destroyed
 * - threads: products are taken in 8 threads, which have their own handles or share one
 * - fork: products are taken, and forwarded in a child made by fork
 * - inside: products are forwarded in a child that fork makes while another thread is in a call
 * - declined: unsupported products are forwarded, and their results are unchanged
 */
#define _GNU_SOURCE
#include "cusparse.h"
#include "numbers.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CSR = 1, CSC = 2, COO = 3 };
enum { SPMV_STATUS = 105, SPMM_STATUS = 115 };
enum { M = 37, K = 23, MOST = 400 };
/* Pattern of op(A), by rows. */
static int row_of[MOST], col_of[MOST], row_begin[M + 1], nnz;

static void make_pattern(void) {
    nnz = 0;
    for (int row = 0; row < M; ++row) {
        row_begin[row] = nnz;
        /* Row 5 is full, and every seventh row is empty. */
        for (int col = 0; col < K; ++col) {
            if (row == 5 || (row % 7 && drawn(4) == 0)) {
                row_of[nnz] = row;
                col_of[nnz++] = col;
            }
        }
    }
    row_begin[M] = nnz;
}

typedef struct {
    int format, offset_type, index_type, base, a, x, y, compute;
} Case;

/* Arrays of A in the case's format, in which the rows of op(A) are in order. */
typedef struct {
    void *first, *indices, *values;
    Object descriptor;
} Sparse;

static Sparse make_sparse(const Case *c) {
    Sparse a = {malloc(8 * (MOST + M + 1)), malloc(8 * MOST), array_of(c->a, MOST), NULL};
    for (int at = 0; at < nnz; ++at)
        put_index(c->index_type, a.indices, at, col_of[at] + c->base);
    if (c->format == COO) {
        for (int at = 0; at < nnz; ++at)
            put_index(c->index_type, a.first, at, row_of[at] + c->base);
        cusparseCreateCoo(&a.descriptor, M, K, nnz, a.first, a.indices, a.values, c->index_type,
                          c->base, c->a);
        return a;
    }
    for (int row = 0; row <= M; ++row)
        put_index(c->offset_type, a.first, row, row_begin[row] + c->base);
    if (c->format == CSR)
        cusparseCreateCsr(&a.descriptor, M, K, nnz, a.first, a.indices, a.values, c->offset_type,
                          c->index_type, c->base, c->a);
    else
        cusparseCreateCsc(&a.descriptor, K, M, nnz, a.first, a.indices, a.values, c->offset_type,
                          c->index_type, c->base, c->a);
    return a;
}

static void end_sparse(Sparse *a) {
    cusparseDestroySpMat(a->descriptor);
    free(a->first), free(a->indices), free(a->values);
}

static int are_close(int type, Number found, Number expected, double scale) {
    double unit = type == R16BF ? 1.0 / 128 : type == R16F ? 1.0 / 1024 : 0;
    return cabs(found - expected) <= unit * scale;
}

static char text[200];

static const char *describe(const Case *c) {
    snprintf(text, sizeof text, "format %d, offsets %d, indices %d, base %d, types %d %d %d %d",
             c->format, c->offset_type, c->index_type, c->base, c->a, c->x, c->y, c->compute);
    return text;
}

static Number scalars[2];

static void spmv(Object handle, const Case *c, int op, int status, Number alpha, Number beta) {
    Sparse a = make_sparse(c);
    void *x = array_of(c->x, K), *y = array_of(c->y, M), *before = malloc(M * 16);
    memcpy(before, y, M * size_of(c->y));
    put(c->compute, &scalars[0], 0, alpha);
    put(c->compute, &scalars[1], 0, beta);
    Object vx, vy;
    cusparseCreateDnVec(&vx, K, x, c->x);
    cusparseCreateDnVec(&vy, M, y, c->y);
    size_t bytes = 0;
    cusparseSpMV_bufferSize(handle, op, &scalars[0], a.descriptor, vx, &scalars[1], vy, c->compute,
                            0, &bytes);
    void *buffer = malloc(bytes + 1);
    int found = cusparseSpMV(handle, op, &scalars[0], a.descriptor, vx, &scalars[1], vy, c->compute,
                             2, buffer);
    int is_right = found == status;
    for (int row = 0; row < M; ++row) {
        Number old = get(c->y, before, row), sum = 0;
        for (int at = row_begin[row]; at < row_begin[row + 1]; ++at)
            sum += get(c->a, a.values, at) * get(c->x, x, col_of[at]);
        Number expected = status ? old : alpha * sum + (beta == 0 ? 0 : beta * old);
        is_right &= are_close(c->y, get(c->y, y, row), expected, cabs(alpha * sum) + 8);
    }
    expect(is_right, "SpMV", describe(c));
    cusparseDestroyDnVec(vx), cusparseDestroyDnVec(vy);
    free(x), free(y), free(before), free(buffer);
    end_sparse(&a);
}

/* Computes an SpMM and checks it. `orders` are those of B and C: 1 by columns, 2 by rows. */
static void spmm(Object handle, const Case *c, int op_a, int op_b, const int orders[2], int n,
                 int status, Number alpha, Number beta) {
    Sparse a = make_sparse(c);
    int b_rows = op_b ? n : K, b_cols = op_b ? K : n;
    /* Leading dimensions that are larger than necessary. */
    int b_ld = (orders[0] == 1 ? b_rows : b_cols) + 3, c_ld = (orders[1] == 1 ? M : n) + 1;
    int b_count = b_ld * (orders[0] == 1 ? b_cols : b_rows);
    int c_count = c_ld * (orders[1] == 1 ? n : M);
    void *b = array_of(c->x, b_count), *out = array_of(c->y, c_count);
    void *before = malloc((size_t)c_count * 16);
    memcpy(before, out, (size_t)c_count * size_of(c->y));
    put(c->compute, &scalars[0], 0, alpha);
    put(c->compute, &scalars[1], 0, beta);
    Object mb, mc;
    cusparseCreateDnMat(&mb, b_rows, b_cols, b_ld, b, c->x, orders[0]);
    cusparseCreateDnMat(&mc, M, n, c_ld, out, c->y, orders[1]);
    size_t bytes = 0;
    cusparseSpMM_bufferSize(handle, op_a, op_b, &scalars[0], a.descriptor, mb, &scalars[1], mc,
                            c->compute, 0, &bytes);
    void *buffer = malloc(bytes + 1);
    int found = cusparseSpMM(handle, op_a, op_b, &scalars[0], a.descriptor, mb, &scalars[1], mc,
                             c->compute, 0, buffer);
    int is_right = found == status;
    Number *expected = malloc((size_t)c_count * sizeof *expected);
    double *scale = calloc((size_t)c_count, sizeof *scale);
    for (int at = 0; at < c_count; ++at)
        expected[at] = get(c->y, before, at);
    for (int row = 0; !status && row < M; ++row) {
        for (int col = 0; col < n; ++col) {
            Number sum = 0;
            for (int at = row_begin[row]; at < row_begin[row + 1]; ++at) {
                int i = op_b ? col : col_of[at], j = op_b ? col_of[at] : col;
                sum += get(c->a, a.values, at) *
                       get(c->x, b, orders[0] == 1 ? i + j * b_ld : i * b_ld + j);
            }
            int at = orders[1] == 1 ? row + col * c_ld : row * c_ld + col;
            expected[at] = alpha * sum + (beta == 0 ? 0 : beta * expected[at]);
            scale[at] = cabs(alpha * sum) + 8;
        }
    }
    for (int at = 0; at < c_count; ++at)
        is_right &= are_close(c->y, get(c->y, out, at), expected[at], scale[at]);
    char more[260];
    snprintf(more, sizeof more, "%s, op(B) %d, orders %d %d, N = %d", describe(c), op_b, orders[0],
             orders[1], n);
    expect(is_right, "SpMM", more);
    cusparseDestroyDnMat(mb), cusparseDestroyDnMat(mc);
    free(b), free(out), free(before), free(expected), free(scale), free(buffer);
    end_sparse(&a);
}

static const int TYPES[][4] = {
    {R32F, R32F, R32F, R32F}, {R64F, R64F, R64F, R64F},    {R16F, R16F, R16F, R32F},
    {R16F, R16F, R32F, R32F}, {R16BF, R16BF, R16BF, R32F}, {R16BF, R16BF, R32F, R32F},
    {C32F, C32F, C32F, C32F}, {C64F, C64F, C64F, C64F},    {R32F, R64F, R64F, R64F},
};
static const int WIDTHS[][2] = {{2, 2}, {3, 2}, {3, 3}};

static void all(Object handle, int spmv_status, int spmm_status) {
    for (size_t types = 0; types < sizeof TYPES / sizeof *TYPES; ++types) {
        for (int width = 0; width < 3; ++width) {
            for (int form = 0; form < 6; ++form) {
                const int *t = TYPES[types];
                Case c = {CSR + form % 3,
                          WIDTHS[width][0],
                          WIDTHS[width][1],
                          form / 3,
                          t[0],
                          t[1],
                          t[2],
                          t[3]};
                /* COO has one index type for rows and columns, and is never taken. */
                int is_coo = c.format == COO;
                if (is_coo && c.offset_type != c.index_type)
                    continue;
                int op = c.format == CSC ? 1 : 0;
                Number beta = form % 2 ? -1.5 : 0;
                spmv(handle, &c, op, is_coo ? SPMV_STATUS : spmv_status, 0.5, beta);
                for (int orders = 0; orders < 8; ++orders) {
                    const int both[2] = {1 + orders % 2, 1 + orders / 2 % 2};
                    spmm(handle, &c, op, orders / 4, both, 1 + 6 * (orders % 3),
                         is_coo ? SPMM_STATUS : spmm_status, 2, beta);
                }
            }
        }
    }
}

/* Unsupported calls, each of which differs in one thing from a supported one. */
static void declined(Object handle) {
    const Case real = {CSR, 2, 2, 0, R64F, R64F, R64F, R64F};
    const int rows[2] = {2, 2};
    Case c = real;
    c.format = COO;
    spmv(handle, &c, 0, SPMV_STATUS, 1, 0);
    c.base = 1;
    spmm(handle, &c, 0, 0, rows, 4, SPMM_STATUS, 1, 0);
    c = real;
    c.compute = R32F;
    spmv(handle, &c, 0, SPMV_STATUS, 1, 0);
    spmm(handle, &c, 0, 0, rows, 4, SPMM_STATUS, 1, 0);
    c = real;
    spmm(handle, &c, 0, 2, rows, 4, SPMM_STATUS, 1, 0);
    /* op T of CSR, op N of CSC, and an invalid number of an operation. */
    spmv(handle, &c, 1, SPMV_STATUS, 1, 0);
    spmm(handle, &c, 1, 0, rows, 4, SPMM_STATUS, 1, 0);
    spmv(handle, &c, 7, SPMV_STATUS, 1, 0);
    c.format = CSC;
    spmv(handle, &c, 0, SPMV_STATUS, 1, 0);
    /* op C of complex values, since no array has the conjugates. */
    c.a = c.x = c.y = c.compute = C64F;
    spmv(handle, &c, 2, SPMV_STATUS, 1, 0);

    c = real;
    Sparse a = make_sparse(&c);
    double x[K] = {0}, y[M * 4] = {0}, b[K * 4] = {0}, one = 1;
    Object vx, vy, mb, mc;
    cusparseCreateDnVec(&vx, K, x, R64F);
    cusparseCreateDnVec(&vy, M, y, R64F);
    cusparseCreateDnMat(&mb, K, 4, 4, b, R64F, 2);
    cusparseCreateDnMat(&mc, M, 4, 4, y, R64F, 2);
#define SPMV(handle, alpha, a, x, beta, y, algorithm)                                              \
    expect(cusparseSpMV(handle, 0, alpha, a, x, beta, y, R64F, algorithm, NULL) == SPMV_STATUS,    \
           "SpMV", #handle ", " #alpha ", " #a ", " #x ", " #beta ", " #y ", " #algorithm)
#define SPMM(alpha, a, b, beta, c, algorithm)                                                      \
    expect(cusparseSpMM(handle, 0, 0, alpha, a, b, beta, c, R64F, algorithm, NULL) == SPMM_STATUS, \
           "SpMM", #alpha ", " #a ", " #b ", " #beta ", " #c ", " #algorithm)
    SPMV(NULL, &one, a.descriptor, vx, &one, vy, 0);
    SPMV(handle, NULL, a.descriptor, vx, &one, vy, 0);
    SPMV(handle, &one, NULL, vx, &one, vy, 0);
    SPMV(handle, &one, a.descriptor, NULL, &one, vy, 0);
    SPMV(handle, &one, a.descriptor, vx, NULL, vy, 0);
    SPMV(handle, &one, a.descriptor, vx, &one, NULL, 0);
    /* An algorithm for COO, one that does not exist, and vectors of the wrong length. */
    SPMV(handle, &one, a.descriptor, vx, &one, vy, 1);
    SPMV(handle, &one, a.descriptor, vx, &one, vy, 77);
    SPMV(handle, &one, a.descriptor, vy, &one, vx, 0);
    /* x is y: the lengths are wrong, and the two arrays must not share memory. */
    SPMV(handle, &one, a.descriptor, vx, &one, vx, 0);
    SPMM(NULL, a.descriptor, mb, &one, mc, 0);
    SPMM(&one, a.descriptor, mb, &one, NULL, 0);
    SPMM(&one, a.descriptor, mc, &one, mb, 0);
    SPMM(&one, a.descriptor, mb, &one, mc, 13);
    cusparseDnMatSetStridedBatch(mb, 2, 100);
    SPMM(&one, a.descriptor, mb, &one, mc, 0);
    cusparseDnMatSetStridedBatch(mb, 1, 0);
    /* The buffer of a preprocessed matrix belongs to cuSPARSE as long as the matrix lives; the plan
     * is for another algorithm. */
    cusparseSpMM_preprocess(handle, 0, 0, &one, a.descriptor, mb, &one, mc, R64F, 0, NULL);
    SPMM(&one, a.descriptor, mb, &one, mc, 4);
    Sparse other = make_sparse(&c);
    expect(cusparseSpMM(handle, 0, 0, &one, other.descriptor, mb, &one, mc, R64F, 0, NULL) == 0,
           "SpMM", "of another matrix than the preprocessed one");
    end_sparse(&a);
    end_sparse(&other);
    cusparseDestroyDnVec(vx), cusparseDestroyDnVec(vy);
    cusparseDestroyDnMat(mb), cusparseDestroyDnMat(mc);
}

/* Products that rules forward: SpMM with few entries and B and C by columns, but for 9 to 32
 * columns, and SpMV after preprocess for another algorithm. */
static void rules(Object handle) {
    const Case c = {CSR, 2, 2, 0, R64F, R64F, R64F, R64F};
    const Case single = {CSR, 2, 2, 0, R32F, R32F, R32F, R32F};
    const int columns[2] = {1, 1};
    spmm(handle, &single, 0, 0, columns, 8, SPMM_STATUS, 1, 0);
    spmm(handle, &single, 0, 0, columns, 32, 0, 1, 0);
    spmv(handle, &single, 0, 0, 1, 0);
    Sparse a = make_sparse(&c);
    double x[K] = {0}, y[M] = {0}, one = 1;
    Object vx, vy;
    cusparseCreateDnVec(&vx, K, x, R64F);
    cusparseCreateDnVec(&vy, M, y, R64F);
    expect(cusparseSpMV(handle, 0, &one, a.descriptor, vx, &one, vy, R64F, 0, NULL) == 0, "SpMV",
           "before preprocess");
    cusparseSpMV_preprocess(handle, 0, &one, a.descriptor, vx, &one, vy, R64F, 0, NULL);
    expect(cusparseSpMV(handle, 0, &one, a.descriptor, vx, &one, vy, R64F, 2, NULL) == SPMV_STATUS,
           "SpMV", "after preprocess");
    cusparseDestroyDnVec(vx), cusparseDestroyDnVec(vy);
    end_sparse(&a);
}

/* The product of a preprocessed matrix with a dense matrix of N columns, or with a vector. */
typedef struct {
    Object handle, dense, out;
    Sparse a;
    int columns;
    double b[K * 4], c[M * 4];
} Prepared;

static void preprocess(Prepared *p, int algorithm) {
    double one = 1, zero = 0;
    if (p->columns)
        cusparseSpMM_preprocess(p->handle, 0, 0, &one, p->a.descriptor, p->dense, &zero, p->out,
                                R64F, algorithm, NULL);
    else
        cusparseSpMV_preprocess(p->handle, 0, &one, p->a.descriptor, p->dense, &zero, p->out, R64F,
                                algorithm, NULL);
}

/* Computes the product, and checks it against `values` if the status is 0. */
static void is_computed(Prepared *p, int algorithm, const double *values, int status,
                        const char *when) {
    double alpha = 0.5, zero = 0;
    int n = p->columns ? p->columns : 1;
    memset(p->c, 0xff, sizeof p->c);
    int found = p->columns ? cusparseSpMM(p->handle, 0, 0, &alpha, p->a.descriptor, p->dense, &zero,
                                          p->out, R64F, algorithm, NULL)
                           : cusparseSpMV(p->handle, 0, &alpha, p->a.descriptor, p->dense, &zero,
                                          p->out, R64F, algorithm, NULL);
    int is_right = found == status;
    for (int row = 0; !status && row < M; ++row) {
        for (int col = 0; col < n; ++col) {
            double sum = 0;
            for (int at = row_begin[row]; at < row_begin[row + 1]; ++at)
                sum += values[at] * p->b[col_of[at] * n + col];
            is_right &= p->c[row * n + col] == alpha * sum;
        }
    }
    expect(is_right, p->columns ? "SpMM" : "SpMV", when);
}

static void change_columns(Prepared *p) {
    for (int row = 0; row < M; ++row) {
        for (int at = row_begin[row]; at < row_begin[row + 1]; ++at) {
            col_of[at] = (col_of[at] + 3) % K;
            put_index(2, p->a.indices, at, col_of[at]);
        }
    }
}

static const Case OF_DOUBLES = {CSR, 2, 2, 0, R64F, R64F, R64F, R64F};

static void make_prepared(Prepared *p, Object handle, int columns) {
    *p = (Prepared){.handle = handle, .a = make_sparse(&OF_DOUBLES), .columns = columns};
    for (int at = 0; at < K * 4; ++at)
        p->b[at] = creal(number(R64F));
    if (columns) {
        cusparseCreateDnMat(&p->dense, K, columns, columns, p->b, R64F, 2);
        cusparseCreateDnMat(&p->out, M, columns, columns, p->c, R64F, 2);
    } else {
        cusparseCreateDnVec(&p->dense, K, p->b, R64F);
        cusparseCreateDnVec(&p->out, M, p->c, R64F);
    }
}

static void end_prepared(Prepared *p) {
    end_sparse(&p->a);
    p->columns ? cusparseDestroyDnMat(p->dense) : cusparseDestroyDnVec(p->dense);
    p->columns ? cusparseDestroyDnMat(p->out) : cusparseDestroyDnVec(p->out);
}

/* A preprocess that cuSPARSE refuses promises nothing. */
static void refused(Object handle, int columns) {
    int forwarded = columns ? SPMM_STATUS : SPMV_STATUS;
    Prepared p;
    make_prepared(&p, handle, columns);
    unsetenv("STAND_IN_SIZES");
    preprocess(&p, 0);
    for (int round = 0; round < 3; ++round)
        is_computed(&p, 0, p.a.values, forwarded, "after a preprocess that was refused");
    setenv("STAND_IN_SIZES", "1", 1);
    preprocess(&p, 0);
    for (int round = 0; round < 3; ++round)
        is_computed(&p, 0, p.a.values, round ? 0 : forwarded, "after one that was not");
    unsetenv("STAND_IN_SIZES");
    preprocess(&p, 0);
    for (int round = 0; round < 2; ++round)
        is_computed(&p, 0, p.a.values, forwarded, "after another one that was refused");
    end_prepared(&p);
}

/* A plan goes with its handle: a new handle may have the address of one that was destroyed. */
static void handles(int columns) {
    int forwarded = columns ? SPMM_STATUS : SPMV_STATUS;
    Prepared p;
    make_prepared(&p, &nnz, columns);
    for (int made = 0; made < 2; ++made) {
        preprocess(&p, 0);
        for (int round = 0; round < 3; ++round)
            is_computed(&p, 0, p.a.values, round ? 0 : forwarded, "with one handle");
        cusparseDestroy(p.handle);
        for (int round = 0; round < 3; ++round)
            is_computed(&p, 0, p.a.values, forwarded, "with another handle at its address");
    }
    cusparseDestroy(p.handle);
    end_prepared(&p);
}

#if SPMVOP
/* Makes a plan of SpMVOp, with the stand-in's next addresses, and an epilogue if there is code. */
static Object make_operation(Prepared *p, const void *code) {
    Object description = (Object)0x1000, plan = (Object)0x200000;
    cusparseSpMVOp_createDescr(p->handle, &description, 0, p->a.descriptor, p->dense, p->out,
                               p->out, R64F
#if SPMVOP == 1271
                               ,
                               NULL
#elif SPMVOP > 1271
                               ,
                               1, NULL
#endif
    );
    cusparseSpMVOp_createPlan(p->handle, description, &plan, code, code ? 8 : 0);
    return plan;
}

static void is_operated(Prepared *p, Object plan, const double *values, int is_taken,
                        const char *when) {
    double alpha = 0.5, beta = 2;
    int is_right = 1;
    for (int row = 0; row < M; ++row)
        p->c[row] = row;
    int status = cusparseSpMVOp(p->handle, plan, &alpha, &beta, p->dense, p->out, p->out);
    for (int row = 0; is_taken && row < M; ++row) {
        double sum = 0;
        for (int at = row_begin[row]; at < row_begin[row + 1]; ++at)
            sum += values[at] * p->b[col_of[at]];
        is_right &= p->c[row] == alpha * sum + beta * row;
    }
    expect(is_right && status == (is_taken ? 0 : 108), "SpMVOp", when);
}

static void operations(Object handle) {
    Prepared p;
    make_prepared(&p, handle, 0);
    double *values = p.a.values, *others = array_of(R64F, MOST), one = 1, apart[M];
    Object plan = make_operation(&p, NULL), z;
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, round > 0, "of a plan");
    for (int at = 0; at < nnz; ++at)
        values[at] += 1;
    is_operated(&p, plan, values, 1, "with other values");
    cusparseSpMatSetValues(p.a.descriptor, others);
    is_operated(&p, plan, others, 1, "with another array of values");
    cusparseSpMatSetValues(p.a.descriptor, values);
    cusparseCreateDnVec(&z, M, apart, R64F);
    expect(cusparseSpMVOp(handle, plan, &one, &one, p.dense, p.out, z) == 108, "SpMVOp",
           "with another array for the result");
    cusparseDestroyDnVec(z);
    p.handle = &p;
    is_operated(&p, plan, values, 0, "with another handle");
    p.handle = handle;
    cusparseSpMVOp_destroyPlan(plan);
    is_operated(&p, plan, values, 0, "of a plan that was destroyed");
    plan = make_operation(&p, "code");
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, 0, "with an epilogue");
    unsetenv("STAND_IN_SIZES");
    plan = make_operation(&p, NULL);
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, 0, "of a plan that cuSPARSE has refused");
    setenv("STAND_IN_SIZES", "1", 1);
    plan = make_operation(&p, NULL);
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, round > 0, "of another plan");
    cusparseCsrSetPointers(p.a.descriptor, p.a.first, p.a.indices, values);
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, 0, "with other arrays");
    plan = make_operation(&p, NULL);
    for (int round = 0; round < 2; ++round)
        is_operated(&p, plan, values, round > 0, "before its handle is destroyed");
    cusparseDestroy(handle);
    for (int round = 0; round < 3; ++round)
        is_operated(&p, plan, values, 0, "after its handle was destroyed");
    free(others);
    end_prepared(&p);
}
#endif

/* Plans of a preprocessed matrix: `forwarded` is the status of products that have none. */
static void prepared(Object handle, int columns, int is_frozen) {
    int forwarded = columns ? SPMM_STATUS : SPMV_STATUS;
    Prepared p;
    make_prepared(&p, handle, columns);
    double *values = p.a.values, *others = array_of(R64F, MOST);
    preprocess(&p, 0);
    for (int round = 0; round < 4; ++round)
        is_computed(&p, 0, values, round ? 0 : forwarded, "after preprocess");
    is_computed(&p, columns ? 4 : 2, values, forwarded, "with another algorithm");
    if (!is_frozen) {
        for (int at = 0; at < nnz; ++at)
            values[at] += 1;
        is_computed(&p, 0, values, 0, "with other values");
    }
    cusparseSpMatSetValues(p.a.descriptor, others);
    is_computed(&p, 0, others, is_frozen ? forwarded : 0, "with another array of values");
    cusparseSpMatSetValues(p.a.descriptor, values);
    is_computed(&p, 0, values, 0, "with the first array of values");

    /* The arrays may have another pattern once they are set, even at the same addresses. */
    change_columns(&p);
    cusparseCsrSetPointers(p.a.descriptor, p.a.first, p.a.indices, values);
    is_computed(&p, 0, values, forwarded, "with other arrays");
    preprocess(&p, 0);
    for (int round = 0; round < 2; ++round)
        is_computed(&p, 0, values, round ? 0 : forwarded, "preprocessed with other arrays");
    change_columns(&p);
    preprocess(&p, 0);
    for (int round = 0; round < 2; ++round)
        is_computed(&p, 0, values, forwarded, "preprocessed again with the same arrays");

    /* As in hypre, which destroys the descriptor that it has preprocessed. */
    end_sparse(&p.a);
    p.a = make_sparse(&OF_DOUBLES);
    is_computed(&p, 0, p.a.values, 0, "with a new descriptor");
    preprocess(&p, 0);
    for (int round = 0; round < 2; ++round)
        is_computed(&p, 0, p.a.values, round ? 0 : forwarded, "a new descriptor after preprocess");
    /* Preprocessed for an algorithm that is forwarded; the pattern may be another one since. */
    change_columns(&p);
    preprocess(&p, 99);
    is_computed(&p, 0, p.a.values, forwarded, "preprocessed again for another algorithm");
    Object other_handle = &p;
    p.handle = other_handle;
    is_computed(&p, 0, p.a.values, forwarded, "with another handle");
    cusparseDestroy(other_handle);
    free(others);
    end_prepared(&p);
}

/* Operands of one product that all threads compute, each into its own result. */
enum { THREADS = 8, CALLS = 300 };
static Sparse common;
static double common_x[K], common_y[THREADS][M];
static Object common_handle = &state;

static int one_product(Object handle, double *y) {
    double one = 1, zero = 0;
    Object x, out;
    cusparseCreateDnVec(&x, K, common_x, R64F);
    cusparseCreateDnVec(&out, M, y, R64F);
    int status = cusparseSpMV(handle, 0, &one, common.descriptor, x, &zero, out, R64F, 0, NULL);
    cusparseDestroyDnVec(x), cusparseDestroyDnVec(out);
    return status;
}

static void make_common(void) {
    const Case c = {CSR, 2, 2, 0, R64F, R64F, R64F, R64F};
    common = make_sparse(&c);
    for (int at = 0; at < K; ++at)
        common_x[at] = creal(number(R64F));
}

static void *run_thread(void *argument) {
    double *y = argument;
    int is_right = 1;
    /* Any address can be a handle of the stand-in. */
    for (int at = 0; at < CALLS; ++at) {
        is_right &= one_product(at % 2 ? (Object)y : common_handle, y) == 0;
        if (at % 10 == 9)
            cusparseDestroy(y);
    }
    return is_right ? y : NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    make_common();
    for (int at = 0; at < THREADS; ++at)
        pthread_create(&ids[at], NULL, run_thread, common_y[at]);
    for (int at = 0; at < THREADS; ++at) {
        void *is_right;
        pthread_join(ids[at], &is_right);
        expect(is_right && memcmp(common_y[at], common_y[0], sizeof common_y[0]) == 0, "SpMV",
               "in a thread");
    }
}

static void forked(void) {
    int status = 0;
    make_common();
    expect(one_product(common_handle, common_y[0]) == 0, "SpMV", "before fork");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(one_product(common_handle, common_y[1]) == SPMV_STATUS ? 0 : 1);
    waitpid(child, &status, 0);
    expect(status == 0, "SpMV", "in the child");
    expect(one_product(common_handle, common_y[0]) == 0, "SpMV", "after fork");
}

static size_t gate;

static void *wait_inside(void *handle) {
    double one = 1;
    Object x, y;
    cusparseCreateDnVec(&x, K, common_x, R64F);
    cusparseCreateDnVec(&y, M, common_y[1], R64F);
    cusparseSpMV_bufferSize(handle, 0, &one, common.descriptor, x, &one, y, R64F, 0, &gate);
    return NULL;
}

/* A child of a process without handles of the drop-in, in which a thread is in a call that may hold
 * any lock. */
static void inside(void) {
    pthread_t thread;
    int status = 0;
    make_common();
    pthread_create(&thread, NULL, wait_inside, (void *)&state);
    while (*(volatile size_t *)&gate != 1)
        usleep(1000);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(one_product(common_handle, common_y[0]) == SPMV_STATUS ? 0 : 1);
    }
    waitpid(child, &status, 0);
    expect(status == 0, "SpMV", "in the child");
    *(volatile size_t *)&gate = 2;
    pthread_join(thread, NULL);
    expect(one_product(common_handle, common_y[0]) == 0, "SpMV", "in the parent");
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    Object handle = &state;
    make_pattern();
    if (strcmp(what, "taken") == 0)
        all(handle, 0, 0);
    else if (strcmp(what, "forwarded") == 0)
        all(handle, SPMV_STATUS, SPMM_STATUS);
    else if (strcmp(what, "rules") == 0)
        rules(handle);
    else if (strcmp(what, "prepared") == 0)
        prepared(handle, atoi(arguments[2]), count > 3);
    else if (strcmp(what, "refused") == 0)
        refused(handle, atoi(arguments[2]));
    else if (strcmp(what, "handles") == 0)
        handles(atoi(arguments[2]));
#if SPMVOP
    else if (strcmp(what, "operations") == 0)
        operations(handle);
#endif
    else if (strcmp(what, "inside") == 0)
        inside();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "fork") == 0)
        forked();
    else
        declined(handle);
    cusparseDestroy(handle);
    printf("%d products, %d failures\n", products, failures);
    return failures > 0;
}
