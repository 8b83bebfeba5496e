//! `tarsia run`: runs a program with the drop-in `libtarsia_cusparse.so` in front of cuSPARSE.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::Result;

const NOTES: &str = "\
Products that Tarsia can compute in place of cuSPARSE it computes, and every other call goes on to
cuSPARSE. When PROGRAM ends, a summary on stderr says how often each function was called, what became
of the calls, and why.

The command sets variables of the environment and then becomes PROGRAM (exec), so that exit code and
signals are the program's own:

  LD_PRELOAD              libtarsia_cusparse.so, before the libraries that are there already
  TARSIA_CUSPARSE         `trace` with --trace; otherwise `summary`, unless the variable is set
  TARSIA_CUSPARSE_TAKE    the list of --take
  TARSIA_CUSPARSE_FP32    the value of --fp32
  TARSIA_CUSPARSE_VALUES  the value of --values

Without its option a variable stays as it is. docs/drop-in.md says what the variables do, and which
programs reach cuSPARSE in a way that Tarsia can take part in. The loader preloads no library into
programs that are linked statically, or that run with the rights of another user: they run as without
this command.

The library is looked for beside this program, as Cargo builds it, and in ../lib, ../lib64 and the
distribution's folder of ../lib, as scripts/install and the wheel for Python install it.

Exit code: that of PROGRAM; 2 if it could not be started.

Examples:
  tarsia run -- python3 program.py
  tarsia run --take spmm --trace -- ./solver matrix.mtx
  tarsia run --drop-in target/release/libtarsia_cusparse.so -- ./solver";

/// Arguments of `tarsia run`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, override_usage = "tarsia run [OPTIONS] -- PROGRAM [ARGUMENT]...")]
pub struct Args {
    /// Program, looked for in PATH if it has no slash, and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,

    /// Arithmetic of products with sums of 32 bits: IEEE operations alone, or the fastest
    #[arg(long, value_enum, value_name = "HOW")]
    fp32: Option<Fp32>,

    /// Values of matrices that the program preprocesses: `frozen` says that they stay until the next preprocess
    #[arg(long, value_enum, value_name = "HOW")]
    values: Option<Values>,

    /// Products that Tarsia may compute, separated by commas [default: all]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    take: Vec<Operation>,

    /// Also print a line for each call when it is made
    #[arg(long)]
    trace: bool,

    /// libtarsia_cusparse.so, where it is not beside this program
    #[arg(long, value_name = "FILE")]
    drop_in: Option<PathBuf>,
}

/// Values of `TARSIA_CUSPARSE_FP32`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Fp32 {
    Pedantic,
    Fast,
}

/// Values of `TARSIA_CUSPARSE_VALUES`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Values {
    Changing,
    Frozen,
}

/// Words of the list in `TARSIA_CUSPARSE_TAKE`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Operation {
    Spmv,
    Spmm,
    Spgemm,
}

/// Runs the command. It returns only if the program could not be started.
pub fn run(args: &Args) -> Result<bool> {
    let drop_in = match &args.drop_in {
        Some(file) => std::path::absolute(file).map_err(|error| of_drop_in(file, &error.to_string()))?,
        None => find(&std::env::current_exe()?)?,
    };
    check(&drop_in)?;

    let [name, arguments @ ..] = args.program.as_slice() else {
        unreachable!("clap requires PROGRAM");
    };
    let mut command = Command::new(name);
    command.args(arguments).env("LD_PRELOAD", preload(&drop_in, std::env::var_os("LD_PRELOAD").as_deref()));
    if args.trace {
        command.env("TARSIA_CUSPARSE", "trace");
    } else if is_blank(std::env::var_os("TARSIA_CUSPARSE").as_deref()) {
        command.env("TARSIA_CUSPARSE", "summary");
    }
    if !args.take.is_empty() {
        let words: Vec<String> = args.take.iter().map(word).collect();
        command.env("TARSIA_CUSPARSE_TAKE", words.join(","));
    }
    if let Some(fp32) = &args.fp32 {
        command.env("TARSIA_CUSPARSE_FP32", word(fp32));
    }
    if let Some(values) = &args.values {
        command.env("TARSIA_CUSPARSE_VALUES", word(values));
    }
    let error = command.exec();
    let reason = match error.kind() {
        io::ErrorKind::NotFound if !name.as_bytes().contains(&b'/') => "not found in PATH".to_string(),
        _ => error.to_string(),
    };
    Err(format!("PROGRAM '{}': {reason}", name.to_string_lossy()).into())
}

/// Returns the word by which the command line and the environment name a value.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is skipped").get_name().to_string()
}

/// Returns whether a variable is not set, or set to nothing, which the drop-in takes for the same.
fn is_blank(value: Option<&OsStr>) -> bool {
    value.is_none_or(|value| value.as_bytes().trim_ascii().is_empty())
}

/// Returns the value of `LD_PRELOAD` with the drop-in before the libraries that are there.
fn preload(drop_in: &Path, there: Option<&OsStr>) -> OsString {
    let mut value = drop_in.as_os_str().to_os_string();
    if let Some(there) = there.filter(|there| !there.is_empty()) {
        value.push(":");
        value.push(there);
    }
    value
}

/// Finds the drop-in by the place of this program.
fn find(program: &Path) -> Result<PathBuf> {
    const NAME: &str = "libtarsia_cusparse.so.0";
    let folder = program.parent().unwrap_or(Path::new("/"));
    let prefix = folder.parent().unwrap_or(folder);
    let candidates = [
        folder.join("libtarsia_cusparse.so"),
        prefix.join("lib").join(NAME),
        prefix.join("lib64").join(NAME),
        prefix.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH)).join(NAME),
    ];
    if let Some(found) = candidates.iter().find(|candidate| candidate.is_file()) {
        return Ok(found.clone());
    }
    let looked: Vec<String> = candidates.iter().map(|candidate| candidate.display().to_string()).collect();
    Err(format!(
        "--drop-in is not given, and the library is not beside this program (no {}); \
         `cargo build --release -p tarsia-cusparse` builds it",
        looked.join(", no ")
    )
    .into())
}

/// Checks that the loader would preload a file. The loader itself would only warn of another one, and run the
/// program without it.
fn check(file: &Path) -> Result<()> {
    let header = beginning(file).map_err(|error| of_drop_in(file, &error.to_string()))?;
    let own = beginning(Path::new("/proc/self/exe"))?;
    // Class and byte order, then the machine.
    if header[..4] != *b"\x7fELF" || header[4..6] != own[4..6] || header[18..] != own[18..] {
        return Err(of_drop_in(file, "not a shared library for this machine").into());
    }
    if file.as_os_str().as_bytes().iter().any(|byte| [b' ', b':'].contains(byte)) {
        let reason = "LD_PRELOAD takes no path with a space or a colon; name a link to the file \
                      that is elsewhere";
        return Err(of_drop_in(file, reason).into());
    }
    Ok(())
}

fn of_drop_in(file: &Path, reason: &str) -> String {
    format!("--drop-in {}: {reason}", file.display())
}

/// Reads the first 20 bytes of a file, which say what an ELF file is for; zeros stand for bytes that are missing.
fn beginning(file: &Path) -> io::Result<[u8; 20]> {
    let mut bytes = Vec::new();
    File::open(file)?.take(20).read_to_end(&mut bytes)?;
    bytes.resize(20, 0);
    Ok(bytes.try_into().expect("20 bytes"))
}
