//! Writer of patterns: files of `pattern` entries, which have no values.

use std::io::Write;

use super::Result;
use crate::owned::OwnedCsr;

/// Number of bytes that are collected before they are written.
const BLOCK: usize = 1 << 16;
/// Length in bytes of the longest line: two numbers of 10 digits, a blank, an end.
const LINE: usize = 22;

/// Writes the pattern of `matrix` as a general coordinate file without values. Error: `Io`.
pub fn write_market_pattern<W: Write, V>(mut writer: W, matrix: &OwnedCsr<V>) -> Result<()> {
    writeln!(writer, "%%MatrixMarket matrix coordinate pattern general")?;
    writeln!(writer, "{} {} {}", matrix.rows, matrix.cols, matrix.nnz())?;
    let mut block = Vec::with_capacity(BLOCK + LINE);
    for row in 0..matrix.rows {
        for &col in matrix.row(row).0 {
            push_number(&mut block, row as u32 + 1);
            block.push(b' ');
            push_number(&mut block, col as u32 + 1);
            block.push(b'\n');
            if block.len() >= BLOCK {
                writer.write_all(&block)?;
                block.clear();
            }
        }
    }
    writer.write_all(&block)?;
    writer.flush()?;
    Ok(())
}

/// Appends the decimal digits of `number`: several times as fast as `write!`, which is noticeable for large
/// matrices.
fn push_number(out: &mut Vec<u8>, number: u32) {
    let mut digits = [0; 10];
    let (mut first, mut rest) = (digits.len(), number);
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::rectangular;
    use crate::market::{read_market, MarketField};

    #[test]
    fn patterns_come_back() {
        for (rows, cols) in [(300, 12_345), (1, 1), (0, 4), (4, 0), (5000, 30)] {
            let matrix = rectangular(rows, cols, 0.05, 3).unwrap();
            let mut text = Vec::new();
            write_market_pattern(&mut text, &matrix).unwrap();
            let found = read_market(&text[..]).unwrap();
            assert_eq!(found.header.field, MarketField::Pattern);
            let crate::market::MarketValues::Real(found) = found.values else { panic!() };
            assert_eq!(found, matrix.map_values(|_| 1.0).unwrap());
        }
    }

    #[test]
    fn numbers_have_their_digits() {
        for number in [0, 9, 10, 1_000_000_009, u32::MAX] {
            let mut out = Vec::new();
            push_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
