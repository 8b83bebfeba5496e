//! Fingerprints of patterns and values, one word after the other.

use super::arrays::Indices;
use crate::error::Result;
use crate::matrix::fingerprint::{add, Fingerprint};
use crate::matrix::SparseMatrix;
use crate::memory;

/// Of offsets and indices, as they are; the pattern need not be valid.
pub(super) fn of_pattern(a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    a.require_arrays(name)?;
    let mut sums = [0; 2];
    for (which, (address, count, index_type)) in a.index_arrays(name)?.into_iter().enumerate() {
        // SAFETY: the descriptor promises that many indices, unchanged during the call.
        let indices = unsafe { Indices::open(name, address, count as usize, index_type)? };
        for at in 0..count as usize {
            add(&mut sums, which as u64, at as u64, indices.get(at) as u64);
        }
    }
    Ok(sums)
}

/// Of values, as words of what their type is aligned to, whose sign is extended.
pub(super) fn of_values(a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    a.require_arrays(name)?;
    let (value, mut sums) = (a.value_type(), [0; 2]);
    let bytes = a.shape().2 as usize * value.size();
    // SAFETY: the descriptor promises that many values of its type, unchanged during the call.
    let bytes = unsafe { memory::open::<u8>(name, a.values(), bytes)? };
    for (at, word) in bytes.chunks_exact(value.align()).enumerate() {
        let mut wide = [if word[word.len() - 1] >= 0x80 { 0xff } else { 0 }; size_of::<u64>()];
        wide[..word.len()].copy_from_slice(word);
        add(&mut sums, 0, at as u64, u64::from_le_bytes(wide));
    }
    Ok(sums)
}
