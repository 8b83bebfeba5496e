//! `tarsia pack`: reading the written file returns the matrix.

use std::fs::File;

use matrices::gallery;
use matrices::market::{read_market_file, MarketValues};
use matrices::packed::{read_packed, PackedMatrix};

use super::{assert_has, done, error, gzip, Folder};

fn unpack(path: &str) -> PackedMatrix {
    read_packed(File::open(path).expect("the file is there")).expect("the file is right")
}

#[test]
fn matrices_come_back_with_the_same_bits() {
    let folder = Folder::new();
    let matrix = gallery::rectangular(300, 170, 0.04, 5).unwrap();
    let plain = folder.matrix("a.mtx", &matrix);
    let (packed, pattern) = (folder.path("a.tsm"), folder.path("pattern.tsm"));
    assert_eq!(done(&["pack", &plain, &packed]), "");
    assert_eq!(unpack(&packed), PackedMatrix::Real(matrix.try_clone().unwrap()));
    assert_eq!(done(&["pack", &plain, &pattern, "--pattern"]), "");
    assert_eq!(unpack(&pattern), PackedMatrix::Pattern(matrix.map_values(|_| ()).unwrap()));
    let bytes = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(3 * bytes(&pattern) < bytes(&packed) && 2 * bytes(&packed) < bytes(&plain));
    // An existing file is replaced.
    done(&["pack", &plain, &packed, "--pattern"]);
    assert_eq!(bytes(&packed), bytes(&pattern));
    if let Some(zipped) = gzip(&plain) {
        done(&["pack", zipped.to_str().unwrap(), &packed]);
        assert_eq!(unpack(&packed), PackedMatrix::Real(matrix));
    }
}

#[test]
fn a_symmetric_file_is_packed_whole() {
    let folder = Folder::new();
    let text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1.5\n3 1 -0.1\n3 3 2.5\n";
    let (path, packed) = (folder.text("s.mtx", text), folder.path("s.tsm"));
    done(&["pack", &path, &packed]);
    let MarketValues::Real(expected) = read_market_file(&path).unwrap().values else { panic!("it is real") };
    assert_eq!(expected.nnz(), 4);
    assert_eq!(unpack(&packed), PackedMatrix::Real(expected));
}

#[test]
fn complex_values_are_refused_but_not_their_pattern() {
    let folder = Folder::new();
    let text = "%%MatrixMarket matrix coordinate complex general\n2 3 2\n1 3 0.3 -1.1\n2 2 0.9 1.3\n";
    let (path, packed) = (folder.text("c.mtx", text), folder.path("c.tsm"));
    let said = error(&["pack", &path, &packed]);
    assert_has(&said, &[&path, "complex values cannot be packed; --pattern leaves them out"]);
    assert!(!std::path::Path::new(&packed).exists());
    done(&["pack", &path, &packed, "--pattern"]);
    let PackedMatrix::Pattern(found) = unpack(&packed) else { panic!("it has no values") };
    assert_eq!((found.rows, found.cols, found.offsets, found.indices), (2, 3, vec![0, 1, 2], vec![2, 1]));
}

#[test]
fn files_that_cannot_be_packed() {
    let folder = Folder::new();
    let (missing, out) = (folder.path("missing.mtx"), folder.path("out.tsm"));
    let said = error(&["pack", &missing, &out]);
    assert!(said.starts_with(&format!("tarsia: {missing}: No such file")), "{said}");

    let bad = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.5\n";
    let bad = folder.text("bad.mtx", bad);
    let said = error(&["pack", &bad, &out]);
    assert!(said.starts_with(&format!("tarsia: {bad}: line ")), "{said}");
    let text = folder.text("text.mtx", "not a matrix\n");
    assert_has(&error(&["pack", &text, &out]), &[&text, "line 1"]);
    assert!(!std::path::Path::new(&out).exists(), "nothing is written for them");

    let good = folder.matrix("good.mtx", &gallery::banded(5, 1, 1).unwrap());
    let nowhere = folder.path("nowhere/out.tsm");
    let said = error(&["pack", &good, &nowhere]);
    assert!(said.starts_with(&format!("tarsia: {nowhere}: No such file")), "{said}");
    assert_has(&error(&["pack", &good]), &["<OUT>"]);
}
