// SpMV `stream` on the arrays of src/format/stream.rs. A warp sums a tile, whatever its rows:
// - the addresses of everything it reads of A follow from the tile's number, so that only x waits
//   for an earlier load;
// - lanes multiply neighbouring slots and store the products in shared memory, where each lane
//   finds a strip of consecutive slots;
// - a lane adds along its strip; one segmented scan over the lanes adds what the strips before
//   leave open;
// - the sums of rows that end in the tile are stored in order, so that consecutive lanes write y.
//
// Rows that are cut between tiles are combined by the block. If a block cuts a row and does not
// finish it by itself, the last of the row's blocks to arrive adds the partial sums in the order of
// the blocks.
#pragma once

#include "common/stream_tiles.cuh"
#include "ptx/copies.cuh"
#include "ptx/loads.cuh"
#include "ptx/warp.cuh"

namespace tarsia::stream {

constexpr unsigned FULL = ~0u;
constexpr int THREADS = WARPS * WARP;
// Number of loads in which a lane goes through a tile.
constexpr int STEPS = 4;

// Number of slots in one load: 16 bytes of values if these have 4 or 8 bytes. More for halves would
// spread the lanes over more lines of x.
template <class A> constexpr int LOAD = sizeof(A) <= 4 ? 4 : 2;
// Number of slots of a lane, and of a tile.
template <class A> constexpr int STRIP = STEPS *LOAD<A>;
template <class A> constexpr int TILE = tile_slots(sizeof(A));

// Type of a lane's bits of a tile.
template <int COUNT> struct BitsOf;
template <> struct BitsOf<8> { using type = uint8_t; };
template <> struct BitsOf<16> { using type = uint16_t; };
template <class A> using Bits = typename BitsOf<STRIP<A>>::type;

// Tiles that have high halves of columns: none, those whose heads say so, or all.
enum class High { NONE, SOME, ALL };

template <class A> struct Matrix {
    int64_t rows;
    // Number of tiles, and of slots in the last tile that are not padding.
    uint32_t tile_count, last_slots;
    const Tile *tiles;
    const Bits<A> *ends, *voids;
    const uint16_t *lows, *highs;
    const A *values;
    const Split *splits;
    // L2 cache policy for data that are read once.
    uint64_t policy;

    __device__ __forceinline__ Tile tile(uint32_t number) const {
        const uint4 head = __ldg(reinterpret_cast<const uint4 *>(tiles + number));
        return {head.x, head.y, head.z, head.w};
    }
};

// Columns of a lane in COUNT steps of a tile: those of the LOAD slots from (step · WARP + lane) ·
// LOAD on.
template <class A, High HIGH, int COUNT> struct Columns {
    static constexpr int HALF_WORDS = LOAD<A> / 2;
    uint32_t lows[COUNT][HALF_WORDS];
    uint32_t highs[COUNT][HALF_WORDS];

    __device__ __forceinline__ static void load_halves(const uint16_t *halves, uint32_t tile,
                                                       uint64_t policy,
                                                       uint32_t (&out)[COUNT][HALF_WORDS]) {
        halves += int64_t(tile) * TILE<A> + threadIdx.x % WARP * LOAD<A>;
#pragma unroll
        for (int n = 0; n < COUNT; ++n)
            load_words_once<4 * HALF_WORDS>(halves + n * WARP * LOAD<A>, policy, out[n]);
    }

    __device__ __forceinline__ void load(const Matrix<A> &a, uint32_t tile) {
        load_halves(a.lows, tile, a.policy, lows);
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
#pragma unroll
            for (int i = 0; i < HALF_WORDS; ++i)
                highs[n][i] = 0;
        }
        if constexpr (HIGH == High::ALL)
            load_halves(a.highs, tile, a.policy, highs);
    }

    // Loads the high halves of a tile whose head has been loaded.
    __device__ __forceinline__ void load_rare(const Matrix<A> &a, Tile head) {
        if constexpr (HIGH == High::SOME) {
            // A loop, because an `if` becomes predicated loads, which the compiler moves before
            // others, and these would then wait for the head, too.
#pragma unroll 1
            for (bool once = head.high != Tile::NARROW; once; once = false)
                load_halves(a.highs, head.high, a.policy, highs);
        }
    }

    // Column relative to the tile's base.
    __device__ __forceinline__ uint32_t get(int n, int v) const {
        return __byte_perm(lows[n][v / 2], highs[n][v / 2], v % 2 ? 0x7632 : 0x5410);
    }
};

// Address of x at a tile's base, to which relative columns are added.
template <class X> struct Origin {
    uint64_t address;

    __device__ __forceinline__ Origin(const X *x, Tile head) {
        address = reinterpret_cast<uint64_t>(x + head.base);
        // Makes each address one multiply-add: otherwise the compiler adds the base to every
        // column.
        asm("" : "+l"(address));
    }
    __device__ __forceinline__ X load(uint32_t column) const {
        return load_cached(reinterpret_cast<const X *>(address + uint64_t(column) * sizeof(X)));
    }
};

// Products of a warp in shared memory, in chunks of 16 bytes. The chunks of a lane's strip are
// permuted so that there are no bank conflicts, neither for lanes that write consecutive chunks nor
// for lanes that read the same chunk of their strips.
template <class A, class Acc> struct Stage {
    static constexpr int CHUNK = 16 / sizeof(Acc);
    static constexpr int CHUNKS = STRIP<A> / CHUNK;
    static_assert(CHUNKS == 4 || CHUNKS == 8);
    // Bytes of a lane's values in a step, and of one copy of them.
    static constexpr int BYTES = LOAD<A> * sizeof(A), PIECE = BYTES < 16 ? BYTES : 16;
    static constexpr int PIECES = BYTES / PIECE;
    static_assert(sizeof(A) <= sizeof(Acc));
    struct alignas(16) Chunk {
        Acc products[CHUNK];
    };
    union {
        Chunk chunks[WARP * CHUNKS];
        // Sums of the rows that end in the tile, after the products have been read.
        Acc sums[TILE<A>];
    };

    static __device__ __forceinline__ int place(int strip, int chunk) {
        return strip * CHUNKS + (chunk ^ (strip / (8 / CHUNKS)) % CHUNKS);
    }
    // Chunk i of a lane's products in a step.
    __device__ __forceinline__ Chunk &at(int step, int lane, int i) {
        const int number = lane * LOAD<A> / CHUNK + i;
        // A step is 8 strips, with the same permutations as in the step before.
        return chunks[place(number / CHUNKS, number % CHUNKS) + step * 8 * CHUNKS];
    }
    // Starts copies of the values of a lane's slots to the positions of their products.
    __device__ __forceinline__ void fetch(const Matrix<A> &a, uint32_t tile, int lane) {
        const A *from = a.values + int64_t(tile) * TILE<A> + lane * LOAD<A>;
#pragma unroll
        for (int n = 0; n < STEPS; ++n) {
#pragma unroll
            for (int i = 0; i < PIECES; ++i)
                copy_once<PIECE>(&at(n, lane, i), from + n * WARP * LOAD<A> + i * PIECE / sizeof(A),
                                 a.policy);
        }
    }
    // Multiplies the values of a lane's slots in a step, which have arrived, by `factors`.
    __device__ __forceinline__ void multiply(int step, int lane, const Acc (&factors)[LOAD<A>]) {
        A values[LOAD<A>];
#pragma unroll
        for (int i = 0; i < PIECES; ++i)
            memcpy(values + i * PIECE / sizeof(A), __builtin_assume_aligned(&at(step, lane, i), 16),
                   PIECE);
#pragma unroll
        for (int i = 0; i < LOAD<A>; i += CHUNK) {
            Chunk chunk;
#pragma unroll
            for (int k = 0; k < CHUNK; ++k)
                chunk.products[k] = mul(widen<Acc>(values[i + k]), factors[i + k]);
            at(step, lane, i / CHUNK) = chunk;
        }
    }
    __device__ __forceinline__ void get(int strip, Acc (&products)[STRIP<A>]) const {
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const Chunk chunk = chunks[place(strip, i)];
#pragma unroll
            for (int k = 0; k < CHUNK; ++k)
                products[i * CHUNK + k] = chunk.products[k];
        }
    }
};

// Results of a tile for its block.
template <class Acc> struct TileResult {
    // If the tile's first row has slots before the tile and ends in it: the row's sum in the tile.
    // The rest of y is already written.
    Acc head;
    // Sum of the slots after the last end of a row.
    Acc tail;
    // Sum of the slots in the next tile that belong to this block.
    Acc over;
    uint32_t row, link;
    // Number of rows that end in the tile.
    int ends;
    bool joins;
};

// Loads of a warp from A, except for rare high halves and for values, which are copied to the
// warp's stage.
template <class A, High HIGH> struct Loaded {
    Columns<A, HIGH, STEPS> own;
    unsigned ends, voids;
    Tile head;
    // For the block's last warp: slots of one step of the tile behind the block.
    bool reads_over;
    Tile next_head;
    Columns<A, HIGH, 1> next;
    uint32_t next_values[LOAD<A> * sizeof(A) / 4];

    template <class Acc>
    __device__ __forceinline__ void load(const Matrix<A> &a, uint32_t tile, bool is_last,
                                         Stage<A, Acc> &stage) {
        const int lane = threadIdx.x % WARP;
        own.load(a, tile);
        stage.fetch(a, tile, lane);
        head = a.tile(tile);
        ends = __ldg(a.ends + int64_t(tile) * WARP + lane);
        voids = a.voids != nullptr ? __ldg(a.voids + int64_t(tile) * WARP + lane) : 0;
        reads_over = is_last && tile + 1 < a.tile_count;
        if (reads_over) {
            next_head = a.tile(tile + 1);
            next.load(a, tile + 1);
            load_words_once<LOAD<A> * sizeof(A)>(
                a.values + int64_t(tile + 1) * TILE<A> + lane * LOAD<A>, a.policy, next_values);
        }
    }
};

// Slots of the tile behind a block that belong to the block's last row.
template <class A, class X> struct Over {
    int count;
    X factors[LOAD<A>];

    // Loads the elements of x; columns and values have been loaded.
    template <High HIGH>
    __device__ __forceinline__ void gather(const Matrix<A> &a, const X *x,
                                           Loaded<A, HIGH> &loaded) {
        const int lane = threadIdx.x % WARP;
        const uint32_t link = loaded.head.link;
        count = loaded.reads_over && (link & Tile::OVER) != 0 ? int(link & ~Tile::OVER) : 0;
        if (count == 0)
            return;
        loaded.next.load_rare(a, loaded.next_head);
        const Origin<X> origin(x, loaded.next_head);
#pragma unroll
        for (int v = 0; v < LOAD<A>; ++v) {
            if (lane * LOAD<A> + v < count)
                factors[v] = origin.load(loaded.next.get(0, v));
        }
    }
    // Sum of the slots, in all lanes.
    template <class Acc, High HIGH>
    __device__ __forceinline__ Acc sum(const Loaded<A, HIGH> &loaded) const {
        const int lane = threadIdx.x % WARP;
        Acc over = zero<Acc>();
        if (count == 0)
            return over;
        A values[LOAD<A>];
        memcpy(values, loaded.next_values, sizeof(values));
#pragma unroll
        for (int v = 0; v < LOAD<A>; ++v) {
            if (lane * LOAD<A> + v < count)
                over = fma(widen<Acc>(values[v]), widen<Acc>(factors[v]), over);
        }
        __syncwarp();
#pragma unroll
        for (int delta = WARP / 2; delta > 0; delta /= 2)
            over = add(over, shuffle_xor(over, delta));
        return over;
    }
};

// Products of the lane's strip. Slots without an entry, those of `voids`, have read some element of
// x, which may be Inf: their products become 0.
template <class A, class Acc>
__device__ __forceinline__ void take_strip(const Matrix<A> &a, uint32_t tile,
                                           const Stage<A, Acc> &stage, unsigned voids,
                                           Acc (&strip)[STRIP<A>]) {
    const int lane = threadIdx.x % WARP;
    stage.get(lane, strip);
    if (tile + 1 == a.tile_count)
        voids |= ~0u << max(min(int(a.last_slots) - lane * STRIP<A>, STRIP<A>), 0);
    if (__any_sync(FULL, voids != 0)) {
#pragma unroll
        for (int e = 0; e < STRIP<A>; ++e) {
            if ((voids >> e & 1) != 0)
                strip[e] = zero<Acc>();
        }
    }
}

// Stores the sums of the rows that end in the lane's strip, from sums[0] on; `ends` has a bit for
// each slot where one ends. Returns the sum of what is open behind the lane.
template <class Acc, int SLOTS>
__device__ __forceinline__ Acc sum_strips(const Acc (&strip)[SLOTS], unsigned ends, Acc *sums) {
    const int lane = threadIdx.x % WARP;
    // Sums of rows, without what earlier lanes have of the lane's first row.
    Acc open = zero<Acc>();
    Acc *sum = sums;
#pragma unroll
    for (int e = 0; e < SLOTS; ++e) {
        open = add(open, strip[e]);
        if ((ends >> e & 1) != 0) {
            *sum++ = open;
            open = zero<Acc>();
        }
    }
    // Inclusive scan of the open sums, which starts anew at each lane where a row ends. A lane's
    // bit in `run` says that no row ends in it, nor in the delta − 1 lanes before.
    const unsigned enders = __ballot_sync(FULL, ends != 0);
    unsigned run = ~enders & ~1u;
    for (int delta = 1; run != 0; run &= run << delta, delta *= 2) {
        const Acc before = shuffle_up(open, delta);
        if ((run >> lane & 1) != 0)
            open = add(before, open);
    }
    const Acc before = shuffle_up(open, 1);
    if (lane > 0 && ends != 0)
        sums[0] = add(before, sums[0]);
    __syncwarp();
    return open;
}

// Sums a tile and writes y for the rows that start and end there.
template <High HIGH, class A, class X, class Y, class Acc>
__device__ __forceinline__ void sum_tile(const Matrix<A> &a, const X *x, Y *y, Acc alpha, Acc beta,
                                         uint32_t tile, Loaded<A, HIGH> &loaded,
                                         Stage<A, Acc> &stage, TileResult<Acc> &result) {
    constexpr int LOAD = stream::LOAD<A>, STRIP = stream::STRIP<A>;
    static_assert(WARP * STRIP == TILE<A> && WARP * LOAD == overhang(TILE<A>));
    const int lane = threadIdx.x % WARP;
    const Tile head = loaded.head;

    loaded.own.load_rare(a, head);
    const Origin<X> origin(x, head);
    X factors[STEPS][LOAD];
#pragma unroll
    for (int n = 0; n < STEPS; ++n) {
#pragma unroll
        for (int v = 0; v < LOAD; ++v)
            factors[n][v] = origin.load(loaded.own.get(n, v));
    }
    Over<A, X> behind;
    behind.gather(a, x, loaded);

    // Number of rows that end in earlier lanes (rank), and in the tile (rows).
    const int count = __popc(loaded.ends);
    int rank = inclusive_sum(count);
    const int rows = __shfl_sync(FULL, rank, WARP - 1);
    rank -= count;

    wait_for_copies();
#pragma unroll
    for (int n = 0; n < STEPS; ++n) {
        Acc wide[LOAD];
#pragma unroll
        for (int v = 0; v < LOAD; ++v)
            wide[v] = widen<Acc>(factors[n][v]);
        stage.multiply(n, lane, wide);
    }
    const Acc over = behind.template sum<Acc>(loaded);
    __syncwarp();
    Acc strip[STRIP];
    take_strip(a, tile, stage, loaded.voids, strip);
    __syncwarp();
    const Acc open = sum_strips(strip, loaded.ends, stage.sums + rank);

    const bool joins = (head.row & Tile::JOINS) != 0;
    const uint32_t row = head.row & ~Tile::JOINS;
    Y *out = y + row;
#pragma unroll 1
    for (int r = lane; r < rows; r += WARP) {
        if (r > 0 || !joins)
            store(out + r, alpha, stage.sums[r], beta);
    }
    if (lane == 0) {
        result.head = joins && rows > 0 ? stage.sums[0] : zero<Acc>();
        result.over = over;
        result.row = row;
        result.link = head.link;
        result.ends = rows;
        result.joins = joins;
    }
    if (lane == WARP - 1)
        result.tail = open;
}

// Returns in thread 0 the sum of a split row's parts; called by the whole block.
template <class Acc>
__device__ __forceinline__ Acc sum_parts(Split split, const Acc *parts, Acc (&sums)[WARPS]) {
    // Number of parts that a thread has in flight.
    constexpr int AHEAD = 4;
    parts += split.first_part;
    Acc sum = zero<Acc>();
    for (uint32_t at = threadIdx.x; at < split.parts; at += AHEAD * THREADS) {
        Acc part[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            part[u] = zero<Acc>();
            if (at + u * THREADS < split.parts)
                part[u] = load_l2(parts + at + u * THREADS);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; ++u)
            sum = add(sum, part[u]);
    }
    __syncwarp();
    for (int delta = WARP / 2; delta > 0; delta /= 2)
        sum = add(sum, shuffle_xor(sum, delta));
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        sums[threadIdx.x / WARP] = sum;
    __syncthreads();
    for (int w = 1; w < WARPS; ++w)
        sum = add(sum, sums[w]);
    return sum;
}

// Partial sum that a block has of a split row; `split` is the row's number among the split rows +
// 1, or 0 for none.
template <class Acc> struct Part {
    uint32_t split = 0;
    Acc sum = zero<Acc>();
};

// Combines the rows that are cut between the tiles of a block: stores those that belong to the
// block; `in` and `out` become the partial sums of the split rows with which it begins and ends.
template <class Y, class Acc>
__device__ __forceinline__ void combine(const TileResult<Acc> (&results)[WARPS], Y *y, Acc alpha,
                                        Acc beta, Part<Acc> &in, Part<Acc> &out) {
    const uint32_t link = results[0].link;
    Acc open = zero<Acc>();
    // True if the open row starts in this block.
    bool inside = !results[0].joins;
#pragma unroll 1
    for (int w = 0; w < WARPS; ++w) {
        const TileResult<Acc> &result = results[w];
        if (result.ends == 0) {
            open = add(open, result.tail);
            continue;
        }
        if (result.joins) {
            const Acc sum = add(open, result.head);
            if (inside) {
                store(y + result.row, alpha, sum, beta);
            } else if (link != Tile::TAKEN) {
                in = {link, sum};
            }
        }
        open = result.tail;
        inside = true;
    }
    const TileResult<Acc> &last = results[WARPS - 1];
    if ((last.link & Tile::OVER) != 0) {
        open = add(open, last.over);
        if (inside) {
            store(y + last.row + last.ends, alpha, open, beta);
        } else {
            in = {link, open};
        }
    } else if (last.link != 0) {
        out = {last.link, open};
    } else if (!inside) {
        in = {link, open};
    }
}

// Computes y. `arrivals` has one counter per split row; if it is NULL, another launch adds the
// partial sums.
template <High HIGH, class A, class X, class Y, class Acc>
__device__ __forceinline__ void multiply(const Matrix<A> &a, const X *x, Y *y,
                                         Scalar<Acc> alpha_from, Scalar<Acc> beta_from,
                                         bool has_entries, Acc *parts, uint32_t *arrivals) {
    __shared__ Stage<A, Acc> stages[WARPS];
    __shared__ TileResult<Acc> results[WARPS];
    // The shuffle tells the compiler that the warp's number is uniform.
    const int lane = threadIdx.x % WARP, warp = __shfl_sync(FULL, threadIdx.x / WARP, 0);
    const uint32_t tile = blockIdx.x * WARPS + warp;
    const bool has_tile = tile < a.tile_count;
    // Precedes all branches, or the compiler would let some of these loads wait for what comes
    // first. The arrays are the plan's own, so they may be read before alpha is known.
    Loaded<A, HIGH> loaded;
    if (has_tile)
        loaded.load(a, tile, warp == WARPS - 1, stages[warp]);
    const Acc alpha = alpha_from.get(), beta = beta_from.get();
    if (is_zero(alpha) || !has_entries) {
        // Without entries x may have no element to read.
        const Acc factor = is_zero(alpha) ? zero<Acc>() : alpha;
        const int64_t stride = int64_t(gridDim.x) * THREADS;
#pragma unroll 1
        for (int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x; row < a.rows; row += stride)
            store(y + row, factor, zero<Acc>(), beta);
        return;
    }
    if (has_tile) {
        sum_tile(a, x, y, alpha, beta, tile, loaded, stages[warp], results[warp]);
    } else if (lane == 0) {
        results[warp] = {zero<Acc>(), zero<Acc>(), zero<Acc>(), 0, 0, 0, false};
    }
    __syncthreads();
    const uint32_t first_link = results[0].link, last_link = results[WARPS - 1].link;
    const bool is_split = (first_link != 0 && first_link != Tile::TAKEN) ||
                          (last_link != 0 && (last_link & Tile::OVER) == 0);
    Part<Acc> in, out;
    if (threadIdx.x == 0)
        combine(results, y, alpha, beta, in, out);
    if (!is_split)
        return;

    // Numbers + 1 of the split rows for which this block is the last to arrive.
    __shared__ uint32_t finished[2];
    __shared__ Acc sums[WARPS];
    if (threadIdx.x == 0) {
        const auto leave_part = [&](Part<Acc> part) {
            if (part.split == 0)
                return;
            const Split split = a.splits[part.split - 1];
            parts[split.first_part + (blockIdx.x - split.first_block)] = part.sum;
        };
        const auto arrive = [&](Part<Acc> part) {
            if (part.split == 0 || arrivals == nullptr)
                return 0u;
            const uint32_t before = atomicAdd(arrivals + part.split - 1, 1);
            return before + 1 == a.splits[part.split - 1].parts ? part.split : 0u;
        };
        leave_part(in);
        leave_part(out);
        __threadfence();
        finished[0] = arrive(in);
        finished[1] = arrive(out);
        __threadfence();
    }
    __syncthreads();
#pragma unroll 1
    for (int which = 0; which < 2; ++which) {
        const uint32_t number = finished[which];
        if (number == 0)
            continue;
        const Split split = a.splits[number - 1];
        const Acc sum = sum_parts(split, parts, sums);
        if (threadIdx.x == 0) {
            store(y + split.row, alpha, sum, beta);
            arrivals[number - 1] = 0;
        }
    }
}

} // namespace tarsia::stream
