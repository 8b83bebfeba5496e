//! SpMM `sell`: C = alpha · op(A) · op(B) + beta · C with the layout [`SellLayout`], for few columns. An item
//! is some slices, or a long row; it is swept once per block of columns of C. Each element of C is one sum in
//! the order of the row's entries, so results do not depend on the number of threads.

use std::ops::Range;

use super::{Opened, SpmmProduct};
use crate::backend::host::schedule;
use crate::backend::host::slices::Slices;
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::sell::{with_stored, Piece, SellLayout, LANES, NO_ROW};
use crate::support::Combo;
use crate::types::Storage;

/// Columns of C whose sums a row holds at one time.
const COLUMNS: usize = 16;

impl<C: Combo> SpmmProduct<C> for Slices<C::A> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (items, long_rows) = (self.items.len() - 1, &self.layout.long_rows);
        with_stored!(&self.layout.values, values => {
            let product = Running::<C, _> { layout: &self.layout, values, opened };
            schedule::for_each(parallel, items + long_rows.len(), |item| {
                if item < items {
                    product.slices(self.items[item] as usize..self.items[item + 1] as usize);
                } else {
                    let long = &long_rows[item - items];
                    let pieces = &self.layout.pieces[long.first as usize..long.last as usize];
                    product.row(long.row as usize, Entries::Pieces(pieces));
                }
            });
        });
        Ok(())
    }
}

/// The location of a row's entries.
#[derive(Clone, Copy)]
enum Entries<'a> {
    /// The number of a slice, and the lane of the row in it.
    Lane(usize, usize),
    Pieces(&'a [Piece]),
}

/// One running product.
struct Running<'a, C: Combo, S> {
    layout: &'a SellLayout<C::A>,
    values: &'a [S],
    opened: Opened<'a, C>,
}

impl<C: Combo, S: Holds<C::A>> Running<'_, C, S> {
    fn slices(&self, range: Range<usize>) {
        for number in range {
            for lane in 0..LANES {
                let row = self.layout.rows[number * LANES + lane];
                if row != NO_ROW {
                    self.row(row as usize, Entries::Lane(number, lane));
                }
            }
        }
    }

    fn row(&self, row: usize, entries: Entries<'_>) {
        let opened = &self.opened;
        opened.sweep::<1, COLUMNS>(
            |_| Some(row),
            |[sums], first, columns| {
                let mut add = |place: usize, column: usize| {
                    opened.add(&mut sums[..columns], self.values[place].value().widen(), column, first);
                };
                match entries {
                    Entries::Lane(slice, lane) => self.layout.for_each_of_lane(slice, lane, add),
                    Entries::Pieces(pieces) => {
                        for piece in pieces {
                            self.layout.for_each_of_piece(piece, &mut add);
                        }
                    }
                }
            },
        );
    }
}
