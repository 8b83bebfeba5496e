//! The symbolic phase: counts the distinct columns of each row of the product. It is generic over index types
//! alone.

use super::places::{Key, Places, Rule};
use super::rows::{find_steps, follows, product_step, walk, NEW};
use super::scratch::{Needs, Scratch, Set};
use super::window;
use crate::backend::host::operand::{Factor, Shared};
use crate::error::Result;
use crate::memory::{Buffer, Context};

/// Result of the symbolic phase.
#[derive(Debug)]
pub struct Counted {
    /// Row offsets of the product: rows + 1, with base 0.
    pub offsets: Buffer<i64>,
    /// Step from the row before to each row ([`Factor::step`]).
    pub steps: Buffer<u8>,
}

/// Counts the entries of left · right. `products` bounds those of each row. It allocates the result, one byte
/// per row of `right`, and `sets` accumulators for the largest row.
pub fn count_entries<K: Key>(
    cx: &Context,
    left: &Factor,
    right: &Factor,
    products: &[i64],
    items: &[i64],
    sets: usize,
    rule: Rule,
) -> Result<Counted> {
    let cols = right.cols;
    let most = |row: usize| (products[row] as usize).min(cols);
    let needs = Needs::of::<K>((0..left.rows).map(most), cols, rule);
    let follow = follows(left, |row| products[row] as usize);
    let right_steps = if follow { find_steps(cx, right)? } else { Buffer::zeroed(&cx.allocator, 0)? };
    let mut copy = None;
    let indices = right.indices.to_slice(cx, &mut copy)?;
    let mut offsets = Buffer::<i64>::zeroed(&cx.allocator, left.rows + 1)?;
    let mut steps = Buffer::<u8>::zeroed(&cx.allocator, left.rows)?;
    let windows = |row| (most(row), widest(rule, most(row)));
    let rule = Rule {
        window: if window::suits(left, right, indices, true, windows) { rule.window } else { 0 },
        ..rule
    };
    let mut scratch = Scratch::<K, u8>::new(cx, sets, needs.to_count())?;
    let (counts, shared_steps) = (Shared::new(&mut offsets[1..]), Shared::new(&mut steps));
    scratch.for_each_item(items, |set, rows| {
        let (first, mut previous) = (rows.start, 0);
        for row in rows {
            let most = most(row);
            let step = if most == 0 || !follow { NEW } else { product_step(left, row, &right_steps) };
            let count = if most <= 1 {
                most
            } else if row > first && step != NEW {
                previous
            } else {
                count_row(set, left, row, (right, indices), most, rule)
            };
            previous = count;
            // SAFETY: both are borrowed until all rows are counted, and each row is in one item, which one
            // thread processes.
            unsafe {
                counts.set(row, count as i64);
                shared_steps.set(row, step);
            }
        }
    });
    // The sum is at most the number of products, which fits.
    for row in 0..left.rows {
        offsets[row + 1] += offsets[row];
    }
    Ok(Counted { offsets, steps })
}

/// Returns the widest window of a row of at most `most` entries.
fn widest(rule: Rule, most: usize) -> usize {
    rule.window.min(most.saturating_mul(window::SPREAD_COUNT))
}

fn count_row<K: Key>(
    set: &mut Set<'_, K, u8>,
    left: &Factor,
    row: usize,
    (right, indices): (&Factor, &[K]),
    most: usize,
    rule: Rule,
) -> usize {
    fn mark<K: Key, P: Places<K>>(
        places: &mut P,
        most: usize,
        left: &Factor,
        row: usize,
        (right, indices): (&Factor, &[K]),
    ) -> usize {
        places.begin(most);
        walk(left, row, right, indices, |row| places.mark(row, right.base));
        places.count()
    }
    let span = window::span(left, row, right, indices, most, widest(rule, most));
    if let Some(count) = span.and_then(|span| set.window.count(left, row, right, indices, span)) {
        return count;
    }
    if rule.array(most, right.cols) {
        mark::<K, _>(&mut set.array, most, left, row, (right, indices))
    } else {
        mark(&mut set.hash, most, left, row, (right, indices))
    }
}
