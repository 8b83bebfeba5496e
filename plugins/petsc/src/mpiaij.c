// SPDX-License-Identifier: MIT OR Apache-2.0
/* MATMPIAIJTARSIA: PETSc's mpiaij, or mpiaijcusparse on devices, whose local blocks multiply by
 * Tarsia. Vectors, communication and assembly are PETSc's. */

#include "petsctarsia_impl.h"

/* PETSc's own functions, of a new matrix on hosts and on devices. */
static struct _MatOps bases[2];

static const char *BaseType(PetscBool device) {
#if defined(PETSC_HAVE_CUDA)
    if (device)
        return MATMPIAIJCUSPARSE;
#endif
    (void)device;
    return MATMPIAIJ;
}

/* All of a process's parallel matrices are where new ones are. */
static PetscErrorCode Base(const struct _MatOps **ops, PetscBool *device) {
    Mat A;

    PetscFunctionBegin;
    PetscCall(TarsiaUseDevice(device));
    if (!bases[*device].destroy) {
        PetscCall(MatCreate(PETSC_COMM_SELF, &A));
        PetscCall(MatSetType(A, BaseType(*device)));
        bases[*device] = *A->ops;
        PetscCall(MatDestroy(&A));
    }
    *ops = &bases[*device];
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both local blocks are made, and made anew, by PETSc in several places; all are before this. */
static PetscErrorCode AttachBlocks(Mat A) {
    Mat blocks[2];
    const char *prefix;

    PetscFunctionBegin;
    PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    PetscCall(MatGetOptionsPrefix(A, &prefix));
    for (int i = 0; i < 2; i++) {
        PetscCall(MatSetOptionsPrefix(blocks[i], prefix));
        PetscCall(TarsiaAttach(blocks[i]));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_MPIAIJTarsia(Mat A, MatAssemblyType type) {
    const struct _MatOps *base = NULL;
    PetscBool device;

    PetscFunctionBegin;
    PetscCall(Base(&base, &device));
    PetscCall((*base->assemblyend)(A, type));
    if (type == MAT_FINAL_ASSEMBLY)
        PetscCall(AttachBlocks(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a dense matrix PETSc has the product; it multiplies the diagonal block by the function of
 * its type. */
static PetscErrorCode MatProductSetFromOptions_MPIAIJTarsia_MPIDense(Mat C) {
    PetscErrorCode (*base)(Mat);

    PetscFunctionBegin;
    PetscCall(PetscObjectQueryFunction((PetscObject)C->product->B,
                                       "MatProductSetFromOptions_mpiaij_mpidense_C", &base));
    if (base)
        PetscCall((*base)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Detach(Mat A);

static PetscErrorCode MatDestroy_MPIAIJTarsia(Mat A) {
    PetscFunctionBegin;
    PetscCall(Detach(A));
    PetscCall((*A->ops->destroy)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Attach(Mat A);

static PetscErrorCode MatConvert_MPIAIJTarsia_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *B) {
    Mat blocks[2];

    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_REUSE_MATRIX) {
        PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (reuse == MAT_INITIAL_MATRIX)
        PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    PetscCall(MatMPIAIJGetSeqAIJ(*B, &blocks[0], &blocks[1], NULL));
    for (int i = 0; i < 2; i++)
        PetscCall(TarsiaDetach(blocks[i]));
    PetscCall(Detach(*B));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_MPIAIJ_MPIAIJTarsia(Mat A, MatType type, MatReuse reuse, Mat *B) {
    PetscBool device;

    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_REUSE_MATRIX) {
        PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (reuse == MAT_INITIAL_MATRIX)
        PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    /* Where there is a device, the functions of PETSc's type there, and its vectors. */
    PetscCall(TarsiaUseDevice(&device));
    if (device)
        PetscCall(MatConvert(*B, BaseType(device), MAT_INPLACE_MATRIX, B));
    PetscCall(Attach(*B));
    if ((*B)->assembled)
        PetscCall(AttachBlocks(*B));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ComposeFunctions(Mat A, PetscBool set) {
    PetscFunctionBegin;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaijtarsia_mpiaij_C",
                                         set ? MatConvert_MPIAIJTarsia_MPIAIJ : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaij_mpiaijtarsia_C",
                                         set ? MatConvert_MPIAIJ_MPIAIJTarsia : NULL));
    PetscCall(PetscObjectComposeFunction(
        (PetscObject)A, "MatProductSetFromOptions_mpiaijtarsia_mpidense_C",
        set ? MatProductSetFromOptions_MPIAIJTarsia_MPIDense : NULL));
    PetscCall(TarsiaComposeAliases(A, MATMPIAIJ, MATMPIAIJTARSIA, set));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Attach(Mat A) {
    PetscFunctionBegin;
    A->ops->assemblyend = MatAssemblyEnd_MPIAIJTarsia;
    A->ops->destroy = MatDestroy_MPIAIJTarsia;
    PetscCall(ComposeFunctions(A, PETSC_TRUE));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATMPIAIJTARSIA));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Detach(Mat A) {
    const struct _MatOps *base = NULL;
    PetscBool device;

    PetscFunctionBegin;
    PetscCall(Base(&base, &device));
    A->ops->assemblyend = base->assemblyend;
    A->ops->destroy = base->destroy;
    PetscCall(ComposeFunctions(A, PETSC_FALSE));
    /* MatHeaderMerge destroys a matrix that has no name. */
    if (((PetscObject)A)->type_name)
        PetscCall(PetscObjectChangeTypeName((PetscObject)A, BaseType(device)));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_MPIAIJTarsia(Mat A) {
    const struct _MatOps *base = NULL;
    PetscBool device;

    PetscFunctionBegin;
    PetscCall(Base(&base, &device));
    PetscCall(MatSetType(A, BaseType(device)));
    PetscCall(Attach(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}
