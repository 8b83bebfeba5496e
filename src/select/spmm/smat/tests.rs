//! Tests of the rates against measured times.

use super::*;

const SHAPE_8: BlockShape = BlockShape { height: 16, width: 8 };
const SHAPE_16: BlockShape = BlockShape { height: 16, width: 16 };

/// Microseconds on an H100 for 8, 32 and 128 columns, with 16 × 16 blocks, then 16 × 8 where there are two
/// kinds: cant, dc2, cop20k, band256, mip1, rmat16.
const HALVES_16: [(u64, [f64; 3]); 6] = [
    (62_618, [17.25, 25.41, 54.05]),
    (195_193, [63.2, 72.54, 153.5]),
    (2_057_096, [384.0, 467.5, 1445.4]),
    (17_336, [10.69, 12.03, 19.30]),
    (1_643_592, [318.1, 373.1, 1133.0]),
    (463_463, [97.25, 115.7, 335.9]),
];
const HALVES_8: [(u64, [f64; 3]); 6] = [
    (115_791, [16.35, 23.07, 50.11]),
    (257_966, [73.66, 88.96, 175.5]),
    (2_083_467, [208.3, 271.2, 839.3]),
    (34_672, [10.72, 12.58, 19.10]),
    (1_972_531, [f64::NAN, 259.6, 722.8]),
    (472_479, [54.91, 68.70, 187.6]),
];

#[test]
fn rates_are_near_what_was_measured() {
    for (shape, points) in [(SHAPE_8, HALVES_8), (SHAPE_16, HALVES_16)] {
        let rates = Rates::of(ComputeType::R32F, 2, shape).unwrap();
        let mut sum = 0.0;
        let mut count = 0;
        for (blocks, times) in points {
            for (n, measured) in [8, 32, 128].into_iter().zip(times).filter(|(_, t)| !t.is_nan()) {
                let error = (rates.seconds(blocks, n) * 1e6 / measured - 1.0).abs();
                // dc2 has rows of few blocks among long ones.
                assert!(error < 0.6, "{shape:?} {blocks} {n}: {error}");
                (sum, count) = (sum + error, count + 1);
            }
        }
        assert!(sum / f64::from(count) < 0.15, "{shape:?}: {}", sum / f64::from(count));
    }
}

#[test]
fn seconds_rise_with_blocks_and_columns() {
    for (compute, bytes, shape) in [
        (ComputeType::R32F, 2, SHAPE_8),
        (ComputeType::R32F, 2, SHAPE_16),
        (ComputeType::Tf32, 4, SHAPE_8),
        (ComputeType::R64F, 8, SHAPE_8),
    ] {
        let rates = Rates::of(compute, bytes, shape).unwrap();
        assert!(rates.block.windows(2).all(|two| two[0].0 < two[1].0));
        assert_eq!(rates.seconds(0, 77), rates.start);
        let all: Vec<f64> = (1..2000).map(|n| rates.seconds(100_000, n)).collect();
        assert!(all.windows(2).all(|two| two[0] <= two[1]));
        for (n, seconds) in rates.block {
            assert!((rates.seconds(1 << 20, n) - rates.start - seconds * f64::from(1 << 20)).abs() < 1e-12);
        }
        assert!((rates.seconds(1000, 1024) - rates.start) / (rates.seconds(1000, 512) - rates.start) > 1.99);
        assert!(rates.seconds(1, i64::MAX).is_finite());
    }
}

#[test]
fn what_has_no_blocks_has_no_rates() {
    assert!(Rates::of(ComputeType::R32F, 4, SHAPE_8).is_none());
    assert!(Rates::of(ComputeType::R64F, 8, SHAPE_16).is_none());
    assert!(Rates::of(ComputeType::R32F, 2, BlockShape { height: 8, width: 8 }).is_none());
}

#[test]
fn a_fit_finds_the_line() {
    let line = |blocks: u64| (blocks, 7e-6 + 2.5e-10 * blocks as f64);
    let (start, block) = fit(&[line(1000), line(50_000), line(2_000_000)]).unwrap();
    assert!((start - 7e-6).abs() < 1e-12 && (block - 2.5e-10).abs() < 1e-16);
    // Errors are relative: the small time counts as much as the large ones.
    let (start, _) = fit(&[(0, 1e-6), (1_000_000, 1e-3), (1_000_000, 1.1e-3)]).unwrap();
    assert!((start - 1e-6).abs() < 1e-7);
    assert_eq!(fit(&[]), None);
    assert_eq!(fit(&[line(5)]), None);
    assert_eq!(fit(&[(7, 1.0), (7, 2.0), (7, 3.0)]), None);
}

#[test]
fn narrow_blocks_are_faster_where_few_wide_ones_are_full() {
    // Both numbers of blocks of cant, and one of cop20k, have measured times above.
    for (wide, narrow) in [(62_618, 115_791), (2_057_096, 2_083_467), (463_463, 472_479)] {
        assert!(narrow_are_faster(narrow, wide, 8, &Ratios::SAME), "{wide} {narrow}");
    }
    for n in [1, 8, 33, 128, 4096] {
        assert!(narrow_are_faster(100_000, 100_000, n, &Ratios::SAME));
        assert!(!narrow_are_faster(200_000, 100_000, n, &Ratios::SAME), "{n}");
    }
}

#[test]
fn parts_are_as_many_as_warps_want() {
    let limit = |tiles, blocks| rules_on_device(rules(2, 16), 132, tiles).limit(blocks, 1 << 10);
    // 1188 items, of at least 8 and at most 64 blocks.
    assert_eq!([limit(1, 1000), limit(1, 30_000), limit(1, 70_000), limit(1, 1 << 20)], [8, 26, 58, 64]);
    assert_eq!(limit(4, 30_000), 64);
    // A handle has 2^18 counters.
    assert_eq!(limit(1, 1 << 28), 1024);
    assert_eq!([rules(2, 8), rules(8, 8)].map(|found| found.limit(1 << 20, 1 << 10)), [128, 64]);
    // Row blocks of 32 and 40 blocks.
    assert_eq!([1 << 15, 40 << 10].map(|blocks| rules(2, 8).limit(blocks, 1 << 10)), [64, 80]);
}

#[test]
fn blocks_are_full_from_a_tenth_of_their_places() {
    // 1000 entries in 10 to 100 blocks of 256 elements.
    assert_eq!([10, 39, 40, 100].map(|blocks| is_filled(1000, blocks, 16)), [true, true, false, false]);
}

#[test]
fn kernels_go_by_the_columns_of_c() {
    // Halves, wide and narrow; singles; doubles. B is by rows, and by columns.
    let of = |size, width, by_columns| {
        [8, 9, 32, 33, 500].map(|n| {
            let forms = forms(size, width, by_columns);
            forms[form_of(forms, n)]
        })
    };
    for by_columns in [false, true] {
        assert_eq!(of(2, 16, by_columns), [8, 32, 32, 64, 64]);
        assert_eq!(of(4, 8, by_columns), [8, 32, 32, 64, 64]);
        assert_eq!(of(8, 8, by_columns), [8, 32, 32, 32, 32]);
    }
    assert_eq!(of(2, 8, false), [8, 32, 32, 64, 64]);
    assert_eq!(of(2, 8, true), [8; 5]);
    assert_eq!([2, 4, 8].map(columns_of_many), [64, 64, 32]);
}

#[test]
fn columns_of_b_are_read_where_they_are_few_or_blocks_full() {
    // 1000 entries in 10 or 100 blocks of 16 columns, and of 8.
    assert!([10, 100].iter().all(|&blocks| columns_pay(8, 2, 1000, (blocks, 16))));
    assert!(columns_pay(9, 2, 1000, (10, 16)) && !columns_pay(9, 2, 1000, (100, 16)));
    assert!(!columns_pay(9, 2, 1000, (10, 8)) && columns_pay(9, 4, 1000, (10, 8)));
}

#[test]
fn tiles_of_an_item_share_a_block() {
    assert_eq!([1, 2, 3, 4, 5, 1000].map(|tiles| tiles_of_item(tiles, 4)), [1, 2, 4, 4, 4, 4]);
}

/// For few columns the time of blocks is that of their bytes from memory, for many that of caches and
/// instructions.
#[test]
fn blocks_follow_memory_where_columns_are_few() {
    use crate::select::device::tests::{A100, H200, HALVES, RTX_4090};
    use crate::select::device::FITTED;
    let all =
        [(ComputeType::R32F, 2, SHAPE_8), (ComputeType::R32F, 2, SHAPE_16), (ComputeType::R64F, 8, SHAPE_8)];
    for (compute, bytes, shape) in all {
        let rates = Rates::of(compute, bytes, shape).unwrap();
        let on = |device| rates.scaled(bytes, shape, &Ratios::of(device).of_compute(compute));
        assert_eq!(on(&FITTED), *rates);
        // Ratio of the times per block.
        let slower = |device, n| {
            on(device)
                .block
                .map(|(columns, seconds)| if columns == n { seconds } else { 0.0 })
                .iter()
                .sum::<f64>()
                / rates.block.iter().find(|block| block.0 == n).unwrap().1
        };
        let [small, slow] = &HALVES;
        assert!(slower(slow, 8) > 1.85 && slower(slow, 512) < 1.1, "{shape:?}");
        assert!(slower(small, 8) < 1.15 && slower(small, 512) > 1.9, "{shape:?}");
        assert!(slower(&H200, 8) < 0.75 && (0.88..0.96).contains(&slower(&H200, 128)), "{shape:?}");
        assert!(slower(&A100, 128) > 1.5);
        // Doubles are 64 times as slow as singles there.
        assert_eq!(slower(&RTX_4090, 512) > 10.0, compute == ComputeType::R64F);
        assert_eq!(on(&RTX_4090).start, rates.start);
    }
    // Wide blocks have more bytes per column.
    let narrow = |device| narrow_are_faster(1_830_000, 1_000_000, 128, &Ratios::of(device));
    assert!(!narrow(&FITTED) && narrow(&HALVES[1]) && !narrow(&HALVES[0]) && !narrow(&H200));
}
