//! Tests of products with a separate result: z = alpha · op(A) · x + beta · y has the bits of the product in
//! place on a copy of y, and does not change y.

use crate::common::number::{C64, F16F32, F32, F64};
use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, Effort, Error, Operation, Order, PointerMode, SpmmAlg, SpmvAlg, Status};
use testkit::Number as _;

use crate::common::backend;
use crate::common::dense::Dense;
use crate::common::number::{bits, Numbers, Value, Wide};
use crate::common::pattern::{Pattern, Style};
use crate::common::staged::Staged;

const ROWS: usize = 700;
const COLS: usize = 400;
const N: Operation = Operation::NonTranspose;

fn random<V: Value>(count: usize, seed: u64) -> Vec<V> {
    let mut rng = SplitMix64::new(seed);
    (0..count).map(|_| V::random(&mut rng)).collect()
}

fn of_places(shape: (usize, usize), mut places: Vec<(usize, usize)>) -> Pattern {
    places.sort_unstable();
    places.dedup();
    Pattern::new(Style::PLAIN, shape, &places)
}

/// Returns a pattern with rows of few entries, empty rows, and a full row.
fn pattern() -> Pattern {
    let mut rng = SplitMix64::new(8);
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let mut places: Vec<_> = (0..6000).map(|_| (below(ROWS), below(COLS))).collect();
    places.retain(|(row, _)| row % 9 != 4);
    places.extend((0..COLS).map(|col| (ROWS / 3, col)));
    of_places((ROWS, COLS), places)
}

/// Returns a pattern with long rows, which are split, the first and the last among them, and with short and
/// empty rows in between.
fn long_rows() -> Pattern {
    let (rows, cols) = (301, 20_000);
    let mut rng = SplitMix64::new(9);
    let mut places: Vec<_> = (0..1200)
        .map(|_| (rng.below(rows as u64) as usize, rng.below(cols as u64) as usize))
        .filter(|(row, _)| row % 3 > 0)
        .collect();
    for (row, step) in [(0, 2), (150, 1), (rows - 1, 3)] {
        places.extend((0..cols).step_by(step).map(|col| (row, col)));
    }
    of_places((rows, cols), places)
}

/// Returns a pattern in which each `together` neighbouring rows have the same columns.
fn shared_columns(together: usize) -> Pattern {
    let (rows, cols) = (600, 500);
    let mut rng = SplitMix64::new(10);
    let blocks = (0..rows / together).flat_map(|block| (0..8).map(move |_| block));
    let blocks: Vec<_> = blocks.map(|block| (block, rng.below(cols as u64) as usize)).collect();
    let rows_of = |(block, col)| (0..together).map(move |row| (block * together + row, col));
    of_places((rows, cols), blocks.into_iter().flat_map(rows_of).collect())
}

/// Returns a pattern with many rows of at most four entries.
fn short_rows(rows: usize) -> Pattern {
    let entries = |row: usize| (0..row * 7 % 5).map(move |entry| (row, (row + entry * 11) % 1000));
    of_places((rows, 1000), (0..rows).flat_map(entries).collect())
}

/// Returns pairs of alpha and beta; for a beta of 0 the old values are NaN.
fn scalars<C: Numbers>() -> [(C::S, C::S); 4] {
    let number = |x: f64| C::S::narrow(C::Wide::new(x, 0.0));
    let (zero, one) = (number(0.0), number(1.0));
    [(number(-1.0), one), (number(0.7), number(-0.3)), (one, zero), (zero, number(0.9))]
}

fn vectors<C: Numbers>(kind: BackendKind, mode: PointerMode, pattern: &Pattern) {
    let session = Session::new(kind).unwrap();
    session.set_pointer_mode(mode).unwrap();
    let (types, rows) = (C::TYPES, pattern.rows);
    let values: Vec<C::A> = random(pattern.entries().len(), 1);
    let stored = pattern.store(kind, &values);
    let a = stored.open().unwrap();
    let x = Staged::new(kind, &random::<C::X>(pattern.cols, 2));
    let mut tested = 0;
    for &alg in SpmvAlg::ALL {
        let made = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, alg);
        let Ok(plan) = made else { continue };
        plan.set_effort(Effort::Default).unwrap();
        plan.analyze(&session).unwrap();
        for (at, (alpha, beta)) in scalars::<C>().into_iter().enumerate() {
            let old = if at == 2 { vec![C::Y::nan(); rows] } else { random::<C::Y>(rows, 3) };
            let what = format!("{kind:?} {alg:?} {} {mode:?} {rows} rows, case {at}", types.describe());
            let on_device = Staged::new(kind, &[alpha, beta]);
            let (mut in_place, y) = (Staged::new(kind, &old), Staged::new(kind, &old));
            let mut z = Staged::new(kind, &vec![C::Y::nan(); rows]);
            match mode {
                PointerMode::Host => {
                    plan.run_spmv(&session, alpha, x.view(), beta, in_place.view_mut()).unwrap();
                    plan.run_spmv_into(&session, (alpha, beta), x.view(), y.view(), z.view_mut()).unwrap();
                }
                PointerMode::Device => {
                    let (alpha, beta) = (on_device.part(0..1), on_device.part(1..2));
                    plan.run_spmv(&session, alpha, x.view(), beta, in_place.view_mut()).unwrap();
                    plan.run_spmv_into(&session, (alpha, beta), x.view(), y.view(), z.view_mut()).unwrap();
                }
            }
            session.synchronize().unwrap();
            let (expected, found) = (in_place.download().unwrap(), z.download().unwrap());
            let wrong = (0..rows).find(|&row| bits(&found[row..=row]) != bits(&expected[row..=row]));
            assert_eq!(wrong, None, "{what}");
            assert!(bits(&y.download().unwrap()) == bits(&old), "{what}: y was written");
        }
        tested += 1;
    }
    assert!(tested >= 2);
}

/// Tests SpMM with `n` columns, and `padding` elements between the lines of C and of D.
fn matrices<C: Numbers>(
    kind: BackendKind,
    (b_order, order): (Order, Order),
    pattern: &Pattern,
    n: usize,
    padding: [usize; 2],
) {
    let session = Session::new(kind).unwrap();
    // SWIFT's bits differ from run to run otherwise.
    session.set_deterministic(true).unwrap();
    let (types, rows) = (C::TYPES, pattern.rows);
    let values: Vec<C::A> = random(pattern.entries().len(), 1);
    let stored = pattern.store(kind, &values);
    let a = stored.open().unwrap();
    let (mut b, mut rng) = (Dense::<C::X>::new((pattern.cols, n), b_order, 3), SplitMix64::new(4));
    b.fill(|_, _| C::X::random(&mut rng));
    let b_there = Staged::new(kind, &b.values[..]);
    let mut tested = 0;
    for &alg in SpmmAlg::ALL {
        let (ops, of, orders) = ((N, N), (types.x, types.y), (b_order, order));
        let made = Plan::spmm(&session, ops, &a, orders, n as i64, of, types.compute, alg);
        let Ok(plan) = made else { continue };
        plan.analyze(&session).unwrap();
        for (at, (alpha, beta)) in scalars::<C>().into_iter().enumerate() {
            // C and D have different leading dimensions, with NaN in the padding.
            let [mut c, mut d] = padding.map(|padding| Dense::<C::Y>::new((rows, n), order, padding));
            let mut rng = SplitMix64::new(6);
            if at != 2 {
                c.fill(|_, _| C::Y::random(&mut rng));
            }
            let expected = {
                // Computed with D's ld: a kernel for a contiguous column may have other bits than one for any
                // ld.
                let mut expected = d.clone();
                expected.fill(|i, j| c.get(i, j));
                let mut there = Staged::new(kind, &expected.values[..]);
                plan.run_spmm(&session, alpha, (b_there.view(), b.shape), beta, (there.view_mut(), d.shape))
                    .unwrap();
                session.synchronize().unwrap();
                expected.values.copy_from_slice(&there.download().unwrap());
                expected
            };
            let (c_there, mut d_there) = (Staged::new(kind, &c.values[..]), Staged::new(kind, &d.values[..]));
            let before = d.clone();
            let (from, to) = ((c_there.view(), c.shape), (d_there.view_mut(), d.shape));
            plan.run_spmm_into(&session, (alpha, beta), (b_there.view(), b.shape), from, to).unwrap();
            session.synchronize().unwrap();
            d.values.copy_from_slice(&d_there.download().unwrap());
            let orders = format!("{b_order:?} {order:?}");
            let what = format!("{kind:?} {alg:?} {} {orders} {rows} x {n}, case {at}", types.describe());
            for (i, j) in (0..rows).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert!(bits(&[d.get(i, j)]) == bits(&[expected.get(i, j)]), "{what}: element ({i}, {j})");
                // The remaining differences are those of the leading dimensions.
                let at = d.at(i, j);
                d.values[at] = before.values[at];
            }
            assert!(bits(&d.values[..]) == bits(&before.values[..]), "{what}: between the lines of D");
            assert!(bits(&c_there.download().unwrap()) == bits(&c.values[..]), "{what}: C was written");
        }
        tested += 1;
    }
    assert!(tested >= 2);
}

#[test]
fn vectors_have_the_bits_of_a_product_in_place() {
    for kind in [BackendKind::Reference, backend()] {
        for mode in [PointerMode::Host, PointerMode::Device] {
            for pattern in [pattern(), long_rows(), shared_columns(2), shared_columns(3)] {
                vectors::<F64>(kind, mode, &pattern);
                vectors::<F32>(kind, mode, &pattern);
                vectors::<F16F32>(kind, mode, &pattern);
                vectors::<C64>(kind, mode, &pattern);
            }
        }
    }
}

/// There are so many rows that each warp of a GPU processes several groups of rows.
#[test]
fn vectors_of_many_short_rows() {
    vectors::<F16F32>(backend(), PointerMode::Host, &short_rows(300_000));
    vectors::<F64>(backend(), PointerMode::Host, &short_rows(300_000));
}

#[test]
fn matrices_have_the_bits_of_a_product_in_place() {
    for kind in [BackendKind::Reference, backend()] {
        for order in [Order::Row, Order::Col] {
            let orders = (order, order);
            matrices::<F64>(kind, orders, &pattern(), 37, [5, 2]);
            matrices::<F32>(kind, orders, &pattern(), 37, [5, 2]);
            matrices::<F16F32>(kind, orders, &pattern(), 37, [5, 2]);
        }
    }
}

/// Few and many columns, a contiguous column, and leading dimensions that are aligned for wide accesses of
/// only C, of only D, and of both.
#[test]
fn matrices_of_any_width_and_ld() {
    let kind = backend();
    let orders = [Order::Row, Order::Col].map(|b| [Order::Row, Order::Col].map(|c| (b, c))).concat();
    for orders in orders {
        for (n, padding) in
            [(1, [2, 0]), (1, [0, 0]), (3, [1, 5]), (8, [0, 8]), (40, [5, 8]), (64, [16, 5]), (64, [0, 0])]
        {
            for pattern in [pattern(), shared_columns(3)] {
                matrices::<F64>(kind, orders, &pattern, n, padding);
                matrices::<F32>(kind, orders, &pattern, n, padding);
                matrices::<F16F32>(kind, orders, &pattern, n, padding);
            }
        }
        matrices::<C64>(kind, orders, &pattern(), 12, [3, 1]);
        let one_row = of_places((1, COLS), (0..COLS).step_by(3).map(|col| (0, col)).collect());
        for padding in [[1, 0], [0, 3], [0, 0]] {
            matrices::<F64>(kind, orders, &one_row, 16, padding);
            matrices::<F32>(kind, orders, &one_row, 16, padding);
        }
    }
}

/// Split rows, and a column-major C that is large enough for sums to be stored elsewhere first.
#[test]
fn matrices_of_long_rows_and_of_many() {
    let kind = backend();
    for order in [Order::Row, Order::Col] {
        for (n, padding) in [(3, [2, 0]), (40, [0, 8])] {
            matrices::<F64>(kind, (order, order), &long_rows(), n, padding);
            matrices::<F32>(kind, (order, order), &long_rows(), n, padding);
        }
        matrices::<F32>(kind, (Order::Row, order), &short_rows(14_000), 40, [3, 4]);
    }
}

/// Old values in ordinary host memory, which a GPU's kernels cannot read, are copied.
#[test]
fn old_values_in_ordinary_memory() {
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let (pattern, types) = (pattern(), F64::TYPES);
    let stored = pattern.store(kind, &random::<f64>(pattern.entries().len(), 1));
    let a = stored.open().unwrap();
    let x = Staged::new(kind, &random::<f64>(COLS, 2));
    let mut old = random::<f64>(ROWS, 3);
    for alg in [SpmvAlg::Csr, SpmvAlg::Sell] {
        let plan = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, alg).unwrap();
        plan.analyze(&session).unwrap();
        let mut expected = Staged::new(kind, &old);
        plan.run_spmv(&session, 0.5, x.view(), 2.0, expected.view_mut()).unwrap();
        let mut z = Staged::new(kind, &vec![f64::NAN; ROWS]);
        let (x, z_at) = ((x.view().as_ptr(), COLS), z.view_mut().as_mut_ptr());
        raw::spmv_into(&session, &plan, (0.5, 2.0), x, (old.as_mut_ptr(), z_at, ROWS)).unwrap();
        session.synchronize().unwrap();
        assert!(bits(&z.download().unwrap()) == bits(&expected.download().unwrap()), "{alg:?}");
    }
}

/// z may be the array of y, but must not overlap it otherwise; errors name the argument.
#[test]
fn results_that_share_memory() {
    let (kind, session) = (backend(), Session::new(backend()).unwrap());
    let (pattern, types) = (pattern(), F64::TYPES);
    let stored = pattern.store(kind, &random::<f64>(pattern.entries().len(), 1));
    let a = stored.open().unwrap();
    let plan = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Default).unwrap();
    plan.analyze(&session).unwrap();
    let x = Staged::new(kind, &random::<f64>(COLS, 2));
    let old = random::<f64>(ROWS, 3);
    let mut expected = Staged::new(kind, &old);
    plan.run_spmv(&session, 0.5, x.view(), 2.0, expected.view_mut()).unwrap();

    let memory = Staged::new(kind, &[old.clone(), old].concat());
    let first = memory.view().as_ptr().cast_mut();
    let into = |y: *mut f64, z: *mut f64| {
        raw::spmv_into(&session, &plan, (0.5, 2.0), (x.view().as_ptr(), COLS), (y, z, ROWS))
    };
    into(first, first).unwrap();
    session.synchronize().unwrap();
    assert!(bits(&memory.download().unwrap()[..ROWS]) == bits(&expected.download().unwrap()));
    for shift in [1, ROWS / 2, ROWS - 1] {
        let error = into(first, first.wrapping_add(shift)).unwrap_err();
        assert!(error.status == Status::InvalidValue && error.message.starts_with("z: "), "{error}");
        let error = into(first.wrapping_add(shift), first).unwrap_err();
        assert!(error.status == Status::InvalidValue && error.message.starts_with("z: "), "{error}");
    }
    into(first.wrapping_add(ROWS), first).unwrap();
    // Nothing is written before all arguments have been checked.
    let before = memory.download().unwrap();
    let short = raw::spmv_into(
        &session,
        &plan,
        (0.5, 2.0),
        (x.view().as_ptr(), COLS - 1),
        (first, first.wrapping_add(ROWS), ROWS),
    );
    assert!(short.unwrap_err().message.starts_with("x: "));
    assert!(bits(&memory.download().unwrap()) == bits(&before));
}

/// Scalars in the result are refused, since the old values would overwrite them before they are read.
#[test]
fn scalars_in_the_result_are_refused() {
    for kind in [BackendKind::Reference, backend()] {
        let session = Session::new(kind).unwrap();
        session.set_pointer_mode(PointerMode::Device).unwrap();
        let (pattern, types) = (pattern(), F64::TYPES);
        let stored = pattern.store(kind, &random::<f64>(pattern.entries().len(), 1));
        let a = stored.open().unwrap();
        let plan = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, SpmvAlg::Csr).unwrap();
        plan.analyze(&session).unwrap();
        let x = Staged::new(kind, &random::<f64>(COLS, 2));
        // y, z, and two scalars behind them.
        let memory = Staged::new(kind, &random::<f64>(2 * ROWS + 2, 3));
        let before = memory.download().unwrap();
        let y = memory.view().as_ptr().cast_mut();
        let [z, behind] = [ROWS, 2 * ROWS].map(|at| y.wrapping_add(at));
        let into = |alpha: *const f64, beta: *const f64| {
            raw::spmv_at(&session, &plan, (alpha, beta), (x.view().as_ptr(), COLS), (y, z, ROWS))
        };
        for at in [0, 1, ROWS - 1] {
            for (name, alpha, beta) in
                [("alpha", z.wrapping_add(at), behind), ("beta", behind, z.wrapping_add(at))]
            {
                let error = into(alpha, beta).unwrap_err();
                assert_eq!(error.status, Status::InvalidValue, "{error}");
                assert!(error.message.starts_with(&format!("{name}: it lies in z")), "{error}");
            }
        }
        assert!(bits(&memory.download().unwrap()) == bits(&before));
        // Scalars beside the result, or in y, are accepted.
        into(behind, behind.wrapping_add(1)).unwrap();
        into(y, y.wrapping_add(ROWS - 1)).unwrap();
        session.synchronize().unwrap();
        assert!(bits(&memory.download().unwrap()[..ROWS]) == bits(&before[..ROWS]));
    }
}

/// Overlaps are those of elements: a single column has the same elements for any ld, and columns that lie
/// between others have no element in common with them.
#[test]
fn elements_say_what_is_shared() {
    let kind = backend();
    let session = Session::new(kind).unwrap();
    let (pattern, types) = (pattern(), F64::TYPES);
    let stored = pattern.store(kind, &random::<f64>(pattern.entries().len(), 1));
    let a = stored.open().unwrap();
    let orders = (Order::Col, Order::Col);
    let plan =
        Plan::spmm(&session, (N, N), &a, orders, 2, (types.x, types.y), types.compute, SpmmAlg::Row).unwrap();
    plan.analyze(&session).unwrap();
    let b = Staged::new(kind, &random::<f64>(2 * COLS, 2));
    let old = random::<f64>(2 * ROWS, 3);
    // Returns the columns of D, after C's columns have been stored at the given position.
    let run = |cols: usize, (c, ldc): (usize, usize), (d, ldd): (usize, usize)| {
        let mut values = vec![0.25; 8 * ROWS];
        for col in 0..cols {
            values[c + col * ldc..][..ROWS].copy_from_slice(&old[col * ROWS..][..ROWS]);
        }
        let memory = Staged::new(kind, &values);
        let [c, d_values] = [c, d].map(|at| memory.view().as_ptr().cast_mut().wrapping_add(at));
        let b = (b.view().as_ptr().cast_mut(), COLS, cols, COLS);
        let operands = [b, (c, ROWS, cols, ldc), (d_values, ROWS, cols, ldd)];
        raw::spmm_into(&session, &plan, (0.5, 2.0), operands)?;
        session.synchronize()?;
        let out = memory.download()?;
        let columns: Vec<f64> = (0..cols).flat_map(|col| out[d + col * ldd..][..ROWS].to_vec()).collect();
        Ok(bits(&columns).to_vec())
    };
    let apart = |cols| run(cols, (0, ROWS), (4 * ROWS, ROWS)).unwrap();
    // One column with another ld is C itself.
    assert!(run(1, (0, ROWS), (0, ROWS + 2)).unwrap() == apart(1));
    // Columns of D between those of C, whose ld is another.
    assert!(run(2, (0, 4 * ROWS), (ROWS, 2 * ROWS)).unwrap() == apart(2));
    for (c, d) in
        [((0, 2 * ROWS), (2 * ROWS, ROWS)), ((0, 3 * ROWS), (ROWS - 1, ROWS + 1)), ((0, ROWS), (0, ROWS + 1))]
    {
        let error: Error = run(2, c, d).unwrap_err();
        assert!(error.status == Status::InvalidValue && error.message.starts_with("D: "), "{error}");
    }
}

mod raw {
    //! Calls with addresses, which may overlap in ways that the client's arrays cannot.
    use client::{arg, check, Plan, Session};
    use tarsia::capi::{dnmat, dnvec, spmm, spmv};
    use tarsia::facade::{DataType, Order, Result};

    pub fn spmv_into(
        session: &Session,
        plan: &Plan<'_>,
        (alpha, beta): (f64, f64),
        x: (*const f64, usize),
        result: (*mut f64, *mut f64, usize),
    ) -> Result<()> {
        spmv_at(session, plan, (&raw const alpha, &raw const beta), x, result)
    }

    /// Calls SpMV with a separate result and with scalars at these addresses.
    pub fn spmv_at(
        session: &Session,
        plan: &Plan<'_>,
        (alpha, beta): (*const f64, *const f64),
        (x, cols): (*const f64, usize),
        (y, z, rows): (*mut f64, *mut f64, usize),
    ) -> Result<()> {
        let mut made = [std::ptr::null_mut(); 3];
        for (descr, (address, len)) in made.iter_mut().zip([(x.cast_mut(), cols), (y, rows), (z, rows)]) {
            // SAFETY: the answer is valid for a write; the arrays have that many elements where they are
            // read.
            check(unsafe {
                dnvec::tarsiaCreateDnVec(descr, len as i64, address.cast(), arg(DataType::R64F))
            })?;
        }
        let [x, y, z] = made;
        let (alpha, beta) = (alpha.cast(), beta.cast());
        // SAFETY: as above.
        let result = check(unsafe { spmv::tarsiaSpMV_into(session.raw(), plan.raw(), alpha, x, beta, y, z) });
        for descr in made {
            dnvec::tarsiaDestroyDnVec(descr);
        }
        result
    }

    /// Calls SpMM with a separate result. B, C and D are column-major: address, rows, columns, ld.
    pub fn spmm_into(
        session: &Session,
        plan: &Plan<'_>,
        (alpha, beta): (f64, f64),
        operands: [(*mut f64, usize, usize, usize); 3],
    ) -> Result<()> {
        let mut made = [std::ptr::null_mut(); 3];
        for (descr, (address, rows, cols, ld)) in made.iter_mut().zip(operands) {
            let [rows, cols, ld] = [rows, cols, ld].map(|size| size as i64);
            let (value, order) = (arg(DataType::R64F), arg(Order::Col));
            // SAFETY: as above.
            check(unsafe { dnmat::tarsiaCreateDnMat(descr, rows, cols, ld, address.cast(), value, order) })?;
        }
        let [b, c, d] = made;
        let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
        // SAFETY: as above.
        let result = check(unsafe { spmm::tarsiaSpMM_into(session.raw(), plan.raw(), alpha, b, beta, c, d) });
        for descr in made {
            dnmat::tarsiaDestroyDnMat(descr);
        }
        result
    }
}
