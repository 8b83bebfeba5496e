// Rows of the left factor cut into parts of few entries, so that warps take the factors of a long
// row side by side: A = S · A', where the rows of A' are the parts of the rows of A, and S has a
// one for each part in the row that it is of. A' has the columns and values of A, and other
// offsets. Then C = S · (A' · B).
#include "spgemm/common.cuh"

using namespace tarsia;
using namespace tarsia::spgemm;

namespace {

// Parts of a row of so many entries: one, or where it is longer than `longest` as many as it has
// `part` entries.
__device__ __forceinline__ int64_t parts_of(int64_t entries, int64_t longest, int64_t part) {
    return entries > longest ? (entries + part - 1) / part : 1;
}

} // namespace

// counts[i] = parts of row i.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_counts(Ints offsets, int64_t rows, int64_t longest, int64_t part, int64_t *counts) {
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < rows;
         row += static_cast<int64_t>(gridDim.x) * blockDim.x)
        counts[row] = parts_of(offsets[row + 1] - offsets[row], longest, part);
}

// first[i] is the first part of row i, first[rows] the number of all. Writes the offsets of the
// parts, their numbers, which are the columns of S, and the ones: values of `words` words, of which
// a real number has the first `real_words`. A warp a row.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_cut_fill(Ints offsets, int64_t rows, int64_t part, const int64_t *first,
                    int64_t *cut_offsets, int32_t *numbers, int32_t real_words, int32_t words,
                    uint32_t *ones) {
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
    const int64_t warp = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    for (int64_t row = warp; row < rows; row += warps) {
        const int64_t begin = offsets[row], from = first[row], to = first[row + 1];
        for (int64_t number = from + lane_id(); number < to; number += 32) {
            cut_offsets[number] = begin + (number - from) * part;
            numbers[number] = static_cast<int32_t>(number);
            // The last word of a 1 in IEEE 754; all others are 0.
            for (int word = 0; word < words; ++word)
                ones[number * words + word] = word + 1 != real_words ? 0u
                                              : real_words == 1      ? 0x3f800000u
                                                                     : 0x3ff00000u;
        }
        if (row == rows - 1 && lane_id() == 0)
            cut_offsets[to] = offsets[rows];
    }
}
