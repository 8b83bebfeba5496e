// SPDX-License-Identifier: MIT OR Apache-2.0
/* MATMPIAIJTARSIA: PETSc's mpiaij, or mpiaijcusparse on devices, whose local blocks multiply by
 * Tarsia. Vectors, communication and assembly are PETSc's. */

#include "petsctarsia_impl.h"

/* PETSc's own functions, of a new matrix on hosts and on devices. */
static struct _MatOps bases[2];

/* Names under which a product keeps PETSc's functions for its phases. */
#define BASE_SYMBOLIC "TarsiaBaseProductSymbolic_C"
#define BASE_NUMERIC "TarsiaBaseProductNumeric_C"

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

static PetscErrorCode Attach(Mat A);

#if defined(PETSC_HAVE_CUDA)
/* Calls one of PETSc's functions for a product, with factors of this type under the name of PETSc's
 * own. On devices PETSc keeps the values of a product of parallel matrices there only if their type
 * has that name, which these functions look at, and no numeric phase does. */
static PetscErrorCode CallWithNamesOfPETSc(Mat C, PetscErrorCode (*function)(Mat),
                                           PetscBool *was_renamed) {
    static char name[] = MATMPIAIJCUSPARSE;
    Mat factors[2] = {C->product->A, C->product->B};
    char *own[2] = {NULL, NULL};
    PetscErrorCode error;

    PetscFunctionBegin;
    *was_renamed = PETSC_FALSE;
    /* The product of a factor with itself finds it renamed the second time. */
    for (int i = 0; i < 2; i++) {
        PetscBool ours;

        PetscCall(PetscObjectTypeCompare((PetscObject)factors[i], MATMPIAIJTARSIA, &ours));
        if (!ours)
            continue;
        own[i] = ((PetscObject)factors[i])->type_name;
        ((PetscObject)factors[i])->type_name = name;
        *was_renamed = PETSC_TRUE;
    }
    error = (*function)(C);
    for (int i = 0; i < 2; i++)
        if (own[i])
            ((PetscObject)factors[i])->type_name = own[i];
    PetscCall(error);
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumericOfFactors(Mat A, Mat B, Mat C) {
    PetscErrorCode (*base)(Mat);

    PetscFunctionBegin;
    PetscCall(PetscObjectQueryFunction((PetscObject)C, BASE_NUMERIC, &base));
    PetscCall(TarsiaNumericOfFactors(A, B, C, base));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProductSymbolic_MPIAIJTarsia(Mat C) {
    PetscErrorCode (*base)(Mat);
    PetscBool plain, renamed;

    PetscFunctionBegin;
    PetscCall(PetscObjectQueryFunction((PetscObject)C, BASE_SYMBOLIC, &base));
    PetscCall(CallWithNamesOfPETSc(C, base, &renamed));
    PetscCall(PetscObjectComposeFunction((PetscObject)C, BASE_SYMBOLIC, NULL));
    PetscCall(PetscObjectTypeCompare((PetscObject)C, BaseType(PETSC_TRUE), &plain));
    if (plain) {
        PetscCall(Attach(C));
        if (C->assembled)
            PetscCall(AttachBlocks(C));
        PetscCall(PetscObjectComposeFunction((PetscObject)C, BASE_NUMERIC, C->ops->productnumeric));
        C->ops->matmultnumeric = C->ops->transposematmultnumeric = NumericOfFactors;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of two parallel sparse matrices on devices: PETSc's own, whose local products are those
 * of the local blocks. Where PETSc makes a product of three matrices of several types out of such
 * ones, it calls this for these, too. */
static PetscErrorCode MatProductSetFromOptions_MPIAIJTarsia(Mat C) {
    const MatProductType type = C->product->type;
    const struct _MatOps *base = NULL;
    PetscBool device, renamed;

    PetscFunctionBegin;
    PetscCall(Base(&base, &device));
    if (type != MATPRODUCT_AB && type != MATPRODUCT_AtB && type != MATPRODUCT_PtAP) {
        PetscCall((*base->productsetfromoptions)(C));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(CallWithNamesOfPETSc(C, base->productsetfromoptions, &renamed));
    if (renamed && C->ops->productsymbolic) {
        PetscCall(
            PetscObjectComposeFunction((PetscObject)C, BASE_SYMBOLIC, C->ops->productsymbolic));
        C->ops->productsymbolic = ProductSymbolic_MPIAIJTarsia;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* A product of a dense matrix with one of this type on the right is PETSc's own. */
static PetscErrorCode MatProductSetFromOptions_MPIDense_MPIAIJTarsia(Mat C) {
    PetscErrorCode (*base)(Mat);

    PetscFunctionBegin;
    PetscCall(PetscObjectQueryFunction((PetscObject)C->product->A,
                                       "MatProductSetFromOptions_mpidense_mpiaij_C", &base));
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

static PetscErrorCode MatConvert_MPIAIJTarsia_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *B) {
    Mat blocks[2];
    PetscBool device;

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
    /* From PETSc's type on devices to the one on the host, by a new matrix. */
    PetscCall(PetscStrbeginswith(((PetscObject)*B)->type_name, "mpiaijcusparse", &device));
    if (device) {
        ISLocalToGlobalMapping rows, columns;
        const char *prefix;
        char *kept;

        PetscCall(MatGetLocalToGlobalMapping(*B, &rows, &columns));
        PetscCall(PetscObjectReference((PetscObject)rows));
        PetscCall(PetscObjectReference((PetscObject)columns));
        PetscCall(MatGetOptionsPrefix(*B, &prefix));
        PetscCall(PetscStrallocpy(prefix, &kept));
        PetscCall(MatConvert(*B, MATMPIAIJ, MAT_INPLACE_MATRIX, B));
        if (rows && columns)
            PetscCall(MatSetLocalToGlobalMapping(*B, rows, columns));
        PetscCall(MatSetOptionsPrefix(*B, kept));
        PetscCall(ISLocalToGlobalMappingDestroy(&rows));
        PetscCall(ISLocalToGlobalMappingDestroy(&columns));
        PetscCall(PetscFree(kept));
    }
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

#if defined(PETSC_HAVE_CUDA)
/* Products on devices with matrices of PETSc's own types, and those of a factor under such a name.
 */
static PetscErrorCode ComposeDeviceProducts(Mat A, PetscErrorCode (*function)(Mat)) {
    static const char *const names[] = {"MatProductSetFromOptions_mpiaijtarsia_mpiaijcusparse_C",
                                        "MatProductSetFromOptions_mpiaijcusparse_mpiaijtarsia_C",
                                        "MatProductSetFromOptions_mpiaijcusparse_mpiaijcusparse_C"};

    PetscFunctionBegin;
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(names); i++)
        PetscCall(PetscObjectComposeFunction((PetscObject)A, names[i], function));
    PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode ComposeFunctions(Mat A, PetscBool set) {
    PetscFunctionBegin;
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaijtarsia_mpiaij_C",
                                         set ? MatConvert_MPIAIJTarsia_MPIAIJ : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatConvert_mpiaij_mpiaijtarsia_C",
                                         set ? MatConvert_MPIAIJ_MPIAIJTarsia : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A,
                                         "MatProductSetFromOptions_mpiaijtarsia_mpidense_C",
                                         set ? TarsiaProductSetFromOptions_ParallelDense : NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)A,
                                         "MatProductSetFromOptions_mpiaijtarsia_mpidensecuda_C",
                                         set ? TarsiaProductSetFromOptions_ParallelDense : NULL));
    PetscCall(PetscObjectComposeFunction(
        (PetscObject)A, "MatProductSetFromOptions_mpidense_mpiaijtarsia_C",
        set ? MatProductSetFromOptions_MPIDense_MPIAIJTarsia : NULL));
    PetscCall(PetscObjectComposeFunction(
        (PetscObject)A, "MatProductSetFromOptions_mpidensecuda_mpiaijtarsia_C",
        set ? MatProductSetFromOptions_MPIDense_MPIAIJTarsia : NULL));
    PetscCall(TarsiaComposeAliases(A, MATMPIAIJ, MATMPIAIJTARSIA, set));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Attach(Mat A) {
#if defined(PETSC_HAVE_CUDA)
    PetscBool device;
#endif

    PetscFunctionBegin;
    A->ops->assemblyend = MatAssemblyEnd_MPIAIJTarsia;
    A->ops->destroy = MatDestroy_MPIAIJTarsia;
    PetscCall(ComposeFunctions(A, PETSC_TRUE));
#if defined(PETSC_HAVE_CUDA)
    PetscCall(TarsiaUseDevice(&device));
    if (device) {
        A->ops->productsetfromoptions = MatProductSetFromOptions_MPIAIJTarsia;
        PetscCall(ComposeDeviceProducts(A, MatProductSetFromOptions_MPIAIJTarsia));
    }
#endif
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
    A->ops->productsetfromoptions = base->productsetfromoptions;
    PetscCall(ComposeFunctions(A, PETSC_FALSE));
#if defined(PETSC_HAVE_CUDA)
    if (device)
        PetscCall(ComposeDeviceProducts(A, NULL));
#endif
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
