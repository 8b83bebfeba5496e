//! Tests of `tarsia run`. A small library stands in for the drop-in: it says on stderr that it was preloaded.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{assert_has, error, stderr, stdout, Folder};

/// Variables that the command sets.
const VARIABLES: [&str; 5] = [
    "LD_PRELOAD",
    "TARSIA_CUSPARSE",
    "TARSIA_CUSPARSE_TAKE",
    "TARSIA_CUSPARSE_FP32",
    "TARSIA_CUSPARSE_VALUES",
];

/// Compiles a library that says `NAME was preloaded` when it is loaded; returns its path.
fn library(folder: &Folder, name: &str) -> String {
    let source = folder.text(
        &format!("{name}.c"),
        &format!(
            "#include <unistd.h>\n\
             static const char text[] = \"{name} was preloaded\\n\";\n\
             __attribute__((constructor)) static void speak(void)\n\
             {{\n    if (write(2, text, sizeof text - 1) < 0)\n        _exit(1);\n}}\n"
        ),
    );
    let library = folder.path(name);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let output = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", &source, "-o", &library])
        .output()
        .expect("the C compiler runs");
    assert!(output.status.success(), "{}", stderr(&output));
    library
}

/// Runs a program `tarsia` with these arguments behind `run`, and with these of [`VARIABLES`] alone.
fn run_with(program: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).arg("run").args(arguments);
    command.output().expect("the program runs")
}

fn run(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    run_with(Path::new(env!("CARGO_BIN_EXE_tarsia")), variables, arguments)
}

/// Returns the lines of the output of `env` about [`VARIABLES`], sorted.
fn variables(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let mut lines: Vec<String> = stdout(output)
        .lines()
        .filter(|line| line.split_once('=').is_some_and(|(name, _)| VARIABLES.contains(&name)))
        .map(str::to_string)
        .collect();
    lines.sort();
    lines
}

#[test]
fn the_drop_in_is_preloaded_and_prints_its_summary() {
    let folder = Folder::new();
    let drop_in = library(&folder, "drop_in.so");
    let output = run(&[], &["--drop-in", &drop_in, "--", "env"]);
    assert_eq!(variables(&output), [format!("LD_PRELOAD={drop_in}"), "TARSIA_CUSPARSE=summary".to_string()]);
    assert_eq!(stderr(&output), "drop_in.so was preloaded\n");

    // The program may be in another folder when it loads the library.
    let output = Command::new(env!("CARGO_BIN_EXE_tarsia"))
        .args(["run", "--drop-in", "drop_in.so", "--", "sh", "-c", "cd / && env"])
        .current_dir(Path::new(&drop_in).parent().unwrap())
        .env_remove("LD_PRELOAD")
        .output()
        .unwrap();
    assert_has(stdout(&output), &[&format!("LD_PRELOAD={drop_in}\n")]);
    assert_has(stderr(&output), &["drop_in.so was preloaded\n"]);
}

#[test]
fn options_become_variables() {
    let folder = Folder::new();
    let drop_in = library(&folder, "drop_in.so");
    let preload = format!("LD_PRELOAD={drop_in}");
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--trace", "--fp32", "fast", "--take", "spmm"],
            &["TARSIA_CUSPARSE=trace", "TARSIA_CUSPARSE_FP32=fast", "TARSIA_CUSPARSE_TAKE=spmm"],
        ),
        (
            &["--fp32=pedantic", "--take", "spmv,spgemm"],
            &["TARSIA_CUSPARSE=summary", "TARSIA_CUSPARSE_FP32=pedantic", "TARSIA_CUSPARSE_TAKE=spmv,spgemm"],
        ),
        (
            &["--values", "frozen", "--fp32", "fast", "--take", "spmv"],
            &[
                "TARSIA_CUSPARSE=summary",
                "TARSIA_CUSPARSE_FP32=fast",
                "TARSIA_CUSPARSE_TAKE=spmv",
                "TARSIA_CUSPARSE_VALUES=frozen",
            ],
        ),
    ];
    for (options, expected) in cases {
        let arguments = [&["--drop-in", &drop_in], *options, &["--", "env"]].concat();
        // An option goes before a variable that is set.
        for before in [&[][..], &[("TARSIA_CUSPARSE_TAKE", "spmv"), ("TARSIA_CUSPARSE_FP32", "other")]] {
            let found = variables(&run(before, &arguments));
            assert_eq!(found, [&[preload.as_str()], *expected].concat(), "{options:?}");
        }
    }
}

#[test]
fn the_environment_is_kept() {
    let folder = Folder::new();
    let (drop_in, other) = (library(&folder, "drop_in.so"), library(&folder, "other.so"));
    let set =
        [("LD_PRELOAD", other.as_str()), ("TARSIA_CUSPARSE", "force"), ("TARSIA_CUSPARSE_TAKE", "spmv")];
    let output = run(&set, &["--drop-in", &drop_in, "--", "env"]);
    let preload = format!("LD_PRELOAD={drop_in}:{other}");
    assert_eq!(variables(&output), [&preload, "TARSIA_CUSPARSE=force", "TARSIA_CUSPARSE_TAKE=spmv"]);
    // Both are loaded: the other one by this program already.
    assert_eq!(stderr(&output).matches("other.so was preloaded").count(), 2, "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("drop_in.so was preloaded").count(), 1, "{}", stderr(&output));

    // A variable with nothing in it is as if it were not set, for the drop-in, too.
    let output = run(&[("LD_PRELOAD", ""), ("TARSIA_CUSPARSE", " ")], &["--drop-in", &drop_in, "--", "env"]);
    assert_eq!(variables(&output), [format!("LD_PRELOAD={drop_in}"), "TARSIA_CUSPARSE=summary".to_string()]);
    // --trace goes before the variable.
    let output = run(&[("TARSIA_CUSPARSE", "off")], &["--drop-in", &drop_in, "--trace", "--", "env"]);
    assert_has(stdout(&output), &["TARSIA_CUSPARSE=trace\n"]);
}

#[test]
fn the_program_takes_the_place_of_the_command() {
    let folder = Folder::new();
    let drop_in = library(&folder, "drop_in.so");
    let output = run(&[], &["--drop-in", &drop_in, "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let output = run(&[], &["--drop-in", &drop_in, "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.status.signal(), Some(15), "{:?}", output.status);

    // It has the process of the command, so that signals to the command reach it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsia"));
    command.args(["run", "--drop-in", &drop_in, "--", "sh", "-c", "echo $$"]);
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let id = child.id();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), format!("{id}\n"));

    // Its arguments are its own, also those that are options of the command.
    for separator in [&["--"][..], &[]] {
        let program = ["printf", "%s|", "--trace", "--", "-x", "a b", "--fp32"];
        let output = run(&[], &[&["--drop-in", &drop_in], separator, &program].concat());
        assert_eq!(stdout(&output), "--trace|--|-x|a b|--fp32|");
    }
}

/// Puts this program into a folder `bin`, with a name of its own there, as an installation does.
fn installed(folder: &Folder) -> std::path::PathBuf {
    let bin = folder.0.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let (built, program) = (Path::new(env!("CARGO_BIN_EXE_tarsia")), bin.join("tarsia"));
    if std::fs::hard_link(built, &program).is_err() {
        std::fs::copy(built, &program).unwrap();
    }
    program
}

#[test]
fn the_drop_in_is_found_beside_the_program() {
    let folder = Folder::new();
    let built = library(&folder, "drop_in.so");
    let program = installed(&folder);

    let output = run_with(&program, &[], &["--", "env"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let [cargo, lib, lib64] =
        ["bin/libtarsia_cusparse.so", "lib/libtarsia_cusparse.so.0", "lib64/libtarsia_cusparse.so.0"]
            .map(|name| folder.0.path().canonicalize().unwrap().join(name));
    let looked = [&cargo, &lib, &lib64].map(|path| path.to_str().unwrap());
    assert_has(stderr(&output), &looked);
    assert_has(
        stderr(&output),
        &["tarsia: --drop-in is not given", "cargo build --release -p tarsia-cusparse"],
    );

    let arch = format!("lib/{}-linux-gnu/libtarsia_cusparse.so.0", std::env::consts::ARCH);
    let arch = lib.parent().unwrap().parent().unwrap().join(arch);
    // From the last that is looked for to the first.
    for place in [&arch, &lib64, &lib, &cargo] {
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::copy(&built, place).unwrap();
        let output = run_with(&program, &[], &["--", "env"]);
        assert_has(stdout(&output), &[&format!("LD_PRELOAD={}\n", place.display())]);
        assert_eq!(stderr(&output), "drop_in.so was preloaded\n");
    }

    // By a link in another folder, as one of PATH may be, the program finds the same.
    std::fs::create_dir(folder.path("elsewhere")).unwrap();
    let link = folder.0.path().join("elsewhere/tarsia");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let output = run_with(&link, &[], &["--", "env"]);
    assert_has(stdout(&output), &[&format!("LD_PRELOAD={}\n", cargo.display())]);
}

#[test]
fn mistakes_name_the_argument() {
    let folder = Folder::new();
    let drop_in = library(&folder, "drop_in.so");
    let here = ["run", "--drop-in", &drop_in];
    let with = |more: &[&str]| error(&[&here, more].concat());

    assert_has(&error(&["run"]), &["<PROGRAM>", "tarsia run [OPTIONS] -- PROGRAM"]);
    assert_has(&with(&["--"]), &["<PROGRAM>"]);
    assert_eq!(with(&["--", "no-such-program"]), "tarsia: PROGRAM 'no-such-program': not found in PATH\n");
    assert_has(&with(&["--", "./no-such-program"]), &["tarsia: PROGRAM './no-such-program': No such file"]);
    assert_has(&with(&["--", &folder.text("data", "")]), &["/data': Permission denied"]);
    assert_has(&with(&["--", ""]), &["tarsia: PROGRAM '': "]);

    assert_has(&with(&["--fp32", "tf32", "--", "true"]), &["'tf32'", "--fp32 <HOW>", "pedantic, fast"]);
    assert_has(
        &with(&["--take", "spmv,sddmm", "--", "true"]),
        &["'sddmm'", "--take <LIST>", "spmv, spmm, spgemm"],
    );
    assert_has(&with(&["--take", "", "--", "true"]), &["--take <LIST>"]);
    assert_has(&with(&["--trcae", "--", "true"]), &["'--trcae'"]);

    let missing = folder.path("missing.so");
    let said = error(&["run", "--drop-in", &missing, "--", "true"]);
    assert!(said.starts_with(&format!("tarsia: --drop-in {missing}: No such file")), "{said}");
    let mut foreign = std::fs::read(&drop_in).unwrap();
    foreign[18] ^= 0xff;
    std::fs::write(folder.path("foreign.so"), foreign).unwrap();
    for wrong in [
        folder.text("text.so", "not a library, but more than 20 bytes"),
        folder.text("empty.so", ""),
        folder.path("foreign.so"),
    ] {
        let said = error(&["run", "--drop-in", &wrong, "--", "true"]);
        assert_eq!(said, format!("tarsia: --drop-in {wrong}: not a shared library for this machine\n"));
    }
    // The loader would take such a path for two.
    for name in ["a b.so", "a:b.so"] {
        std::fs::copy(&drop_in, folder.path(name)).unwrap();
        let said = error(&["run", "--drop-in", &folder.path(name), "--", "true"]);
        assert_has(&said, &[&format!("tarsia: --drop-in {}: ", folder.path(name)), "a space or a colon"]);
    }
    let link = folder.path("link.so");
    std::os::unix::fs::symlink(folder.path("a b.so"), &link).unwrap();
    let output = run(&[], &["--drop-in", &link, "--", "true"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), "drop_in.so was preloaded\n"));
}
