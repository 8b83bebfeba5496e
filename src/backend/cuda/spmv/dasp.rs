//! SpMV algorithm `dasp`: y = alpha · op(A) · x + beta · y on DASP's classes of rows (src/format/dasp.rs), in
//! one launch (kernels/spmv/dasp.cu).

mod build;
#[cfg(test)]
mod tests;

use bytemuck::{Pod, Zeroable};

use self::build::DeviceDasp;
use super::inspection::{self, InspectedMatrix};
use super::SpmvLayout;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel, Parameter};
use crate::backend::cuda::memory::{self, Fill};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::backend::LayoutInfo;
use crate::error::{Error, Result};
use crate::format::dasp::{self, DaspPart, Results, BLOCK, UNIT};
use crate::matrix::DenseVector;
use crate::memory::COUNTERS;
use crate::problem::SpmvProblem;
use crate::select;
use crate::select::spmv::dasp::{shared_units, takes_tasks_by_warps};
use crate::support::Types;
use crate::types::{Address, LayoutKind};

kernel_kinds! { "spmv/dasp" { PRODUCT(String) = "product" for [types(Algorithm::Dasp)]; } }
/// Threads and warps of a block, as in kernels/spmv/dasp.cuh.
const THREADS: u32 = 128;
const WARPS: usize = 4;

/// Layout of the matrix, laid out as the kernel's `Layout`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Layout {
    values: u64,
    columns: u64,
    order: u64,
    runs: u64,
    tasks: u64,
    splits: u64,
    regular: u64,
    irregular: u64,
    ends: u64,
    rows: i64,
    /// First slot of each part except the long one.
    slots: [i64; 6],
    /// First result of each part except the first, and the end.
    results: [i64; 6],
    row_blocks: i64,
    split_count: i64,
    shared_units: i64,
    loops: i32,
    splits_per_counter: i32,
    /// End of each part in the grid, in blocks.
    blocks: [u32; 7],
    stream: i32,
    task_count: u32,
    warps_of_task: i32,
}

// SAFETY: the kernel's structure has the same members, without padding.
unsafe impl Parameter for Layout {}

impl Layout {
    fn new(device: &Device, built: &DeviceDasp) -> Result<Self> {
        let shape = &built.shape;
        let slots = |part: DaspPart| shape.slots(part).start as i64;
        let results = |results: Results| shape.results(results).start as i64;
        let row_blocks = shape.classes.row_blocks();
        let loops = dasp::loops(shape.classes.medium);
        let tasks = built.tasks.len();
        let multiprocessors = device.properties().multiprocessors as usize;
        let warps_of_task = if takes_tasks_by_warps(tasks, multiprocessors) { 1 } else { WARPS };
        let units = row_blocks.div_ceil(loops);
        let blocks = shape.slots(DaspPart::Regular).len() / BLOCK;
        let shared_units = shared_units(&built.histogram, blocks, loops, multiprocessors).min(units);
        // Number of warps of each part behind the long rows.
        let warps = [
            shared_units * WARPS + units - shared_units,
            shape.slots(DaspPart::OneThree).len() / UNIT,
            shape.slots(DaspPart::TwoTwo).len() / UNIT,
            shape.slots(DaspPart::Four).len() / UNIT,
            shape.slots(DaspPart::Single).len() / UNIT,
            shape.results(Results::Empty).len().div_ceil(UNIT),
        ];
        let mut blocks = [0; 7];
        let mut end = (tasks * warps_of_task).div_ceil(WARPS);
        for (at, block) in blocks.iter_mut().enumerate() {
            if at > 0 {
                end += warps[at - 1].div_ceil(WARPS);
            }
            *block = blocks_of_grid(end, "A: algorithm dasp has no grid for a matrix of this size")?;
        }
        let bytes = built.values.bytes() + built.columns.bytes();
        let address = |address: Address| address.value() as u64;
        Ok(Layout {
            values: address(built.values.address()),
            columns: address(built.columns.address()),
            order: address(built.order.address()),
            runs: address(built.runs.address()),
            tasks: address(built.tasks.address()),
            splits: address(built.splits.address()),
            regular: address(built.regular.address()),
            irregular: address(built.irregular.address()),
            ends: address(built.ends.address()),
            rows: built.rows,
            slots: [
                slots(DaspPart::OneThree),
                slots(DaspPart::TwoTwo),
                slots(DaspPart::Four),
                slots(DaspPart::Regular),
                slots(DaspPart::Single),
                slots(DaspPart::Irregular),
            ],
            results: [
                results(Results::TwoTwo),
                results(Results::Four),
                results(Results::Single),
                results(Results::Medium),
                results(Results::Empty),
                shape.result_count() as i64,
            ],
            row_blocks: row_blocks as i64,
            split_count: built.splits.len() as i64,
            shared_units: shared_units as i64,
            loops: loops as i32,
            splits_per_counter: built.splits.len().div_ceil(COUNTERS).max(1) as i32,
            blocks,
            stream: i32::from(select::spmv::reads_past_l2(bytes as u64, device.properties().l2_bytes)),
            // At most `end`, or up to four times `end` where each warp takes a task, which may exceed 32
            // bits.
            task_count: u32::try_from(tasks)
                .map_err(|_| Error::unsupported("A: algorithm dasp has no numbers for so many tasks"))?,
            warps_of_task: warps_of_task as i32,
        })
    }
}

/// Layout and kernel of SpMV `dasp`.
pub(super) struct DaspSpmv {
    built: DeviceDasp,
    layout: Layout,
    kernel: Kernel,
}

impl SpmvLayout for DaspSpmv {
    const KEEPS_ARRAYS: bool = true;

    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self> {
        let (operand, _) = inspection::operand(cx, problem, inspected, inspection::nearest(problem))?;
        let mut built = DeviceDasp::build(cx, &operand, problem.types.a, problem.value_updates)?;
        built.conjugate = problem.op.conjugates() && problem.types.a.is_complex();
        drop(operand);
        memory::synchronize(cx.stream)?;
        built.mark_filled();
        let layout = Layout::new(cx.device, &built)?;
        let kernel = PRODUCT.load(cx.device, (types_name(problem.types),))?;
        Ok(DaspSpmv { built, layout, kernel })
    }

    fn workspace_bytes(&self, types: Types) -> usize {
        self.built.split_tasks * types.compute.scalar().size()
    }

    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        _: Types,
        (alpha, beta): (Scalar, Scalar),
        [x, _, y]: [&DenseVector; 3],
    ) -> Result<()> {
        let grid = self.layout.blocks[6];
        // SAFETY: analysis has made the arrays, with columns inside x and rows
        // inside y, whose sizes the plan has checked; it has also checked that they
        // do not overlap. The workspace has been checked, which the handle
        // lends with its counters to one call at a time, and no more counters are
        // used than there are.
        unsafe {
            launch_product!(self.kernel, grid, THREADS, 0, cx.stream;
                self.layout, x.values, y.values, alpha, beta, cx.workspace.address, cx.counters)
        }
    }

    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool> {
        self.built.refill(cx, values)
    }

    fn renew(&mut self, cx: &DeviceCall<'_>, problem: &SpmvProblem) -> Result<()> {
        let (operand, _) = inspection::operand(cx, problem, None, inspection::nearest(problem))?;
        self.built.rebuild(cx, &operand)
    }

    fn info(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::Dasp, in_place: false, fill: self.built.fill_ratio() }
    }

    fn details(&self) -> String {
        self.built.shape.describe()
    }
}
