//! Rates of the cost model for a GPU: those fitted on an H100, scaled by the attributes that the driver
//! reports of the device. Nothing is measured at run time, so that the same device always has the same rates,
//! choices and bits.
//!
//! | rates | scale with |
//! |---|---|
//! | bytes from and to memory | width and clock of the memory |
//! | bytes and sectors from L2 and L1, instructions | multiprocessors · clock |
//! | lanes at one time | multiprocessors |
//! | bytes of x in L1 | shared memory of a multiprocessor, which L1 is a part of |
//! | multiply-adds of doubles | multiprocessors · clock, slower if a multiprocessor does fewer of them per cycle |
//! | multiply-adds of halves and TF32 by matrix units, of singles | multiprocessors · clock · multiply-adds per cycle |
//! | launches, a warp's own steps, waits between blocks, row orders computed by the host | nothing: latencies differ little |
//!
//! Constants that are not part of a [`Machine`]'s rates, and the [`Ratios`] that scale them:
//!
//! | constants | scale with |
//! |---|---|
//! | analyses ([`analysis`](super::analysis)), clusters of rows: an entry, a row | memory; the start is latency |
//! | `hash` and `tile` ([`spgemm`](super::spgemm)): a product, an entry, a pair of tiles | multiprocessors · clock, and doubles |
//! | converting a tile, a tile of C | memory |
//! | a product without work, the longest row | nothing |
//! | products per pair of tiles from which on `tile` is faster | time of a pair over time of a product |
//! | dense panels ([`spgemm::dense`](super::spgemm::dense)): multiply-adds | matrix units, singles, doubles |
//! | dense panels: bytes; launches and the columns of a small panel | memory; nothing |
//! | blocks of `smat` ([`spmm::smat`](super::spmm::smat)) | memory for their bytes, multiprocessors · clock for the rest, doubles |
//!
//! Constants that are the same on every device, with the reason:
//!
//! | constants | why |
//! |---|---|
//! | `spgemm::wide` AT_ONCE, `spgemm::row_structures` ALONE_SHARE | how rows are split decides the bits of results, which are the same on all devices |
//! | `spgemm` LEAST_PRODUCTS | selects one of two ways to choose; it is no rate |
//! | `spmv::statistics` SAMPLES | sample size: the statistics are the same on all devices |
//! | `spmm::dense` Limits, copies that pay | compare the library's kernels with cublasLt's on one device; only H100s were timed |
//! | `spmm::dense` PRODUCTS, 64 MiB (L2 has 50) | part of the workspace's size |
//! | `spmv::hot_sell` DEMANDS | gain of shared memory over L2, which no attribute reports |
//! | `spmm::window` blocks at one time, `spmm::row` warps and blocks of lists, `spmv::sell` lanes, `spmv::csr` and `spgemm::small` blocks of a multiprocessor, those of loops ([`grids`](super::grids)) | shapes of launches; their number follows the multiprocessors |
//! | `spmm::dense` LT_WORKSPACE | input of cublasLt's heuristic, which knows the device |
//! | `learned` | left out for devices of another kind |
//! | `orders` | orders are asked for by name; ratios of times were learned on H100s only (docs/limits.md) |
//!
//! The size of L2 is read where the form of a kernel depends on it; no rate depends on it.
//!
//! On an H100 SXM every ratio is 1, and the rates equal the fitted ones to the bit. An H200 is an H100 with
//! other memory: its machine code is the same, and only the first row of the first table changes. For other
//! devices the rules are taken from data sheets, not fitted. `select::device::fit` compares them with
//! measured tables of two devices: on the H200 algorithms are 1.03 to 1.08 times as fast as on the H100,
//! within 4 % of the prediction (docs/algorithms/choice.md, "Choices on an H200").

use super::roofline::Machine;
use crate::types::ComputeType;

/// Attributes of a device that the driver reports; 0 where it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Compute capability, 90 for 9.0.
    pub capability: i32,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Highest clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Clock of the memory in kHz; memory moves twice its width per cycle.
    pub memory_khz: u32,
    /// Width of the memory interface in bits.
    pub memory_bits: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes: u32,
    /// Ratio of single to double precision throughput.
    pub singles_per_double: u32,
}

/// Attributes of an H100 SXM with 80 GB, on which the rates were measured.
pub const FITTED: Attributes = Attributes {
    capability: 90,
    multiprocessors: 132,
    clock_khz: 1_980_000,
    memory_khz: 2_619_000,
    memory_bits: 5120,
    shared_bytes: 233_472,
    singles_per_double: 2,
};
/// Multiply-adds of doubles per cycle and multiprocessor of an H100, without matrix units and with them.
const DOUBLES: [f64; 2] = [64.0, 128.0];
/// Largest deviation from 1 at which a ratio of clocks counts as 1: boards of one model differ by as much.
const SAME: f64 = 0.05;

/// Ratios of a device's capabilities to those of the H100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Ratio of the bytes a second of memory.
    pub memory: f64,
    /// Ratio of the cycles a second of all multiprocessors together.
    pub cycles: f64,
    /// Ratio of the numbers of multiprocessors.
    pub multiprocessors: f64,
    /// Ratio of the bytes of L1.
    pub near: f64,
    /// Additional seconds per multiply-add of doubles, compared with an H100 of as many cycles: by plain
    /// instructions, and by matrix units.
    pub doubles: [f64; 2],
    /// Ratio of the multiply-adds of singles a second, by plain instructions.
    pub singles: f64,
    /// Ratio of the multiply-adds of halves and TF32 a second, by matrix units.
    pub matrix_units: f64,
}

impl Ratios {
    /// Ratios of the machine that the constants were fitted on.
    pub const SAME: Ratios = Ratios {
        memory: 1.0,
        cycles: 1.0,
        multiprocessors: 1.0,
        near: 1.0,
        doubles: [0.0; 2],
        singles: 1.0,
        matrix_units: 1.0,
    };

    /// Ratios of a device. An attribute that the driver does not know counts as the H100's.
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

    /// Ratios for products in this arithmetic: the time of multiply-adds of doubles counts in double
    /// precision only.
    pub fn of_compute(&self, compute: ComputeType) -> Self {
        let count = match compute {
            ComputeType::R64F => 1.0,
            ComputeType::C64F => 4.0,
            _ => 0.0,
        };
        Ratios { doubles: self.doubles.map(|seconds| count * seconds), ..*self }
    }

    /// Seconds on the device of work that takes `seconds` on an H100, `moving` of which are bytes from and to
    /// memory and the rest instructions and bytes from caches. On an H100 it returns `seconds` to the bit.
    pub fn seconds(&self, seconds: f64, moving: f64) -> f64 {
        seconds / self.cycles + moving * (1.0 / self.memory - 1.0 / self.cycles)
    }
}

/// Multiply-adds of singles per cycle and multiprocessor: an A100 has half as many units as all later
/// devices.
fn singles(device: &Attributes) -> f64 {
    if device.capability == 80 {
        64.0
    } else {
        128.0
    }
}

/// Multiply-adds of halves, accumulated in singles, per cycle by the matrix units of a multiprocessor, with
/// the instructions that all devices have; TF32 does half as many. Newer and unknown devices count as an
/// H100. Consumer boards accumulate at half of this rate, which no attribute reports.
fn matrix_units(device: &Attributes) -> f64 {
    match device.capability {
        80 | 87 => 1024.0,
        86 | 89 | 120 | 121 => 512.0,
        _ => 2048.0,
    }
}

/// Multiply-adds of doubles per cycle and multiprocessor, in the order of [`DOUBLES`].
fn doubles(device: &Attributes) -> Option<[f64; 2]> {
    if device.singles_per_double == 0 {
        return None;
    }
    let plain = singles(device) / f64::from(device.singles_per_double);
    // Only A100 and H100 have matrix units that are faster on doubles than plain instructions.
    let by_matrix_units = if matches!(device.capability, 80 | 90) { 2.0 * plain } else { plain };
    Some([plain, by_matrix_units])
}

impl Machine {
    /// Machine of a device.
    pub fn of_device(device: &Attributes) -> Machine {
        let mut machine = Machine::H100.scaled(&Ratios::of(device));
        // The corrections of predictions were learned from times of H100s and an H200, and are kept for devices of their
        // kind; elsewhere predictions stand uncorrected.
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
