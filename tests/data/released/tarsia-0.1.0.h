/* include/tarsia.h of version 0.1.0, without its comments; scripts/abi keep wrote it. */
#ifndef TARSIA_H
#define TARSIA_H
#include <stddef.h>
#include <stdint.h>
#define TARSIA_VERSION_MAJOR 0
#define TARSIA_VERSION_MINOR 1
#define TARSIA_VERSION_PATCH 0
#define TARSIA_VERSION (0 * 10000 + 1 * 100 + 0)
typedef enum {
    TARSIA_STATUS_SUCCESS = 0,
    TARSIA_STATUS_NOT_INITIALIZED = 1,
    TARSIA_STATUS_ALLOC_FAILED = 2,
    TARSIA_STATUS_INVALID_VALUE = 3,
    TARSIA_STATUS_ARCH_MISMATCH = 4,
    TARSIA_STATUS_MAPPING_ERROR = 5,
    TARSIA_STATUS_EXECUTION_FAILED = 6,
    TARSIA_STATUS_INTERNAL_ERROR = 7,
    TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
    TARSIA_STATUS_ZERO_PIVOT = 9,
    TARSIA_STATUS_NOT_SUPPORTED = 10,
    TARSIA_STATUS_INSUFFICIENT_RESOURCES = 11,
    TARSIA_STATUS_INVALID_STATE = 100,
} tarsiaStatus_t;
typedef enum {
    TARSIA_PROPERTY_MAJOR_VERSION = 0,
    TARSIA_PROPERTY_MINOR_VERSION = 1,
    TARSIA_PROPERTY_PATCH_LEVEL = 2,
} tarsiaProperty_t;
typedef enum {
    TARSIA_BACKEND_AUTO = 0,
    TARSIA_BACKEND_HOST = 1,
    TARSIA_BACKEND_CUDA = 2,
    TARSIA_BACKEND_REFERENCE = 3,
} tarsiaBackend_t;
typedef enum {
    TARSIA_POINTER_MODE_HOST = 0,
    TARSIA_POINTER_MODE_DEVICE = 1,
} tarsiaPointerMode_t;
typedef enum {
    TARSIA_LOG_ERROR = 1,
    TARSIA_LOG_WARNING = 2,
    TARSIA_LOG_INFO = 3,
} tarsiaLogLevel_t;
typedef enum {
    TARSIA_INDEX_16U = 1,
    TARSIA_INDEX_32I = 2,
    TARSIA_INDEX_64I = 3,
} tarsiaIndexType_t;
typedef enum {
    TARSIA_INDEX_BASE_ZERO = 0,
    TARSIA_INDEX_BASE_ONE = 1,
} tarsiaIndexBase_t;
typedef enum {
    TARSIA_R_32F = 0,
    TARSIA_R_64F = 1,
    TARSIA_R_16F = 2,
    TARSIA_R_8I = 3,
    TARSIA_C_32F = 4,
    TARSIA_C_64F = 5,
    TARSIA_R_32I = 10,
    TARSIA_R_16BF = 14,
} tarsiaDataType_t;
typedef enum {
    TARSIA_ORDER_COL = 1,
    TARSIA_ORDER_ROW = 2,
} tarsiaOrder_t;
typedef enum {
    TARSIA_FORMAT_CSR = 1,
    TARSIA_FORMAT_CSC = 2,
    TARSIA_FORMAT_COO = 3,
    TARSIA_FORMAT_BSR = 6,
    TARSIA_FORMAT_TILE = 100,
} tarsiaFormat_t;
typedef enum {
    TARSIA_EFFORT_DEFAULT = 0,
    TARSIA_EFFORT_QUICK = 1,
    TARSIA_EFFORT_TUNED = 2,
} tarsiaEffort_t;
typedef enum {
    TARSIA_REORDER_AUTO = 0,
    TARSIA_REORDER_NONE = 1,
    TARSIA_REORDER_PLAIN_SORT = 2,
    TARSIA_REORDER_FLIPPED_SORT = 3,
    TARSIA_REORDER_LPT = 4,
    TARSIA_REORDER_WARP_AWARE = 5,
    TARSIA_REORDER_CTA_AWARE = 6,
    TARSIA_REORDER_HYBRID_1 = 7,
    TARSIA_REORDER_HYBRID_2_1 = 8,
    TARSIA_REORDER_HYBRID_2_2 = 9,
    TARSIA_REORDER_HYBRID_2_3 = 10,
    TARSIA_REORDER_DCSR = 11,
    TARSIA_REORDER_RCM = 12,
    TARSIA_REORDER_GRAY_CODE = 13,
} tarsiaReorder_t;
typedef enum {
    TARSIA_OP_SPMV = 1,
    TARSIA_OP_SPMM = 2,
    TARSIA_OP_SPGEMM = 3,
} tarsiaOpKind_t;
typedef enum {
    TARSIA_LAYOUT_NONE = 0,
    TARSIA_LAYOUT_CSR = 1,
    TARSIA_LAYOUT_TRIPLETS = 2,
    TARSIA_LAYOUT_SELL = 3,
    TARSIA_LAYOUT_STREAM = 4,
    TARSIA_LAYOUT_DASP = 5,
    TARSIA_LAYOUT_MASK_BLOCK = 6,
    TARSIA_LAYOUT_WINDOW = 7,
    TARSIA_LAYOUT_BCSR = 8,
    TARSIA_LAYOUT_DENSE = 9,
    TARSIA_LAYOUT_TILE = 10,
    TARSIA_LAYOUT_SWIFT = 11,
} tarsiaLayout_t;
typedef enum {
    TARSIA_OPERATION_NON_TRANSPOSE = 0,
    TARSIA_OPERATION_TRANSPOSE = 1,
    TARSIA_OPERATION_CONJUGATE_TRANSPOSE = 2,
} tarsiaOperation_t;
typedef enum {
    TARSIA_COMPUTE_32F = 0,
    TARSIA_COMPUTE_64F = 1,
    TARSIA_COMPUTE_C_32F = 4,
    TARSIA_COMPUTE_C_64F = 5,
    TARSIA_COMPUTE_TF32 = 100,
} tarsiaComputeType_t;
typedef enum {
    TARSIA_SPMV_ALG_DEFAULT = 0,
    TARSIA_SPMV_ALG_CSR = 1,
    TARSIA_SPMV_ALG_SELL = 2,
    TARSIA_SPMV_ALG_STREAM = 3,
    TARSIA_SPMV_ALG_DASP = 4,
    TARSIA_SPMV_ALG_MASK_BLOCK = 5,
} tarsiaSpMVAlg_t;
typedef enum {
    TARSIA_SPMM_ALG_DEFAULT = 0,
    TARSIA_SPMM_ALG_ROW = 1,
    TARSIA_SPMM_ALG_WINDOW = 2,
    TARSIA_SPMM_ALG_SMAT = 3,
    TARSIA_SPMM_ALG_DENSE = 4,
    TARSIA_SPMM_ALG_SELL = 5,
    TARSIA_SPMM_ALG_SWIFT = 6,
    TARSIA_SPMM_ALG_CSR = 7,
} tarsiaSpMMAlg_t;
typedef enum {
    TARSIA_SPGEMM_ALG_DEFAULT = 0,
    TARSIA_SPGEMM_ALG_HASH = 1,
    TARSIA_SPGEMM_ALG_TILE = 2,
} tarsiaSpGEMMAlg_t;
typedef struct tarsiaContext tarsiaContext;
typedef struct tarsiaDnMatDescr tarsiaDnMatDescr;
typedef struct tarsiaDnVecDescr tarsiaDnVecDescr;
typedef struct tarsiaPlan tarsiaPlan;
typedef struct tarsiaSpMatDescr tarsiaSpMatDescr;
typedef tarsiaContext *tarsiaHandle_t;
typedef void *(*tarsiaAllocFn_t)(void *ctx, size_t bytes, void *stream);
typedef void (*tarsiaFreeFn_t)(void *ctx, void *ptr, void *stream);
typedef void (*tarsiaLogFn_t)(void *ctx, tarsiaLogLevel_t level, const char *message);
typedef tarsiaSpMatDescr *tarsiaSpMatDescr_t;
typedef const tarsiaSpMatDescr *tarsiaConstSpMatDescr_t;
typedef tarsiaDnVecDescr *tarsiaDnVecDescr_t;
typedef const tarsiaDnVecDescr *tarsiaConstDnVecDescr_t;
typedef tarsiaDnMatDescr *tarsiaDnMatDescr_t;
typedef const tarsiaDnMatDescr *tarsiaConstDnMatDescr_t;
typedef tarsiaPlan *tarsiaPlan_t;
typedef struct {
    size_t structSize;
    tarsiaOpKind_t operation;
    int analyzed;
    int algorithm;
    tarsiaLayout_t layout;
    tarsiaReorder_t reorder;
    tarsiaEffort_t effort;
    int valueUpdates;
    int inPlace;
    int64_t rows;
    int64_t cols;
    int64_t nnz;
    int64_t nnzC;
    int64_t products;
    size_t planBytes;
    size_t peakBytes;
    size_t workspaceBytes;
    double fill;
    double analysisSeconds;
    double predictedSeconds;
    char algorithmName[32];
    char reason[480];
} tarsiaPlanInfo_t;
#ifdef __cplusplus
extern "C" {
#endif
const char *tarsiaGetErrorName(tarsiaStatus_t status);
const char *tarsiaGetErrorString(tarsiaStatus_t status);
tarsiaStatus_t tarsiaGetLastErrorMessage(char *buf, size_t len);
tarsiaStatus_t tarsiaGetVersion(int *version);
tarsiaStatus_t tarsiaGetProperty(tarsiaProperty_t property, int *value);
tarsiaStatus_t tarsiaCreate(tarsiaHandle_t *handle);
tarsiaStatus_t tarsiaCreateWithBackend(tarsiaHandle_t *handle, tarsiaBackend_t backend, int device);
tarsiaStatus_t tarsiaDestroy(tarsiaHandle_t handle);
tarsiaStatus_t tarsiaSetStream(tarsiaHandle_t handle, void *stream);
tarsiaStatus_t tarsiaGetStream(tarsiaHandle_t handle, void **stream);
tarsiaStatus_t tarsiaSetPointerMode(tarsiaHandle_t handle, tarsiaPointerMode_t mode);
tarsiaStatus_t tarsiaGetPointerMode(tarsiaHandle_t handle, tarsiaPointerMode_t *mode);
tarsiaStatus_t tarsiaSetDeterministic(tarsiaHandle_t handle, int deterministic);
tarsiaStatus_t tarsiaGetDeterministic(tarsiaHandle_t handle, int *deterministic);
tarsiaStatus_t tarsiaSetPlanCache(tarsiaHandle_t handle,
                                  const char *folder);
tarsiaStatus_t tarsiaSetAllocator(tarsiaHandle_t handle,
                                  tarsiaAllocFn_t alloc,
                                  tarsiaFreeFn_t free,
                                  void *ctx);
tarsiaStatus_t tarsiaSetLogger(tarsiaHandle_t handle, tarsiaLogFn_t callback, void *ctx);
tarsiaStatus_t tarsiaSetWorkspace(tarsiaHandle_t handle, void *ptr, size_t bytes);
tarsiaStatus_t tarsiaGetBackend(tarsiaHandle_t handle, tarsiaBackend_t *backend);
tarsiaStatus_t tarsiaGetDevice(tarsiaHandle_t handle, int *device);
tarsiaStatus_t tarsiaMalloc(tarsiaHandle_t handle, void **ptr, size_t bytes);
tarsiaStatus_t tarsiaFree(tarsiaHandle_t handle, void *ptr);
tarsiaStatus_t tarsiaMemcpyToDevice(tarsiaHandle_t handle,
                                    void *dst,
                                    const void *src,
                                    size_t bytes);
tarsiaStatus_t tarsiaMemcpyToHost(tarsiaHandle_t handle, void *dst, const void *src, size_t bytes);
tarsiaStatus_t tarsiaSynchronize(tarsiaHandle_t handle);
tarsiaStatus_t tarsiaCreateCsr(tarsiaSpMatDescr_t *A,
                               int64_t rows,
                               int64_t cols,
                               int64_t nnz,
                               void *rowOffsets,
                               void *colInd,
                               void *values,
                               tarsiaIndexType_t offsetType,
                               tarsiaIndexType_t indexType,
                               tarsiaIndexBase_t base,
                               tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateConstCsr(tarsiaConstSpMatDescr_t *A,
                                    int64_t rows,
                                    int64_t cols,
                                    int64_t nnz,
                                    const void *rowOffsets,
                                    const void *colInd,
                                    const void *values,
                                    tarsiaIndexType_t offsetType,
                                    tarsiaIndexType_t indexType,
                                    tarsiaIndexBase_t base,
                                    tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateCsc(tarsiaSpMatDescr_t *A,
                               int64_t rows,
                               int64_t cols,
                               int64_t nnz,
                               void *colOffsets,
                               void *rowInd,
                               void *values,
                               tarsiaIndexType_t offsetType,
                               tarsiaIndexType_t indexType,
                               tarsiaIndexBase_t base,
                               tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateConstCsc(tarsiaConstSpMatDescr_t *A,
                                    int64_t rows,
                                    int64_t cols,
                                    int64_t nnz,
                                    const void *colOffsets,
                                    const void *rowInd,
                                    const void *values,
                                    tarsiaIndexType_t offsetType,
                                    tarsiaIndexType_t indexType,
                                    tarsiaIndexBase_t base,
                                    tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateCoo(tarsiaSpMatDescr_t *A,
                               int64_t rows,
                               int64_t cols,
                               int64_t nnz,
                               void *rowInd,
                               void *colInd,
                               void *values,
                               tarsiaIndexType_t indexType,
                               tarsiaIndexBase_t base,
                               tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateConstCoo(tarsiaConstSpMatDescr_t *A,
                                    int64_t rows,
                                    int64_t cols,
                                    int64_t nnz,
                                    const void *rowInd,
                                    const void *colInd,
                                    const void *values,
                                    tarsiaIndexType_t indexType,
                                    tarsiaIndexBase_t base,
                                    tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateBsr(tarsiaSpMatDescr_t *A,
                               int64_t blockRows,
                               int64_t blockCols,
                               int64_t blockNnz,
                               int64_t rowBlockSize,
                               int64_t colBlockSize,
                               void *rowOffsets,
                               void *colInd,
                               void *values,
                               tarsiaIndexType_t offsetType,
                               tarsiaIndexType_t indexType,
                               tarsiaIndexBase_t base,
                               tarsiaDataType_t valueType,
                               tarsiaOrder_t blockOrder);
tarsiaStatus_t tarsiaCreateConstBsr(tarsiaConstSpMatDescr_t *A,
                                    int64_t blockRows,
                                    int64_t blockCols,
                                    int64_t blockNnz,
                                    int64_t rowBlockSize,
                                    int64_t colBlockSize,
                                    const void *rowOffsets,
                                    const void *colInd,
                                    const void *values,
                                    tarsiaIndexType_t offsetType,
                                    tarsiaIndexType_t indexType,
                                    tarsiaIndexBase_t base,
                                    tarsiaDataType_t valueType,
                                    tarsiaOrder_t blockOrder);
tarsiaStatus_t tarsiaDestroySpMat(tarsiaConstSpMatDescr_t A);
tarsiaStatus_t tarsiaCheckSpMat(tarsiaHandle_t handle,
                                tarsiaConstSpMatDescr_t A,
                                int *sorted,
                                int *unique);
tarsiaStatus_t tarsiaCsrGet(tarsiaSpMatDescr_t A,
                            int64_t *rows,
                            int64_t *cols,
                            int64_t *nnz,
                            void **rowOffsets,
                            void **colInd,
                            void **values,
                            tarsiaIndexType_t *offsetType,
                            tarsiaIndexType_t *indexType,
                            tarsiaIndexBase_t *base,
                            tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaConstCsrGet(tarsiaConstSpMatDescr_t A,
                                 int64_t *rows,
                                 int64_t *cols,
                                 int64_t *nnz,
                                 const void **rowOffsets,
                                 const void **colInd,
                                 const void **values,
                                 tarsiaIndexType_t *offsetType,
                                 tarsiaIndexType_t *indexType,
                                 tarsiaIndexBase_t *base,
                                 tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaCsrSetPointers(tarsiaSpMatDescr_t A,
                                    void *rowOffsets,
                                    void *colInd,
                                    void *values);
tarsiaStatus_t tarsiaCscGet(tarsiaSpMatDescr_t A,
                            int64_t *rows,
                            int64_t *cols,
                            int64_t *nnz,
                            void **colOffsets,
                            void **rowInd,
                            void **values,
                            tarsiaIndexType_t *offsetType,
                            tarsiaIndexType_t *indexType,
                            tarsiaIndexBase_t *base,
                            tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaConstCscGet(tarsiaConstSpMatDescr_t A,
                                 int64_t *rows,
                                 int64_t *cols,
                                 int64_t *nnz,
                                 const void **colOffsets,
                                 const void **rowInd,
                                 const void **values,
                                 tarsiaIndexType_t *offsetType,
                                 tarsiaIndexType_t *indexType,
                                 tarsiaIndexBase_t *base,
                                 tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaCscSetPointers(tarsiaSpMatDescr_t A,
                                    void *colOffsets,
                                    void *rowInd,
                                    void *values);
tarsiaStatus_t tarsiaCooGet(tarsiaSpMatDescr_t A,
                            int64_t *rows,
                            int64_t *cols,
                            int64_t *nnz,
                            void **rowInd,
                            void **colInd,
                            void **values,
                            tarsiaIndexType_t *indexType,
                            tarsiaIndexBase_t *base,
                            tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaConstCooGet(tarsiaConstSpMatDescr_t A,
                                 int64_t *rows,
                                 int64_t *cols,
                                 int64_t *nnz,
                                 const void **rowInd,
                                 const void **colInd,
                                 const void **values,
                                 tarsiaIndexType_t *indexType,
                                 tarsiaIndexBase_t *base,
                                 tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaCooSetPointers(tarsiaSpMatDescr_t A, void *rowInd, void *colInd, void *values);
tarsiaStatus_t tarsiaBsrGet(tarsiaSpMatDescr_t A,
                            int64_t *blockRows,
                            int64_t *blockCols,
                            int64_t *blockNnz,
                            int64_t *rowBlockSize,
                            int64_t *colBlockSize,
                            void **rowOffsets,
                            void **colInd,
                            void **values,
                            tarsiaIndexType_t *offsetType,
                            tarsiaIndexType_t *indexType,
                            tarsiaIndexBase_t *base,
                            tarsiaDataType_t *valueType,
                            tarsiaOrder_t *blockOrder);
tarsiaStatus_t tarsiaConstBsrGet(tarsiaConstSpMatDescr_t A,
                                 int64_t *blockRows,
                                 int64_t *blockCols,
                                 int64_t *blockNnz,
                                 int64_t *rowBlockSize,
                                 int64_t *colBlockSize,
                                 const void **rowOffsets,
                                 const void **colInd,
                                 const void **values,
                                 tarsiaIndexType_t *offsetType,
                                 tarsiaIndexType_t *indexType,
                                 tarsiaIndexBase_t *base,
                                 tarsiaDataType_t *valueType,
                                 tarsiaOrder_t *blockOrder);
tarsiaStatus_t tarsiaBsrSetPointers(tarsiaSpMatDescr_t A,
                                    void *rowOffsets,
                                    void *colInd,
                                    void *values);
tarsiaStatus_t tarsiaSpMatGetSize(tarsiaConstSpMatDescr_t A,
                                  int64_t *rows,
                                  int64_t *cols,
                                  int64_t *nnz);
tarsiaStatus_t tarsiaSpMatGetFormat(tarsiaConstSpMatDescr_t A, tarsiaFormat_t *format);
tarsiaStatus_t tarsiaSpMatGetIndexBase(tarsiaConstSpMatDescr_t A, tarsiaIndexBase_t *base);
tarsiaStatus_t tarsiaSpMatGetValues(tarsiaSpMatDescr_t A, void **values);
tarsiaStatus_t tarsiaConstSpMatGetValues(tarsiaConstSpMatDescr_t A, const void **values);
tarsiaStatus_t tarsiaSpMatSetValues(tarsiaSpMatDescr_t A, void *values);
tarsiaStatus_t tarsiaCreateTile(tarsiaHandle_t handle,
                                tarsiaSpMatDescr_t *A,
                                int64_t rows,
                                int64_t cols,
                                tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaTileGet(tarsiaConstSpMatDescr_t A,
                             int64_t *rows,
                             int64_t *cols,
                             int64_t *nnz,
                             int64_t *tileCount,
                             tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaSparseToTile(tarsiaHandle_t handle,
                                  tarsiaConstSpMatDescr_t A,
                                  tarsiaSpMatDescr_t B);
tarsiaStatus_t tarsiaTileToSparse(tarsiaHandle_t handle,
                                  tarsiaConstSpMatDescr_t A,
                                  tarsiaSpMatDescr_t B);
tarsiaStatus_t tarsiaCreateDnVec(tarsiaDnVecDescr_t *x,
                                 int64_t size,
                                 void *values,
                                 tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaCreateConstDnVec(tarsiaConstDnVecDescr_t *x,
                                      int64_t size,
                                      const void *values,
                                      tarsiaDataType_t valueType);
tarsiaStatus_t tarsiaDestroyDnVec(tarsiaConstDnVecDescr_t x);
tarsiaStatus_t tarsiaDnVecGet(tarsiaDnVecDescr_t x,
                              int64_t *size,
                              void **values,
                              tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaConstDnVecGet(tarsiaConstDnVecDescr_t x,
                                   int64_t *size,
                                   const void **values,
                                   tarsiaDataType_t *valueType);
tarsiaStatus_t tarsiaDnVecGetValues(tarsiaDnVecDescr_t x, void **values);
tarsiaStatus_t tarsiaConstDnVecGetValues(tarsiaConstDnVecDescr_t x, const void **values);
tarsiaStatus_t tarsiaDnVecSetValues(tarsiaDnVecDescr_t x, void *values);
tarsiaStatus_t tarsiaCreateDnMat(tarsiaDnMatDescr_t *B,
                                 int64_t rows,
                                 int64_t cols,
                                 int64_t ld,
                                 void *values,
                                 tarsiaDataType_t valueType,
                                 tarsiaOrder_t order);
tarsiaStatus_t tarsiaCreateConstDnMat(tarsiaConstDnMatDescr_t *B,
                                      int64_t rows,
                                      int64_t cols,
                                      int64_t ld,
                                      const void *values,
                                      tarsiaDataType_t valueType,
                                      tarsiaOrder_t order);
tarsiaStatus_t tarsiaDestroyDnMat(tarsiaConstDnMatDescr_t B);
tarsiaStatus_t tarsiaDnMatGet(tarsiaDnMatDescr_t B,
                              int64_t *rows,
                              int64_t *cols,
                              int64_t *ld,
                              void **values,
                              tarsiaDataType_t *valueType,
                              tarsiaOrder_t *order);
tarsiaStatus_t tarsiaConstDnMatGet(tarsiaConstDnMatDescr_t B,
                                   int64_t *rows,
                                   int64_t *cols,
                                   int64_t *ld,
                                   const void **values,
                                   tarsiaDataType_t *valueType,
                                   tarsiaOrder_t *order);
tarsiaStatus_t tarsiaDnMatGetValues(tarsiaDnMatDescr_t B, void **values);
tarsiaStatus_t tarsiaConstDnMatGetValues(tarsiaConstDnMatDescr_t B, const void **values);
tarsiaStatus_t tarsiaDnMatSetValues(tarsiaDnMatDescr_t B, void *values);
tarsiaStatus_t tarsiaPlan_setEffort(tarsiaPlan_t plan, tarsiaEffort_t effort);
tarsiaStatus_t tarsiaPlan_setReorder(tarsiaPlan_t plan, tarsiaReorder_t reorder);
tarsiaStatus_t tarsiaPlan_setBlockDims(tarsiaPlan_t plan, int64_t rowBlockDim, int64_t colBlockDim);
tarsiaStatus_t tarsiaPlan_setValueUpdates(tarsiaPlan_t plan, int valueUpdates);
tarsiaStatus_t tarsiaPlan_setMemoryLimit(tarsiaPlan_t plan, size_t bytes);
tarsiaStatus_t tarsiaPlan_analyze(tarsiaHandle_t handle, tarsiaPlan_t plan);
tarsiaStatus_t tarsiaPlan_getDecisions(tarsiaHandle_t handle,
                                       tarsiaPlan_t plan,
                                       void *buffer,
                                       size_t room,
                                       size_t *bytes);
tarsiaStatus_t tarsiaPlan_setDecisions(tarsiaHandle_t handle,
                                       tarsiaPlan_t plan,
                                       const void *buffer,
                                       size_t bytes);
tarsiaStatus_t tarsiaPlan_serialize(tarsiaHandle_t handle,
                                    tarsiaPlan_t plan,
                                    void *buffer,
                                    size_t room,
                                    size_t *bytes);
tarsiaStatus_t tarsiaPlan_deserialize(tarsiaHandle_t handle,
                                      tarsiaPlan_t plan,
                                      const void *buffer,
                                      size_t bytes);
tarsiaStatus_t tarsiaPlan_workspaceSize(tarsiaPlan_t plan, int64_t n, size_t *bytes);
tarsiaStatus_t tarsiaPlan_prepare(tarsiaHandle_t handle, tarsiaPlan_t plan);
tarsiaStatus_t tarsiaPlan_updateValues(tarsiaHandle_t handle,
                                       tarsiaPlan_t plan,
                                       const void *newValues);
tarsiaStatus_t tarsiaPlan_getInfo(tarsiaPlan_t plan, tarsiaPlanInfo_t *info);
tarsiaStatus_t tarsiaPlan_destroy(tarsiaPlan_t plan);
tarsiaStatus_t tarsiaSpMV_createPlan(tarsiaHandle_t handle,
                                     tarsiaPlan_t *plan,
                                     tarsiaOperation_t opA,
                                     tarsiaConstSpMatDescr_t A,
                                     tarsiaDataType_t xType,
                                     tarsiaDataType_t yType,
                                     tarsiaComputeType_t computeType,
                                     tarsiaSpMVAlg_t alg);
tarsiaStatus_t tarsiaSpMV(tarsiaHandle_t handle,
                          tarsiaPlan_t plan,
                          const void *alpha,
                          tarsiaConstDnVecDescr_t x,
                          const void *beta,
                          tarsiaDnVecDescr_t y);
tarsiaStatus_t tarsiaSpMV_once(tarsiaHandle_t handle,
                               tarsiaOperation_t opA,
                               const void *alpha,
                               tarsiaConstSpMatDescr_t A,
                               tarsiaConstDnVecDescr_t x,
                               const void *beta,
                               tarsiaDnVecDescr_t y,
                               tarsiaComputeType_t computeType);
tarsiaStatus_t tarsiaSpMM_createPlan(tarsiaHandle_t handle,
                                     tarsiaPlan_t *plan,
                                     tarsiaOperation_t opA,
                                     tarsiaOperation_t opB,
                                     tarsiaConstSpMatDescr_t A,
                                     tarsiaOrder_t bOrder,
                                     tarsiaOrder_t cOrder,
                                     int64_t nHint,
                                     tarsiaDataType_t bType,
                                     tarsiaDataType_t cType,
                                     tarsiaComputeType_t computeType,
                                     tarsiaSpMMAlg_t alg);
tarsiaStatus_t tarsiaSpMM(tarsiaHandle_t handle,
                          tarsiaPlan_t plan,
                          const void *alpha,
                          tarsiaConstDnMatDescr_t B,
                          const void *beta,
                          tarsiaDnMatDescr_t C);
tarsiaStatus_t tarsiaSpMM_once(tarsiaHandle_t handle,
                               tarsiaOperation_t opA,
                               tarsiaOperation_t opB,
                               const void *alpha,
                               tarsiaConstSpMatDescr_t A,
                               tarsiaConstDnMatDescr_t B,
                               const void *beta,
                               tarsiaDnMatDescr_t C,
                               tarsiaComputeType_t computeType);
tarsiaStatus_t tarsiaSpGEMM_createPlan(tarsiaHandle_t handle,
                                       tarsiaPlan_t *plan,
                                       tarsiaOperation_t opA,
                                       tarsiaOperation_t opB,
                                       tarsiaConstSpMatDescr_t A,
                                       tarsiaConstSpMatDescr_t B,
                                       tarsiaComputeType_t computeType,
                                       tarsiaSpGEMMAlg_t alg);
tarsiaStatus_t tarsiaSpGEMM_symbolic(tarsiaHandle_t handle, tarsiaPlan_t plan, int64_t *nnzC);
tarsiaStatus_t tarsiaSpGEMM_numeric(tarsiaHandle_t handle,
                                    tarsiaPlan_t plan,
                                    const void *alpha,
                                    tarsiaSpMatDescr_t C);
tarsiaStatus_t tarsiaSpGEMM_updateValues(tarsiaHandle_t handle,
                                         tarsiaPlan_t plan,
                                         const void *newValuesA,
                                         const void *newValuesB);
#ifdef __cplusplus
}
#endif
#endif
