/* tarsiaSetNumThreads and tarsiaGetNumThreads on the host backend.
 *
 * The program counts the threads that the library makes, asks for other numbers between products,
 * while other threads compute, from inside callbacks and in a child of fork, and compares all bits.
 */
#define _GNU_SOURCE
#include "products.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int made;

/* Replaces the C library's function, also for the shared library: it is exported (-rdynamic). */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    made++;
    return real(thread, attributes, start, argument);
}

static void expect(long found, long expected, const char *what) {
    if (found == expected)
        return;
    fprintf(stderr, "%s: %ld, expected %ld\n", what, found, expected);
    exit(3);
}

static int threads(void) {
    int n = -1;
    CHECK(tarsiaGetNumThreads(&n));
    return n;
}

/* Returns a hash of the bits of products by slices, which analysis makes. */
static uint64_t products_of(const World *w) {
    tarsiaPlan_t plan = spmv_plan(w, TARSIA_EFFORT_DEFAULT, TARSIA_SPMV_ALG_SELL);
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits = bits * 31 + spmv(w, plan);
    CHECK(tarsiaPlan_destroy(plan));
    return bits;
}

/* Returns such a hash of a new world, and the number of threads that were made meanwhile. */
static uint64_t products(int *new_threads) {
    tarsiaHandle_t handle;
    const int before = made;
    World w;
    uint64_t bits;
    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    w = open_world(handle, 0);
    bits = products_of(&w);
    close_world(&w);
    CHECK(tarsiaDestroy(handle));
    *new_threads = made - before;
    return bits;
}

static uint64_t expected;

static void *compute(void *unused) {
    int ignored;
    (void)unused;
    for (int round = 0; round < 6; round++)
        if (products(&ignored) != expected) {
            fprintf(stderr, "other bits while the number of threads changed\n");
            exit(4);
        }
    return NULL;
}

static atomic_int inside;

/* Changes the number of threads between steps of the call that allocates. */
static void *allocate(void *context, size_t bytes, void *stream) {
    void *out = NULL;
    (void)context, (void)stream;
    CHECK(tarsiaSetNumThreads(1 + inside++ % 4));
    expect(threads() >= 1 && threads() <= 4, 1, "threads in a callback");
    return posix_memalign(&out, 256, bytes) == 0 ? out : NULL;
}

static void release(void *context, void *memory, size_t bytes, void *stream) {
    (void)bytes;
    (void)context, (void)stream;
    free(memory);
}

int main(void) {
    int new_threads, status;
    pthread_t computing[2];
    tarsiaHandle_t handle;
    World w;
    pid_t child;

    expect(threads(), 3, "TARSIA_NUM_THREADS");
    expect(made, 0, "threads before anybody computes");
    CHECK(tarsiaSetNumThreads(1));
    expect(threads(), 1, "one thread");
    expected = products(&new_threads);
    expect(new_threads, 0, "threads that one thread needs");

    /* A pool of four and three helpers. */
    CHECK(tarsiaSetNumThreads(4));
    expect(threads(), 4, "four threads");
    expect(products(&new_threads) == expected, 1, "bits with four threads");
    expect(new_threads, 4 + 3, "threads made for four");
    CHECK(tarsiaSetNumThreads(2));
    expect(products(&new_threads) == expected, 1, "bits with two threads");
    expect(new_threads, 2 + 1, "threads made for two");
    CHECK(tarsiaSetNumThreads(4));
    expect(products(&new_threads) == expected, 1, "bits with four threads again");
    expect(new_threads, 0, "threads made for four again");

    /* The default, and numbers that are refused or reduced. */
    CHECK(tarsiaSetNumThreads(0));
    expect(threads(), 3, "the default again");
    expect(products(&new_threads) == expected, 1, "bits with the default");
    expect(new_threads, 3 + 2, "threads made for the default");
    expect(tarsiaSetNumThreads(-1), TARSIA_STATUS_INVALID_VALUE, "a negative number");
    expect(tarsiaSetNumThreads(INT_MIN), TARSIA_STATUS_INVALID_VALUE, "a negative number");
    expect(tarsiaGetNumThreads(NULL), TARSIA_STATUS_INVALID_VALUE, "a NULL pointer");
    expect(threads(), 3, "threads after what was refused");
    CHECK(tarsiaSetNumThreads(INT_MAX));
    {
        const long cores = sysconf(_SC_NPROCESSORS_ONLN), most = 4 * cores > 64 ? 4 * cores : 64;
        if (threads() < 64 || threads() > most) {
            fprintf(stderr, "%d threads are the most, of %ld cores\n", threads(), cores);
            return 5;
        }
    }

    /* While other threads compute. */
    for (int i = 0; i < 2; i++)
        if (pthread_create(&computing[i], NULL, compute, NULL) != 0)
            return 6;
    for (int round = 0; round < 2000; round++) {
        CHECK(tarsiaSetNumThreads(round % 5));
        usleep(200);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(computing[i], NULL);

    /* From inside a callback. */
    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    CHECK(tarsiaSetAllocator(handle, allocate, release, NULL));
    w = open_world(handle, 0);
    expect(products_of(&w) == expected, 1, "bits with numbers from callbacks");
    close_world(&w);
    CHECK(tarsiaDestroy(handle));
    if (inside < 4) {
        fprintf(stderr, "the allocator was called %d times\n", inside);
        return 7;
    }

    /* In a child of fork. */
    CHECK(tarsiaSetNumThreads(2));
    child = fork();
    if (child == 0) {
        expect(threads(), 2, "threads of a child");
        expect(products(&new_threads) == expected, 1, "bits of a child");
        expect(new_threads, 2 + 1, "threads made by a child");
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return 8;
    puts("done");
    return 0;
}
