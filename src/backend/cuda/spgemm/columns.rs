//! C by columns where its rows were computed, or by rows where its columns
//! were: a stable sort of the entries by column.

use super::rows::{Ints, Kernels};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide::{sort_pairs, Narrow, Pair, Wide, WideKeys};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::Context;
use crate::error::Result;
use crate::matrix::Compressed;
use crate::types::{Address, IndexType};

/// Positions of the entries of a pattern, by column and then row.
pub struct Transposition {
    from: Positions,
    /// cols + 1 offsets of the columns, base 0.
    offsets: DeviceBuffer<i64>,
    entries: usize,
}

/// 32 bits where they number the entries.
enum Positions {
    Narrow(DeviceBuffer<u32>),
    Wide(DeviceBuffer<u64>),
}

impl Transposition {
    /// Of a pattern with these columns, base 0, in the order of the rows. Blocks;
    /// needs twice the memory of a key and a position for each entry.
    pub fn new(
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
        columns: Ints,
        entries: usize,
        cols: i64,
    ) -> Result<Self> {
        let offsets = DeviceBuffer::<i64>::new(cx, cols as usize + 1)?;
        let sorter = Sorter { cx, device, kernels, columns, entries, cols, offsets: offsets.address() };
        let from = match (i32::try_from(cols), u32::try_from(entries)) {
            (Ok(_), Ok(_)) => Positions::Narrow(sorter.sort::<Narrow>()?),
            (_, Ok(_)) => Positions::Narrow(sorter.sort::<WideKeys>()?),
            _ => Positions::Wide(sorter.sort::<Wide>()?),
        };
        Ok(Transposition { from, offsets, entries })
    }

    /// Writes C from rows with these offsets and values of so many bytes.
    pub fn write(
        &self,
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
        (row_offsets, rows): (&DeviceBuffer<i64>, i64),
        (values, value_bytes): (Address, usize),
        c: &Compressed,
    ) -> Result<()> {
        let wide = |index: IndexType| i64::from(index == IndexType::I64);
        let base = i64::from(c.base.code());
        let (count, entries) = (self.offsets.len() as i64, self.entries as i64);
        let (from, wide_from) = match &self.from {
            Positions::Narrow(from) => (from.address(), 0_i64),
            Positions::Wide(from) => (from.address(), 1),
        };
        let words = (value_bytes / 4) as i32;
        // SAFETY: C has room for the offsets and entries, by its descriptor;
        // positions are less than the number of values.
        unsafe {
            if !c.offsets.is_null() {
                launch!(kernels.write_offsets, blocks(device, count), 256, 0, cx.stream;
                    self.offsets.address(), count, c.offsets, wide(c.offset_type), base)?;
            }
            launch!(kernels.transpose, blocks(device, entries), 256, 0, cx.stream;
                from, wide_from, entries, row_offsets.address(), rows, values, words, c.indices,
                wide(c.index_type), base, c.values)
        }
    }

    /// The stream has been waited for.
    pub fn seal(&mut self) {
        self.offsets.seal();
        match &mut self.from {
            Positions::Narrow(from) => from.seal(),
            Positions::Wide(from) => from.seal(),
        }
    }
}

struct Sorter<'a> {
    cx: &'a Context,
    device: &'a Device,
    kernels: &'a Kernels,
    columns: Ints,
    entries: usize,
    cols: i64,
    offsets: Address,
}

impl Sorter<'_> {
    /// The positions; fills the offsets.
    fn sort<P: Pair>(&self) -> Result<DeviceBuffer<P::Position>> {
        let &Sorter { cx, device, kernels, columns, entries, cols, offsets } = self;
        let count = entries as i64;
        let keys = [DeviceBuffer::<P::Key>::new(cx, entries)?, DeviceBuffer::new(cx, entries)?];
        let positions = [DeviceBuffer::<P::Position>::new(cx, entries)?, DeviceBuffer::new(cx, entries)?];
        let (wide_key, wide_position) = (size_of::<P::Key>() == 8, size_of::<P::Position>() == 8);
        // SAFETY: every array has an element for each entry.
        unsafe {
            launch!(kernels.sort_input, blocks(device, count), 256, 0, cx.stream;
                columns, count, keys[0].address(), i64::from(wide_key), positions[0].address(),
                i64::from(wide_position))?;
        }
        let bits = 64 - (cols.max(2) as u64 - 1).leading_zeros();
        let sorted =
            sort_pairs::<P>(cx, [&keys[0], &keys[1]], [&positions[0], &positions[1]], entries, bits)?;
        let index = if wide_key { IndexType::I64 } else { IndexType::I32 };
        let sorted_keys = Ints::new(keys[sorted].address(), index);
        // SAFETY: there are cols + 1 offsets.
        unsafe {
            launch!(kernels.column_offsets, blocks(device, cols + 1), 256, 0, cx.stream;
                sorted_keys, count, cols, offsets)?;
        }
        let [first, second] = positions;
        Ok(if sorted == 0 { first } else { second })
    }
}
