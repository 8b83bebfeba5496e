//! Tests of include/tarsia.f90 by a Fortran program that uses its overloads for Fortran's own scalars,
//! strings and arrays.
//!
//! The module's declarations are compared with the header in `generated`; c_examples/cg.f90 is run with the
//! other examples. Without a Fortran compiler this is skipped.

use std::path::Path;

use crate::abi::tools::{has, library, run, Programs};
use crate::common::{root, skip};

/// Returns the Fortran compiler: `$FC`, or else gfortran.
fn compiler() -> Option<String> {
    let program = std::env::var("FC").unwrap_or_else(|_| "gfortran".to_string());
    has(&program).then_some(program)
}

/// Compiles the module and a program with every warning as an error.
fn compile_with(compiler: &str, programs: &Programs, name: &str, source: &Path) {
    let program = programs.path(name);
    run(compiler, |command| {
        command
            .args(["-std=f2018", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fcheck=all", "-J"])
            .arg(program.parent().unwrap())
            .arg(root().join("include/tarsia.f90"))
            .arg(source)
            .arg(format!("-L{}", library().parent().unwrap().display()))
            .args(["-ltarsia", "-o"])
            .arg(&program)
    });
}

/// Compiles the module and any program; `Err` if there is no compiler.
pub fn compile_file(programs: &Programs, name: &str, source: &Path) -> Result<(), String> {
    let compiler = compiler().ok_or("no gfortran")?;
    compile_with(&compiler, programs, name, source);
    Ok(())
}

/// Compiles the module and a program of tests/all/fortran, and returns the program's name.
fn compile(compiler: &str, programs: &Programs, name: &str) -> String {
    compile_with(compiler, programs, name, &root().join(format!("tests/all/fortran/{name}.f90")));
    name.to_string()
}

#[test]
fn forms_for_fortran_pass() {
    let Some(compiler) = compiler() else {
        skip("forms of the Fortran module: no gfortran");
        return;
    };
    let programs = Programs::new();
    let name = compile(&compiler, &programs, "forms");
    let folder = tempfile::tempdir().unwrap();
    let said = programs.run(&name, |program| program.arg(folder.path()));
    let checks = said.trim().strip_suffix(" checks").and_then(|count| count.parse::<usize>().ok());
    assert!(checks.is_some_and(|checks| checks >= 200), "{said}");
}

/// Wrong argument types are compile errors: there is no overload for them.
#[test]
fn wrong_types_do_not_compile() {
    let Some(compiler) = compiler() else {
        skip("wrong programs with the Fortran module: no gfortran");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wrong.f90");
    run(&compiler, |command| {
        let command = command.arg("-fsyntax-only").arg("-J").arg(folder.path());
        command.arg(root().join("include/tarsia.f90"))
    });
    for (statement, right) in [
        // alpha and beta of two kinds, then of one.
        ("status = tarsiaSpMV(p, p, 1.0, p, 0.0_c_double, p)", false),
        ("status = tarsiaSpMV(p, p, 1, p, 0, p)", false),
        ("status = tarsiaSpMV(p, p, 1.0_c_double, p, 0.0_c_double, p)", true),
        ("status = tarsiaSpMV(p, p, p, p, p, p)", true),
        // Indices of two widths, and an array of a type that the library does not have.
        ("status = tarsiaCreateCsr(p, 1_c_int64_t, 1_c_int64_t, narrow, wide, values, 1)", false),
        ("status = tarsiaCreateCsr(p, 1_c_int64_t, 1_c_int64_t, wide, wide, values, 1)", true),
        ("status = tarsiaCreateDnVec(p, words)", false),
    ] {
        let text = format!(
            "program wrong\nuse, intrinsic :: iso_c_binding\nuse tarsia\nimplicit none\ninteger(c_int) :: status\n\
             type(c_ptr) :: p\ninteger(c_int32_t), target :: narrow(2)\ninteger(c_int64_t), target :: wide(2)\n\
             real(c_double), target :: values(2)\nlogical, target :: words(2)\n{statement}\nend program wrong\n"
        );
        std::fs::write(&source, text).unwrap();
        let mut command = std::process::Command::new(&compiler);
        let output = command.arg("-fsyntax-only").arg("-I").arg(folder.path()).arg(&source).output().unwrap();
        assert_eq!(
            output.status.success(),
            right,
            "{statement}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
