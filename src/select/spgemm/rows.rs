//! Number of lanes, threads and blocks that process a row of a factor, or of the product, of SpGEMM `hash` on
//! a device.

/// Number of threads that a device runs at one time, as limited by registers.
pub fn threads_at_once(multiprocessors: u32) -> i64 {
    i64::from(multiprocessors) * 1024
}

/// Lanes that take a row, for rows with this mean length: each lane takes some four entries, whose loads are
/// independent. If rows are too few for all threads that the device runs at one time, a row gets more lanes,
/// up to one per entry.
pub fn lanes(rows: i64, mean: f64, multiprocessors: u32) -> i32 {
    let threads = threads_at_once(multiprocessors);
    let spare = (threads / rows.max(1)).clamp(1, 32) as u32;
    let entries = (mean.clamp(1.0, 32.0) as u32).next_power_of_two();
    let by_length = ((mean / 4.0).clamp(1.0, 32.0) as u32).next_power_of_two();
    (1 << spare.ilog2()).min(entries).max(by_length) as i32
}

/// Lanes of a team that takes a row with a table: at least `least` (a power of two), and up to a warp's as
/// long as the device has threads for all rows at once. More lanes shorten the sequential work of each lane.
pub fn lanes_of_team(least: i32, rows: i64, multiprocessors: u32) -> i32 {
    let threads = threads_at_once(multiprocessors);
    let mut lanes = least;
    while lanes < 32 && rows.saturating_mul(2 * i64::from(lanes)) <= threads {
        lanes *= 2;
    }
    lanes
}

/// Lanes of the teams that count rows of up to `most` products; at least `part`.
pub fn lanes_that_count(part: i32, most: u32, rows: i64, multiprocessors: u32) -> i32 {
    let least = (part as u32).max(most.div_ceil(16).next_power_of_two()).min(32);
    lanes_of_team(least as i32, rows, multiprocessors)
}

/// Lanes of the teams that compute rows of up to `most` entries; kernels/spgemm/team.cu has a variant for
/// each of these numbers. A team is a whole warp if smaller teams would not fill the device.
pub fn lanes_that_multiply(most: u32, rows: i64, multiprocessors: u32) -> i32 {
    let least = match most {
        ..=16 => 4,
        17..=64 => 8,
        65..=128 => 16,
        _ => 32,
    };
    match lanes_of_team(least, rows, multiprocessors) {
        32 => 32,
        _ => least,
    }
}

/// Number of slices of every row of the left factor, each taken by blocks of its own, in the kernels that
/// gather statistics: more than one if the longest row is very long and the `blocks` for whole rows leave
/// room on the device.
pub fn slices_of_statistics(blocks: u32, longest: i64, multiprocessors: u32) -> u32 {
    const LEAST: i64 = 4096;
    const SLICE: i64 = 512;
    let room = i64::from(8 * multiprocessors) / i64::from(blocks.max(1));
    if longest < LEAST {
        1
    } else {
        (longest / SLICE).min(room).max(1) as u32
    }
}

/// Lanes that take a row of the right factor, for rows with this mean length: as many rows as possible at
/// once, with few idle lanes.
pub fn part(mean: f64) -> i32 {
    match mean {
        mean if mean <= 4.5 => 4,
        mean if mean <= 9.0 => 8,
        mean if mean <= 20.0 => 16,
        _ => 32,
    }
}

/// Returns whether rows of the right factor, or their pieces in a window of columns, are so short in the mean
/// that lanes take products of different rows at once; longer rows are taken one after the other.
pub fn is_short(mean: f64) -> bool {
    mean < 16.0
}

/// Lanes that take a row of the right factor when entries are only counted, given the lanes for when their
/// order matters: several rows at a time leave few lanes idle.
pub fn count_part(part: i32) -> i32 {
    part.min(8)
}

/// Threads of a block that counts a row of up to `most` products with one table.
pub fn threads_that_count(most: u32) -> u32 {
    if most <= 2048 {
        128
    } else {
        256
    }
}

/// Threads of a block that computes a row of up to `most` entries with one table.
pub fn threads_that_multiply(most: u32) -> u32 {
    if most <= 1024 {
        256
    } else {
        512
    }
}

/// Number of blocks that take a row together, with windows of its columns side by side, where rows are few.
/// It is bounded by twice the blocks that run at one time, which are two a multiprocessor; by `NARROWEST`
/// columns for each; and by four (eight took 235 µs for 28 rows of webbase, four 202). `clusters` says that
/// kernels can have thread block clusters.
pub fn slices(multiprocessors: i64, clusters: bool, rows: i64, cols: i64) -> u32 {
    const NARROWEST: i64 = 1024;
    let room = 4 * multiprocessors;
    let fits = |slices: &u32| {
        let slices = i64::from(*slices);
        rows.saturating_mul(slices) <= room && cols / slices >= NARROWEST
    };
    match clusters {
        true => [4, 2].into_iter().find(fits).unwrap_or(1),
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_teams_of_more_lanes() {
        // 132 multiprocessors of 1,024 threads are 135,168.
        assert_eq!(
            [1, 4224, 4225, 8448, 8449, 33_793].map(|rows| lanes_of_team(4, rows, 132)),
            [32, 32, 16, 16, 8, 4]
        );
        assert_eq!([lanes_of_team(32, 1, 132), lanes_of_team(8, i64::MAX, 132)], [32, 8]);
    }

    #[test]
    fn longer_rows_have_teams_of_more_lanes() {
        let count = |most| lanes_that_count(4, most, i64::MAX, 132);
        assert_eq!([16, 64, 65, 128, 512, 1 << 20].map(count), [4, 4, 8, 8, 32, 32]);
        assert_eq!([lanes_that_count(8, 16, i64::MAX, 132), lanes_that_count(8, 16, 1, 132)], [8, 32]);
        let multiply = |most| lanes_that_multiply(most, i64::MAX, 132);
        assert_eq!([16, 17, 64, 65, 128, 129].map(multiply), [4, 8, 8, 16, 16, 32]);
        // Either a whole warp takes a row, or the least number of lanes.
        assert_eq!([4224, 4225].map(|rows| lanes_that_multiply(16, rows, 132)), [32, 4]);
    }

    #[test]
    fn rows_have_a_lane_for_some_four_entries() {
        let many = |mean| lanes(1 << 24, mean, 132);
        assert_eq!([0.0, 4.0, 8.0, 16.0, 100.0, 1e9].map(many), [1, 1, 2, 4, 32, 32]);
        // With few rows, each gets more lanes, up to one per entry.
        let few = |mean| lanes(1000, mean, 132);
        assert_eq!([0.0, 1.0, 3.0, 8.0, 100.0].map(few), [1, 1, 4, 8, 32]);
        assert_eq!([lanes(0, 16.0, 132), lanes(132 * 1024 / 2, 16.0, 132)], [16, 4]);
    }

    #[test]
    fn parts_leave_few_lanes_without_an_entry() {
        assert_eq!([0.0, 4.5, 4.6, 9.0, 9.1, 20.0, 20.1].map(part), [4, 4, 8, 8, 16, 16, 32]);
        assert_eq!([4, 8, 16, 32].map(count_part), [4, 8, 8, 8]);
    }

    #[test]
    fn very_long_rows_are_looked_at_in_slices() {
        // 18 rows of up to 31,000 entries; 507 of up to 7,800; many rows; rows that are not that long.
        let of = |blocks, longest| slices_of_statistics(blocks, longest, 132);
        assert_eq!([of(3, 31_000), of(64, 7_800), of(1056, 7_800), of(3, 4_095)], [60, 15, 1, 1]);
        assert_eq!([of(0, i64::MAX), of(2000, i64::MAX)], [1056, 1]);
    }

    #[test]
    fn rows_shorter_than_half_a_warp_are_short() {
        assert!(is_short(0.0) && is_short(15.9) && !is_short(16.0) && !is_short(f64::NAN));
    }

    #[test]
    fn blocks_share_rows_that_are_few() {
        let of = |rows, cols| slices(132, true, rows, cols);
        // webbase: 28 rows of a million columns; more rows; quarters that are too narrow; very many rows.
        assert_eq!(
            [of(28, 1 << 20), of(132, 1 << 20), of(133, 1 << 20), of(264, 1 << 20), of(265, 1 << 20)],
            [4, 4, 2, 2, 1]
        );
        assert_eq!([of(28, 4096), of(28, 4095), of(28, 2047), of(i64::MAX, 1 << 20)], [4, 2, 1, 1]);
        assert_eq!(slices(132, false, 28, 1 << 20), 1);
    }

    #[test]
    fn longer_rows_have_larger_blocks() {
        assert_eq!([2048, 2049].map(threads_that_count), [128, 256]);
        assert_eq!([1024, 1025].map(threads_that_multiply), [256, 512]);
    }
}
