//! How SpMM `row` deals rows out to the threads of a device (kernels/spmm/tasks.cu makes the lists).

/// Mean length below which rows are short: lanes have one pack, and runs several rows.
pub const SHORT: i64 = 20;

/// Entries of a run: 16 to 48 were within 3 % of each other on rmat16 and dc2, but fp64 mac_econ, N = 32,
/// has 66 µs with 32 entries at the most and 75 with 64. Fewer where the device takes all of a matrix
/// at a time: with 32 fp32 bayer10 took 14.1 µs for N = 32, 9.7 a row at a time.
const QUOTA: i64 = 32;
/// Entries of a row that a run may have; longer ones get a warp.
const ALONE: i64 = 24;
/// Entries of a row that gets a warp; longer ones get blocks, with so many entries each.
const WARP: i64 = 128;
const PART: i64 = 512;
/// The most where rows are long on average: what the window sort's keys hold.
const LONG: i64 = 4096;

/// Parts at the most, about: their counters are the handle's.
const PARTS: i64 = 1 << 16;
/// Warps of a block.
pub const WARPS: i64 = 4;

/// Where rows of one kind end; kernels/spmm/tasks.cu has the same structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Limits {
    /// Entries of a row that a run may have where rows are long, and of one that gets a warp; longer ones are cut.
    pub most: i64,
    /// Entries of a part of a row that is cut.
    pub part: i64,
    /// Entries of the longest row that is in runs with others.
    pub alone: i64,
    /// Entries of a run of several rows; 0: runs have one row.
    pub quota: i64,
}

impl Limits {
    /// For rows of these lengths; `None`: they need no lists. `warps`: what the device takes at a time.
    pub fn new(rows: i64, nnz: i64, longest: i64, warps: i64) -> Option<Self> {
        let mean = nnz / rows.max(1);
        let least = nnz / PARTS;
        if mean < SHORT {
            let quota = (nnz / warps.max(1)).clamp(1, QUOTA);
            return Some(Limits { most: WARP, part: PART.max(least), alone: ALONE, quota });
        }
        // Rows that are all long need no parts: groups share them. But few rows leave most of
        // the device without work.
        let fair = (nnz / warps.max(1)).max(if rows < warps / 8 { 0 } else { 2 * mean });
        let most = fair.clamp(WARP, LONG);
        // Rows of about one length gain nothing and would lose their order.
        let is_even = longest <= mean + mean / 2 + 4;
        (!is_even || longest > most).then_some(Limits {
            most,
            part: (WARPS * most).max(least),
            alone: most,
            quota: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::COUNTER_BYTES;

    #[test]
    fn rows_of_like_lengths_that_are_long_need_no_lists() {
        assert_eq!(Limits::new(80_000, 80_000 * 72, 81, 8448), None);
        // Longer ones are cut, or come in the order of their lengths.
        let uneven = Limits::new(80_000, 80_000 * 72, 200, 8448).unwrap();
        assert_eq!((uneven.most, uneven.quota), (681, 0));
        // Few rows leave most of the device without work.
        let few = Limits::new(500, 500 * 4096, 5000, 8448).unwrap();
        assert_eq!((few.most, few.part), (242, 968));
        assert_eq!(Limits::new(20_000, 1 << 40, 1 << 39, 8448).unwrap().most, LONG);
    }

    #[test]
    fn counters_suffice_for_all_that_is_cut() {
        let short = Limits::new(60_000, 500_000, 4000, 8448).unwrap();
        assert_eq!((short.most, short.part, short.quota), (WARP, PART, QUOTA));
        for nnz in [1 << 20, 1 << 28, 1 << 33, 1 << 40] {
            for rows in [1000, nnz / 100, nnz / 10] {
                let limits = Limits::new(rows, nnz, nnz, 8448).unwrap();
                // Rows that are cut have more than a part; of each 16 parts and of each row a counter.
                let (cut, parts) = (nnz / limits.part, 2 * nnz / limits.part);
                assert!(parts / 16 + 2 * cut <= (COUNTER_BYTES / 4) as i64, "{rows} {nnz}");
                assert!(parts <= 2 * PARTS.max(nnz / PART) && limits.most <= limits.part);
            }
        }
    }
}
