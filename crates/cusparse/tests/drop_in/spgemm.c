/* A program that computes products by the steps of cusparseSpGEMM, on host memory, and compares
 * them with its own. The status that the stand-in returns for a step shows that it was forwarded.
 * The argument is the expected behavior:
 *
 * - taken: products of all types, indices and algorithms succeed, and repeated ones of other
 * values, other patterns and other arrays
 * - forwarded: every step of a product is forwarded
 * - declined: products that are not taken, each of which differs in one thing from one that is
 * - late: Tarsia refuses a product at its second step, and one that is repeated
 * - many: C has more entries than its offsets count
 * - device: beta is on the device, and a later step may bring another one
 * - captured: steps come while the stream is captured
 * - panic PLACE: the drop-in panics once in a step
 * - handle: the handle is destroyed in the midst of a product
 * - threads: 8 threads compute products with one handle
 */
#include "cusparse.h"
#include "numbers.h"

#include <pthread.h>

enum { I32 = 2, I64 = 3, ALG1 = 3, ALG2 = 4, ALG3 = 5, MOST_ENTRIES = 4096 };
enum {
    NOT_SUPPORTED = 10,
    EXECUTION_FAILED = 6,
    ESTIMATION_STATUS = 120,
    COMPUTE_STATUS = 123,
    COPY_STATUS = 124
};

typedef struct {
    int rows, cols, nnz, offset_type, index_type, base, type;
    int offset[64], col[MOST_ENTRIES];
    void *offsets, *indices, *values;
    Object descriptor;
} Matrix;

/* Writes the pattern into the arrays. */
static void put_pattern(Matrix *m) {
    for (int row = 0; row <= m->rows; ++row)
        put_index(m->offset_type, m->offsets, row, m->offset[row] + m->base);
    for (int at = 0; at < m->nnz; ++at)
        put_index(m->index_type, m->indices, at, m->col[at] + m->base);
}

/* Draws a pattern in which one of `part` places has an entry, every fifth row is empty, and columns
 * descend in every third row. */
static void draw(Matrix *m, int part) {
    m->nnz = 0;
    for (int row = 0; row < m->rows; ++row) {
        m->offset[row] = m->nnz;
        for (int at = 0; at < m->cols && row % 5 != 4; ++at) {
            if (drawn(part) == 0)
                m->col[m->nnz++] = row % 3 ? at : m->cols - 1 - at;
        }
    }
    m->offset[m->rows] = m->nnz;
}

static void make_arrays(Matrix *m) {
    m->offsets = malloc(8 * ((size_t)m->rows + 1));
    m->indices = malloc(8 * MOST_ENTRIES);
    m->values = array_of(m->type, MOST_ENTRIES);
    put_pattern(m);
}

static void describe(Matrix *m) {
    cusparseCreateCsr(&m->descriptor, m->rows, m->cols, m->nnz, m->offsets, m->indices, m->values,
                      m->offset_type, m->index_type, m->base, m->type);
}

static Matrix make(int rows, int cols, int part, int type) {
    Matrix m = {.rows = rows, .cols = cols, .offset_type = I32, .index_type = I32, .type = type};
    draw(&m, part);
    make_arrays(&m);
    describe(&m);
    return m;
}

static void end(Matrix *m) {
    cusparseDestroySpMat(m->descriptor);
    free(m->offsets), free(m->indices), free(m->values);
}

/* A product, with the arguments that all its steps have. */
typedef struct {
    Object handle, descriptor;
    Matrix *a, *b, c;
    int op_a, compute, algorithm;
    double alpha[2], beta[2];
    size_t bytes[3];
    void *buffer[2];
} Product;

/* Number of the descriptor that the stand-in answers next. */
static Object next_descriptor = (Object)0x10000;

static Product product_of(Object handle, Matrix *a, Matrix *b) {
    Product p = {.handle = handle, .a = a, .b = b, .compute = a->type};
    p.c = (Matrix){
        .rows = a->rows, .cols = b->cols, .offset_type = I32, .index_type = I32, .type = a->type};
    cusparseCreateCsr(&p.c.descriptor, p.c.rows, p.c.cols, 0, NULL, NULL, NULL, I32, I32, 0,
                      p.c.type);
    put(p.compute, p.alpha, 0, 1.5);
    p.descriptor = next_descriptor;
    cusparseSpGEMM_createDescr(&p.descriptor);
    return p;
}

#define ARGUMENTS(p)                                                                               \
    (p)->handle, (p)->op_a, 0, (p)->alpha, (p)->a->descriptor, (p)->b->descriptor, (p)->beta,      \
        (p)->c.descriptor, (p)->compute, (p)->algorithm, (p)->descriptor

static int estimation(Product *p, int has_buffer) {
    if (has_buffer)
        p->buffer[0] = realloc(p->buffer[0], p->bytes[0]);
    return cusparseSpGEMM_workEstimation(ARGUMENTS(p), &p->bytes[0],
                                         has_buffer ? p->buffer[0] : NULL);
}

static int compute(Product *p, int has_buffer) {
    if (has_buffer)
        p->buffer[1] = realloc(p->buffer[1], p->bytes[1]);
    return cusparseSpGEMM_compute(ARGUMENTS(p), &p->bytes[1], has_buffer ? p->buffer[1] : NULL);
}

/* Makes arrays of exactly the size that C has now, and computes it. */
static int copy(Product *p) {
    int64_t rows, cols, nnz;
    cusparseSpMatGetSize(p->c.descriptor, &rows, &cols, &nnz);
    p->c.nnz = (int)nnz;
    free(p->c.offsets), free(p->c.indices), free(p->c.values);
    size_t index = p->c.index_type == I32 ? 4 : 8;
    p->c.offsets = malloc(8 * ((size_t)rows + 1));
    p->c.indices = malloc((size_t)nnz * index + 1);
    p->c.values = malloc((size_t)nnz * size_of(p->c.type) + 1);
    cusparseCsrSetPointers(p->c.descriptor, p->c.offsets, p->c.indices, p->c.values);
    return cusparseSpGEMM_copy(ARGUMENTS(p));
}

static int64_t index_at(int type, const void *array, int at) {
    return type == I32 ? ((const int32_t *)array)[at] : ((const int64_t *)array)[at];
}

/* Returns whether C is the product: its rows ascend, and have the entries of the product's pattern.
 */
static int is_right(const Product *p) {
    const Matrix *a = p->a, *b = p->b, *c = &p->c;
    int at = 0, is_right = 1;
    for (int row = 0; row < a->rows; ++row) {
        Number sum[64] = {0};
        int has[64] = {0};
        for (int i = a->offset[row]; i < a->offset[row + 1]; ++i) {
            for (int j = b->offset[a->col[i]]; j < b->offset[a->col[i] + 1]; ++j) {
                has[b->col[j]] = 1;
                sum[b->col[j]] += get(a->type, a->values, i) * get(b->type, b->values, j);
            }
        }
        is_right &= index_at(c->offset_type, c->offsets, row) == at + c->base;
        for (int col = 0; col < b->cols; ++col) {
            if (!has[col])
                continue;
            is_right &= at < c->nnz && index_at(c->index_type, c->indices, at) == col + c->base &&
                        get(c->type, c->values, at) == get(p->compute, p->alpha, 0) * sum[col];
            ++at;
        }
    }
    return is_right && at == c->nnz &&
           index_at(c->offset_type, c->offsets, a->rows) == at + c->base;
}

static void end_product(Product *p) {
    cusparseSpGEMM_destroyDescr(p->descriptor);
    end(&p->c);
    free(p->buffer[0]), free(p->buffer[1]);
}

/* Computes a whole product, with the steps that the algorithm has. */
static int all_steps(Product *p) {
    int status = estimation(p, 0);
    if (status == 0)
        status = estimation(p, 1);
    if (status == 0 && p->algorithm >= ALG2) {
        int64_t number = -1;
        status = cusparseSpGEMM_getNumProducts(p->descriptor, &number);
        for (int i = 0; i < p->a->nnz; ++i)
            number -= p->b->offset[p->a->col[i] + 1] - p->b->offset[p->a->col[i]];
        if (status == 0 && number)
            status = -1;
        if (status == 0)
            status = cusparseSpGEMM_estimateMemory(ARGUMENTS(p), 0.25f, &p->bytes[2], NULL, NULL);
        void *buffer = malloc(p->bytes[2]);
        if (status == 0)
            status = cusparseSpGEMM_estimateMemory(ARGUMENTS(p), 0.25f, &p->bytes[2], buffer,
                                                   &p->bytes[1]);
        free(buffer);
        status = status == 0 && p->bytes[2] == 0 ? -2 : status;
    } else if (status == 0) {
        status = compute(p, 0);
    }
    if (status == 0)
        status = p->bytes[0] && p->bytes[1] ? compute(p, 1) : -3;
    return status ? status : copy(p);
}

static void taken(Object handle) {
    static const int TYPES[] = {R32F, R64F, C32F, C64F}, ALGORITHMS[] = {0, ALG1, ALG2, ALG3};
    static const int WIDTHS[][2] = {{I32, I32}, {I64, I64}, {I64, I32}};
    char text[100];
    for (int form = 0; form < 4 * 4 * 3 * 2; ++form) {
        int type = TYPES[form % 4], base = form / 48;
        const int *width = WIDTHS[form / 16 % 3];
        Matrix a = make(37, 23, 4, type), b = make(23, 41, 3, type);
        for (int at = 0; at < 2; ++at) {
            Matrix *m = at ? &b : &a;
            cusparseDestroySpMat(m->descriptor);
            m->offset_type = width[0], m->index_type = width[1], m->base = base;
            put_pattern(m);
            describe(m);
        }
        Product p = product_of(handle, &a, &b);
        cusparseDestroySpMat(p.c.descriptor);
        p.c.offset_type = width[0], p.c.index_type = width[1], p.c.base = !base;
        cusparseCreateCsr(&p.c.descriptor, p.c.rows, p.c.cols, 0, NULL, NULL, NULL, width[0],
                          width[1], p.c.base, type);
        p.algorithm = ALGORITHMS[form / 4 % 4];
        put(p.compute, p.alpha, 0, type == C32F || type == C64F ? 0.5 - I : -1.25);
        int status = all_steps(&p);
        snprintf(text, sizeof text, "type %d, algorithm %d, widths %d %d, base %d: %d", type,
                 p.algorithm, width[0], width[1], base, status);
        expect(status == 0 && is_right(&p), "SpGEMM", text);
        end_product(&p);
        end(&a), end(&b);
    }
    /* Without rows, columns or entries. */
    static const int SHAPES[][4] = {{0, 5, 7, 2}, {5, 0, 7, 2}, {5, 6, 0, 2}, {5, 6, 7, 1000000}};
    for (int shape = 0; shape < 4; ++shape) {
        const int *s = SHAPES[shape];
        Matrix a = make(s[0], s[1], s[3], R64F), b = make(s[1], s[2], 2, R64F);
        Product p = product_of(handle, &a, &b);
        expect(all_steps(&p) == 0 && p.c.nnz == 0 && is_right(&p), "SpGEMM", "empty");
        end_product(&p);
        end(&a), end(&b);
    }
}

/* The first plan of a product is in the first buffer, that of repeated steps is not. */
static void first_buffer(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    Product p = product_of(handle, &a, &b);
    expect(estimation(&p, 0) == 0 && p.bytes[0] >= (1 << 20) + 64 * 37 + 4 * 23, "first buffer",
           "size");
    p.buffer[0] = malloc(p.bytes[0]);
    memset(p.buffer[0], 0x5a, p.bytes[0]);
    expect(estimation(&p, 1) == 0 && compute(&p, 0) == 0 && compute(&p, 1) == 0 && copy(&p) == 0 &&
               is_right(&p),
           "first buffer", "product");
    const unsigned char *bytes = p.buffer[0];
    size_t at = 0;
    while (at < p.bytes[0] && bytes[at] == 0x5a)
        at++;
    expect(at < p.bytes[0], "first buffer", "it is not used");
    memset(p.buffer[0], 0xff, p.bytes[0]);
    put(R64F, a.values, 0, 0.75);
    expect(compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p), "first buffer", "repeated steps");
    end_product(&p);
    end(&a), end(&b);
}

/* Products whose steps compute and copy are repeated. */
static void repeated(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    Product p = product_of(handle, &a, &b);
    expect(all_steps(&p) == 0 && is_right(&p), "repeated", "first");
    for (int round = 0; round < 4; ++round) {
        for (int at = 0; at < a.nnz; ++at)
            put(R64F, a.values, at, number(R64F));
        for (int at = 0; at < b.nnz; ++at)
            put(R64F, b.values, at, number(R64F));
        expect((round % 2 || compute(&p, 0) == 0) && compute(&p, 1) == 0 && copy(&p) == 0 &&
                   is_right(&p),
               "repeated", "other values");
    }
    put(R64F, b.values, 0, 0.75);
    expect(copy(&p) == 0 && is_right(&p), "repeated", "copy alone");
    for (int round = 0; round < 4; ++round) {
        /* As many entries, in other columns: nothing that a descriptor has shows it. */
        for (int row = 0; row < b.rows; ++row) {
            for (int at = b.offset[row]; at < b.offset[row + 1]; ++at)
                b.col[at] = (b.col[at] + 7) % b.cols;
        }
        put_pattern(&b);
        expect((round % 2 || compute(&p, 0) == 0) && compute(&p, 1) == 0 && copy(&p) == 0 &&
                   is_right(&p),
               "repeated", "another pattern in the same arrays");
    }
    Matrix other = make(23, 41, 2, R64F);
    p.b = &other;
    expect(compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p), "repeated", "another B");
    p.b = &b;
    expect(compute(&p, 0) == 0 && compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p), "repeated",
           "the first B");
    expect(all_steps(&p) == 0 && is_right(&p), "repeated", "from the first step on");
    /* Another product with the same description. */
    Matrix square = make(41, 41, 3, R64F);
    Product q = product_of(handle, &square, &square);
    q.descriptor = p.descriptor;
    expect(all_steps(&q) == 0 && is_right(&q), "repeated", "another product");
    end_product(&p), end(&q.c), free(q.buffer[0]), free(q.buffer[1]);
    end(&a), end(&b), end(&other), end(&square);
}

/* Makes every step of a product, and checks that all are forwarded. */
static void is_forwarded(Product *p, const char *why) {
    int sized = getenv("STAND_IN_SIZES") != NULL;
    int64_t number = 0;
    int first = estimation(p, 0);
    p->bytes[0] += 1000;
    int is_right = first == (sized ? 0 : ESTIMATION_STATUS) && estimation(p, 1) == first &&
                   cusparseSpGEMM_getNumProducts(p->descriptor, &number) == 121 &&
                   compute(p, 0) == COMPUTE_STATUS && compute(p, 1) == COMPUTE_STATUS &&
                   cusparseSpGEMM_copy(ARGUMENTS(p)) == COPY_STATUS;
    expect(is_right, "forwarded", why);
}

static void declined(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F), wrong = make(22, 41, 3, R64F);
    Matrix single = make(23, 41, 3, R32F), square = make(23, 23, 3, R64F);
    Product p = product_of(handle, &a, &b), q;
#define DECLINED(change)                                                                           \
    q = p;                                                                                         \
    change;                                                                                        \
    is_forwarded(&q, #change)
    DECLINED(q.op_a = 1);
    DECLINED(q.algorithm = 1);
    DECLINED(q.beta[0] = 1);
    DECLINED(q.compute = R32F);
    DECLINED(q.b = &single);
    DECLINED(q.b = &wrong);
    DECLINED(q.handle = NULL);
    Matrix coo = a;
    cusparseCreateCoo(&coo.descriptor, a.rows, a.cols, a.nnz, a.indices, a.indices, a.values, I32,
                      0, R64F);
    DECLINED(q.a = &coo);
    DECLINED(q.c = coo);
    cusparseDestroySpMat(coo.descriptor);
    /* beta on the device, and C has entries that it could be multiplied with. */
    cusparseSetPointerMode(handle, 1);
    DECLINED(q.a = &square; q.b = &square; q.c = square);
    cusparseSetPointerMode(handle, 0);
    /* Steps of a product that has had no first one. */
    q = p;
    q.descriptor = (Object)0x9990;
    expect(cusparseSpGEMM_compute(ARGUMENTS(&q), &q.bytes[1], NULL) == COMPUTE_STATUS ||
               getenv("STAND_IN_SIZES"),
           "declined", "without a first step");
    free(p.buffer[0]), free(p.buffer[1]);
    p.buffer[0] = p.buffer[1] = NULL;
    end_product(&p);
    end(&a), end(&b), end(&wrong), end(&single), end(&square);
}

static void late(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    /* A column that B does not have is found by the analysis, and cuSPARSE gets the product. */
    Product p = product_of(handle, &a, &b);
    int is_begun = estimation(&p, 0) == 0;
    put_index(I32, a.indices, 3, 23);
    expect(is_begun && estimation(&p, 1) == 0 && compute(&p, 0) == COMPUTE_STATUS &&
               compute(&p, 1) == COMPUTE_STATUS && copy(&p) == COPY_STATUS,
           "late", "refused by the analysis");
    end_product(&p);

    put_pattern(&a);
    p = product_of(handle, &a, &b);
    expect(all_steps(&p) == 0 && is_right(&p), "late", "first product");
    put_index(I32, a.indices, 3, 23);
    /* With a buffer it is too late: cuSPARSE's may be larger. */
    expect(compute(&p, 1) == 3, "late", "with a buffer");
    expect(compute(&p, 0) == COMPUTE_STATUS && compute(&p, 1) == COMPUTE_STATUS &&
               copy(&p) == COPY_STATUS,
           "late", "for a size");
    end_product(&p);

    /* Without compute, C has no entries to be copied. */
    put_pattern(&a);
    p = product_of(handle, &a, &b);
    expect(estimation(&p, 0) == 0 && estimation(&p, 1) == 0 && copy(&p) != 0, "late", "no compute");
    end_product(&p);

    /* cuSPARSE has not had the estimate, without which it computes nothing. */
    p = product_of(handle, &a, &b);
    p.algorithm = ALG2;
    expect(all_steps(&p) == 0 && is_right(&p), "late", "with an estimate");
    put_index(I32, a.indices, 3, 23);
    expect(compute(&p, 0) == 3 && compute(&p, 1) == 3, "late", "after an estimate");
    put_pattern(&a);
    expect(compute(&p, 0) == 0 && compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p), "late",
           "the estimated product");
    end_product(&p);
    end(&a), end(&b);
}

static void many(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    Product p = product_of(handle, &a, &b);
    expect(estimation(&p, 0) == 0 && estimation(&p, 1) == 0 && compute(&p, 0) == COMPUTE_STATUS &&
               compute(&p, 1) == COMPUTE_STATUS && copy(&p) == COPY_STATUS,
           "many", "counted by the analysis");
    end_product(&p);
    end(&a), end(&b);
}

/* Returns whether cuSPARSE gets a product from the step that computes a size on. */
static int computes_forwarded(Product *p) {
    return compute(p, 0) == COMPUTE_STATUS && compute(p, 1) == COMPUTE_STATUS &&
           copy(p) == COPY_STATUS;
}

/* Returns whether the steps that may be repeated are taken, and their result is right. */
static int is_repeated(Product *p) {
    return compute(p, 0) == 0 && compute(p, 1) == 0 && copy(p) == 0 && is_right(p);
}

static void on_device(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    cusparseSetPointerMode(handle, 1);
    Product p = product_of(handle, &a, &b);
    expect(all_steps(&p) == 0 && is_right(&p) && is_repeated(&p), "device", "beta is zero");
    p.beta[0] = 1;
    expect(compute(&p, 1) == NOT_SUPPORTED, "device", "beta is not zero in compute");
    p.beta[0] = 0;
    expect(is_repeated(&p), "device", "and zero again");
    p.beta[0] = 1;
    expect(copy(&p) == NOT_SUPPORTED, "device", "beta is not zero in copy");
    p.beta[0] = 0;
    expect(copy(&p) == 0 && is_right(&p), "device", "and zero in copy");
    p.beta[0] = 1;
    expect(computes_forwarded(&p), "device", "beta is not zero when a size is asked for");
    end_product(&p);

    /* Without entries of C there is nothing that beta could be multiplied with. */
    p = product_of(handle, &a, &b);
    p.beta[0] = 1;
    expect(estimation(&p, 0) == 0 && estimation(&p, 1) == 0 && compute(&p, 0) == 0, "device",
           "C has no entries");
    p.beta[0] = 0;
    expect(compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p), "device", "C has entries");
    end_product(&p);

    /* The pointer mode changes between two steps. */
    cusparseSetPointerMode(handle, 0);
    p = product_of(handle, &a, &b);
    expect(all_steps(&p) == 0 && is_right(&p), "device", "beta is on the host");
    cusparseSetPointerMode(handle, 1);
    p.beta[0] = -1;
    expect(copy(&p) == NOT_SUPPORTED, "device", "beta goes to the device");
    cusparseSetPointerMode(handle, 0);
    expect(copy(&p) == NOT_SUPPORTED, "device", "beta comes back");
    p.beta[0] = 0;
    expect(is_repeated(&p), "device", "beta is zero on the host");
    end_product(&p);
    end(&a), end(&b);
}

static void captured(Object handle) {
    void *stream = (void *)0xca97;
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    cusparseSetStream(handle, stream);
    Product p = product_of(handle, &a, &b);
    is_forwarded(&p, "captured");
    end_product(&p);

    cusparseSetStream(handle, NULL);
    p = product_of(handle, &a, &b);
    int is_begun = estimation(&p, 0) == 0;
    cusparseSetStream(handle, stream);
    expect(is_begun && estimation(&p, 1) == 0 && computes_forwarded(&p), "captured", "at analysis");
    end_product(&p);

    cusparseSetStream(handle, NULL);
    p = product_of(handle, &a, &b);
    is_begun = estimation(&p, 0) == 0 && estimation(&p, 1) == 0;
    cusparseSetStream(handle, stream);
    expect(is_begun && computes_forwarded(&p), "captured", "at a size");
    end_product(&p);

    cusparseSetStream(handle, NULL);
    p = product_of(handle, &a, &b);
    is_begun = estimation(&p, 0) == 0 && estimation(&p, 1) == 0 && compute(&p, 0) == 0;
    cusparseSetStream(handle, stream);
    expect(is_begun && compute(&p, 1) == NOT_SUPPORTED, "captured", "at compute");
    cusparseSetStream(handle, NULL);
    is_begun = compute(&p, 1) == 0;
    cusparseSetStream(handle, stream);
    expect(is_begun && copy(&p) == NOT_SUPPORTED, "captured", "at copy");
    cusparseSetStream(handle, NULL);
    expect(copy(&p) == 0 && is_right(&p), "captured", "not any more");
    end_product(&p);
    end(&a), end(&b);
}

/* cuSPARSE gets a product from its first step on, or Tarsia computes it at another try. */
static void panic(Object handle, const char *place) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    Product p = product_of(handle, &a, &b);
    p.algorithm = strcmp(place, "estimate") == 0 ? ALG2 : 0;
    int is_as_expected = estimation(&p, 0) == 0 && estimation(&p, 1) == 0;
    if (strcmp(place, "estimate") == 0) {
        is_as_expected &=
            cusparseSpGEMM_estimateMemory(ARGUMENTS(&p), 0.25f, &p.bytes[2], NULL, NULL) == 122 &&
            computes_forwarded(&p);
    } else if (strcmp(place, "compute") == 0) {
        is_as_expected &= compute(&p, 0) == 0 && compute(&p, 1) == EXECUTION_FAILED &&
                          compute(&p, 1) == 0 && copy(&p) == 0 && is_right(&p);
    } else if (strcmp(place, "copy") == 0) {
        is_as_expected &= compute(&p, 0) == 0 && compute(&p, 1) == 0 &&
                          copy(&p) == EXECUTION_FAILED && copy(&p) == 0 && is_right(&p);
    } else {
        is_as_expected &= computes_forwarded(&p);
    }
    expect(is_as_expected, "panic", place);
    expect(all_steps(&p) == 0 && is_right(&p), "panic", "the next product");
    end_product(&p);
    end(&a), end(&b);
}

static void destroyed_handle(Object handle) {
    Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
    Object other = &a;
    Product p = product_of(other, &a, &b);
    int is_counted = estimation(&p, 0) == 0 && estimation(&p, 1) == 0 && compute(&p, 0) == 0 &&
                     compute(&p, 1) == 0;
    cusparseDestroy(other);
    p.handle = handle;
    expect(is_counted && copy(&p) == 0 && is_right(&p), "handle", "destroyed before copy");
    p.handle = other;
    expect(is_repeated(&p), "handle", "another one at its address");
    cusparseDestroy(other);
    end_product(&p);
    end(&a), end(&b);
}

enum { THREADS = 8, ROUNDS = 30 };

static void *run_thread(void *argument) {
    Product *p = argument;
    int are_right = 1;
    for (int round = 0; round < ROUNDS; ++round)
        are_right &= all_steps(p) == 0 && is_right(p) && compute(p, 1) == 0 && copy(p) == 0;
    return are_right ? p : NULL;
}

static void threads(Object handle) {
    static Matrix a[THREADS], b[THREADS];
    static Product p[THREADS];
    pthread_t ids[THREADS];
    for (int at = 0; at < THREADS; ++at) {
        a[at] = make(37, 23, 4, R64F), b[at] = make(23, 41, 3, R64F);
        next_descriptor = (const char *)next_descriptor + 0x10000;
        p[at] = product_of(handle, &a[at], &b[at]);
    }
    for (int at = 0; at < THREADS; ++at)
        pthread_create(&ids[at], NULL, run_thread, &p[at]);
    for (int at = 0; at < THREADS; ++at) {
        void *are_right;
        pthread_join(ids[at], &are_right);
        expect(are_right != NULL, "threads", "one of them");
        end_product(&p[at]), end(&a[at]), end(&b[at]);
    }
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    Object handle = &state;
    if (strcmp(what, "taken") == 0) {
        taken(handle);
        first_buffer(handle);
        repeated(handle);
    } else if (strcmp(what, "forwarded") == 0) {
        Matrix a = make(37, 23, 4, R64F), b = make(23, 41, 3, R64F);
        Product p = product_of(handle, &a, &b);
        is_forwarded(&p, "all");
        end_product(&p), end(&a), end(&b);
    } else if (strcmp(what, "late") == 0) {
        late(handle);
    } else if (strcmp(what, "many") == 0) {
        many(handle);
    } else if (strcmp(what, "device") == 0) {
        on_device(handle);
    } else if (strcmp(what, "captured") == 0) {
        captured(handle);
    } else if (strcmp(what, "panic") == 0) {
        panic(handle, arguments[2]);
    } else if (strcmp(what, "handle") == 0) {
        destroyed_handle(handle);
    } else if (strcmp(what, "threads") == 0) {
        threads(handle);
    } else {
        declined(handle);
    }
    cusparseDestroy(handle);
    printf("%d products, %d failures\n", products, failures);
    return failures > 0;
}
