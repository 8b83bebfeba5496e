// CUB's device-wide algorithms, for analysis. This file is not a fatbin module: it is compiled to a
// host object and linked with the static CUDA runtime, which loads the driver at run time and works
// in the current context.
//
// Each function returns a cudaError_t. With temp NULL it only writes the size that temp must have.
// Element counts are 64-bit, and so are the offsets that CUB computes with.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>

// CUB includes <iostream>, only for whose static initialiser libstdc++ would be needed at run time.
// Defining its include guard leaves it out.
#define _GLIBCXX_IOSTREAM 1

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace {

// Sorts stably by bits [0, bits) of the keys, ascending. The pairs are in the first of the two
// buffers, which are both overwritten; *selected says which of them holds the result.
template <class K, class V>
int sort_pairs(void *temp, size_t *temp_bytes, K *keys_a, K *keys_b, V *values_a, V *values_b,
               int64_t n, int bits, int *selected, void *stream) {
    cub::DoubleBuffer<K> keys(keys_a, keys_b);
    cub::DoubleBuffer<V> values(values_a, values_b);
    const cudaError_t error = cub::DeviceRadixSort::SortPairs(
        temp, *temp_bytes, keys, values, n, 0, bits, static_cast<cudaStream_t>(stream));
    // The selectors of keys and values always agree.
    *selected = keys.selector;
    return error;
}

} // namespace

#define SORT_PAIRS(name, K, V)                                                                     \
    extern "C" int name(void *temp, size_t *temp_bytes, K *keys_a, K *keys_b, V *values_a,         \
                        V *values_b, int64_t n, int bits, int *selected, void *stream) {           \
        return sort_pairs(temp, temp_bytes, keys_a, keys_b, values_a, values_b, n, bits, selected, \
                          stream);                                                                 \
    }
SORT_PAIRS(tarsia_dw_sort_pairs_u32_u32, uint32_t, uint32_t)
SORT_PAIRS(tarsia_dw_sort_pairs_u64_u32, uint64_t, uint32_t)
SORT_PAIRS(tarsia_dw_sort_pairs_u64_u64, uint64_t, uint64_t)

// out[i] = in[0] + … + in[i − 1]; out may be in.
extern "C" int tarsia_dw_exclusive_scan_i64(void *temp, size_t *temp_bytes, const int64_t *in,
                                            int64_t *out, int64_t n, void *stream) {
    return cub::DeviceScan::ExclusiveSum(temp, *temp_bytes, in, out, n,
                                         static_cast<cudaStream_t>(stream));
}
