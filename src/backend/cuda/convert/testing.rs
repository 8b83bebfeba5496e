//! What unit tests on a device share.

use std::cell::RefCell;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::backend::cuda::device::Device;
use crate::backend::cuda::memory::CudaMemory;
use crate::backend::cuda::module;
use crate::memory::{Allocator, Context, Workspace};
use crate::types::{Address, IndexType, PointerMode};

/// While a stream is captured, no thread may wait for the NULL stream: a test
/// that captures waits until it is alone, and the others until it is done.
static CAPTURES: RwLock<()> = RwLock::new(());

enum Turn {
    Shared(#[allow(dead_code)] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code)] RwLockWriteGuard<'static, ()>),
}

thread_local! {
    /// Of the test that this thread runs, to its end.
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// No other test uses a device from here to the end of this one.
pub fn be_alone() {
    TURN.with_borrow_mut(|turn| {
        *turn = None;
        *turn = Some(Turn::Alone(CAPTURES.write()));
    });
}

/// A device, or None with a line that says so.
pub fn device() -> Option<Arc<Device>> {
    match module::available().and_then(|()| Device::open(None)) {
        Ok(device) => {
            TURN.with_borrow_mut(|turn| {
                turn.get_or_insert_with(|| Turn::Shared(CAPTURES.read()));
            });
            Some(device)
        }
        Err(error) => {
            println!("SKIP no device: {error}");
            None
        }
    }
}

/// A device and a context of calls on it, or None.
pub fn context_of_device() -> Option<(Arc<Device>, Context)> {
    let device = device()?;
    let memory = Arc::new(CudaMemory(Arc::clone(&device)));
    Some((device, context(Allocator::new(memory, Address::NULL, usize::MAX))))
}

pub fn context(allocator: Arc<Allocator>) -> Context {
    Context {
        stream: Address::NULL,
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator,
    }
}

/// Indices in the width that a descriptor says, aligned.
pub fn typed(numbers: &[i64], index: IndexType) -> Vec<i64> {
    if index == IndexType::I64 {
        return numbers.to_vec();
    }
    let mut out = vec![0_i64; numbers.len().div_ceil(2)];
    for (to, &from) in bytemuck::cast_slice_mut::<i64, i32>(&mut out).iter_mut().zip(numbers) {
        *to = from as i32;
    }
    out
}
