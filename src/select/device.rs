//! What the cost model takes of a GPU: the rates that were fitted on an H100, scaled by what the driver
//! says of the device. Nothing is measured at run time, so that the same device always has the same
//! rates, choices and bits.
//!
//! | rates | scale with |
//! |---|---|
//! | bytes from and to memory | width and clock of the memory |
//! | bytes and sectors from L2 and L1, instructions | multiprocessors · clock |
//! | lanes at one time | multiprocessors |
//! | bytes of x in L1 | shared memory of a multiprocessor, which is a part of it |
//! | multiply-adds of doubles | besides, what a multiprocessor does fewer of in a cycle |
//! | multiply-adds of halves and TF32 by matrix units, of singles | besides, what a multiprocessor does in a cycle |
//! | launches, a warp's own steps, waits between blocks, orders of rows by the host | nothing: latencies differ little |
//!
//! Constants that are no rates of a [`Machine`], and how they follow ([`Ratios`]):
//!
//! | constants | scale with |
//! |---|---|
//! | analyses ([`analysis`](super::analysis)), clusters of rows: an entry, a row | memory; the start is latency |
//! | `hash` and `tile` ([`spgemm`](super::spgemm)): a product, an entry, a pair of tiles | multiprocessors · clock, and doubles |
//! | a tile that is converted, a tile of C | memory |
//! | an empty product, the longest row | nothing |
//! | products of a pair of tiles from which on `tile` is better | the time of a pair over that of a product |
//! | dense panels ([`spgemm::dense`](super::spgemm::dense)): multiply-adds | matrix units, singles, doubles |
//! | their bytes; their launches and the columns of a small one | memory; nothing |
//! | blocks of `smat` ([`spmm::smat`](super::spmm::smat)) | memory for their bytes, multiprocessors · clock for the rest, doubles |
//!
//! And what is an H100's on every device, with the reason:
//!
//! | constants | why |
//! |---|---|
//! | `spgemm::wide` AT_ONCE, `spgemm::looks` ALONE_SHARE | how rows are cut decides on bits, which are the same on all devices |
//! | `spgemm` LEAST_PRODUCTS | says which of two choices is made, not how |
//! | `spmv::survey` SAMPLES | a size of a sample: what it counts is the same on all devices |
//! | `spmm::dense` Limits, copies that pay | the library's kernels against cublasLt's on one device, of which none but H100s were timed |
//! | `spmm::dense` PRODUCTS, 64 MiB beside 50 of L2 | part of the workspace's size |
//! | `spmv::hot_sell` DEMANDS | what L2 and shared memory gain on each other, which no attribute says |
//! | `spmm::window` blocks at one time, `spmm::row` warps and blocks of lists, `spmv::sell` lanes, `spmv::csr` and `spgemm::small` blocks of a multiprocessor, those of loops ([`grids`](super::grids)) | forms of launches; their number follows the multiprocessors |
//! | `spmm::dense` LT_WORKSPACE | what cublasLt's heuristic is told; it knows the device |
//! | `learned` | is left out for devices of another kind |
//! | `orders` | which order is asked for by name; learned of ratios of times, on H100s alone (docs/limits.md) |
//!
//! Bytes of L2 are read where the form of a kernel depends on them; no rate does.
//!
//! On an H100 SXM every ratio is 1, and the rates are the fitted ones to the bit. An H200 is an H100 with
//! other memory: its machine code is the same, and all that changes is the first row of the table. For
//! other devices the rules are what their data sheets say, not fits. `select::device::fit` compares them with
//! tables of two devices: on the H200 algorithms are 1.03 to 1.08 times as fast as on the H100, within 4 % of
//! what is predicted (docs/algorithms/choice.md, "Choices on an H200").

use super::roofline::Machine;
use crate::types::ComputeType;

/// What the driver says of a device; 0 where it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Compute capability, 90 for 9.0.
    pub capability: i32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Their most cycles in a millisecond.
    pub clock_khz: u32,
    /// Cycles of the memory in a millisecond; it moves twice its width in each.
    pub memory_khz: u32,
    /// Width of the memory.
    pub memory_bits: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes: u32,
    /// How many times as many single as double precision operations it does.
    pub singles_per_double: u32,
}

/// An H100 SXM of 80 GB, on which rates were measured.
pub const FITTED: Attributes = Attributes {
    capability: 90,
    multiprocessors: 132,
    clock_khz: 1_980_000,
    memory_khz: 2_619_000,
    memory_bits: 5120,
    shared_bytes: 233_472,
    singles_per_double: 2,
};
/// Multiply-adds of doubles that a multiprocessor of an H100 does in a cycle, without matrix units and
/// with them.
const DOUBLES: [f64; 2] = [64.0, 128.0];
/// Ratios of clocks this near to 1 are 1: boards of one model differ by as much.
const SAME: f64 = 0.05;

/// A device against the H100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Bytes a second of memory.
    pub memory: f64,
    /// Cycles a second of all multiprocessors.
    pub cycles: f64,
    /// Multiprocessors.
    pub multiprocessors: f64,
    /// Bytes of L1.
    pub near: f64,
    /// Seconds that a multiply-add of doubles takes more than on an H100 of as many cycles: by plain
    /// instructions, and by matrix units.
    pub doubles: [f64; 2],
    /// Multiply-adds of singles a second, by plain instructions.
    pub singles: f64,
    /// Multiply-adds of halves and TF32 a second, by matrix units.
    pub matrix_units: f64,
}

impl Ratios {
    /// Of the machine that the constants were fitted on.
    pub const SAME: Ratios = Ratios {
        memory: 1.0,
        cycles: 1.0,
        multiprocessors: 1.0,
        near: 1.0,
        doubles: [0.0; 2],
        singles: 1.0,
        matrix_units: 1.0,
    };

    /// Of a device. What the driver does not know counts as the H100's.
    pub fn of(device: &Attributes) -> Self {
        let ratio = |of: fn(&Attributes) -> u64| match of(device) {
            0 => 1.0,
            own => own as f64 / of(&FITTED) as f64,
        };
        let of_clock = |ratio: f64| if (ratio - 1.0).abs() < SAME { 1.0 } else { ratio };
        let multiprocessors = ratio(|d| d.multiprocessors.into());
        let cycles = multiprocessors * of_clock(ratio(|d| d.clock_khz.into()));
        let singles = cycles * singles(device) / singles(&FITTED);
        Ratios {
            memory: of_clock(ratio(|d| u64::from(d.memory_khz) * u64::from(d.memory_bits))),
            cycles,
            multiprocessors,
            near: ratio(|d| d.shared_bytes.into()),
            doubles: doubles(device).map_or([0.0; 2], |own| {
                let fitted = f64::from(FITTED.multiprocessors) * f64::from(FITTED.clock_khz) * 1e3;
                [0, 1].map(|at| (1.0 / own[at] - 1.0 / DOUBLES[at]).max(0.0) / (fitted * cycles))
            }),
            singles,
            matrix_units: cycles * matrix_units(device) / matrix_units(&FITTED),
        }
    }

    /// For products in this arithmetic: multiply-adds of doubles count where there are any.
    pub fn of_compute(&self, compute: ComputeType) -> Self {
        let count = match compute {
            ComputeType::R64F => 1.0,
            ComputeType::C64F => 4.0,
            _ => 0.0,
        };
        Ratios { doubles: self.doubles.map(|seconds| count * seconds), ..*self }
    }

    /// What `seconds` of an H100 take, of which `moving` are bytes from and to memory, and the others instructions and
    /// what caches deliver. On an H100 to the bit.
    pub fn seconds(&self, seconds: f64, moving: f64) -> f64 {
        seconds / self.cycles + moving * (1.0 / self.memory - 1.0 / self.cycles)
    }
}

/// Multiply-adds of singles that a multiprocessor does in a cycle: an A100's has half as many units as all that came
/// after.
fn singles(device: &Attributes) -> f64 {
    if device.capability == 80 {
        64.0
    } else {
        128.0
    }
}

/// Multiply-adds of halves that the matrix units of a multiprocessor do in a cycle, summed in singles, by the
/// instructions that all devices have; TF32 half of it. Of newer and unknown ones as an H100's. Boards for players
/// sum half as fast as this, which no attribute says.
fn matrix_units(device: &Attributes) -> f64 {
    match device.capability {
        80 | 87 => 1024.0,
        86 | 89 | 120 | 121 => 512.0,
        _ => 2048.0,
    }
}

/// Multiply-adds of doubles that a multiprocessor does in a cycle, as [`DOUBLES`].
fn doubles(device: &Attributes) -> Option<[f64; 2]> {
    if device.singles_per_double == 0 {
        return None;
    }
    let plain = singles(device) / f64::from(device.singles_per_double);
    // Matrix units of doubles that are faster than plain instructions are those of A100 and H100.
    let by_matrix_units = if matches!(device.capability, 80 | 90) { 2.0 * plain } else { plain };
    Some([plain, by_matrix_units])
}

impl Machine {
    /// Of a device.
    pub fn of_device(device: &Attributes) -> Machine {
        let mut machine = Machine::H100.scaled(&Ratios::of(device));
        // How far predictions are off was learned from times of an H100, and is kept for devices of its
        // kind; elsewhere the predictions stand alone.
        if device.capability != FITTED.capability {
            machine.learned = None;
        }
        machine
    }
}

#[cfg(test)]
pub(super) mod fit;
#[cfg(test)]
pub(super) mod tests;
