//! Products with a result of their own: z = alpha · op(A) · x + beta · y has the bits of the product in place on
//! a copy of y, and leaves y alone.

use crate::common::number::{C64, F16F32, F32, F64};
use client::{Plan, Session};
use matrices::SplitMix64;
use tarsia::facade::{BackendKind, Effort, Operation, Order, PointerMode, SpmmAlg, SpmvAlg, Status};
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

fn pattern() -> Pattern {
    let mut rng = SplitMix64::new(8);
    let mut below = |n: usize| rng.below(n as u64) as usize;
    let mut places: Vec<_> = (0..6000).map(|_| (below(ROWS), below(COLS))).collect();
    places.extend((0..COLS).map(|col| (ROWS / 3, col)));
    places.sort_unstable();
    places.dedup();
    Pattern::new(Style::PLAIN, (ROWS, COLS), &places)
}

/// Pairs of alpha and beta; of beta 0 the old values are NaN.
fn scalars<C: Numbers>() -> [(C::S, C::S); 4] {
    let number = |x: f64| C::S::narrow(C::Wide::new(x, 0.0));
    let (zero, one) = (number(0.0), number(1.0));
    [(number(-1.0), one), (number(0.7), number(-0.3)), (one, zero), (zero, number(0.9))]
}

fn vectors<C: Numbers>(kind: BackendKind, mode: PointerMode) {
    let session = Session::new(kind).unwrap();
    session.set_pointer_mode(mode).unwrap();
    let (pattern, types) = (pattern(), C::TYPES);
    let values: Vec<C::A> = random(pattern.entries().len(), 1);
    let stored = pattern.store(kind, &values);
    let a = stored.open().unwrap();
    let x = Staged::new(kind, &random::<C::X>(COLS, 2));
    let mut tested = 0;
    for &alg in SpmvAlg::ALL {
        let made = Plan::spmv(&session, N, &a, (types.x, types.y), types.compute, alg);
        let Ok(plan) = made else { continue };
        plan.set_effort(Effort::Default).unwrap();
        plan.analyze(&session).unwrap();
        for (at, (alpha, beta)) in scalars::<C>().into_iter().enumerate() {
            let old = if at == 2 { vec![C::Y::nan(); ROWS] } else { random::<C::Y>(ROWS, 3) };
            let what = format!("{kind:?} {alg:?} {} {mode:?} case {at}", types.describe());
            let on_device = Staged::new(kind, &[alpha, beta]);
            let (mut in_place, y) = (Staged::new(kind, &old), Staged::new(kind, &old));
            let mut z = Staged::new(kind, &[C::Y::nan(); ROWS]);
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
            assert!(bits(&found) == bits(&expected), "{what}: {found:?} {expected:?}");
            assert!(bits(&y.download().unwrap()) == bits(&old), "{what}: y was written");
        }
        tested += 1;
    }
    assert!(tested >= 2);
}

fn matrices<C: Numbers>(kind: BackendKind, order: Order) {
    let (session, n) = (Session::new(kind).unwrap(), 37);
    // SWIFT's bits differ from run to run otherwise.
    session.set_deterministic(true).unwrap();
    let (pattern, types) = (pattern(), C::TYPES);
    let values: Vec<C::A> = random(pattern.entries().len(), 1);
    let stored = pattern.store(kind, &values);
    let a = stored.open().unwrap();
    let (mut b, mut rng) = (Dense::<C::X>::new((COLS, n), order, 3), SplitMix64::new(4));
    b.fill(|_, _| C::X::random(&mut rng));
    let b_there = Staged::new(kind, &b.values[..]);
    let mut tested = 0;
    for &alg in SpmmAlg::ALL {
        let (ops, of, orders) = ((N, N), (types.x, types.y), (order, order));
        let made = Plan::spmm(&session, ops, &a, orders, n as i64, of, types.compute, alg);
        let Ok(plan) = made else { continue };
        plan.analyze(&session).unwrap();
        for (at, (alpha, beta)) in scalars::<C>().into_iter().enumerate() {
            // Lines of C and D at other distances, and NaN between them.
            let (mut c, mut d) =
                (Dense::<C::Y>::new((ROWS, n), order, 5), Dense::<C::Y>::new((ROWS, n), order, 2));
            let mut rng = SplitMix64::new(6);
            if at != 2 {
                c.fill(|_, _| C::Y::random(&mut rng));
            }
            let expected = {
                let mut there = Staged::new(kind, &c.values[..]);
                plan.run_spmm(&session, alpha, (b_there.view(), b.shape), beta, (there.view_mut(), c.shape))
                    .unwrap();
                session.synchronize().unwrap();
                let mut expected = c.clone();
                expected.values.copy_from_slice(&there.download().unwrap());
                expected
            };
            let (c_there, mut d_there) = (Staged::new(kind, &c.values[..]), Staged::new(kind, &d.values[..]));
            let before = d.clone();
            let (from, to) = ((c_there.view(), c.shape), (d_there.view_mut(), d.shape));
            plan.run_spmm_into(&session, (alpha, beta), (b_there.view(), b.shape), from, to).unwrap();
            session.synchronize().unwrap();
            d.values.copy_from_slice(&d_there.download().unwrap());
            let what = format!("{kind:?} {alg:?} {} {order:?} case {at}", types.describe());
            for (i, j) in (0..ROWS).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert!(bits(&[d.get(i, j)]) == bits(&[expected.get(i, j)]), "{what}: element ({i}, {j})");
                // What is left are the lines' distances.
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
            vectors::<F64>(kind, mode);
            vectors::<F32>(kind, mode);
            vectors::<F16F32>(kind, mode);
            vectors::<C64>(kind, mode);
        }
    }
}

#[test]
fn matrices_have_the_bits_of_a_product_in_place() {
    for kind in [BackendKind::Reference, backend()] {
        for order in [Order::Row, Order::Col] {
            matrices::<F64>(kind, order);
            matrices::<F32>(kind, order);
            matrices::<F16F32>(kind, order);
        }
    }
}

/// z may be y, and shares nothing with it otherwise; errors name the argument.
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
    // Not written before all is known to be right.
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

mod raw {
    //! Calls with addresses, which may share what the client's arrays cannot.
    use client::{arg, check, Plan, Session};
    use tarsia::capi::{dnvec, spmv};
    use tarsia::facade::DataType;
    use tarsia::facade::Result;

    pub fn spmv_into(
        session: &Session,
        plan: &Plan<'_>,
        (alpha, beta): (f64, f64),
        (x, cols): (*const f64, usize),
        (y, z, rows): (*mut f64, *mut f64, usize),
    ) -> Result<()> {
        let mut made = [std::ptr::null_mut(); 3];
        for (descr, (address, len)) in made.iter_mut().zip([(x.cast_mut(), cols), (y, rows), (z, rows)]) {
            // SAFETY: the answer is valid for a write; the arrays have that many elements where they are read.
            check(unsafe {
                dnvec::tarsiaCreateDnVec(descr, len as i64, address.cast(), arg(DataType::R64F))
            })?;
        }
        let [x, y, z] = made;
        let (alpha, beta) = ((&raw const alpha).cast(), (&raw const beta).cast());
        // SAFETY: as above.
        let result = check(unsafe { spmv::tarsiaSpMV_into(session.raw(), plan.raw(), alpha, x, beta, y, z) });
        for descr in made {
            dnvec::tarsiaDestroyDnVec(descr);
        }
        result
    }
}
