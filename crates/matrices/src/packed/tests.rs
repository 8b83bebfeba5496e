use super::*;
use crate::gallery::by_name;
use crate::SplitMix64;

fn packed(matrix: &OwnedCsr<f64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_real(&mut bytes, matrix).unwrap();
    bytes
}

fn pattern(matrix: &OwnedCsr<f64>) -> OwnedCsr<()> {
    matrix.map_values(|_| ()).unwrap()
}

/// Returns matrices with unusual shapes; they are small, because each bit of their files is flipped.
fn samples() -> Vec<OwnedCsr<f64>> {
    let mut rng = SplitMix64::new(7);
    let mut out = vec![OwnedCsr::from_triplets(0, 0, Vec::<(i32, i32, f64)>::new()).unwrap()];
    for (rows, cols, nnz) in [(1, 1, 1), (3, 0, 0), (0, 9, 0), (40, 1000, 50), (30, 5, 99)] {
        let entry = |_| (rng.below(rows) as i32, rng.below(cols) as i32, rng.value());
        let entries = (0..nnz).map(entry).collect();
        out.push(OwnedCsr::from_triplets(rows as usize, cols as usize, entries).unwrap());
    }
    out
}

/// Returns a pattern in the generator's binary form.
fn generated(matrix: &OwnedCsr<f64>) -> Vec<u8> {
    let sizes = [matrix.rows, matrix.cols, matrix.nnz()];
    let mut out: Vec<u8> = sizes.iter().flat_map(|&size| (size as i64).to_le_bytes()).collect();
    out.extend(matrix.offsets.iter().flat_map(|&offset| (offset as i32).to_le_bytes()));
    out.extend(matrix.indices.iter().flat_map(|col| col.to_le_bytes()));
    out
}

#[test]
fn round_trips() {
    for matrix in samples() {
        let bytes = packed(&matrix);
        let mut out = Vec::new();
        write_pattern(&mut out, &matrix).unwrap();
        let expected = pattern(&matrix);
        assert_eq!(read_packed(&out[..]).unwrap(), PackedMatrix::Pattern(expected));
        assert_eq!(read_generated(&generated(&matrix)[..]).unwrap(), pattern(&matrix));
        assert_eq!(read_packed(&bytes[..]).unwrap(), PackedMatrix::Real(matrix));
    }
}

#[test]
fn values_keep_their_bits() {
    let bits = [0, 1, 1 << 63, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_1234, 0x3ff5_5555_5555_5555];
    let entries = bits.iter().enumerate().map(|(i, &bits)| (0, i as i32, f64::from_bits(bits))).collect();
    let matrix = OwnedCsr::from_triplets(1, bits.len(), entries).unwrap();
    match read_packed(&packed(&matrix)[..]).unwrap() {
        PackedMatrix::Real(back) => assert!(back.values.iter().map(|v| v.to_bits()).eq(bits)),
        PackedMatrix::Pattern(_) => panic!("the values are gone"),
    }
}

#[test]
fn a_regular_pattern_takes_few_bytes() {
    let matrix = by_name("poisson5:200").unwrap();
    let mut out = Vec::new();
    write_pattern(&mut out, &matrix).unwrap();
    assert!(out.len() * 50 < matrix.nnz(), "{} bytes for {} entries", out.len(), matrix.nnz());
}

#[test]
fn every_truncation_is_an_error() {
    for matrix in samples() {
        for bytes in [packed(&matrix), generated(&matrix)] {
            for len in 0..bytes.len() {
                assert!(read_packed(&bytes[..len]).is_err());
                assert!(read_generated(&bytes[..len]).is_err());
            }
            let more = [&bytes[..], &[0]].concat();
            assert!(read_packed(&more[..]).is_err() && read_generated(&more[..]).is_err());
        }
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless() {
    for matrix in samples() {
        let mut bytes = packed(&matrix);
        let expected = PackedMatrix::Real(matrix);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            // gzip's header has bits without effect (its time, its system), so the matrix may still be read.
            assert!(read_packed(&bytes[..]).map_or(true, |found| found == expected));
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    // The plain form has no checksum, so damage may go unnoticed, but the result must be a valid matrix.
    for matrix in samples() {
        let mut bytes = generated(&matrix);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = read_generated(&bytes[..]) {
                found.validate().unwrap();
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Makes a container around a stream that no writer produces.
fn container(stream: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(MAGIC.to_vec(), Compression::fast());
    encoder.write_all(stream).unwrap();
    encoder.finish().unwrap()
}

/// Makes a stream of `kind`, the sizes, and varints.
fn stream(kind: u8, sizes: [u64; 3], rest: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
    out.extend(rest);
    out
}

#[test]
fn lies_are_found() {
    let read = |kind, sizes, rest: &[u8]| read_packed(&container(&stream(kind, sizes, rest))[..]);
    // One row with two entries in columns 1 and 3.
    assert!(read(0, [1, 4, 2], &[4, 2, 1]).is_ok());
    let overlong = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let lies: [(u8, [u64; 3], &[u8], &str); 12] = [
        (7, [1, 4, 2], &[4, 2, 1], "kind"),
        (0, [1, 4, 2], &[4, 2, 2], "a column of row 0"),
        (0, [1, 4, 2], &[4, 1, 1], "a column of row 0"),
        (0, [1, 4, 2], &[6, 2, 1], "entries of row 0"),
        (0, [1, 4, 2], &[3, 2, 1], "entries of row 0"),
        (0, [1, 4, 2], &[2, 2], "entries of all rows"),
        (0, [1, 4, 2], &[4, 2, 1, 0], "end of the matrix"),
        (0, [1, 4, 2], &overlong, "varint"),
        (0, [1, 4, 9], &[], "entries"),
        (0, [u64::MAX, 4, 2], &[], "rows"),
        (0, [1, 1 << 31, 2], &[], "columns"),
        (0, [1 << 30, 1, 2], &[], "rows and columns"),
    ];
    for (kind, sizes, rest, place) in lies {
        let error = read(kind, sizes, rest).unwrap_err().to_string();
        assert!(error.starts_with(place), "{error}");
    }
    // Announced entries that are missing are noticed before anything is allocated for them.
    assert!(read(1, [1 << 20, 1 << 20, 1 << 40], &[]).is_err());
    let mut huge: Vec<u8> =
        [1i64 << 30, 1 << 30, 1 << 50].iter().flat_map(|size| size.to_le_bytes()).collect();
    huge.extend([0; 64]);
    assert!(read_generated(&huge[..]).is_err());
    assert!(read_generated(&[0xff; 64][..]).is_err());
}
