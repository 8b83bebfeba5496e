/* A program, or with -DEXTENSION a library that programs load, that makes one call of each function
 * of cuSPARSE that the drop-in exports, and prints the results. All arguments of a call differ. */
#include "cusparse.h"

#include <stdio.h>

/* A 64-bit address and a 32-bit integer that use all their bits, so that a lost bit is noticed. */
#define P(number) ((void *)(uintptr_t)(0xfedc000000000000u + (number)))
#define N(number) (-1000000000 - (number))

static size_t bytes[3];

static void got(const char *function, int status) {
    printf("%s: %d, %zu %zu %zu\n", function, status, bytes[0], bytes[1], bytes[2]);
}

int run(void) {
    Object handle = P(1), object = P(2);
    int64_t products = 1;
    cusparseCreate(&handle);
    printf("handle %p\n", (void *)(uintptr_t)handle);

    got("SpMV_bufferSize",
        cusparseSpMV_bufferSize(handle, N(2), P(3), P(4), P(5), P(6), P(7), N(8), N(9), &bytes[0]));
    got("SpMV_preprocess",
        cusparseSpMV_preprocess(handle, N(2), P(3), P(4), P(5), P(6), P(7), N(8), N(9), P(10)));
    got("SpMV", cusparseSpMV(handle, N(2), P(3), P(4), P(5), P(6), P(7), N(8), N(9), P(10)));

#if SPMVOP
#if SPMVOP == 1270
    got("SpMVOp_createDescr",
        cusparseSpMVOp_createDescr(handle, &object, N(3), P(4), P(5), P(6), P(7), N(8)));
#elif SPMVOP == 1271
    got("SpMVOp_bufferSize",
        cusparseSpMVOp_bufferSize(handle, N(2), P(3), P(4), P(5), P(6), N(7), &bytes[1]));
    got("SpMVOp_createDescr",
        cusparseSpMVOp_createDescr(handle, &object, N(3), P(4), P(5), P(6), P(7), N(8), P(9)));
#else
    got("SpMVOp_bufferSize",
        cusparseSpMVOp_bufferSize(handle, N(2), P(3), P(4), P(5), P(6), N(7), N(8), &bytes[1]));
    got("SpMVOp_createDescr", cusparseSpMVOp_createDescr(handle, &object, N(3), P(4), P(5), P(6),
                                                         P(7), N(8), N(9), P(10)));
#endif
    got("SpMVOp_createPlan",
        cusparseSpMVOp_createPlan(handle, object, &object, P(4), (size_t)P(5)));
    got("SpMVOp_setGlobalUserData",
        cusparseSpMVOp_setGlobalUserData(handle, object, P(3), P(4), (size_t)P(5)));
    got("SpMVOp", cusparseSpMVOp(handle, object, P(3), P(4), P(5), P(6), P(7)));
    got("SpMVOp_destroyPlan", cusparseSpMVOp_destroyPlan(object));
    got("SpMVOp_destroyDescr", cusparseSpMVOp_destroyDescr(object));
#endif

    got("SpMM_bufferSize", cusparseSpMM_bufferSize(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8),
                                                   N(9), N(10), &bytes[2]));
    got("SpMM_preprocess", cusparseSpMM_preprocess(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8),
                                                   N(9), N(10), P(11)));
    got("SpMM", cusparseSpMM(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8), N(9), N(10), P(11)));

    got("SpGEMM_createDescr", cusparseSpGEMM_createDescr(&object));
    printf("description %p\n", (void *)(uintptr_t)object);
    got("SpGEMM_workEstimation",
        cusparseSpGEMM_workEstimation(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8), N(9), N(10),
                                      object, &bytes[0], P(13)));
    got("SpGEMM_getNumProducts", cusparseSpGEMM_getNumProducts(object, &products));
    printf("products %lld\n", (long long)products);
    got("SpGEMM_estimateMemory",
        cusparseSpGEMM_estimateMemory(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8), N(9), N(10),
                                      object, 0.15625f, &bytes[1], P(14), &bytes[2]));
    got("SpGEMM_compute", cusparseSpGEMM_compute(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8),
                                                 N(9), N(10), object, &bytes[0], P(13)));
    got("SpGEMM_copy",
        cusparseSpGEMM_copy(handle, N(2), N(3), P(4), P(5), P(6), P(7), P(8), N(9), N(10), object));
    got("SpGEMMreuse_workEstimation",
        cusparseSpGEMMreuse_workEstimation(handle, N(2), N(3), P(4), P(5), P(6), N(7), object,
                                           &bytes[0], P(10)));
    got("SpGEMMreuse_nnz",
        cusparseSpGEMMreuse_nnz(handle, N(2), N(3), P(4), P(5), P(6), N(7), object, &bytes[0],
                                P(10), &bytes[1], P(12), &bytes[2], P(14)));
    got("SpGEMMreuse_copy", cusparseSpGEMMreuse_copy(handle, N(2), N(3), P(4), P(5), P(6), N(7),
                                                     object, &bytes[0], P(10)));
    got("SpGEMMreuse_compute", cusparseSpGEMMreuse_compute(handle, N(2), N(3), P(4), P(5), P(6),
                                                           P(7), P(8), N(9), N(10), object));
    got("SpGEMM_destroyDescr", cusparseSpGEMM_destroyDescr(object));

    got("CsrSetPointers", cusparseCsrSetPointers(P(1), P(2), P(3), P(4)));
    got("CscSetPointers", cusparseCscSetPointers(P(1), P(2), P(3), P(4)));
    got("SpMatSetValues", cusparseSpMatSetValues(P(1), P(2)));
    got("DestroySpMat", cusparseDestroySpMat(P(1)));
    got("Destroy", cusparseDestroy(handle));
    fflush(stdout);
    return 0;
}

#ifndef EXTENSION
int main(void) { return run(); }
#endif
