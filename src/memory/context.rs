//! Context that a call passes from the handle down to the code that does its work.

use std::sync::Arc;

use super::Allocator;
use crate::error::{require, Result};
use crate::types::{Address, PointerMode};

/// Context of a call, taken from its handle: where it runs and with which memory.
#[derive(Clone, Debug)]
pub struct Context {
    /// User's stream; the host backend ignores it.
    pub stream: Address,
    /// Location of alpha and beta: on the host or in the backend's memory.
    pub pointer_mode: PointerMode,
    /// Workspace of the handle, for execute.
    pub workspace: Workspace,
    /// [`COUNTER_BYTES`] of counters of the handle, zero between calls: an execution that counts in it leaves
    /// it zero. NULL where the backend does not use it.
    pub counters: Address,
    /// Allocator of memory that a plan keeps and of temporary memory of analysis.
    pub allocator: Arc<Allocator>,
}

/// Size of [`Context::counters`] in bytes.
pub const COUNTER_BYTES: usize = 32 * SLOTS;
/// Number of 32-bit counters of a handle, by which blocks of a launch hand over partial sums. A matrix of 500
/// million entries has at most this many rows of more than 2^15.
pub const COUNTERS: usize = 1 << 14;
/// Number of slots of a handle, in the same memory: 32 bytes for a partial sum that one block hands to
/// another. A matrix of 850 million entries needs no more, with pieces of 2^15 entries.
pub const SLOTS: usize = 1 << 15;

/// Workspace: scratch memory that execute may use.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    /// Address, aligned to [`USER_ALIGNMENT`](super::USER_ALIGNMENT).
    pub address: Address,
    /// Size in bytes.
    pub bytes: usize,
}

impl Workspace {
    /// Returns the rest of the workspace behind its first `bytes` bytes; it must have that many.
    pub fn after(&self, bytes: usize) -> Self {
        Workspace { address: self.address.offset(bytes), bytes: self.bytes - bytes }
    }

    /// Returns an error if the workspace has less than `needed` bytes.
    #[inline]
    pub fn require(&self, needed: usize) -> Result<()> {
        require!(
            self.bytes >= needed,
            new(crate::error::Status::InsufficientResources),
            "handle: its workspace has {} bytes and this call needs {needed}; tarsiaPlan_prepare makes what \
             SpMV and SpMM of nHint columns need, for more give tarsiaSetWorkspace what \
             tarsiaPlan_workspaceSize says",
            self.bytes
        );
        Ok(())
    }
}
