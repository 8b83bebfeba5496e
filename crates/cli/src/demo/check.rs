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

/// A product C = A · op(B) that the library computed.
#[derive(Debug)]
pub struct Computed<'a, T> {
    /// Matrix A.
    pub a: &'a OwnedCsr<T>,
    /// Matrix stored as B.
    pub b: &'a OwnedCsr<T>,
    /// Operation on B.
    pub op_b: Operation,
    /// Computed matrix C.
    pub c: &'a OwnedCsr<T>,
}

impl Oracle {
    /// Opens the reference backend.
    pub fn new() -> Result<Self> {
        Ok(Oracle { session: Session::new(BackendKind::Reference)? })
    }

    /// Checks y against A · x.
    pub fn check_spmv<T: Scalar>(&self, a: &OwnedCsr<T>, x: &[T], y: &[T]) -> Result<CheckResult> {
        self.check_spmm(a, x, y, 1)
    }

    /// Checks the row-major C against A · B; a vector is a matrix of one column, and is checked with the
    /// reference's SpMV.
    pub fn check_spmm<T: Scalar>(&self, a: &OwnedCsr<T>, b: &[T], c: &[T], n: usize) -> Result<CheckResult> {
        let costs: Vec<u64> =
            row_lengths(a, Operation::NonTranspose).iter().map(|&len| len * n as u64).collect();
        let rows = if costs.iter().sum::<u64>() < FULL {
            RowSample::all(a.rows)
        } else {
            RowSample::sample(&costs, largest(&costs).as_slice(), BUDGET)
        };
        let part = rows.of(a);
        let a = part.as_ref().unwrap_or(a);
        let expected = self.product(a, b, n)?;
        let scale = self.product(&a.map_values(|value| value.magnitude())?, &magnitudes(b), n)?;
        let mut worst = Worst::default();
        for (at, row) in rows.iter().enumerate() {
            let terms = a.row(at).0.len() as f64;
            for col in 0..n {
                let (found, expected) = (c[row * n + col], expected[at * n + col]);
                worst.take(row, scaled_error(found, expected, terms, scale[at * n + col]));
            }
        }
        Ok(CheckResult::numbers::<T>(rows.describe(), worst))
    }

    fn product<T: Scalar>(&self, a: &OwnedCsr<T>, b: &[T], n: usize) -> Result<Vec<T>> {
        if n == 1 {
            products::spmv(&self.session, a, Operation::NonTranspose, b)
        } else {
            products::spmm(&self.session, a, b, n)
        }
    }

    /// Checks C: its structure, rows of it against the reference's, and, if those are not all, C·v (by
    /// `session`) against A·(op(B)·v) in all rows.
    pub fn check_spgemm<T: Scalar>(
        &self,
        session: &Session,
        product: &Computed<'_, T>,
        v: &[T],
    ) -> Result<Vec<CheckResult>> {
        let Computed { a, b, op_b, c } = *product;
        if let Err(error) = c.validate() {
            let what = format!("C's structure: {error}");
            return Ok(vec![CheckResult { what, error: f64::INFINITY, passed: false }]);
        }
        let b_lengths = row_lengths(b, op_b);
        let costs = row_products(a, &b_lengths);
        let rows = if costs.iter().sum::<u64>() < FULL {
            RowSample::all(a.rows)
        } else {
            let longest = largest(&row_lengths(a, Operation::NonTranspose));
            let always: Vec<usize> = longest.into_iter().chain(largest(&costs)).collect();
            RowSample::sample(&costs, &always, BUDGET)
        };
        let sound = "C's offsets ascend, its columns are sorted, in range, without duplicates";
        let mut results = vec![
            CheckResult { what: sound.into(), error: 0.0, passed: true },
            self.check_rows(product, &rows)?,
        ];
        if !rows.is_all() {
            results.push(self.check_image(session, product, &b_lengths, v)?);
        }
        Ok(results)
    }

    fn check_rows<T: Scalar>(&self, product: &Computed<'_, T>, rows: &RowSample) -> Result<CheckResult> {
        let Computed { a, b, op_b, c } = *product;
        let part = rows.of(a);
        let a = part.as_ref().unwrap_or(a);
        let expected = products::spgemm(&self.session, a, b, op_b)?;
        let (a_sizes, b_sizes) =
            (a.map_values(|value| value.magnitude())?, b.map_values(|value| value.magnitude())?);
        let scale = products::spgemm(&self.session, &a_sizes, &b_sizes, op_b)?;
        let mut worst = Worst::default();
        for (at, row) in rows.iter().enumerate() {
            let ((found_columns, found), (columns, values)) = (c.row(row), expected.row(at));
            if found_columns != columns {
                let what = format!(
                    "row {row} of C has {} entries, the reference's {}, in other columns",
                    grouped(found.len() as u64),
                    grouped(values.len() as u64)
                );
                return Ok(CheckResult { what, error: f64::INFINITY, passed: false });
            }
            // An entry of C has at most as many terms as the row of A has entries.
            let terms = a.row(at).0.len() as f64;
            for ((&found, &expected), &scale) in found.iter().zip(values).zip(scale.row(at).1) {
                worst.take(row, scaled_error(found, expected, terms, scale));
            }
        }
        let entries = grouped(expected.nnz() as u64);
        Ok(CheckResult::numbers::<T>(format!("{} ({entries} entries of C)", rows.describe()), worst))
    }

    /// Checks C·v against A·(op(B)·v).
    fn check_image<T: Scalar>(
        &self,
        session: &Session,
        product: &Computed<'_, T>,
        b_lengths: &[u64],
        v: &[T],
    ) -> Result<CheckResult> {
        let Computed { a, b, op_b, c } = *product;
        let none = Operation::NonTranspose;
        let found = products::spmv(session, c, none, v)?;
        let expected = products::spmv(&self.session, a, none, &self.apply(b, op_b, v)?)?;
        let b_sizes = b.map_values(|value| value.magnitude())?;
        let inner = self.apply(&b_sizes, op_b, &magnitudes(v))?;
        let scale = products::spmv(&self.session, &a.map_values(|value| value.magnitude())?, none, &inner)?;
        let mut worst = Worst::default();
        for row in 0..a.rows {
            let (columns, _) = a.row(row);
            let longest = columns.iter().map(|&col| b_lengths[col as usize]).max().unwrap_or(0);
            // Half an eps for each product and addition in both computations: entries of C and their sum;
            // op(B)·v and the sum over A's row.
            let (of_c, of_a) = (c.row(row).0.len() as f64, columns.len() as f64);
            let terms = (of_a + of_c + longest as f64 + of_a) / 2.0;
            worst.take(row, scaled_error(found[row], expected[row], terms, scale[row]));
        }
        Ok(CheckResult::numbers::<T>(
            format!("C·v against A·(B·v), {}", RowSample::all(a.rows).describe()),
            worst,
        ))
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
        assert!(oracle.check_spmv(&a, &x, &y).unwrap().passed);
        y[1234] *= 1.0 + 1e-13;
        let result = oracle.check_spmv(&a, &x, &y).unwrap();
        assert!(!result.passed && result.what.contains("row 1234"), "{result:?}");
        y[1234] = f64::NAN;
        assert!(!oracle.check_spmv(&a, &x, &y).unwrap().passed);
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
        let verdict = |c: &OwnedCsr<f64>| {
            let product = Computed { a: &a, b: &b, op_b, c };
            let results = oracle.check_spgemm(&session, &product, &v).unwrap();
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
