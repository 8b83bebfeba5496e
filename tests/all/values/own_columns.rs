//! Tests of SpMM `row` on the host, whose plans store columns of their own where products would have to check the user's:
//! which plans do, what they say of it, and that products have the bits of those that read the user's columns.

use super::*;
use crate::common::number::bits;
use crate::common::pattern::Widths;

const ROWS: usize = 2_000;
/// Entries of each row.
const LENGTH: usize = 24;
const COLUMNS_OF_C: usize = 8;

fn pattern(cols: usize, widths: Widths, base: IndexBase) -> Pattern {
    let places: Vec<_> = (0..ROWS)
        .flat_map(|row| (0..LENGTH).map(move |entry| (row, (row * 31 + entry * 2731) % cols)))
        .collect();
    Pattern::new(Style { widths, base, ..Style::PLAIN }, (ROWS, cols), &places)
}

fn says(plan: &Plan<'_>) -> String {
    let reason = plan.info().unwrap().reason;
    reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

/// Creates a plan for so many columns of C, which `set` changes before its analysis.
fn plan<'a>(
    session: &Session,
    a: &'a Stored<f64>,
    n: usize,
    set: impl Fn(&Plan<'a>) -> Result<()>,
) -> Plan<'a> {
    let (a, orders) = (a.open().unwrap(), (Order::Row, Order::Row));
    let plan = Plan::spmm(session, (N, N), &a, orders, n as i64, (F64, F64), R64, SpmmAlg::Default).unwrap();
    set(&plan).unwrap();
    plan.analyze(session).unwrap();
    plan
}

/// Checks all kinds of plans for a matrix; with `bits_of_own` those of DEFAULT keep columns of so many bits.
fn check_plans(cols: usize, widths: Widths, base: IndexBase, bits_of_own: Option<u32>) {
    let kind = BackendKind::Host;
    let what = format!("{cols} columns, {widths:?} {base:?}");
    let session = Session::new(kind).unwrap();
    let pattern = pattern(cols, widths, base);
    let mut rng = SplitMix64::new(7);
    let mut random = |count: usize| -> Vec<f64> { (0..count).map(|_| rng.unit() - 0.5).collect() };
    let values = random(pattern.entries().len());
    let a = pattern.store(kind, &values);
    let default = plan(&session, &a, COLUMNS_OF_C, |_| Ok(()));
    let decisions = default.decisions(&session).unwrap();
    // TUNED may find another layout faster.
    let tuned = plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_effort(Effort::Tuned));
    if tuned.info().unwrap().inPlace == 1 && bits_of_own.is_some() {
        assert!(says(&tuned).contains("columns of its own"), "{what}: {}", says(&tuned));
    }
    let own = [
        plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_values_in_place(true)),
        plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_expected_executes(1_000)),
        plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_decisions(&session, &decisions)),
        default,
    ];
    let users = [
        plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_effort(Effort::Quick)),
        plan(&session, &a, COLUMNS_OF_C, |plan| plan.set_expected_executes(1)),
    ];
    let without = users[0].info().unwrap().planBytes;
    for plan in &users {
        assert!(!says(plan).contains("columns of its own"), "{what}: {}", says(plan));
        assert_eq!(plan.info().unwrap().planBytes, without, "{what}");
    }
    for plan in &own {
        let (info, said) = (plan.info().unwrap(), says(plan));
        let bytes = info.planBytes;
        match bits_of_own {
            Some(bits) => {
                assert_eq!(info.inPlace, 1, "{what}: {said}");
                assert!(said.contains(&format!("columns of its own in {bits} bits")), "{what}: {said}");
                assert!(bytes >= without + bits as usize / 8 * values.len(), "{what}: {bytes}");
            }
            None => assert!(!said.contains("columns of its own"), "{what}: {said}"),
        }
    }
    // With rows of C of more than 256 bytes the check takes little of a product.
    assert!(!says(&plan(&session, &a, 33, |_| Ok(()))).contains("columns of its own"), "{what}");
    let [b_shape, c_shape] = [cols, ROWS].map(|rows| {
        let cols = COLUMNS_OF_C as i64;
        DenseLayout { rows: rows as i64, cols, ld: cols, order: Order::Row }
    });
    let b = upload(kind, &random(cols * COLUMNS_OF_C));
    let product = |plan: &Plan<'_>, beta: f64| {
        let mut c = upload(kind, &vec![0.25; ROWS * COLUMNS_OF_C]);
        plan.run_spmm(&session, 1.5, (&b, b_shape), beta, (&mut c, c_shape)).unwrap();
        session.synchronize().unwrap();
        c.download().unwrap()
    };
    let new_values = random(values.len());
    let other = Staged::new(kind, &new_values);
    // Sorted copies of the matrix add in another order.
    let own = own.iter().filter(|plan| plan.info().unwrap().inPlace == 1).collect::<Vec<_>>();
    let users = users.iter().collect::<Vec<_>>();
    for beta in [0.0, 2.0] {
        let expected = product(users[0], beta);
        assert!(expected.iter().any(|&c| c != 0.0));
        for plan in own.iter().chain(&users) {
            assert!(bits(&product(plan, beta)) == bits(&expected), "{what}: other bits, {}", says(plan));
        }
    }
    // Columns stay with new values in another array.
    own.iter().chain(&users).for_each(|plan| plan.update_values(&session, other.view()).unwrap());
    let expected = product(users[0], 0.0);
    for plan in &own {
        assert!(bits(&product(plan, 0.0)) == bits(&expected), "{what}: other bits of new values");
    }
}

#[test]
fn plans_of_the_host_keep_columns_and_products_have_the_same_bits() {
    for base in [IndexBase::Zero, IndexBase::One] {
        check_plans(1 << 16, Widths::Narrow, base, Some(16));
        check_plans(70_000, Widths::Narrow, base, Some(32));
        check_plans(70_000, Widths::Wide, base, None);
    }
    check_plans(1 << 16, Widths::Mixed, IndexBase::One, None);
}
