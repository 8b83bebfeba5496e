/* Creates handles and prints the results. With -DOWN_DRIVER it has a
 * cuInit of its own, exported, which the library must leave alone. */
#include <stdio.h>

#include "tarsia.h"

#ifdef OWN_DRIVER
unsigned cuInit(unsigned flags);
unsigned cuInit(unsigned flags) {
    printf("own cuInit called with %u\n", flags);
    return 999;
}
#endif

static void report(const char *name, tarsiaStatus_t status, tarsiaHandle_t handle) {
    char text[1024] = "";
    tarsiaBackend_t backend = TARSIA_BACKEND_AUTO;
    if (status != TARSIA_STATUS_SUCCESS) {
        tarsiaGetLastErrorMessage(text, sizeof text);
    } else {
        tarsiaGetBackend(handle, &backend);
        tarsiaDestroy(handle);
    }
    printf("%s: %d backend %d %s\n", name, (int)status, (int)backend, text);
}

int main(void) {
    tarsiaHandle_t handle = NULL;
    tarsiaStatus_t status = tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_CUDA, 0);
    report("cuda", status, handle);
    status = tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_CUDA, 7);
    report("device 7", status, handle);
    status = tarsiaCreate(&handle);
    report("auto", status, handle);
    return 0;
}
