//! Selection of the rows to check if all would take too long.

use std::collections::BTreeSet;

use matrices::owned::OwnedCsr;
use matrices::SplitMix64;
use tarsia::facade::Operation;

use crate::table::grouped;

/// Largest number of rows of a sample.
pub const SAMPLE: usize = 1000;
/// Seed of the sample, so that every run selects the same rows.
const SEED: u64 = 0x7a25_1a00_2026_0001;

/// Some or all rows of a matrix, ascending.
#[derive(Clone, Debug)]
pub struct RowSample {
    total: usize,
    picked: Option<Vec<usize>>,
}

impl RowSample {
    /// Selects every row.
    pub fn all(total: usize) -> Self {
        RowSample { total, picked: None }
    }

    /// Selects seeded rows whose `costs` add up to at most `budget`, and, whatever they cost, the rows
    /// `always`.
    pub fn sample(costs: &[u64], always: &[usize], budget: u64) -> Self {
        let total = costs.len();
        if total <= SAMPLE && costs.iter().sum::<u64>() <= budget {
            return RowSample::all(total);
        }
        let mut picked: BTreeSet<usize> = always.iter().copied().collect();
        let mut spent: u64 = picked.iter().map(|&row| costs[row]).sum();
        let mut rng = SplitMix64::new(SEED);
        // More draws than rows, since some rows are drawn twice or cost too much.
        for _ in 0..4 * SAMPLE {
            let row = rng.below(total as u64) as usize;
            if picked.len() == SAMPLE {
                break;
            }
            if spent + costs[row] <= budget && picked.insert(row) {
                spent += costs[row];
            }
        }
        RowSample { total, picked: Some(picked.into_iter().collect()) }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.picked.as_ref().map_or(self.total, Vec::len)
    }

    /// Returns whether every row is selected.
    pub fn is_all(&self) -> bool {
        self.picked.is_none()
    }

    /// Returns the numbers of the selected rows.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|at| self.picked.as_ref().map_or(at, |rows| rows[at]))
    }

    /// Returns the matrix of these rows; `None` if all rows are selected.
    pub fn of<V: Copy>(&self, a: &OwnedCsr<V>) -> Option<OwnedCsr<V>> {
        let picked = self.picked.as_ref()?;
        let mut out = OwnedCsr {
            rows: picked.len(),
            cols: a.cols,
            offsets: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        };
        for &row in picked {
            let (indices, values) = a.row(row);
            out.indices.extend_from_slice(indices);
            out.values.extend_from_slice(values);
            out.offsets.push(out.indices.len() as i64);
        }
        Some(out)
    }

    /// Returns a description: `all 75,000 rows`, `1,000 of 75,000 rows, the longest among them`.
    pub fn describe(&self) -> String {
        if self.is_all() {
            return format!("all {} rows", grouped(self.total as u64));
        }
        let (some, all) = (grouped(self.len() as u64), grouped(self.total as u64));
        format!("{some} of {all} rows, the longest among them")
    }
}

/// Returns the number of entries in each row of op(A).
pub fn row_lengths<V>(a: &OwnedCsr<V>, op: Operation) -> Vec<u64> {
    if !op.transposes() {
        return a.offsets.windows(2).map(|row| (row[1] - row[0]) as u64).collect();
    }
    let mut lengths = vec![0; a.cols];
    for &col in &a.indices {
        lengths[col as usize] += 1;
    }
    lengths
}

/// Returns the number of multiplications in each row of A · op(B), computed from the row lengths of op(B).
pub fn row_products<V>(a: &OwnedCsr<V>, b_lengths: &[u64]) -> Vec<u64> {
    (0..a.rows).map(|row| a.row(row).0.iter().map(|&col| b_lengths[col as usize]).sum()).collect()
}

/// Returns the position of the largest value; `None` if there are no values.
pub fn largest(values: &[u64]) -> Option<usize> {
    (0..values.len()).max_by_key(|&at| values[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_seeded_sorted_and_has_the_longest() {
        let costs: Vec<u64> = (0..5000).map(|row| if row == 4321 { 1_000_000 } else { 2 }).collect();
        let rows = RowSample::sample(&costs, &[4321], 1_000_900);
        let picked: Vec<usize> = rows.iter().collect();
        assert!(picked.is_sorted_by(|a, b| a < b) && picked.contains(&4321));
        assert_eq!(picked.len(), 451);
        assert!(RowSample::sample(&costs, &[4321], 1_000_900).iter().eq(picked));
        assert_eq!(RowSample::sample(&costs, &[4321], u64::MAX).len(), SAMPLE);
        assert!(RowSample::sample(&costs[..1000], &[0], u64::MAX).is_all());
    }
}
