// SpMM `row` on short rows of about one length: C = alpha · A · B + beta · C, B by rows.
//
// A block of one multiprocessor takes chunks of neighbouring rows, its warps pieces of a
// chunk by turns, so that rows of B that neighbours read come from L1, and the blocks
// together go through the matrix in order, so that what rows far apart read comes from L2.
// A group of G lanes along the columns takes one row of a piece at a time: all groups of a
// warp go through their rows together, and nothing is asked but whether an entry is there.
// Offsets are a piece ahead, entries a row.
// Entries are added in the order in which they are stored.

#include "spmm/rows.cuh"

namespace tarsia {

using namespace tarsia::rows;

// How rows are dealt out. All counts are positive; rows and entries are less than 2^31.
struct Dealt {
    int32_t rows;
    // Rows of a piece, a power of two from 32 / G to 32; pieces of a chunk; chunks.
    int32_t piece, pieces, chunks;
    // log2 of the tiles along N that follow each other on a chunk.
    int32_t together;
};

// Rows of B that are on their way at one time, a group.
constexpr int FLIGHT = 4;

// What a warp's groups hand their lanes: S entries of a row of each.
template <class J, class Factor, int G, int S> struct alignas(16) Entries {
    alignas(16) J k[32 / G * S];
    alignas(16) Factor value[32 / G * S];
};

template <class A, class Acc> struct Widened { using type = A; };
template <class Acc> struct Widened<f16, Acc> { using type = Acc; };
template <class Acc> struct Widened<bf16, Acc> { using type = Acc; };

// Tiles of V · G columns; n is a multiple of V, B's columns are next to each other, its
// rows aligned to 16 bytes. flags: 1, C's rows are, too; 2, sums go to C as they are, in the
// accumulator's type.
template <class A, class X, class Y, class Acc, class J, int G, int W>
__device__ __forceinline__ void
near_rows(const Matrix<A, J> &a, const Dealt &dealt, const Dense<const X> &b, const Dense<Y> &c,
          int64_t n, const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_, int64_t flags) {
    constexpr unsigned ALL = 0xffffffffu;
    constexpr int V = PACK<X>, GROUPS = 32 / G;
    // Entries of a row that are fetched at a time; of these a lane has L.
    constexpr int S = G < 8 ? 8 : G, L = S / G;
    // Half types are widened once and not by each lane that gets them.
    using Factor = typename Widened<A, Acc>::type;
    __shared__ Entries<J, Factor, G, S> stages[W];
    Entries<J, Factor, G, S> &stage = stages[threadIdx.x / 32];
    const int lane = threadIdx.x & 31, in_group = lane % G, group = lane / G;
    const int32_t mask = (1 << dealt.together) - 1;
    const bool reads_a = !is_zero(alpha_.get());

    // A tile of a chunk, and the warp's piece of it.
    int32_t item = blockIdx.x, at = threadIdx.x / 32;
    const int32_t items = dealt.chunks << dealt.together;
    auto settle = [&] {
        while (at >= dealt.pieces)
            at -= dealt.pieces, item += gridDim.x;
    };
    auto first_row = [&] { return ((item >> dealt.together) * dealt.pieces + at) * dealt.piece; };
    // Entries of the piece's rows, one row a lane.
    auto look = [&](int row, int &begin, int &length) {
        begin = length = 0;
        if (reads_a && item < items && lane < dealt.piece && row + lane < dealt.rows) {
            begin = int(a.offsets.at(row + lane) - a.base);
            length = int(a.offsets.at(row + lane + 1) - a.base) - begin;
        }
    };
    J k[L];
    A value[L];
    auto fetch = [&](int begin, int length) {
#pragma unroll
        for (int i = 0; i < L; ++i) {
            const int e = in_group + i * G;
            k[i] = 0, value[i] = zero<A>();
            if (e < length) {
                k[i] = load(a.indices + begin + e);
                value[i] = load(a.values + begin + e);
            }
        }
    };
    auto stage_entries = [&] {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < L; ++i) {
            stage.k[group * S + in_group + i * G] = k[i] - J(a.base);
            stage.value[group * S + in_group + i * G] = widen<Factor>(value[i]);
        }
        __syncwarp();
    };

    settle();
    int row = first_row(), begin, length;
    look(row, begin, length);
    int now_begin = __shfl_sync(ALL, begin, group), now_length = __shfl_sync(ALL, length, group);
    fetch(now_begin, now_length);
    const int rounds = dealt.piece / GROUPS;
#pragma unroll 1
    while (item < items) {
        const int64_t tile = (int64_t(blockIdx.y) << dealt.together) + (item & mask);
        const int64_t col = tile * (V * G) + in_group * V;
        // A group's lanes past the last column read another one, and store nothing.
        const char *columns = reinterpret_cast<const char *>(b.data + (col < n ? col : 0));
        const int row_now = row + group;
        at += W;
        settle();
        row = first_row();
        int next_begin, next_length;
        look(row, next_begin, next_length);
#pragma unroll 1
        for (int round = 0; round < rounds; ++round) {
            stage_entries();
            const int from = now_begin, entries = now_length;
            const bool is_last = round + 1 == rounds;
            const int next = is_last ? group : (round + 1) * GROUPS + group;
            now_begin = __shfl_sync(ALL, is_last ? next_begin : begin, next);
            now_length = __shfl_sync(ALL, is_last ? next_length : length, next);
            // The next row's entries come while the rows of B of these do.
            fetch(now_begin, now_length);
            Acc sums[V];
#pragma unroll
            for (int i = 0; i < V; ++i)
                sums[i] = zero<Acc>();
#pragma unroll 1
            for (int first = 0;;) {
                const int here = min(entries - first, S);
#pragma unroll 1
                for (int e = 0; e < here; e += FLIGHT) {
                    const int place = group * S + e;
                    const auto rows = *reinterpret_cast<const Pack<J, FLIGHT> *>(stage.k + place);
                    Pack<X, V> packs[FLIGHT];
#pragma unroll
                    for (int u = 0; u < FLIGHT; ++u)
                        packs[u] = load_if(reinterpret_cast<const Pack<X, V> *>(
                                               row_at(columns, rows.v[u], b.row_stride)),
                                           e + u < here);
#pragma unroll
                    for (int u = 0; u < FLIGHT; ++u) {
                        if (e + u < here)
                            add_pack(sums, widen<Acc>(stage.value[place + u]), packs[u]);
                    }
                }
                first += S;
                if (!__any_sync(ALL, first < entries))
                    break;
                // The rest of a long row: the next row's entries wait in registers.
                __syncwarp();
#pragma unroll
                for (int i = 0; i < L; ++i) {
                    const int e = in_group + i * G;
                    if (first + e < entries) {
                        stage.k[group * S + e] = load(a.indices + from + first + e) - J(a.base);
                        stage.value[group * S + e] =
                            widen<Factor>(load(a.values + from + first + e));
                    }
                }
                __syncwarp();
            }
            const int to = row_now + round * GROUPS;
            if (to < dealt.rows && col < n) {
                // Not held in registers all the time.
                const Acc alpha = alpha_.get(), beta = beta_.get();
                if (flags & 2) {
                    Acc *out = reinterpret_cast<Acc *>(c.data) + to * c.row_stride + col;
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        out[i] = sums[i];
                } else if (flags & 1) {
                    Y *out = c.data + to * c.row_stride + col;
                    // Of 16 bytes at the most: Y may be wider than X.
                    constexpr int PART = PACK<Y> < V ? PACK<Y> : V;
#pragma unroll
                    for (int i = 0; i < V; i += PART) {
                        Pack<Y, PART> pack;
                        if (!is_zero(beta))
                            pack = *reinterpret_cast<const Pack<Y, PART> *>(out + i);
#pragma unroll
                        for (int j = 0; j < PART; ++j)
                            store(&pack.v[j], alpha, sums[i + j], beta);
                        store_once(reinterpret_cast<Pack<Y, PART> *>(out + i), pack);
                    }
                } else {
                    Y *out = c.data + to * c.row_stride + col * c.col_stride;
#pragma unroll
                    for (int i = 0; i < V; ++i)
                        store(out + i * c.col_stride, alpha, sums[i], beta);
                }
            }
        }
        begin = next_begin, length = next_length;
    }
}

} // namespace tarsia

using namespace tarsia;

// Columns of 32 bits.
#define NEAR(name, A, X, Y, Acc, G)                                                                \
    extern "C" __global__ void __launch_bounds__(32 * WARPS(G), 1) spmm_near_##name##_##G(         \
        rows::Offsets offsets, const int32_t *indices, const A *values, int64_t base, Dealt dealt, \
        const X *b, int64_t b_row, Y *c, int64_t c_row, int64_t c_col, int64_t n,                  \
        Scalar<Acc> alpha, Scalar<Acc> beta, int64_t flags) {                                      \
        near_rows<A, X, Y, Acc, int32_t, G, WARPS(G)>({offsets, indices, values, base}, dealt,     \
                                                      {b, b_row, 1}, {c, c_row, c_col}, n, alpha,  \
                                                      beta, flags);                                \
    }
// Warps of a block (src/backend/cuda/spmm/near.rs has the same): registers are 64 a thread for 32
// of them, 72 for 28 and 80 for 24.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define WARPS(G) 24
#else
#define WARPS(G) ((G) == 4 ? 28 : 32)
#endif
#define COMBO(name, A, X, Y, Acc)                                                                  \
    NEAR(name, A, X, Y, Acc, 4)                                                                    \
    NEAR(name, A, X, Y, Acc, 8)                                                                    \
    NEAR(name, A, X, Y, Acc, 16)                                                                   \
    NEAR(name, A, X, Y, Acc, 32)
COMBO(f64, double, double, double, double)
COMBO(f32, float, float, float, float)
COMBO(f32f64, float, double, double, double)
