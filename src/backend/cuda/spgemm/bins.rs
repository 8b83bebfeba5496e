//! Statistics of the rows of a product, and the bins of rows, each of which one launch processes.

use super::kernels::Name;
use super::rows::{Factor, Ints, Kernels, DISTINCT, SORTED};
use super::small::SmallBins;
use super::wide;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::{kernel_structs, same_layout};
use crate::backend::cuda::memory::{self, filled_members, optional, DeviceBuffer, Fill, Readback};
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::error::Result;
use crate::memory::Context;
use crate::operation::too_many_products;
use crate::select::grids;
use crate::select::spgemm::bins::stride;
pub use crate::select::spgemm::bins::{Bins, GROUP_CUT, GROUP_SPAN};
use crate::select::spgemm::row_structures::{
    alone_work, RowStructures, ALONE_WORK, EXTENT_PRODUCTS, GROUP_WORK, SHIFTED_RUN_PRODUCTS,
};
use crate::select::spgemm::rows::{lanes, slices_of_statistics};
use crate::select::spgemm::wide::{in_long_rows, Cut};
use crate::types::Address;
use std::ops::Range;

include!(concat!(env!("OUT_DIR"), "/row_bins.rs"));

impl Bins {
    /// Returns the numbers of the bins of this kind that are used.
    pub fn of(&self, kind: RowBin) -> Range<usize> {
        let all = kind.bins();
        let used = match kind {
            RowBin::Table => self.count,
            RowBin::SamePattern => self.groups,
            RowBin::ShiftedPattern => self.shifted_runs,
            RowBin::BlockTable => self.blocks,
            RowBin::Bitmap | RowBin::DenseWindows | RowBin::ScaledRow => all.len() as i64,
        };
        all.start..all.start + used as usize
    }

    /// Returns the limit of a bin: the maximum number of entries of a row, or of products in the symbolic
    /// phase; for [`RowBin::SamePattern`] the maximum column range of a group, or its bytes in the numeric
    /// phase.
    pub fn limit(&self, kind: RowBin, bin: usize) -> u32 {
        let at = bin - kind.bins().start;
        (match kind {
            RowBin::Table => self.limits[at],
            RowBin::SamePattern => self.group_limits[at],
            RowBin::ShiftedPattern => self.shifted_run_limits[at],
            RowBin::BlockTable => self.block_limits[at],
            RowBin::Bitmap | RowBin::DenseWindows | RowBin::ScaledRow => 0,
        }) as u32
    }

    /// Returns the largest limit of the bins of a kind.
    pub fn largest(&self, kind: RowBin) -> u32 {
        self.of(kind).map(|bin| self.limit(kind, bin)).max().unwrap_or(0)
    }
}

kernel_structs! {
    /// Addresses and limits of the row statistics; the kernels' `RowStatistics`.
    pub struct ProductRowStatsAt = "spgemm/rows.cu RowStatistics" {
        pub products: Address,
        pub lows: Address,
        pub spans: Address,
        pub groups: Address,
        pub shifted_runs: Address,
        group_work: i64,
        alone_work: i64,
        /// Low and high halves of the sum of all multiplications, from which the kernels compute a higher limit
        /// than `alone_work`; NULL if `alone_work` is final.
        totals: Address,
        wide: i64,
        /// Row offsets of the left factor, if its rows with one entry have bins of their own.
        pub left: Ints,
        pub cut: Cut,
    }
}

impl ProductRowStatsAt {
    /// Returns the statistics of the rows from `row` on, which must be a multiple of [`GROUP_CUT`].
    pub fn after(self, row: usize) -> Self {
        debug_assert!(row % GROUP_CUT == 0);
        let at = |array: Address, size: usize| match array.is_null() {
            true => array,
            false => array.offset(row * size),
        };
        ProductRowStatsAt {
            products: at(self.products, 8),
            lows: at(self.lows, 8),
            spans: at(self.spans, 8),
            groups: at(self.groups, 1),
            // A shifted run may cross `row`, so its rows are processed one by one.
            shifted_runs: Address::NULL,
            left: self.left.after(row),
            ..self
        }
    }
}

same_layout!(Bins = "spgemm/rows.cu Bins" { limits, count, few, medium, group_limits, groups, value, tiny, shifted_run_limits, shifted_runs, block_limits, blocks });
same_layout!(Cut = "spgemm/common.cuh Cut" { longest, part });

/// Statistics of each row of the product, in the device's memory.
pub struct ProductRowStats {
    /// Number of multiplications of each row.
    products: DeviceBuffer<i64>,
    /// First column, and width, of the column range of each row that has many products.
    extents: Option<[DeviceBuffer<i64>; 2]>,
    /// Number of rows of the group that begins with each row.
    groups: Option<DeviceBuffer<u8>>,
    /// Marks of the rows of the right factor that have the same columns as the row before.
    repeats: Option<DeviceBuffer<u8>>,
    /// Number of rows of the shifted run that begins with each row.
    shifted_runs: Option<DeviceBuffer<u8>>,
    /// True if wide rows may be computed in windows of columns ([`RowBin::DenseWindows`]).
    wide: bool,
    /// Maximum number of products of a row that a single warp takes.
    alone_work: i64,
    /// Limits for splitting wide rows.
    cut: Cut,
    /// Row offsets of the left factor.
    left: Ints,
    /// True if the rows of the right factor are sorted and have each column once.
    pub distinct: bool,
}

filled_members!(ProductRowStats { products, extents, groups, repeats, shifted_runs });

/// Word numbers of the readback page of the analysis.
mod word {
    use super::RowBin;
    /// Low and high halves of the multiplications.
    pub const PRODUCTS: usize = 0;
    /// Number of rows of each bin, and behind them the number of windows of wide rows.
    pub const COUNTS: usize = 2;
    /// Number of rows that have been written to each bin so far.
    pub const CURSORS: usize = COUNTS + RowBin::COUNT + 1;
    /// Number of words.
    pub const END: usize = CURSORS + RowBin::COUNT;
}

/// Runs kernel `spgemm_order` on rows whose order is unknown, and returns its flags. Blocks.
pub fn order_flags(cx: &DeviceCall<'_>, kernels: &Kernels, rows: &Rows, stats: &RowStats) -> Result<u32> {
    let mut words = Readback::take(cx)?;
    let multiprocessors = cx.device.properties().multiprocessors;
    let lanes = lanes(rows.rows, stats.mean(), multiprocessors);
    let blocks = grids::of_rows(rows.rows, lanes, multiprocessors);
    // SAFETY: the pattern has been validated; the page has a word of flags.
    unsafe {
        launch!(kernels.get(Name::Order)?, blocks, 256, 0, cx.stream;
            Factor::of(rows), rows.rows, lanes, words.at(0))?;
    }
    words.fetch(cx, 1)?;
    Ok(words.wait(cx)?[0] as u32)
}

impl ProductRowStats {
    /// Gathers statistics of the product's rows and sorts the rows into bins for the symbolic phase. Returns
    /// both, and the number of all multiplications. Blocks.
    pub fn new(
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        (left, left_stats): (&Rows, &RowStats),
        (right, right_stats): (&Rows, &RowStats),
        order: i32,
    ) -> Result<(ProductRowStats, Binned, i64)> {
        let rows = left.rows as usize;
        let distinct = order == SORTED | DISTINCT;
        let (left_mean, right_mean) = (left_stats.mean(), right_stats.mean());
        let of_left = (left.rows, left_stats.max, left_mean);
        let RowStructures { extents: searches_extents, groups: grouped, shifted_runs } =
            RowStructures::new(of_left, (right_stats.max, right_mean), distinct);
        let bytes = |count: i64| DeviceBuffer::<u8>::new(cx, count as usize);
        let products = DeviceBuffer::new(cx, rows)?;
        let list = Binned::list(cx, left.rows)?;
        // The structures below are searched for only if there is memory for them; `products` and `list` are
        // always needed.
        let extents = match searches_extents {
            true => optional(Self::extents(cx, rows))?,
            false => None,
        };
        let same = (left.offsets, left.indices, left.rows) == (right.offsets, right.indices, right.rows);
        // Numbers of rows of groups or shifted runs of C, and marks of the rows of the right factor, and of
        // the left one if it has another pattern.
        let marks = |wanted: bool| match wanted {
            true => optional(bytes(left.rows).and_then(|of_c| {
                let own = if same { None } else { Some(bytes(left.rows)?) };
                Ok((of_c, (bytes(right.rows)?, own)))
            })),
            false => Ok(None),
        };
        let (groups, repeats) = marks(grouped && extents.is_some())?.unzip();
        let (repeats, own) = repeats.unzip();
        let mut own = own.flatten();
        let (shifted_runs, mut shift_marks) = marks(shifted_runs)?.unzip();
        let [.., long, longer] = left_stats.longer;
        let mut statistics = ProductRowStats {
            products,
            wide: extents.is_some() && wide::is_possible(right),
            alone_work: ALONE_WORK,
            cut: Cut::new(
                in_long_rows(left.nnz, [long, longer], left_stats.max),
                left_stats.max,
                wide::windows(right),
            ),
            extents,
            groups,
            repeats,
            shifted_runs,
            left: Factor::of(left).offsets(),
            distinct,
        };
        let mut words = Readback::take(cx)?;
        let (left_factor, right_factor) = (Factor::of(left), Factor::of(right));
        let multiprocessors = cx.device.properties().multiprocessors;
        let [(left_lanes, left_blocks), (right_lanes, right_blocks)] =
            [(left.rows, left_mean), (right.rows, right_mean)].map(|(rows, mean)| {
                let lanes = lanes(rows, mean, multiprocessors);
                (lanes, grids::of_rows(rows, lanes, multiprocessors))
            });
        // Slices of a row add up its products by atomics, so their sum must not overflow.
        let slices = match left_stats.max.checked_mul(right_stats.max) {
            Some(_) => slices_of_statistics(left_blocks, left_stats.max, multiprocessors),
            None => 1,
        };
        // SAFETY: the patterns have been validated; `products`, `lows`, `spans`, `groups` and `shifted_runs`
        // have an element for each row of C, and there are two words for the sum; `repeats` and `shifts`
        // have one for each row of the factor that they are filled for or read with.
        unsafe {
            if slices > 1 {
                memory::zero(statistics.products.address(), statistics.products.bytes(), cx.stream)?;
            }
            launch!(kernels.get(Name::Products)?, (left_blocks, slices), 256, 0, cx.stream;
                left_factor, right_factor, left.rows, left_lanes, statistics.products.address(),
                words.at(word::PRODUCTS), SmallBins::NONE, Address::NULL)?;
            // Marks the rows of a factor that have the columns of the row before (`repeats`), or these shifted by one
            // (`shifts`).
            type Side = (Factor, i64, i32, u32);
            let mark_rows = |(factor, count, lanes, blocks): Side, repeats: Address, shifts: Address| launch!(kernels.get(Name::Repeats)?, blocks, 256, 0, cx.stream; factor, count, lanes, repeats, shifts);
            let address =
                |marks: Option<&DeviceBuffer<u8>>| marks.map_or(Address::NULL, DeviceBuffer::address);
            let repeats = address(statistics.repeats.as_ref());
            let shifts = address(shift_marks.as_ref().map(|(shifts, _)| shifts));
            let (mut repeats_of_left, mut shifts_of_left) = (repeats, shifts);
            if !repeats.is_null() || !shifts.is_null() {
                mark_rows((right_factor, right.rows, right_lanes, right_blocks), repeats, shifts)?;
                if !same {
                    repeats_of_left = address(own.as_ref());
                    shifts_of_left = address(shift_marks.as_ref().and_then(|(_, own)| own.as_ref()));
                    mark_rows(
                        (left_factor, left.rows, left_lanes, left_blocks),
                        repeats_of_left,
                        shifts_of_left,
                    )?;
                }
            }
            if let Some(groups) = &statistics.groups {
                launch!(kernels.get(Name::FindSamePatterns)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                    repeats_of_left, left.rows, groups.address())?;
            }
            if let Some(shifted_runs) = &statistics.shifted_runs {
                let groups = statistics.groups.as_ref().map_or(Address::NULL, DeviceBuffer::address);
                launch!(kernels.get(Name::FindShiftedPatterns)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                    left_factor, left.rows, statistics.products.address(), SHIFTED_RUN_PRODUCTS, shifts_of_left, shifts, groups,
                    shifted_runs.address())?;
            }
            if let Some([lows, spans]) = &statistics.extents {
                let shifted_runs =
                    statistics.shifted_runs.as_ref().map_or(Address::NULL, DeviceBuffer::address);
                if slices > 1 {
                    // Initial values of a minimum and of a maximum: a large number, and −1.
                    memory::fill(lows.address(), 0x7f, lows.bytes(), cx.stream)?;
                    memory::fill(spans.address(), 0xff, spans.bytes(), cx.stream)?;
                }
                launch!(kernels.get(Name::Extents)?, (left_blocks, slices), 256, 0, cx.stream;
                    left_factor, right_factor, left.rows, left_lanes, statistics.products.address(),
                    EXTENT_PRODUCTS, shifted_runs, lows.address(), spans.address())?;
                if slices > 1 {
                    launch!(kernels.get(Name::Spans)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                        left.rows, lows.address(), spans.address())?;
                }
            }
        }
        let binned = Binned::enqueue(
            cx,
            kernels,
            kernels.symbolic_bins(distinct),
            (ProductRowStatsAt { totals: words.at(word::PRODUCTS), ..statistics.at() }, left.rows),
            Address::NULL,
            &words,
            list,
        )?;
        words.fetch(cx, word::END)?;
        let found = words.wait(cx)?;
        let mut binned = binned.settle(found);
        binned.list.mark_filled();
        let products = u128::from(found[word::PRODUCTS]) + (u128::from(found[word::PRODUCTS + 1]) << 32);
        // The numbers of products of rows are capped at 2^63 − 1.
        let products = i64::try_from(products).ok().filter(|&count| count < i64::MAX);
        let products = products.ok_or_else(too_many_products)?;
        statistics.alone_work = alone_work(products);
        statistics.mark_filled();
        // Memory that no pending work uses is ready for the next allocation.
        own.mark_filled();
        if let Some((shifts, own)) = &mut shift_marks {
            shifts.mark_filled();
            own.mark_filled();
        }
        Ok((statistics, binned, products))
    }

    /// Statistics of a product of which only the multiplications of each row are known. The stream has been
    /// synchronized since these were counted. Rows of both factors are sorted and have each column once.
    pub fn of_products(mut products: DeviceBuffer<i64>, left: &Rows) -> ProductRowStats {
        products.mark_filled();
        ProductRowStats {
            products,
            extents: None,
            groups: None,
            repeats: None,
            shifted_runs: None,
            wide: false,
            alone_work: ALONE_WORK,
            cut: Cut::NONE,
            left: Factor::of(left).offsets(),
            distinct: true,
        }
    }

    /// Allocates the first columns and widths of the rows' column ranges.
    fn extents(cx: &Context, rows: usize) -> Result<[DeviceBuffer<i64>; 2]> {
        Ok([DeviceBuffer::new(cx, rows)?, DeviceBuffer::new(cx, rows)?])
    }

    /// Returns the statistics as a kernel parameter.
    pub fn at(&self) -> ProductRowStatsAt {
        let [lows, spans] = match &self.extents {
            Some([lows, spans]) => [lows.address(), spans.address()],
            None => [Address::NULL; 2],
        };
        ProductRowStatsAt {
            products: self.products.address(),
            lows,
            spans,
            groups: self.groups.as_ref().map_or(Address::NULL, DeviceBuffer::address),
            shifted_runs: self.shifted_runs.as_ref().map_or(Address::NULL, DeviceBuffer::address),
            // Without groups, no row is processed as a group of one row either.
            group_work: if self.groups.is_some() { GROUP_WORK } else { 0 },
            alone_work: self.alone_work,
            totals: Address::NULL,
            wide: i64::from(self.wide),
            left: if self.distinct { self.left } else { Ints::NONE },
            cut: self.cut,
        }
    }

    /// Returns the marks of the rows of the right factor that have the same columns as the row before, or
    /// NULL.
    pub fn repeats(&self) -> Address {
        self.repeats.as_ref().map_or(Address::NULL, DeviceBuffer::address)
    }

    /// Returns the number of rows of the product.
    pub fn rows(&self) -> i64 {
        self.products.len() as i64
    }
}

/// List of the rows that have products, sorted by bin.
pub struct Binned {
    list: DeviceBuffer<u32>,
    /// Range of each bin in `list`.
    ranges: [Range<usize>; RowBin::COUNT],
    /// Number of windows of the wide rows; those of a split row count once for each of its pieces.
    pub windows: usize,
}

/// Rows that kernels on the stream sort into bins, whose sizes have not been read back yet.
pub struct EnqueuedBins {
    /// Row numbers, bin after bin.
    list: DeviceBuffer<u32>,
    /// Distance of the bins in `list`; 0 if each begins where the one before ends.
    stride: i64,
}

impl Binned {
    /// Launches the kernels that sort rows into bins by their statistics, and by their entries if `offsets`
    /// is not NULL. The sizes of the bins go to the words from `COUNTS` on of the readback page.
    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        bins: Bins,
        (statistics, rows): (ProductRowStatsAt, i64),
        offsets: Address,
        words: &Readback,
        list: DeviceBuffer<u32>,
    ) -> Result<EnqueuedBins> {
        let (counts, cursors) = (words.at(word::COUNTS), words.at(word::CURSORS));
        let stride = stride(rows);
        // A grid has at least one block.
        let blocks = grids::of_rows(rows, 1, cx.device.properties().multiprocessors).max(1);
        // SAFETY: each array of `statistics` has `rows` elements, there are rows + 1 offsets and as many counts
        // and cursors as the kernel has bins, and the list has an element for each row, or with a stride one
        // for each row in each bin.
        unsafe {
            if stride == 0 {
                launch!(kernels.get(Name::CountBins)?, blocks, 256, 0, cx.stream;
                    bins, statistics, offsets, rows, counts)?;
            }
            launch!(kernels.get(Name::FillBins)?, blocks, 256, 0, cx.stream;
                bins, statistics, offsets, rows, counts, cursors, stride, list.address())?;
        }
        Ok(EnqueuedBins { list, stride })
    }

    /// Allocates a list for `rows` rows.
    fn list(cx: &Context, rows: i64) -> Result<DeviceBuffer<u32>> {
        DeviceBuffer::new(cx, (stride(rows) * RowBin::COUNT as i64).max(rows) as usize)
    }

    /// Sorts all rows into bins by their entries. Also returns the number of all entries, offsets[rows], and
    /// the number at the device address `more` if that is not NULL. Blocks.
    pub fn by_entries(
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        statistics: &ProductRowStats,
        offsets: &DeviceBuffer<i64>,
        more: Address,
    ) -> Result<(Binned, [i64; 2])> {
        let rows = statistics.rows() as usize;
        let list = Self::list(cx, statistics.rows())?;
        let mut words = Readback::take(cx)?;
        let bins = kernels.numeric_bins(statistics.distinct);
        let statistics = (statistics.at(), rows as i64);
        let enqueued = Self::enqueue(cx, kernels, bins, statistics, offsets.address(), &words, list)?;
        words.fetch_with(cx, word::END, [offsets.at(rows), more])?;
        let found = words.wait(cx)?;
        let mut binned = enqueued.settle(found);
        binned.list.mark_filled();
        Ok((binned, [found[word::END] as i64, found[word::END + 1] as i64]))
    }

    /// Sorts some of a product's rows into bins by their entries. Kernels that were launched before this is
    /// dropped may still read the list. Blocks.
    pub fn of_rows(
        cx: &DeviceCall<'_>,
        kernels: &Kernels,
        bins: Bins,
        (statistics, rows): (ProductRowStatsAt, i64),
        offsets: Address,
    ) -> Result<Binned> {
        let list = Self::list(cx, rows)?;
        let mut words = Readback::take(cx)?;
        let enqueued = Self::enqueue(cx, kernels, bins, (statistics, rows), offsets, &words, list)?;
        words.fetch(cx, word::END)?;
        Ok(enqueued.settle(words.wait(cx)?))
    }

    /// Iterates over those of `bins` that have rows: bin, address of the first row number, and number of
    /// rows.
    pub fn with_rows<'a>(
        &'a self,
        bins: impl Iterator<Item = usize> + 'a,
    ) -> impl Iterator<Item = (usize, Address, i64)> + 'a {
        let all = bins.map(|bin| (bin, self.bin(bin)));
        all.filter(|(_, (_, count))| *count > 0).map(|(bin, (list, count))| (bin, list, count))
    }

    /// Returns the address of the first row number of a bin, and the number of its rows.
    pub fn bin(&self, bin: usize) -> (Address, i64) {
        let range = &self.ranges[bin];
        (self.list.at(range.start), range.len() as i64)
    }

    /// Returns a list with all bins empty, to be set by [`Binned::set_range`], and no wide rows.
    pub fn empty(list: DeviceBuffer<u32>) -> Binned {
        Binned { list, ranges: [const { 0..0 }; RowBin::COUNT], windows: 0 }
    }

    /// Sets the range of a bin in the list: `count` elements from `start` on.
    pub fn set_range(&mut self, bin: usize, start: usize, count: usize) {
        self.ranges[bin] = start..start + count;
    }
}

impl EnqueuedBins {
    /// Returns the bins, given the words of the readback page after the stream was synchronized. The list is
    /// not marked as filled.
    fn settle(self, words: &[u64]) -> Binned {
        let stride = self.stride as usize;
        let mut binned = Binned::empty(self.list);
        let counts = &words[word::COUNTS..];
        let mut next = 0;
        for (bin, &count) in counts[..RowBin::COUNT].iter().enumerate() {
            let start = if stride > 0 { bin * stride } else { next };
            binned.set_range(bin, start, count as usize);
            next += count as usize;
        }
        binned.windows = counts[RowBin::COUNT] as usize;
        binned
    }
}
