//! Implementations of other vendors, opened while the program runs and timed beside the library: [`cusparse`]
//! and [`cublas`] on CUDA, MKL and AOCL on the host ([`cpu`]).
//!
//! - [`library`]: opening of shared libraries
//! - [`formats`]: conversion of a matrix to blocks, slices or coordinates
//!
//! The operands of a vendor's functions are arrays of the session, so that both implementations work on the
//! same memory.

#![allow(unsafe_code)]

pub mod cpu;
pub mod cublas;
pub mod cusparse;
pub mod formats;
pub mod library;

use client::{Array, DenseLayout};
use matrices::owned::OwnedCsr;

use super::number::Number;
use super::runs::{Layout, MatrixOperand};
use super::Op;
use crate::Result;

/// A vendor's entry: one way to compute a product.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<C> {
    /// Contents of the column `impl` in tables.
    pub implementation: String,
    /// Contents of the column `alg` in tables.
    pub alg: String,
    /// The vendor's own name of the algorithm.
    pub what: C,
}

/// A product that is ready to be executed again and again.
pub struct Prepared<'a> {
    /// Milliseconds of analysis, to its end on the device.
    pub analysis_ms: f64,
    /// Bytes of buffers and converted matrices; negative if unknown.
    pub bytes: f64,
    /// Text for the table's `note`.
    pub note: String,
    /// Enqueues one execution.
    pub run: Box<dyn FnMut() -> Result<()> + 'a>,
}

/// A dense factor, op(B), in an array of the session, without padding.
pub struct Dense<'a, T: bytemuck::Pod> {
    /// Elements of the factor.
    pub array: &'a Array<'a, T>,
    /// Rows of the factor.
    pub rows: usize,
    /// Columns of the factor.
    pub cols: usize,
    /// Storage of the factor.
    pub layout: Layout,
}

impl<T: bytemuck::Pod> Dense<'_, T> {
    /// Returns the shape of the matrix that is stored.
    pub fn shape(&self) -> DenseLayout {
        self.layout.b_shape(self.rows, self.cols)
    }
}

/// A product of two sparse matrices, all phases of which run each time.
pub trait SparseProduct<T> {
    /// Runs the product; returns the seconds of its phases, without the allocation of memory where the caller
    /// allocates.
    fn run(&mut self) -> Result<f64>;
    /// Runs the numeric phase of the last run again, for new values of A and B, and returns its seconds;
    /// `None` if every product starts anew.
    fn again(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }
    /// Returns C of the last run: offsets, columns, values.
    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)>;
    /// Returns the largest number of bytes at one time, with C; negative if unknown.
    fn peak_bytes(&self) -> f64;
    /// Returns the text for the table's `note`.
    fn note(&self) -> String;
    /// Returns a suffix for the algorithm's name, for a product that had to be run in another way.
    fn suffix(&self) -> &'static str {
        ""
    }
}

/// A vendor whose products are timed.
pub trait Vendor {
    /// Type that names an algorithm of the vendor.
    type What: Clone;

    /// Returns name and version for people.
    fn version(&self) -> String;

    /// Returns the version's number.
    fn number(&self) -> String;

    /// Sets the matrix that the next calls are about, for a vendor whose choices depend on its pattern.
    fn set_matrix(&mut self, _pattern: &OwnedCsr<()>) -> Result<()> {
        Ok(())
    }

    /// Lists the ways to compute a product of this matrix as it is stored, with dense operands of this
    /// layout, in the order in which they are timed. Empty if the vendor has no such product.
    fn choices<T: Number>(&self, op: Op, a: &MatrixOperand<'_, T>, layout: Layout)
        -> Vec<Choice<Self::What>>;

    /// Prepares y = A·x. Products that [`Self::choices`] does not offer are never prepared.
    fn spmv<'a, T: Number>(
        &'a self,
        _what: &Self::What,
        _a: &'a MatrixOperand<'_, T>,
        _x: &'a Array<'_, T>,
        _y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        Err("the vendor has no such product".into())
    }

    /// Prepares C = A·op(B); C has B's order and the columns of op(B).
    fn spmm<'a, T: Number>(
        &'a self,
        _what: &Self::What,
        _a: &'a MatrixOperand<'_, T>,
        _b: Dense<'a, T>,
        _c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        Err("the vendor has no such product".into())
    }

    /// Prepares C = A·B, where B is A if it is not given.
    fn spgemm<'a, T: Number>(
        &'a self,
        _what: &Self::What,
        _a: &'a MatrixOperand<'_, T>,
        _b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        Err("the vendor has no such product".into())
    }

    /// Returns whether the vendor computes in TF32 where that is the precision.
    fn has_tf32(&self) -> bool {
        false
    }

    /// Waits until the vendor's threads have come to rest, if it has any.
    fn settle(&self) {}
}

/// The absence of a vendor.
pub struct Nobody;

impl Vendor for Nobody {
    type What = ();

    fn version(&self) -> String {
        "no vendor".into()
    }

    fn number(&self) -> String {
        String::new()
    }

    fn choices<T: Number>(&self, _: Op, _: &MatrixOperand<'_, T>, _: Layout) -> Vec<Choice<()>> {
        Vec::new()
    }
}
