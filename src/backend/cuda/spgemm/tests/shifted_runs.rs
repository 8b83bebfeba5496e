//! Tests of shifted runs, and of rows with many entries that are far apart.

use super::*;
use crate::backend::cuda::spgemm::bins::{Bins, RowBin};

/// Returns the neighbours at these offsets of each point of a grid.
pub(super) fn grid([width, height, depth]: [i64; 3], offsets: &[[i64; 3]]) -> Vec<Vec<i64>> {
    let mut rows = Vec::new();
    for z in 0..depth {
        for y in 0..height {
            for x in 0..width {
                let met = offsets.iter().map(|[dx, dy, dz]| [x + dx, y + dy, z + dz]);
                let inside = met.filter(|[x, y, z]| {
                    (0..width).contains(x) && (0..height).contains(y) && (0..depth).contains(z)
                });
                let mut row: Vec<i64> = inside.map(|[x, y, z]| (z * height + y) * width + x).collect();
                row.sort_unstable();
                rows.push(row);
            }
        }
    }
    rows
}

/// Returns all offsets of up to `far` in each direction, whose absolute values sum up to at most `sum`.
pub(super) fn steps(far: i64, sum: i64) -> Vec<[i64; 3]> {
    let each = -far..=far;
    let all = each.clone().flat_map(|z| {
        let each = each.clone();
        each.clone().flat_map(move |y| each.clone().map(move |x| [x, y, z]))
    });
    all.filter(|[x, y, z]| x.abs() + y.abs() + z.abs() <= sum).collect()
}

fn product<C: Combo>(what: &str, (a, b): (&[Vec<i64>], &[Vec<i64>]), cols: i64, alpha: C::Acc, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
{
    let mut rng = Random::new(500 + turn as u64);
    let (base, widths) = (IndexBase::ALL[turn % 2], WIDTHS[turn % 3]);
    let inner = b.len() as i64;
    let a = Stored::of_rows::<C::A>(&mut rng, Format::Csr, inner, a, base, widths);
    let b = Stored::of_rows::<C::X>(&mut rng, Format::Csr, cols, b, IndexBase::Zero, WIDTHS[(turn + 1) % 3]);
    compare::<C>(&format!("{} {what}", C::TYPES.describe()), (N, N), &a, &b, alpha, turn);
}

/// Returns the number of rows of A · A in each of these bins of the numeric phase.
fn listed(rows: &[Vec<i64>], bins: impl Fn(&Bins) -> Vec<usize>) -> Option<Vec<i64>> {
    let (device, stream) = device()?;
    let cx = on_device(&device, &stream, usize::MAX);
    let cx = &device.call(&cx).unwrap();
    let (order, base) = (rows.len() as i64, IndexBase::Zero);
    let a = Stored::of_rows::<f64>(&mut Random::new(1), Format::Csr, order, rows, base, WIDTHS[0]);
    let on_a = a.upload(cx);
    let problem = problem::<F64>((N, N), on_a.matrix, on_a.matrix, false);
    let mut executor = by_hash(cx, &problem, &choose(&problem)).unwrap();
    executor.symbolic(cx).unwrap();
    let counted = executor.counted.as_ref().unwrap();
    let bins = bins(&executor.kernels.numeric_bins(true));
    Some(bins.into_iter().map(|bin| counted.binned.bin(bin).1).collect())
}

#[test]
fn shifted_runs_on_grids() {
    // Lines longer and shorter than a shifted run, and rows of C of all bins.
    for (turn, (shape, far, sum)) in [
        ([70, 61, 1], 1, 1),
        ([66, 65, 1], 1, 2),
        ([12, 400, 1], 1, 1),
        ([33, 12, 11], 1, 1),
        ([40, 11, 10], 1, 3),
        ([6000, 1, 1], 9, 9),
        ([100, 42, 1], 2, 3),
        ([64, 8, 9], 2, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let rows = grid(shape, &steps(far, sum));
        let order = rows.len() as i64;
        product::<F64>("grid", (&rows, &rows), order, 0.3, turn);
        product::<F64>("grid", (&rows, &rows), order, 0.0, turn + 1);
        product::<F32>("grid", (&rows, &rows), order, -1.5, turn + 2);
        if let Some(found) = listed(&rows, |bins| bins.of(RowBin::ShiftedPattern).collect()) {
            assert!(found.iter().sum::<i64>() * 6 > order / 32, "{shape:?}: {found:?}");
        }
    }
}

#[test]
fn shifted_runs_of_every_type() {
    let rows = grid([33, 12, 11], &steps(1, 3));
    let order = rows.len() as i64;
    product::<F16F32>("grid", (&rows, &rows), order, 0.3, 0);
    product::<Bf16F32>("grid", (&rows, &rows), order, 0.3, 1);
    product::<C32>("grid", (&rows, &rows), order, Complex32::new(0.5, 2.0), 2);
    product::<C64>("grid", (&rows, &rows), order, Complex64::new(-0.5, 1.0), 3);
}

/// An A of shifted runs, and a B that has shifted runs only in part, other columns than A, and rows without
/// entries.
#[test]
fn shifted_runs_of_two_factors() {
    let a: Vec<Vec<i64>> = (0..4500_i64).map(|i| vec![i / 900 * 7 + i, i + 40, i + 41, i + 90]).collect();
    let b: Vec<Vec<i64>> = (0..4640_i64)
        .map(|k| match k % 701 {
            0..=80 => vec![],
            81..=90 => vec![k, k + 5],
            _ => vec![k, k + 3, k + 100, k + 2000],
        })
        .collect();
    for turn in 0..3 {
        product::<F64>("two", (&a, &b), 7000, 0.7, turn);
    }
}

/// Rows with more entries than a warp sorts, with few products per entry, and with so many that the products
/// take turns.
#[test]
fn rows_of_one_table() {
    let mut rng = Random::new(31);
    for (cols, turn) in [(1_500_000, 0), (600_000, 1), (800_000, 2)] {
        let b: Vec<Vec<i64>> = (0..3000)
            .map(|row| {
                let mut row: Vec<i64> =
                    (0..rng.below(40)).map(|_| rng.below(cols)).chain([row % 3]).collect();
                row.sort_unstable();
                row.dedup();
                row
            })
            .collect();
        let a: Vec<Vec<i64>> = (0..60)
            .map(|row| {
                let mut row: Vec<i64> = (0..40 + 7 * row).map(|_| rng.below(3000)).collect();
                row.sort_unstable();
                row.dedup();
                row
            })
            .collect();
        product::<F64>("tables", (&a, &b), cols, 0.7, turn);
        product::<C64>("tables", (&a, &b), cols, Complex64::new(-0.5, 1.0), turn + 1);
        product::<F16F32>("tables", (&a, &b), cols, 0.3, turn + 2);
    }
}

/// Rows of thousands of entries, some near each other and some far apart.
#[test]
fn scattered_rows() {
    let mut rng = Random::new(41);
    let (inner, cols) = (1500, 300_000);
    let mut row_of = |parts: &[(i64, i64)]| {
        let mut row: Vec<i64> =
            parts.iter().flat_map(|&(count, below)| (0..count).map(move |_| below)).collect();
        row.iter_mut().for_each(|column| *column = rng.below(*column));
        row.sort_unstable();
        row.dedup();
        row
    };
    let b: Vec<Vec<i64>> = (0..inner).map(|_| row_of(&[(25, 20_000), (25, cols)])).collect();
    let a: Vec<Vec<i64>> = (0..60).map(|i| row_of(&[(400 + 20 * (i % 9), inner)])).collect();
    for turn in 0..2 {
        product::<F64>("scattered", (&a, &b), cols, 0.7, turn);
        product::<F64>("scattered", (&a, &b), cols, 0.0, turn + 1);
        product::<F16F32>("scattered", (&a, &b), cols, 0.3, turn + 1);
        product::<C64>("scattered", (&a, &b), cols, Complex64::new(-0.5, 1.0), turn);
    }
}
