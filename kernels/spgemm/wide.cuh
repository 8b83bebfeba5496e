// Windows of columns of rows of the product, a warp's task each.
#pragma once

#include "spgemm/common.cuh"

namespace tarsia::spgemm {

struct Task {
    uint32_t row;
    uint32_t window;
};

// Where the entries of a row of `right` that fall into a window begin: row k has
// `windows` + 1 numbers, counted from the row's start.
struct Starts {
    const uint32_t *data;
    int64_t windows;

    __device__ __forceinline__ const uint32_t *at(int64_t k, int64_t window) const {
        return data + k * (windows + 1) + window;
    }
};

__device__ __forceinline__ bool take_task(const Task *tasks, int64_t count, int64_t &number,
                                          Task &task) {
    number = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5;
    if (number >= count)
        return false;
    task = tasks[number];
    return true;
}

} // namespace tarsia::spgemm
