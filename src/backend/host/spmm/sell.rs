//! SpMM `sell`: C = alpha · op(A) · op(B) + beta · C on [`Slices`], for few columns. An item is some slices,
//! or a long row; each of these is swept once per block of columns of C. Each element of C is one sum in the
//! order of the row's entries, so results do not depend on the number of threads.

use super::{Opened, SpmmProduct};
use crate::backend::host::schedule;
use crate::backend::host::slices::Slices;
use crate::error::Result;
use crate::format::narrowing::Holds;
use crate::format::sell::{with_stored, LANES, NO_ROW};
use crate::support::Combo;
use crate::types::Storage;

/// Columns of C whose sums a row holds at one time.
const COLUMNS: usize = 16;

impl<C: Combo> SpmmProduct<C> for Slices<C::A> {
    fn multiply(&self, parallel: bool, opened: Opened<'_, C>) -> Result<()> {
        let (layout, items) = (&self.layout, self.items.len() - 1);
        with_stored!(&layout.values, values => {
            let add = |sums: &mut [C::Acc], place: usize, column: usize, first: usize| {
                let value: C::A = values[place].value();
                opened.add(sums, value.widen(), column, first);
            };
            let slice = |number: usize| {
                let rows = layout.rows(number);
                let row = |lane: usize| (rows[lane] != NO_ROW).then_some(rows[lane] as usize);
                opened.sweep::<LANES, COLUMNS>(row, |sums, first, columns| {
                    for (lane, sums) in sums.iter_mut().enumerate() {
                        layout.for_each_of_lane(number, lane, |place, column| {
                            add(&mut sums[..columns], place, column, first);
                        });
                    }
                });
            };
            schedule::for_each(parallel, items + layout.long_rows.len(), |item| {
                if item < items {
                    return (self.items[item] as usize..self.items[item + 1] as usize).for_each(&slice);
                }
                let long = &layout.long_rows[item - items];
                let pieces = &layout.pieces[long.first as usize..long.last as usize];
                opened.sweep::<1, COLUMNS>(|_| Some(long.row as usize), |[sums], first, columns| {
                    for piece in pieces {
                        layout.for_each_of_piece(piece, |place, column| {
                            add(&mut sums[..columns], place, column, first);
                        });
                    }
                });
            });
        });
        Ok(())
    }
}
