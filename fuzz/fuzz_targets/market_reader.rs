//! Any bytes as a Matrix Market file: an error or a valid matrix, never a
//! panic, an abort or more memory than the bytes account for; and the same
//! however the text is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tarsia::matrix::market::{read_market, read_market_in_pieces, MarketValues};

fuzz_target!(|bytes: &[u8]| {
    let whole = read_market(bytes);
    // Sizes from the bytes, so that the fuzzer can move the borders.
    let size = |back: usize| 1 + bytes.len().checked_sub(back).map_or(0, |at| usize::from(bytes[at]));
    let pieces = read_market_in_pieces(bytes, size(1), size(2));
    // Debug text, because NaN is not equal to itself.
    match (&whole, &pieces) {
        (Ok(a), Ok(b)) => assert_eq!(format!("{a:?}"), format!("{b:?}")),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("whole: {a:?}, in pieces: {b:?}"),
    }
    if let Ok(matrix) = whole {
        match &matrix.values {
            MarketValues::Real(csr) => csr.validate().expect("what the reader gives is valid"),
            MarketValues::Complex(csr) => csr.validate().expect("what the reader gives is valid"),
        }
    }
});
