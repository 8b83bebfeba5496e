//! Tests of memory limits, of failed allocations, and of the threads that allocate.

use std::thread::ThreadId;

use super::*;

/// Memory that counts allocations, fails at a chosen one, and records the threads that allocate.
struct Faulty {
    state: Mutex<(usize, usize, Vec<ThreadId>)>,
}

impl RawMemory for Faulty {
    fn allocate(&self, bytes: usize, stream: Address) -> Result<Address> {
        let mut state = self.state.lock();
        state.0 += 1;
        state.2.push(std::thread::current().id());
        if state.0 == state.1 {
            return Err(Error::out_of_memory(bytes));
        }
        HostMemory.allocate(bytes, stream)
    }

    fn release(&self, address: Address, bytes: usize, stream: Address) {
        HostMemory.release(address, bytes, stream);
    }
}

#[test]
fn every_failed_allocation_is_an_error_that_can_be_retried() {
    let mut rng = Random::new(41);
    let n = 300;
    let entries = skewed(&mut rng, n as usize, 12, Random::integer);
    let a = Stored::new(Format::Csc, (n, n), IndexBase::Zero, WIDTHS[0], &entries);
    let b = Stored::new(Format::Csr, (n, n), IndexBase::Zero, WIDTHS[0], &entries);
    // Expected entries by column, as C is stored.
    let mut expected: Vec<_> =
        naive::<F64>(1.0, &entries, &entries).into_iter().map(|((row, col), v)| (row, col, v)).collect();
    expected.sort_by_key(|e| e.1);
    let op = Operation::NonTranspose;
    for (value_updates, sorted_output) in [(false, true), (true, true), (true, false)] {
        let mut problem = problem::<F64>(op, op, &a, &b);
        (problem.value_updates, problem.sorted_output) = (value_updates, sorted_output);
        let mut failures = 0;
        for failing in 1.. {
            let memory = Arc::new(Faulty { state: Mutex::new((0, failing, Vec::new())) });
            let cx =
                context(Allocator::new(Arc::clone(&memory) as Arc<dyn RawMemory>, Address::NULL, usize::MAX));
            let mut expect_failure = |error: Error| {
                assert_eq!(error.status, Status::AllocFailed);
                failures += 1;
            };
            let mut executor = match build(&cx, &problem, &choose(&problem)) {
                Ok(executor) => executor,
                Err(error) => {
                    assert_eq!(cx.allocator.live_bytes(), 0);
                    expect_failure(error);
                    build(&cx, &problem, &choose(&problem)).unwrap()
                }
            };
            assert!(executor.products() > 1 << 15, "several items, so that several threads work");
            let nnz = executor.symbolic(&cx).or_else(|error| {
                expect_failure(error);
                executor.symbolic(&cx)
            });
            let nnz = nnz.unwrap();
            if !sorted_output {
                // Rows without order are sorted when C in CSC is asked for.
                let c = Stored::room(Format::Csr, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
                if let Err(error) = executor.numeric(&cx, scalar(&1.0), &c.matrix()) {
                    expect_failure(error);
                    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                }
                let mut entries = c.entries();
                entries.sort_by_key(|&(row, col, _)| (col, row));
                assert!(entries == expected);
            }
            // For CSC, rows are computed and then transposed.
            let c = Stored::room(Format::Csc, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
            for _ in 0..2 {
                let held = cx.allocator.live_bytes();
                if let Err(error) = executor.numeric(&cx, scalar(&1.0), &c.matrix()) {
                    expect_failure(error);
                    assert_eq!(cx.allocator.live_bytes(), held);
                    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
                }
                assert!(c.entries() == expected);
            }
            if let Err(error) = executor.update_values(&cx, a.matrix().values(), b.matrix().values()) {
                expect_failure(error);
                executor.update_values(&cx, a.matrix().values(), b.matrix().values()).unwrap();
            }
            if let Err(error) = executor.numeric(&cx, scalar(&1.0), &c.matrix()) {
                expect_failure(error);
                executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
            }
            assert!(c.entries() == expected);
            drop(executor);
            assert_eq!(cx.allocator.live_bytes(), 0);
            let state = memory.state.lock();
            assert!(state.2.iter().all(|&id| id == std::thread::current().id()), "a worker thread allocated");
            // Where memory only saves time, a refusal is no error.
            if state.0 < failing {
                assert!(failing > 10 && failures > 5, "{failures} of {failing}");
                break;
            }
        }
    }
}

#[test]
fn memory_limit_fails_and_a_larger_one_succeeds() {
    let mut rng = Random::new(43);
    let n = 2000;
    let a = Stored::csr((n, n), &integers(&mut rng, n as usize, n as usize, 6000));
    let op = Operation::NonTranspose;
    let mut problem = problem::<F64>(op, op, &a, &a);
    problem.value_updates = true;
    let error = build(&limited(1000), &problem, &choose(&problem)).err().unwrap();
    assert_eq!(error.status, Status::InsufficientResources);
    assert!(error.message.contains("1000 bytes"), "{error}");

    let cx = unlimited();
    let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
    let error = executor.symbolic(&limited(5000)).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room(Format::Csr, (n, n), IndexBase::Zero, WIDTHS[0], nnz, f64::NAN);
    for limit in [10, 1000, 10_000] {
        let small = limited(limit);
        let error = executor.numeric(&small, scalar(&1.0), &c.matrix()).unwrap_err();
        assert_eq!(error.status, Status::InsufficientResources);
        assert_eq!(small.allocator.live_bytes(), 0);
    }
    executor.numeric(&cx, scalar(&1.0), &c.matrix()).unwrap();
    assert_eq!(c.product(), naive::<F64>(1.0, &a.entries(), &a.entries()));
}

#[test]
fn memory_follows_rows_and_entries_not_products() {
    // 200 equal rows of A multiply the same 200 rows of B, each with the same 100 columns: 4 million
    // products, 20,000 entries.
    let pairs = |rows: i64, cols: i64| {
        (0..rows).flat_map(move |i| (0..cols).map(move |j| (i, j, 1.0))).collect::<Vec<_>>()
    };
    let (a, b) = (Stored::csr((200, 200), &pairs(200, 200)), Stored::csr((200, 100), &pairs(200, 100)));
    let (op, cx) = (Operation::NonTranspose, unlimited());
    let problem = problem::<F64>(op, op, &a, &b);
    for rule in [Rule { small_cols: 0, ratio: 1, window: 0 }, Rule::of(1)] {
        let mut executor = executor::<i32, F64>(&cx, &problem).unwrap();
        executor.rule = rule;
        executor.threads = 4;
        assert_eq!(executor.products(), 4_000_000);
        let c = run_csr(&mut executor, &cx, 1.0, (200, 100));
        assert!(c.values.iter().all(|&v| v == 200.0));
    }
    // 4 bytes an entry of C are its columns.
    let rest = cx.allocator.peak_bytes() - 4 * 20_000;
    assert!(rest < 64 << 10, "{rest} bytes besides C's columns");
}

/// With every limit, from 0 to the peak of a run without one, results have the same bits, or there is an
/// error that names the bytes, after which the plan can still be used.
#[test]
fn a_limit_changes_no_bits() {
    let mut rng = Random::new(47);
    let n = 250;
    let entries = skewed(&mut rng, n as usize, 9, Random::real);
    let a = Stored::csr((n, n), &entries);
    let op = Operation::NonTranspose;
    let by_tiles = |problem: &SpgemmProblem| {
        let tile = |row: &&crate::algorithm::Row| row.algorithm == crate::algorithm::Algorithm::Tile;
        let rows: Vec<_> = crate::algorithm::TABLE.iter().filter(tile).collect();
        select::spgemm(problem, &rows).unwrap().swap_remove(0)
    };
    for turn in 0..10 {
        // The last two turns leave C unsorted.
        let (format, value_updates) =
            (FORMATS[if turn < 8 { turn % 2 } else { 0 }], turn / 2 % 2 == 1 || turn == 9);
        let mut problem = problem::<F64>(op, op, &a, &a);
        (problem.value_updates, problem.sorted_output) = (value_updates, turn < 8);
        let choice = if (4..8).contains(&turn) { by_tiles(&problem) } else { choose(&problem) };
        let mut wanted = None;
        let (mut limit, mut peak, mut failures) = (usize::MAX, 0, 0);
        loop {
            let (cx, free) = (limited(limit), unlimited());
            let mut fails = |error: Error| {
                assert_eq!(error.status, Status::InsufficientResources);
                assert!(error.message.contains("bytes"), "{error}");
                failures += 1;
            };
            match build(&cx, &problem, &choice) {
                Err(error) => fails(error),
                Ok(mut executor) => {
                    let nnz = executor.symbolic(&cx).or_else(|error| {
                        fails(error);
                        executor.symbolic(&free)
                    });
                    let nnz = nnz.unwrap();
                    let c = Stored::room(format, (n, n), IndexBase::One, WIDTHS[0], nnz, f64::NAN);
                    for _ in 0..2 {
                        if let Err(error) = executor.numeric(&cx, scalar(&0.7), &c.matrix()) {
                            fails(error);
                            executor.numeric(&free, scalar(&0.7), &c.matrix()).unwrap();
                        }
                        assert_eq!(*wanted.get_or_insert_with(|| bits(&c)), bits(&c), "{limit} bytes");
                    }
                }
            }
            assert_eq!((cx.allocator.live_bytes(), free.allocator.live_bytes()), (0, 0));
            if limit == usize::MAX {
                assert_eq!(failures, 0);
                (peak, limit) = (cx.allocator.peak_bytes(), 0);
                continue;
            }
            assert!(cx.allocator.peak_bytes() <= limit);
            if limit == peak {
                break;
            }
            limit = (limit + (limit / 6).max(400)).min(peak);
        }
        assert!(failures > 5, "{failures}");
    }
}
