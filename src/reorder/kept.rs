//! Order of rows that an analysis has computed, in the form in which decisions keep it for later ones.
//!
//! Orders are the slow part of analysis: the host computes them, in about a microsecond per row (RCM,
//! docs/algorithms/orders.md). Orders that are fast to compute are not kept: the clusters that a device finds for
//! `window` and `smat`, and [`Reorder::Dcsr`], which is one pass over the lengths of the rows (and whose
//! kernel relies on the rows without entries being last).

use std::sync::Arc;

use super::permutation::fault_of;
use super::{Permutation, Windows};
use crate::error::{Error, Result};
use crate::memory::{Allocator, Buffer};
use crate::types::Reorder;

/// Bit that marks a position at which a window begins; the other bits of a number are the row.
const BEGINS: u32 = 1 << 31;

/// Order of 1 to 2³¹ − 1 rows, and for blocks its division into windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOrder {
    /// Row at each position, with [`BEGINS`] at the first position of each window; no number has that bit if
    /// there are no windows.
    numbers: Vec<u32>,
}

/// Returns whether the order of a policy is kept: it takes long to compute, and no kernel relies on its
/// properties.
pub fn is_kept(policy: Reorder) -> bool {
    policy.is_named() && policy != Reorder::Dcsr
}

/// Allocates an empty vector with room for `rows` numbers.
pub(super) fn room(rows: usize) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(rows).map_err(|_| Error::out_of_memory(rows.saturating_mul(4)))?;
    Ok(numbers)
}

impl KeptOrder {
    /// Creates an order without windows from rows by position; `None` if there are no rows.
    pub fn of_rows(rows: &[u32]) -> Result<Option<Self>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let mut numbers = room(rows.len())?;
        numbers.extend_from_slice(rows);
        Ok(Some(KeptOrder { numbers }))
    }

    /// Creates an order of windows from `height` slots per window, some of which may have no row
    /// ([`Windows::HOLE`]).
    pub fn of_places(places: &[u32], height: usize) -> Result<Option<Self>> {
        let rows = places.iter().filter(|&&row| row != Windows::HOLE).count();
        if rows == 0 {
            return Ok(None);
        }
        let mut numbers = room(rows)?;
        for window in places.chunks(height) {
            let first = numbers.len();
            numbers.extend(window.iter().filter(|&&row| row != Windows::HOLE));
            if let Some(number) = numbers.get_mut(first) {
                *number |= BEGINS;
            }
        }
        Ok(Some(KeptOrder { numbers }))
    }

    /// Creates an order from untrusted numbers; the error says which position is wrong.
    pub fn checked(numbers: Vec<u32>) -> std::result::Result<Self, String> {
        let rows = numbers.len();
        if rows == 0 || rows >= BEGINS as usize {
            return Err(format!("it has {rows} rows"));
        }
        let mut seen = Vec::new();
        seen.try_reserve_exact(rows.div_ceil(64)).map_err(|_| "memory is missing to check it".to_string())?;
        seen.resize(rows.div_ceil(64), 0);
        match fault_of(numbers.iter().map(|&number| number & !BEGINS), rows, &mut seen) {
            Some(fault) => Err(fault),
            None => Ok(KeptOrder { numbers }),
        }
    }

    /// Returns the numbers as [`KeptOrder::checked`] takes them.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether the order is divided into windows.
    pub fn has_windows(&self) -> bool {
        self.numbers.iter().any(|&number| number & BEGINS != 0)
    }

    /// Returns whether the order is divided into windows of at most `height` rows.
    pub fn is_in_windows(&self, height: usize) -> bool {
        let mut length = height;
        self.numbers.iter().all(|&number| {
            length = if number & BEGINS != 0 { 1 } else { length + 1 };
            length <= height
        })
    }

    /// Returns the rows by position; an error unless this is an order without windows for `rows` rows.
    pub fn for_rows(&self, rows: usize) -> Result<&[u32]> {
        match self.numbers.len() == rows && !self.has_windows() {
            true => Ok(&self.numbers),
            false => Err(misfit(self, rows)),
        }
    }

    /// Returns the order as a permutation; an error unless this is an order without windows for `rows` rows.
    pub fn permutation(&self, allocator: &Arc<Allocator>, rows: usize) -> Result<Permutation> {
        Permutation::new(allocator, Buffer::from_slice(allocator, self.for_rows(rows)?)?)
    }

    /// Returns `height` slots for each window; an error unless this is an order in windows for `rows` rows.
    pub fn places(&self, allocator: &Arc<Allocator>, rows: usize, height: usize) -> Result<Buffer<u32>> {
        if self.numbers.len() != rows || !self.is_in_windows(height) {
            return Err(misfit(self, rows));
        }
        let windows = self.numbers.iter().filter(|&&number| number & BEGINS != 0).count();
        let mut places = Buffer::<u32>::zeroed(allocator, windows * height)?;
        places.fill(Windows::HOLE);
        let mut next = 0_usize;
        for &number in &self.numbers {
            if number & BEGINS != 0 {
                next = next.next_multiple_of(height);
            }
            places[next] = number & !BEGINS;
            next += 1;
        }
        Ok(places)
    }
}

fn misfit(order: &KeptOrder, rows: usize) -> Error {
    let windows = if order.has_windows() { " in windows" } else { "" };
    Error::invalid("buffer", format!("its order of {} rows{windows} is none for {rows} rows", order.rows()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use crate::types::Address;

    fn allocator() -> Arc<Allocator> {
        Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX)
    }

    #[test]
    fn rows_there_and_back() {
        let order = KeptOrder::of_rows(&[2, 0, 1]).unwrap().unwrap();
        assert_eq!(KeptOrder::checked(order.numbers().to_vec()).unwrap(), order);
        assert_eq!(&order.permutation(&allocator(), 3).unwrap()[..], [2, 0, 1]);
        assert!(!order.has_windows() && !order.is_in_windows(2));
        assert!(order.permutation(&allocator(), 4).is_err() && order.places(&allocator(), 3, 16).is_err());
        assert_eq!(KeptOrder::of_rows(&[]).unwrap(), None);
    }

    #[test]
    fn windows_there_and_back() {
        let hole = Windows::HOLE;
        for (height, places) in [
            (3, vec![1, 4, hole, 0, hole, hole, 2, 3, 5]),
            (2, vec![1, 0, 3, 2]),
            (1, vec![2, 1, 0]),
            (4, vec![0, hole, hole, hole]),
        ] {
            let order = KeptOrder::of_places(&places, height).unwrap().unwrap();
            let order = KeptOrder::checked(order.numbers().to_vec()).unwrap();
            assert_eq!(&order.places(&allocator(), order.rows(), height).unwrap()[..], places);
            assert!(order.has_windows() && order.for_rows(order.rows()).is_err());
            assert!(order.is_in_windows(height) && order.places(&allocator(), 7, height).is_err());
        }
        let order = KeptOrder::of_places(&[0, 1, 2, hole], 2).unwrap().unwrap();
        assert!(order.is_in_windows(2) && !order.is_in_windows(1));
        assert!(order.places(&allocator(), 3, 1).is_err());
        assert_eq!(KeptOrder::of_places(&[hole, hole], 2).unwrap(), None);
    }

    #[test]
    fn what_is_no_permutation_is_named() {
        for (numbers, text) in [
            (vec![], "it has 0 rows"),
            (vec![0, 1, 1], "position 2 has row 1 again"),
            (vec![0, 3, 1], "position 1 has row 3 of 3"),
            (vec![0, 1, u32::MAX], "position 2 has row 2147483647 of 3"),
            (vec![BEGINS, 0], "position 1 has row 0 again"),
        ] {
            assert_eq!(KeptOrder::checked(numbers).unwrap_err(), text);
        }
    }
}
