//! Pattern statistics of op(A) for the choice among SpMV's layouts.
//!
//! Row lengths are counted exactly, which gives the slots of `sell`, `stream` and `dasp`; so are rows that
//! share their columns, which `sell` stores once. Other statistics of columns are counted in a sample: at
//! most [`SAMPLES`] runs of [`RUN`] rows, one in each of equal parts of the matrix, drawn by a fixed rule.
//! Cost: reading the offsets twice, some kilobytes a run, the last columns of rows as long as the one before,
//! and all columns of those that end alike.
//!
//! [`SpmvStatistics::of`] counts on the CPU. The CUDA backend counts on the device
//! (kernels/analysis/statistics.cu and shared.cu) and gets exactly the same numbers. Statistics are counted
//! before the pattern is validated, so that neither trusts it: rows are clipped to the array's length, and
//! columns are compared but never used as indices.

use std::ops::Range;

use rayon::prelude::*;

use crate::format::{dasp, warp_sell};
use crate::matrix::compressed::Pattern;
use crate::types::Index;

/// Rows of a run: as many as a slice of `sell` has, and whole slabs of `mask_block`.
pub const RUN: usize = 32;
/// Maximum number of runs that are sampled: eight for each multiprocessor of an H100, and enough for shares
/// to be right to 2 %.
pub const SAMPLES: usize = 1024;
/// Number of lengths with a bucket of their own: 0 to 256, the classes of `dasp`.
const EXACT: usize = dasp::MAX_LEN + 1;
/// Number of buckets for lengths from 257 to 2³¹ − 1, four an octave.
const COARSE: usize = 4 * (31 - 8);
/// Number of buckets of the histogram.
pub const BUCKETS: usize = EXACT + COARSE;
/// Maximum number of blocks of a slab that are counted; the device counts them one after another. On 53 matrices in three
/// precisions 8 to 48 lead to the same algorithm (`sell` for 158 of 159 products); with 16 instead of 48 the mean of
/// entries a block changes by more than 15 % on five of them, which have long rows.
const MOST_BLOCKS: usize = 16;
/// Rows of a slab of `mask_block`, and log2 of the columns of its blocks.
const SLAB: usize = 8;
const BLOCK_LOG2: u32 = 2;
/// Number of columns that 16 bits can tell apart.
const NARROW: i64 = 1 << 16;

/// Indices of the counts after the histogram; kernels/analysis/statistics.cu has the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Longest row.
    Longest = BUCKETS as isize,
    /// Entries of the rows with more than 256.
    LongEntries,
    /// Groups of 64 entries of these rows.
    LongGroups,
    /// Entries of the sampled runs.
    Entries,
    /// Entries of sampled runs whose columns span at most 2^16.
    Narrow,
    /// Entries of sampled runs of 32 rows of one length, each with the columns of the row before plus one.
    Shifted,
    /// Sampled entries along rows: the first 32 of each run in storage order.
    Along,
    /// Sectors of x that the entries along rows touch.
    AlongSectors,
    /// Sampled entries across rows: the middle one of each row of a run.
    Across,
    /// Sectors of x that the entries across rows touch.
    AcrossSectors,
    /// Entries of the counted blocks.
    BlockEntries,
    /// Number of counted blocks of 8 × 4.
    Blocks8,
    /// Number of counted blocks of 4 × 4.
    Blocks4,
    /// Entries of items of 2 rows of `sell`, if K were 2.
    Twos,
    /// Entries of items of 3 rows of `sell`, if K were 3.
    Threes,
}

/// Number of counts, with those of the histogram.
pub const WORDS: usize = Word::Threes as usize + 1;
/// Index of the first of the last two counts, for which the CUDA backend has other kernels.
pub const SHARED: usize = Word::Twos as usize;

/// Pattern statistics of a matrix for SpMV.
#[derive(Clone, Debug, PartialEq)]
pub struct SpmvStatistics {
    /// Rows of op(A).
    pub rows: u64,
    /// Columns of op(A).
    pub cols: u64,
    /// Stored entries.
    pub nnz: u64,
    /// log2 of the elements of x in 32 bytes.
    pub sector_log2: u32,
    words: Vec<u64>,
}

/// Index of the run of 32 rows that is sample `k` of `samples`: one in each of equal parts, at irregular
/// positions that no period of a grid coincides with.
fn run_of(k: u64, samples: u64, runs: u64) -> u64 {
    let first = |k: u64| (u128::from(k) * u128::from(runs) / u128::from(samples)) as u64;
    let others = first(k + 1) - first(k);
    first(k) + (k.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % others
}

/// Number of runs of a matrix, and number of those that are sampled.
pub fn samples(rows: u64) -> (u64, u64) {
    let runs = rows.div_ceil(RUN as u64);
    (runs, runs.min(SAMPLES as u64))
}

/// Bucket of the histogram for a row length.
fn bucket(length: u64) -> usize {
    if length < EXACT as u64 {
        return length as usize;
    }
    let octave = length.ilog2();
    let quarter = (length >> (octave - 2)) & 3;
    (EXACT + 4 * (octave as usize - 8) + quarter as usize).min(BUCKETS - 1)
}

/// Row length in the middle of a bucket.
fn length_of(bucket: usize) -> u64 {
    if bucket < EXACT {
        return bucket as u64;
    }
    let (octave, quarter) = ((bucket - EXACT) / 4 + 8, (bucket - EXACT) % 4);
    (8 + 2 * quarter as u64 + 1) << (octave - 3)
}

/// Rows of a pattern that has not been validated.
struct Lines<'a, I, J> {
    pattern: Pattern<'a, I, J>,
}

impl<I: Index, J: Index> Lines<'_, I, J> {
    fn range(&self, row: usize) -> Range<usize> {
        let nnz = self.pattern.indices.len() as i64;
        let at = |row: usize| self.pattern.offsets[row].to_i64().wrapping_sub(self.pattern.base);
        let start = at(row).clamp(0, nnz);
        start as usize..at(row + 1).clamp(start, nnz) as usize
    }

    fn column(&self, at: usize) -> i64 {
        self.pattern.indices[at].to_i64().wrapping_sub(self.pattern.base)
    }
}

/// Number of different keys.
fn distinct(mut keys: Vec<i64>) -> u64 {
    keys.sort_unstable();
    keys.dedup();
    keys.len() as u64
}

impl SpmvStatistics {
    /// Counts the statistics of rows of op(A) on the threads of the caller's pool; `x_bytes` is the size of
    /// an element of x.
    pub fn of<I: Index, J: Index>(pattern: &Pattern<'_, I, J>, x_bytes: usize) -> Self {
        let lines = Lines { pattern: *pattern };
        let rows = if pattern.offsets.is_empty() { 0 } else { pattern.major };
        let sector_log2 = sector_log2(x_bytes);
        let none = || vec![0_u64; WORDS];
        // A task takes of the order of 10 µs.
        const ROWS_PER_TASK: usize = 1 << 13;
        let tasks = rows.div_ceil(ROWS_PER_TASK);
        let lengths = (0..tasks).into_par_iter().map(|task| {
            let first = task * ROWS_PER_TASK;
            lengths(&lines, first..rows.min(first + ROWS_PER_TASK))
        });
        let lengths = lengths.reduce(none, add);
        let (runs, samples) = samples(rows as u64);
        let sampled =
            (0..samples as usize).into_par_iter().with_min_len(16).fold(none, |mut words: Vec<u64>, k| {
                let first = run_of(k as u64, samples, runs) as usize * RUN;
                sample_run(&lines, first..rows.min(first + RUN), sector_log2, &mut words);
                words
            });
        let mut words = add(lengths, sampled.reduce(none, add));
        if super::sell::may_share(rows, pattern.indices.len()) {
            for (word, k) in [(Word::Twos, 2), (Word::Threes, 3)] {
                let window = warp_sell::WINDOW / k * k;
                let entries = |first: usize| shared(&lines, first..rows.min(first + window), k);
                let windows = (0..rows.div_ceil(window)).into_par_iter();
                words[word as usize] = windows.map(|number| entries(number * window)).sum();
            }
        }
        SpmvStatistics::new((rows as u64, pattern.minor as u64, pattern.indices.len() as u64), x_bytes, words)
    }

    /// Statistics from (rows, columns, entries) of op(A) and [`WORDS`] counts.
    pub fn new((rows, cols, nnz): (u64, u64, u64), x_bytes: usize, words: Vec<u64>) -> Self {
        assert_eq!(words.len(), WORDS);
        SpmvStatistics { rows, cols, nnz, sector_log2: sector_log2(x_bytes), words }
    }

    /// All counts, starting with the histogram.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Replaces the numbers of sectors along and across rows.
    #[cfg(test)]
    pub(super) fn with_sectors(mut self, (along, across): (u64, u64)) -> Self {
        self.words[Word::AlongSectors as usize] = along;
        self.words[Word::AcrossSectors as usize] = across;
        self
    }

    fn count(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    fn share(&self, part: Word, whole: Word) -> f64 {
        match self.count(whole) {
            0 => 1.0,
            whole => self.count(part) as f64 / whole as f64,
        }
    }

    /// Entries of the longest row.
    pub fn longest(&self) -> u64 {
        self.count(Word::Longest)
    }

    /// Number of rows without an entry.
    pub fn empty_rows(&self) -> u64 {
        self.words[0]
    }

    /// Mean number of entries of a row; 0 without rows.
    pub fn mean(&self) -> f64 {
        self.nnz as f64 / self.rows.max(1) as f64
    }

    /// Number of rows of 5 to 256 entries, the medium rows of `dasp`.
    pub fn medium_rows(&self) -> u64 {
        self.words[dasp::SHORT + 1..EXACT].iter().sum()
    }

    /// Entries of the longest row among those of at most `most` (256 or fewer).
    pub fn longest_up_to(&self, most: usize) -> u64 {
        self.words[..=most].iter().rposition(|&rows| rows > 0).unwrap_or(0) as u64
    }

    /// Share of the sampled entries in runs of 32 rows whose columns span at most 2^16.
    pub fn narrow(&self) -> f64 {
        self.share(Word::Narrow, Word::Entries)
    }

    /// Share of the sampled entries in runs of 32 rows that have the columns of the row before plus one.
    pub fn shifted(&self) -> f64 {
        match self.count(Word::Entries) {
            0 => 0.0,
            _ => self.share(Word::Shifted, Word::Entries),
        }
    }

    /// Sectors of x per entry among 32 consecutive entries: 1 if each is in a sector of its own, 1/4 for
    /// adjacent entries in fp64.
    pub fn sectors_along(&self) -> f64 {
        self.share(Word::AlongSectors, Word::Along)
    }

    /// Returns whether the columns of nearly all entries follow each other.
    pub fn is_adjacent(&self) -> bool {
        self.sectors_along() * f64::from(1 << self.sector_log2) <= 1.04
    }

    /// Sectors of x per entry among one entry of each of 32 consecutive rows.
    pub fn sectors_across(&self) -> f64 {
        self.share(Word::AcrossSectors, Word::Across)
    }

    /// Mean entries of a block of 8 × 4; 1 without entries.
    pub fn entries_of_block(&self) -> f64 {
        self.share(Word::BlockEntries, Word::Blocks8)
    }

    /// Mean entries of a block of 4 × 4; 1 without entries.
    pub fn entries_of_half_block(&self) -> f64 {
        self.share(Word::BlockEntries, Word::Blocks4)
    }

    /// Entries of items of 2 and of 3 rows of `sell`, if K were that.
    pub fn shared(&self) -> [u64; warp_sell::MOST_ITEM_ROWS - 1] {
        [self.count(Word::Twos), self.count(Word::Threes)]
    }

    /// Statistics as text, for the reason of a choice.
    pub fn describe(&self) -> String {
        format!(
            "rows of {:.1} entries, longest {}, {:.0} % empty; {:.0} % of the columns narrow; {:.2} and {:.2} sectors \
             of x an entry along and across rows; {:.1} entries of a block; {:.0} and {:.0} % in 2 and 3 rows alike",
            self.mean(),
            self.longest(),
            100.0 * self.empty_rows() as f64 / self.rows.max(1) as f64,
            100.0 * self.narrow(),
            self.sectors_along(),
            self.sectors_across(),
            self.entries_of_block(),
            100.0 * self.shared()[0] as f64 / self.nnz.max(1) as f64,
            100.0 * self.shared()[1] as f64 / self.nnz.max(1) as f64,
        )
    }

    /// Pairs (length, number of rows), ascending, for the lengths that occur; those above 256 are the middles
    /// of their buckets.
    fn histogram(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let pairs = self.words[..BUCKETS].iter().enumerate();
        pairs
            .filter(|(_, &rows)| rows > 0)
            .map(|(bucket, &rows)| (length_of(bucket).min(self.longest()), rows))
    }

    /// Predicted slots and slices of `sell`, with the pieces of split rows: they are those of a window whose
    /// rows have the lengths of the whole matrix, which is typical of matrices without order. Slots are
    /// within 5 % of what analysis makes of the 53 matrices of benches/results/surveys.tsv.
    pub fn sell_slots(&self, rules: &warp_sell::Rules) -> (f64, f64) {
        if self.rows == 0 {
            return (0.0, 0.0);
        }
        let (group, limit) = (rules.group() as u64, rules.limit() as u64);
        let window = (rules.window as u64).min(self.rows);
        let place_rows = self.rows as f64 / window as f64;
        // Lengths of the window's rows, longest first: one for each `place_rows` rows of the matrix.
        let mut lengths = Vec::with_capacity(window as usize);
        let (mut long, mut parts, mut passed) = (0.0, 0.0, 0);
        // Positions of long rows, which are in no slice of the others.
        let mut none = 0;
        for (length, rows) in self.histogram().rev() {
            if length > limit {
                long += rows as f64 * length.next_multiple_of(group * warp_sell::LANES as u64) as f64;
                let (blocks, _) = rules.cut(length as usize);
                parts += (rows as usize * blocks * warp_sell::BLOCK_PARTS) as f64;
            }
            passed += rows;
            // Position p of the window is row (p + ½) · place_rows of the sorted matrix.
            let end = ((passed as f64 / place_rows + 0.5) as usize).min(window as usize);
            let places = end.saturating_sub(none + lengths.len());
            match length > limit {
                true => none += places,
                false => lengths.resize(lengths.len() + places, length),
            }
        }
        lengths.resize(lengths.len() + none, 0);
        let (mut at, mut slots, mut slices) = (0, 0, 0);
        while at < lengths.len() {
            let lanes_log2 = rules.lanes_log2(lengths[at] as usize);
            slots += rules.lane_slots(lengths[at] as usize, lanes_log2) as u64 * warp_sell::LANES as u64;
            at += warp_sell::LANES >> lanes_log2;
            slices += 1;
        }
        // The window scales to all rows by entries, since the sample of its lengths need not have exactly its
        // share of entries.
        let entries: u64 = lengths.iter().sum();
        let short = self.nnz as f64 - self.long_entries(limit);
        let padded = if entries == 0 { short } else { short * slots as f64 / entries as f64 };
        let slots = padded.max(short) + long.max(self.long_entries(limit));
        (slots, slices as f64 * place_rows + parts)
    }

    fn long_entries(&self, limit: u64) -> f64 {
        let long = self.histogram().filter(|&(length, _)| length > limit);
        let sum: f64 = long.map(|(length, rows)| length as f64 * rows as f64).sum();
        // The sum is of middles of buckets, not of the lengths themselves.
        sum.min(self.count(Word::LongEntries) as f64)
    }

    /// Slots of `dasp` and number of its results, exactly as its analysis makes them.
    pub fn dasp_slots(&self) -> (u64, u64) {
        let mut keys = vec![0_u64; dasp::KEYS];
        for (length, &rows) in self.words[..EXACT].iter().enumerate() {
            keys[dasp::key(length)] += rows;
        }
        keys[0] = self.words[EXACT..BUCKETS].iter().sum();
        let (mut blocks, mut irregular) = (0, 0);
        // Medium rows, longest first, as runs of one length.
        let mut rest: Vec<(u64, u64)> = (dasp::SHORT + 1..EXACT)
            .rev()
            .map(|length| (length as u64, self.words[length]))
            .filter(|&(_, rows)| rows > 0)
            .collect();
        rest.reverse();
        while let Some((length, rows)) = rest.pop() {
            let whole = rows / dasp::ROWS as u64;
            let (regular, left) = row_block(&[(length, dasp::ROWS as u64)]);
            blocks += whole * regular;
            irregular += whole * left;
            if rows % dasp::ROWS as u64 == 0 {
                continue;
            }
            let mut mixed = [(length, rows % dasp::ROWS as u64); dasp::ROWS];
            let (mut lengths, mut room) = (1, dasp::ROWS as u64 - mixed[0].1);
            while room > 0 {
                let Some(next) = rest.last_mut() else { break };
                let taken = next.1.min(room);
                mixed[lengths] = (next.0, taken);
                lengths += 1;
                next.1 -= taken;
                room -= taken;
                if next.1 == 0 {
                    rest.pop();
                }
            }
            let (regular, left) = row_block(&mixed[..lengths]);
            blocks += regular;
            irregular += left;
        }
        let groups = self.count(Word::LongGroups) as usize;
        let shape =
            dasp::DaspShape::new(dasp::Classes::new(&keys), groups, blocks as usize, irregular as usize);
        (shape.slot_count() as u64, shape.result_count() as u64)
    }
}

/// Numbers of regular blocks and of irregular entries of up to 8 rows, longest first, given as pairs of a
/// length and the number of rows that have it.
fn row_block(rows: &[(u64, u64)]) -> (u64, u64) {
    const PLACES: u64 = dasp::PLACES as u64;
    const THRESHOLD: u64 = dasp::THRESHOLD as u64;
    let entries: u64 = rows.iter().map(|(length, count)| length * count).sum();
    let count: u64 = rows.iter().map(|(_, count)| count).sum();
    // Blocks that the shortest row fills are full in all rows.
    let shortest = rows.last().map_or(0, |&(length, _)| length);
    let mut blocks = if count * PLACES < THRESHOLD { 0 } else { shortest / PLACES };
    let mut taken = blocks * PLACES * count;
    loop {
        let of_row = |length: u64| length.saturating_sub(blocks * PLACES).min(PLACES);
        let here: u64 = rows.iter().map(|&(length, count)| of_row(length) * count).sum();
        if here < THRESHOLD {
            return (blocks, entries - taken);
        }
        taken += here;
        blocks += 1;
    }
}

fn sector_log2(x_bytes: usize) -> u32 {
    (32 / x_bytes).ilog2()
}

/// Adds the counts of two parts of a matrix.
fn add(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    let longest = a[Word::Longest as usize].max(b[Word::Longest as usize]);
    a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
    a[Word::Longest as usize] = longest;
    a
}

/// Counts the row lengths.
fn lengths<I: Index, J: Index>(lines: &Lines<'_, I, J>, rows: Range<usize>) -> Vec<u64> {
    let mut words = vec![0; WORDS];
    for row in rows {
        let length = lines.range(row).len() as u64;
        words[bucket(length)] += 1;
        let longest = &mut words[Word::Longest as usize];
        *longest = length.max(*longest);
        if length >= EXACT as u64 {
            words[Word::LongEntries as usize] += length;
            words[Word::LongGroups as usize] += length.div_ceil(dasp::GROUP as u64);
        }
    }
    words
}

/// Number of entries of items of k rows in a window of `sell`.
fn shared<I: Index, J: Index>(lines: &Lines<'_, I, J>, rows: Range<usize>, k: usize) -> u64 {
    let is_same = |row: usize| {
        let [a, b] = [row - 1, row].map(|row| lines.range(row));
        // After a row that is clipped no row is counted as the same.
        let follows =
            a.end == b.start && (1..=warp_sell::MOST_SHARED).contains(&b.len()) && a.len() == b.len();
        follows && a.zip(b).all(|(a, b)| lines.pattern.indices[a] == lines.pattern.indices[b])
    };
    let (mut entries, mut start) = (0, rows.start);
    while start < rows.end {
        let end = (start + 1..rows.end).find(|&row| !is_same(row)).unwrap_or(rows.end);
        entries += ((end - start) / k * k * lines.range(start).len()) as u64;
        start = end;
    }
    entries
}

/// Adds the statistics of a sampled run of rows.
fn sample_run<I: Index, J: Index>(
    lines: &Lines<'_, I, J>,
    rows: Range<usize>,
    sector_log2: u32,
    words: &mut [u64],
) {
    let mut count = |word: Word, found: u64| words[word as usize] += found;
    let ranges: Vec<_> = rows.map(|row| lines.range(row)).collect();
    let filled = || ranges.iter().filter(|range| !range.is_empty());
    let sector = |at: usize| lines.column(at) >> sector_log2;

    let entries = filled().map(|range| range.len() as u64).sum();
    count(Word::Entries, entries);
    // First and last columns of rows are the least and the greatest if rows are sorted.
    let ends = || filled().map(|range| (lines.column(range.start), lines.column(range.end - 1)));
    let least = ends().map(|(first, last)| first.min(last)).min().unwrap_or(0);
    let most = ends().map(|(first, last)| first.max(last)).max().unwrap_or(0);
    if most.wrapping_sub(least) < NARROW {
        count(Word::Narrow, entries);
    }
    let is_shifted = |lane: usize, range: &Range<usize>| {
        let first = &ranges[0];
        !range.is_empty()
            && range.len() == first.len()
            && lines.column(range.start) == lines.column(first.start).wrapping_add(lane as i64)
            && lines.column(range.end - 1) == lines.column(first.end - 1).wrapping_add(lane as i64)
    };
    if ranges.len() == RUN && ranges.iter().enumerate().all(|(lane, range)| is_shifted(lane, range)) {
        count(Word::Shifted, entries);
    }

    let start = ranges[0].start;
    let along = start..lines.pattern.indices.len().min(start + 32);
    count(Word::Along, along.len() as u64);
    count(Word::AlongSectors, distinct(along.map(sector).collect()));
    count(Word::Across, filled().count() as u64);
    count(
        Word::AcrossSectors,
        distinct(filled().map(|range| sector(range.start + range.len() / 2)).collect()),
    );

    for slab in ranges.chunks(SLAB) {
        let mut rest = slab.to_vec();
        for _ in 0..MOST_BLOCKS {
            let block = |range: &Range<usize>| lines.column(range.start) >> BLOCK_LOG2;
            let Some(least) = rest.iter().filter(|range| !range.is_empty()).map(block).min() else { break };
            let mut halves = [false; 2];
            for (number, range) in rest.iter_mut().enumerate() {
                // A column that is stored twice appears again in another block at the same position.
                for _ in 0..1 << BLOCK_LOG2 {
                    if range.start < range.end && block(range) == least {
                        halves[number / 4] = true;
                        range.start += 1;
                        count(Word::BlockEntries, 1);
                    }
                }
            }
            count(Word::Blocks8, 1);
            count(Word::Blocks4, halves.iter().filter(|&&half| half).count() as u64);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
