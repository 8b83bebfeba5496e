//! Memory of the threads: one set of accumulators each, allocated by the
//! caller's thread before any of them starts.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytemuck::Pod;

use super::places::{ArrayPlaces, HashPlaces, Key, Rule};
use super::window::{self, Window};
use crate::error::{Result, Status};
use crate::memory::{pieces, Buffer, Context};

/// What the largest row of a phase needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Slots of the hash table.
    slots: usize,
    /// Slots of the array.
    array: usize,
    /// Distinct columns.
    row: usize,
    /// Words of the bitmap that sorts: [`order`](super::places::order) uses at
    /// most one an entry.
    bits: usize,
    /// Columns of the window.
    window: usize,
    /// Those that have sums.
    window_sums: usize,
    /// Products of a row that others follow.
    trace: usize,
}

impl Needs {
    /// For rows of at most these numbers of distinct columns, of `cols`.
    pub fn of<K: Key>(rows: impl Iterator<Item = usize>, cols: usize, rule: Rule) -> Self {
        let (mut table, mut array, mut row) = (0, 0, 0);
        for most in rows.filter(|&most| most > 0) {
            row = row.max(most);
            if rule.array(most, cols) {
                array = cols;
            } else {
                table = table.max(most);
            }
        }
        let slots = if table > 0 { HashPlaces::<K>::slots(table) } else { 0 };
        let window = window::width(row, cols, rule.window);
        let bits = row.min(cols.div_ceil(64));
        Needs { slots, array, row, bits, window, window_sums: window, trace: 0 }
    }

    /// Without the row itself and its sums: what counting needs.
    pub fn to_count(self) -> Self {
        Needs { row: 0, bits: 0, window_sums: 0, ..self }
    }

    /// And to follow rows of at most so many products.
    pub fn with_trace(self, products: usize) -> Self {
        Needs { trace: products, ..self }
    }
}

/// Bytes that no two threads may write apart from each other: two cache lines,
/// for processors fetch them in pairs.
const APART: usize = 128;

/// Bytes of so many elements of T and what makes them fill whole pairs of cache lines. A
/// row of C has a few entries in many products: the lists and sums of all
/// threads would lie in one line, which then moves between them at every store.
fn padded<T>(count: usize) -> usize {
    // More than that no buffer has.
    count.saturating_mul(size_of::<T>()).min(isize::MAX as usize).next_multiple_of(APART)
}

/// Takes so many elements of T off the front.
fn take<'a, T: Pod>(rest: &mut &'a mut [u8], count: usize) -> &'a mut [T] {
    if count == 0 {
        // The address of no bytes at all need not be aligned.
        return &mut [];
    }
    let (part, tail) = std::mem::take(rest).split_at_mut(padded::<T>(count));
    *rest = tail;
    bytemuck::cast_slice_mut(&mut part[..count * size_of::<T>()])
}

/// Accumulators of one thread.
#[repr(align(128))] // APART
pub struct Set<'a, K, T> {
    /// For rows with few of the columns.
    pub hash: HashPlaces<'a, K>,
    /// For rows with many.
    pub array: ArrayPlaces<'a>,
    /// For rows whose columns lie near each other.
    pub window: Window<'a, T>,
    /// The row itself.
    pub row: Row<'a, K, T>,
}

/// The present row; nothing of it in the symbolic phase.
pub struct Row<'a, K, T> {
    /// Columns.
    pub list: &'a mut [K],
    /// Zeros; sorts the list.
    pub bits: &'a mut [u64],
    /// Sums, by place.
    pub sums: &'a mut [T],
    /// Places of the columns in the order of the list.
    pub order: &'a mut [u32],
    /// Places of the products.
    pub trace: &'a mut [u32],
}

/// The sets of all threads.
#[derive(Debug)]
pub struct Scratch<K: Key, T: Pod> {
    needs: Needs,
    sets: usize,
    /// Zeros at first, in as many parts.
    bytes: Buffer<u8>,
    types: PhantomData<(K, T)>,
}

impl<K: Key, T: Pod + Send> Scratch<K, T> {
    /// For as many threads, up to `sets`, as the memory limit leaves room for.
    pub fn new(cx: &Context, mut sets: usize, needs: Needs) -> Result<Self> {
        let Needs { slots, array, row, bits, window, window_sums, trace } = needs;
        let each = [
            padded::<[K; 2]>(slots),
            padded::<u32>(array),
            padded::<K>(row),
            padded::<u64>(bits),
            padded::<T>(row),
            padded::<T>(window_sums),
            padded::<u8>(window),
            padded::<u32>(row.min(trace)),
            padded::<u32>(trace),
        ];
        let each = each.into_iter().fold(0, usize::saturating_add);
        loop {
            match Buffer::zeroed(&cx.allocator, each.saturating_mul(sets)) {
                Err(error) if error.status == Status::InsufficientResources && sets > 1 => {
                    sets = sets.div_ceil(2)
                }
                bytes => return Ok(Scratch { needs, sets, bytes: bytes?, types: PhantomData }),
            }
        }
    }

    /// Runs `work` with every item (see [`super::rows::cut_items`]). Each
    /// thread takes the next item that nobody has taken; an item's rows are
    /// done by one thread, one after the other.
    pub fn for_each_item(&mut self, items: &[i64], work: impl Fn(&mut Set<'_, K, T>, Range<usize>) + Sync) {
        let next = AtomicUsize::new(0);
        let mut sets = self.split();
        let take_items = |set: &mut Set<'_, K, T>| loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item + 1 >= items.len() {
                break;
            }
            work(set, items[item] as usize..items[item + 1] as usize);
        };
        pieces::for_each(pieces::each(&mut sets), |_, set| take_items(set));
    }

    fn split(&mut self) -> Vec<Set<'_, K, T>> {
        let Needs { slots, array, row, bits, window, window_sums, trace } = self.needs;
        let (size, mut all) = (self.bytes.len() / self.sets, &mut self.bytes[..]);
        let sets = (0..self.sets).map(|_| {
            let (mut rest, later) = std::mem::take(&mut all).split_at_mut(size);
            all = later;
            let rest = &mut rest;
            Set {
                hash: HashPlaces::new(take(rest, slots)),
                array: ArrayPlaces::new({
                    let array: &mut [u32] = take(rest, array);
                    // What an earlier run has left holds stamps; a run starts with generation 1.
                    array.fill(0);
                    array
                }),
                row: Row {
                    list: take(rest, row),
                    bits: take(rest, bits),
                    sums: take(rest, row),
                    order: take(rest, row.min(trace)),
                    trace: take(rest, trace),
                },
                window: Window { sums: take(rest, window_sums), seen: take(rest, window) },
            }
        });
        sets.collect()
    }
}
