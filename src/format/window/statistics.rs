//! Counts on which the choice of windows and of their height is based, taken in windows of 64 rows: in all of
//! them, or for a large matrix in a sample, one from each of equal ranges of windows, drawn by a fixed rule.
//!
//! [`Counts::of`] counts on the CPU; the CUDA backend (kernels/format/window.cu) gets the same numbers in one
//! launch.

use super::{gather, numbered, row_of, Entry, HEIGHTS};
use crate::matrix::compressed::Pattern;
use crate::types::Index;

/// log2 of the number of sampled windows. Of 848 products of 53 matrices, 64 windows give 11 another algorithm than all
/// windows do, none another height, and the same loss against the fastest algorithm; 32 windows give seven another
/// height (docs/algorithms/memory-and-streams.md, "Choices and counts of SpMM").
const SAMPLES_LOG2: u32 = 6;
/// Number of entries above which a window is left out: counting it would outlast all others.
const MOST_WINDOW_ENTRIES: usize = 1 << 17;

/// Columns of a block, and rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowShape {
    /// Number of columns of a block: 8 or 16.
    pub block: usize,
    /// Number of rows of a tile: 8 or 16; windows of fewer rows have tiles of their height.
    pub group: usize,
}

/// Counts of columns, blocks and tiles for each height of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of rows of op(A).
    pub rows: usize,
    /// Number of stored entries.
    pub nnz: usize,
    /// Number of entries of the sampled windows.
    pub sampled_nnz: usize,
    /// Number of columns of these if they are cut into windows of each of [`HEIGHTS`].
    pub columns: [usize; 4],
    /// Number of blocks of columns, likewise.
    pub blocks: [usize; 4],
    /// Number of tiles, likewise: groups of rows of a block that have an entry.
    pub tiles: [usize; 4],
    /// Number of spans of 16 columns, from a multiple of 16 on, that have an entry, likewise: blocks of BCSR.
    /// In a window with repeated columns each column counts as a span.
    pub spans_16: [usize; 4],
    /// Number of spans of 8 columns that have an entry, likewise.
    pub spans_8: [usize; 4],
}

/// Returns the number of windows of 64 rows, and log2 of how many are sampled, or `None` if all are counted.
pub fn samples(rows: usize) -> (usize, Option<u32>) {
    let windows = rows.div_ceil(HEIGHTS[3]);
    (windows, (windows > 1 << SAMPLES_LOG2).then_some(SAMPLES_LOG2))
}

/// Returns the number of the window that is sample `k`.
pub(super) fn window_of(k: usize, samples_log2: Option<u32>, windows: usize) -> usize {
    let Some(log2) = samples_log2 else { return k };
    let first = |k: usize| ((k as u64 * windows as u64) >> log2) as usize;
    let others = (first(k + 1) - first(k)) as u64;
    let random = (k as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    first(k) + ((random * others) >> 32) as usize
}

impl Counts {
    /// Counts in sorted rows; `scratch` must be as long as the longest window of 64 rows.
    pub(crate) fn of<I: Index, J: Index>(
        pattern: &Pattern<'_, I, J>,
        rows: usize,
        shape: WindowShape,
        scratch: &mut [Entry],
    ) -> Self {
        let mut out = Counts { rows, nnz: pattern.indices.len(), ..Counts::default() };
        let (windows, samples_log2) = samples(rows);
        for sample in 0..samples_log2.map_or(windows, |log2| 1 << log2) {
            let first = window_of(sample, samples_log2, windows) * HEIGHTS[3];
            let range = first..rows.min(first + HEIGHTS[3]);
            let entries = pattern.range(range.end - 1).end - pattern.range(first).start;
            if entries > MOST_WINDOW_ENTRIES {
                continue;
            }
            out.sampled_nnz += entries;
            let entries = gather(pattern, range, scratch);
            for (at, height) in HEIGHTS.into_iter().enumerate() {
                for window in 0..HEIGHTS[3] / height {
                    out.add(at, entries.iter().filter(|e| row_of(e) / height == window), shape);
                }
            }
        }
        out
    }

    /// Adds the counts of one window, whose entries are sorted, to those of height `HEIGHTS[at]`.
    pub(super) fn add<'a>(
        &mut self,
        at: usize,
        entries: impl Iterator<Item = &'a Entry>,
        shape: WindowShape,
    ) {
        // Heights and groups are powers of two.
        let (row_bits, group_log2) = (HEIGHTS[at] - 1, shape.group.min(HEIGHTS[at]).ilog2());
        let (mut columns, mut mask) = (0, 0_u32);
        let (mut spans, mut last, mut repeats) = ([0; 2], [u64::MAX; 2], false);
        for (number, entry) in numbered(entries) {
            if number == columns {
                columns += 1;
                if number % shape.block == 0 {
                    self.tiles[at] += mask.count_ones() as usize;
                    mask = 0;
                }
            }
            mask |= 1 << ((row_of(entry) & row_bits) >> group_log2);
            repeats |= entry[0] as u32 > 0;
            for (kind, width) in [16, 8].into_iter().enumerate() {
                let span = (entry[0] >> 32) / width;
                spans[kind] += usize::from(last[kind] != span);
                last[kind] = span;
            }
        }
        let [of_16, of_8] = if repeats { [columns; 2] } else { spans };
        self.spans_16[at] += of_16;
        self.spans_8[at] += of_8;
        self.tiles[at] += mask.count_ones() as usize;
        self.columns[at] += columns;
        self.blocks[at] += columns.div_ceil(shape.block);
    }

    /// Returns the counts expected if a reordering of the rows left the share `share` of the windows'
    /// columns; no fewer columns than one for each row of a window.
    pub fn hoped(&self, share: f64) -> Self {
        let mut out = *self;
        for (at, height) in HEIGHTS.into_iter().enumerate() {
            let least = (self.sampled_nnz as f64 / height as f64 / self.columns[at].max(1) as f64).min(1.0);
            let scale = |count: usize| (count as f64 * share.max(least)).ceil() as usize;
            out.columns[at] = scale(self.columns[at]);
            out.blocks[at] = scale(self.blocks[at]);
            out.tiles[at] = scale(self.tiles[at]);
        }
        out
    }

    /// Returns ρ_h: the number of entries for which a window uses a row of B that it has read; 1 if nothing
    /// was sampled.
    pub fn reuse(&self, height: usize) -> f64 {
        match self.sampled_nnz {
            0 => 1.0,
            sampled_nnz => sampled_nnz as f64 / self.columns[height_index(height)].max(1) as f64,
        }
    }

    /// Returns the estimated number of columns of all windows of a height.
    pub fn all_columns(&self, height: usize) -> f64 {
        self.nnz as f64 / self.reuse(height)
    }

    /// Returns a count scaled to the entries of all windows; `unknown` if nothing was sampled.
    fn scaled(&self, count: usize, unknown: f64) -> f64 {
        match self.sampled_nnz {
            0 => unknown,
            sampled_nnz => count as f64 * self.nnz as f64 / sampled_nnz as f64,
        }
    }

    /// Returns the estimated numbers of blocks and of tiles of all windows of a height.
    pub fn all_blocks(&self, height: usize, shape: WindowShape) -> (f64, f64) {
        let unknown = self.nnz as f64 / shape.block as f64;
        let at = height_index(height);
        (self.scaled(self.blocks[at], unknown), self.scaled(self.tiles[at], unknown))
    }

    /// Returns the estimated number of BCSR blocks of 16, or else of 8, columns in all windows of a height.
    pub fn all_spans(&self, height: usize, of_16: bool) -> f64 {
        let spans = if of_16 { &self.spans_16 } else { &self.spans_8 };
        self.scaled(spans[height_index(height)], self.nnz as f64)
    }
}

/// Returns the index of a height in [`HEIGHTS`].
pub(super) fn height_index(height: usize) -> usize {
    HEIGHTS.iter().position(|&other| other == height).unwrap_or(0)
}
