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

/* The matrices of a product, A, B and C, and the states that they were in. */
typedef struct {
    PetscObjectId ids[3];
    PetscObjectState states[3];
} Present;

typedef struct {
    tarsiaHandle_t handle;
    PetscBool device;
    /* [0] is A B, A^T B or A P; [1] is P^T (A P). */
    Step steps[2];
    /* A P, in memory of the library. */
    TarsiaArrays between;
    /* The symbolic phase has computed the values of C, for these matrices in these states. */
    PetscBool fresh;
    Present computed;
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

    /* The order of columns in A P changes no bit of P^T A P, whose sums go over rows of A P.
     * Without it the host saves some time; devices were not measured. */
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

static PetscErrorCode GetPresent(Mat C, Present *present) {
    Mat matrices[3] = {C->product->A, C->product->B, C};

    PetscFunctionBegin;
    PetscCall(PetscMemzero(present, sizeof *present));
    for (int i = 0; i < 3; i++) {
        PetscCall(PetscObjectGetId((PetscObject)matrices[i], &present->ids[i]));
        PetscCall(PetscObjectStateGet((PetscObject)matrices[i], &present->states[i]));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes the values of C, whose pattern is there. has_between: A P has its present values. */
static PetscErrorCode WriteValues(Product *product, Mat C, PetscBool has_between,
                                  const TarsiaArrays *A, const TarsiaArrays *B,
                                  TarsiaArrays *result) {
    PetscScalar *values;

    PetscFunctionBegin;
    /* PETSc's functions around the write renew what it derives from values. */
#if defined(PETSC_HAVE_CUDA)
    if (result->device) {
        PetscCall(MatSeqAIJCUSPARSEGetArrayWrite(C, &values));
        result->values = values;
        PetscCall(RunProduct(product, C->product->type, has_between, A, B, result));
        PetscCall(MatSeqAIJCUSPARSERestoreArrayWrite(C, &values));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
#endif
    PetscCall(MatSeqAIJGetArray(C, &values));
    result->values = values;
    PetscCall(RunProduct(product, C->product->type, has_between, A, B, result));
    PetscCall(MatSeqAIJRestoreArray(C, &values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductNumeric_Sparse(Mat C) {
    Product *product = (Product *)C->product->data;
    const MatProductType type = C->product->type;
    TarsiaArrays A, B, result;
    Present present;
    PetscBool has_between = PETSC_FALSE, computed;

    PetscFunctionBegin;
    PetscCheck(product, PETSC_COMM_SELF, PETSC_ERR_ORDER, "The product's data are gone");
    PetscCall(GetPresent(C, &present));
    PetscCall(PetscMemcmp(&present, &product->computed, sizeof present, &computed));
    if (product->fresh && computed) {
        product->fresh = PETSC_FALSE;
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    product->fresh = PETSC_FALSE;
    PetscCall(TarsiaGetArrays(C->product->A, &A));
    PetscCall(TarsiaGetArrays(C->product->B, &B));
    PetscCall(TarsiaGetArrays(C, &result));
    if (!A.nnz || !B.nnz || !result.nnz)
        PetscFunctionReturn(PETSC_SUCCESS);
    PetscCheck(A.device == product->device && B.device == product->device &&
                   result.device == product->device,
               PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG,
               "A factor or the result was bound to the CPU, or unbound, since the symbolic phase");
    if (!HasArrays(&product->steps[0], 0, &A) || !HasArrays(&product->steps[0], 1, &B)) {
        PetscCall(PrepareProduct(product, type, &A, &B));
        has_between = PETSC_TRUE;
    }
    PetscCheck(
        product->steps[type == MATPRODUCT_PtAP].result_nnz == result.nnz, PETSC_COMM_SELF,
        PETSC_ERR_ARG_INCOMP,
        "The factors have other patterns than in the symbolic phase, or entries were added to "
        "the result: it has %" PetscInt_FMT " entries and the product %" PetscInt_FMT,
        result.nnz, product->steps[type == MATPRODUCT_PtAP].result_nnz);
    PetscCall(WriteValues(product, C, has_between, &A, &B, &result));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives C the pattern of arrays on the host, and their values, if there are any. */
static PetscErrorCode FillResult(Mat C, const TarsiaArrays *arrays) {
    PetscInt *lengths;

    PetscFunctionBegin;
    PetscCall(PetscMalloc1(arrays->rows, &lengths));
    for (PetscInt row = 0; row < arrays->rows; row++)
        lengths[row] = arrays->offsets[row + 1] - arrays->offsets[row];
    PetscCall(MatSeqAIJSetPreallocation(C, 0, lengths));
    PetscCall(PetscFree(lengths));
    /* All columns at once: MatSeqAIJSetPreallocationCSR searches the place of each. */
    if (arrays->nnz)
        PetscCall(MatSeqAIJSetColumnIndices(C, (PetscInt *)arrays->columns));
    if (arrays->values && !C->structure_only) {
        PetscScalar *values;

        PetscCall(MatSeqAIJGetArrayWrite(C, &values));
        PetscCall(PetscArraycpy(values, arrays->values, arrays->nnz));
        PetscCall(MatSeqAIJRestoreArrayWrite(C, &values));
    }
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    /* As in PETSc's own products, entries may be added to C. */
    PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives C the pattern of arrays on the device. PETSc makes C from a pattern on the host, which
 * keeps one for its own functions, and has it on the device again when C's arrays are next asked
 * for. The numeric phase then writes the values there, so that these never travel. */
static PetscErrorCode FillResultFromDevice(tarsiaHandle_t handle, Mat C,
                                           const TarsiaArrays *arrays) {
    TarsiaArrays host = *arrays;
    PetscInt *offsets, *columns;

    PetscFunctionBegin;
    PetscCall(PetscMalloc2(arrays->rows + 1, &offsets, arrays->nnz, &columns));
    PetscCallTarsia(tarsiaMemcpyToHost(handle, offsets, arrays->offsets,
                                       ((size_t)arrays->rows + 1) * sizeof(PetscInt)));
    PetscCallTarsia(tarsiaMemcpyToHost(handle, columns, arrays->columns,
                                       (size_t)arrays->nnz * sizeof(PetscInt)));
    host.offsets = offsets;
    host.columns = columns;
    host.values = NULL;
    PetscCall(FillResult(C, &host));
    PetscCall(PetscFree2(offsets, columns));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Calls a numeric phase with the factors A and B. In products of three matrices of several types
 * PETSc computes one of the factors itself, and names both. */
PetscErrorCode TarsiaNumericOfFactors(Mat A, Mat B, Mat C, PetscErrorCode (*numeric)(Mat)) {
    Mat_Product *product = C->product;
    Mat factors[2] = {product->A, product->B};
    PetscErrorCode error;

    PetscFunctionBegin;
    product->A = A;
    product->B = B;
    error = (*numeric)(C);
    product->A = factors[0];
    product->B = factors[1];
    PetscCall(error);
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumericOfFactors(Mat A, Mat B, Mat C) {
    PetscFunctionBegin;
    PetscCall(TarsiaNumericOfFactors(A, B, C, ProductNumeric_Sparse));
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
    /* The numeric phase that follows has nothing to do. On a device this is so for P^T A P alone:
     * PETSc makes products of three matrices out of products A B and A^T B, and has computed no
     * values of the first when it asks for the pattern of the second. On the host it tells by the
     * object's state when it has; on a device it does not. */
    PetscBool has_values = (PetscBool)!C->structure_only;

    PetscFunctionBegin;
    PetscCall(TarsiaGetArrays(matA, &A));
    PetscCall(TarsiaGetArrays(matB, &B));
    PetscCall(PetscNew(&product));
    PetscCall(TarsiaGetHandle(A.device, &product->handle));
    PetscCall(MatSetSizes(C, rows, matB->cmap->n, rows, matB->cmap->n));
    /* A result without values is on the host, as PETSc's own. */
    PetscCall(MatSetType(C, C->structure_only ? MATSEQAIJ : MATSEQAIJTARSIA));
    if (A.nnz && B.nnz) {
        PetscCall(PrepareProduct(product, type, &A, &B));
        PetscCall(AllocateArrays(product->handle, rows, matB->cmap->n,
                                 product->steps[type == MATPRODUCT_PtAP].result_nnz, A.device,
                                 &result));
        PetscCall(RunProduct(product, type, PETSC_TRUE, &A, &B, &result));
        if (A.device) {
            PetscCall(FillResultFromDevice(product->handle, C, &result));
            if (has_values && type == MATPRODUCT_PtAP) {
                TarsiaArrays own;

                PetscCall(TarsiaGetArrays(C, &own));
                PetscCall(WriteValues(product, C, PETSC_TRUE, &A, &B, &own));
            } else {
                has_values = PETSC_FALSE;
            }
        } else {
            PetscCall(FillResult(C, &result));
        }
        PetscCall(FreeArrays(product->handle, &result));
    } else {
        PetscInt *offsets;

        PetscCall(PetscCalloc1(rows + 1, &offsets));
        result.rows = rows;
        result.offsets = offsets;
        PetscCall(FillResult(C, &result));
        PetscCall(PetscFree(offsets));
    }
    product->device = A.device;
    C->product->data = product;
    C->product->destroy = DestroyProductData;
    C->ops->productsymbolic = ProductSymbolic_Sparse;
    C->ops->productnumeric = ProductNumeric_Sparse;
    C->ops->matmultnumeric = C->ops->transposematmultnumeric = NumericOfFactors;
    PetscCall(GetPresent(C, &product->computed));
    product->fresh = has_values;
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
 * the library has no operation for (A B^T, R A R^T, A B C), those of a matrix on the host and
 * one on the device, and those without values stay PETSc's own. */
PetscErrorCode TarsiaProductSetFromOptions_Sparse(Mat C) {
    const MatProductType type = C->product->type;
    Mat factors[2] = {C->product->A, C->product->B};
    PetscBool ours, sparse, bound, device[2],
        here =
            (PetscBool)(type == MATPRODUCT_AB || type == MATPRODUCT_AtB || type == MATPRODUCT_PtAP);

    PetscFunctionBegin;
    PetscCall(UseSpGEMM(&ours));
    here = (PetscBool)(here && ours && !C->structure_only);
    for (int i = 0; i < 2; i++) {
        PetscCall(PetscStrbeginswith(((PetscObject)factors[i])->type_name, MATSEQAIJ, &sparse));
        PetscCall(
            PetscStrbeginswith(((PetscObject)factors[i])->type_name, "seqaijcusparse", &device[i]));
        PetscCall(MatBoundToCPU(factors[i], &bound));
        device[i] = (PetscBool)(device[i] && !bound);
        here = (PetscBool)(here && sparse && factors[i]->assembled && !factors[i]->structure_only);
    }
    if (here && device[0] == device[1])
        C->ops->productsymbolic = ProductSymbolic_Sparse;
    else
        PetscCall(TarsiaProductSetFromOptions_Base(C));
    PetscFunctionReturn(PETSC_SUCCESS);
}
