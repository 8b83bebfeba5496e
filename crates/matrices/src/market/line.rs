//! The slow parser of a line, of the header and the sizes, which makes every error message.

use std::fmt::Display;
use std::io::Read;
use std::str::SplitAsciiWhitespace;

use super::super::owned::{MatrixError, MAX_DIMENSION};
use super::blocks::{Block, Blocks};
use super::skip::blank_and_comment_lines;
use super::{MarketField, MarketFormat, MarketHeader, MarketSymmetry, Result, MAX_LINE};

/// Number of characters of a bad token that an error message shows.
const SHOWN: usize = 40;

pub(super) type Tokens<'a> = SplitAsciiWhitespace<'a>;

/// One line of a text.
pub(super) struct Line<'a> {
    text: &'a [u8],
    number: u64,
}

impl<'a> Line<'a> {
    /// Takes the first line off `text`, which is not empty; fails if it is too long.
    pub fn take(text: &mut &'a [u8], number: u64) -> Result<Self> {
        let bounded = &text[..text.len().min(MAX_LINE + 1)];
        let end = bounded.iter().position(|&byte| byte == b'\n').map_or(bounded.len(), |at| at + 1);
        let (line, rest) = text.split_at(end);
        *text = rest;
        let line = Line { text: line, number };
        if end > MAX_LINE {
            return line.wrong("a longer line", format_args!("at most {MAX_LINE} bytes"));
        }
        Ok(line)
    }

    /// Returns whether the line is neither blank nor a comment.
    pub fn is_data(&self) -> bool {
        !matches!(self.text.trim_ascii_start().first(), None | Some(b'%'))
    }

    /// Returns the line's tokens.
    pub fn tokens(&self) -> Result<Tokens<'a>> {
        match std::str::from_utf8(self.text) {
            Ok(line) => Ok(line.split_ascii_whitespace()),
            Err(error) => {
                let bytes = &self.text[error.valid_up_to()..];
                let bad = bytes[..error.error_len().unwrap_or(1)].escape_ascii();
                self.wrong(format_args!("the bytes {bad}"), "text")
            }
        }
    }

    pub fn wrong<T>(&self, found: impl Display, expected: impl Display) -> Result<T> {
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

    /// Returns the choice whose word is `token`, in any case.
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

    fn header(&self) -> Result<MarketHeader> {
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
        // Choices that an array cannot have, or that make no sense for a field, are left out.
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

    pub fn end_of_line(&self, token: Option<&str>) -> Result<()> {
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

    /// Parses an index in 1..=`size`; returns it counted from 0.
    pub fn index(&self, token: Option<&str>, what: &str, size: usize) -> Result<usize> {
        match token.and_then(|token| token.parse::<usize>().ok()) {
            Some(index) if (1..=size).contains(&index) => Ok(index - 1),
            _ => self.wrong_token(token, format_args!("a {what} index from 1 to {size}")),
        }
    }

    /// Parses a value of kind `field`; returns its real and imaginary part.
    pub fn value(&self, field: MarketField, tokens: &mut Tokens) -> Result<(f64, f64)> {
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
    pub fn check_place(
        &self,
        symmetry: MarketSymmetry,
        [row, col]: [usize; 2],
        value: [f64; 2],
    ) -> Result<()> {
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

/// Parses an f64 with E or D before the exponent; `None` also if a finite number is too large for f64.
fn parse_real(token: &str) -> Option<f64> {
    let value: f64 = token.parse().or_else(|_| token.replacen(['d', 'D'], "e", 1).parse()).ok()?;
    let is_overflow = value.is_infinite() && token.bytes().any(|byte| byte.is_ascii_digit());
    (!is_overflow).then_some(value)
}

/// Header and sizes of a file, which come before its entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Contents of the first line.
    pub header: MarketHeader,
    /// Rows, at most [`MAX_DIMENSION`].
    pub rows: usize,
    /// Columns, at most [`MAX_DIMENSION`].
    pub cols: usize,
    /// Number of entries that must follow: the announced number, or all stored entries of an array.
    pub expected: u64,
    /// Number of the line that states these sizes.
    pub line: u64,
}

impl Head {
    /// Reads the header and the sizes; `block` then starts at the line after them.
    pub fn read<R: Read>(blocks: &mut Blocks<R>, block: &mut Block) -> Result<Self> {
        if block.rest().is_empty() {
            blocks.check(0)?;
            return Line { text: &[], number: 1 }.wrong("an empty file", "%%MatrixMarket");
        }
        let header = next_line(block)?.header()?;
        loop {
            if block.rest().is_empty() {
                blocks.fill(block)?;
            }
            if block.rest().is_empty() {
                blocks.check(block.lines)?;
                let end = Line { text: &[], number: block.lines };
                return end.wrong("the end of the file", "the line of sizes");
            }
            let line = next_line(block)?;
            if line.is_data() {
                return line.sizes(header);
            }
            let (bytes, lines) = blank_and_comment_lines(block.rest());
            block.done += bytes;
            block.lines += lines;
        }
    }

    /// Makes the error for a file of `lines` lines that ends with too few entries.
    pub fn too_few(&self, found: u64, lines: u64) -> MatrixError {
        MatrixError::Parse {
            line: lines,
            message: format!(
                "found the end of the file after {found} entries, expected {} entries",
                self.expected
            ),
        }
    }

    /// Returns the first stored row of an array's column.
    pub fn first_row(&self, col: usize) -> usize {
        match self.header.symmetry {
            MarketSymmetry::General => 0,
            MarketSymmetry::SkewSymmetric => col + 1,
            MarketSymmetry::Symmetric | MarketSymmetry::Hermitian => col,
        }
    }

    /// Returns the number of stored entries of an array before column `col`. Dimensions are below 2³¹, so
    /// nothing overflows. That the matrix is square, where it must be, is checked later.
    fn stored_before(&self, col: usize) -> u64 {
        let (m, col) = (self.rows as u64, col as u64);
        match self.header.symmetry {
            MarketSymmetry::General => m * col,
            // m − 1, m − 2, … entries
            MarketSymmetry::SkewSymmetric => col * (2 * m).saturating_sub(col + 1) / 2,
            // m, m − 1, … entries
            MarketSymmetry::Symmetric | MarketSymmetry::Hermitian => {
                col * (2 * m + 1).saturating_sub(col) / 2
            }
        }
    }

    /// Returns (row, column) of the array's entry number `entry`, counted from 0 and below `expected`.
    pub fn place(&self, entry: u64) -> (usize, usize) {
        // Finds the last column that does not start behind the entry; an empty column starts where the next
        // one does.
        let (mut low, mut high) = (0, self.cols);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.stored_before(middle) <= entry {
                low = middle;
            } else {
                high = middle;
            }
        }
        (self.first_row(low) + (entry - self.stored_before(low)) as usize, low)
    }
}

fn next_line(block: &mut Block) -> Result<Line<'_>> {
    block.lines += 1;
    let mut rest = &block.text[block.done..];
    let before = rest.len();
    let line = Line::take(&mut rest, block.lines);
    block.done += before - rest.len();
    line
}

impl Line<'_> {
    fn sizes(&self, header: MarketHeader) -> Result<Head> {
        let mut tokens = self.tokens()?;
        let rows = self.dimension(tokens.next(), "rows")?;
        let cols = self.dimension(tokens.next(), "columns")?;
        let mut head = Head { header, rows, cols, expected: 0, line: self.number };
        head.expected = match header.format {
            MarketFormat::Coordinate => self.count(tokens.next(), "entries")?,
            MarketFormat::Array => head.stored_before(cols),
        };
        self.end_of_line(tokens.next())?;
        if header.symmetry != MarketSymmetry::General && rows != cols {
            return self.wrong(format_args!("{rows} x {cols}"), "as many rows as columns");
        }
        Ok(head)
    }
}
