//! Tests of products by lists of rows against sums in double precision. Skipped without a device.

use super::super::testing::{self, check_all, check_types, sample, Division, TestProduct};
use super::super::{Analysis, RowSpmm, SharedResults, Strides};
use crate::algorithm::Algorithm;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::format::testing::TestMatrix;
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::problem::SpmmProblem;
use crate::select::spmm::row::Kernel;
use crate::select::{RowOrder, Source};
use crate::support::{Combo, F32, F64};
use crate::types::{Address, IndexBase, IndexType, Operation, Order, Reorder};

const PLAIN: TestProduct = TestProduct { algorithm: Algorithm::Row, ..testing::PLAIN };

#[test]
fn any_columns_scalars_and_orders() {
    let columns = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 33, 64, 100, 136, 260];
    check_all(&sample(0, 600, 401), columns.map(|n| TestProduct { n, ..PLAIN }));
    let mut products = vec![];
    for (alpha, beta) in [(1.0, 0.0), (-0.5, 2.0), (0.0, 0.5), (0.0, 0.0)] {
        for orders in [(Order::Row, Order::Row), (Order::Col, Order::Row), (Order::Row, Order::Col)] {
            for n in [3, 8, 16, 48] {
                products.push(TestProduct { alpha, beta, n, orders, pad: 4, ..PLAIN });
            }
        }
    }
    check_all(&sample(1, 300, 300), products);
}

#[test]
fn any_alignment() {
    let mut products = vec![];
    for (shift, pad) in [(0, 1), (1, 0), (1, 7), (8, 8), (4, 4), (2, 2)] {
        for n in [1, 4, 8, 16, 33, 72] {
            products.push(TestProduct { shift, pad, n, beta: 1.0, ..PLAIN });
        }
    }
    check_all(&sample(0, 170, 200), products);
}

/// Makes a matrix with rows of about `length` entries, and with some of the lengths `longer`, far from each
/// other.
fn with_longer(rows: usize, length: usize, longer: &[usize]) -> TestMatrix {
    let mut lengths: Vec<_> = (0..rows).map(|row| length / 2 + row * 7 % (length + 1)).collect();
    for (at, &length) in longer.iter().enumerate() {
        lengths[at * (rows - 1) / longer.len().max(2) + at % 3] = length;
    }
    TestMatrix::new(0, 20_000, &lengths, |row, entry| (row * 3 + entry * 17) % 20_000)
}

#[test]
fn long_rows_are_joined() {
    let columns = [1, 3, 5, 8, 16, 32, 40, 128, 200];
    // Rows for a warp, for a block, for a few blocks, and for so many blocks that their partial sums are
    // added in two levels.
    let longer = [25, 128, 129, 512, 513, 1025, 8192, 8193, 15_000, 25, 26];
    check_all(&with_longer(3000, 8, &longer), columns.map(|n| TestProduct { n, beta: 1.0, ..PLAIN }));
    check_all(
        &with_longer(700, 3, &[600, 5000]),
        [8, 12, 64].map(|n| TestProduct { n, special: true, ..PLAIN }),
    );
    let orders = (Order::Col, Order::Col);
    check_all(
        &with_longer(700, 3, &[600, 5000]),
        [4, 8, 24].map(|n| TestProduct { n, orders, pad: 1, ..PLAIN }),
    );
    // Rows that are long on average, in the order of their lengths.
    let longer = [400, 4000, 12_000, 700];
    check_all(&with_longer(900, 40, &longer), columns.map(|n| TestProduct { n, beta: 1.0, ..PLAIN }));
}

#[test]
fn rows_of_one_length_are_shared_by_groups() {
    for (rows, length) in [(900, 30), (300, 150), (60, 400)] {
        let matrix = TestMatrix::new(0, 2000, &vec![length; rows], |row, entry| row + entry * 2);
        check_all(&matrix, [2, 8, 16, 32, 64, 130].map(|n| TestProduct { n, ..PLAIN }));
    }
}

/// Tests lists for groups of so many lanes with other numbers of columns than planned, for which groups have
/// other lanes, and with rows of B or C that are not aligned, which other kernels multiply with the same
/// lists.
#[test]
fn lists_for_groups_with_other_columns() {
    let matrix = with_longer(900, 12, &[25, 128, 129, 512, 513, 1025, 8192, 8193, 15_000]);
    for planned in [16, 32, 64, 256] {
        let columns = [1, 3, 8, 16, 20, 32, 33, 64, 136, 512];
        let planned = TestProduct { planned: Some(planned), beta: 0.5, ..PLAIN };
        check_all(&matrix, columns.map(|n| TestProduct { n, ..planned }));
        check_all(
            &matrix,
            [(1, 0), (0, 1), (4, 4)].map(|(shift, pad)| TestProduct { n: 64, shift, pad, ..planned }),
        );
    }
}

/// Tests groups of two and four lanes for eight columns, with rows that blocks share in one part and in many.
#[test]
fn long_rows_and_eight_columns() {
    let matrix = with_longer(300, 140, &[0, 1, 15, 64, 65, 512, 513, 1025, 8192, 15_000]);
    let planned = TestProduct { planned: Some(8), beta: 0.5, ..PLAIN };
    check_all(&matrix, [8, 4, 5, 16, 64].map(|n| TestProduct { n, ..planned }));
    check_all(&matrix, [(1, 0), (0, 1)].map(|(shift, pad)| TestProduct { n: 8, shift, pad, ..planned }));
    check_all(&matrix, [TestProduct { n: 8, alpha: 0.0, deterministic: true, ..planned }]);
    check_all(&matrix, [TestProduct { n: 8, deterministic: true, ..planned }]);
    check_all(&matrix, [TestProduct { n: 8, orders: (Order::Col, Order::Row), ..planned }]);
}

/// Tests which kernels a plan takes.
#[test]
fn aligned_rows_of_b_and_c_are_for_groups() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // Rows of a mean length that suits groups, and of one that suits them for eight columns alone.
    for (length, suits) in [(12, true), (400, false)] {
        let matrix = TestMatrix::new(0, 20_000, &vec![length; 900], |row, entry| row + 17 * entry);
        let offsets = DeviceBuffer::from_slice(cx, &matrix.offsets).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &matrix.indices).unwrap();
        let values = DeviceBuffer::from_slice(cx, &vec![1.0_f64; matrix.indices.len()]).unwrap();
        let a = Compressed {
            major: 900,
            minor: 20_000,
            nnz: matrix.indices.len() as i64,
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: IndexType::I64,
            index_type: IndexType::I64,
            base: IndexBase::Zero,
            value_type: F64::TYPES.a,
        };
        let problem = SpmmProblem {
            op: Operation::NonTranspose,
            op_b: Operation::NonTranspose,
            a: SparseMatrix { arrays: SparseArrays::Csr(a), writable: true, temporary: false },
            b_order: Order::Row,
            c_order: Order::Row,
            n_hint: 64,
            types: F64::TYPES,
            value_updates: false,
            ieee: false,
        };
        let shared = SharedResults::new(&device);
        let analysis = Analysis { cx, problem: &problem, shared: &shared };
        let plan = RowSpmm::build(&analysis, Source::Canonical, &RowOrder::new(Reorder::None)).unwrap();
        let lanes = |n: usize, at: usize, packs_c: bool| {
            let rows = Strides { row: n as i64, col: 1 };
            match plan.step(n, Address::NULL.offset(at), rows, packs_c).kernel {
                Kernel::Groups { lanes, packs } => lanes * packs,
                _ => 0,
            }
        };
        let found = [lanes(64, 4096, true), lanes(32, 4096, true), lanes(16, 4096, true)];
        assert_eq!(found.map(|lanes| lanes > 0), [suits; 3], "{found:?}");
        assert!(!suits || found[0] > found[2], "{found:?}");
        // An unaligned B, an unaligned C, and columns that are not whole packs.
        assert_eq!([lanes(64, 4104, true), lanes(64, 4096, false), lanes(63, 4096, true)], [0; 3]);
        for (b_order, takes_groups) in [(Order::Row, !suits), (Order::Col, false)] {
            let problem = SpmmProblem { n_hint: 8, b_order, ..problem };
            let shared = SharedResults::new(&device);
            let analysis = Analysis { cx, problem: &problem, shared: &shared };
            let plan = RowSpmm::build(&analysis, Source::Canonical, &RowOrder::new(Reorder::None)).unwrap();
            let step = plan.step(8, Address::NULL.offset(4096), Strides { row: 8, col: 1 }, true);
            let groups = Kernel::Groups { lanes: 4, packs: 1 };
            assert_eq!(step.kernel == groups, takes_groups, "{:?}", step.kernel);
        }
    }
}

/// Tests lists that are made without a plan: rows for a warp, a block and several blocks, in runs of one
/// row and of eight.
#[test]
fn lists_are_made_before_a_product_without_a_plan() {
    let once = TestProduct { once: true, division: Division::Lists, ..PLAIN };
    check_all(
        &sample(0, 600, 401),
        [1, 3, 8, 9, 16, 33, 64, 136].map(|n| TestProduct { n, beta: 1.0, ..once }),
    );
    let longer = [25, 128, 129, 512, 513, 1025, 8192, 8193, 15_000, 25, 26];
    for (rows, length) in [(3000, 8), (60_000, 3), (900, 40)] {
        check_all(
            &with_longer(rows, length, &longer),
            [3, 8, 32, 200].map(|n| TestProduct { n, beta: 1.0, ..once }),
        );
    }
    for orders in [(Order::Col, Order::Row), (Order::Row, Order::Col), (Order::Col, Order::Col)] {
        check_all(
            &with_longer(700, 3, &[600, 5000]),
            [4, 40].map(|n| TestProduct { n, orders, pad: 1, ..once }),
        );
    }
    check_all(
        &TestMatrix::new(0, 10, &[0; 300], |_, _| 0),
        [1, 8, 40].map(|n| TestProduct { n, beta: 2.0, ..once }),
    );
}

/// Tests lists with more rows than the blocks take in one turn: 1000 parts of one block each, with one tile
/// and with several, which are side by side if rows of B are not aligned.
#[test]
fn blocks_take_long_lists_by_turns() {
    let matrix = with_longer(3000, 8, &[200; 1000]);
    let once = TestProduct { once: true, division: Division::Lists, beta: 0.5, ..PLAIN };
    check_types(
        &matrix,
        &[F64::TYPES, F32::TYPES],
        [3, 8, 16, 33, 200, 600].map(|n| TestProduct { n, ..once }),
    );
    check_types(&matrix, &[F64::TYPES], [200, 601].map(|n| TestProduct { n, pad: 1, ..once }));
}

/// Tests copies of B, and of sums for C, of some columns at a time.
#[test]
fn copies_are_made_for_some_columns_at_a_time() {
    let matrix = with_longer(2700, 3, &[600, 5000]);
    let once = TestProduct {
        once: true,
        division: Division::Lists,
        max_copied_bytes: Some(1 << 20),
        beta: 0.5,
        pad: 1,
        ..PLAIN
    };
    for orders in [(Order::Col, Order::Row), (Order::Row, Order::Col), (Order::Col, Order::Col)] {
        check_types(
            &matrix,
            &[F64::TYPES, F32::TYPES],
            [33, 100, 300].map(|n| TestProduct { n, orders, ..once }),
        );
    }
}

#[test]
fn transposed_operands_and_new_values() {
    let op = Operation::Transpose;
    check_all(&sample(1, 170, 60), [1, 8, 16].map(|n| TestProduct { n, op, beta: -1.0, ..PLAIN }));
    for announced in [true, false] {
        check_all(
            &sample(1, 90, 60),
            [1, 8, 16].map(|n| TestProduct { n, updated: Some(announced), ..PLAIN }),
        );
    }
}

#[test]
fn matrices_without_entries() {
    check_all(
        &TestMatrix::new(0, 10, &[0; 300], |_, _| 0),
        [1, 8, 40].map(|n| TestProduct { n, beta: 2.0, ..PLAIN }),
    );
}

/// Tests rows of all kinds, few and short enough for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    check_all(&sample(1, 70, 90), [1, 8, 33].map(|n| TestProduct { n, beta: 0.5, ..PLAIN }));
    let orders = (Order::Col, Order::Col);
    check_all(&sample(0, 40, 90), [4, 16].map(|n| TestProduct { n, orders, pad: 1, ..PLAIN }));
    // Rows for a warp and for a block, and one that is split.
    let uneven = with_longer(60, 3, &[129, 600, 1100]);
    check_all(&uneven, [3, 16, 64].map(|n| TestProduct { n, special: true, ..PLAIN }));
    let once = TestProduct { once: true, division: Division::Lists, ..PLAIN };
    check_all(&sample(1, 70, 90), [1, 8, 33].map(|n| TestProduct { n, beta: 0.5, ..once }));
    check_all(&with_longer(90, 3, &[600, 1100]), [4, 16].map(|n| TestProduct { n, orders, ..once }));
}
