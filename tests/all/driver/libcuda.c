/* Fake driver, which records the functions that the library calls. Environment:
 * FAKE_LOG names a file for the functions that were called, FAKE_INIT is what
 * cuInit answers, FAKE_VERSION the driver's version, FAKE_COUNT its devices,
 * FAKE_CAPABILITY their compute capability (75 for 7.5). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void called(const char *function) {
    const char *path = getenv("FAKE_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s\n", function);
        fclose(file);
    }
}

static void *stack[16];
static int depth;
static int primary;

unsigned cuInit(unsigned flags) {
    called(flags == 0 ? "cuInit" : "cuInit with flags");
    return (unsigned)number("FAKE_INIT", 0);
}

unsigned cuDriverGetVersion(int *version) {
    called("cuDriverGetVersion");
    *version = number("FAKE_VERSION", 13000);
    return 0;
}

unsigned cuDeviceGetCount(int *count) {
    called("cuDeviceGetCount");
    *count = number("FAKE_COUNT", 1);
    return 0;
}

unsigned cuDeviceGet(int *device, int ordinal) {
    called("cuDeviceGet");
    *device = ordinal;
    return 0;
}

unsigned cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    called("cuDeviceGetName");
    snprintf(name, (size_t)length, "Fake");
    return 0;
}

unsigned cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    int capability = number("FAKE_CAPABILITY", 90);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 1;
    return 0;
}

unsigned cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    called("cuDevicePrimaryCtxRetain");
    *context = &primary;
    return 0;
}

unsigned cuCtxGetCurrent(void **context) {
    called("cuCtxGetCurrent");
    *context = depth > 0 ? stack[depth - 1] : NULL;
    return 0;
}

unsigned cuCtxGetId(void *context, unsigned long long *id) {
    (void)context;
    *id = 1;
    return 0;
}

unsigned cuCtxPushCurrent_v2(void *context) {
    called("cuCtxPushCurrent_v2");
    stack[depth++] = context;
    return 0;
}

unsigned cuCtxPopCurrent_v2(void **context) {
    called("cuCtxPopCurrent_v2");
    *context = stack[--depth];
    return 0;
}

unsigned cuGetErrorName(unsigned error, const char **text) {
    *text = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_THE_FAKE";
    return 0;
}

unsigned cuGetErrorString(unsigned error, const char **text) {
    (void)error;
    *text = "the fake driver says so";
    return 0;
}
