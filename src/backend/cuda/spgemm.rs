//! SpGEMM on a device, algorithm `hash`: C = alpha · op(A) · op(B) row by row (Gustavson 1978). The
//! kernel that computes a row of C depends on the structure of the row:
//! - few products, which fit a hash table in shared memory: a team of lanes (kernels/spgemm/team.cu), or a
//!   warp (hash.cu) if a row of the right factor may have a column twice;
//! - columns within a short range: a warp with a bitmap, for a group of rows with the same pattern
//!   (same_pattern.cu);
//! - the columns of the previous row shifted by one, also in the rows of the right factor that it meets: a
//!   warp for up to 32 such rows (shifted_pattern.cu);
//! - many products compared with the range of its columns: a warp for each window of columns, with a sum for
//!   each column (dense_windows.cu);
//! - few products per entry, and more entries than a warp sorts: a block with one hash table (block.cu);
//! - one entry in the left factor, so that the row is a scaled row of the right factor (scaled_row.cu);
//! - all other rows: a block with a bitmap of the columns (bitmap.cu), or several blocks per row if there
//!   are few such rows.
//!
//! None of these kernels needs memory that grows with the number of products. Products are summed in the
//! order of the left factor's row.
//!
//! The build phase counts the multiplications of each row and sorts the rows into bins. The symbolic phase
//! counts the entries of C and sorts the rows again by these. The numeric phase only launches kernels if C
//! is stored by the dimension that is computed (rows of C, or its columns with `transposed_product`);
//! otherwise the computed rows are staged in the plan's memory and transposed. With value updates the column
//! indices stay in the plan, and numeric phases after the first do not allocate.
//!
//! - [`factors`]: A and B as kernels read them, with statistics of their patterns
//! - [`rows`]: parameters of kernels, and the shapes of launches
//! - [`bins`]: statistics of the rows of C, and the bins of rows, each of which one launch processes
//! - [`dense`]: wide rows of nearly dense factors, multiplied as dense matrices
//! - [`small`]: small products, whose rows are put into bins by their products alone
//! - [`wide`]: wide rows, processed by windows of columns
//! - [`map`]: positions of the factors of every product, for numeric phases with new values
//! - [`numeric`]: the numeric phase, with all rows at one time
//! - [`target`]: checks of C's arrays and of the memory for them, and C's offsets
//! - [`columns`]: C by columns from computed rows, or by rows from computed columns
//! - [`parts`]: the numeric phase with some rows at a time, if memory is short
//! - [`tile`]: algorithm `tile`, on sparse tiles ([`tiles`]); matrices in tiles that the library owns are in
//!   [`tile_matrix`]

mod bins;
mod columns;
mod dense;
mod factors;
mod kernels;
mod map;
mod numeric;
mod parts;
mod rows;
mod small;
mod target;
#[cfg(test)]
mod tests;
mod tile;
pub(super) mod tile_matrix;
mod tiles;
mod wide;

use std::sync::Arc;

use self::bins::{Binned, Bins, ProductRowStatsAt, RowBin};
use self::columns::Transposition;
use self::dense::Dense;
pub use self::factors::{inspect, Factors};
use self::kernels::Name;
use self::map::Map;
use self::rows::{Factor, Kernels, Listed, Output};
use self::wide::{Tasks, Wide};
use super::convert::device_wide::scan_in_place;
use super::device::{Device, DeviceCall};
use super::launch::{launch, launch_overlapping, Overlap};
use super::memory::{self, filled, filled_members, optional, DeviceBuffer, Fill};
use super::operand::{Operand, Rows};
use super::scalars::Scalar;
use super::Cuda;
use crate::algorithm::Algorithm;
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::{Error, Result};
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::SparseMatrix;
use crate::memory::Context;
use crate::operation::{not_counted, SpgemmBackend};
use crate::problem::SpgemmProblem;
use crate::select::spgemm::dense::Wanted;
use crate::select::spgemm::rows::{count_part, is_short, part, slices};
use crate::select::spgemm::windows::{count_window, LARGE_BLOCK, SMALL_BLOCK};
use crate::select::spgemm::ProductStatistics;
use crate::select::{Choice, SpgemmInspection};
use crate::types::{Address, Format, LayoutKind};

impl SpgemmBackend for Cuda {
    fn inspect_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        choice: &Choice,
    ) -> Result<Option<SpgemmInspection>> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(&problem.a, "A")?;
        self.require_on_device(&problem.b, "B")?;
        inspect(cx, problem, choice).map(Some)
    }

    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        choice: &Choice,
        inspection: Option<SpgemmInspection>,
        tiles: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        let cx = &self.device.call(cx)?;
        if inspection.is_none() {
            self.require_on_device(&problem.a, "A")?;
            self.require_on_device(&problem.b, "B")?;
        }
        if tiles.iter().any(Option::is_some) {
            return Ok(Box::new(tile::CudaTile::of_tiles(cx, problem, choice, tiles)?));
        }
        let factors = inspection.and_then(|inspection| inspection.backend_state.downcast().ok());
        build(cx, problem, choice, factors.map(|factors| *factors))
    }

    fn make_tiles(&self, cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(a, "A")?;
        tile_matrix::make(cx, a)
    }

    fn write_tiles(&self, cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(b, "B")?;
        tile_matrix::write(cx, tiles, b)
    }
}

/// Builds the executor for `choice` and counts the multiplications. A and B are validated and read as
/// `choice` says, unless [`inspect`] has done so and its `factors` are given. Blocks.
pub fn build(
    cx: &DeviceCall<'_>,
    problem: &SpgemmProblem,
    choice: &Choice,
    factors: Option<Factors>,
) -> Result<Box<dyn SpgemmExecutor>> {
    let factors = match factors {
        Some(factors) => factors,
        None => Factors::new(cx, problem, choice)?,
    };
    if choice.algorithm() == Algorithm::Tile {
        return Ok(Box::new(tile::CudaTile::new(cx, problem, choice, factors)?));
    }
    Ok(Box::new(CudaSpgemm::new(cx, problem, choice, factors)?))
}

/// Maximum number of bytes that a plan keeps for wide rows without checking that the free memory also has
/// room for C: asking for the free memory takes as long as several kernels.
const MOST_KEPT: usize = 16 << 20;

/// Executor of SpGEMM `hash` on a device.
struct CudaSpgemm {
    device: Arc<Device>,
    problem: SpgemmProblem,
    a: Operand,
    b: Operand,
    /// True if Cᵀ = op(B)ᵀ · op(A)ᵀ is computed, with B as the left factor.
    transposed: bool,
    kernels: Kernels,
    /// Known order of the right factor's columns: [`rows::SORTED`] and [`rows::DISTINCT`].
    order: i32,
    /// Number of lanes that process a row of the right factor.
    part: i32,
    /// True if the rows of the right factor are short in the mean.
    right_is_short: bool,
    products: i64,
    /// Statistics of the product's rows.
    statistics: bins::ProductRowStats,
    /// Bins of the rows by products, until the entries have been counted.
    uncounted: Option<Binned>,
    counted: Option<Counted>,
    kept: Option<Kept>,
}

/// Results of the symbolic phase.
struct Counted {
    /// Row offsets of the product, base 0.
    offsets: DeviceBuffer<i64>,
    nnz: i64,
    binned: Binned,
    wide: Option<Wide>,
    /// Dense multiplication of the wide rows, used if C is stored by the dimension that is computed.
    dense: Option<Dense>,
}

/// Memory of numeric phases; with value updates it stays in the plan.
#[derive(Default)]
struct Kept {
    /// Column indices of the product, base 0, of the right factor's index type.
    columns: Option<DeviceBuffer<u8>>,
    /// True if `columns` has been filled.
    known: bool,
    /// Values of the product, before they are transposed into C.
    values: Option<DeviceBuffer<u8>>,
    transposition: Option<Transposition>,
    /// Positions of the factors of every product, if they are worth their memory.
    map: Option<Map>,
    /// Memory for some of the wide rows' tasks, if the symbolic phase kept none.
    tasks: Option<Tasks>,
    /// True if something was allocated since the stream was last synchronized.
    fresh: bool,
}

filled_members!(Kept { columns, values, transposition, tasks, map });

impl Kept {
    /// Waits until newly allocated memory has been filled, so that other streams may use it.
    fn settle(&mut self, cx: &Context) -> Result<()> {
        if self.fresh {
            memory::synchronize(cx.stream)?;
            self.mark_filled();
            self.fresh = false;
        }
        Ok(())
    }
}

/// Rows of C that [`CudaSpgemm::multiply`] computes.
struct Job<'a> {
    left: Rows,
    right: Rows,
    statistics: ProductRowStatsAt,
    binned: &'a Binned,
    /// True if the wide rows are computed elsewhere.
    wide_apart: bool,
    /// Sequence in which the kernels of the phase run side by side.
    overlap: Overlap,
}

impl CudaSpgemm {
    fn new(cx: &DeviceCall<'_>, problem: &SpgemmProblem, choice: &Choice, factors: Factors) -> Result<Self> {
        let transposed = choice.method.is_transposed();
        let (left_side, right_side) = factors.sides(transposed);
        let (left, left_stats) = (left_side.operand.rows(), left_side.stats);
        let (right, right_stats, order) = (right_side.operand.rows(), right_side.stats, right_side.order);
        if u32::try_from(left.rows).is_err() {
            return Err(Error::unsupported(format!(
                "C: it has {} rows (columns where those are computed); at most {} are supported",
                left.rows,
                u32::MAX
            )));
        }
        let kernels = Kernels::new(cx.device, problem.types, (right.index_type, right.cols));

        let order = match order {
            Some(order) => order,
            None => rows::order(bins::order_flags(cx, &kernels, &right, &right_stats)?),
        };
        let (of_left, of_right) = ((&left, &left_stats), (&right, &right_stats));
        // Both block, so that all work of the analysis has been done afterwards.
        let (statistics, uncounted, counted, products) =
            match small::count(cx, &kernels, of_left, of_right, order)? {
                Some((statistics, counted, products)) => (statistics, None, Some(counted), products),
                None => {
                    let (statistics, binned, products) =
                        bins::ProductRowStats::new(cx, &kernels, of_left, of_right, order)?;
                    (statistics, Some(binned), None, products)
                }
            };
        let [a, b] = factors.filled();
        Ok(CudaSpgemm {
            device: Arc::clone(cx.device),
            problem: *problem,
            a,
            b,
            transposed,
            kernels,
            order,
            part: part(right_stats.mean()),
            right_is_short: is_short(right_stats.mean()),
            products,
            statistics,
            uncounted,
            counted,
            kept: None,
        })
    }

    /// Returns the left and the right factor of the product that is computed.
    fn factors(&self) -> (Rows, Rows) {
        let (a, b) = (self.a.rows(), self.b.rows());
        factors::left_and_right(self.transposed, a, b)
    }

    /// Returns the parameters for the wide rows of the product of `left` and `right`.
    fn wide_product<'a>(
        &'a self,
        cx: &'a DeviceCall<'_>,
        left: &'a Rows,
        right: &'a Rows,
        statistics: ProductRowStatsAt,
    ) -> wide::Product<'a> {
        wide::Product { cx, kernels: &self.kernels, left, right, statistics }
    }

    /// Counts the entries of C, sorts the rows into bins by them, and prepares the numeric phase. Blocks.
    fn count_entries(&self, cx: &DeviceCall<'_>, binned: &Binned) -> Result<Counted> {
        let (left, right) = self.factors();
        let rows = left.rows as usize;
        // The kernel below writes the numbers of all rows.
        let mut offsets = match self.statistics.distinct {
            true => DeviceBuffer::<i64>::new(cx, rows + 1)?,
            false => DeviceBuffer::zeroed(cx, rows + 1)?,
        };
        let bins = self.kernels.symbolic_bins(self.statistics.distinct);
        let (left_factor, right_factor) = (Factor::of(&left), Factor::of(&right));
        let statistics = self.statistics.at();
        let threads = rows::WARPS_BLOCK;
        if self.statistics.distinct {
            // SAFETY: each row has its number of products and an element of `offsets`, which has one more.
            unsafe {
                launch!(self.kernels.get(Name::ScaledRowCounts)?, (rows as u64 + 1).div_ceil(256) as u32, 256, 0, cx.stream;
                    left_factor, statistics.products, left.rows, offsets.address())?;
            }
        }
        // All kernels from here on to the end of the wide rows' count run side by side.
        let overlap = &Overlap::new(true);
        let wide_product = self.wide_product(cx, &left, &right, statistics);
        let mut wide = Wide::count(
            &wide_product,
            binned.bin(RowBin::DenseWindows.bins().start),
            binned.windows,
            offsets.address(),
            overlap,
        )?;
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::SamePattern)) {
            let span = bins.limit(RowBin::SamePattern, bin);
            // SAFETY: the patterns have been validated, the bin lists the first rows of groups whose
            // columns are in a range of up to `span`, and `offsets` has an element for each row.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::SamePatternCount)?, rows::warp_blocks(count, threads), threads,
                    Kernels::group_count_shared(span), cx.stream;
                    left_factor, right_factor, statistics.groups, self.statistics.repeats(), statistics.lows, statistics.spans,
                    list, count, (span / 32) as i32, offsets.address())?;
            }
        }
        self.count_small(cx, binned, bins, &offsets, overlap)?;
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::BlockTable).rev()) {
            let most = bins.limit(RowBin::BlockTable, bin);
            let (threads, shared) = self.kernels.block_count_shape(most);
            // SAFETY: as above; the bin's rows have up to `most` products, and the shared
            // memory is what the kernel says.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::BlockCount)?, rows::grid(count)?, threads, shared, cx.stream;
                    left_factor, right_factor, list, 2 * most as i32, offsets.address())?;
            }
        }
        for (bin, list, count) in binned.with_rows(Self::bitmap_bins(wide.is_some())) {
            let threads = Self::bitmap_threads(bin);
            let slices = self.slices(count, right.cols)?;
            let window = count_window(right.cols, threads, slices);
            let grid = rows::grid(count * i64::from(slices))?;
            // SAFETY: as above, and all elements of `offsets` are zero; the shared memory is what the kernel
            // needs.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::BitmapCount)?, grid, threads, window.shared, cx.stream;
                    left_factor, right_factor, self.order, right.cols, Listed::new(list, count), window.bits,
                    slices as i32, offsets.address())?;
            }
        }
        if let Some(wide) = &mut wide {
            wide.end_count(&wide_product, offsets.address())?;
        }
        if !statistics.shifted_runs.is_null() {
            // The other rows of a shifted run have as many entries as its first one, which has been counted.
            // SAFETY: each row has an element of `shifted_runs` and of `offsets`.
            unsafe {
                launch!(self.kernels.get(Name::ShiftedPatternCounts)?, (rows as u64).div_ceil(256) as u32, 256, 0, cx.stream;
                    statistics.shifted_runs, left.rows, offsets.address())?;
            }
        }
        // SAFETY: both are the rows + 1 numbers of `offsets`.
        unsafe { scan_in_place(cx, offsets.address(), rows + 1)? };
        let partial_sums = wide.as_ref().map_or(Address::NULL, Wide::number_of_partial_sums);
        let (binned, [nnz, partial_sums]) =
            Binned::by_entries(cx, &self.kernels, &self.statistics, &offsets, partial_sums)?;
        offsets.mark_filled();
        let wide = match wide {
            Some(mut wide) => {
                wide.settle(cx, &self.kernels, partial_sums as usize)?;
                Some(wide)
            }
            None => None,
        };
        self.kernels.prepare(&self.numeric_bins(), &binned, wide.is_some())?;
        let dense = match &wide {
            Some(wide) => self.dense(cx, wide, &binned, nnz)?,
            None => None,
        };
        Ok(Counted { offsets, nnz, binned, wide, dense })
    }

    /// Prepares the dense multiplication of the wide rows, if at least half of all rows are wide and if it is
    /// faster and takes no more bytes than C and the factors.
    fn dense(&self, cx: &DeviceCall<'_>, wide: &Wide, binned: &Binned, nnz: i64) -> Result<Option<Dense>> {
        let (left, right) = self.factors();
        let (_, wide_rows) = binned.bin(RowBin::DenseWindows.bins().start);
        if wide.whole().is_none() || 2 * wide_rows < left.rows {
            return Ok(None);
        }
        // Matrix units sum products of halves less precisely than IEEE 754 requires.
        if self.problem.ieee && self.problem.types.a.size() == 2 {
            return Ok(None);
        }
        let wanted = Wanted {
            types: self.problem.types,
            shape: (left.rows as usize, left.cols as usize, right.cols as usize),
            products: self.products,
            entries: nnz + left.nnz + right.nnz,
            // With row offsets, bins and statistics of each row.
            kept: wide.bytes() + left.rows as usize * 64,
        };
        match Dense::new(cx, &self.kernels, &wanted)? {
            Some(dense) => filled(cx, dense).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the number of blocks that share each of `rows` rows with a bitmap.
    fn slices(&self, rows: i64, cols: i64) -> Result<u32> {
        let multiprocessors = i64::from(self.device.properties().multiprocessors);
        Ok(slices(multiprocessors, self.kernels.have_clusters()?, rows, cols))
    }

    /// Counts the entries of the rows with hash tables of a team or warp ([`RowBin::Table`]).
    fn count_small(
        &self,
        cx: &Context,
        binned: &Binned,
        bins: Bins,
        offsets: &DeviceBuffer<i64>,
        overlap: &Overlap,
    ) -> Result<()> {
        let (left, right) = self.factors();
        let (left, right) = (Factor::of(&left), Factor::of(&right));
        let threads = rows::WARPS_BLOCK;
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::Table)) {
            // SAFETY: the patterns have been validated, the bin lists rows whose products fit the table
            // (at most 32 for the kernel without one), and `offsets` has an element for each row; teams
            // are used only if columns are distinct.
            unsafe {
                if bins.by_teams() {
                    let part = count_part(self.part);
                    let shape = self.kernels.team_count_shape(
                        &self.device,
                        part,
                        bins.limit(RowBin::Table, bin),
                        count,
                    );
                    launch_overlapping!(overlap, self.kernels.get(Name::TeamCount)?, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                        left, right, shape.lanes, 0i64, part, Listed::new(list, count), shape.table,
                        offsets.address())?;
                } else if bin == RowBin::Table.bins().start {
                    launch!(self.kernels.get(Name::TinyCount)?, rows::warp_blocks(count, threads), threads, 0, cx.stream;
                        left, right, list, count, offsets.address())?;
                } else {
                    let shape = self.kernels.hash_count_shape(&self.device, bins.limit(RowBin::Table, bin));
                    launch!(self.kernels.get(Name::HashCount)?, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                        left, right, list, count, shape.table, offsets.address())?;
                }
            }
        }
        Ok(())
    }

    /// Returns the bins whose rows are processed by blocks with a bitmap, with the largest rows first, since
    /// they take longest. Wide rows are among them unless `wide_apart`: there was no memory for their windows
    /// then.
    fn bitmap_bins(wide_apart: bool) -> impl Iterator<Item = usize> {
        let wide = if wide_apart { 0..0 } else { RowBin::DenseWindows.bins() };
        wide.chain(RowBin::Bitmap.bins().rev())
    }

    /// Returns the number of threads of a block with a bitmap for the rows of `bin`.
    fn bitmap_threads(bin: usize) -> u32 {
        if bin == RowBin::Bitmap.bins().start {
            SMALL_BLOCK
        } else {
            LARGE_BLOCK
        }
    }

    /// Computes the rows of all bins; only launches kernels.
    fn multiply(&self, cx: &Context, alpha: Scalar, job: &Job<'_>, output: &Output) -> Result<()> {
        let Job { left, right, statistics, binned, wide_apart, ref overlap } = *job;
        let (left_factor, right_factor) = (Factor::of(&left), Factor::of(&right));
        let bins = self.numeric_bins();
        for (bin, list, count) in binned.with_rows(Self::bitmap_bins(wide_apart)) {
            let threads = Self::bitmap_threads(bin);
            let slices = self.slices(count, right.cols)?;
            let window = self.kernels.multiply_window(&self.device, right.cols, threads, slices);
            let grid = rows::grid(count * i64::from(slices))?;
            // `window.shared` is enough: fewer threads need less of it.
            let threads = self.kernels.multiply_threads(threads);
            // SAFETY: the patterns have been validated, C has been checked and, like the plan's own arrays,
            // has room for the entries that were counted, and the shared memory is what the kernel needs.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::BitmapMultiply)?, (grid, slices), threads, window.shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, self.order, right.cols, list,
                    window.bits, window.room, window.dense, *output)?;
            }
        }
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::SamePattern).rev()) {
            let bytes = bins.limit(RowBin::SamePattern, bin);
            let shape = Kernels::group_shape(&self.device, bytes);
            // SAFETY: as above; the bin lists the first rows of groups for which a warp needs up to `bytes`
            // bytes.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::SamePatternMultiply)?, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, statistics.groups,
                    self.statistics.repeats(), statistics.lows, statistics.spans, list, count, bytes as i32,
                    i32::from(self.right_is_short), *output)?;
            }
        }
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::BlockTable).rev()) {
            let most = bins.limit(RowBin::BlockTable, bin);
            let (threads, shared) = self.kernels.block_multiply_shape(most);
            // SAFETY: as above; the bin's rows have up to `most` entries, and the shared
            // memory is what the kernel says.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::BlockMultiply)?, rows::grid(count)?, threads, shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, list, 2 * most as i32,
                    *output)?;
            }
        }
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::ShiftedPattern).rev()) {
            let most = bins.limit(RowBin::ShiftedPattern, bin);
            let shape = self.kernels.shifted_run_shape(&self.device, most);
            // SAFETY: as above; the bin lists the first rows of shifted runs whose rows have
            // up to `most` entries.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::ShiftedPatternMultiply)?, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, statistics.shifted_runs, list, count,
                    most as i32, self.kernels.shifted_run_sums(most) as i32, *output)?;
            }
        }
        let singles = |bin: usize, together: bool| {
            let (list, count) = binned.bin(bin);
            if count == 0 {
                return Ok(());
            }
            let blocks = if together { (count as u64).div_ceil(256) as u32 } else { rows::grid(count)? };
            // SAFETY: as above; each row of the bin has one entry in the left factor, and rows of which a
            // warp processes 32 have few entries.
            unsafe {
                launch_overlapping!(overlap, self.kernels.get(Name::ScaledRowMultiply)?, blocks, 256, 0, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, list, count,
                    i32::from(together), *output)
            }
        };
        let short = RowBin::ScaledRow.bins().start;
        singles(short + 1, false)?;
        self.multiply_small(cx, alpha, job, bins, output, overlap)?;
        singles(short, true)
    }

    /// Returns the limits of the numeric phase's bins, by entries of C.
    fn numeric_bins(&self) -> Bins {
        self.kernels.numeric_bins(self.statistics.distinct)
    }

    /// Computes the rows with hash tables of a team or warp ([`RowBin::Table`]).
    fn multiply_small(
        &self,
        cx: &Context,
        alpha: Scalar,
        job: &Job<'_>,
        bins: Bins,
        output: &Output,
        overlap: &Overlap,
    ) -> Result<()> {
        let Job { left, right, binned, .. } = *job;
        let (left_factor, right_factor) = (Factor::of(&left), Factor::of(&right));
        let threads = rows::WARPS_BLOCK;
        for (bin, list, count) in binned.with_rows(bins.of(RowBin::Table).rev()) {
            let most = bins.limit(RowBin::Table, bin);
            // SAFETY: the patterns have been validated, C has been checked and, like the plan's own arrays,
            // has room for the entries that were counted; the bin's rows have at most `most` entries (32
            // products for the kernel without a table); teams are used only if columns are distinct.
            unsafe {
                if bins.by_teams() {
                    let shape = self.kernels.team_multiply_shape(&self.device, most, count);
                    launch_overlapping!(overlap, self.kernels.get(Name::TeamMultiply)?, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                        left_factor, right_factor, left.values, right.values, alpha, self.part, list, count,
                        shape.lanes, shape.table, *output)?;
                } else if bin == RowBin::Table.bins().start {
                    launch!(self.kernels.get(Name::TinyMultiply)?, rows::warp_blocks(count, threads), threads, 0, cx.stream;
                        left_factor, right_factor, left.values, right.values, alpha, list, count, *output)?;
                } else {
                    let shape = self.kernels.hash_multiply_shape(&self.device, most);
                    launch!(self.kernels.get(Name::HashMultiply)?, shape.blocks(count), shape.threads, shape.shared,
                        cx.stream;
                        left_factor, right_factor, left.values, right.values, alpha, list, count, shape.table,
                        most as i32, *output)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes of `count` elements of `size` bytes; an error if the number overflows.
fn bytes(count: usize, size: usize) -> Result<usize> {
    count.checked_mul(size).ok_or_else(|| Error::out_of_memory(usize::MAX))
}

impl SpgemmExecutor for CudaSpgemm {
    /// Counts the entries of C. If this fails for lack of memory, the bins by products stay, and the call can
    /// be repeated when more memory is free.
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        if let Some(uncounted) = &self.uncounted {
            // The results are stored only when they are complete, so that a failure changes nothing.
            let mut counted = self.count_entries(cx, uncounted)?;
            let (left, right) = self.factors();
            let shape = (left.rows, right.cols, counted.nnz);
            let needed = target::require_room_for_c(&self.problem, shape, &device)?;
            let is_large = |wide: &Wide| wide.bytes() > MOST_KEPT;
            let may_shrink = counted.dense.is_some() || counted.wide.as_ref().is_some_and(is_large);
            if may_shrink && memory::free_bytes()?.0 as u128 <= needed {
                // Memory for C is more important than that for wide rows, which the numeric phase can do
                // without.
                counted.dense = None;
                counted.wide.iter_mut().try_for_each(|wide| wide.shrink(cx))?;
            }
            self.counted = Some(counted);
            self.uncounted = None;
        }
        self.counted.as_ref().map(|counted| counted.nnz).ok_or_else(|| Error::state("plan: not analyzed"))
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        let counted = self.counted.as_ref().ok_or_else(not_counted)?;
        let (left, right) = self.factors();
        let shape = (left.rows, right.cols, counted.nnz);
        let arrays = target::check(&device, &self.problem, self.transposed, c, shape)?;
        let alpha = Scalar::of_argument(cx, "alpha", self.problem.types.compute.scalar(), alpha)?;
        // True if C's compressed dimension is that of the rows that are computed.
        let direct = (c.format() == Format::Csc) == self.transposed;
        let mut kept = self.kept.take().unwrap_or_default();
        let before = kept.known;
        let result = self.write(cx, alpha, &arrays, direct, &mut kept);
        // After a failure the plan keeps what it had before. Buffers that are not kept wait for the stream
        // when they are dropped.
        if self.problem.value_updates && kept.known && (before || result.is_ok()) {
            let settled = kept.settle(cx);
            if settled.is_ok() {
                self.kept = Some(kept);
            }
            return result.and(settled);
        }
        result
    }

    /// Updates A's values first: if B's then fail (out of memory), A's new values stay, and the call can be
    /// repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let cx = &device.call(cx)?;
        let problem = &mut self.problem;
        if !a.is_null() {
            self.a.update_values(cx, (&mut problem.a, problem.op_a), a, "A")?;
        }
        if !b.is_null() {
            self.b.update_values(cx, (&mut problem.b, problem.op_b), b, "B")?;
        }
        Ok(())
    }

    fn reads_values(&self) -> [bool; 2] {
        [&self.a, &self.b].map(|operand| operand.layout().in_place)
    }

    fn layout(&self) -> LayoutInfo {
        let in_place = self.a.layout().in_place && self.b.layout().in_place;
        LayoutInfo { kind: LayoutKind::Csr, in_place, fill: 1.0 }
    }

    fn products(&self) -> i64 {
        self.products
    }

    fn suits_tiles(&self, cx: &Context) -> Result<Option<f64>> {
        let cx = &self.device.call(cx)?;
        let (left, right) = self.factors();
        let Some(binned) = &self.uncounted else { return Ok(None) };
        let bins = self.kernels.symbolic_bins(self.statistics.distinct);
        let (_, wide_rows) = binned.bin(RowBin::DenseWindows.bins().start);
        // Rows that blocks process, with a bitmap or one table.
        let scattered = Self::bitmap_bins(true).chain(bins.of(RowBin::BlockTable));
        let scattered_rows = scattered.map(|bin| binned.bin(bin).1).sum();
        let entries = [left.nnz, right.nnz];
        let statistics = ProductStatistics {
            rows: left.rows,
            wide_rows,
            scattered_rows,
            products: self.products,
            entries,
        };
        // `hash` multiplies nearly dense factors with matrix units, too. The cost of tiles of complex numbers
        // has not been measured.
        let shape = [left.rows, left.cols, right.cols];
        let ratios = self.device.machine().ratios(self.problem.types.compute);
        let is_dense =
            Wanted::expected(shape, entries).is_some_and(|wanted| wanted.panels(&ratios).is_some());
        if !statistics.may_suit_tiles() || is_dense || self.problem.types.y.is_complex() {
            return Ok(None);
        }
        let kernels = tiles::ConvertKernels::new(&self.device, self.problem.types.a)?;
        let count = |rows: &Rows| optional(tiles::count(cx, &kernels, rows)).map(|n| n.unwrap_or(usize::MAX));
        let of_left = count(&left)?;
        let pattern = |rows: &Rows| (rows.offsets, rows.indices, rows.rows);
        let of_right = if pattern(&left) == pattern(&right) { of_left } else { count(&right)? };
        let tiles = [of_left, of_right];
        Ok(statistics.suits_tiles(tiles, &ratios).then(|| statistics.of_pair(tiles)))
    }
}
