//! Helpers that find the shared library of this test executable, and that run compilers and tools of
//! binutils.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::command_of;

/// Returns the path of libtarsia.so of the build that this executable belongs to.
///
/// Cargo makes the shared library and the Rust library that is linked into this executable in one run of
/// rustc, both in the executable's own folder. (`target/<profile>/libtarsia.so` is a copy that only
/// `cargo build` renews.)
pub fn library() -> PathBuf {
    let executable = std::env::current_exe().expect("the test knows its own path");
    of_one_build(executable.parent().expect("it is in a folder")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the version of the interface: a program that was linked with one version starts with no other.
/// While the library's version is 0.x, each minor version has an interface version of its own.
pub fn interface_version() -> String {
    match (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")) {
        ("0", minor) => format!("0.{minor}"),
        (major, _) => major.to_string(),
    }
}

/// Returns the SONAME, by which programs ask the loader for the library.
pub fn soname() -> String {
    format!("libtarsia.so.{}", interface_version())
}

/// Returns the shared library in a folder, if it is as old as the Rust library there.
fn of_one_build(folder: &Path) -> Result<PathBuf, String> {
    let time = |name: &str| {
        let path = folder.join(name);
        let time = std::fs::metadata(&path).and_then(|data| data.modified());
        time.map(|time| (path.clone(), time)).map_err(|error| format!("{}: {error}", path.display()))
    };
    let ((shared, shared_time), (_, rust_time)) = (time("libtarsia.so")?, time("libtarsia.rlib")?);
    let apart = shared_time.duration_since(rust_time).unwrap_or_else(|earlier| earlier.duration());
    // Both are written at the end of one run; linking takes seconds.
    if apart < Duration::from_secs(120) {
        return Ok(shared);
    }
    Err(format!("{} is of another build: it is {apart:?} away from libtarsia.rlib", shared.display()))
}

#[test]
fn stale_libraries_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let touch = |name: &str, age: u64| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    };
    touch("libtarsia.rlib", 1000);
    assert!(of_one_build(folder.path()).unwrap_err().contains("libtarsia.so"), "there is none");
    touch("libtarsia.so", 990);
    assert_eq!(of_one_build(folder.path()).unwrap(), folder.path().join("libtarsia.so"));
    for age in [0, 5000] {
        touch("libtarsia.so", age);
        assert!(of_one_build(folder.path()).is_err(), "{age} seconds old");
    }
}

/// Returns whether a program is installed.
pub fn has(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok()
}

/// Runs a program that must succeed, and returns its standard output.
pub fn run(program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
    finish(Command::new(program), arguments)
}

/// Runs a program that a test has compiled, which must succeed, and returns its standard output.
pub fn run_built(program: &Path, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
    finish(command_of(program), arguments)
}

fn finish(mut command: Command, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
    // The listing must not depend on the language of the user.
    arguments(command.env("LC_ALL", "C"));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}

/// Returns the output of a tool of binutils (`nm`, `readelf`); on a machine without it prints that the test
/// is skipped and returns `None`, since the tests need only Rust and a C compiler. `.ci/run` installs both
/// tools.
pub fn listing(
    tool: &str,
    skipped: &str,
    arguments: impl FnOnce(&mut Command) -> &mut Command,
) -> Option<String> {
    if has(tool) {
        return Some(run(tool, arguments));
    }
    crate::common::skip(format!("{skipped}: no {tool}"));
    None
}

/// Compiler of C or C++.
#[derive(Clone, Copy, Debug)]
pub enum Compiler {
    /// `$CC`, or else `cc`, which exists since rustc links with it.
    C,
    /// `$CXX`, or else `c++`; may be missing.
    Cpp,
    /// `clang++`; may be missing.
    Clang,
}

impl Compiler {
    /// Returns the program, or the reason why it cannot be run.
    pub fn program(self) -> Result<String, String> {
        let named =
            |variable: &str, default: &str| std::env::var(variable).unwrap_or_else(|_| default.to_string());
        let program = match self {
            Compiler::C => named("CC", "cc"),
            Compiler::Cpp => named("CXX", "c++"),
            Compiler::Clang => "clang++".to_string(),
        };
        if has(&program) {
            Ok(program)
        } else {
            Err(format!("no compiler `{program}`"))
        }
    }
}

/// Compiles a file that includes tarsia.h, with every warning as an error; `Err` if there is no such
/// compiler.
pub fn compile(compiler: Compiler, flags: &[&str], source: &Path, output: &Path) -> Result<(), String> {
    let program = compiler.program()?;
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    run(&program, |command| {
        let command = command.args(["-Wall", "-Wextra", "-pedantic", "-Werror"]).arg("-I").arg(include);
        // Libraries among the flags must follow the source.
        command.arg(source).args(flags).arg("-o").arg(output)
    });
    Ok(())
}

/// C and C++ programs that are linked with the library, in a folder of their own, where they find it under
/// its SONAME.
pub struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    /// Makes an empty folder for programs.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(library(), folder.path().join(soname())).unwrap();
        Programs { folder }
    }

    /// Returns the path of a file beside the programs.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles a program from a file of tests/all.
    pub fn add(&self, name: &str, source: &str, flags: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all").join(source);
        self.compile(Compiler::C, name, &source, &[&["-std=c11"], flags].concat()).unwrap();
    }

    /// Compiles a program from any file; `Err` if there is no such compiler.
    pub fn compile(
        &self,
        compiler: Compiler,
        name: &str,
        source: &Path,
        flags: &[&str],
    ) -> Result<(), String> {
        let folder = format!("-L{}", library().parent().unwrap().display());
        compile(compiler, &[&[folder.as_str(), "-ltarsia"], flags].concat(), source, &self.path(name))
    }

    /// Runs a program that must succeed, and returns its standard output.
    pub fn run(&self, name: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
        run_built(&self.path(name), |command| arguments(command.env("LD_LIBRARY_PATH", self.folder.path())))
    }
}
