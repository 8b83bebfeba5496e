//! Several libraries of one SONAME, made by the C compiler, whose functions only report their version.

use std::path::Path;
use std::process::Command;

use super::*;

/// Names of all functions that are looked up, so that a stand-in library can be opened.
const FUNCTIONS: &[&str] = super::super::api::REQUIRED;

fn compile(path: &Path, source: &str, soname: &str) -> String {
    let text = path.with_extension("c");
    std::fs::write(&text, source).unwrap();
    let soname = format!("-Wl,-soname,{soname}");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut cc = Command::new(cc);
    cc.args(["-shared", "-fPIC", &soname, "-o"]).arg(path).arg(&text);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path.to_string_lossy().into_owned()
}

/// Makes a library of this version in a folder of its own. As cuSPARSE's functions may, cusparseGetProperty
/// calls another function of its library by a name that all of them have.
fn library(folder: &Path, name: &str, [major, minor, patch]: [i32; 3]) -> String {
    let mut source = format!(
        "int tarsia_stand_in_version(int at) {{ return at == 0 ? {major} : at == 1 ? {minor} : {patch}; }}\n\
         int cusparseGetProperty(int at, int *value) {{ *value = tarsia_stand_in_version(at); return 0; }}\n"
    );
    for function in FUNCTIONS.iter().filter(|name| **name != "cusparseGetProperty") {
        source += &format!("int {function}(void) {{ return 1; }}\n");
    }
    std::fs::create_dir_all(folder.join(name)).unwrap();
    compile(&folder.join(name).join("libcusparse.so.12"), &source, "libcusparse.so.12")
}

fn versions(opened: &[Opened]) -> Vec<&str> {
    opened.iter().map(|opened| opened.version.as_str()).collect()
}

#[test]
fn each_file_is_opened_as_itself() {
    let folder = tempfile::tempdir().unwrap();
    let old = library(folder.path(), "old", [12, 6, 3]);
    let new = library(folder.path(), "new", [12, 9, 4]);
    let copy = library(folder.path(), "copy", [12, 9, 4]);
    let opened = open(&[old.clone(), new.clone(), copy]).unwrap();
    assert_eq!(versions(&opened), ["12.6.3", "12.9.4", "12.9.4"]);
    assert_eq!(suffixes(&versions(&opened)), ["@12.6.3", "@12.9.4", "@12.9.4#2"]);
    // A single library has no version in its name.
    assert_eq!(suffixes(&versions(&open(std::slice::from_ref(&new)).unwrap())), [""]);
    let link = folder.path().join("libcusparse-link.so").to_string_lossy().into_owned();
    std::os::unix::fs::symlink(&new, &link).unwrap();
    for other in [&new, &link] {
        let said = open(&[old.clone(), new.clone(), other.clone()]).err().unwrap().to_string();
        for part in ["--library", &new, other, "12.9.4", "one file"] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[test]
fn a_file_that_is_no_cusparse_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let old = library(folder.path(), "old", [12, 5, 1]);
    let missing = folder.path().join("missing.so").to_string_lossy().into_owned();
    let other = compile(&folder.path().join("libother.so"), "int f(void) { return 0; }", "libother.so");
    for file in [missing, other] {
        let said = open(&[old.clone(), file.clone()]).err().unwrap().to_string();
        assert!(said.contains(&format!("--library {file}: cuSPARSE cannot be opened")), "{said}");
    }
}

/// Libraries of one SONAME that others need: the newest serves them all, wherever it is in the list.
#[test]
fn the_newest_of_what_is_needed_is_opened_first() {
    let folder = tempfile::tempdir().unwrap();
    let soname = "libtarsia-stand-in-needed.so";
    let make = |name: &str, minor: i32| {
        let source = format!(
            "int needed_version(unsigned *major, unsigned *minor) {{ *major = 13; *minor = {minor}; return 0; }}\n"
        );
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        compile(&folder.path().join(name).join(soname), &source, soname)
    };
    let paths = [make("a", 0), make("b", 2), make("c", 1)];
    preload_newest_first(&paths, c"needed_version");
    // For the SONAME alone the loader returns the library that was opened first.
    let library = Library::open(&[soname.to_string()], Scope::Local).unwrap();
    let mut numbers = (0, 0);
    // SAFETY: the function above has this type, and its answers are valid for writes.
    unsafe {
        let ask: unsafe extern "C" fn(*mut u32, *mut u32) -> i32 =
            library.required(c"needed_version").unwrap();
        ask(&mut numbers.0, &mut numbers.1);
    }
    assert_eq!(numbers, (13, 2));
}
