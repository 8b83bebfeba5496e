//! On a device, against the CPU. Skipped without one.

use std::time::Instant;

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed};
use crate::matrix::gallery::{self, Set};
use crate::matrix::owned::OwnedCsr;
use crate::matrix::{Compressed, SparseMatrix};
use crate::select::features::profile_tests::families;
use crate::select::survey::tests::pattern;
use crate::types::{IndexBase, IndexType};

const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// A pattern on the device, whose values nobody reads.
struct Stored {
    arrays: [DeviceBuffer<i64>; 2],
    compressed: Compressed,
}

impl Stored {
    fn new<V>(
        cx: &Context,
        a: &OwnedCsr<V>,
        (offset_type, index_type): (IndexType, IndexType),
        base: IndexBase,
    ) -> Self {
        let shift = i64::from(base.code());
        let offsets: Vec<i64> = a.offsets.iter().map(|&offset| offset + shift).collect();
        let indices: Vec<i64> = a.indices.iter().map(|&index| i64::from(index) + shift).collect();
        let arrays = [typed(&offsets, offset_type), typed(&indices, index_type)]
            .map(|array| DeviceBuffer::from_slice(cx, &array).unwrap());
        let compressed = Compressed {
            major: a.rows as i64,
            minor: a.cols as i64,
            nnz: a.nnz() as i64,
            offsets: arrays[0].address(),
            indices: arrays[1].address(),
            // Of this size only.
            values: arrays[0].address(),
            offset_type,
            index_type,
            base,
            value_type: DataType::R32F,
        };
        Stored { arrays, compressed }
    }

    fn matrix(&self) -> SparseMatrix {
        SparseMatrix { arrays: SparseArrays::Csr(self.compressed), writable: false }
    }
}

fn compare(found: &Profile, expected: &Profile, name: &str) {
    assert_eq!(found.striped, expected.striped, "{name}");
    assert_eq!(found.reuse, expected.reuse, "{name}");
    assert_eq!(found.compression, expected.compression, "{name}");
    assert_eq!(found.windows, expected.windows, "{name}");
    assert!(found.survey == expected.survey, "{name}: the survey");
    let bits = |profile: &Profile| profile.numbers().map(f64::to_bits);
    assert_eq!(bits(found), bits(expected), "{name}");
}

#[test]
fn features_of_all_families_are_the_cpus() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    for (name, a) in families() {
        let expected = Profile::of(&pattern(&a), DataType::R32F);
        for widths in WIDTHS {
            for base in [IndexBase::Zero, IndexBase::One] {
                let name = format!("{name}, {} × {}, {widths:?} {base:?}", a.rows, a.cols);
                let stored = Stored::new(&cx, &a, widths, base);
                let found = of(&cx, &device, &stored.matrix(), Operation::NonTranspose, "A").unwrap();
                compare(&found, &expected, &name);
                let again = of(&cx, &device, &stored.matrix(), Operation::NonTranspose, "A").unwrap();
                compare(&again, &expected, &name);
            }
        }
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

/// More entries than are looked at, and rows that are cut in many pieces.
#[test]
fn striped_samples_are_the_cpus() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    for name in ["gupta3", "webbase", "dc2", "band256"] {
        let a = gallery::named(name).unwrap();
        let expected = Profile::of(&pattern(&a), DataType::R32F);
        let stored = Stored::new(&cx, &a, WIDTHS[0], IndexBase::Zero);
        let found = of(&cx, &device, &stored.matrix(), Operation::NonTranspose, "A").unwrap();
        compare(&found, &expected, name);
    }
}

/// Lines that have to find their places, and more of them than there is room for at first.
#[test]
fn striped_lines_without_places_of_their_own() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let wide = gallery::uniform(3000, 100_000_000, 40, 5).unwrap().into_pattern();
    for (name, a) in families().into_iter().chain([("wide".into(), wide)]) {
        let expected = Profile::of(&pattern(&a), DataType::R32F);
        let stored = Stored::new(&cx, &a, WIDTHS[1], IndexBase::One);
        let rows = Rows::of(&stored.compressed);
        let found = of_rows(&cx, &device, &rows, DataType::R32F, expected.survey.clone(), 1).unwrap();
        compare(&found, &expected, &name);
        // Full tables are said to be.
        if lines_of(&rows) > 4096 && rows.nnz > 4096 {
            let mut words = Readback::take(&cx, &device).unwrap();
            let _scratch = enqueue_striped(&cx, &device, &rows, Some(256), &words).unwrap();
            words.fetch(&cx, word::COUNT).unwrap();
            assert!(words.wait(&cx).unwrap()[word::LOST] > 0, "{name}");
        }
    }
}

/// Rows that are not sorted, and columns; values are copied then.
#[test]
fn features_of_copies_are_the_cpus() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let mut a = gallery::named("scircuit").unwrap();
    let expected = Profile::of(&pattern(&a), DataType::R32F);
    let across = {
        let across = gallery::with_values(gallery::named("scircuit").unwrap(), 1).unwrap();
        across.transpose().unwrap().into_pattern()
    };
    let expected_across = Profile::of(&pattern(&across), DataType::R32F);
    for row in 0..a.rows {
        a.indices[a.offsets[row] as usize..a.offsets[row + 1] as usize].reverse();
    }
    let values = DeviceBuffer::<f32>::zeroed(&cx, a.nnz()).unwrap();
    let mut stored = Stored::new(&cx, &a, WIDTHS[0], IndexBase::One);
    stored.compressed.values = values.address();
    for (op, expected) in [(Operation::NonTranspose, &expected), (Operation::Transpose, &expected_across)] {
        let found = of(&cx, &device, &stored.matrix(), op, "A").unwrap();
        compare(&found, expected, "scircuit");
    }
}

#[test]
fn features_of_a_wrong_pattern_are_an_error() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let mut a = gallery::named("scircuit").unwrap();
    a.indices[1000] = i32::MAX;
    let stored = Stored::new(&cx, &a, WIDTHS[0], IndexBase::Zero);
    let error = of(&cx, &device, &stored.matrix(), Operation::NonTranspose, "A").unwrap_err();
    assert!(error.to_string().contains("colInd[1000]"), "{error}");
    let huge = Compressed { minor: 1 << 40, index_type: IndexType::I64, ..stored.compressed };
    let huge = SparseMatrix { arrays: SparseArrays::Csr(huge), writable: false };
    assert!(of(&cx, &device, &huge, Operation::NonTranspose, "A").is_err());
    drop(stored.arrays);
    assert_eq!(cx.allocator.live_bytes(), 0);
}

/// Work that writes to a page.
type Phase<'a> = &'a dyn Fn(&mut Readback) -> Result<()>;

/// Median microseconds of the features, of the comparison's matrices of the gallery: of all of them, of the
/// check with SpMV's survey, of the striped rows, of windows, and of columns that come again, each with
/// its wait.
///
/// `unit --ignored --nocapture --test-threads 1 cuda::features::tests::features_cost`
#[test]
#[ignore = "times phases on a device"]
fn features_cost() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    println!("{:28} {:>9} {:>9} |   all check striped windows distinct", "matrix", "rows", "nnz");
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        let stored = Stored::new(&cx, &a, WIDTHS[0], IndexBase::Zero);
        let (matrix, rows) = (stored.matrix(), Rows::of(&stored.compressed));
        let op = Operation::NonTranspose;
        let mut times: [Vec<f64>; 5] = Default::default();
        for round in 0..14 {
            let phases: [Phase<'_>; 5] = [
                &|_| of(&cx, &device, &matrix, op, "A").map(drop),
                &|words| {
                    check::enqueue(&cx, &device, &matrix, op, words, CHECK)?;
                    enqueue_survey(&cx, &device, &rows, 4, words).map(drop)
                },
                &|words| enqueue_striped(&cx, &device, &rows, None, words).map(drop),
                &|words| number::enqueue_survey(&cx, &device, &rows, shape(DataType::R32F), words.at(0)),
                &|words| enqueue_distinct(&cx, &device, &rows, words.at(0)),
            ];
            for (phase, times) in phases.into_iter().zip(&mut times) {
                let start = Instant::now();
                let mut words = Readback::take(&cx, &device).unwrap();
                phase(&mut words).unwrap();
                words.fetch(&cx, WORDS).unwrap();
                words.wait(&cx).unwrap();
                // The first ones load kernels and map memory.
                if round >= 5 {
                    times.push(start.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        let [all, check, striped, windows, distinct] = times.map(|mut us| {
            us.sort_by(f64::total_cmp);
            us[us.len() / 2]
        });
        println!(
            "{:28} {:>9} {:>9} | {all:5.0} {check:5.0} {striped:7.0} {windows:7.0} {distinct:8.0}",
            named.name,
            a.rows,
            a.nnz()
        );
    }
}
