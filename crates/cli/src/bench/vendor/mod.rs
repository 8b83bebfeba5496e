//! Implementations of others, opened while the program runs and timed beside
//! the library: [`cusparse`] and [`cublas`] on CUDA, [`mkl`] on the host.
//!
//! - [`library`]: dlopen, dlsym
//! - [`formats`]: a pattern as blocks, slices or coordinates
//!
//! What a vendor's functions are given lies in arrays of the session, so that both
//! work on the same memory.

#![allow(unsafe_code)]

pub mod cublas;
pub mod cusparse;
pub mod formats;
pub mod library;
pub mod mkl;

use client::{Array, Shape};
use matrices::owned::OwnedCsr;

use super::number::Number;
use super::runs::{Layout, Operands};
use super::Op;
use crate::Result;

/// A way to compute a product.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<C> {
    /// `impl` in tables.
    pub implementation: String,
    /// `alg` in tables.
    pub alg: String,
    /// What the vendor knows it by.
    pub what: C,
}

/// A product that is ready to be executed again and again.
pub struct Prepared<'a> {
    /// Milliseconds of analysis, to its end on the device.
    pub analysis_ms: f64,
    /// Buffers and converted matrices, in bytes; negative if nobody knows.
    pub bytes: f64,
    /// For the table's `note`.
    pub note: String,
    /// Enqueues one execution.
    pub run: Box<dyn FnMut() -> Result<()> + 'a>,
}

/// A dense factor, op(B), in an array of the session, without padding.
pub struct Dense<'a, T: bytemuck::Pod> {
    /// Its elements.
    pub array: &'a Array<'a, T>,
    /// Rows of the factor.
    pub rows: usize,
    /// Columns of the factor.
    pub cols: usize,
    /// How it is stored.
    pub layout: Layout,
}

impl<T: bytemuck::Pod> Dense<'_, T> {
    /// The shape of the matrix that is stored.
    pub fn shape(&self) -> Shape {
        self.layout.b_shape(self.rows, self.cols)
    }
}

/// Sparse · sparse, every phase of which is run each time.
pub trait SparseProduct<T> {
    /// Runs it; seconds of its phases, without the allocation of memory where
    /// the caller allocates.
    fn run(&mut self) -> Result<f64>;
    /// The numeric phase of the last run again, for new values of A and B: its seconds. `None` where every
    /// product starts anew.
    fn again(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// C of the last run: offsets, columns, values.
    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)>;
    /// The most bytes at one time, with C; negative if nobody knows.
    fn peak_bytes(&self) -> f64;
    /// For the table's `note`.
    fn note(&self) -> String;
    /// Added to the name of the algorithm, for how it had to be run.
    fn suffix(&self) -> &'static str {
        ""
    }
}

/// Somebody else's products.
pub trait Vendor {
    /// What the vendor knows an algorithm by.
    type What: Clone;

    /// Name and version, for people.
    fn version(&self) -> String;

    /// The version's number.
    fn number(&self) -> String;

    /// Says which matrix the next calls are about.
    fn look(&mut self, pattern: &OwnedCsr<()>) -> Result<()>;

    /// The ways to compute a product of this matrix as it is stored, with dense operands of this layout; in the order
    /// in which they are timed. None where the vendor has no such product.
    fn choices<T: Number>(&self, op: Op, a: &Operands<'_, T>, layout: Layout) -> Vec<Choice<Self::What>>;

    /// y = A·x, ready.
    fn spmv<'a, T: Number>(
        &'a self,
        what: &Self::What,
        a: &'a Operands<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>>;

    /// C = A·op(B), ready; C has B's order and the columns of op(B).
    fn spmm<'a, T: Number>(
        &'a self,
        what: &Self::What,
        a: &'a Operands<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>>;

    /// C = A·B: B is A, or, where it is given, another matrix.
    fn spgemm<'a, T: Number>(
        &'a self,
        what: &Self::What,
        a: &'a Operands<'_, T>,
        b: Option<&'a Operands<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>>;

    /// Whether it computes in TF32 where that is the precision.
    fn has_tf32(&self) -> bool {
        false
    }

    /// A moment in which the vendor's threads come to rest, where it has any.
    fn settle(&self) {}
}

/// No vendor.
pub struct Nobody;

impl Vendor for Nobody {
    type What = std::convert::Infallible;

    fn version(&self) -> String {
        "no vendor".into()
    }

    fn number(&self) -> String {
        String::new()
    }

    fn look(&mut self, _: &OwnedCsr<()>) -> Result<()> {
        Ok(())
    }

    fn choices<T: Number>(&self, _: Op, _: &Operands<'_, T>, _: Layout) -> Vec<Choice<Self::What>> {
        Vec::new()
    }

    fn spmv<'a, T: Number>(
        &'a self,
        what: &Self::What,
        _: &'a Operands<'_, T>,
        _: &'a Array<'_, T>,
        _: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        match *what {}
    }

    fn spmm<'a, T: Number>(
        &'a self,
        what: &Self::What,
        _: &'a Operands<'_, T>,
        _: Dense<'a, T>,
        _: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        match *what {}
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        what: &Self::What,
        _: &'a Operands<'_, T>,
        _: Option<&'a Operands<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        match *what {}
    }
}
