//! Tests of algorithm `tile`.

use super::*;

fn choose_tile(problem: &SpgemmProblem) -> Choice {
    let rows: Vec<_> = crate::algorithm::TABLE
        .iter()
        .filter(|row| row.algorithm == crate::algorithm::Algorithm::Tile)
        .collect();
    select::spgemm(problem, &rows).unwrap().swap_remove(0)
}

#[test]
fn every_op_and_format_in_complex() {
    let mut rng = Random::new(17);
    let alpha = Complex64::new(2.0, -1.0);
    let (m, k, n) = (35, 33, 50);
    let mut case = 0;
    for (op_a, format_a) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
        for (op_b, format_b) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
            let complex = |r: &mut Random| Complex64::new(r.integer(), r.integer());
            let (shape_a, shape_b) = (op_a.shape(m, k), op_b.shape(k, n));
            let entries_a = random(&mut rng, shape_a.0 as usize, shape_a.1 as usize, 150, complex);
            let entries_b = random(&mut rng, shape_b.0 as usize, shape_b.1 as usize, 170, complex);
            let expected = naive::<support::C64>(alpha, &apply(op_a, &entries_a), &apply(op_b, &entries_b));
            for format_c in FORMATS {
                case += 1;
                let base = |i: usize| IndexBase::ALL[(case + i) % 2];
                let a = Stored::new(format_a, shape_a, base(0), WIDTHS[case % 3], &entries_a);
                let b = Stored::new(format_b, shape_b, base(case / 2), WIDTHS[case / 3 % 3], &entries_b);
                let problem = problem::<support::C64>(op_a, op_b, &a, &b);
                let cx = unlimited();
                let mut executor = build(&cx, &problem, &choose_tile(&problem)).unwrap();
                assert_eq!(executor.layout().kind, LayoutKind::Tile);
                let nnz = executor.symbolic(&cx).unwrap();
                assert_eq!(nnz, expected.len() as i64);
                let unset = Complex64::new(f64::NAN, 0.0);
                let c = Stored::room(format_c, (m, n), base(case / 3), WIDTHS[(case / 2) % 3], nnz, unset);
                executor.numeric(&cx, scalar(&alpha), &c.matrix()).unwrap();
                assert_eq!(c.product(), expected, "{op_a:?} {format_a:?} {op_b:?} {format_b:?} {format_c:?}");
                drop(executor);
                assert_eq!(cx.allocator.live_bytes(), 0);
            }
        }
    }
}

#[test]
fn shapes_at_the_edge() {
    let mut rng = Random::new(3);
    let shapes = [
        (0, 0, 0),
        (0, 4, 5),
        (4, 0, 5),
        (4, 5, 0),
        (1, 1, 1),
        (16, 16, 16),
        (17, 15, 33),
        (1, 70, 1),
        (40, 1, 40),
        (3, 200, 150),
    ];
    for (m, k, n) in shapes {
        for density in [0, 1, 3, 20] {
            let a = integers(&mut rng, m, k, density * m.max(k));
            let b = integers(&mut rng, k, n, density * k.max(n));
            let expected = naive::<F64>(1.0, &a, &b);
            let shape = |rows: usize, cols: usize| (rows as i64, cols as i64);
            let (a, b) = (Stored::csr(shape(m, k), &a), Stored::csr(shape(k, n), &b));
            let problem = problem::<F64>(Operation::NonTranspose, Operation::NonTranspose, &a, &b);
            for format_c in FORMATS {
                let cx = unlimited();
                let mut executor = build(&cx, &problem, &choose_tile(&problem)).unwrap();
                let nnz = executor.symbolic(&cx).unwrap();
                let c = Stored::room(format_c, shape(m, n), IndexBase::One, WIDTHS[1], nnz, f64::NAN);
                executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                assert_eq!(c.product(), expected, "{m} {k} {n} {format_c:?}");
            }
        }
    }
}

/// Products of one entry are added in the order of A's columns, like those of `hash` if rows are sorted and
/// have no duplicates.
#[test]
fn bits_are_those_of_hash_and_new_values_are_taken() {
    let mut rng = Random::new(12);
    let n = 700i64;
    let pattern: BTreeMap<(i64, i64), ()> =
        skewed(&mut rng, n as usize, 9, Random::real).into_iter().map(|e| ((e.0, e.1), ())).collect();
    let with_values =
        |rng: &mut Random| -> Vec<_> { pattern.keys().map(|&(row, col)| (row, col, rng.real())).collect() };
    let (first, second) = (with_values(&mut rng), with_values(&mut rng));
    let (a, renewed) = (Stored::csr((n, n), &first), Stored::csr((n, n), &second));
    let op = Operation::NonTranspose;
    let cx = unlimited();
    let by = |a: &Stored<f64>, b: &Stored<f64>, choose: fn(&SpgemmProblem) -> Choice| {
        let problem = problem::<F64>(op, op, a, b);
        let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
        bits(&run_csr(&mut *executor, &cx, 0.7, (n, n)))
    };
    assert_eq!(by(&a, &a, choose_tile), by(&a, &a, choose));
    let problem = problem::<F64>(op, op, &a, &a);
    let mut executor = build(&cx, &problem, &choose_tile(&problem)).unwrap();
    assert_eq!(executor.products(), build(&cx, &problem, &choose(&problem)).unwrap().products());
    run_csr(&mut *executor, &cx, 0.7, (n, n));
    let values = Address::new(renewed.values.as_ptr());
    executor.update_values(&cx, values, Address::NULL).unwrap();
    assert_eq!(bits(&run_csr(&mut *executor, &cx, 0.7, (n, n))), by(&renewed, &a, choose));
    executor.update_values(&cx, Address::NULL, values).unwrap();
    assert_eq!(bits(&run_csr(&mut *executor, &cx, 0.7, (n, n))), by(&renewed, &renewed, choose));
    // alpha = 0 reads no values.
    let zeros = run_csr(&mut *executor, &cx, 0.0, (n, n));
    assert!(zeros.values.iter().all(|&value| value.to_bits() == 0));
}

#[test]
fn what_is_not_stored_multiplies_nothing() {
    let entries = |rows: &[(i64, i64, f64)]| Stored::csr((40, 40), rows);
    let a = entries(&[(0, 3, 2.0), (1, 4, f64::INFINITY), (20, 3, 1.0), (20, 39, 0.0)]);
    let b = entries(&[(3, 5, 1.0), (4, 6, 1.0), (5, 5, f64::NAN), (39, 5, f64::INFINITY), (39, 7, 3.0)]);
    let op = Operation::NonTranspose;
    let problem = problem::<F64>(op, op, &a, &b);
    let cx = unlimited();
    let mut executor = build(&cx, &problem, &choose_tile(&problem)).unwrap();
    let c = run_csr(&mut *executor, &cx, 1.0, (40, 40)).product();
    assert_eq!(c.keys().copied().collect::<Vec<_>>(), [(0, 5), (1, 6), (20, 5), (20, 7)]);
    assert_eq!((c[&(0, 5)], c[&(1, 6)], c[&(20, 7)]), (2.0, f64::INFINITY, 0.0));
    assert!(c[&(20, 5)].is_nan());
}

#[test]
fn memory_that_is_refused_leaves_the_plan_usable() {
    let mut rng = Random::new(31);
    let n = 300i64;
    let a = Stored::csr((n, n), &integers(&mut rng, n as usize, n as usize, 3000));
    let op = Operation::NonTranspose;
    let problem = problem::<F64>(op, op, &a, &a);
    let choice = choose_tile(&problem);
    let whole = unlimited();
    let mut executor = build(&whole, &problem, &choice).unwrap();
    let expected = run_csr(&mut *executor, &whole, 1.0, (n, n)).product();
    drop(executor);
    let peak = whole.allocator.peak_bytes();
    let mut refused = [0; 3];
    for bytes in (0..=peak).step_by(peak / 40) {
        let cx = limited(bytes);
        let Ok(mut executor) = build(&cx, &problem, &choice) else {
            refused[0] += 1;
            assert_eq!(cx.allocator.live_bytes(), 0);
            continue;
        };
        let Ok(nnz) = executor.symbolic(&cx) else {
            refused[1] += 1;
            // A context of another handle has enough memory.
            assert_eq!(executor.symbolic(&whole).unwrap(), expected.len() as i64);
            continue;
        };
        let c = Stored::room(Format::Csc, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
        refused[2] += usize::from(executor.numeric(&cx, scalar(&1.0), &c.matrix()).is_err());
        executor.numeric(&whole, scalar(&1.0), &c.matrix()).unwrap();
        assert_eq!(c.product(), expected);
    }
    assert!(refused.iter().all(|&count| count > 0), "{refused:?}");
}
