// SPDX-License-Identifier: MIT OR Apache-2.0
/* Every operation of aijtarsia against the same of aij, on one rank or several. With a PETSc for
 * CUDA matrices of aijtarsia are on a device unless -mat_tarsia_host is given, and aij's on the
 * host. -only NAME,NAME runs some of the groups of tests. -type TYPE tests another type, which
 * shows what PETSc's own types do. */

#include "check.h"
#include "dense.h"

static PetscErrorCode TestTypes(PetscMPIInt ranks) {
    Mat A, blocks[2];
    PetscBool is;

    PetscFunctionBeginUser;
    Test("the type's names");
    PetscCall(RandomMatrix(tested, 40, 40, 1, &A));
    PetscCall(CheckType(A, tested));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, ranks > 1 ? MATMPIAIJ : MATSEQAIJ, &is));
    Check(is, "aijtarsia is no aij");
    if (ranks > 1) {
        Test("types of local blocks");
        PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
        for (int i = 0; i < 2; i++)
            PetscCall(CheckTypeOn(blocks[i], tested, 1));
    } else {
        Test("the parallel type on one rank");
        PetscCall(MatDestroy(&A));
        PetscCall(RandomMatrix(MATMPIAIJTARSIA, 40, 50, 1, &A));
        PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
        PetscCall(SameProducts(blocks[0], A, "mpiaijtarsia on one rank"));
    }
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestShapes(PetscInt n) {
    const PetscInt shapes[][2] = {{n, n}, {n, n / 3}, {n / 3, n}, {n, 1}, {1, n}, {n, 2}, {0, 0}};
    Pair pair;

    PetscFunctionBeginUser;
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(shapes); i++) {
        Test("products of a shape with empty rows");
        PetscCall(MakePair(shapes[i][0], shapes[i][1], 3, &pair));
        PetscCall(SameProducts(pair.plain, pair.tarsia, "shape"));
        PetscCall(DestroyPair(&pair));
    }
    for (PetscInt columns = 0; columns < 20; columns += 19) {
        Test("a matrix without entries");
        for (int i = 0; i < 2; i++) {
            Mat *A = i ? &pair.tarsia : &pair.plain;

            PetscCall(MatCreate(PETSC_COMM_WORLD, A));
            PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, 20, columns));
            PetscCall(MatSetType(*A, i ? tested : MATAIJ));
            PetscCall(MatSetUp(*A));
            PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
            PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
        }
        PetscCall(SameProducts(pair.plain, pair.tarsia, "no entries"));
        PetscCall(DestroyPair(&pair));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddNewEntries(Mat A) {
    PetscInt first, last, cols;

    PetscFunctionBeginUser;
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(A, &first, &last));
    PetscCall(MatGetSize(A, NULL, &cols));
    for (PetscInt i = first; i < last; i += 3)
        for (PetscInt k = 0; k < 4; k++)
            PetscCall(MatSetValue(A, i, (i * 7 + k * 5) % cols, Value(i, k + 20), ADD_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives every entry another value, in a pattern that is read from a copy. */
static PetscErrorCode NewValues(Mat A, PetscInt seed) {
    PetscInt first, last, count;
    const PetscInt *columns;
    PetscScalar values[200];
    Mat copy;

    PetscFunctionBeginUser;
    PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &copy));
    PetscCall(MatGetOwnershipRange(A, &first, &last));
    for (PetscInt i = first; i < last; i++) {
        PetscCall(MatGetRow(copy, i, &count, &columns, NULL));
        PetscCheck(count <= 200, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a row is too long");
        for (PetscInt k = 0; k < count; k++)
            values[k] = Value(i + seed, k);
        PetscCall(MatSetValues(A, 1, &i, count, columns, values, INSERT_VALUES));
        PetscCall(MatRestoreRow(copy, i, &count, &columns, NULL));
    }
    PetscCall(MatDestroy(&copy));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StoreValues(Mat A) {
    PetscFunctionBeginUser;
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
    PetscCall(MatStoreValues(A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestNewValues(PetscInt n) {
    Pair pair, other;
    Vec lefts[2], rights[2];
    const PetscInt rows[] = {n / 4, n / 2};

    PetscFunctionBeginUser;
    PetscCall(MakePair(n, n, 5, &pair));
    PetscCall(MakePair(n, n, 6, &other));
    for (int i = 0; i < 2; i++) {
        PetscCall(MatCreateVecs(i ? pair.tarsia : pair.plain, &rights[i], &lefts[i]));
        PetscCall(FillVector(lefts[i], 7));
        PetscCall(FillVector(rights[i], 8));
    }
    PetscCall(SameProducts(pair.plain, pair.tarsia, "before"));
#define ForBoth(call)                                                                              \
    for (int i_ = 0; i_ < 2; i_++) {                                                               \
        Mat A = i_ ? pair.tarsia : pair.plain, B = i_ ? other.tarsia : other.plain;                \
        Vec left = lefts[i_], right = rights[i_];                                                  \
        (void)B, (void)left, (void)right;                                                          \
        PetscCall(call);                                                                           \
    }
#define TestChange(call)                                                                           \
    do {                                                                                           \
        Test("products after " #call);                                                             \
        ForBoth(call);                                                                             \
        PetscCall(SameProducts(pair.plain, pair.tarsia, #call));                                   \
        PetscCall(SameMatrices(pair.plain, pair.tarsia, #call));                                   \
    } while (0)
    ForBoth(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    TestChange(MatScale(A, 1.5));
    TestChange(NewValues(A, 100));
    TestChange(NewValues(A, 200));
    TestChange(MatDiagonalScale(A, left, right));
    TestChange(MatCopy(B, A, DIFFERENT_NONZERO_PATTERN));
    TestChange(AddNewEntries(A));
    TestChange(MatAXPY(A, 0.5, B, DIFFERENT_NONZERO_PATTERN));
    TestChange(MatAXPY(A, 0.25, B, SUBSET_NONZERO_PATTERN));
    /* MatAXPY has made a new matrix. */
    ForBoth(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    TestChange(MatShift(A, 2));
    TestChange(MatZeroRows(A, 2, rows, 3, NULL, NULL));
    TestChange(StoreValues(A));
    TestChange(MatZeroEntries(A));
    TestChange(MatRetrieveValues(A));
    for (int i = 0; i < 2; i++) {
        PetscCall(VecDestroy(&lefts[i]));
        PetscCall(VecDestroy(&rights[i]));
    }
    PetscCall(DestroyPair(&pair));
    PetscCall(DestroyPair(&other));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Analysis happens when a product first needs it, updates only when values have changed. */
static PetscErrorCode TestPlansAreKept(PetscInt n) {
    int analyses[5], updates[5];
    Mat A;
    Vec x, y;

    PetscFunctionBeginUser;
    Test("how often matrices are analyzed");
    PetscCall(RandomMatrix(MATSEQAIJTARSIA, n, n, 5, &A));
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(FillVector(x, 1));
    for (int i = 0; i < 5; i++) {
        PetscCall(EventCount("MatTarsiaAnalyze", &analyses[i]));
        PetscCall(EventCount("MatTarsiaUpdate", &updates[i]));
        if (i)
            PetscCall(MatScale(A, 2));
        if (i == 3)
            PetscCall(AddNewEntries(A));
        PetscCall(MatMult(A, x, y));
        PetscCall(MatMult(A, x, y));
    }
    Check(analyses[1] == analyses[0] + 1, "a first product needs one plan");
    Check(analyses[2] == analyses[1] + 1, "the first new values make a plan for such");
    Check(updates[2] == updates[0] && updates[3] == updates[2] + 1, "further values are updates");
    Check(analyses[3] == analyses[2] && analyses[4] == analyses[3] + 1, "a new pattern is a plan");
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestDuplicateAndConvert(PetscInt n) {
    Pair pair;
    Mat D, E;

    PetscFunctionBeginUser;
    PetscCall(MakePair(n, n / 2, 9, &pair));
    Test("MatDuplicate with values");
    PetscCall(SameProducts(pair.plain, pair.tarsia, "before"));
    PetscCall(MatDuplicate(pair.tarsia, MAT_COPY_VALUES, &D));
    PetscCall(CheckType(D, tested));
    PetscCall(MatScale(pair.tarsia, 3));
    PetscCall(SameProducts(pair.plain, D, "duplicate"));
    PetscCall(MatScale(pair.plain, 3));
    PetscCall(SameProducts(pair.plain, pair.tarsia, "original"));

    Test("MatDuplicate of the pattern");
    PetscCall(MatDuplicate(pair.tarsia, MAT_DO_NOT_COPY_VALUES, &E));
    PetscCall(MatCopy(D, E, SAME_NONZERO_PATTERN));
    PetscCall(SameProducts(D, E, "pattern"));
    PetscCall(MatDestroy(&E));
    PetscCall(MatDestroy(&D));

    Test("MatConvert to aij, a new matrix");
    PetscCall(MatConvert(pair.tarsia, MATAIJ, MAT_INITIAL_MATRIX, &D));
    PetscCall(CheckType(D, MATAIJ));
    PetscCall(CheckType(pair.tarsia, tested));
    PetscCall(SameProducts(pair.plain, D, "converted"));
    Test("MatConvert from aij into a matrix that is there");
    PetscCall(MatConvert(D, tested, MAT_INITIAL_MATRIX, &E));
    PetscCall(CheckType(E, tested));
    PetscCall(MatScale(D, 0.5));
    PetscCall(MatConvert(D, tested, MAT_REUSE_MATRIX, &E));
    PetscCall(SameProducts(D, E, "converted again"));
    Test("MatConvert from aij in place");
    PetscCall(MatConvert(D, tested, MAT_INPLACE_MATRIX, &D));
    PetscCall(CheckType(D, tested));
    PetscCall(SameProducts(E, D, "in place"));
    Test("MatConvert to aij in place, and back");
    PetscCall(MatConvert(D, MATAIJ, MAT_INPLACE_MATRIX, &D));
    PetscCall(CheckType(D, MATAIJ));
    PetscCall(SameProducts(E, D, "back"));
    PetscCall(MatConvert(D, tested, MAT_INPLACE_MATRIX, &D));
    PetscCall(SameProducts(E, D, "and again"));
    PetscCall(MatDestroy(&E));
    Test("MatConvert to a dense matrix");
    PetscCall(MatConvert(D, MATDENSE, MAT_INITIAL_MATRIX, &E));
    PetscCall(SameProducts(E, D, "dense"));
    PetscCall(MatDestroy(&E));
    Test("MatTranspose and submatrices");
    PetscCall(MatTranspose(D, MAT_INITIAL_MATRIX, &E));
    PetscCall(CheckTypeByPETSc(E));
    PetscCall(MatDestroy(&D));
    PetscCall(MatConvert(pair.plain, MATAIJ, MAT_INITIAL_MATRIX, &D));
    PetscCall(MatScale(D, 0.5));
    PetscCall(MatTranspose(D, MAT_INPLACE_MATRIX, &D));
    PetscCall(SameMatrices(D, E, "transpose"));
    PetscCall(MatConvert(E, tested, MAT_INPLACE_MATRIX, &E));
    PetscCall(SameProducts(D, E, "transpose"));
    PetscCall(MatTranspose(E, MAT_INPLACE_MATRIX, &E));
    PetscCall(MatTranspose(D, MAT_INPLACE_MATRIX, &D));
    PetscCall(SameProducts(D, E, "transposed in place"));
    PetscCall(MatDestroy(&D));
    PetscCall(MatDestroy(&E));
    PetscCall(DestroyPair(&pair));
    PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { AB, ATB, PTAP } Kind;

static PetscErrorCode Product(Kind kind, Mat A, Mat B, MatReuse reuse, Mat *C) {
    PetscFunctionBeginUser;
    if (kind == AB)
        PetscCall(MatMatMult(A, B, reuse, PETSC_DEFAULT, C));
    else if (kind == ATB)
        PetscCall(MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, C));
    else
        PetscCall(MatPtAP(A, B, reuse, PETSC_DEFAULT, C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestSparse(PetscInt n, PetscBool backend) {
    static const char *const names[] = {"A B", "A^T B", "P^T A P"};

    PetscFunctionBeginUser;
    for (Kind kind = AB; kind <= PTAP; kind++) {
        Pair A, B, A2;
        Mat C[2];

        PetscCall(MakePair(n, kind == PTAP ? n : n / 2, 12, &A));
        PetscCall(MakePair(kind == AB ? n / 2 : n, n / 3, 13, &B));
        Test("a product of sparse matrices");
        PetscCall(Product(kind, A.plain, B.plain, MAT_INITIAL_MATRIX, &C[0]));
        PetscCall(Product(kind, A.tarsia, B.tarsia, MAT_INITIAL_MATRIX, &C[1]));
        PetscCall(CheckType(C[1], tested));
        PetscCall(SameMatrices(C[0], C[1], names[kind]));
        PetscCall(SameProducts(C[0], C[1], names[kind]));
        for (int again = 0; again < 3; again++) {
            Test("MAT_REUSE_MATRIX with new values");
            if (again < 2) {
                PetscCall(NewValues(A.plain, 50 + again));
                PetscCall(NewValues(A.tarsia, 50 + again));
            }
            if (again) {
                PetscCall(MatScale(B.plain, 0.75));
                PetscCall(MatScale(B.tarsia, 0.75));
            }
            PetscCall(Product(kind, A.plain, B.plain, MAT_REUSE_MATRIX, &C[0]));
            PetscCall(Product(kind, A.tarsia, B.tarsia, MAT_REUSE_MATRIX, &C[1]));
            PetscCall(SameMatrices(C[0], C[1], names[kind]));
            PetscCall(SameProducts(C[0], C[1], names[kind]));
        }
        PetscCall(MakePair(n, kind == PTAP ? n : n / 2, 12, &A2));
        PetscCall(DestroyPair(&A));
        /* PETSc's algorithm "backend" would go on with the first matrix; on devices it is the only
         * one. */
        if (backend) {
            PetscCall(MatDestroy(&C[0]));
            PetscCall(Product(kind, A2.plain, B.plain, MAT_INITIAL_MATRIX, &C[0]));
        } else {
            Test("MAT_REUSE_MATRIX with another matrix of the pattern");
            PetscCall(Product(kind, A2.plain, B.plain, MAT_REUSE_MATRIX, &C[0]));
            PetscCall(Product(kind, A2.tarsia, B.tarsia, MAT_REUSE_MATRIX, &C[1]));
            PetscCall(SameMatrices(C[0], C[1], names[kind]));
        }
        PetscCall(MatDestroy(&C[1]));
        /* On several ranks PETSc multiplies no matrix on the host by one on a device. */
        if (!on_device || !backend) {
            Test("a factor of type aij");
            PetscCall(Product(kind, A2.plain, B.tarsia, MAT_INITIAL_MATRIX, &C[1]));
            PetscCall(SameMatrices(C[0], C[1], names[kind]));
            PetscCall(MatDestroy(&C[1]));
            PetscCall(Product(kind, A2.tarsia, B.plain, MAT_INITIAL_MATRIX, &C[1]));
            PetscCall(SameMatrices(C[0], C[1], names[kind]));
            PetscCall(MatDestroy(&C[1]));
        }
        PetscCall(MatDestroy(&C[0]));
        if (kind != PTAP) {
            Test("a factor without entries");
            PetscCall(MatDestroy(&B.tarsia));
            PetscCall(MatCreate(PETSC_COMM_WORLD, &B.tarsia));
            PetscCall(
                MatSetSizes(B.tarsia, PETSC_DECIDE, PETSC_DECIDE, kind == AB ? n / 2 : n, n / 3));
            PetscCall(MatSetType(B.tarsia, tested));
            PetscCall(MatSetUp(B.tarsia));
            PetscCall(MatAssemblyBegin(B.tarsia, MAT_FINAL_ASSEMBLY));
            PetscCall(MatAssemblyEnd(B.tarsia, MAT_FINAL_ASSEMBLY));
            PetscCall(Product(kind, A2.tarsia, B.tarsia, MAT_INITIAL_MATRIX, &C[1]));
            PetscCall(Product(kind, A2.tarsia, B.tarsia, MAT_REUSE_MATRIX, &C[1]));
            PetscReal norm;
            PetscCall(MatNorm(C[1], NORM_FROBENIUS, &norm));
            Check(norm == 0, "a product with a matrix without entries");
            PetscCall(MatDestroy(&C[1]));
        }
        PetscCall(DestroyPair(&A2));
        PetscCall(DestroyPair(&B));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestOtherProducts(PetscInt n, PetscBool on_one_device) {
    Pair A, R;
    Mat C[2];

    PetscFunctionBeginUser;
    Test("a product with itself");
    PetscCall(MakePair(n, n, 14, &A));
    PetscCall(MatMatMult(A.plain, A.plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
    PetscCall(MatMatMult(A.tarsia, A.tarsia, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
    PetscCall(MatScale(A.plain, 2));
    PetscCall(MatScale(A.tarsia, 2));
    PetscCall(MatMatMult(A.plain, A.plain, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[0]));
    PetscCall(MatMatMult(A.tarsia, A.tarsia, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[1]));
    PetscCall(SameMatrices(C[0], C[1], "A A"));
    PetscCall(MatDestroy(&C[0]));
    PetscCall(MatDestroy(&C[1]));
    /* On a device on one rank the result of PETSc 3.26's own was off by its whole norm, with its
     * own type, too. */
    if (on_one_device) {
        PetscCall(DestroyPair(&A));
        PetscFunctionReturn(PETSC_SUCCESS);
    }
    Test("a product that is left to PETSc");
    PetscCall(MakePair(n / 2, n, 15, &R));
    PetscCall(MatRARt(A.plain, R.plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
    PetscCall(MatRARt(A.tarsia, R.tarsia, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
    PetscCall(SameMatrices(C[0], C[1], "R A R^T"));
    PetscCall(MatDestroy(&C[0]));
    PetscCall(MatDestroy(&C[1]));
    PetscCall(DestroyPair(&A));
    PetscCall(DestroyPair(&R));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The symbolic phase of a product. */
static PetscErrorCode Symbolic(MatProductType type, Mat A, Mat B, PetscBool without_values,
                               Mat *C) {
    PetscFunctionBeginUser;
    PetscCall(MatProductCreate(A, B, NULL, C));
    PetscCall(MatProductSetType(*C, type));
    if (without_values)
        PetscCall(MatSetOption(*C, MAT_STRUCTURE_ONLY, PETSC_TRUE));
    PetscCall(MatProductSetFromOptions(*C));
    PetscCall(MatProductSymbolic(*C));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products by their phases, on one rank: what PETSc allows between them, and results without
 * values.
 */
static PetscErrorCode TestPhases(PetscInt n) {
    static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_PtAP};
    Pair A, B, other;
    Mat C[2];

    PetscFunctionBeginUser;
    PetscCall(MakePair(n, n, 17, &A));
    PetscCall(MakePair(n, n, 17, &other));
    PetscCall(MakePair(n, n, 18, &B));
    PetscCall(MatScale(other.plain, 3));
    PetscCall(MatScale(other.tarsia, 3));
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(types); i++) {
        MatInfo info[2];

        Test("another matrix between the symbolic phase and the numeric one");
        for (int j = 0; j < 2; j++) {
            PetscCall(Symbolic(types[i], j ? A.tarsia : A.plain, j ? B.tarsia : B.plain,
                               PETSC_FALSE, &C[j]));
            PetscCall(MatProductReplaceMats(j ? other.tarsia : other.plain, NULL, NULL, C[j]));
            PetscCall(MatProductNumeric(C[j]));
        }
        PetscCall(SameMatrices(C[0], C[1], "another matrix"));
        for (int j = 0; j < 2; j++)
            PetscCall(MatDestroy(&C[j]));
        Test("a result without values");
        for (int j = 0; j < 2; j++) {
            PetscCall(Symbolic(types[i], j ? A.tarsia : A.plain, j ? B.tarsia : B.plain, PETSC_TRUE,
                               &C[j]));
            PetscCall(MatGetInfo(C[j], MAT_LOCAL, &info[j]));
            PetscCall(MatDestroy(&C[j]));
        }
        Check(info[0].nz_used == info[1].nz_used, "entries of a result without values");
    }
    PetscCall(DestroyPair(&A));
    PetscCall(DestroyPair(&B));
    PetscCall(DestroyPair(&other));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestTriples(PetscInt n) {
    Pair A, B, other;
    Mat C[2];

    PetscFunctionBeginUser;
    PetscCall(MakePair(n, n, 17, &A));
    PetscCall(MakePair(n, n, 17, &other));
    PetscCall(MakePair(n, n, 18, &B));
    /* On a device PETSc 3.26 crashes where types are mixed (here it calls itself without end), with
     * its own type, too. */
    for (int kinds = on_device ? 7 : 1; kinds < 8; kinds++) {
        Test("a product of three matrices, some of them of type aij");
        PetscCall(
            MatMatMatMult(A.plain, B.plain, other.plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
        PetscCall(MatMatMatMult(kinds & 1 ? A.tarsia : A.plain, kinds & 2 ? B.tarsia : B.plain,
                                kinds & 4 ? other.tarsia : other.plain, MAT_INITIAL_MATRIX,
                                PETSC_DEFAULT, &C[1]));
        PetscCall(SameMatrices(C[0], C[1], "A B C"));
        PetscCall(MatScale(B.plain, 0.5));
        PetscCall(MatScale(B.tarsia, 0.5));
        PetscCall(
            MatMatMatMult(A.plain, B.plain, other.plain, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[0]));
        PetscCall(MatMatMatMult(kinds & 1 ? A.tarsia : A.plain, kinds & 2 ? B.tarsia : B.plain,
                                kinds & 4 ? other.tarsia : other.plain, MAT_REUSE_MATRIX,
                                PETSC_DEFAULT, &C[1]));
        PetscCall(SameMatrices(C[0], C[1], "A B C again"));
        for (int j = 0; j < 2; j++)
            PetscCall(MatDestroy(&C[j]));
    }
    PetscCall(DestroyPair(&A));
    PetscCall(DestroyPair(&B));
    PetscCall(DestroyPair(&other));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Assembly by coordinates: a pattern once, values often, also for rows of other ranks. */
static PetscErrorCode TestCoordinates(PetscInt n) {
    Mat A[2];
    PetscInt rows[64], columns[64];
    PetscScalar values[64];
    PetscMPIInt rank;

    PetscFunctionBeginUser;
    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    for (int pattern = 0; pattern < 2; pattern++) {
        for (int i = 0; i < 2; i++) {
            if (!pattern) {
                PetscCall(MatCreate(PETSC_COMM_WORLD, &A[i]));
                PetscCall(MatSetSizes(A[i], PETSC_DECIDE, PETSC_DECIDE, n, n));
                PetscCall(MatSetType(A[i], i ? tested : MATAIJ));
            }
            for (PetscInt k = 0; k < 64; k++) {
                rows[k] = (k * 5 + 3 * rank + pattern) % n;
                columns[k] = (k * 11 + k / 3) % n;
            }
            PetscCall(MatSetPreallocationCOO(A[i], 64, rows, columns));
        }
        for (int again = 0; again < 3; again++) {
            Test("MatSetValuesCOO");
            for (PetscInt k = 0; k < 64; k++)
                values[k] = Value(rank + again, k);
            for (int i = 0; i < 2; i++)
                PetscCall(MatSetValuesCOO(A[i], values, again == 1 ? ADD_VALUES : INSERT_VALUES));
            PetscCall(SameProducts(A[0], A[1], "coordinates"));
        }
        PetscCall(CheckType(A[1], tested));
    }
    PetscCall(MatDestroy(&A[0]));
    PetscCall(MatDestroy(&A[1]));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestOptions(PetscInt n) {
    static const char *const algorithms[] = {"csr", "sell", "stream", "dasp", "mask_block"};
    Pair pair;

    PetscFunctionBeginUser;
    PetscCall(RandomMatrix(MATAIJ, n, n, 16, &pair.plain));
    for (size_t i = 0; i < PETSC_STATIC_ARRAY_LENGTH(algorithms); i++) {
        Test("-mat_tarsia_alg");
        PetscCall(PetscOptionsSetValue(NULL, "-mat_tarsia_alg", algorithms[i]));
        PetscCall(RandomMatrix(tested, n, n, 16, &pair.tarsia));
        PetscCall(SameProducts(pair.plain, pair.tarsia, algorithms[i]));
        PetscCall(MatScale(pair.plain, 2));
        PetscCall(MatScale(pair.tarsia, 2));
        PetscCall(SameProducts(pair.plain, pair.tarsia, algorithms[i]));
        PetscCall(MatScale(pair.plain, 0.5));
        PetscCall(MatScale(pair.tarsia, 0.5));
        PetscCall(SameProducts(pair.plain, pair.tarsia, algorithms[i]));
        PetscCall(MatDestroy(&pair.tarsia));
    }
    PetscCall(PetscOptionsClearValue(NULL, "-mat_tarsia_alg"));
    Test("-mat_tarsia_effort");
    PetscCall(PetscOptionsSetValue(NULL, "-mat_tarsia_effort", "quick"));
    PetscCall(RandomMatrix(tested, n, n, 16, &pair.tarsia));
    PetscCall(SameProducts(pair.plain, pair.tarsia, "quick"));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_tarsia_effort"));
    Test("-mat_tarsia_spgemm 0");
    {
        Mat C[2];

        PetscCall(PetscOptionsSetValue(NULL, "-mat_tarsia_spgemm", "0"));
        for (int i = 0; i < 2; i++) {
            Mat A = i ? pair.tarsia : pair.plain;

            PetscCall(MatPtAP(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[i]));
            PetscCall(MatPtAP(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C[i]));
        }
        PetscCall(CheckTypeByPETSc(C[1]));
        PetscCall(SameMatrices(C[0], C[1], "P^T A P by PETSc"));
        PetscCall(SameProducts(C[0], C[1], "P^T A P by PETSc"));
        PetscCall(MatDestroy(&C[0]));
        PetscCall(MatDestroy(&C[1]));
        PetscCall(PetscOptionsClearValue(NULL, "-mat_tarsia_spgemm"));
    }
    PetscCall(DestroyPair(&pair));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static char error_text[1024];

static PetscErrorCode KeepText(MPI_Comm comm, int line, const char *function, const char *file,
                               PetscErrorCode code, PetscErrorType type, const char *text,
                               void *context) {
    (void)comm, (void)line, (void)function, (void)file, (void)context;
    if (type == PETSC_ERROR_INITIAL && text)
        (void)PetscStrncpy(error_text, text, sizeof error_text);
    return code;
}

/* Vectors that share memory are refused by Tarsia; its text reaches the user. */
static PetscErrorCode TestErrors(PetscInt n) {
    Mat A;
    Vec x, y;
    PetscScalar *array;
#if defined(PETSC_HAVE_CUDA)
    Vec both;
    PetscScalar *memory;
    PetscMemType type;
#endif
    PetscErrorCode code;
    char *found;

    PetscFunctionBeginUser;
    Test("an error of Tarsia");
    PetscCall(RandomMatrix(MATSEQAIJTARSIA, n, n, 17, &A));
    PetscCall(PetscCalloc1(n + 1, &array));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, array, &x));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, array + 1, &y));
#if defined(PETSC_HAVE_CUDA)
    if (on_device) {
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&y));
        PetscCall(VecCreateSeqCUDA(PETSC_COMM_SELF, n + 1, &both));
        PetscCall(VecSet(both, 1));
        PetscCall(VecGetArrayAndMemType(both, &memory, &type));
        Check(PetscMemTypeDevice(type), "a vector of a device has its values on the host");
        PetscCall(VecCreateSeqCUDAWithArrays(PETSC_COMM_SELF, 1, n, NULL, memory, &x));
        PetscCall(VecCreateSeqCUDAWithArrays(PETSC_COMM_SELF, 1, n, NULL, memory + 1, &y));
    }
#endif
    PetscCall(PetscPushErrorHandler(KeepText, NULL));
    code = MatMult(A, x, y);
    PetscCall(PetscPopErrorHandler());
    Check(code == PETSC_ERR_LIB, "the product of overlapping vectors was no error");
    PetscCall(PetscStrstr(error_text, "TARSIA_STATUS_INVALID_VALUE", &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the text is: %s", error_text);
    PetscCall(PetscStrstr(error_text, "it shares memory with x", &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the text is: %s", error_text);
    /* Vectors stay locked after an error. */
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    (void)VecDestroy(&x);
    (void)VecDestroy(&y);
    PetscCall(PetscPopErrorHandler());
    PetscCall(PetscFree(array));
    PetscCall(MatDestroy(&A));
    PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv) {
    PetscMPIInt ranks;
    PetscInt n = 200;
    char names[256] = "";

    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, "Compares the operations of aijtarsia and aij."));
    PetscCall(PetscLogDefaultBegin());
    PetscCall(MatTarsiaRegister());
    PetscCall(MatTarsiaRegister());
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &n, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-only", names, sizeof names, NULL));
    PetscCall(PetscOptionsGetString(NULL, NULL, "-type", tested, sizeof tested, NULL));
#if defined(PETSC_HAVE_CUDA)
    PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_tarsia_host", &on_device, NULL));
    on_device = (PetscBool)!on_device;
#endif

/* Runs a group of tests unless -only names others. */
#define Group(name, call)                                                                          \
    do {                                                                                           \
        char *named_ = names;                                                                      \
        if (names[0])                                                                              \
            PetscCall(PetscStrstr(names, name, &named_));                                          \
        if (named_)                                                                                \
            PetscCall(call);                                                                       \
    } while (0)
    Group("types", TestTypes(ranks));
    Group("shapes", TestShapes(n));
    Group("values", TestNewValues(n));
    Group("conversions", TestDuplicateAndConvert(n));
    Group("dense", TestDense(n, PETSC_FALSE));
    Group("left", TestDenseLeft(n, PETSC_FALSE));
    Group("chains", TestDenseChains(n));
    if (on_device) {
        Group("dense_cuda", TestDense(n, PETSC_TRUE));
        Group("left_cuda", TestDenseLeft(n, PETSC_TRUE));
    }
    Group("sparse", TestSparse(n, (PetscBool)(on_device && ranks > 1)));
    if (ranks > 1 && !on_device) {
        static const char *const options[] = {"-matmatmult_via", "-mattransposematmult_via",
                                              "-matptap_via"};

        for (int i = 0; i < 3; i++)
            PetscCall(PetscOptionsSetValue(NULL, options[i], "backend"));
        Group("backend", TestSparse(n, PETSC_TRUE));
        for (int i = 0; i < 3; i++)
            PetscCall(PetscOptionsClearValue(NULL, options[i]));
    }
    Group("others", TestOtherProducts(n, (PetscBool)(on_device && ranks == 1)));
    Group("coordinates", TestCoordinates(n));
    Group("options", TestOptions(n));
    if (ranks == 1) {
        Group("phases", TestPhases(n));
        Group("triples", TestTriples(n));
        Group("plans", TestPlansAreKept(n));
        Group("errors", TestErrors(n));
    }
    PetscCall(Report());
    PetscCall(PetscFinalize());
    return 0;
}
