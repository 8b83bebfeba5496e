//! Output of SpGEMM: the user's arrays of C, checked and opened for writing, and the transposition of
//! computed rows into them.

use std::ops::Range;

use bytemuck::Pod;

use super::lists::{Columns, Lists};
use super::places::Key;
use crate::backend::host::operand::Shared;
use crate::error::Result;
use crate::matrix::{Compressed, SparseMatrix};
use crate::memory::{self, pieces, Buffer, Context};
use crate::operation::check_result;
use crate::types::{Address, DataType, Element, Format, Index, IndexType};

/// A matrix to write: C, or the target of a matrix in tiles.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    arrays: Compressed,
    by_columns: bool,
    /// Name of the argument for errors.
    name: &'a str,
}

impl<'a> Target<'a> {
    /// Opens C's arrays. The plan has checked C (format, shape, type, no memory shared with A or B), and C's
    /// creation that its numbers fit its index types. This function checks again what the writes below rely
    /// on: the length and type of the arrays.
    pub fn check(
        c: &SparseMatrix,
        name: &'a str,
        (rows, cols, nnz): (usize, usize, i64),
        value: DataType,
    ) -> Result<Self> {
        let arrays = check_result(name, c, (rows as i64, cols as i64, nnz), value)?;
        Ok(Target { arrays, by_columns: c.format() == Format::Csc, name })
    }

    /// Returns whether the compressed dimension of C is that of the computed rows; with `transposed` the
    /// computed rows are columns of the matrix.
    pub fn takes_rows(&self, transposed: bool) -> bool {
        self.by_columns == transposed
    }

    /// Allocates the memory for [`Staged::transpose_into`].
    pub fn starts(&self, cx: &Context) -> Result<Buffer<i64>> {
        Buffer::zeroed(&cx.allocator, self.arrays.major as usize + 1)
    }

    /// Opens one of the arrays.
    ///
    /// # Safety
    /// The conditions of [`Output::direct`].
    unsafe fn open<T: Pod>(&self, address: Address, len: i64) -> Result<&'a mut [T]> {
        // SAFETY: the caller's promise.
        unsafe { memory::open_mut(self.name, address, len as usize) }
    }
}

/// C's index array, which several threads write at disjoint positions.
#[derive(Clone, Copy, Debug)]
enum UserIndices {
    I32(Shared<i32>),
    I64(Shared<i64>),
}

impl UserIndices {
    /// Writes an index, which must fit into the type.
    ///
    /// # Safety
    /// The conditions of [`Shared::set`].
    #[inline(always)]
    unsafe fn set(&self, at: usize, index: i64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                UserIndices::I32(indices) => indices.set(at, index as i32),
                UserIndices::I64(indices) => indices.set(at, index),
            }
        }
    }
}

/// Destination of the rows of the product.
#[derive(Clone, Copy, Debug)]
pub struct Output<K, Y> {
    /// Columns in the plan's memory.
    kept: Option<Shared<K>>,
    /// C's index array and base.
    user: Option<(UserIndices, i64)>,
    values: Shared<Y>,
}

impl<K: Key, Y: Element> Output<K, Y> {
    /// Creates an output into the plan's own arrays.
    pub fn staging(kept: Option<&mut [K]>, values: &mut [Y]) -> Self {
        Output { kept: kept.map(Shared::new), user: None, values: Shared::new(values) }
    }

    /// Creates an output into C's arrays.
    ///
    /// # Safety
    /// C's arrays are as large as it says, share no memory, and nothing else reads or writes them while the
    /// output is used.
    pub unsafe fn direct(c: &Target) -> Result<Self> {
        let m = &c.arrays;
        // SAFETY: the caller's promise.
        let (indices, values) = unsafe {
            let indices = match m.index_type {
                IndexType::I64 => UserIndices::I64(Shared::new(c.open(m.indices, m.nnz)?)),
                _ => UserIndices::I32(Shared::new(c.open(m.indices, m.nnz)?)),
            };
            (indices, Shared::new(c.open(m.values, m.nnz)?))
        };
        let base = i64::from(c.arrays.base.code());
        Ok(Output { kept: None, user: Some((indices, base)), values })
    }

    /// Writes the columns of a row and returns the slice for its values.
    ///
    /// # Safety
    /// Only one thread at a time has this range, and the arrays of the output are still borrowed.
    #[inline]
    pub unsafe fn row<'a>(&self, range: Range<usize>, columns: &[K]) -> &'a mut [Y] {
        fn write<K: Key, J: Index>(out: &mut [J], columns: &[K], base: i64) {
            for (index, col) in out.iter_mut().zip(columns) {
                *index = J::from_i64(col.to_i64() + base);
            }
        }
        // SAFETY: the caller's promise, for all three arrays.
        unsafe {
            if let Some(kept) = self.kept {
                kept.part(range.clone()).copy_from_slice(columns);
            }
            match self.user {
                Some((UserIndices::I32(indices), base)) => write(indices.part(range.clone()), columns, base),
                Some((UserIndices::I64(indices), base)) => write(indices.part(range.clone()), columns, base),
                None => {}
            }
            self.values.part(range)
        }
    }
}

impl<K: Key, Y: Element> Output<K, Y> {
    /// Writes the columns of a row, and their values, which `value` gives.
    ///
    /// # Safety
    /// The conditions of [`Self::row`].
    #[inline(always)]
    pub unsafe fn write(&self, range: Range<usize>, columns: &[K], mut value: impl FnMut(K) -> Y) {
        #[inline(always)]
        fn write<K: Key, J: Index, Y>(
            (indices, base): (&mut [J], i64),
            values: &mut [Y],
            columns: &[K],
            mut value: impl FnMut(K) -> Y,
        ) {
            // In one loop, since most rows are short.
            for ((index, to), &col) in indices.iter_mut().zip(values).zip(columns) {
                *index = J::from_i64(col.to_i64() + base);
                *to = value(col);
            }
        }
        // SAFETY: the caller's promise, for all arrays.
        unsafe {
            match self.user {
                Some((UserIndices::I32(indices), base)) => {
                    write((indices.part(range.clone()), base), self.values.part(range), columns, value);
                }
                Some((UserIndices::I64(indices), base)) => {
                    write((indices.part(range.clone()), base), self.values.part(range), columns, value);
                }
                None => {
                    for (to, &col) in self.row(range, columns).iter_mut().zip(columns) {
                        *to = value(col);
                    }
                }
            }
        }
    }
}

/// Number of rows of one parallel task; fewer are not worth the hand-over to another thread.
const GRAIN: usize = 1 << 14;

/// Writes C's row (or column) offsets from the offsets of the computed rows.
///
/// # Safety
/// The conditions of [`Output::direct`].
pub unsafe fn write_offsets(c: &Target, offsets: &[i64]) -> Result<()> {
    fn write<I: Index>(out: &mut [I], offsets: &[i64], base: i64) {
        pieces::for_each(pieces::chunks(out, GRAIN), |at, out| {
            for (out, &offset) in out.iter_mut().zip(&offsets[at * GRAIN..]) {
                *out = I::from_i64(offset + base);
            }
        });
    }
    let (m, base) = (&c.arrays, i64::from(c.arrays.base.code()));
    // A matrix without rows may have no offsets at all.
    let len = if m.offsets.is_null() && m.major == 0 { 0 } else { m.major + 1 };
    // SAFETY: the caller's promise.
    unsafe {
        match m.offset_type {
            IndexType::I64 => write::<i64>(c.open(m.offsets, len)?, offsets, base),
            _ => write::<i32>(c.open(m.offsets, len)?, offsets, base),
        }
    }
    Ok(())
}

/// Columns of computed rows.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a, K> {
    /// Columns of all rows, one row behind the other.
    Plain(&'a [K]),
    /// Columns in one list for each item of rows ([`super::rows::cut_items`]), and the first row of each item.
    Listed(&'a Lists, &'a [i64]),
}

/// Computed rows of a product, in the plan's memory.
#[derive(Clone, Copy, Debug)]
pub struct Staged<'a, K, Y> {
    /// Rows + 1 offsets with base 0.
    pub offsets: &'a [i64],
    /// Column indices, ascending in each row.
    pub columns: Rows<'a, K>,
    /// Values.
    pub values: &'a [Y],
}

impl<K: Key, Y: Element> Staged<'_, K, Y> {
    /// Writes the transpose into C, whose indices ascend because the rows are processed in order. `starts`
    /// has one element per column, and one more.
    ///
    /// # Safety
    /// The conditions of [`Output::direct`].
    pub unsafe fn transpose_into(&self, c: &Target, starts: &mut [i64], threads: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        let out = unsafe { Output::<K, Y>::direct(c)? };
        starts.fill(0);
        self.for_each_of_columns(&mut starts[1..], threads, |count, _, _| *count += 1);
        for col in 1..starts.len() {
            starts[col] += starts[col - 1];
        }
        // SAFETY: the caller's promise.
        unsafe { write_offsets(c, starts)? };
        let cols = starts.len() - 1;
        self.for_each_of_columns(&mut starts[..cols], threads, |next, row, position| {
            let at = *next as usize;
            *next += 1;
            // SAFETY: C's arrays are borrowed, and the columns' ranges, in which each position is written
            // once, belong to one thread each.
            unsafe {
                if let Some((indices, base)) = &out.user {
                    indices.set(at, row as i64 + base);
                }
                out.values.set(at, self.values[position]);
            }
        });
        Ok(())
    }

    /// Calls `f(slots[column], row, position)` for all entries; those of one column in the order of the rows.
    /// Each of `threads` threads reads the entries of a range of columns, whose start it finds in every row
    /// by bisection.
    fn for_each_of_columns(
        &self,
        slots: &mut [i64],
        threads: usize,
        f: impl Fn(&mut i64, usize, usize) + Sync,
    ) {
        let width = slots.len().div_ceil(threads).max(1);
        let run = |part: usize, slots: &mut [i64]| {
            let first = (part * width) as i64;
            let mut add = |row: usize, columns: Columns<'_, K>| {
                let (start, count) = (self.offsets[row] as usize, self.count(row));
                // The first column that is not less than `first`, by bisection.
                let (mut skip, mut end) = (0, count);
                while skip < end {
                    let middle = (skip + end) / 2;
                    match columns.get(middle) < first {
                        true => skip = middle + 1,
                        false => end = middle,
                    }
                }
                for i in skip..count {
                    match slots.get_mut((columns.get(i) - first) as usize) {
                        Some(slot) => f(slot, row, start + i),
                        None => break,
                    }
                }
            };
            match self.columns {
                Rows::Plain(columns) => (0..self.offsets.len() - 1).for_each(|row| {
                    let range = self.offsets[row] as usize..self.offsets[row + 1] as usize;
                    add(row, Columns::Plain(&columns[range]));
                }),
                Rows::Listed(lists, items) => {
                    for (item, ends) in items.windows(2).enumerate() {
                        let mut packed = lists.item(item);
                        for row in ends[0] as usize..ends[1] as usize {
                            add(row, packed.next(self.count(row)));
                        }
                    }
                }
            }
        };
        pieces::for_each(pieces::chunks(slots, width), run);
    }

    fn count(&self, row: usize) -> usize {
        (self.offsets[row + 1] - self.offsets[row]) as usize
    }
}
