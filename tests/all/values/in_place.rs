//! Tests of tarsiaPlan_setValuesInPlace, with which products always have the present values.

use super::*;
use crate::common::alone;
use crate::common::skip;
use tarsia::facade::Reorder;

/// Returns values for analysis, which must not use them.
fn nonsense(count: usize) -> Vec<f64> {
    vec![f64::NAN; count]
}

/// Changing values needs no call, with checks on or off; analysis does not read them.
#[test]
fn every_execute_has_the_values_that_are_there() {
    let (mut taken, mut refusals) = (0, 0);
    Case::each(|case| {
        let session = Session::new(case.kind).unwrap();
        session.set_checks(case.updates).unwrap();
        let pattern = pattern(case.format);
        let entries = pattern.entries();
        let generation = |at| numbers(entries.len(), at);
        let a = pattern.store(case.kind, &nonsense(entries.len()));
        let b = other_factor(case.kind, case.other_format());
        let (sparse, factor) = (a.open().unwrap(), b.open().unwrap());
        let plan = case.plan(&session, &sparse, &factor);
        plan.set_values_in_place(true).unwrap();
        let analyzed = plan.analyze(&session);
        if !case.is_in_place() {
            refused(analyzed, Status::NotSupported, &["valuesInPlace: "]);
            refusals += 1;
            // Without the setting, values are copied again.
            plan.set_values_in_place(false).unwrap();
            overwrite(&session, a.values(), &generation(0));
            plan.analyze(&session).unwrap();
            return;
        }
        analyzed.unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let info = plan.info().unwrap();
        let in_place = i32::from(case.kind != BackendKind::Reference);
        assert_eq!((info.valuesInPlace, info.inPlace, info.checked), (1, in_place, i32::from(case.updates)));
        let expected = |at| case.product.expected(case.op, &entries, &generation(at));
        let run = || case.product.run(&session, &plan).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        for now in 0..3 {
            overwrite(&session, a.values(), &generation(now));
            assert!(run() == expected(now), "{case:?}: not the values that are there");
        }
        // The call moves the plan to another array, whose present values it uses from then on.
        let other = Staged::new(case.kind, &nonsense(entries.len()));
        moved(&session, &plan, other.view());
        for now in 3..5 {
            overwrite(&session, other.view(), &generation(now));
            overwrite(&session, a.values(), &generation(now + 1));
            assert!(run() == expected(now), "{case:?}: not the values of the other array");
        }
        drop(plan);
        taken += 1;
    });
    assert!(taken > 40 && refusals > taken, "{taken} taken, {refusals} refused");
}

/// Values of both factors of SpGEMM are read in place, also if they are one array.
#[test]
fn both_factors_of_a_sparse_product() {
    for kind in backends() {
        for updates in [false, true] {
            let session = Session::new(kind).unwrap();
            let pattern = pattern(Format::Csr);
            let entries = pattern.entries();
            let a = pattern.store(kind, &nonsense(entries.len()));
            let sparse = a.open().unwrap();
            let plan = Plan::spgemm(&session, (N, N), &sparse, &sparse, R64, SpgemmAlg::Default).unwrap();
            plan.set_value_updates(updates).unwrap();
            plan.set_values_in_place(true).unwrap();
            plan.analyze(&session).unwrap();
            for now in 0..3 {
                let values = numbers(entries.len(), now);
                overwrite(&session, a.values(), &values);
                let mut dense = vec![0.0; SIZE * SIZE];
                entries.iter().zip(&values).for_each(|(&(i, j), value)| dense[i * SIZE + j] = *value);
                let mut expected = vec![0.0; SIZE * SIZE];
                for (&(i, k), value) in entries.iter().zip(&values) {
                    for j in 0..SIZE {
                        expected[i * SIZE + j] += value * dense[k * SIZE + j];
                    }
                }
                let found = ProductKind::Spgemm(SpgemmAlg::Default).run(&session, &plan).unwrap();
                assert!(found == expected, "{kind:?} updates {updates} step {now}");
            }
        }
    }
}

/// Errors name what prevents reading in place, and what would make it possible.
#[test]
fn refusals_say_what_would_serve() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let refusal = |product: ProductKind, format, other, op, set: &dyn Fn(&Plan<'_>), texts: &[&str]| {
            let a = pattern(format).store(kind, &numbers(pattern(format).entries().len(), 0));
            let b = other_factor(kind, other);
            let (sparse, factor) = (a.open().unwrap(), b.open().unwrap());
            let plan = product.plan(&session, op, &sparse, &factor).unwrap();
            plan.set_values_in_place(true).unwrap();
            set(&plan);
            refused(plan.analyze(&session), Status::NotSupported, texts);
        };
        let (csr, csc) = (Format::Csr, Format::Csc);
        let nothing: &dyn Fn(&Plan<'_>) = &|_| {};
        let spmv = ProductKind::Spmv(SpmvAlg::Default);
        refusal(
            ProductKind::Spmv(SpmvAlg::Sell),
            csr,
            csr,
            N,
            nothing,
            &["valuesInPlace: SpMV sell", "; csr reads"],
        );
        refusal(
            ProductKind::Spmm(SpmmAlg::Csr),
            csr,
            csr,
            N,
            nothing,
            &["valuesInPlace: SpMM csr", "; row reads"],
        );
        refusal(ProductKind::Spgemm(SpgemmAlg::Tile), csr, csr, N, nothing, &["SpGEMM tile", "; hash reads"]);
        refusal(spmv, csr, csr, Operation::Transpose, nothing, &["A is CSR with op T", "CSC with op T"]);
        refusal(spmv, Format::Coo, csr, N, nothing, &["A is COO with op N", "CSR with op N"]);
        refusal(
            ProductKind::Spgemm(SpgemmAlg::Default),
            csr,
            csc,
            N,
            nothing,
            &["B is CSC with op N", "both factors"],
        );
        let ordered: &dyn Fn(&Plan<'_>) = &|plan| plan.set_reorder(Reorder::Lpt).unwrap();
        refusal(spmv, csr, csr, N, ordered, &["TARSIA_REORDER_LPT", "TARSIA_REORDER_AUTO"]);
        let learned: &dyn Fn(&Plan<'_>) = &|plan| plan.set_reorder(Reorder::Learned).unwrap();
        refusal(spmv, csr, csr, N, learned, &["TARSIA_REORDER_LEARNED", "TARSIA_REORDER_AUTO"]);
    }
}

/// Pages of host memory that cannot be read until they are opened.
struct Pages {
    at: *mut libc::c_void,
    bytes: usize,
}

impl Pages {
    fn new(values: &[f64]) -> Self {
        let bytes = size_of_val(values).next_multiple_of(4096);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, which the values are copied to.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            at.cast::<f64>().copy_from_nonoverlapping(values.as_ptr(), values.len());
            Pages { at, bytes }
        }
    }

    fn protect(&self, access: libc::c_int) {
        // SAFETY: the mapping is ours.
        assert_eq!(unsafe { libc::mprotect(self.at, self.bytes, access) }, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and what read it is gone.
        unsafe { libc::munmap(self.at, self.bytes) };
    }
}

/// If analysis read a value of an in-place plan, this process would end.
#[test]
#[ignore = "a fault ends the process: run by the test below"]
fn analysis_reads_no_value() {
    let values = numbers(ENTRIES, 0);
    for kind in [BackendKind::Reference, BackendKind::Host] {
        for product in ProductKind::all(kind) {
            for (effort, checks) in Effort::ALL.iter().flat_map(|effort| [(effort, false), (effort, true)]) {
                let case =
                    Case { kind, product, format: Format::Csr, op: N, effort: *effort, updates: false };
                if !case.is_in_place() {
                    continue;
                }
                let (session, pattern) = (Session::new(kind).unwrap(), pattern(Format::Csr));
                session.set_checks(checks).unwrap();
                let pages = Pages::new(&values);
                // SAFETY: the mapping has these values; the plan reads them only while it is open.
                let slice = unsafe { std::slice::from_raw_parts(pages.at.cast::<f64>(), values.len()) };
                let offsets: Vec<i32> = pattern.outer.to_vec().iter().map(|&n| n as i32).collect();
                let indices: Vec<i32> = pattern.inner.to_vec().iter().map(|&n| n as i32).collect();
                let shape = (SIZE as i64, SIZE as i64);
                let a = Sparse::csr(shape, &offsets[..], &indices[..], slice, IndexBase::Zero).unwrap();
                let b = other_factor(kind, Format::Csr);
                let b = b.open().unwrap();
                let plan = case.plan(&session, &a, &b);
                plan.set_values_in_place(true).unwrap();
                pages.protect(libc::PROT_NONE);
                plan.analyze(&session).unwrap();
                pages.protect(libc::PROT_READ);
                let expected = product.expected(N, &pattern.entries(), &values);
                assert!(product.run(&session, &plan).unwrap() == expected, "{case:?}");
            }
        }
    }
}

#[test]
fn analysis_reads_no_value_of_a_plan_in_place() {
    if backends()[1] == BackendKind::Cuda {
        return skip("mprotect and values in place: it is about host memory");
    }
    alone::run(module_path!(), "analysis_reads_no_value");
}
