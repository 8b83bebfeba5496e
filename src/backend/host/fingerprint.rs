//! Fingerprints of patterns and values in host memory.

use bytemuck::Pod;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Result;
use crate::matrix::fingerprint::{add, join, Fingerprint};
use crate::matrix::{no_arrays, Array, SparseMatrix};
use crate::memory::{self, pool};
use crate::types::{Address, Index};

/// Number of words that a thread hashes at one time: about 100 µs of work.
const PART: usize = 1 << 16;

/// Returns the fingerprint of the offsets and indices, which need not be a valid pattern.
pub(crate) fn of(a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    a.require_arrays(name)?;
    let [first, second, _] = a.user_arrays().ok_or_else(|| no_arrays(name))?;
    let of = |array: Array, which| match array.size {
        4 => words::<i32>(name, array.address, array.read(), which),
        _ => words::<i64>(name, array.address, array.read(), which),
    };
    Ok(join(of(first, 0)?, of(second, 1)?))
}

/// Returns the fingerprint of the values, hashed in words of their type's alignment.
pub(crate) fn of_values(a: &SparseMatrix, name: &str) -> Result<Fingerprint> {
    a.require_arrays(name)?;
    let (value, address) = (a.value_type(), a.values());
    let count = a.shape().2 * (value.size() / value.align()) as i64;
    match value.align() {
        1 => of_words::<i8>(name, address, count, 0, |&word| word as u64),
        2 => of_words::<i16>(name, address, count, 0, |&word| word as u64),
        4 => of_words::<i32>(name, address, count, 0, |&word| word as u64),
        _ => of_words::<i64>(name, address, count, 0, |&word| word as u64),
    }
}

fn words<J: Index>(name: &str, address: Address, count: i64, array: u64) -> Result<Fingerprint> {
    of_words::<J>(name, address, count, array, |word| word.to_i64() as u64)
}

fn of_words<W: Pod + Sync>(
    name: &str,
    address: Address,
    count: i64,
    array: u64,
    number: impl Fn(&W) -> u64 + Sync,
) -> Result<Fingerprint> {
    // SAFETY: the descriptor promises that many elements, unchanged during the call.
    let words = unsafe { memory::open::<W>(name, address, count as usize)? };
    let part = |part: usize, words: &[W]| {
        let mut sums = [0; 2];
        for (at, word) in words.iter().enumerate() {
            add(&mut sums, array, (part * PART + at) as u64, number(word));
        }
        sums
    };
    let sums = [const { AtomicU64::new(0) }; 2];
    pool::for_each(words.len().div_ceil(PART), &|at| {
        let found = part(at, &words[at * PART..words.len().min((at + 1) * PART)]);
        sums.iter().zip(found).for_each(|(sum, found)| {
            sum.fetch_add(found, Ordering::Relaxed);
        });
    });
    Ok(sums.map(AtomicU64::into_inner))
}
