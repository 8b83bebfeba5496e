// SPDX-License-Identifier: MIT OR Apache-2.0
/* y = A x with a matrix that is stored in fewer bits than y: fp32 with fp64 vectors, fp16 and bf16
 * with fp32 y. Most of what a product reads is the matrix, so its bytes decide the time; the table
 * that this program prints shows what fewer of them cost in accuracy. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { ROWS = 700, PER_ROW = 16, NNZ = ROWS * PER_ROW };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* A number type: sign, exponent with a bias, bits of the fraction. */
typedef struct {
    tarsiaDataType_t code;
    const char *name;
    size_t bytes;
    int fraction, bias;
} Type;
static const Type fp64 = {TARSIA_R_64F, "fp64", 8, 52, 1023};
static const Type fp32 = {TARSIA_R_32F, "fp32", 4, 23, 127};
static const Type fp16 = {TARSIA_R_16F, "fp16", 2, 10, 15};
static const Type bf16 = {TARSIA_R_16BF, "bf16", 2, 7, 127};

/* The most that one rounding to the type changes a number, relatively. */
static double rounding(Type t) { return ldexp(1, -t.fraction - 1); }

/* To fp16 or bf16 in one rounding, to nearest, ties to even; too large is infinity. v is finite. */
static uint16_t encode16(Type t, double v) {
    const uint32_t sign = signbit(v) ? 0x8000 : 0;
    const uint32_t infinity = (2u * (uint32_t)t.bias + 1) << t.fraction;
    int exponent = v == 0 ? -t.bias : ilogb(v);
    if (exponent > t.bias)
        return (uint16_t)(sign | infinity);
    /* Numbers below the smallest normal one share its exponent. */
    if (exponent < 1 - t.bias)
        exponent = 1 - t.bias;
    /* In units of the last place. A normal number's leading 1 counts the exponent up; so does a
     * carry. */
    const uint32_t units = (uint32_t)nearbyint(ldexp(fabs(v), t.fraction - exponent));
    return (uint16_t)(sign | (((uint32_t)(exponent + t.bias - 1) << t.fraction) + units));
}

/* From fp16 or bf16, a finite number. */
static double decode16(Type t, uint16_t h) {
    const int exponent = (h & 0x7fff) >> t.fraction, units = h & ((1 << t.fraction) - 1);
    const double v = exponent ? ldexp(units + (1 << t.fraction), exponent - t.bias - t.fraction)
                              : ldexp(units, 1 - t.bias - t.fraction);
    return h & 0x8000 ? -v : v;
}

/* Room for an array of any of the types. */
static union {
    double d[NNZ];
    float f[NNZ];
    uint16_t h[NNZ];
} room;

/* An array of the type in the backend's memory; v[i] becomes the number that is stored for it. */
static void *upload(tarsiaHandle_t handle, Type t, double *v, int count) {
    void *device;

    for (int i = 0; i < count; i++) {
        if (t.bytes == 8)
            room.d[i] = v[i];
        else if (t.bytes == 4)
            v[i] = room.f[i] = (float)v[i];
        else
            v[i] = decode16(t, room.h[i] = encode16(t, v[i]));
    }
    CHECK(tarsiaMalloc(handle, &device, t.bytes * (size_t)count));
    CHECK(tarsiaMemcpyToDevice(handle, device, &room, t.bytes * (size_t)count));
    return device;
}

static int32_t offsets[ROWS + 1], columns[NNZ];
static void *dOffsets, *dColumns;

/* Multiplies in the given types and prints a line of the table; returns whether y is as accurate as
 * the types allow. */
static int product(tarsiaHandle_t handle, Type a, Type x, Type y, tarsiaComputeType_t compute) {
    static double exactA[NNZ], storedA[NNZ], exactX[ROWS], storedX[ROWS], zeros[ROWS];

    for (int p = 0; p < NNZ; p++)
        storedA[p] = exactA[p] = 1.5 + sin(0.7 * p);
    for (int i = 0; i < ROWS; i++)
        storedX[i] = exactX[i] = (i % 2 ? -1 : 1) * (1.2 + 0.8 * cos(1.1 * i));
    void *dA = upload(handle, a, storedA, NNZ), *dX = upload(handle, x, storedX, ROWS);
    void *dY = upload(handle, y, zeros, ROWS);

    tarsiaSpMatDescr_t A;
    tarsiaDnVecDescr_t vecX, vecY;
    tarsiaPlan_t plan;
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, NNZ, dOffsets, dColumns, dA, TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, a.code));
    CHECK(tarsiaCreateDnVec(&vecX, ROWS, dX, x.code));
    CHECK(tarsiaCreateDnVec(&vecY, ROWS, dY, y.code));
    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A, x.code, y.code,
                                compute, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_analyze(handle, plan));
    /* alpha and beta have the compute type, not the matrix's. */
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    if (compute == TARSIA_COMPUTE_64F)
        CHECK(tarsiaSpMV(handle, plan, &one64, vecX, &zero64, vecY));
    else
        CHECK(tarsiaSpMV(handle, plan, &one32, vecX, &zero32, vecY));
    CHECK(tarsiaMemcpyToHost(handle, &room, dY, y.bytes * ROWS));

    /* Errors relative to |A| |x|: against the product of the stored numbers (the library's own; 0
     * for bf16, where fp32 holds these products and sums exactly), and against the product of the
     * numbers before they were rounded to the types (what the user sees). */
    double own = 0, seen = 0;
    for (int i = 0; i < ROWS; i++) {
        const double found = y.bytes == 8 ? room.d[i] : room.f[i];
        double stored = 0, exact = 0, size = 0;
        for (int p = offsets[i]; p < offsets[i + 1]; p++) {
            stored += storedA[p] * storedX[columns[p]];
            exact += exactA[p] * exactX[columns[p]];
            size += fabs(exactA[p] * exactX[columns[p]]);
        }
        own = fmax(own, fabs(found - stored) / size);
        seen = fmax(seen, fabs(found - exact) / size);
    }
    printf("%-5s %-5s %-5s %6zu %12.1e %12.1e\n", a.name, x.name, y.name, a.bytes * NNZ / 1000, own,
           seen);

    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroyDnVec(vecY));
    CHECK(tarsiaDestroyDnVec(vecX));
    CHECK(tarsiaDestroySpMat(A));
    CHECK(tarsiaFree(handle, dY));
    CHECK(tarsiaFree(handle, dX));
    CHECK(tarsiaFree(handle, dA));
    /* Products and sums have y's type in all four cases: PER_ROW + 1 roundings, here and there. */
    const double allowed = 2 * (PER_ROW + 1) * rounding(y);
    return own <= allowed && seen <= allowed + 1.01 * (rounding(a) + rounding(x));
}

int main(void) {
    tarsiaHandle_t handle;
    int good;

    for (int p = 0; p < NNZ; p++)
        columns[p] = (int32_t)((p * 7919LL + p / PER_ROW) % ROWS);
    for (int i = 0; i <= ROWS; i++)
        offsets[i] = i * PER_ROW;
    CHECK(tarsiaCreate(&handle));
    CHECK(tarsiaMalloc(handle, &dOffsets, sizeof offsets));
    CHECK(tarsiaMalloc(handle, &dColumns, sizeof columns));
    CHECK(tarsiaMemcpyToDevice(handle, dOffsets, offsets, sizeof offsets));
    CHECK(tarsiaMemcpyToDevice(handle, dColumns, columns, sizeof columns));

    printf("A     x     y     A [kB]    own error     in all\n");
    good = product(handle, fp64, fp64, fp64, TARSIA_COMPUTE_64F);
    good &= product(handle, fp32, fp64, fp64, TARSIA_COMPUTE_64F);
    good &= product(handle, fp16, fp16, fp32, TARSIA_COMPUTE_32F);
    good &= product(handle, bf16, bf16, fp32, TARSIA_COMPUTE_32F);

    CHECK(tarsiaFree(handle, dColumns));
    CHECK(tarsiaFree(handle, dOffsets));
    CHECK(tarsiaDestroy(handle));
    if (!good)
        fprintf(stderr, "an error is larger than the types allow\n");
    return good ? 0 : 1;
}
