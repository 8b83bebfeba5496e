//! Builder of the DASP layout in host memory.

use std::sync::Arc;

use super::{
    key, Classes, DaspLayout, DaspShape, Results, Split, Task, GROUP, KEYS, NO_COLUMN, NO_ROW, PLACES, ROWS,
    TASK_GROUPS, THRESHOLD,
};
use crate::error::Result;
use crate::format::sell::Origin;
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::{Element, Index};

/// Arrays of the long rows.
struct Long {
    tasks: Buffer<Task>,
    splits: Buffer<Split>,
    groups: usize,
}

/// Arrays of the row-blocks of medium rows.
struct Medium {
    regular: Buffer<i64>,
    irregular: Buffer<i64>,
    ends: Buffer<u16>,
}

impl<V: Element> DaspLayout<V> {
    /// Builds the layout of a valid pattern of rows, with `values` in its order. There may be at most 2^31 −
    /// 1 rows and columns.
    ///
    /// Cost: O(nnz + rows); 4 bytes per row of temporary memory.
    pub fn build<I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[V],
        origin: Origin<'_>,
    ) -> Result<Self> {
        let rows = pattern.major;
        let (sorted, classes) = sort(allocator, pattern, rows)?;
        let long = long_rows(allocator, pattern, &sorted[..classes.long])?;
        let medium_rows = &sorted[classes.long..classes.long + classes.medium];
        let medium = row_blocks(allocator, pattern, medium_rows)?;
        let (blocks, irregular) = (medium.regular.last(), medium.irregular.last());
        let end = |last: Option<&i64>| last.map_or(0, |&last| last as usize);
        let shape = DaspShape::new(classes, long.groups, end(blocks), end(irregular));
        let order = order(allocator, &shape, &sorted)?;
        let mut out = DaspLayout {
            row_count: rows,
            shape,
            values: Buffer::zeroed(allocator, 0)?,
            columns: Buffer::zeroed(allocator, 0)?,
            order,
            tasks: long.tasks,
            splits: long.splits,
            regular: medium.regular,
            irregular: medium.irregular,
            ends: medium.ends,
            positions: None,
            entries: pattern.indices.len(),
        };
        let slot_count = shape.slot_count();
        let mut columns = Buffer::<i32>::zeroed(allocator, slot_count)?;
        let mut places = Buffer::<V>::zeroed(allocator, slot_count)?;
        let mut positions = Buffer::<i64>::zeroed(allocator, if origin.keep { slot_count } else { 0 })?;
        columns.fill(NO_COLUMN);
        positions.fill(-1);
        out.for_each_run(|row, first, slots| {
            let entries = pattern.range(row);
            for (entry, slot) in (entries.start + first..entries.end).zip(slots) {
                (columns[slot], places[slot]) = (pattern.index(entry) as i32, values[entry]);
                if let Some(position) = positions.get_mut(slot) {
                    *position = origin.of(entry);
                }
            }
        });
        (out.columns, out.values) = (columns, places);
        out.positions = origin.keep.then_some(positions);
        Ok(out)
    }
}

/// Returns the rows sorted by descending length, with the long rows first in their own order, and the class
/// sizes.
fn sort<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    rows: usize,
) -> Result<(Buffer<i32>, Classes)> {
    let mut histogram = [0_u64; KEYS];
    (0..rows).for_each(|row| histogram[key(pattern.range(row).len())] += 1);
    let classes = Classes::new(&histogram);
    let mut next = 0;
    let mut starts = histogram.map(|count| {
        next += count as usize;
        next - count as usize
    });
    let mut sorted = Buffer::<i32>::zeroed(allocator, rows)?;
    for row in 0..rows {
        let start = &mut starts[key(pattern.range(row).len())];
        sorted[*start] = row as i32;
        *start += 1;
    }
    Ok((sorted, classes))
}

/// Returns the array `order`: the row of each result.
fn order(allocator: &Arc<Allocator>, shape: &DaspShape, sorted: &[i32]) -> Result<Buffer<i32>> {
    let mut out = Buffer::<i32>::zeroed(allocator, shape.result_count())?;
    out.fill(NO_ROW);
    let sources = shape.sources();
    for results in [Results::TwoTwo, Results::Four, Results::Single, Results::Medium, Results::Empty] {
        let (first, count) = sources[results as usize];
        let start = shape.results(results).start;
        out[start..start + count].copy_from_slice(&sorted[first..first + count]);
    }
    let (ones, pairs) = sources[Results::OneThree as usize];
    let threes = shape.threes();
    for pair in 0..pairs {
        let at = pair / ROWS * 2 * ROWS + pair % ROWS;
        (out[at], out[at + ROWS]) = (sorted[ones + pair], sorted[threes + pair]);
    }
    Ok(out)
}

fn long_rows<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    rows: &[i32],
) -> Result<Long> {
    let groups_of = |row: i32| pattern.range(row as usize).len().div_ceil(GROUP);
    let tasks_of = |row: i32| groups_of(row).div_ceil(TASK_GROUPS);
    let mut tasks = Buffer::<Task>::zeroed(allocator, rows.iter().map(|&row| tasks_of(row)).sum())?;
    let split = rows.iter().filter(|&&row| tasks_of(row) > 1).count();
    let mut splits = Buffer::<Split>::zeroed(allocator, split)?;
    let (mut next, mut split, mut before, mut first) = (0, 0, 0, 0);
    for &row in rows {
        let (groups, count) = (groups_of(row), tasks_of(row));
        let mut name = row;
        if count > 1 {
            splits[split] = Split { first: next as i64, before, tasks: count as i32, row };
            name = -1 - split as i32;
            split += 1;
            before += count as i64;
        }
        for task in 0..count {
            let (from, to) = (groups * task / count, groups * (task + 1) / count);
            tasks[next] = Task { first: (first + from) as i64, groups: (to - from) as i32, row: name };
            next += 1;
        }
        first += groups;
    }
    Ok(Long { tasks, splits, groups: first })
}

fn row_blocks<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
    rows: &[i32],
) -> Result<Medium> {
    let count = rows.len().div_ceil(ROWS);
    let mut regular = Buffer::<i64>::zeroed(allocator, count + 1)?;
    let mut irregular = Buffer::<i64>::zeroed(allocator, count + 1)?;
    let mut ends = Buffer::<u16>::zeroed(allocator, count * ROWS)?;
    for (number, rows) in rows.chunks(ROWS).enumerate() {
        let mut lengths = [0; ROWS];
        for (length, &row) in lengths.iter_mut().zip(rows) {
            *length = pattern.range(row as usize).len();
        }
        let taken = |block: usize| {
            let places = |length: usize| length.saturating_sub(block * PLACES).min(PLACES);
            lengths.iter().map(|&length| places(length)).sum::<usize>()
        };
        let mut blocks = 0;
        while taken(blocks) >= THRESHOLD {
            blocks += 1;
        }
        let mut end = 0;
        for (slot, length) in ends[number * ROWS..].iter_mut().zip(lengths) {
            end += length.saturating_sub(blocks * PLACES);
            *slot = end as u16;
        }
        regular[number + 1] = regular[number] + blocks as i64;
        irregular[number + 1] = irregular[number] + end as i64;
    }
    Ok(Medium { regular, irregular, ends })
}
