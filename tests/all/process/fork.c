/* A process that has used the library makes 30 children by fork().
 *
 *   fork host    each child uses its parent's handle and plan, and makes its own; the same bits
 *   fork cuda    in each child the parent's handle and plan are refused by name, nothing hangs, and
 *                the host backend works; the parent goes on as before
 */
#define _DEFAULT_SOURCE
#include "products.h"

#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 30 };

/* Checks that the call has failed with this status and with this word in its text. */
static void refused(tarsiaStatus_t status, tarsiaStatus_t expected, const char *word,
                    const char *call) {
    tarsiaGetLastErrorMessage(last_message, sizeof last_message);
    if (status == expected && strstr(last_message, word))
        return;
    fprintf(stderr, "%s: %s: %s; expected %s and `%s`\n", call, tarsiaGetErrorName(status),
            last_message, tarsiaGetErrorName(expected), word);
    exit(1);
}
#define REFUSED(call, status, word) refused((call), (status), (word), #call)

/* Runs the checks of a child, whose exit code is 0 if all is right. */
static void host_child(const World *w, tarsiaPlan_t plan, uint64_t expected, uint64_t all,
                       int number) {
    World own;
    tarsiaHandle_t handle;
    if (spmv(w, plan) != expected)
        exit(3);
    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    own = open_world(handle, 0);
    if (number % 10 == 0 ? all_products(&own) != all : spmm(&own, TARSIA_SPMM_ALG_ROW) == 0)
        exit(4);
    close_world(&own);
    CHECK(tarsiaPlan_destroy(plan));
    CHECK(tarsiaDestroy(handle));
}

static void cuda_child(const World *w, tarsiaPlan_t plan) {
    const double one = 1, zero = 0;
    tarsiaHandle_t handle;
    void *array;
    World own;
    REFUSED(tarsiaSpMV(w->handle, plan, &one, w->x_descr, &zero, w->y_descr),
            TARSIA_STATUS_INVALID_STATE, "fork");
    REFUSED(tarsiaSynchronize(w->handle), TARSIA_STATUS_INVALID_STATE, "fork");
    REFUSED(tarsiaMalloc(w->handle, &array, 100), TARSIA_STATUS_INVALID_STATE, "fork");
    REFUSED(tarsiaPlan_destroy(plan), TARSIA_STATUS_INVALID_STATE, "fork");
    REFUSED(tarsiaDestroy(w->handle), TARSIA_STATUS_INVALID_STATE, "fork");
    REFUSED(tarsiaCreate(&handle), TARSIA_STATUS_INVALID_STATE, "fork");
    CHECK(tarsiaCreateWithBackend(&handle, TARSIA_BACKEND_HOST, 0));
    own = open_world(handle, 0);
    spmm(&own, TARSIA_SPMM_ALG_ROW);
    close_world(&own);
    CHECK(tarsiaDestroy(handle));
}

int main(int count, char **arguments) {
    const int cuda = count > 1 && strcmp(arguments[1], "cuda") == 0;
    tarsiaHandle_t handle;
    tarsiaPlan_t plan;
    World w;
    pid_t children[CHILDREN];
    uint64_t expected, all;
    int failed = 0;

    CHECK(tarsiaCreateWithBackend(&handle, cuda ? TARSIA_BACKEND_CUDA : TARSIA_BACKEND_HOST, 0));
    w = open_world(handle, 0);
    plan = spmv_plan(&w, TARSIA_EFFORT_DEFAULT, TARSIA_SPMV_ALG_DEFAULT);
    expected = spmv(&w, plan);
    all = cuda ? 0 : all_products(&w);
    for (int i = 0; i < CHILDREN; i++) {
        /* Some children are made while the library's threads spin, some when they sleep. */
        if (i % 3 == 0)
            usleep(30000);
        else if (spmv(&w, plan) != expected)
            return 5;
        fflush(NULL);
        children[i] = fork();
        if (children[i] < 0) {
            perror("fork");
            return 2;
        }
        if (children[i] == 0) {
            /* A child that hangs is killed by this signal. */
            alarm(300);
            if (cuda)
                cuda_child(&w, plan);
            else
                host_child(&w, plan, expected, all, i);
            _exit(0);
        }
        /* Half of the children run at the same time as their siblings. */
        if (i % 2 == 1) {
            for (int j = i - 1; j <= i; j++) {
                int status;
                if (waitpid(children[j], &status, 0) != children[j] || status != 0) {
                    fprintf(stderr, "child %d: wait status %#x\n", j, (unsigned)status);
                    failed++;
                }
            }
        }
    }
    if (spmv(&w, plan) != expected)
        failed++;
    CHECK(tarsiaPlan_destroy(plan));
    close_world(&w);
    CHECK(tarsiaDestroy(handle));
    printf("%d children, %d failed\n", CHILDREN, failed);
    return failed != 0;
}
