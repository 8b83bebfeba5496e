//! SpMV algorithm `sell` for matrices with hot columns: y = alpha · op(A) · x + beta · y on the slices of
//! src/format/hot_sell.rs, by one cooperative launch (kernels/spmv/hot_sell.cu).

mod build;

use std::sync::Arc;

use self::build::{Arrays, Build};
use super::inspection::{self, InspectedMatrix, StorageProperties};
use super::sell::{kernel_types, Refill};
use crate::backend::cuda::convert::values;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch_cooperative, Kernel};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::Operand;
use crate::backend::cuda::scalars::scalars;
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::{Error, Result, Status};
use crate::format::narrowing::Form;
use crate::matrix::DenseVector;
use crate::memory::{Context, COUNTER_BYTES};
use crate::problem::SpmvProblem;
use crate::select::spmv::hot_sell::{hot_bytes, Demands, DEMANDS};
use crate::types::{Address, LayoutKind, ScalarsAt};

kernel_kinds! { "spmv/hot_sell" { PRODUCT(String) = "product" for [stored_types()]; } }
/// Threads of a block of kernels/spmv/hot_sell.cu.
const THREADS: u32 = 1024;
/// Number of elements behind the hot columns' x in the workspace.
const ZEROS: usize = 16;
/// Number of counters that the grid's barrier uses; the others are for split rows.
const BARRIER: usize = 4;

/// Executor of SpMV `sell` with hot columns.
pub(super) struct HotSellSpmv {
    device: Arc<Device>,
    problem: SpmvProblem,
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
fn arrange(
    cx: &Context,
    device: &Arc<Device>,
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
    let (operand, stats) = inspection::operand(cx, device, problem, inspected, inspection::nearest(problem))?;
    let mut rows = operand.rows();
    if rows.rows == 0 || rows.nnz < demands.entries.max(1) {
        return Ok(None);
    }
    let bytes = hot_bytes(device.properties().shared_bytes);
    let most = demands.most_columns(bytes, types.x.size());
    let Some(hot) = Build { cx, device, rows: &rows }.hot_columns(most, demands.share)? else {
        return Ok(None);
    };
    let form = match inspected {
        Some(inspected) => inspected.properties().form,
        None => StorageProperties::of_rows(cx, device, problem, &rows)?.form,
    };
    let kernel = PRODUCT.load(device, (kernel_types(types, form),))?;
    // The limit belongs to the kernel, so it is the same for all plans.
    kernel.allow_shared(bytes as u32)?;
    if kernel.blocks_of_multiprocessor(THREADS, bytes as u32)? == 0 {
        return Ok(None);
    }
    let narrowed = values::narrowed(cx, device, rows.values, rows.nnz, types.a, form)?;
    if let Some(values) = &narrowed {
        rows.values = values.address();
    }
    let origins = problem.value_updates.then_some(match &operand {
        Operand::InPlace(_) => None,
        Operand::Canonical(copy) => Some(copy.positions()),
    });
    let stored = form.stored(types.a).unwrap_or(types.a);
    let most_cut = COUNTER_BYTES / size_of::<u32>() - BARRIER;
    let arrays =
        Build { cx, device, rows: &rows }.run(demands.rules, stats.max, most_cut, hot, stored, origins)?;
    Ok(arrays.map(|arrays| (arrays, form, kernel)))
}

impl HotSellSpmv {
    /// Builds the executor if the matrix has enough hot columns and meets the other demands.
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpmvProblem,
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Option<Self>> {
        Self::build_if(cx, device, problem, DEMANDS, inspected)
    }

    fn build_if(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpmvProblem,
        demands: Demands,
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Option<Self>> {
        let made = arrange(cx, device, problem, &demands, inspected)?;
        let Some((arrays, form, kernel)) = made else { return Ok(None) };
        let refill = Refill::new(device, problem.types.a, arrays.origins.as_ref())?;
        let device = Arc::clone(device);
        Ok(Some(HotSellSpmv { device, problem: *problem, demands, arrays, form, kernel, refill }))
    }

    /// Bytes of workspace in front of the partial sums.
    fn collected_bytes(&self) -> usize {
        ((self.arrays.hot.len() + ZEROS) * self.problem.types.x.size()).next_multiple_of(16)
    }
}

impl SpmvExecutor for HotSellSpmv {
    fn workspace_bytes(&self) -> usize {
        self.collected_bytes() + self.arrays.parts * self.problem.types.compute.scalar().size()
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [x, old, y]: [&DenseVector; 3]) -> Result<()> {
        let _entered = self.device.enter()?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        cx.workspace.require(self.workspace_bytes())?;
        let Arrays { rows, filled, order, heads, long_rows, values, columns, hot, .. } = &self.arrays;
        let shared = shared_bytes(hot.len(), self.problem.types.x.size()) as u32;
        let sums = cx.workspace.address.offset(self.collected_bytes());
        let blocks = self.device.properties().multiprocessors;
        // SAFETY: analysis has made the arrays; the descriptors promise x, y and the old values of these
        // sizes until the stream has run the kernel, and the plan promises that they do not overlap;
        // `require` has checked the workspace, and the handle lends it and its counters to one call at a
        // time; there are enough counters for the barrier and for one per split row.
        unsafe {
            launch_cooperative!(self.kernel, blocks, THREADS, shared, cx.stream;
                heads.len() as u32, *rows as u32, *filled as u32, hot.len() as u32, heads.address(),
                long_rows.address(), order.address(), values.address(), columns.address(),
                hot.address(), x.values, y.values, old.values, alpha, beta, cx.workspace.address, sums, cx.counters)
        }
    }

    fn reads_elsewhere(&self) -> bool {
        true
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        let a = self.problem.a.with_values(values);
        let problem = SpmvProblem { a, ..self.problem };
        match &self.arrays.origins {
            Some(origins) => {
                let to = (self.arrays.slots(), self.arrays.values.address());
                self.refill.run(cx, &self.device, &problem, (values, origins), to)?;
            }
            None => {
                let made = arrange(cx, &self.device, &problem, &self.demands, None)?;
                let Some(made) = made else {
                    return Err(Error::new(Status::InvalidValue, "A: its pattern is not the plan's"));
                };
                (self.arrays, self.form, self.kernel) = made;
            }
        }
        self.problem = problem;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
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
