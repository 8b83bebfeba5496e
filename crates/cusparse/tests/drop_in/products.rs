//! Tests that calls that are taken give right products, and that other calls are forwarded. No device is
//! needed: TARSIA_CUSPARSE_TEST_ON_HOST makes Tarsia's host backend compute the products on the stand-in's
//! memory. The drop-in translates cuSPARSE's arguments in the same way for a device.

use crate::world::{Outcome, World};

/// Creates a folder with the programs of products.c and spgemm.c.
fn world() -> World {
    let world = World::new();
    compile(&world);
    world
}

fn compile(world: &World) {
    for name in ["products", "spgemm"] {
        let source = format!("{name}.c");
        world.compile(&source, name, &["./libcusparse.so.12", "-Wl,-rpath,$ORIGIN", "-lm", "-pthread"]);
    }
}

const ON_HOST: (&str, &str) = ("TARSIA_CUSPARSE_TEST_ON_HOST", "1");
const SIZES: (&str, &str) = ("STAND_IN_SIZES", "1");
const FORCE: (&str, &str) = ("TARSIA_CUSPARSE", "force");

/// Returns the number of products that the program has computed; fails if one is not as it expects.
fn products(outcome: &Outcome) -> u64 {
    let line = outcome.output.lines().last().unwrap();
    let (count, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, "products, 0 failures", "{outcome:?}");
    count.parse().unwrap()
}

/// Returns the number of calls of a function whose outcome begins with `text`.
fn calls(outcome: &Outcome, name: &str, text: &str) -> u64 {
    let counts = outcome.counts().into_iter();
    counts.filter(|(found, _, what)| found == name && what.starts_with(text)).map(|(_, calls, _)| calls).sum()
}

#[test]
fn what_is_served_is_taken_and_right() {
    let world = world();
    // On the host no product needs a buffer, so that the products are taken even if bufferSize fails.
    for sizes in [SIZES, ("STAND_IN_SIZES_OF_NO_USE", "1")] {
        let with = world.with(&["products", "taken"], &[FORCE, ON_HOST, sizes]);
        let count = |text: &str| ["cusparseSpMV", "cusparseSpMM"].map(|name| calls(&with, name, text));
        let [spmv, spmm] = count("taken");
        // COO is always forwarded, whatever the order of its entries.
        let coo: u64 = count("forwarded: a format that is not taken").iter().sum();
        assert_eq!(spmv + spmm + coo, products(&with), "{:?}", with.messages);
        assert!(spmv >= 100 && spmm >= 800 && coo >= 100, "{spmv} {spmm} {coo}");
        with.message(&format!("{} taken", spmv + spmm));
        // cuSPARSE is asked for the size of every buffer.
        let sized = ["cusparseSpMV_bufferSize", "cusparseSpMM_bufferSize"];
        let sized: u64 = sized.iter().map(|name| calls(&with, name, "forwarded: and the size raised")).sum();
        assert_eq!(sized, if sizes == SIZES { spmv + spmm } else { 0 });
    }
}

/// If a rule forwards a product, the size of its buffer is not raised either.
#[test]
fn rules_forward_what_cusparse_does_faster() {
    let world = world();
    let with = world.with(&["products", "rules"], &[("TARSIA_CUSPARSE", "trace"), ON_HOST, SIZES]);
    assert_eq!(products(&with), 5);
    for (name, count) in [("cusparseSpMV", 1), ("cusparseSpMM", 1), ("cusparseSpMM_bufferSize", 1)] {
        assert_eq!(calls(&with, name, "forwarded: cuSPARSE is faster for this shape"), count, "{name}");
    }
    let line = "cusparseSpMM forwarded: cuSPARSE is faster for this shape (37 × 23";
    let rule = |found: &&String| found.starts_with(line) && found.contains("up to 100,000 entries");
    assert_eq!(with.messages.iter().filter(rule).count(), 1, "{:?}", with.messages);
}

#[test]
fn fp32_may_be_fast() {
    let world = world();
    let trace = ("TARSIA_CUSPARSE", "trace");
    for (fp32, compute) in [("", "fp32 pedantic"), ("pedantic", "fp32 pedantic"), ("fast", "fp32")] {
        let variables = [trace, ("TARSIA_CUSPARSE_FP32", fp32), ON_HOST, SIZES];
        let with = world.with(&["products", "rules"], &variables);
        products(&with);
        let line = "cusparseSpMV taken (37 × 23";
        let types = format!("A fp32, input fp32, output fp32, compute {compute})");
        assert!(
            with.messages.iter().any(|found| found.starts_with(line) && found.ends_with(&types)),
            "{types}: {:?}",
            with.messages
        );
    }
}

/// Returns the names of the functions that reached the stand-in, in order, without the arguments, since
/// addresses differ from run to run.
fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.log.lines().map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn everything_can_be_forwarded() {
    let world = world();
    for (name, others) in [("products", "spgemm"), ("spgemm", "spmv,spmm")] {
        let program = [name, "forwarded"];
        let without = world.without(&program);
        let count = products(&without);
        // Everything is forwarded without a device, with the drop-in off, and with the operations left out.
        let none = [("TARSIA_CUSPARSE_TAKE", others), ON_HOST];
        for variables in [&[][..], &[("TARSIA_CUSPARSE", "off"), ON_HOST], &none] {
            let with = world.with(&program, variables);
            assert_eq!(names(&with), names(&without));
            assert_eq!(products(&with), count);
        }
    }
}

#[test]
fn what_is_not_served_is_forwarded_with_a_reason() {
    let world = world();
    let with = world.with(&["products", "declined"], &[FORCE, ON_HOST, SIZES]);
    products(&with);
    for (name, reason, count) in [
        ("cusparseSpMV", "a format that is not taken", 1),
        ("cusparseSpMV", "types that are not taken", 1),
        ("cusparseSpMV", "with this operation A would have to be converted", 4),
        ("cusparseSpMV", "a pointer is NULL", 6),
        ("cusparseSpMV", "the algorithm is none of A's format", 2),
        ("cusparseSpMV", "Tarsia refuses the arguments", 2),
        ("cusparseSpMM", "with this operation A would have to be converted", 2),
        ("cusparseSpMM", "a format that is not taken", 1),
        ("cusparseSpMM", "types that are not taken", 1),
        ("cusparseSpMM", "a pointer is NULL", 2),
        ("cusparseSpMM", "Tarsia refuses the arguments", 1),
        ("cusparseSpMM", "the algorithm is none of A's format", 1),
        ("cusparseSpMM", "batches", 1),
        ("cusparseSpMM", "the program has preprocessed A", 1),
        ("cusparseSpMM_preprocess", "and Tarsia analyzes the matrix", 1),
    ] {
        let found = calls(&with, name, &format!("forwarded: {reason}"));
        assert_eq!(found, count, "{name}, {reason}: {:#?}", with.messages);
    }
    assert_eq!(calls(&with, "cusparseSpMM", "taken"), 1);
}

#[test]
fn threads_have_handles_of_their_own_or_share_one() {
    let with = world().with(&["products", "threads"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    assert_eq!(products(&with), 8);
    assert_eq!(calls(&with, "cusparseSpMV", "taken"), 8 * 300);
}

/// A plan serves the products that a matrix was preprocessed for, as long as the program's calls let its pattern
/// be the same. Rules are off for SpMM, which is small here, and on for SpMV, to tell its plan's products.
#[test]
fn preprocessed_matrices_have_plans() {
    let world = world();
    for (columns, mode) in [("0", ("TARSIA_CUSPARSE", "summary")), ("4", FORCE)] {
        for frozen in [None, Some("frozen")] {
            let program: Vec<_> = ["products", "prepared", columns].into_iter().chain(frozen).collect();
            let values = ("TARSIA_CUSPARSE_VALUES", frozen.unwrap_or_default());
            let with = world.with(&program, &[mode, ON_HOST, SIZES, values]);
            assert_eq!(products(&with), if frozen.is_some() { 17 } else { 18 });
            let name = if columns == "0" { "cusparseSpMV_preprocess" } else { "cusparseSpMM_preprocess" };
            let counts = ["and Tarsia analyzes the matrix", "the matrix has been preprocessed before"]
                .map(|text| calls(&with, name, &format!("forwarded: {text}")));
            assert_eq!(counts, [3, 1], "{:#?}", with.messages);
        }
    }
}

/// Only a preprocess that cuSPARSE has carried out promises that the pattern stays.
#[test]
fn a_preprocess_that_fails_promises_nothing() {
    let world = world();
    for (columns, mode) in [("0", ("TARSIA_CUSPARSE", "summary")), ("4", FORCE)] {
        let with = world.with(&["products", "refused", columns], &[mode, ON_HOST, SIZES]);
        assert_eq!(products(&with), 8);
        let name = if columns == "0" { "cusparseSpMV_preprocess" } else { "cusparseSpMM_preprocess" };
        for (text, count) in [("cuSPARSE refuses", 2), ("and Tarsia analyzes the matrix", 1)] {
            assert_eq!(calls(&with, name, &format!("forwarded: {text}")), count, "{:#?}", with.messages);
        }
        // cuSPARSE gets each of them once.
        assert_eq!(names(&with).iter().filter(|found| **found == name).count(), 3);
    }
}

#[test]
fn plans_go_with_their_handle() {
    let world = world();
    for (columns, mode) in [("0", ("TARSIA_CUSPARSE", "summary")), ("4", FORCE)] {
        let with = world.with(&["products", "handles", columns], &[mode, ON_HOST, SIZES]);
        assert_eq!(products(&with), 12);
    }
    let with = world.with(&["spgemm", "handle"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST, SIZES]);
    assert_eq!(products(&with), 2);
}

/// The plan of SpMVOp is a promise, too, in every version that has it, whose functions have different arguments.
#[test]
fn plans_of_spmvop_are_promises() {
    for (version, spmvop) in [([12, 7, 2], 1270), ([12, 7, 10], 1271), ([12, 9, 4], 1290)] {
        let world = World::of_version(version, spmvop);
        compile(&world);
        let with = world.with(&["products", "operations"], &[FORCE, ON_HOST, SIZES]);
        assert_eq!(products(&with), 25);
        assert_eq!(calls(&with, "cusparseSpMVOp", "taken"), 7);
        for (reason, count) in [("the result is not where y is", 1), ("the plan has an epilogue", 13)] {
            let found = calls(&with, "cusparseSpMVOp", &format!("forwarded: {reason}"));
            assert_eq!(found, count, "{reason}: {:#?}", with.messages);
        }
    }
}

/// Every step of a product is taken, also where cuSPARSE refuses the first one.
#[test]
fn spgemm_is_taken_and_right() {
    let world = world();
    for sizes in [SIZES, ("STAND_IN_SIZES_OF_NO_USE", "1")] {
        let with = world.with(&["spgemm", "taken"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST, sizes]);
        assert_eq!(products(&with), 118);
        let [first, later] = ["forwarded: and the size raised", "taken"]
            .map(|what| calls(&with, "cusparseSpGEMM_workEstimation", what));
        assert_eq!((first, later), if sizes == SIZES { (104, 104) } else { (0, 208) });
        for (name, count) in [("compute", 176), ("copy", 116), ("estimateMemory", 96), ("getNumProducts", 48)]
        {
            let name = format!("cusparseSpGEMM_{name}");
            assert_eq!((calls(&with, &name, "taken"), with.calls(&name)), (count, count), "{name}");
        }
    }
}

#[test]
fn spgemm_that_is_not_served_is_forwarded_with_a_reason() {
    let with = world().with(&["spgemm", "declined"], &[FORCE, ON_HOST, SIZES]);
    products(&with);
    for (reason, count) in [
        ("with this operation A would have to be converted", 1),
        ("the algorithm is none of A's format", 1),
        ("beta may be other than zero", 2),
        ("types that are not taken", 2),
        ("Tarsia refuses the arguments", 1),
        ("a pointer is NULL", 1),
        ("a format that is not taken", 2),
        ("cuSPARSE has got the first step", 10),
    ] {
        let found = calls(&with, "cusparseSpGEMM_workEstimation", &format!("forwarded: {reason}"));
        assert_eq!(found, count, "{reason}: {:#?}", with.messages);
    }
}

/// A product that turns out not to be computable goes to cuSPARSE while that is possible: the stand-in
/// refuses a later step of a product whose first step it has not had.
#[test]
fn spgemm_that_fails_goes_to_cusparse() {
    let with = world().with(&["spgemm", "late"], &[("TARSIA_CUSPARSE", "trace"), ON_HOST, SIZES]);
    assert_eq!(products(&with), 8);
    let text = "cusparseSpGEMM_compute forwarded: Tarsia cannot compute the product after all (A: ";
    assert!(with.messages.iter().any(|line| line.starts_with(text)), "{:#?}", with.messages);
    for (name, failed) in [("workEstimation", 0), ("compute", 3), ("copy", 1)] {
        let found = calls(&with, &format!("cusparseSpGEMM_{name}"), "answered with an error");
        assert_eq!(found, failed, "{name}");
    }
}

/// A product whose C has more entries than its offsets count goes to cuSPARSE at the step at which programs expect
/// that it cannot compute a product.
#[test]
fn spgemm_with_too_many_entries_goes_to_cusparse_early() {
    let most = ("TARSIA_CUSPARSE_TEST_MOST", "100");
    let with = world().with(&["spgemm", "many"], &[("TARSIA_CUSPARSE", "trace"), ON_HOST, SIZES, most]);
    assert_eq!(products(&with), 1);
    let text =
        "cusparseSpGEMM_workEstimation forwarded: Tarsia refuses the arguments (C: its offsets of 32 bits";
    assert!(with.messages.iter().any(|line| line.starts_with(text)), "{:#?}", with.messages);
}

/// What is on the device can be another value in each step.
#[test]
fn beta_on_the_device_is_read_in_each_step_of_spgemm() {
    let with = world().with(&["spgemm", "device"], &[("TARSIA_CUSPARSE", "trace"), ON_HOST, SIZES]);
    assert_eq!(products(&with), 12);
    let text =
        "cusparseSpGEMM_copy answered with an error: Tarsia cannot do this step of the product (beta may";
    assert!(with.messages.iter().any(|line| line.starts_with(text)), "{:#?}", with.messages);
}

#[test]
fn steps_of_spgemm_are_not_captured() {
    let with = world().with(&["spgemm", "captured"], &[("TARSIA_CUSPARSE", "trace"), ON_HOST, SIZES]);
    assert_eq!(products(&with), 6);
    assert_eq!(calls(&with, "cusparseSpGEMM_workEstimation", "forwarded: it is captured"), 1);
}

/// After a panic cuSPARSE gets no step whose earlier ones it has not had: the stand-in refuses such steps.
#[test]
fn spgemm_that_panics_fails_or_begins_anew() {
    let world = world();
    for place in ["first", "analysis", "estimate", "size", "compute", "copy"] {
        let panic = ("TARSIA_CUSPARSE_TEST_PANIC", place);
        let with =
            world.with(&["spgemm", "panic", place], &[("TARSIA_CUSPARSE", "summary"), ON_HOST, SIZES, panic]);
        assert_eq!(products(&with), 2, "{place}");
    }
}

/// A cuSPARSE whose descriptors have nnz twice, or in other bits, gets every SpGEMM.
#[test]
fn spgemm_needs_the_place_of_nnz() {
    for layout in ["-DLAYOUT=1", "-DLAYOUT=2"] {
        let world = World::new();
        world.stand_in("libcusparse.so.12", "libcusparse.so.12", &[layout]);
        compile(&world);
        let with = world.with(&["spgemm", "forwarded"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
        products(&with);
        let reason = "forwarded: this cuSPARSE does not show";
        assert_eq!(calls(&with, "cusparseSpGEMM_workEstimation", reason), 1, "{:#?}", with.messages);
        // Other products do not need it.
        let with = world.with(&["products", "threads"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
        assert_eq!(calls(&with, "cusparseSpMV", "taken"), 8 * 300);
    }
}

#[test]
fn spgemms_of_threads_are_apart() {
    let with = world().with(&["spgemm", "threads"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    assert_eq!(products(&with), 8);
    assert_eq!(calls(&with, "cusparseSpGEMM_copy", "taken"), 8 * 30 * 2);
}

/// Children made by fork forward all calls: CUDA does not work in a child of a process that has used it, and
/// another thread of the parent may have held a lock.
#[test]
fn children_of_fork_forward() {
    let with = world().with(&["products", "fork"], &[("TARSIA_CUSPARSE", "summary"), ON_HOST]);
    assert_eq!(products(&with), 3);
    assert_eq!(calls(&with, "cusparseSpMV", "taken"), 2);
}

/// A thread that is in a call may hold any lock, which is never released in a child.
#[test]
fn children_of_fork_forward_what_threads_are_in() {
    let variables = [("TARSIA_CUSPARSE", "summary"), ON_HOST, ("STAND_IN_WAITS", "1")];
    let with = world().with(&["products", "inside"], &variables);
    assert_eq!(products(&with), 2);
    assert_eq!(calls(&with, "cusparseSpMV", "taken"), 1);
}
