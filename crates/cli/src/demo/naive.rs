//! The products as a textbook writes them: loops over the rows of CSR in one thread. What the library's times are
//! compared with first, because everybody can write and imagine them.

use matrices::owned::OwnedCsr;

use super::products::zeros;
use super::scalar::Scalar;
use crate::Result;

/// Computes y = A · x.
pub fn spmv<T: Scalar>(a: &OwnedCsr<T>, x: &[T], y: &mut [T]) {
    for (row, y) in y.iter_mut().enumerate() {
        let (columns, values) = a.row(row);
        let mut sum = T::ZERO;
        for (&col, &value) in columns.iter().zip(values) {
            sum += value * x[col as usize];
        }
        *y = sum;
    }
}

/// Computes C = A · B, where B and C have `n` columns and are stored row by row.
pub fn spmm<T: Scalar>(a: &OwnedCsr<T>, b: &[T], c: &mut [T], n: usize) {
    for (row, c) in c.chunks_exact_mut(n).enumerate() {
        c.fill(T::ZERO);
        let (columns, values) = a.row(row);
        for (&col, &value) in columns.iter().zip(values) {
            let b = &b[col as usize * n..][..n];
            for (c, &b) in c.iter_mut().zip(b) {
                *c += value * b;
            }
        }
    }
}

/// Computes C = A · B, all sparse, row by row with a dense row of sums (Gustavson: Two fast algorithms for sparse
/// matrices, ACM TOMS 4(3), 1978); `entries` is how many C has.
pub fn spgemm<T: Scalar>(a: &OwnedCsr<T>, b: &OwnedCsr<T>, entries: usize) -> Result<OwnedCsr<T>> {
    let mut offsets: Vec<i64> = zeros(a.rows + 1)?;
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    indices.try_reserve_exact(entries)?;
    values.try_reserve_exact(entries)?;
    let (mut sums, mut last_row): (Vec<T>, Vec<usize>) = (zeros(b.cols)?, zeros(b.cols)?);
    for row in 0..a.rows {
        let first = indices.len();
        let (columns, factors) = a.row(row);
        for (&at, &factor) in columns.iter().zip(factors) {
            let (columns, others) = b.row(at as usize);
            for (&col, &other) in columns.iter().zip(others) {
                let at = col as usize;
                // Rows count from 1 here, so that 0 means that the column had no entry yet.
                if last_row[at] == row + 1 {
                    sums[at] += factor * other;
                } else {
                    (last_row[at], sums[at]) = (row + 1, factor * other);
                    indices.push(col);
                }
            }
        }
        indices[first..].sort_unstable();
        values.extend(indices[first..].iter().map(|&col| sums[col as usize]));
        offsets[row + 1] = indices.len() as i64;
    }
    Ok(OwnedCsr { rows: a.rows, cols: b.cols, offsets, indices, values })
}

#[cfg(test)]
mod tests {
    use client::Session;
    use matrices::gallery;
    use tarsia::facade::{BackendKind, Operation};

    use super::super::check::{Factors, Oracle};
    use super::*;

    #[test]
    fn loops_agree_with_the_reference() {
        let (oracle, session) = (Oracle::new().unwrap(), Session::new(BackendKind::Host).unwrap());
        let a = gallery::rectangular(70, 90, 0.07, 3).unwrap();
        let b = gallery::rectangular(90, 80, 0.05, 4).unwrap();
        let n = 5;
        let x: Vec<f64> = (0..90 * n).map(|i| i as f64 / 3.0 - 9.0).collect();
        let (mut y, mut c) = (vec![f64::NAN; 70], vec![f64::NAN; 70 * n]);
        spmv(&a, &x[..90], &mut y);
        spmm(&a, &x, &mut c, n);
        assert!(oracle.dense(&a, &x[..90], 1).unwrap().check(&y).passed);
        assert!(oracle.dense(&a, &x, n).unwrap().check(&c).passed);
        let c = spgemm(&a, &b, 10).unwrap();
        let factors = Factors { a: &a, b: &b, op_b: Operation::NonTranspose };
        let results = oracle.sparse(factors, &x[..80]).unwrap().check(&session, &c).unwrap();
        assert!(results.iter().all(|result| result.passed), "{results:?}");
    }
}
