//! Patterns of matrices from files, whose kind is recognised by their first bytes, and from the gallery. Only
//! patterns are kept: the benchmark's values are seeded, because values of files often have few bits, which
//! hide lost precision.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use matrices::gallery;
use matrices::market::{other_kind, read_market, MarketValues};
use matrices::owned::{MatrixError, OwnedCsr};
use matrices::packed::{self, read_generated, read_packed, PackedMatrix};

use tarsia::facade::run_in_pool;

use crate::Result;

/// Endings of file names that are not part of a matrix' name.
const ENDINGS: [&str; 4] = [".gz", ".mtx", ".tsm", ".bin"];

/// Number of first bytes by which a file's kind is recognised: a tar archive's mark comes last, at byte 257.
const START: u64 = 512;

/// A pattern with its name in tables.
pub struct Input {
    /// File name without its endings.
    pub name: String,
    /// The pattern.
    pub pattern: OwnedCsr<()>,
}

/// Form of a file.
enum Form {
    Market,
    Packed,
    Generated,
}

/// Reads the pattern in the file.
pub fn read(path: &Path) -> Result<Input> {
    let pattern = read_pattern(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Input { name: name(path), pattern })
}

/// Makes the gallery's pattern of this name.
pub fn generate(name: &str) -> Result<Input> {
    let pattern = gallery::named(name).map_err(|error| format!("--gallery {name}: {error}"))?;
    Ok(Input { name: name.into(), pattern })
}

fn read_pattern(path: &Path) -> std::result::Result<OwnedCsr<()>, MatrixError> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(START).read_to_end(&mut start)?;
    file.rewind()?;
    match form(&start) {
        // A file of another kind fails there, too, but with an error about its sizes, which would not help
        // anybody.
        Form::Generated => read_generated(file).map_err(|error| match other_kind(&start).or(text(&start)) {
            Some(kind) => {
                let expected = "a Matrix Market file, or what `tarsia pack` or `tarsia generate` writes";
                MatrixError::Parse { line: 1, message: format!("found {kind}, expected {expected}") }
            }
            None => error,
        }),
        Form::Packed => match read_packed(file)? {
            PackedMatrix::Pattern(matrix) => Ok(matrix),
            PackedMatrix::Real(matrix) => Ok(pattern(matrix)),
        },
        Form::Market => Ok(match run_in_pool(|| read_market(file))?.values {
            MarketValues::Real(matrix) => pattern(matrix),
            MarketValues::Complex(matrix) => pattern(matrix),
        }),
    }
}

fn form(start: &[u8]) -> Form {
    if start.starts_with(&packed::MAGIC) {
        Form::Packed
    } else if start.starts_with(&[0x1f, 0x8b]) || start.starts_with(b"%%") {
        Form::Market
    } else {
        // The generator's files have no mark; their reader checks everything.
        Form::Generated
    }
}

/// Recognises text: a binary file's sizes of 64 bits contain zero bytes, text does not.
fn text(start: &[u8]) -> Option<&'static str> {
    (!start.contains(&0)).then_some("text that does not start with %%MatrixMarket")
}

/// Returns the matrix without its values.
pub fn pattern<V>(matrix: OwnedCsr<V>) -> OwnedCsr<()> {
    let values = vec![(); matrix.nnz()];
    let OwnedCsr { rows, cols, offsets, indices, .. } = matrix;
    OwnedCsr { rows, cols, offsets, indices, values }
}

fn name(path: &Path) -> String {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for ending in ENDINGS {
        if let Some(stem) = name.strip_suffix(ending) {
            name = stem.to_string();
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let found = ["a/cant.bin", "x.mtx.gz", "b.tsm", "odd.name"].map(|path| name(Path::new(path)));
        assert_eq!(found, ["cant", "x", "b", "odd.name"]);
    }
}
