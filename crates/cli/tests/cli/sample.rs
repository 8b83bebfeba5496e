//! `tarsia sample`: the table of training data that it writes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;

use super::{assert_has, error, stderr, tarsia, Folder};

/// Returns the fields of the lines behind the line of column names.
fn lines(text: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| line.starts_with('#'));
    assert_eq!(lines.next(), Some("number\tmatrix\trows\tcols\tnnz\top\tprecision\tn\tnumbers\ttimes"));
    lines.map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

/// Runs the command successfully; returns the table that it writes.
#[track_caller]
fn sample(arguments: &[&str]) -> String {
    let folder = Folder::new();
    let out = folder.path("out.tsv.gz");
    let output =
        tarsia(&[&["sample", "--backend", "host", "--repeat", "1", "--out", &out], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(out).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Returns how many numbers each operation has, from the lines that name them.
fn names(text: &str) -> BTreeMap<String, usize> {
    let of = |line: &str| {
        let mut words = line.split(' ').skip(2).map(str::to_string);
        (words.next().unwrap(), words.count())
    };
    text.lines().filter(|line| line.starts_with("# names ")).map(of).collect()
}

#[test]
fn drawn_matrices_have_numbers_and_times() {
    let arguments = ["--count", "4", "--seed", "5", "--least", "60", "--most", "200", "--groups", "2"];
    let text = sample(&arguments);
    let (names, found) = (names(&text), lines(&text));
    assert_eq!(names.keys().collect::<Vec<_>>(), ["matrix", "spgemm", "spmm"]);
    assert_eq!(names["matrix"], 24);
    let numbers: BTreeSet<_> = found.iter().map(|line| line[0].clone()).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    for line in &found {
        let is_matrix = line[5] == "matrix";
        // SpMV and row orders have no numbers.
        assert_eq!(line[8].split_whitespace().count(), *names.get(&line[5]).unwrap_or(&0), "{line:?}");
        assert_eq!(line[9].is_empty(), is_matrix, "{line:?}");
        for time in line[9].split(' ').filter(|_| !is_matrix) {
            let parts: Vec<_> = time.split(':').collect();
            let number = |at: usize| parts[at].parse::<f64>().unwrap();
            assert!(parts.len() == 4 && number(1) >= 0.0 && number(2) > 0.0 && number(3) >= 0.0, "{line:?}");
        }
    }
    // Each matrix is measured in two groups, except for groups that do not suit it.
    assert!(found.iter().filter(|line| line[5] != "matrix").count() >= 6);
    // A second run has the same matrices and numbers, in whatever order the threads made them.
    let counted = |text: &str| {
        let mut lines: Vec<_> = lines(text).into_iter().map(|line| line[..9].to_vec()).collect();
        lines.sort();
        lines
    };
    assert_eq!(counted(&text), counted(&sample(&[&arguments[..], &["--threads", "1"]].concat())));
}

#[test]
fn named_matrices_are_measured_in_all_groups() {
    let text = sample(&["--gallery", "rmat:5:3/unknowns:2"]);
    let found = lines(&text);
    let ops: Vec<_> = found.iter().map(|line| format!("{} {} {}", line[5], line[6], line[7])).collect();
    assert_eq!(
        ops,
        [
            "matrix - 0",
            "spmv f64 1",
            "spmv f32 1",
            "spmv f16 1",
            "spmm f16 8",
            "spmm f16 32",
            "spmm f16 128",
            "spmm f16 512",
            "spmm f32 8",
            "spmm f32 32",
            "spmm f32 128",
            "spmm f32 512",
            "spmm f64 8",
            "spmm f64 32",
            "spmm f64 128",
            "spmm f64 512",
            "spmm tf32 32",
            "spmm tf32 128",
            "spmm tf32 512",
            "spgemm f64 0"
        ]
    );
    assert!(found.iter().all(|line| line[0] == "-1" && line[1] == "rmat:5:3/unknowns:2"));
    let candidates = |at: usize| -> Vec<_> {
        found[at][9].split(' ').map(|time| time.split(':').next().unwrap()).collect()
    };
    assert_eq!(candidates(19), ["hash", "tile"]);
}

/// All row orders are measured in each form of product, for named and drawn matrices. The results are
/// checked: the run fails if one is wrong.
#[test]
fn orders_are_measured_alone() {
    let drawn = ["--count", "2", "--seed", "4", "--least", "60", "--most", "400"];
    let text = sample(&[&["--gallery", "rmat:5:3,uniform:60x40:3", "--orders"], &drawn[..]].concat());
    let found = lines(&text);
    let groups = |number: &str, matrix: &str| -> Vec<_> {
        let of = found.iter().filter(|line| line[0] == number && line[1].starts_with(matrix));
        of.map(|line| format!("{} {} {}", line[5], line[6], line[7])).collect()
    };
    let expected =
        ["matrix - 0", "orders-spmv-csr f32 1", "orders-spmm-row f32 128", "orders-spmm-csr f32 128"];
    for (number, matrix) in [("-1", "rmat"), ("-1", "uniform"), ("0", ""), ("1", "")] {
        assert_eq!(groups(number, matrix), expected, "{number} {matrix}");
    }
    let all = "none dcsr plain_sort flipped_sort lpt warp_aware cta_aware hybrid_1 hybrid_2_1 hybrid_2_2 \
               hybrid_2_3 rcm gray_code";
    for line in found.iter().filter(|line| line[5] != "matrix") {
        // RCM exists for square matrices only.
        let is_square = line[2] == line[3];
        let all: Vec<_> = all.split_whitespace().filter(|&name| is_square || name != "rcm").collect();
        let times: Vec<_> = line[9].split(' ').map(|time| time.split(':').collect::<Vec<_>>()).collect();
        assert_eq!(times.iter().map(|time| time[0]).collect::<Vec<_>>(), all, "{line:?}");
        assert!(times.iter().all(|time| time[2].parse::<f64>().unwrap() > 0.0), "{line:?}");
    }
}

/// Returns the algorithms of a line.
fn algorithms(line: &[String]) -> Vec<&str> {
    line[9].split(' ').map(|time| time.split(':').next().unwrap()).collect()
}

/// The products of an older table are measured again, with the times of the named algorithms only.
#[test]
fn algorithms_are_measured_again() {
    let arguments = ["--count", "8", "--seed", "5", "--least", "60", "--most", "200"];
    let first = sample(&arguments);
    let is_wanted = |name: &str| ["row", "csr"].contains(&name);
    let mut expected: Vec<_> = lines(&first)
        .iter()
        .filter(|line| line[5] != "matrix" && algorithms(line).iter().any(|name| is_wanted(name)))
        .map(|line| line[..9].to_vec())
        .collect();
    expected.sort();
    assert!(expected.iter().any(|line| line[5] == "spmv") && expected.iter().any(|line| line[5] == "spmm"));
    let folder = Folder::new();
    let table = folder.path("first.tsv");
    std::fs::write(&table, &first).unwrap();
    let text = sample(&["--again", &table, "--algorithms", "row,csr"]);
    assert_has(&text, &["# algorithms row csr\n"]);
    let mut found = lines(&text);
    found.retain(|line| line[5] != "matrix");
    found.sort();
    assert_eq!(found.iter().map(|line| line[..9].to_vec()).collect::<Vec<_>>(), expected);
    for line in &found {
        assert_eq!(algorithms(line), [if line[5] == "spmm" { "row" } else { "csr" }], "{line:?}");
    }
    // `--algorithms` also restricts the candidates of drawn matrices.
    let text = sample(&[&arguments[..], &["--algorithms", "row"]].concat());
    assert!(lines(&text).iter().all(|line| line[5] == "matrix" || algorithms(line) == ["row"]), "{text}");
    std::fs::write(&table, "0\tx\n").unwrap();
    assert_has(&error(&["sample", "--again", &table, "--algorithms", "row"]), &["first.tsv", "2 fields"]);
}

#[test]
fn what_cannot_be_sampled_is_said() {
    assert_has(&error(&["sample", "--count", "1", "--algorithms", "rows"]), &["--algorithms rows", "row, "]);
    assert_has(&error(&["sample", "--count", "1", "--least", "9", "--most", "8"]), &["--least"]);
    assert_has(&error(&["sample"]), &["--count"]);
    let output = tarsia(&["sample", "--gallery", "no:such", "--backend", "host"]);
    assert_eq!(output.status.code(), Some(1));
    assert_has(stderr(&output), &["no:such", "kind of matrix"]);
}
