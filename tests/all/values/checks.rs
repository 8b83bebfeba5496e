//! Tests of tarsiaSetChecks: changes that it finds, and changes that it cannot find.

use super::*;
use client::Array;

/// Plan of a product with A in CSR, and its matrices.
struct World {
    offsets: Array<'static, i32>,
    indices: Array<'static, i32>,
    values: Array<'static, f64>,
    session: Session,
}

fn arrays() -> (Vec<i32>, Vec<i32>) {
    let pattern = pattern(Format::Csr);
    let narrow = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as i32).collect();
    (narrow(pattern.outer.to_vec()), narrow(pattern.inner.to_vec()))
}

impl World {
    fn new(kind: BackendKind) -> Self {
        let (offsets, indices) = arrays();
        World {
            offsets: upload(kind, &offsets),
            indices: upload(kind, &indices),
            values: upload(kind, &numbers(ENTRIES, 0)),
            session: Session::new(kind).unwrap(),
        }
    }

    fn sparse(&self) -> Sparse<'_> {
        let shape = (SIZE as i64, SIZE as i64);
        Sparse::csr(shape, &self.offsets, &self.indices, &self.values, IndexBase::Zero).unwrap()
    }
}

const PRODUCTS: [ProductKind; 3] = [
    ProductKind::Spmv(SpmvAlg::Default),
    ProductKind::Spmm(SpmmAlg::Default),
    ProductKind::Spgemm(SpgemmAlg::Default),
];

fn each(run: impl Fn(ProductKind, &World, &Sparse<'_>)) {
    for kind in backends() {
        for product in PRODUCTS {
            let world = World::new(kind);
            run(product, &world, &world.sparse());
        }
    }
}

#[test]
fn a_getter_says_what_is_set() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        assert!(!session.checks().unwrap());
        session.set_checks(true).unwrap();
        assert!(session.checks().unwrap());
        session.set_checks(false).unwrap();
        assert!(!session.checks().unwrap());
    }
}

/// Another valid pattern in the plan's arrays is an error, also if the plan reads values in place.
#[test]
fn a_pattern_that_changes_needs_a_new_plan() {
    each(|product, world, a| {
        for in_place in [false, true] {
            let (session, (_, mut indices)) = (&world.session, arrays());
            session.set_checks(true).unwrap();
            let plan = product.plan(session, N, a, a).unwrap();
            plan.set_values_in_place(in_place).unwrap();
            plan.analyze(session).unwrap();
            product.run(session, &plan).unwrap();
            let old = indices.clone();
            // A column that the row does not have, so that no entry is there twice.
            indices[0] = (0..SIZE as i32).find(|col| !indices[..40].contains(col)).unwrap();
            overwrite(session, world.indices.part(0..indices.len()), &indices);
            let texts = ["index arrays (rowOffsets or colInd) of A", "a new plan"];
            refused(product.run(session, &plan), Status::InvalidState, &texts);
            if let ProductKind::Spgemm(_) = product {
                refused(plan.symbolic(session), Status::InvalidState, &texts);
            }
            // With checks off, the change is not noticed.
            overwrite(session, world.indices.part(0..old.len()), &old);
            product.run(session, &plan).unwrap();
        }
    });
}

/// Changes that were made while checks were off cannot be found.
#[test]
fn what_was_not_seen_cannot_be_checked() {
    each(|product, world, a| {
        let session = &world.session;
        let plan = product.plan(session, N, a, a).unwrap();
        plan.analyze(session).unwrap();
        assert_eq!(plan.info().unwrap().checked, 0);
        product.run(session, &plan).unwrap();
        session.set_checks(true).unwrap();
        let texts = ["cannot be checked", "before tarsiaPlan_analyze"];
        refused(product.run(session, &plan), Status::InvalidState, &texts);
        session.set_checks(false).unwrap();
        product.run(session, &plan).unwrap();

        session.set_checks(true).unwrap();
        let plan = product.plan(session, N, a, a).unwrap();
        plan.analyze(session).unwrap();
        assert_eq!(plan.info().unwrap().checked, 1);
        let update = || plan.update_values(session, world.values.part(0..ENTRIES)).unwrap();
        session.set_checks(false).unwrap();
        update();
        product.run(session, &plan).unwrap();
        session.set_checks(true).unwrap();
        refused(
            product.run(session, &plan),
            Status::InvalidState,
            &["cannot be checked", "updated while checks"],
        );
        update();
        product.run(session, &plan).unwrap();
    });
}

/// If both factors are one array, new values of one factor are not those of the other.
#[test]
fn each_factor_of_a_sparse_product_has_its_own_call() {
    for kind in backends() {
        let world = World::new(kind);
        let (session, a) = (&world.session, world.sparse());
        session.set_checks(true).unwrap();
        let product = ProductKind::Spgemm(SpgemmAlg::Default);
        let plan = product.plan(session, N, &a, &a).unwrap();
        plan.analyze(session).unwrap();
        product.run(session, &plan).unwrap();
        let values = world.values.part(0..ENTRIES);
        overwrite(session, values, &numbers(ENTRIES, 1));
        // The symbolic phase reads only patterns.
        plan.symbolic(session).unwrap();
        let update = |a: Option<View<'_, f64>>, b: Option<View<'_, f64>>| {
            let [a, b] =
                [a, b].map(|values| values.map_or(std::ptr::null(), |values| values.as_ptr().cast()));
            // SAFETY: arrays of the plan's length, which outlive it.
            check(unsafe {
                tarsia::capi::spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), a, b)
            })
            .unwrap();
        };
        update(Some(values), None);
        let texts = ["the values of B have changed", "tarsiaSpGEMM_updateValues"];
        refused(product.run(session, &plan), Status::InvalidState, &texts);
        update(None, Some(values));
        product.run(session, &plan).unwrap();
    }
}
