//! SpGEMM `hash` where some rows of the left factor have very many entries: those rows are cut into parts, so that
//! warps take their factors side by side (kernels/spgemm/cut.cu).
//!
//! The left factor is S · L, where the rows of L are the parts of its rows, in order, and row i of S has a one for
//! each part of row i. L has the arrays of the left factor but for its offsets. The product is S · (L · R): two
//! products by rows, of which the second adds the rows of the parts, in their order. So sums of long rows are sums of
//! the parts' sums, which are the same from run to run. The first product is multiplied by alpha.

use std::sync::Arc;

use super::factors::{Factors, Side};
use super::rows::{self, Ints};
use super::CudaSpgemm;
use crate::algorithm::Algorithm;
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::{self, DeviceBuffer};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::{Error, Result};
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpgemmProblem;
use crate::select::spgemm::looks::Cut;
use crate::select::{Choice, Method, Source};
use crate::support::Types;
use crate::types::{Address, ComputeType, DataType, IndexBase, IndexType, Operation, PointerMode};

/// The arrays of S, and the offsets of L.
struct Arrays {
    /// Of the rows of L, counted from the left factor's base.
    offsets: DeviceBuffer<i64>,
    /// First part of each row, and the number of all.
    first: DeviceBuffer<i64>,
    /// Columns of S.
    numbers: DeviceBuffer<i32>,
    /// Values of S.
    ones: DeviceBuffer<u32>,
}

/// L · R.
struct Parts {
    offsets: DeviceBuffer<i64>,
    columns: DeviceBuffer<u8>,
    values: DeviceBuffer<u8>,
    /// As a matrix in CSR.
    matrix: SparseMatrix,
}

/// The executor.
pub(super) struct CutSpgemm {
    device: Arc<Device>,
    problem: SpgemmProblem,
    a: Operand,
    b: Operand,
    transposed: bool,
    cut: Cut,
    arrays: Arrays,
    /// L · R.
    of_parts: CudaSpgemm,
    /// What it has written, from the symbolic phase on.
    parts: Option<Parts>,
    /// S · (L · R), or, where there was no memory for that, the product as it is.
    whole: Option<CudaSpgemm>,
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

/// The product of two matrices in CSR whose arrays others keep, or of their transposes the other way round.
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
        let choice = Choice::of(Method::Hash { transposed }, Source::InPlace);
        debug_assert!(choice.algorithm() == Algorithm::Hash);
        CudaSpgemm::new(cx, device, &problem, &choice, Factors::of([side(a), side(b)]))
    }
}

impl Arrays {
    /// Of a left factor with these rows. Blocks.
    fn new(cx: &Context, device: &Arc<Device>, left: &Rows, cut: Cut, value_type: DataType) -> Result<Self> {
        let kernel = |name| device.modules().kernel("spgemm/cut", name);
        let rows = left.rows as usize;
        let first = DeviceBuffer::<i64>::zeroed(cx, rows + 1)?;
        let offsets = Ints::new(left.offsets, left.offset_type);
        // SAFETY: the pattern has been validated, and there is a number for each row and one more.
        unsafe {
            launch!(kernel("spgemm_cut_counts")?, blocks(device, left.rows), 256, 0, cx.stream;
                offsets, left.rows, cut.longest, cut.part, first.address())?;
            device_wide::exclusive_scan(cx, first.address(), first.address(), rows + 1)?;
        }
        let count = first.read(rows, 1)?[0] as usize;
        if i32::try_from(count).is_err() {
            return Err(Error::out_of_memory(usize::MAX));
        }
        let real = if value_type.is_complex() { value_type.size() / 2 } else { value_type.size() };
        let (real_words, words) = (real / 4, value_type.size() / 4);
        let mut arrays = Arrays {
            offsets: DeviceBuffer::new(cx, count + 1)?,
            first,
            numbers: DeviceBuffer::new(cx, count)?,
            ones: DeviceBuffer::new(cx, count * words)?,
        };
        // SAFETY: as above; each array has an element for each part, the offsets one more.
        unsafe {
            launch!(kernel("spgemm_cut_fill")?, blocks(device, left.rows.saturating_mul(32)), 256, 0, cx.stream;
                offsets, left.rows, cut.part, arrays.first.address(), arrays.offsets.address(),
                arrays.numbers.address(), real_words as i32, words as i32, arrays.ones.address())?;
        }
        memory::synchronize(cx.stream)?;
        arrays.offsets.seal();
        arrays.first.seal();
        arrays.numbers.seal();
        arrays.ones.seal();
        Ok(arrays)
    }

    /// Parts.
    fn count(&self) -> i64 {
        self.numbers.len() as i64
    }

    /// L, of a left factor with these rows.
    fn parts_of(&self, left: &Rows, value_type: DataType) -> Compressed {
        let rows = Rows {
            offsets: self.offsets.address(),
            offset_type: IndexType::I64,
            rows: self.count(),
            ..*left
        };
        matrix_of(&rows, value_type)
    }

    /// S.
    fn sums(&self, value_type: DataType) -> Compressed {
        Compressed {
            major: self.first.len() as i64 - 1,
            minor: self.count(),
            nnz: self.count(),
            offsets: self.first.address(),
            indices: self.numbers.address(),
            values: self.ones.address(),
            offset_type: IndexType::I64,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type,
        }
    }
}

impl Parts {
    /// Room for so many entries.
    fn new(
        cx: &Context,
        (rows, cols): (i64, i64),
        nnz: i64,
        index_type: IndexType,
        value_type: DataType,
    ) -> Result<Self> {
        let bytes = |size: usize| super::bytes(nnz as usize, size);
        let offsets = DeviceBuffer::<i64>::new(cx, rows as usize + 1)?;
        let columns = DeviceBuffer::<u8>::new(cx, bytes(index_type.size())?)?;
        let values = DeviceBuffer::<u8>::new(cx, bytes(value_type.size())?)?;
        let matrix = borrowed(Compressed {
            major: rows,
            minor: cols,
            nnz,
            offsets: offsets.address(),
            indices: columns.address(),
            values: values.address(),
            offset_type: IndexType::I64,
            index_type,
            base: IndexBase::Zero,
            value_type,
        });
        Ok(Parts { offsets, columns, values, matrix })
    }

    fn seal(&mut self) {
        self.offsets.seal();
        self.columns.seal();
        self.values.seal();
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

impl CutSpgemm {
    /// Cuts the rows of the left factor. Blocks.
    pub(super) fn new(
        cx: &Context,
        device: &Arc<Device>,
        problem: &SpgemmProblem,
        transposed: bool,
        cut: Cut,
        factors: Factors,
    ) -> Result<Self> {
        let (left, right) = factors.sides(transposed);
        let (left_rows, right_rows) = (left.operand.rows(), right.operand.rows());
        let arrays = Arrays::new(cx, device, &left_rows, cut, problem.types.y)?;
        let stats = RowStats {
            rows: arrays.count(),
            max: left.stats.max.min(cut.longest.max(cut.part)),
            ..left.stats
        };
        let of_parts = Product {
            left: (&arrays.parts_of(&left_rows, problem.types.a), stats, left.order),
            right: (&matrix_of(&right_rows, problem.types.x), right.stats, right.order),
            types: problem.types,
            transposed: false,
            value_updates: problem.value_updates,
        }
        .build(cx, device)?;
        let [a, b] = factors.sealed();
        Ok(CutSpgemm {
            device: Arc::clone(device),
            problem: *problem,
            a,
            b,
            transposed,
            cut,
            arrays,
            of_parts,
            parts: None,
            whole: None,
        })
    }

    /// The left and the right factor.
    fn factors(&self) -> (Rows, Rows) {
        match self.transposed {
            true => (self.b.rows(), self.a.rows()),
            false => (self.a.rows(), self.b.rows()),
        }
    }

    /// The product S · (L · R), whose second factor is computed. Blocks.
    fn add_parts(&mut self, cx: &Context) -> Result<CudaSpgemm> {
        let nnz = self.of_parts.symbolic(cx)?;
        let (left, right) = self.factors();
        let types = self.problem.types;
        let rows = self.arrays.count();
        self.parts = Some(Parts::new(cx, (rows, right.cols), nnz, right.index_type, types.y)?);
        let Some(parts) = &mut self.parts else { unreachable!("made above") };
        // Its pattern, which needs no values.
        self.of_parts.numeric(&by_host(cx), constant(types.compute, false), &parts.matrix)?;
        let SparseArrays::Csr(found) = parts.matrix.arrays else { unreachable!("made above") };
        let stats = |rows, nnz, max| RowStats { rows, nnz, max, ..RowStats::default() };
        let most = (left.nnz + self.cut.part - 1) / self.cut.part;
        let order = Some(rows::SORTED | rows::DISTINCT);
        let product = Product {
            left: (&self.arrays.sums(types.y), stats(left.rows, rows, most), order),
            right: (&found, stats(rows, nnz, right.cols), order),
            types: Types { a: types.y, x: types.y, ..types },
            transposed: self.transposed,
            value_updates: self.problem.value_updates,
        }
        .build(cx, &self.device)?;
        // It has waited for the stream.
        parts.seal();
        Ok(product)
    }

    /// The product as it is.
    fn uncut(&self, cx: &Context) -> Result<CudaSpgemm> {
        let (left, right) = self.factors();
        let stats =
            |rows: &Rows| RowStats { rows: rows.rows, nnz: rows.nnz, max: rows.nnz, ..RowStats::default() };
        Product {
            left: (&matrix_of(&left, self.problem.types.a), stats(&left), None),
            right: (&matrix_of(&right, self.problem.types.x), stats(&right), None),
            types: self.problem.types,
            transposed: self.transposed,
            value_updates: self.problem.value_updates,
        }
        .build(cx, &self.device)
    }
}

impl SpgemmExecutor for CutSpgemm {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if self.whole.is_none() {
            let whole = match self.add_parts(cx) {
                Err(error) if error.lacks_memory() => {
                    self.parts = None;
                    self.uncut(cx)?
                }
                added => added?,
            };
            self.whole = Some(whole);
        }
        match &mut self.whole {
            Some(whole) => whole.symbolic(cx),
            None => unreachable!("made above"),
        }
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        match (&mut self.whole, &self.parts) {
            (Some(whole), Some(parts)) => {
                self.of_parts.numeric(cx, alpha, &parts.matrix)?;
                whole.numeric(&by_host(cx), constant(self.problem.types.compute, true), c)
            }
            (Some(whole), None) => whole.numeric(cx, alpha, c),
            (None, _) => Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first")),
        }
    }

    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        let device = Arc::clone(&self.device);
        let _entered = device.enter()?;
        if !a.is_null() {
            let renewed = self.problem.a.with_values(a);
            self.a.update_values(cx, &renewed, self.problem.op_a, "A")?;
            self.problem.a = renewed;
        }
        if !b.is_null() {
            let renewed = self.problem.b.with_values(b);
            self.b.update_values(cx, &renewed, self.problem.op_b, "B")?;
            self.problem.b = renewed;
        }
        // Those of L · R are in this order whatever is transposed.
        let (left, right) = self.factors();
        self.of_parts.read_values(left.values, right.values);
        if self.parts.is_none() {
            let (a, b) = (self.a.rows().values, self.b.rows().values);
            self.whole.iter_mut().for_each(|whole| whole.read_values(a, b));
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        self.of_parts.layout()
    }

    fn products(&self) -> i64 {
        self.of_parts.products()
    }
}
