//! Tests of matrices with thousands of rows of skewed lengths and one row that is so long that it is split,
//! which small random cases do not have. There is one problem for every combination of types and format; op,
//! widths and settings take turns.

use tarsia::facade::{
    Effort, Format, IndexBase, OpKind, Operation, Order, PointerMode, Reorder, SpgemmAlg, SpmmAlg, SpmvAlg,
};

use super::cases::{formats_of, types_of, MatrixCase, Places, Scalar, Updates};
use super::{spgemm, spmm, spmv};
use crate::common::output::Target;
use crate::common::pattern::{Style, Widths};
use crate::common::{is_small, Outcome};

/// Returns the item of a list whose turn it is.
fn turn<T: Copy>(list: &[T], at: usize) -> T {
    list[at % list.len()]
}

/// Returns a matrix whose op has this shape, about `count` entries and one long row.
fn skewed(
    at: usize,
    format: Format,
    op: Operation,
    shape: (usize, usize),
    count: usize,
    long: (usize, usize),
) -> MatrixCase {
    let style = Style {
        format,
        widths: turn(&Widths::ALL, at),
        base: turn(IndexBase::ALL, at / 3),
        block: (2, 3),
        block_order: turn(Order::ALL, at),
    };
    let (mut rows, mut cols) = op.shape(shape.0 as i64, shape.1 as i64);
    let area = if format == Format::Bsr { 6 } else { 1 };
    if format == Format::Bsr {
        (rows, cols) = (rows / 2, cols / 3);
    }
    let seed = at as u64;
    let less = if is_small() { 8 } else { 1 };
    let (count, long) = (count / less, (long.0, long.1 / less));
    // A long row of blocks of h rows has 1/w as many blocks as entries.
    let long = (long.0, if format == Format::Bsr { long.1 / 2 } else { long.1 });
    let places = Places::Skewed { count: count / area, long, by_columns: op.transposes(), seed };
    MatrixCase { style, shape: (rows as usize, cols as usize), tidy: at % 5 == 4, places }
}

/// Runs a problem for every combination of types and formats, and panics with the first that failed.
fn for_every_combination(op: OpKind, run: impl Fn(usize, tarsia::facade::Types, Format) -> Outcome) {
    let mut at = 0;
    for types in types_of(op) {
        for format in formats_of(op) {
            if let Err(error) = run(at, types, format) {
                panic!("{} {} in {}, number {at}: {error}", op.short(), types.describe(), format.short());
            }
            at += 1;
        }
    }
}

const UPDATES: [Updates; 4] = [Updates::Never, Updates::Announced, Updates::Unannounced, Updates::Unused];

#[test]
fn long_rows_spmv() {
    for_every_combination(OpKind::Spmv, |at, types, format| {
        let op = turn(Operation::ALL, at + at / 3);
        spmv::run(&spmv::Case {
            types,
            op,
            // One row has more than 2^16 entries.
            a: skewed(at, format, op, (3001, 2503), 30_000, (17, 70_000)),
            alpha: Scalar::Random,
            beta: if at % 2 == 0 { Scalar::Zero } else { Scalar::Random },
            mode: turn(PointerMode::ALL, at / 2),
            effort: turn(Effort::ALL, at + at / 4),
            updates: turn(&UPDATES, at + at / 5),
            reorder: turn(Reorder::ALL, at + at / 7),
            alg: turn(SpmvAlg::ALL, at),
            wild: false,
            guard: 1,
            seed: at as u64,
        })
    });
}

#[test]
fn long_rows_spmm() {
    for_every_combination(OpKind::Spmm, |at, types, format| {
        let op = turn(Operation::ALL, at + at / 3);
        let layout = |at, padding| spmm::Layout { order: turn(Order::ALL, at), padding };
        spmm::run(&spmm::Case {
            types,
            ops: (op, turn(Operation::ALL, at / 2)),
            // One row has more than 2^14 entries.
            a: skewed(at, format, op, (1201, 803), 6_000, (5, 18_000)),
            n: turn(&[33, 1, 8, 20, 3], at),
            n_hint: turn(&[8, 64, 0], at),
            b: layout(at, at % 4),
            c: layout(at / 2, at % 3),
            alpha: Scalar::Random,
            beta: if at % 2 == 0 { Scalar::Random } else { Scalar::Zero },
            mode: turn(PointerMode::ALL, at / 2),
            effort: turn(Effort::ALL, at + at / 4),
            updates: turn(&UPDATES, at + at / 5),
            reorder: turn(Reorder::ALL, at + at / 7),
            alg: turn(SpmmAlg::ALL, at),
            wild: false,
            seed: at as u64,
        })
    });
}

/// SpMM with rows of B that begin inside a cache line and are several tiles long: kernels may copy them, or
/// process the tiles in another order. One of the two matrices has few entries per row, the other many per
/// column.
#[test]
fn many_columns_spmm() {
    for_every_combination(OpKind::Spmm, |at, types, format| {
        let op = turn(Operation::ALL, at + at / 3);
        let (shape, count) = if at % 2 == 0 { ((702, 300), 3_000) } else { ((600, 18), 9_000) };
        spmm::run(&spmm::Case {
            types,
            ops: (op, turn(Operation::ALL, at / 2)),
            a: skewed(at, format, op, shape, count, (5, 12)),
            n: turn(&[300, 136, 261], at / 2),
            n_hint: 0,
            b: spmm::Layout { order: turn(Order::ALL, at / 4), padding: at % 8 / 4 },
            c: spmm::Layout { order: turn(Order::ALL, at / 3), padding: at % 3 },
            alpha: Scalar::Random,
            beta: if at % 2 == 0 { Scalar::Random } else { Scalar::Zero },
            mode: turn(PointerMode::ALL, at / 2),
            effort: turn(Effort::ALL, at + at / 4),
            updates: turn(&UPDATES, at + at / 5),
            reorder: turn(Reorder::ALL, at + at / 7),
            alg: turn(SpmmAlg::ALL, at),
            wild: at % 3 == 0,
            seed: at as u64,
        })
    });
}

#[test]
fn long_rows_spgemm() {
    for_every_combination(OpKind::Spgemm, |at, types, format| {
        let ops = (turn(Operation::ALL, at), turn(Operation::ALL, at / 2));
        let formats = formats_of(OpKind::Spgemm);
        let target = |at| Target {
            format: turn(&formats, at),
            widths: turn(&Widths::ALL, at),
            base: turn(IndexBase::ALL, at / 2),
        };
        // More than 2^16 columns, so that hash tables are used for short rows
        // and arrays for the longest.
        let (m, k, n) = if at % 4 < 2 { (1500, 900, 70_001) } else { (70_001, 900, 1500) };
        spgemm::run(&spgemm::Case {
            types,
            ops,
            a: skewed(at, format, ops.0, (m, k), 3_000, (3, 400)),
            b: skewed(at + 1, turn(&formats, at / 2), ops.1, (k, n), 6_000, (300, 5_000)),
            targets: (target(at), target(at / 2 + 1)),
            alpha: Scalar::Random,
            mode: turn(PointerMode::ALL, at),
            effort: turn(Effort::ALL, at),
            value_updates: at % 2 == 0,
            unsorted: at % 3 == 1,
            renewed: turn(&[spgemm::Renewed::Both, spgemm::Renewed::A, spgemm::Renewed::B], at),
            alg: turn(SpgemmAlg::ALL, at),
            wild: false,
            seed: at as u64,
        })
    });
}

/// SpGEMM with rows of the left factor that are so long that a device splits them.
#[test]
fn rows_in_parts_spgemm() {
    for_every_combination(OpKind::Spgemm, |at, types, format| {
        let ops = (turn(Operation::ALL, at / 2), turn(Operation::ALL, at));
        let formats = formats_of(OpKind::Spgemm);
        let target = |at| Target {
            format: turn(&formats, at),
            widths: turn(&Widths::ALL, at),
            base: turn(IndexBase::ALL, at / 3),
        };
        spgemm::run(&spgemm::Case {
            types,
            ops,
            a: skewed(at, format, ops.0, (50, 12_000), 1_000, (2, 9_000)),
            b: skewed(at + 2, turn(&formats, at / 2), ops.1, (12_000, 300), 15_000, (30, 200)),
            targets: (target(at), target(at / 2 + 1)),
            alpha: Scalar::Random,
            mode: turn(PointerMode::ALL, at / 2),
            effort: turn(Effort::ALL, at),
            value_updates: at % 3 == 0,
            unsorted: at % 2 == 1,
            renewed: turn(&[spgemm::Renewed::A, spgemm::Renewed::Both, spgemm::Renewed::B], at),
            alg: turn(SpgemmAlg::ALL, at),
            wild: false,
            seed: at as u64 + 7,
        })
    });
}

/// Wide or tall product: its description, op(A) and op(B), and both factors.
type Few = (String, (Operation, Operation), MatrixCase, MatrixCase);

/// Returns a factor in CSR.
fn in_csr(at: usize, shape: (usize, usize), places: Places) -> MatrixCase {
    let style = Style {
        format: Format::Csr,
        widths: turn(&Widths::ALL, at),
        base: turn(IndexBase::ALL, at),
        block: (1, 1),
        block_order: Order::Row,
    };
    MatrixCase { style, shape, tidy: at % 2 == 0, places }
}

/// Returns products of rows of very different lengths with columns of very different lengths.
fn skewed_and_wide() -> Vec<Few> {
    const SHAPES: [((usize, usize), usize); 5] = [
        ((18, 93_261), 70_000),
        ((10, 10_000), 25_000),
        ((60, 100_000), 60_000),
        ((30, 100_000), 60_000),
        ((40, 20_000), 60_000),
    ];
    let (n, t) = (Operation::NonTranspose, Operation::Transpose);
    let product = |at: usize, ops: (Operation, Operation)| {
        let (shape, count) = SHAPES[at];
        let factor = |op: Operation, shape: (usize, usize), long| {
            let made = skewed(at, Format::Csr, op, shape, count, (at, long));
            in_csr(at, made.shape, made.places)
        };
        let a = factor(ops.0, shape, shape.1 / 2);
        let b = factor(ops.1, (shape.1, shape.0), shape.0 / 2);
        (format!("{shape:?} {ops:?}"), ops, a, b)
    };
    (0..SHAPES.len()).map(|at| product(at, turn(&[(n, t), (t, n)], at))).collect()
}

/// Returns products of a wide matrix with long rows and its transpose, also as that of a tall matrix'
/// transpose and the tall matrix, as in normal equations, and squares of matrices with a few such rows. Both
/// factors have the same pattern and values of their own.
fn few_long_rows() -> Vec<Few> {
    /// Numbers of rows, of columns, and of entries per row.
    const WIDE: [(usize, usize, usize); 5] = [
        (12, 20_000, 4_000),
        (10, 100_000, 10_000),
        (18, 93_261, 3_000),
        (30, 50_000, 1_000),
        (60, 40_000, 1_000),
    ];
    /// Numbers of rows and columns, of long rows, and of entries per long row.
    const SQUARE: [(usize, usize, usize); 3] =
        [(10_000, 10, 1_000), (20_000, 12, 2_000), (100_000, 3, 8_000)];
    let (n, t) = (Operation::NonTranspose, Operation::Transpose);
    let less = if is_small() { 8 } else { 1 };
    let mut out = Vec::new();
    for (at, (rows, cols, length)) in WIDE.into_iter().enumerate() {
        // Every second product is that of the tall matrix, which is the wide one's transpose.
        let (ops, by_columns) = turn(&[((n, t), false), ((t, n), true)], at);
        let shape = if by_columns { (cols, rows) } else { (rows, cols) };
        let places = Places::FewLong { count: 0, long: (rows, length / less), by_columns, seed: at as u64 };
        // Widths, bases and orders of entries change at another rate than ops.
        let factor = in_csr(at / 2, shape, places);
        out.push((format!("{rows} rows of {length} in {cols}, {ops:?}"), ops, factor.clone(), factor));
    }
    for (at, (rows, long, length)) in SQUARE.into_iter().enumerate() {
        let places = Places::FewLong {
            count: rows / 8,
            long: (long, length / less),
            by_columns: false,
            seed: at as u64,
        };
        let factor = in_csr(at, (rows, rows), places);
        out.push((format!("{long} of {rows} rows of {length}"), (n, n), factor.clone(), factor));
    }
    out
}

/// SpGEMM with few huge rows, in the left factor or in both.
#[test]
fn wide_and_tall_factors_spgemm() {
    multiply_all(skewed_and_wide().into_iter().chain(few_long_rows()));
}

/// SpGEMM of stencils, with enough rows and products that a device takes rows together whose columns are those of
/// the row before, plus 1.
#[test]
fn stencils_spgemm() {
    let (n, t) = (Operation::NonTranspose, Operation::Transpose);
    let product = |(at, ops)| {
        let (side, rows) = (17, 17 * 17 * 17);
        let factor = MatrixCase { tidy: true, ..in_csr(at, (rows, rows), Places::Stencil { side }) };
        (format!("27 points, {ops:?}"), ops, factor.clone(), factor)
    };
    multiply_all([(n, n), (t, n), (n, n), (n, n)].into_iter().enumerate().map(product));
}

fn multiply_all(products: impl Iterator<Item = Few>) {
    for (at, (what, ops, a, b)) in products.enumerate() {
        let target = Target { format: Format::Csr, widths: Widths::ALL[0], base: IndexBase::Zero };
        let case = spgemm::Case {
            types: turn(&types_of(OpKind::Spgemm), at),
            ops,
            a,
            b,
            targets: (target, target),
            alpha: Scalar::Random,
            mode: PointerMode::Host,
            effort: Effort::Default,
            value_updates: at % 2 == 0,
            unsorted: at % 3 == 1,
            renewed: spgemm::Renewed::Both,
            alg: turn(&[SpgemmAlg::Default, SpgemmAlg::Hash], at / 2),
            wild: false,
            seed: at as u64,
        };
        if let Err(error) = spgemm::run(&case) {
            panic!("{what}: {error}");
        }
    }
}
