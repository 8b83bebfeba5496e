// Prefix sums of few numbers by one block.

#include "common/block.cuh"

// Replaces numbers by their exclusive prefix sums; the last one may be any number. One block of
// 1,024 threads, for numbers that are so few that the launches of a scan by all multiprocessors
// take longer (SCANNED_BY_A_BLOCK in src/backend/cuda/convert/device_wide.rs).
extern "C" __global__ void __launch_bounds__(1024) scan_few(int64_t *numbers, int64_t count) {
    tarsia::scan_in_block(count, numbers, [&](int64_t i) { return numbers[i]; });
}
