//! Entries in the lines after the sizes, parsed chunk by chunk, with mirror images, sorted by range of rows.

use std::io::Read;
use std::ops::{Add, Neg};

use num_complex::Complex;
use rayon::prelude::*;

use super::super::owned::{try_filled, try_push, try_reserve, try_with_capacity, Entry, MatrixError};
use super::blocks::{Block, Blocks};
use super::line::{Head, Line};
use super::skip::blank_and_comment_lines;
use super::{MarketField, MarketFormat, MarketSymmetry, Result, MAX_LINE};

/// Largest number of ranges of rows into which entries are sorted. 256 give every thread of a large machine
/// some ranges, and their starts cost 1 KiB beside the 100 KiB of a chunk's entries.
const RANGES: usize = 256;
/// Number of digits of an index that are read without a check for overflow: 10¹⁸ < 2⁶⁴.
const INDEX_DIGITS: usize = 18;

/// A type for the values of a file.
pub(super) trait Value: Entry + Neg<Output = Self> + Add<Output = Self> + Send + Sync {
    /// Makes a value of its real and imaginary part.
    fn from_parts(re: f64, im: f64) -> Self;
    /// Returns the imaginary part.
    fn imaginary(self) -> f64;
    /// Parses a value in one of the usual forms at the start of a text (a pattern's value takes no text).
    fn take(text: &[u8], field: MarketField) -> Option<(Self, &[u8])>;
}

impl Value for f64 {
    fn from_parts(re: f64, _: f64) -> Self {
        re
    }

    fn imaginary(self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn take(text: &[u8], field: MarketField) -> Option<(Self, &[u8])> {
        match field {
            MarketField::Pattern => Some((1.0, text)),
            MarketField::Integer => {
                let (negative, text) = match text.split_first()? {
                    (b'-', rest) => (true, rest),
                    _ => (false, text),
                };
                // At most 18 digits, so the value is within i64.
                let (value, text) = digits(text)?;
                Some((if negative { -(value as i64) } else { value as i64 } as f64, text))
            }
            _ => number(text),
        }
    }
}

impl Value for Complex<f64> {
    fn from_parts(re: f64, im: f64) -> Self {
        Complex::new(re, im)
    }

    fn imaginary(self) -> f64 {
        self.im
    }

    #[inline(always)]
    fn take(text: &[u8], _: MarketField) -> Option<(Self, &[u8])> {
        let (re, text) = number(text)?;
        let (im, text) = number(blanks(text)?)?;
        Some((Complex::new(re, im), text))
    }
}

/// Parses a finite number at the start of a text; returns it and the text behind it. The caller checks what
/// follows: of `1.5d3` this returns 1.5.
#[inline(always)]
fn number(text: &[u8]) -> Option<(f64, &[u8])> {
    let (value, read) = fast_float2::parse_partial::<f64, _>(text).ok()?;
    // An infinity may be a number that is too large; the slow parser decides.
    value.is_finite().then(|| (value, &text[read..]))
}

/// Parses digits at the start of a text, at most [`INDEX_DIGITS`] of them; returns the number and the text
/// behind it.
#[inline(always)]
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (at > 0).then(|| (value, &text[at..]));
        }
        if at == INDEX_DIGITS {
            return None;
        }
        value = 10 * value + u64::from(digit);
    }
    (!text.is_empty()).then_some((value, &[]))
}

/// Skips one or more blanks; `None` if the text does not start with one.
#[inline(always)]
fn blanks(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b' ' | b'\t', rest @ ..] => Some(skip_blanks(rest)),
        _ => None,
    }
}

#[inline(always)]
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// Facts known before the first entry: the file's head, and the assignment of rows to ranges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    head: Head,
    /// Row r is in range r >> `shift`.
    shift: u32,
    ranges: usize,
}

impl Rules {
    pub fn new(head: Head) -> Self {
        let mut shift = 0;
        while head.rows >> shift > RANGES {
            shift += 1;
        }
        Rules { head, shift, ranges: (head.rows.max(1) - 1) / (1 << shift) + 1 }
    }
}

/// Entries (row, column, value) of one chunk of a file.
pub(super) struct Piece<V> {
    /// Sorted by range of rows, within a range in the order of the file.
    entries: Vec<(i32, i32, V)>,
    /// Start of each range in `entries`, and the end of the last range.
    starts: Vec<usize>,
}

impl<V> Piece<V> {
    /// The entries of a range, in the order of the file.
    pub fn range(&self, range: usize) -> &[(i32, i32, V)] {
        &self.entries[self.starts[range]..self.starts[range + 1]]
    }
}

/// All entries of a file.
pub(super) struct Pieces<V> {
    /// The chunks' entries, in the order of the file.
    pub pieces: Vec<Piece<V>>,
    /// Number of ranges of rows.
    pub ranges: usize,
    /// Rows of a range; the last range may have fewer.
    pub rows_per_range: usize,
}

/// Reads all entries; returns them and the number of entries that the file states.
pub(super) fn read<R: Read, V: Value>(
    mut blocks: Blocks<R>,
    mut block: Block,
    head: &Head,
) -> Result<(Pieces<V>, u64)> {
    let rules = Rules::new(*head);
    let mut pieces = Vec::new();
    let mut found = 0;
    let mut next = Block::default();
    loop {
        let chunk = blocks.sizes.chunk;
        let mut parsed = Ok(Vec::new());
        let filled = rayon::in_place_scope(|scope| {
            scope.spawn(|_| parsed = parse_block::<V>(&rules, block.rest(), chunk, found));
            blocks.fill(&mut next)
        });
        let mut lines = block.lines;
        for (text, parsed) in parsed? {
            let piece = parsed.checked(&rules, text, &mut found, &mut lines)?;
            if !piece.entries.is_empty() {
                try_push(&mut pieces, piece)?;
            }
        }
        filled?;
        if next.text.is_empty() {
            blocks.check(lines)?;
            if found < head.expected {
                return Err(head.too_few(found, lines));
            }
            return Ok((Pieces { pieces, ranges: rules.ranges, rows_per_range: 1 << rules.shift }, found));
        }
        next.lines = lines;
        std::mem::swap(&mut block, &mut next);
    }
}

/// Cuts whole lines into chunks of whole lines and parses each; `found` is the number of entries before them.
fn parse_block<'a, V: Value>(
    rules: &Rules,
    text: &'a [u8],
    size: usize,
    found: u64,
) -> Result<Vec<(&'a [u8], Parsed<V>)>> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.get(size..) {
            Some(behind) => behind.iter().position(|&byte| byte == b'\n').map(|at| size + at + 1),
            None => None,
        };
        let (chunk, behind) = rest.split_at(end.unwrap_or(rest.len()));
        try_push(&mut chunks, (chunk, found))?;
        rest = behind;
    }
    if rules.head.header.format == MarketFormat::Array {
        // An array entry's position follows from its number, so the number of entries in each chunk must be
        // known first.
        let mut counts = try_filled(chunks.len(), 0)?;
        let lines = chunks.par_iter().map(|&(chunk, _)| data_lines(chunk));
        lines.zip(&mut counts).for_each(|(lines, count)| *count = lines);
        let mut first = found;
        for ((_, number), count) in chunks.iter_mut().zip(counts) {
            *number = first;
            first += count;
        }
    }
    let mut out = try_with_capacity(chunks.len())?;
    let parse = |&(chunk, first): &(&'a [u8], u64)| {
        let room = rules.head.expected.saturating_sub(first);
        (chunk, parse_chunk(rules, chunk, first, room))
    };
    chunks.par_iter().map(parse).collect_into_vec(&mut out);
    Ok(out)
}

/// Counts lines that are neither blank nor a comment. (A line that is too long may count as several; that is
/// an error, which is found before the count matters.)
fn data_lines(mut text: &[u8]) -> u64 {
    let is_data = |line: &[u8]| !matches!(line.trim_ascii_start().first(), None | Some(b'%'));
    let mut count = 0;
    while !text.is_empty() {
        text = &text[blank_and_comment_lines(text).0..];
        let end = text.iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| at + 1);
        count += u64::from(is_data(&text[..end]));
        text = &text[end..];
    }
    count
}

/// Contents of a chunk up to its end or its first error.
struct Parsed<V> {
    piece: Piece<V>,
    /// Number of entries that the chunk states.
    stated: u64,
    /// Number of its lines.
    lines: u64,
    /// First error; its line is counted from the chunk's start.
    error: Option<MatrixError>,
}

impl<V: Value> Parsed<V> {
    /// Returns the entries, or the first error of the file, which is in this chunk. Chunks are parsed before
    /// it is known how many entries the chunks before them state, so a chunk with too many is parsed again.
    fn checked(self, rules: &Rules, text: &[u8], found: &mut u64, lines: &mut u64) -> Result<Piece<V>> {
        let room = rules.head.expected - *found;
        let too_many = self.stated > room || (self.stated == room && self.error.is_some());
        let parsed = if too_many { parse_chunk(rules, text, *found, room) } else { self };
        match parsed.error {
            Some(MatrixError::Parse { line, message }) => {
                Err(MatrixError::Parse { line: *lines + line, message })
            }
            Some(error) => Err(error),
            None => {
                *found += parsed.stated;
                *lines += parsed.lines;
                Ok(parsed.piece)
            }
        }
    }
}

/// Parses whole lines with room for `room` entries, the first of which has number `first` in the file (used
/// for arrays only).
fn parse_chunk<V: Value>(rules: &Rules, text: &[u8], first: u64, room: u64) -> Parsed<V> {
    let mut parsed =
        Parsed { piece: Piece { entries: Vec::new(), starts: Vec::new() }, stated: 0, lines: 0, error: None };
    let mut entries = Vec::new();
    let done = parse_lines(rules, text, first, room, &mut parsed, &mut entries);
    match done.and_then(|()| sort(rules, &entries)) {
        Ok(piece) => parsed.piece = piece,
        Err(error) => parsed.error = Some(error),
    }
    parsed
}

fn parse_lines<V: Value>(
    rules: &Rules,
    text: &[u8],
    first: u64,
    room: u64,
    parsed: &mut Parsed<V>,
    entries: &mut Vec<(i32, i32, V)>,
) -> Result<()> {
    let Head { header, rows, cols, expected, .. } = rules.head;
    let is_array = header.format == MarketFormat::Array;
    let symmetry = header.symmetry;
    let mut place = if is_array && room > 0 { rules.head.place(first) } else { (0, 0) };
    let (skipped, lines) = blank_and_comment_lines(text);
    let mut rest = &text[skipped..];
    parsed.lines += lines;
    // An entry takes a line of at least 2 bytes, so that this reservation is bounded by the text.
    let lines = rest.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let images = if symmetry == MarketSymmetry::General { 1 } else { 2 };
    try_reserve(entries, images * lines.min(rest.len() / 2 + 1))?;
    while !rest.is_empty() {
        parsed.lines += 1;
        let fast = if parsed.stated < room { fast_line(&rules.head, rest, place) } else { None };
        let (row, col, value) = match fast {
            Some((row, col, value, after)) => {
                rest = after;
                (row, col, value)
            }
            None => {
                let line = Line::take(&mut rest, parsed.lines)?;
                if !line.is_data() {
                    let (bytes, lines) = blank_and_comment_lines(rest);
                    rest = &rest[bytes..];
                    parsed.lines += lines;
                    continue;
                }
                if parsed.stated == room {
                    let entry = format_args!("another entry after {expected}");
                    return line.wrong(entry, "the end of the file");
                }
                let mut tokens = line.tokens()?;
                let (mut row, mut col) = place;
                if !is_array {
                    row = line.index(tokens.next(), "row", rows)?;
                    col = line.index(tokens.next(), "column", cols)?;
                }
                let (re, im) = line.value(header.field, &mut tokens)?;
                line.end_of_line(tokens.next())?;
                line.check_place(symmetry, [row, col], [re, im])?;
                (row, col, V::from_parts(re, im))
            }
        };
        try_push(entries, (row as i32, col as i32, value))?;
        if row != col && symmetry != MarketSymmetry::General {
            let mirror = match symmetry {
                MarketSymmetry::SkewSymmetric => -value,
                MarketSymmetry::Hermitian => value.conj(),
                MarketSymmetry::General | MarketSymmetry::Symmetric => value,
            };
            try_push(entries, (col as i32, row as i32, mirror))?;
        }
        parsed.stated += 1;
        if is_array {
            place.0 += 1;
            if place.0 == rows {
                place.1 += 1;
                place.0 = rules.head.first_row(place.1);
            }
        }
    }
    Ok(())
}

/// Parses the first line of `text` in its usual form; returns the entry and the text behind the line, or
/// `None` for anything unusual or wrong. `place` is the position of an array's entry.
#[inline(always)]
fn fast_line<'a, V: Value>(
    head: &Head,
    text: &'a [u8],
    place: (usize, usize),
) -> Option<(usize, usize, V, &'a [u8])> {
    let (mut row, mut col) = place;
    let mut rest;
    if head.header.format == MarketFormat::Coordinate {
        let (first, after) = digits(skip_blanks(text))?;
        let (second, after) = digits(blanks(after)?)?;
        // An index of 0 wraps to the largest number.
        (row, col) = (first.wrapping_sub(1) as usize, second.wrapping_sub(1) as usize);
        if row >= head.rows || col >= head.cols {
            return None;
        }
        rest = if head.header.field == MarketField::Pattern { after } else { blanks(after)? };
    } else {
        rest = skip_blanks(text);
    }
    let (value, after) = V::take(rest, head.header.field)?;
    rest = match skip_blanks(after) {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => rest,
        [] => &[],
        _ => return None,
    };
    if text.len() - rest.len() > MAX_LINE {
        return None;
    }
    let allowed = match head.header.symmetry {
        MarketSymmetry::General => true,
        _ if row != col => row > col,
        MarketSymmetry::Symmetric => true,
        MarketSymmetry::SkewSymmetric => false,
        MarketSymmetry::Hermitian => value.imaginary() == 0.0,
    };
    allowed.then_some((row, col, value, rest))
}

/// Sorts entries by range of rows; within a range they keep their order.
fn sort<V: Value>(rules: &Rules, entries: &[(i32, i32, V)]) -> Result<Piece<V>> {
    let range = |row: i32| (row >> rules.shift) as usize;
    let mut starts = try_filled(rules.ranges + 1, 0)?;
    let Some(&any) = entries.first() else {
        return Ok(Piece { entries: Vec::new(), starts });
    };
    for &(row, ..) in entries {
        starts[range(row) + 1] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut sorted = try_filled(entries.len(), any)?;
    for &entry in entries {
        let slot = &mut starts[range(entry.0)];
        sorted[*slot] = entry;
        *slot += 1;
    }
    // Each start has now advanced to the start of the next range.
    starts.copy_within(0..rules.ranges, 1);
    starts[0] = 0;
    Ok(Piece { entries: sorted, starts })
}
