//! `tarsia inspect`: its output, its JSON object and its picture.

use std::io::Write;

use serde_json::Value;

use super::*;

/// Runs the command successfully; returns its stdout.
#[track_caller]
fn inspect(arguments: &[&str]) -> String {
    let output = tarsia(&[&["inspect"], arguments].concat());
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", stderr(&output));
    text.to_string()
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let text = inspect(&[arguments, &["--json", "--backend", "host"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

fn band(folder: &Folder) -> String {
    // 300 rows; up to 4 entries on each side of the diagonal; values with full mantissas.
    folder.matrix("band.mtx", &gallery::banded(300, 4, 7).unwrap())
}

#[test]
fn the_text() {
    let folder = Folder::new();
    let path = folder.matrix("poisson.mtx", &gallery::poisson(Stencil::Five, 40).unwrap());
    let text = inspect(&[&path, "--backend", "host"]);
    assert_has(
        &text,
        &[
            "File      poisson.mtx: coordinate real general, ",
            "Matrix    1,600 × 1,600, 7,840 entries",
            "Symmetry  pattern 100 %; values symmetric",
            "Rows      3 to 5 entries, mean 4.90, variance 0.10; 0 empty",
            "2–3               4 #\n",
            "4–7           1,596 ########################################\n",
            "Place     bandwidth 40 below, 40 above; diagonal: 1,600 of 1,600 stored\n",
            "Columns   near: 100 % of the entries, all of 100 % of the rows; mean distance ",
            "SpGEMM    A·A: ",
            "Spy plot  36 × 72 cells\n",
            "Layouts   SpMV by the cost model: ",
            "layout  ",
            "  H100 fp64  ",
            "  host fp32\n",
            "Choices   backend host, copies ",
            "\nSpMV          fp64       sell, sorted copy ",
            "\nSpMM, N = 32  fp32       row, in place ",
            "\nSpGEMM, A·A   fp32       hash, in place ",
        ],
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{} columns: {line}", line.chars().count());
    }
    // The plot is a frame of 72 × 36 characters with the diagonal in it, and nothing far from it.
    let plot: Vec<Vec<char>> =
        text.lines().filter(|line| line.starts_with("  |")).map(|line| line.chars().collect()).collect();
    assert_eq!(plot.len(), 36, "{text}");
    for (row, line) in plot.iter().enumerate() {
        assert_eq!((line.len(), line[74 + 1]), (76, '|'), "{text}");
        for (col, &cell) in line[3..75].iter().enumerate() {
            let distance = col.abs_diff(2 * row);
            assert!((cell != ' ') == (distance <= 2) || distance == 3, "{row}, {col}:\n{text}");
        }
    }
}

#[test]
fn numbers_of_a_known_matrix() {
    let folder = Folder::new();
    // Rows of 2, 0, 3 and 1 entries.
    let text = "%%MatrixMarket matrix coordinate real general\n4 4 6\n\
                1 1 0\n1 2 2\n3 1 5\n3 2 5\n3 3 1\n4 3 2\n";
    let found = json(&[&folder.text("small.mtx", text)]);
    let expected = serde_json::json!({
        "file": "small.mtx", "format": "coordinate", "field": "real", "symmetry": "general",
        "rows": 4, "cols": 4, "nnz": 6, "complex": false, "pattern_symmetry": 0.0,
        "value_symmetry": { "pairs": 0, "equal": 0, "opposite": 0, "conjugate": 0 },
        "row_length": {
            "min": 0, "mean": 1.5, "max": 3, "variance": 1.25, "empty_rows": 1,
            "histogram": [
                { "from": 0, "to": 0, "rows": 1 },
                { "from": 1, "to": 1, "rows": 1 },
                { "from": 2, "to": 3, "rows": 2 },
            ],
        },
        "bandwidth_below": 2, "bandwidth_above": 1, "diagonal": 2, "diagonal_zeros": 1,
        "near_entries": 1.0, "near_rows": 1.0, "neighbour_distance": 1.0, "backend": "host",
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    // All 2×2 blocks have an entry but the upper right one.
    let blocks = found["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 7);
    assert_eq!(blocks[0], serde_json::json!({ "size": 2, "count": 3, "fill": 0.5 }));
    // Row 1 multiplies rows 1 and 2; row 3 rows 1, 2 and 3; row 4 row 3. Their rows of C have 2, 3 and 3
    // entries.
    let spgemm = &found["spgemm"];
    assert_eq!((&spgemm["products"], &spgemm["nnz"]), (&10.into(), &8.0.into()), "{spgemm}");
    assert_eq!((&spgemm["product"], &spgemm["sampled_rows"]), (&"A·A".into(), &4.into()));
    assert!(found["copy_bytes_per_second"].as_f64().unwrap() > 1e8);
}

#[test]
fn choices_are_what_plans_say() {
    let folder = Folder::new();
    let path = band(&folder);
    let found = json(&[&path]);
    let choices = found["choices"].as_array().unwrap();
    let names: Vec<_> = choices.iter().map(|c| (c["operation"].as_str(), c["precision"].as_str())).collect();
    let operations = ["SpMV", "SpMM, N = 32", "SpGEMM, A·A"];
    let expected: Vec<_> =
        ["fp64", "fp32"].iter().flat_map(|p| operations.map(|o| (Some(o), Some(*p)))).collect();
    assert_eq!(names, expected);
    for choice in choices {
        assert_eq!(choice["error"], Value::Null, "{choice}");
        let plan = &choice["plan"];
        for key in ["predicted_seconds", "analysis_seconds"] {
            assert!(plan[key].as_f64().unwrap() > 0.0, "{key}: {choice}");
        }
        // SpMV's slices are a copy, with some padding where rows differ in length.
        let is_copy = choice["operation"] == "SpMV";
        let fill = plan["fill"].as_f64().unwrap();
        assert_eq!(plan["in_place"], Value::from(!is_copy), "{choice}");
        assert!(if is_copy { (1.0..1.1).contains(&fill) } else { fill == 1.0 }, "{choice}");
        assert!(!plan["reason"].as_str().unwrap().is_empty(), "{choice}");
        let bytes = choice["bytes"].as_f64().unwrap();
        let seconds = bytes / found["copy_bytes_per_second"].as_f64().unwrap();
        assert!((choice["roofline_seconds"].as_f64().unwrap() / seconds - 1.0).abs() < 1e-12);
    }
    // y = A·x: entries of 12 bytes, 301 offsets of 4 bytes, two vectors.
    let nnz = found["nnz"].as_f64().unwrap();
    assert_eq!(choices[0]["bytes"].as_f64(), Some(12.0 * nnz + 4.0 * 301.0 + 16.0 * 300.0));
    assert_eq!(choices[3]["bytes"].as_f64(), Some(8.0 * nnz + 4.0 * 301.0 + 8.0 * 300.0));

    let tuned = json(&[&path, "--effort", "tuned"]);
    let reason = tuned["choices"][0]["plan"]["reason"].as_str().unwrap();
    assert!(reason.contains("timed: "), "{reason}");
    let reason = tuned["choices"][1]["plan"]["reason"].as_str().unwrap();
    let timed = reason.split_once("timed: ").expect("the candidates that were timed").1;
    // Details of the fastest follow.
    let timed = timed.split_once("; ").map_or(timed, |(timed, _)| timed);
    let is_time = |part: &str| [" µs", " ms", " s"].iter().any(|unit| part.ends_with(unit));
    assert!(timed.split(", ").count() >= 3 && timed.split(", ").all(is_time), "{reason}");

    let text = inspect(&[&path, "--backend", "reference"]);
    assert_has(&text, &["backend reference", "sell, list of entries", "by the reference backend"]);
}

#[test]
fn every_layout_is_predicted() {
    let folder = Folder::new();
    let found = json(&[&band(&folder)]);
    let predictions = found["predictions"].as_array().unwrap();
    for precision in ["fp64", "fp32"] {
        for (machine, names) in
            [("H100", &["csr", "dasp", "mask_block", "sell", "stream"][..]), ("host", &["csr", "sell"])]
        {
            let is_here = |p: &&Value| p["machine"] == machine && p["precision"] == precision;
            let here: Vec<_> = predictions.iter().filter(is_here).collect();
            let mut algorithms: Vec<_> = here.iter().map(|p| p["algorithm"].as_str().unwrap()).collect();
            algorithms.sort_unstable();
            assert_eq!(algorithms, names, "{machine} {precision}");
            assert_eq!(here.iter().filter(|p| p["chosen"] == true).count(), 1);
            // At least the entries' values, x and y are moved; the time is above that of the memory traffic.
            let nnz = found["nnz"].as_f64().unwrap();
            let value = if precision == "fp64" { 8.0 } else { 4.0 };
            for p in &here {
                let bytes = p["bytes"].as_f64().unwrap();
                assert!(bytes > value * (nnz + 600.0) && bytes < 20.0 * nnz, "{p}");
                assert!(p["seconds"].as_f64().unwrap() > bytes / 3.1e12, "{p}");
            }
        }
    }
    // The host's plan is the one that the predictions show as chosen.
    let chosen = predictions.iter().find(|p| p["machine"] == "host" && p["chosen"] == true).unwrap();
    assert_eq!(chosen["algorithm"], found["choices"][0]["plan"]["algorithm"]);
}

#[test]
fn files_of_other_kinds() {
    let folder = Folder::new();
    let hermitian = "%%MatrixMarket matrix coordinate complex hermitian\n\
                     3 3 4\n1 1 4.1 0\n2 1 0.3 0.7\n2 2 3.3 0\n3 2 -0.1 0.2\n";
    let path = folder.text("h.mtx", hermitian);
    assert_has(
        &inspect(&[&path]),
        &["coordinate complex hermitian", "pattern 100 %; values hermitian", "complex fp64", "complex fp32"],
    );
    let found = json(&[&path]);
    assert_eq!(found["value_symmetry"]["conjugate"], 2);
    assert_eq!((&found["complex"], &found["value_symmetry"]["equal"]), (&true.into(), &0.into()));

    let skew = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n";
    assert_has(
        &inspect(&[&folder.text("s.mtx", skew)]),
        &["array integer skew-symmetric", "values skew-symmetric", "diagonal: 0 of 3 stored"],
    );

    let wide = folder.matrix("wide.mtx", &gallery::rectangular(20, 900, 0.1, 11).unwrap());
    assert_has(&inspect(&[&wide]), &["not square", "A·Aᵀ", "SpGEMM, A·Aᵀ  fp64"]);
    if let Some(zipped) = gzip(&wide) {
        assert_eq!(json(&[zipped.to_str().unwrap()])["cols"], 900);
    }

    for size in ["0 0", "3 0", "0 4", "5 5"] {
        let text = format!("%%MatrixMarket matrix coordinate pattern general\n{size} 0\n");
        let path = folder.text("empty.mtx", &text);
        assert_has(&inspect(&[&path, "--plot", &folder.path("empty.png")]), &["0 entries"]);
        assert!(picture(&folder.path("empty.png")).2.len() > 1000);
    }
}

/// Reads a PNG file of ours; returns (width, height, pixels).
fn picture(path: &str) -> (usize, usize, Vec<[u8; 3]>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    let pixels = bytes.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    (info.width as usize, info.height as usize, pixels)
}

#[test]
fn the_picture() {
    let folder = Folder::new();
    let out = folder.path("spy.png");
    inspect(&[&band(&folder), "--plot", &out]);
    let (width, height, pixels) = picture(&out);
    // Title and axes are around the cells, which are a square of 1024 pixels.
    assert_eq!((width, height), (1024 + 240, 1024 + 212));
    let (left, top) = (180, 116);
    // Pixels of rows and columns 100 and 250 of 300, in the middle of their cells.
    let place = |index: f64| ((index + 0.5) / 300.0 * 1024.0) as usize;
    let at = |x: usize, y: usize| pixels[(top + y) * width + left + x];
    let (low, high) = (place(100.0), place(250.0));
    assert!(at(low, low)[0] < 100 && at(high, high)[0] < 100, "the diagonal is dark");
    assert_eq!((at(high, low), at(low, high)), ([255; 3], [255; 3]));
    let frame = |x: usize, y: usize| pixels[y * width + x];
    assert_eq!((frame(left - 2, 600), frame(600, top + 1024 + 1)), ([96; 3], [96; 3]), "the frame");
    // There is text above, below and at the left.
    let is_written = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        let mut places = rows.flat_map(|y| columns.clone().map(move |x| (x, y)));
        places.any(|(x, y)| frame(x, y)[0] < 140)
    };
    assert!(is_written(0..100, left..600) && is_written(1160..1236, left..1204), "title, columns");
    assert!(is_written(top..1140, 75..115) && is_written(top..1140, 120..165), "rows");
    assert!(!is_written(0..10, 0..width));

    // A picture is at most ten times as high as wide.
    inspect(&[&folder.matrix("tall.mtx", &gallery::rectangular(5000, 3, 0.5, 1).unwrap()), "--plot", &out]);
    let (width, height, pixels) = picture(&out);
    assert_eq!((width, height), (800, 1024 + 212));
    // The cells are 102 pixels wide, and there is nothing at the right of them.
    assert!(pixels
        .chunks(width)
        .skip(top)
        .all(|row| row[left + 102 + 40..].iter().all(|pixel| pixel[0] == 255)));
}

#[test]
fn numbers_of_threads_change_nothing() {
    let folder = Folder::new();
    // The text has several chunks, and duplicates that are far apart.
    let n = 400;
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} 60000\n");
    let mut rng = matrices::SplitMix64::new(4);
    for _ in 0..60_000 {
        let (i, j) = (rng.below(n) + 1, rng.below(n) + 1);
        text += &format!("{} {} {:.16e}\n", i.max(j), i.min(j), rng.value());
    }
    assert!(text.len() > 1 << 20);
    let path = folder.text("pairs.mtx", &text);
    let run = |threads: &str| {
        let command = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tarsia"));
            let output = command.args(arguments).env("TARSIA_NUM_THREADS", threads).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            output
        };
        let packed = folder.path(&format!("{threads}.tsm"));
        command(&["pack", &path, &packed]);
        let output = command(&["inspect", &path, "--json", "--backend", "host"]);
        let mut found: Value = serde_json::from_str(stdout(&output)).unwrap();
        let object = found.as_object_mut().unwrap();
        for measured in ["read_seconds", "copy_bytes_per_second", "choices"] {
            object.remove(measured).expect(measured);
        }
        (std::fs::read(&packed).unwrap(), found)
    };
    let one = run("1");
    assert_eq!(one.1["value_symmetry"]["equal"], one.1["value_symmetry"]["pairs"]);
    assert!(run("3") == one && run("7") == one);
}

#[test]
fn what_cannot_be_done() {
    let folder = Folder::new();
    let missing = folder.path("missing.mtx");
    assert_has(&error(&["inspect", &missing]), &[&format!("tarsia: {missing}: No such file")]);
    let bad = folder.text("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n");
    assert_has(&error(&["inspect", &bad]), &["bad.mtx: line 3: found 'x', expected a column index"]);
    let band = band(&folder);
    let nowhere = folder.path("no/folder.png");
    assert_has(&error(&["inspect", &band, "--plot", &nowhere]), &["folder.png: No such file"]);
    assert_has(&error(&["inspect", &band, "--effort", "much"]), &["possible values: quick, default, tuned"]);
    assert_has(&error(&["inspect"]), &["<MATRIX>"]);

    // A file that is cut off within its compressed data.
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    zipped.write_all(&std::fs::read(&band).unwrap()).unwrap();
    let zipped = zipped.finish().unwrap();
    let cut = folder.path("cut.mtx.gz");
    std::fs::write(&cut, &zipped[..zipped.len() / 2]).unwrap();
    assert_has(&error(&["inspect", &cut]), &["cut.mtx.gz: after line "]);
}

#[test]
fn the_ending_says_the_kind_of_picture() {
    let folder = Folder::new();
    let band = band(&folder);
    for name in ["spy.jpg", "spy.png.pdf"] {
        let path = folder.path(name);
        let said = error(&["inspect", &band, "--plot", &path]);
        assert_has(&said, &[&format!("--plot {path}: "), "written as .png or .svg"]);
        assert!(!said.contains("reading") && !Path::new(&path).exists(), "{said}");
    }
    // A name without an ending is accepted.
    for name in ["spy.PNG", "spy"] {
        inspect(&[&band, "--plot", &folder.path(name)]);
        assert_eq!(picture(&folder.path(name)).0, 1264);
    }
    let path = folder.path("spy.svg");
    inspect(&[&band, "--plot", &path]);
    let text = std::fs::read_to_string(&path).unwrap();
    let entries = gallery::banded(300, 4, 7).unwrap().nnz();
    assert_has(&text, &["<svg", "band.mtx", &format!("300 × 300, {} entries", grouped(entries)), "column"]);
    assert!((256..4 * 256).contains(&text.matches("<rect").count()), "runs of cells are one shape");
}

/// Formats a number of four digits as the program does.
fn grouped(number: usize) -> String {
    assert!((1000..10_000).contains(&number));
    format!("{},{:03}", number / 1000, number % 1000)
}

#[test]
fn patterns_have_no_values() {
    let folder = Folder::new();
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n2 1\n3 2\n";
    let path = folder.text("p.mtx", text);
    let said = inspect(&[&path, "--backend", "host"]);
    assert_has(&said, &["Symmetry  pattern 100 %; the file has no values\n"]);
    assert!(!said.contains("values symmetric"), "{said}");
    let found = json(&[&path]);
    assert_eq!((&found["value_symmetry"], &found["pattern_symmetry"]), (&Value::Null, &1.0.into()));
}

#[test]
fn a_program_that_stops_listening_is_no_error() {
    let folder = Folder::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tarsia"))
        .args(["inspect", "--json", &band(&folder)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn explanations() {
    let folder = Folder::new();
    let path = band(&folder);
    let found = json(&[&path, "--explain"]);
    let all = found["explanations"].as_array().unwrap();
    let operations = ["SpMV", "SpMM, N = 32", "SpGEMM, A·A"];
    let machines = ["H100", "host"];
    let expected: Vec<_> = ["fp64", "fp32"]
        .iter()
        .flat_map(|p| machines.map(|m| operations.map(|o| [o, m, *p])))
        .flatten()
        .collect();
    let keys = ["operation", "machine", "precision"];
    let names: Vec<_> = all.iter().map(|one| keys.map(|key| one[key].as_str().unwrap())).collect();
    assert_eq!(names, expected);
    for one in all {
        let candidates = one["candidates"].as_array().unwrap();
        assert_eq!(one["chosen"], candidates[0]["algorithm"], "{one}");
        assert!(candidates[0]["seconds"].as_f64().unwrap() > 0.0, "{one}");
        assert!(one["reason"].as_str().unwrap().starts_with(one["chosen"].as_str().unwrap()), "{one}");
        assert!(!one["features"].as_array().unwrap().is_empty(), "{one}");
        // On a GPU the model predicts all candidates.
        if one["machine"] == "H100" && one["operation"] != "SpGEMM, A·A" {
            assert!(candidates.len() >= 4, "{one}");
            let seconds: Vec<_> = candidates.iter().map(|c| c["seconds"].as_f64().unwrap()).collect();
            // sell is chosen unless another candidate is clearly faster.
            assert!(seconds[1..].is_sorted() && seconds[0] <= 1.2 * seconds[1], "{one}");
        }
    }
    // In a band of 9 entries per row, neighbouring rows share their columns.
    let spmm = &all[1]["features"];
    assert_eq!(spmm[0]["name"], "entries that a row of B serves in windows of 8 rows");
    assert!(spmm[0]["value"].as_f64().unwrap() > 4.0, "{spmm}");
    let features = &found["features"];
    assert_eq!(features["version"], tarsia::facade::FeatureSet::VERSION);
    assert!(features["micros"].as_f64().unwrap() > 0.0);
    let numbers = features["numbers"].as_array().unwrap();
    assert_eq!(
        (numbers.len(), &numbers[0]["name"], &numbers[5]["name"]),
        (24, &"rows".into(), &"row_entries_max".into())
    );
    assert_eq!(numbers[5]["value"], 9.0);
    let plain = json(&[&path]);
    assert!(plain["explanations"].is_null() && plain["features"].is_null());

    let text = inspect(&[&path, "--explain", "--backend", "host"]);
    assert_has(
        &text,
        &[
            "\nWhy       what the cost model counts, expects of each candidate, and takes (*)\n",
            "\nSpMV, fp64, H100\n",
            "\nSpMM, N = 32, fp32, host\n",
            "\nSpGEMM, A·A, fp64, H100\n",
            "\n  entries of the longest row ",
            "\nFeatures  list 3, 24 numbers by which learned orders of rows are chosen, in ",
            "\n  rows ",
            "\n  * ",
        ],
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{} columns: {line}", line.chars().count());
    }
    // Counts are printed as integers.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let products = found["spgemm"]["products"].as_u64().unwrap();
    assert_has(
        &words,
        &[&format!(" multiplications {products} "), " rows 300 cols 300 ", " row_entries_max 9 "],
    );
    assert_has(&words, &[" entries of the longest row 9 empty rows 0 ", " entries of a row, mean 8.93 "]);
    assert_has(&words, &[" row_entries_mean 8.9"]);
}

#[test]
fn help_explains_what_is_printed() {
    let help = tarsia(&["inspect", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert_has(stdout(&help), &["--plot", "--json", "--effort", "spy plot", "at copy", "Examples:"]);
    for line in stdout(&help).lines() {
        assert!(line.chars().count() <= 104, "{line}");
    }
}
