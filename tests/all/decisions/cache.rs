//! A folder that keeps decisions: the next plan of the same problem is built without choosing anew,
//! whatever is wrong with the folder costs no product.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const PRODUCTS: [Product; 4] = [
    Product::Spmv(SpmvAlg::Default),
    Product::Spmm(SpmmAlg::Default),
    Product::Spmm(SpmmAlg::Smat),
    Product::Spgemm(SpgemmAlg::Default),
];
const FROM_CACHE: &str = "by decisions of the plan cache: ";

fn session_with(kind: BackendKind, folder: &Path) -> Session {
    let session = Session::new(kind).unwrap();
    session.set_plan_cache(Some(&CString::new(folder.to_str().unwrap()).unwrap())).unwrap();
    session
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// A plan that is analyzed, its reason, and the bits of its product.
fn run(session: &Session, stored: &Stored, product: Product) -> (String, Vec<u64>) {
    let sparse = stored.sparse();
    let plan = product.plan(session, &sparse).unwrap();
    plan.analyze(session).unwrap();
    (reason(&plan), product.bits(&plan, session, stored))
}

#[test]
fn later_handles_build_the_same() {
    for kind in backends() {
        for (name, a) in &matrices() {
            let stored = Stored::new(kind, a);
            for product in PRODUCTS {
                let folder = tempfile::tempdir().unwrap();
                let what = format!("{kind:?} {name} {product:?}");
                let (first, expected) = run(&session_with(kind, folder.path()), &stored, product);
                assert!(!first.contains(FROM_CACHE), "{what}: {first}");
                assert_eq!(files(folder.path()).len(), 1, "{what}");
                let (second, found) = run(&session_with(kind, folder.path()), &stored, product);
                assert!(second.starts_with(FROM_CACHE), "{what}: {second}");
                assert_eq!(found, expected, "{what}");
                assert_eq!(files(folder.path()).len(), 1, "{what}");
            }
        }
    }
}

#[test]
fn what_decisions_depend_on_has_a_file_of_its_own() {
    let a = gallery::banded(60, 3, 7).unwrap();
    for kind in backends() {
        let folder = tempfile::tempdir().unwrap();
        let session = session_with(kind, folder.path());
        let stored = Stored::new(kind, &a);
        let sparse = stored.sparse();
        let product = Product::Spmm(SpmmAlg::Default);
        let mut count = 0;
        let mut is_new = |plan: Plan<'_>, what: &str| {
            plan.analyze(&session).unwrap();
            assert!(!reason(&plan).contains(FROM_CACHE), "{kind:?} {what}: {}", reason(&plan));
            count += 1;
            assert_eq!(files(folder.path()).len(), count, "{kind:?} {what}");
        };
        is_new(product.plan(&session, &sparse).unwrap(), "the first");
        for effort in [Effort::Quick, Effort::Tuned] {
            let plan = product.plan(&session, &sparse).unwrap();
            plan.set_effort(effort).unwrap();
            is_new(plan, "effort");
        }
        let plan = product.plan(&session, &sparse).unwrap();
        plan.set_value_updates(true).unwrap();
        is_new(plan, "valueUpdates");
        is_new(Product::Spmm(SpmmAlg::Smat).plan(&session, &sparse).unwrap(), "alg");
        is_new(Product::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap(), "operation");
        let other = Stored::new(kind, &gallery::banded(60, 3, 8).unwrap());
        let same_pattern = a.offsets == gallery::banded(60, 3, 8).unwrap().offsets;
        assert!(same_pattern, "seeds are of values");
        let plan_of_other = other.sparse();
        let plan = product.plan(&session, &plan_of_other).unwrap();
        plan.analyze(&session).unwrap();
        assert!(reason(&plan).starts_with(FROM_CACHE), "new values are the same problem");
        session.set_deterministic(true).unwrap();
        is_new(product.plan(&session, &sparse).unwrap(), "deterministic mode");
        session.set_deterministic(false).unwrap();

        // Decisions that were given come first, and without a folder nothing is kept.
        let first = product.plan(&session, &sparse).unwrap();
        first.analyze(&session).unwrap();
        assert!(reason(&first).starts_with(FROM_CACHE));
        let given = product.plan(&session, &sparse).unwrap();
        given.set_decisions(&session, &first.decisions(&session).unwrap()).unwrap();
        given.analyze(&session).unwrap();
        assert!(reason(&given).starts_with("by decisions that were given: "), "{}", reason(&given));
        session.set_plan_cache(None).unwrap();
        let (text, _) = run(&session, &stored, product);
        assert!(!text.contains("decisions") && !text.contains("cache"), "{text}");
    }
}

#[test]
fn files_that_are_damaged_or_of_something_else_are_written_again() {
    for kind in backends() {
        let folder = tempfile::tempdir().unwrap();
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let (spmv, spmm) = (Product::Spmv(SpmvAlg::Default), Product::Spmm(SpmmAlg::Default));
        run(&session_with(kind, folder.path()), &stored, spmm);
        let other = fs::read(&files(folder.path())[0]).unwrap();
        fs::remove_file(&files(folder.path())[0]).unwrap();
        let (_, expected) = run(&session_with(kind, folder.path()), &stored, spmv);
        let file = files(folder.path()).remove(0);
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 4;
        for bytes in [&[], &whole[..40], &flipped, &other, &vec![0; 2 << 20]] {
            fs::write(&file, bytes).unwrap();
            let (text, found) = run(&session_with(kind, folder.path()), &stored, spmv);
            assert!(!text.contains(FROM_CACHE), "{text}");
            assert_eq!(found, expected);
            assert_eq!(fs::read(&file).unwrap(), whole);
        }
        assert!(run(&session_with(kind, folder.path()), &stored, spmv).0.starts_with(FROM_CACHE));
    }
}

#[test]
fn folders_that_cannot_be_used() {
    for kind in backends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"x").unwrap();
        let session = Session::new(kind).unwrap();
        for path in [file.to_str().unwrap(), "", file.join("below").to_str().unwrap()] {
            let error = session.set_plan_cache(Some(&CString::new(path).unwrap())).unwrap_err();
            assert_eq!(error.status, Status::InvalidValue);
            assert!(error.message.starts_with("folder: "), "{error}");
        }
        // One that goes away: products as without it, and the reason says so.
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let below = folder.path().join("below");
        let session = session_with(kind, &below);
        fs::remove_dir(&below).unwrap();
        let (text, found) = run(&session, &stored, PRODUCTS[0]);
        assert!(text.contains("not in the plan cache: "), "{text}");
        assert_eq!(found, run(&Session::new(kind).unwrap(), &stored, PRODUCTS[0]).1);
    }
}

#[test]
fn threads_share_a_folder() {
    for kind in backends() {
        let folder = tempfile::tempdir().unwrap();
        let a = gallery::uniform(300, 300, 9, 3).unwrap();
        let all = std::thread::scope(|scope| {
            let one = || run(&session_with(kind, folder.path()), &Stored::new(kind, &a), PRODUCTS[1]).1;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|bits| *bits == all[0]));
        assert_eq!(files(folder.path()).len(), 1);
    }
}
