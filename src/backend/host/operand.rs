//! A sparse operand as host executors read it: rows of op(A), from the user's
//! arrays or from a canonical copy.

use std::ops::Range;

use bytemuck::Pod;
use half::f16;

use super::lanes;
use crate::backend::LayoutInfo;
use crate::error::{Error, Result};
use crate::format::csr::{CsrLayout, Sorted};
use crate::format::narrowing::{self, Form, Narrow};
use crate::format::sell::{Origin, SellLayout};
use crate::matrix::bsr::BsrPattern;
use crate::matrix::compressed::{self, Compressed, Names, Pattern};
use crate::matrix::coo::CooPattern;
use crate::matrix::{no_arrays, SparseArrays, SparseMatrix, Structure};
use crate::memory::{self, pieces, pool, Buffer, Context};
use crate::reorder::features::FeatureSet;
use crate::reorder::{policy, Permutation};
use crate::select::{RowOrder, Source};
use crate::types::{Address, Element, Index, IndexType, LayoutKind, Operation};

/// A sparse operand.
#[derive(Debug)]
pub enum Operand<V: Element> {
    /// Rows of op(A) are the compressed dimension of the user's arrays.
    InPlace(Compressed),
    /// A copy.
    Canonical(CsrLayout<V>),
}

/// Rows of a sparse matrix, typed.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, I, J, V> {
    /// Offsets and indices.
    pub pattern: Pattern<'a, I, J>,
    /// Values.
    pub values: &'a [V],
}

impl<I: Index, J: Index, V: Element> Rows<'_, I, J, V> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.major
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.pattern.minor
    }

    /// Positions of a row's entries.
    #[inline(always)]
    pub fn range(&self, row: usize) -> Range<usize> {
        self.pattern.range(row)
    }
}

/// Runs `$body` with `$rows: Rows<'_, I, J, V>` of an `&Operand<V>`, once per
/// (offset, index) type; `$name` is the argument that errors name.
macro_rules! with_rows {
    ($operand:expr, $name:expr, $rows:ident => $body:expr) => {{
        use $crate::backend::host::operand::{open_rows, Operand, Rows};
        use $crate::types::IndexType;
        match $operand {
            Operand::Canonical(layout) => {
                let $rows = Rows { pattern: layout.pattern(), values: layout.values() };
                $body
            }
            Operand::InPlace(m) => match (m.offset_type, m.index_type) {
                (IndexType::I32, _) => {
                    let $rows = open_rows::<i32, i32, _>($name, m)?;
                    $body
                }
                (_, IndexType::I32) => {
                    let $rows = open_rows::<i64, i32, _>($name, m)?;
                    $body
                }
                _ => {
                    let $rows = open_rows::<i64, i64, _>($name, m)?;
                    $body
                }
            },
        }
    }};
}
pub(crate) use with_rows;

/// Opens the user's arrays; `with_rows!` has matched the index types.
pub(crate) fn open_rows<'a, I: Index, J: Index, V: Element>(
    name: &str,
    m: &Compressed,
) -> Result<Rows<'a, I, J, V>> {
    let pattern = open_pattern(name, m, false)?;
    // SAFETY: the descriptor promises nnz values that stay valid and unchanged
    // while a call that reads them runs.
    let values = unsafe { memory::open(name, m.values, m.nnz as usize)? };
    Ok(Rows { pattern, values })
}

fn open_pattern<'a, I: Index, J: Index>(
    name: &str,
    m: &Compressed,
    by_columns: bool,
) -> Result<Pattern<'a, I, J>> {
    let offsets = if m.major == 0 { 0 } else { m.major as usize + 1 };
    // SAFETY: the descriptor promises major + 1 offsets and nnz indices that
    // stay valid and unchanged for the plan's life.
    let (offsets, indices) =
        unsafe { (memory::open(name, m.offsets, offsets)?, memory::open(name, m.indices, m.nnz as usize)?) };
    Ok(Pattern {
        major: m.major as usize,
        minor: m.minor as usize,
        base: i64::from(m.base.code()),
        offsets,
        indices,
        by_columns,
    })
}

/// The user's pattern with 64-bit offsets and 32-bit columns. Those of other types are copied to `copies`.
fn plain_pattern<'a>(
    cx: &Context,
    name: &str,
    m: &Compressed,
    copies: &'a mut (Option<Buffer<i64>>, Option<Buffer<i32>>),
) -> Result<Pattern<'a, i64, i32>> {
    fn copy<F: Index, T: Index>(cx: &Context, from: &[F]) -> Result<Buffer<T>> {
        const GRAIN: usize = 1 << 15;
        let mut to = Buffer::<T>::zeroed(&cx.allocator, from.len())?;
        pieces::for_each(pieces::chunks(&mut to, GRAIN), |at, to| {
            to.iter_mut().zip(&from[at * GRAIN..]).for_each(|(to, from)| *to = T::from_i64(from.to_i64()));
        });
        Ok(to)
    }
    if i32::try_from(m.minor).is_err() {
        let text = format!("{name}: {} columns are more than 31 bits number", m.minor);
        return Err(Error::unsupported(text));
    }
    let offsets = if m.major == 0 { 0 } else { m.major as usize + 1 };
    // SAFETY: as in `open_pattern`.
    let (offsets, indices) = unsafe {
        let offsets = match m.offset_type {
            IndexType::I64 => memory::open(name, m.offsets, offsets)?,
            _ => &**copies.0.insert(copy(cx, memory::open::<i32>(name, m.offsets, offsets)?)?),
        };
        let indices = match m.index_type {
            IndexType::I64 => {
                &**copies.1.insert(copy(cx, memory::open::<i64>(name, m.indices, m.nnz as usize)?)?)
            }
            _ => memory::open(name, m.indices, m.nnz as usize)?,
        };
        (offsets, indices)
    };
    let (major, minor, base) = (m.major as usize, m.minor as usize, i64::from(m.base.code()));
    Ok(Pattern { major, minor, base, offsets, indices, by_columns: false })
}

/// Something generic over the typed view of a pattern.
pub(crate) trait EntriesVisitor {
    /// What it makes.
    type Output;
    /// The generic code; the pattern has been validated.
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Self::Output>;
}

/// Opens the pattern of any format, validates it, and runs `visitor`.
pub(crate) fn with_entries<T: EntriesVisitor>(a: &SparseMatrix, name: &str, visitor: T) -> Result<T::Output> {
    use crate::types::IndexType::{I32, I64};
    fn compressed<I: Index, J: Index, T: EntriesVisitor>(
        m: &Compressed,
        names: &Names,
        by_columns: bool,
        name: &str,
        visitor: T,
    ) -> Result<T::Output> {
        let pattern = open_pattern::<I, J>(name, m, by_columns)?;
        pool::run(|| pattern.validate(name, names))?;
        visitor.visit(&pattern)
    }
    fn blocked<I: Index, J: Index, T: EntriesVisitor>(
        m: &crate::matrix::Bsr,
        name: &str,
        visitor: T,
    ) -> Result<T::Output> {
        let blocks = open_pattern::<I, J>(name, &m.pattern(), false)?;
        pool::run(|| blocks.validate(name, &compressed::BSR))?;
        let (row_block, col_block) = (m.row_block as usize, m.col_block as usize);
        visitor.visit(&BsrPattern { blocks, row_block, col_block, order: m.block_order })
    }
    fn coordinates<J: Index, T: EntriesVisitor>(
        m: &crate::matrix::Coo,
        name: &str,
        visitor: T,
    ) -> Result<T::Output> {
        // SAFETY: the descriptor promises nnz row and column indices that stay
        // valid and unchanged for the plan's life.
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
    match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => {
            let by_columns = matches!(a.arrays, SparseArrays::Csc(_));
            let names = if by_columns { &compressed::CSC } else { &compressed::CSR };
            match (m.offset_type, m.index_type) {
                (I32, _) => compressed::<i32, i32, T>(m, names, by_columns, name, visitor),
                (_, I32) => compressed::<i64, i32, T>(m, names, by_columns, name, visitor),
                _ => compressed::<i64, i64, T>(m, names, by_columns, name, visitor),
            }
        }
        SparseArrays::Bsr(m) => match (m.offset_type, m.index_type) {
            (I32, _) => blocked::<i32, i32, T>(m, name, visitor),
            (_, I32) => blocked::<i64, i32, T>(m, name, visitor),
            _ => blocked::<i64, i64, T>(m, name, visitor),
        },
        SparseArrays::Coo(m) => match m.index_type {
            I64 => coordinates::<i64, T>(m, name, visitor),
            _ => coordinates::<i32, T>(m, name, visitor),
        },
        SparseArrays::Tile(_) => Err(no_arrays(name)),
    }
}

/// Nothing but the validation.
struct Validate;

impl EntriesVisitor for Validate {
    type Output = ();
    fn visit<E: crate::matrix::Entries>(self, _: &E) -> Result<()> {
        Ok(())
    }
}

/// The structure.
pub(crate) struct Inspect;

impl EntriesVisitor for Inspect {
    type Output = Structure;
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Structure> {
        Ok(pool::run(|| entries.structure()))
    }
}

/// The entries in the order of rows of op(A).
struct Sort<'a>(&'a Context, Operation);

impl EntriesVisitor for Sort<'_> {
    type Output = Sorted;
    fn visit<E: crate::matrix::Entries>(self, entries: &E) -> Result<Sorted> {
        Sorted::of(&self.0.allocator, entries, self.1)
    }
}

/// The features of the rows of op(A).
pub(super) fn row_features(cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<FeatureSet> {
    let sorted = with_entries(a, name, Sort(cx, op))?;
    // Values of the least size: nobody reads them.
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
    // SAFETY: the descriptor promises that many values, which stay valid and
    // unchanged while a call that reads them runs.
    let values = unsafe { memory::open(name, a.values(), a.shape().2 as usize)? };
    let sorted = with_entries(a, name, Sort(cx, op))?;
    CsrLayout::gather(&cx.allocator, sorted, values, keep_positions)
}

impl<V: Element> Operand<V> {
    /// Validates the pattern and takes the matrix as `source` says. Errors
    /// name the argument `name`.
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

    /// The rows in an order that was chosen, if that is one by name, and the order: position p has the row
    /// `order[p]` of op(A). What is put in order is a copy that keeps where its values come from.
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

    /// Calls `f` with the rows in 64-bit offsets and 32-bit columns, which is what layouts are built from, so that
    /// their builders exist once and not for each type of the user's indices: of others copies are made.
    pub fn with_plain<R>(
        &self,
        cx: &Context,
        name: &str,
        f: impl FnOnce(&Rows<'_, i64, i32, V>) -> Result<R>,
    ) -> Result<R> {
        let mut copies = (None, None);
        let (pattern, values) = match self {
            Operand::Canonical(layout) => (layout.pattern(), layout.values()),
            // SAFETY: as in `open_rows`.
            Operand::InPlace(m) => (plain_pattern(cx, name, m, &mut copies)?, unsafe {
                memory::open(name, m.values, m.nnz as usize)?
            }),
        };
        f(&Rows { pattern, values })
    }

    /// The same rows in slices, with values in the form of fewest bytes unless positions
    /// are kept: new values need not fit. `keep_positions` as in [`Self::build`].
    pub fn arrange(&self, cx: &Context, keep_positions: bool) -> Result<SellLayout<V>>
    where
        V: Narrow,
    {
        let origin = self.origin(keep_positions);
        self.with_plain(cx, "A", |rows| {
            let form = match lanes::reader() {
                Some(reader) if !keep_positions => narrowing::narrowest(rows.values, reader),
                _ => Form::Full,
            };
            SellLayout::build(&cx.allocator, &rows.pattern, rows.values, form, origin)
        })
    }

    /// Where the values come from.
    pub fn origin(&self, keep: bool) -> Origin<'_> {
        let positions = match self {
            Operand::InPlace(_) => None,
            Operand::Canonical(layout) => layout.positions(),
        };
        Origin { keep, positions }
    }

    /// What this is.
    pub fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Csr, in_place: matches!(self, Operand::InPlace(_)), fill: 1.0 }
    }
}

/// An address and a length that several threads write at disjoint places.
#[derive(Clone, Copy, Debug)]
pub struct Shared<T> {
    address: Address,
    len: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// The whole of a slice, for as long as the caller keeps it borrowed.
    pub fn new(slice: &mut [T]) -> Self {
        Shared {
            address: Address::new(slice.as_mut_ptr()),
            len: slice.len(),
            marker: std::marker::PhantomData,
        }
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

    /// A part of the slice.
    ///
    /// # Safety
    /// No other thread reads or writes these elements while the part lives,
    /// and the slice is still borrowed.
    pub unsafe fn part<'a>(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: inside the slice; the rest is the caller's promise.
        unsafe {
            std::slice::from_raw_parts_mut(self.address.as_mut_ptr::<T>().add(range.start), range.len())
        }
    }
}
