//! The vendor's library for the backend, where the machine has it: MKL beside the host, cuSPARSE beside CUDA. Its
//! products are made of the same operands, and are timed in the same way.

use client::Session;
use matrices::owned::OwnedCsr;
use tarsia::facade::{BackendKind, IndexType, Operation};

use super::products::{median_seconds, zeros};
use crate::bench::number::Precision;
use crate::bench::runs::{Layout, MatrixOperand, Stored};
use crate::bench::vendor::cpu::Peers;
use crate::bench::vendor::cusparse::Libraries;
use crate::bench::vendor::{Choice, Dense, Vendor};
use crate::bench::{check, Op};
use crate::Result;

const PLAIN: Stored = (Operation::NonTranspose, IndexType::I32);

/// Seconds from which on a product of sparse matrices is not run again.
const LONG: f64 = 0.5;

/// A product of another library, with the median of its seconds.
pub struct Other<C> {
    /// Seconds of the product.
    pub seconds: f64,
    /// Result of the product.
    pub result: C,
}

/// Another library.
pub trait Rival<T> {
    /// Returns its name, for the head of a column.
    fn name(&self) -> &'static str;

    /// Returns its name and version.
    fn version(&self) -> String;

    /// Computes C = A · B with `n` columns, B and C row-major; a vector is a matrix of one column.
    fn dense(&self, a: &OwnedCsr<T>, b: &[T], n: usize) -> Result<Other<Vec<T>>>;

    /// Computes C = A · B, all sparse, with all that it takes.
    fn sparse(&self, a: &OwnedCsr<T>, b: &OwnedCsr<T>) -> Result<Other<OwnedCsr<T>>>;
}

/// Opens the library that belongs to the backend; an error if the machine does not have it.
pub fn open(session: &Session) -> Result<Box<dyn Rival<f64> + '_>> {
    match session.kind() {
        BackendKind::Host => {
            let vendor = Peers::open(session, &[("mkl", None)])
                .map_err(|_| "MKL is not found: LD_LIBRARY_PATH does not lead to a libmkl_rt")?;
            Ok(Box::new(Opened { name: "MKL", session, vendor }))
        }
        BackendKind::Cuda => {
            // Matrices in blocks are not compared, so no fill of blocks is accepted.
            let vendor = Libraries::open(session, &[], 0.0);
            let vendor = vendor
                .map_err(|_| "cuSPARSE is not found: LD_LIBRARY_PATH does not lead to a libcusparse")?;
            Ok(Box::new(Opened { name: "cuSPARSE", session, vendor }))
        }
        _ => Err("no other library belongs to this backend".into()),
    }
}

struct Opened<'s, V> {
    name: &'static str,
    session: &'s Session,
    vendor: V,
}

impl<'s, V: Vendor> Opened<'s, V> {
    fn matrix(&self, a: &OwnedCsr<f64>) -> Result<MatrixOperand<'s, f64>> {
        MatrixOperand::of(self.session, "", a.try_clone()?, Precision::F64, PLAIN)
    }

    /// Runs all of the library's algorithms for a product of a matrix in CSR; returns the fastest.
    fn fastest<C>(
        &self,
        op: Op,
        a: &MatrixOperand<'s, f64>,
        mut run: impl FnMut(&V::What) -> Result<Other<C>>,
    ) -> Result<Other<C>> {
        // The names of other formats than CSR have more parts, such as cusparse-coo.
        let is_csr = |choice: &Choice<V::What>| !choice.implementation.contains('-');
        let (mut best, mut said) = (None::<Other<C>>, None);
        for choice in self.vendor.choices(op, a, Layout::PLAIN).into_iter().filter(is_csr) {
            match run(&choice.what) {
                Ok(found) if best.as_ref().is_none_or(|best| found.seconds < best.seconds) => {
                    best = Some(found);
                }
                Ok(_) => {}
                Err(error) => said = Some(error),
            }
        }
        self.vendor.settle();
        best.ok_or_else(|| said.unwrap_or_else(|| "it has no such product".into()))
    }
}

impl<V: Vendor> Rival<f64> for Opened<'_, V> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.vendor.version()
    }

    fn dense(&self, a: &OwnedCsr<f64>, b: &[f64], n: usize) -> Result<Other<Vec<f64>>> {
        let (session, rows) = (self.session, a.rows);
        let (a, b) = (self.matrix(a)?, session.upload(b)?);
        let op = if n == 1 { Op::Spmv } else { Op::Spmm };
        self.fastest(op, &a, |what| {
            let mut c = session.upload::<f64>(&zeros(rows * n)?)?;
            let factor = Dense { array: &b, rows: a.host.cols, cols: n, layout: Layout::PLAIN };
            let mut prepared = match op {
                Op::Spmv => self.vendor.spmv(what, &a, &b, &mut c)?,
                _ => self.vendor.spmm(what, &a, factor, &mut c)?,
            };
            let seconds = median_seconds(|| {
                (prepared.run)()?;
                Ok(session.synchronize()?)
            })?;
            drop(prepared);
            let mut result = zeros(rows * n)?;
            c.download_to(&mut result)?;
            Ok(Other { seconds, result })
        })
    }

    fn sparse(&self, a: &OwnedCsr<f64>, b: &OwnedCsr<f64>) -> Result<Other<OwnedCsr<f64>>> {
        let (rows, cols) = (a.rows, b.cols);
        let (a, b) = (self.matrix(a)?, self.matrix(b)?);
        self.fastest(Op::Spgemm, &a, |what| {
            let mut product = self.vendor.spgemm(what, &a, Some(&b))?;
            let mut seconds = product.run()?;
            // The first run allocates what a second one finds, which is little in a long run.
            if seconds < LONG {
                seconds = product.run()?;
            }
            let (offsets, mut indices, mut values) = product.result()?;
            check::sort_rows(&offsets, &mut indices, &mut values);
            let offsets = offsets.into_iter().map(i64::from).collect();
            Ok(Other { seconds, result: OwnedCsr { rows, cols, offsets, indices, values } })
        })
    }
}
