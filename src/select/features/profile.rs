//! All that is counted in a pattern, as one list of numbers: the input of what is learned.
//!
//! [`Profile::of`] counts on the CPU, `Backend::features` where the matrix is; all counts are integers
//! and the same, and the numbers are made of them here, so that these are the same to the bit.

use super::distinct::Repeats;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::matrix::SparseMatrix;
use crate::select::striped::{self, Striped};
use crate::select::survey::Survey;
use crate::types::{DataType, Index, Operation};

/// Changes with the meaning, the order or the number of [`NAMES`].
pub const VERSION: u32 = 2;
/// Numbers behind the paper's.
const MORE: usize = 24;
/// Numbers of [`Profile::numbers`].
pub const NUMBERS: usize = striped::NUMBERS + MORE;

/// Names of [`Profile::numbers`], in their order: those of [`striped::NAMES`], and
/// - `row_entries_variance`;
/// - `rows_empty`, `rows_to_4`, `rows_to_32`, `rows_to_256`, `rows_longer`: shares of the rows with so
///   many entries, and `entries_longer`: of the entries in rows of more than 256;
/// - `narrow`, `shifted`: shares of the entries in runs of 32 rows whose columns span at most 2¹⁶, and of
///   which each has the columns of the row before plus one;
/// - `x_sectors_along`, `x_sectors_across`: sectors of x (of the type of the values) for an entry, of 32
///   entries that follow each other and of one of each of 32 rows;
/// - `fill_8x4`, `fill_4x4`, `fill_16x8`, `fill_16x16`: entries over places in the blocks that have one;
/// - `shared_2`, `shared_3`: shares of the entries in items of 2 and of 3 rows with the same columns;
/// - `reuse_8` to `reuse_128`: entries of a window of so many rows for each of its columns;
/// - `products`: multiplications of A·A for an entry of A, and `compression`: for an entry of A·A; 0 and
///   1 if A is not square.
pub const NAMES: [&str; NUMBERS] = {
    const OWN: [&str; MORE] = [
        "row_entries_variance",
        "rows_empty",
        "rows_to_4",
        "rows_to_32",
        "rows_to_256",
        "rows_longer",
        "entries_longer",
        "narrow",
        "shifted",
        "x_sectors_along",
        "x_sectors_across",
        "fill_8x4",
        "fill_4x4",
        "fill_16x8",
        "fill_16x16",
        "shared_2",
        "shared_3",
        "reuse_8",
        "reuse_16",
        "reuse_32",
        "reuse_64",
        "reuse_128",
        "products",
        "compression",
    ];
    let mut all = [""; NUMBERS];
    let mut at = 0;
    while at < NUMBERS {
        all[at] = if at < striped::NUMBERS { striped::NAMES[at] } else { OWN[at - striped::NUMBERS] };
        at += 1;
    }
    all
};

/// 32 bits number rows and columns of op(A).
pub(crate) fn check_shape(a: &SparseMatrix, op: Operation, name: &str) -> Result<()> {
    let (rows, cols, _) = a.shape();
    match rows.max(cols) <= i64::from(i32::MAX) {
        true => Ok(()),
        false => {
            let (rows, cols) = op.shape(rows, cols);
            Err(Error::unsupported(format!(
                "{name}: features are of at most {} rows and columns, not of {rows} × {cols}",
                i32::MAX
            )))
        }
    }
}

/// The counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What SpMV's layouts are chosen by.
    pub survey: Survey,
    /// What row permutations are chosen by.
    pub striped: Striped,
    /// How often columns come again.
    pub repeats: Repeats,
}

impl Profile {
    /// Counts in a valid pattern of sorted rows, with values of this type, on the threads of the caller's
    /// pool.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, value: DataType) -> Self {
        Profile {
            survey: Survey::of(pattern, value.size()),
            striped: Striped::of(pattern),
            repeats: Repeats::of(pattern),
        }
    }

    /// The numbers, in the order of [`NAMES`].
    pub fn numbers(&self) -> [f64; NUMBERS] {
        let (survey, repeats) = (&self.survey, &self.repeats);
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let rows = |from: u64, to: u64| {
            let of_them = survey.histogram().filter(|(length, _)| (from..=to).contains(length));
            share(of_them.map(|(_, rows)| rows).sum(), survey.rows)
        };
        let [twos, threes] = survey.shared();
        let own: [f64; MORE] = [
            self.striped.variance(),
            rows(0, 0),
            rows(1, 4),
            rows(5, 32),
            rows(33, 256),
            rows(257, u64::MAX),
            share(survey.entries_of_long(), survey.nnz),
            survey.narrow(),
            survey.shifted(),
            survey.sectors_along(),
            survey.sectors_across(),
            survey.entries_of_block() / 32.0,
            survey.entries_of_half_block() / 16.0,
            repeats.fill(8),
            repeats.fill(16),
            share(twos, survey.nnz),
            share(threes, survey.nnz),
            repeats.reuse(8),
            repeats.reuse(16),
            repeats.reuse(32),
            repeats.reuse(64),
            repeats.reuse(128),
            self.striped.products_of_entry(),
            repeats.products.ratio(),
        ];
        let mut out = [0.0; NUMBERS];
        out[..striped::NUMBERS].copy_from_slice(&self.striped.numbers());
        out[striped::NUMBERS..].copy_from_slice(&own);
        out
    }

    /// Name and number of each.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, f64)> {
        NAMES.into_iter().zip(self.numbers())
    }
}

#[cfg(test)]
pub(crate) mod tests;
