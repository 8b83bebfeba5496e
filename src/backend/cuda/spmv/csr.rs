//! SpMV algorithm `csr`: y = alpha · op(A) · x + beta · y on rows of op(A), in one launch
//! (kernels/spmv/csr.cu).
//!
//! The kernel has three forms: `rows` gives each row 2 to 32 lanes, `long_rows` a warp or a block, and
//! `balanced` gives each warp the same number of rows and entries. [`Form`] is chosen by sizes and row lengths
//! alone. All forms can also read 16-bit columns, which a plan may keep for rows in place ([`narrow`]).

mod narrow;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use once_cell::sync::Lazy;
use parking_lot::Mutex;

use self::narrow::NarrowColumns;
use super::inspection::{self, InspectedMatrix};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, launch_product, Kernel};
use crate::backend::cuda::memory::{filled, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Rows, Widths};
use crate::backend::cuda::order::{methods_of_ordered_rows, Order};
use crate::backend::cuda::scalars::scalars;
use crate::backend::cuda::types_name;
use crate::backend::DenseExecutor;
use crate::error::{Error, Result};
use crate::matrix::{DenseVector, SparseArrays};
use crate::memory::Context;
use crate::problem::SpmvProblem;
use crate::select::spmv::csr::{Capacity, Form, THREADS, WARPS};
use crate::select::spmv::reads_past_l2;
use crate::select::{Choice, RowOrder};
use crate::support::Types;
use crate::types::{Address, DataType, IndexType, ScalarsAt};

kernel_kinds! { "spmv/csr" {
    ROWS(String, Widths) = "rows" for [types(Algorithm::Csr), widths()];
    LONG_ROWS(String, Widths) = "long_rows" for [types(Algorithm::Csr), widths()];
    BALANCED(String, Widths) = "balanced" for [types(Algorithm::Csr), widths()];
    ROWS_16(String, IndexType) = "rows_16" for [types(Algorithm::Csr), index_types()];
    LONG_ROWS_16(String, IndexType) = "long_rows_16" for [types(Algorithm::Csr), index_types()];
    BALANCED_16(String, IndexType) = "balanced_16" for [types(Algorithm::Csr), index_types()];
    NARROW_ROWS(Widths) = "narrow_rows" for [widths()];
    NARROW_CHUNKS(IndexType) = "narrow_chunks" for [index_types()];
    MERGE_POINTS(IndexType) = "merge_points" for [index_types()];
} }

/// Launch without its operands, as a plan keeps it.
#[derive(Clone, Copy, Debug)]
struct Launch {
    kernel: Kernel,
    form: Form,
    /// Type of alpha, beta and sums.
    compute: DataType,
    /// Row of y for each row; NULL if the rows are in their own order.
    order: Address,
    /// 16-bit columns, and their origins or NULL, for rows in their own order.
    narrow: Option<(Address, Address)>,
    /// True if the matrix does not fit into L2 beside x and y.
    stream: bool,
    /// Row and entry where each warp starts; NULL if the kernel searches for them.
    merge_points: Address,
}

impl Launch {
    fn new(device: &Device, types: Types, rows: &Rows, form: Form) -> Result<Self> {
        Ok(Launch::of(kernel_of(device, types, rows, form)?, device, types, rows, form))
    }

    fn of(kernel: Kernel, device: &Device, types: Types, rows: &Rows, form: Form) -> Self {
        let stream = is_streamed(device, types, rows, rows.index_type.size());
        let compute = types.compute.scalar();
        let (order, merge_points) = (Address::NULL, Address::NULL);
        Launch { kernel, form, compute, order, narrow: None, stream, merge_points }
    }

    /// Returns this launch with the kernel that reads the 16-bit columns which the plan keeps.
    fn narrowed(self, device: &Device, types: Types, rows: &Rows, columns: &NarrowColumns) -> Result<Self> {
        let kind = match self.form {
            Form::Rows { .. } => ROWS_16,
            Form::LongRows { .. } => LONG_ROWS_16,
            Form::Balanced { .. } => BALANCED_16,
        };
        let kernel = kind.load(device, (types_name(types), rows.offset_type))?;
        let stream = is_streamed(device, types, rows, size_of::<u16>());
        Ok(Launch { kernel, narrow: Some(columns.addresses()), stream, ..self })
    }

    /// Bytes of the partial sums of rows that blocks share.
    fn workspace_bytes(&self, rows: &Rows) -> usize {
        workspace_bytes(self.form, rows, self.compute)
    }

    /// Enqueues the product; `old` has the old values of y. The context must be current.
    fn run(
        &self,
        cx: &Context,
        rows: &Rows,
        (alpha, beta): ScalarsAt,
        [x, old, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let (alpha, beta) = scalars(cx, self.compute, alpha, beta)?;
        cx.workspace.require(self.workspace_bytes(rows))?;
        let (base, stream) = (rows.base as i32, i32::from(self.stream));
        // The parameter that follows columns and values: kernels for 16-bit columns take the origins in it,
        // others the order of rows.
        let (columns, of_rows) = self.narrow.unwrap_or((rows.indices, self.order));
        match self.form {
            // SAFETY: the descriptors promise arrays of these sizes and types
            // until the stream has run the kernel; the plan has checked that x
            // and y fit and do not overlap.
            Form::Rows { lanes_log2, blocks } => unsafe {
                launch_product!(self.kernel, blocks, THREADS, 0, cx.stream;
                    rows.rows, rows.nnz, rows.offsets, columns, rows.values, x.values, y.values, old.values, of_rows,
                    alpha, beta, base, stream, lanes_log2)
            },
            // SAFETY: as above; `require` has checked the workspace, the handle
            // lends it and its counters to one call at a time, and there are at
            // most as many pieces as counters.
            Form::LongRows { lanes, piece, most, blocks } => unsafe {
                launch_product!(self.kernel, blocks, self.form.threads(), 0, cx.stream;
                    rows.rows, rows.nnz, rows.offsets, columns, rows.values, x.values, y.values, old.values, of_rows,
                    alpha, beta, base, stream, lanes, piece, most, cx.workspace.address, cx.counters)
            },
            // SAFETY: as above, with at most as many blocks as counters.
            Form::Balanced { share, overhang, blocks } => unsafe {
                launch_product!(self.kernel, blocks, THREADS, 0, cx.stream;
                    rows.rows, rows.nnz, rows.offsets, columns, rows.values, x.values, y.values, old.values, of_rows,
                    alpha, beta, base, stream, share, overhang, self.merge_points,
                    cx.workspace.address, cx.counters)
            },
        }
    }
}

fn workspace_bytes(form: Form, rows: &Rows, compute: DataType) -> usize {
    form.parts(rows.nnz) * compute.size()
}

/// Returns the capacity of the device for a product of these rows.
fn capacity_for(device: &Device, types: Types, rows: &Rows) -> Capacity {
    let is_cached = !is_streamed(device, types, rows, rows.index_type.size());
    Capacity::new(types.compute.scalar(), device.properties().multiprocessors, is_cached)
}

fn kernel_of(device: &Device, types: Types, rows: &Rows, form: Form) -> Result<Kernel> {
    let kind = match form {
        Form::Rows { .. } => ROWS,
        Form::LongRows { .. } => LONG_ROWS,
        Form::Balanced { .. } => BALANCED,
    };
    kind.load(device, (types_name(types), rows.widths()))
}

/// Returns whether values, and columns of so many bytes, exceed what L2 holds beside x and y, so that kernels
/// read them past L2.
fn is_streamed(device: &Device, types: Types, rows: &Rows, column_bytes: usize) -> bool {
    let bytes = rows.nnz as u64 * (types.a.size() + column_bytes) as u64;
    reads_past_l2(bytes, device.properties().l2_bytes)
}

/// Executor of SpMV `csr`.
pub(super) struct CsrSpmv {
    device: Arc<Device>,
    problem: SpmvProblem,
    operand: Operand,
    order: Order,
    rows: Rows,
    launch: Launch,
    /// Row and entry where each warp of form `balanced` starts, and the end.
    _merge_points: Option<DeviceBuffer<i64>>,
    /// 16-bit columns; `None` if the columns of the rows are read.
    columns: Option<NarrowColumns>,
    /// True if the choice was to keep 16-bit columns.
    keeps_columns: bool,
}

impl CsrSpmv {
    pub(super) fn build(
        cx: &DeviceCall<'_>,
        problem: &SpmvProblem,
        (choice, order): (&Choice, &RowOrder),
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Self> {
        let (operand, stats) = match order.policy.is_named() {
            true => inspection::sorted_operand(cx, problem, inspected)?,
            false => inspection::operand(cx, problem, inspected, choice.a)?,
        };
        let (operand, order) = Order::apply(cx, operand, problem.types.a, order)?;
        let rows = operand.rows();
        let capacity = capacity_for(cx.device, problem.types, &rows);
        let form = Form::analyzed((stats.rows, stats.nnz, stats.max), capacity);
        let mut launch = Launch::new(cx.device, problem.types, &rows, form)?;
        launch.order = order.address();
        let merge_points = merge_points(cx, &rows, form)?;
        let keeps_columns = choice.keeps_columns && matches!(operand, Operand::InPlace(_));
        let columns = match keeps_columns {
            true => NarrowColumns::build(cx, &rows, form)?,
            false => None,
        };
        if let Some(columns) = &columns {
            launch = launch.narrowed(cx.device, problem.types, &rows, columns)?;
        }
        if let Some(merge_points) = &merge_points {
            launch.merge_points = merge_points.address();
        }
        let executor = CsrSpmv {
            device: Arc::clone(cx.device),
            problem: *problem,
            operand,
            order,
            rows,
            launch,
            _merge_points: merge_points,
            columns,
            keeps_columns,
        };
        // Rows that are read in place, by a kernel that needs nothing else, leave no work to wait for.
        match executor.owns_arrays() {
            true => filled(cx, executor),
            false => Ok(executor),
        }
    }

    /// Returns whether the plan has arrays of its own.
    fn owns_arrays(&self) -> bool {
        !matches!(self.operand, Operand::InPlace(_)) || self._merge_points.is_some() || self.columns.is_some()
    }
}
filled_members!(CsrSpmv { operand, order, _merge_points });

/// Computes the start of each warp of form `balanced`, for which the kernel would otherwise search in every
/// launch.
fn merge_points(cx: &DeviceCall<'_>, rows: &Rows, form: Form) -> Result<Option<DeviceBuffer<i64>>> {
    let Form::Balanced { share, overhang, blocks } = form else {
        return Ok(None);
    };
    let kernel = MERGE_POINTS.load(cx.device, (rows.offset_type,))?;
    let count = i64::from(blocks) * WARPS as i64 + 1;
    let merge_points = DeviceBuffer::new(cx, 2 * count as usize)?;
    let grid = (count as u32).div_ceil(THREADS);
    if blocks > 0 {
        // SAFETY: the operand has rows + 1 offsets, and `merge_points` room for
        // `count` pairs.
        unsafe {
            launch!(kernel, grid, THREADS, 0, cx.stream;
                rows.rows, rows.nnz, rows.offsets, rows.base as i32, share, overhang, count, merge_points.address())?;
        }
    }
    Ok(Some(merge_points))
}

impl DenseExecutor<DenseVector> for CsrSpmv {
    methods_of_ordered_rows!();

    fn workspace_bytes(&self, _n: usize) -> usize {
        self.launch.workspace_bytes(&self.rows)
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, vectors: [&DenseVector; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        self.launch.run(cx, &self.rows, scalars, vectors)
    }

    fn reads_elsewhere(&self, _: &DenseVector, _: &DenseVector) -> bool {
        true
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let a = (&mut self.problem.a, self.problem.op);
        self.operand.update_values(cx, a, values, "A")?;
        self.rows = self.operand.rows();
        Ok(())
    }

    fn details(&self) -> String {
        match &self.columns {
            Some(columns) => {
                format!("columns of its own in 16 bits, counted from {}", columns.origins().describe())
            }
            None if self.keeps_columns => String::from(
                "columns where they are: they are too far apart for 16 bits, or the memory for those is missing",
            ),
            None => String::new(),
        }
    }
}

/// Kernels of products without a plan by the address of their device, which lives as long as the process: to write a
/// name and to look it up takes as long as the rest of the call but for the launch.
type Known = HashMap<(usize, Types, Widths, std::mem::Discriminant<Form>), Kernel>;
static KNOWN: Lazy<Mutex<Known>> = Lazy::new(Mutex::default);

fn kernel_of_once(device: &Device, types: Types, rows: &Rows, form: Form) -> Result<Kernel> {
    let key = (std::ptr::from_ref(device).addr(), types, rows.widths(), std::mem::discriminant(&form));
    let mut known = KNOWN.lock();
    if let Some(kernel) = known.get(&key) {
        return Ok(*kernel);
    }
    let kernel = kernel_of(device, types, rows, form)?;
    known.insert(key, kernel);
    Ok(kernel)
}

/// The form of a product without a plan.
fn form_of_once(device: &Device, problem: &SpmvProblem, rows: &Rows) -> Form {
    Form::unanalyzed(rows.rows, rows.nnz, capacity_for(device, problem.types, rows))
}

/// Bytes of workspace that [`once`] needs.
pub(crate) fn once_bytes(device: &Device, problem: &SpmvProblem) -> usize {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else { return 0 };
    let rows = Rows::of(m);
    workspace_bytes(form_of_once(device, problem, &rows), &rows, problem.types.compute.scalar())
}

/// Multiplies without a plan, for a matrix whose rows of op(A) are contiguous in the user's arrays: it only
/// launches.
pub(crate) fn once(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    scalars: ScalarsAt,
    x: &DenseVector,
    y: &DenseVector,
) -> Result<()> {
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else {
        return Err(Error::unsupported("A: SpMV without a plan reads CSR and CSC"));
    };
    let rows = Rows::of(m);
    let form = form_of_once(cx.device, problem, &rows);
    let kernel = kernel_of_once(cx.device, problem.types, &rows, form)?;
    Launch::of(kernel, cx.device, problem.types, &rows, form).run(cx, &rows, scalars, [x, y, y])
}
