//! Products of arrays without descriptors, for the drop-in for cuSPARSE: the products of `tarsiaSpMV_once` and
//! `tarsiaSpMM_once`, with the caller's buffer as workspace, and plans whose calls come one by one
//! ([`Product`]).
//!
//! The products without a plan differ from these functions in three ways. They never allocate and never wait: a product that would
//! need to is refused. An error tells whether work had been enqueued before it, so that the caller knows
//! whether another library may compute the product instead. And work that is captured into a graph uses only
//! the caller's buffer and no memory of the handle, since later calls may use the handle's counters while the
//! graph runs.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use once_cell::sync::OnceCell;
use parking_lot::{Mutex, RwLock};

use crate::backend::cuda::device::Device;
use crate::backend::cuda::memory::release_finished as release_of;
use crate::backend::cuda::ONCE_WORKSPACE_BYTES;
use crate::backend::{self, Backend};
use crate::context::Handle;
use crate::error::{refuse_if, Error, Result};
use crate::matrix::check_align;
use crate::matrix::compressed::{CSC, CSR};
use crate::matrix::fingerprint::Fingerprint;
use crate::memory::lent::LentMemory;
use crate::memory::{float_env, heap, Context, Workspace, COUNTERS, COUNTER_BYTES};
use crate::operation::{self, Operation, Planned, Task};
use crate::plan::Plan;
use crate::select;
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{Address, BackendKind, DataType, OpKind, Operation as Op, PointerMode, ScalarsAt, Status};

pub use crate::matrix::{Compressed, DenseMatrix, DenseVector, SparseArrays, SparseMatrix};
pub use crate::operation::{Spgemm, Spmm, Spmv};
pub use crate::problem::{SpgemmProblem, SpmmProblem, SpmvProblem};

/// Alignment in bytes of the workspace inside the caller's buffer: a cache line.
const LINE: usize = 128;
/// Size in bytes of the counters of an SpMV.
const SPMV_COUNTER_BYTES: usize = COUNTERS * size_of::<u32>();
/// Greatest number of rows of op(A) in an SpMM. With so many rows the grid of any kernel is within CUDA's
/// limit, so that no launch is refused for its size after an earlier one has been enqueued.
const MOST_ROWS: i64 = 1 << 27;

/// Bytes that the plan of an SpGEMM takes for each row of A and for each row of B, and for all of them together, unless
/// rows of C are wide or some of the matrices are stored by columns.
const SPGEMM_ROW_BYTES: [usize; 2] = [64, 4];
const SPGEMM_BYTES: usize = 1 << 20;
/// Bytes at most that a caller is asked to lend. It has to have them, whereas the library has other memory, and can do
/// with less.
const MOST_LENT: usize = 256 << 20;

/// Size in bytes of the buffer with which [`Direct::spmv`] can be captured, whatever the matrix.
pub const SPMV_BUFFER_BYTES: usize = LINE + SPMV_COUNTER_BYTES + ONCE_WORKSPACE_BYTES;

/// Arguments of a product beside its problem and its dense operands.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Stream on which the product is enqueued.
    pub stream: Address,
    /// Location of alpha and beta: on the host or on the device.
    pub pointer_mode: PointerMode,
    /// Addresses of alpha and beta, which have the compute type.
    pub scalars: ScalarsAt,
    /// Buffer on the device, of [`SPMV_BUFFER_BYTES`] for SpMV and of the size that [`Direct::spmm_bytes`]
    /// returns for SpMM; NULL if there is none.
    pub buffer: Address,
}

/// Memory of a caller's, where products run.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub address: Address,
    /// Size in bytes.
    pub bytes: usize,
}

/// Error of a product, with what it means for the result.
#[derive(Debug)]
pub enum Failure {
    /// No work with a visible effect was enqueued, and the result is unchanged. The error has the status
    /// `INSUFFICIENT_RESOURCES` if the product needs the buffer.
    Refused(Error),
    /// Part of the work was enqueued, and the contents of the result are undefined.
    Broken(Error),
}

impl Failure {
    /// Makes the failure of a product of which part was enqueued or not.
    fn new(error: Error, has_begun: bool) -> Self {
        match has_begun {
            true => Failure::Broken(error),
            false => Failure::Refused(error),
        }
    }
}

/// Factor of a problem: its name, operation and matrix.
type Factor<'a> = (&'static str, Op, &'a mut SparseMatrix);

/// A plan for products whose calls come one by one, each with the arrays that it is of. It borrows the index
/// arrays of its matrices, whose patterns must not change.
pub struct Product<O: Operation> {
    plan: Plan,
    problem: O::Problem,
    /// Array of A's values that the plan of an SpMV or SpMM reads.
    values: Mutex<Address>,
    /// True if the values do not change either.
    is_frozen: bool,
}

impl<O: Operation> Product<O> {
    /// Returns the problem that the plan was made for.
    pub fn problem(&self) -> &O::Problem {
        &self.problem
    }

    /// Returns whether the plan serves a problem with the same operations and types, and the same index arrays
    /// at the same addresses; the arrays of values must be the same only if the values do not change.
    pub fn is_of(&self, problem: &O::Problem) -> bool {
        let (mut mine, mut other) = (self.problem, *problem);
        let (mine, other) = (O::parts(&mut mine), O::parts(&mut other));
        let arrays = |m: &SparseMatrix| match self.is_frozen {
            true => m.user_arrays(),
            false => m.with_values(Address::NULL).user_arrays(),
        };
        let is_same = |((_, op, a), (_, other_op, b)): (&Factor<'_>, &Factor<'_>)| {
            (op, a.shape(), a.base(), a.format()) == (other_op, b.shape(), b.base(), b.format())
                && arrays(a) == arrays(b)
        };
        mine.types == other.types && mine.factors.iter().zip(&other.factors).all(is_same)
    }

    /// Executes the plan with A's values at another address if need be.
    fn execute(
        &self,
        handle: &Handle,
        values: Address,
        f: impl FnOnce(&Planned<O>, &Context) -> Result<()>,
    ) -> Result<()> {
        let mut present = self.values.lock();
        if *present != values {
            self.plan.update_values(handle, values)?;
            *present = values;
        }
        self.plan.execute(handle, "a product", f)
    }
}

impl Product<Spgemm> {
    /// Returns the number of multiplications of one numeric phase.
    pub fn multiplications(&self) -> Result<i64> {
        Ok(self.plan.info()?.products)
    }
}

/// Tarsia's counterpart of a cuSPARSE handle: a device's backend, and a handle that products on it share.
pub struct Direct {
    backend: Arc<dyn Backend>,
    handle: OnceCell<Handle>,
    /// Combinations of types that were found in the table of algorithms, so that they are looked up once.
    known: RwLock<HashSet<(OpKind, Types)>>,
    /// Lock that a product holds while it uses the stream and the pointer mode of the handle.
    call: Mutex<()>,
}

impl Direct {
    /// Opens the device of the calling thread's context, which is found as by `tarsiaCreate`. With `on_host`,
    /// for tests of callers, products are computed on the host and arrays are in host memory. Allocates
    /// nothing on the device.
    pub fn open(on_host: bool) -> Result<Self> {
        let backend = match on_host {
            true => backend::open(BackendKind::Host, 0)?,
            false => backend::cuda::open(None)?,
        };
        Ok(Direct { backend, handle: OnceCell::new(), known: RwLock::default(), call: Mutex::default() })
    }

    /// Returns whether the current context of the calling thread is the backend's.
    pub fn is_current(&self) -> bool {
        self.backend.is_current()
    }

    /// Returns whether the stream is being captured into a graph, or is the NULL stream while a capture
    /// forbids its use.
    pub fn is_capturing(&self, stream: Address) -> Result<bool> {
        self.backend.is_capturing(stream)
    }

    /// Returns whether [`Self::prepare`] has succeeded.
    pub fn is_prepared(&self) -> bool {
        self.handle.get().is_some()
    }

    /// Copies a scalar of `bytes` bytes (up to 16) from where the device reads it. Blocks; an error if the stream is
    /// being captured.
    pub fn read_scalar(&self, stream: Address, from: Address, bytes: usize) -> Result<[u8; 16]> {
        let mut scalar = [0_u8; 16];
        let bytes = bytes.min(scalar.len());
        self.backend.copy_to_host(Address::new(scalar.as_mut_ptr()), from, bytes, stream)?;
        Ok(scalar)
    }

    /// Allocates the memory that products share. Blocks the first time; must not be called during a capture.
    pub fn prepare(&self) -> Result<()> {
        heap::prepare_thread()?;
        self.handle.get_or_try_init(|| Handle::new(Arc::clone(&self.backend))).map(drop)
    }

    /// Enqueues y = alpha · op(A) · x + beta · y as one launch, for a matrix whose rows of op(A) are
    /// contiguous: CSR with op N, CSC with op T (or op C, if real). The buffer is used only in a capture.
    pub fn spmv(
        &self,
        call: &Call,
        problem: &SpmvProblem,
        x: &DenseVector,
        y: &DenseVector,
    ) -> std::result::Result<(), Failure> {
        self.enqueue(call, |handle, begun| {
            check_matrix(&problem.a)?;
            x.check()?;
            y.check()?;
            let planned = self.planned::<Spmv>(*problem, problem.types)?;
            if self.is_on_cpu() {
                return Plan::once(handle, "SpMV", planned, |planned, cx| {
                    planned.execute(cx, call.scalars, x, None, y)
                });
            }
            let plain = SpmvProblem { types: problem.types.plain(), ..*problem };
            let needs = (self.backend.spmv_once_bytes(&plain), SPMV_COUNTER_BYTES);
            handle.with_lent(lent(call.buffer, SPMV_BUFFER_BYTES), needs, |cx| {
                cx.workspace.require(needs.0)?;
                let is_done = planned.once(&*self.backend, cx, call.scalars, x, y)?;
                // The only launch comes last in `once`, so that an error means that nothing was launched.
                begun.set(is_done);
                is_done.then_some(()).ok_or_else(not_in_place)
            })
        })
    }

    /// Returns the size in bytes of the buffer that [`Self::spmm`] needs for a problem whose `n_hint` is the
    /// number of columns of C. The size depends neither on addresses nor on whether the stream is being
    /// captured. May be called during a capture.
    pub fn spmm_bytes(&self, problem: &SpmmProblem) -> Result<usize> {
        self.spmm_workspace_bytes(problem).map(spmm_buffer_bytes)
    }

    /// Returns the size in bytes of the workspace that [`Self::spmm`] needs.
    fn spmm_workspace_bytes(&self, problem: &SpmmProblem) -> Result<usize> {
        let (m, _, _) = problem.a.shape_of(problem.op);
        refuse_if!(m > MOST_ROWS, unsupported, "A: {m} rows of op(A) are more than {MOST_ROWS}");
        if !select::in_place(&problem.a, problem.op) {
            return Err(not_in_place());
        }
        if self.is_on_cpu() {
            return Ok(0);
        }
        // The types are checked before kernels for them are loaded by name.
        self.planned::<Spmm>(*problem, problem.types)?;
        let plain = SpmmProblem { types: problem.types.plain(), ..*problem };
        self.backend.spmm_once_bytes(&plain)?.ok_or_else(not_in_place)
    }

    /// Enqueues C = alpha · op(A) · op(B) + beta · C by launches alone, for a matrix whose rows of op(A)
    /// are contiguous.
    pub fn spmm(
        &self,
        call: &Call,
        problem: &SpmmProblem,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> std::result::Result<(), Failure> {
        self.enqueue(call, |handle, begun| {
            check_matrix(&problem.a)?;
            problem.a.require_arrays("A")?;
            b.check()?;
            c.check()?;
            check_scalars(problem.types, call)?;
            let planned = self.planned::<Spmm>(*problem, problem.types)?;
            if self.is_on_cpu() {
                return Plan::once(handle, "SpMM", planned, |planned, cx| {
                    planned.execute(cx, call.scalars, b, None, c)
                });
            }
            // All checks of the operands come before the first launch.
            planned.check_once(call.scalars, b, c)?;
            let bytes = self.spmm_workspace_bytes(problem)?;
            handle.with_lent(lent(call.buffer, spmm_buffer_bytes(bytes)), (bytes, COUNTER_BYTES), |cx| {
                cx.workspace.require(bytes)?;
                begun.set(true);
                planned.once(&*self.backend, cx, call.scalars, b, c)
            })
        })
    }

    /// Makes a plan with the settings that `set` changes, whose memory comes from the region that is `lent` as far as
    /// it is large enough. Blocks.
    fn plan<O: Operation>(
        &self,
        stream: Address,
        problem: &O::Problem,
        lent: Option<Region>,
        set: impl FnOnce(&mut Settings),
    ) -> Result<Product<O>> {
        let mut problem = *problem;
        self.with_handle(stream, PointerMode::Host, |handle| {
            let factors = O::parts(&mut problem).factors;
            let values = Mutex::new(factors[0].2.values());
            factors.iter().try_for_each(|(_, _, matrix)| check_matrix(matrix))?;
            let plan = Plan::new(handle, Planned::<O>::new(self.backend.kind(), problem, None)?);
            plan.set(set)?;
            if let Some(Region { address, bytes }) = lent {
                plan.set_memory(Arc::new(LentMemory::new(address, bytes, self.backend.memory())))?;
            }
            plan.analyze(handle)?;
            Ok(Product { plan, problem, values, is_frozen: false })
        })
    }

    /// Analyzes y = alpha · op(A) · x + beta · y, or C = alpha · op(A) · op(B) + beta · C. Products read A's
    /// values in place, unless the values are `frozen`, too. Blocks.
    pub fn dense<O: Operation>(
        &self,
        stream: Address,
        problem: &O::Problem,
        is_frozen: bool,
    ) -> Result<Product<O>> {
        let product = self.plan(stream, problem, None, |settings| settings.values_in_place = !is_frozen)?;
        Ok(Product { is_frozen, ..product })
    }

    /// Enqueues the product of a plan; `values` is the array of A's values. Not in a capture, whose graph
    /// would share the memory of the handle with later calls.
    pub fn planned_spmv(
        &self,
        call: &Call,
        product: &Product<Spmv>,
        values: Address,
        x: &DenseVector,
        y: &DenseVector,
    ) -> std::result::Result<(), Failure> {
        self.planned_call(call, |handle| {
            x.check()?;
            y.check()?;
            product.execute(handle, values, |planned, cx| planned.execute(cx, call.scalars, x, None, y))
        })
    }

    /// Enqueues the product of a plan, as [`Self::planned_spmv`] does.
    pub fn planned_spmm(
        &self,
        call: &Call,
        product: &Product<Spmm>,
        values: Address,
        b: &DenseMatrix,
        c: &DenseMatrix,
    ) -> std::result::Result<(), Failure> {
        self.planned_call(call, |handle| {
            b.check()?;
            c.check()?;
            product.execute(handle, values, |planned, cx| planned.execute(cx, call.scalars, b, None, c))
        })
    }

    fn planned_call(
        &self,
        call: &Call,
        f: impl FnOnce(&Handle) -> Result<()>,
    ) -> std::result::Result<(), Failure> {
        let before = self.backend.enqueued();
        self.with_handle(call.stream, call.pointer_mode, f).map_err(|error| {
            let has_begun = has_begun([before, self.backend.enqueued()], error.status);
            Failure::new(error, has_begun)
        })
    }

    /// Analyzes C = alpha · op(A) · op(B). A product that `repeats` keeps C's pattern, so that its later
    /// numeric phases compute values alone. The plan's memory comes from the region that is `lent`, as far as it is
    /// large enough: it must live until the product is dropped and its work is done, and all that work must be on
    /// one stream, or on streams that wait for each other. Blocks.
    pub fn spgemm(
        &self,
        stream: Address,
        problem: &SpgemmProblem,
        lent: Option<Region>,
        repeats: bool,
    ) -> Result<Product<Spgemm>> {
        self.plan(stream, problem, lent, |settings| {
            settings.value_updates = repeats;
            settings.expected_executes = i64::from(!repeats);
        })
    }

    /// Returns the size in bytes of a region that has room for the memory of most plans of this product.
    pub fn spgemm_bytes(problem: &SpgemmProblem) -> usize {
        let rows = [&problem.a, &problem.b].map(|m| usize::try_from(m.shape().0).unwrap_or(usize::MAX));
        let of_rows = rows.iter().zip(SPGEMM_ROW_BYTES).map(|(rows, bytes)| rows.saturating_mul(bytes));
        of_rows.fold(SPGEMM_BYTES, usize::saturating_add).min(MOST_LENT)
    }

    /// Returns the number of entries of C, which the first call counts. Blocks.
    pub fn spgemm_symbolic(&self, stream: Address, product: &Product<Spgemm>) -> Result<i64> {
        self.with_handle(stream, PointerMode::Host, |handle| {
            self.backend.require_blocking(stream, "counting the entries of C")?;
            product.plan.modify(handle, "SpGEMM", |planned: &mut Planned<Spgemm>, cx| planned.symbolic(cx))
        })
    }

    /// Computes C with the values that are in `values`, the arrays of A and B, when the work runs. beta and
    /// the buffer of the call are not used.
    pub fn spgemm_numeric(
        &self,
        call: &Call,
        product: &Product<Spgemm>,
        values: [Address; 2],
        c: &SparseMatrix,
    ) -> Result<()> {
        let given = [("A", values[0]), ("B", values[1])];
        let is_product = |task: &dyn Task| operation::planned::<Spgemm>(task, "SpGEMM").map(drop);
        self.with_handle(call.stream, call.pointer_mode, |handle| {
            check_matrix(c)?;
            if product.problem.a.shape().2 > 0 || product.problem.b.shape().2 > 0 {
                product.plan.renew(handle, "SpGEMM", given, is_product, |task, cx| {
                    operation::planned_mut::<Spgemm>(task, "SpGEMM")?.update_values(cx, given)
                })?;
            }
            product.plan.modify(handle, "SpGEMM", |planned: &mut Planned<Spgemm>, cx| {
                planned.numeric(cx, call.scalars.0, c)
            })
        })
    }

    /// Returns fingerprints of the patterns of two matrices. Blocks.
    pub fn fingerprints(&self, stream: Address, [a, b]: [&SparseMatrix; 2]) -> Result<[Fingerprint; 2]> {
        self.with_handle(stream, PointerMode::Host, |handle| {
            self.backend.require_blocking(stream, "the fingerprint of a pattern")?;
            let cx = handle.context();
            Ok([self.backend.fingerprint(&cx, a, "A")?, self.backend.fingerprint(&cx, b, "B")?])
        })
    }

    fn is_on_cpu(&self) -> bool {
        self.backend.kind() != BackendKind::Cuda
    }

    /// Returns the problem as a planned operation; fails if the table of algorithms lacks its types.
    fn planned<O: Operation>(&self, problem: O::Problem, types: Types) -> Result<Planned<O>> {
        let key = (O::KIND, types);
        if !self.is_on_cpu() && self.known.read().contains(&key) {
            return Ok(Planned::known(problem));
        }
        let planned = Planned::new(self.backend.kind(), problem, None)?;
        self.known.write().insert(key);
        Ok(planned)
    }

    /// Runs `f` with the call's stream and pointer mode set on the handle; `f` sets the flag when it enqueues
    /// work with a visible effect.
    fn enqueue(
        &self,
        call: &Call,
        f: impl FnOnce(&Handle, &Cell<bool>) -> Result<()>,
    ) -> std::result::Result<(), Failure> {
        let begun = Cell::new(false);
        let result = self.with_handle(call.stream, call.pointer_mode, |handle| f(handle, &begun));
        result.map_err(|error| Failure::new(error, begun.get()))
    }

    /// Runs `f` with a stream and a pointer mode set on the handle, one call at a time.
    fn with_handle<R>(
        &self,
        stream: Address,
        mode: PointerMode,
        f: impl FnOnce(&Handle) -> Result<R>,
    ) -> Result<R> {
        let _default = float_env::Default::enter();
        heap::prepare_thread()?;
        let handle = self.handle.get().ok_or_else(|| Error::state("handle: it is not prepared"))?;
        let _call = self.call.lock();
        // Set even if the address is that of the last call: it may be another stream's by now.
        handle.set_stream(stream);
        handle.set(|modes| modes.pointer_mode = mode);
        f(handle)
    }
}

/// Releases memory of products that are gone, as far as the work that used it is done; otherwise that happens when
/// memory is allocated the next time. Returns whether none is left. Never blocks.
pub fn release_finished() -> bool {
    Device::all().iter().filter(|device| !release_of(device)).count() == 0
}

/// Returns the size in bytes of the buffer of an SpMM that needs `workspace` bytes of workspace, with
/// counters for a graph. An SpMM that needs no workspace needs no counters either.
fn spmm_buffer_bytes(workspace: usize) -> usize {
    match workspace {
        0 => 0,
        bytes => bytes.saturating_add(LINE + COUNTER_BYTES),
    }
}

/// Returns the workspace in a buffer of `bytes` bytes, from the first cache line on that begins in it.
fn lent(buffer: Address, bytes: usize) -> Workspace {
    if buffer.is_null() || bytes == 0 {
        return Workspace { address: Address::NULL, bytes: 0 };
    }
    let skipped = buffer.value().next_multiple_of(LINE) - buffer.value();
    Workspace { address: buffer.offset(skipped), bytes: bytes - skipped }
}

/// Returns whether a call that ended with an error has begun its product, by the numbers of works that the thread
/// had enqueued before and after it, and on the host, which enqueues none, by the status.
fn has_begun([before, after]: [Option<u64>; 2], status: Status) -> bool {
    if before.is_some() {
        return before != after;
    }
    // On the host all checks come before the first row.
    !matches!(
        status,
        Status::InvalidValue
            | Status::InvalidState
            | Status::NotSupported
            | Status::InsufficientResources
            | Status::AllocFailed
    )
}

fn not_in_place() -> Error {
    Error::unsupported("A: its rows of op(A) are not contiguous")
}

fn check_matrix(a: &SparseMatrix) -> Result<()> {
    match &a.arrays {
        SparseArrays::Csr(m) => m.check(&CSR),
        SparseArrays::Csc(m) => m.check(&CSC),
        SparseArrays::Coo(_) | SparseArrays::Bsr(_) | SparseArrays::Tile(_) => Err(not_in_place()),
    }
}

/// Checks the alignment of alpha and beta before the first launch, since a later error could not be undone.
fn check_scalars(types: Types, call: &Call) -> Result<()> {
    let scalar: DataType = types.compute.scalar();
    let align = match call.pointer_mode {
        // The host reads them as words of at most 64 bits.
        PointerMode::Host => scalar.size().min(size_of::<u64>()),
        PointerMode::Device => scalar.align(),
    };
    check_align("alpha", call.scalars.0, align)?;
    check_align("beta", call.scalars.1, align)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{IndexBase, IndexType, Order};

    fn at<T>(array: &[T]) -> Address {
        Address::new(array.as_ptr())
    }

    /// Arrays of the matrix [[1, 2], [0, 3]] in CSR.
    struct Arrays {
        offsets: [i32; 3],
        columns: [i32; 3],
        values: [f64; 3],
    }

    const ARRAYS: Arrays = Arrays { offsets: [0, 2, 3], columns: [0, 1, 1], values: [1.0, 2.0, 3.0] };

    const TYPES: Types = Types {
        a: DataType::R64F,
        x: DataType::R64F,
        y: DataType::R64F,
        compute: crate::types::ComputeType::R64F,
    };

    impl Arrays {
        fn matrix(&self) -> SparseMatrix {
            let arrays = SparseArrays::Csr(Compressed {
                major: 2,
                minor: 2,
                nnz: 3,
                offsets: at(&self.offsets),
                indices: at(&self.columns),
                values: at(&self.values),
                offset_type: IndexType::I32,
                index_type: IndexType::I32,
                base: IndexBase::Zero,
                value_type: DataType::R64F,
            });
            SparseMatrix { arrays, writable: true, temporary: false }
        }
    }

    fn vector(values: &[f64]) -> DenseVector {
        DenseVector {
            len: values.len() as i64,
            values: at(values),
            value_type: DataType::R64F,
            writable: true,
        }
    }

    fn call(scalars: &[f64; 2]) -> Call {
        let scalars = (at(&scalars[..1]), at(&scalars[1..]));
        Call { stream: Address::NULL, pointer_mode: PointerMode::Host, scalars, buffer: Address::NULL }
    }

    #[test]
    fn products_are_right_and_what_is_refused_leaves_the_result() {
        let direct = Direct::open(true).unwrap();
        let (a, scalars) = (ARRAYS, [2.0, -1.0]);
        let problem = SpmvProblem { op: Op::NonTranspose, a: a.matrix(), types: TYPES, value_updates: false };
        let (x, y) = ([10.0, 100.0], [1.0, 2.0]);
        let refused = |result| matches!(result, Err(Failure::Refused(_)));
        assert!(!direct.is_prepared());
        assert!(refused(direct.spmv(&call(&scalars), &problem, &vector(&x), &vector(&y))));
        direct.prepare().unwrap();
        assert!(refused(direct.spmv(&call(&scalars), &problem, &vector(&x[..1]), &vector(&y))));
        assert!(refused(direct.spmv(&call(&scalars), &problem, &vector(&y), &vector(&y))));
        assert_eq!(y, [1.0, 2.0]);
        let mut out = y.to_vec();
        let result = DenseVector { values: Address::new(out.as_mut_ptr()), ..vector(&y) };
        direct.spmv(&call(&scalars), &problem, &vector(&x), &result).unwrap();
        assert_eq!(out, [419.0, 598.0]);
    }

    /// A plan of a pattern computes with the values that each call names; one of frozen values has its own.
    #[test]
    fn plans_serve_the_arrays_that_they_are_of() {
        let direct = Direct::open(true).unwrap();
        direct.prepare().unwrap();
        let (a, others, scalars, x) = (ARRAYS, [2.0, 4.0, 6.0], [2.0, 0.0], [10.0, 100.0]);
        let problem = SpmvProblem { op: Op::NonTranspose, a: a.matrix(), types: TYPES, value_updates: false };
        let with_others = SpmvProblem { a: a.matrix().with_values(at(&others)), ..problem };
        let other_columns = Arrays { columns: [0, 1, 0], ..ARRAYS };
        let elsewhere = SpmvProblem { a: other_columns.matrix().with_values(at(&a.values)), ..problem };
        for is_frozen in [false, true] {
            let product = direct.dense::<Spmv>(Address::NULL, &problem, is_frozen).unwrap();
            assert!(product.is_of(&problem) && !product.is_of(&elsewhere));
            assert_eq!(product.is_of(&with_others), !is_frozen);
            let mut out = [7.0; 2];
            let y = DenseVector { values: Address::new(out.as_mut_ptr()), ..vector(&x) };
            let short = direct.planned_spmv(&call(&scalars), &product, at(&a.values), &vector(&x[..1]), &y);
            assert!(matches!(short, Err(Failure::Refused(_))) && out == [7.0; 2]);
            let given = [(at(&a.values), [420.0, 600.0]), (at(&others), [840.0, 1200.0])];
            for (values, expected) in given.into_iter().take(2 - usize::from(is_frozen)) {
                direct.planned_spmv(&call(&scalars), &product, values, &vector(&x), &y).unwrap();
                assert_eq!(out, expected);
            }
        }
    }

    #[test]
    fn sparse_products_have_phases() {
        let direct = Direct::open(true).unwrap();
        direct.prepare().unwrap();
        let (a, scalars) = (ARRAYS, [2.0, 0.0]);
        let problem = SpgemmProblem {
            op_a: Op::NonTranspose,
            op_b: Op::NonTranspose,
            a: a.matrix(),
            b: a.matrix(),
            types: TYPES,
            value_updates: false,
            ieee: false,
            sorted_output: true,
        };
        let mut out = Arrays { offsets: [-1; 3], columns: [-1; 3], values: [0.0; 3] };
        let c = out.matrix();
        // Without a region, with one that is too small for everything, and with one that is not.
        let mut memory = vec![7_u64; 1 << 12];
        let mut region = |bytes| Region { address: Address::new(memory.as_mut_ptr()), bytes };
        let lent = [None, Some(region(1 << 9)), Some(region(1 << 15))];
        for (repeats, lent) in [false, true].into_iter().flat_map(|repeats| lent.map(|lent| (repeats, lent)))
        {
            let product = direct.spgemm(Address::NULL, &problem, lent, repeats).unwrap();
            assert_eq!(product.multiplications().unwrap(), 4);
            let numeric = |values| direct.spgemm_numeric(&call(&scalars), &product, values, &c);
            assert!(numeric([at(&a.values); 2]).is_err(), "C is not counted");
            assert_eq!(direct.spgemm_symbolic(Address::NULL, &product).unwrap(), 3);
            let others = [1.0, 0.0, 1.0];
            numeric([at(&a.values), at(&others)]).unwrap();
            assert_eq!((out.offsets, out.columns, out.values), ([0, 2, 3], [0, 1, 1], [2.0, 4.0, 6.0]));
            numeric([at(&a.values); 2]).unwrap();
            assert_eq!(out.values, [2.0, 16.0, 18.0]);
            out.values = [0.0; 3];
        }
        assert!(memory.iter().any(|&word| word != 7), "no array was taken from the region");
        let other = Arrays { columns: [0, 1, 0], ..ARRAYS };
        let [first, second] = direct.fingerprints(Address::NULL, [&a.matrix(), &other.matrix()]).unwrap();
        assert_ne!(first, second);
        assert_eq!(direct.fingerprints(Address::NULL, [&a.matrix(), &out.matrix()]).unwrap(), [first; 2]);
    }

    /// A product of which a part is on its way must not be computed by another library as well: its status says
    /// nothing about that.
    #[test]
    fn a_product_has_begun_once_work_was_enqueued() {
        for status in [Status::InvalidValue, Status::InsufficientResources, Status::ExecutionFailed] {
            assert!(has_begun([Some(3), Some(4)], status), "{status:?}");
            assert!(!has_begun([Some(4), Some(4)], status), "{status:?}");
            assert_eq!(has_begun([None, None], status), status == Status::ExecutionFailed);
        }
        let begun = |failure| matches!(failure, Failure::Broken(_));
        assert!([true, false].map(|is| begun(Failure::new(not_in_place(), is))) == [true, false]);
    }

    #[test]
    fn scalars_are_read_where_products_read_them() {
        let direct = Direct::open(true).unwrap();
        for bytes in [4, 8, 16, 99] {
            let scalar = direct.read_scalar(Address::NULL, at(&[1.5_f64, -2.0]), bytes).unwrap();
            let expected = [1.5_f64.to_ne_bytes(), (-2.0_f64).to_ne_bytes()].concat();
            let read = bytes.min(16);
            assert_eq!((&scalar[..read], &scalar[read..]), (&expected[..read], &[0_u8; 16][read..]));
        }
    }

    /// Problem C = A · B with B and C by rows, where A is taken to have `rows` rows.
    fn spmm_problem(a: SparseMatrix, rows: i64) -> SpmmProblem {
        let SparseArrays::Csr(m) = a.arrays else { unreachable!() };
        SpmmProblem {
            op: Op::NonTranspose,
            op_b: Op::NonTranspose,
            a: SparseMatrix { arrays: SparseArrays::Csr(Compressed { major: rows, ..m }), ..a },
            b_order: Order::Row,
            c_order: Order::Row,
            n_hint: 4,
            types: TYPES,
            value_updates: false,
            ieee: false,
        }
    }

    #[test]
    fn buffers_have_room_for_counters_and_alignment() {
        let direct = Direct::open(true).unwrap();
        let a = ARRAYS;
        assert_eq!(direct.spmm_bytes(&spmm_problem(a.matrix(), 2)).unwrap(), 0);
        assert!(direct.spmm_bytes(&spmm_problem(a.matrix(), MOST_ROWS + 1)).is_err());
        assert!(direct
            .spmm_bytes(&SpmmProblem { op: Op::Transpose, ..spmm_problem(a.matrix(), 2) })
            .is_err());

        let begin = |address: usize, bytes: usize| {
            let given = Address::new(std::ptr::without_provenance::<u8>(address));
            let room = lent(given, bytes);
            assert_eq!(room.address.value() + room.bytes, address + bytes);
            room
        };
        let lines = [0x1000, 0x1001, 0x107f].map(|address| begin(address, 1000).address.value());
        assert_eq!(lines, [0x1000, 0x1080, 0x1080]);
        assert_eq!(lent(Address::NULL, 1000).bytes, 0);
        // A buffer at any address has room for the counters and the workspace of a graph.
        assert_eq!(spmm_buffer_bytes(0), 0);
        assert!(begin(0x1001, spmm_buffer_bytes(1000)).bytes >= COUNTER_BYTES + 1000);
        assert!(begin(0x1001, SPMV_BUFFER_BYTES).bytes >= SPMV_COUNTER_BYTES + ONCE_WORKSPACE_BYTES);
    }
}
