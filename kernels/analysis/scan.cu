// Prefix sums of few numbers by one block, for analysis.

#include "common/block.cuh"

// Replaces numbers by their exclusive prefix sums; the last one may be any number. One block of
// 1,024 threads, count > 0.
extern "C" __global__ void __launch_bounds__(1024) scan_few(int64_t *numbers, int64_t count) {
    tarsia::scan_array(numbers, count - 1, numbers + count - 1);
}
