//! Tests of `market`.

mod pieces;
mod rate;
mod slow;

use std::fmt::Display;

use super::*;
use crate::gallery::rectangular;
use crate::SplitMix64;
use flate2::write::GzEncoder;

const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";

fn read(text: impl AsRef<[u8]>) -> Result<MarketMatrix> {
    let matrix = read_market(text.as_ref())?;
    let size = match &matrix.values {
        MarketValues::Real(a) => a.validate().map(|()| (a.rows, a.cols)),
        MarketValues::Complex(a) => a.validate().map(|()| (a.rows, a.cols)),
    };
    assert_eq!(size.unwrap(), (matrix.rows, matrix.cols));
    Ok(matrix)
}

fn real(matrix: MarketMatrix) -> OwnedCsr<f64> {
    match matrix.values {
        MarketValues::Real(a) => a,
        MarketValues::Complex(_) => panic!("not real"),
    }
}

/// Formats the entries as "row,column=value ", indices from 1.
fn show(matrix: MarketMatrix) -> String {
    fn rows<V: Copy + Display>(a: &OwnedCsr<V>) -> String {
        let row = |i: usize| a.row(i).0.iter().zip(a.row(i).1);
        let cell = |i, (j, v)| format!("{},{}={v} ", i + 1, j + 1);
        let cells = (0..a.rows).flat_map(|i| row(i).map(move |(&j, &v)| cell(i, (j, v))));
        cells.collect()
    }
    match matrix.values {
        MarketValues::Real(a) => rows(&a),
        MarketValues::Complex(a) => rows(&a),
    }
}

/// Splits a table's lines into cells: `|` separates cells, `/` stands for a line's end in a file.
fn table<const N: usize>(text: &'static str) -> impl Iterator<Item = [String; N]> {
    text.lines().map(|line| {
        let cells = line.split('|').map(|cell| cell.trim().replace('/', "\n"));
        cells.collect::<Vec<_>>().try_into().unwrap()
    })
}

const GOOD: &str = "\
coordinate real general           | 2 3 3/1 3 1.5/2 1 -2/1 1 .5e1 | 1,1=5 1,3=1.5 2,1=-2
coordinate integer general        | 2 2 3/2 1 -7/1 1 0/2 1 10     | 1,1=0 2,1=3
coordinate integer symmetric      | 2 2 3/2 1 -7/1 1 0/2 1 10     | 1,1=0 1,2=3 2,1=3
coordinate real skew-symmetric    | 2 2 3/2 1 -7/1 1 0/2 1 10     | 1,1=0 1,2=-3 2,1=3
coordinate pattern general        | 2 2 2/2 1/2 2                 | 2,1=1 2,2=1
coordinate pattern symmetric      | 2 2 2/2 1/2 2                 | 1,2=1 2,1=1 2,2=1
coordinate complex general        | 2 2 2/2 1 3 4/1 1 5 -1        | 1,1=5-1i 2,1=3+4i
coordinate complex symmetric      | 2 2 2/2 1 3 4/1 1 5 -1        | 1,1=5-1i 1,2=3+4i 2,1=3+4i
coordinate complex skew-symmetric | 2 2 2/2 1 3 4/1 1 0 0         | 1,1=0+0i 1,2=-3-4i 2,1=3+4i
coordinate complex hermitian      | 2 2 2/2 1 3 4/1 1 5 0         | 1,1=5+0i 1,2=3-4i 2,1=3+4i
array real general                | 2 3/1/2/3/4/5/0               | 1,1=1 1,2=3 1,3=5 2,1=2 2,2=4 2,3=0
array integer symmetric           | 2 2/1/2/3                     | 1,1=1 1,2=2 2,1=2 2,2=3
array real skew-symmetric         | 3 3/1/2/3                     | 1,2=-1 1,3=-2 2,1=1 2,3=-3 3,1=2 3,2=3
array complex hermitian           | 2 2/1 0/2 3/4 0               | 1,1=1+0i 1,2=2-3i 2,1=2+3i 2,2=4+0i
array real general                | 0 3                           |
array real skew-symmetric         | 1 1                           |
COORDINATE Real gEnErAl           | 1 1 1/1 1 -infinity           | 1,1=-inf
coordinate real general           | 1 1 1/+1 1 1e-400             | 1,1=0
coordinate real general           | 1 1 1/1 1 1.25D+01            | 1,1=12.5";

#[test]
fn files_of_every_kind() {
    for [kind, body, expected] in table(GOOD) {
        let text = format!("%%MatrixMarket matrix {kind}\n{body}");
        assert_eq!(show(read(&text).unwrap()).trim_end(), expected, "{text}");
        assert_eq!(show(read(text + "\n").unwrap()).trim_end(), expected);
    }
    let header = read("%%MatrixMarket matrix array complex hermitian\n0 0").unwrap().header;
    let (format, field) = (MarketFormat::Array, MarketField::Complex);
    assert_eq!((header.format, header.field), (format, field));
    assert_eq!(header.symmetry, MarketSymmetry::Hermitian);
}

#[test]
fn liberties_that_files_take() {
    let text = b"%%matrixmarket Matrix coordinate real general\r\n% by \xff\r\n\r\n \t\r\n%\r\n\
        2\t2  3 \r\n\r\n1 1 1.0D+03\r\n% in between\r\n 2 2 -2.5d-1\r\n1 2 +Inf\r\n\r\n%";
    assert_eq!(show(read(text).unwrap()), "1,1=1000 1,2=inf 2,2=-0.25 ");
}

const BAD: &str = "\
csr                                     | 1 | found 'csr', expected coordinate or array
array pattern general                   | 1 | found 'pattern', expected real or integer or complex
coordinate double general               | 1 | found 'double', expected real or integer or complex or p
coordinate pattern skew-symmetric       | 1 | found 'skew-symmetric', expected general or symmetric
coordinate real hermitian               | 1 | found 'hermitian', expected general or symmetric or skew
coordinate real                         | 1 | found the end of the line, expected general
coordinate real general twice           | 1 | found 'twice', expected the end of the line
coordinate real general                 | 1 | found the end of the file, expected the line of sizes
coordinate real general//%/             | 3 | found the end of the file, expected the line of sizes
coordinate real general/3 3             | 2 | found the end of the line, expected the number of entries
coordinate real general/3 -3 1          | 2 | found '-3', expected the number of columns
coordinate real general/3 3 1 1         | 2 | found '1', expected the end of the line
coordinate real general/3 3 99999999999999999999 | 2 | expected the number of entries
coordinate real symmetric/2 3 0         | 2 | found 2 x 3, expected as many rows as columns
array complex hermitian/0 2/1             | 2 | found 0 x 2, expected as many rows as columns
coordinate real general/2 2 1//0 1 1    | 4 | found '0', expected a row index from 1 to 2
coordinate real general/2 3 1/1 4 1     | 3 | found '4', expected a column index from 1 to 3
coordinate real general/2 2 1/1.0 1 1   | 3 | found '1.0', expected a row index from 1 to 2
coordinate real general/2 2 1/1 99999999999999999999 1 | 3 | expected a column index
coordinate real general/0 0 1/1 1 1     | 3 | found '1', expected a row index from 1 to 0
coordinate real general/2 2 1/1 1       | 3 | found the end of the line, expected a number
coordinate real general/2 2 1/1 1 1 0   | 3 | found '0', expected the end of the line
coordinate real general/2 2 1/1 1 0x10  | 3 | found '0x10', expected a number
coordinate real general/2 2 1/1 1 1e999 | 3 | found '1e999', expected a number in the range of f64
coordinate real general/2 2 1/1 1 1d5d5 | 3 | found '1d5d5', expected a number
coordinate real general/2 2 2/1 1 1     | 3 | after 1 entries, expected 2 entries
coordinate real general/2 2 1/1 1 1/%/2 2 2 | 5 | found another entry after 1, expected the end
coordinate real general/2 2 18446744073709551615/1 1 1 | 3 | expected 18446744073709551615 entries
coordinate pattern general/1 1 1/1 1 1  | 3 | found '1', expected the end of the line
coordinate integer general/1 1 1/1 1 1. | 3 | found '1.', expected a 64-bit integer
coordinate complex general/1 1 1/1 1 1  | 3 | found the end of the line, expected a number
coordinate real symmetric/2 2 1/1 2 1   | 3 | found (1, 2) above the diagonal, expected entries
coordinate real skew-symmetric/2 2 1/1 1 1 | 3 | expected 0 in a skew-symmetric matrix
coordinate complex skew-symmetric/2 2 1/1 1 0 1 | 3 | expected 0 in a skew-symmetric matrix
coordinate complex hermitian/1 1 1/1 1 1 1 | 3 | expected an imaginary part of 0
array complex hermitian/1 1/nan 1       | 3 | expected an imaginary part of 0
array real general/2 1/1                | 3 | after 1 entries, expected 2 entries
array real general/1 1/1/2              | 4 | found another entry after 1
array real general/1 2/1 2              | 3 | found '2', expected the end of the line
array real general/2147483647 2147483647/1 | 3 | expected 4611686014132420609 entries";

#[test]
fn errors_name_line_found_and_expected() {
    let good_start = |[text, line, part]: [String; 3]| {
        let text = format!("%%MatrixMarket matrix {text}");
        (text.into_bytes(), line.parse().unwrap(), part)
    };
    let others = [
        (Vec::new(), 1, "found an empty file, expected %%MatrixMarket"),
        (b"\n".to_vec(), 1, "found the end of the line, expected %%MatrixMarket"),
        (b"%MatrixMarket".to_vec(), 1, "found '%MatrixMarket', expected %%MatrixMarket"),
        (b"%%MatrixMarket vector".to_vec(), 1, "found 'vector', expected matrix"),
        (
            format!("{REAL}{}", " ".repeat(MAX_LINE + 1)).into(),
            2,
            "found a longer line, expected at most 65536",
        ),
        (format!("{REAL}{:9<99}", 9).into(), 2, "found '9999999999999999999999999999999999999999…'"),
        ([REAL.as_bytes(), b"1 1 \xff5\n"].concat(), 2, r"found the bytes \xff, expected text"),
    ];
    let others = others.map(|(text, line, part)| (text, line, part.to_string()));
    for (text, line, part) in table(BAD).map(good_start).chain(others) {
        match read(&text).unwrap_err() {
            MatrixError::Parse { line: at, message } => {
                let text = text.escape_ascii();
                assert!(at == line && message.contains(&part), "{text}: line {at}: {message}");
            }
            other => panic!("{}: {other}", text.escape_ascii()),
        }
    }
}

#[test]
fn sizes_are_not_believed() {
    let sized = |body: &str| read(format!("{REAL}{body}"));
    for (body, part) in [
        ("2000000000 2000000000 0", "of a file with 0 entries: found 4000000000"),
        ("16777217 0 0", "expected at most 16777216"),
        ("173 16777300 1\n1 1 1", "found 16777473, expected at most 16777472"),
        ("2147483648 1 0", "line 2: number of rows: found 2147483648"),
        ("1 1000000000000000000 1", "line 2: number of columns: found 1000000000000000000"),
    ] {
        let error = sized(body).unwrap_err();
        assert!(matches!(error, MatrixError::TooLarge { .. }), "{body}: {error}");
        assert!(error.to_string().contains(part), "{body}: {error}");
    }
    assert_eq!(sized("172 16777300 1\n1 1 1").unwrap().cols, 16777300);
    // The error says which numbers of the file are meant, and what the limit is.
    let error = sized("% two thousand million\n2000000000 2000000000 1\n1 1 1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "rows and columns that line 3 announces (2000000000 and 2000000000; their sum may be 2^24 and 256 \
         more for each entry, so that a short file cannot make the reader allocate long arrays), of a file \
         with 1 entry: found 4000000000, expected at most 16777472"
    );
}

#[test]
fn other_kinds_of_files_are_told_by_their_names() {
    let mut tar = b"west0067/west0067.mtx".to_vec();
    tar.resize(257, 0);
    tar.extend_from_slice(b"ustar\x0000");
    tar.extend_from_slice(REAL.as_bytes());
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80".to_vec();
    let elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec();
    let mut packed = Vec::new();
    let plate = rectangular(3, 3, 0.5, 1).unwrap();
    crate::packed::write_pattern(&mut packed, &plate).unwrap();
    let doubles = [1.5f64, 2.5, -3.5].map(f64::to_le_bytes).concat();
    for (bytes, kind) in [
        (png, "a PNG image"),
        (elf, "an ELF file"),
        (tar, "a tar archive, whose files must be unpacked first"),
        (packed, "a packed matrix of this program (.tsm)"),
        (gzip(REAL.as_bytes()), "gzip data inside of gzip data"),
        (b"PK\x03\x04\x14\0\0\0".to_vec(), "a zip archive"),
        (b"<!DOCTYPE html>\n<html>".to_vec(), "an HTML or XML page"),
        (doubles, "binary data"),
    ] {
        // Also compressed: a file of another kind may be gzipped, too.
        for text in [gzip(&bytes), bytes] {
            if text.starts_with(&gzip(REAL.as_bytes())) {
                continue;
            }
            let error = read(&text).unwrap_err().to_string();
            let expected = "expected the text of a Matrix Market file, which starts with %%MatrixMarket";
            assert!(error.starts_with(&format!("line 1: found {kind}")), "{kind}: {error}");
            assert!(error.ends_with(expected), "{kind}: {error}");
            // The error does not depend on the cuts: the mark can be longer than a line, and than a block.
            let in_pieces = read_market_in_pieces(&text[..], 3, 2).unwrap_err().to_string();
            assert_eq!(in_pieces, error, "{kind}");
        }
    }
    // An error in a Matrix Market header is reported as such, even if the header has binary data.
    let error = read("%%MatrixMarket matrix coordinate real\0 general").unwrap_err();
    assert!(error.to_string().contains("expected real or integer"), "{error}");
}

/// Blank lines and comments are skipped many at a time, since a little gzip holds billions of them.
#[test]
fn blank_lines_and_comments_take_no_time() {
    let seconds = |text: &str| {
        let start = std::time::Instant::now();
        read(text).unwrap();
        start.elapsed().as_secs_f64()
    };
    let entries = format!("{REAL}1 1 150000\n{}", "1 1 1\n".repeat(150_000));
    // Other programs run on this machine, too, so the least of several times counts; turns are repeated as
    // often as needed.
    let is_faster = |text: &str| {
        let mut least = [f64::INFINITY; 2];
        (0..60).any(|turn| {
            least = [least[0].min(seconds(text)), least[1].min(seconds(&entries))];
            turn >= 4 && least[0] < least[1]
        })
    };
    // There are fewer lines that start with blanks, which take more steps, so that each time is far from both
    // the time of a line-by-line reader and the time of the entries.
    for (line, count) in [("\n", 800_000), ("%\n", 800_000), ("\r\n", 200_000), (" %\n", 200_000)] {
        let skipped = line.repeat(count);
        let places = [
            ("sizes", format!("{REAL}{skipped}1 1 1\n1 1 1\n")),
            ("entries", format!("{REAL}1 1 1\n1 1 1\n{skipped}")),
            ("array", format!("%%MatrixMarket matrix array real general\n1 1\n{skipped}3\n")),
        ];
        for (place, text) in places {
            let line = line.escape_default();
            assert!(is_faster(&text), "{place}: {count} lines '{line}' take longer than 150,000 entries");
        }
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn round_trip_plain_and_gzipped() {
    let a = rectangular(40, 90, 0.2, 5).unwrap();
    let mut edges = [5e-324, -0.0, f64::MAX, f64::INFINITY, f64::MIN_POSITIVE, 0.1].into_iter();
    let a = a.map_values(|v| edges.next().unwrap_or(v)).unwrap();
    let mut text = Vec::new();
    write_market(&mut text, &a).unwrap();
    let expected = read(&text).unwrap();
    let b = real(read(&text).unwrap());
    let bits = |a: &OwnedCsr<f64>| a.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!((&a, bits(&a)), (&b, bits(&b)));
    let whole = gzip(&text);
    assert_eq!(read(&whole).unwrap(), expected);
    let (head, tail) = text.split_at(777);
    let members = [gzip(head), gzip(tail)].concat();
    assert_eq!(read(&members).unwrap(), expected);
    // A stream that is cut anywhere is an error, and so is one flipped bit of the checksum.
    for len in (3..whole.len()).step_by(97).chain([whole.len() - 1]) {
        let error = read(&whole[..len]).unwrap_err();
        assert!(matches!(error, MatrixError::Io(_)), "{len}: {error}");
        assert!(error.to_string().starts_with("after line "), "{len}: {error}");
    }
    let mut damaged = whole;
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    assert!(matches!(read(damaged), Err(MatrixError::Io(_))));
    assert!(matches!(read_market_file("no/such/file"), Err(MatrixError::Io(_))));
}

/// Reader that returns one byte at a time, between interruptions.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn any_reader_will_do() {
    let text = format!("{REAL}1 2 1\n1 2 3\n");
    let expected = read(&text).unwrap();
    assert_eq!(read_market(Trickle(text.as_bytes(), false)).unwrap(), expected);
    let zipped = gzip(text.as_bytes());
    assert_eq!(read_market(Trickle(&zipped, true)).unwrap(), expected);
}

#[test]
fn damaged_files_never_panic() {
    let spice = b"0123456789 \n\r%.-+eEdDx\xff\x00";
    let mut rng = SplitMix64::new(99);
    let mut accepted = 0;
    for (round, [kind, body, _]) in (0..400).flat_map(|_| table(GOOD)).enumerate() {
        let mut bytes = format!("%%MatrixMarket matrix {kind}\n{body}\n").into_bytes();
        // Seven rounds in eight leave the header intact, since errors there end the reading at once.
        let start = if round % 8 == 0 { 0 } else { 24 + kind.len() };
        for _ in 0..=rng.below(2) {
            let at = start + rng.below((bytes.len() - start) as u64) as usize;
            let new = spice[rng.below(spice.len() as u64) as usize];
            match rng.below(4) {
                0 => bytes.insert(at, new),
                1 => bytes.truncate(at + 1),
                2 if bytes.len() > start + 1 => drop(bytes.remove(at)),
                _ => bytes[at] = new,
            }
        }
        accepted += usize::from(read(&bytes).is_ok());
    }
    assert!((400..7200).contains(&accepted), "both ends are met: {accepted}");
}
