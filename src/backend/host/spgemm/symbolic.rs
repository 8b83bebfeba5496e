//! The symbolic phase: how many distinct columns each row of the product has.
//! Generic over index types alone.

use super::places::{Key, Places, Rule};
use super::rows::{walk, with_indices, Factor};
use super::scratch::{Needs, Scratch};
use crate::backend::host::operand::Shared;
use crate::backend::{Buffer, Context};
use crate::error::Result;
use crate::types::Index;

/// Row offsets of left · right (rows + 1, base 0). `products` bounds each row;
/// memory is the offsets and `sets` accumulators for the largest row.
pub fn count_entries<K: Key>(
    cx: &Context,
    left: &Factor,
    right: &Factor,
    products: &[i64],
    items: &[i64],
    sets: usize,
    rule: Rule,
) -> Result<Buffer<i64>> {
    let cols = right.cols;
    let most = |row: usize| (products[row] as usize).min(cols);
    let needs = Needs::of::<K>((0..left.rows).map(most), cols, rule);
    let mut offsets = Buffer::<i64>::zeroed(&cx.allocator, left.rows + 1)?;
    let mut scratch = Scratch::<K, u8>::symbolic(cx, sets, &needs)?;
    let counts = Shared::new(&mut offsets[1..]);
    with_indices!(right, indices => scratch.for_each_item(items, |set, rows| {
        let (first, mut previous) = (rows.start, 0);
        for row in rows {
            let most = most(row);
            let count = if most <= 1 {
                most
            } else if row > first && left.repeats(row) {
                previous
            } else if rule.array(most, cols) {
                count_row::<K, _, _>(&mut set.array, most, left, row, right, indices)
            } else {
                count_row(&mut set.hash, most, left, row, right, indices)
            };
            previous = count;
            // SAFETY: `offsets` is borrowed until the counts are complete, and
            // each row is in one item, which one thread takes.
            unsafe { counts.set(row, count as i64) };
        }
    }));
    // The sum is at most that of the products, which fits.
    for row in 0..left.rows {
        offsets[row + 1] += offsets[row];
    }
    Ok(offsets)
}

fn count_row<K: Key, J: Index, P: Places<K>>(
    places: &mut P,
    most: usize,
    left: &Factor,
    row: usize,
    right: &Factor,
    indices: &[J],
) -> usize {
    places.begin(most);
    walk(left, row, right, indices, |row| places.mark(row, right.base));
    places.count()
}
