//! Grid sizes of kernels whose blocks loop over work of any size: as many blocks as the device runs at one
//! time, or fewer for less work.

/// Blocks of 256 threads that a multiprocessor runs at one time.
const RESIDENT: u64 = 8;
/// Minimum number of items per thread, while there are enough: a thread then has several independent memory
/// accesses in flight.
const ITEMS: u64 = 4;

/// Number of blocks for `work` items, of which a block takes `each` at one time, on a device with this many
/// multiprocessors.
pub fn blocks(work: u64, each: u64, multiprocessors: u32) -> u32 {
    work.div_ceil(each).min(RESIDENT * u64::from(multiprocessors)) as u32
}

/// Number of blocks of 256 threads for `items`, each taken by one thread, several per thread.
pub fn of_items(items: i64, multiprocessors: u32) -> u32 {
    blocks(items as u64, 256 * ITEMS, multiprocessors)
}

/// Number of blocks of 256 threads for `rows`, each taken by `lanes` threads.
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
