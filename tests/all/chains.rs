//! Tests of products that read what the product before them on the stream has written, with nothing between
//! them. On a device a launch may begin while the one before it ends, so each kernel has to wait for it before
//! it reads.

use bytemuck::Pod;
use client::{DenseLayout, Plan, Scalar, Session, Sparse};
use tarsia::facade::{BackendKind, Element, IndexBase, Operation, Order, SpmmAlg, SpmvAlg, Types};

use crate::common::backend;
use crate::common::number::{Numbers, F32, F64};
use crate::common::staged::upload;

const N: Operation = Operation::NonTranspose;
/// Number of rows and columns.
const SIDE: usize = 2_804;
/// Number of products in a chain; even, so that its result is where it began.
const LINKS: usize = 40;

/// Column of row `row`'s entry 1: any permutation whose powers differ.
fn source(row: usize) -> usize {
    (row * 7 + 3) % SIDE
}

/// CSR arrays of a permutation whose rows have stored zeros as well, so that products take longer and are exact
/// in every order of sums.
fn permutation<V: Copy>(zero: V, one: V) -> (Vec<i32>, Vec<i32>, Vec<V>) {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..SIDE {
        let mut all = [source(row), (row + 1) % SIDE, (row + 5) % SIDE, (row * 13 + 1) % SIDE];
        all.sort_unstable();
        for (at, &column) in all.iter().enumerate() {
            if at > 0 && all[at - 1] == column {
                continue;
            }
            columns.push(column as i32);
            values.push(if column == source(row) { one } else { zero });
        }
        offsets.push(columns.len() as i32);
    }
    (offsets, columns, values)
}

/// The rows of `from`, of `width` elements each, after `LINKS` products.
fn expected<V: Copy>(from: &[V], width: usize) -> Vec<V> {
    let mut place: Vec<usize> = (0..SIDE).collect();
    for _ in 0..LINKS {
        place = (0..SIDE).map(|row| place[source(row)]).collect();
    }
    place.into_iter().flat_map(|row| from[row * width..(row + 1) * width].iter().copied()).collect()
}

/// Runs chains of products by each algorithm, and by two algorithms in turns.
fn chains<V>(types: Types, zero: V, one: V, number: impl Fn(usize) -> V)
where
    V: Element + Scalar + Pod + PartialEq,
{
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let (offsets, columns, values) = permutation(zero, one);
    let (offsets, columns, values) = (upload(kind, &offsets), upload(kind, &columns), upload(kind, &values));
    let shape = (SIDE as i64, SIDE as i64);
    let a = Sparse::csr(shape, &offsets, &columns, &values, IndexBase::Zero).unwrap();
    let of = (types.x, types.y);
    let numbers = |width: usize| (0..SIDE * width).map(&number).collect::<Vec<_>>();

    let plans = SpmvAlg::ALL.iter().filter_map(|&alg| {
        let plan = Plan::spmv(&session, N, &a, of, types.compute, alg).ok()?;
        plan.analyze(&session).unwrap();
        Some((alg, plan))
    });
    let plans: Vec<_> = plans.collect();
    assert!(plans.len() >= 3, "{}", types.describe());
    let (from, wanted) = (numbers(1), expected(&numbers(1), 1));
    for (at, first) in plans.iter().enumerate() {
        for second in [first, &plans[(at + 1) % plans.len()]] {
            let (mut x, mut y) = (upload(kind, &from), upload(kind, &[zero; SIDE]));
            for _ in 0..LINKS / 2 {
                first.1.run_spmv(&session, one, &x, zero, &mut y).unwrap();
                second.1.run_spmv(&session, one, &y, zero, &mut x).unwrap();
            }
            session.synchronize().unwrap();
            let what = format!("SpMV {:?}, {:?}, {}", first.0, second.0, types.describe());
            assert!(x.download().unwrap() == wanted, "{what}");
        }
    }

    for n in [4, 32] {
        let plans = SpmmAlg::ALL.iter().filter_map(|&alg| {
            // It stores all of A's zeros, for which the host takes minutes.
            if alg == SpmmAlg::Dense && kind != BackendKind::Cuda {
                return None;
            }
            let orders = (Order::Row, Order::Row);
            let plan = Plan::spmm(&session, (N, N), &a, orders, n, of, types.compute, alg).ok()?;
            plan.analyze(&session).unwrap();
            Some((alg, plan))
        });
        let plans: Vec<_> = plans.collect();
        assert!(plans.len() >= 3, "{}", types.describe());
        let layout = DenseLayout { rows: SIDE as i64, cols: n, ld: n, order: Order::Row };
        let (from, wanted) = (numbers(n as usize), expected(&numbers(n as usize), n as usize));
        for (at, first) in plans.iter().enumerate() {
            let second = &plans[(at + 1) % plans.len()];
            let (mut b, mut c) = (upload(kind, &from), upload(kind, &vec![zero; from.len()]));
            for _ in 0..LINKS / 2 {
                first.1.run_spmm(&session, one, (&b, layout), zero, (&mut c, layout)).unwrap();
                second.1.run_spmm(&session, one, (&c, layout), zero, (&mut b, layout)).unwrap();
            }
            session.synchronize().unwrap();
            let what = format!("SpMM {:?}, {:?}, {}, n {n}", first.0, second.0, types.describe());
            assert!(b.download().unwrap() == wanted, "{what}");
        }
    }
}

#[test]
fn products_of_doubles_read_what_the_one_before_wrote() {
    chains(F64::TYPES, 0.0, 1.0, |at| (at % 9973) as f64 - 4000.5);
}

#[test]
fn products_of_singles_read_what_the_one_before_wrote() {
    chains(F32::TYPES, 0.0_f32, 1.0, |at| (at % 9973) as f32 - 4000.5);
}
