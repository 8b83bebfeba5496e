//! Any bytes as a Matrix Market file: an error or a valid matrix, never a
//! panic, an abort or more memory than the bytes account for; and the same
//! however the text is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use matrices::market::{read_market, read_market_in_pieces, MarketValues};

fuzz_target!(|bytes: &[u8]| {
    let whole = read_market(bytes);
    // Sizes from the bytes, so that the fuzzer can move the borders.
    let size = |back: usize| 1 + bytes.len().checked_sub(back).map_or(0, |at| usize::from(bytes[at]));
    let pieces = read_market_in_pieces(bytes, size(1), size(2));
    match (&whole, &pieces) {
        (Ok(a), Ok(b)) => same(&a.values, &b.values),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("whole: {}, in pieces: {}", a.is_ok(), b.is_ok()),
    }
    if let Ok(matrix) = whole {
        match &matrix.values {
            MarketValues::Real(csr) => csr.validate().expect("what the reader gives is valid"),
            MarketValues::Complex(csr) => csr.validate().expect("what the reader gives is valid"),
        }
    }
});

fn same(a: &MarketValues, b: &MarketValues) {
    match (a, b) {
        (MarketValues::Real(a), MarketValues::Real(b)) => {
            assert!(a.offsets == b.offsets && a.indices == b.indices);
            // Bits, because NaN is not equal to itself.
            assert!(a.values.iter().zip(&b.values).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        (MarketValues::Complex(a), MarketValues::Complex(b)) => {
            assert!(a.offsets == b.offsets && a.indices == b.indices);
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
            assert!(a.values.iter().zip(&b.values).all(|(a, b)| same(a.re, b.re) && same(a.im, b.im)));
        }
        _ => panic!("real or complex"),
    }
}
