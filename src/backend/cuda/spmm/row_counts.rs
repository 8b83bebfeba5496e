//! Numbers that analysis of `row` counts: the elements of its lists ([`super::schedule`]) and the distances of
//! the entries from the diagonal ([`super::reach`]). They are enqueued together, and come back on one page.

use super::reach;
use super::schedule::{Counting, Lengths, Schedule};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::memory::{DeviceBuffer, Readback};
use crate::backend::cuda::operand::Rows;
use crate::error::Result;
use crate::select::spmm::reach::Reach;

/// Memory for the counts, and their numbers once they have been read.
pub(super) struct RowCounts {
    /// `None` if rows need no lists.
    counting: Option<Counting>,
    numbers: Vec<u64>,
}

impl RowCounts {
    /// Number of words of a readback page that the counts take.
    pub(super) const WORDS: usize = Counting::WORDS + reach::WORDS;

    /// Allocates what the counts need, before the first kernel of the overlap: an allocator of the user's may give
    /// memory in the order of the stream.
    pub(super) fn new(cx: &DeviceCall<'_>, rows: &Rows, lengths: Lengths) -> Result<Self> {
        Ok(RowCounts { counting: Counting::new(cx, rows, lengths)?, numbers: Vec::new() })
    }

    /// Enqueues the counts, to the words of a page from `at` on. The pattern may be invalid.
    pub(super) fn enqueue(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        (words, at): (&Readback, usize),
        overlap: &Overlap,
    ) -> Result<()> {
        reach::enqueue(cx, rows, words.at(at + Counting::WORDS), overlap)?;
        match &self.counting {
            Some(counting) => counting.enqueue(cx, rows, words.at(at), overlap),
            None => Ok(()),
        }
    }

    /// Takes the numbers from the page's words, which the caller has waited for.
    pub(super) fn read(&mut self, words: &[u64], at: usize) {
        self.numbers = words[at..][..RowCounts::WORDS].to_vec();
    }

    /// Makes the lists of rows that are valid, of which the longest has so many entries. Also returns memory that the
    /// kernel which has been enqueued reads.
    pub(super) fn fill(
        self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        longest: i64,
    ) -> Result<(Schedule, Reach, Option<DeviceBuffer<i64>>)> {
        let (lengths, distances) = self.numbers.split_at(Counting::WORDS);
        let (schedule, counts) = match self.counting {
            Some(counting) => {
                let (schedule, counts) = counting.fill(cx, rows, lengths)?;
                (schedule, Some(counts))
            }
            None => (Schedule::without_lists(rows, longest)?, None),
        };
        Ok((schedule, reach::of(cx, rows, longest, distances), counts))
    }
}
