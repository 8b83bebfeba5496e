//! Rows of the left factor in parts: the host's sums of the same parts, to the bit.

use super::*;
use crate::select::spgemm::cut::{Cut, Lengths};

/// The host's product with the rows of `a` cut as the device cuts them: S · (L · b). Both are CSR.
fn expected<C: Combo, S: Combo<Acc = C::Acc>>(
    (a, b): (&Stored, &Stored),
    (one, alpha): (C::Acc, C::Acc),
    format: Format,
    base: IndexBase,
    widths: (IndexType, IndexType),
) -> Stored
where
    C::Y: Value,
    S::Y: Value,
{
    let cut = cut_of(a, b).expect("rows are long enough");
    let offsets: Vec<i64> = match a.widths.0 {
        IndexType::I64 => bytemuck::cast_slice(&a.arrays[0].words).to_vec(),
        _ => bytemuck::cast_slice::<_, i32>(&a.arrays[0].words).iter().map(|&at| i64::from(at)).collect(),
    };
    let rows = a.head.0 as usize;
    let (mut parts, mut first) = (Vec::new(), vec![0]);
    for row in offsets[..rows + 1].windows(2) {
        let step = if row[1] - row[0] > cut.longest { cut.part } else { i64::MAX };
        let count = (row[1] - row[0] - 1).div_euclid(step).max(0) + 1;
        parts.extend((0..count).map(|part| row[0] + part * step.min(1 << 40)));
        first.push(parts.len() as i64);
    }
    let count = parts.len() as i64;
    parts.push(offsets[rows]);
    let wide = (IndexType::I64, a.widths.1);
    let left = Stored {
        arrays: [Array::of(&parts), a.arrays[1].clone(), a.arrays[2].clone()],
        head: (count, a.head.1, a.head.2),
        widths: wide,
        ..a.clone()
    };
    let middle = super::expected::<C>((N, N), &left, b, one, Format::Csr, IndexBase::Zero, WIDTHS[2]);
    let numbers: Vec<i64> = (0..count).collect();
    let size = S::Acc::TYPE.size();
    let mut ones = vec![0; count as usize * size];
    ones.chunks_exact_mut(size).for_each(|at| at.copy_from_slice(bytemuck::bytes_of(&one)));
    let sums = Stored {
        format: Format::Csr,
        arrays: [Array::of(&first), Array::of(&numbers), Array::new(&ones)],
        head: (rows as i64, count, count),
        base: IndexBase::Zero,
        widths: WIDTHS[2],
        value_type: S::Acc::TYPE,
    };
    super::expected::<S>((N, N), &sums, &middle, alpha, format, base, widths)
}

fn cut_of(a: &Stored, b: &Stored) -> Option<Cut> {
    let offsets: Vec<i64> = match a.widths.0 {
        IndexType::I64 => bytemuck::cast_slice(&a.arrays[0].words).to_vec(),
        _ => bytemuck::cast_slice::<_, i32>(&a.arrays[0].words).iter().map(|&at| i64::from(at)).collect(),
    };
    let lengths = offsets[..a.head.0 as usize + 1].windows(2).map(|row| row[1] - row[0]);
    let more_than = |entries| lengths.clone().filter(|&length| length > entries).count() as i64;
    let (long, longest) = ([more_than(256), more_than(2048)], lengths.clone().max().unwrap_or(0));
    let (entries, right_mean) = ([a.head.2, b.head.2], b.head.2 as f64 / b.head.0 as f64);
    Cut::new(&Lengths { entries, longest, long, right_mean, cols: b.head.1 })
}

/// A product whose left factor may have long rows, and the host's.
pub(super) fn check<C: Combo, S: Combo<Acc = C::Acc>>(
    what: &str,
    a: &Stored,
    b: &Stored,
    (one, alpha): (C::Acc, C::Acc),
    turn: usize,
) where
    C::Y: Value,
    S::Y: Value,
{
    match cut_of(a, b) {
        Some(_) => compare_with::<C>(what, (N, N), a, b, alpha, turn, |format, base, widths| {
            expected::<C, S>((a, b), (one, alpha), format, base, widths)
        }),
        None => compare::<C>(what, (N, N), a, b, alpha, turn),
    }
}

fn long<C: Combo, S: Combo<Acc = C::Acc>>(scalars: (C::Acc, C::Acc), kind: Kind, cols: i64, turn: usize)
where
    C::A: Value,
    C::X: Value,
    C::Y: Value,
    S::Y: Value,
{
    let mut rng = Random::new(70 + turn as u64);
    let inner = 8000;
    let a = lengths(&mut rng, 90, 4, &[7000, 513, 512, 2100, 640]);
    let base = IndexBase::ALL[turn % 2];
    let a = Stored::random::<C::A>(&mut rng, Format::Csr, inner, &a, kind, base, WIDTHS[turn % 3]);
    let b = lengths(&mut rng, inner as usize, 3, &[300, 40]);
    let widths = WIDTHS[(turn + 1) % 3];
    let b = Stored::random::<C::X>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::One, widths);
    assert!(cut_of(&a, &b).is_some(), "{cols}");
    check::<C, S>(&format!("{} {kind:?} {cols}", C::TYPES.describe()), &a, &b, scalars, turn);
}

#[test]
fn parts_of_every_type() {
    let (c32, c64) = (Complex32::new(1.0, 0.0), Complex64::new(1.0, 0.0));
    for (turn, kind) in [Kind::Any, Kind::Sorted, Kind::Distinct].into_iter().enumerate() {
        long::<F64, F64>((1.0, 0.3), kind, 3000, turn);
        long::<F32, F32>((1.0, -1.7), kind, 18, turn);
        long::<F16F32, F32>((1.0, 0.3), kind, 20_000, turn + 1);
        long::<Bf16F32, F32>((1.0, 0.3), kind, 70, turn + 2);
        long::<C32, C32>((c32, Complex32::new(0.5, 2.0)), kind, 1500, turn);
        long::<C64, C64>((c64, Complex64::new(-0.5, 1.0)), kind, 40_000, turn + 1);
    }
}

/// Rows of the left factor are columns of B where both factors are stored by columns.
#[test]
fn columns_of_c_are_computed_from_parts_of_columns_of_b() {
    let mut rng = Random::new(3);
    let b = Stored::random::<f64>(
        &mut rng,
        Format::Csr,
        6000,
        &[5000, 3, 900, 0, 40],
        Kind::Distinct,
        IndexBase::Zero,
        WIDTHS[0],
    );
    let lengths = lengths(&mut rng, 6000, 4, &[60]);
    let a = Stored::random::<f64>(
        &mut rng,
        Format::Csr,
        90,
        &lengths,
        Kind::Distinct,
        IndexBase::Zero,
        WIDTHS[0],
    );
    let by_columns = |m: &Stored| Stored { format: Format::Csc, ..m.clone() };
    let flipped = |format| if format == Format::Csr { Format::Csc } else { Format::Csr };
    // (b · a)ᵀ = aᵀ · bᵀ, and what is CSR of one is CSC of the other.
    let (left, right) = (by_columns(&a), by_columns(&b));
    compare_with::<F64>("by columns", (N, N), &left, &right, 0.7, 0, |format, base, widths| Stored {
        format,
        ..expected::<F64, F64>((&b, &a), (1.0, 0.7), flipped(format), base, widths)
    });
}

/// New values, in graphs, too: nothing is allocated after the first numeric phase.
#[test]
fn values_again() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(9);
    let rows = lengths(&mut rng, 40, 4, &[3000, 1200]);
    let of_b = lengths(&mut rng, 4000, 4, &[]);
    let (zero, kind) = (IndexBase::Zero, Kind::Distinct);
    let mut make = |minor, rows: &[usize]| {
        Stored::random::<f64>(&mut rng, Format::Csr, minor, rows, kind, zero, WIDTHS[0])
    };
    let (a, b) = (make(4000, &rows), make(300, &of_b));
    let cx = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&cx), b.upload(&cx));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, true);
    let mut executor = build(&cx, &device, &problem, &choose(&problem), None).unwrap();
    let nnz = executor.symbolic(&cx).unwrap();
    let c = Stored::room::<f64>(Format::Csr, (40, 300), nnz, zero, WIDTHS[0]);
    let on_c = c.upload(&cx);
    let alpha = 1.5;
    executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
    let doubled = |m: &Stored| {
        let values: Vec<f64> =
            bytemuck::cast_slice(&m.arrays[2].words).iter().map(|v: &f64| -2.0 * v).collect();
        Stored { arrays: [m.arrays[0].clone(), m.arrays[1].clone(), Array::of(&values)], ..m.clone() }
    };
    let (new_a, new_b) = (doubled(&a), doubled(&b));
    let (on_new_a, on_new_b) = (new_a.upload(&cx), new_b.upload(&cx));
    executor.update_values(&cx, on_new_a.matrix.values(), on_new_b.matrix.values()).unwrap();
    let live = cx.allocator.live_bytes();
    Graph::begin(&stream).unwrap();
    executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
    Graph::end(&stream).unwrap().launch(&stream).unwrap();
    memory::synchronize(cx.stream).unwrap();
    assert_eq!(cx.allocator.live_bytes(), live);
    let wanted = expected::<F64, F64>((&new_a, &new_b), (1.0, alpha), Format::Csr, zero, WIDTHS[0]);
    assert_eq!(c.download(&cx, &on_c), wanted);
}

/// Where memory has no room for the products of the parts, rows are taken whole.
#[test]
fn without_memory_rows_are_whole() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(19);
    // Each part of 128 entries has 128 · 30 columns of its own.
    let rows = [40_000, 1];
    let of_b = vec![30; 50_000];
    let (zero, kind) = (IndexBase::Zero, Kind::Distinct);
    let mut make = |minor, rows: &[usize]| {
        Stored::random::<f64>(&mut rng, Format::Csr, minor, rows, kind, zero, WIDTHS[0])
    };
    let (a, b) = (make(50_000, &rows), make(100_000, &of_b));
    assert!(cut_of(&a, &b).is_some());
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let whole = super::expected::<F64>((N, N), &a, &b, 1.0, Format::Csr, zero, WIDTHS[0]);
    let mut taken_whole = 0;
    for limit in [2 << 20, 4 << 20, 8 << 20, usize::MAX] {
        let cx = on_device(&device, &stream, limit);
        let found = build(&cx, &device, &problem, &choose(&problem), None).and_then(|mut executor| {
            let nnz = executor.symbolic(&cx)?;
            let c = Stored::room::<f64>(Format::Csr, (2, 100_000), nnz, zero, WIDTHS[0]);
            let on_c = c.upload(&arrays);
            executor.numeric(&cx, address(&1.0), &on_c.matrix)?;
            memory::synchronize(cx.stream)?;
            Ok(c.download(&arrays, &on_c))
        });
        match found {
            Ok(found) => {
                assert_eq!(found.arrays[1], whole.arrays[1], "{limit}");
                taken_whole += usize::from(found == whole);
            }
            Err(error) => assert!(error.lacks_memory(), "{limit}: {error}"),
        }
    }
    assert!(taken_whole > 0, "no limit was between both");
}
