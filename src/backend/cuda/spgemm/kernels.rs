//! Names of the kernels of SpGEMM `hash`, and which of them process the rows of each bin.

use std::ops::Range;

use super::bins::{Binned, Bins, RowBin};
use super::rows::Kernels;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::Result;
use crate::types::IndexType;

kernel_kinds! {
    "spgemm/hash" {
        TINY_COUNT(IndexType) = "tiny_count" for [index_types()];
        TINY_MULTIPLY(&'static str, IndexType) = "tiny_multiply" for [types(Algorithm::Hash), index_types()];
        HASH_COUNT(IndexType) = "count" for [index_types()];
        HASH_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/bitmap" {
        BITMAP_COUNT(IndexType) = "count" for [index_types()];
        BITMAP_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/team" {
        TEAM_COUNT(IndexType) = "count" for [index_types()];
        TEAM_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/same_pattern" {
        SAME_PATTERN_COUNT(IndexType) = "count" for [index_types()];
        SAME_PATTERN_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/shifted_pattern" {
        SHIFTED_PATTERN_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/block" {
        BLOCK_COUNT(IndexType) = "count" for [index_types()];
        BLOCK_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/scaled_row" {
        SCALED_ROW_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/dense_windows" {
        DENSE_WINDOWS_COUNT(IndexType) = "count" for [index_types()];
        DENSE_WINDOWS_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
        DENSE_WINDOWS_PARTS(&'static str) = "parts" for [types(Algorithm::Hash)];
    }
    "spgemm/dense" {
        DENSE_FILL(&'static str) = "fill" for [["f64", "f32", "f16f32", "bf16f32"]];
        DENSE_TAKE(&'static str, IndexType) = "take" for [["f64", "f32", "f16f32", "bf16f32"], index_types()];
    }
    "spgemm/map" {
        MAP_MULTIPLY(&'static str) = "multiply" for [types(Algorithm::Hash)];
        MAP_MULTIPLY_FEW(&'static str) = "multiply_few" for [types(Algorithm::Hash)];
    }
}

macro_rules! names {
    (|$device:ident, $types:ident, $columns:ident| { $($name:ident => $kernel:expr),* $(,)? }) => {
        /// Kernel of SpGEMM `hash`, without the types of its values and indices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Name { $($name),* }

        impl Name {
            pub const COUNT: usize = [$(stringify!($name)),*].len();

            /// Loads the kernel for values of these types and a right factor with this column index type.
            pub fn load(self, $device: &Device, $types: &'static str, $columns: IndexType) -> Result<Kernel> {
                match self {
                    $(Name::$name => $kernel),*
                }
            }
        }
    };
}
names! { |device, types, columns| {
    Products => device.modules().kernel("spgemm/rows", "spgemm_products"),
    Order => device.modules().kernel("spgemm/rows", "spgemm_order"),
    Extents => device.modules().kernel("spgemm/rows", "spgemm_extents"),
    Spans => device.modules().kernel("spgemm/rows", "spgemm_spans"),
    Repeats => device.modules().kernel("spgemm/same_pattern", "spgemm_repeats"),
    FindSamePatterns => device.modules().kernel("spgemm/same_pattern", "spgemm_find_same_patterns"),
    FindShiftedPatterns => device.modules().kernel("spgemm/shifted_pattern", "spgemm_find_shifted_patterns"),
    ShiftedPatternCounts => device.modules().kernel("spgemm/shifted_pattern", "spgemm_shifted_pattern_counts"),
    CountBins => device.modules().kernel("spgemm/rows", "spgemm_count_bins"),
    FillBins => device.modules().kernel("spgemm/rows", "spgemm_fill_bins"),
    WriteOffsets => device.modules().kernel("spgemm/rows", "spgemm_write_offsets"),
    SortInput => device.modules().kernel("spgemm/rows", "spgemm_sort_input"),
    ColumnOffsets => device.modules().kernel("spgemm/rows", "spgemm_column_offsets"),
    Transpose => device.modules().kernel("spgemm/rows", "spgemm_transpose"),
    ColumnCounts => device.modules().kernel("spgemm/rows", "spgemm_column_counts"),
    Advance => device.modules().kernel("spgemm/rows", "spgemm_advance"),
    TransposePart => device.modules().kernel("spgemm/rows", "spgemm_transpose_part"),
    TinyCount => TINY_COUNT.load(device, (columns,)),
    TinyMultiply => TINY_MULTIPLY.load(device, (types, columns)),
    HashCount => HASH_COUNT.load(device, (columns,)),
    HashMultiply => HASH_MULTIPLY.load(device, (types, columns)),
    BitmapCount => BITMAP_COUNT.load(device, (columns,)),
    BitmapMultiply => BITMAP_MULTIPLY.load(device, (types, columns)),
    TeamCount => TEAM_COUNT.load(device, (columns,)),
    TeamMultiply => TEAM_MULTIPLY.load(device, (types, columns)),
    SamePatternCount => SAME_PATTERN_COUNT.load(device, (columns,)),
    SamePatternMultiply => SAME_PATTERN_MULTIPLY.load(device, (types, columns)),
    ShiftedPatternMultiply => SHIFTED_PATTERN_MULTIPLY.load(device, (types, columns)),
    BlockCount => BLOCK_COUNT.load(device, (columns,)),
    BlockMultiply => BLOCK_MULTIPLY.load(device, (types, columns)),
    ScaledRowCounts => device.modules().kernel("spgemm/scaled_row", "spgemm_scaled_row_counts"),
    ScaledRowMultiply => SCALED_ROW_MULTIPLY.load(device, (types, columns)),
    DenseWindowsStarts => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_starts"),
    DenseWindowsBits => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_bits"),
    DenseWindowsTaskCounts => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_task_counts"),
    DenseWindowsTasks => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_tasks"),
    DenseWindowsMerge => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_merge"),
    DenseWindowsSums => device.modules().kernel("spgemm/dense_windows", "spgemm_dense_windows_sums"),
    DenseWindowsCount => DENSE_WINDOWS_COUNT.load(device, (columns,)),
    DenseWindowsMultiply => DENSE_WINDOWS_MULTIPLY.load(device, (types, columns)),
    DenseWindowsParts => DENSE_WINDOWS_PARTS.load(device, (types,)),
    MapRowsInParts => device.modules().kernel("spgemm/map", "spgemm_map_rows_in_parts"),
    MapLongRows => device.modules().kernel("spgemm/map", "spgemm_map_long_rows"),
    MapMake => device.modules().kernel("spgemm/map", "spgemm_map_make"),
    MapMakeLong => device.modules().kernel("spgemm/map", "spgemm_map_make_long"),
    MapMultiply => MAP_MULTIPLY.load(device, (types,)),
    MapMultiplyFew => MAP_MULTIPLY_FEW.load(device, (types,)),
    DenseFill => DENSE_FILL.load(device, (types,)),
    DenseTake => DENSE_TAKE.load(device, (types, columns)),
} }

/// Returns the kernels that the numeric phase needs for the bins that have rows. Rows of
/// [`RowBin::DenseWindows`] have the kernel of windows if `wide_apart`, and else that of bitmaps.
pub fn of_numeric(bins: &Bins, has_rows: impl Fn(usize) -> bool, wide_apart: bool) -> Vec<Name> {
    let mut names = vec![Name::WriteOffsets];
    let mut add = |name, mut bins: Range<usize>| {
        if bins.any(&has_rows) && !names.contains(&name) {
            names.push(name);
        }
    };
    let tables = bins.of(RowBin::Table);
    match bins.by_teams() {
        true => add(Name::TeamMultiply, tables),
        false => {
            add(Name::TinyMultiply, tables.start..tables.start + 1);
            add(Name::HashMultiply, tables.start + 1..tables.end);
        }
    }
    add(
        if wide_apart { Name::DenseWindowsMultiply } else { Name::BitmapMultiply },
        bins.of(RowBin::DenseWindows),
    );
    add(Name::BitmapMultiply, bins.of(RowBin::Bitmap));
    add(Name::SamePatternMultiply, bins.of(RowBin::SamePattern));
    add(Name::ShiftedPatternMultiply, bins.of(RowBin::ShiftedPattern));
    add(Name::BlockMultiply, bins.of(RowBin::BlockTable));
    add(Name::ScaledRowMultiply, bins.of(RowBin::ScaledRow));
    names
}

impl Kernels {
    /// Loads the kernels of the numeric phase, so that it only launches. The context must be current.
    pub fn prepare(&self, bins: &Bins, binned: &Binned, wide_apart: bool) -> Result<()> {
        let names = of_numeric(bins, |bin| binned.bin(bin).1 > 0, wide_apart);
        names.into_iter().try_for_each(|name| self.get(name).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(distinct: bool, rows: &[RowBin], wide_apart: bool) -> Vec<Name> {
        let bins = Bins::numeric(distinct, 4, 8, true);
        let has_rows = |bin| rows.iter().any(|kind| kind.bins().contains(&bin));
        let names = of_numeric(&bins, has_rows, wide_apart);
        assert_eq!(names[0], Name::WriteOffsets);
        names[1..].to_vec()
    }

    #[test]
    fn only_kernels_of_bins_with_rows_are_fetched() {
        assert_eq!(of(true, &[], true), []);
        assert_eq!(of(true, &[RowBin::Table], true), [Name::TeamMultiply]);
        assert_eq!(of(false, &[RowBin::Table], true), [Name::TinyMultiply, Name::HashMultiply]);
        assert_eq!(of(true, &[RowBin::DenseWindows], true), [Name::DenseWindowsMultiply]);
        assert_eq!(of(true, &[RowBin::DenseWindows, RowBin::Bitmap], false), [Name::BitmapMultiply]);
        let rest = [RowBin::SamePattern, RowBin::ShiftedPattern, RowBin::BlockTable, RowBin::ScaledRow];
        let kernels = [
            Name::SamePatternMultiply,
            Name::ShiftedPatternMultiply,
            Name::BlockMultiply,
            Name::ScaledRowMultiply,
        ];
        for (bin, kernel) in rest.into_iter().zip(kernels) {
            assert_eq!(of(true, &[bin], true), [kernel], "{bin:?}");
        }
        assert_eq!(of(true, &rest, true), kernels);
    }

    #[test]
    fn a_bin_that_is_not_used_asks_for_nothing() {
        // Blocks with one table are used only for right factors of many columns.
        let near = Bins::numeric(true, 4, 8, false);
        assert_eq!(
            of_numeric(&near, |bin| RowBin::BlockTable.bins().contains(&bin), true),
            [Name::WriteOffsets]
        );
    }
}
