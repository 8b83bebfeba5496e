//! `tarsia generate`: the files of gallery matrices that it writes.

use std::fs::{self, File};
use std::path::Path;

use matrices::gallery::{by_name, kinds, named, names, with_values};
use matrices::market::{read_market_file, MarketField, MarketValues};
use matrices::owned::OwnedCsr;
use matrices::packed::{read_generated, read_packed, PackedMatrix};

use super::{assert_has, done, error, stderr, stdout, tarsia, Folder};

/// A matrix of a few kilobytes, and the name of its files.
const SMALL: (&str, &str) = ("skewed:40x70:0.9:1", "skewed_40x70_0.9_1");

/// Reads the matrix of a real Matrix Market file.
fn market(path: impl AsRef<Path>) -> (MarketField, OwnedCsr<f64>) {
    let found = read_market_file(path).expect("the file is right");
    let MarketValues::Real(matrix) = found.values else { panic!("it is real") };
    (found.header.field, matrix)
}

#[test]
fn every_format_holds_the_pattern() {
    let folder = Folder::new();
    let (name, stem) = SMALL;
    let expected = named(name).unwrap();
    // The folder is created: a name that ends in a slash is a folder.
    let out = folder.path("deep/er");
    let slashed = format!("{out}/");
    for (format, ending) in [("mtx", "mtx"), ("mtx.gz", "mtx.gz"), ("packed", "tsm"), ("bin", "bin")] {
        let path = format!("{out}/{stem}.{ending}");
        let said = done(&["generate", name, "--out", &slashed, "--format", format]);
        assert_eq!(said, format!("{name}: 40 × 70, {} entries, in {path}\n", expected.nnz()));
        let file = File::open(&path).unwrap();
        let found = match format {
            "bin" => read_generated(file).unwrap(),
            "packed" => match read_packed(file).unwrap() {
                PackedMatrix::Pattern(matrix) => matrix,
                PackedMatrix::Real(_) => panic!("it has no values"),
            },
            _ => {
                let (field, matrix) = market(&path);
                assert_eq!(field, MarketField::Pattern);
                assert!(matrix.values.iter().all(|&value| value == 1.0));
                matrix.into_pattern()
            }
        };
        assert_eq!(found, expected, "{format}");
        assert_eq!(fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]), format == "mtx.gz");
    }
}

#[test]
fn values_are_seeded() {
    let folder = Folder::new();
    let name = SMALL.0;
    let expected = |seed| with_values(named(name).unwrap(), seed).unwrap();
    for ending in ["mtx", "mtx.gz"] {
        let path = folder.path(&format!("a.{ending}"));
        done(&["generate", name, "--values", "--out", &path]);
        assert_eq!(market(&path), (MarketField::Real, expected(1)));
    }
    let path = folder.path("a.tsm");
    done(&["generate", name, "--values", "--seed", "77", "--out", &path]);
    assert_eq!(read_packed(File::open(&path).unwrap()).unwrap(), PackedMatrix::Real(expected(77)));
    assert_ne!(expected(1), expected(77));
    let bin = folder.path("a.bin");
    assert_has(&error(&["generate", name, "--values", "--out", &bin]), &["--values: ", "bin hold no values"]);
    assert!(!Path::new(&bin).exists());
    assert_has(&error(&["generate", name, "--seed", "3"]), &["--values"]);
}

#[test]
fn laplacians_of_grids() {
    let folder = Folder::new();
    for (name, expected) in [
        ("poisson5:9", by_name("poisson5:9").unwrap()),
        ("poisson7:6", by_name("poisson7:6").unwrap()),
        ("poisson27:5", by_name("poisson27:5").unwrap()),
    ] {
        let path = folder.path("grid.mtx");
        done(&["generate", name, "--values=laplacian", "--out", &path, "--force"]);
        assert_eq!(market(&path), (MarketField::Real, expected), "{name}");
    }
    // Grids in another order, and grids of the list, also have a Laplacian that CG can solve.
    for name in ["poisson7:6/shuffled", "plate"] {
        let path = folder.path("other.tsm");
        done(&["generate", name, "--values=laplacian", "--out", &path, "--force"]);
        let PackedMatrix::Real(found) = read_packed(File::open(&path).unwrap()).unwrap() else { panic!() };
        assert!(found.is_cg_candidate(0.0) && found.values.iter().all(|v| [-1.0, 6.0, 8.0].contains(v)));
    }
    // Without a kind, grids get their Laplacian and other matrices random values, whose seed they take.
    let [random, natural] = ["random.mtx", "natural.mtx"].map(|name| folder.path(name));
    done(&["generate", "poisson7:6", "--values=random", "--out", &random]);
    done(&["generate", "--values", "poisson7:6", "--out", &natural]);
    assert_eq!(market(&random).1, with_values(named("poisson7:6").unwrap(), 1).unwrap());
    assert_eq!(market(&natural).1, by_name("poisson7:6").unwrap());
    let both = folder.path("both");
    done(&["generate", "poisson7:6", "uniform:9x9:2", "--values", "--seed", "5", "--out", &both]);
    assert_eq!(market(format!("{both}/poisson7_6.mtx")).1, by_name("poisson7:6").unwrap());
    let expected = with_values(named("uniform:9x9:2").unwrap(), 5).unwrap();
    assert_eq!(market(format!("{both}/uniform_9x9_2.mtx")).1, expected);

    // A matrix that is not a grid has no Laplacian, and no file is written for the names before it.
    let out = folder.path("none");
    for name in ["cant~", "poisson7:3/unknowns:2", "uniform:9x9:2"] {
        let said = error(&["generate", "poisson5:4", name, "--values=laplacian", "--out", &out]);
        assert_has(&said, &[&format!("--values=laplacian: {name} is no grid")]);
    }
    assert!(!Path::new(&out).exists());
    for values in ["--values=laplacian", "--values"] {
        let said = error(&["generate", "poisson5:4", values, "--seed", "3", "--out", &out]);
        assert_has(&said, &["--seed", "not random", "--values=random"]);
    }
    let said = error(&["generate", "poisson5:4", "--values", "laplacian", "--out", &out]);
    assert_has(&said, &["no matrix is called 'laplacian'", "--values=laplacian, in one word"]);
    assert_has(
        &error(&["generate", "plate", "--values=ones"]),
        &["possible values: natural, random, laplacian"],
    );
}

#[test]
fn several_matrices_make_a_folder() {
    let folder = Folder::new();
    let out = folder.path("many");
    let said = done(&["generate", "plate", "poisson7:4", "markov:5", "--out", &out, "--format", "bin"]);
    assert_eq!(said.lines().count(), 3);
    for (name, file) in [("plate", "plate"), ("poisson7:4", "poisson7_4"), ("markov:5", "markov_5")] {
        let file = File::open(format!("{out}/{file}.bin")).unwrap();
        assert_eq!(read_generated(file).unwrap(), named(name).unwrap());
    }
    // With one name and a folder, the file is in the folder. The file's ending decides the format, unless
    // --format is given.
    done(&["generate", "plate", "--out", &out]);
    assert_eq!(market(format!("{out}/plate.mtx")).1.into_pattern(), named("plate").unwrap());
    let odd = folder.path("plate.mtx");
    done(&["generate", "plate", "--out", &odd, "--format", "packed"]);
    assert!(read_packed(File::open(&odd).unwrap()).is_ok());
}

#[test]
fn a_part_of_the_list() {
    // An existing file is refused before the first matrix is made, so the test takes no time; the error shows
    // which files would be written.
    let folder = Folder::new();
    for (part, member) in [("comparison", "mac_econ~"), ("more", "plate"), ("all", "plate"), ("dc2", "dc2~")]
    {
        let out = folder.path(part);
        fs::create_dir(&out).unwrap();
        let there = format!("{out}/{member}.tsm");
        fs::write(&there, "mine").unwrap();
        let said = error(&["generate", part, "--out", &out, "--format", "packed"]);
        assert_eq!(said, format!("tarsia: {there}: exists; --force replaces it\n"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    }
    assert_has(&error(&["generate", "all", "plate"]), &["'plate' is there twice"]);
}

#[test]
fn files_are_replaced_by_force_only() {
    let folder = Folder::new();
    let path = folder.text("plate.mtx", "mine");
    let said = error(&["generate", "plate", "--out", &path]);
    assert_eq!(said, format!("tarsia: {path}: exists; --force replaces it\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    done(&["generate", "plate", "--out", &path, "--force"]);
    assert_eq!(market(&path).1.into_pattern(), named("plate").unwrap());
}

#[test]
fn the_list() {
    let text = done(&["generate", "--list"]);
    for entry in names() {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(entry.name));
        assert!(line.is_some_and(|line| line.ends_with(entry.description)), "{}", entry.name);
    }
    assert_has(&text, kinds());
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    // The matrices under a title are those that the title's first word makes.
    let titles: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(titles[0].starts_with("comparison: ") && titles[1].starts_with("more: "), "{titles:?}");
}

#[test]
fn what_cannot_be_generated() {
    let folder = Folder::new();
    let (out, nowhere) = (folder.path("out.mtx"), folder.path("out.mtx/x"));
    let cases: &[(&[&str], &[&str])] = &[
        (&["kant"], &["tarsia: no matrix is called 'kant'; --list shows the names"]),
        (&["plate", "kant"], &["no matrix is called 'kant'"]),
        (&["poisson7"], &["tarsia: 'poisson7' is a kind of matrix, which has arguments: poisson7:N"]),
        (&["poisson7:y", "--out", &out], &["tarsia: poisson7:y: ", "N of poisson7:N: found 'y'"]),
        (&["poison:3", "--out", &out], &["tarsia: poison:3: kind of matrix: found 'poison'"]),
        (&["poisson7:99999", "--out", &out], &["rows: found", "at most 2147483647"]),
        (&["plate", "plate"], &["tarsia: 'plate' is there twice"]),
        // Two names that give one file name.
        (&["poisson5:7", "poisson5_7", "--out", &out], &["'poisson5_7'"]),
        (&["plate", "--out", "plate.txt"], &["plate.txt: ends in none of .mtx, .mtx.gz, .tsm, .bin"]),
        (&["plate", "--format", "csv"], &["possible values: mtx, mtx.gz, packed, bin"]),
        (&["plate", "--list"], &["cannot be used with"]),
        (&[], &["<NAME>"]),
    ];
    for (arguments, parts) in cases {
        let arguments: Vec<&str> = ["generate"].iter().chain(*arguments).copied().collect();
        assert_has(&error(&arguments), parts);
    }
    assert!(!Path::new(&out).exists() && !Path::new("plate.txt").exists());

    // There is a file where a folder should be.
    let file = folder.text("out.mtx", "mine");
    assert_has(&error(&["generate", "plate", "gaps", "--out", &file]), &[&file]);
    assert_has(&error(&["generate", "plate", "--out", &nowhere, "--format", "mtx"]), &[&nowhere]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_full_disk_is_said() {
    // Linux has a device that is always full.
    if !Path::new("/dev/full").exists() {
        return;
    }
    for format in ["mtx", "mtx.gz", "packed", "bin"] {
        let said = error(&["generate", "plate", "--out", "/dev/full", "--force", "--format", format]);
        assert!(said.starts_with("tarsia: /dev/full: No space left"), "{format}: {said}");
        assert!(Path::new("/dev/full").exists());
    }
}

#[test]
fn help_says_how() {
    let help = tarsia(&["generate", "--help"]);
    assert_eq!(help.status.code(), Some(0), "{}", stderr(&help));
    let parts = ["--out", "--format", "--values", "--force", "--list", "Exit code", "Examples:"];
    assert_has(stdout(&help), &parts);
    assert!(stdout(&help).lines().all(|line| line.chars().count() <= 104), "{}", stdout(&help));
}
