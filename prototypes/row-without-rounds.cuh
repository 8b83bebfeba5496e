// SpMM `row`: C = alpha · A · B + beta · C on rows of A, B dense, by CUDA cores.
//
// A warp is 32 / G groups of G lanes, which lie along the columns of C. A group has a row of A, or
// a few, one after another; longer rows are shared by the groups of a warp, and parts of long ones
// by those of a block. Of a row a group loads G entries at a time, one a lane, while it multiplies
// the G before; each lane gets every entry by shuffles, and loads its columns of that row of B,
// kFlight rows at a time. So a row of at most G entries costs three loads that wait for each
// other: its place, its entries, and the rows of B.
// Entries are added in the order in which they are stored, groups that share a
// row and parts of a row in a fixed order, by the block that comes last: no
// floating-point atomics, the same bits from run to run, in one launch.

#pragma once

#include "common/complex.cuh"
#include "common/types.cuh"
#include "spmm/join.cuh"
#include "spmm/tasks.cuh"

namespace tarsia {

// As Dense, written: row i of A is row order[i] of it, or i where order is NULL.
template <class T> struct Output : Dense<T> {
    const uint32_t *order;

    template <class J> __device__ __forceinline__ int64_t row(int64_t i) const {
        if constexpr (sizeof(J) == 8) {
            // Rows in another order are a copy, which has columns of 32 bits, and fewer than 2^31
            // rows. (In two steps it takes two registers less than as `order ? … : i`.)
            return i;
        } else {
            const uint32_t low = order ? __ldg(order + uint32_t(i)) : uint32_t(i);
            return order ? int64_t(low) : (i & ~int64_t(0xffffffff)) | low;
        }
    }
};

struct Tasks {
    const Part *parts; // a block each
    int64_t part_count;
    const Run *warps; // rows that a warp takes
    int64_t warp_count;
    const Run *runs; // rows that groups take, or NULL: all rows as they are
    int64_t count;   // of runs, or rows
    int64_t spread;  // groups that share a row; 1 if rows_a_group > 1
    // For each tile of a launch, zero before it and after it.
    unsigned *counters;
    int64_t counter_count;
    // Without analysis rows of more than `run_limit` entries are in the lists of parts and warps
    // that spmm_tasks_unanalyzed makes, of these lengths: those of warps and of parts.
    int64_t run_limit;
    const int64_t *lengths;
};

// Kernels that begin while the one before is at work.
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Loads of 2 to 16 bytes of what nothing writes while the kernel reads it. (Lists that are made
// without analysis are written by the kernel before. They are read only after their lengths, which
// are read after wait_for_previous.)
template <class T> __device__ __forceinline__ T load(const T *from) {
    T out;
    if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
        *reinterpret_cast<uint4 *>(&out) = __ldg(reinterpret_cast<const uint4 *>(from));
    } else if constexpr (sizeof(T) == 2) {
        *reinterpret_cast<unsigned short *>(&out) =
            __ldg(reinterpret_cast<const unsigned short *>(from));
    } else {
        out = *from;
    }
    return out;
}

template <class A, class J> struct Matrix {
    Offsets offsets;
    const J *indices;
    const A *values;
    int64_t base;
};

template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };

// As load, for what is read once: it need not stay in L1.
template <class T> __device__ __forceinline__ T load_past_l1(const T *from) {
    T out;
    if constexpr (sizeof(T) == 4) {
        asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];"
            : "=r"(*reinterpret_cast<uint32_t *>(&out))
            : "l"(from));
    } else if constexpr (sizeof(T) == 8 && alignof(T) == 8) {
        asm("ld.global.nc.L1::no_allocate.b64 %0, [%1];"
            : "=l"(*reinterpret_cast<uint64_t *>(&out))
            : "l"(from));
    } else {
        out = load(from);
    }
    return out;
}

template <class T> __device__ __forceinline__ void store_once(T *to, const T &v) {
    if constexpr (sizeof(T) == 16) {
        __stcs(reinterpret_cast<uint4 *>(to), *reinterpret_cast<const uint4 *>(&v));
    } else {
        *to = v;
    }
}

// A row, or a part of one, or what a group has of one: `length` entries from `begin` on. A
// negative row is none.
struct Share {
    int64_t begin, row;
    int length;
};

__device__ __forceinline__ Share take(const Run *from) {
    const uint4 bits = __ldg(reinterpret_cast<const uint4 *>(from));
    return {int64_t(bits.y) << 32 | bits.x, int(bits.z), int(bits.w)};
}

// The row at this place of the list of runs.
__device__ __forceinline__ Share take_row(const Offsets &offsets, int64_t base, const Tasks &tasks,
                                          int64_t place) {
    if (place >= tasks.count)
        return {0, -1, 0};
    if (tasks.runs)
        return take(tasks.runs + place);
    const int64_t begin = offsets.at(place), length = offsets.at(place + 1) - begin;
    if (length > tasks.run_limit)
        return {0, -1, 0};
    return {begin - base, place, int(length)};
}

__device__ __forceinline__ Part load_part(const Part *from) {
    Part part;
    *reinterpret_cast<uint4 *>(&part) = __ldg(reinterpret_cast<const uint4 *>(from));
    *(reinterpret_cast<uint4 *>(&part) + 1) = __ldg(reinterpret_cast<const uint4 *>(from) + 1);
    return part;
}

// Rows of B that a group loads at a time. Eight cost registers, and with them warps that hide the
// same latency (fp32, N = 32: 0.95 of the speed).
constexpr int kFlight = 4;

// Threads of a block of a wide kernel: a block keeps its registers until its
// longest warp is done, so a block is small.
constexpr int kBlock = 128;

template <bool first, class T, class U> struct Either { using type = T; };
template <class T, class U> struct Either<false, T, U> { using type = U; };

// Where in a column of B a row is. stride: bytes between rows.
template <class J>
__device__ __forceinline__ const char *row_at(const char *columns, J row, int64_t stride) {
    // The host says so only of strides of 32 bits.
    if constexpr (sizeof(J) == 4)
        return columns + int64_t(row) * int32_t(stride);
    return columns + row * stride;
}

template <class Acc, class X, int V>
__device__ __forceinline__ void add_pack(Acc *sums, Acc factor, const Pack<X, V> &pack) {
#pragma unroll
    for (int i = 0; i < V; ++i)
        sums[i] = fma(factor, widen<Acc>(pack.v[i]), sums[i]);
}

template <class X, int V> __device__ __forceinline__ Pack<X, V> ldpack(const char *p) {
    uint4 b = __ldg((const uint4 *)p);
    return *reinterpret_cast<Pack<X, V> *>(&b);
}
template <bool is> struct Flag { static constexpr bool yes = is; };

// P times V elements a lane, V of them next to each other, the next V · G
// columns further: P · V · G columns a group; n is a multiple of V. B's columns
// are next to each other, row_stride is in bytes. B_PACKS: B's rows are aligned
// to 16 bytes; else V is 1, and a complex B may be aligned to its parts only.
// Loads and stores of 16 bytes where V > 1; `c_packs` says whether C's rows are
// aligned for that. raw: sums go to C in the accumulator's type.
// kLists: only what is in the lists that were made without analysis, a block's turn of them; else
// only the rest, or with analysis all.
template <bool kLists, class A, class X, class Y, class Acc, class J, int G, int V, int P,
          bool B_PACKS>
__device__ __forceinline__ void
row_wide(const Matrix<A, J> &a, const Tasks &tasks, const Dense<const X> &b, const Output<Y> &c,
         int64_t n, const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_, Acc *partial,
         int64_t partial_stride, int64_t flags, int turn) {
    constexpr unsigned kWarp = 0xffffffffu;
    constexpr int kWarps = kBlock / 32, kGroups = 32 / G, kTile = P * V * G;
    // Half types are widened once and not by each lane that gets them.
    using Factor = typename Either<sizeof(A) == 2, Acc, A>::type;
    // Sums of a part.
    __shared__ Acc of_warps[kWarps][kTile];

    const bool c_packs = flags & 1, raw = flags & 2;
    const int together = int(flags >> 8);
    const unsigned tile = (blockIdx.y << together) + (blockIdx.x & ((1u << together) - 1));
    if (int64_t(tile) * kTile >= n)
        return;
    const int lane = threadIdx.x & 31, in_group = lane % G, group = lane / G;
    int64_t block = int64_t(blockIdx.x >> together);
    const int64_t part_count = kLists ? tasks.lengths[1] : tasks.part_count;
    if (kLists)
        block += turn * int64_t(gridDim.x >> together);
    const bool is_part = block < part_count;

    Share own;
    int sharing, which; // groups that share it, and which of them this one is
    if (is_part) {
        const Part part = load_part(tasks.parts + block);
        own = {part.begin, part.row, part.length};
        sharing = kWarps * kGroups;
        which = threadIdx.x / G;
    } else {
        int64_t warp = (block - part_count) * kWarps + threadIdx.x / 32;
        const int64_t warp_count = kLists ? tasks.lengths[0] : tasks.warp_count;
        if (warp < warp_count) {
            own = take(tasks.warps + warp);
            sharing = kGroups;
            which = group;
        } else if (kLists) {
            return;
        } else {
            warp -= warp_count;
            sharing = int(tasks.spread);
            which = group % sharing;
            own = take_row(a.offsets, a.base, tasks, warp * (kGroups / sharing) + group / sharing);
        }
    }
    if (is_zero(alpha_.get()))
        own.length = 0;
    if (sharing > 1) {
        // G entries by turns.
        const int begin = which * G, rest = own.length % (sharing * G) - begin;
        own.begin += begin;
        own.length = own.length / (sharing * G) * G + (rest < 0 ? 0 : rest < G ? rest : G);
    }

    const int col = int(tile) * kTile + in_group * V;
    // A group's lanes past the last column read another one, and store nothing.
    const char *columns = reinterpret_cast<const char *>(b.data + (col < n ? col : 0));
    // Its stride is a multiple of the size of elements, so that all are aligned like the first.
    // Those of 16 bytes that are aligned are packs.
    const bool b_is_whole = sizeof(X) < 16 && is_whole(b.data);
    const int further = P > 1 && col + V * G < n ? V * G * int(sizeof(X)) : 0;
    Acc sums[P * V];
#pragma unroll
    for (int i = 0; i < P * V; ++i)
        sums[i] = zero<Acc>();

    auto put = [&](int64_t row_of_a) {
        const int64_t target = c.template row<J>(row_of_a);
        // Not held in registers all the time.
        const Acc alpha = alpha_.get(), beta = beta_.get();
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const int at = col + p * (V * G);
            Acc *sum = sums + p * V;
            if (at >= n) {
            } else if (raw) {
                Acc *out = reinterpret_cast<Acc *>(c.data) + target * c.row_stride + at;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    out[i] = sum[i];
            } else if (V > 1 && c_packs) {
                Y *out = c.data + target * c.row_stride + at;
                // Of 16 bytes at the most: Y may be wider than X.
                constexpr int kPack = 16 / sizeof(Y) < V ? 16 / sizeof(Y) : V;
#pragma unroll
                for (int i = 0; i < V; i += kPack) {
                    Pack<Y, kPack> pack;
                    if (!is_zero(beta))
                        pack = *reinterpret_cast<const Pack<Y, kPack> *>(out + i);
#pragma unroll
                    for (int j = 0; j < kPack; ++j)
                        store(&pack.v[j], alpha, sum[i + j], beta);
                    // C is not read again: it should not push B out of L2.
                    store_once(reinterpret_cast<Pack<Y, kPack> *>(out + i), pack);
                }
            } else {
                Y *out = c.data + target * c.row_stride + at * c.col_stride;
#pragma unroll
                for (int i = 0; i < V; ++i)
                    store(out + i * c.col_stride, alpha, sum[i], beta);
            }
        }
    };

    // The next entries of the group, one a lane.
    J column = 0;
    A value = zero<A>();
    const auto fetch = [&](int first) {
        if (first + in_group < own.length) {
            const int64_t entry = own.begin + (first * sharing + in_group);
#if VAR & 1
            column = __ldg(a.indices + entry);
            value = __ldg(a.values + entry);
#else
            column = (G < 16 ? load(a.indices + entry) : load_past_l1(a.indices + entry));
            value = G < 16 ? load(a.values + entry) : load_past_l1(a.values + entry);
#endif
        }
    };
    // Adds kFlight of the G entries that the lanes have, of which `here` are the row's.
    constexpr int kNow = G < kFlight ? G : kFlight;
    const auto add_entries = [&](J columns_now, Factor values_now, int at, int here) {
        Pack<X, V> packs[kNow][P];
        const auto load_rows = [&](auto by_parts) {
#pragma unroll
            for (int u = 0; u < kNow; ++u) {
                const J row_of_b = shuffle_index<G>(columns_now, at + u);
                const char *from = row_at(columns, row_of_b, b.row_stride);
#pragma unroll
                for (int p = 0; p < P; ++p) {
                    if (at + u < here) {
                        if constexpr (by_parts.yes) {
                            packs[u][p].v[0] = load_parts(reinterpret_cast<const X *>(from));
                        } else {
                            packs[u][p] =
                                
#if VAR & 2
                                ldpack<X, V>(from + p * further);
#else
                                load(reinterpret_cast<const Pack<X, V> *>(from + p * further));
#endif

                        }
                    }
                }
            }
        };
        if constexpr (IS_COMPLEX<X> && !B_PACKS) {
            // One branch, so that all of these rows are on their way at a time.
            if (b_is_whole) {
                load_rows(Flag<false>{});
            } else {
                load_rows(Flag<true>{});
            }
        } else {
            load_rows(Flag<false>{});
        }
#pragma unroll
        for (int u = 0; u < kNow; ++u) {
            const Acc factor = widen<Acc>(shuffle_index<G>(values_now, at + u));
            if (at + u < here) {
#pragma unroll
                for (int p = 0; p < P; ++p)
                    add_pack(sums + p * V, factor, packs[u][p]);
            }
        }
    };

    fetch(0);
    const int longest = __reduce_max_sync(kWarp, own.length);
#pragma unroll 1
    for (int first = 0; first < longest; first += G) {
        const J columns_now = column - J(a.base);
        const Factor values_now = widen<Factor>(value);
        fetch(first + G);
        const int here = own.length - first, most = min(longest - first, G);
#pragma unroll 1
        for (int at = 0; at < most; at += kNow)
            add_entries(columns_now, values_now, at, here);
    }
    add_groups<G>(sums, is_part ? kGroups : sharing);
    if (is_part) {
        const int warp = threadIdx.x / 32;
        if (group == 0) {
#pragma unroll
            for (int i = 0; i < P * V; ++i)
                of_warps[warp][i * G + in_group] = sums[i];
        }
        __syncthreads();
        if (warp > 0)
            return;
#pragma unroll 1
        for (int w = 1; w < kWarps; ++w) {
#pragma unroll
            for (int i = 0; i < P * V; ++i)
                sums[i] = add(sums[i], of_warps[w][i * G + in_group]);
        }
        const Part part = load_part(tasks.parts + block);
        const auto column_of = [&](int i) {
            const int at = col + i / V * (V * G) + i % V;
            return at < n ? at : -1;
        };
        if (part.count > 1 &&
            !join_parts<G>(sums, part, partial, partial_stride,
                           tasks.counters + tile * tasks.counter_count, column_of))
            return;
    }
    // One of the groups that share it.
    if (group % sharing == 0 && own.row >= 0)
        put(own.row);
}


// C = alpha · sums + beta · C for a C whose columns are contiguous; sums are
// m × n by rows. Blocks of 32 × 8 threads, tiles of 32 × 32.
template <class Y, class Acc>
__device__ __forceinline__ void row_finish(const Acc *sums, const Dense<Y> &c, int64_t m, int64_t n,
                                           const Scalar<Acc> &alpha_, const Scalar<Acc> &beta_) {
    __shared__ Acc tile[32][33];
    const Acc alpha = alpha_.get(), beta = beta_.get();
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const int64_t i0 = int64_t(blockIdx.x) * 32;
    for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < n; j0 += int64_t(gridDim.y) * 32) {
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + r < m && j0 + x < n)
                tile[r][x] = sums[(i0 + r) * n + j0 + x];
        }
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + x < m && j0 + r < n) {
                store(c.data + (i0 + x) * c.row_stride + (j0 + r) * c.col_stride, alpha, tile[x][r],
                      beta);
            }
        }
    }
}

// B by rows (rows × cols, `ld` apart) from a B whose columns are contiguous, or
// that must be conjugated, or whose rows begin anywhere.
template <class T>
__device__ __forceinline__ void row_pack(const T *from, int64_t row_stride, int64_t col_stride,
                                         T *to, int64_t rows, int64_t cols, int64_t ld,
                                         int64_t conjugated) {
    __shared__ T tile[32][33];
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    const int64_t i0 = int64_t(blockIdx.x) * 32;
    if (col_stride == 1) {
        for (int64_t j = int64_t(blockIdx.y) * 32 + x; j < cols; j += int64_t(gridDim.y) * 32) {
#pragma unroll
            for (int r = 0; r < 32; r += 8) {
                const int64_t i = i0 + r + y;
                if (i < rows) {
                    T v = from[i * row_stride + j];
                    if constexpr (__is_class(T)) {
                        if (conjugated)
                            v = conjugate(v);
                    }
                    to[i * ld + j] = v;
                }
            }
        }
        return;
    }
    for (int64_t j0 = int64_t(blockIdx.y) * 32; j0 < cols; j0 += int64_t(gridDim.y) * 32) {
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + x < rows && j0 + r < cols) {
                T v = from[(i0 + x) * row_stride + (j0 + r) * col_stride];
                if constexpr (__is_class(T)) {
                    if (conjugated)
                        v = conjugate(v);
                }
                tile[r][x] = v;
            }
        }
        __syncthreads();
        for (int r = y; r < 32; r += 8) {
            if (i0 + r < rows && j0 + x < cols)
                to[(i0 + r) * ld + j0 + x] = tile[x][r];
        }
    }
}

} // namespace tarsia
