//! Checks timed results against sums that the host computes with twice the digits of f64.
//!
//! A result is right if |found − exact| ≤ (terms) · eps · Σ|a·x| + the rounding of the store, where eps is
//! that of the type of the sums: a sum of n products in any order has an error of at most n · eps/2 · Σ|a·x|
//! to first order. TF32 may also have the error from rounding its factors.

use matrices::owned::OwnedCsr;
use rayon::prelude::*;
use tarsia::facade::{Index, Operation};

use super::number::{Number, Precision};
use crate::demo::rows::{largest, row_lengths, row_products, RowSample};

/// All rows are compared if a product has fewer multiplications than this.
const FULL: u64 = 10_000_000;

/// Error of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// Largest |found − exact| / Σ|a·x|.
    pub relative: f64,
    /// Largest |found − exact| over the allowed error; infinite for NaN, Inf and wrong patterns.
    pub of_allowed: f64,
    /// Number of rows that were compared.
    pub rows: usize,
}

impl Accuracy {
    const WRONG: Accuracy = Accuracy { relative: f64::INFINITY, of_allowed: f64::INFINITY, rows: 0 };

    /// Returns whether the result is right.
    pub fn passed(&self) -> bool {
        self.of_allowed <= 1.0
    }

    /// Combines the results of two checks: the larger errors, and all rows.
    pub fn with(self, other: Accuracy) -> Accuracy {
        Accuracy {
            relative: self.relative.max(other.relative),
            of_allowed: self.of_allowed.max(other.of_allowed),
            rows: self.rows + other.rows,
        }
    }
}

/// A sum of products with the part that f64 rounds away. Ogita, Rump, Oishi: Accurate sum and dot product,
/// SISC 26(6), 2005.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    sum: f64,
    rest: f64,
    magnitude: f64,
    terms: u32,
}

impl Exact {
    fn add(&mut self, a: f64, x: f64) {
        let product = a * x;
        let product_rest = a.mul_add(x, -product);
        let sum = self.sum + product;
        let shift = sum - self.sum;
        self.rest += ((self.sum - (sum - shift)) + (product - shift)) + product_rest;
        self.sum = sum;
        self.magnitude += product.abs();
        self.terms += 1;
    }

    fn compare<T: Number>(&self, found: T, bound: Bound) -> Accuracy {
        let exact = self.sum + self.rest;
        // The rest is added to the difference, not to the sum, whose last digit may be larger than the rest.
        let error = ((found.wide() - self.sum) - self.rest).abs();
        if !error.is_finite() {
            return Accuracy::WRONG;
        }
        let of_terms = bound.multiple * f64::from(self.terms) * T::SUM_EPS;
        let sums = (of_terms + bound.precision.factor_error()) * self.magnitude;
        let allowed = sums + T::STORE * (exact.abs() + sums) + T::TINY;
        let relative = if error == 0.0 { 0.0 } else { error / self.magnitude };
        Accuracy { relative, of_allowed: error / allowed, rows: 0 }
    }
}

/// Bound of the error of a dense result.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Precision of the product.
    pub precision: Precision,
    /// Allowed error of a sum of n products, in units of n · eps · Σ|a·x|.
    pub multiple: f64,
}

impl Bound {
    /// Bound of sums of products in the type of the sums.
    pub fn of(precision: Precision) -> Self {
        Bound { precision, multiple: 1.0 }
    }

    /// Bound of the library's SpMM: with TARSIA_COMPUTE_32F, tensor cores may sum bf16 terms of the factors, for
    /// which the header guarantees 3 n · eps · Σ|a·b|.
    pub fn of_spmm(precision: Precision) -> Self {
        let multiple = if precision == Precision::F32 { 3.0 } else { 1.0 };
        Bound { precision, multiple }
    }
}

/// Selects the rows of A · B with `n` columns that are compared.
pub fn dense_rows<T>(a: &OwnedCsr<T>, n: usize) -> RowSample {
    match (a.nnz() as u64).saturating_mul(n as u64) {
        ..FULL => RowSample::all(a.rows),
        _ => {
            let lengths = row_lengths(a, Operation::NonTranspose);
            RowSample::sample(&lengths, largest(&lengths).as_slice(), u64::MAX)
        }
    }
}

/// Checks some rows of C, one behind the other, against those of A · B, row-major with `n` columns; vectors
/// have one column.
pub fn dense<T: Number>(
    a: &OwnedCsr<T>,
    b: &[T],
    (rows, c): (&RowSample, &[T]),
    n: usize,
    bound: Bound,
) -> Accuracy {
    let rows: Vec<(usize, usize)> = rows.iter().enumerate().collect();
    let each = rows.par_iter().map(|&(at, row)| {
        let mut sums = vec![Exact::default(); n];
        let (cols, values) = a.row(row);
        for (&col, value) in cols.iter().zip(values) {
            let b_row = &b[col as usize * n..][..n];
            for (sum, x) in sums.iter_mut().zip(b_row) {
                sum.add(value.wide(), x.wide());
            }
        }
        let found = sums.iter().zip(&c[at * n..][..n]);
        let compared = found.map(|(sum, &found)| sum.compare(found, bound));
        Accuracy { rows: 1, ..compared.fold(Accuracy::default(), Accuracy::with) }
    });
    each.reduce(Accuracy::default, Accuracy::with)
}

/// C of a product of sparse matrices, as it was computed.
pub struct Sparse<'a, T, I> {
    /// Row offsets.
    pub offsets: &'a [I],
    /// Columns.
    pub indices: &'a [i32],
    /// Values.
    pub values: &'a [T],
}

/// Sorts each row by its columns; returns whether all rows were sorted already. Invalid offsets are left to
/// the check.
pub fn sort_rows<T: Copy, I: Index>(offsets: &[I], indices: &mut [i32], values: &mut [T]) -> bool {
    let mut were_sorted = true;
    let mut row: Vec<(i32, T)> = Vec::new();
    for ends in offsets.windows(2) {
        let range = ends[0].to_i64().max(0) as usize..ends[1].to_i64().max(0) as usize;
        let (Some(indices), Some(values)) = (indices.get_mut(range.clone()), values.get_mut(range)) else {
            continue;
        };
        if indices.is_sorted() {
            continue;
        }
        were_sorted = false;
        row.clear();
        row.extend(indices.iter().copied().zip(values.iter().copied()));
        row.sort_by_key(|(index, _)| *index);
        for (at, (index, value)) in row.iter().enumerate() {
            (indices[at], values[at]) = (*index, *value);
        }
    }
    were_sorted
}

/// Checks C against A · B: the offsets of all rows, and pattern and values of some.
pub fn sparse<T: Number, I: Index>(
    a: &OwnedCsr<T>,
    b: &OwnedCsr<T>,
    c: &Sparse<'_, T, I>,
    precision: Precision,
) -> Accuracy {
    let (first, last) = (c.offsets.first(), c.offsets.last());
    let ends = (first.map(|offset| offset.to_i64()), last.map(|offset| offset.to_i64()));
    if ends != (Some(0), Some(c.indices.len() as i64)) || !c.offsets.is_sorted() {
        return Accuracy::WRONG;
    }
    let costs = row_products(a, &row_lengths(b, Operation::NonTranspose));
    let rows = match costs.iter().sum() {
        ..FULL => RowSample::all(a.rows),
        _ => {
            RowSample::sample(&costs, largest(&row_lengths(a, Operation::NonTranspose)).as_slice(), u64::MAX)
        }
    };
    let rows: Vec<usize> = rows.iter().collect();
    let each = rows.par_iter().map_init(
        || vec![Exact::default(); b.cols],
        |sums, &row| {
            let range = c.offsets[row].to_i64() as usize..c.offsets[row + 1].to_i64() as usize;
            let found = (&c.indices[range.clone()], &c.values[range]);
            Accuracy { rows: 1, ..sparse_row(a, b, row, found, sums, precision) }
        },
    );
    each.reduce(Accuracy::default, Accuracy::with)
}

/// Checks one row; `sums` has an empty sum for each column, before and after.
fn sparse_row<T: Number>(
    a: &OwnedCsr<T>,
    b: &OwnedCsr<T>,
    row: usize,
    (indices, values): (&[i32], &[T]),
    sums: &mut [Exact],
    precision: Precision,
) -> Accuracy {
    let mut columns = Vec::new();
    let (a_cols, a_values) = a.row(row);
    for (&k, a_value) in a_cols.iter().zip(a_values) {
        let (b_cols, b_values) = b.row(k as usize);
        for (&col, b_value) in b_cols.iter().zip(b_values) {
            let sum = &mut sums[col as usize];
            if sum.terms == 0 {
                columns.push(col);
            }
            sum.add(a_value.wide(), b_value.wide());
        }
    }
    columns.sort_unstable();
    let mut accuracy = if columns == indices { Accuracy::default() } else { Accuracy::WRONG };
    for (at, &col) in columns.iter().enumerate() {
        let sum = std::mem::take(&mut sums[col as usize]);
        if let Some(&value) = values.get(at) {
            accuracy = accuracy.with(sum.compare(value, Bound::of(precision)));
        }
    }
    accuracy
}

#[cfg(test)]
mod tests {
    use super::super::number;
    use super::*;
    use half::f16;
    use matrices::gallery::by_name;

    fn matrix<T: Number>() -> OwnedCsr<T> {
        let mut at = 0;
        let value = |_| {
            at += 1;
            T::narrow(number::value(5, at))
        };
        by_name("uniform:50x50:7").unwrap().map_values(value).unwrap()
    }

    /// Computes A · x with sums in f64.
    fn product<T: Number>(a: &OwnedCsr<T>, x: &[T]) -> Vec<T> {
        let row = |row| {
            let (cols, values) = a.row(row);
            T::narrow(cols.iter().zip(values).map(|(&col, v)| v.wide() * x[col as usize].wide()).sum())
        };
        (0..a.rows).map(row).collect()
    }

    fn spmv_is_judged<T: Number>(precision: Precision) {
        let (a, x) = (matrix::<T>(), number::values::<T>(9, 50).unwrap());
        let mut y = product(&a, &x);
        let right = dense(&a, &x, (&dense_rows(&a, 1), &y), 1, Bound::of(precision));
        assert!(right.passed() && right.rows == 50, "{right:?}");
        let kept = y[13].wide();
        let limit = 8.0 * T::SUM_EPS * 7.0 + 4.0 * T::STORE * 7.0 + 8.0 * precision.factor_error();
        for wrong in [kept + (kept + kept.signum()) * limit, f64::NAN, f64::INFINITY] {
            y[13] = T::narrow(wrong);
            assert!(!dense(&a, &x, (&dense_rows(&a, 1), &y), 1, Bound::of(precision)).passed(), "{wrong}");
        }
    }

    /// The library's SpMM in fp32 may be off by three times what sums in fp32 may be off by, and by no more.
    #[test]
    fn spmm_is_judged_by_the_bound_of_the_header() {
        let (a, x) = (matrix::<f32>(), number::values::<f32>(9, 50).unwrap());
        let mut y = product(&a, &x);
        let row = 13;
        let (cols, values) = a.row(row);
        let size: f64 =
            cols.iter().zip(values).map(|(&col, v)| (v.wide() * x[col as usize].wide()).abs()).sum();
        let unit = cols.len() as f64 * f64::from(f32::EPSILON) * size;
        let kept = y[row].wide();
        for (multiple, of_spmm, of_sums) in [(0.5, true, true), (2.5, true, false), (4.0, false, false)] {
            y[row] = f32::narrow(kept + multiple * unit);
            let passes = |bound| dense(&a, &x, (&dense_rows(&a, 1), &y), 1, bound).passed();
            let found = [Bound::of_spmm(Precision::F32), Bound::of(Precision::F32)].map(passes);
            assert_eq!(found, [of_spmm, of_sums], "{multiple}");
        }
    }

    #[test]
    fn a_wrong_number_is_found() {
        spmv_is_judged::<f64>(Precision::F64);
        spmv_is_judged::<f32>(Precision::F32);
        spmv_is_judged::<f32>(Precision::Tf32);
        spmv_is_judged::<f16>(Precision::F16);
    }

    #[test]
    fn a_wrong_pattern_is_found() {
        let a = matrix::<f64>();
        let (mut offsets, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
        for row in 0..a.rows {
            let mut sums = vec![(0, 0.0); a.cols];
            for (&k, v) in a.row(row).0.iter().zip(a.row(row).1) {
                for (&col, w) in a.row(k as usize).0.iter().zip(a.row(k as usize).1) {
                    sums[col as usize] = (sums[col as usize].0 + 1, sums[col as usize].1 + v * w);
                }
            }
            let stored = sums.iter().enumerate().filter(|(_, (terms, _))| *terms > 0);
            for (col, &(_, value)) in stored {
                indices.push(col as i32);
                values.push(value);
            }
            offsets.push(indices.len() as i64);
        }
        let judge = |offsets: &[i64], indices: &[i32], values: &[f64]| {
            sparse(&a, &a, &Sparse { offsets, indices, values }, Precision::F64)
        };
        assert!(judge(&offsets, &indices, &values).passed());
        indices.swap(3, 4);
        assert!(!judge(&offsets, &indices, &values).passed());
        indices.swap(3, 4);
        values[5] += 1e-9;
        assert!(!judge(&offsets, &indices, &values).passed());
        values[5] -= 1e-9;
        offsets[7] += 1;
        assert!(!judge(&offsets, &indices, &values).passed());
    }
}
