// SPDX-License-Identifier: MIT OR Apache-2.0
/* Descriptors, which carry all that is known of an operand: a function that is given one asks it
 * what it describes, and a program that changes its arrays tells it. This program has a printer for
 * any sparse matrix, and moves descriptors between arrays. Descriptors are read and written on the
 * host alone; none of these calls touches an array, so that the arrays here are never filled. */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* Ends the program where a descriptor does not say what it was told. */
static void expect(int condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "wrong: %s\n", what);
        exit(1);
    }
}
#define EXPECT(condition) expect((condition), #condition)

static int bits(tarsiaIndexType_t type) { return type == TARSIA_INDEX_64I ? 64 : 32; }

/* Prints any sparse matrix, and returns the address of its values. Every answer of a ...Get
 * function may be NULL, where it is not wanted. The Const forms take every descriptor, the others
 * only one that was made from arrays that may be written. */
static const void *describe(tarsiaConstSpMatDescr_t A) {
    int64_t rows, cols, nnz, blockRows, blockCols;
    const void *offsets = NULL, *columns = NULL, *values = NULL;
    tarsiaIndexType_t offsetType, indexType;
    tarsiaIndexBase_t base;
    tarsiaFormat_t format;
    tarsiaOrder_t order;

    CHECK(tarsiaSpMatGetSize(A, &rows, &cols, &nnz));
    CHECK(tarsiaSpMatGetFormat(A, &format));
    CHECK(tarsiaSpMatGetIndexBase(A, &base));
    printf("%" PRId64 " x %" PRId64 ", %" PRId64 " entries, base %d: ", rows, cols, nnz,
           base == TARSIA_INDEX_BASE_ONE);
    switch (format) {
    case TARSIA_FORMAT_CSR:
        CHECK(tarsiaConstCsrGet(A, NULL, NULL, NULL, &offsets, &columns, &values, &offsetType,
                                &indexType, NULL, NULL));
        printf("CSR, offsets of %d bits, columns of %d\n", bits(offsetType), bits(indexType));
        break;
    case TARSIA_FORMAT_CSC:
        CHECK(tarsiaConstCscGet(A, NULL, NULL, NULL, &offsets, NULL, &values, &offsetType,
                                &indexType, NULL, NULL));
        printf("CSC, offsets of %d bits, rows of %d\n", bits(offsetType), bits(indexType));
        break;
    case TARSIA_FORMAT_COO:
        CHECK(tarsiaConstCooGet(A, NULL, NULL, NULL, NULL, &columns, &values, &indexType, NULL,
                                NULL));
        printf("COO, indices of %d bits\n", bits(indexType));
        break;
    case TARSIA_FORMAT_BSR:
        CHECK(tarsiaConstBsrGet(A, NULL, NULL, NULL, &blockRows, &blockCols, &offsets, &columns,
                                &values, NULL, NULL, NULL, NULL, &order));
        printf("BSR, blocks of %" PRId64 " x %" PRId64 " by %s\n", blockRows, blockCols,
               order == TARSIA_ORDER_COL ? "columns" : "rows");
        break;
    default:
        printf("tiles (c_examples/tiles.c)\n");
    }
    return values;
}

/* Two sets of arrays for each matrix below, as for values of this time step and the next. */
static int32_t offsets[2][5], indices[2][8], rowsOf[2][8];
static double values[2][32], vectors[2][4], dense[2][12];

static void sparse(void) {
    tarsiaSpMatDescr_t csr, csc, coo, bsr;
    void *first, *second, *third, *at;
    int64_t blocks;

    CHECK(tarsiaCreateCsr(&csr, 4, 4, 8, offsets[0], indices[0], values[0], TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateCsc(&csc, 4, 4, 8, offsets[0], indices[0], values[0], TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ONE, TARSIA_R_64F));
    CHECK(tarsiaCreateCoo(&coo, 4, 4, 8, rowsOf[0], indices[0], values[0], TARSIA_INDEX_32I,
                          TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateBsr(&bsr, 4, 4, 8, 2, 2, offsets[0], indices[0], values[0], TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F,
                          TARSIA_ORDER_ROW));
    tarsiaSpMatDescr_t all[4] = {csr, csc, coo, bsr};
    for (int i = 0; i < 4; i++)
        EXPECT(describe(all[i]) == values[0]);

    /* Other arrays of the same sizes and types. A plan has copied what the descriptor said when the
     * plan was created: other values reach it by tarsiaPlan_updateValues, another pattern never. */
    CHECK(tarsiaCsrSetPointers(csr, offsets[1], indices[1], values[1]));
    CHECK(tarsiaCsrGet(csr, NULL, NULL, NULL, &first, &second, &third, NULL, NULL, NULL, NULL));
    EXPECT(first == offsets[1] && second == indices[1] && third == values[1]);
    CHECK(tarsiaCscSetPointers(csc, offsets[1], indices[1], values[1]));
    CHECK(tarsiaCscGet(csc, NULL, NULL, NULL, &first, &second, &third, NULL, NULL, NULL, NULL));
    EXPECT(first == offsets[1] && second == indices[1] && third == values[1]);
    CHECK(tarsiaCooSetPointers(coo, rowsOf[1], indices[1], values[1]));
    CHECK(tarsiaCooGet(coo, NULL, NULL, NULL, &first, &second, &third, NULL, NULL, NULL));
    EXPECT(first == rowsOf[1] && second == indices[1] && third == values[1]);
    CHECK(tarsiaBsrSetPointers(bsr, offsets[1], indices[1], values[1]));
    CHECK(tarsiaBsrGet(bsr, NULL, NULL, &blocks, NULL, NULL, &first, &second, &third, NULL, NULL,
                       NULL, NULL, NULL));
    EXPECT(blocks == 8 && first == offsets[1] && second == indices[1] && third == values[1]);

    /* The values alone, whatever the format. */
    for (int i = 0; i < 4; i++) {
        CHECK(tarsiaSpMatSetValues(all[i], values[0]));
        CHECK(tarsiaSpMatGetValues(all[i], &at));
        EXPECT(at == values[0]);
        CHECK(tarsiaDestroySpMat(all[i]));
    }
}

/* The same from arrays that are only read. */
static void sparse_const(void) {
    const int32_t *const o = offsets[0], *const i = indices[0], *const r = rowsOf[0];
    const double *const v = values[0];
    tarsiaConstSpMatDescr_t all[4];
    const void *at;

    CHECK(tarsiaCreateConstCsr(&all[0], 4, 4, 8, o, i, v, TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                               TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateConstCsc(&all[1], 4, 4, 8, o, i, v, TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                               TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateConstCoo(&all[2], 4, 4, 8, r, i, v, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO,
                               TARSIA_R_64F));
    CHECK(tarsiaCreateConstBsr(&all[3], 4, 4, 8, 2, 2, o, i, v, TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                               TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F, TARSIA_ORDER_COL));
    for (int k = 0; k < 4; k++) {
        EXPECT(describe(all[k]) == v);
        CHECK(tarsiaConstSpMatGetValues(all[k], &at));
        EXPECT(at == v);
        CHECK(tarsiaDestroySpMat(all[k]));
    }
}

/* Vectors and dense matrices. Unlike new arrays of A, new arrays of x, y, B and C count in the next
 * product: a plan knows nothing of these. */
static void dense_operands(void) {
    tarsiaDnVecDescr_t x;
    tarsiaConstDnVecDescr_t constX;
    tarsiaDnMatDescr_t B;
    tarsiaConstDnMatDescr_t constB;
    tarsiaDataType_t type;
    tarsiaOrder_t order;
    int64_t size, rows, cols, ld;
    void *at;
    const void *constAt;

    CHECK(tarsiaCreateDnVec(&x, 4, vectors[0], TARSIA_R_64F));
    CHECK(tarsiaDnVecSetValues(x, vectors[1]));
    CHECK(tarsiaDnVecGetValues(x, &at));
    EXPECT(at == vectors[1]);
    CHECK(tarsiaDnVecGet(x, &size, &at, &type));
    EXPECT(size == 4 && at == vectors[1] && type == TARSIA_R_64F);
    CHECK(tarsiaCreateConstDnVec(&constX, 4, vectors[0], TARSIA_R_64F));
    CHECK(tarsiaConstDnVecGetValues(constX, &constAt));
    EXPECT(constAt == vectors[0]);
    CHECK(tarsiaConstDnVecGet(constX, &size, &constAt, NULL));
    EXPECT(size == 4 && constAt == vectors[0]);

    CHECK(tarsiaCreateDnMat(&B, 4, 2, 3, dense[0], TARSIA_R_64F, TARSIA_ORDER_ROW));
    CHECK(tarsiaDnMatSetValues(B, dense[1]));
    CHECK(tarsiaDnMatGetValues(B, &at));
    EXPECT(at == dense[1]);
    CHECK(tarsiaDnMatGet(B, &rows, &cols, &ld, &at, &type, &order));
    EXPECT(rows == 4 && cols == 2 && ld == 3 && at == dense[1] && order == TARSIA_ORDER_ROW);
    CHECK(tarsiaCreateConstDnMat(&constB, 4, 2, 4, dense[0], TARSIA_R_64F, TARSIA_ORDER_COL));
    CHECK(tarsiaConstDnMatGetValues(constB, &constAt));
    EXPECT(constAt == dense[0]);
    CHECK(tarsiaConstDnMatGet(constB, NULL, NULL, &ld, NULL, NULL, &order));
    EXPECT(ld == 4 && order == TARSIA_ORDER_COL);

    CHECK(tarsiaDestroyDnVec(x));
    CHECK(tarsiaDestroyDnVec(constX));
    CHECK(tarsiaDestroyDnMat(B));
    CHECK(tarsiaDestroyDnMat(constB));
}

int main(void) {
    sparse();
    sparse_const();
    dense_operands();
    printf("all descriptors say what they were told\n");
    return 0;
}
