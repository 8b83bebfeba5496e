//! Ranks of all products: the place of each product's column in its row of C. A plan that keeps C's pattern
//! for new values records them after some numeric phases; later ones add each product where its rank says, without
//! a look-up of its column.

use super::rows::count_products;
use crate::backend::host::operand::{Factor, Shared};
use crate::error::Result;
use crate::memory::{Buffer, Context};

/// Largest number of products for each entry of A, B and C with which ranks are kept: they then take no more
/// memory than these matrices in fp64. Products of longer rows gain less, since more of them meet a column
/// that is in the cache.
const PRODUCTS_PER_ENTRY: i64 = 6;

/// Numeric phases before the one that records ranks. That takes 1.3 times as long, and later ones 0.75 to 0.95 of
/// the time, so that they pay after some four calls: plans that are used as often again are likely to go on.
pub const CALLS: u32 = 4;

/// The plan's memory for the ranks of all products.
#[derive(Debug)]
pub struct Ranks {
    /// Position of each row's first product.
    starts: Buffer<i64>,
    ranks: Buffer<u16>,
    /// True once a numeric phase has recorded them.
    pub recorded: bool,
}

impl Ranks {
    /// Allocates memory for the ranks of `products` products, into C with these row offsets. Returns `None`
    /// if they do not pay, do not fit 16 bits, or there is no memory for them.
    pub fn new(
        cx: &Context,
        left: &Factor,
        right: &Factor,
        products: i64,
        offsets: &[i64],
    ) -> Result<Option<Self>> {
        let entries = left.indices.len() + right.indices.len() + offsets[left.rows] as usize;
        if products / PRODUCTS_PER_ENTRY > entries as i64
            || offsets.windows(2).any(|row| row[1] - row[0] > i64::from(u16::MAX))
        {
            return Ok(None);
        }
        // SAFETY: they are read only once all of them have been recorded ([`Self::recorded`]).
        let ranks = match unsafe { Buffer::unset(&cx.allocator, products as usize) } {
            Err(error) if error.lacks_memory() => return Ok(None),
            ranks => ranks?,
        };
        let (mut starts, _) = match count_products(cx, left, right) {
            Err(error) if error.lacks_memory() => return Ok(None),
            counts => counts?,
        };
        let mut position = 0;
        for start in starts.iter_mut() {
            position += std::mem::replace(start, position);
        }
        Ok(Some(Ranks { starts, ranks, recorded: false }))
    }

    /// Returns access for the threads of a numeric phase.
    pub fn share(&mut self) -> SharedRanks<'_> {
        let Ranks { starts, ranks, recorded } = self;
        SharedRanks { starts, end: ranks.len(), ranks: Shared::new(ranks), recorded: *recorded }
    }
}

/// Ranks in a numeric phase, whose threads write or read those of different rows.
#[derive(Clone, Copy, Debug)]
pub struct SharedRanks<'a> {
    starts: &'a [i64],
    end: usize,
    ranks: Shared<u16>,
    /// True if the ranks are to be read and not written.
    pub recorded: bool,
}

impl<'a> SharedRanks<'a> {
    /// Returns the ranks of a row's products.
    ///
    /// # Safety
    /// No other thread uses this row's ranks, and the [`Ranks`] are still borrowed.
    pub unsafe fn row(&self, row: usize) -> &'a mut [u16] {
        let start = self.starts[row] as usize;
        let end = self.starts.get(row + 1).map_or(self.end, |&end| end as usize);
        // SAFETY: the caller's promise.
        unsafe { self.ranks.part(start..end) }
    }
}
