//! Rows in the order of Gray codes: neighbours of the order have masks with long beginnings in common, and
//! where these end, the masks go on with ones near each other.

use std::cmp::Ordering;
use std::sync::Arc;

use rayon::prelude::*;

use super::masks::Masks;
use super::numbers;
use crate::error::Result;
use crate::memory::{pool, Allocator, Buffer};

/// Compares the numbers whose Gray codes the masks are, bit 0 first. Of a number and its code bit b of the
/// number is the parity of the code's bits 0 to b; so, where two codes differ at last, the number is greater whose
/// code has a 1 there if what they share has an even number of ones, and else the other.
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

/// Rows by [`compare`], equal ones by their numbers. O(rows · log(rows)) comparisons.
pub(super) fn order(allocator: &Arc<Allocator>, masks: &Masks) -> Result<Buffer<u32>> {
    let mut order = numbers(allocator, masks.rows())?;
    pool::run(|| {
        order.par_sort_unstable_by(|&a, &b| compare(masks.of(a), masks.of(b)).then(a.cmp(&b)));
    });
    Ok(order)
}
