//! SpGEMM on a device, algorithm `hash`: C = alpha · op(A) · op(B) by rows
//! (Gustavson 1978). Rows with few entries get a warp each and a hash table in
//! shared memory (kernels/spgemm/hash.cu), the others a block each and a bitmap
//! of columns (kernels/spgemm/window.cu); neither needs memory that grows with
//! the products.
//!
//! build counts the multiplications of each row; symbolic the entries of C, and
//! sorts the rows into bins; numeric only launches, where C is stored by what is
//! computed (rows of C, or with `transposed_product` its columns). Otherwise the
//! rows are put into the plan's memory and transposed. With value updates the
//! columns stay in the plan, and numeric phases after the first do not allocate.
//!
//! - [`rows`]: the factors, bins of rows, kernels and the shape of their launches
//! - [`columns`]: C by columns where rows were computed, or the reverse
//! - [`tile`]: algorithm `tile`, on [`tiles`]

mod columns;
mod rows;
#[cfg(test)]
mod tests;
mod tile;
mod tiles;

use std::marker::PhantomData;
use std::sync::Arc;

use self::columns::Transposition;
use self::rows::{Binned, Bins, Factor, Kernels, Output};
use super::check::blocks;
use super::convert::device_wide;
use super::device::Device;
use super::launch::{launch, Scalar};
use super::memory::{self, DeviceBuffer, Owner};
use super::operand::Operand;
use super::scalars::scalar;
use crate::backend::{Context, LayoutInfo, SpgemmExecutor, SpgemmProblem};
use crate::error::{Error, Result, Status};
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::select::{Choice, Source};
use crate::support::{dispatch, Algorithm, Combo, ComboVisitor};
use crate::types::{Address, Format, IndexType, LayoutKind};

/// Validates A and B, takes them as `choice` says, and counts the
/// multiplications. Blocks. The context is current.
pub fn build(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpgemmProblem,
    choice: &Choice,
) -> Result<Box<dyn SpgemmExecutor>> {
    dispatch(problem.types, Build { cx, device, problem, choice })
}

struct Build<'a> {
    cx: &'a Context,
    device: &'a Arc<Device>,
    problem: &'a SpgemmProblem,
    choice: &'a Choice,
}

impl ComboVisitor for Build<'_> {
    type Output = Box<dyn SpgemmExecutor>;
    fn visit<C: Combo>(self) -> Result<Self::Output> {
        if self.choice.algorithm == Algorithm::Tile {
            let executor = tile::CudaTile::<C>::new(self.cx, self.device, self.problem, self.choice)?;
            return Ok(Box::new(executor));
        }
        let executor = CudaSpgemm::<C>::new(self.cx, self.device, self.problem, self.choice)?;
        Ok(Box::new(executor))
    }
}

/// The executor.
struct CudaSpgemm<C: Combo> {
    device: Arc<Device>,
    problem: SpgemmProblem,
    a: Operand,
    b: Operand,
    /// The product is Cᵀ = op(B)ᵀ · op(A)ᵀ: B is the left factor.
    transposed: bool,
    kernels: Kernels,
    /// What is known of the order of the right factor's columns.
    order: i32,
    products: i64,
    /// Multiplications of each row, until the rows are in bins.
    row_products: Option<DeviceBuffer<i64>>,
    /// Offsets of the rows of the product, and their last.
    counted: Option<(DeviceBuffer<i64>, i64)>,
    binned: Option<Binned>,
    kept: Option<Kept>,
    marker: PhantomData<C>,
}

/// What numeric phases work with; with value updates it stays in the plan.
#[derive(Default)]
struct Kept {
    /// Columns of the product, base 0, as wide as the right factor's.
    columns: Option<DeviceBuffer<u8>>,
    /// The columns have been found.
    known: bool,
    /// Values of the product, to be transposed into C.
    values: Option<DeviceBuffer<u8>>,
    transposition: Option<Transposition>,
    /// Something was allocated since the stream was last waited for.
    fresh: bool,
}

impl Kept {
    fn settle(&mut self, cx: &Context) -> Result<()> {
        if self.fresh {
            memory::synchronize(cx.stream)?;
            self.columns.iter_mut().chain(&mut self.values).for_each(DeviceBuffer::seal);
            self.transposition.iter_mut().for_each(Transposition::seal);
            self.fresh = false;
        }
        Ok(())
    }
}

/// Threads of a row where rows have this mean length.
fn lanes(mean: f64) -> i32 {
    (mean.clamp(1.0, 32.0) as u32).next_power_of_two() as i32
}

/// Blocks of a kernel that works through rows, some threads each.
fn row_blocks(device: &Device, rows: i64, lanes: i32) -> u32 {
    let most = i64::from(device.properties().multiprocessors) * 8;
    ((rows as u64).div_ceil(256 / lanes as u64)).min(most as u64) as u32
}

impl<C: Combo> CudaSpgemm<C> {
    fn new(cx: &Context, device: &Arc<Device>, problem: &SpgemmProblem, choice: &Choice) -> Result<Self> {
        let transposed = choice.transposed_product;
        if transposed && (choice.a, choice.b) != (Source::InPlace, Source::InPlace) {
            return Err(Error::unsupported("A, B: columns of C are computed from arrays in place only"));
        }
        let keep = problem.value_updates;
        let (mut a, a_stats) = Operand::build(cx, device, &problem.a, problem.op_a, choice.a, "A", keep)?;
        let (mut b, b_stats) = Operand::build(cx, device, &problem.b, problem.op_b, choice.b, "B", keep)?;
        let (left, right, left_stats, right_stats) = if transposed {
            (b.rows(), a.rows(), b_stats, a_stats)
        } else {
            (a.rows(), b.rows(), a_stats, b_stats)
        };
        if u32::try_from(left.rows).is_err() {
            return Err(Error::unsupported(format!(
                "C: it has {} rows (columns where those are computed); at most {} are supported",
                left.rows,
                u32::MAX
            )));
        }
        let kernels = Kernels::new(device, problem.types, &right)?;

        let mut row_products = DeviceBuffer::<i64>::new(cx, left.rows as usize)?;
        // Low and high halves of the multiplications, flags of the order.
        let report = DeviceBuffer::<u64>::zeroed(cx, 3)?;
        let (left_factor, right_factor) = (Factor::of(&left), Factor::of(&right));
        let (left_lanes, right_lanes) = (lanes(left_stats.mean()), lanes(right_stats.mean()));
        // SAFETY: the patterns have been validated, and there are `rows`
        // products, two sums and a word of flags.
        unsafe {
            launch!(kernels.products, row_blocks(device, left.rows, left_lanes), 256, 0, cx.stream;
                left_factor, right_factor, left.rows, left_lanes, row_products.address(), report.address())?;
            launch!(kernels.order, row_blocks(device, right.rows, right_lanes), 256, 0, cx.stream;
                right_factor, right.rows, right_lanes, report.at(2))?;
        }
        // Blocks, so that all of the analysis is done.
        let report = report.read(0, 3)?;
        let products = u128::from(report[0]) + (u128::from(report[1]) << 32);
        // Rows are counted up to 2^63 − 1.
        let products = i64::try_from(products).ok().filter(|&count| count < i64::MAX);
        let Some(products) = products else {
            return Err(Error::unsupported("A, B: the product needs more than 2^63 − 1 multiplications"));
        };
        a.seal();
        b.seal();
        row_products.seal();
        Ok(CudaSpgemm {
            device: Arc::clone(device),
            problem: *problem,
            a,
            b,
            transposed,
            kernels,
            order: rows::order(report[2] as u32),
            products,
            row_products: Some(row_products),
            counted: None,
            binned: None,
            kept: None,
            marker: PhantomData,
        })
    }

    /// The left and the right factor.
    fn factors(&self) -> (super::operand::Rows, super::operand::Rows) {
        let (a, b) = (self.a.rows(), self.b.rows());
        if self.transposed {
            (b, a)
        } else {
            (a, b)
        }
    }

    /// Offsets of the rows of the product. Blocks.
    fn count_entries(
        &self,
        cx: &Context,
        row_products: &DeviceBuffer<i64>,
    ) -> Result<(DeviceBuffer<i64>, i64)> {
        let (left, right) = self.factors();
        let rows = left.rows as usize;
        let mut offsets = DeviceBuffer::<i64>::zeroed(cx, rows + 1)?;
        let bins = Bins::SYMBOLIC;
        let binned = Binned::new(cx, &self.device, &self.kernels, bins, row_products, Address::NULL)?;
        let (left, right_factor) = (Factor::of(&left), Factor::of(&right));
        let (list, count) = binned.bin(0);
        let threads = rows::WARPS_BLOCK;
        // SAFETY: the patterns have been validated, the bin lists rows of up to
        // 32 products, and `offsets` has a place for each row.
        unsafe {
            launch!(self.kernels.tiny_count, rows::warp_blocks(count, threads), threads, 0, cx.stream;
                left, right_factor, list, count, offsets.address())?;
        }
        for bin in 1..bins.small() {
            let (list, count) = binned.bin(bin);
            let shape = self.kernels.hash_count_shape(&self.device, bins.limit(bin));
            // SAFETY: as above; the bin lists rows whose products fit the table.
            unsafe {
                launch!(self.kernels.hash_count, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                    left, right_factor, list, count, shape.table, offsets.address())?;
            }
        }
        for (bin, threads) in [(bins.small(), rows::SMALL_BLOCK), (bins.small() + 1, rows::LARGE_BLOCK)] {
            let (list, count) = binned.bin(bin);
            let window = self.kernels.count_window(right.cols, threads);
            // SAFETY: as above; the shared memory is what the kernel says.
            unsafe {
                launch!(self.kernels.window_count, rows::grid(count)?, threads, window.shared, cx.stream;
                    left, right_factor, self.order, right.cols, list, window.bits, offsets.address())?;
            }
        }
        // SAFETY: both are the rows + 1 numbers of `offsets`.
        unsafe { device_wide::exclusive_scan(cx, offsets.address(), offsets.address(), rows + 1)? };
        let nnz = offsets.read(rows, 1)?[0];
        offsets.seal();
        Ok((offsets, nnz))
    }

    /// C must fit the memory that is free, or allocating it would fail, and
    /// would not say how much was wanted.
    fn require_room(&self, nnz: i64) -> Result<()> {
        let (left, right) = self.factors();
        let size =
            |most: i64| if i32::try_from(most).is_ok() { IndexType::I32 } else { IndexType::I64 }.size();
        let entry = self.problem.types.y.size() + size(left.rows.max(right.cols));
        let offsets = (left.rows.min(right.cols) as u128 + 1) * size(nnz) as u128;
        let needed = nnz as u128 * entry as u128 + offsets;
        // The caller may still give memory back, or have C's already: only what
        // the device cannot hold at all is refused.
        let (_, total) = memory::free_bytes()?;
        if needed <= total as u128 {
            return Ok(());
        }
        Err(Error::new(
            Status::InsufficientResources,
            format!(
                "C: its {nnz} entries need at least {needed} bytes of device memory, and the device has {total}"
            ),
        ))
    }

    /// C's arrays. The plan has checked C and its creation that its numbers fit
    /// its index types; what the kernels rely on is checked again.
    fn check(&self, c: &SparseMatrix, nnz: i64) -> Result<Compressed> {
        let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = c.arrays else {
            return Err(Error::unsupported(format!(
                "C: SpGEMM does not write format {}",
                c.format().short()
            )));
        };
        let (left, right) = self.factors();
        let (rows, cols) = if self.transposed { (right.cols, left.rows) } else { (left.rows, right.cols) };
        if c.shape() != (rows, cols, nnz) {
            let (found_rows, found_cols, found) = c.shape();
            return Err(Error::invalid(
                "C",
                format!(
                    "it is {found_rows} × {found_cols} with {found} entries, expected {rows} × {cols} with {nnz}"
                ),
            ));
        }
        if m.value_type != self.problem.types.y {
            let (found, expected) = (m.value_type.short(), self.problem.types.y.short());
            return Err(Error::invalid(
                "C",
                format!("its values are {found}, the plan was created for {expected}"),
            ));
        }
        c.require_arrays("C")?;
        for (array, address) in [("offsets", m.offsets), ("indices", m.indices), ("values", m.values)] {
            let unreadable = !self.device.properties().host_page_tables
                && !address.is_null()
                && memory::owner(address) == Owner::Host;
            if unreadable {
                return Err(Error::invalid(
                    "C",
                    format!(
                        "its {array} are ordinary host memory, which device {} cannot write: expected device, \
                         managed or pinned memory",
                        self.device.ordinal()
                    ),
                ));
            }
        }
        Ok(m)
    }

    /// The numeric phase with this memory, which it fills where it is empty.
    fn write(
        &self,
        cx: &Context,
        alpha: Scalar<C::Acc>,
        c: &Compressed,
        direct: bool,
        kept: &mut Kept,
    ) -> Result<()> {
        let (Some((offsets, nnz)), Some(binned)) = (&self.counted, &self.binned) else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        let (left, right) = self.factors();
        let nnz = *nnz as usize;
        if kept.columns.is_none() && (self.problem.value_updates || !direct) {
            kept.fresh = true;
            kept.columns = Some(DeviceBuffer::new(cx, bytes(nnz, right.index_type.size())?)?);
        }
        if kept.values.is_none() && !direct {
            kept.fresh = true;
            kept.values = Some(DeviceBuffer::new(cx, bytes(nnz, size_of::<C::Y>())?)?);
        }
        let staged = kept.values.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let columns = kept.columns.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let base = i64::from(c.base.code());
        let wide = |index: IndexType| i64::from(index == IndexType::I64);
        let output = Output {
            offsets: offsets.address(),
            columns: if direct { c.indices } else { Address::NULL },
            kept: columns,
            values: if direct { c.values } else { staged },
            wide: wide(c.index_type),
            base,
            known: i64::from(kept.known),
        };
        self.multiply(cx, alpha, binned, &output)?;
        kept.known = kept.columns.is_some();
        if direct {
            let count = left.rows + 1;
            if !c.offsets.is_null() {
                // SAFETY: C has room for the offsets, by its descriptor.
                unsafe {
                    launch!(self.kernels.write_offsets, blocks(&self.device, count), 256, 0, cx.stream;
                        offsets.address(), count, c.offsets, wide(c.offset_type), base)?;
                }
            }
            return Ok(());
        }
        if kept.transposition.is_none() {
            kept.fresh = true;
            let indices = rows::Ints::new(columns, right.index_type);
            let transposition =
                Transposition::new(cx, &self.device, &self.kernels, indices, nnz, right.cols)?;
            kept.transposition = Some(transposition);
        }
        if let Some(transposition) = &kept.transposition {
            let values = (staged, self.problem.types.y.size());
            transposition.write(cx, &self.device, &self.kernels, (offsets, left.rows), values, c)?;
        }
        Ok(())
    }

    /// Launches the kernels of all bins.
    fn multiply(&self, cx: &Context, alpha: Scalar<C::Acc>, binned: &Binned, output: &Output) -> Result<()> {
        let (left, right) = self.factors();
        let (left_factor, right_factor) = (Factor::of(&left), Factor::of(&right));
        let bins = Bins::NUMERIC;
        // The largest rows first: they take longest.
        for (bin, threads) in [(bins.small() + 1, rows::LARGE_BLOCK), (bins.small(), rows::SMALL_BLOCK)] {
            let (list, count) = binned.bin(bin);
            let window = self.kernels.multiply_window(&self.device, right.cols, threads);
            // SAFETY: the patterns have been validated, C has been checked and
            // has room for the entries that were counted, the plan's own arrays
            // as well, and the shared memory is what the kernel says.
            unsafe {
                launch!(self.kernels.window_multiply, rows::grid(count)?, threads, window.shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, self.order, right.cols, list,
                    window.bits, window.room, window.dense, *output)?;
            }
        }
        for bin in (1..bins.small()).rev() {
            let (list, count) = binned.bin(bin);
            let most = bins.limit(bin);
            let shape = self.kernels.hash_multiply_shape(&self.device, most);
            // SAFETY: as above; the bin's rows have at most `most` entries.
            unsafe {
                launch!(self.kernels.hash_multiply, shape.blocks(count), shape.threads, shape.shared, cx.stream;
                    left_factor, right_factor, left.values, right.values, alpha, list, count, shape.table,
                    most as i32, *output)?;
            }
        }
        let (list, count) = binned.bin(0);
        let threads = rows::WARPS_BLOCK;
        // SAFETY: as above; the bin's rows have at most 32 products.
        unsafe {
            launch!(self.kernels.tiny_multiply, rows::warp_blocks(count, threads), threads, 0, cx.stream;
                left_factor, right_factor, left.values, right.values, alpha, list, count, *output)
        }
    }
}

fn bytes(count: usize, size: usize) -> Result<usize> {
    count.checked_mul(size).ok_or_else(|| Error::out_of_memory(usize::MAX))
}

impl<C: Combo> SpgemmExecutor for CudaSpgemm<C> {
    /// Nothing is lost where C does not fit: the count stays, and the call can
    /// be repeated when more memory is free.
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if let Some(row_products) = &self.row_products {
            // Kept only when all is there: a failure leaves what was before.
            let (offsets, nnz) = self.count_entries(cx, row_products)?;
            self.require_room(nnz)?;
            let at = offsets.address();
            let mut binned = Binned::new(cx, &device, &self.kernels, Bins::NUMERIC, row_products, at)?;
            memory::synchronize(cx.stream)?;
            binned.seal();
            self.counted = Some((offsets, nnz));
            self.binned = Some(binned);
            self.row_products = None;
        }
        self.counted.as_ref().map(|(_, nnz)| *nnz).ok_or_else(|| Error::state("plan: not analyzed"))
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        let Some((_, nnz)) = self.counted.as_ref().filter(|_| self.binned.is_some()) else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        let arrays = self.check(c, *nnz)?;
        let alpha = scalar::<C::Acc>(cx, "alpha", alpha)?;
        // C's compressed dimension is that of the rows that are computed.
        let direct = (c.format() == Format::Csc) == self.transposed;
        let mut kept = self.kept.take().unwrap_or_default();
        let before = kept.known;
        let result = self.write(cx, alpha, &arrays, direct, &mut kept);
        // A failure leaves what was there before; what is not kept waits for the
        // stream as it is dropped.
        if self.problem.value_updates && kept.known && (before || result.is_ok()) {
            let settled = kept.settle(cx);
            if settled.is_ok() {
                self.kept = Some(kept);
            }
            return result.and(settled);
        }
        result
    }

    /// A's values first: if B's fail (out of memory), A's new ones stay, and
    /// the call can be repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if !a.is_null() {
            let renewed = self.problem.a.with_values(a);
            self.a.update_values(cx, &renewed, self.problem.op_a, "A")?;
            self.problem.a = renewed;
        }
        if !b.is_null() {
            let renewed = self.problem.b.with_values(b);
            self.b.update_values(cx, &renewed, self.problem.op_b, "B")?;
            self.problem.b = renewed;
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let in_place = self.a.layout().in_place && self.b.layout().in_place;
        LayoutInfo { kind: LayoutKind::Csr, in_place, fill: 1.0 }
    }

    fn products(&self) -> i64 {
        self.products
    }
}
