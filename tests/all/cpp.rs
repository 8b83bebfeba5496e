//! Tests of include/tarsia.hpp by C++ programs that use it, with every compiler and standard that is
//! supported.
//!
//! They run on the host backend, and in a GPU bundle on a device. Without a C++ compiler they are skipped.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use crate::abi::tools::{Compiler, Programs};
use crate::common::{root, skip};
use crate::generated::header;

/// Returns the path of a program in tests/all/cpp.
fn source(name: &str) -> PathBuf {
    root().join("tests/all/cpp").join(name)
}

/// Compiles and runs the programs, and checks the numbers of checks that they print.
fn programs_pass(compiler: Compiler, standard: &str) {
    let programs = Programs::new();
    for (name, least) in [("products", 800), ("behaviour", 100)] {
        let file = source(&format!("{name}.cpp"));
        if let Err(missing) = programs.compile(compiler, name, &file, &[standard]) {
            skip(format!("tarsia.hpp with {compiler:?} {standard}: {missing}"));
            return;
        }
        for backend in ["host", "reference"] {
            let folder = tempfile::tempdir().unwrap();
            let said = programs.run(name, |program| program.arg(backend).arg(folder.path()));
            let checks = said.strip_suffix(" checks\n").and_then(|count| count.parse::<usize>().ok());
            assert!(checks.is_some_and(|checks| checks >= least), "{name} {backend} says {said}");
        }
    }
}

#[test]
fn programs_pass_as_cpp17() {
    programs_pass(Compiler::Cpp, "-std=c++17");
}

#[test]
fn programs_pass_as_cpp20() {
    programs_pass(Compiler::Cpp, "-std=c++20");
}

#[test]
fn programs_pass_as_cpp17_by_clang() {
    programs_pass(Compiler::Clang, "-std=c++17");
}

#[test]
fn programs_pass_as_cpp20_by_clang() {
    programs_pass(Compiler::Clang, "-std=c++20");
}

/// Several files of a program may include the header, each more than once, in any standard, without anything
/// being defined twice.
#[test]
fn files_of_one_program_include_the_header() {
    let programs = Programs::new();
    let one = programs.path("one.cpp");
    let main = programs.path("main.cpp");
    let include = "#include <tarsia.hpp>\n#include <tarsia.h>\n#include <tarsia.hpp>\n";
    let text = "int one() { return tarsia::Handle(TARSIA_BACKEND_HOST).backend() == TARSIA_BACKEND_HOST; }\n";
    std::fs::write(&one, format!("{include}{text}")).unwrap();
    let text = "int one();\nint main() { return one() && tarsia::version() == TARSIA_VERSION ? 0 : 1; }\n\
                #ifdef TARSIA_HPP_CALL\n#error \"a macro is left\"\n#endif\n";
    std::fs::write(&main, format!("{include}{text}")).unwrap();
    let flags = ["-std=c++17", one.to_str().unwrap(), "-Wl,--no-as-needed"];
    match programs.compile(Compiler::Cpp, "two", &main, &flags) {
        Err(missing) => skip(format!("tarsia.hpp in two files: {missing}")),
        Ok(()) => drop(programs.run("two", |program| program)),
    }
}

/// Returns the compiler's message for a program that must not compile; `None` if there is no compiler.
fn refused(standard: &str, code: &str) -> Option<String> {
    let program = Compiler::Cpp.program().ok()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.cpp");
    std::fs::write(&file, code).unwrap();
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").args([standard, "-fsyntax-only", "-I"]).arg(root().join("include")).arg(file);
    let output = command.output().unwrap();
    assert!(!output.status.success(), "this compiles:\n{code}");
    Some(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Compiler's message on an array that is gone when its address is used.
const TEMPORARY: &str = "a temporary array is gone after this statement";

/// Wrong programs do not compile, and the compiler's message says what is wrong.
#[test]
fn compilers_say_what_is_wrong() {
    for (statement, words) in [
        (
            "const int *p = nullptr; double *v = nullptr; tarsia::SparseMatrix::csr(1, 1, 0, p, p, v);",
            "arrays of const elements make a ConstSparseMatrix",
        ),
        (
            "const double x[2] = {}; tarsia::DenseVector vec(x);",
            "an array of const elements makes a ConstDenseVector",
        ),
        (
            "const double *b = nullptr; tarsia::DenseMatrix mat(1, 1, 1, b, TARSIA_ORDER_ROW);",
            "an array of const elements makes a ConstDenseMatrix",
        ),
        ("long double x[2] = {}; tarsia::DenseVector vec(x);", "not a type of values: float, double"),
        (
            "unsigned *p = nullptr; double *v = nullptr; tarsia::SparseMatrix::csr(1, 1, 0, p, p, v);",
            "offsets and indices are signed integers of 32 or 64 bits",
        ),
        (
            "tarsia::Handle h; tarsia::DeviceBuffer<double> b(h, 1); std::vector<float> v(1); b.copyTo(v);",
            "the array has elements of another type",
        ),
        ("tarsia::DenseVector vec(std::vector<double>(2));", TEMPORARY),
        ("tarsia::Handle h; tarsia::ConstDenseVector vec(tarsia::DeviceBuffer<double>(h, 2));", TEMPORARY),
        ("tarsia::DenseMatrix mat(1, 2, std::vector<double>(2), TARSIA_ORDER_ROW);", TEMPORARY),
        ("tarsia::DenseMatrix mat(1, 2, 2, std::vector<double>(2), TARSIA_ORDER_ROW);", TEMPORARY),
        ("std::vector<int> i; tarsia::SparseMatrix::csr(1, 1, i, i, std::vector<double>(2));", TEMPORARY),
        ("std::vector<int> i; tarsia::SparseMatrix::coo(1, 1, i, i, std::vector<double>(2));", TEMPORARY),
        ("tarsia::Handle h; tarsia::SpMVPlan p; p.updateValues(h, std::vector<double>(2));", TEMPORARY),
        ("tarsia::Handle h; tarsia::Handle copy(h);", "deleted"),
    ] {
        let code = format!("#include <tarsia.hpp>\nint main() {{ {statement} }}\n");
        let Some(said) = refused("-std=c++17", &code) else {
            skip("programs that tarsia.hpp refuses: no C++ compiler");
            return;
        };
        assert!(said.contains(words), "`{words}` is not said to `{statement}`:\n{said}");
        // A sentence that stands among pages of candidates is not read.
        let errors = said.matches("error: ").count();
        assert!(words != TEMPORARY || errors == 1, "{errors} errors for `{statement}`:\n{said}");
    }
    let said = refused("-std=c++14", "#include <tarsia.hpp>\nint main() {}\n").unwrap();
    assert!(said.contains("tarsia.hpp needs C++17"), "{said}");
}

/// CUDA's own 16-bit types are known if their headers are included first.
#[test]
fn types_of_cuda_are_known() {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let places = toolkits.chain([root().join(".cuda"), "/usr/local/cuda".into()]);
    let Some(include) = places.map(|place| place.join("include")).find(|at| at.join("cuda_bf16.h").exists())
    else {
        skip("16-bit types of CUDA in C++: no CUDA toolkit (scripts/install-nvcc makes one)");
        return;
    };
    let programs = Programs::new();
    let file = programs.path("types.cpp");
    let text = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <tarsia.hpp>\n\
                static_assert(tarsia::dataTypeOf<__half> == TARSIA_R_16F);\n\
                static_assert(tarsia::dataTypeOf<const __nv_bfloat16> == TARSIA_R_16BF);\n\
                int main() {\n    __half values[2] = {};\n    return tarsia::DenseVector(values).size() == 2 ? 0 : 1;\n}\n";
    std::fs::write(&file, text).unwrap();
    let flags = ["-std=c++17", "-isystem", include.to_str().unwrap()];
    match programs.compile(Compiler::Cpp, "types", &file, &flags) {
        Err(missing) => skip(format!("16-bit types of CUDA in C++: {missing}")),
        Ok(()) => drop(programs.run("types", |program| program)),
    }
}

/// C functions without a counterpart in tarsia.hpp, by reason: programs call them with get().
const LEFT_TO_C: &[(&str, &[&str])] = &[
    ("names and sentences of statuses, of which Error has the first", &["tarsiaGetErrorString"]),
    ("the parts of the version, of which version() is made", &["tarsiaGetProperty"]),
    (
        "all fields at once; the objects tell each",
        &["tarsiaCsrGet", "tarsiaCscGet", "tarsiaCooGet", "tarsiaBsrGet", "tarsiaDnVecGet", "tarsiaDnMatGet"],
    ),
    (
        "other arrays for a descriptor, which reach no plan: a new descriptor costs as little",
        &["tarsiaCsrSetPointers", "tarsiaCscSetPointers", "tarsiaCooSetPointers", "tarsiaBsrSetPointers"],
    ),
    (
        "arrays that may be written: values() gives them to read, and the program has them",
        &["tarsiaSpMatGetValues", "tarsiaDnVecGetValues", "tarsiaDnMatGetValues"],
    ),
];

/// Returns the header files of the C++ interface.
fn headers() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("include/tarsia")).unwrap();
    let parts = folder.map(|entry| entry.unwrap().path());
    parts.chain([root().join("include/tarsia.hpp")]).collect()
}

/// Every function of tarsia.h has a counterpart in tarsia.hpp, or a reason above why it has none.
#[test]
fn every_c_function_is_used_or_left_out_for_a_reason() {
    let text: String = headers().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let used: BTreeSet<&str> =
        code.split(|letter| !word(letter)).filter(|name| name.starts_with("tarsia")).collect();
    let left: BTreeSet<&str> = LEFT_TO_C.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let functions = header::parse().functions;
    assert!(functions.len() > 80, "{}", functions.len());
    for function in &functions {
        let name = function.name.as_str();
        assert!(
            used.contains(name) || left.contains(name),
            "{name}: tarsia.hpp lacks it, and nothing says why"
        );
        assert!(!(used.contains(name) && left.contains(name)), "{name} is in tarsia.hpp");
    }
    for name in left {
        assert!(functions.iter().any(|function| function.name == name), "there is no {name}");
    }
}

/// Each call that throws names the C function that failed.
#[test]
fn errors_name_the_function_that_failed() {
    let text = std::fs::read_to_string(root().join("include/tarsia/plans.hpp")).unwrap();
    let mut calls = 0;
    // `return tarsiaSpMV(...); }; detail::scaled("tarsiaSpMV", ...)`: these two are the only ones apart.
    for part in text.split("return tarsia").skip(1) {
        let called = format!("tarsia{}", part.split('(').next().unwrap());
        let Some((_, named)) = part.split_once("scaled(\"") else { continue };
        assert_eq!(named.split('"').next().unwrap(), called);
        calls += 1;
    }
    assert_eq!(calls, 7);
}
