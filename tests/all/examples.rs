//! An install tree as a user gets it, and the programs of c_examples/ in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::abi::tools::{has, library, run};
use crate::common::skip;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// Runs a script that must succeed, and shows what it prints.
fn run_script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(script(name)).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", script(name).display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "scripts/{name} {arguments:?}: {}", output.status);
    text
}

/// An install tree of this build's library, whose path has a space in it.
struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Tree { directory: tempfile::Builder::new().prefix("install tree ").tempdir().unwrap() };
        run_script("install", &[Path::new("--lib"), &library(), &tree.prefix()]);
        tree
    }

    fn prefix(&self) -> PathBuf {
        self.directory.path().join("prefix")
    }

    fn build(&self) -> PathBuf {
        self.directory.path().join("build")
    }
}

/// Programs in c_examples.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c_examples");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| [".c", ".cpp", ".f90"].iter().any(|end| name.ends_with(end))).collect();
    names.sort();
    names
}

/// Every program passed, or was skipped because its compiler (or a device) is
/// missing; the ones in C that need neither are never skipped.
fn check_programs(log: &str) {
    let sources = sources();
    assert!(sources.len() >= 5, "examples are lost: {sources:?}");
    for source in sources {
        let passed = log.lines().any(|line| line == format!("PASS {source}"));
        let skipped = log.lines().find(|line| line.starts_with(&format!("SKIP {source}:")));
        if let Some(line) = skipped {
            assert!(!source.ends_with(".c") || source.starts_with("cuda_"), "{line}");
            skip(line.trim_start_matches("SKIP "));
        }
        assert!(passed || skipped.is_some(), "scripts/examples says nothing of {source}:\n{log}");
    }
}

#[test]
fn examples_build_and_run_against_an_install_tree() {
    let tree = Tree::new();
    check_programs(&run_script("examples", &[&tree.prefix(), &tree.build()]));
}

#[test]
fn examples_are_clean_under_valgrind() {
    if !has("valgrind") {
        skip("examples under valgrind: no valgrind");
        return;
    }
    let tree = Tree::new();
    check_programs(&run_script("examples", &[&tree.prefix(), &tree.build(), Path::new("--valgrind")]));
}

/// The script that all of this relies on does notice a program that fails.
#[test]
fn examples_script_reports_a_failure() {
    let tree = Tree::new();
    // A header that no example compiles with.
    std::fs::write(tree.prefix().join("include/tarsia.h"), "#error not this one\n").unwrap();
    let output = Command::new(script("examples")).args([tree.prefix(), tree.build()]).output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{log}");
    for source in sources().iter().filter(|source| source.ends_with(".c")) {
        let failed = log.contains(&format!("FAIL {source}: does not build"));
        // Without a CUDA toolkit there is nothing to build these with.
        let skipped = source.starts_with("cuda_") && log.contains(&format!("SKIP {source}: no CUDA toolkit"));
        assert!(failed || skipped, "{source}: {log}");
    }
}

#[test]
fn install_tree_has_what_a_linker_and_a_loader_look_for() {
    let tree = Tree::new();
    let lib = tree.prefix().join("lib");
    let (major, version) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION"));
    let link =
        |name: &str| std::fs::read_link(lib.join(name)).unwrap().into_os_string().into_string().unwrap();
    assert_eq!(link("libtarsia.so"), format!("libtarsia.so.{major}"));
    assert_eq!(link(&format!("libtarsia.so.{major}")), format!("libtarsia.so.{version}"));
    let read =
        |path: PathBuf| std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(lib.join("libtarsia.so")) == read(library()), "another library was installed");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (installed, source) in
        [("include/tarsia.h", "include/tarsia.h"), ("share/fortran/tarsia.f90", "include/tarsia.f90")]
    {
        assert!(
            read(tree.prefix().join(installed)) == read(root.join(source)),
            "{installed} is not {source}"
        );
    }
    // Installed once more over itself, and then moved: nothing depends on where it was.
    run_script("install", &[Path::new("--lib"), &library(), &tree.prefix()]);
    let moved = tree.directory.path().join("moved");
    std::fs::rename(tree.prefix(), &moved).unwrap();
    assert!(read(moved.join("lib/libtarsia.so")) == read(library()));
}

#[test]
fn install_refuses_what_is_not_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.so");
    for arguments in [
        vec![Path::new("--lib"), &missing, directory.path()],
        vec![Path::new("--lib")],
        vec![Path::new("--unknown"), directory.path()],
        vec![],
    ] {
        let output = Command::new(script("install")).args(&arguments).output().unwrap();
        assert!(!output.status.success(), "scripts/install {arguments:?} succeeded");
        assert!(!output.stderr.is_empty(), "scripts/install {arguments:?} says nothing");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was installed");
}

#[test]
fn pkg_config_finds_the_tree() {
    if !has("pkg-config") {
        skip("pkg-config file: no pkg-config");
        return;
    }
    let tree = Tree::new();
    let ask = |prefix: &Path, what: &[&str]| {
        let folder = prefix.join("lib/pkgconfig");
        let text = run("pkg-config", |pkg_config| {
            pkg_config.env("PKG_CONFIG_LIBDIR", folder).env_remove("PKG_CONFIG_PATH").args(what).arg("tarsia")
        });
        // A space in a path comes with a backslash.
        text.trim().replace("\\ ", " ")
    };
    let check = |prefix: &Path| {
        assert_eq!(ask(prefix, &["--modversion"]), env!("CARGO_PKG_VERSION"));
        let flags = ask(prefix, &["--cflags", "--libs"]);
        // The folders are told relative to the file: compare what they are.
        let folder = |flag: &str| {
            let start = flags.find(flag).unwrap_or_else(|| panic!("no {flag} in `{flags}`")) + flag.len();
            let rest = &flags[start..];
            PathBuf::from(rest.split(" -").next().unwrap_or(rest).trim()).canonicalize().unwrap()
        };
        assert_eq!(folder("-I"), prefix.join("include").canonicalize().unwrap());
        assert_eq!(folder("-L"), prefix.join("lib").canonicalize().unwrap());
        assert!(flags.split_whitespace().any(|flag| flag == "-ltarsia"), "{flags}");
    };
    check(&tree.prefix());
    // The tree may be moved.
    let moved = tree.directory.path().join("moved elsewhere");
    std::fs::rename(tree.prefix(), &moved).unwrap();
    check(&moved);
}
