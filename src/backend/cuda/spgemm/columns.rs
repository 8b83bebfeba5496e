//! Transposition of a computed product: C by columns if its rows were computed, or by rows if its columns
//! were. The entries are sorted stably by column: all at one time, or some rows after the others if that
//! would take more memory than a product may take ([`allowance`]) or than there is. The rows are computed
//! twice only if there is no memory to stage all of them either.

use std::ops::Range;

use super::kernels::Name;
use super::rows::{Ints, Kernels};
use super::target;
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{scan, sort_pairs, sorted, Narrow, Pair, Wide, WideKeys};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, filled_members, DeviceBuffer, Numbers};
use crate::error::Result;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpgemmProblem;
use crate::select::spgemm::columns::{Staging, SLACK};
use crate::types::{Address, IndexType};

/// Returns the bytes that a numeric phase may still allocate. With them, all of the library's live memory is
/// as large as C and the factors as the user stores them, plus [`SLACK`], so that the peak with C included is
/// at most twice that. It applies to plans that keep nothing for later values.
pub fn allowance(cx: &Context, problem: &SpgemmProblem, c: &Compressed) -> usize {
    let stored = |m: &Compressed| {
        let offsets = (m.major as usize + 1).saturating_mul(m.offset_type.size());
        let entry = m.index_type.size() + m.value_type.size();
        (m.nnz as usize).saturating_mul(entry).saturating_add(offsets)
    };
    let factor = |matrix: &SparseMatrix| match &matrix.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => stored(m),
        _ => 0,
    };
    let all = [stored(c), factor(&problem.a), factor(&problem.b), SLACK];
    let bound = all.into_iter().fold(0, usize::saturating_add);
    bound.saturating_sub(cx.allocator.live_bytes())
}

/// Permutation of the entries of a pattern from row order to column order.
pub struct Transposition {
    /// Positions of the entries in row order, sorted by column and then row; 32-bit if they fit.
    from: Numbers,
    /// Column offsets (cols + 1), base 0.
    offsets: DeviceBuffer<i64>,
    entries: usize,
}

impl Transposition {
    /// Sorts the entries of a pattern with these column indices (base 0, in row order) by column. Blocks.
    /// Takes memory for two keys and two positions per entry.
    pub fn new(
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        columns: Ints,
        entries: usize,
        cols: i64,
    ) -> Result<Self> {
        let offsets = DeviceBuffer::<i64>::new(cx, cols as usize + 1)?;
        let sorter = Sorter { cx, kernels, columns, entries, cols, offsets: offsets.address() };
        let from = match (i32::try_from(cols), u32::try_from(entries)) {
            (Ok(_), Ok(_)) => Numbers::Narrow(sorter.sort::<Narrow>()?),
            (_, Ok(_)) => Numbers::Narrow(sorter.sort::<WideKeys>()?),
            _ => Numbers::Wide(sorter.sort::<Wide>()?),
        };
        Ok(Transposition { from, offsets, entries })
    }

    /// Writes C from the values of the product in row order (`value_bytes` each) and its row offsets.
    pub fn write(
        &self,
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        (row_offsets, rows): (&DeviceBuffer<i64>, i64),
        (values, value_bytes): (Address, usize),
        c: &Compressed,
    ) -> Result<()> {
        let base = i64::from(c.base.code());
        let entries = self.entries as i64;
        let (from, wide_from) = (self.from.address(), i64::from(matches!(self.from, Numbers::Wide(_))));
        let words = (value_bytes / 4) as i32;
        target::write_offsets(cx, kernels, self.offsets.address(), c)?;
        // SAFETY: C has room for the entries, by its descriptor;
        // positions are less than the number of values.
        unsafe {
            launch!(kernels.get(Name::Transpose)?, blocks(cx.device, entries), 256, 0, cx.stream;
                from, wide_from, entries, row_offsets.address(), rows, values, words, c.indices,
                c.index_type.wide(), base, c.values)
        }
    }
}
filled_members!(Transposition { offsets, from });

/// Inputs of the sort of [`Transposition::new`].
struct Sorter<'a> {
    cx: &'a DeviceCall<'a>,
    kernels: &'a Kernels,
    columns: Ints,
    entries: usize,
    cols: i64,
    offsets: Address,
}

impl Sorter<'_> {
    /// Returns the sorted positions, and fills the column offsets.
    fn sort<P: Pair>(&self) -> Result<DeviceBuffer<P::Position>> {
        let &Sorter { cx, kernels, columns, entries, cols, offsets } = self;
        let count = entries as i64;
        let (wide_key, wide_position) = (size_of::<P::Key>() == 8, size_of::<P::Position>() == 8);
        let bits = 64 - (cols.max(2) as u64 - 1).leading_zeros();
        let (keys, positions) = sorted::<P>(cx, entries, bits, |keys, positions| {
            // SAFETY: every array has an element for each entry.
            unsafe {
                launch!(kernels.get(Name::SortInput)?, blocks(cx.device, count), 256, 0, cx.stream;
                    columns, count, keys, i64::from(wide_key), positions, i64::from(wide_position))
            }
        })?;
        let index = if wide_key { IndexType::I64 } else { IndexType::I32 };
        let sorted_keys = Ints::new(keys.address(), index);
        // SAFETY: there are cols + 1 offsets.
        unsafe {
            launch!(kernels.get(Name::ColumnOffsets)?, blocks(cx.device, cols + 1), 256, 0, cx.stream;
                sorted_keys, count, cols, offsets)?;
        }
        Ok(positions)
    }
}

/// Range of consecutive rows of C that are processed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Range of row numbers.
    pub rows: Range<usize>,
    /// Range of the positions of the rows' entries in C.
    pub entries: Range<i64>,
}

impl Part {
    /// Divides all rows into parts of up to `most` entries. A part begins at a multiple of `step`; the rows
    /// from one multiple to the next stay together, however many entries they have. `offsets` are the row
    /// offsets.
    pub fn cut(offsets: &[i64], step: usize, most: i64) -> Vec<Part> {
        let rows = offsets.len() - 1;
        let mut parts = Vec::<Part>::new();
        for begin in (0..rows).step_by(step) {
            let end = (begin + step).min(rows);
            match parts.last_mut() {
                Some(part) if offsets[end] - part.entries.start <= most => {
                    (part.rows.end, part.entries.end) = (end, offsets[end]);
                }
                _ => parts.push(Part { rows: begin..end, entries: offsets[begin]..offsets[end] }),
            }
        }
        parts
    }

    /// Returns the number of entries.
    pub fn count(&self) -> i64 {
        self.entries.end - self.entries.start
    }
}

/// Requested result of the computation of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Column indices only, to count the entries of each column.
    Pattern,
    /// Column indices and values.
    Product,
}

/// Function that computes the rows of a part. It writes the column index and value of each entry at the
/// entry's position in C, counted from the two addresses.
pub type Compute<'a> = dyn FnMut(&Part, Wanted, [Address; 2]) -> Result<()> + 'a;

/// Source of the rows that are transposed.
pub enum Origin<'a, 'f> {
    /// Column indices (base 0) and values of all rows, in the plan's memory.
    Staged([Address; 2]),
    /// Function that computes the rows part by part, with column indices of base 0. Each part is computed
    /// twice, since the number of entries of each column of C is known only after all parts.
    Computed(&'a mut Compute<'f>),
}

/// Transposition of the rows of a product into C, part by part.
pub struct ByParts<'a> {
    pub cx: &'a DeviceCall<'a>,
    pub kernels: &'a Kernels,
    pub rows: Staging,
    /// Row offsets of the product.
    pub offsets: &'a DeviceBuffer<i64>,
    /// Parts begin at multiples of this number of rows.
    pub step: usize,
    /// Maximum number of bytes that the transposition may allocate.
    pub room: usize,
}

impl ByParts<'_> {
    /// Writes C, with smaller parts if memory is missing. Blocks.
    pub fn write(&self, c: &Compressed, mut origin: Origin<'_, '_>) -> Result<()> {
        let narrow = i32::try_from(self.rows.cols).is_ok();
        let host = self.offsets.read(0, self.offsets.len())?;
        let room = memory::room(self.cx)?.min(self.room);
        let (more, least) = match origin {
            Origin::Staged(_) => (0, self.rows.least()),
            Origin::Computed(_) => (self.rows.staged(), 0),
        };
        let mut most = self.rows.most(room, more).max(least) as i64;
        let cut = |most: i64| Part::cut(&host, self.step, most);
        loop {
            let parts = cut(most);
            let done = match narrow {
                true => self.write_parts::<Narrow>(c, &parts, &mut origin),
                false => self.write_parts::<WideKeys>(c, &parts, &mut origin),
            };
            match done {
                Err(error) if error.lacks_memory() => {
                    let smaller =
                        std::iter::successors(Some(most / 2), |&most| (most > 0).then_some(most / 2))
                            .find(|&most| cut(most) != parts);
                    most = smaller.ok_or(error)?;
                }
                done => return done,
            }
        }
    }

    fn write_parts<P: Pair<Position = u32>>(
        &self,
        c: &Compressed,
        parts: &[Part],
        origin: &mut Origin<'_, '_>,
    ) -> Result<()> {
        let &ByParts { cx, kernels, rows: Staging { index, value, cols, .. }, .. } = self;
        let most = parts.iter().map(Part::count).max().unwrap_or(0);
        if u32::try_from(most).is_err() {
            return Err(crate::error::Error::out_of_memory(usize::MAX));
        }
        let most = most as usize;
        let base = i64::from(c.base.code());
        let wide_key = size_of::<P::Key>() == 8;
        let key_type = if wide_key { IndexType::I64 } else { IndexType::I32 };
        let bits = 64 - (cols.max(2) as u64 - 1).leading_zeros();
        // Position at which each column of C continues, and start of each column in the sorted part.
        let places = DeviceBuffer::<i64>::zeroed(cx, cols as usize + 1)?;
        let starts = DeviceBuffer::<i64>::new(cx, cols as usize + 1)?;
        let computed = if matches!(origin, Origin::Computed(_)) { most } else { 0 };
        let columns = DeviceBuffer::<u8>::new(cx, computed * index.size())?;
        let values = DeviceBuffer::<u8>::new(cx, computed * value)?;
        let keys = [DeviceBuffer::<P::Key>::new(cx, most)?, DeviceBuffer::new(cx, most)?];
        let positions = [DeviceBuffer::<u32>::new(cx, most)?, DeviceBuffer::new(cx, most)?];
        // Provides the columns and values of a part, and returns their addresses.
        let mut take = |part: &Part, wanted: Wanted| -> Result<[Address; 2]> {
            let first = part.entries.start as usize;
            match origin {
                Origin::Staged([columns, values]) => {
                    Ok([columns.offset(first * index.size()), values.offset(first * value)])
                }
                Origin::Computed(compute) => {
                    let (columns, values) = (columns.address(), values.address());
                    let arrays = [columns.rebased(first * index.size()), values.rebased(first * value)];
                    compute(part, wanted, arrays)?;
                    Ok([columns, values])
                }
            }
        };
        let count_columns = |columns: Address, count: i64| -> Result<()> {
            let found = Ints::new(columns, index);
            // SAFETY: there are `count` column indices, and `places` has an element for each column.
            unsafe {
                launch!(kernels.get(Name::ColumnCounts)?, blocks(cx.device, count), 256, 0, cx.stream;
                    found, count, places.address())
            }
        };
        for part in parts.iter().filter(|part| part.count() > 0) {
            let [columns, _] = take(part, Wanted::Pattern)?;
            count_columns(columns, part.count())?;
        }
        scan(cx, &places)?;
        target::write_offsets(cx, kernels, places.address(), c)?;
        for part in parts.iter().filter(|part| part.count() > 0) {
            let [columns, values] = take(part, Wanted::Product)?;
            let (found, count) = (Ints::new(columns, index), part.count());
            // SAFETY: every array has an element for each entry of the part.
            unsafe {
                launch!(kernels.get(Name::SortInput)?, blocks(cx.device, count), 256, 0, cx.stream;
                    found, count, keys[0].address(), i64::from(wide_key), positions[0].address(), 0_i64)?;
            }
            let pairs = [&positions[0], &positions[1]];
            let sorted = sort_pairs::<P>(cx, [&keys[0], &keys[1]], pairs, count as usize, bits)?;
            let sorted_keys = Ints::new(keys[sorted].address(), key_type);
            let (rows, first) = (part.rows.len() as i64, part.rows.start);
            // SAFETY: `starts` has an element for each column and one more, and C has room for the entries
            // that were counted for each column, by its descriptor; positions are within the part.
            unsafe {
                launch!(kernels.get(Name::ColumnOffsets)?, blocks(cx.device, cols + 1), 256, 0, cx.stream;
                    sorted_keys, count, cols, starts.address())?;
                launch!(kernels.get(Name::TransposePart)?, blocks(cx.device, count), 256, 0, cx.stream;
                    positions[sorted].address(), sorted_keys, count, starts.address(), places.address(),
                    self.offsets.at(first), rows, part.entries.start, values, (value / 4) as i32,
                    c.indices, c.index_type.wide(), base + first as i64, c.values)?;
                launch!(kernels.get(Name::Advance)?, blocks(cx.device, cols), 256, 0, cx.stream;
                    starts.address(), cols, places.address())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Part;

    #[test]
    fn parts_have_all_rows_once() {
        let offsets = [0, 5, 5, 9, 30, 31, 31, 40];
        for step in 1..9 {
            for most in 0..45 {
                let parts = Part::cut(&offsets, step, most);
                assert_eq!(parts[0].rows.start, 0);
                assert_eq!(parts.last().map(|part| part.rows.end), Some(7));
                assert!(parts.windows(2).all(|two| two[0].rows.end == two[1].rows.start));
                for part in &parts {
                    assert_eq!(part.entries, offsets[part.rows.start]..offsets[part.rows.end]);
                    assert!(part.count() <= most || part.rows.len() <= step, "{part:?} {most} {step}");
                    assert_eq!(part.rows.start % step, 0);
                }
            }
        }
        assert!(Part::cut(&[0], 48, 10).is_empty());
    }
}
