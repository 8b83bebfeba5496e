//! Tests that every call reaches cuSPARSE as it does without the drop-in, and that its result comes back.

use crate::world::{drop_in, Outcome, World};

/// Runs a program without the drop-in and with it, and checks that every call is forwarded once: the stand-in
/// gets the same calls with the same arguments, and the program the same results.
fn nothing_differs(world: &World, program: &[&str]) {
    let without = world.without(program);
    assert_eq!(without.messages, [] as [&str; 0]);
    let calls = without.log.lines().count();
    assert!(calls >= 22, "the client calls little: {without:?}");
    nothing_differs_with(world, program, &without, &[("TARSIA_CUSPARSE", "summary")]);
    // Where products can be taken, functions are called that are jumped to else.
    let forced = [("TARSIA_CUSPARSE", "force"), ("TARSIA_CUSPARSE_TEST_ON_HOST", "1")];
    nothing_differs_with(world, program, &without, &forced);
}

fn nothing_differs_with(world: &World, program: &[&str], without: &Outcome, variables: &[(&str, &str)]) {
    let calls = without.log.lines().count();
    let with = world.with(program, variables);
    assert_eq!(with.output, without.output);
    assert_eq!(with.log, without.log);
    // Two calls in the log are not counted: the drop-in does not intercept cusparseCreate, and the stand-in's
    // SpMM_preprocess calls SpMM_bufferSize within the library.
    let counts = with.counts();
    assert_eq!(counts.len(), calls - 2, "{with:?}");
    assert!(
        counts.iter().all(|(_, calls, outcome)| *calls == 1 && outcome.starts_with("forwarded")),
        "{with:?}"
    );
    let sum = format!("summary: 0 taken, {} forwarded, 0 answered with an error", counts.len());
    with.message(&sum);
    with.message(&format!("({}); may take spmv,spmm,spgemm", world.file("libcusparse.so.12")));
}

#[test]
fn of_linked_programs() {
    let world = World::new();
    world.linked("rpath", "-Wl,--disable-new-dtags");
    world.linked("runpath", "-Wl,--enable-new-dtags");
    nothing_differs(&world, &["rpath"]);
    nothing_differs(&world, &["runpath"]);
}

/// Programs whose symbols are all bound at the start, as distributions link them.
#[test]
fn of_programs_that_bind_at_the_start() {
    let world = World::new();
    world.linked("now", "-Wl,-z,now");
    nothing_differs(&world, &["now"]);
}

/// Extensions loaded with RTLD_LOCAL that find cuSPARSE by their own path, as Python loads PyTorch. cuSPARSE
/// is not in the global scope then.
#[test]
fn of_extensions_that_are_loaded_locally() {
    let world = World::new();
    world.host();
    world.extension("rpath.so", &["-Wl,-rpath,$ORIGIN", "-Wl,--disable-new-dtags"]);
    world.extension("runpath.so", &["-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]);
    for name in ["rpath.so", "runpath.so"] {
        nothing_differs(&world, &["host", "local", &world.file(name), "run", "run"]);
    }
}

/// cuSPARSE loaded by its path, with RTLD_GLOBAL (as CuPy does) or RTLD_LOCAL, before an extension that has
/// no path to it.
#[test]
fn of_extensions_behind_a_library_that_was_loaded_by_path() {
    let world = World::new();
    world.host();
    world.extension("plain.so", &[]);
    let (library, plain) = (world.file("libcusparse.so.12"), world.file("plain.so"));
    for scope in ["global", "local"] {
        nothing_differs(&world, &["host", scope, &library, "local", &plain, "run", "run"]);
    }
}

/// cuSPARSE in a file of another name, as in wheels and packages (libcusparse.so.12.5.4.2): only the soname
/// counts.
#[test]
fn of_a_file_of_another_name() {
    let world = World::new();
    world.linked("client", "-Wl,--enable-new-dtags");
    world.host();
    world.extension("plain.so", &[]);
    std::fs::create_dir(world.path("other")).unwrap();
    std::fs::rename(world.path("libcusparse.so.12"), world.path("other/libcusparse.so.12.5.4")).unwrap();
    let program = [
        "host",
        "local",
        &world.file("other/libcusparse.so.12.5.4"),
        "local",
        &world.file("plain.so"),
        "run",
        "run",
    ];
    let without = world.without(&program);
    let with = world.with(&program, &[("TARSIA_CUSPARSE", "summary")]);
    assert_eq!((&with.output, &with.log), (&without.output, &without.log));
    assert_eq!(with.calls("cusparseSpMM"), 1);
}

/// The drop-in linked in front of cuSPARSE instead of preloaded.
#[test]
fn of_programs_that_are_linked_with_the_drop_in() {
    let world = World::new();
    std::os::unix::fs::symlink(drop_in(), world.path("libtarsia_cusparse.so.0")).unwrap();
    world.compile(
        "client.c",
        "client",
        &["./libtarsia_cusparse.so.0", "./libcusparse.so.12", "-Wl,-rpath,$ORIGIN"],
    );
    world.linked("plain", "-Wl,--enable-new-dtags");
    let without = world.without(&["plain"]);
    let with = world.run(&["client"], |command| command.env("TARSIA_CUSPARSE", "summary"));
    assert_eq!((&with.output, &with.log), (&without.output, &without.log));
    assert_eq!(with.calls("cusparseSpGEMM_copy"), 1);
}

/// cuSPARSE gets the client's arguments whatever version the client was compiled for: SpMVOp_createDescr has
/// 8, 9 or 10 arguments, SpMVOp_bufferSize came later, and versions before 12.7 have no SpMVOp.
#[test]
fn of_every_version() {
    for (version, spmvop) in [([12, 0, 0], 0), ([12, 7, 2], 1270), ([12, 7, 10], 1271), ([12, 9, 4], 1290)] {
        let world = World::of_version(version, spmvop);
        world.linked("client", "-Wl,--enable-new-dtags");
        nothing_differs(&world, &["client"]);
    }
}

/// Versions that Tarsia does not know yet, CUDA 11, whose library has another soname, and functions of
/// cuSPARSE in a library of another name.
#[test]
fn of_unknown_versions() {
    let world = World::of_version([13, 1, 0], 1290);
    world.linked("client", "-Wl,--enable-new-dtags");
    nothing_differs(&world, &["client"]);
    let with = world.with(&["client"], &[]);
    assert_eq!(with.messages.len(), 1, "{with:?}");
    let line = with.message("cuSPARSE 13.1.0");
    assert!(line.contains("every call is forwarded"), "{line}");
    let with = world.with(&["client"], &[("TARSIA_CUSPARSE", "summary")]);
    let of = |name: &str| with.counts().into_iter().find(|(found, ..)| found == name).unwrap().2;
    assert_eq!(of("cusparseSpMV"), "forwarded: unknown version of cuSPARSE");
    assert_eq!(of("cusparseDestroy"), "forwarded: cuSPARSE always gets this call");

    for (soname, scope) in
        [("libcusparse.so.11", "global"), ("libcusparse.so.11", "local"), ("libother.so.7", "global")]
    {
        let world = World::new();
        std::fs::remove_file(world.path("libcusparse.so.12")).unwrap();
        world.stand_in(soname, soname, &["-DMAJOR=11", "-DMINOR=7", "-DPATCH=5"]);
        world.host();
        let library = format!("./{soname}");
        world.compile("client.c", "client.so", &["-shared", "-DEXTENSION", &library]);
        let (library, client) = (world.file(soname), world.file("client.so"));
        let mut program = vec!["host", scope, &library, "local", &client, "run", "run"];
        if soname == "libother.so.7" {
            // Functions of cuSPARSE in a library of another name are found in the global scope, which the
            // loader searches after the preloaded libraries.
            world.compile("client.c", "client", &["./libother.so.7", "-Wl,-rpath,$ORIGIN"]);
            program = vec!["client"];
        }
        let without = world.without(&program);
        let with = world.with(&program, &[("TARSIA_CUSPARSE", "summary")]);
        assert_eq!((&with.output, &with.log), (&without.output, &without.log), "{soname}");
        with.message("summary: cuSPARSE 11.7.5 (");
        assert_eq!(with.calls("cusparseSpMM_bufferSize"), 1);
    }
}

/// The drop-in exports SpMVOp even if the loaded cuSPARSE lacks it. A program that calls it then gets
/// NOT_SUPPORTED.
#[test]
fn what_cusparse_does_not_have_is_refused() {
    let world = World::of_version([12, 5, 4], 0);
    world.host();
    let library = world.file("libcusparse.so.12");
    let program =
        ["host", "local", &library, "default", "cusparseSpMVOp_destroyPlan", "handle", "cusparseDestroy"];
    let with = world.with(&program, &[("TARSIA_CUSPARSE", "summary")]);
    assert_eq!(with.output, "cusparseSpMVOp_destroyPlan: 10\ncusparseDestroy: 101\n");
    let expected = [("cusparseSpMVOp_destroyPlan".to_string(), 1)];
    let counts: Vec<_> = with.counts().into_iter().map(|(name, calls, _)| (name, calls)).collect();
    assert_eq!(counts, expected);
    with.message("cusparseSpMVOp_destroyPlan answered NOT_SUPPORTED");
    with.message("0 taken, 0 forwarded, 1 answered with an error");
    assert_eq!(world.with(&program, &[]).messages, [] as [&str; 0]);
}

/// Calls fail without any cuSPARSE, and if the drop-in itself is loaded under cuSPARSE's name, in which case
/// it must not call itself.
#[test]
fn without_cusparse_calls_are_refused() {
    let world = World::new();
    world.host();
    let name = "cusparseDestroy";
    let alone = world.with(&["host", "default", name, "default", name], &[]);
    assert_eq!(alone.output, "cusparseDestroy: 1\ncusparseDestroy: 1\n");
    assert_eq!(alone.messages.len(), 1, "{alone:?}");
    alone.message("no cuSPARSE is loaded");

    std::fs::remove_file(world.path("libcusparse.so.12")).unwrap();
    std::fs::copy(drop_in(), world.path("libcusparse.so.12")).unwrap();
    let path = world.file("libcusparse.so.12");
    let itself = world.without(&["host", "global", &path, "default", name]);
    assert_eq!(itself.output, "cusparseDestroy: 1\n");

    // cuSPARSE may be loaded after a call that could not be forwarded.
    let world = World::new();
    world.host();
    let library = world.file("libcusparse.so.12");
    let later = world.with(&["host", "default", name, "local", &library, "default", name], &[]);
    assert_eq!(later.output, "cusparseDestroy: 1\ncusparseDestroy: 101\n");
}

#[test]
fn many_threads_call_at_once() {
    let world = World::new();
    world.host();
    let program = ["host", "local", &world.file("libcusparse.so.12"), "threads", "cusparseDestroy"];
    let with = world.run(&program, |command| {
        command.env("LD_PRELOAD", drop_in()).env("TARSIA_CUSPARSE", "summary").env_remove("STAND_IN_LOG")
    });
    assert_eq!(with.calls("cusparseDestroy"), 8000);
}
