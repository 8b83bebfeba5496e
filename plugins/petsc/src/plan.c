// SPDX-License-Identifier: MIT OR Apache-2.0
/* Plans of a sequential matrix: made when an operation first needs one, kept while the pattern
 * stays, and given new values when the matrix has them. */

#include "petsctarsia_impl.h"

static const char *const plan_names[TARSIA_PLANS] = {
    "MatMult", "MatMultTranspose", "MatMatMult dense", "MatTransposeMatMult dense",
    "dense MatMatMult"};

/* Gets the arrays where products read them: on the device for a matrix there. */
PetscErrorCode TarsiaGetArrays(Mat A, TarsiaArrays *arrays) {
    PetscMemType where = PETSC_MEMTYPE_HOST;
    MatInfo info;

    PetscFunctionBegin;
    arrays->rows = A->rmap->n;
    arrays->cols = A->cmap->n;
    PetscCall(
        MatSeqAIJGetCSRAndMemType(A, &arrays->offsets, &arrays->columns, &arrays->values, &where));
    arrays->device = (PetscBool)PetscMemTypeDevice(where);
    if (arrays->device) {
        PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
        arrays->nnz = (PetscInt)info.nz_used;
#if defined(PETSC_HAVE_CUDA)
        /* Where most rows are empty, the offsets above are those of the others. */
        PetscCall(MatSeqAIJCUSPARSEGetIJ(A, PETSC_FALSE, &arrays->offsets, &arrays->columns));
#endif
    } else {
        arrays->nnz = arrays->rows ? arrays->offsets[arrays->rows] : 0;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TarsiaCreateCsr(const TarsiaArrays *arrays, tarsiaSpMatDescr_t *csr) {
    PetscFunctionBegin;
    PetscCallTarsia(tarsiaCreateCsr(csr, arrays->rows, arrays->cols, arrays->nnz,
                                    (void *)arrays->offsets, (void *)arrays->columns,
                                    arrays->values, TARSIA_INDEX, TARSIA_INDEX,
                                    TARSIA_INDEX_BASE_ZERO, TARSIA_SCALAR));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyPlan(TarsiaPlan *plan) {
    PetscFunctionBegin;
    PetscCallTarsia(tarsiaPlan_destroy(plan->plan));
    PetscCallTarsia(tarsiaDestroyDnVec(plan->x));
    PetscCallTarsia(tarsiaDestroyDnVec(plan->y));
    PetscCallTarsia(tarsiaDestroyDnVec(plan->z));
    PetscCall(PetscMemzero(plan, sizeof *plan));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TarsiaDestroyPlans(TarsiaMatrix *matrix) {
    PetscFunctionBegin;
    for (int kind = 0; kind < TARSIA_PLANS; kind++)
        PetscCall(DestroyPlan(&matrix->plans[kind]));
    matrix->offsets = matrix->columns = NULL;
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ViewPlan(const char *name, const TarsiaPlan *plan, PetscViewer viewer) {
    tarsiaPlanInfo_t info;
    PetscMPIInt rank;

    PetscFunctionBegin;
    info.structSize = sizeof info;
    PetscCallTarsia(tarsiaPlan_getInfo(plan->plan, &info));
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCall(PetscViewerASCIIPrintf(
        viewer, "[%d] Tarsia %s, %lld x %lld, %lld entries: %s, %zu bytes, analysis %.3g s; %s\n",
        rank, name, (long long)info.rows, (long long)info.cols, (long long)info.nnz,
        info.algorithmName, info.planBytes, info.analysisSeconds, info.reason));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode TarsiaViewPlans(TarsiaMatrix *matrix, PetscViewer viewer) {
    PetscFunctionBegin;
    for (int kind = 0; kind < TARSIA_PLANS; kind++)
        if (matrix->plans[kind].plan)
            PetscCall(ViewPlan(plan_names[kind], &matrix->plans[kind], viewer));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MakePlan(Mat A, TarsiaMatrix *matrix, TarsiaPlanKind kind,
                               const TarsiaArrays *arrays, tarsiaHandle_t handle,
                               TarsiaPlan *plan) {
    const PetscBool left = (PetscBool)(kind == TARSIA_PLAN_DENSE_LEFT);
    const PetscBool transpose = (PetscBool)(left || kind == TARSIA_PLAN_MULT_TRANSPOSE ||
                                            kind == TARSIA_PLAN_DENSE_TRANSPOSE);
    const PetscBool dense =
        (PetscBool)(left || kind == TARSIA_PLAN_DENSE || kind == TARSIA_PLAN_DENSE_TRANSPOSE);
    const tarsiaOrder_t order = left ? TARSIA_ORDER_ROW : TARSIA_ORDER_COL;
    const tarsiaOperation_t op =
        transpose ? TARSIA_OPERATION_TRANSPOSE : TARSIA_OPERATION_NON_TRANSPOSE;
    const PetscInt rows = transpose ? arrays->cols : arrays->rows;
    const PetscInt cols = transpose ? arrays->rows : arrays->cols;
    tarsiaSpMatDescr_t csr;

    PetscFunctionBegin;
    PetscCall(PetscLogEventBegin(TARSIA_Analyze, A, 0, 0, 0));
    PetscCall(TarsiaCreateCsr(arrays, &csr));
    if (dense) {
        PetscCallTarsia(tarsiaSpMM_createPlan(
            handle, &plan->plan, op, TARSIA_OPERATION_NON_TRANSPOSE, csr, order, order,
            plan->columns, TARSIA_SCALAR, TARSIA_SCALAR, TARSIA_COMPUTE, TARSIA_SPMM_ALG_DEFAULT));
    } else {
        PetscCallTarsia(tarsiaSpMV_createPlan(handle, &plan->plan, op, csr, TARSIA_SCALAR,
                                              TARSIA_SCALAR, TARSIA_COMPUTE,
                                              (tarsiaSpMVAlg_t)matrix->algorithm));
        PetscCallTarsia(tarsiaCreateDnVec(&plan->x, cols, NULL, TARSIA_SCALAR));
        PetscCallTarsia(tarsiaCreateDnVec(&plan->y, rows, NULL, TARSIA_SCALAR));
        PetscCallTarsia(tarsiaCreateDnVec(&plan->z, rows, NULL, TARSIA_SCALAR));
    }
    PetscCallTarsia(tarsiaDestroySpMat(csr));
    PetscCallTarsia(tarsiaPlan_setEffort(plan->plan, (tarsiaEffort_t)matrix->effort));
    PetscCallTarsia(tarsiaPlan_setValueUpdates(plan->plan, plan->updates));
    PetscCallTarsia(tarsiaPlan_analyze(handle, plan->plan));
    PetscCall(PetscLogEventEnd(TARSIA_Analyze, A, 0, 0, 0));
    if (matrix->view)
        PetscCall(ViewPlan(plan_names[kind], plan, PETSC_VIEWER_STDOUT_SELF));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts the rows with entries, by the pattern that PETSc has on the host for every matrix. */
static PetscErrorCode CountNonemptyRows(Mat A, PetscInt *count) {
    const PetscInt *offsets;
    PetscInt rows;
    PetscBool done;

    PetscFunctionBegin;
    *count = 0;
    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, NULL, &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A sequential matrix has no row offsets");
    for (PetscInt i = 0; i < rows; i++)
        *count += offsets[i + 1] > offsets[i];
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &offsets, NULL, &done));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Drops the plans of another pattern than the matrix has now. */
PetscErrorCode TarsiaCheckPattern(Mat A, TarsiaMatrix *matrix, const TarsiaArrays *arrays) {
    PetscObjectState pattern;

    PetscFunctionBegin;
    PetscCall(MatGetNonzeroState(A, &pattern));
    if (matrix->pattern != pattern || matrix->offsets != arrays->offsets ||
        matrix->columns != arrays->columns || matrix->nnz != arrays->nnz) {
        PetscCall(TarsiaDestroyPlans(matrix));
        PetscCall(CountNonemptyRows(A, &matrix->nonempty_rows));
        matrix->pattern = pattern;
        matrix->offsets = arrays->offsets;
        matrix->columns = arrays->columns;
        matrix->nnz = arrays->nnz;
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Returns the plan of an operation, with the matrix's present pattern and values. arrays has at
 * least one entry. columns: of the dense factor of SpMM, else 0. */
PetscErrorCode TarsiaGetPlan(Mat A, TarsiaMatrix *matrix, TarsiaPlanKind kind, PetscInt columns,
                             const TarsiaArrays *arrays, tarsiaHandle_t handle, TarsiaPlan **out) {
    TarsiaPlan *plan = &matrix->plans[kind];
    PetscObjectState state;

    PetscFunctionBegin;
    PetscCall(TarsiaCheckPattern(A, matrix, arrays));
    PetscCall(PetscObjectStateGet((PetscObject)A, &state));
    /* Workspace is for at most the columns that a plan was made for. */
    if (plan->plan && plan->columns < columns) {
        const PetscBool updates = plan->updates;

        PetscCall(DestroyPlan(plan));
        plan->updates = updates;
    }
    if (plan->plan && (plan->state != state || plan->values != arrays->values)) {
        if (plan->updates) {
            PetscCall(PetscLogEventBegin(TARSIA_Update, A, 0, 0, 0));
            PetscCallTarsia(tarsiaPlan_updateValues(handle, plan->plan, arrays->values));
            PetscCall(PetscLogEventEnd(TARSIA_Update, A, 0, 0, 0));
        } else {
            /* Values that change now may change often: a plan whose updates are cheap. */
            const PetscInt kept = plan->columns;

            PetscCall(DestroyPlan(plan));
            plan->updates = PETSC_TRUE;
            columns = PetscMax(columns, kept);
        }
    }
    if (!plan->plan) {
        plan->columns = columns;
        PetscCall(MakePlan(A, matrix, kind, arrays, handle, plan));
    }
    plan->state = state;
    plan->values = arrays->values;
    *out = plan;
    PetscFunctionReturn(PETSC_SUCCESS);
}
