//! How C by columns comes of its rows on a device, or its rows of its columns, in the memory that a product may take: by one
//! sort of all entries, or part by part.

use crate::types::IndexType;

/// Bytes that a product may take beside the bound: sorts of up to some hundred thousand entries
/// are made of launches, and cutting them would only make more.
pub const SLACK: usize = 16 << 20;
/// Parts that staged rows are cut into at the most, where memory allows it: each looks at all
/// columns, and takes some 20 launches.
const MOST_PARTS: usize = 256;

/// Rows that become columns.
#[derive(Clone, Copy, Debug)]
pub struct Staging {
    /// Type of the columns that are computed.
    pub index: IndexType,
    /// Bytes of a value.
    pub value: usize,
    /// Columns of the rows.
    pub cols: i64,
    /// Entries of all rows.
    pub entries: usize,
}

/// How they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All rows are in the plan's memory, and are sorted at one time.
    Whole,
    /// All rows are there, and are sorted part by part.
    Staged,
    /// Rows are computed part by part.
    Parts,
}

impl Staging {
    /// Bytes of a key, a column.
    fn key(&self) -> usize {
        if i32::try_from(self.cols).is_ok() {
            4
        } else {
            8
        }
    }

    /// Bytes of an entry that is staged.
    pub fn staged(&self) -> usize {
        self.index.size() + self.value
    }

    /// Bytes of an entry that is sorted, in parts: both are there twice.
    fn sorted(&self) -> usize {
        2 * (self.key() + 4)
    }

    /// Entries of a part of staged rows at the least, where memory allows it.
    pub fn least(&self) -> usize {
        self.entries / MOST_PARTS
    }

    /// Entries of a part that is sorted in so many bytes, where each takes `more` besides.
    pub fn most(&self, room: usize, more: usize) -> usize {
        // Arrays of the columns; and some memory is left to sorts and to those who compute.
        let fixed = 2 * 8 * (self.cols as usize + 1);
        let entries = room.saturating_sub(fixed) / 8 * 7 / (self.sorted() + more);
        entries.min(u32::MAX as usize).min(self.entries)
    }

    /// In so many bytes.
    pub fn way(&self, room: usize) -> Way {
        let position = if u32::try_from(self.entries).is_ok() { 4 } else { 8 };
        // And a byte for what a sort takes besides.
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
