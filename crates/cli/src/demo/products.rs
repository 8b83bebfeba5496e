//! Products of owned matrices, all by the public C functions.

use std::ffi::c_char;
use std::time::Instant;

use bytemuck::Pod;
use client::{Array, DenseLayout, Plan, Session, Sparse};
use matrices::owned::OwnedCsr;
use tarsia::capi::enums::tarsiaLayout_t;
use tarsia::facade::{IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg};

use super::scalar::Scalar;
use crate::Result;

/// Makes a vector of zeros; running out of memory is an error and does not end the program.
pub fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len)
        .map_err(|_| format!("out of memory: {len} values of {} bytes were refused", size_of::<T>()))?;
    out.resize(len, T::default());
    Ok(out)
}

/// A matrix in the memory of a handle's backend.
pub struct Stored<'s, T: Scalar> {
    /// Rows and columns.
    shape: (usize, usize),
    offsets: Array<'s, i64>,
    indices: Array<'s, i32>,
    values: Array<'s, T>,
}

impl<'s, T: Scalar> Stored<'s, T> {
    /// Copies a matrix to the backend.
    pub fn new(session: &'s Session, a: &OwnedCsr<T>) -> Result<Self> {
        let (offsets, indices) = (session.upload(&a.offsets)?, session.upload(&a.indices)?);
        Ok(Stored { shape: (a.rows, a.cols), offsets, indices, values: session.upload(&a.values)? })
    }

    /// Makes the library's descriptor.
    pub fn describe(&self) -> Result<Sparse<'_>> {
        let shape = (self.shape.0 as i64, self.shape.1 as i64);
        Ok(Sparse::csr(shape, &self.offsets, &self.indices, &self.values, IndexBase::Zero)?)
    }

    /// Returns the number of stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Copies the matrix to the host.
    pub fn download(&self) -> Result<OwnedCsr<T>> {
        Ok(OwnedCsr {
            rows: self.shape.0,
            cols: self.shape.1,
            offsets: download(&self.offsets)?,
            indices: download(&self.indices)?,
            values: download(&self.values)?,
        })
    }
}

fn download<T: Pod + Default>(array: &Array<'_, T>) -> Result<Vec<T>> {
    let mut out = zeros(array.len())?;
    array.download_to(&mut out)?;
    Ok(out)
}

/// Makes an analyzed plan of y = op(A) · x.
pub fn spmv_plan<'a, T: Scalar>(session: &Session, a: &'a Stored<'_, T>, op: Operation) -> Result<Plan<'a>> {
    let types = (T::TYPE, T::TYPE);
    let plan = Plan::spmv(session, op, &a.describe()?, types, T::COMPUTE, SpmvAlg::Default)?;
    plan.analyze(session)?;
    Ok(plan)
}

/// Computes y = op(A) · x.
pub fn spmv<T: Scalar>(session: &Session, a: &OwnedCsr<T>, op: Operation, x: &[T]) -> Result<Vec<T>> {
    let rows = if op.transposes() { a.cols } else { a.rows };
    let a = Stored::new(session, a)?;
    let (x, mut y) = (session.upload(x)?, session.upload::<T>(&zeros(rows)?)?);
    spmv_plan(session, &a, op)?.run_spmv(session, T::ONE, &x, T::ZERO, &mut y)?;
    download(&y)
}

/// Returns the shape of a row-major matrix of `n` contiguous columns.
pub fn row_major(rows: usize, n: usize) -> DenseLayout {
    DenseLayout { rows: rows as i64, cols: n as i64, ld: n as i64, order: Order::Row }
}

/// Makes an analyzed plan of C = A · B with `n` columns, B and C row-major.
pub fn spmm_plan<'a, T: Scalar>(session: &Session, a: &'a Stored<'_, T>, n: usize) -> Result<Plan<'a>> {
    let ops = (Operation::NonTranspose, Operation::NonTranspose);
    let (orders, types) = ((Order::Row, Order::Row), (T::TYPE, T::TYPE));
    let a = a.describe()?;
    let plan = Plan::spmm(session, ops, &a, orders, n as i64, types, T::COMPUTE, SpmmAlg::Default)?;
    plan.analyze(session)?;
    Ok(plan)
}

/// Computes C = A · B with `n` columns, B and C row-major.
pub fn spmm<T: Scalar>(session: &Session, a: &OwnedCsr<T>, b: &[T], n: usize) -> Result<Vec<T>> {
    let stored = Stored::new(session, a)?;
    let mut c = session.upload::<T>(&zeros(a.rows.saturating_mul(n))?)?;
    let (b, b_shape, c_shape) = (session.upload(b)?, row_major(a.cols, n), row_major(a.rows, n));
    let plan = spmm_plan(session, &stored, n)?;
    plan.run_spmm(session, T::ONE, (&b, b_shape), T::ZERO, (&mut c, c_shape))?;
    download(&c)
}

/// The product C = A · op(B), all sparse, phase by phase.
pub struct SparseProduct<'a> {
    plan: Plan<'a>,
    shape: (usize, usize),
}

impl<'a> SparseProduct<'a> {
    /// Creates the plan and analyzes it.
    pub fn new<T: Scalar>(
        session: &Session,
        a: &'a Stored<'_, T>,
        b: &'a Stored<'_, T>,
        op_b: Operation,
    ) -> Result<Self> {
        let ops = (Operation::NonTranspose, op_b);
        let (a_descr, b_descr) = (a.describe()?, b.describe()?);
        let plan = Plan::spgemm(session, ops, &a_descr, &b_descr, T::COMPUTE, SpgemmAlg::Default)?;
        plan.analyze(session)?;
        Ok(SparseProduct { plan, shape: (a.shape.0, if op_b.transposes() { b.shape.0 } else { b.shape.1 }) })
    }

    /// Returns (rows, columns) of C.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// Returns the plan's information.
    pub fn info(&self) -> Result<Info> {
        Info::of(&self.plan)
    }

    /// Runs the symbolic phase; returns the number of stored entries of C.
    pub fn symbolic(&self, session: &Session) -> Result<usize> {
        Ok(usize::try_from(self.plan.symbolic(session)?)?)
    }

    /// Allocates a C of `nnz` entries.
    pub fn room<'s, T: Scalar>(&self, session: &'s Session, nnz: usize) -> Result<Stored<'s, T>> {
        let offsets = session.upload(&zeros(self.shape.0 + 1)?)?;
        let indices = session.upload(&zeros(nnz)?)?;
        Ok(Stored { shape: self.shape, offsets, indices, values: session.upload(&zeros(nnz)?)? })
    }

    /// Writes C, and waits for it.
    pub fn numeric<T: Scalar>(&self, session: &Session, c: &mut Stored<'_, T>) -> Result<()> {
        let shape = (c.shape.0 as i64, c.shape.1 as i64);
        let Stored { offsets, indices, values, .. } = c;
        self.plan.numeric_csr(session, T::ONE, shape, offsets, indices, values, IndexBase::Zero)?;
        Ok(session.synchronize()?)
    }
}

/// Computes C = A · op(B), all sparse.
pub fn spgemm<T: Scalar>(
    session: &Session,
    a: &OwnedCsr<T>,
    b: &OwnedCsr<T>,
    op_b: Operation,
) -> Result<OwnedCsr<T>> {
    let (a, b) = (Stored::new(session, a)?, Stored::new(session, b)?);
    let product = SparseProduct::new(session, &a, &b, op_b)?;
    let mut c = product.room(session, product.symbolic(session)?)?;
    product.numeric(session, &mut c)?;
    c.download()
}

/// Results of `tarsiaPlan_getInfo` that the demo shows.
#[derive(Clone, Debug)]
pub struct Info {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Reason for the choice.
    pub reason: String,
    /// True if the plan reads the user's arrays in place.
    pub in_place: bool,
    /// True if the layout is the reference's list of entries.
    pub triplets: bool,
    /// True if the layout is slices of rows.
    pub sliced: bool,
    /// Slots for values over stored entries.
    pub fill: f64,
    /// Seconds of analysis.
    pub analysis_seconds: f64,
    /// Multiplications of a SpGEMM.
    pub products: u64,
}

impl Info {
    /// Reads the information of a plan.
    pub fn of(plan: &Plan<'_>) -> Result<Self> {
        let info = plan.info()?;
        Ok(Info {
            algorithm: text(&info.algorithmName),
            reason: text(&info.reason),
            in_place: info.inPlace != 0,
            triplets: info.layout == tarsiaLayout_t::TARSIA_LAYOUT_TRIPLETS,
            sliced: info.layout == tarsiaLayout_t::TARSIA_LAYOUT_SELL,
            fill: info.fill,
            analysis_seconds: info.analysisSeconds,
            products: u64::try_from(info.products)?,
        })
    }

    /// Returns a description of the layout such as `csr, in place`.
    pub fn layout(&self) -> String {
        let how = match (self.in_place, self.triplets) {
            (true, _) => "in place",
            (_, true) => "list of entries",
            _ => "sorted copy",
        };
        format!("{}, {how}", self.algorithm)
    }

    /// Returns the bytes of a matrix in this layout.
    pub fn matrix_bytes<T: Scalar>(&self, rows: usize, nnz: usize) -> f64 {
        // CSR, both our arrays in place and every copy: 32-bit columns, 64-bit offsets. A list of entries:
        // row, column and position, of 8 bytes each. Slices: 16-bit columns (where they fit), and the row and
        // a part of the head.
        let (index, offset) = match (self.triplets, self.sliced) {
            (true, _) => (24, 0),
            (_, true) => (2, 8),
            _ => (4, 8),
        };
        let entries = nnz as f64 * self.fill * (size_of::<T>() + index) as f64;
        entries + (rows + 1) as f64 * offset as f64
    }
}

/// Converts a C array of characters to a string.
fn text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> =
        chars.iter().flat_map(|char| char.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the seconds of one call of `work`, and its result.
pub fn timed<R>(work: impl FnOnce() -> Result<R>) -> Result<(f64, R)> {
    let start = Instant::now();
    let out = work()?;
    Ok((start.elapsed().as_secs_f64(), out))
}

/// Returns the median; 0 for no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the median seconds of `work`: after a first run that does not count (caches, pages of the output)
/// half a second of runs, at least 5 and at most 101. A work that takes more than 2 s is not run again.
pub fn median_seconds(work: impl FnMut() -> Result<()>) -> Result<f64> {
    median_of(5, 0.5, work)
}

/// Like [`median_seconds`], with another least number of runs and other seconds for them.
pub fn median_of(least: usize, enough: f64, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let (first, ()) = timed(&mut work)?;
    if first > 4.0 * enough {
        return Ok(first);
    }
    let mut seconds = Vec::new();
    while seconds.len() < least || (seconds.len() < 101 && seconds.iter().sum::<f64>() < enough) {
        seconds.push(timed(&mut work)?.0);
    }
    Ok(median(seconds))
}
