//! What the rows of a product are like, and the bins of rows that one launch
//! takes.

use std::ops::Range;
use std::sync::Arc;

use super::kernels::Name;
use super::rows::{Factor, Ints, Kernels, DISTINCT, SORTED};
use super::small::SmallBins;
use super::wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::{self, optional, DeviceBuffer, Readback};
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::error::{Error, Result};
use crate::memory::Context;
use crate::select::grids;
use crate::select::spgemm::bins::stride;
pub use crate::select::spgemm::bins::{Bins, GROUP_CUT, GROUP_SPAN};
use crate::select::spgemm::row_structures::{
    alone_work, RowStructures, ALONE_WORK, EXTENT_PRODUCTS, GROUP_WORK, SLIDE_PRODUCTS,
};
use crate::select::spgemm::rows::{lanes, slices_of_statistics};
use crate::select::spgemm::wide::{in_long_rows, Cut};
use crate::types::Address;

include!(concat!(env!("OUT_DIR"), "/row_bins.rs"));

impl Bins {
    /// Bins of this kind that are used.
    pub fn of(&self, kind: RowBin) -> Range<usize> {
        let all = kind.bins();
        let used = match kind {
            RowBin::Table => self.count,
            RowBin::SamePattern => self.groups,
            RowBin::ShiftedPattern => self.slides,
            RowBin::BlockTable => self.blocks,
            RowBin::Bitmap | RowBin::DenseWindows | RowBin::ScaledRow => all.len() as i64,
        };
        all.start..all.start + used as usize
    }

    /// The limit of a bin: entries of a row at the most, or products where entries are not known; of
    /// [`RowBin::SamePattern`] the range of columns, or the bytes, of a group.
    pub fn limit(&self, kind: RowBin, bin: usize) -> u32 {
        let at = bin - kind.bins().start;
        (match kind {
            RowBin::Table => self.limits[at],
            RowBin::SamePattern => self.group_limits[at],
            RowBin::ShiftedPattern => self.slide_limits[at],
            RowBin::BlockTable => self.block_limits[at],
            RowBin::Bitmap | RowBin::DenseWindows | RowBin::ScaledRow => 0,
        }) as u32
    }

    /// The largest limit of a kind.
    pub fn largest(&self, kind: RowBin) -> u32 {
        self.of(kind).map(|bin| self.limit(kind, bin)).max().unwrap_or(0)
    }
}

/// The kernels' `Facts`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FactsAt {
    pub products: Address,
    pub lows: Address,
    pub spans: Address,
    pub groups: Address,
    pub slides: Address,
    group_work: i64,
    alone_work: i64,
    /// Multiplications by halves, where `alone_work` is the least and its share is still to be found.
    totals: Address,
    wide: i64,
    /// Offsets of the left factor, where its rows with one entry are apart.
    pub left: Ints,
    pub cut: Cut,
}

impl FactsAt {
    /// Of the rows from `row` on, which begins a cut.
    pub fn after(self, row: usize) -> Self {
        debug_assert!(row % GROUP_CUT == 0);
        let at = |facts: Address, size: usize| match facts.is_null() {
            true => facts,
            false => facts.offset(row * size),
        };
        FactsAt {
            products: at(self.products, 8),
            lows: at(self.lows, 8),
            spans: at(self.spans, 8),
            groups: at(self.groups, 1),
            // A slide may go over the cut: each of its rows is taken alone.
            slides: Address::NULL,
            left: self.left.after(row),
            ..self
        }
    }
}

same_layout!(Bins = "spgemm/rows.cu Bins" { limits, count, few, medium, group_limits, groups, value, tiny, slide_limits, slides, block_limits, blocks });
same_layout!(FactsAt = "spgemm/rows.cu Facts" { products, lows, spans, groups, slides, group_work, alone_work, totals, wide, left, cut });
same_layout!(Cut = "spgemm/common.cuh Cut" { longest, part });

/// What is known of each row of the product.
pub struct Facts {
    /// Multiplications.
    products: DeviceBuffer<i64>,
    /// First column and columns of the range that the row's are in, where it has
    /// many products.
    extents: Option<[DeviceBuffer<i64>; 2]>,
    /// Rows of the group that the row begins.
    groups: Option<DeviceBuffer<u8>>,
    /// Rows of the right factor that have the columns of the one before.
    repeats: Option<DeviceBuffer<u8>>,
    /// Rows of the slide that the row begins.
    slides: Option<DeviceBuffer<u8>>,
    wide: bool,
    /// Products of a row that a warp takes alone.
    alone_work: i64,
    /// How wide rows are cut into parts.
    cut: Cut,
    /// Offsets of the left factor.
    left: Ints,
    /// Columns of each row of the right factor are distinct.
    pub distinct: bool,
}

/// Words of the page that analysis reads.
mod word {
    use super::RowBin;
    /// Low and high halves of the multiplications.
    pub const PRODUCTS: usize = 0;
    pub const COUNTS: usize = 2;
    pub const CURSORS: usize = COUNTS + RowBin::COUNT + 1;
    pub const END: usize = CURSORS + RowBin::COUNT;
}

/// Flags of kernel `spgemm_order` for rows that nothing is known of. Blocks.
pub fn order_flags(
    cx: &Context,
    device: &Arc<Device>,
    kernels: &Kernels,
    rows: &Rows,
    stats: &RowStats,
) -> Result<u32> {
    let mut words = Readback::take(cx, device)?;
    let multiprocessors = device.properties().multiprocessors;
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

impl Facts {
    /// Looks at the factors' patterns, and sorts the rows into bins for the
    /// symbolic phase; the multiplications of all. Blocks.
    pub fn new(
        cx: &Context,
        device: &Arc<Device>,
        kernels: &Kernels,
        (left, left_stats): (&Rows, &RowStats),
        (right, right_stats): (&Rows, &RowStats),
        order: i32,
    ) -> Result<(Facts, Binned, i64)> {
        let rows = left.rows as usize;
        let distinct = order == SORTED | DISTINCT;
        let (left_mean, right_mean) = (left_stats.mean(), right_stats.mean());
        let of_left = (left.rows, left_stats.max, left_mean);
        let RowStructures { extents: searches_extents, groups: grouped, slides } =
            RowStructures::new(of_left, (right_stats.max, right_mean), distinct);
        let bytes = |count: i64| DeviceBuffer::<u8>::new(cx, count as usize);
        let products = DeviceBuffer::new(cx, rows)?;
        let list = Binned::list(cx, left.rows)?;
        // What rows are like is looked for where there is memory for it; the others are needed.
        let extents = match searches_extents {
            true => optional(Self::extents(cx, rows))?,
            false => None,
        };
        let same = (left.offsets, left.indices, left.rows) == (right.offsets, right.indices, right.rows);
        let marks = match grouped && extents.is_some() {
            true => optional(bytes(left.rows).and_then(|groups| {
                let own = if same { None } else { Some(bytes(left.rows)?) };
                Ok((groups, (bytes(right.rows)?, own)))
            }))?,
            false => None,
        };
        let (groups, repeats) = marks.unzip();
        let (repeats, own) = repeats.unzip();
        let own = own.flatten();
        let moves = match slides {
            true => optional(bytes(left.rows).and_then(|slides| {
                let own = if same { None } else { Some(bytes(left.rows)?) };
                Ok((slides, (bytes(right.rows)?, own)))
            }))?,
            false => None,
        };
        let (slides, moves) = moves.unzip();
        let [.., long, longer] = left_stats.longer;
        let mut facts = Facts {
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
            slides,
            left: Factor::of(left).offsets(),
            distinct,
        };
        let mut words = Readback::take(cx, device)?;
        let (left_factor, right_factor) = (Factor::of(left), Factor::of(right));
        let multiprocessors = device.properties().multiprocessors;
        let [(left_lanes, left_blocks), (right_lanes, right_blocks)] =
            [(left.rows, left_mean), (right.rows, right_mean)].map(|(rows, mean)| {
                let lanes = lanes(rows, mean, multiprocessors);
                (lanes, grids::of_rows(rows, lanes, multiprocessors))
            });
        // Sums of slices must fit.
        let slices = match left_stats.max.checked_mul(right_stats.max) {
            Some(_) => slices_of_statistics(left_blocks, left_stats.max, multiprocessors),
            None => 1,
        };
        // SAFETY: the patterns have been validated; there are `rows` products and
        // two sums, and as many lows, spans, groups and slides; repeats are those of
        // the rows of a factor, and each factor's where they are read.
        unsafe {
            if slices > 1 {
                memory::zero(facts.products.address(), facts.products.bytes(), cx.stream)?;
            }
            launch!(kernels.get(Name::Products)?, (left_blocks, slices), 256, 0, cx.stream;
                left_factor, right_factor, left.rows, left_lanes, facts.products.address(),
                words.at(word::PRODUCTS), SmallBins::NONE)?;
            // Which rows of a factor have the columns of the one before, or these one further.
            type Side = (Factor, i64, i32, u32);
            let repeats_of = |(factor, count, lanes, blocks): Side, repeats: Address, moved: Address| launch!(kernels.get(Name::Repeats)?, blocks, 256, 0, cx.stream; factor, count, lanes, repeats, moved);
            let address =
                |marks: Option<&DeviceBuffer<u8>>| marks.map_or(Address::NULL, DeviceBuffer::address);
            let repeats = address(facts.repeats.as_ref());
            let moved = address(moves.as_ref().map(|(moved, _)| moved));
            let (mut of_left, mut moved_left) = (repeats, moved);
            if !repeats.is_null() || !moved.is_null() {
                repeats_of((right_factor, right.rows, right_lanes, right_blocks), repeats, moved)?;
                if !same {
                    of_left = address(own.as_ref());
                    moved_left = address(moves.as_ref().and_then(|(_, own)| own.as_ref()));
                    repeats_of((left_factor, left.rows, left_lanes, left_blocks), of_left, moved_left)?;
                }
            }
            if let Some(groups) = &facts.groups {
                launch!(kernels.get(Name::Groups)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                    of_left, left.rows, groups.address())?;
            }
            if let Some(slides) = &facts.slides {
                let groups = facts.groups.as_ref().map_or(Address::NULL, DeviceBuffer::address);
                launch!(kernels.get(Name::Slides)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                    left_factor, left.rows, facts.products.address(), SLIDE_PRODUCTS, moved_left, moved, groups,
                    slides.address())?;
            }
            if let Some([lows, spans]) = &facts.extents {
                let slides = facts.slides.as_ref().map_or(Address::NULL, DeviceBuffer::address);
                if slices > 1 {
                    // A large number, and −1.
                    memory::fill(lows.address(), 0x7f, lows.bytes(), cx.stream)?;
                    memory::fill(spans.address(), 0xff, spans.bytes(), cx.stream)?;
                }
                launch!(kernels.get(Name::Extents)?, (left_blocks, slices), 256, 0, cx.stream;
                    left_factor, right_factor, left.rows, left_lanes, facts.products.address(),
                    EXTENT_PRODUCTS, slides, lows.address(), spans.address())?;
                if slices > 1 {
                    launch!(kernels.get(Name::Spans)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                        left.rows, lows.address(), spans.address())?;
                }
            }
        }
        let binned = Binned::enqueue(
            cx,
            device,
            kernels,
            kernels.symbolic_bins(distinct),
            (FactsAt { totals: words.at(word::PRODUCTS), ..facts.at() }, left.rows),
            Address::NULL,
            &words,
            list,
        )?;
        words.fetch(cx, word::END)?;
        let found = words.wait(cx)?;
        let mut binned = binned.settle(found);
        binned.list.seal();
        let products = u128::from(found[word::PRODUCTS]) + (u128::from(found[word::PRODUCTS + 1]) << 32);
        // Rows are counted up to 2^63 − 1.
        let products = i64::try_from(products).ok().filter(|&count| count < i64::MAX);
        let Some(products) = products else {
            return Err(Error::unsupported("A, B: the product needs more than 2^63 − 1 multiplications"));
        };
        facts.alone_work = alone_work(products);
        facts.seal();
        Ok((facts, binned, products))
    }

    /// Of a product of which only the multiplications of each row are known, for which the stream has been waited. Rows
    /// of both factors are sorted, and have each column once.
    pub fn of_products(mut products: DeviceBuffer<i64>, left: &Rows) -> Facts {
        products.seal();
        Facts {
            products,
            extents: None,
            groups: None,
            repeats: None,
            slides: None,
            wide: false,
            alone_work: ALONE_WORK,
            cut: Cut::NONE,
            left: Factor::of(left).offsets(),
            distinct: true,
        }
    }

    /// First columns and ranges of rows.
    fn extents(cx: &Context, rows: usize) -> Result<[DeviceBuffer<i64>; 2]> {
        Ok([DeviceBuffer::new(cx, rows)?, DeviceBuffer::new(cx, rows)?])
    }

    /// The same for kernels.
    pub fn at(&self) -> FactsAt {
        let [lows, spans] = match &self.extents {
            Some([lows, spans]) => [lows.address(), spans.address()],
            None => [Address::NULL; 2],
        };
        FactsAt {
            products: self.products.address(),
            lows,
            spans,
            groups: self.groups.as_ref().map_or(Address::NULL, DeviceBuffer::address),
            slides: self.slides.as_ref().map_or(Address::NULL, DeviceBuffer::address),
            // Without groups, rows are not taken one by one either.
            group_work: if self.groups.is_some() { GROUP_WORK } else { 0 },
            alone_work: self.alone_work,
            totals: Address::NULL,
            wide: i64::from(self.wide),
            left: if self.distinct { self.left } else { Ints::NONE },
            cut: self.cut,
        }
    }

    /// Which rows of the right factor have the columns of the one before.
    pub fn repeats(&self) -> Address {
        self.repeats.as_ref().map_or(Address::NULL, DeviceBuffer::address)
    }

    fn seal(&mut self) {
        self.products.seal();
        self.extents.iter_mut().flatten().for_each(DeviceBuffer::seal);
        self.groups.iter_mut().chain(&mut self.repeats).chain(&mut self.slides).for_each(DeviceBuffer::seal);
    }

    /// Rows.
    pub fn rows(&self) -> i64 {
        self.products.len() as i64
    }
}

/// Rows that have products, by bins.
pub struct Binned {
    list: DeviceBuffer<u32>,
    /// Where those of each bin are.
    ranges: [Range<usize>; RowBin::COUNT],
    /// Windows of the wide rows, as many times as a row has parts.
    pub windows: usize,
}

/// Rows by bins whose numbers are on the way.
pub struct Enqueued(DeviceBuffer<u32>, i64);

impl Binned {
    /// Sorts rows into bins by what is known of them, and by their entries where
    /// `offsets` is not NULL. The counts are on a page, whose first two words are
    /// others', after it has been fetched.
    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
        bins: Bins,
        (facts, rows): (FactsAt, i64),
        offsets: Address,
        words: &Readback,
        list: DeviceBuffer<u32>,
    ) -> Result<Enqueued> {
        let (counts, cursors) = (words.at(word::COUNTS), words.at(word::CURSORS));
        let stride = stride(rows);
        // A grid has one at the least.
        let blocks = grids::of_rows(rows, 1, device.properties().multiprocessors).max(1);
        // SAFETY: facts have `rows` of each array, there are rows + 1 offsets, as
        // many counts and cursors as the kernel has bins, and the list has a place
        // for each row, in each bin where these have a stride.
        unsafe {
            if stride == 0 {
                launch!(kernels.get(Name::CountBins)?, blocks, 256, 0, cx.stream;
                    bins, facts, offsets, rows, counts)?;
            }
            launch!(kernels.get(Name::FillBins)?, blocks, 256, 0, cx.stream;
                bins, facts, offsets, rows, counts, cursors, stride, list.address())?;
        }
        Ok(Enqueued(list, stride))
    }

    /// A list for so many rows.
    fn list(cx: &Context, rows: i64) -> Result<DeviceBuffer<u32>> {
        DeviceBuffer::new(cx, (stride(rows) * RowBin::COUNT as i64).max(rows) as usize)
    }

    /// Sorts rows into bins by their entries; also returns the number of all entries, which is offsets[rows], and
    /// the number at `more`, if that is not NULL. Blocks.
    pub fn by_entries(
        cx: &Context,
        device: &Arc<Device>,
        kernels: &Kernels,
        facts: &Facts,
        offsets: &DeviceBuffer<i64>,
        more: Address,
    ) -> Result<(Binned, [i64; 2])> {
        let rows = facts.rows() as usize;
        let list = Self::list(cx, facts.rows())?;
        let mut words = Readback::take(cx, device)?;
        let bins = kernels.numeric_bins(facts.distinct);
        let facts = (facts.at(), rows as i64);
        let enqueued = Self::enqueue(cx, device, kernels, bins, facts, offsets.address(), &words, list)?;
        words.fetch_with(cx, word::END, [offsets.at(rows), more])?;
        let found = words.wait(cx)?;
        let mut binned = enqueued.settle(found);
        binned.list.seal();
        Ok((binned, [found[word::END] as i64, found[word::END + 1] as i64]))
    }

    /// Some of a product's rows by their entries. Kernels may read the list after this is dropped.
    /// Blocks.
    pub fn of_rows(
        cx: &Context,
        device: &Arc<Device>,
        kernels: &Kernels,
        bins: Bins,
        (facts, rows): (FactsAt, i64),
        offsets: Address,
    ) -> Result<Binned> {
        let list = Self::list(cx, rows)?;
        let mut words = Readback::take(cx, device)?;
        let enqueued = Self::enqueue(cx, device, kernels, bins, (facts, rows), offsets, &words, list)?;
        words.fetch(cx, word::END)?;
        Ok(enqueued.settle(words.wait(cx)?))
    }

    /// Those of these bins that have rows, with the rows and their number.
    pub fn with_rows<'a>(
        &'a self,
        bins: impl Iterator<Item = usize> + 'a,
    ) -> impl Iterator<Item = (usize, Address, i64)> + 'a {
        let all = bins.map(|bin| (bin, self.bin(bin)));
        all.filter(|(_, (_, count))| *count > 0).map(|(bin, (list, count))| (bin, list, count))
    }

    /// The rows of a bin and their number.
    pub fn bin(&self, bin: usize) -> (Address, i64) {
        let range = &self.ranges[bin];
        (self.list.at(range.start), range.len() as i64)
    }

    /// A list whose bins are not known yet, without wide rows.
    pub fn empty(list: DeviceBuffer<u32>) -> Binned {
        Binned { list, ranges: [const { 0..0 }; RowBin::COUNT], windows: 0 }
    }

    /// The rows of a bin are so many from there on.
    pub fn put(&mut self, bin: usize, start: usize, count: usize) {
        self.ranges[bin] = start..start + count;
    }
}

impl Enqueued {
    /// With the page's words, for which the stream has been waited for. The list is not sealed.
    fn settle(self, words: &[u64]) -> Binned {
        let mut binned = Binned::empty(self.0);
        let counts = &words[word::COUNTS..];
        let mut next = 0;
        for (bin, &count) in counts[..RowBin::COUNT].iter().enumerate() {
            let start = if self.1 > 0 { bin * self.1 as usize } else { next };
            binned.put(bin, start, count as usize);
            next += count as usize;
        }
        binned.windows = counts[RowBin::COUNT] as usize;
        binned
    }
}
