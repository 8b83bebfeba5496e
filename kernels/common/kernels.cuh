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
// build/kernel_names.rs reads the lists of a file and of the headers that it includes;
// src/backend/cuda/module.rs finds a kernel by its file, its kind and its arguments.
#pragma once

#define KERNEL(name, kind, ...) KERNEL_##kind(name, __VA_ARGS__)
#define KERNELS(kind, first, ...) KERNELS_20(KERNELS_NEXT(kind, first, __VA_ARGS__))

// Calls a macro with arguments that are themselves macros which expand to several arguments.
#define KERNEL_OF(macro, ...) macro(__VA_ARGS__)

// A macro is not expanded inside itself: KERNELS_NEXT leaves a call of itself behind, and
// KERNELS_20 rescans its output some 20 times, which is enough for as many kernels.
#define KERNELS_NEXT(kind, first, own, ...)                                                        \
    KERNELS_ONE(kind, KERNELS_NAME own KERNELS_FIRST first KERNELS_LAST own)                       \
    __VA_OPT__(KERNELS_AGAIN KERNELS_CALL(kind, first, __VA_ARGS__))
#define KERNELS_ONE(kind, ...) KERNEL_##kind(__VA_ARGS__)
#define KERNELS_NAME(name, ...) name
#define KERNELS_FIRST(...) __VA_OPT__(, __VA_ARGS__)
#define KERNELS_LAST(name, ...) __VA_OPT__(, __VA_ARGS__)
#define KERNELS_AGAIN() KERNELS_NEXT
#define KERNELS_CALL ()
#define KERNELS_20(...) KERNELS_5(KERNELS_5(KERNELS_5(KERNELS_5(__VA_ARGS__))))
#define KERNELS_5(...) KERNELS_1(KERNELS_1(KERNELS_1(KERNELS_1(__VA_ARGS__))))
#define KERNELS_1(...) __VA_ARGS__
