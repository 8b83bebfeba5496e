//! Comparison of [`Ratios`](super::Ratios) with measurements on a second device: tables of the same products
//! by the same algorithms, that of an H100 first, as `tarsia bench` (benches/results) or `tarsia sample`
//! (benches/training) writes them, compressed by gzip or not. Each table names its device.
//!
//! `TARSIA_TABLES=FIRST,SECOND cargo test --release --lib of_a_second_device -- --ignored --nocapture`

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::tests::{A100, B200, H200, L40S, RTX_4090};
use super::{Attributes, FITTED};
use crate::select::roofline::Machine;
use crate::select::Choice;
use crate::support::{self, Combo, Types};

/// Key of a product: precision, matrix, and columns of C.
pub(in crate::select) type ProductKey = (String, String, i64);
/// Microseconds by product and name of the algorithm.
type Times = BTreeMap<ProductKey, BTreeMap<String, f64>>;

/// Types of a precision in the tables.
pub(in crate::select) fn types(precision: &str) -> Option<Types> {
    match precision {
        "f64" => Some(support::F64::TYPES),
        "f32" => Some(support::F32::TYPES),
        "tf32" => Some(support::Tf32::TYPES),
        "f16" => Some(support::F16::TYPES),
        _ => None,
    }
}

/// Attributes of the device that a text names.
fn device(text: &str) -> Option<Attributes> {
    let known = [
        ("H100", FITTED),
        ("H200", H200),
        ("A100", A100),
        ("L40S", L40S),
        ("RTX 4090", RTX_4090),
        ("B200", B200),
    ];
    known.iter().find(|(name, _)| text.contains(name)).map(|known| known.1)
}

/// Device of a table, and its times of an operation.
fn parse(text: &str, op: &str) -> (Attributes, Times) {
    let (mut found, mut times) = (None, Times::new());
    let mut add = |precision: &str, matrix: &str, n: &str, name: &str, us: &str| {
        // 0, or no number, marks a time that was not measured.
        let (Ok(n), Ok(us)) = (n.parse(), us.parse::<f64>()) else { return };
        if us > 0.0 {
            let product = (precision.to_string(), matrix.to_string(), n);
            times.entry(product).or_default().insert(name.to_string(), us);
        }
    };
    for line in text.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        if line.starts_with("# device ") {
            found = device(line);
        } else if fields.len() == 10 && fields[5] == op {
            for time in fields[9].split(' ') {
                let parts: Vec<_> = time.split(':').collect();
                if let [name, _, us, _] = parts[..] {
                    add(fields[6], fields[1], fields[7], name, us);
                }
            }
        } else if fields.len() > 16 && fields[0] == op && fields[6] == "tarsia" {
            found = device(fields[16]);
            add(fields[1], fields[3], fields[2], fields[7], fields[8]);
        }
    }
    (found.expect("a table names a device that is known here"), times)
}

fn read(path: &str, op: &str) -> (Attributes, Times) {
    let bytes = std::fs::read(path).expect("TARSIA_TABLES names two tables");
    let mut text = String::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text),
        false => (&bytes[..]).read_to_string(&mut text),
    }
    .expect("tables are text");
    parse(&text, op)
}

fn mean(of: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<_> = of.collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

/// Compares the two tables of TARSIA_TABLES and prints the result. `seconds` predicts the time of an
/// algorithm on a machine; `choices` returns those of the default, best first.
pub(in crate::select) fn compare(
    op: &str,
    seconds: impl Fn(&Machine, &ProductKey, &str) -> Option<f64>,
    choices: impl Fn(&Machine, &ProductKey) -> Option<Vec<Choice>>,
) {
    let paths = std::env::var("TARSIA_TABLES").expect("TARSIA_TABLES is set");
    let (first, second) = paths.split_once(',').expect("TARSIA_TABLES names two tables");
    let ((_, before), (device, after)) = (read(first, op), read(second, op));
    println!("{op}: {device:?}");
    let machines = [Machine::H100, Machine::of_device(&device)];
    // Logarithms of the measured and the predicted ratio of times, first device over second, by algorithm.
    let mut logs: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    // Best time over the time of three choices: by the first device's rates, by the second's, and the default
    // as run.
    let mut shares: [Vec<(f64, &ProductKey)>; 3] = Default::default();
    for (product, times) in &after {
        for (name, us) in times {
            let Some(first) = before.get(product).and_then(|times| times.get(name)) else { continue };
            let predicted = machines.each_ref().map(|machine| seconds(machine, product, name));
            if let [Some(of_first), Some(of_second)] = predicted {
                logs.entry(name).or_default().push([(first / us).ln(), (of_first / of_second).ln()]);
            }
        }
        let ordered = machines.each_ref().map(|machine| choices(machine, product));
        let [Some(by_first), Some(by_second)] = ordered else { continue };
        let us = |choice: &Choice| times.get(choice.algorithm().name()).copied();
        let best = by_second.iter().filter_map(us).fold(f64::INFINITY, f64::min);
        if by_second.iter().filter(|choice| us(choice).is_some()).count() < 2 {
            continue;
        }
        let chosen = [by_first, by_second].map(|all| all.iter().find_map(us));
        for (share, us) in shares.iter_mut().zip([chosen[0], chosen[1], times.get("default").copied()]) {
            share.extend(us.map(|us| (best / us, product)));
        }
    }
    assert!(!logs.is_empty(), "the tables have no times of {op} in common");
    for (name, logs) in &logs {
        let ratio = |at: usize| mean(logs.iter().map(|log| log[at])).exp();
        let off = |scale: f64| mean(logs.iter().map(|log| (log[0] - scale * log[1]).powi(2))).sqrt();
        println!(
            "{name}: {} times, {:.3} times as long on the first, predicted {:.3}; off by {:.3}, unscaled {:.3}",
            logs.len(),
            ratio(0),
            ratio(1),
            off(1.0),
            off(0.0)
        );
    }
    for (whose, shares) in
        ["the first device's choices", "its own choices", "its defaults as run"].iter().zip(&mut shares)
    {
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some(worst) = shares.first() {
            let share = mean(shares.iter().map(|share| share.0.ln())).exp();
            let few = shares.iter().filter(|share| share.0 < 0.85).count();
            println!(
                "{whose}: {:.2} % of the best in geomean over {}, {few} under 85 %, worst {:.0} % {:?}",
                100.0 * share,
                shares.len(),
                100.0 * worst.0,
                worst.1
            );
        }
    }
}

#[test]
fn both_kinds_of_tables_are_read() {
    let bench = "spmm\tf32\t32\tcant\t9\t9\ttarsia\tsell\t12.5\t0\t0\t0\t0\t\t0\t0\tNVIDIA H200\tdriver\n\
                 spmm\tf32\t32\tcant\t9\t9\tcusparse\tDEFAULT\t13.5\t0\t0\t0\t0\t\t0\t0\tNVIDIA H200\tdriver\n\
                 spmm\tf32\t32\tcant\t9\t9\ttarsia\tdense\t-1.00e+00\t0\t0\t0\t0\t\t0\t0\tNVIDIA H200\tdriver\n\
                 spmv\tf32\t1\tcant\t9\t9\ttarsia\tsell\t2.5\t0\t0\t0\t0\t\t0\t0\tNVIDIA H200\tdriver\n";
    let sample = "# device NVIDIA H200 · driver\n\
                  number\tmatrix\trows\tcols\tnnz\top\tprecision\tn\tnumbers\ttimes\n\
                  -1\tcant\t9\t9\t9\tmatrix\t-\t0\t1 2\t\n\
                  -1\tcant\t9\t9\t9\tspmm\tf32\t32\t1 2\tsell:11:12.5:0.1\n";
    let expected = Times::from([(
        ("f32".to_string(), "cant".to_string(), 32),
        BTreeMap::from([("sell".to_string(), 12.5)]),
    )]);
    for table in [bench, sample] {
        assert_eq!(parse(table, "spmm"), (H200, expected.clone()));
    }
}
