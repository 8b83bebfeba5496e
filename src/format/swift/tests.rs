//! Tests of Swift: the inverse gives the matrix back, and the arrays are those that the paper's kernels take.

use proptest::prelude::*;

use super::bands::Bands;
use super::*;
use crate::format::testing::allocator;
use crate::format::testing::TestMatrix;
use testkit::sequence;

/// Builds the layout of a matrix that is stored by columns: rows of `columns` are columns of op(A).
pub(crate) fn build<V: Element>(columns: &TestMatrix, values: &[V]) -> Swift<V> {
    let origin = Origin { keep: true, positions: None };
    Swift::build(&allocator(), &columns.pattern(), values, origin).unwrap()
}

/// Returns a matrix with columns of these lengths, in which neighbouring columns share rows.
pub(crate) fn sample(base: i64, rows: usize, lengths: &[usize]) -> TestMatrix {
    TestMatrix::new(base, rows, lengths, |column, entry| (column / 5 * 3 + entry * 131 + entry % 7) % rows)
}

/// Returns matrices whose shapes are at the edges of blocks and sets.
pub(crate) fn shapes() -> Vec<TestMatrix> {
    let mut next = sequence(29);
    let mut out = vec![];
    for base in [0, 1] {
        for cols in [0, 1, 2, 31, 32, 33, 63, 64, 65, 300] {
            out.push(sample(base, 500, &vec![5; cols]));
            out.push(sample(base, 40, &(0..cols).map(|column| column % 37).collect::<Vec<_>>()));
            let lengths: Vec<_> = (0..cols).map(|_| next() % 4 * (next() % 19)).collect();
            out.push(sample(base, 997, &lengths));
        }
    }
    // No entries; one row; long columns among short ones; all rows in every column.
    out.push(sample(0, 10, &[0; 40]));
    out.push(sample(0, 1, &[3; 70]));
    let mut lengths = vec![2; 400];
    (lengths[7], lengths[200], lengths[201]) = (9000, 33, 32);
    out.push(sample(0, 20_000, &lengths));
    out.push(TestMatrix::new(0, 48, &[48; 100], |_, entry| entry));
    out.push(sample(1, 3000, &[1500; 3]));
    out
}

fn check(columns: &TestMatrix) -> Swift<f64> {
    let layout = build(columns, &columns.values);
    let (pattern, nnz) = (columns.pattern(), columns.values.len());
    let mut found = vec![];
    layout.for_each_entry(|column, number, row, value| {
        assert!(number < pattern.range(column).len());
        found.push((pattern.range(column).start + number, row, value));
    });
    found.sort_by_key(|&(at, _, _)| at);
    let expected = (0..nnz).map(|at| (at, pattern.index(at), columns.values[at]));
    assert!(found.iter().copied().eq(expected));
    let slots = layout.slots.as_ref().unwrap();
    assert!(slots.iter().zip(&columns.values).all(|(&at, &v)| layout.values[at as usize] == v));

    // Columns are sorted, ties in their order; empty columns are in no block.
    let length = |column: u32| pattern.range(column as usize).len();
    assert!(layout.order.is_sorted_by_key(|&column| (length(column), column)));
    let Outline { sets, starts, pieces, blocks, .. } = &layout.outline;
    let mut expected_first = 0;
    for (number, set) in sets.iter().enumerate() {
        assert!(set.height > 0 && set.height as usize <= HEIGHT);
        assert_eq!(set.first, expected_first);
        let columns = &layout.order[set.column as usize..];
        assert!(columns.iter().all(|&column| length(column) >= (set.taken + set.height) as usize));
        assert!(number == 0 || sets[number - 1].taken < set.taken);
        expected_first += (columns.len() / LANES) as u64 * u64::from(set.height);
    }
    assert_eq!(expected_first, *blocks as u64);

    // Both parts together have the entries of the matrix, and segments are sorted by row.
    let mut all = vec![];
    let mut segments = 0;
    for group in 0..layout.outline.groups() {
        let mut last = None;
        let begin = all.len();
        layout.for_each_of_group(group, |column, row, value| {
            assert!(last <= Some(row));
            segments += usize::from(last != Some(row));
            last = Some(row);
            all.push((column, row, value));
        });
        let first = group * ENTRIES;
        let mut position = 0;
        while position < all.len() - begin {
            let row = layout.rows[first + position];
            let length = match layout.offsets[first + position] {
                -1 => 1,
                more => more as usize + 1,
            };
            for at in position..position + length {
                assert_eq!((layout.rows[first + at], all[begin + at].1), (row, row as usize));
                assert!(at == position || layout.offsets[first + at] == 0);
            }
            position += length;
            assert!(position == all.len() - begin || layout.rows[first + position] != row);
        }
    }
    assert_eq!(segments, layout.segments);
    for piece in 0..pieces.len() {
        let Piece { start, stop, column, .. } = pieces[piece];
        let own = (column & !PART) as usize;
        let (first, end) = (starts[own], starts[own + 1]);
        assert!(first <= start && start < stop && stop <= end && stop - start <= LANES as u64);
        assert_eq!(column & PART == 0, (start, stop) == (first, end));
        layout.for_each_of_piece(piece, |column, row, value| all.push((column, row, value)));
    }
    let mut expected: Vec<_> = (0..pattern.major)
        .flat_map(|column| {
            pattern.range(column).map(move |at| (column, pattern.index(at), columns.values[at]))
        })
        .collect();
    let by = |x: &(usize, usize, f64), y: &(usize, usize, f64)| x.2.total_cmp(&y.2);
    all.sort_by(by);
    expected.sort_by(by);
    assert_eq!(all, expected);
    layout
}

#[test]
fn every_entry_comes_back() {
    shapes().iter().for_each(|columns| {
        check(columns);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_entry_of_any_matrix_comes_back(
        lengths in proptest::collection::vec(prop_oneof![4 => 0..12_usize, 1 => 0..200_usize], 0..150),
        rows in 1..400_usize,
        base in 0..2_i64,
        step in 1..1000_usize,
    ) {
        check(&TestMatrix::new(base, rows, &lengths, |column, entry| (column * step + entry * entry) % rows));
    }
}

#[test]
fn the_papers_example_of_sets() {
    // 36 columns, by ascending length: 1, 1, 2, 29 of 3 and 4 of 6.
    let lengths: Vec<_> = [1, 1, 2].into_iter().chain([3; 29]).chain([6; 4]).collect();
    let layout = check(&sample(0, 100, &lengths));
    let sets: Vec<_> = layout.outline.sets.iter().map(|s| (s.first, s.column, s.taken, s.height)).collect();
    // Sets of 36, 34 and 33 columns of height 1; then 4 columns are left, which are irregular.
    assert_eq!(sets, [(0, 0, 0, 1), (1, 2, 1, 1), (2, 3, 2, 1)]);
    assert_eq!((layout.outline.blocks, layout.outline.irregular()), (3, lengths.iter().sum::<usize>() - 96));
    assert_eq!(layout.columns[..], [0, 2, 3]);
    // The last column is in the remainders of all three sets (4, 2, 1 columns), and all its other entries are
    // irregular, too.
    assert_eq!(layout.outline.starts[..6], [0, 6, 11, 15, 19, 19]);
}

#[test]
fn long_columns_are_cut() {
    let layout = check(&sample(0, 3000, &[10, 32, 33, 100]));
    let pieces: Vec<_> = layout.outline.pieces.iter().map(|p| (p.column, p.start, p.stop)).collect();
    assert_eq!(layout.outline.blocks, 0);
    let part = |column: u32| column | PART;
    assert_eq!(
        pieces,
        [
            (part(0), 0, 32),
            (part(0), 32, 64),
            (part(0), 64, 96),
            (part(0), 96, 100),
            (part(1), 100, 132),
            (part(1), 132, 133),
            (2, 133, 165),
            (3, 165, 175)
        ]
    );
}

#[test]
fn a_group_of_one_row_is_one_sum() {
    let layout = check(&sample(0, 1, &[TOGETHER; LANES]));
    assert_eq!((layout.outline.blocks, layout.segments), (TOGETHER, 1));
    assert_eq!((layout.offsets[0], layout.offsets[1]), (255, 0));
    assert_eq!(
        layout.details(),
        "8 blocks of 32 columns in 1 sets have 100.0 % of the entries, 0.00 sums an entry"
    );
}

#[test]
fn counts_beyond_32_bits_are_refused() {
    let most = i32::MAX as usize;
    assert!(check_counts(most, most, 5).is_ok());
    for (rows, cols, longest) in [(most + 1, 1, 1), (1, most + 1, 1), (1, 1, u32::MAX as usize)] {
        assert!(check_counts(rows, cols, longest).is_err());
    }
}

#[test]
fn bands_have_every_entry_by_column() {
    let long = TestMatrix::new(0, 40, &[40; 300], |_, entry| entry);
    for columns in shapes().iter().chain([&long]) {
        let pattern = columns.pattern();
        let origin = Origin { keep: true, positions: None };
        let layout = Bands::build(&allocator(), &pattern, &columns.values, origin).unwrap();
        let mut found = vec![];
        layout.for_each_entry(|row, column, value| found.push((column, row, value)));
        // Each value is the number of its entry.
        found.sort_by(|x, y| x.2.total_cmp(&y.2));
        let expected =
            (0..pattern.major).flat_map(|column| pattern.range(column).map(move |at| (column, at)));
        let expected: Vec<_> =
            expected.map(|(column, at)| (column, pattern.index(at), columns.values[at])).collect();
        assert_eq!(found, expected);
        let slots = layout.slots.as_ref().unwrap();
        assert!(slots.iter().zip(&columns.values).all(|(&at, &v)| layout.values[at as usize] == v));
        for item in 0..layout.items.len() {
            let (band, entries) = layout.item(item);
            assert!(entries.len() <= bands::limit(columns.values.len()));
            assert!(band < columns.cols.div_ceil(bands::ROWS));
            let key = |at: &usize| (layout.columns[*at], layout.rows[*at]);
            assert!(entries.is_sorted_by_key(|at| key(&at)));
        }
    }
    let origin = Origin { keep: false, positions: None };
    let layout = Bands::build(&allocator(), &long.pattern(), &long.values, origin).unwrap();
    // Bands of 16, 16 and 8 rows and 300 columns: 4800, 4800, 2400 entries, in parts of at most 2048.
    assert_eq!((layout.items.len(), layout.parts.len()), (8, 8));
}

#[test]
fn new_values_go_to_their_places() {
    for columns in shapes() {
        let mut layout = build(&columns, &columns.values);
        let new: Vec<f64> = columns.values.iter().map(|v| -v).collect();
        assert!(layout.refill(&new));
        assert_eq!(layout.values[..], build(&columns, &new).values[..]);
    }
}
