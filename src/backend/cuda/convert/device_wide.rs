//! Device-wide sorts and scans of kernels/format/device_wide.cu. They are CUB's, with the CUDA runtime linked
//! in, which works in the thread's current context.

use std::ffi::c_int;

use bytemuck::Pod;
use parking_lot::Mutex;

use crate::backend::cuda::device::{DeviceCall, Relaxed};
use crate::backend::cuda::driver::{check, raw, Raw};
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::error::{Error, Result};
use crate::memory::Context;
use crate::types::Address;

/// Return code of the functions in a build that lacks them.
const NOT_LINKED: c_int = -1;

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),* $(,)?);)*) => {
        #[cfg(tarsia_device_wide)]
        extern "C" { $(fn $name($($argument: $ty),*) -> c_int;)* }
        $(
            #[cfg(not(tarsia_device_wide))]
            unsafe extern "C" fn $name($(_: $ty),*) -> c_int {
                NOT_LINKED
            }
        )*
    };
}
functions! {
    fn tarsia_dw_sort_pairs_u32_u32(temp: Raw, temp_bytes: *mut usize, keys_a: Raw, keys_b: Raw, values_a: Raw,
        values_b: Raw, n: i64, bits: c_int, selected: *mut c_int, stream: Raw);
    fn tarsia_dw_sort_pairs_u64_u32(temp: Raw, temp_bytes: *mut usize, keys_a: Raw, keys_b: Raw, values_a: Raw,
        values_b: Raw, n: i64, bits: c_int, selected: *mut c_int, stream: Raw);
    fn tarsia_dw_sort_pairs_u64_u64(temp: Raw, temp_bytes: *mut usize, keys_a: Raw, keys_b: Raw, values_a: Raw,
        values_b: Raw, n: i64, bits: c_int, selected: *mut c_int, stream: Raw);
    fn tarsia_dw_exclusive_scan_i64(temp: Raw, temp_bytes: *mut usize, from: Raw, to: Raw, n: i64, stream: Raw);
}

type Sort = unsafe extern "C" fn(Raw, *mut usize, Raw, Raw, Raw, Raw, i64, c_int, *mut c_int, Raw) -> c_int;

/// Types of a key and a position that can be sorted together.
pub trait Pair {
    /// Type of the sort key.
    type Key: Pod;
    /// Type of the position that is sorted along with its key.
    type Position: Pod;
    /// Bits of key and position, as the names of kernels spell them.
    const BITS: [usize; 2] = [8 * size_of::<Self::Key>(), 8 * size_of::<Self::Position>()];
    /// Sort function of the linked object for these types.
    const SORT: Sort;
}

macro_rules! pairs {
    ($($name:ident: $key:ident $position:ident $sort:ident;)*) => { $(
        /// Pair of a key and a position of these widths.
        pub struct $name;
        impl Pair for $name {
            type Key = $key;
            type Position = $position;
            const SORT: Sort = $sort;
        }
    )* };
}
pairs! {
    Narrow: u32 u32 tarsia_dw_sort_pairs_u32_u32;
    WideKeys: u64 u32 tarsia_dw_sort_pairs_u64_u32;
    Wide: u64 u64 tarsia_dw_sort_pairs_u64_u64;
}

/// Serializes calls of CUB: its caches of device properties are function statics that are initialized without
/// a lock, since a lock would need libstdc++.
static CUB: Mutex<()> = Mutex::new(());

/// Runs `call(temp, &mut bytes)` once to learn the size and again with that much temporary memory.
fn with_temporary(cx: &Context, what: &str, mut call: impl FnMut(Raw, *mut usize) -> c_int) -> Result<()> {
    let mut run = |temp: Raw, bytes: *mut usize| {
        let _one_at_a_time = CUB.lock();
        let _relaxed = Relaxed::enter();
        match call(temp, bytes) {
            NOT_LINKED => {
                Err(Error::unsupported("backend: this library was built without device-wide sorts and scans"))
            }
            // The runtime's error codes are the driver's for the errors that can happen here.
            code => check(code as u32, what),
        }
    };
    let mut bytes = 0;
    run(std::ptr::null_mut(), &mut bytes)?;
    // The address must not be NULL, which would ask for the size again.
    bytes = bytes.max(1);
    let temporary = DeviceBuffer::<u8>::new(cx, bytes)?;
    run(raw(temporary.address()), &mut bytes)
}

/// Sorts `n` pairs by bits [0, `bits`) of the keys, ascending and stable. The pairs are in the first array of
/// each two, and both arrays are overwritten; returns which of them (0 or 1) holds the sorted pairs. Blocks.
pub fn sort_pairs<P: Pair>(
    cx: &Context,
    keys: [&DeviceBuffer<P::Key>; 2],
    positions: [&DeviceBuffer<P::Position>; 2],
    n: usize,
    bits: u32,
) -> Result<usize> {
    assert!(keys.iter().all(|b| b.len() >= n) && positions.iter().all(|b| b.len() >= n));
    assert!(bits as usize <= 8 * size_of::<P::Key>());
    if n == 0 {
        return Ok(0);
    }
    let mut selected = 0;
    let (keys, positions) = (keys.map(|b| raw(b.address())), positions.map(|b| raw(b.address())));
    with_temporary(cx, "sorting on the device", |temp, bytes| {
        // SAFETY: the arrays hold n elements, and temp the bytes for which the first call asked.
        unsafe {
            (P::SORT)(
                temp,
                bytes,
                keys[0],
                keys[1],
                positions[0],
                positions[1],
                n as i64,
                bits as c_int,
                &mut selected,
                raw(cx.stream),
            )
        }
    })?;
    Ok(usize::from(selected != 0))
}

/// Computes the exclusive prefix sums `to[i]` = `from[0]` + … + `from[i − 1]` of `n` numbers of type i64;
/// `from` and `to` may be the same array. Blocks.
///
/// # Safety
/// Both addresses hold `n` numbers on the device of the current context.
pub unsafe fn exclusive_scan(cx: &Context, from: Address, to: Address, n: usize) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    with_temporary(cx, "a scan on the device", |temp, bytes| {
        // SAFETY: the caller's promise; temp holds the bytes for which the first call asked.
        unsafe { tarsia_dw_exclusive_scan_i64(temp, bytes, raw(from), raw(to), n as i64, raw(cx.stream)) }
    })?;
    Ok(())
}

/// Maximum count of numbers that one block scans (`scan_in_block` in kernels/common/block.cuh), in one launch: CUB
/// takes two launches, and an allocation before them, which together are 15 µs of the host's (H100).
pub const SCANNED_BY_A_BLOCK: usize = 1 << 15;

/// Replaces numbers by their exclusive prefix sums; the last one may be any number. Only launches where they are
/// few ([`SCANNED_BY_A_BLOCK`]).
///
/// # Safety
/// There are `count` numbers of type i64 on the device of the current context.
pub unsafe fn scan_in_place(cx: &DeviceCall<'_>, numbers: Address, count: usize) -> Result<()> {
    if count == 0 || count > SCANNED_BY_A_BLOCK {
        // SAFETY: the caller's promise.
        return unsafe { exclusive_scan(cx, numbers, numbers, count) };
    }
    let kernel = cx.device.modules().kernel("analysis/scan", "scan_few")?;
    // SAFETY: the caller's promise.
    unsafe { launch!(kernel, 1, 1024, 0, cx.stream; numbers, count as i64) }
}

/// Replaces the numbers of an array by their exclusive prefix sums. Blocks.
pub fn scan(cx: &Context, numbers: &DeviceBuffer<i64>) -> Result<()> {
    // SAFETY: the array has these numbers, on the device of the current context.
    unsafe { exclusive_scan(cx, numbers.address(), numbers.address(), numbers.len()) }
}

/// Replaces counts by their exclusive prefix sums, where each item's data starts; returns the last one, which
/// is the total if the last count is 0.
pub fn starts(cx: &Context, counts: &DeviceBuffer<i64>) -> Result<i64> {
    scan(cx, counts)?;
    Ok(counts.read(counts.len() - 1, 1)?[0])
}

/// Sorted keys and the positions that were sorted along with them.
pub type Sorted<P> = (DeviceBuffer<<P as Pair>::Key>, DeviceBuffer<<P as Pair>::Position>);

/// Makes `n` pairs by calling `fill(keys, positions)` with the addresses of both arrays, and sorts them by bits
/// [0, `bits`) of the keys, ascending and stable. Blocks.
pub fn sorted<P: Pair>(
    cx: &Context,
    n: usize,
    bits: u32,
    fill: impl FnOnce(Address, Address) -> Result<()>,
) -> Result<Sorted<P>> {
    let keys = [DeviceBuffer::<P::Key>::new(cx, n)?, DeviceBuffer::new(cx, n)?];
    let positions = [DeviceBuffer::<P::Position>::new(cx, n)?, DeviceBuffer::new(cx, n)?];
    fill(keys[0].address(), positions[0].address())?;
    let selected = sort_pairs::<P>(cx, keys.each_ref(), positions.each_ref(), n, bits)?;
    let ([a, b], [c, d]) = (keys, positions);
    Ok(if selected == 0 { (a, c) } else { (b, d) })
}
