//! Numbers that analysis of `row` counts: the elements of its lists ([`super::schedule`]) and the distances of
//! the entries from the diagonal ([`super::reach`]). They are enqueued together, and come back on one page.

use super::reach;
use super::schedule::{Counting, Lengths, Schedule};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::memory::Readback;
use crate::backend::cuda::operand::Rows;
use crate::error::Result;
use crate::select::spmm::reach::Reach;

/// Counts that have been enqueued, and their numbers once they have been read.
pub(super) struct RowCounts {
    /// `None` if rows need no lists.
    counting: Option<Counting>,
    numbers: Vec<u64>,
}

impl RowCounts {
    /// Number of words of a readback page that the counts take.
    pub(super) const WORDS: usize = Counting::WORDS + reach::WORDS;

    /// Enqueues the counts, to the words of a page from `at` on. The pattern may be invalid.
    pub(super) fn enqueue(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        lengths: Lengths,
        (words, at): (&Readback, usize),
        overlap: &Overlap,
    ) -> Result<Self> {
        reach::enqueue(cx, rows, words.at(at + Counting::WORDS), overlap)?;
        let counting = Counting::enqueue(cx, rows, lengths, words.at(at), overlap)?;
        Ok(RowCounts { counting, numbers: Vec::new() })
    }

    /// Takes the numbers from the page's words, which the caller has waited for.
    pub(super) fn read(&mut self, words: &[u64], at: usize) {
        self.numbers = words[at..][..RowCounts::WORDS].to_vec();
    }

    /// Makes the lists of rows that are valid, of which the longest has so many entries.
    pub(super) fn fill(self, cx: &DeviceCall<'_>, rows: &Rows, longest: i64) -> Result<(Schedule, Reach)> {
        let (lengths, distances) = self.numbers.split_at(Counting::WORDS);
        let schedule = match self.counting {
            Some(counting) => counting.fill(cx, rows, lengths)?,
            None => Schedule::without_lists(rows, longest)?,
        };
        Ok((schedule, reach::of(cx, rows, longest, distances)))
    }
}
