//! A product whose pattern is known: the positions of the factors of every product, entry by entry
//! of C (kernels/spgemm/map.cu), so that a numeric phase looks nothing up.

use std::sync::Arc;

use super::bins::RowBin;
use super::kernels::Name;
use super::rows::{Factor, Ints, Kernels, Output};
use super::{Counted, CudaSpgemm};
use crate::backend::cuda::check;
use crate::backend::cuda::convert::device_wide::exclusive_scan;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::{self, optional, DeviceBuffer, Readback};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spgemm::map::{bits, bytes, fits, lanes, pays, LONG_LIST, LONG_ROW};
use crate::select::spgemm::wide::Cut;
use crate::types::Address;

/// Lists of products.
pub struct Map {
    /// Where the list of each entry of C ends.
    ends: DeviceBuffer<u32>,
    /// Where the entry's row of the left factor begins, and whether it is in parts.
    begins: DeviceBuffer<u32>,
    /// Where the row of the right factor begins that each entry of the left one meets.
    starts: DeviceBuffer<u32>,
    /// Where the factors of each product are in their rows.
    pairs: DeviceBuffer<u32>,
    /// Entries with long lists.
    long_lists: DeviceBuffer<u32>,
    /// How many these are.
    long_count: u32,
    shape: Shape,
}

/// How a product is kept in 32 bits.
#[derive(Clone, Copy)]
struct Shape {
    /// Bits of the place in the right factor's row.
    bits: i32,
    /// Entries of a part of a row that is cut.
    part: u32,
}

/// The kernels' `Map`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MapAt {
    ends: Address,
    begins: Address,
    starts: Address,
    pairs: Address,
    long_lists: Address,
    bits: i32,
    part: u32,
}
same_layout!(MapAt = "spgemm/map.cu Map" { ends, begins, starts, pairs, long_lists, bits, part });

/// What a map is made of.
pub struct Known<'a> {
    pub left: &'a Rows,
    pub right: &'a Rows,
    /// Entries of the longest row of each.
    pub longest: [i64; 2],
    /// Lanes that take a row of the right factor.
    pub part: i32,
    /// Products of each row, and of all.
    pub products: (Address, i64),
    /// Offsets of the rows of C, and the last of them.
    pub offsets: (Address, i64),
    /// Columns of C, base 0, ascending in each row.
    pub columns: Ints,
    /// Rows that are in parts where they are long enough, and how many; none: no row is.
    pub in_parts: Option<(Address, i64, Cut)>,
}

impl Known<'_> {
    /// Bytes of the map, and of a product's 32 bits those for the right factor; `None`: places do not fit it.
    pub fn needs(&self) -> Option<(u64, i32)> {
        let [products, entries, left] = [self.products.1, self.offsets.1, self.left.nnz];
        let fits = left <= i64::from(i32::MAX)
            && [products, entries, self.right.nnz].into_iter().all(|count| u32::try_from(count).is_ok());
        let bits = bits(self.longest).filter(|_| fits)?;
        Some((bytes(products as u64, entries as u64, left as u64), bits))
    }

    /// A mark for each row, where some are in parts.
    fn rows_in_parts(
        &self,
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
    ) -> Result<Option<DeviceBuffer<u8>>> {
        let Some((list, count, cut)) = self.in_parts else { return Ok(None) };
        let marks = DeviceBuffer::<u8>::zeroed(cx, self.left.rows as usize)?;
        // SAFETY: the list has so many rows of the left factor.
        unsafe {
            launch!(kernels.get(Name::MapRowsInParts)?, check::blocks(device, count), 256, 0, cx.stream;
                Factor::of(self.left), list, count, cut, marks.address())?;
        }
        Ok(Some(marks))
    }
}

impl Map {
    /// Makes it, with so many bits of [`Known::needs`]. Columns of a row of the right factor are distinct. Blocks.
    pub fn make(
        cx: &Context,
        device: &Arc<Device>,
        kernels: &Kernels,
        known: &Known<'_>,
        bits: i32,
    ) -> Result<Self> {
        let Known { left, right, products: (products, all), offsets: (offsets, entries), columns, .. } =
            *known;
        let rows = left.rows;
        let part = known.in_parts.map_or(u32::MAX, |(.., cut)| cut.part.min(i64::from(u32::MAX)) as u32);
        let mut map = Map {
            ends: DeviceBuffer::new(cx, entries as usize)?,
            begins: DeviceBuffer::new(cx, entries as usize)?,
            starts: DeviceBuffer::new(cx, left.nnz as usize)?,
            pairs: DeviceBuffer::new(cx, all as usize)?,
            long_lists: DeviceBuffer::new(cx, (all / LONG_LIST) as usize)?,
            long_count: 0,
            shape: Shape { bits, part },
        };
        let before = DeviceBuffer::<i64>::new(cx, rows as usize)?;
        let list = DeviceBuffer::<u32>::new(cx, (all / LONG_ROW) as usize)?;
        // Numeric phases only launch it.
        kernels.get(Name::MapMultiply)?;
        let lanes = lanes(known.part);
        let blocks = (rows as u64).div_ceil(256 / lanes as u64);
        let in_parts = known.rows_in_parts(cx, device, kernels)?;
        let marks = in_parts.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let mut words = Readback::take(cx, device)?;
        let (left, right) = (Factor::of(left), Factor::of(right));
        // SAFETY: there are `rows` counts of products, of which so many rows at the most have
        // LONG_ROW.
        unsafe {
            exclusive_scan(cx, products, before.address(), rows as usize)?;
            launch!(kernels.get(Name::MapLongRows)?, check::blocks(device, rows), 256, 0, cx.stream;
                products, rows, list.address(), words.at(0))?;
        }
        words.fetch(cx, 1)?;
        let long = words.wait(cx)?[0] as u32;
        let mut words = Readback::take(cx, device)?;
        // SAFETY: the patterns have been validated, C's is theirs, and there is a place for each
        // entry, each product, each entry of the left factor, and as many long lists as there can be.
        unsafe {
            launch!(kernels.get(Name::MapMakeLong)?, long, 512, 0, cx.stream;
                left, right, list.address(), before.address(), marks, offsets, columns, map.at(), words.at(0))?;
            launch!(kernels.get(Name::MapMake)?, blocks as u32, 256, 0, cx.stream;
                left, right, products, rows, before.address(), marks, offsets, columns, lanes, map.at(),
                words.at(0))?;
        }
        words.fetch(cx, 1)?;
        map.long_count = words.wait(cx)?[0] as u32;
        Ok(map)
    }

    /// For kernels.
    fn at(&self) -> MapAt {
        MapAt {
            ends: self.ends.address(),
            begins: self.begins.address(),
            starts: self.starts.address(),
            pairs: self.pairs.address(),
            long_lists: self.long_lists.address(),
            bits: self.shape.bits,
            part: self.shape.part,
        }
    }

    /// Columns and values of C. Only launches.
    pub fn multiply(
        &self,
        cx: &Context,
        kernels: &Kernels,
        (left_values, right_values): (Address, Address),
        alpha: Scalar,
        columns: Ints,
        output: &Output,
    ) -> Result<()> {
        let entries = self.ends.len() as i64;
        // Warps take the long lists.
        let long = self.long_count.div_ceil(256 / 32);
        let blocks = (entries as u64).div_ceil(256).min((i32::MAX as u32 - long).into()) as u32;
        // SAFETY: places are those of values, C has been checked, or is the plan's, and has a
        // place for each entry.
        unsafe {
            launch!(kernels.get(Name::MapMultiply)?, long + blocks, 256, 0, cx.stream;
                left_values, right_values, alpha, self.at(), self.long_count, columns, entries, *output)
        }
    }

    /// The stream has been waited for.
    pub fn seal(&mut self) {
        for array in
            [&mut self.ends, &mut self.begins, &mut self.starts, &mut self.pairs, &mut self.long_lists]
        {
            array.seal();
        }
    }
}

impl CudaSpgemm {
    /// Where the factors of each product are, if that is worth its memory and there is as much. `wide_apart`: the wide
    /// rows have been taken by windows.
    pub(super) fn map(
        &self,
        cx: &Context,
        counted: &Counted,
        wide_apart: bool,
        columns: Ints,
    ) -> Result<Option<Map>> {
        let (left, right) = self.factors();
        let facts = self.facts.at();
        let has_parts = counted.wide.as_ref().is_some_and(|wide| wide.has_parts(&facts));
        if has_parts && !wide_apart {
            // Memory was missing for sums of parts, which later phases may have.
            return Ok(None);
        }
        let (list, count) = counted.binned.bin(RowBin::DenseWindows.bins().start);
        let known = Known {
            left: &left,
            right: &right,
            longest: self.longest,
            part: self.part,
            in_parts: has_parts.then_some((list, count, facts.cut)),
            products: (facts.products, self.products),
            offsets: (counted.offsets.address(), counted.nnz),
            columns,
        };
        let index = right.index_type.size() as u64;
        let types = self.problem.types;
        let c = counted.nnz as u64 * (types.y.size() as u64 + index);
        let (a_entry, b_entry) = (types.a.size() as u64 + index, types.x.size() as u64 + index);
        let factors = left.nnz as u64 * a_entry + right.nnz as u64 * b_entry;
        match known.needs() {
            Some((bytes, bits))
                if self.facts.distinct
                    && pays(bytes, c, factors)
                    && fits(bytes, memory::room(cx)? as u64) =>
            {
                optional(Map::make(cx, &self.device, &self.kernels, &known, bits))
            }
            _ => Ok(None),
        }
    }
}
