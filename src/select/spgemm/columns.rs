//! Conversion of C from rows to columns, or from columns to rows, on a device within the memory that a
//! product may take: by one sort of all entries, or part by part.

use crate::types::IndexType;

/// Bytes that a product may take beyond the bound: sorts of up to some hundred thousand entries consist
/// mostly of launches, and cutting them would only add more.
pub const SLACK: usize = 16 << 20;
/// Maximum number of parts that staged rows are cut into, if memory allows: each part scans all columns, and
/// takes some 20 launches.
const MOST_PARTS: usize = 256;

/// Sizes of the rows that are converted to columns.
#[derive(Clone, Copy, Debug)]
pub struct Staging {
    /// Index type of the columns that are computed.
    pub index: IndexType,
    /// Bytes of a value.
    pub value: usize,
    /// Columns of the rows.
    pub cols: i64,
    /// Entries of all rows.
    pub entries: usize,
}

/// Way in which rows are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All rows are in the plan's memory, and are sorted in one pass.
    Whole,
    /// All rows are in the plan's memory, and are sorted part by part.
    Staged,
    /// Rows are computed, as well as sorted, part by part.
    Parts,
}

impl Staging {
    /// Bytes of a sort key, which is a column index.
    fn key(&self) -> usize {
        if i32::try_from(self.cols).is_ok() {
            4
        } else {
            8
        }
    }

    /// Bytes of a staged entry.
    pub fn staged(&self) -> usize {
        self.index.size() + self.value
    }

    /// Bytes of an entry during the sort of a part: key and position, each twice.
    fn sorted(&self) -> usize {
        2 * (self.key() + 4)
    }

    /// Minimum number of entries of a part of staged rows, if memory allows.
    pub fn least(&self) -> usize {
        self.entries / MOST_PARTS
    }

    /// Maximum number of entries of a part that can be sorted in `room` bytes, if each takes `more` bytes
    /// besides.
    pub fn most(&self, room: usize, more: usize) -> usize {
        // Fixed arrays of the columns; some memory is also left to the sort and to the kernels that compute.
        let fixed = 2 * 8 * (self.cols as usize + 1);
        let entries = room.saturating_sub(fixed) / 8 * 7 / (self.sorted() + more);
        entries.min(u32::MAX as usize).min(self.entries)
    }

    /// Way of conversion in `room` bytes.
    pub fn way(&self, room: usize) -> Way {
        let position = if u32::try_from(self.entries).is_ok() { 4 } else { 8 };
        // One byte an entry covers the other memory of a sort.
        let entry = self.staged() + 2 * (self.key() + position) + 1;
        let staged = self.entries.saturating_mul(self.staged());
        let columns = 8 * (self.cols as usize + 1);
        if self.entries.saturating_mul(entry).saturating_add(columns) <= room {
            return Way::Whole;
        }
        let left = room.checked_sub(staged);
        match left.is_some_and(|left| self.most(left, 0) >= self.least()) {
            true => Way::Staged,
            false => Way::Parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_memory_smaller_parts() {
        let staging = Staging { index: IndexType::I32, value: 8, cols: 1000, entries: 1_000_000 };
        let (mut ways, mut most) = (Vec::new(), usize::MAX);
        for room in (0..32_000_000).rev().step_by(10_000) {
            let way = staging.way(room);
            if ways.last() != Some(&way) {
                ways.push(way);
            }
            let part = staging.most(room, 0);
            assert!(part <= most && part <= staging.entries && part * staging.sorted() <= room);
            most = part;
        }
        assert_eq!(ways, [Way::Whole, Way::Staged, Way::Parts]);
        assert_eq!(staging.way(12_000_000 + 60_000), Way::Parts);
        assert_eq!(staging.way(12_000_000 + 100_000), Way::Staged);
        assert_eq!(staging.way(usize::MAX), Way::Whole);
        let wide = Staging { cols: i64::MAX / 32, entries: 1 << 33, ..staging };
        assert_eq!(wide.way(usize::MAX), Way::Whole);
    }
}
