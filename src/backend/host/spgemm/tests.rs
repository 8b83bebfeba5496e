//! Against a naive product over the stored entries; integer values make sums
//! exact in any order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::ThreadId;

use half::f16;
use num_complex::Complex64;
use parking_lot::Mutex;

use super::*;
use crate::backend::memory::{HostMemory, RawMemory};
use crate::backend::{Allocator, Workspace};
use crate::error::Status;
use crate::matrix::{Compressed, SparseArrays};
use crate::select;
use crate::support::{self, F16F32, F64};
use crate::types::{BackendKind, Element, IndexBase, IndexType, OpKind, Operation, PointerMode};

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const FORMATS: [Format; 2] = [Format::Csr, Format::Csc];
const WIDTHS: [(IndexType, IndexType); 3] = [
    (IndexType::I32, IndexType::I32),
    (IndexType::I64, IndexType::I32),
    (IndexType::I64, IndexType::I64),
];

/// xorshift64*: the tests' values must be the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 32) as usize) % n
    }

    /// A small integer, so that sums of products are exact.
    fn integer(&mut self) -> f64 {
        self.below(9) as f64 - 4.0
    }

    /// A full mantissa in (−1, 1).
    fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

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

/// Arrays of a CSR or CSC matrix, as a user would hold them.
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
    /// Entries (row, column, value) in any order; their order within a row or
    /// column is kept.
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

    /// Room for C.
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
        arrays.check(if csr { &crate::matrix::compressed::CSR } else { &crate::matrix::compressed::CSC }).unwrap();
        let arrays = if csr { SparseArrays::Csr(arrays) } else { SparseArrays::Csc(arrays) };
        SparseMatrix { arrays, writable: true }
    }

    /// Entries in storage order.
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

    /// Entries of C by (row, column), after a check that its compressed rows
    /// or columns ascend strictly.
    fn product(&self) -> BTreeMap<(i64, i64), V> {
        let entries = self.entries();
        let key = |e: &(i64, i64, V)| if self.format == Format::Csr { (e.0, e.1) } else { (e.1, e.0) };
        assert!(entries.windows(2).all(|w| key(&w[0]) < key(&w[1])), "not sorted or not unique");
        entries.into_iter().map(|(row, col, value)| ((row, col), value)).collect()
    }
}

fn context(allocator: Arc<Allocator>) -> Context {
    let workspace = Workspace { address: Address::NULL, bytes: 0 };
    Context { stream: Address::NULL, pointer_mode: PointerMode::Host, workspace, allocator }
}

fn unlimited() -> Context {
    limited(usize::MAX)
}

fn limited(bytes: usize) -> Context {
    context(Allocator::new(Arc::new(HostMemory), Address::NULL, bytes))
}

fn problem<C: Combo>(op_a: Operation, op_b: Operation, a: &Stored<C::A>, b: &Stored<C::X>) -> SpgemmProblem {
    SpgemmProblem { op_a, op_b, a: a.matrix(), b: b.matrix(), types: C::TYPES, value_updates: false }
}

fn choose(problem: &SpgemmProblem) -> Choice {
    let rows: Vec<_> = support::TABLE
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

/// Plain entries of op.
fn apply<V: Element>(op: Operation, entries: &[(i64, i64, V)]) -> Vec<(i64, i64, V)> {
    let conjugate = |v: V| if op.conjugates() { v.conjugate() } else { v };
    let swap = |(i, j): (i64, i64)| if op.transposes() { (j, i) } else { (i, j) };
    entries.iter().map(|&(i, j, v)| (swap((i, j)).0, swap((i, j)).1, conjugate(v))).collect()
}

/// The product of plain entries.
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

/// Random entries, unsorted, some stored twice.
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

fn reals(rng: &mut Random, rows: usize, cols: usize, nnz: usize) -> Vec<(i64, i64, f64)> {
    random(rng, rows, cols, nnz, Random::real)
}

fn integers(rng: &mut Random, rows: usize, cols: usize, nnz: usize) -> Vec<(i64, i64, f64)> {
    random(rng, rows, cols, nnz, Random::integer)
}

/// alpha · A · B for CSR in fp64 by an executor, into CSR.
fn run_csr(executor: &mut dyn SpgemmExecutor, cx: &Context, alpha: f64, shape: (i64, i64)) -> Stored<f64> {
    let nnz = executor.symbolic(cx).unwrap();
    let c = Stored::room(Format::Csr, shape, IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
    executor.numeric(cx, scalar(&alpha), &c.matrix()).unwrap();
    c
}

fn bits(c: &Stored<f64>) -> Vec<(i64, i64, u64)> {
    c.entries().iter().map(|e| (e.0, e.1, e.2.to_bits())).collect()
}

#[test]
fn every_op_and_format_in_complex() {
    let mut rng = Random(7);
    let alpha = Complex64::new(2.0, -1.0);
    let (m, k, n) = (13, 9, 17);
    let mut case = 0;
    let mut columns_first = 0;
    for (op_a, format_a) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
        for (op_b, format_b) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
            let complex = |r: &mut Random| Complex64::new(r.integer(), r.integer());
            let shape_a = op_a.shape(m, k);
            let shape_b = op_b.shape(k, n);
            let entries_a = random(&mut rng, shape_a.0 as usize, shape_a.1 as usize, 40, complex);
            let entries_b = random(&mut rng, shape_b.0 as usize, shape_b.1 as usize, 50, complex);
            let expected = naive::<support::C64>(alpha, &apply(op_a, &entries_a), &apply(op_b, &entries_b));
            for format_c in FORMATS {
                case += 1;
                let base = |i: usize| IndexBase::ALL[(case + i) % 2];
                let a = Stored::new(format_a, shape_a, base(0), WIDTHS[case % 3], &entries_a);
                let b = Stored::new(format_b, shape_b, base(case / 2), WIDTHS[case / 3 % 3], &entries_b);
                let problem = problem::<support::C64>(op_a, op_b, &a, &b);
                let choice = choose(&problem);
                columns_first += usize::from(choice.transposed_product);
                let cx = unlimited();
                let mut executor = build(&cx, &problem, &choice).unwrap();
                let nnz = executor.symbolic(&cx).unwrap();
                assert_eq!(nnz, expected.len() as i64);
                let unset = Complex64::new(f64::NAN, 0.0);
                let c = Stored::room(format_c, (m, n), base(case / 3), WIDTHS[(case / 2) % 3], nnz, unset);
                executor.numeric(&cx, scalar(&alpha), &c.matrix()).unwrap();
                assert_eq!(c.product(), expected, "{op_a:?} {format_a:?} {op_b:?} {format_b:?} {format_c:?}");
                drop(executor);
                assert_eq!(cx.allocator.live_bytes(), 0);
            }
        }
    }
    // CSC N and CSR T for both factors, two formats of C.
    assert_eq!(columns_first, 8);
}

#[test]
fn shapes_at_the_edge() {
    let mut rng = Random(3);
    let shapes = [(0, 0, 0), (0, 4, 5), (4, 0, 5), (4, 5, 0), (1, 1, 1), (1, 70, 1), (40, 1, 40), (3, 200, 150)];
    for (m, k, n) in shapes {
        for density in [0, 1, 3] {
            let a = integers(&mut rng, m, k, density * m.max(k));
            let b = integers(&mut rng, k, n, density * k.max(n));
            let expected = naive::<F64>(1.0, &a, &b);
            for format in FORMATS {
                let shape = |rows: usize, cols: usize| (rows as i64, cols as i64);
                let (zero, one) = (IndexBase::Zero, IndexBase::One);
                let a = Stored::new(format, shape(m, k), one, WIDTHS[0], &a);
                let b = Stored::new(format, shape(k, n), zero, WIDTHS[1], &b);
                let problem = problem::<F64>(Operation::NonTranspose, Operation::NonTranspose, &a, &b);
                for format_c in FORMATS {
                    let cx = unlimited();
                    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
                    let nnz = executor.symbolic(&cx).unwrap();
                    let c = Stored::room(format_c, shape(m, n), one, WIDTHS[1], nnz, f64::NAN);
                    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                    assert_eq!(c.product(), expected, "{m} {k} {n} {format:?} {format_c:?}");
                }
            }
        }
    }
}

/// A matrix with empty rows, a dense row, a dense column and duplicates.
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

#[test]
fn threads_and_accumulators_change_no_bit() {
    let mut rng = Random(11);
    let n = 1500;
    let a = Stored::csr((n, n), &skewed(&mut rng, n as usize, 12, Random::real));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &a);
    let hash = Rule { small_cols: 0, ratio: 1 };
    let array = Rule { small_cols: usize::MAX, ratio: 1 };
    let mixed = Rule { small_cols: 0, ratio: 20 };
    let mut results = Vec::new();
    for rule in [hash, array, mixed, Rule::DEFAULT] {
        for threads in [1, 2, 5] {
            let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
            assert!(executor.items.len() > 6, "too few items to share out");
            (executor.threads, executor.rule) = (threads, rule);
            let c = run_csr(&mut executor, &cx, 1.5, (n, n));
            results.push((bits(&c), executor.products()));
        }
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let wide = {
        let mut executor = executor::<i64, F64>(&cx, &problem).unwrap();
        executor.rule = hash;
        bits(&run_csr(&mut executor, &cx, 1.5, (n, n)))
    };
    assert_eq!(wide, results[0].0);

    // Same order of sums as the naive product over the stored entries.
    let entries = a.entries();
    let expected = naive::<F64>(1.5, &entries, &entries);
    let expected: Vec<_> = expected.iter().map(|(&(i, j), &v)| (i, j, v.to_bits())).collect();
    assert_eq!(results[0].0, expected);
    let lengths: BTreeMap<i64, i64> = entries.iter().fold(BTreeMap::new(), |mut m, e| {
        *m.entry(e.0).or_default() += 1;
        m
    });
    let products = entries.iter().map(|e| lengths.get(&e.1).copied().unwrap_or(0)).sum::<i64>();
    assert_eq!(results[0].1, products);
}

#[test]
fn reuse_gives_the_same_bits() {
    let mut rng = Random(23);
    let n = 400;
    let entries = skewed(&mut rng, n as usize, 4, Random::real);
    let newer: Vec<_> = entries.iter().map(|e| (e.0, e.1, rng.real())).collect();
    for (format_a, op) in [
        (Format::Csr, Operation::NonTranspose),
        (Format::Csc, Operation::NonTranspose),
        (Format::Csc, Operation::Transpose),
        (Format::Csr, Operation::Transpose),
    ] {
        for rule in [Rule { small_cols: 0, ratio: 1 }, Rule::DEFAULT] {
            let a = Stored::new(format_a, (n, n), IndexBase::One, WIDTHS[1], &entries);
            let b = Stored::new(format_a, (n, n), IndexBase::One, WIDTHS[1], &newer);
            let cx = unlimited();
            let mut plain = executor::<i32, F64>(&cx, &problem::<F64>(op, op, &a, &a)).unwrap();
            let mut plain_new = executor::<i32, F64>(&cx, &problem::<F64>(op, op, &b, &a)).unwrap();
            let mut reused = {
                let mut problem = problem::<F64>(op, op, &a, &a);
                problem.value_updates = true;
                executor::<i32, F64>(&cx, &problem).unwrap()
            };
            (plain.rule, plain_new.rule, reused.rule) = (rule, rule, rule);
            let run = |executor: &mut HostSpgemm<i32, F64>, cx: &Context, alpha: f64, format| {
                let nnz = executor.symbolic(cx).unwrap();
                let c = Stored::room(format, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
                executor.numeric(cx, scalar(&alpha), &c.matrix()).unwrap();
                assert!(c.product().len() == nnz as usize);
                bits(&c)
            };
            for format in FORMATS {
                let expected = run(&mut plain, &cx, 0.75, format);
                assert!(plain.kept.is_none());
                for _ in 0..3 {
                    assert_eq!(run(&mut reused, &cx, 0.75, format), expected);
                    assert!(reused.kept.as_ref().unwrap().known);
                }
            }
            // From here on nothing is allocated.
            let nothing = limited(0);
            let new_a = b.matrix().values();
            reused.update_values(&nothing, new_a, Address::NULL).unwrap();
            for format in FORMATS {
                assert_eq!(run(&mut reused, &nothing, -2.5, format), run(&mut plain_new, &cx, -2.5, format));
            }
            // Values of B that are all the same as A's: NULL keeps A's.
            reused.update_values(&nothing, a.matrix().values(), a.matrix().values()).unwrap();
            assert_eq!(run(&mut reused, &nothing, 0.75, Format::Csr), run(&mut plain, &cx, 0.75, Format::Csr));
            // Without kept positions the copies are made again.
            plain.update_values(&cx, new_a, Address::NULL).unwrap();
            assert_eq!(run(&mut plain, &cx, 1.25, Format::Csc), run(&mut plain_new, &cx, 1.25, Format::Csc));
            drop((plain, plain_new, reused));
            assert_eq!(cx.allocator.live_bytes(), 0);
        }
    }
}

#[test]
fn alpha_zero_reads_no_values() {
    let mut rng = Random(5);
    let mut entries = skewed(&mut rng, 60, 4, Random::integer);
    let clean = Stored::csr((60, 60), &entries);
    entries.iter_mut().for_each(|e| e.2 = f64::NAN);
    let dirty = Stored::csr((60, 60), &entries);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    for rule in [Rule { small_cols: 0, ratio: 1 }, Rule::DEFAULT] {
        let mut problem = problem::<F64>(op, op, &dirty, &dirty);
        problem.value_updates = true;
        let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
        executor.rule = rule;
        for _ in 0..2 {
            let c = run_csr(&mut executor, &cx, 0.0, (60, 60));
            assert!(c.values.iter().all(|v| v.to_bits() == 0));
            assert!(!c.product().is_empty());
        }
        // The pattern that it found serves a later product.
        executor.update_values(&cx, clean.matrix().values(), clean.matrix().values()).unwrap();
        let c = run_csr(&mut executor, &cx, -0.5, (60, 60));
        assert_eq!(c.product(), naive::<F64>(-0.5, &clean.entries(), &clean.entries()));
    }
}

#[test]
fn structure_does_not_depend_on_values() {
    // Row 0 cancels; row 1 meets 0 · Inf.
    let a = Stored::csr((2, 2), &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.0)]);
    let b = Stored::csr((2, 3), &[(0, 0, 3.0), (1, 0, 3.0), (0, 2, f64::INFINITY)]);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &b);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let c = run_csr(&mut *executor, &cx, 1.0, (2, 3)).product();
    assert_eq!(c.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 2), (1, 0), (1, 2)]);
    assert_eq!((c[&(0, 0)], c[&(0, 2)], c[&(1, 0)]), (0.0, f64::INFINITY, 0.0));
    assert!(c[&(1, 2)].is_nan());
}

#[test]
fn half_factors_are_summed_in_single() {
    let mut rng = Random(31);
    let half = |r: &mut Random| f16::from_f64(r.real());
    let a = random(&mut rng, 30, 40, 200, half);
    let b = random(&mut rng, 40, 20, 200, half);
    let (a, b) = (Stored::csr((30, 40), &a), Stored::csr((40, 20), &b));
    let (op, cx, alpha) = (Operation::NonTranspose, unlimited(), 0.3f32);
    let problem = problem::<F16F32>(op, op, &a, &b);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room(Format::Csr, (30, 20), IndexBase::Zero, WIDTHS[0], nnz, f32::NAN);
    executor.numeric(&cx, scalar(&alpha), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F16F32>(alpha, &a.entries(), &b.entries()));
}

#[test]
fn columns_beyond_32_bits() {
    let far = 1i64 << 40;
    let a = Stored::csr((3, 2), &[(0, 1, 2.0), (0, 0, 1.0), (2, 1, 5.0)]);
    let b_entries = [(0, far + 5, 3.0), (0, 2, 1.0), (1, 1 << 33, 7.0), (1, 2, -1.0)];
    let b = Stored::new(Format::Csr, (2, far + 9), IndexBase::One, WIDTHS[2], &b_entries);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let mut problem = problem::<F64>(op, op, &a, &b);
    problem.value_updates = true;
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    assert_eq!(executor.symbolic(&cx).unwrap(), 5);
    for _ in 0..2 {
        let c = Stored::room(Format::Csr, (3, far + 9), IndexBase::One, WIDTHS[2], 5, f64::NAN);
        executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
        assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &b.entries()));
    }
    assert!(cx.allocator.peak_bytes() < 1 << 12, "memory follows the products, not the columns");
}

/// Counts, fails at the chosen allocation, and notes who called.
struct Faulty {
    state: Mutex<(usize, usize, Vec<ThreadId>)>,
}

impl RawMemory for Faulty {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        let mut state = self.state.lock();
        state.0 += 1;
        state.2.push(std::thread::current().id());
        if state.0 == state.1 {
            return Err(Error::out_of_memory(bytes));
        }
        HostMemory.allocate(bytes, stream)
    }

    fn release(&self, address: Address, stream: Address) {
        HostMemory.release(address, stream);
    }
}

#[test]
fn every_failed_allocation_is_an_error_that_can_be_retried() {
    let mut rng = Random(41);
    let n = 900;
    let entries = skewed(&mut rng, n as usize, 4, Random::integer);
    let a = Stored::new(Format::Csc, (n, n), IndexBase::Zero, WIDTHS[0], &entries);
    let b = Stored::new(Format::Csr, (n, n), IndexBase::Zero, WIDTHS[0], &entries);
    let expected = naive::<F64>(1.0, &entries, &entries);
    let op = Operation::NonTranspose;
    for value_updates in [false, true] {
        let mut problem = problem::<F64>(op, op, &a, &b);
        problem.value_updates = value_updates;
        let mut failures = 0;
        for failing in 1.. {
            let memory = Arc::new(Faulty { state: Mutex::new((0, failing, Vec::new())) });
            let cx = context(Allocator::new(Arc::clone(&memory) as Arc<dyn RawMemory>, Address::NULL, usize::MAX));
            let before = failures;
            let mut expect_failure = |error: Error| {
                assert_eq!(error.status, Status::AllocFailed);
                failures += 1;
            };
            let mut executor = match build(&cx, &problem, &choose(&problem)) {
                Ok(executor) => executor,
                Err(error) => {
                    assert_eq!(cx.allocator.live_bytes(), 0);
                    expect_failure(error);
                    build(&cx, &problem, &choose(&problem)).unwrap()
                }
            };
            let nnz = executor.symbolic(&cx).or_else(|error| {
                expect_failure(error);
                executor.symbolic(&cx)
            });
            // CSC: rows are computed, then transposed.
            let c = Stored::room(Format::Csc, (n, n), IndexBase::Zero, WIDTHS[0], nnz.unwrap(), f64::NAN);
            for _ in 0..2 {
                let held = cx.allocator.live_bytes();
                if let Err(error) = executor.numeric(&cx, scalar(&1.0), &c.matrix()) {
                    expect_failure(error);
                    assert_eq!(cx.allocator.live_bytes(), held);
                    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                }
                assert_eq!(c.product(), expected);
            }
            if let Err(error) = executor.update_values(&cx, a.matrix().values(), b.matrix().values()) {
                expect_failure(error);
                executor.update_values(&cx, a.matrix().values(), b.matrix().values()).unwrap();
            }
            if let Err(error) = executor.numeric(&cx, scalar(&1.0), &c.matrix()) {
                expect_failure(error);
                executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
            }
            assert_eq!(c.product(), expected);
            drop(executor);
            assert_eq!(cx.allocator.live_bytes(), 0);
            let state = memory.state.lock();
            assert!(state.2.iter().all(|&id| id == std::thread::current().id()), "a worker thread allocated");
            if failures == before {
                assert!(failing > 10);
                break;
            }
        }
    }
}

#[test]
fn memory_limit_fails_and_a_larger_one_succeeds() {
    let mut rng = Random(43);
    let n = 2000;
    let a = Stored::csr((n, n), &integers(&mut rng, n as usize, n as usize, 6000));
    let op = Operation::NonTranspose;
    let mut problem = problem::<F64>(op, op, &a, &a);
    problem.value_updates = true;
    let error = build(&limited(1000), &problem, &choose(&problem)).err().unwrap();
    assert_eq!(error.status, Status::InsufficientResources);
    assert!(error.message.contains("1000 bytes"), "{error}");

    let cx = unlimited();
    let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
    let error = executor.symbolic(&limited(5000)).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room(Format::Csr, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
    for limit in [10, 1000, 10_000, 60_000] {
        let small = limited(limit);
        let error = executor.numeric(&small, scalar(&1.0), &c.matrix()).unwrap_err();
        assert_eq!(error.status, Status::InsufficientResources);
        assert_eq!(small.allocator.live_bytes(), 0);
    }
    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &a.entries()));
}

#[test]
fn memory_follows_rows_and_entries_not_products() {
    // 200 equal rows of A choose the same 200 rows of B, each with the same
    // 100 columns: 4 million products, 20,000 entries.
    let pairs = |rows: i64, cols: i64| {
        (0..rows).flat_map(move |i| (0..cols).map(move |j| (i, j, 1.0))).collect::<Vec<_>>()
    };
    let (a, b) = (Stored::csr((200, 200), &pairs(200, 200)), Stored::csr((200, 100), &pairs(200, 100)));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &b);
    for rule in [Rule { small_cols: 0, ratio: 1 }, Rule::DEFAULT] {
        let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
        executor.rule = rule;
        executor.threads = 4;
        assert_eq!(executor.products(), 4_000_000);
        let c = run_csr(&mut executor, &cx, 1.0, (200, 100));
        assert!(c.values.iter().all(|&v| v == 200.0));
    }
    assert!(cx.allocator.peak_bytes() < 64 << 10, "{} bytes", cx.allocator.peak_bytes());
}

#[test]
fn c_is_checked() {
    let mut rng = Random(47);
    let a = Stored::csr((20, 20), &integers(&mut rng, 20, 20, 60));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &a);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], 60, 0.0);
    let error = executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap_err();
    assert_eq!(error.status, Status::InvalidState);
    let nnz = executor.symbolic(&cx).unwrap();
    assert!(nnz > 60);
    let mut refused = |c: SparseMatrix, text: &str| {
        let error = executor.numeric(&cx, scalar(&1.0), &c).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert!(error.message.starts_with("C: ") && error.message.contains(text), "{error}");
    };
    refused(c.matrix(), "60");
    let c = Stored::room(Format::Csr, (20, 21), IndexBase::Zero, WIDTHS[0], nnz, 0.0);
    refused(c.matrix(), "20 × 21");
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], nnz, 0.0f32);
    refused(c.matrix(), "fp32");
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], nnz, 0.0);
    refused(c.matrix().with_values(a.matrix().values()), "values of A");
    refused(c.matrix().with_values(c.indices.address()), "colInd");
    refused(c.matrix().with_values(Address::new(&a.values[59])), "values of A");
    refused(c.matrix().with_values(Address::NULL), "NULL");
    let error = executor.numeric(&cx, Address::NULL, &c.matrix()).unwrap_err();
    assert!(error.message.starts_with("alpha"));
    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &a.entries()));
}
