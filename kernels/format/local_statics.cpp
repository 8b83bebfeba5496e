// Functions that a compiler calls to initialise local statics once. The headers of device_wide.cu
// have a few such statics; with these definitions the library does not need libstdc++ for them. The
// guard has the layout of the Itanium C++ ABI: its first byte says that the object is initialised;
// the second is our lock.

#include <cstdint>
#include <sched.h>

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

HIDDEN int __cxa_guard_acquire(uint64_t *guard) {
    auto *done = reinterpret_cast<uint8_t *>(guard);
    uint8_t *busy = done + 1;
    while (__atomic_exchange_n(busy, 1, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    if (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
        return 1;
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
    return 0;
}

HIDDEN void __cxa_guard_release(uint64_t *guard) {
    auto *done = reinterpret_cast<uint8_t *>(guard);
    __atomic_store_n(done, 1, __ATOMIC_RELEASE);
    __atomic_store_n(done + 1, 0, __ATOMIC_RELEASE);
}
