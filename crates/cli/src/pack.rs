//! `tarsia pack`: writes a matrix into a compact file.

use std::fmt::Display;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use matrices::market::{read_market_file, MarketValues};
use matrices::packed::{write_pattern, write_real};
use tarsia::facade::run_in_pool;

use crate::Result;

/// Arguments of `tarsia pack`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Matrix Market file (.mtx, .mtx.gz)
    matrix: PathBuf,

    /// File to write; by custom .tsm
    out: PathBuf,

    /// Leave the values out; `tarsia bench` makes its own
    #[arg(long)]
    pattern: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<bool> {
    let in_file = |error| format!("{}: {error}", args.matrix.display());
    let matrix = run_in_pool(|| read_market_file(&args.matrix)).map_err(in_file)?;
    if matches!(matrix.values, MarketValues::Complex(_)) && !args.pattern {
        let file = args.matrix.display();
        return Err(format!("{file}: complex values cannot be packed; --pattern leaves them out").into());
    }
    let in_file = |error: &dyn Display| format!("{}: {error}", args.out.display());
    let out = BufWriter::new(File::create(&args.out).map_err(|error| in_file(&error))?);
    match &matrix.values {
        MarketValues::Real(matrix) if !args.pattern => write_real(out, matrix),
        MarketValues::Real(matrix) => write_pattern(out, matrix),
        MarketValues::Complex(matrix) => write_pattern(out, matrix),
    }
    .map_err(|error| in_file(&error))?;
    Ok(true)
}
