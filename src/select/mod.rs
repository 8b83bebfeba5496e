//! Which algorithm and source for which matrix, and why. Pure functions of
//! the problem: nothing here times anything (but [`autotune`]), reads memory
//! (but [`features`], a pattern), or looks at the environment.

pub mod autotune;
pub mod features;
pub mod roofline;

use self::roofline::Machine;
use crate::backend::{SpgemmProblem, SpmmProblem, SpmvProblem};
use crate::error::{Error, Result};
use crate::layout::mask_block::Counts;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::support::{Algorithm, Row};
use crate::types::{Effort, Format, IndexType, Operation};

/// Where an executor reads a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's arrays, as they are: rows of op(A) are contiguous there.
    InPlace,
    /// A copy that analysis makes: op applied, base 0, rows sorted, 32-bit
    /// columns.
    Canonical,
}

impl Source {
    fn describe(self) -> &'static str {
        match self {
            Source::InPlace => "the user's arrays in place",
            Source::Canonical => "a sorted CSR copy with 32-bit columns",
        }
    }
}

impl Choice {
    /// What A is read from.
    fn describe(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Sell => "slices of sorted rows with relative columns",
            Algorithm::Stream => "equal tiles of nonzeros with relative columns",
            Algorithm::Dasp => "blocks of long, medium and short rows",
            Algorithm::MaskBlock => "blocks of 8 × 4 or 4 × 4 with bit masks",
            _ => self.a.describe(),
        }
    }
}

/// One way to execute a plan.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Algorithm of the support table.
    pub algorithm: Algorithm,
    /// How A is read.
    pub a: Source,
    /// How B is read (SpGEMM).
    pub b: Source,
    /// SpGEMM: compute the rows of Cᵀ = op(B)ᵀ·op(A)ᵀ instead of those of C.
    pub transposed_product: bool,
    /// Seconds that the cost model expects of one execute; 0 if it cannot say.
    pub predicted_seconds: f64,
    /// One sentence for `tarsiaPlan_getInfo`.
    pub reason: String,
}

/// Rows of op(A) are contiguous in the user's arrays, with values as they are.
pub fn in_place(a: &SparseMatrix, op: Operation) -> bool {
    match a.format() {
        Format::Csr => op == Operation::NonTranspose,
        Format::Csc => {
            op == Operation::Transpose
                || (op == Operation::ConjugateTranspose && !a.value_type().is_complex())
        }
        Format::Coo | Format::Bsr => false,
    }
}

/// A canonical copy needs columns (of op(A)) that 32 bits number.
fn canonical(a: &SparseMatrix, op: Operation) -> bool {
    let (rows, cols, _) = a.shape();
    op.shape(rows, cols).1 <= i64::from(i32::MAX)
}

/// Converted layouts number rows and columns by 32 bits.
fn convertible(a: &SparseMatrix, op: Operation) -> bool {
    let (rows, cols, _) = a.shape();
    canonical(a, op) && op.shape(rows, cols).0 <= i64::from(i32::MAX)
}

/// Sources that can serve, cheapest first by bytes that a product reads.
fn sources(a: &SparseMatrix, op: Operation, name: &str) -> Result<Vec<Source>> {
    let mut out = Vec::new();
    if in_place(a, op) {
        out.push(Source::InPlace);
    }
    if canonical(a, op) {
        out.push(Source::Canonical);
    }
    if out.is_empty() {
        let (rows, cols, _) = a.shape();
        return Err(Error::unsupported(format!(
            "{name}: op(A) has {} columns; a matrix that must be converted may have at most {}",
            op.shape(rows, cols).1,
            i32::MAX
        )));
    }
    Ok(out)
}

/// Choices for a product with dense operands of `n` columns, best first.
fn dense_choices(
    a: &SparseMatrix,
    op: Operation,
    rows: &[&'static Row],
    effort: Effort,
    cost: impl Fn(Algorithm, Source) -> f64,
) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    // A name leaves one row.
    let named = rows.len() == 1;
    for row in rows {
        let converted = row.algorithm.is_converted();
        if (converted && !convertible(a, op)) || (row.algorithm.only_by_name() && !named) {
            continue;
        }
        for source in sources(a, op, "A")? {
            if converted && source == Source::InPlace {
                continue;
            }
            choices.push(Choice {
                algorithm: row.algorithm,
                a: source,
                b: source,
                transposed_product: false,
                predicted_seconds: cost(row.algorithm, source),
                reason: String::new(),
            });
        }
    }
    if choices.is_empty() {
        return Err(Error::unsupported(format!(
            "A: algorithm {} takes at most {} rows and columns of op(A)",
            rows.first().map_or("", |row| row.algorithm.name()),
            i32::MAX
        )));
    }
    // Stable: of equals the first, in place, wins.
    choices.sort_by(|x, y| x.predicted_seconds.total_cmp(&y.predicted_seconds));
    if effort == Effort::Quick {
        choices.sort_by_key(|choice| (choice.a != Source::InPlace, choice.algorithm.is_converted()));
    }
    let best = choices[0].predicted_seconds;
    let count = choices.len();
    for choice in &mut choices {
        choice.reason = if effort == Effort::Quick && choice.a == Source::InPlace {
            format!("{} on {}: effort QUICK converts nothing", choice.algorithm.name(), choice.describe())
        } else if count == 1 {
            format!(
                "{} on {}: the only candidate for this format and op",
                choice.algorithm.name(),
                choice.describe()
            )
        } else {
            format!(
                "{} on {}: predicted {:.3e} s, {:.2} of the best candidate's",
                choice.algorithm.name(),
                choice.describe(),
                choice.predicted_seconds,
                choice.predicted_seconds / best
            )
        };
    }
    Ok(choices)
}

/// Choices for SpMV, best first; never empty.
pub fn spmv(
    problem: &SpmvProblem,
    rows: &[&'static Row],
    effort: Effort,
    machine: &Machine,
) -> Result<Vec<Choice>> {
    let types = problem.types;
    dense_choices(&problem.a, problem.op, rows, effort, |algorithm, source| {
        let matrix = match algorithm {
            Algorithm::Sell => roofline::sell_bytes(&problem.a, problem.op),
            Algorithm::Stream => roofline::stream_bytes(&problem.a),
            Algorithm::Dasp => roofline::dasp_bytes(&problem.a, problem.op),
            // As if half full, until they are counted.
            Algorithm::MaskBlock => {
                let (rows, cols, nnz) = problem.a.shape();
                let rows = problem.op.shape(rows, cols).0 as usize;
                let counts = Counts { rows, eights: nnz as usize / 16, fours: nnz as usize / 8 };
                roofline::mask_block_bytes(&problem.a, &counts)
            }
            _ => roofline::matrix_bytes(&problem.a, problem.op, source),
        };
        roofline::seconds(
            machine,
            matrix + roofline::dense_bytes(&problem.a, problem.op, 1, types.x, types.y),
            problem.a.shape().2 as f64,
        )
    })
}

/// Choices for SpMM, best first; never empty.
pub fn spmm(
    problem: &SpmmProblem,
    rows: &[&'static Row],
    effort: Effort,
    machine: &Machine,
) -> Result<Vec<Choice>> {
    let types = problem.types;
    dense_choices(&problem.a, problem.op, rows, effort, |_, source| {
        roofline::seconds(
            machine,
            roofline::matrix_bytes(&problem.a, problem.op, source)
                + roofline::dense_bytes(&problem.a, problem.op, problem.n_hint.max(1), types.x, types.y),
            problem.a.shape().2 as f64 * problem.n_hint.max(1) as f64,
        )
    })
}

/// Choices for SpGEMM, best first; never empty.
///
/// Gustavson's algorithm reads rows of op(A) and of op(B). Where both are
/// stored by columns, the rows of Cᵀ need no conversion at all.
pub fn spgemm(problem: &SpgemmProblem, rows: &[&'static Row]) -> Result<Vec<Choice>> {
    let flip = |op: Operation| match op {
        Operation::NonTranspose => Operation::Transpose,
        Operation::Transpose => Operation::NonTranspose,
        // The conjugate of A is neither A nor its transpose: never in place
        // for complex values, and for real ones C is T.
        Operation::ConjugateTranspose => Operation::NonTranspose,
    };
    let conjugates = |a: &SparseMatrix, op: Operation| op.conjugates() && a.value_type().is_complex();
    let by_columns = |a: &SparseMatrix, op: Operation| !conjugates(a, op) && in_place(a, flip(op));
    let transposed = by_columns(&problem.a, problem.op_a) && by_columns(&problem.b, problem.op_b);
    let pick = |a: &SparseMatrix, op: Operation, name: &str| {
        if transposed {
            Ok(Source::InPlace)
        } else {
            Ok(sources(a, op, name)?[0])
        }
    };
    let (a, b) = (pick(&problem.a, problem.op_a, "A")?, pick(&problem.b, problem.op_b, "B")?);
    Ok(rows
        .iter()
        .map(|row| Choice {
            algorithm: row.algorithm,
            a,
            b,
            transposed_product: transposed,
            predicted_seconds: 0.0,
            reason: format!(
                "{} over the {} of C: A from {}, B from {}",
                row.algorithm.name(),
                if transposed { "columns" } else { "rows" },
                a.describe(),
                b.describe()
            ),
        })
        .collect())
}

/// Bytes of an index and an offset where A is read from.
fn index_bytes(a: &SparseMatrix, source: Source) -> (usize, usize) {
    match (source, &a.arrays) {
        (Source::InPlace, SparseArrays::Csr(m) | SparseArrays::Csc(m)) => {
            (m.index_type.size(), m.offset_type.size())
        }
        _ => (IndexType::I32.size(), IndexType::I64.size()),
    }
}
