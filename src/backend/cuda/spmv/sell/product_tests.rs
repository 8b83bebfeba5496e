//! Tests that products of values in a narrower form have the same bits as products of the full values.
//! Skipped without a device.

use half::f16;

use super::super::LayoutSpmv;
use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory;
use crate::backend::{DenseExecutor, SpmvExecutor};
use crate::format::testing::TestRows;
use crate::format::warp_sell::WIDE;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::{Context, Workspace, COUNTER_BYTES};
use crate::support::{Bf16, Bf16F32, Combo, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{Accumulator, Element, IndexBase, IndexType, Operation, Storage};
use testkit::Random;

/// Accumulator of real products.
pub(crate) trait Real: Accumulator {
    fn of(value: f64) -> Self;
    fn get(self) -> f64;
}
impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
    fn get(self) -> f64 {
        self.into()
    }
}
impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
    fn get(self) -> f64 {
        self
    }
}

impl Real for num_complex::Complex32 {
    fn of(value: f64) -> Self {
        Self::new(value as f32, 0.0)
    }
    fn get(self) -> f64 {
        self.re.into()
    }
}

impl Real for num_complex::Complex64 {
    fn of(value: f64) -> Self {
        Self::new(value, 0.0)
    }
    fn get(self) -> f64 {
        self.re
    }
}

pub(crate) fn round<C: Combo, V: Storage<C::Acc>>(values: &[f64]) -> Vec<V>
where
    C::Acc: Real,
{
    values.iter().map(|&value| V::round(C::Acc::of(value))).collect()
}

pub(crate) type Pattern = TestRows<i32, i32>;

/// Makes a pattern with about `mean` entries per row: rows of one length whose columns are runs, rows of all
/// lengths with near and far columns, empty rows, and two split rows.
fn pattern(mean: usize) -> Pattern {
    let mut random = Random::new(mean as u64);
    let mut lengths: Vec<usize> =
        (0..6000).map(|row| if row < 1024 { mean } else { random.below(2 * mean + 1) }).collect();
    (lengths[3000], lengths[5999]) = (1500, 5000);
    let cols = 200_000;
    Pattern::new(0, cols, &lengths, |row, entry| match row {
        ..1024 => row + 100 * entry,
        1024..2500 => row + random.below(3000),
        _ => random.below(cols),
    })
}

/// Makes values whose narrowest form is this one, at least in fp64.
pub(crate) fn values(form: Form, count: usize) -> Vec<f64> {
    let mut random = Random::new(count as u64 + 7);
    let mut value = |at: usize| match form {
        Form::Ones => 1.0,
        // Zeros, −0, subnormals and normals.
        Form::Half => match at % 5 {
            0 => f16::from_bits((random.below(2) << 15 | random.below(0x400)) as u16).to_f64(),
            _ => (random.below(4095) as f64 - 2047.0) / 1024.0,
        },
        Form::Single => f64::from(random.real() as f32),
        Form::Full => random.real(),
    };
    let mut out: Vec<f64> = (0..count).map(&mut value).collect();
    if form == Form::Half {
        (out[0], out[1]) = (-0.0, 3.0);
    }
    out
}

/// A matrix on the device.
pub(crate) struct Stored {
    _arrays: [DeviceBuffer<i32>; 2],
    _values: DeviceBuffer<u8>,
    pub(crate) matrix: SparseMatrix,
}

pub(crate) fn upload<V: Element>(cx: &Context, values: &[V]) -> DeviceBuffer<u8> {
    DeviceBuffer::from_slice(cx, bytemuck::cast_slice(values)).unwrap()
}

impl Stored {
    pub(crate) fn new<V: Element>(cx: &Context, pattern: &Pattern, values: &[V]) -> Self {
        let arrays = [&pattern.offsets, &pattern.columns].map(|a| DeviceBuffer::from_slice(cx, a).unwrap());
        let values = upload(cx, values);
        let csr = Compressed {
            major: pattern.rows() as i64,
            minor: pattern.cols as i64,
            nnz: pattern.columns.len() as i64,
            offsets: arrays[0].address(),
            indices: arrays[1].address(),
            values: values.address(),
            offset_type: IndexType::I32,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: V::TYPE,
        };
        let matrix = SparseMatrix { arrays: SparseArrays::Csr(csr), writable: false, temporary: false };
        Stored { _arrays: arrays, _values: values, matrix }
    }
}

fn build<C: Combo>(
    cx: &DeviceCall<'_>,
    a: SparseMatrix,
    op: Operation,
    value_updates: bool,
) -> LayoutSpmv<SellSpmv> {
    let problem = SpmvProblem { op, a, types: C::TYPES, value_updates };
    LayoutSpmv::<SellSpmv>::build(cx, &problem, None).unwrap()
}

pub(crate) fn vector<V: Element>(buffer: &DeviceBuffer<u8>) -> DenseVector {
    let len = (buffer.len() / size_of::<V>()) as i64;
    DenseVector { len, values: buffer.address(), value_type: V::TYPE, writable: true }
}

/// Computes y = 0.75 · A · x over NaN, and then y = −0.5 · A · x + 1.25 · y.
pub(crate) fn run<C: Combo>(cx: &Context, plan: &SpmvExecutor, rows: usize, x: &[C::X]) -> Vec<C::Y>
where
    C::Acc: Real,
{
    let bytes = plan.workspace_bytes(1);
    let workspace = DeviceBuffer::from_slice(cx, &vec![0xff_u8; bytes]).unwrap();
    let counters = DeviceBuffer::<u8>::zeroed(cx, COUNTER_BYTES).unwrap();
    let cx = Context {
        workspace: Workspace { address: workspace.address(), bytes },
        counters: counters.address(),
        ..cx.clone()
    };
    let y: Vec<C::Y> = round::<C, _>(&vec![f64::NAN; rows]);
    let (x, y) = (upload(&cx, x), upload(&cx, &y));
    for (alpha, beta) in [(0.75, 0.0), (-0.5, 1.25)] {
        let scalars = [C::Acc::of(alpha), C::Acc::of(beta)];
        let [alpha, beta] = [0, 1].map(|at: usize| Address::new(&raw const scalars[at]));
        plan.execute(&cx, alpha, &vector::<C::X>(&x), beta, &vector::<C::Y>(&y)).unwrap();
        memory::synchronize(cx.stream).unwrap();
    }
    assert!(counters.read(0, COUNTER_BYTES).unwrap().iter().all(|&byte| byte == 0));
    y.read(0, y.len()).unwrap().chunks_exact(size_of::<C::Y>()).map(bytemuck::pod_read_unaligned).collect()
}

pub(crate) fn bits<V: Element>(values: &[V]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Compares y with sums in fp64.
pub(crate) fn check_sums<C: Combo>(pattern: &Pattern, values: &[C::A], x: &[C::X], y: &[C::Y], what: &str)
where
    C::Acc: Real,
{
    let epsilon = match C::Acc::TYPE {
        DataType::R64F | DataType::C64F => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    // Rounding error of storing y, twice.
    let store = match C::Y::TYPE {
        DataType::R16F => 1.0 / 512.0,
        DataType::R16BF => 1.0 / 64.0,
        _ => 4.0 * epsilon,
    };
    for (row, y) in y.iter().enumerate() {
        let (mut sum, mut magnitude) = (0.0, 0.0);
        for at in pattern.row(row) {
            let product = values[at].widen().get() * x[pattern.columns[at] as usize].widen().get();
            sum += product;
            magnitude += product.abs();
        }
        let expected = (1.25 * 0.75 - 0.5) * sum;
        let allowed = 8.0 * (pattern.row(row).len() + 4) as f64 * epsilon * magnitude
            + store * magnitude.max(sum.abs())
            + 1e-7 * f64::from(u8::from(C::Y::TYPE == DataType::R16F));
        let error = (y.widen().get() - expected).abs();
        assert!(error <= allowed, "{what} row {row}: error {error:e}, allowed {allowed:e}");
    }
}

/// Compares a plan that stores the values in this form with one that stores them in full. Products must have
/// the same bits where both have the same rules; returns whether they have.
fn check<C: Combo>(cx: &DeviceCall<'_>, pattern: &Pattern, form: Form, expected: Form) -> bool
where
    C::Acc: Real,
{
    let what = format!("{} {form:?} {}", C::TYPES.describe(), pattern.columns.len() / pattern.rows());
    let values: Vec<C::A> = round::<C, _>(&values(form, pattern.columns.len()));
    let mut random = Random::new(3);
    let x: Vec<C::X> = round::<C, _>(&(0..pattern.cols).map(|_| random.real()).collect::<Vec<_>>());
    let stored = Stored::new(cx, pattern, &values);
    let full = build::<C>(cx, stored.matrix, Operation::NonTranspose, true);
    let kept = build::<C>(cx, stored.matrix, Operation::NonTranspose, false);
    assert_eq!((full.made.form, kept.made.form), (Form::Full, expected), "{what}");
    assert_eq!(kept.made.arrays.values.len(), expected.bytes(C::TYPES.a) * kept.made.arrays.slots, "{what}");
    assert_eq!(kept.details(), expected.describe(), "{what}");
    assert_eq!(full.workspace_bytes(1), kept.workspace_bytes(1), "{what}");
    let found = run::<C>(cx, &kept, pattern.rows(), &x);
    check_sums::<C>(pattern, &values, &x, &found, &what);
    let same = full.made.arrays.rules == kept.made.arrays.rules;
    let in_full = run::<C>(cx, &full, pattern.rows(), &x);
    check_sums::<C>(pattern, &values, &x, &in_full, &what);
    assert!(!same || bits(&found) == bits(&in_full), "{what}: other bits than in full");
    same
}

#[test]
fn products_have_the_bits_of_full_values() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for mean in [4, 12, 40] {
        let pattern = pattern(mean);
        macro_rules! check {
            ($($combo:ident: $($form:ident as $expected:ident),*;)*) => { $($(
                let same = check::<$combo>(cx, &pattern, Form::$form, Form::$expected);
                // Short rows have groups of two entries in every form, but full fp64 values have half steps
                // as well.
                let has_halves = $combo::TYPES.a == DataType::R64F && Form::$expected != Form::Full;
                assert!(same || mean > 4 || has_halves);
            )*)* };
        }
        check! {
            F64: Ones as Ones, Half as Half, Single as Single, Full as Full;
            F32: Ones as Ones, Half as Half, Single as Full;
            F32F64: Ones as Ones, Half as Half, Single as Full;
            F16: Ones as Ones, Half as Full;
            F16F32: Ones as Ones, Half as Full;
            Bf16: Ones as Ones, Half as Full;
            Bf16F32: Ones as Ones, Half as Full;
        }
    }
}

/// Tests warps with two slices: both with runs, with rows sorted by length, one of each kind, wide ones, and
/// the last slice alone.
#[test]
fn pairs_of_slices_give_the_sums() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let lanes = select::lanes_at_once(device.properties().multiprocessors as usize);
    for rows in [2 * lanes, 2 * lanes + 33] {
        let mut random = Random::new(rows as u64);
        let lengths: Vec<usize> = (0..rows).map(|row| if row < 1024 { 7 } else { random.below(9) }).collect();
        let cols = 200_000;
        let pattern = Pattern::new(0, cols, &lengths, |row, entry| match row {
            ..1024 => row + 100 * entry,
            1024..2500 => row + random.below(3000),
            2500..2600 => row + entry,
            _ if row % 4096 < 2048 => row / 2 + random.below(100),
            _ => random.below(cols),
        });
        check::<F16>(cx, &pattern, Form::Full, Form::Full);
        check::<Bf16F32>(cx, &pattern, Form::Full, Form::Full);
        check::<F16F32>(cx, &pattern, Form::Ones, Form::Ones);
        check::<F32>(cx, &pattern, Form::Half, Form::Half);
        let ones: Vec<f32> = vec![1.0; pattern.columns.len()];
        let stored = Stored::new(cx, &pattern, &ones);
        let slices = |updates| {
            let plan = build::<F32>(cx, stored.matrix, Operation::NonTranspose, updates);
            plan.made.launch.slices_of_warp
        };
        assert_eq!((slices(false), slices(true)), (2, 1));
    }
}

/// Tests the kernels of all forms with groups of four entries. Full fp64 values never have such groups, but
/// full fp32 values with the same vectors do.
#[test]
fn groups_of_four_have_the_bits_of_full_fp32() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern(40);
    let mut random = Random::new(4);
    let x: Vec<f64> = (0..pattern.cols).map(|_| random.real()).collect();
    for form in [Form::Ones, Form::Half, Form::Single] {
        let values = values(form, pattern.columns.len());
        let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let (doubles, singles) = (Stored::new(cx, &pattern, &values), Stored::new(cx, &pattern, &singles));
        let full = build::<F32F64>(cx, singles.matrix, Operation::NonTranspose, true);
        let kept = build::<F64>(cx, doubles.matrix, Operation::NonTranspose, false);
        assert_eq!((full.made.form, kept.made.form), (Form::Full, form));
        assert_eq!((full.made.arrays.rules, kept.made.arrays.rules.group_log2), (kept.made.arrays.rules, 2));
        let (full, kept) =
            (run::<F32F64>(cx, &full, pattern.rows(), &x), run::<F64>(cx, &kept, pattern.rows(), &x));
        assert!(bits(&full) == bits(&kept), "{form:?}");
    }
}

/// Tests that the values of a copy of op(A) are narrowed.
#[test]
fn transposes_are_narrowed() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern(4);
    let mut random = Random::new(5);
    let x: Vec<f32> = (0..pattern.rows()).map(|_| random.real() as f32).collect();
    for form in [Form::Ones, Form::Half] {
        let values: Vec<f32> = round::<F32, _>(&values(form, pattern.columns.len()));
        let stored = Stored::new(cx, &pattern, &values);
        let plans =
            [false, true].map(|updates| build::<F32>(cx, stored.matrix, Operation::Transpose, updates));
        assert_eq!(plans.each_ref().map(|plan| plan.made.form), [form, Form::Full]);
        assert_eq!(plans[0].made.arrays.rules, plans[1].made.arrays.rules);
        let [kept, full] = plans.each_ref().map(|plan| run::<F32>(cx, plan, pattern.cols, &x));
        assert!(bits(&kept) == bits(&full), "{form:?}");
    }
    // Complex values are not narrowed.
    let complex = vec![num_complex::Complex64::ONE; pattern.columns.len()];
    let stored = Stored::new(cx, &pattern, &complex);
    assert_eq!(build::<C64>(cx, stored.matrix, Operation::Transpose, false).made.form, Form::Full);
}

/// Tests that new values take the form that fits them: narrower, wider, and back.
#[test]
fn new_values_take_their_own_form() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for mean in [4, 40] {
        let pattern = pattern(mean);
        let mut random = Random::new(6);
        let x: Vec<f64> = (0..pattern.cols).map(|_| random.real()).collect();
        let first = Stored::new(cx, &pattern, &values(Form::Ones, pattern.columns.len()));
        let mut plan = build::<F64>(cx, first.matrix, Operation::NonTranspose, false);
        let workspace = plan.workspace_bytes(1);
        for form in [Form::Full, Form::Ones, Form::Single, Form::Half, Form::Full, Form::Half, Form::Ones] {
            let stored = Stored::new(cx, &pattern, &values(form, pattern.columns.len()));
            plan.update_values(cx, stored.matrix.values()).unwrap();
            let fresh = build::<F64>(cx, stored.matrix, Operation::NonTranspose, false);
            assert_eq!((plan.made.form, fresh.made.form), (form, form));
            assert_eq!(plan.details(), form.describe());
            // The workspace must not grow, since a program has asked for its size before.
            assert_eq!(plan.workspace_bytes(1), workspace);
            let (found, expected) =
                (run::<F64>(cx, &plan, pattern.rows(), &x), run::<F64>(cx, &fresh, pattern.rows(), &x));
            assert!(bits(&found) == bits(&expected), "{form:?}");
        }
        // If updates are announced, values are never narrowed.
        let mut plan = build::<F64>(cx, first.matrix, Operation::NonTranspose, true);
        let stored = Stored::new(cx, &pattern, &values(Form::Full, pattern.columns.len()));
        plan.update_values(cx, stored.matrix.values()).unwrap();
        memory::synchronize(cx.stream).unwrap();
        let fresh = build::<F64>(cx, stored.matrix, Operation::NonTranspose, true);
        assert_eq!(plan.made.form, Form::Full);
        let (found, expected) =
            (run::<F64>(cx, &plan, pattern.rows(), &x), run::<F64>(cx, &fresh, pattern.rows(), &x));
        assert!(bits(&found) == bits(&expected));
    }
}

/// Tests that an element of x affects only the rows that store its column; a stored zero times Inf is NaN in
/// every form that has zeros.
#[test]
fn padding_brings_nothing_into_y() {
    fn check<C: Combo>(cx: &DeviceCall<'_>, pattern: &Pattern, form: Form)
    where
        C::Acc: Real,
    {
        let values: Vec<C::A> = round::<C, _>(&values(form, pattern.columns.len()));
        let stored = Stored::new(cx, pattern, &values);
        let plan = build::<C>(cx, stored.matrix, Operation::NonTranspose, false);
        assert_eq!(plan.made.form, form);
        let heads = plan.made.arrays.heads.read(0, plan.made.arrays.heads.len()).unwrap();
        assert!(heads.iter().any(|head| head.flags & WIDE != 0));
        // Padding would read the first columns.
        for (bad, value) in [(0, f64::INFINITY), (pattern.columns[5000] as usize, f64::NAN)] {
            let mut x = vec![1.0; pattern.cols];
            x[bad] = value;
            let y = run::<C>(cx, &plan, pattern.rows(), &round::<C, C::X>(&x));
            for (row, y) in y.iter().enumerate() {
                let stores = pattern.columns[pattern.row(row)].contains(&(bad as i32));
                assert_eq!(y.widen().get().is_finite(), !stores, "{form:?} row {row}");
            }
        }
    }
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for mean in [4, 40] {
        let pattern = pattern(mean);
        for form in [Form::Ones, Form::Half, Form::Single] {
            check::<F64>(cx, &pattern, form);
        }
        for form in [Form::Ones, Form::Half] {
            check::<F32>(cx, &pattern, form);
        }
        check::<F16F32>(cx, &pattern, Form::Ones);
        check::<Bf16F32>(cx, &pattern, Form::Ones);
    }
}

/// Tests slices of all kinds: runs, neighbouring columns, rows that share columns, and far columns, for all
/// small lengths, so with and without a half step, and with one and several lanes per item.
#[test]
fn slices_of_all_kinds_give_the_sums() {
    fn check<C: Combo>(cx: &DeviceCall<'_>, pattern: &Pattern, what: &str)
    where
        C::Acc: Real,
    {
        let mut random = Random::new(11);
        let values: Vec<C::A> =
            round::<C, _>(&(0..pattern.columns.len()).map(|_| random.real()).collect::<Vec<_>>());
        let x: Vec<C::X> = round::<C, _>(&(0..pattern.cols).map(|_| random.real()).collect::<Vec<_>>());
        let stored = Stored::new(cx, pattern, &values);
        let plan = build::<C>(cx, stored.matrix, Operation::NonTranspose, true);
        let y = run::<C>(cx, &plan, pattern.rows(), &x);
        check_sums::<C>(pattern, &values, &x, &y, &format!("{what} {:?}", C::TYPES));
    }
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 27, 40, 75] {
        let lengths = vec![length; 700];
        type Columns<'a> = &'a dyn Fn(usize, usize) -> usize;
        let kinds: [(&str, Columns<'_>); 5] = [
            ("runs", &|row, entry| row + 5 * entry),
            ("neighbours", &|row, entry| 3 * row + entry),
            ("pairs of rows", &|row, entry| row / 2 + 5 * entry + row / 2 % 3),
            ("rows in threes", &|row, entry| row / 3 + 5 * entry + row / 3 % 3),
            ("far columns", &|row, entry| row + entry % 2 * 90_000 + 3 * entry),
        ];
        for (what, column) in kinds {
            let pattern = Pattern::new(0, 100_000, &lengths, column);
            check::<F64>(cx, &pattern, what);
            check::<F32>(cx, &pattern, what);
            check::<F32F64>(cx, &pattern, what);
            check::<F16>(cx, &pattern, what);
            check::<Bf16F32>(cx, &pattern, what);
        }
    }
}

/// Tests consecutive columns: real fp64 values have groups of four, other values of 8 bytes do not.
#[test]
fn bands_have_groups_of_their_types() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = Pattern::new(0, 1064, &[64; 1000], |row, entry| row + entry);
    fn group<C: Combo>(cx: &DeviceCall<'_>, pattern: &Pattern, values: &[C::A]) -> usize {
        let stored = Stored::new(cx, pattern, values);
        build::<C>(cx, stored.matrix, Operation::NonTranspose, true).made.arrays.rules.group()
    }
    let reals = values(Form::Full, pattern.columns.len());
    assert_eq!(group::<F64>(cx, &pattern, &reals), 4);
    check::<F64>(cx, &pattern, Form::Full, Form::Full);
    let singles: Vec<_> = reals.iter().map(|&v| num_complex::Complex32::new(v as f32, 1.0)).collect();
    assert_eq!(group::<C32>(cx, &pattern, &singles), 2);
    let doubles: Vec<_> = reals.iter().map(|&v| num_complex::Complex64::new(v, 1.0)).collect();
    assert_eq!(group::<C64>(cx, &pattern, &doubles), 2);
}

/// Tests rows of several blocks, whose complex sums take two words of a slot.
#[test]
fn long_rows_of_complex_values() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = pattern(9);
    let reals = values(Form::Full, pattern.columns.len());
    let of = |re: f64, im: f64| num_complex::Complex64::new(re, im);
    let values: Vec<_> = reals.iter().map(|&real| of(real, -2.0 * real)).collect();
    let stored = Stored::new(cx, &pattern, &values);
    let plan = build::<C64>(cx, stored.matrix, Operation::NonTranspose, false);
    let y = run::<C64>(cx, &plan, pattern.rows(), &vec![of(1.0, 1.0); pattern.cols]);
    for (row, y) in y.iter().enumerate() {
        let (sum, magnitude) =
            pattern.row(row).fold((0.0, 0.0), |(sum, all), at| (sum + reals[at], all + reals[at].abs()));
        // (1 − 2i)(1 + i) = 3 − i.
        let error = (y - of(3.0, -1.0) * (1.25 * 0.75 - 0.5) * sum).norm();
        let allowed = 16.0 * (pattern.row(row).len() + 4) as f64 * f64::EPSILON * magnitude;
        assert!(error <= allowed, "row {row}: error {error:e}, allowed {allowed:e}");
    }
}
