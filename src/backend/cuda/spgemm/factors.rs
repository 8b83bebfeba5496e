//! A and B as kernels read them, looked at once, whatever multiplies them then.

use std::sync::Arc;

use super::rows::{self, Factor};
use crate::backend::cuda::check;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{optional, DeviceBuffer, Readback};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::error::{Error, Result};
use crate::format::tile::SIDE;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpgemmProblem;
use crate::select::spgemm::{Counts, Lengths};
use crate::select::{grids, Choice, Source, SpgemmInspection};
use crate::types::{Address, Operation};

/// A factor.
pub struct Side {
    /// Its rows.
    pub operand: Operand,
    /// Their lengths.
    pub stats: RowStats,
    /// What is known of the order of their columns; `None`: that has to be looked for.
    pub order: Option<i32>,
}

/// A and B.
pub struct Factors([Side; 2]);

impl Factors {
    /// Validates A and B and takes them as `choice` says. A pattern that both have is looked at
    /// once. Blocks.
    pub fn new(cx: &Context, device: &Arc<Device>, problem: &SpgemmProblem, choice: &Choice) -> Result<Self> {
        if choice.method.is_transposed() && (choice.a, choice.b) != (Source::InPlace, Source::InPlace) {
            return Err(Error::unsupported("A, B: columns of C are computed from arrays in place only"));
        }
        let mut words = Readback::take(cx, device)?;
        let (a, b) = (&problem.a, &problem.b);
        let same = same_pattern(a, b);
        check::enqueue(cx, device, a, problem.op_a, &words, 0)?;
        if !same {
            check::enqueue(cx, device, b, problem.op_b, &words, check::DEVICE_WORDS)?;
        }
        let found = words.wait(cx)?;
        let of_a = check::pattern_report(cx, a, problem.op_a, "A", &found[..check::WORDS])?;
        let of_b = match same {
            true => of_a,
            false => check::pattern_report(
                cx,
                b,
                problem.op_b,
                "B",
                &found[check::DEVICE_WORDS..][..check::WORDS],
            )?,
        };
        let side = |matrix, op, source, report: check::PatternReport| -> Result<_> {
            let keep = problem.value_updates;
            let (operand, stats) = Operand::inspected(cx, device, matrix, op, source, keep, &report)?;
            // A copy is sorted, but may have columns twice that were apart.
            let order = match (report.structure.sorted, report.structure.unique) {
                (true, true) => Some(rows::SORTED | rows::DISTINCT),
                (true, false) => Some(rows::SORTED),
                _ if source == Source::InPlace => Some(0),
                _ => None,
            };
            Ok(Side { operand, stats, order })
        };
        Ok(Factors([side(a, problem.op_a, choice.a, of_a)?, side(b, problem.op_b, choice.b, of_b)?]))
    }

    /// The left and the right factor: A and B, or where the product is `transposed` B and A.
    pub fn sides(&self, transposed: bool) -> (&Side, &Side) {
        let [a, b] = &self.0;
        if transposed {
            (b, a)
        } else {
            (a, b)
        }
    }

    /// The operands of A and B. The stream has been waited for since they were made.
    pub fn sealed(self) -> [Operand; 2] {
        self.0.map(|Side { mut operand, .. }| {
            operand.seal();
            operand
        })
    }
}

/// Whether both are stored in the same arrays.
fn same_pattern(a: &SparseMatrix, b: &SparseMatrix) -> bool {
    match (&a.arrays, &b.arrays) {
        (SparseArrays::Csr(x), SparseArrays::Csr(y)) | (SparseArrays::Csc(x), SparseArrays::Csc(y)) => {
            let pattern = |m: &Compressed| (m.offsets, m.indices, m.major, m.minor, m.nnz, m.base);
            let types = |m: &Compressed| (m.offset_type, m.index_type);
            pattern(x) == pattern(y) && types(x) == types(y)
        }
        _ => false,
    }
}

/// Words of the page, as kernels/spgemm/statistics.cu numbers them.
mod word {
    pub const RIGHT_TILES: usize = 0;
    pub const TILES: usize = 1;
    pub const MOST_TILES: usize = 2;
    pub const PAIRS: usize = 3;
    pub const PRODUCTS: usize = 4;
    pub const MOST_PRODUCTS: usize = 5;
    pub const END: usize = 6;
}

/// Threads of a block of the kernels that count.
const BLOCK: u32 = 256;

impl Factors {
    /// What the choice is made by without a further look.
    pub fn lengths(&self, transposed: bool) -> Lengths {
        let (left, right) = self.sides(transposed);
        let [of_left, of_right] = [left.operand.rows(), right.operand.rows()];
        Lengths {
            shape: [of_left.rows, of_right.rows, of_right.cols],
            entries: [of_left.nnz, of_right.nnz],
            longest: [left.stats.max, right.stats.max],
        }
    }

    /// Counts tiles and products of factors that may suit tiles. Blocks.
    pub fn count(&self, cx: &Context, device: &Arc<Device>, transposed: bool) -> Result<Counts> {
        let (left, right) = self.sides(transposed);
        let [left, right] = [left.operand.rows(), right.operand.rows()];
        let kernel = |name: &str| device.modules().kernel("spgemm/statistics", name);
        let (tiles, pairs) = (kernel("spgemm_tile_statistics")?, kernel("spgemm_pair_statistics")?);
        let tile_rows = |rows: &Rows| (rows.rows as usize).div_ceil(SIDE).max(1);
        let multiprocessors = device.properties().multiprocessors;
        let grid = |rows: &Rows| grids::blocks(tile_rows(rows) as u64, 1, multiprocessors);
        let right_tiles = DeviceBuffer::<u32>::new(cx, tile_rows(&right))?;
        let mut words = Readback::take(cx, device)?;
        // SAFETY: the patterns have been validated, rows and columns are as few as the kernels take,
        // each row of tiles of the right factor has a count, and the page has the words.
        unsafe {
            launch!(tiles, grid(&right), BLOCK, 0, cx.stream;
                Factor::of(&right), right.rows, right_tiles.address(), words.at(0))?;
            launch!(pairs, grid(&left), BLOCK, 0, cx.stream;
                Factor::of(&left), Factor::of(&right), left.rows, right_tiles.address(), words.at(0))?;
        }
        words.fetch(cx, word::END)?;
        let found = words.wait(cx)?;
        Ok(Counts {
            tiles: [found[word::TILES], found[word::RIGHT_TILES]],
            most_tiles: found[word::MOST_TILES],
            pairs: found[word::PAIRS],
            products: found[word::PRODUCTS],
            most_products: found[word::MOST_PRODUCTS],
        })
    }
}

/// Takes the values of a factor anew from `values`, where `matrix` has them from then on; does nothing if that is NULL.
/// `matrix` stays what it was if this fails, so that the call can be repeated. `name` is the argument's in errors.
pub fn renew_values(
    cx: &Context,
    operand: &mut Operand,
    (matrix, op): (&mut SparseMatrix, Operation),
    values: Address,
    name: &str,
) -> Result<()> {
    if !values.is_null() {
        let renewed = matrix.with_values(values);
        operand.update_values(cx, &renewed, op, name)?;
        *matrix = renewed;
    }
    Ok(())
}

/// Looks at A and B, and at their tiles where these may be faster. Blocks. The context is current.
pub fn survey(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpgemmProblem,
    choice: &Choice,
) -> Result<SpgemmInspection> {
    let factors = Factors::new(cx, device, problem, choice)?;
    let transposed = choice.method.is_transposed();
    let lengths = factors.lengths(transposed);
    // What tiles of complex numbers take has not been measured.
    let ratios = device.machine().ratios(problem.types.compute);
    let gain = if lengths.may_suit_tiles(&ratios) && !problem.types.y.is_complex() {
        optional(factors.count(cx, device, transposed))?.and_then(|counts| lengths.gain(&counts, &ratios))
    } else {
        None
    };
    Ok(SpgemmInspection { gain, backend_state: Box::new(factors) })
}
