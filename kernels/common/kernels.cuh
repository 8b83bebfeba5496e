// Lists of kernels with their full names, which both the compiler and the library's build read.
//
// A kernel without variants is written out: extern "C" __global__ void its_name(…). For a kernel
// with variants, a macro KERNEL_<kind>(name, arguments…) generates the code, and a list gives the
// name and the arguments of each variant:
//
//     KERNEL(name, kind, arguments…)
//     KERNELS(kind, (first arguments…), (name, last arguments…), (name, last arguments…), …)
//
// KERNELS is short for several KERNELs of one kind with the same first arguments.
//
// The driver unpacks and loads a whole image when its first kernel is needed, which took 20 ms for
// the 303 kernels of spmm/row.cu (H200). So a file with a large image has #define KERNELS_BY_FIRST
// in front of its first include: the build makes an image of the kernels of each first argument,
// and defines KERNELS_IN_<first argument> for the one that it compiles. Such a file has only
// kernels with variants.
#pragma once

#define KERNEL(name, kind, ...) KERNELS_ONE(kind, name, __VA_ARGS__)
#define KERNELS(kind, first, ...) KERNELS_20(KERNELS_NEXT(kind, first, __VA_ARGS__))

// Calls a macro with arguments that are themselves macros which expand to several arguments.
#define KERNEL_OF(macro, ...) macro(__VA_ARGS__)

// A macro is not expanded inside itself: KERNELS_NEXT leaves a call of itself behind, and
// KERNELS_20 rescans its output some 20 times, which is enough for as many kernels.
#define KERNELS_NEXT(kind, first, own, ...)                                                        \
    KERNELS_ONE(kind, KERNELS_NAME own KERNELS_FIRST first KERNELS_LAST own)                       \
    __VA_OPT__(KERNELS_AGAIN KERNELS_CALL(kind, first, __VA_ARGS__))
#ifdef KERNELS_BY_FIRST
#define KERNELS_ONE(kind, ...) KERNELS_CHOOSE(kind, __VA_ARGS__)
#else
#define KERNELS_ONE(kind, ...) KERNEL_##kind(__VA_ARGS__)
#endif
// KERNELS_IN_<first> expands to `~, 1` in its own image, so that KERNELS_SECOND returns 1. In other
// images the name is undefined and counts as one argument, and KERNELS_SECOND returns the 0 behind
// it.
#define KERNELS_CHOOSE(kind, name, first, ...)                                                     \
    KERNELS_MAKE(KERNELS_SECOND(KERNELS_IN_##first, 0, ~))                                         \
    (kind, name, first __VA_OPT__(, ) __VA_ARGS__)
#define KERNELS_SECOND(...) KERNELS_SECOND_OF(__VA_ARGS__)
#define KERNELS_SECOND_OF(first, second, ...) second
#define KERNELS_MAKE(is_wanted) KERNELS_MAKE_OF(is_wanted)
#define KERNELS_MAKE_OF(is_wanted) KERNELS_MAKE_##is_wanted
#define KERNELS_MAKE_0(...)
#define KERNELS_MAKE_1(kind, ...) KERNEL_##kind(__VA_ARGS__)
#define KERNELS_NAME(name, ...) name
#define KERNELS_FIRST(...) __VA_OPT__(, __VA_ARGS__)
#define KERNELS_LAST(name, ...) __VA_OPT__(, __VA_ARGS__)
#define KERNELS_AGAIN() KERNELS_NEXT
#define KERNELS_CALL ()
#define KERNELS_20(...) KERNELS_5(KERNELS_5(KERNELS_5(KERNELS_5(__VA_ARGS__))))
#define KERNELS_5(...) KERNELS_1(KERNELS_1(KERNELS_1(KERNELS_1(__VA_ARGS__))))
#define KERNELS_1(...) __VA_ARGS__
