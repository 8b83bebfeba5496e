//! Tests of algorithm `tile` against the host. Patterns and tiles agree to the bit, and sums within their
//! rounding errors, since matrix units add in another order.

use super::*;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::spgemm::tile::CudaTile;
use crate::backend::cuda::spgemm::tiles::{ByColumns, ConvertKernels, DeviceTiles};
use crate::format::tile::{TileLayout, SIDE};
use crate::matrix::compressed::Pattern;
use crate::memory::Context;
use crate::types::{DataType, Storage};

pub(super) fn choose_tile(problem: &SpgemmProblem) -> Choice {
    let rows: Vec<_> =
        crate::algorithm::TABLE.iter().filter(|row| row.algorithm == Algorithm::Tile).collect();
    select::spgemm(problem, &rows).unwrap().swap_remove(0)
}

fn by_tile(cx: &DeviceCall<'_>, problem: &SpgemmProblem) -> Result<CudaTile> {
    let choice = choose_tile(problem);
    CudaTile::new(cx, problem, &choice, Factors::new(cx, problem, &choice)?)
}

/// Returns the elements of an array.
fn numbers<T: bytemuck::Pod>(array: &Array) -> Vec<T> {
    let bytes = &bytemuck::cast_slice::<u64, u8>(&array.words)[..array.bytes];
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// Returns the real and imaginary parts of values.
fn parts(values: &Array, value: DataType) -> Vec<f64> {
    match value {
        DataType::R64F | DataType::C64F => numbers(values),
        _ => numbers::<f32>(values).into_iter().map(f64::from).collect(),
    }
}

/// Returns the matrix with `of` applied to every value, such as |re| + |im|.
fn absolute<V: Value>(a: &Stored, of: impl FnMut(V) -> V) -> Stored {
    let values: Vec<V> = numbers(&a.arrays[2]).into_iter().map(of).collect();
    let mut out = a.clone();
    out.arrays[2] = Array::of(&values);
    out
}

/// Value type with magnitudes, from which error bounds are computed.
pub(super) trait Bounded: Value {
    fn magnitude(self) -> Self;
}
macro_rules! bounded {
    ($($ty:ty: $make:expr;)*) => { $(impl Bounded for $ty {
        fn magnitude(self) -> Self { ($make)(self) }
    })* };
}
bounded! {
    f64: |v: f64| v.abs();
    f32: |v: f32| v.abs();
    f16: |v: f16| f16::from_f32(v.to_f32().abs());
    bf16: |v: bf16| bf16::from_f32(v.to_f32().abs());
    Complex64: |v: Complex64| Complex64::new(v.re.abs() + v.im.abs(), 0.0);
    Complex32: |v: Complex32| Complex32::new(v.re.abs() + v.im.abs(), 0.0);
}

/// Checks that `found` has the pattern of `wanted`, and that values differ no more than the rounding errors
/// of sums of `most` terms, whose magnitudes sum up to `bound`.
fn check_product(what: &str, found: &Stored, wanted: &Stored, bound: &Stored, most: usize) {
    assert!(found.arrays[0] == wanted.arrays[0], "{what}: offsets");
    assert!(found.arrays[1] == wanted.arrays[1], "{what}: indices");
    let value = wanted.value_type;
    let complex = usize::from(matches!(value, DataType::C32F | DataType::C64F)) + 1;
    let eps = match value {
        DataType::R64F | DataType::C64F => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let [found, wanted, bound] = [found, wanted, bound].map(|c| parts(&c.arrays[2], value));
    for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let bound = (2 * most + 8) as f64 * eps * bound[at / complex * complex];
        assert!((found - wanted).abs() <= bound, "{what}: value {at}: {found} for {wanted}");
    }
}

/// Tests a product into CSR and CSC, with and without value updates, several times each.
pub(super) fn compare_tile<C: Combo>(
    what: &str,
    ops: (Operation, Operation),
    (a, b): (&Stored, &Stored),
    (alpha, alpha_bound): (C::Acc, C::Acc),
    (most, turn): (usize, usize),
) where
    C::A: Bounded,
    C::X: Bounded,
    C::Y: Value,
{
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let (abs_a, abs_b) = (absolute(a, C::A::magnitude), absolute(b, C::X::magnitude));
    for keep in [false, true] {
        let cx = on_device(&device, &stream, usize::MAX);
        let problem = problem::<C>(ops, on_a.matrix, on_b.matrix, keep);
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose_tile(&problem), None).unwrap();
        assert_eq!(executor.layout().kind, LayoutKind::Tile);
        let nnz = executor.symbolic(&cx).unwrap();
        assert_eq!(executor.symbolic(&cx).unwrap(), nnz);
        for (round, format) in FORMATS.into_iter().cycle().take(4).enumerate() {
            let base = IndexBase::ALL[(turn + round) % 2];
            let widths = WIDTHS[(turn + round / 2) % 3];
            let wanted = expected::<C>(ops, a, b, alpha, format, base, widths);
            let bound = expected::<C>(ops, &abs_a, &abs_b, alpha_bound, format, base, widths);
            assert_eq!(nnz, wanted.head.2, "{what}: entries");
            let c = Stored::room::<C::Y>(format, shape(ops, a, b), nnz, base, widths);
            let mut results = Vec::new();
            for _ in 0..2 {
                let on_c = c.upload(&arrays);
                executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
                results.push(c.download(&arrays, &on_c));
            }
            assert!(results[0] == results[1], "{what}: other bits");
            check_product(&format!("{what} {format:?} {keep}"), &results[0], &wanted, &bound, most);
        }
        memory::synchronize(cx.stream).unwrap();
        let products = executor.products();
        let hash = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
        assert_eq!(products, hash.products());
        drop((executor, hash));
        assert_eq!(cx.allocator.live_bytes(), 0, "{what}: memory stays");
    }
}

#[test]
fn every_op_format_and_width_in_complex() {
    let mut rng = Random::new(19);
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
            let alpha = (Complex64::new(2.0, -1.0), Complex64::new(3.0, 0.0));
            compare_tile::<C64>(&what, (op_a, op_b), (&a, &b), alpha, (80, turn));
        }
    }
}

/// Tests products with tiles from empty to full, with more tiles in a row than a chunk of the conversion has,
/// and with scattered ones.
fn filled<C: Combo>(alpha: (C::Acc, C::Acc), kind: Kind, cols: i64, turn: usize)
where
    C::A: Bounded,
    C::X: Bounded,
    C::Y: Value,
{
    let mut rng = Random::new(5 + turn as u64);
    let (rows, inner) = (90, 500);
    let a = lengths(&mut rng, rows, 20, &[60, 400, 499, 499]);
    let a = Stored::random::<C::A>(&mut rng, Format::Csr, inner, &a, kind, IndexBase::One, WIDTHS[turn % 3]);
    let b = lengths(&mut rng, inner as usize, 40, &[2000, 900, 300]);
    let widths = WIDTHS[(turn + 1) % 3];
    let b = Stored::random::<C::X>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::Zero, widths);
    let what = format!("{} {kind:?} {cols}", C::TYPES.describe());
    compare_tile::<C>(&what, (N, N), (&a, &b), alpha, (1000, turn));
}

#[test]
fn every_type() {
    for (turn, kind) in [Kind::Any, Kind::Sorted, Kind::Distinct].into_iter().enumerate() {
        filled::<F64>((0.3, 0.3), kind, 3000, turn);
        filled::<F64>((0.3, 0.3), kind, 120, turn);
        filled::<F32>((-1.7, 1.7), kind, 900, turn);
        filled::<F16F32>((0.3, 0.3), kind, 20_000, turn + 1);
        filled::<Bf16F32>((0.3, 0.3), kind, 70, turn + 2);
        filled::<C32>((Complex32::new(0.5, 2.0), Complex32::new(2.5, 0.0)), kind, 150, turn);
        filled::<C64>((Complex64::new(-0.5, 1.0), Complex64::new(1.5, 0.0)), kind, 100_000, turn + 1);
    }
}

#[test]
fn shapes_at_the_edge() {
    let mut rng = Random::new(3);
    let shapes =
        [(0, 0, 0), (0, 4, 5), (4, 0, 5), (4, 5, 0), (1, 1, 1), (16, 16, 16), (17, 15, 33), (40, 1, 40)];
    for (turn, (m, k, n)) in shapes.into_iter().enumerate() {
        let mut stored = |rows: usize, cols: i64| {
            let lengths = vec![2 * cols as usize; rows];
            Stored::random::<f64>(&mut rng, Format::Csr, cols, &lengths, Kind::Any, IndexBase::One, WIDTHS[0])
        };
        let (a, b) = (stored(m, k as i64), stored(k, n));
        compare_tile::<F64>(&format!("{m} {k} {n}"), (N, N), (&a, &b), (1.5, 1.5), (200, turn));
    }
}

/// Matrix with more tile columns than a set in shared memory has.
#[test]
fn wide_matrices() {
    let mut rng = Random::new(23);
    let cols = 5_000_000;
    let a = Stored::random::<f64>(
        &mut rng,
        Format::Csr,
        60,
        &lengths(&mut Random::new(1), 50, 9, &[]),
        Kind::Distinct,
        IndexBase::Zero,
        WIDTHS[1],
    );
    let b = lengths(&mut Random::new(2), 60, 60, &[3000]);
    let b = Stored::random::<f64>(&mut rng, Format::Csr, cols, &b, Kind::Any, IndexBase::One, WIDTHS[0]);
    compare_tile::<F64>("wide", (N, N), (&a, &b), (1.0, 1.0), (100, 1));
}

/// Checks that conversion on the device yields the same arrays as on the host.
fn same_tiles<V: Value + Storage<f64>>(rows: usize, cols: i64, mean: i64, kind: Kind, long: &[usize]) {
    let Some((device, stream)) = device() else { return };
    let cx = on_device(&device, &stream, usize::MAX);
    let cx = &device.call(&cx).unwrap();
    let mut rng = Random::new(rows as u64 + 71);
    let lengths = lengths(&mut rng, rows, mean, long);
    let a = Stored::random::<V>(&mut rng, Format::Csr, cols, &lengths, kind, IndexBase::One, WIDTHS[2]);
    let whole = |array: &Array| bytemuck::cast_slice::<u64, i64>(&array.words).to_vec();
    let (offsets, indices) = (whole(&a.arrays[0]), whole(&a.arrays[1]));
    let pattern = Pattern {
        major: rows,
        minor: cols as usize,
        base: 1,
        offsets: &offsets,
        indices: &indices,
        by_columns: false,
    };
    let values: Vec<V> = numbers(&a.arrays[2]);
    let wanted = TileLayout::<f64>::build(&on_host().allocator, &pattern, &values).unwrap();

    let on_a = a.upload(cx);
    let SparseArrays::Csr(arrays) = on_a.matrix.arrays else { unreachable!("CSR") };
    let kernels = ConvertKernels::new(&device, V::TYPE).unwrap();
    let found = DeviceTiles::build(cx, kernels, &Rows::of(&arrays), 8, "A").unwrap();
    let what = format!("{rows} × {cols}, {kind:?}");
    let pattern = &wanted.pattern;
    assert_eq!(found.tiles, pattern.columns.len(), "{what}");
    assert!(found.rows.read(0, pattern.rows.len()).unwrap()[..] == pattern.rows[..], "{what}: rows");
    assert!(found.columns.read(0, found.tiles).unwrap()[..] == pattern.columns[..], "{what}: columns");
    assert!(found.starts.read(0, found.tiles + 1).unwrap()[..] == pattern.starts[..], "{what}: starts");
    assert!(found.row_ptr.read(0, 16 * found.tiles).unwrap()[..] == pattern.row_ptr[..], "{what}: row_ptr");
    assert!(found.masks.read(0, 16 * found.tiles).unwrap()[..] == pattern.masks[..], "{what}: masks");
    let mut index = vec![0; pattern.nnz()];
    for row in 0..rows {
        pattern.for_each_of_row(row, |column, at| index[at] = ((row % SIDE) << 4 | (column % SIDE)) as u8);
    }
    assert!(found.index.read(0, pattern.nnz()).unwrap()[..] == index[..], "{what}: index");
    let values: Vec<f64> = download(found.values.address(), pattern.nnz(), cx.stream).unwrap();
    assert!(values[..] == wanted.values[..], "{what}: values");

    let by = ByColumns::build(cx, &found).unwrap();
    let mut order: Vec<(u32, u32, u32)> = Vec::new();
    for row in 0..pattern.tile_rows() {
        order.extend(pattern.tiles(row).map(|tile| (pattern.columns[tile], row as u32, tile as u32)));
    }
    order.sort_unstable();
    let (rows, tiles): (Vec<_>, Vec<_>) = order.iter().map(|&(_, row, tile)| (row, tile)).unzip();
    assert!(by.rows.read(0, found.tiles).unwrap() == rows, "{what}: rows by columns");
    assert!(by.tiles.read(0, found.tiles).unwrap() == tiles, "{what}: tiles by columns");
    let starts = by.starts.read(0, found.tile_cols + 1).unwrap();
    for (column, &start) in starts.iter().enumerate() {
        assert_eq!(start as usize, order.partition_point(|of| (of.0 as usize) < column), "{what}");
    }
    memory::synchronize(cx.stream).unwrap();
}

#[test]
fn tiles_are_those_of_the_host() {
    for kind in [Kind::Any, Kind::Sorted, Kind::Distinct] {
        same_tiles::<f64>(0, 10, 1, kind, &[]);
        same_tiles::<f64>(1, 1, 3, kind, &[]);
        same_tiles::<f64>(50, 40, 30, kind, &[]);
        same_tiles::<f64>(333, 5000, 20, kind, &[4000, 5000]);
        // A row has more tiles than a chunk, and the matrix more columns than a set.
        same_tiles::<f64>(70, 100_000, 9, kind, &[30_000, 20_000, 9_000]);
        same_tiles::<f64>(40, 9_000_000, 9, kind, &[2_000]);
    }
}

#[test]
fn what_is_not_stored_multiplies_nothing() {
    let Some((device, stream)) = device() else { return };
    let cx = on_device(&device, &stream, usize::MAX);
    let cx = &device.call(&cx).unwrap();
    let of = |rows: &[(i64, i64, f64)]| {
        let mut offsets = vec![0; 41];
        rows.iter().for_each(|row| offsets[row.0 as usize + 1] += 1);
        (0..40).for_each(|row| offsets[row + 1] += offsets[row]);
        let columns: Vec<_> = rows.iter().map(|row| row.1).collect();
        let values: Vec<_> = rows.iter().map(|row| row.2).collect();
        Stored {
            format: Format::Csr,
            head: (40, 40, rows.len() as i64),
            arrays: [
                Array::indices(IndexType::I32, &offsets),
                Array::indices(IndexType::I32, &columns),
                Array::of(&values),
            ],
            base: IndexBase::Zero,
            widths: WIDTHS[0],
            value_type: DataType::R64F,
        }
    };
    let inf = f64::INFINITY;
    let a = of(&[(0, 3, 2.0), (1, 4, inf), (2, 1, 1.0), (20, 3, 1.0), (20, 39, 0.0)]);
    let b = of(&[(1, 5, 3.0), (3, 5, 1.0), (4, 6, 1.0), (5, 5, f64::NAN), (39, 5, inf), (39, 7, 3.0)]);
    let (on_a, on_b) = (a.upload(cx), b.upload(cx));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let mut executor = build(cx, &problem, &choose_tile(&problem), None).unwrap();
    let nnz = executor.symbolic(cx).unwrap();
    let c = Stored::room::<f64>(Format::Csr, (40, 40), nnz, IndexBase::Zero, WIDTHS[0]);
    let on_c = c.upload(cx);
    executor.numeric(cx, address(&1.0), &on_c.matrix).unwrap();
    let found = parts(&c.download(cx, &on_c).arrays[2], DataType::R64F);
    assert_eq!((found[0], found[1], found[2], found[4]), (2.0, inf, 3.0, 0.0));
    assert!(found[3].is_nan() && found.len() == 5, "{found:?}");
    // With alpha = 0, no values are read.
    executor.numeric(cx, address(&0.0), &on_c.matrix).unwrap();
    let found = parts(&c.download(cx, &on_c).arrays[2], DataType::R64F);
    assert!(found.iter().all(|value| value.to_bits() == 0));
}

#[test]
fn new_values_are_taken() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let lengths = vec![11; 120];
    for (format, kind) in
        [(Format::Csr, Kind::Distinct), (Format::Csc, Kind::Distinct), (Format::Csr, Kind::Any)]
    {
        let stored = |seed: u64| {
            // The pattern is the same, since the columns are drawn first.
            let mut pattern = Random::new(77);
            let like =
                Stored::random::<f64>(&mut pattern, format, 120, &lengths, kind, IndexBase::Zero, WIDTHS[1]);
            let mut rng = Random::new(seed);
            absolute::<f64>(&like, |_| rng.real())
        };
        let (old, new) = (stored(1), stored(2));
        let (on_old, on_new) = (old.upload(&arrays), new.upload(&arrays));
        for keep in [false, true] {
            let problem = problem::<F64>((N, Operation::Transpose), on_old.matrix, on_old.matrix, keep);
            let fresh = |a: SparseMatrix, b: SparseMatrix| {
                let problem = SpgemmProblem { a, b, ..problem };
                let mut executor = by_tile(&device.call(&arrays).unwrap(), &problem).unwrap();
                product(&mut executor, &arrays)
            };
            let mut executor = by_tile(&device.call(&arrays).unwrap(), &problem).unwrap();
            assert!(product(&mut executor, &arrays) == fresh(on_old.matrix, on_old.matrix));
            let values = on_new.arrays[2].address();
            executor.update_values(&arrays, values, Address::NULL).unwrap();
            assert!(product(&mut executor, &arrays) == fresh(on_new.matrix, on_old.matrix));
            executor.update_values(&arrays, Address::NULL, values).unwrap();
            assert!(product(&mut executor, &arrays) == fresh(on_new.matrix, on_new.matrix));
        }
    }
}

/// Returns C, of 120 rows and columns, in CSR.
fn product(executor: &mut dyn SpgemmExecutor, cx: &Context) -> Stored {
    let nnz = executor.symbolic(cx).unwrap();
    let c = Stored::room::<f64>(Format::Csr, (120, 120), nnz, IndexBase::Zero, WIDTHS[0]);
    let on_c = c.upload(cx);
    executor.numeric(cx, address(&1.0), &on_c.matrix).unwrap();
    c.download(cx, &on_c)
}
