// Kernels for measurements: flushing L2, and filling operands with values that are not zeros.

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Reads the first `words` 32-bit words (a multiple of 4) of a buffer of zeros, which has more than
// these. The sum is stored behind them only if it is not 0, so nothing is ever written, and yet the
// compiler keeps the reads.
extern "C" __global__ void measure_flush(uint32_t *buffer, uint64_t words) {
    const uint4 *reads = reinterpret_cast<const uint4 *>(buffer);
    uint32_t sum = 0;
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < words / 4; i += stride) {
        const uint4 v = reads[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum != 0)
        buffer[words] = sum;
}

// Fills an array with values in [0.5, 1) that have full mantissas. kind: the bytes of a value,
// 2 (fp16), 4 (fp32) or 8 (fp64), or 3 for bf16.
extern "C" __global__ void measure_fill(void *out, uint64_t elements, uint32_t kind) {
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
        // splitmix64
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        const double v = 0.5 + double(z >> 12) * 0x1p-53;
        if (kind == 2) {
            static_cast<__half *>(out)[i] = __float2half_rz(float(v));
        } else if (kind == 3) {
            static_cast<__nv_bfloat16 *>(out)[i] = __float2bfloat16_rz(float(v));
        } else if (kind == 4) {
            static_cast<float *>(out)[i] = __double2float_rz(v);
        } else {
            static_cast<double *>(out)[i] = v;
        }
    }
}
