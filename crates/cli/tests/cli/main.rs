//! The command line as a user runs it: its output and its exit codes.

mod bench;
mod docs;
mod generate;
mod inspect;
mod pack;
mod run;
mod sample;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use client::Session;
use matrices::gallery::{self, Stencil};
use matrices::market::write_market;
use matrices::owned::OwnedCsr;
use tarsia::facade::BackendKind;
use tempfile::TempDir;

fn tarsia(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tarsia")).args(arguments).output().expect("the binary runs")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// Runs the program successfully, with all checks passed; returns its stdout.
#[track_caller]
fn success(arguments: &[&str]) -> String {
    let output = tarsia(arguments);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", stderr(&output));
    assert!(text.ends_with("\nPASS\n"), "{text}");
    assert!(!text.contains("FAIL"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{} columns: {line}", line.chars().count());
    }
    text.to_string()
}

/// Runs the program successfully, with nothing on stderr; returns its stdout.
#[track_caller]
fn done(arguments: &[&str]) -> String {
    let output = tarsia(arguments);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(stderr(&output), "");
    stdout(&output).to_string()
}

/// Runs the program with an error that ends it with exit code 2; returns its stderr.
#[track_caller]
fn error(arguments: &[&str]) -> String {
    let output = tarsia(arguments);
    assert_eq!(output.status.code(), Some(2), "{}\n{}", stdout(&output), stderr(&output));
    stderr(&output).to_string()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is missing in:\n{text}");
    }
}

/// A temporary folder of files for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_string()
    }

    fn text(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    fn matrix(&self, name: &str, matrix: &OwnedCsr<f64>) -> String {
        let path = self.path(name);
        write_market(File::create(&path).expect("a file"), matrix).expect("a file");
        path
    }
}

/// Compresses a file with the system's gzip; `None` if there is none.
fn gzip(path: &str) -> Option<PathBuf> {
    let status = Command::new("gzip").arg(path).stdin(Stdio::null()).status().ok()?;
    assert!(status.success());
    Some(Path::new(path).with_extension("mtx.gz"))
}

#[test]
fn demo_solves_times_and_checks() {
    let text = success(&["demo", "--size", "6x4x3", "--n", "5", "--backend", "host"]);
    assert_has(
        &text,
        &[
            "elastic brick of 6×4×3 elements",
            "360 × 360",
            "CG       converged in",
            "Machine  copies",
            "product  computed",
            "  of a copy  ",
            "  naive loop  ",
            "\nSpMV     y = A·x",
            "\nSpMM     C = A·B, B of 5 columns",
            "\nSpGEMM   C = A·A",
            " GB/s ",
            " Gflop/s ",
            "  sell, sorted copy: ",
            "  row, in place: ",
            "prepared once in",
            "PASS SpMV: all 360 rows",
            "PASS SpMM, N = 5: all 360 rows",
            "PASS SpGEMM, A·A: C's offsets ascend",
        ],
    );
    // So small a problem is in the caches, each line compares with the naive loop, and what no line says is that
    // another result was wrong.
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with("  PASS")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    for line in lines {
        assert!(["faster", "slower", "as fast"].iter().any(|word| line.contains(word)), "{line}");
        let percent = line.split_whitespace().collect::<Vec<_>>().windows(2).find_map(|pair| {
            pair[1].starts_with('%').then(|| pair[0].parse::<u32>().expect("a whole number"))
        });
        assert!(
            percent.is_none_or(|percent| percent <= 100) && (percent.is_some() || line.contains("in cache"))
        );
    }
    assert!(!text.contains("wrong"), "{text}");
}

/// The machine has MKL, whose products are compared, or the demo says that it is not found.
#[test]
fn demo_compares_with_mkl_or_says_that_it_is_not_there() {
    let text = success(&["demo", "--size", "6x4x3", "--backend", "host"]);
    let head = text.lines().find(|line| line.starts_with("product ")).unwrap();
    assert_eq!(head.contains("  MKL  "), !text.contains("MKL is not found"), "{text}");
    // Another backend has no such library.
    let text = success(&["demo", "--size", "3x2x2", "--backend", "reference"]);
    assert_has(&text, &["no other library belongs to this backend"]);
}

/// Escape sequences come where they are asked for, and never into a pipe unless they are.
#[test]
fn colours_are_for_terminals() {
    let arguments = ["demo", "--size", "2x2x2", "--backend", "host"];
    for (more, environment, has_colours) in [
        (&[][..], ("CLICOLOR", "1"), false),
        (&["--color", "always"], ("NO_COLOR", "1"), true),
        (&["--color=never"], ("CLICOLOR_FORCE", "1"), false),
        (&["--color", "auto"], ("CLICOLOR_FORCE", "1"), true),
        (&[], ("NO_COLOR", "1"), false),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tarsia"));
        let output = command.args(arguments).args(more).env(environment.0, environment.1).output().unwrap();
        let text = stdout(&output);
        assert_eq!(text.contains("\u{1b}[32mPASS\u{1b}[0m"), has_colours, "{more:?} {environment:?}: {text}");
        assert_eq!(text.contains('\u{1b}'), has_colours, "{more:?} {environment:?}");
    }
    assert_has(&error(&["demo", "--color", "sometimes"]), &["possible values: auto, always, never"]);
}

#[test]
fn demo_runs_on_every_backend() {
    for backend in ["auto", "host", "reference"] {
        let text = success(&["demo", "--size", "3x2x2", "--backend", backend]);
        // The backend that auto chooses depends on the machine.
        let best = Session::new(BackendKind::Auto).unwrap().kind();
        let best = best.c_name().trim_start_matches("TARSIA_BACKEND_").to_lowercase();
        let found = if backend == "auto" { &best } else { backend };
        assert_has(&text, &[&format!("backend {found}")]);
    }
    assert_has(&success(&["demo", "--size", "3x2x2", "--backend", "reference"]), &["list of entries"]);
}

#[test]
fn demo_of_a_rectangular_file_multiplies_by_the_transpose() {
    let folder = Folder::new();
    let matrix = gallery::rectangular(150, 90, 0.07, 11).unwrap();
    let path = folder.matrix("wide.mtx", &matrix);
    let text = success(&["demo", &path]);
    let nnz = matrix.nnz().to_string();
    assert_has(
        &text,
        &["wide.mtx, fp64", "150 × 90", &nnz, "no CG (it is not square)", "\nSpGEMM   C = A·Aᵀ ", "copy"],
    );

    // The gzipped file gives the same output.
    if let Some(zipped) = gzip(&path) {
        let text = success(&["demo", zipped.to_str().unwrap()]);
        assert_has(&text, &["wide.mtx.gz, fp64", "150 × 90", &nnz]);
    }
}

#[test]
fn demo_of_a_symmetric_file_solves() {
    let folder = Folder::new();
    let path = folder.matrix("poisson.mtx", &gallery::poisson(Stencil::Seven, 9).unwrap());
    assert_has(&success(&["demo", &path]), &["CG       converged in", "PASS SpMV: all 729 rows"]);
}

#[test]
fn demo_says_why_there_is_no_solution() {
    let folder = Folder::new();
    let path = folder.matrix("random.mtx", &gallery::uniform(40, 40, 5, 3).unwrap());
    assert_has(&success(&["demo", &path]), &["not symmetric positive definite: no CG (it is not symmetric)"]);

    let header = "%%MatrixMarket matrix coordinate real symmetric\n";
    let path = folder.text("saddle.mtx", &format!("{header}2 2 3\n1 1 1.3\n2 1 5.7\n2 2 1.1\n"));
    assert_has(&success(&["demo", &path]), &["not positive definite: p·Ap ≤ 0", "the demo goes on"]);

    let path = folder.text("zero.mtx", &format!("{header}2 2 2\n1 1 1.3\n2 1 5.7\n"));
    assert_has(&success(&["demo", &path]), &["an entry of its diagonal is not positive"]);

    // Information travels one point per iteration, so CG needs 3000 iterations.
    let n = 3000i64;
    let entries =
        (0..n).flat_map(|i| [(i - 1, -1.0), (i, 2.0), (i + 1, -1.0)].map(|(j, value)| (i, j, value)));
    let entries = entries.filter(|(_, j, _)| (0..n).contains(j)).collect();
    let path = folder.matrix("line.mtx", &OwnedCsr::from_triplets(3000, 3000, entries).unwrap());
    assert_has(&success(&["demo", &path]), &["did not converge in 500 iterations", "the demo goes on"]);
}

#[test]
fn demo_of_a_complex_file() {
    let folder = Folder::new();
    let hermitian = "%%MatrixMarket matrix coordinate complex hermitian\n\
                     3 3 5\n1 1 4.1 0\n2 1 0.3 0.7\n2 2 3.3 0\n3 2 -0.1 0.2\n3 3 5.7 0\n";
    let text = success(&["demo", &folder.text("hermitian.mtx", hermitian)]);
    assert_has(
        &text,
        &["hermitian.mtx, complex fp64", "3 × 3, 7 entries", "CG       converged in", "at most 2"],
    );

    let general =
        "%%MatrixMarket matrix coordinate complex general\n2 3 3\n1 1 0.1 0.7\n1 3 0.3 -1.1\n2 2 0.9 1.3\n";
    let text = success(&["demo", &folder.text("general.mtx", general)]);
    assert_has(&text, &["not square", "\nSpGEMM   C = A·Aᵀ ", "compared with no other library"]);
}

#[test]
fn demo_gives_patterns_values() {
    let folder = Folder::new();
    let path = folder.text("p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n");
    assert_has(&success(&["demo", &path]), &["entries get values in [0.5, 1.5)"]);
}

#[test]
fn demo_of_nothing() {
    let folder = Folder::new();
    for size in ["0 0", "3 0", "0 4", "5 5"] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{size} 0\n");
        success(&["demo", &folder.text("empty.mtx", &text)]);
    }
}

#[test]
fn demo_cuts_a_product_that_is_too_large() {
    // 11,520 multiplications give up to 11,520 entries of 12 bytes.
    let folder = Folder::new();
    let path = folder.matrix("band.mtx", &gallery::banded(400, 3, 5).unwrap());
    let text = success(&["demo", &path, "--max-c-gib", "0.00001"]);
    assert_has(
        &text,
        &["not made: C is too large", "--max-c-gib is 0.00001", "of 400 rows, the longest among them"],
    );

    // There is no room for a single row, so nothing was checked, and that is not a PASS.
    let output = tarsia(&["demo", &path, "--max-c-gib", "1e-9"]);
    assert_eq!(output.status.code(), Some(1));
    assert_has(stdout(&output), &["FAIL SpGEMM", "not run, so not checked"]);
    assert!(stdout(&output).ends_with("\nFAIL\n"));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new();
    let missing = folder.path("missing.mtx");
    let text = error(&["demo", &missing]);
    assert!(text.starts_with(&format!("tarsia: {missing}: No such file")), "{text}");

    let bad = "%%MatrixMarket matrix coordinate real general\n% comment\n2 2 2\n1 1 1.5\n3 1 2.5\n";
    let path = folder.text("bad.mtx", bad);
    let text = error(&["demo", &path]);
    assert!(text.starts_with(&format!("tarsia: {path}: line 5: found '3', expected a row index")), "{text}");

    assert_has(&error(&["demo", &folder.text("empty.mtx", "")]), &["line 1", "empty file"]);
    let picture = folder.text("picture.mtx", "");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    for command in ["demo", "inspect"] {
        assert_has(&error(&[command, &picture]), &["picture.mtx: line 1: found a PNG image, expected"]);
    }
    assert_has(&error(&["bench", &picture, "--backend", "host"]), &["picture.mtx: ", "found a PNG image"]);
    let text = folder.text("text.mtx", "1 2 3\n");
    assert_has(
        &error(&["bench", &text, "--backend", "host"]),
        &["text.mtx: line 1: found '1', expected %%MatrixMarket"],
    );
    assert_has(&error(&["demo", &folder.text("cut.mtx.gz", "\x1f\u{8b}")]), &["tarsia: ", "line 1"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let cases: &[(&[&str], &str)] = &[
        (&["demo", "--size", "4x4"], "three positive numbers"),
        (&["demo", "--size", "4x0x4"], "three positive numbers"),
        (&["demo", "--backend", "abacus"], "possible values: auto, host, cuda, reference"),
        (&["demo", "--n", "0"], "--n"),
        (&["demo", "--max-c-gib=-1"], "--max-c-gib"),
        (&["demo", "a.mtx", "--size", "4x4x4"], "cannot be used with"),
        (&["demo", "a.mtx", "b.mtx"], "unexpected argument"),
        (&["dance"], "unrecognized subcommand"),
        (&[], "Usage: tarsia [OPTIONS] <COMMAND>"),
    ];
    for (arguments, expected) in cases {
        assert_has(&error(arguments), &[expected]);
    }
    assert_has(&error(&["demo", "--size", "9999x9999x9999"]), &["tarsia: ", "at most"]);
}

#[test]
fn help_and_version() {
    let version = tarsia(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(stdout(&version), concat!("tarsia ", env!("CARGO_PKG_VERSION"), "\n"));

    let help = tarsia(&["demo", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert_has(
        stdout(&help),
        &["--size", "--backend", "--max-c-gib", "copy bandwidth", "Exit code", "Examples:"],
    );
    for line in stdout(&help).lines() {
        assert!(line.chars().count() <= 104, "{line}");
    }
}

/// A number of threads that is none is said, although the program has no logger.
#[test]
fn a_wrong_number_of_threads_is_said() {
    let run = |threads: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tarsia"));
        let program = program.args(["demo", "--size", "2x2x2", "--backend", "host"]);
        program.env("TARSIA_NUM_THREADS", threads).output().expect("the binary runs")
    };
    let wrong = run("abc");
    assert_eq!(wrong.status.code(), Some(0));
    assert_has(stderr(&wrong), &["tarsia: TARSIA_NUM_THREADS=abc is not a number from 1 to "]);
    assert_eq!(stderr(&wrong).lines().count(), 1, "{}", stderr(&wrong));
    assert_eq!(stderr(&run("2")), "");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tarsia"))
        .args(["demo", "--size", "2x2x2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(!stderr(&output).contains("tarsia:"), "{}", stderr(&output));
}
