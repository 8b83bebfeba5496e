//! Tests of SpGEMM against a naive product over the stored entries; integer values make sums exact in any
//! order.

mod memory;
mod products;
mod tile;
mod unsorted;

use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::Random;

use half::f16;
use num_complex::Complex64;
use parking_lot::Mutex;

use super::*;
use crate::error::Status;
use crate::matrix::{Compressed, SparseArrays};
use crate::memory::{Allocator, HostMemory, RawMemory, Workspace};
use crate::select;
use crate::support::{self, F16F32, F64};
use crate::types::{BackendKind, Element, Format, IndexBase, IndexType, OpKind, Operation, PointerMode};

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const FORMATS: [Format; 2] = [Format::Csr, Format::Csc];
const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

#[derive(Clone, Debug)]
enum Array {
    I32(Vec<i32>),
    I64(Vec<i64>),
}

impl Array {
    fn new(index: IndexType, values: impl Iterator<Item = i64>) -> Self {
        match index {
            IndexType::I64 => Array::I64(values.collect()),
            _ => Array::I32(values.map(|v| v as i32).collect()),
        }
    }

    fn address(&self) -> Address {
        match self {
            Array::I32(v) => Address::new(v.as_ptr()),
            Array::I64(v) => Address::new(v.as_ptr()),
        }
    }

    fn get(&self, at: usize) -> i64 {
        match self {
            Array::I32(v) => v[at].into(),
            Array::I64(v) => v[at],
        }
    }
}

/// A CSR or CSC matrix as a user would store it.
#[derive(Clone, Debug)]
struct Stored<V> {
    format: Format,
    rows: i64,
    cols: i64,
    base: IndexBase,
    widths: (IndexType, IndexType),
    offsets: Array,
    indices: Array,
    values: Vec<V>,
}

impl<V: Element> Stored<V> {
    /// Stores entries (row, column, value) given in any order; their order within a row or column is kept.
    fn new(
        format: Format,
        shape: (i64, i64),
        base: IndexBase,
        widths: (IndexType, IndexType),
        entries: &[(i64, i64, V)],
    ) -> Self {
        let key = |e: &(i64, i64, V)| if format == Format::Csr { (e.0, e.1) } else { (e.1, e.0) };
        let major = if format == Format::Csr { shape.0 } else { shape.1 };
        let mut sorted = entries.to_vec();
        sorted.sort_by_key(|e| key(e).0);
        let mut offsets = vec![base.code() as i64; major as usize + 1];
        for e in &sorted {
            offsets[key(e).0 as usize + 1] += 1;
        }
        for i in 0..major as usize {
            offsets[i + 1] += offsets[i] - base.code() as i64;
        }
        Stored {
            format,
            rows: shape.0,
            cols: shape.1,
            base,
            widths,
            offsets: Array::new(widths.0, offsets.into_iter()),
            indices: Array::new(widths.1, sorted.iter().map(|e| key(e).1 + base.code() as i64)),
            values: sorted.iter().map(|e| e.2).collect(),
        }
    }

    fn csr(shape: (i64, i64), entries: &[(i64, i64, V)]) -> Self {
        Self::new(Format::Csr, shape, IndexBase::Zero, WIDTHS[0], entries)
    }

    /// Allocates arrays for C, filled with wrong indices and the value `v`.
    fn room(
        format: Format,
        shape: (i64, i64),
        base: IndexBase,
        widths: (IndexType, IndexType),
        nnz: i64,
        v: V,
    ) -> Self {
        let major = if format == Format::Csr { shape.0 } else { shape.1 };
        Stored {
            format,
            rows: shape.0,
            cols: shape.1,
            base,
            widths,
            offsets: Array::new(widths.0, (0..=major).map(|_| -7)),
            indices: Array::new(widths.1, (0..nnz).map(|_| -7)),
            values: vec![v; nnz as usize],
        }
    }

    fn matrix(&self) -> SparseMatrix {
        let csr = self.format == Format::Csr;
        let (major, minor) = if csr { (self.rows, self.cols) } else { (self.cols, self.rows) };
        let arrays = Compressed {
            major,
            minor,
            nnz: self.values.len() as i64,
            offsets: self.offsets.address(),
            indices: self.indices.address(),
            values: Address::new(self.values.as_ptr()),
            offset_type: self.widths.0,
            index_type: self.widths.1,
            base: self.base,
            value_type: V::TYPE,
        };
        arrays
            .check(if csr { &crate::matrix::compressed::CSR } else { &crate::matrix::compressed::CSC })
            .unwrap();
        let arrays = if csr { SparseArrays::Csr(arrays) } else { SparseArrays::Csc(arrays) };
        SparseMatrix { arrays, writable: true, temporary: false }
    }

    /// Returns the entries in storage order.
    fn entries(&self) -> Vec<(i64, i64, V)> {
        let base = self.base.code() as i64;
        let major = if self.format == Format::Csr { self.rows } else { self.cols };
        let mut out = Vec::new();
        assert_eq!(self.offsets.get(0), base);
        for i in 0..major {
            for p in self.offsets.get(i as usize) - base..self.offsets.get(i as usize + 1) - base {
                let j = self.indices.get(p as usize) - base;
                let (row, col) = if self.format == Format::Csr { (i, j) } else { (j, i) };
                out.push((row, col, self.values[p as usize]));
            }
        }
        assert_eq!(out.len(), self.values.len());
        out
    }

    /// Returns the entries of C by (row, column), after a check that its compressed rows or columns ascend
    /// strictly.
    fn product(&self) -> BTreeMap<(i64, i64), V> {
        let entries = self.entries();
        let key = |e: &(i64, i64, V)| if self.format == Format::Csr { (e.0, e.1) } else { (e.1, e.0) };
        assert!(entries.windows(2).all(|w| key(&w[0]) < key(&w[1])), "not sorted or not unique");
        entries.into_iter().map(|(row, col, value)| ((row, col), value)).collect()
    }
}

fn context(allocator: Arc<Allocator>) -> Context {
    let workspace = Workspace { address: Address::NULL, bytes: 0 };
    Context {
        stream: Address::NULL,
        pointer_mode: PointerMode::Host,
        workspace,
        counters: Address::NULL,
        allocator,
    }
}

pub(super) fn unlimited() -> Context {
    limited(usize::MAX)
}

fn limited(bytes: usize) -> Context {
    context(Allocator::new(Arc::new(HostMemory), Address::NULL, bytes))
}

fn problem<C: Combo>(op_a: Operation, op_b: Operation, a: &Stored<C::A>, b: &Stored<C::X>) -> SpgemmProblem {
    SpgemmProblem {
        op_a,
        op_b,
        a: a.matrix(),
        b: b.matrix(),
        types: C::TYPES,
        value_updates: false,
        ieee: false,
        sorted_output: true,
    }
}

fn build(cx: &Context, problem: &SpgemmProblem, choice: &Choice) -> Result<Box<dyn SpgemmExecutor>> {
    Host.build_spgemm(cx, problem, choice, None, &[None, None])
}

fn choose(problem: &SpgemmProblem) -> Choice {
    let rows: Vec<_> = crate::algorithm::TABLE
        .iter()
        .filter(|row| row.op == OpKind::Spgemm && row.backends.contains(&BackendKind::Host))
        .collect();
    select::spgemm(problem, &rows).unwrap().swap_remove(0)
}

fn executor<K: Key, C: Combo>(cx: &Context, problem: &SpgemmProblem) -> Result<HostSpgemm<K, C>> {
    let operands = Operands::build(cx, problem, &choose(problem))?;
    HostSpgemm::new(cx, *problem, operands)
}

fn scalar<T>(value: &T) -> Address {
    Address::new(value)
}

/// Returns the entries of op of a matrix.
fn apply<V: Element>(op: Operation, entries: &[(i64, i64, V)]) -> Vec<(i64, i64, V)> {
    let conjugate = |v: V| if op.conjugates() { v.conjugate() } else { v };
    let swap = |(i, j): (i64, i64)| if op.transposes() { (j, i) } else { (i, j) };
    entries.iter().map(|&(i, j, v)| (swap((i, j)).0, swap((i, j)).1, conjugate(v))).collect()
}

/// Returns the product of two lists of entries.
fn naive<C: Combo>(
    alpha: C::Acc,
    a: &[(i64, i64, C::A)],
    b: &[(i64, i64, C::X)],
) -> BTreeMap<(i64, i64), C::Y> {
    use crate::types::Storage;
    let mut rows: BTreeMap<i64, Vec<(i64, C::X)>> = BTreeMap::new();
    for &(k, j, v) in b {
        rows.entry(k).or_default().push((j, v));
    }
    let mut sums: BTreeMap<(i64, i64), C::Acc> = BTreeMap::new();
    for &(i, k, v) in a {
        for &(j, w) in rows.get(&k).map_or(&[][..], |row| row) {
            *sums.entry((i, j)).or_insert(C::Acc::ZERO) += v.widen() * w.widen();
        }
    }
    sums.into_iter().map(|(at, sum)| (at, C::Y::round(alpha * sum))).collect()
}

/// Returns random entries, unsorted and possibly with duplicates.
fn random<V>(
    random: &mut Random,
    rows: usize,
    cols: usize,
    nnz: usize,
    value: impl Fn(&mut Random) -> V,
) -> Vec<(i64, i64, V)> {
    if rows * cols == 0 {
        return Vec::new();
    }
    (0..nnz).map(|_| (random.below(rows) as i64, random.below(cols) as i64, value(random))).collect()
}

fn integers(rng: &mut Random, rows: usize, cols: usize, nnz: usize) -> Vec<(i64, i64, f64)> {
    random(rng, rows, cols, nnz, Random::integer)
}

/// Computes alpha · A · B into CSR with an fp64 executor.
fn run_csr(executor: &mut dyn SpgemmExecutor, cx: &Context, alpha: f64, shape: (i64, i64)) -> Stored<f64> {
    let nnz = executor.symbolic(cx).unwrap();
    let c = Stored::room(Format::Csr, shape, IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
    executor.numeric(cx, scalar(&alpha), &c.matrix()).unwrap();
    c
}

fn bits(c: &Stored<f64>) -> Vec<(i64, i64, u64)> {
    c.entries().iter().map(|e| (e.0, e.1, e.2.to_bits())).collect()
}

/// Returns a matrix with empty rows, a dense row, a dense column and duplicates.
fn skewed(rng: &mut Random, n: usize, mean: usize, value: fn(&mut Random) -> f64) -> Vec<(i64, i64, f64)> {
    let mut entries = random(rng, n, n, mean * n, value);
    entries.retain(|e| e.0 % 7 != 3);
    for i in 0..n as i64 {
        entries.push((11, i, value(rng)));
        entries.push((i, 5, value(rng)));
    }
    entries.push((11, 11, value(rng)));
    entries.push((11, 11, value(rng)));
    entries
}
