// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the files of the plugin share. */

#ifndef PETSCTARSIA_IMPL_H
#define PETSCTARSIA_IMPL_H

#include <petsc/private/matimpl.h>

#include <petsctarsia.h>
#include <tarsia.h>

#if defined(PETSC_USE_REAL_DOUBLE) && defined(PETSC_USE_COMPLEX)
#define TARSIA_SCALAR TARSIA_C_64F
#define TARSIA_COMPUTE TARSIA_COMPUTE_C_64F
#elif defined(PETSC_USE_REAL_DOUBLE)
#define TARSIA_SCALAR TARSIA_R_64F
#define TARSIA_COMPUTE TARSIA_COMPUTE_64F
#elif defined(PETSC_USE_REAL_SINGLE) && defined(PETSC_USE_COMPLEX)
#define TARSIA_SCALAR TARSIA_C_32F
#define TARSIA_COMPUTE TARSIA_COMPUTE_C_32F
#elif defined(PETSC_USE_REAL_SINGLE)
#define TARSIA_SCALAR TARSIA_R_32F
#define TARSIA_COMPUTE TARSIA_COMPUTE_32F
#else
#error "Tarsia has no values of this PETSc's precision; it takes single and double"
#endif

#if defined(PETSC_USE_64BIT_INDICES)
#define TARSIA_INDEX TARSIA_INDEX_64I
#else
#define TARSIA_INDEX TARSIA_INDEX_32I
#endif

/* Until 3.19 functions of PETSc returned a plain 0. */
#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

/* What PETSc gives to functions that destroy contents, the address of a pointer, has a name
 * since 3.25. */
#if PETSC_VERSION_GE(3, 23, 0) && PETSC_VERSION_LT(3, 25, 0)
typedef void **PetscCtxRt;
#endif

/* The library's status as an error of PETSc, with the library's own text. */
#define PetscCallTarsia(call)                                                                      \
    do {                                                                                           \
        tarsiaStatus_t status_ = (call);                                                           \
        if (PetscUnlikely(status_ != TARSIA_STATUS_SUCCESS)) {                                     \
            char text_[512] = "";                                                                  \
            (void)tarsiaGetLastErrorMessage(text_, sizeof text_);                                  \
            SETERRQ(PETSC_COMM_SELF, TarsiaErrorCode(status_), "%s: %s: %s", #call,                \
                    tarsiaGetErrorName(status_), text_);                                           \
        }                                                                                          \
    } while (0)

/* Operations that a matrix keeps a plan for. */
typedef enum {
    TARSIA_PLAN_MULT,
    TARSIA_PLAN_MULT_TRANSPOSE,
    TARSIA_PLAN_DENSE,
    TARSIA_PLAN_DENSE_TRANSPOSE,
    /* A dense matrix times this one. */
    TARSIA_PLAN_DENSE_LEFT,
    TARSIA_PLANS
} TarsiaPlanKind;

/* Arrays of a sequential matrix, on the host or the device. */
typedef struct {
    PetscInt rows, cols, nnz;
    const PetscInt *offsets, *columns;
    PetscScalar *values;
    PetscBool device;
} TarsiaArrays;

typedef struct {
    tarsiaPlan_t plan;
    /* Descriptors of vectors; those of an SpMM plan are made for each product. */
    tarsiaDnVecDescr_t x, y, z;
    /* Columns of the dense factor that an SpMM plan was made for. */
    PetscInt columns;
    /* The plan is one for values that change, which a matrix gets when they first do. */
    PetscBool updates;
    /* What the plan was last given, so that it is seen when the matrix has other values. */
    PetscObjectState state;
    const PetscScalar *values;
} TarsiaPlan;

/* What a sequential matrix has beside PETSc's own data. */
typedef struct {
    TarsiaPlan plans[TARSIA_PLANS];
    /* The pattern that the plans are for. */
    PetscObjectState pattern;
    const PetscInt *offsets, *columns;
    PetscInt nnz, nonempty_rows;
    /* -mat_tarsia_alg, -mat_tarsia_effort, -mat_tarsia_view. */
    PetscInt algorithm, effort;
    PetscBool view;
    /* PETSc's type is the one on the device. */
    PetscBool device;
} TarsiaMatrix;

/* library.c */
PETSC_INTERN PetscLogEvent TARSIA_Analyze, TARSIA_Update;
PETSC_INTERN PetscErrorCode TarsiaErrorCode(tarsiaStatus_t status);
PETSC_INTERN PetscErrorCode TarsiaGetHandle(PetscBool device, tarsiaHandle_t *handle);
PETSC_INTERN PetscErrorCode TarsiaUseDevice(PetscBool *device);

/* plan.c */
PETSC_INTERN PetscErrorCode TarsiaGetArrays(Mat A, TarsiaArrays *arrays);
PETSC_INTERN PetscErrorCode TarsiaCreateCsr(const TarsiaArrays *arrays, tarsiaSpMatDescr_t *csr);
PETSC_INTERN PetscErrorCode TarsiaCheckPattern(Mat A, TarsiaMatrix *matrix,
                                               const TarsiaArrays *arrays);
PETSC_INTERN PetscErrorCode TarsiaGetPlan(Mat A, TarsiaMatrix *matrix, TarsiaPlanKind kind,
                                          PetscInt columns, const TarsiaArrays *arrays,
                                          tarsiaHandle_t handle, TarsiaPlan **plan);
PETSC_INTERN PetscErrorCode TarsiaDestroyPlans(TarsiaMatrix *matrix);
PETSC_INTERN PetscErrorCode TarsiaViewPlans(TarsiaMatrix *matrix, PetscViewer viewer);

/* seqaij.c */
PETSC_INTERN PetscErrorCode TarsiaGetMatrix(Mat A, TarsiaMatrix **matrix);
PETSC_INTERN PetscErrorCode TarsiaAttach(Mat A);
PETSC_INTERN PetscErrorCode TarsiaDetach(Mat A);
PETSC_INTERN PetscErrorCode TarsiaComposeAliases(Mat A, const char *from, const char *to,
                                                 PetscBool set);
PETSC_INTERN PetscErrorCode MatCreate_SeqAIJTarsia(Mat A);
PETSC_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJTarsia(Mat A, MatType type, MatReuse reuse,
                                                           Mat *B);

/* mpiaij.c */
PETSC_INTERN PetscErrorCode MatCreate_MPIAIJTarsia(Mat A);

/* dense.c, sparse.c */
PETSC_INTERN PetscErrorCode TarsiaProductSetFromOptions_Dense(Mat C);
PETSC_INTERN PetscErrorCode TarsiaProductSetFromOptions_DenseLeft(Mat C);
PETSC_INTERN PetscErrorCode TarsiaProductSetFromOptions_ParallelDense(Mat C);
PETSC_INTERN PetscErrorCode TarsiaProductSetFromOptions_Sparse(Mat C);
PETSC_INTERN PetscErrorCode TarsiaNumericOfFactors(Mat A, Mat B, Mat C,
                                                   PetscErrorCode (*numeric)(Mat));

/* seqaij.c: PETSc's own function, for what this plugin leaves to it. */
PETSC_INTERN PetscErrorCode TarsiaProductSetFromOptions_Base(Mat C);

#endif
