//! Fits the rates to measurements; the result is what the parent module has, up to rounding.

use super::tests::{corpus_statistics, judge, measured, ALL, PRECISIONS};
use super::*;

/// Minimises f by the simplex method from `start` on (Nelder and Mead 1965).
pub(crate) fn minimize(start: &[f64], rounds: usize, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let moved = |at: usize| {
        let step = |k: usize| if k == at { 0.3 } else { 0.0 };
        start.iter().enumerate().map(|(k, value)| value + step(k)).collect::<Vec<_>>()
    };
    let mut points: Vec<_> = (0..=start.len()).map(moved).map(|point| (f(&point), point)).collect();
    for _ in 0..rounds {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (last, others) = points.split_last().unwrap();
        let mean = |at: usize| others.iter().map(|point| point.1[at]).sum::<f64>() / others.len() as f64;
        let center: Vec<f64> = (0..start.len()).map(mean).collect();
        let along = |step: f64| {
            let point: Vec<f64> = center.iter().zip(&last.1).map(|(c, p)| c + step * (c - p)).collect();
            (f(&point), point)
        };
        let (best, second) = (points[0].0, others[others.len() - 1].0);
        let reflected = along(1.0);
        let next = if reflected.0 < best {
            let expanded = along(2.0);
            if expanded.0 < reflected.0 {
                expanded
            } else {
                reflected
            }
        } else if reflected.0 < second {
            reflected
        } else {
            along(if reflected.0 < last.0 { 0.5 } else { -0.5 })
        };
        if next.0 < last.0 {
            *points.last_mut().unwrap() = next;
        } else {
            let kept = points[0].1.clone();
            for point in &mut points[1..] {
                point.1.iter_mut().zip(&kept).for_each(|(p, k)| *p = 0.5 * (*p + k));
                point.0 = f(&point.1);
            }
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.swap_remove(0).1
}

type Field = fn(&mut Layout) -> &mut f64;

/// Rates of a layout, and the start value of each whose present value is 0.
const FIELDS: [(&str, Field, f64); 10] = [
    ("start", |l| &mut l.start, 5e-6),
    ("long", |l| &mut l.long, 5e-7),
    ("wide", |l| &mut l.wide, 5e-7),
    ("serial", |l| &mut l.serial, 1e-9),
    ("bandwidth", |l| &mut l.bandwidth, 2.5e12),
    ("entry", |l| &mut l.entry, 1e-12),
    ("unit", |l| &mut l.unit, 1e-11),
    ("wide_unit", |l| &mut l.wide_unit, 1e-11),
    ("far_sectors", |l| &mut l.far_sectors, 1e11),
    ("near_sectors", |l| &mut l.near_sectors, 1.5e11),
];

fn layout_of(rates: &mut Rates, algorithm: Algorithm) -> &mut Layout {
    match algorithm {
        Algorithm::Sell => &mut rates.sell,
        Algorithm::Stream => &mut rates.stream,
        Algorithm::Dasp => &mut rates.dasp,
        Algorithm::MaskBlock => &mut rates.mask_block,
        _ => &mut rates.csr,
    }
}

/// `cargo test --release --lib select::spmv::fit -- --ignored --nocapture`
#[test]
#[ignore = "prints rates that fit benches/results"]
fn fit() {
    let measured = measured();
    let mut fitted = H100;
    for algorithm in ALL {
        let mut cases = Vec::new();
        for (precision, x_bytes, types) in PRECISIONS {
            for (matrix, statistics) in corpus_statistics(x_bytes) {
                let us = measured[&(precision, matrix, algorithm.name())];
                cases.push((statistics, Widths { types, index: (4, 4) }, us));
            }
        }
        let with = |values: &[f64]| {
            let mut rates = H100;
            let layout = layout_of(&mut rates, algorithm);
            for ((_, field, _), value) in FIELDS.iter().zip(values) {
                *field(layout) = value.exp();
            }
            rates
        };
        let error = |values: &[f64]| {
            let rates = with(values);
            let errors = cases.iter().map(|(statistics, widths, us)| {
                let error = (estimate(&rates, statistics, algorithm, widths).seconds * 1e6 / us).ln();
                // Errors beyond 15 % count linearly, so that effects outside the model do not distort the
                // fit.
                if error.abs() < 0.15 {
                    error * error
                } else {
                    0.3 * error.abs() - 0.0225
                }
            });
            (errors.sum::<f64>() / cases.len() as f64).sqrt()
        };
        let mut rates = H100;
        let start: Vec<f64> = FIELDS
            .iter()
            .map(|(_, field, least)| {
                let value = *field(layout_of(&mut rates, algorithm));
                if value > 0.0 { value } else { *least }.ln()
            })
            .collect();
        let mut found = start.clone();
        for _ in 0..6 {
            found = minimize(&found, 500, error);
        }
        println!("{}: {:.4} from {:.4}", algorithm.name(), error(&found), error(&start));
        for ((name, _, _), value) in FIELDS.iter().zip(&found) {
            println!("    {name}: {:.3e}", value.exp());
        }
        *layout_of(&mut fitted, algorithm) = *layout_of(&mut with(&found), algorithm);
    }
    for percent in [0, 3, 5, 8, 10, 12, 15, 20] {
        let of = |rates| {
            let verdict = judge(rates, f64::from(percent) / 100.0);
            format!("{:.4}, {} misses {:?}", verdict.mean, verdict.worst.len(), verdict.worst)
        };
        println!("margin {percent} %: {} by these, {} by what is in the source", of(&fitted), of(&H100));
    }
}

/// Compares predictions with a second device; see [`compare`](crate::select::device::fit::compare).
#[test]
#[ignore = "reads tables of two devices"]
fn of_a_second_device() {
    use crate::select::counted::CountedProblem;
    use crate::select::device::fit::{compare, types, ProductKey};
    use crate::select::roofline::Machine;
    use crate::types::BackendKind;
    let known = |product: &ProductKey| {
        let types = types(&product.0)?;
        Some((types, corpus_statistics(types.x.size()).remove(&product.1[..])?))
    };
    let seconds = |machine: &Machine, product: &ProductKey, name: &str| {
        let (types, statistics) = known(product)?;
        let algorithm = *ALL.iter().find(|algorithm| algorithm.name() == name)?;
        Some(
            estimate(machine.spmv.as_ref()?, &statistics, algorithm, &Widths { types, index: (4, 4) })
                .seconds,
        )
    };
    compare("spmv", seconds, |machine, product| {
        let (types, statistics) = known(product)?;
        let (rows, cols, nnz) = (statistics.rows as usize, statistics.cols as usize, statistics.nnz as usize);
        let problem = CountedProblem { rows, cols, nnz, types, backend: BackendKind::Cuda };
        problem.spmv_on(machine, &statistics).ok()
    });
}
