//! Tests of the statistics for the choice between `hash` and `tile`, against counts on the host.

use super::*;
use crate::format::tile::SIDE;
use crate::select::spgemm::Counts;

/// Returns rows of distinct columns, some of them empty, and one with nearly all columns.
fn pattern(rng: &mut Random, rows: usize, cols: i64) -> Vec<Vec<i64>> {
    (0..rows)
        .map(|row| {
            let stride = match row % 7 {
                0 => return Vec::new(),
                1 if row == 155 => 1,
                2 => 90 + rng.below(200),
                _ => 300 + rng.below(900),
            };
            let first = rng.below(stride);
            (first..cols).step_by(stride as usize).collect()
        })
        .collect()
}

/// Returns for each row of tiles the sum of `of_column` over the columns of its tiles.
fn of_tiles(rows: &[Vec<i64>], of_column: impl Fn(usize) -> u64) -> Vec<u64> {
    let columns = |rows: &[Vec<i64>]| {
        let mut columns: Vec<_> = rows.iter().flatten().map(|&column| column as usize / SIDE).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    };
    rows.chunks(SIDE).map(|rows| columns(rows).into_iter().map(&of_column).sum()).collect()
}

fn expected(left: &[Vec<i64>], right: &[Vec<i64>]) -> Counts {
    let (tiles, of_right) = (of_tiles(left, |_| 1), of_tiles(right, |_| 1));
    let length = |&column: &i64| right[column as usize].len() as u64;
    let products: Vec<u64> = left.iter().map(|row| row.iter().map(length).sum()).collect();
    Counts {
        tiles: [tiles.iter().sum(), of_right.iter().sum()],
        most_tiles: *tiles.iter().max().unwrap(),
        pairs: of_tiles(left, |column| of_right[column]).iter().sum(),
        products: products.iter().sum(),
        most_products: *products.iter().max().unwrap(),
    }
}

#[test]
fn tiles_and_products_are_counted() {
    let Some((device, stream)) = device() else { return };
    let cx = on_device(&device, &stream, usize::MAX);
    let cx = &device.call(&cx).unwrap();
    let mut rng = Random::new(91);
    for (turn, (rows, inner, cols)) in
        [(1000, 1300, 4000), (15, 40_000, 33), (70_001, 100, 131_072)].into_iter().enumerate()
    {
        let (left, right) = (pattern(&mut rng, rows, inner as i64), pattern(&mut rng, inner, cols));
        let (base, widths) = ([IndexBase::Zero, IndexBase::One][turn % 2], WIDTHS[turn]);
        let (a, b) = (
            Stored::of_rows::<f64>(&mut rng, Format::Csr, inner as i64, &left, base, widths),
            Stored::of_rows::<f64>(&mut rng, Format::Csr, cols, &right, base, widths),
        );
        let (a, b) = (a.upload(cx), b.upload(cx));
        let problem = problem::<F64>((N, N), a.matrix, b.matrix, false);
        let factors = Factors::new(cx, &problem, &choose(&problem)).unwrap();
        let lengths = factors.lengths(false);
        assert_eq!(lengths.shape, [rows as i64, inner as i64, cols]);
        let longest = |rows: &[Vec<i64>]| rows.iter().map(Vec::len).max().unwrap() as i64;
        assert_eq!(lengths.longest, [longest(&left), longest(&right)]);
        for _ in 0..2 {
            let found = factors.count(cx, false).unwrap();
            assert_eq!(found, expected(&left, &right), "{rows} rows");
        }
        let inspection = inspect(cx, &problem, &choose(&problem)).unwrap();
        let ratios = device.machine().ratios(problem.types.compute);
        let gain =
            lengths.gain(&expected(&left, &right), &ratios).filter(|_| lengths.may_suit_tiles(&ratios));
        assert_eq!(inspection.gain, gain);
    }
}

/// Full blocks on the diagonal, for which `hash` is slow, in both formats, and multiplied by their transpose.
#[test]
fn tiles_are_chosen_and_reuse_what_was_seen() {
    let Some((device, stream)) = device() else { return };
    let cx = on_device(&device, &stream, usize::MAX);
    let cx = &device.call(&cx).unwrap();
    let (block, size) = (256, 4096);
    let rows: Vec<Vec<i64>> =
        (0..size).map(|row| (row / block * block..(row / block + 1) * block).collect()).collect();
    for format in FORMATS {
        let mut rng = Random::new(92);
        let stored = Stored::of_rows::<f64>(&mut rng, format, size, &rows, IndexBase::Zero, WIDTHS[0]);
        let a = stored.upload(cx);
        for op in [N, Operation::Transpose] {
            let problem = problem::<F64>((N, op), a.matrix, a.matrix, false);
            let inspection = inspect(cx, &problem, &choose(&problem)).unwrap();
            assert!(inspection.gain.unwrap() > 1.5);
            let factors = inspection.backend_state.downcast().ok().map(|factors| *factors);
            let choice = tile::choose_tile(&problem);
            let mut executor = build(cx, &problem, &choice, factors).unwrap();
            let hash = by_hash(cx, &problem, &choose(&problem)).unwrap().symbolic(cx).unwrap();
            assert_eq!(executor.symbolic(cx).unwrap(), hash);
        }
    }
}
