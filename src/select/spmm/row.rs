//! Distribution of rows over the threads of a device for SpMM `row` (kernels/spmm/tasks.cu makes the lists),
//! and choice of the kernel for the columns of C that one launch takes ([`Plan::step`]).

use std::ops::RangeInclusive;

use super::copies::LINE;
use super::reach::Reach;
use crate::problem::SpmmProblem;
use crate::types::{DataType, IndexType, Order};

/// Mean length below which rows count as short: lanes have one pack, and runs several rows.
pub const SHORT: i64 = 20;

/// Maximum length of a run, in entries: 16 to 48 were within 3 % of each other on rmat16 and dc2, but fp64
/// mac_econ, N = 32, takes 66 µs with at most 32 entries and 75 with 64. A run has fewer where the device
/// processes the whole matrix at a time: with 32, fp32 bayer10 took 14.1 µs for N = 32, and 9.7 with a row
/// per run.
const RUN_LENGTH: i64 = 32;
/// Length of the longest row in a run with others; all groups of a warp share a longer row.
const LONGEST_ROW_IN_RUN: i64 = 24;
/// Length of the longest row that is not split, and of the longest part of a longer row, which a block takes.
const LONGEST_UNSPLIT_ROW: i64 = 128;
const LONGEST_PART: i64 = 512;
/// Least and largest number of entries that a group of lanes is given, where rows allow it.
const GROUP_ENTRIES: RangeInclusive<i64> = 16..=128;
/// Length of most rows over the mean length where rows have about the same length.
const EVEN_RATIO: f64 = 1.2;
/// Largest limit where rows are long in the mean: the keys of the window sort hold no more.
const LONGEST_SORTED_ROW: i64 = 4096;

/// Approximate number of parts of split rows at most: the handle has a limited number of counters for them.
const MAX_PARTS: i64 = 1 << 16;
/// Warps of a block.
pub const WARPS: i64 = 4;

/// Lengths, in entries, that decide which list a row goes to; kernels/spmm/tasks.cu has the same structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RowLimits {
    /// Length above which rows are split into parts.
    pub longest_unsplit_row: i64,
    /// Maximum length of a part of a split row.
    pub longest_part: i64,
    /// Length above which several groups of lanes share a row; the others are in runs, each for a group.
    pub longest_row_in_run: i64,
    /// Approximate length of a run of several rows; 0 if runs have one row.
    pub run_length: i64,
    /// Length up to which only two groups share a row; such rows come last in the list of shared rows.
    pub longest_row_of_pair: i64,
}

impl RowLimits {
    /// Limits for rows of these lengths; `None` if they need no lists. `warps` is the number that the device
    /// runs at a time.
    pub fn new(rows: i64, nnz: i64, longest: i64, warps: i64) -> Option<Self> {
        let mean = nnz / rows.max(1);
        let least = nnz / MAX_PARTS;
        if mean < SHORT {
            let run_length = (nnz / warps.max(1)).clamp(1, RUN_LENGTH);
            return Some(RowLimits {
                longest_unsplit_row: LONGEST_UNSPLIT_ROW,
                longest_part: LONGEST_PART.max(least),
                longest_row_in_run: LONGEST_ROW_IN_RUN,
                run_length,
                longest_row_of_pair: 0,
            });
        }
        // Rows that are all long need not be split, since groups share them. But few rows would leave most of
        // the device idle.
        let fair = (nnz / warps.max(1)).max(if rows < warps / 8 { 0 } else { 2 * mean });
        let longest_unsplit_row = fair.clamp(LONGEST_UNSPLIT_ROW, LONGEST_SORTED_ROW);
        // Lists of rows of about one length gain nothing, and would change the rows' order.
        let is_even = longest <= mean + mean / 2 + 4;
        (!is_even || longest > longest_unsplit_row).then_some(RowLimits {
            longest_unsplit_row,
            longest_part: (WARPS * longest_unsplit_row).max(least),
            longest_row_in_run: longest_unsplit_row,
            run_length: 0,
            longest_row_of_pair: 0,
        })
    }

    /// Limits for kernels on aligned rows ([`Kernel::Groups`]). A group takes a row, two or four groups of a
    /// block share one, or all of a block share a part. Limits are low for a small matrix, so that it does
    /// not wait for its longest rows, and higher if the device takes a matrix in many turns.
    pub fn of_groups((rows, nnz): (i64, i64), groups: Groups, multiprocessors: i64) -> Self {
        let mean = nnz as f64 / rows.max(1) as f64;
        let (lanes, is_narrow) = (groups.lanes as i64, groups.lanes <= 4);
        let of_block = THREADS_OF_BLOCK / lanes;
        let clamped = |entries: f64| (entries as i64).clamp(*GROUP_ENTRIES.start(), *GROUP_ENTRIES.end());
        // Uneven rows, some of which are long where the mean is short. Groups of less than a warp load few
        // rows of B at once, so that more of them are needed.
        let groups_at_once = multiprocessors * if lanes < 32 { 128 } else { 32 };
        let least = if is_narrow || rows < groups_at_once / 4 {
            *GROUP_ENTRIES.start()
        } else {
            2 * GROUP_ENTRIES.start()
        };
        let uneven = clamped(nnz as f64 / groups_at_once.max(1) as f64).max(least);
        // Even rows: as many groups share most of them as leave each its fair part, which is twice of what
        // there is for each group, since rows do not divide evenly.
        let at_once = multiprocessors * THREADS_AT_ONCE / lanes;
        let fair = 2.0 * nnz as f64 * groups.tiles as f64 / at_once.max(1) as f64;
        let [two, four, block] = if is_narrow { [0.8, 4.0, 8.0] } else { [1.25, 2.5, 5.0] };
        let longest_row_in_run = match mean / fair.max(1.0) {
            ratio if ratio > block => uneven,
            ratio if ratio > four => uneven.max(clamped(EVEN_RATIO * mean / 4.0)),
            ratio if ratio > two => uneven.max(clamped(EVEN_RATIO * mean / 2.0)),
            _ => uneven.max(clamped(EVEN_RATIO * mean)),
        };
        let longest_unsplit_row = 4 * longest_row_in_run;
        // Small parts for a small matrix, but none that cut rows of about the mean length in two.
        let whole = 1.25 * mean;
        let longest_part = ((clamped(fair) * of_block) as f64).max(whole).min(LONGEST_PART as f64) as i64;
        let longest_part = longest_part.max(longest_unsplit_row).max(nnz / MAX_PARTS);
        RowLimits {
            longest_unsplit_row,
            longest_part,
            longest_row_in_run,
            run_length: 0,
            longest_row_of_pair: 2 * longest_row_in_run,
        }
    }
}

/// Lists of rows made without a plan, when only their mean length is known: `rows_a_run` neighbours form a
/// run, and the rows of runs with more than `limits.longest_row_in_run` entries are listed as shared rows or in
/// parts (kernels/spmm/tasks.cu spmm_tasks_unanalyzed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanalyzed {
    pub limits: RowLimits,
    pub rows_a_run: i64,
    /// Maximum number of blocks that both lists need.
    pub blocks: i64,
    /// Maximum number of elements of the lists: rows that the groups of a warp share, parts of split rows,
    /// partial sums, and counters.
    pub shared_rows: i64,
    pub parts: i64,
    pub slots: i64,
    pub counters: i64,
}

/// Approximate number of split rows without a plan at most: each has counters of its own.
const UNANALYZED_CUT: i64 = 1 << 14;
/// Maximum number of runs whose rows are listed for warps without a plan.
const UNANALYZED_RUNS: i64 = 1 << 17;
/// Maximum number of bytes of all partial sums.
const UNANALYZED_SUMS: i64 = 16 << 20;
/// Blocks per multiprocessor that take lists without a plan: there is room for more, where other blocks
/// begin.
const LIST_BLOCKS: i64 = 6;
/// Blocks per multiprocessor where all rows are in the lists, because they are few: as many as there is room
/// for.
const MOST_LIST_BLOCKS: i64 = 8;
/// Maximum number of rows of a run, as in the kernels.
const ROWS_OF_A_RUN: i64 = 8;

impl Unanalyzed {
    /// Lists for a matrix of this size, and rows of C whose sums take `row_bytes`. `warps` is the number that
    /// the device runs at a time.
    pub fn new(rows: i64, nnz: i64, row_bytes: i64, warps: i64) -> Self {
        let mean = nnz / rows.max(1);
        // 2 · nnz / part partial sums take at most UNANALYZED_SUMS bytes.
        let sums = (2.0 * nnz as f64 / UNANALYZED_SUMS as f64 * row_bytes as f64).ceil() as i64;
        let least = (nnz / UNANALYZED_CUT).max(sums);
        let (longest_unsplit_row, longest_row_in_run, rows_a_run) = if mean < SHORT {
            let run_length = (nnz / warps.max(1)).clamp(1, RUN_LENGTH);
            // A power of two, so that no run is spread over two warps of the kernel.
            let rows_a_run = 1 << (run_length / mean.max(1)).clamp(1, ROWS_OF_A_RUN).ilog2();
            let longest_row_in_run =
                if rows_a_run == 1 { LONGEST_ROW_IN_RUN } else { LONGEST_ROW_IN_RUN.max(3 * run_length) };
            (LONGEST_UNSPLIT_ROW, longest_row_in_run.max(nnz / UNANALYZED_RUNS), rows_a_run)
        } else {
            let fair = (nnz / warps.max(1)).max(if rows < warps / 8 { 0 } else { 2 * mean });
            let longest_unsplit_row = fair.clamp(LONGEST_UNSPLIT_ROW, LONGEST_SORTED_ROW);
            (longest_unsplit_row, longest_unsplit_row, 1)
        };
        let longest_part = (WARPS * longest_unsplit_row).max(least);
        let limits = RowLimits {
            longest_unsplit_row,
            longest_part,
            longest_row_in_run,
            run_length: 0,
            longest_row_of_pair: 0,
        };
        let slots = 2 * (nnz / longest_part);
        // A run with longest_row_in_run + 1 entries lists at most `rows_a_run` shared rows, each of which takes
        // a warp, a quarter of a block. A run with a row of longest_unsplit_row + 1 entries lists a part, which
        // takes a block, and its other rows.
        // Longer rows make fewer blocks per entry, so that these are the most blocks that `nnz` entries make.
        let shared_blocks = (nnz / (longest_row_in_run + 1)).saturating_mul(rows_a_run) / WARPS;
        let part_blocks = (nnz / (longest_unsplit_row + 1)).saturating_mul(WARPS + rows_a_run - 1) / WARPS;
        Unanalyzed {
            limits,
            rows_a_run,
            // The parts and the shared rows may each leave one block partly filled.
            blocks: shared_blocks.max(part_blocks) + 2,
            shared_rows: (nnz / (longest_row_in_run + 1)).saturating_mul(rows_a_run).min(rows),
            parts: nnz / (longest_unsplit_row + 1) + nnz / longest_part,
            slots,
            // One for each 16 parts of a row, and two more for each split row.
            counters: slots / 16 + 2 * (nnz / (longest_part + 1)),
        }
    }

    /// Number of blocks that take the lists, for this number of rows in all.
    pub fn list_blocks(&self, rows: i64, multiprocessors: i64) -> i64 {
        // If rows are few, all of them are in the lists.
        let each = if rows < multiprocessors * LIST_BLOCKS { MOST_LIST_BLOCKS } else { LIST_BLOCKS };
        self.blocks.min(each * multiprocessors)
    }

    /// Returns whether no row can be long enough for the lists.
    pub fn has_no_lists(&self) -> bool {
        self.shared_rows == 0 && self.parts == 0
    }
}

/// Groups of lanes that compute a product with [`Kernel::Groups`]: the lanes of each, and the number of tiles
/// along the columns of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    pub lanes: usize,
    pub tiles: i64,
}

/// Approximate number of threads of the kernels with groups that a multiprocessor runs at one time, and number of
/// threads of a block.
const THREADS_AT_ONCE: i64 = 1024;
const THREADS_OF_BLOCK: i64 = 32 * WARPS;

/// Approximate number of warps that a device runs at one time.
pub fn warps_at_once(multiprocessors: i64) -> i64 {
    multiprocessors * 64
}

/// Maximum number of columns for which lanes may lie along the entries of a row, with a sum per column: for
/// more columns, lanes along the columns read whole sectors of B.
pub const NARROW: usize = 8;

/// Numbers of lanes of a group in the wide kernels.
pub const GROUPS: [usize; 4] = [4, 8, 16, 32];

/// Numbers of lanes of the groups for elements of `size` bytes: those that take more columns than a narrow kernel of four.
pub fn groups(size: usize) -> &'static [usize] {
    if GROUPS[0] * 16 > NARROW / 2 * size {
        &GROUPS
    } else {
        &GROUPS[1..]
    }
}

/// Returns whether lanes lie along a few columns of elements of `size` bytes that are read in packs: at least
/// half of the smallest group's lanes have packs, and no columns are left over.
fn packs_of_few(size: usize, n: usize) -> bool {
    let pack = (16 / size).max(1);
    n % pack == 0 && n > NARROW / 2 && 2 * n >= GROUPS[0] * pack
}

/// Index in [`groups`] of the group for `n` columns in packs: the smallest that covers them, or the largest
/// whose tiles have at most `most` bytes of a row of B.
fn group_of(size: usize, n: usize, most: usize) -> usize {
    let (groups, pack) = (groups(size), (16 / size).max(1));
    let mut at = groups.iter().position(|group| group * pack >= n).unwrap_or(groups.len() - 1);
    while at > 0 && groups[at] * 16 > most {
        at -= 1;
    }
    at
}

/// Maximum number of bytes of copies of B and of sums for C without a plan, with as many columns at a time as
/// fit.
pub const COPIED_WITHOUT_PLAN: usize = 64 << 20;
/// Minimum number of columns of copies of B and of sums for C at a time.
pub const LEAST_COPIED: usize = 32;

/// Next smaller number of columns to copy at a time, if memory lacks for `columns`: half, rounded up to a multiple of the least.
pub fn fewer_copied(columns: usize) -> usize {
    columns.div_ceil(2).next_multiple_of(LEAST_COPIED).min(columns - 1).max(1)
}

/// Maximum number of elements of a C with contiguous columns that lanes along its columns write one by one:
/// L2 combines them. On the 28 real matrices, fp32 and fp64, N = 32 and 128, this gained 8 % in the mean up
/// to this size, and lost 10 to 50 % for some millions of elements and more.
const WRITTEN_SINGLY: usize = 1 << 19;

/// Returns whether sums of `rows` × `n` are first stored in the workspace, and then written to a C whose
/// columns are contiguous: lanes along the columns would write single elements of it.
pub fn stores_sums_first((rows, n): (usize, usize), c_by_columns: bool) -> bool {
    n > NARROW && c_by_columns && rows.saturating_mul(n) > WRITTEN_SINGLY
}

/// Parameters that determine the launches of a product.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Bytes of an element of B.
    pub size: usize,
    /// True if elements of B are complex.
    pub is_complex: bool,
    /// True if B is conjugated, which kernels with lanes along the columns cannot do.
    pub conjugates_b: bool,
    /// True if there is a kernel whose lanes have two packs.
    pub has_twins: bool,
    /// Rows of op(A), and their mean length.
    pub rows: i64,
    pub mean: i64,
    /// True if runs have several rows ([`RowLimits::run_length`]).
    pub is_packed: bool,
    /// True if lists are those of [`RowLimits::of_groups`], and rows of C are aligned to 16 bytes.
    pub has_groups: bool,
    /// Columns of A.
    pub cols: i64,
    /// Maximum number of tiles along the columns of C that one launch takes.
    pub tiles_at_once: usize,
    pub multiprocessors: i64,
    /// Distances of the entries from the diagonal.
    pub reach: &'a Reach,
}

/// Location of the rows of op(B), from the first column on that a launch takes.
#[derive(Clone, Copy, Debug)]
pub struct RowsOfB {
    /// Address of the first element.
    pub address: usize,
    /// Bytes between the rows.
    pub row_bytes: i64,
    /// True if the elements of a row are contiguous.
    pub are_contiguous: bool,
}

impl RowsOfB {
    /// Returns whether all rows begin at multiples of this number of bytes.
    pub fn begin_at(&self, bytes: usize) -> bool {
        self.address % bytes == 0 && self.row_bytes % bytes as i64 == 0
    }
}

/// Kernel of `row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Groups of lanes lie along the columns, with one or two packs of 16 bytes per lane, on rows of B and C
    /// that are aligned to packs, with lists of [`RowLimits::of_groups`].
    Groups { lanes: usize, packs: usize },
    /// Lanes lie along the columns of C and read B in packs of 16 bytes; the number is an index in
    /// [`groups`].
    Packs(usize),
    /// Lanes lie along the columns of C in groups of a warp, with two packs of 16 bytes each.
    Twins,
    /// Lanes lie along the columns and read single elements.
    Single,
    /// 4 or 16 lanes lie along the entries of a row, with a sum for each of 4 or 8 columns.
    Narrow { columns: usize, lanes: usize },
}

/// Launch for some of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub kernel: Kernel,
    pub columns: usize,
    pub tiles: u32,
    /// log2 of the number of tiles that are neighbours in the grid.
    pub together: u32,
    /// True if a narrow kernel loads B in packs; wide kernels always do.
    pub packs: bool,
    /// Number of runs, or rows, that a warp takes at a time.
    pub runs_a_warp: i64,
    /// Number of groups that share a run.
    pub spread: i64,
}

impl Step {
    /// Returns whether lanes lie along the columns.
    pub fn is_wide(&self) -> bool {
        !matches!(self.kernel, Kernel::Narrow { .. })
    }
}

/// Group sizes of the kernels for elements of `size` bytes, in order of preference: lanes of a group, and
/// packs of 16 bytes per lane. kernels/spmm/row_groups.cu has the same list. Two packs per lane halve what
/// lanes exchange for a product.
pub fn group_kinds(size: usize) -> &'static [(usize, usize)] {
    match size {
        8 => &[(32, 2), (16, 2), (8, 2), (32, 1), (16, 1), (8, 1), (4, 1)],
        4 => &[(16, 2), (8, 2), (32, 1), (16, 1), (8, 1), (4, 1), (2, 1)],
        _ => &[(32, 1), (16, 1), (8, 1), (4, 1)],
    }
}

/// Properties of the rows of A, and of the device, by which the size of a group is chosen.
#[derive(Clone, Copy, Debug)]
struct Rows {
    /// Number of rows.
    count: i64,
    /// Mean number of entries.
    mean: i64,
    multiprocessors: i64,
}

impl Rows {
    fn new((count, nnz): (i64, i64), multiprocessors: i64) -> Self {
        Rows { count, mean: nnz / count.max(1), multiprocessors }
    }

    /// Returns whether rows suffice for many turns of a device: four for each group of 16 lanes that it runs
    /// at a time, 64 a multiprocessor.
    fn are_many(&self) -> bool {
        self.count >= 256 * self.multiprocessors
    }

    /// Returns whether rows of doubles with `packs` packs are shared by several groups of 16 lanes rather
    /// than taken by one of a warp. On short rows more entries are under way then (docs/algorithms/row.md,
    /// "Several groups on short rows of doubles").
    fn are_short(&self, packs: usize) -> bool {
        let tiles = packs as i64 / SHARED_TILE;
        tiles > 1
            && self.mean < SHORTEST_OF_WARPS
            && self.count.saturating_mul(tiles) >= 160 * self.multiprocessors
    }
}

/// Packs of a tile of 16 lanes with two each.
const SHARED_TILE: i64 = 32;
/// Minimum mean length for which a group of a warp takes rows of doubles.
const SHORTEST_OF_WARPS: i64 = 16;

/// First of [`group_kinds`] whose tiles have at most `most` bytes of a row of B of `packs` packs, and more
/// than half of whose lanes have work. Two packs per lane are taken only if no columns are left over; for
/// doubles, where they leave room for fewer groups, only in groups of a warp unless rows are short, in groups
/// of 16 lanes if they are, and in all smaller ones if there are rows for many turns of the device.
fn group_kind(size: usize, packs: usize, most: usize, rows: &Rows) -> (usize, usize) {
    let kinds = group_kinds(size);
    let is_shared = size == 8 && rows.are_short(packs);
    let fits = |&&(lanes, each): &&(usize, usize)| {
        let tile = lanes * each;
        let has_room = each == 1
            || size < 8
            || (lanes == 32 && !is_shared)
            || (lanes == 16 && is_shared)
            || (lanes < 32 && rows.are_many());
        tile * 16 <= most && tile < 2 * packs && (each == 1 || packs % tile == 0) && has_room
    };
    kinds.iter().find(fits).copied().unwrap_or(kinds[kinds.len() - 1])
}

/// Minimum mean length of rows for which groups take [`NARROW`] columns: blocks share such rows, of a matrix that
/// the device takes in few turns.
const LONG_OF_FEW_COLUMNS: i64 = 128;
/// Maximum number of entries for that.
const MOST_OF_FEW_COLUMNS: i64 = 400_000;
/// Largest mean length for which each group takes rows of its own: neighbouring groups on a longer row read
/// the same rows of B, which gains more. The second limit is for groups of a warp, of which there are few.
const LONGEST_OF_GROUPS: i64 = 256;
const LONGEST_OF_WARPS: i64 = 100;
/// Largest number of entries for which rows may be of any length, since the device takes them all in few
/// turns: for halves, and for larger types.
const FEW_ENTRIES: [i64; 2] = [400_000, 300_000];
/// Minimum mean length for which doubles, many halves, and groups of a warp take rows of their own: shorter
/// rows are taken several at a time.
const LEAST_OF_GROUPS: i64 = 5;

/// Returns whether an analyzed plan is for [`Kernel::Groups`], with column indices of this width, and so many
/// rows and entries, in the rows' own order. Alignment of the rows of B and C is checked at execution: without
/// it, other kernels take the lists.
pub fn is_for_groups(problem: &SpmmProblem, width: IndexType, counts: (i64, i64)) -> bool {
    let x = problem.types.x;
    let b_by_rows = (problem.b_order == Order::Row) != problem.op_b.transposes();
    // A B by columns is copied to rows, but for few columns of C.
    let has_rows = b_by_rows || problem.columns() > NARROW;
    let may = width == IndexType::I32 && problem.c_order == Order::Row && has_rows;
    may && suits_groups(x, problem.n_hint, counts)
}

/// Returns whether `n` columns of B with elements of this type, and so many rows and entries of A, suit such plans.
pub fn suits_groups(x: DataType, n: i64, (rows, nnz): (i64, i64)) -> bool {
    let (size, n) = (x.size(), n.max(1) as usize);
    if x.is_complex() {
        return false;
    }
    let pack = 16 / size;
    if n <= NARROW {
        let are_long = nnz >= LONG_OF_FEW_COLUMNS * rows.max(1);
        return n == NARROW && size >= 4 && are_long && nnz <= MOST_OF_FEW_COLUMNS;
    }
    if n % pack != 0 {
        return false;
    }
    let of_many_long_rows = Rows { count: i64::MAX, mean: i64::MAX, multiprocessors: 1 };
    let (lanes, _) = group_kind(size, n / pack, usize::MAX, &of_many_long_rows);
    let mean = nnz / rows.max(1);
    let longest = if lanes < 32 { LONGEST_OF_GROUPS } else { LONGEST_OF_WARPS };
    let takes_several = lanes == 32 || size == 8 || (size == 2 && n > 64);
    (mean <= longest || nnz <= FEW_ENTRIES[usize::from(size > 2)])
        && (mean >= LEAST_OF_GROUPS || !takes_several)
}

/// Groups of such a plan, for `n` columns of elements of `size` bytes, and so many rows and entries.
pub fn groups_of(size: usize, n: usize, counts: (i64, i64), multiprocessors: i64) -> Groups {
    let packs = n / (16 / size);
    let (lanes, each) = group_kind(size, packs, usize::MAX, &Rows::new(counts, multiprocessors));
    Groups { lanes, tiles: packs.div_ceil(lanes * each) as i64 }
}

impl Plan<'_> {
    /// log2 of the number of tiles that are neighbours in the grid, in a launch for `n` columns. A row of B
    /// that begins inside a cache line of 128 bytes shares lines, and memory's 64 bytes, at each border of
    /// tiles: neighbouring tiles should find them in L2. Where entries are far apart, L2 holds only one tile
    /// at a time.
    fn together(&self, tiles: u32, n: usize, b: &RowsOfB) -> u32 {
        let follow = (!b.begin_at(LINE) && self.reach.is_near(SHORT))
            || self.reach.takes_rows(n.saturating_mul(self.size));
        if follow {
            tiles.next_power_of_two().trailing_zeros().min(3)
        } else {
            0
        }
    }

    /// Returns whether 32 bits can number the packs of B.
    fn numbers_packs(&self, b: &RowsOfB) -> bool {
        self.cols.saturating_mul(b.row_bytes / 16) <= i64::from(u32::MAX)
    }

    /// Launch for the first columns of the `n` that are left: as many as 16-byte packs cover; lanes along the
    /// entries take the rest.
    pub fn step(&self, n: usize, b: &RowsOfB) -> Step {
        let size = self.size;
        let aligned = b.begin_at(16);
        let pack = if aligned { (16 / size).max(1) } else { 1 };
        // Wide kernels cannot conjugate.
        let few = aligned && packs_of_few(size, n) && !self.conjugates_b;
        // With 32-bit columns the kernels multiply by strides of 32 bits.
        let wide = (n > NARROW || few) && b.are_contiguous && b.row_bytes <= i64::from(i32::MAX);
        if !wide {
            let columns = n.min(NARROW);
            // With fewer lanes, half of the lanes of a row have work on a row of mean length.
            let few = self.mean < 16;
            let kernel =
                Kernel::Narrow { columns: if columns > 4 { 8 } else { 4 }, lanes: if few { 4 } else { 16 } };
            let runs_a_warp = if few { 8 } else { 2 };
            let pack = (if columns > 4 { 8 } else { 4 } * size).min(16);
            let packs = !self.is_complex && b.are_contiguous && b.begin_at(pack);
            return Step { kernel, columns, tiles: 1, together: 0, packs, runs_a_warp, spread: 1 };
        }
        let most = self.reach.tile_bytes(LINE).max(LINE);
        if self.has_groups && aligned && n % pack == 0 && self.numbers_packs(b) {
            let rows = Rows { count: self.rows, mean: self.mean, multiprocessors: self.multiprocessors };
            let (lanes, packs) = group_kind(size, n / pack, most, &rows);
            let tile = lanes * packs * pack;
            let columns = n.min(self.tiles_at_once * tile);
            let tiles = columns.div_ceil(tile) as u32;
            let (kernel, together) = (Kernel::Groups { lanes, packs }, self.together(tiles, n, b));
            return Step {
                kernel,
                columns,
                tiles,
                together,
                packs: true,
                runs_a_warp: 32 / lanes as i64,
                spread: 1,
            };
        }
        let twins =
            self.has_twins && aligned && n > 32 * pack && self.mean >= SHORT && GROUPS[3] * 2 * 16 <= most;
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
        let groups = 32 / group as i64;
        let resident = self.multiprocessors * 32;
        let mut spread = 1;
        // More groups share a row if rows are too few for the device, or so long that the groups would finish
        // at different times.
        while !self.is_packed
            && spread < groups
            && (self.rows * spread / groups * i64::from(tiles) < resident && self.mean >= 16 * spread
                || self.mean >= 128 * spread)
        {
            spread *= 2;
        }
        let together = self.together(tiles, n, b);
        Step { kernel, columns, tiles, together, packs: true, runs_a_warp: groups / spread, spread }
    }
}

#[cfg(test)]
mod tests;
