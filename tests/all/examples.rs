//! Tests of the programs of c_examples/ with an installed library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::abi::tools::{has, library};
use crate::common::skip;

/// Returns the path of a script in scripts/.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// Runs a script that must succeed, and returns and prints its output.
pub fn run_script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(script(name)).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", script(name).display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "scripts/{name} {arguments:?}: {}", output.status);
    text
}

/// Install tree of this build's library, whose path has a space in it.
pub struct Tree {
    /// Temporary folder that contains the tree.
    pub directory: tempfile::TempDir,
}

impl Tree {
    /// Installs the library.
    pub fn new() -> Self {
        let tree = Tree { directory: tempfile::Builder::new().prefix("install tree ").tempdir().unwrap() };
        run_script("install", &[Path::new("--lib"), &library(), &tree.prefix()]);
        tree
    }

    /// Returns the prefix of the installation.
    pub fn prefix(&self) -> PathBuf {
        self.directory.path().join("prefix")
    }

    fn build(&self) -> PathBuf {
        self.directory.path().join("build")
    }
}

/// Returns the names of the programs in c_examples.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c_examples");
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| [".c", ".cpp", ".f90"].iter().any(|end| name.ends_with(end))).collect();
    names.sort();
    names
}

/// The CMakeLists.txt that is installed with the examples builds each of them.
#[test]
fn examples_are_built_by_cmake() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("c_examples/CMakeLists.txt");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, items) = text.split_once("foreach(name IN ITEMS ").unwrap();
    let listed: Vec<_> = items.split_once(')').unwrap().0.split_whitespace().collect();
    for source in sources() {
        // The list has programs in C without the ending; the others are named in calls.
        let in_list = source.strip_suffix(".c").is_some_and(|name| listed.contains(&name));
        let in_call = text
            .lines()
            .any(|line| line.trim_start().starts_with("example(") && line.contains(&format!(" {source}")));
        assert!(in_list || in_call, "c_examples/CMakeLists.txt does not build {source}");
    }
}

/// Checks that every program passed, or was skipped because its compiler or a device is missing. Programs in
/// C that need no device must not be skipped.
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

/// The script that runs the examples reports a program that fails.
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

/// Removes comments and texts of C and C++ from a program: what is left is compiled.
fn code(source: &str) -> String {
    let (mut code, mut rest) = (String::new(), source);
    while let Some(at) = rest.find(['/', '"']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes() {
            [b'/', b'*', ..] => rest.find("*/").map(|end| end + 2),
            [b'/', b'/', ..] => rest.find('\n'),
            [b'"', ..] => {
                let mut escaped = false;
                let end = rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map(|end| end + 2)
            }
            _ => {
                code.push('/');
                Some(1)
            }
        };
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    code + rest
}

/// Each function of the header is called by a program of c_examples. scripts/docs makes the reference's links
/// to these programs.
#[test]
fn every_function_has_an_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c_examples");
    let called: String = sources()
        .iter()
        .filter(|name| !name.ends_with(".f90"))
        .map(|name| code(&std::fs::read_to_string(folder.join(name)).unwrap()))
        .collect();
    let header = crate::generated::header::parse();
    let functions: Vec<&str> = header.functions.iter().map(|function| function.name.as_str()).collect();
    assert!(functions.len() > 90, "functions are lost: {functions:?}");
    let is_called = |function: &str| {
        called.match_indices(function).any(|(at, _)| {
            let before = called[..at].chars().next_back();
            called[at + function.len()..].starts_with('(')
                && !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let missing: Vec<_> = functions.iter().filter(|function| !is_called(function)).collect();
    assert!(missing.is_empty(), "no program of c_examples calls {missing:?}");
}

#[test]
fn calls_in_comments_and_texts_do_not_count() {
    let source = "a(1); /* b(2) */ c(\"d(\\\"3\"); // e(4)\nf(5 / 6);";
    assert_eq!(code(source), "a(1);  c(); \nf(5 / 6);");
}
