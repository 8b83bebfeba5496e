//! Parser of include/tarsia.f90, for the subset of Fortran that scripts/fortran-module.py writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Declarations of the module.
#[derive(Debug, Default)]
pub struct Module {
    /// Named constants.
    pub parameters: HashMap<String, i64>,
    /// `bind(C)` types: name and (Fortran type, component).
    pub types: Vec<(String, Vec<(String, String)>)>,
    /// Interfaces of C functions.
    pub functions: Vec<Interface>,
}

/// Interface with `bind(C, name=…)`.
#[derive(Debug)]
pub struct Interface {
    /// C function that it calls.
    pub binding: String,
    /// Fortran name.
    pub name: String,
    /// Arguments: Fortran type with its attributes, and name.
    pub args: Vec<(String, String)>,
    /// Fortran type of the result.
    pub result: String,
}

/// Returns the path of include/tarsia.f90.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tarsia.f90")
}

/// Parses the declarations of a module.
pub fn parse(text: &str) -> Module {
    let mut module = Module::default();
    let mut lines = lines(text).into_iter();
    while let Some(line) = lines.next() {
        if line.contains("parameter, public ::") {
            let (name, value) =
                line.split_once("::").expect("just found").1.split_once('=').expect("a constant has a value");
            // The expression for a struct's size is not a number.
            if let Ok(value) = value.trim().parse() {
                module.parameters.insert(name.trim().to_string(), value);
            }
        } else if line.starts_with("type, bind(C)") {
            let name = line.rsplit("::").next().expect("a type has a name").trim().to_string();
            let fields = lines.by_ref().take_while(|line| !line.starts_with("end type"));
            module.types.push((name, fields.map(|line| declaration(&line)).collect()));
        } else if let Some((head, binding)) = line.split_once("bind(C, name=\"") {
            let (keywords, rest) =
                head.split_once("function ").unwrap_or_else(|| panic!("not a function: {line}"));
            assert!(["", "pure "].contains(&keywords), "not understood: {line}");
            let (name, args) = rest.split_once('(').expect("arguments have parentheses");
            let args =
                args.trim().trim_end_matches(')').split(',').map(str::trim).filter(|arg| !arg.is_empty());
            let mut types: HashMap<String, String> = HashMap::new();
            for line in lines.by_ref().take_while(|line| !line.starts_with("end function")) {
                if line.contains("::") && !line.starts_with("import") {
                    let (kind, name) = declaration(&line);
                    // An array of any length corresponds to a pointer in C.
                    types.insert(name.trim_end_matches("(*)").to_string(), kind);
                }
            }
            let mut take =
                |name: &str| types.remove(name).unwrap_or_else(|| panic!("{line}: {name} is not declared"));
            module.functions.push(Interface {
                binding: binding.trim_end_matches("\")").to_string(),
                name: name.to_string(),
                args: args.map(|arg| (take(arg), arg.to_string())).collect(),
                result: take(name),
            });
        }
    }
    module
}

/// Returns source lines without comments, with continued lines joined.
fn lines(text: &str) -> Vec<String> {
    let (mut out, mut line) = (Vec::new(), String::new());
    for part in text.lines() {
        let part = part.split('!').next().unwrap_or_default().trim();
        match part.strip_suffix('&') {
            Some(part) => line.push_str(part),
            None => out.push(std::mem::take(&mut line) + part),
        }
    }
    out.retain(|line| !line.is_empty());
    out
}

/// Splits `integer(c_int), value, intent(in) :: n = 0` into (`integer(c_int), value, intent(in)`, `n`).
fn declaration(line: &str) -> (String, String) {
    let (kind, name) = line.split_once("::").unwrap_or_else(|| panic!("not a declaration: {line}"));
    let name = name.split('=').next().unwrap_or_default().trim();
    (kind.trim().to_string(), name.to_string())
}
