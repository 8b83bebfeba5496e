//! How the layout is made.

use std::sync::Arc;

use super::{Columns, LongRow, Origin, Piece, Slice, EVEN, LANES, LONG, NO_ROW, WINDOW};
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::GRAIN;
use crate::matrix::compressed::Pattern;
use crate::memory::{pool, Allocator, Buffer};
use crate::types::Index;

/// Columns that 16 bits number.
const SPAN: i64 = 1 << 16;

/// Elements of the two arrays.
pub(super) struct Sizes {
    pub values: usize,
    pub columns: usize,
}

/// The rows of a window that are not long, by descending length, and their
/// lengths. Counting sort: stable, and no memory but counters.
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
    // starts[l]: where the next row of l entries goes.
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

/// The smallest and the largest column (base 0), if there is one.
fn span<J: Index>(indices: &[J], base: i64, bounds: &mut Option<(i64, i64)>) {
    let Some(&first) = indices.first() else {
        return;
    };
    // Selects and not `Iterator::min`, so that the loop becomes vector code.
    let (low, high) = indices.iter().fold((first, first), |(low, high), &index| {
        (if index < low { index } else { low }, if index > high { index } else { high })
    });
    let (low, high) = (low.to_i64() - base, high.to_i64() - base);
    *bounds = Some(bounds.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
}

/// Everything of a slice but where it starts.
pub(super) fn measure<I: Index, J: Index>(
    pattern: &Pattern<'_, I, J>,
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
    let columns = if narrow && equal && full > 0 && runs() { 2 } else { u32::from(!narrow) };
    let even = if equal && in_order && rows[LANES - 1] != NO_ROW { EVEN } else { 0 };
    Slice { values: 0, indices: 0, base: low as u32, full, steps, flags: columns | even }
}

/// The long rows and their pieces, without where they start.
pub(super) fn cut_long_rows<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    rows: usize,
) -> Result<(Buffer<Piece>, Buffer<LongRow>)> {
    let long = || (0..rows).map(|row| (row, pattern.range(row))).filter(|(_, range)| range.len() > LONG);
    let (mut row_count, mut piece_count) = (0, 0);
    // A matrix of fewer entries has none.
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

/// Base and width of a piece's columns.
pub(super) fn measure_piece<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, piece: &mut Piece) {
    let mut bounds = None;
    let first = piece.first as usize;
    span(&pattern.indices[first..first + piece.len as usize], pattern.base, &mut bounds);
    let (low, high) = bounds.unwrap_or((0, 0));
    (piece.base, piece.wide) = (low as u32, u32::from(high - low >= SPAN));
}

/// Slots for the values of a slice.
fn slots(slice: &Slice, lengths: &[u32]) -> usize {
    let tails: usize = lengths.iter().map(|&length| length.saturating_sub(slice.steps) as usize).sum();
    (slice.steps as usize * LANES + tails).next_multiple_of(LANES)
}

/// Says where everything starts: slices first, then the pieces.
pub(super) fn place(slices: &mut [Slice], lengths: &[u32], pieces: &mut [Piece]) -> Sizes {
    let mut sizes = Sizes { values: 0, columns: 0 };
    for (slice, lengths) in slices.iter_mut().zip(lengths.chunks_exact(LANES)) {
        let slots = slots(slice, lengths);
        (slice.values, slice.indices) = (sizes.values as u64, sizes.columns as u64);
        sizes.values += slots;
        sizes.columns += match slice.columns() {
            Columns::Narrow => slots,
            Columns::Wide => 2 * slots,
            Columns::Runs => slice.steps as usize,
        };
    }
    for piece in pieces {
        (piece.values, piece.indices) = (sizes.values as u64, sizes.columns as u64);
        sizes.values += piece.len as usize;
        sizes.columns += piece.len as usize * if piece.is_wide() { 2 } else { 1 };
    }
    sizes
}

/// The arrays from certain places on, while tasks share them out; S is the type that
/// values are stored in.
struct Part<'a, S> {
    first: (usize, usize),
    values: &'a mut [S],
    columns: &'a mut [u16],
    positions: &'a mut [i64],
}

impl<'a, S> Part<'a, S> {
    /// What lies before a slice or piece, and the rest.
    fn split(self, (values, columns): (u64, u64)) -> (Self, Self) {
        let at = (values as usize, columns as usize);
        let (v0, v1) = self.values.split_at_mut(at.0 - self.first.0);
        let (c0, c1) = self.columns.split_at_mut(at.1 - self.first.1);
        let kept = self.positions.len().min(v0.len());
        let (p0, p1) = self.positions.split_at_mut(kept);
        (
            Part { first: self.first, values: v0, columns: c0, positions: p0 },
            Part { first: at, values: v1, columns: c1, positions: p1 },
        )
    }

    /// Writes the column (relative to its base) of a slot.
    #[inline(always)]
    fn set_wide(columns: &mut [u16], slot: usize, col: u32) {
        (columns[2 * slot], columns[2 * slot + 1]) = (col as u16, (col >> 16) as u16);
    }
}

/// What all tasks read.
struct Source<'a, I, J, V> {
    pattern: &'a Pattern<'a, I, J>,
    values: &'a [V],
    origin: Origin<'a>,
}

impl<I: Index, J: Index, V: Copy + Sync> Source<'_, I, J, V> {
    fn col(&self, at: usize) -> u32 {
        (self.pattern.indices[at].to_i64() - self.pattern.base) as u32
    }

    fn position(&self, at: usize) -> i64 {
        self.origin.positions.map_or(at as i64, |positions| positions[at])
    }

    fn fill_slice<S: Holds<V>>(&self, slice: &Slice, rows: &[u32], lengths: &[u32], part: &mut Part<'_, S>) {
        let steps = slice.steps as usize;
        let first = slice.values as usize - part.first.0;
        let slots = slots(slice, lengths);
        if !part.positions.is_empty() {
            part.positions[first..first + slots].fill(-1);
        }
        let full = slice.full as usize;
        if full > 0 {
            self.fill_full_steps(slice, rows, first, part);
        }
        let mut tail = steps * LANES;
        for (lane, (&row, &length)) in rows.iter().zip(lengths).enumerate() {
            if length as usize == full {
                // So have all that follow.
                break;
            }
            let start = self.pattern.range(row as usize).start;
            let head = steps.min(length as usize);
            let place = (full * LANES + lane, LANES);
            self.fill_row(slice, start + full, head - full, place, first, part);
            if head < length as usize {
                let rest = length as usize - head;
                self.fill_row(slice, start + head, rest, (tail, 1), first, part);
                tail += rest;
            }
        }
    }

    /// The steps that all lanes have, in the order of the slots: lane by lane the
    /// writes would be a cache line apart.
    fn fill_full_steps<S: Holds<V>>(
        &self,
        slice: &Slice,
        rows: &[u32],
        first: usize,
        part: &mut Part<'_, S>,
    ) {
        let full = slice.full as usize;
        let starts: [usize; LANES] =
            std::array::from_fn(|lane| self.pattern.range(rows[lane] as usize).start);
        let values = starts.map(|start| &self.values[start..start + full]);
        for (step, out) in part.values[first..].chunks_exact_mut(LANES).take(full).enumerate() {
            for (slot, lane) in out.iter_mut().zip(&values) {
                *slot = S::hold(lane[step]);
            }
        }
        let indices = starts.map(|start| &self.pattern.indices[start..start + full]);
        let base = self.pattern.base + i64::from(slice.base);
        let relative = |index: J| (index.to_i64() - base) as u32;
        let out = &mut part.columns[slice.indices as usize - part.first.1..];
        match slice.columns() {
            Columns::Narrow => {
                for (step, out) in out.chunks_exact_mut(LANES).take(full).enumerate() {
                    for (slot, lane) in out.iter_mut().zip(&indices) {
                        *slot = relative(lane[step]) as u16;
                    }
                }
            }
            Columns::Wide => {
                for (step, out) in out.chunks_exact_mut(2 * LANES).take(full).enumerate() {
                    for (lane, indices) in indices.iter().enumerate() {
                        Part::<S>::set_wide(out, lane, relative(indices[step]));
                    }
                }
            }
            Columns::Runs => {
                for (out, index) in out.iter_mut().zip(indices[0]) {
                    *out = relative(*index) as u16;
                }
            }
        }
        if !part.positions.is_empty() {
            for (step, out) in part.positions[first..].chunks_exact_mut(LANES).take(full).enumerate() {
                for (slot, start) in out.iter_mut().zip(starts) {
                    *slot = self.position(start + step);
                }
            }
        }
    }

    /// `count` entries from `start` on go to slots `at`, `at + step` ….
    fn fill_row<S: Holds<V>>(
        &self,
        slice: &Slice,
        start: usize,
        count: usize,
        (at, step): (usize, usize),
        first: usize,
        part: &mut Part<'_, S>,
    ) {
        let slots = (at..).step_by(step);
        let values = &self.values[start..start + count];
        let out = &mut part.values[first..];
        for (value, slot) in values.iter().zip(slots.clone()) {
            out[slot] = S::hold(*value);
        }
        let entries = start..start + count;
        let out = &mut part.columns[slice.indices as usize - part.first.1..];
        match slice.columns() {
            Columns::Narrow => {
                for (entry, slot) in entries.zip(slots.clone()) {
                    out[slot] = (self.col(entry) - slice.base) as u16;
                }
            }
            Columns::Wide => {
                for (entry, slot) in entries.zip(slots.clone()) {
                    Part::<S>::set_wide(out, slot, self.col(entry) - slice.base);
                }
            }
            // All of their steps are full.
            Columns::Runs => {}
        }
        if !part.positions.is_empty() {
            let out = &mut part.positions[first..];
            for (entry, slot) in (start..start + count).zip(slots) {
                out[slot] = self.position(entry);
            }
        }
    }

    fn fill_piece<S: Holds<V>>(&self, piece: &Piece, part: &mut Part<'_, S>) {
        let (start, count) = (piece.first as usize, piece.len as usize);
        let at = piece.values as usize - part.first.0;
        for (slot, value) in part.values[at..at + count].iter_mut().zip(&self.values[start..start + count]) {
            *slot = S::hold(*value);
        }
        let out = &mut part.columns[piece.indices as usize - part.first.1..];
        for entry in 0..count {
            let col = self.col(start + entry) - piece.base;
            if piece.is_wide() {
                Part::<S>::set_wide(out, entry, col);
            } else {
                out[entry] = col as u16;
            }
        }
        if !part.positions.is_empty() {
            for (entry, position) in part.positions[at..at + count].iter_mut().enumerate() {
                *position = self.position(start + entry);
            }
        }
    }
}

/// Slices and pieces that are placed.
pub(super) struct Structure<'a> {
    pub slices: &'a [Slice],
    pub rows: &'a [u32],
    pub lengths: &'a [u32],
    pub pieces: &'a [Piece],
}

impl Structure<'_> {
    /// Writes stored values, columns and positions.
    pub(super) fn fill<I: Index, J: Index, V: Copy + Sync, S: Holds<V>>(
        &self,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
        stored: &mut [S],
        (columns, positions): (&mut [u16], &mut [i64]),
    ) {
        let source = Source { pattern, values, origin };
        let whole = Part { first: (0, 0), values: stored, columns, positions };
        let end = (whole.values.len() as u64, whole.columns.len() as u64);
        let start = self.pieces.first().map_or(end, |piece| (piece.values, piece.indices));
        let (low, high) = whole.split(start);
        pool::join(
            || fill_slices(&source, self.slices, self.rows, self.lengths, low),
            || fill_pieces(&source, self.pieces, high),
        );
    }
}

/// Fills slices, halves of them in parallel.
fn fill_slices<I: Index, J: Index, V: Copy + Sync, S: Holds<V>>(
    source: &Source<'_, I, J, V>,
    slices: &[Slice],
    rows: &[u32],
    lengths: &[u32],
    mut part: Part<'_, S>,
) {
    if slices.len() > 1 && part.values.len() > GRAIN {
        let middle = slices.len() / 2;
        let (low, high) = part.split((slices[middle].values, slices[middle].indices));
        let (rows, lengths) = (rows.split_at(middle * LANES), lengths.split_at(middle * LANES));
        pool::join(
            || fill_slices(source, &slices[..middle], rows.0, lengths.0, low),
            || fill_slices(source, &slices[middle..], rows.1, lengths.1, high),
        );
        return;
    }
    let lanes = rows.chunks_exact(LANES).zip(lengths.chunks_exact(LANES));
    for (slice, (rows, lengths)) in slices.iter().zip(lanes) {
        source.fill_slice(slice, rows, lengths, &mut part);
    }
}

/// Fills pieces, halves of them in parallel.
fn fill_pieces<I: Index, J: Index, V: Copy + Sync, S: Holds<V>>(
    source: &Source<'_, I, J, V>,
    pieces: &[Piece],
    mut part: Part<'_, S>,
) {
    if pieces.len() > 1 {
        let middle = pieces.len() / 2;
        let (low, high) = part.split((pieces[middle].values, pieces[middle].indices));
        pool::join(
            || fill_pieces(source, &pieces[..middle], low),
            || fill_pieces(source, &pieces[middle..], high),
        );
    } else if let [piece] = pieces {
        source.fill_piece(piece, &mut part);
    }
}
