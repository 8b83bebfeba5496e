//! Statistics that decide between SpMV's layouts (src/select/spmv/statistics.rs), counted on the device by
//! one kernel, which adds to words that must be zero.

use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::{launch_overlapping, Overlap};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::operand::{Rows, Widths};
use crate::error::Result;
use crate::select::spmv::statistics::samples;
use crate::types::Address;

kernel_kinds! { "analysis/statistics" { STATISTICS(Widths) = "statistics" for [widths()]; } }
/// Threads of a block of kernels/analysis/statistics.cu, and its warps.
const THREADS: u32 = 256;
const WARPS: u64 = THREADS as u64 / 32;

/// Enqueues the counting over rows of op(A), which need not be valid. `words` has room for the words of the
/// statistics without the last two ([`crate::select::spmv::statistics::SHARED`]).
pub fn enqueue(
    cx: &DeviceCall<'_>,
    rows: &Rows,
    x_bytes: usize,
    words: Address,
    overlap: &Overlap,
) -> Result<()> {
    let (runs, samples) = samples(rows.rows as u64);
    if rows.rows > 0 {
        let kernel = STATISTICS.load(cx.device, (rows.widths(),))?;
        // One warp per sample, and more blocks where there are many offsets.
        let grid = blocks(cx.device, rows.rows).max(samples.div_ceil(WARPS) as u32);
        // SAFETY: the arrays have rows + 1 and nnz elements of these types; the kernel compares an offset
        // with nnz before it uses it as an index; `words` has SHARED words.
        unsafe {
            launch_overlapping!(overlap, kernel, grid, THREADS, 0, cx.stream;
                rows.offsets, rows.indices, rows.base, rows.rows, rows.nnz, runs as i64, samples as i64,
                (32 / x_bytes).ilog2() as i32, words)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::backend::cuda::convert::testing::{context_of_device, typed};
    use crate::backend::cuda::memory::{DeviceBuffer, Readback};
    use crate::backend::cuda::spmv::enqueue_shared;
    use crate::matrix::compressed::Pattern;
    use crate::select::spmv::sell::may_share;
    use crate::select::spmv::statistics::{SpmvStatistics, SHARED, WORDS};
    use crate::types::{Index, IndexType};
    use matrices::gallery;

    fn statistics(cx: &DeviceCall<'_>, rows: &Rows, x_bytes: usize) -> SpmvStatistics {
        let mut words = Readback::take(cx).unwrap();
        let overlap = &Overlap::new(true);
        enqueue(cx, rows, x_bytes, words.at(0), overlap).unwrap();
        let wanted = rows.rows > 0 && may_share(rows.rows as usize, rows.nnz as usize);
        let same = DeviceBuffer::new(cx, rows.rows as usize).unwrap();
        if wanted {
            enqueue_shared(cx, rows, &same, words.at(SHARED), overlap).unwrap();
        }
        words.fetch(cx, WORDS).unwrap();
        let words = words.wait(cx).unwrap()[..WORDS].to_vec();
        SpmvStatistics::new((rows.rows as u64, rows.cols as u64, rows.nnz as u64), x_bytes, words)
    }

    /// Asserts that the device counts what the CPU counts, for every index width and base.
    fn compare(name: &str, cols: i64, offsets: &[i64], indices: &[i64]) {
        let Some((device, cx)) = context_of_device() else { return };
        let cx = &device.call(&cx).unwrap();
        let major = offsets.len() - 1;
        for (offset_type, index_type) in [
            (IndexType::I32, IndexType::I32),
            (IndexType::I64, IndexType::I32),
            (IndexType::I64, IndexType::I64),
        ] {
            for base in [0, 1] {
                let shifted = |numbers: &[i64]| numbers.iter().map(|n| n + base).collect::<Vec<_>>();
                let (offsets, indices) = (shifted(offsets), shifted(indices));
                let on_device = [typed(&offsets, offset_type), typed(&indices, index_type)]
                    .map(|array| DeviceBuffer::from_slice(cx, &array).unwrap());
                let rows = Rows {
                    offsets: on_device[0].address(),
                    indices: on_device[1].address(),
                    values: crate::types::Address::NULL,
                    offset_type,
                    index_type,
                    base,
                    rows: major as i64,
                    cols,
                    nnz: indices.len() as i64,
                };
                for x_bytes in [2, 4, 8, 16] {
                    let pattern = Pattern {
                        major,
                        minor: cols as usize,
                        base,
                        offsets: &offsets,
                        indices: &indices,
                        by_columns: false,
                    };
                    let found = statistics(cx, &rows, x_bytes);
                    let again = statistics(cx, &rows, x_bytes);
                    let expected = SpmvStatistics::of(&pattern, x_bytes);
                    assert_eq!(found, expected, "{name}, {offset_type:?} {index_type:?} base {base}");
                    assert_eq!(found, again, "{name}");
                }
            }
        }
    }

    fn wide<I: Index>(numbers: &[I]) -> Vec<i64> {
        numbers.iter().map(|n| n.to_i64()).collect()
    }

    #[test]
    fn the_device_counts_what_the_cpu_counts() {
        for name in ["mc2depi", "webbase", "rmat16", "dc2", "cant", "band64", "scircuit"] {
            let a = gallery::named(name).unwrap();
            compare(name, a.cols as i64, &wide(&a.offsets), &wide(&a.indices));
        }
        for rows in [0, 1, 7, 8, 31, 32, 33, 1000] {
            let a = gallery::uniform(rows, 70_000, 5, 3).unwrap();
            compare("uniform", 70_000, &wide(&a.offsets), &wide(&a.indices));
        }
    }

    /// Tests groups of rows with the same columns, and rows that differ in one column only.
    #[test]
    fn shared_columns_are_counted() {
        let mut random = matrices::SplitMix64::new(3);
        let mut draw = |n: u64| random.below(n) as i64;
        // Some numbers of rows let each warp look at several of them.
        for rows in [2, 3, 1023, 1024, 1025, 2050, 40_000] {
            let (mut offsets, mut indices) = (vec![0], Vec::<i64>::new());
            let mut row: Vec<i64> = Vec::new();
            for _ in 0..rows {
                match draw(10) {
                    // A new row, of another length, at times of one that takes a warp several steps.
                    0 | 1 => {
                        let length = if rows < 5000 && draw(20) == 0 { 150 + draw(200) } else { draw(24) };
                        row = (0..length).map(|at| 11 * at + draw(11)).collect();
                    }
                    // A row of the same length that differs in one column.
                    2 if !row.is_empty() => {
                        let at = draw(row.len() as u64) as usize;
                        row[at] = 11 * at as i64 + draw(11);
                    }
                    _ => {}
                }
                indices.extend(&row);
                offsets.push(indices.len() as i64);
            }
            compare("grouped", 4000, &offsets, &indices);
        }
    }

    #[test]
    fn a_pattern_that_is_wrong_is_counted_too() {
        let mut random = matrices::SplitMix64::new(11);
        let mut draw = |n: u64| random.below(n) as i64;
        for _ in 0..4 {
            // Offsets that descend, are negative or point beyond the array; columns likewise.
            let offsets: Vec<i64> = (0..501).map(|_| draw(5000) - 1000).collect();
            let indices: Vec<i64> = (0..3000).map(|_| draw(9000) - 4000).collect();
            compare("wrong", 1000, &offsets, &indices);
        }
        // Every entry of a long row has the same column.
        let offsets: Vec<i64> = (0..=40).map(|row| row * 500).collect();
        compare("repeated", 100, &offsets, &vec![5; 20_000]);
    }
}
