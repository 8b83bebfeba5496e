//! Tests of products of nearly dense factors, which are multiplied as dense matrices: patterns are the
//! host's, and values agree except for the order of sums.

use super::*;

/// Returns a CSR matrix whose rows have about `percent` percent of all columns.
pub(super) fn pruned<V: Value>(
    rng: &mut Random,
    (rows, cols): (i64, i64),
    percent: i64,
    base: IndexBase,
) -> Stored {
    let columns: Vec<Vec<i64>> =
        (0..rows).map(|_| (0..cols).filter(|_| rng.below(100) < percent).collect()).collect();
    Stored::of_rows::<V>(rng, Format::Csr, cols, &columns, base, WIDTHS[0])
}

fn values<V: Value + Element>(stored: &Stored) -> Vec<V> {
    let array = &stored.arrays[2];
    bytemuck::cast_slice(&bytemuck::cast_slice::<u64, u8>(&array.words)[..array.bytes]).to_vec()
}

/// Compares the product with the host's to a relative error of `exact`, and returns whether the factors were
/// multiplied as dense matrices.
pub(super) fn compare_close<C: Combo>(
    what: &str,
    (a, b): (&Stored, &Stored),
    alpha: C::Acc,
    exact: f64,
) -> bool
where
    C::Y: Value + Element + Into<f64>,
{
    let Some((device, stream)) = device() else { return true };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let wanted = expected::<C>((N, N), a, b, alpha, Format::Csr, IndexBase::One, WIDTHS[1]);
    let mut is_taken = true;
    for keep in [false, true] {
        let cx = on_device(&device, &stream, usize::MAX);
        let problem = problem::<C>((N, N), on_a.matrix, on_b.matrix, keep);
        let choice = choose(&problem);
        let factors = Factors::new(&device.call(&cx).unwrap(), &problem, &choice).unwrap();
        let mut executor = CudaSpgemm::new(&device.call(&cx).unwrap(), &problem, &choice, factors).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        is_taken &= executor.counted.as_ref().is_some_and(|counted| counted.dense.is_some());
        let mut first = None;
        for _ in 0..2 {
            let c = Stored::room::<C::Y>(Format::Csr, shape((N, N), a, b), nnz, IndexBase::One, WIDTHS[1]);
            let on_c = c.upload(&arrays);
            executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
            let found = c.download(&arrays, &on_c);
            assert!(found.arrays[..2] == wanted.arrays[..2], "{what}: pattern, keep {keep}");
            for (at, (x, y)) in values::<C::Y>(&found).into_iter().zip(values::<C::Y>(&wanted)).enumerate() {
                let (x, y): (f64, f64) = (x.into(), y.into());
                let close = (x - y).abs() <= exact * (1.0 + y.abs()) || x == y || x.is_nan() && y.is_nan();
                assert!(close, "{what}: entry {at} is {x} and not {y}, keep {keep}");
            }
            let before = first.get_or_insert_with(|| found.arrays[2].clone());
            assert!(*before == found.arrays[2], "{what}: other bits the second time");
        }
    }
    is_taken
}

#[test]
fn real_types() {
    let mut rng = Random::new(95);
    let (zero, one) = (IndexBase::Zero, IndexBase::One);
    let shapes = ((601, 703), (703, 1250));
    let (a, b) = (pruned::<f64>(&mut rng, shapes.0, 40, zero), pruned::<f64>(&mut rng, shapes.1, 50, one));
    assert!(compare_close::<F64>("fp64", (&a, &b), -1.5, 1e-11));
    let (a, b) = (pruned::<f32>(&mut rng, shapes.0, 40, zero), pruned::<f32>(&mut rng, shapes.1, 50, one));
    assert!(compare_close::<F32>("fp32", (&a, &b), -1.5, 1e-3));
    let (a, b) = (pruned::<f16>(&mut rng, shapes.0, 40, one), pruned::<f16>(&mut rng, shapes.1, 50, zero));
    assert!(compare_close::<F16F32>("fp16", (&a, &b), 0.5, 1e-3));
    let (a, b) = (pruned::<bf16>(&mut rng, shapes.0, 40, one), pruned::<bf16>(&mut rng, shapes.1, 50, zero));
    assert!(compare_close::<Bf16F32>("bf16", (&a, &b), 0.0, 1e-3));
}

/// Factors whose dense copies would take more memory than the factors and C, so that there are several
/// panels.
#[test]
fn panels() {
    let mut rng = Random::new(96);
    let a = pruned::<f64>(&mut rng, (1300, 1300), 25, IndexBase::Zero);
    assert!(compare_close::<F64>("panels", (&a, &a), 1.0, 1e-11));
}

/// Infinities and NaNs only reach the entries whose products have them, although the panels have zeros that
/// are not stored.
#[test]
fn what_is_not_finite_spoils_nothing_else() {
    let mut rng = Random::new(97);
    let mut a = pruned::<f64>(&mut rng, (500, 600), 30, IndexBase::Zero);
    let mut b = pruned::<f64>(&mut rng, (600, 700), 30, IndexBase::Zero);
    for (stored, places) in [(&mut a, [77, 5000, 40_000]), (&mut b, [1, 30_000, 60_000])] {
        for (at, value) in places.into_iter().zip([f64::INFINITY, f64::NAN, -f64::INFINITY]) {
            stored.arrays[2].words[at] = value.to_bits();
        }
    }
    assert!(compare_close::<F64>("not finite", (&a, &b), 2.0, 1e-11));
}

/// With a pedantic compute type, halves are not multiplied by matrix units, and so not as dense matrices.
#[test]
fn pedantic_halves_are_multiplied_entry_by_entry() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(98);
    let a = pruned::<f16>(&mut rng, (601, 703), 40, IndexBase::Zero);
    let b = pruned::<f16>(&mut rng, (703, 1250), 50, IndexBase::Zero);
    let cx = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&cx), b.upload(&cx));
    for ieee in [false, true] {
        let problem = SpgemmProblem { ieee, ..problem::<F16F32>((N, N), on_a.matrix, on_b.matrix, false) };
        let choice = choose(&problem);
        let factors = Factors::new(&device.call(&cx).unwrap(), &problem, &choice).unwrap();
        let mut executor = CudaSpgemm::new(&device.call(&cx).unwrap(), &problem, &choice, factors).unwrap();
        executor.symbolic(&cx).unwrap();
        let is_dense = executor.counted.as_ref().is_some_and(|counted| counted.dense.is_some());
        assert_eq!(is_dense, !ieee);
    }
}
