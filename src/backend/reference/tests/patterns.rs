//! Tests of how patterns are read, of their reported structure, and of the errors for invalid ones.

use super::super::entries;
use super::{bsr, coo, csc, csr, everywhere, forms, handle, reference, Form, Stored, PLAIN};
use crate::error::{Result, Status};
use crate::matrix::{SparseMatrix, Structure};
use crate::types::{IndexBase, IndexType, Order};

fn check(matrix: &SparseMatrix) -> Result<Structure> {
    reference().check_sparse(&handle().context(), matrix, "M")
}

fn structure(stored: &Stored<f64>) -> (bool, bool) {
    let Structure { sorted, unique } = check(&stored.matrix).unwrap();
    (sorted, unique)
}

#[test]
fn every_format_has_the_same_entries() {
    // (row, column, value) of the matrix of `everywhere`, by rows.
    let expected = [
        (0, 3, 1.0),
        (0, 4, 2.0),
        (0, 5, 3.0),
        (1, 3, 4.0),
        (1, 4, 5.0),
        (1, 5, 6.0),
        (2, 0, 7.0),
        (2, 1, 8.0),
        (2, 2, 9.0),
        (3, 0, 1.0),
        (3, 1, 0.0),
        (3, 2, 2.0),
    ];
    for form in forms() {
        for (name, stored) in everywhere(form, |n| n) {
            let entries = entries::read(&handle().context(), &stored.matrix, "A").unwrap();
            let mut found: Vec<(usize, usize, f64)> = Vec::new();
            for entry in entries.iter() {
                let value = stored.values[entry.position];
                match found.iter_mut().find(|f| (f.0, f.1) == (entry.row, entry.col)) {
                    Some(same) => same.2 += value,
                    None => found.push((entry.row, entry.col, value)),
                }
            }
            found.sort_by_key(|f| (f.0, f.1));
            assert_eq!(found, expected, "{name}, {form:?}");
            assert_eq!(entries.len(), stored.values.len());
        }
    }
}

#[test]
fn structure_says_sorted_and_unique() {
    for form in forms() {
        for (name, stored) in everywhere(form, |n| n) {
            // The untidy BSR repeats a block but has its blocks in order.
            let expected = match name {
                "untidy BSR" => (true, false),
                name if name.starts_with("untidy") => (false, false),
                _ => (true, true),
            };
            assert_eq!(structure(&stored), expected, "{name}, {form:?}");
        }
    }
    // There are no duplicates, but unsorted patterns are never reported as unique.
    assert_eq!(structure(&csr(PLAIN, (1, 3), [&[0, 2], &[2, 0]], &[1.0, 2.0])), (false, false));
    assert_eq!(structure(&csc(PLAIN, (3, 1), [&[0, 2], &[2, 0]], &[1.0, 2.0])), (false, false));
    assert_eq!(structure(&coo(PLAIN, (2, 2), [&[1, 0], &[0, 1]], &[1.0, 2.0])), (false, false));
    let blocks = bsr(PLAIN, (1, 2), (1, 1), Order::Row, [&[0, 2], &[1, 0]], &[1.0, 2.0]);
    assert_eq!(structure(&blocks), (false, false));
    // A duplicate with another entry in between.
    assert_eq!(structure(&csr(PLAIN, (1, 3), [&[0, 3], &[1, 0, 1]], &[1.0; 3])), (false, false));
    // A sorted pattern with a duplicate.
    assert_eq!(structure(&csr(PLAIN, (1, 3), [&[0, 2], &[1, 1]], &[1.0; 2])), (true, false));
    // The first column of a row may be less than the last one of the row before.
    assert_eq!(structure(&csr(PLAIN, (2, 3), [&[0, 1, 2], &[2, 0]], &[1.0; 2])), (true, true));
}

#[test]
fn empty_patterns_are_sorted() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (3, 3)] {
        let offsets = |n: i64| vec![0; if n == 0 { 0 } else { n as usize + 1 }];
        let none = [0.0; 0];
        for form in forms() {
            for stored in [
                csr(form, (rows, cols), [&offsets(rows), &[]], &none),
                csc(form, (rows, cols), [&offsets(cols), &[]], &none),
                coo(form, (rows, cols), [&[], &[]], &none),
                bsr(form, (rows, cols), (2, 3), Order::Row, [&offsets(rows), &[]], &none),
            ] {
                assert_eq!(structure(&stored), (true, true), "{rows} × {cols}");
            }
        }
    }
}

#[track_caller]
fn refused(stored: &Stored<f64>, expected: &str) {
    let error = check(&stored.matrix).unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (Status::InvalidValue, expected));
}

#[test]
fn wrong_offsets_are_named() {
    let one = Form { base: IndexBase::One, ..PLAIN };
    let v = [1.0, 2.0];
    refused(
        &csr(PLAIN, (2, 2), [&[1, 1, 2], &[0, 1]], &v),
        "M: rowOffsets[0] = 1, expected the index base 0",
    );
    refused(
        &csr(one, (2, 2), [&[-1, 1, 2], &[0, 1]], &v),
        "M: rowOffsets[0] = 0, expected the index base 1 (positions count from 0)",
    );
    refused(
        &csr(PLAIN, (3, 2), [&[0, 2, 1, 2], &[0, 1]], &v),
        "M: rowOffsets[2] = 1, expected at least rowOffsets[1] = 2",
    );
    refused(
        &csc(PLAIN, (2, 3), [&[0, 3, 2, 2], &[0, 1]], &v),
        "M: colOffsets[1] = 3, expected at most the number of entries + base = 2",
    );
    refused(
        &csr(one, (2, 2), [&[0, 1, 1], &[0, 1]], &v),
        "M: rowOffsets[2] = 2, expected the number of entries + base = 3 (positions count from 0)",
    );
    refused(
        &bsr(PLAIN, (2, 2), (1, 1), Order::Row, [&[0, 1, 1], &[0, 1]], &v),
        "M: rowOffsets[2] = 1, expected the number of entries + base = 2",
    );
}

#[test]
fn indices_out_of_range_are_named() {
    let one = Form { base: IndexBase::One, ..PLAIN };
    let v = [1.0, 2.0];
    refused(&csr(PLAIN, (2, 3), [&[0, 1, 2], &[0, 3]], &v), "M: colInd[1] = 3 is outside [0, 2]");
    refused(&csr(PLAIN, (2, 3), [&[0, 1, 2], &[-1, 2]], &v), "M: colInd[0] = -1 is outside [0, 2]");
    refused(
        &csr(one, (2, 3), [&[0, 1, 2], &[0, 3]], &v),
        "M: colInd[1] = 4 is outside [1, 3] (positions count from 0)",
    );
    refused(
        &csc(one, (3, 2), [&[0, 1, 2], &[-1, 2]], &v),
        "M: rowInd[0] = 0 is outside [1, 3] (positions count from 0)",
    );
    refused(&coo(PLAIN, (2, 3), [&[0, 2], &[0, 0]], &v), "M: rowInd[1] = 2 is outside [0, 1]");
    refused(&coo(PLAIN, (2, 3), [&[0, 1], &[0, 5]], &v), "M: colInd[1] = 5 is outside [0, 2]");
    refused(
        &bsr(PLAIN, (2, 2), (1, 1), Order::Row, [&[0, 1, 2], &[0, 2]], &v),
        "M: colInd[1] = 2 is outside [0, 1]",
    );
    // Index values so low that subtracting the base overflows.
    let wide = Form { offsets: IndexType::I64, indices: IndexType::I64, base: IndexBase::One };
    let least = format!("M: colInd[0] = {} is outside [1, 3] (positions count from 0)", i64::MIN);
    refused(&csr(wide, (1, 3), [&[0, 1], &[0]], &v[..1]).lowest(), &least);
    refused(&coo(wide, (1, 3), [&[0], &[0]], &v[..1]).lowest(), &least);
}

impl Stored<f64> {
    /// Replaces the first index by the least value of its type.
    fn lowest(mut self) -> Self {
        if let super::Ints::I64(indices) = &mut self.ints[1] {
            indices[0] = i64::MIN;
        }
        self
    }
}

#[test]
fn missing_arrays_are_named() {
    let stored = csr(PLAIN, (2, 2), [&[0, 1, 2], &[0, 1]], &[1.0, 2.0]);
    let error = check(&stored.matrix.with_values(crate::types::Address::NULL)).unwrap_err();
    assert_eq!(error.status, Status::InvalidValue);
    assert!(error.message.starts_with("M: its values pointer is NULL"), "{}", error.message);
}
