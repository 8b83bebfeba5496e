//! SpMV `sell`: y = alpha · op(A) · x + beta · y on the slices of
//! src/layout/warp_sell.rs, a warp a slice (kernels/spmv/sell.cu), and how
//! analysis makes them on the device (kernels/convert/sell.cu).

use std::marker::PhantomData;
use std::sync::Arc;

use crate::backend::cuda::check::{bits, blocks};
use crate::backend::cuda::convert::device_wide::{self, Narrow, Pair, WideKeys};
use crate::backend::cuda::convert::{bits_of, bits_of_values, values, Positions};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::backend::cuda::scalars::scalar;
use crate::backend::{Context, LayoutInfo, SpmvExecutor, SpmvProblem, COUNTERS};
use crate::error::{Error, Result};
use crate::layout::narrowing::Form;
use crate::layout::warp_sell::{PartHead, Rules, SliceHead};
use crate::matrix::DenseVector;
use crate::select::{self, Choice, Source};
use crate::support::{Combo, Types};
use crate::types::{Address, DataType, LayoutKind};

const EXECUTE: &str = "spmv/sell";
pub(super) const CONVERT: &str = "convert/sell";
/// Threads of a block, of kernels/spmv/sell.cu and kernels/convert/sell.cu.
const THREADS: u32 = 128;
pub(super) const CONVERT_THREADS: u32 = 256;
const WARP: u32 = 32;

/// Lanes that a multiprocessor runs at one time, as registers have room for.
pub(super) const LANES_OF_MULTIPROCESSOR: usize = 1024;
/// Where values come from: numbers of 4 bytes while they suffice.
pub(super) enum Origins {
    Narrow(DeviceBuffer<u32>),
    Wide(DeviceBuffer<u64>),
}

impl Origins {
    pub(super) fn new(cx: &Context, slots: usize, nnz: i64) -> Result<Self> {
        // All ones are padding's.
        Ok(match u32::try_from(nnz) {
            Ok(_) => Origins::Narrow(DeviceBuffer::new(cx, slots)?),
            Err(_) => Origins::Wide(DeviceBuffer::new(cx, slots)?),
        })
    }

    /// Address, and the type as kernels' names have it.
    pub(super) fn parts(&self) -> (Address, &'static str) {
        match self {
            Origins::Narrow(origins) => (origins.address(), "u32"),
            Origins::Wide(origins) => (origins.address(), "u64"),
        }
    }

    pub(super) fn seal(&mut self) {
        match self {
            Origins::Narrow(origins) => origins.seal(),
            Origins::Wide(origins) => origins.seal(),
        }
    }
}

/// The layout on the device.
pub(super) struct Arrays {
    rules: Rules,
    rows: i64,
    nnz: i64,
    order: DeviceBuffer<u32>,
    heads: DeviceBuffer<SliceHead>,
    parts: DeviceBuffer<PartHead>,
    values: DeviceBuffer<u8>,
    narrow: DeviceBuffer<u16>,
    wide: DeviceBuffer<u32>,
    origins: Option<Origins>,
}

/// Numbers of the windows or slices, and where each one's things start: the
/// exclusive sums, and the total behind them.
pub(super) fn starts(cx: &Context, counts: &DeviceBuffer<i64>) -> Result<i64> {
    // SAFETY: the buffer is on the device of the current context.
    unsafe { device_wide::exclusive_scan(cx, counts.address(), counts.address(), counts.len())? };
    Ok(counts.read(counts.len() - 1, 1)?[0])
}

/// Blocks of kernels that have a warp an item.
pub(super) fn warps(count: i64) -> Result<u32> {
    let per_block = u64::from(CONVERT_THREADS / WARP);
    u32::try_from((count as u64).div_ceil(per_block))
        .ok()
        .filter(|&blocks| blocks <= i32::MAX as u32)
        .ok_or_else(|| Error::unsupported("A: too many slices for one launch"))
}

/// What the kernels run with.
struct Build<'a> {
    cx: &'a Context,
    device: &'a Device,
    rows: &'a Rows,
    rules: Rules,
}

impl Build<'_> {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.device.modules().kernel(CONVERT, name)
    }

    /// Rows by window and descending length, as keys of this width.
    fn sorted<P: Pair<Position = u32>>(
        &self,
        longest: i64,
        length_bits: u32,
        bits: u32,
    ) -> Result<DeviceBuffer<u32>> {
        let (cx, rows) = (self.cx, self.rows);
        let count = rows.rows as usize;
        let keys = [DeviceBuffer::<P::Key>::new(cx, count)?, DeviceBuffer::<P::Key>::new(cx, count)?];
        let numbers = [DeviceBuffer::<u32>::new(cx, count)?, DeviceBuffer::<u32>::new(cx, count)?];
        let kernel = self.kernel(&format!("sell_keys_{}_{}", P::KEY, self.offset_bits()))?;
        // SAFETY: rows + 1 offsets of this type, room for as many keys and
        // numbers as rows.
        unsafe {
            launch!(kernel, blocks(self.device, rows.rows), 256, 0, cx.stream;
                rows.offsets, rows.rows, self.rules.window_log2 as i32, length_bits as i32, longest,
                keys[0].address(), numbers[0].address())?;
        }
        let which =
            device_wide::sort_pairs::<P>(cx, [&keys[0], &keys[1]], [&numbers[0], &numbers[1]], count, bits)?;
        let [first, second] = numbers;
        Ok(if which == 0 { first } else { second })
    }

    fn offset_bits(&self) -> &'static str {
        bits(self.rows.offset_type)
    }

    /// Rows in the order of the slices.
    fn order(&self, stats: &RowStats) -> Result<DeviceBuffer<u32>> {
        let (cx, rows) = (self.cx, self.rows);
        let is_sorted = i128::from(stats.max) * i128::from(rows.rows) == i128::from(rows.nnz);
        let numbers = if is_sorted {
            None
        } else {
            let length_bits = bits_of(stats.max + 1);
            let bits = length_bits + bits_of(((rows.rows - 1) >> self.rules.window_log2) + 1);
            Some(match bits {
                ..=32 => self.sorted::<Narrow>(stats.max, length_bits, bits)?,
                _ => self.sorted::<WideKeys>(stats.max, length_bits, bits)?,
            })
        };
        let order = DeviceBuffer::<u32>::new(cx, rows.rows as usize)?;
        let kernel = self.kernel(&format!("sell_order_{}", self.offset_bits()))?;
        let from = numbers.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        // SAFETY: rows + 1 offsets; `from` holds every row once or is NULL;
        // room for as many places as rows.
        unsafe {
            launch!(kernel, blocks(self.device, rows.rows), 256, 0, cx.stream;
                rows.offsets, from, rows.rows, self.rules.window_log2 as i32, order.address())?;
        }
        Ok(order)
    }

    fn run(
        &self,
        value_type: DataType,
        stats: &RowStats,
        origins: Option<Option<&Positions>>,
    ) -> Result<Arrays> {
        let Build { cx, rows, rules, .. } = *self;
        let order = self.order(stats)?;
        let (window_log2, entries) = (rules.window_log2 as i32, rules.entries as i32);
        let (group_log2, limit_log2) = (rules.group_log2 as i32, rules.limit_log2 as i32);
        let limit = rules.limit() as i64;
        let windows = (rows.rows as u64).div_ceil(1 << rules.window_log2) as i64;
        let counts = || DeviceBuffer::<i64>::zeroed(cx, windows as usize + 1);
        let (slices, parts, long_rows) = (counts()?, counts()?, counts()?);
        let grid = warps(windows)?;
        let kernel = self.kernel(&format!("sell_count_{}", self.offset_bits()))?;
        // SAFETY: rows + 1 offsets, `order` has a place a row, each of the three
        // a number a window.
        unsafe {
            launch!(kernel, grid, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, order.address(), rows.rows, window_log2, entries, group_log2, limit_log2, windows,
                slices.address(), parts.address(), long_rows.address())?;
        }
        let slice_count = starts(cx, &slices)?;
        // Without a long row these are all zeros.
        let has_parts = stats.max > limit;
        let part_count = if has_parts { starts(cx, &parts)? } else { 0 };
        if has_parts && starts(cx, &long_rows)? > COUNTERS as i64 {
            return Err(Error::unsupported(format!(
                "A: algorithm sell takes at most {COUNTERS} rows of more than {limit} entries"
            )));
        }

        let heads = DeviceBuffer::<SliceHead>::new(cx, slice_count as usize)?;
        let part_heads = DeviceBuffer::<PartHead>::new(cx, part_count as usize)?;
        let steps = DeviceBuffer::<i64>::zeroed(cx, slice_count as usize + 1)?;
        let kernel = self.kernel(&format!("sell_heads_{}", self.offset_bits()))?;
        // SAFETY: as above; the counts say how many heads, parts and numbers of
        // steps come out.
        unsafe {
            launch!(kernel, grid, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, order.address(), rows.rows, window_log2, entries, group_log2, limit_log2, windows,
                slices.address(), parts.address(), long_rows.address(),
                heads.address(), part_heads.address(), steps.address())?;
        }
        let step_count = starts(cx, &steps)?;
        if step_count > i64::from(u32::MAX) {
            return Err(Error::unsupported("A: algorithm sell numbers steps of 64 entries by 32 bits"));
        }
        let wide_steps = DeviceBuffer::<i64>::zeroed(cx, slice_count as usize + 1)?;
        let grid = warps(slice_count)?;
        let kernel = self.kernel(&format!("sell_measure_{}", rows.widths()))?;
        // SAFETY: as above, with nnz columns of this type.
        unsafe {
            launch!(kernel, grid, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, order.address(), part_heads.address(), rows.rows,
                window_log2, entries, group_log2, limit_log2, slice_count, steps.address(), heads.address(),
                wide_steps.address())?;
        }
        drop((slices, parts, long_rows, steps));
        let wide_count = starts(cx, &wide_steps)? as usize;

        let slots = step_count as usize * rules.step();
        let value_bytes = if rows.values.is_null() { 0 } else { value_type.size() };
        let values = DeviceBuffer::<u8>::new(cx, slots.saturating_mul(value_bytes))?;
        let narrow = DeviceBuffer::<u16>::new(cx, slots)?;
        let wide = DeviceBuffer::<u32>::new(cx, wide_count * rules.step())?;
        let (origins, from) = match origins {
            None => (None, Address::NULL),
            Some(positions) => {
                let from = match positions {
                    Some(Positions::Kept(positions)) => positions.address(),
                    _ => Address::NULL,
                };
                (Some(Origins::new(cx, slots, rows.nnz)?), from)
            }
        };
        let (to, position) = origins.as_ref().map_or((Address::NULL, "u32"), Origins::parts);
        let name = format!("sell_fill_{}_{}_{position}", bits_of_values(value_type)?, rows.widths());
        let kernel = self.kernel(&name)?;
        // SAFETY: as above; values (both arrays or none) and columns have 64 slots a
        // step, `wide` as many for the steps of wide slices, positions as many as
        // values, and `from` a position an entry.
        unsafe {
            launch!(kernel, grid, CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, order.address(), part_heads.address(),
                rows.rows, window_log2, entries, group_log2, limit_log2, slice_count, wide_steps.address(),
                heads.address(), values.address(), narrow.address(), wide.address(), from, to)?;
        }
        memory::synchronize(cx.stream)?;
        let parts = part_heads;
        let (rows, nnz) = (rows.rows, rows.nnz);
        let mut out = Arrays { rules, rows, nnz, order, heads, parts, values, narrow, wide, origins };
        out.seal();
        Ok(out)
    }
}

impl Arrays {
    /// Makes the layout of rows that have been validated; without `rows.values`
    /// none are stored. `origins`: updates will come, whose values are at these
    /// positions. Blocks.
    pub(super) fn build(
        cx: &Context,
        device: &Device,
        rows: &Rows,
        stats: &RowStats,
        rules: Rules,
        value_type: DataType,
        origins: Option<Option<&Positions>>,
    ) -> Result<Self> {
        if rows.rows == 0 {
            return Ok(Arrays {
                rules,
                rows: 0,
                nnz: 0,
                order: DeviceBuffer::new(cx, 0)?,
                heads: DeviceBuffer::new(cx, 0)?,
                parts: DeviceBuffer::new(cx, 0)?,
                values: DeviceBuffer::new(cx, 0)?,
                narrow: DeviceBuffer::new(cx, 0)?,
                wide: DeviceBuffer::new(cx, 0)?,
                origins: origins.map(|_| Origins::new(cx, 0, 0)).transpose()?,
            });
        }
        Build { cx, device, rows, rules }.run(value_type, stats, origins)
    }

    fn seal(&mut self) {
        self.order.seal();
        self.heads.seal();
        self.parts.seal();
        self.values.seal();
        self.narrow.seal();
        self.wide.seal();
        if let Some(origins) = &mut self.origins {
            origins.seal();
        }
    }

    fn slots(&self) -> usize {
        self.narrow.len()
    }
}

/// The executor.
pub(super) struct SellSpmv<C: Combo> {
    device: Arc<Device>,
    problem: SpmvProblem,
    arrays: Arrays,
    /// Of the stored values.
    form: Form,
    kernel: Kernel,
    refill: Kernel,
    combo: PhantomData<C>,
}

/// How the device cuts rows of this many entries, with values of so many bytes.
fn rules(device: &Device, stats: &RowStats, value_bytes: usize) -> Rules {
    let lanes = device.properties().multiprocessors as usize * LANES_OF_MULTIPROCESSOR;
    Rules::new(stats.rows as usize, stats.nnz as usize, value_bytes, lanes, COUNTERS)
}

/// The layout, the form of its values and the kernel that reads them.
fn arrange(cx: &Context, device: &Arc<Device>, problem: &SpmvProblem) -> Result<(Arrays, Form, Kernel)> {
    let value_type = problem.types.a;
    let (a, op) = (&problem.a, problem.op);
    // Rows that lie in the user's arrays need no copy on the way.
    let source = if select::in_place(a, op) { Source::InPlace } else { Source::Canonical };
    let (operand, stats) = Operand::build(cx, device, a, op, source, "A", problem.value_updates)?;
    let mut rows = operand.rows();
    let form = match problem.value_updates {
        // What fits now need not fit then.
        true => Form::Full,
        false => values::narrowest(cx, device, rows.values, rows.nnz, value_type)?,
    };
    let narrowed = values::narrowed(cx, device, rows.values, rows.nnz, value_type, form)?;
    if let Some(values) = &narrowed {
        rows.values = values.address();
    }
    let rules = rules(device, &stats, form.bytes(value_type));
    let origins = problem.value_updates.then_some(match &operand {
        Operand::InPlace(_) => None,
        Operand::Canonical(copy) => Some(copy.positions()),
    });
    let stored = form.stored(value_type).unwrap_or(value_type);
    let arrays = Arrays::build(cx, device, &rows, &stats, rules, stored, origins)?;
    let name = format!("spmv_sell_{}_{}", 1 << rules.group_log2, kernel_types(problem.types, form));
    Ok((arrays, form, device.modules().kernel(EXECUTE, &name)?))
}

/// The part of the kernel's name that says what it reads and writes.
fn kernel_types(types: Types, form: Form) -> String {
    // What A's values were before is no matter to a kernel of another form.
    let vectors = crate::backend::cuda::types_name(Types { a: types.x, ..types });
    match form {
        Form::Full => crate::backend::cuda::types_name(types),
        Form::Single => crate::backend::cuda::types_name(Types { a: DataType::R32F, ..types }),
        Form::Half => format!("half_{vectors}"),
        Form::Ones => format!("ones_{vectors}"),
    }
}

impl<C: Combo> SellSpmv<C> {
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpmvProblem,
        _choice: &Choice,
    ) -> Result<Self> {
        let (arrays, form, kernel) = arrange(cx, device, problem)?;
        let position = arrays.origins.as_ref().map_or("u32", |origins| origins.parts().1);
        let refill = format!("refill_{}_{position}", bits_of_values(C::TYPES.a)?);
        let refill = device.modules().kernel(CONVERT, &refill)?;
        Ok(SellSpmv {
            device: Arc::clone(device),
            problem: *problem,
            arrays,
            form,
            kernel,
            refill,
            combo: PhantomData,
        })
    }
}

impl<C: Combo> SpmvExecutor for SellSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.arrays.parts.len() * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        let _entered = self.device.enter()?;
        let alpha = scalar::<C::Acc>(cx, "alpha", alpha)?;
        let beta = scalar::<C::Acc>(cx, "beta", beta)?;
        cx.workspace.require(self.workspace_bytes())?;
        let Arrays { rules, rows, order, heads, parts, values, narrow, wide, .. } = &self.arrays;
        let slices = heads.len() as i64;
        let blocks = (slices as u64).div_ceil(u64::from(THREADS / WARP)) as u32;
        // SAFETY: analysis has made the arrays; the descriptors promise x and y
        // of these sizes until the stream has run the kernel, the plan that they
        // do not overlap; `require` has checked the workspace, and the handle
        // lends it and its counters, of which each long row has one, to one call
        // at a time.
        unsafe {
            launch!(self.kernel, blocks, THREADS, 0, cx.stream;
                slices, *rows, heads.address(), order.address(), values.address(), narrow.address(),
                wide.address(), parts.address(), x.values, y.values, alpha, beta,
                rules.window_log2 as i32, cx.workspace.address, cx.counters)
        }
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        let a = self.problem.a.with_values(values);
        let problem = SpmvProblem { a, ..self.problem };
        match &self.arrays.origins {
            Some(origins) => {
                let slots = self.arrays.slots() as i64;
                let conjugate = problem.op.conjugates() && a.value_type().is_complex();
                let blocks = blocks(&self.device, slots);
                // SAFETY: a position of the user's values, or padding, a slot.
                unsafe {
                    launch!(self.refill, blocks, 256, 0, cx.stream;
                        values, origins.parts().0, slots, i32::from(conjugate), self.arrays.values.address())?;
                }
            }
            None => (self.arrays, self.form, self.kernel) = arrange(cx, &self.device, &problem)?,
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let fill = match self.arrays.nnz {
            0 => 1.0,
            nnz => self.arrays.slots() as f64 / nnz as f64,
        };
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill }
    }

    fn details(&self) -> String {
        self.form.describe().to_string()
    }
}

#[cfg(test)]
mod narrowing_tests;
#[cfg(test)]
mod tests;
