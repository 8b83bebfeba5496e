//! Serialization of decisions. All numbers are little endian; nothing is aligned.
//!
//! ```text
//! bytes   what
//! 8       "TARSIAPD"
//! u32     version of the format: FORMAT
//! u64     bytes in all, the checksum included
//! 3 × u32 version of the library: major, minor, patch
//! i32     backend (tarsiaBackend_t)
//! text    model of the processor or device
//! i32     operation (tarsiaOpKind_t)
//! u32     number of arguments; then as many × i64: the arguments of the plan's creation, in the order of
//!         the operation's list in `arguments`, and then the settings that are stored as arguments
//! u32     number of sparse matrices; then as many × 2 × u64: fingerprints of their patterns
//! 3 × i32 settings: effort, reorder, columns of a block (0: not set)
//! u8      settings: value updates
//! i32     algorithm, in the enum of the operation
//! 2 × u8  where A and B are read: 0 in place, 1 a canonical copy
//! u8      1: SpGEMM computes columns of C
//! i32     row order in use (tarsiaReorder_t)
//! i32     columns of a block (0: none)
//! u8      1: algorithms of a vendor are timed
//! 2 × f64 bytes and seconds of one execute, predicted or measured
//! text    reason of the choice
//! u32     rows of the computed order of op(A)'s rows (0: none is stored); then as many × u32: the row
//!         at each position, with 2³¹ added where a window of `smat` begins
//! u64     checksum: FNV-1a (Fowler, Noll, Vo) of all preceding bytes
//! ```
//!
//! A text is a u32, at most MOST_TEXT, and as many bytes of UTF-8.

use std::sync::Arc;

use super::{Decisions, Fixed, Origin, Problem};
use crate::algorithm::Algorithm;
use crate::checksum::fnv1a;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::{self, Fingerprint};
use crate::reorder::KeptOrder;
use crate::select::{Choice, Decided, Method, Source};
use crate::types::{BackendKind, Effort, OpKind, Reorder};

const MAGIC: &[u8; 8] = b"TARSIAPD";
/// Version of the format, which must be increased when anything above changes.
pub const FORMAT: u32 = 2;
const MOST_TEXT: usize = 4096;
/// Maximum number of arguments, and of matrices, of one operation; actual counts are lower.
const MOST_ARGUMENTS: u32 = 64;
/// Upper bound of the bytes of decisions without a row order: two texts, the most arguments and fingerprints,
/// and some numbers. The header promises at most 64 KiB.
const MOST_BESIDE_ORDER: usize = 2 * MOST_TEXT + MOST_ARGUMENTS as usize * (8 + 16) + 512;
/// Bytes of the beginning, up to the end of the total.
const HEAD: usize = 20;
const TOTAL: usize = 8;
const CHECKSUM: usize = 8;

/// Returns an upper bound of the bytes of decisions for a problem whose op(A) has this many rows.
pub fn most_bytes(rows: usize) -> usize {
    MOST_BESIDE_ORDER.saturating_add(rows.saturating_mul(size_of::<u32>()))
}

/// Writes the total and the checksum into bytes that a program has changed, for tests and fuzzing.
pub fn seal(bytes: &mut [u8]) {
    let total = bytes.len();
    if total < HEAD + CHECKSUM {
        return;
    }
    bytes[HEAD - TOTAL..HEAD].copy_from_slice(&(total as u64).to_le_bytes());
    let (body, end) = bytes.split_at_mut(total - CHECKSUM);
    end.copy_from_slice(&fnv1a(body).to_le_bytes());
}

struct Writer(Vec<u8>);

impl Writer {
    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        let end = (0..=text.len().min(MOST_TEXT)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.u32(end as u32);
        self.0.extend(&text.as_bytes()[..end]);
    }
}

impl Problem {
    /// Serializes the problem, with which decisions begin.
    fn to_writer(&self) -> Writer {
        let Problem { origin, op, arguments, fingerprints, fixed } = self;
        let mut out = Writer(MAGIC.to_vec());
        out.u32(FORMAT);
        out.u64(0);
        origin.version.iter().for_each(|&part| out.u32(part));
        out.i32(origin.backend.code());
        out.text(&origin.model);
        out.i32(op.code());
        out.u32(arguments.len() as u32);
        arguments.iter().for_each(|&argument| out.u64(argument as u64));
        out.u32(fingerprints.len() as u32);
        fingerprints.iter().flatten().for_each(|&sum| out.u64(sum));
        out.i32(fixed.effort.code());
        out.i32(fixed.reorder.code());
        out.i32(fixed.block_width.unwrap_or(0) as i32);
        out.byte(u8::from(fixed.value_updates));
        out
    }

    /// Returns a hash of the problem and of the numbers in `more`.
    pub(crate) fn key(&self, more: &[i64]) -> Fingerprint {
        let mut sums = [0; 2];
        for (at, &number) in more.iter().enumerate() {
            fingerprint::add(&mut sums, 1, at as u64, number as u64);
        }
        for (at, word) in self.to_writer().0.chunks(size_of::<u64>()).enumerate() {
            let mut bytes = [0; size_of::<u64>()];
            bytes[..word.len()].copy_from_slice(word);
            fingerprint::add(&mut sums, 0, at as u64, u64::from_le_bytes(bytes));
        }
        sums
    }
}

impl Decisions {
    /// Serializes the decisions. The only error is exhausted memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let choice = &self.choice;
        let order = choice.method.kept_order().map_or(&[][..], |order| order.numbers());
        let mut out = self.problem.to_writer();
        let most = most_bytes(order.len());
        out.0.try_reserve_exact(most).map_err(|_| Error::out_of_memory(most))?;
        out.i32(choice.algorithm().code());
        out.byte(u8::from(choice.a == Source::Canonical));
        out.byte(u8::from(choice.b == Source::Canonical));
        out.byte(u8::from(choice.method.is_transposed()));
        out.i32(choice.method.reorder().code());
        out.i32(choice.method.block_width().unwrap_or(0) as i32);
        out.byte(u8::from(choice.method.times_vendor()));
        out.u64(choice.bytes.to_bits());
        out.u64(choice.predicted_seconds.to_bits());
        out.text(&choice.reason);
        out.u32(order.len() as u32);
        order.iter().for_each(|&number| out.u32(number));
        let mut bytes = out.0;
        bytes.resize(bytes.len() + CHECKSUM, 0);
        seal(&mut bytes);
        Ok(bytes)
    }

    /// Parses decisions, validating everything; the errors name `buffer` and `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() < HEAD + CHECKSUM {
            return Err(Error::invalid(
                "bytes",
                format!(
                    "{}: decisions of a plan have at least {}; the rest is missing",
                    bytes.len(),
                    HEAD + CHECKSUM
                ),
            ));
        }
        if &bytes[..MAGIC.len()] != MAGIC {
            return Err(Error::invalid("buffer", "it does not begin as decisions of a plan do"));
        }
        let (body, end) = bytes.split_at(bytes.len() - CHECKSUM);
        let mut reader = Reader { bytes: &body[MAGIC.len()..] };
        let format = reader.u32()?;
        if format != FORMAT {
            return Err(Error::unsupported(format!(
                "buffer: its format has version {format}, this library reads version {FORMAT}"
            )));
        }
        let total = reader.u64()?;
        if total != bytes.len() as u64 {
            return Err(Error::invalid(
                "bytes",
                format!("{}: buffer says that it has {total} bytes", bytes.len()),
            ));
        }
        if end != fnv1a(body).to_le_bytes() {
            return Err(Error::invalid("buffer", "it is damaged: its checksum is another"));
        }
        let decisions = reader.decisions()?;
        match reader.bytes {
            [] => Ok(decisions),
            rest => Err(damaged(&format!("{} bytes are left over", rest.len()))),
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::invalid("buffer", format!("it is damaged: {what}"))
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.bytes.split_first_chunk::<N>().ok_or_else(|| damaged("it ends before all is said"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn code<T>(&mut self, what: &str, from: impl Fn(i32) -> Option<T>) -> Result<T> {
        let code = i32::from_le_bytes(self.take()?);
        from(code).ok_or_else(|| damaged(&format!("{what} is {code}")))
    }

    fn flag(&mut self, what: &str) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(damaged(&format!("{what} is {other}"))),
        }
    }

    fn source(&mut self, what: &str) -> Result<Source> {
        Ok(if self.flag(what)? { Source::Canonical } else { Source::InPlace })
    }

    fn width(&mut self) -> Result<Option<usize>> {
        self.code("the width of a block", |width| match width {
            0 => Some(None),
            8 | 16 => Some(Some(width as usize)),
            _ => None,
        })
    }

    fn count(&mut self, what: &str) -> Result<u32> {
        match self.u32()? {
            count if count <= MOST_ARGUMENTS => Ok(count),
            count => Err(damaged(&format!("it has {count} {what}"))),
        }
    }

    /// Reads a number that must be finite and not negative.
    fn amount(&mut self, what: &str) -> Result<f64> {
        let amount = f64::from_bits(self.u64()?);
        match amount.is_finite() && amount >= 0.0 {
            true => Ok(amount),
            false => Err(damaged(&format!("{what} are {amount}"))),
        }
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let length = self.u32()? as usize;
        if length > self.bytes.len().min(MOST_TEXT) {
            return Err(damaged(&format!("{what} has {length} bytes")));
        }
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        let text = std::str::from_utf8(text).map_err(|_| damaged(&format!("{what} is no text")))?;
        Ok(text.to_string())
    }

    /// Reads a row order, which must have each row exactly once.
    fn order(&mut self) -> Result<Option<Arc<KeptOrder>>> {
        let rows = self.u32()? as usize;
        if rows == 0 {
            return Ok(None);
        }
        let bytes = rows.checked_mul(size_of::<u32>()).filter(|&bytes| bytes <= self.bytes.len());
        let Some(bytes) = bytes else {
            return Err(damaged(&format!("the order of {rows} rows ends before its last row")));
        };
        let (order, rest) = self.bytes.split_at(bytes);
        self.bytes = rest;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(rows).map_err(|_| Error::out_of_memory(bytes))?;
        numbers.extend(
            order
                .chunks_exact(size_of::<u32>())
                .map(bytemuck::pod_read_unaligned::<[u8; 4]>)
                .map(u32::from_le_bytes),
        );
        let order = KeptOrder::checked(numbers)
            .map_err(|fault| damaged(&format!("the order of rows is no permutation: {fault}")))?;
        Ok(Some(Arc::new(order)))
    }

    fn decisions(&mut self) -> Result<Decisions> {
        let origin = Origin {
            version: [self.u32()?, self.u32()?, self.u32()?],
            backend: self.code("the backend", BackendKind::from_code)?,
            model: self.text("the device's model")?,
        };
        let op = self.code("the operation", OpKind::from_code)?;
        let count = self.count("arguments")?;
        let arguments = (0..count).map(|_| Ok(self.u64()? as i64)).collect::<Result<_>>()?;
        let count = self.count("fingerprints")?;
        let fingerprints = (0..count).map(|_| Ok([self.u64()?, self.u64()?])).collect::<Result<_>>()?;
        let fixed = Fixed {
            effort: self.code("effort", Effort::from_code)?,
            reorder: self.code("reorder", Reorder::from_code)?,
            block_width: self.width()?,
            value_updates: self.flag("valueUpdates")?,
        };
        let algorithm = |code| Algorithm::from_code(op, code);
        // The learned order is a request for one of the others, so it cannot be the order in use.
        let in_force = |code| Reorder::from_code(code).filter(|order| *order != Reorder::Learned);
        let algorithm = self.code("the algorithm", algorithm)?;
        let (a, b) = (self.source("the source of A")?, self.source("the source of B")?);
        let mut decided = Decided {
            transposed: self.flag("the order of the factors")?,
            reorder: self.code("reorder", in_force)?,
            block_width: self.width()?,
            times_vendor: self.flag("the timing of a vendor's algorithms")?,
            order: None,
        };
        let bytes = self.amount("the bytes of an execute")?;
        let predicted_seconds = self.amount("the seconds of an execute")?;
        let reason = self.text("the reason")?;
        decided.order = self.order()?;
        let method = Method::decided(algorithm, decided)
            .map_err(|fault| Error::invalid("buffer", format!("its decisions have {fault}")))?;
        let choice = Choice { method, a, b, keeps_columns: false, bytes, predicted_seconds, reason };
        Ok(Decisions { problem: Problem { origin, op, arguments, fingerprints, fixed }, choice })
    }
}

#[cfg(test)]
mod tests;
