//! How SpMM `row` deals rows out to the threads of a device (kernels/spmm/tasks.cu makes the lists), and which kernel
//! takes how many columns of C at a time ([`Plan::step`]).

use super::copies::LINE;
use super::reach::Reach;

/// Entries of a row that a group of lanes takes; longer ones are shared by the groups of a warp. A group multiplies one
/// entry after another, four at a time, so that its longest row is what a small product waits for: on 16 of the real
/// matrices 32 was 1.07 to 1.15 times as fast as 64 in fp32, and 1.02 to 1.1 in fp64 (N = 32 and 128). A group that is a
/// whole warp takes twice as many: longer ones go to blocks.
const ALONE: i64 = 32;
/// The least of the entries of rows that warps of several groups take.
const SHARED: i64 = 128;
/// The most where there is work enough: what the window sort's keys hold.
const LONG: i64 = 4096;

/// Parts at the most, about: their counters are the handle's.
const PARTS: i64 = 1 << 16;
/// Warps of a block.
pub const WARPS: i64 = 4;

/// Where rows of one kind end; kernels/spmm/tasks.cu has the same structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Limits {
    /// Entries of the longest row that a warp takes; longer ones are cut.
    pub most: i64,
    /// Entries of a part of a row that is cut; a block takes it.
    pub part: i64,
    /// Entries of the longest row that a group takes.
    pub alone: i64,
}

impl Limits {
    /// For rows of these lengths; `None`: they need no lists. `warps`: what the device takes at a time; `groups` of lanes
    /// are in each.
    pub fn new(rows: i64, nnz: i64, longest: i64, warps: i64, groups: i64) -> Option<Self> {
        let mean = nnz / rows.max(1);
        let limits = Limits::of(alone(rows, nnz, warps, groups), groups, nnz / PARTS);
        // Rows of about one length gain nothing and would lose their order. But few rows leave most of the device
        // without work.
        let is_even = longest <= mean + mean / 2 + 4;
        (!is_even || rows < warps / 8 && longest > limits.most).then_some(limits)
    }

    fn of(alone: i64, groups: i64, least: i64) -> Self {
        let most = if groups == 1 { alone } else { (alone * groups).max(SHARED) };
        Limits { most, part: (WARPS * most).max(least), alone }
    }
}

/// [`Limits::alone`]: more than [`ALONE`] where the device takes many times as much at a time.
fn alone(rows: i64, nnz: i64, warps: i64, groups: i64) -> i64 {
    let mean = nnz / rows.max(1);
    let least = if groups == 1 { 2 * ALONE } else { ALONE };
    (nnz / (4 * warps.max(1))).clamp(least, (2 * mean).max(least)).min(LONG)
}

/// How rows are dealt out without analysis, when only their mean length is known: rows of more than `limits.alone` entries
/// are listed for warps and blocks (kernels/spmm/tasks.cu spmm_tasks_unanalyzed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanalyzed {
    pub limits: Limits,
    /// Blocks that both lists need at the most.
    pub blocks: i64,
    /// What the lists have at the most: rows of warps, parts, sums of parts that are added, and counters.
    pub warps: i64,
    pub parts: i64,
    pub slots: i64,
    pub counters: i64,
}

/// Rows of several parts without analysis at the most, about: each has counters of its own.
const UNANALYZED_CUT: i64 = 1 << 14;
/// Rows that are listed for warps without analysis, at the most.
const UNANALYZED_WARPS: i64 = 1 << 17;
/// Bytes of the sums of all parts, at the most.
const UNANALYZED_SUMS: i64 = 16 << 20;

impl Unanalyzed {
    /// For so many rows and entries, and rows of C whose sums have so many bytes. `warps`: what the device takes at a
    /// time; `groups` of lanes are in each.
    pub fn new((rows, nnz): (i64, i64), row_bytes: i64, warps: i64, groups: i64) -> Self {
        // 2 · nnz / part sums have at most UNANALYZED_SUMS bytes.
        let sums = (2.0 * nnz as f64 / UNANALYZED_SUMS as f64 * row_bytes as f64).ceil() as i64;
        let alone = alone(rows, nnz, warps, groups).max(nnz / UNANALYZED_WARPS);
        let limits = Limits::of(alone, groups, (nnz / UNANALYZED_CUT).max(sums));
        let Limits { most, part, .. } = limits;
        let slots = 2 * (nnz / part);
        // A row of `alone + 1` entries is a quarter of a block, and one of `most + 1` entries, which is a part, a whole one.
        // Longer rows give fewer blocks for each of their entries, so these are the most blocks that `nnz` entries give.
        let (listed, of_parts) = (nnz / (alone + 1), nnz / (most + 1));
        Unanalyzed {
            limits,
            // The parts and the rows of warps each may leave a block that is not full.
            blocks: (listed / WARPS).max(of_parts) + 2,
            warps: listed.min(rows),
            parts: of_parts + nnz / part,
            slots,
            // One for each 16 parts of a row, and two more.
            counters: slots / 16 + 2 * (nnz / (part + 1)),
        }
    }

    /// Whether no row can be long enough for the lists.
    pub fn has_no_lists(&self) -> bool {
        self.warps == 0 && self.parts == 0
    }
}

/// Warps that a device of so many multiprocessors runs at one time, about.
pub fn warps_at_once(multiprocessors: i64) -> i64 {
    multiprocessors * 64
}

/// Columns up to which lanes may lie along the entries of a row, with a sum a
/// column: beyond, lanes along the columns read whole sectors of B.
pub const NARROW: usize = 8;

/// Lanes of a group in the wide kernels.
pub const GROUPS: [usize; 4] = [4, 8, 16, 32];

/// The groups for elements of `size` bytes: those that have more columns than a narrow kernel of four.
pub fn groups(size: usize) -> &'static [usize] {
    if GROUPS[0] * 16 > NARROW / 2 * size {
        &GROUPS
    } else {
        &GROUPS[1..]
    }
}

/// Whether lanes lie along a few columns of elements of `size` bytes that are read in packs: half of the smallest
/// group has packs, and nothing is left over.
fn packs_of_few(size: usize, n: usize) -> bool {
    let pack = (16 / size).max(1);
    n % pack == 0 && n > NARROW / 2 && 2 * n >= GROUPS[0] * pack
}

/// Lanes of the group that takes so many packs of elements of `size` bytes: two packs a lane where that halves what
/// lanes hand each other for each product (kernels/spmm/row.cu LANES_OF).
fn lanes_of(size: usize, packs: usize) -> usize {
    if packs == 32 && size <= 4 {
        16
    } else {
        packs
    }
}

/// Mean length below which four lanes along the entries of a row have work, and not sixteen.
const FEW_ENTRIES: i64 = 16;

/// Groups of lanes in a warp of the kernel that takes most of `n` columns.
pub fn groups_a_warp(size: usize, n: usize, mean: i64) -> i64 {
    let lanes = if n > NARROW || packs_of_few(size, n) {
        lanes_of(size, groups(size)[group_of(size, n, usize::MAX)])
    } else if mean < FEW_ENTRIES {
        4
    } else {
        16
    };
    32 / lanes as i64
}

/// Which of [`groups`] takes `n` columns in packs: the smallest that covers them, or the largest whose tiles
/// have no more than `most` bytes of a row of B.
fn group_of(size: usize, n: usize, most: usize) -> usize {
    let (groups, pack) = (groups(size), (16 / size).max(1));
    let mut at = groups.iter().position(|group| group * pack >= n).unwrap_or(groups.len() - 1);
    while at > 0 && groups[at] * 16 > most {
        at -= 1;
    }
    at
}

/// Mean length of rows that are short enough for tiles side by side ([`Reach::is_near`]).
const NEAR: i64 = 20;

/// Columns that copies of B and sums for C are made of at a time, at the least.
pub const LEAST_COPIED: usize = 32;

/// Fewer columns of such copies: half, in whole groups of the least.
pub fn fewer_copied(columns: usize) -> usize {
    columns.div_ceil(2).next_multiple_of(LEAST_COPIED).min(columns - 1).max(1)
}

/// Elements of a C up to which lanes along its columns write single ones of it where its columns are contiguous: L2
/// joins them. On the 28 real matrices, fp32 and fp64, N = 32 and 128, that gained 8 % in the mean up to so many, and
/// lost 10 to 50 % where there were more than some millions.
const WRITTEN_SINGLY: usize = 1 << 19;

/// Whether sums of `rows` × `n` go to the workspace first, and from there into a C whose columns are contiguous: lanes
/// along the columns would write single elements of it.
pub fn stores_sums_first((rows, n): (usize, usize), c_by_columns: bool) -> bool {
    n > NARROW && c_by_columns && rows.saturating_mul(n) > WRITTEN_SINGLY
}

/// What the launches of a product go by.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Bytes of an element of B.
    pub size: usize,
    /// Elements of B are complex.
    pub is_complex: bool,
    /// They are conjugated, which kernels with lanes along the columns do not do.
    pub conjugates_b: bool,
    /// There is a kernel whose lanes have two packs.
    pub has_twins: bool,
    /// Rows of op(A), and their mean length.
    pub rows: i64,
    pub mean: i64,
    /// Tiles along the columns of C that one launch takes.
    pub tiles_at_once: usize,
    pub multiprocessors: i64,
    /// How far the entries are from the diagonal.
    pub reach: &'a Reach,
}

/// Rows of op(B) in memory, from the first column on that a launch takes.
#[derive(Clone, Copy, Debug)]
pub struct RowsOfB {
    /// Of the first element.
    pub address: usize,
    /// Bytes between the rows.
    pub row_bytes: i64,
    /// Elements of a row follow each other.
    pub are_contiguous: bool,
}

impl RowsOfB {
    /// All rows begin at multiples of so many bytes.
    pub fn begin_at(&self, bytes: usize) -> bool {
        self.address % bytes == 0 && self.row_bytes % bytes as i64 == 0
    }
}

/// A kernel of `row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Lanes lie along the columns of C and read B in packs of 16 bytes; which of [`groups`].
    Packs(usize),
    /// The same with two packs a lane, and groups of a warp.
    Twins,
    /// Lanes lie along the columns and read single elements.
    Single,
    /// Lanes lie along the entries of a row, with a sum for each of 4 or 8 columns; 4 or 16 lanes a row.
    Narrow { columns: usize, lanes: usize },
}

/// A launch over some of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub kernel: Kernel,
    pub columns: usize,
    pub tiles: u32,
    /// log2 of the tiles that lie next to each other in the grid.
    pub together: u32,
    /// Loads of B by packs (narrow; wide kernels always do).
    pub packs: bool,
    pub rows_a_warp: i64,
    /// Groups that share a row.
    pub spread: i64,
    /// Rows that a group takes one after another.
    pub rows_a_group: i64,
}

impl Step {
    /// Lanes lie along the columns.
    pub fn is_wide(&self) -> bool {
        !matches!(self.kernel, Kernel::Narrow { .. })
    }
}

impl Plan<'_> {
    /// The launch for the first columns of the `n` that are left: as many as
    /// 16-byte packs make up, and what is left over by lanes along the entries.
    pub fn step(&self, n: usize, b: &RowsOfB) -> Step {
        let size = self.size;
        let aligned = b.begin_at(16);
        let pack = if aligned { (16 / size).max(1) } else { 1 };
        // Wide kernels do not conjugate.
        let few = aligned && packs_of_few(size, n) && !self.conjugates_b;
        // With 32-bit columns the kernels multiply by strides of 32 bits.
        let wide = (n > NARROW || few) && b.are_contiguous && b.row_bytes <= i64::from(i32::MAX);
        if !wide {
            let columns = n.min(NARROW);
            // Half of the lanes of a row have work on a row of mean length.
            let few = self.mean < FEW_ENTRIES;
            let kernel =
                Kernel::Narrow { columns: if columns > 4 { 8 } else { 4 }, lanes: if few { 4 } else { 16 } };
            let rows_a_group = self.rows_a_group(if few { 8 } else { 2 }, 1);
            let rows_a_warp = rows_a_group * if few { 8 } else { 2 };
            let pack = (if columns > 4 { 8 } else { 4 } * size).min(16);
            let packs = !self.is_complex && b.are_contiguous && b.begin_at(pack);
            return Step { kernel, columns, tiles: 1, together: 0, packs, rows_a_warp, spread: 1, rows_a_group };
        }
        let most = self.reach.tile_bytes(LINE).max(LINE);
        let twins = self.has_twins && aligned && n > 32 * pack && GROUPS[3] * 2 * 16 <= most;
        let (kernel, group, packs) = if twins {
            (Kernel::Twins, 32, 2)
        } else if aligned {
            let at = group_of(size, n, most);
            (Kernel::Packs(at), groups(size)[at], 1)
        } else {
            (Kernel::Single, 32, 1)
        };
        let tile = group * pack * packs;
        let columns = (n - n % pack).min(self.tiles_at_once * tile);
        let tiles = columns.div_ceil(tile) as u32;
        let groups = 32 / lanes_of(size, group) as i64;
        let resident = self.multiprocessors * 32;
        let mut spread = 1;
        // More groups a row where there are too few rows for the device, or
        // where rows are so long that the groups finish at different times.
        while spread < groups
            && (self.rows * spread / groups * i64::from(tiles) < resident && self.mean >= 16 * spread
                || self.mean >= 128 * spread)
        {
            spread *= 2;
        }
        // A row of B that begins inside a line of 128 bytes shares lines, and
        // memory's 64 bytes, at each border of tiles: neighbours should find
        // them in L2. Where entries lie far from each other, a tile at a time
        // is what L2 holds.
        let follow =
            (!b.begin_at(LINE) && self.reach.is_near(NEAR)) || self.reach.takes_rows(n.saturating_mul(size));
        let together = if follow { tiles.next_power_of_two().trailing_zeros().min(3) } else { 0 };
        let rows_a_group = if spread == 1 { self.rows_a_group(groups, i64::from(tiles)) } else { 1 };
        let rows_a_warp = groups / spread * rows_a_group;
        Step { kernel, columns, tiles, together, packs: true, rows_a_warp, spread, rows_a_group }
    }

    /// How many short rows a group takes one after another, so that what a warp does before its first row and after
    /// its last one counts less: where warps with `groups` of them have enough to fill the device several times.
    fn rows_a_group(&self, groups: i64, tiles: i64) -> i64 {
        let warps = |rows_a_group: i64| self.rows / (groups * rows_a_group) * tiles;
        let mut rows_a_group = 1;
        while rows_a_group < 4
            && self.mean * rows_a_group * 2 <= 16
            && warps(rows_a_group * 2) >= 3 * warps_at_once(self.multiprocessors)
        {
            rows_a_group *= 2;
        }
        rows_a_group
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::memory::COUNTER_BYTES;

    #[test]
    fn rows_of_like_lengths_need_no_lists() {
        let of = |rows, mean, longest, groups| Limits::new(rows, rows * mean, longest, 8448, groups);
        assert_eq!([of(80_000, 72, 81, 4), of(80_000, 4, 10, 4)], [None; 2]);
        // Others come in the order of their lengths; long ones are shared by a warp's groups, and then a block's.
        let limits = |most, part, alone| Some(Limits { most, part, alone });
        assert_eq!(of(80_000, 4, 11, 4), limits(128, 512, 32));
        assert_eq!(of(20_000, 20, 5000, 1), limits(32, 128, 32));
        // Where the device takes a matrix in many turns, groups take rows of up to twice the mean length.
        assert_eq!(of(80_000, 72, 200, 2), limits(288, 1152, 144));
        assert_eq!(of(1 << 20, 1 << 20, 1 << 21, 1).unwrap().alone, LONG);
        // Few rows leave most of the device without work.
        let few = of(500, 4096, 5000, 4).unwrap();
        assert_eq!((few.alone, few.part), (60, 960));
        assert_eq!(of(500, 100, 110, 4), None);
    }

    #[test]
    fn lists_without_analysis_have_room_for_all() {
        let of = |rows, nnz| Unanalyzed::new((rows, nnz), 32 * 4, 8448, 4).limits;
        assert_eq!(of(60_000, 270_000), Limits { most: 128, part: 512, alone: 32 });
        assert_eq!(of(100_000, 7_000_000).alone, 140);
        for nnz in [1, 100, 1 << 20, 1 << 28, 1 << 33, 1 << 40] {
            for (rows, row_bytes) in [(1, 4), (1000, 128), (nnz / 100, 4096), (nnz / 2, 8192), (nnz, 1 << 20)]
            {
                for groups in [1, 2, 4, 8] {
                    let Unanalyzed { limits, slots, counters, .. } =
                        Unanalyzed::new((rows, nnz), row_bytes, 8448, groups);
                    assert!(limits.alone >= ALONE && limits.most == groups * limits.alone);
                    assert!(limits.part >= limits.most && slots * row_bytes <= UNANALYZED_SUMS);
                    assert!(counters <= (COUNTER_BYTES / 4) as i64 - 8, "{rows} {nnz}");
                }
            }
        }
    }

    #[test]
    fn counters_suffice_for_all_that_is_cut() {
        for nnz in [1 << 20, 1 << 28, 1 << 33, 1 << 40] {
            for rows in [1000, nnz / 100, nnz / 10] {
                for groups in [1, 2, 4, 8] {
                    let limits = Limits::new(rows, nnz, nnz, 8448, groups).unwrap();
                    // Rows that are cut have more than a part; of each 16 parts and of each row a counter.
                    let (cut, parts) = (nnz / limits.part, 2 * nnz / limits.part);
                    assert!(parts / 16 + 2 * cut <= (COUNTER_BYTES / 4) as i64, "{rows} {nnz}");
                    assert!(parts <= 2 * PARTS.max(nnz / 128) && limits.most <= limits.part);
                }
            }
        }
    }

    /// No kernel that reads packs is compiled for a group that no number of columns takes.
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
        // Halves: from 16 columns on in packs of 8, whose smallest group has 32.
        assert_eq!(kernel(2, 8), Kernel::Narrow { columns: 8, lanes: 4 });
        assert_eq!([16, 32, 40, 128, 512].map(|n| kernel(2, n)), [0, 0, 1, 2, 3].map(Kernel::Packs));
        // Singles, four in a pack; doubles, two.
        assert_eq!([8, 12, 20, 64, 128].map(|n| kernel(4, n)), [0, 0, 1, 2, 3].map(Kernel::Packs));
        assert_eq!(kernel(4, 4), Kernel::Narrow { columns: 4, lanes: 4 });
        assert_eq!(kernel(8, 6), Kernel::Packs(0));
        // Rows of 33 singles do not begin at packs; those of 33 of 36 do, and one column is left.
        assert_eq!(kernel(4, 33), Kernel::Single);
        let first = plan(4, 7, &reach).step(33, &rows(36, 4));
        assert_eq!((first.kernel, first.columns, first.tiles), (Kernel::Packs(2), 32, 1));
        let rest = plan(4, 7, &reach).step(1, &RowsOfB { address: (1 << 20) + 128, ..rows(36, 4) });
        assert_eq!((rest.kernel, rest.columns), (Kernel::Narrow { columns: 4, lanes: 4 }, 1));
        assert!(rest.packs && !rest.is_wide() && first.is_wide());
        // Columns of B, and rows too far apart for 32 bits, are read by single elements.
        let columns = RowsOfB { are_contiguous: false, ..rows(1, 4) };
        let step = plan(4, 40, &reach).step(100, &columns);
        assert_eq!((step.kernel, step.columns), (Kernel::Narrow { columns: 8, lanes: 16 }, 8));
        assert!(!step.packs && step.rows_a_warp == 2);
        let far = RowsOfB { row_bytes: 1 << 31, ..rows(64, 4) };
        assert!(!plan(4, 40, &reach).step(64, &far).is_wide());
        // What is conjugated has lanes along the columns only from a copy on.
        let conjugates = Plan { is_complex: true, conjugates_b: true, ..plan(8, 7, &reach) };
        assert!(!conjugates.step(8, &rows(8, 8)).is_wide());
    }

    #[test]
    fn lanes_have_two_packs_of_many_doubles() {
        let reach = any();
        let kernel = |n| plan(8, 7, &reach).step(n, &rows(n, 8)).kernel;
        assert_eq!([66, 128, 64].map(kernel), [Kernel::Twins, Kernel::Twins, Kernel::Packs(3)]);
        // Not where a tile would be more than what L2 holds of the rows of B that are in use.
        let often = Reach::new((200_000, 200_000, 200_000 * 20), 30, counted(100_000), 50 << 20);
        assert_eq!(plan(8, 20, &often).step(128, &rows(128, 8)).kernel, Kernel::Packs(1));
    }

    /// Counts of distances, all of them this one.
    fn counted(distance: i64) -> Vec<u64> {
        let mut bins = vec![0; super::super::reach::BINS];
        bins[((((1 + distance) as f32).to_bits() >> 21) - (127 << 2)) as usize] = 10;
        bins
    }

    #[test]
    fn groups_share_rows_that_are_few_or_long() {
        let reach = any();
        let spread = |rows_of_a, mean, n| {
            let plan = Plan { rows: rows_of_a, ..plan(4, mean, &reach) };
            let step = plan.step(n, &rows(n, 4));
            assert_eq!(step.rows_a_warp * step.spread, groups_a_warp(4, n, mean));
            step.spread
        };
        // Eight groups of 4 lanes: rows enough; few; few and short; long.
        assert_eq!([spread(100_000, 40, 16), spread(1000, 40, 16), spread(1000, 15, 16)], [1, 4, 1]);
        assert_eq!(
            [spread(100_000, 128, 16), spread(100_000, 600, 16), spread(100_000, 600, 128)],
            [2, 8, 2]
        );
    }

    #[test]
    fn tiles_lie_together_where_neighbours_share_lines_of_b() {
        let near = Reach::new((500_000, 500_000, 2_000_000), 5, counted(1000), 50 << 20);
        let together = |reach, n, ld| plan(4, 4, reach).step(n, &rows(ld, 4)).together;
        // A band whose rows of B all stay in L2, whatever their lines; four tiles of 128 columns.
        assert_eq!(
            [together(&near, 512, 512), together(&near, 512, 516), together(&near, 2048, 2048)],
            [2, 2, 3]
        );
        // A wider band, where B begins inside lines.
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
}
