//! Tests of 16-bit columns: they must be those that the CPU would make, and products must have the same bits
//! as with the user's columns. Skipped without a device.

use std::sync::Arc;

use super::*;
use crate::algorithm::Algorithm;
use crate::backend::cuda::convert::testing::{context, context_of_device, typed, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::{self, CudaMemory};
use crate::backend::cuda::spmv::sell::product_tests::{
    self, bits, check_sums, round, run, upload, Pattern, Real,
};
use crate::backend::cuda::timing;
use crate::backend::cuda::ONCE_WORKSPACE_BYTES;
use crate::backend::LayoutInfo;
use crate::format::testing::TestMatrix;
use crate::matrix::{Compressed, SparseMatrix};
use crate::memory::Allocator;
use crate::memory::Context;
use crate::select::spmv::csr::{Origins, CHUNK, MOST_PIECES};
use crate::select::Source;
use crate::support::{Bf16, Bf16F32, Combo, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Element, IndexBase, Operation, Reorder};
use matrices::gallery::{self, Set};
use testkit::Random;

/// A matrix, the name of its form, and the origins of its 16-bit columns, if it can have them.
struct Case {
    name: &'static str,
    matrix: TestMatrix,
    form: &'static str,
    origins: Option<Origins>,
}

/// Reverses the columns of each row, so that they descend.
fn unsorted(mut matrix: TestMatrix) -> TestMatrix {
    for row in matrix.offsets.windows(2) {
        let at = |offset: i64| (offset - matrix.base) as usize;
        matrix.indices[at(row[0])..at(row[1])].reverse();
    }
    matrix
}

fn cases(base: i64) -> Vec<Case> {
    let (few, many) = (1 << 16, 200_000);
    let even = vec![12; 5000];
    // Some empty rows, one row that several blocks share, and an empty last row.
    let skewed: Vec<usize> = (0..6001)
        .map(|row| match row {
            3000 => 20_000,
            4000 => 1500,
            6000 => 0,
            _ => row % 9 * (row % 2),
        })
        .collect();
    // Work for 200 lanes per row: rows that whole blocks sum.
    let long: Vec<usize> = (0..300).map(|row| 600 + row % 2 * 580).collect();
    let case = |name, cols, lengths: &[usize], column: &dyn Fn(usize, usize) -> usize, form, origins| Case {
        name,
        matrix: unsorted(TestMatrix::new(base, cols, lengths, column)),
        form,
        origins,
    };
    // Row `row` has 12 entries; the first is in column `row`, the last `distance` columns behind it.
    let reach = |distance| move |row: usize, entry| if entry == 11 { row + distance } else { row + entry };
    let jump = |distance| {
        move |row: usize, entry| if (row, entry) == (4999, 11) { row + distance } else { row + entry }
    };
    // Rows for a warp each, some of them empty and some cut into pieces.
    let cut: Vec<usize> = (0..900)
        .map(|row| match row {
            5 => 1024,
            6 => 1025,
            500 => 20_000,
            _ => row % 7 * 9,
        })
        .collect();
    vec![
        case(
            "even, few columns",
            few,
            &even,
            &|row, entry| few - 1 - (row * 13 + entry * 5461) % few,
            "rows",
            Some(Origins::Zero),
        ),
        case("even, as far as 16 bits reach", many, &even, &reach(65_535), "rows", Some(Origins::Rows)),
        case("even, the last row too far", many, &even, &jump(65_536), "rows", None),
        case(
            "even, long rows",
            many,
            &long,
            &|row, entry| row * 400 + entry * 50,
            "long_rows",
            Some(Origins::Rows),
        ),
        case(
            "long rows, few columns",
            few,
            &cut,
            &|row, entry| (row * 31 + entry * 7) % few,
            "long_rows",
            Some(Origins::Zero),
        ),
        case(
            "long rows, near",
            many,
            &cut,
            &|row, entry| row * 50 + entry * 3,
            "long_rows",
            Some(Origins::Rows),
        ),
        case(
            "long rows, too far",
            many,
            &cut,
            &|row, entry| (row * 50 + entry * 9) % many,
            "long_rows",
            None,
        ),
        case(
            "skewed, few columns",
            few,
            &skewed,
            &|row, entry| (row * 31 + entry * 7) % few,
            "balanced",
            Some(Origins::Zero),
        ),
        case(
            "skewed, near",
            many,
            &skewed,
            &|row, entry| row * 20 + entry * 3,
            "balanced",
            Some(Origins::Chunks),
        ),
        // The ends of the row that are far apart are in different chunks, but the ends of its neighbours are
        // not.
        case(
            "skewed, the first row far from the second",
            many,
            &skewed,
            &|row, entry| if row < 2 { many - 1 - entry } else { row * 20 + entry * 3 },
            "balanced",
            None,
        ),
    ]
}

/// A matrix on the device.
struct Stored {
    _offsets: DeviceBuffer<i64>,
    _indices: DeviceBuffer<i64>,
    values: DeviceBuffer<u8>,
    csr: Compressed,
}

impl Stored {
    fn new<V: Element>(
        cx: &Context,
        matrix: &TestMatrix,
        widths: (IndexType, IndexType),
        values: &[V],
    ) -> Self {
        let offsets = DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, widths.0)).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &typed(&matrix.indices, widths.1)).unwrap();
        let values = upload(cx, values);
        let csr = Compressed {
            major: matrix.offsets.len() as i64 - 1,
            minor: matrix.cols as i64,
            nnz: matrix.indices.len() as i64,
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: widths.0,
            index_type: widths.1,
            base: if matrix.base == 1 { IndexBase::One } else { IndexBase::Zero },
            value_type: V::TYPE,
        };
        Stored { _offsets: offsets, _indices: indices, values, csr }
    }

    fn problem(&self, types: Types) -> SpmvProblem {
        let a = SparseMatrix { arrays: SparseArrays::Csr(self.csr), writable: false, temporary: false };
        SpmvProblem { op: Operation::NonTranspose, a, types, value_updates: false }
    }
}

fn name_of(form: Form) -> &'static str {
    match form {
        Form::Rows { .. } => "rows",
        Form::LongRows { .. } => "long_rows",
        Form::Balanced { .. } => "balanced",
    }
}

fn build(cx: &DeviceCall<'_>, problem: &SpmvProblem, keeps_columns: bool) -> CsrSpmv {
    let choice = Choice { keeps_columns, ..Choice::new(Algorithm::Csr, Source::InPlace) };
    let order = RowOrder::new(Reorder::None);
    CsrSpmv::build(cx, problem, (&choice, &order), None).unwrap()
}

/// Compares products on 16-bit columns with those on the user's columns, before and after new values.
fn same_bits<C: Combo>(cx: &DeviceCall<'_>, case: &Case, widths: (IndexType, IndexType))
where
    C::Acc: Real,
{
    let what = format!("{} {} {widths:?} base {}", case.name, C::TYPES.describe(), case.matrix.base);
    let (rows, nnz) = (case.matrix.offsets.len() - 1, case.matrix.indices.len());
    let mut random = Random::new(nnz as u64);
    let mut numbers = |count: usize| (0..count).map(|_| random.real()).collect::<Vec<_>>();
    let x: Vec<C::X> = round::<C, _>(&numbers(case.matrix.cols));
    let [first, second]: [Vec<C::A>; 2] = [0, 1].map(|_| round::<C, _>(&numbers(nnz)));
    let stored = Stored::new(cx, &case.matrix, widths, &first);
    let other = upload(cx, &second);
    let problem = stored.problem(C::TYPES);
    let before = cx.allocator.live_bytes();
    let mut wide = build(cx, &problem, false);
    let wide_bytes = cx.allocator.live_bytes() - before;
    let mut narrow = build(cx, &problem, true);
    let bytes = cx.allocator.live_bytes() - before - wide_bytes;
    assert_eq!(name_of(wide.launch.form), case.form, "{what}");
    assert_eq!(narrow.launch.form, wide.launch.form, "{what}");
    assert_eq!(narrow.columns.as_ref().map(NarrowColumns::origins), case.origins, "{what}");
    let kept =
        case.origins.map_or(0, |origins| 2 * nnz + 4 * origins.count(rows as i64, nnz as i64) as usize);
    assert!(bytes >= wide_bytes + kept && (kept > 0 || bytes == wide_bytes), "{what}: {bytes} bytes");
    assert_eq!((wide.details().is_empty(), narrow.details().is_empty()), (true, false), "{what}");
    assert!(narrow.layout().in_place, "{what}");
    let products = |wide: &CsrSpmv, narrow: &CsrSpmv, when: &str| {
        let [wide, narrow] = [wide, narrow].map(|plan| run::<C>(cx, plan, rows, &x));
        assert!(bits(&wide) == bits(&narrow), "{what}: other bits {when}");
        narrow
    };
    let old = products(&wide, &narrow, "to begin with");
    // The values are overwritten in place.
    memory::upload(stored.values.address(), bits(&second), cx.stream).unwrap();
    let new = products(&wide, &narrow, "of new values");
    assert!(bits(&old) != bits(&new), "{what}: old values");
    // The values come in another array.
    memory::upload(stored.values.address(), bits(&first), cx.stream).unwrap();
    for plan in [&mut wide, &mut narrow] {
        plan.update_values(cx, other.address()).unwrap();
    }
    assert!(bits(&products(&wide, &narrow, "of another array")) == bits(&new), "{what}");
}

#[test]
fn products_have_the_bits_of_those_on_columns_where_they_are() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for base in [0, 1] {
        for case in cases(base) {
            for widths in WIDTHS {
                same_bits::<F64>(cx, &case, widths);
            }
            macro_rules! each {
                ($($combo:ident)*) => { $(
                    same_bits::<$combo>(cx, &case, WIDTHS[0]);
                    same_bits::<$combo>(cx, &case, WIDTHS[2]);
                )* };
            }
            each! { F32 F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64 }
        }
    }
    assert_eq!(cx.allocator.live_bytes(), 0);
}

/// Multiplies with and without a plan, for which pieces have threads even if no row is cut.
fn check_long_rows<C: Combo>(cx: &DeviceCall<'_>, lengths: &[usize])
where
    C::Acc: Real,
{
    let cols = 30_000;
    let pattern = Pattern::new(0, cols, lengths, |row, entry| (row * 31 + entry * 7) % cols);
    let longest = lengths.iter().max().unwrap();
    let what = format!("{} rows up to {longest} {}", lengths.len(), C::TYPES.describe());
    let (rows, nnz) = (lengths.len(), pattern.columns.len());
    let mut random = Random::new(nnz as u64);
    let mut numbers = |count: usize| (0..count).map(|_| random.real()).collect::<Vec<_>>();
    let (values, x) = (round::<C, C::A>(&numbers(nnz)), round::<C, C::X>(&numbers(cols)));
    let stored = product_tests::Stored::new(cx, &pattern, &values);
    let problem =
        SpmvProblem { op: Operation::NonTranspose, a: stored.matrix, types: C::TYPES, value_updates: false };
    let plan = build(cx, &problem, false);
    assert!(matches!(plan.launch.form, Form::LongRows { .. }), "{what}: {:?}", plan.launch.form);
    let of_plan = run::<C>(cx, &plan, rows, &x);
    check_sums::<C>(&pattern, &values, &x, &of_plan, &what);
    let of_once = run::<C>(cx, &Once(Arc::clone(&plan.device), problem), rows, &x);
    assert!(bits(&of_once) == bits(&of_plan), "{what}: other bits without a plan");
    assert!(bits(&run::<C>(cx, &plan, rows, &x)) == bits(&of_plan), "{what}: other bits the second time");
}

/// Products without a plan, as an executor.
struct Once(Arc<Device>, SpmvProblem);

impl DenseExecutor<DenseVector> for Once {
    fn workspace_bytes(&self, _: usize) -> usize {
        once_bytes(&self.0, &self.1)
    }

    fn product(&self, cx: &Context, scalars: ScalarsAt, [x, _, y]: [&DenseVector; 3]) -> Result<()> {
        once(&self.0.call(cx)?, &self.1, scalars, x, y)
    }

    fn update_values(&mut self, _: &Context, _: Address) -> Result<()> {
        unreachable!("nothing is kept")
    }

    fn layout(&self) -> LayoutInfo {
        unreachable!("nothing is kept")
    }
}

#[test]
fn long_rows_are_cut_and_joined() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let warps: Vec<usize> = (0..1500)
        .map(|row| match row {
            // Not cut, cut, and from one multiple of a piece to another.
            3 => 1024,
            4 => 1025,
            5 => 5 * 512 - 2085,
            6 => 3 * 512,
            700 => 30_000,
            701 => 1500,
            1499 => 4000,
            _ => row % 5 * 12,
        })
        .collect();
    let mut at_multiples = vec![5 * 512; 3];
    at_multiples.extend([30; 800]);
    let few = vec![8192, 8193, 100_000, 0, 1, 3 * 4096, 20_000];
    let even: Vec<usize> = (0..2000).map(|row| 300 + row % 60).collect();
    for lengths in [&warps, &at_multiples, &few, &even, &vec![1_000_000]] {
        check_long_rows::<F64>(cx, lengths);
        check_long_rows::<F32>(cx, lengths);
    }
    macro_rules! each {
        ($($combo:ident)*) => { $( check_long_rows::<$combo>(cx, &warps); )* };
    }
    each! { F32F64 F16 F16F32 Bf16 Bf16F32 C32 C64 }
}

/// Tests that products without a plan need no more workspace than such a product has.
#[test]
fn sums_of_pieces_fit_into_the_workspace_of_one_call() {
    assert!(2 * MOST_PIECES as usize * DataType::C64F.size() <= ONCE_WORKSPACE_BYTES);
}

#[test]
fn columns_are_made_as_the_cpu_would() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for base in [0, 1] {
        for case in cases(base) {
            let Some(origins) = case.origins else { continue };
            let matrix = &case.matrix;
            let columns: Vec<u32> = matrix.indices.iter().map(|&column| (column - base) as u32).collect();
            let least = |columns: &[u32]| columns.iter().min().copied().unwrap_or(0);
            let parts: Vec<&[u32]> = match origins {
                Origins::Zero => vec![],
                Origins::Chunks => columns.chunks(CHUNK as usize).collect(),
                Origins::Rows => {
                    let at = |offset: i64| (offset - base) as usize;
                    matrix.offsets.windows(2).map(|row| &columns[at(row[0])..at(row[1])]).collect()
                }
            };
            let of_parts =
                || parts.iter().flat_map(|part| part.iter().map(|column| (column - least(part)) as u16));
            let expected: Vec<u16> = match origins {
                Origins::Zero => columns.iter().map(|&column| column as u16).collect(),
                _ => of_parts().collect(),
            };
            for widths in WIDTHS {
                let stored = Stored::new(cx, matrix, widths, &matrix.values);
                let plan = build(cx, &stored.problem(F64::TYPES), true);
                let (found, found_origins) = plan.columns.as_ref().unwrap().arrays();
                assert!(found == expected, "{} {widths:?} base {base}", case.name);
                let expected: Vec<u32> = parts.iter().map(|part| least(part)).collect();
                assert!(found_origins == expected, "{} {widths:?} base {base}: origins", case.name);
            }
        }
    }
}

#[test]
fn without_memory_columns_are_read_where_they_are() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for case in cases(0) {
        let stored = Stored::new(cx, &case.matrix, WIDTHS[0], &case.matrix.values);
        let problem = stored.problem(F64::TYPES);
        let memory = || Arc::new(CudaMemory(Arc::clone(&device)));
        let free = context(Allocator::new(memory(), Address::NULL, usize::MAX));
        drop(build(&device.call(&free).unwrap(), &problem, false));
        // Slightly more memory than a plan without 16-bit columns takes.
        let tight = context(Allocator::new(memory(), Address::NULL, free.allocator.peak_bytes() + 1000));
        let plan = build(&device.call(&tight).unwrap(), &problem, true);
        assert!(plan.columns.is_none() && plan.details().contains("memory"), "{}", case.name);
        drop(plan);
        assert_eq!(tight.allocator.live_bytes(), 0);
    }
}

/// Tests matrices without rows or without entries.
#[test]
fn empty_matrices_have_no_columns() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for rows in [0, 1, 700] {
        let matrix = TestMatrix::new(0, 5, &vec![0; rows], |_, _| 0);
        let stored = Stored::new(cx, &matrix, WIDTHS[0], &matrix.values);
        let plan = build(cx, &stored.problem(F64::TYPES), true);
        assert!(plan.columns.is_none());
        assert!(run::<F64>(cx, &plan, rows, &[1.0; 5]).iter().all(|&y| y == 0.0));
    }
}

/// Prints, for the gallery's comparison matrices, the median microseconds of a product on the user's columns
/// and on 16-bit columns, and whether a plan would choose the latter.
///
/// `unit --ignored --nocapture --test-threads 1 cuda::spmv::csr::tests::times`
#[test]
#[ignore = "times products on a device"]
fn times() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    println!("{:28} {:>9} {:>9} {:8} |   wide narrow  ratio keeps | from", "matrix", "rows", "nnz", "types");
    for named in gallery::names().iter().filter(|named| named.set == Set::Comparison) {
        let a = named.pattern().unwrap();
        let matrix = TestMatrix {
            cols: a.cols,
            base: 0,
            offsets: a.offsets.to_vec(),
            indices: a.indices.iter().map(|&column| i64::from(column)).collect(),
            values: vec![],
        };
        fn of<C: Combo>(cx: &DeviceCall<'_>, (name, kind): (&str, &str), matrix: &TestMatrix)
        where
            C::Acc: Real,
        {
            let mut random = Random::new(1);
            let numbers: Vec<f64> = matrix.indices.iter().map(|_| random.real()).collect();
            let stored = Stored::new::<C::A>(cx, matrix, WIDTHS[0], &round::<C, _>(&numbers));
            let problem = stored.problem(C::TYPES);
            let plans = [false, true].map(|narrow| build(cx, &problem, narrow));
            let [wide, narrow] = plans.each_ref().map(|plan| 1e6 * timing::spmv(cx, &problem, plan).unwrap());
            let machine = &crate::select::roofline::Machine::H100;
            let amortized = crate::select::analysis::Amortized::new(machine, &problem.a, problem.op, 0);
            let effort = crate::types::Effort::Default;
            let keeps = crate::select::in_place::keeps_columns(&problem, effort, machine, &amortized);
            println!(
                "{name:28} {:>9} {:>9} {kind:8} | {wide:6.1} {narrow:6.1} {:6.3} {keeps:5} | {}",
                matrix.offsets.len() - 1,
                matrix.indices.len(),
                wide / narrow,
                plans[1].details()
            );
        }
        of::<F64>(cx, (named.name, "fp64"), &matrix);
        of::<F32>(cx, (named.name, "fp32"), &matrix);
        of::<F16F32>(cx, (named.name, "fp16"), &matrix);
    }
}
