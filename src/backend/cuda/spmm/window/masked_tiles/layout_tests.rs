//! Tests against the CPU's layout, bit for bit. Skipped without a device.

use std::sync::Arc;

use bytemuck::Pod;

use super::super::number::count_windows;
use super::*;
use crate::backend::cuda::convert::testing::{all, context_of_device, Uploaded, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::spmm::window::tests::{for_samples, sample};
use crate::format::masked_window::tests::all_rules;
use crate::format::masked_window::SHAPE;
use crate::format::sell::Origin;
use crate::format::testing::TestMatrix;
use crate::format::MaskedWindow;
use crate::memory::{Allocator, HostMemory};
use crate::types::{Element, IndexType};

fn same_values<V: Pod + Element>(
    cx: &DeviceCall<'_>,
    matrix: &TestMatrix,
    rules: Rules,
    widths: (IndexType, IndexType),
    value: impl Fn(f64) -> V,
) {
    let values: Vec<V> = matrix.values.iter().map(|&v| value(v)).collect();
    let uploaded = Uploaded::of(cx, matrix, widths, values);
    let origin = Origin { keep: true, positions: None };
    let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
    let expected =
        MaskedWindow::build(&allocator, &matrix.pattern(), &uploaded.values, origin, |_| rules).unwrap();
    let size = size_of::<V>();
    for keep in [false, true] {
        let what = format!("{rules:?} {widths:?} {size} {keep}");
        let found =
            Arrays::<MaskedTiles>::build(cx, &uploaded.rows, size, rules, keep.then_some(None)).unwrap();
        assert_eq!(all(&found.lists.items), expected.items[..], "{what}");
        assert_eq!(all(&found.lists.parts), expected.parts[..], "{what}");
        assert_eq!(all(&found.columns), expected.columns[..], "{what}");
        assert_eq!(all(&found.tiles.masks), expected.store.masks[..], "{what}");
        assert_eq!(all(&found.tiles.starts), expected.store.starts[..], "{what}");
        let bytes: &[u8] = bytemuck::cast_slice(&expected.values);
        assert!(all(&found.values)[..bytes.len()] == *bytes, "{what}");
        assert_eq!(found.values.len() % PACK, 0);
        assert_eq!(found.distinct as usize, expected.distinct, "{what}");
        let cut = expected.parts.last().map_or(0, |part| part.counter + 1);
        assert_eq!(found.lists.split_count, i64::from(cut), "{what}");
        assert_eq!(found.slots.is_some(), keep);
        if let Some(slots) = &found.slots {
            assert_eq!(all(&slots.slots), expected.slots.as_ref().unwrap()[..], "{what}");
        }
        // The same values in reverse order, which a layout can take if it has kept slots.
        let backwards: Vec<V> = uploaded.values.iter().rev().copied().collect();
        let new = DeviceBuffer::from_slice(cx, &backwards).unwrap();
        if let Some(slots) = &found.slots {
            slots.scatter(cx, new.address(), found.values.address()).unwrap();
            let renewed =
                MaskedWindow::build(&allocator, &matrix.pattern(), &backwards, origin, |_| rules).unwrap();
            let bytes: &[u8] = bytemuck::cast_slice(&renewed.values);
            assert!(all(&found.values)[..bytes.len()] == *bytes, "{what}");
        }
    }
}

fn same(cx: &DeviceCall<'_>, matrix: &TestMatrix, rules: Rules, widths: (IndexType, IndexType)) {
    same_values::<f64>(cx, matrix, rules, widths, |v| v);
    same_values::<f32>(cx, matrix, rules, widths, |v| v as f32);
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    for_samples(|| all_rules().collect(), same);
}

/// Tests tiles whose rows are full.
#[test]
fn full_tiles() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for columns in [8, 3, 24] {
        let matrix = TestMatrix::new(0, 500, &[columns; 200], |_, entry| entry * 2);
        for rules in all_rules() {
            same(cx, &matrix, rules, WIDTHS[0]);
        }
    }
}

#[test]
fn the_device_counts_what_the_cpu_counts() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for cols in [997, 40] {
        let matrix = sample(0, 1000, cols);
        let uploaded = Uploaded::of(cx, &matrix, WIDTHS[0], matrix.values.clone());
        let found = count_windows(cx, &uploaded.rows, SHAPE).unwrap();
        crate::format::masked_window::tests::build(&matrix, |counts| {
            assert_eq!(*counts, found);
            crate::select::spmm::masked_window::rules_on_host(counts)
        });
    }
}

/// Runs all kernels on matrices that are small enough for compute-sanitizer.
#[test]
fn sanitizer_small_matrices() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let mut lengths = vec![2; 70];
    lengths[33] = 200;
    let long = TestMatrix::new(0, 30_000, &lengths, |row, entry| row + entry * 140);
    for rules in all_rules().filter(|rules| rules.most == 5) {
        same(cx, &sample(1, 70, 150), rules, WIDTHS[0]);
        same(cx, &long, rules, WIDTHS[2]);
    }
}
