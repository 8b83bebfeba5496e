//! Memory of one allocation for many arrays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use super::synchronize;
use crate::backend::memory::{Block, RawMemory};
use crate::backend::{Allocator, Context};
use crate::error::{Error, Result};
use crate::types::Address;

/// Arrays of an arena begin at multiples of this: what the driver's pool gives,
/// and whole lines of the L2.
const ALIGNMENT: usize = 256;
/// What an arena that grows takes beyond need: room for small arrays.
const MOST_SPARE: usize = 1 << 20;

/// Memory for many arrays, taken from the call's allocator at once and given
/// back at once, when the arena and every array of it have been dropped.
///
/// Arrays are [`super::DeviceBuffer`]s that are made with [`Arena::context`];
/// whatever takes a context (sorts, scans) makes its temporaries in the arena
/// too. Dropping such an array waits for nothing and frees nothing; the drop
/// that frees the arena waits for the stream, unless [`Arena::seal`] has said
/// that it was waited for. More arrays than there is room for take further
/// memory, so the size need not be exact.
///
/// ```text
/// let arena = Arena::new(cx, 2 * Arena::room::<i64>(windows) + Arena::room::<u32>(rows))?;
/// let counts = DeviceBuffer::<i64>::new(arena.context(), windows)?;
/// …kernels…
/// synchronize(cx.stream)?;
/// arena.seal();
/// ```
///
/// It is for temporaries, and for the arrays that an executor keeps and drops
/// together. A large temporary that another could follow in the same place is
/// better off alone: an arena's memory is not used twice.
pub struct Arena {
    pieces: Arc<Pieces>,
    cx: Context,
}

struct Pieces {
    parent: Arc<Allocator>,
    stream: Address,
    pending: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last one is in use.
    blocks: Vec<Block>,
    /// Bytes of the last one that are taken.
    taken: usize,
}

impl Arena {
    /// Takes `bytes` bytes from the call's allocator (none if `bytes` is 0). The
    /// context must be current from here to the drop of the last array, or to
    /// [`Arena::seal`].
    pub fn new(cx: &Context, bytes: usize) -> Result<Self> {
        let state = match bytes {
            0 => State::default(),
            _ => State { blocks: vec![Block::new(&cx.allocator, bytes)?], taken: 0 },
        };
        let pieces = Arc::new(Pieces {
            parent: Arc::clone(&cx.allocator),
            stream: cx.stream,
            pending: AtomicBool::new(true),
            state: Mutex::new(state),
        });
        let memory: Arc<dyn RawMemory> = Arc::clone(&pieces) as Arc<dyn RawMemory>;
        let cx = Context { allocator: Allocator::new(memory, cx.stream, usize::MAX), ..cx.clone() };
        Ok(Arena { pieces, cx })
    }

    /// Bytes that an array of `len` elements takes of an arena.
    pub fn room<T>(len: usize) -> usize {
        rounded(len.saturating_mul(size_of::<T>()))
    }

    /// The call's context with the arena's memory.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// No work uses the arena any more.
    pub fn seal(&self) {
        self.pieces.pending.store(false, Ordering::Relaxed);
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}

impl RawMemory for Pieces {
    fn allocate(&self, bytes: usize, _stream: Address) -> Result<Address> {
        let bytes = rounded(bytes);
        let mut state = self.state.lock();
        let last = state.blocks.last().map_or(0, Block::bytes);
        if bytes > last - state.taken.min(last) {
            // As much again as the last one: few of them, whatever the guess was.
            let block = Block::new(&self.parent, bytes.max(last.min(MOST_SPARE)))?;
            state.blocks.try_reserve(1).map_err(|_| Error::out_of_memory(size_of::<Block>()))?;
            state.blocks.push(block);
            state.taken = 0;
            // Its arrays have no end to be waited for yet.
            self.pending.store(true, Ordering::Relaxed);
        }
        let block = &state.blocks[state.blocks.len() - 1];
        let address = block.address().offset(state.taken);
        state.taken += bytes;
        Ok(address)
    }

    fn release(&self, _address: Address, _stream: Address) {}

    fn keeps_pieces(&self) -> bool {
        true
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if *self.pending.get_mut() && !self.state.get_mut().blocks.is_empty() {
            // An error here is one of the work before; the next call says it.
            let _ = synchronize(self.stream);
        }
    }
}
