//! Statistics of a matrix.

use matrices::owned::{MatrixError, OwnedCsr};
use rayon::prelude::*;
use serde::Serialize;
use tarsia::facade::run_in_pool;

use super::choices::Number;
use super::pattern::{compression, mirrored, Features, Pattern, BLOCKS};

type Result<T> = std::result::Result<T, MatrixError>;

/// Statistics of a matrix, in the order of the JSON object.
#[derive(Debug, Default, Serialize)]
pub struct MatrixStatistics {
    pub rows: usize,
    pub cols: usize,
    pub nnz: u64,
    pub complex: bool,
    /// Share of the off-diagonal entries whose mirror image is stored; `None` if not square.
    pub pattern_symmetry: Option<f64>,
    /// Symmetry of the values of mirrored pairs; `None` if not square, or without values.
    pub value_symmetry: Option<ValueSymmetry>,
    pub row_length: RowLength,
    /// Largest i − j of entries (i, j), at least 0.
    pub bandwidth_below: u64,
    /// Largest j − i of entries (i, j), at least 0.
    pub bandwidth_above: u64,
    /// Number of stored entries on the diagonal.
    pub diagonal: u64,
    /// Number of stored entries on the diagonal that are zero.
    pub diagonal_zeros: u64,
    /// Share of the entries less than 2^16 columns behind the row's first.
    pub near_entries: f64,
    /// Share of the rows for which that holds for all entries, empty rows included.
    pub near_rows: f64,
    /// Mean distance in columns between neighbouring entries of a row.
    pub neighbour_distance: f64,
    pub blocks: Vec<Blocks>,
    pub spgemm: Spgemm,
}

/// Counts of the pairs (i, j), (j, i) that are both stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueSymmetry {
    pub pairs: u64,
    /// a_ij = a_ji.
    pub equal: u64,
    /// a_ij = −a_ji.
    pub opposite: u64,
    /// a_ij = conj(a_ji).
    pub conjugate: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct RowLength {
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    pub variance: f64,
    pub empty_rows: u64,
    /// Number of rows by length, without the empty buckets behind the longest.
    pub histogram: Vec<Bucket>,
}

/// Number of rows with `from` to `to` entries.
#[derive(Debug, Serialize)]
pub struct Bucket {
    pub from: u64,
    pub to: u64,
    pub rows: u64,
}

/// Blocks of size × size with an entry; counted in a sample of the rows if there are more than 2²⁰ entries.
#[derive(Debug, Serialize)]
pub struct Blocks {
    pub size: usize,
    pub count: u64,
    pub fill: f64,
}

#[derive(Debug, Default, Serialize)]
pub struct Spgemm {
    /// `A·A` or `A·Aᵀ`.
    pub product: &'static str,
    pub products: u128,
    /// Multiplications per entry of C, estimated.
    pub compression: f64,
    /// Number of entries of C, estimated: products / compression.
    pub nnz: f64,
    /// Number of rows of C behind the estimate.
    pub sampled_rows: usize,
}

impl MatrixStatistics {
    /// Computes the statistics of a matrix.
    pub fn of<T: Number>(a: &OwnedCsr<T>) -> Result<Self> {
        run_in_pool(|| {
            let pattern = pattern(a);
            let f = Features::of(&pattern);
            let square = a.rows == a.cols;
            let off_diagonal = f.nnz - f.diagonal;
            let (pattern_symmetry, value_symmetry) = if square {
                let mirrored = mirrored(&pattern);
                let share = if off_diagonal == 0 { 1.0 } else { mirrored as f64 / off_diagonal as f64 };
                (Some(share), Some(value_symmetry(a)))
            } else {
                (None, None)
            };
            let diagonal = (0..a.rows.min(a.cols)).into_par_iter();
            Ok(MatrixStatistics {
                rows: a.rows,
                cols: a.cols,
                nnz: f.nnz,
                complex: T::TYPE.is_complex(),
                pattern_symmetry,
                value_symmetry,
                row_length: RowLength::of(&f),
                bandwidth_below: f.bandwidth.0,
                bandwidth_above: f.bandwidth.1,
                diagonal: f.diagonal,
                diagonal_zeros: diagonal.filter(|&i| a.get(i, i) == Some(T::default())).count() as u64,
                near_entries: f.narrow_share(),
                near_rows: if a.rows == 0 { 0.0 } else { f.narrow_rows as f64 / a.rows as f64 },
                neighbour_distance: f.mean_distance(),
                blocks: BLOCKS
                    .zip(f.blocks)
                    .map(|(size, count)| Blocks { size, count, fill: f.block_fill(size) })
                    .collect(),
                spgemm: Spgemm::of(a, &f)?,
            })
        })
    }
}

fn pattern<T>(a: &OwnedCsr<T>) -> Pattern<'_, i64, i32> {
    Pattern { cols: a.cols, offsets: &a.offsets, indices: &a.indices }
}

/// Compares the values of mirrored pairs of a square matrix.
fn value_symmetry<T: Number>(a: &OwnedCsr<T>) -> ValueSymmetry {
    let of_row = |row: usize| {
        let mut out = [0; 4];
        let (cols, values) = a.row(row);
        for (&col, &value) in cols.iter().zip(values).filter(|(&col, _)| col as usize > row) {
            if let Some(mirror) = a.get(col as usize, row) {
                out[0] += 1;
                out[1] += u64::from(value == mirror);
                out[2] += u64::from(value == T::default() - mirror);
                out[3] += u64::from(value == mirror.conj());
            }
        }
        out
    };
    let add = |a: [u64; 4], b: [u64; 4]| std::array::from_fn(|k| a[k] + b[k]);
    let [pairs, equal, opposite, conjugate] =
        (0..a.rows).into_par_iter().with_min_len(1 << 10).map(of_row).reduce(|| [0; 4], add);
    ValueSymmetry { pairs, equal, opposite, conjugate }
}

impl RowLength {
    fn of(f: &Features) -> Self {
        let last = f.histogram.iter().rposition(|&rows| rows > 0).map_or(0, |at| at + 1);
        let bucket = |(k, &rows): (usize, &u64)| match k {
            0 => Bucket { from: 0, to: 0, rows },
            _ => Bucket { from: 1 << (k - 1), to: (1 << k) - 1, rows },
        };
        RowLength {
            min: f.least,
            mean: f.mean(),
            max: f.most,
            variance: f.variance(),
            empty_rows: f.empty_rows(),
            histogram: f.histogram[..last].iter().enumerate().map(bucket).collect(),
        }
    }
}

impl Spgemm {
    fn of<T: Number>(a: &OwnedCsr<T>, f: &Features) -> Result<Self> {
        let compression = |b: &OwnedCsr<T>| {
            compression(&pattern(a), &pattern(b)).map_err(|error| MatrixError::Io(error.into()))
        };
        let (product, products, estimate) = match f.products {
            Some(products) => ("A·A", products, compression(a)?),
            None => {
                let b = a.transpose()?;
                let length = |col: usize| u128::from(b.row(col).0.len() as u64);
                let products = (0..b.rows).map(|col| length(col) * length(col)).sum();
                ("A·Aᵀ", products, compression(&b)?)
            }
        };
        let compression = estimate.ratio();
        let nnz = products as f64 / compression;
        Ok(Spgemm { product, products, compression, nnz, sampled_rows: estimate.rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex64;

    #[test]
    fn values_of_pairs() {
        let csr = |entries| OwnedCsr::from_triplets(3, 3, entries).unwrap();
        let a = csr(vec![(0, 1, 2.0), (1, 0, 2.0), (0, 2, 3.0), (2, 0, -3.0), (1, 2, 1.0), (1, 1, 0.0)]);
        let statistics = MatrixStatistics::of(&a).unwrap();
        let expected = ValueSymmetry { pairs: 2, equal: 1, opposite: 1, conjugate: 1 };
        assert_eq!(statistics.value_symmetry, Some(expected));
        assert_eq!(
            (statistics.pattern_symmetry, statistics.diagonal, statistics.diagonal_zeros),
            (Some(0.8), 1, 1)
        );
        let z = Complex64::new;
        let entries = vec![(0, 1, z(2.0, 1.0)), (1, 0, z(2.0, -1.0)), (2, 2, z(1.0, 0.0))];
        let a = OwnedCsr::from_triplets(3, 3, entries).unwrap();
        let expected = ValueSymmetry { pairs: 1, equal: 0, opposite: 0, conjugate: 1 };
        assert_eq!(MatrixStatistics::of(&a).unwrap().value_symmetry, Some(expected));
    }

    #[test]
    fn rectangular_and_empty() {
        let a = OwnedCsr::from_triplets(2, 3, vec![(0, 0, 1.0), (1, 0, 1.0), (1, 2, 1.0)]).unwrap();
        let statistics = MatrixStatistics::of(&a).unwrap();
        // Columns have 2, 0 and 1 entries; A·Aᵀ is full.
        assert_eq!((statistics.spgemm.products, statistics.spgemm.compression), (5, 1.25));
        assert_eq!((statistics.pattern_symmetry, statistics.spgemm.product), (None, "A·Aᵀ"));
        let none = OwnedCsr::<f64>::from_triplets(0, 0, Vec::<(i32, i32, f64)>::new()).unwrap();
        let statistics = MatrixStatistics::of(&none).unwrap();
        assert_eq!(
            (statistics.row_length.mean, statistics.spgemm.nnz, statistics.near_rows),
            (0.0, 0.0, 0.0)
        );
    }
}
