//! What tarsiaSetChecks compares: fingerprints of the arrays that a plan was analyzed with, and those of
//! the same arrays when it is executed. It is for development: a program that changes values and does
//! not say so gets old results, new ones, or some of each, depending on the algorithm, without a word.

use super::{Inner, Plan};
use crate::backend::Backend;
use crate::context::Handle;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{no_arrays, Array, SparseMatrix};
use crate::memory::Context;
use crate::types::{Address, Format};

/// What an execute reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The patterns alone: the symbolic phase of SpGEMM.
    Patterns,
    /// Patterns and values.
    All,
}

/// What is known of a matrix's values.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// They are read in the user's array, whatever it has.
    InPlace,
    /// Those that the plan has.
    Known(Fingerprint),
    /// New ones came while checks were off.
    Unknown,
}

/// What is known of a matrix.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    name: &'static str,
    pattern: Fingerprint,
    values: Values,
    /// The value array that the descriptor had when the plan got new values.
    described: Option<Address>,
}

/// What a plan remembers of the matrices that were given; of those in tiles nothing, which the library owns,
/// nor of those that it has copied (tarsiaPlan_setSelfContained).
#[derive(Debug)]
pub(super) struct Remembered(Vec<Matrix>);

/// Descriptors that a plan was created from: a number for each matrix, and what finds the descriptor by it.
#[derive(Clone, Copy)]
pub struct Descriptors {
    /// The descriptor as it is now, if it is still there.
    pub find: fn(usize) -> Option<SparseMatrix>,
    /// For A and, of SpGEMM, B.
    pub of: [usize; 2],
}

/// The index arrays of a matrix; `None` in tiles.
fn index_arrays(a: &SparseMatrix) -> Option<[Array; 2]> {
    a.user_arrays().map(|[first, second, _]| [first, second])
}

/// The same index arrays at the same addresses.
fn is_same_pattern(a: &SparseMatrix, b: &SparseMatrix) -> bool {
    a.format() == b.format() && index_arrays(a).is_some_and(|arrays| Some(arrays) == index_arrays(b))
}

/// The call that brings new values of a matrix.
fn update_of(name: &str) -> &'static str {
    match name {
        "A" => "tarsiaPlan_updateValues",
        _ => "tarsiaSpGEMM_updateValues",
    }
}

impl Remembered {
    /// Of a plan's matrices as they are now. Blocks.
    fn new(backend: &dyn Backend, cx: &Context, inner: &Inner) -> Result<Self> {
        let mut out = Vec::new();
        for (name, _, a) in inner.task.factors() {
            // Arrays that may be gone have nothing to do with the plan any more.
            if a.format() == Format::Tile || a.temporary {
                continue;
            }
            let values = match inner.settings.values_in_place {
                true => Values::InPlace,
                false => Values::Known(backend.fingerprint_values(cx, &a, name)?),
            };
            out.push(Matrix { name, pattern: backend.fingerprint(cx, &a, name)?, values, described: None });
        }
        Ok(Remembered(out))
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An error unless the arrays are as they were. Blocks.
    fn compare(&self, backend: &dyn Backend, cx: &Context, inner: &Inner, reads: Reads) -> Result<()> {
        for (at, (name, _, a)) in inner.task.factors().into_iter().enumerate() {
            let Some(known) = self.0.iter().find(|known| known.name == name) else { continue };
            if backend.fingerprint(cx, &a, name)? != known.pattern {
                let [first, second] =
                    index_arrays(&a).ok_or_else(|| no_arrays(name))?.map(|array| array.name);
                return Err(Error::state(format!(
                    "plan: the index arrays ({first} or {second}) of {name} have changed since tarsiaPlan_analyze: \
                     a new pattern needs a new plan"
                )));
            }
            if reads == Reads::Patterns {
                continue;
            }
            let update = update_of(name);
            let others = |present: &Address| ![known.described, Some(a.values())].contains(&Some(*present));
            if inner.value_array(at, &a).filter(others).is_some() {
                return Err(Error::state(format!(
                    "plan: the descriptor of {name} has got another value array, which does not reach the plan: \
                     {update} moves it there"
                )));
            }
            match known.values {
                Values::InPlace => {}
                Values::Unknown => {
                    return Err(Error::state(format!(
                        "plan: the values of {name} cannot be checked: they were updated while checks \
                         (tarsiaSetChecks) were off; {update} with checks on brings them again"
                    )))
                }
                Values::Known(values) if backend.fingerprint_values(cx, &a, name)? != values => {
                    return Err(Error::state(format!(
                        "plan: the values of {name} have changed since the plan took them: {update} brings new \
                         ones, tarsiaPlan_setValuesInPlace makes plans that read them where they are"
                    )))
                }
                Values::Known(_) => {}
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Remembers what the plan was analyzed with, if the handle's checks are on. Blocks then.
    pub(super) fn remember(&mut self, backend: &dyn Backend, handle: &Handle) -> Result<()> {
        self.remembered = match handle.checks() {
            true => Some(Remembered::new(backend, &handle.context(), self)?),
            false => None,
        };
        Ok(())
    }

    /// New values of A and B came; NULL where a matrix keeps the present ones, or has no entries. Blocks if the
    /// handle's checks are on.
    pub(super) fn remember_values(
        &mut self,
        backend: &dyn Backend,
        handle: &Handle,
        given: [Address; 2],
    ) -> Result<()> {
        let Some(mut remembered) = self.remembered.take() else { return Ok(()) };
        let (cx, mut result) = (handle.context(), Ok(()));
        let factors = self.task.factors();
        let renewed =
            |(at, (_, _, a)): &(usize, &(_, _, SparseMatrix))| !given[*at].is_null() || a.shape().2 == 0;
        for (at, (name, _, a)) in factors.iter().enumerate().filter(renewed) {
            let Some(known) = remembered.0.iter_mut().find(|known| known.name == *name) else { continue };
            known.described = self.value_array(at, a);
            known.values = match (known.values, handle.checks()) {
                (Values::InPlace, _) => Values::InPlace,
                (_, true) => backend.fingerprint_values(&cx, a, name).map_or_else(
                    |error| {
                        result = Err(error);
                        Values::Unknown
                    },
                    Values::Known,
                ),
                (_, false) => Values::Unknown,
            };
        }
        self.remembered = Some(remembered);
        result
    }

    /// The arrays are as they were when the plan was analyzed, or the handle's checks are off. Blocks if
    /// they are on.
    pub(super) fn check_unchanged(&self, backend: &dyn Backend, handle: &Handle, reads: Reads) -> Result<()> {
        if !handle.checks() {
            return Ok(());
        }
        match &self.remembered {
            Some(remembered) => remembered.compare(backend, &handle.context(), self, reads),
            None => Err(Error::state(
                "plan: it cannot be checked (tarsiaSetChecks): checks were off when it was analyzed; switch them on \
                 before tarsiaPlan_analyze",
            )),
        }
    }

    /// The value array that the descriptor of a matrix has now, if it is there and has the matrix's pattern.
    fn value_array(&self, at: usize, a: &SparseMatrix) -> Option<Address> {
        let present = self.descriptors.and_then(|known| (known.find)(known.of[at]));
        present.filter(|present| is_same_pattern(present, a)).map(|present| present.values())
    }
}

impl Plan {
    /// The same plan, which checks look for the descriptors of.
    pub fn watching(self, descriptors: Descriptors) -> Self {
        self.inner.write().descriptors = Some(descriptors);
        self
    }

    /// [`Inner::check_unchanged`] of an analyzed plan.
    pub(crate) fn check_unchanged(&self, handle: &Handle, name: &str, reads: Reads) -> Result<()> {
        if !handle.checks() {
            return Ok(());
        }
        self.check_handle(handle)?;
        let inner = self.read()?;
        inner.require_analyzed(name)?;
        inner.check_unchanged(&*self.backend, handle, reads)
    }
}
