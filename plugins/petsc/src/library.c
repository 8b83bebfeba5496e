// SPDX-License-Identifier: MIT OR Apache-2.0
/* Registration with PETSc, and what the process has once: handles, threads, events. */

#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdlib.h>

#include <petscdevice.h>

#include "petsctarsia_impl.h"

PetscLogEvent TARSIA_Analyze, TARSIA_Update;

static PetscBool registered = PETSC_FALSE;
/* Of the host and of the device. */
static tarsiaHandle_t handles[2];

PetscErrorCode TarsiaErrorCode(tarsiaStatus_t status) {
    switch (status) {
    case TARSIA_STATUS_ALLOC_FAILED:
    case TARSIA_STATUS_INSUFFICIENT_RESOURCES:
        return PETSC_ERR_MEM;
    case TARSIA_STATUS_NOT_SUPPORTED:
    case TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
        return PETSC_ERR_SUP;
    default:
        return PETSC_ERR_LIB;
    }
}

/* Returns whether new matrices are on a device: PETSc was built for CUDA, there is a device, and
 * -mat_tarsia_host does not say otherwise. */
PetscErrorCode TarsiaUseDevice(PetscBool *device) {
    PetscFunctionBegin;
    *device = PETSC_FALSE;
#if defined(PETSC_HAVE_CUDA)
    static enum { UNKNOWN, HOST, DEVICE } found = UNKNOWN;

    if (found == UNKNOWN) {
        tarsiaHandle_t probe;
        PetscBool host = PETSC_FALSE;

        PetscCall(PetscOptionsGetBool(NULL, NULL, "-mat_tarsia_host", &host, NULL));
        found = HOST;
        if (!host &&
            tarsiaCreateWithBackend(&probe, TARSIA_BACKEND_CUDA, 0) == TARSIA_STATUS_SUCCESS) {
            PetscCallTarsia(tarsiaDestroy(probe));
            /* PETSc chooses this rank's device. */
            PetscCall(PetscDeviceInitialize(PETSC_DEVICE_CUDA));
            found = DEVICE;
        }
    }
    *device = (PetscBool)(found == DEVICE);
#endif
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Returns the handle of the host, or that of the device with PETSc's present stream. */
PetscErrorCode TarsiaGetHandle(PetscBool device, tarsiaHandle_t *handle) {
    PetscFunctionBegin;
    if (!handles[device]) {
        if (device)
            PetscCallTarsia(tarsiaCreate(&handles[device]));
        else
            PetscCallTarsia(tarsiaCreateWithBackend(&handles[device], TARSIA_BACKEND_HOST, 0));
    }
    *handle = handles[device];
#if defined(PETSC_HAVE_CUDA) && PETSC_VERSION_GE(3, 19, 0)
    if (device) {
        PetscDeviceContext context;
        void *stream, *present;

        PetscCall(PetscDeviceContextGetCurrentContext(&context));
        /* The address of a cudaStream_t, which is a pointer. */
        PetscCall(PetscDeviceContextGetStreamHandle(context, &stream));
        PetscCallTarsia(tarsiaGetStream(*handle, &present));
        if (present != *(void **)stream)
            PetscCallTarsia(tarsiaSetStream(*handle, *(void **)stream));
    }
#endif
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TarsiaFinalize(void) {
    PetscFunctionBegin;
    for (int i = 0; i < 2; i++) {
        PetscCallTarsia(tarsiaDestroy(handles[i]));
        handles[i] = NULL;
    }
    registered = PETSC_FALSE;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Divides the cores among the ranks that share them. The library would use one thread for each core
 * that the process may run on, which is right for a rank that is bound to cores of its own. */
static PetscErrorCode TarsiaSetThreads(void) {
    PetscInt threads = 0;
    PetscBool given;

    PetscFunctionBegin;
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_tarsia_threads", &threads, &given));
    if (!given && !getenv("TARSIA_NUM_THREADS")) {
        MPI_Comm node;
        PetscMPIInt ranks, sharing = 0;
        cpu_set_t mine, both, *all;
        int cores;

        PetscCallMPI(
            MPI_Comm_split_type(PETSC_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        PetscCallMPI(MPI_Comm_size(node, &ranks));
        CPU_ZERO(&mine);
        /* On failure (more than 1024 cores) no two ranks seem to share a core. */
        if (sched_getaffinity(0, sizeof mine, &mine))
            CPU_ZERO(&mine);
        PetscCall(PetscMalloc1(ranks, &all));
        PetscCallMPI(MPI_Allgather(&mine, (PetscMPIInt)sizeof mine, MPI_BYTE, all,
                                   (PetscMPIInt)sizeof mine, MPI_BYTE, node));
        for (PetscMPIInt i = 0; i < ranks; i++) {
            CPU_AND(&both, &mine, &all[i]);
            sharing += CPU_COUNT(&both) > 0;
        }
        PetscCall(PetscFree(all));
        PetscCallMPI(MPI_Comm_free(&node));
        if (sharing > 1) {
            PetscCallTarsia(tarsiaGetNumThreads(&cores));
            threads = PetscMax(1, cores / sharing);
        }
    }
    if (threads)
        PetscCallTarsia(tarsiaSetNumThreads((int)threads));
    PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatTarsiaRegister(void) {
    PetscClassId classid;

    PetscFunctionBegin;
    if (registered)
        PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatInitializePackage());
    PetscCall(MatRegister(MATSEQAIJTARSIA, MatCreate_SeqAIJTarsia));
    PetscCall(MatRegister(MATMPIAIJTARSIA, MatCreate_MPIAIJTarsia));
    PetscCall(MatRegisterRootName(MATAIJTARSIA, MATSEQAIJTARSIA, MATMPIAIJTARSIA));
    PetscCall(MatSeqAIJRegister(MATSEQAIJTARSIA, MatConvert_SeqAIJ_SeqAIJTarsia));
    PetscCall(PetscClassIdRegister("Tarsia", &classid));
    PetscCall(PetscLogEventRegister("MatTarsiaAnalyze", classid, &TARSIA_Analyze));
    PetscCall(PetscLogEventRegister("MatTarsiaUpdate", classid, &TARSIA_Update));
    PetscCall(TarsiaSetThreads());
    PetscCall(PetscRegisterFinalize(TarsiaFinalize));
    registered = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* What PETSc calls when it has loaded the library (-dll_append). */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petsctarsia(void) {
    PetscFunctionBegin;
    PetscCall(MatTarsiaRegister());
    PetscFunctionReturn(PETSC_SUCCESS);
}
