// SPDX-License-Identifier: MIT OR Apache-2.0
/* MATSEQAIJTARSIA: PETSc's seqaij, or seqaijcusparse on a device, with products by Tarsia.
 *
 * The data, the assembly and everything but products stay PETSc's. What the plugin knows of a
 * matrix is in a container that is composed with it, so that it follows the matrix through
 * MatHeaderReplace and MatHeaderMerge, and leaves Mat.spptr to aijcusparse.
 *
 * On the host the type's name is seqaijtarsia. On a device the name stays seqaijcusparse, because
 * functions of that type compare names before they touch device memory; the products are attached
 * all the same. */

#include "petsctarsia_impl.h"

#define CONTAINER "MatTarsia"

/* PETSc's own functions, of matrices on the host and on the device. They are those of a new matrix:
 * PETSc exchanges some while a matrix is assembled. */
static struct _MatOps bases[2];
static PetscErrorCode (*base_store_values)(Mat), (*base_retrieve_values)(Mat);
static PetscBool looking_up_base = PETSC_FALSE;

static const char *BaseType(PetscBool device) {
#if defined(PETSC_HAVE_CUDA)
    if (device)
        return MATSEQAIJCUSPARSE;
#endif
    (void)device;
    return MATSEQAIJ;
}

static PetscBool OnDevice(Mat A) {
    PetscBool device = PETSC_FALSE;

    if (((PetscObject)A)->type_name)
        (void)PetscStrbeginswith(((PetscObject)A)->type_name, "seqaijcusparse", &device);
    return device;
}

/* Products that PETSc finds by the names of two types on a device, where a sequential matrix keeps
 * the name of PETSc's own type: Tarsia's function, and the one that PETSc has under the name. */
static struct {
    const char *name;
    PetscErrorCode (*function)(Mat), (*base)(Mat);
} device_products[] = {
    {"MatProductSetFromOptions_seqaijcusparse_seqaijcusparse_C", TarsiaProductSetFromOptions_Sparse,
     NULL},
    {"MatProductSetFromOptions_seqaijcusparse_seqdense_C", TarsiaProductSetFromOptions_Dense, NULL},
    {"MatProductSetFromOptions_seqaijcusparse_seqdensecuda_C", TarsiaProductSetFromOptions_Dense,
     NULL},
    {"MatProductSetFromOptions_seqdense_seqaijcusparse_C", TarsiaProductSetFromOptions_DenseLeft,
     NULL},
    {"MatProductSetFromOptions_seqdensecuda_seqaijcusparse_C",
     TarsiaProductSetFromOptions_DenseLeft, NULL}};

static PetscErrorCode LookUpBase(PetscBool device) {
    Mat A;

    PetscFunctionBegin;
    if (!bases[device].destroy) {
        looking_up_base = PETSC_TRUE;
        PetscCall(MatCreate(PETSC_COMM_SELF, &A));
        PetscCall(MatSetType(A, BaseType(device)));
        bases[device] = *A->ops;
        PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatStoreValues_C", &base_store_values));
        PetscCall(
            PetscObjectQueryFunction((PetscObject)A, "MatRetrieveValues_C", &base_retrieve_values));
        for (size_t i = 0; device && i < PETSC_STATIC_ARRAY_LENGTH(device_products); i++)
            PetscCall(PetscObjectQueryFunction((PetscObject)A, device_products[i].name,
                                               &device_products[i].base));
        PetscCall(MatDestroy(&A));
        looking_up_base = PETSC_FALSE;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyMatrix(TarsiaMatrix *matrix) {
    PetscFunctionBegin;
    PetscCall(TarsiaDestroyPlans(matrix));
    PetscCall(PetscFree(matrix));
    PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 23, 0)
static PetscErrorCode DestroyContents(PetscCtxRt contents) {
    return DestroyMatrix(*(TarsiaMatrix **)contents);
}
#else
static PetscErrorCode DestroyContents(void *contents) {
    return DestroyMatrix((TarsiaMatrix *)contents);
}
#endif

static PetscErrorCode ComposeMatrix(Mat A, TarsiaMatrix **matrix) {
    static const char *const algorithms[] = {"default", "csr",  "sell",
                                             "stream",  "dasp", "mask_block"};
    static const char *const efforts[] = {"default", "quick", "tuned"};
    PetscContainer container;

    PetscFunctionBegin;
    PetscCall(PetscNew(matrix));
    (*matrix)->device = OnDevice(A);
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
    PetscCall(PetscContainerSetPointer(container, *matrix));
#if PETSC_VERSION_GE(3, 23, 0)
    PetscCall(PetscContainerSetCtxDestroy(container, DestroyContents));
#else
    PetscCall(PetscContainerSetUserDestroy(container, DestroyContents));
#endif
    PetscCall(PetscObjectCompose((PetscObject)A, CONTAINER, (PetscObject)container));
    PetscCall(PetscContainerDestroy(&container));
    PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, "Tarsia options",
                      "Mat");
    PetscCall(PetscOptionsEList("-mat_tarsia_alg", "Algorithm of MatMult", NULL, algorithms,
                                PETSC_STATIC_ARRAY_LENGTH(algorithms), algorithms[0],
                                &(*matrix)->algorithm, NULL));
    PetscCall(PetscOptionsEList("-mat_tarsia_effort", "What analysis may cost", NULL, efforts,
                                PETSC_STATIC_ARRAY_LENGTH(efforts), efforts[0], &(*matrix)->effort,
                                NULL));
    PetscCall(PetscOptionsBool("-mat_tarsia_view", "Print what analysis chose", NULL,
                               (*matrix)->view, &(*matrix)->view, NULL));
    PetscOptionsEnd();
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Returns what the plugin knows of the matrix, NULL if its products are not Tarsia's. */
static PetscErrorCode QueryMatrix(Mat A, TarsiaMatrix **matrix) {
    PetscObject container;

    PetscFunctionBegin;
    *matrix = NULL;
    PetscCall(PetscObjectQuery((PetscObject)A, CONTAINER, &container));
    if (container)
        PetscCall(PetscContainerGetPointer((PetscContainer)container, (void **)matrix));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same for a matrix whose products are Tarsia's. MatHeaderMerge with a plain seqaij matrix
 * leaves the functions and takes the container away: it is made anew. */
PetscErrorCode TarsiaGetMatrix(Mat A, TarsiaMatrix **matrix) {
    PetscFunctionBegin;
    PetscCall(QueryMatrix(A, matrix));
    if (!*matrix)
        PetscCall(ComposeMatrix(A, matrix));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- Products with vectors ------------------------------------------------------------------- */

typedef enum { READ, WRITE, READ_WRITE } Access;

/* An array of a vector that a product uses. */
typedef struct {
    Vec vec;
    Access access;
    PetscScalar *values;
    PetscBool copied; /* the vector is on the device, the product on the host */
} Operand;

static PetscErrorCode Acquire(Vec vec, Access access, PetscBool device, Operand *operand) {
    PetscMemType where;

    PetscFunctionBegin;
    operand->vec = vec;
    operand->access = access;
    operand->copied = PETSC_FALSE;
    if (access == READ)
        PetscCall(VecGetArrayReadAndMemType(vec, (const PetscScalar **)&operand->values, &where));
    else if (access == WRITE)
        PetscCall(VecGetArrayWriteAndMemType(vec, &operand->values, &where));
    else
        PetscCall(VecGetArrayAndMemType(vec, &operand->values, &where));
    if (PetscMemTypeDevice(where) && !device) {
        if (access == READ) {
            PetscCall(VecRestoreArrayReadAndMemType(vec, (const PetscScalar **)&operand->values));
            PetscCall(VecGetArrayRead(vec, (const PetscScalar **)&operand->values));
        } else if (access == WRITE) {
            PetscCall(VecRestoreArrayWriteAndMemType(vec, &operand->values));
            PetscCall(VecGetArrayWrite(vec, &operand->values));
        } else {
            PetscCall(VecRestoreArrayAndMemType(vec, &operand->values));
            PetscCall(VecGetArray(vec, &operand->values));
        }
        operand->copied = PETSC_TRUE;
    }
    PetscCheck(!device || PetscMemTypeDevice(where), PETSC_COMM_SELF, PETSC_ERR_SUP,
               "The matrix is on the device and the vector on the host; use -vec_type cuda");
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(Operand *operand) {
    Vec vec = operand->vec;

    PetscFunctionBegin;
    if (operand->access == READ && operand->copied)
        PetscCall(VecRestoreArrayRead(vec, (const PetscScalar **)&operand->values));
    else if (operand->access == READ)
        PetscCall(VecRestoreArrayReadAndMemType(vec, (const PetscScalar **)&operand->values));
    else if (operand->access == WRITE && operand->copied)
        PetscCall(VecRestoreArrayWrite(vec, &operand->values));
    else if (operand->access == WRITE)
        PetscCall(VecRestoreArrayWriteAndMemType(vec, &operand->values));
    else if (operand->copied)
        PetscCall(VecRestoreArray(vec, &operand->values));
    else
        PetscCall(VecRestoreArrayAndMemType(vec, &operand->values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same by PETSc. Vectors may be parallel here, and each rank has a block of its own: functions
 * such as VecSet, which keep a norm, are not for this. */
static PetscErrorCode MultiplyByPetsc(Mat A, TarsiaPlanKind kind, Vec x, Vec y, Vec z) {
    const struct _MatOps *base = &bases[OnDevice(A)];

    PetscFunctionBegin;
    if (kind == TARSIA_PLAN_MULT && y)
        PetscCall((*base->multadd)(A, x, y, z));
    else if (kind == TARSIA_PLAN_MULT)
        PetscCall((*base->mult)(A, x, z));
    else if (y)
        PetscCall((*base->multtransposeadd)(A, x, y, z));
    else
        PetscCall((*base->multtranspose)(A, x, z));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = op(A) x, or z = op(A) x + y where there is a y, which may be z. */
static PetscErrorCode Multiply(Mat A, TarsiaPlanKind kind, Vec x, Vec y, Vec z) {
    static const PetscScalar one = 1, zero = 0;
    TarsiaMatrix *matrix;
    TarsiaArrays arrays;
    TarsiaPlan *plan;
    tarsiaHandle_t handle;
    Operand xs, ys, zs;
    const PetscBool in_place = (PetscBool)(y == z);

    PetscFunctionBegin;
    PetscCall(TarsiaGetArrays(A, &arrays));
    if (!arrays.nnz) {
        PetscCall(MultiplyByPetsc(A, kind, x, y, z));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(TarsiaGetMatrix(A, &matrix));
    PetscCall(TarsiaCheckPattern(A, matrix, &arrays));
    /* Most rows of an off-diagonal block are empty. Below two fifths PETSc keeps a list of the
     * others and leaves the rest of z alone, which the library would read and write. */
    if (kind == TARSIA_PLAN_MULT && in_place && 5.0 * matrix->nonempty_rows < 2.0 * arrays.rows) {
        PetscCall(MultiplyByPetsc(A, kind, x, y, z));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(TarsiaGetHandle(arrays.device, &handle));
    PetscCall(TarsiaGetPlan(A, matrix, kind, 0, &arrays, handle, &plan));

    PetscCall(Acquire(x, READ, arrays.device, &xs));
    if (y && !in_place)
        PetscCall(Acquire(y, READ, arrays.device, &ys));
    PetscCall(Acquire(z, in_place ? READ_WRITE : WRITE, arrays.device, &zs));
    if (arrays.device)
        PetscCall(PetscLogGpuTimeBegin());
    PetscCallTarsia(tarsiaDnVecSetValues(plan->x, xs.values));
    PetscCallTarsia(tarsiaDnVecSetValues(plan->z, zs.values));
    if (y && !in_place) {
        PetscCallTarsia(tarsiaDnVecSetValues(plan->y, ys.values));
        PetscCallTarsia(tarsiaSpMV_into(handle, plan->plan, &one, plan->x, &one, plan->y, plan->z));
    } else {
        PetscCallTarsia(tarsiaSpMV(handle, plan->plan, &one, plan->x, y ? &one : &zero, plan->z));
    }
    if (arrays.device)
        PetscCall(PetscLogGpuTimeEnd());
    PetscCall(Release(&xs));
    if (y && !in_place)
        PetscCall(Release(&ys));
    PetscCall(Release(&zs));
    {
        const PetscLogDouble sums =
            kind == TARSIA_PLAN_MULT && !y ? (PetscLogDouble)matrix->nonempty_rows : 0;
        const PetscLogDouble flops = 2.0 * (PetscLogDouble)arrays.nnz - sums;

        if (arrays.device)
            PetscCall(PetscLogGpuFlops(flops));
        else
            PetscCall(PetscLogFlops(flops));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_SeqAIJTarsia(Mat A, Vec x, Vec y) {
    PetscFunctionBegin;
    PetscCall(Multiply(A, TARSIA_PLAN_MULT, x, NULL, y));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultAdd_SeqAIJTarsia(Mat A, Vec x, Vec y, Vec z) {
    PetscFunctionBegin;
    PetscCall(Multiply(A, TARSIA_PLAN_MULT, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTranspose_SeqAIJTarsia(Mat A, Vec x, Vec y) {
    PetscFunctionBegin;
    PetscCall(Multiply(A, TARSIA_PLAN_MULT_TRANSPOSE, x, NULL, y));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMultTransposeAdd_SeqAIJTarsia(Mat A, Vec x, Vec y, Vec z) {
    PetscFunctionBegin;
    PetscCall(Multiply(A, TARSIA_PLAN_MULT_TRANSPOSE, x, y, z));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- The type -------------------------------------------------------------------------------- */

PetscErrorCode TarsiaProductSetFromOptions_Base(Mat C) {
    const PetscBool device = (PetscBool)(OnDevice(C->product->A) || OnDevice(C->product->B));

    PetscFunctionBegin;
    PetscCall((*bases[device].productsetfromoptions)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDuplicate_SeqAIJTarsia(Mat A, MatDuplicateOption option, Mat *B) {
    TarsiaMatrix *from, *to;

    PetscFunctionBegin;
    PetscCall((*bases[OnDevice(A)].duplicate)(A, option, B));
    PetscCall(TarsiaAttach(*B));
    PetscCall(TarsiaGetMatrix(A, &from));
    PetscCall(TarsiaGetMatrix(*B, &to));
    to->algorithm = from->algorithm;
    to->effort = from->effort;
    to->view = from->view;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_SeqAIJTarsia(Mat A) {
    PetscFunctionBegin;
    PetscCall(TarsiaDetach(A));
    PetscCall((*A->ops->destroy)(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static void SetProducts(Mat A) {
    A->ops->mult = MatMult_SeqAIJTarsia;
    A->ops->multadd = MatMultAdd_SeqAIJTarsia;
    A->ops->multtranspose = MatMultTranspose_SeqAIJTarsia;
    A->ops->multtransposeadd = MatMultTransposeAdd_SeqAIJTarsia;
    /* PETSc conjugates around multtranspose where these are missing. */
    A->ops->multhermitiantranspose = NULL;
    A->ops->multhermitiantransposeadd = NULL;
    A->ops->productsetfromoptions = TarsiaProductSetFromOptions_Sparse;
}

#if defined(PETSC_HAVE_CUDA)
static PetscErrorCode ComposeFunctions(Mat A, PetscBool set);

/* A matrix that is bound to the CPU has PETSc's own products there, but those with a dense matrix
 * on the left, of which PETSc has none under this type's name. */
static PetscErrorCode MatBindToCPU_SeqAIJTarsia(Mat A, PetscBool bind) {
    PetscFunctionBegin;
    PetscCall((*bases[1].bindtocpu)(A, bind));
    if (!bind) {
        SetProducts(A);
        PetscCall(ComposeFunctions(A, PETSC_TRUE));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* Composes the functions that PETSc finds by the names of two types, first the base's under this
 * type's name: conversions that PETSc has for `from`, and the product of a matrix of type `is` with
 * it, serve `to`, too. */
PetscErrorCode TarsiaComposeAliases(Mat A, const char *from, const char *to, PetscBool set) {
    static const char *const targets[] = {
        "seqdense", "mpidense", "seqbaij", "mpibaij",   "seqsbaij",  "mpisbaij",  "seqsell",
        "mpisell",  "hypre",    "is",      "elemental", "scalapack", "seqaijperm"};
    char name[128];
    PetscErrorCode (*function)(Mat, MatType, MatReuse, Mat *);
    PetscErrorCode (*product)(Mat);

    PetscFunctionBegin;
    PetscCall(PetscSNPrintf(name, sizeof name, "MatProductSetFromOptions_is_%s_C", from));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &product));
    if (product) {
        PetscCall(PetscSNPrintf(name, sizeof name, "MatProductSetFromOptions_is_%s_C", to));
        if (set)
            PetscCall(PetscObjectComposeFunction((PetscObject)A, name, product));
        else
            PetscCall(PetscObjectComposeFunction((PetscObject)A, name, NULL));
    }
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(targets); i++) {
        PetscCall(PetscSNPrintf(name, sizeof name, "MatConvert_%s_%s_C", from, targets[i]));
        PetscCall(PetscObjectQueryFunction((PetscObject)A, name, &function));
        if (!function)
            continue;
        PetscCall(PetscSNPrintf(name, sizeof name, "MatConvert_%s_%s_C", to, targets[i]));
        if (set)
            PetscCall(PetscObjectComposeFunction((PetscObject)A, name, function));
        else
            PetscCall(PetscObjectComposeFunction((PetscObject)A, name, NULL));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_SeqAIJTarsia_SeqAIJ(Mat A, MatType type, MatReuse reuse, Mat *B) {
    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_REUSE_MATRIX) {
        PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (reuse == MAT_INITIAL_MATRIX)
        PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    PetscCall(TarsiaDetach(*B));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatConvert_SeqAIJ_SeqAIJTarsia(Mat A, MatType type, MatReuse reuse, Mat *B) {
    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_REUSE_MATRIX) {
        PetscCall(MatCopy(A, *B, SAME_NONZERO_PATTERN));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    if (reuse == MAT_INITIAL_MATRIX)
        PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
    PetscCall(TarsiaAttach(*B));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own keeps the values that are on the host, which may be older than those on a device. */
static PetscErrorCode MatStoreValues_SeqAIJTarsia(Mat A) {
    const PetscScalar *values;

    PetscFunctionBegin;
    PetscCall(MatSeqAIJGetArrayRead(A, &values));
    PetscCall((*base_store_values)(A));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &values));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's own writes the values on the host, and says to nobody that it has. */
static PetscErrorCode MatRetrieveValues_SeqAIJTarsia(Mat A) {
    PetscScalar *values;

    PetscFunctionBegin;
    PetscCall(MatSeqAIJGetArrayWrite(A, &values));
    PetscCall((*base_retrieve_values)(A));
    PetscCall(MatSeqAIJRestoreArrayWrite(A, &values));
    PetscCall(PetscObjectStateIncrease((PetscObject)A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Composes, or takes away, the functions that PETSc finds by this type's name. */
static PetscErrorCode ComposeFunctions(Mat A, PetscBool set) {
    static const struct {
        const char *name;
        PetscErrorCode (*function)(Mat, MatType, MatReuse, Mat *);
    } converters[] = {{"MatConvert_seqaijtarsia_seqaij_C", MatConvert_SeqAIJTarsia_SeqAIJ},
                      {"MatConvert_seqaij_seqaijtarsia_C", MatConvert_SeqAIJ_SeqAIJTarsia}};
    static const struct {
        const char *name;
        PetscErrorCode (*function)(Mat);
    } products[] = {
        {"MatProductSetFromOptions_seqaijtarsia_seqaij_C", TarsiaProductSetFromOptions_Sparse},
        {"MatProductSetFromOptions_seqaij_seqaijtarsia_C", TarsiaProductSetFromOptions_Sparse},
        {"MatProductSetFromOptions_seqaijtarsia_seqdense_C", TarsiaProductSetFromOptions_Dense},
        {"MatProductSetFromOptions_seqaijtarsia_seqdensecuda_C", TarsiaProductSetFromOptions_Dense},
        {"MatProductSetFromOptions_seqdense_seqaijtarsia_C", TarsiaProductSetFromOptions_DenseLeft},
        {"MatProductSetFromOptions_seqdensecuda_seqaijtarsia_C",
         TarsiaProductSetFromOptions_DenseLeft}};

    PetscFunctionBegin;
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(converters); i++)
        PetscCall(PetscObjectComposeFunction((PetscObject)A, converters[i].name,
                                             set ? converters[i].function : NULL));
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(products); i++)
        PetscCall(PetscObjectComposeFunction((PetscObject)A, products[i].name,
                                             set ? products[i].function : NULL));
    for (size_t i = 0; OnDevice(A) && i < PETSC_STATIC_ARRAY_LENGTH(device_products); i++)
        PetscCall(PetscObjectComposeFunction((PetscObject)A, device_products[i].name,
                                             set ? device_products[i].function
                                                 : device_products[i].base));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatStoreValues_C",
                                         set ? MatStoreValues_SeqAIJTarsia : base_store_values));
    PetscCall(
        PetscObjectComposeFunction((PetscObject)A, "MatRetrieveValues_C",
                                   set ? MatRetrieveValues_SeqAIJTarsia : base_retrieve_values));
    PetscCall(TarsiaComposeAliases(A, MATSEQAIJ, MATSEQAIJTARSIA, set));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the products of a matrix of PETSc's own type Tarsia's. Nothing happens to one that has
 * them. */
PetscErrorCode TarsiaAttach(Mat A) {
    TarsiaMatrix *matrix;
    PetscBool device = OnDevice(A), base;

    PetscFunctionBegin;
    /* With -mat_seqaij_type seqaijtarsia PETSc calls this for every new seqaij matrix. */
    PetscCall(QueryMatrix(A, &matrix));
    if (matrix || looking_up_base)
        PetscFunctionReturn(PETSC_SUCCESS);
#if defined(PETSC_HAVE_CUDA)
    if (!device) {
        PetscBool bound, propagates, assembled;

        /* PETSc counts every matrix of a host's type as bound to the CPU. A program that has
         * bound one itself says so by MatSetBindingPropagates. */
        PetscCall(MatBoundToCPU(A, &bound));
        PetscCall(MatGetBindingPropagates(A, &propagates));
        PetscCall(MatAssembled(A, &assembled));
        PetscCall(TarsiaUseDevice(&device));
        if (device && assembled && !(bound && propagates))
            PetscCall(MatConvert(A, BaseType(device), MAT_INPLACE_MATRIX, &A));
        device = OnDevice(A);
    }
#endif
    PetscCall(PetscObjectTypeCompare((PetscObject)A, BaseType(device), &base));
    PetscCheck(base, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix of type %s cannot become one of %s",
               ((PetscObject)A)->type_name, MATSEQAIJTARSIA);
    PetscCall(LookUpBase(device));
    PetscCall(ComposeMatrix(A, &matrix));
    SetProducts(A);
    A->ops->duplicate = MatDuplicate_SeqAIJTarsia;
    A->ops->destroy = MatDestroy_SeqAIJTarsia;
#if defined(PETSC_HAVE_CUDA)
    if (device)
        A->ops->bindtocpu = MatBindToCPU_SeqAIJTarsia;
#endif
    PetscCall(ComposeFunctions(A, PETSC_TRUE));
    if (!device)
        PetscCall(PetscObjectChangeTypeName((PetscObject)A, MATSEQAIJTARSIA));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives a matrix PETSc's own products back, and its type's name. MatHeaderMerge calls this with a
 * matrix that has no name. */
PetscErrorCode TarsiaDetach(Mat A) {
    const struct _MatOps *base;
    TarsiaMatrix *matrix;
    PetscBool device;

    PetscFunctionBegin;
    PetscCall(QueryMatrix(A, &matrix));
    device = matrix ? matrix->device : OnDevice(A);
#if defined(PETSC_HAVE_CUDA)
    /* MatHeaderMerge has taken the name and what was composed away. */
    device = (PetscBool)(device || A->ops->bindtocpu == MatBindToCPU_SeqAIJTarsia);
#endif
    base = &bases[device];
    A->ops->mult = base->mult;
    A->ops->multadd = base->multadd;
    A->ops->multtranspose = base->multtranspose;
    A->ops->multtransposeadd = base->multtransposeadd;
    A->ops->multhermitiantranspose = base->multhermitiantranspose;
    A->ops->multhermitiantransposeadd = base->multhermitiantransposeadd;
    A->ops->productsetfromoptions = base->productsetfromoptions;
    A->ops->duplicate = base->duplicate;
    A->ops->destroy = base->destroy;
    A->ops->bindtocpu = base->bindtocpu;
    PetscCall(ComposeFunctions(A, PETSC_FALSE));
    PetscCall(PetscObjectCompose((PetscObject)A, CONTAINER, NULL));
    if (((PetscObject)A)->type_name)
        PetscCall(PetscObjectChangeTypeName((PetscObject)A, BaseType(device)));
#if defined(PETSC_HAVE_CUDA)
    if (device && A->boundtocpu)
        PetscCall((*base->bindtocpu)(A, PETSC_TRUE));
#endif
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCreate_SeqAIJTarsia(Mat A) {
    PetscBool device;

    PetscFunctionBegin;
    PetscCall(TarsiaUseDevice(&device));
    PetscCall(MatSetType(A, BaseType(device)));
    PetscCall(TarsiaAttach(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTarsiaView(Mat A, PetscViewer viewer) {
    TarsiaMatrix *matrix;
    PetscBool parallel;
    Mat blocks[2] = {A, NULL};

    PetscFunctionBegin;
    PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
    PetscValidHeaderSpecific(viewer, PETSC_VIEWER_CLASSID, 2);
    PetscCall(PetscStrbeginswith(((PetscObject)A)->type_name, MATMPIAIJ, &parallel));
    if (parallel)
        PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
    for (int i = 0; i < 2; i++) {
        if (!blocks[i])
            continue;
        PetscCall(QueryMatrix(blocks[i], &matrix));
        if (matrix)
            PetscCall(TarsiaViewPlans(matrix, viewer));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}
