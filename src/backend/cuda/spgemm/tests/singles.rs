//! Tests of rows of A with one entry, and of rows whose columns are divided among several blocks.

use super::*;

/// Returns an A most of whose rows have one entry, some none and some several, and a B with rows of all
/// lengths.
pub(super) fn factors<A: Value, B: Value>(rows: usize, longest: usize, cols: i64) -> (Stored, Stored) {
    let mut rng = Random::new(57);
    let inner = 600;
    let lengths: Vec<usize> = (0..rows)
        .map(|row| match row % 11 {
            4 => 0,
            7 => 1 + rng.below(6) as usize,
            _ => 1,
        })
        .collect();
    let (distinct, base) = (Kind::Distinct, IndexBase::One);
    let a = Stored::random::<A>(&mut rng, Format::Csr, inner, &lengths, distinct, base, WIDTHS[0]);
    let mut lengths: Vec<usize> = (0..inner).map(|_| rng.below(9) as usize).collect();
    for (at, length) in [(3, 62), (50, 64), (51, 67), (200, 300), (599, longest)] {
        lengths[at] = length;
    }
    let b = Stored::random::<B>(&mut rng, Format::Csr, cols, &lengths, distinct, IndexBase::Zero, WIDTHS[1]);
    (a, b)
}

fn product<C: Combo>(what: &str, cols: i64, alpha: C::Acc, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
{
    let (a, b) = factors::<C::A, C::X>(5000, 7000, cols);
    compare::<C>(&format!("{} {what}", C::TYPES.describe()), (N, N), &a, &b, alpha, turn);
}

#[test]
fn rows_of_one_factor() {
    for (turn, cols) in [20_000, 700_000].into_iter().enumerate() {
        product::<F64>("singles", cols, 0.7, turn);
        product::<F64>("singles", cols, 0.0, turn + 1);
        product::<F32>("singles", cols, -1.5, turn + 2);
        product::<F16F32>("singles", cols, 0.3, turn);
        product::<Bf16F32>("singles", cols, 0.3, turn + 1);
        product::<C32>("singles", cols, Complex32::new(0.5, 2.0), turn + 2);
        product::<C64>("singles", cols, Complex64::new(-0.5, 1.0), turn);
    }
}

/// Diagonal A, where every row has one factor, or diagonal B, where every product has a column of its own.
#[test]
fn diagonal_factors() {
    let mut rng = Random::new(58);
    let rows = 6000;
    let diagonal: Vec<Vec<i64>> = (0..rows).map(|i| vec![i]).collect();
    let d = Stored::of_rows::<f64>(&mut rng, Format::Csr, rows, &diagonal, IndexBase::Zero, WIDTHS[2]);
    let lengths = lengths(&mut rng, rows as usize, 20, &[900, 3000]);
    let a = Stored::random::<f64>(
        &mut rng,
        Format::Csr,
        rows,
        &lengths,
        Kind::Distinct,
        IndexBase::One,
        WIDTHS[0],
    );
    compare::<F64>("left", (N, N), &d, &a, 0.7, 0);
    compare::<F64>("right", (N, N), &a, &d, 0.7, 1);
    compare::<F64>("both", (N, N), &d, &d, 0.7, 2);
}

/// One to five rows of thousands of entries, over few and many columns.
#[test]
fn few_long_rows() {
    for (turn, (count, cols)) in [(1, 3000), (5, 9000), (3, 70_000), (2, 1_200_000)].into_iter().enumerate() {
        for kind in [Kind::Distinct, Kind::Any] {
            let mut rng = Random::new(59 + turn as u64);
            let a = vec![250; count];
            let a = Stored::random::<f64>(&mut rng, Format::Csr, 900, &a, kind, IndexBase::Zero, WIDTHS[0]);
            let b = vec![130; 900];
            let b = Stored::random::<f64>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::One, WIDTHS[1]);
            compare::<F64>(&format!("{count} {cols} {kind:?}"), (N, N), &a, &b, 0.7, turn);
        }
    }
}
