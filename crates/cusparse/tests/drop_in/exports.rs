//! Tests of the exported symbols and the dynamic section of the shared library.

use std::collections::BTreeSet;

use crate::world::{built, drop_in, tool, World};

fn exports() -> BTreeSet<String> {
    let listing = tool("nm", |nm| nm.args(["-D", "--defined-only"]).arg(drop_in()));
    listing.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_string).collect()
}

/// A program that needs `cusparseSpMV@libcusparse.so.12` is bound to a function without a symbol version, but
/// not to one of another version. Neither functions of the statically linked library tarsia are exported nor
/// its jumps to the driver's functions, which have the same names as those.
#[test]
fn exports_are_functions_of_cusparse_without_a_version() {
    let exports = exports();
    for name in ["cusparseSpMV", "cusparseSpMM_preprocess", "cusparseSpGEMM_copy", "cusparseDestroy"] {
        assert!(exports.contains(name), "{name} is not among {exports:?}");
    }
    let others: Vec<_> =
        exports.iter().filter(|name| !name.starts_with("cusparse") || name.contains('@')).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// The library for lookups stands in front of one function of the loader's, and needs system libraries only.
#[test]
fn the_library_for_lookups_exports_dlsym_alone() {
    let library = built("libtarsia_cusparse_dlsym.so");
    let listing = tool("nm", |nm| nm.args(["-D", "--defined-only"]).arg(&library));
    let names: Vec<_> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["dlsym"]);
    let section = tool("readelf", |readelf| readelf.arg("-dW").arg(&library));
    assert!(
        section.contains("[libtarsia_cusparse_dlsym.so.0]") && !section.contains("libtarsia.so"),
        "{section}"
    );
}

/// The client calls all exported functions, so that the other tests leave none out; the stand-in has a symbol
/// version, as cuSPARSE has.
#[test]
fn the_client_calls_every_function() {
    let world = World::new();
    let stand_in = tool("nm", |nm| nm.args(["-D", "--defined-only"]).arg(world.path("libcusparse.so.12")));
    assert!(stand_in.contains("cusparseSpMV@@libcusparse.so.12"), "{stand_in}");
    world.extension("client.so", &[]);
    let called = tool("nm", |nm| nm.args(["-D", "--undefined-only"]).arg(world.path("client.so")));
    let called = called.lines().filter_map(|line| line.split_whitespace().last()?.split('@').next());
    let called: BTreeSet<String> = called
        .filter(|name| name.starts_with("cusparse") && *name != "cusparseCreate")
        .map(str::to_string)
        .collect();
    assert_eq!(called, exports());
}

#[test]
fn dynamic_section_is_that_of_a_library_to_preload() {
    let section = tool("readelf", |readelf| readelf.arg("-dW").arg(drop_in()));
    let of = |tag: &str| {
        let lines = section.lines().filter(|line| line.contains(tag));
        lines.map(|line| line.split(['[', ']']).nth(1).unwrap_or(line).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of("(SONAME)"), ["libtarsia_cusparse.so.0"]);
    let flags = of("(FLAGS_1)").join(" ");
    assert!(flags.contains("NODELETE") && flags.contains("NOW"), "{flags}");
    // It is loaded into processes without a driver, without cuSPARSE, or with another version of
    // libtarsia.so, and so may need system libraries only.
    let system = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"];
    let needed = of("(NEEDED)");
    assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
    let others: Vec<_> = needed
        .iter()
        .filter(|name| !system.contains(&name.as_str()) && !name.starts_with("ld-linux-"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(of("(RPATH)").is_empty() && of("(RUNPATH)").is_empty());
}

/// `libtarsia.so` must keep its own soname: the linker arguments of a package also reach the shared libraries
/// that depend on it, unless build.rs restricts them.
#[test]
fn tarsia_itself_works_beside_the_drop_in() {
    let world = World::new();
    world.extension("client.so", &["-Wl,-rpath,$ORIGIN"]);
    let tarsia = built("libtarsia.so");
    let section = tool("readelf", |readelf| readelf.arg("-dW").arg(&tarsia));
    let soname = section.lines().find(|line| line.contains("(SONAME)")).unwrap();
    let soname = soname.split(['[', ']']).nth(1).unwrap();
    assert!(soname.starts_with("libtarsia.so."), "{soname}");
    std::os::unix::fs::symlink(&tarsia, world.path(soname)).unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let tarsia = tarsia.display().to_string();
    world.compile("both.c", "both", &[include, &tarsia, "-Wl,-rpath,$ORIGIN", "-ldl"]);

    let program = ["both", &world.file("client.so")];
    let without = world.without(&program);
    assert!(without.output.contains(&format!("tarsiaCreate is in {}", world.file(soname))), "{without:?}");
    let with = world.with(&program, &[("TARSIA_CUSPARSE", "summary")]);
    assert_eq!((&with.output, &with.log), (&without.output, &without.log));
    assert_eq!(with.calls("cusparseSpMV"), 1);
}
