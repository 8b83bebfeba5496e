//! Work in flight: which streams may still use memory that is about to be given back, or arrays that
//! are about to get new values. Nobody is made to wait for it: memory goes back in the streams' order,
//! and streams wait for each other.
//!
//! Every call that enqueues work ends with an event on its handle's stream ([`LastWork`]); a plan and a
//! handle keep those of the calls that have used them ([`InFlight`]). The streams themselves are not
//! kept, because a program may destroy one before the plans that have run on it. What a CUDA graph has
//! captured runs whenever the graph is launched, on any stream: a graph keeps what it uses by a
//! reference of its own ([`GraphReferences`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::Result;
use crate::types::Address;

/// The last work that the calls of one handle have put on one stream.
pub trait LastWork: Send + Sync {
    /// Whether `stream` is the one that it is of. A stream that was made later, at the address of
    /// another, is not.
    fn is_of(&self, stream: Address) -> bool;
    /// Everything that is on the stream now comes before it. Not in a capture.
    fn record(&self, stream: Address) -> Result<()>;
    /// It is done, or it failed and took the context with it.
    fn is_done(&self) -> bool;
    /// Makes the stream wait for it: work that is enqueued there from here on begins after it.
    fn hold_back(&self, stream: Address) -> Result<()>;
    /// Waits for it.
    fn wait(&self) -> Result<()>;
}

/// References that graphs hold to something whose addresses they have captured.
pub trait GraphReferences: Send + Sync {
    /// The graph into which the stream is captured holds one from now on, and so does what is made of
    /// the graph, until the last launch of it is done.
    fn give_to_graph_of(&self, stream: Address) -> Result<()>;
    /// No more graphs come; what is known of those that there are.
    fn close(self: Box<Self>) -> Arc<dyn Graphs>;
}

/// Graphs that hold references.
pub trait Graphs: Send + Sync {
    /// None is left.
    fn are_gone(&self) -> bool;
}

/// Work that has to be done before memory may be used again.
#[derive(Default)]
pub struct Pending {
    works: Vec<Arc<dyn LastWork>>,
    graphs: Vec<Arc<dyn Graphs>>,
}

impl Pending {
    /// Behind one more work.
    pub fn add(&mut self, work: Arc<dyn LastWork>) {
        self.works.push(work);
    }

    /// Behind this work and other work, but for what is done.
    pub fn with(&self, other: &Pending) -> Pending {
        let mut both = Pending::default();
        for work in self.works.iter().chain(&other.works) {
            if !both.works.iter().any(|known| Arc::ptr_eq(known, work)) && !work.is_done() {
                both.works.push(Arc::clone(work));
            }
        }
        for graphs in self.graphs.iter().chain(&other.graphs) {
            if !both.graphs.iter().any(|known| Arc::ptr_eq(known, graphs)) && !graphs.are_gone() {
                both.graphs.push(Arc::clone(graphs));
            }
        }
        both
    }

    /// All of it is done.
    pub fn is_done(&self) -> bool {
        self.graphs_are_gone() && self.works.iter().all(|work| work.is_done())
    }

    /// No graph is left that may be launched, or runs.
    pub fn graphs_are_gone(&self) -> bool {
        self.graphs.iter().all(|graphs| graphs.are_gone())
    }

    /// The same, but that the driver may need a moment to see that the last one is gone.
    pub fn graphs_are_gone_soon(&self) -> bool {
        (0..20).any(|_| {
            let gone = self.graphs_are_gone();
            if !gone {
                std::thread::sleep(Duration::from_millis(1));
            }
            gone
        })
    }

    /// Makes the stream wait for the work that other streams still do.
    pub fn hold_back(&self, stream: Address) -> Result<()> {
        let mut unfinished = self.works.iter().filter(|work| !work.is_done());
        unfinished.try_for_each(|work| work.hold_back(stream))
    }

    /// Waits for the work of streams.
    pub fn wait(&self) -> Result<()> {
        self.works.iter().try_for_each(|work| work.wait())
    }
}

/// How many works are kept before those that are done are looked for.
const MANY: usize = 8;

/// A stream's last work with an object.
struct Use {
    work: Arc<dyn LastWork>,
    /// The last of the object's changes that the stream has waited for.
    change: u64,
}

#[derive(Default)]
struct State {
    uses: Vec<Use>,
    references: Option<Box<dyn GraphReferences>>,
    graphs: Vec<Arc<dyn Graphs>>,
    /// Changes so far: new values of a plan, numeric phases, what else writes its arrays.
    changes: u64,
    /// Where the last of them is.
    changed: Option<Arc<dyn LastWork>>,
}

/// The work that uses an object: a plan, or a handle's workspace. While one thread changes the object no
/// other reads it.
#[derive(Default)]
pub struct InFlight {
    state: Mutex<State>,
    /// The address of a work that has waited for all changes, if not 0: mostly that of the next call,
    /// which has nothing to look for then.
    latest: AtomicUsize,
}

fn address(work: &Arc<dyn LastWork>) -> usize {
    Arc::as_ptr(work).cast::<()>().addr()
}

impl InFlight {
    /// Before a call enqueues work on `stream` that reads the object: it comes after changes that were
    /// enqueued on other streams. `work` is that of the stream.
    pub fn before_reading(&self, work: &Arc<dyn LastWork>, stream: Address) -> Result<()> {
        // A work that is kept here keeps its address.
        if self.latest.load(Ordering::Acquire) == address(work) {
            return Ok(());
        }
        let mut state = self.state.lock();
        let at = state.enter(work);
        let State { uses, changes, changed, .. } = &mut *state;
        if uses[at].change < *changes {
            if let Some(changed) = changed.as_ref().filter(|changed| !Arc::ptr_eq(changed, work)) {
                changed.hold_back(stream)?;
            }
        }
        uses[at].change = *changes;
        self.latest.store(address(work), Ordering::Release);
        Ok(())
    }

    /// Before a call enqueues work on `stream` that needs the object for itself, such as a handle's workspace: it comes
    /// after the work of the stream that had it before, which came after that of the one before it.
    pub fn before_having(&self, work: &Arc<dyn LastWork>, stream: Address) -> Result<()> {
        if self.latest.load(Ordering::Acquire) == address(work) {
            return Ok(());
        }
        let mut state = self.state.lock();
        state.enter(work);
        let before = state.changed.replace(Arc::clone(work));
        if let Some(before) = before.filter(|before| !Arc::ptr_eq(before, work) && !before.is_done()) {
            before.hold_back(stream)?;
        }
        self.latest.store(address(work), Ordering::Release);
        Ok(())
    }

    /// Before a call enqueues work on `stream` that changes the object: it comes after all work that
    /// reads it.
    pub fn before_changing(&self, work: &Arc<dyn LastWork>, stream: Address) -> Result<()> {
        let state = self.state.lock();
        let others = state.uses.iter().filter(|other| !Arc::ptr_eq(&other.work, work));
        others.map(|other| &other.work).try_for_each(|other| other.hold_back(stream))
    }

    /// Such work was enqueued, or some of it.
    pub fn changed(&self, work: &Arc<dyn LastWork>) {
        let mut state = self.state.lock();
        let at = state.enter(work);
        state.changed = Some(Arc::clone(work));
        state.changes += 1;
        state.uses[at].change = state.changes;
        self.latest.store(address(work), Ordering::Release);
    }

    /// The graph into which `stream` is captured uses the object.
    pub fn captured(
        &self,
        stream: Address,
        references: impl FnOnce() -> Result<Box<dyn GraphReferences>>,
    ) -> Result<()> {
        let mut state = self.state.lock();
        if state.references.is_none() {
            state.references = Some(references()?);
        }
        state.references.as_ref().map_or(Ok(()), |references| references.give_to_graph_of(stream))
    }

    /// What has to be done before the object's memory may be used again.
    pub fn pending(&self) -> Pending {
        let mut state = self.state.lock();
        if let Some(references) = state.references.take() {
            state.graphs.push(references.close());
        }
        state.graphs.retain(|graphs| !graphs.are_gone());
        let works = state.uses.iter().map(|one| Arc::clone(&one.work)).collect();
        Pending { works, graphs: state.graphs.clone() }
    }
}

impl State {
    /// Where the work stands among the uses.
    fn enter(&mut self, work: &Arc<dyn LastWork>) -> usize {
        if let Some(at) = self.uses.iter().position(|other| Arc::ptr_eq(&other.work, work)) {
            return at;
        }
        if self.uses.len() >= MANY {
            // A work that a handle still has may be recorded again: it must not be forgotten.
            self.uses.retain(|one| Arc::strong_count(&one.work) > 1 || !one.work.is_done());
        }
        self.uses.push(Use { work: Arc::clone(work), change: 0 });
        self.uses.len() - 1
    }
}
