//! Tests of the values and patterns of products.

use super::*;

#[test]
fn every_op_and_format_in_complex() {
    let mut rng = Random::new(7);
    let alpha = Complex64::new(2.0, -1.0);
    let (m, k, n) = (13, 9, 17);
    let mut case = 0;
    let mut columns_first = 0;
    for (op_a, format_a) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
        for (op_b, format_b) in OPS.iter().flat_map(|&op| FORMATS.map(|f| (op, f))) {
            let complex = |r: &mut Random| Complex64::new(r.integer(), r.integer());
            let shape_a = op_a.shape(m, k);
            let shape_b = op_b.shape(k, n);
            let entries_a = random(&mut rng, shape_a.0 as usize, shape_a.1 as usize, 40, complex);
            let entries_b = random(&mut rng, shape_b.0 as usize, shape_b.1 as usize, 50, complex);
            let expected = naive::<support::C64>(alpha, &apply(op_a, &entries_a), &apply(op_b, &entries_b));
            for format_c in FORMATS {
                case += 1;
                let base = |i: usize| IndexBase::ALL[(case + i) % 2];
                let a = Stored::new(format_a, shape_a, base(0), WIDTHS[case % 3], &entries_a);
                let b = Stored::new(format_b, shape_b, base(case / 2), WIDTHS[case / 3 % 3], &entries_b);
                let problem = problem::<support::C64>(op_a, op_b, &a, &b);
                let choice = choose(&problem);
                columns_first += usize::from(choice.method.is_transposed());
                let cx = unlimited();
                let mut executor = build(&cx, &problem, &choice).unwrap();
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
    // Both factors in CSC with N or in CSR with T, in two formats of C.
    assert_eq!(columns_first, 8);
}

#[test]
fn shapes_at_the_edge() {
    let mut rng = Random::new(3);
    let shapes =
        [(0, 0, 0), (0, 4, 5), (4, 0, 5), (4, 5, 0), (1, 1, 1), (1, 70, 1), (40, 1, 40), (3, 200, 150)];
    for (m, k, n) in shapes {
        for density in [0, 1, 3] {
            let a = integers(&mut rng, m, k, density * m.max(k));
            let b = integers(&mut rng, k, n, density * k.max(n));
            let expected = naive::<F64>(1.0, &a, &b);
            for format in FORMATS {
                let shape = |rows: usize, cols: usize| (rows as i64, cols as i64);
                let (zero, one) = (IndexBase::Zero, IndexBase::One);
                let a = Stored::new(format, shape(m, k), one, WIDTHS[0], &a);
                let b = Stored::new(format, shape(k, n), zero, WIDTHS[1], &b);
                let problem = problem::<F64>(Operation::NonTranspose, Operation::NonTranspose, &a, &b);
                for format_c in FORMATS {
                    let cx = unlimited();
                    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
                    let nnz = executor.symbolic(&cx).unwrap();
                    let c = Stored::room(format_c, shape(m, n), one, WIDTHS[1], nnz, f64::NAN);
                    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                    assert_eq!(c.product(), expected, "{m} {k} {n} {format:?} {format_c:?}");
                }
            }
        }
    }
}

#[test]
fn threads_and_accumulators_change_no_bit() {
    let mut rng = Random::new(11);
    let n = 1500;
    let a = Stored::csr((n, n), &skewed(&mut rng, n as usize, 12, Random::real));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &a);
    let hash = Rule { small_cols: 0, ratio: 1, window: 0 };
    let array = Rule { small_cols: usize::MAX, ratio: 1, window: 0 };
    let mixed = Rule { small_cols: 0, ratio: 20, window: 0 };
    let mut results = Vec::new();
    // The skewed rows are not sorted, so most of them leave the window.
    let window = Rule { window: 4096, ..hash };
    for rule in [hash, array, mixed, window, Rule::of(1)] {
        for threads in [1, 2, 5] {
            let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
            assert!(executor.items.len() > 6, "too few items to share out");
            (executor.threads, executor.rule) = (threads, rule);
            let c = run_csr(&mut executor, &cx, 1.5, (n, n));
            results.push((bits(&c), executor.products()));
        }
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let wide = {
        let mut executor = executor::<i64, F64>(&cx, &problem).unwrap();
        executor.rule = hash;
        bits(&run_csr(&mut executor, &cx, 1.5, (n, n)))
    };
    assert_eq!(wide, results[0].0);

    // The sums have the order of the naive product over the stored entries.
    let entries = a.entries();
    let expected = naive::<F64>(1.5, &entries, &entries);
    let expected: Vec<_> = expected.iter().map(|(&(i, j), &v)| (i, j, v.to_bits())).collect();
    assert_eq!(results[0].0, expected);
    let lengths: BTreeMap<i64, i64> = entries.iter().fold(BTreeMap::new(), |mut m, e| {
        *m.entry(e.0).or_default() += 1;
        m
    });
    let products = entries.iter().map(|e| lengths.get(&e.1).copied().unwrap_or(0)).sum::<i64>();
    assert_eq!(results[0].1, products);
}

/// Consecutive rows have the same pattern with different values, as in a mesh with three unknowns per node,
/// between empty rows and rows of other patterns.
#[test]
fn rows_that_repeat_the_one_before_are_right() {
    let mut rng = Random::new(31);
    let n = 600_i64;
    let mut entries = Vec::new();
    for row in 0..n {
        let (node, kind) = (row / 3, row % 10);
        let columns = match kind {
            0 => vec![],
            1 => vec![row % 7, row],
            _ => (0..12).map(|entry| (node * 5 + entry * 37) % n).collect(),
        };
        entries.extend(columns.into_iter().map(|col| (row, col, rng.real())));
    }
    let a = Stored::csr((n, n), &entries);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &a);
    let expected = naive::<F64>(1.5, &a.entries(), &a.entries());
    let expected: Vec<_> = expected.iter().map(|(&(i, j), &v)| (i, j, v.to_bits())).collect();
    for rule in [
        Rule { small_cols: 0, ratio: 1, window: 0 },
        Rule { small_cols: 0, ratio: 20, window: 0 },
        Rule::of(1),
    ] {
        for threads in [1, 3] {
            let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
            (executor.threads, executor.rule) = (threads, rule);
            assert_eq!(bits(&run_csr(&mut executor, &cx, 1.5, (n, n))), expected);
        }
    }
}

/// The matrices are grids, whose rows follow from each other, and bands, whose rows of C fill windows or
/// leave gaps in them, with some unsorted and empty rows.
#[test]
fn rows_that_lie_near_each_other_are_right() {
    let n = 1200_i64;
    type Columns = fn(i64, &mut Random) -> Vec<i64>;
    let kinds: [(&str, Columns); 5] = [
        ("grid", |i, _| vec![i - 40, i - 1, i, i + 1, i + 40]),
        ("band", |i, _| (i - 9..i + 12).collect()),
        ("band with gaps", |i, rng| (i - 30..i + 30).filter(|_| rng.below(3) == 0).collect()),
        ("long band", |i, _| (i - 60..i + 60).collect()),
        ("band, some rows turned", |i, _| match i % 16 {
            0 => (i - 9..i + 12).rev().collect(),
            1 => vec![i + 2, i + 700, i + 1],
            2 => vec![],
            _ => (i - 9..i + 12).step_by(2).collect(),
        }),
    ];
    for (name, columns) in kinds {
        let mut rng = Random::new(71);
        let mut entries = Vec::new();
        for i in 0..n {
            let columns = columns(i, &mut rng).into_iter().filter(|col| (0..n).contains(col));
            entries.extend(columns.map(|col| (i, col, rng.real())));
        }
        for (base, widths) in [(IndexBase::Zero, WIDTHS[0]), (IndexBase::One, WIDTHS[2])] {
            let a = Stored::new(Format::Csr, (n, n), base, widths, &entries);
            let (op, cx) = (Operation::NonTranspose, unlimited());
            let mut problem = problem::<F64>(op, op, &a, &a);
            problem.value_updates = true;
            let expected = naive::<F64>(1.5, &a.entries(), &a.entries());
            let expected: Vec<_> = expected.iter().map(|(&(i, j), &v)| (i, j, v.to_bits())).collect();
            let hash = Rule { small_cols: 0, ratio: 1, window: 0 };
            for rule in [hash, Rule { window: 100, ..hash }, Rule::of(1)] {
                for threads in [1, 3] {
                    let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
                    (executor.threads, executor.rule) = (threads, rule);
                    // The second run reuses the columns that the first one has computed.
                    for _ in 0..2 {
                        let c = bits(&run_csr(&mut executor, &cx, 1.5, (n, n)));
                        assert!(c == expected, "{name}, {rule:?}, {threads} threads");
                    }
                    let Phase::Counted(counted) = &executor.phase else { unreachable!() };
                    let follow = counted.steps.iter().filter(|&&step| step == rows::NEXT).count();
                    let expected = match name {
                        "grid" | "band" | "long band" => n as usize / 2..n as usize,
                        _ => 0..n as usize / 10,
                    };
                    assert!(expected.contains(&follow), "{name}: {follow} rows follow");
                }
            }
        }
    }
}

#[test]
fn reuse_gives_the_same_bits() {
    let mut rng = Random::new(23);
    let n = 400;
    let entries = skewed(&mut rng, n as usize, 4, Random::real);
    let newer: Vec<_> = entries.iter().map(|e| (e.0, e.1, rng.real())).collect();
    for (format_a, op) in [
        (Format::Csr, Operation::NonTranspose),
        (Format::Csc, Operation::NonTranspose),
        (Format::Csc, Operation::Transpose),
        (Format::Csr, Operation::Transpose),
    ] {
        for rule in [Rule { small_cols: 0, ratio: 1, window: 0 }, Rule::of(1)] {
            let a = Stored::new(format_a, (n, n), IndexBase::One, WIDTHS[1], &entries);
            let b = Stored::new(format_a, (n, n), IndexBase::One, WIDTHS[1], &newer);
            let cx = unlimited();
            let mut plain = executor::<i32, F64>(&cx, &problem::<F64>(op, op, &a, &a)).unwrap();
            let mut plain_new = executor::<i32, F64>(&cx, &problem::<F64>(op, op, &b, &a)).unwrap();
            let mut reused = {
                let mut problem = problem::<F64>(op, op, &a, &a);
                problem.value_updates = true;
                executor::<i32, F64>(&cx, &problem).unwrap()
            };
            (plain.rule, plain_new.rule, reused.rule) = (rule, rule, rule);
            let run = |executor: &mut HostSpgemm<i32, F64>, cx: &Context, alpha: f64, format| {
                let nnz = executor.symbolic(cx).unwrap();
                let c = Stored::room(format, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
                executor.numeric(cx, scalar(&alpha), &c.matrix()).unwrap();
                assert!(c.product().len() == nnz as usize);
                bits(&c)
            };
            for format in FORMATS {
                let expected = run(&mut plain, &cx, 0.75, format);
                assert!(plain.kept.is_none());
                for _ in 0..3 {
                    assert_eq!(run(&mut reused, &cx, 0.75, format), expected);
                    assert!(reused.kept.is_some() && reused.lists.is_some());
                }
            }
            // Nothing is allocated from here on.
            let nothing = limited(0);
            let new_a = b.matrix().values();
            reused.update_values(&nothing, new_a, Address::NULL).unwrap();
            for format in FORMATS {
                assert_eq!(run(&mut reused, &nothing, -2.5, format), run(&mut plain_new, &cx, -2.5, format));
            }
            // Both A and B get A's values.
            reused.update_values(&nothing, a.matrix().values(), a.matrix().values()).unwrap();
            assert_eq!(
                run(&mut reused, &nothing, 0.75, Format::Csr),
                run(&mut plain, &cx, 0.75, Format::Csr)
            );
            // Without kept positions the copies are made anew.
            plain.update_values(&cx, new_a, Address::NULL).unwrap();
            assert_eq!(run(&mut plain, &cx, 1.25, Format::Csc), run(&mut plain_new, &cx, 1.25, Format::Csc));
            drop((plain, plain_new, reused));
            assert_eq!(cx.allocator.live_bytes(), 0);
        }
    }
}

/// Factors with long rows, none of which follows from the row before. Row 23 of B, which the first rows of A
/// lack, has column 49 instead of 46; the others have all even columns up to 46.
fn factors_with_long_rows() -> (Stored<f64>, Stored<f64>) {
    let mut rng = Random::new(29);
    let lacks = |row: i64, col: i64| col == if row == 23 { 5 } else { row } || row < 12 && col == 23;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (row, col) in (0..24).flat_map(|row| (0..24).map(move |col| (row, col))) {
        if !lacks(row, col) {
            left.push((row, col, rng.real()));
        }
        right.push((row, if (row, col) == (23, 23) { 49 } else { 2 * col }, rng.real()));
    }
    (Stored::csr((24, 24), &left), Stored::csr((24, 50), &right))
}

type Bits = Vec<(i64, i64, u64)>;

/// Returns a plan whose rows have known columns and sums by column, without ranks and windows, after a first
/// product, and the bits of that.
fn summed_by_column(cx: &Context, (a, b): (&Stored<f64>, &Stored<f64>)) -> (HostSpgemm<i32, F64>, Bits) {
    let mut problem = problem::<F64>(Operation::NonTranspose, Operation::NonTranspose, a, b);
    problem.value_updates = true;
    let mut executor = executor::<i32, F64>(cx, &problem).unwrap();
    executor.rule = Rule { small_cols: usize::MAX, ratio: 1, window: 0 };
    // There are fewer entries than sums of many threads.
    executor.threads = 1;
    let first = bits(&run_csr(&mut executor, cx, 1.5, (24, 50)));
    let kept = executor.kept.as_ref().unwrap();
    assert!(executor.lists.is_some() && matches!(kept.ranks, KeptRanks::NotKept), "it keeps ranks");
    (executor, first)
}

#[test]
fn known_columns_give_the_same_bits() {
    let (a, b) = factors_with_long_rows();
    let cx = unlimited();
    let (mut executor, first) = summed_by_column(&cx, (&a, &b));
    for _ in 0..2 {
        assert_eq!(bits(&run_csr(&mut executor, &cx, 1.5, (24, 50))), first);
    }
    // Other accumulators give these bits, too.
    executor.rule = Rule { small_cols: 0, ratio: 1, window: 0 };
    executor.kept = None;
    assert_eq!(bits(&run_csr(&mut executor, &cx, 1.5, (24, 50))), first);
}

/// Column 49 is new in the first rows of C, and a column of later ones.
#[test]
#[should_panic(expected = "pattern of A or B changed")]
fn a_column_that_a_row_does_not_have_is_noticed() {
    let (a, mut b) = factors_with_long_rows();
    let Array::I32(indices) = &mut b.indices else { unreachable!("csr() has 32 bits") };
    let last_of_first = &raw mut indices[23];
    let cx = unlimited();
    let (mut executor, _) = summed_by_column(&cx, (&a, &b));
    // SAFETY: nothing reads the index now.
    unsafe { *last_of_first = 49 };
    run_csr(&mut executor, &cx, 1.5, (24, 50));
}

/// A row that ends behind the last entry, of an array that was changed after the plan was made.
#[test]
#[should_panic(expected = "pattern of A or B changed")]
fn a_row_that_ends_behind_the_last_entry_is_noticed() {
    let (n, op) = (100_000_usize, Operation::NonTranspose);
    let entries: Vec<_> = (0..n).map(|i| (i as i64, (7919 * i % n) as i64, 1.0)).collect();
    let b = Stored::csr((n as i64, n as i64), &entries);
    let mut a = Stored::csr((n as i64, n as i64), &entries);
    let Array::I32(offsets) = &mut a.offsets else { unreachable!("csr() has 32 bits") };
    let last = &raw mut offsets[n];
    let cx = unlimited();
    let mut executor = executor::<i32, F64>(&cx, &problem::<F64>(op, op, &a, &b)).unwrap();
    // SAFETY: nothing reads the offset now.
    unsafe { *last += 1 };
    run_csr(&mut executor, &cx, 1.0, (n as i64, n as i64));
}

/// Returns the ranks that a plan keeps, after a numeric phase, which decides whether it does.
fn kept_ranks<K: Key, C: Combo>(executor: &HostSpgemm<K, C>) -> Option<&Ranks> {
    match &executor.kept.as_ref().unwrap().ranks {
        KeptRanks::Kept(ranks) => Some(ranks),
        KeptRanks::NotKept => None,
        KeptRanks::Unknown => panic!("it is not decided whether ranks are kept"),
    }
}

/// A row that is shorter when ranks are recorded than when they were counted.
#[test]
#[should_panic(expected = "pattern of A or B changed")]
fn a_pattern_that_changes_before_ranks_are_recorded_is_noticed() {
    let (n, op) = (100_i64, Operation::NonTranspose);
    let mut rng = Random::new(31);
    let entries: Vec<_> = (0..n).flat_map(|row| (0..5).map(move |k| (row, (row * 7 + k * 13) % n))).collect();
    let entries: Vec<_> = entries.into_iter().map(|(row, col)| (row, col, rng.real())).collect();
    let mut a = Stored::csr((n, n), &entries);
    let Array::I32(offsets) = &mut a.offsets else { unreachable!("csr() has 32 bits") };
    let last = &raw mut offsets[n as usize];
    let cx = unlimited();
    let problem = SpgemmProblem { value_updates: true, ..problem::<F64>(op, op, &a, &a) };
    let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
    for _ in 0..ranks::CALLS {
        run_csr(&mut executor, &cx, 1.0, (n, n));
    }
    let ranks = kept_ranks(&executor);
    assert!(ranks.is_some_and(|ranks| !ranks.recorded), "no ranks are to be recorded");
    // SAFETY: nothing reads the offset now.
    unsafe { *last -= 3 };
    run_csr(&mut executor, &cx, 1.0, (n, n));
}

/// Grids, bands in windows, and random rows, with tables and arrays: once ranks are recorded, new values give
/// the bits of a new plan. Ranks are kept only where they take no more memory than the matrices.
#[test]
fn recorded_ranks_give_the_bits_of_a_new_plan() {
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let (mut kept, mut rng) = ([0; 2], Random::new(29));
    // Its rows have so many products that their ranks are not kept.
    let full =
        |i: i64| ((i - 20).max(0)..(i + 20).min(900)).map(move |col| (i, col, 1.0 / (i + col + 1) as f64));
    let full = ("full band", 900, (0..900).flat_map(full).collect());
    for (name, n, entries) in unsorted::matrices().into_iter().chain([full]) {
        let newer: Vec<_> = entries.iter().map(|e| (e.0, e.1, rng.real())).collect();
        let (a, newer) = (Stored::csr((n, n), &entries), Stored::csr((n, n), &newer));
        for rule in [Rule { small_cols: 0, ratio: 1, window: 0 }, Rule::of(1)] {
            for sorted in [true, false] {
                let of = |b: &Stored<f64>, value_updates| {
                    let problem = problem::<F64>(op, op, &a, b);
                    let problem = SpgemmProblem { value_updates, sorted_output: sorted, ..problem };
                    let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
                    (executor.threads, executor.rule) = (3, rule);
                    executor
                };
                let (mut plan, mut new) = (of(&a, true), of(&newer, false));
                // The pattern is known before there are ranks.
                run_csr(&mut plan, &cx, 0.0, (n, n));
                let expected = bits(&run_csr(&mut of(&a, false), &cx, 1.5, (n, n)));
                for call in 0..ranks::CALLS + 1 {
                    let ranks = kept_ranks(&plan);
                    let recorded = ranks.is_some_and(|ranks| ranks.recorded);
                    assert_eq!(recorded, ranks.is_some() && call == ranks::CALLS, "{name}, call {call}");
                    assert!(bits(&run_csr(&mut plan, &cx, 1.5, (n, n))) == expected, "{name}, {rule:?}");
                }
                let ranks = kept_ranks(&plan);
                let worth = plan.products() / 6 <= 2 * entries.len() as i64 + expected.len() as i64;
                assert_eq!(ranks.is_some_and(|ranks| ranks.recorded), worth, "{name}");
                kept[usize::from(worth)] += 1;
                plan.update_values(&cx, a.matrix().values(), newer.matrix().values()).unwrap();
                let expected = bits(&run_csr(&mut new, &cx, -0.5, (n, n)));
                assert!(bits(&run_csr(&mut plan, &cx, -0.5, (n, n))) == expected, "{name}, {rule:?}: new");
            }
        }
    }
    assert!(kept.iter().all(|&count| count > 0), "with and without ranks: {kept:?}");
}

#[test]
fn alpha_zero_reads_no_values() {
    let mut rng = Random::new(5);
    let mut entries = skewed(&mut rng, 60, 4, Random::integer);
    let clean = Stored::csr((60, 60), &entries);
    entries.iter_mut().for_each(|e| e.2 = f64::NAN);
    let dirty = Stored::csr((60, 60), &entries);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    for rule in [Rule { small_cols: 0, ratio: 1, window: 0 }, Rule::of(1)] {
        let mut problem = problem::<F64>(op, op, &dirty, &dirty);
        problem.value_updates = true;
        let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
        executor.rule = rule;
        for _ in 0..2 {
            let c = run_csr(&mut executor, &cx, 0.0, (60, 60));
            assert!(c.values.iter().all(|v| v.to_bits() == 0));
            assert!(!c.product().is_empty());
        }
        // A later product uses the pattern that was computed here.
        executor.update_values(&cx, clean.matrix().values(), clean.matrix().values()).unwrap();
        let c = run_csr(&mut executor, &cx, -0.5, (60, 60));
        assert_eq!(c.product(), naive::<F64>(-0.5, &clean.entries(), &clean.entries()));
    }
}

#[test]
fn structure_does_not_depend_on_values() {
    // The sum in row 0 cancels; row 1 has 0 · Inf.
    let a = Stored::csr((2, 2), &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.0)]);
    let b = Stored::csr((2, 3), &[(0, 0, 3.0), (1, 0, 3.0), (0, 2, f64::INFINITY)]);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &b);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let c = run_csr(&mut *executor, &cx, 1.0, (2, 3)).product();
    assert_eq!(c.keys().copied().collect::<Vec<_>>(), [(0, 0), (0, 2), (1, 0), (1, 2)]);
    assert_eq!((c[&(0, 0)], c[&(0, 2)], c[&(1, 0)]), (0.0, f64::INFINITY, 0.0));
    assert!(c[&(1, 2)].is_nan());
}

#[test]
fn half_factors_are_summed_in_single() {
    let mut rng = Random::new(31);
    let half = |r: &mut Random| f16::from_f64(r.real());
    let a = random(&mut rng, 30, 40, 200, half);
    let b = random(&mut rng, 40, 20, 200, half);
    let (a, b) = (Stored::csr((30, 40), &a), Stored::csr((40, 20), &b));
    let (op, cx, alpha) = (Operation::NonTranspose, unlimited(), 0.3f32);
    let problem = problem::<F16F32>(op, op, &a, &b);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room(Format::Csr, (30, 20), IndexBase::Zero, WIDTHS[0], nnz, f32::NAN);
    executor.numeric(&cx, scalar(&alpha), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F16F32>(alpha, &a.entries(), &b.entries()));
}

#[test]
fn columns_beyond_32_bits() {
    let far = 1i64 << 40;
    let a = Stored::csr((3, 2), &[(0, 1, 2.0), (0, 0, 1.0), (2, 1, 5.0)]);
    let b_entries = [(0, far + 5, 3.0), (0, 2, 1.0), (1, 1 << 33, 7.0), (1, 2, -1.0)];
    let b = Stored::new(Format::Csr, (2, far + 9), IndexBase::One, WIDTHS[2], &b_entries);
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let mut problem = problem::<F64>(op, op, &a, &b);
    problem.value_updates = true;
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    assert_eq!(executor.symbolic(&cx).unwrap(), 5);
    for _ in 0..2 {
        let c = Stored::room(Format::Csr, (3, far + 9), IndexBase::One, WIDTHS[2], 5, f64::NAN);
        executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
        assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &b.entries()));
    }
    assert!(cx.allocator.peak_bytes() < 1 << 13, "memory follows the products, not the columns");
}

#[test]
fn c_is_checked() {
    let mut rng = Random::new(47);
    let a = Stored::csr((20, 20), &integers(&mut rng, 20, 20, 60));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &a);
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], 60, 0.0);
    let error = executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap_err();
    assert_eq!(error.status, Status::InvalidState);
    let nnz = executor.symbolic(&cx).unwrap();
    assert!(nnz > 60);
    let mut refused = |c: SparseMatrix, text: &str| {
        let error = executor.numeric(&cx, scalar(&1.0), &c).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue);
        assert!(error.message.starts_with("C: ") && error.message.contains(text), "{error}");
    };
    refused(c.matrix(), "60");
    let c = Stored::room(Format::Csr, (20, 21), IndexBase::Zero, WIDTHS[0], nnz, 0.0);
    refused(c.matrix(), "20 × 21");
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], nnz, 0.0f32);
    refused(c.matrix(), "fp32");
    let c = Stored::room(Format::Csr, (20, 20), IndexBase::Zero, WIDTHS[0], nnz, 0.0);
    refused(c.matrix().with_values(Address::NULL), "NULL");
    let error = executor.numeric(&cx, Address::NULL, &c.matrix()).unwrap_err();
    assert!(error.message.starts_with("alpha"));
    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &a.entries()));
}
