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
//! - `windows`: for each window of σ rows, where its values and words start
//! - `values`: V, or in one of the forms of [`super::narrowing`]; a slice has `steps` × C of them, step by
//!   step, then the tails, lane by lane; each slice starts at a multiple of C
//! - `words`: u16, for each slice up to three groups:
//!   - C rows relative to the window's first row, one per lane, [`NO_LANE`] where there is none; not where the
//!     slice is even, which means that its rows are consecutive and equally long
//!   - C lengths, the number of entries of each lane, descending; not where all are `steps`
//!   - columns relative to the slice's `base`, in one of three forms ([`Columns`]): one for each value; two
//!     (the low half first) where the slice spans more than 2^16 columns; or one per step, where all lanes
//!     have all steps and lane l of a step has the column of lane 0 plus l
//! - `pieces`, `long_rows`: rows of more than [`LONG`] entries are in no slice; they are cut into pieces that
//!   are stored behind the slices' entries, with columns relative to the piece's base
//!
//! So a row has at most 6 bytes besides its entries, where CSR has 4 or 8. Slices, values and words are in
//! one [`Arena`].
//!
//! `positions` (only where values will be updated): i64 per value, the index in the user's value array that
//! it comes from, −1 for padding.
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
use crate::memory::arena::{self, Arena, Part};
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

/// Number of slices of a window.
pub const WINDOW_SLICES: usize = WINDOW / LANES;

/// Marks a lane without a row.
pub const NO_ROW: u32 = u32::MAX;

/// Marks a lane without a row in `words`.
pub const NO_LANE: u16 = u16::MAX;

/// Slice of C rows.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Slice {
    /// First value, relative to the window's.
    values: u32,
    /// First word, relative to the window's.
    words: u32,
    /// Column that its columns are relative to.
    pub base: u32,
    /// Number of interleaved steps.
    pub steps: u16,
    /// Code of a [`Columns`], plus [`EVEN`] and [`EQUAL`]; from bit [`FIRST_ROW`] on the row of the first
    /// lane, relative to the window's first row.
    flags: u16,
}

/// Start of the values and words of a window of slices.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Window {
    /// First value.
    values: u64,
    /// First word.
    words: u64,
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
const EVEN: u16 = 4;

/// Flag of a slice whose lanes have one length.
const EQUAL: u16 = 8;

/// Bits of the flags below the first row.
const FIRST_ROW: u32 = 4;

const _: () = assert!(WINDOW <= 1 << (u16::BITS - FIRST_ROW) && LONG <= u16::MAX as usize);
// Values and words of a window, two words for a column, are counted in 32 bits.
const _: () = assert!((2 * LONG + 2) * WINDOW < u32::MAX as usize);

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

    /// Returns whether all lanes have as many entries as there are steps.
    #[inline(always)]
    pub fn is_equal(&self) -> bool {
        self.flags & EQUAL != 0
    }

    /// Returns the row of the first lane, relative to the window's first row, of a slice that is even.
    #[inline(always)]
    pub fn first_row(&self) -> usize {
        usize::from(self.flags >> FIRST_ROW)
    }

    /// Returns the number of words in front of the lengths.
    #[inline(always)]
    pub fn lengths_at(&self) -> usize {
        if self.is_even() {
            0
        } else {
            LANES
        }
    }

    /// Returns the number of words in front of the columns.
    #[inline(always)]
    pub fn columns_at(&self) -> usize {
        self.lengths_at() + if self.is_equal() { 0 } else { LANES }
    }
}

/// Piece of a long row.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Piece {
    /// First value.
    pub values: u64,
    /// First word of its columns.
    pub words: u64,
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
    Full(Part<V>),
    /// Values as fp32.
    Single(Part<V::Single>),
    /// Values as fp16.
    Half(Part<V::Half>),
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
    /// Takes `slots` slots from the arena, all zero in a form that has zeros.
    fn take(arena: &mut Arena, form: Form, slots: usize) -> Self {
        match form {
            Form::Full => Values::Full(arena.take(slots)),
            Form::Single => Values::Single(arena.take(slots)),
            Form::Half => Values::Half(arena.take(slots)),
            Form::Ones => Values::Ones(vec![One; slots]),
        }
    }

    /// Returns the bytes of `slots` slots in an arena.
    fn bytes(form: Form, slots: usize) -> usize {
        match form {
            Form::Full => arena::bytes::<V>(slots),
            Form::Single => arena::bytes::<V::Single>(slots),
            Form::Half => arena::bytes::<V::Half>(slots),
            Form::Ones => 0,
        }
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
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Slices.
    pub slices: Part<Slice>,
    /// Start of each window's values and words.
    windows: Buffer<Window>,
    /// Value of each slot.
    pub values: Values<V>,
    /// Rows, lengths and columns of the slices, and columns of the pieces.
    pub words: Part<u16>,
    /// Pieces of the long rows.
    pub pieces: Buffer<Piece>,
    /// Rows of more than [`LONG`] entries.
    pub long_rows: Buffer<LongRow>,
    /// Index in the user's array that each value comes from, if it was kept.
    positions: Option<Buffer<i64>>,
    entries: usize,
}

/// Returns the first value and the first word of a slice.
#[inline(always)]
fn starts(windows: &[Window], slices: &[Slice], number: usize) -> (usize, usize) {
    let (window, slice) = (&windows[number / WINDOW_SLICES], &slices[number]);
    (window.values as usize + slice.values as usize, window.words as usize + slice.words as usize)
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
                *slice = fill::measure(pattern, window * WINDOW, rows, lengths);
            }
        });
        let (mut cut, long_rows) = fill::cut_long_rows(allocator, pattern, rows)?;
        pieces::for_each(pieces::each(&mut cut), |_, piece| fill::measure_piece(pattern, piece));
        let mut windows = Buffer::<Window>::zeroed(allocator, slice_count.div_ceil(WINDOW_SLICES))?;
        let sizes = fill::place(&mut windows, &mut slices, &lengths, &mut cut);
        let mut positions = Buffer::<i64>::zeroed(allocator, if origin.keep { sizes.values } else { 0 })?;
        let bytes = [
            arena::bytes::<Slice>(slice_count),
            Values::<V>::bytes(form, sizes.values),
            arena::bytes::<u16>(sizes.words),
        ];
        let bytes = bytes.into_iter().fold(0, usize::saturating_add);
        let mut arena = Arena::zeroed(allocator, bytes)?;
        let mut placed = arena.take::<Slice>(slice_count);
        placed.copy_from_slice(&slices);
        drop(slices);

        let mut out = SellLayout {
            col_count: pattern.minor,
            row_count: rows,
            slices: placed,
            windows,
            values: Values::take(&mut arena, form, sizes.values),
            words: arena.take(sizes.words),
            pieces: cut,
            long_rows,
            positions: None,
            entries: pattern.indices.len(),
        };
        pool::run(|| {
            let arrays = (&mut *out.words, &mut *positions);
            let structure = fill::Structure {
                windows: &out.windows,
                slices: &out.slices,
                rows: &lane_rows,
                lengths: &lengths,
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

    /// Returns the first value and the first word of a slice.
    #[inline(always)]
    pub fn starts(&self, number: usize) -> (usize, usize) {
        starts(&self.windows, &self.slices, number)
    }

    /// Returns the row of each lane of a slice, or [`NO_ROW`].
    #[inline(always)]
    pub fn rows(&self, number: usize) -> [u32; LANES] {
        let (slice, words) = (&self.slices[number], &self.words[self.starts(number).1..]);
        let first = (number / WINDOW_SLICES * WINDOW) as u32;
        std::array::from_fn(|lane| match slice.is_even() {
            true => first + (slice.first_row() + lane) as u32,
            false if words[lane] == NO_LANE => NO_ROW,
            false => first + u32::from(words[lane]),
        })
    }

    /// Returns the number of entries of each lane of a slice.
    #[inline(always)]
    pub fn lengths(&self, number: usize) -> [u32; LANES] {
        let (slice, words) = (&self.slices[number], &self.words[self.starts(number).1..]);
        std::array::from_fn(|lane| match slice.is_equal() {
            true => u32::from(slice.steps),
            false => u32::from(words[slice.lengths_at() + lane]),
        })
    }

    /// Returns the slots of a lane's entries in `values`, in the order of its row.
    pub fn places(&self, number: usize, lane: usize) -> impl Iterator<Item = usize> {
        let (first, lengths) = (self.starts(number).0, self.lengths(number));
        let steps = usize::from(self.slices[number].steps);
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

    fn wide(&self, at: usize) -> u32 {
        u32::from(self.words[at]) | u32::from(self.words[at + 1]) << 16
    }

    /// Calls `f(slot in values, column)` for the entries of a lane, in the order of its row.
    #[inline(always)]
    pub fn for_each_of_lane(&self, number: usize, lane: usize, mut f: impl FnMut(usize, usize)) {
        let slice = &self.slices[number];
        let (values, words) = self.starts(number);
        let first = words + slice.columns_at();
        for place in self.places(number, lane) {
            let at = place - values;
            let column = match slice.columns() {
                Columns::Narrow => u32::from(self.words[first + at]),
                Columns::Wide => self.wide(first + 2 * at),
                Columns::Runs => u32::from(self.words[first + at / LANES]) + (at % LANES) as u32,
            };
            f(place, (slice.base + column) as usize);
        }
    }

    /// Calls `f(slot in values, column)` for the entries of a piece, in their order.
    #[inline(always)]
    pub fn for_each_of_piece(&self, piece: &Piece, mut f: impl FnMut(usize, usize)) {
        for at in 0..piece.len as usize {
            let column = match piece.is_wide() {
                true => self.wide(piece.words as usize + 2 * at),
                false => u32::from(self.words[piece.words as usize + at]),
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
                let row = self.rows(number)[lane] as usize;
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
