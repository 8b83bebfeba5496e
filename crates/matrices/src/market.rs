//! Matrix Market files, plain or gzipped: a strict reader and a small writer.
//!
//! The format: Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996.
//! Accepted beyond it: any case of the keywords, CRLF, blank and comment lines anywhere after the
//! header, leading blanks, Fortran's D exponents, `nan` and `inf`, duplicates (which add up in the
//! order of the file).
//!
//! A file is not trusted. No size is allocated because the file announces it: arrays grow as entries arrive,
//! every growth is fallible, and
//! - a dimension is at most [`MAX_DIMENSION`], and rows + columns at most 2²⁴ + 256 · (entries in
//!   the file): a CSR matrix needs 8 bytes a row, so a two-line file costs at most 128 MiB, and a
//!   larger one some hundred bytes per byte of its entries;
//! - a line is at most 64 KiB long (the format says 1024 characters).
//!
//! So memory follows the entries that the text really holds. gzip can compress text by a factor of 1000; to
//! bound that, give [`read_market`] the text with a limit, `MultiGzDecoder::new(file).take(bytes)`.
//!
//! How a file is read: the caller's thread reads (and decompresses) the text a block at a time, cut after a
//! line's end, while rayon's current threads parse the block before in chunks of lines ([`blocks`],
//! [`entries`]). Each chunk yields its entries, mirror images included, sorted by range of rows; when all
//! have arrived, one task for each range of rows makes its part of the CSR arrays ([`assemble`]). Blocks,
//! chunks and ranges keep the order of the file, so that the result is the same for any number of threads and
//! any size of blocks. [`line`] parses a line slowly and exactly: the header, unusual forms, and every error;
//! [`skip`] passes over blank lines and comments in words of 8 bytes.

mod assemble;
mod blocks;
mod entries;
mod foreign;
mod line;
mod skip;
mod steady;

use std::io::{BufReader, BufWriter, Cursor, Read, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use num_complex::Complex;

use self::blocks::{Blocks, Sizes};
use self::line::Head;
use self::steady::Steady;
use super::owned::{check_announced, MatrixError, OwnedCsr};

type Result<T> = std::result::Result<T, MatrixError>;

/// Longest accepted line in bytes, including its end: 64 times what the format allows.
const MAX_LINE: usize = 1 << 16;
/// Size in bytes of the buffer for compressed text.
const ZIPPED: usize = 1 << 18;
/// Layout of the entries in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketFormat {
    /// `coordinate`: a line "row column value" per entry, indices from 1.
    Coordinate,
    /// `array`: one value per line, by columns, without gaps.
    Array,
}

/// Type of the values in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketField {
    /// `real`.
    Real,
    /// `integer`: within i64, rounded to f64.
    Integer,
    /// `complex`: real and imaginary part.
    Complex,
    /// `pattern`: no values; entries count as 1.
    Pattern,
}

/// Part of the matrix that the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketSymmetry {
    /// `general`: the whole matrix.
    General,
    /// `symmetric`: the lower triangle; a_ji = a_ij.
    Symmetric,
    /// `skew-symmetric`: the strictly lower triangle; a_ji = −a_ij.
    SkewSymmetric,
    /// `hermitian`: the lower triangle with a real diagonal; a_ji = conj(a_ij).
    Hermitian,
}

/// The header line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketHeader {
    /// Coordinate or array.
    pub format: MarketFormat,
    /// The kind of values.
    pub field: MarketField,
    /// The stored part.
    pub symmetry: MarketSymmetry,
}

/// A whole matrix, with symmetric files expanded and duplicates summed.
#[derive(Debug, PartialEq)]
pub enum MarketValues {
    /// Values of real, integer and pattern files.
    Real(OwnedCsr<f64>),
    /// Values of complex files.
    Complex(OwnedCsr<Complex<f64>>),
}

/// Result of [`read_market`].
#[derive(Debug, PartialEq)]
pub struct MarketMatrix {
    /// The file's header.
    pub header: MarketHeader,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The matrix. Entries that the file states are stored, zeros too (so every element of an array).
    pub values: MarketValues,
}

/// Reads a Matrix Market file to its end; gzip (of several members, too) is recognised by its magic bytes.
/// Memory: 16 bytes (complex: 24) per entry of the whole matrix, then the matrix beside it; of the text, two
/// blocks of at most 8 MiB.
///
/// Errors: `Parse` with the line and what was found and expected; `TooLarge` (see the module);
/// `OutOfMemory`; `Io`, which a damaged or truncated gzip stream also gives, with the line reached.
/// If a file has several errors, the first is reported.
pub fn read_market<R: Read>(reader: R) -> Result<MarketMatrix> {
    read_in(reader, Sizes::DEFAULT)
}

/// Like [`read_market`], but with blocks of about `block` bytes of text, cut into chunks of about `chunk`
/// bytes, for tests of the borders between them. Both are at least 1.
#[doc(hidden)]
pub fn read_market_in_pieces<R: Read>(reader: R, block: usize, chunk: usize) -> Result<MarketMatrix> {
    read_in(reader, Sizes { first: block.max(1), block: block.max(1), chunk: chunk.max(1) })
}

fn read_in<R: Read>(mut reader: R, sizes: Sizes) -> Result<MarketMatrix> {
    let mut magic = Vec::new();
    let seen = reader.by_ref().take(2).read_to_end(&mut magic);
    seen.map_err(|error| blocks::after_line(0, &error))?;
    let is_gzip = magic == [0x1f, 0x8b];
    let input = Cursor::new(magic).chain(reader);
    if is_gzip {
        let zipped = BufReader::with_capacity(ZIPPED, input);
        read_text(MultiGzDecoder::new(zipped), sizes)
    } else {
        read_text(input, sizes)
    }
}

fn read_text<R: Read>(text: R, sizes: Sizes) -> Result<MarketMatrix> {
    let mut text = Steady::new(text);
    // For a file of another kind, the error names the kind instead of the bytes of its first line.
    if let Some(kind) = foreign::not_market(text.peek()) {
        let expected = "the text of a Matrix Market file, which starts with %%MatrixMarket";
        return Err(MatrixError::Parse { line: 1, message: format!("found {kind}, expected {expected}") });
    }
    let mut blocks = Blocks::new(text, sizes);
    let mut block = blocks.first()?;
    let head = Head::read(&mut blocks, &mut block)?;
    let values = match head.header.field {
        MarketField::Complex => MarketValues::Complex(read_values(blocks, block, &head)?),
        _ => MarketValues::Real(read_values(blocks, block, &head)?),
    };
    Ok(MarketMatrix { header: head.header, rows: head.rows, cols: head.cols, values })
}

/// Reads the entries, which follow the line of sizes.
fn read_values<R: Read, V: entries::Value>(
    blocks: Blocks<R>,
    block: blocks::Block,
    head: &Head,
) -> Result<OwnedCsr<V>> {
    let (pieces, found) = entries::read(blocks, block, head)?;
    check_announced(&format!("line {}", head.line), head.rows, head.cols, found)?;
    assemble::assemble(head.rows, head.cols, pieces)
}

/// Reads the file at `path` like [`read_market`]; `Io` also if it cannot be opened.
pub fn read_market_file(path: impl AsRef<Path>) -> Result<MarketMatrix> {
    read_market(std::fs::File::open(path)?)
}

pub use foreign::other_kind;

mod pattern;
pub use pattern::write_market_pattern;

/// Writes `matrix` as a general real coordinate file that reads back to the same bits (NaN
/// payloads excepted). Error: `Io`.
pub fn write_market<W: Write>(writer: W, matrix: &OwnedCsr<f64>) -> Result<()> {
    let mut out = BufWriter::new(writer);
    writeln!(out, "%%MatrixMarket matrix coordinate real general")?;
    writeln!(out, "{} {} {}", matrix.rows, matrix.cols, matrix.nnz())?;
    for row in 0..matrix.rows {
        let (cols, values) = matrix.row(row);
        for (&col, &value) in cols.iter().zip(values) {
            // 18 significant digits; 17 determine an f64.
            writeln!(out, "{} {} {value:.17e}", row + 1, i64::from(col) + 1)?;
        }
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests;
