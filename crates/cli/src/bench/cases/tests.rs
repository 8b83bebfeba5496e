//! Cases with a fake vendor, whose entries are right, wrong or broken on purpose.

use clap::Parser;
use client::Session;
use matrices::gallery::by_name;
use tarsia::facade::BackendKind;

use super::super::vendor::SparseProduct;
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fake {
    Right,
    Wrong,
    Lazy,
    Broken,
    Unprepared,
}

/// Fake vendor with one library, or with several, of which each has some of the entries.
#[derive(Default)]
struct FakeVendor {
    is_several: bool,
    /// True if SpGEMM has `Broken`, too.
    breaks: bool,
}

/// Computes A · B with row-major B of n columns.
fn product<T: Number>(a: &OwnedCsr<T>, b: &[T], n: usize) -> Vec<T> {
    let mut out = Vec::new();
    for row in 0..a.rows {
        let (cols, values) = a.row(row);
        for at in 0..n {
            let terms = cols.iter().zip(values).map(|(&col, v)| v.wide() * b[col as usize * n + at].wide());
            out.push(T::narrow(terms.sum()));
        }
    }
    out
}

impl Fake {
    fn prepare<'a, T: Number>(
        self,
        a: &'a OwnedCsr<T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        if self == Fake::Unprepared {
            return Err("createDescr FAKE_STATUS_NOT_SUPPORTED".into());
        }
        let run = move || {
            // Reads the factor row by row, and C row by row, as they are stored in this layout.
            let (stored, shape, n) = (b.array.download()?, b.shape(), b.cols);
            let at = |row: usize, col: usize| {
                let (row, col) = if b.layout.op_b.transposes() { (col, row) } else { (row, col) };
                let ld = shape.ld as usize;
                stored[if shape.order == Order::Row { row * ld + col } else { col * ld + row }]
            };
            let factor: Vec<T> = (0..b.rows)
                .flat_map(|row| (0..n).map(move |col| (row, col)))
                .map(|(row, col)| at(row, col))
                .collect();
            let mut out = product(a, &factor, n);
            if shape.order == Order::Col {
                out = transposed(&out, a.rows, n)?;
            }
            match self {
                Fake::Wrong => out[1] = T::narrow(17.0),
                Fake::Lazy => return Ok(c.write(0, &out[..out.len() - 1])?),
                Fake::Broken => return Err("execute\tFAKE_STATUS_BROKEN".into()),
                _ => {}
            }
            Ok(c.write(0, &out)?)
        };
        Ok(Prepared { analysis_ms: 1.0, bytes: 7.0, note: "buf=7".into(), run: Box::new(run) })
    }
}

/// Fake product C = A · B. `Right` has no numeric phase with new values, `Wrong` is wrong from its second
/// numeric phase on, `Lazy` is right.
struct FakeProduct<'a, T: Number> {
    a: &'a OwnedCsr<T>,
    b: &'a OwnedCsr<T>,
    what: Fake,
    is_again: bool,
}

impl<T: Number> SparseProduct<T> for FakeProduct<'_, T> {
    fn run(&mut self) -> Result<f64> {
        match self.what {
            Fake::Broken => Err("compute FAKE_STATUS_BROKEN".into()),
            _ => Ok(3.0),
        }
    }

    fn again(&mut self) -> Result<Option<f64>> {
        self.is_again = true;
        match self.what {
            Fake::Right => Ok(None),
            Fake::Unprepared => Err("compute FAKE_STATUS_NO_MORE".into()),
            _ => Ok(Some(2.0)),
        }
    }

    fn result(&mut self) -> Result<(Vec<i32>, Vec<i32>, Vec<T>)> {
        let FakeProduct { a, b, .. } = *self;
        let mut dense = vec![T::narrow(0.0); b.rows * b.cols];
        for row in 0..b.rows {
            for (&col, &value) in b.row(row).0.iter().zip(b.row(row).1) {
                dense[row * b.cols + col as usize] = value;
            }
        }
        let mut c = product(a, &dense, b.cols);
        if self.is_again && self.what == Fake::Wrong {
            let first = c.iter_mut().find(|value| value.wide() != 0.0).unwrap();
            *first = T::narrow(17.0);
        }
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in c.chunks(b.cols) {
            // Columns come in descending order, since vendors do not promise to sort them.
            for (col, &value) in row.iter().enumerate().rev().filter(|(_, v)| v.wide() != 0.0) {
                indices.push(col as i32);
                values.push(value);
            }
            offsets.push(indices.len() as i32);
        }
        Ok((offsets, indices, values))
    }

    fn peak_bytes(&self) -> f64 {
        99.0
    }

    fn note(&self) -> String {
        "fake=1".into()
    }

    fn suffix(&self) -> &'static str {
        "_freeb3"
    }
}

impl Vendor for FakeVendor {
    type What = Fake;

    fn version(&self) -> String {
        "Fake 1.2.3".into()
    }

    fn number(&self) -> String {
        "1.2.3".into()
    }

    fn set_matrix(&mut self, pattern: &OwnedCsr<()>) -> Result<()> {
        assert_eq!(pattern.rows, 40);
        Ok(())
    }

    fn choices<T: Number>(&self, op: Op, a: &MatrixOperand<'_, T>, layout: Layout) -> Vec<Choice<Fake>> {
        if a.op.transposes() {
            return Vec::new();
        }
        let suffix = if op == Op::Spmm { layout.suffix() } else { String::new() };
        let all = [Fake::Right, Fake::Wrong, Fake::Lazy, Fake::Broken, Fake::Unprepared];
        let is_offered = |what: &&Fake| op != Op::Spgemm || self.breaks || **what != Fake::Broken;
        let implementation = |what: &Fake| match (self.is_several, what) {
            (false, _) => "mkl",
            (true, Fake::Right) => "mkl@1.2.3",
            (true, _) => "mkl@4.5.6",
        };
        let choice = |what: &Fake| Choice {
            implementation: implementation(what).into(),
            alg: format!("{what:?}{suffix}"),
            what: *what,
        };
        all.iter().filter(is_offered).map(choice).collect()
    }

    fn spmv<'a, T: Number>(
        &'a self,
        what: &Fake,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        what.prepare(&a.host, Dense { array: x, rows: a.host.cols, cols: 1, layout: Layout::PLAIN }, y)
    }

    fn spmm<'a, T: Number>(
        &'a self,
        what: &Fake,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        what.prepare(&a.host, b, c)
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        what: &Fake,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        Ok(Box::new(FakeProduct { a: &a.host, b: &b.unwrap_or(a).host, what: *what, is_again: false }))
    }
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn pattern(name: &str) -> OwnedCsr<()> {
    by_name(name).unwrap().into_pattern()
}

/// Runs the bench on one small matrix with these arguments; see [`run_with`].
fn run(arguments: &[&str], done: &[(&str, &str)]) -> (Vec<Row>, bool) {
    let input = Input { name: "m".into(), pattern: pattern("uniform:40x40:5") };
    run_with(arguments, done, |bench| bench.input(&input).unwrap())
}

/// Returns the rows that `cases` writes to the table, and whether the bench passed; results in `done` are in
/// the table before.
fn run_with(
    arguments: &[&str],
    done: &[(&str, &str)],
    cases: impl FnOnce(&mut Bench<'_, FakeVendor>),
) -> (Vec<Row>, bool) {
    let args = Cli::parse_from([&["bench", "none.mtx", "--repeat", "2"], arguments].concat()).args;
    let session = Session::new(BackendKind::Host).unwrap();
    let timer = timer::of(&session).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let (key_of, name) = (|op: &str| (op.to_string(), "f64".to_string(), 1, "m".to_string()), "mkl");
    let done = done.iter().map(|(op, alg)| (key_of(op), name.to_string(), alg.to_string()));
    let mut bench = Bench {
        floor_scale: 1.0,
        args: &args,
        setting: Setting {
            session: &session,
            timer: &*timer,
            repeat: 2,
            features: args.features,
            expected_executes: 0,
            check: true,
            max_c_bytes: args.max_c_gib * 1024f64.powi(3),
        },
        vendor: FakeVendor::default(),
        writer: Writer::new(Some(file.path())).unwrap(),
        rows: Vec::new(),
        passed: true,
        done: done.collect(),
        deadline: None,
        left: 0,
        origin: Origin { device: "d".into(), ..Origin::default() },
    };
    cases(&mut bench);
    let written = super::super::report::Table::read(file.path()).unwrap().rows().unwrap();
    assert_eq!(written.len(), bench.rows.len());
    (bench.rows, bench.passed)
}

#[test]
fn a_vendor_is_judged_like_the_library() {
    for op in [&["--op", "spmv"][..], &["--op", "spmm", "--n", "3"]] {
        let (rows, passed) = run(&[op, &["--types", "f64"]].concat(), &[]);
        let algs: Vec<&str> = rows.iter().map(|row| row.alg.as_str()).collect();
        assert_eq!(algs, ["default", "Right", "Wrong", "Lazy", "Broken", "Unprepared"]);
        // A vendor's wrong result is no failure of ours.
        assert!(passed);
        assert!(rows[0].is_ours() && rows[0].counts() && rows[0].note.contains("chosen="));
        assert!(rows[1].is_vendors() && rows[1].counts() && rows[1].note.contains("buf=7;version=1.2.3"));
        assert_eq!((rows[1].peak_bytes, rows[1].analysis_ms, &*rows[1].origin.device), (7.0, 1.0, "d"));
        assert!(rows[1].max_rel_err < 1e-14 && rows[1].median_us > 0.0);
        // One has a wrong number, the other one that was never written.
        assert!(rows[2].is_wrong() && rows[3].is_wrong() && rows[3].median_us > 0.0);
        assert_eq!((rows[4].median_us, &*rows[4].note), (-1.0, "execute FAKE_STATUS_BROKEN;version=1.2.3"));
        assert!(rows[5].median_us < 0.0 && rows[5].note.starts_with("createDescr FAKE"));
    }
}

#[test]
fn sparse_products_of_a_vendor_are_sorted_and_judged() {
    let (rows, _) = run(&["--op", "spgemm", "--types", "f32"], &[]);
    let (ours, theirs) = (&rows[0], &rows[1]);
    assert!(ours.counts() && theirs.counts(), "{theirs:?}");
    assert_eq!((theirs.alg.as_str(), theirs.median_us, theirs.peak_bytes), ("Right_freeb3", 3e6, 99.0));
    assert!(theirs.note.contains("fake=1") && theirs.note.contains("columns not sorted"), "{}", theirs.note);
    let part =
        |row: &Row, name: &str| row.note.split(';').find(|part| part.starts_with(name)).map(String::from);
    assert_eq!(part(ours, "nnzC="), part(theirs, "nnzC="));
    assert_eq!((part(ours, "products="), ours.floor_us), (part(theirs, "products="), theirs.floor_us));
}

#[test]
fn products_of_two_matrices_are_made_and_judged_with_new_values() {
    let (a, b) = (pattern("uniform:40x30:5"), pattern("uniform:30x7:3"));
    let pair = Pair { name: "h/level0/A*P".into(), a, b };
    let (rows, passed) = run_with(&["--types", "f64,f32,f16"], &[], |bench| bench.pair(&pair).unwrap());
    // SpGEMM has no 16-bit types.
    let algs: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row.case.precision, row.alg.replace("_freeb3", ""))).collect();
    let all = ["default", "Right", "Wrong", "Lazy", "Unprepared"];
    let expected = |precision: &str| all.map(|alg| format!("{precision} {alg}"));
    assert_eq!(algs, [expected("f64"), expected("f32")].concat());
    assert!(passed);
    let nnz_c = rows[0].noted("nnzC").unwrap();
    // The limit is more than A·A would have; A·Aᵀ has no room in 40 × 7.
    assert!(nnz_c <= 280.0 && nnz_c > 200.0, "{nnz_c}");
    for row in &rows {
        assert_eq!((row.case.matrix.as_str(), row.case.rows, row.case.nnz), ("h/level0/A*P", 40, 200));
        let facts = ["nnzB", "nnzC", "products"].map(|name| row.noted(name).unwrap());
        assert_eq!(facts, [90.0, nnz_c, 600.0], "{row:?}");
        assert_eq!(row.floor_us, rows[if row.case.precision == "f64" { 0 } else { 5 }].floor_us);
        // A vendor's result with new values is checked like its first result.
        assert_eq!(row.is_wrong(), row.alg.starts_with("Wrong"), "{row:?}");
    }
    let (value, index) = (8.0, 4.0);
    let bytes = (200.0 + 90.0 + nnz_c) * (value + index) + index * (40.0 + 30.0 + 40.0);
    assert_eq!(rows[0].floor_us, floor_us(bytes));
    let reuse: Vec<_> = rows[..5].iter().map(|row| row.noted("reuse_us")).collect();
    assert!(reuse[0].unwrap() > 0.0);
    assert_eq!(reuse[1..], [None, Some(2e6), Some(2e6), None]);
    assert!(rows[4].note.ends_with(";reuse: compute FAKE_STATUS_NO_MORE;version=1.2.3"), "{}", rows[4].note);
    // A vendor's rows of A·A have no nnzB either.
    let (rows, _) = run(&["--op", "spgemm", "--types", "f64"], &[]);
    assert!(rows.iter().all(|row| row.noted("nnzB").is_none() && row.noted("nnzC").is_some()), "{rows:?}");
}

#[test]
fn a_product_over_the_limit_is_nobodys() {
    let (rows, passed) = run(&["--op", "spgemm", "--types", "f64", "--max-c-gib", "1e-7"], &[]);
    assert!(passed && rows.len() > 1);
    assert!(rows.iter().all(|row| row.median_us < 0.0 && row.note.contains("--max-c-gib is")), "{rows:?}");
}

#[test]
fn cases_that_are_there_are_not_run_again() {
    let arguments =
        ["--op", "spmv", "--types", "f64", "--alg", "none", "--vendor-alg", "Right,Wr", "--against", "mkl"];
    let (rows, _) = run(&arguments, &[("spmv", "Right")]);
    let algs: Vec<&str> = rows.iter().map(|row| row.alg.as_str()).collect();
    assert_eq!(algs, ["Wrong"]);
    // The fake vendor has no TF32.
    let (rows, _) = run(&["--op", "spmm", "--types", "tf32", "--n", "2"], &[]);
    assert!(rows.len() == 1 && rows[0].is_ours());
}

#[test]
fn rows_are_sorted_with_their_values() {
    let (mut indices, mut values) = (vec![3, 1, 2, 0, 5], vec!['d', 'b', 'c', 'a', 'f']);
    assert!(!check::sort_rows(&[0, 3, 5], &mut indices, &mut values));
    assert_eq!(
        (indices.as_slice(), values.iter().collect::<String>()),
        ([1, 2, 3, 0, 5].as_slice(), "bcdaf".into())
    );
    assert!(check::sort_rows(&[0, 3, 5], &mut indices, &mut values));
    // Offsets as in a broken result.
    assert!(check::sort_rows(&[0, -3, 50, 2], &mut indices, &mut values));
}

#[test]
fn a_transpose_that_is_stored_has_the_same_product() {
    let arguments =
        ["--op", "spmv,spmm", "--types", "f64", "--n", "3", "--vendor-alg", "Right", "--against", "mkl"];
    let names = |ops: &[&str]| {
        let (rows, passed) = run(&[&arguments, ops].concat(), &[]);
        assert!(passed && rows.iter().all(Row::counts), "{rows:?}");
        let sizes: Vec<_> = rows.iter().map(|row| (row.case.rows, row.case.nnz, row.floor_us)).collect();
        assert!(sizes.iter().all(|size| (size.0, size.1) == (40, 200)));
        let name = |row: &Row| format!("{} {} {}", row.case.op, row.case.matrix, row.alg);
        rows.iter().map(name).collect::<Vec<_>>()
    };
    let spmv = ["spmv m default", "spmv m Right"];
    let as_it_is = ["spmm m default", "spmm m Right"];
    let transposed = ["spmv m^T default", "spmm m^T default"];
    assert_eq!(names(&["--ops", "n,t"]), [&spmv[..], &as_it_is, &transposed].concat());
    // A vendor without transposes has no rows for one.
    assert_eq!(names(&["--ops", "t"]), transposed);
    assert_eq!(names(&[]), [&spmv[..], &as_it_is].concat());
}

#[test]
fn the_layout_of_b_and_the_width_of_indices_change_no_product() {
    let common = ["--types", "f64", "--n", "3", "--once", "--vendor-alg", "Right", "--against", "mkl"];
    let layouts = ["--op", "spmm", "--orders", "row,col", "--ops-b", "n,t"];
    let (rows, passed) = run(&[&common[..], &layouts].concat(), &[]);
    assert!(passed && rows.iter().all(Row::counts), "{rows:?}");
    let algs: Vec<&str> = rows.iter().map(|row| row.alg.as_str()).collect();
    let of = |suffix: &str| ["default", "once", "Right"].map(|alg| format!("{alg}{suffix}"));
    assert_eq!(algs, ["", "_bt", "_col", "_col_bt"].map(of).concat());
    // A matrix stored in another form is another case: it is not compared with this one.
    let keys: HashSet<Key> = rows.iter().map(Row::key).collect();
    assert_eq!(keys.len(), 4);

    let wide = ["--op", "spmv,spmm,spgemm", "--indices", "64,32", "--ops", "n,t"];
    let (rows, passed) = run(&[&common[..], &wide].concat(), &[]);
    assert!(passed && rows.iter().all(Row::counts), "{rows:?}");
    let name = |row: &Row| format!("{} {} {}", row.case.op, row.case.matrix, row.alg);
    let names: Vec<String> = rows.iter().map(name).collect();
    let expected = [
        "spmv m default",
        "spmv m once",
        "spmv m Right",
        "spmm m default",
        "spmm m once",
        "spmm m Right",
        "spgemm m default",
        "spgemm m Right_freeb3",
        "spmv m:i64 default",
        "spmv m:i64 once",
        "spmv m:i64 Right",
        "spmm m:i64 default",
        "spmm m:i64 once",
        "spmm m:i64 Right",
        "spmv m^T default",
        "spmv m^T once",
        "spmm m^T default",
        "spmm m^T once",
        "spmv m:i64^T default",
        "spmv m:i64^T once",
        "spmm m:i64^T default",
        "spmm m:i64^T once",
    ];
    assert_eq!(names, expected);
    assert_eq!(rows[0].floor_us, rows[8].floor_us);
}

#[test]
fn indices_on_the_backend_have_the_width_that_is_asked_for() {
    let session = Session::new(BackendKind::Host).unwrap();
    let pattern = pattern("uniform:40x40:5");
    let of = |index| {
        let (numbers, stored) =
            ((Precision::F64, crate::bench::number::Values::Full), (Operation::NonTranspose, index));
        MatrixOperand::<f64>::new(&session, "m", &pattern, numbers, stored).unwrap()
    };
    let (narrow, wide) = (of(IndexType::I32), of(IndexType::I64));
    assert!(narrow.narrow().is_ok() && wide.narrow().is_err());
    let runs::Indices::Wide(offsets, columns) = &wide.indices else { panic!("they are narrow") };
    assert_eq!(offsets.download().unwrap(), pattern.offsets);
    let expected: Vec<i64> = pattern.indices.iter().copied().map(i64::from).collect();
    assert_eq!(columns.download().unwrap(), expected);
}

#[test]
fn rows_of_several_libraries_have_versions() {
    let arguments =
        ["--op", "spmv", "--types", "f64", "--alg", "none", "--vendor-alg", "Right,Lazy", "--against", "mkl"];
    let input = Input { name: "m".into(), pattern: pattern("uniform:40x40:5") };
    let (rows, _) = run_with(&arguments, &[], |bench| {
        bench.vendor.is_several = true;
        bench.input(&input).unwrap();
    });
    let names = |row: &Row| (row.implementation.clone(), row.note.rsplit(';').next().unwrap().to_string());
    assert_eq!(names(&rows[0]), ("mkl@1.2.3".into(), "version=1.2.3".into()));
    assert_eq!(names(&rows[1]), ("mkl@4.5.6".into(), "version=4.5.6".into()));
    assert!(rows.iter().all(|row| row.is_vendors() && row.who() == "mkl"));
    // A table that is continued has the results of one library alone, and those of several.
    let (again, _) = run_with(&arguments, &[], |bench| {
        bench.done = rows.iter().flat_map(done).collect();
        bench.input(&input).unwrap();
    });
    let algs: Vec<&str> = again.iter().map(|row| row.alg.as_str()).collect();
    assert_eq!(algs, ["Lazy"], "version 1.2.3 alone has no version in its name");
    let (again, _) = run_with(&arguments, &[], |bench| {
        let alone = Row { implementation: "mkl".into(), note: "version=1.2.3".into(), ..rows[0].clone() };
        bench.done = done(&alone).into_iter().collect();
        bench.vendor.is_several = true;
        bench.input(&input).unwrap();
    });
    assert_eq!(again.iter().map(|row| row.implementation.as_str()).collect::<Vec<_>>(), ["mkl@4.5.6"]);
}

#[test]
fn entries_run_in_turns_with_the_best_of_the_vendor() {
    let arguments =
        ["--op", "spmv,spmm", "--n", "3", "--types", "f64", "--once", "--paired", "--against", "mkl"];
    let (rows, passed) = run(&arguments, &[]);
    assert!(passed);
    let (ours, theirs): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_ours());
    assert_eq!(
        ours.iter().map(|row| row.alg.as_str()).collect::<Vec<_>>(),
        ["default", "once", "default", "once"]
    );
    for row in ours {
        let number = |name: &str| row.noted(name).unwrap_or_else(|| panic!("no {name}: {}", row.note));
        for [mean, low, high] in [["paired", "low", "high"], ["warm_paired", "warm_low", "warm_high"]] {
            let [mean, low, high] = [mean, low, high].map(number);
            assert!(0.0 < low && low <= mean && mean <= high, "{}", row.note);
        }
        assert_eq!(number("rounds"), 25.0);
        // Only one of the vendor's entries is right.
        assert!(
            row.note.contains(";rival=mkl/Right;") && row.note.contains(";warm_rival=mkl/Right;"),
            "{}",
            row.note
        );
    }
    assert!(theirs.iter().all(|row| row.noted("paired").is_none()));
    // Without the flag, or without a rival, the note has no ratio.
    for arguments in [&arguments[..7], &[&arguments[..], &["--vendor-alg", "Wrong"]].concat()] {
        let (rows, _) = run(arguments, &[]);
        assert!(rows.iter().all(|row| !row.note.contains("paired")), "{rows:?}");
    }
}

#[test]
fn sparse_products_run_in_turns_with_the_best_of_the_vendor() {
    let arguments = ["--op", "spgemm", "--types", "f64", "--against", "mkl", "--paired"];
    let (rows, passed) = run(&arguments, &[]);
    let names: Vec<&str> = rows.iter().map(|row| row.alg.trim_end_matches("_freeb3")).collect();
    assert_eq!(names, ["Right", "Wrong", "Lazy", "Unprepared", "default"]);
    let ours = &rows[4];
    assert!(passed && ours.is_ours() && ours.counts(), "{ours:?}");
    for prefix in ["", "reuse_"] {
        let number = |name: &str| {
            ours.noted(&format!("{prefix}{name}"))
                .unwrap_or_else(|| panic!("no {prefix}{name}: {}", ours.note))
        };
        let [mean, low, high] = ["paired", "low", "high"].map(number);
        assert!(0.0 < low && low <= mean && mean <= high, "{}", ours.note);
        assert_eq!(number("rounds"), 25.0);
    }
    // The vendor's times are seconds, ours far less, on a busy machine too.
    let ratios = ["paired", "reuse_paired"].map(|name| ours.noted(name).unwrap());
    assert!(ratios.iter().all(|&ratio| ratio > 10.0), "{}", ours.note);
    // The rival is the first of equally fast entries; it keeps no pattern for new values.
    let rivals = [";rival=mkl/Right_freeb3;", ";reuse_rival=mkl/Lazy_freeb3;"];
    assert!(rivals.iter().all(|rival| ours.note.contains(rival)), "{}", ours.note);
    assert!(rows[..4].iter().all(|row| !row.note.contains("paired")), "{rows:?}");
    // `reuse_us` is still the time of the phase alone.
    assert!(ours.noted("reuse_us").unwrap() < 1e6);

    let note = |arguments: &[&str]| {
        let (rows, _) = run(arguments, &[]);
        rows.iter().find(|row| row.is_ours()).unwrap().note.clone()
    };
    // If nobody keeps a pattern for new values, there is no ratio for them.
    let found = note(&[&arguments[..], &["--vendor-alg", "Unprepared"]].concat());
    assert!(found.contains(";rival=mkl/Unprepared_freeb3;rounds=25"), "{found}");
    assert!(!found.contains("reuse_paired") && !found.contains("not paired"), "{found}");
    // Without the flag, or without a rival whose product is right, there is no ratio at all.
    for arguments in [&arguments[..6], &[&arguments[..], &["--vendor-alg", "Wrong"]].concat()] {
        let found = note(arguments);
        assert!(!found.contains("paired"), "{found}");
    }
}

#[test]
fn products_of_two_matrices_run_in_turns() {
    let (a, b) = (pattern("uniform:40x30:5"), pattern("uniform:30x7:3"));
    let pair = Pair { name: "p".into(), a, b };
    let arguments = ["--op", "spgemm", "--types", "f32", "--against", "mkl", "--paired"];
    let (rows, passed) = run_with(&arguments, &[], |bench| bench.pair(&pair).unwrap());
    let ours = rows.iter().find(|row| row.is_ours()).unwrap();
    assert!(passed && ours.noted("paired").is_some() && ours.noted("reuse_paired").is_some(), "{ours:?}");
}

/// Rivals whose times are in the table that is continued, but that cannot be run again.
#[test]
fn a_rival_that_breaks_leaves_the_turns_or_ends_them() {
    let input = Input { name: "m".into(), pattern: pattern("uniform:40x40:5") };
    let note = |vendor_alg: &str| {
        let common = ["--op", "spgemm", "--types", "f64", "--against", "mkl", "--paired", "--vendor-alg"];
        let arguments = [&common[..], &[vendor_alg]].concat();
        let (rows, passed) = run_with(&arguments, &[("spgemm", "Broken")], |bench| {
            bench.vendor.breaks = true;
            let case = Case {
                op: "spgemm".into(),
                precision: "f64".into(),
                n: 0,
                matrix: "m".into(),
                rows: 40,
                nnz: 200,
            };
            let (implementation, alg) = ("mkl".to_string(), "Broken".to_string());
            let note = "reuse_us=1.00".to_string();
            bench.done = HashSet::new();
            let row = Row { case, implementation, alg, median_us: 1.0, note, ..Row::default() };
            bench.done.extend(done(&row));
            bench.add(row).unwrap();
            bench.input(&input).unwrap();
        });
        assert!(passed);
        rows.iter().find(|row| row.is_ours()).unwrap().note.clone()
    };
    let found = note("Broken,Lazy");
    assert!(found.contains(";rival=mkl/Lazy_freeb3;"), "{found}");
    assert!(found.contains(";reuse not paired: compute FAKE_STATUS_BROKEN;rounds=25"), "{found}");
    let found = note("Broken");
    assert!(found.ends_with(";not paired: compute FAKE_STATUS_BROKEN"), "{found}");
}

/// The product that takes turns is the one of the library's row.
#[test]
fn our_sparse_product_is_the_same_whole_and_with_new_values() {
    let session = Session::new(BackendKind::Host).unwrap();
    let timer = timer::of(&session).unwrap();
    let setting = Setting {
        session: &session,
        timer: &*timer,
        repeat: 2,
        features: false,
        expected_executes: 0,
        check: true,
        max_c_bytes: 1e9,
    };
    let numbers = (Precision::F64, crate::bench::number::Values::Full);
    let a = MatrixOperand::<f64>::new(
        &session,
        "m",
        &pattern("uniform:40x30:5"),
        numbers,
        (Operation::NonTranspose, IndexType::I32),
    )
    .unwrap();
    let b = MatrixOperand::<f64>::second(&session, &pattern("uniform:30x7:3"), numbers).unwrap();
    let mut product =
        setting.sparse_product(&a, Some(&b), ("default", spgemm_alg("default").unwrap())).unwrap();
    let judged = |product: &mut dyn SparseProduct<f64>, seconds: f64| {
        assert!(seconds > 0.0);
        let (offsets, indices, values) = product.result().unwrap();
        let c = check::Sparse { offsets: &offsets, indices: &indices, values: &values };
        assert!(check::sparse(&a.host, &b.host, &c, Precision::F64).passed());
        (offsets, indices, values)
    };
    let seconds = product.run().unwrap();
    let first = judged(&mut *product, seconds);
    for _ in 0..2 {
        let seconds = product.again().unwrap().unwrap();
        assert!(judged(&mut *product, seconds) == first);
    }
    let seconds = product.run().unwrap();
    assert!(judged(&mut *product, seconds) == first);
}
