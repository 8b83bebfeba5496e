//! Tests of `owned`.

use super::*;
use crate::SplitMix64;

fn csr<V: Copy + Add<Output = V>>(n: usize, entries: Vec<(i32, i32, V)>) -> OwnedCsr<V> {
    let matrix = OwnedCsr::from_triplets(n, n, entries).unwrap();
    matrix.validate().unwrap();
    matrix
}

#[test]
fn triplets_agree_with_a_dense_sum_in_the_same_order() {
    let mut rng = SplitMix64::new(7);
    for (rows, cols, count) in [(1, 1, 9), (5, 3, 40), (40, 70, 900), (70, 40, 30)] {
        let mut dense = vec![None; rows * cols];
        let mut entries = Vec::new();
        for _ in 0..count {
            let (i, j) = (rng.below(rows as u64), rng.below(cols as u64));
            let value = rng.value();
            let cell: &mut Option<f64> = &mut dense[i as usize * cols + j as usize];
            *cell = Some(cell.map_or(value, |sum| sum + value));
            entries.push((i as i64, j as i64, value));
        }
        let a = OwnedCsr::from_triplets(rows, cols, entries).unwrap();
        a.validate().unwrap();
        let t = a.transpose().unwrap();
        t.validate().unwrap();
        for i in 0..rows {
            for j in 0..cols {
                // Equal to the last bit, since duplicates are summed in the order of the input.
                assert_eq!(a.get(i, j), dense[i * cols + j]);
                assert_eq!(t.get(j, i), dense[i * cols + j]);
            }
        }
        assert_eq!(a.nnz(), dense.iter().flatten().count());
        assert_eq!(t.transpose().unwrap(), a);
    }
}

#[test]
fn duplicates_are_added_in_input_order() {
    // 1e16 + 1 rounds to 1e16, so another order gives another sum.
    let big_first = vec![(0, 1, 1e16), (0, 0, 5.0), (0, 1, 1.0), (0, 1, -1e16)];
    assert_eq!(csr(2, big_first).get(0, 1), Some(0.0));
    let big_last = vec![(0, 1, 1e16), (0, 0, 5.0), (0, 1, -1e16), (0, 1, 1.0)];
    assert_eq!(csr(2, big_last).get(0, 1), Some(1.0));
    // An entry whose sum is 0 stays stored.
    assert_eq!(csr(1, vec![(0, 0, 1.0), (0, 0, -1.0)]).nnz(), 1);
}

#[test]
fn empty_shapes() {
    for (rows, cols) in [(0, 0), (0, 4), (4, 0), (3, 5)] {
        let a = OwnedCsr::<f64>::from_triplets(rows, cols, Vec::<(i32, i32, f64)>::new());
        let a = a.unwrap();
        a.validate().unwrap();
        assert_eq!(a.offsets, vec![0; rows + 1]);
        let t = a.transpose().unwrap();
        assert_eq!((t.rows, t.cols, t.nnz()), (cols, rows, 0));
        assert_eq!(a.is_structurally_symmetric(), rows == cols);
        assert_eq!(a.is_hermitian(0.0), rows == cols);
    }
    assert!(!OwnedCsr::<f64>::from_triplets(1, 1, Vec::<(i32, i32, f64)>::new())
        .unwrap()
        .is_cg_candidate(0.0));
}

#[test]
fn bad_triplets_and_sizes_are_errors() {
    for (bad, part) in [
        ((3i64, 0i64), "row index of entry 1: found '3', expected 0 <= index < 3"),
        ((-1, 0), "row index of entry 1: found '-1'"),
        ((0, 2), "column index of entry 1: found '2', expected 0 <= index < 2"),
        ((i64::MIN, 0), "row index"),
        ((0, i64::MAX), "column index"),
    ] {
        let error = OwnedCsr::from_triplets(3, 2, vec![(0, 0, 1.0), (bad.0, bad.1, 1.0)]);
        let text = error.unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    }
    for (rows, cols) in [(MAX_DIMENSION + 1, 0), (0, MAX_DIMENSION + 1), (usize::MAX, 1)] {
        let error = OwnedCsr::from_triplets(rows, cols, Vec::<(i32, i32, f64)>::new());
        assert!(matches!(error, Err(MatrixError::TooLarge { .. })));
    }
    let refused = try_filled(usize::MAX, 0i64);
    assert!(matches!(refused, Err(MatrixError::OutOfMemory { bytes: usize::MAX })));
    let refused = try_reserve(&mut vec![0u8; 3], usize::MAX - 7);
    assert!(matches!(refused, Err(MatrixError::OutOfMemory { bytes }) if bytes == usize::MAX - 4));
}

#[test]
fn validate_finds_each_broken_invariant() {
    let good = || csr(3, vec![(0, 0, 1.0), (0, 2, 2.0), (2, 1, 3.0)]);
    let breakages: [fn(&mut OwnedCsr<f64>); 9] = [
        |a| a.offsets.push(3),
        |a| a.offsets[0] = 1,
        |a| a.offsets[3] = 4,
        |a| a.offsets[1] = 4,
        |a| a.values.truncate(2),
        |a| a.indices[0] = -1,
        |a| a.indices[1] = 3,
        |a| a.indices[1] = 0,
        |a| a.indices.swap(0, 1),
    ];
    good().validate().unwrap();
    for (number, breakage) in breakages.into_iter().enumerate() {
        let mut a = good();
        breakage(&mut a);
        assert!(a.validate().is_err(), "breakage {number}");
    }
}

#[test]
fn symmetry_of_pattern_and_values() {
    let a = csr(3, vec![(0, 1, 2.0), (1, 0, 2.0), (2, 2, 1.0)]);
    assert!(a.is_structurally_symmetric() && a.is_hermitian(0.0));
    assert!(!a.is_cg_candidate(0.0), "rows 0 and 1 have no diagonal");
    let a = csr(3, vec![(0, 1, 2.0), (1, 0, 2.5)]);
    assert!(a.is_structurally_symmetric() && !a.is_hermitian(0.1) && a.is_hermitian(0.25));
    let a = csr(3, vec![(0, 1, 2.0)]);
    assert!(!a.is_structurally_symmetric() && !a.is_hermitian(0.5));
    let a = csr(2, vec![(0, 1, 0.0f32), (0, 0, 1.0), (1, 1, 1.0)]);
    assert!(!a.is_structurally_symmetric() && a.is_cg_candidate(0.0));
    for special in [f64::NAN, f64::INFINITY] {
        let a = csr(2, vec![(0, 1, special), (1, 0, special)]);
        assert!(!a.is_hermitian(1.0));
        assert!(!csr(2, vec![(0, 1, special)]).is_hermitian(1.0));
    }
    let wide = OwnedCsr::from_triplets(2, 3, vec![(0, 0, 1.0)]).unwrap();
    assert!(!wide.is_structurally_symmetric() && !wide.is_hermitian(1.0));
    let a = csr(2, vec![(0, 0, 1.0), (1, 1, -1.0)]);
    assert!(a.is_hermitian(0.0) && !a.is_cg_candidate(0.0));
}

#[test]
fn hermitian_is_not_complex_symmetric() {
    let z = Complex::new;
    let diagonal = [(0, 0, z(1.0, 0.0)), (1, 1, z(2.0, 0.0))];
    let with = |i, j, v| {
        let mut entries = diagonal.to_vec();
        entries.extend([(0, 1, z(3.0, 4.0)), (i, j, v)]);
        csr(2, entries)
    };
    assert!(with(1, 0, z(3.0, -4.0)).is_cg_candidate(0.0));
    assert!(!with(1, 0, z(3.0, 4.0)).is_hermitian(0.1));
    let a = csr(1, vec![(0, 0, z(1.0f32, 0.5))]);
    assert!(!a.is_hermitian(0.1), "the diagonal is not real");
}

#[test]
fn access_map_and_rows() {
    let a = csr(3, vec![(0, 2, 3.0), (0, 0, 1.0), (2, 1, -2.0)]);
    assert_eq!(a.row(0), (&[0, 2][..], &[1.0, 3.0][..]));
    assert_eq!(a.row(1).0.len(), 0);
    assert_eq!((a.get(0, 2), a.get(0, 1), a.get(0, usize::MAX)), (Some(3.0), None, None));
    let half = a.map_values(|v| v as f32 * 0.5).unwrap();
    assert_eq!((half.row(2), half.nnz()), ((&[1][..], &[-1.0f32][..]), 3));
    assert_eq!(a.try_clone().unwrap(), a);
    let mut rows = RowBuilder::new(2, 3, 0).unwrap();
    rows.push(1, 5.0).unwrap();
    rows.end_row().unwrap();
    rows.end_row().unwrap();
    let built = rows.finish();
    assert_eq!((built.get(0, 1), built.offsets), (Some(5.0), vec![0, 1, 1]));
    assert!(matches!(RowBuilder::<f64>::new(1, 1, u128::MAX), Err(MatrixError::OutOfMemory { .. })));
}
