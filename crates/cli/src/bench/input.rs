//! Patterns of matrices from files, and from the gallery. Only patterns are kept: the benchmark's values are seeded, because values of files often have few bits, which
//! hide lost precision.

use std::path::Path;

use matrices::file::read_file;
use matrices::gallery;
use matrices::owned::OwnedCsr;
use tarsia::facade::run_in_pool;

use crate::Result;

/// Endings of file names that are not part of a matrix' name.
const ENDINGS: [&str; 4] = [".gz", ".mtx", ".tsm", ".bin"];

/// A pattern with its name in tables.
pub struct Input {
    /// File name without its endings.
    pub name: String,
    /// The pattern.
    pub pattern: OwnedCsr<()>,
}

/// Reads the pattern in the file.
pub fn read(path: &Path) -> Result<Input> {
    let matrix = run_in_pool(|| read_file(path)).map_err(|error| format!("{}: {error}", path.display()))?;
    let pattern = matrix.into_pattern();
    Ok(Input { name: gallery::name_in_table(&name(path), Some(pattern.nnz())), pattern })
}

/// Makes the gallery's pattern of this name.
pub fn generate(name: &str) -> Result<Input> {
    let pattern = gallery::named(name).map_err(|error| format!("--gallery {name}: {error}"))?;
    Ok(Input { name: name.into(), pattern })
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
