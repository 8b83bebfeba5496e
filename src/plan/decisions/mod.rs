//! Decisions of a plan: the result of an analysis in a form with which another plan of the same problem can
//! build the same executor without pattern statistics, cost model or timing, and without computing a row
//! order again ([`KeptOrder`] says which orders are stored). [`bytes`] is the storage format.

pub mod bytes;

use std::fmt::Display;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::operation::{PlanArguments, Task};
use crate::reorder::KeptOrder;
use crate::select::Choice;
use crate::settings::Settings;
use crate::types::{BackendKind, Effort, OpKind, Reorder};

/// A choice, with the problem and the library and device for which it was made.
#[derive(Clone, Debug)]
pub struct Decisions {
    problem: Problem,
    pub(super) choice: Choice,
}

/// Everything that decisions depend on.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    origin: Origin,
    op: OpKind,
    /// Arguments of createPlan, and settings, as numbers in the order of [`PlanArguments`].
    arguments: Vec<i64>,
    /// Fingerprints of the patterns of A and, for SpGEMM, B.
    fingerprints: Vec<Fingerprint>,
    fixed: Fixed,
}

/// Library and device that made the decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    version: [u32; 3],
    backend: BackendKind,
    model: String,
}

/// Settings that decisions store. All but the effort must be the same in a plan that uses the decisions.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    effort: Effort,
    reorder: Reorder,
    block_width: Option<usize>,
    value_updates: bool,
}

fn version() -> [u32; 3] {
    let part = |text: &str| text.parse().unwrap_or(0);
    [
        part(env!("CARGO_PKG_VERSION_MAJOR")),
        part(env!("CARGO_PKG_VERSION_MINOR")),
        part(env!("CARGO_PKG_VERSION_PATCH")),
    ]
}

impl Origin {
    fn of(backend: &dyn Backend) -> Self {
        Origin { version: version(), backend: backend.kind(), model: backend.model() }
    }
}

impl Fixed {
    fn of(settings: &Settings) -> Self {
        let &Settings { effort, reorder, block_width, value_updates, .. } = settings;
        Fixed { effort, reorder, block_width, value_updates }
    }
}

/// Returns the settings that are stored as arguments, after the arguments of createPlan.
fn of_settings(settings: &Settings) -> PlanArguments {
    vec![
        ("valuesInPlace".into(), i64::from(settings.values_in_place)),
        ("expectedExecutes".into(), settings.expected_executes),
        ("sortedOutput".into(), i64::from(settings.sorted_output)),
    ]
}

impl Problem {
    /// Creates the problem of a plan.
    pub(super) fn new(
        backend: &dyn Backend,
        task: &dyn Task,
        settings: &Settings,
        fingerprints: Vec<Fingerprint>,
    ) -> Self {
        Problem {
            origin: Origin::of(backend),
            op: task.kind(),
            arguments: task
                .arguments()
                .into_iter()
                .chain(of_settings(settings))
                .map(|(_, value)| value)
                .collect(),
            fingerprints,
            fixed: Fixed::of(settings),
        }
    }

    /// Parses decisions and checks that they are for exactly this problem; otherwise returns the reason.
    pub(super) fn admit(
        &self,
        bytes: &[u8],
        backend: &dyn Backend,
        task: &dyn Task,
        settings: &Settings,
    ) -> std::result::Result<Decisions, String> {
        let decisions = Decisions::from_bytes(bytes)
            .and_then(|found| found.check_all(backend, task, settings).map(|()| found))
            .and_then(|found| found.check_patterns(&self.fingerprints).map(|()| found))
            .map_err(|error| error.message)?;
        match decisions.problem.key(&[]) == self.key(&[]) {
            true => Ok(decisions),
            false => Err("it is of another problem".into()),
        }
    }
}

/// Returns `INVALID_VALUE` for decisions that are for another problem or another setting.
fn differs(kind: &str, what: &str, found: &dyn Display, mine: &dyn Display) -> Result<()> {
    Err(Error::invalid(
        "buffer",
        format!("its decisions are for another {kind}: {what} is {found} there and {mine} in the plan"),
    ))
}

impl Decisions {
    /// Creates the decisions of an analyzed plan, with the row order that it has computed.
    pub(super) fn new(problem: Problem, choice: &Choice, order: Option<KeptOrder>) -> Self {
        Decisions {
            problem,
            choice: Choice { method: choice.method.clone().with_order(order), ..choice.clone() },
        }
    }

    /// Checks that the decisions fit this plan, library and device, patterns aside. The effort may differ.
    pub(super) fn check_all(
        &self,
        backend: &dyn Backend,
        task: &dyn Task,
        settings: &Settings,
    ) -> Result<()> {
        self.check_origin(backend)?;
        self.check_problem(task, settings)?;
        self.check_settings(settings)
    }

    /// Checks that the decisions are from this library version, and from the same backend and device model.
    pub(super) fn check_origin(&self, backend: &dyn Backend) -> Result<()> {
        let texts = |Origin { version: [major, minor, patch], backend, model }: &Origin| {
            let version = format!("{major}.{minor}.{patch}");
            [("library version", version), ("backend", backend.c_name().into()), ("device", model.clone())]
        };
        let (mine, found) = (texts(&Origin::of(backend)), texts(&self.problem.origin));
        for ((what, mine), (_, found)) in mine.into_iter().zip(found) {
            if mine != found {
                return Err(Error::unsupported(format!(
                    "buffer: its decisions are of {what} {found}, this is {mine}"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the decisions are for this plan's problem, patterns aside.
    pub(super) fn check_problem(&self, task: &dyn Task, settings: &Settings) -> Result<()> {
        if self.problem.op != task.kind() {
            return differs("problem", "the operation", &self.problem.op.short(), &task.kind().short());
        }
        let arguments = task.arguments();
        for ((name, mine), found) in arguments.iter().zip(&self.problem.arguments) {
            if mine != found {
                return differs("problem", name, found, mine);
            }
        }
        let count = arguments.len() + of_settings(settings).len();
        if count != self.problem.arguments.len() {
            return differs("problem", "the number of arguments", &self.problem.arguments.len(), &count);
        }
        task.admits(&self.choice)
    }

    /// Checks that the plan has the settings that the decisions depend on.
    pub(super) fn check_settings(&self, settings: &Settings) -> Result<()> {
        let texts = |fixed: Fixed| {
            let width = fixed.block_width.map_or("not set".into(), |width| width.to_string());
            let value_updates = u8::from(fixed.value_updates).to_string();
            let reorder = fixed.reorder.c_name().to_string();
            [("valueUpdates", value_updates), ("reorder", reorder), ("colBlockDim", width)]
        };
        let (mine, found) = (texts(Fixed::of(settings)), texts(self.problem.fixed));
        for ((what, mine), (_, found)) in mine.iter().zip(&found) {
            if mine != found {
                return differs("setting", what, found, mine);
            }
        }
        let arguments = of_settings(settings);
        let first = self.problem.arguments.len().saturating_sub(arguments.len());
        for ((name, mine), found) in arguments.iter().zip(&self.problem.arguments[first..]) {
            if mine != found {
                return differs("setting", name, found, mine);
            }
        }
        Ok(())
    }

    /// Checks that the patterns have the fingerprints of the decisions.
    pub(super) fn check_patterns(&self, fingerprints: &[Fingerprint]) -> Result<()> {
        for (name, (mine, found)) in
            ["A", "B"].iter().zip(fingerprints.iter().zip(&self.problem.fingerprints))
        {
            if mine != found {
                return Err(Error::invalid(
                    "buffer",
                    format!("its decisions are for another problem: the pattern of {name} is another"),
                ));
            }
        }
        if fingerprints.len() != self.problem.fingerprints.len() {
            return Err(Error::invalid("buffer", "it is damaged: it has not one fingerprint a matrix"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
