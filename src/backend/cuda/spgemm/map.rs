//! Map of a product whose pattern is known: for each entry of C, the positions of the factors of its products
//! (kernels/spgemm/map.cu). With it, numeric phases need not search for the entry that a product is added to.

use super::bins::RowBin;
use super::kernels::Name;
use super::rows::{Factor, Ints, Kernels, Output};
use super::{Counted, CudaSpgemm};
use crate::backend::cuda::check;
use crate::backend::cuda::convert::device_wide::exclusive_scan;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, filled_members, optional, DeviceBuffer, Readback};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::memory::Context;
use crate::select::spgemm::map::{fits, have_few, lanes, pays, LONG_ROW};
use crate::select::spgemm::wide::Cut;
use crate::types::Address;

/// Lists of the products of each entry of C, in the device's memory.
pub struct Map {
    /// End of each entry's list in `pairs`.
    ends: DeviceBuffer<u32>,
    /// Positions of a product's factors in the left and in the right factor, 32 bits each. The highest bit of
    /// the former is set if the product is the first of another piece of a split row.
    pairs: DeviceBuffer<u64>,
    /// True if some rows are split.
    has_parts: bool,
    /// Kernel that multiplies with this map.
    kernel: Name,
}

/// Inputs from which a map is made.
pub struct Known<'a> {
    pub left: &'a Rows,
    pub right: &'a Rows,
    /// Number of lanes of the team that makes the lists of a row.
    pub lanes: i32,
    /// Number of products of each row (in the device's memory), and of all rows.
    pub products: (Address, i64),
    /// Row offsets of C, and the last of them.
    pub offsets: (Address, i64),
    /// Column indices of C, base 0, ascending in each row.
    pub columns: Ints,
    /// List of the rows that are split if they are long enough, their number, and the limits for splitting;
    /// `None` if no row is split.
    pub in_parts: Option<(Address, i64, Cut)>,
}

impl Known<'_> {
    /// Returns the bytes of the map; `None` if some positions do not fit into its elements.
    pub fn bytes(&self) -> Option<u64> {
        // The kernel advances its 32-bit positions by 128 at a time, which must not overflow.
        let most = i64::from(u32::MAX) - 1024;
        let fits = self.left.nnz <= i64::from(i32::MAX) && self.right.nnz <= most && self.products.1 <= most;
        fits.then(|| 8 * self.products.1 as u64 + 4 * self.offsets.1 as u64)
    }

    /// Returns a mark for each row that says whether it is split; `None` if no row is.
    fn rows_in_parts(&self, cx: &DeviceCall<'_>, kernels: &Kernels) -> Result<Option<DeviceBuffer<u8>>> {
        let Some((list, count, cut)) = self.in_parts else { return Ok(None) };
        let marks = DeviceBuffer::<u8>::zeroed(cx, self.left.rows as usize)?;
        // SAFETY: the list has `count` rows of the left factor.
        unsafe {
            launch!(kernels.get(Name::MapRowsInParts)?, check::blocks(cx.device, count), 256, 0, cx.stream;
                Factor::of(self.left), list, count, cut, marks.address())?;
        }
        Ok(Some(marks))
    }
}

impl Map {
    /// Makes the map. Rows of the right factor must have each column at most once. Blocks.
    pub fn make(cx: &DeviceCall<'_>, kernels: &Kernels, known: &Known<'_>) -> Result<Self> {
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
        // Loaded now, since numeric phases only launch.
        kernels.get(kernel)?;
        let blocks = (rows as u64).div_ceil(256 / lanes as u64);
        let marks = known.rows_in_parts(cx, kernels)?;
        let in_parts = marks.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let part = known.in_parts.map_or(0, |(.., cut)| cut.part);
        let mut words = Readback::take(cx)?;
        let (left, right) = (Factor::of(left), Factor::of(right));
        // SAFETY: `products` has an element for each row, and `list` one for each row that can have LONG_ROW
        // products.
        unsafe {
            exclusive_scan(cx, products, before.address(), rows as usize)?;
            launch!(kernels.get(Name::MapLongRows)?, check::blocks(cx.device, rows), 256, 0, cx.stream;
                products, rows, list.address(), words.at(0))?;
        }
        words.fetch(cx, 1)?;
        let long = words.wait(cx)?[0] as u32;
        // SAFETY: the patterns have been validated, C's is that of their product, and the map has an element
        // for each entry and each product.
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

    /// Writes column indices and values of C. Only launches.
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
        // SAFETY: the positions are within the value arrays, and C has been checked, or is the plan's own,
        // and has room for each entry.
        unsafe {
            launch!(kernels.get(self.kernel)?, blocks, 256, 0, cx.stream;
                left_values, right_values, alpha, self.ends.address(), self.pairs.address(),
                i32::from(self.has_parts), columns, entries, *output)
        }
    }
}
filled_members!(Map { ends, pairs });

impl CudaSpgemm {
    /// Makes the map of the product, if it is worth its memory and there is enough. `wide_apart` says that
    /// the wide rows were processed by windows.
    pub(super) fn map(
        &self,
        cx: &DeviceCall<'_>,
        counted: &Counted,
        wide_apart: bool,
        columns: Ints,
    ) -> Result<Option<Map>> {
        let (left, right) = self.factors();
        let statistics = self.statistics.at();
        let has_parts = counted.wide.as_ref().is_some_and(|wide| wide.has_parts(&statistics));
        if has_parts && !wide_apart {
            // There was no memory for partial sums, but later phases may have it, whose sums have other bits.
            return Ok(None);
        }
        let (list, count) = counted.binned.bin(RowBin::DenseWindows.bins().start);
        let known = Known {
            left: &left,
            right: &right,
            lanes: lanes(self.part),
            in_parts: has_parts.then_some((list, count, statistics.cut)),
            products: (statistics.products, self.products),
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
                if self.statistics.distinct
                    && pays(bytes, c, factors)
                    && fits(bytes, memory::room(cx)? as u64) =>
            {
                optional(Map::make(cx, &self.kernels, &known))
            }
            _ => Ok(None),
        }
    }
}
