/* The traps of traps.c for SpGEMM: products of a matrix of 30,000 rows, of which thirty are long,
 * with one of 20,000. C is described with NULL arrays and without entries until cuSPARSE has
 * counted them. */
#ifndef SPGEMM_TRAPS_H
#define SPGEMM_TRAPS_H

/* A sparse product with its buffers, each of exactly the size that was answered. */
typedef struct {
    cusparseHandle_t handle;
    cusparseSpGEMMDescr_t descriptor;
    cusparseSpGEMMAlg_t algorithm;
    const Matrix *a, *b;
    cusparseSpMatDescr_t of_a, of_b, of_c;
    double alpha;
    /* alpha and beta where the pointer mode says. */
    const double *scalars[2];
    size_t bytes[3];
    void *buffers[3], *c[3];
    int64_t nnz;
} SparseProduct;

static const double ZERO = 0;

#define STEP(p)                                                                                    \
    (p)->handle, NON_TRANSPOSE, NON_TRANSPOSE, (p)->scalars[0], (p)->of_a, (p)->of_b,              \
        (p)->scalars[1], (p)->of_c, CUDA_R_64F, (p)->algorithm, (p)->descriptor

static SparseProduct product_of(cusparseHandle_t handle, const Matrix *a, const Matrix *b) {
    SparseProduct p = {.handle = handle, .a = a, .b = b, .of_a = csr_of(a), .of_b = csr_of(b)};
    p.algorithm = CUSPARSE_SPGEMM_DEFAULT;
    p.alpha = 1;
    SPARSE(cusparseCreateCsr(&p.of_c, a->rows, b->cols, 0, NULL, NULL, NULL, CUSPARSE_INDEX_32I,
                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    SPARSE(cusparseSpGEMM_createDescr(&p.descriptor));
    return p;
}

static void grow(SparseProduct *p, int which) {
    CUDA(cudaFree(p->buffers[which]));
    CUDA(cudaMalloc(&p->buffers[which], p->bytes[which]));
}

/* Runs the steps up to the second call of compute, with the ones that the algorithm has. */
static cusparseStatus_t counted(SparseProduct *p) {
    cusparseStatus_t status;
    if (!p->scalars[0])
        p->scalars[0] = &p->alpha, p->scalars[1] = &ZERO;
    if ((status = cusparseSpGEMM_workEstimation(STEP(p), &p->bytes[0], NULL)))
        return status;
    grow(p, 0);
    if ((status = cusparseSpGEMM_workEstimation(STEP(p), &p->bytes[0], p->buffers[0])))
        return status;
    if (p->algorithm == CUSPARSE_SPGEMM_ALG2 || p->algorithm == CUSPARSE_SPGEMM_ALG3) {
        if ((status = cusparseSpGEMM_estimateMemory(STEP(p), 0.2f, &p->bytes[2], NULL, NULL)))
            return status;
        grow(p, 2);
        if ((status = cusparseSpGEMM_estimateMemory(STEP(p), 0.2f, &p->bytes[2], p->buffers[2],
                                                    &p->bytes[1])))
            return status;
    } else if ((status = cusparseSpGEMM_compute(STEP(p), &p->bytes[1], NULL))) {
        return status;
    }
    grow(p, 1);
    return cusparseSpGEMM_compute(STEP(p), &p->bytes[1], p->buffers[1]);
}

/* Makes arrays for the entries that C has now, and copies it. */
static cusparseStatus_t copied(SparseProduct *p) {
    int64_t rows, cols;
    SPARSE(cusparseSpMatGetSize(p->of_c, &rows, &cols, &p->nnz));
    size_t nnz = (size_t)p->nnz + 1;
    const size_t bytes[3] = {((size_t)rows + 1) * 4, nnz * 4, nnz * 8};
    for (int at = 0; at < 3; ++at) {
        CUDA(cudaFree(p->c[at]));
        CUDA(cudaMalloc(&p->c[at], bytes[at]));
        CUDA(cudaMemset(p->c[at], 0xff, bytes[at]));
    }
    SPARSE(cusparseCsrSetPointers(p->of_c, p->c[0], p->c[1], p->c[2]));
    return cusparseSpGEMM_copy(STEP(p));
}

/* Returns whether C on the device is alpha * A * B, of the matrices on the host, with each entry of
 * the product's pattern once. */
static int is_product(const SparseProduct *p) {
    const Matrix *a = p->a, *b = p->b;
    int *offsets = malloc(((size_t)a->rows + 1) * 4), *columns = malloc((size_t)p->nnz * 4 + 4);
    double *values = malloc((size_t)p->nnz * 8 + 8);
    double *sum = calloc((size_t)b->cols, 8), *size = calloc((size_t)b->cols, 8);
    int *seen = calloc((size_t)b->cols, sizeof *seen), is_right, at = 0;
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(offsets, p->c[0], ((size_t)a->rows + 1) * 4, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(columns, p->c[1], (size_t)p->nnz * 4, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(values, p->c[2], (size_t)p->nnz * 8, cudaMemcpyDeviceToHost));
    is_right = offsets[0] == 0 && offsets[a->rows] == p->nnz;
    for (int row = 0; is_right && row < a->rows; ++row) {
        int count = 0;
        for (int i = a->offsets[row]; i < a->offsets[row + 1]; ++i) {
            int k = a->columns[i];
            for (int j = b->offsets[k]; j < b->offsets[k + 1]; ++j) {
                int col = b->columns[j];
                if (seen[col] != row + 1)
                    seen[col] = row + 1, sum[col] = size[col] = 0, ++count;
                sum[col] += a->values[i] * b->values[j];
                size[col] += fabs(a->values[i] * b->values[j]);
            }
        }
        is_right = offsets[row] == at && offsets[row + 1] == at + count;
        for (; is_right && at < offsets[row + 1]; ++at) {
            int col = columns[at];
            is_right = col >= 0 && col < b->cols && seen[col] == row + 1 &&
                       fabs(values[at] - p->alpha * sum[col]) <= 1e-12 * (size[col] + 1);
            if (is_right)
                seen[col] = -1 - row;
        }
    }
    free(offsets), free(columns), free(values), free(sum), free(size), free(seen);
    return is_right;
}

static void end_sparse_product(SparseProduct *p) {
    SPARSE(cusparseSpGEMM_destroyDescr(p->descriptor));
    SPARSE(cusparseDestroySpMat(p->of_a));
    SPARSE(cusparseDestroySpMat(p->of_b));
    SPARSE(cusparseDestroySpMat(p->of_c));
    for (int at = 0; at < 3; ++at) {
        CUDA(cudaFree(p->buffers[at]));
        CUDA(cudaFree(p->c[at]));
    }
}

static int is_done(SparseProduct *p) {
    return !counted(p) && p->bytes[0] && p->bytes[1] && !copied(p) && is_product(p);
}

static void other_values(Matrix *m, double factor) {
    for (int at = 0; at < m->nnz; ++at)
        m->values[at] *= factor;
    upload(m);
}

/* Steps of one product that are repeated. cuSPARSE does not promise that this works without its
 * first step. */
static void repeated_products(cusparseHandle_t handle, Matrix *a, Matrix *b) {
    SparseProduct p = product_of(handle, a, b);
    int is_right = is_done(&p);
    trap("SpGEMM, before repeated steps", is_right);
    for (int round = 0; round < 3; ++round) {
        other_values(a, -0.5), other_values(b, 1.5);
        is_right &= !cusparseSpGEMM_compute(STEP(&p), &p.bytes[1], p.buffers[1]) && !copied(&p) &&
                    is_product(&p);
    }
    note("SpGEMM, compute and copy repeated with other values", is_right);
    is_right = 1;
    for (int round = 0; round < 3; ++round) {
        /* As many entries, in other columns. */
        for (int row = 0; row < b->rows; ++row) {
            for (int at = b->offsets[row]; at < b->offsets[row + 1]; ++at)
                b->columns[at] = (b->columns[at] + 1 + row % 7) % b->cols;
        }
        upload(b);
        is_right &= !cusparseSpGEMM_compute(STEP(&p), &p.bytes[1], NULL);
        grow(&p, 1);
        is_right &= !cusparseSpGEMM_compute(STEP(&p), &p.bytes[1], p.buffers[1]) && !copied(&p) &&
                    is_product(&p);
    }
    note("SpGEMM, compute and copy repeated with another pattern in the same arrays", is_right);
    end_sparse_product(&p);

    /* All steps, for arrays that now have another pattern. */
    draw(b, 77);
    upload(b);
    p = product_of(handle, a, b);
    trap("SpGEMM, another pattern in the same arrays", is_done(&p));
    end_sparse_product(&p);
}

static void algorithms(cusparseHandle_t handle, const Matrix *a, const Matrix *b) {
    static const char *const NAMES[] = {"DEFAULT", "ALG1", "ALG2", "ALG3"};
    static const cusparseSpGEMMAlg_t ALL[] = {CUSPARSE_SPGEMM_DEFAULT, CUSPARSE_SPGEMM_ALG1,
                                              CUSPARSE_SPGEMM_ALG2, CUSPARSE_SPGEMM_ALG3};
    char name[60];
    for (int at = 0; at < 4; ++at) {
        SparseProduct p = product_of(handle, a, b);
        p.algorithm = ALL[at];
        p.alpha = at - 1.5;
        int is_right = is_done(&p);
        int64_t number = 0, expected = 0;
        for (int i = 0; i < a->nnz; ++i)
            expected += b->offsets[a->columns[i] + 1] - b->offsets[a->columns[i]];
        if (at >= 2)
            is_right &= !cusparseSpGEMM_getNumProducts(p.descriptor, &number) && number == expected;
        snprintf(name, sizeof name, "SpGEMM, algorithm %s", NAMES[at]);
        trap(name, is_right);
        end_sparse_product(&p);
    }
    /* B has another number of rows than A has columns; then ALG2, with another descriptor. */
    SparseProduct p = product_of(handle, a, a);
    int is_error = counted(&p) != CUSPARSE_STATUS_SUCCESS;
    end_sparse_product(&p);
    p = product_of(handle, a, b);
    p.algorithm = CUSPARSE_SPGEMM_ALG2;
    note("SpGEMM, factors that do not fit are refused", is_error);
    trap("SpGEMM, ALG2 after an error", is_done(&p));
    end_sparse_product(&p);

    double *device, both[2] = {-2.5, 0};
    CUDA(cudaMalloc((void **)&device, sizeof both));
    CUDA(cudaMemcpy(device, both, sizeof both, cudaMemcpyHostToDevice));
    p = product_of(handle, a, b);
    p.scalars[0] = &device[0], p.scalars[1] = &device[1];
    p.alpha = both[0];
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
    int is_right = is_done(&p);
    SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
    trap("SpGEMM, alpha and beta on the device", is_right);
    end_sparse_product(&p);
    CUDA(cudaFree(device));
}

/* The steps of two products by turns, each on a stream of its own. */
static void two_streams(cusparseHandle_t handle, const Matrix *a, const Matrix *b) {
    cudaStream_t streams[2];
    SparseProduct p[2] = {product_of(handle, a, b), product_of(handle, a, b)};
    int is_right = 1;
    for (int at = 0; at < 2; ++at) {
        CUDA(cudaStreamCreateWithFlags(&streams[at], cudaStreamNonBlocking));
        p[at].alpha = 1 + at;
    }
    for (int at = 0; at < 2; ++at) {
        SPARSE(cusparseSetStream(handle, streams[at]));
        is_right &= !counted(&p[at]);
    }
    for (int at = 0; at < 2; ++at) {
        SPARSE(cusparseSetStream(handle, streams[!at]));
        is_right &= !copied(&p[at]);
    }
    is_right = is_right && is_product(&p[0]) && is_product(&p[1]);
    SPARSE(cusparseSetStream(handle, NULL));
    trap("SpGEMM, two products on two streams by turns", is_right);
    for (int at = 0; at < 2; ++at) {
        CUDA(cudaStreamDestroy(streams[at]));
        end_sparse_product(&p[at]);
    }
}

typedef struct {
    const Matrix *a, *b;
    int is_right;
} SparseThread;

static void *run_sparse_thread(void *argument) {
    SparseThread *thread = argument;
    cusparseHandle_t handle;
    SPARSE(cusparseCreate(&handle));
    thread->is_right = 1;
    for (int round = 0; round < 5; ++round) {
        SparseProduct p = product_of(handle, thread->a, thread->b);
        p.alpha = round + 0.5;
        thread->is_right &= is_done(&p);
        end_sparse_product(&p);
    }
    SPARSE(cusparseDestroy(handle));
    return NULL;
}

static void sparse_products(cusparseHandle_t handle) {
    Matrix a = make(21), b = make_of(COLS, 5000, 22);
    algorithms(handle, &a, &b);
    two_streams(handle, &a, &b);
    pthread_t ids[8];
    SparseThread all[8];
    int are_right = 1;
    for (int at = 0; at < 8; ++at) {
        all[at] = (SparseThread){&a, &b, 0};
        pthread_create(&ids[at], NULL, run_sparse_thread, &all[at]);
    }
    for (int at = 0; at < 8; ++at) {
        pthread_join(ids[at], NULL);
        are_right &= all[at].is_right;
    }
    trap("SpGEMM, 8 threads with handles of their own", are_right);
    repeated_products(handle, &a, &b);
}

#endif
