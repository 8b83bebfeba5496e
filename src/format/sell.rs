//! Sliced ELLPACK with sorted windows, SELL-C-σ (Kreutzer, Hager, Wellein, Fehske, Bishop 2014, "A unified
//! sparse matrix data format for efficient general sparse matrix-vector multiplication on modern processors
//! with wide SIMD units"), C = [`LANES`], σ = [`WINDOW`], with 16-bit columns.
//!
//! Rows of op(A) are sorted by descending length inside windows of σ rows (equal lengths keep their order)
//! and cut into slices of C rows, the lanes. The entries of a slice are interleaved: step k holds entry k of
//! each lane, so that one vector operation advances C rows. Padding is bounded: interleaved steps end where
//! fewer than half of the lanes have an entry left, and the rest of each longer row follows as its *tail*,
//! entry after entry. Kernels know the lengths and never multiply padding: 0 · Inf would be NaN.
//!
//! Arrays:
//! - `slices`: one [`Slice`] for each C rows of the matrix
//! - `rows`: C × u32 per slice, the row of each lane, [`NO_ROW`] where there is none
//! - `lengths`: C × u32 per slice, number of entries of each lane, descending in the slice
//! - `values`: V, or in one of the forms of [`super::narrowing`]; slice s has `steps` × C of them from
//!   `slices[s].values` on, step by step, then the tails, lane by lane; each slice starts at a multiple of C
//! - `columns`: u16, relative to the slice's `base`, in one of three forms ([`Columns`]): one for each value;
//!   two (the low half first) where the slice spans more than 2^16 columns; or one per step, where all lanes
//!   have all steps and lane l of a step has the column of lane 0 plus l
//! - `pieces`, `long_rows`: rows of more than [`LONG`] entries are in no slice; they are cut into pieces that
//!   are stored behind the slices' entries, with columns relative to the piece's base
//! - `positions` (only where values will be updated): i64 per value, the index in the user's value array that
//!   it comes from, −1 for padding
//!
//! Columns keep the order of the pattern, so that each row is summed in CSR order. The inverse is
//! `SellLayout::for_each_entry`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::as_words;
#[cfg(test)]
use super::narrowing::Holds;
use super::narrowing::{Form, Narrow, One};
use crate::error::Result;
use crate::matrix::compressed::Pattern;
use crate::memory::{pieces, pool, Allocator, Buffer};
use crate::types::Index;

mod fill;
#[cfg(test)]
mod tests;

/// C: number of rows of a slice. 8 values of 4 bytes are one AVX2 register, and 8 of 8 bytes two, which is
/// enough to hide the latency of an addition.
pub const LANES: usize = 8;

/// σ: number of rows that are sorted together. Large enough that nearly all slices hold rows of one length,
/// small enough that y and the elements of x that the rows share stay in the caches.
pub const WINDOW: usize = 4096;

/// Number of entries of the longest row that is a lane, and of a piece of a longer row: about 2 µs of work.
pub const LONG: usize = 1 << 13;

/// Marks a lane without a row.
pub const NO_ROW: u32 = u32::MAX;

/// Slice of C rows.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Slice {
    /// First value.
    pub values: u64,
    /// First of its columns.
    pub indices: u64,
    /// Column that its columns are relative to.
    pub base: u32,
    /// Number of steps in which all lanes have an entry.
    pub full: u32,
    /// Number of interleaved steps.
    pub steps: u32,
    /// Code of a [`Columns`], plus [`EVEN`].
    flags: u32,
}

/// Form in which the columns of a slice are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// 16 bits per entry.
    Narrow,
    /// 32 bits per entry.
    Wide,
    /// 16 bits per step.
    Runs,
}

/// Flag of a slice of C rows of one length that are consecutive in the matrix.
const EVEN: u32 = 4;

impl Slice {
    /// Returns the form of the columns.
    #[inline(always)]
    pub fn columns(&self) -> Columns {
        match self.flags & 3 {
            0 => Columns::Narrow,
            1 => Columns::Wide,
            _ => Columns::Runs,
        }
    }

    /// Returns whether the lanes are C rows of one length that are consecutive in the matrix.
    #[inline(always)]
    pub fn is_even(&self) -> bool {
        self.flags & EVEN != 0
    }
}

/// Piece of a long row.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Piece {
    /// First value.
    pub values: u64,
    /// First column.
    pub indices: u64,
    /// First entry, counted in the pattern's order.
    first: u64,
    /// Column that its columns are relative to.
    pub base: u32,
    /// Number of entries.
    pub len: u32,
    /// 1 if columns are 32 bits wide, otherwise 0.
    wide: u32,
    pad: u32,
}

impl Piece {
    /// Returns whether its columns take 32 bits.
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        self.wide != 0
    }
}

/// Long row, which is cut into pieces.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct LongRow {
    /// Number of the row in op(A).
    pub row: u64,
    /// Its first piece.
    pub first: u64,
    /// One behind its last piece.
    pub last: u64,
}

/// Values in one of their forms.
#[derive(Debug)]
pub enum Values<V: Narrow> {
    /// Values in the user's type.
    Full(Buffer<V>),
    /// Values as fp32.
    Single(Buffer<V::Single>),
    /// Values as fp16.
    Half(Buffer<V::Half>),
    /// Values that are all 1. Takes no memory, whatever its length.
    Ones(Vec<One>),
}

/// Runs `$body` with `$slice`, the `&[S]` or `&mut [S]` in a [`Values`]; `$body` is compiled once for each
/// type S of stored values.
macro_rules! with_stored {
    ($values:expr, $slice:ident => $body:expr) => {
        match $values {
            $crate::format::sell::Values::Full($slice) => $body,
            $crate::format::sell::Values::Single($slice) => $body,
            $crate::format::sell::Values::Half($slice) => $body,
            $crate::format::sell::Values::Ones($slice) => $body,
        }
    };
}
pub(crate) use with_stored;

impl<V: Narrow> Values<V> {
    /// Allocates `slots` slots, all zero in a form that has zeros.
    fn new(allocator: &Arc<Allocator>, form: Form, slots: usize) -> Result<Self> {
        Ok(match form {
            Form::Full => Values::Full(Buffer::zeroed(allocator, slots)?),
            Form::Single => Values::Single(Buffer::zeroed(allocator, slots)?),
            Form::Half => Values::Half(Buffer::zeroed(allocator, slots)?),
            Form::Ones => Values::Ones(vec![One; slots]),
        })
    }

    /// Returns the number of slots.
    pub fn len(&self) -> usize {
        with_stored!(self, values => values.len())
    }

    /// Returns the value of a slot, which is meaningless for padding.
    #[cfg(test)]
    pub fn get(&self, slot: usize) -> V {
        with_stored!(self, values => values[slot].value())
    }

    /// Returns the form in which values are stored.
    pub fn form(&self) -> Form {
        match self {
            Values::Full(_) => Form::Full,
            Values::Single(_) => Form::Single,
            Values::Half(_) => Form::Half,
            Values::Ones(_) => Form::Ones,
        }
    }
}

/// SELL-C-σ layout in host memory.
#[derive(Debug)]
pub struct SellLayout<V: Narrow> {
    /// Number of columns of op(A).
    pub col_count: usize,
    /// Slices.
    pub slices: Buffer<Slice>,
    /// Row of each lane.
    pub rows: Buffer<u32>,
    /// Number of entries of each lane.
    pub lengths: Buffer<u32>,
    /// Value of each slot.
    pub values: Values<V>,
    /// Columns, in the form of each slice or piece.
    pub columns: Buffer<u16>,
    /// Pieces of the long rows.
    pub pieces: Buffer<Piece>,
    /// Rows of more than [`LONG`] entries.
    pub long_rows: Buffer<LongRow>,
    /// Index in the user's array that each value comes from, if it was kept.
    positions: Option<Buffer<i64>>,
    entries: usize,
}

/// Mapping from the entries of a pattern to the user's value array.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// True if the layout has to record where values come from, because they will be updated.
    pub keep: bool,
    /// Index in the user's array for each entry of the pattern; `None` where both have the same order.
    pub positions: Option<&'a [i64]>,
}

impl Origin<'_> {
    /// Returns the index in the user's array of the value of an entry of the pattern.
    #[inline(always)]
    pub fn of(&self, entry: usize) -> i64 {
        self.positions.map_or(entry as i64, |positions| positions[entry])
    }

    /// Allocates an array for the slot of each of `values` values of the user's array; `None` if they will
    /// not be updated.
    pub fn slots(&self, allocator: &Arc<Allocator>, values: usize) -> Result<Option<Buffer<u64>>> {
        self.keep.then(|| Buffer::zeroed(allocator, values)).transpose()
    }

    /// Records in `slots`, if it exists, the slot `place` in which the layout holds the value of an entry of
    /// the pattern.
    #[inline(always)]
    pub fn note(&self, slots: &mut Option<Buffer<u64>>, entry: usize, place: usize) {
        if let Some(slots) = slots {
            slots[self.of(entry) as usize] = place as u64;
        }
    }
}

impl<V: Narrow> SellLayout<V> {
    /// Builds the layout of a valid pattern of rows, with `values` in its order, which fit `form`. There may
    /// be at most 2^32 − 2 rows and 2^32 columns.
    ///
    /// Cost: O(nnz + rows), reading the columns twice and the values once.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        form: Form,
        origin: Origin<'_>,
    ) -> Result<Self> {
        let rows = pattern.major;
        let slice_count = rows.div_ceil(LANES);
        let mut slices = Buffer::<Slice>::zeroed(allocator, slice_count)?;
        let mut lane_rows = Buffer::<u32>::zeroed(allocator, slice_count * LANES)?;
        let mut lengths = Buffer::<u32>::zeroed(allocator, slice_count * LANES)?;
        let lanes = (pieces::chunks(&mut lane_rows, WINDOW), pieces::chunks(&mut lengths, WINDOW));
        let windows = (pieces::chunks(&mut slices, WINDOW / LANES), lanes);
        pieces::for_each(windows, |window, (slices, (rows, lengths))| {
            fill::sort_window(pattern, window * WINDOW, rows, lengths);
            let lanes = rows.chunks_exact(LANES).zip(lengths.chunks_exact(LANES));
            for (slice, (rows, lengths)) in slices.iter_mut().zip(lanes) {
                *slice = fill::measure(pattern, rows, lengths);
            }
        });
        let (mut cut, long_rows) = fill::cut_long_rows(allocator, pattern, rows)?;
        pieces::for_each(pieces::each(&mut cut), |_, piece| fill::measure_piece(pattern, piece));
        let sizes = fill::place(&mut slices, &lengths, &mut cut);

        let mut out = SellLayout {
            col_count: pattern.minor,
            slices,
            rows: lane_rows,
            lengths,
            values: Values::new(allocator, form, sizes.values)?,
            columns: Buffer::zeroed(allocator, sizes.columns)?,
            pieces: cut,
            long_rows,
            positions: None,
            entries: pattern.indices.len(),
        };
        let mut positions = Buffer::<i64>::zeroed(allocator, if origin.keep { sizes.values } else { 0 })?;
        pool::run(|| {
            let arrays = (&mut *out.columns, &mut *positions);
            let structure = fill::Structure {
                slices: &out.slices,
                rows: &out.rows,
                lengths: &out.lengths,
                pieces: &out.pieces,
            };
            match &mut out.values {
                Values::Full(stored) => {
                    let to = &mut **stored;
                    as_words!(V, (values, to) => structure.fill(pattern, values, origin, to, arrays));
                }
                Values::Single(stored) if size_of::<V::Single>() < size_of::<V>() => {
                    structure.fill(pattern, values, origin, stored, arrays);
                }
                Values::Half(stored) if size_of::<V::Half>() < size_of::<V>() => {
                    structure.fill(pattern, values, origin, stored, arrays);
                }
                Values::Ones(stored) => {
                    structure.fill(pattern, &vec![One; values.len()], origin, stored, arrays);
                }
                Values::Single(_) | Values::Half(_) => unreachable!("the type has no such form"),
            }
        });
        out.positions = origin.keep.then_some(positions);
        Ok(out)
    }

    /// Copies in new values, given in the order of the user's array. Returns false, and changes nothing, if
    /// the positions were not kept or values are in a narrow form.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        match &mut self.values {
            Values::Full(filled) => super::refill(filled, self.positions.as_deref(), values, conjugate),
            _ => false,
        }
    }

    /// Returns the number of slots for values divided by the number of stored entries.
    pub fn fill_ratio(&self) -> f64 {
        super::fill_ratio(self.values.len(), self.entries)
    }

    /// Returns the slots of a lane's entries in `values`, in the order of its row.
    pub fn places(&self, slice: usize, lane: usize) -> impl Iterator<Item = usize> + '_ {
        let (head, lengths) = (&self.slices[slice], &self.lengths[slice * LANES..(slice + 1) * LANES]);
        let (first, steps) = (head.values as usize, head.steps as usize);
        let tail = |length: u32| (length as usize).saturating_sub(steps);
        let tail_start = first + steps * LANES + lengths[..lane].iter().map(|&l| tail(l)).sum::<usize>();
        (0..lengths[lane] as usize).map(move |entry| {
            if entry < steps {
                first + entry * LANES + lane
            } else {
                tail_start + entry - steps
            }
        })
    }

    /// Returns the column of slot `place` of a slice.
    fn column(&self, slice: &Slice, place: usize) -> u32 {
        let (at, first) = (place - slice.values as usize, slice.indices as usize);
        slice.base
            + match slice.columns() {
                Columns::Narrow => u32::from(self.columns[first + at]),
                Columns::Wide => self.wide(first + 2 * at),
                Columns::Runs => u32::from(self.columns[first + at / LANES]) + (at % LANES) as u32,
            }
    }

    fn wide(&self, at: usize) -> u32 {
        u32::from(self.columns[at]) | u32::from(self.columns[at + 1]) << 16
    }

    /// Calls `f(slot in values, column)` for the entries of a lane, in the order of its row.
    #[inline(always)]
    pub fn for_each_of_lane(&self, number: usize, lane: usize, mut f: impl FnMut(usize, usize)) {
        let slice = &self.slices[number];
        for place in self.places(number, lane) {
            f(place, self.column(slice, place) as usize);
        }
    }

    /// Calls `f(slot in values, column)` for the entries of a piece, in their order.
    #[inline(always)]
    pub fn for_each_of_piece(&self, piece: &Piece, mut f: impl FnMut(usize, usize)) {
        for at in 0..piece.len as usize {
            let column = match piece.is_wide() {
                true => self.wide(piece.indices as usize + 2 * at),
                false => u32::from(self.columns[piece.indices as usize + at]),
            };
            f(piece.values as usize + at, (piece.base + column) as usize);
        }
    }

    /// Inverse of [`SellLayout::build`]: calls `f(row, column, value)` for every stored entry, those of one
    /// row in the order of the pattern.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, V)) {
        for number in 0..self.slices.len() {
            for lane in 0..LANES {
                let row = self.rows[number * LANES + lane] as usize;
                self.for_each_of_lane(number, lane, |place, column| f(row, column, self.values.get(place)));
            }
        }
        for long in self.long_rows.iter() {
            for piece in &self.pieces[long.first as usize..long.last as usize] {
                let row = long.row as usize;
                self.for_each_of_piece(piece, |place, column| f(row, column, self.values.get(place)));
            }
        }
    }
}
