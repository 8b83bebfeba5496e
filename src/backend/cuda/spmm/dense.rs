//! SpMM algorithm `dense`: C = alpha · op(A) · op(B) + beta · C with op(A) as a dense matrix, zeros included
//! (src/format/dense.rs), which analysis fills on the device (kernels/format/dense.cu).
//!
//! The product is by kernels/spmm/dense.cuh ([`own`]) in four cases: small products, where that is as fast
//! and opens no library; fp32 with many columns, where it is faster (kernels/spmm/dense_terms.cuh);
//! deterministic mode; and where cublasLt is not installed. Otherwise it is by cublasLt ([`lt`]).
//!
//! If beta is 0 (and on the host), the product goes directly to C, and a second launch finds infinities and
//! NaNs of op(B) by the elements of C that are not finite. Otherwise, and where K is cut into parts or rows
//! are not aligned, the product goes to the workspace, some columns at a time, and the second launch stores
//! C. In both cases that launch computes elements that are not finite again from the stored entries
//! (kernels/spmm/dense_finish.cu).

mod lt;
pub mod own;
mod packs;

use std::sync::Arc;

use self::lt::{Lt, Trial};
use self::own::Own;
use self::packs::padded;
use super::analysis::{Analysis, InspectedRows};
use super::{saturating_product, whole_lines, Strides};
use crate::backend::cuda::cublaslt::{Factor, Sizes};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, launch_early, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{self, filled, filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, Widths};
use crate::backend::cuda::scalars::{scalars, Scalar};
use crate::backend::cuda::timing;
use crate::backend::cuda::types_name;
use crate::backend::{DenseExecutor, LayoutInfo};
use crate::error::Result;
use crate::format::dense::DenseShape;
use crate::matrix::DenseMatrix;
use crate::memory::{Context, Workspace};
use crate::problem::SpmmProblem;
use crate::select::spmm::tiles;
use crate::select::{self, Multiplier};
use crate::support::Types;
use crate::types::{Address, ComputeType, DataType, LayoutKind, Order, PointerMode, ScalarsAt};

kernel_kinds! {
    "format/dense" { FILL(String, Widths) = "fill" for [["f16", "bf16", "f32", "f64"], widths()]; }
    "spmm/dense_finish" {
        REPAIR(String) = "repair" for [types(Algorithm::Dense)];
        FINISH(String) = "finish" for [types(Algorithm::Dense)];
        PACK_ROWS(usize) = "pack" for [[16, 32, 64]];
    }
}
/// Threads of a block of the kernels that fill, repair and finish.
const THREADS: u32 = 256;
/// Alignment of cublasLt's workspace in bytes. It refuses others (INVALID_VALUE), and a user's workspace is
/// aligned to 16 only.
const LT_ALIGNMENT: usize = 256;

kernel_structs! {
    /// Stored entries of op(A), laid out as the kernels' `Entries`.
    struct Entries = "spmm/dense_finish.cu Entries" {
        offsets: Address,
        indices: Address,
        values: Address,
        wide_offsets: i64,
        wide_indices: i64,
        base: i64,
    }

    /// Operand op(B), laid out as the kernels' `Right`.
    struct Right = "spmm/dense_finish.cu Right" {
        data: Address,
        row: i64,
        col: i64,
    }

    /// Products in the workspace, laid out as the kernels' `Products`.
    struct Products = "spmm/dense_finish.cu Products" {
        data: Address,
        ld: i64,
        parts: i64,
        stride: i64,
    }

    /// Shape of C and how threads cover it, laid out as the kernels' `Shape`.
    struct Lines = "spmm/dense_finish.cu Shape" {
        outer: i64,
        inner: i64,
        ldc: i64,
        rows_are_outer: i64,
        wide: i64,
        across: i64,
        deep: i64,
    }
}

/// Library whose kernels multiply: cublasLt or this one.
enum Engine {
    Lt(Lt),
    Own(Box<Own>),
}

/// Workspace offsets, in bytes, and how many columns use them at a time.
struct DenseWorkspaceOffsets {
    engine: usize,
    packed_b: usize,
    products: usize,
    total: usize,
    /// Number of columns whose products are in the workspace at a time.
    columns: usize,
}

/// Dense operand as a product reads or writes it: element (i, j) is at i · row + j · col.
#[derive(Clone, Copy)]
pub struct DenseOperand {
    at: Address,
    strides: Strides,
    value: DataType,
}

impl DenseOperand {
    /// Makes a matrix of contiguous rows with leading dimension `ld`.
    pub fn by_rows(at: Address, ld: i64, value: DataType) -> Self {
        DenseOperand { at, strides: Strides { row: ld, col: 1 }, value }
    }

    /// Returns the matrix without the columns before `first`.
    fn skip_columns(self, first: usize) -> Self {
        DenseOperand { at: self.at.offset(first * self.strides.col as usize * self.value.size()), ..self }
    }

    fn ld(&self) -> i64 {
        self.strides.row.max(self.strides.col)
    }

    fn is_by_rows(&self) -> bool {
        self.strides.col == 1
    }
}

/// Executor of SpMM `dense`.
pub(super) struct DenseSpmm {
    device: Arc<Device>,
    problem: SpmmProblem,
    operand: Operand,
    shape: DenseShape,
    /// Elements of op(A): element (i, j) at i · row + j · col.
    values: DeviceBuffer<u8>,
    strides: Strides,
    /// Flag that is 1 if a row of A can make sums that are not finite and have to be computed again: either
    /// entries repeat and their sum exceeds the range of a half, or a number is too large for the first of
    /// three parts of bf16. `None` if neither can happen.
    special: Option<DeviceBuffer<u32>>,
    /// True if entries may repeat.
    repeats: bool,
    engine: Engine,
    fill: Kernel,
    repair: Kernel,
    finish: Kernel,
}

filled_members!(DenseSpmm { operand, values, special });

/// Builds the executor.
pub(super) fn build_from(analysis: &Analysis<'_>, multiplier: Multiplier) -> Result<DenseSpmm> {
    let &Analysis { cx, problem, .. } = analysis;
    let (m, k, _) = problem.a.shape_of(problem.op);
    let work = saturating_product(&[m as usize, k as usize, problem.n_hint.max(0) as usize]);
    let installed = match multiplier {
        Multiplier::CublasLt { timed, a_by_columns } => {
            cx.device.cublaslt().map(|library| (library, timed, a_by_columns))
        }
        Multiplier::Own | Multiplier::OwnInParts => None,
    };
    let Some((library, timed, a_by_columns)) = installed else {
        let in_parts = multiplier == Multiplier::OwnInParts;
        let engine = Engine::Own(Box::new(Own::load(cx.device, problem.types, in_parts)?));
        return DenseSpmm::build(analysis, engine, false);
    };
    let engine = Engine::Lt(Lt::load(cx.device, library, problem, work)?);
    let mut executor = DenseSpmm::build(analysis, engine, a_by_columns)?;
    if timed {
        executor.tune(cx)?;
    }
    Ok(executor)
}

impl DenseSpmm {
    fn build(analysis: &Analysis<'_>, engine: Engine, by_columns: bool) -> Result<Self> {
        let &Analysis { cx, problem, .. } = analysis;
        let (op, size) = (problem.op, problem.types.a.size());
        let (rows, cols, nnz) = problem.a.shape();
        let (rows, cols) = op.shape(rows, cols);
        let shape = DenseShape::new(rows as usize, cols as usize, nnz as usize, size)?;
        let (strides, elements) = match by_columns {
            true => {
                let ld = padded(shape.rows, size);
                (Strides { row: 1, col: ld as i64 }, saturating_product(&[shape.cols, ld]))
            }
            false => (Strides { row: shape.ld as i64, col: 1 }, shape.elements()),
        };
        let InspectedRows { operand, report, .. } = match problem.a.temporary {
            true => analysis.rows_from(select::Source::Canonical)?,
            false => analysis.take_rows()?,
        };
        let has_parts = matches!(&engine, Engine::Own(own) if own.is_in_parts());
        let widths = operand.rows().widths();
        let of_a = Types { y: problem.types.a, ..problem.types };
        let executor = DenseSpmm {
            device: Arc::clone(cx.device),
            problem: *problem,
            operand,
            shape,
            values: DeviceBuffer::zeroed(cx, saturating_product(&[elements, size]))?,
            strides,
            special: match report.structure.unique && !has_parts {
                true => None,
                false => Some(DeviceBuffer::zeroed(cx, 1)?),
            },
            repeats: !report.structure.unique,
            engine,
            fill: FILL.load(cx.device, (types_name(of_a), widths))?,
            repair: REPAIR.load(cx.device, (types_name(problem.types),))?,
            finish: FINISH.load(cx.device, (types_name(problem.types),))?,
        };
        executor.fill(cx)?;
        executor.warm(cx)?;
        filled(cx, executor)
    }

    /// Adds the stored entries to a matrix of zeros.
    fn fill(&self, cx: &Context) -> Result<()> {
        let rows = self.operand.rows();
        if rows.nnz == 0 {
            return Ok(());
        }
        let special = self.special.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let multiprocessors = self.device.properties().multiprocessors;
        let blocks = select::spmm::dense::blocks_that_fill(rows.rows, multiprocessors);
        // SAFETY: the pattern was checked, and the dense matrix has op(A)'s rows and columns.
        unsafe {
            launch!(self.fill, blocks, THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.values, rows.base, rows.rows, self.values.address(),
                self.strides.row, self.strides.col, i32::from(self.repeats), special)
        }
    }

    /// Runs a product of zeros, because the first launch of a kernel loads it.
    fn warm(&self, cx: &Context) -> Result<()> {
        let (n, types) = (self.problem.n_hint.max(0) as usize, self.problem.types);
        let (m, k) = (self.shape.rows, self.shape.cols);
        let b_bytes = saturating_product(&[k, n, types.x.size()]);
        let c_bytes = saturating_product(&[m, n, types.y.size()]);
        if !select::spmm::dense::is_run_ahead(b_bytes, c_bytes) {
            return Ok(());
        }
        let b = DeviceBuffer::<u8>::zeroed(cx, b_bytes)?;
        let c = DeviceBuffer::<u8>::new(cx, c_bytes)?;
        let bytes = self.workspace_bytes(n);
        let scratch = DeviceBuffer::<u8>::new(cx, bytes)?;
        let cx = Context {
            workspace: Workspace { address: scratch.address(), bytes },
            pointer_mode: PointerMode::Host,
            ..cx.clone()
        };
        let dense = |at: &DeviceBuffer<u8>, rows: usize, cols: usize, order: Order, value_type: DataType| {
            let ld = if order == Order::Row { cols } else { rows };
            DenseMatrix {
                rows: rows as i64,
                cols: cols as i64,
                ld: ld as i64,
                values: at.address(),
                value_type,
                order,
                writable: true,
            }
        };
        let (b_rows, b_cols) = if self.problem.op_b.transposes() { (n, k) } else { (k, n) };
        let b = dense(&b, b_rows, b_cols, self.problem.b_order, types.x);
        let c = dense(&c, m, n, self.problem.c_order, types.y);
        let real = |number| Scalar::real(types.compute.scalar(), number);
        self.run(&cx, &b, &c, real(1.0), real(0.0))
    }

    /// Times cublasLt's algorithms for the plan's number of columns, with unpadded operands, and keeps the
    /// fastest.
    fn tune(&mut self, cx: &DeviceCall<'_>) -> Result<()> {
        let mut trial = Trial::default();
        while let Engine::Lt(lt) = &mut self.engine {
            if !trial.next(lt) {
                break;
            }
            let seconds = timing::spmm(cx, &self.problem, &*self)?;
            if let Engine::Lt(lt) = &mut self.engine {
                trial.took(lt, seconds);
            }
        }
        Ok(())
    }

    /// Bytes of the type of the sums.
    fn sum_size(&self) -> usize {
        if self.problem.types.compute == ComputeType::R64F {
            8
        } else {
            4
        }
    }

    fn sum_type(&self) -> DataType {
        if self.sum_size() == 8 {
            DataType::R64F
        } else {
            DataType::R32F
        }
    }

    /// Leading dimension of the products of `columns` columns: whole packs of C.
    fn products_ld(&self, columns: usize) -> usize {
        let inner = if self.problem.c_order == Order::Row { columns } else { self.shape.rows };
        inner.div_ceil(16).saturating_mul(16)
    }

    /// Bytes of the products of `columns` columns.
    fn products_bytes(&self, columns: usize) -> usize {
        let outer = if self.problem.c_order == Order::Row { self.shape.rows } else { columns };
        saturating_product(&[outer, self.products_ld(columns), self.sum_size()])
    }

    fn lt_workspace(&self, n: usize) -> usize {
        select::spmm::dense::lt_workspace(saturating_product(&[self.shape.rows, n, self.sum_size()]))
    }

    /// Number of columns that the product for `columns` columns of C has, padding included.
    fn width(&self, pads_n: bool, columns: usize) -> usize {
        match pads_n {
            true => padded(columns, self.problem.types.x.size()),
            false => columns,
        }
    }

    fn workspace_offsets(&self, n: usize) -> DenseWorkspaceOffsets {
        let DenseShape { rows: m, cols: k, .. } = self.shape;
        let columns = select::spmm::dense::columns_at_once(saturating_product(&[m, self.sum_size()]), n);
        let (engine, packed, parts) = match &self.engine {
            Engine::Lt(lt) => {
                let padded_k = lt.padded_k(k, self.problem.types.a.size());
                let packed = lt.copies(&self.problem, n).map_or(0, |packs| packs.bytes(padded_k, n));
                let own = self.lt_workspace(self.width(lt.pads_n(&self.problem, n), n));
                (own.saturating_add(LT_ALIGNMENT), packed, 1)
            }
            Engine::Own(own) => (0, own.packed_bytes(k, n), own.plan(&self.device, m, k, columns).parts),
        };
        let packed_b = whole_lines(engine);
        let products = packed_b.saturating_add(whole_lines(packed));
        let total = products.saturating_add(whole_lines(self.products_bytes(columns).saturating_mul(parts)));
        DenseWorkspaceOffsets { engine: 0, packed_b, products, total, columns }
    }

    /// Computes D = alpha · op(A) · op(B) for these columns by cublasLt; returns false if it cannot.
    fn multiply(
        &self,
        cx: &Context,
        workspace: Address,
        n: usize,
        alpha: &Scalar,
        b: DenseOperand,
        d: DenseOperand,
    ) -> Result<bool> {
        let (Engine::Lt(lt), Some(alpha)) = (&self.engine, alpha.on_host()) else { return Ok(false) };
        // Rows of A have zeros behind the last column.
        let k = lt.padded_k(self.shape.cols, self.problem.types.a.size()) as i64;
        let m = self.shape.rows as i64;
        let alignment = |at: Address| 1 << at.value().trailing_zeros().min(8);
        // `transposed` is meant for an A that is stored by rows.
        let a_factor = |transposed| Factor {
            ld: self.strides.row.max(self.strides.col),
            transposed: transposed != (self.strides.row == 1),
            alignment: alignment(self.values.address()),
        };
        let b_factor = |transposed| Factor { ld: b.ld().max(1), transposed, alignment: alignment(b.at) };
        let common = Sizes {
            m,
            n: n as i64,
            k,
            a: a_factor(true),
            b: b_factor(b.is_by_rows()),
            d: Factor { ld: d.ld(), transposed: false, alignment: alignment(d.at) },
            input: self.problem.types.a,
            output: d.value,
            tf32: self.problem.types.compute == ComputeType::Tf32,
            workspace: self.lt_workspace(n),
        };
        // A matrix by rows is the transpose of a matrix by columns: Dᵀ = Bᵀ · Aᵀ.
        let by_rows = d.is_by_rows();
        let sizes = match by_rows {
            false => common,
            true => Sizes { m: n as i64, n: m, a: b_factor(!b.is_by_rows()), b: a_factor(false), ..common },
        };
        let Some(matmul) = lt.matmul(&sizes) else { return Ok(false) };
        let (first, second) =
            if by_rows { (b.at, self.values.address()) } else { (self.values.address(), b.at) };
        let workspace = workspace.offset(workspace.value().wrapping_neg() % LT_ALIGNMENT);
        // SAFETY: the operands are as their descriptors say; the workspace holds what the sizes allow, and
        // the bytes for its alignment.
        unsafe { matmul.run(bytemuck::bytes_of(&alpha), first, second, d.at, workspace, cx.stream)? };
        Ok(true)
    }

    fn entries(&self) -> Entries {
        let rows = self.operand.rows();
        Entries {
            offsets: rows.offsets,
            indices: rows.indices,
            values: rows.values,
            wide_offsets: rows.offset_type.wide(),
            wide_indices: rows.index_type.wide(),
            base: rows.base,
        }
    }

    fn lines(&self, c: DenseOperand, n: usize) -> Lines {
        let (m, by_rows) = (self.shape.rows as i64, c.is_by_rows());
        let (outer, inner) = if by_rows { (m, n as i64) } else { (n as i64, m) };
        let (size, ldc) = (c.value.size(), if by_rows { c.strides.row } else { c.strides.col });
        let wide = c.at.is_aligned(16) && (ldc as usize).saturating_mul(size) % 16 == 0;
        let multiprocessors = i64::from(self.device.properties().multiprocessors);
        let (across, deep) = select::spmm::dense::lines_of_block((outer, inner), size, multiprocessors);
        Lines { outer, inner, ldc, rows_are_outer: i64::from(by_rows), wide: i64::from(wide), across, deep }
    }

    fn right(b: DenseOperand) -> Right {
        Right { data: b.at, row: b.strides.row, col: b.strides.col }
    }

    fn finish(
        &self,
        cx: &Context,
        (b, c): (DenseOperand, DenseOperand),
        n: usize,
        products: Products,
        (alpha, beta): (Scalar, Scalar),
    ) -> Result<()> {
        let lines = self.lines(c, n);
        let (at_once, packs) = (lines.deep * (256_i64 >> lines.across), 16 / c.value.size() as i64);
        let grid = (
            (lines.outer as u64).div_ceil(at_once as u64) as u32,
            (lines.inner as u64).div_ceil((packs << lines.across) as u64).min(tiles::MOST as u64) as u32,
        );
        // SAFETY: the operands are as their descriptors say; the products are in the workspace, or are not
        // read.
        unsafe {
            launch_early!(true, self.finish, grid, THREADS, 0, cx.stream;
                self.entries(), Self::right(b), products, c.at, lines, alpha, beta)
        }
    }

    fn run(&self, cx: &Context, b: &DenseMatrix, c: &DenseMatrix, alpha: Scalar, beta: Scalar) -> Result<()> {
        let (n, m, k) = (c.cols as usize, self.shape.rows, self.shape.cols);
        if m == 0 || n == 0 {
            return Ok(());
        }
        let offsets = self.workspace_offsets(n);
        cx.workspace.require(offsets.total)?;
        let workspace_at = |offset: usize| cx.workspace.address.offset(offset);
        let types = self.problem.types;
        let b_strides = Strides::new(b.order, self.problem.op_b.transposes(), b.ld);
        let b = DenseOperand { at: b.values, strides: b_strides, value: types.x };
        let c_strides = Strides::new(c.order, false, c.ld);
        let c = DenseOperand { at: c.values, strides: c_strides, value: types.y };
        let none = Products { data: Address::NULL, ld: 0, parts: 0, stride: 0 };
        let nnz = self.operand.rows().nnz;
        if k == 0 || nnz == 0 || alpha.is(0.0) {
            // A has only zeros or must not be read.
            return self.finish(cx, (b, c), n, none, (alpha, beta));
        }
        let a = (&self.shape, self.values.address());
        let (prepared, pads_n) = match &self.engine {
            Engine::Lt(lt) => {
                let padded_k = lt.padded_k(k, types.a.size());
                let b = match lt.copies(&self.problem, n) {
                    Some(packs) => packs.copy(cx, b, (k, padded_k, n), workspace_at(offsets.packed_b))?,
                    None => b,
                };
                (b, lt.pads_n(&self.problem, n))
            }
            Engine::Own(own) => (own.prepare(cx, b, k, n, workspace_at(offsets.packed_b))?, false),
        };
        if alpha.on_host().is_some() && beta.is(0.0) && !pads_n {
            let multiplied = match &self.engine {
                Engine::Lt(_) => self.multiply(cx, workspace_at(offsets.engine), n, &alpha, prepared, c)?,
                Engine::Own(own) => {
                    let plan = own.plan(&self.device, m, k, n);
                    if plan.parts == 1 {
                        own.multiply(cx, &plan, a, prepared, (c, n, 0), alpha)?;
                    }
                    plan.parts == 1
                }
            };
            if multiplied {
                return self.repair(cx, b, c, n, alpha);
            }
        }
        let by_rows = c.is_by_rows();
        let one = Scalar::real(types.compute.scalar(), 1.0);
        for first in (0..n).step_by(offsets.columns) {
            let columns = offsets.columns.min(n - first);
            let ld = self.products_ld(columns) as i64;
            let strides = if by_rows { Strides { row: ld, col: 1 } } else { Strides { row: 1, col: ld } };
            let sums = DenseOperand { at: workspace_at(offsets.products), strides, value: self.sum_type() };
            let (b, c) = (b.skip_columns(first), c.skip_columns(first));
            let stride = (self.products_bytes(columns) / self.sum_size()) as i64;
            let parts = match &self.engine {
                Engine::Lt(_) => {
                    // The sums of padding columns are sums of zeros, and nothing reads them.
                    let width = self.width(pads_n, columns);
                    let b = prepared.skip_columns(first);
                    match self.multiply(cx, workspace_at(offsets.engine), width, &one, b, sums)? {
                        true => 1,
                        false => -1,
                    }
                }
                Engine::Own(own) => {
                    let (plan, b) =
                        (own.plan(&self.device, m, k, offsets.columns), prepared.skip_columns(first));
                    own.multiply(cx, &plan, a, b, (sums, columns, stride), one)?;
                    plan.parts as i64
                }
            };
            let products = Products { data: sums.at, ld, parts, stride };
            self.finish(cx, (b, c), columns, products, (alpha, beta))?;
        }
        Ok(())
    }

    fn repair(&self, cx: &Context, b: DenseOperand, c: DenseOperand, n: usize, alpha: Scalar) -> Result<()> {
        let lines = self.lines(c, n);
        let most = select::spmm::dense::most_blocks_that_repair(self.device.properties().multiprocessors);
        let blocks = (lines.outer as u64).min(u64::from(most)) as u32;
        let special = self.special.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        // SAFETY: the operands are as their descriptors say.
        unsafe {
            launch_early!(true, self.repair, (blocks, 1), THREADS, 0, cx.stream;
                self.entries(), Self::right(b), c.at, lines, alpha, special)
        }
    }
}

impl DenseExecutor<DenseMatrix> for DenseSpmm {
    fn is_deterministic(&self) -> bool {
        matches!(self.engine, Engine::Own(_))
    }

    fn workspace_bytes(&self, n: usize) -> usize {
        self.workspace_offsets(n).total
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, [b, _, c]: [&DenseMatrix; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let (alpha, beta) = scalars(cx, self.problem.types.compute.scalar(), alpha, beta)?;
        self.run(cx, b, c, alpha, beta)
    }

    /// Returns whether execution reads the user's values: elements of C where an entry meets Inf or NaN are
    /// summed again from the stored entries.
    fn reads_values(&self) -> bool {
        self.operand.layout().in_place
    }

    fn keeps_arrays(&self) -> bool {
        true
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let a = (&mut self.problem.a, self.problem.op);
        self.operand.update_values(cx, a, values, "A")?;
        if let Some(special) = &self.special {
            memory::zero(special.address(), special.bytes(), cx.stream)?;
        }
        if self.repeats {
            memory::zero(self.values.address(), self.values.bytes(), cx.stream)?;
        }
        self.fill(cx)
    }

    fn layout(&self) -> LayoutInfo {
        let fill = self.shape.fill(self.operand.rows().nnz as usize);
        LayoutInfo { kind: LayoutKind::Dense, in_place: false, fill }
    }

    fn details(&self) -> String {
        let by = if matches!(self.engine, Engine::Lt(_)) { "cublasLt" } else { "kernels of the library" };
        format!("{}, by {by}", self.shape.details(self.operand.rows().nnz as usize))
    }
}

#[cfg(test)]
mod tests;
