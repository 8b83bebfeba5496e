//! Tests of the plan cache, a folder that keeps decisions: the next plan of the same problem is built without
//! choosing again, and products succeed whatever is wrong with the folder.

use std::ffi::{CStr, CString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use client::check;
use libc::{c_char, c_void};
use tarsia::capi::enums::tarsiaLogLevel_t;
use tarsia::capi::handle;
use tarsia::facade::PlanCache;

use super::*;
use crate::common::{alone, command_of};

const PRODUCTS: [PlannedProduct; 4] = [
    PlannedProduct::Spmv(SpmvAlg::Default),
    PlannedProduct::Spmm(SpmmAlg::Default),
    PlannedProduct::Spmm(SpmmAlg::Smat),
    PlannedProduct::Spgemm(SpgemmAlg::Default),
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

/// Analyzes a plan, and returns the reason of its choice and the bits of its product.
fn run(session: &Session, stored: &Stored, product: PlannedProduct) -> (String, Vec<u64>) {
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
        let product = PlannedProduct::Spmm(SpmmAlg::Default);
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
        is_new(PlannedProduct::Spmm(SpmmAlg::Smat).plan(&session, &sparse).unwrap(), "alg");
        is_new(PlannedProduct::Spmv(SpmvAlg::Default).plan(&session, &sparse).unwrap(), "operation");
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

        // Decisions that were passed to the plan take precedence, and without a folder nothing is kept.
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
        let (spmv, spmm) = (PlannedProduct::Spmv(SpmvAlg::Default), PlannedProduct::Spmm(SpmmAlg::Default));
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
        // A folder that is removed: products are as without it, and the reason says so.
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

/// Contents of the user's file elsewhere, which must not change.
const PRECIOUS: &[u8] = b"what a user has elsewhere";

unsafe extern "C-unwind" fn keep_line(ctx: *mut c_void, _: tarsiaLogLevel_t, message: *const c_char) {
    // SAFETY: ctx is what `warnings` passed, which lives until the logger is gone; the message ends with 0.
    let (lines, text) = unsafe { (&*ctx.cast_const().cast::<Mutex<Vec<String>>>(), CStr::from_ptr(message)) };
    lines.lock().unwrap().push(text.to_str().unwrap().to_string());
}

/// Runs with a handle of its own; also returns the lines that it logs, except the one with analysis's choice.
fn run_logged(kind: BackendKind, folder: &Path, stored: &Stored) -> (String, Vec<u64>, Vec<String>) {
    let session = session_with(kind, folder);
    let lines = Mutex::new(Vec::<String>::new());
    let set = |logger: handle::tarsiaLogFn_t| {
        // SAFETY: the lines live until the logger is taken away.
        check(unsafe { handle::tarsiaSetLogger(session.raw(), logger, (&raw const lines).cast_mut().cast()) })
    };
    set(Some(keep_line)).unwrap();
    let (text, bits) = run(&session, stored, PRODUCTS[0]);
    set(None).unwrap();
    let mut lines = lines.into_inner().unwrap();
    lines.retain(|line| !line.contains(" analyzed in "));
    (text, bits, lines)
}

#[test]
fn what_somebody_put_in_place_of_a_file_is_not_used() {
    alone::run(module_path!(), "planted");
}

/// Each of these files is treated as missing, with one warning, and is written again; the target of a link
/// does not change.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn planted() {
    for kind in backends() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let (_, expected, lines) = run_logged(kind, folder.path(), &stored);
        assert!(lines.is_empty(), "{lines:?}");
        let file = files(folder.path()).remove(0);
        let whole = fs::read(&file).unwrap();
        let (precious, valid) = (elsewhere.path().join("precious"), elsewhere.path().join("valid"));
        fs::write(&precious, PRECIOUS).unwrap();
        fs::write(&valid, &whole).unwrap();
        let path = CString::new(file.to_str().unwrap()).unwrap();
        let plants: [(&str, &dyn Fn()); 9] = [
            ("a link to a file", &|| symlink(&precious, &file).unwrap()),
            ("a link to decisions", &|| symlink(&valid, &file).unwrap()),
            ("a link to nothing", &|| symlink(elsewhere.path().join("nothing"), &file).unwrap()),
            ("a link to a file without an end", &|| symlink("/dev/zero", &file).unwrap()),
            // SAFETY: the text ends with 0.
            ("a FIFO", &|| assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0)),
            ("a file that is too long", &|| fs::write(&file, [&whole[..], &[0; 1 << 20]].concat()).unwrap()),
            ("a file with holes of 1 TiB", &|| fs::File::create(&file).unwrap().set_len(1 << 40).unwrap()),
            ("a file that was cut off", &|| fs::write(&file, &whole[..whole.len() - 9]).unwrap()),
            ("a folder", &|| fs::create_dir(&file).unwrap()),
        ];
        for (what, plant) in plants {
            fs::remove_file(&file).unwrap();
            plant();
            let (text, found, lines) = run_logged(kind, folder.path(), &stored);
            assert!(!text.contains(FROM_CACHE), "{kind:?}, {what}: {text}");
            assert_eq!(found, expected, "{kind:?}, {what}");
            assert_eq!(lines.len(), 1, "{kind:?}, {what}: {lines:?}");
            assert!(lines[0].contains("is not used: "), "{kind:?}, {what}: {lines:?}");
            assert_eq!(fs::read(&precious).unwrap(), PRECIOUS, "{kind:?}, {what}");
            assert_eq!(fs::read(&valid).unwrap(), whole, "{kind:?}, {what}");
            assert!(!elsewhere.path().join("nothing").exists(), "{kind:?}, {what}");
            if what == "a folder" {
                assert!(text.contains("not in the plan cache: "), "{kind:?}: {text}");
                fs::remove_dir(&file).unwrap();
            }
            // No unfinished files are left, and the next run finds what this one wrote.
            if what != "a folder" {
                assert!(fs::symlink_metadata(&file).unwrap().is_file(), "{kind:?}, {what}");
                assert_eq!(files(folder.path()), std::slice::from_ref(&file), "{kind:?}, {what}");
            }
            let (text, _, lines) = run_logged(kind, folder.path(), &stored);
            assert_eq!(text.starts_with(FROM_CACHE), what != "a folder", "{kind:?}, {what}: {text}");
            assert!(lines.is_empty(), "{kind:?}, {what}: {lines:?}");
        }
    }
}

#[test]
fn names_of_unfinished_files_cannot_be_taken() {
    alone::run(module_path!(), "planted_unfinished");
}

/// Links at the names that an earlier version gave to unfinished files, which consist of the process's number
/// and a counter. It runs in a process of its own, whose counters begin at 0.
#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn planted_unfinished() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, PRECIOUS).unwrap();
    for count in 0..100 {
        let name = format!(".{}-{count}.unfinished", std::process::id());
        symlink(&precious, folder.path().join(name)).unwrap();
    }
    for kind in backends() {
        let stored = Stored::new(kind, &gallery::banded(60, 3, 7).unwrap());
        let (_, _, lines) = run_logged(kind, folder.path(), &stored);
        assert!(lines.is_empty(), "{lines:?}");
        assert!(run_logged(kind, folder.path(), &stored).0.starts_with(FROM_CACHE));
        assert_eq!(fs::read(&precious).unwrap(), PRECIOUS);
    }
}

/// A later handle removes the file of a process that ended while it was writing, but not one that another
/// process may be writing now.
#[test]
fn unfinished_files_of_long_ago_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let names =
        [".tarsia-abc.unfinished", ".tarsia-now.unfinished", ".other", "unfinished", ".x.unfinished.y"];
    for name in names {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        if !name.contains("now") {
            file.set_modified(SystemTime::now() - Duration::from_secs(100_000)).unwrap();
        }
    }
    PlanCache::open(folder.path()).unwrap();
    for name in names {
        assert_eq!(folder.path().join(name).exists(), !name.contains("abc"), "{name}");
    }
}

/// Returns the bytes of a file in [`write_and_read`].
fn payload(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(100 + (number % 400) as usize)
}

const FOLDER: &str = "TARSIA_TEST_CACHE_FOLDER";

#[test]
fn processes_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("{}::write_and_read", module_path!().split_once("::").expect("inside a crate").1);
    let child = || {
        let mut command = command_of(std::env::current_exe().unwrap());
        command.args(["--exact", &name, "--ignored"]).env(FOLDER, folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [child(), child(), child()] {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let passed = output.status.success() && text.contains("1 passed");
        assert!(passed, "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    // One file for each problem, and no unfinished ones.
    assert_eq!(files(folder.path()).len(), 3);
}

/// Writes and reads the files of three problems while other processes do the same: each file is complete at
/// any time.
#[test]
#[ignore = "the test above runs it, in processes of their own"]
fn write_and_read() {
    let cache = PlanCache::open(Path::new(&std::env::var_os(FOLDER).unwrap())).unwrap();
    for round in 0..300_u64 {
        let key = [round % 3, 7];
        cache.write(key, &payload(round)).unwrap();
        let found = cache.read(key, 0).unwrap().expect("nobody removes it");
        let (number, _) = found.split_first_chunk::<8>().unwrap();
        assert!(found == payload(u64::from_le_bytes(*number)), "a file is not whole: {} bytes", found.len());
    }
}
