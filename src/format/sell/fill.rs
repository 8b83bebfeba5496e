//! Steps of building the SELL-C-σ layout: sorting, measuring, placing and filling.

use std::ops::Range;
use std::sync::Arc;

use super::{starts, Columns, LongRow, Origin, Piece, Slice, Window};
use super::{EQUAL, EVEN, FIRST_ROW, LANES, LONG, NO_LANE, NO_ROW, WINDOW, WINDOW_SLICES};
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::GRAIN;
use crate::matrix::compressed::Pattern;
use crate::memory::{pool, Allocator, Buffer};
use crate::types::Index;

/// Number of columns that 16 bits can number.
const SPAN: i64 = 1 << 16;

/// Lengths of the arrays `values` and `words`.
pub(super) struct Sizes {
    pub values: usize,
    pub words: usize,
}

/// Sorts the rows of a window that are not long by descending length, and fills in their lengths. A counting
/// sort: stable, and without memory besides the counters.
pub(super) fn sort_window<I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    first: usize,
    rows: &mut [u32],
    lengths: &mut [u32],
) {
    let last = pattern.major.min(first + WINDOW);
    let length = |row: usize| {
        let (start, end) = (pattern.offsets[row].to_i64(), pattern.offsets[row + 1].to_i64());
        (end - start) as usize
    };
    let (mut count, mut previous, mut sorted) = (0, LONG, true);
    for row in first..last {
        let length = length(row);
        if length <= LONG {
            (rows[count], lengths[count]) = (row as u32, length as u32);
            sorted &= length <= previous;
            previous = length;
            count += 1;
        }
    }
    rows[count..].fill(NO_ROW);
    lengths[count..].fill(0);
    if sorted {
        return;
    }
    // starts[l]: index at which the next row of l entries goes.
    let mut starts = [0_u16; LONG + 1];
    lengths[..count].iter().for_each(|&length| starts[length as usize] += 1);
    let mut next = 0;
    for start in starts.iter_mut().rev() {
        (*start, next) = (next, next + *start);
    }
    for row in first..last {
        let length = length(row);
        if length <= LONG {
            let at = starts[length] as usize;
            (rows[at], lengths[at]) = (row as u32, length as u32);
            starts[length] += 1;
        }
    }
}

/// Extends `bounds` to the smallest and the largest of the columns (base 0), if there are any.
fn span<J: Index>(indices: &[J], base: i64, bounds: &mut Option<(i64, i64)>) {
    let Some(&first) = indices.first() else {
        return;
    };
    // Selects instead of `Iterator::min`, so that the loop becomes vector code.
    let (low, high) = indices.iter().fold((first, first), |(low, high), &index| {
        (if index < low { index } else { low }, if index > high { index } else { high })
    });
    let (low, high) = (low.to_i64() - base, high.to_i64() - base);
    *bounds = Some(bounds.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
}

/// Returns the head of a slice, except for where its values and words start. `first` is the first row of its
/// window.
pub(super) fn measure<I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
    first: usize,
    rows: &[u32],
    lengths: &[u32],
) -> Slice {
    let entries = |lane: usize| &pattern.indices[pattern.range(rows[lane] as usize)];
    let (full, steps) = (lengths[LANES - 1], lengths[LANES / 2 - 1]);
    let mut bounds = None;
    for lane in (0..LANES).filter(|&lane| lengths[lane] > 0) {
        span(entries(lane), pattern.base, &mut bounds);
    }
    let (low, high) = bounds.unwrap_or((0, 0));
    let equal = lengths[0] == full;
    let in_order = (1..LANES).all(|lane| rows[lane] == rows[0].wrapping_add(lane as u32));
    let narrow = high - low < SPAN;
    let runs = || {
        (1..LANES).all(|lane| {
            let pairs = entries(0).iter().zip(entries(lane));
            pairs.into_iter().all(|(first, mine)| mine.to_i64() == first.to_i64() + lane as i64)
        })
    };
    let columns = if narrow && equal && full > 0 && runs() { 2 } else { u16::from(!narrow) };
    let mut flags = columns | if equal { EQUAL } else { 0 };
    if equal && in_order && rows[LANES - 1] != NO_ROW {
        flags |= EVEN | ((rows[0] as usize - first) as u16) << FIRST_ROW;
    }
    // No lane has more than LONG entries.
    Slice { values: 0, words: 0, base: low as u32, steps: steps as u16, flags }
}

/// Returns the long rows and their pieces, except for where the values and columns of these start.
pub(super) fn cut_long_rows<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    rows: usize,
) -> Result<(Buffer<Piece>, Buffer<LongRow>)> {
    let long = || (0..rows).map(|row| (row, pattern.range(row))).filter(|(_, range)| range.len() > LONG);
    let (mut row_count, mut piece_count) = (0, 0);
    // A matrix of fewer entries has no long row.
    if pattern.indices.len() > LONG {
        for (_, range) in long() {
            row_count += 1;
            piece_count += range.len().div_ceil(LONG);
        }
    }
    let mut pieces = Buffer::<Piece>::zeroed(allocator, piece_count)?;
    let mut long_rows = Buffer::<LongRow>::zeroed(allocator, row_count)?;
    let mut next = 0;
    for (out, (row, range)) in long_rows.iter_mut().zip(long()) {
        let first = next;
        for start in range.clone().step_by(LONG) {
            let piece = &mut pieces[next];
            (piece.first, piece.len) = (start as u64, (range.end - start).min(LONG) as u32);
            next += 1;
        }
        *out = LongRow { row: row as u64, first: first as u64, last: next as u64 };
    }
    Ok((pieces, long_rows))
}

/// Sets the base and the width of a piece's columns.
pub(super) fn measure_piece<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, piece: &mut Piece) {
    let mut bounds = None;
    let first = piece.first as usize;
    span(&pattern.indices[first..first + piece.len as usize], pattern.base, &mut bounds);
    let (low, high) = bounds.unwrap_or((0, 0));
    (piece.base, piece.wide) = (low as u32, u32::from(high - low >= SPAN));
}

/// Returns the number of slots for the values of a slice.
fn slots(slice: &Slice, lengths: &[u32]) -> usize {
    let steps = usize::from(slice.steps);
    let tails: usize = lengths.iter().map(|&length| (length as usize).saturating_sub(steps)).sum();
    (steps * LANES + tails).next_multiple_of(LANES)
}

/// Assigns the start of the values and words of all slices, then of all pieces, and returns the lengths of
/// the arrays.
pub(super) fn place(
    windows: &mut [Window],
    slices: &mut [Slice],
    lengths: &[u32],
    pieces: &mut [Piece],
) -> Sizes {
    let mut sizes = Sizes { values: 0, words: 0 };
    let lengths = lengths.chunks(WINDOW_SLICES * LANES);
    for (window, (slices, lengths)) in windows.iter_mut().zip(slices.chunks_mut(WINDOW_SLICES).zip(lengths)) {
        *window = Window { values: sizes.values as u64, words: sizes.words as u64 };
        let first = (sizes.values, sizes.words);
        for (slice, lengths) in slices.iter_mut().zip(lengths.chunks_exact(LANES)) {
            let slots = slots(slice, lengths);
            (slice.values, slice.words) = ((sizes.values - first.0) as u32, (sizes.words - first.1) as u32);
            sizes.values += slots;
            sizes.words += slice.columns_at()
                + match slice.columns() {
                    Columns::Narrow => slots,
                    Columns::Wide => 2 * slots,
                    Columns::Runs => usize::from(slice.steps),
                };
        }
    }
    for piece in pieces {
        (piece.values, piece.words) = (sizes.values as u64, sizes.words as u64);
        sizes.values += piece.len as usize;
        sizes.words += piece.len as usize * if piece.is_wide() { 2 } else { 1 };
    }
    sizes
}

/// Section of the output arrays that one task fills; `first` is where it begins in `values` and `words`. S
/// is the type in which values are stored.
struct SellSection<'a, S> {
    first: (usize, usize),
    values: &'a mut [S],
    words: &'a mut [u16],
    positions: &'a mut [i64],
}

impl<'a, S> SellSection<'a, S> {
    /// Splits the section where a slice or piece begins.
    fn split(self, at: (usize, usize)) -> (Self, Self) {
        let (v0, v1) = self.values.split_at_mut(at.0 - self.first.0);
        let (w0, w1) = self.words.split_at_mut(at.1 - self.first.1);
        let kept = self.positions.len().min(v0.len());
        let (p0, p1) = self.positions.split_at_mut(kept);
        (
            SellSection { first: self.first, values: v0, words: w0, positions: p0 },
            SellSection { first: at, values: v1, words: w1, positions: p1 },
        )
    }
}

/// Input that all tasks read.
struct Source<'a, I, J, V> {
    pattern: &'a Pattern<'a, I, J>,
    values: &'a [V],
    origin: Origin<'a>,
}

impl<I: Index, J: Index, V: Copy + Sync> Source<'_, I, J, V> {
    fn fill_slice<S: Holds<V>>(
        &self,
        slice: &Slice,
        (value, word): (usize, usize),
        lanes: (&[u32], &[u32]),
        section: &mut SellSection<'_, S>,
    ) {
        let (rows, lengths) = lanes;
        let (full, steps) = (lengths[LANES - 1] as usize, usize::from(slice.steps));
        let words = &mut section.words[word - section.first.1..];
        if !slice.is_even() {
            for (word, &row) in words.iter_mut().zip(rows) {
                *word = if row == NO_ROW { NO_LANE } else { (row as usize % WINDOW) as u16 };
            }
        }
        if !slice.is_equal() {
            let words = words[slice.lengths_at()..].iter_mut();
            words.zip(lengths).for_each(|(word, &length)| *word = length as u16);
        }
        let from = (value, word + slice.columns_at(), slice.base);
        if !section.positions.is_empty() {
            let first = from.0 - section.first.0;
            section.positions[first..first + slots(slice, lengths)].fill(-1);
        }
        let start = |lane: usize| self.pattern.range(rows[lane] as usize).start;
        if full > 0 {
            // Steps that all lanes have are written in the order of the slots: lane by lane, the writes would
            // be a cache line apart.
            let starts: [usize; LANES] = std::array::from_fn(start);
            let step = |step| (0..LANES).map(move |lane| (step * LANES + lane, starts[lane] + step));
            self.put(from, slice.columns(), (0..full).flat_map(step), section);
        }
        let mut tail = steps * LANES;
        // Lengths descend: behind a lane without further entries no lane has any.
        for (lane, &length) in lengths.iter().enumerate().take_while(|(_, &length)| length as usize > full) {
            let (start, length) = (start(lane), length as usize);
            let interleaved = (full..steps.min(length)).map(|entry| (entry * LANES + lane, start + entry));
            let behind = (steps..length).map(|entry| (tail + entry - steps, start + entry));
            self.put(from, slice.columns(), interleaved.chain(behind), section);
            tail += length.saturating_sub(steps);
        }
    }

    fn fill_piece<S: Holds<V>>(&self, piece: &Piece, section: &mut SellSection<'_, S>) {
        let from = (piece.values as usize, piece.words as usize, piece.base);
        let columns = if piece.is_wide() { Columns::Wide } else { Columns::Narrow };
        let start = piece.first as usize;
        self.put(from, columns, (0..piece.len as usize).map(|at| (at, start + at)), section);
    }

    /// Writes the values, columns and positions of entries of a slice or a piece, given its first value,
    /// first column's word and base. `entries` has the slot and the index in the pattern of each entry.
    #[inline(always)]
    fn put<S: Holds<V>>(
        &self,
        (value, word, base): (usize, usize, u32),
        form: Columns,
        entries: impl Iterator<Item = (usize, usize)> + Clone,
        section: &mut SellSection<'_, S>,
    ) {
        let value = value - section.first.0;
        let to = &mut section.values[value..];
        entries.clone().for_each(|(slot, at)| to[slot] = S::hold(self.values[at]));
        let base = self.pattern.base + i64::from(base);
        let relative = |at: usize| (self.pattern.indices[at].to_i64() - base) as u32;
        let to = &mut section.words[word - section.first.1..];
        match form {
            Columns::Narrow => entries.clone().for_each(|(slot, at)| to[slot] = relative(at) as u16),
            Columns::Wide => entries.clone().for_each(|(slot, at)| {
                let column = relative(at);
                (to[2 * slot], to[2 * slot + 1]) = (column as u16, (column >> 16) as u16);
            }),
            // Only the columns of lane 0 are stored; all steps are full.
            Columns::Runs => {
                let of_lane_0 = entries.clone().filter(|(slot, _)| slot % LANES == 0);
                of_lane_0.for_each(|(slot, at)| to[slot / LANES] = relative(at) as u16);
            }
        }
        if !section.positions.is_empty() {
            let to = &mut section.positions[value..];
            entries.for_each(|(slot, at)| to[slot] = self.origin.of(at));
        }
    }
}

/// Slices and pieces whose starts are assigned.
pub(super) struct Structure<'a> {
    pub windows: &'a [Window],
    pub slices: &'a [Slice],
    pub rows: &'a [u32],
    pub lengths: &'a [u32],
    pub pieces: &'a [Piece],
}

impl Structure<'_> {
    /// Fills the arrays of stored values, words and positions.
    pub(super) fn fill<I: Index, J: Index, V: Copy + Sync, S: Holds<V>>(
        &self,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        stored: &mut [S],
        (words, positions): (&mut [u16], &mut [i64]),
    ) {
        let source = Source { pattern, values, origin };
        let whole = SellSection { first: (0, 0), values: stored, words, positions };
        let start = |run: usize| match run.checked_sub(self.slices.len()) {
            None => starts(self.windows, self.slices, run),
            Some(piece) => (self.pieces[piece].values as usize, self.pieces[piece].words as usize),
        };
        let fill = |run: usize, section: &mut SellSection<'_, S>| match run.checked_sub(self.slices.len()) {
            None => {
                let lanes = run * LANES..(run + 1) * LANES;
                let lanes = (&self.rows[lanes.clone()], &self.lengths[lanes]);
                source.fill_slice(&self.slices[run], start(run), lanes, section);
            }
            Some(piece) => source.fill_piece(&self.pieces[piece], section),
        };
        fill_runs(0..self.slices.len() + self.pieces.len(), &start, &fill, whole);
    }
}

/// Calls `fill` for the slices and the pieces behind them, both numbered as runs, in parallel. `start` returns
/// the first value and the first word of a run; `section` has those of all.
fn fill_runs<S: Send>(
    runs: Range<usize>,
    start: &(impl Fn(usize) -> (usize, usize) + Sync),
    fill: &(impl Fn(usize, &mut SellSection<'_, S>) + Sync),
    mut section: SellSection<'_, S>,
) {
    if runs.len() > 1 && section.values.len() > GRAIN {
        let middle = runs.start + runs.len() / 2;
        let (low, high) = section.split(start(middle));
        pool::join(
            || fill_runs(runs.start..middle, start, fill, low),
            || fill_runs(middle..runs.end, start, fill, high),
        );
        return;
    }
    runs.for_each(|run| fill(run, &mut section));
}
