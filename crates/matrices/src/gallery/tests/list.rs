//! Tests of the list of matrices with names.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_list_is_in_order() {
    let distinct: BTreeSet<&str> = names().iter().map(|entry| entry.name).collect();
    assert_eq!(distinct.len(), names().len());
    assert!(names().is_sorted_by_key(|entry| entry.set != Set::Comparison));
    for entry in names() {
        let bare = entry.name.strip_suffix(STAND_IN).unwrap_or(entry.name);
        assert!(bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{}", entry.name);
        assert!(find(bare).is_some_and(|found| found.name == entry.name), "{bare}");
        assert!(!entry.description.is_empty() && entry.description.chars().count() <= 80, "{}", entry.name);
    }
}

#[test]
fn our_own_never_change() {
    // Entries, and FNV-1a over rows, columns, offsets and indices.
    let expected: &[(&str, usize, u64)] = &[
        ("lattice4d", 2239488, 0xb6a1_6aea_25f2_d9b7),
        ("wilson6", 1213056, 0xe463_fd7e_dd96_6257),
        ("markov400", 319600, 0x4457_4ec1_6264_085f),
        ("web200k", 783955, 0x57e1_edfe_70b4_b556),
        ("hubs", 477312, 0x8ffd_1efc_717c_fa67),
        ("buses", 2111574, 0x5cf3_518a_7bff_ea6d),
        ("pruned70", 1257680, 0x1c93_4386_83b6_5cb8),
        ("pruned95", 209297, 0x5b88_06d6_484c_5cc6),
        ("pruned98tall", 335941, 0x3758_a80c_9e08_05b2),
        ("skewed90", 844287, 0x4bfa_ac20_d098_8fd7),
        ("arrow", 1799980, 0x94dd_5a16_1c29_2a4f),
        ("hypersparse", 160000, 0xd2b6_adfb_cce2_b516),
        ("gaps", 999400, 0xc54b_6d3a_45b6_5f7d),
        ("shuffled27", 1643032, 0x760a_e95f_ffe4_eeeb),
        ("windowed7", 1810432, 0x074b_18e8_3345_ac55),
        ("blocks16", 2007040, 0xad78_77dd_0877_7db7),
        ("graph5", 717900, 0x410f_5b10_7b71_8e53),
        ("tridiagonal", 2999998, 0x3d41_c826_d884_e621),
        ("band401", 1602296, 0x1e10_498d_dd21_6beb),
        ("tall", 1000000, 0xdff0_4408_9e2d_bd9a),
        ("wide", 1000000, 0x4fd7_34f8_1e56_4fe8),
        ("plate", 10780, 0x2462_96c4_b09e_eda3),
    ];
    let own: Vec<&Named> = names().iter().filter(|entry| entry.set == Set::More).collect();
    let mut found = String::new();
    for entry in &own {
        let a = named(entry.name).unwrap();
        a.validate().unwrap();
        assert!((10_000..=5_000_000).contains(&a.nnz()), "{}: {}", entry.name, a.nnz());
        let words = [a.rows as u64, a.cols as u64].into_iter();
        let words = words.chain(a.offsets.iter().map(|&offset| offset as u64));
        let words = words.chain(a.indices.iter().map(|&col| col as u64));
        let sum =
            words.fold(0xcbf2_9ce4_8422_2325u64, |sum, word| (sum ^ word).wrapping_mul(0x0100_0000_01b3));
        found += &format!("(\"{}\", {}, {sum:#018x}),\n", entry.name, a.nnz());
    }
    let expected: String =
        expected.iter().map(|(name, nnz, sum)| format!("(\"{name}\", {nnz}, {sum:#018x}),\n")).collect();
    assert!(found == expected, "found:\n{found}");
}

#[test]
fn names_with_arguments_and_wrong_ones() {
    assert_eq!(named("poisson7:5").unwrap(), by_name("poisson7:5").unwrap().into_pattern());
    assert_eq!(named("skewed:30x40:0.8:1:7").unwrap(), pruned_skewed(30, 40, 0.8, 1.0, 7).unwrap());
    for (name, part) in [
        ("", "name of a matrix: found '', expected one of mc2depi~, cant~, "),
        ("Cant", "found 'Cant'"),
        ("poisson7", "or a kind with its arguments"),
        ("poisson7:", "N of poisson7:N: found ''"),
        ("cant:3", "kind of matrix: found 'cant', expected one of poisson5:N, "),
    ] {
        let text = named(name).unwrap_err().to_string();
        assert!(text.contains(part), "{name}: {text}");
    }
}

/// A stand-in is called like one in every table, also where an earlier version wrote the table; the matrix that
/// it imitates keeps its name.
#[test]
fn stand_ins_are_told_from_what_they_imitate() {
    let found = [
        ("cant", Some(4_325_625)),
        ("cant", Some(4_007_383)),
        ("cant~", Some(4_325_625)),
        ("cant", None),
        ("dc2:f32", None),
        ("conf5^T", Some(1_916_928)),
        ("band64", None),
        ("cant/level0/A*P", Some(4_325_625)),
    ]
    .map(|(name, nnz)| name_in_table(name, nnz));
    let expected = ["cant~", "cant", "cant~", "cant~", "dc2~:f32", "conf5~^T", "band64", "cant/level0/A*P"];
    assert_eq!(found, expected);
}
