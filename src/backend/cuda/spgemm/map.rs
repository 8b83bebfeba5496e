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
use crate::backend::cuda::memory::{self, optional, DeviceBuffer, Readback};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spgemm::map::{fits, have_few, lanes, pays, LONG_ROW};
use crate::select::spgemm::wide::Cut;
use crate::types::Address;

/// Lists of products.
pub struct Map {
    /// Where the list of each entry ends.
    ends: DeviceBuffer<u32>,
    /// Positions in the left and in the right factor, 32 bits each; the highest of the former says where another part of
    /// a row begins.
    pairs: DeviceBuffer<u64>,
    /// There are such rows.
    has_parts: bool,
    /// The kernel for it.
    kernel: Name,
}

/// What a map is made of.
pub struct Known<'a> {
    pub left: &'a Rows,
    pub right: &'a Rows,
    /// Lanes of the team that makes the lists of a row.
    pub lanes: i32,
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
    /// Bytes of the map; `None`: positions do not fit it.
    pub fn bytes(&self) -> Option<u64> {
        // The kernel goes through them 128 at a time in 32 bits.
        let most = i64::from(u32::MAX) - 1024;
        let fits = self.left.nnz <= i64::from(i32::MAX) && self.right.nnz <= most && self.products.1 <= most;
        fits.then(|| 8 * self.products.1 as u64 + 4 * self.offsets.1 as u64)
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
    /// Makes it. Columns of a row of the right factor are distinct. Blocks.
    pub fn make(cx: &Context, device: &Arc<Device>, kernels: &Kernels, known: &Known<'_>) -> Result<Self> {
        let Known {
            left, right, lanes, products: (products, all), offsets: (offsets, entries), columns, ..
        } = *known;
        let rows = left.rows;
        let has_parts = known.in_parts.is_some();
        let kernel = match !has_parts && have_few(all, entries) {
            true => Name::MapMultiplyFew,
            false => Name::MapMultiply,
        };
        let map = Map {
            ends: DeviceBuffer::new(cx, entries as usize)?,
            pairs: DeviceBuffer::new(cx, all as usize)?,
            has_parts,
            kernel,
        };
        let before = DeviceBuffer::<i64>::new(cx, rows as usize)?;
        let list = DeviceBuffer::<u32>::new(cx, (all / LONG_ROW) as usize)?;
        // Numeric phases only launch it.
        kernels.get(kernel)?;
        let blocks = (rows as u64).div_ceil(256 / lanes as u64);
        let marks = known.rows_in_parts(cx, device, kernels)?;
        let in_parts = marks.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let part = known.in_parts.map_or(0, |(.., cut)| cut.part);
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
        // SAFETY: the patterns have been validated, C's is theirs, and there is a place for each
        // entry and each product.
        unsafe {
            launch!(kernels.get(Name::MapMakeLong)?, long, 512, 0, cx.stream;
                left, right, list.address(), before.address(), in_parts, part, offsets, columns,
                map.ends.address(), map.pairs.address())?;
            launch!(kernels.get(Name::MapMake)?, blocks as u32, 256, 0, cx.stream;
                left, right, products, rows, before.address(), in_parts, part, offsets, columns, lanes,
                map.ends.address(), map.pairs.address())?;
        }
        Ok(map)
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
        let blocks = (entries as u64).div_ceil(256).min(i32::MAX as u64) as u32;
        // SAFETY: positions are those of values, C has been checked, or is the plan's, and has a
        // place for each entry.
        unsafe {
            launch!(kernels.get(self.kernel)?, blocks, 256, 0, cx.stream;
                left_values, right_values, alpha, self.ends.address(), self.pairs.address(),
                i32::from(self.has_parts), columns, entries, *output)
        }
    }

    /// The stream has been waited for.
    pub fn seal(&mut self) {
        self.ends.seal();
        self.pairs.seal();
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
            lanes: lanes(self.part),
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
        match known.bytes() {
            Some(bytes)
                if self.facts.distinct
                    && pays(bytes, c, factors)
                    && fits(bytes, memory::room(cx)? as u64) =>
            {
                optional(Map::make(cx, &self.device, &self.kernels, &known))
            }
            _ => Ok(None),
        }
    }
}
