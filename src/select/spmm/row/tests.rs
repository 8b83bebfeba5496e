//! Tests of the distribution of rows and the choice of kernels.

use std::collections::BTreeSet;

use super::*;
use crate::memory::COUNTER_BYTES;

#[test]
fn rows_of_like_lengths_that_are_long_need_no_lists() {
    assert_eq!(RowLimits::new(80_000, 80_000 * 72, 81, 8448), None);
    // Longer rows are split, or come in the order of their lengths.
    let uneven = RowLimits::new(80_000, 80_000 * 72, 200, 8448).unwrap();
    assert_eq!((uneven.longest_unsplit_row, uneven.run_length), (681, 0));
    // Few rows leave most of the device idle.
    let few = RowLimits::new(500, 500 * 4096, 5000, 8448).unwrap();
    assert_eq!((few.longest_unsplit_row, few.longest_part), (242, 968));
    assert_eq!(
        RowLimits::new(20_000, 1 << 40, 1 << 39, 8448).unwrap().longest_unsplit_row,
        LONGEST_SORTED_ROW
    );
}

#[test]
fn groups_have_few_entries_each_of_small_matrices() {
    let of = |rows, nnz, lanes, tiles| {
        let groups = Groups { lanes, tiles };
        let RowLimits {
            longest_unsplit_row,
            longest_part,
            longest_row_in_run,
            run_length,
            longest_row_of_pair,
        } = RowLimits::of_groups((rows, nnz), groups, 132);
        assert_eq!(longest_row_of_pair, 2 * longest_row_in_run);
        assert_eq!((longest_unsplit_row, run_length), (4 * longest_row_in_run, 0));
        (longest_row_in_run, longest_part)
    };
    // A small matrix of short rows, with groups of 8 lanes and of a warp, and four tiles.
    assert_eq!([of(17_758, 126_150, 8, 1), of(17_758, 126_150, 32, 1)], [(32, 256), (32, 236)]);
    assert_eq!(of(17_758, 126_150, 32, 4), (32, 512));
    // Rows of 68 entries, which the groups of a block would share in more than one turn: alone. Rows of
    // 187: shared by four groups.
    assert_eq!(of(8_738, 591_904, 8, 1), (81, 512));
    assert_eq!(of(2_048, 383_955, 8, 1), (56, 512));
    // Few long rows: a block each, or several.
    assert_eq!(of(1_000, 259_091, 8, 1), (16, 480));
    // Counters suffice for all parts.
    assert_eq!(of(1 << 30, 1 << 40, 8, 1), (128, 1 << 24));
}

#[test]
fn groups_are_as_wide_as_what_they_have() {
    let rows =
        |many: bool| Rows { count: if many { 33_792 } else { 33_791 }, mean: 20, multiprocessors: 132 };
    let of = |size, n, many| group_kind(size, n / (16 / size), usize::MAX, &rows(many));
    let floats = [16, 32, 64, 96, 128, 192, 512].map(|n| of(4, n, false));
    assert_eq!(floats, [(4, 1), (8, 1), (8, 2), (32, 1), (16, 2), (8, 2), (16, 2)]);
    let doubles = |many| [16, 32, 64, 96, 128].map(|n| of(8, n, many));
    assert_eq!(doubles(false), [(8, 1), (16, 1), (32, 1), (32, 1), (32, 2)]);
    assert_eq!(doubles(true), [(8, 1), (8, 2), (16, 2), (8, 2), (32, 2)]);
    // Several groups share short rows of doubles, if there are enough of both.
    let short =
        |count, mean, n: usize| group_kind(8, n / 2, usize::MAX, &Rows { count, mean, multiprocessors: 132 });
    assert_eq!([15, 16].map(|mean| short(20_000, mean, 128)), [(16, 2), (32, 2)]);
    assert_eq!([10_000, 11_000].map(|count| short(count, 7, 128)), [(32, 2), (16, 2)]);
    assert_eq!([64, 96, 512].map(|n| short(11_000, 7, n)), [(32, 1), (32, 1), (16, 2)]);
    // Tiles of all columns are not shared.
    assert_eq!(short(25_000, 7, 64), (32, 1));
    let halves = [16, 32, 64, 128, 512].map(|n| of(2, n, false));
    assert_eq!(halves, [(4, 1), (4, 1), (8, 1), (16, 1), (32, 1)]);
    // Tiles are narrower where L2 does not hold more of the rows of B in use.
    assert_eq!(group_kind(4, 32, 256, &rows(false)), (8, 2));
    // Every width has a kernel, and lanes have one pack each where some are left over.
    for (size, packs, many) in [2, 4, 8]
        .into_iter()
        .flat_map(|size| (1..300).flat_map(move |packs| [(size, packs, false), (size, packs, true)]))
    {
        let (lanes, each) = group_kind(size, packs, usize::MAX, &rows(many));
        assert!(group_kinds(size).contains(&(lanes, each)) && (each == 1 || packs % (lanes * each) == 0));
    }
}

#[test]
fn plans_are_for_groups_where_rows_are_short() {
    let value = |size| match size {
        2 => DataType::R16F,
        4 => DataType::R32F,
        _ => DataType::R64F,
    };
    let suits = |size, n, rows, mean| suits_groups(value(size), n, (rows, rows * mean));
    assert!(
        suits_groups(DataType::R32F, 32, (1000, 10_000)) && !suits_groups(DataType::C32F, 32, (1000, 10_000))
    );
    let means = |size, n| [2, 4, 5, 100, 101, 256, 257].map(|mean| suits(size, n, 1 << 20, mean));
    assert_eq!(means(4, 32), [true, true, true, true, true, true, false]);
    // Very short rows are taken several at a time, and few warps share long ones.
    assert_eq!(means(8, 32), [false, false, true, true, true, true, false]);
    assert_eq!(means(8, 128), [false, false, true, true, false, false, false]);
    assert_eq!(means(2, 128), means(8, 32));
    // Products with few columns, and columns that packs leave over.
    assert_eq!([suits(4, 8, 1000, 10), suits(4, 33, 1000, 10)], [false; 2]);
    // Eight columns and long rows, if these are few.
    assert_eq!(
        [suits(4, 8, 512, 410), suits(8, 8, 512, 410), suits(4, 8, 4096, 410), suits(2, 8, 512, 410)],
        [true, true, false, false]
    );
    assert_eq!([suits(4, 4, 512, 410), suits(8, 7, 512, 410)], [false; 2]);
    // Few long rows.
    assert_eq!(
        [suits(4, 32, 1000, 300), suits(4, 32, 2000, 300), suits(2, 512, 1300, 300)],
        [true, false, true]
    );
}

#[test]
fn lists_without_analysis_have_room_for_all() {
    // A small matrix, with a row per run; a large one of short rows, with eight; long rows.
    let of = |rows, nnz| Unanalyzed::new(rows, nnz, 32 * 4, 8448);
    let small = of(60_000, 270_000);
    assert_eq!(
        (small.rows_a_run, small.limits.longest_row_in_run, small.limits.longest_unsplit_row),
        (4, 93, LONGEST_UNSPLIT_ROW)
    );
    assert_eq!(of(10_000, 50_000).rows_a_run, 1);
    assert_eq!(of(1_000_000, 4_000_000).rows_a_run, 8);
    let long = of(100_000, 7_000_000);
    assert_eq!(
        (long.rows_a_run, long.limits.longest_row_in_run, long.limits.longest_unsplit_row),
        (1, 828, 828)
    );
    for nnz in [1, 100, 1 << 20, 1 << 28, 1 << 33, 1 << 40] {
        for (rows, row_bytes) in [(1, 4), (1000, 128), (nnz / 100, 4096), (nnz / 2, 8192), (nnz, 1 << 20)] {
            let Unanalyzed { limits, rows_a_run, slots, counters, .. } =
                Unanalyzed::new(rows, nnz, row_bytes, 8448);
            // Lengths at which rows are just split, or just listed.
            assert!(
                limits.longest_row_in_run >= 1
                    && limits.longest_unsplit_row >= LONGEST_UNSPLIT_ROW
                    && limits.longest_part >= limits.longest_unsplit_row
            );
            assert!((1..=ROWS_OF_A_RUN).contains(&rows_a_run) && slots * row_bytes <= UNANALYZED_SUMS);
            assert!(counters <= (COUNTER_BYTES / 4) as i64 - 8, "{rows} {nnz}");
        }
    }
}

#[test]
fn lists_are_taken_by_no_more_blocks_than_they_need() {
    let of = |rows, nnz| Unanalyzed::new(rows, nnz, 128, 8448);
    let (many, few) = (of(1 << 20, 1 << 23), of(500, 1 << 22));
    assert!(many.blocks > 792 && many.list_blocks(1 << 20, 132) == 792);
    assert_eq!(few.list_blocks(500, 132), few.blocks.min(1056));
    assert_eq!(few.list_blocks(792, 132), few.blocks.min(792));
}

#[test]
fn counters_suffice_for_all_that_is_cut() {
    let short = RowLimits::new(60_000, 500_000, 4000, 8448).unwrap();
    assert_eq!(
        (short.longest_unsplit_row, short.longest_part, short.run_length),
        (LONGEST_UNSPLIT_ROW, LONGEST_PART, RUN_LENGTH)
    );
    for nnz in [1 << 20, 1 << 28, 1 << 33, 1 << 40] {
        for rows in [1000, nnz / 100, nnz / 10] {
            let limits = RowLimits::new(rows, nnz, nnz, 8448).unwrap();
            // Split rows are longer than a part; there is a counter for each 16 parts and for each row.
            let (cut, parts) = (nnz / limits.longest_part, 2 * nnz / limits.longest_part);
            assert!(parts / 16 + 2 * cut <= (COUNTER_BYTES / 4) as i64, "{rows} {nnz}");
            assert!(
                parts <= 2 * MAX_PARTS.max(nnz / LONGEST_PART)
                    && limits.longest_unsplit_row <= limits.longest_part
            );
        }
    }
}

/// Every group for which a kernel with packs is compiled takes some number of columns.
#[test]
fn each_group_takes_some_columns() {
    for size in [2, 4, 8, 16] {
        let wide = (1..=600).filter(|&n| n > NARROW || packs_of_few(size, n));
        let taken: BTreeSet<usize> = wide
            .flat_map(|n| [LINE, 2 * LINE, 8 * LINE].map(|most| groups(size)[group_of(size, n, most)]))
            .collect();
        assert!(taken.iter().eq(groups(size)), "{size} bytes: {taken:?}");
    }
}

/// Entries in any order, few a row, on an H100.
fn any() -> Reach {
    Reach::new((100_000, 100_000, 700_000), 20, Vec::new(), 50 << 20)
}

fn plan(size: usize, mean: i64, reach: &Reach) -> Plan<'_> {
    Plan {
        size,
        is_complex: false,
        conjugates_b: false,
        has_twins: size == 8,
        rows: 100_000,
        mean,
        is_packed: mean < SHORT,
        has_groups: false,
        cols: 100_000,
        tiles_at_once: 65_535,
        multiprocessors: 132,
        reach,
    }
}

/// Rows of `n` elements of `size` bytes without gaps.
fn rows(n: usize, size: usize) -> RowsOfB {
    RowsOfB { address: 1 << 20, row_bytes: (n * size) as i64, are_contiguous: true }
}

#[test]
fn columns_are_taken_in_packs_and_what_is_left_by_lanes_along_the_entries() {
    let reach = any();
    let kernel = |size, n| plan(size, 7, &reach).step(n, &rows(n, size)).kernel;
    // Halves are read in packs of 8 from 16 columns on; the smallest group has 32 columns.
    assert_eq!(kernel(2, 8), Kernel::Narrow { columns: 8, lanes: 4 });
    assert_eq!([16, 32, 40, 128, 512].map(|n| kernel(2, n)), [0, 0, 1, 2, 3].map(Kernel::Packs));
    // Singles have packs of four, and doubles packs of two.
    assert_eq!([8, 12, 20, 64, 128].map(|n| kernel(4, n)), [0, 0, 1, 2, 3].map(Kernel::Packs));
    assert_eq!(kernel(4, 4), Kernel::Narrow { columns: 4, lanes: 4 });
    assert_eq!(kernel(8, 6), Kernel::Packs(0));
    // Rows of 33 singles do not begin at packs; those of 33 out of 36 do, and one column is left.
    assert_eq!(kernel(4, 33), Kernel::Single);
    let first = plan(4, 7, &reach).step(33, &rows(36, 4));
    assert_eq!((first.kernel, first.columns, first.tiles), (Kernel::Packs(2), 32, 1));
    let rest = plan(4, 7, &reach).step(1, &RowsOfB { address: (1 << 20) + 128, ..rows(36, 4) });
    assert_eq!((rest.kernel, rest.columns), (Kernel::Narrow { columns: 4, lanes: 4 }, 1));
    assert!(rest.packs && !rest.is_wide() && first.is_wide());
    // A B by columns, and rows too far apart for 32 bits, are read by single elements.
    let columns = RowsOfB { are_contiguous: false, ..rows(1, 4) };
    let step = plan(4, 40, &reach).step(100, &columns);
    assert_eq!((step.kernel, step.columns), (Kernel::Narrow { columns: 8, lanes: 16 }, 8));
    assert!(!step.packs && step.runs_a_warp == 2);
    let far = RowsOfB { row_bytes: 1 << 31, ..rows(64, 4) };
    assert!(!plan(4, 40, &reach).step(64, &far).is_wide());
    // A conjugated B is read with lanes along the columns only after it is copied.
    let conjugates = Plan { is_complex: true, conjugates_b: true, ..plan(8, 7, &reach) };
    assert!(!conjugates.step(8, &rows(8, 8)).is_wide());
}

#[test]
fn lanes_have_two_packs_of_doubles_where_rows_are_long() {
    let reach = any();
    let kernel = |mean, n| plan(8, mean, &reach).step(n, &rows(n, 8)).kernel;
    assert_eq!([kernel(20, 66), kernel(20, 128)], [Kernel::Twins; 2]);
    assert_eq!([kernel(19, 128), kernel(20, 64)], [Kernel::Packs(3); 2]);
    // One pack where L2 would not hold a tile of two packs of the rows of B in use.
    let often = Reach::new((200_000, 200_000, 200_000 * 20), 30, counted(100_000), 50 << 20);
    assert_eq!(plan(8, 20, &often).step(128, &rows(128, 8)).kernel, Kernel::Packs(1));
}

/// Histogram of distances, with entries at this one only.
fn counted(distance: i64) -> Vec<u64> {
    let mut bins = vec![0; super::super::reach::BINS];
    bins[((((1 + distance) as f32).to_bits() >> 21) - (127 << 2)) as usize] = 10;
    bins
}

#[test]
fn groups_share_rows_that_are_few_or_long() {
    let reach = any();
    let spread = |rows_of_a, mean, n| {
        let plan = Plan { rows: rows_of_a, is_packed: false, ..plan(4, mean, &reach) };
        let step = plan.step(n, &rows(n, 4));
        assert_eq!(step.runs_a_warp * step.spread, 32 / groups(4)[group_of(4, n, usize::MAX)] as i64);
        step.spread
    };
    // Eight groups of 4 lanes: enough rows; few; few and short; long.
    assert_eq!([spread(100_000, 40, 16), spread(1000, 40, 16), spread(1000, 15, 16)], [1, 4, 1]);
    assert_eq!([spread(100_000, 128, 16), spread(100_000, 600, 16), spread(100_000, 600, 128)], [2, 8, 1]);
    // Runs of several rows are not shared.
    assert_eq!(plan(4, 10, &reach).step(16, &rows(16, 4)).spread, 1);
}

#[test]
fn tiles_lie_together_where_neighbours_share_lines_of_b() {
    let near = Reach::new((500_000, 500_000, 2_000_000), 5, counted(1000), 50 << 20);
    let together = |reach, n, ld| plan(4, 4, reach).step(n, &rows(ld, 4)).together;
    // A band whose rows of B all stay in L2, however they are aligned to lines; four tiles of 128
    // columns.
    assert_eq!(
        [together(&near, 512, 512), together(&near, 512, 516), together(&near, 2048, 2048)],
        [2, 2, 3]
    );
    // A wider band, where rows of B begin inside lines.
    let wider = Reach::new((500_000, 500_000, 2_000_000), 5, counted(3000), 1 << 20);
    let tiles = plan(4, 4, &wider).step(512, &rows(516, 4)).tiles;
    assert_eq!(together(&wider, 512, 512), 0);
    assert_eq!(together(&wider, 512, 516), tiles.next_power_of_two().trailing_zeros().min(3));
    assert!(tiles > 1);
    assert_eq!(together(&any(), 512, 516), 0);
}

#[test]
fn sums_of_some_columns_go_by_way_of_the_workspace() {
    let (many, few) = ((1 << 20, 9), (1000, 9));
    assert!(stores_sums_first(many, true) && !stores_sums_first(many, false));
    assert!(!stores_sums_first(few, true) && !stores_sums_first((1 << 20, 8), true));
}
