//! Tests of new values of both factors of SpGEMM in one call.

use client::{Plan, Session, Sparse};
use tarsia::facade::{IndexBase, SpgemmAlg, Status};

use super::{refused, N, R64};
use crate::common::backends;

/// Offsets and columns of A, which is 2 × 3; B is 3 × 2.
const A: ([i32; 3], [i32; 3]) = ([0, 2, 3], [0, 2, 1]);
const B: ([i32; 4], [i32; 4]) = ([0, 1, 2, 4], [0, 1, 0, 1]);

/// Returns the three entries of A·B.
fn product(a: [f64; 3], b: [f64; 4]) -> Vec<f64> {
    vec![a[0] * b[0] + a[1] * b[2], a[1] * b[3], a[2] * b[1]]
}

#[test]
fn both_factors_get_new_values_of_their_lengths() {
    let (old, new) = (([2.0, 3.0, 5.0], [7.0, 11.0, 13.0, 17.0]), ([1.5, -2.5, 4.0], [0.5, 3.0, -6.0, 9.0]));
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let [a_offsets, a_indices] = [&A.0, &A.1].map(|array| session.upload(array).unwrap());
        let [b_offsets, b_indices] = [&B.0, &B.1].map(|array| session.upload(array).unwrap());
        let [a_old, a_new] = [old.0, new.0].map(|values| session.upload(&values).unwrap());
        let [b_old, b_new] = [old.1, new.1].map(|values| session.upload(&values).unwrap());
        let a = Sparse::csr((2, 3), &a_offsets, &a_indices, &a_old, IndexBase::Zero).unwrap();
        let b = Sparse::csr((3, 2), &b_offsets, &b_indices, &b_old, IndexBase::Zero).unwrap();
        let plan = Plan::spgemm(&session, (N, N), &a, &b, R64, SpgemmAlg::Default).unwrap();
        plan.set_value_updates(true).unwrap();
        plan.analyze(&session).unwrap();
        assert_eq!(plan.symbolic(&session).unwrap(), 3);
        let run = || {
            let (mut offsets, mut indices) =
                (session.upload(&[0; 3]).unwrap(), session.upload(&[0; 3]).unwrap());
            let mut values = session.upload(&[f64::NAN; 3]).unwrap();
            let arrays = (&mut offsets, &mut indices, &mut values);
            plan.numeric_csr(&session, 1.0, (2, 2), arrays.0, arrays.1, arrays.2, IndexBase::Zero).unwrap();
            session.synchronize().unwrap();
            values.download().unwrap()
        };
        assert_eq!(run(), product(old.0, old.1), "{kind:?}");
        plan.update_both_values(&session, &a_new, &b_new).unwrap();
        assert_eq!(run(), product(new.0, new.1), "{kind:?}");
        // An array with the other factor's length is refused.
        refused(
            plan.update_both_values(&session, &b_new, &b_new),
            Status::InvalidValue,
            &["newValuesA", "4"],
        );
        refused(
            plan.update_both_values(&session, &a_old, &a_new),
            Status::InvalidValue,
            &["newValuesB", "3"],
        );
        assert_eq!(run(), product(new.0, new.1), "{kind:?}");
    }
}
