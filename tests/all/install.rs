//! Tests of scripts/install: the tree that it makes, and errors. Tests that need CMake are in .ci/install,
//! since these need only Rust and a C compiler.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::abi::tools::{compile, has, interface_version, library, run, soname, Compiler};
use crate::common::{root, skip};
use crate::examples::{run_script, script, Tree};

/// Runs the script with this build's library.
fn install(arguments: &[&str], destdir: Option<&Path>) -> Output {
    let mut command = Command::new(script("install"));
    command.arg("--lib").arg(library()).args(arguments).env_remove("DESTDIR");
    command.envs(destdir.map(|destdir| ("DESTDIR", destdir))).output().unwrap()
}

/// Returns the sorted paths of the files in a tree, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                all.push(entry.path().strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    all.sort();
    all
}

/// Returns the expected files of a tree with the library in this folder and without the program.
fn expected(libdir: &str) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let mut all: Vec<String> =
        ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
            .iter()
            .map(|name| format!("share/doc/tarsia/{name}"))
            .chain(["tarsia.h", "tarsia.hpp"].map(|name| format!("include/{name}")))
            .chain(["core", "handle", "matrices", "plans"].map(|part| format!("include/tarsia/{part}.hpp")))
            .chain(["share/fortran/tarsia.f90".to_string()])
            .chain(
                [
                    ("docs", "doc/tarsia/docs"),
                    ("c_examples", "tarsia/examples"),
                    ("plugins/petsc/include", "tarsia/petsc/include"),
                    ("plugins/petsc/src", "tarsia/petsc/src"),
                ]
                .iter()
                .flat_map(|(folder, installed)| {
                    files(&root().join(folder))
                        .into_iter()
                        .map(move |file| format!("share/{installed}/{file}"))
                }),
            )
            .chain(["share/tarsia/petsc/CMakeLists.txt".to_string()])
            .chain(
                [
                    "doc/tarsia/benches/results/h100-speedups.png",
                    "doc/tarsia/benches/results/h100-winners.png",
                    "doc/tarsia/c_examples",
                    "tarsia/manifest",
                ]
                .map(|name| format!("share/{name}")),
            )
            .chain(
                [
                    "libtarsia.so",
                    &soname(),
                    &format!("libtarsia.so.{version}"),
                    "pkgconfig/tarsia.pc",
                    "cmake/tarsia/tarsiaConfig.cmake",
                    "cmake/tarsia/tarsiaConfigVersion.cmake",
                ]
                .iter()
                .map(|name| format!("{libdir}/{name}")),
            )
            .collect();
    all.sort();
    all
}

/// Checks that a program that is linked by plain flags runs with the library of this tree.
fn plain_consumer_runs(tree: &Path, libdir: &str) {
    let build = tempfile::tempdir().unwrap();
    let (source, program) = (build.path().join("consumer.c"), build.path().join("consumer"));
    let text = "#include <stdio.h>\n#include \"tarsia.h\"\n\
                int main(void)\n{\n    int version = 0;\n    tarsiaStatus_t status = tarsiaGetVersion(&version);\n\
                \x20   printf(\"%d\\n\", version);\n    return status != TARSIA_STATUS_SUCCESS;\n}\n";
    std::fs::write(&source, text).unwrap();
    // The tree's header, beside the source, is found before any other.
    std::fs::copy(tree.join("include/tarsia.h"), build.path().join("tarsia.h")).unwrap();
    let lib = tree.join(libdir).display().to_string();
    let flags = ["-std=c11", &format!("-L{lib}"), "-ltarsia", &format!("-Wl,-rpath,{lib}")];
    compile(Compiler::C, &flags, &source, &program).unwrap();
    let said = run(program.to_str().unwrap(), |program| program.env_remove("LD_LIBRARY_PATH"));
    let part = |text: &str| text.parse::<i32>().unwrap();
    let version = 10_000 * part(env!("CARGO_PKG_VERSION_MAJOR"))
        + 100 * part(env!("CARGO_PKG_VERSION_MINOR"))
        + part(env!("CARGO_PKG_VERSION_PATCH"));
    assert_eq!(said.trim(), version.to_string());
}

#[test]
fn destdir_goes_before_the_prefix() {
    let folder = tempfile::Builder::new().prefix("staged tree ").tempdir().unwrap();
    let (stage, prefix) = (folder.path().join("stage"), folder.path().join("opt/of this"));
    let output = install(&[&format!("{}/", prefix.display())], Some(&stage));
    assert!(output.status.success(), "{output:?}");
    assert!(!prefix.exists(), "DESTDIR was ignored");
    let tree = stage.join(prefix.strip_prefix("/").unwrap());
    assert_eq!(files(&tree), expected("lib"));
    assert_eq!(files(&stage).len(), files(&tree).len(), "something is beside the prefix");
    plain_consumer_runs(&tree, "lib");
    // No file names the folder where the tree was made.
    for file in files(&tree).iter().filter(|file| file.ends_with(".pc") || file.ends_with(".cmake")) {
        let text = std::fs::read_to_string(tree.join(file)).unwrap();
        assert!(!text.contains("of this") && !text.contains("staged tree"), "{file}:\n{text}");
        assert!(!text.contains('@'), "a template is not filled, {file}:\n{text}");
    }
    // DESTDIR cannot be put before a relative PREFIX.
    let output = install(&["opt"], Some(&stage));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn libdir_says_where_the_library_goes() {
    for (option, libdir) in
        [("lib64", "lib64"), ("./lib//x86_64-linux-gnu/", "lib/x86_64-linux-gnu"), ("PREFIX/lib64", "lib64")]
    {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("prefix").display().to_string();
        let option = option.replace("PREFIX", &prefix);
        let output = install(&["--libdir", &option, &prefix], None);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(files(Path::new(&prefix)), expected(libdir));
        plain_consumer_runs(Path::new(&prefix), libdir);
        // Relative path from the file's folder to the prefix.
        let up = "/..".repeat(libdir.split('/').count());
        let read = |name: &str| std::fs::read_to_string(Path::new(&prefix).join(libdir).join(name)).unwrap();
        let pc = read("pkgconfig/tarsia.pc");
        assert!(pc.contains(&format!("prefix=${{pcfiledir}}/..{up}\nlibdir=${{prefix}}/{libdir}\n")), "{pc}");
        let cmake = read("cmake/tarsia/tarsiaConfig.cmake");
        assert!(cmake.contains(&format!("${{_tarsia_prefix}}/../..{up}\" ABSOLUTE")), "{cmake}");
        assert!(cmake.contains(&format!("/{libdir}/libtarsia.so.{}", env!("CARGO_PKG_VERSION"))), "{cmake}");
        assert!(cmake.contains(&format!("IMPORTED_SONAME \"{}\"", soname())), "{cmake}");
    }
    for wrong in ["/elsewhere/lib", "../lib", "lib/../../lib", "a b", "/", "."] {
        let folder = tempfile::tempdir().unwrap();
        let output = install(&["--libdir", wrong, folder.path().to_str().unwrap()], None);
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("--libdir"), "{output:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{wrong}: something was installed");
    }
}

#[test]
fn program_is_installed_where_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    // A script replaces the program, which the tests of another package build.
    let given = tempfile::tempdir().unwrap();
    let given = given.path().join("program");
    std::fs::write(&given, "#!/bin/sh\necho \"the program, $*\"\n").unwrap();
    let output = install(&["--program", given.to_str().unwrap(), folder.path().to_str().unwrap()], None);
    assert!(output.status.success(), "{output:?}");
    let program = folder.path().join("bin/tarsia");
    assert_eq!(std::fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    let said = run(program.to_str().unwrap(), |program| program.arg("--version"));
    assert_eq!(said, "the program, --version\n");
    // Whoever has installed it is told what to do next, by paths that exist.
    let said = String::from_utf8(output.stdout).unwrap();
    let tree = folder.path().canonicalize().unwrap().display().to_string();
    let next: Vec<&str> = said.lines().skip(1).collect();
    assert_eq!(next.len(), 6, "{said}");
    for path in next.iter().filter_map(|line| line.find(&tree).map(|at| line[at..].trim_end_matches(" demo")))
    {
        assert!(Path::new(path).exists(), "{path} is not there: {said}");
    }
    assert_eq!(files(folder.path()).len(), expected("lib").len() + 1);
}

/// Compiles a library that stands in for the drop-in, with these linker arguments.
fn stand_in(folder: &Path, arguments: &[&str]) -> PathBuf {
    let (source, library) = (folder.join("drop_in.c"), folder.join("drop_in.so"));
    std::fs::write(&source, "int cusparseNone;\n").unwrap();
    compile(Compiler::C, &[&["-shared", "-fPIC"], arguments].concat(), &source, &library).unwrap();
    library
}

const DROP_IN_SONAME: &str = "-Wl,-soname,libtarsia_cusparse.so.0";

#[test]
fn drop_in_is_installed_where_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let given = stand_in(folder.path(), &[DROP_IN_SONAME]);
    let prefix = folder.path().join("prefix");
    let arguments = ["--drop-in", given.to_str().unwrap(), prefix.to_str().unwrap()];
    let output = install(&arguments, None);
    assert!(output.status.success(), "{output:?}");
    let lib = prefix.join("lib");
    assert!(std::fs::read(lib.join("libtarsia_cusparse.so")).unwrap() == std::fs::read(&given).unwrap());
    let version = env!("CARGO_PKG_VERSION");
    for (link, target) in [
        ("libtarsia_cusparse.so", "libtarsia_cusparse.so.0".to_string()),
        ("libtarsia_cusparse.so.0", format!("libtarsia_cusparse.so.{version}")),
    ] {
        assert_eq!(std::fs::read_link(lib.join(link)).unwrap(), Path::new(&target));
    }
    assert_eq!(files(&prefix).len(), expected("lib").len() + 3);

    if !has("readelf") {
        skip("scripts/install refuses what is not the drop-in: no readelf");
        return;
    }
    // Programs ask for symbols of cuSPARSE's version, which one of another version does not satisfy.
    let map = folder.path().join("map");
    std::fs::write(&map, "TARSIA_0.2 { global: *; };\n").unwrap();
    let map = format!("-Wl,--version-script={}", map.display());
    for (arguments, text) in [(&[][..], "SONAME"), (&[DROP_IN_SONAME, &map], "have a version")] {
        let given = stand_in(folder.path(), arguments);
        let nowhere = folder.path().join("nowhere");
        let arguments = ["--drop-in", given.to_str().unwrap(), nowhere.to_str().unwrap()];
        let output = install(&arguments, None);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(text), "{text}: {output:?}");
        assert!(!nowhere.exists(), "something was installed");
    }
}

/// Archives that cannot hold links get each library once, under its SONAME, and the same files otherwise.
#[test]
fn tree_without_links_serves_linkers_and_loaders() {
    let folder = tempfile::tempdir().unwrap();
    let given = stand_in(folder.path(), &[DROP_IN_SONAME]);
    let prefix = folder.path().join("prefix");
    let arguments = ["--no-links", "--drop-in", given.to_str().unwrap(), prefix.to_str().unwrap()];
    let output = install(&arguments, None);
    assert!(output.status.success(), "{output:?}");
    let found = files(&prefix);
    for name in &found {
        assert!(!prefix.join(name).is_symlink(), "{name} is a link");
    }
    let lib: Vec<_> = found.iter().filter_map(|name| name.strip_prefix("lib/lib")).collect();
    let soname = soname();
    assert_eq!(
        lib,
        ["tarsia.so", soname.strip_prefix("lib").unwrap(), "tarsia_cusparse.so", "tarsia_cusparse.so.0"]
    );
    let linker_script = std::fs::read_to_string(prefix.join("lib/libtarsia.so")).unwrap();
    assert_eq!(linker_script, format!("INPUT({soname})\n"));
    plain_consumer_runs(&prefix, "lib");
    let cmake = std::fs::read_to_string(prefix.join("lib/cmake/tarsia/tarsiaConfig.cmake")).unwrap();
    assert!(cmake.contains(&format!("IMPORTED_LOCATION \"${{_tarsia_prefix}}/lib/{soname}\"")), "{cmake}");
    // The pages have links to the examples.
    let examples = |folder: &str| files(&prefix.join(folder));
    assert_eq!(examples("share/doc/tarsia/c_examples"), examples("share/tarsia/examples"));

    // A tree with links is not put over it, nor the other way round.
    let path = prefix.to_str().unwrap();
    for (arguments, text) in [(&[path][..], "without links"), (&["--no-links", path], "empty PREFIX")] {
        let output = install(arguments, None);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(text), "{output:?}");
        assert_eq!(files(&prefix), found);
    }
}

/// Runs the script with --uninstall.
fn uninstall(prefix: &Path, destdir: Option<&Path>) -> Output {
    let mut command = Command::new(script("install"));
    command.arg("--uninstall").arg(prefix).env_remove("DESTDIR");
    command.envs(destdir.map(|destdir| ("DESTDIR", destdir))).output().unwrap()
}

#[test]
fn uninstall_removes_what_was_installed() {
    let folder = tempfile::Builder::new().prefix("uninstalled tree ").tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let path = prefix.to_str().unwrap();
    // All that is not the library's stays: a folder that was there before, files in folders that were made.
    std::fs::create_dir_all(prefix.join("include")).unwrap();
    for arguments in [&[path][..], &["--libdir", "lib64", path]] {
        assert!(install(arguments, None).status.success());
    }
    std::fs::write(prefix.join("lib/pkgconfig/another.pc"), "").unwrap();
    let manifest = std::fs::read_to_string(prefix.join("share/tarsia/manifest")).unwrap();
    let listed: Vec<_> = manifest.lines().filter(|line| !line.ends_with('/')).collect();
    let installed = files(&prefix);
    assert_eq!(listed, installed.iter().filter(|name| !name.ends_with("another.pc")).collect::<Vec<_>>());

    let moved = folder.path().join("moved");
    std::fs::rename(&prefix, &moved).unwrap();
    let output = uninstall(&moved, None);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(&moved), ["lib/pkgconfig/another.pc"]);
    let mut left: Vec<_> =
        std::fs::read_dir(&moved).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["include", "lib"]);

    // PREFIX goes, too, if it was made.
    let stage = folder.path().join("stage");
    assert!(install(&["/opt/tarsia"], Some(&stage)).status.success());
    let output = uninstall(Path::new("/opt/tarsia/"), Some(&stage));
    assert!(output.status.success(), "{output:?}");
    assert!(stage.join("opt").exists() && !stage.join("opt/tarsia").exists());
}

#[test]
fn uninstall_removes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    std::fs::create_dir_all(prefix.join("share/tarsia")).unwrap();
    let output = uninstall(&prefix, None);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no share/tarsia/manifest"));

    let (inside, outside) = (prefix.join("file"), folder.path().join("file"));
    std::fs::write(&inside, "").unwrap();
    std::fs::write(&outside, "").unwrap();
    for line in ["../file", "share/../../file", "..", outside.to_str().unwrap()] {
        std::fs::write(prefix.join("share/tarsia/manifest"), format!("file\n{line}\n")).unwrap();
        let output = uninstall(&prefix, None);
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("nothing was removed"), "{output:?}");
        assert!(inside.exists() && outside.exists(), "{line}");
    }
    let output = install(&["--uninstall", prefix.to_str().unwrap()], None);
    assert_eq!(output.status.code(), Some(2), "--uninstall with --lib: {output:?}");
}

#[test]
fn help_is_no_error() {
    for option in ["--help", "-h"] {
        let output = Command::new(script("install")).arg(option).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.stderr.is_empty(), "{output:?}");
        for word in [
            "usage: scripts/install",
            "--libdir DIR",
            "--program FILE",
            "--drop-in FILE",
            "--uninstall",
            "DESTDIR",
            "tarsia::tarsia",
        ] {
            assert!(text.contains(word), "no {word} in:\n{text}");
        }
        let interface = interface_version();
        assert!(text.contains(&format!("<interface> is {interface} ")), "no {interface} in:\n{text}");
    }
}

/// Build instructions say that compiling the kernels takes minutes, and less for fewer architectures.
#[test]
fn documents_say_how_long_kernels_take() {
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("CUDA kernels\n")).unwrap();
    let mut texts = vec![
        ("docs/install.md", section.to_string()),
        ("README.md", std::fs::read_to_string(root().join("README.md")).unwrap()),
    ];
    for name in ["gpu-bundle", "release", "install-nvcc"] {
        let output = Command::new(script(name)).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        texts.push((name, String::from_utf8(output.stdout).unwrap()));
    }
    for (name, text) in texts {
        for words in ["CPU minutes", "TARSIA_CUDA_ARCHS=90a", "none"] {
            assert!(text.contains(words), "{name} does not say {words}:\n{text}");
        }
    }
}

/// A new minor version changes the library's SONAME, which the README and other documents mention.
#[test]
fn documents_name_this_interface() {
    let interface = interface_version();
    let package = format!("find_package(tarsia {interface} ");
    for (file, words) in [
        ("README.md", vec![soname(), format!("TARSIA_{interface}"), package.clone()]),
        ("docs/install.md", vec![soname(), format!("TARSIA_{interface}"), package.clone()]),
        ("scripts/install-files/tarsiaConfig.cmake.in", vec![package.clone()]),
        ("c_examples/CMakeLists.txt", vec![package]),
        ("CHANGELOG.md", vec![format!("\n## {}", env!("CARGO_PKG_VERSION"))]),
    ] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        for word in words {
            assert!(text.contains(&word), "{file} does not say {word}");
        }
    }
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (there, missing) = (folder.path().to_str().unwrap(), folder.path().join("missing"));
    let missing = missing.to_str().unwrap();
    for (arguments, code, text) in [
        (vec!["--lib", missing, there], 1, missing),
        (vec!["--lib"], 2, "--lib needs a value"),
        (vec!["--libdir", "", there], 2, "--libdir needs a value"),
        (vec!["--unknown", there], 2, "no option '--unknown'"),
        (vec!["--unknown=1", there], 2, "no option '--unknown=1'"),
        (vec![there, "another"], 2, "two PREFIXes"),
        (vec![""], 2, "PREFIX is empty"),
        (vec![], 2, "PREFIX is missing"),
        // A file that is not a library of this version.
        (vec!["--lib", "/bin/sh", there], 1, "SONAME"),
    ] {
        if text == "SONAME" && !has("readelf") {
            skip("scripts/install refuses a library of another version: no readelf");
            continue;
        }
        let output = Command::new(script("install")).args(&arguments).env_remove("DESTDIR").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "scripts/install {arguments:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.starts_with("install: ") && said.contains(text),
            "scripts/install {arguments:?}: {said}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was installed");
    }
    // A PREFIX that cannot be is refused before anything is built, so that no library is given here.
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("prefix").display().to_string();
    let output = Command::new(script("install")).arg(&below).env_remove("DESTDIR").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said,
        format!(
            "install: {} is not a folder, so that nothing can be installed in {below}\n",
            file.path().display()
        )
    );
    for (option, text) in [("--program", "no such program"), ("--drop-in", "no such drop-in")] {
        let output = install(&[option, missing, there], None);
        assert!(String::from_utf8_lossy(&output.stderr).contains(text), "{output:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something was installed");
    }
}

/// A library whose symbols have no version is refused; linkers that build.rs does not know make such ones.
#[test]
fn library_without_versions_is_refused() {
    if !has("readelf") {
        skip("scripts/install refuses a library without versions: no readelf");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, lib) = (folder.path().join("none.c"), folder.path().join("libnone.so"));
    std::fs::write(&source, "int tarsiaNone;\n").unwrap();
    let soname = format!("-Wl,-soname,{}", soname());
    compile(Compiler::C, &["-shared", "-fPIC", &soname], &source, &lib).unwrap();
    let prefix = folder.path().join("prefix");
    let output = Command::new(script("install")).arg("--lib").args([&lib, &prefix]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("have no version TARSIA_") && said.contains("build/symbol-version"), "{said}");
    assert!(!prefix.exists(), "something was installed");
}

/// Returns the links of the pages in a folder that lead to no file, with their pages.
fn dead_links(folder: &Path) -> Vec<String> {
    let mut dead = Vec::new();
    let mut seen = 0;
    for page in files(folder).iter().filter(|name| name.ends_with(".md")) {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let is_file = !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:");
            seen += usize::from(is_file);
            if is_file && !folder.join(page).parent().unwrap().join(link).exists() {
                dead.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(seen > 100, "{seen} links");
    dead
}

#[test]
fn install_tree_has_what_a_linker_and_a_loader_look_for() {
    let tree = Tree::new();
    let lib = tree.prefix().join("lib");
    let version = env!("CARGO_PKG_VERSION");
    let link =
        |name: &str| std::fs::read_link(lib.join(name)).unwrap().into_os_string().into_string().unwrap();
    assert_eq!(link("libtarsia.so"), soname());
    assert_eq!(link(&soname()), format!("libtarsia.so.{version}"));
    let read =
        |path: PathBuf| std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(lib.join("libtarsia.so")) == read(library()), "another library was installed");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (installed, source) in [
        ("include/tarsia.h", "include/tarsia.h"),
        ("include/tarsia.hpp", "include/tarsia.hpp"),
        ("include/tarsia/plans.hpp", "include/tarsia/plans.hpp"),
        ("share/fortran/tarsia.f90", "include/tarsia.f90"),
        ("share/doc/tarsia/LICENSE-MIT", "LICENSE-MIT"),
        ("share/doc/tarsia/LICENSE-APACHE", "LICENSE-APACHE"),
        ("share/doc/tarsia/THIRD-PARTY.md", "THIRD-PARTY.md"),
        ("share/doc/tarsia/CHANGELOG.md", "CHANGELOG.md"),
    ] {
        assert!(
            read(tree.prefix().join(installed)) == read(root.join(source)),
            "{installed} is not {source}"
        );
    }
    let text = |path: PathBuf| String::from_utf8(read(path)).unwrap();
    let readme = text(root.join("README.md")).replace("](include/", "](../../../include/");
    assert!(text(tree.prefix().join("share/doc/tarsia/README.md")) == readme, "README.md is another one");
    assert_eq!(dead_links(&tree.prefix().join("share/doc/tarsia")), [""; 0]);
    // Installed once more over itself, and then moved: nothing depends on where it was.
    run_script("install", &[Path::new("--lib"), &library(), &tree.prefix()]);
    let moved = tree.directory.path().join("moved");
    std::fs::rename(tree.prefix(), &moved).unwrap();
    assert!(read(moved.join("lib/libtarsia.so")) == read(library()));
}

/// Returns the text between `start` and the next of these characters.
fn after<'a>(text: &'a str, start: &str, end: &[char]) -> &'a str {
    let at = text.find(start).unwrap_or_else(|| panic!("no `{start}` in:\n{text}")) + start.len();
    text[at..].split(|letter| end.contains(&letter)).next().unwrap().trim()
}

/// All files that name the library's version have that of Cargo.toml.
#[test]
fn everything_has_one_version() {
    let tree = Tree::new();
    let installed = |name: &str| std::fs::read_to_string(tree.prefix().join(name)).unwrap();
    let source = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let version = after(&source("Cargo.toml"), "\nversion = \"", &['"']).to_string();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));

    let numbers = |text: &str, before: &str, between: &str| {
        ["MAJOR", "MINOR", "PATCH"]
            .map(|part| after(text, &format!("{before}TARSIA_VERSION_{part}{between}"), &['\n']).to_string())
            .join(".")
    };
    let cmake = installed("lib/cmake/tarsia/tarsiaConfigVersion.cmake");
    let library = std::fs::read_link(tree.prefix().join("lib").join(soname())).unwrap();
    for (what, found) in [
        ("macros of tarsia.h", numbers(&installed("include/tarsia.h"), "#define ", " ")),
        ("parameters of tarsia.f90", numbers(&installed("share/fortran/tarsia.f90"), ":: ", " = ")),
        ("CMake", after(&cmake, "set(PACKAGE_VERSION \"", &['"']).to_string()),
        ("pkg-config", after(&installed("lib/pkgconfig/tarsia.pc"), "\nVersion: ", &['\n']).to_string()),
        ("CITATION.cff", after(&source("CITATION.cff"), "\nversion: ", &['\n']).to_string()),
        ("CHANGELOG.md", after(&source("CHANGELOG.md"), "\n## ", &['\n', ' ']).to_string()),
        ("Cargo.lock", after(&source("Cargo.lock"), "name = \"tarsia\"\nversion = \"", &['"']).to_string()),
        ("the library's file", after(library.to_str().unwrap(), "libtarsia.so.", &[]).to_string()),
    ] {
        assert_eq!(found, version, "{what}");
    }
    // The other packages inherit the workspace's version.
    let packages = std::fs::read_dir(root().join("crates")).unwrap();
    let manifests: Vec<_> = packages.map(|entry| entry.unwrap().path().join("Cargo.toml")).collect();
    assert!(manifests.len() >= 4, "{manifests:?}");
    for manifest in manifests {
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("\nversion.workspace = true\n"), "{}", manifest.display());
    }
}

/// Each installed file names its licences.
#[test]
fn installed_files_name_their_licence() {
    let tree = Tree::new();
    let kinds = [".h", ".hpp", ".f90", ".cmake", ".pc", "CMakeLists.txt"];
    let all = files(&tree.prefix());
    let all: Vec<_> = all.iter().filter(|name| kinds.iter().any(|kind| name.ends_with(kind))).collect();
    assert!(all.len() >= 10, "{all:?}");
    for name in all {
        let text = std::fs::read_to_string(tree.prefix().join(name)).unwrap();
        let first: Vec<_> = text.lines().take(2).collect();
        let line = "SPDX-License-Identifier: MIT OR Apache-2.0";
        assert!(first.iter().any(|found| found.ends_with(line)), "{name} begins with {first:?}");
    }
}

/// The citation file has the papers whose algorithms the library implements.
#[test]
fn citation_has_the_five_papers() {
    let text = std::fs::read_to_string(root().join("CITATION.cff")).unwrap();
    assert!(text.starts_with("cff-version: 1.2.0\n") && text.contains("\nauthors:\n"), "{text}");
    assert_eq!(text.matches("  - type: conference-paper\n").count(), 5);
    for words in
        ["algorithm dasp", "algorithm smat", "algorithm swift", "algorithm tile", "tarsiaPlan_setReorder"]
    {
        assert!(text.contains(words), "no paper of {words}");
    }
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
        // Spaces in paths are escaped by a backslash.
        text.trim().replace("\\ ", " ")
    };
    let check = |prefix: &Path| {
        assert_eq!(ask(prefix, &["--modversion"]), env!("CARGO_PKG_VERSION"));
        let flags = ask(prefix, &["--cflags", "--libs"]);
        // The folders are relative to the file, so canonical paths are compared.
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
    // The tree works after it has been moved.
    let moved = tree.directory.path().join("moved elsewhere");
    std::fs::rename(tree.prefix(), &moved).unwrap();
    check(&moved);
}
