/* A program that is not linked with cuSPARSE and loads libraries, as an interpreter does. Its
 * arguments are steps that it takes in order:
 *
 * - global FILE: loads FILE by dlopen with RTLD_GLOBAL
 * - local FILE: loads FILE by dlopen with RTLD_LOCAL, as Python loads extensions
 * - run NAME: calls the function int NAME(void) of the library that was loaded last
 * - handle NAME: looks up cuSPARSE's function int NAME(Object) in the library that was loaded last
 *   and calls it, as JAX and Julia do with all functions
 * - default NAME: does the same with the function in the program's global scope
 * - fork: continues in a child, whose exit status this program returns
 * - threads NAME: 8 threads call the function of default NAME, 1,000 times each
 * - quick: ends by _exit, without the functions that run at exit
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Run(void);
typedef int Function(const void *);

static void *found(void *symbol) {
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return symbol;
}

static void *call_often(void *function) {
    Function *call;
    *(void **)&call = function;
    for (int count = 0; count < 1000; ++count) {
        if (call(NULL) != 101)
            exit(4);
    }
    return NULL;
}

int main(int count, char **arguments) {
    void *library = NULL;
    for (int at = 1; at < count; ++at) {
        const char *what = arguments[at];
        if (strcmp(what, "quick") == 0)
            _exit(0);
        if (strcmp(what, "fork") == 0) {
            pid_t child = fork();
            int status = 0;
            if (child) {
                waitpid(child, &status, 0);
                return WEXITSTATUS(status);
            }
            continue;
        }
        const char *name = ++at < count ? arguments[at] : "";
        Run *run;
        Function *function;
        if (strcmp(what, "global") == 0) {
            library = found(dlopen(name, RTLD_NOW | RTLD_GLOBAL));
        } else if (strcmp(what, "local") == 0) {
            library = found(dlopen(name, RTLD_NOW | RTLD_LOCAL));
        } else if (strcmp(what, "run") == 0) {
            *(void **)&run = found(dlsym(library, name));
            if (run())
                return 2;
        } else if (strcmp(what, "threads") == 0) {
            pthread_t threads[8];
            void *symbol = found(dlsym(RTLD_DEFAULT, name));
            for (int thread = 0; thread < 8; ++thread)
                pthread_create(&threads[thread], NULL, call_often, symbol);
            for (int thread = 0; thread < 8; ++thread)
                pthread_join(threads[thread], NULL);
        } else {
            void *scope = strcmp(what, "handle") == 0 ? library : RTLD_DEFAULT;
            dlerror();
            *(void **)&function = found(dlsym(scope, name));
            if (dlerror())
                return 5;
            printf("%s: %d\n", name, function(NULL));
            fflush(stdout);
        }
    }
    return 0;
}
