//! Tests of the shared library and the header as a linker, a loader and a C compiler see them.

pub mod frozen;
pub mod tools;
pub mod versions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::generated::header;
use tools::{compile, library, listing, run_built, soname, Compiler};

/// Libraries that the library may depend on: those that every glibc system has. Others would have to be
/// installed with it; libcuda must never be among them.
const ALLOWED: &[&str] = &[
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Returns the symbols that `nm` lists with these flags, without versions (`@GLIBC_2.34`); `None` without
/// `nm`.
fn symbols(flags: &[&str], library: &Path) -> Option<BTreeSet<String>> {
    let listing = listing("nm", "symbols of the library", |nm| nm.args(flags).arg(library))?;
    // Some versions of GNU ld list the name of a symbol version itself, as an absolute symbol.
    let names = listing
        .lines()
        .filter(|line| !line.contains(" A "))
        .filter_map(|line| line.split_whitespace().last());
    Some(names.map(|name| name.split('@').next().unwrap_or(name).to_string()).collect())
}

#[test]
fn exports_are_the_functions_of_the_header() {
    let Some(exported) = symbols(&["-D", "--defined-only"], &library()) else { return };
    let declared: BTreeSet<String> =
        header::parse().functions.into_iter().map(|function| function.name).collect();
    assert!(declared.len() >= 75, "the header has only {} functions", declared.len());
    assert_eq!(exported, declared);
    let foreign: Vec<_> = exported.iter().filter(|name| !name.starts_with("tarsia")).collect();
    assert!(foreign.is_empty(), "{foreign:?} may collide with a program's names");
}

/// The `Driver` entry points `cu…` that the library calls must come from
/// `dlopen`, so that it loads where there is no driver.
#[test]
fn imports_nothing_of_cuda() {
    let Some(imported) = symbols(&["-D", "--undefined-only"], &library()) else { return };
    assert!(imported.contains("malloc"), "not the imports of a library: {imported:?}");
    let cuda: Vec<_> = imported.iter().filter(|name| name.starts_with("cu")).collect();
    assert!(cuda.is_empty(), "{cuda:?}");
}

/// Returns the entries of the dynamic section with this tag, such as `(NEEDED)`.
fn dynamic(section: &str, tag: &str) -> Vec<String> {
    let lines = section.lines().filter(|line| line.contains(tag));
    let value = |line: &str| match line.split_once('[') {
        Some((_, rest)) => rest.split(']').next().unwrap_or_default().to_string(),
        None => line.split_once(tag).expect("filtered above").1.trim().to_string(),
    };
    lines.map(value).collect()
}

#[test]
fn dynamic_section_is_what_a_shared_library_needs() {
    let section = listing("readelf", "the dynamic section", |readelf| readelf.arg("-dW").arg(library()));
    let Some(section) = section else { return };
    assert_eq!(dynamic(&section, "(SONAME)"), [soname()]);

    let needed = dynamic(&section, "(NEEDED)");
    assert!(needed.iter().any(|name| name == "libc.so.6"), "not a list of libraries: {needed:?}");
    let others: Vec<_> = needed.iter().filter(|name| !ALLOWED.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?} must be there wherever the library is");

    let flags = [dynamic(&section, "(FLAGS)"), dynamic(&section, "(FLAGS_1)")].concat().join(" ");
    let has = |flag: &str| flags.split_whitespace().any(|found| found == flag);
    assert!(has("NODELETE"), "its threads would run in unmapped code after dlclose: {flags}");
    assert!(has("BIND_NOW") && has("NOW"), "a missing symbol must show when it is loaded: {flags}");
    // A search path would name folders of the machine that built the library.
    assert!(dynamic(&section, "(RPATH)").is_empty() && dynamic(&section, "(RUNPATH)").is_empty());
}

#[test]
fn stack_is_not_executable_and_relocations_are_read_only() {
    let segments = listing("readelf", "the stack's flags", |readelf| readelf.arg("-lW").arg(library()));
    let Some(segments) = segments else { return };
    let stack = segments.lines().find(|line| line.contains("GNU_STACK")).expect("has GNU_STACK");
    assert!(!stack.contains("RWE"), "{stack}");
    assert!(segments.contains("GNU_RELRO"), "{segments}");
}

/// Writes a source file that includes the header twice and uses it.
fn source(directory: &Path, name: &str) -> PathBuf {
    let file = directory.join(name);
    let text = "#include \"tarsia.h\"\n#include \"tarsia.h\"\n\
                int main(void) {\n\
                \x20   tarsiaPlanInfo_t info;\n\
                \x20   info.structSize = sizeof(info);\n\
                \x20   return info.structSize == sizeof(tarsiaPlanInfo_t) && TARSIA_STATUS_SUCCESS == 0 ? 0 : 1;\n\
                }\n";
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn header_is_c11_without_warnings() {
    let directory = tempfile::tempdir().unwrap();
    for standard in ["-std=c11", "-std=c17"] {
        let file = source(directory.path(), "twice.c");
        compile(Compiler::C, &[standard, "-c"], &file, &directory.path().join("twice.o")).unwrap();
    }
}

#[test]
fn header_is_cpp17_without_warnings() {
    let directory = tempfile::tempdir().unwrap();
    for standard in ["-std=c++17", "-std=c++20"] {
        let file = source(directory.path(), "twice.cpp");
        if let Err(missing) =
            compile(Compiler::Cpp, &[standard, "-c"], &file, &directory.path().join("twice.o"))
        {
            crate::common::skip(format!("header as C++: {missing}"));
            return;
        }
    }
}

/// The flags with which the header is compiled turn every warning into an error.
#[test]
fn warnings_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("unused.c");
    std::fs::write(&file, "#include \"tarsia.h\"\nstatic int unused;\nint main(void) { return 0; }\n")
        .unwrap();
    let result = std::panic::catch_unwind(|| {
        compile(Compiler::C, &["-std=c11", "-c"], &file, &directory.path().join("unused.o"))
    });
    assert!(result.is_err(), "the flags let a warning pass");
}

const LOADER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include "tarsia.h"

int main(int argc, char **argv)
{
    for (int round = 0; round < 2; ++round) {
        void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (!library) {
            fprintf(stderr, "dlopen: %s\n", argc == 2 ? dlerror() : "no library given");
            return 1;
        }
        tarsiaStatus_t (*version_of)(int *);
        tarsiaStatus_t (*create)(tarsiaHandle_t *);
        tarsiaStatus_t (*destroy)(tarsiaHandle_t);
        *(void **)&version_of = dlsym(library, "tarsiaGetVersion");
        *(void **)&create = dlsym(library, "tarsiaCreate");
        *(void **)&destroy = dlsym(library, "tarsiaDestroy");
        if (!version_of || !create || !destroy) {
            fprintf(stderr, "dlsym: %s\n", dlerror());
            return 2;
        }
        int version = -1;
        if (version_of(&version) != TARSIA_STATUS_SUCCESS || version != TARSIA_VERSION) {
            fprintf(stderr, "version %d, header %d\n", version, TARSIA_VERSION);
            return 3;
        }
        tarsiaHandle_t handle = NULL;
        if (create(&handle) != TARSIA_STATUS_SUCCESS || destroy(handle) != TARSIA_STATUS_SUCCESS) {
            fprintf(stderr, "create and destroy failed\n");
            return 4;
        }
        if (dlclose(library) != 0) {
            fprintf(stderr, "dlclose: %s\n", dlerror());
            return 5;
        }
    }
    puts("loaded twice");
    return 0;
}
"#;

#[test]
fn library_loads_and_closes_in_a_c_program() {
    let directory = tempfile::tempdir().unwrap();
    let (file, program) = (directory.path().join("loader.c"), directory.path().join("loader"));
    std::fs::write(&file, LOADER).unwrap();
    // ISO C knows no conversion between an object and a function pointer, and
    // old glibc keeps dlopen in libdl.
    compile(Compiler::C, &["-std=c11", "-Wno-pedantic", "-ldl"], &file, &program).unwrap();
    let output = run_built(&program, |program| program.arg(library()));
    assert_eq!(output.trim(), "loaded twice");
}

const STRUCT: &str = r#"
#include <stddef.h>
#include <stdio.h>
#include "tarsia.h"
int main(void)
{
    printf("%zu\n", sizeof(tarsiaPlanInfo_t));
FIELDS
    return 0;
}
"#;

/// The struct has the same size and field offsets in C and in Rust.
#[test]
fn plan_info_has_one_layout_in_c_and_in_rust() {
    use std::mem::{offset_of, size_of};
    use tarsia::capi::plan::tarsiaPlanInfo_t as Info;
    macro_rules! offsets {
        ($($field:ident)*) => { vec![$((stringify!($field), offset_of!(Info, $field)),)*] };
    }
    let ours = offsets! { structSize operation analyzed algorithm layout reorder effort valueUpdates inPlace rows cols
    nnz nnzC products planBytes peakBytes workspaceBytes fill analysisSeconds predictedSeconds algorithmName reason
    expectedExecutes valuesInPlace checked sortedOutput reserved };
    let header = header::parse();
    let declared: Vec<&str> = header.structs[0].1.iter().map(|(_, field)| field.as_str()).collect();
    assert_eq!(declared, ours.iter().map(|(field, _)| *field).collect::<Vec<_>>(), "fields of the header");

    let directory = tempfile::tempdir().unwrap();
    let (file, program) = (directory.path().join("layout.c"), directory.path().join("layout"));
    let print = |field: &str| format!("    printf(\"%zu\\n\", offsetof(tarsiaPlanInfo_t, {field}));\n");
    let fields: String = ours.iter().map(|(field, _)| print(field)).collect();
    std::fs::write(&file, STRUCT.replace("FIELDS\n", &fields)).unwrap();
    compile(Compiler::C, &["-std=c11"], &file, &program).unwrap();
    let output = run_built(&program, |program| program);
    let numbers: Vec<usize> = output.lines().map(|line| line.parse().expect("a number")).collect();
    let expected: Vec<usize> =
        std::iter::once(size_of::<Info>()).chain(ours.iter().map(|(_, at)| *at)).collect();
    assert_eq!(numbers, expected);
}
