//! Tests of the conversion against the host's canonical CSR, bit for bit. Skipped without a device.

use std::sync::Arc;
use testkit::Random;

use bytemuck::Pod;
use half::f16;
use num_complex::{Complex32, Complex64};

use super::super::check::{self, check_sparse};
use super::super::operand::{Operand, RowStats};
use super::testing::{context, context_of_device as device, typed};
use super::*;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::host::operand as host;
use crate::backend::Backend;
use crate::matrix::Structure;
use crate::memory::{Allocator, Context, HostMemory};
use crate::select::Source as From;
use crate::types::{Element, IndexBase};

const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

thread_local! {
    /// Set by tests to make positions 64 bits wide, which no test matrix is large enough to require.
    pub(super) static WIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn host_context() -> Context {
    context(Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX))
}

/// A matrix whose arrays are on the host, and a copy of it on the device.
struct Twin<V: Pod> {
    _arrays: [Vec<i64>; 2],
    values: Vec<V>,
    _copies: [DeviceBuffer<i64>; 2],
    copied: DeviceBuffer<V>,
    host: SparseMatrix,
    device: SparseMatrix,
}

impl<V: Pod> Twin<V> {
    /// Makes both matrices; `matrix` gets the addresses of two arrays and of the values.
    fn new(
        cx: &Context,
        arrays: [Vec<i64>; 2],
        values: Vec<V>,
        matrix: impl Fn(Address, Address, Address) -> SparseArrays,
    ) -> Self {
        let copies = [0, 1].map(|i: usize| DeviceBuffer::from_slice(cx, &arrays[i]).unwrap());
        let copied = DeviceBuffer::from_slice(cx, &values).unwrap();
        let describe = |a, b, v| SparseMatrix { arrays: matrix(a, b, v), writable: false, temporary: false };
        let host = describe(
            Address::new(arrays[0].as_ptr()),
            Address::new(arrays[1].as_ptr()),
            Address::new(values.as_ptr()),
        );
        let device = describe(copies[0].address(), copies[1].address(), copied.address());
        Twin { _arrays: arrays, values, _copies: copies, copied, host, device }
    }
}

/// Properties of a random pattern.
#[derive(Clone, Copy, Debug)]
struct Kind {
    sorted: bool,
    duplicates: bool,
}

const KINDS: [Kind; 3] = [
    Kind { sorted: true, duplicates: false },
    Kind { sorted: true, duplicates: true },
    Kind { sorted: false, duplicates: true },
];

/// Makes offsets and indices of a skewed pattern with empty rows.
fn compressed_pattern(random: &mut Random, major: i64, minor: i64, kind: Kind) -> (Vec<i64>, Vec<i64>) {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for row in 0..major {
        let length = match random.below(4) {
            0 => 0,
            _ if minor == 0 => 0,
            _ if row == major / 2 => minor * 2,
            _ => random.below(9),
        };
        let mut line: Vec<_> = (0..length).map(|_| random.below(minor)).collect();
        if kind.sorted {
            line.sort_unstable();
        }
        if !kind.duplicates {
            line.dedup();
        }
        indices.extend(line);
        offsets.push(indices.len() as i64);
    }
    (offsets, indices)
}

fn shifted(numbers: &[i64], base: IndexBase) -> Vec<i64> {
    numbers.iter().map(|n| n + i64::from(base.code())).collect()
}

fn compressed<V: Element>(
    cx: &Context,
    (major, minor): (i64, i64),
    (offsets, indices): &(Vec<i64>, Vec<i64>),
    (offset_type, index_type): (IndexType, IndexType),
    base: IndexBase,
    by_columns: bool,
    value: impl Fn(usize) -> V,
) -> Twin<V> {
    let arrays = [typed(&shifted(offsets, base), offset_type), typed(&shifted(indices, base), index_type)];
    let nnz = indices.len() as i64;
    Twin::new(cx, arrays, (0..indices.len()).map(value).collect(), |offsets, indices, values| {
        let m = Compressed {
            major,
            minor,
            nnz,
            offsets,
            indices,
            values,
            offset_type,
            index_type,
            base,
            value_type: V::TYPE,
        };
        if by_columns {
            SparseArrays::Csc(m)
        } else {
            SparseArrays::Csr(m)
        }
    })
}

fn blocked(
    cx: &DeviceCall<'_>,
    (block_rows, block_cols): (i64, i64),
    (row_block, col_block): (i64, i64),
    (offsets, indices): &(Vec<i64>, Vec<i64>),
    (offset_type, index_type): (IndexType, IndexType),
    base: IndexBase,
    block_order: Order,
) -> Twin<Complex64> {
    let arrays = [typed(&shifted(offsets, base), offset_type), typed(&shifted(indices, base), index_type)];
    let block_nnz = indices.len() as i64;
    let values = (0..(block_nnz * row_block * col_block) as usize).map(complex).collect();
    Twin::new(cx, arrays, values, |offsets, indices, values| {
        SparseArrays::Bsr(Bsr {
            block_rows,
            block_cols,
            block_nnz,
            row_block,
            col_block,
            offsets,
            indices,
            values,
            offset_type,
            index_type,
            base,
            value_type: Complex64::TYPE,
            block_order,
        })
    })
}

const OPS: [Operation; 3] = [Operation::NonTranspose, Operation::Transpose, Operation::ConjugateTranspose];
const BASES: [IndexBase; 2] = [IndexBase::Zero, IndexBase::One];

/// Downloads the offsets, columns and values of a copy on the device.
fn read<V: Pod>(copy: &Operand) -> (Vec<i64>, Vec<i32>, Vec<V>) {
    let rows = copy.rows();
    let (count, nnz) = (rows.rows as usize + 1, rows.nnz as usize);
    let stream = Address::NULL;
    (
        memory::download(rows.offsets, count, stream).unwrap(),
        memory::download(rows.indices, nnz, stream).unwrap(),
        memory::download(rows.values, nnz, stream).unwrap(),
    )
}

fn stats(offsets: &[i64]) -> RowStats {
    let lengths: Vec<_> = offsets.windows(2).map(|w| w[1] - w[0]).collect();
    RowStats {
        rows: lengths.len() as i64,
        nnz: lengths.iter().sum(),
        max: lengths.iter().copied().max().unwrap_or(0),
        empty: lengths.iter().filter(|&&l| l == 0).count() as i64,
        longer: RowStats::LENGTHS.map(|length| lengths.iter().filter(|&&l| l > length).count() as i64),
    }
}

/// Compares the copy for each op, with and without positions, before and after an update.
fn compare<V: Element>(cx: &DeviceCall<'_>, twin: &Twin<V>, value: impl Fn(usize) -> V, what: &str) {
    let bits = |values: &[V]| bytemuck::cast_slice::<V, u8>(values).to_vec();
    let host_cx = host_context();
    let found = check_sparse(cx, &twin.device, "A").unwrap();
    let expected = crate::backend::host::Host.check_sparse(&host_cx, &twin.host, "A").unwrap();
    assert_eq!(found, expected, "{what}");
    for op in OPS {
        for keep in [false, true] {
            let what = format!("{what} {op:?} positions {keep}");
            let mut expected =
                host::Operand::<V>::build(&host_cx, &twin.host, op, From::Canonical, "A", keep).unwrap();
            let (mut found, found_stats) =
                Operand::build(cx, &twin.device, op, From::Canonical, "A", keep).unwrap();
            memory::synchronize(cx.stream).unwrap();
            found.mark_filled();
            let same = |found: &Operand, expected: &host::Operand<V>| {
                let host::Operand::Canonical(expected) = expected else { panic!("{what}") };
                let (offsets, indices, values) = read::<V>(found);
                assert_eq!(offsets, expected.pattern().offsets, "{what}");
                assert_eq!(indices, expected.pattern().indices, "{what}");
                assert_eq!(bits(&values), bits(expected.values()), "{what}");
                assert_eq!(found_stats, stats(&offsets), "{what}");
            };
            same(&found, &expected);
            let count = twin.values.len();
            let fresh: Vec<V> = (0..count).map(|i| value(i + 7 * count + 1)).collect();
            let copy = DeviceBuffer::from_slice(cx, &fresh).unwrap();
            let updated = twin.host.with_values(Address::new(fresh.as_ptr()));
            expected.update_values(&host_cx, &updated, op, "A").unwrap();
            let before = found.rows();
            found.update_values(cx, (&mut twin.device.clone(), op), copy.address(), "A").unwrap();
            assert_eq!(before.values, found.rows().values, "{what}");
            same(&found, &expected);
        }
    }
}

fn real(i: usize) -> f64 {
    (i as f64 + 0.5) / 3.0
}

fn complex(i: usize) -> Complex64 {
    Complex64::new(real(i), -real(i + 1))
}

#[test]
fn csr_and_csc_become_canonical() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(1);
    for shape in [(0, 0), (1, 1), (5, 0), (0, 5), (40, 300), (700, 31), (300, 10_000), (3000, 3000)] {
        for kind in KINDS {
            let pattern = compressed_pattern(&mut random, shape.0, shape.1, kind);
            for widths in WIDTHS {
                for (base, by_columns) in
                    [(BASES[0], false), (BASES[1], false), (BASES[0], true), (BASES[1], true)]
                {
                    let what = format!("{shape:?} {kind:?} {widths:?} {base:?} columns {by_columns}");
                    let twin = compressed(cx, shape, &pattern, widths, base, by_columns, complex);
                    compare(cx, &twin, complex, &what);
                }
            }
        }
    }
}

#[test]
fn keys_and_positions_may_be_wide() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let shape = (70_000, 66_000);
    let pattern = compressed_pattern(&mut Random::new(8), shape.0, shape.1, KINDS[2]);
    let twin = compressed(cx, shape, &pattern, WIDTHS[1], BASES[1], false, real);
    compare(cx, &twin, real, "wide keys");

    WIDE.set(true);
    for kind in KINDS {
        let pattern = compressed_pattern(&mut Random::new(9), 200, 300, kind);
        // Only 64-bit offsets can count enough entries for 64-bit positions.
        for widths in WIDTHS.into_iter().filter(|&(offsets, _)| offsets == IndexType::I64) {
            let twin = compressed(cx, (200, 300), &pattern, widths, BASES[1], false, complex);
            compare(cx, &twin, complex, "wide positions");
            let twin = blocked(cx, (200, 300), (2, 3), &pattern, widths, BASES[0], Order::Col);
            compare(cx, &twin, complex, "wide positions of blocks");
        }
    }
    WIDE.set(false);
}

#[test]
fn all_ones_are_no_position() {
    assert!(!is_wide(i64::from(u32::MAX)));
    assert!(is_wide(1 << 32));
}

#[test]
fn every_value_type_is_gathered() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let shape = (90, 80);
    for kind in KINDS {
        let pattern = compressed_pattern(&mut Random::new(2), shape.0, shape.1, kind);
        macro_rules! check {
            ($($value:expr),*) => { $({
                let twin = compressed(cx, shape, &pattern, WIDTHS[0], BASES[0], false, $value);
                compare(cx, &twin, $value, stringify!($value));
            })* };
        }
        check!(|i| f16::from_f64(real(i % 1000)), |i| real(i) as f32, real, |i| Complex32::new(
            real(i) as f32,
            -real(i + 2) as f32
        ));
    }
}

#[test]
fn coordinates_become_canonical() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(3);
    for (rows, cols) in [(0, 3), (1, 1), (70, 40), (100_000, 90_000), (4000, 3)] {
        let nnz = if rows == 0 { 0 } else { 5000 };
        let mut entries: Vec<_> = (0..nnz).map(|_| (random.below(rows), random.below(cols))).collect();
        for order in ["unsorted", "by columns", "by column only", "by rows", "by rows, unique"] {
            match order {
                "by columns" => entries.sort_unstable_by_key(|&(row, col)| (col, row)),
                "by column only" => {
                    entries.sort_unstable_by_key(|&(row, col)| (col, std::cmp::Reverse(row)));
                }
                "by rows" => entries.sort_unstable(),
                "by rows, unique" => entries.dedup(),
                _ => {}
            }
            let split = |pick: fn(&(i64, i64)) -> i64| entries.iter().map(pick).collect::<Vec<_>>();
            let (row_indices, col_indices) = (split(|e| e.0), split(|e| e.1));
            for index_type in [IndexType::I32, IndexType::I64] {
                for base in BASES {
                    let arrays = [
                        typed(&shifted(&row_indices, base), index_type),
                        typed(&shifted(&col_indices, base), index_type),
                    ];
                    let values = (0..entries.len()).map(complex).collect();
                    let nnz = entries.len() as i64;
                    let twin = Twin::new(cx, arrays, values, |row_indices, col_indices, values| {
                        SparseArrays::Coo(Coo {
                            rows,
                            cols,
                            nnz,
                            row_indices,
                            col_indices,
                            values,
                            index_type,
                            base,
                            value_type: Complex64::TYPE,
                        })
                    });
                    compare(cx, &twin, complex, &format!("{rows} × {cols} {order} {base:?}"));
                }
            }
        }
    }
}

#[test]
fn blocks_become_canonical() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(4);
    for (shape, blocks) in
        [((0, 2), (2, 2)), ((9, 7), (1, 1)), ((30, 40), (2, 3)), ((25, 60), (5, 1)), ((8, 8), (16, 17))]
    {
        for kind in KINDS {
            let pattern = compressed_pattern(&mut random, shape.0, shape.1, kind);
            for (widths, base) in WIDTHS.into_iter().zip([BASES[0], BASES[1], BASES[1]]) {
                for block_order in [Order::Row, Order::Col] {
                    let twin = blocked(cx, shape, blocks, &pattern, widths, base, block_order);
                    let what = format!("{shape:?} of {blocks:?} {kind:?} {base:?} {block_order:?}");
                    compare(cx, &twin, complex, &what);
                }
            }
        }
    }
}

#[test]
fn faults_are_told_as_on_the_host() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let shape = (50, 60);
    let pattern = compressed_pattern(&mut Random::new(5), shape.0, shape.1, KINDS[2]);
    let nnz = pattern.1.len();
    let host_cx = host_context();
    for (array, at, number) in [
        (0, 0, 1),
        (0, 0, -1),
        (0, 20, -5),
        (0, 20, i64::from(i32::MAX)),
        (0, 20, i64::from(i32::MIN)),
        (0, 50, 3),
        (0, 50, nnz as i64 - 1),
        (0, 50, nnz as i64 + 1),
        (1, 0, -1),
        (1, nnz - 1, 60),
        (1, nnz / 2, i64::from(i32::MIN)),
        (1, nnz / 2, i64::from(i32::MAX) - 1),
    ] {
        for widths in WIDTHS {
            for (base, by_columns) in [(BASES[0], false), (BASES[1], true)] {
                let mut broken = pattern.clone();
                let numbers = if array == 0 { &mut broken.0 } else { &mut broken.1 };
                numbers[at] = number;
                // nnz stays correct.
                let twin = compressed(cx, shape, &broken, widths, base, by_columns, real);
                let expected =
                    crate::backend::host::Host.check_sparse(&host_cx, &twin.host, "A").unwrap_err();
                let found = check_sparse(cx, &twin.device, "A").unwrap_err();
                assert_eq!((found.status, &found.message), (expected.status, &expected.message));
                let built = Operand::build(cx, &twin.device, OPS[1], From::Canonical, "A", false).err();
                assert_eq!(built.unwrap().message, expected.message);
            }
        }
    }
}

#[test]
fn rows_are_permuted() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(6);
    let shape = (500, 400);
    let pattern = compressed_pattern(&mut random, shape.0, shape.1, KINDS[2]);
    let mut permutation: Vec<u32> = (0..shape.0 as u32).collect();
    for i in (1..permutation.len()).rev() {
        permutation.swap(i, random.below(i as i64 + 1) as usize);
    }
    let order = DeviceBuffer::from_slice(cx, &permutation).unwrap();
    let twin = compressed(cx, shape, &pattern, WIDTHS[1], BASES[1], false, real);
    let report = check::inspect(cx, &twin.device, OPS[0], "A").unwrap();
    assert_eq!(report.structure, Structure { sorted: false, unique: false });
    let copy = DeviceCsr::build(cx, &twin.device, OPS[0], &report, true).unwrap();
    let permuted = copy.permuted(cx, f64::TYPE, &order).unwrap();
    let (offsets, indices, values) = read::<f64>(&Operand::Canonical(copy));
    let permuted = Operand::Canonical(permuted);
    let (new_offsets, new_indices, new_values) = read::<f64>(&permuted);
    for (row, &from) in permutation.iter().enumerate() {
        let range = |offsets: &[i64], row: usize| offsets[row] as usize..offsets[row + 1] as usize;
        let (new, old) = (range(&new_offsets, row), range(&offsets, from as usize));
        assert_eq!(new_indices[new.clone()], indices[old.clone()]);
        assert_eq!(new_values[new], values[old]);
    }
    // Positions refer to the user's values.
    let Operand::Canonical(permuted) = permuted else { panic!() };
    assert!(permuted.refill(cx, twin.copied.address()).unwrap());
    assert_eq!(read::<f64>(&Operand::Canonical(permuted)).2, new_values);
}

#[test]
fn keys_are_sorted_and_sums_scanned() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut random = Random::new(7);
    for n in [1, 1000, 300_000] {
        let keys: Vec<u64> = (0..n).map(|_| random.bits() & 0xf_ffff_ffff).collect();
        let new = |slice: &[u64]| DeviceBuffer::from_slice(cx, slice).unwrap();
        let places: Vec<u64> = (0..n).collect();
        let (a, b, c, d) = (new(&keys), new(&keys), new(&places), new(&places));
        let which = device_wide::sort_pairs::<Wide>(cx, [&a, &b], [&c, &d], n as usize, 36).unwrap();
        let mut expected: Vec<_> = keys.iter().copied().zip(places).collect();
        expected.sort();
        let (keys, places) = ([a, b], [c, d]);
        let found = keys[which].read(0, n as usize).unwrap().into_iter();
        let found: Vec<_> = found.zip(places[which].read(0, n as usize).unwrap()).collect();
        assert_eq!(found, expected);

        let numbers: Vec<i64> = (0..n as i64).map(|i| i * i % 1000 - 300).collect();
        let on_device = DeviceBuffer::from_slice(cx, &numbers).unwrap();
        // SAFETY: the array has n numbers.
        unsafe {
            device_wide::exclusive_scan(cx, on_device.address(), on_device.address(), n as usize).unwrap();
        }
        let sums = on_device.read(0, n as usize).unwrap();
        let mut sum = 0;
        for (found, number) in sums.into_iter().zip(numbers) {
            assert_eq!(found, sum);
            sum += number;
        }
    }
}

#[test]
fn a_fault_leaves_the_next_inspection_alone() {
    let Some((device, cx)) = device() else { return };
    let cx = &device.call(&cx).unwrap();
    let pattern = compressed_pattern(&mut Random::new(11), 60, 50, KINDS[2]);
    let twin = compressed(cx, (60, 50), &pattern, WIDTHS[0], BASES[1], false, real);
    let expected = check::inspect(cx, &twin.device, OPS[0], "A").unwrap();
    let mut broken = pattern.clone();
    broken.1[3] = -7;
    let faulty = compressed(cx, (60, 50), &broken, WIDTHS[0], BASES[1], false, real);
    for _ in 0..2 {
        assert!(check::inspect(cx, &faulty.device, OPS[0], "A").is_err());
        let found = check::inspect(cx, &twin.device, OPS[0], "A").unwrap();
        assert_eq!((found.structure, found.major), (expected.structure, expected.major));
    }
}
