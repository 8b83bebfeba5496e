//! Tests of matrices with wrong arrays, which analysis, tarsiaCheckSpMat and the calls without a plan must
//! find, in every format and on every backend.

use std::ptr::null_mut;

use bytemuck::Pod;
use client::{arg, Array, Memory};
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::{tarsiaPlan_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, plan, spgemm, spmat, spmm, spmv};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, Format, IndexBase, IndexType, Operation, Order, SpgemmAlg, SpmmAlg,
    SpmvAlg, Status,
};

use super::bad::{accepts, forget_message, mentions, names};
use super::sparse::Create;
use super::world::{made, World};
use crate::common::backends;
use crate::common::staged::upload;

/// Offsets or indices of either width, which the test changes after the descriptor was made.
enum Ints {
    I32(Array<'static, i32>),
    I64(Array<'static, i64>),
}

impl Ints {
    fn new(backend: BackendKind, kind: IndexType, numbers: &[i64], base: i64) -> Self {
        let numbers: Vec<i64> = numbers.iter().map(|&n| n + base).collect();
        match kind {
            IndexType::I32 => {
                Ints::I32(upload(backend, &numbers.iter().map(|&n| n as i32).collect::<Vec<_>>()))
            }
            _ => Ints::I64(upload(backend, &numbers)),
        }
    }

    fn address(&self) -> usize {
        match self {
            Ints::I32(numbers) => numbers.view().as_ptr().expose_provenance(),
            Ints::I64(numbers) => numbers.view().as_ptr().expose_provenance(),
        }
    }

    /// Replaces the number at a position by one that fits the width, and returns the old one.
    fn swap(&mut self, at: usize, number: i64) -> i64 {
        match self {
            Ints::I32(numbers) => i64::from(swap(numbers, at, number as i32)),
            Ints::I64(numbers) => swap(numbers, at, number),
        }
    }

    fn least(&self) -> i64 {
        match self {
            Ints::I32(_) => i64::from(i32::MIN),
            Ints::I64(_) => i64::MIN,
        }
    }

    fn most(&self) -> i64 {
        match self {
            Ints::I32(_) => i64::from(i32::MAX),
            Ints::I64(_) => i64::MAX,
        }
    }
}

fn swap<T: Pod>(array: &mut Array<'static, T>, at: usize, value: T) -> T {
    let before = array.download().unwrap()[at];
    array.write(at, &[value]).unwrap();
    before
}

/// 4 × 4 matrix (BSR: 2 × 2 blocks of 2 × 2) with arrays of its own:
///
/// ```text
///     1 . 2 .
///     . 3 . .
///     . . . .
///     4 . . 5
/// ```
struct PatternCase {
    create: Create,
    outer: Ints,
    inner: Ints,
    _values: Array<'static, f64>,
}

impl PatternCase {
    fn new(
        backend: BackendKind,
        format: Format,
        (offset, index): (IndexType, IndexType),
        base: IndexBase,
    ) -> Self {
        let b = i64::from(base.code());
        let (outer, inner, shape, nnz): (&[i64], &[i64], _, _) = match format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr => (&[0, 2, 3, 3, 5], &[0, 2, 1, 0, 3], (4, 4), 5),
            Format::Csc => (&[0, 2, 3, 4, 5], &[0, 3, 1, 0, 3], (4, 4), 5),
            Format::Coo => (&[0, 0, 1, 3, 3], &[0, 2, 1, 0, 3], (4, 4), 5),
            Format::Bsr => (&[0, 2, 3], &[0, 1, 0], (2, 2), 3),
        };
        let outer_type = if format == Format::Coo { index } else { offset };
        let (outer, inner) = (Ints::new(backend, outer_type, outer, b), Ints::new(backend, index, inner, b));
        let values = upload(backend, &vec![1.0; if format == Format::Bsr { 12 } else { 5 }]);
        let arrays = [outer.address(), inner.address(), values.view().as_ptr().expose_provenance()];
        let create = Create { shape, nnz, offset, index, base, block: (2, 2), arrays, ..Create::new(format) };
        PatternCase { create, outer, inner, _values: values }
    }

    fn describe(&self) -> tarsiaSpMatDescr_t {
        made(|out: *mut tarsiaSpMatDescr_t| {
            let mut a = null_mut();
            let code = self.create.call(&mut a);
            // SAFETY: `made` gives memory for the answer.
            unsafe { out.write(a) };
            code
        })
    }

    /// Returns faults to test: array (0 outer, 1 inner), position, wrong number, and text that the message
    /// must have.
    fn faults(&self) -> Vec<(usize, usize, i64, String)> {
        let (base, nnz) = (i64::from(self.create.base.code()), self.create.nnz);
        let [outer, inner, _] = self.create.names();
        let major = if self.create.format == Format::Bsr { 2 } else { 4 };
        let last = nnz as usize - 1;
        let mut out = Vec::new();
        let mut add = |array: usize, at: usize, number: i64| {
            out.push((array, at, number, format!("{}[{at}] = {number}", [outer, inner][array])));
        };
        // An index below the first and one above the last, at the ends of the array, and the numbers that
        // overflow when the base is subtracted.
        for number in [base - 1, base + major, self.inner.least(), self.inner.most()] {
            add(1, 0, number);
            add(1, last, number);
            if self.create.format == Format::Coo {
                add(0, 0, number);
                add(0, last, number);
            }
        }
        if self.create.format == Format::Coo {
            return out;
        }
        let rows = major as usize;
        for number in [1 - base, base + 1, self.outer.least()] {
            add(0, 0, number);
        }
        // An offset less than the one before it.
        add(0, rows, base + 1);
        add(0, rows - 1, self.outer.least());
        // An offset greater than the number of entries.
        add(0, 1, base + nnz + 1);
        add(0, 1, self.outer.most());
        // A last offset that is not the number of entries.
        add(0, rows, base + nnz - 1);
        add(0, rows, base + nnz + 1);
        add(0, rows, self.outer.most());
        out
    }

    fn array(&mut self, array: usize) -> &mut Ints {
        [&mut self.outer, &mut self.inner][array]
    }
}

const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;
const T: Operation = Operation::Transpose;
const R64: ComputeType = ComputeType::R64F;

/// Call that makes the library read a matrix.
struct Reader<'a> {
    what: &'static str,
    /// Argument that an error must name.
    name: &'static str,
    call: Box<dyn Fn() -> tarsiaStatus_t + 'a>,
    plan: Option<tarsiaPlan_t>,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let Some(plan) = self.plan {
            accepts("destroy", plan::tarsiaPlan_destroy(plan));
        }
    }
}

/// Returns all calls that read matrix `a`; `good` is a matrix without faults.
fn readers<'a>(
    world: &'a World,
    a: tarsiaSpMatDescr_t,
    good: tarsiaSpMatDescr_t,
    format: Format,
    dense: &'a [[usize; 2]; 2],
) -> Vec<Reader<'a>> {
    let handle = world.handle;
    let mut out = Vec::new();
    let mut read = |what, name, plan: Option<tarsiaPlan_t>, call: Box<dyn Fn() -> tarsiaStatus_t + 'a>| {
        out.push(Reader { what, name, call, plan });
    };
    // SAFETY: the descriptors' arrays live during the test,
    // answers are valid for a write, and alpha and beta are f64.
    let check = move || unsafe { spmat::tarsiaCheckSpMat(handle, a, null_mut(), null_mut()) };
    read("CheckSpMat", "A", None, Box::new(check));
    let analyze = |plan: tarsiaPlan_t| Box::new(move || plan::tarsiaPlan_analyze(handle, plan));
    for (what, op) in [("SpMV", N), ("SpMV of the transpose", T)] {
        // SAFETY: as above.
        let plan = made(|plan| unsafe {
            let (compute, alg) = (arg(R64), arg(SpmvAlg::Default));
            spmv::tarsiaSpMV_createPlan(handle, plan, arg(op), a, arg(F64), arg(F64), compute, alg)
        });
        read(what, "A", Some(plan), analyze(plan));
    }
    for (what, op) in [("SpMM", N), ("SpMM of the transpose", T)] {
        // SAFETY: as above.
        let plan = made(|plan| unsafe {
            let (order, alg) = (arg(Order::Col), arg(SpmmAlg::Default));
            spmm::tarsiaSpMM_createPlan(
                handle,
                plan,
                arg(op),
                arg(N),
                a,
                order,
                order,
                1,
                arg(F64),
                arg(F64),
                arg(R64),
                alg,
            )
        });
        read(what, "A", Some(plan), analyze(plan));
    }
    if matches!(format, Format::Csr | Format::Csc) {
        for (what, name, left, right) in [("SpGEMM, A", "A", a, good), ("SpGEMM, B", "B", good, a)] {
            for op in [N, T] {
                // SAFETY: as above.
                let plan = made(|plan| unsafe {
                    let alg = arg(SpgemmAlg::Default);
                    spgemm::tarsiaSpGEMM_createPlan(
                        handle,
                        plan,
                        arg(op),
                        arg(op),
                        left,
                        right,
                        arg(R64),
                        alg,
                    )
                });
                read(what, name, Some(plan), analyze(plan));
            }
        }
    }
    let (one, zero) = ((&raw const world.one).cast(), (&raw const world.zero).cast());
    let [[x, y], [b, c]] = *dense;
    for op in [N, T] {
        let (x, y) = (std::ptr::without_provenance(x), std::ptr::without_provenance_mut(y));
        // SAFETY: as above.
        let call = move || unsafe { spmv::tarsiaSpMV_once(handle, arg(op), one, a, x, zero, y, arg(R64)) };
        // On CUDA these calls only launch if rows of op(A) are contiguous, and do not check the pattern, as
        // their comments in the header say.
        let unchecked = matches!((format, op), (Format::Csr, N) | (Format::Csc, T));
        if world.kind != BackendKind::Cuda || !unchecked {
            read("SpMV_once", "A", None, Box::new(call));
        }
        let (b, c) = (std::ptr::without_provenance(b), std::ptr::without_provenance_mut(c));
        // SAFETY: as above.
        let call =
            move || unsafe { spmm::tarsiaSpMM_once(handle, arg(op), arg(N), one, a, b, zero, c, arg(R64)) };
        if world.kind != BackendKind::Cuda || !unchecked {
            read("SpMM_once", "A", None, Box::new(call));
        }
    }
    out
}

/// Returns tokens of vectors x, y and of matrices B, C that fit a 4 × 4 matrix.
fn dense(values: &mut Array<'static, f64>) -> [[usize; 2]; 2] {
    // SAFETY: the arrays outlive the descriptors; answers are valid for a write.
    let vector =
        |values: *mut f64| made(|out| unsafe { dnvec::tarsiaCreateDnVec(out, 4, values.cast(), arg(F64)) });
    let matrix = |values: *mut f64| {
        // SAFETY: as above.
        made(|out| unsafe {
            dnmat::tarsiaCreateDnMat(out, 4, 1, 4, values.cast(), arg(F64), arg(Order::Col))
        })
    };
    let [x, y, b, c] = [0, 4, 8, 12].map(|at| values.part_mut(at..at + 4).as_mut_ptr());
    [[vector(x).addr(), vector(y).addr()], [matrix(b).addr(), matrix(c).addr()]]
}

fn all_faults(kind: BackendKind, format: Format, types: (IndexType, IndexType), base: IndexBase) -> usize {
    let world = World::new(kind);
    let mut values = upload(kind, &[1.0; 16]);
    let operands = dense(&mut values);
    let mut count = 0;
    let faults = PatternCase::new(kind, format, types, base).faults();
    for (array, at, number, text) in faults {
        let (mut matrix, good) =
            (PatternCase::new(kind, format, types, base), PatternCase::new(kind, format, types, base));
        let (a, b) = (matrix.describe(), good.describe());
        let right = matrix.array(array).swap(at, number);
        assert_ne!(right, number, "{text} is no fault");
        let readers = readers(&world, a, b, format, &operands);
        for reader in &readers {
            let what =
                format!("{kind:?}, {}, {types:?}, {base:?}: {} with {text}", format.short(), reader.what);
            forget_message();
            let code = (reader.call)();
            let place = text.split(' ').next().expect("array[position]");
            names(code, Status::InvalidValue, reader.name)
                .and_then(|()| {
                    mentions(code, Status::InvalidValue, place.split('[').next().unwrap_or_default())
                })
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let message = client::last_message();
            // The message may give the position of the fault or of the neighbour that it contradicts.
            let mut places = [at.saturating_sub(1), at, at + 1].into_iter();
            let array = place.split('[').next().unwrap_or_default();
            assert!(places.any(|at| message.contains(&format!("{array}[{at}]"))), "{what}: `{message}`");
            count += 1;
        }
        // With the right number the same calls succeed.
        matrix.array(array).swap(at, right);
        for reader in &readers {
            accepts(reader.what, (reader.call)());
        }
        drop(readers);
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
        accepts("destroy", spmat::tarsiaDestroySpMat(b));
    }
    for vector in operands[0] {
        accepts("destroy", dnvec::tarsiaDestroyDnVec(std::ptr::without_provenance(vector)));
    }
    for matrix in operands[1] {
        accepts("destroy", dnmat::tarsiaDestroyDnMat(std::ptr::without_provenance(matrix)));
    }
    count
}

/// Tests a format with all index types and bases.
fn all_types(format: Format, least: usize) {
    use IndexType::{I32, I64};
    let types: &[(IndexType, IndexType)] =
        if format == Format::Coo { &[(I32, I32), (I64, I64)] } else { &[(I32, I32), (I64, I32), (I64, I64)] };
    let mut count = 0;
    for kind in backends() {
        for &types in types {
            for base in [IndexBase::Zero, IndexBase::One] {
                count += all_faults(kind, format, types, base);
            }
        }
    }
    assert!(count >= least, "only {count} faults were tried");
}

#[test]
fn faults_of_csr() {
    all_types(Format::Csr, 2500);
}

#[test]
fn faults_of_csc() {
    all_types(Format::Csc, 2500);
}

#[test]
fn faults_of_coo() {
    all_types(Format::Coo, 1000);
}

#[test]
fn faults_of_bsr() {
    all_types(Format::Bsr, 1500);
}

/// The message names the first wrong entry, also of a matrix that is large enough for several threads.
#[test]
fn first_fault_of_a_large_matrix() {
    let n = 100_000_i64;
    for kind in backends() {
        let world = World::new(kind);
        let (offsets, mut indices): (Vec<i64>, Vec<i64>) = ((0..=n).collect(), (0..n).collect());
        for at in [90_001, 70_003, 33_333] {
            indices[at] = n;
        }
        let (offsets, indices) = (upload(kind, &offsets), upload(kind, &indices));
        let values = upload(kind, &vec![1.0_f64; n as usize]);
        let create = Create {
            shape: (n, n),
            nnz: n,
            offset: IndexType::I64,
            index: IndexType::I64,
            arrays: [
                offsets.view().as_ptr().expose_provenance(),
                indices.view().as_ptr().expose_provenance(),
                values.view().as_ptr().expose_provenance(),
            ],
            ..Create::new(Format::Csr)
        };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        // SAFETY: the arrays live; no answer is wanted.
        let code = unsafe { spmat::tarsiaCheckSpMat(world.handle, a, null_mut(), null_mut()) };
        let message = client::last_message();
        assert_eq!(code as i32, Status::InvalidValue.code());
        assert!(message.contains("colInd[33333] = 100000"), "{kind:?}: {message}");
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
    }
}
