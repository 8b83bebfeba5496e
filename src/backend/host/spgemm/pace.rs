//! Choice between two codes for the same sums by timing both on the first items of a product. Their results
//! have the same bits. Which is faster depends on whether the processor foresees which products meet a column
//! for the first time in their row, and that no property of the matrices tells.

use std::time::Instant;

/// Number of items that are timed with each code.
const TIMED: usize = 2;

/// Times of both codes on one thread, in seconds an item: items have about equal numbers of products.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Least time of the code without the branch, and of the one with it.
    least: [f64; 2],
    /// Items that have been timed.
    timed: usize,
}

/// Start of an item that is being timed.
pub type Timed = Option<Instant>;

impl Pace {
    /// Returns whether the code with a branch is to run now.
    #[inline]
    pub fn branches(&self) -> bool {
        match self.timed < 2 * TIMED {
            true => self.timed % 2 == 0,
            false => self.least[1] <= self.least[0],
        }
    }

    /// Begins an item, which is timed if that is `wanted` and both codes have not run often enough.
    pub fn begin(&self, wanted: bool) -> Timed {
        (wanted && self.timed < 2 * TIMED).then(Instant::now)
    }

    /// Ends an item.
    pub fn end(&mut self, timed: Timed) {
        if let Some(start) = timed {
            let (code, time) = (usize::from(self.branches()), start.elapsed().as_secs_f64());
            if self.timed < 2 || time < self.least[code] {
                self.least[code] = time;
            }
            self.timed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_code_stays() {
        for slow in [false, true] {
            let mut pace = Pace::default();
            let mut ran = [0; 2];
            for _ in 0..2 * TIMED {
                let branches = pace.branches();
                ran[usize::from(branches)] += 1;
                let timed = pace.begin(true);
                assert!(timed.is_some());
                if branches == slow {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                pace.end(timed);
            }
            assert_eq!((ran, pace.branches()), ([TIMED; 2], !slow));
            assert!(pace.begin(true).is_none());
        }
    }

    #[test]
    fn items_without_a_choice_are_not_timed() {
        let pace = Pace::default();
        assert!(pace.begin(false).is_none() && pace.branches());
    }
}
