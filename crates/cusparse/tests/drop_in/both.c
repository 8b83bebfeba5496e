/* A program that is linked with libtarsia.so and also loads a library that calls cuSPARSE. It gets
 * the functions of its own libtarsia.so, even if the drop-in is preloaded. */
#define _GNU_SOURCE
#include "tarsia.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    tarsiaHandle_t handle = NULL;
    int version = 0;
    if (tarsiaGetVersion(&version) || tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0))
        return 2;
    Dl_info info;
    if (version != TARSIA_VERSION || !dladdr((void *)&tarsiaCreate, &info))
        return 3;
    void *client = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(void);
    *(void **)&run = client ? dlsym(client, "run") : NULL;
    if (!run || run())
        return 4;
    printf("tarsiaCreate is in %s\n", info.dli_fname);
    return tarsiaDestroy(handle) ? 5 : 0;
}
