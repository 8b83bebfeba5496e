//! The sparse result of a SpGEMM.

use std::collections::BTreeMap;
use std::ffi::c_void;

use tarsia::capi::client::{Plan, Session};
use tarsia::types::{BackendKind, Element, Format, IndexBase, IndexType};

use super::check::close;
use super::naive::Sum;
use super::number::{bits, Numbers, Value};
use super::pattern::{Ints, Widths};
use super::{ensure, raw, Outcome};

impl Ints {
    /// Their type.
    pub fn width(&self) -> IndexType {
        match self {
            Ints::I32(_) => IndexType::I32,
            Ints::I64(_) => IndexType::I64,
        }
    }

    /// Where they are.
    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Ints::I32(numbers) => numbers.as_mut_ptr().cast(),
            Ints::I64(numbers) => numbers.as_mut_ptr().cast(),
        }
    }
}

/// How C is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// CSR or CSC.
    pub format: Format,
    /// Widths of offsets and indices.
    pub widths: Widths,
    /// Index base.
    pub base: IndexBase,
}

/// C's arrays.
#[derive(Clone, Debug)]
pub struct Output<Y> {
    /// How they are stored.
    pub target: Target,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Offsets.
    pub offsets: Ints,
    /// Indices.
    pub indices: Ints,
    /// Values.
    pub values: Vec<Y>,
}

impl<Y: Value> Output<Y> {
    /// Room for `nnz` entries, full of rubbish.
    pub fn new(target: Target, shape: (usize, usize), nnz: usize) -> Self {
        let outer = if target.format == Format::Csr { shape.0 } else { shape.1 };
        let rubbish = |width, len| Ints::new(width, std::iter::repeat_n(-77, len));
        Output {
            target,
            shape,
            offsets: rubbish(target.widths.offset(), outer + 1),
            indices: rubbish(target.widths.index(), nnz),
            values: vec![Y::nan(); nnz],
        }
    }

    /// Calls the numeric phase.
    pub fn compute<S: Element>(&mut self, session: &Session, plan: &Plan<'_>, alpha: S) -> Outcome {
        let (shape, base) = ((self.shape.0 as i64, self.shape.1 as i64), self.target.base);
        if self.target.format == Format::Csc {
            return Ok(raw::numeric_csc(session, plan, alpha, shape, self, base)?);
        }
        let values = &mut self.values[..];
        let result = match (&mut self.offsets, &mut self.indices) {
            (Ints::I32(o), Ints::I32(i)) => plan.numeric_csr(session, alpha, shape, o, i, values, base),
            (Ints::I64(o), Ints::I32(i)) => plan.numeric_csr(session, alpha, shape, o, i, values, base),
            (Ints::I64(o), Ints::I64(i)) => plan.numeric_csr(session, alpha, shape, o, i, values, base),
            (Ints::I32(_), Ints::I64(_)) => return Err("32-bit offsets with 64-bit indices".into()),
        };
        Ok(result?)
    }

    /// The arrays have the same bits.
    pub fn same_bits(&self, other: &Self) -> Outcome {
        ensure!(self.offsets == other.offsets, "offsets {:?} and {:?}", self.offsets, other.offsets);
        ensure!(self.indices == other.indices, "indices {:?} and {:?}", self.indices, other.indices);
        ensure!(
            bits(&self.values) == bits(&other.values),
            "the bits of the values differ: {:?} and {:?}",
            self.values,
            other.values
        );
        Ok(())
    }

    /// The structure is that of `expected`, sorted and without duplicates, and
    /// the values are close.
    pub fn verify<C: Numbers<Y = Y>>(
        &self,
        backend: BackendKind,
        expected: &BTreeMap<(usize, usize), Sum<C::Wide>>,
    ) -> Outcome {
        let by_columns = self.target.format == Format::Csc;
        // In the order of the arrays: by (outer, inner).
        let mut ordered: Vec<_> = expected
            .iter()
            .map(|(&(row, col), sum)| (if by_columns { (col, row) } else { (row, col) }, sum))
            .collect();
        ordered.sort_by_key(|&(place, _)| place);

        let base = i64::from(self.target.base.code());
        let mut offsets = vec![base; self.offsets.len()];
        for &((outer, _), _) in &ordered {
            offsets[outer + 1] += 1;
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1] - base;
        }
        let found = self.offsets.to_vec();
        ensure!(found == offsets, "offsets {found:?}, expected {offsets:?}");
        let indices: Vec<_> = ordered.iter().map(|&((_, inner), _)| inner as i64 + base).collect();
        let found = self.indices.to_vec();
        ensure!(found == indices, "indices {found:?}, expected {indices:?}");
        for (&value, (place, sum)) in self.values.iter().zip(&ordered) {
            close::<C>(backend, value, sum).map_err(|error| format!("C at {place:?}: {error}"))?;
        }
        Ok(())
    }
}
