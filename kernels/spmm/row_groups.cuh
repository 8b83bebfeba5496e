// SpMM `row` where rows of B and C are aligned to 16 bytes: C = alpha · A · B + beta · C on the
// lists of rows that analysis makes (spmm/tasks.cuh), by CUDA cores.
//
// A group of G lanes, which lie along the columns of C, takes a row of A. Rows of middle length are
// shared by two or four groups of a block, and parts of long rows by all groups of a block. Of G
// entries each lane loads one, and shuffles hand it to the others, which load their columns of its
// row of B, kFlight rows at a time, while the next G entries are in flight. Only the final sums of
// a shared row go through shared memory. Entries are added in the order in which they are stored,
// shares in their order, and parts of a row by the last block to arrive: there are no
// floating-point atomics, and results have the same bits from run to run.
#pragma once

#include "spmm/row.cuh"

namespace tarsia {

// Lists of rows. The blocks of a launch take first the parts, one each, then rows that four groups
// share, then rows that two share, and then all others.
struct GroupTasks {
    const Part *parts;
    const Run *quads, *pairs, *rows;
    int64_t quad_count, pair_count, row_count;
    // First block of the quads, of the pairs, and of the other rows.
    uint32_t quads_from, pairs_from, rows_from;
    // One set per tile of a launch; zero before the launch and after it.
    uint32_t counter_count;
    unsigned *counters;
};

// Computes a tile of C with P times V elements per lane, V contiguous ones in 16 bytes and the next
// V a further V · G columns on: a tile has P · V · G columns, and a group computes it. n is a
// multiple of V and, if P > 1, of tiles. b_packs: packs of 16 bytes between rows of B; cols ·
// b_packs is less than 2^32. together: log2 of the tiles that are neighbours in the grid.
template <class A, class X, class Y, class Acc, int G, int V, int P>
__device__ __forceinline__ void
row_groups(const int32_t *indices, const A *values, int32_t base, const GroupTasks &tasks,
           const X *b, uint32_t b_packs, Y *c, int64_t c_row, int32_t n, const Scalar<Acc> &alpha_,
           const Scalar<Acc> &beta_, Acc *partial, int64_t partial_stride, int32_t together) {
    constexpr unsigned kWarp = 0xffffffffu;
    constexpr int kGroups = kBlock / G, kTile = P * V * G, kNow = G < kFlight ? G : kFlight;
    using Factor = typename Either<sizeof(A) == 2, Acc, A>::type;
    __shared__ alignas(16) Acc shares[kGroups * kTile];

    const int lane = threadIdx.x % G, group = threadIdx.x / G;
    const uint32_t tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    const uint32_t block = blockIdx.x >> together;
    if (int(tile) * kTile >= n)
        return;
    const bool is_part = block < tasks.quads_from;
    int64_t begin = 0;
    int row = -1, length = 0, sharing_log2 = 0;
    if (is_part) {
        const Part part = load_part(tasks.parts + block);
        begin = part.begin;
        row = part.row;
        length = part.length;
        sharing_log2 = kGroups == 4 ? 2 : kGroups == 8 ? 3 : kGroups == 16 ? 4 : 5;
    } else {
        const Run *list = tasks.rows;
        int64_t count = tasks.row_count;
        uint32_t from = tasks.rows_from;
        if (block < tasks.pairs_from) {
            list = tasks.quads;
            count = tasks.quad_count;
            from = tasks.quads_from;
            sharing_log2 = 2;
        } else if (block < tasks.rows_from) {
            list = tasks.pairs;
            count = tasks.pair_count;
            from = tasks.pairs_from;
            sharing_log2 = 1;
        }
        const int64_t place = (int64_t(block - from) * kGroups + group) >> sharing_log2;
        if (place < count) {
            const Share own = take(list + place);
            begin = own.begin;
            row = int(own.row);
            length = own.length;
        }
    }
    const int which = group & ((1 << sharing_log2) - 1);
    if (sharing_log2 > 0) {
        const int each = (length + (1 << sharing_log2) - 1) >> sharing_log2;
        const int before = min(which * each, length);
        begin += before;
        length = min(each, length - before);
    }
    if (is_zero(alpha_.get()))
        length = 0;

    const int col = int(tile) * kTile + lane * V;
    const bool has_columns = col < n;
    // Lanes beyond the last column read the first ones, and store nothing.
    const char *columns = reinterpret_cast<const char *>(b + (has_columns ? col : 0));
    // Keeps the compiler from computing the sum again for each load.
    asm("" : "+l"(columns));
    Acc sums[P * V];
#pragma unroll
    for (int i = 0; i < P * V; ++i)
        sums[i] = zero<Acc>();

    // Next entry of this lane. Its column is kept as it is stored, so that nothing waits for the
    // load before it is used.
    int32_t index = base;
    Factor factor = zero<Factor>();
    const int32_t *next_index = indices + (begin + lane);
    const A *next_value = values + (begin + lane);
    const auto fetch = [&](int entry) {
        if (entry < length) {
            index = load(next_index);
            factor = widen<Factor>(load(next_value));
        }
        next_index += G;
        next_value += G;
    };
    // The groups of a warp loop together; a group that is done idles.
    const int longest = __reduce_max_sync(kWarp, length),
              shortest = __reduce_min_sync(kWarp, length);
    fetch(lane);
    for (int first = 0; first < longest; first += G) {
        // Offset of its row of B, in packs.
        const uint32_t now_at = uint32_t(index - base) * b_packs;
        const Factor now_factor = factor;
        if (first + G < longest)
            fetch(first + G + lane);
        const auto add_entries = [&](auto whole, int turn) {
            const int left = length - first - turn;
            Pack<X, V> packs[kNow][P];
#pragma unroll
            for (int u = 0; u < kNow; ++u) {
                const char *from = columns + uint64_t(__shfl_sync(kWarp, now_at, turn + u, G)) * 16;
#pragma unroll
                for (int p = 0; p < P; ++p) {
                    if (whole.yes || u < left)
                        packs[u][p] = load(reinterpret_cast<const Pack<X, V> *>(from) + p * G);
                }
            }
#pragma unroll
            for (int u = 0; u < kNow; ++u) {
                const Factor of_all = __shfl_sync(kWarp, now_factor, turn + u, G);
#pragma unroll
                for (int p = 0; p < P; ++p) {
                    if (whole.yes || u < left)
                        add_pack(sums + p * V, widen<Acc>(of_all), packs[u][p]);
                }
            }
        };
#pragma unroll
        for (int turn = 0; turn < G; turn += kNow) {
            if (first + turn + kNow <= shortest) {
                add_entries(Flag<true>{}, turn);
            } else if (first + turn < longest) {
                add_entries(Flag<false>{}, turn);
            }
        }
    }

    if (sharing_log2 > 0) {
        Acc *const own = shares + group * kTile + lane * V;
        if (which > 0) {
#pragma unroll
            for (int i = 0; i < P * V; ++i)
                own[i / V * (V * G) + i % V] = sums[i];
        }
        __syncthreads();
        if (which == 0) {
#pragma unroll 1
            for (int other = 1; other < 1 << sharing_log2; ++other) {
#pragma unroll
                for (int i = 0; i < P * V; ++i)
                    sums[i] = add(sums[i], own[other * kTile + i / V * (V * G) + i % V]);
            }
        }
        if (is_part) {
            if (threadIdx.x >= 32)
                return;
            const Part part = load_part(tasks.parts + block);
            // All columns of a lane exist, or none: n is a multiple of V, and of tiles if a lane
            // has several packs.
            const auto column = [&](int i) {
                return has_columns && which == 0 ? col + i / V * (V * G) + i % V : -1;
            };
            if (part.count > 1 &&
                !join_parts<32>(sums, part, partial, partial_stride,
                                tasks.counters + tile * tasks.counter_count, column))
                return;
        }
    }
    if (which > 0 || row < 0 || !has_columns)
        return;
    const Acc alpha = alpha_.get(), beta = beta_.get();
    // Elements of C are stored in packs of at most 16 bytes, which have fewer than V elements if Y
    // is wider than X.
    constexpr int kPack = 16 / sizeof(Y) < V ? 16 / sizeof(Y) : V;
    Y *out = c + row * c_row + col;
#pragma unroll
    for (int i = 0; i < P * V; i += kPack) {
        Pack<Y, kPack> *to = reinterpret_cast<Pack<Y, kPack> *>(out + i / V * (V * G) + i % V);
        Pack<Y, kPack> pack;
        if (!is_zero(beta))
            pack = *to;
#pragma unroll
        for (int j = 0; j < kPack; ++j)
            store(&pack.v[j], alpha, sums[i + j], beta);
        // C is not read again, so it should not evict B from L2.
        store_once(to, pack);
    }
}

} // namespace tarsia
