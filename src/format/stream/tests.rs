//! Tests of the stream layout: the inverse gives the matrix back, and the arrays are as the module's
//! documentation says.

use super::*;
use crate::algorithm::Algorithm;
use crate::format::testing::{allocator, TestRows};
use crate::matrix::{Compressed, SparseArrays, SparseMatrix};
use crate::memory::HostMemory;
use crate::select::spmv::bytes_by_shape;
use crate::types::{Address, DataType, IndexBase, IndexType, Operation};
use testkit::Random;

struct StreamTestMatrix {
    rows: TestRows<i64, i32>,
}

impl StreamTestMatrix {
    fn new(base: i64, cols: usize, lengths: &[usize], column: impl Fn(usize, usize) -> usize) -> Self {
        StreamTestMatrix { rows: TestRows::new(base, cols, lengths, column) }
    }

    /// Checks both sizes of tiles.
    fn check(&self) {
        self.check_as(|at| 1.0 + at as f64);
        self.check_as(|at| 1.0 + at as f32);
    }

    /// Checks that the layout gives every entry back, keeps its rules, and takes new values.
    fn check_as<V: Element>(&self, value: impl Fn(usize) -> V) {
        let values: Vec<V> = (0..self.rows.columns.len()).map(&value).collect();
        let pattern = self.rows.pattern();
        let origin = Origin { keep: true, positions: None };
        let mut layout = StreamLayout::build(&allocator(), &pattern, &values, origin).unwrap();
        let entries = |layout: &StreamLayout<V>| {
            let mut found = vec![];
            layout.for_each_entry(|row, col, value| found.push((row, col, value)));
            found
        };
        let expected = |values: &[V]| -> Vec<_> {
            let rows = (0..pattern.major).flat_map(|row| pattern.range(row).map(move |at| (row, at)));
            rows.map(|(row, at)| (row, pattern.index(at), values[at])).collect()
        };
        assert_eq!(entries(&layout), expected(&values));
        self.check_arrays(&layout);
        self.check_links(&layout);
        let fresh: Vec<V> = (0..values.len()).map(|at| value(at + 7)).collect();
        assert!(layout.refill(&fresh, false));
        assert_eq!(entries(&layout), expected(&fresh));
        let backwards: Vec<i64> = (0..values.len() as i64).rev().collect();
        let origin = Origin { keep: true, positions: Some(&backwards) };
        let mut layout = StreamLayout::build(&allocator(), &pattern, &values, origin).unwrap();
        assert!(layout.refill(&fresh, false));
        let reversed: Vec<V> = fresh.iter().rev().copied().collect();
        assert_eq!(entries(&layout), expected(&reversed));
        for slot in (0..layout.values.len()).filter(|&slot| slot >= layout.slot_count || layout.is_void(slot))
        {
            assert_eq!((layout.values[slot], layout.lows[slot]), (V::default(), 0));
        }
        let origin = Origin { keep: false, positions: None };
        let mut layout = StreamLayout::build(&allocator(), &pattern, &values, origin).unwrap();
        assert!(!layout.refill(&fresh, false));
    }

    fn check_arrays<V: Element>(&self, layout: &StreamLayout<V>) {
        let tile_slots = StreamLayout::<V>::TILE;
        let pattern = self.rows.pattern();
        let lengths = || (0..pattern.major).map(|row| pattern.range(row).len());
        assert_eq!(layout.slot_count, lengths().map(|length| length.max(1)).sum::<usize>());
        assert_eq!(layout.tiles.len(), layout.slot_count.div_ceil(tile_slots));
        assert_eq!(layout.voids.is_empty(), lengths().all(|length| length > 0));
        let mut slot = 0;
        for (row, length) in lengths().enumerate() {
            let first = slot;
            slot += length.max(1);
            for at in first..slot {
                assert_eq!(layout.is_void(at), length == 0);
                assert_eq!(layout.is_end(at), at + 1 == slot);
                if at % tile_slots == 0 {
                    let tile = &layout.tiles[at / tile_slots];
                    assert_eq!((tile.row(), tile.joins()), (row, at > first));
                }
            }
        }
        assert!((slot..layout.values.len()).all(|at| !layout.is_end(at)));
        let spans = layout.tiles.iter().filter(|tile| tile.high != Tile::NARROW).count();
        assert_eq!(layout.highs.len(), spans * tile_slots);
    }

    /// Walks over the blocks as a kernel does: every row that continues in another block is finished once, by
    /// the block before, or as a split row with all its partial sums.
    fn check_links<V: Element>(&self, layout: &StreamLayout<V>) {
        let (tile_slots, block_slots) = (StreamLayout::<V>::TILE, StreamLayout::<V>::BLOCK);
        let mut parts = vec![0; layout.splits.len()];
        let mut taken = None;
        let mut row_starts = vec![0; layout.row_count + 1];
        let pattern = self.rows.pattern();
        for row in 0..layout.row_count {
            row_starts[row + 1] = row_starts[row] + pattern.range(row).len().max(1);
        }
        for (block, tiles) in layout.tiles.chunks(BLOCK_TILES).enumerate() {
            let (first, last) = (tiles[0], tiles[tiles.len() - 1]);
            let end = (block + 1) * block_slots;
            let mut comes_in = None;
            if let Some(row) = taken.take() {
                assert_eq!((first.row(), first.link), (row, Tile::TAKEN));
                assert!(row_starts[row + 1] - block * block_slots <= tile_slots / 4);
            } else if first.joins() {
                assert_ne!(first.link, Tile::TAKEN);
                let split = first.link as usize - 1;
                assert_eq!(layout.splits[split].row as usize, first.row());
                let part = layout.splits[split].first_part as usize + parts[split];
                assert_eq!(
                    part - layout.splits[split].first_part as usize + first_block(layout, split),
                    block
                );
                parts[split] += 1;
                comes_in = Some(first.row());
            } else {
                assert_eq!(first.link, 0);
            }
            if tiles.len() < BLOCK_TILES || end >= layout.slot_count {
                assert_eq!(if tiles.len() > 1 { last.link } else { 0 }, 0);
                continue;
            }
            let row = row_starts.partition_point(|&start| start < end) - 1;
            let rest = row_starts[row + 1] - end;
            if last.link & Tile::OVER != 0 {
                assert_eq!((last.link & !Tile::OVER) as usize, rest);
                assert!(rest > 0 && rest <= overhang(size_of::<V>()));
                taken = Some(row);
            } else if last.link != 0 {
                let split = last.link as usize - 1;
                assert_eq!((layout.splits[split].row as usize, parts[split]), (row, 0));
                assert_eq!(first_block(layout, split), block);
                parts[split] = 1;
            } else {
                assert!(rest == 0 || comes_in == Some(row));
            }
        }
        assert!(taken.is_none());
        let mut first_part = 0;
        for (split, &count) in layout.splits.iter().zip(&parts) {
            assert_eq!((split.parts, split.first_part), (count as u32, first_part));
            assert!(count > 1);
            first_part += split.parts;
        }
        assert_eq!(layout.part_count(), first_part as usize);
    }
}

fn first_block<V: Element>(layout: &StreamLayout<V>, split: usize) -> usize {
    layout.splits[split].first_block as usize
}

#[test]
fn every_entry_comes_back() {
    for base in [0, 1] {
        for rows in [0, 1, 7, 64, 500, 3000] {
            for most in [1, 3, 30, 700] {
                let mut random = Random::new((rows + most) as u64);
                let lengths: Vec<usize> = (0..rows).map(|_| random.below(most) * random.below(3)).collect();
                StreamTestMatrix::new(base, 1000, &lengths, |row, entry| (row * 7 + entry * 131) % 1000)
                    .check();
            }
        }
    }
}

#[test]
fn empty_rows_and_empty_matrices() {
    StreamTestMatrix::new(1, 5, &[0; 20], |_, _| 0).check();
    StreamTestMatrix::new(0, 0, &[], |_, _| 0).check();
    StreamTestMatrix::new(0, 0, &[0; 3000], |_, _| 0).check();
    StreamTestMatrix::new(0, 3, &[0, 0, 3, 0, 0, 0, 0, 0, 0, 1], |_, entry| entry).check();
}

#[test]
fn rows_end_around_the_ends_of_blocks() {
    for tile in [256, 512] {
        let block = 4 * tile;
        for before in [0, 1, tile, block - 1, block, block + 3] {
            for over in
                [0, 1, tile / 4 - 1, tile / 4, tile / 4 + 1, tile, block, block + tile / 4, 9 * block + 5]
            {
                // Two rows, the second of which ends `over` slots behind a block.
                let second = (before / block + 1) * block - before + over;
                let lengths = [before, second, 3, 0, 2 * block, 1];
                StreamTestMatrix::new(0, 100, &lengths, |_, entry| entry % 100).check();
            }
        }
    }
}

#[test]
fn spans_choose_the_width() {
    let build = |column: &dyn Fn(usize, usize) -> usize| {
        let matrix = StreamTestMatrix::new(0, 1 << 18, &[64; 64], column);
        matrix.check();
        let values = vec![1.0_f64; matrix.rows.columns.len()];
        let origin = Origin { keep: false, positions: None };
        StreamLayout::build(&allocator(), &matrix.rows.pattern(), &values, origin).unwrap()
    };
    // 4 rows per tile. One tile of 16 spans one column more than 16 bits can number.
    let some = build(&|row, entry| match (row, entry) {
        (8, 3) => 5 + 0xffff,
        (12, 3) => 5 + 0x10000,
        _ => 5,
    });
    let high: Vec<_> = some.tiles.iter().map(|tile| tile.high).collect();
    assert_eq!(high.iter().filter(|&&high| high != Tile::NARROW).count(), 1);
    assert_eq!((high[3], some.highs.len(), some.all_high()), (0, 256, false));
    // With a quarter of the tiles wide, all have high halves.
    let all = build(&|row, entry| if row / 4 % 4 == 1 && entry == 9 { 200_000 } else { 7 });
    assert!(all.all_high());
    assert!(all.tiles.iter().enumerate().all(|(at, tile)| tile.high as usize == at));
    let none = build(&|row, entry| row + entry);
    assert!(none.highs.is_empty() && !none.all_high());
}

#[test]
fn out_of_memory_is_an_error() {
    let matrix = StreamTestMatrix::new(0, 1 << 18, &[300; 20], |row, entry| row * entry * 29);
    let values = vec![1.0; matrix.rows.columns.len()];
    let positions: Vec<i64> = (0..values.len() as i64).collect();
    let origin = Origin { keep: true, positions: Some(&positions) };
    let whole = allocator();
    drop(StreamLayout::build(&whole, &matrix.rows.pattern(), &values, origin).unwrap());
    for limit in (0..whole.peak_bytes()).step_by(1009) {
        let limited = Allocator::new(Arc::new(HostMemory), Address::NULL, limit);
        assert!(StreamLayout::build(&limited, &matrix.rows.pattern(), &values, origin).is_err());
        assert_eq!(limited.live_bytes(), 0);
    }
}

/// The bytes that the cost model counts are those that a kernel reads, for whole tiles, none of them wide,
/// and no empty row.
#[test]
fn the_cost_model_counts_the_bytes() {
    let matrix = StreamTestMatrix::new(0, 100, &[7; 3000], |row, entry| (row + entry) % 100);
    let values = vec![1.0_f32; matrix.rows.columns.len()];
    let origin = Origin { keep: false, positions: None };
    let layout = StreamLayout::build(&allocator(), &matrix.rows.pattern(), &values, origin).unwrap();
    let arrays = [
        layout.tiles.bytes(),
        layout.ends.bytes(),
        layout.voids.bytes(),
        layout.lows.bytes(),
        layout.highs.bytes(),
        layout.values.bytes(),
    ];
    let a = SparseMatrix {
        arrays: SparseArrays::Csr(Compressed {
            major: 3000,
            minor: 100,
            nnz: values.len() as i64,
            offsets: Address::NULL,
            indices: Address::NULL,
            values: Address::NULL,
            offset_type: IndexType::I64,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: DataType::R32F,
        }),
        writable: false,
        temporary: false,
    };
    assert_eq!(
        arrays.iter().sum::<usize>() as f64,
        bytes_by_shape(&a, Operation::NonTranspose, Algorithm::Stream)
    );
}
