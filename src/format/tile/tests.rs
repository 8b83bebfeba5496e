//! Tests of tiles: the inverse gives the matrix back, and the arrays are as the module's documentation says.

use std::collections::BTreeMap;

use half::f16;

use super::*;
use crate::format::testing::{allocator, TestRows};
use crate::types::Element;
use testkit::Random;

/// Returns the entries of the matrix, with those of one row and column added up.
fn merged<I: Index, J: Index, T: Accumulator, V: Storage<T>>(
    matrix: &TestRows<I, J>,
    values: &[V],
) -> BTreeMap<(usize, usize), T> {
    let mut out = BTreeMap::new();
    for row in 0..matrix.rows() {
        for at in matrix.row(row) {
            let value = values[at].widen();
            let column = matrix.pattern().index(at);
            out.entry((row, column)).and_modify(|sum| *sum += value).or_insert(value);
        }
    }
    out
}

/// Checks every array against its documentation, and all entries in their order.
fn check<I: Index, J: Index, T: Accumulator, V: Storage<T>>(
    matrix: &TestRows<I, J>,
    values: &[V],
) -> TileLayout<T> {
    let layout = TileLayout::<T>::build(&allocator(), &matrix.pattern(), values).unwrap();
    let expected = merged::<_, _, T, V>(matrix, values);
    let mut found = Vec::new();
    layout.for_each_entry(|row, column, value| found.push(((row, column), value)));
    assert!(found.iter().copied().eq(expected.iter().map(|(&at, &value)| (at, value))));

    let p = &layout.pattern;
    assert_eq!((p.row_count, p.col_count), (matrix.rows(), matrix.cols));
    assert_eq!((p.tile_rows(), p.tile_cols()), (matrix.rows().div_ceil(16), matrix.cols.div_ceil(16)));
    assert_eq!((p.rows[0], p.starts[0], p.nnz()), (0, 0, expected.len()));
    assert_eq!(p.rows[p.tile_rows()] as usize, p.columns.len());
    for tile_row in 0..p.tile_rows() {
        let columns = &p.columns[p.tiles(tile_row)];
        assert!(columns.windows(2).all(|pair| pair[0] < pair[1]), "tiles are not in order");
        for tile in p.tiles(tile_row) {
            let mut next = p.starts[tile] as usize;
            for row in 0..SIDE {
                assert_eq!(p.position(tile, row), next);
                for column in bits(p.mask(tile, row)) {
                    let at = (tile_row * 16 + row, p.columns[tile] as usize * 16 + column);
                    assert_eq!(Some(&layout.values[next]), expected.get(&at));
                    next += 1;
                }
            }
            assert!(next > p.starts[tile] as usize, "an empty tile");
            assert_eq!(next, p.starts[tile + 1] as usize);
        }
    }
    let offsets = p.row_offsets(&allocator()).unwrap();
    assert_eq!(offsets.len(), matrix.rows() + 1);
    for row in 0..matrix.rows() {
        let count = expected.range((row, 0)..(row + 1, 0)).count();
        assert_eq!((offsets[row + 1] - offsets[row]) as usize, count);
    }
    layout
}

fn reals<V: Element>(random: &mut Random, count: usize, of: impl Fn(f64) -> V) -> Vec<V> {
    (0..count).map(|_| of(random.real())).collect()
}

#[test]
fn unsorted_rows_with_duplicates_come_back() {
    let mut random = Random::new(5);
    for (base, cols) in [(0, 1), (1, 15), (0, 16), (1, 17), (0, 300)] {
        for rows in [0, 1, 15, 16, 17, 70] {
            let lengths: Vec<_> = (0..rows).map(|_| random.below(2 * cols.min(40))).collect();
            let mut pick = Random::new(rows as u64 + 9);
            let matrix = TestRows::<i32, i32>::new(base, cols, &lengths, |_, _| pick.below(cols));
            let values = reals(&mut random, matrix.columns.len(), |v| v);
            check::<_, _, f64, f64>(&matrix, &values);
            let wide = TestRows::<i64, i64>::new(base, cols, &lengths, |row, k| (row * 7 + k * 3) % cols);
            let values = reals(&mut random, wide.columns.len(), f16::from_f64);
            check::<_, _, f32, f16>(&wide, &values);
        }
    }
}

#[test]
fn full_tiles_have_256_entries() {
    let mut random = Random::new(8);
    let matrix = TestRows::<i64, i32>::new(0, 40, &[40; 35], |_, k| k);
    let values = reals(&mut random, matrix.columns.len(), |v| v as f32);
    let layout = check::<_, _, f32, f32>(&matrix, &values);
    assert_eq!(layout.pattern.columns[..], [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    let counts: Vec<_> = layout.pattern.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(counts, [256, 256, 128, 256, 256, 128, 48, 48, 24]);
    assert_eq!(layout.pattern.row_ptr[..16], std::array::from_fn::<u8, 16, _>(|row| row as u8 * 16));
}

#[test]
fn new_values_go_where_the_old_ones_were() {
    let mut random = Random::new(21);
    let lengths: Vec<_> = (0..90).map(|row| row % 13).collect();
    let mut pick = Random::new(4);
    let matrix = TestRows::<i32, i32>::new(1, 200, &lengths, |_, _| pick.below(200));
    let [old, new] = [(); 2].map(|()| reals(&mut random, matrix.columns.len(), |v| v));
    let mut layout = check::<_, _, f64, f64>(&matrix, &old);
    layout.refill(&allocator(), &matrix.pattern(), &new).unwrap();
    assert_eq!(layout.values[..], check::<_, _, f64, f64>(&matrix, &new).values[..]);
}

#[test]
fn parts_cover_all_rows_once() {
    for (count, weight) in [(0, 0), (1, 9), (7, 0), (100, 3), (1000, 1)] {
        let parts = shares(count, |row| if row == 5 { 400 } else { weight });
        assert!(parts.len() <= pool::size().max(1));
        assert!(parts.iter().flat_map(Clone::clone).eq(0..count));
        assert!(parts.iter().all(|part| !part.is_empty()));
    }
}

#[test]
fn memory_that_is_refused_is_an_error() {
    use crate::memory::HostMemory;
    use crate::types::Address;
    let matrix = TestRows::<i32, i32>::new(0, 100, &[20; 100], |row, k| (row + k * 5) % 100);
    let values = vec![1.0f64; matrix.columns.len()];
    let limited = |bytes| Allocator::new(Arc::new(HostMemory), Address::NULL, bytes);
    let whole = limited(usize::MAX);
    drop(TileLayout::<f64>::build(&whole, &matrix.pattern(), &values).unwrap());
    let needed = whole.peak_bytes();
    for bytes in (0..needed).step_by(needed / 50) {
        let allocator = limited(bytes);
        assert!(TileLayout::<f64>::build(&allocator, &matrix.pattern(), &values).is_err());
        assert_eq!(allocator.live_bytes(), 0);
    }
}
