//! Helpers that unit tests on a device share.

use std::cell::RefCell;
use std::sync::Arc;

use bytemuck::Pod;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::backend::cuda::device::Device;
use crate::backend::cuda::memory::{CudaMemory, DeviceBuffer};
use crate::backend::cuda::module;
use crate::backend::cuda::operand::Rows;
use crate::format::testing::TestMatrix;
use crate::memory::{Allocator, Context, Workspace};
use crate::types::{Address, IndexType, PointerMode};

/// Lock for stream captures. No thread may wait for the NULL stream while a stream is captured, so a test
/// that captures waits until it is alone, and the others wait until it is done.
static CAPTURES: RwLock<()> = RwLock::new(());

enum Turn {
    Shared(#[allow(dead_code)] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code)] RwLockWriteGuard<'static, ()>),
}

thread_local! {
    /// Lock that the test on this thread holds until it ends.
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// Waits until no other test uses a device, and keeps others from it until this test ends.
pub fn be_alone() {
    TURN.with_borrow_mut(|turn| {
        *turn = None;
        *turn = Some(Turn::Alone(CAPTURES.write()));
    });
}

/// Opens a device, or prints that there is none and returns `None`.
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

/// Opens a device and makes a context for calls on it, or returns `None`.
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

/// Packs indices in the width that a descriptor names, aligned.
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

/// Combinations of types of row offsets and column indices.
pub const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// Rows of a matrix on the device, and their values.
pub struct Uploaded<V: Pod> {
    pub rows: Rows,
    pub values: Vec<V>,
    _arrays: (DeviceBuffer<i64>, DeviceBuffer<i64>, DeviceBuffer<V>),
}

impl<V: Pod> Uploaded<V> {
    /// Copies rows whose offsets and columns are counted from `base`.
    pub fn new(
        cx: &Context,
        (base, cols): (i64, usize),
        [offsets, columns]: [&[i64]; 2],
        widths: (IndexType, IndexType),
        values: Vec<V>,
    ) -> Self {
        let count = offsets.len() as i64 - 1;
        let offsets = DeviceBuffer::from_slice(cx, &typed(offsets, widths.0)).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &typed(columns, widths.1)).unwrap();
        let on_device = DeviceBuffer::from_slice(cx, &values).unwrap();
        let rows = Rows {
            offsets: offsets.address(),
            indices: indices.address(),
            values: on_device.address(),
            offset_type: widths.0,
            index_type: widths.1,
            base,
            rows: count,
            cols: cols as i64,
            nnz: values.len() as i64,
        };
        Uploaded { rows, values, _arrays: (offsets, indices, on_device) }
    }

    /// Copies a matrix with these values.
    pub fn of(cx: &Context, matrix: &TestMatrix, widths: (IndexType, IndexType), values: Vec<V>) -> Self {
        Self::new(cx, (matrix.base, matrix.cols), [&matrix.offsets, &matrix.indices], widths, values)
    }
}

/// Copies all elements of an array to the host.
pub fn all<T: Pod>(buffer: &DeviceBuffer<T>) -> Vec<T> {
    buffer.read(0, buffer.len()).unwrap()
}
