//! File format of the networks; train/weights.py writes the file, and the library embeds it. Little endian:
//!
//! ```text
//! 8 bytes  TARSIARO
//! u32      format (FORMAT)
//! u32      version of the list of features (FeatureSet::VERSION)
//! u32      features (as many as FeatureSet::NAMES has), f
//! u32      forms of products; then of each
//!   16 bytes   its name, one of FORMS padded with zeros
//!   f × f32    shifts, subtracted from the logarithms of the features
//!   f × f32    scales, by which the differences are divided
//!   u32        layers; then of each
//!     u32        outputs, o
//!     i × o × f32  weights, for its i inputs: the features, or the outputs of the layer before
//!     o × f32    biases
//!   o × u32    order of rows of each output of the last layer (tarsiaReorder_t)
//! u64      checksum: FNV-1a of all bytes before
//! ```

use std::sync::LazyLock;

use super::{Layer, Network, Orders};
use crate::algorithm::Algorithm;
use crate::reorder::features::{FeatureSet, NUMBERS};
use crate::select::learned::file::{Reader, Result};
use crate::types::Reorder;

const MAGIC: &[u8; 8] = b"TARSIARO";
/// Format version, incremented when anything above changes.
const FORMAT: u32 = 1;
const NAME: usize = 16;
/// Forms of products that take row orders, by their names in the file.
const FORMS: [(Algorithm, &str); 3] =
    [(Algorithm::Csr, "spmv-csr"), (Algorithm::Row, "spmm-row"), (Algorithm::SpmmCsr, "spmm-csr")];
/// Maximum number of layers of a network and of outputs of a layer: far more than the paper's network has.
const MOST_LAYERS: u32 = 4;
const MOST_OUTPUTS: u32 = 256;

/// Networks learned from times on an H100.
pub fn h100() -> &'static Orders {
    static H100: LazyLock<Orders> =
        LazyLock::new(|| parse(include_bytes!("orders-h100.bin")).expect("a unit test reads this file"));
    &H100
}

fn form(name: [u8; NAME]) -> Result<Algorithm> {
    let is_it =
        |text: &str| name.starts_with(text.as_bytes()) && name[text.len()..].iter().all(|&byte| byte == 0);
    let found = FORMS.into_iter().find(|(_, text)| is_it(text));
    found.map(|(algorithm, _)| algorithm).ok_or("no form of product has this name")
}

/// Reads `count` numbers, which must be finite.
fn numbers(from: &mut Reader<'_>, count: usize) -> Result<Vec<f32>> {
    let numbers = from.numbers(count, f32::from_le_bytes)?;
    match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(numbers),
        false => Err("a number is none"),
    }
}

fn layer(from: &mut Reader<'_>, inputs: usize) -> Result<Layer> {
    let outputs = from.u32()?;
    if !(1..=MOST_OUTPUTS).contains(&outputs) {
        return Err("a layer has no number of outputs that is possible");
    }
    let weights = numbers(from, inputs * outputs as usize)?;
    Ok(Layer { weights, biases: numbers(from, outputs as usize)? })
}

fn policy(from: &mut Reader<'_>) -> Result<Reorder> {
    let found = i32::try_from(from.u32()?).ok().and_then(Reorder::from_code);
    let is_order = |policy: &Reorder| policy.is_named() && *policy != Reorder::Learned;
    found.filter(is_order).ok_or("an output is for no order of rows")
}

fn network(from: &mut Reader<'_>) -> Result<Network> {
    let (shifts, scales) = (numbers(from, NUMBERS)?, numbers(from, NUMBERS)?);
    if scales.iter().any(|&scale| scale <= 0.0) {
        return Err("a feature is divided by nothing");
    }
    let count = from.u32()?;
    if !(1..=MOST_LAYERS).contains(&count) {
        return Err("it has no number of layers that is possible");
    }
    let (mut layers, mut width) = (Vec::new(), NUMBERS);
    for _ in 0..count {
        let layer = layer(from, width)?;
        width = layer.biases.len();
        layers.push(layer);
    }
    let policies = (0..width).map(|_| policy(from)).collect::<Result<Vec<_>>>()?;
    if (1..width).any(|at| policies[..at].contains(&policies[at])) {
        return Err("an order of rows has two outputs");
    }
    Ok(Network { shifts, scales, layers, policies })
}

/// Parses a file and checks all of it.
pub(super) fn parse(file: &[u8]) -> Result<Orders> {
    let mut from = Reader::open(file, MAGIC)?;
    if from.u32()? != FORMAT {
        return Err("it has another format");
    }
    if from.u32()? != FeatureSet::VERSION || from.u32()? as usize != NUMBERS {
        return Err("it is for other features");
    }
    let mut networks: Vec<(Algorithm, Network)> = Vec::new();
    for _ in 0..from.u32()? {
        let algorithm = form(from.array()?)?;
        if networks.iter().any(|(other, _)| *other == algorithm) {
            return Err("a form of product is named twice");
        }
        networks.push((algorithm, network(&mut from)?));
    }
    from.end()?;
    Ok(Orders { networks })
}

#[cfg(test)]
mod tests;
