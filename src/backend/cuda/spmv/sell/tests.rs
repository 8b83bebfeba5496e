//! Tests against the CPU's layout, bit for bit. Skipped without a device.

use bytemuck::Pod;
use half::f16;

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, Uploaded, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::memory::Readback;
use crate::format::warp_sell::tests::{grouped, WarpSellTestMatrix, FOURS, SMALL, THREES, TWOS};
use crate::format::warp_sell::WarpSell;
use crate::format::warp_sell::ROWS;
use crate::types::IndexType;
use testkit::sequence;

fn elements<T: Pod>(bytes: &DeviceBuffer<u8>) -> Vec<T> {
    let bytes = bytes.read(0, bytes.len()).unwrap();
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// Marks the rows with the columns of the row before, and counts the entries of items of 2 and of 3 rows.
fn marks(cx: &DeviceCall<'_>, rows: &Rows) -> (DeviceBuffer<u8>, [usize; 2]) {
    let mut words = Readback::take(cx).unwrap();
    let same = DeviceBuffer::new(cx, rows.rows as usize).unwrap();
    inspection::enqueue_shared(cx, rows, &same, words.at(5), &Overlap::new(true)).unwrap();
    words.fetch(cx, 7).unwrap();
    let found = words.wait(cx).unwrap();
    (same, [found[5] as usize, found[6] as usize])
}

fn same(cx: &DeviceCall<'_>, matrix: &WarpSellTestMatrix, rules: Rules, widths: (IndexType, IndexType)) {
    let expected = matrix.build(rules);
    let (shape, arrays) = ((matrix.base, matrix.cols), [&matrix.offsets[..], &matrix.indices]);
    let rows = &Uploaded::new(cx, shape, arrays, widths, matrix.values.clone()).rows;
    for origins in [None, Some(None)] {
        let kept = origins.is_some();
        let same = (rules.item_rows > 1 && rows.rows > 0).then(|| marks(cx, rows).0);
        let arrays = Arrays::build(cx, rows, rules, same.as_ref(), DataType::R64F, origins).unwrap();
        let found = WarpSell {
            row_count: arrays.rows as usize,
            rules,
            order: arrays.order.read(0, arrays.order.len()).unwrap(),
            heads: arrays.heads.read(0, arrays.slices).unwrap(),
            values: elements(&arrays.values),
            narrow: arrays.narrow.read(0, arrays.narrow.len()).unwrap(),
            wide: arrays.wide.read(0, arrays.wide.len()).unwrap(),
        };
        assert_eq!(found, expected, "{rules:?} {widths:?}");
        if kept {
            let Some(Numbers::Narrow(origins)) = &arrays.origins else { panic!("positions are kept") };
            let origins = origins.read(0, origins.len()).unwrap();
            let values = origins.iter().map(|&at| matrix.values.get(at as usize).copied().unwrap_or(0.0));
            assert!(values.eq(expected.values.iter().copied()));
        }
    }
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            for rows in [0, 1, 31, 32, 33, 64, 65, 1000, 2500] {
                let mut next = sequence(rows as u64 + 1);
                let lengths: Vec<usize> = (0..rows).map(|_| next() % 5 * (next() % 19)).collect();
                let matrix = WarpSellTestMatrix::new(base, 1000, &lengths, |row, entry| {
                    (row * 7 + entry * 131) % 1000
                });
                for rules in [SMALL, FOURS, Rules { window: 1024, entries: 60, ..FOURS }] {
                    same(cx, &matrix, rules, widths);
                }
                for k in [2, 3, 6] {
                    let matrix = grouped(base, k, &lengths);
                    same(cx, &matrix, TWOS, widths);
                    same(cx, &matrix, Rules { window: 1024, entries: 40, ..TWOS }, widths);
                    same(cx, &matrix, THREES, widths);
                    same(cx, &matrix, Rules { window: 1023, ..THREES }, widths);
                }
            }
            // Long rows, wide and narrow slices, runs, equal lengths.
            let mut lengths = vec![3; 200];
            (lengths[7], lengths[8], lengths[130], lengths[131]) = (513, 70_000, 512, 1700);
            let hops = |row: usize, entry: usize| if row % 50 == 7 { entry * 3 } else { row + entry };
            let matrix = WarpSellTestMatrix::new(base, 1 << 18, &lengths, hops);
            same(cx, &matrix, SMALL, widths);
            same(cx, &matrix, FOURS, widths);
            let far = |row: usize, entry: usize| entry % 2 * 100_000 + row;
            same(cx, &WarpSellTestMatrix::new(base, 1 << 18, &lengths, far), FOURS, widths);
            let equal = WarpSellTestMatrix::new(base, 4000, &vec![5; 3000], |row, entry| row + 100 * entry);
            same(cx, &equal, Rules { window: 1024, ..SMALL }, widths);
        }
    }
}

#[test]
fn halves_move_as_bits() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let values: Vec<f16> = (0..64).map(|i| f16::from_bits(0x7c01 + i)).collect();
    let (offsets, indices) = ((0..=32).map(|r| 2 * r).collect::<Vec<i32>>(), vec![0_i32; 64]);
    let on_device = (
        DeviceBuffer::from_slice(cx, &offsets).unwrap(),
        DeviceBuffer::from_slice(cx, &indices).unwrap(),
        DeviceBuffer::from_slice(cx, &values).unwrap(),
    );
    let rows = Rows {
        offsets: on_device.0.address(),
        indices: on_device.1.address(),
        values: on_device.2.address(),
        offset_type: IndexType::I32,
        index_type: IndexType::I32,
        base: 0,
        rows: 32,
        cols: 1,
        nnz: 64,
    };
    let arrays = Arrays::build(cx, &rows, SMALL, None, DataType::R16F, None).unwrap();
    let found: Vec<u16> = elements(&arrays.values);
    assert_eq!(found, values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
}

#[test]
fn shared_columns_are_counted() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for k in [2, 3, 4, 6] {
        let mut next = sequence(k as u64);
        let lengths: Vec<usize> = (0..900).map(|_| next() % 40).collect();
        let matrix = grouped(1, k, &lengths);
        let offsets = DeviceBuffer::from_slice(cx, &matrix.offsets).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &matrix.indices).unwrap();
        let rows = Rows {
            offsets: offsets.address(),
            indices: indices.address(),
            values: Address::NULL,
            offset_type: IndexType::I64,
            index_type: IndexType::I64,
            base: 1,
            rows: matrix.offsets.len() as i64 - 1,
            cols: matrix.cols as i64,
            nnz: matrix.values.len() as i64,
        };
        let (_, found) = marks(cx, &rows);
        let expected = [2, 3].map(|item_rows| {
            let window = 1024 / item_rows * item_rows;
            let layout = matrix.build(Rules { window, item_rows, ..SMALL });
            let items = layout.heads.iter().filter(|head| head.flags & ROWS != 0);
            let words =
                items.flat_map(|head| &layout.order[head.place as usize..][..usize::from(head.items)]);
            words.map(|word| (word >> 16) as usize * item_rows).sum::<usize>()
        });
        assert_eq!(found, expected, "{k}");
    }
}
