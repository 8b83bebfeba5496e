//! Division of rows and entries among the warps of a launch for SpMM `row` without a plan, where rows of B and C are
//! aligned or columns of both are contiguous (kernels/spmm/row_merge.cuh): which products it is for, and how much a
//! warp takes.
//!
//! The constants are from measurements of the 28 real matrices and the gallery on an H200, those for columns of the real
//! matrices alone (docs/algorithms/row.md, "Without lists" and "Few entries by columns").

use super::row::{NARROW, WARPS};
use super::tiles;
use crate::types::DataType;

/// Largest number of rows and entries of a warp: so many, and so many more for each group of lanes. With more, the
/// last warps leave a large matrix's multiprocessors idle; with fewer, searches cost more. (A huge matrix has more, for
/// the sake of [`MOST_SUMS`] and of the handle's counters.)
const MOST_OF_WARP: i64 = 128;
const MOST_OF_GROUP: i64 = 16;
/// Least number of rows and entries of a warp, and of a group of lanes.
const LEAST_OF_WARP: i64 = 16;
const LEAST_OF_GROUP: i64 = 2;
/// A row of up to this many entries for each group of lanes is never split: adding its partial sums would take longer.
const UNSPLIT_OF_GROUP: i64 = 35;
/// Maximum number of bytes of all partial sums.
const MOST_SUMS: i64 = 16 << 20;
/// Largest number of rows and entries together, which kernels number by 32 bits, with room for what the last warp's
/// part would have beyond the end.
const MOST_OF_PATH: i64 = i32::MAX as i64 - (1 << 20);

/// Mean length of rows above which lists of parts for blocks are faster: for few entries, up to this number of them,
/// and for more.
const LONGEST_MEAN: [i64; 2] = [1024, 256];
const FEW_ENTRIES: i64 = 1 << 19;
/// Mean length below which rows of B of 256 bytes and more are faster through a group of lanes for several rows.
const SHORTEST_MEAN: i64 = 4;
/// Bytes of a row of B up to which lanes along the entries of long rows are faster, the mean length of such rows, and
/// the number of entries from which on this is so.
const NARROWEST_BYTES: i64 = 64;
const LONG_MEAN: i64 = 16;
const ENTRIES_OF_LONG: i64 = 7 << 18;
/// Number of entries above which lists are faster for doubles, and for rows of B of 256 bytes and more.
const MOST_ENTRIES: i64 = 1 << 24;
/// Bytes of a row of B above which the number of entries is limited further.
const NARROW_BYTES: i64 = 256;
/// That limit where a row of B has twice as many bytes: for rows of less than [`LONG_MEAN`] entries in the mean, for which
/// it falls with the bytes, and for longer rows, for which it falls with their square.
const ENTRIES_OF_WIDE: [i64; 2] = [1 << 18, 1 << 19];

/// Lanes of a group and columns of a tile of the kernels for contiguous columns (kernels/spmm/row_merge_columns.cu).
pub const KINDS_OF_COLUMNS: [(usize, usize); 7] = [(4, 8), (8, 8), (16, 8), (4, 4), (8, 4), (4, 2), (8, 2)];
/// Mean lengths of rows up to which these kernels have groups of four and of eight lanes. Longer rows have groups of 16
/// with tiles of eight columns, and of eight with narrower ones.
const MEANS_OF_LANES: [i64; 2] = [9, 64];
/// Numbers of entries up to which these kernels are faster than what takes their place, for up to 8, 16, 24 and 32
/// columns: single elements of B by lists of rows up to 8, copies of B and C to rows and back for more.
const MOST_OF_COLUMNS: [i64; 4] = [1 << 20, 1 << 18, 3 << 16, 3 << 16];

/// Tile of C that a group of lanes computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tile {
    /// The lanes lie along the columns, so many packs of 16 bytes a lane; rows of B and C are aligned.
    Rows {
        /// Packs of a lane.
        packs: usize,
    },
    /// The lanes lie along the entries of a row of A; columns of B and of C are contiguous.
    Columns {
        /// Columns of the tile.
        columns: usize,
    },
}

/// How the warps of a launch divide rows and entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Lanes of a group, and their tile.
    pub lanes: usize,
    pub tile: Tile,
    /// Number of columns of C, and of the tiles that a launch takes side by side.
    pub n: usize,
    pub tiles: u32,
    /// Number of sums of a row in the workspace.
    pub sums_of_row: usize,
    /// Rows and entries of a warp together, and number of warps.
    pub work: i32,
    pub warps: i32,
    /// Length of the longest row that is not split.
    pub longest_unsplit_row: i32,
}

/// Lanes of a group and packs of a lane of the kernels for elements of `size` bytes.
pub fn kinds(size: usize) -> &'static [(usize, usize)] {
    match size {
        8 => &[(4, 1), (8, 1), (16, 1), (16, 2)],
        4 => &[(2, 1), (4, 1), (8, 1), (8, 2)],
        _ => &[(4, 1), (8, 1), (16, 1)],
    }
}

/// Returns the kernel for `n` columns of B: the smallest group that covers them, or the largest, with two packs a lane if
/// no columns are left over. `None` if packs do not fill half of the smallest group's lanes, or if columns are left
/// over that do not fill a pack.
fn kind(size: usize, n: usize) -> Option<(usize, usize)> {
    let (kinds, pack) = (kinds(size), 16 / size);
    if n <= NARROW / 2 || n % pack != 0 || 2 * n < kinds[0].0 * pack {
        return None;
    }
    let of_two = kinds.iter().copied().find(|&(lanes, packs)| packs > 1 && n % (lanes * packs * pack) == 0);
    let single = || kinds.iter().copied().filter(|&(_, packs)| packs == 1);
    of_two.or_else(|| single().find(|&(lanes, _)| lanes * pack >= n)).or_else(|| single().next_back())
}

/// Returns whether rows of this number and entries are faster without lists, for `n` columns of elements of `size`
/// bytes.
fn suits(size: usize, n: usize, (rows, nnz): (i64, i64)) -> bool {
    let row_bytes = (n * size) as i64;
    let mean = nnz / rows.max(1);
    let are_too_many = nnz > MOST_ENTRIES && (size == 8 || row_bytes >= NARROW_BYTES);
    if mean > LONGEST_MEAN[usize::from(nnz > FEW_ENTRIES)] || are_too_many {
        return false;
    }
    if row_bytes <= NARROWEST_BYTES {
        return mean < LONG_MEAN || nnz <= ENTRIES_OF_LONG;
    }
    if row_bytes >= NARROW_BYTES && mean < SHORTEST_MEAN {
        return false;
    }
    let wide = row_bytes as f64 / (2 * NARROW_BYTES) as f64;
    let most = match mean < LONG_MEAN {
        true => ENTRIES_OF_WIDE[0] as f64 / wide,
        false => ENTRIES_OF_WIDE[1] as f64 / wide.powi(2),
    };
    row_bytes <= NARROW_BYTES || nnz as f64 <= most
}

/// Number of blocks of these kernels that a multiprocessor of an H100 runs at one time, at the least (`blocks` in
/// kernels/spmm/row_merge.cu and row_merge_columns.cu; other architectures run one or two fewer). Blocks for which there is no room would take a
/// turn of their own.
fn blocks_at_once(size: usize, tile: Tile) -> i64 {
    match (size, tile) {
        (8, Tile::Columns { .. }) => 8,
        (_, Tile::Columns { .. }) => 9,
        (8, Tile::Rows { packs: 1 }) => 7,
        (4, Tile::Rows { packs: 1 }) => 9,
        (4, Tile::Rows { .. }) => 6,
        _ => 5,
    }
}

/// Returns the columns of a tile for `n` contiguous columns: no more than there are, so that the last one of several
/// tiles is whole, but 4 for 3. `None` for a single column.
fn tile_of_columns(n: usize) -> Option<usize> {
    match n {
        8.. => Some(8),
        3.. => Some(4),
        2 => Some(2),
        _ => None,
    }
}

impl Path {
    /// Divides a matrix of so many rows and entries for `n` columns of B with elements of type `x`, and sums of
    /// `sum_size` bytes. `None` if other kernels are faster, or if there is no such kernel.
    pub fn new(
        (x, sum_size): (DataType, usize),
        n: usize,
        counts: (i64, i64),
        multiprocessors: i64,
    ) -> Option<Self> {
        let may = !x.is_complex() && suits(x.size(), n, counts);
        if may {
            Path::for_any((x, sum_size), n, counts, multiprocessors)
        } else {
            None
        }
    }

    /// Divides a matrix whether or not other kernels are faster.
    pub fn for_any(
        (x, sum_size): (DataType, usize),
        n: usize,
        (rows, nnz): (i64, i64),
        multiprocessors: i64,
    ) -> Option<Self> {
        let (lanes, packs) = kind(x.size(), n)?;
        let tiles = n.div_ceil(lanes * packs * (16 / x.size()));
        let tile = Tile::Rows { packs };
        Path::divide((x.size(), sum_size), (lanes, tile), (n, tiles, n), (rows, nnz), multiprocessors)
    }

    /// Divides a matrix for a B and a C whose columns are contiguous. `None` if other kernels are faster, or if there
    /// is no such kernel.
    pub fn of_columns(
        (x, sum_size): (DataType, usize),
        n: usize,
        counts: (i64, i64),
        multiprocessors: i64,
    ) -> Option<Self> {
        let most = n.div_ceil(8).checked_sub(1).and_then(|eights| MOST_OF_COLUMNS.get(eights));
        if x.is_complex() || most.is_none_or(|&most| counts.1 > most) {
            return None;
        }
        Path::for_any_columns((x, sum_size), n, counts, multiprocessors)
    }

    /// Divides a matrix for a B and a C whose columns are contiguous, whether or not other kernels are faster.
    /// `None` for a single column.
    pub fn for_any_columns(
        (x, sum_size): (DataType, usize),
        n: usize,
        (rows, nnz): (i64, i64),
        multiprocessors: i64,
    ) -> Option<Self> {
        let (of_tile, mean) = (tile_of_columns(n)?, nnz / rows.max(1));
        let widest = if of_tile == 8 { 16 } else { 8 };
        let lanes = [4, 8, widest][MEANS_OF_LANES.iter().filter(|&&most| mean > most).count()];
        let tiles = n.div_ceil(of_tile);
        let (tile, columns) = (Tile::Columns { columns: of_tile }, (n, tiles, tiles * of_tile));
        Path::divide((x.size(), sum_size), (lanes, tile), columns, (rows, nnz), multiprocessors)
    }

    /// Divides a matrix for these tiles, with so many columns, tiles, and sums of a row in the workspace.
    fn divide(
        (size, sum_size): (usize, usize),
        (lanes, tile): (usize, Tile),
        (n, tiles, sums_of_row): (usize, usize, usize),
        (rows, nnz): (i64, i64),
        multiprocessors: i64,
    ) -> Option<Self> {
        let length = rows.checked_add(nnz).filter(|&length| length <= MOST_OF_PATH)?;
        let groups = 32 / lanes as i64;
        let at_once = (multiprocessors * blocks_at_once(size, tile) * WARPS).max(1);
        let shared = length.saturating_mul(tiles as i64).saturating_add(at_once - 1) / at_once;
        let work =
            shared.min(MOST_OF_WARP + MOST_OF_GROUP * groups).max(LEAST_OF_WARP.max(LEAST_OF_GROUP * groups));
        // Partial sums and counters of a split row are numbered by its warps: 1.5 slots a warp, counted as two, and half
        // a counter.
        let by_sums = MOST_SUMS / (2 * (sums_of_row * sum_size) as i64);
        let by_counters = 2 * (tiles::COUNTERS / tiles) as i64 - 4;
        let work = work.max(length / by_sums.min(by_counters).max(1) + 1);
        Some(Path {
            lanes,
            tile,
            n,
            sums_of_row,
            tiles: u32::try_from(tiles).ok().filter(|&tiles| tiles as usize <= tiles::MOST)?,
            work: i32::try_from(work).ok()?,
            warps: ((length + work - 1) / work) as i32,
            longest_unsplit_row: i32::try_from((2 * work).max(UNSPLIT_OF_GROUP * groups)).ok()?,
        })
    }

    /// Bytes of the partial sums of split rows, with `size` bytes a sum.
    pub fn partial_bytes(&self, size: usize) -> usize {
        self.slots().saturating_mul(self.sums_of_row).saturating_mul(size)
    }

    /// Number of slots for partial sums of a row: one for each warp, and one for each row that is split, of which two
    /// have their starts at least two warps apart.
    fn slots(&self) -> usize {
        self.warps as usize + self.counters()
    }

    /// Number of counters for each tile.
    fn counters(&self) -> usize {
        self.warps as usize / 2 + 1
    }

    /// Number of blocks of a launch.
    pub fn blocks(&self) -> i64 {
        (i64::from(self.warps) + WARPS - 1) / WARPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: i64 = 132;

    fn path(x: DataType, n: usize, counts: (i64, i64)) -> Option<Path> {
        Path::new((x, x.size().max(4)), n, counts, H100)
    }

    #[test]
    fn groups_cover_the_columns() {
        let kinds_of = |size, columns: &[usize]| columns.iter().map(|&n| kind(size, n)).collect::<Vec<_>>();
        assert_eq!(kinds_of(4, &[4, 6, 8, 12, 16]), [None, None, Some((2, 1)), Some((4, 1)), Some((4, 1))]);
        assert_eq!(kinds_of(4, &[32, 64, 96, 128]), [Some((8, 1)), Some((8, 2)), Some((8, 1)), Some((8, 2))]);
        assert_eq!(kinds_of(8, &[4, 6, 8, 16]), [None, Some((4, 1)), Some((4, 1)), Some((8, 1))]);
        assert_eq!(
            kinds_of(8, &[32, 40, 64, 128]),
            [Some((16, 1)), Some((16, 1)), Some((16, 2)), Some((16, 2))]
        );
        assert_eq!(
            kinds_of(2, &[8, 16, 64, 128, 512]),
            [None, Some((4, 1)), Some((8, 1)), Some((16, 1)), Some((16, 1))]
        );
    }

    #[test]
    fn small_matrices_give_all_warps_work_and_large_ones_are_bounded() {
        let small = path(DataType::R32F, 32, (13_436, 94_926)).unwrap();
        assert_eq!((small.work, small.warps), (23, 4712));
        assert_eq!(small.longest_unsplit_row, 140);
        let large = path(DataType::R64F, 32, (325_557, 3_216_152)).unwrap();
        assert_eq!((large.work, large.tiles), (160, 1));
        // Eight sums of doubles take 64 bytes, of which 16 MiB hold two for each of 131,072 warps.
        let huge = Path::for_any((DataType::R64F, 8), 8, (4_000_000, 200_000_000), H100).unwrap();
        assert!(huge.partial_bytes(8) <= (16 << 20), "{}", huge.partial_bytes(8));
        assert!(path(DataType::R64F, 8, (1 << 30, 1 << 30)).is_none());
        assert!(path(DataType::C32F, 8, (1 << 10, 1 << 15)).is_none());
    }

    /// A row that is split begins in a warp of its own: the counters are numbered so.
    #[test]
    fn counters_and_sums_have_room_whatever_the_shape() {
        for size in [2, 4, 8] {
            let x = [DataType::R16F, DataType::R32F, DataType::R64F][size / 4];
            for n in [2, 3, 4, 7, 16, 32, 64, 512, 4096, 1 << 16] {
                for counts in [(1, 0), (1, 1 << 20), (1 << 20, 1), (1 << 20, 1 << 29), (100, 1 << 16)] {
                    let types = (x, size.max(4));
                    let paths = [Path::for_any, Path::for_any_columns].map(|of| of(types, n, counts, H100));
                    for path in paths.into_iter().flatten() {
                        let length = counts.0 + counts.1;
                        assert!(i64::from(path.work) * i64::from(path.warps) >= length, "{path:?}");
                        assert!(i64::from(path.work) * i64::from(path.warps - 1) < length, "{path:?}");
                        assert!(path.longest_unsplit_row >= 2 * path.work, "{path:?}");
                        assert!(path.counters() * path.tiles as usize <= tiles::COUNTERS, "{path:?}");
                        assert!(path.partial_bytes(types.1) <= (17 << 20) || path.warps < 4, "{path:?}");
                        assert!(path.sums_of_row >= n, "{path:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn wide_rows_of_b_are_for_small_matrices() {
        assert!(path(DataType::R64F, 128, (13_436, 94_926)).is_some());
        assert!(path(DataType::R64F, 128, (27_240, 342_437)).is_none());
        assert!(path(DataType::R32F, 128, (27_240, 342_437)).is_none());
        assert!(path(DataType::R32F, 128, (2048, 383_955)).is_some());
        // Roads have 2.6 entries a row.
        assert!(path(DataType::R64F, 32, (129_164, 330_870)).is_none());
        assert!(path(DataType::R32F, 32, (129_164, 330_870)).is_some());
        // 18 rows of 31,000 entries, and 4,096 of 819.
        assert!(path(DataType::R32F, 32, (18, 558_985)).is_none());
        assert!(path(DataType::R32F, 32, (4096, 3_355_041)).is_none());
    }

    #[test]
    fn few_columns_of_large_matrices_with_long_rows_are_for_lanes_along_the_entries() {
        assert!(path(DataType::R32F, 8, (62_451, 4_325_625)).is_none());
        assert!(path(DataType::R32F, 32, (62_451, 4_325_625)).is_some());
        assert!(path(DataType::R32F, 8, (70_839, 1_620_256)).is_some());
        assert!(path(DataType::R32F, 8, (4_096_000, 28_518_400)).is_some());
        assert!(path(DataType::R64F, 8, (4_096_000, 28_518_400)).is_none());
        assert!(path(DataType::R16F, 64, (4_096_000, 28_518_400)).is_some());
        assert!(path(DataType::R16F, 128, (4_096_000, 28_518_400)).is_none());
    }

    #[test]
    fn columns_are_for_few_entries_and_columns() {
        let of = |n, counts| Path::of_columns((DataType::R32F, 4), n, counts, H100).map(|path| path.lanes);
        assert_eq!(of(8, (13_436, 94_926)), Some(4));
        assert_eq!(of(8, (15_439, 252_241)), Some(8));
        assert_eq!(of(8, (8_738, 591_904)), Some(16));
        assert_eq!([1, 2, 7, 8].map(|n| of(n, (13_436, 94_926))), [None, Some(4), Some(4), Some(4)]);
        // Tiles of 2, 4 and 8 columns, and as many as it takes.
        let tiles = |n| {
            Path::of_columns((DataType::R32F, 4), n, (13_436, 94_926), H100)
                .map(|path| (path.tile, path.tiles))
        };
        let expected = [(2, 2, 1), (3, 4, 1), (4, 4, 1), (7, 4, 2), (8, 8, 1), (9, 8, 2)];
        assert!(expected
            .iter()
            .all(|&(n, columns, count)| tiles(n) == Some((Tile::Columns { columns }, count))));
        assert_eq!([16, 17, 32].map(|n| of(n, (15_439, 252_241)).is_some()), [true, false, false]);
        assert_eq!([32, 33].map(|n| of(n, (5_041, 171_903)).is_some()), [true, false]);
        assert_eq!([8, 16].map(|n| of(n, (27_240, 342_437)).is_some()), [true, false]);
        assert_eq!(of(8, (62_451, 4_325_625)), None);
        assert!(Path::of_columns((DataType::C32F, 8), 8, (13_436, 94_926), H100).is_none());
        assert!(Path::of_columns((DataType::R64F, 8), 8, (0, 0), H100).is_some());
        assert!(Path::of_columns((DataType::R16F, 4), (1 << 62) - 1, (1, 1), H100).is_none());
    }
}
