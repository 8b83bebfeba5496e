//! `tarsia generate`: writes matrices of the gallery into files.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use flate2::write::GzEncoder;
use flate2::Compression;

use matrices::gallery::{self, changes, kinds, laplacian, named, names, with_values, Set};
use matrices::market::{write_market, write_market_pattern};
use matrices::owned::{MatrixError, OwnedCsr};
use matrices::packed::{write_generated, write_pattern, write_real};

use crate::progress::step;
use crate::Result;

const NOTES: &str = "\
A NAME is one of --list; or a kind with its arguments, also there (poisson7:64); or `comparison`,
`more` or `all`, for these parts of the list; or `pruned`, for layers of neural networks.
A matrix is the same wherever it is made.

The file is NAME and the format's ending, colons written as _, in the folder --out or in this one.
With one NAME, --out is the file, unless it ends in / or is a folder; its ending says the format.

Formats:
  mtx     Matrix Market
  mtx.gz  the same, gzipped
  packed  .tsm, what `tarsia pack` writes
  bin     the form of the comparison matrices' generator: i64 rows, columns, entries; i32 row
          offsets; i32 columns; no values

A name that ends in ~ is that of a stand-in, which imitates a well-known matrix in size and structure
and is not that matrix. The ~ may be left out here; in files' names and in tables it is there.

Values (--values; without a KIND the Laplacian of grids, random ones of all others):
  random     seeded, uniform in [-1, 1), with full mantissas
  laplacian  of grids only: the discrete Laplacian -Δ, times h², with Dirichlet boundary: the number of
             neighbours of an inner point on the diagonal, -1 for each neighbour. Grids are the kinds
             poisson5, poisson7 and poisson27, these in another order (/shuffled, /window), and of the
             list hpcg128, poisson160, plate, shuffled27 and windowed7

`tarsia demo`, `inspect` and `bench` read all four.

Exit code: 0; 2 if a matrix could not be made or written.

Examples:
  tarsia generate --list
  tarsia generate cant~ poisson7:64 --values
  tarsia generate poisson7:64 --values=random --seed 7
  tarsia generate comparison --format bin --out matrices";

/// Arguments of `tarsia generate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// Matrices, or parts of the list
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,

    /// Folder, made if it is missing; or file, if there is one NAME [default: this folder]
    #[arg(long, value_name = "DIR|FILE")]
    out: Option<PathBuf>,

    /// Format of the files [default: the ending of --out, else mtx]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Write values, too; without a KIND the Laplacian of grids, random ones of others
    #[arg(long, value_enum, value_name = "KIND", num_args = 0..=1, require_equals = true,
          default_missing_value = "natural")]
    values: Option<Values>,

    /// Seed of random values [default: 1]
    #[arg(long, value_name = "N", requires = "values")]
    seed: Option<u64>,

    /// Replace files that exist
    #[arg(long)]
    force: bool,

    /// List the names
    #[arg(long, conflicts_with_all = ["names", "out", "format", "values", "seed", "force"])]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Values {
    /// The discrete Laplacian of grids, random ones of others
    Natural,
    /// Seeded, in [-1, 1), with full mantissas
    Random,
    /// The discrete Laplacian, of grids only
    Laplacian,
}

impl Values {
    /// Returns the name of these values in the option --values.
    fn name(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Random => "random",
            Self::Laplacian => "laplacian",
        }
    }

    /// Returns whether the matrix of this name gets the discrete Laplacian.
    fn are_laplacian(self, name: &str) -> bool {
        match self {
            Self::Natural => gallery::is_grid(name),
            Self::Random => false,
            Self::Laplacian => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Matrix Market
    #[value(name = "mtx")]
    Market,
    /// Matrix Market, gzipped
    #[value(name = "mtx.gz")]
    MarketGzip,
    /// The packed form, as `tarsia pack` writes it
    Packed,
    /// The binary form of the comparison matrices' generator
    Bin,
}

impl Format {
    const ALL: [Self; 4] = [Self::Market, Self::MarketGzip, Self::Packed, Self::Bin];

    /// Ending of the names of the format's files.
    fn ending(self) -> &'static str {
        match self {
            Self::Market => ".mtx",
            Self::MarketGzip => ".mtx.gz",
            Self::Packed => ".tsm",
            Self::Bin => ".bin",
        }
    }

    /// Returns the format whose ending the file's name has.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Self::ALL.into_iter().find(|format| name.ends_with(format.ending()))
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<bool> {
    if args.list {
        list(&mut io::stdout().lock())?;
        return Ok(true);
    }
    let files = files(args)?;
    for file in &files {
        // Checked before time is spent; `open` handles a file that is created meanwhile.
        if file.path.exists() && !args.force {
            return Err(exists(&file.path));
        }
    }
    for file in &files {
        make(file, args)?;
    }
    Ok(true)
}

/// A matrix to make and the file to write.
struct Target {
    name: String,
    path: PathBuf,
    format: Format,
}

/// Names of layers of many shapes and densities: pruned weight by weight, and by magnitude over the whole
/// layer, which leaves rows, or columns, of unequal length.
const PRUNED: [&str; 18] = [
    "pruned:512x512:0.5",
    "pruned:512x2048:0.8",
    "pruned:2048x512:0.9",
    "pruned:1024x1024:0.7",
    "pruned:1024x4096:0.95",
    "pruned:4096x1024:0.98",
    "pruned:2048x2048:0.6",
    "pruned:4096x4096:0.5",
    "pruned:4096x16384:0.9",
    "pruned:16384x4096:0.98",
    "skewed:1024x1024:0.9:0.5",
    "skewed:2048x2048:0.8:0.3",
    "skewed:4096x4096:0.9:1",
    "skewed:16384x2048:0.95:0.7",
    "columns:512x2048:0.8:0.5",
    "columns:2048x2048:0.9:1",
    "columns:4096x1024:0.7:0.7",
    "columns:4096x16384:0.95:1",
];

/// Expands parts of the list into the names of their matrices, and puts the mark behind those of stand-ins.
pub fn spelled_out(asked: &[String]) -> Vec<String> {
    let mut wanted = Vec::new();
    for name in asked {
        let set = match name.as_str() {
            "all" => None,
            "comparison" => Some(Set::Comparison),
            "more" => Some(Set::More),
            "pruned" => {
                wanted.extend(PRUNED.map(String::from));
                continue;
            }
            _ => {
                wanted.push(gallery::find(name).map_or(name.as_str(), |entry| entry.name).to_string());
                continue;
            }
        };
        let part = names().iter().filter(|entry| set.is_none_or(|set| entry.set == set));
        wanted.extend(part.map(|entry| entry.name.to_string()));
    }
    wanted
}

/// Lists the files to write. Creates the folder.
fn files(args: &Args) -> Result<Vec<Target>> {
    let mut wanted = spelled_out(&args.names);
    // Finds unknown names early; a name with arguments is checked when its matrix is made.
    for name in &wanted {
        if !name.contains(':') && gallery::find(name).is_none() {
            let is_kind = |grammar: &&&str| grammar.split([':', '[']).next() == Some(name.as_str());
            if let Some(grammar) = gallery::kinds().iter().find(is_kind) {
                return Err(format!("'{name}' is a kind of matrix, which has arguments: {grammar}").into());
            }
            let is_values = Values::value_variants().iter().any(|values| values.name() == name);
            let more = match is_values && args.values.is_some() {
                true => format!("; --values={name}, in one word, asks for such values"),
                false => String::new(),
            };
            return Err(format!("no matrix is called '{name}'; --list shows the names{more}").into());
        }
    }
    let is_laplacian = |values: Values| wanted.iter().all(|name| values.are_laplacian(name));
    if args.seed.is_some() && args.values.is_some_and(is_laplacian) {
        return Err("--seed: the values of a Laplacian are not random; --values=random asks for such".into());
    }
    if args.values == Some(Values::Laplacian) {
        // Checked before any file is written.
        if let Some(name) = wanted.iter().find(|name| !gallery::is_grid(name)) {
            return Err(format!("--values=laplacian: {name} is no grid, so it has no Laplacian").into());
        }
    }
    let mut distinct = BTreeSet::new();
    if let Some(twice) = wanted.iter().find(|name| !distinct.insert(file_stem(name))) {
        return Err(format!("'{twice}' is there twice").into());
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
    let is_folder = out.is_dir() || out.to_string_lossy().ends_with(std::path::is_separator);
    let is_file = wanted.len() == 1 && !is_folder;
    let format = match (args.format, is_file) {
        (Some(format), _) => format,
        (None, false) => Format::Market,
        (None, true) => Format::of(&out).ok_or_else(|| {
            let endings = Format::ALL.map(Format::ending).join(", ");
            format!("{}: ends in none of {endings}, so --format must say the format", out.display())
        })?,
    };
    if format == Format::Bin && args.values.is_some() {
        return Err("--values: files of format bin hold no values".into());
    }
    if is_file {
        return Ok(vec![Target { name: wanted.remove(0), path: out, format }]);
    }
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let target = |name: String| {
        let path = out.join(file_stem(&name) + format.ending());
        Target { name, path, format }
    };
    Ok(wanted.into_iter().map(target).collect())
}

/// Returns the name for use in a file's name: colons are not allowed in file names everywhere.
fn file_stem(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !"_.-~".contains(c), "_")
}

fn exists(path: &Path) -> Box<dyn std::error::Error> {
    format!("{}: exists; --force replaces it", path.display()).into()
}

/// Makes one matrix and writes it.
fn make(target: &Target, args: &Args) -> Result<()> {
    let Target { name, path, format } = target;
    let matrix =
        step(&format!("making {name}"), || named(name)).map_err(|error| format!("{name}: {error}"))?;
    let (rows, cols, nnz) = (matrix.rows, matrix.cols, matrix.nnz());
    let file = open(path, args.force)?;
    let valued = |pattern| match args.values {
        None => Ok(GeneratedMatrix::Pattern(pattern)),
        Some(values) if values.are_laplacian(name) => laplacian(name, pattern).map(GeneratedMatrix::Real),
        Some(_) => with_values(pattern, args.seed.unwrap_or(1)).map(GeneratedMatrix::Real),
    };
    let write = || write(file, &valued(matrix)?, *format);
    step(&format!("writing {}", path.display()), write).map_err(|error| {
        // Removes the incomplete file. Devices stay where they are.
        if path.is_file() {
            drop(fs::remove_file(path));
        }
        in_file(path, &error)
    })?;
    writeln!(io::stdout(), "{name}: {rows} × {cols}, {nnz} entries, in {}", path.display())?;
    Ok(())
}

fn in_file(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

fn open(path: &Path, force: bool) -> Result<File> {
    let file = match force {
        true => File::create(path),
        false => OpenOptions::new().write(true).create_new(true).open(path),
    };
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => in_file(path, &error).into(),
    })
}

/// A matrix to be written: its pattern alone, or with values.
enum GeneratedMatrix {
    Pattern(OwnedCsr<()>),
    Real(OwnedCsr<f64>),
}

fn write(file: File, matrix: &GeneratedMatrix, format: Format) -> std::result::Result<(), MatrixError> {
    let out = BufWriter::new(file);
    let gzip = |out| GzEncoder::new(out, Compression::default());
    match matrix {
        GeneratedMatrix::Pattern(pattern) => match format {
            Format::Market => write_market_pattern(out, pattern),
            Format::MarketGzip => finish(gzip(out), |out| write_market_pattern(out, pattern)),
            Format::Packed => write_pattern(out, pattern),
            Format::Bin => write_generated(out, pattern),
        },
        GeneratedMatrix::Real(matrix) => match format {
            Format::Market => write_market(out, matrix),
            Format::MarketGzip => finish(gzip(out), |out| write_market(out, matrix)),
            Format::Packed => write_real(out, matrix),
            // Refused before this point.
            Format::Bin => write_generated(out, matrix),
        },
    }
}

/// Writes into the encoder and ends its stream; dropping the encoder would hide errors at its end.
fn finish(
    mut encoder: GzEncoder<BufWriter<File>>,
    write: impl FnOnce(&mut GzEncoder<BufWriter<File>>) -> std::result::Result<(), MatrixError>,
) -> std::result::Result<(), MatrixError> {
    write(&mut encoder)?;
    encoder.finish()?.flush()?;
    Ok(())
}

fn list(out: &mut impl Write) -> Result<()> {
    for (set, title) in [
        (Set::Comparison, "comparison: the matrices of the comparison tables"),
        (Set::More, "more: smaller, of other structures"),
    ] {
        writeln!(out, "{title}")?;
        for entry in names().iter().filter(|entry| entry.set == set) {
            writeln!(out, "  {:<13} {}", entry.name, entry.description)?;
        }
    }
    writeln!(out, "pruned: layers of neural networks\n  {}", PRUNED.join("\n  "))?;
    writeln!(out, "kinds, with their arguments; those in brackets may be left out")?;
    for kind in kinds() {
        writeln!(out, "  {kind}")?;
    }
    writeln!(out, "changes, behind a slash each, which make another matrix of a kind's")?;
    for change in changes() {
        writeln!(out, "  /{change}")?;
    }
    Ok(())
}
