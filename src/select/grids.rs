//! How many blocks a kernel has that goes through work of any size in a loop over its grid: what a device runs at one
//! time, or fewer where there is less to do.

/// Blocks of 256 threads that a multiprocessor runs at one time.
const RESIDENT: u64 = 8;
/// Items that a thread has at the least, while they last: what it asks of memory does not wait for each other.
const ITEMS: u64 = 4;

/// Blocks for so much work, of which a block takes `each` at one time, on a device of so many multiprocessors.
pub fn blocks(work: u64, each: u64, multiprocessors: u32) -> u32 {
    work.div_ceil(each).min(RESIDENT * u64::from(multiprocessors)) as u32
}

/// The same where a thread of 256 takes an item at a time, and several in all.
pub fn of_items(items: i64, multiprocessors: u32) -> u32 {
    blocks(items as u64, 256 * ITEMS, multiprocessors)
}

/// The same where so many lanes of 256 take a row at a time.
pub fn of_rows(rows: i64, lanes: i32, multiprocessors: u32) -> u32 {
    blocks(rows as u64, 256 / lanes as u64, multiprocessors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_no_more_blocks_than_it_runs() {
        assert_eq!(
            [0, 1, 8, 9, 8448, 8449, u64::MAX].map(|work| blocks(work, 8, 132)),
            [0, 1, 1, 2, 1056, 1056, 1056]
        );
        assert_eq!([0, 1, 1024, 1025, i64::MAX].map(|items| of_items(items, 132)), [0, 1, 1, 2, 1056]);
        assert_eq!([1, 4, 32].map(|lanes| of_rows(1000, lanes, 132)), [4, 16, 125]);
    }
}
