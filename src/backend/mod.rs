//! Who executes. A plan calls a backend through [`Backend`] and what it
//! builds; nothing else in the library does. Adding a backend is one folder
//! here, an arm in [`open`], and its name in the support table.

pub mod cuda;
pub mod host;
pub mod reference;

use std::sync::Arc;

use once_cell::sync::Lazy;

use crate::algorithm::Algorithm;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::{DenseMatrix, DenseVector, Lines, SparseMatrix, Structure};
use crate::memory::in_flight::{GraphReferences, LastWork, Pending};
use crate::memory::{self, Context};
use crate::problem::{SpgemmProblem, SpmmProblem, SpmvProblem};
use crate::reorder::features::FeatureSet;
use crate::reorder::KeptOrder;
use crate::select::roofline::Machine;
use crate::select::{Choice, SpgemmSurveyed, SpmmSurveyed, Surveyed};
use crate::types::{Address, BackendKind, ComputeType, LayoutKind, OpKind, Operation, Reorder};

/// What a layout is like, for getInfo.
#[derive(Clone, Copy, Debug)]
pub struct LayoutInfo {
    /// Which.
    pub kind: LayoutKind,
    /// The user's arrays are read in place.
    pub in_place: bool,
    /// Slots for values in the layout, over stored entries (1 = no padding).
    pub fill: f64,
}

/// A plan for SpMV after analysis. Execution changes nothing in it.
pub trait SpmvExecutor: Send + Sync {
    /// Bytes of workspace that execute needs.
    fn workspace_bytes(&self) -> usize;
    /// y = alpha · op(A) · x + beta · y.
    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()>;
    /// New values for the same pattern, in the order of the user's array.
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// What was built.
    fn layout(&self) -> LayoutInfo;
    /// The order of the rows of op(A), where it is one by name.
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// The order of the rows of op(A) that the host has computed, where decisions keep it. Blocks.
    fn row_order(&self, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
    /// More about it, for people; empty where [`LayoutInfo`] says all.
    fn details(&self) -> String {
        String::new()
    }
}

/// A plan for SpMM after analysis. Execution changes nothing in it.
pub trait SpmmExecutor: Send + Sync {
    /// Bytes of workspace that execute needs for `n` columns of C.
    fn workspace_bytes(&self, n: usize) -> usize;
    /// C = alpha · op(A) · op(B) + beta · C; B is as the user gave it.
    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        b: &DenseMatrix,
        beta: Address,
        c: &DenseMatrix,
    ) -> Result<()>;
    /// New values for the same pattern, in the order of the user's array.
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// What was built.
    fn layout(&self) -> LayoutInfo;
    /// The same bits from run to run.
    fn is_deterministic(&self) -> bool {
        true
    }
    /// The order of the rows of op(A) by name; [`Reorder::Auto`] where rows of like columns are together.
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// The order of the rows of op(A) that the host has computed, where decisions keep it. Blocks.
    fn row_order(&self, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
    /// Columns of a block, where the layout has blocks.
    fn block_width(&self) -> Option<usize> {
        None
    }
    /// More about it, for people; empty where [`LayoutInfo`] says all.
    fn details(&self) -> String {
        String::new()
    }
}

/// A plan for SpGEMM after analysis.
pub trait SpgemmExecutor: Send + Sync {
    /// Computes the number of stored entries of C.
    fn symbolic(&mut self, cx: &Context) -> Result<i64>;
    /// Writes C's pattern and values into the user's arrays (sorted, without
    /// duplicates). `symbolic` has run and C has its number of entries.
    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()>;
    /// The same, into tiles in memory of `into`'s allocator. Blocks. Only of algorithm `tile`.
    fn numeric_tiles(&mut self, _cx: &Context, _into: &Context, _alpha: Address) -> Result<Tiles> {
        Err(Error::unsupported("C: this algorithm does not write tiles"))
    }
    /// New values for the same patterns; NULL keeps the present ones.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()>;
    /// New contents of factors in tiles, which must have the same patterns.
    fn update_tiles(&mut self, _cx: &Context, _factors: &TileFactors) -> Result<()> {
        Ok(())
    }
    /// What was built.
    fn layout(&self) -> LayoutInfo;
    /// Multiplications that one numeric phase does.
    fn products(&self) -> i64;
    /// Products of a pair of tiles of 16 × 16, about, where algorithm `tile` is likely to be
    /// faster than this one. Blocks where that has to be looked for.
    fn suits_tiles(&self, _cx: &Context) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// One kind of machine.
pub trait Backend: Send + Sync {
    /// Which.
    fn kind(&self) -> BackendKind;
    /// Number of the device; 0 on the host.
    fn device(&self) -> i32;
    /// Memory that `tarsiaMalloc` gives, and the default of the allocator.
    fn memory(&self) -> Arc<dyn memory::RawMemory>;
    /// Copies from host memory to the backend's.
    fn copy_to_device(&self, dst: Address, src: Address, bytes: usize, stream: Address) -> Result<()>;
    /// Copies from the backend's memory to the host's.
    fn copy_to_host(&self, dst: Address, src: Address, bytes: usize, stream: Address) -> Result<()>;
    /// Waits for the stream.
    fn synchronize(&self, stream: Address) -> Result<()>;
    /// `INVALID_STATE` where the stream cannot be waited for: it is captured.
    /// A CPU has no streams and every call of it is synchronous: this and the
    /// next two say so.
    fn require_blocking(&self, _stream: Address, _call: &str) -> Result<()> {
        Ok(())
    }
    /// Whether what is enqueued on the stream now goes into a graph.
    fn is_capturing(&self, _stream: Address) -> Result<bool> {
        Ok(false)
    }
    /// `INVALID_STATE` in a process that `fork` has made of one in which the backend was used, if it does not
    /// work there.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }
    /// What follows the work that a handle puts on the stream; `None` where every call is synchronous.
    fn last_work(&self, _stream: Address) -> Result<Option<Arc<dyn LastWork>>> {
        Ok(None)
    }
    /// All work of the library that is not done, of every handle.
    fn work_in_flight(&self) -> Pending {
        Pending::default()
    }
    /// A list of the memory that a captured graph keeps until the graph is destroyed.
    fn graph_references(&self) -> Result<Box<dyn GraphReferences>> {
        Err(Error::unsupported("handle: its backend has no graphs"))
    }
    /// Copies lines of as many bytes, in the order of the stream; the two share no memory. `from` and `to` are as
    /// many. Asynchronous and capturable.
    fn copy_lines(&self, cx: &Context, from: &Lines, to: &Lines) -> Result<()>;
    /// Whether beta is 0, as far as that is known before the product runs. On the CPU it is in both pointer modes.
    fn is_known_zero(&self, _cx: &Context, compute: ComputeType, beta: Address) -> Result<bool> {
        // SAFETY: the caller of execute promises one value of the compute type there.
        unsafe { memory::is_zero("beta", compute, beta) }
    }
    /// Sets memory of the backend to zero bytes, before anything that comes
    /// later on any stream.
    fn clear(&self, address: Address, bytes: usize) -> Result<()>;
    /// Bytes of workspace that every handle has from the start, for the calls
    /// without a plan.
    fn once_workspace_bytes(&self) -> usize {
        0
    }
    /// The rates by which the cost model predicts times on this machine.
    fn machine(&self) -> &Machine;
    /// Counts in op(A)'s pattern what decides between layouts, if that takes no
    /// conversion: where the rows of op(A) are in place. `None`: shapes choose; that is
    /// so on the CPU backends, whose machine has no rates for what a survey tells. The
    /// pattern is validated; the error names `A`. Blocks.
    fn survey_spmv(&self, _cx: &Context, _problem: &SpmvProblem) -> Result<Option<Surveyed>> {
        Ok(None)
    }
    /// The features of the rows of op(A) that learned orders are chosen by, counted on the host, of a matrix that may
    /// have a sorted copy with 32-bit columns; `None`: the backend has no orders. The pattern is validated; the error
    /// names `A`. Blocks.
    fn row_features(&self, _cx: &Context, _a: &SparseMatrix, _op: Operation) -> Result<Option<FeatureSet>> {
        Ok(None)
    }
    /// Its model, for which measured choices hold.
    fn model(&self) -> String;
    /// What tells the pattern from others: the same on every backend. The pattern need not be valid; the
    /// error names `name`. Blocks.
    fn fingerprint(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// The same of the values, of any type. Blocks.
    fn fingerprint_values(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Fingerprint>;
    /// Reads the whole pattern and says what it is like; the error names `name`.
    fn check_sparse(&self, cx: &Context, a: &SparseMatrix, name: &str) -> Result<Structure>;
    /// Builds what `choice` says. `surveyed` is what [`Self::survey_spmv`] of this problem
    /// returned, if it was called.
    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        surveyed: Option<&Surveyed>,
    ) -> Result<Box<dyn SpmvExecutor>>;
    /// The same for SpMM, whose rows of op(A) are converted for it where they are not in
    /// place. `among`: the choice is among these algorithms, and may put rows in clusters where
    /// windows of them are likely to be worth it; empty: it may not.
    fn survey_spmm(
        &self,
        _cx: &Context,
        _problem: &SpmmProblem,
        _among: &[Algorithm],
    ) -> Result<Option<SpmmSurveyed>> {
        Ok(None)
    }
    /// Builds what `choice` says. `surveyed` is what [`Self::survey_spmm`] of this problem
    /// returned, if it was called.
    fn build_spmm(
        &self,
        cx: &Context,
        problem: &SpmmProblem,
        choice: &Choice,
        surveyed: Option<&SpmmSurveyed>,
    ) -> Result<Box<dyn SpmmExecutor>>;
    /// Whether [`Self::spmv_once`] or [`Self::spmm_once`] serves the operation.
    fn serves_once(&self, _op: OpKind) -> bool {
        false
    }
    /// y = alpha · op(A) · x + beta · y without analysis, for a matrix that is
    /// read in place: as a plan's execute, only launches, in a workspace of
    /// [`Self::once_workspace_bytes`]. The pattern is not validated.
    fn spmv_once(
        &self,
        _cx: &Context,
        _problem: &SpmvProblem,
        _scalars: (Address, Address),
        _x: &DenseVector,
        _y: &DenseVector,
    ) -> Result<()> {
        Err(Error::unsupported("handle: its backend has no SpMV without a plan"))
    }
    /// C = alpha · op(A) · op(B) + beta · C, as [`Self::spmv_once`].
    fn spmm_once(
        &self,
        _cx: &Context,
        _problem: &SpmmProblem,
        _scalars: (Address, Address),
        _b: &DenseMatrix,
        _c: &DenseMatrix,
    ) -> Result<()> {
        Err(Error::unsupported("handle: its backend has no SpMM without a plan"))
    }
    /// Seconds of one execute, on dense operands that are not zeros.
    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &dyn SpmvExecutor) -> Result<f64>;
    /// Seconds of one execute at nHint columns, on operands that are not zeros.
    fn time_spmm(&self, cx: &Context, problem: &SpmmProblem, executor: &dyn SpmmExecutor) -> Result<f64>;
    /// Looks at the factors as `choice` reads them, for a choice between its algorithm `hash` and
    /// `tile`; `None`: `hash`. The error names `A` or `B`. Blocks.
    fn survey_spgemm(
        &self,
        _cx: &Context,
        _problem: &SpgemmProblem,
        _choice: &Choice,
    ) -> Result<Option<SpgemmSurveyed>> {
        Ok(None)
    }
    /// Builds what `choice` says. `surveyed` is what [`Self::survey_spgemm`] of this problem and
    /// a choice that reads the factors alike returned, if it was called.
    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        choice: &Choice,
        surveyed: Option<SpgemmSurveyed>,
    ) -> Result<Box<dyn SpgemmExecutor>>;
    /// The same where A or B is in tiles, for algorithm `tile`.
    fn build_spgemm_of_tiles(
        &self,
        _cx: &Context,
        _problem: &SpgemmProblem,
        _choice: &Choice,
        _factors: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        Err(no_tiles())
    }
    /// The tiles of a matrix in CSR or CSC, in the type of its sums. Blocks.
    fn make_tiles(&self, _cx: &Context, _a: &SparseMatrix) -> Result<Tiles> {
        Err(no_tiles())
    }
    /// Writes tiles into CSR or CSC of the same shape, type and number of entries. Blocks.
    fn write_tiles(&self, _cx: &Context, _tiles: &Tiles, _b: &SparseMatrix) -> Result<()> {
        Err(no_tiles())
    }
}

fn no_tiles() -> Error {
    Error::unsupported("handle: its backend has no matrices in tiles")
}

static HOST: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(host::Host));
static REFERENCE: Lazy<Arc<dyn Backend>> = Lazy::new(|| Arc::new(reference::Reference));

/// The backend of a kind. `Auto` takes the device of the calling thread's
/// CUDA context, else device 0, else (no driver or no device) the host.
pub fn open(kind: BackendKind, device: i32) -> Result<Arc<dyn Backend>> {
    let cpu = |backend: &Lazy<Arc<dyn Backend>>| {
        if device != 0 {
            return Err(Error::invalid("device", format!("{device}: the CPU backends have device 0 only")));
        }
        Ok(Arc::clone(backend))
    };
    match kind {
        BackendKind::Auto => {
            if device != 0 {
                return Err(Error::invalid(
                    "device",
                    format!("{device}: TARSIA_BACKEND_AUTO takes device 0"),
                ));
            }
            match cuda::open(None) {
                Ok(backend) => Ok(backend),
                // No driver, no device, or a library without kernels.
                Err(error) if cuda::means_no_device(&error) => cpu(&HOST),
                Err(error) => Err(error),
            }
        }
        BackendKind::Host => cpu(&HOST),
        BackendKind::Reference => cpu(&REFERENCE),
        BackendKind::Cuda => cuda::open(Some(device)),
    }
}
