//! SpMM on the device. Submodule [`window`] multiplies on windows of rows with tensor cores, [`dense`] with
//! all of A as a dense matrix, [`sell`] on slices of rows for few columns. This file is algorithm `row`: C =
//! alpha · op(A) · op(B) + beta · C on rows of op(A), by CUDA cores (kernels/spmm/row.cuh describes it).
//!
//! Analysis distributes the rows to lists of equal work ([`schedule`]). Execution is one launch. A further
//! launch copies a B whose columns are contiguous (with more than [`row::NARROW`] columns) into contiguous
//! rows, or a B that is read very often into rows of whole cache lines; another one writes a C whose columns
//! are contiguous from sums in the workspace. Without a plan ([`once`]) warps find their rows by a search, and
//! read columns of B where they are if entries are few ([`merge`]); where rows of B and C are not aligned, or
//! other kernels are faster, a launch before the product makes lists, and neither B nor C is copied where the
//! pattern allows that ([`columns`]).

mod analysis;
mod columns;
mod csr;
pub mod dense;
mod groups;
mod kernels;
mod merge;
mod once;
mod packing;
mod parts;
mod reach;
mod row_counts;
mod schedule;
mod sell;
mod smat;
mod swift;
#[cfg(test)]
mod testing;
mod window;

use std::sync::Arc;

use self::analysis::{Analysis, InspectedRows, SharedResults};
use self::kernels::Kernels;
use self::merge::AlignedOperands;
use self::row_counts::RowCounts;
use self::schedule::{Lengths, Schedule};
use self::window::{DenseTiles, MaskedTiles, WindowSpmm};
use super::check;
use super::device::{Device, DeviceCall};
use super::launch::{blocks_of_grid, launch, launch_early, launch_product, Kernel, Overlap};
use super::memory::{filled_from, filled_members, Readback};
use super::operand::{Operand, RowStats, Rows};
use super::order::{methods_of_ordered_rows, Order as RowOrder};
use super::scalars::{scalars, Scalar};
use super::{timing, Cuda};
use crate::algorithm::Algorithm;
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::{DenseExecutor, SpmmExecutor};
use crate::error::{Error, Result};
use crate::matrix::DenseMatrix;
use crate::memory::Context;
use crate::operation::SpmmBackend;
use crate::problem::SpmmProblem;
use crate::select::spmm::columns::{ColumnLimits, MOST_IDLE_BLOCKS};
use crate::select::spmm::copies::{row_aligns, row_needs_rows, LINE};
use crate::select::spmm::merge::{Path, Tile};
use crate::select::spmm::reach::Reach;
use crate::select::spmm::row::{self, groups, Plan, RowsOfB, Step};
use crate::select::spmm::tiles;
use crate::select::{self, Choice, Method, Source, SpmmInspection};
use crate::types::{Address, DataType, Operation, Order, ScalarsAt};

/// Threads of a block of the kernels that copy.
const THREADS: u32 = 256;
/// Threads of a block of the kernels that multiply. Blocks are small because a block holds its registers
/// until its longest warp ends (row.cuh's BLOCK).
const ROW_THREADS: u32 = 128;

impl SpmmBackend for Cuda {
    fn inspect_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        among: &[Algorithm],
    ) -> Result<Option<SpmmInspection>> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(&problem.a, "A")?;
        inspect(cx, problem, among).map(Some)
    }

    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        choice: &Choice,
        inspection: Option<&SpmmInspection>,
    ) -> Result<Box<SpmmExecutor>> {
        let cx = &self.device.call(cx)?;
        self.require_on_device(&problem.a, "A")?;
        build(cx, problem, choice, inspection)
    }

    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &SpmmExecutor) -> Result<f64> {
        let cx = &self.device.call(cx)?;
        timing::spmm(cx, problem, executor)
    }

    fn spmm_once_bytes(&self, problem: &SpmmProblem) -> Result<Option<usize>> {
        let _entered = self.device.enter()?;
        Ok(once::product(&self.device, problem)?.map(|product| product.workspace_bytes(problem.columns())))
    }

    fn spmm_once(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        scalars: ScalarsAt,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> Result<()> {
        let cx = &self.device.call(cx)?;
        match once::product(&self.device, problem)? {
            Some(product) => product.product(cx, scalars, [b, c, c]),
            None => Err(Error::unsupported("A: SpMM without a plan reads rows of op(A) in place")),
        }
    }
}

/// Computes the statistics of the pattern that the choice of an algorithm uses. Blocks.
fn inspect(cx: &DeviceCall<'_>, problem: &SpmmProblem, among: &[Algorithm]) -> Result<SpmmInspection> {
    let shared = SharedResults::for_choice(cx.device);
    let analysis = Analysis { cx, problem, shared: &shared };
    let (statistics, clustered) = (analysis.statistics()?, analysis.clustered_statistics(among)?);
    Ok(SpmmInspection { statistics, clustered, backend_state: Box::new(shared) })
}

/// Builds the executor of the chosen method.
pub(super) fn build(
    cx: &DeviceCall<'_>,
    problem: &SpmmProblem,
    choice: &Choice,
    inspection: Option<&SpmmInspection>,
) -> Result<Box<SpmmExecutor>> {
    let fresh = SharedResults::new(cx.device);
    let shared = inspection.and_then(|inspection| inspection.backend_state.downcast_ref()).unwrap_or(&fresh);
    let analysis = Analysis { cx, problem, shared };
    if !matches!(choice.method, Method::SpmmSell) {
        analysis.discard_slices();
    }
    Ok(match &choice.method {
        Method::Window(clusters) => {
            let clusters = analysis.takes_clusters(clusters)?;
            match problem.types.a.size() {
                2 => Box::new(WindowSpmm::<DenseTiles>::build(&analysis, clusters)?),
                _ => Box::new(WindowSpmm::<MaskedTiles>::build(&analysis, clusters)?),
            }
        }
        Method::Dense(multiplier) => Box::new(dense::build_from(&analysis, *multiplier)?),
        Method::Swift { deterministic } => Box::new(swift::build(cx, problem, *deterministic)?),
        Method::Smat { clusters, width } => Box::new(smat::build_from(&analysis, (clusters, *width))?),
        Method::SpmmSell => Box::new(sell::SellSpmm::build(&analysis)?),
        Method::SpmmCsr(order) => Box::new(csr::CsrSpmm::build(&analysis, choice.a, order)?),
        Method::Row(order) => Box::new(RowSpmm::build(&analysis, choice.a, order)?),
        other => return Err(other.is_of_another_operation()),
    })
}

kernel_structs! {
    /// Row offsets of either type, laid out as the kernels' `Offsets`.
    struct Offsets = "spmm/join.cuh Offsets" {
        pointer: Address,
        wide: i64,
    }
}

/// Groups of lanes that take the rows of this product; `None` if the lists are for the other kernels.
fn groups_of(
    device: &Device,
    problem: &SpmmProblem,
    rows: &Rows,
    order: &select::RowOrder,
) -> Option<row::Groups> {
    let sizes = (rows.rows, rows.nnz);
    let is_for_groups = !order.policy.is_named() && row::is_for_groups(problem, rows.index_type, sizes);
    let multiprocessors = i64::from(device.properties().multiprocessors);
    let groups = || row::groups_of(problem.types.x.size(), problem.columns(), sizes, multiprocessors);
    is_for_groups.then(groups)
}

struct RowSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    operand: Operand,
    order: RowOrder,
    schedule: Schedule,
    kernels: Arc<Kernels>,
    /// Mean number of entries of a row.
    mean: i64,
    reach: Reach,
    /// Maximum number of bytes for copies of B and for sums of C together; where they need more, fewer columns
    /// are multiplied at a time.
    max_copied_bytes: usize,
    /// Conditions under which columns of B and C are not copied; `None` if they always are.
    column_limits: Option<ColumnLimits>,
    /// Division of the rows among warps without lists, for products without a plan; `None` if lists are needed.
    path: Option<Path>,
}

filled_members!(RowSpmm { operand, order, schedule });

/// Strides of a dense operand: element (i, j) is at i · row + j · col.
#[derive(Clone, Copy)]
struct Strides {
    row: i64,
    col: i64,
}

impl Strides {
    fn new(order: Order, transposed: bool, ld: i64) -> Self {
        if (order == Order::Row) != transposed {
            Strides { row: ld, col: 1 }
        } else {
            Strides { row: 1, col: ld }
        }
    }
}

/// Workspace offsets, in bytes, and how many columns use them at a time.
struct RowWorkspaceOffsets {
    lists: usize,
    partial: usize,
    packed_b: usize,
    sums: usize,
    total: usize,
    /// Leading dimension of the copied B, in elements.
    ld: i64,
    /// Number of columns that are copied and multiplied at a time.
    columns: usize,
}

/// Multiplies numbers, and saturates, so that a size beyond the address space asks for all memory.
fn saturating_product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &factor| product.saturating_mul(factor))
}

/// Rounds a number of bytes up to whole cache lines, to which arrays in the workspace are aligned; saturates.
fn whole_lines(bytes: usize) -> usize {
    bytes.saturating_add(LINE - 1) & !(LINE - 1)
}

/// Rows that have been counted for `row`: op(A), the order of its rows, the statistics of their lengths, and the
/// counts.
type CountedRows = (Operand, RowOrder, RowStats, RowCounts);

/// Counts the rows of op(A) for `row`, and validates them, unless that was done already. Blocks.
fn count_rows(analysis: &Analysis<'_>, source: Source, order: &select::RowOrder) -> Result<CountedRows> {
    let &Analysis { cx, problem, .. } = analysis;
    if let Some(counts) = analysis.take_row_counts(source, order) {
        let InspectedRows { operand, stats, .. } = analysis.rows_from(source)?;
        return Ok((operand, RowOrder::none(), stats, counts));
    }
    let mut words = Readback::take(cx)?;
    // Lists for groups depend on sizes alone, so that they are counted beside the check.
    let unchecked = analysis.unchecked_rows(source);
    let groups = unchecked.as_ref().and_then(|rows| groups_of(cx.device, problem, rows, order));
    if let (Some(rows), Some(groups)) = (unchecked, groups) {
        const CHECK: usize = RowCounts::WORDS;
        const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);
        let mut counts = RowCounts::new(cx, &rows, Lengths::OfGroups(groups))?;
        let overlap = &Overlap::new(true);
        check::enqueue_rows(cx, &rows, &words, CHECK, None, overlap)?;
        counts.enqueue(cx, &rows, (&words, 0), overlap)?;
        words.fetch(cx, CHECK)?;
        let words = words.wait(cx)?;
        counts.read(words, 0);
        let report = check::pattern_report(cx, &problem.a, problem.op, "A", &words[CHECK..][..check::WORDS])?;
        let (a, updates) = (&problem.a, problem.value_updates);
        let (operand, stats) = Operand::inspected(cx, a, problem.op, source, updates, &report)?;
        return Ok((operand, RowOrder::none(), stats, counts));
    }
    let InspectedRows { operand, stats, .. } = analysis.rows_in_order(source, order)?;
    let (operand, row_order) = RowOrder::apply(cx, operand, problem.types.a, order)?;
    let rows = operand.rows();
    let groups = groups_of(cx.device, problem, &rows, order);
    let lengths = groups.map_or(Lengths::Longest(stats.max), Lengths::OfGroups);
    let mut counts = RowCounts::new(cx, &rows, lengths)?;
    counts.enqueue(cx, &rows, (&words, 0), &Overlap::new(true))?;
    words.fetch(cx, RowCounts::WORDS)?;
    counts.read(words.wait(cx)?, 0);
    Ok((operand, row_order, stats, counts))
}

impl RowSpmm {
    fn build(analysis: &Analysis<'_>, source: Source, order: &select::RowOrder) -> Result<Self> {
        let &Analysis { cx, problem, .. } = analysis;
        let (operand, order, stats, counts) = count_rows(analysis, source, order)?;
        let rows = operand.rows();
        let (schedule, reach, counts) = counts.fill(cx, &rows, stats.max)?;
        let mean = rows.nnz / rows.rows.max(1);
        let kernels = Kernels::load(cx.device, problem.types, rows.index_type)?;
        if schedule.has_groups() {
            kernels.groups(cx.device, problem.types)?;
        }
        let (device, problem) = (Arc::clone(cx.device), *problem);
        let max_copied_bytes = usize::MAX;
        let (column_limits, path) = (None, None);
        let made = RowSpmm {
            device,
            problem,
            operand,
            order,
            schedule,
            kernels,
            mean,
            reach,
            max_copied_bytes,
            column_limits,
            path,
        };
        filled_from(cx, made, counts)
    }

    /// Type of the sums.
    fn accumulator(&self) -> DataType {
        self.problem.types.compute.scalar()
    }

    fn conjugates_b(&self) -> bool {
        self.problem.op_b == Operation::ConjugateTranspose && self.problem.types.x.is_complex()
    }

    /// Returns whether every B is first copied into contiguous rows.
    fn packs_b(&self, n: usize) -> bool {
        let by_rows = Strides::new(self.problem.b_order, self.problem.op_b.transposes(), 0).col == 1;
        row_needs_rows(n, by_rows, self.conjugates_b()) && self.path_of_columns().is_none()
    }

    /// Division of the rows for a product without a plan that reads and writes columns where they are.
    fn path_of_columns(&self) -> Option<&Path> {
        self.path.as_ref().filter(|path| matches!(path.tile, Tile::Columns { .. }))
    }

    /// Returns whether B is first copied into rows of whole cache lines if its own are not.
    fn aligns_b(&self, n: usize) -> bool {
        let rows = self.operand.rows();
        row_aligns(n, self.problem.types.x.size(), (rows.nnz, rows.cols)) && self.path_of_columns().is_none()
    }

    /// Returns whether this B of `n` columns is copied.
    fn copies_b(&self, b: &DenseMatrix, n: usize) -> bool {
        let row = Strides::new(b.order, self.problem.op_b.transposes(), b.ld).row;
        let are_lines =
            row.saturating_mul(b.value_type.size() as i64) % LINE as i64 == 0 && b.values.is_aligned(LINE);
        self.packs_b(n) || self.aligns_b(n) && !are_lines
    }

    /// Returns whether sums are stored in the workspace before they go to C.
    fn finishes_c(&self, n: usize) -> bool {
        if self.path_of_columns().is_some() {
            return false;
        }
        let rows = self.schedule.row_count as usize;
        let c_by_columns = self.problem.c_order == Order::Col;
        let without_lists = self.path.is_some() && self.stores_sums() && c_by_columns && n > row::NARROW;
        without_lists || row::stores_sums_first((rows, n), c_by_columns)
    }

    /// Returns whether sums have the type of C's elements.
    fn stores_sums(&self) -> bool {
        self.problem.types.y == self.accumulator()
    }

    fn workspace_offsets(&self, n: usize) -> RowWorkspaceOffsets {
        let rows = self.operand.rows();
        let (size, acc) = (self.problem.types.x.size(), self.accumulator().size());
        // Rows consist of whole packs of 16 bytes, or of whole cache lines.
        let unit = if self.aligns_b(n) { LINE } else { 16 };
        let per_unit = (unit / size).max(1);
        let lists = whole_lines(self.schedule.list_bytes());
        let by_lists = saturating_product(&[self.schedule.slots as usize, n, acc]);
        let partial = whole_lines(by_lists.max(self.path.map_or(0, |path| path.partial_bytes(acc))));
        let copied = |columns: usize| {
            let ld = columns.div_ceil(per_unit).saturating_mul(per_unit);
            let packs = self.packs_b(n) || self.aligns_b(n);
            let packed = if packs { saturating_product(&[rows.cols as usize, ld, size]) } else { 0 };
            let sums =
                if self.finishes_c(n) { saturating_product(&[rows.rows as usize, columns, acc]) } else { 0 };
            (ld, whole_lines(packed), whole_lines(sums))
        };
        let fits = |&columns: &usize| {
            let (_, packed, sums) = copied(columns);
            columns <= row::LEAST_COPIED || packed.saturating_add(sums) <= self.max_copied_bytes
        };
        let columns = std::iter::successors(Some(n), |&columns| Some(row::fewer_copied(columns)))
            .find(fits)
            .unwrap_or(n);
        let (ld, packed, sums) = copied(columns);
        let packed_b = lists.saturating_add(partial);
        let sums_at = packed_b.saturating_add(packed);
        RowWorkspaceOffsets {
            lists: 0,
            partial: lists,
            packed_b,
            sums: sums_at,
            total: sums_at.saturating_add(sums),
            ld: ld as i64,
            columns,
        }
    }

    /// Number of blocks for runs, shared rows, and parts of split rows.
    fn blocks(&self, step: &Step) -> Result<u32> {
        blocks_of_grid(
            self.schedule.blocks(step.runs_a_warp) << step.together,
            "A: it has more rows than one launch can take",
        )
    }
}

impl DenseExecutor<DenseMatrix> for RowSpmm {
    methods_of_ordered_rows!();

    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let accumulator = self.accumulator();
        let (alpha, beta) = scalars(cx, accumulator, alpha, beta)?;
        let rows = self.operand.rows();
        let n = c.cols as usize;
        if rows.rows == 0 || n == 0 {
            return Ok(());
        }
        let offsets = self.workspace_offsets(n);
        cx.workspace.require(offsets.total)?;

        if let Some(path) = self.path_of_columns().filter(|path| path.n == n) {
            let kernels = self.kernels.column_merge(cx.device, self.problem.types, rows.index_type)?;
            let of_a = (&rows, path, self.problem.types.a.size());
            let partial = cx.workspace.address.offset(offsets.partial);
            return kernels.enqueue(cx, of_a, (b, c), (alpha, beta), partial);
        }
        let columns_at_once = if self.copies_b(b, n) || self.finishes_c(n) { offsets.columns } else { n };
        // Nonzero in device memory where the product has been computed without copies.
        let decision = match self.column_limits {
            Some(limits) => {
                let lists = (self.schedule.state(cx), cx.workspace.address.offset(offsets.lists));
                let kernels = self.kernels.columns(cx.device, self.problem.types, rows.index_type)?;
                kernels.enqueue(cx, &rows, limits, (b, c), (alpha, beta), lists)?
            }
            None => Address::NULL,
        };
        for first in (0..n).step_by(columns_at_once) {
            let columns = columns_at_once.min(n - first);
            self.multiply(cx, (alpha, beta), b, c, &offsets, (first, columns), decision)?;
        }
        Ok(())
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let a = (&mut self.problem.a, self.problem.op);
        self.operand.update_values(cx, a, values, "A")
    }
}

impl RowSpmm {
    /// Multiplies for `n` columns of C from column `begin` on: as many as are copied and summed at a time. Kernels
    /// do nothing if `decision` is the address of a number that is not zero.
    #[allow(clippy::too_many_arguments)]
    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        (alpha, beta): (Scalar, Scalar),
        b: &DenseMatrix,
        c: &DenseMatrix,
        offsets: &RowWorkspaceOffsets,
        (begin, n): (usize, usize),
        decision: Address,
    ) -> Result<()> {
        let rows = self.operand.rows();
        let accumulator = self.accumulator();
        let (b_size, c_size) = (b.value_type.size(), c.value_type.size());
        let workspace_at = |offset: usize| cx.workspace.address.offset(offset);
        let all = c.cols as usize;

        let mut from = Strides::new(b.order, self.problem.op_b.transposes(), b.ld);
        let b_values = b.values.offset(begin * from.col as usize * b_size);
        let mut b_at = b_values;
        let mut flags: i64 = if self.conjugates_b() { 4 } else { 0 };
        if self.copies_b(b, all) && rows.cols > 0 {
            b_at = workspace_at(offsets.packed_b);
            let copy = (b_at, offsets.ld);
            copy_b(cx, &self.kernels.pack, (b_values, from, b_size), (rows.cols, n), copy, flags, decision)?;
            (from, flags) = (Strides { row: offsets.ld, col: 1 }, 0);
        }
        let to = Strides::new(c.order, false, c.ld);
        let c_values = c.values.offset(begin * to.col as usize * c_size);
        let raw = self.finishes_c(all);
        let (c_at, c_strides) = if raw {
            (workspace_at(offsets.sums), Strides { row: n as i64, col: 1 })
        } else {
            (c_values, to)
        };

        let row_offsets = Offsets { pointer: rows.offsets, wide: rows.offset_type.wide() };
        let packs_c = c_values.is_aligned(16) && (c.ld as usize * c_size) % 16 == 0 && to.col == 1;
        flags |= i64::from(packs_c) | if raw { 2 } else { 0 };
        flags |= if decision == Address::NULL { 0 } else { 32 };
        let (partial, lists) = (workspace_at(offsets.partial), workspace_at(offsets.lists));
        let columns = n as i64;
        let finish = || match raw {
            true => {
                let kernel = &self.kernels.finish;
                finish_c(cx, kernel, c_at, (c_values, to), (rows.rows, columns), (alpha, beta), decision)
            }
            false => Ok(()),
        };
        let operands = AlignedOperands {
            a_size: self.problem.types.a.size(),
            b: b_at,
            b_row_bytes: from.row * b_size as i64,
            b_size,
            c: c_at,
            c_row: c_strides.row,
            is_raw: raw,
            prefetches: !self.copies_b(b, all),
        };
        let b_by_rows = from.col == 1;
        let c_has_packs = packs_c || raw && self.stores_sums() && n * accumulator.size() % 16 == 0;
        if let Some(path) = self.path.as_ref().filter(|path| matches!(path.tile, Tile::Rows { .. })) {
            if path.n == n && path.n == all && b_by_rows && c_has_packs && operands.has_aligned_b(rows.cols) {
                let kernels = self.kernels.merge(cx.device, self.problem.types, rows.index_type)?;
                kernels.enqueue(cx, (&rows, path), &operands, (alpha, beta), partial)?;
                return finish();
            }
        }
        if begin == 0 {
            self.schedule.make(cx, &rows, lists, decision != Address::NULL)?;
        }
        let c_size = if raw { accumulator.size() } else { c_size };
        let mut first = 0;
        while first < n {
            let step = self.step(n - first, b_at, from, packs_c && !raw);
            let tasks = self.schedule.tasks(step.spread, cx.counters, lists);
            let b_row = if step.is_wide() { from.row * b_size as i64 } else { from.row };
            let b_part = b_at.offset(first * from.col as usize * b_size);
            let c_part = c_at.offset(first * c_strides.col as usize * c_size);
            let partial = partial.offset(first * accumulator.size());
            let flags = flags | if step.packs { 8 } else { 0 } | i64::from(step.together) << 8;
            let grid = (self.blocks(&step)?, step.tiles.div_ceil(1 << step.together));
            let kernel = self.kernel(step.kernel);
            if let row::Kernel::Groups { lanes, .. } = step.kernel {
                let (tasks, blocks) =
                    self.schedule.groups(lanes, cx.counters).expect("the step is of these lists");
                let blocks =
                    blocks_of_grid(blocks << step.together, "A: it has more rows than one launch can take")?;
                let grid_y = step.tiles.div_ceil(1 << step.together);
                let b_packs = (b_row / 16) as u32;
                // SAFETY: as below; rows of B and C are aligned to 16 bytes, and 32 bits can number the
                // packs of B.
                unsafe {
                    launch_product!(kernel, (blocks, grid_y), ROW_THREADS, 0, cx.stream;
                        rows.indices, rows.values, rows.base as i32, tasks, b_part, b_packs, c_part, c_strides.row,
                        step.columns as i32, alpha, beta, partial, columns, step.together as i32)?;
                }
                first += step.columns;
                continue;
            }
            // First the rows in lists that were made without a plan, then the runs, which need no lists.
            let mut kernels = vec![(kernel, grid.0, flags, true)];
            if let (Some(lists), blocks @ 1..) = (self.kernels.lists.get(), self.schedule.list_blocks()) {
                let of_lists = lists.of(step.kernel);
                let blocks = (blocks << step.together) as u32;
                // The kernel that makes the lists immediately precedes the first step only. Later steps wait
                // as usual for the preceding kernel, which may not support early launches.
                let early = begin + first == 0;
                kernels = vec![(of_lists, blocks, flags, early), (kernel, grid.0, flags | 16, true)];
            }
            for (kernel, blocks, flags, early) in kernels {
                // SAFETY: the operands are as their descriptors say; the pattern was checked by analysis, or
                // a caller without one promises it; the workspace is large enough, and the handle lends its
                // counters to one call at a time.
                unsafe {
                    launch_early!(early, kernel, (blocks, grid.1), ROW_THREADS, 0, cx.stream;
                        row_offsets, rows.indices, rows.values, rows.base, tasks, b_part, b_row, from.col,
                        c_part, c_strides.row, c_strides.col, self.order.address(), step.columns as i64, alpha, beta, partial,
                        columns, flags)?;
                }
            }
            first += step.columns;
        }
        finish()
    }

    /// Chooses the launch for the first of the `n` remaining columns.
    fn step(&self, n: usize, b: Address, strides: Strides, packs_c: bool) -> Step {
        let x = self.problem.types.x;
        let plan = Plan {
            size: x.size(),
            is_complex: x.is_complex(),
            conjugates_b: self.conjugates_b(),
            has_twins: self.kernels.rows.twins.is_some(),
            rows: self.schedule.row_count,
            mean: self.mean,
            is_packed: self.schedule.is_packed(),
            has_groups: packs_c && self.schedule.has_groups(),
            cols: self.operand.rows().cols,
            tiles_at_once: self.schedule.tiles_at_once(),
            multiprocessors: i64::from(self.device.properties().multiprocessors),
            reach: &self.reach,
        };
        let row_bytes = strides.row.saturating_mul(x.size() as i64);
        plan.step(n, &RowsOfB { address: b.value(), row_bytes, are_contiguous: strides.col == 1 })
    }

    fn kernel(&self, kernel: row::Kernel) -> Kernel {
        match kernel {
            row::Kernel::Groups { lanes, packs } => {
                self.kernels.group_kernel((lanes, packs)).expect("all were loaded")
            }
            other => self.kernels.rows.of(other),
        }
    }
}

/// Enqueues a copy of op(B), which has `rows` rows and `n` columns of `size` bytes an element, to contiguous rows at
/// `to` with leading dimension `ld`. `flags`: 4 if elements are conjugated. Nothing is copied if the number at
/// `decision` is not zero, unless the address is NULL.
fn copy_b(
    cx: &Context,
    kernel: &Kernel,
    (b, from, size): (Address, Strides, usize),
    (rows, n): (i64, usize),
    (to, ld): (Address, i64),
    flags: i64,
    decision: Address,
) -> Result<()> {
    // SAFETY: B is as its descriptor says; the workspace holds the copy.
    unsafe {
        launch!(kernel, (grid_x(rows, size, decision)?, grid_y(n)), THREADS, 0, cx.stream;
            b, from.row, from.col, to, rows, n as i64, ld, flags, decision)
    }
}

/// Enqueues alpha · sums + beta · C for a C of `rows` rows and `columns` columns, whose sums are in the workspace.
/// Nothing is written if the number at `decision` is not zero, unless the address is NULL.
fn finish_c(
    cx: &Context,
    kernel: &Kernel,
    sums: Address,
    (c, to): (Address, Strides),
    (rows, columns): (i64, i64),
    (alpha, beta): (Scalar, Scalar),
    decision: Address,
) -> Result<()> {
    let size = alpha.compute().size();
    // SAFETY: the workspace holds all sums; C is as its descriptor says.
    unsafe {
        launch!(kernel, (grid_x(rows, size, decision)?, grid_y(columns as usize)), THREADS, 0, cx.stream;
            sums, c, to.row, to.col, rows, columns, alpha, beta, decision)
    }
}

/// Does the same for a C whose columns are contiguous.
fn finish_columns(
    cx: &Context,
    kernel: &Kernel,
    sums: Address,
    c: &DenseMatrix,
    scalars: (Scalar, Scalar),
) -> Result<()> {
    let to = Strides { row: 1, col: c.ld };
    finish_c(cx, kernel, sums, (c.values, to), (c.rows, c.cols), scalars, Address::NULL)
}

/// Number of rows that a block of the kernels that copy moves at a time, for elements of `size` bytes (row.cuh's
/// TILES).
fn rows_of_block(size: usize) -> i64 {
    32 * (8 / size as i64).max(1)
}

/// Number of blocks that copy so many rows of elements of `size` bytes; more than 2³¹ of them exceed any memory.
/// Blocks that may have nothing to do are limited, and take rows by turns.
fn grid_x(rows: i64, size: usize, decision: Address) -> Result<u32> {
    let each = rows_of_block(size);
    let blocks = (rows + each - 1) / each;
    let blocks = if decision == Address::NULL { blocks } else { blocks.min(MOST_IDLE_BLOCKS) };
    blocks_of_grid(blocks, "B: it has more rows than one launch can take")
}

fn grid_y(n: usize) -> u32 {
    n.div_ceil(32).min(tiles::MOST) as u32
}
