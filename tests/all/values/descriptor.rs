//! Programs as they are written for cuSPARSE, where the descriptor that a product gets says where the values
//! are: here a plan copies the descriptor's fields, and new pointers reach no plan.

use std::ptr::null_mut;

use super::*;
use client::{arg, Array};
use libc::c_void;
use tarsia::capi::objects::{tarsiaPlan_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, plan, spgemm, spmat, spmat_access, spmm, spmv};

/// A matrix whose descriptor can be changed, and a plan that was made with it.
struct Program<'a> {
    session: &'a Session,
    product: Product,
    a: tarsiaSpMatDescr_t,
    plan: tarsiaPlan_t,
    /// What the descriptor and the plan borrow.
    _arrays: [Array<'static, i32>; 2],
    _factor: Stored<f64>,
}

/// The address of an array.
fn address<T: bytemuck::Pod>(array: &Array<'_, T>) -> *mut c_void {
    array.part(0..array.len()).as_ptr().cast_mut().cast()
}

fn matrix(offsets: *mut c_void, indices: *mut c_void, values: *mut c_void, nnz: usize) -> tarsiaSpMatDescr_t {
    let (mut a, n) = (null_mut(), SIZE as i64);
    let index = arg(tarsia::facade::IndexType::I32);
    // SAFETY: the answer is valid for a write; nothing is read here.
    check(unsafe {
        let (base, value_type) = (arg(IndexBase::Zero), arg(F64));
        spmat::tarsiaCreateCsr(
            &mut a, n, n, nnz as i64, offsets, indices, values, index, index, base, value_type,
        )
    })
    .unwrap();
    a
}

impl<'a> Program<'a> {
    fn new(session: &'a Session, product: Product, values: *mut c_void, set: impl Fn(tarsiaPlan_t)) -> Self {
        let (kind, pattern) = (session.kind(), pattern(Format::Csr));
        let narrow = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as i32).collect::<Vec<_>>();
        let (offsets, indices) =
            (upload(kind, &narrow(pattern.outer.to_vec())), upload(kind, &narrow(pattern.inner.to_vec())));
        let a = matrix(address(&offsets), address(&indices), values, ENTRIES);
        let stored = other_factor(kind, Format::Csr);
        let factor = stored.open().unwrap();
        let mut out: tarsiaPlan_t = null_mut();
        // SAFETY: live objects; the answer is valid for a write.
        check(unsafe {
            let (h, n, f64s) = (session.raw(), arg(N), arg(F64));
            match product {
                Product::Spmv(alg) => {
                    spmv::tarsiaSpMV_createPlan(h, &mut out, n, a, f64s, f64s, arg(R64), arg(alg))
                }
                Product::Spmm(alg) => spmm::tarsiaSpMM_createPlan(
                    h,
                    &mut out,
                    n,
                    n,
                    a,
                    arg(Order::Row),
                    arg(Order::Row),
                    COLUMNS as i64,
                    f64s,
                    f64s,
                    arg(R64),
                    arg(alg),
                ),
                Product::Spgemm(alg) => {
                    spgemm::tarsiaSpGEMM_createPlan(h, &mut out, n, n, a, factor.raw(), arg(R64), arg(alg))
                }
            }
        })
        .unwrap();
        drop(factor);
        set(out);
        check(plan::tarsiaPlan_analyze(session.raw(), out)).unwrap();
        Program { session, product, a, plan: out, _arrays: [offsets, indices], _factor: stored }
    }

    /// As cusparseSpMatSetValues.
    fn set_values(&self, values: &Array<'_, f64>) {
        // SAFETY: the array has A's length and outlives the program.
        check(unsafe { spmat_access::tarsiaSpMatSetValues(self.a, address(values)) }).unwrap();
    }

    fn update_values(&self, values: &Array<'_, f64>) {
        // SAFETY: as above.
        check(unsafe {
            plan::tarsiaPlan_updateValues(self.session.raw(), self.plan, address(values).cast_const())
        })
        .unwrap();
    }

    /// The product, zeros and all.
    fn run(&self) -> Result<Vec<f64>> {
        let (kind, h) = (self.session.kind(), self.session.raw());
        let (one, zero) = (1.0_f64, 0.0_f64);
        let (one, zero): (*const c_void, *const c_void) = ((&raw const one).cast(), (&raw const zero).cast());
        let columns = if let Product::Spmv(_) = self.product { 1 } else { COLUMNS };
        let x = upload(kind, &operand(columns));
        let y = upload(kind, &vec![f64::NAN; SIZE * columns]);
        match self.product {
            Product::Spmv(_) => {
                let (mut x_descr, mut y_descr, n) = (null_mut(), null_mut(), SIZE as i64);
                // SAFETY: vectors of these lengths; the answers are valid for writes.
                let done = unsafe {
                    check(dnvec::tarsiaCreateDnVec(&mut x_descr, n, address(&x), arg(F64)))?;
                    check(dnvec::tarsiaCreateDnVec(&mut y_descr, n, address(&y), arg(F64)))?;
                    check(spmv::tarsiaSpMV(h, self.plan, one, x_descr, zero, y_descr))
                };
                dnvec::tarsiaDestroyDnVec(x_descr);
                dnvec::tarsiaDestroyDnVec(y_descr);
                done?;
            }
            Product::Spmm(_) => {
                let (mut b, mut c, n, k) = (null_mut(), null_mut(), SIZE as i64, COLUMNS as i64);
                let order = || arg(Order::Row);
                // SAFETY: matrices of this shape; the answers are valid for writes.
                let done = unsafe {
                    check(dnmat::tarsiaCreateDnMat(&mut b, n, k, k, address(&x), arg(F64), order()))?;
                    check(dnmat::tarsiaCreateDnMat(&mut c, n, k, k, address(&y), arg(F64), order()))?;
                    check(spmm::tarsiaSpMM(h, self.plan, one, b, zero, c))
                };
                dnmat::tarsiaDestroyDnMat(b);
                dnmat::tarsiaDestroyDnMat(c);
                done?;
            }
            Product::Spgemm(_) => {
                let mut nnz = 0;
                // SAFETY: the answer is valid for a write.
                check(unsafe { spgemm::tarsiaSpGEMM_symbolic(h, self.plan, &mut nnz) })?;
                let (offsets, indices) =
                    (upload(kind, &vec![0_i32; SIZE + 1]), upload(kind, &vec![0_i32; nnz as usize]));
                let values = upload(kind, &vec![f64::NAN; nnz as usize]);
                let c = matrix(address(&offsets), address(&indices), address(&values), nnz as usize);
                // SAFETY: C has room for its entries.
                let done = check(unsafe { spgemm::tarsiaSpGEMM_numeric(h, self.plan, one, c) });
                spmat::tarsiaDestroySpMat(c);
                done?;
                self.session.synchronize()?;
                let (offsets, indices, values) =
                    (offsets.download()?, indices.download()?, values.download()?);
                let mut out = vec![0.0; SIZE * SIZE];
                for row in 0..SIZE {
                    for at in offsets[row] as usize..offsets[row + 1] as usize {
                        out[row * SIZE + indices[at] as usize] += values[at];
                    }
                }
                return Ok(out);
            }
        }
        self.session.synchronize()?;
        y.download()
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        plan::tarsiaPlan_destroy(self.plan);
        spmat::tarsiaDestroySpMat(self.a);
    }
}

/// Another array of the descriptor reaches no plan, in place or not, and checks say so; the call does it.
#[test]
fn new_pointers_of_a_descriptor_reach_no_plan() {
    for kind in backends() {
        for product in Product::all(kind) {
            for in_place in [false, true] {
                let case = Case {
                    kind,
                    product,
                    format: Format::Csr,
                    op: N,
                    effort: Effort::Default,
                    updates: false,
                };
                if in_place && !case.is_in_place() {
                    continue;
                }
                let session = Session::new(kind).unwrap();
                let arrays = [0, 1].map(|generation| upload(kind, &numbers(ENTRIES, generation)));
                let set = |raw| {
                    check(plan::tarsiaPlan_setValuesInPlace(raw, i32::from(in_place))).unwrap();
                };
                session.set_checks(true).unwrap();
                let program = Program::new(&session, product, address(&arrays[0]), set);
                let entries = pattern(Format::Csr).entries();
                let expected = |at| product.expected(N, &entries, &numbers(ENTRIES, at));
                let what = format!("{kind:?} {product:?} in place {in_place}");
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
        }
    }
}

/// Newton's method as it is written for cuSPARSE: the Jacobian's values are renewed in every step, by turns in
/// two arrays, and the descriptor gets the new one. With the one call more every step multiplies by the
/// present Jacobian.
#[test]
fn a_newton_loop() {
    for kind in backends() {
        for product in Product::all(kind) {
            for updates in [false, true] {
                let session = Session::new(kind).unwrap();
                session.set_checks(updates).unwrap();
                let mut arrays = [0, 0].map(|generation| upload(kind, &numbers(ENTRIES, generation)));
                let set = |raw| check(plan::tarsiaPlan_setValueUpdates(raw, i32::from(updates))).unwrap();
                let program = Program::new(&session, product, address(&arrays[0]), set);
                let entries = pattern(Format::Csr).entries();
                let mut jacobian = numbers(ENTRIES, 0);
                for step in 0..4 {
                    let y = program.run().unwrap();
                    let what = format!("{kind:?} {product:?} updates {updates} step {step}");
                    assert!(
                        y == product.expected(N, &entries, &jacobian),
                        "{what}: not the present Jacobian"
                    );
                    // Whatever the residual says: whole numbers, so that products are exact.
                    for (at, value) in jacobian.iter_mut().enumerate() {
                        *value = ((at as f64 * 3.0 + y[at % SIZE] + step as f64) % 17.0) + 1.0;
                    }
                    let next = (step + 1) % 2;
                    arrays[next].write(0, &jacobian).unwrap();
                    program.set_values(&arrays[next]);
                    program.update_values(&arrays[next]);
                }
            }
        }
    }
}
