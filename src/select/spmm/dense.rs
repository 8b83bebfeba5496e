//! Decision whether the library's own kernels or cublasLt multiply op(A) as a dense matrix.
//!
//! Both were measured on an H100 for 32 shapes from 512 × 512 to 4096 × 4096 with N = 32 to 512
//! (docs/algorithms/dense.md): up to some number of multiplications the library's own kernels take as
//! long as cublasLt with the launch that must follow it; beyond, cublasLt's tiles are faster.

pub mod own;

use super::copies::PACK;
use crate::select::device::Ratios;
use crate::select::Multiplier;
use crate::support::Types;
use crate::types::{ComputeType, DataType};

/// Sizes for which the library's own kernels take as long as cublasLt.
struct OwnKernelLimits {
    /// Maximum number of multiplications. Products with fewer than 32 columns count as if they had 32.
    multiplications: usize,
    /// Maximum number of columns, and of multiplications, of products with few columns, which may have more
    /// multiplications than others.
    few_columns: (usize, usize),
    /// Ratio of the own kernels' time to cublasLt's at [`LARGEST`] multiplications.
    time_ratio: f64,
}

/// Number of multiplications of the largest products that were timed: 4096 × 4096 × 512.
const LARGEST: f64 = (1_u64 << 33) as f64;

const HALVES: OwnKernelLimits =
    OwnKernelLimits { multiplications: 1 << 25, few_columns: (0, 0), time_ratio: 2.27 };
const TF32: OwnKernelLimits =
    OwnKernelLimits { multiplications: 1 << 27, few_columns: (64, 1 << 30), time_ratio: 2.56 };
const F32: OwnKernelLimits =
    OwnKernelLimits { multiplications: 1 << 27, few_columns: (128, 1 << 29), time_ratio: 1.33 };
const F64: OwnKernelLimits =
    OwnKernelLimits { multiplications: 1 << 25, few_columns: (0, 0), time_ratio: 1.3 };

/// Arithmetic of a dense product, which determines its kernels and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 16-bit values.
    Halves,
    /// 32-bit values, multiplied as TF32.
    Tf32,
    /// 32-bit values in fp32.
    F32,
    /// 64-bit values.
    F64,
}

impl Arithmetic {
    /// Arithmetic of `dense` for these types.
    pub fn of(types: Types) -> Self {
        match (types.a, types.compute) {
            (DataType::R64F, _) => Arithmetic::F64,
            (DataType::R32F, ComputeType::Tf32) => Arithmetic::Tf32,
            (DataType::R32F, _) => Arithmetic::F32,
            _ => Arithmetic::Halves,
        }
    }
}

impl OwnKernelLimits {
    fn of(types: Types) -> &'static Self {
        match Arithmetic::of(types) {
            Arithmetic::Halves => &HALVES,
            Arithmetic::Tf32 => &TF32,
            Arithmetic::F32 => &F32,
            Arithmetic::F64 => &F64,
        }
    }

    /// Maximum number of multiplications for `n` columns; `n` is 0 for a plan that was not told how many
    /// there will be.
    fn most_multiplications(&self, n: usize) -> usize {
        if n.max(1) <= self.few_columns.0 {
            self.few_columns.1
        } else {
            self.multiplications
        }
    }
}

/// Number of multiplications of m × k and k × n matrices, with n counted as at least 32.
fn work((m, k, n): (usize, usize, usize)) -> usize {
    m.saturating_mul(k).saturating_mul(n.max(32))
}

/// Returns whether the library's own kernels multiply m × k and k × n matrices as fast as cublasLt, which
/// takes at least 130 ms to be opened and called for the first time.
pub fn own_kernels_suffice(types: Types, sizes: (usize, usize, usize)) -> bool {
    work(sizes) <= OwnKernelLimits::of(types).most_multiplications(sizes.2)
}

/// Maximum number of multiplications for which cublasLt gets an fp32 A by columns. With A by rows it takes
/// 0.98 to 1.5 times as long (16,384 × 4096 × 32: 187 and 124 µs), and 0.9 to 1.03 beyond this number; TF32
/// by rows takes 0.8 to 1.2, and other types take the same time.
const BY_COLUMNS: usize = 1 << 32;

/// Returns whether cublasLt gets an m × k matrix A by columns, for products with n columns.
pub fn is_by_columns(types: Types, (m, k, n): (usize, usize, usize)) -> bool {
    Arithmetic::of(types) == Arithmetic::F32 && m.saturating_mul(k).saturating_mul(n) <= BY_COLUMNS
}

/// Returns whether the `k` columns of A, and as many rows of B, are padded with zeros to whole packs for
/// cublasLt, so that B is copied: by rows it has no fast kernel for rows that end inside a pack
/// (8435 × 8435 × 128: 192 µs, by columns 74). Its kernels that drop columns cut K otherwise in any
/// case (`may_drop_columns`).
pub fn pads_k(types: Types, k: usize) -> bool {
    match Arithmetic::of(types) {
        Arithmetic::Halves | Arithmetic::Tf32 => k % (PACK / types.a.size()) != 0,
        Arithmetic::F32 | Arithmetic::F64 => false,
    }
}

/// Multiplier of m × k and k × n matrices: cublasLt where it is faster, except in deterministic mode, since
/// its choice of kernels depends on the version that the loader finds; the library's own kernels serve all
/// sizes and types. `timed` selects the fastest of cublasLt's algorithms; its first one is 1 to 17 % slower
/// for products of 6 to 20 µs. `n` is 0 for a plan that was not told how many columns there will be.
pub fn multiplier(
    types: Types,
    sizes: (usize, usize, usize),
    deterministic: bool,
    timed: bool,
) -> Multiplier {
    match deterministic || own_kernels_suffice(types, sizes) {
        true => Multiplier::Own,
        false => Multiplier::CublasLt { timed, a_by_columns: is_by_columns(types, sizes) },
    }
}

/// Minimum number of columns of C, and of multiplications, for which matrix units multiply fp32 factors in
/// three bf16 parts. On an H100 4096 × 4096 × 32 takes 38.9 µs this way and 44.9 by FMA, with 64 columns 41
/// and 63, with 128 58 and 116, with 512 189 and 437; 512 × 512 × 128 takes 8.2 and 7.6, 1024 × 1024 × 128
/// 10.6 and 13.9.
const PARTS_COLUMNS: usize = 48;
const PARTS_WORK: usize = 1 << 26;
/// Minimum gain of the three bf16 parts over FMA on an H100, where they pay; other devices scale it by the
/// ratios of their matrix units and FMA.
const PARTS_GAIN: f64 = 1.6;

/// Returns whether matrix units multiply m × k and k × n matrices of fp32 in three bf16 parts: if that is
/// faster on the device, and pedantic arithmetic (`ieee`) was not asked for.
pub fn is_in_parts(types: Types, ieee: bool, (m, k, n): (usize, usize, usize), device: &Ratios) -> bool {
    Arithmetic::of(types) == Arithmetic::F32
        && !ieee
        && n >= PARTS_COLUMNS
        && work((m, k, n)) >= PARTS_WORK
        && PARTS_GAIN * device.matrix_units > device.singles
}

/// Predicted ratio of the time of such a product to that of cublasLt's FMA. Measured for 4096 × 4096: 0.59
/// with 128 columns of C (58 and 98 µs), 0.57 with 4096; with few columns, and for small products (2048 × 512
/// × 128), a larger ratio is assumed.
pub fn in_parts_slower(sizes: (usize, usize, usize)) -> f64 {
    const NO_GAIN: f64 = (1 << 27) as f64;
    let large = 0.57 + 12.0 / sizes.2.max(1) as f64;
    large + (1.0 - large) * (NO_GAIN / work(sizes) as f64).min(1.0)
}

/// Predicted ratio of the time of the library's own kernels to cublasLt's, for plans that may not use
/// cublasLt: 1 up to the limit, and from there geometrically interpolated to the ratio measured for the
/// largest products.
pub fn own_kernels_slower(types: Types, sizes: (usize, usize, usize)) -> f64 {
    let limits = OwnKernelLimits::of(types);
    let most = limits.most_multiplications(sizes.2) as f64;
    let beyond = (work(sizes) as f64 / most).log2() / (LARGEST / most).log2();
    limits.time_ratio.powf(beyond.clamp(0.0, 1.0))
}

/// Multiplications beyond which B and C are copied for cublasLt if n is no multiple of a pack: it takes 234
/// µs for 4096 × 4096 × 513 in fp16, 39 for 520 columns, and 53 with both copies; for 2048 × 2048 × 3 17.2,
/// 9.6 and 14.7. In fp32 it loses nothing.
const CROOKED_HALVES: usize = 12_000_000;
const CROOKED_TF32: usize = 300_000_000;
const CROOKED_F64: usize = 1_000_000_000;

/// Returns whether cublasLt gets a copy of B, and writes C to the workspace, where rows end inside a pack
/// ([`ends_inside_pack`]), for a product with `work` multiplications.
pub fn copies_pay(types: Types, work: usize) -> bool {
    let most = match Arithmetic::of(types) {
        Arithmetic::Tf32 => CROOKED_TF32,
        Arithmetic::F32 => usize::MAX,
        Arithmetic::F64 => CROOKED_F64,
        Arithmetic::Halves => CROOKED_HALVES,
    };
    work > most
}

/// Returns whether rows of `n` elements of B end inside a pack; false for one column, which has no rows to
/// align.
pub fn ends_inside_pack(types: Types, n: usize) -> bool {
    n > 1 && n % (PACK / types.x.size()) != 0
}

/// Bytes of products that are in the workspace at one time: more than L2 holds, little for memory; but at
/// least [`FEWEST`] columns.
const PRODUCTS: usize = 64 << 20;
const FEWEST: usize = 128;

/// Number of columns of products, out of `n`, that are in the workspace at one time, given the bytes of a
/// column.
pub fn columns_at_once(column_bytes: usize, n: usize) -> usize {
    (PRODUCTS / column_bytes.max(1) / FEWEST * FEWEST).max(FEWEST).min(n)
}

/// Bytes of cublasLt's workspace as advised for these devices, and as its heuristic is told in any case. With
/// less its choice changes, though the algorithms need far less: 512 × 512 × 32 in fp32 takes 10.9 µs with
/// the choice for 32 MiB, which uses 512 KiB, and 14.0 with that for 1 to 31 MiB.
pub const LT_WORKSPACE: usize = 32 << 20;
/// Number of copies of a small product's sums that fit into its workspace: cublasLt was seen to split K into
/// 33 parts.
const LT_PARTS: usize = 64;

/// Bytes of cublasLt's workspace for a product whose sums take `sums` bytes.
pub fn lt_workspace(sums: usize) -> usize {
    sums.saturating_mul(LT_PARTS).min(LT_WORKSPACE)
}

/// Number of algorithms that cublasLt is asked for, and that are timed: the first may need more workspace
/// than there is.
pub const LT_CANDIDATES: usize = 8;

/// Maximum number of bytes of B and C for which analysis runs a product, so that the kernels are loaded
/// before the first execution.
const RUN_AHEAD: usize = 256 << 20;

/// Returns whether analysis runs a product, given the bytes of B and C.
pub fn is_run_ahead(b: usize, c: usize) -> bool {
    b > 0 && c > 0 && b.saturating_add(c) <= RUN_AHEAD
}

/// Rows of A that a block of the fill kernel writes at one time, one per warp, and maximum number of blocks
/// per multiprocessor.
const FILLED: u64 = 8;
const FILL_BLOCKS: u64 = 32;

/// Number of blocks that write A with this many rows.
pub fn blocks_that_fill(rows: i64, multiprocessors: u32) -> u32 {
    (rows as u64).div_ceil(FILLED).min(FILL_BLOCKS * u64::from(multiprocessors)) as u32
}

/// Lines of C per thread of the last launch, and minimum number of blocks per multiprocessor for which
/// threads take as many.
const LINES: i64 = 4;
const ENOUGH: i64 = 8;

/// Shape of a block of 256 threads in the last launch: log2 of the threads along a line of C, and the lines
/// of a thread, for `outer` lines of `inner` elements of `size` bytes.
pub fn lines_of_block((outer, inner): (i64, i64), size: usize, multiprocessors: i64) -> (i64, i64) {
    let packs = (inner as u64).div_ceil(PACK as u64 / size as u64).next_power_of_two();
    let across = i64::from(packs.trailing_zeros().min(8));
    let blocks = outer / (LINES << (8 - across)) * (packs as i64 >> across);
    (across, if blocks >= ENOUGH * multiprocessors { LINES } else { 1 })
}

/// Blocks per multiprocessor that search for values that are not finite.
const REPAIR_BLOCKS: u32 = 2;

/// Maximum number of blocks that search for values that are not finite.
pub fn most_blocks_that_repair(multiprocessors: u32) -> u32 {
    multiprocessors * REPAIR_BLOCKS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(a: DataType, compute: ComputeType) -> Types {
        Types { a, x: a, y: a, compute }
    }

    #[test]
    fn fp32_is_multiplied_in_parts_where_that_is_faster() {
        let f32 = types(DataType::R32F, ComputeType::R32F);
        let is_taken = |types, ieee, sizes| is_in_parts(types, ieee, sizes, &Ratios::SAME);
        let large = (4096, 4096, 128);
        assert!(is_taken(f32, false, large) && is_taken(f32, false, (1024, 1024, 64)));
        assert!(!is_taken(f32, true, large) && !is_taken(f32, false, (4096, 4096, 32)));
        assert!(!is_taken(f32, false, (512, 512, 128)) && !is_taken(f32, false, (4096, 4096, 0)));
        for compute in [ComputeType::Tf32, ComputeType::R64F] {
            let value = if compute == ComputeType::R64F { DataType::R64F } else { DataType::R32F };
            assert!(!is_taken(types(value, compute), false, large));
        }
        // Devices whose matrix units have a fourth and two thirds of an H100's speed, relative to FMA.
        let device = |matrix_units| Ratios { matrix_units, ..Ratios::SAME };
        assert_eq!([0.25, 0.67].map(|units| is_in_parts(f32, false, large, &device(units))), [false, true]);
        let slower = [64, 128, 512, 4096].map(|n| in_parts_slower((4096, 4096, n)));
        assert!(slower.windows(2).all(|two| two[0] > two[1]) && slower[0] < 0.8 && slower[3] > 0.5);
        assert_eq!(in_parts_slower((2048, 512, 128)), 1.0);
    }

    #[test]
    fn own_kernels_serve_small_products() {
        let f32 = types(DataType::R32F, ComputeType::R32F);
        let tf32 = types(DataType::R32F, ComputeType::Tf32);
        let f16 = types(DataType::R16F, ComputeType::R32F);
        let f64 = types(DataType::R64F, ComputeType::R64F);
        let suits = |types, m, k, n| own_kernels_suffice(types, (m, k, n));
        assert!([f32, tf32, f16, f64].into_iter().all(|types| suits(types, 512, 512, 128)));
        assert!([f32, tf32, f16, f64].into_iter().all(|types| !suits(types, 4096, 4096, 512)));
        assert!(suits(f32, 4096, 4096, 32) && !suits(f32, 4096, 4096, 64) && suits(f32, 2048, 2048, 128));
        assert!(suits(tf32, 4096, 4096, 64) && !suits(tf32, 2048, 2048, 128));
        assert!(suits(f16, 1024, 1024, 32) && !suits(f16, 1024, 1024, 64));
        // A plan that was not told its number of columns counts as one with few.
        assert!([f32, tf32, f16, f64].into_iter().all(|types| suits(types, 512, 512, 0)));
        // Fewer than 32 columns count as 32; sizes that overflow are not small.
        assert!(!suits(f16, 4096, 4096, 1) && !suits(f64, usize::MAX, 2, 1));
    }

    /// Deterministic mode never takes cublasLt, whatever the sizes and types.
    #[test]
    fn deterministic_mode_takes_own_kernels() {
        for types in crate::algorithm::Algorithm::Dense.row().types {
            let is_own =
                |sizes, deterministic| multiplier(*types, sizes, deterministic, true) == Multiplier::Own;
            for sizes in [(1, 1, 1), (512, 512, 32), (4096, 4096, 128), (1 << 20, 1 << 20, 4096)] {
                assert!(is_own(sizes, true), "{types:?} {sizes:?}");
                assert_eq!(is_own(sizes, false), own_kernels_suffice(*types, sizes));
            }
            // Without the mode cublasLt would be taken, so that the test is meaningful.
            assert!(!is_own((4096, 4096, 512), false), "{types:?}");
        }
    }

    #[test]
    fn cublaslt_has_whole_packs_of_k_and_small_singles_by_columns() {
        let f16 = types(DataType::R16F, ComputeType::R32F);
        let tf32 = types(DataType::R32F, ComputeType::Tf32);
        let f32 = types(DataType::R32F, ComputeType::R32F);
        let f64 = types(DataType::R64F, ComputeType::R64F);
        let large = (1 << 13, 1 << 13, 1 << 9);
        assert!(is_by_columns(f32, (16384, 4096, 32)) && !is_by_columns(f32, large));
        assert!([f16, tf32, f64].into_iter().all(|types| !is_by_columns(types, (3, 3, 3))));
        assert_eq!([4193, 4192, 4196].map(|k| pads_k(f16, k)), [true, false, true]);
        assert_eq!([4193, 4192, 4196].map(|k| pads_k(tf32, k)), [true, false, false]);
        assert!(!pads_k(f32, 4193) && !pads_k(f64, 4193));
    }

    #[test]
    fn cublaslt_is_given_copies_of_large_products_whose_rows_end_inside_a_pack() {
        let f16 = types(DataType::R16F, ComputeType::R32F);
        let tf32 = types(DataType::R32F, ComputeType::Tf32);
        let f32 = types(DataType::R32F, ComputeType::R32F);
        let f64 = types(DataType::R64F, ComputeType::R64F);
        let large = 4096 * 4096 * 513;
        assert_eq!([f16, tf32, f32, f64].map(|types| copies_pay(types, large)), [true, true, false, true]);
        let small = 2048 * 2048 * 3;
        assert_eq!([f16, tf32, f32, f64].map(|types| copies_pay(types, small)), [true, false, false, false]);
        assert!(!copies_pay(f16, 12_000_000) && !copies_pay(f32, usize::MAX));
        assert_eq!([1, 7, 8, 513, 520].map(|n| ends_inside_pack(f16, n)), [false, true, false, true, false]);
        assert_eq!([2, 4].map(|n| ends_inside_pack(f32, n)), [true, false]);
        assert_eq!([2, 3].map(|n| ends_inside_pack(f64, n)), [false, true]);
    }

    #[test]
    fn products_wait_in_whole_tiles() {
        // 64 MiB hold many columns of 4096 singles, fewer longer ones, and all empty ones.
        assert_eq!([100, 5000].map(|n| columns_at_once(4 * 4096, n)), [100, 4096]);
        assert_eq!([100, 5000].map(|n| columns_at_once(4 << 20, n)), [100, 128]);
        assert_eq!(columns_at_once(4 * 100_000, 5000), 128);
        assert_eq!([columns_at_once(0, 5000), columns_at_once(usize::MAX, 5000)], [5000, 128]);
    }

    #[test]
    fn threads_have_several_lines_where_blocks_are_many() {
        // A line of 512 halves has 64 packs, so that a block takes 4 lines at a time; there are 8 blocks per
        // multiprocessor.
        let enough = 4 * 4 * 8 * 132;
        assert_eq!(lines_of_block((enough, 512), 2, 132), (6, 4));
        assert_eq!(lines_of_block((enough - 1, 512), 2, 132), (6, 1));
        // Several blocks share a line that is longer than a block.
        assert_eq!(lines_of_block((4 * 4 * 132, 4096), 4, 132), (8, 4));
        assert_eq!([lines_of_block((0, 0), 8, 132), lines_of_block((1, 3), 8, 132)], [(0, 1), (1, 1)]);
        assert_eq!(most_blocks_that_repair(132), 264);
        assert_eq!([0, 1, 8, 9, i64::MAX].map(|rows| blocks_that_fill(rows, 132)), [0, 1, 1, 2, 4224]);
    }

    #[test]
    fn small_products_have_room_for_many_parts() {
        assert_eq!(
            [0, 1000, LT_WORKSPACE / 64, usize::MAX].map(lt_workspace),
            [0, 64_000, 32 << 20, 32 << 20]
        );
        let half = RUN_AHEAD / 2;
        assert!(is_run_ahead(half, half) && !is_run_ahead(half, half + 1) && !is_run_ahead(usize::MAX, 1));
        assert!(!is_run_ahead(0, 1) && !is_run_ahead(1, 0));
    }

    #[test]
    fn own_kernels_are_slower_from_their_limit_on() {
        for (types, worst) in [
            (types(DataType::R16F, ComputeType::R32F), 2.27),
            (types(DataType::R32F, ComputeType::Tf32), 2.56),
            (types(DataType::R32F, ComputeType::R32F), 1.33),
            (types(DataType::R64F, ComputeType::R64F), 1.3),
        ] {
            let slower = |side: usize, n| own_kernels_slower(types, (side, side, n));
            assert_eq!([slower(256, 64), slower(256, 0), slower(0, 0)], [1.0; 3], "{types:?}");
            assert_eq!([slower(4096, 512), slower(1 << 20, 512)], [worst; 2], "{types:?}");
            let between = slower(2048, 512);
            assert!(1.0 < between && between < worst, "{types:?}: {between}");
        }
        // 512 × 512 × 512 in halves was measured at 1 / 0.83.
        let halves = own_kernels_slower(types(DataType::R16F, ComputeType::R32F), (512, 512, 512));
        assert!((halves - 1.0 / 0.83).abs() < 0.05, "{halves}");
    }
}
