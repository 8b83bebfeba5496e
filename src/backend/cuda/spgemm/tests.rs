//! Tests of SpGEMM on a device against the host's executor. Results must agree to the bit: both sum in the
//! order of the left factor's row, and round each product and each sum. Without a device the tests say so and
//! pass.

mod bound;
mod classes;
mod cut;
mod dense_factors;
mod inspection;
mod limits;
mod map;
mod sanitizer;
mod shifted_runs;
mod singles;
mod small_products;
mod tile;

use std::sync::Arc;
use testkit::Random;

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use super::*;
use crate::backend::cuda::convert::testing;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::memory::{download, upload, CudaMemory};
use crate::backend::cuda::testing::{Graph, Stream};
use crate::backend::host::Host;
use crate::error::Status;
use crate::matrix::{compressed, Compressed, SparseArrays};
use crate::memory::{Allocator, Context, HostMemory, RawMemory, Workspace};
use crate::select;
use crate::support::{Bf16F32, Combo, C32, C64, F16F32, F32, F64};
use crate::types::{BackendKind, Element, IndexBase, IndexType, OpKind, Operation, PointerMode};

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const N: Operation = Operation::NonTranspose;
const FORMATS: [Format; 2] = [Format::Csr, Format::Csc];
const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// Returns a device with a stream, or `None` if there is no device.
fn device() -> Option<(Arc<Device>, Stream)> {
    let device = testing::device()?;
    let stream = Stream::new(device.ordinal()).unwrap();
    Some((device, stream))
}

fn context(memory: Arc<dyn RawMemory>, stream: Address, limit: usize) -> Context {
    Context {
        stream,
        pointer_mode: PointerMode::Host,
        workspace: Workspace { address: Address::NULL, bytes: 0 },
        counters: Address::NULL,
        allocator: Allocator::new(memory, stream, limit),
    }
}

fn on_host() -> Context {
    context(Arc::new(HostMemory), Address::NULL, usize::MAX)
}

fn on_device(device: &Arc<Device>, stream: &Stream, limit: usize) -> Context {
    context(Arc::new(CudaMemory(Arc::clone(device))), stream.address(), limit)
}

/// Type of values, with random numbers.
trait Value: Element {
    fn random(random: &mut Random) -> Self;
}
macro_rules! values {
    ($($ty:ty: $make:expr;)*) => { $(impl Value for $ty {
        fn random(random: &mut Random) -> Self { ($make)(random) }
    })* };
}
values! {
    f64: |r: &mut Random| r.real();
    f32: |r: &mut Random| r.real() as f32;
    f16: |r: &mut Random| f16::from_f64(r.real());
    bf16: |r: &mut Random| bf16::from_f64(r.real());
    Complex64: |r: &mut Random| Complex64::new(r.real(), r.real());
    Complex32: |r: &mut Random| Complex32::new(r.real() as f32, r.real() as f32);
}

/// User's array of any type, aligned to 8 bytes.
#[derive(Clone, Debug, PartialEq)]
struct Array {
    words: Vec<u64>,
    bytes: usize,
}

impl Array {
    fn new(bytes: &[u8]) -> Self {
        let mut words = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Array { words, bytes: bytes.len() }
    }

    fn of<T: bytemuck::Pod>(values: &[T]) -> Self {
        Array::new(bytemuck::cast_slice(values))
    }

    fn indices(index: IndexType, values: &[i64]) -> Self {
        match index {
            IndexType::I64 => Array::of(values),
            _ => Array::of(&values.iter().map(|&v| v as i32).collect::<Vec<_>>()),
        }
    }

    fn address(&self) -> Address {
        Address::new(self.words.as_ptr())
    }
}

/// CSR or CSC matrix in host memory.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    format: Format,
    arrays: [Array; 3],
    head: (i64, i64, i64),
    base: IndexBase,
    widths: (IndexType, IndexType),
    value_type: crate::types::DataType,
}

impl Stored {
    /// Returns a matrix whose rows (columns for CSC) have these numbers of entries.
    fn random<V: Value>(
        random: &mut Random,
        format: Format,
        minor: i64,
        lengths: &[usize],
        kind: Kind,
        base: IndexBase,
        widths: (IndexType, IndexType),
    ) -> Self {
        let rows: Vec<Vec<i64>> = lengths
            .iter()
            .map(|&length| {
                let length = if minor == 0 { 0 } else { length };
                let mut row: Vec<i64> = (0..length).map(|_| random.below(minor)).collect();
                match kind {
                    Kind::Any => {}
                    Kind::Sorted => row.sort_unstable(),
                    Kind::Distinct => {
                        row.sort_unstable();
                        row.dedup();
                    }
                }
                row
            })
            .collect();
        Stored::of_rows::<V>(random, format, minor, &rows, base, widths)
    }

    /// Returns a matrix whose rows (columns for CSC) have these columns, of base 0.
    fn of_rows<V: Value>(
        random: &mut Random,
        format: Format,
        minor: i64,
        rows: &[Vec<i64>],
        base: IndexBase,
        widths: (IndexType, IndexType),
    ) -> Self {
        let zero = i64::from(base.code());
        let (mut offsets, mut indices) = (vec![zero], Vec::new());
        for row in rows {
            indices.extend(row.iter().map(|column| column + zero));
            offsets.push(indices.len() as i64 + zero);
        }
        let values: Vec<V> = indices.iter().map(|_| V::random(random)).collect();
        Stored {
            format,
            head: (rows.len() as i64, minor, indices.len() as i64),
            arrays: [
                Array::indices(widths.0, &offsets),
                Array::indices(widths.1, &indices),
                Array::of(&values),
            ],
            base,
            widths,
            value_type: V::TYPE,
        }
    }

    /// Returns arrays for C, filled with bits that no result has.
    fn room<V: Value>(
        format: Format,
        shape: (i64, i64),
        nnz: i64,
        base: IndexBase,
        w: (IndexType, IndexType),
    ) -> Self {
        let (major, minor) = if format == Format::Csr { shape } else { (shape.1, shape.0) };
        let junk = |count: i64, size: usize| Array::new(&vec![0xf9; count as usize * size]);
        Stored {
            format,
            head: (major, minor, nnz),
            arrays: [junk(major + 1, w.0.size()), junk(nnz, w.1.size()), junk(nnz, V::TYPE.size())],
            base,
            widths: w,
            value_type: V::TYPE,
        }
    }

    fn describe(&self, [offsets, indices, values]: [Address; 3]) -> SparseMatrix {
        let (major, minor, nnz) = self.head;
        let (offset_type, index_type) = self.widths;
        let (base, value_type) = (self.base, self.value_type);
        let arrays = Compressed {
            major,
            minor,
            nnz,
            offsets,
            indices,
            values,
            offset_type,
            index_type,
            base,
            value_type,
        };
        let csr = self.format == Format::Csr;
        arrays.check(if csr { &compressed::CSR } else { &compressed::CSC }).unwrap();
        let arrays = if csr { SparseArrays::Csr(arrays) } else { SparseArrays::Csc(arrays) };
        SparseMatrix { arrays, writable: true, temporary: false }
    }

    fn matrix(&self) -> SparseMatrix {
        self.describe(self.arrays.each_ref().map(Array::address))
    }

    fn upload(&self, cx: &Context) -> Uploaded {
        let arrays = self.arrays.each_ref().map(|array| DeviceBuffer::from_slice(cx, &array.words).unwrap());
        let matrix = self.describe(arrays.each_ref().map(DeviceBuffer::address));
        Uploaded { arrays, matrix }
    }

    /// Uploads a factor whose values have no better alignment than they must have: that of an element, or of a part
    /// of a complex one.
    fn upload_askew(&self, cx: &Context) -> Uploaded {
        let [offsets, indices, values] = &self.arrays;
        let skip = self.value_type.align();
        let mut bytes = vec![0; skip];
        bytes.extend_from_slice(&bytemuck::cast_slice(&values.words)[..values.bytes]);
        let askew = Array::new(&bytes);
        let arrays =
            [offsets, indices, &askew].map(|array| DeviceBuffer::from_slice(cx, &array.words).unwrap());
        let [offsets, indices, values] = arrays.each_ref().map(DeviceBuffer::address);
        let matrix = self.describe([offsets, indices, values.offset(skip)]);
        Uploaded { arrays, matrix }
    }

    /// Copies the arrays back from the device.
    fn download(&self, cx: &Context, from: &Uploaded) -> Stored {
        let mut out = self.clone();
        for (array, buffer) in out.arrays.iter_mut().zip(&from.arrays) {
            array.words = download(buffer.address(), buffer.len(), cx.stream).unwrap();
        }
        out
    }
}

struct Uploaded {
    arrays: [DeviceBuffer<u64>; 3],
    matrix: SparseMatrix,
}

/// Order of the entries of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Any,
    Sorted,
    Distinct,
}

fn choose(problem: &SpgemmProblem) -> Choice {
    let rows: Vec<_> = crate::algorithm::TABLE
        .iter()
        .filter(|row| row.op == OpKind::Spgemm && row.backends.contains(&BackendKind::Host))
        .collect();
    select::spgemm(problem, &rows).unwrap().swap_remove(0)
}

fn address<T>(value: &T) -> Address {
    Address::new(std::ptr::from_ref(value))
}

fn problem<C: Combo>(
    ops: (Operation, Operation),
    a: SparseMatrix,
    b: SparseMatrix,
    keep: bool,
) -> SpgemmProblem {
    SpgemmProblem {
        op_a: ops.0,
        op_b: ops.1,
        a,
        b,
        types: C::TYPES,
        value_updates: keep,
        ieee: false,
        sorted_output: true,
    }
}

/// Computes C on the host, in this format, base and index types.
fn expected<C: Combo>(
    ops: (Operation, Operation),
    a: &Stored,
    b: &Stored,
    alpha: C::Acc,
    format: Format,
    base: IndexBase,
    widths: (IndexType, IndexType),
) -> Stored
where
    C::Y: Value,
{
    let cx = on_host();
    let problem = problem::<C>(ops, a.matrix(), b.matrix(), false);
    let mut executor = Host.build_spgemm(&cx, &problem, &choose(&problem), None, &[None, None]).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room::<C::Y>(format, shape(ops, a, b), nnz, base, widths);
    executor.numeric(&cx, address(&alpha), &c.matrix()).unwrap();
    c
}

/// Builds the executor of `hash`.
fn by_hash(cx: &DeviceCall<'_>, problem: &SpgemmProblem, choice: &Choice) -> Result<CudaSpgemm> {
    CudaSpgemm::new(cx, problem, choice, Factors::new(cx, problem, choice)?)
}

fn shape(ops: (Operation, Operation), a: &Stored, b: &Stored) -> (i64, i64) {
    let of = |op: Operation, m: &Stored| {
        let (rows, cols, _) = m.matrix().shape();
        op.shape(rows, cols)
    };
    (of(ops.0, a).0, of(ops.1, b).1)
}

/// Compares a product with the host's, in every way of computing it, small products' among them.
fn compare<C: Combo>(
    what: &str,
    ops: (Operation, Operation),
    a: &Stored,
    b: &Stored,
    alpha: C::Acc,
    turn: usize,
) where
    C::Y: Value,
{
    let wanted = |format, base, widths| expected::<C>(ops, a, b, alpha, format, base, widths);
    compare_with::<C>(what, ops, a, b, alpha, turn, wanted);
    small::testing::taken_apart(|| compare_with::<C>(what, ops, a, b, alpha, turn, wanted));
}

/// Compares a product in every way of computing it with the C that `wanted` returns for a format, base and
/// index types.
fn compare_with<C: Combo>(
    what: &str,
    ops: (Operation, Operation),
    a: &Stored,
    b: &Stored,
    alpha: C::Acc,
    turn: usize,
    wanted: impl Fn(Format, IndexBase, (IndexType, IndexType)) -> Stored,
) where
    C::Y: Value,
{
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload_askew(&arrays), b.upload_askew(&arrays));
    for keep in [false, true] {
        let cx = on_device(&device, &stream, usize::MAX);
        let problem = problem::<C>(ops, on_a.matrix, on_b.matrix, keep);
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        assert_eq!(executor.symbolic(&cx).unwrap(), nnz);
        for (round, format) in FORMATS.into_iter().cycle().take(4).enumerate() {
            let base = IndexBase::ALL[(turn + round) % 2];
            let widths = WIDTHS[(turn + round / 2) % 3];
            let wanted = wanted(format, base, widths);
            assert_eq!(nnz, wanted.head.2, "{what}: entries");
            let c = Stored::room::<C::Y>(format, shape(ops, a, b), nnz, base, widths);
            let on_c = c.upload(&arrays);
            executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
            let found = c.download(&arrays, &on_c);
            for (array, name) in [(0, "offsets"), (1, "indices"), (2, "values")] {
                let same = found.arrays[array] == wanted.arrays[array];
                assert!(same, "{what}: {name} of {format:?}, keep {keep}, round {round}");
            }
        }
        memory::synchronize(cx.stream).unwrap();
        drop(executor);
        assert_eq!(cx.allocator.live_bytes(), 0, "{what}: memory stays");
    }
}

/// Returns lengths of rows: most are short, every seventh row is empty, and some have the lengths `long`.
fn lengths(random: &mut Random, rows: usize, mean: i64, long: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> =
        (0..rows).map(|row| if row % 7 == 3 { 0 } else { random.below(2 * mean + 1) as usize }).collect();
    for (at, &length) in long.iter().enumerate() {
        out[(at * 37 + 5) % rows] = length;
    }
    out
}

#[test]
fn every_op_format_and_width_in_complex() {
    let mut rng = Random::new(7);
    let (m, k, n) = (40, 33, 57);
    let mut turn = 0;
    for (op_a, format_a) in OPS.into_iter().flat_map(|op| FORMATS.map(|f| (op, f))) {
        for (op_b, format_b) in OPS.into_iter().flat_map(|op| FORMATS.map(|f| (op, f))) {
            turn += 1;
            let mut stored = |op: Operation, format: Format, (rows, cols): (i64, i64), turn: usize| {
                let (rows, cols) = op.shape(rows, cols);
                let (major, minor) = if format == Format::Csr { (rows, cols) } else { (cols, rows) };
                let lengths = lengths(&mut rng, major as usize, 4, &[30]);
                let (base, widths) = (IndexBase::ALL[turn % 2], WIDTHS[turn % 3]);
                Stored::random::<Complex64>(&mut rng, format, minor, &lengths, Kind::Any, base, widths)
            };
            let a = stored(op_a, format_a, (m, k), turn);
            let b = stored(op_b, format_b, (k, n), turn / 3);
            let what = format!("{op_a:?} {format_a:?} {op_b:?} {format_b:?}");
            compare::<C64>(&what, (op_a, op_b), &a, &b, Complex64::new(2.0, -1.0), turn);
        }
    }
}

/// Compares a product with rows in all bins.
fn skewed<C: Combo>(alpha: C::Acc, kind: Kind, cols: i64, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
{
    let mut rng = Random::new(11 + turn as u64);
    let (rows, inner) = (300, 500);
    let (zero, one) = (IndexBase::Zero, IndexBase::One);
    // Longer rows would be split, with other bits than the host's.
    let long = [20, 60, 100, 180, 240, 250];
    let a = lengths(&mut rng, rows, 3, &long);
    let a = Stored::random::<C::A>(&mut rng, Format::Csr, inner, &a, kind, one, WIDTHS[turn % 3]);
    let b = lengths(&mut rng, inner as usize, 12, &[2000, 700, 300]);
    let b = Stored::random::<C::X>(&mut rng, Format::Csr, cols, &b, kind, zero, WIDTHS[(turn + 1) % 3]);
    compare::<C>(&format!("{} {kind:?} {cols}", C::TYPES.describe()), (N, N), &a, &b, alpha, turn);
}

#[test]
fn every_type() {
    for (turn, kind) in [Kind::Any, Kind::Sorted, Kind::Distinct].into_iter().enumerate() {
        skewed::<F64>(0.3, kind, 3000, turn);
        skewed::<F32>(-1.7, kind, 900, turn);
        skewed::<F16F32>(0.3, kind, 20_000, turn + 1);
        skewed::<Bf16F32>(0.3, kind, 70, turn + 2);
        skewed::<C32>(Complex32::new(0.5, 2.0), kind, 1500, turn);
        skewed::<C64>(Complex64::new(-0.5, 1.0), kind, 100_000, turn + 1);
    }
}

/// Rows with more entries than sums fit into shared memory: windows have fewer columns, or sums are in C
/// itself.
#[test]
fn huge_rows() {
    for (turn, (cols, kind)) in [
        (5_000, Kind::Distinct),
        (50_000, Kind::Distinct),
        (50_000, Kind::Any),
        (400_000, Kind::Sorted),
        (1_000_000, Kind::Distinct),
        (1_000_000, Kind::Any),
    ]
    .into_iter()
    .enumerate()
    {
        let mut rng = Random::new(100 + turn as u64);
        let a = lengths(&mut rng, 60, 2, &[4000, 900]);
        let a = Stored::random::<f64>(&mut rng, Format::Csr, 5000, &a, kind, IndexBase::Zero, WIDTHS[0]);
        let b = lengths(&mut rng, 5000, 60, &[3000, 20_000]);
        let b = Stored::random::<f64>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::One, WIDTHS[1]);
        cut::check::<F64, F64>(&format!("{kind:?} {cols}"), (&a, &b, kind), (1.0, 0.7), turn);
    }
}

#[test]
fn columns_beyond_32_bits() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let far = 1_i64 << 31;
    for kind in [Kind::Any, Kind::Distinct] {
        let mut rng = Random::new(5);
        // `below` returns 31 bits, which are spread over 40.
        let mut b = Stored::random::<f64>(
            &mut rng,
            Format::Csr,
            far,
            &[900, 3, 0, 40],
            kind,
            IndexBase::Zero,
            WIDTHS[2],
        );
        let spread: Vec<i64> =
            bytemuck::cast_slice(&b.arrays[1].words).iter().map(|&c: &i64| c << 9).collect();
        b.arrays[1] = Array::of(&spread);
        b.head.1 = far << 9;
        let a = Stored::random::<f64>(
            &mut rng,
            Format::Csr,
            4,
            &[3, 0, 1, 2, 9],
            kind,
            IndexBase::One,
            WIDTHS[0],
        );
        let wanted = expected::<F64>((N, N), &a, &b, 1.5, Format::Csr, IndexBase::One, WIDTHS[2]);
        let cx = on_device(&device, &stream, usize::MAX);
        let (on_a, on_b) = (a.upload(&cx), b.upload(&cx));
        let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, true);
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        for _ in 0..2 {
            let c = Stored::room::<f64>(Format::Csr, (5, far << 9), nnz, IndexBase::One, WIDTHS[2]);
            let on_c = c.upload(&cx);
            executor.numeric(&cx, address(&1.5), &on_c.matrix).unwrap();
            assert!(c.download(&cx, &on_c) == wanted);
        }
    }
}

#[test]
fn shapes_at_the_edge() {
    let mut rng = Random::new(3);
    let shapes =
        [(0, 0, 0), (0, 4, 5), (4, 0, 5), (4, 5, 0), (1, 1, 1), (1, 70, 1), (40, 1, 40), (3, 200, 150)];
    for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
        for density in [0, 1, 9] {
            for format in FORMATS {
                let mut stored = |rows: i64, cols: i64| {
                    let (major, minor) = if format == Format::Csr { (rows, cols) } else { (cols, rows) };
                    let lengths = vec![density; major as usize];
                    let (base, widths) = (IndexBase::ALL[turn % 2], WIDTHS[turn % 3]);
                    Stored::random::<f64>(&mut rng, format, minor, &lengths, Kind::Any, base, widths)
                };
                let (a, b) = (stored(m, k), stored(k, n));
                compare::<F64>(&format!("{m} {k} {n} {density} {format:?}"), (N, N), &a, &b, 1.0, turn);
            }
        }
    }
}

#[test]
fn zero_alpha_reads_no_values() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(17);
    let l = lengths(&mut rng, 300, 5, &[200, 299]);
    let mut a = Stored::random::<f64>(&mut rng, Format::Csr, 300, &l, Kind::Any, IndexBase::Zero, WIDTHS[0]);
    let wanted = expected::<F64>((N, N), &a, &a, 0.0, Format::Csr, IndexBase::Zero, WIDTHS[0]);
    a.arrays[2].words.fill(f64::NAN.to_bits());
    for keep in [false, true] {
        let cx = on_device(&device, &stream, usize::MAX);
        let on_a = a.upload(&cx);
        let problem = problem::<F64>((N, N), on_a.matrix, on_a.matrix, keep);
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        for _ in 0..2 {
            let c = Stored::room::<f64>(Format::Csr, (300, 300), nnz, IndexBase::Zero, WIDTHS[0]);
            let on_c = c.upload(&cx);
            executor.numeric(&cx, address(&0.0), &on_c.matrix).unwrap();
            assert!(c.download(&cx, &on_c) == wanted);
        }
        assert!(executor.numeric(&cx, Address::NULL, &on_a.matrix).is_err());
    }
}

/// Later numeric phases reuse the pattern without allocating, under capture, with alpha on the device, and
/// with new values.
#[test]
fn reuse_only_launches() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(23);
    let (n, base, widths) = (400, IndexBase::One, WIDTHS[1]);
    let t = Operation::Transpose;
    for (format, ops) in [
        (Format::Csr, (N, N)),
        (Format::Csr, (t, t)),
        (Format::Csc, (N, N)),
        (Format::Csr, (N, t)),
        (Format::Csr, (t, N)),
    ] {
        let l = lengths(&mut rng, n as usize, 6, &[300, 390]);
        let old = Stored::random::<f64>(&mut rng, format, n, &l, Kind::Any, base, widths);
        let mut new = old.clone();
        for word in &mut new.arrays[2].words {
            *word = rng.real().to_bits();
        }
        let cx = on_device(&device, &stream, usize::MAX);
        let (on_old, on_new) = (old.upload(&cx), new.upload(&cx));
        let problem = problem::<F64>(ops, on_old.matrix, on_old.matrix, true);
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        let outputs = FORMATS.map(|f| Stored::room::<f64>(f, (n, n), nnz, base, widths));
        let on_outputs = outputs.each_ref().map(|c| c.upload(&cx));
        for on_c in &on_outputs {
            executor.numeric(&cx, address(&1.0), &on_c.matrix).unwrap();
        }
        let mut nothing = on_device(&device, &stream, 0);
        nothing.pointer_mode = PointerMode::Device;
        let alpha = DeviceBuffer::from_slice(&cx, &[9.0_f64]).unwrap();
        testing::be_alone();
        Graph::begin(&stream).unwrap();
        executor.update_values(&nothing, on_new.matrix.values(), Address::NULL).unwrap();
        for on_c in &on_outputs {
            executor.numeric(&nothing, alpha.address(), &on_c.matrix).unwrap();
        }
        let graph = Graph::end(&stream).unwrap();
        upload(alpha.address(), &[-0.25_f64], cx.stream).unwrap();
        graph.launch(&stream).unwrap();
        for (c, on_c) in outputs.iter().zip(&on_outputs) {
            let wanted = expected::<F64>(ops, &new, &old, -0.25, c.format, base, widths);
            assert!(c.download(&cx, on_c) == wanted, "{format:?} {ops:?} {:?}", c.format);
        }
    }
}

#[test]
fn limits_and_wrong_calls() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(43);
    let l = lengths(&mut rng, 2000, 3, &[]);
    let a = Stored::random::<f64>(&mut rng, Format::Csr, 2000, &l, Kind::Any, IndexBase::Zero, WIDTHS[0]);
    let cx = on_device(&device, &stream, usize::MAX);
    let on_a = a.upload(&cx);
    let problem = problem::<F64>((N, N), on_a.matrix, on_a.matrix, false);
    let error =
        build(&device.call(&on_device(&device, &stream, 1000)).unwrap(), &problem, &choose(&problem), None)
            .err()
            .unwrap();
    assert_eq!(error.status, Status::InsufficientResources);
    let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
    let unready = executor.numeric(&cx, address(&1.0), &on_a.matrix).unwrap_err();
    assert_eq!(unready.status, Status::InvalidState);
    let error = executor.symbolic(&on_device(&device, &stream, 5000)).unwrap_err();
    assert_eq!(error.status, Status::InsufficientResources);
    let nnz = executor.symbolic(&cx).unwrap();
    let wanted = expected::<F64>((N, N), &a, &a, 1.0, Format::Csr, IndexBase::Zero, WIDTHS[0]);
    assert_eq!(nnz, wanted.head.2);
    let refused = executor.numeric(&cx, address(&1.0), &on_a.matrix).unwrap_err();
    assert!(refused.message.starts_with("C: "), "{refused}");
    if !device.properties().pageable_memory {
        let refused = executor.numeric(&cx, address(&1.0), &wanted.matrix()).unwrap_err();
        assert!(refused.message.contains("ordinary host memory"), "{refused}");
    }
    let c = Stored::room::<f64>(Format::Csr, (2000, 2000), nnz, IndexBase::Zero, WIDTHS[0]);
    let on_c = c.upload(&cx);
    executor.numeric(&on_device(&device, &stream, 0), address(&1.0), &on_c.matrix).unwrap();
    assert!(c.download(&cx, &on_c) == wanted);
}

/// 200 equal rows of A meet the same 200 rows of B: 4 million products for 20,000 entries.
#[test]
fn memory_follows_rows_not_products() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let all = |rows: usize, cols: i64| {
        let mut dense = Stored::random::<f64>(
            &mut Random::new(1),
            Format::Csr,
            cols,
            &vec![cols as usize; rows],
            Kind::Any,
            IndexBase::Zero,
            WIDTHS[0],
        );
        let columns: Vec<i64> = (0..rows).flat_map(|_| 0..cols).collect();
        dense.arrays[1] = Array::indices(IndexType::I32, &columns);
        dense
    };
    let (a, b) = (all(200, 200), all(200, 100));
    let (cx, arrays) = (on_device(&device, &stream, usize::MAX), on_device(&device, &stream, usize::MAX));
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
    assert_eq!(executor.products(), 4_000_000);
    assert_eq!(executor.symbolic(&cx).unwrap(), 20_000);
    assert!(cx.allocator.peak_bytes() < 128 << 10, "{} bytes", cx.allocator.peak_bytes());
    let wanted = expected::<F64>((N, N), &a, &b, 1.0, Format::Csr, IndexBase::Zero, WIDTHS[0]);
    let c = Stored::room::<f64>(Format::Csr, (200, 100), 20_000, IndexBase::Zero, WIDTHS[0]);
    let on_c = c.upload(&arrays);
    executor.numeric(&cx, address(&1.0), &on_c.matrix).unwrap();
    assert!(c.download(&arrays, &on_c) == wanted);
}
