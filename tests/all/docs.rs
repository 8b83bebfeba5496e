//! Tests of the README and the pages of docs/: links have targets, programs compile and print what the pages
//! say, and commands exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::abi::tools::Programs;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the texts of the README, the changes, and the pages of docs/, by path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let files = |folder: &'static str| {
        let files = std::fs::read_dir(root().join(folder)).unwrap();
        files.map(move |entry| Path::new(folder).join(entry.unwrap().file_name()))
    };
    let docs = files("docs").chain(files("docs/algorithms"));
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let more = ["README.md", "CHANGELOG.md", "c_examples/README.md"].map(PathBuf::from);
    let pages: BTreeMap<_, _> = pages
        .chain(more)
        .map(|path| (path.clone(), std::fs::read_to_string(root().join(path)).unwrap()))
        .collect();
    assert!(pages.len() > 15, "pages are lost: {:?}", pages.keys());
    pages
}

/// Splits a page into blocks of code, with the language behind ``` (`sh` for lines indented by four spaces),
/// and the prose without them.
fn split(text: &str) -> (Vec<(&str, String)>, String) {
    let (mut blocks, mut prose) = (Vec::<(&str, String)>::new(), String::new());
    let (mut fenced, mut indented) = (false, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            indented = false;
            if fenced {
                blocks.push((language, String::new()));
            }
        } else if fenced || line.starts_with("    ") {
            if !fenced && !indented {
                blocks.push(("sh", String::new()));
            }
            indented = !fenced;
            let block = &mut blocks.last_mut().unwrap().1;
            block.push_str(if fenced { line } else { &line[4..] });
            block.push('\n');
        } else {
            indented = false;
            prose.push_str(line);
            prose.push('\n');
        }
    }
    assert!(!fenced, "a block of code does not end");
    (blocks, prose)
}

/// Returns the targets of links `[text](target)`.
fn links(prose: &str) -> Vec<&str> {
    prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect()
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let (_, prose) = split(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || "- _".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        for link in links(&split(text).1).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(path),
                file => root().join(path).parent().unwrap().join(file),
            };
            let Ok(found) = target.canonicalize() else {
                wrong.push(format!("{}: {link} is not there", path.display()));
                continue;
            };
            let has_anchor =
                || anchors(&std::fs::read_to_string(&found).unwrap_or_default()).contains(anchor);
            if !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{}: {link} has no such heading", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_without_a_target_are_found() {
    assert_eq!(links("see [a](b.md#c), [d](e) and (f)"), ["b.md#c", "e"]);
    let text = "# One `two`, three\n```sh\n# no heading\n```\n";
    assert_eq!(anchors(text), BTreeSet::from(["one-two-three".to_string()]));
}

/// The summary has every page, and the README is short.
#[test]
fn pages_are_found() {
    let pages = pages();
    let summary = &pages[Path::new("docs/SUMMARY.md")];
    let listed: BTreeSet<&str> = links(summary).into_iter().collect();
    for path in pages.keys().filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md")) {
        let name = path.strip_prefix("docs").unwrap().to_str().unwrap();
        assert!(listed.contains(name), "docs/SUMMARY.md does not list {name}");
    }
    let lines = pages[Path::new("README.md")].lines().count();
    assert!(lines <= 150, "README.md has {lines} lines; 150 is the most");
}

/// C programs of the pages compile without warnings and run; a printf of numbers prints what the comment
/// behind it says.
#[test]
fn programs_do_what_they_say() {
    let programs = Programs::new();
    let mut count = 0;
    for (path, text) in pages() {
        for (number, (_, source)) in split(&text).0.into_iter().filter(|(of, _)| *of == "c").enumerate() {
            let name = format!("{}_{number}", path.file_stem().unwrap().to_str().unwrap());
            let file = programs.path(&format!("{name}.c"));
            std::fs::write(&file, &source).unwrap();
            programs.add(&name, file.to_str().unwrap(), &[]);
            let printed = programs.run(&name, |command| command);
            let lines = source.lines().filter(|line| line.contains("printf(\"%g"));
            let said: Vec<&str> =
                lines.filter_map(|line| Some(line.split_once("/* ")?.1.split_once(" */")?.0)).collect();
            assert!(!said.is_empty(), "{}: a program says nothing of what it prints", path.display());
            assert_eq!(printed.lines().collect::<Vec<_>>(), said, "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 2, "programs are lost");
}

/// Returns the help text of a command.
fn help(command: &mut Command) -> String {
    let output = command.arg("--help").output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Scripts that the pages mention exist, and know the options that are used there.
#[test]
fn scripts_are_there() {
    let mut count = 0;
    for (path, text) in pages() {
        for (language, block) in split(&text).0 {
            assert!(
                ["c", "sh", "text", "rust", "cuda"].contains(&language),
                "{}: {language:?}",
                path.display()
            );
            for line in block.lines().filter(|line| line.starts_with("scripts/")) {
                let line = line.split('#').next().unwrap();
                let mut words = line.split_whitespace();
                let script = words.next().unwrap();
                let options: Vec<&str> = words.filter(|word| word.starts_with("--")).collect();
                assert!(root().join(script).exists(), "{}: there is no {script}", path.display());
                let text = options
                    .is_empty()
                    .then(String::new)
                    .unwrap_or_else(|| help(&mut Command::new(root().join(script))));
                for option in options {
                    assert!(text.contains(option), "{}: {script} has no {option}", path.display());
                }
                count += 1;
            }
        }
    }
    assert!(count >= 4, "commands are lost");
}
