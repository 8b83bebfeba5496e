//! The command line: `tarsia demo`, `inspect`, `bench`, `sample`, `generate`, `pack`, `run`.
//!
//! Exit codes: 0, the command succeeded and every check passed; 1, a check failed; 2, the command could not
//! run (the reason is on stderr). `tarsia run` ends with the exit code of the program that it runs.

#![deny(unsafe_code)]

mod bench;
mod demo;
mod features;
mod generate;
mod inspect;
mod options;
mod pack;
mod plot;
mod progress;
mod run;
mod table;

use std::error::Error;
use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::table::Cell;

/// Result of a command; the error is ready to be shown.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Sparse matrix products (SpMV, SpMM, SpGEMM): try the library on this machine.
#[derive(Debug, Parser)]
#[command(name = "tarsia", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    color: colorchoice_clap::Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Solve a problem, time the three products, check each against the reference
    Demo(demo::Args),
    /// Show a matrix in a file: its shape, a picture, the library's choices for it
    Inspect(inspect::Args),
    /// Time products of matrices in files, check them, compare with other tables
    Bench(Box<bench::Args>),
    /// Time every candidate of the library's choices on many sampled matrices, for training
    Sample(bench::sample::Args),
    /// Write a matrix into a compact file
    Pack(pack::Args),
    /// Write matrices of the gallery into files
    Generate(generate::Args),
    /// Run a program that uses cuSPARSE with Tarsia in front of cuSPARSE
    Run(run::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli.color.write_global();
    let result = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Sample(args) => bench::sample::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Run(args) => run::run(&args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // The reader of our output (such as `| head`) has closed the pipe.
        Err(error) if is_closed_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{}: {error}", Cell::news("tarsia", false));
            ExitCode::from(2)
        }
    }
}

fn is_closed_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
