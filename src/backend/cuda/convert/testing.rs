//! What unit tests on a device share.

use std::sync::Arc;

use crate::backend::cuda::device::Device;
use crate::backend::cuda::memory::CudaMemory;
use crate::backend::{Allocator, Context, Workspace};
use crate::types::{Address, IndexType, PointerMode};

/// A device and a context of calls on it, or None with a line that says so.
pub fn context_of_device() -> Option<(Arc<Device>, Context)> {
    let opened = crate::backend::cuda::module::available().and_then(|()| Device::open(None));
    match opened {
        Ok(device) => {
            let memory = Arc::new(CudaMemory(Arc::clone(&device)));
            Some((device, context(Allocator::new(memory, Address::NULL, usize::MAX))))
        }
        Err(error) => {
            println!("SKIP no device: {error}");
            None
        }
    }
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
