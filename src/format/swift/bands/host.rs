//! Builder of the layout in host memory and its inverse, against which tests compare what analysis builds on
//! a device.

use std::ops::Range;
use std::sync::Arc;

use super::*;
use crate::format::sell::Origin;
use crate::format::window::{WindowPart, WorkItem};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Band layout in host memory.
#[derive(Debug)]
pub struct Bands<V: Element> {
    /// Work items: whole bands and parts of split ones.
    pub items: Buffer<WorkItem>,
    /// Parts of split bands.
    pub parts: Buffer<WindowPart>,
    /// Column of each entry.
    pub columns: Buffer<u32>,
    /// Row of each entry, counted in its band.
    pub rows: Buffer<u8>,
    /// Value of each entry.
    pub values: Buffer<V>,
    /// Index in `values` of each of the user's values, if values will be updated.
    pub slots: Option<Buffer<u64>>,
}

impl<V: Element> Bands<V> {
    /// Builds the layout of a valid pattern of *columns* of op(A), whose rows ascend, with `values` in its
    /// order.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        columns: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
    ) -> Result<Self> {
        let cols = columns.major;
        let nnz = columns.indices.len();
        check_count(nnz)?;
        let bands = columns.minor.div_ceil(ROWS);
        let mut starts = Buffer::<u64>::zeroed(allocator, bands + 1)?;
        for at in 0..nnz {
            starts[columns.index(at) / ROWS + 1] += 1;
        }
        for band in 0..bands {
            starts[band + 1] += starts[band];
        }
        let (items, parts) = window::schedule(allocator, &starts, limit(nnz))?;
        let mut out = Bands {
            items,
            parts,
            columns: Buffer::zeroed(allocator, nnz)?,
            rows: Buffer::zeroed(allocator, nnz)?,
            values: Buffer::zeroed(allocator, nnz)?,
            slots: origin.slots(allocator, nnz)?,
        };
        for column in 0..cols {
            for at in columns.range(column) {
                let row = columns.index(at);
                let next = &mut starts[row / ROWS];
                let to = *next as usize;
                *next += 1;
                out.columns[to] = column as u32;
                out.rows[to] = (row % ROWS) as u8;
                out.values[to] = values[at];
                origin.note(&mut out.slots, at, to);
            }
        }
        Ok(out)
    }

    /// Returns the band of a work item, and its entries.
    pub fn item(&self, item: usize) -> (usize, Range<usize>) {
        let WorkItem { window, first, end, .. } = self.items[item];
        (window as usize, first as usize..end as usize)
    }

    /// Inverse of [`Bands::build`]: calls f(row, column, value) for every stored entry, those of a row in the
    /// order of their columns.
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, V)) {
        for item in 0..self.items.len() {
            let (band, entries) = self.item(item);
            for at in entries {
                f(band * ROWS + usize::from(self.rows[at]), self.columns[at] as usize, self.values[at]);
            }
        }
    }
}
