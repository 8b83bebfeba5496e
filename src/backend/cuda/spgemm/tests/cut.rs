//! Tests of split rows, whose pieces several warps process: results agree to the bit with sums of the same
//! pieces on the host.

use super::*;
use crate::select::spgemm::wide::{in_long_rows, starts_pay, Cut};

fn offsets_of(m: &Stored) -> Vec<i64> {
    match m.widths.0 {
        IndexType::I64 => bytemuck::cast_slice(&m.arrays[0].words).to_vec(),
        _ => bytemuck::cast_slice::<_, i32>(&m.arrays[0].words).iter().map(|&at| i64::from(at)).collect(),
    }
    .into_iter()
    .take(m.head.0 as usize + 1)
    .map(|at| at - i64::from(m.base.code()))
    .collect()
}

fn columns_of(m: &Stored) -> Vec<i64> {
    let base = i64::from(m.base.code());
    let columns: Vec<i64> = match m.widths.1 {
        IndexType::I64 => bytemuck::cast_slice(&m.arrays[1].words).to_vec(),
        _ => bytemuck::cast_slice::<_, i32>(&m.arrays[1].words).iter().map(|&at| i64::from(at)).collect(),
    };
    columns.into_iter().take(m.head.2 as usize).map(|at| at - base).collect()
}

/// Returns the entries of a piece of each row of `a` that is split, which are long rows that warps process by
/// windows of columns, and `None` for the others. Columns of both factors are sorted and distinct.
fn parts_of(a: &Stored, b: &Stored) -> Vec<Option<i64>> {
    let (offsets, columns) = (offsets_of(a), columns_of(a));
    let (of_b, columns_of_b) = (offsets_of(b), columns_of(b));
    let windows = b.head.1.div_euclid(1024) + i64::from(b.head.1 % 1024 > 0);
    let lengths = offsets.windows(2).map(|row| row[1] - row[0]);
    let more_than = |entries| lengths.clone().filter(|&length| length > entries).count() as i64;
    let (long, longest) = ([more_than(256), more_than(2048)], lengths.clone().max().unwrap_or(0));
    let cut = Cut::new(in_long_rows(a.head.2, long, longest), longest, windows);
    let part_of = |row: &[i64]| {
        let met = columns[row[0] as usize..row[1] as usize].iter().map(|&k| k as usize);
        let met: Vec<_> = met.map(|k| of_b[k]..of_b[k + 1]).filter(|r| !r.is_empty()).collect();
        let low = met.iter().map(|r| columns_of_b[r.start as usize]).min()?;
        let high = met.iter().map(|r| columns_of_b[r.end as usize - 1]).max()?;
        let products: i64 = met.iter().map(|r| r.end - r.start).sum();
        let wide = starts_pay((b.head.0, windows), b.head.2) && 4 * products > high - low;
        (wide && row[1] - row[0] > cut.longest).then_some(cut.part)
    };
    offsets.windows(2).map(part_of).collect()
}

/// Computes the product on the host with the rows of `a` split as on the device: S · (L · b), where L has the
/// pieces as rows, and S adds them up. Both factors are CSR.
pub(super) fn expected<C: Combo, S: Combo<Acc = C::Acc>>(
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
    let (of_rows, offsets) = (parts_of(a, b), offsets_of(a));
    let rows = a.head.0 as usize;
    let (mut parts, mut first) = (Vec::new(), vec![0]);
    for (row, part) in offsets.windows(2).zip(&of_rows) {
        let step = part.unwrap_or(1 << 40);
        let count = (row[1] - row[0] - 1).div_euclid(step).max(0) + 1;
        parts.extend((0..count).map(|part| row[0] + part * step));
        first.push(parts.len() as i64);
    }
    let count = parts.len() as i64;
    parts.push(offsets[rows]);
    parts.iter_mut().for_each(|at| *at += i64::from(a.base.code()));
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

/// Compares a product whose left factor may have long rows with the host's.
pub(super) fn check<C: Combo, S: Combo<Acc = C::Acc>>(
    what: &str,
    (a, b, kind): (&Stored, &Stored, Kind),
    (one, alpha): (C::Acc, C::Acc),
    turn: usize,
) where
    C::Y: Value,
    S::Y: Value,
{
    match kind {
        Kind::Distinct => compare_with::<C>(what, (N, N), a, b, alpha, turn, |format, base, widths| {
            expected::<C, S>((a, b), (one, alpha), format, base, widths)
        }),
        // Rows are not split.
        _ => compare::<C>(what, (N, N), a, b, alpha, turn),
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
    let a = lengths(&mut rng, 90, 4, &[7000, 257, 256, 2100, 640]);
    let base = IndexBase::ALL[turn % 2];
    let a = Stored::random::<C::A>(&mut rng, Format::Csr, inner, &a, kind, base, WIDTHS[turn % 3]);
    let b = lengths(&mut rng, inner as usize, 3, &[300, 40]);
    let widths = WIDTHS[(turn + 1) % 3];
    let b = Stored::random::<C::X>(&mut rng, Format::Csr, cols, &b, kind, IndexBase::One, widths);
    assert!(kind != Kind::Distinct || parts_of(&a, &b).iter().flatten().count() > 0, "{cols}");
    check::<C, S>(&format!("{} {kind:?} {cols}", C::TYPES.describe()), (&a, &b, kind), scalars, turn);
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
        long::<C64, C64>((c64, Complex64::new(-0.5, 1.0)), kind, 8_000, turn + 1);
    }
}

/// If both factors are stored by columns, rows of the left factor are columns of B.
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
    // (b · a)ᵀ = aᵀ · bᵀ, and CSR of a matrix is CSC of its transpose.
    let (left, right) = (by_columns(&a), by_columns(&b));
    compare_with::<F64>("by columns", (N, N), &left, &right, 0.7, 0, |format, base, widths| Stored {
        format,
        ..expected::<F64, F64>((&b, &a), (1.0, 0.7), flipped(format), base, widths)
    });
}

/// Numeric phases with new values, also in graphs, allocate nothing after the first one.
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
    let mut executor = build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).unwrap();
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
    testing::be_alone();
    Graph::begin(&stream).unwrap();
    executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
    Graph::end(&stream).unwrap().launch(&stream).unwrap();
    memory::synchronize(cx.stream).unwrap();
    assert_eq!(cx.allocator.live_bytes(), live);
    let wanted = expected::<F64, F64>((&new_a, &new_b), (1.0, alpha), Format::Csr, zero, WIDTHS[0]);
    assert_eq!(c.download(&cx, &on_c), wanted);
}

/// If there is no memory for partial sums, rows are not split.
#[test]
fn without_memory_rows_are_whole() {
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let mut rng = Random::new(19);
    // Each piece has nearly all columns of C.
    let rows = [40_000, 1];
    let of_b = vec![30; 50_000];
    let (zero, kind) = (IndexBase::Zero, Kind::Distinct);
    let mut make = |minor, rows: &[usize]| {
        Stored::random::<f64>(&mut rng, Format::Csr, minor, rows, kind, zero, WIDTHS[0])
    };
    let (a, b) = (make(50_000, &rows), make(100_000, &of_b));
    assert!(parts_of(&a, &b)[0].is_some());
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let problem = problem::<F64>((N, N), on_a.matrix, on_b.matrix, false);
    let whole = super::expected::<F64>((N, N), &a, &b, 1.0, Format::Csr, zero, WIDTHS[0]);
    let (mut taken_whole, mut in_parts) = (0, 0);
    for limit in [2 << 20, 8 << 20, 24 << 20, 28 << 20, usize::MAX] {
        let cx = on_device(&device, &stream, limit);
        let found =
            build(&device.call(&cx).unwrap(), &problem, &choose(&problem), None).and_then(|mut executor| {
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
                in_parts += usize::from(found != whole);
            }
            Err(error) => assert!(error.lacks_memory(), "{limit}: {error}"),
        }
    }
    assert!(taken_whole > 0 && in_parts > 0, "no limit was between both: {taken_whole} {in_parts}");
}
