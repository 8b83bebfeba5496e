//! Reverse Cuthill-McKee (Cuthill, McKee 1969; George, Liu 1979) on the graph of A + Aᵀ: it brings neighbours
//! in the graph near each other in the order, and so the columns of neighbouring rows.
//!
//! A breadth-first search from a peripheral vertex of each component, with the neighbours of a vertex by
//! rising degree; finally the whole order is reversed. Components are in the order of their vertices of least
//! degree. O(nnz · log(longest row)).

use std::sync::Arc;

use super::{numbers, row_count};
use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::types::Index;

/// Largest number of times that the search for a peripheral vertex moves on to one that is farther away: it
/// mostly ends by itself after 2 or 3.
const TRIES: usize = 8;

/// Undirected graph; the neighbours of a vertex ascend.
struct Graph {
    starts: Buffer<u64>,
    ends: Buffer<u64>,
    neighbours: Buffer<u32>,
}

impl Graph {
    fn new<I: Index, J: Index>(allocator: &Arc<Allocator>, pattern: &Pattern<'_, I, J>) -> Result<Self> {
        let rows = row_count(pattern)?;
        let entries = || {
            (0..rows).flat_map(|row| {
                pattern
                    .range(row)
                    .map(move |at| (row, pattern.index(at)))
                    .filter(|(row, column)| row != column)
            })
        };
        let mut starts = Buffer::<u64>::zeroed(allocator, rows + 1)?;
        entries().for_each(|(row, column)| {
            starts[row + 1] += 1;
            starts[column + 1] += 1;
        });
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut neighbours = Buffer::<u32>::zeroed(allocator, starts[rows] as usize)?;
        let mut ends = Buffer::from_slice(allocator, &starts[..rows])?;
        let mut add = |vertex: usize, neighbour: usize| {
            neighbours[ends[vertex] as usize] = neighbour as u32;
            ends[vertex] += 1;
        };
        entries().for_each(|(row, column)| {
            add(row, column);
            add(column, row);
        });
        for vertex in 0..rows {
            let own = &mut neighbours[starts[vertex] as usize..ends[vertex] as usize];
            own.sort_unstable();
            let mut kept = 0;
            for at in 0..own.len() {
                if at == 0 || own[at] != own[kept - 1] {
                    own[kept] = own[at];
                    kept += 1;
                }
            }
            ends[vertex] = starts[vertex] + kept as u64;
        }
        Ok(Graph { starts, ends, neighbours })
    }

    fn of(&self, vertex: u32) -> &[u32] {
        &self.neighbours[self.starts[vertex as usize] as usize..self.ends[vertex as usize] as usize]
    }

    fn degree(&self, vertex: u32) -> u64 {
        self.ends[vertex as usize] - self.starts[vertex as usize]
    }

    /// Puts the component of `root` into `queue` in breadth-first order, and marks its vertices with `mark`,
    /// which must be above all their marks. Returns the number of vertices, the index at which the last level
    /// begins, and the number of levels.
    fn search(&self, root: u32, queue: &mut [u32], marks: &mut [u64], mark: u64) -> (usize, usize, usize) {
        queue[0] = root;
        marks[root as usize] = mark;
        let (mut count, mut level, mut levels) = (1, 0..1, 1);
        loop {
            for at in level.clone() {
                let first = count;
                for &neighbour in self.of(queue[at]) {
                    if marks[neighbour as usize] < mark {
                        marks[neighbour as usize] = mark;
                        queue[count] = neighbour;
                        count += 1;
                    }
                }
                queue[first..count].sort_unstable_by_key(|&vertex| (self.degree(vertex), vertex));
            }
            if count == level.end {
                return (count, level.start, levels);
            }
            level = level.end..count;
            levels += 1;
        }
    }
}

/// Returns the order of a square pattern.
pub(super) fn order<I: Index, J: Index>(
    allocator: &Arc<Allocator>,
    pattern: &Pattern<'_, I, J>,
) -> Result<Buffer<u32>> {
    if pattern.major != pattern.minor {
        return Err(Error::unsupported(format!(
            "reorder: TARSIA_REORDER_RCM is for square matrices; op(A) is {} × {}",
            pattern.major, pattern.minor
        )));
    }
    let rows = row_count(pattern)?;
    let graph = Graph::new(allocator, pattern)?;
    let mut by_degree = numbers(allocator, rows)?;
    by_degree.sort_unstable_by_key(|&vertex| (graph.degree(vertex), vertex));
    let mut order = Buffer::<u32>::zeroed(allocator, rows)?;
    let mut marks = Buffer::<u64>::zeroed(allocator, rows)?;
    let (mut done, mut mark) = (0, 0);
    for &first in by_degree.iter() {
        if marks[first as usize] > 0 {
            continue;
        }
        let mut root = first;
        let mut most = 0;
        let queue = &mut order[done..];
        for again in 0..=TRIES {
            mark += 1;
            let (count, last, levels) = graph.search(root, queue, &mut marks, mark);
            // The queue of the last search is the component's order.
            if levels <= most || again == TRIES || count == 1 {
                done += count;
                break;
            }
            most = levels;
            let farthest = queue[last..count].iter().min_by_key(|&&vertex| (graph.degree(vertex), vertex));
            root = farthest.copied().unwrap_or(root);
        }
    }
    order.reverse();
    Ok(order)
}
