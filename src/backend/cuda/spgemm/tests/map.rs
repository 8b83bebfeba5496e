//! Tests of numeric phases with a map of the products.

use super::*;
use crate::types::Accumulator;

/// Sizes of A and of B: number of rows, mean length, and lengths of long rows.
pub(super) struct Shape<'a> {
    pub of_a: (usize, i64, &'a [usize]),
    pub of_b: (usize, i64, &'a [usize]),
    pub cols: i64,
}

/// Returns sizes with long rows in A and in B, rows with many products, and empty rows.
fn scattered(cols: i64) -> Shape<'static> {
    Shape { of_a: (120, 3, &[4500, 900, 40]), of_b: (5000, 3, &[700, 90, 33]), cols }
}

/// Tests numeric phases with value updates, which use the map after the first one.
pub(super) fn again<C: Combo, S: Combo<Acc = C::Acc>>(scalars: (C::Acc, C::Acc), of: &Shape, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
    S::Y: Value,
{
    let (alpha, inner) = (scalars.1, of.of_b.0);
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(400 + turn as u64);
    let (widths, other) = (WIDTHS[turn % 3], WIDTHS[(turn + 1) % 3]);
    let of_a = lengths(&mut rng, of.of_a.0, of.of_a.1, of.of_a.2);
    let of_b = lengths(&mut rng, of.of_b.0, of.of_b.1, of.of_b.2);
    let mut stored = |lengths: &[usize], cols: i64, base: IndexBase, widths| {
        Stored::random::<C::A>(&mut rng, Format::Csr, cols, lengths, Kind::Distinct, base, widths)
    };
    let a = stored(&of_a, inner as i64, IndexBase::One, widths);
    let b = stored(&of_b, of.cols, IndexBase::Zero, other);
    let values = |stored: &Stored, rng: &mut Random| {
        let mut new = stored.clone();
        new.arrays[2] = Array::of(&(0..stored.head.2).map(|_| C::A::random(rng)).collect::<Vec<_>>());
        new
    };
    let (new_a, new_b) = (values(&a, &mut rng), values(&b, &mut rng));
    let cx = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&cx), b.upload(&cx));
    let (on_new_a, on_new_b) = (new_a.upload(&cx), new_b.upload(&cx));
    let problem = problem::<C>((N, N), on_a.matrix, on_b.matrix, true);
    let mut executor = by_hash(&device.call(&cx).unwrap(), &problem, &choose(&problem)).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let what = C::TYPES.describe();
    let check = |executor: &mut CudaSpgemm, (a, b): (&Stored, &Stored), format, alpha: C::Acc| {
        let wanted = cut::expected::<C, S>((a, b), (scalars.0, alpha), format, IndexBase::One, widths);
        let c = Stored::room::<C::Y>(format, shape((N, N), a, b), nnz, IndexBase::One, widths);
        let on_c = c.upload(&cx);
        executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
        assert!(c.download(&cx, &on_c) == wanted, "{what} {format:?}");
    };
    check(&mut executor, (&a, &b), Format::Csr, alpha);
    assert!(executor.kept.as_ref().is_some_and(|kept| kept.map.is_some()), "{what}: no map");
    let wide = executor.counted.as_ref().and_then(|counted| counted.wide.as_ref());
    let has_parts = wide.is_some_and(|wide| wide.has_parts(&executor.statistics.at()));
    assert_eq!(has_parts, of.cols == 1500, "{what}");
    check(&mut executor, (&a, &b), Format::Csr, alpha);
    executor.update_values(&cx, on_new_a.matrix.values(), Address::NULL).unwrap();
    check(&mut executor, (&new_a, &b), Format::Csr, alpha);
    executor.update_values(&cx, Address::NULL, on_new_b.matrix.values()).unwrap();
    check(&mut executor, (&new_a, &new_b), Format::Csc, alpha);
    check(&mut executor, (&new_a, &new_b), Format::Csr, C::Acc::ZERO);
}

#[test]
fn products_are_where_they_were() {
    for (turn, cols) in [300_000, 50_000, 2_000_000].into_iter().enumerate() {
        again::<F64, F64>((1.0, 0.3), &scattered(cols), turn);
    }
    // Entries have several products each.
    again::<F64, F64>((1.0, 0.3), &Shape { of_a: (400, 6, &[20]), of_b: (300, 60, &[100]), cols: 150 }, 0);
    again::<F32, F32>((1.0, -1.7), &scattered(60_000), 3);
    again::<F16F32, F32>((1.0, 0.3), &scattered(300_000), 4);
    again::<Bf16F32, F32>((1.0, 0.3), &scattered(300_000), 5);
    let (c32, c64) = (Complex32::new(1.0, 0.0), Complex64::new(1.0, 0.0));
    again::<C32, C32>((c32, Complex32::new(0.5, 2.0)), &scattered(60_000), 6);
    again::<C64, C64>((c64, Complex64::new(-0.5, 1.0)), &scattered(60_000), 7);
}

/// Split rows; the entries of the longest have a hundred products and more.
#[test]
fn parts_and_long_lists() {
    let of =
        Shape { of_a: (1500, 30, &[50_000, 9_000, 257, 300]), of_b: (60_000, 3, &[300, 40]), cols: 1500 };
    again::<F64, F64>((1.0, 0.3), &of, 0);
    again::<F32, F32>((1.0, -1.7), &of, 1);
    again::<F16F32, F32>((1.0, 0.3), &of, 2);
    again::<C64, C64>((Complex64::new(1.0, 0.0), Complex64::new(-0.5, 1.0)), &of, 3);
}
