//! The checksum of files and buffers that the library writes, which detects damage when they are read back.

/// Returns the 64-bit FNV-1a hash (Fowler, Noll, Vo). Each step is a bijection of the sum, so a change of one
/// byte always changes the result.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from the authors' table (draft-eastlake-fnv, appendix C).
    #[test]
    fn sums_are_those_of_the_definition() {
        let cases =
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
        for (text, sum) in cases {
            assert_eq!(fnv1a(text.as_bytes()), sum, "{text}");
        }
    }
}
