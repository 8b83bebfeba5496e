//! Tests of the README and the pages of docs/: links have targets, programs compile and print what the pages
//! say, and commands exist.
//!
//! Each block of code has a language, and each language a test. Commands of the program `tarsia` are compared with its
//! help in crates/cli/tests/cli/docs.rs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::abi::tools::{has, library, run, Compiler, Programs};
use crate::common::{root, skip};
use crate::examples::Tree;

/// Returns the texts of the README, the changes, and the pages of docs/, by path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let files = |folder: &'static str| {
        let files = std::fs::read_dir(root().join(folder)).unwrap();
        files.map(move |entry| Path::new(folder).join(entry.unwrap().file_name()))
    };
    let docs = files("docs").chain(files("docs/algorithms"));
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let more = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "c_examples/README.md"].map(PathBuf::from);
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
    // The spaces before the fence of the present block, which may stand in a list.
    let (mut fence, mut indented) = (None, false);
    for line in text.lines() {
        let unindented = line.trim_start();
        if let Some(language) = unindented.strip_prefix("```") {
            indented = false;
            fence = match fence {
                Some(_) => None,
                None => {
                    blocks.push((language, String::new()));
                    Some(line.len() - unindented.len())
                }
            };
        } else if fence.is_some() || line.starts_with("    ") {
            if fence.is_none() && !indented {
                blocks.push(("sh", String::new()));
            }
            indented = fence.is_none();
            let block = &mut blocks.last_mut().unwrap().1;
            block.push_str(line.get(fence.unwrap_or(4)..).unwrap_or_default());
            block.push('\n');
        } else {
            indented = false;
            prose.push_str(line);
            prose.push('\n');
        }
    }
    assert!(fence.is_none(), "a block of code does not end");
    (blocks, prose)
}

#[test]
fn blocks_are_found() {
    let text = "a\n```c\nint x;\n```\n    scripts/b\n    c\n\n  ```text\n  d\n    e\n  ```\n";
    let (blocks, prose) = split(text);
    assert_eq!(blocks.iter().map(|(language, _)| *language).collect::<Vec<_>>(), ["c", "sh", "text"]);
    let bodies: Vec<_> = blocks.iter().map(|(_, body)| body.as_str()).collect();
    assert_eq!(bodies, ["int x;\n", "scripts/b\nc\n", "d\n  e\n"]);
    assert_eq!(prose, "a\n\n");
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

/// Links have targets, but those of the page on the reference, which `scripts/docs` makes and checks itself.
#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    for (path, text) in &pages {
        for link in links(&split(text).1).into_iter().filter(|link| !link.contains("://")) {
            if path.ends_with("docs/reference.md") && link.starts_with("reference/") {
                continue;
            }
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
    for path in pages.keys().filter(|path| !path.ends_with("SUMMARY.md")) {
        let name = match path.strip_prefix("docs") {
            Ok(name) => name.display().to_string(),
            Err(_) => format!("../{}", path.display()),
        };
        assert!(listed.contains(name.as_str()), "docs/SUMMARY.md does not list {name}");
    }
    let lines = pages[Path::new("README.md")].lines().count();
    assert!(lines <= 150, "README.md has {lines} lines; 150 is the most");
}

/// The languages of blocks, each of which has a test here. `text` is for what no tool reads: messages, formulas,
/// pictures, and sketches of what does not exist.
const LANGUAGES: [&str; 7] = ["c", "cpp", "fortran", "python", "cmake", "sh", "text"];

#[test]
fn languages_have_tests() {
    for (path, text) in pages() {
        for (language, _) in split(&text).0 {
            assert!(LANGUAGES.contains(&language), "{}: {language:?}", path.display());
        }
    }
}

/// Returns the lines that a program prints, as it says in comments behind its prints of numbers.
fn said<'a>(source: &'a str, print: &str, comment: &str) -> Vec<&'a str> {
    let lines = source.lines().filter(|line| line.contains(print));
    let behind = lines.filter_map(|line| Some(line.split_once(comment)?.1));
    behind.map(|said| said.trim_end_matches("*/").trim()).collect()
}

/// Programs of the pages compile without warnings and run; a print of numbers prints what the comment behind it
/// says, or a program all that is in the block of text behind it. C must be there; other languages are skipped where their
/// compilers, or python3, are missing.
#[test]
fn programs_do_what_they_say() {
    let programs = Programs::new();
    let mut counts = BTreeMap::new();
    for (path, text) in pages() {
        let blocks = split(&text).0;
        for (number, (language, source)) in blocks.iter().enumerate() {
            let language = *language;
            let (end, print, comment) = match language {
                "c" => ("c", "printf(\"%g", "/* "),
                "cpp" => ("cpp", "std::printf(\"%g", "// "),
                "fortran" => ("f90", "print *", "! "),
                "python" => ("py", "print(", "# "),
                _ => continue,
            };
            let name = format!("{}_{number}", path.file_stem().unwrap().to_str().unwrap());
            let file = programs.path(&format!("{name}.{end}"));
            std::fs::write(&file, source).unwrap();
            let compiled = match language {
                "c" => programs.compile(Compiler::C, &name, &file, &["-std=c11"]),
                "cpp" => programs.compile(Compiler::Cpp, &name, &file, &["-std=c++17"]),
                "python" if has("python3") => Ok(()),
                "python" => Err("no python3".to_string()),
                _ => crate::fortran::compile_file(&programs, &name, &file),
            };
            if let Err(missing) = compiled {
                assert_ne!(language, "c", "{missing}");
                skip(format!("a {language} program of {}: {missing}", path.display()));
                continue;
            }
            let printed = match language {
                "python" => run("python3", |command| command.arg(&file).arg(library())),
                _ => programs.run(&name, |command| command),
            };
            let mut expected = said(source, print, comment).join("\n");
            if let (true, Some(("text", next))) = (expected.is_empty(), blocks.get(number + 1)) {
                expected.clone_from(next);
            }
            let words = |text: &str| -> Vec<String> {
                text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
            };
            assert!(!expected.is_empty(), "{}: a program says nothing of what it prints", path.display());
            assert_eq!(words(&printed), words(&expected), "{}", path.display());
            *counts.entry(language.to_string()).or_insert(0) += 1;
        }
    }
    assert!(counts["c"] >= 2, "programs are lost");
}

#[test]
fn said_output_is_found() {
    let source =
        "a;\nprintf(\"%g %g\\n\", x, y); /* 1 2 */\nprintf(\"%g\\n\", z);\nprintf(\"%d\\n\", n); /* 3 */\n";
    assert_eq!(said(source, "printf(\"%g", "/* "), ["1 2"]);
    assert_eq!(said("print *, y ! 4 5\n", "print *", "! "), ["4 5"]);
}

/// Writes the programs of a page into a folder, as `first` with the ending of each language, or CMakeLists.txt; a
/// second one in C is `spmm.c`.
fn write_programs(page: &str, folder: &Path) {
    for (language, block) in split(page).0 {
        let name = match language {
            "c" if folder.join("first.c").exists() => "spmm.c",
            "c" => "first.c",
            "cpp" => "first.cpp",
            "fortran" => "first.f90",
            "python" => "first.py",
            "cmake" => "CMakeLists.txt",
            _ => continue,
        };
        assert!(!folder.join(name).exists(), "two programs of one language");
        std::fs::write(folder.join(name), block).unwrap();
    }
}

/// Runs the commands of a page in a folder, with an installation in the place of `prefix`. A line whose first
/// word is a program that is missing is skipped.
fn run_commands(page: &str, prefix: &str, installed: &Path, folder: &Path) -> usize {
    let mut script = String::new();
    let mut count = 0;
    let commands = split(page).0.into_iter().filter(|(language, _)| *language == "sh");
    for line in commands.flat_map(|(_, block)| logical_lines(&block)) {
        let program = line.split_whitespace().next().unwrap();
        // The library is installed, and the lines that say how are not these.
        if program.starts_with("scripts/") {
            continue;
        }
        if program.chars().all(|c| c.is_alphanumeric() || "+-".contains(c))
            && program != "export"
            && !has(program)
        {
            skip(format!("`{line}`: no {program}"));
            continue;
        }
        let line = line.replace(prefix, &installed.display().to_string());
        script.push_str(&format!("{{ {line}; }} || exit 1\n"));
        count += 1;
    }
    std::fs::write(folder.join("commands"), script).unwrap();
    eprintln!("{}", run("sh", |command| command.arg("commands").current_dir(folder)));
    count
}

/// The commands of first-steps.md build its programs, and those of c_examples/README.md the examples.
#[test]
fn commands_build_the_programs() {
    let tree = Tree::new();
    let folder = tempfile::tempdir().unwrap();
    // The tree has a space in its path, which the pages' commands need not survive.
    let installed = folder.path().join("tarsia");
    std::os::unix::fs::symlink(tree.prefix(), &installed).unwrap();
    let page = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();

    let first = folder.path().join("first");
    std::fs::create_dir(&first).unwrap();
    let text = page("docs/first-steps.md");
    write_programs(&text, &first);
    assert!(run_commands(&text, "/opt/tarsia", &installed, &first) >= 2, "commands are lost");
    let made = ["first", "spmm"].map(|name| first.join(name).exists());
    assert_eq!(made, [true; 2], "no command makes a program");

    let text = page("c_examples/README.md");
    let by_hand = text.split("\n## ").find(|part| part.starts_with("Compile by hand")).unwrap();
    if !has("pkg-config") {
        skip("commands of c_examples/README.md: no pkg-config");
        return;
    }
    let examples = folder.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    for name in ["spmv.c", "spmm.cpp", "cg.f90"] {
        std::fs::copy(root().join("c_examples").join(name), examples.join(name)).unwrap();
    }
    assert!(run_commands(by_hand, "$HOME/tarsia", &installed, &examples) >= 3, "commands are lost");
    assert!(examples.join("spmv").exists(), "no command makes the program");
}

/// Returns the lines of a block of commands without comments, with lines joined that end in a backslash.
fn logical_lines(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(|line| match line.strip_prefix('#') {
        Some(_) => "",
        None => line.split(" #").next().unwrap().trim(),
    });
    lines.filter(|line| !line.is_empty()).map(str::to_string).collect()
}

/// Returns the help text of a command.
fn help(command: &mut Command) -> String {
    let output = command.arg("--help").output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Programs that are not this project's, and the shell's own words.
const TOOLS: [&str; 18] = [
    "cargo",
    "cc",
    "c++",
    "gcc",
    "g++",
    "gfortran",
    "nvcc",
    "cmake",
    "ctest",
    "cd",
    "export",
    "pip",
    "mpirun",
    "python3",
    "git",
    "clang-format",
    "apt-get",
    "tar",
];

/// Returns whether the packages and tests that a command of Cargo names exist.
fn cargo_names_exist(words: &[&str]) -> bool {
    words.windows(2).all(|pair| match pair {
        ["-p", package] => {
            let name = format!("name = \"{package}\"");
            std::iter::once(root())
                .chain(std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()))
                .any(|folder| {
                    std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|t| t.contains(&name))
                })
        }
        ["--test", test] => {
            root().join("tests").join(test).exists() || root().join("crates/cli/tests").join(test).exists()
        }
        _ => true,
    })
}

/// Every line of a block of commands begins with a program that is known: of a script of this project, the
/// file and the options exist; of Cargo, the packages and tests that it names.
#[test]
fn commands_are_known() {
    // Folders with scripts for other machines, and what makes them.
    let bundles = [("dist/gpu/", "scripts/gpu-bundle"), ("dist/gpu-petsc/", "scripts/petsc-gpu")]
        .map(|(folder, script)| (folder, script, std::fs::read_to_string(root().join(script)).unwrap()));
    let mut count = 0;
    for (path, text) in pages() {
        let blocks = split(&text).0.into_iter().filter(|(language, _)| *language == "sh");
        for line in blocks.flat_map(|(_, block)| logical_lines(&block)) {
            let wrong = |what: String| panic!("{}: `{line}`: {what}", path.display());
            // Variables that are set for one command, or for all that follow.
            let is_setting = |word: &&str| {
                word.split('=').next().is_some_and(|name| name != *word && !name.contains(['/', '-']))
            };
            // The output of another program, which becomes a variable.
            if line.split_once("=").is_some_and(|(name, value)| {
                is_setting(&line.as_str()) && !name.contains(' ') && value.contains("$(")
            }) {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().skip_while(is_setting).collect();
            let Some((&program, arguments)) = words.split_first() else { continue };
            let options =
                arguments.iter().take_while(|word| **word != "--").filter(|word| word.starts_with("--"));
            if program.starts_with("scripts/") || program.starts_with(".ci/") {
                if !root().join(program).exists() {
                    wrong(format!("there is no {program}"));
                }
                let options: Vec<_> = options.collect();
                let text = match options.is_empty() {
                    true => String::new(),
                    false => help(&mut Command::new(root().join(program))),
                };
                for option in options {
                    if !text.contains(*option) && !program.ends_with("update-generated") {
                        wrong(format!("{program} has no {option}"));
                    }
                }
                count += 1;
            } else if let Some((script, text, file)) = bundles
                .iter()
                .find_map(|(folder, script, text)| Some((script, text, program.strip_prefix(folder)?)))
            {
                if !text.contains(file) {
                    wrong(format!("{script} makes no such file"));
                }
            } else if program == "cargo" && !cargo_names_exist(arguments) {
                wrong("there is no such package or test".to_string());
            } else if program != "tarsia" && !TOOLS.contains(&program) {
                wrong(format!("{program} is not known"));
            }
        }
    }
    assert!(count >= 4, "commands are lost");
}

#[test]
fn commands_are_read() {
    let lines = logical_lines("# a\nb c # d\n\ne \\\n  f\n");
    assert_eq!(lines, ["b c", "e    f"]);
    assert!(cargo_names_exist(&["test", "-p", "tarsia-cli", "--test", "all"]));
    assert!(!cargo_names_exist(&["test", "-p", "tarsia-none"]));
    assert!(!cargo_names_exist(&["test", "--test", "none"]));
}

/// Returns the names of functions, types and constants of the interface in a text; one that goes on with … is only
/// the beginning of names.
fn interface_names(text: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for word in text.split(|c: char| !is_word(c) && c != '…') {
        let is_name = word
            .strip_prefix("tarsia")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
            || [
                "STATUS",
                "SPMV",
                "SPMM",
                "SPGEMM",
                "REORDER",
                "EFFORT",
                "COMPUTE",
                "OPERATION",
                "INDEX",
                "ORDER",
            ]
            .iter()
            .any(|kind| {
                word.strip_prefix("TARSIA_").is_some_and(|rest| rest.starts_with(&format!("{kind}_")))
            });
        if is_name && !word.contains('…') && !word.ends_with('_') {
            names.insert(word);
        }
    }
    names
}

/// Functions and constants that the pages name are in the header or the Fortran module. Not those of the changes and
/// of what was tried, which have older names, and of the pages on what does not exist yet.
#[test]
fn names_of_the_interface_exist() {
    let read = |name: &str| std::fs::read_to_string(root().join("include").join(name)).unwrap();
    let (header, module) = (read("tarsia.h"), read("tarsia.f90"));
    let known: BTreeSet<_> = interface_names(&header).into_iter().chain(interface_names(&module)).collect();
    let mut count = 0;
    for (path, text) in pages() {
        let name = path.display().to_string();
        if name == "CHANGELOG.md" || name.contains("/adding-") || name.ends_with("memory-and-streams.md") {
            continue;
        }
        let names = interface_names(&text);
        let wrong: Vec<_> = names.difference(&known).collect();
        assert!(wrong.is_empty(), "{name} names {wrong:?}");
        count += names.len();
    }
    assert!(count > 200, "names are lost: {count}");
}

#[test]
fn names_are_found() {
    let text = "`tarsiaSpMV(handle)`, tarsiaCsr…, `TARSIA_SPMV_ALG_…`, TARSIA_STATUS_OK, tarsia.h, TARSIA_NUM_THREADS";
    assert_eq!(interface_names(text), BTreeSet::from(["tarsiaSpMV", "TARSIA_STATUS_OK"]));
}

/// The tables of scripts/docs-files fit the header: each function, type and macro has a group, each parameter a
/// text, and no entry is left over. (scripts/docs makes the reference with them, and .ci/run runs it.)
#[test]
fn tables_of_the_reference_fit_the_header() {
    if !has("python3") {
        skip("tables of the reference: no python3");
        return;
    }
    let filter = root().join("scripts/docs-files/filter.py");
    let text = run("python3", |command| command.arg(&filter).arg(root().join("include/tarsia.h")));
    let functions = crate::generated::header::parse().functions;
    let documented = text.matches("@return ").count();
    assert_eq!(documented, functions.len(), "functions are lost");
    let parameters: usize = functions.iter().map(|function| function.args.len()).sum();
    assert_eq!(text.matches("\n * @param[").count(), parameters, "parameters are lost");
}
