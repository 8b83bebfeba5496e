//! Estimate, from a sample of signatures, of whether clustering rows is worth its time.

use super::jaccard::{Signature, SLOTS, TILE};

/// Approximate number of rows of a sample: 0.1 to 0.2 ms of an H100.
pub const SAMPLE: usize = 1 << 15;
/// Least ratio between the slots in which sampled rows agree with the best neighbours that they could have
/// and those in which they agree with the rows of their own window. Of the 25 comparison matrices, bands and
/// the 7-point stencil have ratios of 1.000 to 1.004 with blocks of 16 × 16 and keep their order either way;
/// the 27-point stencil has 1.015 and loses 32 % of its blocks. Others that gain have 1.07 and more; not all
/// with a high ratio gain (cant 1.06, mac_econ 1.34).
const TIMES: (u128, u128) = (101, 100);
/// Limits for [`Promise::is_strong`]: the least ratio of `found` to `now`, both per row, and the least number
/// of slots, of 480, in which sampled rows sorted by a band agree with the others of a window. They are for
/// windows in blocks of one column, where clustering is to leave far fewer columns. With windows of 16
/// clustered rows, cop20k keeps 0.35 of the columns (ratio 836, 72 slots), consph 0.45 (3.1, 225), HEP-th
/// 0.54 (5.2, 102), tolokers 0.55 (13, 57), shipsec1 0.56 (2.06, 291). Below these limits are 34 of 53
/// matrices, of which usroads (20 slots), mc2depi (23), c-48 (1.47), memplus (1.1) keep 0.65 to 0.7, all
/// others more than 0.7. Above them and without gain: pruned layers, rmat16, webbase.
const STRONG: (u128, u128) = (16, 10);
const STRONG_SLOTS: u64 = 28;
/// Band by which the sample is drawn and sorted.
pub const BAND: usize = 0;

/// Sums, over the rows of a sample, of the slots in which each row agrees with others, height − 1 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// Number of rows in the sampled tiles of the user's order.
    pub in_order: u64,
    /// Slots in which each row of `in_order` agrees with the rows of its window.
    pub now: u64,
    /// Slots in which each row of `in_order` agrees with those rows of its tile that agree most.
    pub near: u64,
    /// Number of rows in the sampled buckets of a band.
    pub in_band: u64,
    /// Slots in which each row of `in_band` agrees with those rows of its tile that agree most, after sorting.
    pub found: u64,
}

/// Returns the ratio of all rows to those of a sample: a power of two.
pub fn one_in(rows: usize) -> usize {
    rows.div_ceil(SAMPLE).next_power_of_two()
}

impl Promise {
    /// Takes the sample for windows of `height` rows; `keys` has room for a number per row.
    pub(super) fn of(signatures: &[Signature], height: usize, keys: &mut [u64]) -> Self {
        let one_in = one_in(signatures.len());
        let mut out = Promise::default();
        for tile in signatures.chunks(TILE).step_by(one_in) {
            out.in_order += tile.len() as u64;
            for (place, row) in tile.iter().enumerate() {
                let window = place / height * height;
                let others = &tile[window..tile.len().min(window + height)];
                // A row agrees with itself in all slots.
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

    /// Returns whether clustering is worth going on with.
    pub fn is_kept(&self) -> bool {
        // Means are compared without their common factor.
        let exceeds = |sum: u64, count: u64| {
            u128::from(sum) * u128::from(self.in_order) * TIMES.1
                > u128::from(self.now) * u128::from(count) * TIMES.0
        };
        exceeds(self.near, self.in_order) || exceeds(self.found, self.in_band)
    }

    /// Returns whether windows of clusters are likely to have far fewer columns: whether sampled rows find
    /// others that agree with them far more than their neighbours do.
    pub fn is_strong(&self) -> bool {
        let found = u128::from(self.found) * u128::from(self.in_order) * STRONG.1;
        found > u128::from(self.now) * u128::from(self.in_band) * STRONG.0
            && self.found > STRONG_SLOTS * self.in_band
    }
}

/// Returns the number of slots in which a row, itself part of the tile, agrees with the `height` − 1 other
/// rows of the tile that agree most.
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
        // Slots per row of matrices at the limits.
        let of = |now: u64, found: u64| {
            Promise { in_order: 1000, now: 1000 * now, near: 0, in_band: 300, found: 300 * found }.is_strong()
        };
        assert!(of(72, 225) && of(0, 72) && of(142, 291) && of(4, 57));
        assert!(!of(9, 23) && !of(405, 387) && !of(154, 234) && !of(332, 374) && !of(0, 20));
        assert!(!Promise::default().is_strong());
    }
}
