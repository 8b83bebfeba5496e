//! Tests of memory with several owners, each of which releases it while work of its own is in flight.

use super::in_flight::{InFlight, LastWork};
use super::*;
use crate::matrix::tiles::{TileMatrix, Tiles};
use crate::matrix::TileShape;
use crate::types::{BackendKind, PointerMode};
use std::sync::atomic::AtomicBool;

/// Work that is done when a test says so.
#[derive(Default)]
struct Work(AtomicBool);

impl LastWork for Work {
    fn is_of(&self, _stream: Address) -> bool {
        true
    }

    fn record(&self, _stream: Address) -> Result<()> {
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn hold_back(&self, _stream: Address) -> Result<()> {
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        panic!("nobody waits for the work")
    }
}

/// Returns the pending work of memory that these works have used.
fn pending(works: &[&Arc<Work>]) -> Pending {
    let in_flight = InFlight::default();
    for &work in works {
        let work: Arc<dyn LastWork> = Arc::clone(work) as Arc<dyn LastWork>;
        in_flight.before_reading(&work, Address::NULL).unwrap();
    }
    in_flight.pending()
}

/// Memory that records which work it is released behind.
#[derive(Default)]
struct Watched {
    /// Number of bytes that were released at once.
    now: AtomicUsize,
    /// Number of bytes released behind work, with that work.
    behind: Mutex<Vec<(usize, Arc<Pending>)>>,
    /// True while graphs keep the memory.
    kept: AtomicBool,
}

impl RawMemory for Watched {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        HostMemory.allocate(bytes, stream)
    }

    fn release(&self, address: Address, bytes: usize, stream: Address) {
        self.now.fetch_add(bytes, Ordering::Relaxed);
        HostMemory.release(address, bytes, stream);
    }

    fn check_release(&self, _pending: &Pending) -> Result<()> {
        match self.kept.load(Ordering::Relaxed) {
            true => Err(Error::state("graphs keep it")),
            false => Ok(()),
        }
    }

    fn prepare_release(&self, _stream: Address, pending: &Pending) -> Result<()> {
        self.check_release(pending)
    }

    fn release_behind(&self, address: Address, bytes: usize, stream: Address, pending: &Arc<Pending>) {
        self.behind.lock().push((bytes, Arc::clone(pending)));
        HostMemory.release(address, bytes, stream);
    }
}

fn context(memory: &Arc<Watched>) -> Context {
    let memory = Arc::clone(memory) as Arc<dyn RawMemory>;
    Context {
        stream: Address::NULL,
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator: Allocator::new(memory, Address::NULL, usize::MAX),
    }
}

const BYTES: usize = 1000;

/// Returns a matrix in tiles with contents of [`BYTES`] bytes.
fn matrix(cx: &Context) -> TileMatrix {
    let matrix = TileMatrix::new((BackendKind::Host, 0), (16, 16), DataType::R64F).unwrap();
    fill(&matrix, cx);
    matrix
}

fn fill(matrix: &TileMatrix, cx: &Context) {
    let shape =
        TileShape { rows: 16, cols: 16, nnz: 1, tiles: 1, value_type: DataType::R64F, by_columns: false };
    let make = |cx: &Context| {
        let contents = Box::new(Arc::new(Block::new(&cx.allocator, BYTES)?));
        Ok(Tiles { shape, contents })
    };
    matrix.fill(cx, make).unwrap();
}

/// The last owner, whoever it is, releases the tiles behind the work of all owners, and no thread waits.
#[test]
fn tiles_go_behind_the_work_of_all_that_had_them() {
    for plans_are_last in [false, true] {
        let (memory, works) = (Arc::new(Watched::default()), [0, 1, 2].map(|_| Arc::new(Work::default())));
        let cx = context(&memory);
        let matrix = matrix(&cx);
        let plans = [0, 1].map(|_| matrix.contents("A").unwrap());
        let destroy = |at: usize| {
            plans[at].memory.release_also_behind(&pending(&[&works[at], &works[2]]));
        };
        if plans_are_last {
            // New tiles replace them, which no plan uses.
            fill(&matrix, &cx);
            destroy(0);
            destroy(1);
            assert!(memory.behind.lock().is_empty(), "a plan has let go of what another one reads");
            drop(plans);
            drop(matrix);
            assert_eq!(memory.now.load(Ordering::Relaxed), BYTES);
        } else {
            destroy(0);
            destroy(1);
            drop(plans);
            assert!(memory.behind.lock().is_empty(), "the matrix has them");
            drop(matrix);
            assert_eq!(memory.now.load(Ordering::Relaxed), 0);
        }
        let behind = std::mem::take(&mut *memory.behind.lock());
        let [(bytes, pending)] = &behind[..] else { panic!("{} pieces", behind.len()) };
        assert_eq!(*bytes, BYTES);
        for work in &works {
            assert!(!pending.is_done());
            work.0.store(true, Ordering::Relaxed);
        }
        assert!(pending.is_done());
    }
}

/// Many plans come and go with one matrix: work that is done is not kept.
#[test]
fn work_that_is_done_is_forgotten() {
    let memory = Arc::new(Watched::default());
    let cx = context(&memory);
    let (matrix, last) = (matrix(&cx), Arc::new(Work::default()));
    let contents = matrix.contents("A").unwrap();
    let mut watched = Vec::new();
    for _ in 0..100 {
        let work = Arc::new(Work::default());
        contents.memory.release_also_behind(&pending(&[&work]));
        work.0.store(true, Ordering::Relaxed);
        watched.push(Arc::downgrade(&work));
    }
    contents.memory.release_also_behind(&pending(&[&last]));
    assert!(watched.iter().all(|work| work.upgrade().is_none()));
    assert_eq!(Arc::strong_count(&last), 2);
}

/// User memory that a graph keeps is not released, nor is memory released after it.
#[test]
fn what_graphs_keep_is_not_given_back() {
    let (memory, work) = (Arc::new(Watched::default()), Arc::new(Work::default()));
    let cx = context(&memory);
    let allocator = cx.allocator.scoped(usize::MAX);
    let blocks = [0, 1, 2].map(|_| Block::new(&allocator, BYTES).unwrap());
    allocator.release_also_behind(&pending(&[&work]));
    assert!(allocator.check_release(&pending(&[&work])).is_ok());
    let addresses = blocks.each_ref().map(Block::address);
    let [first, second, third] = blocks;
    drop(first);
    memory.kept.store(true, Ordering::Relaxed);
    assert!(allocator.check_release(&pending(&[&work])).is_err());
    drop(second);
    memory.kept.store(false, Ordering::Relaxed);
    drop(third);
    assert_eq!((memory.behind.lock().len(), memory.now.load(Ordering::Relaxed)), (1, 0));
    assert_eq!(allocator.live_bytes(), 0);
    addresses[1..].iter().for_each(|&address| HostMemory.release(address, BYTES, Address::NULL));
}
