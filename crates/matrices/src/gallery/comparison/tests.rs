use super::super::{name_in_table, named, names, Set, STAND_IN};
use super::libstdcxx_hash;

/// Name, rows, columns, entries, and FNV-1a over the words of the offsets and the columns, of the files that
/// the C++ generator writes (g++ 12.2, glibc 2.36).
const EXPECTED: [(&str, usize, usize, usize, u64); 25] = [
    ("mc2depi~", 525825, 525825, 2100225, 0x2272_16cc_36ae_c88e),
    ("cant~", 62451, 62451, 4325625, 0x5948_bbd2_ef09_0d86),
    ("consph~", 83700, 83700, 6342336, 0xf230_77b9_59d7_ac61),
    ("pwtk~", 217740, 217740, 11675808, 0xa657_c93b_7e29_8c0f),
    ("shipsec1~", 140454, 140454, 7518564, 0x621e_a57f_5022_addd),
    ("conf5~", 49152, 49152, 1916928, 0x258a_c5b3_0edd_be3f),
    ("webbase~", 1000005, 1000005, 2872605, 0x354c_8085_3431_c9b5),
    ("rmat20", 1048576, 1048576, 16087004, 0x81d0_dfb9_a3ad_56c3),
    ("rmat16", 65536, 65536, 494132, 0x3872_439c_1c19_e982),
    ("hpcg128", 2097152, 2097152, 55742968, 0x5ea4_a41f_dadf_7f7f),
    ("poisson160", 4096000, 4096000, 28518400, 0xd2f6_583e_1797_6273),
    ("cop20k~", 120000, 120000, 2207592, 0xe439_36f2_9d8d_e6a5),
    ("scircuit~", 170998, 170998, 954252, 0xad7a_54df_ba35_b219),
    ("dc2~", 116835, 116835, 758701, 0x3e3d_1418_ceef_27d2),
    ("uniform", 200000, 200000, 3199867, 0x9860_914a_b600_ea11),
    ("mip1~", 66463, 66463, 12162315, 0x89af_6870_2fa6_f272),
    ("si41~", 185193, 185193, 13660545, 0x6a29_c281_fe8a_8a32),
    ("gupta3~", 16783, 16783, 9635799, 0x1dc5_542e_7f41_7172),
    ("tsopf~", 38120, 38120, 15490745, 0x4c85_256e_0dae_a7ee),
    ("band64", 16384, 16384, 1047552, 0x5d7a_3ad3_29ba_7cbf),
    ("band256", 16384, 16384, 4177920, 0x65ea_687a_33bf_a75f),
    ("band1024", 16384, 16384, 16515072, 0x1267_66c8_456e_7ddf),
    ("dnn90", 4096, 4096, 1678790, 0x7942_5796_8879_167f),
    ("dnn80", 4096, 4096, 3355041, 0x84d4_baa1_7629_42be),
    ("mac_econ~", 206500, 206500, 1207313, 0x0b0c_d3b4_eda7_f9e3),
];

/// Returns whether a matrix is small enough for a build without optimisation. These matrices make up about a
/// seventh of all entries, which such a build makes in a bearable time.
fn is_small(nnz: usize) -> bool {
    nnz < 5_000_000
}

#[test]
fn the_generators_matrices_to_the_entry() {
    let listed = names().iter().filter(|entry| entry.set == Set::Comparison).map(|entry| entry.name);
    assert!(listed.eq(EXPECTED.iter().map(|expected| expected.0)), "the list is complete");
    for (name, _, _, nnz, _) in EXPECTED.iter().filter(|(name, ..)| name.ends_with(STAND_IN)) {
        assert_eq!(
            name_in_table(name.trim_end_matches(STAND_IN), Some(*nnz)),
            *name,
            "the entries of a stand-in"
        );
    }
    for (name, rows, cols, nnz, sum) in EXPECTED {
        if cfg!(debug_assertions) && !is_small(nnz) {
            continue;
        }
        let matrix = named(name).unwrap();
        matrix.validate().unwrap();
        assert_eq!((matrix.rows, matrix.cols, matrix.nnz()), (rows, cols, nnz), "{name}");
        let words = matrix.offsets.iter().map(|&offset| offset as u64);
        let words = words.chain(matrix.indices.iter().map(|&col| col as u64));
        let found =
            words.fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| (sum ^ word).wrapping_mul(0x0100_0000_01b3));
        assert_eq!(found, sum, "{name}: {found:#018x}");
    }
}

#[test]
fn seeds_are_those_of_the_standard_library() {
    // Printed by a C++ program for: no bytes, a tail, a word, a word and a tail, two words and a tail.
    for (text, hash) in [
        ("", 0x553e_9390_1e46_2a6e),
        ("a", 0x454d_dee4_88c1_ed6b),
        ("band1024", 0x21b9_2a12_50c6_5290),
        ("poisson160", 0x4339_f3a4_f91c_bee7),
        ("0123456789abcdefX", 0x86e0_5153_0607_065f),
    ] {
        assert_eq!(libstdcxx_hash(text), hash, "{text}");
    }
}
