//! Tests of programs as written for cuSPARSE, where the descriptor that is passed to a product has the
//! address of the values. Here a plan copies the descriptor's fields, and new pointers in it do not reach the
//! plan. They run with every algorithm by name and every effort, in fp64 and fp32.

use std::ptr::null_mut;

use super::*;
use crate::common::number::Value;
use client::{arg, Array};
use libc::c_void;
use tarsia::capi::objects::{tarsiaPlan_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, plan, spgemm, spmat, spmat_access, spmm, spmv};
use tarsia::facade::{Reorder, Types};

/// Real type of values and sums.
trait Real: Value {
    const COMPUTE: ComputeType;
    fn of(number: f64) -> Self;
    fn wide(self) -> f64;
}

impl Real for f64 {
    const COMPUTE: ComputeType = R64;
    fn of(number: f64) -> Self {
        number
    }
    fn wide(self) -> f64 {
        self
    }
}

impl Real for f32 {
    const COMPUTE: ComputeType = ComputeType::R32F;
    fn of(number: f64) -> Self {
        number as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}

/// Converts integers, which are exact in every type.
fn typed<V: Real>(numbers: &[f64]) -> Vec<V> {
    numbers.iter().map(|&number| V::of(number)).collect()
}

/// Returns an array with a generation of values.
fn array<V: Real>(kind: BackendKind, generation: usize) -> Array<'static, V> {
    upload(kind, &typed(&numbers(ENTRIES, generation)))
}

/// Calls `run` with every algorithm of a backend that supports these types, and the library's choices, with
/// every effort.
fn each<V: Real>(mut run: impl FnMut(&Session, Case)) {
    for kind in backends() {
        for product in ProductKind::all(kind) {
            let is_ours = |t: &Types| [t.a, t.x, t.y] == [V::TYPE; 3] && t.compute == V::COMPUTE;
            let types = |row: &Row| row.types.iter().any(is_ours);
            let named = |row: &Row| product.named().is_none_or(|named| named == row.algorithm);
            let of_kind = |row: &Row| {
                row.op == product.op() && row.backends.contains(&kind) && row.formats.contains(&Format::Csr)
            };
            if !TABLE.iter().any(|row| of_kind(row) && named(row) && types(row)) {
                continue;
            }
            for (effort, updates) in Effort::ALL.iter().flat_map(|effort| [(effort, false), (effort, true)]) {
                let case = Case { kind, product, format: Format::Csr, op: N, effort: *effort, updates };
                run(&Session::new(kind).unwrap(), case);
            }
        }
    }
}

/// Matrix with a writable descriptor, and a plan that was made with it.
struct Program<'a, V: Real> {
    session: &'a Session,
    product: ProductKind,
    a: tarsiaSpMatDescr_t,
    plan: tarsiaPlan_t,
    /// Offsets and indices that the descriptor and the plan borrow.
    _arrays: [Array<'static, i32>; 2],
    _factor: Stored<V>,
}

/// Returns the address of an array.
fn address<T: bytemuck::Pod>(array: &Array<'_, T>) -> *mut c_void {
    array.part(0..array.len()).as_ptr().cast_mut().cast()
}

fn matrix<V: Real>(
    offsets: *mut c_void,
    indices: *mut c_void,
    values: *mut c_void,
    nnz: usize,
) -> tarsiaSpMatDescr_t {
    let (mut a, n) = (null_mut(), SIZE as i64);
    let index = arg(tarsia::facade::IndexType::I32);
    // SAFETY: the answer is valid for a write; nothing is read here.
    check(unsafe {
        let (base, value_type) = (arg(IndexBase::Zero), arg(V::TYPE));
        spmat::tarsiaCreateCsr(
            &mut a, n, n, nnz as i64, offsets, indices, values, index, index, base, value_type,
        )
    })
    .unwrap();
    a
}

impl<'a, V: Real> Program<'a, V> {
    /// Creates a program with the case's settings.
    fn new(session: &'a Session, case: Case, values: &Array<'_, V>, in_place: bool) -> Self {
        Self::in_order(session, case, values, in_place, Reorder::Auto)
    }

    /// Creates a program with the case's settings whose plan reorders rows.
    fn in_order(
        session: &'a Session,
        case: Case,
        values: &Array<'_, V>,
        in_place: bool,
        reorder: Reorder,
    ) -> Self {
        let (product, values) = (case.product, address(values));
        let (kind, pattern) = (session.kind(), pattern(Format::Csr));
        let narrow = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as i32).collect::<Vec<_>>();
        let (offsets, indices) =
            (upload(kind, &narrow(pattern.outer.to_vec())), upload(kind, &narrow(pattern.inner.to_vec())));
        let a = matrix::<V>(address(&offsets), address(&indices), values, ENTRIES);
        let stored = other_factor_of(kind, Format::Csr, V::of);
        let factor = stored.open().unwrap();
        let mut out: tarsiaPlan_t = null_mut();
        // SAFETY: live objects; the answer is valid for a write.
        check(unsafe {
            let (h, n, values) = (session.raw(), arg(N), arg(V::TYPE));
            match product {
                ProductKind::Spmv(alg) => {
                    spmv::tarsiaSpMV_createPlan(h, &mut out, n, a, values, values, arg(V::COMPUTE), arg(alg))
                }
                ProductKind::Spmm(alg) => spmm::tarsiaSpMM_createPlan(
                    h,
                    &mut out,
                    n,
                    n,
                    a,
                    arg(Order::Row),
                    arg(Order::Row),
                    COLUMNS as i64,
                    values,
                    values,
                    arg(V::COMPUTE),
                    arg(alg),
                ),
                ProductKind::Spgemm(alg) => spgemm::tarsiaSpGEMM_createPlan(
                    h,
                    &mut out,
                    n,
                    n,
                    a,
                    factor.raw(),
                    arg(V::COMPUTE),
                    arg(alg),
                ),
            }
        })
        .unwrap();
        drop(factor);
        check(plan::tarsiaPlan_setEffort(out, arg(case.effort))).unwrap();
        check(plan::tarsiaPlan_setReorder(out, arg(reorder))).unwrap();
        check(plan::tarsiaPlan_setValueUpdates(out, i32::from(case.updates))).unwrap();
        check(plan::tarsiaPlan_setValuesInPlace(out, i32::from(in_place))).unwrap();
        check(plan::tarsiaPlan_analyze(session.raw(), out))
            .unwrap_or_else(|error| panic!("{case:?}: {error}"));
        Program { session, product, a, plan: out, _arrays: [offsets, indices], _factor: stored }
    }

    /// Returns the algorithm and the reason of the choice.
    fn choice(&self) -> String {
        let mut info = std::mem::MaybeUninit::<plan::tarsiaPlanInfo_t>::zeroed();
        // SAFETY: the first field is structSize; the call fills the rest, and zeros suit every field until
        // then.
        let info = unsafe {
            info.as_mut_ptr().cast::<usize>().write(size_of::<plan::tarsiaPlanInfo_t>());
            check(plan::tarsiaPlan_getInfo(self.plan, info.as_mut_ptr())).unwrap();
            info.assume_init()
        };
        let reason: String = info.reason.iter().map(|&letter| letter as u8 as char).collect();
        format!("algorithm {} because {reason}", info.algorithm)
    }

    /// Sets the values of the descriptor, as cusparseSpMatSetValues does.
    fn set_values(&self, values: &Array<'_, V>) {
        // SAFETY: the array has A's length and outlives the program.
        check(unsafe { spmat_access::tarsiaSpMatSetValues(self.a, address(values)) }).unwrap();
    }

    fn update_values(&self, values: &Array<'_, V>) {
        // SAFETY: as above.
        check(unsafe {
            plan::tarsiaPlan_updateValues(self.session.raw(), self.plan, address(values).cast_const())
        })
        .unwrap();
    }

    /// Computes the product, as a dense array.
    fn run(&self) -> Result<Vec<f64>> {
        self.multiply().map(|found| found.into_iter().map(V::wide).collect())
    }

    fn multiply(&self) -> Result<Vec<V>> {
        let (kind, h) = (self.session.kind(), self.session.raw());
        let (one, zero) = (V::of(1.0), V::of(0.0));
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        let columns = if let ProductKind::Spmv(_) = self.product { 1 } else { COLUMNS };
        let x = upload(kind, &typed::<V>(&operand(columns)));
        let y = upload(kind, &vec![V::of(f64::NAN); SIZE * columns]);
        match self.product {
            ProductKind::Spmv(_) => {
                let (mut x_descr, mut y_descr, n) = (null_mut(), null_mut(), SIZE as i64);
                // SAFETY: vectors of these lengths; the answers are valid for writes.
                let done = unsafe {
                    check(dnvec::tarsiaCreateDnVec(&mut x_descr, n, address(&x), arg(V::TYPE)))?;
                    check(dnvec::tarsiaCreateDnVec(&mut y_descr, n, address(&y), arg(V::TYPE)))?;
                    check(spmv::tarsiaSpMV(h, self.plan, one, x_descr, zero, y_descr))
                };
                dnvec::tarsiaDestroyDnVec(x_descr);
                dnvec::tarsiaDestroyDnVec(y_descr);
                done?;
            }
            ProductKind::Spmm(_) => {
                let (mut b, mut c, n, k) = (null_mut(), null_mut(), SIZE as i64, COLUMNS as i64);
                let order = || arg(Order::Row);
                // SAFETY: matrices of this shape; the answers are valid for writes.
                let done = unsafe {
                    check(dnmat::tarsiaCreateDnMat(&mut b, n, k, k, address(&x), arg(V::TYPE), order()))?;
                    check(dnmat::tarsiaCreateDnMat(&mut c, n, k, k, address(&y), arg(V::TYPE), order()))?;
                    check(spmm::tarsiaSpMM(h, self.plan, one, b, zero, c))
                };
                dnmat::tarsiaDestroyDnMat(b);
                dnmat::tarsiaDestroyDnMat(c);
                done?;
            }
            ProductKind::Spgemm(_) => {
                let mut nnz = 0;
                // SAFETY: the answer is valid for a write.
                check(unsafe { spgemm::tarsiaSpGEMM_symbolic(h, self.plan, &mut nnz) })?;
                let (offsets, indices) =
                    (upload(kind, &vec![0_i32; SIZE + 1]), upload(kind, &vec![0_i32; nnz as usize]));
                let values = upload(kind, &vec![V::of(f64::NAN); nnz as usize]);
                let c = matrix::<V>(address(&offsets), address(&indices), address(&values), nnz as usize);
                // SAFETY: C has room for its entries.
                let done = check(unsafe { spgemm::tarsiaSpGEMM_numeric(h, self.plan, one, c) });
                spmat::tarsiaDestroySpMat(c);
                done?;
                self.session.synchronize()?;
                let (offsets, indices, values) =
                    (offsets.download()?, indices.download()?, values.download()?);
                let mut out = vec![V::of(0.0); SIZE * SIZE];
                for row in 0..SIZE {
                    for at in offsets[row] as usize..offsets[row + 1] as usize {
                        // Each place has one entry.
                        out[row * SIZE + indices[at] as usize] = values[at];
                    }
                }
                return Ok(out);
            }
        }
        self.session.synchronize()?;
        y.download()
    }
}

impl<V: Real> Drop for Program<'_, V> {
    fn drop(&mut self) {
        plan::tarsiaPlan_destroy(self.plan);
        spmat::tarsiaDestroySpMat(self.a);
    }
}

/// Tests that another array in the descriptor does not reach a plan, in place or not, which checks report,
/// and that tarsiaPlan_updateValues does.
fn new_pointers<V: Real>() {
    let entries = pattern(Format::Csr).entries();
    each::<V>(|session, case| {
        for in_place in [false, true] {
            if in_place && !case.is_in_place() {
                continue;
            }
            let arrays = [0, 1].map(|generation| array::<V>(case.kind, generation));
            session.set_checks(true).unwrap();
            let program = Program::new(session, case, &arrays[0], in_place);
            let expected = |at| case.product.expected(N, &entries, &numbers(ENTRIES, at));
            let what = format!("{case:?} in place {in_place}");
            assert!(program.run().unwrap() == expected(0), "{what}");
            program.set_values(&arrays[1]);
            let texts = ["the descriptor of A has got another value array", "tarsiaPlan_updateValues"];
            refused(program.run(), Status::InvalidState, &texts);
            session.set_checks(false).unwrap();
            assert!(program.run().unwrap() == expected(0), "{what}: the descriptor reached the plan");
            session.set_checks(true).unwrap();
            program.update_values(&arrays[1]);
            assert!(program.run().unwrap() == expected(1), "{what}: the call did not");
        }
    });
}

#[test]
fn new_pointers_of_a_descriptor_reach_no_plan() {
    new_pointers::<f64>();
}

#[test]
fn new_pointers_of_a_descriptor_reach_no_plan_in_fp32() {
    new_pointers::<f32>();
}

/// New values reach plans that reorder rows, whose values have other positions than in A's array, whether
/// value updates were announced or not.
#[test]
fn new_values_reach_rows_in_every_order() {
    let entries = pattern(Format::Csr).entries();
    let mut taken = 0;
    each::<f64>(|session, case| {
        let takes_orders = matches!(
            case.product,
            ProductKind::Spmv(SpmvAlg::Csr)
                | ProductKind::Spmm(SpmmAlg::Row)
                | ProductKind::Spmm(SpmmAlg::Csr)
        );
        if !takes_orders || case.effort != Effort::Default {
            return;
        }
        let named = Reorder::ALL.iter().filter(|reorder| reorder.is_named() && **reorder != Reorder::Learned);
        for &reorder in named {
            let arrays = [0, 1].map(|generation| array::<f64>(case.kind, generation));
            let program = Program::in_order(session, case, &arrays[0], false, reorder);
            for generation in [0, 1, 0] {
                program.update_values(&arrays[generation]);
                let expected = case.product.expected(N, &entries, &numbers(ENTRIES, generation));
                assert!(program.run().unwrap() == expected, "{case:?} {reorder:?} values {generation}");
            }
            taken += 1;
        }
    });
    assert!(taken >= 3 * 2 * 8, "{taken} cases");
}

/// Way in which a Newton loop passes its new values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Renewal {
    /// In two arrays by turns; the descriptor gets the new one, and the plan gets it by the call.
    Turns,
    /// In one array, with the call.
    Overwritten,
    /// In one array, with a plan that reads values in place, without a call.
    InPlace,
}

/// Newton's method as written for cuSPARSE, with new values of the Jacobian in every step. Until the call, a
/// product has either all old values or all new ones. After it, and always with a plan that reads values in
/// place, every step multiplies by the present Jacobian.
fn newton<V: Real>(renewal: Renewal) {
    let entries = pattern(Format::Csr).entries();
    let (mut taken, in_place) = (0, renewal == Renewal::InPlace);
    each::<V>(|session, case| {
        if in_place && !case.is_in_place() {
            return;
        }
        // With checks, a missing call would be an error, which other tests test.
        let checked = renewal == Renewal::Turns && case.updates;
        session.set_checks(checked).unwrap();
        let mut arrays = [0, 0].map(|generation| array::<V>(case.kind, generation));
        let program = Program::new(session, case, &arrays[0], in_place);
        let mut jacobian = numbers(ENTRIES, 0);
        let expected = |jacobian: &[f64]| case.product.expected(N, &entries, jacobian);
        for step in 0..4 {
            let what = format!("{case:?} {renewal:?} step {step}");
            let y = program.run().unwrap_or_else(|error| panic!("{what}: {error}"));
            let old = expected(&jacobian);
            let wrong = (0..y.len()).filter(|&at| y[at] != old[at]).map(|at| (at, y[at], old[at]));
            let wrong: Vec<_> = wrong.take(5).collect();
            assert!(wrong.is_empty(), "{what}: not the present Jacobian: {wrong:?}, {}", program.choice());
            // Arbitrary integers instead of a real Jacobian, so that products are exact.
            for (at, value) in jacobian.iter_mut().enumerate() {
                *value = ((at as f64 * 3.0 + y[at % SIZE] + step as f64) % 17.0) + 1.0;
            }
            let at = if renewal == Renewal::Turns { (step + 1) % 2 } else { 0 };
            arrays[at].write(0, &typed(&jacobian)).unwrap();
            session.synchronize().unwrap();
            if renewal == Renewal::Turns {
                program.set_values(&arrays[at]);
            }
            if !checked {
                let between = program.run().unwrap();
                let new = expected(&jacobian);
                assert!(between == new || (between == old && !in_place), "{what}: neither old nor new");
            }
            if !in_place {
                program.update_values(&arrays[at]);
            }
        }
        taken += 1;
    });
    assert!(taken >= if in_place { 2 * 3 * 2 * 2 } else { 100 }, "{taken} cases");
}

#[test]
fn a_newton_loop() {
    newton::<f64>(Renewal::Turns);
}

#[test]
fn a_newton_loop_in_one_array() {
    newton::<f64>(Renewal::Overwritten);
}

#[test]
fn a_newton_loop_in_place() {
    newton::<f64>(Renewal::InPlace);
}

#[test]
fn newton_loops_in_fp32() {
    for renewal in [Renewal::Turns, Renewal::Overwritten, Renewal::InPlace] {
        newton::<f32>(renewal);
    }
}
