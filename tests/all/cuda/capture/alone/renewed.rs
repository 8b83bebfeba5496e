//! Tests of new values for plans that a graph has captured.

use super::*;

/// New values while a graph reads a plan's arrays: the graph uses them if they overwrite the old ones, or are
/// in the array that the plan reads; if other arrays would be needed, they are refused. For an Inf in B,
/// `dense` sums the elements that it reaches again, from A's stored entries.
#[test]
#[ignore = "captures need a process of their own"]
fn new_values_where_a_graph_reads_the_arrays() {
    if is_skipped("capture::new_values_where_a_graph_reads_the_arrays") {
        return;
    }
    let (problem, lane, n) = (small(), Lane::new(), 8);
    // COO is converted for every algorithm.
    let styles = [Style::PLAIN, Style { format: Format::Coo, ..Style::PLAIN }];
    let [new, newest] = [50, 51].map(|seed| random::<f64>(problem.entries.len(), seed));
    let session = &lane.session;
    let mut dense: Vec<f64> = random(COLS * n, 1);
    dense[5 * n + 2] = f64::INFINITY;
    let on_device = session.upload(&dense).unwrap();
    let shape = |rows: usize| Dense::<f64>::new((rows, n), Order::Row, 0).shape;
    let mut seen = Vec::new();
    for (style, updates) in styles.into_iter().flat_map(|style| [(style, false), (style, true)]) {
        let pattern = Pattern::new(style, (ROWS, COLS), &problem.entries);
        let (stored, renewed) = (pattern.store(CUDA, &problem.values), pattern.store(CUDA, &new));
        let types = F64::TYPES;
        let spmv = |alg: SpmvAlg| {
            let a = stored.open().unwrap();
            Plan::spmv(session, N, &a, (types.x, types.y), types.compute, alg)
                .ok()
                .map(|plan| (format!("{alg:?}"), 1, plan))
        };
        let spmm = |alg: SpmmAlg| {
            let (a, orders) = (stored.open().unwrap(), (Order::Row, Order::Row));
            let made =
                Plan::spmm(session, (N, N), &a, orders, n as i64, (types.x, types.y), types.compute, alg);
            made.ok().map(|plan| (format!("{alg:?}"), n, plan))
        };
        let spmv = SpmvAlg::ALL.iter().filter_map(|&alg| spmv(alg));
        let spmm = SpmmAlg::ALL.iter().filter_map(|&alg| spmm(alg));
        for (name, n, plan) in spmv.chain(spmm) {
            let mut values = &problem.values;
            overwrite(session, stored.values(), values);
            plan.set_value_updates(updates).unwrap();
            plan.analyze(session).unwrap();
            plan.prepare(session).unwrap();
            let mut result = session.upload(&vec![f64::NAN; ROWS * n]).unwrap();
            let graph = capture(&lane, || match n {
                1 => plan.run_spmv(session, 1.0, on_device.part(0..COLS), 0.0, &mut result).unwrap(),
                _ => {
                    let b = (&on_device, shape(COLS));
                    plan.run_spmm(session, 1.0, b, 0.0, (&mut result, shape(ROWS))).unwrap();
                }
            });
            let check = |values: &[f64], what: &str| {
                graph.launch(&lane.stream).unwrap();
                let a = factor(&problem.entries, values, N);
                let expected = dense_product(&a, (ROWS, n), |k, j| dense[k * n + j]);
                all_close::<F64>(CUDA, result.download().unwrap(), &expected)
                    .unwrap_or_else(|error| panic!("{name} {n} {style:?} {updates} {what}: {error}"));
            };
            check(values, "before");
            let mut found = Vec::new();
            let calls = [("another", renewed.values(), &new), ("the same", stored.values(), &newest)];
            for (what, array, given) in calls {
                if what == "the same" {
                    overwrite(session, array, given);
                }
                match plan.update_values(session, array) {
                    Ok(()) => {
                        values = given;
                        found.push("taken");
                        check(values, what);
                    }
                    Err(error) => {
                        assert_eq!(error.status, Status::InvalidState, "{error}");
                        let reads = error.message.contains("array of values that it reads now");
                        let moves = error.message.contains("arrays that it has now");
                        assert!(error.message.contains("graphs") && reads != moves, "{error}");
                        found.push(if reads { "reads" } else { "moves" });
                        if what == "another" {
                            check(values, what);
                        }
                    }
                }
            }
            drop(graph);
            plan.update_values(session, renewed.values()).unwrap();
            seen.push((format!("{name} {n} {} {updates}", style.format.short()), found));
        }
    }
    for (which, expected) in [
        ("Csr 1 CSR false", ["reads", "taken"]),
        ("Csr 1 CSR true", ["reads", "taken"]),
        ("Csr 1 COO false", ["taken", "taken"]),
        ("Dasp 1 CSR false", ["taken", "taken"]),
        ("Sell 1 CSR false", ["moves", "moves"]),
        ("Sell 1 CSR true", ["taken", "taken"]),
        ("Row 8 CSR true", ["reads", "taken"]),
        ("Dense 8 CSR false", ["reads", "taken"]),
        ("Dense 8 CSR true", ["reads", "taken"]),
        ("Dense 8 COO true", ["taken", "taken"]),
        ("Window 8 CSR true", ["taken", "taken"]),
    ] {
        let found = seen.iter().find(|(name, _)| name == which);
        assert!(found.is_some_and(|(_, found)| *found == expected), "{which}: {found:?} of {seen:?}");
    }
}

/// A numeric phase of SpGEMM reads A and B in place: new values of a factor that is read in place are
/// accepted only in its present array.
#[test]
#[ignore = "captures need a process of their own"]
fn new_arrays_of_spgemm_where_a_graph_reads_the_old_ones() {
    if is_skipped("capture::new_arrays_of_spgemm_where_a_graph_reads_the_old_ones") {
        return;
    }
    let (a, b) = (Problem::<f64>::new((100, 80), 600, 60), Problem::<f64>::new((80, 90), 500, 50));
    let (a_stored, lane) = (a.store(), Lane::new());
    let session = &lane.session;
    // op(B) of a CSC matrix is a copy.
    for (format, refused) in [(Format::Csr, [true, true]), (Format::Csc, [true, false])] {
        let style = Style { format, ..b.pattern.style };
        let b_stored = Pattern::new(style, (80, 90), &b.entries).store(CUDA, &b.values);
        let others = [session.upload(&a.values).unwrap(), session.upload(&b.values).unwrap()];
        let plan = spgemm_plan::<F64>(session, &a_stored, &b_stored);
        let nnz = plan.symbolic(session).unwrap() as usize;
        let mut offsets = session.upload(&[-1_i32; 101]).unwrap();
        let mut indices = session.upload(&vec![-1_i32; nnz]).unwrap();
        let mut values = session.upload(&vec![f64::NAN; nnz]).unwrap();
        let base = C_TARGET.base;
        let mut numeric = || {
            plan.numeric_csr(session, 1.0, (100, 90), &mut offsets, &mut indices, &mut values, base).unwrap();
        };
        numeric();
        let graph = capture(&lane, &mut numeric);
        let update = |[a, b]: [*const f64; 2]| {
            // SAFETY: as many values as the matrices have, which outlive the plan; NULL keeps the present
            // ones.
            check(unsafe { spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), a.cast(), b.cast()) })
        };
        let pointers = [0, 1].map(|at| others[at].part(0..others[at].len()).as_ptr());
        let present = [a_stored.values().as_ptr(), b_stored.values().as_ptr()];
        for at in 0..2 {
            let only = |pointers: [*const f64; 2]| {
                let mut out = [std::ptr::null(); 2];
                out[at] = pointers[at];
                out
            };
            update(only(present)).unwrap();
            let updated = update(only(pointers));
            assert_eq!(updated.is_err(), refused[at], "{format:?} {at}: {updated:?}");
            if let Err(error) = updated {
                let says_what = error.message.contains("array of values that it reads now");
                assert!(error.status == Status::InvalidState && says_what, "{error}");
            }
        }
        graph.launch(&lane.stream).unwrap();
        session.synchronize().unwrap();
        drop(graph);
        update(pointers).unwrap();
    }
}

/// Without announced value updates, new values may need new arrays, which is refused while a graph reads the
/// present ones.
#[test]
#[ignore = "captures need a process of their own"]
fn new_values_do_not_take_arrays_away_from_a_graph() {
    if is_skipped("capture::new_values_do_not_take_arrays_away_from_a_graph") {
        return;
    }
    let (problem, lane) = (small(), Lane::new());
    let (stored, session) = (problem.store(), &lane.session);
    memory(CUDA).synchronize().unwrap();
    let a = stored.open().unwrap();
    let x: Vec<f64> = random(COLS, 1);
    let device_x = session.upload(&x).unwrap();
    let values = session.upload(&problem.values).unwrap();
    let mut y = session.upload(&[f64::NAN; ROWS]).unwrap();
    let types = (F64::TYPES.x, F64::TYPES.y);
    for (alg, updates) in [(SpmvAlg::Sell, false), (SpmvAlg::Sell, true), (SpmvAlg::Csr, false)] {
        let plan = Plan::spmv(session, N, &a, types, F64::TYPES.compute, alg).unwrap();
        plan.set_value_updates(updates).unwrap();
        plan.analyze(session).unwrap();
        plan.prepare(session).unwrap();
        let graph = capture(&lane, || plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap());
        let updated = plan.update_values(session, &values);
        // If positions are kept, the graph continues with the same arrays.
        if updates {
            updated.unwrap();
        } else {
            let error = updated.unwrap_err();
            let instead = if alg == SpmvAlg::Csr { "into that array" } else { "setValueUpdates" };
            assert!(error.status == Status::InvalidState && error.message.contains(instead), "{error}");
        }
        graph.launch(&lane.stream).unwrap();
        session.synchronize().unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
        drop(graph);
        plan.update_values(session, &values).unwrap();
        plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
        session.synchronize().unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
    }
}
