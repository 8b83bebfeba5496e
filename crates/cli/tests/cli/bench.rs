//! `tarsia bench`: the table that it writes, and the comparisons that it makes of tables.

use std::collections::{BTreeSet, HashMap};

use matrices::gallery;
use matrices::owned::OwnedCsr;

use super::{assert_has, done, error, stderr, stdout, tarsia, Folder};

/// Runs the bench successfully; returns its stdout.
#[track_caller]
fn bench(arguments: &[&str]) -> String {
    let arguments = [&["bench"], arguments].concat();
    let output = tarsia(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
    stdout(&output).to_string()
}

/// Parses the lines of a table; fields are found by the names of their columns.
fn table(text: &str) -> Vec<HashMap<String, String>> {
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().expect("a line of names");
    let line = |fields: Vec<&str>| {
        assert_eq!(fields.len(), names.len(), "{fields:?}");
        names.iter().zip(fields).map(|(name, field)| (name.to_string(), field.to_string())).collect()
    };
    lines.map(line).collect()
}

fn small(folder: &Folder) -> String {
    folder.matrix("small.mtx", &gallery::rectangular(300, 200, 0.03, 5).unwrap())
}

#[test]
fn every_case_has_a_line() {
    let folder = Folder::new();
    let (matrix, out) = (small(&folder), folder.path("out.tsv"));
    let arguments = ["--backend", "host", "--n", "3", "--repeat", "2", "--commit", "abc", "--once"];
    let more = ["--orders", "row,col", "--types", "f64,f16", "--features", "--out", &out];
    assert_eq!(bench(&[&[matrix.as_str()][..], &arguments, &more].concat()), "");
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with(
        "op\tprecision\tN\tmatrix\trows\tnnz\timpl\talg\tmedian_us\tgflops\tfloor_us\tanalysis_ms\t\
         max_rel_err\tnote\tpeak_bytes\tanalysis_executes\tdevice\tdriver\tdate\tcommit\n"
    ));
    let rows = table(&text);
    let cases: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {} {} {}", row["op"], row["precision"], row["N"], row["impl"], row["alg"]))
        .collect();
    assert_eq!(
        cases,
        [
            "copy - 0 machine 1GB",
            "empty - 0 machine call",
            "spmv f64 1 tarsia default",
            "spmv f64 1 tarsia once",
            "spmm f64 3 tarsia default",
            "spmm f64 3 tarsia once",
            "spmm f64 3 tarsia default_col",
            "spmm f64 3 tarsia once_col",
            "spgemm f64 0 tarsia default",
            "spmv f16 1 tarsia default",
            "spmv f16 1 tarsia once",
            "spmm f16 3 tarsia default",
            "spmm f16 3 tarsia once",
            "spmm f16 3 tarsia default_col",
            "spmm f16 3 tarsia once_col",
        ]
    );
    for row in &rows {
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        assert!(number("median_us") > 0.0 && !row["note"].contains("WRONG"), "{row:?}");
        assert!(row["device"].ends_with("threads") && row["commit"] == "abc" && row["date"].len() == 10);
        if ["spmv", "spmm"].contains(&row["op"].as_str()) {
            assert!(row["note"].contains(";runs=2;") || row["note"].ends_with(";runs=2"), "{row:?}");
        }
        if row["impl"] == "tarsia" {
            assert_eq!((row["matrix"].as_str(), row["rows"].as_str()), ("small", "300"));
            assert!(number("max_rel_err") >= 0.0 && number("floor_us") >= 0.0, "{row:?}");
        }
        // The note of SpMV has the time of the features.
        let features = row["note"].split(';').find_map(|part| part.strip_prefix("features_us="));
        let is_spmv = row["op"] == "spmv" && row["alg"] == "default";
        assert_eq!(features.is_some_and(|us| us.parse::<f64>().unwrap() > 0.0), is_spmv, "{row:?}");
        if row["alg"].starts_with("default") {
            assert!(row["note"].contains("chosen=") && number("peak_bytes") >= 0.0, "{row:?}");
            let executes = 1e3 * number("analysis_ms") / number("median_us");
            assert!((number("analysis_executes") - executes).abs() <= 0.01 * executes + 1.0, "{row:?}");
        }
    }
}

/// A plan for few executes makes no copy of the matrix; a plan without their number does.
#[test]
fn plans_are_told_how_many_executes_to_expect() {
    let folder = Folder::new();
    let path = folder.matrix("grid.mtx", &gallery::by_name("poisson7:24").unwrap());
    let note = |more: &[&str]| {
        let arguments =
            [path.as_str(), "--backend", "host", "--op", "spmv", "--types", "f64", "--repeat", "2"];
        let rows = table(&bench(&[&arguments, more].concat()));
        rows.into_iter().find(|row| row["op"] == "spmv").expect("a line")["note"].clone()
    };
    let few = note(&["--expected-executes", "1"]);
    assert!(few.contains(";in_place=1;first_analysis_ms="), "{few}");
    let unknown = note(&[]);
    assert!(unknown.contains(";in_place=0;first_analysis_ms="), "{unknown}");
    let output = tarsia(&["bench", &path, "--expected-executes=-1"]);
    assert_has(stderr(&output), &["--expected-executes"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Dense operands may begin behind a cache line: products are right, and lines name the bytes.
#[test]
fn operands_may_begin_behind_a_line() {
    let folder = Folder::new();
    let path = folder.matrix("grid.mtx", &gallery::by_name("poisson7:8").unwrap());
    let arguments = ["--backend", "host", "--types", "f64,f32", "--repeat", "2", "--n", "16,37"];
    let more = [path.as_str(), "--op", "spmv,spmm", "--orders", "row,col", "--behind-line", "16"];
    let rows = table(&bench(&[&arguments[..], &more].concat()));
    let rows: Vec<_> = rows.iter().filter(|row| row["op"].starts_with("spm")).collect();
    assert_eq!(rows.len(), 2 * (1 + 4));
    assert!(rows.iter().all(|row| row["matrix"] == "grid:+16" && !row["note"].starts_with("WRONG")));
    for bytes in ["12", "64", "-8", "x"] {
        let output = tarsia(&["bench", &path, &format!("--behind-line={bytes}")]);
        assert_has(stderr(&output), &["--behind-line"]);
        assert_eq!(output.status.code(), Some(2));
    }
}

/// Each algorithm but `tile` is timed a second time without sorting, and its rows are right in their order.
#[test]
fn products_without_order_have_lines() {
    let folder = Folder::new();
    let matrix = folder.matrix("wide.mtx", &gallery::rectangular(300, 9000, 0.004, 5).unwrap());
    let arguments = ["--backend", "host", "--op", "spgemm", "--types", "f64,f32", "--repeat", "2"];
    let more = [matrix.as_str(), "--alg", "default,hash,tile", "--unsorted"];
    let rows = table(&bench(&[&arguments[..], &more].concat()));
    let rows: Vec<_> = rows.iter().filter(|row| row["op"] == "spgemm").collect();
    let algs: Vec<_> = rows.iter().map(|row| row["alg"].as_str()).collect();
    let of_a_type = ["default", "default+unsorted", "hash", "hash+unsorted", "tile"];
    assert_eq!(algs, [of_a_type, of_a_type].concat());
    for row in rows {
        assert!(row["median_us"].parse::<f64>().unwrap() > 0.0 && !row["note"].contains("WRONG"), "{row:?}");
        assert!(row["max_rel_err"].parse::<f64>().unwrap() >= 0.0, "{row:?}");
        let is_unsorted = row["alg"].ends_with("+unsorted");
        assert_eq!(row["note"].contains("columns not sorted"), is_unsorted, "{row:?}");
    }
    assert_has(
        &error(&["bench", &matrix, "--op", "spgemm", "--alg", "hash+sorted"]),
        &["--alg", "hash+sorted"],
    );
}

#[test]
fn a_table_is_continued_where_it_ended() {
    let folder = Folder::new();
    let (matrix, out) = (small(&folder), folder.path("out.tsv"));
    let common = [matrix.as_str(), "--backend", "host", "--types", "f64", "--repeat", "1", "--out", &out];
    bench(&[&common[..], &["--op", "spmv"]].concat());
    let first = std::fs::read_to_string(&out).unwrap();
    bench(&[&common[..], &["--op", "spmv,spmm", "--n", "2", "--append"]].concat());
    let second = std::fs::read_to_string(&out).unwrap();
    let added = second.strip_prefix(&first).expect("what was there is kept");
    assert!(added.starts_with("spmm\tf64\t2\t") && added.lines().count() == 1, "{added}");
    let other = folder.text("other.tsv", "a\tb\n");
    let arguments = ["bench", &matrix, "--backend", "host", "--append", "--out", &other];
    assert_has(&error(&arguments), &["other.tsv", "columns"]);

    // Nothing is lost by a table's name that is given again.
    let again = ["bench", &matrix, "--backend", "host", "--op", "spmv", "--types", "f64", "--repeat", "1"];
    let said = error(&[&again[..], &["--out", &out]].concat());
    assert_has(&said, &[&format!("--out {out}: exists"), "--append", "--overwrite"]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), second);
    bench(&[&again[1..], &["--out", &out, "--overwrite"]].concat());
    let third = std::fs::read_to_string(&out).unwrap();
    assert!(!third.contains("\nspmm\t") && third.contains("\nspmv\tf64\t1\tsmall\t"), "{third}");
    assert_has(&error(&[&again[..], &["--out", &out, "--append", "--overwrite"]].concat()), &["--append"]);
}

/// On a terminal the lines on stderr are all that is seen of the results.
#[test]
fn a_terminal_sees_no_table() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_tarsia");
    let line =
        format!("'{program}' bench '{}' --backend host --op spmv --types f64 --repeat 1", small(&folder));
    // script(1) of util-linux runs a command on a terminal.
    let mut script = std::process::Command::new("script");
    let Ok(output) = script.args(["-qec", &line, "/dev/null"]).output() else {
        eprintln!("skipped: bench on a terminal: no script(1)");
        return;
    };
    let seen = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{seen}");
    assert_has(seen, &["spmv   f64     1 small ", " µs ", "--out FILE"]);
    assert!(!seen.contains('\t') && !seen.contains("median_us"), "{seen}");
}

/// A wrong name is said before anything is timed, and before the tables for comparison are looked at.
#[test]
fn a_wrong_file_is_said_first() {
    let folder = Folder::new();
    let (matrix, gone) = (small(&folder), folder.path("gone.mtx"));
    let bar = folder.text("bar.tsv", "not a table\n");
    let said = error(&["bench", &matrix, &gone, "--backend", "host", "--bar", &bar]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(&format!("tarsia: {gone}: ")), "{said}");
}

/// The gallery's stand-ins are called with and without their mark, and always have it in a table; so does a
/// table of an earlier version with which it is compared.
#[test]
fn stand_ins_have_their_mark() {
    let folder = Folder::new();
    let bar = folder.text("bar.tsv", "op\tprecision\tN\tmatrix\tbar_us\nspmv\tf32\t1\tdc2\t1e9\n");
    let out = folder.path("out.tsv");
    let arguments = ["--gallery", "dc2", "--backend", "host", "--types", "f32", "--op", "spmv", "--repeat"];
    let said = bench(&[&arguments[..], &["1", "--no-check", "--out", &out, "--bar", &bar]].concat());
    let rows = table(&std::fs::read_to_string(&out).unwrap());
    assert_eq!(rows[2]["matrix"], "dc2~");
    assert_has(&said, &["Speed-up over bar_us of ", "dc2~"]);
}

#[test]
fn the_gallery_has_names() {
    let arguments = ["--gallery", "poisson5:20,uniform:30x30:4", "--backend", "host", "--types", "f32"];
    let rows = table(&bench(&[&arguments[..], &["--op", "spmv", "--repeat", "1"]].concat()));
    let names: Vec<&str> = rows[2..].iter().map(|row| row["matrix"].as_str()).collect();
    assert_eq!(names, ["poisson5:20", "uniform:30x30:4"]);
    assert_has(&error(&["bench", "--gallery", "no-such"]), &["--gallery", "no-such", "--list"]);
}

/// The columns in each row of a matrix.
type ColumnSets = Vec<BTreeSet<usize>>;

/// Returns the pattern of A·B.
fn product(a: &ColumnSets, b: &ColumnSets) -> ColumnSets {
    a.iter().map(|row| row.iter().flat_map(|&k| b[k].iter().copied()).collect()).collect()
}

fn transpose(a: &ColumnSets, cols: usize) -> ColumnSets {
    (0..cols).map(|col| (0..a.len()).filter(|&row| a[row].contains(&col)).collect()).collect()
}

fn matrix(rows: &ColumnSets, cols: usize) -> OwnedCsr<f64> {
    let entries = rows.iter().enumerate().flat_map(|(row, cols)| cols.iter().map(move |&col| (row, col)));
    let entries = entries.map(|(row, col)| (row as i64, col as i64, 1.5)).collect();
    OwnedCsr::from_triplets(rows.len(), cols, entries).unwrap()
}

fn entries(rows: &ColumnSets) -> usize {
    rows.iter().map(BTreeSet::len).sum()
}

/// Writes a line of points and its coarser one, every third point, as Matrix Market files A0, P0, A1, P1 and
/// A2. Returns the expected lines of the products: name, rows, and entries of both factors and of C.
fn hierarchy(folder: &Folder) -> Vec<(String, usize, [usize; 3])> {
    std::fs::create_dir(folder.path("line")).unwrap();
    let write = |name: &str, rows: &ColumnSets, cols: usize| {
        folder.matrix(&format!("line/{name}.mtx"), &matrix(rows, cols));
    };
    let (mut points, mut said) = (60, Vec::new());
    let mut a: ColumnSets =
        (0..points).map(|at: usize| (at.saturating_sub(1)..(at + 2).min(60)).collect()).collect();
    for level in 0..2 {
        write(&format!("A{level}"), &a, points);
        let coarse = points / 3;
        let p: ColumnSets =
            (0..points).map(|at| (at / 3..(at / 3 + 1 + at % 2).min(coarse)).collect()).collect();
        write(&format!("P{level}"), &p, coarse);
        let (r, ap) = (transpose(&p, coarse), product(&a, &p));
        let rap = product(&r, &ap);
        let counts = [entries(&a), entries(&p), entries(&ap)];
        said.push((format!("line/level{level}/A*P"), points, counts));
        said.push((format!("line/level{level}/R*AP"), coarse, [entries(&r), entries(&ap), entries(&rap)]));
        (a, points) = (rap, coarse);
    }
    write("A2", &a, points);
    said
}

#[test]
fn products_of_a_hierarchy_are_timed_level_by_level() {
    let folder = Folder::new();
    let expected = hierarchy(&folder);
    // A folder may have other files, and levels in other formats.
    folder.text("line/README", "about");
    done(&["pack", &folder.path("line/A1.mtx"), &folder.path("line/A1.tsm"), "--pattern"]);
    std::fs::remove_file(folder.path("line/A1.mtx")).unwrap();
    let line = folder.path("line");
    let arguments = ["--hierarchy", &line, "--backend", "host", "--op", "spgemm", "--repeat", "2"];
    let rows = table(&bench(&[&arguments[..], &["--types", "f64,f16,f32"]].concat()));
    let rows = &rows[2..];
    assert_eq!(rows.len(), 2 * expected.len());
    for (row, at) in rows.iter().zip(0..) {
        let (name, points, counts) = &expected[at / 2];
        let facts = [row["op"].as_str(), &row["precision"], &row["matrix"], &row["impl"], &row["alg"]];
        assert_eq!(facts, ["spgemm", ["f64", "f32"][at % 2], name, "tarsia", "default"]);
        assert_eq!((&row["rows"], &row["nnz"]), (&points.to_string(), &counts[0].to_string()));
        let note: HashMap<&str, &str> =
            row["note"].split(';').filter_map(|part| part.split_once('=')).collect();
        assert_eq!((note["nnzB"], note["nnzC"]), (&*counts[1].to_string(), &*counts[2].to_string()));
        assert!(note["reuse_us"].parse::<f64>().unwrap() > 0.0 && !row["note"].contains("WRONG"), "{row:?}");
        assert!(row["max_rel_err"].parse::<f64>().unwrap() >= 0.0, "it was checked: {row:?}");
        assert!(row["median_us"].parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
}

#[test]
fn products_of_two_files_are_timed() {
    let folder = Folder::new();
    let (wide, tall) =
        (folder.path("wide.tsm"), folder.matrix("tall.mtx", &gallery::rectangular(170, 9, 0.3, 5).unwrap()));
    done(&["pack", &folder.matrix("w.mtx", &gallery::rectangular(40, 170, 0.2, 5).unwrap()), &wide]);
    let arguments = [
        "--pair",
        &wide,
        &tall,
        "--pair",
        &tall,
        &folder.matrix("end.mtx", &gallery::rectangular(9, 3, 0.5, 5).unwrap()),
    ];
    let out = folder.path("out.tsv");
    let common = ["--backend", "host", "--types", "f64", "--repeat", "1", "--out", &out];
    bench(&[&arguments[..], &common].concat());
    let text = std::fs::read_to_string(&out).unwrap();
    let found: Vec<_> =
        table(&text)[2..].iter().map(|row| (row["op"].clone(), row["matrix"].clone())).collect();
    assert_eq!(found, ["wide*tall", "tall*end"].map(|name| ("spgemm".to_string(), name.to_string())));
    // With --append, rows that the table has are not measured again.
    bench(&[&arguments[..], &common, &["--append"]].concat());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text);
    // A matrix that is given beside the pairs is also timed alone.
    let rows =
        table(&bench(&[&[tall.as_str()], &arguments[..3], &common[..6], &["--op", "spmv,spgemm"]].concat()));
    let found: Vec<_> = rows[2..].iter().map(|row| format!("{} {}", row["op"], row["matrix"])).collect();
    assert_eq!(found, ["spmv tall", "spgemm tall", "spgemm wide*tall"]);
}

#[test]
fn what_is_no_pair_and_no_hierarchy_is_said_before_the_first_case() {
    let folder = Folder::new();
    hierarchy(&folder);
    let (line, small) = (folder.path("line"), small(&folder));
    let said = |arguments: &[&str]| error(&[&["bench", "--backend", "host"], arguments].concat());
    assert_has(&said(&["--hierarchy", &line, "--op", "spmv,spmm"]), &["--hierarchy", "--op leaves out"]);
    assert_has(&said(&["--pair", &small, &small, "--op", "spmv"]), &["--pair", "--op leaves out"]);
    assert_has(&said(&["--pair", &small]), &["2 values required"]);
    assert_has(&said(&["--pair", &small, "/no/such.mtx"]), &["/no/such.mtx: No such file"]);
    let wrong = said(&["--pair", &small, &small, "--types", "f64", "--repeat", "1"]);
    assert_has(&wrong, &["small*small: a matrix of 300 × 200 cannot be multiplied by one of 300 × 200"]);
    // First P1 without its A, then no P0.
    std::fs::remove_file(folder.path("line/A1.mtx")).unwrap();
    let missing = said(&["--hierarchy", &line]);
    assert_has(&missing, &[&format!("--hierarchy {line}: there is no A1"), "tsm"]);
    assert!(!missing.contains("copy: "), "{missing}");
    std::fs::remove_file(folder.path("line/P0.mtx")).unwrap();
    assert_has(&said(&["--hierarchy", &line]), &["there is no P0"]);
    let empty = folder.path("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_has(&said(&["--hierarchy", &line, &empty]), &["there is no"]);
    assert_has(&said(&["--hierarchy", &empty]), &[&format!("--hierarchy {empty}: there is no A0")]);
    assert_has(&said(&["--hierarchy", "/no/such/folder"]), &["/no/such/folder: No such file"]);
}

const HEAD: &str =
    "op\tprecision\tN\tmatrix\trows\tnnz\timpl\talg\tmedian_us\tgflops\tfloor_us\tanalysis_ms\t\
                    max_rel_err\tnote\n";

fn line(matrix: &str, who: &str, median_us: f64) -> String {
    format!("spmv\tf64\t1\t{matrix}\t9\t9\t{who}\t{median_us:.2}\t1.00\t1.40\t0.100\t0.00e+00\twarm_us=1\n")
}

#[test]
fn tables_are_compared() {
    let folder = Folder::new();
    let ours = line("a", "tarsia\tdefault", 50.0) + &line("b", "tarsia\tdefault", 200.0);
    let theirs = line("a", "cusparse\tX", 110.0) + &line("b", "cusparse\tX", 110.0);
    let ours = folder.text("ours.tsv", &format!("{HEAD}{ours}"));
    let theirs = folder.text("theirs.tsv", &format!("{HEAD}{theirs}"));
    let earlier = line("a", "cusparse\tX", 100.0) + &line("b", "cusparse\tX", 107.0);
    let earlier = folder.text("earlier.tsv", &format!("{HEAD}{earlier}"));
    let bar = "op\tprecision\tN\tmatrix\tbar_us\tbar_impl\tbar_alg\tbar_version\n\
               spmv\tf64\t1\ta\t100.00\tcusparse\tX\t12.6.3\n\
               spmv\tf64\t1\tb\t100.00\tcusparse\tY\t12.9.4\n";
    let (bar, plots) = (folder.text("bar.tsv", bar), folder.path("plots"));
    let text =
        bench(&["--results", &ours, &theirs, "--bar", &bar, "--reproduces", &earlier, "--plot", &plots]);
    let words = |part: &str| {
        let mut lines = text.lines().skip_while(|line| !line.contains(part)).skip(2);
        lines.next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // The times over 110 and 110 give 2.2 and 0.55.
    assert_eq!(words("the best of the vendor"), "spmv f64 1 default 2 1.100 20.00 0.55 b 1, b 0.55");
    assert_eq!(words("as it is"), "spmv f64 1 default 2 1.000 20.00 0.50 b 1, b 0.50");
    // The vendor takes 110 instead of 100 and 107.
    let factor = (1.1f64 * 110.0 / 107.0).sqrt();
    assert_has(&text, &[&format!("corrected: spmv × {factor:.3} (of 2 times)")]);
    assert!(words("corrected").starts_with(&format!("spmv f64 1 default 2 {factor:.3}")), "{text}");
    assert_has(&text, &["2 of its 2 times", "  50.0 %  ", "  100.00  110.00  1.100"]);
    for name in ["speedup_spmv_f64_1.png", "floor_spmv_f64_1.png", "profile_spmv.png"] {
        assert!(text.contains(name), "{text}");
        let bytes = std::fs::read(std::path::Path::new(&plots).join(name)).unwrap();
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    }
    let folder_of_svg = folder.path("svg");
    let drawn = ["--plot", &folder_of_svg, "--plot-format", "svg"];
    let said = bench(&[&["--results", &ours, &theirs], &drawn[..]].concat());
    for name in ["speedup_spmv_f64_1.svg", "floor_spmv_f64_1.svg", "profile_spmv.svg"] {
        let text = std::fs::read_to_string(std::path::Path::new(&folder_of_svg).join(name)).unwrap();
        assert!(text.starts_with("<svg") && text.contains("SpMV") && said.contains(name), "{said}");
    }
    let text = bench(&["--results", &ours, "--table", &theirs, "--impl", "cusparse", "--table-alg", "X"]);
    assert_has(&text, &["Speed-up over cusparse X of", "1.100"]);
    // If a result of ours is wrong, the exit code is 1.
    let wrong = line("a", "tarsia\tdefault", 50.0).replace("warm_us", "WRONG by 9;warm_us");
    let wrong = folder.text("wrong.tsv", &format!("{HEAD}{wrong}"));
    assert_eq!(tarsia(&["bench", "--results", &wrong]).status.code(), Some(1));
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = Folder::new();
    let matrix = small(&folder);
    let said = |arguments: &[&str]| error(&[&["bench", matrix.as_str()], arguments].concat());
    assert_has(&said(&["--alg", "best"]), &["--alg", "'best'"]);
    let none = "/no/such/libmkl_rt.so";
    assert_has(&said(&["--against", "mkl", "--mkl", none]), &["MKL cannot be opened", "--mkl", none]);
    let none = "/no/such/libaoclsparse.so";
    assert_has(&said(&["--against", "aocl", "--aocl", none]), &["AOCL cannot be opened", "--aocl", none]);
    assert_has(&said(&["--against", "mkl", "--backend", "reference"]), &["MKL", "--backend host"]);
    assert_has(
        &said(&["--against", "mkl,aocl", "--backend", "reference"]),
        &["MKL and AOCL", "--backend host"],
    );
    assert_has(&said(&["--against", "mkl,cusparse"]), &["--against", "only mkl and aocl"]);
    assert_has(&said(&["--against", "mkl", "--aocl", none]), &["--aocl", "--against leaves out"]);
    assert_has(&said(&["--against", "aocl", "--mkl", none]), &["--mkl", "--against leaves out"]);
    assert_has(&said(&["--against", "cusparse", "--backend", "host"]), &["--backend cuda"]);
    assert_has(&said(&["--against", "h100.tsv"]), &["cusparse", "mkl", "aocl"]);
    assert_has(&said(&["--append"]), &["--out"]);
    // The older name of --library is accepted, and so are several of them.
    let on_host = ["--against", "cusparse", "--backend", "host"];
    assert_has(&said(&[&on_host[..], &["--cusparse", "/a.so"]].concat()), &["--backend cuda"]);
    assert_has(&said(&[&on_host[..], &["--library", "/a", "--library", "/b"]].concat()), &["--backend cuda"]);
    assert_has(&said(&["--library", "/a.so"]), &["--against"]);
    assert_has(&said(&["--against", "mkl", "--library", "/a.so"]), &["--library", "--against cusparse"]);
    assert_has(&said(&["--paired"]), &["--against"]);
    assert_has(&said(&["--ops-b", "t", "--op", "spmv"]), &["--ops-b", "--op leaves out"]);
    assert_has(&said(&["--indices", "32,64", "--op", "spgemm"]), &["--indices 64", "--op leaves out"]);
    assert_has(&said(&["--indices", "16"]), &["--indices", "16", "32", "64"]);
    assert_has(&said(&["--bar", "/no/such/bar.tsv"]), &["/no/such/bar.tsv"]);
    assert_has(&error(&["bench"]), &["FILES"]);
}

/// A and B are stored as their transposes and with 64-bit indices, for products with a plan and without;
/// every result is checked.
#[test]
fn operands_are_stored_as_asked() {
    let folder = Folder::new();
    let matrix = small(&folder);
    let arguments =
        ["--backend", "host", "--op", "spmv,spmm", "--n", "5", "--repeat", "1", "--types", "f32,f16"];
    let more = ["--once", "--orders", "row,col", "--ops", "n,t", "--ops-b", "n,t", "--indices", "32,64"];
    let rows = table(&bench(&[&[matrix.as_str()][..], &arguments, &more].concat()));
    let rows = &rows[2..];
    let mut expected = Vec::new();
    for precision in ["f32", "f16"] {
        for name in ["small", "small:i64", "small^T", "small:i64^T"] {
            expected.extend(["default", "once"].map(|alg| format!("spmv {precision} {name} {alg}")));
            for suffix in ["", "_bt", "_col", "_col_bt"] {
                let name = |alg| format!("spmm {precision} {name} {alg}{suffix}");
                expected.extend(["default", "once"].map(name));
            }
        }
    }
    let name = |row: &HashMap<String, String>| {
        format!("{} {} {} {}", row["op"], row["precision"], row["matrix"], row["alg"])
    };
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), expected);
    for row in rows {
        assert!(row["median_us"].parse::<f64>().unwrap() > 0.0 && !row["note"].contains("WRONG"), "{row:?}");
        assert!(row["max_rel_err"].parse::<f64>().unwrap() >= 0.0, "it was checked: {row:?}");
    }
}

/// Results of all versions of a library are compared as those of that library, and totals come at the end.
#[test]
fn versions_of_a_library_are_read() {
    let folder = Folder::new();
    let theirs = line("a", "cusparse@12.6.3\tX", 110.0) + &line("a", "cusparse@12.9.4\tX", 80.0);
    let ours = folder.text("ours.tsv", &format!("{HEAD}{}{theirs}", line("a", "tarsia\tdefault", 50.0)));
    let text = bench(&["--results", &ours]);
    assert_has(&text, &["Speed-up over the best of the vendor", "1.600", "Preparation and K executes"]);
    // Both have 100 µs of preparation: (100 + 80 K) / (100 + 50 K), ahead from the first execute on.
    let totals = text.lines().skip_while(|line| !line.starts_with("Preparation")).nth(2).unwrap();
    let words = totals.split_whitespace().collect::<Vec<_>>().join(" ");
    let ratios = "1.200 (1.20 a) 1.500 (1.50 a) 1.588 (1.59 a) 1.599 (1.60 a)";
    assert_eq!(words, format!("spmv f64 1 default 1 {ratios} 1, 1"));
    let speedup = |implementation: &str| {
        let text = bench(&["--results", &ours, "--table", &ours, "--impl", implementation]);
        let mut lines = text.lines().skip_while(|line| !line.contains(&format!("over {implementation} of")));
        lines.nth(2).unwrap().split_whitespace().nth(5).unwrap().to_string()
    };
    assert_eq!(["cusparse", "cusparse@12.6.3"].map(speedup), ["1.600", "2.200"]);
}

#[test]
fn no_case_is_begun_when_time_is_up() {
    let folder = Folder::new();
    let matrix = folder.matrix("large.mtx", &gallery::rectangular(3000, 3000, 0.1, 5).unwrap());
    let out = folder.path("out.tsv");
    let arguments =
        ["bench", &matrix, &matrix, "--backend", "reference", "--op", "spmv", "--repeat", "10000"];
    let output = tarsia(&[&arguments[..], &["--time-limit", "1", "--out", &out]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_has(stderr(&output), &["time is up", "--append"]);
    assert!(table(&std::fs::read_to_string(&out).unwrap()).len() < 6);
}

/// Stdout has nothing but the table, whatever other output is asked for.
#[test]
fn nothing_but_the_table_goes_to_stdout() {
    let folder = Folder::new();
    let (matrix, plots) = (small(&folder), folder.path("plots"));
    let theirs = folder.text("theirs.tsv", &format!("{HEAD}{}", line("small", "cusparse\tX", 110.0)));
    let arguments =
        ["bench", &matrix, "--backend", "host", "--op", "spmv", "--types", "f64", "--repeat", "1"];
    let output = tarsia(&[&arguments[..], &["--table", &theirs, "--plot", &plots]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Each line has as many fields as the first.
    let rows = table(stdout(&output));
    assert_eq!(rows.last().unwrap()["matrix"], "small");
    for name in ["speedup_spmv_f64_1.png", "floor_spmv_f64_1.png"] {
        assert_has(stderr(&output), &[name]);
        assert!(std::path::Path::new(&plots).join(name).exists());
    }
    assert_has(stderr(&output), &["Speed-up over "]);
    // With --out, stdout is no table, so the comparison goes there.
    let out = folder.path("out.tsv");
    let output = tarsia(&[&arguments[..], &["--table", &theirs, "--plot", &plots, "--out", &out]].concat());
    assert_has(stdout(&output), &["floor_spmv_f64_1.png", "Speed-up over "]);
}

/// All missing files are named before anything is measured.
#[test]
fn missing_files_are_named_before_the_first_case() {
    let folder = Folder::new();
    let (matrix, out) = (small(&folder), folder.path("out.tsv"));
    let [first, second] = ["first.mtx", "second.mtx"].map(|name| folder.path(name));
    let is_folder = folder.path("folder");
    std::fs::create_dir(&is_folder).unwrap();
    let said = error(&["bench", &first, &matrix, &second, &is_folder, "--backend", "host", "--out", &out]);
    assert_has(&said, &[&first, &second, "No such file", &format!("{is_folder}: is a folder")]);
    assert!(!said.contains("copy: ") && !said.contains("small"), "{said}");
    assert!(!std::path::Path::new(&out).exists(), "no table was begun");
}

/// The floor of a CPU is at the copy rate of this CPU, and the table says so.
#[test]
fn floors_of_the_host_are_at_its_own_copy_rate() {
    let folder = Folder::new();
    let matrix = gallery::rectangular(30_000, 20_000, 0.002, 5).unwrap();
    let path = folder.matrix("large.mtx", &matrix);
    let arguments = ["--backend", "host", "--op", "spmv", "--types", "f64", "--repeat", "1"];
    let rows = table(&bench(&[&[path.as_str()][..], &arguments].concat()));
    let rate = |name: &str| -> f64 {
        let part = rows[0]["note"].split(';').find_map(|part| part.strip_prefix(name));
        part.unwrap_or_else(|| panic!("no {name} in {}", rows[0]["note"])).parse().unwrap()
    };
    assert_eq!(rows[0]["op"], "copy");
    assert!((rate("floor_GB/s=") - rate("GB/s=")).abs() <= 0.06, "{}", rows[0]["note"]);
    let bytes = 12.0 * matrix.nnz() as f64 + 4.0 * 30_000.0 + 8.0 * 50_000.0;
    let expected = bytes / rate("floor_GB/s=") / 1e3;
    let found: f64 = rows.last().unwrap()["floor_us"].parse().unwrap();
    assert!((found / expected - 1.0).abs() < 0.01, "{found} µs, {expected} µs at the copy rate");
}
