//! Number of tile columns that SpGEMM `tile` keeps in shared memory at one time (kernels/format/tile.cu,
//! kernels/spgemm/tile.cu).

/// Maximum number of tile columns of a set in shared memory: all of them for up to 2^22 columns of the
/// matrix. A wider matrix is processed set by set.
const SET: usize = 1 << 18;

/// Shared memory of a set of tile columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// Number of tile columns of the set.
    pub bits: i32,
    /// Bytes of shared memory of a kernel that counts tile columns.
    pub count: u32,
    /// Bytes of shared memory of a kernel that numbers tile columns.
    pub fill: u32,
}

impl SetShape {
    /// Set of the widest matrices.
    pub const LARGEST: SetShape = SetShape::of(SET);

    /// Set for a matrix with this number of tile columns.
    pub const fn of(tile_cols: usize) -> Self {
        let bits = if tile_cols < SET { tile_cols.next_multiple_of(64) } else { SET };
        SetShape { bits: bits as i32, count: bits as u32 / 8, fill: (bits / 8 + bits / 16) as u32 }
    }
}

/// Lanes that take a tile of the left factor when tiles of the product are counted: one for each tile that a
/// row of tiles of the right factor has in the mean, up to a warp's.
pub fn lanes(tiles: usize, tile_rows: usize) -> i32 {
    (tiles / tile_rows.max(1)).clamp(1, 32).next_power_of_two() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tiles_have_a_lane_for_each() {
        assert_eq!([0, 100, 300, 3100, 100_000].map(|tiles| lanes(tiles, 100)), [1, 1, 4, 32, 32]);
        assert_eq!(lanes(5, 0), 8);
    }

    #[test]
    fn sets_have_all_tile_columns_up_to_the_largest() {
        assert_eq!(SetShape::of(1), SetShape { bits: 64, count: 8, fill: 12 });
        assert_eq!([0, 64, 65].map(|columns| SetShape::of(columns).bits), [0, 64, 128]);
        assert_eq!(SetShape::of(SET), SetShape::LARGEST);
        assert_eq!([SET - 1, SET + 1, usize::MAX].map(SetShape::of), [SetShape::LARGEST; 3]);
        // The limit of shared memory of a block on any device without opting in to more.
        assert_eq!(SetShape::LARGEST.fill, 48 << 10);
    }
}
