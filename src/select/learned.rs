//! What a learned correction of predicted times reads: the counts that choosers have anyway, as named
//! numbers in a fixed order.
//!
//! Numbers are rounded to 32 bits, in which they are written down, learned from and compared, so that a
//! limit that was learned divides the same matrices wherever it is read. They are made by additions,
//! multiplications, divisions and square roots alone, whose results are the same on every machine.

use super::survey::Survey;
use crate::layout::dasp;
use crate::support::Types;

/// Raised when a name is added, removed or counted in another way.
pub const VERSION: u32 = 1;

/// Names of [`spmv`]'s numbers.
pub const SPMV: [&str; 19] = [
    "rows",
    "cols",
    "nnz",
    "value_bytes",
    "x_bytes",
    "matrix_bytes",
    "mean",
    "longest",
    "skew",
    "deviation",
    "empty",
    "longest_medium",
    "narrow",
    "shifted",
    "along",
    "across",
    "block",
    "half_block",
    "alike",
];

/// Of a product of a matrix with values and a vector of these types.
pub fn spmv(survey: &Survey, types: Types) -> [f32; SPMV.len()] {
    let (rows, nnz) = (survey.rows.max(1) as f64, survey.nnz.max(1) as f64);
    let (mean, value) = (survey.mean(), types.a.size() as f64);
    let squares: f64 =
        survey.histogram().map(|(length, rows)| (length as f64 - mean).powi(2) * rows as f64).sum();
    let [twos, threes] = survey.shared();
    [
        survey.rows as f64,
        survey.cols as f64,
        survey.nnz as f64,
        value,
        survey.cols as f64 * types.x.size() as f64,
        nnz * (value + 2.0),
        mean,
        survey.longest() as f64,
        survey.longest() as f64 / mean.max(1e-3),
        (squares / rows).sqrt() / mean.max(1e-3),
        survey.empty_rows() as f64 / rows,
        survey.longest_up_to(dasp::MAX_LEN) as f64,
        survey.narrow(),
        survey.shifted(),
        survey.sectors_along(),
        survey.sectors_across(),
        survey.entries_of_block(),
        survey.entries_of_half_block(),
        twos.max(threes) as f64 / nnz,
    ]
    .map(|number| number as f32)
}

/// Names of [`spmm`]'s numbers.
pub const SPMM: [&str; 20] = [
    "rows",
    "cols",
    "nnz",
    "value_bytes",
    "tf32",
    "n",
    "row_bytes",
    "b_bytes",
    "c_bytes",
    "mean",
    "longest",
    "skew",
    "density",
    "reuse_8",
    "reuse_16",
    "reuse_32",
    "reuse_64",
    "tile_fill",
    "block_fill",
    "spread",
];

/// Of a product with a dense matrix of `n` columns.
pub fn spmm(survey: &super::spmm::Survey, types: Types, n: i64) -> [f32; SPMM.len()] {
    let counts = &survey.counts;
    let (rows, cols, nnz) = (counts.rows.max(1) as f64, survey.cols.max(1) as f64, counts.nnz.max(1) as f64);
    let mean = nnz / rows;
    let row_bytes = n.max(1) as f64 * types.x.size() as f64;
    let is_tf32 = types.compute == crate::types::ComputeType::Tf32;
    let (_, tiles) = counts.all_blocks(16, super::spmm::shape(types.a));
    [
        counts.rows as f64,
        survey.cols as f64,
        counts.nnz as f64,
        types.a.size() as f64,
        f64::from(u8::from(is_tf32)),
        n as f64,
        row_bytes,
        row_bytes * cols,
        n.max(1) as f64 * types.y.size() as f64 * rows,
        mean,
        survey.longest as f64,
        survey.longest as f64 / mean,
        nnz / rows / cols,
        counts.reuse(8),
        counts.reuse(16),
        counts.reuse(32),
        counts.reuse(64),
        nnz / tiles.max(1.0),
        nnz / counts.all_spans(16, true).max(1.0),
        counts.all_columns(64) / (rows / 64.0).max(1.0),
    ]
    .map(|number| number as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::compressed::Pattern;
    use crate::support::{self, Combo};
    use crate::types::DataType;

    #[test]
    fn numbers_are_finite_and_named() {
        let offsets: [i64; 5] = [0, 2, 2, 5, 6];
        let indices = [0, 3, 1, 2, 3, 0];
        let patterns = [
            Pattern {
                major: 4,
                minor: 4,
                base: 0,
                offsets: &offsets[..],
                indices: &indices[..],
                by_columns: false,
            },
            Pattern { major: 1, minor: 0, base: 0, offsets: &[0, 0], indices: &[], by_columns: false },
            Pattern { major: 0, minor: 5, base: 0, offsets: &[0], indices: &[], by_columns: false },
        ];
        for pattern in &patterns {
            let of_spmv = spmv(&Survey::of(pattern, 8), support::F64::TYPES);
            let windows = crate::select::spmm::Survey::of(pattern, DataType::R32F);
            let of_spmm = spmm(&windows, support::F32::TYPES, 32);
            assert!(
                of_spmv.iter().chain(&of_spmm).all(|number| number.is_finite()),
                "{of_spmv:?} {of_spmm:?}"
            );
        }
        let of = |names: &[&str], numbers: &[f32], name: &str| {
            numbers[names.iter().position(|other| *other == name).unwrap()]
        };
        let of_spmv = spmv(&Survey::of(&patterns[0], 8), support::F64::TYPES);
        assert_eq!((of(&SPMV, &of_spmv, "mean"), of(&SPMV, &of_spmv, "longest")), (1.5, 3.0));
        // Lengths 2, 0, 3 and 1: a variance of 5/4.
        assert_eq!(of(&SPMV, &of_spmv, "deviation"), (1.25f64.sqrt() / 1.5) as f32);
        assert_eq!((of(&SPMV, &of_spmv, "empty"), of(&SPMV, &of_spmv, "x_bytes")), (0.25, 32.0));
        let windows = crate::select::spmm::Survey::of(&patterns[0], DataType::R32F);
        let of_spmm = spmm(&windows, support::F32::TYPES, 32);
        // Six entries in four columns, in one window.
        assert_eq!((of(&SPMM, &of_spmm, "reuse_8"), of(&SPMM, &of_spmm, "row_bytes")), (1.5, 128.0));
    }
}
