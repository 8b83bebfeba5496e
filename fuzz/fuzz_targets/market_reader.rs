//! Any bytes as a Matrix Market file: an error or a valid matrix, never a
//! panic, an abort or more memory than the bytes account for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tarsia::matrix::market::{read_market, MarketValues};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(matrix) = read_market(bytes) {
        match &matrix.values {
            MarketValues::Real(csr) => csr.validate().expect("what the reader gives is valid"),
            MarketValues::Complex(csr) => csr.validate().expect("what the reader gives is valid"),
        }
    }
});
