//! Tests of values of a matrix that change after analysis, with one rule for every algorithm: after changing
//! them a program calls tarsiaPlan_updateValues, and until then a product may use the old or the new ones.
//! Plans with tarsiaPlan_setValuesInPlace always use the new ones, and tarsiaSetChecks finds a missing call.

mod checks;
mod descriptor;
mod executes;
mod factors;
mod in_place;
mod narrow_columns;
mod own_columns;

use std::collections::HashMap;

use bytemuck::Pod;
use client::{check, DenseLayout, Plan, Session, Sparse, View};
use matrices::SplitMix64;
use tarsia::capi::memory::tarsiaMemcpyToDevice;
use tarsia::facade::{
    Algorithm, BackendKind, ComputeType, DataType, Effort, Error, Format, IndexBase, OpKind, Operation,
    Order, Result, Row, SpgemmAlg, SpmmAlg, SpmvAlg, Status, TABLE,
};

use crate::common::backends;
use crate::common::pattern::{Pattern, Stored, Style};
use crate::common::staged::{upload, Staged};

const F64: DataType = DataType::R64F;
const R64: ComputeType = ComputeType::R64F;
const N: Operation = Operation::NonTranspose;
/// Number of rows and columns, which are whole blocks.
const SIZE: usize = 120;
/// Number of entries, more than those up to which a device chooses SpMM's `row` without gathering statistics.
const ENTRIES: usize = 1500;
/// Number of columns of B and C of SpMM.
const COLUMNS: usize = 5;
/// Number of rows and columns of a block of BSR.
const BLOCK: (usize, usize) = (2, 3);

/// Overwrites memory that a plan borrows, in the order of the handle's stream.
fn overwrite<V: Pod>(session: &Session, place: View<'_, V>, values: &[V]) {
    assert_eq!(place.len(), values.len());
    let (dst, src) = (place.as_ptr().cast_mut().cast(), values.as_ptr().cast());
    // SAFETY: the backend's memory has that many bytes, and no call that reads it is under way.
    check(unsafe { tarsiaMemcpyToDevice(session.raw(), dst, src, size_of_val(values)) }).unwrap();
}

/// Product that a plan computes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProductKind {
    Spmv(SpmvAlg),
    Spmm(SpmmAlg),
    Spgemm(SpgemmAlg),
}

impl ProductKind {
    /// Returns every algorithm of the support table that supports fp64 on a backend, and the library's
    /// choices.
    fn all(backend: BackendKind) -> Vec<ProductKind> {
        let algorithms: Vec<ProductKind> = SpmvAlg::ALL
            .iter()
            .map(|&alg| ProductKind::Spmv(alg))
            .chain(SpmmAlg::ALL.iter().map(|&alg| ProductKind::Spmm(alg)))
            .chain(SpgemmAlg::ALL.iter().map(|&alg| ProductKind::Spgemm(alg)))
            .collect();
        let served = |product: &ProductKind| {
            TABLE.iter().any(|row| {
                row.op == product.op()
                    && row.backends.contains(&backend)
                    && row.types.iter().any(|types| types.a == F64 && types.x == F64 && types.y == F64)
                    && product.named().is_none_or(|named| named == row.algorithm)
            })
        };
        let found: Vec<_> = algorithms.into_iter().filter(served).collect();
        let ops = [OpKind::Spmv, OpKind::Spmm, OpKind::Spgemm];
        let of_these = |row: &&Row| ops.contains(&row.op) && row.backends.contains(&backend);
        let in_table = TABLE.iter().filter(of_these).count();
        // Each row of the table, and the library's choice for each operation.
        assert_eq!(found.len(), in_table + ops.len(), "the loop misses an algorithm: {found:?}");
        found
    }

    fn op(self) -> OpKind {
        match self {
            ProductKind::Spmv(_) => OpKind::Spmv,
            ProductKind::Spmm(_) => OpKind::Spmm,
            ProductKind::Spgemm(_) => OpKind::Spgemm,
        }
    }

    /// Returns the algorithm; `None` for the library's choice.
    fn named(self) -> Option<Algorithm> {
        match self {
            ProductKind::Spmv(alg) => Algorithm::from_spmv(alg),
            ProductKind::Spmm(alg) => Algorithm::from_spmm(alg),
            ProductKind::Spgemm(alg) => Algorithm::from_spgemm(alg),
        }
    }

    /// Returns the formats of A.
    fn formats(self) -> Vec<Format> {
        let formats = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr];
        formats.into_iter().take(if self.op() == OpKind::Spgemm { 2 } else { 4 }).collect()
    }

    fn plan<'a>(self, session: &Session, op: Operation, a: &Sparse<'a>, b: &Sparse<'a>) -> Result<Plan<'a>> {
        match self {
            ProductKind::Spmv(alg) => Plan::spmv(session, op, a, (F64, F64), R64, alg),
            ProductKind::Spmm(alg) => {
                let orders = (Order::Row, Order::Row);
                Plan::spmm(session, (op, N), a, orders, COLUMNS as i64, (F64, F64), R64, alg)
            }
            ProductKind::Spgemm(alg) => Plan::spgemm(session, (op, N), a, b, R64, alg),
        }
    }

    /// Computes the product by the library, as a dense array.
    fn run(self, session: &Session, plan: &Plan<'_>) -> Result<Vec<f64>> {
        let kind = session.kind();
        match self {
            ProductKind::Spmv(_) => {
                let (x, mut y) = (upload(kind, &operand(1)), upload(kind, &vec![f64::NAN; SIZE]));
                plan.run_spmv(session, 1.0, &x, 0.0, &mut y)?;
                session.synchronize()?;
                y.download()
            }
            ProductKind::Spmm(_) => {
                let (b, mut c) =
                    (upload(kind, &operand(COLUMNS)), upload(kind, &vec![f64::NAN; SIZE * COLUMNS]));
                let (rows, cols) = (SIZE as i64, COLUMNS as i64);
                let shape = DenseLayout { rows, cols, ld: cols, order: Order::Row };
                plan.run_spmm(session, 1.0, (&b, shape), 0.0, (&mut c, shape))?;
                session.synchronize()?;
                c.download()
            }
            ProductKind::Spgemm(_) => {
                let nnz = plan.symbolic(session)? as usize;
                let mut offsets = upload(kind, &vec![0_i32; SIZE + 1]);
                let (mut indices, mut values) =
                    (upload(kind, &vec![0_i32; nnz]), upload(kind, &vec![f64::NAN; nnz]));
                let shape = (SIZE as i64, SIZE as i64);
                let (o, i, v) = (&mut offsets, &mut indices, &mut values);
                plan.numeric_csr(session, 1.0, shape, o, i, v, IndexBase::Zero)?;
                session.synchronize()?;
                let (offsets, indices, values) =
                    (offsets.download()?, indices.download()?, values.download()?);
                let mut out = vec![0.0; SIZE * SIZE];
                for row in 0..SIZE {
                    for at in offsets[row] as usize..offsets[row + 1] as usize {
                        out[row * SIZE + indices[at] as usize] += values[at];
                    }
                }
                Ok(out)
            }
        }
    }

    /// Computes the product by loops. Numbers are integers, so that sums are exact in any order.
    fn expected(self, op: Operation, entries: &[(usize, usize)], values: &[f64]) -> Vec<f64> {
        let columns = match self {
            ProductKind::Spmv(_) => 1,
            ProductKind::Spmm(_) => COLUMNS,
            ProductKind::Spgemm(_) => SIZE,
        };
        let b = match self {
            ProductKind::Spgemm(_) => {
                let mut b = vec![0.0; SIZE * SIZE];
                let places = places(2);
                let numbers = numbers(places.len(), 0);
                places.iter().zip(numbers).for_each(|(&(row, col), value)| b[row * SIZE + col] += value);
                b
            }
            ProductKind::Spmv(_) | ProductKind::Spmm(_) => operand(columns),
        };
        let mut out = vec![0.0; SIZE * columns];
        for (&(row, col), value) in entries.iter().zip(values) {
            let (row, col) = if op.transposes() { (col, row) } else { (row, col) };
            for at in 0..columns {
                out[row * columns + at] += value * b[col * columns + at];
            }
        }
        out
    }
}

/// Returns x, or B of SpMM.
fn operand(columns: usize) -> Vec<f64> {
    (0..SIZE * columns).map(|at| (at % 7 + 1) as f64).collect()
}

/// Returns places of blocks, each once; a row is empty.
fn blocks(seed: u64) -> Vec<(usize, usize)> {
    let (height, width) = (SIZE / BLOCK.0, SIZE / BLOCK.1);
    let mut rng = SplitMix64::new(seed);
    let mut out = Vec::new();
    while out.len() < ENTRIES / (BLOCK.0 * BLOCK.1) {
        let place = (rng.below(height as u64 - 1) as usize, rng.below(width as u64) as usize);
        if !out.contains(&place) {
            out.push(place);
        }
    }
    out
}

/// Returns places of entries, each once; a row is empty.
fn places(seed: u64) -> Vec<(usize, usize)> {
    let inside = |(row, col): (usize, usize)| {
        (0..BLOCK.0 * BLOCK.1).map(move |at| (row * BLOCK.0 + at / BLOCK.1, col * BLOCK.1 + at % BLOCK.1))
    };
    blocks(seed).into_iter().flat_map(inside).collect()
}

/// Returns values that are integers; those of each generation differ in every place.
fn numbers(count: usize, generation: usize) -> Vec<f64> {
    (0..count).map(|at| (at % 9 + 2 + 10 * generation) as f64).collect()
}

/// Returns the matrix in a format.
fn pattern(format: Format) -> Pattern {
    let style = Style { format, block: BLOCK, ..Style::PLAIN };
    match format {
        Format::Bsr => Pattern::new(style, (SIZE / BLOCK.0, SIZE / BLOCK.1), &blocks(1)),
        _ => Pattern::new(style, (SIZE, SIZE), &places(1)),
    }
}

/// Returns the other factor of SpGEMM, in a backend's memory.
fn other_factor(kind: BackendKind, format: Format) -> Stored<f64> {
    other_factor_of(kind, format, |number| number)
}

/// Returns the other factor of SpGEMM with values of another type.
fn other_factor_of<V: Pod>(kind: BackendKind, format: Format, of: impl Fn(f64) -> V) -> Stored<V> {
    let style = Style { format, ..Style::PLAIN };
    let pattern = Pattern::new(style, (SIZE, SIZE), &places(2));
    // Each place has the same value in every format.
    let known: HashMap<_, f64> = places(2).into_iter().zip(numbers(ENTRIES, 0)).collect();
    let values: Vec<V> = pattern.entries().iter().map(|place| of(known[place])).collect();
    pattern.store(kind, &values)
}

/// Parameters of a plan.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: BackendKind,
    product: ProductKind,
    format: Format,
    op: Operation,
    effort: Effort,
    updates: bool,
}

impl Case {
    /// Calls `run` with all cases: every effort for A in CSR with op N, and the default for other formats and
    /// ops.
    fn each(mut run: impl FnMut(Case)) {
        for kind in backends() {
            for product in ProductKind::all(kind) {
                for format in product.formats() {
                    for (effort, updates) in Effort::ALL.iter().flat_map(|e| [(e, false), (e, true)]) {
                        for op in [N, Operation::Transpose] {
                            if *effort != Effort::Default && (format, op) != (Format::Csr, N) {
                                continue;
                            }
                            run(Case { kind, product, format, op, effort: *effort, updates });
                        }
                    }
                }
            }
        }
    }

    /// Returns the format of the other factor; if both are stored by columns, columns of C are computed.
    fn other_format(&self) -> Format {
        if self.product.op() == OpKind::Spgemm {
            self.format
        } else {
            Format::Csr
        }
    }

    /// Returns whether a plan can read the values in place.
    fn is_in_place(&self) -> bool {
        let serves = match self.product {
            ProductKind::Spmv(_) => Algorithm::Csr,
            ProductKind::Spmm(_) => Algorithm::Row,
            ProductKind::Spgemm(_) => Algorithm::Hash,
        };
        let by_rows =
            matches!((self.format, self.op), (Format::Csr, N) | (Format::Csc, Operation::Transpose));
        let fits = match self.product.op() {
            // B has op N, and A and B are both stored by rows or both by columns.
            OpKind::Spgemm => self.op == N,
            _ => by_rows,
        };
        fits && self.product.named().is_none_or(|named| named == serves)
    }

    /// Creates a plan without analysis.
    fn plan<'a>(&self, session: &Session, a: &Sparse<'a>, b: &Sparse<'a>) -> Plan<'a> {
        let plan = self.product.plan(session, self.op, a, b).unwrap();
        plan.set_effort(self.effort).unwrap();
        plan.set_value_updates(self.updates).unwrap();
        plan
    }
}

#[track_caller]
fn refused(result: Result<impl Sized>, status: Status, texts: &[&str]) -> Error {
    let error = result.err().expect("it was taken");
    assert_eq!(error.status, status, "{error}");
    assert!(texts.iter().all(|text| error.message.contains(text)), "{error}; expected {texts:?}");
    error
}

/// Until the call, products have the old values or the new ones, which have overwritten them.
#[test]
fn until_the_call_a_product_has_old_values_or_new_ones() {
    let mut taken = 0;
    Case::each(|case| {
        let session = Session::new(case.kind).unwrap();
        let pattern = pattern(case.format);
        let entries = pattern.entries();
        let generation = |at| numbers(entries.len(), at);
        let expected = |at| case.product.expected(case.op, &entries, &generation(at));
        let a = pattern.store(case.kind, &generation(0));
        let b = other_factor(case.kind, case.other_format());
        let (sparse, factor) = (a.open().unwrap(), b.open().unwrap());
        let plan = case.plan(&session, &sparse, &factor);
        plan.analyze(&session).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let run = || case.product.run(&session, &plan).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert!(run() == expected(0), "{case:?}: wrong before anything changes");
        for now in 1..3 {
            overwrite(&session, a.values(), &generation(now));
            let found = run();
            assert!(found == expected(now - 1) || found == expected(now), "{case:?}: neither old nor new");
            plan.update_values(&session, a.values()).unwrap();
            assert!(run() == expected(now), "{case:?}: old after updateValues");
        }
        taken += 1;
    });
    assert!(taken > 500, "{taken} cases");
}

/// With checks, products return an error until the call, and then have the new values.
#[test]
fn with_checks_a_missing_call_is_an_error() {
    Case::each(|case| {
        let session = Session::new(case.kind).unwrap();
        session.set_checks(true).unwrap();
        let pattern = pattern(case.format);
        let entries = pattern.entries();
        let generation = |at| numbers(entries.len(), at);
        let a = pattern.store(case.kind, &generation(0));
        let b = other_factor(case.kind, case.other_format());
        let (sparse, factor) = (a.open().unwrap(), b.open().unwrap());
        let plan = case.plan(&session, &sparse, &factor);
        plan.analyze(&session).unwrap();
        let expected = |at| case.product.expected(case.op, &entries, &generation(at));
        assert!(case.product.run(&session, &plan).unwrap() == expected(0), "{case:?}");
        overwrite(&session, a.values(), &generation(1));
        let found = case.product.run(&session, &plan);
        refused(found, Status::InvalidState, &["the values of A have changed", "tarsiaPlan_updateValues"]);
        plan.update_values(&session, a.values()).unwrap();
        assert!(case.product.run(&session, &plan).unwrap() == expected(1), "{case:?}");
        // The plan is moved to another array.
        let other = Staged::new(case.kind, &generation(2));
        let other: View<'_, f64> = other.view();
        // SAFETY (of lifetimes): `other` outlives every use of the plan below.
        moved(&session, &plan, other);
        assert!(case.product.run(&session, &plan).unwrap() == expected(2), "{case:?}");
        overwrite(&session, a.values(), &generation(3));
        assert!(
            case.product.run(&session, &plan).unwrap() == expected(2),
            "{case:?}: an array that it has left"
        );
        overwrite(&session, other, &generation(4));
        refused(case.product.run(&session, &plan), Status::InvalidState, &["tarsiaPlan_updateValues"]);
        drop(plan);
    });
}

/// Calls `tarsiaPlan_updateValues` with an array that the caller keeps while the plan uses it.
fn moved(session: &Session, plan: &Plan<'_>, values: View<'_, f64>) {
    // SAFETY: the array has as many elements as A's, and callers keep it while they use the plan.
    check(unsafe {
        tarsia::capi::plan::tarsiaPlan_updateValues(session.raw(), plan.raw(), values.as_ptr().cast())
    })
    .unwrap();
}
