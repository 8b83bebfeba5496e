//! The library's SpGEMM in the form in which vendors' products are run: a whole product each time, or the
//! numeric phase again.

use std::time::Instant;

use client::{Array, Plan};
use tarsia::facade::{Accumulator, Index, IndexBase};

use super::{Alg, Factors, MatrixOperand, Setting};
use crate::bench::number::{blank, Number};
use crate::bench::vendor::SparseProduct;
use crate::Result;

/// A product C = A·B in arrays that are kept from one run to the next.
struct TarsiaProduct<'a, 's, T: Number, I: Index> {
    setting: &'a Setting<'s>,
    factors: Factors<'a, 'a, T>,
    alg: Alg<'a>,
    /// Rows and columns of C.
    shape: (usize, usize),
    nnz: usize,
    offsets: Array<'s, I>,
    indices: Array<'s, i32>,
    values: Array<'s, T>,
    /// Plan that keeps the pattern, once [`SparseProduct::again`] was called.
    kept: Option<Plan<'a>>,
}

impl<'s> Setting<'s> {
    /// Makes the library's product of A and itself, or of A and B, with room for C.
    pub fn sparse_product<'a, T: Number>(
        &'a self,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
        alg: Alg<'a>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        let factors = (a, b.unwrap_or(a));
        let nnz = self.sparse_phases::<T>(factors, alg)?.nnz;
        // Offsets are as narrow as C allows, as in the row of the table.
        if i32::try_from(nnz).is_ok() {
            Ok(Box::new(TarsiaProduct::<T, i32>::new(self, factors, alg, nnz)?))
        } else {
            Ok(Box::new(TarsiaProduct::<T, i64>::new(self, factors, alg, nnz)?))
        }
    }
}

impl<'a, 's, T: Number, I: Index> TarsiaProduct<'a, 's, T, I> {
    /// Allocates C; nothing is computed yet.
    fn new(setting: &'a Setting<'s>, factors: Factors<'a, 'a, T>, alg: Alg<'a>, nnz: usize) -> Result<Self> {
        let (session, shape) = (setting.session, (factors.0.host.rows, factors.1.host.cols));
        Ok(TarsiaProduct {
            setting,
            factors,
            alg,
            shape,
            nnz,
            offsets: session.upload(&vec![I::from_i64(0); shape.0 + 1])?,
            indices: session.upload(&vec![0; nnz])?,
            values: session.upload(&blank::<T>(nnz)?)?,
            kept: None,
        })
    }

    /// Runs a numeric phase and waits for it.
    fn numeric(&mut self, plan: &Plan<'_>) -> Result<()> {
        let (session, shape) = (self.setting.session, (self.shape.0 as i64, self.shape.1 as i64));
        let arrays = (&mut self.offsets, &mut self.indices, &mut self.values);
        plan.numeric_csr(session, T::Sum::ONE, shape, arrays.0, arrays.1, arrays.2, IndexBase::Zero)?;
        Ok(session.synchronize()?)
    }
}

impl<T: Number, I: Index> SparseProduct<T> for TarsiaProduct<'_, '_, T, I> {
    fn run(&mut self) -> Result<f64> {
        // A whole product must not have the memory of this plan beside its own.
        self.kept = None;
        self.setting.session.synchronize()?;
        let phases = self.setting.sparse_phases(self.factors, self.alg)?;
        if phases.nnz != self.nnz {
            return Err(format!("C had {} entries and now has {}", self.nnz, phases.nnz).into());
        }
        let start = Instant::now();
        self.numeric(&phases.plan)?;
        Ok(phases.until_symbolic + start.elapsed().as_secs_f64())
    }

    fn again(&mut self) -> Result<Option<f64>> {
        let plan = match self.kept.take() {
            Some(plan) => plan,
            None => {
                let plan = self.setting.keeping(self.factors, self.alg)?;
                // The first numeric phase finds the pattern, so it does not count as one with new values.
                self.numeric(&plan)?;
                plan
            }
        };
        let start = Instant::now();
        self.setting.update(&plan, self.factors)?;
        self.numeric(&plan)?;
        let seconds = start.elapsed().as_secs_f64();
        self.kept = Some(plan);
        Ok(Some(seconds))
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let offsets = self.offsets.download()?.into_iter().map(|offset| i32::try_from(offset.to_i64()));
        let offsets = offsets.collect::<std::result::Result<_, _>>();
        let offsets = offsets.map_err(|_| "more than 2^31 - 1 entries")?;
        Ok((offsets, self.indices.download()?, self.values.download()?))
    }

    /// Returns -1: the peak is not known here, the row of the table has it.
    fn peak_bytes(&self) -> f64 {
        -1.0
    }

    fn note(&self) -> String {
        String::new()
    }
}
