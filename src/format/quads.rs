//! Quads: blocks of 4 × 4 places of op(A) with a bit mask, of which only the entries are stored.
//!
//! Four consecutive rows are cut into blocks together. A block begins at the least column that is next in any
//! of them, but at most at the last column from which on there are four, so that a kernel may load four
//! elements of x for any block. It takes from each row the longest run of its next entries that lie in its
//! four columns and ascend; so the entries of a row may be in any order, and where a column is stored twice the second entry
//! goes to another block.
//!
//! A slab is two such groups of rows. Arrays:
//! - `slabs`: a [`Slab`] for each 8 rows
//! - `words`: u32 per block, those of a slab's first four rows first: the mask in the high half, bit 4 r + c
//!   for row r and column c of the block, and its first column relative to the slab's `base` in the low half;
//!   where a slab spans more than 2^16 columns a second word has the column
//! - `values`: the values of the entries and nothing else, block after block and inside a block in the order
//!   of the bits; behind them [`PAD`] zeros
//! - `items`: a [`Start`] for each part of the work, followed by the end
//!
//! `positions` (only where values will be updated): the index in the user's value array that each value comes
//! from.
//!
//! So a block has 4 or 8 bytes beside its values and 8 rows have 8. The inverse is [`Quads::for_each_entry`].

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};

use super::as_words;
use super::sell::Origin;
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::arena::{self, Arena, Part};
use crate::memory::{pool, Allocator, Buffer};
use crate::types::Element;

#[cfg(test)]
mod tests;

/// Rows and columns of a block.
pub const SIDE: usize = 4;

/// Rows of a slab.
pub const SLAB: usize = 8;

/// Groups of rows of a slab.
pub const GROUPS: usize = SLAB / SIDE;

/// Numbers behind the last value, so that a kernel may load a register of 64 bytes at any value.
pub const PAD: usize = 16;

/// Largest number of entries of a row. A group then has at most 2^14 blocks, whose count fits 15 bits beside
/// [`WIDE`], and no item, which has whole slabs, is more than nine times as long as others.
pub const LONGEST: usize = 1 << 12;

/// Work of an item in entries, where a row costs [`ROW_WORK`] of them, as in SELL: 1 to 2 µs.
const ITEM_WORK: usize = 1 << 12;

/// Cost of storing one row of the result, in entries.
pub const ROW_WORK: usize = 4;

/// Slabs that [`Counts::sample`] looks at: with 60 entries a row, 15,000 entries or 30 µs.
const SAMPLE: usize = 32;

/// Slab of eight rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Slab {
    /// Column that its columns are relative to.
    pub base: u32,
    /// Number of blocks of each group of rows; in the first one also the flag [`WIDE`].
    counts: [u16; GROUPS],
}

/// Flag of a slab with two words a block.
const WIDE: u16 = 1 << 15;

const _: () = assert!(SIDE * LONGEST < WIDE as usize);

impl Slab {
    /// Head of a slab with these masks and first columns of blocks, of which `ends[g]` come before the end of group g.
    fn of(blocks: &[(u32, u32)], ends: [usize; GROUPS]) -> Self {
        let columns = || blocks.iter().map(|&(_, first)| first);
        let (Some(low), Some(high)) = (columns().min(), columns().max()) else {
            return Slab::default();
        };
        let mut counts = [0; GROUPS];
        let mut start = 0;
        for (count, end) in counts.iter_mut().zip(ends) {
            (*count, start) = ((end - start) as u16, end);
        }
        if high - low > u32::from(u16::MAX) {
            counts[0] |= WIDE;
        }
        Slab { base: low, counts }
    }

    /// Returns whether its blocks have two words.
    #[inline(always)]
    pub fn is_wide(&self) -> bool {
        self.counts[0] & WIDE != 0
    }

    /// Returns the number of blocks of a group of rows.
    #[inline(always)]
    pub fn blocks(&self, group: usize) -> usize {
        usize::from(self.counts[group] & !WIDE)
    }

    /// Returns the number of words of a block.
    #[inline(always)]
    pub fn words_per_block(&self) -> usize {
        1 + usize::from(self.is_wide())
    }

    /// Returns the number of its words.
    fn words(&self) -> usize {
        (0..GROUPS).map(|group| self.blocks(group)).sum::<usize>() * self.words_per_block()
    }
}

/// Where an item starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Start {
    /// First slab.
    pub slab: u64,
    /// First value.
    pub value: u64,
    /// First word.
    pub word: u64,
}

/// Numbers of blocks and entries, which say how dense blocks are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks.
    pub blocks: usize,
    /// Entries.
    pub entries: usize,
    /// Those of the entries in slabs in which each row has the previous row's columns plus one.
    pub side_by_side: usize,
}

impl Counts {
    /// Counts in slabs that lie equally far apart; nothing if one of them has a row that is too long for quads.
    pub fn sample(pattern: &Pattern<'_, i64, i32>, cut: &impl Cut) -> Self {
        let slabs = pattern.major.div_ceil(SLAB);
        let taken = slabs.min(SAMPLE);
        let mut out = Counts::default();
        for slab in (0..taken).map(|at| at * slabs / taken) {
            let rows = slab * SLAB..pattern.major.min((slab + 1) * SLAB);
            if rows.clone().any(|row| pattern.range(row).len() > LONGEST) {
                return Counts::default();
            }
            let entries: usize = rows.clone().map(|row| pattern.range(row).len()).sum();
            let equal = rows.len() * pattern.range(rows.start).len() == entries;
            let side_by_side = equal
                && rows.clone().skip(1).all(|row| {
                    let pairs = pattern.range(row - 1).zip(pattern.range(row));
                    pattern.range(row).len() == pattern.range(row - 1).len()
                        && pairs.into_iter().all(|(above, at)| pattern.index(above) + 1 == pattern.index(at))
                });
            out.entries += entries;
            out.side_by_side += if side_by_side { entries } else { 0 };
            for group in 0..GROUPS {
                cut.cut(pattern, of_group(&rows, group), |_, _, _, _| out.blocks += 1);
            }
        }
        out
    }
}

/// Returns the rows of a group of a slab.
fn of_group(rows: &Range<usize>, group: usize) -> Range<usize> {
    let first = rows.end.min(rows.start + group * SIDE);
    first..rows.end.min(first + SIDE)
}

/// The cut of a group of rows into blocks, which takes most of the time of analysis.
pub trait Cut: Sync {
    /// Calls `block(first column, mask, first position of each row, number of entries of each row)` for the blocks
    /// of at most four rows. There must be at least four columns.
    fn cut(
        &self,
        pattern: &Pattern<'_, i64, i32>,
        rows: Range<usize>,
        block: impl FnMut(usize, u32, &[usize; SIDE], &[usize; SIDE]),
    );
}

/// The cut on any processor.
pub struct AnyProcessor;

impl Cut for AnyProcessor {
    #[inline(always)]
    fn cut(
        &self,
        pattern: &Pattern<'_, i64, i32>,
        rows: Range<usize>,
        block: impl FnMut(usize, u32, &[usize; SIDE], &[usize; SIDE]),
    ) {
        match ascends(pattern, rows.clone()) {
            true => sweep::<true>(pattern, rows, block),
            false => sweep::<false>(pattern, rows, block),
        }
    }
}

/// Cuts a group on any processor. With `ASCENDING` the columns of each row must ascend strictly.
///
/// Written without branches on the masks, which nothing could predict.
#[inline(always)]
fn sweep<const ASCENDING: bool>(
    pattern: &Pattern<'_, i64, i32>,
    rows: Range<usize>,
    mut block: impl FnMut(usize, u32, &[usize; SIDE], &[usize; SIDE]),
) {
    /// Column of a row without further entries.
    const END: usize = usize::MAX;
    /// Ones of four bits.
    static ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];
    let (mut at, mut next, mut end) = ([0; SIDE], [END; SIDE], [0; SIDE]);
    let (indices, base) = (pattern.indices, pattern.base);
    let last = indices.len().saturating_sub(1);
    let column = |at: usize, end: usize| {
        let column = pattern.index(at.min(last));
        if at < end {
            column
        } else {
            END
        }
    };
    for (place, row) in rows.enumerate() {
        let range = pattern.range(row);
        (at[place], end[place]) = (range.start, range.end);
        if !range.is_empty() {
            next[place] = pattern.index(range.start);
        }
    }
    loop {
        let least = next[0].min(next[1]).min(next[2].min(next[3]));
        if least == END {
            break;
        }
        let first = least.min(pattern.minor - SIDE);
        let (mut mask, mut counts) = (0, [0; SIDE]);
        let before = at;
        for row in 0..SIDE {
            // Entries behind the row's last one may be read, but not taken.
            let four: [i32; SIDE] = match indices.get(at[row]..at[row] + SIDE) {
                Some(four) => std::array::from_fn(|entry| four[entry]),
                None => std::array::from_fn(|entry| indices[(at[row] + entry).min(last)]),
            };
            let left = end[row] - at[row];
            let (mut own, mut count) = (0, 0);
            if ASCENDING {
                // Where columns ascend, those in the block come first and have a bit each.
                for (entry, &index) in four.iter().enumerate() {
                    let place = (i64::from(index) - base - first as i64) as u64;
                    let place = if entry < left { place } else { u64::MAX };
                    own |= (1_u32 << place.min(SIDE as u64)) & 0xf;
                }
                count = usize::from(ONES[own as usize]);
            } else {
                let mut takes = 1;
                for (entry, &index) in four.iter().enumerate() {
                    let place = (i64::from(index) - base - first as i64) as u64;
                    // A bit at this place or behind it is of an entry that does not ascend.
                    takes &= u32::from(place < SIDE as u64) & u32::from(entry < left);
                    takes &= u32::from(own >> (place & 3) == 0);
                    own |= takes << (place & 3);
                    count += takes as usize;
                }
            }
            mask |= own << (SIDE * row);
            counts[row] = count;
            at[row] += count;
            next[row] = column(at[row], end[row]);
        }
        assert!(mask != 0, "A has a column that is not inside");
        block(first, mask, &before, &counts);
    }
}

/// Quads in host memory.
#[derive(Debug)]
pub struct Quads<V: Element> {
    /// Number of columns of op(A).
    pub col_count: usize,
    /// Number of rows of op(A).
    pub row_count: usize,
    /// Slabs.
    pub slabs: Part<Slab>,
    /// Masks and columns of blocks.
    pub words: Part<u32>,
    /// Values of the entries, and padding.
    pub values: Part<V>,
    /// Where items start, and where the last one ends.
    pub items: Buffer<Start>,
    /// Index in the user's array that each value comes from, if it was kept.
    positions: Option<Buffer<i64>>,
}

impl<V: Element> Quads<V> {
    /// Builds the layout of a valid pattern with `values` in its order. `None` if a row is longer than
    /// [`LONGEST`], if there are less than four columns, if there are more blocks than `most_blocks`, or if there is
    /// no memory for those of an item.
    ///
    /// Cost: O(nnz + rows), reading columns and values from memory once.
    pub fn build(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, i64, i32>,
        values: &[V],
        origin: Origin<'_>,
        cut: &impl Cut,
        most_blocks: usize,
    ) -> Result<Option<Self>> {
        let (rows, entries) = (pattern.major, pattern.indices.len());
        if pattern.minor < SIDE {
            return Ok(None);
        }
        let Some(mut items) = deal(allocator, pattern)? else { return Ok(None) };
        let slabs = rows.div_ceil(SLAB);
        let mut positions = Buffer::<i64>::zeroed(allocator, if origin.keep { entries } else { 0 })?;
        let bytes = [arena::bytes::<Slab>(slabs), arena::bytes::<V>(entries + PAD)];
        let mut arena = Arena::zeroed(allocator, bytes.into_iter().fold(0, usize::saturating_add))?;
        let (mut slabs, mut to) = (arena.take::<Slab>(slabs), arena.take::<V>(entries + PAD));
        // Items are done in any order: where an item's words go is known when all are there.
        let words_per_block = 1 + usize::from(pattern.minor > usize::from(u16::MAX));
        let most_words = most_blocks.min(entries).saturating_mul(words_per_block);
        let mut scattered = Buffer::<u32>::zeroed(allocator, most_words)?;
        let mut blocks = Vec::new();
        let count = items.len() - 1;
        let missing = |_| Error::out_of_memory(count * size_of::<Option<Blocks<'_>>>());
        blocks.try_reserve_exact(count).map_err(missing)?;
        blocks.resize_with(count, || None);
        let room = Room { left: Mutex::new(&mut scattered), is_full: AtomicBool::new(false) };
        pool::run(|| {
            let to = &mut to[..entries];
            as_words!(V, (values, to) => {
                let section = Section {
                    slabs: &mut slabs,
                    blocks: &mut blocks,
                    values: to,
                    positions: &mut positions,
                };
                Source { pattern, values, origin, cut, room: &room }.fill(&items, section);
            });
        });
        let mut count = 0;
        for (number, blocks) in blocks.iter().enumerate() {
            let Some(blocks) = blocks else { return Ok(None) };
            items[number + 1].word = items[number].word + blocks.words.len() as u64;
            count += blocks.count;
        }
        if count > most_blocks {
            return Ok(None);
        }
        let words = items[items.len() - 1].word as usize;
        let mut arena = Arena::zeroed(allocator, arena::bytes::<u32>(words))?;
        let mut placed = arena.take::<u32>(words);
        pool::run(|| place(&blocks, &mut placed));
        Ok(Some(Quads {
            col_count: pattern.minor,
            row_count: rows,
            slabs,
            words: placed,
            values: to,
            items,
            positions: origin.keep.then_some(positions),
        }))
    }

    /// Copies in new values, given in the order of the user's array. Returns false, and changes nothing, if
    /// the positions were not kept.
    pub fn refill(&mut self, values: &[V], conjugate: bool) -> bool {
        let entries = self.entries();
        super::refill(&mut self.values[..entries], self.positions.as_deref(), values, conjugate)
    }

    /// Returns the mask and the first column of a slab's block whose first word has this index.
    #[inline(always)]
    pub fn block(&self, slab: &Slab, word: usize) -> (u32, usize) {
        let (low, mask) = (self.words[word] & 0xffff, self.words[word] >> 16);
        (mask, (slab.base + if slab.is_wide() { self.words[word + 1] } else { low }) as usize)
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.values.len() - PAD
    }

    /// Inverse of [`Quads::build`]: calls `f(row, column, value)` for every stored entry, those of one row in
    /// the order of the pattern.
    #[cfg(test)]
    pub fn for_each_entry(&self, mut f: impl FnMut(usize, usize, V)) {
        let (mut word, mut value) = (0, 0);
        for (number, slab) in self.slabs.iter().enumerate() {
            for group in 0..GROUPS {
                for _ in 0..slab.blocks(group) {
                    let (mask, column) = self.block(slab, word);
                    word += slab.words_per_block();
                    for bit in (0..SIDE * SIDE).filter(|bit| mask >> bit & 1 != 0) {
                        let row = number * SLAB + group * SIDE + bit / SIDE;
                        f(row, column + bit % SIDE, self.values[value]);
                        value += 1;
                    }
                }
            }
        }
        assert_eq!((word, value), (self.words.len(), self.entries()));
    }
}

/// Returns whether columns ascend in these rows, and none is there twice.
pub fn ascends(pattern: &Pattern<'_, i64, i32>, mut rows: Range<usize>) -> bool {
    // Without an early exit inside a row, so that it becomes vector code.
    rows.all(|row| {
        let columns = &pattern.indices[pattern.range(row)];
        columns.windows(2).fold(true, |all, pair| all & (pair[0] < pair[1]))
    })
}

/// Returns the rows of a slab.
fn rows_of(pattern: &Pattern<'_, i64, i32>, slab: usize) -> Range<usize> {
    slab * SLAB..pattern.major.min((slab + 1) * SLAB)
}

/// Divides slabs into items of about equal work, whose words are not known yet. `None` if a row is longer than
/// [`LONGEST`].
fn deal(allocator: &Arc<Allocator>, pattern: &Pattern<'_, i64, i32>) -> Result<Option<Buffer<Start>>> {
    let slabs = pattern.major.div_ceil(SLAB);
    let cut = |item: &mut dyn FnMut(Start)| {
        let mut work = 0;
        for slab in 0..slabs {
            let rows = rows_of(pattern, slab);
            let value = pattern.range(rows.start).start;
            if slab == 0 || work >= ITEM_WORK {
                item(Start { slab: slab as u64, value: value as u64, word: 0 });
                work = 0;
            }
            work += pattern.range(rows.end - 1).end - value + SLAB * ROW_WORK;
        }
        item(Start { slab: slabs as u64, value: pattern.indices.len() as u64, word: 0 });
    };
    if (0..pattern.major).any(|row| pattern.range(row).len() > LONGEST) {
        return Ok(None);
    }
    let mut count = 0;
    cut(&mut |_| count += 1);
    let mut items = Buffer::<Start>::zeroed(allocator, count)?;
    let mut next = 0;
    cut(&mut |start| {
        items[next] = start;
        next += 1;
    });
    Ok(Some(items))
}

/// Blocks of an item.
struct Blocks<'a> {
    count: usize,
    words: &'a [u32],
}

/// Memory for the words of all items, which take what they need in any order.
struct Room<'a> {
    left: Mutex<&'a mut [u32]>,
    is_full: AtomicBool,
}

impl<'a> Room<'a> {
    /// Copies words to a place of their own. `None` if there is none.
    fn keep(&self, words: &[u32]) -> Option<&'a [u32]> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *left);
        let taken = if words.len() <= all.len() { words.len() } else { 0 };
        let (own, rest) = all.split_at_mut(taken);
        *left = rest;
        drop(left);
        (taken == words.len()).then(|| {
            own.copy_from_slice(words);
            &*own
        })
    }
}

/// Copies the words of items to where they follow one another.
fn place(blocks: &[Option<Blocks<'_>>], to: &mut [u32]) {
    if let [Some(one)] = blocks {
        to.copy_from_slice(one.words);
    } else if blocks.len() > 1 {
        let (low, high) = blocks.split_at(blocks.len() / 2);
        let (to_low, to_high) = to.split_at_mut(low.iter().flatten().map(|one| one.words.len()).sum());
        pool::join(|| place(low, to_low), || place(high, to_high));
    }
}

/// Part of the arrays that some items fill.
struct Section<'a, 'w, V> {
    slabs: &'a mut [Slab],
    blocks: &'a mut [Option<Blocks<'w>>],
    values: &'a mut [V],
    positions: &'a mut [i64],
}

/// Input that all tasks read.
struct Source<'a, 'w, V, C> {
    pattern: &'a Pattern<'a, i64, i32>,
    values: &'a [V],
    origin: Origin<'a>,
    cut: &'a C,
    room: &'a Room<'w>,
}

impl<'w, V: Copy + Send + Sync, C: Cut> Source<'_, 'w, V, C> {
    /// Fills the arrays of the items between these starts.
    fn fill(&self, starts: &[Start], section: Section<'_, 'w, V>) {
        if starts.len() < 2 || self.room.is_full.load(Ordering::Relaxed) {
            return;
        }
        if starts.len() == 2 {
            let slabs = starts[0].slab as usize..starts[1].slab as usize;
            let (heads, out) = (section.slabs, section.blocks);
            out[0] = self.fill_slabs(slabs, heads, section.values, section.positions);
            if out[0].is_none() {
                self.room.is_full.store(true, Ordering::Relaxed);
            }
            return;
        }
        let middle = starts.len() / 2;
        let (slab, value) =
            (starts[middle].slab - starts[0].slab, (starts[middle].value - starts[0].value) as usize);
        let (low_slabs, high_slabs) = section.slabs.split_at_mut(slab as usize);
        let (low_blocks, high_blocks) = section.blocks.split_at_mut(middle);
        let (low_values, high_values) = section.values.split_at_mut(value);
        let kept = section.positions.len().min(value);
        let (low_positions, high_positions) = section.positions.split_at_mut(kept);
        let low =
            Section { slabs: low_slabs, blocks: low_blocks, values: low_values, positions: low_positions };
        let high = Section {
            slabs: high_slabs,
            blocks: high_blocks,
            values: high_values,
            positions: high_positions,
        };
        pool::join(|| self.fill(&starts[..=middle], low), || self.fill(&starts[middle..], high));
    }

    /// Fills the arrays of an item's slabs; returns their blocks, or `None` if there is no memory for them.
    fn fill_slabs(
        &self,
        slabs: Range<usize>,
        heads: &mut [Slab],
        values: &mut [V],
        positions: &mut [i64],
    ) -> Option<Blocks<'w>> {
        let (mut count, mut words) = (0, Vec::new());
        let mut value = 0;
        // Mask and first column of each block of a slab.
        let mut blocks = Vec::new();
        for (number, head) in slabs.zip(heads) {
            let rows = rows_of(self.pattern, number);
            let entries: usize = rows.clone().map(|row| self.pattern.range(row).len()).sum();
            blocks.clear();
            blocks.try_reserve(entries).ok()?;
            let mut ends = [0; GROUPS];
            for (group, end) in ends.iter_mut().enumerate() {
                let rows = of_group(&rows, group);
                let fill = |first: usize, mask: u32, starts: &[usize; SIDE], counts: &[usize; SIDE]| {
                    blocks.push((mask, first as u32));
                    for (&start, &count) in starts.iter().zip(counts) {
                        match (values.get_mut(value..value + SIDE), self.values.get(start..start + SIDE)) {
                            // Values that are copied beyond `count` are overwritten by what follows.
                            (Some(to), Some(from)) => to.copy_from_slice(from),
                            _ => values[value..value + count]
                                .copy_from_slice(&self.values[start..start + count]),
                        }
                        if !positions.is_empty() {
                            let to = positions[value..value + count].iter_mut();
                            to.zip(start..).for_each(|(to, at)| *to = self.origin.of(at));
                        }
                        value += count;
                    }
                };
                self.cut.cut(self.pattern, rows, fill);
                *end = blocks.len();
            }
            *head = Slab::of(&blocks, ends);
            words.try_reserve(head.words()).ok()?;
            count += blocks.len();
            for &(mask, first) in &blocks {
                let column = first - head.base;
                match head.is_wide() {
                    true => words.extend([mask << 16, column]),
                    false => words.push(mask << 16 | column),
                }
            }
        }
        Some(Blocks { count, words: self.room.keep(&words)? })
    }
}
