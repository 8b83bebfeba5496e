//! Tests against the CPU's layout, bit for bit. Skipped without a device.

use super::*;
use crate::backend::cuda::convert::testing::{all, context_of_device, Uploaded, WIDTHS};
use crate::backend::cuda::device::DeviceCall;
use crate::format::mask_block::tests::{ALL, SMALL, SMALL_FOURS};
use crate::format::mask_block::WIDE;
use crate::format::testing::TestMatrix;
use crate::types::IndexType;
use testkit::sequence;

/// Asserts that the device makes the CPU's layout; `longest` is the length of the longest row that the device
/// is given.
fn same(
    cx: &DeviceCall<'_>,
    matrix: &TestMatrix,
    rules: Rules,
    longest: i64,
    widths: (IndexType, IndexType),
) {
    let expected = matrix.build(rules);
    let uploaded = Uploaded::of(cx, matrix, widths, matrix.values.clone());
    for origins in [None, Some(None)] {
        let kept = origins.is_some();
        let rows = &uploaded.rows;
        let found = Arrays::build(cx, rows, longest, DataType::R64F, |_| rules, origins).unwrap();
        let what = format!("{rules:?} {widths:?} {longest}");
        assert_eq!(all(&found.heads), expected.heads[..], "{what}");
        assert_eq!(all(&found.parts), expected.parts[..], "{what}");
        assert_eq!(all(&found.masks), expected.masks[..], "{what}");
        assert_eq!(all(&found.narrow), expected.narrow[..], "{what}");
        assert_eq!(all(&found.wide), expected.wide[..], "{what}");
        let values: Vec<f64> = all(&found.values).chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        assert_eq!(values[..expected.values.len()], expected.values[..], "{what}");
        assert_eq!(found.values.len() % COPY_BYTES, 0);
        if kept {
            let Some(Numbers::Narrow(origins)) = &found.origins else { panic!("positions are kept") };
            let positions = expected.positions.as_ref().unwrap();
            assert!(all(origins).iter().map(|&at| i64::from(at)).eq(positions.iter().copied()), "{what}");
        }
    }
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            for rows in [0, 1, 4, 5, 7, 8, 9, 12, 13, 31, 1000, 2500] {
                let mut next = sequence(rows as u64 + 1);
                let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
                for cols in [997, 40] {
                    let matrix =
                        TestMatrix::new(base, cols, &lengths, |row, entry| (row * 7 + entry * 131) % cols);
                    for rules in ALL {
                        same(cx, &matrix, rules, 54, widths);
                    }
                    // As if rows were long, so that each group of eight rows might have several warps.
                    same(cx, &matrix, SMALL_FOURS, i64::MAX, widths);
                }
            }
        }
    }
}

#[test]
fn long_rows_are_walked_in_pieces() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            // Long slabs, wide and narrow pieces, empty slabs, an entry stored three times, and a row whose
            // entries are all in one piece of another row.
            let mut lengths = vec![0; 203];
            (lengths[7], lengths[8], lengths[9], lengths[130]) = (17, 9000, 3000, 64);
            (lengths[131], lengths[199], lengths[202]) = (70, 3, 5000);
            let hops = |row: usize, entry: usize| match row {
                199 => 11,
                9 => 60_000 + entry / 2,
                _ => entry * 29,
            };
            let near = TestMatrix::new(base, 1 << 19, &lengths, hops);
            let far = |row: usize, entry: usize| entry % 2 * 400_000 + row + entry / 2;
            let far = TestMatrix::new(base, 1 << 19, &lengths, far);
            for rules in ALL {
                for longest in [0, 9000] {
                    same(cx, &near, rules, longest, widths);
                    same(cx, &far, rules, longest, widths);
                }
            }
            let layout = far.build(SMALL);
            let wide = layout.heads.iter().filter(|head| head.flags & WIDE != 0).count();
            assert!(wide > 0 && wide < layout.heads.len());
        }
    }
}
