//! Memory of the threads: one set of accumulators each, allocated by the
//! caller's thread before any of them starts.

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
        Needs { slots, array, row, bits: row.min(cols.div_ceil(64)), window, trace: 0 }
    }

    /// And to follow rows of at most so many products.
    pub fn with_trace(self, products: usize) -> Self {
        Needs { trace: products, ..self }
    }
}

/// Bytes that no two threads may write apart from each other: two cache lines,
/// for processors fetch them in pairs.
const APART: usize = 128;

/// `size` elements of T and what makes them fill whole pairs of cache lines. A
/// row of C has a few entries in many products: the lists and sums of all
/// threads would lie in one line, which then moves between them at every store.
fn padded<T>(size: usize) -> usize {
    size.next_multiple_of((APART / size_of::<T>()).max(1))
}

/// Zeros for `sets` threads, `size` elements each.
fn parts<T: Pod>(cx: &Context, sets: usize, size: usize) -> Result<Buffer<T>> {
    Buffer::zeroed(&cx.allocator, padded::<T>(size).saturating_mul(sets))
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
    sets: usize,
    slots: Buffer<[K; 2]>,
    array: Buffer<u32>,
    list: Buffer<K>,
    bits: Buffer<u64>,
    sums: Buffer<T>,
    window_sums: Buffer<T>,
    seen: Buffer<u8>,
    order: Buffer<u32>,
    trace: Buffer<u32>,
}

impl<K: Key, T: Pod + Send> Scratch<K, T> {
    /// Accumulators alone, for `sets` threads.
    pub fn symbolic(cx: &Context, sets: usize, needs: &Needs) -> Result<Self> {
        let mut scratch = Self::new(cx, sets, &Needs { row: 0, bits: 0, window: 0, ..*needs })?;
        scratch.seen = parts(cx, sets, needs.window)?;
        Ok(scratch)
    }

    /// Accumulators, columns and sums, for `sets` threads.
    #[inline(never)]
    pub fn new(cx: &Context, sets: usize, needs: &Needs) -> Result<Self> {
        Ok(Scratch {
            sets,
            slots: parts(cx, sets, needs.slots)?,
            array: parts(cx, sets, needs.array)?,
            list: parts(cx, sets, needs.row)?,
            bits: parts(cx, sets, needs.bits)?,
            sums: parts(cx, sets, needs.row)?,
            window_sums: parts(cx, sets, needs.window)?,
            seen: parts(cx, sets, needs.window)?,
            order: parts(cx, sets, needs.row.min(needs.trace))?,
            trace: parts(cx, sets, needs.trace)?,
        })
    }

    /// For as many threads, up to `sets`, as the memory limit leaves room for.
    pub fn within_limit(sets: usize, make: impl Fn(usize) -> Result<Self>) -> Result<Self> {
        let mut sets = sets;
        loop {
            match make(sets) {
                Err(error) if error.status == Status::InsufficientResources && sets > 1 => {
                    sets = sets.div_ceil(2)
                }
                done => return done,
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
        // An array that was left by an earlier run holds stamps; a run starts
        // with generation 1.
        self.array.fill(0);
        let (mut slots, mut array) = (&mut self.slots[..], &mut self.array[..]);
        let (mut list, mut bits, mut sums) = (&mut self.list[..], &mut self.bits[..], &mut self.sums[..]);
        let (mut window_sums, mut seen) = (&mut self.window_sums[..], &mut self.seen[..]);
        let (mut order, mut trace) = (&mut self.order[..], &mut self.trace[..]);
        let sets = (0..self.sets).rev().map(|left| Set {
            hash: HashPlaces::new(take_part(&mut slots, left)),
            array: ArrayPlaces::new(take_part(&mut array, left)),
            window: Window { sums: take_part(&mut window_sums, left), seen: take_part(&mut seen, left) },
            row: Row {
                list: take_part(&mut list, left),
                bits: take_part(&mut bits, left),
                sums: take_part(&mut sums, left),
                order: take_part(&mut order, left),
                trace: take_part(&mut trace, left),
            },
        });
        sets.collect()
    }
}

/// Cuts the first of `left + 1` equal parts off.
fn take_part<'a, T>(rest: &mut &'a mut [T], left: usize) -> &'a mut [T] {
    let size = rest.len() / (left + 1);
    let (part, tail) = std::mem::take(rest).split_at_mut(size);
    *rest = tail;
    part
}
