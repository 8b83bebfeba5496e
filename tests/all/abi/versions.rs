//! Tests of the versions of the exported symbols, such as `tarsiaCreate@@TARSIA_0.2`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools::{compile, has, interface_version, library, run, soname, Compiler};
use crate::common::{command_of, skip};

/// Returns the symbols that a shared library exports, as readelf shows them: `name@@version`.
fn defined(library: &Path) -> Vec<String> {
    let listing = run("readelf", |readelf| readelf.args(["--dyn-syms", "-W"]).arg(library));
    let fields = listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let symbols = fields.filter(|fields| fields.len() >= 8 && ["FUNC", "OBJECT"].contains(&fields[3]));
    let defined = symbols.filter(|fields| !["UND", "ABS"].contains(&fields[6]));
    defined.map(|fields| fields[7].to_string()).collect()
}

/// Returns the names of the versions that a shared library defines; the first is its own name.
fn definitions(library: &Path) -> Vec<String> {
    let listing = run("readelf", |readelf| readelf.args(["-V", "-W"]).arg(library));
    let section = listing.split("Version definition section").nth(1).unwrap_or_default();
    let section = section.split("Version needs section").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split("Name: ").nth(1));
    names.map(|name| name.trim().to_string()).collect()
}

/// Returns whether readelf, which lists the versions of symbols, is installed; prints a line if it is not.
fn readelf() -> bool {
    if !has("readelf") {
        skip("versions of symbols: no readelf");
    }
    has("readelf")
}

/// Returns the version of this build's symbols; `None` if the compiler that links cannot give them versions.
fn version() -> Option<String> {
    let version = env!("TARSIA_SYMBOL_VERSION");
    if version.is_empty() {
        skip("versions of symbols: `cargo build` warns that the compiler that links is unknown");
        return None;
    }
    Some(version.to_string())
}

#[test]
fn every_exported_symbol_has_the_version_of_the_interface() {
    let Some(version) = version() else { return };
    assert_eq!(version, format!("TARSIA_{}", interface_version()));
    if !readelf() {
        return;
    }
    let symbols = defined(&library());
    assert!(symbols.len() >= 75, "exports are lost: {symbols:?}");
    let other: Vec<_> = symbols.iter().filter(|symbol| !symbol.ends_with(&format!("@@{version}"))).collect();
    assert!(other.is_empty(), "without the version {version}: {other:?}");
    assert_eq!(definitions(&library()), [soname(), version]);
}

/// The loader does not accept a library with the same name and functions but another version.
#[test]
fn programs_do_not_start_with_another_interface() {
    let Some(version) = version() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let source = |name: &str, text: &str| {
        std::fs::write(file(name), text).unwrap();
        file(name)
    };
    let main = source(
        "main.c",
        "#include \"tarsia.h\"\nint main(void)\n{\n    int version;\n    return (int)tarsiaGetVersion(&version);\n}\n",
    );
    let lib = format!("-L{}", library().parent().unwrap().display());
    compile(Compiler::C, &["-std=c11", &lib, "-ltarsia"], &main, &file("main")).unwrap();
    let start = || command_of(file("main")).env("LD_LIBRARY_PATH", folder.path()).env("LC_ALL", "C").output();

    std::os::unix::fs::symlink(library(), file(&soname())).unwrap();
    let output = start().unwrap();
    assert!(output.status.success(), "{output:?}");

    std::fs::remove_file(file(&soname())).unwrap();
    let other = source(
        "other.c",
        "#include \"tarsia.h\"\ntarsiaStatus_t tarsiaGetVersion(int *version)\n{\n    *version = 0;\n    \
         return TARSIA_STATUS_SUCCESS;\n}\n",
    );
    let script =
        format!("-Wl,--version-script={}", source("list", "TARSIA_OTHER { global: *; };\n").display());
    let name = format!("-Wl,-soname,{}", soname());
    compile(Compiler::C, &["-shared", "-fPIC", &script, &name], &other, &file(&soname())).unwrap();
    let output = start().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains(&format!("version `{version}' not found")),
        "{output:?}"
    );
}

/// C library with one function, linked as rustc links: with a version script that has no name.
struct Linked {
    folder: tempfile::TempDir,
}

impl Linked {
    fn new() -> Self {
        let linked = Linked { folder: tempfile::Builder::new().prefix("with space ").tempdir().unwrap() };
        std::fs::write(linked.path("one.c"), "int one(void);\nint one(void) { return 1; }\n").unwrap();
        linked
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Links the library, with the arguments directly or in a file, and returns its symbols and versions.
    fn link(&self, flags: &[String], in_a_file: bool) -> (Vec<String>, Vec<String>) {
        std::fs::write(self.path("list"), "{\n  global:\n    one;\n\n  local:\n    *;\n};\n").unwrap();
        let (script, output) = (self.path("list"), self.path("libone.so"));
        let mut arguments = vec![
            format!("-Wl,--version-script={}", script.display()),
            "-shared".to_string(),
            "-fPIC".to_string(),
            "-Wl,-soname,libone.so.7".to_string(),
            self.path("one.c").display().to_string(),
            "-o".to_string(),
            output.display().to_string(),
        ];
        arguments.extend(flags.iter().cloned());
        if in_a_file {
            let lines = arguments.iter().map(|line| line.replace('\\', "\\\\").replace(' ', "\\ ") + "\n");
            std::fs::write(self.path("arguments"), lines.collect::<String>()).unwrap();
            arguments = vec![format!("@{}", self.path("arguments").display())];
        }
        run("cc", |cc| cc.args(&arguments));
        (defined(&output), definitions(&output))
    }
}

/// Returns the flags that select rustc's own lld, its linker on x86-64 since 1.90.
fn lld() -> Option<Vec<String>> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout).ok()?.trim());
    let targets = std::fs::read_dir(sysroot.join("lib/rustlib")).ok()?;
    let folders = targets.filter_map(|target| Some(target.ok()?.path().join("bin/gcc-ld")));
    let folder = folders.into_iter().find(|folder| folder.join("ld.lld").exists())?;
    Some(vec![format!("-B{}", folder.display()), "-fuse-ld=lld".to_string()])
}

#[test]
fn each_linker_gives_the_version() {
    if !readelf() {
        return;
    }
    let banner = run("cc", |cc| cc.arg("--version"));
    if !banner.contains("Free Software Foundation") {
        skip("versions of symbols by each linker: cc is no GCC");
        return;
    }
    let mut linkers = vec![("the default linker", Vec::new())];
    // Either may be missing; one of them is the default.
    for (name, flags) in [("GNU ld", Some(vec!["-fuse-ld=bfd".to_string()])), ("lld", lld())] {
        let Some(flags) = flags else { continue };
        let probe = Command::new("cc").args(&flags).args(["-Wl,--version"]).output().unwrap();
        if probe.status.success() {
            linkers.push((name, flags));
        } else {
            skip(format!("versions of symbols by {name}: there is none"));
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/symbol-version");
    let linked = Linked::new();
    for (name, flags) in linkers {
        for in_a_file in [false, true] {
            assert_eq!(linked.link(&flags, in_a_file).0, ["one"], "{name} without a version");
            let wrapper = ["-wrapper".to_string(), format!("/bin/sh,{},SEVEN_7.1", script.display())];
            let (symbols, versions) = linked.link(&[&flags[..], &wrapper].concat(), in_a_file);
            assert_eq!(symbols, ["one@@SEVEN_7.1"], "{name}, arguments in a file: {in_a_file}");
            assert_eq!(versions, ["libone.so.7", "SEVEN_7.1"], "{name}");
        }
    }
}

/// The wrapper script for compilers without `-wrapper`: a version script without a name gets one, and one
/// with a name keeps it.
#[test]
fn script_names_what_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/symbol-version");
    for (before, after) in
        [("{ global: a; };\n", "V_1 { global: a; };\n"), ("OTHER {\n};\n", "OTHER {\n};\n"), ("", "")]
    {
        for option in ["--version-script=", "-Wl,--version-script="] {
            std::fs::write(&list, before).unwrap();
            let argument = format!("{option}{}", list.display());
            let said = run("sh", |sh| sh.arg(&script).args(["V_1", "echo", "a b", &argument]));
            assert_eq!(said, format!("a b {argument}\n"), "the linker gets the arguments");
            assert_eq!(std::fs::read_to_string(&list).unwrap(), after);
        }
    }
    let usage = Command::new("sh").arg(&script).arg("V_1").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&usage.stderr).contains("usage: build/symbol-version"));
    // The script fails as the linker does.
    let failed = Command::new("sh").arg(&script).args(["V_1", "sh", "-c", "exit 3"]).status().unwrap();
    assert_eq!(failed.code(), Some(3));
}
