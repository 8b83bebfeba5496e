//! Matrix Market files, plain or gzipped: a strict reader and a small writer.
//!
//! The format: Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR 5935, 1996.
//! Accepted beyond it: any case of the keywords, CRLF, blank and comment lines anywhere after the
//! header, leading blanks, Fortran's D exponents, `nan` and `inf`, duplicates (which add up in the
//! order of the file).
//!
//! A file is not trusted. No announced size is allocated: arrays grow as entries arrive, every
//! growth is fallible, and
//! - a dimension is at most [`MAX_DIMENSION`], and rows + columns at most 2²⁴ + 256 · (entries in
//!   the file): a CSR matrix needs 8 bytes a row, so a two-line file costs at most 128 MiB, and a
//!   larger one some hundred bytes per byte of its entries;
//! - a line is at most 64 KiB long (the format says 1024 characters).
//!
//! So memory follows the entries that the text really holds. gzip can hold 1000 times its size: who
//! fears that gives [`read_market`] the text with a limit, `MultiGzDecoder::new(file).take(bytes)`.

use std::fmt::Display;
use std::io::{BufRead, BufReader, BufWriter, Cursor, Read, Write};
use std::ops::Neg;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use num_complex::Complex;

use super::owned::{try_push, try_reserve, Entry, MatrixError, OwnedCsr, MAX_DIMENSION};

type Result<T> = std::result::Result<T, MatrixError>;

/// Longest line accepted, in bytes with its end: 64 times what the format allows.
const MAX_LINE: usize = 1 << 16;
/// Entries that are reserved before the first was seen, whatever is announced (at most 2 MiB).
const FIRST_RESERVE: u64 = 1 << 16;
/// rows + columns that need no entries to be believed: a row costs 8 bytes, so 128 MiB.
const FREE_DIMENSIONS: u128 = 1 << 24;
/// rows + columns believed per entry in the file. Real matrices have fewer than 3; 256 leaves room
/// for the emptiest, and an entry is at least 4 bytes of file.
const DIMENSIONS_PER_ENTRY: u128 = 256;
/// Characters of a bad token that an error message shows.
const SHOWN: usize = 40;

/// How entries are laid out in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketFormat {
    /// `coordinate`: a line "row column value" per entry, indices from 1.
    Coordinate,
    /// `array`: a value per line, by columns, nothing left out.
    Array,
}

/// What the values in the file are.
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

/// Which part of the matrix the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketSymmetry {
    /// `general`: all of it.
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

/// A whole matrix, its symmetric half expanded and its duplicates summed.
#[derive(Debug, PartialEq)]
pub enum MarketValues {
    /// From real, integer and pattern files.
    Real(OwnedCsr<f64>),
    /// From complex files.
    Complex(OwnedCsr<Complex<f64>>),
}

/// What [`read_market`] found.
#[derive(Debug, PartialEq)]
pub struct MarketMatrix {
    /// The file's header.
    pub header: MarketHeader,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The matrix. Entries that the file states are stored, zeros too (so all of an array).
    pub values: MarketValues,
}

/// Reads a Matrix Market file to its end; gzip (of several members, too) is known by its magic
/// bytes. Memory: 16 bytes (complex 24) per entry of the whole matrix, up to twice that while the
/// array grows, then the matrix beside it; nothing is kept of the text.
///
/// Errors: `Parse` with the line and what was found and expected; `TooLarge` (see the module);
/// `OutOfMemory`; `Io`, which a damaged or truncated gzip stream also gives, with the line reached.
pub fn read_market<R: Read>(reader: R) -> Result<MarketMatrix> {
    let mut input = BufReader::new(reader);
    let mut magic = Vec::new();
    input.by_ref().take(2).read_to_end(&mut magic)?;
    let is_gzip = magic == [0x1f, 0x8b];
    let input = Cursor::new(magic).chain(input);
    if is_gzip {
        read_text(MultiGzDecoder::new(input))
    } else {
        read_text(input)
    }
}

/// [`read_market`] of the file at `path`; `Io` also if it cannot be opened.
pub fn read_market_file(path: impl AsRef<Path>) -> Result<MarketMatrix> {
    read_market(std::fs::File::open(path)?)
}

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

/// The lines of a file, one at a time.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Number of the current line, from 1.
    number: u64,
}

impl<R: Read> Lines<R> {
    /// Reads the next line; false at the end of the file.
    fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line).map_err(|error| {
            let text = format!("after line {}: {error}", self.number);
            std::io::Error::new(error.kind(), text)
        })?;
        self.number += u64::from(read > 0);
        if read > MAX_LINE {
            return self.wrong("a longer line", format_args!("at most {MAX_LINE} bytes"));
        }
        Ok(read > 0)
    }

    /// Reads up to the next line that is neither blank nor a comment; false at the end of the file.
    fn advance_to_data(&mut self) -> Result<bool> {
        while self.advance()? {
            if !matches!(self.line.trim_ascii_start().first(), None | Some(b'%')) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tokens of the current line.
    fn tokens(&self) -> Result<Tokens<'_>> {
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(line.split_ascii_whitespace()),
            Err(error) => {
                let bytes = &self.line[error.valid_up_to()..];
                let bad = bytes[..error.error_len().unwrap_or(1)].escape_ascii();
                self.wrong(format_args!("the bytes {bad}"), "text")
            }
        }
    }

    fn wrong<T>(&self, found: impl Display, expected: impl Display) -> Result<T> {
        Err(MatrixError::Parse { line: self.number, message: format!("found {found}, expected {expected}") })
    }

    fn wrong_token<T>(&self, found: Option<&str>, expected: impl Display) -> Result<T> {
        match found {
            None => self.wrong("the end of the line", expected),
            Some(token) => {
                let shown: String = token.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                let more = if token.chars().count() > SHOWN { "…" } else { "" };
                self.wrong(format_args!("'{shown}{more}'"), expected)
            }
        }
    }

    /// One of the words of `choices`, in any case.
    fn keyword<T: Copy>(&self, token: Option<&str>, choices: &[(&str, T)]) -> Result<T> {
        let is_it = |choice: &&(&str, T)| token.is_some_and(|t| t.eq_ignore_ascii_case(choice.0));
        match choices.iter().find(is_it) {
            Some(&(_, value)) => Ok(value),
            None => {
                let words: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
                self.wrong_token(token, words.join(" or "))
            }
        }
    }

    fn header(&mut self) -> Result<MarketHeader> {
        if !self.advance()? {
            self.number = 1;
            return self.wrong("an empty file", "%%MatrixMarket");
        }
        let mut tokens = self.tokens()?;
        self.keyword(tokens.next(), &[("%%MatrixMarket", ())])?;
        self.keyword(tokens.next(), &[("matrix", ())])?;
        let formats = [("coordinate", MarketFormat::Coordinate), ("array", MarketFormat::Array)];
        let format = self.keyword(tokens.next(), &formats)?;
        let fields = [
            ("real", MarketField::Real),
            ("integer", MarketField::Integer),
            ("complex", MarketField::Complex),
            ("pattern", MarketField::Pattern),
        ];
        // What an array cannot be, and what a field has no use for, is left out of the choices.
        let is_array = format == MarketFormat::Array;
        let field = self.keyword(tokens.next(), &fields[..if is_array { 3 } else { 4 }])?;
        let symmetries = [
            ("general", MarketSymmetry::General),
            ("symmetric", MarketSymmetry::Symmetric),
            ("skew-symmetric", MarketSymmetry::SkewSymmetric),
            ("hermitian", MarketSymmetry::Hermitian),
        ];
        let allowed = match field {
            MarketField::Pattern => 2,
            MarketField::Real | MarketField::Integer => 3,
            MarketField::Complex => 4,
        };
        let symmetry = self.keyword(tokens.next(), &symmetries[..allowed])?;
        self.end_of_line(tokens.next())?;
        Ok(MarketHeader { format, field, symmetry })
    }

    fn end_of_line(&self, token: Option<&str>) -> Result<()> {
        match token {
            None => Ok(()),
            Some(_) => self.wrong_token(token, "the end of the line"),
        }
    }

    fn count(&self, token: Option<&str>, what: &str) -> Result<u64> {
        match token.and_then(|token| token.parse().ok()) {
            Some(count) => Ok(count),
            None => self.wrong_token(token, format_args!("the number of {what}")),
        }
    }

    fn dimension(&self, token: Option<&str>, what: &str) -> Result<usize> {
        let count = self.count(token, what)?;
        match usize::try_from(count) {
            Ok(count) if count <= MAX_DIMENSION => Ok(count),
            _ => Err(MatrixError::TooLarge {
                what: format!("line {}: number of {what}", self.number),
                found: count.into(),
                limit: MAX_DIMENSION as u128,
            }),
        }
    }

    /// An index of 1..=`size`, counted from 0.
    fn index(&self, token: Option<&str>, what: &str, size: usize) -> Result<usize> {
        match token.and_then(|token| token.parse::<usize>().ok()) {
            Some(index) if (1..=size).contains(&index) => Ok(index - 1),
            _ => self.wrong_token(token, format_args!("a {what} index from 1 to {size}")),
        }
    }

    /// Takes a value of kind `field`: real and imaginary part.
    fn value(&self, field: MarketField, tokens: &mut Tokens) -> Result<(f64, f64)> {
        let real = |token: Option<&str>| match token.and_then(parse_real) {
            Some(value) => Ok(value),
            None => self.wrong_token(token, "a number in the range of f64"),
        };
        match field {
            MarketField::Pattern => Ok((1.0, 0.0)),
            MarketField::Real => Ok((real(tokens.next())?, 0.0)),
            MarketField::Complex => Ok((real(tokens.next())?, real(tokens.next())?)),
            MarketField::Integer => {
                let token = tokens.next();
                match token.and_then(|token| token.parse::<i64>().ok()) {
                    Some(value) => Ok((value as f64, 0.0)),
                    None => self.wrong_token(token, "a 64-bit integer"),
                }
            }
        }
    }

    /// Checks that a file of this symmetry may state the entry `value` (real and imaginary part).
    fn check_place(&self, symmetry: MarketSymmetry, [row, col]: [usize; 2], value: [f64; 2]) -> Result<()> {
        if symmetry == MarketSymmetry::General || row > col {
            return Ok(());
        }
        if row < col {
            let entry = format_args!("({}, {}) above the diagonal", row + 1, col + 1);
            return self.wrong(entry, "entries of the lower triangle only");
        }
        match symmetry {
            MarketSymmetry::SkewSymmetric if value != [0.0; 2] => {
                self.wrong("a nonzero on the diagonal", "0 in a skew-symmetric matrix")
            }
            MarketSymmetry::Hermitian if value[1] != 0.0 => {
                let expected = "an imaginary part of 0 in a hermitian matrix";
                self.wrong("a complex value on the diagonal", expected)
            }
            _ => Ok(()),
        }
    }
}

/// An f64, with E or D before the exponent; `None` too if a finite number is too large for one.
fn parse_real(token: &str) -> Option<f64> {
    let value: f64 = token.parse().or_else(|_| token.replacen(['d', 'D'], "e", 1).parse()).ok()?;
    let is_overflow = value.is_infinite() && token.bytes().any(|byte| byte.is_ascii_digit());
    (!is_overflow).then_some(value)
}

type Tokens<'a> = std::str::SplitAsciiWhitespace<'a>;

/// A type for the values of a file.
trait Value: Entry + Neg<Output = Self> {
    fn from_parts(re: f64, im: f64) -> Self;
}

impl Value for f64 {
    fn from_parts(re: f64, _: f64) -> Self {
        re
    }
}

impl Value for Complex<f64> {
    fn from_parts(re: f64, im: f64) -> Self {
        Complex::new(re, im)
    }
}

fn read_text<R: Read>(reader: R) -> Result<MarketMatrix> {
    let mut lines = Lines { input: BufReader::new(reader), line: Vec::new(), number: 0 };
    let header = lines.header()?;
    if !lines.advance_to_data()? {
        return lines.wrong("the end of the file", "the line of sizes");
    }
    let mut tokens = lines.tokens()?;
    let rows = lines.dimension(tokens.next(), "rows")?;
    let cols = lines.dimension(tokens.next(), "columns")?;
    let announced = match header.format {
        MarketFormat::Coordinate => Some(lines.count(tokens.next(), "entries")?),
        MarketFormat::Array => None,
    };
    lines.end_of_line(tokens.next())?;
    if header.symmetry != MarketSymmetry::General && rows != cols {
        return lines.wrong(format_args!("{rows} x {cols}"), "as many rows as columns");
    }
    let values = match header.field {
        MarketField::Complex => {
            MarketValues::Complex(read_entries(&mut lines, header, [rows, cols], announced)?)
        }
        _ => MarketValues::Real(read_entries(&mut lines, header, [rows, cols], announced)?),
    };
    Ok(MarketMatrix { header, rows, cols, values })
}

/// Reads what follows the sizes. `announced` is the number of entries of a coordinate file.
fn read_entries<R: Read, V: Value>(
    lines: &mut Lines<R>,
    header: MarketHeader,
    [rows, cols]: [usize; 2],
    announced: Option<u64>,
) -> Result<OwnedCsr<V>> {
    let symmetry = header.symmetry;
    // The first stored row of an array's column.
    let first_row = |col: usize| match symmetry {
        MarketSymmetry::General => 0,
        MarketSymmetry::SkewSymmetric => col + 1,
        MarketSymmetry::Symmetric | MarketSymmetry::Hermitian => col,
    };
    // Dimensions are below 2^31, so nothing here overflows.
    let (m, n) = (rows as u64, cols as u64);
    let expected = announced.unwrap_or(match symmetry {
        MarketSymmetry::General => m * n,
        MarketSymmetry::SkewSymmetric => n * n.saturating_sub(1) / 2,
        MarketSymmetry::Symmetric | MarketSymmetry::Hermitian => n * (n + 1) / 2,
    });
    let mut entries: Vec<(i32, i32, V)> = Vec::new();
    try_reserve(&mut entries, expected.min(FIRST_RESERVE) as usize)?;
    let mut found = 0;
    let (mut row, mut col) = (first_row(0), 0);
    while lines.advance_to_data()? {
        if found == expected {
            let entry = format_args!("another entry after {found}");
            return lines.wrong(entry, "the end of the file");
        }
        let mut tokens = lines.tokens()?;
        if header.format == MarketFormat::Coordinate {
            row = lines.index(tokens.next(), "row", rows)?;
            col = lines.index(tokens.next(), "column", cols)?;
        }
        let (re, im) = lines.value(header.field, &mut tokens)?;
        lines.end_of_line(tokens.next())?;
        lines.check_place(symmetry, [row, col], [re, im])?;
        let value = V::from_parts(re, im);
        try_push(&mut entries, (row as i32, col as i32, value))?;
        if row != col && symmetry != MarketSymmetry::General {
            let mirror = match symmetry {
                MarketSymmetry::SkewSymmetric => -value,
                MarketSymmetry::Hermitian => value.conj(),
                MarketSymmetry::General | MarketSymmetry::Symmetric => value,
            };
            try_push(&mut entries, (col as i32, row as i32, mirror))?;
        }
        found += 1;
        if header.format == MarketFormat::Array {
            row += 1;
            if row == rows {
                col += 1;
                row = first_row(col);
            }
        }
    }
    if found < expected {
        let end = format_args!("the end of the file after {found} entries");
        return lines.wrong(end, format_args!("{expected} entries"));
    }
    let limit = FREE_DIMENSIONS + DIMENSIONS_PER_ENTRY * u128::from(found);
    if rows as u128 + cols as u128 > limit {
        return Err(MatrixError::TooLarge {
            what: format!("rows and columns of a file with {found} entries"),
            found: rows as u128 + cols as u128,
            limit,
        });
    }
    OwnedCsr::from_triplets(rows, cols, entries)
}

#[cfg(test)]
mod tests;
