//! Tests of tarsiaPlan_setSortedOutput(plan, 0), with which rows of C have the same entries and bits as those
//! of a plan that sorts them, in an order that is the same in every call; and of tarsiaSpMatGetSorted, which
//! tells whether a matrix is known to be sorted.

use client::{arg, check, Plan, Session, Sparse};
use matrices::SplitMix64;
use tarsia::capi::objects::tarsiaSpMatDescr_t;
use tarsia::capi::{plan, spgemm, spmat, spmat_access, tile};
use tarsia::facade::{
    seal_decisions, Algorithm, BackendKind, DataType, Error, Format, IndexBase, IndexType, OpKind, Operation,
    Order, Result, SpgemmAlg, SpmmAlg, SpmvAlg, Status, Types,
};
use testkit::{dense_product, sparse_product, Number as _};

use crate::common::check::all_close;
use crate::common::dense::Dense;
use crate::common::number::{factor, Bf16F32, Numbers, Value, Wide, C32, C64, F16F32, F32, F64};
use crate::common::output::{Output, Target};
use crate::common::pattern::{Pattern, Stored, Style, Widths};
use crate::common::staged::{Staged, Staging as _};
use crate::common::{backends, offers};

const N: Operation = Operation::NonTranspose;
const T: Operation = Operation::Transpose;
const H: Operation = Operation::ConjugateTranspose;
const OPS: [Operation; 3] = [N, T, H];
/// Number of rows of op(A), of columns of op(A), and of columns of op(B).
const SHAPE: (usize, usize, usize) = (260, 170, 4000);

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

fn scalar<C: Numbers>(value: f64) -> C::S {
    C::S::narrow(C::Wide::new(value, 0.0))
}

/// Returns unsorted places of op(A) or op(B), one of them twice: empty rows, rows with the columns of the row
/// before or those shifted by one, scattered rows, and rows whose columns are near each other.
fn places((rows, cols): (usize, usize), seed: u64) -> Vec<(usize, usize)> {
    let mut rng = SplitMix64::new(seed);
    let mut out = Vec::new();
    for row in 0..rows {
        let mut below = |n: usize| rng.below(n as u64) as usize;
        let columns: Vec<usize> = match row * 4 / rows {
            _ if row % 11 == 3 => vec![],
            0 => (0..7).map(|_| below(cols)).collect(),
            1 => (0..5).map(|k| (row / 3 * 17 + k * 29) % cols).collect(),
            2 => (0..5).map(|k| (row + k * 31) % cols).collect(),
            _ => (0..20).map(|_| (row * cols / rows + below(40)) % cols).collect(),
        };
        // Removes repeated random places; one place is repeated on purpose.
        let mut seen = std::collections::BTreeSet::new();
        out.extend(columns.into_iter().filter(|&col| seen.insert(col)).map(|col| (row, col)));
    }
    out.push(out[0]);
    out
}

/// Matrix whose op is a factor, with two sets of values.
struct Operand<V> {
    pattern: Pattern,
    entries: Vec<(usize, usize)>,
    values: Vec<V>,
    new: Vec<V>,
}

impl<V: Value> Operand<V> {
    fn new(style: Style, op: Operation, shape: (usize, usize), seed: u64) -> Self {
        let places: Vec<_> = places(shape, seed);
        let turn = |(row, col): (usize, usize)| if op.transposes() { (col, row) } else { (row, col) };
        let places: Vec<_> = places.into_iter().map(turn).collect();
        let pattern = Pattern::new(style, turn(shape), &places);
        let entries = pattern.entries();
        let (values, new) = (random(entries.len(), seed + 1), random(entries.len(), seed + 2));
        Operand { pattern, entries, values, new }
    }

    fn store(&self, kind: BackendKind) -> Stored<V> {
        self.pattern.store(kind, &self.values)
    }
}

/// Returns an analyzed plan after its symbolic phase.
fn analyzed<'a>(
    session: &Session,
    ops: (Operation, Operation),
    (a, b): (&Sparse<'a>, &Sparse<'a>),
    types: Types,
    settings: impl FnOnce(&Plan<'_>) -> Result<()>,
) -> (Plan<'a>, usize) {
    let plan = Plan::spgemm(session, ops, a, b, types.compute, SpgemmAlg::Default).unwrap();
    settings(&plan).unwrap();
    plan.analyze(session).unwrap();
    let nnz = plan.symbolic(session).unwrap() as usize;
    (plan, nnz)
}

/// Runs the numeric phase, and returns C.
fn product<C: Numbers>(session: &Session, plan: &Plan<'_>, alpha: f64, mut c: Output<C::Y>) -> Output<C::Y> {
    c.compute(session, plan, scalar::<C>(alpha)).unwrap();
    c
}

fn text(field: &[libc::c_char]) -> String {
    field.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

/// Tests each op, base and width, with the pattern kept and not.
fn rows_of<C: Numbers>(kind: BackendKind) {
    let session = Session::new(kind).unwrap();
    let (m, k, n) = SHAPE;
    let mut turned = 0;
    for (case, (op_a, op_b)) in OPS.iter().flat_map(|&a| OPS.map(|b| (a, b))).enumerate() {
        let base = |at: usize| IndexBase::ALL[(case + at) % 2];
        let style = |base, format| Style { base, format, widths: Widths::ALL[case % 3], ..Style::PLAIN };
        let format = [Format::Csr, Format::Csc][case / 5];
        let a = Operand::<C::A>::new(style(base(0), Format::Csr), op_a, (m, k), 3);
        let b = Operand::<C::X>::new(style(base(case / 2), format), op_b, (k, n), 13);
        let (a_stored, b_stored) = (a.store(kind), b.store(kind));
        let (a_open, b_open) = (a_stored.open().unwrap(), b_stored.open().unwrap());
        let target =
            Target { format: Format::Csr, widths: Widths::ALL[(case + 1) % 3], base: base(case / 3) };
        let keep = case % 2 == 1;
        let of = |is_sorted: bool| {
            analyzed(&session, (op_a, op_b), (&a_open, &b_open), C::TYPES, |plan| {
                plan.set_value_updates(keep)?;
                plan.set_sorted_output(is_sorted)
            })
        };
        let ((ordered, nnz), (free, nnz_free)) = (of(true), of(false));
        let what = format!("{} {op_a:?} {op_b:?} {format:?} kept {keep}", C::TYPES.describe());
        assert_eq!(nnz, nnz_free, "{what}");
        let info = |plan: &Plan<'_>| plan.info().unwrap();
        assert_eq!([info(&ordered).sortedOutput, info(&free).sortedOutput], [1, 0]);
        assert_eq!(text(&info(&free).algorithmName), "hash");
        let reason = text(&info(&free).reason);
        assert!(kind == BackendKind::Reference || reason.contains("setSortedOutput"), "{reason}");

        let room = Output::<C::Y>::new(target, (m, n), nnz);
        let expected = product::<C>(&session, &ordered, 1.5, room.clone());
        assert_eq!(expected.in_order().1, 0, "{what}");
        let found = product::<C>(&session, &free, 1.5, room.clone());
        let (in_order, rows) = found.in_order();
        in_order.same_bits(&expected).unwrap_or_else(|error| panic!("{what}: {error}"));
        turned += rows;
        // If both factors are stored by columns, the host computes columns of C, and rows result from a
        // transposition.
        let by_columns = reason.contains("the columns of C");
        if kind == BackendKind::Host {
            assert_eq!(rows > 0, !by_columns, "{what}: {rows} rows are not sorted");
        }
        let again = product::<C>(&session, &free, 1.5, room.clone());
        again.same_bits(&found).unwrap_or_else(|error| panic!("{what}: once more: {error}"));
        // With alpha = 0 no values are read, and C has its pattern.
        let zeros = product::<C>(&session, &free, 0.0, room);
        assert!(zeros.same_pattern(&found), "{what}: another order for alpha = 0");
    }
    assert!(kind != BackendKind::Host || turned > 1000, "{turned} rows are not sorted");
}

#[test]
fn rows_are_the_sorted_ones_in_another_order() {
    for kind in backends() {
        rows_of::<F64>(kind);
        rows_of::<F32>(kind);
        rows_of::<F16F32>(kind);
        rows_of::<Bf16F32>(kind);
        rows_of::<C32>(kind);
        rows_of::<C64>(kind);
    }
}

/// Factors A and B in CSR and fp64.
struct Factors {
    kind: BackendKind,
    session: Session,
    a: Operand<f64>,
    b: Operand<f64>,
}

impl Factors {
    fn new(kind: BackendKind) -> Self {
        let (m, k, n) = SHAPE;
        let a = Operand::new(Style::PLAIN, N, (m, k), 3);
        let b = Operand::new(Style::PLAIN, N, (k, n), 13);
        Factors { kind, session: Session::new(kind).unwrap(), a, b }
    }

    fn stored(&self) -> (Stored<f64>, Stored<f64>) {
        (self.a.store(self.kind), self.b.store(self.kind))
    }

    fn room(&self, format: Format, nnz: usize) -> Output<f64> {
        let target = Target { format, widths: Widths::Narrow, base: IndexBase::Zero };
        Output::new(target, (SHAPE.0, SHAPE.2), nnz)
    }

    /// Computes C by a plan that does not sort.
    fn unsorted(&self) -> Output<f64> {
        let (a, b) = self.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        let (plan, nnz) =
            analyzed(&self.session, (N, N), (&a, &b), F64::TYPES, |plan| plan.set_sorted_output(false));
        product::<F64>(&self.session, &plan, 1.0, self.room(Format::Csr, nnz))
    }
}

/// The order is the same in each call, plan and handle, with any alpha and number of threads, and with the
/// pattern kept and not.
#[test]
fn the_order_is_the_same_in_twenty_runs() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let (a, b) = factors.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        let expected = factors.unsorted();
        for run in 0..20 {
            let session = Session::new(kind).unwrap();
            let (plan, nnz) = analyzed(&session, (N, N), (&a, &b), F64::TYPES, |plan| {
                plan.set_value_updates(run % 2 == 1)?;
                plan.set_sorted_output(false)
            });
            let room = factors.room(Format::Csr, nnz);
            if run % 3 == 0 {
                let zeros = product::<F64>(&session, &plan, 0.0, room.clone());
                assert!(zeros.same_pattern(&expected), "{kind:?}, run {run}, alpha = 0");
            }
            for _ in 0..2 {
                let found = product::<F64>(&session, &plan, 1.0, room.clone());
                found.same_bits(&expected).unwrap_or_else(|error| panic!("{kind:?}, run {run}: {error}"));
            }
        }
    }
}

#[test]
fn a_kept_pattern_keeps_its_order() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let (session, new) = (&factors.session, Staged::new(kind, &factors.a.new));
        let (a, b) = factors.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        for in_place in [false, true] {
            let of = |is_sorted: bool| {
                analyzed(session, (N, N), (&a, &b), F64::TYPES, |plan| {
                    plan.set_value_updates(true)?;
                    plan.set_values_in_place(in_place)?;
                    plan.set_sorted_output(is_sorted)
                })
            };
            let ((ordered, nnz), (free, _)) = (of(true), of(false));
            let room = factors.room(Format::Csr, nnz);
            let first = product::<F64>(session, &free, 1.0, room.clone());
            first.same_bits(&factors.unsorted()).unwrap();
            for plan in [&ordered, &free] {
                plan.update_values(session, new.view()).unwrap();
            }
            let expected = product::<F64>(session, &ordered, 1.0, room.clone());
            for _ in 0..3 {
                let found = product::<F64>(session, &free, 1.0, room.clone());
                assert!(found.same_pattern(&first), "{kind:?}: the order has changed");
                assert!(found.values != first.values);
                found.in_order().0.same_bits(&expected).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            }
        }
    }
}

/// Products accept an unsorted C as a factor: as A and as B of SpGEMM by each algorithm, in SpMV and in SpMM.
#[test]
fn products_take_a_matrix_without_order() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let session = &factors.session;
        let c = factors.unsorted();
        assert!(kind != BackendKind::Host || c.in_order().1 > 50);
        let (m, n) = c.shape;
        let pattern = Pattern {
            style: Style::PLAIN,
            rows: m,
            cols: n,
            outer: c.offsets.clone(),
            inner: c.indices.clone(),
        };
        let entries = pattern.entries();
        let stored = pattern.store(kind, &c.values);
        let open = stored.open().unwrap();
        let types = F64::TYPES;

        let left = Operand::<f64>::new(Style::PLAIN, N, (90, m), 23);
        let right = Operand::<f64>::new(Style::PLAIN, N, (n, 60), 33);
        let (left_stored, right_stored) = (left.store(kind), right.store(kind));
        let (left_open, right_open) = (left_stored.open().unwrap(), right_stored.open().unwrap());
        let of_c = factor(&entries, &c.values, N);
        let as_a = sparse_product(&of_c, &factor(&right.entries, &right.values, N));
        let as_b = sparse_product(&factor(&left.entries, &left.values, N), &of_c);
        for &alg in SpgemmAlg::ALL {
            for is_sorted in [true, false] {
                for (a, b, expected, shape) in
                    [(&open, &right_open, &as_a, (m, 60)), (&left_open, &open, &as_b, (90, n))]
                {
                    let plan = Plan::spgemm(session, (N, N), a, b, types.compute, alg).unwrap();
                    plan.set_sorted_output(is_sorted || alg == SpgemmAlg::Tile).unwrap();
                    plan.analyze(session).unwrap();
                    let nnz = plan.symbolic(session).unwrap() as usize;
                    let target = Target { format: Format::Csr, widths: Widths::Mixed, base: IndexBase::One };
                    let found = product::<F64>(session, &plan, 1.0, Output::new(target, shape, nnz));
                    let verified = found.in_order().0.verify::<F64>(kind, expected);
                    verified.unwrap_or_else(|error| panic!("{kind:?} {alg:?} sorted {is_sorted}: {error}"));
                }
            }
        }

        for op in [N, T] {
            let (rows, cols) = if op.transposes() { (n, m) } else { (m, n) };
            let of_c = factor(&entries, &c.values, op);
            let x: Vec<f64> = random(cols, 9);
            let expected = dense_product(&of_c, (rows, 1), |at, _| x[at]);
            for &alg in SpmvAlg::ALL {
                let made = Plan::spmv(session, op, &open, (types.x, types.y), types.compute, alg);
                let plan = match made {
                    Ok(plan) => plan,
                    Err(_) => continue,
                };
                plan.analyze(session).unwrap();
                let mut y = vec![f64::NAN; rows];
                plan.spmv(session, 1.0, &x, 0.0, &mut y).unwrap();
                all_close::<F64>(kind, y, &expected)
                    .unwrap_or_else(|error| panic!("{kind:?} SpMV {alg:?} {op:?}: {error}"));
            }
            let columns = 9;
            let (mut b, mut rng) = (Dense::<f64>::new((cols, columns), Order::Row, 0), SplitMix64::new(4));
            b.fill(|_, _| f64::random(&mut rng));
            let expected = dense_product(&of_c, (rows, columns), |i, j| b.get(i, j));
            for &alg in SpmmAlg::ALL {
                let (orders, values) = ((Order::Row, Order::Row), (types.x, types.y));
                let made =
                    Plan::spmm(session, (op, N), &open, orders, columns as i64, values, types.compute, alg);
                let Ok(plan) = made else { continue };
                plan.analyze(session).unwrap();
                let mut y = Dense::<f64>::new((rows, columns), Order::Row, 0);
                plan.spmm(session, 1.0, &b, 0.0, &mut y).unwrap();
                let found = (0..rows * columns).map(|at| y.get(at / columns, at % columns));
                all_close::<F64>(kind, found, &expected)
                    .unwrap_or_else(|error| panic!("{kind:?} SpMM {alg:?} {op:?}: {error}"));
            }
        }
    }
}

/// Products without rows, columns or entries.
#[test]
fn empty_products() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        for (m, k, n) in [(0, 0, 0), (0, 4, 5), (4, 0, 5), (4, 5, 0), (3, 4, 5)] {
            let [a, b] = [(m, k), (k, n)].map(|shape| Pattern::new(Style::PLAIN, shape, &[]));
            let (a, b) = (a.store::<Vec<f64>>(kind, &vec![]), b.store::<Vec<f64>>(kind, &vec![]));
            let (a, b) = (a.open().unwrap(), b.open().unwrap());
            let (plan, nnz) =
                analyzed(&session, (N, N), (&a, &b), F64::TYPES, |plan| plan.set_sorted_output(false));
            assert_eq!(nnz, 0);
            let target = Target { format: Format::Csr, widths: Widths::Narrow, base: IndexBase::One };
            let c = product::<F64>(&session, &plan, 1.0, Output::new(target, (m, n), 0));
            assert!(c.offsets.to_vec().iter().all(|&offset| offset == 1), "{m} {k} {n}");
        }
    }
}

fn refused(result: Result<()>, status: Status, words: &[&str]) {
    let Error { status: found, message } = result.unwrap_err();
    assert_eq!(found, status, "{message}");
    words.iter().for_each(|word| assert!(message.contains(word), "`{message}` says nothing of {word}"));
}

/// Wrong calls are refused with the reason, and the plan can still be used.
#[test]
fn what_is_not_for_such_plans() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let session = &factors.session;
        let (a, b) = factors.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        let types = F64::TYPES;
        let compute = types.compute;

        let spmv = Plan::spmv(session, N, &a, (types.x, types.y), compute, SpmvAlg::Default).unwrap();
        let (orders, values) = ((Order::Row, Order::Row), (types.x, types.y));
        let spmm = Plan::spmm(session, (N, N), &a, orders, 4, values, compute, SpmmAlg::Default).unwrap();
        for other in [&spmv, &spmm] {
            for on in [false, true] {
                refused(other.set_sorted_output(on), Status::InvalidValue, &["plan: ", "SpGEMM"]);
            }
        }

        let of = |alg| Plan::spgemm(session, (N, N), &a, &b, compute, alg).unwrap();
        let by_default = of(SpgemmAlg::Default);
        for wrong in [-1, 2, i32::MAX] {
            let result = check(plan::tarsiaPlan_setSortedOutput(by_default.raw(), wrong));
            refused(result, Status::InvalidValue, &["sortedOutput: "]);
        }
        by_default.set_sorted_output(false).unwrap();
        by_default.analyze(session).unwrap();
        for on in [false, true] {
            refused(by_default.set_sorted_output(on), Status::InvalidState, &["after tarsiaPlan_analyze"]);
        }
        let nnz = by_default.symbolic(session).unwrap() as usize;
        let mut by_columns = factors.room(Format::Csc, nnz);
        let error = by_columns.compute(session, &by_default, 1.0).unwrap_err();
        let error = error.downcast::<Error>().unwrap();
        refused(Err(*error), Status::NotSupported, &["C: ", "CSC", "setSortedOutput"]);
        // The plan is unchanged.
        product::<F64>(session, &by_default, 1.0, factors.room(Format::Csr, nnz));

        if !offers(OpKind::Spgemm, Algorithm::from_spgemm(SpgemmAlg::Tile), kind) {
            continue;
        }
        let shape = (SHAPE.0 as i64, SHAPE.2 as i64);
        let tiles = Sparse::tile(session, shape, DataType::R64F).unwrap();
        let into_tiles = by_default.numeric_tile(session, 1.0, &tiles);
        refused(into_tiles, Status::NotSupported, &["C: ", "tiles", "setSortedOutput"]);
        let words = ["algorithm tile", "setSortedOutput"];
        let by_name = of(SpgemmAlg::Tile);
        by_name.set_sorted_output(false).unwrap();
        refused(by_name.analyze(session), Status::NotSupported, &words);
        by_name.set_sorted_output(true).unwrap();
        by_name.analyze(session).unwrap();

        let of_a = Sparse::tile(session, (SHAPE.0 as i64, SHAPE.1 as i64), DataType::R64F).unwrap();
        of_a.take(session, &a).unwrap();
        let of_tiles = Plan::spgemm(session, (N, N), &of_a, &b, compute, SpgemmAlg::Default);
        // A product of A in tiles and B in arrays needs `tile`, too.
        let of_tiles = of_tiles.unwrap();
        of_tiles.set_sorted_output(false).unwrap();
        refused(of_tiles.analyze(session), Status::NotSupported, &words);
        of_tiles.set_sorted_output(true).unwrap();
        of_tiles.analyze(session).unwrap();
    }
}

/// Decisions are accepted only by plans with the same setting, and changed ones cannot make such a plan use
/// `tile`.
#[test]
fn decisions_know_the_order() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let session = &factors.session;
        let (a, b) = factors.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        let of = || Plan::spgemm(session, (N, N), &a, &b, F64::TYPES.compute, SpgemmAlg::Default).unwrap();
        let first = of();
        first.set_sorted_output(false).unwrap();
        first.analyze(session).unwrap();
        let bytes = first.decisions(session).unwrap();
        let other = of();
        let text = "sortedOutput is 0 there and 1 in the plan";
        refused(other.set_decisions(session, &bytes), Status::InvalidValue, &[text]);
        other.set_sorted_output(false).unwrap();
        other.set_decisions(session, &bytes).unwrap();
        other.set_sorted_output(true).unwrap();
        refused(other.analyze(session), Status::InvalidValue, &[text]);
        other.set_sorted_output(false).unwrap();
        other.analyze(session).unwrap();
        let nnz = other.symbolic(session).unwrap() as usize;
        let found = product::<F64>(session, &other, 1.0, factors.room(Format::Csr, nnz));
        found.same_bits(&factors.unsorted()).unwrap();

        // The number of the algorithm is one of the bytes.
        let (hash, tile) = (SpgemmAlg::Hash.code() as u8, SpgemmAlg::Tile.code() as u8);
        let mut refusals = 0;
        for at in (8..bytes.len() - 8).filter(|&at| bytes[at] == hash) {
            let mut changed = bytes.clone();
            changed[at] = tile;
            seal_decisions(&mut changed);
            let plan = of();
            plan.set_sorted_output(false).unwrap();
            if plan.set_decisions(session, &changed).is_err() {
                continue;
            }
            match plan.analyze(session) {
                Ok(()) => {
                    let info = plan.info().unwrap();
                    assert_eq!(info.algorithm, i32::from(hash), "{kind:?}, byte {at}");
                }
                Err(error) => {
                    refused(Err(error), Status::NotSupported, &["algorithm tile", "setSortedOutput"]);
                    refusals += 1;
                }
            }
        }
        assert_eq!(refusals, 1, "{kind:?}");
    }
}

/// Writable CSR descriptor for C.
struct Target64<'a> {
    raw: tarsiaSpMatDescr_t,
    arrays: (&'a mut Staged<i32>, &'a mut Staged<i32>, &'a mut Staged<f64>),
}

impl<'a> Target64<'a> {
    fn new(
        (rows, cols): (usize, usize),
        nnz: usize,
        (offsets, indices, values): (&'a mut Staged<i32>, &'a mut Staged<i32>, &'a mut Staged<f64>),
    ) -> Self {
        let mut raw = std::ptr::null_mut();
        let int = arg(IndexType::I32);
        // SAFETY: the arrays have the lengths that the descriptor says and outlive it.
        check(unsafe {
            spmat::tarsiaCreateCsr(
                &mut raw,
                rows as i64,
                cols as i64,
                nnz as i64,
                offsets.view_mut().as_mut_ptr().cast(),
                indices.view_mut().as_mut_ptr().cast(),
                values.view_mut().as_mut_ptr().cast(),
                int,
                int,
                arg(IndexBase::Zero),
                arg(DataType::R64F),
            )
        })
        .unwrap();
        Target64 { raw, arrays: (offsets, indices, values) }
    }

    fn is_sorted(&self) -> i32 {
        let mut sorted = -1;
        // SAFETY: the answer is valid for a write.
        check(unsafe { spmat_access::tarsiaSpMatGetSorted(self.raw, &mut sorted) }).unwrap();
        sorted
    }

    fn numeric(&self, session: &Session, plan: &Plan<'_>) -> Result<()> {
        let one = 1.0_f64;
        // SAFETY: alpha has the compute type; C's arrays live.
        check(unsafe {
            spgemm::tarsiaSpGEMM_numeric(session.raw(), plan.raw(), (&raw const one).cast(), self.raw)
        })
    }

    fn check(&self, session: &Session) -> (Result<()>, i32) {
        let mut sorted = -1;
        // SAFETY: the answer is valid for a write, the arrays live.
        let status =
            unsafe { spmat::tarsiaCheckSpMat(session.raw(), self.raw, &mut sorted, std::ptr::null_mut()) };
        (check(status), sorted)
    }

    fn set_pointers(&mut self) {
        let (offsets, indices, values) = &mut self.arrays;
        let (offsets, indices) = (offsets.view_mut().as_mut_ptr(), indices.view_mut().as_mut_ptr());
        let values = values.view_mut().as_mut_ptr();
        // SAFETY: they are the arrays that the descriptor has.
        check(unsafe {
            spmat_access::tarsiaCsrSetPointers(self.raw, offsets.cast(), indices.cast(), values.cast())
        })
        .unwrap();
    }

    fn set_values(&mut self) {
        let values = self.arrays.2.view_mut().as_mut_ptr();
        // SAFETY: as above.
        check(unsafe { spmat_access::tarsiaSpMatSetValues(self.raw, values.cast()) }).unwrap();
    }
}

impl Drop for Target64<'_> {
    fn drop(&mut self) {
        spmat::tarsiaDestroySpMat(self.raw);
    }
}

#[test]
fn descriptors_know_what_was_found_or_written() {
    for kind in backends() {
        let factors = Factors::new(kind);
        let session = &factors.session;
        let (a, b) = factors.stored();
        let (a, b) = (a.open().unwrap(), b.open().unwrap());
        let of = |is_sorted: bool| {
            analyzed(session, (N, N), (&a, &b), F64::TYPES, |plan| plan.set_sorted_output(is_sorted))
        };
        let ((ordered, nnz), (free, _)) = (of(true), of(false));
        // Analysis does not change descriptors, and a check records its result.
        assert!(!a.is_sorted().unwrap() && !b.is_sorted().unwrap());
        let (found, _) = session.check_sparse(&a).unwrap();
        assert_eq!((found, a.is_sorted().unwrap()), (false, false));

        let (m, _, n) = SHAPE;
        let room = factors.room(Format::Csr, nnz);
        let filled = |len: usize| vec![0_i32; len];
        let mut offsets = Staged::new(kind, &filled(m + 1));
        let mut indices = Staged::new(kind, &filled(nnz));
        let mut values = Staged::new(kind, &room.values);
        let mut c = Target64::new((m, n), nnz, (&mut offsets, &mut indices, &mut values));
        assert_eq!(c.is_sorted(), 0);
        c.numeric(session, &ordered).unwrap();
        assert_eq!(c.is_sorted(), 1);
        c.set_values();
        assert_eq!(c.is_sorted(), 1, "other values have the same pattern");
        c.set_pointers();
        assert_eq!(c.is_sorted(), 0, "of new arrays nothing is known");
        assert_eq!((c.check(session).1, c.is_sorted()), (1, 1));
        c.numeric(session, &free).unwrap();
        assert_eq!(c.is_sorted(), 0, "not known, whatever the backend has written");
        let (result, found) = c.check(session);
        result.unwrap();
        assert_eq!(c.is_sorted(), found);
        assert!(kind != BackendKind::Host || found == 0, "the host leaves rows as they are found");
        c.numeric(session, &ordered).unwrap();
        assert_eq!(c.is_sorted(), 1);
        // A call that fails may have written a part of C.
        let early = Plan::spgemm(session, (N, N), &a, &b, F64::TYPES.compute, SpgemmAlg::Default).unwrap();
        refused(c.numeric(session, &early), Status::InvalidState, &["plan: "]);
        assert_eq!(c.is_sorted(), 0);
        c.numeric(session, &ordered).unwrap();
        c.arrays.0.spoil(session);
        assert!(c.check(session).0.is_err());
        assert_eq!(c.is_sorted(), 0, "a pattern that is wrong has no order");

        if !offers(OpKind::Spgemm, Algorithm::from_spgemm(SpgemmAlg::Tile), kind) {
            continue;
        }
        // Tiles are always sorted, and so are matrices converted from them.
        let tiles = Sparse::tile(session, (m as i64, SHAPE.1 as i64), DataType::R64F).unwrap();
        assert!(tiles.is_sorted().unwrap());
        tiles.take(session, &a).unwrap();
        let nnz = tiles.tile_info().unwrap().nnz as usize;
        let mut offsets = Staged::new(kind, &filled(m + 1));
        let mut indices = Staged::new(kind, &filled(nnz));
        let mut values = Staged::new(kind, &vec![0.0; nnz]);
        let back = Target64::new((m, SHAPE.1), nnz, (&mut offsets, &mut indices, &mut values));
        assert_eq!(back.is_sorted(), 0);
        // SAFETY: the descriptors and their arrays live.
        check(unsafe { tile::tarsiaTileToSparse(session.raw(), tiles.raw(), back.raw) }).unwrap();
        assert_eq!(back.is_sorted(), 1);
    }
}
