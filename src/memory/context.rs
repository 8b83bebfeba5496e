//! What a call carries from the handle to whoever does its work.

use std::sync::Arc;

use super::Allocator;
use crate::error::{Error, Result};
use crate::types::{Address, PointerMode};

/// What a call carries from the handle: where it runs and with what memory.
#[derive(Clone, Debug)]
pub struct Context {
    /// The user's stream; the host ignores it.
    pub stream: Address,
    /// Where alpha and beta live.
    pub pointer_mode: PointerMode,
    /// Scratch memory of the handle, for execute.
    pub workspace: Workspace,
    /// [`COUNTER_BYTES`] of the handle, zero between calls: what executes and
    /// has counted in it leaves it zero. NULL where the backend has no use for it.
    pub counters: Address,
    /// Memory for what a plan keeps and for analysis' temporaries.
    pub allocator: Arc<Allocator>,
}

/// Size of [`Context::counters`].
pub const COUNTER_BYTES: usize = 32 * SLOTS;
/// Counters of a handle, of 32 bits: what a launch may hand over between blocks.
/// A matrix of 500 million entries has at most this many rows of more than 2^15.
pub const COUNTERS: usize = 1 << 14;
/// Slots of a handle, in the same memory: 32 bytes for a row's sum that a block hands to another.
/// A matrix of 850 million entries needs no more, with parts of 2^15 entries.
pub const SLOTS: usize = 1 << 15;

/// Scratch memory that execute may use.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    /// Its address, aligned to [`USER_ALIGNMENT`](super::USER_ALIGNMENT).
    pub address: Address,
    /// Its size in bytes.
    pub bytes: usize,
}

impl Workspace {
    /// What is left of it behind so many bytes, which it has.
    pub fn after(&self, bytes: usize) -> Self {
        Workspace { address: self.address.offset(bytes), bytes: self.bytes - bytes }
    }

    /// The workspace must hold `needed` bytes.
    pub fn require(&self, needed: usize) -> Result<()> {
        if self.bytes >= needed {
            return Ok(());
        }
        Err(Error::new(
            crate::error::Status::InsufficientResources,
            format!(
                "handle: its workspace has {} bytes and this call needs {needed}; tarsiaPlan_prepare makes what \
                 SpMV and SpMM of nHint columns need, for more give tarsiaSetWorkspace what \
                 tarsiaPlan_workspaceSize says",
                self.bytes
            ),
        ))
    }
}
