//! Tests of the drop-in's messages: it prints none unless it is asked to or something is wrong.

use crate::world::{drop_in, Outcome, World};

/// Creates a folder with a client that is linked with the stand-in, and a driver with one device.
fn world() -> World {
    let world = World::new();
    world.linked("client", "-Wl,--enable-new-dtags");
    world.driver();
    world
}

fn outcome_of(outcome: &Outcome, name: &str) -> String {
    let counts = outcome.counts();
    let found: Vec<_> = counts.iter().filter(|(found, ..)| found == name).collect();
    assert_eq!(found.len(), 1, "{name}: {outcome:?}");
    found[0].2.clone()
}

const NO_OPERATION: &str = "forwarded: with this operation A would have to be converted";
const NOT_TAKEN: &str = "forwarded: only TARSIA_CUSPARSE=force takes these products";
const NOT_BEGUN: &str = "forwarded: cuSPARSE has got the first step of this product";

#[test]
fn nothing_is_said_unasked() {
    let world = world();
    for variables in [&[] as &[_], &[("TARSIA_CUSPARSE", "")], &[("TARSIA_CUSPARSE", "off")]] {
        assert_eq!(world.with(&["client"], variables).messages, [] as [&str; 0], "{variables:?}");
    }
}

#[test]
fn summary_has_every_function_and_reason() {
    let world = world();
    let with = world.with(&["client"], &[("TARSIA_CUSPARSE", "summary")]);
    assert!(with.messages.iter().all(|line| line.starts_with("summary: ")), "{with:?}");
    let first = format!("summary: cuSPARSE 12.9.4 ({}); may take spmv,spmm,spgemm", cusparse(&world));
    assert_eq!(with.messages[0], first);
    assert_eq!(outcome_of(&with, "cusparseSpMVOp"), NOT_TAKEN);
    assert_eq!(outcome_of(&with, "cusparseSpGEMM_copy"), NOT_BEGUN);
    // The number that the client passes as operation is invalid.
    for name in ["cusparseSpMV", "cusparseSpMV_preprocess"] {
        assert_eq!(outcome_of(&with, name), NO_OPERATION, "{name}");
    }
    assert_eq!(outcome_of(&with, "cusparseSpMM_bufferSize"), "forwarded: cuSPARSE refuses the arguments");
    for name in ["cusparseDestroySpMat", "cusparseCsrSetPointers", "cusparseSpGEMMreuse_nnz"] {
        assert_eq!(outcome_of(&with, name), "forwarded: cuSPARSE always gets this call", "{name}");
    }
}

/// Returns the path of the stand-in.
fn cusparse(world: &World) -> String {
    world.file("libcusparse.so.12")
}

#[test]
fn operations_that_are_not_to_be_taken_are_named() {
    let world = world();
    let variables = [("TARSIA_CUSPARSE", "summary"), ("TARSIA_CUSPARSE_TAKE", "spmm, spgemm")];
    let with = world.with(&["client"], &variables);
    with.message("may take spmm,spgemm");
    let left_out = "forwarded: TARSIA_CUSPARSE_TAKE leaves the operation out";
    assert_eq!(outcome_of(&with, "cusparseSpMV"), left_out);
    assert_eq!(outcome_of(&with, "cusparseSpMVOp"), left_out);
    assert_eq!(outcome_of(&with, "cusparseSpMM"), NO_OPERATION);
    assert_eq!(outcome_of(&with, "cusparseSpGEMM_compute"), NOT_BEGUN);
}

#[test]
fn trace_has_a_line_a_call_in_order() {
    let world = world();
    let with = world.with(&["client"], &[("TARSIA_CUSPARSE", "trace")]);
    let (summary, calls): (Vec<_>, Vec<_>) =
        with.messages.iter().partition(|line| line.starts_with("summary: "));
    assert_eq!(calls[0], "cusparseSpMV_bufferSize forwarded: cuSPARSE refuses the arguments");
    assert_eq!(calls[calls.len() - 1], "cusparseDestroy forwarded: cuSPARSE always gets this call");
    assert_eq!(calls.len(), with.counts().len());
    assert_eq!(summary.len(), calls.len() + 2);
}

/// Invalid values are reported once, however many calls come, and the program runs as if they were not set.
#[test]
fn wrong_values_are_told_once() {
    let world = world();
    let without = world.without(&["client"]);
    let variables = [("TARSIA_CUSPARSE", "tracing"), ("TARSIA_CUSPARSE_TAKE", "spmv,spgem")];
    let with = world.with(&["client"], &variables);
    assert_eq!((&with.output, &with.log), (&without.output, &without.log));
    assert_eq!(with.messages.len(), 2, "{with:?}");
    with.message("TARSIA_CUSPARSE is `tracing`, which is ignored: it can be off, summary, trace or force");
    with.message("TARSIA_CUSPARSE_TAKE has `spgem`, which is ignored: it can list spmv, spmm and spgemm");
    // Programs without cuSPARSE, such as a shell that starts the program, print nothing.
    world.host();
    assert_eq!(world.with(&["host"], &variables).messages, [] as [&str; 0]);
}

#[test]
fn texts_that_are_not_utf8_are_wrong_values() {
    use std::os::unix::ffi::OsStrExt;
    let world = world();
    let with = world.run(&["client"], |command| {
        command
            .env("LD_PRELOAD", crate::world::drop_in())
            .env("TARSIA_CUSPARSE", std::ffi::OsStr::from_bytes(b"tr\xffce"))
    });
    assert_eq!(with.messages.len(), 1, "{with:?}");
    with.message("TARSIA_CUSPARSE is `tr");
}

/// One line is printed if there is no driver, no device, or a driver that fails to initialize; the summary
/// has the outcome of each call.
#[test]
fn without_a_device_everything_is_forwarded() {
    let world = world();
    world.host();
    let without = world.without(&["client"]);
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("FAKE_COUNT", "0")], "there is no CUDA device"),
        (&[("FAKE_INIT", "100")], "CUDA_ERROR_NO_DEVICE"),
        (&[("LD_LIBRARY_PATH", "")], "there is no CUDA driver: libcuda.so.1"),
    ];
    for (variables, text) in cases {
        // On a machine with a GPU the driver on the system's path would be found.
        if variables[0].0 == "LD_LIBRARY_PATH" && world.loads("libcuda.so.1") {
            continue;
        }
        let quiet = world.with(&["client"], variables);
        assert_eq!((&quiet.output, &quiet.log), (&without.output, &without.log));
        assert_eq!(quiet.messages.len(), 1, "{quiet:?}");
        assert!(quiet.message(text).starts_with("every call is forwarded to cuSPARSE: "), "{quiet:?}");
        let summary = [variables, &[("TARSIA_CUSPARSE", "summary")]].concat();
        let with = world.with(&["client"], &summary);
        assert_eq!(
            outcome_of(&with, "cusparseSpMM"),
            "forwarded: no CUDA device for Tarsia",
            "{variables:?}"
        );
    }
    // The driver is not called if no operation is to be taken.
    let variables = [("FAKE_COUNT", "0"), ("TARSIA_CUSPARSE_TAKE", "nothing")];
    let with = world.with(&["client"], &variables);
    assert_eq!(with.messages.len(), 1, "{with:?}");
    with.message("`nothing`, which is ignored: it can list");
}

/// Functions that a program looks up in cuSPARSE's own handle, as JAX and Julia do, bypass the drop-in. The
/// summary says so.
#[test]
fn functions_from_cusparses_own_handle_are_not_seen() {
    let world = world();
    world.host();
    let program = ["host", "local", &cusparse(&world), "handle", "cusparseDestroy"];
    let with = world.with(&program, &[("TARSIA_CUSPARSE", "summary")]);
    assert_eq!(with.output, "cusparseDestroy: 101\n");
    assert_eq!(with.messages.len(), 1, "{with:?}");
    with.message("cuSPARSE is loaded, but no call of it came this way");
    assert_eq!(world.with(&program, &[]).messages, [] as [&str; 0]);
}

/// Another library leads such lookups to the drop-in, and leaves all others to the loader: of functions that the
/// drop-in does not have, and of those that are searched for behind the caller.
#[test]
fn functions_from_cusparses_own_handle_are_seen_with_a_library_for_it() {
    let world = world();
    world.host();
    world.compile("next.c", "libsecond.so", &["-shared", "-DSECOND", "-Wl,-soname,libsecond.so"]);
    let first = ["-shared", "-Wl,--no-as-needed", "./libsecond.so", "-Wl,-rpath,$ORIGIN", "-ldl"];
    world.compile("next.c", "first.so", &first);
    let (cusparse, first) = (cusparse(&world), world.file("first.so"));
    let mut program = vec!["host", "local", &first, "run", "run", "local", &cusparse];
    for name in ["cusparseDestroy", "cusparseDestroyDnVec", "cusparseDestroySpMat", "cusparseDestroy"] {
        program.extend(["handle", name]);
    }
    let without = world.without(&program);
    let dlsym = crate::world::built("libtarsia_cusparse_dlsym.so");
    // Alone it changes nothing.
    let alone = world.run(&program, |command| command.env("LD_PRELOAD", &dlsym));
    assert_eq!((&alone.output, &alone.log), (&without.output, &without.log));
    for [one, other] in [[&dlsym, &drop_in()], [&drop_in(), &dlsym]] {
        let both = format!("{} {}", one.display(), other.display());
        let with =
            world.run(&program, |command| command.env("LD_PRELOAD", both).env("TARSIA_CUSPARSE", "summary"));
        assert_eq!((&with.output, &with.log), (&without.output, &without.log));
        assert_eq!((with.calls("cusparseDestroy"), with.calls("cusparseDestroySpMat")), (2, 1));
    }
}

/// Two cuSPARSE libraries in one process are reported: each has its own handles, but all calls go to one.
#[test]
fn several_cusparses_are_told() {
    let world = world();
    world.host();
    world.extension("plain.so", &[]);
    std::fs::create_dir(world.path("second")).unwrap();
    std::fs::copy(cusparse(&world), world.path("second/libcusparse.so.12")).unwrap();
    let second = world.file("second/libcusparse.so.12");
    let program = [
        "host",
        "local",
        &cusparse(&world),
        "local",
        &second,
        "local",
        &world.file("plain.so"),
        "run",
        "run",
    ];
    let with = world.with(&program, &[]);
    assert_eq!(with.messages.len(), 1, "{with:?}");
    let line = with.message("2 cuSPARSE libraries are loaded");
    assert!(
        line.contains(&second) && line.contains(&format!("forwarded to {},", cusparse(&world))),
        "{line}"
    );
}

/// A child made by fork counts its own calls, and a process that ends by _exit prints nothing.
#[test]
fn children_count_their_own_calls() {
    let world = world();
    world.host();
    let (library, call) = (cusparse(&world), ["default", "cusparseDestroy"]);
    let summary = [("TARSIA_CUSPARSE", "summary")];
    let fork = [&["host", "local", &library], &call[..], &call[..], &["fork"], &call[..]].concat();
    let with = world.with(&fork, &summary);
    let mut calls: Vec<u64> = with.counts().iter().map(|(_, calls, _)| *calls).collect();
    calls.sort();
    assert_eq!(calls, [1, 2], "{with:?}");
    let quick = [&["host", "local", &library], &call[..], &["quick"]].concat();
    assert_eq!(world.with(&quick, &summary).messages, [] as [&str; 0]);
}
