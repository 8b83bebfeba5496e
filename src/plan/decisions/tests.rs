//! Analysis with decisions computes no order of rows again.

use crate::capi::client::{Plan, Session, Sparse};
use crate::reorder::computed;
use crate::types::{
    BackendKind, ComputeType, DataType, IndexBase, Operation, Order, Reorder, SpmmAlg, SpmvAlg,
};
use matrices::gallery;
use matrices::owned::OwnedCsr;

const N: Operation = Operation::NonTranspose;
const F64: (DataType, DataType) = (DataType::R64F, DataType::R64F);

/// Orders that analysis computes by itself, with decisions, and when new values come after that.
fn orders_of(alg: Result<SpmvAlg, SpmmAlg>, reorder: Reorder, a: &OwnedCsr<f64>) -> [usize; 3] {
    let session = Session::new(BackendKind::Host).unwrap();
    let shape = (a.rows as i64, a.cols as i64);
    let sparse = Sparse::csr(shape, &a.offsets[..], &a.indices[..], &a.values[..], IndexBase::Zero).unwrap();
    let plan = || -> Plan<'_> {
        let plan = match alg {
            Ok(alg) => Plan::spmv(&session, N, &sparse, F64, ComputeType::R64F, alg),
            Err(alg) => {
                let orders = (Order::Row, Order::Row);
                Plan::spmm(&session, (N, N), &sparse, orders, 8, F64, ComputeType::R64F, alg)
            }
        }
        .unwrap();
        plan.set_reorder(reorder).unwrap();
        plan
    };
    let mut last = computed::count();
    let mut since = || {
        let before = std::mem::replace(&mut last, computed::count());
        last - before
    };
    let first = plan();
    first.analyze(&session).unwrap();
    let alone = since();
    let second = plan();
    second.set_decisions(&session, &first.decisions(&session).unwrap()).unwrap();
    second.analyze(&session).unwrap();
    let decided = since();
    second.update_values(&session, &a.values[..]).unwrap();
    [alone, decided, since()]
}

#[test]
fn orders_by_name_are_computed_once() {
    let a = gallery::uniform(300, 300, 9, 3).unwrap();
    for alg in [Ok(SpmvAlg::Csr), Err(SpmmAlg::Row), Err(SpmmAlg::Csr)] {
        for reorder in crate::reorder::policy::POLICIES {
            let again = usize::from(reorder == Reorder::Dcsr);
            assert_eq!(orders_of(alg, reorder, &a), [1, again, 0], "{alg:?} {reorder:?}");
        }
    }
}

#[test]
fn clusters_are_looked_for_once() {
    // Rows of one kind lie apart: these are put in clusters.
    let entries = (0..256_i32).flat_map(|row| (0..12).map(move |k| (row, (row % 16) * 16 + k, 1.5)));
    let combed = OwnedCsr::from_triplets(256, 256, entries.collect()).unwrap();
    assert_eq!(orders_of(Err(SpmmAlg::Smat), Reorder::Auto, &combed), [1, 0, 0]);
    // And not again where they have not paid.
    let banded = gallery::banded(200, 4, 7).unwrap();
    assert_eq!(orders_of(Err(SpmmAlg::Smat), Reorder::Auto, &banded), [1, 0, 0]);
}
