//! Any bytes as decisions of a plan, behind a right checksum or not: an error, or a plan that computes what
//! one without them does. Never a panic, an abort or another answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tarsia::capi::client::{Plan, Session, Shape, Sparse};
use tarsia::plan::decisions::bytes::seal;
use tarsia::types::{
    BackendKind, ComputeType, DataType, IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg,
};

const N: Operation = Operation::NonTranspose;
const TYPES: (DataType, DataType) = (DataType::R64F, DataType::R64F);
const R64: ComputeType = ComputeType::R64F;

/// A: 3 × 3. Small whole numbers, so that every order of the sums gives the same bits.
const OFFSETS: [i32; 4] = [0, 2, 3, 5];
const INDICES: [i32; 5] = [0, 2, 1, 0, 2];
const VALUES: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

fuzz_target!(|bytes: &[u8]| {
    // The first byte says which plan, and whether the bytes are patches (place, value) of good ones, behind
    // a checksum that is right.
    let Some((&first, rest)) = bytes.split_first() else { return };
    let session = Session::new(BackendKind::Host).expect("the host is there");
    let a =
        Sparse::csr((3, 3), &OFFSETS[..], &INDICES[..], &VALUES[..], IndexBase::Zero).expect("a good matrix");
    let create = || match first % 3 {
        0 => Plan::spmv(&session, N, &a, TYPES, R64, SpmvAlg::Default),
        1 => {
            let orders = (Order::Row, Order::Row);
            Plan::spmm(&session, (N, N), &a, orders, 2, TYPES, R64, SpmmAlg::Default)
        }
        _ => Plan::spgemm(&session, (N, N), &a, &a, R64, SpgemmAlg::Default),
    };
    let (good, plan) = (create().expect("a good plan"), create().expect("a good plan"));
    good.analyze(&session).expect("a good matrix");
    let product = |plan: &Plan<'_>| -> Vec<f64> {
        match first % 3 {
            0 => {
                let (x, mut y) = ([1.0, 2.0, 3.0], [f64::NAN; 3]);
                plan.run_spmv(&session, 1.0, &x[..], 0.0, &mut y[..]).expect("a good product");
                y.to_vec()
            }
            1 => {
                let (b, mut c) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [f64::NAN; 6]);
                let shape = Shape { rows: 3, cols: 2, ld: 2, order: Order::Row };
                plan.run_spmm(&session, 1.0, (&b[..], shape), 0.0, (&mut c[..], shape))
                    .expect("a good product");
                c.to_vec()
            }
            _ => vec![plan.symbolic(&session).expect("a good product") as f64],
        }
    };
    let mut given = rest.to_vec();
    if first & 0x40 != 0 {
        given = good.decisions(&session).expect("an analyzed plan");
        for patch in rest.chunks_exact(3).take(8) {
            let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % given.len();
            given[at] = patch[2];
        }
    }
    if first & 0x80 != 0 {
        seal(&mut given);
    }
    if plan.set_decisions(&session, &given).is_err() {
        assert_eq!(plan.info().expect("a live plan").analyzed, 0);
    }
    plan.analyze(&session).expect("with decisions or without");
    assert_eq!(product(&plan), product(&good));
});
