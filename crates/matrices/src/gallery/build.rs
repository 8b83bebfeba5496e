//! Builders of patterns from rows or edges that come in any order, possibly repeated.

use rayon::prelude::*;

use super::Result;
use crate::owned::{check_dimensions, try_filled, try_push, try_reserve, try_with_capacity, OwnedCsr};

/// Largest number of rows of one parallel task: some 100 µs of work for short rows.
const TASK_ROWS: usize = 1 << 12;
/// Smallest number of tasks into which a matrix of few, long rows is cut.
const TASKS: usize = 256;
/// Number of tasks whose results may wait to be appended, which bounds the memory beside the matrix.
const BATCH: usize = 64;

/// Columns of the row that is being made.
#[derive(Default)]
pub(super) struct Columns {
    list: Vec<i32>,
}

impl Columns {
    /// Adds `col`, below the number of columns; a column may be added again.
    pub(super) fn push(&mut self, col: usize) -> Result<()> {
        try_push(&mut self.list, col as i32)
    }

    /// Adds `first..end`.
    pub(super) fn extend(&mut self, first: usize, end: usize) -> Result<()> {
        try_reserve(&mut self.list, end.saturating_sub(first))?;
        self.list.extend(first as i32..end as i32);
        Ok(())
    }

    /// Returns the columns, sorted and without duplicates.
    fn sorted(&mut self) -> &[i32] {
        if !self.list.is_sorted_by(|a, b| a < b) {
            self.list.sort_unstable();
            self.list.dedup();
        }
        &self.list
    }
}

/// Row lengths and columns of a range of rows.
#[derive(Default)]
struct RowRange {
    lengths: Vec<usize>,
    indices: Vec<i32>,
}

impl RowRange {
    fn make(
        range: std::ops::Range<usize>,
        mut fill: impl FnMut(usize, &mut Columns) -> Result<()>,
    ) -> Result<Self> {
        let mut rows = Self { lengths: try_with_capacity(range.len())?, indices: Vec::new() };
        let mut columns = Columns::default();
        for row in range {
            columns.list.clear();
            fill(row, &mut columns)?;
            let sorted = columns.sorted();
            rows.lengths.push(sorted.len());
            try_reserve(&mut rows.indices, sorted.len())?;
            rows.indices.extend_from_slice(sorted);
        }
        Ok(rows)
    }
}

/// Makes the pattern whose row i has the columns that `fill(i, …)` adds; `nnz` is an estimate of their
/// number. Rows are made in parallel.
pub(super) fn from_rows(
    rows: usize,
    cols: usize,
    nnz: u128,
    fill: impl Fn(usize, &mut Columns) -> Result<()> + Sync,
) -> Result<OwnedCsr<()>> {
    let mut matrix = Pattern::new(rows, cols, nnz)?;
    let task = (rows / TASKS).clamp(1, TASK_ROWS);
    for first in (0..rows).step_by(task * BATCH) {
        let end = rows.min(first + task * BATCH);
        let tasks = (end - first).div_ceil(task);
        let make = |k| {
            let start = first + k * task;
            RowRange::make(start..end.min(start + task), &fill)
        };
        // `made` has at most BATCH elements.
        let made: Vec<Result<RowRange>> = (0..tasks).into_par_iter().map(make).collect();
        for rows in made {
            matrix.append(&rows?)?;
        }
    }
    Ok(matrix.finish())
}

/// Like [`from_rows`], but one row after the other, for rows that continue one sequence of draws.
pub(super) fn from_rows_in_order(
    rows: usize,
    cols: usize,
    nnz: u128,
    mut fill: impl FnMut(usize, &mut Columns) -> Result<()>,
) -> Result<OwnedCsr<()>> {
    let mut matrix = Pattern::new(rows, cols, nnz)?;
    for first in (0..rows).step_by(TASK_ROWS) {
        matrix.append(&RowRange::make(first..rows.min(first + TASK_ROWS), &mut fill)?)?;
    }
    Ok(matrix.finish())
}

/// A pattern to which rows are appended.
struct Pattern {
    rows: usize,
    cols: usize,
    offsets: Vec<i64>,
    indices: Vec<i32>,
}

impl Pattern {
    fn new(rows: usize, cols: usize, nnz: u128) -> Result<Self> {
        check_dimensions(rows, cols)?;
        let mut offsets = try_with_capacity(rows + 1)?;
        offsets.push(0);
        let indices = try_with_capacity(usize::try_from(nnz).unwrap_or(usize::MAX))?;
        Ok(Self { rows, cols, offsets, indices })
    }

    fn append(&mut self, rows: &RowRange) -> Result<()> {
        let mut end = self.indices.len();
        for length in &rows.lengths {
            end += length;
            self.offsets.push(end as i64);
        }
        try_reserve(&mut self.indices, rows.indices.len())?;
        self.indices.extend_from_slice(&rows.indices);
        Ok(())
    }

    fn finish(self) -> OwnedCsr<()> {
        let Self { rows, cols, offsets, indices } = self;
        let matrix = OwnedCsr { rows, cols, values: vec![(); indices.len()], offsets, indices };
        debug_assert!(matrix.validate().is_ok());
        matrix
    }
}

/// Entries of a pattern in any order; one that is added again counts once.
#[derive(Default)]
pub(super) struct Edges {
    /// Row in the upper, column in the lower half of each number, so that numeric order is CSR's order.
    list: Vec<u64>,
}

impl Edges {
    /// Makes an empty list with room for `capacity` edges.
    pub(super) fn with_capacity(capacity: usize) -> Result<Self> {
        Ok(Self { list: try_with_capacity(capacity)? })
    }

    /// Makes `count` edges in parallel, each by `edge(state)`; `start(k)` gives the state of a task whose
    /// first edge has number k.
    pub(super) fn generate<S>(
        count: usize,
        start: impl Fn(usize) -> S + Sync,
        edge: impl Fn(&mut S) -> (u32, u32) + Sync,
    ) -> Result<Self> {
        let mut list = try_filled(count, 0u64)?;
        list.par_chunks_mut(TASK_ROWS).enumerate().for_each(|(task, edges)| {
            let mut state = start(task * TASK_ROWS);
            for slot in edges {
                let (row, col) = edge(&mut state);
                *slot = key(row as usize, col as usize);
            }
        });
        Ok(Self { list })
    }

    /// Adds (row, col).
    pub(super) fn push(&mut self, row: usize, col: usize) -> Result<()> {
        try_push(&mut self.list, key(row, col))
    }

    /// Adds (a, b) and (b, a).
    pub(super) fn push_both(&mut self, a: usize, b: usize) -> Result<()> {
        self.push(a, b)?;
        self.push(b, a)
    }

    /// Adds all pairs of `members`, including each member with itself.
    pub(super) fn push_clique(&mut self, members: impl Iterator<Item = usize> + Clone) -> Result<()> {
        for row in members.clone() {
            for col in members.clone() {
                self.push(row, col)?;
            }
        }
        Ok(())
    }

    /// Makes the pattern with these entries, all of which must be inside its shape.
    pub(super) fn into_pattern(self, rows: usize, cols: usize) -> Result<OwnedCsr<()>> {
        check_dimensions(rows, cols)?;
        let mut list = self.list;
        list.par_sort_unstable();
        list.dedup();
        let mut offsets = try_filled(rows + 1, 0i64)?;
        for edge in &list {
            offsets[(edge >> 32) as usize + 1] += 1;
        }
        for row in 0..rows {
            offsets[row + 1] += offsets[row];
        }
        let mut indices = try_filled(list.len(), 0i32)?;
        indices.par_iter_mut().zip(&list).for_each(|(col, edge)| *col = *edge as i32);
        let matrix = OwnedCsr { rows, cols, values: vec![(); indices.len()], offsets, indices };
        debug_assert!(matrix.validate().is_ok());
        Ok(matrix)
    }
}

/// Packs an entry into one number; dimensions are below 2³¹, so both indices fit.
fn key(row: usize, col: usize) -> u64 {
    (row as u64) << 32 | col as u64
}
