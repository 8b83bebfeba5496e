//! Stores of sums to C: by vectors, past the caches where C is large, or by a function for any type of C and any beta; and
//! rows that were divided.

use std::any::Any;
use std::ops::Range;

use super::blocks::{Masks, TILE_ROWS};
use crate::backend::host::operand::Shared;
use crate::backend::host::spmm::{Old, Opened};
use crate::backend::host::vector::{run_vectorised, Vector, VectorCode, LINE};
use crate::support::Combo;
use crate::types::Accumulator;

/// C as products see it, whose loops do not depend on its type.
pub(super) struct Output<'a, T> {
    /// Row of C for each stored row; `None` if rows are not reordered.
    order: Option<&'a [u32]>,
    /// C, if its rows are contiguous, have the type of the sums, and get alpha times the sums as they are.
    pub plain: Option<&'a Shared<T>>,
    /// Elements between rows and between columns of C.
    pub strides: (usize, usize),
    /// Number of columns of C, and of sums per slot of the workspace.
    pub n: usize,
    pub alpha: T,
    /// Partial sums of rows that are divided.
    pub scratch: &'a Shared<T>,
    /// Rows whose sums are best stored together by `any`.
    pub tile_rows: usize,
    /// C of any type.
    pub any: &'a (dyn StoreSums<T> + Sync),
}

/// A C of any type to which sums are stored.
pub(super) trait StoreSums<T> {
    /// Computes C = alpha · sums + beta · C for these stored rows and these columns of C, which the caller alone has
    /// (layouts give each element to one thread). Sums of a row are contiguous, and rows of sums lie `pitch` elements apart.
    fn store(&self, rows: Range<usize>, columns: Range<usize>, sums: &[T], pitch: usize);
}

/// The C of a call, with the order of its rows.
pub(super) struct AnyC<'a, C: Combo> {
    pub opened: &'a Opened<'a, C>,
    pub order: Option<&'a [u32]>,
}

impl<'a, T: Accumulator> Output<'a, T> {
    pub fn new<C: Combo<Acc = T>>(any: &'a AnyC<'a, C>) -> Self {
        let AnyC { opened, order } = any;
        let is_overwritten = opened.c_strides.1 == 1 && opened.scalars.skip_old();
        Output {
            order: *order,
            plain: (&opened.c as &dyn Any).downcast_ref().filter(|_| is_overwritten),
            strides: opened.c_strides,
            n: opened.n,
            alpha: opened.scalars.alpha(),
            scratch: &opened.scratch,
            tile_rows: (LINE / size_of::<C::Y>()).min(TILE_ROWS),
            any,
        }
    }

    /// Returns C if its rows are also in the order of the stored rows.
    #[inline(always)]
    pub fn in_order(&self) -> Option<&'a Shared<T>> {
        self.plain.filter(|_| self.order.is_none())
    }

    /// Returns the row of C for a stored row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> usize {
        self.order.map_or(row, |order| order[row] as usize)
    }

    /// Adds up the partial sums of a row that was divided, and writes the row.
    pub fn long_row(&self, row: usize, slots: Range<usize>) {
        let n = self.n;
        // SAFETY: all items are done, and no other row has these slots.
        let sums = unsafe { self.scratch.part(slots.start * n..slots.end * n) };
        let (sums, others) = sums.split_at_mut(n);
        for other in others.chunks_exact(n) {
            for (sum, other) in sums.iter_mut().zip(other) {
                *sum += *other;
            }
        }
        self.any.store(row..row + 1, 0..n, sums, n);
    }
}

/// What [`StoreSums::store`] is called with, as code that is compiled for vectors.
struct Stores<'a, T> {
    rows: Range<usize>,
    columns: Range<usize>,
    sums: &'a [T],
    pitch: usize,
}

impl<C: Combo> StoreSums<C::Acc> for AnyC<'_, C> {
    fn store(&self, rows: Range<usize>, columns: Range<usize>, sums: &[C::Acc], pitch: usize) {
        // SAFETY: the code has no vectors of its own.
        unsafe { run_vectorised(self, Stores { rows, columns, sums, pitch }) };
    }
}

impl<C: Combo> VectorCode<AnyC<'_, C>> for Stores<'_, C::Acc> {
    #[inline(always)]
    unsafe fn run(self, AnyC { opened, order }: &AnyC<'_, C>) {
        let Stores { rows, columns, sums, pitch } = self;
        let (row_stride, col_stride) = opened.c_strides;
        let is_direct = order.is_none() && opened.old.is_none();
        if is_direct && (row_stride, col_stride) == (pitch, 1) && columns.len() == pitch {
            // Rows one behind the other.
            opened.store_run(rows.start * pitch + columns.start, &sums[..rows.len() * pitch]);
        } else if is_direct && row_stride == 1 && rows.len() > 1 {
            // Column by column: a cache line at one time. The scalars are copied, so that the compiler knows that stores
            // of C do not change them.
            let scalars = opened.scalars;
            for (lane, column) in columns.enumerate() {
                let at = rows.start + column * col_stride;
                // SAFETY: the caller has these elements, and C is borrowed until all items are done.
                let c = unsafe { opened.c.part(at..at + rows.len()) };
                for (row, c) in c.iter_mut().enumerate() {
                    scalars.store(sums[row * pitch + lane], c);
                }
            }
        } else {
            for (at, row) in rows.enumerate() {
                let row = order.map_or(row, |order| order[row] as usize);
                opened.store_row(row, columns.start, &sums[at * pitch..][..columns.len()]);
            }
        }
    }
}

impl<C: Combo> Opened<'_, C> {
    /// Writes a part of a row of C.
    #[inline(always)]
    fn store_row(&self, row: usize, first: usize, sums: &[C::Acc]) {
        let (row_stride, col_stride) = self.c_strides;
        // A C of one row may be contiguous although its old values are not.
        if col_stride == 1 && self.old.is_none_or(|old| old.strides.1 == 1) {
            let at = row * row_stride + first;
            if let Some(Old { values, strides }) = self.old {
                // SAFETY: as in `store_run`.
                let c = unsafe { self.c.part(at..at + sums.len()) };
                c.copy_from_slice(&values[row * strides.0 + first..][..sums.len()]);
            }
            self.store_run(at, sums);
        } else {
            for (lane, sum) in sums.iter().enumerate() {
                self.store(row, first + lane, *sum);
            }
        }
    }

    /// Writes contiguous elements of C, from that at `at` on.
    #[inline(always)]
    fn store_run(&self, at: usize, sums: &[C::Acc]) {
        // SAFETY: an order has each row once, the caller has these elements, and C is borrowed until all items are done.
        let c = unsafe { self.c.part(at..at + sums.len()) };
        let scalars = self.scalars;
        for (c, sum) in c.iter_mut().zip(sums) {
            scalars.store(*sum, c);
        }
    }
}

/// Stores alpha times sums, past the caches if that is said; vectors with masks are stored as they are.
///
/// # Safety
/// The processor has the vectors, and `to` has room for them, or for the lanes of the masks; if they are streamed, it is a
/// multiple of a vector's bytes.
#[inline(always)]
pub(super) unsafe fn store_vectors<T: Accumulator, V: Vector<T>, const VECTORS: usize, const MASKED: bool>(
    sums: &[V; VECTORS],
    alpha: V,
    to: *mut T,
    masks: Masks,
    streams: bool,
) {
    for (vector, sum) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let (sum, to) = (alpha.times(*sum), to.wrapping_add(vector * V::LANES));
            if MASKED && vector == 0 {
                sum.store_lanes(to, masks.first);
            } else if MASKED && vector + 1 == VECTORS {
                sum.store_lanes(to, masks.last);
            } else if streams {
                sum.stream(to);
            } else {
                sum.store(to);
            }
        }
    }
}
