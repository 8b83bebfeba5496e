//! Tests of `file`: what is written is read back, and malformed files are refused.

use super::*;
use crate::checksum::fnv1a;

const FILE: &[u8] = include_bytes!("../orders-h100.bin");

/// Contents of the file for one form of product.
struct Form {
    name: &'static str,
    scales: Vec<f32>,
    layers: Vec<(u32, Vec<f32>)>,
    policies: Vec<u32>,
}

/// Contents of a file by the definition of the format, written with a valid checksum.
struct File {
    head: [u32; 3],
    forms: Vec<Form>,
    behind: Vec<u8>,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut words = self.head.to_vec();
        words.push(self.forms.len() as u32);
        words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        for form in &self.forms {
            out.extend(form.name.as_bytes());
            out.resize(out.len() + NAME - form.name.len(), 0);
            (0..NUMBERS).for_each(|at| out.extend((at as f32).to_le_bytes()));
            form.scales.iter().for_each(|scale| out.extend(scale.to_le_bytes()));
            out.extend((form.layers.len() as u32).to_le_bytes());
            for (outputs, numbers) in &form.layers {
                out.extend(outputs.to_le_bytes());
                numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
            }
            form.policies.iter().for_each(|code| out.extend(code.to_le_bytes()));
        }
        out.extend(&self.behind);
        out.extend(fnv1a(&out).to_le_bytes());
        out
    }
}

/// Two layers for one form, and one layer for another.
fn file() -> File {
    let numbers = |count: usize| (0..count).map(|at| 0.5 - at as f32).collect::<Vec<_>>();
    let two = vec![(3, numbers(3 * NUMBERS + 3)), (2, numbers(8))];
    let one = vec![(1, numbers(NUMBERS + 1))];
    let scales = vec![2.0; NUMBERS];
    File {
        head: [FORMAT, FeatureSet::VERSION, NUMBERS as u32],
        forms: vec![
            Form { name: "spmm-csr", scales: scales.clone(), layers: two, policies: vec![4, 11] },
            Form { name: "spmv-csr", scales, layers: one, policies: vec![12] },
        ],
        behind: vec![],
    }
}

fn fault(change: impl FnOnce(&mut File)) -> &'static str {
    let mut file = file();
    change(&mut file);
    parse(&file.bytes()).unwrap_err()
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let file = file();
    let network = |form: &Form, policies: Vec<Reorder>| Network {
        shifts: (0..NUMBERS).map(|at| at as f32).collect(),
        scales: form.scales.clone(),
        layers: form
            .layers
            .iter()
            .map(|(outputs, numbers)| {
                let (weights, biases) = numbers.split_at(numbers.len() - *outputs as usize);
                Layer { weights: weights.to_vec(), biases: biases.to_vec() }
            })
            .collect(),
        policies,
    };
    let networks = vec![
        (Algorithm::SpmmCsr, network(&file.forms[0], vec![Reorder::Lpt, Reorder::Dcsr])),
        (Algorithm::Csr, network(&file.forms[1], vec![Reorder::Rcm])),
    ];
    assert_eq!(parse(&file.bytes()), Ok(Orders { networks }));
}

/// The library's file has the paper's network for each form.
#[test]
fn the_librarys_file_is_well_formed() {
    let orders = parse(FILE).unwrap();
    assert_eq!(orders, *h100());
    for (algorithm, network) in &orders.networks {
        let widths: Vec<_> = network.layers.iter().map(|layer| layer.biases.len()).collect();
        assert_eq!(widths, [64, 32, network.policies.len()], "{algorithm:?}");
        assert!(network.policies.len() >= 3, "{algorithm:?}");
    }
    assert!(FILE.len() < 100_000, "{} bytes", FILE.len());
}

#[test]
fn a_file_that_is_damaged_is_refused() {
    let bytes = file().bytes();
    for length in 0..bytes.len() {
        assert!(parse(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(parse(&changed).is_err(), "bit {bit} of byte {at}");
        }
    }
}

/// Malformed files with a valid checksum are refused.
#[test]
fn what_no_program_should_have_written_is_refused() {
    assert_eq!(fault(|file| file.head[0] += 1), "it has another format");
    assert_eq!(fault(|file| file.head[1] += 1), "it is for other features");
    assert_eq!(fault(|file| file.head[2] -= 1), "it is for other features");
    assert_eq!(fault(|file| file.forms[0].name = "spmm-cs"), "no form of product has this name");
    assert_eq!(fault(|file| file.forms[0].name = "spmm-csrs"), "no form of product has this name");
    assert_eq!(fault(|file| file.forms[0].name = "spmv-csr"), "a form of product is named twice");
    assert_eq!(fault(|file| file.forms[0].scales[23] = 0.0), "a feature is divided by nothing");
    assert_eq!(fault(|file| file.forms[0].scales[0] = f32::NAN), "a number is none");
    assert_eq!(fault(|file| file.forms[1].layers[0].1[7] = f32::INFINITY), "a number is none");
    let layers = "it has no number of layers that is possible";
    assert_eq!(fault(|file| file.forms[0].layers.clear()), layers);
    assert_eq!(fault(|file| file.forms[0].layers = vec![(1, vec![0.0; NUMBERS + 1]); 5]), layers);
    for outputs in [0, MOST_OUTPUTS + 1, u32::MAX] {
        let text = "a layer has no number of outputs that is possible";
        assert_eq!(fault(|file| file.forms[0].layers[1].0 = outputs), text);
    }
    // Codes of AUTO, NONE and LEARNED, and two that are no order.
    for code in [0, 1, 14, 15, u32::MAX] {
        let text = "an output is for no order of rows";
        assert_eq!(fault(|file| file.forms[0].policies[1] = code), text, "{code}");
    }
    assert_eq!(fault(|file| file.forms[0].policies[1] = 4), "an order of rows has two outputs");
    assert_eq!(fault(|file| file.behind = vec![0]), "it goes on behind its end");
}
