//! An analyzed plan as bytes: its decisions, and what was built by them.
//!
//! ```text
//! bytes   what
//! 8       "TARSIAPL"
//! u32     version of the format: FORMAT
//! u32     bytes of the decisions
//! u64     bytes in all, the checksum included
//!         the decisions ([`bytes`](super::decisions::bytes)), with zeros to whole u64
//! u64     bits: 1 made for deterministic mode; A and B of SpGEMM have 2 the same index arrays,
//!         4 the same values
//! 2 × f64 seconds that analysis took, and that are expected of one execute
//! u64     number of sparse matrices; then as many × 2 × u64: fingerprints of their values
//! u64     bytes of the text; then why this choice, with zeros to whole u64
//!         the steps of building it ([`journal`](crate::backend::journal))
//! 2 × u64 checksum: the fingerprint of all bytes before as u64
//! ```
//!
//! All numbers are little endian; nothing is aligned.

use std::sync::Arc;
use std::time::Instant;

use super::decisions::Problem;
use super::{Decisions, Inner, Plan, Report, Settings, Task, Unfinished};
use crate::backend::host::of_bytes;
use crate::backend::{journal, Backend, Context};
use crate::context::Handle;
use crate::error::{Error, Result};
use crate::matrix::fingerprint::Fingerprint;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::select::Choice;
use crate::types::{Address, LogLevel};

const MAGIC: &[u8; 8] = b"TARSIAPL";
/// Counts up when anything above changes, or the steps of building do within a version.
pub const FORMAT: u32 = 1;
const WORD: usize = size_of::<u64>();
/// Up to the decisions.
const HEAD: usize = 3 * WORD;
const CHECKSUM: usize = 2 * WORD;

const DETERMINISTIC: u64 = 1;
const SAME_PATTERN: u64 = 2;
const SAME_VALUES: u64 = 4;

fn damaged(what: &str) -> Error {
    Error::invalid("buffer", format!("it is damaged: {what}"))
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM] {
    let mut out = [0; CHECKSUM];
    for (to, sum) in out.chunks_exact_mut(WORD).zip(of_bytes(body)) {
        to.copy_from_slice(&sum.to_le_bytes());
    }
    out
}

/// Writes the total and the checksum of what a program has changed: for tests.
pub fn seal(bytes: &mut [u8]) {
    let total = bytes.len();
    if total < HEAD + CHECKSUM {
        return;
    }
    bytes[HEAD - WORD..HEAD].copy_from_slice(&(total as u64).to_le_bytes());
    let (body, end) = bytes.split_at_mut(total - CHECKSUM);
    end.copy_from_slice(&checksum(body));
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(WORD), 0);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u64> {
        let split = self.0.split_first_chunk::<WORD>();
        let (number, rest) = split.ok_or_else(|| damaged("it ends before all is said"))?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn padded(&mut self, bytes: u64) -> Result<&'a [u8]> {
        let room = self.0.len();
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= room);
        let padded = bytes.map(|bytes| bytes.next_multiple_of(WORD)).filter(|&padded| padded <= room);
        let (Some(bytes), Some(padded)) = (bytes, padded) else {
            return Err(damaged("a part has more bytes than there are"));
        };
        let (part, rest) = self.0.split_at(padded);
        self.0 = rest;
        Ok(&part[..bytes])
    }
}

/// What the bytes say, but for the decisions.
struct Saved<'a> {
    bits: u64,
    analysis_seconds: f64,
    predicted_seconds: f64,
    /// Of the values of the sparse matrices.
    values: Vec<Fingerprint>,
    reason: &'a str,
    steps: &'a [u8],
}

/// Checks the frame; the decisions and what is behind them.
fn open(bytes: &[u8]) -> Result<(&[u8], Reader<'_>)> {
    if bytes.len() < HEAD + CHECKSUM {
        return Err(Error::invalid(
            "bytes",
            format!(
                "{}: a serialized plan has at least {}; the rest is missing",
                bytes.len(),
                HEAD + CHECKSUM
            ),
        ));
    }
    if &bytes[..MAGIC.len()] != MAGIC {
        return Err(Error::invalid("buffer", "it does not begin as a serialized plan does"));
    }
    let (body, end) = bytes.split_at(bytes.len() - CHECKSUM);
    let mut reader = Reader(&body[MAGIC.len()..]);
    let sizes = reader.number()?;
    let (format, decisions) = (sizes as u32, sizes >> 32);
    if format != FORMAT {
        return Err(Error::unsupported(format!(
            "buffer: its format has version {format}, this library reads version {FORMAT}"
        )));
    }
    let total = reader.number()?;
    if total != bytes.len() as u64 {
        return Err(Error::invalid(
            "bytes",
            format!("{}: buffer says that it has {total} bytes", bytes.len()),
        ));
    }
    if end != checksum(body) {
        return Err(damaged("its checksum is another"));
    }
    Ok((reader.padded(decisions)?, reader))
}

impl<'a> Saved<'a> {
    fn read(mut reader: Reader<'a>) -> Result<Self> {
        let bits = reader.number()?;
        let mut seconds = || {
            let seconds = f64::from_bits(reader.number()?);
            match seconds.is_finite() && seconds >= 0.0 {
                true => Ok(seconds),
                false => Err(damaged(&format!("something took {seconds} seconds"))),
            }
        };
        let (analysis_seconds, predicted_seconds) = (seconds()?, seconds()?);
        let matrices = reader.number()?;
        if matrices > 2 {
            return Err(damaged(&format!("it has {matrices} matrices")));
        }
        let values =
            (0..matrices).map(|_| Ok([reader.number()?, reader.number()?])).collect::<Result<_>>()?;
        let length = reader.number()?;
        let reason = std::str::from_utf8(reader.padded(length)?).map_err(|_| damaged("its text is none"))?;
        Ok(Saved { bits, analysis_seconds, predicted_seconds, values, reason, steps: reader.0 })
    }
}

impl Plan {
    /// The analyzed plan as bytes, after building it once more. Blocks.
    pub fn serialize(&self, handle: &Handle) -> Result<Vec<u8>> {
        self.check_handle(handle)?;
        let inner = self.read()?;
        inner.require_analyzed("tarsiaPlan_serialize")?;
        inner.serialize(&*self.backend, handle)
    }

    /// [`Self::serialize`], or what the last call made that had no room for it.
    pub(crate) fn serialized(&self, handle: &Handle) -> Result<Vec<u8>> {
        self.check_handle(handle)?;
        self.read()?.require_analyzed("tarsiaPlan_serialize")?;
        let kept = self.serialized.lock().take();
        kept.map_or_else(|| self.serialize(handle), Ok)
    }

    /// Keeps what [`Self::serialized`] has returned for the next call.
    pub(crate) fn keep_serialized(&self, bytes: Vec<u8>) {
        *self.serialized.lock() = Some(bytes);
    }

    /// Makes the plan what another was when it was serialized, with the present values. Blocks. On
    /// failure the plan is as before.
    pub fn deserialize(&self, handle: &Handle, bytes: &[u8]) -> Result<()> {
        self.check_handle(handle)?;
        self.backend.require_blocking(handle.stream(), "tarsiaPlan_deserialize")?;
        let inner = self.write()?;
        inner.require_alive()?;
        if inner.analyzed {
            return Err(Error::state("plan: it is analyzed already; a new plan takes another's bytes"));
        }
        let (decisions, rest) = open(bytes)?;
        let decisions = Decisions::from_bytes(decisions)?;
        let saved = Saved::read(rest)?;
        decisions.check_all(&*self.backend, &inner.task, &inner.settings)?;
        let fingerprints = inner.fingerprints(&*self.backend, handle, "tarsiaPlan_deserialize")?;
        decisions.check_patterns(&fingerprints)?;
        if saved.values.len() != inner.matrices_of_values().len() {
            return Err(damaged("it has not the values of each matrix"));
        }
        if handle.deterministic() && saved.bits & DETERMINISTIC == 0 {
            return Err(Error::unsupported(
                "buffer: the products of its plan differ in their last bits from run to run, which \
                 deterministic mode (tarsiaSetDeterministic) forbids",
            ));
        }
        if (saved.bits ^ shared_arrays(&inner.task)) & !DETERMINISTIC != 0 {
            return Err(Error::invalid(
                "buffer",
                "A and B are the same arrays in its plan and not in this one, or the reverse",
            ));
        }
        let start = Instant::now();
        let mut unfinished = Unfinished { plan: self, lock: Some(inner) };
        let report = match &mut unfinished.lock {
            Some(inner) => inner.restore(&*self.backend, handle, &decisions.choice, &saved)?,
            None => unreachable!("locked above"),
        };
        let seconds = start.elapsed().as_secs_f64();
        // The user's logger may call the library, with this plan too.
        unfinished.lock = None;
        handle.log(LogLevel::Info, || {
            format!("{} restored in {seconds:.3e} s: {}", self.kind().short(), report.reason)
        });
        std::mem::forget(unfinished);
        Ok(())
    }
}

fn index_arrays(a: &SparseMatrix) -> [Address; 2] {
    match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => [m.offsets, m.indices],
        SparseArrays::Coo(m) => [m.row_indices, m.col_indices],
        SparseArrays::Bsr(m) => [m.offsets, m.indices],
        SparseArrays::Tile(_) => [Address::NULL; 2],
    }
}

/// What is built may depend on whether A and B are the same arrays.
fn shared_arrays(task: &Task) -> u64 {
    let Task::Spgemm(_) = task else { return 0 };
    let matrices = task.matrices();
    let [(_, a), (_, b)] = &matrices[..] else { return 0 };
    let bit = |same: bool, bit: u64| if same { bit } else { 0 };
    bit(index_arrays(a) == index_arrays(b), SAME_PATTERN) | bit(a.values() == b.values(), SAME_VALUES)
}

fn values_of(
    matrices: &[(&'static str, SparseMatrix)],
    backend: &dyn Backend,
    cx: &Context,
) -> Result<Vec<Fingerprint>> {
    matrices.iter().map(|(name, a)| backend.fingerprint_values(cx, a, name)).collect()
}

impl Inner {
    /// The matrices whose values the plan has: none where it reads them in place.
    fn matrices_of_values(&self) -> Vec<(&'static str, SparseMatrix)> {
        if self.settings.values_in_place {
            Vec::new()
        } else {
            self.task.matrices()
        }
    }

    fn serialize(&self, backend: &dyn Backend, handle: &Handle) -> Result<Vec<u8>> {
        let choice = self.choice.as_ref().ok_or_else(|| Error::state("plan: not analyzed"))?;
        if choice.tuned && handle.deterministic() {
            return Err(Error::unsupported(
                "plan: it is built once more, with a vendor's algorithms timed, which deterministic mode \
                 (tarsiaSetDeterministic) forbids",
            ));
        }
        let fingerprints = self.fingerprints(backend, handle, "tarsiaPlan_serialize")?;
        let problem = Problem::new(backend, &self.task, &self.settings, fingerprints);
        let decisions = Decisions::new(problem, choice).to_bytes();
        let mut cx = handle.context();
        let values = values_of(&self.matrices_of_values(), backend, &cx)?;
        let deterministic = self.task.is_deterministic();
        // As the later process reads it.
        let choice = Choice { deterministic, ..Decisions::from_bytes(&decisions)?.choice };
        cx.allocator = cx.allocator.scoped(self.settings.memory_limit);
        let mut out = Writer(MAGIC.to_vec());
        out.number(u64::from(FORMAT) | (decisions.len() as u64) << 32);
        out.number(0);
        out.padded(&decisions);
        let made_for = if deterministic { DETERMINISTIC } else { 0 };
        out.number(shared_arrays(&self.task) | made_for);
        out.number(self.report.analysis_seconds.to_bits());
        out.number(self.report.predicted_seconds.to_bits());
        out.number(values.len() as u64);
        values.iter().flatten().for_each(|&sum| out.number(sum));
        out.number(self.report.reason.len() as u64);
        out.padded(self.report.reason.as_bytes());
        let ((), mut bytes) = journal::record(out.0, || match &self.task {
            Task::Spmv(task) => task.build_again(backend, &cx, &choice),
            Task::Spmm(task) => task.build_again(backend, &cx, &choice),
            Task::Spgemm(task) => task.build_again(backend, &cx, &choice),
        })?;
        bytes.try_reserve_exact(CHECKSUM).map_err(|_| Error::out_of_memory(CHECKSUM))?;
        bytes.resize(bytes.len() + CHECKSUM, 0);
        seal(&mut bytes);
        Ok(bytes)
    }

    fn restore(
        &mut self,
        backend: &dyn Backend,
        handle: &Handle,
        choice: &Choice,
        saved: &Saved<'_>,
    ) -> Result<Report> {
        let deterministic = saved.bits & DETERMINISTIC != 0;
        let settings = Settings { deterministic, ..self.settings };
        self.build(backend, handle, &settings, Some((choice, "of a serialized plan")), Some(saved.steps))?;
        let mut cx = handle.context();
        if let Some(allocator) = &self.allocator {
            cx.allocator = Arc::clone(allocator);
        }
        // The plan is that of the matrices as they are now.
        let present = values_of(&self.matrices_of_values(), backend, &cx)?;
        let changed: Vec<bool> = present.iter().zip(&saved.values).map(|(a, b)| a != b).collect();
        if changed.contains(&true) {
            let matrices = self.task.matrices();
            let values = |at: usize| match changed[at] {
                true => matrices[at].1.values(),
                false => Address::NULL,
            };
            match &mut self.task {
                Task::Spmv(task) => task.update_values(&cx, values(0))?,
                Task::Spmm(task) => task.update_values(&cx, values(0))?,
                Task::Spgemm(task) => task.update_values(&cx, (values(0), values(1)), ("A", "B"))?,
            }
        }
        let Saved { analysis_seconds, predicted_seconds, reason, .. } = *saved;
        self.report =
            Report { analysis_seconds, predicted_seconds, reason: reason.into(), ..self.report.clone() };
        self.remember(backend, handle)?;
        self.analyzed = true;
        Ok(self.described())
    }
}
