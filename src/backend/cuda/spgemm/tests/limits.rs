//! Tests of memory limits: either C has the same bits, or the call fails with an error that says the bytes,
//! and succeeds when it is repeated with more memory.

use super::tile::choose_tile;
use super::*;

/// Results of a product under all limits.
#[derive(Debug, Default)]
struct Outcomes {
    /// Number of calls that failed.
    failed: usize,
    /// Number of limits, less than the memory taken without one, under which all calls succeeded.
    frugal: usize,
}

/// Runs a product under limits from 0 bytes to the memory that it takes without a limit.
fn sweep(what: &str, by_tiles: bool, a: &Stored, b: &Stored, format: Format) -> Outcomes {
    let mut outcomes = Outcomes::default();
    // Without a device, returns numbers with which the tests pass.
    let Some((device, stream)) = device() else { return Outcomes { failed: 99, frugal: 99 } };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    for keep in [false, true] {
        let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, keep);
        let choice = if by_tiles { choose_tile(&problem) } else { choose(&problem) };
        let mut wanted: Option<Stored> = None;
        let (mut limit, mut peak) = (usize::MAX, 0);
        loop {
            let (cx, free) = (on_device(&device, &stream, limit), on_device(&device, &stream, usize::MAX));
            let mut failures = 0;
            let mut note = |error: Error| {
                assert_eq!(error.status, Status::InsufficientResources, "{what}: {error}");
                assert!(error.message.contains("bytes"), "{what}: {error}");
                failures += 1;
            };
            match build(&device.call(&cx).unwrap(), &problem, &choice, None) {
                Err(error) => note(error),
                Ok(mut executor) => {
                    let nnz = executor.symbolic(&cx).or_else(|error| {
                        note(error);
                        executor.symbolic(&free)
                    });
                    let nnz = nnz.unwrap();
                    let c = Stored::room::<f64>(format, shape((N, N), a, b), nnz, IndexBase::One, WIDTHS[1]);
                    for round in 0..2 {
                        let on_c = c.upload(&arrays);
                        if let Err(error) = executor.numeric(&cx, address(&0.7), &on_c.matrix) {
                            note(error);
                            executor.numeric(&free, address(&0.7), &on_c.matrix).unwrap();
                        }
                        let found = c.download(&arrays, &on_c);
                        let wanted = wanted.get_or_insert_with(|| found.clone());
                        assert!(found == *wanted, "{what}, {format:?}, keep {keep}, {limit} bytes, {round}");
                    }
                    memory::synchronize(cx.stream).unwrap();
                }
            }
            assert_eq!((cx.allocator.live_bytes(), free.allocator.live_bytes()), (0, 0), "{what}: {limit}");
            outcomes.failed += failures;
            if limit == usize::MAX {
                assert_eq!(failures, 0);
                (peak, limit) = (cx.allocator.peak_bytes(), 0);
                continue;
            }
            assert!(cx.allocator.peak_bytes() <= limit);
            if limit >= peak {
                assert_eq!(failures, 0, "{what}: what was taken before is enough");
                break;
            }
            outcomes.frugal += usize::from(failures == 0);
            limit = (limit + (limit / 7).max(600)).min(peak);
        }
        if !by_tiles {
            let like = expected::<F64>((N, N), a, b, 0.7, format, IndexBase::One, WIDTHS[1]);
            assert!(wanted.as_ref() == Some(&like), "{what}");
        }
    }
    outcomes
}

/// Returns the factors of a product with rows in all bins.
fn skewed_factors(kind: Kind) -> (Stored, Stored) {
    let mut rng = Random::new(61);
    let a = lengths(&mut rng, 200, 3, &[20, 60, 100, 300]);
    let a = Stored::random::<f64>(&mut rng, Format::Csr, 400, &a, kind, IndexBase::One, WIDTHS[0]);
    let b = lengths(&mut rng, 400, 12, &[900, 300]);
    let b = Stored::random::<f64>(&mut rng, Format::Csr, 2000, &b, kind, IndexBase::Zero, WIDTHS[2]);
    (a, b)
}

#[test]
fn rows_of_every_bin() {
    for kind in [Kind::Any, Kind::Distinct] {
        let (a, b) = skewed_factors(kind);
        let by_rows = sweep("skewed", false, &a, &b, Format::Csr);
        assert!(by_rows.failed > 0, "{by_rows:?}");
        let by_columns = sweep("skewed", false, &a, &b, Format::Csc);
        assert!(by_columns.failed > 0 && by_columns.frugal > 3, "{by_columns:?}");
    }
}

#[test]
fn wide_rows_and_groups() {
    let (a, b) = classes::wide_factors::<f64, f64>(false, 0);
    for format in FORMATS {
        let outcomes = sweep("wide", false, &a, &b, format);
        assert!(outcomes.failed > 0 && outcomes.frugal > 3, "{format:?} {outcomes:?}");
    }
    let mut rng = Random::new(7);
    let rows = classes::nodes(100, 3, &classes::FAR);
    let a = Stored::of_rows::<f64>(&mut rng, Format::Csr, 300, &rows, IndexBase::Zero, WIDTHS[0]);
    for format in FORMATS {
        let outcomes = sweep("groups", false, &a, &a, format);
        assert!(outcomes.failed > 0 && outcomes.frugal > 0, "{format:?} {outcomes:?}");
    }
}

#[test]
fn tiles_by_parts() {
    for kind in [Kind::Any, Kind::Distinct] {
        let (a, b) = skewed_factors(kind);
        for format in FORMATS {
            let outcomes = sweep("tiles", true, &a, &b, format);
            assert!(outcomes.failed > 0 && outcomes.frugal > 3, "{format:?} {outcomes:?}");
        }
    }
}
