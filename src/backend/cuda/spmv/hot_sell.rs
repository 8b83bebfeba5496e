//! SpMV algorithm `sell` for matrices with hot columns: y = alpha · op(A) · x + beta · y on the slices of
//! src/format/hot_sell.rs, by one cooperative launch (kernels/spmv/hot_sell.cu).

mod build;

use self::build::{Arrays, Build};
use super::inspection::{self, InspectedMatrix, StorageProperties};
use super::sell::{kernel_types, Refill};
use super::SpmvLayout;
use crate::backend::cuda::convert::values;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch_with, Kernel, LaunchAttribute};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::LayoutInfo;
use crate::error::{Error, Result, Status};
use crate::format::narrowing::Form;
use crate::matrix::DenseVector;
use crate::memory::COUNTER_BYTES;
use crate::problem::SpmvProblem;
use crate::select::spmv::hot_sell::{hot_bytes, Demands, DEMANDS};
use crate::support::Types;
use crate::types::{Address, LayoutKind};

kernel_kinds! { "spmv/hot_sell" { PRODUCT(String) = "product" for [stored_types()]; } }
/// Threads of a block of kernels/spmv/hot_sell.cu.
const THREADS: u32 = 1024;
/// Number of elements behind the hot columns' x in the workspace.
const ZEROS: usize = 16;
/// Number of counters that the grid's barrier uses; the others are for split rows.
const BARRIER: usize = 4;

/// Layout and kernel of SpMV `sell` with hot columns.
pub(super) struct HotSellSpmv {
    demands: Demands,
    arrays: Arrays,
    /// Form in which the values are stored.
    form: Form,
    kernel: Kernel,
    refill: Refill,
}

/// Bytes of shared memory for the elements of x of the hot columns and the zero behind them.
fn shared_bytes(count: usize, element: usize) -> usize {
    ((count + 1) * element).next_multiple_of(16)
}

/// Makes the layout, chooses the form of its values and loads the kernel, if the matrix meets the demands.
fn make_arrays(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    demands: &Demands,
    inspected: Option<&InspectedMatrix>,
) -> Result<Option<(Arrays, Form, Kernel)>> {
    let (a, op, types) = (&problem.a, problem.op, problem.types);
    let (rows, cols, nnz) = a.shape();
    let cols = if op.transposes() { rows } else { cols };
    if !demands.has_size(nnz, (cols, types.x.size())) {
        return Ok(None);
    }
    let (operand, stats) = inspection::operand(cx, problem, inspected, inspection::nearest(problem))?;
    let mut rows = operand.rows();
    if rows.rows == 0 || rows.nnz < demands.entries.max(1) {
        return Ok(None);
    }
    let bytes = hot_bytes(cx.device.properties().shared_bytes);
    let most = demands.most_columns(bytes, types.x.size());
    let Some(hot) = Build { cx, rows: &rows }.hot_columns(most, demands.share)? else {
        return Ok(None);
    };
    let form = match inspected {
        Some(inspected) => inspected.properties().form,
        None => StorageProperties::of_rows(cx, problem, &rows)?.form,
    };
    let kernel = PRODUCT.load(cx.device, (kernel_types(types, form),))?;
    // The limit belongs to the kernel, so it is the same for all plans.
    kernel.allow_shared(bytes as u32)?;
    if kernel.blocks_of_multiprocessor(THREADS, bytes as u32)? == 0 {
        return Ok(None);
    }
    let narrowed = values::narrowed(cx, rows.values, rows.nnz, types.a, form)?;
    if let Some(values) = &narrowed {
        rows.values = values.address();
    }
    let origins = operand.origins(problem.value_updates);
    let stored = form.stored(types.a).unwrap_or(types.a);
    let most_cut = COUNTER_BYTES / size_of::<u32>() - BARRIER;
    let arrays = Build { cx, rows: &rows }.run(demands.rules, stats.max, most_cut, hot, stored, origins)?;
    Ok(arrays.map(|arrays| (arrays, form, kernel)))
}

impl HotSellSpmv {
    /// Makes the layout if the matrix has enough hot columns and meets the other demands. Blocks.
    pub(super) fn make_if(
        cx: &DeviceCall<'_>,
        problem: &SpmvProblem,
        demands: Demands,
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Option<Self>> {
        let made = make_arrays(cx, problem, &demands, inspected)?;
        let Some((arrays, form, kernel)) = made else { return Ok(None) };
        let refill = Refill::new(cx.device, (problem.op, problem.types.a), arrays.origins.as_ref())?;
        Ok(Some(HotSellSpmv { demands, arrays, form, kernel, refill }))
    }

    /// Makes the layout of a matrix that meets the demands.
    fn make_again(
        cx: &DeviceCall<'_>,
        problem: &SpmvProblem,
        demands: Demands,
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Self> {
        Self::make_if(cx, problem, demands, inspected)?
            .ok_or_else(|| Error::new(Status::InvalidValue, "A: its pattern is not the plan's"))
    }

    /// Bytes of workspace in front of the partial sums.
    fn collected_bytes(&self, types: Types) -> usize {
        ((self.arrays.hot.len() + ZEROS) * types.x.size()).next_multiple_of(16)
    }
}

impl SpmvLayout for HotSellSpmv {
    const READS_ELSEWHERE: bool = true;

    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self> {
        Self::make_again(cx, problem, DEMANDS, inspected)
    }

    fn renew(&mut self, cx: &DeviceCall<'_>, problem: &SpmvProblem) -> Result<()> {
        *self = Self::make_again(cx, problem, self.demands, None)?;
        Ok(())
    }

    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        let to = (self.arrays.slots(), self.arrays.values.address());
        self.refill.run(cx, (values, self.arrays.origins.as_ref()), to)
    }

    fn workspace_bytes(&self, types: Types) -> usize {
        self.collected_bytes(types) + self.arrays.parts * types.compute.scalar().size()
    }

    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        types: Types,
        (alpha, beta): (Scalar, Scalar),
        [x, old, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let Arrays { rows, filled, order, heads, long_rows, values, columns, hot, .. } = &self.arrays;
        let shared = shared_bytes(hot.len(), types.x.size()) as u32;
        let sums = cx.workspace.address.offset(self.collected_bytes(types));
        let blocks = cx.device.properties().multiprocessors;
        // SAFETY: analysis has made the arrays; the descriptors promise x, y and the old values of these
        // sizes until the stream has run the kernel, and the plan promises that they do not overlap;
        // the workspace has been checked, and the handle lends it and its counters to one call at a
        // time; there are enough counters for the barrier and for one per split row.
        unsafe {
            launch_with!([LaunchAttribute::COOPERATIVE], self.kernel, (blocks, 1), THREADS, shared, cx.stream;
                heads.len() as u32, *rows as u32, *filled as u32, hot.len() as u32, heads.address(),
                long_rows.address(), order.address(), values.address(), columns.address(),
                hot.address(), x.values, y.values, old.values, alpha, beta, cx.workspace.address, sums, cx.counters)
        }
    }

    fn info(&self) -> LayoutInfo {
        let fill = self.arrays.slots() as f64 / self.arrays.nnz as f64;
        LayoutInfo { kind: LayoutKind::Sell, in_place: false, fill }
    }

    fn details(&self) -> String {
        let hot = format!("x of {} columns that have most entries in shared memory", self.arrays.hot.len());
        match self.form.describe() {
            "" => hot,
            form => format!("{hot}; {form}"),
        }
    }
}

#[cfg(test)]
mod tests;
