//! Fingerprint of a sparse pattern on the device, equal to the host's.

use super::device::DeviceCall;
use super::launch::launch;
use super::memory::Readback;
use crate::error::Result;
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{no_arrays, SparseMatrix};
use crate::select::grids;
use crate::types::Address;

const MODULE: &str = "analysis/fingerprint";
const THREADS: u32 = 256;

/// Computes the fingerprint of the offsets and indices as they are stored; the pattern need not be valid.
/// Blocks. The context must be current and the arrays readable by the device.
pub(super) fn of(cx: &DeviceCall<'_>, a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    let [first, second, _] = a.user_arrays().ok_or_else(|| no_arrays(name))?;
    sums(cx, [first, second].map(|array| (array.address, array.read(), 8 * array.size)))
}

/// Computes the fingerprint of the values, read as words as large as the alignment of their type. Blocks.
pub(super) fn of_values(cx: &DeviceCall<'_>, a: &SparseMatrix) -> Result<Fingerprint> {
    let (value, nnz) = (a.value_type(), a.shape().2);
    let words = nnz * (value.size() / value.align()) as i64;
    sums(cx, [(a.values(), words, 8 * value.align())])
}

/// Computes the two sums of a fingerprint over arrays of (address, words, bits per word).
fn sums<const N: usize>(cx: &DeviceCall<'_>, arrays: [(Address, i64, usize); N]) -> Result<Fingerprint> {
    let mut words = Readback::take(cx)?;
    for (which, (address, count, bits)) in arrays.into_iter().enumerate() {
        let kernel = cx.device.modules().kernel(
            MODULE,
            match bits {
                16 => "fingerprint_16",
                32 => "fingerprint_32",
                _ => "fingerprint_64",
            },
        )?;
        let grid = grids::blocks(count as u64, THREADS.into(), cx.device.properties().multiprocessors);
        // SAFETY: the descriptor promises this many elements of this type; the page has two words.
        unsafe {
            launch!(kernel, grid, THREADS, 0, cx.stream; address, count, which as u64, words.at(0))?;
        }
    }
    words.fetch(cx, 2)?;
    let found = words.wait(cx)?;
    Ok([found[0], found[1]])
}

#[cfg(test)]
mod tests;
