//! Plans: created → analyzed → executable. A plan copies the descriptors'
//! fields, chooses in analyze, and only executes afterwards.

pub mod cache;
mod checks;
pub mod decisions;
mod deterministic;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::backend::Backend;
use crate::context::Handle;
use crate::error::{Error, Result};
use crate::inside::{Access, Entry, Object};
use crate::matrix::check_align;
use crate::matrix::fingerprint::Fingerprint;
use crate::memory::in_flight::{InFlight, Pending};
use crate::memory::{Allocator, Block, Context, Workspace};
use crate::operation::{self, Analysis, Operation, Planned, Report, Task};
use crate::reorder::KeptOrder;
use crate::select::Choice;
use crate::settings::Settings;
use crate::types::{Address, Effort, Format, LogLevel, OpKind};

pub use cache::PlanCache;
use checks::Remembered;
pub use checks::{Descriptors, Reads};
pub use decisions::Decisions;
use decisions::Problem;

/// State behind the lock: execute reads, everything else writes.
pub struct Inner {
    settings: Settings,
    task: Box<dyn Task>,
    report: Report,
    analyzed: bool,
    /// What analysis has chosen.
    choice: Option<Choice>,
    /// What it is to choose.
    decided: Option<Decisions>,
    /// Of the patterns that analysis has read, where they may be gone now.
    fingerprints: Option<Vec<Fingerprint>>,
    /// What executes compare with, if checks were on in analysis.
    remembered: Option<Remembered>,
    /// Where the matrices came from.
    descriptors: Option<Descriptors>,
    /// Counts what the plan holds; made by analysis, with the memory limit.
    allocator: Option<Arc<Allocator>>,
    /// A call that found the plan before it was destroyed, and comes later,
    /// must not touch the user's arrays any more.
    destroyed: bool,
}

/// The state while this thread holds the plan's lock, of which [`Plan::read`] and [`Plan::write`] know by
/// the entry: a user's allocator may call the library with the same plan.
struct Locked<G> {
    guard: G,
    _entry: Entry,
}

impl<G: Deref> Deref for Locked<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Locked<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// The error of a setting after analysis.
const LATE_SETTING: &str = "settings cannot change after tarsiaPlan_analyze";

type Reading<'a> = Locked<RwLockReadGuard<'a, Inner>>;
type Writing<'a> = Locked<RwLockWriteGuard<'a, Inner>>;

/// A plan. It keeps its backend alive, not its handle.
pub struct Plan {
    backend: Arc<dyn Backend>,
    op: OpKind,
    inner: RwLock<Inner>,
    /// What uses its memory.
    in_flight: InFlight,
}

/// Plain facts for `tarsiaPlan_getInfo`.
#[derive(Clone, Debug)]
pub struct Info {
    /// Operation.
    pub op: OpKind,
    /// Whether analyze has succeeded.
    pub analyzed: bool,
    /// Settings.
    pub settings: Settings,
    /// What analysis found.
    pub report: Report,
    /// (rows, columns) of op(A) and stored entries of A.
    pub shape: (i64, i64, i64),
    /// Bytes that the plan holds.
    pub plan_bytes: usize,
    /// The most bytes that it held at one time.
    pub peak_bytes: usize,
    /// Bytes of workspace that execute needs (SpMM: at nHint columns).
    pub workspace_bytes: usize,
    /// SpGEMM: multiplications; else 0.
    pub products: i64,
    /// SpGEMM: stored entries of C after symbolic, else −1.
    pub nnz_c: i64,
    /// Whether executes can be checked.
    pub checked: bool,
}

impl Plan {
    /// A plan of a handle for an operation that the table of algorithms serves.
    pub fn new<O: Operation>(handle: &Handle, planned: Planned<O>) -> Self {
        handle.note_plan();
        let inner = Inner {
            settings: Settings::default(),
            task: Box::new(planned),
            report: Report::empty(),
            analyzed: false,
            choice: None,
            decided: None,
            fingerprints: None,
            remembered: None,
            descriptors: None,
            allocator: None,
            destroyed: false,
        };
        Plan {
            backend: handle.backend(),
            op: O::KIND,
            inner: RwLock::new(inner),
            in_flight: InFlight::default(),
        }
    }

    /// What it computes.
    pub fn kind(&self) -> OpKind {
        self.op
    }

    fn object(&self) -> Object {
        Object::Plan(std::ptr::from_ref(self).addr())
    }

    /// The state, for reading. An error where this thread is changing the plan.
    fn read(&self) -> Result<Reading<'_>> {
        let guard = match self.object().access() {
            None => self.inner.read(),
            // Another thread that waits for writing does not come between.
            Some(Access::Shared) => self.inner.read_recursive(),
            Some(Access::Exclusive) => return Err(inside("changes")),
        };
        Ok(Locked { guard, _entry: Entry::new(self.object(), Access::Shared) })
    }

    /// The state, for writing. An error where this thread is reading or changing the plan.
    fn write(&self) -> Result<Writing<'_>> {
        match self.object().access() {
            None => {}
            Some(Access::Shared) => return Err(inside("reads")),
            Some(Access::Exclusive) => return Err(inside("changes")),
        }
        let guard = self.inner.write();
        Ok(Locked { guard, _entry: Entry::new(self.object(), Access::Exclusive) })
    }

    /// The state, for a change that may only come before analysis; `late` is the error after it.
    fn write_early(&self, late: &str) -> Result<Writing<'_>> {
        let inner = self.write()?;
        inner.require_alive()?;
        match inner.analyzed {
            true => Err(Error::state(format!("plan: {late}"))),
            false => Ok(inner),
        }
    }

    /// Changes a setting; only before analysis.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) -> Result<()> {
        change(&mut self.write_early(LATE_SETTING)?.settings);
        Ok(())
    }

    /// Whether the caller may free the arrays of A (and B) after analysis; only before it.
    pub fn set_self_contained(&self, on: bool) -> Result<()> {
        self.write_early(LATE_SETTING)?.task.set_temporary(on);
        Ok(())
    }

    /// Chooses and builds; blocks. On failure the plan is as before.
    pub fn analyze(&self, handle: &Handle) -> Result<()> {
        self.check_handle(handle)?;
        self.backend.require_blocking(handle.stream(), "tarsiaPlan_analyze")?;
        let inner = self.write_early(
            "it is analyzed already; tarsiaPlan_updateValues brings new values, a new plan a new pattern",
        )?;
        let timed = match &inner.decided {
            Some(decided) => decided
                .choice
                .method
                .times_vendor()
                .then_some("its decisions have a vendor's algorithms timed"),
            None => (inner.settings.effort == Effort::Tuned).then_some("effort TUNED chooses by timing"),
        };
        if let Some(timed) = timed.filter(|_| handle.modes().deterministic) {
            return Err(Error::unsupported(format!(
                "plan: {timed}, which deterministic mode (tarsiaSetDeterministic) forbids"
            )));
        }
        if let Some(decided) = &inner.decided {
            decided.check_all(&*self.backend, &*inner.task, &inner.settings)?;
        }
        // Memory of the plan is from this handle's allocator, whichever the plan was created with.
        handle.note_plan();
        let mut unfinished = Unfinished { plan: self, lock: Some(inner) };
        let mut warnings = Vec::new();
        let report = match &mut unfinished.lock {
            Some(inner) => inner.analyze(&*self.backend, handle, &mut warnings),
            None => unreachable!("locked above"),
        };
        let warn = || warnings.into_iter().for_each(|text| handle.log(LogLevel::Warning, || text));
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                drop(unfinished);
                warn();
                return Err(error);
            }
        };
        // The user's logger may call the library, with this plan too.
        unfinished.lock = None;
        warn();
        handle.log(LogLevel::Info, || {
            let (op, seconds) = (self.kind().short(), report.analysis_seconds);
            format!("{op} analyzed in {seconds:.3e} s: {}", report.reason)
        });
        std::mem::forget(unfinished);
        Ok(())
    }

    /// The decisions of an analyzed plan, as bytes. Blocks.
    pub fn decisions(&self, handle: &Handle) -> Result<Vec<u8>> {
        self.check_handle(handle)?;
        let inner = self.read()?;
        inner.require_analyzed("tarsiaPlan_getDecisions")?;
        let choice = inner.choice.as_ref().ok_or_else(|| Error::state("plan: not analyzed"))?;
        let fingerprints = match &inner.fingerprints {
            Some(kept) => kept.clone(),
            None => inner.fingerprints(&*self.backend, handle, "tarsiaPlan_getDecisions")?,
        };
        let problem = Problem::new(&*self.backend, &*inner.task, &inner.settings, fingerprints);
        Decisions::new(problem, choice, inner.task.row_order(&handle.context())?).to_bytes()
    }

    /// Gives analysis the decisions of another plan of the same problem; no bytes take them back.
    /// Blocks. On failure the plan is as before.
    pub fn decide(&self, handle: &Handle, bytes: &[u8]) -> Result<()> {
        self.check_handle(handle)?;
        let mut inner = self.write_early("decisions come too late after tarsiaPlan_analyze")?;
        if bytes.is_empty() {
            inner.decided = None;
            return Ok(());
        }
        let decisions = Decisions::from_bytes(bytes)?;
        decisions.check_all(&*self.backend, &*inner.task, &inner.settings)?;
        decisions.check_patterns(&inner.fingerprints(
            &*self.backend,
            handle,
            "tarsiaPlan_setDecisions",
        )?)?;
        inner.decided = Some(decisions);
        Ok(())
    }

    /// Bytes of workspace that execute needs, for `n` columns where it matters.
    pub fn workspace_bytes(&self, n: i64) -> Result<usize> {
        let inner = self.read()?;
        inner.require_analyzed("tarsiaPlan_workspaceSize")?;
        Ok(inner.task.workspace_bytes(Some(n)))
    }

    /// Grows the handle's workspace to what execute needs at nHint columns.
    pub fn prepare(&self, handle: &Handle) -> Result<()> {
        self.check_handle(handle)?;
        let bytes = {
            let inner = self.read()?;
            inner.require_analyzed("tarsiaPlan_prepare")?;
            inner.task.workspace_bytes(None)
        };
        handle.grow_workspace(bytes)
    }

    /// Runs `f` with the operation and the handle's context, workspace locked. `name` is the function that is called;
    /// a plan of another operation than this function's is refused.
    pub(crate) fn execute<O: Operation>(
        &self,
        handle: &Handle,
        name: &str,
        f: impl FnOnce(&Planned<O>, &Context) -> Result<()>,
    ) -> Result<()> {
        self.check_handle(handle)?;
        let inner = self.read()?;
        inner.require_analyzed(name)?;
        if !inner.task.is_deterministic() && handle.modes().deterministic {
            return Err(deterministic::refused(inner.report.algorithm));
        }
        inner.check_unchanged(&*self.backend, handle, Reads::All)?;
        handle.with_workspace(|cx, enqueuing| {
            enqueuing.reading(&self.in_flight, &*self.backend)?;
            f(operation::planned(&*inner.task, name)?, cx)
        })
    }

    /// A plan that is used once: where the user's workspace is too small for it, with memory of its own. Blocks
    /// then.
    pub(crate) fn once<O: Operation>(
        handle: &Handle,
        name: &str,
        planned: Planned<O>,
        f: impl FnOnce(&Planned<O>, &Context) -> Result<()>,
    ) -> Result<()> {
        let plan = Plan::new(handle, planned);
        plan.set(|settings| settings.effort = Effort::Quick)?;
        plan.analyze(handle)?;
        let bytes = plan.read()?.task.workspace_bytes(None);
        if handle.workspace_bytes()? >= bytes {
            return plan.execute(handle, name, f);
        }
        let block = Block::new(&handle.context().allocator, bytes)?;
        let workspace = Workspace { address: block.address(), bytes };
        plan.execute(handle, name, |planned, cx| {
            let result = f(planned, &Context { workspace, ..cx.clone() });
            // What was enqueued uses the memory, whatever came of it.
            handle.backend().synchronize(cx.stream)?;
            result
        })
    }

    /// Runs `f` with the operation for writing; the context allocates for the plan.
    pub(crate) fn modify<O: Operation, R>(
        &self,
        handle: &Handle,
        name: &str,
        f: impl FnOnce(&mut Planned<O>, &Context) -> Result<R>,
    ) -> Result<R> {
        self.change(handle, name, |inner, cx| f(operation::planned_mut(&mut *inner.task, name)?, cx))
    }

    /// [`Self::modify`] that brings new values of A, of B, or of both, which checks compare with from then on. `given`:
    /// the arguments' names and addresses, which are NULL where a matrix keeps its values. `check` says which plans the
    /// function takes.
    pub(crate) fn renew(
        &self,
        handle: &Handle,
        name: &str,
        given: [(&str, Address); 2],
        check: impl FnOnce(&dyn Task) -> Result<()>,
        f: impl FnOnce(&mut dyn Task, &Context) -> Result<()>,
    ) -> Result<()> {
        self.change(handle, name, |inner, cx| {
            check(&*inner.task)?;
            self.require_usable(&*inner.task, given)?;
            // Other tiles, or other arrays, come in place of those that graphs read.
            let (task, value_updates) = (&mut *inner.task, inner.settings.value_updates);
            // What is captured from here on reads the new array.
            let captured = || self.backend.is_capturing(cx.stream);
            let moved = if !task.shared_memory().is_empty() {
                Some(("tiles that it has now", ""))
            } else if !captured()? && task.reads_other_values(given.map(|(_, values)| values)) {
                Some(("array of values that it reads now", ", or write the new values into that array"))
            } else if !value_updates && !task.keeps_arrays() {
                let instead = ", or analyze with tarsiaPlan_setValueUpdates(plan, 1)";
                Some(("arrays that it has now", instead))
            } else {
                None
            };
            if let Some((arrays, instead)) = moved.filter(|_| !self.in_flight.pending().graphs_are_gone_soon()) {
                return Err(Error::state(format!(
                    "plan: graphs that have captured calls with it are alive or still run, and would go on with the \
                     {arrays}: destroy them and wait for their last launch first{instead}"
                )));
            }
            f(task, cx)?;
            inner.remember_values(&*self.backend, handle, given.map(|(_, values)| values))
        })
    }

    /// New values must be aligned, and memory that the plan's backend can use, unless there are none.
    fn require_usable(&self, task: &dyn Task, given: [(&str, Address); 2]) -> Result<()> {
        for ((_, _, a), (name, values)) in task.factors().into_iter().zip(given) {
            check_align(name, values, a.value_type().align())?;
            if a.shape().2 > 0 {
                self.backend.require_reachable(name, "values", values)?;
            }
        }
        Ok(())
    }

    fn change<R>(
        &self,
        handle: &Handle,
        name: &str,
        f: impl FnOnce(&mut Inner, &Context) -> Result<R>,
    ) -> Result<R> {
        self.check_handle(handle)?;
        let mut inner = self.write()?;
        inner.require_analyzed(name)?;
        handle.enqueue(|mut cx, enqueuing| {
            if let Some(allocator) = &inner.allocator {
                cx.allocator = Arc::clone(allocator);
            }
            enqueuing.changing(&self.in_flight, &*self.backend, || f(&mut inner, &cx))
        })
    }

    /// New values of A for the same pattern.
    pub fn update_values(&self, handle: &Handle, values: Address) -> Result<()> {
        let given = [("newValues", values), ("newValues", Address::NULL)];
        let any = |_: &dyn Task| Ok(());
        self.renew(handle, "tarsiaPlan_updateValues", given, any, |task, cx| task.update_values(cx, values))
    }

    /// Facts about the plan.
    pub fn info(&self) -> Result<Info> {
        let inner = self.read()?;
        let (products, nnz_c) = inner.task.counts();
        Ok(Info {
            op: self.op,
            analyzed: inner.analyzed,
            settings: inner.settings,
            report: inner.report.with(inner.task.built()),
            shape: inner.task.shape(),
            plan_bytes: inner.allocator.as_ref().map_or(0, |a| a.live_bytes()),
            peak_bytes: inner.allocator.as_ref().map_or(0, |a| a.peak_bytes()),
            workspace_bytes: inner.task.workspace_bytes(None),
            products,
            nnz_c: nnz_c.unwrap_or(-1),
            checked: inner.remembered.as_ref().is_some_and(|remembered| !remembered.is_empty()),
        })
    }

    /// Waits until no other thread is inside a call with the plan, gives its memory back behind its work in
    /// flight, and turns away whoever comes later.
    pub fn destroy(&self) -> Result<()> {
        let mut inner = self.write()?;
        inner.require_alive()?;
        if inner.analyzed {
            self.backend.check_process()?;
        }
        inner.release_behind(self.in_flight.pending())?;
        inner.destroyed = true;
        inner.reset();
        Ok(())
    }

    fn check_handle(&self, handle: &Handle) -> Result<()> {
        let (mine, other) = (&self.backend, handle.backend());
        if mine.kind() == other.kind() && mine.device() == other.device() {
            return Ok(());
        }
        Err(Error::invalid(
            "handle",
            format!(
                "it is of {} device {}, the plan of {} device {}",
                other.kind().c_name(),
                other.device(),
                mine.kind().c_name(),
                mine.device()
            ),
        ))
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // A plan that nobody destroyed, of a call without one, whose work may be in flight. Memory of the
        // user's that graphs keep is lost.
        let inner = self.inner.get_mut();
        if inner.release_behind(self.in_flight.pending()).is_err() {
            inner.allocator.iter().for_each(|allocator| allocator.release_never());
        }
    }
}

/// `INVALID_STATE`: a callback's call would wait for the call that the callback is part of.
fn inside(does: &str) -> Error {
    Error::state(format!(
        "plan: this thread is in the midst of a call that {does} it, as a function of tarsiaSetAllocator is"
    ))
}

/// Takes an analysis back that has not come to its end: an error, or a panic
/// of the user's allocator or logger.
struct Unfinished<'a> {
    plan: &'a Plan,
    lock: Option<Writing<'a>>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // This thread has no lock of the plan, or this one, so that there is no error.
        if let Some(mut inner) = self.lock.take().or_else(|| self.plan.write().ok()) {
            inner.reset();
        }
    }
}

/// A plan's place in a plan cache.
struct Cached {
    cache: Arc<PlanCache>,
    /// With its key, or why it has none.
    problem: std::result::Result<(Problem, Fingerprint), String>,
    decisions: Option<Decisions>,
}

impl Cached {
    /// Looks for it. Never fails: analysis says what is wrong with a plan.
    fn find(
        inner: &Inner,
        backend: &dyn Backend,
        handle: &Handle,
        cache: Arc<PlanCache>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let of = |fingerprints| {
            let problem = Problem::new(backend, &*inner.task, &inner.settings, fingerprints);
            let mut more = vec![i64::from(handle.modes().deterministic)];
            more.extend(inner.task.rows().iter().map(|row| i64::from(row.algorithm.code())));
            let key = problem.key(&more);
            (problem, key)
        };
        let problem =
            inner.fingerprints(backend, handle, "tarsiaPlan_analyze").map(of).map_err(|error| error.message);
        let mut out = Cached { cache, problem, decisions: None };
        if let Ok((problem, key)) = &out.problem {
            let rows = inner.task.shape().0 as usize;
            let read = out.cache.read(*key, rows).map_err(|error| error.to_string());
            let checked = read.and_then(|bytes| match bytes {
                Some(bytes) => problem.admit(&bytes, backend, &*inner.task, &inner.settings).map(Some),
                None => Ok(None),
            });
            out.decisions = checked.unwrap_or_else(|text| {
                let file = out.cache.file(*key);
                warnings.push(format!("{} is not used: {text}", file.display()));
                None
            });
        }
        out
    }

    /// Keeps what was chosen instead.
    fn keep(self, choice: &Choice, order: Result<Option<KeptOrder>>) -> std::result::Result<(), String> {
        let (problem, key) = self.problem?;
        let bytes = order.and_then(|order| Decisions::new(problem, choice, order).to_bytes());
        self.cache
            .write(key, &bytes.map_err(|error| error.message)?)
            .map_err(|error| format!("{}: {error}", self.cache.file(key).display()))
    }
}

impl Inner {
    /// `warnings` are for the user's logger, which may call the library with this plan: it gets them when
    /// the plan is not locked any more.
    fn analyze(
        &mut self,
        backend: &dyn Backend,
        handle: &Handle,
        warnings: &mut Vec<String>,
    ) -> Result<Report> {
        let start = Instant::now();
        let mut cached = match (&self.decided, handle.modes().plan_cache) {
            (None, Some(cache)) => Some(Cached::find(self, backend, handle, cache, warnings)),
            _ => None,
        };
        let mut found = cached.as_mut().and_then(|cached| cached.decisions.take());
        if let Some(decisions) = &found {
            if let Err(error) = self.build(backend, handle, Some((&decisions.choice, "of the plan cache"))) {
                // Without them another layout may be chosen, which needs less memory.
                warnings.push(format!("what the plan cache has cannot be built: {error}"));
                self.reset();
                found = None;
            }
        }
        if found.is_none() {
            let given = self.decided.take();
            let built = self.build(
                backend,
                handle,
                given.as_ref().map(|decisions| (&decisions.choice, "that were given")),
            );
            if let Err(error) = built {
                // The plan may be analyzed again, with other settings.
                self.decided = given;
                return Err(error);
            }
            if let (Some(cached), Some(choice)) = (cached, &self.choice) {
                if let Err(text) = cached.keep(choice, self.task.row_order(&handle.context())) {
                    // One warning an analysis is enough; the plan's reason says this one in any case.
                    if warnings.is_empty() {
                        warnings.push(format!("the plan cache does not keep a plan: {text}"));
                    }
                    self.report.add(&format!("not in the plan cache: {text}"));
                }
            }
        }
        let factors = self.task.factors();
        let kept = factors.iter().any(|(_, _, a)| a.temporary)
            && factors.iter().all(|(_, _, a)| a.format() != Format::Tile);
        if kept {
            self.fingerprints = Some(self.fingerprints(backend, handle, "tarsiaPlan_analyze")?);
        }
        self.remember(backend, handle)?;
        self.report.analysis_seconds = start.elapsed().as_secs_f64();
        self.analyzed = true;
        Ok(self.report.with(self.task.built()))
    }

    /// Chooses, unless it was decided (and by whom), and builds.
    fn build(
        &mut self,
        backend: &dyn Backend,
        handle: &Handle,
        decided: Option<(&Choice, &str)>,
    ) -> Result<()> {
        let settings = Settings { deterministic: handle.modes().deterministic, ..self.settings };
        let mut cx = handle.context();
        cx.allocator = cx.allocator.scoped(settings.memory_limit);
        let analysis = Analysis { backend, cx: &cx, settings: &settings };
        let (choice, mut report) = self.task.analyze(&analysis, decided.map(|(choice, _)| choice))?;
        if let Some((_, whose)) = decided {
            report.reason.insert_str(0, &format!("by decisions {whose}: "));
        }
        handle.grow_own_workspace(self.task.workspace_bytes(None))?;
        self.report = report;
        self.allocator = Some(cx.allocator);
        // The executor has the order, if there is one.
        self.choice = Some(Choice { method: choice.method.without_order(), ..choice });
        Ok(())
    }

    /// What the plan gives back from here on is given back behind this work. On a failure it may not be
    /// given back.
    fn release_behind(&mut self, pending: Pending) -> Result<()> {
        let Some(allocator) = self.allocator.as_ref().filter(|_| self.analyzed && !self.destroyed) else {
            return Ok(());
        };
        // Tiles are others' memory, too, and go with the last that has them.
        let shared = self.task.shared_memory();
        shared.iter().for_each(|memory| memory.release_also_behind(&pending));
        let checked = shared.iter().try_for_each(|memory| memory.check_release(&pending));
        checked
            .and_then(|()| allocator.release_behind(pending))
            .map_err(|error| Error { message: format!("plan: {}", error.message), ..error })
    }

    /// Back to before analysis.
    fn reset(&mut self) {
        self.task.reset();
        (self.report, self.allocator, self.analyzed) = (Report::empty(), None, false);
        (self.choice, self.fingerprints, self.remembered) = (None, None, None);
    }

    /// Of the patterns of the sparse matrices that are given. Blocks.
    fn fingerprints(&self, backend: &dyn Backend, handle: &Handle, call: &str) -> Result<Vec<Fingerprint>> {
        backend.require_blocking(handle.stream(), call)?;
        let (cx, mut out) = (handle.context(), Vec::new());
        for (name, _, a) in self.task.factors() {
            if a.format() == Format::Tile {
                return Err(Error::unsupported(format!(
                    "plan: {name} is in tiles, of which nothing is decided"
                )));
            }
            out.push(backend.fingerprint(&cx, &a, name)?);
        }
        Ok(out)
    }

    fn require_alive(&self) -> Result<()> {
        if self.destroyed {
            return Err(Error::invalid("plan", "it is not a live plan"));
        }
        Ok(())
    }

    fn require_analyzed(&self, name: &str) -> Result<()> {
        self.require_alive()?;
        if self.analyzed {
            return Ok(());
        }
        Err(Error::state(format!("plan: {name} needs tarsiaPlan_analyze first")))
    }
}
