//! Sparse results of SpGEMM.

use std::collections::BTreeMap;

use client::{Plan, Session};
use tarsia::facade::{BackendKind, Element, Format, Index, IndexBase, Result};

use super::check::close;
use super::number::{Numbers, Value, Wide};
use super::pattern::{Ints, Widths};
use super::staged::{written, Scalars};
use super::{ensure, raw, Outcome};
use testkit::Sum;

/// Format, index types and base of C.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// CSR or CSC.
    pub format: Format,
    /// Widths of offsets and indices.
    pub widths: Widths,
    /// Index base.
    pub base: IndexBase,
}

/// Arrays of C.
#[derive(Clone, Debug)]
pub struct Output<Y> {
    /// Format, index types and base.
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
    /// Allocates arrays for `nnz` entries, filled with arbitrary numbers.
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
        let to = (self.target, (self.shape.0 as i64, self.shape.1 as i64));
        let values = &mut self.values;
        match (&mut self.offsets, &mut self.indices) {
            (Ints::I32(o), Ints::I32(i)) => numeric(session, plan, alpha, to, o, i, values)?,
            (Ints::I64(o), Ints::I32(i)) => numeric(session, plan, alpha, to, o, i, values)?,
            (Ints::I64(o), Ints::I64(i)) => numeric(session, plan, alpha, to, o, i, values)?,
            (Ints::I32(_), Ints::I64(_)) => return Err("32-bit offsets with 64-bit indices".into()),
        }
        Ok(())
    }

    /// Returns a copy with the indices of each row (CSC: column) sorted, and the number of rows that were
    /// not.
    pub fn in_order(&self) -> (Self, usize) {
        let base = i64::from(self.target.base.code());
        let offsets: Vec<usize> =
            self.offsets.to_vec().into_iter().map(|offset| (offset - base) as usize).collect();
        let (mut indices, mut values, mut turned) = (Vec::new(), Vec::new(), 0);
        for ends in offsets.windows(2) {
            let mut entries: Vec<_> =
                (ends[0]..ends[1]).map(|at| (self.indices.get(at), self.values[at])).collect();
            turned += usize::from(!entries.is_sorted_by_key(|entry| entry.0));
            entries.sort_by_key(|entry| entry.0);
            indices.extend(entries.iter().map(|entry| entry.0));
            values.extend(entries.iter().map(|entry| entry.1));
        }
        let indices = Ints::new(self.target.widths.index(), indices);
        (Output { indices, values, ..self.clone() }, turned)
    }

    /// Returns whether offsets and indices are the same, in the same order.
    pub fn same_pattern(&self, other: &Self) -> bool {
        self.offsets == other.offsets && self.indices == other.indices
    }

    /// Checks that the arrays have the same bits, except for the sign and payload of a NaN, which IEEE 754
    /// leaves open and in which kernels that sum in the same order differ.
    pub fn same_bits(&self, other: &Self) -> Outcome {
        ensure!(self.offsets == other.offsets, "offsets {:?} and {:?}", self.offsets, other.offsets);
        ensure!(self.indices == other.indices, "indices {:?} and {:?}", self.indices, other.indices);
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        ensure!(self.values.len() == other.values.len(), "{} and {}", self.values.len(), other.values.len());
        for (at, (a, b)) in self.values.iter().zip(&other.values).enumerate() {
            let (mine, theirs) = (a.widen().parts(), b.widen().parts());
            ensure!(
                same(mine[0], theirs[0]) && same(mine[1], theirs[1]),
                "the bits of the values differ: number {at} is {a:?} and {b:?}, {:x?} and {:x?}",
                mine.map(f64::to_bits),
                theirs.map(f64::to_bits)
            );
        }
        Ok(())
    }

    /// Checks that the pattern is that of `expected`, sorted and without duplicates, and that the values are
    /// close.
    pub fn verify<C: Numbers<Y = Y>>(
        &self,
        backend: BackendKind,
        expected: &BTreeMap<(usize, usize), Sum<C::Wide>>,
    ) -> Outcome {
        let by_columns = self.target.format == Format::Csc;
        // Sorted as in the arrays, by (outer, inner).
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

/// Calls `tarsiaSpGEMM_numeric` with copies of these arrays, which are copied back.
fn numeric<S: Element, I: Index, J: Index, Y: Value>(
    session: &Session,
    plan: &Plan<'_>,
    alpha: S,
    (target, shape): (Target, (i64, i64)),
    offsets: &mut Vec<I>,
    indices: &mut Vec<J>,
    values: &mut Vec<Y>,
) -> Result<()> {
    let scalars = Scalars::new(session, alpha, alpha)?;
    written(session, offsets, |o| {
        written(session, indices, |i| {
            written(session, values, |v| match (&scalars, target.format) {
                (_, Format::Csc) => {
                    let alpha = scalars.addresses()[0];
                    raw::numeric_csc(session, plan, alpha, shape, (o, i, v), target.base)
                }
                (Scalars::Host(alpha, _), _) => {
                    plan.numeric_csr(session, *alpha, shape, o, i, v, target.base)
                }
                (Scalars::Device(array), _) => {
                    plan.numeric_csr(session, array.part(0..1), shape, o, i, v, target.base)
                }
            })
        })
    })
}
