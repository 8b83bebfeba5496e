//! Whether slices that were read from bytes are what the executors' unchecked loads rely on.

use super::{Columns, SellLayout, Slice, LANES, NO_ROW};
use crate::layout::narrowing::Narrow;

impl<V: Narrow> SellLayout<V> {
    /// All places are inside the arrays, all columns inside x, and each row is stored once.
    pub(super) fn holds_together(&self) -> bool {
        let lanes = self.slices.len().checked_mul(LANES);
        if lanes != Some(self.rows.len()) || lanes != Some(self.lengths.len()) {
            return false;
        }
        let mut seen = vec![false; self.row_count];
        let mut is_new = |row: usize| seen.get_mut(row).is_some_and(|seen| !std::mem::replace(seen, true));
        let of_slices = self.slices.iter().enumerate().all(|(number, slice)| {
            let lanes = number * LANES..(number + 1) * LANES;
            let rows = &self.rows[lanes.clone()];
            let first = rows[0];
            self.fits(slice, &self.lengths[lanes])
                && rows.iter().all(|&row| row == NO_ROW || is_new(row as usize))
                && (!slice.is_even()
                    || rows.iter().zip(0..).all(|(&row, lane)| row == first.wrapping_add(lane)))
        });
        let of_pieces = self.pieces.iter().all(|piece| {
            let (first, len) = (piece.indices as usize, piece.len as usize);
            let ends = (piece.values as usize).checked_add(len).is_some_and(|end| end <= self.values.len());
            ends && self.all_inside(first, len, piece.base, piece.is_wide())
        });
        let of_long_rows = self.long_rows.iter().all(|long| {
            long.first <= long.last && long.last <= self.pieces.len() as u64 && is_new(long.row as usize)
        });
        let kept = self.positions.as_ref().is_none_or(|positions| positions.len() == self.values.len());
        of_slices && of_pieces && of_long_rows && kept
    }

    fn fits(&self, slice: &Slice, lengths: &[u32]) -> bool {
        let (steps, full) = (slice.steps as usize, slice.full as usize);
        let tails: usize = lengths.iter().map(|&length| (length as usize).saturating_sub(steps)).sum();
        let slots = steps * LANES + tails;
        let ends = (slice.values as usize).checked_add(slots).is_some_and(|end| end <= self.values.len());
        let falls = lengths.windows(2).all(|pair| pair[0] >= pair[1]);
        // Lanes of a step that is not full are counted down to the last that has it.
        let counts = full <= steps && (steps == full || lengths[0] as usize >= steps);
        let first = slice.indices as usize;
        let inside = match slice.columns() {
            Columns::Narrow => self.all_inside(first, slots, slice.base, false),
            Columns::Wide => self.all_inside(first, slots, slice.base, true),
            Columns::Runs => {
                let last = |&low: &u16| slice.base as usize + usize::from(low) + LANES <= self.col_count;
                tails == 0 && self.part(first, steps).is_some_and(|columns| columns.iter().all(last))
            }
        };
        ends && falls && counts && inside
    }

    fn part(&self, first: usize, count: usize) -> Option<&[u16]> {
        self.columns.get(first..first.checked_add(count)?)
    }

    /// So many columns from a place on.
    fn all_inside(&self, first: usize, count: usize, base: u32, wide: bool) -> bool {
        let Some(part) = self.part(first, if wide { 2 * count } else { count }) else { return false };
        // What is left of x behind the base, which may be its end where there are no columns.
        let Some(room) = self.col_count.checked_sub(base as usize) else { return false };
        match wide {
            true => part
                .chunks_exact(2)
                .all(|halves| (usize::from(halves[0]) | usize::from(halves[1]) << 16) < room),
            false => part.iter().all(|&column| usize::from(column) < room),
        }
    }
}
