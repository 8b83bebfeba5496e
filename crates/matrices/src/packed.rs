//! Matrices in compact binary files: a compressed container of our own, and the plain binary files that the
//! generator of the comparison matrices writes.
//!
//! The container, version 1 (integers little-endian, varints LEB128):
//!
//! ```text
//! 8 bytes  "TARSIAM" and the version, 1
//! one gzip member, which holds
//!   u8     values: 0 none (a pattern), 1 f64
//!   u64    rows, columns, entries
//!   varint zigzag(entries of the row − entries of the row before), for each row
//!   varint for each row that is not empty: zigzag(first column − that of the nonempty row before),
//!          then (column − column before − 1) for each further entry
//!   f64    entries, in CSR order, if there are values
//! ```
//!
//! Differences from the row before turn rows of one structure into the same bytes, which compress well.
//! gzip's CRC-32 covers all but the first 8 bytes, which must match.
//!
//! Files are not trusted: arrays grow as bytes arrive, never by an announced size alone, every growth
//! is fallible, and every index is checked. A decompressed byte makes at most 8 bytes of arrays.

use std::io::{BufReader, BufWriter, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use flate2::Compression;

use super::owned::{check_announced, check_dimensions, try_push, try_reserve, MatrixError, OwnedCsr};

type Result<T> = std::result::Result<T, MatrixError>;

/// First bytes of a container: its name and its version.
pub const MAGIC: [u8; 8] = *b"TARSIAM\x01";
/// Number of elements that are read at a time from an array of fixed width.
const CHUNK: usize = 1 << 16;

/// Contents of a container.
#[derive(Debug, PartialEq)]
pub enum PackedMatrix {
    /// A pattern without values.
    Pattern(OwnedCsr<()>),
    /// A matrix of f64.
    Real(OwnedCsr<f64>),
}

/// Type of the values that a container can hold; `()` for a pattern without values.
trait Value: Copy {
    const KIND: u8;
    fn write<W: Write>(out: &mut W, values: &[Self]) -> Result<()>;
    fn read<R: Read>(input: &mut R, count: usize) -> Result<Vec<Self>>;
}

impl Value for () {
    const KIND: u8 = 0;
    fn write<W: Write>(_: &mut W, _: &[()]) -> Result<()> {
        Ok(())
    }
    fn read<R: Read>(_: &mut R, count: usize) -> Result<Vec<()>> {
        Ok(vec![(); count])
    }
}

impl Value for f64 {
    const KIND: u8 = 1;
    fn write<W: Write>(out: &mut W, values: &[f64]) -> Result<()> {
        for value in values {
            out.write_all(&value.to_le_bytes())?;
        }
        Ok(())
    }
    fn read<R: Read>(input: &mut R, count: usize) -> Result<Vec<f64>> {
        read_array(input, count, f64::from_le_bytes)
    }
}

/// Writes the pattern of `matrix` as a container. Error: `Io`.
pub fn write_pattern<W: Write, V>(writer: W, matrix: &OwnedCsr<V>) -> Result<()> {
    write(writer, matrix, &[(); 0])
}

/// Writes `matrix` as a container; values come back with the same bits. Error: `Io`.
pub fn write_real<W: Write>(writer: W, matrix: &OwnedCsr<f64>) -> Result<()> {
    write(writer, matrix, &matrix.values)
}

/// Reads a container to its end.
///
/// Errors: `Argument` with the place and what was found and expected; `TooLarge`; `OutOfMemory`;
/// `Io`, which a damaged or truncated gzip stream also gives.
pub fn read_packed<R: Read>(mut reader: R) -> Result<PackedMatrix> {
    let mut magic = [0; 8];
    reader.read_exact(&mut magic)?;
    if magic != MAGIC {
        return wrong("first bytes", magic.escape_ascii(), MAGIC.escape_ascii());
    }
    let mut input = BufReader::new(GzDecoder::new(BufReader::new(reader)));
    let kind = byte(&mut input)?;
    let rows = size("rows", u64::from_le_bytes(array(&mut input)?))?;
    let cols = size("columns", u64::from_le_bytes(array(&mut input)?))?;
    let nnz = size("entries", u64::from_le_bytes(array(&mut input)?))?;
    check_shape(rows, cols, nnz)?;
    let offsets = read_offsets(&mut input, rows, nnz)?;
    let indices = read_columns(&mut input, &offsets, cols)?;
    let matrix = match kind {
        <() as Value>::KIND => {
            let values = Value::read(&mut input, nnz)?;
            PackedMatrix::Pattern(OwnedCsr { rows, cols, offsets, indices, values })
        }
        <f64 as Value>::KIND => {
            let values = Value::read(&mut input, nnz)?;
            PackedMatrix::Real(OwnedCsr { rows, cols, offsets, indices, values })
        }
        other => return wrong("kind of values", other, "0 (none) or 1 (f64)"),
    };
    // At the end of the stream gzip compares its checksum.
    end(&mut input)?;
    end(input.get_mut().get_mut())?;
    Ok(matrix)
}

/// Reads a pattern from the generator's plain binary form to its end: i64 rows, columns, entries;
/// i32 row offsets (rows + 1); i32 columns; all little-endian. Nothing marks such a file.
///
/// Errors: `Argument` with the place and what was found and expected; `TooLarge`; `OutOfMemory`; `Io`.
pub fn read_generated<R: Read>(reader: R) -> Result<OwnedCsr<()>> {
    let mut input = BufReader::new(reader);
    let mut sizes = [0; 3];
    for (slot, what) in sizes.iter_mut().zip(["rows", "columns", "entries"]) {
        // A negative size becomes larger than any limit.
        *slot = size(what, u64::from_le_bytes(array(&mut input)?))?;
    }
    let [rows, cols, nnz] = sizes;
    check_shape(rows, cols, nnz)?;
    let offsets = read_array(&mut input, rows + 1, |bytes| i64::from(i32::from_le_bytes(bytes)))?;
    let indices = read_array(&mut input, nnz, i32::from_le_bytes)?;
    end(&mut input)?;
    let matrix = OwnedCsr { rows, cols, offsets, indices, values: vec![(); nnz] };
    matrix.validate()?;
    Ok(matrix)
}

/// Writes the pattern of `matrix` in the generator's plain binary form, which [`read_generated`]
/// reads. Errors: `TooLarge` (more entries than a 32-bit offset counts); `Io`.
pub fn write_generated<W: Write, V>(writer: W, matrix: &OwnedCsr<V>) -> Result<()> {
    let (found, limit) = (matrix.nnz() as u128, i32::MAX as u128);
    if found > limit {
        return Err(MatrixError::TooLarge { what: "entries".into(), found, limit });
    }
    let mut out = BufWriter::with_capacity(CHUNK, writer);
    for size in [matrix.rows, matrix.cols, matrix.nnz()] {
        out.write_all(&(size as i64).to_le_bytes())?;
    }
    for &offset in &matrix.offsets {
        out.write_all(&(offset as i32).to_le_bytes())?;
    }
    for &col in &matrix.indices {
        out.write_all(&col.to_le_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn wrong<T>(
    what: impl std::fmt::Display,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> Result<T> {
    Err(MatrixError::argument(what, found, expected))
}

/// Checks that an array can have this size.
fn size(what: &str, found: u64) -> Result<usize> {
    match usize::try_from(found) {
        Ok(size) if size <= isize::MAX as usize / 8 => Ok(size),
        _ => Err(MatrixError::TooLarge {
            what: what.into(),
            found: found.into(),
            limit: (isize::MAX / 8) as u128,
        }),
    }
}

fn check_shape(rows: usize, cols: usize, nnz: usize) -> Result<()> {
    check_dimensions(rows, cols)?;
    check_announced("the file", rows, cols, nnz as u64)?;
    let cells = rows as u128 * cols as u128;
    if nnz as u128 > cells {
        return Err(MatrixError::TooLarge { what: "entries".into(), found: nnz as u128, limit: cells });
    }
    Ok(())
}

fn array<const N: usize>(input: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn byte(input: &mut impl Read) -> Result<u8> {
    Ok(array::<1>(input)?[0])
}

/// Reads `count` elements of N bytes; memory grows only with the bytes that were read.
fn read_array<const N: usize, T>(
    input: &mut impl Read,
    count: usize,
    decode: impl Fn([u8; N]) -> T,
) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let mut bytes = vec![0; CHUNK.min(count) * N];
    while out.len() < count {
        let some = CHUNK.min(count - out.len());
        let bytes = &mut bytes[..some * N];
        input.read_exact(bytes)?;
        try_reserve(&mut out, some)?;
        // `chunks_exact` gives chunks of exactly N bytes, so `try_into` never fails.
        out.extend(bytes.chunks_exact(N).filter_map(|chunk| chunk.try_into().ok()).map(&decode));
    }
    Ok(out)
}

/// Checks that no bytes follow.
fn end(input: &mut impl Read) -> Result<()> {
    let mut more = [0; 1];
    loop {
        match input.read(&mut more) {
            Ok(0) => return Ok(()),
            Ok(_) => return wrong("end of the matrix", "more bytes", "the end of the file"),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn write_varint(out: &mut impl Write, mut value: u64) -> Result<()> {
    while value >= 0x80 {
        out.write_all(&[value as u8 | 0x80])?;
        value >>= 7;
    }
    out.write_all(&[value as u8])?;
    Ok(())
}

fn read_varint(input: &mut impl Read) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(input)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    wrong("varint", "more than 64 bits", "at most 64 bits")
}

fn write<W: Write, V, X: Value>(mut writer: W, matrix: &OwnedCsr<V>, values: &[X]) -> Result<()> {
    writer.write_all(&MAGIC)?;
    let mut out = BufWriter::new(GzEncoder::new(writer, Compression::best()));
    out.write_all(&[X::KIND])?;
    for size in [matrix.rows, matrix.cols, matrix.nnz()] {
        out.write_all(&(size as u64).to_le_bytes())?;
    }
    let mut before = 0;
    for row in matrix.offsets.windows(2) {
        let length = row[1] - row[0];
        write_varint(&mut out, zigzag(length - before))?;
        before = length;
    }
    let mut first_before = 0;
    for row in 0..matrix.rows {
        let (cols, _) = matrix.row(row);
        let Some(&first) = cols.first() else { continue };
        write_varint(&mut out, zigzag(i64::from(first) - first_before))?;
        first_before = i64::from(first);
        for pair in cols.windows(2) {
            write_varint(&mut out, (pair[1] - pair[0]) as u64 - 1)?;
        }
    }
    X::write(&mut out, values)?;
    let encoder = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    encoder.finish()?.flush()?;
    Ok(())
}

fn read_offsets(input: &mut impl Read, rows: usize, nnz: usize) -> Result<Vec<i64>> {
    let (mut offsets, mut length, mut sum) = (vec![0], 0i64, 0i64);
    for row in 0..rows {
        let change = unzigzag(read_varint(input)?);
        let left = nnz as i64 - sum;
        match length.checked_add(change) {
            Some(next) if (0..=left).contains(&next) => length = next,
            found => {
                let found = found.map_or("an overflow".into(), |length| length.to_string());
                return wrong(format_args!("entries of row {row}"), found, format_args!("0 to {left}"));
            }
        }
        sum += length;
        try_push(&mut offsets, sum)?;
    }
    if sum != nnz as i64 {
        return wrong("entries of all rows", sum, nnz);
    }
    Ok(offsets)
}

fn read_columns(input: &mut impl Read, offsets: &[i64], cols: usize) -> Result<Vec<i32>> {
    let (mut indices, mut first_before) = (Vec::new(), 0i64);
    for (row, ends) in offsets.windows(2).enumerate() {
        let mut previous = None;
        for _ in ends[0]..ends[1] {
            let varint = read_varint(input)?;
            let col = match previous {
                None => first_before.checked_add(unzigzag(varint)),
                Some(col) => i64::try_from(varint).ok().and_then(|gap| gap.checked_add(col + 1)),
            };
            match col {
                Some(col) if (0..cols as i64).contains(&col) => {
                    if previous.is_none() {
                        first_before = col;
                    }
                    previous = Some(col);
                    // The column is below `cols`, so it fits an i32.
                    try_push(&mut indices, col as i32)?;
                }
                _ => {
                    let found = col.map_or("an overflow".into(), |col| col.to_string());
                    let expected = format_args!("0 <= column < {cols}");
                    return wrong(format_args!("a column of row {row}"), found, expected);
                }
            }
        }
    }
    Ok(indices)
}

#[cfg(test)]
mod tests;
