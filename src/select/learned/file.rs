//! File format of the trees; train/weights.py writes the file, and the library embeds it. Little endian:
//!
//! ```text
//! 8 bytes  TARSIALT
//! u32      format (FORMAT)
//! u32      version of the list of numbers (SpmmStatistics::VERSION)
//! u32      numbers of a product (as many as SpmmStatistics::NAMES has)
//! u32      comparisons from the root of a tree to a leaf, d
//! 2 × f64  bounds of correction factors
//! u32      algorithms whose predicted times, over one's own, are inputs of trees; then the name of each
//! u32      algorithms that have trees; then of each
//!   name
//!   i32                start value to which the leaves of all its trees are added
//!   u32                trees, t
//!   t (2^d − 1) × u8   indices of the compared numbers (Learned::inputs), tree by tree
//!   t (2^d − 1) × f32  limits of the comparisons
//!   t 2^d × i16        leaves
//! u64      checksum: FNV-1a of all bytes before
//! ```
//!
//! A name is one of ALGORITHMS in 16 bytes, padded with zeros.

use std::sync::LazyLock;

use super::{Forest, Learned, SpmmStatistics, NUMBERS};
use crate::algorithm::Algorithm;
use crate::checksum::fnv1a;

const MAGIC: &[u8; 8] = b"TARSIALT";
/// Format version, incremented when anything above changes.
const FORMAT: u32 = 2;
const NAME: usize = 16;
const CHECKSUM: usize = 8;
/// SpMM algorithms that the cost model chooses from, by their names in tables of measurements.
const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Row, Algorithm::SpmmSell, Algorithm::Window, Algorithm::Smat, Algorithm::Dense];
/// Largest depth of a tree: some thousand measurements of products cannot support deeper ones.
const DEEPEST: u32 = 8;
/// Range that bounds must lie in: a wider range of factors made choices worse (docs/algorithms/choice.md, "Choices
/// that were learned").
const WIDEST: (f64, f64) = (0.3, 3.0);

/// Trees for devices of compute capability 9.0, learned from products measured on H100s and an H200.
pub fn hopper() -> &'static Learned {
    static HOPPER: LazyLock<Learned> =
        LazyLock::new(|| parse(include_bytes!("spmm-hopper.bin")).expect("a unit test reads this file"));
    &HOPPER
}

/// Result whose error is a text that says what is wrong with the file.
pub(in crate::select) type Result<T> = std::result::Result<T, &'static str>;

/// Reader of a file from its beginning; holds the bytes that are still to be read.
pub(in crate::select) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Checks the magic bytes and the checksum of a file, and returns a reader of what lies between them.
    pub(in crate::select) fn open(file: &'a [u8], magic: &[u8; 8]) -> Result<Self> {
        let body = file.len().checked_sub(CHECKSUM).ok_or("it ends too early")?;
        let (rest, sum) = file.split_at(body);
        let mut from = Reader { rest };
        if from.array()? != *magic {
            return Err("it does not begin as such files do");
        }
        if fnv1a(rest).to_le_bytes() != sum {
            return Err("its checksum is wrong");
        }
        Ok(from)
    }

    /// Checks that everything has been read.
    pub(in crate::select) fn end(&self) -> Result<()> {
        match self.rest {
            [] => Ok(()),
            _ => Err("it goes on behind its end"),
        }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (read, rest) = self.rest.split_at_checked(count).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(read)
    }

    pub(in crate::select) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.bytes(N)?.try_into().expect("as many as were asked for"))
    }

    pub(in crate::select) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// Reads `count` numbers of N bytes each.
    pub(in crate::select) fn numbers<const N: usize, T>(
        &mut self,
        count: usize,
        of: fn([u8; N]) -> T,
    ) -> Result<Vec<T>> {
        let bytes = self.bytes(count.checked_mul(N).ok_or("it ends too early")?)?;
        Ok(bytes.chunks_exact(N).map(|bytes| of(bytes.try_into().expect("N bytes"))).collect())
    }

    fn algorithm(&mut self) -> Result<Algorithm> {
        let padded = |name: &str| {
            let mut out = [0; NAME];
            out[..name.len()].copy_from_slice(name.as_bytes());
            out
        };
        let name = self.array()?;
        let found = ALGORITHMS.into_iter().find(|algorithm| padded(algorithm.name()) == name);
        found.ok_or("no algorithm has this name")
    }

    /// Reads a list of algorithms, each named once, with the data that follow each name.
    fn algorithms<T>(&mut self, mut of: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<(Algorithm, T)>> {
        let mut out: Vec<(Algorithm, T)> = Vec::new();
        for _ in 0..self.u32()? {
            let algorithm = self.algorithm()?;
            if out.iter().any(|(other, _)| *other == algorithm) {
                return Err("an algorithm is named twice");
            }
            out.push((algorithm, of(self)?));
        }
        Ok(out)
    }

    fn forest(&mut self, depth: u32) -> Result<Forest> {
        let base = i32::from_le_bytes(self.array()?);
        let trees = self.u32()? as usize;
        let splits = trees * ((1 << depth) - 1);
        Ok(Forest {
            base,
            inputs: self.bytes(splits)?.to_vec(),
            limits: self.numbers(splits, f32::from_le_bytes)?,
            leaves: self.numbers(trees << depth, i16::from_le_bytes)?,
        })
    }
}

/// Parses a file and checks all of it.
pub(super) fn parse(file: &[u8]) -> Result<Learned> {
    let mut from = Reader::open(file, MAGIC)?;
    if from.u32()? != FORMAT {
        return Err("it has another format");
    }
    if from.u32()? != SpmmStatistics::VERSION || from.u32()? as usize != NUMBERS {
        return Err("it is for other numbers");
    }
    let depth = from.u32()?;
    if !(1..=DEEPEST).contains(&depth) {
        return Err("its trees are of no depth that is possible");
    }
    let bounds = (from.f64()?, from.f64()?);
    if !((WIDEST.0..1.0).contains(&bounds.0) && bounds.1 > 1.0 && bounds.1 <= WIDEST.1) {
        return Err("its bounds are none");
    }
    let relative = from.algorithms(|_| Ok(()))?.into_iter().map(|(algorithm, ())| algorithm).collect();
    let forests = from.algorithms(|from| from.forest(depth))?;
    from.end()?;
    let out = Learned { bounds, depth, relative, forests };
    let count = out.inputs();
    for (_, forest) in &out.forests {
        if forest.inputs.iter().any(|&input| usize::from(input) >= count) {
            return Err("a tree compares a number that there is not");
        }
        if forest.limits.iter().any(|limit| limit.is_nan()) {
            return Err("a tree compares with what is no number");
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
