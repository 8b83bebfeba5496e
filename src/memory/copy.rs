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

/// Copies lines, some thousands of bytes a task where there are many.
pub(crate) fn copy_lines(from: &Lines, to: &Lines) {
    /// A task's bytes, about: less than what a core's second-level cache holds.
    const TASK: usize = 256 << 10;
    if from.bytes == 0 || from.count == 0 {
        return;
    }
    // Lines of a task, or pieces of a line.
    let lines = (TASK / from.bytes).max(1);
    let (pieces, tasks) = match from.count {
        1 => (TASK, from.bytes.div_ceil(TASK)),
        count => (from.bytes, count.div_ceil(lines)),
    };
    let copy = |task: usize| {
        let range = if from.count == 1 { 0..1 } else { task * lines..from.count.min((task + 1) * lines) };
        let first = if from.count == 1 { task * pieces } else { 0 };
        for line in range {
            // SAFETY: callers pass memory of these lines, which share nothing; tasks have different parts.
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

/// Copies between two places of host memory, which may overlap.
pub(crate) fn copy(dst: Address, src: Address, bytes: usize) -> Result<()> {
    if bytes > 0 {
        // SAFETY: the caller of tarsiaMemcpy promises that both hold that many
        // bytes; the C boundary has refused NULL.
        unsafe { std::ptr::copy(src.as_ptr::<u8>(), dst.as_mut_ptr::<u8>(), bytes) };
    }
    Ok(())
}
