//! Copies inside host memory.

use super::pool;
use crate::error::Result;
use crate::matrix::Lines;
use crate::types::Address;

/// Sets host memory to zero bytes.
pub(crate) fn clear(address: Address, bytes: usize) {
    if bytes > 0 {
        // SAFETY: callers pass memory of this size that they have allocated.
        unsafe { std::ptr::write_bytes(address.as_mut_ptr::<u8>(), 0, bytes) };
    }
}

/// Copies lines in parallel, about 256 KiB per task where there are many.
pub(crate) fn copy_lines(from: &Lines, to: &Lines) {
    /// Approximate number of bytes of a task: less than the second-level cache of a core holds.
    const TASK: usize = 256 << 10;
    if from.bytes == 0 || from.count == 0 {
        return;
    }
    // A task has whole lines, or a piece of a single line.
    let lines = (TASK / from.bytes).max(1);
    let (pieces, tasks) = match from.count {
        1 => (TASK, from.bytes.div_ceil(TASK)),
        count => (from.bytes, count.div_ceil(lines)),
    };
    let copy = |task: usize| {
        let range = if from.count == 1 { 0..1 } else { task * lines..from.count.min((task + 1) * lines) };
        let first = if from.count == 1 { task * pieces } else { 0 };
        for line in range {
            // SAFETY: callers pass memory of these lines, which do not overlap; each task copies bytes of its
            // own.
            unsafe {
                let from_line = from.address.offset(line * from.distance + first).as_ptr::<u8>();
                let to_line = to.address.offset(line * to.distance + first).as_mut_ptr::<u8>();
                std::ptr::copy_nonoverlapping(from_line, to_line, pieces.min(from.bytes - first));
            }
        }
    };
    match tasks {
        1 => copy(0),
        tasks => pool::for_each(tasks, &copy),
    }
}

/// Copies bytes inside host memory; source and destination may overlap.
pub(crate) fn copy(dst: Address, src: Address, bytes: usize) -> Result<()> {
    if bytes > 0 {
        // SAFETY: the caller of tarsiaMemcpy promises that both hold that many
        // bytes; the C boundary has refused NULL.
        unsafe { std::ptr::copy(src.as_ptr::<u8>(), dst.as_mut_ptr::<u8>(), bytes) };
    }
    Ok(())
}
