//! Tests that analysis with given decisions does not compute a row order again.

use matrices::gallery;
use matrices::owned::OwnedCsr;

use crate::algorithm::Algorithm;
use crate::backend;
use crate::context::Handle;
use crate::matrix::testing::csr;
use crate::operation::{Planned, Spmm, Spmv};
use crate::plan::Plan;
use crate::problem::{SpmmProblem, SpmvProblem};
use crate::reorder::computed;
use crate::support::{Combo, F64};
use crate::types::{Address, BackendKind, Operation, Order, Reorder, SpmmAlg, SpmvAlg};

const N: Operation = Operation::NonTranspose;

/// Returns how many row orders are computed by an analysis without decisions, by one with decisions, and by
/// an update of values after that.
fn orders_of(alg: Result<SpmvAlg, SpmmAlg>, reorder: Reorder, a: &OwnedCsr<f64>) -> [usize; 3] {
    let handle = Handle::new(backend::open(BackendKind::Host, 0).unwrap()).unwrap();
    let sparse = csr(a);
    let host = BackendKind::Host;
    let plan = || {
        let plan = match alg {
            Ok(alg) => {
                let problem = SpmvProblem { op: N, a: sparse, types: F64::TYPES, value_updates: false };
                Plan::new(&handle, Planned::<Spmv>::new(host, problem, Algorithm::from_spmv(alg)).unwrap())
            }
            Err(alg) => {
                let problem = SpmmProblem {
                    op: N,
                    op_b: N,
                    a: sparse,
                    b_order: Order::Row,
                    c_order: Order::Row,
                    n_hint: 8,
                    types: F64::TYPES,
                    value_updates: false,
                    ieee: false,
                };
                Plan::new(&handle, Planned::<Spmm>::new(host, problem, Algorithm::from_spmm(alg)).unwrap())
            }
        };
        plan.set(|settings| settings.reorder = reorder).unwrap();
        plan
    };
    let mut last = computed::count();
    let mut since = || {
        let before = std::mem::replace(&mut last, computed::count());
        last - before
    };
    let first = plan();
    first.analyze(&handle).unwrap();
    let alone = since();
    let second = plan();
    second.decide(&handle, &first.decisions(&handle).unwrap()).unwrap();
    second.analyze(&handle).unwrap();
    let decided = since();
    second.update_values(&handle, Address::new(a.values.as_ptr())).unwrap();
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
    // Similar rows are far apart, so they are clustered.
    let entries = (0..256_i32).flat_map(|row| (0..12).map(move |k| (row, (row % 16) * 16 + k, 1.5)));
    let combed = OwnedCsr::from_triplets(256, 256, entries.collect()).unwrap();
    assert_eq!(orders_of(Err(SpmmAlg::Smat), Reorder::Auto, &combed), [1, 0, 0]);
    // Clusters are not looked for again if they did not pay off.
    let banded = gallery::banded(200, 4, 7).unwrap();
    assert_eq!(orders_of(Err(SpmmAlg::Smat), Reorder::Auto, &banded), [1, 0, 0]);
}
