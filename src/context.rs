//! The handle: backend, stream, modes, allocator, logger and workspace.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::backend::{Backend, CallGuard};
use crate::error::{refuse_if, Error, Result};
use crate::matrix::dense::Lines;
use crate::memory::in_flight::{InFlight, LastWork};
use crate::memory::{Allocator, Block, Context, RawMemory, Workspace, COUNTER_BYTES, USER_ALIGNMENT};
use crate::plan::PlanCache;
use crate::reentrancy::{Access, Object, Use};
use crate::types::{Address, LogLevel, PointerMode, ScalarsAt};

/// Receiver of log lines.
pub trait Logger: Send + Sync {
    /// Receives one line, without the newline.
    fn log(&self, level: LogLevel, message: &CString);
}

/// Settings of a handle that may change at any time.
#[derive(Clone)]
pub struct Modes {
    /// Location of alpha and beta: on the host or in the backend's memory.
    pub pointer_mode: PointerMode,
    /// True in deterministic mode: products whose bits differ from run to run are refused.
    pub deterministic: bool,
    /// Receiver of log lines, if the user has set one.
    pub logger: Option<Arc<dyn Logger>>,
    /// Folder in which analysis stores decisions, if the user has set one.
    pub plan_cache: Option<Arc<PlanCache>>,
}

struct State {
    stream: Address,
    modes: Modes,
    allocator: Arc<Allocator>,
    is_allocator_fixed: bool,
    /// Last work on each stream that the handle has used, on backends whose calls are asynchronous.
    works: Vec<Arc<dyn LastWork>>,
    /// Last work on the present `stream`; `None` until a call needs it.
    work: Option<Arc<dyn LastWork>>,
}

/// Error message where the workspace is locked by this very thread.
const IN_USE: &str = "handle: this thread is in the midst of a product with its workspace";

/// Number of streams in `works` from which on finished works are removed before another one is added.
const MANY_WORKS: usize = 8;

impl State {
    /// Returns the context of a call that does not execute and so has no workspace.
    #[inline]
    fn context(&self) -> Context {
        Context {
            stream: self.stream,
            pointer_mode: self.modes.pointer_mode,
            workspace: Workspace { address: Address::NULL, bytes: 0 },
            counters: Address::NULL,
            allocator: Arc::clone(&self.allocator),
        }
    }

    /// Returns the last work on the present stream; `None` on backends whose calls are synchronous.
    fn work(&mut self, backend: &dyn Backend) -> Result<Option<Arc<dyn LastWork>>> {
        if self.work.is_none() {
            let known = self.works.iter().find(|work| work.is_of(self.stream));
            self.work = match known {
                Some(work) => Some(Arc::clone(work)),
                None => backend.last_work(self.stream)?,
            };
            if let (Some(work), None) = (&self.work, known) {
                if self.works.len() >= MANY_WORKS {
                    self.works.retain(|work| !work.is_done());
                }
                self.works.push(Arc::clone(work));
            }
        }
        Ok(self.work.clone())
    }
}

/// Bookkeeping that a call has to do for the work that it enqueues on the handle's stream.
pub enum Enqueuing {
    /// None: calls of the backend are done when they return.
    Nothing,
    /// The stream is being captured: the graph keeps the objects that the work uses alive.
    Captured(Address),
    /// The call records its work as the last work on the stream.
    Last(Arc<dyn LastWork>, Address),
}

impl Enqueuing {
    /// Prepares for work that reads an object.
    #[inline]
    pub fn reading(&self, object: &InFlight, backend: &dyn Backend) -> Result<()> {
        self.using(object, backend, InFlight::before_reading)
    }

    /// Prepares for work that uses an object exclusively.
    #[inline]
    fn having(&self, object: &InFlight, backend: &dyn Backend) -> Result<()> {
        self.using(object, backend, InFlight::before_having)
    }

    /// Calls `before`, which orders the work after that of other streams; in a capture the graph gets a
    /// reference to the object instead.
    #[inline]
    fn using(
        &self,
        object: &InFlight,
        backend: &dyn Backend,
        before: impl FnOnce(&InFlight, &Arc<dyn LastWork>, Address) -> Result<()>,
    ) -> Result<()> {
        match self {
            Enqueuing::Nothing => Ok(()),
            _ => self.order(object, backend, before),
        }
    }

    /// The part of [`Self::using`] for asynchronous calls, outside of the code for others.
    #[inline(never)]
    fn order(
        &self,
        object: &InFlight,
        backend: &dyn Backend,
        before: impl FnOnce(&InFlight, &Arc<dyn LastWork>, Address) -> Result<()>,
    ) -> Result<()> {
        match self {
            Enqueuing::Nothing => Ok(()),
            Enqueuing::Captured(stream) => object.captured(*stream, || backend.graph_references()),
            Enqueuing::Last(work, stream) => before(object, work, *stream),
        }
    }

    /// Runs `f`, which enqueues work that changes an object, between the necessary bookkeeping.
    pub fn changing<R>(
        &self,
        object: &InFlight,
        backend: &dyn Backend,
        f: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let Enqueuing::Last(work, stream) = self else {
            self.reading(object, backend)?;
            return f();
        };
        object.before_changing(work, *stream)?;
        let result = f();
        object.changed(work);
        result
    }

    /// Records the work, even if `result` is an error of enqueuing it, and returns `result`. It is outside of the code
    /// for synchronous calls.
    #[inline(never)]
    fn finish<R>(self, result: Result<R>) -> Result<R> {
        match self {
            Enqueuing::Nothing | Enqueuing::Captured(_) => result,
            Enqueuing::Last(work, stream) => {
                let recorded = work.record(stream);
                result.and_then(|result| recorded.map(|()| result))
            }
        }
    }
}

/// Workspace of execute: the user's or the handle's own.
struct Scratch {
    user: Option<Workspace>,
    own: Option<Block>,
    /// [`COUNTER_BYTES`] that are zero between calls, followed by the workspace of calls without a plan; only
    /// if the backend asks for it.
    base: Option<Block>,
    /// True if a CUDA graph may use `own`.
    captured: bool,
    /// Outgrown workspaces that graphs may still use; they live as long as the handle.
    retired: Vec<Block>,
}

impl Scratch {
    #[inline]
    fn workspace(&self) -> Workspace {
        match (&self.user, &self.own, &self.base) {
            (Some(user), ..) => *user,
            (None, Some(own), _) => Workspace { address: own.address(), bytes: own.bytes() },
            (None, None, Some(base)) => Workspace {
                address: base.address().offset(COUNTER_BYTES),
                bytes: base.bytes() - COUNTER_BYTES,
            },
            (None, None, None) => Workspace { address: Address::NULL, bytes: 0 },
        }
    }
}

/// Guard of a running call: while this lives, the handle cannot be closed.
pub struct Inside<'a> {
    _open: RwLockReadGuard<'a, bool>,
    _use: Use,
}

/// The object behind a `tarsiaHandle_t`.
pub struct Handle {
    backend: Arc<dyn Backend>,
    /// True if the backend's calls are done when they return, so that no work has to be recorded.
    is_synchronous: bool,
    state: Mutex<State>,
    // Held while an execute runs: two threads that share a handle against the rules wait for each other
    // instead of sharing the workspace.
    scratch: Mutex<Scratch>,
    // Every call holds this lock for reading; destroying the handle takes it for writing.
    open: RwLock<bool>,
    /// Work that uses the workspace and is not known to be done.
    in_flight: InFlight,
    // Atomic, since every execute reads them.
    checks: AtomicBool,
    /// Copy of [`Modes::deterministic`].
    deterministic: AtomicBool,
}

impl Handle {
    /// Creates a handle for a backend.
    pub fn new(backend: Arc<dyn Backend>) -> Result<Self> {
        let base = match backend.once_workspace_bytes() {
            0 => None,
            bytes => {
                // This allocator never uses the user's functions, which can only be set later.
                let allocator = Allocator::new(backend.memory(), Address::NULL, usize::MAX);
                let block = Block::new(&allocator, COUNTER_BYTES + bytes)?;
                backend.clear(block.address(), block.bytes())?;
                Some(block)
            }
        };
        let allocator = Allocator::new(backend.memory(), Address::NULL, usize::MAX);
        let state = State {
            stream: Address::NULL,
            modes: Modes {
                pointer_mode: PointerMode::Host,
                deterministic: false,
                logger: None,
                plan_cache: None,
            },
            allocator,
            is_allocator_fixed: false,
            works: Vec::new(),
            work: None,
        };
        let scratch = Scratch { user: None, own: None, base, captured: false, retired: Vec::new() };
        Ok(Handle {
            is_synchronous: backend.enqueued().is_none(),
            backend,
            state: Mutex::new(state),
            scratch: Mutex::new(scratch),
            open: RwLock::new(true),
            in_flight: InFlight::default(),
            checks: AtomicBool::new(false),
            deterministic: AtomicBool::new(false),
        })
    }

    /// Returns the handle's backend.
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    /// Returns the handle's backend, for a caller that keeps no reference to it.
    #[inline]
    pub fn backend_ref(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns the user's stream.
    pub fn stream(&self) -> Address {
        self.state.lock().stream
    }

    /// Sets the user's stream, which later allocations use too.
    pub fn set_stream(&self, stream: Address) {
        let mut state = self.state.lock();
        // Another stream may have the address of a destroyed one.
        state.work = None;
        state.stream = stream;
        state.allocator = Allocator::new(state.allocator.memory(), stream, usize::MAX);
    }

    /// Enters a call; `None` if the handle has been closed. Calls may nest: a callback of the user may call
    /// the library with the same handle.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        let open = self.open.read_recursive();
        open.then(|| Inside { _open: open, _use: Use::begin(Object::handle(self), Access::Shared) })
    }

    /// Returns whether this thread is inside a call with the handle.
    pub fn is_inside(&self) -> bool {
        Object::handle(self).access().is_some()
    }

    /// Waits until no call is inside, and makes later calls fail.
    pub fn close(&self) {
        *self.open.write() = false;
    }

    /// Returns a copy of the present settings.
    pub fn modes(&self) -> Modes {
        self.state.lock().modes.clone()
    }

    /// Changes settings.
    pub fn set(&self, change: impl FnOnce(&mut Modes)) {
        let mut state = self.state.lock();
        change(&mut state.modes);
        self.deterministic.store(state.modes.deterministic, Ordering::Relaxed);
    }

    /// Returns [`Modes::deterministic`].
    #[inline]
    pub fn is_deterministic(&self) -> bool {
        self.deterministic.load(Ordering::Relaxed)
    }

    /// Returns whether executes check that the matrices are unchanged since analysis (tarsiaSetChecks).
    #[inline]
    pub fn checks(&self) -> bool {
        self.checks.load(Ordering::Relaxed)
    }

    /// Switches the checks of [`Self::checks`] on or off.
    pub fn set_checks(&self, on: bool) {
        self.checks.store(on, Ordering::Relaxed);
    }

    /// If checks are on, returns `INVALID_VALUE` for an operand (given with the argument's name) in memory
    /// that the backend's kernels cannot access, and for an alpha or beta that is not where the pointer mode
    /// says.
    pub fn check_operands<'a>(
        &self,
        (alpha, beta): ScalarsAt,
        operands: impl IntoIterator<Item = (&'a str, Lines)>,
    ) -> Result<()> {
        if !self.checks() {
            return Ok(());
        }
        self.check_scalar("alpha", alpha)?;
        self.check_scalar("beta", beta)?;
        let mut operands = operands.into_iter().filter(|(_, lines)| lines.bytes > 0 && lines.count > 0);
        operands.try_for_each(|(name, lines)| self.backend.require_reachable(name, "values", lines.address))
    }

    /// Checks alpha alone as [`Self::check_operands`] does, for a product without beta whose operands are
    /// checked elsewhere.
    pub fn check_alpha(&self, alpha: Address) -> Result<()> {
        if !self.checks() {
            return Ok(());
        }
        self.check_scalar("alpha", alpha)
    }

    fn check_scalar(&self, name: &str, address: Address) -> Result<()> {
        match self.modes().pointer_mode {
            PointerMode::Host => self.backend.require_readable_by_host(name, address),
            PointerMode::Device => self.backend.require_reachable(name, "bytes", address),
        }
    }

    /// Sets the source of later allocations: the user's functions, or the backend for `None`. Allowed only
    /// before [`Self::fix_allocator`].
    pub fn set_memory(&self, memory: Option<Arc<dyn RawMemory>>) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_allocator_fixed {
            return Err(Error::state(
                "handle: tarsiaSetAllocator is allowed only before the first plan is created or analyzed with the \
                 handle, and before a product without a plan allocates memory",
            ));
        }
        let memory = memory.unwrap_or_else(|| self.backend.memory());
        state.allocator = Allocator::new(memory, state.stream, usize::MAX);
        Ok(())
    }

    /// Ends the time in which the allocator may be set: a plan, or a product without one, is about to allocate.
    pub fn fix_allocator(&self) {
        self.state.lock().is_allocator_fixed = true;
    }

    /// Logs a line, which is formatted only if there is a logger. No lock is held while the user's function
    /// runs, since it may call the library.
    pub fn log(&self, level: LogLevel, message: impl FnOnce() -> String) {
        let mut message = Some(message);
        self.log_line(level, &mut || message.take().map(|message| message()).unwrap_or_default());
    }

    fn log_line(&self, level: LogLevel, message: &mut dyn FnMut() -> String) {
        if let Some(logger) = self.modes().logger {
            // Newlines are replaced, since a panic's text may have any.
            let text = message().trim_end().replace(['\n', '\r'], " ").replace('\0', "");
            if let Ok(text) = CString::new(text) {
                logger.log(level, &text);
            }
        }
    }

    #[inline]
    fn workspace_object(&self) -> Object {
        Object::Workspace(std::ptr::from_ref(self).addr())
    }

    /// Locks the workspace. It is an error if this thread holds it already: while a call waits for the
    /// library's thread pool, a thread of a program's own rayon pool may begin another task of the program.
    fn scratch(&self) -> Result<MutexGuard<'_, Scratch>> {
        refuse_if!(self.workspace_object().access().is_some(), state, "{IN_USE}");
        Ok(self.scratch.lock())
    }

    /// Locks the workspace for a product, which uses it until the use that is returned is dropped.
    #[inline(always)]
    fn take_scratch(&self) -> Result<(MutexGuard<'_, Scratch>, Use)> {
        let (earlier, this_use) = Use::begin_with_earlier(self.workspace_object(), Access::Exclusive);
        refuse_if!(earlier.is_some(), state, "{IN_USE}");
        Ok((self.scratch.lock(), this_use))
    }

    /// Returns the context of a call that does not execute and so has no workspace.
    #[inline]
    pub fn context(&self) -> Context {
        self.state.lock().context()
    }

    /// Runs `f`, which enqueues work on the handle's stream, and records the work afterwards.
    #[inline]
    pub fn enqueue<R>(&self, f: impl FnOnce(&mut Context, &Enqueuing) -> Result<R>) -> Result<R> {
        let (_call, mut cx, enqueuing);
        if self.is_synchronous {
            (_call, cx, enqueuing) = (CallGuard::NOTHING, self.context(), Enqueuing::Nothing);
        } else {
            (_call, cx, enqueuing) = self.begin()?;
        }
        let result = f(&mut cx, &enqueuing);
        match enqueuing {
            Enqueuing::Nothing => result,
            other => other.finish(result),
        }
    }

    /// Begins a call that enqueues work, on a backend whose calls are asynchronous, outside of the code for others.
    #[inline(never)]
    fn begin(&self) -> Result<(CallGuard, Context, Enqueuing)> {
        let call = self.backend.begin_call()?;
        let mut state = self.state.lock();
        let (cx, stream) = (state.context(), state.stream);
        let enqueuing = match self.backend.is_capturing(stream)? {
            true => Enqueuing::Captured(stream),
            false => {
                state.work(&*self.backend)?.map_or(Enqueuing::Nothing, |work| Enqueuing::Last(work, stream))
            }
        };
        Ok((call, cx, enqueuing))
    }

    /// Runs `f` with exclusive use of the workspace.
    #[inline]
    pub fn with_workspace<R>(&self, f: impl FnOnce(&Context, &Enqueuing) -> Result<R>) -> Result<R> {
        self.enqueue(|cx, enqueuing| {
            let (mut scratch, _entry) = self.take_scratch()?;
            scratch.captured |= matches!(enqueuing, Enqueuing::Captured(_));
            enqueuing.having(&self.in_flight, &*self.backend)?;
            cx.workspace = scratch.workspace();
            cx.counters = scratch.base.as_ref().map_or(Address::NULL, Block::address);
            f(cx, enqueuing)
        })
    }

    /// Runs `f` with a workspace of at least `bytes` bytes; `name` is the function for messages. The handle's
    /// own workspace grows if it is too small. If the user has set one that is too small, the call allocates
    /// memory of its own and blocks until the work that uses it is done. `INVALID_STATE` if either is needed
    /// while the stream is being captured.
    pub fn with_room<R>(&self, name: &str, bytes: usize, f: impl FnOnce(&Context) -> Result<R>) -> Result<R> {
        let (present, is_users) = {
            let scratch = self.scratch()?;
            (scratch.workspace().bytes, scratch.user.is_some())
        };
        if present >= bytes {
            return self.with_workspace(|cx, _| f(cx));
        }
        let cx = self.context();
        if self.backend.is_capturing(cx.stream)? {
            return Err(Error::state(format!(
                "handle: {name} needs {bytes} bytes of workspace, there are {present}, and the stream is being \
                 captured into a graph: call it with matrices of these sizes before, or tarsiaSetWorkspace"
            )));
        }
        self.fix_allocator();
        if !is_users {
            // The size is rounded up to whole MiB, so that products of similar sizes do not grow it each
            // time.
            self.grow_workspace(bytes.checked_next_multiple_of(1 << 20).unwrap_or(bytes))?;
            return self.with_workspace(|cx, _| f(cx));
        }
        let block = Block::new(&cx.allocator, bytes)?;
        let workspace = Workspace { address: block.address(), bytes };
        self.with_workspace(|cx, enqueuing| {
            if matches!(enqueuing, Enqueuing::Captured(_)) {
                return Err(Error::state(format!("handle: a capture of its stream began during {name}")));
            }
            let result = f(&Context { workspace, ..cx.clone() });
            // Enqueued work may use the memory even if `f` failed.
            self.backend.synchronize(cx.stream)?;
            result
        })
    }

    /// Runs `f`, which only enqueues launches, with a workspace of `bytes` bytes: the handle's if it is large
    /// enough, else `lent`, the caller's for this call, which may be too small or empty.
    ///
    /// If the stream is being captured, the graph gets no memory of the handle, since it may run beside later
    /// calls: the first `counter_bytes` of `lent` become its counters, which are set to zero whenever it
    /// runs, and the rest its workspace. If `lent` is too small, the graph gets neither. A call without
    /// workspace leaves no event behind, since no later work has to wait for it.
    pub fn with_lent<R>(
        &self,
        lent: Workspace,
        (bytes, counter_bytes): (usize, usize),
        f: impl FnOnce(&Context) -> Result<R>,
    ) -> Result<R> {
        if bytes == 0 {
            return f(&self.context());
        }
        self.enqueue(|cx, enqueuing| {
            if let Enqueuing::Captured(_) = enqueuing {
                if lent.bytes >= bytes.saturating_add(counter_bytes) {
                    self.backend.clear_in_order(cx, lent.address, counter_bytes)?;
                    cx.counters = lent.address;
                    cx.workspace = lent.after(counter_bytes);
                }
                return f(cx);
            }
            let (scratch, _entry) = self.take_scratch()?;
            enqueuing.having(&self.in_flight, &*self.backend)?;
            cx.workspace = scratch.workspace();
            if cx.workspace.bytes < bytes {
                cx.workspace = lent;
            }
            cx.counters = scratch.base.as_ref().map_or(Address::NULL, Block::address);
            f(cx)
        })
    }

    /// Returns the size in bytes of the workspace that calls get now.
    pub fn workspace_bytes(&self) -> Result<usize> {
        Ok(self.scratch()?.workspace().bytes)
    }

    /// Sets the user's workspace; NULL with 0 bytes returns to the handle's own.
    pub fn set_workspace(&self, address: Address, bytes: usize) -> Result<()> {
        if address.is_null() && bytes > 0 {
            return Err(Error::invalid("ptr", format!("it is NULL and bytes is {bytes}")));
        }
        if !address.is_null() && bytes == 0 {
            return Err(Error::invalid("bytes", "it is 0 and ptr is not NULL"));
        }
        if !address.is_aligned(USER_ALIGNMENT) {
            return Err(Error::invalid(
                "ptr",
                format!("the pointer is not aligned to {USER_ALIGNMENT} bytes"),
            ));
        }
        self.backend.require_reachable("ptr", "bytes", address)?;
        self.scratch()?.user = (!address.is_null()).then_some(Workspace { address, bytes });
        Ok(())
    }

    /// Calls [`Self::grow_workspace`] unless the user has set a workspace, whatever its size: the user may
    /// set a larger one before execute.
    pub fn grow_own_workspace(&self, bytes: usize) -> Result<()> {
        if self.scratch()?.user.is_some() {
            return Ok(());
        }
        self.grow_workspace(bytes)
    }

    /// Makes the handle's own workspace at least this large. A user's workspace is never replaced: it is an
    /// error if it is too small.
    pub fn grow_workspace(&self, bytes: usize) -> Result<()> {
        let present = {
            let scratch = self.scratch()?;
            if let Some(user) = &scratch.user {
                return user.require(bytes);
            }
            scratch.workspace().bytes
        };
        if present >= bytes {
            return Ok(());
        }
        let cx = self.context();
        self.backend.require_blocking(cx.stream, "making workspace")?;
        // The allocation is outside the lock, since the user's allocator may call the library.
        let block = Block::new(&cx.allocator, bytes)?;
        self.backend.clear(block.address(), block.bytes())?;
        let old = {
            let mut scratch = self.scratch()?;
            // Another thread may have set a larger one in the meantime.
            if scratch.own.as_ref().is_some_and(|own| own.bytes() >= bytes) {
                drop(scratch);
                drop(block);
                return Ok(());
            }
            let old = scratch.own.replace(block);
            if std::mem::take(&mut scratch.captured) {
                scratch.retired.extend(old);
                None
            } else {
                old
            }
        };
        // No later call uses the old workspace, but work in flight may.
        if let Some(old) = old {
            old.release_behind(&Arc::new(self.in_flight.pending()));
        }
        Ok(())
    }

    /// Frees memory that [`crate::backend::Backend::memory`] allocated, after all work of the library on any
    /// handle and all work that is on this handle's stream now.
    pub fn free(&self, address: Address) -> Result<()> {
        let stream = self.stream();
        self.backend.require_blocking(stream, "tarsiaFree")?;
        let mut pending = self.backend.work_in_flight();
        if let Some(work) = self.backend.last_work(stream)? {
            work.record(stream)?;
            pending.add(work);
        }
        self.backend.memory().release_behind(address, 0, stream, &Arc::new(pending));
        Ok(())
    }

    /// Returns `INVALID_STATE` if CUDA graphs keep the workspace and it is from the user's allocator, and in
    /// a process that cannot use the device.
    pub fn check_destroy(&self) -> Result<()> {
        self.backend.check_process()?;
        let pending = Arc::new(self.in_flight.pending());
        let scratch = self.scratch()?;
        scratch.own.iter().chain(&scratch.retired).try_for_each(|block| block.prepare_release(&pending))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let pending = Arc::new(self.in_flight.pending());
        let Scratch { own, base, retired, .. } = self.scratch.get_mut();
        own.take().into_iter().chain(base.take()).chain(std::mem::take(retired)).for_each(|block| {
            block.release_behind(&pending);
        });
    }
}
