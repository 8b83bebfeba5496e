// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products with a dense matrix: C = A B, C = A^T B and C = B A of a sequential matrix A by SpMM,
 * and C = A^T B of a parallel one by the products of its blocks.
 *
 * The plan is kept with A, not with the product: for a product A B of parallel matrices PETSc makes
 * a new product of the local blocks at each call. */

#include <petscsf.h>

#include "petsctarsia_impl.h"

typedef struct {
    Mat matrix;
    PetscBool device, write;
    /* A matrix of the host, which is one of the device for the time of the product, or one of the
     * device that was bound to the CPU. */
    PetscBool converted, unbound;
    /* Numeric phases of a product, which PETSc overwrites when it converts or binds the matrix. */
    PetscErrorCode (*multiply)(Mat, Mat, Mat), (*multiply_transposed)(Mat, Mat, Mat);
    PetscScalar *values;
    tarsiaDnMatDescr_t descr;
} DenseFactor;

/* The descriptor is that of B, or of B^T if `transposed`: B's columns are rows of B^T. */
static PetscErrorCode AcquireDense(Mat B, PetscBool transposed, PetscBool write, PetscBool device,
                                   DenseFactor *factor) {
    PetscInt ld;

    PetscFunctionBegin;
    factor->matrix = B;
    factor->device = device;
    factor->write = write;
    factor->converted = factor->unbound = PETSC_FALSE;
    factor->multiply = B->ops->matmultnumeric;
    factor->multiply_transposed = B->ops->transposematmultnumeric;
#if defined(PETSC_HAVE_CUDA)
    if (device) {
        PetscBool there, bound;

        PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQDENSECUDA, &there));
        PetscCall(MatBoundToCPU(B, &bound));
        factor->converted = there ? PETSC_FALSE : PETSC_TRUE;
        /* PETSc counts every matrix of the host's type as bound. */
        factor->unbound = (PetscBool)(there && bound);
        if (factor->converted)
            PetscCall(MatConvert(B, MATSEQDENSECUDA, MAT_INPLACE_MATRIX, &B));
        else if (factor->unbound)
            PetscCall(MatBindToCPU(B, PETSC_FALSE));
    }
#endif
    PetscCall(MatDenseGetLDA(B, &ld));
#if defined(PETSC_HAVE_CUDA)
    if (device) {
        if (write)
            PetscCall(MatDenseCUDAGetArrayWrite(B, &factor->values));
        else
            PetscCall(MatDenseCUDAGetArrayRead(B, (const PetscScalar **)&factor->values));
    } else
#endif
        if (write)
        PetscCall(MatDenseGetArrayWrite(B, &factor->values));
    else
        PetscCall(MatDenseGetArrayRead(B, (const PetscScalar **)&factor->values));
    PetscCallTarsia(tarsiaCreateDnMat(&factor->descr, transposed ? B->cmap->n : B->rmap->n,
                                      transposed ? B->rmap->n : B->cmap->n, PetscMax(ld, 1),
                                      factor->values, TARSIA_SCALAR,
                                      transposed ? TARSIA_ORDER_ROW : TARSIA_ORDER_COL));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReleaseDense(DenseFactor *factor) {
    PetscFunctionBegin;
    PetscCallTarsia(tarsiaDestroyDnMat(factor->descr));
#if defined(PETSC_HAVE_CUDA)
    if (factor->device) {
        if (factor->write)
            PetscCall(MatDenseCUDARestoreArrayWrite(factor->matrix, &factor->values));
        else
            PetscCall(MatDenseCUDARestoreArrayRead(factor->matrix,
                                                   (const PetscScalar **)&factor->values));
        if (factor->converted)
            PetscCall(MatConvert(factor->matrix, MATSEQDENSE, MAT_INPLACE_MATRIX, &factor->matrix));
        else if (factor->unbound)
            PetscCall(MatBindToCPU(factor->matrix, PETSC_TRUE));
        factor->matrix->ops->matmultnumeric = factor->multiply;
        factor->matrix->ops->transposematmultnumeric = factor->multiply_transposed;
        PetscFunctionReturn(PETSC_SUCCESS);
    }
#endif
    if (factor->write)
        PetscCall(MatDenseRestoreArrayWrite(factor->matrix, &factor->values));
    else
        PetscCall(MatDenseRestoreArrayRead(factor->matrix, (const PetscScalar **)&factor->values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product of dense matrices alone: a program has cleared a product in C and begun another one
 * there, for which PETSc takes the numeric phase that C has had. C gets back the one that PETSc
 * gives to matrices of its type. */
static PetscErrorCode MultiplyByPetsc(TarsiaPlanKind kind, Mat A, Mat B, Mat C) {
    Mat fresh;

    PetscFunctionBegin;
    PetscCall(MatCreate(PetscObjectComm((PetscObject)C), &fresh));
    PetscCall(MatSetType(fresh, ((PetscObject)C)->type_name));
    C->ops->matmultnumeric = fresh->ops->matmultnumeric;
    C->ops->transposematmultnumeric = fresh->ops->transposematmultnumeric;
    PetscCall(MatDestroy(&fresh));
    if (kind == TARSIA_PLAN_DENSE_TRANSPOSE)
        PetscCall((*C->ops->transposematmultnumeric)(A, B, C));
    else if (kind == TARSIA_PLAN_DENSE_LEFT)
        PetscCall((*C->ops->matmultnumeric)(B, A, C));
    else
        PetscCall((*C->ops->matmultnumeric)(A, B, C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = A B (TARSIA_PLAN_DENSE), C = A^T B (TARSIA_PLAN_DENSE_TRANSPOSE), or C = B A
 * (TARSIA_PLAN_DENSE_LEFT), which is SpMM of A^T and B^T. All matrices are sequential, A is sparse.
 */
static PetscErrorCode MultiplyDense(Mat A, TarsiaPlanKind kind, Mat B, Mat C) {
    static const PetscScalar one = 1, zero = 0;
    const PetscBool left = (PetscBool)(kind == TARSIA_PLAN_DENSE_LEFT);
    const PetscInt columns = left ? B->rmap->n : B->cmap->n;
    PetscBool sparse;
    TarsiaMatrix *matrix;
    TarsiaArrays arrays;
    TarsiaPlan *plan;
    tarsiaHandle_t handle;
    DenseFactor b, c;

    PetscFunctionBegin;
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATSEQAIJ, &sparse));
    if (!sparse) {
        PetscCall(MultiplyByPetsc(kind, A, B, C));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(TarsiaGetArrays(A, &arrays));
    if (!arrays.nnz || !columns) {
        PetscCall(MatZeroEntries(C));
    } else {
        PetscCall(TarsiaGetMatrix(A, &matrix));
        PetscCall(TarsiaGetHandle(arrays.device, &handle));
        PetscCall(TarsiaGetPlan(A, matrix, kind, columns, &arrays, handle, &plan));
        PetscCall(AcquireDense(B, left, PETSC_FALSE, arrays.device, &b));
        PetscCall(AcquireDense(C, left, PETSC_TRUE, arrays.device, &c));
        PetscCallTarsia(tarsiaSpMM(handle, plan->plan, &one, b.descr, &zero, c.descr));
        PetscCall(ReleaseDense(&b));
        PetscCall(ReleaseDense(&c));
        if (arrays.device)
            PetscCall(PetscLogGpuFlops(2.0 * (PetscLogDouble)arrays.nnz * columns));
        else
            PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)arrays.nnz * columns));
    }
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* In products of three matrices PETSc calls the last numeric phase with its factors. */
static PetscErrorCode NumericOfFactors(Mat A, Mat B, Mat C) {
    return MultiplyDense(A, TARSIA_PLAN_DENSE, B, C);
}

static PetscErrorCode TransposedNumericOfFactors(Mat A, Mat B, Mat C) {
    return MultiplyDense(A, TARSIA_PLAN_DENSE_TRANSPOSE, B, C);
}

static PetscErrorCode LeftNumericOfFactors(Mat dense, Mat A, Mat C) {
    return MultiplyDense(A, TARSIA_PLAN_DENSE_LEFT, dense, C);
}

static PetscErrorCode ProductNumeric_Dense(Mat C) {
    const Mat_Product *product = C->product;

    if (product->type == MATPRODUCT_AtB)
        return TransposedNumericOfFactors(product->A, product->B, C);
    return NumericOfFactors(product->A, product->B, C);
}

static PetscErrorCode ProductNumeric_DenseLeft(Mat C) {
    return LeftNumericOfFactors(C->product->A, C->product->B, C);
}

/* Sets the sizes of C, as PETSc does, and the type of the dense factor unless C is a dense matrix
 * already. */
static PetscErrorCode SetUpDense(Mat C, PetscInt rows, PetscInt cols, Mat factor) {
    PetscErrorCode (*symbolic)(Mat) = C->ops->productsymbolic;
    PetscBool dense;

    PetscFunctionBegin;
    PetscCall(MatSetSizes(C, rows, cols, rows, cols));
    if (C->product->type == MATPRODUCT_AB)
        PetscCall(MatSetBlockSizesFromMats(C, C->product->A, C->product->B));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATSEQDENSE, &dense));
    if (!dense) {
        PetscCall(MatSetType(C, ((PetscObject)factor)->type_name));
        PetscCall(MatSetVecType(C, factor->defaultvectype));
        C->ops->productsymbolic = symbolic;
    }
    PetscCall(MatSetUp(C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductSymbolic_Dense(Mat C) {
    Mat A = C->product->A, B = C->product->B;
    const PetscInt rows = C->product->type == MATPRODUCT_AtB ? A->cmap->n : A->rmap->n;

    PetscFunctionBegin;
    PetscCall(SetUpDense(C, rows, B->cmap->n, B));
    C->ops->productnumeric = ProductNumeric_Dense;
    C->ops->matmultnumeric = NumericOfFactors;
    C->ops->transposematmultnumeric = TransposedNumericOfFactors;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductSymbolic_DenseLeft(Mat C) {
    Mat dense = C->product->A;

    PetscFunctionBegin;
    PetscCall(SetUpDense(C, dense->rmap->n, C->product->B->cmap->n, dense));
    C->ops->productnumeric = ProductNumeric_DenseLeft;
    C->ops->matmultnumeric = LeftNumericOfFactors;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc calls this for a product of a dense matrix with one of this type on the right. Of these
 * PETSc itself has C = B A alone. */
PetscErrorCode TarsiaProductSetFromOptions_DenseLeft(Mat C) {
    PetscFunctionBegin;
    if (C->product->type == MATPRODUCT_AB)
        C->ops->productsymbolic = ProductSymbolic_DenseLeft;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls for a product of this type and a dense one. Products that the library has no
 * operation for stay PETSc's own. */
PetscErrorCode TarsiaProductSetFromOptions_Dense(Mat C) {
    const MatProductType type = C->product->type;
    PetscErrorCode (*base)(Mat);

    PetscFunctionBegin;
    if (type == MATPRODUCT_AB || type == MATPRODUCT_AtB) {
        C->ops->productsymbolic = ProductSymbolic_Dense;
    } else {
        PetscCall(PetscObjectQueryFunction((PetscObject)C->product->B,
                                           "MatProductSetFromOptions_seqaij_seqdense_C", &base));
        if (base)
            PetscCall((*base)(C));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a product C = A^T B of a parallel matrix with a dense one has beside C. */
typedef struct {
    /* The rows of C that this rank adds to for other ranks: those of its off-diagonal block's
     * columns. */
    Mat others;
    /* Adds them to the rows of C that their owners have. */
    PetscSF sf;
    /* The off-diagonal block, and its pattern, that both are for. */
    PetscObjectId block;
    PetscObjectState pattern;
} TransposedProduct;

static PetscErrorCode DestroyTransposedProduct(TransposedProduct *product) {
    PetscFunctionBegin;
    PetscCall(MatDestroy(&product->others));
    PetscCall(PetscSFDestroy(&product->sf));
    PetscCall(PetscFree(product));
    PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 25, 0)
static PetscErrorCode DestroyTransposedData(PetscCtxRt data) {
    return DestroyTransposedProduct(*(TransposedProduct **)data);
}
#else
static PetscErrorCode DestroyTransposedData(void *data) {
    return DestroyTransposedProduct((TransposedProduct *)data);
}
#endif

/* Makes what depends on the pattern of A. `local` is this rank's part of C. */
static PetscErrorCode PrepareTransposed(Mat A, Mat off_diagonal, const PetscInt *columns, Mat local,
                                        TransposedProduct *product) {
    const PetscInt rows = off_diagonal->cmap->n;
    PetscObjectId block;
    int changed = 1;

    PetscFunctionBegin;
    PetscCall(PetscObjectGetId((PetscObject)off_diagonal, &block));
    if (product->others) {
        PetscBool same;

        PetscCall(PetscStrcmp(((PetscObject)product->others)->type_name,
                              ((PetscObject)local)->type_name, &same));
        changed =
            !same || product->block != block || product->pattern != off_diagonal->nonzerostate;
    }
    /* All ranks make it together. */
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &changed, 1, MPI_INT, MPI_LOR,
                               PetscObjectComm((PetscObject)A)));
    if (!changed)
        PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatDestroy(&product->others));
    PetscCall(PetscSFDestroy(&product->sf));
    PetscCall(MatCreate(PETSC_COMM_SELF, &product->others));
    PetscCall(MatSetSizes(product->others, rows, local->cmap->n, rows, local->cmap->n));
    PetscCall(MatSetType(product->others, ((PetscObject)local)->type_name));
    PetscCall(MatSetUp(product->others));
    PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &product->sf));
    PetscCall(PetscSFSetGraphLayout(product->sf, A->cmap, rows, NULL, PETSC_OWN_POINTER, columns));
    product->block = block;
    product->pattern = off_diagonal->nonzerostate;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of C that are on their way to other ranks at one time. */
#define COLUMNS_AT_ONCE 32

/* Adds the columns of `others` to those of C on other ranks. ldo and ld are leading dimensions; an
 * array is NULL where its matrix has no rows on this rank. */
static PetscErrorCode AddToOwners(PetscSF sf, PetscInt columns, const PetscScalar *others,
                                  size_t ldo, PetscScalar *values, size_t ld, PetscMemType type) {
    PetscFunctionBegin;
    for (PetscInt first = 0; first < columns; first += COLUMNS_AT_ONCE) {
        const PetscInt last = PetscMin(columns, first + COLUMNS_AT_ONCE);

        for (PetscInt j = first; j < last; j++)
            PetscCall(PetscSFReduceWithMemTypeBegin(
                sf, MPIU_SCALAR, type, others ? others + (size_t)j * ldo : NULL, type,
                values ? values + (size_t)j * ld : NULL, MPIU_SUM));
        for (PetscInt j = first; j < last; j++)
            PetscCall(PetscSFReduceEnd(sf, MPIU_SCALAR, others ? others + (size_t)j * ldo : NULL,
                                       values ? values + (size_t)j * ld : NULL, MPIU_SUM));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ParallelNumericOfFactors(Mat A, Mat dense, Mat C) {
    TransposedProduct *product = (TransposedProduct *)C->product->data;
    Mat B, local, blocks[2];
    PetscBool device = PETSC_FALSE;
    PetscScalar *values;
    const PetscScalar *others;
    const PetscInt *columns;
    PetscInt ld, ldo;

    PetscFunctionBegin;
    PetscCheck(product, PetscObjectComm((PetscObject)C), PETSC_ERR_ORDER,
               "The product's data are gone");
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], &columns));
    PetscCall(MatDenseGetLocalMatrix(dense, &B));
    PetscCall(MatDenseGetLocalMatrix(C, &local));
    PetscCall(PrepareTransposed(A, blocks[1], columns, local, product));
    PetscCall(TransposedNumericOfFactors(blocks[0], B, local));
    PetscCall(TransposedNumericOfFactors(blocks[1], B, product->others));
    PetscCall(MatDenseGetLDA(local, &ld));
    PetscCall(MatDenseGetLDA(product->others, &ldo));
#if defined(PETSC_HAVE_CUDA)
    {
        PetscBool bound;

        PetscCall(PetscObjectTypeCompare((PetscObject)local, MATSEQDENSECUDA, &device));
        PetscCall(MatBoundToCPU(local, &bound));
        device = (PetscBool)(device && !bound);
    }
    if (device) {
        PetscCall(MatDenseCUDAGetArray(local, &values));
        PetscCall(MatDenseCUDAGetArrayRead(product->others, &others));
    } else
#endif
    {
        PetscCall(MatDenseGetArray(local, &values));
        PetscCall(MatDenseGetArrayRead(product->others, &others));
    }
    PetscCall(AddToOwners(product->sf, local->cmap->n, product->others->rmap->n ? others : NULL,
                          (size_t)ldo, local->rmap->n ? values : NULL, (size_t)ld,
                          device ? PETSC_MEMTYPE_DEVICE : PETSC_MEMTYPE_HOST));
#if defined(PETSC_HAVE_CUDA)
    if (device) {
        PetscCall(MatDenseCUDARestoreArrayRead(product->others, &others));
        PetscCall(MatDenseCUDARestoreArray(local, &values));
    } else
#endif
    {
        PetscCall(MatDenseRestoreArrayRead(product->others, &others));
        PetscCall(MatDenseRestoreArray(local, &values));
    }
    PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductNumeric_Transposed(Mat C) {
    PetscFunctionBegin;
    PetscCall(ParallelNumericOfFactors(C->product->A, C->product->B, C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductSymbolic_Transposed(Mat C) {
    Mat A = C->product->A, B = C->product->B;
    TransposedProduct *product;
    PetscBool dense;

    PetscFunctionBegin;
    PetscCheck(A->rmap->rstart == B->rmap->rstart && A->rmap->rend == B->rmap->rend,
               PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ,
               "A and B have different rows on this rank: %" PetscInt_FMT " to %" PetscInt_FMT
               " and %" PetscInt_FMT " to %" PetscInt_FMT,
               A->rmap->rstart, A->rmap->rend, B->rmap->rstart, B->rmap->rend);
    PetscCall(MatSetSizes(C, A->cmap->n, B->cmap->n, A->cmap->N, B->cmap->N));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATMPIDENSE, &dense));
    if (!dense) {
        PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
        C->ops->productsymbolic = ProductSymbolic_Transposed;
    }
    PetscCall(MatSetUp(C));
    PetscCall(PetscNew(&product));
    C->product->data = product;
    C->product->destroy = DestroyTransposedData;
    C->ops->productnumeric = ProductNumeric_Transposed;
    C->ops->transposematmultnumeric = ParallelNumericOfFactors;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls for a product of the parallel type and a dense one. Of A B it multiplies the
 * diagonal block by the function of that block's type, and adds the rest by a loop of its own. */
PetscErrorCode TarsiaProductSetFromOptions_ParallelDense(Mat C) {
    PetscErrorCode (*base)(Mat);

    PetscFunctionBegin;
    if (C->product->type == MATPRODUCT_AtB) {
        C->ops->productsymbolic = ProductSymbolic_Transposed;
    } else {
        PetscCall(PetscObjectQueryFunction((PetscObject)C->product->B,
                                           "MatProductSetFromOptions_mpiaij_mpidense_C", &base));
        if (base)
            PetscCall((*base)(C));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}
