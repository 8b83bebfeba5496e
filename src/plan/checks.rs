//! Checks for development (tarsiaSetChecks): a plan keeps fingerprints of the arrays with which it was
//! analyzed and compares them with those of the same arrays at every execute. Without checks a program that
//! changes values without telling the plan silently gets old results, new ones, or a mixture, depending on
//! the algorithm.

use super::{Inner, Plan};
use crate::backend::Backend;
use crate::context::Handle;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{no_arrays, Array, SparseMatrix};
use crate::memory::Context;
use crate::types::{Address, Format};

/// Arrays that an execute reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Patterns alone: the symbolic phase of SpGEMM.
    Patterns,
    /// Patterns and values.
    All,
}

/// The known state of a matrix's values.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// Values are read in the user's array, so any content is right.
    InPlace,
    /// Fingerprint of the values that the plan has taken.
    Known(Fingerprint),
    /// New values came while checks were off.
    Unknown,
}

/// The known state of a matrix.
#[derive(Clone, Copy, Debug)]
struct MatrixState {
    name: &'static str,
    pattern: Fingerprint,
    values: Values,
    /// Value array that the descriptor had when the plan took new values.
    described: Option<Address>,
}

/// State of the sparse operands for later checks. It omits matrices in tiles, which the library owns, and
/// those that the plan has copied (tarsiaPlan_setSelfContained).
#[derive(Debug)]
pub(super) struct Remembered(Vec<MatrixState>);

/// Descriptors from which a plan was created: a number for each matrix, and a function that looks the
/// descriptor up by it.
#[derive(Clone, Copy)]
pub struct Descriptors {
    /// Returns the present descriptor, if it still exists.
    pub find: fn(usize) -> Option<SparseMatrix>,
    /// Numbers of the descriptors of A and, for SpGEMM, B.
    pub of: [usize; 2],
}

/// Returns the index arrays of a matrix; `None` if it is in tiles.
fn index_arrays(a: &SparseMatrix) -> Option<[Array; 2]> {
    a.user_arrays().map(|[first, second, _]| [first, second])
}

/// Returns whether two matrices have the same index arrays at the same addresses.
fn is_same_pattern(a: &SparseMatrix, b: &SparseMatrix) -> bool {
    a.format() == b.format() && index_arrays(a).is_some_and(|arrays| Some(arrays) == index_arrays(b))
}

/// Returns the name of the C function that sets new values of a matrix.
fn update_of(name: &str) -> &'static str {
    match name {
        "A" => "tarsiaPlan_updateValues",
        _ => "tarsiaSpGEMM_updateValues",
    }
}

impl Remembered {
    /// Records the present state of a plan's matrices. Blocks.
    fn new(backend: &dyn Backend, cx: &Context, inner: &Inner) -> Result<Self> {
        let mut out = Vec::new();
        for (name, _, a) in inner.task.factors() {
            // The plan does not read arrays that may have been freed.
            if a.format() == Format::Tile || a.temporary {
                continue;
            }
            let values = match inner.settings.values_in_place {
                true => Values::InPlace,
                false => Values::Known(backend.fingerprint_values(cx, &a, name)?),
            };
            out.push(MatrixState {
                name,
                pattern: backend.fingerprint(cx, &a, name)?,
                values,
                described: None,
            });
        }
        Ok(Remembered(out))
    }

    /// Returns whether no matrix is recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns an error unless the arrays are unchanged. Blocks.
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
    /// Records the state of the matrices after analysis, if the handle's checks are on. Blocks in that case.
    pub(super) fn remember(&mut self, backend: &dyn Backend, handle: &Handle) -> Result<()> {
        self.remembered = match handle.checks() {
            true => Some(Remembered::new(backend, &handle.context(), self)?),
            false => None,
        };
        Ok(())
    }

    /// Records new values of A and B; NULL if a matrix keeps the present ones or has no entries. Blocks if
    /// the handle's checks are on.
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

    /// Returns an error if the arrays have changed since analysis and the handle's checks are on. Blocks if
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

    /// Returns the value array that a matrix's descriptor has now, if it still exists and has the matrix's
    /// pattern.
    fn value_array(&self, at: usize, a: &SparseMatrix) -> Option<Address> {
        let present = self.descriptors.and_then(|known| (known.find)(known.of[at]));
        present.filter(|present| is_same_pattern(present, a)).map(|present| present.values())
    }
}

impl Plan {
    /// Sets the descriptors that checks look up.
    pub fn watching(self, descriptors: Descriptors) -> Self {
        self.inner.write().descriptors = Some(descriptors);
        self
    }

    /// Calls [`Inner::check_unchanged`] for a plan, which must be analyzed.
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
