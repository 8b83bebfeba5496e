//! Canonical CSR: op is applied, base 0, rows sorted by column, 64-bit offsets, 32-bit column indices. The
//! host backend builds its other layouts from it wherever the arrays of A do not serve as they are.
//!
//! Arrays, for m rows and nnz stored entries:
//! - `offsets`: m + 1 × i64, `offsets[0]` = 0, ascending, `offsets[m]` = nnz
//! - `indices`: nnz × i32, ascending inside a row; equal neighbours are entries that the user stored twice,
//!   in the user's order (they add up)
//! - `values`: nnz × V
//! - `positions` (only where values will be updated): nnz × i64, the index in the user's value array that
//!   each value comes from

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::format::{as_words, GRAIN};
use crate::matrix::compressed::Pattern;
use crate::matrix::Entries;
use crate::memory::{pieces, pool, Allocator, Buffer};
use crate::types::{Element, Operation};

/// Canonical CSR copy of op(A).
#[derive(Debug)]
pub struct CsrLayout<V: Element> {
    rows: usize,
    cols: usize,
    conjugated: bool,
    offsets: Buffer<i64>,
    indices: Buffer<i32>,
    values: Buffer<V>,
    positions: Option<Buffer<i64>>,
}

/// An entry while its row is being sorted.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    position: i64,
    col: i32,
    pad: i32,
}

/// Entries of a matrix sorted into the rows of op(A), each with the index of its value in the user's array.
pub struct Sorted {
    rows: usize,
    cols: usize,
    op: Operation,
    offsets: Buffer<i64>,
    slots: Buffer<Slot>,
}

impl Sorted {
    /// Sorts the valid `entries` of A into rows of op(A); inside a row they keep the storage order.
    ///
    /// Cost: O(nnz + rows + cols), and 16 bytes per entry of temporary memory. op(A) must have at most
    /// `i32::MAX` columns.
    pub fn of<E: Entries>(allocator: &Arc<Allocator>, entries: &E, op: Operation) -> Result<Self> {
        let place = |row: usize, col: usize| if op.transposes() { (col, row) } else { (row, col) };
        let (rows, cols) = place(entries.shape().0, entries.shape().1);
        assert!(i32::try_from(cols).is_ok(), "selection sends wider matrices elsewhere");

        let mut offsets = Buffer::<i64>::zeroed(allocator, rows + 1)?;
        entries.for_each(|row, col, _| offsets[place(row, col).0 + 1] += 1);
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut slots = Buffer::<Slot>::zeroed(allocator, entries.len())?;
        let mut next = Buffer::from_slice(allocator, &offsets[..rows])?;
        entries.for_each(|row, col, position| {
            let (row, col) = place(row, col);
            slots[next[row] as usize] = Slot { position: position as i64, col: col as i32, pad: 0 };
            next[row] += 1;
        });
        Ok(Sorted { rows, cols, op, offsets, slots })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

impl<V: Element> CsrLayout<V> {
    /// Sorts the entries inside each row and gathers their values from `values`, which is in storage order.
    pub fn gather(
        allocator: &Arc<Allocator>,
        sorted: Sorted,
        values: &[V],
        keep_positions: bool,
    ) -> Result<Self> {
        let Sorted { rows, cols, op, offsets, mut slots } = sorted;
        let nnz = slots.len();
        let mut indices = Buffer::<i32>::zeroed(allocator, nnz)?;
        let mut positions = Buffer::<i64>::zeroed(allocator, if keep_positions { nnz } else { 0 })?;
        let mut gathered = Buffer::<V>::zeroed(allocator, nnz)?;
        // All memory is allocated on the caller's thread, never on the pool's threads: a user's allocator may
        // not be thread-safe.
        pool::run(|| sort_rows(&offsets, &mut slots));
        let to = &mut *gathered;
        as_words!(V, (values, to) => {
            let outputs = (pieces::chunks(&mut indices, GRAIN), pieces::chunks(to, GRAIN));
            pieces::for_each(outputs, |at, (indices, gathered)| {
                for ((index, value), slot) in indices.iter_mut().zip(gathered).zip(&slots[at * GRAIN..]) {
                    *index = slot.col;
                    *value = values[slot.position as usize];
                }
            });
        });
        if op.conjugates() && V::TYPE.is_complex() {
            pieces::for_each(pieces::chunks(&mut gathered, GRAIN), |_, values| {
                values.iter_mut().for_each(|value| *value = value.conjugate());
            });
        }
        pieces::for_each(pieces::chunks(&mut positions, GRAIN), |at, positions| {
            for (position, slot) in positions.iter_mut().zip(&slots[at * GRAIN..]) {
                *position = slot.position;
            }
        });
        Ok(CsrLayout {
            rows,
            cols,
            conjugated: op.conjugates(),
            offsets,
            indices,
            values: gathered,
            positions: keep_positions.then_some(positions),
        })
    }

    /// Returns a copy with permuted rows: row p of the result is row `order[p]`, its entries unchanged.
    /// O(nnz).
    pub fn permuted(&self, allocator: &Arc<Allocator>, order: &[u32]) -> Result<Self> {
        debug_assert_eq!(order.len(), self.rows);
        let range = |row: u32| self.offsets[row as usize] as usize..self.offsets[row as usize + 1] as usize;
        let mut offsets = Buffer::<i64>::zeroed(allocator, self.rows + 1)?;
        for (place, &row) in order.iter().enumerate() {
            offsets[place + 1] = offsets[place] + range(row).len() as i64;
        }
        fn gather<T: Pod>(
            allocator: &Arc<Allocator>,
            from: &[T],
            ranges: impl Iterator<Item = std::ops::Range<usize>>,
        ) -> Result<Buffer<T>> {
            let mut out = Buffer::<T>::zeroed(allocator, from.len())?;
            let mut at = 0;
            for range in ranges {
                let to = at + range.len();
                out[at..to].copy_from_slice(&from[range]);
                at = to;
            }
            Ok(out)
        }
        let ranges = || order.iter().map(|&row| range(row));
        let positions = self.positions.as_deref().map(|from| gather(allocator, from, ranges()));
        Ok(CsrLayout {
            rows: self.rows,
            cols: self.cols,
            conjugated: self.conjugated,
            offsets,
            indices: gather(allocator, &self.indices, ranges())?,
            values: gather(allocator, &self.values, ranges())?,
            positions: positions.transpose()?,
        })
    }

    /// Returns the pattern: row offsets and column indices.
    pub fn pattern(&self) -> Pattern<'_, i64, i32> {
        Pattern {
            major: self.rows,
            minor: self.cols,
            base: 0,
            offsets: &self.offsets,
            indices: &self.indices,
            by_columns: false,
        }
    }

    /// The values, in the order of the pattern.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Returns the index in the user's array that each value comes from, if that was kept.
    pub fn positions(&self) -> Option<&[i64]> {
        self.positions.as_deref()
    }

    /// Copies in new values, given in the order of the user's array. Returns false, and changes nothing, if
    /// the positions were not kept.
    pub fn refill(&mut self, values: &[V]) -> bool {
        super::refill(&mut self.values, self.positions.as_deref(), values, self.conjugated)
    }
}

/// Sorts the slots of each row by (column, position). The position makes the order total, so that duplicates
/// add up in the user's order.
fn sort_rows(offsets: &[i64], slots: &mut [Slot]) {
    let rows = offsets.len() - 1;
    if rows > 1 && slots.len() > GRAIN {
        let middle = rows / 2;
        let (low, high) = slots.split_at_mut((offsets[middle] - offsets[0]) as usize);
        pool::join(|| sort_rows(&offsets[..=middle], low), || sort_rows(&offsets[middle..], high));
        return;
    }
    let first = offsets[0];
    for row in offsets.windows(2) {
        let row = &mut slots[(row[0] - first) as usize..(row[1] - first) as usize];
        let key = |slot: &Slot| (slot.col, slot.position);
        if !row.is_sorted_by_key(key) {
            row.sort_unstable_by_key(key);
        }
    }
}
