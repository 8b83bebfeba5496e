//! Timing on the device: events, a cold L2, and the timed executions of effort TUNED.

use std::sync::Arc;

use super::device::{Device, DeviceCall};
use super::driver::{self, check, raw, Raw};
use super::launch::{launch, Kernel};
use super::memory::{self, DeviceBuffer, Fill};
use crate::backend::{SpmmExecutor, SpmvExecutor};
use crate::error::Result;
use crate::matrix::{DenseMatrix, DenseVector};
use crate::memory::{Allocator, Context, Workspace, COUNTER_BYTES};
use crate::problem::{SpmmProblem, SpmvProblem};
use crate::types::{Address, ComputeType, DataType, Order, PointerMode};

/// CUDA stream that is destroyed when this is dropped.
pub struct Stream {
    device: Arc<Device>,
    stream: Address,
}

impl Stream {
    /// Makes a stream that does not wait for the NULL stream.
    pub fn new(ordinal: i32) -> Result<Self> {
        const NON_BLOCKING: u32 = 1;
        let device = Device::open(Some(ordinal))?;
        let mut stream: Raw = std::ptr::null_mut();
        {
            let _entered = device.enter()?;
            // SAFETY: `stream` is valid for a write.
            check(unsafe { driver::cuStreamCreate(&mut stream, NON_BLOCKING) }, "making a stream")?;
        }
        Ok(Stream { device, stream: Address::new(stream) })
    }

    /// Address of the stream, as `tarsiaSetStream` takes it.
    pub fn address(&self) -> Address {
        self.stream
    }

    /// Device of the stream.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: made by `new`; the driver finishes its work first.
            unsafe { driver::cuStreamDestroy_v2(raw(self.stream)) };
        }
    }
}

/// Stopwatch for work that is enqueued on a stream.
pub struct Stopwatch {
    device: Arc<Device>,
    stream: Address,
    events: [Address; 2],
    flush: Kernel,
    buffer: DeviceBuffer<u32>,
}

impl Stopwatch {
    /// Makes a stopwatch for a stream of the device.
    pub fn new(ordinal: i32, stream: Address) -> Result<Self> {
        let device = Device::open(Some(ordinal))?;
        let entered = device.enter()?;
        let mut events = [Address::NULL; 2];
        for event in &mut events {
            let mut made: Raw = std::ptr::null_mut();
            // SAFETY: `made` is valid for a write.
            check(unsafe { driver::cuEventCreate(&mut made, 0) }, "making an event")?;
            *event = Address::new(made);
        }
        let flush = device.modules().kernel("tools/measure", "measure_flush")?;
        let memory: Arc<dyn crate::memory::RawMemory> = Arc::new(memory::CudaMemory(Arc::clone(&device)));
        let cx = context(stream, Allocator::new(memory, Address::NULL, usize::MAX));
        // Three times the L2 cache, plus four words; nothing is ever written to it.
        let words = device.properties().l2_bytes * 3 / 4 / 4 * 4;
        let mut buffer = DeviceBuffer::zeroed(&cx, words + 4)?;
        memory::synchronize(stream)?;
        buffer.mark_filled();
        drop(entered);
        Ok(Stopwatch { device, stream, events, flush, buffer })
    }

    /// Enqueues reads of more clean memory than L2 holds, so that the work that follows finds none of its
    /// data in L2 and no dirty line has to be written back first.
    pub fn flush_l2(&self) -> Result<()> {
        let _entered = self.device.enter()?;
        let (words, blocks) = (self.buffer.len() as u64 - 4, self.device.properties().multiprocessors * 8);
        // SAFETY: the buffer has that many words and four more.
        unsafe { launch!(self.flush, blocks, 256, 0, self.stream; self.buffer.address(), words) }
    }

    /// Enqueues a launch that reads and writes nothing.
    pub fn launch_nothing(&self) -> Result<()> {
        let _entered = self.device.enter()?;
        // SAFETY: with 0 words the kernel reads none.
        unsafe { launch!(self.flush, 1, 32, 0, self.stream; self.buffer.address(), 0_u64) }
    }

    /// Measures the bytes per second, read and written, of copies of an array, as the median of several runs.
    pub fn copy_rate(&self) -> Result<f64> {
        // Far beyond L2, like the arrays by which the rate of the floors was measured.
        const BYTES: usize = 1 << 30;
        const RUNS: usize = 9;
        let entered = self.device.enter()?;
        let memory: Arc<dyn crate::memory::RawMemory> =
            Arc::new(memory::CudaMemory(Arc::clone(&self.device)));
        let cx = context(self.stream, Allocator::new(memory, Address::NULL, usize::MAX));
        let (from, to) = (DeviceBuffer::<u8>::zeroed(&cx, BYTES)?, DeviceBuffer::<u8>::zeroed(&cx, BYTES)?);
        let mut micros = [0.0; RUNS + 1];
        for micros in &mut micros {
            self.start()?;
            memory::copy(to.address(), from.address(), BYTES, self.stream)?;
            self.stop()?;
            *micros = self.micros()?;
        }
        // The first run warms up.
        let timed = &mut micros[1..];
        timed.sort_unstable_by(f64::total_cmp);
        let rate = 2.0 * BYTES as f64 / (timed[RUNS / 2] * 1e-6);
        drop((from, to));
        drop(entered);
        Ok(rate)
    }

    /// Device on which work is timed.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Records the event of the beginning.
    pub fn start(&self) -> Result<()> {
        self.record(0)
    }

    /// Records the event of the end.
    pub fn stop(&self) -> Result<()> {
        self.record(1)
    }

    fn record(&self, which: usize) -> Result<()> {
        let _entered = self.device.enter()?;
        // SAFETY: event and stream are live.
        check(
            unsafe { driver::cuEventRecord(raw(self.events[which]), raw(self.stream)) },
            "recording an event",
        )
    }

    /// Waits for both events and returns the microseconds between them.
    pub fn micros(&self) -> Result<f64> {
        let _entered = self.device.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events were recorded; the answer is valid for a write.
        unsafe {
            check(driver::cuEventSynchronize(raw(self.events[1])), "waiting for an event")?;
            let [start, stop] = self.events.map(raw);
            check(driver::cuEventElapsedTime(&mut milliseconds, start, stop), "reading events")?;
        }
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            let _ = memory::synchronize(self.stream);
            for event in self.events {
                // SAFETY: made by `new`.
                unsafe { driver::cuEventDestroy_v2(raw(event)) };
            }
        }
    }
}

/// Returns the CUDA version of the driver: 13000 for 13.0.
pub fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `version` is valid for a write.
    check(unsafe { driver::cuDriverGetVersion(&mut version) }, "cuDriverGetVersion")?;
    Ok(version)
}

fn context(stream: Address, allocator: Arc<Allocator>) -> Context {
    Context {
        stream,
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator,
    }
}

/// Number of executions that are timed, after one that is not.
const RUNS: usize = 5;

/// Measures the seconds that one SpMV takes.
pub(super) fn spmv(cx: &DeviceCall<'_>, problem: &SpmvProblem, executor: &SpmvExecutor) -> Result<f64> {
    let (rows, cols, _) = problem.a.shape();
    let (rows, cols) = problem.op.shape(rows, cols);
    let x = operand(cx, problem.types.x, cols)?;
    let y = operand(cx, problem.types.y, rows)?;
    let vector = |buffer: &DeviceBuffer<u8>, len, value_type| DenseVector {
        len,
        values: buffer.address(),
        value_type,
        writable: true,
    };
    let (x, y) = (vector(&x, cols, problem.types.x), vector(&y, rows, problem.types.y));
    let scalars = Scalars::new(problem.types.compute);
    median(cx, executor.workspace_bytes(1), |cx| executor.execute(cx, scalars.one(), &x, scalars.zero(), &y))
}

/// Measures the seconds that one SpMM with nHint columns takes.
pub(super) fn spmm(cx: &DeviceCall<'_>, problem: &SpmmProblem, executor: &SpmmExecutor) -> Result<f64> {
    let (rows, cols, _) = problem.a.shape();
    let (m, k) = problem.op.shape(rows, cols);
    let n = problem.n_hint.max(1);
    let (b_rows, b_cols) = problem.op_b.shape(k, n);
    let b = operand(cx, problem.types.x, b_rows.saturating_mul(b_cols))?;
    let c = operand(cx, problem.types.y, m.saturating_mul(n))?;
    let matrix = |buffer: &DeviceBuffer<u8>, rows, cols, order, value_type| DenseMatrix {
        rows,
        cols,
        ld: if order == Order::Col { rows } else { cols },
        values: buffer.address(),
        value_type,
        order,
        writable: true,
    };
    let b = matrix(&b, b_rows, b_cols, problem.b_order, problem.types.x);
    let c = matrix(&c, m, n, problem.c_order, problem.types.y);
    let scalars = Scalars::new(problem.types.compute);
    median(cx, executor.workspace_bytes(n as usize), |cx| {
        executor.execute(cx, scalars.one(), &b, scalars.zero(), &c)
    })
}

/// Makes a dense operand whose values are not zeros.
fn operand(cx: &DeviceCall<'_>, value_type: DataType, len: i64) -> Result<DeviceBuffer<u8>> {
    let bytes = (len as usize).saturating_mul(value_type.size());
    let buffer = DeviceBuffer::<u8>::new(cx, bytes)?;
    let fill = cx.device.modules().kernel("tools/measure", "measure_fill")?;
    let width = value_type.align().max(2) as u32;
    let elements = (bytes as u64) / u64::from(width);
    let kind = match value_type {
        DataType::R16BF => 3,
        _ => width,
    };
    let blocks = cx.device.properties().multiprocessors * 8;
    // SAFETY: the buffer has that many bytes.
    unsafe { launch!(fill, blocks, 256, 0, cx.stream; buffer.address(), elements, kind)? };
    Ok(buffer)
}

fn median(
    cx: &DeviceCall<'_>,
    workspace_bytes: usize,
    execute: impl Fn(&Context) -> Result<()>,
) -> Result<f64> {
    let buffer = DeviceBuffer::<u8>::new(cx, workspace_bytes)?;
    let counters = DeviceBuffer::<u8>::zeroed(cx, COUNTER_BYTES)?;
    let workspace = Workspace { address: buffer.address(), bytes: buffer.bytes() };
    let device = cx.device;
    let cx = Context {
        workspace,
        counters: counters.address(),
        pointer_mode: PointerMode::Host,
        ..Context::clone(cx)
    };
    let watch = Stopwatch::new(device.ordinal(), cx.stream)?;
    execute(&cx)?;
    let mut micros = [0.0; RUNS];
    for micros in &mut micros {
        watch.flush_l2()?;
        watch.start()?;
        execute(&cx)?;
        watch.stop()?;
        *micros = watch.micros()?;
    }
    micros.sort_unstable_by(f64::total_cmp);
    Ok(micros[RUNS / 2] * 1e-6)
}

/// Scalars 1 and 0 of a compute type: the real part comes first, and the rest is zeros.
struct Scalars {
    one: [f64; 2],
    zero: [f64; 2],
}

impl Scalars {
    fn new(compute: ComputeType) -> Self {
        let one = match compute {
            ComputeType::R64F | ComputeType::R64FPedantic | ComputeType::C64F => 1.0,
            ComputeType::R32F | ComputeType::R32FPedantic | ComputeType::Tf32 | ComputeType::C32F => {
                f64::from_bits(u64::from(1.0_f32.to_bits()))
            }
        };
        Scalars { one: [one, 0.0], zero: [0.0; 2] }
    }

    fn one(&self) -> Address {
        Address::new(&self.one)
    }

    fn zero(&self) -> Address {
        Address::new(&self.zero)
    }
}
