//! Tests of blocks, chunks and ranges: the result and the errors do not depend on where the file is cut.

use std::io::ErrorKind;

use num_complex::Complex;
use proptest::prelude::*;

use super::slow;
use super::*;
use crate::market::entries::Value;

/// Returns the bits of the values, so that NaN equals itself and −0 differs from 0.
fn bits(matrix: &MarketMatrix) -> Vec<[u64; 2]> {
    match &matrix.values {
        MarketValues::Real(a) => a.values.iter().map(|v| [v.to_bits(), 0]).collect(),
        MarketValues::Complex(a) => a.values.iter().map(|v| [v.re.to_bits(), v.im.to_bits()]).collect(),
    }
}

fn pattern(matrix: &MarketMatrix) -> (&[i64], &[i32]) {
    match &matrix.values {
        MarketValues::Real(a) => (&a.offsets, &a.indices),
        MarketValues::Complex(a) => (&a.offsets, &a.indices),
    }
}

fn same(a: &MarketMatrix, b: &MarketMatrix) -> bool {
    let shape = |m: &MarketMatrix| (m.header, m.rows, m.cols);
    shape(a) == shape(b) && pattern(a) == pattern(b) && bits(a) == bits(b)
}

/// Reads a text in pieces and compares the result with the slow reader's.
fn agrees(text: &[u8], block: usize, chunk: usize) -> std::result::Result<(), String> {
    let found = read_market_in_pieces(text, block, chunk);
    let (expected, found) = match (slow::read(text), found) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(line), Err(MatrixError::Parse { line: at, .. })) if line == at => return Ok(()),
        // A size that is too large is reported as such, whether the rest of its line is right or not.
        (Err(line), Err(error)) if error.to_string().starts_with(&format!("line {line}: ")) => return Ok(()),
        (Ok(_), Err(error)) => return Err(format!("refused: {error}")),
        (Err(line), Ok(_)) => return Err(format!("accepted, in spite of line {line}")),
        (Err(line), Err(error)) => return Err(format!("{error}, expected an error in line {line}")),
    };
    let slow::Slow { rows, cols, is_complex, entries } = expected;
    let values = if is_complex {
        MarketValues::Complex(OwnedCsr::from_triplets(rows, cols, entries).unwrap())
    } else {
        let entries = entries.into_iter().map(|(i, j, v)| (i, j, v.re)).collect();
        MarketValues::Real(OwnedCsr::from_triplets(rows, cols, entries).unwrap())
    };
    let expected = MarketMatrix { header: found.header, rows, cols, values };
    if same(&expected, &found) {
        return Ok(());
    }
    Err(format!("{expected:?} expected, {found:?} found"))
}

const KINDS: [&str; 18] = [
    "coordinate real general",
    "coordinate real symmetric",
    "coordinate real skew-symmetric",
    "coordinate integer general",
    "coordinate integer symmetric",
    "coordinate integer skew-symmetric",
    "coordinate complex general",
    "coordinate complex symmetric",
    "coordinate complex skew-symmetric",
    "coordinate complex hermitian",
    "coordinate pattern general",
    "coordinate pattern symmetric",
    "array real general",
    "array real skew-symmetric",
    "array integer symmetric",
    "array complex general",
    "array complex symmetric",
    "array complex hermitian",
];

/// Writes a random number in one of the forms that people and programs use.
fn number(rng: &mut SplitMix64, field: &str) -> String {
    if field == "integer" {
        return match rng.below(4) {
            0 => format!("{}", rng.next_u64() as i64),
            1 => format!("+{}", rng.below(1000)),
            2 => format!("{:020}", rng.below(1000)),
            _ => format!("{}", rng.below(2000) as i64 - 1000),
        };
    }
    let value = (rng.unit() - 0.5) * 10f64.powi(rng.below(40) as i32 - 20);
    match rng.below(16) {
        0 => format!("{value}"),
        1 => format!("{value:e}"),
        2 => format!("{value:.16E}"),
        3 => format!("{value:.25e}"),
        4 => format!("{value:+.3}"),
        5 => format!("{value:.12e}").replace('e', "D"),
        6 => format!(".{}", rng.below(10_000)),
        7 => format!("{}.", rng.below(10_000)),
        8 => ["inf", "-Infinity", "NaN", "-0", "1e-400", "00"][rng.below(6) as usize].to_string(),
        9 => format!("{:e}", f64::from_bits(rng.next_u64() & !(1 << 62))),
        10 => format!("{}e{}", rng.next_u64(), rng.below(500) as i64 - 340),
        _ => format!("{value:.15e}"),
    }
}

/// Makes a random file of this kind, with `damage` random changes.
fn file(kind: &str, rng: &mut SplitMix64, damage: u64) -> Vec<u8> {
    let words: Vec<&str> = kind.split(' ').collect();
    let (is_array, field, symmetry) = (words[0] == "array", words[1], words[2]);
    let rows = 1 + rng.below(if is_array { 6 } else { 700 });
    let cols = if symmetry == "general" { 1 + rng.below(9) } else { rows };
    let mut stated = Vec::new();
    if is_array {
        for col in 0..cols {
            let first = match symmetry {
                "general" => 0,
                "skew-symmetric" => col + 1,
                _ => col,
            };
            stated.extend((first..rows).map(|row| (row, col)));
        }
    } else {
        for _ in 0..rng.below(60) {
            let (i, j) = (rng.below(rows), rng.below(cols));
            stated.push(if symmetry == "general" { (i, j) } else { (i.max(j), i.min(j)) });
        }
    }
    let mut text = format!("%%MatrixMarket matrix {kind}\n");
    let junk = |rng: &mut SplitMix64, text: &mut String| {
        while rng.below(8) == 0 {
            *text += ["%\n", "\n", " \t \r\n", "% a comment 1 1 1\n", "  %\n"][rng.below(5) as usize];
        }
    };
    junk(rng, &mut text);
    text += &match is_array {
        true => format!("{rows} {cols}\n"),
        false => format!("{rows} {cols} {}\n", stated.len()),
    };
    for &(i, j) in &stated {
        junk(rng, &mut text);
        if !is_array {
            let gap = ["", "", "", " ", "\t"][rng.below(5) as usize];
            text += &format!("{gap}{} {gap}{}", i + 1, j + 1);
        }
        let zero = i == j && symmetry == "skew-symmetric";
        let parts = match field {
            "complex" => 2,
            "pattern" => 0,
            _ => 1,
        };
        for part in 0..parts {
            let real = part == 1 && i == j && symmetry == "hermitian";
            let value = if zero || real { "0".to_string() } else { number(rng, field) };
            text += &format!(" {value}");
        }
        text += ["\n", "\n", "\n", "\r\n", " \n", "\t\r\n"][rng.below(6) as usize];
    }
    junk(rng, &mut text);
    if rng.below(2) == 0 {
        text.truncate(text.trim_end().len());
    }
    let mut bytes = text.into_bytes();
    let spice = b"0123456789 \n\r%.-+eEdDx\xff\x00";
    for _ in 0..damage {
        // Other tests change the header.
        let start = (24 + kind.len()).min(bytes.len() - 1);
        let at = start + rng.below((bytes.len() - start) as u64) as usize;
        let new = spice[rng.below(spice.len() as u64) as usize];
        match rng.below(3) {
            0 => bytes.insert(at, new),
            1 => bytes[at] = new,
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn pieces_of_any_size_agree_with_a_slow_reader(
        kind in 0..KINDS.len(),
        seed in any::<u64>(),
        damage in prop_oneof![3 => Just(0u64), 2 => 1u64..4],
        block in prop_oneof![1usize..4, 1usize..200, Just(1 << 20)],
        chunk in prop_oneof![1usize..4, 1usize..200, Just(1 << 20)],
    ) {
        let text = file(KINDS[kind], &mut SplitMix64::new(seed), damage);
        // Another test has damaged sizes, which would take the slow reader too long.
        let sane = text.split(|&b| b == b'\n').find(|line| line.first().is_some_and(u8::is_ascii_digit));
        prop_assume!(sane.is_none_or(|line| line.len() < 14));
        let result = agrees(&text, block, chunk);
        prop_assert!(result.is_ok(), "{}: {}", text.escape_ascii(), result.unwrap_err());
    }

    #[test]
    fn numbers_are_those_of_the_standard_library(
        token in prop_oneof!["[0-9.eE+-]{1,30}", "[+-]?[0-9]{0,20}[.]?[0-9]{0,20}", "-?[0-9]{1,3}[.][0-9]{1,19}e-?[0-9]{1,3}"],
        bits in any::<u64>(),
    ) {
        let shortest = format!("{:e}", f64::from_bits(bits));
        for token in [token, format!("{:.16e}", f64::from_bits(bits)), shortest] {
            let taken = f64::take(token.as_bytes(), MarketField::Real);
            // A number that is followed by other characters is left to the caller's check.
            let Some((value, [])) = taken else { continue };
            let expected = token.parse::<f64>().map(f64::to_bits);
            prop_assert_eq!(expected, Ok(value.to_bits()), "{}", token);
        }
    }
}

#[test]
fn a_size_that_is_too_large_is_told_where_the_rest_of_the_line_is_wrong() {
    let text = b"%%MatrixMarket matrix coordinate real symmetric\n5541654170\n";
    assert_eq!(agrees(text, 1, 1), Ok(()));
}

#[test]
fn the_fast_way_is_taken() {
    for (token, expected) in [("1.5", 1.5), ("-2e3", -2000.0), ("1234567890123456789", 1234567890123456789.0)]
    {
        let (value, rest) = f64::take(token.as_bytes(), MarketField::Real).unwrap();
        assert_eq!((value, rest.len()), (expected, 0), "{token}");
    }
    let (value, rest) = f64::take(b"-123456789012345678\n", MarketField::Integer).unwrap();
    assert_eq!((value, rest), (-123456789012345678i64 as f64, &b"\n"[..]));
    let (value, rest) = Complex::take(b"1.5 -2 ", MarketField::Complex).unwrap();
    assert_eq!((value, rest), (Complex::new(1.5, -2.0), &b" "[..]));
    for slow in ["1e999", "inf", "nan", "-inf", "x", "", "-", "."] {
        assert!(f64::take(slow.as_bytes(), MarketField::Real).is_none(), "{slow}");
    }
}

#[test]
fn every_cut_of_every_kind() {
    for (number, kind) in KINDS.into_iter().enumerate() {
        let text = file(kind, &mut SplitMix64::new(number as u64), 0);
        for block in [1, 2, 3, 5, 8, 13, 21, 100, 1 << 20] {
            for chunk in [1, 2, 3, 7, 20, 64, 1 << 20] {
                agrees(&text, block, chunk).unwrap_or_else(|why| panic!("{kind}, {block}, {chunk}: {why}"));
            }
        }
    }
}

#[test]
fn duplicates_in_distant_pieces_add_up_in_the_order_of_the_file() {
    // 1e16 + 1 rounds to 1e16, so another order gives another sum.
    let filler = "2 2 0.125\n".repeat(500);
    let text = format!("{REAL}2 2 1503\n1 1 1e16\n{filler}1 1 1\n{filler}1 1 -1e16\n{filler}");
    for chunk in [1, 30, 4000, 1 << 20] {
        let a = real(read_market_in_pieces(text.as_bytes(), 1000, chunk).unwrap());
        assert_eq!((a.get(0, 0), a.get(1, 1), a.nnz()), (Some(0.0), Some(1500.0 * 0.125), 2));
    }
}

/// Makes a text of several blocks of the reader's default size.
fn long(rows: usize, entries: usize) -> Vec<u8> {
    let mut rng = SplitMix64::new(11);
    let mut text = format!("{REAL}{rows} {rows} {entries}\n").into_bytes();
    for entry in 0..entries {
        if entry % 1000 == 7 {
            text.extend_from_slice(b"% a comment\n\n");
        }
        let (i, j) = (rng.below(rows as u64) + 1, rng.below(rows as u64) + 1);
        writeln!(text, "{i} {j} {:.16e}", rng.value()).unwrap();
    }
    text
}

#[test]
fn several_blocks_of_the_usual_size() {
    let text = long(5000, 600_000);
    assert!(text.len() > 16 << 20, "{}", text.len());
    agrees(&text, 8 << 20, 256 << 10).unwrap();
    let expected = read(&text).unwrap();
    assert!(same(&expected, &read(gzip(&text)).unwrap()));
    assert!(same(&expected, &read_market_in_pieces(&text[..], 100_000, 999).unwrap()));
    // Also in a pool whose only thread is the caller's.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert!(same(&expected, &pool.install(|| read(&text)).unwrap()));
}

#[test]
fn errors_in_the_last_of_many_chunks() {
    let good = long(900, 120_000);
    let lines = good.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let with = |tail: &str| [&good[..], tail.as_bytes()].concat();
    let last = good[..good.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let replaced = |line: &str| [&good[..last], line.as_bytes()].concat();
    let long_line = format!("1 1 1{}", " ".repeat(MAX_LINE));
    for (text, line, part) in [
        (with("1 1 1\n"), lines + 1, "found another entry after 120000, expected the end of the file"),
        (with("\n%\n 1 x"), lines + 3, "found another entry after 120000"),
        (with("%\n\n\n"), 0, ""),
        (good[..last].to_vec(), lines - 1, "after 119999 entries, expected 120000 entries"),
        (replaced("901 1 1"), lines, "found '901', expected a row index from 1 to 900"),
        (replaced("1 1 1e\n"), lines, "found '1e', expected a number"),
        (replaced("1 1 \u{b7}"), lines, "found '·', expected a number"),
        (replaced(&long_line), lines, "found a longer line"),
    ] {
        for (block, chunk) in [(1 << 20, 1 << 16), (70_000, 100), (100, 1)] {
            match read_market_in_pieces(&text[..], block, chunk) {
                Ok(_) => assert_eq!(line, 0, "{part}"),
                Err(MatrixError::Parse { line: at, message }) => {
                    assert!(at == line && message.contains(part), "line {at}, not {line}: {message}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    // The first error is reported, though a later one is in a chunk that is parsed at the same time.
    let mut text = replaced("bad\n");
    let middle = text[..last / 2].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let line = text[..middle].iter().filter(|&&byte| byte == b'\n').count() + 1;
    text.splice(middle..middle, *b"wrong\n");
    let error = read(&text).unwrap_err().to_string();
    assert!(error.starts_with(&format!("line {line}: found 'wrong'")), "{error}");
}

/// Reader of a text followed by a byte pattern without end; counts the bytes that were read.
struct Endless<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    taken: &'a mut usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for slot in &mut *buffer {
            let at = *self.taken;
            let behind = || self.pattern[(at - self.text.len()) % self.pattern.len()];
            *slot = self.text.get(at).copied().unwrap_or_else(behind);
            *self.taken += 1;
        }
        Ok(buffer.len())
    }
}

#[test]
fn endless_texts_come_to_an_end() {
    for (text, pattern, line, part) in [
        ("", "1", 1, "found a longer line"),
        (REAL, "% ", 2, "found a longer line"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 9\n1 1 1\n", "1 ", 4, "found a longer line"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 3\n", "1 1 1\n", 6, "another entry after 3"),
        ("%%MatrixMarket matrix array integer general\n2 2\n", "%\n7\n", 12, "another entry after 4"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 99\n1 1 ", "0", 3, "found a longer line"),
        ("%%MatrixMarket matrix coordinate pattern general\n9 9 99999999999\n", "9 9\n9 x\n", 4, "found 'x'"),
    ] {
        let mut taken = 0;
        let endless = Endless { text: text.as_bytes(), pattern: pattern.as_bytes(), taken: &mut taken };
        let error = read_market(endless).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(part), "{error}");
        assert!(taken < 8 << 20, "{error}: {taken} bytes were read");
    }
    // A compressed file has the same text: 64 MiB in 64 KiB.
    let mut bomb = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    bomb.write_all(format!("{REAL}1 1 1\n1 1 ").as_bytes()).unwrap();
    for _ in 0..64 {
        bomb.write_all(&vec![b'1'; 1 << 20]).unwrap();
    }
    let error = read(bomb.finish().unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("line 3: found a longer line"), "{error}");
}

/// Reader that returns `text` and then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::new(ErrorKind::ConnectionReset, "the cable was cut")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_failure_comes_after_the_lines_before_it() {
    let text = format!("{REAL}2 2 4\n1 1 1\n2 2 2\n1 2 3");
    for (len, error) in [
        (0, "after line 0: the cable was cut"),
        (10, "after line 0: the cable was cut"),
        (REAL.len(), "after line 1: the cable was cut"),
        (REAL.len() + 9, "after line 2: the cable was cut"),
        (text.len(), "after line 4: the cable was cut"),
    ] {
        for (block, chunk) in [(1, 1), (7, 3), (1 << 20, 1 << 20)] {
            let found = read_market_in_pieces(Failing(&text.as_bytes()[..len]), block, chunk).unwrap_err();
            assert_eq!(found.to_string(), error, "{len}");
            assert!(matches!(found, MatrixError::Io(e) if e.kind() == ErrorKind::ConnectionReset));
        }
    }
    let wrong = format!("{REAL}2 2 4\n1 1 1\nx\n1 1 1\n");
    let found = read_market(Failing(wrong.as_bytes())).unwrap_err().to_string();
    assert!(found.starts_with("line 4: found 'x'"), "{found}");
}

/// The error of a damaged stream does not depend on how its text is cut: it is that of a wrong line if the
/// stream yields that line before the damage, else that of the stream.
#[test]
fn damaged_streams_give_the_same_error_in_pieces() {
    let mut rng = SplitMix64::new(7);
    let (mut of_lines, mut of_streams) = (0, 0);
    for round in 0..150 {
        // Up to 150 kB, which are several pieces of the decoder.
        let entries = 40 << rng.below(8);
        let mut text = format!("%%MatrixMarket matrix coordinate real general\n90 90 {entries}\n");
        let wrong = if round % 3 == 0 { entries } else { rng.below(entries) };
        for entry in 0..entries {
            let (row, value) = (1 + entry % 90, rng.next_u64() % 1_000_000);
            text += &if entry == wrong { "0 1 1\n".into() } else { format!("{row} 7 0.{value:06}\n") };
        }
        let mut bytes = gzip(text.as_bytes());
        let at = 20 + rng.below(bytes.len() as u64 - 20) as usize;
        match rng.below(3) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << rng.below(8),
            _ => bytes[at..].fill(0xff),
        }
        let Err(expected) = read(&bytes) else { continue };
        let count = if matches!(expected, MatrixError::Io(_)) { &mut of_streams } else { &mut of_lines };
        *count += 1;
        for (block, chunk) in [(2000, 100), (9000, 1 << 20), (70_000, 5000), (1 << 20, 1 << 20)] {
            let found = read_market_in_pieces(&bytes[..], block, chunk).unwrap_err();
            assert_eq!(found.to_string(), expected.to_string(), "round {round}, blocks of {block}");
        }
    }
    assert!(of_lines > 20 && of_streams > 20, "{of_lines} wrong lines, {of_streams} damaged streams");
}
