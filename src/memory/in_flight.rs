//! Work in flight: the record of which streams may still use memory that is about to be released, or arrays
//! that are about to get new values. No thread waits for that work: memory is released in stream order, and
//! streams wait for each other.
//!
//! Every call that enqueues work ends with an event on its handle's stream ([`LastWork`]); a plan and a
//! handle keep the events of the calls that have used them ([`InFlight`]). The streams themselves are not
//! kept, because a program may destroy one before the plans that have run on it. Work that a CUDA graph has
//! captured runs whenever the graph is launched, on any stream: a graph keeps the objects that it uses alive
//! by a reference of its own ([`GraphReferences`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::Result;
use crate::types::Address;

/// Last work that the calls of one handle have enqueued on one stream.
pub trait LastWork: Send + Sync {
    /// Returns whether this is work of `stream`. A stream that was created later at the address of another
    /// one is a different stream.
    fn is_of(&self, stream: Address) -> bool;
    /// Records an event behind everything that is on the stream now. Must not be called during a capture.
    fn record(&self, stream: Address) -> Result<()>;
    /// Returns whether the work is done, or has failed and destroyed the context.
    fn is_done(&self) -> bool;
    /// Makes `stream` wait for the work: work that is enqueued there from here on begins after it.
    fn hold_back(&self, stream: Address) -> Result<()>;
    /// Blocks until the work is done.
    fn wait(&self) -> Result<()>;
}

/// References that graphs hold to an object whose addresses they have captured.
pub trait GraphReferences: Send + Sync {
    /// Gives a reference to the graph into which the stream is captured. The graph holds it, and so does
    /// everything instantiated from the graph, until its last launch is done.
    fn give_to_graph_of(&self, stream: Address) -> Result<()>;
    /// Ends the handing out of references, and returns the record of the graphs that hold one.
    fn close(self: Box<Self>) -> Arc<dyn Graphs>;
}

/// Record of the graphs that hold references.
pub trait Graphs: Send + Sync {
    /// Returns whether no such graph is left.
    fn are_gone(&self) -> bool;
}

/// Work that has to be done before memory may be used again.
#[derive(Default)]
pub struct Pending {
    works: Vec<Arc<dyn LastWork>>,
    graphs: Vec<Arc<dyn Graphs>>,
}

impl Pending {
    /// Adds one more work.
    pub fn add(&mut self, work: Arc<dyn LastWork>) {
        self.works.push(work);
    }

    /// Returns the union of this and other pending work, without works and graphs that are done.
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

    /// Returns whether all of it is done.
    pub fn is_done(&self) -> bool {
        self.graphs_are_gone() && self.works.iter().all(|work| work.is_done())
    }

    /// Returns whether no graph is left that may be launched or still runs.
    pub fn graphs_are_gone(&self) -> bool {
        self.graphs.iter().all(|graphs| graphs.are_gone())
    }

    /// Returns whether no graph is left, and waits up to 20 ms for that, since the driver may need a moment
    /// to see that the last one is gone.
    pub fn graphs_are_gone_soon(&self) -> bool {
        (0..20).any(|_| {
            let gone = self.graphs_are_gone();
            if !gone {
                std::thread::sleep(Duration::from_millis(1));
            }
            gone
        })
    }

    /// Makes the stream wait for the unfinished work of other streams.
    pub fn hold_back(&self, stream: Address) -> Result<()> {
        let mut unfinished = self.works.iter().filter(|work| !work.is_done());
        unfinished.try_for_each(|work| work.hold_back(stream))
    }

    /// Blocks until the work of all streams is done.
    pub fn wait(&self) -> Result<()> {
        self.works.iter().try_for_each(|work| work.wait())
    }
}

/// Number of works that are kept before those that are done are removed.
const MANY: usize = 8;

/// Last work of one stream with an object.
struct Use {
    work: Arc<dyn LastWork>,
    /// Number of the object's last change that the stream has waited for.
    change: u64,
}

#[derive(Default)]
struct State {
    uses: Vec<Use>,
    references: Option<Box<dyn GraphReferences>>,
    graphs: Vec<Arc<dyn Graphs>>,
    /// Number of changes so far: new values of a plan, numeric phases and all else that writes its arrays.
    changes: u64,
    /// Work that made the last change.
    changed: Option<Arc<dyn LastWork>>,
}

/// Record of the work that uses an object: a plan, or a handle's workspace. While one thread changes the
/// object, no other thread reads it.
#[derive(Default)]
pub struct InFlight {
    state: Mutex<State>,
    /// Address of a work that has waited for all changes, or 0: mostly that of the next call, which then need
    /// not search.
    latest: AtomicUsize,
}

fn address(work: &Arc<dyn LastWork>) -> usize {
    Arc::as_ptr(work).cast::<()>().addr()
}

impl InFlight {
    /// Must be called before a call enqueues work on `stream` that reads the object: that work will come
    /// after changes that were enqueued on other streams. `work` is the last work of the stream.
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

    /// Must be called before a call enqueues work on `stream` that needs the object, such as a handle's
    /// workspace, for itself: that work will come after the work of the stream that used it before, which
    /// came after that of the one before it.
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

    /// Must be called before a call enqueues work on `stream` that changes the object: that work will come
    /// after all work that reads it.
    pub fn before_changing(&self, work: &Arc<dyn LastWork>, stream: Address) -> Result<()> {
        let state = self.state.lock();
        let others = state.uses.iter().filter(|other| !Arc::ptr_eq(&other.work, work));
        others.map(|other| &other.work).try_for_each(|other| other.hold_back(stream))
    }

    /// Records that work that changes the object was enqueued, or some of it.
    pub fn changed(&self, work: &Arc<dyn LastWork>) {
        let mut state = self.state.lock();
        let at = state.enter(work);
        state.changed = Some(Arc::clone(work));
        state.changes += 1;
        state.uses[at].change = state.changes;
        self.latest.store(address(work), Ordering::Release);
    }

    /// Records that the graph into which `stream` is captured uses the object.
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

    /// Returns the work that has to be done before the object's memory may be used again.
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
    /// Returns the index of the work among the uses, and adds it if it is new.
    fn enter(&mut self, work: &Arc<dyn LastWork>) -> usize {
        if let Some(at) = self.uses.iter().position(|other| Arc::ptr_eq(&other.work, work)) {
            return at;
        }
        if self.uses.len() >= MANY {
            // A work that a handle still refers to may be recorded again: it must not be removed.
            self.uses.retain(|one| Arc::strong_count(&one.work) > 1 || !one.work.is_done());
        }
        self.uses.push(Use { work: Arc::clone(work), change: 0 });
        self.uses.len() - 1
    }
}
