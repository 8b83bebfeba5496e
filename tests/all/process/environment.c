/* Products in a floating-point environment that the program has changed: the bits are those of the
 * default one, and the program's own is as it was after every call.
 *
 *   environment MODE before    the mode is set before the library's threads are made
 *   environment MODE after     ... after them
 *
 *   environment callbacks when  the program's logger and allocator change it, each in every call
 *
 * MODE: nearest, up, down, zero, flush (FTZ and DAZ of x86-64, FZ of AArch64), trap (FE_INVALID,
 * FE_OVERFLOW, FE_UNDERFLOW and FE_INEXACT raise SIGFPE, where the processor can do that). Prints
 * the bits of 300 repetitions, which are one. With TARSIA_TEST_SMALL there are 3, of SpMV alone.
 */
#define _GNU_SOURCE
#include "products.h"

#include <fenv.h>
#if defined __x86_64__
#include <xmmintrin.h>
#elif defined __aarch64__
#include <fpu_control.h>
#endif

#if defined __x86_64__ || defined __aarch64__
/* Subnormal numbers are taken as zeros, and made zeros. */
static void flush(void) {
#if defined __x86_64__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#else
    fpu_control_t control;
    _FPU_GETCW(control);
    _FPU_SETCW(control | 1 << 24);
#endif
}
#endif

static void set_mode(const char *mode) {
    if (strcmp(mode, "up") == 0)
        fesetround(FE_UPWARD);
    else if (strcmp(mode, "down") == 0)
        fesetround(FE_DOWNWARD);
    else if (strcmp(mode, "zero") == 0)
        fesetround(FE_TOWARDZERO);
    else if (strcmp(mode, "trap") == 0)
        feenableexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
#if defined __x86_64__ || defined __aarch64__
    else if (strcmp(mode, "flush") == 0)
        flush();
#endif
    else if (strcmp(mode, "nearest") != 0)
        exit(2);
}

static int callbacks, wrong;

/* Checks that a callback runs in the default environment, and leaves another one. */
static void spoil(void) {
    callbacks++;
    wrong += fegetround() != FE_TONEAREST || fegetexcept() != 0;
    set_mode("up");
    set_mode("trap");
#if defined __x86_64__ || defined __aarch64__
    set_mode("flush");
#endif
}

static void *allocate(void *context, size_t bytes, void *stream) {
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    (void)context;
    (void)stream;
    spoil();
    return memory;
}

static void release(void *context, void *memory, size_t bytes, void *stream) {
    (void)context;
    (void)bytes;
    (void)stream;
    free(memory);
    spoil();
}

static void log_line(void *context, tarsiaLogLevel_t level, const char *message) {
    (void)context;
    (void)level;
    (void)message;
    spoil();
}

/* Returns all of the environment that a program can see. */
static fenv_t environment(void) {
    fenv_t now;
    memset(&now, 0, sizeof now);
    fegetenv(&now);
#if defined __x86_64__
    /* fegetenv masks the x87 exceptions; fesetenv restores the environment that was read. */
    fesetenv(&now);
#endif
    return now;
}

int main(int count, char **arguments) {
    const int small = getenv("TARSIA_TEST_SMALL") != NULL, repeats = small ? 3 : 300;
    const char *mode = count > 2 ? arguments[1] : "nearest";
    const int before = count > 2 && strcmp(arguments[2], "before") == 0;
    tarsiaHandle_t handle;
    tarsiaPlan_t plan;
    World w;
    fenv_t mine, now;
    uint64_t first, all;

    /* The numbers themselves are made in the default environment; few of their products are normal:
     * values between 2^-700 and 1. */
    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    w = open_world(handle, 700);
    if (!before) {
        plan = spmv_plan(&w, TARSIA_EFFORT_DEFAULT, TARSIA_SPMV_ALG_DEFAULT);
        spmv(&w, plan);
        CHECK(tarsiaPlan_destroy(plan));
    }
    if (strcmp(mode, "callbacks") == 0) {
        /* A new handle, since an allocator must be set before the first plan. */
        CHECK(tarsiaDestroy(handle));
        CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
        w.handle = handle;
        CHECK(tarsiaSetAllocator(handle, allocate, release, NULL));
        CHECK(tarsiaSetLogger(handle, log_line, NULL));
    } else
        set_mode(mode);
    mine = environment();
    all = small ? 0 : all_products(&w);
    plan = spmv_plan(&w, TARSIA_EFFORT_DEFAULT, TARSIA_SPMV_ALG_DEFAULT);
    first = spmv(&w, plan);
    for (int repeat = 0; repeat < repeats; repeat++) {
        if (spmv(&w, plan) != first) {
            fprintf(stderr, "repetition %d has other bits\n", repeat);
            return 3;
        }
        if (!small && repeat % 150 == 0 && all_products(&w) != all) {
            fprintf(stderr, "repetition %d of all products has other bits\n", repeat);
            return 3;
        }
        now = environment();
        if (memcmp(&mine, &now, sizeof mine) != 0) {
            fprintf(stderr, "the environment changed in repetition %d\n", repeat);
            return 4;
        }
    }
    CHECK(tarsiaPlan_destroy(plan));
    close_world(&w);
    CHECK(tarsiaDestroy(handle));
    if (wrong || (strcmp(mode, "callbacks") == 0 && callbacks < (small ? 1 : 100))) {
        fprintf(stderr, "%d of %d callbacks found another environment\n", wrong, callbacks);
        return 5;
    }
    printf("bits %016llx %016llx\n", (unsigned long long)first, (unsigned long long)all);
    return 0;
}
