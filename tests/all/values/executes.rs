//! Tests of tarsiaPlan_setExpectedExecutes: choices of plans for few products and for many.

use super::*;
use matrices::gallery;
use matrices::owned::OwnedCsr;
use tarsia::capi::plan::tarsiaPlanInfo_t;

use crate::decisions::{PlannedProduct as Of, Stored as Square};

fn reason(info: &tarsiaPlanInfo_t) -> String {
    info.reason.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8 as char).collect()
}

const MANY: i64 = 1 << 50;

/// Returns a matrix whose conversion pays for many products.
fn large(kind: BackendKind) -> Square {
    Square::new(kind, &gallery::banded(20_000, 9, 3).unwrap())
}

fn analyzed(product: Of, stored: &Square, executes: i64, effort: Effort) -> tarsiaPlanInfo_t {
    let session = Session::new(stored.kind).unwrap();
    let plan = product.plan(&session, &stored.sparse()).unwrap();
    plan.set_effort(effort).unwrap();
    plan.set_expected_executes(executes).unwrap();
    plan.analyze(&session).unwrap();
    plan.info().unwrap()
}

#[test]
fn few_executes_convert_nothing_and_many_take_what_is_best() {
    for kind in backends() {
        let stored = large(kind);
        let defaults = [
            (Of::Spmv(SpmvAlg::Default), SpmvAlg::Csr as i32),
            (Of::Spmm(SpmmAlg::Default), SpmmAlg::Row as i32),
            (Of::Spgemm(SpgemmAlg::Default), SpgemmAlg::Hash as i32),
        ];
        for (product, simplest) in defaults {
            let [unknown, one, many] =
                [0, 1, MANY].map(|executes| analyzed(product, &stored, executes, Effort::Default));
            let is_oracle = kind == BackendKind::Reference;
            assert_eq!(one.algorithm, simplest, "{kind:?} {product:?}: {}", reason(&one));
            assert!(is_oracle || one.inPlace == 1, "{kind:?} {product:?}: {}", reason(&one));
            let chosen = |info: &tarsiaPlanInfo_t| (info.algorithm, info.inPlace, info.layout as i32);
            assert_eq!(chosen(&many), chosen(&unknown), "{kind:?} {product:?}: {}", reason(&many));
            assert_eq!([unknown, one, many].map(|info| info.expectedExecutes), [0, 1, MANY]);
            if !is_oracle {
                assert!(reason(&one).starts_with("for 1 execute "), "{}", reason(&one));
                let compares = reason(&one).contains("with analysis: ");
                assert!(compares || matches!(product, Of::Spgemm(_)), "{}", reason(&one));
                assert!(reason(&many).starts_with(&format!("for {MANY} executes ")), "{}", reason(&many));
                assert!(!reason(&unknown).contains("execute "), "{}", reason(&unknown));
            }
        }
        // The host's SpMV is the product whose choice depends on the number.
        let spmv = Of::Spmv(SpmvAlg::Default);
        if kind == BackendKind::Host {
            let of = |executes| analyzed(spmv, &stored, executes, Effort::Default).algorithm;
            assert_eq!((of(1), of(MANY)), (SpmvAlg::Csr as i32, SpmvAlg::Sell as i32));
            // If conversion pays for some number of products, it pays for more.
            let answers: Vec<_> = (0..40).map(|log| of(1 << log)).collect();
            let turn = answers.iter().position(|&found| found == SpmvAlg::Sell as i32).unwrap();
            assert!(answers[turn..].iter().all(|&found| found == SpmvAlg::Sell as i32), "{answers:?}");
            assert!(turn > 2, "{answers:?}");
        }
    }
}

/// TUNED does not build or time candidates that cannot pay.
#[test]
fn timing_is_for_what_may_gain() {
    let kind = backends()[1];
    let stored = large(kind);
    for product in [Of::Spmv(SpmvAlg::Default), Of::Spmm(SpmmAlg::Default)] {
        let [unknown, one, many] =
            [0, 1, MANY].map(|executes| analyzed(product, &stored, executes, Effort::Tuned));
        assert!(reason(&unknown).contains("timed: "), "{}", reason(&unknown));
        assert!(reason(&many).contains("timed: "), "{}", reason(&many));
        assert!(!reason(&one).contains("timed: "), "{}", reason(&one));
        assert!(reason(&one).contains("; nothing is timed, since no other may gain"), "{}", reason(&one));
        // On a device an analysis of SpMM's `sell` takes no longer than one of `row` on matrices of this
        // size (analysis_ms in benches/results/h100-spmm.tsv), so that either is right.
        let is_either = kind == BackendKind::Cuda && matches!(product, Of::Spmm(_));
        assert!(one.inPlace == 1 || is_either, "{}", reason(&one));
    }
}

#[test]
fn numbers_that_are_none_and_decisions_for_another_number() {
    for kind in backends() {
        let stored = large(kind);
        let (session, a) = (Session::new(kind).unwrap(), stored.sparse());
        let plan = || Of::Spmv(SpmvAlg::Default).plan(&session, &a).unwrap();
        let first = plan();
        for wrong in [-1, i64::MIN] {
            refused(first.set_expected_executes(wrong), Status::InvalidValue, &["executes: ", "negative"]);
        }
        first.set_expected_executes(1).unwrap();
        first.analyze(&session).unwrap();
        refused(first.set_expected_executes(1), Status::InvalidState, &["after tarsiaPlan_analyze"]);
        let bytes = first.decisions(&session).unwrap();
        let other = plan();
        let text = "expectedExecutes is 1 there and 0 in the plan";
        refused(other.set_decisions(&session, &bytes), Status::InvalidValue, &[text]);
        other.set_expected_executes(1).unwrap();
        other.set_decisions(&session, &bytes).unwrap();
        // Analysis finds a setting that was changed afterwards.
        other.set_expected_executes(2).unwrap();
        refused(other.analyze(&session), Status::InvalidValue, &["expectedExecutes is 1 there and 2"]);
        other.set_expected_executes(1).unwrap();
        other.analyze(&session).unwrap();
        assert_eq!(other.info().unwrap().algorithm, first.info().unwrap().algorithm);

        // Also for plans that read values in place.
        let (ours, theirs) = (plan(), plan());
        ours.set_values_in_place(true).unwrap();
        ours.analyze(&session).unwrap();
        let bytes = ours.decisions(&session).unwrap();
        let text = "valuesInPlace is 1 there and 0 in the plan";
        refused(theirs.set_decisions(&session, &bytes), Status::InvalidValue, &[text]);
        theirs.set_values_in_place(true).unwrap();
        theirs.set_decisions(&session, &bytes).unwrap();
        theirs.analyze(&session).unwrap();
        assert_eq!(theirs.info().unwrap().valuesInPlace, 1);
    }
}

/// A plan cache has a file for each number of products, and one for values in place.
#[test]
fn the_plan_cache_keeps_numbers_apart() {
    for kind in backends() {
        let folder = tempfile::tempdir().unwrap();
        let path = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
        let stored = large(kind);
        let (session, a) = (Session::new(kind).unwrap(), stored.sparse());
        session.set_plan_cache(Some(&path)).unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        for (count, (executes, in_place)) in
            [(0, false), (1, false), (MANY, false), (0, true)].iter().enumerate()
        {
            for again in 0..2 {
                let plan = Of::Spmv(SpmvAlg::Default).plan(&session, &a).unwrap();
                plan.set_expected_executes(*executes).unwrap();
                plan.set_values_in_place(*in_place).unwrap();
                plan.analyze(&session).unwrap();
                let from_cache = reason(&plan.info().unwrap()).contains("of the plan cache");
                assert_eq!((files(), from_cache), (count + 1, again == 1), "{kind:?} {executes} {in_place}");
            }
        }
    }
}

/// Plans for one product multiply like others, whatever the lengths of the rows, and take new values as they do.
#[test]
fn plans_for_few_executes_multiply_like_others() {
    // Some rows are so long that several blocks of threads share them.
    let uneven = {
        let lengths = |row: i32| if row % 611 == 17 { 1900 } else { row % 9 };
        let entries = (0..2000_i32)
            .flat_map(|row| (0..lengths(row)).map(move |k| (row, (row + k) % 2000, 0.25 + f64::from(k % 7))));
        OwnedCsr::from_triplets(2000, 2000, entries.collect()).unwrap()
    };
    let mut all = crate::decisions::matrices();
    all.push(("uneven", uneven));
    all.push(("long rows", gallery::uniform(60, 60, 50, 3).unwrap()));
    for kind in backends() {
        for (name, a) in &all {
            let stored = Square::new(kind, a);
            let (session, sparse) = (Session::new(kind).unwrap(), stored.sparse());
            for product in [
                Of::Spmv(SpmvAlg::Default),
                Of::Spmv(SpmvAlg::Csr),
                Of::Spmm(SpmmAlg::Default),
                Of::Spmm(SpmmAlg::Row),
            ] {
                let planned = |executes| {
                    let plan = product.plan(&session, &sparse).unwrap();
                    plan.set_expected_executes(executes).unwrap();
                    plan.analyze(&session).unwrap();
                    plan
                };
                let (few, other) = (planned(1), planned(0));
                let is_simplest = few.info().unwrap().inPlace == 1;
                assert!(is_simplest || kind == BackendKind::Reference, "{kind:?} {name} {product:?}");
                let of = |plan: &Plan<'_>| product.bits(plan, &session, &stored);
                let expected = of(&other);
                let is_close = |(&found, &expected): (&u64, &u64)| {
                    let [found, expected] = [found, expected].map(f64::from_bits);
                    (found - expected).abs() <= 1e-12 * expected.abs().max(1.0)
                };
                let are_close = |found: &[u64]| {
                    found.len() == expected.len() && found.iter().zip(&expected).all(is_close)
                };
                let found = of(&few);
                assert!(are_close(&found), "{kind:?} {name} {product:?}");
                assert_eq!(of(&few), found, "{kind:?} {name} {product:?}: other bits");
                few.update_values(&session, &stored.values).unwrap();
                assert!(are_close(&of(&few)), "{kind:?} {name} {product:?}: after an update");
            }
        }
    }
}

/// A pattern that is wrong is found by the analysis of a plan for one product, too.
#[test]
fn plans_for_few_executes_check_the_pattern() {
    for kind in backends() {
        let mut a = gallery::banded(300, 4, 7).unwrap();
        a.indices[5] = 300;
        let stored = Square::new(kind, &a);
        let session = Session::new(kind).unwrap();
        for product in [Of::Spmv(SpmvAlg::Default), Of::Spmm(SpmmAlg::Row), Of::Spmm(SpmmAlg::Default)] {
            let plan = product.plan(&session, &stored.sparse()).unwrap();
            plan.set_expected_executes(1).unwrap();
            refused(plan.analyze(&session), Status::InvalidValue, &["A: colInd[5] = 300"]);
        }
    }
}
