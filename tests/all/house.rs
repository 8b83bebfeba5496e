//! Tests of the layers of src: a lower layer never imports a higher one.
//!
//! capi → plan → operation → select → format, reorder → matrix, memory → types. A backend executes a choice:
//! it reads the choice, implements the traits of the operations, and imports no plan and no handle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Files or folders of src, with the modules that they must not import.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "types.rs",
        &[
            "backend",
            "capi",
            "context",
            "format",
            "matrix",
            "memory",
            "operation",
            "plan",
            "reorder",
            "select",
        ],
    ),
    (
        "memory",
        &["backend", "capi", "context", "format", "operation", "plan", "problem", "reorder", "select"],
    ),
    (
        "matrix",
        &["backend", "capi", "context", "format", "operation", "plan", "problem", "reorder", "select"],
    ),
    ("memory", &["settings"]),
    ("matrix", &["settings"]),
    ("problem.rs", &["backend", "capi", "context", "operation", "plan", "reorder", "select"]),
    ("settings.rs", &["backend", "capi", "context", "operation", "plan", "reorder", "select"]),
    ("format", &["backend", "capi", "context", "operation", "plan", "select"]),
    ("reorder", &["backend", "capi", "context", "format", "operation", "plan", "select"]),
    ("select", &["backend", "capi", "context", "operation", "plan"]),
    ("backend", &["capi", "context", "plan"]),
    // Backends may import the traits that operations need: SpmvBackend, DenseExecutor and the like.
    ("backend", &["operation::Operation", "operation::Planned", "operation::Report", "operation::Task"]),
    ("operation", &["capi", "context", "plan"]),
    ("backend/host", &["backend::cuda", "backend::reference"]),
    ("backend/cuda", &["backend::host", "backend::reference"]),
    ("backend/reference", &["backend::cuda", "backend::host"]),
    ("plan", &["capi"]),
    ("context.rs", &["capi"]),
];

fn files(at: &Path, out: &mut Vec<PathBuf>) {
    if at.is_file() {
        out.extend(at.extension().is_some_and(|kind| kind == "rs").then(|| at.to_path_buf()));
        return;
    }
    for entry in fs::read_dir(at).unwrap() {
        files(&entry.unwrap().path(), out);
    }
}

/// Returns a file's text without comments and without tests, which come last.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    code.join(" ")
}

/// Returns the paths from the crate's root in a text, with `use` lists expanded and without tests.
fn paths(text: &str) -> Vec<String> {
    let code = code(text);
    let mut out = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let mut depth = 0;
        let end = rest.find(|letter: char| {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            depth == 0 && !(letter.is_alphanumeric() || "_:{}".contains(letter))
        });
        expand(&rest[..end.unwrap_or(rest.len())], "", &mut out);
    }
    out
}

/// Expands `a::{b, c::{d, e}}` to `a::b`, `a::c::d`, `a::c::e`.
fn expand(path: &str, before: &str, out: &mut Vec<String>) {
    let Some((head, list)) = path.split_once('{') else {
        out.push(format!("{before}{}", path.trim()));
        return;
    };
    let list = list.rsplit_once('}').map_or(list, |(list, _)| list);
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ',' && depth == 0 {
            if !list[start..at].trim().is_empty() {
                expand(list[start..at].trim(), &format!("{before}{}", head.trim()), out);
            }
            start = at + 1;
        }
    }
}

#[test]
fn nothing_imports_what_stands_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for (place, forbidden) in FORBIDDEN {
        let mut all = Vec::new();
        files(&src.join(place), &mut all);
        for file in all {
            let name = file.strip_prefix(&src).unwrap().to_str().unwrap().to_string();
            // Tests may import anything.
            if name.contains("tests") || name.contains("testing") {
                continue;
            }
            looked_at += 1;
            for path in paths(&fs::read_to_string(&file).unwrap()) {
                let is_forbidden = forbidden
                    .iter()
                    .any(|module| path == *module || path.starts_with(&format!("{module}::")));
                if is_forbidden {
                    wrong.push(format!("src/{name} imports crate::{path}"));
                }
            }
        }
    }
    assert!(looked_at > 150, "{looked_at}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Formats and orders do not depend on the machine: choices for a machine are made in src/select, which gets
/// the machine's properties as numbers.
#[test]
fn formats_and_orders_know_no_machine() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for place in ["format", "reorder", "matrix"] {
        files(&src.join(place), &mut all);
    }
    assert!(all.len() > 60, "{}", all.len());
    for file in all {
        let text = code(&fs::read_to_string(&file).unwrap());
        for word in ["multiprocessors", "l2_bytes", "Machine", "DeviceProperties"] {
            if text.contains(word) {
                wrong.push(format!("{} has {word}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Features of a kernel are queried from the kernel (`Kernel::is_of_90`) and not from the device: kernels
/// that a driver compiles from PTX of an older architecture do not have the features of a newer device.
#[test]
fn launches_ask_kernels_what_they_can_do() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda");
    let mut all = Vec::new();
    for operation in ["spmv", "spmm", "spgemm", "spmm.rs", "spgemm.rs", "launch.rs"] {
        files(&src.join(operation), &mut all);
    }
    assert!(all.len() > 60, "{}", all.len());
    let asks = |file: &PathBuf| code(&fs::read_to_string(file).unwrap()).contains(".capability");
    let wrong: Vec<_> = all.into_iter().filter(asks).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Measured numbers belong to choices, which are made in src/select: code that executes a choice on a device
/// has no measured times in its comments.
#[test]
fn executors_on_devices_have_no_measured_numbers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let reports_times = |line: &str| {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        let words: Vec<&str> =
            comment.split(|letter: char| !letter.is_alphanumeric() && letter != '.').collect();
        let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
        words.windows(2).any(|two| is_number(two[0]) && ["µs", "ms"].contains(&two[1].trim_end_matches('.')))
    };
    let reporting = |places: &[&str], looked_at: usize| {
        let mut all = Vec::new();
        places.iter().for_each(|place| files(&src.join(place), &mut all));
        let is_test = |file: &PathBuf| {
            let name = file.strip_prefix(&src).unwrap().to_str().unwrap();
            name.contains("tests") || name.contains("testing")
        };
        all.retain(|file| !is_test(file));
        assert!(all.len() > looked_at, "{}", all.len());
        all.retain(|file| fs::read_to_string(file).unwrap().lines().any(reports_times));
        all
    };
    let cuda = ["spmv", "spmm", "spmm.rs", "spgemm", "spgemm.rs"].map(|name| format!("backend/cuda/{name}"));
    let wrong = reporting(&cuda.each_ref().map(String::as_str), 40);
    assert!(wrong.is_empty(), "{wrong:?}");
    // Such numbers are found in src/select, where they belong.
    assert!(reporting(&["select/spmv", "select/spmm", "select/spgemm"], 20).len() > 10);
}

/// Numbers of blocks, warps or lanes for a device are choices: code that executes them passes the number of
/// multiprocessors to src/select and does not calculate with it. Only code that measures devices does.
#[test]
fn executors_on_devices_do_not_reckon_with_multiprocessors() {
    let cuda = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda");
    let mut all = Vec::new();
    files(&cuda, &mut all);
    all.retain(|file| !file.ends_with("timing.rs"));
    assert!(all.len() > 80, "{}", all.len());
    let reckons = |line: &str| {
        line.contains("multiprocessors") && [" * ", " / "].iter().any(|sign| line.contains(sign))
    };
    all.retain(|file| {
        let text = fs::read_to_string(file).unwrap();
        text.lines().any(|line| !line.trim_start().starts_with("//") && reckons(line))
    });
    assert!(all.is_empty(), "{all:?}");
}

/// A plan uses its operation only through the trait `Operation`, and does not distinguish operations.
#[test]
fn plans_do_not_tell_operations_apart() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src.join("plan"), &mut all);
    all.retain(|file| !file.ends_with("tests.rs"));
    assert!(all.len() > 4, "{all:?}");
    for file in all {
        let code = code(&fs::read_to_string(&file).unwrap());
        for name in ["Spmv", "Spmm", "Spgemm"] {
            assert!(!code.contains(name), "{} names {name}", file.display());
        }
    }
}

/// Returns the names that src/facade.rs exports.
fn names_of_the_facade(root: &Path) -> Vec<String> {
    let text = code(&fs::read_to_string(root.join("src/facade.rs")).unwrap());
    let mut paths = Vec::new();
    for item in text.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let path = item.strip_prefix("pub use crate::").unwrap_or_else(|| panic!("{item}"));
        expand(path, "", &mut paths);
    }
    let name = |path: &String| path.rsplit([':', ' ']).next().unwrap().to_string();
    paths.iter().map(name).collect()
}

/// The facade, which is not the C interface, exports no globs and no names without a user.
#[test]
fn the_facade_has_few_names_and_a_user_for_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = names_of_the_facade(root);
    assert!((40..=60).contains(&names.len()), "{}: {names:?}", names.len());
    assert!(names.iter().all(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')));
    let mut users = Vec::new();
    ["crates", "tests", "fuzz/fuzz_targets"].iter().for_each(|place| files(&root.join(place), &mut users));
    let mut words = BTreeSet::new();
    let texts = users.iter().map(|user| fs::read_to_string(user).unwrap());
    for text in texts.filter(|text| text.contains("facade::")) {
        let code = code(&text);
        words.extend(
            code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_string),
        );
    }
    let unused: Vec<_> = names.iter().filter(|name| !words.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn lists_of_imports_are_written_out() {
    let text = "use crate::a::{b, c::{d, e as f}};\n// use crate::no;\nlet x = crate::g::h(1);\n\
                #[cfg(test)]\nmod tests {\n    use crate::i;\n}\n";
    assert_eq!(paths(text), ["a::b", "a::c::d", "a::c::e as f", "g::h"]);
}
