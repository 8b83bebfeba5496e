// Gathers values into a layout, tests which of the narrower forms of src/format/narrowing.rs hold
// all of an array's values exactly, and converts the array to such a form.

#include <cuda_fp16.h>

#include "common/grid.cuh"
#include "format/bits.cuh"
#include "ptx/launch.cuh"
#include "ptx/warp.cuh"

namespace tarsia::convert {

// Bits of the forms, as in src/format/narrowing.rs.
constexpr uint32_t ONES = 1, HALF = 2, SINGLE = 4;

// Number of values that a thread has in flight.
constexpr int UNROLL = 4;

// Returns the forms that do not hold a value exactly: converted back it would have other bits, or
// it is not finite. `one` has the bits of 1.
__device__ __forceinline__ uint32_t misfits(uint16_t bits, uint16_t one) {
    return bits == one ? 0 : ONES;
}
__device__ __forceinline__ uint32_t misfits(uint32_t bits, uint32_t one) {
    const float half = __half2float(__float2half_rn(__uint_as_float(bits)));
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    return (bits == one ? 0 : ONES) | (finite && __float_as_uint(half) == bits ? 0 : HALF);
}
__device__ __forceinline__ uint32_t misfits(uint64_t bits, uint64_t one) {
    const float single = __double2float_rn(__longlong_as_double(int64_t(bits)));
    // A finite single may still be too large for fp16, which the next test finds.
    const bool finite = (bits >> 52 & 0x7ff) != 0x7ff;
    if (!finite || uint64_t(__double_as_longlong(double(single))) != bits)
        return ONES | HALF | SINGLE;
    return (bits == one ? 0 : ONES) | (misfits(__float_as_uint(single), 0) & HALF);
}

// Sets in `lost` the bits of those `wanted` forms that do not hold all values. A warp stops when no
// form is left.
template <class Value>
__device__ void find_misfits(const Value *values, int64_t count, Value one, uint32_t wanted,
                             uint32_t *lost) {
    const int64_t stride = grid_stride() * UNROLL;
    // Uniform across the warp.
    int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x / WARP * WARP) * UNROLL;
    for (; first < count; first += stride) {
        // Other warps write it; a volatile load reads L2.
        const uint32_t before = *static_cast<volatile const uint32_t *>(lost);
        uint32_t found = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int64_t at = first + u * WARP + threadIdx.x % WARP;
            if (at < count)
                found |= misfits(values[at], one);
        }
        found = __reduce_or_sync(ALL_LANES, found) & wanted;
        const uint32_t known = __reduce_or_sync(ALL_LANES, before);
        if (threadIdx.x % WARP == 0 && (found & ~known) != 0)
            atomicOr(lost, found);
        if ((known | found) == wanted)
            return;
    }
}

__device__ __forceinline__ void narrow_value(double v, float &out) { out = __double2float_rn(v); }
__device__ __forceinline__ void narrow_value(float v, __half &out) { out = __float2half_rn(v); }
__device__ __forceinline__ void narrow_value(double v, __half &out) {
    out = __float2half_rn(__double2float_rn(v));
}

// out[i] = values[i], which the narrower type holds exactly.
template <class Value, class Narrow>
__device__ void narrow_values(const Value *values, int64_t count, Narrow *out) {
    const int64_t stride = grid_stride();
#pragma unroll 4
    for (int64_t i = first_item(); i < count; i += stride)
        narrow_value(values[i], out[i]);
}

// out[i] = values[positions[i]], conjugated if `conjugate` is not 0. A NULL `positions` stands for
// 0, 1, 2, …; a position of all ones is padding, whose value is 0.
template <class Value, class Position>
__device__ void gather_values(const Value *values, const Position *positions, int64_t count,
                              int conjugate, Value *out) {
#pragma unroll 4
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        const Position position = positions ? positions[i] : Position(i);
        Value v = {};
        if (position != Position(-1)) {
            v = values[position];
            v = conjugate ? conjugate_bits(v) : v;
        }
        out[i] = v;
    }
}

// out[slots[i]] = values[i]
template <class Value>
__device__ void scatter_values(const Value *values, const uint64_t *slots, int64_t count,
                               Value *out) {
    for (int64_t i = first_item(); i < count; i += grid_stride())
        out[slots[i]] = values[i];
}

} // namespace tarsia::convert

using namespace tarsia;
using namespace tarsia::convert;

#define GLOBAL extern "C" __global__ void

// Grid: any number of blocks of whole warps.
#define KERNEL_misfits(name, bits)                                                                 \
    GLOBAL name(const uint##bits##_t *values, int64_t count, uint64_t one, uint32_t wanted,        \
                uint32_t *lost) {                                                                  \
        let_next_begin();                                                                          \
        find_misfits(values, count, uint##bits##_t(one), wanted, lost);                            \
        end_after_previous();                                                                      \
    }
KERNELS(misfits, (), (misfits_16, 16), (misfits_32, 32), (misfits_64, 64))

#define FLOAT_16 __half
#define FLOAT_32 float
#define FLOAT_64 double
#define KERNEL_narrow(name, from, to)                                                              \
    GLOBAL name(const FLOAT_##from *values, int64_t count, FLOAT_##to *out) {                      \
        narrow_values(values, count, out);                                                         \
    }
KERNELS(narrow, (), (narrow_64_32, 64, 32), (narrow_64_16, 64, 16), (narrow_32_16, 32, 16))

// P: bits of positions.
#define KERNEL_gather(name, bits, P)                                                               \
    GLOBAL name(const BITS_##bits *values, const uint##P##_t *positions, int64_t count,            \
                int conjugate, BITS_##bits *out) {                                                 \
        gather_values(values, positions, count, conjugate, out);                                   \
    }
KERNELS(gather, (), (gather_values_16_u32, 16, 32), (gather_values_32_u32, 32, 32),
        (gather_values_64_u32, 64, 32), (gather_values_32x2_u32, 32x2, 32),
        (gather_values_64x2_u32, 64x2, 32), (gather_values_16_u64, 16, 64),
        (gather_values_32_u64, 32, 64), (gather_values_64_u64, 64, 64),
        (gather_values_32x2_u64, 32x2, 64), (gather_values_64x2_u64, 64x2, 64))

#define KERNEL_scatter(name, bits)                                                                 \
    GLOBAL name(const uint##bits##_t *values, const uint64_t *slots, int64_t count,                \
                uint##bits##_t *out) {                                                             \
        scatter_values(values, slots, count, out);                                                 \
    }
KERNELS(scatter, (), (scatter_values_16, 16), (scatter_values_32, 32), (scatter_values_64, 64))
