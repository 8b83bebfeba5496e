/* Two libraries with a function of the same name, of which the first looks for the next one: that
 * is the second one's only if dlsym sees who has called it. With -DSECOND it is the second one. */
#define _GNU_SOURCE
#include <dlfcn.h>

#ifdef SECOND
int marker(void) { return 2; }
#else
int marker(void) { return 1; }

int run(void) {
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "marker");
    return next && next() == 2 ? 0 : 1;
}
#endif
