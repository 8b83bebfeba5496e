//! Sparse operands of host executors: the rows of op(A), in the user's arrays or in a canonical copy.

use std::ops::Range;

use bytemuck::Pod;
use half::f16;

use crate::backend::LayoutInfo;
use crate::error::{Error, Result};
use crate::format::csr::{CsrLayout, Sorted};
use crate::format::sell::Origin;
use crate::matrix::bsr::BsrPattern;
use crate::matrix::compressed::{self, Compressed, Pattern};
use crate::matrix::coo::CooPattern;
use crate::matrix::{no_arrays, SparseArrays, SparseMatrix, Structure};
use crate::memory::{self, pieces, pool, Buffer, Context};
use crate::reorder::features::FeatureSet;
use crate::reorder::{policy, Permutation};
use crate::select::{RowOrder, Source};
use crate::types::{Address, Element, Index, IndexType, LayoutKind, Operation};

/// A sparse operand of an executor.
#[derive(Debug)]
pub enum Operand<V: Element> {
    /// The user's arrays, whose compressed dimension is the rows of op(A).
    InPlace(Compressed),
    /// A copy in canonical CSR.
    Canonical(CsrLayout<V>),
}

/// Rows of a sparse matrix with 64-bit offsets and 32-bit columns.
#[derive(Clone, Copy, Debug)]
pub struct HostRows<'a, V> {
    /// Row offsets and column indices.
    pub pattern: Pattern<'a, i64, i32>,
    /// Values.
    pub values: &'a [V],
}

/// Offsets or indices of 32 or 64 bits. Code outside the innermost loops reads them through this type: that
/// costs one predictable branch per row or entry, and the code exists once instead of once per pair of types.
#[derive(Clone, Copy, Debug)]
pub enum Ints<'a> {
    /// 32-bit integers.
    I32(&'a [i32]),
    /// 64-bit integers.
    I64(&'a [i64]),
}

/// Elements that one parallel task copies: about 10 µs of work.
const COPIED: usize = 1 << 14;

impl<'a> Ints<'a> {
    /// # Safety
    /// The conditions of [`memory::open`] hold for elements of `index_type`.
    unsafe fn open(name: &str, address: Address, len: usize, index_type: IndexType) -> Result<Self> {
        // SAFETY: the caller's promise, whatever the type.
        unsafe {
            Ok(match index_type {
                IndexType::I64 => Ints::I64(memory::open(name, address, len)?),
                _ => Ints::I32(memory::open(name, address, len)?),
            })
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Ints::I32(slice) => slice.len(),
            Ints::I64(slice) => slice.len(),
        }
    }

    /// Returns one element.
    #[inline(always)]
    pub fn get(&self, at: usize) -> i64 {
        match self {
            Ints::I32(slice) => i64::from(slice[at]),
            Ints::I64(slice) => slice[at],
        }
    }

    /// Returns all elements in type T, which must be able to hold them. `copy` receives them if they have
    /// another type. It is never inlined, since each layout of each type would have its code.
    #[inline(never)]
    pub fn to_slice<T: Index>(self, cx: &Context, copy: &'a mut Option<Buffer<T>>) -> Result<&'a [T]> {
        match (T::TYPE, self) {
            (IndexType::I32, Ints::I32(slice)) => return Ok(bytemuck::cast_slice(slice)),
            (IndexType::I64, Ints::I64(slice)) => return Ok(bytemuck::cast_slice(slice)),
            _ => {}
        }
        let copy = copy.insert(Buffer::zeroed(&cx.allocator, self.len())?);
        pieces::for_each(pieces::chunks(copy, COPIED), |piece, to| {
            for (i, to) in to.iter_mut().enumerate() {
                *to = T::from_i64(self.get(piece * COPIED + i));
            }
        });
        Ok(copy)
    }
}

impl<'a> From<&'a [i32]> for Ints<'a> {
    fn from(slice: &'a [i32]) -> Self {
        Ints::I32(slice)
    }
}

impl<'a> From<&'a [i64]> for Ints<'a> {
    fn from(slice: &'a [i64]) -> Self {
        Ints::I64(slice)
    }
}

/// Rows of an operand, without its values. Its pattern has been validated.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Index base, 0 or 1.
    pub base: i64,
    /// `rows + 1` offsets; empty if there are no rows.
    pub offsets: Ints<'a>,
    /// Column indices of the entries.
    pub indices: Ints<'a>,
}

impl Factor<'_> {
    /// Returns the position of a row's first entry; for `row` equal to `rows` the number of entries.
    #[inline(always)]
    pub fn start(&self, row: usize) -> usize {
        (self.offsets.get(row) - self.base) as usize
    }

    /// Returns the positions of a row's entries.
    #[inline(always)]
    pub fn range(&self, row: usize) -> Range<usize> {
        self.start(row)..self.start(row + 1)
    }

    /// Returns the column of the entry at a position.
    #[inline(always)]
    pub fn col(&self, position: usize) -> usize {
        (self.indices.get(position) - self.base) as usize
    }
}

/// Code that is generic over the typed view of a pattern.
pub(crate) trait EntriesVisitor {
    /// Result of the code.
    type Output;
    /// Runs the code; the pattern has been validated.
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Self::Output>;
}

/// Opens the pattern of any format, validates it, and runs `visitor` on it.
pub(crate) fn with_entries<T: EntriesVisitor>(a: &SparseMatrix, name: &str, visitor: T) -> Result<T::Output> {
    use crate::types::IndexType::{I32, I64};
    /// Opens the pattern of a CSR, CSC or BSR matrix, with the index arrays of `m`.
    fn compressed<I: Index, J: Index, T: EntriesVisitor>(
        a: &SparseMatrix,
        m: &Compressed,
        name: &str,
        visitor: T,
    ) -> Result<T::Output> {
        let (names, by_columns) = match a.arrays {
            SparseArrays::Csc(_) => (&compressed::CSC, true),
            SparseArrays::Bsr(_) => (&compressed::BSR, false),
            _ => (&compressed::CSR, false),
        };
        let (major, minor, base) = (m.major as usize, m.minor as usize, i64::from(m.base.code()));
        // SAFETY: the descriptor promises major + 1 offsets and nnz indices that stay valid and unchanged for
        // the plan's life.
        let (offsets, indices) = unsafe {
            let offsets = memory::open::<I>(name, m.offsets, if major == 0 { 0 } else { major + 1 })?;
            (offsets, memory::open::<J>(name, m.indices, m.nnz as usize)?)
        };
        let pattern = Pattern { major, minor, base, offsets, indices, by_columns };
        pool::run(|| pattern.validate(name, names))?;
        let SparseArrays::Bsr(m) = &a.arrays else { return visitor.visit(&pattern) };
        let (row_block, col_block) = (m.row_block as usize, m.col_block as usize);
        visitor.visit(&BsrPattern { blocks: pattern, row_block, col_block, order: m.block_order })
    }
    fn coordinates<J: Index, T: EntriesVisitor>(
        m: &crate::matrix::Coo,
        name: &str,
        visitor: T,
    ) -> Result<T::Output> {
        // SAFETY: the descriptor promises nnz row and column indices that stay valid and unchanged for the
        // plan's life.
        let (row_indices, col_indices) = unsafe {
            (
                memory::open::<J>(name, m.row_indices, m.nnz as usize)?,
                memory::open(name, m.col_indices, m.nnz as usize)?,
            )
        };
        let (rows, cols, base) = (m.rows as usize, m.cols as usize, i64::from(m.base.code()));
        let pattern = CooPattern { rows, cols, base, row_indices, col_indices };
        pool::run(|| pattern.validate(name))?;
        visitor.visit(&pattern)
    }
    let m = match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => *m,
        SparseArrays::Bsr(m) => m.pattern(),
        SparseArrays::Coo(m) if m.index_type == I64 => return coordinates::<i64, T>(m, name, visitor),
        SparseArrays::Coo(m) => return coordinates::<i32, T>(m, name, visitor),
        SparseArrays::Tile(_) => return Err(no_arrays(name)),
    };
    match (m.offset_type, m.index_type) {
        (I32, _) => compressed::<i32, i32, T>(a, &m, name, visitor),
        (_, I32) => compressed::<i64, i32, T>(a, &m, name, visitor),
        _ => compressed::<i64, i64, T>(a, &m, name, visitor),
    }
}

/// Visitor that does nothing: the pattern is only validated.
struct Validate;

impl EntriesVisitor for Validate {
    type Output = ();
    fn visit<E: crate::matrix::Entries>(self, _: &E) -> Result<()> {
        Ok(())
    }
}

/// Visitor that returns the pattern's structure.
pub(crate) struct Inspect;

impl EntriesVisitor for Inspect {
    type Output = Structure;
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Structure> {
        Ok(pool::run(|| entries.structure()))
    }
}

/// Visitor that sorts the entries by rows of op(A).
struct Sort<'a>(&'a Context, Operation);

impl EntriesVisitor for Sort<'_> {
    type Output = Sorted;
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Sorted> {
        Sorted::of(&self.0.allocator, entries, self.1)
    }
}

/// Returns the features of the rows of op(A), by which row orders are learned.
pub(super) fn row_features(cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<FeatureSet> {
    let sorted = with_entries(a, name, Sort(cx, op))?;
    // Placeholder values of the smallest type, which nothing reads.
    let values = Buffer::<f16>::zeroed(&cx.allocator, sorted.len())?;
    let rows = CsrLayout::gather(&cx.allocator, sorted, &values, false)?;
    Ok(pool::run(|| FeatureSet::of(&rows.pattern())))
}

fn canonicalise<V: Element>(
    cx: &Context,
    a: &SparseMatrix,
    op: Operation,
    name: &str,
    keep_positions: bool,
) -> Result<CsrLayout<V>> {
    // SAFETY: the descriptor promises that many values, which stay valid and unchanged while a call that
    // reads them runs.
    let values = unsafe { memory::open(name, a.values(), a.shape().2 as usize)? };
    let sorted = with_entries(a, name, Sort(cx, op))?;
    CsrLayout::gather(&cx.allocator, sorted, values, keep_positions)
}

impl<V: Element> Operand<V> {
    /// Validates the pattern and builds the operand from `source`. Errors name the argument `name`.
    pub fn build(
        cx: &Context,
        a: &SparseMatrix,
        op: Operation,
        source: Source,
        name: &str,
        keep_positions: bool,
    ) -> Result<Self> {
        match (source, &a.arrays) {
            (Source::InPlace, SparseArrays::Csr(m) | SparseArrays::Csc(m)) => {
                with_entries(a, name, Validate)?;
                Ok(Operand::InPlace(*m))
            }
            _ => Ok(Operand::Canonical(canonicalise(cx, a, op, name, keep_positions)?)),
        }
    }

    /// Reorders the rows if `order` is a named one, and returns the order too: position p has the row
    /// `order[p]` of op(A). Reordered operands are canonical copies that keep the origin of their values.
    pub fn in_order(self, cx: &Context, order: &RowOrder) -> Result<(Self, Option<Permutation>)> {
        match self {
            Operand::Canonical(layout) if order.policy.is_named() => {
                debug_assert!(layout.positions().is_some());
                let pattern = layout.pattern();
                let order = match &order.kept {
                    Some(kept) => kept.permutation(&cx.allocator, pattern.major)?,
                    None => policy::order(&cx.allocator, &pattern, order.policy)?,
                };
                Ok((Operand::Canonical(layout.permuted(&cx.allocator, &order)?), Some(order)))
            }
            other => Ok((other, None)),
        }
    }

    /// Takes new values; `a` is the matrix with its values at the new address.
    pub fn update_values(&mut self, cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<()> {
        match self {
            Operand::InPlace(m) => m.values = a.values(),
            Operand::Canonical(layout) => {
                // SAFETY: as in `canonicalise`.
                let values = unsafe { memory::open(name, a.values(), a.shape().2 as usize)? };
                if !layout.refill(values) {
                    *layout = canonicalise(cx, a, op, name, false)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the rows and their values. Errors name the argument `name`.
    pub fn rows(&self, name: &str) -> Result<(Factor<'_>, &[V])> {
        Ok(match self {
            Operand::Canonical(layout) => {
                let Pattern { major, minor, base, offsets, indices, .. } = layout.pattern();
                let (offsets, indices) = (offsets.into(), indices.into());
                (Factor { rows: major, cols: minor, base, offsets, indices }, layout.values())
            }
            Operand::InPlace(m) => {
                let (rows, cols, nnz) = (m.major as usize, m.minor as usize, m.nnz as usize);
                let base = i64::from(m.base.code());
                // SAFETY: the descriptor promises major + 1 offsets, nnz indices and nnz values that stay
                // valid and unchanged while a call that reads them runs.
                unsafe {
                    let offsets =
                        Ints::open(name, m.offsets, if rows == 0 { 0 } else { rows + 1 }, m.offset_type)?;
                    let indices = Ints::open(name, m.indices, nnz, m.index_type)?;
                    (Factor { rows, cols, base, offsets, indices }, memory::open(name, m.values, nnz)?)
                }
            }
        })
    }

    /// Calls `f` with the rows in 64-bit offsets and 32-bit columns, so that builders of layouts are compiled
    /// once and not for each pair of index types. Index arrays of other types are copied.
    pub fn with_plain<R>(
        &self,
        cx: &Context,
        name: &str,
        f: impl FnOnce(&HostRows<'_, V>) -> Result<R>,
    ) -> Result<R> {
        let (Factor { rows, cols, base, offsets, indices }, values) = self.rows(name)?;
        if i32::try_from(cols).is_err() {
            return Err(Error::unsupported(format!("{name}: {cols} columns are more than 31 bits number")));
        }
        let (mut of_offsets, mut of_indices) = (None, None);
        let offsets = offsets.to_slice(cx, &mut of_offsets)?;
        let indices = indices.to_slice(cx, &mut of_indices)?;
        let pattern = Pattern { major: rows, minor: cols, base, offsets, indices, by_columns: false };
        f(&HostRows { pattern, values })
    }

    /// Returns the origin of the values, for layouts that are built from this operand.
    pub fn origin(&self, keep: bool) -> Origin<'_> {
        let positions = match self {
            Operand::InPlace(_) => None,
            Operand::Canonical(layout) => layout.positions(),
        };
        Origin { keep, positions }
    }

    /// Returns a description of the layout.
    pub fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Csr, in_place: matches!(self, Operand::InPlace(_)), fill: 1.0 }
    }
}

/// A slice that several threads write at disjoint positions.
#[derive(Clone, Copy, Debug)]
pub struct Shared<T> {
    address: Address,
    len: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// Creates the shared array from a slice, which the caller must keep borrowed while it is used.
    pub fn new(slice: &mut [T]) -> Self {
        Shared {
            address: Address::new(slice.as_mut_ptr()),
            len: slice.len(),
            marker: std::marker::PhantomData,
        }
    }

    /// Returns the address of the first element.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Reads an element.
    ///
    /// # Safety
    /// No other thread writes it at the same time, and the slice is still borrowed.
    #[inline(always)]
    pub unsafe fn get(&self, at: usize) -> T {
        assert!(at < self.len);
        // SAFETY: inside the slice; the rest is the caller's promise.
        unsafe { self.address.as_ptr::<T>().add(at).read() }
    }

    /// Writes an element.
    ///
    /// # Safety
    /// No other thread reads or writes it at the same time, and the slice is
    /// still borrowed.
    #[inline(always)]
    pub unsafe fn set(&self, at: usize, value: T) {
        assert!(at < self.len);
        // SAFETY: inside the slice; the rest is the caller's promise.
        unsafe { self.address.as_mut_ptr::<T>().add(at).write(value) }
    }

    /// Returns a part of the slice.
    ///
    /// # Safety
    /// No other thread reads or writes these elements while the part lives,
    /// and the slice is still borrowed.
    #[inline(always)]
    pub unsafe fn part<'a>(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the slice; the rest is the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(self.address.as_mut_ptr::<T>().add(range.start), range.len())
        }
    }
}
