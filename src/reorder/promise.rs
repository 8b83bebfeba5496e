//! Whether clustering rows is worth its time, from a sample of their signatures.

use super::jaccard::{Signature, SLOTS, TILE};

/// Rows of a sample, about: 0.1 to 0.2 ms of an H100.
pub const SAMPLE: usize = 1 << 15;
/// Rows must agree with their neighbours-to-be in so many times the slots in which they agree
/// with those of their own window, at the least. Of the 25 comparison matrices bands and the
/// 7-point stencil have 1.000 to 1.004 with blocks of 16 × 16 and keep their order either way; the
/// 27-point stencil has 1.015 and loses 32 % of its blocks. Others that gain have 1.07 and more; not all
/// that promise do gain (cant 1.06, mac_econ 1.34).
const TIMES: (u128, u128) = (101, 100);
/// The same of rows of the sample that are sorted by a band, for windows in blocks of one column that
/// are to keep much less of them, and slots in which they agree with the others of a window at the
/// least, of 480. With their 16 rows' columns in clusters cop20k keeps 0.35 (found is 836 times now, 72 slots),
/// consph 0.45 (3.1, 225), HEP-th 0.54 (5.2, 102), tolokers 0.55 (13, 57), shipsec1 0.56 (2.06, 291); below these lines
/// are 34 of 53 matrices, of which usroads (20 slots), mc2depi (23), c-48 (1.47), memplus (1.1) keep 0.65 to 0.7,
/// all others more than 0.7. Above them and without gain: pruned layers, rmat16, webbase.
const STRONG: (u128, u128) = (16, 10);
const STRONG_SLOTS: u64 = 28;
/// The band by which the sample is drawn and sorted.
pub const BAND: usize = 0;

/// Sums over rows of a sample of the slots in which they agree with others, height − 1 each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Rows of some tiles in the user's order.
    pub in_order: u64,
    /// Of each of them, with the rows of its window.
    pub now: u64,
    /// Of each of them, with those of its tile that agree most.
    pub near: u64,
    /// Rows of some buckets of a band.
    pub in_band: u64,
    /// Of each of them, with those of its tile that agree most, where these are sorted.
    pub found: u64,
}

/// A sample has one in so many of the rows: a power of two.
pub fn one_in(rows: usize) -> usize {
    rows.div_ceil(SAMPLE).next_power_of_two()
}

impl Promise {
    /// Of rows in windows of `height`; `keys` has room for a number a row.
    pub(super) fn of(signatures: &[Signature], height: usize, keys: &mut [u64]) -> Self {
        let one_in = one_in(signatures.len());
        let mut out = Promise::default();
        for tile in signatures.chunks(TILE).step_by(one_in) {
            out.in_order += tile.len() as u64;
            for (place, row) in tile.iter().enumerate() {
                let window = place / height * height;
                let others = &tile[window..tile.len().min(window + height)];
                // With itself a row agrees in all slots.
                out.now +=
                    others.iter().map(|other| u64::from(row.agreeing(other))).sum::<u64>() - SLOTS as u64;
                out.near += most(row, tile.iter(), height);
            }
        }
        let mut count = 0;
        for (row, signature) in signatures.iter().enumerate() {
            if signature.is_drawn(BAND, one_in) {
                keys[count] = u64::from(signature.key(BAND)) << 32 | row as u64;
                count += 1;
            }
        }
        let keys = &mut keys[..count];
        keys.sort_unstable();
        out.in_band = count as u64;
        for tile in keys.chunks(TILE) {
            let of = |key: &u64| &signatures[*key as u32 as usize];
            out.found += tile.iter().map(|row| most(of(row), tile.iter().map(of), height)).sum::<u64>();
        }
        out
    }

    /// Whether to go on.
    pub fn is_kept(&self) -> bool {
        // Means, without their common factor.
        let exceeds = |sum: u64, count: u64| {
            u128::from(sum) * u128::from(self.in_order) * TIMES.1
                > u128::from(self.now) * u128::from(count) * TIMES.0
        };
        exceeds(self.near, self.in_order) || exceeds(self.found, self.in_band)
    }

    /// Whether windows of clusters are likely to have far fewer columns: where rows find others in a sample
    /// of all that agree with them far more than their neighbours.
    pub fn is_strong(&self) -> bool {
        let found = u128::from(self.found) * u128::from(self.in_order) * STRONG.1;
        found > u128::from(self.now) * u128::from(self.in_band) * STRONG.0
            && self.found > STRONG_SLOTS * self.in_band
    }
}

/// Slots in which a row agrees with the `height` − 1 of a tile that agree most; it is one of them.
fn most<'a>(row: &Signature, tile: impl Iterator<Item = &'a Signature>, height: usize) -> u64 {
    let mut counts = [0usize; SLOTS + 1];
    tile.for_each(|other| counts[row.agreeing(other) as usize] += 1);
    counts[SLOTS] -= 1;
    let (mut left, mut sum) = (height - 1, 0);
    for (slots, &count) in counts.iter().enumerate().rev() {
        let taken = count.min(left);
        sum += (slots * taken) as u64;
        left -= taken;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::Promise;

    #[test]
    fn promises_are_strong_where_rows_find_far_better_ones() {
        // Slots a row, as the lines' matrices have them.
        let of = |now: u64, found: u64| {
            Promise { in_order: 1000, now: 1000 * now, near: 0, in_band: 300, found: 300 * found }.is_strong()
        };
        assert!(of(72, 225) && of(0, 72) && of(142, 291) && of(4, 57));
        assert!(!of(9, 23) && !of(405, 387) && !of(154, 234) && !of(332, 374) && !of(0, 20));
        assert!(!Promise::default().is_strong());
    }
}
