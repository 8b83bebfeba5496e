//! Tests of row orders in decisions: the later analysis uses the order that the earlier one has computed.

use client::{Plan, Session};
use tarsia::facade::{seal_decisions, BackendKind, Reorder, SpmmAlg, SpmvAlg, Status};

use super::{made, matrices, refused, PlannedProduct, Stored};
use crate::common::backends;

/// Products that support row orders by name.
const IN_ORDER: [PlannedProduct; 3] = [
    PlannedProduct::Spmv(SpmvAlg::Csr),
    PlannedProduct::Spmm(SpmmAlg::Row),
    PlannedProduct::Spmm(SpmmAlg::Csr),
];
const CHECKSUM: usize = 8;

/// Returns the orders by name.
fn policies() -> impl Iterator<Item = Reorder> {
    Reorder::ALL.iter().copied().filter(|reorder| !matches!(reorder, Reorder::Auto | Reorder::None))
}

/// Returns the range of the bytes that have the order of `rows` rows.
fn order_in(bytes: &[u8], rows: usize) -> std::ops::Range<usize> {
    let end = bytes.len() - CHECKSUM;
    end - 4 * rows..end
}

/// Returns the backends that reorder rows; the reference does not.
fn in_orders() -> impl Iterator<Item = BackendKind> {
    backends().into_iter().filter(|&kind| kind != BackendKind::Reference)
}

fn has_order(bytes: &[u8], rows: usize) -> bool {
    let numbers = bytes.len().checked_sub(CHECKSUM + 4 * rows + 4);
    rows > 0 && numbers.is_some_and(|at| bytes[at..at + 4] == (rows as u32).to_le_bytes())
}

fn reordered<'a>(
    product: PlannedProduct,
    session: &Session,
    stored: &'a Stored,
    reorder: Reorder,
) -> Plan<'a> {
    let plan = product.plan(session, &stored.sparse()).unwrap();
    plan.set_reorder(reorder).unwrap();
    plan
}

#[test]
fn the_same_bits_in_every_order() {
    for kind in in_orders() {
        let session = Session::new(kind).unwrap();
        for (name, a) in &matrices() {
            let stored = Stored::new(kind, a);
            for (product, reorder) in
                IN_ORDER.iter().flat_map(|&p| policies().map(move |reorder| (p, reorder)))
            {
                let what = format!("{kind:?} {name} {product:?} {reorder:?}");
                let first = reordered(product, &session, &stored, reorder);
                first.analyze(&session).unwrap();
                let bytes = first.decisions(&session).unwrap();
                let in_force = first.info().unwrap().reorder as i32;
                assert!(in_force == reorder.code() || reorder == Reorder::Learned, "{what}");
                let is_kept = ![Reorder::None, Reorder::Dcsr].map(Reorder::code).contains(&in_force);
                assert_eq!(has_order(&bytes, a.rows), is_kept && a.rows > 0, "{what}");

                let other = Session::new(kind).unwrap();
                let second = reordered(product, &other, &stored, reorder);
                second.set_decisions(&other, &bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
                second.analyze(&other).unwrap();
                assert_eq!(made(&second), made(&first), "{what}");
                assert_eq!(second.info().unwrap().reorder as i32, in_force, "{what}");
                let expected = product.bits(&first, &session, &stored);
                assert!(product.bits(&second, &other, &stored) == expected, "{what}");
                assert_eq!(second.decisions(&other).unwrap(), bytes, "{what}");
            }
        }
    }
}

/// A plan uses the order in its decisions even if no policy would compute it, given a right checksum.
#[test]
fn the_order_that_is_given_is_taken() {
    for kind in in_orders() {
        let session = Session::new(kind).unwrap();
        let a = &matrices()[1].1;
        let stored = Stored::new(kind, a);
        for product in IN_ORDER {
            let first = reordered(product, &session, &stored, Reorder::Rcm);
            first.analyze(&session).unwrap();
            let mut bytes = first.decisions(&session).unwrap();
            let order = order_in(&bytes, a.rows);
            for (position, row) in bytes[order].chunks_exact_mut(4).enumerate() {
                row.copy_from_slice(&((position as u32 * 7 + 3) % a.rows as u32).to_le_bytes());
            }
            seal_decisions(&mut bytes);
            let second = reordered(product, &session, &stored, Reorder::Rcm);
            second.set_decisions(&session, &bytes).unwrap();
            second.analyze(&session).unwrap();
            assert_eq!(second.decisions(&session).unwrap(), bytes, "{kind:?} {product:?}");
            let close = |a: u64, b: u64| (f64::from_bits(a) - f64::from_bits(b)).abs() < 1e-12;
            let expected = product.bits(&first, &session, &stored);
            let found = product.bits(&second, &session, &stored);
            assert!(found.iter().zip(&expected).all(|(&a, &b)| close(a, b)), "{kind:?} {product:?}");
        }
    }
}

/// Decisions of `smat` on the host backend contain its clusters, which a later plan keeps. On a device they
/// do not contain them, and a later plan has the same clusters, too.
#[test]
fn clusters_of_the_host_are_kept() {
    let product = PlannedProduct::Spmm(SpmmAlg::Smat);
    let (_, a) = matrices().into_iter().find(|(name, _)| *name == "combed").unwrap();
    for kind in in_orders() {
        let session = Session::new(kind).unwrap();
        let stored = Stored::new(kind, &a);
        let first = reordered(product, &session, &stored, Reorder::Auto);
        first.analyze(&session).unwrap();
        // A device may find that clusters do not pay for this matrix.
        let in_clusters = first.info().unwrap().reorder as i32 == Reorder::Auto.code();
        assert!(in_clusters || kind != BackendKind::Host, "{kind:?}: rows are in clusters");
        let bytes = first.decisions(&session).unwrap();
        assert_eq!(has_order(&bytes, a.rows), kind == BackendKind::Host, "{kind:?}");
        let second = reordered(product, &session, &stored, Reorder::Auto);
        second.set_decisions(&session, &bytes).unwrap();
        second.analyze(&session).unwrap();
        assert_eq!(made(&second), made(&first), "{kind:?}");
        assert_eq!(second.decisions(&session).unwrap(), bytes);
        let expected = product.bits(&first, &session, &stored);
        assert!(product.bits(&second, &session, &stored) == expected, "{kind:?}");
        // New values, with which blocks are built again in the same clusters.
        second.update_values(&session, &stored.values).unwrap();
        assert!(product.bits(&second, &session, &stored) == expected, "{kind:?}");
        if kind == BackendKind::Host {
            // A window of all rows is not valid for smat, whose windows have at most 16 rows.
            let mut one = bytes.clone();
            let order = order_in(&one, a.rows);
            for (position, row) in one[order].chunks_exact_mut(4).enumerate() {
                row[3] = if position == 0 { 0x80 } else { 0 };
            }
            seal_decisions(&mut one);
            let plan = reordered(product, &session, &stored, Reorder::Auto);
            refused(&plan, &session, &one, Status::InvalidValue, "an order of rows that smat");
        }
    }
}

#[test]
fn damaged_orders_are_refused_by_name() {
    for kind in in_orders() {
        let session = Session::new(kind).unwrap();
        let a = &matrices()[0].1;
        let stored = Stored::new(kind, a);
        for product in IN_ORDER {
            let first = reordered(product, &session, &stored, Reorder::GrayCode);
            first.analyze(&session).unwrap();
            let bytes = first.decisions(&session).unwrap();
            let order = order_in(&bytes, a.rows);
            let plan = reordered(product, &session, &stored, Reorder::GrayCode);
            let refuses = |change: &dyn Fn(&mut Vec<u8>), text: &str| {
                let mut changed = bytes.clone();
                change(&mut changed);
                seal_decisions(&mut changed);
                refused(&plan, &session, &changed, Status::InvalidValue, text);
            };
            let set = |bytes: &mut Vec<u8>, at: usize, number: u32| {
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            };
            let at = |position: usize| order.start + 4 * position;
            let again = u32::from_le_bytes(bytes[at(4)..at(5)].try_into().unwrap());
            refuses(&|bytes| set(bytes, at(9), again), &format!("position 9 has row {again} again"));
            refuses(&|bytes| set(bytes, at(9), 200), "position 9 has row 200 of 200");
            refuses(
                &|bytes| set(bytes, order.start - 4, 201),
                "the order of 201 rows ends before its last row",
            );
            refuses(
                &|bytes| bytes.truncate(bytes.len() - 4),
                "the order of 200 rows ends before its last row",
            );
            // A permutation, of fewer rows than op(A) has.
            let short = |bytes: &mut Vec<u8>| {
                set(bytes, order.start - 4, 3);
                (0..3).for_each(|position| set(bytes, at(position), position as u32));
                bytes.truncate(at(3) + CHECKSUM);
            };
            refuses(&short, "an order of 3 rows, and op(A) has 200");
            // Rows in windows, which are for blocks.
            let window = |bytes: &mut Vec<u8>| bytes[order.start + 3] |= 0x80;
            refuses(&window, "an order of rows that");
        }
    }
}
