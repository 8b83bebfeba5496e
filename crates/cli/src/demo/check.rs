//! Checks of results against those of the reference backend.
//!
//! Every comparison uses scaled errors: |y − y_ref| over (entries of the row) · eps · Σ|a·x|, where the sum
//! of absolute values comes from the reference, too. [`Scalar::LIMIT`] is the largest allowed value, and
//! explains why.

use client::Session;
use matrices::owned::OwnedCsr;
use tarsia::facade::{BackendKind, Operation};

use super::products;
use super::rows::{largest, row_lengths, row_products, RowSample};
use super::scalar::Scalar;
use crate::table::grouped;
use crate::Result;

/// All rows are compared if a product has fewer multiplications than this.
const FULL: u64 = 10_000_000;
/// Largest number of multiplications in the rows of a sample: a few seconds of the reference.
pub const BUDGET: u64 = 100_000_000;

/// Result of one check.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// Description of the check.
    pub what: String,
    /// Largest scaled error; infinite for NaN, Inf and wrong patterns.
    pub error: f64,
    /// True if the error is at most the limit.
    pub passed: bool,
}

impl CheckResult {
    fn numbers<T: Scalar>(what: String, worst: Worst) -> Self {
        let passed = worst.error <= T::LIMIT;
        let what = if passed { what } else { format!("{what}; worst in row {}", worst.row) };
        CheckResult { what, error: worst.error, passed }
    }
}

/// The largest scaled error so far, and its row.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    error: f64,
    row: usize,
}

impl Worst {
    fn take(&mut self, row: usize, error: f64) {
        if error > self.error {
            *self = Worst { error, row };
        }
    }
}

/// Returns |found − expected| / (terms · eps · magnitude), with an allowance for products that underflow. NaN
/// agrees with NaN, an Inf with the same Inf only.
fn scaled_error<T: Scalar>(found: T, expected: T, terms: f64, magnitude: f64) -> f64 {
    // Compares the values and not their magnitudes: the magnitude of (Inf, NaN) is Inf.
    #[allow(clippy::eq_op)]
    let is_nan = |value: T| value != value;
    if found == expected || (is_nan(found) && is_nan(expected)) {
        return 0.0;
    }
    let smallest = f64::from_bits(1);
    let error = (found - expected).magnitude() / (terms * (f64::EPSILON * magnitude + smallest));
    if error.is_nan() {
        f64::INFINITY
    } else {
        error
    }
}

fn magnitudes<T: Scalar>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.magnitude()).collect()
}

/// The reference backend, which computes the expected results.
#[derive(Debug)]
pub struct Oracle {
    session: Session,
}

/// Expected rows of a product with a dense matrix.
pub struct ExpectedDense<T> {
    rows: RowSample,
    /// Columns of the dense matrix.
    n: usize,
    /// Numbers of entries of the rows.
    terms: Vec<f64>,
    /// Values of the rows, and their sums of absolute values.
    values: Vec<T>,
    scale: Vec<f64>,
}

/// Factors of a product A · op(B).
#[derive(Clone, Copy, Debug)]
pub struct Factors<'a, T> {
    /// Matrix A.
    pub a: &'a OwnedCsr<T>,
    /// Matrix stored as B.
    pub b: &'a OwnedCsr<T>,
    /// Operation on B.
    pub op_b: Operation,
}

/// Expected rows of a product of sparse matrices, and its product with a vector where those are not all.
pub struct ExpectedSparse<'a, T> {
    rows: RowSample,
    terms: Vec<f64>,
    values: OwnedCsr<T>,
    scale: OwnedCsr<f64>,
    image: Option<Image<'a, T>>,
}

/// Expected product C · v: A · (op(B) · v).
struct Image<'a, T> {
    v: &'a [T],
    /// Numbers of additions and multiplications of A · (op(B) · v) in each row.
    terms: Vec<f64>,
    values: Vec<T>,
    scale: Vec<f64>,
}

impl<T: Scalar> ExpectedDense<T> {
    /// Checks the row-major C.
    pub fn check(&self, c: &[T]) -> CheckResult {
        let (n, mut worst) = (self.n, Worst::default());
        for (at, row) in self.rows.iter().enumerate() {
            for col in 0..n {
                let (found, expected, scale) =
                    (c[row * n + col], self.values[at * n + col], self.scale[at * n + col]);
                worst.take(row, scaled_error(found, expected, self.terms[at], scale));
            }
        }
        CheckResult::numbers::<T>(self.rows.describe(), worst)
    }
}

impl<T: Scalar> ExpectedSparse<'_, T> {
    /// Checks C: its structure, the expected rows, and, if those are not all, C·v (by `session`) in all rows.
    pub fn check(&self, session: &Session, c: &OwnedCsr<T>) -> Result<Vec<CheckResult>> {
        if let Err(error) = c.validate() {
            let what = format!("C's structure: {error}");
            return Ok(vec![CheckResult { what, error: f64::INFINITY, passed: false }]);
        }
        let sound = "C's offsets ascend, its columns are sorted, in range, without duplicates";
        let mut results =
            vec![CheckResult { what: sound.into(), error: 0.0, passed: true }, self.check_rows(c)];
        if let Some(image) = &self.image {
            results.push(image.check(session, c)?);
        }
        Ok(results)
    }

    fn check_rows(&self, c: &OwnedCsr<T>) -> CheckResult {
        let mut worst = Worst::default();
        for (at, row) in self.rows.iter().enumerate() {
            let ((found_columns, found), (columns, values)) = (c.row(row), self.values.row(at));
            if found_columns != columns {
                let what = format!(
                    "row {row} of C has {} entries, the reference's {}, in other columns",
                    grouped(found.len() as u64),
                    grouped(values.len() as u64)
                );
                return CheckResult { what, error: f64::INFINITY, passed: false };
            }
            for ((&found, &expected), &scale) in found.iter().zip(values).zip(self.scale.row(at).1) {
                worst.take(row, scaled_error(found, expected, self.terms[at], scale));
            }
        }
        let entries = grouped(self.values.nnz() as u64);
        CheckResult::numbers::<T>(format!("{} ({entries} entries of C)", self.rows.describe()), worst)
    }
}

impl<T: Scalar> Image<'_, T> {
    fn check(&self, session: &Session, c: &OwnedCsr<T>) -> Result<CheckResult> {
        let found = products::spmv(session, c, Operation::NonTranspose, self.v)?;
        let mut worst = Worst::default();
        for (row, &found) in found.iter().enumerate() {
            // Half an eps for each product and addition in both computations: entries of C and their sum;
            // op(B)·v and the sum over A's row.
            let terms = (c.row(row).0.len() as f64 + self.terms[row]) / 2.0;
            worst.take(row, scaled_error(found, self.values[row], terms, self.scale[row]));
        }
        let what = format!("C·v against A·(B·v), {}", RowSample::all(c.rows).describe());
        Ok(CheckResult::numbers::<T>(what, worst))
    }
}

/// Returns the numbers of entries of a matrix's rows, as terms of an error bound.
fn row_terms<T>(a: &OwnedCsr<T>) -> Vec<f64> {
    (0..a.rows).map(|row| a.row(row).0.len() as f64).collect()
}

impl Oracle {
    /// Opens the reference backend.
    pub fn new() -> Result<Self> {
        Ok(Oracle { session: Session::new(BackendKind::Reference)? })
    }

    /// Computes A · B, where B has `n` contiguous columns, in rows that are enough for a check; a vector is a
    /// matrix of one column, which the reference multiplies by its SpMV.
    pub fn dense<T: Scalar>(&self, a: &OwnedCsr<T>, b: &[T], n: usize) -> Result<ExpectedDense<T>> {
        let costs: Vec<u64> =
            row_lengths(a, Operation::NonTranspose).iter().map(|&len| len * n as u64).collect();
        let rows = if costs.iter().sum::<u64>() < FULL {
            RowSample::all(a.rows)
        } else {
            RowSample::sample(&costs, largest(&costs).as_slice(), BUDGET)
        };
        let part = rows.of(a);
        let a = part.as_ref().unwrap_or(a);
        let values = self.product(a, b, n)?;
        let scale = self.product(&a.map_values(|value| value.magnitude())?, &magnitudes(b), n)?;
        Ok(ExpectedDense { rows, n, terms: row_terms(a), values, scale })
    }

    fn product<T: Scalar>(&self, a: &OwnedCsr<T>, b: &[T], n: usize) -> Result<Vec<T>> {
        if n == 1 {
            products::spmv(&self.session, a, Operation::NonTranspose, b)
        } else {
            products::spmm(&self.session, a, b, n)
        }
    }

    /// Computes rows of A · op(B) that are enough for a check, and, if those are not all, A·(op(B)·v).
    pub fn sparse<'a, T: Scalar>(
        &self,
        factors: Factors<'_, T>,
        v: &'a [T],
    ) -> Result<ExpectedSparse<'a, T>> {
        let Factors { a, b, op_b } = factors;
        let b_lengths = row_lengths(b, op_b);
        let costs = row_products(a, &b_lengths);
        let rows = if costs.iter().sum::<u64>() < FULL {
            RowSample::all(a.rows)
        } else {
            let longest = largest(&row_lengths(a, Operation::NonTranspose));
            let always: Vec<usize> = longest.into_iter().chain(largest(&costs)).collect();
            RowSample::sample(&costs, &always, BUDGET)
        };
        let b_sizes = b.map_values(|value| value.magnitude())?;
        let image = if rows.is_all() {
            None
        } else {
            let none = Operation::NonTranspose;
            let values = products::spmv(&self.session, a, none, &self.apply(b, op_b, v)?)?;
            let inner = self.apply(&b_sizes, op_b, &magnitudes(v))?;
            let a_sizes = a.map_values(|value| value.magnitude())?;
            let scale = products::spmv(&self.session, &a_sizes, none, &inner)?;
            let terms = |row| {
                let (columns, _) = a.row(row);
                let longest = columns.iter().map(|&col| b_lengths[col as usize]).max().unwrap_or(0);
                2.0 * columns.len() as f64 + longest as f64
            };
            Some(Image { v, terms: (0..a.rows).map(terms).collect(), values, scale })
        };
        let part = rows.of(a);
        let a = part.as_ref().unwrap_or(a);
        let values = products::spgemm(&self.session, a, b, op_b)?;
        let scale =
            products::spgemm(&self.session, &a.map_values(|value| value.magnitude())?, &b_sizes, op_b)?;
        // An entry of C has at most as many terms as the row of A has entries.
        Ok(ExpectedSparse { rows, terms: row_terms(a), values, scale, image })
    }

    fn apply<T: Scalar>(&self, b: &OwnedCsr<T>, op_b: Operation, v: &[T]) -> Result<Vec<T>> {
        products::spmv(&self.session, b, op_b, v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gallery;

    #[test]
    fn one_wrong_value_is_found() {
        let oracle = Oracle::new().unwrap();
        let session = Session::new(BackendKind::Host).unwrap();
        let a = gallery::uniform(3000, 500, 7, 1).unwrap();
        let x: Vec<f64> = (0..500).map(|i| f64::from(i) / 3.0 - 50.0).collect();
        let mut y = products::spmv(&session, &a, Operation::NonTranspose, &x).unwrap();
        let expected = oracle.dense(&a, &x, 1).unwrap();
        assert!(expected.check(&y).passed);
        y[1234] *= 1.0 + 1e-13;
        let result = expected.check(&y);
        assert!(!result.passed && result.what.contains("row 1234"), "{result:?}");
        y[1234] = f64::NAN;
        assert!(!expected.check(&y).passed);
    }

    #[test]
    fn a_wrong_product_is_found_in_a_sample_too() {
        let oracle = Oracle::new().unwrap();
        let session = Session::new(BackendKind::Host).unwrap();
        // 10,000 · 32 · 32 multiplications are too many, so a sample is compared.
        let a = gallery::uniform(10_000, 500, 32, 2).unwrap();
        let b = gallery::uniform(500, 500, 32, 3).unwrap();
        let v: Vec<f64> = (0..500).map(|i| f64::from(i) / 7.0 - 30.0).collect();
        let op_b = Operation::NonTranspose;
        let mut c = products::spgemm(&session, &a, &b, op_b).unwrap();
        let expected = oracle.sparse(Factors { a: &a, b: &b, op_b }, &v).unwrap();
        let verdict = |c: &OwnedCsr<f64>| {
            let results = expected.check(&session, c).unwrap();
            results.iter().map(|result| result.passed).collect::<Vec<_>>()
        };
        assert_eq!(verdict(&c), [true, true, true]);
        // The change is in a row that is not in the sample: only C·v can find it.
        let outside = (0..10_000).find(|&row| {
            let costs = row_products(&a, &row_lengths(&b, op_b));
            let always = [largest(&row_lengths(&a, Operation::NonTranspose)), largest(&costs)];
            let always: Vec<usize> = always.into_iter().flatten().collect();
            !RowSample::sample(&costs, &always, BUDGET).iter().any(|picked| picked == row)
        });
        c.values[c.offsets[outside.unwrap()] as usize] += 1e-6;
        assert_eq!(verdict(&c), [true, true, false]);
        c.indices[1] = c.indices[0];
        assert_eq!(verdict(&c), [false]);
    }

    #[test]
    fn errors_are_scaled() {
        assert_eq!(scaled_error(1.0, 1.0 + f64::EPSILON, 1.0, 1.0), 1.0);
        assert_eq!(scaled_error(1.0, 1.0 + f64::EPSILON, 4.0, 2.0), 0.125);
        assert_eq!(scaled_error(f64::NAN, f64::NAN, 1.0, f64::NAN), 0.0);
        assert_eq!(scaled_error(f64::INFINITY, f64::NEG_INFINITY, 1.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(scaled_error(1.0, 0.0, 0.0, 0.0), f64::INFINITY);
        assert!(scaled_error(5e-324, 0.0, 1.0, 0.0) <= 1.0);
    }
}
