/* The host backend where threads cannot be made.
 *
 *   threads refused    pthread_create fails: the library's calls reach the one of this program
 *   threads memory     RLIMIT_AS leaves no room for a thread's stack
 *   threads number     only prints the library's warnings, for values of TARSIA_NUM_THREADS
 *
 * Products are right with and without threads, one warning tells, and a later call makes them.
 */
#define _GNU_SOURCE
#include "products.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

static int refuse, asked, made;

/* Replaces the C library's function, also for the shared library: it is exported (-rdynamic). */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int code;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    asked++;
    if (refuse)
        return EAGAIN;
    code = real(thread, attributes, start, argument);
    made += code == 0;
    return code;
}

static int warnings;

static void log_line(void *context, tarsiaLogLevel_t level, const char *message) {
    (void)context;
    if (level == TARSIA_LOG_WARNING) {
        warnings++;
        printf("warning: %s\n", message);
    }
}

/* Returns the bytes of address space in use. */
static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        exit(2);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    const int memory = strcmp(mode, "memory") == 0;
    struct rlimit limit;
    tarsiaHandle_t handle;
    World w;
    uint64_t alone, again;

    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    CHECK(tarsiaSetLogger(handle, log_line, NULL));
    w = open_world(handle, 0);
    if (strcmp(mode, "number") == 0) {
        tarsiaPlan_t plan = spmv_plan(&w, TARSIA_EFFORT_DEFAULT, TARSIA_SPMV_ALG_DEFAULT);
        printf("bits %016llx\n", (unsigned long long)spmv(&w, plan));
        CHECK(tarsiaPlan_destroy(plan));
        close_world(&w);
        CHECK(tarsiaDestroy(handle));
        printf("%d warnings\n", warnings);
        return 0;
    }
    if (memory) {
        /* The heap grows beforehand by the memory of one product, and keeps it. */
        void *room = malloc(1 << 26);
        if (!room || getrlimit(RLIMIT_AS, &limit) != 0)
            return 2;
        memset(room, 1, 1 << 26);
        limit.rlim_cur = address_space() + (1 << 20);
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            return 2;
        free(room);
        /* Less than a stack's 2 MiB, more than what a small product allocates. */
        limit.rlim_cur = address_space() + (1 << 20);
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            return 2;
        {
            /* The plan of a small matrix: 100 rows of the large one. */
            const double one = 1, zero = 0;
            tarsiaPlan_t plan;
            tarsiaSpMatDescr_t A;
            tarsiaDnVecDescr_t y;
            CHECK(tarsiaCreateCsr(&A, 100, ROWS, 100 * PER_ROW, w.offsets, w.columns, w.values,
                                  TARSIA_INDEX_32I, TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ZERO,
                                  TARSIA_R_64F));
            CHECK(tarsiaCreateDnVec(&y, 100, w.y, TARSIA_R_64F));
            CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, A,
                                        TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                        TARSIA_SPMV_ALG_DEFAULT));
            CHECK(tarsiaPlan_analyze(handle, plan));
            CHECK(tarsiaSpMV(handle, plan, &one, w.x_descr, &zero, y));
            CHECK(tarsiaPlan_destroy(plan));
            CHECK(tarsiaDestroySpMat(A));
            CHECK(tarsiaDestroyDnVec(y));
        }
        if (asked == 0 || made != 0) {
            fprintf(stderr, "%d threads asked for and %d made under the limit\n", asked, made);
            return 3;
        }
        alone = 0;
    } else {
        refuse = 1;
        alone = all_products(&w);
        if (asked == 0 || made != 0) {
            fprintf(stderr, "%d threads asked for and %d made while refused\n", asked, made);
            return 3;
        }
    }
    if (warnings != 1) {
        fprintf(stderr, "%d warnings\n", warnings);
        return 4;
    }
    /* Threads can be made again. */
    refuse = 0;
    if (memory) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            return 2;
    }
    usleep(200000);
    again = all_products(&w);
    if (made == 0 || (!memory && again != alone)) {
        fprintf(stderr, "%d threads made; bits %016llx, alone %016llx\n", made,
                (unsigned long long)again, (unsigned long long)alone);
        return 5;
    }
    close_world(&w);
    CHECK(tarsiaDestroy(handle));
    printf("%d warnings\n", warnings);
    return 0;
}
