//! Calls that are taken give right products, and nothing else is taken. There is no device: the products are computed by
//! Tarsia's host backend on the stand-in's memory, as the variable TARSIA_CUSPARSE_TEST_ON_HOST asks for. What the drop-in
//! makes of cuSPARSE's arguments is the same on a device.

use crate::world::{Outcome, World};

/// The program of products.c.
fn world() -> World {
    let world = World::new();
    world.compile(
        "products.c",
        "products",
        &["./libcusparse.so.12", "-Wl,-rpath,$ORIGIN", "-lm", "-pthread"],
    );
    world
}

const ON_HOST: (&str, &str) = ("TARSIA_CUSPARSE_TEST_ON_HOST", "1");
const SIZES: (&str, &str) = ("STAND_IN_SIZES", "1");

/// Products that the program has computed, all as it expects.
fn products(outcome: &Outcome) -> u64 {
    let line = outcome.output.lines().last().unwrap();
    let (count, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, "products, 0 failures", "{outcome:?}");
    count.parse().unwrap()
}

/// Calls of a function with this outcome.
fn calls(outcome: &Outcome, name: &str, text: &str) -> u64 {
    let counts = outcome.counts().into_iter();
    counts.filter(|(found, _, what)| found == name && what.starts_with(text)).map(|(_, calls, _)| calls).sum()
}

#[test]
fn what_is_served_is_taken_and_right() {
    let world = world();
    for mode in ["summary", "force"] {
        let variables = [("TARSIA_CUSPARSE", mode), ON_HOST, SIZES];
        let with = world.with(&["products", "taken"], &variables);
        let (spmv, spmm) = (calls(&with, "cusparseSpMV", "taken"), calls(&with, "cusparseSpMM", "taken"));
        assert_eq!(spmv + spmm, products(&with), "{:?}", with.messages);
        assert!(spmv >= 100 && spmm >= 1000, "{spmv} {spmm}");
        with.message(&format!("{} taken", spmv + spmm));
        assert!(!with.log.contains("cusparseSpMV 0x") && !with.log.contains("cusparseSpMM 0x"));
        // cuSPARSE is asked for the size of every buffer.
        let sized = ["cusparseSpMV_bufferSize", "cusparseSpMM_bufferSize"];
        let sized: u64 = sized.iter().map(|name| calls(&with, name, "forwarded: and the size raised")).sum();
        assert_eq!(sized, products(&with));
    }
}

#[test]
fn fp32_may_be_fast() {
    let variables = [("TARSIA_CUSPARSE", "trace"), ("TARSIA_CUSPARSE_FP32", "fast"), ON_HOST, SIZES];
    let fast = world().with(&["products", "taken"], &variables);
    products(&fast);
    assert!(!fast.messages.iter().any(|line| line.contains("fp32 pedantic")));
    let pedantic = world().with(&["products", "taken"], &[variables[0], ON_HOST, SIZES]);
    let line = "cusparseSpMM taken (37 × 23";
    let types = "A fp32, input fp32, output fp32, compute fp32 pedantic";
    assert!(pedantic.messages.iter().any(|found| found.starts_with(line) && found.contains(types)));
}

/// The functions that the stand-in got, in order; addresses differ from run to run.
fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.log.lines().map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn everything_can_be_forwarded() {
    let world = world();
    let program = ["products", "forwarded"];
    let without = world.without(&program);
    let count = products(&without);
    // Without a device, by the environment, and where the size of a buffer cannot be known.
    let none = [("TARSIA_CUSPARSE_TAKE", "spgemm"), ON_HOST];
    for variables in [&[][..], &[("TARSIA_CUSPARSE", "off"), ON_HOST], &none] {
        let with = world.with(&program, variables);
        assert_eq!(names(&with), names(&without));
        assert_eq!(products(&with), count);
    }
}

#[test]
fn what_is_not_served_is_forwarded_with_a_reason() {
    let world = world();
    let with = world.with(&["products", "declined"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST, SIZES]);
    products(&with);
    for (name, reason, count) in [
        ("cusparseSpMV", "a format that is not taken", 1),
        ("cusparseSpMV", "types that are not taken", 1),
        ("cusparseSpMV", "with this operation A would have to be converted", 4),
        ("cusparseSpMV", "a pointer is NULL", 6),
        ("cusparseSpMV", "the algorithm is none of A's format", 2),
        ("cusparseSpMV", "Tarsia refuses the arguments", 2),
        ("cusparseSpMM", "with this operation A would have to be converted", 3),
        ("cusparseSpMM", "types that are not taken", 1),
        ("cusparseSpMM", "a pointer is NULL", 2),
        ("cusparseSpMM", "Tarsia refuses the arguments", 1),
        ("cusparseSpMM", "the algorithm is none of A's format", 1),
        ("cusparseSpMM", "batches", 1),
        ("cusparseSpMM", "the program has preprocessed A", 1),
        ("cusparseSpMM_preprocess", "not taken by this version", 1),
    ] {
        let found = calls(&with, name, &format!("forwarded: {reason}"));
        assert_eq!(found, count, "{name}, {reason}: {:#?}", with.messages);
    }
    assert_eq!(calls(&with, "cusparseSpMM", "taken"), 1);
}

/// Where `cusparseSpMM_bufferSize` fails, a buffer may have any size. On the host COO alone needs one.
#[test]
fn buffers_whose_size_was_not_told_are_not_used() {
    let world = world();
    let with = world.with(&["products", "unsized"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    let count = products(&with);
    let forwarded = calls(&with, "cusparseSpMM", "forwarded: the buffer may be smaller");
    assert!(forwarded > 100, "{with:?}");
    let taken = calls(&with, "cusparseSpMV", "taken") + calls(&with, "cusparseSpMM", "taken");
    assert_eq!(taken + forwarded, count);
}

#[test]
fn threads_have_handles_of_their_own_or_share_one() {
    let with = world().with(&["products", "threads"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    assert_eq!(products(&with), 8);
    assert_eq!(calls(&with, "cusparseSpMV", "taken"), 8 * 300);
}

/// CUDA does not work in a child of a process that has used it, and another thread of the parent's may have had a lock.
#[test]
fn children_of_fork_forward() {
    let with = world().with(&["products", "fork"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    assert_eq!(products(&with), 3);
    assert_eq!(calls(&with, "cusparseSpMV", "taken"), 2);
}
