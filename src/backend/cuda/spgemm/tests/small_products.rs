//! Tests of small products, whose rows are put into bins by their products alone.

use super::*;
use crate::select::spgemm::small::{is_small, LIMITS, MOST_PRODUCTS};

/// Returns a CSR matrix whose rows have these columns.
pub(super) fn csr(rng: &mut Random, cols: i64, rows: &[Vec<i64>]) -> Stored {
    Stored::of_rows::<f64>(rng, Format::Csr, cols, rows, IndexBase::Zero, WIDTHS[0])
}

/// Compares the product with the host's, and returns whether it was processed as a small one.
pub(super) fn is_taken(what: &str, a: &Stored, b: &Stored) -> bool {
    let wanted = |format, base, widths| expected::<F64>((N, N), a, b, 2.0, format, base, widths);
    small::testing::taken_apart(|| compare_with::<F64>(what, (N, N), a, b, 2.0, 1, wanted)) > 0
}

/// Rows with the maximum number of products of each bin, with one more, and with far more.
#[test]
fn every_bin_has_rows() {
    if device().is_none() {
        return;
    }
    let mut rng = Random::new(70);
    // Rows of the right factor: 100 of 700 entries, 300 of one.
    let of_right: Vec<Vec<i64>> =
        (0..400).map(|row| if row < 100 { (row..row + 700).collect() } else { vec![row] }).collect();
    // The longest row has more than 256 entries, which only products of few multiplications may have.
    let long = [0, 1, 2, 99, 100, 101, 256, 400].map(|count| (0..count).collect::<Vec<i64>>());
    let short = [15, 16, 17, 63, 64, 65, 127, 128, 129].map(|count| (100..100 + count).collect::<Vec<i64>>());
    let rest = (0..9000).map(|row| if row % 2 == 0 { vec![100 + row % 300] } else { vec![] });
    let of_left: Vec<Vec<i64>> = long.into_iter().chain(short).chain(rest).collect();
    let (a, b) = (csr(&mut rng, 400, &of_left), csr(&mut rng, 900, &of_right));
    // Rows of 100 and more entries have more products than blocks with few threads take.
    const { assert!(100 * 700 > LIMITS[4] && LIMITS[0] == 16 && LIMITS[1] == 64 && LIMITS[2] == 128) };
    assert!(is_taken("every bin", &a, &b));
}

/// A full column of A meets a long row of B, so that there are many more products than expected.
#[test]
fn a_product_that_is_larger_than_it_looked_is_taken_as_others_are() {
    if device().is_none() {
        return;
    }
    let n = 70_000i64;
    let rows: Vec<Vec<i64>> =
        (0..n).map(|row| if row == 0 { (0..250).collect() } else { vec![0, row] }).collect();
    // The product is expected to be small by its entries, but is not.
    let entries = 250 + 2 * (n - 1);
    assert!(is_small([n; 2], [entries; 2], 250) && 250 * n > MOST_PRODUCTS);
    let mut rng = Random::new(71);
    let a = csr(&mut rng, n, &rows);
    assert!(!is_taken("a full column", &a, &a));
}

/// After a failure for lack of memory, the call can be repeated with more.
#[test]
fn memory_that_is_short_is_an_error() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let mut rng = Random::new(72);
    let rows: Vec<Vec<i64>> = (0..3000).map(|row| (row / 2..row / 2 + 5).collect()).collect();
    let a = csr(&mut rng, 3000, &rows);
    let on_a = a.upload(&arrays);
    let problem = problem::<F64>((N, N), on_a.matrix, on_a.matrix, true);
    let (mut failures, mut done) = (0, 0);
    let taken = small::testing::taken_apart(|| {
        for limit in (0..40).map(|step| step * 16_384).chain([usize::MAX]) {
            let cx = on_device(&device, &stream, limit);
            match build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None) {
                Ok(mut executor) => {
                    assert!(executor.symbolic(&cx).unwrap() > 0);
                    done += 1;
                }
                Err(error) => {
                    assert!(error.lacks_memory() && limit < usize::MAX, "{error:?}");
                    failures += 1;
                }
            }
            assert_eq!(cx.allocator.live_bytes(), 0);
        }
    });
    assert!(failures > 0 && done > 0 && taken == done, "{failures} {done} {taken}");
}
