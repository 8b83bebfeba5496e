//! Fingerprints of patterns and values, computed word by word on one thread.

use super::arrays::Indices;
use crate::error::Result;
use crate::matrix::fingerprint::{add, Fingerprint};
use crate::matrix::{no_arrays, SparseMatrix};
use crate::memory;
use crate::types::IndexType;

/// Returns the fingerprint of the offsets and indices, which need not be a valid pattern.
pub(super) fn of_pattern(a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    a.require_arrays(name)?;
    let [first, second, _] = a.user_arrays().ok_or_else(|| no_arrays(name))?;
    let mut sums = [0; 2];
    for (which, array) in [first, second].into_iter().enumerate() {
        let index_type = if array.size == size_of::<i64>() { IndexType::I64 } else { IndexType::I32 };
        let count = array.read() as usize;
        // SAFETY: the descriptor promises that many indices, unchanged during the call.
        let indices = unsafe { Indices::open(name, array.address, count, index_type)? };
        for at in 0..count {
            add(&mut sums, which as u64, at as u64, indices.get(at) as u64);
        }
    }
    Ok(sums)
}

/// Returns the fingerprint of the values, hashed in sign-extended words of their type's alignment.
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
