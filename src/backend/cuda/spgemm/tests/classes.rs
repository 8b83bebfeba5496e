//! Tests of groups of rows with the same columns, and of wide rows.

use super::*;
use crate::backend::cuda::spgemm::bins::{Bins, RowBin};

/// Returns the columns of the rows of a matrix of `unknowns` unknowns for each of `count` nodes on a line,
/// where a node is coupled to those at these distances.
pub(super) fn nodes(count: i64, unknowns: i64, distances: &[i64]) -> Vec<Vec<i64>> {
    let columns = |node: i64| -> Vec<i64> {
        let mut met: Vec<i64> =
            distances.iter().map(|d| node + d).filter(|at| (0..count).contains(at)).collect();
        met.sort_unstable();
        met.into_iter().flat_map(|at| (0..unknowns).map(move |u| at * unknowns + u)).collect()
    };
    (0..count * unknowns).map(|row| columns(row / unknowns)).collect()
}

/// Returns the number of groups and of windows of wide rows in the symbolic phase, and of groups in the
/// numeric phase.
fn classes(a: &Stored, b: &Stored) -> Option<[usize; 3]> {
    let (device, stream) = device()?;
    let _entered = device.enter().unwrap();
    let cx = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&cx), b.upload(&cx));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let mut executor = by_hash(&device.call(&cx).unwrap(), &problem, &choose(&problem)).unwrap();
    let in_groups = |binned: &Binned, bins: Bins| {
        bins.of(RowBin::SamePattern).map(|bin| binned.bin(bin).1 as usize).sum()
    };
    let uncounted = executor.uncounted.as_ref().unwrap();
    let (groups, windows) = (in_groups(uncounted, executor.kernels.symbolic_bins(true)), uncounted.windows);
    executor.symbolic(&cx).unwrap();
    let counted = executor.counted.as_ref().unwrap();
    Some([groups, windows, in_groups(&counted.binned, executor.kernels.numeric_bins(true))])
}

fn group<C: Combo>(count: i64, unknowns: i64, distances: &[i64], alpha: C::Acc, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
{
    let mut rng = Random::new(300 + turn as u64);
    let rows = nodes(count, unknowns, distances);
    let (order, base, widths) = (count * unknowns, IndexBase::ALL[turn % 2], WIDTHS[turn % 3]);
    let a = Stored::of_rows::<C::A>(&mut rng, Format::Csr, order, &rows, base, widths);
    let b =
        Stored::of_rows::<C::X>(&mut rng, Format::Csr, order, &rows, IndexBase::Zero, WIDTHS[(turn + 1) % 3]);
    let what = format!("{} {count} nodes of {unknowns}", C::TYPES.describe());
    compare::<C>(&what, (N, N), &a, &b, alpha, turn);
}

pub(super) const FAR: [i64; 9] = [-120, -60, -20, -1, 0, 1, 20, 60, 120];

#[test]
fn groups_of_every_size() {
    for unknowns in 1..=8 {
        let (count, turn) = (600 / unknowns, unknowns as usize);
        group::<F64>(count, unknowns, &[-7, -6, -2, -1, 0, 1, 2, 6, 7], 0.3, turn);
        group::<F64>(count, unknowns, &FAR, -1.0, turn);
        group::<F32>(count, unknowns, &FAR, 0.3, turn + 1);
    }
    // All rows have the same columns.
    group::<F64>(1, 101, &[0], 1.5, 0);
    // Ranges of more columns than bitmaps of 2^11 and of 2^14 hold.
    for (count, far) in [(900, 700), (2100, 2000), (5000, 2400)] {
        group::<F64>(count, 4, &[-far, -300, -1, 0, 1, 300, far], 0.7, 1);
    }
}

#[test]
fn groups_of_every_type() {
    for (turn, unknowns) in [3, 5].into_iter().enumerate() {
        group::<F16F32>(150, unknowns, &FAR, 0.3, turn);
        group::<Bf16F32>(150, unknowns, &FAR, 0.3, turn + 1);
        group::<C32>(150, unknowns, &FAR, Complex32::new(0.5, 2.0), turn);
        group::<C64>(150, unknowns, &FAR, Complex64::new(-0.5, 1.0), turn + 1);
        group::<C64>(150, unknowns, &FAR, Complex64::new(0.0, 0.0), turn + 1);
    }
}

/// Rows of A whose runs of columns have gaps, and rows of B that repeat the row before or nearly do.
#[test]
fn runs_of_rows_that_are_cut() {
    let mut rng = Random::new(9);
    let b: Vec<Vec<i64>> = (0..400)
        .map(|row: i64| (0..40).map(|i| (row / 5) * 2 + i * 9 + i64::from(row % 10 == 7 && i > 35)).collect())
        .collect();
    let a: Vec<Vec<i64>> = (0..200)
        .map(|row: i64| {
            (0..90).map(|i| (row / 4) + i + i / 7 * 2).filter(|k| k % 11 != row / 4 % 11).collect()
        })
        .collect();
    let a = Stored::of_rows::<f64>(&mut rng, Format::Csr, 400, &a, IndexBase::One, WIDTHS[0]);
    let b = Stored::of_rows::<f64>(&mut rng, Format::Csr, 700, &b, IndexBase::Zero, WIDTHS[0]);
    compare::<F64>("cut runs", (N, N), &a, &b, 1.0, 0);
    if let Some([groups, windows, numeric]) = classes(&a, &b) {
        assert!(
            groups > 30 && groups < 200 && windows == 0 && numeric == groups,
            "{groups} {windows} {numeric}"
        );
    }
}

/// Returns factors of a product whose rows have many products in a narrow range of columns, which crosses
/// borders of windows. With `many`, there are too many windows for bits of B's rows.
pub(super) fn wide_factors<A: Value, B: Value>(many: bool, turn: usize) -> (Stored, Stored) {
    let mut rng = Random::new(77 + turn as u64);
    let (inner, cols) = if many { (3000, 40_000) } else { (2500, 2500) };
    let b: Vec<Vec<i64>> = (0..inner)
        .map(|row: i64| match many {
            true => (0..20).map(|i| (row / 300) * 3990 + (row * 7 % 15) + 15 * i).collect(),
            false => (row - 40..row + 40).filter(|c| (0..cols).contains(c) && rng.below(5) > 0).collect(),
        })
        .collect();
    let a: Vec<Vec<i64>> = (0..60)
        .map(|row: i64| match many {
            true => (0..300).map(|k| row / 6 * 300 + k).filter(|_| rng.below(9) > 0).collect(),
            false => (row * 40..row * 40 + 90).filter(|&k| k < inner && rng.below(7) > 0).collect(),
        })
        .collect();
    let (base, widths) = (IndexBase::ALL[turn % 2], WIDTHS[turn % 3]);
    let a = Stored::of_rows::<A>(&mut rng, Format::Csr, inner, &a, base, widths);
    (
        a,
        Stored::of_rows::<B>(
            &mut rng,
            Format::Csr,
            cols,
            &b,
            IndexBase::ALL[(turn + 1) % 2],
            WIDTHS[(turn + 1) % 3],
        ),
    )
}

#[test]
fn wide_rows() {
    for many in [false, true] {
        let (a, b) = wide_factors::<f64, f64>(many, 0);
        compare::<F64>("wide", (N, N), &a, &b, 1.25, 0);
        compare::<F64>("wide", (N, N), &a, &b, 0.0, 1);
        if let Some([groups, windows, _]) = classes(&a, &b) {
            assert!(groups == 0 && windows > 60, "{groups} {windows}");
        }
        let (a, b) = wide_factors::<f32, f32>(many, 1);
        compare::<F32>("wide f32", (N, N), &a, &b, 1.25, 1);
        let (a, b) = wide_factors::<f16, f16>(many, 2);
        compare::<F16F32>("wide f16", (N, N), &a, &b, 1.25, 2);
        let (a, b) = wide_factors::<bf16, bf16>(many, 3);
        compare::<Bf16F32>("wide bf16", (N, N), &a, &b, 1.25, 3);
        let (a, b) = wide_factors::<Complex32, Complex32>(many, 4);
        compare::<C32>("wide c32", (N, N), &a, &b, Complex32::new(0.5, 2.0), 4);
        let (a, b) = wide_factors::<Complex64, Complex64>(many, 5);
        compare::<C64>("wide c64", (N, N), &a, &b, Complex64::new(-0.5, 1.0), 5);
    }
}

/// With less memory than windows take, wide rows are computed in another way, and with less than that takes,
/// the call fails. If it succeeds, C has the same bits.
#[test]
fn wide_rows_without_memory() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (a, b) = wide_factors::<f64, f64>(false, 0);
    let wanted = expected::<F64>((N, N), &a, &b, 0.3, Format::Csr, IndexBase::Zero, WIDTHS[0]);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let mut ways = [0; 3];
    for shift in 10..26 {
        let cx = on_device(&device, &stream, 1 << shift);
        let done =
            by_hash(&device.call(&cx).unwrap(), &problem, &choose(&problem)).and_then(|mut executor| {
                let nnz = executor.symbolic(&cx)?;
                let c = Stored::room::<f64>(Format::Csr, (60, 2500), nnz, IndexBase::Zero, WIDTHS[0]);
                let on_c = c.upload(&arrays);
                executor.numeric(&cx, address(&0.3), &on_c.matrix)?;
                assert!(c.download(&arrays, &on_c) == wanted, "{shift} bits");
                Ok(usize::from(executor.counted.as_ref().is_some_and(|counted| counted.wide.is_some())))
            });
        match done {
            Ok(wide) => ways[wide] += 1,
            Err(error) => {
                assert_eq!(error.status, Status::InsufficientResources);
                ways[2] += 1;
            }
        }
        assert_eq!(cx.allocator.live_bytes(), 0);
    }
    assert!(ways.iter().all(|&times| times > 0), "{ways:?}");
}
