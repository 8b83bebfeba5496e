// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tarsia inside a CUDA program: arrays from cudaMalloc, a stream of the program's own, alpha and
 * beta on the device, and a step of a smoother captured into a graph that is replayed a thousand
 * times.
 *
 * x <- x + omega D^-1 (b - A x) (damped Jacobi) for the 5-point Laplacian; every step is two
 * products: r = b - A x, which tarsiaSpMV_into writes beside b, then x += omega r / 4. Both are
 * with sparse matrices, so the program needs no kernel of its own. The result is checked against
 * the same steps on the host.
 *
 * Needs the CUDA runtime to build; ends with 77 where there is no device. */

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarsia.h>

enum { NX = 70, NY = 60, ROWS = NX * NY, STEPS = 1000 };

static void check(tarsiaStatus_t status, const char *call) {
    char message[512];

    if (status == TARSIA_STATUS_SUCCESS)
        return;
    tarsiaGetLastErrorMessage(message, sizeof message);
    fprintf(stderr, "%s\n  %s: %s\n", call, tarsiaGetErrorName(status), message);
    exit(1);
}
#define CHECK(call) check((call), #call)

static void check_cuda(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s\n  %s: %s\n", call, cudaGetErrorName(error), cudaGetErrorString(error));
    exit(1);
}
#define CUDA(call) check_cuda((call), #call)

/* Arrays on the device. Those of a matrix outlive the plans that were made for it. */
static void *uploaded[16];
static int uploads;

static void *upload(const void *host, size_t bytes) {
    void *device;

    CUDA(cudaMalloc(&device, bytes));
    CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    return uploaded[uploads++] = device;
}

static int32_t offsets[ROWS + 1], columns[5 * ROWS], identity[ROWS + 1];
static double values[5 * ROWS], quarter[ROWS], x[ROWS], b[ROWS], r[ROWS], found[ROWS];

static int32_t poisson(void) {
    int32_t nnz = 0;

    for (int32_t row = 0; row < ROWS; row++) {
        const int32_t i = row % NX, j = row / NX;
        const int32_t neighbor[5] = {row - NX, row - 1, row, row + 1, row + NX};
        const int inside[5] = {j > 0, i > 0, 1, i < NX - 1, j < NY - 1};

        offsets[row] = nnz;
        for (int k = 0; k < 5; k++) {
            if (inside[k]) {
                columns[nnz] = neighbor[k];
                values[nnz++] = k == 2 ? 4.0 : -1.0;
            }
        }
    }
    offsets[ROWS] = nnz;
    return nnz;
}

/* A plan for y = alpha A x + beta y, with everything that execute needs. */
static tarsiaPlan_t plan_of(tarsiaHandle_t handle, tarsiaSpMatDescr_t matrix) {
    tarsiaPlan_t plan;

    CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, matrix, TARSIA_R_64F,
                                TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT));
    CHECK(tarsiaPlan_analyze(handle, plan));
    return plan;
}

int main(void) {
    const double omega = 0.8, scalars[3] = {-1.0, 1.0, omega};
    const int32_t nnz = poisson();
    tarsiaHandle_t handle;
    tarsiaBackend_t backend;
    tarsiaSpMatDescr_t A, D;
    tarsiaDnVecDescr_t vx, vr;
    tarsiaConstDnVecDescr_t vb;
    tarsiaPlan_t residual, update;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t steps;
    double *d_x, *d_b, *d_r, *d_scalars, worst = 0.0;
    int devices = 0;

    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no CUDA device\n");
        return 77;
    }
    for (int32_t row = 0; row < ROWS; row++) {
        identity[row] = row;
        quarter[row] = 0.25;
        b[row] = sin(0.37 * row) + 0.1;
    }
    identity[ROWS] = ROWS;

    /* The program's stream, in the program's context: the library works there and leaves it as it
     * was. */
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(tarsiaCreate(&handle));
    CHECK(tarsiaGetBackend(handle, &backend));
    if (backend != TARSIA_BACKEND_CUDA) {
        printf("there is a device, but this library was built without CUDA kernels\n");
        return 77;
    }
    CHECK(tarsiaSetStream(handle, stream));
    CHECK(tarsiaSetPointerMode(handle, TARSIA_POINTER_MODE_DEVICE));

    d_x = upload(x, sizeof x);
    d_b = upload(b, sizeof b);
    d_r = upload(r, sizeof r);
    d_scalars = upload(scalars, sizeof scalars);
    CHECK(tarsiaCreateCsr(&A, ROWS, ROWS, nnz, upload(offsets, sizeof offsets),
                          upload(columns, (size_t)nnz * sizeof *columns),
                          upload(values, (size_t)nnz * sizeof *values), TARSIA_INDEX_32I,
                          TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateCsr(&D, ROWS, ROWS, ROWS, upload(identity, sizeof identity),
                          upload(identity, ROWS * sizeof *identity),
                          upload(quarter, sizeof quarter), TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                          TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vx, ROWS, d_x, TARSIA_R_64F));
    CHECK(tarsiaCreateConstDnVec(&vb, ROWS, d_b, TARSIA_R_64F));
    CHECK(tarsiaCreateDnVec(&vr, ROWS, d_r, TARSIA_R_64F));
    residual = plan_of(handle, A);
    update = plan_of(handle, D);

    /* r = -1 A x + 1 b; x = omega D r + 1 x */
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(tarsiaSpMV_into(handle, residual, &d_scalars[0], vx, &d_scalars[1], vb, vr));
    CHECK(tarsiaSpMV(handle, update, &d_scalars[2], vr, &d_scalars[1], vx));
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiateWithFlags(&steps, graph, 0));
    for (int step = 0; step < STEPS; step++)
        CUDA(cudaGraphLaunch(steps, stream));
    CUDA(cudaMemcpyAsync(found, d_x, sizeof found, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));

    for (int step = 0; step < STEPS; step++) {
        for (int32_t row = 0; row < ROWS; row++) {
            double sum = 0.0;

            for (int32_t p = offsets[row]; p < offsets[row + 1]; p++)
                sum += values[p] * x[columns[p]];
            r[row] = b[row] - sum;
        }
        for (int32_t row = 0; row < ROWS; row++)
            x[row] += omega * (0.25 * r[row]);
    }
    /* A step rounds each value a few times, and damped Jacobi does not let errors grow. */
    for (int32_t row = 0; row < ROWS; row++)
        worst = fmax(worst, fabs(found[row] - x[row]) / (1.0 + fabs(x[row])));
    printf("%d replays of a graph of 2 products: largest difference %.2e\n", STEPS, worst);

    CUDA(cudaGraphExecDestroy(steps));
    CUDA(cudaGraphDestroy(graph));
    CHECK(tarsiaPlan_destroy(residual));
    CHECK(tarsiaPlan_destroy(update));
    CHECK(tarsiaDestroySpMat(A));
    CHECK(tarsiaDestroySpMat(D));
    CHECK(tarsiaDestroyDnVec(vx));
    CHECK(tarsiaDestroyDnVec(vr));
    CHECK(tarsiaDestroyDnVec(vb));
    CHECK(tarsiaDestroy(handle));
    while (uploads > 0)
        CUDA(cudaFree(uploaded[--uploads]));
    CUDA(cudaStreamDestroy(stream));
    return worst < STEPS * 1e-15 ? 0 : 1;
}
