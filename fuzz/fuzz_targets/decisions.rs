//! Any bytes as decisions of a plan, behind a right checksum or not: an error, or a plan that computes what
//! one without them does. Never a panic, an abort or another answer. Orders of rows are among them: the rows of
//! SpMV and SpMM are in an order by name, or for `smat` in clusters.

#![no_main]

use client::{DenseLayout, Plan, Session, Sparse};
use libfuzzer_sys::fuzz_target;
use tarsia::facade::{
    seal_decisions, BackendKind, ComputeType, DataType, IndexBase, Operation, Order, Reorder, SpgemmAlg,
    SpmmAlg, SpmvAlg,
};

const N: Operation = Operation::NonTranspose;
const TYPES: (DataType, DataType) = (DataType::R64F, DataType::R64F);
const R64: ComputeType = ComputeType::R64F;

/// A: 64 × 64, 4 entries a row; rows of one kind lie apart, so that `smat` puts them in clusters. Small whole
/// numbers, so that every order of the sums gives the same bits.
const SIDE: usize = 64;
const EACH: usize = 4;
const KINDS: usize = 16;
const COLUMNS: usize = 2;

fuzz_target!(|bytes: &[u8]| {
    // The first byte says which plan (in an order by name, of `smat`), and whether the bytes are patches
    // (place, value) of good ones, or their order of rows, and behind a checksum that is right.
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (by_name, smat, as_order) = (first & 4 != 0, first & 8 != 0, first & 16 != 0);
    let session = Session::new(BackendKind::Host).expect("the host is there");
    let offsets: Vec<i32> = (0..=SIDE).map(|row| (row * EACH) as i32).collect();
    let place = |at: usize| (at / EACH % KINDS) * EACH + at % EACH;
    let indices: Vec<i32> = (0..SIDE * EACH).map(|at| place(at) as i32).collect();
    let values: Vec<f64> = (0..SIDE * EACH).map(|at| (at % 9 + 1) as f64).collect();
    let shape = (SIDE as i64, SIDE as i64);
    let a =
        Sparse::csr(shape, &offsets[..], &indices[..], &values[..], IndexBase::Zero).expect("a good matrix");
    let create = || {
        let plan = match first % 4 {
            0 | 3 => Plan::spmv(&session, N, &a, TYPES, R64, SpmvAlg::Default),
            1 => {
                let orders = (Order::Row, Order::Row);
                let alg = if smat { SpmmAlg::Smat } else { SpmmAlg::Default };
                Plan::spmm(&session, (N, N), &a, orders, COLUMNS as i64, TYPES, R64, alg)
            }
            _ => Plan::spgemm(&session, (N, N), &a, &a, R64, SpgemmAlg::Default),
        };
        let plan = plan.expect("a good plan");
        if by_name && first % 4 != 2 && !(first % 4 == 1 && smat) {
            plan.set_reorder(Reorder::GrayCode).expect("a good plan");
        }
        plan
    };
    let (good, plan) = (create(), create());
    good.analyze(&session).expect("a good matrix");
    let dense = |count: usize| -> Vec<f64> { (0..count).map(|at| (at % 7) as f64).collect() };
    let product = |plan: &Plan<'_>| -> Vec<f64> {
        match first % 4 {
            0 | 3 => {
                let (x, mut y) = (dense(SIDE), vec![f64::NAN; SIDE]);
                plan.run_spmv(&session, 1.0, &x[..], 0.0, &mut y[..]).expect("a good product");
                y
            }
            1 => {
                let (b, mut c) = (dense(SIDE * COLUMNS), vec![f64::NAN; SIDE * COLUMNS]);
                let ld = COLUMNS as i64;
                let shape = DenseLayout { rows: SIDE as i64, cols: ld, ld, order: Order::Row };
                plan.run_spmm(&session, 1.0, (&b[..], shape), 0.0, (&mut c[..], shape))
                    .expect("a good product");
                c
            }
            _ => vec![plan.symbolic(&session).expect("a good product") as f64],
        }
    };
    let mut given = rest.to_vec();
    if first & 0x40 != 0 {
        given = good.decisions(&session).expect("an analyzed plan");
        let order = given.len() - 8 - 4 * (SIDE + 1);
        let has_order = given[order..order + 4] == (SIDE as u32).to_le_bytes();
        if as_order && has_order {
            // What is in the place of the order: a number a row, as many rows as there are bytes.
            given.truncate(order);
            given.extend((rest.len() as u32).to_le_bytes());
            for &byte in rest {
                let begins = u32::from(byte >> 7) << 31;
                given.extend((u32::from(byte & 0x7f) | begins).to_le_bytes());
            }
            given.extend([0; 8]);
        } else {
            for patch in rest.chunks_exact(3).take(8) {
                let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % given.len();
                given[at] = patch[2];
            }
        }
    }
    if first & 0x80 != 0 {
        seal_decisions(&mut given);
    }
    if plan.set_decisions(&session, &given).is_err() {
        assert_eq!(plan.info().expect("a live plan").analyzed, 0);
    }
    plan.analyze(&session).expect("with decisions or without");
    assert_eq!(product(&plan), product(&good));
});
