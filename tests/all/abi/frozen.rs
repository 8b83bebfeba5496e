//! Tests that the numbers of the interface that are compiled into programs stay as they are: constants, and
//! the layout of structs.
//!
//! tests/data/interface.txt lists them as promised. No program writes it: a new constant is a line that
//! someone adds to it, and a changed one is an error until someone changes the line.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::tools::{compile, run_built, Compiler};
use crate::generated::header;

/// Numbers by key: `enum tarsiaOrder_t TARSIA_ORDER_COL` → `1`, `struct tarsiaPlanInfo_t rows` →
/// `offset 40, 8 bytes`.
type Numbers = BTreeMap<String, String>;

/// Returns a C program that prints a line `key: number` for each number of the header.
fn program(header: &header::Header) -> String {
    let mut prints = String::new();
    for (kind, values) in &header.enums {
        writeln!(prints, "    printf(\"enum {kind}: %zu bytes\\n\", sizeof({kind}));").unwrap();
        for (name, _) in values {
            writeln!(prints, "    printf(\"enum {kind} {name}: %lld\\n\", (long long)({name}));").unwrap();
        }
    }
    for (kind, fields) in &header.structs {
        writeln!(prints, "    printf(\"struct {kind}: %zu bytes\\n\", sizeof({kind}));").unwrap();
        for (_, field) in fields {
            writeln!(
                prints,
                "    printf(\"struct {kind} {field}: offset %zu, %zu bytes\\n\", offsetof({kind}, {field}), \
                 sizeof((({kind} *)0)->{field}));"
            )
            .unwrap();
        }
    }
    format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"tarsia.h\"\nint main(void)\n{{\n{prints}    return 0;\n}}\n"
    )
}

/// Returns the numbers of a header, as computed by the C compiler.
fn compiled(text: &str) -> Numbers {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    // A header beside the source is found before that of the include folder.
    std::fs::write(file("tarsia.h"), text).unwrap();
    std::fs::write(file("numbers.c"), program(&header::parse_text(text))).unwrap();
    compile(Compiler::C, &["-std=c11"], &file("numbers.c"), &file("numbers")).unwrap();
    parse(&run_built(&file("numbers"), |program| program))
}

fn parse(text: &str) -> Numbers {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut numbers = Numbers::new();
    for line in lines {
        let (key, number) = line.split_once(": ").unwrap_or_else(|| panic!("`{line}` is no `key: number`"));
        let before = numbers.insert(key.to_string(), number.to_string());
        assert_eq!(before, None, "{key} is there twice");
    }
    numbers
}

/// Returns a line for each difference between the header and the table.
fn differences(table: &Numbers, header: &Numbers) -> Vec<String> {
    let mut out = Vec::new();
    for (key, number) in header {
        match table.get(key) {
            None => out.push(format!("new, add this line if it is meant: {key}: {number}")),
            Some(promised) if promised != number => {
                out.push(format!("breaks programs: {key} is {number} and was {promised}"))
            }
            Some(_) => (),
        }
    }
    let gone = table.keys().filter(|key| !header.contains_key(*key));
    out.extend(gone.map(|key| format!("breaks programs: {key} is gone")));
    out
}

fn table() -> Numbers {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/interface.txt");
    parse(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

#[test]
fn constants_and_layouts_are_those_that_were_promised() {
    let found = compiled(tarsia::capi::HEADER);
    assert!(found.len() >= 140, "numbers are lost: {found:?}");
    let differences = differences(&table(), &found);
    assert!(differences.is_empty(), "tests/data/interface.txt:\n{}", differences.join("\n"));
}

/// Each kind of change to the header is noticed.
#[test]
fn changed_constants_and_layouts_are_noticed() {
    let promised = compiled(tarsia::capi::HEADER);
    for (from, to, expected) in [
        (
            "TARSIA_ORDER_ROW = 2,",
            "TARSIA_ORDER_ROW = 3,",
            "breaks programs: enum tarsiaOrder_t TARSIA_ORDER_ROW is 3 and was 2",
        ),
        (
            "TARSIA_ORDER_ROW = 2,",
            "TARSIA_ORDER_ROW = 2, TARSIA_ORDER_BLOCK = 3,",
            "new, add this line if it is meant: enum tarsiaOrder_t TARSIA_ORDER_BLOCK: 3",
        ),
        ("TARSIA_ORDER_ROW = 2,", "", "breaks programs: enum tarsiaOrder_t TARSIA_ORDER_ROW is gone"),
        (
            "    double fill;",
            "    float fill;",
            "breaks programs: struct tarsiaPlanInfo_t fill is offset 104, 4 bytes and was offset 104, 8 bytes",
        ),
    ] {
        assert_eq!(tarsia::capi::HEADER.matches(from).count(), 1, "`{from}` is once in the header");
        let changed = compiled(&tarsia::capi::HEADER.replace(from, to));
        assert_eq!(differences(&promised, &changed), [expected]);
    }
    // A field in the middle moves those after it.
    let moved = tarsia::capi::HEADER.replace("    double fill;", "    double fill;\n    double more;");
    let found = differences(&promised, &compiled(&moved));
    assert!(found.iter().any(|line| line.contains("tarsiaPlanInfo_t reason is offset")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("new, add") && line.contains("more")), "{found:?}");
}
