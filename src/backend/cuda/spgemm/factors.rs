//! A and B as kernels read them, with statistics of their patterns, and the statistics by which `hash` or
//! `tile` is chosen. Both algorithms start from these, so that A and B are checked only once.

use super::rows::{self, Factor};
use crate::backend::cuda::check;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{optional, DeviceBuffer, Fill, Readback};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::error::{Error, Result};
use crate::format::tile::SIDE;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::operation::too_many_products;
use crate::problem::SpgemmProblem;
use crate::select::spgemm::{Counts, Lengths};
use crate::select::{grids, Choice, Source, SpgemmInspection};

/// One factor of the product, as its rows are read.
pub struct Side {
    /// Arrays of the factor's rows.
    pub operand: Operand,
    /// Statistics of the row lengths.
    pub stats: RowStats,
    /// Known order of the column indices ([`rows::SORTED`], [`rows::DISTINCT`]); `None` if it must be
    /// determined.
    pub order: Option<i32>,
}

/// Returns the left and the right factor, given A's and B's: B's and A's if the product is `transposed`.
pub fn left_and_right<T>(transposed: bool, a: T, b: T) -> (T, T) {
    match transposed {
        true => (b, a),
        false => (a, b),
    }
}

/// Returns the number of multiplications, given the low and high halves of their sum.
pub fn number_of_products(halves: &[u64]) -> Result<i64> {
    i64::try_from(u128::from(halves[0]) + (u128::from(halves[1]) << 32)).map_err(|_| too_many_products())
}

/// Both factors, A and B.
pub struct Factors([Side; 2]);

impl Factors {
    /// Validates A and B and prepares them as `choice` says. If both share one pattern, it is checked once.
    /// Blocks.
    pub fn new(cx: &DeviceCall<'_>, problem: &SpgemmProblem, choice: &Choice) -> Result<Self> {
        if choice.method.is_transposed() && (choice.a, choice.b) != (Source::InPlace, Source::InPlace) {
            return Err(Error::unsupported("A, B: columns of C are computed from arrays in place only"));
        }
        let mut words = Readback::take(cx)?;
        let (a, b) = (&problem.a, &problem.b);
        let same = same_pattern(a, b);
        check::enqueue(cx, a, problem.op_a, &words, 0)?;
        if !same {
            check::enqueue(cx, b, problem.op_b, &words, check::DEVICE_WORDS)?;
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
            let (operand, stats) = Operand::inspected(cx, matrix, op, source, keep, &report)?;
            // A copy is sorted, but may have equal columns that were not neighbours in the original.
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

    /// Returns the left and the right factor: A and B, or B and A if the product is `transposed`.
    pub fn sides(&self, transposed: bool) -> (&Side, &Side) {
        let [a, b] = &self.0;
        left_and_right(transposed, a, b)
    }

    /// Returns the operands of A and B. The stream must have been synchronized since they were made.
    pub fn filled(self) -> [Operand; 2] {
        let mut operands = self.0.map(|side| side.operand);
        operands.mark_filled();
        operands
    }
}

/// Returns whether `a` and `b` share their offsets and indices, with the same format, shape and types.
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

/// Word numbers of the readback page, as in kernels/spgemm/statistics.cu.
mod word {
    pub const RIGHT_TILES: usize = 0;
    pub const TILES: usize = 1;
    pub const MOST_TILES: usize = 2;
    pub const PAIRS: usize = 3;
    pub const PRODUCTS: usize = 4;
    pub const MOST_PRODUCTS: usize = 5;
    pub const END: usize = 6;
}

/// Threads of a block of the kernels in kernels/spgemm/statistics.cu.
const BLOCK: u32 = 256;

impl Factors {
    /// Returns the sizes and row lengths, by which [`Lengths::may_suit_tiles`] decides whether tiles are
    /// counted.
    pub fn lengths(&self, transposed: bool) -> Lengths {
        let (left, right) = self.sides(transposed);
        let [of_left, of_right] = [left.operand.rows(), right.operand.rows()];
        Lengths {
            shape: [of_left.rows, of_right.rows, of_right.cols],
            entries: [of_left.nnz, of_right.nnz],
            longest: [left.stats.max, right.stats.max],
        }
    }

    /// Counts the tiles, pairs of tiles and products of factors for which [`Lengths::may_suit_tiles`].
    /// Blocks.
    pub fn count(&self, cx: &DeviceCall<'_>, transposed: bool) -> Result<Counts> {
        let (left, right) = self.sides(transposed);
        let [left, right] = [left.operand.rows(), right.operand.rows()];
        let kernel = |name: &str| cx.device.modules().kernel("spgemm/statistics", name);
        let (tiles, pairs) = (kernel("spgemm_tile_statistics")?, kernel("spgemm_pair_statistics")?);
        let tile_rows = |rows: &Rows| (rows.rows as usize).div_ceil(SIDE).max(1);
        let multiprocessors = cx.device.properties().multiprocessors;
        let grid = |rows: &Rows| grids::blocks(tile_rows(rows) as u64, 1, multiprocessors);
        let right_tiles = DeviceBuffer::<u32>::new(cx, tile_rows(&right))?;
        let mut words = Readback::take(cx)?;
        // SAFETY: the patterns have been validated, rows and columns are no more than the kernels support,
        // `right_tiles` has an element for each row of tiles of the right factor, and the page has the words.
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

/// Gathers statistics of A and B, and of their tiles if these may be faster, for the choice between `hash`
/// and `tile`. Blocks.
pub fn inspect(cx: &DeviceCall<'_>, problem: &SpgemmProblem, choice: &Choice) -> Result<SpgemmInspection> {
    let factors = Factors::new(cx, problem, choice)?;
    let transposed = choice.method.is_transposed();
    let lengths = factors.lengths(transposed);
    // The cost of tiles of complex numbers has not been measured.
    let ratios = cx.device.machine().ratios(problem.types.compute);
    let gain = if lengths.may_suit_tiles(&ratios) && !problem.types.y.is_complex() {
        optional(factors.count(cx, transposed))?.and_then(|counts| lengths.gain(&counts, &ratios))
    } else {
        None
    };
    Ok(SpgemmInspection { gain, backend_state: Box::new(factors) })
}
