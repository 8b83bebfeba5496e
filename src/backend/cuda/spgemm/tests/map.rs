//! Numeric phases by a map of the products.

use super::*;
use crate::types::Accumulator;

/// Three numeric phases with value updates, of which the last two know where every product is.
fn again<C: Combo>(alpha: C::Acc, cols: i64, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
{
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(400 + turn as u64);
    let (widths, other) = (WIDTHS[turn % 3], WIDTHS[(turn + 1) % 3]);
    // Rows of A and of B that are long, rows of many products, and empty ones.
    let of_a = lengths(&mut rng, 120, 3, &[4500, 900, 40]);
    let of_b = lengths(&mut rng, 5000, 3, &[700, 90, 33]);
    let mut stored = |lengths: &[usize], cols: i64, base: IndexBase, widths| {
        Stored::random::<C::A>(&mut rng, Format::Csr, cols, lengths, Kind::Distinct, base, widths)
    };
    let a = stored(&of_a, 5000, IndexBase::One, widths);
    let b = stored(&of_b, cols, IndexBase::Zero, other);
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
    let mut executor = by_hash(&cx, &device, &problem, &choose(&problem)).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let what = C::TYPES.describe();
    let check = |executor: &mut CudaSpgemm, (a, b): (&Stored, &Stored), format, alpha: C::Acc| {
        let wanted = expected::<C>((N, N), a, b, alpha, format, IndexBase::One, widths);
        let c = Stored::room::<C::Y>(format, shape((N, N), a, b), nnz, IndexBase::One, widths);
        let on_c = c.upload(&cx);
        executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
        assert!(c.download(&cx, &on_c) == wanted, "{what} {format:?}");
    };
    check(&mut executor, (&a, &b), Format::Csr, alpha);
    assert!(executor.kept.as_ref().is_some_and(|kept| kept.map.is_some()), "{what}: no map");
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
        again::<F64>(0.3, cols, turn);
    }
    again::<F32>(-1.7, 60_000, 3);
    again::<F16F32>(0.3, 300_000, 4);
    again::<Bf16F32>(0.3, 300_000, 5);
    again::<C32>(Complex32::new(0.5, 2.0), 60_000, 6);
    again::<C64>(Complex64::new(-0.5, 1.0), 60_000, 7);
}
