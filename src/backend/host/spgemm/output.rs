//! C: the user's arrays, checked and opened for writing, and the way there from
//! the rows that were computed.

use std::ops::Range;

use bytemuck::Pod;

use super::places::Key;
use crate::backend::host::operand::Shared;
use crate::error::{Error, Result};
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{self, pieces};
use crate::types::{DataType, Element, Index, IndexType};

/// C's arrays. The plan has checked C (format, shape, type, no memory shared
/// with A or B) and its creation that its numbers fit its index types; what
/// the writes below rely on is checked again: length and type of the arrays.
pub fn check(
    c: &SparseMatrix,
    (rows, cols, nnz): (usize, usize, i64),
    value: DataType,
) -> Result<Compressed> {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = c.arrays else {
        return Err(Error::unsupported(format!("C: SpGEMM does not write format {}", c.format().short())));
    };
    if c.shape() != (rows as i64, cols as i64, nnz) {
        let (found_rows, found_cols, found) = c.shape();
        return Err(Error::invalid(
            "C",
            format!(
                "it is {found_rows} × {found_cols} with {found} entries, expected {rows} × {cols} with {nnz}"
            ),
        ));
    }
    if m.value_type != value {
        let (found, expected) = (m.value_type.short(), value.short());
        return Err(Error::invalid(
            "C",
            format!("its values are {found}, the plan was created for {expected}"),
        ));
    }
    Ok(m)
}

/// C's index array, which several threads write at disjoint places.
#[derive(Clone, Copy, Debug)]
enum UserIndices {
    I32(Shared<i32>),
    I64(Shared<i64>),
}

/// Where the rows of the product go.
#[derive(Clone, Copy, Debug)]
pub struct Output<K, Y> {
    /// The plan's copy of the columns.
    kept: Option<Shared<K>>,
    /// C's index array and base.
    user: Option<(UserIndices, i64)>,
    values: Shared<Y>,
}

impl<K: Key, Y: Element> Output<K, Y> {
    /// Into the plan's own arrays.
    pub fn staging(kept: Option<&mut [K]>, values: &mut [Y]) -> Self {
        Output { kept: kept.map(Shared::new), user: None, values: Shared::new(values) }
    }

    /// Into C's arrays, and the columns into `kept` as well if it is there.
    ///
    /// # Safety
    /// C is what the plan and [`check`] accepted: its arrays are as large as it
    /// says, share no memory, and nothing else reads or writes them while the
    /// output is used.
    pub unsafe fn direct(c: &Compressed, kept: Option<&mut [K]>) -> Result<Self> {
        let nnz = c.nnz as usize;
        // SAFETY: the caller's promise.
        let (indices, values) = unsafe {
            let indices = match c.index_type {
                IndexType::I64 => UserIndices::I64(Shared::new(memory::open_mut("C", c.indices, nnz)?)),
                _ => UserIndices::I32(Shared::new(memory::open_mut("C", c.indices, nnz)?)),
            };
            (indices, memory::open_mut("C", c.values, nnz)?)
        };
        let base = i64::from(c.base.code());
        Ok(Output { kept: kept.map(Shared::new), user: Some((indices, base)), values: Shared::new(values) })
    }

    /// Writes the columns of a row and returns where its values go.
    ///
    /// # Safety
    /// One thread at a time has this range, and what the output was made of is
    /// still borrowed.
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

/// Rows below which a parallel task is not worth its hand-over.
const GRAIN: usize = 1 << 14;

/// Writes C's offsets, which are those of the rows that were computed.
///
/// # Safety
/// As [`Output::direct`].
pub unsafe fn write_offsets(c: &Compressed, offsets: &[i64]) -> Result<()> {
    fn write<I: Index>(out: &mut [I], offsets: &[i64], base: i64) {
        pieces::for_each(pieces::chunks(out, GRAIN), |at, out| {
            for (out, &offset) in out.iter_mut().zip(&offsets[at * GRAIN..]) {
                *out = I::from_i64(offset + base);
            }
        });
    }
    let base = i64::from(c.base.code());
    // A matrix without rows may have no offsets at all.
    let len = if c.offsets.is_null() && c.major == 0 { 0 } else { offsets.len() };
    // SAFETY: the caller's promise.
    unsafe {
        match c.offset_type {
            IndexType::I64 => write::<i64>(memory::open_mut("C", c.offsets, len)?, offsets, base),
            _ => write::<i32>(memory::open_mut("C", c.offsets, len)?, offsets, base),
        }
    }
    Ok(())
}

/// Rows of a product, in the plan's memory.
#[derive(Clone, Copy, Debug)]
pub struct Staged<'a, K, Y> {
    /// Rows + 1 offsets of base 0.
    pub offsets: &'a [i64],
    /// Columns, ascending in each row.
    pub columns: &'a [K],
    /// Values.
    pub values: &'a [Y],
}

impl<K: Key, Y: Element> Staged<'_, K, Y> {
    /// Writes the transpose into C, whose indices ascend because the rows come
    /// in order. C's offsets count and place; no other memory is needed.
    ///
    /// # Safety
    /// As [`Output::direct`].
    pub unsafe fn transpose_into(&self, c: &Compressed, threads: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match (c.offset_type, c.index_type) {
                (IndexType::I32, _) => self.transpose::<i32, i32>(c, threads),
                (_, IndexType::I32) => self.transpose::<i64, i32>(c, threads),
                _ => self.transpose::<i64, i64>(c, threads),
            }
        }
    }

    /// # Safety
    /// As [`Output::direct`].
    unsafe fn transpose<I: Index, J: Index>(&self, c: &Compressed, threads: usize) -> Result<()> {
        let (cols, nnz, base) = (c.major as usize, c.nnz as usize, i64::from(c.base.code()));
        let len = if c.offsets.is_null() && cols == 0 { 0 } else { cols + 1 };
        // SAFETY: the caller's promise.
        let (offsets, indices, values) = unsafe {
            (
                memory::open_mut::<I>("C", c.offsets, len)?,
                memory::open_mut::<J>("C", c.indices, nnz)?,
                memory::open_mut::<Y>("C", c.values, nnz)?,
            )
        };
        let (indices, values) = (Shared::new(indices), Shared::new(values));
        let add = |offset: &mut I, more: i64| *offset = I::from_i64(offset.to_i64() + more);
        offsets.fill(I::from_i64(0));
        if len > 1 {
            self.for_each_of_columns(&mut offsets[1..], threads, |count, _, _| add(count, 1));
        }
        for col in 1..len {
            let start = offsets[col - 1].to_i64();
            add(&mut offsets[col], start);
        }
        // offsets[col] is now where the column starts, and after this where the
        // next one starts.
        self.for_each_of_columns(&mut offsets[..cols.min(len)], threads, |next, row, position| {
            let at = next.to_i64() as usize;
            add(next, 1);
            // SAFETY: C's arrays are borrowed, and the columns' ranges, in
            // which each place is written once, belong to one thread each.
            unsafe {
                indices.set(at, J::from_i64(row as i64 + base));
                values.set(at, self.values[position]);
            }
        });
        if len > 0 {
            offsets.copy_within(..cols, 1);
            offsets[0] = I::from_i64(0);
            offsets.iter_mut().for_each(|offset| add(offset, base));
        }
        Ok(())
    }

    /// Calls `f(slots[column], row, position)` for all entries; those of one
    /// column in the order of the rows. Each of `threads` threads reads the
    /// entries of a range of columns, which it finds in every row by bisection.
    fn for_each_of_columns<S: Pod + Send>(
        &self,
        slots: &mut [S],
        threads: usize,
        f: impl Fn(&mut S, usize, usize) + Sync,
    ) {
        let width = slots.len().div_ceil(threads).max(1);
        let run = |part: usize, slots: &mut [S]| {
            let first = (part * width) as i64;
            for (row, ends) in self.offsets.windows(2).enumerate() {
                let (start, end) = (ends[0] as usize, ends[1] as usize);
                let columns = &self.columns[start..end];
                let skip = columns.partition_point(|col| col.to_i64() < first);
                for (i, col) in columns.iter().enumerate().skip(skip) {
                    match slots.get_mut((col.to_i64() - first) as usize) {
                        Some(slot) => f(slot, row, start + i),
                        None => break,
                    }
                }
            }
        };
        pieces::for_each(pieces::chunks(slots, width), run);
    }
}
