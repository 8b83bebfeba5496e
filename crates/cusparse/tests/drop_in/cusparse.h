/* Declarations of the functions of cuSPARSE that the stand-in has and the client calls, after the
 * public documentation. Handles, descriptors and plans are opaque pointers.
 *
 * SPMVOP selects the version of SpMVOp: 0 (none, before 12.7), 1270 (12.7.0), 1271 (12.7.10) or
 * 1290 (12.9).
 */
#ifndef STAND_IN_CUSPARSE_H
#define STAND_IN_CUSPARSE_H

#include <stddef.h>
#include <stdint.h>

typedef const void *Object;

#ifndef SPMVOP
#define SPMVOP 1290
#endif

int cusparseCreate(Object *handle);
int cusparseGetProperty(int which, int *value);
int cusparseDestroy(Object handle);
int cusparseSetStream(Object handle, void *stream);
int cusparseSetPointerMode(Object handle, int mode);
int cusparseCreateCsr(Object *matrix, int64_t rows, int64_t cols, int64_t nnz, void *offsets,
                      void *indices, void *values, int offset_type, int index_type, int base,
                      int value_type);
int cusparseCreateCsc(Object *matrix, int64_t rows, int64_t cols, int64_t nnz, void *offsets,
                      void *indices, void *values, int offset_type, int index_type, int base,
                      int value_type);
int cusparseCreateCoo(Object *matrix, int64_t rows, int64_t cols, int64_t nnz, void *row_indices,
                      void *indices, void *values, int index_type, int base, int value_type);
int cusparseCreateDnVec(Object *vector, int64_t size, void *values, int value_type);
int cusparseCreateDnMat(Object *matrix, int64_t rows, int64_t cols, int64_t ld, void *values,
                        int value_type, int order);
int cusparseDnMatSetStridedBatch(Object matrix, int batches, int64_t distance);
int cusparseDestroyDnVec(Object vector);
int cusparseDestroyDnMat(Object matrix);
int cusparseDestroySpMat(Object matrix);
int cusparseCsrSetPointers(Object matrix, void *offsets, void *columns, void *values);
int cusparseCscSetPointers(Object matrix, void *offsets, void *rows, void *values);
int cusparseSpMatSetValues(Object matrix, void *values);
int cusparseSpMatGetSize(Object matrix, int64_t *rows, int64_t *cols, int64_t *nnz);

int cusparseSpMV(Object handle, int op, const void *alpha, Object a, Object x, const void *beta,
                 Object y, int type, int algorithm, void *buffer);
int cusparseSpMV_bufferSize(Object handle, int op, const void *alpha, Object a, Object x,
                            const void *beta, Object y, int type, int algorithm, size_t *bytes);
int cusparseSpMV_preprocess(Object handle, int op, const void *alpha, Object a, Object x,
                            const void *beta, Object y, int type, int algorithm, void *buffer);

#if SPMVOP
int cusparseSpMVOp(Object handle, Object plan, const void *alpha, const void *beta, Object x,
                   Object y, Object z);
#if SPMVOP == 1270
int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type);
#elif SPMVOP == 1271
int cusparseSpMVOp_bufferSize(Object handle, int op, Object a, Object x, Object y, Object z,
                              int type, size_t *bytes);
int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type, void *buffer);
#else
int cusparseSpMVOp_bufferSize(Object handle, int op, Object a, Object x, Object y, Object z,
                              int type, int algorithm, size_t *bytes);
int cusparseSpMVOp_createDescr(Object handle, Object *description, int op, Object a, Object x,
                               Object y, Object z, int type, int algorithm, void *buffer);
#endif
int cusparseSpMVOp_createPlan(Object handle, Object description, Object *plan, const void *code,
                              size_t bytes);
int cusparseSpMVOp_destroyDescr(Object description);
int cusparseSpMVOp_destroyPlan(Object plan);
int cusparseSpMVOp_setGlobalUserData(Object handle, Object plan, const char *name, void *data,
                                     size_t bytes);
#endif

int cusparseSpMM(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                 const void *beta, Object c, int type, int algorithm, void *buffer);
int cusparseSpMM_bufferSize(Object handle, int op_a, int op_b, const void *alpha, Object a,
                            Object b, const void *beta, Object c, int type, int algorithm,
                            size_t *bytes);
int cusparseSpMM_preprocess(Object handle, int op_a, int op_b, const void *alpha, Object a,
                            Object b, const void *beta, Object c, int type, int algorithm,
                            void *buffer);

int cusparseSpGEMM_createDescr(Object *description);
int cusparseSpGEMM_destroyDescr(Object description);
int cusparseSpGEMM_workEstimation(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                  Object b, const void *beta, Object c, int type, int algorithm,
                                  Object description, size_t *bytes, void *buffer);
int cusparseSpGEMM_getNumProducts(Object description, int64_t *products);
int cusparseSpGEMM_estimateMemory(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                  Object b, const void *beta, Object c, int type, int algorithm,
                                  Object description, float fraction, size_t *bytes3, void *buffer3,
                                  size_t *bytes2);
int cusparseSpGEMM_compute(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                           const void *beta, Object c, int type, int algorithm, Object description,
                           size_t *bytes, void *buffer);
int cusparseSpGEMM_copy(Object handle, int op_a, int op_b, const void *alpha, Object a, Object b,
                        const void *beta, Object c, int type, int algorithm, Object description);

int cusparseSpGEMMreuse_workEstimation(Object handle, int op_a, int op_b, Object a, Object b,
                                       Object c, int algorithm, Object description, size_t *bytes,
                                       void *buffer);
int cusparseSpGEMMreuse_nnz(Object handle, int op_a, int op_b, Object a, Object b, Object c,
                            int algorithm, Object description, size_t *bytes2, void *buffer2,
                            size_t *bytes3, void *buffer3, size_t *bytes4, void *buffer4);
int cusparseSpGEMMreuse_copy(Object handle, int op_a, int op_b, Object a, Object b, Object c,
                             int algorithm, Object description, size_t *bytes, void *buffer);
int cusparseSpGEMMreuse_compute(Object handle, int op_a, int op_b, const void *alpha, Object a,
                                Object b, const void *beta, Object c, int type, int algorithm,
                                Object description);

#endif
