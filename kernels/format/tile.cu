// Conversion of CSR to sparse tiles of 16 × 16 and back (src/format/tile.rs). A thread block takes
// one row of tiles, that is, 16 rows of the matrix. The set of its tile columns is a bit set in
// shared memory, so that nothing is sorted and rows need not be sorted either.
#include "common/complex.cuh"
#include "spgemm/tile.cuh"

using namespace tarsia;
using namespace tarsia::tile;
using spgemm::Factor;

namespace {

// Number of tiles whose masks are in shared memory at a time.
constexpr int CHUNK = 256;

// Range of the entries of a row of tiles, and their first and last tile column.
struct Span {
    int64_t begin, end, low, last;
};

__device__ __forceinline__ Span span_of(const Factor &m, int64_t rows, int64_t *of_warps) {
    const int64_t row = SIDE * static_cast<int64_t>(blockIdx.x);
    Span span{m.start(row), m.start(min(row + SIDE, rows)), INT64_MAX, -1};
    for (int64_t at = span.begin + threadIdx.x; at < span.end; at += blockDim.x) {
        const int64_t column = m.column(at) / SIDE;
        span.low = min(span.low, column);
        span.last = max(span.last, column);
    }
    block_extent(span.low, span.last, of_warps);
    return span;
}

// Makes `set` the set of the tile columns in [low, low + width). Ends with a barrier.
__device__ __forceinline__ void collect(const Factor &m, const Span &span, int64_t low,
                                        int64_t width, const Set &set) {
    set.clear(static_cast<int>((width + 63) / 64));
    __syncthreads();
    for (int64_t at = span.begin + threadIdx.x; at < span.end; at += blockDim.x) {
        const int64_t column = m.column(at) / SIDE - low;
        if (column >= 0 && column < width)
            set.insert(static_cast<int>(column));
    }
    __syncthreads();
}

} // namespace

// counts[i] = number of tiles of row i of tiles, one block per row. Dynamic shared memory: `bits` /
// 64 words.
extern "C" __global__ void __launch_bounds__(BLOCK)
    tile_count(Factor m, int64_t rows, int32_t bits, int64_t *counts) {
    __shared__ int64_t of_warps[32];
    const Span span = span_of(m, rows, of_warps);
    count_columns(
        span.low, span.last, bits, of_warps, counts,
        [&](int64_t low, int64_t width, const Set &set) { collect(m, span, low, width, set); });
}

namespace {

// Output arrays of the conversion to tiles.
struct Out {
    const int64_t *rows;
    uint32_t *columns;
    int64_t *starts;
    uint8_t *row_ptr;
    uint16_t *masks;
    uint32_t *used;
    // Row of tiles that each tile is in.
    uint32_t *tile_rows;
    // Position of each entry in its tile: row in the high and column in the low four bits.
    uint8_t *index;
    void *values;
    // Number of distinct positions with an entry, per row of tiles.
    int64_t *counts;
    // flags[0] |= 1 if a position has two entries.
    unsigned *flags;
    // First entry of each row of tiles, and their number at the end, if positions have two entries;
    // otherwise NULL.
    const int64_t *firsts;
};

// A chunk of a row of tiles: `count` tiles from the `first` one of those in the columns [low, low +
// width) on; numbers of tiles and entries before it. In shared memory.
struct Chunk {
    // Masks of two rows per word, as in memory; row_ptr of four rows per word.
    unsigned masks[CHUNK * SIDE / 2];
    unsigned row_ptr[CHUNK * SIDE / 4];
    // First entry of each tile, from the chunk's first one on.
    unsigned starts[CHUNK];
};
struct Range {
    int64_t low, width;
    int first, count;

    // Number in the chunk of the tile with an entry in this column, or -1 if it is in none.
    __device__ __forceinline__ int tile_of(const Set &set, int64_t column) const {
        const int64_t relative = column / SIDE - low;
        if (relative < 0 || relative >= width)
            return -1;
        const int q = set.rank(static_cast<int>(relative)) - first;
        return q < count ? q : -1;
    }
};

// Calls f(tile in the chunk, row, column in the tile, position) for the entries of the chunk.
// row_starts: first entry of each row.
template <class Function>
__device__ __forceinline__ void each_entry(const Factor &m, const Span &span, const Set &set,
                                           const Range &range, const int64_t *row_starts,
                                           Function f) {
    for (int64_t at = span.begin + threadIdx.x; at < span.end; at += blockDim.x) {
        const int64_t column = m.column(at);
        const int q = range.tile_of(set, column);
        if (q < 0)
            continue;
        int row = 0;
#pragma unroll
        for (int step = SIDE / 2; step > 0; step /= 2) {
            if (row_starts[row + step] <= at)
                row += step;
        }
        f(q, row, static_cast<int>(column % SIDE), at);
    }
}

// Mask of a row of a tile.
__device__ __forceinline__ unsigned mask_of(const Chunk &chunk, int q, int row) {
    const unsigned pair = chunk.masks[q * (SIDE / 2) + row / 2];
    return row & 1 ? pair >> 16 : pair & 0xffff;
}

// Numbers the entries of a chunk by its masks, from `entry` on, and writes its tiles, from number
// `tile` on. Returns the number of entries. Called between two barriers.
__device__ __forceinline__ int number_entries(Chunk &chunk, int count, int64_t tile, int64_t entry,
                                              const Out &out, int *of_warps) {
    int entries = 0;
    for (int base = 0; base < count; base += blockDim.x) {
        const int q = base + threadIdx.x;
        int own = 0;
        unsigned rows_used = 0, columns_used = 0;
        if (q < count) {
            for (int quad = 0; quad < SIDE / 4; ++quad) {
                unsigned packed = 0;
                for (int row = 0; row < 4; ++row) {
                    const unsigned mask = mask_of(chunk, q, quad * 4 + row);
                    packed |= static_cast<unsigned>(own) << (8 * row);
                    own += __popc(mask);
                    columns_used |= mask;
                    rows_used |= (mask != 0 ? 1u : 0u) << (4 * quad + row);
                }
                chunk.row_ptr[q * (SIDE / 4) + quad] = packed;
            }
        }
        int all;
        const int sum = block_prefix_sum(own, of_warps, all);
        if (q < count) {
            chunk.starts[q] = entries + sum - own;
            out.starts[tile + q] = entry + chunk.starts[q];
            out.used[tile + q] = rows_used | columns_used << 16;
            out.tile_rows[tile + q] = blockIdx.x;
        }
        entries += all;
    }
    return entries;
}

// Writes the masks and row pointers of a chunk.
__device__ __forceinline__ void write_chunk(const Chunk &chunk, int count, int64_t tile,
                                            const Out &out) {
    unsigned *to = reinterpret_cast<unsigned *>(out.masks) + tile * (SIDE / 2);
    for (int i = threadIdx.x; i < count * SIDE / 2; i += blockDim.x)
        to[i] = chunk.masks[i];
    to = reinterpret_cast<unsigned *>(out.row_ptr) + tile * (SIDE / 4);
    for (int i = threadIdx.x; i < count * SIDE / 4; i += blockDim.x)
        to[i] = chunk.row_ptr[i];
}

// Position of an entry among those of the chunk.
__device__ __forceinline__ unsigned index_of(const Chunk &chunk, int q, int row, int column) {
    const int before = (chunk.row_ptr[q * (SIDE / 4) + row / 4] >> (8 * (row & 3))) & 0xff;
    return chunk.starts[q] + before + __popc(mask_of(chunk, q, row) & ((1u << column) - 1));
}

// Writes the chunk's `entries` values, from number `entry` on, where positions may have several
// entries: each thread takes a row and adds the row's repeated entries in their order.
template <class Value, class Stored>
__device__ __forceinline__ void write_repeated(const Factor &m, const Value *values, const Set &set,
                                               const Range &range, const int64_t *row_starts,
                                               const Chunk &chunk, int64_t entry, int entries,
                                               const Out &out) {
    Stored *to = static_cast<Stored *>(out.values) + entry;
    for (int i = threadIdx.x; i < entries; i += blockDim.x)
        to[i] = zero<Stored>();
    __syncthreads();
    if (threadIdx.x >= SIDE)
        return;
    const int row = threadIdx.x;
    for (int64_t at = row_starts[row]; at < row_starts[row + 1]; ++at) {
        const int64_t column = m.column(at);
        const int q = range.tile_of(set, column);
        if (q < 0)
            continue;
        const int inner = static_cast<int>(column % SIDE);
        const unsigned place = index_of(chunk, q, row, inner);
        out.index[entry + place] = static_cast<uint8_t>(row << 4 | inner);
        to[place] = spgemm::plus(to[place], widen<Stored>(values[at]));
    }
}

// Value: type of the matrix's values, Stored: type of the tiles' values.
template <class Value, class Stored>
__device__ __forceinline__ void fill(const Factor &m, const Value *values, int64_t rows,
                                     int32_t bits, const Out &out) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int64_t wide_parts[32];
    __shared__ int of_warps[32];
    __shared__ int64_t row_starts[SIDE + 1];
    __shared__ Chunk chunk;
    const Set set{reinterpret_cast<unsigned long long *>(memory),
                  reinterpret_cast<unsigned *>(memory + bits / 8)};
    const int64_t tile_row = blockIdx.x;
    if (threadIdx.x <= SIDE)
        row_starts[threadIdx.x] = m.start(min(SIDE * tile_row + threadIdx.x, rows));
    const Span span = span_of(m, rows, wide_parts);
    int64_t tile = out.rows[tile_row];
    int64_t entry = out.firsts != nullptr ? out.firsts[tile_row] : span.begin;
    const int64_t first_entry = entry;

    for (int64_t low = span.low; low <= span.last; low += bits) {
        const int64_t width = min(int64_t(bits), span.last - low + 1);
        const int used = static_cast<int>((width + 63) / 64);
        collect(m, span, low, width, set);
        const int found = set.number(used, of_warps);
        set.each(used, [&](int rank, int element) {
            out.columns[tile + rank] = static_cast<uint32_t>(low + element);
        });
        for (int first = 0; first < found; first += CHUNK) {
            const Range range = {low, width, first, min(CHUNK, found - first)};
            for (int i = threadIdx.x; i < range.count * SIDE / 2; i += blockDim.x)
                chunk.masks[i] = 0;
            __syncthreads();
            bool twice = false;
            each_entry(m, span, set, range, row_starts, [&](int q, int row, int column, int64_t) {
                const unsigned bit = 1u << (column + 16 * (row & 1));
                twice |= (atomicOr(chunk.masks + q * (SIDE / 2) + row / 2, bit) & bit) != 0;
            });
            if (twice)
                atomicOr(out.flags, 1u);
            __syncthreads();
            const int entries = number_entries(chunk, range.count, tile, entry, out, of_warps);
            __syncthreads();
            write_chunk(chunk, range.count, tile, out);
            if (out.firsts == nullptr) {
                const auto write = [&](int q, int row, int column, int64_t at) {
                    const int64_t place = entry + index_of(chunk, q, row, column);
                    out.index[place] = static_cast<uint8_t>(row << 4 | column);
                    static_cast<Stored *>(out.values)[place] = widen<Stored>(values[at]);
                };
                each_entry(m, span, set, range, row_starts, write);
            } else {
                write_repeated<Value, Stored>(m, values, set, range, row_starts, chunk, entry,
                                              entries, out);
            }
            tile += range.count;
            entry += entries;
            __syncthreads();
        }
    }
    if (threadIdx.x == 0) {
        out.counts[tile_row] = entry - first_entry;
        if (blockIdx.x == gridDim.x - 1)
            out.starts[tile] = entry;
    }
}

} // namespace

// Without the minimum of blocks, a thread takes 48 registers instead of 40.
#define KERNEL_fill(name, types) KERNEL_OF(FILL, name, TYPES_##types)
#define FILL(name, V, X, Y, T)                                                                     \
    extern "C" __global__ void __launch_bounds__(BLOCK, 12)                                        \
        name(Factor m, const V *values, int64_t rows, int32_t bits, Out out) {                     \
        fill<V, T>(m, values, rows, bits, out);                                                    \
    }
KERNELS(fill, (), (tile_fill_f64, f64), (tile_fill_f32, f32), (tile_fill_f16f32, f16f32),
        (tile_fill_bf16f32, bf16f32), (tile_fill_c32, c32), (tile_fill_c64, c64))

// keys[i] = columns[i] and tiles[i] = i, to be sorted.
extern "C" __global__ void __launch_bounds__(256)
    tile_keys(const uint32_t *columns, int64_t count, uint32_t *keys, uint32_t *tiles) {
    for (int64_t i = first_item(); i < count; i += grid_stride()) {
        keys[i] = columns[i];
        tiles[i] = static_cast<uint32_t>(i);
    }
}

// starts[c] = number of keys less than c, for c in [0, columns]; the keys ascend.
extern "C" __global__ void __launch_bounds__(256)
    tile_columns(const uint32_t *keys, int64_t count, int64_t columns, int64_t *starts) {
    for (int64_t c = first_item(); c <= columns; c += grid_stride()) {
        starts[c] = first_where_not(0, count, [&](int64_t at) { return keys[at] < c; });
    }
}

// to[i] = from[tiles[i]]: row of tiles of each tile in a list.
extern "C" __global__ void __launch_bounds__(256)
    tile_gather(const uint32_t *from, const uint32_t *tiles, int64_t count, uint32_t *to) {
    for (int64_t i = first_item(); i < count; i += grid_stride())
        to[i] = from[tiles[i]];
}

// entries_before[16 t + r] = number of entries of row r, in tile t's row of tiles, that come before
// the tile; counts[16 i + r] = number of entries of that row of the matrix. One block of 256
// threads per row of tiles.
extern "C" __global__ void __launch_bounds__(256)
    tile_entries_before(const int64_t *tile_rows, const uint16_t *masks, int64_t rows,
                        uint32_t *entries_before, int64_t *counts) {
    __shared__ uint32_t sums[16][SIDE];
    const int row = threadIdx.x % SIDE, part = threadIdx.x / SIDE;
    const int64_t begin = tile_rows[blockIdx.x], end = tile_rows[blockIdx.x + 1];
    const int64_t step = (end - begin + 15) / 16;
    const int64_t from = begin + part * step, to = min(from + step, end);
    uint32_t sum = 0;
    for (int64_t t = from; t < to; ++t)
        sum += __popc(masks[t * SIDE + row]);
    sums[part][row] = sum;
    __syncthreads();
    uint32_t before = 0;
    for (int p = 0; p < part; ++p)
        before += sums[p][row];
    for (int64_t t = from; t < to; ++t) {
        entries_before[t * SIDE + row] = before;
        before += __popc(masks[t * SIDE + row]);
    }
    const int64_t number = SIDE * static_cast<int64_t>(blockIdx.x) + row;
    if (part == 15 && number < rows)
        counts[number] = before;
}

// Completes tiles whose masks are known: number of entries before each row, bits of the rows and
// columns with an entry, and in starts[t], for a scan, the tile's number of entries, with one 0
// behind them. One thread per tile.
extern "C" __global__ void __launch_bounds__(256)
    tile_complete(const uint4 *masks, int64_t count, uint4 *row_ptr, uint32_t *used,
                  int64_t *starts) {
    for (int64_t t = first_item(); t <= count; t += grid_stride()) {
        if (t == count) {
            starts[t] = 0;
            break;
        }
        const uint4 low = masks[2 * t], high = masks[2 * t + 1];
        const unsigned pairs[SIDE / 2] = {low.x,  low.y,  low.z,  low.w,
                                          high.x, high.y, high.z, high.w};
        unsigned before[SIDE / 4] = {}, rows_used = 0, columns_used = 0;
        int entries = 0;
#pragma unroll
        for (int row = 0; row < SIDE; ++row) {
            const unsigned mask = row & 1 ? pairs[row / 2] >> 16 : pairs[row / 2] & 0xffff;
            before[row / 4] |= static_cast<unsigned>(entries) << (8 * (row & 3));
            entries += __popc(mask);
            rows_used |= (mask != 0 ? 1u : 0u) << row;
            columns_used |= mask;
        }
        row_ptr[t] = make_uint4(before[0], before[1], before[2], before[3]);
        used[t] = rows_used | columns_used << 16;
        starts[t] = entries;
    }
}

namespace {

// Writes the entries of tiles as CSR, one warp per tile, at the positions that row_starts and
// entries_before give (`Output` of spgemm/tile.cu). The values go to an array of the user. Value:
// type of the values, or an integer of the same size for a real type.
template <class Value>
__device__ __forceinline__ void
to_rows(const Tiles &a, const uint32_t *tile_rows, const uint8_t *index, const Value *values,
        int64_t count, const int64_t *row_starts, const uint32_t *entries_before, void *columns,
        int64_t wide, int64_t base, Value *to_values) {
    const bool whole = is_whole(to_values);
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
    for (int64_t t = (first_item()) / 32; t < count; t += warps) {
        const int64_t start = a.starts[t], i = tile_rows[t], j = a.columns[t];
        const int entries = static_cast<int>(a.starts[t + 1] - start);
#pragma unroll 1
        for (int e = lane_id(); e < entries; e += 32) {
            const int where = index[start + e], row = where >> 4;
            const int64_t to = row_starts[SIDE * i + row] + entries_before[t * SIDE + row] + e -
                               a.row_ptr[t * SIDE + row];
            const int64_t column = SIDE * j + (where & 15) + base;
            if (wide) {
                static_cast<int64_t *>(columns)[to] = column;
            } else {
                static_cast<int32_t *>(columns)[to] = static_cast<int32_t>(column);
            }
            // Tiles are the library's own arrays, and aligned.
            store_element(to_values + to, load_whole(values + start + e), whole);
        }
    }
}

} // namespace

#define VALUE_f32 uint32_t
#define VALUE_f64 uint64_t
#define VALUE_c32 c32
#define VALUE_c64 c64
#define KERNEL_to_rows(name, value)                                                                \
    extern "C" __global__ void __launch_bounds__(256) name(                                        \
        Tiles a, const uint32_t *tile_rows, const uint8_t *index, const VALUE_##value *values,     \
        int64_t count, const int64_t *row_starts, const uint32_t *entries_before, void *columns,   \
        int64_t wide, int64_t base, VALUE_##value *to_values) {                                    \
        to_rows<VALUE_##value>(a, tile_rows, index, values, count, row_starts, entries_before,     \
                               columns, wide, base, to_values);                                    \
    }
KERNELS(to_rows, (), (tile_to_rows_f32, f32), (tile_to_rows_f64, f64), (tile_to_rows_c32, c32),
        (tile_to_rows_c64, c64))

// Adds to totals[0] and [1] the sums of the low and high halves of the numbers of multiplications
// of a matrix in tiles by one whose rows begin at row_starts. One warp per tile.
extern "C" __global__ void __launch_bounds__(256)
    tile_products(Tiles a, const uint8_t *index, int64_t count, const int64_t *row_starts,
                  unsigned long long *totals) {
    __shared__ unsigned long long of_warps[32];
    unsigned long long low = 0, high = 0;
    const int64_t warps = static_cast<int64_t>(gridDim.x) * (blockDim.x / 32);
    for (int64_t t = (first_item()) / 32; t < count; t += warps) {
        const int64_t start = a.starts[t], end = a.starts[t + 1];
        for (int64_t e = start + lane_id(); e < end; e += 32) {
            const int64_t k = static_cast<int64_t>(SIDE) * a.columns[t] + (index[e] & 15);
            const unsigned long long length = row_starts[k + 1] - row_starts[k];
            low += length & 0xffffffff;
            high += length >> 32;
        }
    }
    spgemm::add_halves(low, high, of_warps, totals);
}
