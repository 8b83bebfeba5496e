//! SpMV algorithm `sell`: y = alpha · op(A) · x + beta · y on the slices of src/format/warp_sell.rs, with one
//! warp per slice, or per two slices with [`PAIRS`] (kernels/spmv/sell.cu). Analysis makes the slices on the
//! device (kernels/format/sell.cu and sell_fill.cu).

use super::inspection::{self, InspectedMatrix, StorageProperties};
use super::SpmvLayout;
use crate::backend::cuda::convert::values::{self, Gather};
use crate::backend::cuda::convert::{bits_of_values, origins_address, Origins};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{blocks_of_grid, launch_early, launch_product, Kernel};
use crate::backend::cuda::layouts::{kernel_structs, same_elements};
use crate::backend::cuda::memory::{filled_from, filled_members, DeviceBuffer, Fill, Numbers, Readback};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats, Rows, Widths};
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::backend::LayoutInfo;
use crate::error::{Error, Result};
use crate::format::fill_ratio;
use crate::format::narrowing::Form;
use crate::format::warp_sell::{Rules, SliceHead, BLOCK_PARTS};
use crate::matrix::DenseVector;
use crate::memory::{Context, SLOTS};
use crate::problem::SpmvProblem;
use crate::select::grids;
use crate::select::spmv::hot_sell::DEMANDS;
use crate::select::spmv::sell as select;
use crate::support::Types;
use crate::types::{Address, DataType, IndexType, LayoutKind, Operation};

same_elements!(SliceHead = "format/warp_sell.cuh SliceHead" { first, columns, base, place, row, window, steps, length, lanes_log2, items, flags });

pub(super) const CONVERT: &str = "format/sell";
/// Threads of a block, of kernels/spmv/sell.cu and of kernels/format/sell.cu.
const THREADS: u32 = 128;
pub(super) const CONVERT_THREADS: u32 = 256;
pub(super) const WARP: u32 = 32;

kernel_kinds! {
    "spmv/sell" {
        pub(crate) PRODUCT(String, usize, usize) = "product"
            for [stored_types(), [2], [1]], [real_stored_types(), [2], [2, 3]], [real_stored_types(), [4], [1]];
        PAIRS(String) = "pairs" for [paired_types()];
    }
    "format/sell" {
        ORDER(IndexType) = "order" for [index_types()];
        HEADS(IndexType) = "heads" for [index_types()];
        MEASURE(Widths) = "measure" for [widths()];
    }
    "format/sell_fill" {
        FILL(&'static str, Widths, &'static str) = "fill"
            for [BITS, widths(), ["32"]], [BITS, wide_offsets(), ["64"]];
    }
}

/// Allocates the positions that a layout keeps if values will be updated, which are all ones for padding.
/// Also returns the address of the positions of entries in the
/// user's array; NULL if entries have their own positions.
pub(super) fn origins_of(
    cx: &Context,
    slots: usize,
    nnz: i64,
    wanted: Origins<'_>,
) -> Result<(Option<Numbers>, Address)> {
    let origins = wanted.map(|_| Numbers::new(cx, slots, u32::try_from(nnz).is_err()));
    Ok((origins.transpose()?, origins_address(wanted)))
}

/// Address of the positions that a layout keeps, or NULL, and bits of a position.
pub(super) fn address_and_bits(origins: Option<&Numbers>) -> (Address, &'static str) {
    origins.map_or((Address::NULL, "32"), |origins| (origins.address(), origins.bits()))
}

/// Way in which a layout takes new values: by the positions that it keeps.
pub(crate) struct Refill {
    gather: Gather,
    conjugate: bool,
}

impl Refill {
    /// Loads the kernel for a layout with these positions, if it has any.
    pub(crate) fn new(
        device: &Device,
        (op, value_type): (Operation, DataType),
        origins: Option<&Numbers>,
    ) -> Result<Self> {
        let gather = Gather::load(device, value_type, address_and_bits(origins).1)?;
        Ok(Refill { gather, conjugate: op.conjugates() && value_type.is_complex() })
    }

    /// Enqueues gathering new values of op(A) from the user's array into the slots of the layout; returns false if
    /// it has no positions.
    pub(crate) fn run(
        &self,
        cx: &DeviceCall<'_>,
        (values, origins): (Address, Option<&Numbers>),
        (slots, to): (usize, Address),
    ) -> Result<bool> {
        let Some(origins) = origins else { return Ok(false) };
        let from = (values, origins.address());
        self.gather.launch(cx, from, self.conjugate, (slots as i64, to))?;
        Ok(true)
    }
}

/// Layout `warp_sell` on the device.
pub(crate) struct Arrays {
    pub(crate) rules: Rules,
    pub(crate) rows: i64,
    pub(crate) nnz: i64,
    /// Number of slices in `heads`, which has room for more.
    pub(crate) slices: usize,
    /// Number of thread blocks for split rows, whose pieces are the first slices.
    pub(crate) blocks: usize,
    /// Number of slots for values.
    pub(crate) slots: usize,
    pub(crate) order: DeviceBuffer<u32>,
    pub(crate) heads: DeviceBuffer<SliceHead>,
    pub(crate) values: DeviceBuffer<u8>,
    pub(crate) narrow: DeviceBuffer<u16>,
    pub(crate) wide: DeviceBuffer<u32>,
    /// Array `positions` of the layout; `None` if values will not be updated.
    pub(crate) origins: Option<Numbers>,
}

/// Number of thread blocks of [`CONVERT_THREADS`] that give each of `count` slices or other items a warp.
pub(super) fn blocks_of_warps(count: i64) -> Result<u32> {
    let per_block = u64::from(CONVERT_THREADS / WARP);
    blocks_of_grid((count as u64).div_ceil(per_block), "A: too many slices for one launch")
}

/// Numbers of the arrays of counts per window, in their order in memory (`Counts` of the kernels).
mod count {
    pub const SLICES: usize = 0;
    pub const BLOCKS: usize = 1;
    pub const VALUES: usize = 2;
    pub const NARROW: usize = 3;
    pub const WIDE: usize = 4;
    /// Number of arrays whose totals the host needs. The array behind them has the items of each window.
    pub const TOTALS: usize = 5;
    pub const ARRAYS: usize = 6;
}

kernel_structs! {
    /// Number of rows and of windows, and [`Rules`], laid out as the kernels' `Rules`.
    struct RowRules = "format/sell.cuh Rules" {
        rows: i64,
        windows: i64,
        window: i32,
        item_rows: i32,
        entries: i32,
        group_log2: i32,
        limit_log2: i32,
        halves: i32,
    }
}

impl RowRules {
    fn new(rows: i64, rules: &Rules) -> Self {
        RowRules {
            rows,
            windows: (rows as usize).div_ceil(rules.window) as i64,
            window: rules.window as i32,
            item_rows: rules.item_rows as i32,
            entries: rules.entries as i32,
            group_log2: rules.group_log2 as i32,
            limit_log2: rules.limit_log2 as i32,
            halves: i32::from(rules.halves),
        }
    }
}

/// Slices whose heads the device is making. The arrays of columns and values are still missing: their sizes are being
/// counted.
pub(crate) struct BegunSlices {
    pub(crate) rules: Rules,
    counts: DeviceBuffer<i64>,
    order: DeviceBuffer<u32>,
    heads: DeviceBuffer<SliceHead>,
    sums: Readback,
}

impl BegunSlices {
    /// Waits until the device has made the heads, and returns their memory to the library's cache. Blocks.
    pub(super) fn discard(mut self, cx: &Context) {
        if self.sums.wait(cx).is_ok() {
            self.mark_filled();
        }
    }
}
filled_members!(BegunSlices { counts, order, heads });

/// Call and rows for the kernels of the conversion.
struct Build<'a> {
    cx: &'a DeviceCall<'a>,
    rows: &'a Rows,
}

impl Build<'_> {
    /// Enqueues making the heads of all slices and counting what the other arrays need. `same` is as for
    /// [`Arrays::build`].
    fn begin(&self, rules: Rules, same: Option<&DeviceBuffer<u8>>) -> Result<BegunSlices> {
        /// Words of the page in which a kernel counts its finished blocks.
        const ARRIVED: [usize; 2] = [0, 1];
        let Build { cx, rows } = *self;
        let row_rules = RowRules::new(rows.rows, &rules);
        let windows = row_rules.windows as usize;
        let grid = blocks_of_grid(windows, "A: too many rows for one launch")?;
        let most_slices = rules.most_slices(rows.rows as usize, rows.nnz as usize);
        let counts = DeviceBuffer::<i64>::new(cx, count::ARRAYS * (windows + 1))?;
        let order = DeviceBuffer::<u32>::new(cx, rows.rows as usize)?;
        let heads = DeviceBuffer::<SliceHead>::new(cx, most_slices)?;
        let sums = Readback::take(cx)?;

        let kernel = ORDER.load(cx.device, (rows.offset_type,))?;
        let same = same.map_or(Address::NULL, DeviceBuffer::address);
        // SAFETY: there are rows + 1 offsets, one byte per row if items may have several rows, one element of
        // the order per row, windows + 1 numbers in each array of counts, and a counter in the page.
        unsafe {
            launch_early!(true, kernel, (grid, 1), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, same, row_rules, order.address(), counts.address(), sums.restored(ARRIVED[0]))?;
        }
        let kernel = HEADS.load(cx.device, (rows.offset_type,))?;
        // SAFETY: as above; the rules bound the number of slices.
        unsafe {
            launch_early!(true, kernel, (grid, 1), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, order.address(), row_rules, counts.address(), heads.address())?;
        }
        let kernel = MEASURE.load(cx.device, (rows.widths(),))?;
        // SAFETY: as above, with nnz columns of this type.
        unsafe {
            let grid = blocks_of_warps(most_slices as i64)?;
            launch_early!(true, kernel, (grid, 1), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, order.address(), row_rules, counts.address(),
                heads.address())?;
        }
        let kernel = cx.device.modules().kernel(CONVERT, "sell_columns")?;
        let grid = grids::of_rows(windows as i64, WARP as i32, cx.device.properties().multiprocessors);
        let arrived = sums.restored(ARRIVED[1]);
        // SAFETY: as above; the page has room for the totals on the host.
        unsafe {
            launch_early!(true, kernel, (grid, 1), CONVERT_THREADS, 0, cx.stream;
                row_rules, counts.address(), heads.address(), arrived, sums.host(0), sums.arrival())?;
        }
        Ok(BegunSlices { rules, counts, order, heads, sums })
    }

    /// Waits for the counts, and makes the arrays of columns and values. Blocks.
    fn finish(&self, begun: BegunSlices, value_type: DataType, origins: Origins<'_>) -> Result<Arrays> {
        let Build { cx, rows } = *self;
        let BegunSlices { rules, counts, order, heads, mut sums } = begun;
        let sums = &sums.wait(cx)?[..count::TOTALS];
        if sums[count::BLOCKS] > SLOTS as u64 {
            return Err(Error::unsupported(format!(
                "A: algorithm sell deals rows of more than {} entries to at most {SLOTS} thread blocks",
                rules.limit()
            )));
        }
        if sums.iter().any(|&sum| sum > u64::from(u32::MAX)) {
            return Err(Error::unsupported("A: algorithm sell counts groups of 32 values by 32 bits"));
        }
        let slice_count = sums[count::SLICES] as usize + sums[count::BLOCKS] as usize * BLOCK_PARTS;
        debug_assert!(slice_count <= heads.len());
        let slots = |which: usize| sums[which] as usize * WARP as usize;
        let value_bytes = if rows.values.is_null() { 0 } else { value_type.size() };
        let values = DeviceBuffer::<u8>::new(cx, slots(count::VALUES).saturating_mul(value_bytes))?;
        let narrow = DeviceBuffer::<u16>::new(cx, slots(count::NARROW))?;
        let wide = DeviceBuffer::<u32>::new(cx, slots(count::WIDE))?;
        let (origins, from) = origins_of(cx, slots(count::VALUES), rows.nnz, origins)?;
        let (to, position) = address_and_bits(origins.as_ref());
        let kernel = FILL.load(cx.device, (bits_of_values(value_type)?, rows.widths(), position))?;
        let row_rules = RowRules::new(rows.rows, &rules);
        // SAFETY: the heads are of these rows; the sums say how much room values (both arrays or none) and columns
        // take; there are as many positions as values, and `from` has one position per entry.
        unsafe {
            launch_early!(true, kernel, (blocks_of_warps(slice_count as i64)?, 1), CONVERT_THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, order.address(), row_rules,
                slice_count as i64, counts.address(), heads.address(), values.address(), narrow.address(),
                wide.address(), from, to)?;
        }
        let out = Arrays {
            rules,
            rows: rows.rows,
            nnz: rows.nnz,
            slices: slice_count,
            blocks: sums[count::BLOCKS] as usize,
            slots: slots(count::VALUES),
            order,
            heads,
            values,
            narrow,
            wide,
            origins,
        };
        filled_from(cx, out, counts)
    }
}

impl Arrays {
    /// Makes the layout of rows that have been validated and have these properties. Blocks.
    fn build_from(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        rules: Rules,
        properties: &StorageProperties,
        value_type: DataType,
        origins: Origins<'_>,
    ) -> Result<Self> {
        match properties.begun.take().filter(|begun| begun.rules == rules) {
            Some(begun) => Build { cx, rows }.finish(begun, value_type, origins),
            None => Self::build(cx, rows, rules, properties.same.as_ref(), value_type, origins),
        }
    }

    /// Makes the layout of rows that have been validated. `same` marks the rows with the columns of the row
    /// before, which is needed if items may have several rows. Without `rows.values` no values are stored.
    /// Blocks.
    pub(super) fn build(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        rules: Rules,
        same: Option<&DeviceBuffer<u8>>,
        value_type: DataType,
        origins: Origins<'_>,
    ) -> Result<Self> {
        if rows.rows == 0 {
            return Ok(Arrays {
                rules,
                rows: 0,
                nnz: 0,
                slices: 0,
                blocks: 0,
                slots: 0,
                order: DeviceBuffer::new(cx, 0)?,
                heads: DeviceBuffer::new(cx, 0)?,
                values: DeviceBuffer::new(cx, 0)?,
                narrow: DeviceBuffer::new(cx, 0)?,
                wide: DeviceBuffer::new(cx, 0)?,
                origins: origins_of(cx, 0, 0, origins)?.0,
            });
        }
        debug_assert!(rules.item_rows == 1 || same.is_some());
        let build = Build { cx, rows };
        build.finish(build.begin(rules, same)?, value_type, origins)
    }
}
filled_members!(Arrays { order, heads, values, narrow, wide, origins });

/// Layout and kernel of SpMV `sell`.
pub(super) struct SellSpmv {
    arrays: Arrays,
    /// Form in which the values are stored.
    form: Form,
    launch: Launch,
    refill: Refill,
}

/// Kernel that reads the layout, and the slices that a warp takes.
struct Launch {
    kernel: Kernel,
    slices_of_warp: u64,
}

/// Makes the layout, chooses the form of its values and loads the kernel that reads them.
fn make_arrays(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    inspected: Option<&InspectedMatrix>,
) -> Result<(Arrays, Form, Launch)> {
    let mine = if inspected.is_none() { inspection::inspect_if_in_place(cx, problem)? } else { None };
    let inspected = inspected.or(mine.as_ref());
    with_properties(cx, (problem, problem), inspected, |operand, stats, properties| {
        arrays_of_rows(cx, problem, operand, stats, properties)
    })
}

/// Calls `f` with the rows of the first problem, and with the properties that they have for the second one. `f` waits
/// for the work that it enqueues.
fn with_properties<R>(
    cx: &DeviceCall<'_>,
    (problem, inspected_for): (&SpmvProblem, &SpmvProblem),
    inspected: Option<&InspectedMatrix>,
    f: impl FnOnce(&Operand, &RowStats, &StorageProperties) -> Result<R>,
) -> Result<R> {
    let (operand, stats) = inspection::operand(cx, problem, inspected, inspection::nearest(problem))?;
    match inspected {
        Some(inspected) => f(&operand, &stats, inspected.properties()),
        // A copy can be inspected only after it has been made.
        None => {
            let mut properties = StorageProperties::of_rows(cx, inspected_for, &operand.rows())?;
            let made = f(&operand, &stats, &properties)?;
            properties.mark_filled();
            Ok(made)
        }
    }
}

fn arrays_of_rows(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    operand: &Operand,
    stats: &RowStats,
    properties: &StorageProperties,
) -> Result<(Arrays, Form, Launch)> {
    let (value_type, form) = (problem.types.a, properties.form);
    let mut rows = operand.rows();
    let narrowed = values::narrowed(cx, rows.values, rows.nnz, value_type, form)?;
    if let Some(values) = &narrowed {
        rows.values = values.address();
    }
    let rules = rules_of(cx, value_type, &rows, properties);
    let types = kernel_types(problem.types, form);
    let pairs = select::takes_pairs(
        &rules,
        stats.rows as usize,
        stats.max as usize,
        form.bytes(value_type),
        problem.types.x.size(),
        lanes_of(cx),
    );
    let kernel = match pairs {
        true => PAIRS.load(cx.device, (types,))?,
        false => PRODUCT.load(cx.device, (types, rules.group(), rules.item_rows))?,
    };
    let origins = operand.origins(problem.value_updates);
    let stored = form.stored(value_type).unwrap_or(value_type);
    let arrays = Arrays::build_from(cx, &rows, rules, properties, stored, origins)?;
    Ok((arrays, form, Launch { kernel, slices_of_warp: 1 + u64::from(pairs) }))
}

/// Number of lanes that the device runs at one time.
fn lanes_of(cx: &DeviceCall<'_>) -> usize {
    select::lanes_at_once(cx.device.properties().multiprocessors as usize)
}

/// Rules of the slices for SpMV.
fn rules_of(
    cx: &DeviceCall<'_>,
    value_type: DataType,
    rows: &Rows,
    &StorageProperties { form, shared, adjacent, .. }: &StorageProperties,
) -> Rules {
    let (count, nnz, bytes) = (rows.rows as usize, rows.nnz as usize, form.bytes(value_type));
    let is_adjacent = adjacent && !value_type.is_complex();
    select::rules(count, nnz, bytes, lanes_of(cx), SLOTS, shared, is_adjacent)
}

/// Enqueues the part of a conversion of rows that are valid and in place that needs neither the choice of an algorithm nor the
/// values, so that the device works while the host chooses. Returns `None` where slices are not likely to be chosen.
pub(super) fn begin(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    rows: &Rows,
    properties: &StorageProperties,
) -> Result<Option<BegunSlices>> {
    // Layouts number rows and columns by 32 bits, and large matrices may have hot columns.
    let is_likely = rows.rows > 0
        && rows.rows.max(rows.cols) <= i64::from(i32::MAX)
        && !DEMANDS.has_size(rows.nnz, (rows.cols, problem.types.x.size()));
    let begin = || {
        let rules = rules_of(cx, problem.types.a, rows, properties);
        Build { cx, rows }.begin(rules, properties.same.as_ref())
    };
    is_likely.then(begin).transpose()
}

/// Rules of the slices for products with several columns.
fn rules_for_columns(
    cx: &DeviceCall<'_>,
    value_type: DataType,
    rows: &Rows,
    properties: &StorageProperties,
) -> Rules {
    let (count, nnz, bytes) = (rows.rows as usize, rows.nnz as usize, value_type.size());
    select::rules_for_columns(count, nnz, bytes, lanes_of(cx), SLOTS, properties.shared)
}

/// Does the same as [`begin`] for products with several columns, where marks of rows exist only if 32 bits number rows
/// and columns, and there are no hot columns.
pub(crate) fn begin_for_columns(
    cx: &DeviceCall<'_>,
    value_type: DataType,
    rows: &Rows,
    properties: &StorageProperties,
) -> Result<Option<BegunSlices>> {
    let begin = || {
        let rules = rules_for_columns(cx, value_type, rows, properties);
        Build { cx, rows }.begin(rules, properties.same.as_ref())
    };
    (rows.rows > 0).then(begin).transpose()
}

/// Makes the layout for products with several columns: values in the user's type, and V = 2. `checked` are the
/// rows of op(A), in any order of their columns, if they have been validated, with their `properties` if these are
/// known. Blocks.
pub(crate) fn for_columns(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    checked: Option<(Operand, RowStats)>,
    properties: Option<StorageProperties>,
) -> Result<Arrays> {
    // Pretending that values will be updated skips their inspection.
    let as_they_are = SpmvProblem { value_updates: true, ..*problem };
    let make = |operand: &Operand, _: &RowStats, properties: &StorageProperties| {
        let (rows, origins) = (operand.rows(), operand.origins(problem.value_updates));
        let rules = rules_for_columns(cx, problem.types.a, &rows, properties);
        Arrays::build_from(cx, &rows, rules, properties, problem.types.a, origins)
    };
    if let Some((operand, stats)) = checked {
        let mut properties = match properties {
            Some(known) => known,
            None => StorageProperties::of_rows(cx, &as_they_are, &operand.rows())?,
        };
        let arrays = make(&operand, &stats, &properties)?;
        properties.mark_filled();
        return Ok(arrays);
    }
    let inspected = inspection::check_if_in_place(cx, &as_they_are)?;
    with_properties(cx, (problem, &as_they_are), inspected.as_ref(), make)
}

/// Makes the layout and returns each of its arrays as bytes, the form of the values, and the rules.
#[cfg(test)]
pub(super) fn arrays_of(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    inspected: Option<&InspectedMatrix>,
) -> Result<(Vec<Vec<u8>>, Form, Rules)> {
    let (arrays, form, _) = make_arrays(cx, problem, inspected)?;
    Ok((arrays.contents(), form, arrays.rules))
}

#[cfg(test)]
impl Arrays {
    /// Returns each of the arrays as bytes.
    pub(crate) fn contents(&self) -> Vec<Vec<u8>> {
        fn bytes<T: bytemuck::Pod>(array: &DeviceBuffer<T>, count: usize) -> Vec<u8> {
            bytemuck::cast_slice(&array.read(0, count).unwrap()).to_vec()
        }
        let Arrays { order, heads, values, narrow, wide, .. } = self;
        let origins = match &self.origins {
            None => Vec::new(),
            Some(Numbers::Narrow(origins)) => bytes(origins, origins.len()),
            Some(Numbers::Wide(origins)) => bytes(origins, origins.len()),
        };
        vec![
            bytes(order, order.len()),
            bytes(heads, self.slices),
            bytes(values, values.len()),
            bytes(narrow, narrow.len()),
            bytes(wide, wide.len()),
            origins,
        ]
    }
}

/// Types that a kernel reads and writes, as the names of kernels spell them.
pub(in crate::backend::cuda) fn kernel_types(types: Types, form: Form) -> String {
    // The type of A's original values does not matter to a kernel for another form.
    let vectors = types_name(Types { a: types.x, ..types });
    match form {
        Form::Full => types_name(types),
        Form::Single => types_name(Types { a: DataType::R32F, ..types }),
        Form::Half => format!("half_{vectors}"),
        Form::Ones => format!("ones_{vectors}"),
    }
}

impl SpmvLayout for SellSpmv {
    const READS_ELSEWHERE: bool = true;

    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self> {
        let (arrays, form, launch) = make_arrays(cx, problem, inspected)?;
        let refill = Refill::new(cx.device, (problem.op, problem.types.a), arrays.origins.as_ref())?;
        Ok(SellSpmv { arrays, form, launch, refill })
    }

    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let to = (self.arrays.slots, self.arrays.values.address());
        self.refill.run(cx, (values, self.arrays.origins.as_ref()), to)
    }

    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        _: Types,
        (alpha, beta): (Scalar, Scalar),
        [x, old, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let Arrays { rows, order, heads, values, narrow, wide, .. } = &self.arrays;
        let slices = self.arrays.slices as i64;
        let of_block = u64::from(THREADS / WARP) * self.launch.slices_of_warp;
        let blocks = (slices as u64).div_ceil(of_block) as u32;
        // SAFETY: analysis has made the arrays; the descriptors promise x, y and the old values of these
        // sizes until the stream has run the kernel, and the plan promises that they do not overlap; the
        // handle lends its counters, which have a slot for each block of a split row, to one call at a time.
        unsafe {
            launch_product!(self.launch.kernel, blocks, THREADS, 0, cx.stream;
                slices, *rows, heads.address(), order.address(), values.address(), narrow.address(),
                wide.address(), x.values, y.values, old.values, alpha, beta, cx.counters)
        }
    }

    fn info(&self) -> LayoutInfo {
        let fill = fill_ratio(self.arrays.slots, self.arrays.nnz as usize);
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill }
    }

    fn details(&self) -> String {
        let columns = match self.arrays.rules.item_rows {
            1 => String::new(),
            rows => format!("columns stored once for {rows} rows that share them"),
        };
        let parts = [columns, self.form.describe().to_string()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
pub(super) mod product_tests;
#[cfg(test)]
mod tests;
