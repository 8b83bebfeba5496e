//! Tests of stream capture and graphs. While a stream is captured, no thread of the process may wait for the
//! device, so these tests run one by one in a process of their own.

use client::{Array, View};
use tarsia::capi::memory::tarsiaMemcpyToDevice;
use tarsia::capi::{plan as plan_calls, spgemm};
use tarsia::facade::{Format, Graph};

use super::products::World;
use super::*;

#[test]
fn captures_in_a_process_of_their_own() {
    if is_skipped("capture") {
        return;
    }
    run_alone(concat!(module_path!(), "::alone"), 19);
}

/// Captures the work that `enqueue` enqueues, and makes a graph of it.
fn capture(lane: &Lane, enqueue: impl FnOnce()) -> Graph {
    Graph::begin(&lane.stream).unwrap();
    enqueue();
    Graph::end(&lane.stream).unwrap()
}

/// Overwrites memory that a plan borrows, in the order of the stream.
fn overwrite<V: bytemuck::Pod>(session: &Session, place: View<'_, V>, values: &[V]) {
    assert_eq!(place.len(), values.len());
    let (dst, src) = (place.as_ptr().cast_mut().cast(), values.as_ptr().cast());
    // SAFETY: the device's memory has that many bytes; only kernels read it.
    check(unsafe { tarsiaMemcpyToDevice(session.raw(), dst, src, size_of_val(values)) }).unwrap();
}

/// Number of replays of a graph.
const REPLAYS: u64 = 1000;
const ROWS: usize = 300;
const COLS: usize = 200;

fn small() -> Problem<f64> {
    Problem::new((ROWS, COLS), 2000, 150)
}

/// The tests, which [`captures_in_a_process_of_their_own`] runs.
mod alone {
    use super::*;

    mod once;
    mod renewed;

    #[test]
    #[ignore = "captures need a process of their own"]
    fn what_blocks_is_refused_and_the_capture_goes_on() {
        if is_skipped("capture::what_blocks_is_refused_and_the_capture_goes_on") {
            return;
        }
        let (problem, lane) = (small(), Lane::new());
        let (stored, other, session) = (problem.store(), problem.pattern.clone(), &lane.session);
        let transposed = Pattern::new(
            other.style,
            (COLS, ROWS),
            &problem.entries.iter().map(|&(row, col)| (col, row)).collect::<Vec<_>>(),
        )
        .store(CUDA, &problem.values);
        memory(CUDA).synchronize().unwrap();
        let a = stored.open().unwrap();
        let plan = spmv_plan::<F64>(session, &stored, Effort::Default);
        let types = (F64::TYPES.x, F64::TYPES.y);
        let new = Plan::spmv(session, N, &a, types, F64::TYPES.compute, SpmvAlg::Default).unwrap();
        let product = spgemm_plan::<F64>(session, &stored, &transposed);
        let x: Vec<f64> = random(COLS, 1);
        let device_x = session.upload(&x).unwrap();
        let mut y = session.upload(&[f64::NAN; ROWS]).unwrap();
        let refused = |what: &str, result: tarsia::facade::Result<()>| {
            let error = result.err().unwrap_or_else(|| panic!("{what} succeeded inside a capture"));
            assert_eq!(error.status, Status::InvalidState, "{what}: {error}");
        };
        let graph = capture(&lane, || {
            refused("analyze", new.analyze(session));
            refused("symbolic", product.symbolic(session).map(drop));
            refused("CheckSpMat", session.check_sparse(&a).map(drop));
            refused("Synchronize", session.synchronize());
            refused("MemcpyToHost", y.download().map(drop));
            plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
        });
        assert!(y.download().unwrap().iter().all(|y| y.is_nan()), "captured work has run");
        graph.launch(&lane.stream).unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
        // The call that was refused during the capture succeeds now.
        new.analyze(session).unwrap();
        assert!(product.symbolic(session).unwrap() > 0);
        session.check_sparse(&a).unwrap();
        drop(graph);

        // Destroying a plan does not wait for the device, so it does not disturb a capture.
        let other = spmv_plan::<F64>(session, &stored, Effort::Default);
        other.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
        y.write(0, &[f64::NAN; ROWS]).unwrap();
        let graph = capture(&lane, || {
            check(plan_calls::tarsiaPlan_destroy(other.raw())).unwrap();
            plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
        });
        graph.launch(&lane.stream).unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
    }

    /// Graphs keep the memory of plans and handles whose work they have captured.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn graphs_outlive_plans_and_handles() {
        if is_skipped("capture::graphs_outlive_plans_and_handles") {
            return;
        }
        let (problem, keeper) = (small(), Lane::new());
        let stored = problem.store();
        let x: Vec<f64> = random(COLS, 1);
        let device_x = keeper.session.upload(&x).unwrap();
        let mut y = keeper.session.upload(&[f64::NAN; ROWS]).unwrap();
        let graph = {
            let lane = Lane::new();
            let plan = spmv_plan::<F64>(&lane.session, &stored, Effort::Default);
            capture(&lane, || plan.run_spmv(&lane.session, 1.0, &device_x, 0.0, &mut y).unwrap())
        };
        for round in 0..20 {
            // These arrays would reuse memory that was freed too early.
            let sizes = [1_000, 5_000, 20_000, 80_000, 500_000];
            let others: Vec<_> =
                sizes.iter().map(|&size| keeper.session.upload(&vec![f64::NAN; size]).unwrap()).collect();
            y.write(0, &[f64::NAN; ROWS]).unwrap();
            graph.launch(&keeper.stream).unwrap();
            all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x))
                .unwrap_or_else(|error| panic!("round {round}: {error}"));
            drop(others);
        }

        // Memory from the user's functions cannot be kept: destruction waits until it is no longer used.
        let heap = Heap::new(CUDA);
        {
            let lane = Lane::new();
            heap.serve(lane.session.raw());
            let plan = spmv_plan::<F64>(&lane.session, &stored, Effort::Default);
            let graph = capture(&lane, || {
                plan.run_spmv(&lane.session, 1.0, &device_x, 0.0, &mut y).unwrap();
            });
            let error = check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap_err();
            assert!(error.status == Status::InvalidState && error.message.contains("graphs"), "{error}");
            plan.run_spmv(&lane.session, 1.0, &device_x, 0.0, &mut y).unwrap();
            graph.launch(&lane.stream).unwrap();
            all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
            drop(graph);
            check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap();
            std::mem::forget(plan);
        }
        heap.check_empty();
    }

    #[test]
    #[ignore = "captures need a process of their own"]
    fn spmv_with_other_x_and_other_scalars() {
        if is_skipped("capture::spmv_with_other_x_and_other_scalars") {
            return;
        }
        let (problem, lane) = (small(), Lane::new());
        let (stored, session) = (problem.store(), &lane.session);
        session.set_pointer_mode(PointerMode::Device).unwrap();
        for effort in [Effort::Quick, Effort::Default] {
            let plan = spmv_plan::<F64>(session, &stored, effort);
            let mut x: Array<'_, f64> = session.upload(&[0.0; COLS]).unwrap();
            let mut y = session.upload(&[0.0; ROWS]).unwrap();
            let mut scalars = session.upload(&[0.0; 2]).unwrap();
            let graph = capture(&lane, || {
                plan.run_spmv(session, scalars.part(0..1), &x, scalars.part(1..2), &mut y).unwrap();
            });
            for replay in 0..REPLAYS {
                let (new_x, old_y): (Vec<f64>, Vec<f64>) = (random(COLS, replay), random(ROWS, replay + 1));
                let scale: Vec<f64> = random(2, replay);
                x.write(0, &new_x).unwrap();
                y.write(0, &old_y).unwrap();
                scalars.write(0, &scale).unwrap();
                graph.launch(&lane.stream).unwrap();
                let sums = problem.times(&new_x);
                let expected: Vec<_> =
                    sums.iter().zip(&old_y).map(|(sum, &y)| sum.combine(scale[0], scale[1], y)).collect();
                all_close::<F64>(CUDA, y.download().unwrap(), &expected).unwrap();
            }
        }
    }

    #[test]
    #[ignore = "captures need a process of their own"]
    fn spmv_with_new_values() {
        if is_skipped("capture::spmv_with_new_values") {
            return;
        }
        let (mut problem, lane) = (small(), Lane::new());
        let (stored, session) = (problem.store(), &lane.session);
        let values = session.upload(&problem.values).unwrap();
        let x: Vec<f64> = random(COLS, 1);
        let device_x = session.upload(&x).unwrap();
        for effort in [Effort::Quick, Effort::Default] {
            let plan = spmv_plan::<F64>(session, &stored, effort);
            let mut y = session.upload(&[f64::NAN; ROWS]).unwrap();
            let graph = capture(&lane, || {
                plan.update_values(session, &values).unwrap();
                plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
            });
            for replay in 0..REPLAYS {
                problem.values = random(problem.entries.len(), replay);
                overwrite(session, values.part(0..values.len()), &problem.values);
                graph.launch(&lane.stream).unwrap();
                all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
            }
        }
    }

    /// Values that are read in place, by plans that also read columns in place (the small matrix), and by
    /// plans that keep 16-bit columns (the large one).
    #[test]
    #[ignore = "captures need a process of their own"]
    fn spmv_with_values_in_place() {
        if is_skipped("capture::spmv_with_values_in_place") {
            return;
        }
        let large = || Problem::<f64>::new((40_000, 60_000), 2_000_000, 30_000);
        for (mut problem, replays, keeps) in [(small(), REPLAYS, false), (large(), 10, true)] {
            let lane = Lane::new();
            let (stored, session, rows) = (problem.store(), &lane.session, problem.pattern.rows);
            let x: Vec<f64> = random(problem.pattern.cols, 1);
            let device_x = session.upload(&x).unwrap();
            let mut y = session.upload(&vec![f64::NAN; rows]).unwrap();
            let a = stored.open().unwrap();
            let types = (F64::TYPES.x, F64::TYPES.y);
            let plan = Plan::spmv(session, N, &a, types, F64::TYPES.compute, SpmvAlg::Default).unwrap();
            plan.set_values_in_place(true).unwrap();
            plan.analyze(session).unwrap();
            let reason: String = plan.info().unwrap().reason.iter().map(|&byte| byte as u8 as char).collect();
            assert_eq!(reason.contains("columns of its own in 16 bits"), keeps, "{reason}");
            let graph = capture(&lane, || plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap());
            for replay in 0..replays {
                problem.values = random(problem.entries.len(), replay);
                overwrite(session, stored.values(), &problem.values);
                graph.launch(&lane.stream).unwrap();
                all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
            }
            drop(graph);
        }
    }

    #[test]
    #[ignore = "captures need a process of their own"]
    fn spmm_with_other_b() {
        if is_skipped("capture::spmm_with_other_b") {
            return;
        }
        let (problem, lane, n) = (small(), Lane::new(), 8);
        let (stored, session) = (problem.store(), &lane.session);
        let plan = spmm_plan::<F64>(session, &stored, n);
        let (b, c) =
            (Dense::<f64>::new((COLS, n), Order::Row, 0), Dense::<f64>::new((ROWS, n), Order::Row, 0));
        let mut device_b = session.upload(&b.values[..]).unwrap();
        let mut device_c = session.upload(&c.values[..]).unwrap();
        let graph = capture(&lane, || {
            plan.run_spmm(session, 1.0, (&device_b, b.shape), 0.0, (&mut device_c, c.shape)).unwrap();
        });
        for replay in 0..REPLAYS {
            let new: Vec<f64> = random(COLS * n, replay);
            device_b.write(0, &new).unwrap();
            graph.launch(&lane.stream).unwrap();
            let expected = dense_product(&problem.factor(), (ROWS, n), |k, j| new[k * n + j]);
            all_close::<F64>(CUDA, device_c.download().unwrap(), &expected).unwrap();
        }
    }

    /// Products without a plan, in the first call of the process, which loads the kernels, with the user's
    /// workspace, and with the handle's own workspace once there is one. Some rows are split, and B and C are
    /// row-major and column-major.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn spmm_without_a_plan() {
        if is_skipped("capture::spmm_without_a_plan") {
            return;
        }
        let (problem, lane, n) = (Problem::<f64>::new((ROWS, 9000), 2000, 4000), Lane::new(), 32);
        let (stored, session) = (problem.store(), &lane.session);
        let a = stored.open().unwrap();
        for order in [Order::Row, Order::Col] {
            let (b, c) = (Dense::<f64>::new((9000, n), order, 0), Dense::<f64>::new((ROWS, n), order, 0));
            let mut device_b = session.upload(&b.values[..]).unwrap();
            let mut device_c = session.upload(&c.values[..]).unwrap();
            let mut multiply = || {
                let (b, c) = ((&device_b, b.shape), (&mut device_c, c.shape));
                session.spmm_once((N, N), 1.0, &a, b, 0.0, c, ComputeType::R64F)
            };
            let lent = (order == Order::Row)
                .then(|| crate::common::raw::UserWorkspace::new(session, 128 << 20).unwrap());
            if order == Order::Col {
                // The first call of a size allocates the workspace for copies, which is not possible in a
                // capture.
                Graph::begin(&lane.stream).unwrap();
                let error = multiply().unwrap_err();
                Graph::end(&lane.stream).unwrap();
                let names_it = error.message.contains("workspace");
                assert!(error.status == Status::InvalidState && names_it, "{error}");
            }
            if lent.is_none() {
                multiply().unwrap();
            }
            let graph = capture(&lane, || multiply().unwrap());
            for replay in 0..REPLAYS {
                let new: Vec<f64> = random(9000 * n, replay);
                device_b.write(0, &new).unwrap();
                graph.launch(&lane.stream).unwrap();
                if replay % 100 > 0 {
                    continue;
                }
                let at = |k, j| new[if order == Order::Row { k * n + j } else { j * 9000 + k }];
                let expected = dense_product(&problem.factor(), (ROWS, n), at);
                let found = device_c.download().unwrap();
                let row_major = (0..ROWS * n).map(|i| match order {
                    Order::Row => found[i],
                    Order::Col => found[i % n * ROWS + i / n],
                });
                all_close::<F64>(CUDA, row_major, &expected).unwrap();
            }
        }
    }

    /// Calls with checks read the arrays at once, outside of the capture, which stays valid.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn checks_inside_a_capture() {
        if is_skipped("capture::checks_inside_a_capture") {
            return;
        }
        let (mut problem, lane) = (small(), Lane::new());
        let (stored, session) = (problem.store(), &lane.session);
        session.set_checks(true).unwrap();
        let plan = spmv_plan::<F64>(session, &stored, Effort::Default);
        let x: Vec<f64> = random(COLS, 1);
        let device_x = session.upload(&x).unwrap();
        let mut y = session.upload(&[f64::NAN; ROWS]).unwrap();
        let graph = capture(&lane, || plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap());
        graph.launch(&lane.stream).unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
        drop(graph);
        problem.values = random(problem.entries.len(), 9);
        overwrite(session, stored.values(), &problem.values);
        let graph = capture(&lane, || {
            let error = plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap_err();
            assert!(error.status == Status::InvalidState && error.message.contains("values of A"), "{error}");
            plan.update_values(session, stored.values()).unwrap();
            plan.run_spmv(session, 1.0, &device_x, 0.0, &mut y).unwrap();
        });
        graph.launch(&lane.stream).unwrap();
        all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&x)).unwrap();
        drop(graph);
    }

    /// Numeric phases with a kept pattern, and new values of A, in one graph.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn spgemm_with_new_values() {
        if is_skipped("capture::spgemm_with_new_values") {
            return;
        }
        let (mut a, b) = (Problem::<f64>::new((100, 80), 600, 60), Problem::<f64>::new((80, 90), 500, 50));
        let (a_stored, b_stored, lane) = (a.store(), b.store(), Lane::new());
        let session = &lane.session;
        let a_values = session.upload(&a.values).unwrap();
        let plan = spgemm_plan::<F64>(session, &a_stored, &b_stored);
        let nnz = plan.symbolic(session).unwrap() as usize;
        let mut offsets = session.upload(&[-1_i32; 101]).unwrap();
        let mut indices = session.upload(&vec![-1_i32; nnz]).unwrap();
        let mut values = session.upload(&vec![f64::NAN; nnz]).unwrap();
        let base = C_TARGET.base;
        let mut numeric = || {
            plan.numeric_csr(session, 1.0, (100, 90), &mut offsets, &mut indices, &mut values, base).unwrap();
        };
        // The first numeric phase stores the pattern; later ones may be captured.
        numeric();
        let graph = capture(&lane, || {
            let new = a_values.part(0..a_values.len()).as_ptr();
            // SAFETY: as many values as A has, which outlive the plan; NULL
            // keeps those of B.
            check(unsafe {
                spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), new.cast(), std::ptr::null())
            })
            .unwrap();
            numeric();
        });
        for replay in 0..REPLAYS {
            a.values = random(a.entries.len(), replay);
            overwrite(session, a_values.part(0..a_values.len()), &a.values);
            graph.launch(&lane.stream).unwrap();
            let expected: Vec<_> = sparse_product(&a.factor(), &b.factor()).into_values().collect();
            all_close::<F64>(CUDA, values.download().unwrap(), &expected).unwrap();
        }
        assert_eq!(offsets.download().unwrap()[100] as usize, nnz);
        drop(graph);
    }

    /// New values and products in one graph, for every product, numeric phases of SpGEMM included.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn checks_of_every_product_inside_a_capture() {
        if is_skipped("capture::checks_of_every_product_inside_a_capture") {
            return;
        }
        let (world, lane) = (World::new(), Lane::new());
        let session = &lane.session;
        session.set_checks(true).unwrap();
        for (round, product) in world.products().into_iter().enumerate() {
            // Undoes the effects of the product before.
            overwrite(session, world.stored.values(), &world.a.values);
            let what = product.name;
            let plan = (product.plan)(session);
            let expected = (product.expected)(&world.a.values);
            let mut result = session.upload(&vec![f64::NAN; expected.len()]).unwrap();
            let graph = capture(&lane, || product.enqueue(session, &plan, &mut result));
            graph.launch(&lane.stream).unwrap();
            all_close::<F64>(CUDA, result.download().unwrap(), &expected)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(graph);
            let values = random(world.a.values.len(), 90 + round as u64);
            overwrite(session, world.stored.values(), &values);
            let graph = capture(&lane, || {
                let error = product.refused(session, &plan, &mut result);
                let says_it = error.message.contains("values of A");
                assert!(error.status == Status::InvalidState && says_it, "{what}: {error}");
                plan.update_values(session, world.stored.values()).unwrap();
                product.enqueue(session, &plan, &mut result);
            });
            graph.launch(&lane.stream).unwrap();
            all_close::<F64>(CUDA, result.download().unwrap(), &(product.expected)(&values))
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            drop(graph);
        }
    }

    /// A plan with values in place is captured once; each replay uses the present values.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn values_in_place_that_are_overwritten() {
        if is_skipped("capture::values_in_place_that_are_overwritten") {
            return;
        }
        let (mut problem, lane, n) = (small(), Lane::new(), 8);
        let (stored, session) = (problem.store(), &lane.session);
        let (a, types) = (stored.open().unwrap(), F64::TYPES);
        let values = (types.x, types.y);
        let spmv = Plan::spmv(session, N, &a, values, types.compute, SpmvAlg::Csr).unwrap();
        let orders = (Order::Row, Order::Row);
        let spmm =
            Plan::spmm(session, (N, N), &a, orders, n as i64, values, types.compute, SpmmAlg::Row).unwrap();
        for plan in [&spmv, &spmm] {
            plan.set_values_in_place(true).unwrap();
            plan.analyze(session).unwrap();
            assert_eq!(plan.info().unwrap().valuesInPlace, 1);
        }
        let dense: Vec<f64> = random(COLS * n, 1);
        let on_device = session.upload(&dense).unwrap();
        let mut y = session.upload(&[f64::NAN; ROWS]).unwrap();
        let mut c = session.upload(&vec![f64::NAN; ROWS * n]).unwrap();
        let shape = |rows: usize| Dense::<f64>::new((rows, n), Order::Row, 0).shape;
        spmm.prepare(session).unwrap();
        let graph = capture(&lane, || {
            spmv.run_spmv(session, 1.0, on_device.part(0..COLS), 0.0, &mut y).unwrap();
            spmm.run_spmm(session, 1.0, (&on_device, shape(COLS)), 0.0, (&mut c, shape(ROWS))).unwrap();
        });
        for replay in 0..REPLAYS {
            problem.values = random(problem.entries.len(), replay);
            overwrite(session, stored.values(), &problem.values);
            graph.launch(&lane.stream).unwrap();
            all_close::<F64>(CUDA, y.download().unwrap(), &problem.times(&dense[..COLS])).unwrap();
            let expected = dense_product(&problem.factor(), (ROWS, n), |k, j| dense[k * n + j]);
            all_close::<F64>(CUDA, c.download().unwrap(), &expected).unwrap();
        }
        drop(graph);
    }

    /// Products whose result is not the operand that beta scales.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn separate_outputs() {
        if is_skipped("capture::separate_outputs") {
            return;
        }
        let (problem, lane, n) = (small(), Lane::new(), 8);
        let (stored, session) = (problem.store(), &lane.session);
        let spmv = spmv_plan::<F64>(session, &stored, Effort::Default);
        let spmm = spmm_plan::<F64>(session, &stored, n);
        let mut dense = session.upload(&vec![f64::NAN; COLS * n]).unwrap();
        let mut added = session.upload(&vec![f64::NAN; ROWS * n]).unwrap();
        let mut z = session.upload(&[f64::NAN; ROWS]).unwrap();
        let mut d = session.upload(&vec![f64::NAN; ROWS * n]).unwrap();
        let shape = |rows: usize| Dense::<f64>::new((rows, n), Order::Row, 0).shape;
        let scale = (1.5, -0.75);
        let graph = capture(&lane, || {
            let (x, y) = (dense.part(0..COLS), added.part(0..ROWS));
            spmv.run_spmv_into(session, scale, x, y, &mut z).unwrap();
            let (b, c) = ((&dense, shape(COLS)), (&added, shape(ROWS)));
            spmm.run_spmm_into(session, scale, b, c, (&mut d, shape(ROWS))).unwrap();
        });
        for replay in 0..REPLAYS {
            let (new_b, new_c): (Vec<f64>, Vec<f64>) =
                (random(COLS * n, replay), random(ROWS * n, replay + 1));
            dense.write(0, &new_b).unwrap();
            added.write(0, &new_c).unwrap();
            graph.launch(&lane.stream).unwrap();
            let expected = |sums: Vec<Sum<f64>>| {
                let scaled = |(sum, &old): (Sum<f64>, &f64)| sum.combine(scale.0, scale.1, old);
                sums.into_iter().zip(&new_c).map(scaled).collect::<Vec<_>>()
            };
            all_close::<F64>(CUDA, z.download().unwrap(), &expected(problem.times(&new_b[..COLS]))).unwrap();
            let sums = dense_product(&problem.factor(), (ROWS, n), |k, j| new_b[k * n + j]);
            all_close::<F64>(CUDA, d.download().unwrap(), &expected(sums)).unwrap();
            // Operands that are only read do not change.
            assert!(added.download().unwrap() == new_c, "C or y was written");
        }
        drop(graph);
    }

    /// A graph keeps tiles whose plan and matrices are destroyed; while it exists, a plan refuses other
    /// tiles.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn graphs_outlive_matrices_in_tiles() {
        if is_skipped("capture::graphs_outlive_matrices_in_tiles") {
            return;
        }
        let (world, keeper) = (World::new(), Lane::new());
        for plan_is_last in [true, false] {
            let (product, matrices) = world.of_tiles(plan_is_last);
            let expected = (product.expected)(&world.a.values);
            let mut result = keeper.session.upload(&vec![f64::NAN; expected.len()]).unwrap();
            let graph = {
                let lane = Lane::new();
                let plan = (product.plan)(&lane.session);
                let graph = capture(&lane, || product.enqueue(&lane.session, &plan, &mut result));
                drop(plan);
                matrices.borrow_mut().clear();
                graph
            };
            for round in 0..20 {
                // These arrays would reuse memory that was freed too early.
                let sizes = [1_000, 5_000, 20_000, 80_000, 500_000];
                let others: Vec<_> =
                    sizes.iter().map(|&size| keeper.session.upload(&vec![f64::NAN; size]).unwrap()).collect();
                result.write(0, &vec![f64::NAN; expected.len()]).unwrap();
                graph.launch(&keeper.stream).unwrap();
                all_close::<F64>(CUDA, result.download().unwrap(), &expected)
                    .unwrap_or_else(|error| panic!("round {round}: {error}"));
                drop(others);
            }
        }
        let (product, matrices) = world.of_tiles(false);
        let plan = (product.plan)(&keeper.session);
        let expected = (product.expected)(&world.a.values);
        let mut result = keeper.session.upload(&vec![f64::NAN; expected.len()]).unwrap();
        let graph = capture(&keeper, || product.enqueue(&keeper.session, &plan, &mut result));
        matrices.borrow()[0].take(&keeper.session, &world.stored.open().unwrap()).unwrap();
        let renew = || {
            // SAFETY: NULL takes the values that the matrices in tiles have.
            check(unsafe {
                let (session, plan) = (keeper.session.raw(), plan.raw());
                spgemm::tarsiaSpGEMM_updateValues(session, plan, std::ptr::null(), std::ptr::null())
            })
        };
        let error = renew().unwrap_err();
        assert!(error.status == Status::InvalidState && error.message.contains("graphs"), "{error}");
        graph.launch(&keeper.stream).unwrap();
        all_close::<F64>(CUDA, result.download().unwrap(), &expected).unwrap();
        drop(graph);
        renew().unwrap();
        product.enqueue(&keeper.session, &plan, &mut result);
        all_close::<F64>(CUDA, result.download().unwrap(), &expected).unwrap();
    }

    /// Tiles in memory from the user's functions cannot be kept for a graph: they stay until the graph is
    /// destroyed, whether the plan or the matrix is their last owner, and all memory is freed after that.
    #[test]
    #[ignore = "captures need a process of their own"]
    fn graphs_keep_plans_of_tiles_in_a_users_memory() {
        if is_skipped("capture::graphs_keep_plans_of_tiles_in_a_users_memory") {
            return;
        }
        let (world, keeper) = (World::new(), Lane::new());
        for plan_is_last in [true, false] {
            let (product, matrices) = world.of_tiles(plan_is_last);
            let expected = (product.expected)(&world.a.values);
            let mut result = keeper.session.upload(&vec![f64::NAN; expected.len()]).unwrap();
            let heap = Heap::new(CUDA);
            let lane = Lane::new();
            heap.serve(lane.session.raw());
            let plan = (product.plan)(&lane.session);
            let graph = capture(&lane, || product.enqueue(&lane.session, &plan, &mut result));
            let error = check(plan_calls::tarsiaPlan_destroy(plan.raw())).unwrap_err();
            assert!(error.status == Status::InvalidState && error.message.contains("graphs"), "{error}");
            graph.launch(&keeper.stream).unwrap();
            all_close::<F64>(CUDA, result.download().unwrap(), &expected).unwrap();
            drop(graph);
            drop(plan);
            matrices.borrow_mut().clear();
            drop(lane);
            heap.check_empty();
        }
    }
}
