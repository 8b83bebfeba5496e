//! Working memory of the threads: one set of accumulators each, allocated by the caller's thread before any
//! of them starts.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Pod;

use super::places::{self, ArrayPlaces, HashPlaces, Key, Rule};
use super::rows::NEXT;
use super::window::{self, Window};
use crate::error::{Result, Status};
use crate::memory::{pieces, Buffer, Context};

/// Sizes of a thread's memory, from the largest row of a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Slots of the hash table.
    slots: usize,
    /// Slots of the array.
    array: usize,
    /// True if the array is not used where there are sums by column.
    either: bool,
    /// Columns that have a sum each: those of the array, or none.
    summed: usize,
    /// Entries of all rows.
    entries: usize,
    /// Distinct columns of a row.
    row: usize,
    /// True if columns are found.
    finds: bool,
    /// Numbers that the columns of an item of rows take.
    packed: usize,
    /// Words of the bitmap that sorts: [`order`](super::places::order) uses at most one per entry.
    bits: usize,
    /// Columns of the spare memory for sorting.
    spare: usize,
    /// Columns of the window.
    window: usize,
    /// Sums of a row by place.
    sums: usize,
    /// Products in the trace that the next rows follow.
    trace: usize,
}

impl Needs {
    /// Returns the sizes for rows of at most these numbers of distinct columns, of `cols`, before it is known
    /// what is done with them.
    pub fn of<K: Key>(rows: impl Iterator<Item = usize>, cols: usize, rule: Rule) -> Self {
        let (mut table, mut array, mut row, mut entries) = (0, 0, 0, 0_usize);
        for most in rows.filter(|&most| most > 0) {
            row = row.max(most);
            entries = entries.saturating_add(most);
            if rule.array(most, cols) {
                array = cols;
            } else {
                table = table.max(most);
            }
        }
        let slots = if table > 0 { HashPlaces::<K>::slots(table) } else { 0 };
        let window = window::width(cols, rule.window);
        let bits = row.min(cols.div_ceil(64));
        let spare = places::spare::<K>(row);
        Needs { slots, array, entries, row, bits, spare, window, ..Needs::default() }
    }

    /// Returns the sizes for finding columns, which take at most `packed` numbers for an item of rows.
    pub fn to_find(self, packed: usize, sorted: bool) -> Self {
        let (bits, spare) = if sorted { (self.bits, self.spare) } else { (0, 0) };
        Needs { finds: true, packed, bits, spare, ..self }
    }

    /// Returns the sizes for sums, with a trace of at most this many products, and by column for up to `summed`
    /// columns; `ranked` if ranks are recorded later.
    pub fn to_sum(self, trace: usize, summed: usize, ranked: bool) -> Self {
        let summed = if self.array <= summed { self.array } else { 0 };
        let either = trace == 0 && !self.finds && !ranked;
        let (bits, spare, window) = if self.finds { (self.bits, self.spare, self.window) } else { (0, 0, 0) };
        Needs { summed, either, sums: self.row, trace, bits, spare, window, ..self }
    }
}

/// Bytes that at most one thread may write: two cache lines, since processors fetch them in pairs.
const APART: usize = 128;

/// Returns the bytes of `count` elements of T, rounded up to whole pairs of cache lines. In many products a
/// row of C has few entries: without padding the lists and sums of all threads would share a line, which
/// would then move between their caches at every store.
fn padded<T>(count: usize) -> usize {
    // No buffer is larger than that.
    count.saturating_mul(size_of::<T>()).min(isize::MAX as usize).next_multiple_of(APART)
}

/// Splits `count` elements of T off the front of `rest`.
fn take<'a, T: Pod>(rest: &mut &'a mut [u8], count: usize) -> &'a mut [T] {
    if count == 0 {
        // An empty slice need not be aligned for the cast below.
        return &mut [];
    }
    let (part, tail) = std::mem::take(rest).split_at_mut(padded::<T>(count));
    *rest = tail;
    bytemuck::cast_slice_mut(&mut part[..count * size_of::<T>()])
}

/// Accumulators of one thread.
#[repr(align(128))] // APART
pub struct Set<'a, K, T> {
    /// Accumulator for rows with few of the columns.
    pub hash: HashPlaces<'a, K>,
    /// Accumulator for rows with many of the columns.
    pub array: ArrayPlaces<'a>,
    /// Sum of each column of the product, where rows in the array have their sums by column; zero between rows.
    pub by_column: &'a mut [T],
    /// Finder of columns that are neighbours.
    pub window: Window<'a>,
    /// Ranks of the products of the row before, where the next rows follow from it.
    pub trace: &'a mut [u16],
    /// Columns of the rows of an item ([`super::lists`]).
    pub packed: &'a mut [u16],
    /// The row that is being computed.
    pub row: Row<'a, K, T>,
}

/// The row that is being computed.
pub struct Row<'a, K, T> {
    /// Column indices, with room for one more than a row has.
    pub list: &'a mut [K],
    /// Bitmap that sorts `list`; zero between uses.
    pub bits: &'a mut [u64],
    /// Spare memory for sorting `list`.
    pub spare: &'a mut [K],
    /// Sums, by place in the accumulator.
    pub sums: &'a mut [T],
}

impl<K: Key, T> Row<'_, K, T> {
    /// Makes the first `count` columns in the list those of the next row, which follows by this step.
    pub fn follow(&mut self, count: usize, step: u8) {
        if step == NEXT {
            let list = &mut self.list[..count];
            list.iter_mut().for_each(|col| *col = K::from_i64(col.to_i64() + 1));
        }
    }
}

/// Accumulators of all threads.
#[derive(Debug)]
pub struct Scratch<K: Key, T: Pod> {
    needs: Needs,
    sets: usize,
    /// Memory of all sets, zeroed when allocated.
    bytes: Buffer<u8>,
    types: PhantomData<(K, T)>,
}

impl<K: Key, T: Pod + Send> Scratch<K, T> {
    /// Allocates memory for as many threads, up to `sets`, as the memory limit permits.
    pub fn new(cx: &Context, mut sets: usize, mut needs: Needs) -> Result<Self> {
        // Where there are fewer entries than sums by column, clearing these would take longer than the product.
        let bytes = sets.saturating_mul(padded::<T>(needs.summed));
        if needs.entries < sets.saturating_mul(needs.summed) || bytes > places::ARRAY_BYTES {
            needs.summed = 0;
        }
        loop {
            let each = Self::bytes_of(&needs);
            match Buffer::zeroed(&cx.allocator, each.saturating_mul(sets)) {
                // Sums by column and columns that are kept only save time, and so do threads.
                Err(error) if error.status == Status::InsufficientResources && needs.summed > 0 => {
                    needs.summed = 0;
                }
                Err(error) if error.status == Status::InsufficientResources && needs.packed > 0 => {
                    needs.packed = 0;
                }
                Err(error) if error.status == Status::InsufficientResources && sets > 1 => {
                    sets = sets.div_ceil(2)
                }
                bytes => return Ok(Scratch { needs, sets, bytes: bytes?, types: PhantomData }),
            }
        }
    }

    /// Returns whether there are sums by column.
    pub fn sums_by_column(&self) -> bool {
        self.needs.summed > 0
    }

    /// Returns whether each thread has room for this many numbers.
    pub fn packs(&self, numbers: usize) -> bool {
        self.needs.packed >= numbers
    }

    /// Returns the size of a thread's array.
    fn array(needs: &Needs) -> usize {
        if needs.either && needs.summed > 0 {
            0
        } else {
            needs.array
        }
    }

    /// Returns the bytes of a thread's memory.
    fn bytes_of(needs: &Needs) -> usize {
        let Needs { slots, summed, row, packed, bits, spare, window, sums, trace, .. } = *needs;
        let array = Self::array(needs);
        let each = [
            padded::<[K; 2]>(slots),
            padded::<u32>(array),
            padded::<T>(summed),
            padded::<K>(row + 1),
            padded::<u16>(packed),
            padded::<u64>(bits),
            padded::<K>(spare),
            padded::<T>(sums),
            padded::<u8>(window),
            padded::<u16>(trace),
        ];
        each.into_iter().fold(0, usize::saturating_add)
    }

    /// Calls `work` for every item (see [`super::rows::cut_items`]). Each thread takes the next unprocessed
    /// item; an item's rows are processed by one thread in order.
    pub fn for_each_item(
        &mut self,
        items: &[i64],
        work: impl Fn(&mut Set<'_, K, T>, usize, Range<usize>) + Sync,
    ) {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|item| item + 1 < items.len());
        self.for_each(take, |set, item| work(set, item, items[item] as usize..items[item + 1] as usize));
    }

    /// Calls `work` on all threads for what `take` gives, until it gives nothing.
    pub fn for_each(
        &mut self,
        take: impl Fn() -> Option<usize> + Sync,
        work: impl Fn(&mut Set<'_, K, T>, usize) + Sync,
    ) {
        let mut sets = self.split();
        pieces::for_each(pieces::each(&mut sets), |_, set| {
            while let Some(item) = take() {
                work(set, item);
            }
        });
    }

    fn split(&mut self) -> Vec<Set<'_, K, T>> {
        let Needs { slots, summed, row, packed, bits, spare, window, sums, trace, .. } = self.needs;
        let array = Self::array(&self.needs);
        let (size, mut all) = (self.bytes.len() / self.sets, &mut self.bytes[..]);
        let sets = (0..self.sets).map(|_| {
            let (mut rest, later) = std::mem::take(&mut all).split_at_mut(size);
            all = later;
            let rest = &mut rest;
            Set {
                hash: HashPlaces::new(take(rest, slots)),
                array: ArrayPlaces::new({
                    let array: &mut [u32] = take(rest, array);
                    // An earlier run has left stamps here, and a run starts with generation 1.
                    array.fill(0);
                    array
                }),
                by_column: take(rest, summed),
                packed: take(rest, packed),
                row: Row {
                    list: take(rest, row + 1),
                    bits: take(rest, bits),
                    spare: take(rest, spare),
                    sums: take(rest, sums),
                },
                trace: take(rest, trace),
                window: Window { seen: take(rest, window) },
            }
        });
        sets.collect()
    }
}
