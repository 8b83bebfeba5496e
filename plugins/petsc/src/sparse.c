// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products of sequential matrices by SpGEMM: C = A B, C = A^T B and C = P^T A P.
 *
 * The symbolic phase makes plans that keep the pattern of the result. The numeric phase gives them
 * the present values and computes values alone, so that MAT_REUSE_MATRIX never counts again. */

#include "petsctarsia_impl.h"

/* One product of two matrices. */
typedef struct {
    tarsiaPlan_t plan;
    /* Index arrays that the plan was made for. */
    const PetscInt *offsets[2], *columns[2];
    PetscInt nnz[2];
    PetscInt result_nnz;
    PetscLogDouble flops;
} Step;

typedef struct {
    tarsiaHandle_t handle;
    /* [0] is A B, A^T B or A P; [1] is P^T (A P). */
    Step steps[2];
    /* A P, in memory of the library. */
    TarsiaArrays between;
    /* The values of C are those of the factors in these states, from the symbolic phase. */
    PetscBool fresh;
    PetscObjectState states[2];
} Product;

static PetscErrorCode FreeArrays(tarsiaHandle_t handle, TarsiaArrays *arrays) {
    PetscFunctionBegin;
    PetscCallTarsia(tarsiaFree(handle, (void *)arrays->offsets));
    PetscCallTarsia(tarsiaFree(handle, (void *)arrays->columns));
    PetscCallTarsia(tarsiaFree(handle, arrays->values));
    PetscCall(PetscMemzero(arrays, sizeof *arrays));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllocateArrays(tarsiaHandle_t handle, PetscInt rows, PetscInt cols,
                                     PetscInt nnz, PetscBool device, TarsiaArrays *arrays) {
    const size_t entries = (size_t)PetscMax(nnz, 1);

    PetscFunctionBegin;
    arrays->rows = rows;
    arrays->cols = cols;
    arrays->nnz = nnz;
    arrays->device = device;
    PetscCallTarsia(
        tarsiaMalloc(handle, (void **)&arrays->offsets, ((size_t)rows + 1) * sizeof(PetscInt)));
    PetscCallTarsia(tarsiaMalloc(handle, (void **)&arrays->columns, entries * sizeof(PetscInt)));
    PetscCallTarsia(tarsiaMalloc(handle, (void **)&arrays->values, entries * sizeof(PetscScalar)));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyProduct(Product *product) {
    PetscFunctionBegin;
    for (int i = 0; i < 2; i++)
        PetscCallTarsia(tarsiaPlan_destroy(product->steps[i].plan));
    PetscCall(FreeArrays(product->handle, &product->between));
    PetscCall(PetscFree(product));
    PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 25, 0)
static PetscErrorCode DestroyProductData(PetscCtxRt data) {
    return DestroyProduct(*(Product **)data);
}
#else
static PetscErrorCode DestroyProductData(void *data) { return DestroyProduct((Product *)data); }
#endif

/* Analyzes op(A) B and counts its entries; `sorted` if the columns of its rows must ascend. */
static PetscErrorCode PrepareStep(tarsiaHandle_t handle, tarsiaOperation_t op,
                                  const TarsiaArrays *A, const TarsiaArrays *B, PetscBool sorted,
                                  Step *step) {
    const TarsiaArrays *factors[2] = {A, B};
    tarsiaSpMatDescr_t a, b;
    tarsiaPlanInfo_t info;
    int64_t nnz;

    PetscFunctionBegin;
    PetscCallTarsia(tarsiaPlan_destroy(step->plan));
    step->plan = NULL;
    PetscCall(TarsiaCreateCsr(A, &a));
    PetscCall(TarsiaCreateCsr(B, &b));
    PetscCallTarsia(tarsiaSpGEMM_createPlan(handle, &step->plan, op, TARSIA_OPERATION_NON_TRANSPOSE,
                                            a, b, TARSIA_COMPUTE, TARSIA_SPGEMM_ALG_DEFAULT));
    PetscCallTarsia(tarsiaDestroySpMat(a));
    PetscCallTarsia(tarsiaDestroySpMat(b));
    PetscCallTarsia(tarsiaPlan_setValueUpdates(step->plan, 1));
    PetscCallTarsia(tarsiaPlan_setSortedOutput(step->plan, (int)sorted));
    PetscCallTarsia(tarsiaPlan_analyze(handle, step->plan));
    PetscCallTarsia(tarsiaSpGEMM_symbolic(handle, step->plan, &nnz));
    PetscCheck(nnz <= PETSC_MAX_INT, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE,
               "The product has %lld entries, more than PetscInt counts", (long long)nnz);
    step->result_nnz = (PetscInt)nnz;
    info.structSize = sizeof info;
    PetscCallTarsia(tarsiaPlan_getInfo(step->plan, &info));
    step->flops = 2.0 * (PetscLogDouble)info.products;
    for (int i = 0; i < 2; i++) {
        step->offsets[i] = factors[i]->offsets;
        step->columns[i] = factors[i]->columns;
        step->nnz[i] = factors[i]->nnz;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes the result of a step into its arrays, from the present values of the factors. */
static PetscErrorCode RunStep(tarsiaHandle_t handle, const Step *step, const TarsiaArrays *A,
                              const TarsiaArrays *B, const TarsiaArrays *result) {
    static const PetscScalar one = 1;
    tarsiaSpMatDescr_t c;

    PetscFunctionBegin;
    PetscCallTarsia(tarsiaSpGEMM_updateValues(handle, step->plan, A->values, B->values));
    PetscCall(TarsiaCreateCsr(result, &c));
    PetscCallTarsia(tarsiaSpGEMM_numeric(handle, step->plan, &one, c));
    PetscCallTarsia(tarsiaDestroySpMat(c));
    if (result->device)
        PetscCall(PetscLogGpuFlops(step->flops));
    else
        PetscCall(PetscLogFlops(step->flops));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices of another product with the same patterns have other arrays: plans are made for those.
 */
static PetscBool HasArrays(const Step *step, int factor, const TarsiaArrays *arrays) {
    return (PetscBool)(step->offsets[factor] == arrays->offsets &&
                       step->columns[factor] == arrays->columns &&
                       step->nnz[factor] == arrays->nnz);
}

/* The plans of all steps, and A P where that is one. */
static PetscErrorCode PrepareProduct(Product *product, MatProductType type, const TarsiaArrays *A,
                                     const TarsiaArrays *B) {
    const tarsiaOperation_t op =
        type == MATPRODUCT_AtB ? TARSIA_OPERATION_TRANSPOSE : TARSIA_OPERATION_NON_TRANSPOSE;

    /* The order of columns in A P changes no bit of P^T A P, whose sums go over rows of A P. Without
     * it the host saves some time; devices were not measured. */
    const PetscBool sorted = (PetscBool)(type != MATPRODUCT_PtAP || A->device);

    PetscFunctionBegin;
    PetscCall(PrepareStep(product->handle, op, A, B, sorted, &product->steps[0]));
    if (type == MATPRODUCT_PtAP) {
        PetscCall(FreeArrays(product->handle, &product->between));
        PetscCall(AllocateArrays(product->handle, A->rows, B->cols, product->steps[0].result_nnz,
                                 A->device, &product->between));
        /* The second step reads the pattern of A P, which the numeric phase writes. */
        PetscCall(RunStep(product->handle, &product->steps[0], A, B, &product->between));
        PetscCall(PrepareStep(product->handle, TARSIA_OPERATION_TRANSPOSE, B, &product->between,
                              PETSC_TRUE, &product->steps[1]));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes all steps that have not been; the last one writes the arrays of C. */
static PetscErrorCode RunProduct(Product *product, MatProductType type, PetscBool has_between,
                                 const TarsiaArrays *A, const TarsiaArrays *B,
                                 const TarsiaArrays *C) {
    PetscFunctionBegin;
    if (type == MATPRODUCT_PtAP) {
        if (!has_between)
            PetscCall(RunStep(product->handle, &product->steps[0], A, B, &product->between));
        PetscCall(RunStep(product->handle, &product->steps[1], B, &product->between, C));
    } else {
        PetscCall(RunStep(product->handle, &product->steps[0], A, B, C));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetStates(Mat C, PetscObjectState states[2]) {
    PetscFunctionBegin;
    PetscCall(PetscObjectStateGet((PetscObject)C->product->A, &states[0]));
    PetscCall(PetscObjectStateGet((PetscObject)C->product->B, &states[1]));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductNumeric_Sparse(Mat C) {
    Product *product = (Product *)C->product->data;
    const MatProductType type = C->product->type;
    TarsiaArrays A, B, result;
    PetscObjectState states[2];
    PetscScalar *values;
    PetscBool has_between = PETSC_FALSE;

    PetscFunctionBegin;
    PetscCheck(product, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The product's data are gone");
    PetscCall(GetStates(C, states));
    if (product->fresh && states[0] == product->states[0] && states[1] == product->states[1]) {
        product->fresh = PETSC_FALSE;
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    product->fresh = PETSC_FALSE;
    PetscCall(TarsiaGetArrays(C->product->A, &A));
    PetscCall(TarsiaGetArrays(C->product->B, &B));
    PetscCall(TarsiaGetArrays(C, &result));
    if (!A.nnz || !B.nnz || !result.nnz)
        PetscFunctionReturn(PETSC_SUCCESS);
    if (!HasArrays(&product->steps[0], 0, &A) || !HasArrays(&product->steps[0], 1, &B)) {
        PetscCall(PrepareProduct(product, type, &A, &B));
        has_between = PETSC_TRUE;
        PetscCheck(product->steps[type == MATPRODUCT_PtAP].result_nnz == result.nnz,
                   PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP,
                   "The factors have other patterns than in the symbolic phase");
    }
    /* PETSc's functions around the write renew what it derives from values. */
#if defined(PETSC_HAVE_CUDA)
    if (result.device) {
        PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(C, &values));
        result.values = values;
        PetscCall(RunProduct(product, type, has_between, &A, &B, &result));
        PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(C, &values));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
#endif
    PetscCall(MatSeqAIJGetArray(C, &values));
    result.values = values;
    PetscCall(RunProduct(product, type, has_between, &A, &B, &result));
    PetscCall(MatSeqAIJRestoreArray(C, &values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives C the pattern and values of arrays, which are on the host. */
static PetscErrorCode FillResult(Mat C, const TarsiaArrays *arrays) {
    PetscFunctionBegin;
    PetscCall(MatSeqAIJSetPreallocationCSR(C, arrays->offsets, arrays->columns, arrays->values));
    /* As in PETSc's own products, entries may be added to C. */
    PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillResultFromDevice(tarsiaHandle_t handle, Mat C,
                                           const TarsiaArrays *arrays) {
    TarsiaArrays host = *arrays;
    PetscInt *offsets, *columns;

    PetscFunctionBegin;
    PetscCall(
        PetscMalloc3(arrays->rows + 1, &offsets, arrays->nnz, &columns, arrays->nnz, &host.values));
    PetscCallTarsia(tarsiaMemcpyToHost(handle, offsets, arrays->offsets,
                                       ((size_t)arrays->rows + 1) * sizeof(PetscInt)));
    PetscCallTarsia(tarsiaMemcpyToHost(handle, columns, arrays->columns,
                                       (size_t)arrays->nnz * sizeof(PetscInt)));
    PetscCallTarsia(tarsiaMemcpyToHost(handle, host.values, arrays->values,
                                       (size_t)arrays->nnz * sizeof(PetscScalar)));
    host.offsets = offsets;
    host.columns = columns;
    PetscCall(FillResult(C, &host));
    PetscCall(PetscFree3(offsets, columns, host.values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductSymbolic_Sparse(Mat C) {
    const MatProductType type = C->product->type;
    Mat matA = C->product->A, matB = C->product->B;
    const PetscInt rows = type == MATPRODUCT_AB    ? matA->rmap->n
                          : type == MATPRODUCT_AtB ? matA->cmap->n
                                                   : matB->cmap->n;
    Product *product;
    TarsiaArrays A, B, result = {0};

    PetscFunctionBegin;
    PetscCall(TarsiaGetArrays(matA, &A));
    PetscCall(TarsiaGetArrays(matB, &B));
    PetscCall(PetscNew(&product));
    PetscCall(TarsiaGetHandle(A.device, &product->handle));
    PetscCall(MatSetSizes(C, rows, matB->cmap->n, rows, matB->cmap->n));
    PetscCall(MatSetType(C, MATSEQAIJTARSIA));
    if (A.nnz && B.nnz) {
        PetscCall(PrepareProduct(product, type, &A, &B));
        PetscCall(AllocateArrays(product->handle, rows, matB->cmap->n,
                                 product->steps[type == MATPRODUCT_PtAP].result_nnz, A.device,
                                 &result));
        PetscCall(RunProduct(product, type, PETSC_TRUE, &A, &B, &result));
        if (A.device)
            PetscCall(FillResultFromDevice(product->handle, C, &result));
        else
            PetscCall(FillResult(C, &result));
        PetscCall(FreeArrays(product->handle, &result));
    } else {
        PetscInt *offsets;

        PetscCall(PetscCalloc1(rows + 1, &offsets));
        result.offsets = offsets;
        PetscCall(FillResult(C, &result));
        PetscCall(PetscFree(offsets));
    }
    PetscCall(GetStates(C, product->states));
    product->fresh = PETSC_TRUE;
    C->product->data = product;
    C->product->destroy = DestroyProductData;
    C->ops->productsymbolic = ProductSymbolic_Sparse;
    C->ops->productnumeric = ProductNumeric_Sparse;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* -mat_tarsia_spgemm 0 leaves products of sparse matrices to PETSc. */
static PetscErrorCode UseSpGEMM(PetscBool *use) {
    PetscFunctionBegin;
    *use = PETSC_TRUE;
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_tarsia_spgemm", use, NULL));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls for a product of two matrices of which at least one has this type. Products that
 * the library has no operation for (A B^T, R A R^T, A B C), and those of a matrix on the host and
 * one on the device, stay PETSc's own. */
PetscErrorCode TarsiaProductSetFromOptions_Sparse(Mat C) {
    const MatProductType type = C->product->type;
    Mat factors[2] = {C->product->A, C->product->B};
    PetscBool ours, sparse, bound, device[2],
        here =
            (PetscBool)(type == MATPRODUCT_AB || type == MATPRODUCT_AtB || type == MATPRODUCT_PtAP);

    PetscFunctionBegin;
    PetscCall(UseSpGEMM(&ours));
    here = (PetscBool)(here && ours);
    for (int i = 0; i < 2; i++) {
        PetscCall(PetscStrbeginswith(((PetscObject)factors[i])->type_name, MATSEQAIJ, &sparse));
        PetscCall(
            PetscStrbeginswith(((PetscObject)factors[i])->type_name, "seqaijcusparse", &device[i]));
        PetscCall(MatBoundToCPU(factors[i], &bound));
        device[i] = (PetscBool)(device[i] && !bound);
        here = (PetscBool)(here && sparse && factors[i]->assembled);
    }
    if (here && device[0] == device[1])
        C->ops->productsymbolic = ProductSymbolic_Sparse;
    else
        PetscCall(TarsiaProductSetFromOptions_Base(C));
    PetscFunctionReturn(PETSC_SUCCESS);
}
