//! Against the layout that the CPU makes, to the bit. Skipped without a device.

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed};
use crate::layout::mask_block::tests::{sequence, Matrix, SMALL};
use crate::layout::mask_block::{CUT, WIDE};
use crate::types::IndexType;

const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// A matrix on the device.
struct Uploaded {
    rows: Rows,
    _arrays: (DeviceBuffer<i64>, DeviceBuffer<i64>, DeviceBuffer<f64>),
}

impl Uploaded {
    fn new(cx: &Context, matrix: &Matrix, widths: (IndexType, IndexType)) -> Self {
        let offsets = DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, widths.0)).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &typed(&matrix.indices, widths.1)).unwrap();
        let values = DeviceBuffer::from_slice(cx, &matrix.values).unwrap();
        let rows = Rows {
            offsets: offsets.address(),
            indices: indices.address(),
            values: values.address(),
            offset_type: widths.0,
            index_type: widths.1,
            base: matrix.base,
            rows: matrix.offsets.len() as i64 - 1,
            cols: matrix.cols as i64,
            nnz: matrix.values.len() as i64,
        };
        Uploaded { rows, _arrays: (offsets, indices, values) }
    }
}

fn all<T: bytemuck::Pod>(buffer: &DeviceBuffer<T>) -> Vec<T> {
    buffer.read(0, buffer.len()).unwrap()
}

fn same(cx: &Context, device: &Arc<Device>, matrix: &Matrix, rules: Rules, widths: (IndexType, IndexType)) {
    let expected = matrix.build(rules);
    let uploaded = Uploaded::new(cx, matrix, widths);
    for origins in [None, Some(None)] {
        let kept = origins.is_some();
        let found = Arrays::build(cx, device, &uploaded.rows, DataType::R64F, |_| rules, origins).unwrap();
        let what = format!("{rules:?} {widths:?}");
        assert_eq!(all(&found.heads), expected.heads[..], "{what}");
        assert_eq!(all(&found.parts), expected.parts[..], "{what}");
        assert_eq!(all(&found.masks), expected.masks[..], "{what}");
        assert_eq!(all(&found.narrow), expected.narrow[..], "{what}");
        assert_eq!(all(&found.wide), expected.wide[..], "{what}");
        let values: Vec<f64> = all(&found.values).chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        assert_eq!(values[..expected.values.len()], expected.values[..], "{what}");
        if kept {
            let Some(Origins::Narrow(origins)) = &found.origins else { panic!("positions are kept") };
            let positions = expected.positions.as_ref().unwrap();
            assert!(all(origins).iter().map(|&at| i64::from(at)).eq(positions.iter().copied()), "{what}");
        }
    }
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            for rows in [0, 1, 7, 8, 9, 16, 31, 1000, 2500] {
                let mut next = sequence(rows as u64 + 1);
                let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
                for cols in [997, 40] {
                    let matrix =
                        Matrix::new(base, cols, &lengths, |row, entry| (row * 7 + entry * 131) % cols);
                    same(&cx, &device, &matrix, SMALL, widths);
                    same(&cx, &device, &matrix, Rules::HOST, widths);
                }
            }
            // Long slabs, wide and narrow parts, empty slabs, an entry stored thrice.
            let mut lengths = vec![0; 200];
            (lengths[7], lengths[8], lengths[130], lengths[131], lengths[199]) = (17, 9000, 64, 70, 3);
            let hops = |row: usize, entry: usize| if row == 199 { 11 } else { entry * 29 };
            let matrix = Matrix::new(base, 1 << 19, &lengths, hops);
            same(&cx, &device, &matrix, SMALL, widths);
            same(&cx, &device, &matrix, Rules { limit_log2: 6 }, widths);
            let layout = matrix.build(Rules::HOST);
            assert!(layout.heads.iter().all(|head| head.flags & CUT == 0));
            let far = |row: usize, entry: usize| entry % 2 * 400_000 + row + entry / 2;
            let matrix = Matrix::new(base, 1 << 19, &lengths, far);
            let layout = matrix.build(SMALL);
            let wide = layout.heads.iter().filter(|head| head.flags & WIDE != 0).count();
            assert!(wide > 0 && wide < layout.heads.len());
            same(&cx, &device, &matrix, SMALL, widths);
        }
    }
}

#[test]
fn estimates_are_counts_or_near() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    let estimate_of = |matrix: &Matrix, widths| {
        let uploaded = Uploaded::new(&cx, matrix, widths);
        (estimate(&cx, &device, &uploaded.rows).unwrap(), matrix.build(Rules::HOST).masks.len() as f64)
    };
    for widths in WIDTHS {
        let (found, blocks) = estimate_of(&Matrix::new(1, 10, &[0; 9], |_, _| 0), widths);
        assert_eq!((found, blocks), (0.0, 0.0));
        // All slabs are counted.
        let mut next = sequence(5);
        let lengths: Vec<usize> = (0..3000).map(|_| next() % 7).collect();
        let matrix = Matrix::new(1, 997, &lengths, |row, entry| (row * 7 + entry * 131) % 997);
        let (found, blocks) = estimate_of(&matrix, widths);
        assert!((found - blocks).abs() < 1e-9 * blocks, "{found} {blocks}");
        // One in five.
        let matrix = Matrix::new(0, 90_000, &[12; 80_000], |row, entry| row / 3 * 3 + entry);
        let (found, blocks) = estimate_of(&matrix, widths);
        assert!((found / blocks - 1.0).abs() < 0.02, "{found} {blocks}");
        // The first blocks of a long row stand for all.
        let matrix = Matrix::new(0, 90_000, &[1, 20_000], |_, entry| 4 * entry);
        let (found, blocks) = estimate_of(&matrix, widths);
        assert!((found / blocks - 1.0).abs() < 0.02, "{found} {blocks}");
    }
}

#[test]
fn warps_share_slabs_where_there_are_few() {
    let log2 = |heads, blocks| warps_log2(heads, blocks, 4224);
    // Enough slabs; none to spare; few; few and short.
    assert_eq!([log2(7800, 200_000), log2(2113, 60_000), log2(1000, 25_000), log2(1000, 7000)], [0, 0, 2, 0]);
    assert_eq!([log2(1000, 9000), log2(2000, 60_000), log2(0, 0)], [1, 1, 0]);
}
