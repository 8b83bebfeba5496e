//! Small products, whose time is mostly that of launches and waits. The kernel that counts the products of
//! the rows also puts the rows into bins, by these numbers alone. The entries of C are counted right after
//! it, from lists whose lengths only the device knows, and the host waits once for all results. The numeric
//! phase uses the same bins.

use super::bins::{Binned, Bins, ProductRowStats, RowBin};
use super::kernels::Name;
use super::rows::{Factor, Kernels, Listed, DISTINCT, SORTED};
use super::Counted;
use crate::backend::cuda::convert::device_wide::scan_in_place;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch, launch_overlapping, Overlap};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{DeviceBuffer, Fill, Readback};
use crate::backend::cuda::operand::{RowStats, Rows};
use crate::error::Result;
use crate::select::grids;
use crate::select::spgemm::bins::is_far;
use crate::select::spgemm::rows::{count_part, lanes, part, threads_at_once};
use crate::select::spgemm::small::{
    is_small, least, most_products, most_rows, team_blocks, window_blocks, BINS, LIMITS, TABLES,
};
use crate::select::spgemm::windows::{count_window, LARGE_BLOCK, SMALL_BLOCK};
use crate::types::Address;

kernel_structs! {
    /// Bins of a small product's rows; the kernels' `SmallBins`.
    pub struct SmallBins = "spgemm/rows.cu SmallBins" {
        limits: [i64; BINS - 1],
        counts: Address,
        list: Address,
        stride: i64,
    }
}

impl SmallBins {
    /// NULL addresses, with which rows are not put into bins.
    pub const NONE: SmallBins =
        SmallBins { limits: LIMITS, counts: Address::NULL, list: Address::NULL, stride: 0 };
}

/// Word numbers of the readback page: halves of the sum of all products, number of rows of each bin, number
/// of entries of C.
mod word {
    pub const PRODUCTS: usize = 0;
    pub const COUNTS: usize = 2;
    pub const ENTRIES: usize = COUNTS + super::BINS;
}

/// Returns the number that each of the small product's bins has among the bins of the numeric phase.
fn numeric_bins(bins: &Bins) -> [usize; BINS] {
    let table = |limit: i64| {
        let at = bins.limits.iter().position(|&most| most == limit);
        RowBin::Table.bins().start + at.expect("a bin of the numeric phase has this limit")
    };
    std::array::from_fn(|bin| match bin {
        ..TABLES => table(LIMITS[bin]),
        _ => RowBin::Bitmap.bins().start + bin - TABLES,
    })
}

/// Switch for unit tests. Their matrices are small, and are processed as larger ones except inside of
/// [`testing::taken_apart`].
#[cfg(test)]
pub mod testing {
    use std::cell::Cell;

    thread_local! {
        static ARE_APART: Cell<bool> = const { Cell::new(false) };
        static TAKEN: Cell<usize> = const { Cell::new(0) };
    }

    /// Runs `what` with small products processed as such, as in the library, and returns their number.
    pub fn taken_apart(what: impl FnOnce()) -> usize {
        let before = TAKEN.get();
        ARE_APART.set(true);
        what();
        ARE_APART.set(false);
        TAKEN.get() - before
    }

    pub(super) fn are_apart() -> bool {
        ARE_APART.get()
    }

    pub(super) fn note() {
        TAKEN.set(TAKEN.get() + 1);
    }
}

#[cfg(not(test))]
mod testing {
    pub fn are_apart() -> bool {
        true
    }

    pub fn note() {}
}

/// Rows of a factor, and statistics of their lengths.
type Side<'a> = (&'a Rows, &'a RowStats);

/// Sorts the rows of a small product into bins and counts the entries of C. Returns the statistics, the
/// result of the symbolic phase and the number of multiplications; `None` if the product is not small, which
/// is found out with as little work as possible. Blocks.
pub fn count(
    cx: &DeviceCall<'_>,
    kernels: &Kernels,
    (left, left_stats): Side<'_>,
    (right, right_stats): Side<'_>,
    order: i32,
) -> Result<Option<(ProductRowStats, Counted, i64)>> {
    let entries = [left.nnz, right.nnz];
    let of_longest = left_stats.max.saturating_mul(right_stats.max);
    let is_ordered = order == SORTED | DISTINCT && !is_far(right.cols);
    if !testing::are_apart() || !is_ordered || !is_small([left.rows, right.rows], entries, left_stats.max) {
        return Ok(None);
    }
    let (rows_of_c, most) = (left.rows as usize, most_products(left_stats.max));
    let products = DeviceBuffer::<i64>::new(cx, rows_of_c)?;
    let mut list = DeviceBuffer::<u32>::new(cx, BINS * rows_of_c)?;
    let mut offsets = DeviceBuffer::<i64>::new(cx, rows_of_c + 1)?;
    let mut words = Readback::take(cx)?;
    let (left_factor, right_factor) = (Factor::of(left), Factor::of(right));
    let multiprocessors = cx.device.properties().multiprocessors;
    let lanes = lanes(left.rows, left_stats.mean(), multiprocessors);
    let blocks = grids::of_rows(left.rows, lanes, multiprocessors);
    let (counts, totals) = (words.at(word::COUNTS), words.at(word::PRODUCTS));
    let bins = SmallBins { limits: LIMITS, counts, list: list.address(), stride: left.rows };
    // SAFETY: the patterns have been validated; `products` has an element for each row and `offsets` one more,
    // there are two words for the sum, and the list has an element for each row in each bin.
    unsafe {
        launch!(kernels.get(Name::Products)?, (blocks, 1), 256, 0, cx.stream;
            left_factor, right_factor, left.rows, lanes, products.address(), totals, bins, offsets.address())?;
    }
    let listed = |bin: usize| Listed {
        rows: list.at(bin * rows_of_c),
        count: 0,
        counted: counts.offset(bin * size_of::<u64>()),
        products: totals,
        most,
    };
    let overlap = &Overlap::new(true);
    for bin in (0..BINS).rev().filter(|&bin| of_longest >= least(bin)) {
        if bin < TABLES {
            let part = count_part(part(right_stats.mean()));
            let shape = kernels.team_count_shape(cx.device, part, LIMITS[bin] as u32, i64::MAX);
            // The kernel gives teams more lanes if rows are few.
            let threads = threads_at_once(multiprocessors);
            let grid = team_blocks(shape.blocks(most_rows(bin, left.rows)), multiprocessors);
            // SAFETY: as above; rows of the bin fit the table, and each has an element of `offsets`.
            unsafe {
                launch_overlapping!(overlap, kernels.get(Name::TeamCount)?, grid, shape.threads, shape.shared, cx.stream;
                    left_factor, right_factor, shape.lanes, threads, part, listed(bin), shape.table, offsets.address())?;
            }
        } else {
            let threads = if bin == TABLES { SMALL_BLOCK } else { LARGE_BLOCK };
            let window = count_window(right.cols, threads, 1);
            let grid = window_blocks(most_rows(bin, left.rows), threads, multiprocessors);
            // SAFETY: as above; the shared memory is what the kernel needs.
            unsafe {
                launch_overlapping!(overlap, kernels.get(Name::BitmapCount)?, grid, threads, window.shared, cx.stream;
                    left_factor, right_factor, order, right.cols, listed(bin), window.bits, 1i32, offsets.address())?;
            }
        }
    }
    // SAFETY: both are the rows + 1 numbers of `offsets`.
    unsafe { scan_in_place(cx, offsets.address(), rows_of_c + 1)? };
    words.fetch_with(cx, word::ENTRIES, [offsets.at(rows_of_c), Address::NULL])?;
    let found = words.wait(cx)?;
    if found[word::PRODUCTS + 1] != 0 || found[word::PRODUCTS] > most as u64 {
        return Ok(None);
    }
    let all = found[word::PRODUCTS] as i64;
    let of_bins: [usize; BINS] = std::array::from_fn(|bin| found[word::COUNTS + bin] as usize);
    let nnz = found[word::ENTRIES] as i64;
    list.mark_filled();
    offsets.mark_filled();
    let statistics = ProductRowStats::of_products(products, left);
    let numeric = kernels.numeric_bins(true);
    let mut binned = Binned::empty(list);
    for (bin, (at, count)) in numeric_bins(&numeric).into_iter().zip(of_bins).enumerate() {
        binned.set_range(at, bin * rows_of_c, count);
    }
    kernels.prepare(&numeric, &binned, false)?;
    testing::note();
    Ok(Some((statistics, Counted { offsets, nnz, binned, wide: None, dense: None }, all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::spgemm::small::MOST_PRODUCTS;

    #[test]
    fn the_numeric_phase_has_these_bins() {
        for (key, value) in [(4, 4), (4, 16), (8, 8)] {
            let bins = Bins::numeric(true, key, value, false);
            let found = numeric_bins(&bins);
            assert!(found.windows(2).all(|two| two[0] < two[1]), "{found:?}");
            assert_eq!(bins.medium, LIMITS[TABLES]);
            for (bin, limit) in found.into_iter().zip(LIMITS).take(TABLES) {
                assert_eq!(i64::from(bins.limit(RowBin::Table, bin)), limit);
            }
        }
    }

    #[test]
    fn rows_of_tables_are_within_what_warps_take() {
        assert!(super::super::rows::grid(MOST_PRODUCTS / (LIMITS[TABLES - 1] + 1)).is_ok());
    }
}
