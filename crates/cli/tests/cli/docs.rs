//! The program accepts the commands in the README and the pages of docs/.

use std::collections::BTreeMap;
use std::path::Path;

use super::{stdout, tarsia};

/// Returns the words of the lines of a page that call the program, without `cargo run --release --` before
/// them, and without comments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start_matches([' ', '`']);
        line.strip_prefix("tarsia ").or_else(|| line.strip_prefix("cargo run --release -- "))
    });
    let words = |line: &str| {
        let line = line.split(['#', '`']).next().unwrap();
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    lines.map(words).collect()
}

#[test]
fn commands_of_the_documents_are_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut helps = BTreeMap::new();
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        for words in commands(&std::fs::read_to_string(&page).unwrap()) {
            let Some(command) = words.first().filter(|word| word.chars().all(char::is_alphabetic)) else {
                continue;
            };
            let help = helps.entry(command.clone()).or_insert_with(|| {
                let output = tarsia(&[command, "--help"]);
                assert!(output.status.success(), "{}: there is no `tarsia {command}`", page.display());
                stdout(&output).to_string()
            });
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{}: `tarsia {command}` has no {option}", page.display());
            }
            count += 1;
        }
    }
    assert!(count >= 10, "commands are lost: {count}");
}

#[test]
fn commands_are_found_in_text() {
    let text = "a\n    tarsia inspect m.mtx --json   # why\n`cargo run --release -- demo m.mtx` does\n";
    assert_eq!(commands(text), [vec!["inspect", "m.mtx", "--json"], vec!["demo", "m.mtx"]]);
}
