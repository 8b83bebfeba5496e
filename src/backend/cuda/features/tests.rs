//! On a device, against the CPU. Skipped without one.

use std::time::Instant;

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed};
use crate::backend::cuda::memory::synchronize;
use crate::backend::cuda::timing::Stopwatch;
use crate::matrix::testing::pattern;
use crate::matrix::{Compressed, SparseMatrix};
use crate::select::features::profile_tests::families;
use crate::types::{IndexBase, IndexType};
use matrices::gallery::{self, Set};
use matrices::owned::OwnedCsr;

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
        SparseMatrix { arrays: SparseArrays::Csr(self.compressed), writable: false, temporary: false }
    }
}

fn compare(found: &Profile, expected: &Profile, name: &str) {
    assert_eq!(found.striped, expected.striped, "{name}");
    assert_eq!(found.repeats, expected.repeats, "{name}");
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
    let pruned = gallery::pruned(3000, 3000, 0.5, 1).unwrap();
    let named = ["gupta3", "webbase", "dc2", "band256"].map(|name| (name, gallery::named(name).unwrap()));
    for (name, a) in named.into_iter().chain([("pruned", pruned)]) {
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
        let (matrix, rows) = (stored.matrix(), Rows::of(&stored.compressed));
        for is_beside in [true, false] {
            let how = How { most_lines: 1, is_beside };
            let found = counted(&cx, &device, &matrix, Operation::NonTranspose, "A", how).unwrap();
            compare(&found, &expected, &name);
        }
        // Full tables are said to be.
        if lines_of(&rows) > 4096 && rows.nnz > 4096 {
            let mut words = Readback::take(&cx, &device).unwrap();
            let _scratch = enqueue_striped(&cx, &device, &rows, Some(256), words.at(0)).unwrap();
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
    let huge = SparseMatrix { arrays: SparseArrays::Csr(huge), writable: false, temporary: false };
    assert!(of(&cx, &device, &huge, Operation::NonTranspose, "A").is_err());
    drop(stored.arrays);
    assert_eq!(cx.allocator.live_bytes(), 0);
}

/// Nothing outside the arrays is read or written, and it ends.
#[test]
fn features_of_any_numbers_are_an_error() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let mut random = matrices::SplitMix64::new(5);
    let mut a = gallery::rmat(12, 8, 0.57, 0.19, 0.19, 1).unwrap().into_pattern();
    let expected = Profile::of(&pattern(&a), DataType::R32F);
    let valid = Stored::new(&cx, &a, WIDTHS[0], IndexBase::Zero);
    let nnz = a.nnz() as i64;
    for round in 0..12 {
        for offset in &mut a.offsets {
            *offset = match round % 4 {
                0 => random.below(2 * nnz as u64) as i64 - nnz / 2,
                1 => random.below(2) as i64 * nnz,
                2 => random.below(nnz as u64) as i64,
                _ => *offset,
            };
        }
        for index in a.indices.iter_mut().filter(|_| round % 3 > 0) {
            *index = random.next_u64() as i32;
        }
        let stored = Stored::new(&cx, &a, WIDTHS[round % 3], IndexBase::Zero);
        assert!(of(&cx, &device, &stored.matrix(), Operation::NonTranspose, "A").is_err(), "{round}");
        let found = of(&cx, &device, &valid.matrix(), Operation::NonTranspose, "A").unwrap();
        compare(&found, &expected, "after one that is wrong");
    }
}

/// Calls of several threads have streams of their own.
#[test]
fn features_of_several_threads_are_the_cpus() {
    let Some((device, cx)) = context_of_device() else { return };
    let matrices = [gallery::named("scircuit").unwrap(), gallery::band(30_000, 9, 9).unwrap()];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, cx, a) = (&device, &cx, &matrices[thread % 2]);
            scope.spawn(move || {
                let _entered = device.enter().unwrap();
                let stored = Stored::new(cx, a, WIDTHS[0], IndexBase::Zero);
                let expected = Profile::of(&pattern(a), DataType::R32F);
                for _ in 0..20 {
                    let found = of(cx, device, &stored.matrix(), Operation::NonTranspose, "A").unwrap();
                    compare(&found, &expected, "of a thread");
                }
            });
        }
    });
    assert_eq!(cx.allocator.live_bytes(), 0);
}

/// Work that writes to a page.
type Phase<'a> = &'a dyn Fn(&mut Readback) -> Result<()>;

/// Median microseconds of the features, of the comparison's matrices of the gallery: of all of them on
/// several streams, with an empty L2, and on one stream, and of the parts, each with its wait.
///
/// `unit --ignored --nocapture --test-threads 1 cuda::features::tests::features_cost`
#[test]
#[ignore = "times phases on a device"]
fn features_cost() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let clock = Stopwatch::new(device.ordinal(), cx.stream).unwrap();
    println!(
        "{:28} {:>9} {:>9} |   all  cold   one stream | nothing check survey shared striped distinct",
        "matrix", "rows", "nnz"
    );
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        let stored = Stored::new(&cx, &a, WIDTHS[0], IndexBase::Zero);
        let (matrix, rows) = (stored.matrix(), Rows::of(&stored.compressed));
        let op = Operation::NonTranspose;
        let all = |is_beside| {
            let how = How { is_beside, ..HOW };
            counted(&cx, &device, &matrix, op, "A", how).map(drop)
        };
        let phases: [Phase<'_>; 6] = [
            &|_| Ok(()),
            &|words| check::enqueue(&cx, &device, &matrix, op, words, CHECK),
            &|words| enqueue_survey(&cx, &device, &rows, 4, words),
            &|words| enqueue_shared(&cx, &device, &rows, words).map(drop),
            &|words| enqueue_striped(&cx, &device, &rows, None, words.at(STRIPED)).map(drop),
            &|words| enqueue_distinct(&cx, &device, &rows, words.at(DISTINCT)),
        ];
        let part = |at: usize| {
            let mut words = Readback::take(&cx, &device)?;
            phases[at](&mut words)?;
            words.fetch(&cx, CHECK)?;
            words.wait(&cx).map(drop)
        };
        let mut times: [Vec<f64>; 9] = Default::default();
        for (at, times) in times.iter_mut().enumerate() {
            for round in 0..14 {
                if at == 1 {
                    clock.flush_l2().unwrap();
                    synchronize(cx.stream).unwrap();
                }
                let start = Instant::now();
                match at {
                    0 | 1 => all(true).unwrap(),
                    2 => all(false).unwrap(),
                    _ => part(at - 3).unwrap(),
                }
                // The first ones load kernels and map memory.
                if round >= 5 {
                    times.push(start.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        let [all, cold, one, nothing, check, survey, shared, striped, distinct] = times.map(|mut us| {
            us.sort_by(f64::total_cmp);
            us[us.len() / 2]
        });
        println!(
            "{:28} {:>9} {:>9} | {all:5.0} {cold:5.0} {one:12.0} | {nothing:7.0} {check:5.0} {survey:6.0} {shared:6.0} {striped:7.0} {distinct:8.0}",
            named.name,
            a.rows,
            a.nnz()
        );
    }
}
