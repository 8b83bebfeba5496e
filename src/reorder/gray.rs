//! Rows in the order of Gray codes: consecutive rows have masks with long common prefixes, and behind these
//! the masks go on with ones near each other.

use std::cmp::Ordering;
use std::sync::Arc;

use rayon::prelude::*;

use super::masks::Masks;
use super::numbers;
use crate::error::Result;
use crate::memory::{pool, Allocator, Buffer};

/// Compares the numbers whose Gray codes are the masks, bit 0 first. Bit b of a number is the parity of bits
/// 0 to b of its code. So at the first bit in which two codes differ, the number whose code has a 1 there is
/// the greater one if the common prefix has an even number of ones, and the smaller one otherwise.
pub(super) fn compare(a: &[u32], b: &[u32]) -> Ordering {
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let a_has_it = match (a.get(same), b.get(same)) {
        (None, None) => return Ordering::Equal,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (Some(x), Some(y)) => x < y,
    };
    match a_has_it == (same % 2 == 0) {
        true => Ordering::Greater,
        false => Ordering::Less,
    }
}

/// Returns the rows sorted by [`compare`], equal ones by their numbers. O(rows · log(rows)) comparisons.
pub(super) fn order(allocator: &Arc<Allocator>, masks: &Masks) -> Result<Buffer<u32>> {
    let mut order = numbers(allocator, masks.rows())?;
    pool::run(|| {
        order.par_sort_unstable_by(|&a, &b| compare(masks.of(a), masks.of(b)).then(a.cmp(&b)));
    });
    Ok(order)
}
