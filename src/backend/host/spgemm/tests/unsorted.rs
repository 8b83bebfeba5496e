//! Tests of products whose rows of C are not sorted.

use super::*;

type Entry = (i64, i64, f64);

/// Returns the product of two lists of entries, each row in the order of its first products; sums are in the
/// order of all products.
fn as_found(alpha: f64, a: &[Entry], b: &[Entry]) -> Vec<(i64, i64, u64)> {
    let sums = naive::<F64>(alpha, a, b);
    let mut rows: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for &(k, j, _) in b {
        rows.entry(k).or_default().push(j);
    }
    let (mut seen, mut out) = (std::collections::BTreeSet::new(), Vec::new());
    for &(i, k, _) in a {
        for &j in rows.get(&k).map_or(&[][..], |row| row) {
            if seen.insert((i, j)) {
                out.push((i, j, sums[&(i, j)].to_bits()));
            }
        }
    }
    out
}

/// Returns a random matrix with long rows, a grid, whose rows follow from each other, and bands, one with
/// some reversed rows.
pub(super) fn matrices() -> Vec<(&'static str, i64, Vec<Entry>)> {
    let mut rng = Random::new(17);
    let n = 900_i64;
    let mut of = |columns: &dyn Fn(i64, &mut Random) -> Vec<i64>| {
        let mut entries = Vec::new();
        for i in 0..n {
            let columns = columns(i, &mut rng).into_iter().filter(|col| (0..n).contains(col));
            entries.extend(columns.collect::<Vec<_>>().into_iter().map(|col| (i, col, rng.real())));
        }
        entries
    };
    let grid = of(&|i, _| vec![i, i + 1, i - 1, i - 30, i + 30]);
    let band = of(&|i, rng| (i - 30..i + 30).filter(|_| rng.below(3) == 0).collect());
    let turned = of(&|i, _| match i % 16 {
        0 => (i - 9..i + 12).rev().collect(),
        1 => vec![i + 2, i + 700, i + 1],
        2 => vec![],
        _ => (i - 9..i + 12).step_by(2).collect(),
    });
    let mut random = skewed(&mut rng, n as usize, 6, Random::real);
    // Rows are in order, and the entries of each row stay in their order.
    random.sort_by_key(|entry| entry.0);
    vec![("grid", n, grid), ("band", n, band), ("band, some rows turned", n, turned), ("random", n, random)]
}

fn found<K: Key>(
    problem: &SpgemmProblem,
    rule: Rule,
    threads: usize,
    n: i64,
    alphas: &[f64],
) -> Vec<Vec<(i64, i64, u64)>> {
    let cx = unlimited();
    let mut executor = executor::<K, F64>(&cx, problem).unwrap();
    (executor.threads, executor.rule) = (threads, rule);
    alphas.iter().map(|&alpha| bits(&run_csr(&mut executor, &cx, alpha, (n, n)))).collect()
}

#[test]
fn rows_are_in_the_order_of_their_first_products() {
    let op = Operation::NonTranspose;
    let hash = Rule { small_cols: 0, ratio: 1, window: 0 };
    let array = Rule { small_cols: usize::MAX, ratio: 1, window: 0 };
    let mixed = Rule { small_cols: 0, ratio: 20, window: 0 };
    for (name, n, entries) in matrices() {
        let a = Stored::csr((n, n), &entries);
        let expected = as_found(1.5, &entries, &entries);
        let zeros: Vec<_> = expected.iter().map(|&(i, j, _)| (i, j, 0)).collect();
        assert!(!expected.is_sorted_by_key(|entry| (entry.0, entry.1)), "{name}: nothing to see");
        for keep in [false, true] {
            let mut problem = problem::<F64>(op, op, &a, &a);
            (problem.value_updates, problem.sorted_output) = (keep, false);
            for rule in [hash, array, mixed] {
                for threads in [1, 3] {
                    // The pattern is computed by a product, and by one with alpha = 0.
                    let runs = found::<i32>(&problem, rule, threads, n, &[1.5, 0.0, 1.5]);
                    assert!(
                        runs == [&expected[..], &zeros, &expected],
                        "{name}, {keep}, {rule:?}, {threads}"
                    );
                    let runs = found::<i32>(&problem, rule, threads, n, &[0.0, 1.5]);
                    assert!(
                        runs == [&zeros[..], &expected],
                        "{name}, {keep}, {rule:?}, {threads}: alpha = 0"
                    );
                }
            }
            let wide = found::<i64>(&problem, hash, 2, n, &[1.5, 0.0]);
            assert!(wide == [&expected[..], &zeros], "{name}, {keep}, 64 bits");
        }
    }
}

/// Rows computed in windows ascend without sorting and stay so; the order of a row does not depend on alpha.
#[test]
fn rows_in_windows_ascend() {
    let op = Operation::NonTranspose;
    let mut counts = [0; 2];
    // Only rows of consecutive columns are added in windows if C need not be sorted.
    let runs: Vec<Entry> = (0..900)
        .flat_map(|i: i64| {
            ((i - 12).max(0)..(i + 12).min(900)).map(move |j| (i, j, 1.0 + (i * j % 7) as f64))
        })
        .collect();
    for (name, n, entries) in matrices() {
        let (a, b) = (Stored::csr((n, n), &entries), Stored::csr((n, n), &runs));
        let mut problem = problem::<F64>(op, op, &a, &b);
        problem.sorted_output = false;
        let row_of = |all: &[(i64, i64, u64)], row| -> Vec<_> {
            let (start, end) = (all.partition_point(|e| e.0 < row), all.partition_point(|e| e.0 <= row));
            all[start..end].to_vec()
        };
        let as_found = as_found(1.5, &entries, &runs);
        for rule in [Rule { small_cols: 0, ratio: 1, window: 100 }, Rule::of(1)] {
            let expected = found::<i32>(&problem, rule, 1, n, &[1.5]).remove(0);
            for row in 0..n {
                let (mut first, this) = (row_of(&as_found, row), row_of(&expected, row));
                if this == first {
                    counts[0] += 1;
                    continue;
                }
                counts[1] += 1;
                first.sort();
                assert!(this == first, "{name}, {rule:?}, row {row}: neither as found nor sorted");
            }
            for threads in [1, 2, 5] {
                for keep in [false, true] {
                    problem.value_updates = keep;
                    let runs = found::<i32>(&problem, rule, threads, n, &[0.0, 1.5, 0.0, 1.5]);
                    let place =
                        |run: &[(i64, i64, u64)]| -> Vec<_> { run.iter().map(|e| (e.0, e.1)).collect() };
                    assert!(
                        runs[1] == expected && runs[3] == expected,
                        "{name}, {rule:?}, {threads}, {keep}"
                    );
                    for zeros in [&runs[0], &runs[2]] {
                        assert!(
                            place(zeros) == place(&expected),
                            "{name}, {rule:?}, {threads}, {keep}: alpha"
                        );
                    }
                }
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 500), "rows as found, and in windows: {counts:?}");
}

/// Plans that keep columns, as they are or as distances, give the bits and the order of plans that find them
/// again in each numeric phase.
#[test]
fn kept_columns_are_those_that_are_found_again() {
    let (op, cx) = (Operation::NonTranspose, unlimited());
    for (name, n, entries) in matrices() {
        let a = Stored::csr((n, n), &entries);
        let window = Rule { small_cols: 0, ratio: 1, window: 100 };
        for (rule, sorted) in [(Rule::of(1), true), (Rule::of(1), false), (window, true), (window, false)] {
            let mut problem = problem::<F64>(op, op, &a, &a);
            problem.sorted_output = sorted;
            let run = |products: Option<i64>, keep: bool| {
                let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
                (executor.threads, executor.rule) = (2, rule);
                executor.products = products.unwrap_or(executor.products);
                executor.symbolic(&cx).unwrap();
                assert!(executor.lists.is_some());
                if !keep {
                    executor.lists = None;
                }
                [1.5, 0.0].map(|alpha| bits(&run_csr(&mut executor, &cx, alpha, (n, n))))
            };
            let expected = run(None, true);
            assert!(run(None, false) == expected, "{name}, {rule:?}, {sorted}: found again");
            assert!(run(Some(1 << 24), true) == expected, "{name}, {rule:?}, {sorted}: distances");
        }
    }
}

/// Computed columns of C are transposed into rows, which requires sorting, so C ascends.
#[test]
fn transposed_products_are_sorted() {
    let op = Operation::Transpose;
    let (_, n, entries) = matrices().remove(3);
    let a = Stored::csr((n, n), &entries);
    let mut problem = problem::<F64>(op, op, &a, &a);
    (problem.sorted_output, problem.value_updates) = (false, true);
    assert!(choose(&problem).method.is_transposed());
    let entries = apply(op, &a.entries());
    let expected = naive::<F64>(1.5, &entries, &entries);
    let cx = unlimited();
    let mut executor = build(&cx, &problem, &choose(&problem)).unwrap();
    for _ in 0..2 {
        let found = run_csr(&mut *executor, &cx, 1.5, (n, n)).product();
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    }
}

/// A plan whose rows are not sorted writes rows of C, then columns, for which the rows are sorted, then rows.
#[test]
fn plans_without_order_write_columns_of_c_too() {
    let (op, cx) = (Operation::NonTranspose, unlimited());
    for (name, n, entries) in matrices() {
        let a = Stored::csr((n, n), &entries);
        let expected = naive::<F64>(1.5, &entries, &entries);
        for (keep, products) in [(true, 0), (true, 1 << 24), (false, 0)] {
            let mut problem = problem::<F64>(op, op, &a, &a);
            (problem.value_updates, problem.sorted_output) = (true, false);
            let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
            executor.products = executor.products.max(products);
            let nnz = executor.symbolic(&cx).unwrap();
            if !keep {
                executor.lists = None;
            }
            for format in [Format::Csr, Format::Csc, Format::Csr, Format::Csc] {
                let c = Stored::room(format, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
                executor.numeric(&cx, scalar(&1.5), &c.matrix()).unwrap();
                let found: BTreeMap<_, _> = c.entries().into_iter().map(|(i, j, v)| ((i, j), v)).collect();
                assert!(found == expected, "{name}, {format:?}, {keep}, {products}");
                if format == Format::Csc {
                    c.product();
                }
            }
        }
    }
}
