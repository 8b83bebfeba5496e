//! SpMV `csr`: y = alpha · op(A) · x + beta · y on rows of op(A), in one launch
//! (kernels/spmv/csr.cu).
//!
//! The kernel has two forms: `rows` gives each row 2 to 32 lanes, `balanced`
//! gives each warp the same number of rows and entries. [`Form`] says which, as
//! a pure function of sizes and lengths of rows.

use std::sync::Arc;

use super::look::{self, Looked};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Operand, RowStats, Rows, Widths};
use crate::backend::cuda::order::Order;
use crate::backend::cuda::scalars::scalar;
use crate::backend::cuda::types_name;
use crate::backend::{LayoutInfo, SpmvExecutor};
use crate::error::{Error, Result};
use crate::matrix::{DenseVector, SparseArrays};
use crate::memory::{Context, COUNTERS};
use crate::problem::SpmvProblem;
use crate::reorder::KeptOrder;
use crate::select::{RowOrder, Source};
use crate::support::{self, Combo, ComboVisitor, Types};
use crate::types::{Address, DataType, IndexType, Reorder};

kernel_kinds! { "spmv/csr" {
    ROWS(String, Widths) = "rows" for [types(Algorithm::Csr), widths()];
    BALANCED(String, Widths) = "balanced" for [types(Algorithm::Csr), widths()];
    PLACES(IndexType) = "places" for [index_types()];
} }
/// Threads and warps of a block; kernels/spmv/dot.cuh has the same.
const THREADS: u32 = 256;
const WARPS: u64 = 8;

/// `rows`: entries of a row that one lane reads at one time; dot.cuh's
/// ROW_UNROLL. A row of mean length takes one step.
const ENTRIES_PER_LANE: i64 = 4;
/// Without analysis `rows` serves matrices up to this many entries: it starts
/// about 2 µs sooner than `balanced`, and if one row has all entries its block
/// takes at most 16 steps of about 1 µs.
const ONCE_ROWS_ENTRIES: i64 = 1 << 14;
/// With analysis `rows` serves matrices whose longest row has at most this many
/// times the mean: a warp then waits for its longest row, not for long.
const EVEN: i64 = 2;

/// `balanced`: rows and entries of a warp, at the least: half a tile. Fewer
/// would take as long, and more blocks would search.
const LEAST_SHARE: u64 = 128;
/// `balanced`: a row may reach over its block's end by this much, or by half a
/// warp's share if that is more, before blocks divide it: two tiles of one warp
/// cost less than a hand-over between blocks.
const LEAST_OVERHANG: u64 = 512;
/// Blocks that `balanced` has counters for.
const MOST_BLOCKS: u64 = COUNTERS as u64;

/// How rows become work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 2^`lanes_log2` lanes a row.
    Rows { lanes_log2: i32, blocks: u32 },
    /// `share` rows and entries a warp.
    Balanced { share: i64, overhang: i64, blocks: u32 },
}

impl Form {
    /// Without analysis.
    fn unanalyzed(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        match Form::rows(rows, nnz) {
            Some(form) if nnz <= ONCE_ROWS_ENTRIES => form,
            _ => Form::balanced(rows, nnz, most_blocks),
        }
    }

    /// With the lengths of the rows.
    fn analyzed(stats: &RowStats, most_blocks: u64) -> Self {
        let RowStats { rows, nnz, max, .. } = *stats;
        // max ≤ EVEN · nnz / rows, or no more than a lane reads at one time
        let even = i128::from(max) * i128::from(rows) <= i128::from(EVEN) * i128::from(nnz);
        match Form::rows(rows, nnz) {
            Some(form) if even || max <= ENTRIES_PER_LANE => form,
            _ => Form::balanced(rows, nnz, most_blocks),
        }
    }

    /// `None` for more rows than a grid has threads for.
    fn rows(rows: i64, nnz: i64) -> Option<Self> {
        // The power of two nearest to what gives each lane its entries: measured,
        // both neighbours are slower.
        let lanes = nnz as f64 / rows.max(1) as f64 / ENTRIES_PER_LANE as f64;
        let lanes_log2 = lanes.max(2.0).log2().round().min(5.0) as i32;
        let blocks = rows.unsigned_abs().checked_mul(1 << lanes_log2)?.div_ceil(u64::from(THREADS));
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Form::Rows { lanes_log2, blocks })
    }

    fn balanced(rows: i64, nnz: i64, most_blocks: u64) -> Self {
        // Arrays of both lengths are in memory: the sum is far below 2^63.
        let positions = (rows + nnz).unsigned_abs();
        let warps = most_blocks.min(MOST_BLOCKS) * WARPS;
        let share = positions.div_ceil(warps).max(LEAST_SHARE);
        let overhang = LEAST_OVERHANG.max(share / 2);
        let blocks = positions.div_ceil(share * WARPS) as u32;
        Form::Balanced { share: share as i64, overhang: overhang as i64, blocks }
    }

    /// Bytes of the parts of rows that blocks divide.
    fn workspace_bytes(&self, accumulator: DataType) -> usize {
        match *self {
            Form::Rows { .. } => 0,
            Form::Balanced { blocks, .. } => 2 * blocks as usize * accumulator.size(),
        }
    }
}

/// Blocks of `balanced` that run at one time; csr.cu's BALANCED_BLOCKS.
fn most_blocks(device: &Device, accumulator: DataType) -> u64 {
    let per_multiprocessor = if accumulator.size() <= 4 { 4 } else { 3 };
    u64::from(device.properties().multiprocessors) * per_multiprocessor
}

/// A launch but for its operands: what a plan keeps.
#[derive(Clone, Copy, Debug)]
struct Launch {
    kernel: Kernel,
    form: Form,
    /// The row of y of each row, or NULL: its own.
    order: Address,
    /// The matrix does not fit L2 beside x and y.
    stream: bool,
    /// Places of the warps, NULL where the kernel searches for them.
    places: Address,
}

impl Launch {
    fn new(device: &Device, types: Types, rows: &Rows, form: Form) -> Result<Self> {
        let kind = if matches!(form, Form::Rows { .. }) { ROWS } else { BALANCED };
        let kernel = kind.load(device, (types_name(types), rows.widths()))?;
        let bytes = rows.nnz as u64 * (types.a.size() + rows.index_type.size()) as u64;
        let stream = bytes > device.properties().l2_bytes as u64 / 2;
        Ok(Launch { kernel, form, order: Address::NULL, stream, places: Address::NULL })
    }

    /// Enqueues it. The context is current.
    fn run<C: Combo>(
        &self,
        cx: &Context,
        rows: &Rows,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let alpha = scalar::<C::Acc>(cx, "alpha", alpha)?;
        let beta = scalar::<C::Acc>(cx, "beta", beta)?;
        cx.workspace.require(self.form.workspace_bytes(C::TYPES.compute.scalar()))?;
        let (base, stream) = (rows.base as i32, i32::from(self.stream));
        match self.form {
            // SAFETY: the descriptors promise arrays of these sizes and types
            // until the stream has run the kernel; the plan has checked that x
            // and y fit and do not overlap.
            Form::Rows { lanes_log2, blocks } => unsafe {
                launch!(self.kernel, blocks, THREADS, 0, cx.stream;
                    rows.rows, rows.nnz, rows.offsets, rows.indices, rows.values, x.values, y.values, self.order,
                    alpha, beta, base, stream, lanes_log2)
            },
            // SAFETY: as above; `require` has checked the workspace, the handle
            // lends it and its counters to one call at a time, and there are at
            // most as many blocks as counters.
            Form::Balanced { share, overhang, blocks } => unsafe {
                launch!(self.kernel, blocks, THREADS, 0, cx.stream;
                    rows.rows, rows.nnz, rows.offsets, rows.indices, rows.values, x.values, y.values, self.order,
                    alpha, beta, base, stream, share, overhang, self.places,
                    cx.workspace.address, cx.counters)
            },
        }
    }
}

/// The executor.
pub(super) struct CsrSpmv<C: Combo> {
    device: Arc<Device>,
    problem: SpmvProblem,
    operand: Operand,
    order: Order,
    rows: Rows,
    launch: Launch,
    /// Row and entry where each warp of `balanced` starts, and the end.
    _places: Option<DeviceBuffer<i64>>,
    combo: std::marker::PhantomData<C>,
}

impl<C: Combo> CsrSpmv<C> {
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpmvProblem,
        (source, order): (Source, &RowOrder),
        looked: Option<&Looked>,
    ) -> Result<Self> {
        let (operand, stats) = match order.policy.is_named() {
            true => look::sorted_operand(cx, device, problem, looked)?,
            false => look::operand(cx, device, problem, looked, source)?,
        };
        let (mut operand, mut order) = Order::apply(cx, device, operand, problem.types.a, order)?;
        let rows = operand.rows();
        let form = Form::analyzed(&stats, most_blocks(device, C::TYPES.compute.scalar()));
        let mut launch = Launch::new(device, C::TYPES, &rows, form)?;
        launch.order = order.address();
        let mut places = places(cx, device, &rows, form)?;
        memory::synchronize(cx.stream)?;
        operand.seal();
        order.seal();
        if let Some(places) = &mut places {
            places.seal();
            launch.places = places.address();
        }
        Ok(CsrSpmv {
            device: Arc::clone(device),
            problem: *problem,
            operand,
            order,
            rows,
            launch,
            _places: places,
            combo: std::marker::PhantomData,
        })
    }
}

/// What the warps of `balanced` would search for in every launch.
fn places(cx: &Context, device: &Device, rows: &Rows, form: Form) -> Result<Option<DeviceBuffer<i64>>> {
    let Form::Balanced { share, overhang, blocks } = form else {
        return Ok(None);
    };
    let kernel = PLACES.load(device, (rows.offset_type,))?;
    let count = i64::from(blocks) * WARPS as i64 + 1;
    let places = DeviceBuffer::new(cx, 2 * count as usize)?;
    let grid = (count as u32).div_ceil(THREADS);
    if blocks > 0 {
        // SAFETY: the operand has rows + 1 offsets, and `places` room for
        // `count` pairs.
        unsafe {
            launch!(kernel, grid, THREADS, 0, cx.stream;
                rows.rows, rows.nnz, rows.offsets, rows.base as i32, share, overhang, count, places.address())?;
        }
    }
    Ok(Some(places))
}

impl<C: Combo> SpmvExecutor for CsrSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.launch.form.workspace_bytes(C::TYPES.compute.scalar())
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
        self.launch.run::<C>(cx, &self.rows, (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let _entered = self.device.enter()?;
        let a = self.problem.a.with_values(values);
        self.operand.update_values(cx, &a, self.problem.op, "A")?;
        self.rows = self.operand.rows();
        self.problem.a = a;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        self.operand.layout()
    }

    fn reorder(&self) -> Reorder {
        self.order.policy()
    }

    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        let _entered = self.device.enter()?;
        self.order.kept(cx)
    }
}

/// The product without a plan, for a matrix whose rows of op(A) are contiguous
/// in the user's arrays: nothing but the launch. The context is current.
pub(crate) fn once(
    cx: &Context,
    device: &Device,
    problem: &SpmvProblem,
    scalars: (Address, Address),
    x: &DenseVector,
    y: &DenseVector,
) -> Result<()> {
    struct Once<'a>(&'a Context, &'a Launch, &'a Rows, (Address, Address), &'a DenseVector, &'a DenseVector);
    impl ComboVisitor for Once<'_> {
        type Output = ();
        fn visit<C: Combo>(self) -> Result<()> {
            self.1.run::<C>(self.0, self.2, self.3, self.4, self.5)
        }
    }
    let (SparseArrays::Csr(m) | SparseArrays::Csc(m)) = &problem.a.arrays else {
        return Err(Error::unsupported("A: SpMV without analysis reads CSR and CSC"));
    };
    let rows = Rows::of(m);
    let most_blocks = most_blocks(device, problem.types.compute.scalar());
    let form = Form::unanalyzed(rows.rows, rows.nnz, most_blocks);
    let launch = Launch::new(device, problem.types, &rows, form)?;
    support::dispatch(problem.types, Once(cx, &launch, &rows, scalars, x, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_positions() {
        let sizes = [(1, 0), (1, 1), (1000, 3), (62_451, 4_007_383), (1 << 33, 1 << 34), (5, 1 << 40)];
        for (rows, nnz) in sizes {
            let Form::Balanced { share, overhang, blocks } = Form::balanced(rows, nnz, 396) else {
                unreachable!()
            };
            let span = WARPS as i64 * share;
            assert!(i64::from(blocks) * span >= rows + nnz);
            assert!(blocks <= 396 && share as u64 >= LEAST_SHARE);
            // What the kernel's rule for split rows relies on.
            assert!(overhang < span);
        }
        assert_eq!(Form::balanced(0, 0, 396).workspace_bytes(DataType::C64F), 0);
    }

    #[test]
    fn lanes_follow_the_mean() {
        let lanes = |rows, nnz| match Form::rows(rows, nnz) {
            Some(Form::Rows { lanes_log2, blocks }) => (1 << lanes_log2, blocks),
            _ => (0, 0),
        };
        assert_eq!(lanes(0, 0), (2, 0));
        assert_eq!(lanes(1000, 3000), (2, 8));
        assert_eq!(lanes(1000, 16_000), (4, 16));
        assert_eq!(lanes(1000, 27_000), (8, 32));
        assert_eq!(lanes(10, 1_000_000), (32, 2));
        assert!(Form::rows(1 << 40, 1 << 40).is_none());
    }

    #[test]
    fn skewed_rows_are_balanced() {
        let stats = |rows, nnz, max| RowStats { rows, nnz, max, ..RowStats::default() };
        assert!(matches!(Form::analyzed(&stats(1000, 27_000, 27), 396), Form::Rows { .. }));
        assert!(matches!(Form::analyzed(&stats(116_835, 766_396, 114_190), 396), Form::Balanced { .. }));
        assert!(matches!(Form::unanalyzed(1000, 5000, 396), Form::Rows { .. }));
        assert!(matches!(Form::unanalyzed(1000, 500_000, 396), Form::Balanced { .. }));
    }
}
