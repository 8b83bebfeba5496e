//! Tests of `file`: what is written is read back, and malformed files are refused.

use super::*;

const SPMM_FILE: &[u8] = include_bytes!("../spmm-hopper.bin");

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(name.as_bytes());
    out.resize(out.len() + NAME - name.len(), 0);
}

/// Contents of a file by the definition of the format, written with a valid checksum.
struct File {
    head: [u32; 4],
    bounds: (f64, f64),
    relative: Vec<&'static str>,
    forests: Vec<(&'static str, Forest)>,
    behind: Vec<u8>,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        self.head.iter().for_each(|word| out.extend(word.to_le_bytes()));
        out.extend(self.bounds.0.to_le_bytes());
        out.extend(self.bounds.1.to_le_bytes());
        out.extend((self.relative.len() as u32).to_le_bytes());
        self.relative.iter().for_each(|name| put_name(&mut out, name));
        out.extend((self.forests.len() as u32).to_le_bytes());
        for (name, forest) in &self.forests {
            put_name(&mut out, name);
            out.extend(forest.base.to_le_bytes());
            out.extend((forest.leaves.len() as u32 >> self.head[3]).to_le_bytes());
            out.extend(&forest.inputs);
            forest.limits.iter().for_each(|limit| out.extend(limit.to_le_bytes()));
            forest.leaves.iter().for_each(|leaf| out.extend(leaf.to_le_bytes()));
        }
        out.extend(&self.behind);
        out.extend(fnv1a(&out).to_le_bytes());
        out
    }
}

/// One algorithm with two trees of two comparisons, and one without trees.
fn file() -> File {
    let two = Forest {
        base: -7,
        inputs: vec![0, 19, 23, 1, 2, 3],
        limits: vec![0.5, f32::INFINITY, -1e-20, 1.0, 2.0, 3.0],
        leaves: vec![1, -2, 3, -4, 32767, -32767, 0, 8],
    };
    let none = Forest { base: 12, inputs: vec![], limits: vec![], leaves: vec![] };
    File {
        head: [FORMAT, SpmmStatistics::VERSION, NUMBERS as u32, 2],
        bounds: (0.5, 2.0),
        relative: vec!["window"],
        forests: vec![("sell", two), ("dense", none)],
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
    let expected = Learned {
        bounds: (0.5, 2.0),
        depth: 2,
        relative: vec![Algorithm::Window],
        forests: vec![
            (Algorithm::SpmmSell, file.forests[0].1.clone()),
            (Algorithm::Dense, file.forests[1].1.clone()),
        ],
    };
    assert_eq!(parse(&file.bytes()), Ok(expected));
}

/// The library's file has trees of all algorithms that the model chooses from, none of them trivial.
#[test]
fn the_librarys_file_is_well_formed() {
    let learned = parse(SPMM_FILE).unwrap();
    assert_eq!(learned, *hopper());
    let all: Vec<_> = learned.forests.iter().map(|(algorithm, _)| *algorithm).collect();
    assert_eq!(all, ALGORITHMS);
    for (algorithm, forest) in &learned.forests {
        let trees = forest.leaves.len() >> learned.depth;
        assert!(trees >= 50 && forest.leaves.iter().any(|&leaf| leaf != 0), "{algorithm:?}: {trees} trees");
    }
    assert!(SPMM_FILE.len() < 400_000, "{} bytes", SPMM_FILE.len());
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
    assert_eq!(fault(|file| file.head[1] += 1), "it is for other numbers");
    assert_eq!(fault(|file| file.head[2] -= 1), "it is for other numbers");
    for depth in [0, DEEPEST + 1, u32::MAX] {
        let mut file = file();
        (file.head[3], file.forests) = (depth, vec![]);
        assert_eq!(parse(&file.bytes()), Err("its trees are of no depth that is possible"));
    }
    for bounds in [(0.1, 2.0), (1.0, 2.0), (f64::NAN, 2.0), (0.5, 1.0), (0.5, 4.0), (0.5, f64::NAN)] {
        assert_eq!(fault(|file| file.bounds = bounds), "its bounds are none", "{bounds:?}");
    }
    assert_eq!(fault(|file| file.relative = vec!["swift"]), "no algorithm has this name");
    assert_eq!(fault(|file| file.relative = vec!["row", "row"]), "an algorithm is named twice");
    assert_eq!(fault(|file| file.forests[0].0 = "sel"), "no algorithm has this name");
    assert_eq!(fault(|file| file.forests[0].0 = "dense"), "an algorithm is named twice");
    // There are 20 numbers, two inputs of the own time, and one of the other algorithm.
    assert_eq!(fault(|file| file.forests[0].1.inputs[3] = 24), "a tree compares a number that there is not");
    assert_eq!(
        fault(|file| file.forests[0].1.limits[1] = f32::NAN),
        "a tree compares with what is no number"
    );
    assert_eq!(fault(|file| file.behind = vec![0]), "it goes on behind its end");
    // Counts larger than the file.
    let mut bytes = file().bytes();
    let trees = bytes.len() - CHECKSUM - 4;
    bytes[trees..trees + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let body = bytes.len() - CHECKSUM;
    let sum = fnv1a(&bytes[..body]).to_le_bytes();
    bytes[body..].copy_from_slice(&sum);
    assert_eq!(parse(&bytes), Err("it ends too early"));
}
