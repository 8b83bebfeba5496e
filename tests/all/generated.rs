//! Tests that committed generated files are those that this build generates.
//!
//! `scripts/update-generated` runs the tests here whose names end with `_is_current` with UPDATE_GENERATED=1:
//! they then write the files instead of comparing them.

pub mod fortran;
pub mod header;
pub mod support_table;
pub mod third_party;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Compares a file with its expected contents, or writes these.
fn current(path: &Path, expected: &str) {
    let found = std::fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return;
    }
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let line = found.lines().zip(expected.lines()).take_while(|(found, expected)| found == expected).count();
    panic!(
        "{}, line {}: `{}`, expected `{}`; run scripts/update-generated",
        path.display(),
        line + 1,
        found.lines().nth(line).unwrap_or("end of file"),
        expected.lines().nth(line).unwrap_or("end of file"),
    );
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.into_iter().collect()
}

#[test]
fn header_is_current() {
    current(&header::path(), tarsia::capi::HEADER);
}

#[test]
fn third_party_file_is_current() {
    current(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("THIRD-PARTY.md"), &third_party::notices());
}

/// Returns the page with this table between its markers, which are lines of their own.
fn with_table(page: &str, table: &str) -> String {
    let (open, close) = ("<!-- support table -->\n", "<!-- /support table -->");
    let (before, rest) = page.split_once(open).expect("the page has the line `<!-- support table -->`");
    let (_, after) = rest.split_once(close).expect("the page has `<!-- /support table -->` after it");
    assert!(!after.contains(close) && !after.contains(open), "the page has one support table");
    format!("{before}{open}{}\n{close}{after}", table.trim_end())
}

#[test]
fn support_table_of_the_docs_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/formats-and-types.md");
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    current(&path, &with_table(&page, &support_table::text()));
}

#[test]
fn table_goes_between_the_markers() {
    let text = "a\n<!-- support table -->\nold\n<!-- /support table -->\nb\n";
    assert_eq!(with_table(text, "x\ny\n"), "a\n<!-- support table -->\nx\ny\n<!-- /support table -->\nb\n");
}

/// Returns the values of enumerators by enum and name, as the library's Rust code has them.
fn inner_enums() -> BTreeMap<String, BTreeMap<String, i32>> {
    let enums = tarsia::capi::enums::all().into_iter();
    let values =
        |values: Vec<(&str, i32)>| values.into_iter().map(|(name, code)| (name.to_string(), code)).collect();
    enums.map(|(name, list)| (name.to_string(), values(list))).collect()
}

#[test]
fn enums_of_the_header_are_those_of_the_library() {
    let header = header::parse();
    let found: BTreeMap<String, BTreeMap<String, i32>> =
        header.enums.into_iter().map(|(name, values)| (name, values.into_iter().collect())).collect();
    let expected = inner_enums();
    assert!(expected.len() >= 19 && expected["tarsiaStatus_t"].len() >= 13, "an enum is lost: {expected:?}");
    assert_eq!(found, expected);
}

#[test]
fn header_version_is_the_packages() {
    let part = |name: &str, value: &str| {
        assert!(
            tarsia::capi::HEADER.contains(&format!("#define TARSIA_VERSION_{name} {value}\n")),
            "{name} {value}"
        );
        value.parse::<i32>().expect("a number")
    };
    let major = part("MAJOR", env!("CARGO_PKG_VERSION_MAJOR"));
    let minor = part("MINOR", env!("CARGO_PKG_VERSION_MINOR"));
    let patch = part("PATCH", env!("CARGO_PKG_VERSION_PATCH"));
    let mut version = 0;
    // SAFETY: the answer is valid for a write.
    client::check(unsafe { tarsia::capi::status::tarsiaGetVersion(&mut version) }).unwrap();
    assert_eq!(version, 10_000 * major + 100 * minor + patch);
}

fn fortran_module() -> fortran::Module {
    let path = fortran::path();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    fortran::parse(&text)
}

#[test]
fn parameters_of_the_fortran_module_are_the_headers() {
    let expected: BTreeMap<String, i64> = inner_enums()
        .into_values()
        .flatten()
        .map(|(name, code)| (name, i64::from(code)))
        .chain(
            ["MAJOR", "MINOR", "PATCH"]
                .into_iter()
                .zip(version())
                .map(|(n, v)| (format!("TARSIA_VERSION_{n}"), v)),
        )
        .chain([("TARSIA_VERSION".to_string(), version()[0] * 10_000 + version()[1] * 100 + version()[2])])
        .collect();
    let found: BTreeMap<String, i64> = fortran_module().parameters.into_iter().collect();
    assert_eq!(found, expected, "run scripts/update-generated");
}

fn version() -> [i64; 3] {
    [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")]
        .map(|part| part.parse().expect("a number"))
}

/// Returns the Fortran type of a C scalar.
fn scalar(header: &header::Header, c: &str) -> Option<&'static str> {
    Some(match c {
        "int" => "integer(c_int)",
        "int64_t" => "integer(c_int64_t)",
        "size_t" => "integer(c_size_t)",
        "double" => "real(c_double)",
        "char" => "character(kind=c_char)",
        c if header.enums.iter().any(|(name, _)| name == c) => "integer(c_int)",
        "tarsiaAllocFn_t" | "tarsiaFreeFn_t" | "tarsiaLogFn_t" => "type(c_funptr)",
        c if header.others.iter().any(|name| name == c) => "type(c_ptr)",
        _ => return None,
    })
}

/// Returns whether a Fortran declaration fits a C argument.
fn matches(header: &header::Header, c: &str, fortran: &str) -> bool {
    let by_value = fortran.contains(", value");
    let expected = match c.strip_suffix('*') {
        None => return by_value && scalar(header, c).is_some_and(|kind| fortran.starts_with(kind)),
        // An address that the caller passes by value.
        Some("void" | "const void" | "const char") => return by_value && fortran.starts_with("type(c_ptr)"),
        Some("const void*" | "void*") => "type(c_ptr)".to_string(),
        Some(target) if header.structs.iter().any(|(name, _)| name == target) => format!("type({target})"),
        Some(target) => scalar(header, target).unwrap_or_else(|| panic!("C type {c}")).to_string(),
    };
    !by_value && fortran.starts_with(&expected)
}

#[test]
fn interfaces_of_the_fortran_module_are_the_headers_functions() {
    let (header, module) = (header::parse(), fortran_module());
    let ours: Vec<_> = module.functions.iter().filter(|f| f.binding.starts_with("tarsia")).collect();
    assert_eq!(
        names(ours.iter().map(|f| f.binding.as_str())),
        names(header.functions.iter().map(|f| f.name.as_str())),
        "run scripts/update-generated"
    );
    assert_eq!(ours.len(), header.functions.len(), "no function has two interfaces");
    for function in &header.functions {
        let interface = ours.iter().find(|f| f.binding == function.name).expect("compared above");
        assert_eq!(interface.name, function.name);
        let arguments: Vec<_> = interface.args.iter().map(|(_, name)| name).collect();
        assert_eq!(
            arguments,
            function.args.iter().map(|(_, name)| name).collect::<Vec<_>>(),
            "{}",
            function.name
        );
        for ((fortran, name), (c, _)) in interface.args.iter().zip(&function.args) {
            assert!(matches(&header, c, fortran), "{}: {name} is `{c}` in C and `{fortran}`", function.name);
        }
        let result = if function.returns.ends_with('*') { "type(c_ptr)" } else { "integer(c_int)" };
        assert_eq!(interface.result, result, "{}", function.name);
    }
}

#[test]
fn structs_of_the_fortran_module_are_the_headers() {
    let (header, module) = (header::parse(), fortran_module());
    let [(name, fields)] = &header.structs[..] else { panic!("another struct: {:?}", header.structs) };
    assert_eq!(name, "tarsiaPlanInfo_t");
    let expected: Vec<(String, String)> = fields
        .iter()
        .map(|(c, field)| {
            let (c, array) = c.split_once('[').unwrap_or((c, ""));
            let kind = scalar(&header, c).unwrap_or_else(|| panic!("C type {c}"));
            let extent =
                if array.is_empty() { String::new() } else { format!("({})", array.trim_end_matches(']')) };
            (kind.to_string(), field.clone() + &extent)
        })
        .collect();
    assert!(expected.len() > 10, "fields are lost: {expected:?}");
    assert_eq!(module.types, [(name.clone(), expected)], "run scripts/update-generated");
}

#[test]
fn every_status_of_a_function_is_returned_as_one() {
    // All functions except the two that return a text return a status.
    for function in header::parse().functions {
        let text = ["tarsiaGetErrorName", "tarsiaGetErrorString"].contains(&function.name.as_str());
        assert_eq!(
            function.returns,
            if text { "const char*" } else { "tarsiaStatus_t" },
            "{}",
            function.name
        );
    }
}
