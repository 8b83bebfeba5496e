//! Generator of THIRD-PARTY.md, which lists the third-party code in the library and the program, with its
//! licences.
//!
//! Crates are those that `cargo tree` lists as normal dependencies (no build scripts, procedural macros or
//! tests); copyright lines are those of their licence files. The few parts of CUDA are listed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Text for licences that are in no file of a crate's archive.
const NO_FILE: &str = "no file in the archive";

/// Crate that is linked.
#[derive(Debug, Default)]
struct Linked {
    /// Licence expression.
    licence: String,
    /// Address of the repository.
    repository: String,
    /// True if the crate is in the library as well as in the program.
    in_library: bool,
}

fn cargo(arguments: &[&str]) -> String {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let output = Command::new(program)
        .args(arguments)
        .args(["--offline", "--locked", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Returns the third-party crates, by name and version.
fn linked() -> BTreeMap<(String, String), Linked> {
    let mut all: BTreeMap<(String, String), Linked> = BTreeMap::new();
    for package in ["tarsia-cli", "tarsia"] {
        for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            let edges = ["-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}|{l}|{r}"];
            let tree = cargo(&[&["tree", "-p", package, "--target", target][..], &edges].concat());
            for line in tree.lines() {
                let fields: Vec<&str> = line.trim_end_matches(" (*)").split('|').collect();
                let [name, licence, repository] = fields[..] else { panic!("not understood: {line}") };
                // A path after the version: a package of this repository.
                if name.contains(" (") {
                    continue;
                }
                let (name, version) = name.split_once(" v").unwrap_or_else(|| panic!("no version: {line}"));
                let entry = all.entry((name.to_string(), version.to_string())).or_default();
                entry.licence = licence.replace('/', " OR ");
                entry.repository = repository.to_string();
                entry.in_library |= package == "tarsia";
            }
        }
    }
    all
}

/// Returns the folder of each crate's archive, by name and version.
fn folders() -> BTreeMap<(String, String), PathBuf> {
    let metadata =
        cargo(&["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let text = |package: &Value, field: &str| package[field].as_str().unwrap().to_string();
    packages
        .map(|package| {
            let manifest = PathBuf::from(text(package, "manifest_path"));
            ((text(package, "name"), text(package, "version")), manifest.parent().unwrap().to_path_buf())
        })
        .collect()
}

/// Returns the licence of an expression under which a crate is used: MIT if it is offered.
fn taken(expression: &str) -> &str {
    let mut offered = expression.split(" OR ").map(str::trim);
    if offered.clone().any(|licence| licence == "MIT") {
        return "MIT";
    }
    offered.next().unwrap()
}

/// Returns the file of a crate that has the text of a licence.
fn licence_file(folder: &Path, licence: &str) -> Option<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let own = format!("LICENSE-{}", licence.to_uppercase());
    let candidates = [own.as_str(), "LICENSE", "LICENSE.txt", "LICENSE.md"];
    candidates.iter().find(|name| names.contains(**name)).map(ToString::to_string)
}

/// Returns the copyright lines of a licence text.
fn copyright(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(|line| line.trim().trim_end_matches(['.', ' '])) {
        let begins = ["Copyright (c)", "Copyright (C)", "Copyright ©", "(C) "]
            .iter()
            .any(|start| line.starts_with(start));
        let year = line.strip_prefix("Copyright ").is_some_and(|rest| rest.starts_with(char::is_numeric));
        if (begins || year) && !line.contains('[') && !lines.iter().any(|known| known == line) {
            lines.push(line.replace('|', "/"));
        }
    }
    lines
}

/// Text of CUB's licence in its headers.
const CUB: &str = "\
Copyright (c) 2011, Duane Merrill. All rights reserved.
Copyright (c) 2011-2018, NVIDIA CORPORATION. All rights reserved.

Redistribution and use in source and binary forms, with or without modification, are permitted provided
that the following conditions are met:

* Redistributions of source code must retain the above copyright notice, this list of conditions and the
  following disclaimer.
* Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the
  following disclaimer in the documentation and/or other materials provided with the distribution.
* Neither the name of the NVIDIA CORPORATION nor the names of its contributors may be used to endorse or
  promote products derived from this software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS \"AS IS\" AND ANY EXPRESS OR IMPLIED
WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A
PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL NVIDIA CORPORATION BE LIABLE FOR ANY DIRECT, INDIRECT,
INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON
ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE)
ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
";

const HEAD: &str = "\
# Third-party notices

Tarsia itself is under MIT or Apache-2.0, at the user's choice (LICENSE-MIT, LICENSE-APACHE). The shared library and
the program `tarsia` have code of others in them, under the licences below; where a licence gives a choice, the one
named under *taken* is made use of. What is only needed to build, to test or to measure is not here, nor what is
loaded at run time and comes from the machine: the C library, libgcc, the CUDA driver, cublasLt.

Generated by `scripts/update-generated` from Cargo.lock and the crates' licence files; do not edit.

## Rust crates

*library*: in libtarsia.so and in the program; *program*: in the program alone. Texts are those files of the crates'
archives.

| crate | version | in | licence | taken | copyright | text |
|---|---|---|---|---|---|---|
";

const OTHERS: &str = "
## Others

| what | in | licence | text |
|---|---|---|---|
| Rust's standard library | library | MIT OR Apache-2.0 | <https://github.com/rust-lang/rust/blob/master/COPYRIGHT> |
| CUDA runtime, `libcudart_static.a` | library, where it is built with kernels | NVIDIA CUDA Toolkit End User License Agreement, whose attachment A lists it as redistributable | <https://docs.nvidia.com/cuda/eula/index.html> |
| CUB, of CCCL | library, where it is built with kernels | BSD-3-Clause | below |
| libcu++ and Thrust headers, of CCCL, which CUB includes | library, where it is built with kernels | Apache-2.0 WITH LLVM-exception; Apache-2.0 | <https://github.com/NVIDIA/cccl/blob/main/LICENSE> |
| DejaVu Sans, the font of pictures, in the crate dejavu | program | Bitstream Vera, with changes in the public domain | below |

## Texts

Apache-2.0 is in LICENSE-APACHE.
";

/// Crate whose own licence is that of its code, and the file in its archive with the licence of the font in it.
const FONT: (&str, &str) = ("dejavu", "assets/dejavu-fonts-ttf-2.37/LICENSE");

/// Returns the expected contents of THIRD-PARTY.md.
pub fn notices() -> String {
    let (linked, folders) = (linked(), folders());
    let mut out = HEAD.to_string();
    let mut others: BTreeMap<String, String> = BTreeMap::new();
    for ((name, version), of) in &linked {
        let folder = &folders[&(name.clone(), version.clone())];
        let licence = taken(&of.licence);
        let file = licence_file(folder, licence);
        let text = file.as_ref().map(|file| std::fs::read_to_string(folder.join(file)).unwrap());
        let lines = text.as_deref().map(copyright).unwrap_or_default().join("; ");
        let place = match &file {
            Some(file) => file.clone(),
            None => format!("{NO_FILE}: <{}>", of.repository),
        };
        writeln!(
            out,
            "| {name} | {version} | {} | {} | {licence} | {lines} | {place} |",
            if of.in_library { "library" } else { "program" },
            of.licence,
        )
        .unwrap();
        if let (false, Some(text)) = (["MIT", "Apache-2.0"].contains(&licence), text) {
            others.insert(format!("{licence}, of {name}"), text);
        }
        if name == FONT.0 {
            let text = std::fs::read_to_string(folder.join(FONT.1)).unwrap();
            others.insert("Bitstream Vera and others, of DejaVu Sans".into(), text.replace('\r', ""));
        }
    }
    out += OTHERS;
    let mit = std::fs::read_to_string(root().join("LICENSE-MIT")).unwrap();
    let mit = mit.find("Permission is hereby granted").map(|at| mit[at..].to_string()).unwrap();
    let texts = [("MIT, with the copyright lines above".to_string(), mit)];
    let texts = texts.into_iter().chain(others);
    for (title, text) in texts.chain([("BSD-3-Clause, of CUB".to_string(), CUB.to_string())]) {
        write!(out, "\n### {title}\n\n```\n{}\n```\n", text.trim()).unwrap();
    }
    out
}

/// Returns the licences that deny.toml allows.
fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    // The names are between quotation marks.
    list.split('"').skip(1).step_by(2).map(ToString::to_string).collect()
}

#[test]
fn licences_that_are_taken_are_allowed() {
    let (allowed, linked) = (allowed(), linked());
    assert!(allowed.len() > 4 && linked.len() > 30, "{allowed:?} {linked:?}");
    for ((name, _), of) in &linked {
        let licence = taken(&of.licence);
        assert!(allowed.contains(licence), "{name} is under {licence}, which deny.toml does not allow");
    }
    // The library has fewer crates than the program.
    let library = linked.values().filter(|of| of.in_library).count();
    assert!(library > 15 && library < linked.len(), "{library} of {}", linked.len());
    let is_there = |name: &str, in_library| {
        linked.iter().any(|((known, _), of)| known == name && of.in_library == in_library)
    };
    assert!(is_there("rayon", true) && is_there("clap", false), "{linked:?}");
    // A dependency of the build, and one of the tests.
    assert!(!linked.keys().any(|(name, _)| ["cbindgen", "proptest"].contains(&name.as_str())));
}

#[test]
fn one_licence_of_an_expression_is_taken() {
    assert_eq!(taken("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"), "MIT");
    assert_eq!(taken("Apache-2.0"), "Apache-2.0");
    assert_eq!(taken("Zlib"), "Zlib");
    let text =
        "The MIT License\n\nCopyright (c) 2020 A. Author.\nCopyright 2021 B\nCopyright [yyyy] [name]\n\
                The above copyright notice\n  Copyright (c) 2020 A. Author\n";
    assert_eq!(copyright(text), ["Copyright (c) 2020 A. Author", "Copyright 2021 B"]);
}
