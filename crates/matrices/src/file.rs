//! Files of matrices, whose form is recognised by their first bytes.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use super::market::{other_kind, read_market, MarketField, MarketMatrix, MarketValues};
use super::owned::{MatrixError, OwnedCsr};
use super::packed::{self, read_generated, read_packed, PackedMatrix};

/// Number of first bytes by which a form is recognised: a tar archive's mark comes last, at byte 257.
const START: u64 = 512;

/// Contents of a file.
#[derive(Debug, PartialEq)]
pub enum FileMatrix {
    /// A Matrix Market file.
    Market(MarketMatrix),
    /// A container of `tarsia pack`.
    Packed(PackedMatrix),
    /// A pattern, as the generator of the comparison matrices writes it.
    Generated(OwnedCsr<()>),
}

/// Reads the matrix in the file at `path`, whatever its form. A file of none of the forms gets the error of
/// [`read_market`], which names what it found.
///
/// Errors: those of [`read_market`], [`read_packed`] and [`read_generated`].
pub fn read_file(path: &Path) -> Result<FileMatrix, MatrixError> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(START).read_to_end(&mut start)?;
    let is_packed = start.starts_with(&packed::MAGIC);
    // The generator's files have no mark, but their sizes of 64 bits contain zero bytes, and text does not.
    let is_generated = !is_packed && start.contains(&0) && !is_gzip(&start) && other_kind(&start).is_none();
    // A pipe cannot be rewound.
    let whole = Cursor::new(start).chain(file);
    match (is_packed, is_generated) {
        (true, _) => read_packed(whole).map(FileMatrix::Packed),
        (_, true) => read_generated(whole).map(FileMatrix::Generated),
        _ => read_market(whole).map(FileMatrix::Market),
    }
}

fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

impl FileMatrix {
    /// Returns the pattern.
    pub fn into_pattern(self) -> OwnedCsr<()> {
        match self {
            Self::Market(MarketMatrix { values: MarketValues::Real(matrix), .. }) => matrix.into_pattern(),
            Self::Market(MarketMatrix { values: MarketValues::Complex(matrix), .. }) => matrix.into_pattern(),
            Self::Packed(PackedMatrix::Real(matrix)) => matrix.into_pattern(),
            Self::Packed(PackedMatrix::Pattern(matrix)) | Self::Generated(matrix) => matrix,
        }
    }

    /// Returns the kind of values and the matrix, in which each entry of a pattern is 1.
    ///
    /// Errors: `OutOfMemory`.
    pub fn into_values(self) -> Result<(MarketField, MarketValues), MatrixError> {
        Ok(match self {
            Self::Market(matrix) => (matrix.header.field, matrix.values),
            Self::Packed(PackedMatrix::Real(matrix)) => (MarketField::Real, MarketValues::Real(matrix)),
            Self::Packed(PackedMatrix::Pattern(matrix)) | Self::Generated(matrix) => {
                (MarketField::Pattern, MarketValues::Real(matrix.map_values(|()| 1.0)?))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::gallery::{named, with_values};
    use super::super::market::write_market;
    use super::super::packed::{write_generated, write_pattern, write_real};
    use super::*;

    #[test]
    fn every_form_is_recognised() {
        let pattern = named("poisson5:9").unwrap();
        let matrix = with_values(named("poisson5:9").unwrap(), 3).unwrap();
        let ones = pattern.map_values(|()| 1.0).unwrap();
        let (mut market, mut real, mut bare, mut generated) = (vec![], vec![], vec![], vec![]);
        write_market(&mut market, &matrix).unwrap();
        write_real(&mut real, &matrix).unwrap();
        write_pattern(&mut bare, &pattern).unwrap();
        write_generated(&mut generated, &pattern).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let forms: [(Vec<u8>, MarketField, &OwnedCsr<f64>); 4] = [
            (market, MarketField::Real, &matrix),
            (real, MarketField::Real, &matrix),
            (bare, MarketField::Pattern, &ones),
            (generated, MarketField::Pattern, &ones),
        ];
        for (bytes, field, expected) in forms {
            std::fs::write(&path, bytes).unwrap();
            let (found, values) = read_file(&path).unwrap().into_values().unwrap();
            assert_eq!((found, values), (field, MarketValues::Real(expected.try_clone().unwrap())));
            assert_eq!(read_file(&path).unwrap().into_pattern(), pattern);
        }
        for (bytes, kind) in [(&b"\x7fELF\x02\0\0\0"[..], "an ELF file"), (b"1 2 3\n", "line 1")] {
            std::fs::write(&path, bytes).unwrap();
            let error = read_file(&path).unwrap_err().to_string();
            assert!(error.contains(kind), "{error}");
        }
    }
}
