//! Plans: created → analyzed → executable. A plan copies the descriptors' fields when it is created, makes
//! all choices in analyze, and only executes afterwards.

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
use crate::error::{refuse_if, require, Error, Result};
use crate::matrix::check_align;
use crate::matrix::fingerprint::Fingerprint;
use crate::memory::in_flight::{InFlight, Pending};
use crate::memory::{Allocator, Block, Context, RawMemory, Workspace};
use crate::operation::{self, Analysis, Operation, Planned, Report, Task};
use crate::reentrancy::{Access, Object, Use};
use crate::reorder::KeptOrder;
use crate::select::{self, Choice};
use crate::settings::Settings;
use crate::types::{Address, Effort, Format, LogLevel, OpKind};

pub use cache::PlanCache;
use checks::Remembered;
pub use checks::{Descriptors, Reads};
pub use decisions::Decisions;
use decisions::Problem;

/// State of a plan behind its lock, which execute takes for reading, and calls that change the plan for
/// writing.
pub struct Inner {
    settings: Settings,
    task: Box<dyn Task>,
    report: Report,
    analyzed: bool,
    /// Choice that analysis has made.
    choice: Option<Choice>,
    /// Decisions that the user gave for the coming analysis.
    decided: Option<Decisions>,
    /// Fingerprints of the patterns that analysis has read, if the user may have freed the arrays since.
    fingerprints: Option<Vec<Fingerprint>>,
    /// Fingerprints with which executes compare the arrays, if checks were on during analysis.
    remembered: Option<Remembered>,
    /// Descriptors from which the matrices were copied.
    descriptors: Option<Descriptors>,
    /// Allocator that counts the plan's memory; analysis creates it with the memory limit.
    allocator: Option<Arc<Allocator>>,
    /// Source of the plan's memory, if it is not that of the handle.
    memory: Option<Arc<dyn RawMemory>>,
    /// True after destroy: a call that looked the plan up earlier and gets the lock later must not touch the
    /// user's arrays.
    destroyed: bool,
}

/// Guard of the plan's lock, with the record that this thread uses the plan. By the record [`Plan::read`] and
/// [`Plan::write`] of a nested call know it, since a user's allocator may call the library with the same plan.
struct Locked<G> {
    guard: G,
    _use: Use,
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

/// Error message for a setting that comes after analysis.
const LATE_SETTING: &str = "settings cannot change after tarsiaPlan_analyze";

type Reading<'a> = Locked<RwLockReadGuard<'a, Inner>>;
type Writing<'a> = Locked<RwLockWriteGuard<'a, Inner>>;

/// A plan. It keeps its backend alive, not its handle.
pub struct Plan {
    backend: Arc<dyn Backend>,
    op: OpKind,
    inner: RwLock<Inner>,
    /// Work that uses the plan's memory.
    in_flight: InFlight,
}

/// Properties of a plan for `tarsiaPlan_getInfo`.
#[derive(Clone, Debug)]
pub struct Info {
    /// Operation.
    pub op: OpKind,
    /// True if analyze has succeeded.
    pub analyzed: bool,
    /// Settings.
    pub settings: Settings,
    /// Result of analysis.
    pub report: Report,
    /// (rows, columns) of op(A) and stored entries of A.
    pub shape: (i64, i64, i64),
    /// Bytes that the plan holds now.
    pub plan_bytes: usize,
    /// Maximum of the bytes that the plan held at one time.
    pub peak_bytes: usize,
    /// Bytes of workspace that execute needs (SpMM: for nHint columns).
    pub workspace_bytes: usize,
    /// Multiplications of one SpGEMM; 0 for other operations.
    pub products: i64,
    /// Stored entries of C after SpGEMM's symbolic phase, otherwise −1.
    pub nnz_c: i64,
    /// True if checks can be done in executes.
    pub checked: bool,
}

impl Plan {
    /// Creates a plan for an operation that was found in the table of algorithms.
    pub fn new<O: Operation>(handle: &Handle, planned: Planned<O>) -> Self {
        handle.fix_allocator();
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
            memory: None,
            destroyed: false,
        };
        Plan {
            backend: handle.backend(),
            op: O::KIND,
            inner: RwLock::new(inner),
            in_flight: InFlight::default(),
        }
    }

    /// Returns the plan's operation.
    pub fn kind(&self) -> OpKind {
        self.op
    }

    #[inline]
    fn object(&self) -> Object {
        Object::Plan(std::ptr::from_ref(self).addr())
    }

    /// Locks the state for reading; an error if this thread is in a call that changes the plan.
    #[inline(always)]
    fn read(&self) -> Result<Reading<'_>> {
        let (earlier, this_use) = Use::begin_with_earlier(self.object(), Access::Shared);
        let guard = match earlier {
            None => self.inner.read(),
            // A recursive lock does not wait behind another thread that waits for writing.
            Some(Access::Shared) => self.inner.read_recursive(),
            Some(Access::Exclusive) => return Err(inside("changes")),
        };
        Ok(Locked { guard, _use: this_use })
    }

    /// Locks the state for writing; an error if this thread is in a call that reads or changes the plan.
    fn write(&self) -> Result<Writing<'_>> {
        match self.object().access() {
            None => {}
            Some(Access::Shared) => return Err(inside("reads")),
            Some(Access::Exclusive) => return Err(inside("changes")),
        }
        let guard = self.inner.write();
        Ok(Locked { guard, _use: Use::begin(self.object(), Access::Exclusive) })
    }

    /// Locks the state for a change that is allowed only before analysis; `late` is the error message after
    /// it.
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

    /// Sets the source of the memory that analysis and later calls allocate; only before analysis.
    pub(crate) fn set_memory(&self, memory: Arc<dyn RawMemory>) -> Result<()> {
        self.write_early(LATE_SETTING)?.memory = Some(memory);
        Ok(())
    }

    /// Sets whether the user may free the arrays of A (and B) after analysis; allowed only before it.
    pub fn set_self_contained(&self, on: bool) -> Result<()> {
        self.write_early(LATE_SETTING)?.task.set_temporary(on);
        Ok(())
    }

    /// Chooses an algorithm and builds the executor; blocks. After a failure the plan is as before.
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
        // The plan's memory is from this handle's allocator, even if the plan was created with another
        // handle.
        handle.fix_allocator();
        let mut unfinished = Unfinished { plan: self, lock: Some(inner) };
        let mut warnings = Vec::new();
        let report = match &mut unfinished.lock {
            Some(inner) => self
                .backend
                .begin_call()
                .and_then(|_call| inner.analyze(&*self.backend, handle, &mut warnings)),
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
        // The lock is released before logging: the user's logger may call the library, also with this plan.
        unfinished.lock = None;
        warn();
        handle.log(LogLevel::Info, || {
            let (op, time) = (self.kind().short(), select::duration(report.analysis_seconds));
            format!("{op} analyzed in {time}: {}", report.reason)
        });
        std::mem::forget(unfinished);
        Ok(())
    }

    /// Returns the decisions of an analyzed plan as bytes. Blocks.
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

    /// Sets the decisions of another plan for the same problem, which analysis will follow; empty `bytes`
    /// remove them. Blocks. After a failure the plan is as before.
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

    /// Returns the bytes of workspace that execute needs, for `n` columns if they matter.
    pub fn workspace_bytes(&self, n: i64) -> Result<usize> {
        let inner = self.read()?;
        inner.require_analyzed("tarsiaPlan_workspaceSize")?;
        Ok(inner.task.workspace_bytes(Some(n)))
    }

    /// Grows the handle's workspace to the size that execute needs for nHint columns.
    pub fn prepare(&self, handle: &Handle) -> Result<()> {
        self.check_handle(handle)?;
        let bytes = {
            let inner = self.read()?;
            inner.require_analyzed("tarsiaPlan_prepare")?;
            inner.task.workspace_bytes(None)
        };
        handle.grow_workspace(bytes)
    }

    /// Runs `f` with the operation and the handle's context, with its workspace locked. `name` is the C
    /// function; it is an error if the plan is of another operation than that function's.
    #[inline]
    pub(crate) fn execute<O: Operation>(
        &self,
        handle: &Handle,
        name: &str,
        f: impl FnOnce(&Planned<O>, &Context) -> Result<()>,
    ) -> Result<()> {
        let mut f = Some(f);
        self.execute_task(handle, name, &mut |task, cx| match f.take() {
            Some(f) => f(operation::planned(task, name)?, cx),
            None => unreachable!("a product is executed once"),
        })
    }

    /// The part of [`Self::execute`] that does not depend on the operation, compiled once for all.
    fn execute_task(
        &self,
        handle: &Handle,
        name: &str,
        f: &mut dyn FnMut(&dyn Task, &Context) -> Result<()>,
    ) -> Result<()> {
        self.check_handle(handle)?;
        let inner = self.read()?;
        inner.require_analyzed(name)?;
        if handle.is_deterministic() && !inner.task.is_deterministic() {
            return Err(deterministic::refused(inner.report.algorithm));
        }
        if handle.checks() {
            inner.check_unchanged(&*self.backend, handle, Reads::All)?;
        }
        handle.with_workspace(|cx, enqueuing| {
            enqueuing.reading(&self.in_flight, &*self.backend)?;
            f(&*inner.task, cx)
        })
    }

    /// Executes a plan that is used once. If the user's workspace is too small for it, it allocates memory of
    /// its own and blocks.
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
            // Enqueued work may use the memory even if `f` failed.
            handle.backend().synchronize(cx.stream)?;
            result
        })
    }

    /// Runs `f` with the operation for writing; the context's allocator is the plan's.
    pub(crate) fn modify<O: Operation, R>(
        &self,
        handle: &Handle,
        name: &str,
        f: impl FnOnce(&mut Planned<O>, &Context) -> Result<R>,
    ) -> Result<R> {
        self.change(handle, name, |inner, cx| f(operation::planned_mut(&mut *inner.task, name)?, cx))
    }

    /// Runs `f`, which takes new values of A, of B, or of both; later checks compare with these. `given` has
    /// the names of the arguments and the addresses, which are NULL if a matrix keeps its values. `check`
    /// returns an error for plans that the function does not support.
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
            // An error if the plan's arrays would change while graphs read the present ones: other tiles,
            // another array of the user's, or an array of the plan's that is built anew.
            let (task, value_updates) = (&mut *inner.task, inner.settings.value_updates);
            // During a capture another array of the user's is allowed: the graph being captured reads it from
            // here on.
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

    /// Checks that new values are aligned, and in memory that the plan's backend can access, unless there are
    /// none.
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
        handle.enqueue(|cx, enqueuing| {
            if let Some(allocator) = &inner.allocator {
                cx.allocator = Arc::clone(allocator);
            }
            enqueuing.changing(&self.in_flight, &*self.backend, || f(&mut inner, cx))
        })
    }

    /// Takes new values of A for the same pattern.
    pub fn update_values(&self, handle: &Handle, values: Address) -> Result<()> {
        let given = [("newValues", values), ("newValues", Address::NULL)];
        let any = |_: &dyn Task| Ok(());
        self.renew(handle, "tarsiaPlan_updateValues", given, any, |task, cx| task.update_values(cx, values))
    }

    /// Returns the plan's properties.
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

    /// Destroys the plan: waits until no other thread is in a call with it, frees its memory after its work
    /// in flight, and makes later calls fail.
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

    #[inline]
    fn check_handle(&self, handle: &Handle) -> Result<()> {
        // Most handles have the very backend that the plan was created with.
        match Arc::ptr_eq(&self.backend, handle.backend_ref()) {
            true => Ok(()),
            false => self.check_other(&**handle.backend_ref()),
        }
    }

    /// Checks that another handle's backend works where the plan's does.
    #[cold]
    fn check_other(&self, other: &dyn Backend) -> Result<()> {
        let mine = &self.backend;
        require!(
            mine.kind() == other.kind() && mine.device() == other.device(),
            invalid("handle"),
            "it is of {} device {}, the plan of {} device {}",
            other.kind().c_name(),
            other.device(),
            mine.kind().c_name(),
            mine.device()
        );
        require!(
            mine.context_number() == other.context_number(),
            invalid("handle"),
            "it is of another CUDA context of device {} than the plan: neither streams nor kernels go from one \
             context to another",
            mine.device()
        );
        Ok(())
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // This is a plan that nobody destroyed, such as that of a call without a plan, and its work may be in
        // flight. Memory from the user's allocator that graphs keep is never freed.
        let inner = self.inner.get_mut();
        if inner.release_behind(self.in_flight.pending()).is_err() {
            inner.allocator.iter().for_each(|allocator| allocator.release_never());
        }
    }
}

/// Returns `INVALID_STATE` for a call from a callback that would wait for the call that runs the callback.
#[cold]
fn inside(does: &str) -> Error {
    Error::state(format!(
        "plan: this thread is in the midst of a call that {does} it, as a function of tarsiaSetAllocator is"
    ))
}

/// Guard that resets a plan if its analysis does not complete, because of an error or of a panic in the
/// user's allocator or logger.
struct Unfinished<'a> {
    plan: &'a Plan,
    lock: Option<Writing<'a>>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        // This thread has either no lock of the plan or this one, so that locking does not fail.
        if let Some(mut inner) = self.lock.take().or_else(|| self.plan.write().ok()) {
            inner.reset();
        }
    }
}

/// Entry of a plan in a plan cache.
struct Cached {
    cache: Arc<PlanCache>,
    /// The problem with its key, or the reason why it has no key.
    problem: std::result::Result<(Problem, Fingerprint), String>,
    decisions: Option<Decisions>,
}

impl Cached {
    /// Looks for the plan's decisions in the cache. Never fails: faults of the plan itself are found by
    /// analysis.
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

    /// Stores the new choice in the cache.
    fn keep(self, choice: &Choice, order: Result<Option<KeptOrder>>) -> std::result::Result<(), String> {
        let (problem, key) = self.problem?;
        let bytes = order.and_then(|order| Decisions::new(problem, choice, order).to_bytes());
        self.cache
            .write(key, &bytes.map_err(|error| error.message)?)
            .map_err(|error| format!("{}: {error}", self.cache.file(key).display()))
    }
}

impl Inner {
    /// Analyzes. `warnings` collects lines for the user's logger, which may call the library with this plan
    /// and therefore runs after the plan is unlocked.
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
                // Without the decisions analysis may choose another layout that needs less memory.
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
                // The decisions are restored, so that the plan may be analyzed again with other settings.
                self.decided = given;
                return Err(error);
            }
            if let (Some(cached), Some(choice)) = (cached, &self.choice) {
                if let Err(text) = cached.keep(choice, self.task.row_order(&handle.context())) {
                    // The log gets at most one warning per analysis; the plan's reason has this one in any
                    // case.
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

    /// Chooses and builds; `decided` has a choice that was made earlier and its origin for the reason.
    fn build(
        &mut self,
        backend: &dyn Backend,
        handle: &Handle,
        decided: Option<(&Choice, &str)>,
    ) -> Result<()> {
        let settings = Settings { deterministic: handle.modes().deterministic, ..self.settings };
        let mut cx = handle.context();
        cx.allocator = match &self.memory {
            Some(memory) => Allocator::new(Arc::clone(memory), cx.stream, settings.memory_limit),
            None => cx.allocator.scoped(settings.memory_limit),
        };
        let analysis = Analysis { backend, cx: &cx, settings: &settings };
        let (choice, mut report) = self.task.analyze(&analysis, decided.map(|(choice, _)| choice))?;
        if let Some((_, whose)) = decided {
            report.reason.insert_str(0, &format!("by decisions {whose}: "));
        }
        handle.grow_own_workspace(self.task.workspace_bytes(None))?;
        self.report = report;
        self.allocator = Some(cx.allocator);
        // The row order itself is not stored here, since the executor has it.
        self.choice = Some(Choice { method: choice.method.without_order(), ..choice });
        Ok(())
    }

    /// Makes the plan's memory be freed after this work from here on. If this fails, the memory must not be
    /// freed.
    fn release_behind(&mut self, pending: Pending) -> Result<()> {
        let Some(allocator) = self.allocator.as_ref().filter(|_| self.analyzed && !self.destroyed) else {
            return Ok(());
        };
        // Tiles may have other owners, and are freed with the last of them.
        let shared = self.task.shared_memory();
        shared.iter().for_each(|memory| memory.release_also_behind(&pending));
        let checked = shared.iter().try_for_each(|memory| memory.check_release(&pending));
        checked
            .and_then(|()| allocator.release_behind(pending))
            .map_err(|error| Error { message: format!("plan: {}", error.message), ..error })
    }

    /// Resets the plan to its state before analysis.
    fn reset(&mut self) {
        self.task.reset();
        (self.report, self.allocator, self.analyzed) = (Report::empty(), None, false);
        (self.choice, self.fingerprints, self.remembered) = (None, None, None);
    }

    /// Returns the fingerprints of the patterns of the sparse operands. Blocks.
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

    #[inline]
    fn require_alive(&self) -> Result<()> {
        refuse_if!(self.destroyed, invalid("plan"), "it is not a live plan");
        Ok(())
    }

    #[inline]
    fn require_analyzed(&self, name: &str) -> Result<()> {
        self.require_alive()?;
        require!(self.analyzed, state, "plan: {name} needs tarsiaPlan_analyze first");
        Ok(())
    }
}
