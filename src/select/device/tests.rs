//! Rates of devices that were not measured move in the direction of their data sheets.

use super::*;
use crate::algorithm::Algorithm;
use crate::select::spmm::tests::{corpus_statistics as spmm_statistics, ALGORITHMS};
use crate::select::spmv::tests::{corpus_statistics, ALL, PRECISIONS};
use crate::select::spmv::{self, Widths};
use crate::support::{Combo, Types};
use crate::{select::spmm, support};

pub(in crate::select) const A100: Attributes = Attributes {
    capability: 80,
    multiprocessors: 108,
    clock_khz: 1_410_000,
    memory_khz: 1_593_000,
    memory_bits: 5120,
    shared_bytes: 167_936,
    singles_per_double: 2,
};
pub(in crate::select) const L40S: Attributes = Attributes {
    capability: 89,
    multiprocessors: 142,
    clock_khz: 2_520_000,
    memory_khz: 9_001_000,
    memory_bits: 384,
    shared_bytes: 102_400,
    singles_per_double: 64,
};
pub(in crate::select) const RTX_4090: Attributes =
    Attributes { multiprocessors: 128, memory_khz: 10_501_000, ..L40S };
pub(in crate::select) const H200: Attributes =
    Attributes { memory_khz: 3_201_000, memory_bits: 6144, ..FITTED };
pub(in crate::select) const B200: Attributes = Attributes {
    capability: 100,
    multiprocessors: 148,
    clock_khz: 1_965_000,
    memory_khz: 3_996_000,
    memory_bits: 8192,
    ..FITTED
};

const F64: Types = support::F64::TYPES;
const F32: Types = support::F32::TYPES;

/// Estimate of SpMV on the matrix of this name.
fn spmv_estimate(device: &Attributes, matrix: &str, algorithm: Algorithm, types: Types) -> spmv::Estimate {
    let machine = Machine::of_device(device);
    let statistics = &corpus_statistics(types.x.size())[matrix];
    spmv::estimate(machine.spmv.as_ref().unwrap(), statistics, algorithm, &Widths { types, index: (4, 4) })
}

/// Predicted seconds of SpMM on the matrix of this name.
fn spmm_seconds(device: &Attributes, matrix: &str, algorithm: Algorithm, types: Types, n: i64) -> f64 {
    let machine = Machine::of_device(device);
    let statistics = &spmm_statistics()[matrix][usize::from(types.a.size() > 2)];
    spmm::estimate(machine.spmm_rates().unwrap(), statistics, algorithm, types, n).seconds
}

/// All numbers of a machine, in full digits.
fn numbers(machine: &Machine) -> String {
    format!("{machine:?}")
}

#[test]
fn an_h100_has_the_rates_that_were_fitted_on_it() {
    assert_eq!(Ratios::of(&FITTED), Ratios::SAME);
    let fitted = numbers(&Machine::H100);
    assert_eq!(numbers(&Machine::of_device(&FITTED)), fitted);
    // Other boards of the same model have slightly different clocks.
    let board = Attributes { clock_khz: 1_965_000, memory_khz: 2_600_000, ..FITTED };
    assert_eq!(numbers(&Machine::of_device(&board)), fitted);
    // A smaller model has other rates.
    let pcie = Attributes { multiprocessors: 114, clock_khz: 1_755_000, memory_khz: 1_593_000, ..FITTED };
    assert_ne!(numbers(&Machine::of_device(&pcie)), fitted);
}

#[test]
fn what_the_driver_does_not_know_is_an_h100s() {
    let nothing = Attributes {
        capability: 90,
        multiprocessors: 0,
        clock_khz: 0,
        memory_khz: 0,
        memory_bits: 0,
        shared_bytes: 0,
        singles_per_double: 0,
    };
    assert_eq!(numbers(&Machine::of_device(&nothing)), numbers(&Machine::H100));
    // An unknown attribute leaves the other ratios unchanged.
    let of = Ratios::of(&L40S);
    assert_eq!(Ratios::of(&Attributes { memory_khz: 0, ..L40S }), Ratios { memory: 1.0, ..of });
    assert_eq!(Ratios::of(&Attributes { memory_bits: 0, ..L40S }), Ratios { memory: 1.0, ..of });
    assert_eq!(Ratios::of(&Attributes { shared_bytes: 0, ..L40S }), Ratios { near: 1.0, ..of });
    assert_eq!(Ratios::of(&Attributes { singles_per_double: 0, ..L40S }), Ratios { doubles: [0.0; 2], ..of });
    let slower = Ratios::of(&Attributes { clock_khz: 0, ..L40S });
    assert_eq!((slower.cycles, slower.memory), (of.multiprocessors, of.memory));
}

#[test]
fn ratios_are_those_of_data_sheets() {
    // Bytes a second of memory, those of an H100 being 3.35 TB/s.
    for (device, terabytes) in [(A100, 2.04), (L40S, 0.864), (RTX_4090, 1.008), (H200, 4.9), (B200, 8.2)] {
        let ratio = Ratios::of(&device).memory;
        assert!((ratio * 3.35 / terabytes - 1.0).abs() < 0.02, "{device:?}: {ratio}");
    }
    // Multiply-adds of doubles a second: half of 9.7, 1.43 and 1.29 TFLOPS.
    for (device, tera) in [(A100, 4.9), (L40S, 0.72), (RTX_4090, 0.645)] {
        let ratios = Ratios::of(&device);
        let fitted = 132.0 * 1.98e9 * 64.0 * ratios.cycles;
        let seconds = 1.0 / fitted + ratios.doubles[0];
        assert!((1e-12 / seconds / tera - 1.0).abs() < 0.02, "{device:?}: {seconds:e}");
    }
    assert_eq!(Ratios::of(&H200).doubles, [0.0; 2]);
    // A B200 does as many as an H100 without matrix units, but its matrix units do no more.
    assert!(Ratios::of(&B200).doubles[0] == 0.0 && Ratios::of(&B200).doubles[1] > 0.0);
}

#[test]
fn more_memory_bandwidth_helps_what_moves_bytes_and_nothing_else() {
    let mut bytes = 0;
    for (_, x_bytes, types) in PRECISIONS {
        for matrix in corpus_statistics(x_bytes).keys() {
            for algorithm in ALL {
                let (h100, h200) = (
                    spmv_estimate(&FITTED, matrix, algorithm, types),
                    spmv_estimate(&H200, matrix, algorithm, types),
                );
                assert!(h200.seconds <= h100.seconds, "{matrix} {algorithm:?}");
                match h100.bound {
                    spmv::Bound::Bytes => bytes += usize::from(h200.seconds < 0.85 * h100.seconds),
                    _ => assert_eq!(h200.seconds.to_bits(), h100.seconds.to_bits(), "{matrix} {algorithm:?}"),
                }
            }
        }
    }
    assert!(bytes > 50, "{bytes}");
    // Long streams gain nearly the ratio.
    let of = |device| spmv_estimate(device, "band1024", Algorithm::Sell, F64).seconds;
    assert!(of(&FITTED) / of(&H200) > 1.3, "{}", of(&FITTED) / of(&H200));
}

#[test]
fn slower_devices_are_slower_and_faster_ones_faster() {
    for matrix in ["band1024", "rmat20"] {
        for types in [F64, F32] {
            for algorithm in [Algorithm::Sell, Algorithm::Csr] {
                let of = |device| spmv_estimate(device, matrix, algorithm, types).seconds;
                let [l40s, rtx, a100, h100, h200, b200] =
                    [&L40S, &RTX_4090, &A100, &FITTED, &H200, &B200].map(of);
                assert!(a100 > 1.2 * h100 && h100 >= h200 && h200 > b200, "{matrix} {algorithm:?}");
                assert!(l40s > rtx, "{matrix} {algorithm:?}");
            }
            for algorithm in ALGORITHMS {
                let of = |device| spmm_seconds(device, matrix, algorithm, types, 32);
                let [a100, h100, h200] = [&A100, &FITTED, &H200].map(of);
                assert!(
                    a100 > 1.2 * h100 && h100 >= h200,
                    "{matrix} {algorithm:?}: {a100:e} {h100:e} {h200:e}"
                );
            }
        }
    }
}

#[test]
fn doubles_on_a_card_with_few_units_for_them_are_bound_by_those() {
    for device in [&L40S, &RTX_4090] {
        // Highest number of multiply-adds of doubles a second on the card.
        let most = f64::from(device.multiprocessors) * f64::from(device.clock_khz) * 1e3 * 2.0;
        for (matrix, [_, statistics]) in spmm_statistics() {
            let products = statistics.counts.nnz as f64 * 128.0;
            if products < 1e8 {
                continue;
            }
            for algorithm in ALGORITHMS {
                let seconds = spmm_seconds(device, matrix, algorithm, F64, 128);
                assert!(seconds > 0.95 * products / most, "{matrix} {algorithm:?}");
                // Singles are not bound by the units for doubles. The bounds are low, since most of the time that
                // is predicted for an H100 is not that of multiply-adds.
                let slower = seconds / spmm_seconds(device, matrix, algorithm, F32, 128);
                let on_h100 = seconds / spmm_seconds(&FITTED, matrix, algorithm, F64, 128);
                assert!(on_h100 > 1.5 && slower > 1.5, "{matrix} {algorithm:?}: {on_h100} {slower}");
            }
        }
        // SpMV moves at least ten bytes per multiply-add: memory still bounds it.
        let found = spmv_estimate(device, "band1024", Algorithm::Sell, F64);
        assert_eq!(found.bound, spmv::Bound::Bytes);
    }
    // A layout with few zeros in its blocks is then the better choice: each zero costs a multiplication.
    let zeros = |device| {
        spmm_seconds(device, "rmat20", Algorithm::Dense, F64, 128)
            / spmm_seconds(device, "rmat20", Algorithm::Row, F64, 128)
    };
    assert!(zeros(&L40S) > zeros(&FITTED));
}

#[test]
fn what_was_learned_on_an_h100_is_kept_for_its_kind() {
    for (device, kept) in [(FITTED, true), (H200, true), (A100, false), (L40S, false), (B200, false)] {
        assert_eq!(Machine::of_device(&device).learned.is_some(), kept, "{device:?}");
    }
}

#[test]
fn products_by_shapes_scale_too() {
    let seconds = |device| crate::select::roofline::seconds(&Machine::of_device(device), 1e9, 0.0);
    assert!(seconds(&L40S) > 3.0 * seconds(&FITTED) && seconds(&FITTED) > 1.3 * seconds(&H200));
    let products = |device| crate::select::roofline::products_seconds(&Machine::of_device(device), 1 << 30);
    assert!(products(&A100) > 1.5 * products(&FITTED));
    assert_eq!(products(&H200), products(&FITTED));
}

/// An H100 with half of its multiprocessors, and one with half of its memory's bandwidth.
pub(in crate::select) const HALVES: [Attributes; 2] =
    [Attributes { multiprocessors: 66, ..FITTED }, Attributes { memory_bits: 2560, ..FITTED }];

#[test]
fn parts_of_a_time_follow_what_they_wait_for() {
    let [small, slow] = HALVES.map(|device| Ratios::of(&device));
    assert_eq!((small.cycles, small.memory, small.singles, small.matrix_units), (0.5, 1.0, 0.5, 0.5));
    assert_eq!((slow.cycles, slow.memory, slow.singles, slow.matrix_units), (1.0, 0.5, 1.0, 1.0));
    // Of the 3 s that an H100 takes, 1 s moves bytes.
    assert_eq!([Ratios::SAME, small, slow].map(|device| device.seconds(3.0, 1.0)), [3.0, 5.0, 4.0]);
    let h200 = Ratios::of(&H200);
    assert!((h200.seconds(3.0, 1.0) - (2.0 + 1.0 / h200.memory)).abs() < 1e-9);
    // TFLOPS of data sheets, without sparsity of matrix units: fp32 and fp16 of an A100 19.5 and 312, fp32 of
    // an RTX 4090 82.6.
    let (a100, rtx) = (Ratios::of(&A100), Ratios::of(&RTX_4090));
    let (singles, halves) = (132.0 * 1.98e9 * 256.0 * 1e-12, 132.0 * 1.98e9 * 4096.0 * 1e-12);
    for (found, expected) in
        [(a100.singles * singles, 19.5), (a100.matrix_units * halves, 312.0), (rtx.singles * singles, 82.6)]
    {
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }
    // The additional seconds per multiply-add count in doubles only.
    use crate::types::ComputeType;
    assert!(rtx.doubles[0] > 0.0 && rtx.of_compute(ComputeType::R64F) == rtx);
    assert_eq!(rtx.of_compute(ComputeType::Tf32), Ratios { doubles: [0.0; 2], ..rtx });
    assert_eq!(rtx.of_compute(ComputeType::C64F).doubles, rtx.doubles.map(|seconds| 4.0 * seconds));
}

#[test]
fn clusters_take_longer_where_memory_is_slower() {
    let of = |device| Machine::of_device(device).spmm_rates().unwrap().clusters;
    let [start, entry, row] = spmm::CLUSTERS;
    assert_eq!(of(&FITTED), spmm::CLUSTERS);
    assert_eq!(of(&HALVES[1]), [start, 2.0 * entry, 2.0 * row]);
    assert!(of(&RTX_4090)[1] > of(&A100)[1] && of(&A100)[1] > entry && entry > of(&H200)[1]);
}
