// SPDX-License-Identifier: MIT OR Apache-2.0
/* Products of a sequential matrix with a dense one: C = A B and C = A^T B by SpMM.
 *
 * The plan belongs to A, not to the product: for a product of parallel matrices PETSc asks for that
 * of the local blocks anew each time. */

#include "petsctarsia_impl.h"

typedef struct {
    Mat matrix;
    PetscBool device, write;
    /* The matrix is the host's, and is on the device for the time of the product. */
    PetscBool converted;
    PetscScalar *values;
    tarsiaDnMatDescr_t descr;
} DenseFactor;

static PetscErrorCode AcquireDense(Mat B, PetscBool write, PetscBool device, DenseFactor *factor) {
    PetscInt ld;

    PetscFunctionBegin;
    factor->matrix = B;
    factor->device = device;
    factor->write = write;
    factor->converted = PETSC_FALSE;
#if defined(PETSC_HAVE_CUDA)
    if (device) {
        PetscBool there;

        PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQDENSECUDA, &there));
        if (!there)
            PetscCall(MatConvert(B, MATSEQDENSECUDA, MAT_INPLACE_MATRIX, &B));
        factor->converted = there ? PETSC_FALSE : PETSC_TRUE;
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
    PetscCallTarsia(tarsiaCreateDnMat(&factor->descr, B->rmap->n, B->cmap->n, PetscMax(ld, 1),
                                      factor->values, TARSIA_SCALAR, TARSIA_ORDER_COL));
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
        PetscFunctionReturn(PETSC_SUCCESS);
    }
#endif
    if (factor->write)
        PetscCall(MatDenseRestoreArrayWrite(factor->matrix, &factor->values));
    else
        PetscCall(MatDenseRestoreArrayRead(factor->matrix, (const PetscScalar **)&factor->values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductNumeric_Dense(Mat C) {
    static const PetscScalar one = 1, zero = 0;
    Mat A = C->product->A, B = C->product->B;
    const TarsiaPlanKind kind =
        C->product->type == MATPRODUCT_AtB ? TARSIA_PLAN_DENSE_TRANSPOSE : TARSIA_PLAN_DENSE;
    const PetscInt columns = B->cmap->n;
    TarsiaMatrix *matrix;
    TarsiaArrays arrays;
    TarsiaPlan *plan;
    tarsiaHandle_t handle;
    DenseFactor b, c;

    PetscFunctionBegin;
    PetscCall(TarsiaGetArrays(A, &arrays));
    if (!arrays.nnz || !columns) {
        PetscCall(MatZeroEntries(C));
    } else {
        PetscCall(TarsiaGetMatrix(A, &matrix));
        PetscCall(TarsiaGetHandle(arrays.device, &handle));
        PetscCall(TarsiaGetPlan(A, matrix, kind, columns, &arrays, handle, &plan));
        PetscCall(AcquireDense(B, PETSC_FALSE, arrays.device, &b));
        PetscCall(AcquireDense(C, PETSC_TRUE, arrays.device, &c));
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

static PetscErrorCode ProductSymbolic_Dense(Mat C) {
    Mat A = C->product->A, B = C->product->B;
    const PetscInt rows = C->product->type == MATPRODUCT_AtB ? A->cmap->n : A->rmap->n;
    PetscBool dense;

    PetscFunctionBegin;
    PetscCall(MatSetSizes(C, rows, B->cmap->n, rows, B->cmap->n));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)C, MATSEQDENSE, &dense));
    if (!dense) {
        PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
        C->ops->productsymbolic = ProductSymbolic_Dense;
    }
    PetscCall(MatSetUp(C));
    C->ops->productnumeric = ProductNumeric_Dense;
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
