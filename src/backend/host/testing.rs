//! Helpers for the tests of SpMV and SpMM: a matrix as a user would store it, numbers of every type, and the
//! tolerance of comparisons.

use std::sync::Arc;

use num_complex::{Complex32, Complex64};
use testkit::Random;

use crate::algorithm::Algorithm;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{Allocator, Buffer, Context, HostMemory, Workspace};
use crate::select::{Choice, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, DataType, Element, IndexBase, IndexType, PointerMode, Storage};

/// The supported pairs of (offset, index) types.
pub(crate) const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// Conversion of an accumulator to and from a complex f64, which holds all of them exactly.
pub(crate) trait Number: Accumulator {
    fn new(value: Complex64) -> Self;
    fn get(self) -> Complex64;
}

macro_rules! numbers {
    ($($ty:ty, $new:expr, $get:expr;)*) => { $(impl Number for $ty {
        fn new(value: Complex64) -> Self { ($new)(value) }
        fn get(self) -> Complex64 { ($get)(self) }
    })* };
}
numbers! {
    f32, |v: Complex64| v.re as f32, |v: f32| Complex64::from(f64::from(v));
    f64, |v: Complex64| v.re, Complex64::from;
    Complex32, |v: Complex64| Complex32::new(v.re as f32, v.im as f32), |v: Complex32| Complex64::new(v.re.into(), v.im.into());
    Complex64, |v| v, |v| v;
}

pub(crate) fn value<A: Number, V: Storage<A>>(value: V) -> Complex64 {
    value.widen().get()
}

/// Returns a type's unit roundoff and half its smallest positive number.
fn rounding(value_type: DataType) -> (f64, f64) {
    match value_type {
        DataType::R64F | DataType::C64F => (f64::EPSILON / 2.0, 0.0),
        DataType::R32F | DataType::C32F => (f64::from(f32::EPSILON) / 2.0, 1e-45),
        DataType::R16F => (f64::powi(2.0, -11), f64::powi(2.0, -25)),
        DataType::R16BF => (f64::powi(2.0, -8), 1e-40),
        DataType::R8I | DataType::R32I => unreachable!("no operation takes integers"),
    }
}

/// Returns the largest error of a sum of `terms` products whose absolute values sum to `absolute`, rounded
/// once to y's type. Complex arithmetic has up to 4 roundings per term.
pub(crate) fn tolerance<C: Combo>(terms: usize, absolute: f64, exact: Complex64) -> f64 {
    let (sum, (store, tiny)) = (rounding(C::Acc::TYPE).0, rounding(C::Y::TYPE));
    4.0 * (terms + 4) as f64 * sum * absolute + 2.0 * store * exact.norm() + tiny
}

/// Generator of random numbers of the storage types.
pub(crate) trait Numbers {
    /// Returns a number with a full mantissa in [−1, 1), rounded to the type.
    fn number<A: Number, V: Storage<A>>(&mut self) -> V;

    fn numbers<A: Number, V: Storage<A>>(&mut self, len: usize) -> Vec<V> {
        (0..len).map(|_| self.number()).collect()
    }
}

impl Numbers for Random {
    fn number<A: Number, V: Storage<A>>(&mut self) -> V {
        V::round(A::new(Complex64::new(self.real(), self.real())))
    }
}

/// A CSR matrix with unsorted columns and duplicates.
pub(crate) struct UnsortedMatrix<V> {
    pub rows: usize,
    pub cols: usize,
    /// (row, column) of each entry, base 0, rows ascending.
    pub entries: Vec<(usize, usize)>,
    pub values: Vec<V>,
    base: i64,
    offsets: (Vec<i32>, Vec<i64>),
    indices: (Vec<i32>, Vec<i64>),
}

impl<V: Element> UnsortedMatrix<V> {
    /// Creates a matrix with rows of these lengths, and with columns and values from a seeded generator.
    pub fn random<A: Number>(random: &mut Random, base: IndexBase, cols: usize, lengths: &[usize]) -> Self
    where
        V: Storage<A>,
    {
        let entries: Vec<_> = lengths
            .iter()
            .enumerate()
            .flat_map(|(row, &length)| (0..length).map(move |_| row))
            .map(|row| (row, random.below(cols)))
            .collect();
        let values = random.numbers(entries.len());
        let base = i64::from(base.code());
        let mut offsets = vec![base];
        for &length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length as i64);
        }
        let indices: Vec<i64> = entries.iter().map(|&(_, col)| col as i64 + base).collect();
        let narrow = |wide: &[i64]| wide.iter().map(|&v| v as i32).collect();
        UnsortedMatrix {
            rows: lengths.len(),
            cols,
            entries,
            values,
            base,
            offsets: (narrow(&offsets), offsets),
            indices: (narrow(&indices), indices),
        }
    }

    /// Moves an entry to another column.
    pub fn set_column(&mut self, at: usize, col: usize) {
        self.entries[at].1 = col;
        let index = col as i64 + self.base;
        (self.indices.0[at], self.indices.1[at]) = (index as i32, index);
    }

    /// Returns the descriptor with indices of these types.
    pub fn describe(&self, (offset_type, index_type): (IndexType, IndexType)) -> SparseMatrix {
        let address = |index: IndexType, arrays: &(Vec<i32>, Vec<i64>)| match index {
            IndexType::I64 => Address::new(arrays.1.as_ptr()),
            _ => Address::new(arrays.0.as_ptr()),
        };
        let arrays = SparseArrays::Csr(Compressed {
            major: self.rows as i64,
            minor: self.cols as i64,
            nnz: self.entries.len() as i64,
            offsets: address(offset_type, &self.offsets),
            indices: address(index_type, &self.indices),
            values: Address::new(self.values.as_ptr()),
            offset_type,
            index_type,
            base: IndexBase::from_code(self.base as i32).unwrap(),
            value_type: V::TYPE,
        });
        SparseMatrix { arrays, writable: false, temporary: false }
    }
}

/// Returns a context for analysis, with unlimited memory.
pub(crate) fn context() -> Context {
    Context {
        stream: Address::NULL,
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator: Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX),
    }
}

/// A context for execute: its workspace is full of NaN, and its allocator refuses every allocation.
pub(crate) struct Execution {
    pub cx: Context,
    _workspace: Buffer<u8>,
}

impl Execution {
    pub fn new(bytes: usize) -> Self {
        let cx = context();
        let mut buffer = Buffer::<u8>::zeroed(&cx.allocator, bytes).unwrap();
        buffer.fill(0xff);
        let workspace = Workspace { address: buffer.address(), bytes };
        let allocator = cx.allocator.scoped(0);
        Execution { cx: Context { workspace, allocator, ..cx }, _workspace: buffer }
    }
}

pub(crate) fn choice(a: Source) -> Choice {
    Choice::new(Algorithm::Csr, a)
}

pub(crate) fn scalar<T>(value: &T) -> Address {
    Address::new(std::ptr::from_ref(value))
}
