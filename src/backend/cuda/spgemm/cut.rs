//! SpGEMM `hash` where some rows of the left factor have very many entries: those rows are cut into parts, so that
//! warps take their factors side by side (kernels/spgemm/cut.cu).
//!
//! The parts of the long rows, in order, are the rows of a matrix L. The rows of L · R stand behind those of a copy of
//! the right factor R, and the left factor's copy has, in a long row, a one for each of its parts, in the column of
//! the part's row: the product of both copies is C. So both products are by rows as others are, each entry of C is
//! written once, and sums of long rows are sums of the parts' sums, the same from run to run.

use std::sync::Arc;

use super::factors::{renew_values, Factors, Side};
use super::rows::{Factor, Ints};
use super::CudaSpgemm;
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::memory::{self, DeviceBuffer, Readback};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::Result;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{self as host_memory, Context};
use crate::problem::SpgemmProblem;
use crate::select::spgemm::cut::Cut;
use crate::select::{self, Choice, Method};
use crate::support::Types;
use crate::types::{
    Address, ComputeType, DataType, IndexBase, IndexType, LayoutKind, Operation, PointerMode,
};

/// Kernels' `Places`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Places {
    sums: Address,
    rows: i64,
}
same_layout!(Places = "spgemm/cut.cu Places" { sums, rows });

/// Kernels' `Values`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Values {
    data: Address,
    conversion: i32,
    words: i32,
    real: i32,
    one: u32,
}
same_layout!(Values = "spgemm/cut.cu Values" { data, conversion, words, real, one });

/// Kernels' `Columns`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Columns {
    data: Address,
    wide: i64,
}
same_layout!(Columns = "spgemm/cut.cu Columns" { data, wide });

impl Values {
    /// Of a type, as those of sums of theirs.
    fn new(data: Address, value: DataType, sum: DataType) -> Self {
        let conversion = match value {
            DataType::R16F => 1,
            DataType::R16BF => 2,
            _ => 0,
        };
        let words = (sum.size() / size_of::<u32>()) as i32;
        let real = if sum.is_complex() { words / 2 } else { words };
        Values { data, conversion, words, real, one: if real == 1 { 0x3f80_0000 } else { 0x3ff0_0000 } }
    }
}

/// A matrix in CSR of base 0 whose arrays are the plan's.
struct Owned {
    offsets: DeviceBuffer<i64>,
    columns: DeviceBuffer<u8>,
    values: DeviceBuffer<u8>,
    rows: i64,
    cols: i64,
    nnz: i64,
    index_type: IndexType,
    value_type: DataType,
}

impl Owned {
    fn new(
        cx: &Context,
        (rows, cols, nnz): (i64, i64, i64),
        index_type: IndexType,
        value_type: DataType,
    ) -> Result<Self> {
        let bytes = |size: usize| super::bytes(nnz as usize, size);
        Ok(Owned {
            offsets: DeviceBuffer::new(cx, rows as usize + 1)?,
            columns: DeviceBuffer::new(cx, bytes(index_type.size())?)?,
            values: DeviceBuffer::new(cx, bytes(value_type.size())?)?,
            rows,
            cols,
            nnz,
            index_type,
            value_type,
        })
    }

    fn matrix(&self) -> Compressed {
        Compressed {
            major: self.rows,
            minor: self.cols,
            nnz: self.nnz,
            offsets: self.offsets.address(),
            indices: self.columns.address(),
            values: self.values.address(),
            offset_type: IndexType::I64,
            index_type: self.index_type,
            base: IndexBase::Zero,
            value_type: self.value_type,
        }
    }

    fn columns(&self) -> Columns {
        Columns { data: self.columns.address(), wide: i64::from(self.index_type == IndexType::I64) }
    }

    fn seal(&mut self) {
        self.offsets.seal();
        self.columns.seal();
        self.values.seal();
    }
}

/// The executor.
pub(super) struct CutSpgemm {
    device: Arc<Device>,
    problem: SpgemmProblem,
    a: Operand,
    b: Operand,
    transposed: bool,
    cut: Cut,
    kernels: Kernels,
    /// What comes before each row in three lists (kernels' `Places`).
    places: DeviceBuffer<i64>,
    /// L.
    parts: Owned,
    /// The left factor's copy.
    left: Owned,
    /// The right factor's copy, and behind it L · R.
    right: Owned,
    /// Offsets of L · R.
    offsets: DeviceBuffer<i64>,
    of_parts: CudaSpgemm,
    whole: CudaSpgemm,
}

/// Kernels of every numeric phase.
struct Kernels {
    left: Kernel,
    parts: Kernel,
    right: Kernel,
}

/// Rows as a matrix.
fn matrix_of(rows: &Rows, value_type: DataType) -> Compressed {
    Compressed {
        major: rows.rows,
        minor: rows.cols,
        nnz: rows.nnz,
        offsets: rows.offsets,
        indices: rows.indices,
        values: rows.values,
        offset_type: rows.offset_type,
        index_type: rows.index_type,
        base: if rows.base == 0 { IndexBase::Zero } else { IndexBase::One },
        value_type,
    }
}

/// Arrays that others keep, as a matrix.
fn borrowed(m: Compressed) -> SparseMatrix {
    SparseMatrix { arrays: SparseArrays::Csr(m), writable: true, temporary: false }
}

/// A product of two matrices in CSR whose arrays others keep; `transposed`: of C's columns.
struct Product<'a> {
    left: (&'a Compressed, RowStats, Option<i32>),
    right: (&'a Compressed, RowStats, Option<i32>),
    types: Types,
    transposed: bool,
    value_updates: bool,
}

impl Product<'_> {
    fn build(self, cx: &Context, device: &Arc<Device>) -> Result<CudaSpgemm> {
        let Product { left, right, types, transposed, value_updates } = self;
        let side = |(m, stats, order): (&Compressed, RowStats, Option<i32>)| Side {
            operand: Operand::InPlace(*m),
            stats,
            order,
        };
        let (a, b) = if transposed { (right, left) } else { (left, right) };
        let problem = SpgemmProblem {
            op_a: Operation::NonTranspose,
            op_b: Operation::NonTranspose,
            a: borrowed(*a.0),
            b: borrowed(*b.0),
            types,
            value_updates,
        };
        let choice = Choice::of(Method::Hash { transposed }, select::Source::InPlace);
        CudaSpgemm::new(cx, device, &problem, &choice, Factors::of([side(a), side(b)]))
    }
}

/// 0 and 1 of every compute type, in host memory: a complex number has an imaginary part of 0.
static SINGLES: [f32; 4] = [0.0, 0.0, 1.0, 0.0];
static DOUBLES: [f64; 4] = [0.0, 0.0, 1.0, 0.0];

/// Where 0 is, or with `one` 1, of a compute type.
fn constant(compute: ComputeType, one: bool) -> Address {
    let at = if one { 2 } else { 0 };
    match compute.scalar() {
        DataType::R64F | DataType::C64F => Address::new(DOUBLES[at..].as_ptr()),
        _ => Address::new(SINGLES[at..].as_ptr()),
    }
}

/// The same call with alpha in host memory.
fn by_host(cx: &Context) -> Context {
    Context { pointer_mode: PointerMode::Host, ..cx.clone() }
}

/// Nowhere to put columns: they are there.
const NO_COLUMNS: Columns = Columns { data: Address::NULL, wide: 0 };

/// What the copies are made of.
struct Source<'a> {
    device: &'a Device,
    kernels: &'a Kernels,
    places: Places,
    left: &'a Rows,
    right: &'a Rows,
    /// Types of A's and B's values, and of sums.
    values: (DataType, DataType, DataType),
    part: i64,
}

impl Source<'_> {
    /// Copies rows of the left factor, with their columns if these are wanted, and values unless alpha, on the device
    /// or NULL, is zero.
    fn copy_left(&self, cx: &Context, to: (&Owned, &Owned), pattern: bool, alpha: Address) -> Result<()> {
        let Source { device, kernels, places, left, right, values, part } = self;
        let (parts, copy) = to;
        let from = Values::new(left.values, values.0, values.2);
        let columns = |of: &Owned| if pattern { of.columns() } else { NO_COLUMNS };
        let offsets = if pattern { parts.offsets.address() } else { Address::NULL };
        let (rows, warps) =
            (blocks(device, left.rows.saturating_mul(32)), blocks(device, parts.rows.saturating_mul(32)));
        // SAFETY: the pattern has been validated, and the copies have room for what was counted.
        unsafe {
            launch!(kernels.left, rows, 256, 0, cx.stream;
                Factor::of(left), from, *places, right.rows, columns(copy), copy.values.address(), alpha)?;
            launch!(kernels.parts, warps, 256, 0, cx.stream;
                Factor::of(left), from, *places, *part, offsets, columns(parts), parts.values.address(), alpha)
        }
    }

    /// The same of the right factor.
    fn copy_right(&self, cx: &Context, to: &Owned, pattern: bool, alpha: Address) -> Result<()> {
        let Source { device, kernels, right, values, .. } = self;
        let from = Values::new(right.values, values.1, values.2);
        let (offsets, columns) = match pattern {
            true => (to.offsets.address(), to.columns()),
            false => (Address::NULL, NO_COLUMNS),
        };
        // SAFETY: as above.
        unsafe {
            launch!(kernels.right, blocks(device, right.nnz.max(right.rows + 1)), 256, 0, cx.stream;
                Factor::of(right), from, right.rows, right.nnz, offsets, columns, to.values.address(), alpha)
        }
    }
}

impl CutSpgemm {
    /// The product with the long rows of the left factor cut; as it is where there is no memory for the copies. Blocks.
    pub(super) fn build(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpgemmProblem,
        choice: &Choice,
        cut: Cut,
        factors: Factors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        let transposed = choice.method.is_transposed();
        match Self::of_copies(cx, device, problem, transposed, cut, &factors) {
            Ok(make) => Ok(Box::new(make(factors.sealed()))),
            Err(error) if error.lacks_memory() => {
                Ok(Box::new(CudaSpgemm::new(cx, device, problem, choice, factors)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the copies, and both products as far as patterns decide; what is left is who owns A and B.
    fn of_copies(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpgemmProblem,
        transposed: bool,
        cut: Cut,
        factors: &Factors,
    ) -> Result<impl FnOnce([Operand; 2]) -> Self> {
        let (left_side, right_side) = factors.sides(transposed);
        let (left, right) = (left_side.operand.rows(), right_side.operand.rows());
        let kernel = |name| device.modules().kernel("spgemm/cut", name);
        let kernels = Kernels {
            left: kernel("spgemm_cut_left")?,
            parts: kernel("spgemm_cut_parts")?,
            right: kernel("spgemm_cut_right")?,
        };
        let list = left.rows as usize + 1;
        let mut places = DeviceBuffer::<i64>::zeroed(cx, 3 * list)?;
        let words = Readback::take(cx, device)?;
        // SAFETY: the pattern has been validated, and there is a number for each row and one more, three times.
        unsafe {
            launch!(kernel("spgemm_cut_counts")?, blocks(device, left.rows), 256, 0, cx.stream;
                Ints::new(left.offsets, left.offset_type), left.rows, cut.longest, cut.part, places.address())?;
            device_wide::exclusive_scan(cx, places.address(), places.address(), places.len())?;
        }
        for number in 0..3 {
            let last = places.at((number + 1) * list - 1);
            memory::copy(words.host(number), last, size_of::<i64>(), cx.stream)?;
        }
        let mut words = words;
        let sums = words.wait(cx)?;
        let [entries, parts_end, all] = [0, 1, 2].map(|number| sums[number] as i64);
        let (count, long_entries) = (parts_end - entries, all - parts_end);
        let types = problem.types;
        let sum = types.y;
        let of_sums = Types { a: sum, x: sum, ..types };
        let keep = problem.value_updates;

        let wide = i32::try_from(right.rows + count).is_err();
        let index = if wide { IndexType::I64 } else { IndexType::I32 };
        let mut left_copy = Owned::new(cx, (left.rows, right.rows + count, entries), index, sum)?;
        let mut parts = Owned::new(cx, (count, right.rows, long_entries), left.index_type, sum)?;
        let at = Places { sums: places.address(), rows: left.rows };
        let (a, b) = if transposed { (types.x, types.a) } else { (types.a, types.x) };
        let source = Source {
            device,
            kernels: &kernels,
            places: at,
            left: &left,
            right: &right,
            values: (a, b, sum),
            part: cut.part,
        };
        // The pattern alone.
        let stats = |rows, nnz, max| RowStats { rows, nnz, max, ..RowStats::default() };
        let zero = DeviceBuffer::<u8>::zeroed(cx, sum.size())?;
        source.copy_left(cx, (&parts, &left_copy), true, zero.address())?;
        memory::copy(left_copy.offsets.address(), places.address(), list * size_of::<i64>(), cx.stream)?;
        let mut of_parts = Product {
            left: (&parts.matrix(), stats(count, long_entries, cut.part), None),
            right: (&matrix_of(&right, sum), right_side.stats, right_side.order),
            types: of_sums,
            transposed: false,
            value_updates: keep,
        }
        .build(cx, device)?;
        let found = of_parts.symbolic(cx)?;
        let shape = (right.rows + count, right.cols, right.nnz + found);
        let mut right_copy = Owned::new(cx, shape, right.index_type, sum)?;
        let mut offsets = DeviceBuffer::<i64>::new(cx, count as usize + 1)?;
        source.copy_right(cx, &right_copy, true, zero.address())?;
        of_parts.read_values(parts.values.address(), right_copy.values.address());
        let behind = product_of_parts(&right_copy, &offsets, (count, right.nnz, found));
        of_parts.numeric(&by_host(cx), constant(types.compute, false), &behind)?;
        // SAFETY: there are as many offsets, and room for them behind those of the rows of the right factor.
        unsafe {
            launch!(kernel("spgemm_cut_behind")?, blocks(device, count + 1), 256, 0, cx.stream;
                offsets.address(), count, right.nnz, right_copy.offsets.at(right.rows as usize))?;
        }
        let most = cut.longest.max((left_side.stats.max + cut.part - 1) / cut.part);
        let whole = Product {
            left: (&left_copy.matrix(), stats(left.rows, entries, most), None),
            right: (&right_copy.matrix(), stats(shape.0, shape.2, right.cols), right_side.order),
            types: of_sums,
            transposed,
            value_updates: keep,
        }
        .build(cx, device)?;
        // It has waited for the stream.
        places.seal();
        offsets.seal();
        [&mut left_copy, &mut parts, &mut right_copy].into_iter().for_each(Owned::seal);
        let (device, problem) = (Arc::clone(device), *problem);
        Ok(move |[a, b]: [Operand; 2]| CutSpgemm {
            device,
            problem,
            a,
            b,
            transposed,
            cut,
            kernels,
            places,
            parts,
            left: left_copy,
            right: right_copy,
            offsets,
            of_parts,
            whole,
        })
    }

    /// Brings the present values into the copies, unless alpha is zero, and computes L · R.
    fn renew(&mut self, cx: &Context, alpha: Address) -> Result<()> {
        let types = self.problem.types;
        let on_device = match cx.pointer_mode {
            PointerMode::Device => alpha,
            // SAFETY: the caller of numeric promises one value of the compute type there.
            PointerMode::Host => match unsafe { host_memory::is_zero("alpha", types.compute, alpha)? } {
                true => return Ok(()),
                false => Address::NULL,
            },
        };
        let (a, b) = (self.a.rows(), self.b.rows());
        let (left, right) = if self.transposed { (b, a) } else { (a, b) };
        let values = if self.transposed { (types.x, types.a) } else { (types.a, types.x) };
        let source = Source {
            device: &self.device,
            kernels: &self.kernels,
            places: Places { sums: self.places.address(), rows: left.rows },
            left: &left,
            right: &right,
            values: (values.0, values.1, types.y),
            part: self.cut.part,
        };
        source.copy_left(cx, (&self.parts, &self.left), false, on_device)?;
        source.copy_right(cx, &self.right, false, on_device)?;
        let found = self.right.nnz - right.nnz;
        let behind = product_of_parts(&self.right, &self.offsets, (self.parts.rows, right.nnz, found));
        self.of_parts.numeric(&by_host(cx), constant(types.compute, true), &behind)
    }
}

/// L · R, of so many rows and entries, behind so many entries of the right factor's copy.
fn product_of_parts(
    right: &Owned,
    offsets: &DeviceBuffer<i64>,
    (rows, before, nnz): (i64, i64, i64),
) -> SparseMatrix {
    let whole = right.matrix();
    borrowed(Compressed {
        major: rows,
        nnz,
        offsets: offsets.address(),
        indices: whole.indices.offset(before as usize * right.index_type.size()),
        values: whole.values.offset(before as usize * right.value_type.size()),
        ..whole
    })
}

impl SpgemmExecutor for CutSpgemm {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        self.whole.symbolic(cx)
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        self.renew(cx, alpha)?;
        self.whole.numeric(cx, alpha, c)
    }

    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        let problem = &mut self.problem;
        renew_values(cx, &mut self.a, (&mut problem.a, problem.op_a), a, "A")?;
        renew_values(cx, &mut self.b, (&mut problem.b, problem.op_b), b, "B")
    }

    fn layout(&self) -> LayoutInfo {
        let in_place = self.a.layout().in_place && self.b.layout().in_place;
        LayoutInfo { kind: LayoutKind::Csr, in_place, fill: 1.0 }
    }

    fn details(&self) -> String {
        format!("rows of more than {} entries in {} parts", self.cut.longest, self.parts.rows)
    }

    /// Those of both products, but for adding the rows of L · R.
    fn products(&self) -> i64 {
        let (a, b) = (self.a.rows(), self.b.rows());
        let right = if self.transposed { a } else { b };
        self.of_parts.products() + self.whole.products() - (self.right.nnz - right.nnz)
    }
}
