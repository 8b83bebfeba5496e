//! Memory of a product whose C is stored by columns while rows are computed, or the reverse: its peak, C
//! included, is at most twice the bytes of C and the factors.

use super::tile::choose_tile;
use super::*;
use crate::select::spgemm::columns::SLACK;

fn stored(matrix: &Stored) -> usize {
    matrix.arrays.iter().map(|array| array.bytes).sum()
}

/// Tests a product with too many entries to sort them all at one time. With value updates, for which they are
/// all sorted, it has the same bits.
fn product<C: Combo>(
    what: &str,
    ops: (Operation, Operation),
    (a, b): (&Stored, &Stored),
    format: Format,
    alpha: C::Acc,
    by_tiles: bool,
) where
    C::Y: Value,
{
    let host = || expected::<C>(ops, a, b, alpha, format, IndexBase::One, WIDTHS[0]);
    let host = if by_tiles { None } else { Some(host()) };
    product_like::<C>(what, ops, (a, b), format, alpha, by_tiles, host);
}

/// Tests such a product, also against the host's if that has the same bits.
fn product_like<C: Combo>(
    what: &str,
    ops: (Operation, Operation),
    (a, b): (&Stored, &Stored),
    format: Format,
    alpha: C::Acc,
    by_tiles: bool,
    host: Option<Stored>,
) where
    C::Y: Value,
{
    let Some((device, stream)) = device() else { return };
    let _entered = device.enter().unwrap();
    let arrays = on_device(&device, &stream, usize::MAX);
    let (on_a, on_b) = (a.upload(&arrays), b.upload(&arrays));
    let find = |keep: bool| {
        let cx = on_device(&device, &stream, usize::MAX);
        let problem = problem::<C>(ops, on_a.matrix, on_b.matrix, keep);
        let choice = if by_tiles { choose_tile(&problem) } else { choose(&problem) };
        let mut executor = build(&device.call(&cx).unwrap(), &problem, &choice, None).unwrap();
        let nnz = executor.symbolic(&cx).unwrap();
        let c = Stored::room::<C::Y>(format, shape(ops, a, b), nnz, IndexBase::One, WIDTHS[0]);
        let on_c = c.upload(&arrays);
        executor.numeric(&cx, address(&alpha), &on_c.matrix).unwrap();
        (c.download(&arrays, &on_c), cx.allocator.peak_bytes())
    };
    let (found, peak) = find(false);
    let (wanted, whole) = find(true);
    assert!(found == wanted, "{what}: other bits than at one time");
    if let Some(host) = host {
        assert!(found == host, "{what}: other bits than the host's");
    }
    let more = stored(&found) + stored(a) + stored(b) + SLACK;
    assert!(peak <= more, "{what}: {peak} bytes beside C, at the most {more}");
    assert!(whole > more, "{what}: {whole} bytes are allowed at one time");
}

fn factors<V: Value>(format: Format) -> (Stored, Stored) {
    let mut rng = Random::new(83);
    let mut factor = || {
        // Rows are too short to be split; the host would add the sums of split rows in another order.
        let lengths = lengths(&mut rng, 20_000, 16, &[250]);
        Stored::random::<V>(&mut rng, format, 20_000, &lengths, Kind::Distinct, IndexBase::Zero, WIDTHS[0])
    };
    (factor(), factor())
}

/// Returns a column of A and a row of B, whose product has all entries.
fn outer<V: Value>() -> (Stored, Stored) {
    let mut rng = Random::new(89);
    let mut full = |rows: usize, cols: i64| {
        let rows = vec![(0..cols).collect::<Vec<_>>(); rows];
        Stored::of_rows::<V>(&mut rng, Format::Csr, cols, &rows, IndexBase::Zero, WIDTHS[0])
    };
    (full(1600, 4), full(4, 1600))
}

#[test]
fn scattered_rows() {
    let t = Operation::Transpose;
    let (a, b) = factors::<f64>(Format::Csr);
    product::<F64>("rows", (N, N), (&a, &b), Format::Csc, 0.7, false);
    product::<F64>("both transposed", (t, t), (&a, &b), Format::Csr, 0.7, false);
    product::<F64>("one transposed", (N, t), (&a, &b), Format::Csc, 0.7, false);
    let (a, b) = factors::<f32>(Format::Csc);
    product::<F32>("columns", (N, N), (&a, &b), Format::Csr, 0.7, false);
}

/// Long rows are split alike, however many rows are computed at one time.
#[test]
fn rows_in_parts() {
    let mut rng = Random::new(84);
    let of_a = lengths(&mut rng, 20_000, 16, &[700, 9000, 600]);
    let of_b = lengths(&mut rng, 20_000, 16, &[]);
    let mut factor = |lengths: &[usize]| {
        let (kind, zero) = (Kind::Distinct, IndexBase::Zero);
        Stored::random::<f64>(&mut rng, Format::Csr, 20_000, lengths, kind, zero, WIDTHS[0])
    };
    let (a, b) = (factor(&of_a), factor(&of_b));
    let host = cut::expected::<F64, F64>((&a, &b), (1.0, 0.7), Format::Csc, IndexBase::One, WIDTHS[0]);
    product_like::<F64>("parts", (N, N), (&a, &b), Format::Csc, 0.7, false, Some(host));
}

#[test]
fn full_rows() {
    for by_tiles in [false, true] {
        let (a, b) = outer::<f64>();
        product::<F64>("outer", (N, N), (&a, &b), Format::Csc, -1.5, by_tiles);
        let (a, b) = outer::<f32>();
        product::<F32>("outer", (N, N), (&a, &b), Format::Csc, -1.5, by_tiles);
    }
}
