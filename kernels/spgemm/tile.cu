// C = A · B on sparse tiles of 16 × 16 (src/format/tile.rs), in the three steps of Niu et al.,
// TileSpGEMM (PPoPP 2022), section 3.3: the tiles of C, the entries of these tiles, and the values.
// In the second and third step a warp takes a tile of C; the tiles of A in its row of tiles are
// matched with those of B in its column of tiles by binary searches of the shorter list in the
// longer. Where the paper adds by atomics, every sum here is computed by one lane or by a matrix
// unit, in a fixed order.
#include "spgemm/tile.cuh"

using namespace tarsia;
using namespace tarsia::tile;

// Adds to totals[0] and [1] the sums of the low and high halves of the multiplications of `left` by
// `right`, entry by entry of `left`.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_tile_products(spgemm::Factor left, spgemm::Factor right, int64_t count,
                         unsigned long long *totals) {
    __shared__ unsigned long long of_warps[32];
    unsigned long long low = 0, high = 0;
    for (int64_t at = first_item(); at < count; at += grid_stride()) {
        const int64_t k = left.column(at);
        const unsigned long long length = right.start(k + 1) - right.start(k);
        low += length & 0xffffffffu;
        high += length >> 32;
    }
    spgemm::add_halves(low, high, of_warps, totals);
}

// Step 1: the tiles of C. A block takes a row of tiles of C; `lanes` threads (a power of two up to
// 32) take one tile of A and go through the tiles in B's row. Dynamic shared memory: `bits` / 64
// words, and to fill tiles as many ranks.

namespace {

struct Span {
    int64_t begin, end, low, last;
};

__device__ __forceinline__ Span span_of(const int64_t *a_rows, const uint32_t *a_columns,
                                        const int64_t *b_rows, const uint32_t *b_columns,
                                        int64_t *of_warps) {
    Span span{a_rows[blockIdx.x], a_rows[blockIdx.x + 1], INT64_MAX, -1};
    for (int64_t at = span.begin + threadIdx.x; at < span.end; at += blockDim.x) {
        const int64_t begin = b_rows[a_columns[at]], end = b_rows[a_columns[at] + 1];
        if (begin < end) {
            span.low = min(span.low, int64_t(b_columns[begin]));
            span.last = max(span.last, int64_t(b_columns[end - 1]));
        }
    }
    block_extent(span.low, span.last, of_warps);
    return span;
}

__device__ __forceinline__ void collect(const Span &span, const uint32_t *a_columns,
                                        const int64_t *b_rows, const uint32_t *b_columns, int lanes,
                                        int64_t low, int64_t width, const Set &set) {
    set.clear(static_cast<int>((width + 63) / 64));
    __syncthreads();
    const int group = threadIdx.x / lanes, inner = threadIdx.x % lanes;
    for (int64_t at = span.begin + group; at < span.end; at += blockDim.x / lanes) {
        const int64_t k = a_columns[at], end = b_rows[k + 1];
        for (int64_t i = b_rows[k] + inner; i < end; i += lanes) {
            const int64_t column = b_columns[i] - low;
            if (column >= 0 && column < width)
                set.insert(static_cast<int>(column));
        }
    }
    __syncthreads();
}

} // namespace

// counts[i] = number of tiles in row i of tiles of C.
extern "C" __global__ void __launch_bounds__(BLOCK)
    spgemm_tile_count(const int64_t *a_rows, const uint32_t *a_columns, const int64_t *b_rows,
                      const uint32_t *b_columns, int32_t lanes, int32_t bits, int64_t *counts) {
    __shared__ int64_t of_warps[32];
    const Span span = span_of(a_rows, a_columns, b_rows, b_columns, of_warps);
    count_columns(span.low, span.last, bits, of_warps, counts,
                  [&](int64_t low, int64_t width, const Set &set) {
                      collect(span, a_columns, b_rows, b_columns, lanes, low, width, set);
                  });
}

// Writes the tile column and tile row of each tile of C.
extern "C" __global__ void __launch_bounds__(BLOCK)
    spgemm_tile_fill(const int64_t *a_rows, const uint32_t *a_columns, const int64_t *b_rows,
                     const uint32_t *b_columns, int32_t lanes, int32_t bits, const int64_t *c_rows,
                     uint32_t *c_columns, uint32_t *tile_rows) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int64_t wide_parts[32];
    __shared__ int of_warps[32];
    const Set set{reinterpret_cast<unsigned long long *>(memory),
                  reinterpret_cast<unsigned *>(memory + bits / 8)};
    const Span span = span_of(a_rows, a_columns, b_rows, b_columns, wide_parts);
    int64_t tile = c_rows[blockIdx.x];
    for (int64_t low = span.low; low <= span.last; low += bits) {
        const int64_t width = min(int64_t(bits), span.last - low + 1);
        const int used = static_cast<int>((width + 63) / 64);
        collect(span, a_columns, b_rows, b_columns, lanes, low, width, set);
        const int found = set.number(used, of_warps);
        set.each(used, [&](int rank, int element) {
            c_columns[tile + rank] = static_cast<uint32_t>(low + element);
            tile_rows[tile + rank] = blockIdx.x;
        });
        tile += found;
        __syncthreads();
    }
}

namespace {

// Warps of a block in steps 2 and 3.
constexpr int WARPS = 4;

// Matching tiles of A in row i of tiles and of B in column j of tiles: an iterator over 32
// candidates at a time, one per lane, in the order of A's columns. All lanes of a warp go through
// it together.
struct Pairs {
    const uint32_t *shorter, *longer, *tiles;
    const uint32_t *a_used, *b_used;
    int64_t a_begin;
    int count, size, first, from;
    bool few;
    // Lanes whose tiles may have products, and the tiles of this lane.
    unsigned matches;
    uint32_t a_tile, b_tile;

    __device__ __forceinline__ Pairs(const Tiles &a, const Tiles &b, const TileColumns &by,
                                     int64_t i, int64_t j) {
        const int64_t b_begin = by.starts[j];
        a_begin = a.rows[i];
        const int a_count = static_cast<int>(a.rows[i + 1] - a_begin);
        const int b_count = static_cast<int>(by.starts[j + 1] - b_begin);
        few = a_count <= b_count;
        shorter = few ? a.columns + a_begin : by.rows + b_begin;
        longer = few ? by.rows + b_begin : a.columns + a_begin;
        count = few ? a_count : b_count;
        size = few ? b_count : a_count;
        tiles = by.tiles + b_begin;
        a_used = a.used;
        b_used = b.used;
        first = from = 0;
        matches = 0;
    }

    // Advances to the next candidates with matches; returns false if there are none.
    __device__ __forceinline__ bool next() {
        // The longer list's elements before `from` are less than all that follow.
        for (; first < count && from < size; first += 32) {
            const int at = first + lane_id();
            const bool mine = at < count;
            const uint32_t key = mine ? shorter[at] : 0xffffffffu;
            int low = from, high = size;
            // Guesses the position, which is right for lists without gaps.
            const int guess = min(from + lane_id(), size - 1);
            const uint32_t there = longer[guess];
            if (there == key) {
                low = high = guess;
            } else if (there < key) {
                low = guess + 1;
            } else {
                high = guess;
            }
            while (low < high) {
                const int middle = (low + high) >> 1;
                if (longer[middle] < key) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            bool found = mine && low < size && longer[low] == key;
            if (found) {
                a_tile = static_cast<uint32_t>(a_begin + (few ? at : low));
                b_tile = tiles[few ? low : at];
                // Tests whether A's tile has an entry in a column that is a used row of B's tile.
                found = ((a_used[a_tile] >> 16) & b_used[b_tile]) != 0;
            }
            from = __shfl_sync(ALL_LANES, low, 31);
            matches = __ballot_sync(ALL_LANES, found);
            if (matches != 0) {
                first += 32;
                return true;
            }
        }
        return false;
    }

    // Takes the tiles of the first match and removes it.
    __device__ __forceinline__ void pop(int64_t &a, int64_t &b) {
        const int lane = __ffs(matches) - 1;
        matches &= matches - 1;
        a = __shfl_sync(ALL_LANES, a_tile, lane);
        b = __shfl_sync(ALL_LANES, b_tile, lane);
    }
};

} // namespace

// Step 2: computes the row masks of the tiles of C, and counts[t] = number of entries of tile t.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 12)
    spgemm_tile_masks(Tiles a, Tiles b, TileColumns by, const uint32_t *tile_rows,
                      const uint32_t *columns, int64_t count, uint16_t *masks, uint32_t *counts) {
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * WARPS + (threadIdx.x >> 5);
    if (tile >= count)
        return;
    const int row = lane_id() % SIDE, half = lane_id() / SIDE;
    unsigned mask = 0;
    Pairs pairs(a, b, by, tile_rows[tile], columns[tile]);
    while (pairs.next()) {
        // Two pairs at a time, one per half of the warp; the last one of an odd number is taken
        // twice.
        while (pairs.matches != 0) {
            int64_t at, bt, other_a, other_b;
            pairs.pop(at, bt);
            other_a = at;
            other_b = bt;
            if (pairs.matches != 0)
                pairs.pop(other_a, other_b);
            at = half ? other_a : at;
            const uint16_t *met = b.masks + (half ? other_b : bt) * SIDE;
            for (unsigned own = a.masks[at * SIDE + row]; own != 0; own &= own - 1)
                mask |= met[__ffs(own) - 1];
        }
        // A full tile cannot gain entries.
        if (__all_sync(ALL_LANES, (mask | __shfl_xor_sync(ALL_LANES, mask, SIDE)) == 0xffff))
            break;
    }
    mask |= __shfl_xor_sync(ALL_LANES, mask, SIDE);
    if (half == 0)
        masks[tile * SIDE + row] = static_cast<uint16_t>(mask);
    const unsigned entries = __reduce_add_sync(ALL_LANES, half == 0 ? __popc(mask) : 0);
    if (lane_id() == 0)
        counts[tile] = entries;
}

// flags[t] = 1 if tile t has entries, for a scan; one 0 behind the last tile.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_tile_flags(const uint32_t *counts, int64_t count, int64_t *flags) {
    for (int64_t i = first_item(); i <= count; i += grid_stride())
        flags[i] = i < count && counts[i] != 0;
}

// Copies rows, columns and masks of the tiles with entries; `ranks` are their new numbers.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_tile_compact(const int64_t *ranks, const uint32_t *counts, int64_t count,
                        const uint32_t *tile_rows, const uint32_t *columns, const uint4 *masks,
                        uint32_t *out_rows, uint32_t *out_columns, uint4 *out_masks) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        if (counts[i] == 0)
            continue;
        const int64_t to = ranks[i];
        out_rows[to] = tile_rows[i];
        out_columns[to] = columns[i];
        out_masks[2 * to] = masks[2 * i];
        out_masks[2 * to + 1] = masks[2 * i + 1];
    }
}

// out[i] = number of the first tile with entries in row i of tiles; `out` may be `rows`.
extern "C" __global__ void __launch_bounds__(256)
    spgemm_tile_first(const int64_t *ranks, const int64_t *rows, int64_t count, int64_t *out) {
    for (int64_t i = first_item(); i < count; i += grid_stride())
        out[i] = ranks[rows[i]];
}

namespace {

// Destination of C's entries: CSR, at the positions that row_starts and entries_before give, or
// tiles.
struct Output {
    // With tiles: first entry of each tile.
    const int64_t *row_starts;
    // NULL with tiles.
    const uint32_t *entries_before;
    // With tiles: row and column of each entry in its tile.
    void *columns;
    void *values;
    int64_t wide;
    int64_t base;

    // Returns the destination of a row's entries in a tile minus their position in the tile.
    __device__ __forceinline__ int64_t shift(int64_t tile, int64_t i, int row, int place) const {
        if (entries_before == nullptr)
            return row_starts[tile];
        return row_starts[SIDE * i + row] + entries_before[tile * SIDE + row] - place;
    }

    // Writes the column of an entry in tile column `j`; `where` is row << 4 | column in the tile.
    __device__ __forceinline__ void place(int64_t to, int64_t j, int where) const {
        const int64_t column = SIDE * j + (where & 15) + base;
        if (entries_before == nullptr) {
            static_cast<uint8_t *>(columns)[to] = static_cast<uint8_t>(where);
        } else {
            spgemm::store_int(columns, to, column, wide);
        }
    }
};

// Stores the values of a tile's entries, which are in `values` one after the other: `index` has row
// << 4 | column of each, `shift` the destination of each row minus its position in the tile, and
// scaled(value) is what C gets. Called by a whole warp.
template <class T, class Value, class Scaled>
__device__ __forceinline__ void store_tile(const Output &out, int64_t j, int entries,
                                           const Value *values, const uint8_t *index,
                                           const int64_t *shift, Scaled scaled) {
    __syncwarp();
    for (int e = lane_id(); e < entries; e += 32) {
        const int where = index[e];
        const int64_t to = shift[where >> 4] + e;
        static_cast<T *>(out.values)[to] = scaled(values[e]);
        out.place(to, j, where);
    }
}

// Row of a tile in one word: its mask, and in the high half the number of entries before it.
__device__ __forceinline__ unsigned row_word(const uint16_t *masks, const uint8_t *row_ptr,
                                             int64_t row) {
    return masks[row] | static_cast<unsigned>(row_ptr[row]) << 16;
}

// Adds the products of a pair of tiles to the lane's sums, half a row of the tile of C. `rows` and
// `values` are shared memory of the warp, for the tile of B.
template <class T>
__device__ __forceinline__ void multiply_pair(const Tiles &a, const Tiles &b, const T *a_values,
                                              const T *b_values, int64_t at, int64_t bt,
                                              unsigned *rows, T *values, T (&sums)[8]) {
    const int row = lane_id() >> 1, half = lane_id() & 1;
    const int64_t b_start = b.starts[bt];
    const int b_count = static_cast<int>(b.starts[bt + 1] - b_start);
    unsigned left = a.masks[at * SIDE + row];
    const T *left_values = a_values + a.starts[at] + a.row_ptr[at * SIDE + row];
    if (lane_id() < SIDE)
        rows[lane_id()] = row_word(b.masks, b.row_ptr, bt * SIDE + lane_id());
    for (int e = lane_id(); e < b_count; e += 32)
        values[e] = b_values[b_start + e];
    __syncwarp();
    for (; left != 0; left &= left - 1) {
        const unsigned met = rows[__ffs(left) - 1];
        const T multiplier = *left_values++;
        const unsigned bits = met >> (8 * half) & 0xff;
        const T *right = values + (met >> 16) + (half ? __popc(met & 0xff) : 0);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            if (bits >> c & 1)
                sums[c] = tarsia::fma(multiplier, *right++, sums[c]);
        }
    }
    __syncwarp();
}

// Step 3: values. A lane has half a row of the tile of C, with one register per element, and adds
// its products in the order of A's row. (Sums packed in shared memory for tiles of few entries, as
// in the paper, took 1.0 to 1.7 times as long at its threshold of 192.)
template <class T>
__device__ __forceinline__ void
multiply(const Tiles &a, const Tiles &b, const TileColumns &by, const T *a_values,
         const T *b_values, const Scalar<T> &scale, const uint32_t *tile_rows,
         const uint32_t *columns, const uint16_t *masks, int64_t count, const Output &out) {
    // Values of a tile of B, later those of the tile of C.
    __shared__ __align__(16) T values_of[WARPS][SIDE * SIDE];
    // Destination of each row of the tile of C, minus its position in the tile.
    __shared__ int64_t shift_of[WARPS][SIDE];
    __shared__ unsigned rows_of[WARPS][SIDE];
    __shared__ uint8_t index_of[WARPS][SIDE * SIDE];
    const int warp = threadIdx.x >> 5;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * WARPS + warp;
    if (tile >= count)
        return;
    T *values = values_of[warp];
    uint8_t *index = index_of[warp];
    const int row = lane_id() >> 1, half = lane_id() & 1;
    const int64_t i = tile_rows[tile], j = columns[tile];
    const unsigned mask = masks[tile * SIDE + row];
    const unsigned mine = mask >> (8 * half) & 0xff;
    // Position of the lane's first entry in the tile.
    const int own = __popc(mine);
    const int place = prefix_sum(own) - own;
    const int entries = __shfl_sync(ALL_LANES, place + own, 31);
    const T alpha = scale.get();
    T sums[8];
#pragma unroll
    for (int c = 0; c < 8; ++c)
        sums[c] = zero<T>();
    if (!is_zero(alpha) && entries != 0) {
        Pairs pairs(a, b, by, i, j);
        while (pairs.next()) {
            while (pairs.matches != 0) {
                int64_t at, bt;
                pairs.pop(at, bt);
                multiply_pair(a, b, a_values, b_values, at, bt, rows_of[warp], values, sums);
            }
        }
    }
    int at = place;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
        if (mine >> c & 1) {
            values[at] = sums[c];
            index[at++] = static_cast<uint8_t>(row << 4 | (8 * half + c));
        }
    }
    int64_t *shift = shift_of[warp];
    if (half == 0 && mask != 0)
        shift[row] = out.shift(tile, i, row, place);
    store_tile<T>(out, j, entries, values, index, shift, [&](T sum) { return mul(alpha, sum); });
}

// c += a · b of 16 × 4 and 4 × 8 elements. With g = lane / 4 and t = lane % 4: a0 and a1 are in
// rows g and g + 8, column t; b is in row t, column g; c0 and c1 are in row g, columns 2t and 2t +
// 1, c2 and c3 in row g + 8.
__device__ __forceinline__ void mma(double (&c)[4], double a0, double a1, double b) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a0), "d"(a1), "d"(b));
#else
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a0), "d"(b));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[2]), "+d"(c[3])
        : "d"(a1), "d"(b));
#endif
}

// For a row of a tile in one word: position of the entry in a column, whether there is one, and its
// value or 0.
__device__ __forceinline__ int slot_of(unsigned row, int column) {
    return static_cast<int>(row >> 16) + __popc(row & ((1u << column) - 1));
}
__device__ __forceinline__ bool has(unsigned row, int column) { return row >> column & 1; }
__device__ __forceinline__ double entry(const double *values, unsigned row, int column) {
    const double value = values[slot_of(row, column)];
    return has(row, column) ? value : 0.0;
}

// Sums of a tile of C by matrix units. Sum s of a lane, sums[s / 4][s % 4], is in the row and
// column of the tile that row_of and column_of give.
struct MatrixSums {
    double sums[2][4] = {};

    static __device__ __forceinline__ int column_of(int s) {
        return 2 * (lane_id() & 3) + s % 2 + s / 4 * 8;
    }
    static __device__ __forceinline__ int row_of(int s) { return (lane_id() >> 2) + s / 2 % 2 * 8; }

    // Adds the product of two tiles, of which `inner` has the columns of A's that are used rows of
    // B's. `rows`: words of A's rows, then of B's.
    __device__ __forceinline__ void add(const double *left, const double *right,
                                        const unsigned *rows, unsigned inner) {
        const int g = lane_id() >> 2, t = lane_id() & 3;
        const unsigned high = rows[g], low = rows[g + 8];
#pragma unroll
        for (int q = 0; q < SIDE; q += 4) {
            if ((inner >> q & 15) == 0)
                continue;
            const unsigned row = rows[SIDE + q + t];
            const double a0 = entry(left, high, q + t), a1 = entry(left, low, q + t);
            mma(sums[0], a0, a1, entry(right, row, g));
            mma(sums[1], a0, a1, entry(right, row, g + 8));
        }
    }
    // Adds by stored entries only, since an Inf or NaN must not be multiplied by the zeros between
    // them.
    __device__ __forceinline__ void add_stored(const double *left, const double *right,
                                               const unsigned *rows) {
        const int g = lane_id() >> 2;
        const unsigned high = rows[g], low = rows[g + 8];
        for (int k = 0; k < SIDE; ++k) {
            const unsigned row = rows[SIDE + k];
#pragma unroll
            for (int s = 0; s < 8; ++s) {
                const int column = column_of(s);
                const unsigned mine = s / 2 % 2 ? low : high;
                if (has(mine, k) && has(row, column)) {
                    double &sum = sums[s / 4][s % 4];
                    sum = tarsia::fma(left[slot_of(mine, k)], right[slot_of(row, column)], sum);
                }
            }
        }
    }
};

// Loads a tile's values as fp64; returns whether one of the lane's is not finite.
template <class T>
__device__ __forceinline__ bool load_values(const Tiles &tiles, const T *values, int64_t tile,
                                            double *out) {
    const int64_t start = tiles.starts[tile];
    const int count = static_cast<int>(tiles.starts[tile + 1] - start);
    bool is_wild = false;
#pragma unroll 2
    for (int e = lane_id(); e < count; e += 32) {
        const T value = values[start + e];
        is_wild |= !isfinite(value);
        out[e] = value;
    }
    return is_wild;
}

// Step 3 for real numbers by matrix units: sums in fp64.
template <class T>
__device__ __forceinline__ void
multiply_mma(const Tiles &a, const Tiles &b, const TileColumns &by, const T *a_values,
             const T *b_values, const Scalar<T> &scale, const uint32_t *tile_rows,
             const uint32_t *columns, const uint16_t *masks, int64_t count, const Output &out) {
    // One element more, which `entry` may read for an entry that does not exist.
    __shared__ double left_of[WARPS][SIDE * SIDE + 1], right_of[WARPS][SIDE * SIDE + 1];
    __shared__ unsigned rows_of[WARPS][2 * SIDE];
    __shared__ uint8_t index_of[WARPS][SIDE * SIDE];
    const int warp = threadIdx.x >> 5;
    const int64_t tile = static_cast<int64_t>(blockIdx.x) * WARPS + warp;
    if (tile >= count)
        return;
    double *left = left_of[warp], *right = right_of[warp];
    unsigned *rows = rows_of[warp];
    uint8_t *index = index_of[warp];
    const int64_t i = tile_rows[tile], j = columns[tile];
    const T alpha = scale.get();
    MatrixSums sums;
    if (!is_zero(alpha)) {
        Pairs pairs(a, b, by, i, j);
        while (pairs.next()) {
            while (pairs.matches != 0) {
                int64_t at, bt;
                pairs.pop(at, bt);
                const unsigned inner = (a.used[at] >> 16) & b.used[bt];
                const bool first = lane_id() < SIDE;
                const int64_t row = (first ? at * SIDE : bt * SIDE - SIDE) + lane_id();
                rows[lane_id()] =
                    row_word(first ? a.masks : b.masks, first ? a.row_ptr : b.row_ptr, row);
                bool is_wild = load_values(a, a_values, at, left);
                is_wild |= load_values(b, b_values, bt, right);
                is_wild = __any_sync(ALL_LANES, is_wild);
                __syncwarp();
                if (is_wild) {
                    sums.add_stored(left, right, rows);
                } else {
                    sums.add(left, right, rows, inner);
                }
                __syncwarp();
            }
        }
    }
    // Row masks of the tile of C, and destinations of their entries minus the position in the tile.
    int64_t *shift = reinterpret_cast<int64_t *>(right);
    const int row = lane_id() % SIDE;
    const unsigned mask = masks[tile * SIDE + row];
    const int own = lane_id() < SIDE ? __popc(mask) : 0;
    const int sum = prefix_sum(own);
    const int entries = __shfl_sync(ALL_LANES, sum, 31);
    if (lane_id() < SIDE) {
        rows[row] = mask | static_cast<unsigned>(sum - own) << 16;
        if (mask != 0)
            shift[row] = out.shift(tile, i, row, sum - own);
    }
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        const int column = sums.column_of(s), at = sums.row_of(s);
        const unsigned mine = rows[at];
        if (has(mine, column)) {
            const int place = slot_of(mine, column);
            left[place] = sums.sums[s / 4][s % 4];
            index[place] = static_cast<uint8_t>(at << 4 | column);
        }
    }
    store_tile<T>(out, j, entries, left, index, shift,
                  [&](double sum) { return static_cast<T>(alpha * sum); });
}

} // namespace

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr bool OLDER = true;
#else
constexpr bool OLDER = false;
#endif

// Blocks per multiprocessor: as many as registers allow without spills, from compute capability 9.0
// on and before.
#define KERNEL_multiply(name, types) KERNEL_OF(TILE, name, multiply, BLOCKS_##types, TYPES_##types)
#define KERNEL_mma(name, types) KERNEL_OF(TILE, name, multiply_mma, 8, 6, TYPES_##types)
#define TILE(name, how, blocks, older, A, B, C, T)                                                 \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, OLDER ? older : blocks)               \
        name(Tiles a, Tiles b, TileColumns by, const T *a_values, const T *b_values,               \
             Scalar<T> alpha, const uint32_t *tile_rows, const uint32_t *columns,                  \
             const uint16_t *masks, int64_t count, Output out) {                                   \
        how<T>(a, b, by, a_values, b_values, alpha, tile_rows, columns, masks, count, out);        \
    }
#define BLOCKS_f64 8, 6
#define BLOCKS_f32 8, 8
#define BLOCKS_c32 8, 6
#define BLOCKS_c64 6, 4
KERNELS(multiply, (), (spgemm_tile_multiply_f64, f64), (spgemm_tile_multiply_f32, f32),
        (spgemm_tile_multiply_c32, c32), (spgemm_tile_multiply_c64, c64))
KERNELS(mma, (), (spgemm_tile_mma_f64, f64), (spgemm_tile_mma_f32, f32))
