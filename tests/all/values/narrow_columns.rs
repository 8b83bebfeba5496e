//! Tests of SpMV `csr` with values in place, whose plans may store 16-bit columns, which depend only on the
//! pattern: products have the bits of those that read columns in place, with the present values.

use super::*;
use crate::common::check::all_close;
use crate::common::number::{
    bits, factor, Bf16, Bf16F32, Numbers, Value, Wide, C32, C64, F16, F16F32, F32, F32F64, F64,
};
use crate::common::pattern::Widths;
use testkit::{dense_product, Number as _};

/// Structure of the rows and columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Rows of one length, no column beyond 16 bits.
    EvenFew,
    /// Rows of one length, columns beyond 16 bits, those of a row near each other.
    EvenNear,
    /// Rows as in `EvenNear`, except that the last one has a column far from its others.
    EvenFar,
    /// Empty rows and a long one, no column beyond 16 bits.
    SkewedFew,
    /// Empty rows and a long one, columns beyond 16 bits, those of a row near each other.
    SkewedNear,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::EvenFew, Kind::EvenNear, Kind::EvenFar, Kind::SkewedFew, Kind::SkewedNear];

    /// Returns the plan's words for its columns on a device, where 16-bit columns pay.
    fn says(self) -> &'static str {
        match self {
            Kind::EvenFew | Kind::SkewedFew => "in 16 bits, counted from 0",
            Kind::EvenNear => "in 16 bits, counted from the least of each row",
            Kind::EvenFar => "columns where they are",
            Kind::SkewedNear => "in 16 bits, counted from the least of each 32 entries",
        }
    }

    /// Returns the pattern; columns of a row descend, so that no row is sorted.
    fn pattern(self, rows: usize, widths: Widths, base: IndexBase) -> Pattern {
        let few = matches!(self, Kind::EvenFew | Kind::SkewedFew);
        let cols = if few { 1 << 16 } else { 300_000 };
        let is_even = matches!(self, Kind::EvenFew | Kind::EvenNear | Kind::EvenFar);
        let length = |row: usize| match row {
            _ if is_even => 24,
            _ if row == rows / 2 => 20_000,
            _ if row + 1 == rows => 0,
            _ => row % 3 * 24,
        };
        let column = |row: usize, entry: usize| match self {
            _ if few => cols - 1 - (row * 7 + entry * 2731) % cols,
            Kind::EvenFar if (row, entry) == (rows - 1, 0) => cols - 1,
            _ => row * 2 + entry * 3,
        };
        let places: Vec<_> = (0..rows)
            .flat_map(|row| (0..length(row)).rev().map(move |entry| (row, column(row, entry))))
            .collect();
        Pattern::new(Style { widths, base, ..Style::PLAIN }, (rows, cols), &places)
    }
}

/// Returns the number of rows: enough for 16-bit columns on a device, and few elsewhere, where there are
/// none.
fn rows_on(kind: BackendKind) -> usize {
    if kind == BackendKind::Cuda {
        80_000
    } else {
        2_000
    }
}

fn says(plan: &Plan<'_>) -> String {
    let reason = plan.info().unwrap().reason;
    reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

fn in_place<'a, C: Numbers>(session: &Session, a: &'a Stored<C::A>, effort: Effort) -> Plan<'a> {
    let (types, a) = (C::TYPES, a.open().unwrap());
    let plan = Plan::spmv(session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    plan.set_effort(effort).unwrap();
    plan.set_values_in_place(true).unwrap();
    plan
}

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

fn new_values<C: Numbers>(kind: BackendKind, shape: Kind, widths: Widths, base: IndexBase) {
    let what = format!("{kind:?} {} {shape:?} {widths:?} {base:?}", C::TYPES.describe());
    let (rows, session) = (rows_on(kind), Session::new(kind).unwrap());
    let pattern = shape.pattern(rows, widths, base);
    let entries = pattern.entries();
    let nan = vec![C::A::nan(); entries.len()];
    let a = pattern.store(kind, &nan);
    let efforts = [Effort::Quick, Effort::Default, Effort::Tuned];
    let plans = efforts.map(|effort| in_place::<C>(&session, &a, effort));
    plans.iter().for_each(|plan| plan.analyze(&session).unwrap());
    // Decisions contain only the algorithm; a plan that takes them makes 16-bit columns, too.
    let decided = in_place::<C>(&session, &a, Effort::Default);
    decided.set_decisions(&session, &plans[1].decisions(&session).unwrap()).unwrap();
    decided.analyze(&session).unwrap();
    let once = in_place::<C>(&session, &a, Effort::Default);
    once.set_expected_executes(1).unwrap();
    once.analyze(&session).unwrap();
    let [quick, default, tuned] = plans;
    for plan in [&quick, &once] {
        assert!(!says(plan).contains("16 bits"), "{what}: {}", says(plan));
    }
    // Other types gain less, on some devices nothing.
    if kind == BackendKind::Cuda && C::TYPES == F64::TYPES {
        for plan in [&default, &tuned, &decided] {
            assert!(says(plan).contains(shape.says()), "{what}: {}", says(plan));
            let (bytes, without) = (plan.info().unwrap().planBytes, quick.info().unwrap().planBytes);
            let least = if shape == Kind::EvenFar { 0 } else { 2 * entries.len() };
            assert!(bytes >= without + least, "{what}: {bytes} and {without} bytes");
        }
    } else if kind != BackendKind::Cuda {
        assert!(!says(&default).contains("16 bits"), "{what}");
    }
    let (zero, one) = (C::S::narrow(C::Wide::new(0.0, 0.0)), C::S::narrow(C::Wide::new(1.0, 0.0)));
    let x: Vec<C::X> = random(pattern.cols, 3);
    let device_x = upload(kind, &x);
    let product = |plan: &Plan<'_>| {
        let mut y = upload(kind, &vec![C::Y::nan(); rows]);
        plan.run_spmv(&session, one, &device_x, zero, &mut y).unwrap();
        session.synchronize().unwrap();
        y.download().unwrap()
    };
    for now in 0..3 {
        let values: Vec<C::A> = random(entries.len(), 10 + now);
        overwrite(&session, a.values(), &values);
        let expected = product(&quick);
        let sums = dense_product(&factor(&entries, &values, N), (rows, 1), |k, _| x[k].widen());
        all_close::<C>(kind, expected.iter().copied(), &sums)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        for plan in [&default, &tuned, &decided, &once] {
            assert!(bits(&product(plan)) == bits(&expected), "{what}: other bits, {}", says(plan));
        }
    }
    // The plan is moved to another array.
    let values: Vec<C::A> = random(entries.len(), 20);
    let other = Staged::new(kind, &values);
    for plan in [&quick, &default] {
        plan.update_values(&session, other.view()).unwrap();
    }
    assert!(bits(&product(&quick)) == bits(&product(&default)), "{what}: other bits of another array");
}

#[test]
fn products_have_the_values_that_are_there_and_the_same_bits() {
    for kind in backends() {
        for shape in Kind::ALL {
            for widths in Widths::ALL {
                for base in [IndexBase::Zero, IndexBase::One] {
                    new_values::<F64>(kind, shape, widths, base);
                }
            }
        }
        for (shape, base) in [(Kind::EvenNear, IndexBase::One), (Kind::SkewedFew, IndexBase::Zero)] {
            macro_rules! each {
                ($($types:ident)*) => { $( new_values::<$types>(kind, shape, Widths::Mixed, base); )* };
            }
            each! { F32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64 }
        }
    }
}
