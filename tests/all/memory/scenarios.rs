//! Tests of whole programs in which every allocation fails once: the call that needed it returns an error,
//! nothing leaks, and the call gives the right result when it is repeated with memory.

use client::{Array, DenseLayout, Memory, Plan, Session, Sparse};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, IndexBase, Operation, Order, Result, SpgemmAlg, SpmmAlg, SpmvAlg,
    Status,
};

use super::heap::{Fail, Heap, PANIC};
use crate::common::dense::{Dense, Guarded};
use crate::common::staged::{upload, written, Scalars, Staging};
use crate::common::{backend, backends, raw};

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const T: Operation = Operation::Transpose;
const R64: ComputeType = ComputeType::R64F;
const BASE: IndexBase = IndexBase::Zero;

/// Program whose allocator fails.
pub struct Program<'a> {
    heap: &'a Heap,
    fail: Fail,
    what: String,
}

impl Program<'_> {
    /// Makes a call that may allocate. If it fails for lack of memory, its error and its effects are checked,
    /// and it is made again.
    pub fn step<R>(&self, name: &str, call: impl FnMut() -> Result<R>) -> R {
        self.attempt(name, false, call)
    }

    /// Makes a call as [`step`](Self::step). A `frugal` call may also succeed in a way that needs less memory,
    /// whose results the caller checks.
    pub fn attempt<R>(&self, name: &str, frugal: bool, mut call: impl FnMut() -> Result<R>) -> R {
        let what = format!("{}: {name}", self.what);
        let (before, failures) = (self.heap.live(), self.heap.failures());
        let result = call();
        let failed = self.heap.failures() > failures;
        let error = match result {
            Ok(value) => {
                let survives = frugal && !matches!(self.fail, Fail::Panic(_));
                assert!(!failed || survives, "{what}: an allocation failed, and the call succeeded");
                return value;
            }
            Err(error) => error,
        };
        assert!(failed, "{what}: {error}, and no allocation failed");
        let (status, text) = match self.fail {
            Fail::Panic(_) => (Status::InternalError, PANIC),
            Fail::Misalign(_) => (Status::AllocFailed, "aligned"),
            _ => (Status::AllocFailed, "bytes"),
        };
        assert_eq!(error.status, status, "{what}: {error}");
        assert!(error.message.contains(text), "{what}: {error}");
        let after = self.heap.live();
        assert!(
            after.0 <= before.0 && after.1 <= before.1,
            "{what}: it keeps {after:?}, before it {before:?}"
        );
        self.heap.relax();
        call().unwrap_or_else(|error| panic!("{what}, again with memory: {error}"))
    }

    /// Makes a call that must not allocate.
    pub fn without_memory<R>(&self, name: &str, call: impl FnOnce() -> Result<R>) -> R {
        let before = (self.heap.calls(), self.heap.live());
        let result = call().unwrap_or_else(|error| panic!("{}: {name}: {error}", self.what));
        assert_eq!((self.heap.calls(), self.heap.live()), before, "{}: {name} allocates", self.what);
        result
    }
}

/// Runs a program once for every allocation and every way in which it can fail.
fn every_failure(kind: BackendKind, name: &str, least: usize, program: impl Fn(&Heap, &Program)) {
    let ways: [fn(usize) -> Fail; 4] = [Fail::Once, Fail::From, Fail::Panic, Fail::Misalign];
    for way in ways {
        let mut n = 0;
        loop {
            n += 1;
            assert!(n < 1000, "{name}: no end of allocations");
            let heap = Heap::new(kind);
            let fail = way(n);
            heap.fail(fail);
            program(&heap, &Program { heap: &heap, fail, what: format!("{kind:?}: {name}, {fail:?}") });
            heap.check_empty();
            if heap.failures() == 0 {
                break;
            }
        }
        assert!(n > least, "{kind:?}: {name} allocates {} times: is this the user's allocator?", n - 1);
    }
}

/// Entries of a row that no backend sums in one piece in SpMV (65 536).
pub const LONG: usize = 66_000;
/// Entries of a row that no backend sums in one piece in SpMM (16 384).
pub const LONG_SPMM: usize = 17_000;

/// Unsorted COO matrix with a long row: 3 rows, and an entry in each column.
pub struct LongCoo {
    pub rows: Vec<i32>,
    pub cols: Vec<i32>,
    pub values: Vec<f64>,
}

impl LongCoo {
    pub fn new(len: usize) -> Self {
        let mut out = LongCoo { rows: Vec::new(), cols: Vec::new(), values: Vec::new() };
        // Columns descend, so that they must be sorted, which does not take long.
        for col in (0..len).rev() {
            let row = if col % 5000 == 7 { 1 + (col / 5000) % 2 } else { 0 };
            out.rows.push(row as i32);
            out.cols.push(col as i32);
            out.values.push((col % 8 + 1) as f64);
        }
        out
    }

    pub fn store(&self, kind: BackendKind) -> StoredCoo {
        StoredCoo {
            rows: upload(kind, &self.rows),
            cols: upload(kind, &self.cols),
            values: upload(kind, &self.values),
        }
    }

    /// Computes A · x for x[j] = j mod 3, with values `factor` times as large.
    pub fn times(&self, factor: f64) -> [f64; 3] {
        let mut y = [0.0; 3];
        for ((&row, &col), &value) in self.rows.iter().zip(&self.cols).zip(&self.values) {
            y[row as usize] += factor * value * f64::from(col % 3);
        }
        y
    }
}

/// Long COO matrix in a backend's memory.
pub struct StoredCoo {
    rows: Array<'static, i32>,
    cols: Array<'static, i32>,
    values: Array<'static, f64>,
}

impl StoredCoo {
    pub fn describe(&self) -> Sparse<'_> {
        Sparse::coo((3, self.cols.len() as i64), &self.rows, &self.cols, &self.values, BASE).unwrap()
    }
}

fn x(len: usize) -> Vec<f64> {
    (0..len).map(|j| (j % 3) as f64).collect()
}

/// Returns whether a plan needs workspace; on a device that depends on the kernels.
fn has_workspace(plan: &Plan<'_>, n: i64) -> bool {
    backend() == BackendKind::Cuda || plan.workspace_size(n).unwrap() > 0
}

/// Analyzes a plan of a matrix with a long row, and destroys it.
pub fn plan_of_a_long_row(session: &Session) {
    let coo = LongCoo::new(LONG).store(session.kind());
    let a = coo.describe();
    let plan = Plan::spmv(session, N, &a, (F64, F64), R64, SpmvAlg::Default).unwrap();
    plan.analyze(session).unwrap();
}

#[test]
fn spmv_of_coo_with_long_rows() {
    let (coo, x) = (LongCoo::new(LONG), x(LONG));
    let (once, twice) = (coo.times(1.0), coo.times(2.0));
    let doubled: Vec<f64> = coo.values.iter().map(|value| 2.0 * value).collect();
    for kind in backends() {
        let (coo, doubled) = (coo.store(kind), upload(kind, &doubled));
        for updates in [false, true] {
            every_failure(kind, &format!("SpMV, updates {updates}"), 1, |heap, program| {
                let (session, other) = (Session::new(kind).unwrap(), Session::new(kind).unwrap());
                heap.serve(session.raw());
                heap.serve(other.raw());
                let a = coo.describe();
                let plan = program.without_memory("createPlan", || {
                    Plan::spmv(&session, N, &a, (F64, F64), R64, SpmvAlg::Default)
                });
                plan.set_value_updates(updates).unwrap();
                program.step("analyze", || plan.analyze(&session));
                program.step("prepare", || plan.prepare(&other));
                let run = |session: &Session, expected: [f64; 3]| {
                    let mut y = [f64::NAN; 3];
                    program.without_memory("SpMV", || plan.spmv(session, 1.0, &x, 0.0, &mut y));
                    assert_eq!(y, expected, "{}", program.what);
                };
                assert!(has_workspace(&plan, 1), "no row is long: change LONG");
                run(&session, once);
                run(&other, once);
                program.step("updateValues", || plan.update_values(&session, &doubled));
                run(&other, twice);
            });
        }
    }
}

#[test]
fn spmm_of_csc_with_long_rows() {
    // The arrays of the COO matrix, sorted by columns: one entry in each.
    let coo = LongCoo::new(LONG_SPMM);
    let mut order: Vec<usize> = (0..LONG_SPMM).collect();
    order.sort_by_key(|&k| coo.cols[k]);
    let offsets: Vec<i64> = (0..=LONG_SPMM as i64).collect();
    let rows: Vec<i32> = order.iter().map(|&k| coo.rows[k]).collect();
    let values: Vec<f64> = order.iter().map(|&k| coo.values[k]).collect();
    let doubled: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
    let n = 2;
    let (once, twice) = (coo.times(1.0), coo.times(2.0));
    let b: Vec<f64> = x(LONG_SPMM).into_iter().flat_map(|x| [x, 3.0 * x]).collect();
    let b = Dense {
        shape: DenseLayout { rows: LONG_SPMM as i64, cols: n, ld: n, order: Order::Row },
        values: Guarded::new(&b, 0),
    };
    for kind in backends() {
        let (offsets, rows) = (upload(kind, &offsets), upload(kind, &rows));
        let (values, doubled) = (upload(kind, &values), upload(kind, &doubled));
        for updates in [false, true] {
            every_failure(kind, &format!("SpMM, updates {updates}"), 1, |heap, program| {
                let (session, other) = (Session::new(kind).unwrap(), Session::new(kind).unwrap());
                heap.serve(session.raw());
                heap.serve(other.raw());
                let a = Sparse::csc((3, LONG_SPMM as i64), &offsets, &rows, &values, BASE).unwrap();
                let plan = program.without_memory("createPlan", || {
                    let orders = (Order::Row, Order::Col);
                    Plan::spmm(&session, (N, N), &a, orders, n, (F64, F64), R64, SpmmAlg::Default)
                });
                plan.set_value_updates(updates).unwrap();
                program.step("analyze", || plan.analyze(&session));
                program.step("prepare", || plan.prepare(&other));
                let run = |session: &Session, [y0, y1, y2]: [f64; 3]| {
                    let mut c = Dense::<f64>::new((3, n as usize), Order::Col, 0);
                    program.without_memory("SpMM", || plan.spmm(session, 1.0, &b, 0.0, &mut c));
                    assert_eq!(c.values[..], [y0, y1, y2, 3.0 * y0, 3.0 * y1, 3.0 * y2], "{}", program.what);
                };
                assert!(has_workspace(&plan, n), "no row is long: change LONG_SPMM");
                run(&session, once);
                run(&other, once);
                program.step("updateValues", || plan.update_values(&session, &doubled));
                run(&other, twice);
            });
        }
    }
}

/// Small matrix, dense, in CSR and in CSC.
pub struct Small {
    pub rows: usize,
    pub cols: usize,
    pub dense: Vec<f64>,
    pub csr: Arrays,
    pub csc: Arrays,
}

/// Arrays of CSR or CSC.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrays {
    pub offsets: Vec<i32>,
    pub indices: Vec<i32>,
    pub values: Vec<f64>,
}

impl Small {
    /// Returns a random matrix with about a tenth of its elements stored; values are small integers, so that
    /// every sum is exact.
    pub fn random(rows: usize, cols: usize, seed: u64) -> Self {
        let mut next = testkit::sequence(seed);
        let value = |random: usize| if random % 10 == 0 { (random / 10 % 9 + 1) as f64 } else { 0.0 };
        Self::new(rows, cols, (0..rows * cols).map(|_| value(next())).collect())
    }

    fn new(rows: usize, cols: usize, dense: Vec<f64>) -> Self {
        let compress = |major: usize, minor: usize, at: &dyn Fn(usize, usize) -> usize| {
            let mut out = Arrays { offsets: vec![0], indices: Vec::new(), values: Vec::new() };
            for i in 0..major {
                for j in (0..minor).filter(|&j| dense[at(i, j)] != 0.0) {
                    out.indices.push(j as i32);
                    out.values.push(dense[at(i, j)]);
                }
                out.offsets.push(out.indices.len() as i32);
            }
            out
        };
        let csr = compress(rows, cols, &|i, j| i * cols + j);
        let csc = compress(cols, rows, &|j, i| i * cols + j);
        Small { rows, cols, dense, csr, csc }
    }

    /// Computes the product; all values are positive, so that no sum cancels.
    pub fn times(&self, other: &Small) -> Small {
        let mut dense = vec![0.0; self.rows * other.cols];
        for i in 0..self.rows {
            for k in 0..self.cols {
                for j in 0..other.cols {
                    dense[i * other.cols + j] +=
                        self.dense[i * self.cols + k] * other.dense[k * other.cols + j];
                }
            }
        }
        Small::new(self.rows, other.cols, dense)
    }

    pub fn store(&self, kind: BackendKind) -> StoredSmall {
        let store = |arrays: &Arrays| StoredArrays {
            offsets: upload(kind, &arrays.offsets),
            indices: upload(kind, &arrays.indices),
            values: upload(kind, &arrays.values),
        };
        StoredSmall { rows: self.rows, cols: self.cols, csr: store(&self.csr), csc: store(&self.csc) }
    }
}

/// CSR and CSC arrays in a backend's memory.
pub struct StoredSmall {
    rows: usize,
    cols: usize,
    csr: StoredArrays,
    csc: StoredArrays,
}

struct StoredArrays {
    offsets: Array<'static, i32>,
    indices: Array<'static, i32>,
    values: Array<'static, f64>,
}

impl StoredSmall {
    fn arrays(&self, by_columns: bool) -> &StoredArrays {
        if by_columns {
            &self.csc
        } else {
            &self.csr
        }
    }

    /// Creates a descriptor of the matrix, or of its transpose as a matrix of its own.
    pub fn describe(&self, by_columns: bool, transposed: bool) -> Sparse<'_> {
        let (rows, cols) = (self.rows as i64, self.cols as i64);
        let arrays = self.arrays(by_columns);
        let (o, i, v) = (&arrays.offsets, &arrays.indices, &arrays.values);
        match (by_columns, transposed) {
            (false, false) => Sparse::csr((rows, cols), o, i, v, BASE).unwrap(),
            (true, false) => Sparse::csc((rows, cols), o, i, v, BASE).unwrap(),
            // Rows of the matrix are the columns of its transpose.
            (false, true) => Sparse::csc((cols, rows), o, i, v, BASE).unwrap(),
            (true, true) => Sparse::csr((cols, rows), o, i, v, BASE).unwrap(),
        }
    }
}

/// Calls tarsiaSpGEMM_numeric with new arrays in CSR or CSC.
pub fn numeric(
    session: &Session,
    plan: &Plan<'_>,
    (rows, cols): (usize, usize),
    nnz: i64,
    by_columns: bool,
) -> Result<Arrays> {
    let major = if by_columns { cols } else { rows };
    let mut c = Arrays {
        offsets: vec![-1; major + 1],
        indices: vec![-1; nnz as usize],
        values: vec![f64::NAN; nnz as usize],
    };
    let (shape, scalars) = ((rows as i64, cols as i64), Scalars::new(session, 1.0, 1.0)?);
    written(session, &mut c.offsets, |o| {
        written(session, &mut c.indices, |i| {
            written(session, &mut c.values, |v| {
                if by_columns {
                    raw::numeric_csc(session, plan, scalars.addresses()[0], shape, (o, i, v), BASE)
                } else {
                    // The tests of memory do not change the pointer mode.
                    plan.numeric_csr(session, 1.0, shape, o, i, v, BASE)
                }
            })
        })
    })?;
    Ok(c)
}

#[test]
fn spgemm_into_csc_and_csr() {
    let (a, b) = (Small::random(60, 50, 1), Small::random(50, 40, 2));
    let (a2, b3) = (
        Small::new(60, 50, a.dense.iter().map(|value| 2.0 * value).collect()),
        Small::new(50, 40, b.dense.iter().map(|value| 3.0 * value).collect()),
    );
    let (product, last) = (a.times(&b), a2.times(&b3));
    // For A, B and C whether they are CSC, and op: all ways to read and to write.
    let ways = [
        (false, false, true, N),
        (true, true, false, N),
        (true, true, true, N),
        (false, true, false, T),
        (true, false, true, T),
    ];
    for kind in backends() {
        let (a, b, a2, b3) = (a.store(kind), b.store(kind), a2.store(kind), b3.store(kind));
        for updates in [false, true] {
            // The CUDA backend has slower numeric phases that need less memory, and the host backend keeps the
            // columns of C, and the ranks of products for new values, only where it has memory for them.
            let (on_host, frugal) = (kind == BackendKind::Host, kind != BackendKind::Reference);
            let numeric_step = |program: &Program, call: &dyn Fn() -> Result<Arrays>| {
                program.attempt("numeric", frugal, call)
            };
            for (a_cols, b_cols, c_cols, op) in ways {
                let name = format!("SpGEMM {op:?}, by columns {a_cols} {b_cols} {c_cols}, updates {updates}");
                // Small products on a device make few allocations, since their entries are counted by
                // analysis.
                let least = if kind == BackendKind::Cuda { 3 } else { 5 };
                every_failure(kind, &name, least, |heap, program| {
                    let session = Session::new(kind).unwrap();
                    heap.serve(session.raw());
                    let transposed = op == T;
                    let (ad, bd) = (a.describe(a_cols, transposed), b.describe(b_cols, transposed));
                    let plan = program.without_memory("createPlan", || {
                        Plan::spgemm(&session, (op, op), &ad, &bd, R64, SpgemmAlg::Default)
                    });
                    plan.set_value_updates(updates).unwrap();
                    // The bytes that the plan reports are right after any failure.
                    let holds =
                        || assert_eq!(plan.info().unwrap().planBytes, heap.live().1, "{}", program.what);
                    program.step("analyze", || plan.analyze(&session));
                    holds();
                    let nnz = program.attempt("symbolic", on_host, || plan.symbolic(&session));
                    holds();
                    assert_eq!(program.without_memory("symbolic again", || plan.symbolic(&session)), nnz);
                    let shape = (product.rows, product.cols);
                    let expected = |c: &Small| if c_cols { c.csc.clone() } else { c.csr.clone() };
                    let before = heap.live();
                    for round in 0..2 {
                        let c = numeric_step(program, &|| numeric(&session, &plan, shape, nnz, c_cols));
                        assert_eq!(c, expected(&product), "{}, round {round}", program.what);
                        // Only a plan with value updates keeps more, and the columns may make room.
                        let now = heap.live();
                        let fewer = on_host && now.0 <= before.0 && now.1 <= before.1;
                        assert!(
                            updates || now == before || fewer,
                            "{}: {now:?} held, before {before:?}",
                            program.what
                        );
                        holds();
                    }
                    program.step("updateValues", || {
                        let (av, bv) = (a2.arrays(a_cols).values.view(), b3.arrays(b_cols).values.view());
                        raw::update_spgemm(&session, &plan, Some(av), Some(bv))
                    });
                    let c = numeric_step(program, &|| numeric(&session, &plan, shape, nnz, c_cols));
                    assert_eq!(c, expected(&last), "{}, new values", program.what);
                    holds();
                });
            }
        }
    }
}

/// tarsiaSpMV_once builds a plan of its own if it must convert the matrix.
#[test]
fn products_without_a_plan() {
    let (coo, x) = (LongCoo::new(LONG), x(LONG));
    let expected = coo.times(1.0);
    for kind in backends() {
        let coo = coo.store(kind);
        every_failure(kind, "SpMV_once", 1, |heap, program| {
            let session = Session::new(kind).unwrap();
            heap.serve(session.raw());
            let (a, mut y) = (coo.describe(), [f64::NAN; 3]);
            program.step("SpMV_once", || raw::spmv_once(&session, N, (1.0, 0.0), &a, &x, &mut y, R64));
            assert_eq!(y, expected);
        });
    }
}
