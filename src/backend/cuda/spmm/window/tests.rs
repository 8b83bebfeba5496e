//! Against the layout that the CPU makes, to the bit, and against sums in double
//! precision. Skipped without a device.

use half::f16;

use super::*;
use crate::backend::cuda::convert::testing::{context_of_device, typed};
use crate::backend::{memory::HostMemory, Allocator};
use crate::layout::mask_block::tests::{sequence, Matrix as Rows64};
use crate::layout::sell::Origin;
use crate::layout::window::tests::all_rules;
use crate::layout::Window;
use crate::types::IndexType;

const WIDTHS: [(IndexType, IndexType); 3] =
    [(IndexType::I32, IndexType::I32), (IndexType::I64, IndexType::I32), (IndexType::I64, IndexType::I64)];

/// A matrix on the device, with the bits of halves as values.
struct Uploaded {
    rows: Rows,
    values: Vec<f16>,
    _arrays: (DeviceBuffer<i64>, DeviceBuffer<i64>, DeviceBuffer<u16>),
}

impl Uploaded {
    fn new(cx: &Context, matrix: &Rows64, widths: (IndexType, IndexType)) -> Self {
        let values: Vec<_> =
            (0..matrix.values.len()).map(|at| f16::from_f64((at % 97) as f64 / 64.0 - 0.7)).collect();
        let bits: Vec<_> = values.iter().map(|value| value.to_bits()).collect();
        let offsets = DeviceBuffer::from_slice(cx, &typed(&matrix.offsets, widths.0)).unwrap();
        let indices = DeviceBuffer::from_slice(cx, &typed(&matrix.indices, widths.1)).unwrap();
        let bits = DeviceBuffer::from_slice(cx, &bits).unwrap();
        let rows = Rows {
            offsets: offsets.address(),
            indices: indices.address(),
            values: bits.address(),
            offset_type: widths.0,
            index_type: widths.1,
            base: matrix.base,
            rows: matrix.offsets.len() as i64 - 1,
            cols: matrix.cols as i64,
            nnz: matrix.values.len() as i64,
        };
        Uploaded { rows, values, _arrays: (offsets, indices, bits) }
    }

    fn expected(&self, matrix: &Rows64, rules: Rules) -> Window<f16> {
        let origin = Origin { keep: true, positions: None };
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        Window::build(&allocator, &matrix.pattern(), &self.values, origin, |_| rules).unwrap()
    }
}

fn all<T: Pod>(buffer: &DeviceBuffer<T>) -> Vec<T> {
    buffer.read(0, buffer.len()).unwrap()
}

fn same(cx: &Context, device: &Device, matrix: &Rows64, rules: Rules, widths: (IndexType, IndexType)) {
    let uploaded = Uploaded::new(cx, matrix, widths);
    let expected = uploaded.expected(matrix, rules);
    for keep in [false, true] {
        let what = format!("{rules:?} {widths:?} {keep}");
        let found = Arrays::build(cx, device, &uploaded.rows, |_| rules, keep.then_some(None)).unwrap();
        assert_eq!(all(&found.columns), expected.columns[..], "{what}");
        assert_eq!(all(&found.tiles), expected.tiles[..], "{what}");
        assert_eq!(all(&found.items), expected.items[..], "{what}");
        assert_eq!(all(&found.parts), expected.parts[..], "{what}");
        assert_eq!(all(&found.stored), expected.stored[..], "{what}");
        let values = expected.values.iter().map(|value| value.to_bits());
        assert!(all(&found.values).into_iter().eq(values), "{what}");
        assert_eq!(found.distinct as usize, expected.distinct, "{what}");
        let cut = expected.parts.last().map_or(0, |part| part.counter + 1);
        assert_eq!(found.cut, i64::from(cut), "{what}");
        assert_eq!(found.slots.is_some(), keep);
        if let Some(slots) = &found.slots {
            assert_eq!(all(slots), expected.slots.as_ref().unwrap()[..], "{what}");
        }
    }
}

/// Some rows long, some empty, columns shared by neighbours; many repeats where there
/// are few columns.
fn sample(base: i64, rows: usize, cols: usize) -> Rows64 {
    let mut next = sequence(rows as u64 + 1);
    let lengths: Vec<usize> = (0..rows).map(|_| next() % 4 * (next() % 19)).collect();
    Rows64::new(base, cols, &lengths, |row, entry| (row / 5 * 7 + entry * 131) % cols)
}

#[test]
fn the_device_makes_what_the_cpu_makes() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    for widths in WIDTHS {
        for base in [0, 1] {
            for rows in [0, 1, 7, 8, 17, 64, 65, 1000] {
                for cols in [997, 40, 1 << 30] {
                    let matrix = sample(base, rows, cols);
                    for rules in all_rules() {
                        same(&cx, &device, &matrix, rules, widths);
                    }
                }
            }
            let mut lengths = vec![3; 500];
            (lengths[130], lengths[300], lengths[301]) = (9000, 400, 300);
            let matrix = Rows64::new(base, 200_000, &lengths, |row, entry| row + entry * 17);
            for rules in all_rules() {
                same(&cx, &device, &matrix, rules, widths);
            }
        }
    }
}

#[test]
fn the_device_counts_what_the_cpu_counts() {
    let Some((device, cx)) = context_of_device() else { return };
    let _entered = device.enter().unwrap();
    for cols in [997, 40] {
        let matrix = sample(0, 1000, cols);
        let found = std::cell::Cell::new(Counts::default());
        let uploaded = Uploaded::new(&cx, &matrix, WIDTHS[0]);
        let rules = |counts: &Counts| {
            found.set(*counts);
            Rules::host(counts)
        };
        Arrays::build(&cx, &device, &uploaded.rows, rules, None).unwrap();
        crate::layout::window::tests::build(&matrix, |counts| {
            assert_eq!(*counts, found.get());
            Rules::host(counts)
        });
    }
}
